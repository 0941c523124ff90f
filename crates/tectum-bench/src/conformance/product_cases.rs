//! Cases of batched, half-width and byte products, and of stencils.

use tectum::kernel::pack::{bf16_bits, f16_bits, to_bf16, to_f16};
use tectum::operation::product::gemm_batched::Packing;
use tectum::{Boundary, DType, Half, Matrices, Points};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    let mut suites: Vec<Suite> = [
        ("gemm_batched", Packing::F32),
        ("gemm_f16", Packing::Half(Half::F16)),
        ("gemm_bf16", Packing::Half(Half::Bf16)),
    ]
    .into_iter()
    .map(|(name, packing)| Suite::new(name, move |seed: &mut Seed| gemm_cases(seed, packing)))
    .collect();
    suites.push(Suite::new("gemm_i8", gemm_i8_cases));
    suites.push(Suite::new("matvec_i8", matvec_i8_cases));
    suites.push(Suite::new("stencil7", |seed: &mut Seed| {
        stencil_cases(seed, Points::Seven)
    }));
    suites.push(Suite::new("stencil27", |seed: &mut Seed| {
        stencil_cases(seed, Points::TwentySeven)
    }));
    suites
}

/// Host data of an operand and the values of its elements.
fn operand(seed: &mut Seed, packing: Packing, n: usize) -> (Data, Vec<f32>) {
    let values = seed.floats(n, -1.0, 1.0);
    let Packing::Half(half) = packing else {
        return (Data::F32(values.clone()), values);
    };
    let narrow = if half == Half::F16 { to_f16 } else { to_bf16 };
    let widen = if half == Half::F16 {
        f16_bits
    } else {
        bf16_bits
    };
    let halves: Vec<u32> = values.iter().map(|x| narrow(x.to_bits())).collect();
    let words = halves
        .chunks(2)
        .map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 16))
        .collect();
    (
        Data::U32(words),
        halves
            .iter()
            .map(|&half| f32::from_bits(widen(half)))
            .collect(),
    )
}

fn gemm_cases(seed: &mut Seed, packing: Packing) -> Vec<Case> {
    // Matrices of a and of b, m, n, k.
    let mut shapes = vec![
        [1, 1, 0, 5, 3],
        [0, 0, 2, 2, 2],
        [1, 1, 1, 1, 1],
        [3, 3, 5, 7, 9],
        [4, 1, 33, 17, 65],
        [1, 5, 64, 64, 64],
        [2, 2, 130, 70, 31],
        [1, 1, 257, 129, 200],
        [70, 70, 3, 4, 5],
        [1, 1, 512, 65, 16],
    ];
    shapes.extend((0..6).map(|_| {
        let batch = seed.size(1, 6);
        [
            batch,
            batch,
            seed.size(1, 90),
            seed.size(1, 90),
            seed.size(1, 90),
        ]
    }));
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| gemm(seed, packing, shape, [index % 3 == 1, index % 4 > 1]))
        .collect()
}

