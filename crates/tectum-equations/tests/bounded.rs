//! Arithmetic with a running bound of the error that f32 makes.

use tectum_equations::{Arithmetic, BinaryOp, Comparison, UnaryOp};

/// Half a unit in the last place of f32, relative.
const UNIT: f64 = 1.0 / 16_777_216.0;
/// The error of a function of the runtime: 4 ulp.
const FUNCTION: f64 = 8.0 * UNIT;

/// A number in f64, and by how much the same computation in f32 may differ from it.
#[derive(Debug, Clone, Copy)]
pub struct Bounded {
    pub value: f64,
    pub error: f64,
}

/// A comparison, which rounding may turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Known {
    True,
    False,
    Unknown,
}

impl Bounded {
    /// A number that is given as f32.
    pub fn exact(value: f32) -> Self {
        Self {
            value: f64::from(value),
            error: 0.0,
        }
    }

    fn rounded(value: f64, error: f64) -> Self {
        // Beyond the range of f32, and where f64 has no number, nothing is known.
        let is_known = value.abs() < 1e38 && error.is_finite();
        Self {
            value,
            error: if is_known {
                error + UNIT * (value.abs() + error) + 1e-37
            } else {
                f64::INFINITY
            },
        }
    }

    fn function(value: f64, error: f64) -> Self {
        Self::rounded(value, error + FUNCTION * (value.abs() + error))
    }
}

/// The arithmetic.
#[derive(Debug, Clone, Copy)]
pub struct Bounds;

impl Bounds {
    fn root(self, a: Bounded) -> Bounded {
        let [low, high] = [(a.value - a.error).max(0.0), a.value + a.error].map(f64::sqrt);
        let value = a.value.sqrt();
        Bounded::function(value, (high - value).max(value - low))
    }

    fn angle(self, y: Bounded, x: Bounded) -> Bounded {
        let value = y.value.atan2(x.value);
        let radius = (x.value.hypot(y.value) - x.error - y.error).max(0.0);
        // The cut: below and above the negative axis the angles are a turn apart.
        let is_cut = x.value - x.error <= 0.0 && y.value.abs() <= y.error;
        let error = if radius == 0.0 || is_cut {
            f64::INFINITY
        } else {
            x.error.hypot(y.error) / radius
        };
        Bounded::function(value, error + FUNCTION * 3.2)
    }

    fn other_side(self, a: Bounded) -> Bounded {
        let [less, more] =
            [1.0 - a.value, 1.0 + a.value].map(|value| Bounded::rounded(value, a.error));
        self.root(self.product(less, more))
    }

    fn product(self, a: Bounded, b: Bounded) -> Bounded {
        Bounded::rounded(
            a.value * b.value,
            a.value.abs() * b.error + b.value.abs() * a.error + a.error * b.error,
        )
    }

    fn quotient(self, a: Bounded, b: Bounded) -> Bounded {
        let value = a.value / b.value;
        let least = b.value.abs() - b.error;
        let error = if least > 0.0 {
            (a.error + value.abs() * b.error) / least
        } else {
            f64::INFINITY
        };
        // The reciprocal of a constant is rounded once more, and devices divide within 2.5 ulp.
        Bounded::rounded(value, error + 5.0 * UNIT * (value.abs() + error))
    }
}

impl Arithmetic for Bounds {
    type Value = Bounded;
    type Condition = Known;

    fn constant(&mut self, value: f64) -> Bounded {
        Bounded::rounded(value, 0.0)
    }

