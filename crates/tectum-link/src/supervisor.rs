//! When a body in real time gets the brain's action, the last one, or its safe one.
//!
//! ```text
//!  waiting ──observation──▶ fresh ◀──▶ held ──hold limit──▶ stale
//!     │                       │          │                    │ observations again
//!     │                       ▼          ▼                    ▼
//!     └──────────────────▶ disconnected ──────────────────▶ disarmed ──armed, and a new
//!                                                              observation──▶ fresh
//! ```

use tectum_control::body::link::LinkState;

/// The longest hold limit that follows from the period alone.
const MAX_HOLD_NS: u64 = 100_000_000;
/// Periods of the hold limit.
const HOLD_PERIODS: u64 = 3;

/// How long the last action is held after the last observation: min(3 periods, 100 ms), but one and
/// a half periods at least, since a body with a long period sends no observation sooner.
pub(crate) fn hold_limit_ns(period_ns: u64) -> u64 {
    (HOLD_PERIODS * period_ns)
        .min(MAX_HOLD_NS)
        .max(period_ns + period_ns / 2)
}

/// What the I/O thread knows at the beginning of a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number of the connection, counted up from 1; 0 before the first.
    pub connection: u64,
    pub is_connected: bool,
    /// When the newest observation arrived, if it was not used before.
    pub arrived_ns: Option<u64>,
    /// The body was armed since the period before.
    pub is_armed: bool,
}

/// The state of a body in real time. All times are of one clock.
#[derive(Debug)]
pub(crate) struct Supervisor {
    hold_ns: u64,
    /// How long the first observation of an episode may take.
    wait_ns: u64,
    connection: u64,
    /// When the last observation of this connection arrived.
    last_ns: Option<u64>,
    /// Since when the first observation of the episode is expected.
    waiting_since_ns: Option<u64>,
    is_stopped: bool,
    /// The body was armed after the stop, and its next observation ends it.
    is_armed: bool,
    /// Times that a stop ended.
    pub rearmed: u64,
}

impl Supervisor {
    /// Begins to wait for the first observation of a connection that works.
    pub fn new(hold_ns: u64, wait_ns: u64, connection: u64, now_ns: u64) -> Self {
        Self {
            hold_ns,
            wait_ns,
            connection,
            last_ns: None,
            waiting_since_ns: Some(now_ns),
            is_stopped: false,
            is_armed: false,
            rearmed: 0,
        }
    }

    /// Begins to wait for the first observation after a reset.
    pub fn reset(&mut self, now_ns: u64) {
        self.last_ns = None;
        self.waiting_since_ns = Some(now_ns);
    }

    /// When the last observation arrived.
    pub fn last_ns(&self) -> Option<u64> {
        self.last_ns
    }

    /// The state in a period.
    pub fn period(&mut self, now_ns: u64, seen: &Seen) -> LinkState {
        if !seen.is_connected || seen.connection != self.connection {
            self.connection = seen.connection;
            self.is_stopped = true;
            self.is_armed = false;
            self.last_ns = None;
            self.waiting_since_ns = None;
        }
        if !seen.is_connected {
            return LinkState::Disconnected;
        }
        if let Some(arrived_ns) = seen.arrived_ns {
            self.last_ns = Some(arrived_ns);
            self.waiting_since_ns = None;
        }
        let is_recent = self
            .last_ns
            .is_some_and(|last_ns| now_ns.saturating_sub(last_ns) <= self.hold_ns);
        if self.is_stopped {
            return self.stopped(seen, is_recent);
        }
        match (self.waiting_since_ns, is_recent, seen.arrived_ns) {
            (Some(since_ns), _, _) if now_ns.saturating_sub(since_ns) <= self.wait_ns => {
                LinkState::Waiting
            }
            (_, true, Some(_)) => LinkState::Fresh,
            (_, true, None) => LinkState::Held,
            (_, false, _) => {
                self.is_stopped = true;
                self.waiting_since_ns = None;
                LinkState::Stale
            }
        }
    }

    /// The state after a stop, which ends with a new observation after the body was armed.
    fn stopped(&mut self, seen: &Seen, is_recent: bool) -> LinkState {
        self.is_armed |= seen.is_armed;
        match (is_recent, self.is_armed && seen.arrived_ns.is_some()) {
            (true, true) => {
                self.is_stopped = false;
                self.is_armed = false;
                self.rearmed += 1;
                LinkState::Fresh
            }
            (true, false) => LinkState::Disarmed,
            (false, _) => LinkState::Stale,
        }
    }
}

