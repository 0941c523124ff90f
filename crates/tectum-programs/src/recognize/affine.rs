//! Integer forms c + Σ cᵢ·vᵢ over the counters of a launch: lanes, loop iterations, elements of an
//! unrolled run.
//!
//! A form of a value of w bits represents it modulo 2^w; if its range is within the type, it is the
//! value.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Register, Type};

/// A counter from 0 to below its extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Var {
    /// The lane's number in the launch.
    Lane,
    /// The lane's number divided by a number that splits the lanes.
    Row,
    /// The remainder of that division.
    Column,
    /// The iteration of a loop.
    Turn(u32),
    /// The index in an unrolled run.
    Run,
    /// The lane's number plus, for each iteration of a loop, the number of lanes that arrive here.
    Strided(u32),
    /// An otherwise unknown register at the start of a loop iteration. It has no extent.
    Carried(u32, Register),
}

/// The number of values of each variable.
pub type Extents = BTreeMap<Var, u64>;

/// A form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Affine {
    pub constant: i128,
    /// By ascending variable; no factor is 0.
    terms: Vec<(Var, i128)>,
}

impl Affine {
    pub fn constant(constant: i128) -> Self {
        Self {
            constant,
            terms: Vec::new(),
        }
    }

    pub fn of(var: Var) -> Self {
        Self {
            constant: 0,
            terms: vec![(var, 1)],
        }
    }

    pub fn terms(&self) -> &[(Var, i128)] {
        &self.terms
    }

    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    pub fn factor(&self, var: Var) -> i128 {
        self.terms
            .iter()
            .find(|(other, _)| *other == var)
            .map_or(0, |(_, factor)| *factor)
    }

    /// Whether this is exactly one variable.
    pub fn is_var(&self, var: Var) -> bool {
        self.constant == 0 && self.terms == [(var, 1)]
    }

    pub fn add(&self, other: &Affine) -> Affine {
        self.plus(other, 1)
    }

    pub fn sub(&self, other: &Affine) -> Affine {
        self.plus(other, -1)
    }

    /// `self + factor · other`.
    pub fn plus(&self, other: &Affine, factor: i128) -> Affine {
        let mut terms: BTreeMap<Var, i128> = self.terms.iter().copied().collect();
        for (var, more) in &other.terms {
            let sum = terms.entry(*var).or_insert(0);
            *sum = sum.wrapping_add(more.wrapping_mul(factor));
        }
        let constant = self
            .constant
            .wrapping_add(other.constant.wrapping_mul(factor));
        Affine {
            constant,
            terms: terms
                .into_iter()
                .filter(|(_, factor)| *factor != 0)
                .collect(),
        }
    }

    pub fn scale(&self, factor: i128) -> Affine {
        Affine::default().plus(self, factor)
    }

    /// The form without a variable.
    pub fn without(&self, var: Var) -> Affine {
        Affine {
            constant: self.constant,
            terms: self
                .terms
                .iter()
                .copied()
                .filter(|(other, _)| *other != var)
                .collect(),
        }
    }

    pub fn without_constant(&self) -> Affine {
        Affine {
            constant: 0,
            terms: self.terms.clone(),
        }
    }

    /// The form with a variable replaced by another form.
    pub fn substitute(&self, var: Var, by: &Affine) -> Affine {
        match self.factor(var) {
            0 => self.clone(),
            factor => self.without(var).plus(by, factor),
        }
    }

    /// The same value modulo 2^width: a constant as the type's bits, else every number as close to
    /// 0 as possible.
    pub fn wrapped(&self, ty: Type) -> Affine {
        let modulus = 1i128 << ty.bits();
        if self.terms.is_empty() {
            return Affine::constant(self.constant.rem_euclid(modulus));
        }
        let near = |value: i128| {
            let rest = value.rem_euclid(modulus);
            if rest > modulus / 2 {
                rest - modulus
            } else {
                rest
            }
        };
        let terms: Vec<(Var, i128)> = self
            .terms
            .iter()
            .map(|(var, factor)| (*var, near(*factor)))
            .filter(|(_, factor)| *factor != 0)
            .collect();
        let kept = Affine {
            constant: near(self.constant),
            terms,
        };
        if kept.terms.is_empty() {
            kept.wrapped(ty)
        } else {
            kept
        }
    }

