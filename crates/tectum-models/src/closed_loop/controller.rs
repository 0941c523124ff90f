//! The brain at work, and the way back to one after a fault.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use tectum::{Device, Error, ErrorKind, LaunchTime, Recovery, Result, Session};

use crate::brain::{Brain, Rebuild};
use crate::real_time::drop_priority;
use crate::snapshot::Snapshot;
use crate::twin::LearningCounts;

/// The device that every brain can go on with.
const FALLBACK_DEVICE: &str = "cpu";

/// Why a tick or a snapshot failed.
#[derive(Debug)]
pub(super) struct Failure {
    cause: Cause,
    is_injected: bool,
}

#[derive(Debug)]
enum Cause {
    /// What the brain reports.
    Error(Error),
    /// An action or a state that is not finite.
    NotFinite(String),
    /// An answer that is at least so many periods late.
    Stalled(u64),
}

impl Failure {
    /// What is wrong with an answer, if anything is.
    pub(super) fn of(result: Result<()>, answer: &[f32], stalled: Option<u64>, is_injected: bool) -> Option<Self> {
        let cause = match (result, stalled) {
            (Err(error), _) => Cause::Error(error),
            (Ok(()), _) if answer.iter().any(|number| !number.is_finite()) => Cause::NotFinite("the brain's action is not finite".to_owned()),
            (Ok(()), Some(periods)) => Cause::Stalled(periods),
            (Ok(()), None) => return None,
        };
        Some(Self { cause, is_injected })
    }

    /// The failure as an error, where there is no way back from it.
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

/// Who answers.
enum BrainState {
    Working(Box<dyn Brain>),
    /// The next brain, on its way from a thread of its own.
    Rebuilding(Receiver<Result<Box<dyn Brain>>>),
    /// Nobody: there is no way back.
    Empty,
}

/// What follows a failure.
enum RecoveryAction {
    /// The brain goes on as it is.
    Keep,
    /// The brain restores the host's state where it is.
    Restore,
    /// The brain is made anew on the CPU.
    Rebuild(Rebuild),
    /// Nothing.
    None,
}

/// The brain with its last state on the host.
pub(super) struct Controller {
    seat: BrainState,
    name: &'static str,
    /// The device that the first brain ran on.
    home: Option<String>,
    has_moved: bool,
    saved: Snapshot,
    saved_tick: u64,
    /// A recovery that is under way or waits for its first answer.
    open: Option<Recovery>,
    /// What the body gets while nobody answers.
    meanwhile: String,
}

impl Controller {
    pub(super) fn new(brain: Box<dyn Brain>) -> Self {
        let (name, home) = (brain.name(), device_id(brain.as_ref()));
        let meanwhile = "safe action".to_owned();
        Self { seat: BrainState::Working(brain), name, home, has_moved: false, saved: Snapshot::default(), saved_tick: 0, open: None, meanwhile }
    }

    /// Says who answers while the brain cannot.
    pub(super) fn meanwhile(&mut self, what: String) {
        self.meanwhile = what;
    }

    /// Goes on without a brain.
    pub(super) fn retire(&mut self) {
        self.seat = BrainState::Empty;
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the first brain ran on a device.
    pub(super) fn has_device(&self) -> bool {
        self.home.is_some()
    }

    /// Whether answers come from another device than at first.
    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// The device that answers; none for plain host arithmetic, and while nobody answers.
    pub(super) fn device_now(&self) -> Option<String> {
        match &self.seat {
            BrainState::Working(brain) => device_id(brain.as_ref()),
            BrainState::Rebuilding(_) | BrainState::Empty => None,
        }
    }

    /// The last state that the host holds.
    pub(super) fn saved(&self) -> &Snapshot {
        &self.saved
    }

    /// The state now, or the last one where nobody can be asked.
    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        match &self.seat {
            BrainState::Working(brain) => brain.snapshot(),
            BrainState::Rebuilding(_) | BrainState::Empty => Ok(self.saved.clone()),
        }
    }

    pub(super) fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.working().restore(state)
    }

