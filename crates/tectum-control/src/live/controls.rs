//! How viewers steer a run: state that its thread reads between two steps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tectum::{Error, Result};

use super::lock;
use crate::clock::ClockKind;

/// The maximum number of steps that may wait while a run is paused.
const MAX_PENDING_STEPS: u64 = 1_000;
/// The range of speeds.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1_000.0;

/// The orders of viewers. Each is a state and not a message, so that nothing can pile up.
#[derive(Clone)]
pub struct Controls(Arc<State>);

struct State {
    clock: ClockKind,
    is_paused: AtomicBool,
    /// Steps that a paused run may still make.
    steps: AtomicU64,
    /// The bits of a float64, seconds of the run for each second; 0 for as fast as possible.
    speed: AtomicU64,
    /// The run is to end.
    is_stopped: AtomicBool,
    /// A stop was ordered, under any clock.
    is_stop_ordered: AtomicBool,
    /// What a stop does under a real clock.
    stop: Mutex<Option<Box<dyn Fn() + Send>>>,
    change: (Mutex<()>, Condvar),
}

impl Controls {
    pub(super) fn new(clock: ClockKind) -> Self {
        Self(Arc::new(State {
            clock,
            is_paused: AtomicBool::new(false),
            steps: AtomicU64::new(0),
            speed: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            is_stop_ordered: AtomicBool::new(false),
            stop: Mutex::default(),
            change: Default::default(),
        }))
    }

    /// The clock of the run.
    pub fn clock(&self) -> ClockKind {
        self.0.clock
    }

    /// Sets what [`Controls::stop`] does under a real clock, such as pressing a stop switch.
    pub fn set_stop(&self, stop: impl Fn() + Send + 'static) {
        *lock(&self.0.stop) = Some(Box::new(stop));
    }

    /// Pauses the run before its next step, or continues it.
    ///
    /// # Errors
    /// `Unsupported` under a real clock.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        self.require_simulated("pause")?;
        self.0.steps.store(0, Ordering::Relaxed);
        self.0.is_paused.store(is_paused, Ordering::Relaxed);
        self.notify();
        Ok(())
    }

    /// Makes one step and pauses again.
    ///
    /// # Errors
    /// `Unsupported` under a real clock.
    pub fn step(&self) -> Result<()> {
        self.require_simulated("step")?;
        self.0.is_paused.store(true, Ordering::Relaxed);
        // If very many wait already, this one is not added.
        let _ = self
            .0
            .steps
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |steps| {
                (steps < MAX_PENDING_STEPS).then_some(steps + 1)
            });
        self.notify();
        Ok(())
    }

    /// Sets the seconds of the run for each second; none for as fast as possible.
    ///
    /// # Errors
    /// `Unsupported` under a real clock; `Invalid` outside of 0.01 to 1,000.
    pub fn set_speed(&self, speed: Option<f64>) -> Result<()> {
        self.require_simulated("speed")?;
        if let Some(speed) = speed.filter(|speed| !SPEEDS.contains(speed)) {
            return Err(Error::invalid(format!(
                "speed {speed}: it needs {} to {}",
                SPEEDS.start(),
                SPEEDS.end()
            )));
        }
        let bits = speed.unwrap_or(0.0).to_bits();
        self.0.speed.store(bits, Ordering::Relaxed);
        self.notify();
        Ok(())
    }

    /// Stops the run: under a simulated clock it ends, under a real one the body gets its safe
    /// action until the run ends.
    pub fn stop(&self) {
        self.0.is_stop_ordered.store(true, Ordering::Relaxed);
        match (self.0.clock, &*lock(&self.0.stop)) {
            (ClockKind::Real, Some(stop)) => stop(),
            _ => self.0.is_stopped.store(true, Ordering::Relaxed),
        }
        self.notify();
    }

    /// Whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Whether a stop was ordered: under a real clock the body gets its safe action from then on.
    pub fn is_stop_ordered(&self) -> bool {
        self.0.is_stop_ordered.load(Ordering::Relaxed)
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.0.is_paused.load(Ordering::Relaxed)
    }

    /// Seconds of the run for each second; none for as fast as possible.
    pub fn speed(&self) -> Option<f64> {
        let speed = f64::from_bits(self.0.speed.load(Ordering::Relaxed));
        (speed > 0.0).then_some(speed)
    }

    /// Takes one of the steps that a paused run may make; whether there was one.
    pub(super) fn take_step(&self) -> bool {
        self.0
            .steps
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |steps| {
                steps.checked_sub(1)
            })
            .is_ok()
    }

    /// Waits for an order, or until a time has passed.
    pub(super) fn wait(&self, limit: Duration) {
        let (mutex, change) = &self.0.change;
        // Both results, an order and the end of the time, are for the caller to look at.
        drop(change.wait_timeout(lock(mutex), limit));
    }

    fn notify(&self) {
        let (mutex, change) = &self.0.change;
        let _guard = lock(mutex);
        change.notify_all();
    }

    fn require_simulated(&self, order: &str) -> Result<()> {
        match self.0.clock {
            ClockKind::Sim => Ok(()),
            ClockKind::Real => Err(Error::unsupported(format!(
                "{order}: the clock of this run is real; only stop is possible"
            ))),
        }
    }
}
