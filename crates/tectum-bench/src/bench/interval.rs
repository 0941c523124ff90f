//! Medians with intervals that need no shape of the distribution.

use serde::{Deserialize, Serialize};

/// Minimum confidence of an interval, where there are enough rounds.
pub const CONFIDENCE: f64 = 0.95;

/// A median with the order statistics that enclose it.
///
/// With `n` independent values the interval `[x₍ₖ₎, x₍ₙ₊₁₋ₖ₎]` holds the true median with
/// probability `1 − 2·P(B < k)`, `B` binomial of `n` and ½; `k` is the greatest for which that is
/// at least [`CONFIDENCE`]. Fewer than six values cannot reach it; the interval is then their whole
/// range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The middle value.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The median of values and its interval; none without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let last = sorted.len().checked_sub(1)?;
        let cut = cut(sorted.len());
        Some(Self {
            median: middle(&sorted),
            low: sorted[cut],
            high: sorted[last - cut],
        })
    }

    /// A value plus and minus a share of it.
    pub fn around(median: f64, share: f64) -> Self {
        Self {
            median,
            low: median * (1.0 - share),
            high: median * (1.0 + share),
        }
    }

    /// Half the width over the median.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / (2.0 * self.median)
    }

    /// The interval of a quotient of two.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        Self {
            median: self.median / other.median,
            low: self.low / other.high,
            high: self.high / other.low,
        }
    }
}

/// The middle value, or the mean of the two middle ones.
pub(super) fn median(values: &[f64]) -> f64 {
    middle(&sorted(values))
}

/// Half the distance between the quartiles over the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let quantile = |q: f64| sorted[((sorted.len() - 1) as f64 * q).round() as usize];
    (quantile(0.75) - quantile(0.25)) / (2.0 * middle(&sorted))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// How many values are left out at each end: `k − 1` of the formula above.
fn cut(n: usize) -> usize {
    let (mut probability, mut below, mut cut) = (0.5f64.powi(n as i32), 0.0, 0);
    for k in 0..n / 2 {
        below += probability;
        if 2.0 * below > 1.0 - CONFIDENCE {
            break;
        }
        cut = k;
        probability *= (n - k) as f64 / (k + 1) as f64;
    }
    cut
}
