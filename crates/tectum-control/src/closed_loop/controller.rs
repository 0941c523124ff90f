//! From a reading to an action: the brain with its recovery after a fault, and the interface of
//! what is wrapped around it.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Instant;

use tectum::{Device, Error, ErrorKind, LatencyHistogram, LaunchTime, Recovery, Result, RunStats};

use super::injection::BrainFaults;
use super::journal::Journal;
use crate::body::BodySpec;
use crate::body::link::LinkState;
use crate::brain::{Brain, Rebuild};
use crate::clock::Clock;
use crate::real_time::drop_priority;
use crate::twin::LearningCounts;
use tectum::snapshot::Snapshot;

/// The device on which every brain can continue.
const FALLBACK_DEVICE: &str = "cpu";

/// Answers readings. An implementation answers itself, or wraps another and changes what passes
/// through.
pub(super) trait Controller: Send {
    /// Answers the reading of a period.
    fn answer(&mut self, period: &mut Period<'_>) -> Answer;

    /// Recovers from a failure at `tick`, after the periods that the answer took; `safe_ticks` of
    /// them were without the brain.
    ///
    /// # Errors
    /// The failure itself where no recovery is possible.
    fn settle(
        &mut self,
        failure: Failure,
        tick: u64,
        safe_ticks: u64,
        session: &mut Journal,
    ) -> Result<()>;

    /// Follows a period that has passed.
    fn follow(&mut self, passed: &Passed<'_>);

    /// Adds its state, without the brain's, to that of a loop.
    ///
    /// # Errors
    /// What a stand-in reports.
    fn add_state(&self, _: &mut Snapshot) -> Result<()> {
        Ok(())
    }

    /// Restores what [`Controller::add_state`] added.
    ///
    /// # Errors
    /// `Data` if arrays are missing or belong to another controller.
    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }

    /// The brain.
    fn brain(&self) -> &Recovering;

    /// The brain.
    fn brain_mut(&mut self) -> &mut Recovering;
}

/// A period that needs an action.
pub(super) struct Period<'a> {
    pub tick: u64,
    pub begin_ns: u64,
    pub reading: &'a mut [f32],
    /// An injected fault blinds the sensors.
    pub has_lost_sensors: bool,
    /// The body starts by itself.
    pub is_starting: bool,
    /// The connection of a body outside of the process.
    pub link: Option<LinkState>,
    pub action: &'a mut [f32],
    pub clock: &'a mut dyn Clock,
    pub session: &'a mut Journal,
}

/// A period that has passed.
pub(super) struct Passed<'a> {
    pub reading: &'a [f32],
    /// What the body got.
    pub action: &'a [f32],
    /// The action is not the brain's answer to the reading, or the next reading does not follow
    /// from it.
    pub is_interrupted: bool,
    pub ends_episode: bool,
}

/// Where an action comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Source {
    Brain,
    /// The brain is still computing an answer: the body is treated as for one that is late.
    Late,
    StandIn,
    /// There is no new observation, and the last action is held.
    Held,
    /// The body starts by itself, with its safe action.
    Starting,
    /// There is no action: the body gets its safe one.
    #[default]
    None,
}

/// How a period was answered.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub source: Source,
    /// Periods that passed until the brain answered.
    pub missed: u64,
    /// Why the brain's answer is not used.
    pub failure: Option<Failure>,
    /// Host time of the brain's tick; none if it was not queried.
    pub latency_ns: Option<u64>,
    /// Counters of the brain's tick; none if it failed.
    pub stats: Option<RunStats>,
}

impl Answer {
    /// An answer for which the brain was not queried.
    pub(super) fn of(source: Source) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }
}

/// Why a tick or a snapshot failed.
#[derive(Debug)]
pub(super) struct Failure {
    cause: Cause,
    is_injected: bool,
}

#[derive(Debug)]
enum Cause {
    /// The brain reported an error.
    Error(Error),
    /// An action or a state that is not finite.
    NotFinite(String),
    /// An answer that is at least this many periods late.
    Stalled(u64),
}

impl Failure {
    /// The fault of an answer, if it has one.
    fn of(
        result: Result<()>,
        answer: &[f32],
        stalled: Option<u64>,
        is_injected: bool,
    ) -> Option<Self> {
        let cause = match (result, stalled) {
            (Err(error), _) => Cause::Error(error),
            (Ok(()), _) if answer.iter().any(|number| !number.is_finite()) => {
                Cause::NotFinite("the brain's action is not finite".to_owned())
            }
            (Ok(()), Some(periods)) => Cause::Stalled(periods),
            (Ok(()), None) => return None,
        };
        Some(Self { cause, is_injected })
    }

