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
        let names = |is_array: bool| {
            let channels = spec.observation.iter();
            let channels = channels.filter(move |channel| channel.is_array() == is_array);
            channels.map(|channel| channel.name.as_str())
        };
        let is_same = names(false).eq(trace.observation_names.iter())
            && names(true).eq(trace.array_names.iter());
        if !is_same {
            let found: Vec<&str> = trace
                .observation_names
                .iter()
                .chain(&trace.array_names)
                .map(String::as_str)
                .collect();
            let expected: Vec<&str> = names(false).chain(names(true)).collect();
            return Err(Error::data(format!(
                "it has the channels {}, the body {} has {}",
                found.join(", "),
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
        observation.fill(f32::NAN);
        let Some(tick) = self.ticks.get(self.tick) else {
            return;
        };
        let (mut numbers, mut arrays) = (tick.observation.iter(), tick.arrays.iter());
        for (channel, range) in self.spec.observation.iter().zip(self.spec.ranges()) {
            let own = &mut observation[range];
            if channel.is_array() {
                let mut elements = Vec::with_capacity(own.len());
                arrays
                    .next()
                    .into_iter()
                    .for_each(|array| array.append_to(&mut elements));
                own.iter_mut()
                    .zip(elements)
                    .for_each(|(own, element)| *own = element);
            } else if let Some(number) = numbers.next() {
                own[0] = *number as f32;
            }
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
