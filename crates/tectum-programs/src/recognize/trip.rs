//! Iteration counts of loops.

use super::affine::{Affine, Var};
use crate::Condition;

/// The negation of a condition on integers.
pub fn negated(condition: Condition) -> Condition {
    match condition {
        Condition::Eq => Condition::Ne,
        Condition::Ne => Condition::Eq,
        Condition::Lt => Condition::Ge,
        Condition::Le => Condition::Gt,
        Condition::Gt => Condition::Le,
        Condition::Ge => Condition::Lt,
        Condition::Ltu => Condition::Geu,
        Condition::Leu => Condition::Gtu,
        Condition::Gtu => Condition::Leu,
        Condition::Geu => Condition::Ltu,
    }
}

/// The first iteration at which a comparison of a with b fails, from their difference a − b = c +
/// s·turn.
pub fn first_failure(condition: Condition, difference: &Affine, turn: Var) -> Option<u64> {
    let (step, start) = (
        difference.factor(turn),
        difference.without(turn).as_constant()?,
    );
    let turns = match condition {
        Condition::Lt | Condition::Ltu => first_at_least(start, step, 0)?,
        Condition::Le | Condition::Leu => first_at_least(start, step, 1)?,
        Condition::Gt | Condition::Gtu => first_at_least(-start, -step, 0)?,
        Condition::Ge | Condition::Geu => first_at_least(-start, -step, 1)?,
        Condition::Ne if start == 0 => 0,
        Condition::Ne => {
            (step != 0 && -start % step == 0 && -start / step > 0).then(|| -start / step)?
        }
        Condition::Eq if start != 0 => 0,
        Condition::Eq => (step != 0).then_some(1)?,
    };
    u64::try_from(turns).ok()
}

/// The first iteration at which start + step·turn is `least` or more.
fn first_at_least(start: i128, step: i128, least: i128) -> Option<i128> {
    if start >= least {
        return Some(0);
    }
    (step > 0).then(|| (least - start + step - 1) / step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every comparison of small numbers first fails where a count by iteration says.
    #[test]
    fn turns_are_those_of_counting() {
        let holds = |condition: Condition, d: i128| match condition {
            Condition::Eq => d == 0,
            Condition::Ne => d != 0,
            Condition::Lt | Condition::Ltu => d < 0,
            Condition::Le | Condition::Leu => d <= 0,
            Condition::Gt | Condition::Gtu => d > 0,
            Condition::Ge | Condition::Geu => d >= 0,
        };
        let turn = Var::Turn(0);
        for condition in Condition::ALL {
            for (start, step) in (-9..9).flat_map(|start| (-4..4).map(move |step| (start, step))) {
                let difference = Affine::constant(start).plus(&Affine::of(turn), step);
                let counted = (0..40)
                    .find(|turn| !holds(*condition, start + step * turn))
                    .map(|turn| turn as u64);
                assert_eq!(
                    first_failure(*condition, &difference, turn),
                    counted,
                    "{condition} {start} {step}"
                );
            }
        }
    }
}