    pub(super) fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        match &mut self.seat {
            BrainState::Working(brain) => brain.trace(),
            BrainState::Rebuilding(_) | BrainState::Empty => Ok(Vec::new()),
        }
    }

    /// The body was not given the last answer, or began anew.
    pub(super) fn interrupted(&mut self) {
        if let BrainState::Working(brain) = &mut self.seat {
            brain.interrupted();
        }
    }

    /// What the brain has learned.
    pub(super) fn learning(&self) -> Option<LearningCounts> {
        match &self.seat {
            BrainState::Working(brain) => brain.learning(),
            BrainState::Rebuilding(_) | BrainState::Empty => None,
        }
    }

    /// Takes the state before `tick` to the host. A state with NaN is refused and the one before stays.
    pub(super) fn save(&mut self, tick: u64) -> std::result::Result<(), Failure> {
        let BrainState::Working(brain) = &self.seat else { return Ok(()) };
        let failed = |cause| Failure { cause, is_injected: false };
        let state = brain.snapshot().map_err(|error| failed(Cause::Error(error)))?;
        if let Some(name) = state.nan_in() {
            return Err(failed(Cause::NotFinite(format!("the brain's state is not a number in {name}"))));
        }
        (self.saved, self.saved_tick) = (state, tick);
        Ok(())
    }

    /// The brain that answers.
    ///
    /// # Panics
    /// If [`Controller::settle`] did not say that there is one.
    pub(super) fn working(&mut self) -> &mut dyn Brain {
        match &mut self.seat {
            BrainState::Working(brain) => brain.as_mut(),
            BrainState::Rebuilding(_) | BrainState::Empty => unreachable!("invariant: asked only after settle said that a brain works"),
        }
    }

    /// Whether a brain can answer `tick`. Under a real clock nothing waits for one that is being built; under another one time
    /// stands still anyway, and waiting makes the run repeatable.
    pub(super) fn settle(&mut self, tick: u64, is_real: bool, session: &mut Session) -> Result<bool> {
        if matches!(self.seat, BrainState::Empty) {
            self.open.iter_mut().for_each(|recovery| recovery.safe_ticks += 1);
            return Ok(false);
        }
        if let BrainState::Rebuilding(next) = &self.seat {
            let arrived = if is_real { next.try_recv() } else { next.recv().map_err(|_| TryRecvError::Disconnected) };
            match arrived {
                Ok(Ok(brain)) => {
                    session.uses_code(&brain.code());
                    brain.notes().iter().for_each(|note| session.fell_back(&format!("brain {} on {FALLBACK_DEVICE}", self.name), note));
                    self.has_moved = device_id(brain.as_ref()) != self.home;
                    self.seat = BrainState::Working(brain);
                }
                Err(TryRecvError::Empty) => {
                    self.open.iter_mut().for_each(|recovery| recovery.safe_ticks += 1);
                    return Ok(false);
                }
                Ok(Err(error)) => {
                    self.seat = BrainState::Empty;
                    return Err(error.at(format_args!("brain {} on {FALLBACK_DEVICE}", self.name)));
                }
                Err(TryRecvError::Disconnected) => {
                    self.seat = BrainState::Empty;
                    return Err(Error::device_lost(format!("brain {} on {FALLBACK_DEVICE}: its building broke off", self.name)));
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

    /// A period in which there is nothing to answer to. The way back ends with the next answer.
    pub(super) fn blind(&mut self, reason: &str, tick: u64, is_injected: bool, session: &mut Session) {
        session.fell_back("safe action", reason);
        let at = self.device_now();
        let begin = || Recovery {
            tick,
            reason: reason.to_owned(),
            injected: is_injected,
            from: at.clone(),
            to: at,
            snapshot_tick: tick,
            resumed_at_tick: None,
            ticks_lost: 0,
            safe_ticks: 0,
        };
        self.open.get_or_insert_with(begin).safe_ticks += 1;
    }

    /// Begins the way back from a failure at `tick`, after which `safe_ticks` got the safe action.
    ///
    /// # Errors
    /// The failure itself where there is no way back.
    pub(super) fn recover(&mut self, failure: Failure, tick: u64, safe_ticks: u64, session: &mut Session) -> Result<()> {
        let Failure { cause, is_injected } = failure;
        let reason = cause.reason();
        let what = if matches!(cause, Cause::Stalled(_)) { "safe action" } else { &self.meanwhile };
        session.fell_back(what, &reason);
        let from = self.device_now();
        let remedy = self.remedy(&cause, from.as_deref());
        let (to, snapshot_tick) = match remedy {
            RecoveryAction::None => return Err(Failure { cause, is_injected }.into_error()),
            RecoveryAction::Keep if matches!(cause, Cause::Error(_)) => return Ok(()),
            // The late answer moved the state on by one tick; the periods after it are what the brain did not see.
            RecoveryAction::Keep => (from.clone(), tick + 1),
            RecoveryAction::Restore => {
                let saved = self.saved.clone();
                self.working().restore(&saved)?;
                (from.clone(), self.saved_tick)
            }
            RecoveryAction::Rebuild(rebuild) => {
                session.fell_back(&format!("brain {} goes on on {FALLBACK_DEVICE}", self.name), &reason);
                self.rebuild(rebuild)?;
                (Some(FALLBACK_DEVICE.to_owned()), self.saved_tick)
            }
        };
        let recovery = Recovery { tick, reason, injected: is_injected, from, to, snapshot_tick, resumed_at_tick: None, ticks_lost: 0, safe_ticks };
        self.open = Some(recovery);
        Ok(())
    }

    fn remedy(&self, cause: &Cause, device: Option<&str>) -> RecoveryAction {
        let BrainState::Working(brain) = &self.seat else { return RecoveryAction::None };
        let is_at_home = device.is_none_or(|id| id == FALLBACK_DEVICE);
        let elsewhere = |otherwise: RecoveryAction| brain.rebuild().map_or(otherwise, RecoveryAction::Rebuild);
        match cause {
            Cause::Error(error) => match error.kind() {
                ErrorKind::DeviceLost => elsewhere(RecoveryAction::None),
                ErrorKind::OutOfMemory if is_at_home => RecoveryAction::None,
                ErrorKind::OutOfMemory => elsewhere(RecoveryAction::None),
                _ => RecoveryAction::Keep,
            },
            Cause::NotFinite(_) if is_at_home => RecoveryAction::Restore,
            Cause::NotFinite(_) => elsewhere(RecoveryAction::Restore),
            Cause::Stalled(_) if is_at_home => RecoveryAction::Keep,
            Cause::Stalled(_) => elsewhere(RecoveryAction::Keep),
        }
    }

    /// Builds and restores the next brain on a thread of its own, which then drops this one: a lost device may take its time.
    fn rebuild(&mut self, rebuild: Rebuild) -> Result<()> {
        let (send, receive) = channel();
        let before = std::mem::replace(&mut self.seat, BrainState::Rebuilding(receive));
        let saved = self.saved.clone();
        let build = move || -> Result<Box<dyn Brain>> {
            let mut brain = rebuild(&Device::open(FALLBACK_DEVICE)?)?;
            brain.restore(&saved)?;
            Ok(brain)
        };
        let work = move || {
            drop_priority();
            // The loop may have ended meanwhile; then nobody wants the brain.
            let _ = send.send(build());
            drop(before);
        };
        let thread = std::thread::Builder::new().name("tectum-recovery".to_owned()).spawn(work);
        thread.map(|_| ()).map_err(|source| Error::io("a thread for the recovery", source))
    }

    /// Closes a recovery that the end of the run cut short.
    pub(super) fn close(&mut self, ticks: u64, session: &mut Session) {
        if let Some(mut recovery) = self.open.take() {
            recovery.ticks_lost = ticks.saturating_sub(recovery.snapshot_tick);
            session.recovered(recovery);
        }
    }
}

fn device_id(brain: &dyn Brain) -> Option<String> {
    brain.device().map(|device| device.info().id.clone())
}
