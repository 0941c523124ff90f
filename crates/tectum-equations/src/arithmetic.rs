//! What numbers are while a system is computed: floats, or floats with their derivatives.

use std::fmt::Debug;

use super::operation::{BinaryOp, Comparison, UnaryOp};

/// A kind of numbers.
pub trait Arithmetic: Debug + Clone {
    /// A number.
    type Value: Clone + Debug;
    /// The result of a comparison.
    type Condition: Clone + Debug;

    /// A constant.
    fn constant(&mut self, value: f64) -> Self::Value;
    /// A function of one number.
    fn unary(&mut self, op: UnaryOp, a: &Self::Value) -> Self::Value;
    /// A function of two numbers.
    fn binary(&mut self, op: BinaryOp, a: &Self::Value, b: &Self::Value) -> Self::Value;
    /// Whether a comparison holds.
    fn compare(&mut self, op: Comparison, a: &Self::Value, b: &Self::Value) -> Self::Condition;
    /// Whether both hold.
    fn and(&mut self, a: &Self::Condition, b: &Self::Condition) -> Self::Condition;
    /// Whether one of them holds.
    fn or(&mut self, a: &Self::Condition, b: &Self::Condition) -> Self::Condition;
    /// Whether it does not hold.
    fn not(&mut self, a: &Self::Condition) -> Self::Condition;
    /// `a` if the condition holds, else `b`.
    fn select(
        &mut self,
        condition: &Self::Condition,
        a: &Self::Value,
        b: &Self::Value,
    ) -> Self::Value;
}

/// f64.
#[derive(Debug, Clone, Copy)]
pub struct Floats;

impl Arithmetic for Floats {
    type Value = f64;
    type Condition = bool;

    fn constant(&mut self, value: f64) -> f64 {
        value
    }

    fn unary(&mut self, op: UnaryOp, a: &f64) -> f64 {
        match op {
            UnaryOp::Negate => -a,
            UnaryOp::Sin => a.sin(),
            UnaryOp::Cos => a.cos(),
            UnaryOp::Tan => a.tan(),
            UnaryOp::Asin => a.asin(),
            UnaryOp::Acos => a.acos(),
            UnaryOp::Atan => a.atan(),
            UnaryOp::Exp => a.exp(),
            UnaryOp::Log => a.ln(),
            UnaryOp::Sqrt => a.sqrt(),
            UnaryOp::Tanh => a.tanh(),
            UnaryOp::Abs => a.abs(),
            // 0 for 0, unlike f64::signum.
            UnaryOp::Sign => f64::from(i8::from(*a > 0.0) - i8::from(*a < 0.0)),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &f64, b: &f64) -> f64 {
        match op {
            BinaryOp::Add => a + b,
            BinaryOp::Subtract => a - b,
            BinaryOp::Multiply => a * b,
            BinaryOp::Divide => a / b,
            BinaryOp::Power => power(*a, *b),
            BinaryOp::Atan2 => a.atan2(*b),
            BinaryOp::Minimum => a.min(*b),
            BinaryOp::Maximum => a.max(*b),
        }
    }

    fn compare(&mut self, op: Comparison, a: &f64, b: &f64) -> bool {
        match op {
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }

    fn and(&mut self, a: &bool, b: &bool) -> bool {
        *a && *b
    }

    fn or(&mut self, a: &bool, b: &bool) -> bool {
        *a || *b
    }

    fn not(&mut self, a: &bool) -> bool {
        !*a
    }

    fn select(&mut self, condition: &bool, a: &f64, b: &f64) -> f64 {
        if *condition { *a } else { *b }
    }
}

/// Powers with a whole exponent are products, so that `x^2` is `x*x`.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.fract() == 0.0 && exponent.abs() <= 64.0 {
        base.powi(exponent as i32)
    } else {
        base.powf(exponent)
    }
}

/// A float, and its derivatives by each of the variables that are differentiated by.
#[derive(Debug, Clone, PartialEq)]
pub struct Dual {
    /// The value.
    pub value: f64,
    /// The derivatives.
    pub by: Vec<f64>,
}

