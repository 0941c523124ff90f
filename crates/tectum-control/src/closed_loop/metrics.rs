//! What a loop counts.

use tectum::{Result, RunStats};

use super::episodes::Episodes;
use tectum::snapshot::{Array, Snapshot};

/// Represents "never" in snapshots.
const NEVER: u64 = u64::MAX;

/// Counts over a run, part of its snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// Periods done.
    pub ticks: u64,
    /// Periods that began in success.
    pub success_ticks: u64,
    /// The first tick from which success lasted as long as the task asks.
    pub success_since_tick: Option<u64>,
    /// Periods whose answer was late.
    pub deadline_misses: u64,
    /// Answers replaced by the safe action.
    pub fallbacks: u64,
    /// Episodes begun.
    pub episodes: u64,
    /// Sum of the rewards.
    pub total_reward: f64,
    /// The episodes that have ended.
    pub ended: Episodes,
    seed: u64,
    streak_since_tick: Option<u64>,
}

impl Metrics {
    /// Nothing counted yet; episodes start from `seed`, `seed + 1` …
    pub fn new(seed: u64) -> Self {
        Self {
            ticks: 0,
            success_ticks: 0,
            success_since_tick: None,
            deadline_misses: 0,
            fallbacks: 0,
            episodes: 1,
            total_reward: 0.0,
            ended: Episodes::default(),
            seed,
            streak_since_tick: None,
        }
    }

    /// Share of the periods that began in success, 0 before the first.
    pub fn success_fraction(&self) -> f64 {
        self.success_ticks as f64 / self.ticks.max(1) as f64
    }

    /// Counts a period that began in success or not; a success counts as reached after `hold_ticks`
    /// periods.
    pub(super) fn count_period(&mut self, is_success: bool, hold_ticks: u64, reward: f64) {
        self.streak_since_tick = is_success.then_some(self.streak_since_tick.unwrap_or(self.ticks));
        self.success_ticks += u64::from(is_success);
        self.ticks += 1;
        self.total_reward += reward;
        self.ended.add_reward(reward);
        let held_since = self
            .streak_since_tick
            .filter(|since| self.ticks - since >= hold_ticks);
        self.success_since_tick = self.success_since_tick.or(held_since);
    }

    /// Ends an episode, which the body terminated or limited, and begins the next; returns its
    /// seed. A streak does not continue in it.
    pub(super) fn next_episode(&mut self, is_terminated: bool) -> u64 {
        self.ended.end(is_terminated);
        self.streak_since_tick = None;
        self.episodes += 1;
        self.seed.wrapping_add(self.episodes - 1)
    }

    /// As named arrays `prefix.counts` and `prefix.total_reward`, with those of the episodes.
    pub(super) fn snapshot(&self, prefix: &str) -> Snapshot {
        let counts = vec![
            self.ticks,
            self.success_ticks,
            self.success_since_tick.unwrap_or(NEVER),
            self.deadline_misses,
            self.fallbacks,
            self.episodes,
            self.seed,
            self.streak_since_tick.unwrap_or(NEVER),
        ];
        let mut snapshot = self.ended.snapshot(prefix);
        snapshot.insert(format!("{prefix}.counts"), Array::U64(counts));
        snapshot.insert(
            format!("{prefix}.total_reward"),
            Array::F64(vec![self.total_reward]),
        );
        snapshot
    }

    /// Restores what [`Metrics::snapshot`] returned.
    ///
    /// # Errors
    /// `Data` if an array is missing.
    pub(super) fn restored(snapshot: &Snapshot, prefix: &str) -> Result<Self> {
        let tick = |count: u64| (count != NEVER).then_some(count);
        let counts = snapshot.u64(&format!("{prefix}.counts"), 8)?;
        Ok(Self {
            ticks: counts[0],
            success_ticks: counts[1],
            success_since_tick: tick(counts[2]),
            deadline_misses: counts[3],
            fallbacks: counts[4],
            episodes: counts[5],
            total_reward: snapshot.f64(&format!("{prefix}.total_reward"), 1)?[0],
            ended: Episodes::restored(snapshot, prefix)?,
            seed: counts[6],
            streak_since_tick: tick(counts[7]),
        })
    }
}

/// Transfers of one answer to the brain's device and back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TransfersPerTick {
    answers: u64,
    totals: (u64, u64),
    first: (u32, u32),
    is_uneven: bool,
}

impl TransfersPerTick {
    pub(super) fn record(&mut self, stats: &RunStats) {
        let now = (stats.transfers_up, stats.transfers_down);
        if self.answers == 0 {
            self.first = now;
        }
        self.is_uneven |= now != self.first;
        self.answers += 1;
        self.totals.0 += u64::from(now.0);
        self.totals.1 += u64::from(now.1);
    }

    /// Mean number of transfers up and down.
    pub fn mean(&self) -> (f64, f64) {
        let answers = self.answers.max(1) as f64;
        (
            self.totals.0 as f64 / answers,
            self.totals.1 as f64 / answers,
        )
    }

    /// The numbers up and down if every answer had the same.
    pub fn constant_counts(&self) -> Option<(u32, u32)> {
        (!self.is_uneven).then_some(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::closed_loop::EpisodeReturns;

    #[test]
    fn success_is_counted_from_the_first_streak_that_lasts() {
        let mut metrics = Metrics::new(7);
        // For three periods, then to the end; it must last ten.
        for tick in 0..30 {
            metrics.count_period((2..5).contains(&tick) || tick >= 8, 10, -0.5);
            assert_eq!(
                metrics.success_since_tick,
                (tick >= 17).then_some(8),
                "tick {tick}"
            );
        }
        assert_eq!((metrics.success_ticks, metrics.total_reward), (25, -15.0));
        assert_eq!(
            (
                metrics.next_episode(true),
                metrics.episodes,
                metrics.ended.returns()
            ),
            (
                8,
                2,
                Some(EpisodeReturns {
                    min: -15.0,
                    mean: -15.0,
                    max: -15.0
                })
            )
        );
        metrics.count_period(false, 10, 3.0);
        assert_eq!(
            (
                metrics.next_episode(false),
                metrics.episodes,
                (metrics.ended.ended, metrics.ended.terminated)
            ),
            (9, 3, (2, 1))
        );
        metrics.count_period(false, 10, 100.0);
        assert_eq!(
            metrics.ended.returns(),
            Some(EpisodeReturns {
                min: -15.0,
                mean: -6.0,
                max: 3.0
            })
        );
        assert_eq!(
            Metrics::restored(&metrics.snapshot("loop"), "loop").expect("complete"),
            metrics
        );
    }
}
