//! The one loop that runs any brain on any body.
//!
//! Time is cut into periods of the body's `dt_s`. Tick k observes at the beginning of period k, asks the brain, and the answer
//! acts for the period; it is due before period k + 1 begins.
//!
//! # Overruns
//! The body never waits. For a period whose answer is late it gets the action before (or the safe action, as
//! [`Overrun`] says), and the period counts as a deadline miss; so does a period that went by before the loop could
//! observe. The late answer is what is held from then on. Every period is stepped, recorded and counted, missed or not: the length
//! of a run does not depend on its speed.
//!
//! # Faults
//! If the brain reports an error or an action that is not finite, the body gets its safe action and the receipt counts the
//! fallback with its reason. A lost device or exhausted memory ends the run after that; other faults do not.

mod metrics;

use std::ops::ControlFlow;
use std::time::Instant;

use tectum::{Device, Error, ErrorKind, Latency, Receipt, Result, RunStats, Session};

use crate::body::{Body, BodySpec};
use crate::brain::Brain;
use crate::clock::Clock;
use crate::scenario::{LoopSettings, Overrun};
use crate::snapshot::{Array, Snapshot};
pub use metrics::{LATENCY_BINS, LatencyHistogram, Metrics, TransfersPerTick, UPRIGHT_RAD};

/// One period as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickRecord<'a> {
    /// Number of the period.
    pub tick: u64,
    /// Its beginning in the body's time, nanoseconds since tick 0.
    pub time_ns: u64,
    /// What the body showed then.
    pub observation: &'a [f32],
    /// What the body was given, in its range.
    pub action: &'a [f32],
    /// The body's angle from upright when it was observed.
    pub angle_rad: f64,
    /// The body's score of the step.
    pub reward: f64,
    /// The answer was late, so `action` is not the brain's answer to `observation`.
    pub held: bool,
    /// The brain failed, so `action` is the safe one.
    pub fallback: bool,
    /// The episode ended with this period; the next begins at a new start.
    pub terminated: bool,
    /// Measured times; none where nothing was measured.
    pub timing: Option<Timing>,
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
    /// Takes a period; must not block for long.
    ///
    /// # Errors
    /// What the operating system reports; the run then ends.
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()>;

    /// Takes the state after a whole number of ticks.
    ///
    /// # Errors
    /// As [`Sink::tick`].
    fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()>;
}

/// What a watcher sees after each period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Periods done.
    pub tick: u64,
    /// Periods in all.
    pub ticks: u64,
    /// Body time done.
    pub seconds: f64,
    /// The body's angle from upright.
    pub angle_rad: f64,
    /// Share of the periods so far that began upright.
    pub upright_fraction: f64,
    /// Host time of the last answer.
    pub latency_ms: f64,
    /// Deadline misses so far.
    pub deadline_misses: u64,
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// After its last tick.
    Completed,
    /// Because the watcher asked.
    Interrupted,
    /// Because the device, the memory or a file failed.
    Failed(Error),
}

/// What is known after a run.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Counts over the whole run, from tick 0 even if it was resumed.
    pub metrics: Metrics,
    /// Body time of the whole run.
    pub seconds: f64,
    /// Seconds until the body was upright for at least a second.
    pub time_to_upright_s: Option<f64>,
    /// Host time of the answers since the loop was made or resumed.
    pub tick_ms: Latency,
    /// The same as a histogram.
    pub latency: LatencyHistogram,
    /// Transfers of an answer.
    pub transfers: TransfersPerTick,
    /// The proof.
    pub receipt: Receipt,
}

/// A body and a brain, run together.
///
/// The constructor allocates what ticks need; [`ClosedLoop::run`] allocates nothing per tick but for faults and snapshots.
pub struct ClosedLoop {
    body: Box<dyn Body>,
    brain: Box<dyn Brain>,
    spec: BodySpec,
    settings: LoopSettings,
    ticks: u64,
    dt_ns: u64,
    session: Session,
    metrics: Metrics,
    latency: LatencyHistogram,
    transfers: TransfersPerTick,
    last_latency_ns: u64,
    observation: Vec<f32>,
    answer: Vec<f32>,
    held: Vec<f32>,
    trace_at_end: bool,
}

