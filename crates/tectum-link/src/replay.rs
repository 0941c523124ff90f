//! Bodies without a machine: the constants alone, and a recorded run.

use std::path::Path;

use tectum::{Error, Result};
use tectum_control::body::link::LinkStatus;
use tectum_control::body::{Body, BodySpec, Step};
use tectum_control::clock::ClockKind;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder::TRACE_FILE;

/// The constants of a body that is outside of the process, for controllers: it does not move.
pub(crate) struct Still(pub BodySpec);

impl Body for Still {
    fn spec(&self) -> &BodySpec {
        &self.0
    }

    fn reset(&mut self, _seed: u64) {}

    fn observe(&self, observation: &mut [f32]) {
        observation.fill(0.0);
    }

    fn step(&mut self, _action: &[f32]) -> Step {
        Step::default()
    }
}

/// A recorded run as a body: it gives the recorded observations and ignores actions, so that a
/// brain which repeats the run gives the recorded actions.
#[derive(Debug)]
pub struct Replay {
    spec: BodySpec,
    ticks: Vec<TraceTick>,
    /// The period that is observed.
    tick: usize,
    /// Why it cannot be used.
    failure: Option<String>,
}

impl Replay {
    /// Reads the recording of a run folder.
    ///
    /// # Errors
    /// `Io` or `Data` naming the file; `Data` for a recording of another body.
    pub fn open(folder: &Path, spec: BodySpec) -> Result<Self> {
        let path = folder.join(TRACE_FILE);
        Self::new(Trace::read(&path)?, spec).map_err(|error| error.at(path.display()))
    }

    /// A recording in memory.
    ///
    /// # Errors
    /// `Data` for a recording of another body.
    pub fn new(trace: Trace, spec: BodySpec) -> Result<Self> {
        let expected: Vec<&str> = spec
            .observation
            .iter()
            .map(|channel| channel.name.as_str())
            .collect();
        let is_whole = |tick: &TraceTick| tick.observation.len() == spec.observation_len();
        if trace.observation_names != expected || !trace.ticks.iter().all(is_whole) {
            return Err(Error::data(format!(
                "it has the channels {}, the body {} has {}",
                trace.observation_names.join(", "),
                spec.name,
                expected.join(", ")
            )));
        }
        Ok(Self {
            spec,
            ticks: trace.ticks,
            tick: 0,
            failure: None,
        })
    }
}

impl Body for Replay {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    /// A recorded run is at its first period, and continues over the ends of its episodes.
    fn reset(&mut self, _seed: u64) {}

    fn observe(&self, observation: &mut [f32]) {
        match self.ticks.get(self.tick) {
            Some(tick) => {
                let recorded = observation.iter_mut().zip(&tick.observation);
                recorded.for_each(|(number, recorded)| *number = *recorded as f32);
            }
            None => observation.fill(f32::NAN),
        }
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let Some(tick) = self.ticks.get(self.tick) else {
            self.failure = Some(format!("the recording ends at tick {}", self.tick));
            return Step::default();
        };
        self.tick += 1;
        Step {
            reward: tick.reward,
            terminated: tick.terminated,
            truncated: false,
            refused: action.iter().any(|number| !number.is_finite()),
        }
    }

    fn link(&mut self, _clock: ClockKind) -> Option<LinkStatus> {
        let state = self.ticks.get(self.tick)?.link?;
        Some(LinkStatus::new(state))
    }

    fn health(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(reason) => Err(Error::data(format!("body {}: {reason}", self.spec.name))),
        }
    }
}
