//! The baseline: a brain that never acts.

use serde::Serialize;
use tectum::{Result, RunStats};

use super::Brain;
use super::recipe::{BrainContext, BrainSettings, Recipe};
use crate::body::BodySpec;
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
        Ok(Recipe::Host(Box::new(Zero::new(&context.body.safe_action))))
    }
}

/// Gives the body's safe action at every tick; the baseline that any other brain must beat.
pub struct Zero {
    safe_action: Vec<f32>,
}

impl Zero {
    /// Makes the brain of a body with this safe action.
    pub fn new(safe_action: &[f32]) -> Self {
        Self { safe_action: safe_action.to_vec() }
    }
}

impl Brain for Zero {
    fn name(&self) -> &'static str {
        "zero"
    }

    fn tick(&mut self, _observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        action.copy_from_slice(&self.safe_action);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _snapshot: &Snapshot) -> Result<()> {
        Ok(())
    }
}
