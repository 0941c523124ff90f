//! How a rig differs from the one that its controllers know.

use serde::Serialize;
use tectum::{Error, Result};

/// The maximum lag of the readings.
pub const MAX_DELAY_SAMPLES: usize = 8;

/// How a rig differs from the identified one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Disturbances {
    /// Length of the pole relative to the identified one. Default: 1.0.
    pub pole_length: f64,
    /// Periods by which readings are late, beyond the identified delay. Default: 0.
    pub delay_samples: usize,
    /// Noise of the readings in multiples of the recording's; 0: exact readings. Default: 0.0.
    pub noise: f64,
    /// The share of angles replaced by random ones: sensor jumps. Default: 0.0.
    pub outlier_fraction: f64,
}

impl Default for Disturbances {
    fn default() -> Self {
        Self {
            pole_length: 1.0,
            delay_samples: 0,
            noise: 0.0,
            outlier_fraction: 0.0,
        }
    }
}

impl Disturbances {
    pub(super) fn check(&self) -> Result<()> {
        let fault = if !(self.pole_length.is_finite() && self.pole_length > 0.0) {
            format!(
                "pole_length is {}, needs a number above 0",
                self.pole_length
            )
        } else if self.delay_samples > MAX_DELAY_SAMPLES {
            format!(
                "delay_samples is {}, needs 0 to {MAX_DELAY_SAMPLES}",
                self.delay_samples
            )
        } else if !(self.noise.is_finite() && self.noise >= 0.0) {
            format!("noise is {}, needs a number, 0 or above", self.noise)
        } else if !(0.0..=1.0).contains(&self.outlier_fraction) {
            format!(
                "outlier_fraction is {}, needs a number from 0 to 1",
                self.outlier_fraction
            )
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("rig: {fault}")))
    }
}
