//! Numbers that a workload keeps and others read at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// How a quantity changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityKind {
    /// It only grows.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// A named number. One thread writes it; any thread reads it.
#[derive(Debug)]
pub struct Quantity {
    /// How it changes.
    pub kind: QuantityKind,
    /// Its name, as in summaries; in metrics `tectum_` precedes it.
    pub name: &'static str,
    /// What it is, with its unit.
    pub meaning: &'static str,
    /// The bits of a float64: whole numbers are exact up to 2^53.
    bits: AtomicU64,
}

impl Quantity {
    pub(super) fn new(kind: QuantityKind, name: &'static str, meaning: &'static str) -> Self {
        Self {
            kind,
            name,
            meaning,
            bits: AtomicU64::new(0),
        }
    }

    /// Sets the number.
    pub fn set(&self, value: f64) {
        self.bits.store(value.to_bits(), Ordering::Relaxed);
    }

    /// The number.
    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits.load(Ordering::Relaxed))
    }
}

/// The upper bounds of the buckets in seconds: 10 µs to 1 s.
const BOUNDS_S: [f64; 16] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0,
];

/// A histogram of durations. One thread writes it; any thread reads it.
#[derive(Debug)]
pub struct Histogram {
    /// Its name; in metrics `tectum_` precedes it and `_seconds` follows.
    pub name: &'static str,
    /// What it measures.
    pub meaning: &'static str,
    /// The count of each bucket, the last for everything above the bounds.
    counts: [AtomicU64; BOUNDS_S.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    pub(super) fn new(name: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            meaning,
            counts: Default::default(),
            sum_ns: AtomicU64::new(0),
        }
    }

    /// Counts a duration.
    pub fn record(&self, duration_ns: u64) {
        let seconds = duration_ns as f64 / 1e9;
        let bucket = BOUNDS_S.partition_point(|bound| *bound < seconds);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(duration_ns, Ordering::Relaxed);
    }

    /// The upper bound of each bucket in seconds with the durations up to it, infinity last.
    pub fn cumulative(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_S.into_iter().chain([f64::INFINITY]);
        let counts = self.counts.iter().scan(0, |sum, count| {
            *sum += count.load(Ordering::Relaxed);
            Some(*sum)
        });
        bounds.zip(counts).collect()
    }

    /// The sum of the durations in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns.load(Ordering::Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS_S, Histogram};

    #[test]
    fn a_duration_counts_in_the_first_bucket_that_has_room_for_it() {
        let histogram = Histogram::new("tick", "");
        for ns in [1, 10_000, 10_001, 1_000_000_000, 3_000_000_000] {
            histogram.record(ns);
        }
        let cumulative = histogram.cumulative();
        let at = |bound: f64| cumulative.iter().find(|(known, _)| *known == bound);
        assert_eq!(at(1e-5), Some(&(1e-5, 2)));
        assert_eq!(at(2e-5), Some(&(2e-5, 3)));
        assert_eq!(at(1.0), Some(&(1.0, 4)));
        assert_eq!(at(f64::INFINITY), Some(&(f64::INFINITY, 5)));
        assert_eq!(histogram.sum_s(), 4.000020002);
        assert!(BOUNDS_S.is_sorted());
    }
}
