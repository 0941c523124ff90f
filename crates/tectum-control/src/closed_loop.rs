//! The loop that runs any brain on any body.
//!
//! Time is divided into periods of the body's `dt_s`. Tick k observes at the beginning of period k
//! and queries the brain. The answer is applied for the period; it is due before period k + 1
//! begins.
//!
//! # Overruns
//! The body never waits. For a period whose answer is late it gets the previous action (or the safe
//! action, depending on [`Overrun`]), and the period counts as a deadline miss; so does a period
//! that passed before the loop could observe. The late answer is held from then on. Every period is
//! stepped, recorded and counted, missed or not: the length of a run does not depend on its speed.
//! A brain that computes apart from its ticks may have no answer in time
//! ([`Brain::unanswered_ticks`]): such a period is treated the same way.
//!
//! # Faults
//! A tick that fails gets the body's safe action, and the receipt gives the reason. The recovery
//! depends on the fault:
//!
//! | fault | the brain continues |
//! |---|---|
//! | device lost, its memory exhausted | on the CPU, from the last snapshot on the host |
//! | NaN or infinity in an action, NaN in the state at a snapshot | the same; a brain that is already on the CPU restores in place |
//! | an answer `stall_periods` late, or missing for as many ticks | the same; a brain that is already on the CPU keeps its state |
//! | NaN or infinity in the observation | unchanged, at the next finite observation |
//! | any other error of the brain | unchanged, at the next tick |
//!
//! The CPU's brain is built and restored on a separate thread; until it is ready, ticks get the
//! safe action. The receipt lists each recovery with the ticks that were lost. A run ends only if
//! no recovery is possible.
//!
//! A body outside of the process reports the state of its connection in each period
//! ([`Body::link`]). The brain is queried for new observations only; without one the last action is
//! held for a short time, and then the body gets its safe action until it is armed again.
//!
//! Readings may be guarded ([`ChannelGuard`]): an outlier is replaced, and beyond a limit, or when
//! a [`StopSwitch`] is pressed, the body gets its safe action from then on to the end of the run;
//! neither brain nor stand-in is queried. The receipt gives the reason. A resumed run starts
//! unstopped.
//!
//! A stand-in follows every period and is one more fallback: where the brain fails in time, is
//! being rebuilt or cannot recover, the stand-in answers. The safe action is then used only for
//! readings that are not finite and for missing answers.

mod commands;
mod controller;
mod episodes;
mod film;
mod guard;
mod injection;
mod journal;
mod metrics;
mod report;
pub(crate) mod settings;
mod sink_thread;
mod stand_in;
mod stop_switch;
mod telemetry;
mod trials;

use std::ops::ControlFlow;

use tectum::{ContentHasher, Device, Error, InputFile, LatencyHistogram, Receipt, Result, Session};

use self::commands::Commands;
use self::controller::{Answer, Controller, Failure, Passed, Period, Recovering, Source};
use self::film::Filmed;
use self::guard::{Guard, Guarded};
use self::injection::{BrainFaults, FaultyBody, pending};
use self::journal::Journal;
use self::telemetry::Telemetry;
use crate::body::link::{LinkMetrics, LinkStatus};
use crate::body::task::{Measure, Task};
use crate::body::{Body, BodySpec, Command, InnerPeriods, Step};
use crate::brain::commands::{CommandChannel, RecordedCommands};
use crate::brain::{Brain, StandIn};
use crate::clock::{Clock, ClockKind, SimClock};
use crate::live::Live;
pub use controller::DeviceSpan;
pub use episodes::{EpisodeReturns, Episodes};
pub use film::{Film, SavePicture};
pub use guard::ChannelGuard;
pub use injection::{Fault, FaultKind};
pub use metrics::{Metrics, TransfersPerTick};
pub use report::{
    Discard, End, Outcome, Progress, Sink, TaskSummary, TickRecord, Timing, Workload,
};
pub use settings::{LoopSettings, Overrun};
pub use sink_thread::{ThreadedSink, run_with_sink_thread};
pub use stop_switch::StopSwitch;
use tectum::snapshot::{Array, Snapshot};
pub use trials::{
    Conditions, MakeController, TARGET_STREAK_S, TARGET_UPRIGHT_FRACTION, TRIAL_S, Trial,
    TrialSummary, rig_trials, summarize,
};

