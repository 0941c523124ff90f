//! Recorded runs: a recording as a body, and a brain on it next to what was recorded.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tectum::{Device, Error, Receipt, Result, Watch, WorkProgress};

use crate::body::link::LinkStatus;
use crate::body::{Body, BodySpec, Step};
use crate::clock::{ClockKind, SimClock};
use crate::closed_loop::{ClosedLoop, End, Sink, TickRecord};
use crate::recorded::{Recorded, RecordedBody};
use crate::recording::{RecordedCommands, Trace, TraceTick};
use crate::run_folder::TRACE_FILE;
use crate::scenario::Scenario;
use crate::scenario::build::{brain_recipe, driven_spec};

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
        let actions = spec.action.iter().map(|channel| channel.name.as_str());
        if !actions.clone().eq(trace.action_names.iter()) {
            return Err(Error::data(format!(
                "it has the action {}, the body {} has {}",
                trace.action_names.join(", "),
                spec.name,
                actions.collect::<Vec<_>>().join(", ")
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
                arrays
                    .next()
                    .into_iter()
                    .for_each(|array| array.write_to(own));
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

/// How the actions of a brain differ from the recorded ones, in one channel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelDifference {
    /// The channel of the action.
    pub channel: String,
    /// Its unit.
    pub unit: String,
    /// The largest difference, in the unit.
    pub max: f64,
    /// The root of the mean squared difference, in the unit.
    pub rms: f64,
    /// The largest difference as a share of the channel's range.
    pub max_of_range: f64,
    /// The period of the largest difference.
    pub max_tick: u64,
    /// The first period whose action is not the recorded one, bit for bit.
    pub first_tick: Option<u64>,
}

/// A brain on recorded observations.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Periods whose actions were compared.
    pub compared: u64,
    /// Periods in which the recorded action or the new one was no answer of a brain to the
    /// observation: late answers, held ones and safe actions.
    pub not_compared: u64,
    /// Periods that the recording lacks between its first and its last one.
    pub gaps: u64,
    /// A row for each channel of the action.
    pub channels: Vec<ChannelDifference>,
    /// Of the brain.
    pub receipt: Receipt,
}

impl Comparison {
    /// The largest difference as a share of a channel's range.
    pub fn max_of_range(&self) -> f64 {
        let shares = self.channels.iter().map(|channel| channel.max_of_range);
        shares.fold(0.0, f64::max)
    }
}

/// Compares actions with recorded ones, period by period.
struct Comparer<'t> {
    ticks: &'t [TraceTick],
    /// The number of the next period in the recording.
    next: usize,
    compared: u64,
    squares: Vec<f64>,
    channels: Vec<ChannelDifference>,
    widths: Vec<f64>,
}

impl Sink for Comparer<'_> {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let Some(recorded) = self.ticks.get(self.next) else {
            return Ok(());
        };
        self.next += 1;
        if recorded.held || recorded.fallback || record.held || record.fallback {
            return Ok(());
        }
        self.compared += 1;
        for (index, channel) in self.channels.iter_mut().enumerate() {
            // Written with as many digits as float32 needs.
            let (own, other) = (record.action[index], recorded.action[index] as f32);
            let difference = (f64::from(own) - f64::from(other)).abs();
            self.squares[index] += difference * difference;
            if own != other {
                channel.first_tick.get_or_insert(recorded.tick);
            }
            // A number that is not finite differs by more than any other.
            let is_larger = difference > channel.max || !difference.is_finite();
            if is_larger && channel.max.is_finite() {
                let share = difference / self.widths[index];
                (channel.max, channel.max_tick) = (difference, recorded.tick);
                channel.max_of_range = if share.is_finite() {
                    share
                } else {
                    f64::INFINITY
                };
            }
        }
        Ok(())
    }
}

/// What a brain is compared with.
pub struct Recording {
    /// The recording as a body.
    body: Box<dyn Body>,
    /// The recorded actions, without observations.
    actions: Vec<TraceTick>,
    /// What callers had set of the commands of the brain.
    commands: RecordedCommands,
}

