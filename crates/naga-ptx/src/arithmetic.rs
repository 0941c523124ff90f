//! Arithmetic of single scalars, one method per operation.
//!
//! Every rounding is explicit, so that the assembler contracts nothing. Operations that PTX lacks
//! for f16 on sm_75 use f32, which rounds the same for `+ - * /` and the square root, since 24 ≥ 2
//! · 11 + 2 bits.

use crate::scalar::Scalar;
use crate::writer::{Operand, Writer};

/// A comparison. Floats: all except `Ne` are false if an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    fn name(self, float: bool) -> &'static str {
        match self {
            Comparison::Eq => "eq",
            Comparison::Ne if float => "neu",
            Comparison::Ne => "ne",
            Comparison::Lt => "lt",
            Comparison::Le => "le",
            Comparison::Gt => "gt",
            Comparison::Ge => "ge",
        }
    }
}

impl Writer {
    /// `name.rn.type` for floats, `name.type` for integers.
    fn rounded(&mut self, name: &str, scalar: Scalar, operands: &[Operand]) -> Operand {
        let rounding = if scalar.is_float() { ".rn" } else { "" };
        self.op(
            format_args!("{name}{rounding}.{}", scalar.suffix()),
            scalar,
            operands,
        )
    }

    pub fn add(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.rounded("add", scalar, &[a, b])
    }

    pub fn sub(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.rounded("sub", scalar, &[a, b])
    }

    pub fn mul(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.rounded(
            if scalar.is_float() { "mul" } else { "mul.lo" },
            scalar,
            &[a, b],
        )
    }

    /// a · b + c with one rounding; of floats.
    pub fn fma(&mut self, scalar: Scalar, a: Operand, b: Operand, c: Operand) -> Operand {
        self.rounded("fma", scalar, &[a, b, c])
    }

    /// The quotient, correctly rounded; of floats.
    pub fn div(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        if scalar == Scalar::F16 {
            return self.through_f32(&[a, b], |w, x| w.div(Scalar::F32, x[0], x[1]));
        }
        self.rounded("div", scalar, &[a, b])
    }

    /// The square root, correctly rounded.
    pub fn sqrt(&mut self, scalar: Scalar, a: Operand) -> Operand {
        if scalar == Scalar::F16 {
            return self.through_f32(&[a], |w, x| w.sqrt(Scalar::F32, x[0]));
        }
        self.rounded("sqrt", scalar, &[a])
    }

    pub fn neg(&mut self, scalar: Scalar, a: Operand) -> Operand {
        let kind = if scalar.is_float() {
            scalar
        } else {
            scalar.signed()
        };
        self.op(
            format_args!("neg.{}", kind.suffix()),
            scalar,
            &[a.bitcast(kind)],
        )
    }

    pub fn abs(&mut self, scalar: Scalar, a: Operand) -> Operand {
        self.op(format_args!("abs.{}", scalar.suffix()), scalar, &[a])
    }

    pub fn min(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.min_max("min", scalar, a, b)
    }

    pub fn max(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.min_max("max", scalar, a, b)
    }

    fn min_max(&mut self, name: &str, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        if scalar == Scalar::F16 {
            return self.through_f32(&[a, b], |w, x| w.min_max(name, Scalar::F32, x[0], x[1]));
        }
        self.op(format_args!("{name}.{}", scalar.suffix()), scalar, &[a, b])
    }

    /// Computes in f32 and rounds to f16.
    pub fn through_f32(
        &mut self,
        operands: &[Operand],
        compute: impl FnOnce(&mut Writer, &[Operand]) -> Operand,
    ) -> Operand {
        let wide: Vec<Operand> = operands
            .iter()
            .map(|&x| self.op("cvt.f32.f16", Scalar::F32, &[x]))
            .collect();
        let result = compute(self, &wide);
        self.op("cvt.rn.f16.f32", Scalar::F16, &[result])
    }

    pub fn compare(
        &mut self,
        comparison: Comparison,
        scalar: Scalar,
        a: Operand,
        b: Operand,
    ) -> Operand {
        if scalar == Scalar::Bool {
            let differ = self.op("xor.pred", Scalar::Bool, &[a, b]);
            return if comparison == Comparison::Ne {
                differ
            } else {
                self.not(Scalar::Bool, differ)
            };
        }
        let name = comparison.name(scalar.is_float());
        self.op(
            format_args!("setp.{name}.{}", scalar.suffix()),
            Scalar::Bool,
            &[a, b],
        )
    }