/// A body and a brain, run together.
///
/// The constructor allocates what ticks need; [`ClosedLoop::run`] does not allocate per tick except
/// for faults and snapshots.
pub struct ClosedLoop {
    body: FaultyBody,
    task: Option<Box<dyn Task>>,
    controller: Guarded,
    spec: BodySpec,
    settings: LoopSettings,
    ticks: u64,
    dt_ns: u64,
    session: Journal,
    workload: Workload,
    metrics: Metrics,
    lateness: Option<LatencyHistogram>,
    transfers: TransfersPerTick,
    last_latency_ns: u64,
    observation: Vec<f32>,
    /// The observation as the sensors give it: the same except for injected faults.
    reading: Vec<f32>,
    answer: Vec<f32>,
    held: Vec<f32>,
    /// Whether the held action is the safe one because there was no answer.
    is_held_safe: bool,
    /// The same of the action before the present answer.
    was_held_safe: bool,
    /// The tick at which this run began, at 0 of its clock.
    first_tick: u64,
    inner: InnerPeriods,
    /// The connection of a body outside of the process in this period, and over the run.
    link: Option<LinkStatus>,
    link_metrics: Option<LinkMetrics>,
    commands: Commands,
    trace_at_end: bool,
    film: Option<Filmed>,
    telemetry: Option<Telemetry>,
    /// Host time of the answer for the next period, if there is one.
    answer_ns: Option<u64>,
    /// Of every period so far.
    trace: ContentHasher,
}

impl ClosedLoop {
    /// Adds a file that the results depend on to the receipt.
    pub fn add_input_file(&mut self, input: InputFile) {
        self.session.reads(input);
    }

    /// Combines a body and a brain; the body is at its start. `requested` is the requested device,
    /// and the receipt reports if the brain does not run on it.
    ///
    /// # Errors
    /// Errors of the CPU device, on which host arithmetic is counted; a guard of a channel that
    /// does not exist in the body.
    pub fn new(
        body: Box<dyn Body>,
        brain: Box<dyn Brain>,
        settings: &LoopSettings,
        requested: &Device,
    ) -> Result<Self> {
        let device = brain
            .device()
            .cloned()
            .map_or_else(|| Device::open("cpu"), Ok)?;
        let mut session = Session::new(&device);
        session.uses_code(&brain.code());
        brain
            .inputs()
            .into_iter()
            .for_each(|input| session.reads(input));
        brain
            .notes()
            .iter()
            .for_each(|note| session.record_fallback(&format!("brain {}", brain.name()), note));
        if device.info().id != requested.info().id {
            let reason = format!("plain host arithmetic; {} is not used", requested.info().id);
            session.record_fallback(&format!("brain {}", brain.name()), &reason);
        }
        let spec = body.spec().clone();
        spec.check()?;
        if let Some(clock) = body.clock().filter(|clock| *clock != settings.clock) {
            return Err(Error::invalid(format!(
                "body {}: it needs clock \"{}\", the loop has \"{}\"",
                spec.name,
                clock.name(),
                settings.clock.name()
            )));
        }
        let workload = Workload {
            body: spec.name.clone(),
            brain: brain.name().to_owned(),
            ..Workload::default()
        };
        let dt_ns = (spec.dt_s * 1e9).round() as u64;
        let guard = Guard::new(&settings.guard, &spec)?;
        let commands = Commands::of(&*brain);
        let controller = Guarded::new(
            Recovering::new(brain, &spec, dt_ns, settings.stall_periods),
            guard,
        );
        Ok(Self {
            ticks: ((settings.seconds / spec.dt_s).round() as u64).max(1),
            dt_ns,
            settings: settings.clone(),
            session: Journal::new(session),
            workload,
            metrics: Metrics::new(settings.seed),
            lateness: None,
            transfers: TransfersPerTick::default(),
            last_latency_ns: 0,
            observation: vec![0.0; spec.observation_len()],
            reading: vec![0.0; spec.observation_len()],
            answer: spec.safe_action.clone(),
            held: spec.safe_action.clone(),
            is_held_safe: true,
            was_held_safe: true,
            first_tick: 0,
            inner: InnerPeriods::default(),
            link: None,
            link_metrics: None,
            commands,
            spec,
            body: FaultyBody::new(body, controller.switch.clone()),
            task: None,
            controller,
            trace_at_end: false,
            film: None,
            telemetry: None,
            answer_ns: None,
            trace: ContentHasher::default(),
        })
    }

