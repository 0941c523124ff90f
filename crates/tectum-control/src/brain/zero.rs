//! The baseline: a brain that never acts.

use serde::Serialize;
use tectum::{Result, RunStats};

use super::Brain;
use super::recipe::{BrainContext, BrainSettings, Recipe};
use crate::body::{ActionChannel, BodySpec};
use crate::document::Section;
use tectum::snapshot::Snapshot;

/// The baseline in a scenario: it has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ZeroSpec;

impl BrainSettings for ZeroSpec {
    fn standard() -> Option<Self> {
        Some(Self)
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Ok(Self)
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(Zero::new(context.body))))
    }
}

/// Gives zero at every tick; the baseline that any other brain must beat.
pub struct Zero {
    notes: Vec<String>,
}

impl Zero {
    /// Makes the brain that gives zero on every channel of a body. What the body applies where zero
    /// is not among a channel's actions is one of its notes.
    pub fn new(body: &BodySpec) -> Self {
        let note = |channel: &ActionChannel| {
            let applied = channel.applied(0.0).filter(|applied| *applied != 0.0)?;
            let ActionChannel { name, unit, .. } = channel;
            Some(format!(
                "0 {unit} is no action of {name}; the body applies {applied} {unit}"
            ))
        };
        Self {
            notes: body.action.iter().filter_map(note).collect(),
        }
    }
}

impl Brain for Zero {
    fn name(&self) -> &'static str {
        "zero"
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn tick(&mut self, _observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        action.fill(0.0);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _snapshot: &Snapshot) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::body;

    #[test]
    fn zero_is_given_even_where_the_safe_action_is_another() {
        for (name, notes) in [
            ("pendulum", &[][..]),
            (
                "cart_pole",
                &["0 N is no action of force; the body applies 10 N"],
            ),
        ] {
            let mut zero = Zero::new(body(name, None).expect("known").spec());
            let mut action = [1.0];
            zero.tick(&[], &mut action).expect("it cannot fail");
            assert_eq!(
                (action, zero.notes()),
                (
                    [0.0],
                    notes
                        .iter()
                        .map(|note| (*note).to_owned())
                        .collect::<Vec<_>>()
                        .as_slice()
                ),
                "{name}"
            );
        }
    }
}