    /// `condition ? a : b`
    pub fn select(
        &mut self,
        scalar: Scalar,
        condition: Operand,
        a: Operand,
        b: Operand,
    ) -> Operand {
        let condition = self.direct(condition);
        if scalar == Scalar::Bool {
            let unless = self.not(Scalar::Bool, condition);
            let (a, b) = (self.and(scalar, condition, a), self.and(scalar, unless, b));
            return self.or(scalar, a, b);
        }
        self.op(
            format_args!("selp.{}", scalar.bits()),
            scalar,
            &[a.bits(), b.bits(), condition],
        )
    }

    pub fn and(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.op(
            format_args!("and.{}", scalar.bits()),
            scalar,
            &[a.bits(), b.bits()],
        )
    }

    pub fn or(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.op(
            format_args!("or.{}", scalar.bits()),
            scalar,
            &[a.bits(), b.bits()],
        )
    }

    pub fn xor(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        self.op(
            format_args!("xor.{}", scalar.bits()),
            scalar,
            &[a.bits(), b.bits()],
        )
    }

    pub fn not(&mut self, scalar: Scalar, a: Operand) -> Operand {
        self.op(format_args!("not.{}", scalar.bits()), scalar, &[a.bits()])
    }

    /// Shifts left by an amount that is below the width.
    pub fn shift_left(&mut self, scalar: Scalar, a: Operand, amount: Operand) -> Operand {
        self.op(
            format_args!("shl.{}", scalar.bits()),
            scalar,
            &[a.bits(), amount],
        )
    }

    /// Shifts right by an amount that is below the width; signed types keep their sign.
    pub fn shift_right(&mut self, scalar: Scalar, a: Operand, amount: Operand) -> Operand {
        self.op(
            format_args!("shr.{}", scalar.suffix()),
            scalar,
            &[a, amount],
        )
    }

    /// A float rounded to an integral value: `rni`, `rzi`, `rmi` or `rpi`.
    pub fn round(&mut self, scalar: Scalar, mode: &str, a: Operand) -> Operand {
        self.op(
            format_args!("cvt.{mode}.{0}.{0}", scalar.suffix()),
            scalar,
            &[a],
        )
    }

    /// The integer quotient by WGSL's rules: `a / 0` is `a`, and so is `MIN / -1`.
    pub fn integer_div(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        let divisor = self.safe_divisor(scalar, a, b);
        self.op(
            format_args!("div.{}", scalar.suffix()),
            scalar,
            &[a, divisor],
        )
    }

    /// The integer remainder by WGSL's rules: `a % 0` and `MIN % -1` are 0.
    pub fn integer_rem(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        let divisor = self.safe_divisor(scalar, a, b);
        self.op(
            format_args!("rem.{}", scalar.suffix()),
            scalar,
            &[a, divisor],
        )
    }

    /// The divisor, or 1 if the division has no result.
    fn safe_divisor(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        let zero = Operand::integer(scalar, 0);
        if let Operand::Immediate(_, bits) = b
            && bits != 0
            && b != Operand::integer(scalar, -1)
        {
            return b;
        }
        let mut bad = self.compare(Comparison::Eq, scalar, b, zero);
        if scalar.is_signed() {
            let is_least = self.compare(
                Comparison::Eq,
                scalar,
                a,
                Operand::integer(scalar, scalar.min_value()),
            );
            let is_minus_one =
                self.compare(Comparison::Eq, scalar, b, Operand::integer(scalar, -1));
            let overflow = self.and(Scalar::Bool, is_least, is_minus_one);
            bad = self.or(Scalar::Bool, bad, overflow);
        }
        self.select(scalar, bad, Operand::integer(scalar, 1), b)
    }

    /// The float remainder with the sign of `a`: a − b · trunc(a / b).
    pub fn float_rem(&mut self, scalar: Scalar, a: Operand, b: Operand) -> Operand {
        let quotient = self.div(scalar, a, b);
        let whole = self.round(scalar, "rzi", quotient);
        let product = self.mul(scalar, b, whole);
        self.sub(scalar, a, product)
    }
}
