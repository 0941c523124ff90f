//! Products of integers are exact, also where sums are longer than f32 is exact.

use rten_onnx::onnx::{DataType, GraphProto};
use tectum::Device;
use tectum_onnx::{Array, ElementType, Model};

use super::small_models::{model, node, outputs, port, words};

const SIZES: [usize; 3] = [2, 1000, 3];

/// The product of a [m, k], which is fed, and b [k, n], which the file has if `is_known`, as the
/// file's operator computes it.
fn product(
    operator: &str,
    [a_kind, b_kind]: [(DataType, ElementType); 2],
    a: &[i64],
    b: &[i64],
    is_known: bool,
) -> Vec<i64> {
    let [m, k, n] = SIZES.map(|size| size as i64);
    let mut input = vec![port("a", a_kind.0, &[m, k])];
    let mut initializer = Vec::new();
    match is_known {
        true => initializer.push(words(
            "b",
            b_kind.0,
            &[k, n],
            b.iter().map(|value| *value as i32),
        )),
        false => input.push(port("b", b_kind.0, &[k, n])),
    }
    let graph = GraphProto {
        node: vec![node(operator, "a b", "y", vec![])],
        initializer,
        input,
        output: outputs("y"),
        ..GraphProto::default()
    };
    let network = Model::from_bytes(&model(graph).write_buf().expect("bytes"))
        .expect("a model")
        .load(&[])
        .expect("a network");
    let mut compiled = network
        .compile(&Device::open("cpu").expect("a device"))
        .expect("compiled");
    let array = |element, dims: [usize; 2], values: &[i64]| {
        Array::new(
            element,
            &dims,
            values.iter().map(|value| *value as f64).collect(),
        )
        .expect("it fills the shape")
    };
    compiled
        .set("a", &array(a_kind.1, [SIZES[0], SIZES[1]], a))
        .expect("fed");
    if !is_known {
        compiled
            .set("b", &array(b_kind.1, [SIZES[1], SIZES[2]], b))
            .expect("fed");
    }
    compiled.run().expect("run");
    compiled
        .output("y")
        .expect("an output")
        .to_f64()
        .into_iter()
        .map(|value| value as i64)
        .collect()
}

/// Sums that wrap at 32 bits.
fn reference(a: &[i64], b: &[i64]) -> Vec<i64> {
    let [m, k, n] = SIZES;
    let sum = |row: usize, col: usize| {
        (0..k).fold(0i32, |sum, inner| {
            sum.wrapping_add((a[row * k + inner] as i32).wrapping_mul(b[inner * n + col] as i32))
        })
    };
    (0..m * n)
        .map(|place| i64::from(sum(place / n, place % n)))
        .collect()
}

#[test]
fn products_of_bytes_are_exact() {
    let [m, k, n] = SIZES;
    // The greatest products, and odd ones so that sums need all bits.
    let a: Vec<i64> = (0..m * k)
        .map(|place| if place % 3 == 0 { 255 } else { 253 })
        .collect();
    let b: Vec<i64> = (0..k * n)
        .map(|place| if place % 2 == 0 { -127 } else { -125 })
        .collect();
    for is_known in [false, true] {
        let found = product(
            "MatMulInteger",
            [
                (DataType::UINT8, ElementType::U8),
                (DataType::INT8, ElementType::I8),
            ],
            &a,
            &b,
            is_known,
        );
        assert_eq!(found, reference(&a, &b), "b is known: {is_known}");
    }
}

#[test]
fn products_of_words_wrap_at_32_bits() {
    let [m, k, n] = SIZES;
    let word = |seed: usize| i64::from((seed as i32).wrapping_mul(0x9e37_79b1u32 as i32));
    let (a, b): (Vec<i64>, Vec<i64>) = (
        (0..m * k).map(word).collect(),
        (0..k * n).map(|place| word(place + 7)).collect(),
    );
    for is_known in [false, true] {
        let found = product(
            "MatMul",
            [(DataType::INT32, ElementType::I32); 2],
            &a,
            &b,
            is_known,
        );
        assert_eq!(found, reference(&a, &b), "b is known: {is_known}");
    }
}

/// Sizes for which filters of floats are transformed: whole numbers are not.
#[test]
fn convolutions_of_bytes_are_exact() {
    const CHANNELS: usize = 32;
    const FILTERS: usize = 16;
    const SIZE: usize = 14;
    let pixel = |at: usize| (at * 151 + at / 7) as i64 % 256;
    let weight = |at: usize| (at * 89 + at / 5) as i64 % 255 - 127;
    let dims = |sizes: [usize; 4]| sizes.map(|size| size as i64);
    let (x_dims, w_dims) = ([1, CHANNELS, SIZE, SIZE], [FILTERS, CHANNELS, 3, 3]);
    let filters = words(
        "w",
        DataType::INT8,
        &dims(w_dims),
        (0..FILTERS * CHANNELS * 9).map(|at| weight(at) as i32),
    );
    let input = vec![port("x", DataType::UINT8, &dims(x_dims))];
    let node = vec![node("ConvInteger", "x w", "y", vec![])];
    let graph = GraphProto {
        node,
        initializer: vec![filters],
        input,
        output: outputs("y"),
        ..GraphProto::default()
    };
    let network = Model::from_bytes(&model(graph).write_buf().expect("bytes"))
        .expect("a model")
        .load(&[])
        .expect("a network");
    let mut compiled = network
        .compile(&Device::open("cpu").expect("a device"))
        .expect("compiled");
    let x = (0..CHANNELS * SIZE * SIZE)
        .map(|at| pixel(at) as f64)
        .collect();
    compiled
        .set(
            "x",
            &Array::new(ElementType::U8, &x_dims, x).expect("it fills the shape"),
        )
        .expect("fed");
    compiled.run().expect("run");
    let found: Vec<i64> = compiled
        .output("y")
        .expect("an output")
        .to_f64()
        .into_iter()
        .map(|value| value as i64)
        .collect();
    let edge = SIZE - 2;
    for (place, found) in found.into_iter().enumerate() {
        let (filter, row, column) = (place / (edge * edge), place / edge % edge, place % edge);
        let term = |at: usize| {
            let (channel, tap) = (at / 9, at % 9);
            pixel((channel * SIZE + row + tap / 3) * SIZE + column + tap % 3)
                * weight((filter * CHANNELS + channel) * 9 + tap)
        };
        assert_eq!(
            found,
            (0..CHANNELS * 9).map(term).sum::<i64>(),
            "filter {filter}, row {row}, column {column}"
        );
    }
}