    /// The minimum and maximum value, or `None` if a variable has no extent.
    pub fn range(&self, extents: &Extents) -> Option<(i128, i128)> {
        let (mut low, mut high) = (self.constant, self.constant);
        for (var, factor) in &self.terms {
            let most = i128::from(extents.get(var)?.saturating_sub(1)).checked_mul(*factor)?;
            low = low.checked_add(most.min(0))?;
            high = high.checked_add(most.max(0))?;
        }
        Some((low, high))
    }

    /// The range, if the form is the value itself: nothing wraps, and no sign is set.
    pub fn exact(&self, ty: Type, extents: &Extents) -> Option<(i128, i128)> {
        let (low, high) = self.range(extents)?;
        let greatest = if ty.is_signed() {
            ty.mask() >> 1
        } else {
            ty.mask()
        };
        (low >= 0 && high <= i128::from(greatest)).then_some((low, high))
    }

    /// The form as d·g + h with h between 0 and d − 1, if its parts allow it.
    pub fn split(&self, divisor: i128, extents: &Extents) -> Option<(Affine, Affine)> {
        let (mut whole, mut rest) = (
            Affine::constant(self.constant.div_euclid(divisor)),
            Affine::constant(self.constant.rem_euclid(divisor)),
        );
        for (var, factor) in &self.terms {
            if factor % divisor == 0 {
                whole.terms.push((*var, factor / divisor));
            } else {
                rest.terms.push((*var, *factor));
            }
        }
        let (low, high) = rest.range(extents)?;
        (low >= 0 && high < divisor).then_some((whole, rest))
    }

    /// The form without the variables that are always 0.
    pub fn reduced(&self, extents: &Extents) -> Affine {
        let varies = |var: &Var| extents.get(var) != Some(&1);
        Affine {
            constant: self.constant,
            terms: self
                .terms
                .iter()
                .copied()
                .filter(|(var, _)| varies(var))
                .collect(),
        }
    }
}

/// The variables of a form with their extents, smallest factor first, if the form begins at 0 and
/// its values are 0, unit, 2·unit, … each exactly once.
pub fn radix(form: &Affine, unit: i128, extents: &Extents) -> Option<Vec<(Var, u64)>> {
    let mut terms = form.terms.clone();
    terms.sort_by_key(|(_, factor)| *factor);
    let mut next = unit;
    let mut order = Vec::with_capacity(terms.len());
    for (var, factor) in terms {
        let extent = *extents.get(&var)?;
        if factor != next {
            return None;
        }
        next = next.checked_mul(i128::from(extent))?;
        order.push((var, extent));
    }
    Some(order)
}

/// The number of combinations of some variables.
pub fn count(order: &[(Var, u64)]) -> u64 {
    order
        .iter()
        .fold(1u64, |count, (_, extent)| count.saturating_mul(*extent))
}

/// The form that counts through variables, the first fastest, in steps of `unit`.
pub fn flat(order: &[(Var, u64)], unit: i128) -> Affine {
    let mut weight = unit;
    let mut form = Affine::default();
    for (var, extent) in order {
        form = form.plus(&Affine::of(*var), weight);
        weight = weight.saturating_mul(i128::from(*extent));
    }
    form
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Var::Lane => write!(f, "lane"),
            Var::Row => write!(f, "row"),
            Var::Column => write!(f, "column"),
            Var::Turn(turn) => write!(f, "turn{turn}"),
            Var::Run => write!(f, "run"),
            Var::Strided(turn) => write!(f, "element{turn}"),
            Var::Carried(_, register) => write!(f, "{register}"),
        }
    }
}

impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self
            .terms
            .iter()
            .map(|(var, factor)| {
                if *factor == 1 {
                    var.to_string()
                } else {
                    format!("{factor}·{var}")
                }
            })
            .collect();
        if self.constant != 0 || parts.is_empty() {
            parts.push(self.constant.to_string());
        }
        f.write_str(&parts.join(" + "))
    }
}
