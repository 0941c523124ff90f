//! Cases of casts, transposes, gathers and scatters: exact, except for the rounding of integers to
//! floats and of sums.

use tectum::kernel::pack::{bf16_bits, f16_bits};
use tectum::{DType, Half};

use super::case::SPECIAL;
use super::{Case, Data, Expected, Output, Seed, Suite};

const LARGE: usize = 300_001;

pub(super) fn suites() -> Vec<Suite> {
    let mut suites = vec![Suite::new("cast", cast_cases)];
    for half in [Half::F16, Half::Bf16] {
        suites.push(Suite::new(
            format!("cast_to_{}", half.name()),
            move |seed: &mut Seed| to_half_cases(seed, half),
        ));
        suites.push(Suite::new(
            format!("cast_from_{}", half.name()),
            move |seed: &mut Seed| from_half_cases(seed, half),
        ));
    }
    suites.push(Suite::new("transpose", transpose_cases));
    suites.push(Suite::new("gather", |seed: &mut Seed| {
        table_shapes(seed)
            .into_iter()
            .map(|shape| gather(seed, shape))
            .collect()
    }));
    suites.push(Suite::new("scatter_add", |seed: &mut Seed| {
        table_shapes(seed)
            .into_iter()
            .map(|shape| scatter_add(seed, shape))
            .collect()
    }));
    suites.push(Suite::new("segment_sum", |seed: &mut Seed| {
        table_shapes(seed)
            .into_iter()
            .map(|shape| segment_sum(seed, shape))
            .collect()
    }));
    suites.push(Suite::new("one_hot", |seed: &mut Seed| {
        table_shapes(seed)
            .into_iter()
            .map(|[cols, _, count]| one_hot(seed, cols, count))
            .collect()
    }));
    suites
}

fn cast_cases(seed: &mut Seed) -> Vec<Case> {
    let mut cases = Vec::new();
    for n in seed.sizes(LARGE) {
        let mut x = seed.floats(n, -5e9, 5e9);
        x.iter_mut().step_by(2).for_each(|x| *x *= 1e-8);
        cases.extend([to_integer(x.clone(), DType::I32), to_integer(x, DType::U32)]);
        let words: Vec<u32> = (0..n).map(|i| seed.word() >> (i % 32)).collect();
        cases.extend([
            from_integer(words.clone(), DType::I32),
            from_integer(words, DType::U32),
        ]);
    }
    let edges = [
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -2_147_483_904.0,
        4_294_967_040.0,
        4_294_967_296.0,
        -0.99,
        0.99,
        -1.5,
        1.5,
    ];
    let x = [&SPECIAL[..], &edges].concat();
    cases.extend([to_integer(x.clone(), DType::I32), to_integer(x, DType::U32)]);
    let ends = vec![
        0,
        1,
        u32::MAX,
        1 << 31,
        (1 << 31) - 1,
        (1 << 24) + 1,
        (1 << 24) + 3,
        u32::MAX - 127,
        u32::MAX - 128,
    ];
    cases.extend([
        from_integer(ends.clone(), DType::I32),
        from_integer(ends, DType::U32),
    ]);
    cases
}

fn to_integer(x: Vec<f32>, to: DType) -> Case {
    let (low, high) = if to == DType::I32 {
        (-2_147_483_648.0, 2_147_483_520.0)
    } else {
        (0.0, 4_294_967_040.0)
    };
    let value = |x: &f32| {
        if x.is_nan() {
            0.0
        } else {
            f64::from(*x).trunc().clamp(low, high)
        }
    };
    let expected = x.iter().map(|x| value(x) as i64 as u32).collect();
    let shape = format!("f32 to {} {}", to.wgsl(), x.len());
    Case::new(
        shape,
        vec![Data::F32(x)],
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| plan.cast(x[0], y[0].reinterpret(to)),
    )
}

fn from_integer(words: Vec<u32>, from: DType) -> Case {
    let value = |word: &u32| {
        if from == DType::I32 {
            f64::from(*word as i32)
        } else {
            f64::from(*word)
        }
    };
    // One rounding; a driver may round either way.
    let expected = words
        .iter()
        .map(value)
        .map(|value| Expected {
            value,
            bound: value.abs() / 8_388_608.0,
        })
        .collect();
    let shape = format!("{} to f32 {}", from.wgsl(), words.len());
    Case::new(
        shape,
        vec![Data::U32(words)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.cast(x[0].reinterpret(from), y[0]),
    )
}

/// The nearest half by search in float64: of the two neighbours the nearer, or the even one.
fn nearest(half: Half, x: f32) -> u32 {
    let bits = x.to_bits();
    let (sign, infinity) = (
        (bits >> 31) << 15,
        if half == Half::F16 { 0x7c00 } else { 0x7f80 },
    );
    if x.is_nan() {
        let upper = if half == Half::F16 {
            0x200 | ((bits >> 13) & 0x3ff)
        } else {
            0x40 | ((bits >> 16) & 0x7f)
        };
        return sign | infinity | upper;
    }
    let value = |half_bits: u32| {
        f64::from(f32::from_bits(if half == Half::F16 {
            f16_bits(half_bits)
        } else {
            bf16_bits(half_bits)
        }))
    };
    let size = f64::from(x).abs();
    // Halves of one sign are ordered as their bits are; infinity takes the place of the next
    // number.
    let (mut low, mut high) = (0, infinity);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if value(middle) <= size {
            low = middle
        } else {
            high = middle
        }
    }
    let top = if high == infinity {
        2.0 * value(infinity - 1) - value(infinity - 2)
    } else {
        value(high)
    };
    let (below, above) = (size - value(low), top - size);
    let up = above < below || (above == below && low % 2 == 1) || size.is_infinite();
    sign | if up { high } else { low }
}

