//! Exponentials, logarithms and trigonometry.
//!
//! f32 takes the hardware's `ex2`; its `lg2`, `sin` and `cos` may err by more than WGSL allows. The
//! rest, and all of f64, is range reduction, then the Taylor or the inverse hyperbolic series: f64
//! to about 10⁻¹⁵ relative.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, LN_2, LOG2_E, PI, SQRT_2};

use naga::MathFunction;

use crate::arithmetic::Comparison;
use crate::cast::zero;
use crate::scalar::Scalar;
use crate::writer::{Operand, Writer};

/// π/2 in three parts of f32 and of f64: quotients up to about 10⁵ and 10⁸ are reduced exactly
/// enough.
const HALF_PI_F32: [f64; 3] = [
    1.570_796_370_506_286_6,
    -4.371_138_828_673_793e-8,
    -1.715_124_510_005_881_9e-15,
];
const HALF_PI_F64: [f64; 3] = [
    FRAC_PI_2,
    6.123_233_995_736_766e-17,
    -1.497_384_904_859_169_8e-33,
];
/// ln 2 in two parts of f32 and of f64; the products of the first with any exponent are exact.
const LN_2_F32: [f64; 2] = [0.693_359_375, -2.121_944_400_546_905_8e-4];
const LN_2_F64: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
/// Beyond this, asinh and acosh are ln 2x to the last bit.
const LARGE: f64 = 268_435_456.0;

impl Writer {
    /// A function of f32 or f64; none for functions that are not transcendental.
    pub(super) fn transcendental(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        x: &[Operand],
    ) -> Option<Operand> {
        Some(match fun {
            MathFunction::Sin => self.sine(scalar, x[0], 0),
            MathFunction::Cos => self.sine(scalar, x[0], 1),
            MathFunction::Tan => {
                let (sine, cosine) = (self.sine(scalar, x[0], 0), self.sine(scalar, x[0], 1));
                self.div(scalar, sine, cosine)
            }
            MathFunction::Asin => self.asin(scalar, x[0]),
            MathFunction::Acos => self.acos(scalar, x[0]),
            MathFunction::Atan => self.atan(scalar, x[0]),
            MathFunction::Atan2 => self.atan2(scalar, x[0], x[1]),
            MathFunction::Sinh => self.sinh(scalar, x[0]),
            MathFunction::Cosh => self.cosh(scalar, x[0]),
            MathFunction::Tanh => self.tanh(scalar, x[0]),
            MathFunction::Asinh => self.asinh(scalar, x[0]),
            MathFunction::Acosh => self.acosh(scalar, x[0]),
            MathFunction::Atanh => self.atanh(scalar, x[0]),
            MathFunction::Exp => self.exp(scalar, x[0]),
            MathFunction::Exp2 => self.exp2(scalar, x[0]),
            MathFunction::Log => self.log(scalar, x[0]),
            MathFunction::Log2 => self.log2(scalar, x[0]),
            MathFunction::Pow => self.pow(scalar, x[0], x[1]),
            MathFunction::InverseSqrt => self.inverse_sqrt(scalar, x[0]),
            MathFunction::Ldexp => self.ldexp(scalar, x[0], x[1]),
            _ => return None,
        })
    }

    /// c₀ + c₁x + c₂x² …
    fn polynomial(&mut self, scalar: Scalar, x: Operand, coefficients: &[f64]) -> Operand {
        let (last, rest) = coefficients
            .split_last()
            .expect("invariant: a polynomial has coefficients");
        let highest = Operand::float(scalar, *last);
        rest.iter().rev().fold(highest, |sum, &c| {
            self.fma(scalar, sum, x, Operand::float(scalar, c))
        })
    }

    /// 1 / √x, both correctly rounded: the hardware's `rsqrt` may err by more than the two ulp that
    /// WGSL allows.
    fn inverse_sqrt(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let root = self.sqrt(scalar, x);
        self.div(scalar, Operand::float(scalar, 1.0), root)
    }

