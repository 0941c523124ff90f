//! Latency statistics in constant memory.

use hdrhistogram::Histogram;
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

/// Latencies from one nanosecond to 1,000 s, stored to three significant digits; recording allocates nothing.
#[derive(Debug, Clone)]
pub struct LatencyHistogram {
    ns: Histogram<u64>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { ns: Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("invariant: constant bounds are valid") }
    }
}

impl LatencyHistogram {
    /// Counts a latency; one beyond the bounds counts as the bound.
    pub fn record(&mut self, ns: u64) {
        self.ns.saturating_record(ns.max(1));
    }

    /// The percentiles so far; 0 where nothing was counted.
    pub fn percentiles(&self) -> Latency {
        if self.ns.is_empty() {
            return Latency::default();
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let quantile = |q| ms(self.ns.value_at_quantile(q));
        Latency { p50: quantile(0.5), p99: quantile(0.99), max: ms(self.ns.max()) }
    }

    /// The count of each bin of a tenth of a decade from 1 ns up.
    pub fn counts(&self) -> [u64; LATENCY_BINS] {
        let mut counts = [0; LATENCY_BINS];
        for value in self.ns.iter_recorded() {
            let bin = ((value.value_iterated_to() as f64).log10() * BINS_PER_DECADE).clamp(0.0, (LATENCY_BINS - 1) as f64);
            counts[bin as usize] += value.count_since_last_iteration();
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
        counts.filter(|(_, count)| *count > 0).map(|(bin, count)| (Self::bin_ms(bin), count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Latency, LatencyHistogram};

    #[test]
    fn a_latency_falls_in_the_bin_that_begins_below_it() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!((histogram.percentiles(), histogram.bins().len()), (Latency::default(), 0));
        for ns in [0, 101, 1_050_000, 1_060_000, u64::MAX] {
            histogram.record(ns);
        }
        let counts = histogram.counts();
        assert_eq!((counts[0], counts[20], counts[60], counts[119]), (1, 1, 2, 1));
        assert!((LatencyHistogram::bin_ms(60) - 1.0).abs() < 1e-12);
        assert_eq!(histogram.bins().iter().map(|(_, count)| count).sum::<u64>(), 5);
        let Latency { p50, max, .. } = histogram.percentiles();
        assert!((p50 - 1.05).abs() < 2e-3 && (max - 1e6).abs() < 1e3, "{p50} {max}");
    }
}
