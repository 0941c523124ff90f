//! Options of a field.

use tectum::{Boundary, Error, Result};

use super::layout::{MAX_MOTORS, MAX_PATTERNS, MAX_SENSORS};
use super::storage::Storage;

/// How a field is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Numbers of an observation, 1 to 256.
    pub sensors: usize,
    /// Numbers of an action, 1 to 16.
    pub motors: usize,
    /// What lies outside the field.
    pub boundary: Boundary,
    /// What the first state, noise and waves are drawn from.
    pub seed: u64,
    /// Places of the library of patterns, 0 (there is none) to 4,096.
    pub patterns: usize,
    /// How the field lies in the device's memory.
    pub storage: Storage,
}

impl Options {
    /// Checks the numbers.
    ///
    /// # Errors
    /// `Invalid` for more sensors or motors than a field has, or none; for more patterns than a library has.
    pub fn check(&self) -> Result<()> {
        for (name, number, most) in [("sensors", self.sensors, MAX_SENSORS), ("motors", self.motors, MAX_MOTORS)] {
            if !(1..=most).contains(&number) {
                return Err(Error::invalid(format!("field: {number} {name}; needs 1 to {most}")));
            }
        }
        if self.patterns > MAX_PATTERNS {
            return Err(Error::invalid(format!("field: a library of {} patterns; needs 0 to {MAX_PATTERNS}", self.patterns)));
        }
        Ok(())
    }
}
