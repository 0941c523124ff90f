//! The episodes of a run that have ended.

use serde::Serialize;
use tectum::Result;
use tectum::snapshot::{Array, Snapshot};

/// Number and returns of the episodes that have ended; part of a run's snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Episodes {
    /// Episodes that have ended.
    pub ended: u64,
    /// Those that the body terminated; the others reached its time limit.
    pub terminated: u64,
    sum: f64,
    min: f64,
    max: f64,
    /// Sum of the rewards of the present episode.
    present: f64,
}

/// The returns of several episodes: the sum of the rewards of each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EpisodeReturns {
    /// Lowest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Highest.
    pub max: f64,
}

impl Episodes {
    /// The returns of those that have ended; none if none has.
    pub fn returns(&self) -> Option<EpisodeReturns> {
        (self.ended > 0).then(|| EpisodeReturns {
            min: self.min,
            mean: self.sum / self.ended as f64,
            max: self.max,
        })
    }

    pub(super) fn add_reward(&mut self, reward: f64) {
        self.present += reward;
    }

    /// Ends the present episode.
    pub(super) fn end(&mut self, is_terminated: bool) {
        let present = std::mem::take(&mut self.present);
        (self.min, self.max) = if self.ended == 0 {
            (present, present)
        } else {
            (self.min.min(present), self.max.max(present))
        };
        self.sum += present;
        self.ended += 1;
        self.terminated += u64::from(is_terminated);
    }

    /// As named arrays `prefix.ended_episodes` and `prefix.episode_returns`.
    pub(super) fn snapshot(&self, prefix: &str) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.insert(
            format!("{prefix}.ended_episodes"),
            Array::U64(vec![self.ended, self.terminated]),
        );
        snapshot.insert(
            format!("{prefix}.episode_returns"),
            Array::F64(vec![self.sum, self.min, self.max, self.present]),
        );
        snapshot
    }

    /// Restores what [`Episodes::snapshot`] returned.
    ///
    /// # Errors
    /// `Data` if an array is missing.
    pub(super) fn restored(snapshot: &Snapshot, prefix: &str) -> Result<Self> {
        let counts = snapshot.u64(&format!("{prefix}.ended_episodes"), 2)?;
        let returns = snapshot.f64(&format!("{prefix}.episode_returns"), 4)?;
        Ok(Self {
            ended: counts[0],
            terminated: counts[1],
            sum: returns[0],
            min: returns[1],
            max: returns[2],
            present: returns[3],
        })
    }
}