#[cfg(test)]
mod tests {
    use LinkState::{Disarmed, Disconnected, Fresh, Held, Stale, Waiting};

    use super::*;

    const MS: u64 = 1_000_000;

    /// What happens in a period of 20 ms: observation, connection, arming.
    #[derive(Clone, Copy)]
    struct At(u64, bool, u64, bool);

    /// The states of periods, at their times.
    fn states(periods: &[At]) -> Vec<LinkState> {
        let mut supervisor = Supervisor::new(hold_limit_ns(20 * MS), 1000 * MS, 1, 0);
        let state = |At(ms, has_observation, connection, is_armed): &At| {
            let seen = Seen {
                connection: *connection,
                is_connected: *connection > 0,
                arrived_ns: has_observation.then_some(ms * MS),
                is_armed: *is_armed,
            };
            supervisor.period(ms * MS, &seen)
        };
        periods.iter().map(state).collect()
    }

    #[test]
    fn the_hold_limit_follows_from_the_period() {
        for (period_ms, hold_ms) in [
            (1, 3),
            (20, 60),
            (33, 99),
            (50, 100),
            (100, 150),
            (1000, 1500),
        ] {
            assert_eq!(
                hold_limit_ns(period_ms * MS),
                hold_ms * MS,
                "{period_ms} ms"
            );
        }
    }

    #[test]
    fn an_action_is_held_to_the_limit_and_a_stale_stop_lasts_until_the_body_is_armed() {
        let found = states(&[
            At(0, false, 1, false),
            At(20, true, 1, false),
            At(40, false, 1, false),
            At(80, false, 1, false),
            // 60 ms after the last observation, and one nanosecond is not tested here.
            At(81, false, 1, false),
            At(100, true, 1, false),
            At(120, true, 1, false),
            At(140, false, 1, true),
            At(160, true, 1, false),
            At(180, false, 1, false),
        ]);
        let expected = [
            Waiting, Fresh, Held, Held, Stale, Disarmed, Disarmed, Disarmed, Fresh, Held,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_connection_that_was_lost_between_two_periods_is_a_stop() {
        let found = states(&[
            At(0, true, 1, false),
            At(20, true, 2, false),
            At(40, true, 2, true),
            At(60, true, 0, false),
            At(80, true, 0, true),
            // Armed while there was no connection: not valid for the next.
            At(100, true, 3, false),
            At(120, true, 3, false),
            At(140, true, 3, true),
        ]);
        let expected = [
            Fresh,
            Disarmed,
            Fresh,
            Disconnected,
            Disconnected,
            Disarmed,
            Disarmed,
            Fresh,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn arming_before_a_stop_does_not_end_it() {
        let found = states(&[
            At(0, true, 1, true),
            At(20, true, 1, true),
            At(200, false, 1, false),
            At(220, true, 1, false),
            At(240, true, 1, true),
        ]);
        assert_eq!(found, [Fresh, Fresh, Stale, Disarmed, Fresh]);
    }

    #[test]
    fn the_first_observation_is_awaited_for_a_limited_time_and_after_a_reset_again() {
        let mut supervisor = Supervisor::new(60 * MS, 1000 * MS, 1, 0);
        let seen = |arrived_ns| Seen {
            connection: 1,
            is_connected: true,
            arrived_ns,
            is_armed: false,
        };
        assert_eq!(supervisor.period(500 * MS, &seen(None)), Waiting);
        assert_eq!(supervisor.period(900 * MS, &seen(Some(900 * MS))), Fresh);
        supervisor.reset(910 * MS);
        assert_eq!(supervisor.period(920 * MS, &seen(None)), Waiting);
        assert_eq!(supervisor.period(1911 * MS, &seen(None)), Stale);
        assert_eq!(supervisor.period(1920 * MS, &seen(None)), Stale);
    }

    #[test]
    fn an_observation_that_was_old_when_the_loop_saw_it_is_not_answered() {
        let mut supervisor = Supervisor::new(60 * MS, 1000 * MS, 1, 0);
        let seen = Seen {
            connection: 1,
            is_connected: true,
            arrived_ns: Some(10 * MS),
            is_armed: false,
        };
        assert_eq!(supervisor.period(200 * MS, &seen), Stale);
    }
}
