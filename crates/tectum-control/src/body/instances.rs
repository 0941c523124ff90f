//! Batches by a body's name or settings, from its own kernel or its equations.

use tectum::route::Target;
use tectum::{Error, Result};

use super::batch::{Batch, BatchKernel, BatchShape, kernel_of};
use super::equations::batch::step_kernel;
use super::equations::default_settings;
use super::settings::BodySettings;

impl Batch {
    /// Makes `count` instances of a body with its default settings, all at their starts for seed 0,
    /// on a device or [`Target::Auto`].
    ///
    /// # Errors
    /// As [`Batch::of`].
    pub fn new<'d>(name: &str, count: usize, target: impl Into<Target<'d>>) -> Result<Self> {
        Self::of(&default_settings(name)?, count, target)
    }

    /// Makes `count` instances of a body, all at their starts for seed 0, on a device or
    /// [`Target::Auto`].
    ///
    /// # Errors
    /// An unknown body; `Unsupported` for one without a kernel; a count of 0; what the device
    /// reports.
    pub fn of<'d>(
        settings: &BodySettings,
        count: usize,
        target: impl Into<Target<'d>>,
    ) -> Result<Self> {
        let (name, body, target) = (&settings.name, settings.model()?, target.into());
        if let Some((system, parameters)) = settings.equations() {
            let (shape, step) = step_kernel(body.spec(), system, parameters)?;
            return Batch::record(body, count, target, shape, &step);
        }
        if settings.changes_batches() {
            return Err(Error::unsupported(format!(
                "body {name:?}: many are stepped with its own parameters only"
            )));
        }
        let (
            &BatchKernel {
                has_starts,
                numbers,
                ..
            },
            step,
        ) = kernel_of(name)?;
        let states = body.state()?.len();
        Batch::record(
            body,
            count,
            target,
            BatchShape {
                numbers,
                states,
                has_starts,
                uniforms: 0,
                block: 1,
            },
            step,
        )
    }
}
