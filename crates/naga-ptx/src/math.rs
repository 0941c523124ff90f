//! Built-in functions of numbers and vectors, by the formulas of the WGSL specification.

mod bits;
mod packing;
mod transcendental;

use naga::{Expression, Handle, MathFunction, TypeInner};

use crate::arithmetic::Comparison;
use crate::error::Result;
use crate::expression::at;
use crate::scalar::Scalar;
use crate::translator::Translator;
use crate::writer::{Operand, Writer};

impl Translator<'_> {
    pub fn math(
        &mut self,
        handle: Handle<Expression>,
        fun: MathFunction,
        first: Handle<Expression>,
        others: [Option<Handle<Expression>>; 3],
    ) -> Result<Vec<Operand>> {
        let scalar = self.scalar(first)?;
        let mut arguments = vec![self.value(first)?];
        for other in others.into_iter().flatten() {
            arguments.push(self.value(other)?);
        }
        if let Some(values) = self.whole_vectors(fun, first, scalar, &arguments) {
            return Ok(values);
        }
        if let Some(values) = self.writer.packing(fun, &arguments) {
            return Ok(values);
        }
        let count = arguments.iter().map(Vec::len).max().unwrap_or(1);
        let mut columns = Vec::with_capacity(count);
        for component in 0..count {
            let x: Vec<Operand> = arguments
                .iter()
                .map(|argument| at(argument, component))
                .collect();
            let Some(results) = self.writer.component(fun, scalar, &x) else {
                return Err(self.refuse(
                    format!("built-in function {fun:?} of {}", scalar.suffix()),
                    handle,
                ));
            };
            columns.push(results);
        }
        // modf and frexp give a struct: all fractions, then all whole parts or exponents.
        let results = columns[0].len();
        Ok((0..results)
            .flat_map(|result| columns.iter().map(move |column| column[result]))
            .collect())
    }

    /// Functions of whole vectors or matrices.
    fn whole_vectors(
        &mut self,
        fun: MathFunction,
        first: Handle<Expression>,
        scalar: Scalar,
        x: &[Vec<Operand>],
    ) -> Option<Vec<Operand>> {
        let inner = self.inner(first);
        let w = &mut self.writer;
        Some(match (fun, inner) {
            (MathFunction::Dot, _) => vec![w.dot(scalar, &x[0], &x[1])],
            (MathFunction::Length, _) => vec![w.length(scalar, &x[0])],
            (MathFunction::Distance, _) => {
                let difference: Vec<Operand> = x[0]
                    .iter()
                    .zip(&x[1])
                    .map(|(&a, &b)| w.sub(scalar, a, b))
                    .collect();
                vec![w.length(scalar, &difference)]
            }
            (MathFunction::Normalize, _) => {
                let length = w.length(scalar, &x[0]);
                x[0].iter()
                    .map(|&value| w.div(scalar, value, length))
                    .collect()
            }
            (MathFunction::Cross, _) => {
                let (a, b) = (&x[0], &x[1]);
                [(1, 2), (2, 0), (0, 1)]
                    .iter()
                    .map(|&(i, j)| w.cross_term(scalar, [a[i], b[j], a[j], b[i]]))
                    .collect()
            }
            (MathFunction::FaceForward, _) => w.face_forward(scalar, &x[0], &x[1], &x[2]),
            (MathFunction::Reflect, _) => w.reflect(scalar, &x[0], &x[1]),
            (MathFunction::Refract, _) => w.refract(scalar, &x[0], &x[1], x[2][0]),
            (MathFunction::Outer, _) => x[1]
                .iter()
                .flat_map(|&b| x[0].iter().map(move |&a| (a, b)))
                .map(|(a, b)| w.mul(scalar, a, b))
                .collect(),
            (MathFunction::Transpose, TypeInner::Matrix { rows, .. }) => {
                let rows = rows as usize;
                (0..rows)
                    .flat_map(|row| x[0][row..].iter().step_by(rows).copied())
                    .collect()
            }
            (MathFunction::Determinant, TypeInner::Matrix { rows, .. }) => {
                vec![w.determinant(scalar, &x[0], rows as usize)]
            }
            (MathFunction::Inverse, TypeInner::Matrix { rows, .. }) => {
                w.inverse(scalar, &x[0], rows as usize)
            }
            _ => return None,
        })
    }
}

