//! Latency statistics in constant memory.

use serde::Serialize;

/// Percentiles of a latency, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

/// Number of bins of [`LatencyHistogram::counts`].
pub const LATENCY_BINS: usize = 120;
const BINS_PER_DECADE: f64 = 10.0;

/// Leading bits of a latency that are stored: more than three significant digits.
const STORED_BITS: u32 = 11;
/// The greatest latency that is distinguished.
const MAX_NS: u64 = 1_000_000_000_000;

/// Latencies from one nanosecond to 1,000 s, stored to three significant digits; recording
/// allocates nothing.
///
/// # Source
/// HdrHistogram, <https://hdrhistogram.github.io/HdrHistogram/>: slots of one nanosecond up to
/// 2,048 ns, then 1,024 for each doubling.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    slots: Vec<u64>,
    total: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self {
            slots: vec![0; slot_of(MAX_NS) + 1],
            total: 0,
            max_ns: 0,
        }
    }
}

impl LatencyHistogram {
    /// Counts a latency; one beyond the bounds counts as the bound.
    pub fn record(&mut self, ns: u64) {
        let ns = ns.clamp(1, MAX_NS);
        self.slots[slot_of(ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// The percentiles so far; 0 where nothing was counted.
    pub fn percentiles(&self) -> Latency {
        if self.total == 0 {
            return Latency::default();
        }
        let ms = |slot: usize| end_of(slot) as f64 / 1e6;
        let quantile = |part: f64| {
            let (wanted, mut seen) = (((part * self.total as f64).ceil() as u64).max(1), 0);
            let reaches = |count: &u64| {
                seen += count;
                seen >= wanted
            };
            ms(self.slots.iter().position(reaches).unwrap_or_default())
        };
        Latency {
            p50: quantile(0.5),
            p99: quantile(0.99),
            max: ms(slot_of(self.max_ns)),
        }
    }

    /// The count of each bin of a tenth of a decade from 1 ns up.
    pub fn counts(&self) -> [u64; LATENCY_BINS] {
        let mut counts = [0; LATENCY_BINS];
        for (slot, count) in self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            let bin = ((end_of(slot) as f64).log10() * BINS_PER_DECADE)
                .clamp(0.0, (LATENCY_BINS - 1) as f64);
            counts[bin as usize] += count;
        }
        counts
    }

    /// Where a bin begins, in milliseconds.
    pub fn bin_ms(bin: usize) -> f64 {
        1e-6 * 10f64.powf(bin as f64 / BINS_PER_DECADE)
    }

    /// `[where it begins in milliseconds, count]` for each bin that is not empty, in order.
    pub fn bins(&self) -> Vec<(f64, u64)> {
        let counts = self.counts().into_iter().enumerate();
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(bin, count)| (Self::bin_ms(bin), count))
            .collect()
    }
}

/// The slot of a latency.
fn slot_of(ns: u64) -> usize {
    let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(STORED_BITS);
    ((dropped as usize) << (STORED_BITS - 1)) + (ns >> dropped) as usize
}

/// The greatest latency of a slot, in nanoseconds.
fn end_of(slot: usize) -> u64 {
    let dropped = (slot >> (STORED_BITS - 1)).saturating_sub(1);
    ((slot as u64 - ((dropped as u64) << (STORED_BITS - 1)) + 1) << dropped) - 1
}

#[cfg(test)]
mod tests {
    use super::{Latency, LatencyHistogram, MAX_NS, end_of, slot_of};

    #[test]
    fn a_latency_is_stored_to_three_digits_and_slots_follow_each_other() {
        for ns in (0..5_000)
            .chain(
                (3..12)
                    .flat_map(|power| [-1, 0, 1, 777].map(|step| (10i64.pow(power) + step) as u64)),
            )
            .chain([MAX_NS])
        {
            let (slot, end) = (slot_of(ns), end_of(slot_of(ns)));
            assert!(
                end >= ns && (end - ns) as f64 <= 1e-3 * ns as f64,
                "{ns}: {end}"
            );
            assert_eq!((slot_of(end), slot_of(end + 1)), (slot, slot + 1), "{ns}");
        }
    }

    #[test]
    fn a_latency_falls_in_the_bin_that_begins_below_it() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!(
            (histogram.percentiles(), histogram.bins().len()),
            (Latency::default(), 0)
        );
        for ns in [0, 101, 1_050_000, 1_060_000, u64::MAX] {
            histogram.record(ns);
        }
        let counts = histogram.counts();
        assert_eq!(
            (counts[0], counts[20], counts[60], counts[119]),
            (1, 1, 2, 1)
        );
        assert!((LatencyHistogram::bin_ms(60) - 1.0).abs() < 1e-12);
        assert_eq!(
            histogram.bins().iter().map(|(_, count)| count).sum::<u64>(),
            5
        );
        let Latency { p50, max, .. } = histogram.percentiles();
        assert!(
            (p50 - 1.05).abs() < 2e-3 && (max - 1e6).abs() < 1e3,
            "{p50} {max}"
        );
    }
}
