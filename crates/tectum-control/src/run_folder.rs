//! The output folder of a run: `runs/<n>/`.
//!
//! [`FILES`] lists its files: `summary.json` is a [`RunSummary`], `trace.mcap` a
//! [`recording`](crate::recording).
//!
//! A run writes to `runs/<n>.partial/`, which is renamed as the last step, so `runs/<n>/` is always
//! complete. A run that fails before its first tick removes the folder; one that fails later still
//! completes it with the data so far, and summary and receipt say how it ended. Only a crash leaves
//! a `.partial` behind, in which each JSON file and snapshot is complete or absent. The first
//! snapshot is taken before the first tick, so it can be resumed; the recording can be
//! [recovered](crate::recording::recover_recording).

mod repeat;
mod run;

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Number, Value, json};
use tectum::{Error, Latency, LatencyHistogram, Result, file};

use crate::body::Body;
use crate::body::equations::PLANT_FILE;
use crate::body::link::{LINK_FILE, LinkSummary};
use crate::body::mujoco::FILES_FILE;
use crate::body::task::Measure;
use crate::closed_loop::{
    ClosedLoop, DeviceSpan, End, EpisodeReturns, Outcome, Overrun, Sink, TaskSummary, TickRecord,
    TransfersPerTick,
};
use crate::real_time::GrantedRealTime;
use crate::recording::Recorder;
use crate::scenario::build::build_body;
use crate::scenario::{ClockKind, Scenario};
use crate::twin::LearningCounts;
pub use repeat::{Repetition, repeat};
pub use run::run;
use tectum::snapshot::Snapshot;
use toml::Table;

/// The effective scenario.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// The receipt.
pub const RECEIPT_FILE: &str = "receipt.json";
/// The summary.
pub const SUMMARY_FILE: &str = "summary.json";
/// The recording.
pub const TRACE_FILE: &str = "trace.mcap";
/// The state.
pub const SNAPSHOT_FILE: &str = "snapshot.safetensors";

/// The files of a folder and what they hold.
pub const FILES: [(&str, &str); 8] = [
    (SCENARIO_FILE, "the scenario as it ran, overrides applied"),
    (
        PLANT_FILE,
        "the equation file of the body, if it has one, as it ran; a run that is continued or repeated reads it",
    ),
    (
        FILES_FILE,
        "the files of a MuJoCo body with their hashes; a run that is continued or repeated needs them unchanged",
    ),
    (
        LINK_FILE,
        "what a body outside of the process stated of itself; a repeated run reads it, and the recording in place of the body",
    ),
    (
        RECEIPT_FILE,
        "on which device and by which code it was computed, with which faults",
    ),
    (
        SUMMARY_FILE,
        "results: task, latencies, deadline misses, fallbacks",
    ),
    (TRACE_FILE, "every period"),
    (
        SNAPSHOT_FILE,
        "the state after the last tick, or the last one that could be taken; a resumed run begins with it",
    ),
];

/// The metadata record of the recording: `body` and `brain` are their names, `scenario` is the text
/// of [`SCENARIO_FILE`].
pub const RUN_METADATA: &str = "tectum.run";

/// Reads the scenario of a run folder, to resume or repeat the run.
///
/// # Errors
/// `Io` or `Data` naming the file; a body or a brain that is neither built in nor registered in
/// this process (see [`register_body`](crate::body::register_body) and
/// [`register_brain`](crate::brain::register_brain)).
pub fn read_scenario(folder: &Path) -> Result<Scenario> {
    Scenario::read_record(&folder.join(SCENARIO_FILE))
}

/// Makes the body of a run folder's scenario again, and what its task measures.
///
/// # Errors
/// As [`read_scenario`]; a body that cannot be made, such as an equation file that is gone.
pub fn read_body(folder: &Path) -> Result<(Box<dyn Body>, Option<Measure>)> {
    let scenario = read_scenario(folder)?;
    let measure = scenario.body.task()?.map(|task| task.measure().clone());
    Ok((build_body(&scenario)?, measure))
}

