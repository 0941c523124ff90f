//! The chunks of actions that a policy has given, and the row of the present tick.

use tectum::snapshot::{Array, Snapshot};
use tectum::{Error, Result};

use super::schedule::Schedule;

/// The last chunks. Rows are counted by the actions that were used since the start of the episode:
/// a chunk begins at the count of its observation, so that rows of ticks that passed until it
/// arrived are skipped, and ticks without an action skip none.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Numbers of a row, and rows of a chunk.
    width: usize,
    len: usize,
    /// Room for as many chunks as can predict one tick; a new one replaces the oldest.
    rows: Vec<f32>,
    /// The count at which each of them begins.
    starts: Vec<u64>,
    /// Weights of the predictions of a tick, the oldest first.
    weights: Vec<f64>,
    /// Chunks received.
    received: u64,
    /// Actions used.
    pub used: u64,
}

impl Chunks {
    pub fn new(schedule: &Schedule, width: usize) -> Self {
        let overlap = schedule.overlap();
        let weight = |age: usize| (-schedule.ensemble.unwrap_or(0.0) * age as f64).exp();
        Self {
            width,
            len: schedule.chunk,
            rows: vec![0.0; overlap * schedule.chunk * width],
            starts: vec![0; overlap],
            weights: (0..overlap).map(weight).collect(),
            received: 0,
            used: 0,
        }
    }

    /// Adds a chunk whose first row is for the action number `start`.
    pub fn push(&mut self, start: u64, output: &[f32]) {
        let (slot, len) = (
            self.received as usize % self.starts.len(),
            self.len * self.width,
        );
        self.rows[slot * len..][..len].copy_from_slice(&output[..len]);
        self.starts[slot] = start;
        self.received += 1;
    }

    /// The next action: the mean of its predictions, weighted by exp(−m i), where i = 0 is the
    /// oldest. Returns false and leaves `action` unchanged if there is none.
    pub fn next(&mut self, action: &mut [f32]) -> bool {
        let kept = self.received.min(self.starts.len() as u64);
        let slots =
            (self.received - kept..self.received).map(|number| number as usize % self.starts.len());
        let predictions = slots.filter_map(|slot| {
            let row = self
                .used
                .checked_sub(self.starts[slot])
                .filter(|row| *row < self.len as u64)? as usize;
            Some(&self.rows[(slot * self.len + row) * self.width..][..self.width])
        });
        if predictions.clone().next().is_none() {
            return false;
        }
        let total: f64 = predictions
            .clone()
            .zip(&self.weights)
            .map(|(_, weight)| weight)
            .sum();
        for (index, number) in action.iter_mut().enumerate() {
            let sum: f64 = predictions
                .clone()
                .zip(&self.weights)
                .map(|(row, weight)| weight * f64::from(row[index]))
                .sum();
            *number = (sum / total) as f32;
        }
        self.used += 1;
        true
    }

    /// Whether a chunk was received in this episode.
    pub fn has_any(&self) -> bool {
        self.received > 0
    }

    /// Restarts for an episode.
    pub fn clear(&mut self) {
        (self.received, self.used) = (0, 0);
    }

    pub fn save(&self, snapshot: &mut Snapshot) {
        snapshot.insert("chunks", Array::F32(self.rows.clone()));
        snapshot.insert("chunk_starts", Array::U64(self.starts.clone()));
        snapshot.insert("chunk_counts", Array::U64(vec![self.received, self.used]));
    }

    /// # Errors
    /// `Data` if an array is missing or has a different length.
    pub fn load(&mut self, snapshot: &Snapshot) -> Result<()> {
        let (rows, starts) = (
            snapshot.f32("chunks", self.rows.len())?,
            snapshot.u64("chunk_starts", self.starts.len())?,
        );
        let &[received, used] = snapshot.u64("chunk_counts", 2)? else {
            return Err(Error::data("chunk_counts: two numbers are needed"));
        };
        self.rows.copy_from_slice(rows);
        self.starts.copy_from_slice(starts);
        (self.received, self.used) = (received, used);
        Ok(())
    }
}