    /// The failure as an error, where no recovery is possible.
    pub(super) fn into_error(self) -> Error {
        match self.cause {
            Cause::Error(error) => error,
            other => Error::data(other.reason()),
        }
    }
}

impl Cause {
    fn reason(&self) -> String {
        match self {
            Cause::Error(error) => error.to_string(),
            Cause::NotFinite(what) => what.clone(),
            Cause::Stalled(periods) => format!("the answer is {periods} or more periods late"),
        }
    }
}

/// A device that answered for a part of a run.
#[derive(Debug, Clone)]
pub struct DeviceSpan {
    /// Its id; none for plain host arithmetic.
    pub device: Option<String>,
    /// The tick from which it answered; 0 for the first.
    pub from_tick: u64,
    /// Host time of its answers.
    pub latency: LatencyHistogram,
}

impl DeviceSpan {
    fn new(device: Option<String>, from_tick: u64) -> Self {
        Self {
            device,
            from_tick,
            latency: LatencyHistogram::default(),
        }
    }
}

/// The source of answers.
enum BrainState {
    Working(Box<dyn Brain>),
    /// The next brain, which a separate thread builds.
    Rebuilding(Receiver<Result<Box<dyn Brain>>>),
    /// No brain: recovery is not possible.
    Empty,
}

impl BrainState {
    /// The brain that answers.
    ///
    /// # Panics
    /// If [`Recovering::poll_rebuild`] did not report that a brain works.
    fn working(&mut self) -> &mut dyn Brain {
        match self {
            BrainState::Working(brain) => brain.as_mut(),
            BrainState::Rebuilding(_) | BrainState::Empty => unreachable!(
                "invariant: called only after poll_rebuild reported that a brain works"
            ),
        }
    }
}

/// The reaction to a failure.
enum RecoveryAction {
    /// The brain continues unchanged.
    Keep,
    /// The brain restores the host's state on its present device.
    Restore,
    /// The brain is rebuilt on the CPU.
    Rebuild(Rebuild),
    /// No recovery.
    None,
}

/// The brain with its last state on the host.
pub(super) struct Recovering {
    brain_state: BrainState,
    name: &'static str,
    /// The device that the first brain ran on.
    initial_device: Option<String>,
    has_moved: bool,
    /// The devices that answered; the last one does now.
    devices: Vec<DeviceSpan>,
    saved: Snapshot,
    saved_tick: u64,
    /// A recovery in progress or waiting for its first answer.
    open: Option<Recovery>,
    /// What the body gets while no brain answers.
    fallback_label: String,
    body: BodySpec,
    dt_ns: u64,
    /// Periods after which a late answer is a fault of its device; 0: never.
    stall_periods: u64,
    /// Injected faults.
    pub faults: BrainFaults,
}

impl Recovering {
    pub(super) fn new(
        brain: Box<dyn Brain>,
        body: &BodySpec,
        dt_ns: u64,
        stall_periods: u64,
    ) -> Self {
        let (name, initial_device) = (brain.name(), device_id(brain.as_ref()));
        Self {
            brain_state: BrainState::Working(brain),
            name,
            devices: vec![DeviceSpan::new(initial_device.clone(), 0)],
            initial_device,
            has_moved: false,
            saved: Snapshot::default(),
            saved_tick: 0,
            open: None,
            fallback_label: "safe action".to_owned(),
            body: body.clone(),
            dt_ns,
            stall_periods,
            faults: BrainFaults::default(),
        }
    }

    /// Sets what answers while the brain cannot.
    pub(super) fn set_fallback_label(&mut self, what: String) {
        self.fallback_label = what;
    }

    /// The brain, for other uses; one that is being rebuilt is waited for. None if there is none.
    pub(super) fn take(&mut self) -> Option<Box<dyn Brain>> {
        match std::mem::replace(&mut self.brain_state, BrainState::Empty) {
            BrainState::Working(brain) => Some(brain),
            BrainState::Rebuilding(next) => next.recv().ok()?.ok(),
            BrainState::Empty => None,
        }
    }

