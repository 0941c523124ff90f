//! Built-in functions that pack small numbers into words and unpack them.

use naga::MathFunction;

use crate::scalar::Scalar;
use crate::writer::{Operand, Writer};

impl Writer {
    pub(super) fn packing(
        &mut self,
        fun: MathFunction,
        x: &[Vec<Operand>],
    ) -> Option<Vec<Operand>> {
        let word = x[0][0];
        Some(match fun {
            MathFunction::Pack4x8snorm => vec![self.pack_normal(&x[0], 8, -1.0, 127.0)],
            MathFunction::Pack4x8unorm => vec![self.pack_normal(&x[0], 8, 0.0, 255.0)],
            MathFunction::Pack2x16snorm => vec![self.pack_normal(&x[0], 16, -1.0, 32767.0)],
            MathFunction::Pack2x16unorm => vec![self.pack_normal(&x[0], 16, 0.0, 65535.0)],
            MathFunction::Pack2x16float => vec![self.pack_halves(&x[0])],
            MathFunction::Pack4xI8 | MathFunction::Pack4xU8 => vec![self.pack_fields(&x[0], 8)],
            MathFunction::Pack4xI8Clamp => {
                let bytes = self.clamped(Scalar::I32, &x[0], Operand::i32(-128), Operand::i32(127));
                vec![self.pack_fields(&bytes, 8)]
            }
            MathFunction::Pack4xU8Clamp => {
                let bytes = self.clamped(Scalar::U32, &x[0], Operand::u32(0), Operand::u32(255));
                vec![self.pack_fields(&bytes, 8)]
            }
            MathFunction::Unpack4x8snorm => self.unpack_normal(word, Scalar::I32, 8, 127.0),
            MathFunction::Unpack4x8unorm => self.unpack_normal(word, Scalar::U32, 8, 255.0),
            MathFunction::Unpack2x16snorm => self.unpack_normal(word, Scalar::I32, 16, 32767.0),
            MathFunction::Unpack2x16unorm => self.unpack_normal(word, Scalar::U32, 16, 65535.0),
            MathFunction::Unpack2x16float => self.unpack_halves(word),
            MathFunction::Unpack4xI8 => self.unpack_fields(word, Scalar::I32, 8),
            MathFunction::Unpack4xU8 => self.unpack_fields(word, Scalar::U32, 8),
            _ => return None,
        })
    }

    fn clamped(
        &mut self,
        scalar: Scalar,
        x: &[Operand],
        low: Operand,
        high: Operand,
    ) -> Vec<Operand> {
        x.iter()
            .map(|&value| {
                let above = self.max(scalar, value, low);
                self.min(scalar, above, high)
            })
            .collect()
    }

    /// The low bits of each value, the first in the lowest place.
    fn pack_fields(&mut self, x: &[Operand], bits: u32) -> Operand {
        let first = self.and(Scalar::U32, x[0], Operand::u32((1 << bits) - 1));
        x.iter()
            .enumerate()
            .skip(1)
            .fold(first, |word, (i, &value)| {
                let at = Operand::u32(bits * i as u32);
                self.op(
                    "bfi.b32",
                    Scalar::U32,
                    &[value.bits(), word, at, Operand::u32(bits)],
                )
            })
    }

    /// floor(0.5 + scale · clamp(x, low, 1))
    fn pack_normal(&mut self, x: &[Operand], bits: u32, low: f64, scale: f64) -> Operand {
        let f32 = Scalar::F32;
        let fields: Vec<Operand> = x
            .iter()
            .map(|&value| {
                let above = self.max(f32, value, Operand::float(f32, low));
                let inside = self.min(f32, above, Operand::float(f32, 1.0));
                let scaled = self.mul(f32, inside, Operand::float(f32, scale));
                let raised = self.add(f32, scaled, Operand::float(f32, 0.5));
                self.op("cvt.rmi.s32.f32", Scalar::I32, &[raised])
            })
            .collect();
        self.pack_fields(&fields, bits)
    }

    fn pack_halves(&mut self, x: &[Operand]) -> Operand {
        let halves: Vec<Operand> = x
            .iter()
            .map(|&value| self.op("cvt.rn.f16.f32", Scalar::F16, &[value]))
            .collect();
        let to = self.register(Scalar::U32);
        self.line(format_args!(
            "mov.b32 {to}, {{{}, {}}}",
            halves[0], halves[1]
        ));
        to
    }

    fn unpack_halves(&mut self, word: Operand) -> Vec<Operand> {
        let word = self.in_register(word);
        let (low, high) = (self.register(Scalar::F16), self.register(Scalar::F16));
        self.line(format_args!("mov.b32 {{{low}, {high}}}, {word}"));
        [low, high]
            .into_iter()
            .map(|half| self.op("cvt.f32.f16", Scalar::F32, &[half]))
            .collect()
    }

    fn unpack_fields(&mut self, word: Operand, scalar: Scalar, bits: u32) -> Vec<Operand> {
        let kind = format!("bfe.{}", scalar.suffix());
        (0..32 / bits)
            .map(|i| {
                self.op(
                    &kind,
                    scalar,
                    &[
                        word.bitcast(scalar),
                        Operand::u32(i * bits),
                        Operand::u32(bits),
                    ],
                )
            })
            .collect()
    }

    /// max(field / scale, −1)
    fn unpack_normal(
        &mut self,
        word: Operand,
        scalar: Scalar,
        bits: u32,
        scale: f64,
    ) -> Vec<Operand> {
        let fields = self.unpack_fields(word, scalar, bits);
        fields
            .into_iter()
            .map(|field| {
                let value = self.convert(scalar, Scalar::F32, field);
                let value = self.div(Scalar::F32, value, Operand::float(Scalar::F32, scale));
                if scalar.is_signed() {
                    self.max(Scalar::F32, value, Operand::float(Scalar::F32, -1.0))
                } else {
                    value
                }
            })
            .collect()
    }
}
