//! What a loop reports while it runs and when it is done.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tectum::{ContentHasher, Error, LatencyHistogram, Receipt, Result};

use super::controller::DeviceSpan;
use super::metrics::{Metrics, TransfersPerTick};
use super::settings::Overrun;
use crate::body::InnerPeriods;
use crate::body::link::{LinkStatus, LinkSummary};
use crate::body::task::Measure;
use crate::twin::LearningCounts;
use tectum::snapshot::Snapshot;
use toml::Table;

/// One period as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickRecord<'a> {
    /// Number of the period.
    pub tick: u64,
    /// Its beginning in the body's time, nanoseconds since tick 0.
    pub time_ns: u64,
    /// The observation at that time.
    pub observation: &'a [f32],
    /// The action applied to the body, in its range.
    pub action: &'a [f32],
    /// What the task measured when the body was observed; NaN without a task.
    pub measure: f64,
    /// The score of the step.
    pub reward: f64,
    /// The answer was late or the body sent no new observation, so `action` is not the brain's
    /// answer to `observation`.
    pub held: bool,
    /// No brain answered, so `action` is the safe one: the brain failed, or the body starts by
    /// itself.
    pub fallback: bool,
    /// The episode ended with this period; the next begins at a new start.
    pub terminated: bool,
    /// Measured times; none if they were not measured.
    pub timing: Option<Timing>,
    /// The connection of a body outside of the process; none for other bodies.
    pub link: Option<LinkStatus>,
    /// What callers have set of the brain's commands, where the answer of this period was the first
    /// to use it: NaN for one that follows its schedule.
    pub commands: Option<&'a [f64]>,
}

impl TickRecord<'_> {
    /// Adds the period to a hash, without its measured times and its connection.
    pub(super) fn hash_into(&self, hasher: &mut ContentHasher) {
        hasher.update(&self.tick.to_le_bytes());
        hasher.update(&self.time_ns.to_le_bytes());
        for number in self.observation.iter().chain(self.action) {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&self.measure.to_le_bytes());
        hasher.update(&self.reward.to_le_bytes());
        hasher.update(&[self.held, self.fallback, self.terminated].map(u8::from));
    }
}

/// Measured times of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Host time of the brain's tick.
    pub latency_ns: u64,
    /// From the beginning of the period to the observation.
    pub lateness_ns: u64,
}

/// Where periods and snapshots go.
pub trait Sink {
    /// Accepts a period; must not block for long (see
    /// [`run_with_sink_thread`](super::run_with_sink_thread) for a sink that might).
    ///
    /// # Errors
    /// What the operating system reports; the run then ends.
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()>;

    /// Accepts the state after a whole number of ticks; discarded by default.
    ///
    /// # Errors
    /// As [`Sink::tick`].
    fn snapshot(&mut self, _snapshot: Snapshot) -> Result<()> {
        Ok(())
    }

    /// Returns when everything accepted has been written; the loop ends with it.
    ///
    /// # Errors
    /// As [`Sink::tick`], also for what was accepted before.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The sink that keeps nothing, for runs of which only the [`Outcome`] counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl Sink for Discard {
    fn tick(&mut self, _: &TickRecord<'_>) -> Result<()> {
        Ok(())
    }
}

/// What a watcher sees after each period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Periods done.
    pub tick: u64,
    /// Total number of periods.
    pub ticks: u64,
    /// Body time done.
    pub seconds: f64,
    /// What the task measures; NaN without a task.
    pub measure: f64,
    /// Share of the periods so far that began in success.
    pub success_fraction: f64,
    /// Host time of the last answer.
    pub latency_ms: f64,
    /// Deadline misses so far.
    pub deadline_misses: u64,
    /// Episodes that the body terminated so far.
    pub terminated_episodes: u64,
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// After its last tick.
    Completed,
    /// Because the watcher requested it.
    Interrupted,
    /// Because the device, the memory or a file failed.
    Failed(Error),
}

/// The results of a task. Its JSON has the task's own names: `upright_fraction` and
/// `time_to_upright_s` where success is to be upright, `falls` alone where a fall loses the task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    /// What was measured.
    pub measure: Measure,
    /// Share of the periods that began in success.
    pub success_fraction: f64,
    /// Seconds until the first success that lasted.
    pub time_to_success_s: Option<f64>,
    /// Episodes that the body terminated.
    pub losses: u64,
}

impl Serialize for TaskSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(loss) = &self.measure.loss {
            map.serialize_entry(loss, &self.losses)?;
            return map.end();
        }
        map.serialize_entry(
            &format!("{}_fraction", self.measure.success),
            &self.success_fraction,
        )?;
        map.serialize_entry(
            &format!("time_to_{}_s", self.measure.success),
            &self.time_to_success_s,
        )?;
        map.end()
    }
}

/// What a loop runs, under the names that body and brain have themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Workload {
    /// The body's name.
    pub body: String,
    /// The keys of `[body]` in its scenario besides the name; empty for a loop without a scenario.
    pub body_settings: Table,
    /// Versions of the programs that step the body, where it is not part of this one.
    #[serde(skip_serializing_if = "Table::is_empty")]
    pub body_versions: Table,
    /// The brain's name.
    pub brain: String,
    /// The keys of `[brain]` in its scenario besides the name; empty for a loop without a scenario.
    pub brain_settings: Table,
    /// The connection of a body outside of the process, over the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSummary>,
}

/// The result of a run, of one that failed too: [`Outcome::into_result`] returns the failure as an
/// error.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Counts over the whole run, from tick 0 even if it was resumed.
    pub metrics: Metrics,
    /// Body time of the whole run.
    pub seconds: f64,
    /// The body's period.
    pub period_s: f64,
    /// What the body got while an answer was late.
    pub overrun: Overrun,
    /// Results of the task, if it had one.
    pub task: Option<TaskSummary>,
    /// Host time of the answers since the loop was made or resumed.
    pub latency: LatencyHistogram,
    /// How late the loop woke up for its periods since then; none under a clock that is not real.
    pub lateness: Option<LatencyHistogram>,
    /// The period of what the body steps several times in each of its own, in seconds, and its
    /// periods under a real clock.
    pub inner: Option<(f64, InnerPeriods)>,
    /// Transfers of an answer.
    pub transfers: TransfersPerTick,
    /// Id of the device that answered at the end; none for plain host arithmetic, or if no brain
    /// answered.
    pub device_at_end: Option<String>,
    /// The devices that answered, in order, since the loop was made or resumed: several if a fault
    /// moved the brain.
    pub devices: Vec<DeviceSpan>,
    /// The tick from which the body got its safe action because a limit was passed or the switch
    /// was pressed.
    pub stopped_at_tick: Option<u64>,
    /// Counters of a brain that learns a model while it runs.
    pub learning: Option<LearningCounts>,
    /// What the brain reports of its ticks, such as an output that never changed.
    pub notes: Vec<String>,
    /// What ran.
    pub workload: Workload,
    /// The proof.
    pub receipt: Receipt,
}

impl Outcome {
    /// The outcome of a run that did not fail.
    ///
    /// # Errors
    /// The reason of [`End::Failed`]; what was counted until then is dropped.
    pub fn into_result(self) -> Result<Self> {
        match self.end {
            End::Failed(error) => Err(error),
            End::Completed | End::Interrupted => Ok(self),
        }
    }
}
