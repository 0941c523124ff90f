//! Quantiles of errors, and what a Gaussian's would be.

/// Fraction of a Gaussian within one and two deviations.
pub const GAUSSIAN_COVERAGE: [f64; 2] = [0.6827, 0.9545];

/// The smallest number that bounds a given part of the numbers (a quantile), 0 for none.
pub(super) fn quantile(mut numbers: Vec<f64>, part: f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let place = ((numbers.len() as f64 * part).ceil() as usize).saturating_sub(1);
    numbers.get(place).copied().unwrap_or(0.0)
}
