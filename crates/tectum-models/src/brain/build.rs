//! From a scenario to its body and brain.

use std::path::Path;

use tectum::{Device, Error, Result, RunStats};

use super::Brain;
use super::lqr::Lqr;
use super::zero::Zero;
use crate::body::{Body, body};
use crate::rig_csv::RigRecording;
use crate::scenario::{BrainSpec, Scenario};
use crate::snapshot::{Array, Snapshot};

/// How far the work before the first tick has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildProgress {
    /// What is being done, for people: `training`.
    pub stage: &'static str,
    /// Steps done.
    pub done: u64,
    /// Steps in all.
    pub total: u64,
}

/// Makes the plant of a scenario, standing at the start of its seed.
///
/// # Errors
/// As [`body`].
pub fn build_body(scenario: &Scenario) -> Result<Box<dyn Body>> {
    let mut plant = body(&scenario.body.name, scenario.body.start)?;
    plant.reset(scenario.run.seed);
    Ok(plant)
}

/// Makes the controller of a scenario for its plant, ready to tick on `device`; training happens here.
///
/// # Errors
/// A recording that cannot be read or does not fit the body; what the device reports.
pub fn build_brain(
    scenario: &Scenario,
    plant: &dyn Body,
    device: &Device,
    progress: &mut dyn FnMut(BuildProgress),
) -> Result<Box<dyn Brain>> {
    match &scenario.brain {
        BrainSpec::Zero => Ok(Box::new(Zero::new(&plant.spec().safe_action))),
        BrainSpec::Lqr => Ok(Box::new(Lqr::new(body(&scenario.body.name, scenario.body.start)?)?)),
        BrainSpec::Mppi(spec) => {
            let recording = spec.twin.data.as_deref().map(|path| RigRecording::read(Path::new(path))).transpose()?;
            let _ = (recording, device, progress);
            Err(Error::unsupported("brain \"mppi\" is not part of this build"))
        }
    }
}

impl Brain for Lqr {
    fn name(&self) -> &'static str {
        "lqr"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        Lqr::tick(self, observation, action);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("state", Array::F64(self.state()));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let len = self.state().len();
        self.set_state(snapshot.f64("state", len)?)
    }
}