    fn exp(&mut self, scalar: Scalar, x: Operand) -> Operand {
        if scalar == Scalar::F32 {
            let power = self.mul(scalar, x, Operand::float(scalar, LOG2_E));
            return self.op("ex2.approx.f32", scalar, &[power]);
        }
        let inside = self.bounded(scalar, x, -746.0, 710.0);
        let scaled = self.mul(scalar, inside, Operand::float(scalar, LOG2_E));
        let k = self.round(scalar, "rni", scaled);
        let minus = self.neg(scalar, k);
        let rest = self.fma(scalar, minus, Operand::float(scalar, LN_2_F64[0]), inside);
        let rest = self.fma(scalar, minus, Operand::float(scalar, LN_2_F64[1]), rest);
        self.exp_reduced(x, k, rest)
    }

    fn exp2(&mut self, scalar: Scalar, x: Operand) -> Operand {
        if scalar == Scalar::F32 {
            return self.op("ex2.approx.f32", scalar, &[x]);
        }
        let inside = self.bounded(scalar, x, -1076.0, 1025.0);
        let k = self.round(scalar, "rni", inside);
        let rest = self.sub(scalar, inside, k);
        let rest = self.mul(scalar, rest, Operand::float(scalar, LN_2));
        self.exp_reduced(x, k, rest)
    }

    fn bounded(&mut self, scalar: Scalar, x: Operand, low: f64, high: f64) -> Operand {
        let above = self.max(scalar, x, Operand::float(scalar, low));
        self.min(scalar, above, Operand::float(scalar, high))
    }

    /// 2ᵏ · eʳ in f64 for |r| ≤ ln 2 / 2; NaN where x is.
    fn exp_reduced(&mut self, x: Operand, k: Operand, rest: Operand) -> Operand {
        let series: Vec<f64> = (0..14).map(|n| 1.0 / factorial(n)).collect();
        let value = self.polynomial(Scalar::F64, rest, &series);
        let k = self.op("cvt.rni.s32.f64", Scalar::I32, &[k]);
        let scaled = self.ldexp(Scalar::F64, value, k);
        let is_nan = self.compare(Comparison::Ne, Scalar::F64, x, x);
        self.select(Scalar::F64, is_nan, x, scaled)
    }

    fn log(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let [high, low] = if scalar == Scalar::F32 {
            LN_2_F32
        } else {
            LN_2_F64
        };
        self.log_scaled(scalar, x, [high, low, 1.0])
    }

    fn log2(&mut self, scalar: Scalar, x: Operand) -> Operand {
        self.log_scaled(scalar, x, [1.0, 0.0, LOG2_E])
    }

    /// high · e + (low · e + factor · ln m) for x = m · 2ᵉ with m in [√½, √2).
    fn log_scaled(&mut self, scalar: Scalar, x: Operand, [high, low, factor]: [f64; 3]) -> Operand {
        let parts = self.frexp(scalar, x);
        let small = self.compare(
            Comparison::Lt,
            scalar,
            parts[0],
            Operand::float(scalar, 0.5 * SQRT_2),
        );
        let doubled = self.add(scalar, parts[0], parts[0]);
        let mantissa = self.select(scalar, small, doubled, parts[0]);
        let lowered = self.sub(Scalar::I32, parts[1], Operand::i32(1));
        let exponent = self.select(Scalar::I32, small, lowered, parts[1]);
        let exponent = self.convert(Scalar::I32, scalar, exponent);
        // ln m = 2 artanh s with s = (m − 1) / (m + 1), |s| ≤ 0.172
        let (below, above) = (
            self.sub(scalar, mantissa, Operand::float(scalar, 1.0)),
            self.add(scalar, mantissa, Operand::float(scalar, 1.0)),
        );
        let s = self.div(scalar, below, above);
        let square = self.mul(scalar, s, s);
        let terms = if scalar == Scalar::F32 { 6 } else { 11 };
        let series: Vec<f64> = (0..terms)
            .map(|n| 2.0 * factor / f64::from(2 * n + 1))
            .collect();
        let log = self.polynomial(scalar, square, &series);
        let fine = self.mul(scalar, exponent, Operand::float(scalar, low));
        let log = self.fma(scalar, s, log, fine);
        let log = self.fma(scalar, exponent, Operand::float(scalar, high), log);
        self.log_limits(scalar, x, log)
    }

