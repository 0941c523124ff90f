//! Inputs at the edges of the number types.

use half::f16;

use crate::case::to_f16;
use crate::lanes::Float;

pub const I32: &[i32] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -7,
    10,
    31,
    32,
    100,
    -100,
    255,
    65535,
    65536,
    -65537,
    0x5555_5555,
    -0x1234_5678,
    i32::MAX,
    i32::MIN,
    i32::MAX - 1,
    i32::MIN + 1,
];
pub const U32: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    10,
    31,
    32,
    33,
    255,
    65535,
    65536,
    0x1234_5678,
    0x5555_5555,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xdead_beef,
    0xffff_fffe,
    0xffff_ffff,
];
pub const I64: &[i64] = &[
    0,
    1,
    -1,
    2,
    -3,
    7,
    -7,
    1000,
    0xffff_ffff,
    0x1_0000_0000,
    -0x1_0000_0001,
    0x1234_5678_9abc_def0,
    -0x1234_5678_9abc_def0,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
];
pub const U64: &[u64] = &[
    0,
    1,
    2,
    3,
    7,
    10,
    1000,
    0xffff_ffff,
    0x1_0000_0000,
    0x1_0000_0001,
    0x1234_5678_9abc_def0,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xdead_beef_cafe_f00d,
    u64::MAX - 1,
    u64::MAX,
];

pub const F32: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    3.5,
    -2.5,
    0.1,
    -0.3,
    1.0 / 3.0,
    7.0,
    -123.456,
    65504.0,
    8388607.5,
    8388609.0,
    16777216.0,
    -16777215.0,
    1.0e10,
    -1.0e-10,
    3.0e38,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    2.0,
    0.99999994,
    1.0000001,
    1.0e-40,
    -1.0e-45,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];
pub const F64: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.5,
    0.1,
    -0.3,
    1.0 / 3.0,
    7.0,
    -123.456,
    16777217.0,
    4503599627370495.5,
    9007199254740993.0,
    -1.0e100,
    1.0e-100,
    1.7e308,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    0.9999999999999999,
    1.0000000000000002,
    4.9e-324,
    -1.0e-310,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// The edges of half precision.
pub fn f16() -> Vec<f16> {
    let plain = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.5,
        0.1,
        -0.3,
        1.0 / 3.0,
        7.0,
        -123.456,
        1023.5,
        1024.0,
        2047.0,
        2048.0,
        -2050.0,
        65504.0,
        -65504.0,
        6.103515625e-5,
        0.99951171875,
        1.0009765625,
        5.960464477539063e-8,
        -3.0e-5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    plain.into_iter().map(to_f16).collect()
}

/// The numbers, as rows of one operand.
pub fn rows<T: Float>(values: &[f64]) -> Vec<Vec<T>> {
    values.iter().map(|&value| vec![T::of(value)]).collect()
}

/// All pairs, as rows of two operands.
pub fn rows2<T: Float>(xs: &[f64], ys: &[f64]) -> Vec<Vec<T>> {
    xs.iter()
        .flat_map(|&x| ys.iter().map(move |&y| vec![T::of(x), T::of(y)]))
        .collect()
}

/// Evenly spaced numbers, including both ends.
pub fn span(from: f64, to: f64, count: usize) -> Vec<f64> {
    (0..count)
        .map(|i| from + (to - from) * i as f64 / (count - 1) as f64)
        .collect()
}
