//! What holds for a whole input of the network: frames, bounds, a normaliser outside of the network.

use tectum::Result;

use super::history::{Fill, History};
use super::normalizer::Normalizer;
use crate::document::{Key, Section};

/// What holds for a whole input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputRule {
    /// The name of the input.
    pub name: String,
    /// Which of the last frames it holds; a frame has all terms of the input.
    pub frames: History,
    /// What precedes the first values of its terms.
    pub fill: Option<Fill>,
    /// Bounds of every number, after its term: one pair for all, or one for each of a frame.
    pub clip: Vec<[f64; 2]>,
    /// The normaliser of the numbers, before the bounds.
    pub normalize: Option<Normalizer>,
}

impl InputRule {
    /// The rule of an input, without effect.
    pub fn of(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    pub(super) fn read(name: String, mut section: Section<'_, '_>) -> Result<Self> {
        let rule = Self {
            name,
            frames: History::read(&mut section, "frames")?,
            fill: Fill::read(&mut section)?,
            clip: section
                .bounds(Key::new(
                    "clip",
                    "bounds of every number, after its term and the normaliser",
                ))?
                .unwrap_or_default(),
            normalize: Normalizer::read(&mut section, "normalize")?,
        };
        section.finish()?;
        Ok(rule)
    }
}