fn gemm(
    seed: &mut Seed,
    packing: Packing,
    [a_count, b_count, m, n, k]: [usize; 5],
    transposed: [bool; 2],
) -> Case {
    let (a_data, a) = operand(seed, packing, a_count * m * k);
    let (b_data, b) = operand(seed, packing, b_count * k * n);
    let strides =
        |rows: usize, cols: usize, transposed: bool| if transposed { (1, rows) } else { (cols, 1) };
    let ((a_row, a_col), (b_row, b_col)) =
        (strides(m, k, transposed[0]), strides(k, n, transposed[1]));
    let mut expected = Vec::new();
    for matrix in 0..a_count.max(b_count) {
        let a = if a_count > 1 {
            &a[matrix * m * k..]
        } else {
            &a[..]
        };
        let b = if b_count > 1 {
            &b[matrix * k * n..]
        } else {
            &b[..]
        };
        for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
            let term = |i: usize| {
                f64::from(a[row * a_row + i * a_col]) * f64::from(b[i * b_row + col * b_col])
            };
            let (value, magnitude) = (0..k)
                .map(term)
                .fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            // A random walk of k roundings, five sigma wide.
            expected.push(Expected {
                value,
                bound: ROUNDING * (5.0 * (k as f64).sqrt() + 4.0) * magnitude,
            });
        }
    }
    let shape = format!("{a_count}, {b_count} × {m}×{k}×{n} transposed {transposed:?}");
    Case::new(
        shape,
        vec![a_data, b_data],
        vec![Output::Near(expected)],
        move |plan, x, y| {
            let matrices = |view, count, rows, cols, transposed| {
                let (rows, cols) = if transposed {
                    (cols, rows)
                } else {
                    (rows, cols)
                };
                let matrices = match packing {
                    Packing::F32 => Matrices::new(view, count, rows, cols),
                    Packing::Half(half) => Matrices::half(half, view, count, rows, cols),
                };
                if transposed {
                    matrices.transpose()
                } else {
                    matrices
                }
            };
            plan.gemm_batched(
                matrices(x[0], a_count, m, k, transposed[0]),
                matrices(x[1], b_count, k, n, transposed[1]),
                y[0],
            )
        },
    )
}

/// Rows of random bytes, padded with zeros to whole words.
fn byte_rows(seed: &mut Seed, rows: usize, k: usize) -> (Vec<u32>, Vec<i8>) {
    let (words, mut bytes) = (k.div_ceil(4), vec![0i8; rows * k.div_ceil(4) * 4]);
    for row in 0..rows {
        // The extremes too: −128 · −128 in one pair of products exceeds 16 bits.
        bytes[row * words * 4..][..k].iter_mut().for_each(|byte| {
            *byte = if seed.word().is_multiple_of(4) {
                -128
            } else {
                seed.word() as i8
            }
        });
    }
    let packed = bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0] as u8, b[1] as u8, b[2] as u8, b[3] as u8]))
        .collect();
    (packed, bytes)
}

fn byte_dots(a: &[i8], b: &[i8], k: usize) -> Vec<u32> {
    let stride = k.div_ceil(4) * 4;
    let rows = |x: &[i8]| x.len() / stride.max(1);
    let dot = |row: usize, col: usize| {
        let terms = a[row * stride..][..stride]
            .iter()
            .zip(&b[col * stride..][..stride]);
        terms
            .map(|(&a, &b)| i64::from(a) * i64::from(b))
            .sum::<i64>() as u32
    };
    (0..rows(a))
        .flat_map(|row| (0..rows(b)).map(move |col| dot(row, col)))
        .collect()
}

fn gemm_i8_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        [0, 5, 3],
        [5, 0, 3],
        [1, 1, 1],
        [3, 5, 7],
        [64, 64, 64],
        [65, 63, 70],
        [17, 130, 300],
        [2, 3, 9000],
        [200, 90, 129],
    ];
    shapes.extend((0..6).map(|_| [seed.size(1, 90), seed.size(1, 90), seed.size(1, 400)]));
    let case = |[m, n, k]: [usize; 3]| {
        let ((a, a_bytes), (b, b_bytes)) = (byte_rows(seed, m, k), byte_rows(seed, n, k));
        let expected = Output::Exact(Data::U32(byte_dots(&a_bytes, &b_bytes, k)));
        Case::new(
            format!("{m}×{k}×{n}"),
            vec![Data::U32(a), Data::U32(b)],
            vec![expected],
            move |plan, x, y| plan.gemm_i8(x[0], x[1], y[0].reinterpret(DType::I32), [m, n, k]),
        )
    };
    shapes.into_iter().map(case).collect()
}