/// The result of a run, as in `summary.json` and in the last line of `tectum run --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// The scenario's name.
    pub scenario: String,
    /// The body's name.
    pub body: String,
    /// The brain's name.
    pub brain: String,
    /// Id of the device that the answers were computed on.
    pub device: String,
    /// Whether that device is a software adapter.
    pub software: bool,
    /// Seed of the run.
    pub seed: u64,
    /// The clock of the run.
    pub clock: ClockKind,
    /// Body time, from tick 0.
    pub seconds: f64,
    /// Periods, from tick 0.
    pub ticks: u64,
    /// The tick at which this process resumed, 0 for a run that was not resumed. Latencies,
    /// transfers and the receipt begin there.
    pub resumed_at_tick: u64,
    /// Results of the task, under its own names.
    #[serde(flatten)]
    pub task: Option<TaskSummary>,
    /// The body's period, within which an answer is due.
    pub period_ms: f64,
    /// Periods whose answer was late.
    pub deadline_misses: u64,
    /// What the body got for them.
    pub overrun: Overrun,
    /// Answers replaced by the safe action.
    pub fallbacks: u64,
    /// Number of times that the brain failed and recovered; the receipt has the details.
    pub recoveries: u64,
    /// Id of the device that answered at the end; `device` unless a fault moved the brain.
    pub device_at_end: String,
    /// The devices that answered since this process began, in order: several if a fault moved the
    /// brain.
    pub devices: Vec<DeviceUse>,
    /// Episodes begun.
    pub episodes: u64,
    /// Episodes that ended.
    pub ended_episodes: u64,
    /// Those that the body terminated; the others reached its time limit.
    pub terminated_episodes: u64,
    /// The returns of the episodes that ended; none if none did.
    pub episode_return: Option<EpisodeReturns>,
    /// Transfers of an answer, `{"up", "down"}`: whole numbers if every answer had the same, else
    /// means.
    pub transfers_per_tick: Value,
    /// Host time of an answer.
    pub tick_ms: Latency,
    /// Time from the beginning of a period until the loop woke up for it, under a real clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_ms: Option<Latency>,
    /// The host times of answers, `[from ms, answers]` for each tenth of a decade that has some.
    pub tick_histogram: Vec<(f64, u64)>,
    /// The same for the lateness.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_histogram: Option<Vec<(f64, u64)>>,
    /// The period of the motors, where the body has several in each period of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub motor_period_ms: Option<f64>,
    /// Their periods that began after their end, under a real clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub motor_deadline_misses: Option<u64>,
    /// Time from the beginning of each until it began, under a real clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub motor_lateness_ms: Option<Latency>,
    /// What the operating system granted for the loop's threads and memory, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_time: Option<GrantedRealTime>,
    /// The connection of a body outside of the process, since this process began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkSummary>,
    /// The tick from which the body got its safe action because a limit was passed or the switch
    /// was pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emergency_stop_tick: Option<u64>,
    /// Sum of the rewards.
    #[serde(rename = "return")]
    pub total_reward: f64,
    /// Counters of a brain that learns a model while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning: Option<LearningCounts>,
    /// What the brain reports of its ticks, such as an output that never changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The keys of `[body]` in the scenario besides the name.
    pub body_settings: Table,
    /// The keys of `[brain]` in the scenario besides the name.
    pub brain_settings: Table,
    /// `completed`, `interrupted` or `failed`.
    pub end: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The folder.
    pub run_folder: String,
}

/// A device that answered for a part of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceUse {
    /// Its id.
    pub device: String,
    /// The tick from which it answered; 0 for the first.
    pub from_tick: u64,
    /// Host time of its answers.
    pub tick_ms: Latency,
}