impl Writer {
    /// One component of a componentwise function; none if the function does not support the type.
    fn component(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        x: &[Operand],
    ) -> Option<Vec<Operand>> {
        if let Some(value) = self.bit_function(fun, scalar, x) {
            return Some(vec![value]);
        }
        if let Some(value) = self.common(fun, scalar, x) {
            return Some(vec![value]);
        }
        if !scalar.is_float() {
            return None;
        }
        match fun {
            MathFunction::Modf => return Some(self.modf(scalar, x[0])),
            MathFunction::Frexp => return Some(self.frexp(scalar, x[0])),
            _ => {}
        }
        if let Some(value) = self.float_function(fun, scalar, x) {
            return Some(vec![value]);
        }
        if (fun, scalar) == (MathFunction::Ldexp, Scalar::F16) {
            return Some(vec![self.through_f32(&x[..1], |w, wide| {
                w.ldexp(Scalar::F32, wide[0], x[1])
            })]);
        }
        if scalar == Scalar::F16 {
            let mut known = true;
            let value = self.through_f32(x, |w, wide| {
                w.transcendental(fun, Scalar::F32, wide).unwrap_or_else(|| {
                    known = false;
                    wide[0]
                })
            });
            return known.then(|| vec![value]);
        }
        self.transcendental(fun, scalar, x).map(|value| vec![value])
    }

    /// Functions of integers and floats.
    fn common(&mut self, fun: MathFunction, scalar: Scalar, x: &[Operand]) -> Option<Operand> {
        Some(match fun {
            MathFunction::Abs if !scalar.is_float() && !scalar.is_signed() => x[0],
            MathFunction::Abs => self.abs(scalar, x[0]),
            MathFunction::Min => self.min(scalar, x[0], x[1]),
            MathFunction::Max => self.max(scalar, x[0], x[1]),
            MathFunction::Clamp => {
                let above = self.max(scalar, x[0], x[1]);
                self.min(scalar, above, x[2])
            }
            MathFunction::Sign => {
                let (zero, one, minus_one) = self.signs(scalar);
                let below = self.compare(Comparison::Lt, scalar, x[0], zero);
                let above = self.compare(Comparison::Gt, scalar, x[0], zero);
                let other = self.select(scalar, below, minus_one, zero);
                self.select(scalar, above, one, other)
            }
            _ => return None,
        })
    }

    fn signs(&mut self, scalar: Scalar) -> (Operand, Operand, Operand) {
        if scalar.is_float() {
            return (
                crate::cast::zero(scalar),
                self.constant(scalar, 1.0),
                self.constant(scalar, -1.0),
            );
        }
        (
            crate::cast::zero(scalar),
            Operand::integer(scalar, 1),
            Operand::integer(scalar, -1),
        )
    }

    /// A float constant; of f16 in a register.
    pub fn constant(&mut self, scalar: Scalar, value: f64) -> Operand {
        match scalar {
            Scalar::F16 => self.op(
                "cvt.rn.f16.f32",
                Scalar::F16,
                &[Operand::float(Scalar::F32, value)],
            ),
            _ => Operand::float(scalar, value),
        }
    }

