//! The clocks of a loop.

use serde::Serialize;
use std::time::{Duration, Instant};

/// The clock of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// The machine's monotonic clock, with absolute deadlines.
    Real,
    /// Time advances by the body's step, without waiting; every answer is in time.
    Sim,
}

impl ClockKind {
    /// All of them by their names in scenarios.
    pub const ALL: [(&'static str, Self); 2] = [("real", Self::Real), ("sim", Self::Sim)];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Sim => "sim",
        }
    }

    /// A clock of this kind, at 0.
    pub fn start(self) -> Box<dyn Clock> {
        match self {
            ClockKind::Real => Box::new(RealClock::new()),
            ClockKind::Sim => Box::new(SimClock::new()),
        }
    }
}

/// A monotonic clock that starts at 0 and that a loop can wait on.
///
/// Deadlines are absolute, so that the error of one wait never shifts the next.
pub trait Clock {
    /// Nanoseconds since the loop began.
    fn now_ns(&mut self) -> u64;

    /// Returns at `deadline_ns` or as soon after as possible, with how late it was; immediately if
    /// the deadline is past.
    fn wait_until(&mut self, deadline_ns: u64) -> u64;

    /// Whether its times are measured. Times of a clock that is not real have no meaning and are
    /// left out of recordings.
    fn is_real(&self) -> bool;
}

/// The machine's monotonic clock; starts at the first use.
#[derive(Debug, Default)]
pub struct RealClock {
    start: Option<Instant>,
}

impl RealClock {
    /// A clock that has not started yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for RealClock {
    fn now_ns(&mut self) -> u64 {
        self.start
            .get_or_insert_with(Instant::now)
            .elapsed()
            .as_nanos() as u64
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        loop {
            let now_ns = self.now_ns();
            if now_ns >= deadline_ns {
                return now_ns - deadline_ns;
            }
            std::thread::sleep(Duration::from_nanos(deadline_ns - now_ns));
        }
    }

    fn is_real(&self) -> bool {
        true
    }
}

/// Time that only passes by waiting: ticks take no time, and every deadline is met.
#[derive(Debug, Default)]
pub struct SimClock {
    now_ns: u64,
}

impl SimClock {
    /// A clock at 0.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SimClock {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        self.now_ns = self.now_ns.max(deadline_ns);
        self.now_ns - deadline_ns
    }

    fn is_real(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, RealClock, SimClock};

    #[test]
    fn simulated_time_passes_only_by_waiting_and_never_back() {
        let mut clock = SimClock::new();
        assert_eq!(clock.wait_until(40), 0);
        assert_eq!((clock.now_ns(), clock.now_ns()), (40, 40));
        assert_eq!((clock.wait_until(30), clock.now_ns()), (10, 40));
    }

    #[test]
    fn a_real_wait_never_returns_early_and_reports_its_lateness() {
        let mut clock = RealClock::new();
        let late_ns = clock.wait_until(2_000_000);
        assert!(clock.now_ns() >= 2_000_000 + late_ns);
        assert!(clock.wait_until(1_000_000) >= 1_000_000);
    }
}