/// Floats with derivatives by a number of variables.
#[derive(Debug, Clone, Copy)]
pub struct Duals {
    /// How many variables.
    pub variables: usize,
}

impl Duals {
    /// The variable with a number.
    pub fn variable(self, value: f64, number: usize) -> Dual {
        let mut by = vec![0.0; self.variables];
        by[number] = 1.0;
        Dual { value, by }
    }
}

impl Dual {
    /// The chain rule, for a function with this value and derivative.
    fn chain(&self, value: f64, derivative: f64) -> Dual {
        Dual {
            value,
            by: self.by.iter().map(|by| scaled(derivative, *by)).collect(),
        }
    }
}

/// A derivative that does not count, as of `sqrt(x)` at 0 by a variable that x does not depend on,
/// is 0 and not NaN.
fn scaled(factor: f64, by: f64) -> f64 {
    if by == 0.0 { 0.0 } else { factor * by }
}

impl Arithmetic for Duals {
    type Value = Dual;
    type Condition = bool;

    fn constant(&mut self, value: f64) -> Dual {
        Dual {
            value,
            by: vec![0.0; self.variables],
        }
    }

    fn unary(&mut self, op: UnaryOp, a: &Dual) -> Dual {
        let x = a.value;
        let value = Floats.unary(op, &x);
        let derivative = match op {
            UnaryOp::Negate => -1.0,
            UnaryOp::Sin => x.cos(),
            UnaryOp::Cos => -x.sin(),
            UnaryOp::Tan => 1.0 + value * value,
            UnaryOp::Asin => 1.0 / (1.0 - x * x).sqrt(),
            UnaryOp::Acos => -1.0 / (1.0 - x * x).sqrt(),
            UnaryOp::Atan => 1.0 / (1.0 + x * x),
            UnaryOp::Exp => value,
            UnaryOp::Log => 1.0 / x,
            UnaryOp::Sqrt => 0.5 / value,
            UnaryOp::Tanh => 1.0 - value * value,
            UnaryOp::Abs => Floats.unary(UnaryOp::Sign, &x),
            UnaryOp::Sign => 0.0,
        };
        a.chain(value, derivative)
    }

    fn binary(&mut self, op: BinaryOp, a: &Dual, b: &Dual) -> Dual {
        let (x, y) = (a.value, b.value);
        let value = Floats.binary(op, &x, &y);
        let [by_a, by_b] = match op {
            BinaryOp::Add => [1.0, 1.0],
            BinaryOp::Subtract => [1.0, -1.0],
            BinaryOp::Multiply => [y, x],
            BinaryOp::Divide => [1.0 / y, -value / y],
            // The exponent is a constant.
            BinaryOp::Power => [if y == 0.0 { 0.0 } else { y * power(x, y - 1.0) }, 0.0],
            BinaryOp::Atan2 => [y / (x * x + y * y), -x / (x * x + y * y)],
            BinaryOp::Minimum => {
                if x <= y {
                    [1.0, 0.0]
                } else {
                    [0.0, 1.0]
                }
            }
            BinaryOp::Maximum => {
                if x >= y {
                    [1.0, 0.0]
                } else {
                    [0.0, 1.0]
                }
            }
        };
        let by =
            a.by.iter()
                .zip(&b.by)
                .map(|(a, b)| scaled(by_a, *a) + scaled(by_b, *b))
                .collect();
        Dual { value, by }
    }

    fn compare(&mut self, op: Comparison, a: &Dual, b: &Dual) -> bool {
        Floats.compare(op, &a.value, &b.value)
    }

    fn and(&mut self, a: &bool, b: &bool) -> bool {
        *a && *b
    }

    fn or(&mut self, a: &bool, b: &bool) -> bool {
        *a || *b
    }

    fn not(&mut self, a: &bool) -> bool {
        !*a
    }

    fn select(&mut self, condition: &bool, a: &Dual, b: &Dual) -> Dual {
        if *condition { a.clone() } else { b.clone() }
    }
}
