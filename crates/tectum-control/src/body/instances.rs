//! Batches by a body's name or settings, from its own kernel or its equations.

use tectum::{Device, Error, Result};

use super::batch::{Batch, BatchKernel, BatchShape, kernel_of};
use super::equations::batch::step_kernel;
use super::equations::default_settings;
use super::settings::BodySettings;

impl Batch {
    /// Makes `count` instances of a body with its default settings, all at their starts for seed 0.
    ///
    /// # Errors
    /// As [`Batch::of`].
    pub fn new(name: &str, count: usize, device: &Device) -> Result<Self> {
        Self::of(&default_settings(name)?, count, device)
    }

    /// Makes `count` instances of a body, all at their starts for seed 0.
    ///
    /// # Errors
    /// An unknown body; `Unsupported` for one without a kernel; a count of 0; what the device reports.
    pub fn of(settings: &BodySettings, count: usize, device: &Device) -> Result<Self> {
        let (name, body) = (&settings.name, settings.model()?);
        if let Some((system, parameters)) = settings.equations() {
            let (shape, step) = step_kernel(body.spec(), system, parameters)?;
            return Batch::record(body, count, device, shape, &step);
        }
        if settings.changes_batches() {
            return Err(Error::unsupported(format!("body {name:?}: many are stepped with its own parameters only")));
        }
        let (&BatchKernel { has_starts, numbers, .. }, step) = kernel_of(name)?;
        let states = body.state()?.len();
        Batch::record(body, count, device, BatchShape { numbers, states, has_starts, uniforms: 0, block: 1 }, step)
    }
}
