//! Simulated time at a viewer's pace.

use std::time::{Duration, Instant};

use super::Controls;
use crate::clock::{Clock, SimClock};

/// How long a wait lasts before it looks for the end of the run.
const LOOK: Duration = Duration::from_millis(20);
/// A run that is further behind its speed does not catch up.
const MAX_BEHIND: Duration = Duration::from_millis(200);

/// Where a run is compared with the machine's time.
pub struct Pace {
    controls: Controls,
    /// A moment, the run's time at it, and the speed since then.
    anchor: Option<(Instant, u64, f64)>,
}

impl Pace {
    /// The pace of a run that its viewers set.
    pub fn new(controls: Controls) -> Self {
        Self {
            controls,
            anchor: None,
        }
    }

    /// Returns when the step at `time_ns` of the run may begin: at once, unless the run is paused
    /// or has a speed; or when it is over.
    pub fn wait(&mut self, time_ns: u64, is_over: &dyn Fn() -> bool) {
        while !is_over() && !self.controls.is_stopped() {
            if self.controls.is_paused() {
                self.anchor = None;
                if self.controls.take_step() {
                    return;
                }
                self.controls.wait(LOOK);
                continue;
            }
            let Some(left) = self.left(time_ns) else {
                return;
            };
            self.controls.wait(left.min(LOOK));
        }
    }

    /// How long the step has to wait; none if it may begin.
    fn left(&mut self, time_ns: u64) -> Option<Duration> {
        let speed = self.controls.speed()?;
        let now = Instant::now();
        let known = self.anchor.filter(|(.., known)| *known == speed);
        let (moment, from_ns, _) = *self.anchor.insert(known.unwrap_or((now, time_ns, speed)));
        let passed = Duration::from_nanos(time_ns.saturating_sub(from_ns));
        let due = moment + passed.div_f64(speed);
        if now.saturating_duration_since(due) > MAX_BEHIND {
            self.anchor = Some((now, time_ns, speed));
        }
        due.checked_duration_since(now)
            .filter(|left| !left.is_zero())
    }
}

/// A simulated clock whose periods begin at the pace of viewers. Results are those of
/// [`SimClock`].
pub struct PacedClock<'a> {
    clock: SimClock,
    pace: Pace,
    is_over: &'a dyn Fn() -> bool,
}

impl<'a> PacedClock<'a> {
    /// A clock at 0; `is_over` ends a wait.
    pub fn new(controls: Controls, is_over: &'a dyn Fn() -> bool) -> Self {
        Self {
            clock: SimClock::new(),
            pace: Pace::new(controls),
            is_over,
        }
    }
}

impl Clock for PacedClock<'_> {
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns()
    }

    fn wait_until(&mut self, deadline_ns: u64) -> u64 {
        self.pace.wait(deadline_ns, self.is_over);
        self.clock.wait_until(deadline_ns)
    }

    fn is_real(&self) -> bool {
        false
    }
}
