//! `cvt`.

use super::integer::{saturate, value};
use crate::float::{self, Number, Rounding};
use crate::scalar::{Scalar, mask, sign_extend};

/// One conversion between two types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub from: Scalar,
    pub to: Scalar,
    /// The rounding of the result to the destination's precision.
    pub rounding: Rounding,
    pub integral: IntegralRounding,
    pub ftz: bool,
    pub sat: bool,
    /// The width of the destination register.
    pub register_bits: u32,
}

/// Whether and how a conversion rounds to an integral value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegralRounding {
    None,
    Towards(Rounding),
}

impl Conversion {
    pub fn evaluate(self, source: u64) -> u64 {
        let source = source & self.from.mask();
        let result = match (self.from.is_float(), self.to.is_float()) {
            (false, false) => self.integer_to_integer(source),
            (false, true) => self.integer_to_float(source),
            (true, false) => self.float_to_integer(source),
            (true, true) => self.float_to_float(source),
        };
        self.widen(result & self.to.mask())
    }

    fn widen(self, result: u64) -> u64 {
        if self.to.is_signed() {
            sign_extend(result, self.to.bits) as u64 & mask(self.register_bits)
        } else {
            result
        }
    }

    fn flush_single(self, bits: u64, scalar: Scalar) -> u64 {
        if self.ftz && scalar == Scalar::F32 {
            float::flush(bits, scalar)
        } else {
            bits
        }
    }

    fn integer_to_integer(self, source: u64) -> u64 {
        let exact = value(source, self.from);
        if self.sat {
            saturate(exact, self.to) as u64
        } else {
            exact as u64
        }
    }

    fn integer_to_float(self, source: u64) -> u64 {
        let number = float::from_integer(value(source, self.from));
        self.clamp(float::encode(number, self.to, self.rounding))
    }

    fn float_to_integer(self, source: u64) -> u64 {
        let source = self.flush_single(source, self.from);
        let IntegralRounding::Towards(rounding) = self.integral else {
            return 0;
        };
        match float::decode(source, self.from) {
            Number::Nan => self.integer_of_nan(),
            Number::Infinite { negative } => {
                let far = if negative { i128::MIN } else { i128::MAX };
                saturate(far, self.to) as u64
            }
            Number::Finite(finite) => saturate(float::to_integer(finite, rounding), self.to) as u64,
        }
    }

    /// Zero, except where either side is 64 bits wide.
    fn integer_of_nan(self) -> u64 {
        if self.from.bits == 64 || self.to.bits == 64 {
            1 << (self.to.bits - 1)
        } else {
            0
        }
    }

    fn float_to_float(self, source: u64) -> u64 {
        let source = self.flush_single(source, self.from);
        if self.from == self.to && self.integral == IntegralRounding::None {
            return self.clamp(source);
        }
        let mut number = float::decode(source, self.from);
        if let IntegralRounding::Towards(rounding) = self.integral {
            number = float::to_integral(number, rounding);
        }
        let result = float::encode(number, self.to, self.rounding);
        self.clamp(self.flush_single(result, self.to))
    }

    fn clamp(self, bits: u64) -> u64 {
        let mode = super::FloatMode {
            sat: self.sat,
            ..super::FloatMode::plain(self.to)
        };
        mode.output(bits)
    }
}
