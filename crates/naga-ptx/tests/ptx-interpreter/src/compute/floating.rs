//! Floating-point arithmetic whose results the manual specifies to the last bit.

use crate::float::{self, Number, Rounding};
use crate::scalar::{Class, Scalar};

/// The exactly rounded operations and those on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatOperation {
    Add,
    Subtract,
    Multiply,
    /// The product plus the third source, rounded once.
    Fused,
    Divide,
    Reciprocal,
    SquareRoot,
    Minimum {
        nan: bool,
    },
    Maximum {
        nan: bool,
    },
    Absolute,
    Negate,
    /// The second source with the sign of the first.
    CopySign,
}

/// How a floating-point instruction treats its operands and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatMode {
    pub scalar: Scalar,
    pub rounding: Rounding,
    pub ftz: bool,
    pub sat: bool,
}

impl FloatMode {
    pub fn plain(scalar: Scalar) -> FloatMode {
        FloatMode {
            scalar,
            rounding: Rounding::NearestEven,
            ftz: false,
            sat: false,
        }
    }

    pub(super) fn input(self, bits: u64) -> u64 {
        if self.ftz {
            float::flush(bits, self.scalar)
        } else {
            bits
        }
    }

    /// Flushes and clamps a result; a NaN clamps to zero.
    pub(super) fn output(self, bits: u64) -> u64 {
        let bits = self.input(bits);
        if !self.sat {
            return bits;
        }
        let one = float::from_f64(1.0, self.scalar);
        if float::is_nan(bits, self.scalar) || float::is_negative(bits, self.scalar) {
            0
        } else {
            bits.min(one)
        }
    }
}

impl FloatOperation {
    pub fn evaluate(self, mode: FloatMode, sources: [u64; 4]) -> u64 {
        if !mode.scalar.is_pair() {
            return self.evaluate_one(mode, sources);
        }
        let element = FloatMode {
            scalar: mode.scalar.element(),
            ..mode
        };
        let low = self.evaluate_one(element, sources.map(|source| source & 0xffff));
        let high = self.evaluate_one(element, sources.map(|source| source >> 16 & 0xffff));
        high << 16 | low
    }

    fn evaluate_one(self, mode: FloatMode, sources: [u64; 4]) -> u64 {
        let [a, b, c, _] = sources.map(|source| mode.input(source));
        let native = mode.rounding == Rounding::NearestEven && mode.scalar.class == Class::Float;
        let result = match mode.scalar.bits {
            32 if native => self.single([a, b, c].map(|bits| f32::from_bits(bits as u32))),
            64 if native => self.double([a, b, c].map(f64::from_bits)),
            _ => None,
        };
        let result = result
            .or_else(|| self.on_bits(mode.scalar, a, b))
            .unwrap_or_else(|| self.exact(mode, [a, b, c]));
        mode.output(result)
    }

    fn single(self, [a, b, c]: [f32; 3]) -> Option<u64> {
        let result = match self {
            FloatOperation::Add => a + b,
            FloatOperation::Subtract => a - b,
            FloatOperation::Multiply => a * b,
            FloatOperation::Fused => a.mul_add(b, c),
            FloatOperation::Divide => a / b,
            FloatOperation::Reciprocal => 1.0 / a,
            FloatOperation::SquareRoot => a.sqrt(),
            _ => return None,
        };
        Some(if result.is_nan() {
            float::canonical_nan(Scalar::F32)
        } else {
            u64::from(result.to_bits())
        })
    }

    fn double(self, [a, b, c]: [f64; 3]) -> Option<u64> {
        let result = match self {
            FloatOperation::Add => a + b,
            FloatOperation::Subtract => a - b,
            FloatOperation::Multiply => a * b,
            FloatOperation::Fused => a.mul_add(b, c),
            FloatOperation::Divide => a / b,
            FloatOperation::Reciprocal => 1.0 / a,
            FloatOperation::SquareRoot => a.sqrt(),
            _ => return None,
        };
        Some(if result.is_nan() {
            float::canonical_nan(Scalar::F64)
        } else {
            result.to_bits()
        })
    }

    fn on_bits(self, scalar: Scalar, a: u64, b: u64) -> Option<u64> {
        let sign = 1 << (scalar.bits - 1);
        Some(match self {
            FloatOperation::Minimum { nan } => extremum(scalar, nan, a, b, true),
            FloatOperation::Maximum { nan } => extremum(scalar, nan, a, b, false),
            FloatOperation::Absolute => a & !sign,
            FloatOperation::Negate => a ^ sign,
            FloatOperation::CopySign => a & sign | b & !sign,
            _ => return None,
        })
    }

    fn exact(self, mode: FloatMode, sources: [u64; 3]) -> u64 {
        let rounding = mode.rounding;
        let [a, b, c] = sources.map(|bits| float::decode(bits, mode.scalar));
        let number = match self {
            FloatOperation::Add => float::add(a, b, rounding),
            FloatOperation::Subtract => float::subtract(a, b, rounding),
            FloatOperation::Multiply => float::multiply(a, b),
            FloatOperation::Fused => float::add(float::multiply(a, b), c, rounding),
            FloatOperation::Divide => float::divide(a, b),
            FloatOperation::Reciprocal => float::divide(float::from_integer(1), a),
            FloatOperation::SquareRoot => float::square_root(a),
            _ => Number::Nan,
        };
        float::encode(number, mode.scalar, rounding)
    }
}

/// The minimum or maximum, where -0 is below +0 and a number wins over a NaN unless NaN is
/// requested.
fn extremum(scalar: Scalar, nan: bool, a: u64, b: u64, least: bool) -> u64 {
    let (a_nan, b_nan) = (float::is_nan(a, scalar), float::is_nan(b, scalar));
    match (a_nan, b_nan) {
        (true, true) => float::canonical_nan(scalar),
        (true, false) | (false, true) if nan => float::canonical_nan(scalar),
        (true, false) => b,
        (false, true) => a,
        (false, false) if (ordered(a, scalar) < ordered(b, scalar)) == least => a,
        (false, false) => b,
    }
}

/// An integer that orders as the float does, with -0 below +0.
fn ordered(bits: u64, scalar: Scalar) -> i128 {
    let magnitude = i128::from(float::magnitude(bits, scalar));
    if float::is_negative(bits, scalar) {
        -magnitude - 1
    } else {
        magnitude
    }
}