    /// Whether each launch of one more tick is timed after the run, for the receipt.
    pub fn trace_at_end(&mut self, trace: bool) {
        self.trace_at_end = trace;
    }

    /// Takes pictures of the body while it runs.
    ///
    /// # Errors
    /// `Unsupported` for a body without pictures; what its renderer reports.
    pub fn film(&mut self, film: Film) -> Result<()> {
        self.film = Some(Filmed::new(film, &mut *self.body, &self.spec)?);
        Ok(())
    }

    /// Shows the run to those who watch it, and gives them the stop switch. `drawn` is another
    /// instance of the body, for drawings of its exact state; without one they are gauges.
    pub fn show(&mut self, live: &Live, drawn: Option<Box<dyn Body>>) {
        let telemetry = Telemetry::new(live, &*self.body, self.measure(), drawn);
        let switch = self.stop_switch();
        live.controls().set_stop(move || switch.press());
        live.set_device(self.session.device());
        self.session.begin_notes();
        self.telemetry = Some(telemetry);
    }

    /// The receipt so far.
    pub fn receipt(&self) -> Receipt {
        self.session.receipt()
    }

    /// Sets what the run is judged by; without a task, periods are only scored by the body's
    /// reward.
    pub fn set_task(&mut self, task: impl Into<Option<Box<dyn Task>>>) {
        self.task = task.into();
    }

    /// The commands of the brain, which callers set while it runs.
    pub fn commands(&self) -> &[CommandChannel] {
        self.commands.channels()
    }

    /// Sets the commands that a recorded run had, in the periods in which they were used. A brain
    /// without commands is left as it is.
    ///
    /// # Errors
    /// `Data` for a recording of other commands.
    pub fn repeat_commands(&mut self, recorded: RecordedCommands) -> Result<()> {
        self.commands.repeat(recorded)
    }

    /// What the task measures, if there is one.
    pub fn measure(&self) -> Option<&Measure> {
        self.task.as_ref().map(|task| task.measure())
    }

    /// Sets another brain that answers where the brain fails in time or is being rebuilt, and to
    /// the end if it cannot recover.
    #[must_use]
    pub fn with_stand_in(self, stand_in: Box<dyn StandIn>) -> Self {
        let settings = LoopSettings {
            stand_in: Some(stand_in.name()),
            ..self.settings
        };
        Self {
            controller: self.controller.with_stand_in(stand_in),
            settings,
            ..self
        }
    }