fn to_half_cases(seed: &mut Seed, half: Half) -> Vec<Case> {
    let mut inputs: Vec<Vec<f32>> = seed
        .sizes(20_001)
        .into_iter()
        .map(|n| seed.floats(n, -2.0, 2.0))
        .collect();
    inputs.push(SPECIAL.to_vec());
    // Every exponent, NaN of many payloads, the edges of both ranges.
    inputs.push((0..20_000).map(|_| f32::from_bits(seed.word())).collect());
    inputs.push(vec![
        65_504.0, 65_519.0, 65_520.0, -65_520.0, 6.1e-5, 5.96e-8, 2.98e-8, 2.99e-8, 1e-40, 3.39e38,
        -3.395e38,
    ]);
    let case = |x: Vec<f32>| {
        let halves: Vec<u32> = x.iter().map(|&x| nearest(half, x)).collect();
        let words: Vec<u32> = halves
            .chunks(2)
            .map(|pair| pair[0] | pair.get(1).map_or(0, |high| high << 16))
            .collect();
        let words_in = x.iter().map(|x| x.to_bits()).collect();
        Case::new(
            format!("{}", x.len()),
            vec![Data::U32(words_in)],
            vec![Output::Exact(Data::U32(words))],
            move |plan, x, y| plan.cast_to_half(half, x[0].reinterpret(DType::F32), y[0]),
        )
    };
    inputs.into_iter().map(case).collect()
}

/// An f16 by its definition, in float64.
fn f16_value(half: u32) -> f64 {
    let (sign, exponent, mantissa) = (
        if half & 0x8000 != 0 { -1.0 } else { 1.0 },
        (half >> 10) & 31,
        f64::from(half & 0x3ff),
    );
    sign * match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + mantissa / 1024.0) * 2f64.powi(exponent as i32 - 15),
    }
}

fn from_half_cases(seed: &mut Seed, half: Half) -> Vec<Case> {
    let mut inputs: Vec<(Vec<u32>, usize)> = seed
        .sizes(20_001)
        .into_iter()
        .map(|n| ((0..n.div_ceil(2)).map(|_| seed.word()).collect(), n))
        .collect();
    inputs.push((
        (0..1u32 << 15)
            .map(|word| (2 * word) | ((2 * word + 1) << 16))
            .collect(),
        1 << 16,
    ));
    let case = |(words, n): (Vec<u32>, usize)| {
        let halves = words
            .iter()
            .flat_map(|word| [word & 0xffff, word >> 16])
            .take(n);
        let expected = halves.map(|bits| {
            if half == Half::F16 {
                f16_value(bits)
            } else {
                f64::from(f32::from_bits(bits << 16))
            }
        });
        let expected = expected.map(Expected::exactly).collect();
        Case::new(
            format!("{n}"),
            vec![Data::U32(words)],
            vec![Output::Near(expected)],
            move |plan, x, y| plan.cast_from_half(half, x[0], y[0]),
        )
    };
    inputs.into_iter().map(case).collect()
}

fn transpose_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes = vec![
        [0, 3, 4],
        [1, 0, 4],
        [1, 1, 1],
        [1, 1, 1000],
        [1, 1000, 1],
        [1, 32, 32],
        [3, 33, 31],
        [2, 16, 48],
        [1, 700, 513],
        [70, 5, 7],
    ];
    shapes.push([seed.size(1, 5), seed.size(1, 100), seed.size(1, 300)]);
    let case = |shape: [usize; 3]| {
        let [batch, rows, cols] = shape;
        let x: Vec<u32> = (0..batch * rows * cols).map(|_| seed.word()).collect();
        let expected = (0..x.len())
            .map(|i| x[i / (rows * cols) * rows * cols + i % rows * cols + i / rows % cols])
            .collect();
        Case::new(
            format!("{shape:?}"),
            vec![Data::U32(x)],
            vec![Output::Exact(Data::U32(expected))],
            move |plan, x, y| plan.transpose(x[0], y[0], shape),
        )
    };
    shapes.into_iter().map(case).collect()
}