    fn unary(&mut self, op: UnaryOp, a: &Bounded) -> Bounded {
        let Bounded { value: x, error } = *a;
        match op {
            UnaryOp::Negate => Bounded { value: -x, error },
            UnaryOp::Abs => Bounded {
                value: x.abs(),
                error,
            },
            UnaryOp::Sin => Bounded::function(x.sin(), error),
            UnaryOp::Cos => Bounded::function(x.cos(), error),
            UnaryOp::Tan => self.quotient(
                Bounded::function(x.sin(), error),
                Bounded::function(x.cos(), error),
            ),
            UnaryOp::Asin => self.angle(*a, self.other_side(*a)),
            UnaryOp::Acos => self.angle(self.other_side(*a), *a),
            UnaryOp::Atan => Bounded::function(x.atan(), error + FUNCTION),
            UnaryOp::Exp => Bounded::function(x.exp(), x.exp() * error.exp_m1()),
            UnaryOp::Log if x > error => Bounded::function(x.ln(), error / (x - error)),
            UnaryOp::Log => Bounded::rounded(x.ln(), f64::INFINITY),
            UnaryOp::Sqrt => self.root(*a),
            UnaryOp::Tanh => Bounded::function(x.tanh(), error),
            UnaryOp::Sign if x.abs() > error || error == 0.0 => Bounded {
                value: f64::from(i8::from(x > 0.0) - i8::from(x < 0.0)),
                error: 0.0,
            },
            UnaryOp::Sign => Bounded {
                value: 0.0,
                error: 1.0,
            },
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Bounded, b: &Bounded) -> Bounded {
        let (x, y) = (a.value, b.value);
        match op {
            BinaryOp::Add => Bounded::rounded(x + y, a.error + b.error),
            BinaryOp::Subtract => Bounded::rounded(x - y, a.error + b.error),
            BinaryOp::Multiply => self.product(*a, *b),
            BinaryOp::Divide => self.quotient(*a, *b),
            // Products by squaring, each rounded.
            BinaryOp::Power => {
                let (value, highest) = (x.powf(y), (x.abs() + a.error).powf(y));
                Bounded::rounded(
                    value,
                    highest * (1.0 + 2.0 * y.abs() * UNIT) - x.abs().powf(y),
                )
            }
            BinaryOp::Atan2 => self.angle(*a, *b),
            BinaryOp::Minimum => Bounded {
                value: x.min(y),
                error: a.error.max(b.error),
            },
            BinaryOp::Maximum => Bounded {
                value: x.max(y),
                error: a.error.max(b.error),
            },
        }
    }

    fn compare(&mut self, op: Comparison, a: &Bounded, b: &Bounded) -> Known {
        let apart = a.value - b.value;
        // Not numbers, and numbers that rounding may exchange; equal ones that are exact stay
        // equal.
        if apart.is_nan() || apart.abs() <= a.error + b.error && a.error + b.error > 0.0 {
            return Known::Unknown;
        }
        let holds = match op {
            Comparison::Less => apart < 0.0,
            Comparison::LessOrEqual => apart <= 0.0,
            Comparison::Greater => apart > 0.0,
            Comparison::GreaterOrEqual => apart >= 0.0,
        };
        if holds { Known::True } else { Known::False }
    }

    fn and(&mut self, a: &Known, b: &Known) -> Known {
        match (a, b) {
            (Known::False, _) | (_, Known::False) => Known::False,
            (Known::True, Known::True) => Known::True,
            _ => Known::Unknown,
        }
    }

    fn or(&mut self, a: &Known, b: &Known) -> Known {
        match (a, b) {
            (Known::True, _) | (_, Known::True) => Known::True,
            (Known::False, Known::False) => Known::False,
            _ => Known::Unknown,
        }
    }

    fn not(&mut self, a: &Known) -> Known {
        match a {
            Known::True => Known::False,
            Known::False => Known::True,
            Known::Unknown => Known::Unknown,
        }
    }

    fn select(&mut self, condition: &Known, a: &Bounded, b: &Bounded) -> Bounded {
        match condition {
            Known::True => *a,
            Known::False => *b,
            Known::Unknown => Bounded {
                value: a.value,
                error: (a.value - b.value).abs() + a.error.max(b.error),
            },
        }
    }
}
