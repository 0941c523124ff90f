//! How far a device is from the reference after a cycle from the same state.

use serde::Serialize;

use super::layout::MEMORY_PLATEAU;
use super::reference::Outcome;
use super::simulation::Report;
use super::state::State;
use super::storage::Storage;

/// The largest difference of a field's element, in parts of saturation: an argument is a sum of some 40 products of size at most
/// 2, each rounded to 6e-8, and tanh flattens.
const FIELD_TOLERANCE: f64 = 4e-6;
/// The largest difference of a statistic, a motor or a modulating number, over the larger of its size and 1: ramps a hundredth
/// wide multiply the rounding of an error by a hundred.
const NUMBER_TOLERANCE: f64 = 2e-5;
/// The largest difference of an element that is kept as bf16, in parts of saturation: where its value lies next to the chance that decides,
/// two devices round it apart, by a unit of the last place of up to 2⁻⁷.
const BF16_TOLERANCE: f64 = 1.0 / 128.0;
/// The largest part of them that may be rounded apart: about 1e-7 of rounding over a unit of the last place of 2⁻¹⁰ for the smallest values that
/// weigh, ten times over.
const PARTED: f64 = 1e-3;
/// The largest difference of a number made from those.
const BF16_NUMBER_TOLERANCE: f64 = 1e-3;
/// A place is as good as another if its score is within this: a cosine of up to 176 products.
pub const TIE: f64 = 1e-5;

/// The worst of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
    let scale = |_: usize, _: f64| f64::from(saturation);
    let size = |_: usize, expected: f64| expected.abs().max(1.0);
    // A plateau is what it was, and one more, times a ramp.
    let remembered = |at: usize, number: f64| if at == MEMORY_PLATEAU { expected.plateau + 1.0 } else { size(at, number) };
    let (field, number) = match expected.storage {
        Storage::F32 => (FIELD_TOLERANCE, NUMBER_TOLERANCE),
        Storage::Bf16 => (BF16_TOLERANCE, BF16_NUMBER_TOLERANCE),
    };
    let mut all = vec![
        worst("field", &after.field, &expected.field, scale, field),
        worst("sites", &after.sites, &expected.sites, scale, field),
        worst("regions", &after.descriptor, &expected.descriptor, scale, field),
        worst("library", &after.library, &expected.library, scale, field),
        worst("traits", &after.traits, &expected.traits, size, number),
        worst("motors", &report.motors, &expected.motors, size, number),
        worst("memory", &after.memory, &expected.memory, remembered, number),
        worst("modulation", &told, &modulation, size, number),
    ];
    if expected.storage == Storage::Bf16 {
        let is_apart = |(found, expected): &(&f32, &f64)| (f64::from(**found) - **expected).abs() > FIELD_TOLERANCE * f64::from(saturation);
        let apart = after.field.iter().zip(&expected.field).filter(is_apart).count();
        let share = apart as f64 / expected.field.len() as f64;
        all.push(Difference { what: "rounded apart", at: 0, found: apart as f64, expected: 0.0, worst: share, tolerance: PARTED });
    }
    all
}

fn worst(what: &'static str, found: &[f32], expected: &[f64], scale: impl Fn(usize, f64) -> f64, tolerance: f64) -> Difference {
    assert_eq!(found.len(), expected.len(), "{what} of another shape");
    let mut worst = Difference { what, at: 0, found: 0.0, expected: 0.0, worst: 0.0, tolerance };
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let found = f64::from(*found);
        let difference = (found - expected).abs() / scale(at, *expected);
        if difference > worst.worst || difference.is_nan() {
            worst = Difference { at, found, expected: *expected, worst: difference, ..worst };
        }
    }
    worst
}