/// Rows and columns of the table, and number of indices.
fn table_shapes(seed: &mut Seed) -> Vec<[usize; 3]> {
    vec![
        [0, 4, 0],
        [5, 4, 0],
        [0, 4, 3],
        [1, 1, 1],
        [7, 1, 1000],
        [100, 64, 33],
        [3, 5, 2000],
        [50_000, 1, 300_001],
        [1000, 257, 700],
        [seed.size(1, 500), seed.size(1, 300), seed.size(1, 500)],
    ]
}

/// One index in eleven is beyond the table, some of them far beyond.
fn indices(seed: &mut Seed, [rows, _, count]: [usize; 3]) -> (Vec<u32>, u32) {
    let mut index = || {
        let word = seed.word();
        if rows == 0 || word.is_multiple_of(11) {
            rows as u32 + (word >> (word % 32)) / 2
        } else {
            word % rows as u32
        }
    };
    let indices: Vec<u32> = (0..count).map(|_| index()).collect();
    let faults = indices
        .iter()
        .filter(|&&index| index as usize >= rows)
        .count() as u32;
    (indices, faults)
}

fn gather(seed: &mut Seed, shape: [usize; 3]) -> Case {
    let [rows, cols, _] = shape;
    let table: Vec<u32> = (0..rows * cols).map(|_| seed.word()).collect();
    let (indices, faults) = indices(seed, shape);
    let row = |&index: &u32| {
        table
            .get(index as usize * cols..(index as usize + 1) * cols)
            .map_or(vec![0; cols], <[u32]>::to_vec)
    };
    let expected = indices.iter().flat_map(row).collect();
    let outputs = vec![
        Output::Exact(Data::U32(expected)),
        Output::Exact(Data::U32(vec![faults])),
    ];
    Case::new(
        format!("{shape:?}"),
        vec![Data::U32(table), Data::U32(indices)],
        outputs,
        move |plan, x, y| plan.gather(x[0], x[1], y[0], y[1], cols),
    )
}

fn scatter_add(seed: &mut Seed, shape: [usize; 3]) -> Case {
    let [rows, cols, count] = shape;
    let before: Vec<u32> = (0..rows * cols).map(|_| seed.word()).collect();
    let x: Vec<u32> = (0..count * cols).map(|_| seed.word()).collect();
    let (indices, faults) = indices(seed, shape);
    let mut expected = before.clone();
    for (x, &index) in x
        .chunks(cols)
        .zip(&indices)
        .filter(|(_, index)| (**index as usize) < rows)
    {
        let row = &mut expected[index as usize * cols..][..cols];
        row.iter_mut()
            .zip(x)
            .for_each(|(y, x)| *y = y.wrapping_add(*x));
    }
    let inputs = vec![Data::U32(before), Data::U32(x), Data::U32(indices)];
    let outputs = vec![
        Output::Exact(Data::U32(expected)),
        Output::Exact(Data::U32(vec![faults])),
    ];
    Case::new(format!("{shape:?}"), inputs, outputs, move |plan, x, y| {
        plan.copy(x[0], y[0])?;
        let integers = |view: tectum::View| view.reinterpret(DType::I32);
        plan.scatter_add(integers(x[1]), x[2], integers(y[0]), y[1], cols)
    })
}

fn segment_sum(seed: &mut Seed, shape: [usize; 3]) -> Case {
    let [rows, cols, count] = shape;
    let x = seed.floats(count * cols, -2.0, 2.0);
    let (segments, _) = indices(seed, shape);
    // Value, sum of magnitudes and number of terms of each element.
    let mut sums = vec![(0.0f64, 0.0f64, 0.0f64); rows * cols];
    for (x, &row) in x
        .chunks(cols)
        .zip(&segments)
        .filter(|(_, row)| (**row as usize) < rows)
    {
        for (sum, &x) in sums[row as usize * cols..][..cols].iter_mut().zip(x) {
            *sum = (
                sum.0 + f64::from(x),
                sum.1 + f64::from(x).abs(),
                sum.2 + 1.0,
            );
        }
    }
    let expected = sums
        .into_iter()
        .map(|(value, size, terms)| Expected {
            value,
            bound: terms * size / 16_777_216.0,
        })
        .collect();
    let inputs = vec![Data::F32(x), Data::U32(segments)];
    Case::new(
        format!("{shape:?}"),
        inputs,
        vec![Output::Near(expected)],
        move |plan, x, y| plan.segment_sum(x[0], x[1], y[0], cols),
    )
}

fn one_hot(seed: &mut Seed, cols: usize, count: usize) -> Case {
    // No more than four million elements.
    let count = count.min(4_000_000 / cols.max(1));
    let (indices, _) = indices(seed, [cols, 1, count]);
    let expected = indices
        .iter()
        .flat_map(|&index| (0..cols).map(move |col| f32::from(u8::from(col == index as usize))))
        .collect();
    let outputs = vec![Output::Exact(Data::F32(expected))];
    Case::new(
        format!("{count}×{cols}"),
        vec![Data::U32(indices)],
        outputs,
        move |plan, x, y| plan.one_hot(x[0], y[0], cols),
    )
}