    /// −∞ of 0, ∞ of ∞, NaN of negative numbers and of NaN.
    fn log_limits(&mut self, scalar: Scalar, x: Operand, log: Operand) -> Operand {
        let is_zero = self.compare(Comparison::Eq, scalar, x, zero(scalar));
        let value = self.select(
            scalar,
            is_zero,
            Operand::float(scalar, f64::NEG_INFINITY),
            log,
        );
        let finite = self.compare(
            Comparison::Lt,
            scalar,
            x,
            Operand::float(scalar, f64::INFINITY),
        );
        let value = self.select(scalar, finite, value, x);
        let negative = self.compare(Comparison::Lt, scalar, x, zero(scalar));
        self.select(scalar, negative, Operand::float(scalar, f64::NAN), value)
    }

    fn pow(&mut self, scalar: Scalar, x: Operand, y: Operand) -> Operand {
        let log = if scalar == Scalar::F32 {
            self.log2(scalar, x)
        } else {
            self.log(scalar, x)
        };
        let power = self.mul(scalar, y, log);
        if scalar == Scalar::F32 {
            self.exp2(scalar, power)
        } else {
            self.exp(scalar, power)
        }
    }

    /// sin(x + quarter · π/2)
    fn sine(&mut self, scalar: Scalar, x: Operand, quarter: i32) -> Operand {
        let scaled = self.mul(scalar, x, Operand::float(scalar, FRAC_2_PI));
        let k = self.round(scalar, "rni", scaled);
        let minus = self.neg(scalar, k);
        let parts = if scalar == Scalar::F32 {
            HALF_PI_F32
        } else {
            HALF_PI_F64
        };
        let rest = parts.iter().fold(x, |rest, &part| {
            self.fma(scalar, minus, Operand::float(scalar, part), rest)
        });
        let quadrant = self.op(
            format_args!("cvt.rni.s32.{}", scalar.suffix()),
            Scalar::I32,
            &[k],
        );
        let quadrant = self.add(Scalar::I32, quadrant, Operand::i32(quarter));
        let (sine, cosine) = self.sine_and_cosine_near_zero(scalar, rest);
        let odd = self.and(Scalar::U32, quadrant, Operand::u32(1));
        let odd = self.compare(Comparison::Ne, Scalar::U32, odd, Operand::u32(0));
        let value = self.select(scalar, odd, cosine, sine);
        let half = self.and(Scalar::U32, quadrant, Operand::u32(2));
        let half = self.compare(Comparison::Ne, Scalar::U32, half, Operand::u32(0));
        let turned = self.neg(scalar, value);
        self.select(scalar, half, turned, value)
    }

    /// For |x| ≤ π/4.
    fn sine_and_cosine_near_zero(&mut self, scalar: Scalar, x: Operand) -> (Operand, Operand) {
        let terms = if scalar == Scalar::F32 { 5 } else { 8 };
        let sign = |n: u32| if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        let square = self.mul(scalar, x, x);
        let sine: Vec<f64> = (1..=terms)
            .map(|n| sign(n) / factorial(2 * n + 1))
            .collect();
        let sine = self.polynomial(scalar, square, &sine);
        let cube = self.mul(scalar, square, x);
        let sine = self.fma(scalar, sine, cube, x);
        let cosine: Vec<f64> = (0..=terms + 1)
            .map(|n| sign(n) / factorial(2 * n))
            .collect();
        (sine, self.polynomial(scalar, square, &cosine))
    }