    /// Functions of floats that are rounded at every step as WGSL writes them.
    fn float_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        x: &[Operand],
    ) -> Option<Operand> {
        Some(match fun {
            MathFunction::Saturate => {
                let above = self.max(scalar, x[0], crate::cast::zero(scalar));
                let one = self.constant(scalar, 1.0);
                self.min(scalar, above, one)
            }
            MathFunction::Floor => self.round(scalar, "rmi", x[0]),
            MathFunction::Ceil => self.round(scalar, "rpi", x[0]),
            MathFunction::Trunc => self.round(scalar, "rzi", x[0]),
            MathFunction::Round => self.round(scalar, "rni", x[0]),
            MathFunction::Fract => {
                let floor = self.round(scalar, "rmi", x[0]);
                self.sub(scalar, x[0], floor)
            }
            MathFunction::Fma => self.fma(scalar, x[0], x[1], x[2]),
            MathFunction::Sqrt => self.sqrt(scalar, x[0]),
            MathFunction::Radians => self.scaled(scalar, x[0], std::f64::consts::PI / 180.0),
            MathFunction::Degrees => self.scaled(scalar, x[0], 180.0 / std::f64::consts::PI),
            MathFunction::Mix => self.mix(scalar, x),
            MathFunction::Step => {
                let reached = self.compare(Comparison::Le, scalar, x[0], x[1]);
                let one = self.constant(scalar, 1.0);
                self.select(scalar, reached, one, crate::cast::zero(scalar))
            }
            MathFunction::SmoothStep => self.smooth_step(scalar, x),
            MathFunction::QuantizeToF16 if scalar == Scalar::F32 => {
                let half = self.op("cvt.rn.f16.f32", Scalar::F16, &[x[0]]);
                self.op("cvt.f32.f16", Scalar::F32, &[half])
            }
            _ => return None,
        })
    }

    fn scaled(&mut self, scalar: Scalar, x: Operand, factor: f64) -> Operand {
        let factor = self.constant(scalar, factor);
        self.mul(scalar, x, factor)
    }

    /// x · (1 − t) + y · t
    fn mix(&mut self, scalar: Scalar, x: &[Operand]) -> Operand {
        let one = self.constant(scalar, 1.0);
        let rest = self.sub(scalar, one, x[2]);
        let (a, b) = (self.mul(scalar, x[0], rest), self.mul(scalar, x[1], x[2]));
        self.add(scalar, a, b)
    }

    /// t² · (3 − 2t) with t = clamp((x − low) / (high − low), 0, 1)
    fn smooth_step(&mut self, scalar: Scalar, x: &[Operand]) -> Operand {
        let (part, whole) = (self.sub(scalar, x[2], x[0]), self.sub(scalar, x[1], x[0]));
        let ratio = self.div(scalar, part, whole);
        let above = self.max(scalar, ratio, crate::cast::zero(scalar));
        let one = self.constant(scalar, 1.0);
        let t = self.min(scalar, above, one);
        let square = self.mul(scalar, t, t);
        let (two, three) = (self.constant(scalar, 2.0), self.constant(scalar, 3.0));
        let double = self.mul(scalar, two, t);
        let rest = self.sub(scalar, three, double);
        self.mul(scalar, square, rest)
    }

    fn length(&mut self, scalar: Scalar, x: &[Operand]) -> Operand {
        if let [one] = x {
            return self.abs(scalar, *one);
        }
        let square = self.dot(scalar, x, x);
        self.sqrt(scalar, square)
    }

    /// e1 where dot(e2, e3) < 0, else −e1.
    fn face_forward(
        &mut self,
        scalar: Scalar,
        e1: &[Operand],
        e2: &[Operand],
        e3: &[Operand],
    ) -> Vec<Operand> {
        let dot = self.dot(scalar, e2, e3);
        let keep = self.compare(Comparison::Lt, scalar, dot, crate::cast::zero(scalar));
        e1.iter()
            .map(|&value| {
                let turned = self.neg(scalar, value);
                self.select(scalar, keep, value, turned)
            })
            .collect()
    }

    /// e1 − 2 · dot(e2, e1) · e2
    fn reflect(&mut self, scalar: Scalar, e1: &[Operand], e2: &[Operand]) -> Vec<Operand> {
        let dot = self.dot(scalar, e2, e1);
        let two = self.constant(scalar, 2.0);
        let twice = self.mul(scalar, two, dot);
        e1.iter()
            .zip(e2)
            .map(|(&a, &b)| {
                let part = self.mul(scalar, twice, b);
                self.sub(scalar, a, part)
            })
            .collect()
    }

    /// The refraction of e1 at normal e2; 0 where k = 1 − r² · (1 − dot²) is negative.
    fn refract(
        &mut self,
        scalar: Scalar,
        e1: &[Operand],
        e2: &[Operand],
        ratio: Operand,
    ) -> Vec<Operand> {
        let one = self.constant(scalar, 1.0);
        let dot = self.dot(scalar, e2, e1);
        let dot_square = self.mul(scalar, dot, dot);
        let sine_square = self.sub(scalar, one, dot_square);
        let ratio_square = self.mul(scalar, ratio, ratio);
        let bent = self.mul(scalar, ratio_square, sine_square);
        let k = self.sub(scalar, one, bent);
        let total = self.compare(Comparison::Lt, scalar, k, crate::cast::zero(scalar));
        let root = self.sqrt(scalar, k);
        let along = self.mul(scalar, ratio, dot);
        let factor = self.add(scalar, along, root);
        e1.iter()
            .zip(e2)
            .map(|(&a, &b)| {
                let (through, normal) = (self.mul(scalar, ratio, a), self.mul(scalar, factor, b));
                let value = self.sub(scalar, through, normal);
                self.select(scalar, total, crate::cast::zero(scalar), value)
            })
            .collect()
    }

    /// Fraction and whole part, both with the sign of x.
    fn modf(&mut self, scalar: Scalar, x: Operand) -> Vec<Operand> {
        let whole = self.round(scalar, "rzi", x);
        vec![self.sub(scalar, x, whole), whole]
    }

    /// Fraction in [0.5, 1) and exponent; zero, infinities and NaN come back with exponent 0.
    fn frexp(&mut self, scalar: Scalar, x: Operand) -> Vec<Operand> {
        match scalar {
            Scalar::F16 => {
                let wide = self.convert(Scalar::F16, Scalar::F32, x);
                let parts = self.frexp(Scalar::F32, wide);
                // naga's type of this exponent is i16.
                vec![
                    self.convert(Scalar::F32, Scalar::F16, parts[0]),
                    self.convert(Scalar::I32, Scalar::I16, parts[1]),
                ]
            }
            Scalar::F32 => self.split_exponent(scalar, x, 23, 8),
            _ => self.split_exponent(scalar, x, 52, 11),
        }
    }

    fn split_exponent(
        &mut self,
        scalar: Scalar,
        x: Operand,
        mantissa: u32,
        width: u32,
    ) -> Vec<Operand> {
        let bits = scalar.unsigned();
        let bias = (1_i64 << (width - 1)) - 2;
        let mask = ((1_u64 << width) - 1) << mantissa;
        // A subnormal is scaled into the normal range first.
        let magnitude = self.abs(scalar, x);
        let least = Operand::Immediate(scalar, 1 << mantissa);
        let subnormal = self.compare(Comparison::Lt, scalar, magnitude, least);
        let scale = Operand::float(scalar, 2_f64.powi(mantissa as i32 + 1));
        let scaled = self.mul(scalar, x, scale);
        let normal = self.select(scalar, subnormal, scaled, x);
        let field = self.and(bits, normal, Operand::Immediate(bits, mask));
        let field = self.shift_right(bits, field, Operand::u32(mantissa));
        let field = if bits == Scalar::U64 {
            self.convert(Scalar::U64, Scalar::U32, field)
        } else {
            field
        };
        let offset = self.select(
            Scalar::I32,
            subnormal,
            Operand::i32(-(bias as i32) - mantissa as i32 - 1),
            Operand::i32(-(bias as i32)),
        );
        let exponent = self.add(Scalar::I32, field, offset);
        let rest = self.and(
            bits,
            normal,
            Operand::Immediate(
                bits,
                !mask
                    & if bits == Scalar::U64 {
                        u64::MAX
                    } else {
                        0xffff_ffff
                    },
            ),
        );
        let fraction = self.or(
            bits,
            rest,
            Operand::Immediate(bits, (bias as u64) << mantissa),
        );
        let is_zero = self.compare(Comparison::Eq, scalar, x, crate::cast::zero(scalar));
        let finite = self.compare(
            Comparison::Lt,
            scalar,
            magnitude,
            Operand::float(scalar, f64::INFINITY),
        );
        let infinite = self.not(Scalar::Bool, finite);
        let plain = self.or(Scalar::Bool, is_zero, infinite);
        vec![
            self.select(scalar, plain, x, fraction),
            self.select(Scalar::I32, plain, Operand::i32(0), exponent),
        ]
    }
}