    /// Injects faults at given times of the loop, to show the reaction; the receipt names each such
    /// fault.
    ///
    /// # Errors
    /// A time at or past the end of the run; a lost device for a brain that runs on none; a push
    /// for a body that cannot be pushed.
    pub fn inject(&mut self, faults: &[Fault]) -> Result<()> {
        for fault in faults {
            if fault.at_s >= self.seconds(self.ticks) {
                return Err(Error::invalid(format!(
                    "inject {fault}: the run ends at {} s",
                    self.seconds(self.ticks)
                )));
            }
            if fault.kind == FaultKind::DeviceLost && !self.controller.brain().has_device() {
                return Err(Error::invalid(format!(
                    "inject {fault}: brain {} runs on no device",
                    self.controller.brain().name()
                )));
            }
            if fault.kind == FaultKind::Push && self.body.pushed().is_none() {
                return Err(Error::invalid(format!(
                    "inject {fault}: body {} cannot be pushed; [body.push] of a MuJoCo body states a push",
                    self.spec.name
                )));
            }
        }
        self.body.inject(faults, self.dt_ns);
        self.controller.brain_mut().faults = BrainFaults::new(faults, self.dt_ns);
        Ok(())
    }

    /// A switch that stops the loop at any time, from any thread.
    pub fn stop_switch(&self) -> StopSwitch {
        self.controller.switch.clone()
    }

    /// The name of the brain, and whether it runs on a device.
    pub fn brain(&self) -> (&'static str, bool) {
        (
            self.controller.brain().name(),
            self.controller.brain().has_device(),
        )
    }

    /// Settings of the loop.
    pub fn settings(&self) -> &LoopSettings {
        &self.settings
    }

    /// States the settings of body and brain, for receipt and summary.
    ///
    /// # Errors
    /// `Invalid` for the names of another body or brain.
    pub(crate) fn set_workload(&mut self, workload: Workload) -> Result<()> {
        let names =
            |workload: &Workload| format!("brain {:?} on body {:?}", workload.brain, workload.body);
        if names(&workload) != names(&self.workload) {
            return Err(Error::invalid(format!(
                "the scenario has {}, the loop runs {}",
                names(&workload),
                names(&self.workload)
            )));
        }
        self.workload = workload;
        Ok(())
    }

    /// The constants of the body.
    pub fn body_spec(&self) -> &BodySpec {
        &self.spec
    }