    /// The arc tangent of t in [0, 1].
    fn arc_tangent_unit(&mut self, scalar: Scalar, t: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let steep = self.compare(
            Comparison::Gt,
            scalar,
            t,
            Operand::float(scalar, SQRT_2 - 1.0),
        );
        let (below, above) = (self.sub(scalar, t, one), self.add(scalar, t, one));
        let turned = self.div(scalar, below, above);
        let u = self.select(scalar, steep, turned, t);
        let square = self.mul(scalar, u, u);
        let terms = if scalar == Scalar::F32 { 10 } else { 20 };
        let series: Vec<f64> = (1..=terms)
            .map(|n| if n % 2 == 1 { -1.0 } else { 1.0 } / f64::from(2 * n + 1))
            .collect();
        let rest = self.polynomial(scalar, square, &series);
        let cube = self.mul(scalar, square, u);
        let angle = self.fma(scalar, rest, cube, u);
        let eighth = self.add(scalar, angle, Operand::float(scalar, FRAC_PI_4));
        self.select(scalar, steep, eighth, angle)
    }

    fn atan(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let magnitude = self.abs(scalar, x);
        let large = self.compare(
            Comparison::Gt,
            scalar,
            magnitude,
            Operand::float(scalar, 1.0),
        );
        let inverse = self.div(scalar, Operand::float(scalar, 1.0), magnitude);
        let t = self.select(scalar, large, inverse, magnitude);
        let angle = self.arc_tangent_unit(scalar, t);
        let complement = self.sub(scalar, Operand::float(scalar, FRAC_PI_2), angle);
        let angle = self.select(scalar, large, complement, angle);
        self.copy_sign(scalar, x, angle)
    }

    fn atan2(&mut self, scalar: Scalar, y: Operand, x: Operand) -> Operand {
        let (width, height) = (self.abs(scalar, x), self.abs(scalar, y));
        let (short, long) = (
            self.min(scalar, width, height),
            self.max(scalar, width, height),
        );
        let none = self.compare(Comparison::Eq, scalar, long, zero(scalar));
        let divisor = self.select(scalar, none, Operand::float(scalar, 1.0), long);
        let t = self.div(scalar, short, divisor);
        let angle = self.arc_tangent_unit(scalar, t);
        let complement = self.sub(scalar, Operand::float(scalar, FRAC_PI_2), angle);
        let steep = self.compare(Comparison::Gt, scalar, height, width);
        let angle = self.select(scalar, steep, complement, angle);
        let supplement = self.sub(scalar, Operand::float(scalar, PI), angle);
        let left = self.is_negative(scalar, x);
        let angle = self.select(scalar, left, supplement, angle);
        self.copy_sign(scalar, y, angle)
    }

    /// √(1 − x²)
    fn complement(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let (below, above) = (self.sub(scalar, one, x), self.add(scalar, one, x));
        let square = self.mul(scalar, below, above);
        self.sqrt(scalar, square)
    }

    /// atan2(x, √(1 − x²)); NaN outside [−1, 1].
    fn asin(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let complement = self.complement(scalar, x);
        let angle = self.atan2(scalar, x, complement);
        self.fma(scalar, complement, zero(scalar), angle)
    }

    /// atan2(√(1 − x²), x); NaN outside [−1, 1].
    fn acos(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let complement = self.complement(scalar, x);
        let angle = self.atan2(scalar, complement, x);
        self.fma(scalar, complement, zero(scalar), angle)
    }

