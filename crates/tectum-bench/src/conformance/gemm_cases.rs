//! Cases of the matrix products and their epilogues.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::operation::product::quantize_rows::{BLOCK, rotate};
use tectum::{Activation, GemmEpilogue, Matrix};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    let mut suites = vec![
        Suite::new("gemm", gemm_cases),
        Suite::new("matvec", matvec_cases),
        Suite::new("quantize_rows", quantize_cases),
    ];
    for format in PanelFormat::ALL {
        suites.push(Suite::new(
            format!("gemm_panels_{format}"),
            move |seed: &mut Seed| panel_cases(seed, format),
        ));
    }
    suites
}

#[derive(Clone, Copy)]
struct Variant {
    bias: bool,
    residual: bool,
    activation: Activation,
    a_transposed: bool,
    b_transposed: bool,
}

impl Variant {
    /// Cycles through every epilogue, activation and layout over the cases.
    fn of(index: usize) -> Self {
        Self {
            bias: index & 1 != 0,
            residual: index & 2 != 0,
            activation: Activation::ALL[index % 7],
            a_transposed: index % 3 == 1,
            b_transposed: index % 5 > 2,
        }
    }
}

/// Σ a·b in float64 with the magnitude that bounds its error.
fn dot(k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> (f64, f64) {
    let terms = (0..k).map(|i| f64::from(a(i)) * f64::from(b(i)));
    terms.fold((0.0, 0.0), |(sum, magnitude), term| {
        (sum + term, magnitude + term.abs())
    })
}

/// A random walk of k roundings, five sigma wide, then bias, activation (slope at most 1.13, 8 ulp)
/// and residual.
fn expected(
    variant: Variant,
    k: usize,
    (sum, magnitude): (f64, f64),
    bias: f32,
    residual: f32,
) -> Expected {
    let (bias, residual) = (f64::from(bias), f64::from(residual));
    let before = sum + if variant.bias { bias } else { 0.0 };
    let after = variant.activation.reference(before);
    let value = after + if variant.residual { residual } else { 0.0 };
    let product_error = ROUNDING * (5.0 * (k as f64).sqrt() + 4.0) * (magnitude + bias.abs());
    Expected {
        value,
        bound: 1.2 * product_error + ROUNDING * (16.0 * after.abs() + 2.0 * value.abs()),
    }
}

fn gemm_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        (0, 5, 3),
        (5, 0, 3),
        (1, 1, 1),
        (3, 5, 7),
        (64, 64, 64),
        (65, 63, 17),
        (1, 300, 64),
        (300, 1, 5),
        (128, 96, 256),
        (257, 130, 33),
        (256, 64, 7),
        (256, 4, 64),
        (63, 200, 1000),
        (512, 65, 16),
        // Every epilogue, small enough for an interpreter.
        (17, 9, 20),
        (9, 17, 20),
        (20, 33, 11),
        (33, 20, 11),
    ];
    shapes.extend((0..16).map(|_| (seed.size(1, 150), seed.size(1, 150), seed.size(1, 150))));
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| gemm(seed, shape, Variant::of(index)))
        .collect()
}

fn gemm(seed: &mut Seed, (m, n, k): (usize, usize, usize), variant: Variant) -> Case {
    let [a, b, bias, residual] = [m * k, k * n, n, m * n].map(|len| seed.floats(len, -1.0, 1.0));
    let (a_strides, b_strides) = (
        strides(m, k, variant.a_transposed),
        strides(k, n, variant.b_transposed),
    );
    let mut values = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let product = dot(
                k,
                |i| a[row * a_strides.0 + i * a_strides.1],
                |i| b[i * b_strides.0 + col * b_strides.1],
            );
            values.push(expected(
                variant,
                k,
                product,
                bias[col],
                residual[row * n + col],
            ));
        }
    }
    let shape = format!("{m}×{k}×{n} {}", describe(variant));
    let inputs = vec![
        Data::F32(a),
        Data::F32(b),
        Data::F32(bias),
        Data::F32(residual),
    ];
    Case::new(
        shape,
        inputs,
        vec![Output::Near(values)],
        move |plan, x, y| {
            let matrix = |view, rows, cols, transposed| {
                if transposed {
                    Matrix::new(view, cols, rows).transpose()
                } else {
                    Matrix::new(view, rows, cols)
                }
            };
            let tail = GemmEpilogue {
                bias: variant.bias.then_some(x[2]),
                activation: variant.activation,
                residual: variant.residual.then_some(x[3]),
            };
            plan.gemm(
                matrix(x[0], m, k, variant.a_transposed),
                matrix(x[1], k, n, variant.b_transposed),
                y[0],
                tail,
            )
        },
    )
}

