//! The coefficients of the update equation, which may change from cycle to cycle.

use tectum::{Error, Result};

/// Coefficients of a cycle, with the symbols of `docs/field.md`; every number is per cycle and
/// dimensionless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficients {
    /// R: the retained fraction of the field, 0 to 1. Default: 0.999.
    pub retention: f32,
    /// δ: how far the decay channels may lower R, 0 (not at all) to 1. Default: 1.0.
    pub decay_depth: f32,
    /// B: diffusion along X, Y and Z at resting dynamics. Default: `[0.05; 3]`.
    pub diffusion: [f32; 3],
    /// H: how far the diffusion channels change B; |H| is at most B. Σ(B + |H|) is at most ½.
    /// Default: `[0.05; 3]`.
    pub diffusion_depth: [f32; 3],
    /// k: the maximum that the mean of the neighbours adds, 0 to 1. Default: 0.1.
    pub coupling: f32,
    /// S: standard deviation of the noise, 0 to 1. Default: 0.001.
    pub noise: f32,
    /// w: amplitude of each of the four waves, 0 to 1. Default: 0.005.
    pub wave: f32,
    /// Multiplies the effect of the error on the field, 0 to 10. Default: 1.0.
    pub error_drive: f32,
    /// `G_imprint`: multiplies the imprint, 0 to 10. Default: 1.0.
    pub imprint: f32,
    /// η: the rate of the dynamics, 0 to 1. Default: 0.05.
    pub dynamics_rate: f32,
    /// Multiplies the echo of movement, 0 to 1. Default: 1.0.
    pub echo: f32,
    /// Multiplies the noise of the motors, 0 to 1. Default: 1.0.
    pub exploration: f32,
    /// m: the saturation limit of the field, ½ to 10⁶. Default: 2.0.
    pub saturation: f32,
    /// γ: how strongly the field is pulled to the library's recall, 0 to ½. Default: 0.01.
    pub recall: f32,
    /// θ: the minimum cosine of a familiar pattern, which is not stored, 0 to 1. Default: 0.95.
    pub familiar: f32,
    /// β: how strongly each attractor pulls, 0 to 0.02. Default: 0.01.
    pub attraction: f32,
    /// The maximum share of a strategic pattern in the temporal channels, 0 to 1. Default: 0.3.
    pub strategy: f32,
}

impl Default for Coefficients {
    fn default() -> Self {
        Self {
            retention: 0.999,
            decay_depth: 1.0,
            diffusion: [0.05; 3],
            diffusion_depth: [0.05; 3],
            coupling: 0.1,
            noise: 0.001,
            wave: 0.005,
            error_drive: 1.0,
            imprint: 1.0,
            dynamics_rate: 0.05,
            echo: 1.0,
            exploration: 1.0,
            saturation: 2.0,
            recall: 0.01,
            familiar: 0.95,
            attraction: 0.01,
            strategy: 0.3,
        }
    }
}

impl Coefficients {
    /// Checks every range and the stability bound.
    ///
    /// # Errors
    /// `Invalid`, naming the coefficient.
    pub fn check(&self) -> Result<()> {
        let ranges = [
            ("retention", self.retention, 0.0, 1.0),
            ("decay_depth", self.decay_depth, 0.0, 1.0),
            ("coupling", self.coupling, 0.0, 1.0),
            ("noise", self.noise, 0.0, 1.0),
            ("wave", self.wave, 0.0, 1.0),
            ("error_drive", self.error_drive, 0.0, 10.0),
            ("imprint", self.imprint, 0.0, 10.0),
            ("dynamics_rate", self.dynamics_rate, 0.0, 1.0),
            ("echo", self.echo, 0.0, 1.0),
            ("exploration", self.exploration, 0.0, 1.0),
            ("saturation", self.saturation, 0.5, 1e6),
            ("recall", self.recall, 0.0, 0.5),
            ("familiar", self.familiar, 0.0, 1.0),
            ("attraction", self.attraction, 0.0, 0.02),
            ("strategy", self.strategy, 0.0, 1.0),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(Error::invalid(format!(
                    "field: {name} is {value}; needs {low} to {high}"
                )));
            }
        }
        for (axis, (base, depth)) in ["X", "Y", "Z"]
            .into_iter()
            .zip(self.diffusion.into_iter().zip(self.diffusion_depth))
        {
            if !(base >= 0.0 && depth.abs() <= base) {
                return Err(Error::invalid(format!(
                    "field: diffusion along {axis} is {base} and moves by {depth}; neither may make it negative"
                )));
            }
        }
        let sum: f64 = self
            .diffusion
            .iter()
            .chain(&self.diffusion_depth)
            .map(|number| f64::from(number.abs()))
            .sum();
        if sum > 0.5 + 1e-6 {
            return Err(Error::invalid(format!(
                "field: diffusion adds up to {sum} over the axes, its depth included; the step is stable to 0.5"
            )));
        }
        Ok(())
    }
}