fn matvec_i8_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        (0, 5),
        (1, 1),
        (1, 1000),
        (1000, 1),
        (16, 256),
        (33, 40_97),
        (3000, 65),
    ];
    shapes.extend((0..4).map(|_| (seed.size(1, 300), seed.size(1, 3000))));
    let case = |(m, k): (usize, usize)| {
        let ((a, a_bytes), (x, x_bytes)) = (byte_rows(seed, m, k), byte_rows(seed, 1, k));
        let expected = Output::Exact(Data::U32(byte_dots(&a_bytes, &x_bytes, k)));
        Case::new(
            format!("{m}×{k}"),
            vec![Data::U32(a), Data::U32(x)],
            vec![expected],
            |plan, x, y| plan.matvec_i8(x[0], x[1], y[0].reinterpret(DType::I32)),
        )
    };
    shapes.into_iter().map(case).collect()
}

fn stencil_cases(seed: &mut Seed, points: Points) -> Vec<Case> {
    let mut shapes = vec![
        [0, 2, 3, 4],
        [1, 1, 1, 1],
        [1, 1, 1, 70],
        [2, 2, 2, 3],
        [1, 5, 1, 16],
        [3, 4, 2, 1],
        [9, 7, 11, 5],
        [20, 16, 12, 64],
        [2, 3, 700, 4],
    ];
    shapes.push([
        seed.size(1, 12),
        seed.size(1, 12),
        seed.size(1, 12),
        seed.size(1, 40),
    ]);
    let mut cases = Vec::new();
    for (index, sizes) in shapes.into_iter().enumerate() {
        for boundary in Boundary::ALL {
            cases.push(stencil(seed, points, sizes, boundary, index % 2 == 1));
        }
    }
    cases
}

fn stencil(
    seed: &mut Seed,
    points: Points,
    sizes: [usize; 4],
    boundary: Boundary,
    per_channel: bool,
) -> Case {
    let [nx, ny, nz, channels] = sizes;
    // With one channel, four weights are the same as weights per channel.
    let x = seed.floats(sizes.iter().product(), -1.0, 1.0);
    let weights = seed.floats(if per_channel { 4 * channels } else { 4 }, -1.0, 1.0);
    let class = |step: [isize; 3]| {
        let distance: usize = step.iter().map(|step| step.unsigned_abs()).sum();
        match points {
            Points::TwentySeven => Some(distance),
            Points::Seven if distance <= 1 => Some(
                step.iter()
                    .position(|&step| step != 0)
                    .map_or(0, |axis| axis + 1),
            ),
            Points::Seven => None,
        }
    };
    let steps = (0..27).map(|i| [i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1]);
    let neighbours: Vec<([isize; 3], usize)> = steps
        .filter_map(|step| class(step).map(|class| (step, class)))
        .collect();
    let mut expected = Vec::new();
    for i in 0..x.len() {
        let (channel, cell) = (i % channels, i / channels);
        let at = [cell / (ny * nz), cell / nz % ny, cell % nz];
        let (mut value, mut magnitude) = (0.0, 0.0);
        for (step, class) in &neighbours {
            let place =
                |axis: usize, size: usize| boundary.place(at[axis] as isize + step[axis], size);
            let Some(((px, py), pz)) = place(0, nx).zip(place(1, ny)).zip(place(2, nz)) else {
                continue;
            };
            let weight = if per_channel {
                weights[class * channels + channel]
            } else {
                weights[*class]
            };
            let term =
                f64::from(weight) * f64::from(x[((px * ny + py) * nz + pz) * channels + channel]);
            value += term;
            magnitude += term.abs();
        }
        // At most 12 additions in a class, one product and three additions after.
        expected.push(Expected {
            value,
            bound: 16.0 * ROUNDING * magnitude,
        });
    }
    let shape = format!("{sizes:?} {boundary:?} {} weights", weights.len());
    Case::new(
        shape,
        vec![Data::F32(x), Data::F32(weights)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.stencil(points, x[0], x[1], y[0], sizes, boundary),
    )
}