    /// Continues without a brain.
    pub(super) fn retire(&mut self) {
        self.brain_state = BrainState::Empty;
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the first brain ran on a device.
    pub(super) fn has_device(&self) -> bool {
        self.initial_device.is_some()
    }

    /// The device that answers; none for plain host arithmetic, and while no brain answers.
    pub(super) fn device_now(&self) -> Option<String> {
        match &self.brain_state {
            BrainState::Working(brain) => device_id(brain.as_ref()),
            BrainState::Rebuilding(_) | BrainState::Empty => None,
        }
    }

    /// The devices that answered, in order.
    pub(super) fn devices(&self) -> &[DeviceSpan] {
        &self.devices
    }

    /// The last state that the host holds.
    pub(super) fn saved(&self) -> &Snapshot {
        &self.saved
    }

    /// The current state, or the last saved one if no brain is available.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        match &self.brain_state {
            BrainState::Working(brain) => brain.snapshot(),
            BrainState::Rebuilding(_) | BrainState::Empty => Ok(self.saved.clone()),
        }
    }

    pub(super) fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.brain_state.working().restore(state)
    }

    pub(super) fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        match &mut self.brain_state {
            BrainState::Working(brain) => brain.trace(),
            BrainState::Rebuilding(_) | BrainState::Empty => Ok(Vec::new()),
        }
    }

    /// What the brain reports of its ticks.
    pub(super) fn run_notes(&self) -> Vec<String> {
        match &self.brain_state {
            BrainState::Working(brain) => brain.run_notes(),
            BrainState::Rebuilding(_) | BrainState::Empty => Vec::new(),
        }
    }

    /// What the brain has learned.
    pub(super) fn learning(&self) -> Option<LearningCounts> {
        match &self.brain_state {
            BrainState::Working(brain) => brain.learning(),
            BrainState::Rebuilding(_) | BrainState::Empty => None,
        }
    }

    /// Copies the state before `tick` to the host. A state with NaN is rejected and the previous
    /// one remains.
    pub(super) fn copy_state(&mut self, tick: u64) -> std::result::Result<(), Failure> {
        let BrainState::Working(brain) = &self.brain_state else {
            return Ok(());
        };
        let failed = |cause| Failure {
            cause,
            is_injected: false,
        };
        let state = brain
            .snapshot()
            .map_err(|error| failed(Cause::Error(error)))?;
        if let Some(name) = state.nan_in() {
            return Err(failed(Cause::NotFinite(format!(
                "the brain's state is not a number in {name}"
            ))));
        }
        (self.saved, self.saved_tick) = (state, tick);
        Ok(())
    }

    /// Whether a brain can answer `tick`. Under a real clock the loop does not wait for a brain
    /// that is being built; under another clock time does not advance, and waiting makes the run
    /// repeatable.
    fn poll_rebuild(&mut self, tick: u64, is_real: bool, session: &mut Journal) -> Result<bool> {
        if matches!(self.brain_state, BrainState::Empty) {
            self.open
                .iter_mut()
                .for_each(|recovery| recovery.safe_ticks += 1);
            return Ok(false);
        }
        if let BrainState::Rebuilding(next) = &self.brain_state {
            let arrived = if is_real {
                next.try_recv()
            } else {
                next.recv().map_err(|_| TryRecvError::Disconnected)
            };
            match arrived {
                Ok(Ok(brain)) => {
                    session.uses_code(&brain.code());
                    brain.notes().iter().for_each(|note| {
                        session.record_fallback(
                            &format!("brain {} on {FALLBACK_DEVICE}", self.name),
                            note,
                        )
                    });
                    let device = device_id(brain.as_ref());
                    self.has_moved = device != self.initial_device;
                    if self.devices.last().is_none_or(|last| last.device != device) {
                        self.devices.push(DeviceSpan::new(device, tick));
                    }
                    self.brain_state = BrainState::Working(brain);
                }
                Err(TryRecvError::Empty) => {
                    self.open
                        .iter_mut()
                        .for_each(|recovery| recovery.safe_ticks += 1);
                    return Ok(false);
                }
                Ok(Err(error)) => {
                    self.brain_state = BrainState::Empty;
                    return Err(error.at(format_args!("brain {} on {FALLBACK_DEVICE}", self.name)));
                }
                Err(TryRecvError::Disconnected) => {
                    self.brain_state = BrainState::Empty;
                    return Err(Error::device_lost(format!(
                        "brain {} on {FALLBACK_DEVICE}: its building broke off",
                        self.name
                    )));
                }
            }
        }
        if let Some(mut recovery) = self.open.take() {
            recovery.resumed_at_tick = Some(tick);
            recovery.ticks_lost = tick - recovery.snapshot_tick;
            session.recovered(recovery);
        }
        Ok(true)
    }

    /// Queries the brain that works.
    fn query(&mut self, period: &mut Period<'_>) -> Answer {
        let slow_ns = (self.stall_periods + 1) * self.dt_ns + self.dt_ns / 2;
        let asked = Instant::now();
        let (result, injected) = self.faults.tick_with_faults(
            self.brain_state.working(),
            period.tick,
            period.reading,
            period.action,
            period.clock,
            slow_ns,
        );
        let latency_ns = asked.elapsed().as_nanos() as u64;
        let stats = result.as_ref().ok().map(|stats| RunStats {
            fallbacks: if self.has_moved {
                stats.launches
            } else {
                stats.fallbacks
            },
            ..*stats
        });
        if let (Some(stats), Some(span)) = (&stats, self.devices.last_mut()) {
            period.session.record(stats, latency_ns);
            span.latency.record(latency_ns);
        }
        let is_injected = injected.is_some();
        injected
            .into_iter()
            .for_each(|fault| period.session.record_injected_fault(fault));
        let missed = (period.clock.now_ns() - period.begin_ns) / self.dt_ns;
        let brain = self.brain_state.working();
        let late = brain.unanswered_ticks();
        // The fallback device may be slow, but it is not lost.
        let is_missing = late >= self.stall_periods
            && brain
                .device()
                .is_some_and(|device| device.info().id != FALLBACK_DEVICE);
        let is_stalled = self.stall_periods > 0 && (missed >= self.stall_periods || is_missing);
        let failure = Failure::of(
            result.map(|_| ()),
            period.action,
            is_stalled.then_some(self.stall_periods),
            is_injected,
        );
        let source = match failure {
            Some(_) => Source::None,
            None if late > 0 => Source::Late,
            None => Source::Brain,
        };
        Answer {
            source,
            missed,
            failure,
            latency_ns: Some(latency_ns),
            stats,
        }
    }

    /// A period without a usable observation. The recovery ends with the next answer.
    fn sensor_fault(&mut self, element: usize, period: &mut Period<'_>) {
        let channels = self.body.observation.iter().zip(self.body.ranges());
        let name = channels
            .filter(|(_, range)| range.contains(&element))
            .map(|(channel, _)| channel.name.as_str())
            .next()
            .unwrap_or_default();
        let (tick, reason) = (period.tick, format!("the reading of {name} is not finite"));
        period.session.record_fallback("safe action", &reason);
        let at = self.device_now();
        let begin = || Recovery {
            tick,
            reason,
            injected: period.has_lost_sensors,
            from: at.clone(),
            to: at,
            snapshot_tick: tick,
            resumed_at_tick: None,
            ticks_lost: 0,
            safe_ticks: 0,
        };
        self.open.get_or_insert_with(begin).safe_ticks += 1;
    }

    /// Starts the recovery from a failure at `tick`, after which `safe_ticks` got the safe action.
    ///
    /// # Errors
    /// The failure itself where no recovery is possible.
    fn recover(
        &mut self,
        failure: Failure,
        tick: u64,
        safe_ticks: u64,
        session: &mut Journal,
    ) -> Result<()> {
        let Failure { cause, is_injected } = failure;
        let reason = cause.reason();
        let what = if matches!(cause, Cause::Stalled(_)) {
            "safe action"
        } else {
            &self.fallback_label
        };
        session.record_fallback(what, &reason);
        let from = self.device_now();
        let action = self.recovery_action(&cause, from.as_deref());
        let (to, snapshot_tick) = match action {
            RecoveryAction::None => return Err(Failure { cause, is_injected }.into_error()),
            RecoveryAction::Keep if matches!(cause, Cause::Error(_)) => return Ok(()),
            // The late answer advanced the state by one tick; the brain did not see the periods
            // after it.
            RecoveryAction::Keep => (from.clone(), tick + 1),
            RecoveryAction::Restore => {
                let saved = self.saved.clone();
                self.brain_state.working().restore(&saved)?;
                (from.clone(), self.saved_tick)
            }
            RecoveryAction::Rebuild(rebuild) => {
                session.record_fallback(
                    &format!("brain {} continues on {FALLBACK_DEVICE}", self.name),
                    &reason,
                );
                self.rebuild(rebuild)?;
                (Some(FALLBACK_DEVICE.to_owned()), self.saved_tick)
            }
        };
        let recovery = Recovery {
            tick,
            reason,
            injected: is_injected,
            from,
            to,
            snapshot_tick,
            resumed_at_tick: None,
            ticks_lost: 0,
            safe_ticks,
        };
        self.open = Some(recovery);
        Ok(())
    }

    fn recovery_action(&self, cause: &Cause, device: Option<&str>) -> RecoveryAction {
        let BrainState::Working(brain) = &self.brain_state else {
            return RecoveryAction::None;
        };
        let is_on_fallback_device = device.is_none_or(|id| id == FALLBACK_DEVICE);
        let elsewhere =
            |otherwise: RecoveryAction| brain.rebuild().map_or(otherwise, RecoveryAction::Rebuild);
        match cause {
            Cause::Error(error) => match error.kind() {
                ErrorKind::DeviceLost => elsewhere(RecoveryAction::None),
                ErrorKind::OutOfMemory if is_on_fallback_device => RecoveryAction::None,
                ErrorKind::OutOfMemory => elsewhere(RecoveryAction::None),
                _ => RecoveryAction::Keep,
            },
            Cause::NotFinite(_) if is_on_fallback_device => RecoveryAction::Restore,
            Cause::NotFinite(_) => elsewhere(RecoveryAction::Restore),
            Cause::Stalled(_) if is_on_fallback_device => RecoveryAction::Keep,
            Cause::Stalled(_) => elsewhere(RecoveryAction::Keep),
        }
    }

    /// Builds and restores the next brain on a separate thread, which then drops this one:
    /// releasing a lost device may be slow.
    fn rebuild(&mut self, rebuild: Rebuild) -> Result<()> {
        let (send, receive) = channel();
        let before = std::mem::replace(&mut self.brain_state, BrainState::Rebuilding(receive));
        let saved = self.saved.clone();
        let build = move || -> Result<Box<dyn Brain>> {
            let mut brain = rebuild(&Device::open(FALLBACK_DEVICE)?)?;
            brain.restore(&saved)?;
            Ok(brain)
        };
        let work = move || {
            drop_priority();
            // The loop may have ended already; then the brain is not needed.
            let _ = send.send(build());
            drop(before);
        };
        let thread = std::thread::Builder::new()
            .name("tectum-recovery".to_owned())
            .spawn(work);
        thread
            .map(|_| ())
            .map_err(|source| Error::io("a thread for the recovery", source))
    }

    /// Closes a recovery that the end of the run interrupted.
    pub(super) fn close(&mut self, ticks: u64, session: &mut Journal) {
        if let Some(mut recovery) = self.open.take() {
            recovery.ticks_lost = ticks.saturating_sub(recovery.snapshot_tick);
            session.recovered(recovery);
        }
    }
}