/// Few rows and many, one panel and many, panels that are not whole, and k beyond a slice.
fn panel_cases(seed: &mut Seed, format: PanelFormat) -> Vec<Case> {
    // The small ones come first, with every epilogue: they are what an interpreter has time for.
    let mut shapes = vec![
        (0, 5, 3),
        (1, 1, 1),
        (3, 5, 7),
        (5, 17, 9),
        (2, 33, 4),
        (64, 64, 64),
        (65, 63, 17),
        (1, 300, 64),
        (300, 1, 5),
        (13, 500, 1000),
        (257, 130, 33),
        (8, 1152, 384),
        (130, 384, 800),
        (600, 40, 390),
        (7, 16, 3000),
    ];
    shapes.extend((0..16).map(|_| (seed.size(1, 150), seed.size(1, 150), seed.size(1, 150))));
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| panels(seed, shape, format, Variant::of(index)))
        .collect()
}

fn panels(
    seed: &mut Seed,
    (m, n, k): (usize, usize, usize),
    format: PanelFormat,
    variant: Variant,
) -> Case {
    let is_quantized = format == PanelFormat::Int8;
    let [b, bias, residual] = [k * n, n, m * n].map(|len| seed.floats(len, -1.0, 1.0));
    let (mut a, mut codes) = (Vec::new(), Vec::new());
    if is_quantized {
        for (row, whole) in (0..m).map(|_| whole_codes(seed, k)) {
            a.extend(row);
            codes.push(whole);
        }
    } else {
        a = seed.floats(m * k, -1.0, 1.0);
    }
    let (row, col) = strides(k, n, variant.b_transposed);
    let mut words = vec![u32::MAX; format.words(k, n)];
    format.pack(&b, [k, n], [row, col], &mut words);
    let weights = format.unpack(&words, [k, n]);
    let mut values = Vec::with_capacity(m * n);
    for at in 0..m * n {
        let (product, depth) = match codes.get(at / n) {
            Some(codes) => (coded_dot(codes, &words, at % n), 1),
            None => (
                dot(k, |i| a[at / n * k + i], |i| weights[i * n + at % n]),
                k,
            ),
        };
        values.push(expected(
            variant,
            depth,
            product,
            bias[at % n],
            residual[at],
        ));
    }
    let weights = if format == PanelFormat::F32 {
        Data::F32(words.into_iter().map(f32::from_bits).collect())
    } else {
        Data::U32(words)
    };
    let inputs = vec![Data::F32(a), weights, Data::F32(bias), Data::F32(residual)];
    Case::new(
        format!("{m}×{k}×{n} {}", describe(variant)),
        inputs,
        vec![Output::Near(values)],
        move |plan, x, y| {
            let tail = GemmEpilogue {
                bias: variant.bias.then_some(x[2]),
                activation: variant.activation,
                residual: variant.residual.then_some(x[3]),
            };
            plan.gemm_panels(x[0], (x[1], format), y[0], [m, k, n], tail)
        },
    )
}

/// The sum of products of a row's codes with those of a column in panels, times both scales; the
/// row's is 128.
fn coded_dot(codes: &[i8], panels: &[u32], column: usize) -> (f64, f64) {
    let panel = &panels[column / 16 * (64 + codes.len() * 4)..];
    let code =
        |at: usize| i64::from((panel[64 + at / 4 * 16 + column % 16] >> (8 * (at % 4))) as i8);
    let sum: i64 = codes
        .iter()
        .enumerate()
        .map(|(at, a)| i64::from(*a) * code(at))
        .sum();
    let value = sum as f64 * BLOCK as f64 * f64::from(f32::from_bits(panel[column % 16]));
    (value, value.abs())
}