    /// (eˣ − e⁻ˣ) / 2, by its series near 0.
    fn sinh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let (up, down) = self.exp_both(scalar, x);
        let difference = self.sub(scalar, up, down);
        let value = self.mul(scalar, difference, Operand::float(scalar, 0.5));
        let series: Vec<f64> = (1..=6).map(|n| 1.0 / factorial(2 * n + 1)).collect();
        self.odd_near_zero(scalar, x, 0.25, &series, value)
    }

    fn cosh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let (up, down) = self.exp_both(scalar, x);
        let sum = self.add(scalar, up, down);
        self.mul(scalar, sum, Operand::float(scalar, 0.5))
    }

    fn exp_both(&mut self, scalar: Scalar, x: Operand) -> (Operand, Operand) {
        let minus = self.neg(scalar, x);
        (self.exp(scalar, x), self.exp(scalar, minus))
    }

    /// (1 − t) / (1 + t) with t = e^(−2|x|), by its series near 0.
    fn tanh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let magnitude = self.abs(scalar, x);
        let power = self.mul(scalar, magnitude, Operand::float(scalar, -2.0));
        let t = self.exp(scalar, power);
        let one = Operand::float(scalar, 1.0);
        let (below, above) = (self.sub(scalar, one, t), self.add(scalar, one, t));
        let ratio = self.div(scalar, below, above);
        let value = self.copy_sign(scalar, x, ratio);
        let near = if scalar == Scalar::F32 { 0.25 } else { 0.03 };
        let series = [-1.0 / 3.0, 2.0 / 15.0, -17.0 / 315.0, 62.0 / 2835.0];
        self.odd_near_zero(scalar, x, near, &series, value)
    }

    /// x + x³ · (c₀ + c₁x² …) for |x| < near, else the value.
    fn odd_near_zero(
        &mut self,
        scalar: Scalar,
        x: Operand,
        near: f64,
        series: &[f64],
        value: Operand,
    ) -> Operand {
        let square = self.mul(scalar, x, x);
        let rest = self.polynomial(scalar, square, series);
        let cube = self.mul(scalar, square, x);
        let close = self.fma(scalar, rest, cube, x);
        let magnitude = self.abs(scalar, x);
        let small = self.compare(
            Comparison::Lt,
            scalar,
            magnitude,
            Operand::float(scalar, near),
        );
        self.select(scalar, small, close, value)
    }

    /// ln(1 + u): the rounding of 1 + u is corrected to first order.
    fn log1p(&mut self, scalar: Scalar, u: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let sum = self.add(scalar, one, u);
        let kept = self.sub(scalar, sum, one);
        let lost = self.sub(scalar, u, kept);
        let correction = self.div(scalar, lost, sum);
        let log = self.log(scalar, sum);
        self.add(scalar, log, correction)
    }

    /// ln 2x where x is large, else the value.
    fn log_of_twice_if_large(&mut self, scalar: Scalar, x: Operand, value: Operand) -> Operand {
        let log = self.log(scalar, x);
        let twice = self.add(scalar, log, Operand::float(scalar, LN_2));
        let large = self.compare(Comparison::Gt, scalar, x, Operand::float(scalar, LARGE));
        self.select(scalar, large, twice, value)
    }

    /// ln(1 + (a + a² / (1 + √(a² + 1)))) with a = |x|
    fn asinh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let a = self.abs(scalar, x);
        let square = self.mul(scalar, a, a);
        let root = self.add(scalar, square, one);
        let root = self.sqrt(scalar, root);
        let divisor = self.add(scalar, one, root);
        let part = self.div(scalar, square, divisor);
        let u = self.add(scalar, a, part);
        let value = self.log1p(scalar, u);
        let value = self.log_of_twice_if_large(scalar, a, value);
        self.copy_sign(scalar, x, value)
    }

    /// ln(1 + (t + √(t · (x + 1)))) with t = x − 1
    fn acosh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let (t, above) = (self.sub(scalar, x, one), self.add(scalar, x, one));
        let square = self.mul(scalar, t, above);
        let root = self.sqrt(scalar, square);
        let u = self.add(scalar, t, root);
        let value = self.log1p(scalar, u);
        self.log_of_twice_if_large(scalar, x, value)
    }

    /// ½ ln(1 + 2a / (1 − a)) with a = |x|
    fn atanh(&mut self, scalar: Scalar, x: Operand) -> Operand {
        let one = Operand::float(scalar, 1.0);
        let a = self.abs(scalar, x);
        let (twice, rest) = (self.add(scalar, a, a), self.sub(scalar, one, a));
        let u = self.div(scalar, twice, rest);
        let log = self.log1p(scalar, u);
        let value = self.mul(scalar, log, Operand::float(scalar, 0.5));
        self.copy_sign(scalar, x, value)
    }
}

fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}
