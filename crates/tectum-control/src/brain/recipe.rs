//! A brain before it runs: the settings of a scenario, then a recipe, which is recorded but has no
//! device.

use tectum::{Device, Plan, Result, Watch};
#[cfg(any(test, feature = "bench"))]
use {std::sync::Arc, tectum::Kernel, tectum_bench::conformance::Suite};

use super::{Brain, StandIn};
use crate::body::motors::MotorRule;
use crate::body::{Body, BodySettings, BodySpec};
use crate::clock::ClockKind;
use crate::document::Section;

/// What a brain is built for.
#[derive(Debug, Clone, Copy)]
pub struct BrainContext<'a> {
    /// The constants of the body.
    pub body: &'a BodySpec,
    /// The body in its scenario.
    pub settings: &'a BodySettings,
    /// Seed of noise and training.
    pub seed: u64,
    /// The clock of the loop.
    pub clock: ClockKind,
}

impl BrainContext<'_> {
    /// Another instance of the body, as a model of it.
    ///
    /// # Errors
    /// As [`BodySettings::model`].
    pub fn model(&self) -> Result<Box<dyn Body>> {
        self.settings.model()
    }
}

/// Makes a brain that can stand in for another.
pub type BuildStandIn = fn(&BrainContext<'_>) -> Result<Box<dyn StandIn>>;

/// The entry of a brain: its settings in a scenario and what is made from them.
///
/// The entry of a built-in brain is next to the brain, and `brain.rs` lists all of them;
/// [`register_brain`](super::register_brain) adds one of another crate.
pub trait BrainSettings {
    /// The settings of a scenario that gives none; absent for a brain that cannot be without.
    fn standard() -> Option<Self>
    where
        Self: Sized;

    /// What the brain is, and a scenario's `[brain]` with all of its keys, for the reference of
    /// scenarios: of a brain of another crate.
    fn reference() -> Option<[&'static str; 2]>
    where
        Self: Sized,
    {
        None
    }

    /// Reads the section `[brain]`, except the name. Every key that it asks for is known; the
    /// others are refused with file and line.
    ///
    /// # Errors
    /// `Data` naming file and line, as [`Section`] reports it.
    fn read(section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Self>
    where
        Self: Sized;

    /// Checks settings against each other.
    ///
    /// # Errors
    /// What is wrong; file and line of the brain's name are put before it.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Trains on the recording in a file. Returns whether it is a brain that can.
    ///
    /// # Errors
    /// Settings that exclude it.
    fn set_data(&mut self, _path: &str) -> Result<bool> {
        Ok(false)
    }

    /// Plans with the twin in a file. Returns whether it is a brain that can.
    ///
    /// # Errors
    /// Settings that exclude it.
    fn set_twin(&mut self, _path: &str) -> Result<bool> {
        Ok(false)
    }

    /// Checks the settings against the body, and records the plans. Nothing is trained or compiled.
    ///
    /// # Errors
    /// Settings that do not fit the body; a file that cannot be read.
    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe>;

    /// Whether it reads observations with channels that are arrays.
    fn reads_arrays(&self) -> bool {
        true
    }

    /// The stage between its actions and the motors of a body, and the time between two actions, if
    /// it states one.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn motors(&self, _body: &BodySpec) -> Result<Option<(MotorRule, Option<f64>)>> {
        Ok(None)
    }

    /// How it is made as a stand-in, if it can be one.
    fn stand_in(&self) -> Option<BuildStandIn> {
        None
    }

    /// Its own kernels with their conformance cases, if it has some.
    #[doc(hidden)]
    #[cfg(any(test, feature = "bench"))]
    fn conformance() -> Option<Conformance>
    where
        Self: Sized,
    {
        None
    }
}

/// Kernels of a brain, and the cases that cover them.
#[cfg(any(test, feature = "bench"))]
pub struct Conformance {
    pub suites: fn() -> Vec<Suite>,
    pub kernels: fn() -> Result<Vec<Arc<Kernel>>>,
}

/// A brain that has no device yet.
pub enum Recipe {
    /// Plain host arithmetic, which needs none.
    Host(Box<dyn Brain>),
    /// Plans that are compiled for a device.
    Device(Box<dyn DeviceRecipe>),
}

impl Recipe {
    /// Makes the brain, ready to tick on a device; training happens here.
    ///
    /// # Errors
    /// As [`DeviceRecipe::build`].
    pub fn build(self, device: &Device, watch: &mut Watch<'_>) -> Result<Box<dyn Brain>> {
        match self {
            Self::Host(brain) => Ok(brain),
            Self::Device(recipe) => recipe.build(device, watch),
        }
    }
}

/// A recipe of a brain that runs on a device.
pub trait DeviceRecipe {
    /// The plan of a tick, from whose work a device is chosen; none if the work depends on the
    /// data, so that a device is found by trial.
    fn tick_plan(&self) -> Option<&Plan> {
        None
    }

    /// The plan of a step of its training, if it learns.
    ///
    /// # Errors
    /// Settings of a training that has no steps.
    fn training_plan(&self) -> Result<Option<Plan>> {
        Ok(None)
    }

    /// Makes the brain, ready to tick on a device; training happens here.
    ///
    /// # Errors
    /// A file that cannot be read or does not fit the body; what the device reports; `Cancelled` if
    /// the watch breaks it off.
    fn build(&self, device: &Device, watch: &mut Watch<'_>) -> Result<Box<dyn Brain>>;
}