    /// Number of periods of the whole run.
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Body, brain and loop as named arrays; without the body if it has no exact state. For a brain
    /// that is being recovered it is the last state on the host.
    ///
    /// # Errors
    /// What the brain's device reports.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.with_brain(self.controller.brain().snapshot()?)
    }

    fn with_brain(&self, brain: Snapshot) -> Result<Snapshot> {
        let mut snapshot = self.metrics.snapshot("loop");
        snapshot.insert("loop.held_action", Array::F32(self.held.clone()));
        let is_safe = u64::from(self.is_held_safe);
        snapshot.insert("loop.held_safe", Array::U64(vec![is_safe]));
        if let Some(body) = self.body.exact_state() {
            snapshot.insert("body.state", Array::F64(body.state()));
            self.body.health()?;
        }
        snapshot.insert_all("brain", brain);
        self.controller.add_state(&mut snapshot)?;
        Ok(snapshot)
    }

    /// Restores what [`ClosedLoop::snapshot`] returned: the continuation is the same, bit for bit,
    /// on the same device and a clock that is not real. Returns the next tick.
    ///
    /// # Errors
    /// `Unsupported` for a body without exact state; `Data` if arrays are missing or belong to
    /// another body or brain; a run that has no ticks left.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<u64> {
        let metrics = Metrics::restored(snapshot, "loop")?;
        if metrics.ticks >= self.ticks {
            let (done_s, all_s) = (self.seconds(metrics.ticks), self.seconds(self.ticks));
            return Err(Error::invalid(format!(
                "resume: {done_s} s of the run are done, it ends after {all_s} s; a larger --seconds continues it"
            )));
        }
        let held = snapshot.f32("loop.held_action", self.held.len())?;
        let is_held_safe = snapshot.u64("loop.held_safe", 1)? == [1];
        let state = snapshot.f64("body.state", self.body.state()?.len())?;
        self.controller
            .brain_mut()
            .restore(&snapshot.part("brain"))?;
        self.controller.restore(snapshot)?;
        self.body.set_state(state)?;
        self.held.copy_from_slice(held);
        self.is_held_safe = is_held_safe;
        self.metrics = metrics;
        Ok(self.metrics.ticks)
    }

    /// Ends the loop and returns body and brain as they are after the last period, for another
    /// loop; no brain if a fault took it. Waits for a brain that is being rebuilt.
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_control::body::body;
    /// use tectum_control::brain::zero::Zero;
    /// use tectum_control::closed_loop::{ClosedLoop, LoopSettings};
    /// let cpu = Device::open("cpu")?;
    /// let settings = LoopSettings { seconds: 1.0, ..LoopSettings::default() };
    /// let pendulum = body("pendulum", None)?;
    /// let brain = Box::new(Zero::new(pendulum.spec()));
    /// let mut first = ClosedLoop::new(pendulum, brain, &settings, &cpu)?;
    /// let trace = first.simulate().into_result()?.receipt.trace;
    /// let (mut pendulum, brain) = first.into_parts();
    /// pendulum.reset(1);
    /// let mut again = ClosedLoop::new(pendulum, brain.expect("no fault took it"), &settings, &cpu)?;
    /// assert_ne!(again.simulate().into_result()?.receipt.trace, trace, "another start than before");
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn into_parts(mut self) -> (Box<dyn Body>, Option<Box<dyn Brain>>) {
        let brain = self.controller.brain_mut().take();
        (self.body.into_body(), brain)
    }

    /// Runs to the end in simulated time and records nothing.
    #[must_use = "the run may have failed"]
    pub fn simulate(&mut self) -> Outcome {
        self.run(&mut SimClock::new(), &mut Discard, &mut |_| {
            ControlFlow::Continue(())
        })
    }

    /// Runs to the end, or until the watcher breaks or an error is not recoverable; sends every
    /// period to the sink, a snapshot every `snapshot_every` ticks and the last one at the end. The
    /// clock is at 0.
    #[must_use = "the run may have failed"]
    pub fn run(
        &mut self,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Outcome {
        let end = self
            .run_ticks(clock, sink, watch)
            .unwrap_or_else(End::Failed);
        let saved = self
            .snapshot()
            .and_then(|snapshot| sink.snapshot(snapshot))
            .and_then(|()| sink.flush());
        let end = match (saved, end) {
            (Err(error), End::Completed | End::Interrupted) => End::Failed(error),
            (Err(error), end) => {
                self.session
                    .record_fallback("last snapshot", &error.to_string());
                end
            }
            (Ok(()), end) => end,
        };
        if self.trace_at_end && !matches!(end, End::Failed(_)) {
            match self.controller.brain_mut().trace() {
                Ok(launches) => self.session.traced(launches),
                Err(error) => self.session.record_fallback("trace", &error.to_string()),
            }
        }
        if let End::Failed(error) = &end {
            self.session.record_end(
                &format!("run stopped at tick {}", self.metrics.ticks),
                error,
            );
        }
        self.controller
            .brain_mut()
            .close(self.metrics.ticks, &mut self.session);
        // A recovery that was open until now.
        self.show_counts();
        self.session
            .record_trace(std::mem::take(&mut self.trace).finish());
        self.workload.link = self.link_metrics.as_ref().map(LinkMetrics::summary);
        self.session
            .record_workload(serde_json::to_value(&self.workload).unwrap_or_default());
        pending(&self.body, &self.controller.brain().faults)
            .into_iter()
            .for_each(|fault| self.session.record_injected_fault(fault));
        self.outcome(end)
    }

    fn run_ticks(
        &mut self,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<End> {
        let first = self.metrics.ticks;
        self.first_tick = first;
        self.inner = InnerPeriods::default();
        self.lateness = clock.is_real().then(LatencyHistogram::default);
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.begin(&self.metrics);
        }
        self.controller
            .brain_mut()
            .copy_state(first)
            .map_err(Failure::into_error)?;
        if self.settings.snapshot_every > 0 {
            sink.snapshot(self.with_brain(self.controller.brain().saved().clone())?)?;
        }
        while self.metrics.ticks < self.ticks {
            let begin_ns = (self.metrics.ticks - first) * self.dt_ns;
            let lateness_ns = clock.wait_until(begin_ns);
            self.lateness
                .iter_mut()
                .for_each(|lateness| lateness.record(lateness_ns));
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.woke(lateness_ns);
            }
            let lapsed = lateness_ns / self.dt_ns;
            if lapsed > 0 {
                self.run_missed_periods(lapsed, clock, sink)?;
            } else {
                self.tick(begin_ns, lateness_ns, clock, sink)?;
            }
            if watch(&self.progress()).is_break() {
                return Ok(End::Interrupted);
            }
            if self.is_time_to_save(first) {
                self.save(sink)?;
            }
        }
        Ok(End::Completed)
    }

    /// Every `snapshot_every` ticks, and before the first of these times after 1, 2, 4, 8… ticks: a
    /// killed run that is resumed repeats no more ticks than it had saved.
    fn is_time_to_save(&self, first: u64) -> bool {
        let (every, ticks) = (self.settings.snapshot_every, self.metrics.ticks);
        let is_early = ticks - first < every && (ticks - first).is_power_of_two();
        every > 0 && ticks < self.ticks && (ticks.is_multiple_of(every) || is_early)
    }

    /// Copies the brain's state to the host, from where it can be recovered, and passes it to the
    /// sink.
    fn save(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let tick = self.metrics.ticks;
        if let Err(failure) = self.controller.brain_mut().copy_state(tick) {
            self.controller
                .settle(failure, tick, 0, &mut self.session)?;
        }
        sink.snapshot(self.with_brain(self.controller.brain().saved().clone())?)
    }

    /// One answer, and the periods that pass until it arrives.
    fn tick(
        &mut self,
        begin_ns: u64,
        lateness_ns: u64,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let tick = self.metrics.ticks;
        self.read_link(clock);
        let begun = self
            .body
            .read(tick, &mut self.observation, &mut self.reading);
        begun
            .into_iter()
            .for_each(|fault| self.session.record_injected_fault(fault));
        let has_lost_sensors = self.body.is_sensor_lost(tick);
        let (reading, action, session) = (&mut self.reading, &mut self.answer, &mut self.session);
        self.was_held_safe = self.is_held_safe;
        let answer = self.controller.answer(&mut Period {
            tick,
            begin_ns,
            reading,
            has_lost_sensors,
            is_starting: !self.body.is_ready(),
            link: self.link.map(|link| link.state),
            action,
            clock,
            session,
        });
        self.finish(&answer);
        self.answer_ns = answer.latency_ns;
        let Answer {
            source,
            missed,
            failure,
            latency_ns,
            ..
        } = answer;
        let (is_late, is_fallback) = (
            source == Source::Late,
            !matches!(source, Source::Brain | Source::Late | Source::Held),
        );
        let is_held = is_late || source == Source::Held;
        let safe_ticks = if missed > 0 {
            self.run_late_answer(missed, clock, sink)?
        } else {
            let timing = latency_ns
                .filter(|_| clock.is_real())
                .map(|latency_ns| Timing {
                    latency_ns,
                    lateness_ns,
                });
            self.held.copy_from_slice(&self.answer);
            self.metrics.deadline_misses += u64::from(is_late);
            self.apply(is_held, is_fallback, timing, clock, sink)?;
            u64::from(is_fallback)
        };
        failure.map_or(Ok(()), |failure| {
            self.controller
                .settle(failure, tick, safe_ticks, &mut self.session)
        })
    }

    /// Takes commands, and asks for the connection of a body outside of the process.
    fn read_link(&mut self, clock: &dyn Clock) {
        self.commands.begin(self.metrics.ticks);
        let commands = &self.commands;
        self.body
            .commands(&mut |name, value| commands.set(name, value));
        let kind = match clock.is_real() {
            true => ClockKind::Real,
            false => ClockKind::Sim,
        };
        self.link = self.body.link(kind);
    }

    /// Counts an answer, replaces a missing one with the safe action, and clamps it to the action's
    /// range.
    fn finish(&mut self, answer: &Answer) {
        answer
            .stats
            .iter()
            .for_each(|stats| self.transfers.record(stats));
        self.last_latency_ns = answer.latency_ns.unwrap_or(self.last_latency_ns);
        self.metrics.fallbacks +=
            u64::from(matches!(answer.source, Source::StandIn | Source::None));
        match (answer.source, self.settings.overrun) {
            (Source::Late | Source::Held, Overrun::Hold) => {
                self.answer.copy_from_slice(&self.held);
            }
            (Source::None, _) | (Source::Late | Source::Held, Overrun::Safe) => {
                self.answer.copy_from_slice(&self.spec.safe_action);
                self.is_held_safe = true;
            }
            (Source::Starting, _) => {
                self.answer.copy_from_slice(&self.spec.safe_action);
                self.is_held_safe = false;
            }
            (Source::Brain | Source::StandIn, _) => self.is_held_safe = false,
        }
        for (number, channel) in self.answer.iter_mut().zip(&self.spec.action) {
            *number = channel.applied(*number).unwrap_or(*number);
        }
    }

    /// The periods that passed until an answer; it is held from then on, or from when the loop
    /// stopped waiting for it. Returns the number of those after that.
    fn run_late_answer(
        &mut self,
        missed: u64,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
    ) -> Result<u64> {
        let waited = if self.settings.stall_periods > 0 {
            missed.min(self.settings.stall_periods)
        } else {
            missed
        };
        // Until it arrives, the action before is held.
        let is_answer_safe = std::mem::replace(&mut self.is_held_safe, self.was_held_safe);
        self.run_missed_periods(waited, clock, sink)?;
        self.held.copy_from_slice(&self.answer);
        self.is_held_safe = is_answer_safe;
        self.run_missed_periods(missed - waited, clock, sink)?;
        Ok(missed - waited)
    }

    /// Steps periods without an answer.
    fn run_missed_periods(
        &mut self,
        periods: u64,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        for _ in 0..periods.min(self.ticks - self.metrics.ticks) {
            self.read_link(clock);
            let is_stopped = self
                .link
                .is_some_and(|link| link.state.stop_reason().is_some());
            if self.settings.overrun == Overrun::Safe || is_stopped {
                self.held.copy_from_slice(&self.spec.safe_action);
                self.is_held_safe = true;
            }
            self.body.observe(&mut self.observation);
            self.reading.copy_from_slice(&self.observation);
            self.metrics.deadline_misses += 1;
            self.apply(true, false, None, clock, sink)?;
        }
        Ok(())
    }

    /// Steps the body through one period with the held action.
    fn apply(
        &mut self,
        held: bool,
        fallback: bool,
        timing: Option<Timing>,
        clock: &mut dyn Clock,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let measure = self.measured();
        if let Some(film) = &mut self.film {
            film.tick(self.metrics.ticks, &mut *self.body)?;
        }
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.before_step(&*self.body);
        }
        let begin_ns = (self.metrics.ticks - self.first_tick) * self.dt_ns;
        let mut command = Command::timed(
            &self.held,
            self.is_held_safe,
            clock,
            begin_ns,
            &mut self.inner,
        );
        let step = self.body.advance(&mut command);
        self.check_state(&step)?;
        let reward = self
            .task
            .as_mut()
            .map_or(step.reward, |task| task.reward(&step));
        let tick = self.metrics.ticks;
        let record = TickRecord {
            tick,
            time_ns: tick * self.dt_ns,
            observation: &self.observation,
            action: &self.held,
            measure,
            reward,
            held,
            fallback,
            terminated: step.ends_episode(),
            timing,
            link: self.link,
            commands: self.commands.changed(),
        };
        record.hash_into(&mut self.trace);
        sink.tick(&record)?;
        let latency_ns = self.answer_ns.take();
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.write(&record, latency_ns, &self.metrics);
        }
        if let Some(link) = &self.link {
            let metrics = self.link_metrics.get_or_insert_with(LinkMetrics::default);
            metrics.record(link);
        }
        let ends_episode = step.ends_episode();
        let is_interrupted = held || fallback || ends_episode;
        self.controller.follow(&Passed {
            reading: &self.reading,
            action: &self.held,
            is_interrupted,
            ends_episode,
        });
        let hold_ticks = |task: &Measure| (task.hold_s / self.spec.dt_s - 1e-9).ceil() as u64;
        let (is_success, hold_ticks) = self.measure().map_or((false, 0), |task| {
            (task.is_success(measure), hold_ticks(task))
        });
        self.metrics.count_period(is_success, hold_ticks, reward);
        if ends_episode {
            self.body.reset(self.metrics.next_episode(step.terminated));
            self.held.copy_from_slice(&self.spec.safe_action);
            self.is_held_safe = true;
        }
        self.show_counts();
        Ok(())
    }

    fn show_counts(&mut self) {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.count(&self.metrics, &mut self.session);
        }
    }

    /// Refuses to continue a simulated body whose state is not finite: no controller can bring it
    /// back.
    fn check_state(&self, step: &Step) -> Result<()> {
        self.body.health()?;
        if step.reward.is_finite() && self.observation.iter().all(|number| number.is_finite()) {
            return Ok(());
        }
        let state = self
            .body
            .exact_state()
            .map_or_else(Vec::new, |body| body.state());
        match state.iter().position(|number| !number.is_finite()) {
            Some(place) => {
                let (name, tick) = (&self.spec.name, self.metrics.ticks);
                Err(Error::data(format!(
                    "body {name}: number {place} of its state is {} after the step of tick {tick}",
                    state[place]
                )))
            }
            None => Ok(()),
        }
    }

    fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 * self.dt_ns as f64 / 1e9
    }

    /// What the task measures now.
    fn measured(&mut self) -> f64 {
        self.task
            .as_mut()
            .map_or(f64::NAN, |task| task.value(&*self.body))
    }

    fn progress(&mut self) -> Progress {
        Progress {
            measure: self.measured(),
            tick: self.metrics.ticks,
            ticks: self.ticks,
            seconds: self.seconds(self.metrics.ticks),
            success_fraction: self.metrics.success_fraction(),
            latency_ms: self.last_latency_ns as f64 / 1e6,
            deadline_misses: self.metrics.deadline_misses,
            terminated_episodes: self.metrics.ended.terminated,
        }
    }

    fn outcome(&self, end: End) -> Outcome {
        Outcome {
            end,
            metrics: self.metrics.clone(),
            seconds: self.seconds(self.metrics.ticks),
            period_s: self.spec.dt_s,
            overrun: self.settings.overrun,
            task: self.measure().map(|measure| TaskSummary {
                measure: measure.clone(),
                success_fraction: self.metrics.success_fraction(),
                time_to_success_s: self
                    .metrics
                    .success_since_tick
                    .map(|tick| self.seconds(tick)),
                losses: self.metrics.ended.terminated,
            }),
            latency: self.session.latency().clone(),
            lateness: self.lateness.clone(),
            inner: self
                .body
                .inner_period_s()
                .map(|period_s| (period_s, self.inner.clone())),
            transfers: self.transfers,
            device_at_end: self.controller.brain().device_now(),
            devices: self.controller.brain().devices().to_vec(),
            stopped_at_tick: self.controller.stopped_at,
            learning: self.controller.brain().learning(),
            notes: self.controller.brain().run_notes(),
            workload: self.workload.clone(),
            receipt: self.session.receipt(),
        }
    }
}
