//! Comparisons and tests.

use super::integer::value;
use crate::float;
use crate::scalar::Scalar;
use std::cmp::Ordering;

/// The relation of `setp` and `set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// Both operands are numbers.
    Number,
    /// An operand is NaN.
    NotANumber,
}

/// How a comparison is combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    None,
    And,
    Or,
    Xor,
}

/// A comparison of two operands, combined with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub relation: Relation,
    /// Whether the relation also holds when an operand is NaN.
    pub unordered: bool,
    pub scalar: Scalar,
    pub ftz: bool,
    pub combination: Combination,
    pub negate_predicate: bool,
}

/// What `testp` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

impl Comparison {
    /// The relation combined with the predicate `c`.
    pub fn holds(self, a: u64, b: u64, c: u64) -> bool {
        self.join(self.compares(a, b), c)
    }

    /// Only the relation.
    pub fn compares(self, a: u64, b: u64) -> bool {
        self.relate(self.order(a, b))
    }

    /// Combines an outcome with the predicate `c`.
    pub fn join(self, outcome: bool, c: u64) -> bool {
        let predicate = (c != 0) != self.negate_predicate;
        match self.combination {
            Combination::None => outcome,
            Combination::And => outcome & predicate,
            Combination::Or => outcome | predicate,
            Combination::Xor => outcome ^ predicate,
        }
    }

    fn order(self, a: u64, b: u64) -> Option<Ordering> {
        if !self.scalar.is_float() {
            return Some(value(a, self.scalar).cmp(&value(b, self.scalar)));
        }
        let [a, b] = [a, b].map(|bits| {
            let bits = if self.ftz {
                float::flush(bits, self.scalar)
            } else {
                bits
            };
            float::to_f64(bits, self.scalar)
        });
        a.partial_cmp(&b)
    }

    fn relate(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else {
            return self.unordered || self.relation == Relation::NotANumber;
        };
        match self.relation {
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::LessEqual => order.is_le(),
            Relation::Greater => order.is_gt(),
            Relation::GreaterEqual => order.is_ge(),
            Relation::Number => true,
            Relation::NotANumber => false,
        }
    }
}

impl Property {
    pub fn holds(self, scalar: Scalar, bits: u64) -> bool {
        let nan = float::is_nan(bits, scalar);
        let infinite = float::is_infinite(bits, scalar);
        let subnormal = float::is_subnormal(bits, scalar);
        match self {
            Property::Finite => !nan && !infinite,
            Property::Infinite => infinite,
            Property::Number => !nan,
            Property::NotANumber => nan,
            Property::Normal => {
                !nan && !infinite && !subnormal && float::magnitude(bits, scalar) != 0
            }
            Property::Subnormal => subnormal,
        }
    }
}

/// The condition of `slct`: false for NaN, true for -0.
pub(super) fn is_not_negative(scalar: Scalar, ftz: bool, bits: u64) -> bool {
    if scalar.is_float() {
        let bits = if ftz {
            float::flush(bits, scalar)
        } else {
            bits
        };
        float::to_f64(bits, scalar) >= 0.0
    } else {
        value(bits, scalar) >= 0
    }
}