impl Recording {
    /// The recording of a run of a scenario.
    ///
    /// # Errors
    /// `Data` for a recording of another body.
    pub fn of_run(scenario: &Scenario, trace: Trace) -> Result<Self> {
        let actions = trace.ticks.iter().map(|tick| TraceTick {
            tick: tick.tick,
            action: tick.action.clone(),
            held: tick.held,
            fallback: tick.fallback,
            ..TraceTick::default()
        });
        Ok(Self {
            actions: actions.collect(),
            commands: trace.commands(),
            body: Box::new(Replay::new(trace, driven_spec(scenario)?)?),
        })
    }

    /// The recording that is the body of a scenario.
    ///
    /// # Errors
    /// `Invalid` for another body.
    pub fn of_body(scenario: &Scenario) -> Result<Self> {
        let recorded = Recorded::of(&scenario.body).ok_or_else(|| {
            Error::invalid(format!(
                "the body {} is no recording: a scenario with [body] recording = \"FILE.mcap\" is needed",
                scenario.body.name
            ))
        })?;
        Ok(Self {
            actions: recorded.actions(),
            commands: RecordedCommands::default(),
            body: Box::new(RecordedBody::new(Arc::clone(recorded))),
        })
    }

    /// The recording as a body, and the recorded actions, period by period, without observations.
    pub fn into_parts(self) -> (Box<dyn Body>, Vec<TraceTick>) {
        (self.body, self.actions)
    }
}

/// Gives the observations of a recording to the brain of a scenario, and compares its actions with
/// the recorded ones. The clock is simulated: an observation follows the one before without a gap,
/// also where the recording has one, and no answer is late.
///
/// # Errors
/// `Data` for a recording without periods; errors of the brain and the device; `Cancelled` if the
/// watch breaks it off.
pub fn compare(
    scenario: &Scenario,
    recording: Recording,
    device: &Device,
    watch: &mut Watch<'_>,
) -> Result<Comparison> {
    let commands = recording.commands.clone();
    let (body, ticks) = recording.into_parts();
    let spec = body.spec().clone();
    let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else {
        return Err(Error::data("the recording has no periods"));
    };
    let gaps = (last.tick + 1).saturating_sub(first.tick + ticks.len() as u64);
    let mut scenario = scenario.clone();
    scenario.set_clock(ClockKind::Sim);
    scenario.set_seconds(ticks.len() as f64 * spec.dt_s)?;
    let brain = brain_recipe(&scenario, &spec)?.build(device, watch)?;
    let mut closed_loop = ClosedLoop::new(body, brain, &scenario.run, device)?;
    closed_loop.set_workload(scenario.workload()?)?;
    closed_loop.repeat_commands(commands)?;
    scenario
        .body
        .input_files()
        .into_iter()
        .for_each(|file| closed_loop.add_input_file(file));
    let difference = |channel: &crate::body::ActionChannel| ChannelDifference {
        channel: channel.name.clone(),
        unit: channel.unit.clone(),
        max: 0.0,
        rms: 0.0,
        max_of_range: 0.0,
        max_tick: first.tick,
        first_tick: None,
    };
    let mut comparer = Comparer {
        ticks: &ticks,
        next: 0,
        compared: 0,
        squares: vec![0.0; spec.action.len()],
        channels: spec.action.iter().map(difference).collect(),
        widths: spec
            .action
            .iter()
            .map(|channel| f64::from(channel.high) - f64::from(channel.low))
            .collect(),
    };
    let mut broken_off = Ok(());
    let outcome = closed_loop.run(&mut SimClock::new(), &mut comparer, &mut |progress| {
        let progress = WorkProgress {
            stage: "replaying",
            done: progress.tick,
            total: progress.ticks,
        };
        broken_off = progress.report(watch);
        match broken_off.is_ok() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    broken_off?;
    if let End::Failed(error) = outcome.end {
        return Err(error);
    }
    let compared = comparer.compared;
    for (channel, squares) in comparer.channels.iter_mut().zip(&comparer.squares) {
        channel.rms = (squares / compared.max(1) as f64).sqrt();
    }
    Ok(Comparison {
        compared,
        not_compared: ticks.len() as u64 - compared,
        gaps,
        channels: comparer.channels,
        receipt: outcome.receipt,
    })
}
