//! Built-in functions of the bits of integers.

use naga::MathFunction;

use crate::arithmetic::Comparison;
use crate::scalar::{Class, Scalar};
use crate::writer::{Operand, Writer};

impl Writer {
    pub(super) fn bit_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        x: &[Operand],
    ) -> Option<Operand> {
        if scalar.is_float() || !matches!(scalar.class(), Class::Word | Class::Long) {
            return None;
        }
        Some(match fun {
            MathFunction::CountOneBits => self.count(scalar, "popc", x[0]),
            MathFunction::CountLeadingZeros => self.count(scalar, "clz", x[0]),
            MathFunction::CountTrailingZeros => {
                let reversed = self.reverse(scalar, x[0]);
                self.count(scalar, "clz", reversed)
            }
            MathFunction::ReverseBits => self.reverse(scalar, x[0]),
            MathFunction::FirstLeadingBit => self.found(scalar, "bfind", scalar, x[0]),
            MathFunction::FirstTrailingBit => {
                let reversed = self.reverse(scalar, x[0]);
                self.found(scalar, "bfind.shiftamt", scalar.unsigned(), reversed)
            }
            MathFunction::ExtractBits => self.extract_bits(scalar, x),
            MathFunction::InsertBits => self.insert_bits(scalar, x),
            MathFunction::Dot4I8Packed => {
                self.op("dp4a.s32.s32", Scalar::I32, &[x[0], x[1], Operand::i32(0)])
            }
            MathFunction::Dot4U8Packed => {
                self.op("dp4a.u32.u32", Scalar::U32, &[x[0], x[1], Operand::u32(0)])
            }
            _ => return None,
        })
    }

    fn count(&mut self, scalar: Scalar, name: &str, x: Operand) -> Operand {
        let count = self.op(
            format_args!("{name}.{}", scalar.bits()),
            Scalar::U32,
            &[x.bits()],
        );
        self.convert(Scalar::U32, scalar.unsigned(), count)
            .bitcast(scalar)
    }

    fn reverse(&mut self, scalar: Scalar, x: Operand) -> Operand {
        self.op(format_args!("brev.{}", scalar.bits()), scalar, &[x.bits()])
    }

    /// `bfind` gives all ones if no bit is set, as WGSL requires; so the result is sign-extended.
    fn found(&mut self, scalar: Scalar, name: &str, operand: Scalar, x: Operand) -> Operand {
        let bit = self.op(
            format_args!("{name}.{}", operand.suffix()),
            Scalar::U32,
            &[x.bitcast(operand)],
        );
        match scalar.class() {
            Class::Long => self.convert(Scalar::I32, Scalar::I64, bit).bitcast(scalar),
            _ => bit,
        }
    }

    /// Offset and count, clamped so that the field is inside the word.
    fn field(&mut self, scalar: Scalar, offset: Operand, count: Operand) -> (Operand, Operand) {
        let width = Operand::u32(8 * scalar.bytes());
        let offset = self.min(Scalar::U32, offset, width);
        let room = self.sub(Scalar::U32, width, offset);
        (offset, self.min(Scalar::U32, count, room))
    }

    fn extract_bits(&mut self, scalar: Scalar, x: &[Operand]) -> Operand {
        let (offset, count) = self.field(scalar, x[1], x[2]);
        self.op(
            format_args!("bfe.{}", scalar.suffix()),
            scalar,
            &[x[0], offset, count],
        )
    }

    fn insert_bits(&mut self, scalar: Scalar, x: &[Operand]) -> Operand {
        let (offset, count) = self.field(scalar, x[2], x[3]);
        self.op(
            format_args!("bfi.{}", scalar.bits()),
            scalar,
            &[x[1].bits(), x[0].bits(), offset, count],
        )
    }

    /// 2 to an integer power within the exponents of normal numbers.
    pub(super) fn power_of_two(&mut self, scalar: Scalar, exponent: Operand) -> Operand {
        match scalar {
            Scalar::F64 => {
                let biased = self.add(Scalar::I32, exponent, Operand::i32(1023));
                let wide = self.convert(Scalar::I32, Scalar::I64, biased);
                self.shift_left(Scalar::U64, wide, Operand::u32(52))
            }
            _ => {
                let biased = self.add(Scalar::I32, exponent, Operand::i32(127));
                self.shift_left(Scalar::U32, biased, Operand::u32(23))
            }
        }
    }

    /// x · 2ᵉ, in steps that stay inside the exponents; exact except for subnormal results.
    pub(super) fn ldexp(&mut self, scalar: Scalar, x: Operand, exponent: Operand) -> Operand {
        let (most, least) = if scalar == Scalar::F64 {
            (1023, -1022)
        } else {
            (127, -126)
        };
        let mut value = x;
        let mut left = exponent;
        for _ in 0..2 {
            let step = self.min(Scalar::I32, left, Operand::i32(most));
            let step = self.max(Scalar::I32, step, Operand::i32(least));
            let factor = self.power_of_two(scalar, step);
            value = self.mul(scalar, value, factor);
            left = self.sub(Scalar::I32, left, step);
        }
        let step = self.min(Scalar::I32, left, Operand::i32(most));
        let step = self.max(Scalar::I32, step, Operand::i32(least));
        let factor = self.power_of_two(scalar, step);
        self.mul(scalar, value, factor)
    }

    /// The sign of `sign` on the magnitude of `x`.
    pub(super) fn copy_sign(&mut self, scalar: Scalar, sign: Operand, x: Operand) -> Operand {
        self.op(
            format_args!("copysign.{}", scalar.suffix()),
            scalar,
            &[sign, x],
        )
    }

    /// `x < 0` by the sign bit.
    pub(super) fn is_negative(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let signed = if scalar == Scalar::F64 {
            Scalar::I64
        } else {
            Scalar::I32
        };
        self.compare(
            Comparison::Lt,
            signed,
            x.bitcast(signed),
            Operand::integer(signed, 0),
        )
    }
}