impl RunSummary {
    /// Summarises a run. Of the scenario it has name and seed; body, brain and clock are those that
    /// ran.
    pub fn new(
        scenario: &Scenario,
        outcome: &Outcome,
        real_time: Option<GrantedRealTime>,
        resumed_at_tick: u64,
        run_folder: &Path,
    ) -> Self {
        let (end, error) = match &outcome.end {
            End::Completed => ("completed", None),
            End::Interrupted => ("interrupted", None),
            End::Failed(error) => ("failed", Some(error.to_string())),
        };
        let device = &outcome.receipt.device;
        let inner = outcome.inner.as_ref().map(|(_, inner)| inner);
        let inner = inner.filter(|inner| inner.count > 0);
        let of_span = |span: &DeviceSpan| DeviceUse {
            device: span.device.clone().unwrap_or_else(|| device.id.clone()),
            from_tick: span.from_tick,
            tick_ms: span.latency.percentiles(),
        };
        Self {
            scenario: scenario.name.clone(),
            body: outcome.workload.body.clone(),
            brain: outcome.workload.brain.clone(),
            device: device.id.clone(),
            software: device.software,
            seed: scenario.run.seed,
            clock: if outcome.lateness.is_some() {
                ClockKind::Real
            } else {
                ClockKind::Sim
            },
            seconds: outcome.seconds,
            ticks: outcome.metrics.ticks,
            resumed_at_tick,
            task: outcome.task.clone(),
            period_ms: 1e3 * outcome.period_s,
            deadline_misses: outcome.metrics.deadline_misses,
            overrun: outcome.overrun,
            fallbacks: outcome.metrics.fallbacks,
            recoveries: outcome.receipt.recovery_count,
            device_at_end: outcome
                .device_at_end
                .clone()
                .unwrap_or_else(|| device.id.clone()),
            devices: outcome.devices.iter().map(of_span).collect(),
            episodes: outcome.metrics.episodes,
            ended_episodes: outcome.metrics.ended.ended,
            terminated_episodes: outcome.metrics.ended.terminated,
            episode_return: outcome.metrics.ended.returns(),
            transfers_per_tick: transfers_json(&outcome.transfers),
            tick_ms: outcome.latency.percentiles(),
            lateness_ms: outcome.lateness.as_ref().map(LatencyHistogram::percentiles),
            tick_histogram: outcome.latency.bins(),
            lateness_histogram: outcome.lateness.as_ref().map(LatencyHistogram::bins),
            motor_period_ms: outcome.inner.as_ref().map(|(period_s, _)| 1e3 * period_s),
            motor_deadline_misses: inner.map(|inner| inner.missed),
            motor_lateness_ms: inner.map(|inner| inner.lateness.percentiles()),
            real_time,
            link: outcome.workload.link.clone(),
            emergency_stop_tick: outcome.stopped_at_tick,
            total_reward: outcome.metrics.total_reward,
            learning: outcome.learning,
            notes: outcome.notes.clone(),
            body_settings: outcome.workload.body_settings.clone(),
            brain_settings: outcome.workload.brain_settings.clone(),
            end,
            error,
            run_folder: run_folder.display().to_string(),
        }
    }
}

/// A run folder in progress; if it is dropped before the first tick, it removes itself.
pub struct RunFolder {
    partial: PathBuf,
    complete: PathBuf,
    created_parent: Option<PathBuf>,
    recorder: Option<Recorder<BufWriter<File>>>,
    trace: Option<File>,
    is_kept: bool,
}

impl RunFolder {
    /// Takes the next free number in `runs`, writes the scenario and starts the recording: from the
    /// first snapshot on, a killed run can be resumed from its files. The settings of the scenario
    /// are stated in the loop's receipt.
    ///
    /// # Errors
    /// `Invalid` for a scenario of another body or brain than the loop's; `Io` naming the path.
    pub fn create(runs: &Path, scenario: &Scenario, closed_loop: &mut ClosedLoop) -> Result<Self> {
        closed_loop
            .set_workload(scenario.workload()?)
            .map_err(|error| error.at("run folder"))?;
        let text = scenario.to_toml()?;
        let created_parent = (!runs.exists()).then(|| runs.to_owned());
        std::fs::create_dir_all(runs).map_err(|source| Error::io(runs.display(), source))?;
        let (partial, complete) = create_next_folder(runs)?;
        file::sync_folder(runs)?;
        let mut folder = Self {
            partial,
            complete,
            created_parent,
            recorder: None,
            trace: None,
            is_kept: false,
        };
        file::write(&folder.partial.join(SCENARIO_FILE), text.as_bytes())?;
        scenario.body.text().map_or(Ok(()), |text| {
            let path = folder.partial.join(scenario.body.text_file());
            file::write(&path, text.as_bytes())
        })?;
        let path = folder.partial.join(TRACE_FILE);
        let file = File::create_new(&path).map_err(|source| Error::io(path.display(), source))?;
        folder.trace = Some(
            file.try_clone()
                .map_err(|source| Error::io(path.display(), source))?,
        );
        let mut recorder = Recorder::new(
            BufWriter::new(file),
            closed_loop.body_spec(),
            closed_loop.measure(),
        )?;
        recorder.add_commands(closed_loop.commands())?;
        let names = [
            ("body", scenario.body.name.as_str()),
            ("brain", scenario.brain.name()),
            ("scenario", &text),
        ];
        recorder.add_metadata(
            RUN_METADATA,
            names
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .into(),
        )?;
        folder.recorder = Some(recorder);
        Ok(folder)
    }

