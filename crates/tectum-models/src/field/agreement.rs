//! How far a device is from the reference after a cycle from the same state.

use super::reference::Outcome;
use super::simulation::Report;
use super::state::State;

/// The largest difference of a field's element, in parts of saturation: an argument is a sum of some 40 products of size at most
/// 2, each rounded to 6e-8, and tanh flattens.
const FIELD_TOLERANCE: f64 = 4e-6;
/// The largest difference of a statistic, a motor or a modulating number, over the larger of its size and 1: ramps a hundredth
/// wide multiply the rounding of an error by a hundred.
const NUMBER_TOLERANCE: f64 = 2e-5;
/// A place is as good as another if its score is within this: a cosine of up to 176 products.
pub const TIE: f64 = 1e-5;

/// The worst of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Which numbers.
    pub what: &'static str,
    /// Where among them.
    pub at: usize,
    /// What the device has there.
    pub found: f64,
    /// What the reference has there.
    pub expected: f64,
    /// The difference, over the scale of these numbers.
    pub worst: f64,
    /// What it may be.
    pub tolerance: f64,
}

impl Difference {
    /// Whether it is no more than it may be; a NaN is not.
    pub fn is_within(&self) -> bool {
        self.worst <= self.tolerance
    }
}

/// The worst differences of field, means, library, motors, memory and modulation after a cycle.
///
/// # Panics
/// If the two are of different shapes: a mistake in the calling code.
pub fn differences(expected: &Outcome, after: &State, report: &Report, saturation: f32) -> Vec<Difference> {
    let told = [report.drive, report.explore, report.intensity, report.novelty, report.error, report.gradient[0], report.gradient[1], report.gradient[2]];
    let [x, y, z] = expected.gradient;
    let modulation = [expected.drive, expected.explore, expected.intensity, expected.novelty, expected.error, x, y, z];
    let scale = |_: f64| f64::from(saturation);
    let size = |expected: f64| expected.abs().max(1.0);
    vec![
        worst("field", &after.field, &expected.field, scale, FIELD_TOLERANCE),
        worst("sites", &after.sites, &expected.sites, scale, FIELD_TOLERANCE),
        worst("regions", &after.descriptor, &expected.descriptor, scale, FIELD_TOLERANCE),
        worst("library", &after.library, &expected.library, scale, FIELD_TOLERANCE),
        worst("traits", &after.traits, &expected.traits, size, NUMBER_TOLERANCE),
        worst("motors", &report.motors, &expected.motors, size, NUMBER_TOLERANCE),
        worst("memory", &after.memory, &expected.memory, size, NUMBER_TOLERANCE),
        worst("modulation", &told, &modulation, size, NUMBER_TOLERANCE),
    ]
}

fn worst(what: &'static str, found: &[f32], expected: &[f64], scale: impl Fn(f64) -> f64, tolerance: f64) -> Difference {
    assert_eq!(found.len(), expected.len(), "{what} of another shape");
    let mut worst = Difference { what, at: 0, found: 0.0, expected: 0.0, worst: 0.0, tolerance };
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let found = f64::from(*found);
        let difference = (found - expected).abs() / scale(*expected);
        if difference > worst.worst || difference.is_nan() {
            worst = Difference { at, found, expected: *expected, worst: difference, ..worst };
        }
    }
    worst
}
