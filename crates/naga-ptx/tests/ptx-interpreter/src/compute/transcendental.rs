//! The approximate instructions, whose results the manual bounds but does not specify exactly.

use super::FloatMode;
use crate::float;
use crate::scalar::{Class, Scalar};

/// The result of an approximate instruction within its documented error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximation {
    /// The correctly rounded result.
    #[default]
    Exact,
    /// The result moved by a share of the documented error that depends on the seed, the
    /// instruction and its inputs.
    Perturbed(u64),
}

/// The approximate operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApproximateOperation {
    Divide,
    DivideFull,
    Reciprocal,
    SquareRoot,
    ReciprocalRoot,
    Exponential2,
    Logarithm2,
    Sine,
    Cosine,
    HyperbolicTangent,
}

/// The maximum error: relative to the result plus absolute.
struct Bound {
    relative: f64,
    absolute: f64,
}

impl ApproximateOperation {
    pub fn evaluate(self, mode: FloatMode, sources: [u64; 4], approximation: Approximation) -> u64 {
        if !mode.scalar.is_pair() {
            return self.evaluate_one(mode, [sources[0], sources[1]], approximation);
        }
        let element = FloatMode {
            scalar: mode.scalar.element(),
            ..mode
        };
        let half = |shift: u32| {
            let operands = [sources[0], sources[1]].map(|source| source >> shift & 0xffff);
            self.evaluate_one(element, operands, approximation)
        };
        half(16) << 16 | half(0)
    }

    fn evaluate_one(self, mode: FloatMode, sources: [u64; 2], approximation: Approximation) -> u64 {
        let operands = sources.map(|source| mode.input(source));
        let [x, y] = operands.map(|source| float::to_f64(source, mode.scalar));
        let exact = self.exact(x, y);
        let moved = match approximation {
            Approximation::Perturbed(seed) if !self.is_special(x, exact) => {
                let share = unit(seed, self as u64, operands);
                let bound = self.bound(mode.scalar, x);
                exact + share * (bound.relative * exact.abs() + bound.absolute)
            }
            _ => exact,
        };
        mode.output(self.truncate(mode, float::from_f64(self.contain(moved), mode.scalar)))
    }

    fn exact(self, x: f64, y: f64) -> f64 {
        match self {
            // A divisor above 2^126 is outside the range that the approximate division handles.
            ApproximateOperation::Divide if y.abs() > 2f64.powi(126) && y.is_finite() => {
                if x.is_infinite() {
                    f64::NAN
                } else {
                    x / y * 0.0
                }
            }
            ApproximateOperation::Divide | ApproximateOperation::DivideFull => x / y,
            ApproximateOperation::Reciprocal => 1.0 / x,
            ApproximateOperation::SquareRoot => x.sqrt(),
            ApproximateOperation::ReciprocalRoot if x == 0.0 => 1.0 / x,
            ApproximateOperation::ReciprocalRoot => 1.0 / x.sqrt(),
            ApproximateOperation::Exponential2 => x.exp2(),
            ApproximateOperation::Logarithm2 => x.log2(),
            ApproximateOperation::Sine => x.sin(),
            ApproximateOperation::Cosine => x.cos(),
            ApproximateOperation::HyperbolicTangent => x.tanh(),
        }
    }

    /// Inputs whose results the manual lists exactly.
    fn is_special(self, x: f64, exact: f64) -> bool {
        let is_tabled = x == 0.0
            && matches!(
                self,
                ApproximateOperation::Exponential2
                    | ApproximateOperation::Cosine
                    | ApproximateOperation::Logarithm2
            );
        is_tabled || exact == 0.0 || !exact.is_finite() || x.is_infinite()
    }

    fn bound(self, scalar: Scalar, x: f64) -> Bound {
        let relative = |relative| Bound {
            relative,
            absolute: 0.0,
        };
        let absolute = |absolute| Bound {
            relative: 0.0,
            absolute,
        };
        // The final rounding to the destination uses half a unit of the documented error.
        let units = |count: f64| relative((count - 0.5) * 2f64.powi(-23) / 2.0);
        match (self, scalar.class, scalar.bits) {
            (ApproximateOperation::Exponential2, Class::Brain, _) => relative(2f64.powi(-7)),
            (ApproximateOperation::HyperbolicTangent, Class::Brain, _) => relative(2f64.powi(-8)),
            (ApproximateOperation::Exponential2, _, 16) => relative(2f64.powf(-9.9)),
            (ApproximateOperation::HyperbolicTangent, _, 16) => absolute(2f64.powf(-10.987)),
            (_, _, 64) => relative(2f64.powi(-20)),
            (ApproximateOperation::Reciprocal, ..) => units(1.0),
            (ApproximateOperation::SquareRoot, ..) => relative(2f64.powi(-23)),
            (ApproximateOperation::ReciprocalRoot, ..) => relative(2f64.powf(-22.9)),
            (ApproximateOperation::Logarithm2, ..) if (0.5..=2.0).contains(&x) => {
                absolute(2f64.powi(-22))
            }
            (ApproximateOperation::Logarithm2, ..) => relative(2f64.powi(-22)),
            (ApproximateOperation::Sine | ApproximateOperation::Cosine, ..) => {
                let is_near = x.abs() <= std::f64::consts::TAU;
                absolute(2f64.powf(if is_near { -20.5 } else { -14.7 }))
            }
            (ApproximateOperation::HyperbolicTangent, ..) => relative(2f64.powi(-11)),
            _ => units(2.0),
        }
    }

    /// Keeps a moved result within the range of the function.
    fn contain(self, moved: f64) -> f64 {
        match self {
            ApproximateOperation::Sine
            | ApproximateOperation::Cosine
            | ApproximateOperation::HyperbolicTangent => moved.clamp(-1.0, 1.0),
            _ => moved,
        }
    }

    /// The `f64` forms that flush return only the upper half of the result.
    fn truncate(self, mode: FloatMode, bits: u64) -> u64 {
        if mode.scalar.bits == 64 && mode.ftz {
            bits & !0xffff_ffff
        } else {
            bits
        }
    }
}

/// A number in -1 to 1 that depends on every argument.
fn unit(seed: u64, operation: u64, operands: [u64; 2]) -> f64 {
    let mixed = [seed, operation, operands[0], operands[1]]
        .into_iter()
        .fold(0x9e37_79b9_7f4a_7c15, |state: u64, word| {
            crate::schedule::mix(state ^ word)
        });
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}
