//! Conversions between scalar types, with WGSL's saturating rules.

use crate::arithmetic::Comparison;
use crate::scalar::Scalar;
use crate::writer::{Operand, Writer};

impl Writer {
    /// Converts a value. Floats to integers truncate and saturate to the values that both types can
    /// represent; for NaN WGSL leaves the result open.
    pub fn convert(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        match (from, to) {
            _ if from == to => value,
            (Scalar::Bool, _) => self.truth(to, value),
            (_, Scalar::Bool) => self.compare(Comparison::Ne, from, value, zero(from)),
            _ if from.is_float() && to.is_float() => self.float_to_float(from, to, value),
            _ if from.is_float() => self.float_to_integer(from, to, value),
            _ if to.is_float() => self.op(
                format_args!("cvt.rn.{}.{}", to.suffix(), from.suffix()),
                to,
                &[value],
            ),
            _ if from.class() == to.class() => value.bitcast(to),
            _ => self.integer_to_integer(from, to, value),
        }
    }

    fn truth(&mut self, to: Scalar, value: Operand) -> Operand {
        let one = match to {
            Scalar::F16 => Operand::Immediate(Scalar::F16, 0x3c00),
            _ if to.is_float() => Operand::float(to, 1.0),
            _ => Operand::integer(to, 1),
        };
        self.select(to, value, one, zero(to))
    }

    fn float_to_float(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        let rounding = if to.bytes() < from.bytes() { ".rn" } else { "" };
        self.op(
            format_args!("cvt{rounding}.{}.{}", to.suffix(), from.suffix()),
            to,
            &[value],
        )
    }

    fn integer_to_integer(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        // Widening keeps the source's sign; narrowing keeps the low bits.
        let target = if from.is_signed() && to.bytes() > from.bytes() {
            to.signed()
        } else {
            to.unsigned()
        };
        let source = if from.is_signed() && to.bytes() > from.bytes() {
            from
        } else {
            from.unsigned()
        };
        self.op(
            format_args!("cvt.{}.{}", target.suffix(), source.suffix()),
            to,
            &[value.bitcast(source)],
        )
    }

    fn float_to_integer(&mut self, from: Scalar, to: Scalar, value: Operand) -> Operand {
        let converted = self.op(
            format_args!("cvt.rzi.{}.{}", to.suffix(), from.suffix()),
            to,
            &[value],
        );
        let (least, greatest) = representable(from, to);
        let at_most = match greatest {
            Some(greatest) => self.min(to, converted, Operand::integer(to, greatest)),
            None => converted,
        };
        match least {
            Some(least) => self.max(to, at_most, Operand::integer(to, least)),
            None => at_most,
        }
    }
}

/// The zero of a type.
pub(crate) fn zero(scalar: Scalar) -> Operand {
    Operand::Immediate(scalar, 0)
}

/// The bounds that `cvt`'s own saturation misses: the minimum and maximum integers that the float
/// type can also represent.
fn representable(from: Scalar, to: Scalar) -> (Option<i128>, Option<i128>) {
    match (from, to) {
        (Scalar::F16, Scalar::I16) => (None, None),
        (Scalar::F16, _) if to.is_signed() => (Some(-65504), Some(65504)),
        (Scalar::F16, _) => (None, Some(65504)),
        (Scalar::F32, Scalar::I32) => (None, Some((1 << 31) - (1 << 7))),
        (Scalar::F32, Scalar::U32) => (None, Some((1 << 32) - (1 << 8))),
        (Scalar::F32, Scalar::I64) => (None, Some((1 << 63) - (1 << 39))),
        (Scalar::F32, Scalar::U64) => (None, Some((1 << 64) - (1 << 40))),
        (Scalar::F64, Scalar::I64) => (None, Some((1 << 63) - (1 << 10))),
        (Scalar::F64, Scalar::U64) => (None, Some((1 << 64) - (1 << 11))),
        _ => (None, None),
    }
}
