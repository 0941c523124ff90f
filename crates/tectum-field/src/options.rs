//! Options of a field.

use tectum::{Boundary, Error, Result};

use super::layout::{MAX_MOTORS, MAX_PATTERNS, MAX_SENSORS};
use super::storage::Storage;

/// Options of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Elements of an observation, 1 to 256.
    pub sensors: usize,
    /// Elements of an action, 1 to 16.
    pub motors: usize,
    /// The boundary condition.
    pub boundary: Boundary,
    /// Seed of the initial state, noise and waves.
    pub seed: u64,
    /// Capacity of the library of patterns, 0 (no library) to 4,096.
    pub patterns: usize,
    /// The storage format in the device's memory.
    pub storage: Storage,
}

impl Options {
    /// The options of a field with so many sensors and motors: a closed boundary, f32, no library,
    /// seed 1.
    pub fn new(sensors: usize, motors: usize) -> Self {
        Self {
            sensors,
            motors,
            boundary: Boundary::Closed,
            seed: 1,
            patterns: 0,
            storage: Storage::F32,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// `Invalid` for no sensors or motors, or more than the maximum; for more patterns than the
    /// maximum.
    pub fn check(&self) -> Result<()> {
        for (name, number, most) in [
            ("sensors", self.sensors, MAX_SENSORS),
            ("motors", self.motors, MAX_MOTORS),
        ] {
            if !(1..=most).contains(&number) {
                return Err(Error::invalid(format!(
                    "field: {number} {name}; needs 1 to {most}"
                )));
            }
        }
        if self.patterns > MAX_PATTERNS {
            return Err(Error::invalid(format!(
                "field: a library of {} patterns; needs 0 to {MAX_PATTERNS}",
                self.patterns
            )));
        }
        Ok(())
    }
}
