//! Brains: controllers that compute an action from an observation, one tick at a time.

#[cfg(feature = "field")]
pub mod field;
#[cfg(feature = "spiking")]
pub mod genome;
pub mod lqr;
pub mod mppi;
mod recipe;
pub mod spec;
pub mod zero;

use tectum::{CodeObject, Device, Error, InputFile, LaunchTime, RunStats};

use crate::twin::LearningCounts;
pub use recipe::{BrainContext, BuildProgress, DeviceRecipe, Recipe};
use tectum::snapshot::Snapshot;

/// Rebuilds a brain on a device, in its initial state; [`Brain::restore`] then sets the saved state.
pub type Rebuild = Box<dyn FnOnce(&Device) -> Result<Box<dyn Brain>, Error> + Send>;

/// A brain of plain host arithmetic that follows another brain, ready to answer instead of it.
pub trait StandIn: Brain {
    /// Processes a period with its observation, which may not be finite, and the action that the body received.
    fn follow(&mut self, observation: &[f32], action: &[f32]);
}

/// A controller, network or any other policy in the closed loop.
///
/// A tick neither allocates device memory nor compiles; everything is built before the loop starts. The state of a brain
/// can be saved as a [`Snapshot`], independent of the device, and restored: the next tick is then the same bit for bit on
/// the same device.
pub trait Brain: Send {
    /// The brain's name in scenarios, receipts and logs.
    fn name(&self) -> &'static str;

    /// Reads one observation and writes one action, in the body's units and order.
    ///
    /// # Errors
    /// What the device reports; the loop then issues the body's safe action.
    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats, Error>;

    /// The state, as named arrays.
    ///
    /// # Errors
    /// What the device reports.
    fn snapshot(&self) -> Result<Snapshot, Error>;

    /// Restores a state.
    ///
    /// # Errors
    /// `Data` naming the array if one is missing or has a different length.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Error>;

    /// Reports that the body did not receive the last answer, or was reset: the next observation does not follow from that answer.
    fn interrupted(&mut self) {}

    /// Counters of learning; none for brains that do not learn a model while they run.
    fn learning(&self) -> Option<LearningCounts> {
        None
    }

    /// The time of each launch of one more tick on the last observation, which advances the state; empty for brains
    /// without launches.
    ///
    /// # Errors
    /// What the device reports.
    fn trace(&mut self) -> Result<Vec<LaunchTime>, Error> {
        Ok(Vec::new())
    }

    /// How to build the same brain on another device without data from the present device; none for brains that run on
    /// no device.
    fn rebuild(&self) -> Option<Rebuild> {
        None
    }

    /// The device that ticks run on; none for brains that are plain host arithmetic.
    fn device(&self) -> Option<&Device> {
        None
    }

    /// Requested settings that it does not support, for the receipt.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// The files that it was built from, for the receipt.
    fn inputs(&self) -> Vec<InputFile> {
        Vec::new()
    }

    /// Name and content hash of the kernels that ticks launch.
    fn code(&self) -> Vec<CodeObject> {
        Vec::new()
    }
}
