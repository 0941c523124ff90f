//! Periods of simulated time: when a request of the loop is answered by an observation.
//!
//! A period ends when the robot's time has advanced by it. The time of an observation is that in the
//! header of its leading message, where it has one, and otherwise the latest of the clock.

/// A request of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Request {
    /// The number of its message.
    number: u64,
    /// The time from which on it is answered; none for a reset.
    due_ns: Option<i64>,
    /// Whether the leading topic has delivered since, a message without a time.
    has_led: bool,
}

/// Requests and the time of a robot. All times are nanoseconds of its clock.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps {
    period_ns: i64,
    clock_ns: Option<i64>,
    /// When the last period ended.
    ended_ns: Option<i64>,
    request: Option<Request>,
}

impl Steps {
    pub fn new(period_s: f64) -> Self {
        Self {
            period_ns: (period_s * 1e9).round() as i64,
            clock_ns: None,
            ended_ns: None,
            request: None,
        }
    }

    /// The latest time.
    pub fn clock_ns(&self) -> Option<i64> {
        self.clock_ns
    }

    /// Takes the time. If it was set back, a period ends at once.
    pub fn follow(&mut self, clock_ns: i64) {
        if self.clock_ns.is_some_and(|before_ns| clock_ns < before_ns) {
            self.ended_ns = None;
            let due_ns = self
                .request
                .as_mut()
                .and_then(|request| request.due_ns.as_mut());
            due_ns.into_iter().for_each(|due_ns| *due_ns = clock_ns);
        }
        self.clock_ns = Some(clock_ns);
    }

    /// Begins an episode: the next observation answers.
    pub fn reset(&mut self, number: u64) {
        self.ended_ns = None;
        self.request = Some(Request {
            number,
            due_ns: None,
            has_led: false,
        });
    }

    /// Begins a period; whether the time is known.
    pub fn step(&mut self, number: u64) -> bool {
        let Some(clock_ns) = self.clock_ns else {
            return false;
        };
        // Periods follow each other without gaps, unless the loop was later than a period.
        let began_ns = self.ended_ns.unwrap_or(clock_ns);
        let is_late = clock_ns - began_ns >= self.period_ns;
        let began_ns = if is_late { clock_ns } else { began_ns };
        self.request = Some(Request {
            number,
            due_ns: Some(began_ns + self.period_ns),
            has_led: false,
        });
        true
    }

    /// The number of the request that an observation answers now, which is none after that. `leading`
    /// is whether the leading topic has delivered, with the time of the message if it states one.
    pub fn answered(&mut self, leading: Option<Option<i64>>) -> Option<u64> {
        let request = self.request.as_mut()?;
        let is_due = |time_ns: Option<i64>| match request.due_ns {
            Some(due_ns) => time_ns.is_some_and(|time_ns| time_ns >= due_ns),
            None => true,
        };
        let (has_led, time_ns) = match leading {
            Some(Some(stamp_ns)) => (true, Some(stamp_ns)),
            Some(None) => (true, self.clock_ns),
            None => (request.has_led, self.clock_ns),
        };
        if !(has_led && is_due(time_ns)) {
            // A message with a time of its own is of the period before.
            request.has_led |= leading == Some(None);
            return None;
        }
        let Request { number, due_ns, .. } = *request;
        self.request = None;
        self.ended_ns = due_ns.or(time_ns);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// The requests that are answered at the times of a clock with ticks of 10 ms, each followed by
    /// a leading message with a time; the loop begins a period after each answer.
    fn ticks(has_stamp: bool) -> Vec<i64> {
        let mut steps = Steps::new(0.02);
        let mut answered = Vec::new();
        steps.reset(0);
        for tick in 1..=9 {
            steps.follow(tick * 10 * MS);
            let stamp_ns = has_stamp.then_some(tick * 10 * MS);
            if let Some(number) = steps.answered(Some(stamp_ns)) {
                answered.push(tick);
                assert!(steps.step(number + 1));
            }
        }
        answered
    }

    #[test]
    fn a_period_of_two_ticks_is_answered_at_each_second_tick() {
        for has_stamp in [true, false] {
            assert_eq!(ticks(has_stamp), [1, 3, 5, 7, 9]);
        }
    }

    #[test]
    fn the_time_of_the_leading_message_counts_more_than_the_clock() {
        let mut steps = Steps::new(0.02);
        steps.follow(0);
        assert!(steps.step(1));
        steps.follow(20 * MS);
        assert_eq!(steps.answered(Some(Some(19 * MS))), None);
        assert_eq!(steps.answered(None), None, "it was of the period before");
        assert_eq!(steps.answered(Some(Some(20 * MS))), Some(1));
        assert_eq!(steps.answered(Some(Some(40 * MS))), None, "one answer");
        // Without a message of the leading topic an observation would be the one before.
        assert!(steps.step(2));
        steps.follow(40 * MS);
        assert_eq!(steps.answered(None), None);
        assert_eq!(steps.answered(Some(None)), Some(2));
    }

    #[test]
    fn a_late_loop_begins_a_period_at_the_present_time() {
        let mut steps = Steps::new(0.02);
        assert!(!steps.step(1), "no time yet");
        steps.follow(0);
        assert!(steps.step(1));
        steps.follow(20 * MS);
        assert_eq!(steps.answered(Some(None)), Some(1));
        steps.follow(75 * MS);
        assert!(steps.step(2));
        steps.follow(94 * MS);
        assert_eq!(steps.answered(Some(None)), None);
        steps.follow(95 * MS);
        assert_eq!(steps.answered(Some(None)), Some(2));
    }

    #[test]
    fn a_clock_that_is_set_back_ends_a_period() {
        let mut steps = Steps::new(0.02);
        steps.follow(1000 * MS);
        assert!(steps.step(1));
        steps.follow(5 * MS);
        assert_eq!(steps.answered(Some(None)), Some(1));
        assert!(steps.step(2));
        steps.follow(25 * MS);
        assert_eq!(steps.answered(Some(None)), Some(2));
    }
}
