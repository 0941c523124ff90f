//! The brain that leaves a body at its safe action, to record what it observes.

use serde::Serialize;
use tectum::Result;

use super::Stateless;
use super::recipe::{BrainContext, BrainSettings, Recipe};
use crate::body::BodySpec;
use crate::document::Section;

/// The brain in a scenario: it has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SafeSpec;

impl BrainSettings for SafeSpec {
    fn standard() -> Option<Self> {
        Some(Self)
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Ok(Self)
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        let safe = context.body.safe_action.clone();
        let brain = Stateless::new("safe", move |_, action: &mut [f32]| {
            action.copy_from_slice(&safe);
        });
        Ok(Recipe::Host(Box::new(brain)))
    }
}
