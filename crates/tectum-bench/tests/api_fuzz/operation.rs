//! An operation of a plan as the fuzzer models it: its bindings, whether it must be refused, and
//! its results.

use std::rc::Rc;

use tectum::{Access, DType, Error, ErrorKind, PlanBuilder};

use super::memory::{Seen, Space};

pub type Record = Box<dyn FnOnce(&mut PlanBuilder) -> Result<(), Error>>;
pub type Step = Rc<dyn Fn(&Space<'_>)>;

/// One binding of a launch: the bound view, and the kernel's requirements.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub seen: Seen,
    pub needs: DType,
    pub access: Access,
}

/// A call that records an operation.
pub struct Operation {
    pub text: String,
    /// Why it must be refused by its own rules, for any bindings.
    pub refused: Option<ErrorKind>,
    /// Its launches, in order; none for an empty operation.
    pub launches: Vec<Vec<Bound>>,
    /// All given views: without a launch, a foreign one may or may not be refused.
    pub given: Vec<Seen>,
    pub record: Record,
    pub step: Step,
}

pub fn reads(seen: Seen, needs: DType) -> Bound {
    Bound {
        seen,
        needs,
        access: Access::Read,
    }
}

pub fn writes(seen: Seen, needs: DType) -> Bound {
    Bound {
        seen,
        needs,
        access: Access::Write,
    }
}

pub fn changes(seen: Seen, needs: DType) -> Bound {
    Bound {
        seen,
        needs,
        access: Access::ReadWrite,
    }
}

/// `Invalid` if a rule is violated.
pub fn unless(fits: bool) -> Option<ErrorKind> {
    (!fits).then_some(ErrorKind::Invalid)
}

/// A product of sizes that does not wrap.
pub fn product(sizes: &[usize]) -> u128 {
    sizes
        .iter()
        .fold(1u128, |product, &size| product.saturating_mul(size as u128))
}

/// A sum with the error that any order of additions of f32 may have: none if every partial sum is a
/// small multiple of 2⁻⁸.
pub fn sum(terms: &[f64]) -> (f64, f64) {
    let (total, magnitude) = (
        terms.iter().sum::<f64>(),
        terms.iter().map(|term| term.abs()).sum::<f64>(),
    );
    let is_exact = magnitude < 65_536.0 && terms.iter().all(|term| (term * 256.0).fract() == 0.0);
    (
        total,
        if is_exact {
            0.0
        } else {
            (terms.len() + 4) as f64 * f64::from(f32::EPSILON) * magnitude
        },
    )
}

/// All numbers, if each is known and small enough that no partial sum can overflow.
pub fn all(numbers: &[Option<f64>]) -> Option<Vec<f64>> {
    numbers
        .iter()
        .map(|number| number.filter(|number| number.is_finite() && number.abs() < 1e15))
        .collect()
}

/// Whether two results would be in the same memory.
pub fn overlaps(a: Seen, b: Seen) -> bool {
    let (a_words, b_words) = (a.words(), b.words());
    (a.plan, a.slot) == (b.plan, b.slot)
        && a_words.start < b_words.end
        && b_words.start < a_words.end
}
