//! What a plan is compiled for.

use super::open;
use crate::device::Device;
use crate::error::Result;
use crate::plan::{Executable, Plan, PlanWork};

/// What a plan is compiled for: a device, or the one with the minimum predicted time.
#[derive(Debug, Clone, Copy)]
pub enum Target<'d> {
    /// This device.
    Device(&'d Device),
    /// The device that [`open`] chooses.
    Auto,
}

impl<'d> From<&'d Device> for Target<'d> {
    fn from(device: &'d Device) -> Self {
        Self::Device(device)
    }
}

/// No device: [`Target::Auto`].
impl<'d> From<Option<&'d Device>> for Target<'d> {
    fn from(device: Option<&'d Device>) -> Self {
        device.map_or(Self::Auto, Self::Device)
    }
}

impl Target<'_> {
    /// Opens the device for a plan.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(self, work: impl FnOnce() -> PlanWork) -> Result<Device> {
        match self {
            Self::Device(device) => Ok(device.clone()),
            Self::Auto => Ok(open(&work())?.0),
        }
    }
}

// Here and not with the plan, which does not know the router.
impl Plan {
    /// Compiles with its own states, for a device or [`Target::Auto`].
    ///
    /// # Errors
    /// `Unsupported` where the device cannot hold or run a launch, `OutOfMemory`, or what the
    /// driver reports.
    pub fn compile<'d>(&self, target: impl Into<Target<'d>>) -> Result<Executable> {
        self.compile_with(&target.into().open(|| self.work())?, &[])
    }
}