    /// The folder for files until it is complete.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// The final path of the folder.
    pub fn complete_path(&self) -> &Path {
        &self.complete
    }

    /// Closes the recording and writes receipt and summary.
    ///
    /// # Errors
    /// `Io` naming the path.
    pub fn write(&mut self, outcome: &Outcome, summary: &RunSummary) -> Result<()> {
        if let Some(recorder) = self.recorder.take() {
            let file = recorder.finish()?;
            file.into_inner().map_err(|error| {
                Error::io(self.partial.join(TRACE_FILE).display(), error.into_error())
            })?;
            self.sync_trace()?;
        }
        write_json(&self.partial.join(RECEIPT_FILE), &outcome.receipt)?;
        write_json(&self.partial.join(SUMMARY_FILE), summary)
    }

    fn sync_trace(&self) -> Result<()> {
        let synced = self.trace.as_ref().map_or(Ok(()), File::sync_all);
        synced.map_err(|source| Error::io(self.partial.join(TRACE_FILE).display(), source))
    }

    /// Gives the folder its final name.
    ///
    /// # Errors
    /// `Io` naming the path; the partial folder stays.
    pub fn complete(mut self) -> Result<PathBuf> {
        self.is_kept = true;
        file::rename_folder(&self.partial, &self.complete)?;
        tracing::info!(folder = %self.complete.display(), "run folder complete");
        Ok(self.complete.clone())
    }
}

impl Sink for RunFolder {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.is_kept = true;
        match &mut self.recorder {
            Some(recorder) => recorder
                .push(record)
                .map_err(|error| error.at(self.partial.join(TRACE_FILE).display())),
            None => Ok(()),
        }
    }

    /// On disk, the recording covers at least the time up to the snapshot.
    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush()?;
            self.sync_trace()?;
        }
        snapshot.save(&self.partial.join(SNAPSHOT_FILE))?;
        tracing::debug!(folder = %self.partial.display(), "snapshot saved");
        Ok(())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // An error here is not reported: the caller already returns another error.
            let _ = std::fs::remove_dir_all(&self.partial);
            if let Some(parent) = &self.created_parent {
                let _ = std::fs::remove_dir(parent);
            }
        }
    }
}

/// Creates `<n>.partial` for the first n above all others. Creating a folder is atomic, and the
/// owner of `<n>.partial` may take `<n>`, unless it was completed between the listing and the
/// creation.
fn create_next_folder(runs: &Path) -> Result<(PathBuf, PathBuf)> {
    let last = last_run_number(runs)?;
    for number in last
        .checked_add(1)
        .into_iter()
        .flat_map(|first| first..=u64::MAX)
    {
        let (partial, complete) = (
            runs.join(format!("{number}.partial")),
            runs.join(number.to_string()),
        );
        match std::fs::create_dir(&partial) {
            Ok(()) if !complete.exists() => return Ok((partial, complete)),
            Ok(()) => std::fs::remove_dir(&partial)
                .map_err(|source| Error::io(partial.display(), source))?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io(partial.display(), error)),
        }
    }
    Err(Error::invalid(format!(
        "{}: run {last} has no next number; rename its folder",
        runs.display()
    )))
}

fn last_run_number(runs: &Path) -> Result<u64> {
    let entries = std::fs::read_dir(runs).map_err(|source| Error::io(runs.display(), source))?;
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        name.strip_suffix(".partial")
            .unwrap_or(&name)
            .parse::<u64>()
            .ok()
    };
    Ok(entries.filter_map(number).max().unwrap_or(0))
}

fn transfers_json(transfers: &TransfersPerTick) -> Value {
    match transfers.constant_counts() {
        Some((up, down)) => json!({ "up": up, "down": down }),
        None => {
            let number = |mean| Number::from_f64(mean).map_or(Value::Null, Value::Number);
            let (up, down) = transfers.mean();
            json!({ "up": number(up), "down": number(down) })
        }
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|source| {
        Error::data(format!("{}: cannot be encoded", path.display())).with_source(source)
    })?;
    text.push(b'\n');
    file::write(path, &text)
}
