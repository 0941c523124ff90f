//! Instructions that compute one register value from register values, without other effects.

mod bits;
mod convert;
mod floating;
mod integer;
mod property;
mod transcendental;

pub(crate) use bits::{BitsOperation, PermuteMode};
pub(crate) use convert::{Conversion, IntegralRounding};
pub(crate) use floating::{FloatMode, FloatOperation};
pub(crate) use integer::IntegerOperation;
pub(crate) use property::{Combination, Comparison, Property, Relation};
pub(crate) use transcendental::ApproximateOperation;
pub use transcendental::Approximation;

use crate::scalar::{Scalar, mask};

/// Why an operation has no defined result.
pub(crate) type Undefined = &'static str;

/// One operation without its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compute {
    /// The low bits of the source.
    Move {
        bits: u32,
    },
    Integer(IntegerOperation, Scalar),
    Bits(BitsOperation, Scalar),
    Float(FloatOperation, FloatMode),
    Approximate(ApproximateOperation, FloatMode),
    Test(Property, Scalar),
    Convert(Conversion),
    /// Two `f32` to one packed pair, the first in the upper half.
    ConvertPair(Conversion),
    /// `set`: all ones or 1.0 where the comparison holds.
    Set {
        comparison: Comparison,
        result: Scalar,
    },
    /// `selp`: the first source where the third, a predicate, holds.
    Select,
    /// `slct`: the first source where the third is not negative.
    SelectSign {
        condition: Scalar,
        ftz: bool,
    },
    /// Adds the base of a generic window, or subtracts it.
    Rebase {
        by: u64,
    },
}

impl Compute {
    /// Evaluates on zero-extended sources; the result is zero-extended from the destination's
    /// width.
    pub fn evaluate(
        self,
        sources: [u64; 4],
        approximation: Approximation,
    ) -> Result<u64, Undefined> {
        let [a, b, c, _] = sources;
        match self {
            Compute::Move { bits } => Ok(a & mask(bits)),
            Compute::Integer(operation, scalar) => operation.evaluate(scalar, sources),
            Compute::Bits(operation, scalar) => Ok(operation.evaluate(scalar, sources)),
            Compute::Float(operation, mode) => Ok(operation.evaluate(mode, sources)),
            Compute::Approximate(operation, mode) => {
                Ok(operation.evaluate(mode, sources, approximation))
            }
            Compute::Test(property, scalar) => Ok(u64::from(property.holds(scalar, a))),
            Compute::Convert(conversion) => Ok(conversion.evaluate(a)),
            Compute::ConvertPair(conversion) => {
                Ok(conversion.evaluate(a) << 16 | conversion.evaluate(b))
            }
            Compute::Set { comparison, result } => Ok(set_value(comparison.holds(a, b, c), result)),
            Compute::Select => Ok(if c != 0 { a } else { b }),
            Compute::SelectSign { condition, ftz } => {
                Ok(if property::is_not_negative(condition, ftz, c) {
                    a
                } else {
                    b
                })
            }
            Compute::Rebase { by } => Ok(a.wrapping_add(by)),
        }
    }
}

fn set_value(holds: bool, result: Scalar) -> u64 {
    match (holds, result.is_float()) {
        (false, _) => 0,
        (true, true) => crate::float::from_f64(1.0, result),
        (true, false) => result.mask(),
    }
}