impl ClosedLoop {
    /// Puts a body and a brain together; the body stands at its start. `requested` is the device that was asked for, and the
    /// receipt tells if the brain does not run on it.
    ///
    /// # Errors
    /// What the CPU device reports, on which host arithmetic is counted.
    pub fn new(body: Box<dyn Body>, brain: Box<dyn Brain>, settings: &LoopSettings, requested: &Device) -> Result<Self> {
        let device = brain.device().cloned().map_or_else(|| Device::open("cpu"), Ok)?;
        let mut session = Session::new(&device);
        session.uses_code(&brain.code());
        if device.info().id != requested.info().id {
            let reason = format!("plain host arithmetic; {} is not used", requested.info().id);
            session.fell_back(&format!("brain {}", brain.name()), &reason);
        }
        let spec = body.spec().clone();
        Ok(Self {
            ticks: ((settings.seconds / spec.dt_s).round() as u64).max(1),
            dt_ns: (spec.dt_s * 1e9).round() as u64,
            settings: settings.clone(),
            session,
            metrics: Metrics::new(settings.seed),
            latency: LatencyHistogram::default(),
            transfers: TransfersPerTick::default(),
            last_latency_ns: 0,
            observation: vec![0.0; spec.observation.len()],
            answer: spec.safe_action.clone(),
            held: spec.safe_action.clone(),
            spec,
            body,
            brain,
            trace_at_end: false,
        })
    }

    /// Whether each launch of one more tick is timed after the run, for the receipt.
    pub fn trace_at_end(&mut self, trace: bool) {
        self.trace_at_end = trace;
    }

    /// What is constant about the body.
    pub fn body_spec(&self) -> &BodySpec {
        &self.spec
    }