/// A row whose elements after their rotation are whole multiples of its step, and its codes. A
/// rotation and its inverse multiply by 128; the last block, if it is not whole, has one element
/// that is not 0.
fn whole_codes(seed: &mut Seed, k: usize) -> (Vec<f32>, Vec<i8>) {
    let mut code = || (seed.word() % 255) as i32 - 127;
    let mut codes: Vec<i32> = (0..k / BLOCK * BLOCK).map(|_| code()).collect();
    let spike = if k < BLOCK { 127 } else { code() };
    if let Some(first) = codes.first_mut() {
        *first = 127;
    }
    let mut row: Vec<f32> = codes.iter().map(|code| *code as f32).collect();
    row.as_chunks_mut().0.iter_mut().for_each(rotate);
    if !k.is_multiple_of(BLOCK) {
        let mut last = [0.0; BLOCK];
        let place = seed.size(0, k % BLOCK - 1);
        last[place] = BLOCK as f32 * spike as f32;
        row.extend(&last[..k % BLOCK]);
        rotate(&mut last);
        codes.extend(last.map(|value| (value / BLOCK as f32) as i32));
    }
    (row, codes.into_iter().map(|code| code as i8).collect())
}

/// Codes are exact, scales except for one or two roundings.
fn quantize_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        (0, 5),
        (1, 1),
        (3, 128),
        (2, 130),
        (5, 384),
        (17, 100),
        (40, 1000),
    ];
    shapes.extend((0..4).map(|_| (seed.size(1, 20), seed.size(1, 400))));
    let case = |(rows, cols): (usize, usize)| {
        let (mut x, mut codes, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..rows {
            let (values, whole) = whole_codes(seed, cols);
            let factor = [1.0, 0.0, 0.25, 1e-3, 3e7][row % 5];
            // A row of zeros, one of values that a device may flush to zero, and rows of
            // non-integer magnitudes.
            x.extend(values.iter().map(|value| value * factor));
            codes.extend(
                whole
                    .iter()
                    .map(|code| if factor == 0.0 { 0 } else { *code }),
            );
            scales.push(Expected {
                value: f64::from(factor) * BLOCK as f64,
                bound: 1e-6 * f64::from(factor) * BLOCK as f64,
            });
        }
        let words = codes
            .chunks_exact(4)
            .map(|b: &[i8]| u32::from_le_bytes([b[0] as u8, b[1] as u8, b[2] as u8, b[3] as u8]))
            .collect();
        let outputs = vec![Output::Exact(Data::U32(words)), Output::Near(scales)];
        Case::new(
            format!("{rows}×{cols}"),
            vec![Data::F32(x)],
            outputs,
            move |plan, x, y| plan.quantize_rows(x[0], y[0], y[1], cols),
        )
    };
    shapes.into_iter().map(case).collect()
}

fn strides(rows: usize, cols: usize, transposed: bool) -> (usize, usize) {
    if transposed { (1, rows) } else { (cols, 1) }
}

fn describe(variant: Variant) -> String {
    let Variant {
        bias,
        residual,
        activation,
        a_transposed,
        b_transposed,
    } = variant;
    format!(
        "{activation:?} bias {bias} residual {residual} transposed {a_transposed} {b_transposed}"
    )
}

fn matvec_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        (0, 5),
        (1, 1),
        (1, 1000),
        (1000, 1),
        (16, 256),
        (33, 4097),
        (3000, 65),
    ];
    shapes.extend((0..8).map(|_| (seed.size(1, 300), seed.size(1, 3000))));
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| matvec(seed, shape, Variant::of(index)))
        .collect()
}

fn matvec(seed: &mut Seed, (m, k): (usize, usize), variant: Variant) -> Case {
    let [a, x, bias, residual] = [m * k, k, m, m].map(|len| seed.floats(len, -1.0, 1.0));
    let value = |row: usize| {
        expected(
            variant,
            k,
            dot(k, |i| a[row * k + i], |i| x[i]),
            bias[row],
            residual[row],
        )
    };
    let values = (0..m).map(value).collect();
    let shape = format!("{m}×{k} {}", describe(variant));
    let inputs = vec![
        Data::F32(a),
        Data::F32(x),
        Data::F32(bias),
        Data::F32(residual),
    ];
    Case::new(
        shape,
        inputs,
        vec![Output::Near(values)],
        move |plan, x, y| {
            let tail = GemmEpilogue {
                bias: variant.bias.then_some(x[2]),
                activation: variant.activation,
                residual: variant.residual.then_some(x[3]),
            };
            plan.matvec(x[0], x[1], y[0], tail)
        },
    )
}
