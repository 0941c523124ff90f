//! The loop of bursts, on a thread of its own with deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tectum::{Latency, LatencyHistogram, Receipt, Result};
use tectum_control::clock::{Clock as _, RealClock};
use tectum_spiking::Simulation;

use super::areas::{Areas, Injections, combined};
use super::container::{self, AgentId, IdSize};
use super::sockets::SharedState;

/// How long the thread sleeps before it looks whether it is to stop.
const MAX_SLEEP_NS: u64 = 20_000_000;

/// What the thread of bursts uses.
pub(super) struct Bursts {
    pub simulation: Simulation,
    pub areas: Arc<Areas>,
    pub state: SharedState,
    pub period: Duration,
    pub stop: Arc<AtomicBool>,
}

/// What a loop of bursts did.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub receipt: Receipt,
    /// From a burst's deadline until its motor frame is ready for the sockets.
    pub latency_ms: Latency,
}

impl Bursts {
    /// Runs bursts until it is stopped.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run(mut self) -> Result<Outcome> {
        let (mut clock, mut latency) = (RealClock::new(), LatencyHistogram::default());
        let period_ns = self.period.as_nanos() as u64;
        let mut deadline_ns = clock.now_ns();
        while self.wait_until(&mut clock, deadline_ns) {
            self.burst()?;
            let now_ns = clock.now_ns();
            latency.record(now_ns - deadline_ns);
            let (next_ns, missed) = next_deadline(deadline_ns, period_ns, now_ns);
            deadline_ns = next_ns;
            let mut state = self.state.lock();
            state.counts.bursts += 1;
            state.counts.missed_deadlines += missed;
        }
        Ok(Outcome {
            receipt: self.simulation.session().receipt(),
            latency_ms: latency.percentiles(),
        })
    }

    /// Waits; false if it is to stop.
    fn wait_until(&self, clock: &mut RealClock, deadline_ns: u64) -> bool {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let now_ns = clock.now_ns();
            if now_ns >= deadline_ns {
                return true;
            }
            clock.wait_until(deadline_ns.min(now_ns + MAX_SLEEP_NS));
        }
    }

    /// One burst with the latest sensor frames.
    fn burst(&mut self) -> Result<()> {
        let frames: Vec<Injections> = {
            let mut state = self.state.lock();
            std::mem::take(&mut state.frames).into_values().collect()
        };
        if !frames.is_empty() {
            let used = frames.len() as u64;
            let (injections, left_out) = combined(frames, self.areas.max_injected());
            let mut state = self.state.lock();
            state.counts.used_frames += used - left_out;
            state.counts.refused_frames += left_out;
            drop(state);
            if left_out > 0 {
                tracing::warn!(
                    left_out,
                    "sensor frames of several agents exceed the maximum of a neuron"
                );
            }
            self.simulation.inject(&injections)?;
        }
        let burst = self.simulation.run(1)?.bursts;
        let Some(structure) = self
            .areas
            .firings(|neuron| self.simulation.has_fired(neuron))
        else {
            return Ok(());
        };
        // The agent's id is absent, as in FEAGI; the counter is the burst, in 16 bits.
        let [long, short] = [IdSize::Long, IdSize::Short].map(|size| {
            Arc::new(container::write(
                burst as u16,
                &AgentId::blank(size),
                &structure,
            ))
        });
        let mut state = self.state.lock();
        let mut dropped = 0;
        for subscriber in state.subscribers.values_mut() {
            let frame = match subscriber.agent().size() {
                IdSize::Long => &long,
                IdSize::Short => &short,
            };
            dropped += u64::from(subscriber.offer(frame));
        }
        state.counts.dropped_motor_frames += dropped;
        Ok(())
    }
}

/// The next deadline after a burst that ended now, and how many deadlines passed without one.
fn next_deadline(deadline_ns: u64, period_ns: u64, now_ns: u64) -> (u64, u64) {
    let next_ns = deadline_ns + period_ns;
    let missed = now_ns.saturating_sub(next_ns) / period_ns.max(1);
    (next_ns + missed * period_ns, missed)
}

#[cfg(test)]
mod tests {
    use super::next_deadline;

    #[test]
    fn deadlines_keep_their_phase_and_those_that_passed_are_counted() {
        for (now_ns, expected) in [
            (1_000, (1_100, 0)),
            (1_099, (1_100, 0)),
            // A burst that is late by less than a period begins at once.
            (1_150, (1_100, 0)),
            (1_200, (1_200, 1)),
            (1_599, (1_500, 4)),
        ] {
            assert_eq!(next_deadline(1_000, 100, now_ns), expected, "{now_ns}");
        }
    }
}