impl Controller for Recovering {
    fn answer(&mut self, period: &mut Period<'_>) -> Answer {
        if let Some(channel) = period.reading.iter().position(|number| !number.is_finite()) {
            self.sensor_fault(channel, period);
            return Answer::default();
        }
        match self.poll_rebuild(period.tick, period.clock.is_real(), period.session) {
            Ok(true) => self.query(period),
            Ok(false) => Answer::default(),
            Err(error) => Answer {
                failure: Some(Failure {
                    cause: Cause::Error(error),
                    is_injected: false,
                }),
                ..Answer::default()
            },
        }
    }

    fn settle(
        &mut self,
        failure: Failure,
        tick: u64,
        safe_ticks: u64,
        session: &mut Journal,
    ) -> Result<()> {
        match self.brain_state {
            // The rebuilding failed.
            BrainState::Empty => Err(failure.into_error()),
            _ => self.recover(failure, tick, safe_ticks, session),
        }
    }

    fn follow(&mut self, passed: &Passed<'_>) {
        if let (true, BrainState::Working(brain)) = (passed.is_interrupted, &mut self.brain_state) {
            brain.interrupted();
            if passed.ends_episode {
                brain.episode_ended();
            }
        }
    }

    fn brain(&self) -> &Recovering {
        self
    }

    fn brain_mut(&mut self) -> &mut Recovering {
        self
    }
}

fn device_id(brain: &dyn Brain) -> Option<String> {
    brain.device().map(|device| device.info().id.clone())
}