    /// Number of periods of the whole run.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Body, brain and loop as named arrays.
    ///
    /// # Errors
    /// What the brain's device reports.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = self.metrics.snapshot("loop");
        snapshot.insert("loop.held_action", Array::F32(self.held.clone()));
        snapshot.insert("body.state", Array::F64(self.body.state()));
        snapshot.insert_all("brain", self.brain.snapshot()?);
        Ok(snapshot)
    }

    /// Goes back to where [`ClosedLoop::snapshot`] was taken: what follows is the same, bit for bit, on the same device and a clock
    /// that is not real. Gives the tick that comes next.
    ///
    /// # Errors
    /// `Data` if arrays are missing or belong to another body or brain; a run that has no ticks left.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<u64> {
        let metrics = Metrics::restored(snapshot, "loop")?;
        if metrics.ticks >= self.ticks {
            let (done_s, all_s) = (self.seconds(metrics.ticks), self.seconds(self.ticks));
            return Err(Error::invalid(format!("resume: {done_s} s of the run are done, it ends after {all_s} s; nothing is left")));
        }
        let held = snapshot.f32("loop.held_action", self.held.len())?;
        let state = snapshot.f64("body.state", self.body.state().len())?;
        self.brain.restore(&snapshot.part("brain"))?;
        self.body.set_state(state)?;
        self.held.copy_from_slice(held);
        self.metrics = metrics;
        Ok(self.metrics.ticks)
    }

    /// Runs to the end, or until the watcher breaks or something fails for good; sends every period to the sink, a snapshot every
    /// so many ticks and the last one at the end. The clock is at 0.
    pub fn run(
        &mut self,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Outcome {
        let end = self.run_ticks(clock, sink, watch).unwrap_or_else(End::Failed);
        let saved = self.snapshot().and_then(|snapshot| sink.snapshot(&snapshot));
        let end = match (saved, end) {
            (Err(error), End::Completed | End::Interrupted) => End::Failed(error),
            (Err(error), end) => {
                self.session.fell_back("last snapshot", &error.to_string());
                end
            }
            (Ok(()), end) => end,
        };
        if self.trace_at_end && !matches!(end, End::Failed(_)) {
            match self.brain.trace() {
                Ok(launches) => self.session.traced(launches),
                Err(error) => self.session.fell_back("trace", &error.to_string()),
            }
        }
        if let End::Failed(error) = &end {
            self.session.fell_back(&format!("run stopped at tick {}", self.metrics.ticks), &error.to_string());
        }
        self.outcome(end)
    }

    fn run_ticks(
        &mut self,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<End> {
        let first = self.metrics.ticks;
        while self.metrics.ticks < self.ticks {
            let begin_ns = (self.metrics.ticks - first) * self.dt_ns;
            let lateness_ns = clock.wait_until(begin_ns);
            let lapsed = lateness_ns / self.dt_ns;
            if lapsed > 0 {
                self.miss(lapsed, sink)?;
            } else {
                self.tick(begin_ns, lateness_ns, clock, sink)?;
            }
            if watch(&self.progress()).is_break() {
                return Ok(End::Interrupted);
            }
            let every = self.settings.snapshot_every;
            if every > 0 && self.metrics.ticks.is_multiple_of(every) && self.metrics.ticks < self.ticks {
                sink.snapshot(&self.snapshot()?)?;
            }
        }
        Ok(End::Completed)
    }

    /// One answer, and the periods that pass until it is there.
    fn tick(&mut self, begin_ns: u64, lateness_ns: u64, clock: &mut dyn Clock, sink: &mut dyn Sink) -> Result<()> {
        self.body.observe(&mut self.observation);
        let asked = Instant::now();
        let result = self.brain.tick(&self.observation, &mut self.answer);
        let latency_ns = asked.elapsed().as_nanos() as u64;
        let stats = result.as_ref().ok().copied();
        let fault = self.take_answer(result);
        if let Some(stats) = stats {
            self.count_answer(&stats, latency_ns);
        }
        let missed = (clock.now_ns() - begin_ns) / self.dt_ns;
        self.last_latency_ns = latency_ns;
        let timing = clock.is_real().then_some(Timing { latency_ns, lateness_ns });
        if missed > 0 {
            self.miss(missed, sink)?;
            self.held.copy_from_slice(&self.answer);
        } else {
            self.held.copy_from_slice(&self.answer);
            self.apply(false, fault.is_some(), timing, sink)?;
        }
        match fault {
            Some(Fault::Fatal(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Brings the answer into the action's range, or puts the safe action in its place and notes why.
    fn take_answer(&mut self, result: Result<RunStats>) -> Option<Fault> {
        let fault = match result {
            Err(error) => {
                self.session.fell_back("safe action", &error.to_string());
                let is_fatal = matches!(error.kind(), ErrorKind::DeviceLost | ErrorKind::OutOfMemory);
                Some(if is_fatal { Fault::Fatal(error) } else { Fault::Passing })
            }
            Ok(_) if self.answer.iter().any(|number| !number.is_finite()) => {
                self.session.fell_back("safe action", "the brain's action is not finite");
                Some(Fault::Passing)
            }
            Ok(_) => None,
        };
        if fault.is_some() {
            self.metrics.fallbacks += 1;
            self.answer.copy_from_slice(&self.spec.safe_action);
        }
        for (number, channel) in self.answer.iter_mut().zip(&self.spec.action) {
            *number = channel.applied(*number).unwrap_or(*number);
        }
        fault
    }

    fn count_answer(&mut self, stats: &RunStats, latency_ns: u64) {
        self.session.record(stats, latency_ns);
        self.latency.record(latency_ns);
        self.transfers.record(stats);
    }

    /// Lets periods pass whose answer is not there.
    fn miss(&mut self, periods: u64, sink: &mut dyn Sink) -> Result<()> {
        for _ in 0..periods.min(self.ticks - self.metrics.ticks) {
            if self.settings.overrun == Overrun::Safe {
                self.held.copy_from_slice(&self.spec.safe_action);
            }
            self.body.observe(&mut self.observation);
            self.metrics.deadline_misses += 1;
            self.apply(true, false, None, sink)?;
        }
        Ok(())
    }

    /// Steps the body through one period with the held action.
    fn apply(&mut self, held: bool, fallback: bool, timing: Option<Timing>, sink: &mut dyn Sink) -> Result<()> {
        let angle_rad = self.body.upright_angle_rad();
        let step = self.body.step(&self.held);
        let tick = self.metrics.ticks;
        let record = TickRecord {
            tick,
            time_ns: tick * self.dt_ns,
            observation: &self.observation,
            action: &self.held,
            angle_rad,
            reward: step.reward,
            held,
            fallback,
            terminated: step.terminated,
            timing,
        };
        sink.tick(&record)?;
        self.metrics.count_period(angle_rad, step.reward, self.spec.dt_s);
        if step.terminated {
            self.body.reset(self.metrics.next_episode());
            self.held.copy_from_slice(&self.spec.safe_action);
        }
        Ok(())
    }

    fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.dt_ns as f64 / 1e9
    }

    fn progress(&self) -> Progress {
        Progress {
            tick: self.metrics.ticks,
            ticks: self.ticks,
            seconds: self.seconds(self.metrics.ticks),
            angle_rad: self.body.upright_angle_rad(),
            upright_fraction: self.metrics.upright_fraction(),
            latency_ms: self.last_latency_ns as f64 / 1e6,
            deadline_misses: self.metrics.deadline_misses,
        }
    }

    fn outcome(&self, end: End) -> Outcome {
        Outcome {
            end,
            metrics: self.metrics.clone(),
            seconds: self.seconds(self.metrics.ticks),
            time_to_upright_s: self.metrics.upright_since_tick.map(|tick| self.seconds(tick)),
            tick_ms: self.session.latency_ms(),
            latency: self.latency.clone(),
            transfers: self.transfers,
            receipt: self.session.receipt(),
        }
    }
}

enum Fault {
    Passing,
    Fatal(Error),
}
