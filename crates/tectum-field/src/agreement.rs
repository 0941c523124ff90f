//! The difference of a device from the reference after a cycle from the same state.

use std::time::Instant;

use serde::Serialize;
use tectum::{Error, ErrorKind, Result};

use super::layout::MEMORY_PLATEAU;
use super::reference::{Cycle, ImprintSite, Outcome};
use super::simulation::{Report, Simulation};
use super::state::State;
use super::storage::Storage;

/// Maximum difference of a field's element, in parts of saturation: an argument is a sum of some 40
/// products of size at most 2, each rounded to 6e-8, and tanh flattens.
const FIELD_TOLERANCE: f64 = 4e-6;
/// Maximum difference of a statistic, a motor or a modulation, over the larger of its size and 1:
/// ramps a hundredth wide multiply the rounding of an error by a hundred.
const NUMBER_TOLERANCE: f64 = 2e-5;
/// Maximum difference of an element stored as bf16, in parts of saturation: if its value is close
/// to the rounding threshold, two devices round it differently, by a unit in the last place of up
/// to 2⁻⁷.
const BF16_TOLERANCE: f64 = 1.0 / 128.0;
/// Maximum fraction of them that may be rounded differently: about 1e-7 of rounding over a unit in
/// the last place of 2⁻¹⁰ for the smallest significant values, times ten.
const MAX_MISROUNDED_FRACTION: f64 = 1e-3;
/// Maximum difference of a number computed from those.
const BF16_NUMBER_TOLERANCE: f64 = 1e-3;
/// Scores within this are ties: a cosine of up to 176 products.
pub const TIE: f64 = 1e-5;

/// The worst difference in an array.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The name of the array.
    pub what: &'static str,
    /// The index in it.
    pub at: usize,
    /// The device's value there.
    pub found: f64,
    /// The reference's value there.
    pub expected: f64,
    /// The difference over the scale of these numbers.
    pub worst: f64,
    /// The maximum difference.
    pub tolerance: f64,
}

impl Difference {
    /// Whether it is within the tolerance; a NaN is not.
    pub fn is_within(&self) -> bool {
        self.worst <= self.tolerance
    }
}

/// A cycle of a field, compared with the reference.
#[derive(Debug, Clone)]
pub struct Agreement {
    /// The worst difference of each kind of number.
    pub differences: Vec<Difference>,
    /// The device's place and the reference's with the difference of their scores, if they differ.
    pub tie: Option<(ImprintSite, ImprintSite, f64)>,
    /// Whether the device's library made another choice within a near-tie.
    pub is_recall_tie: bool,
    /// The start of the cycle.
    #[cfg_attr(
        not(any(test, feature = "bench")),
        allow(dead_code, reason = "conformance cases time the device")
    )]
    pub start: Instant,
    /// Its duration in seconds.
    pub seconds: f64,
}

/// Runs a cycle and compares it with the reference from the same state.
///
/// # Errors
/// As [`Simulation::tick`]; `Mismatch` naming the quantity that differs from the reference by more
/// than its tolerance.
pub fn compare(field: &mut Simulation, sensors: &[f32], reward: f32) -> Result<Agreement> {
    let mismatch = |what: String| Error::new(ErrorKind::Mismatch, format!("field: {what}"));
    let before = field.state()?;
    let start = Instant::now();
    let report = field.tick(sensors, reward)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = field.state()?;
    let cycle = Cycle {
        shape: field.shape(),
        options: field.options(),
        coefficients: field.coefficients(),
        sensors,
        reward,
    };
    let places = cycle.places(&before);
    let is_chosen = |(place, short): &&(ImprintSite, f64)| {
        place.cell == report.place && place.kind == report.place_kind && *short < TIE
    };
    let Some(&(place, score_gap)) = places.iter().find(is_chosen) else {
        let what = format!(
            "the imprint of cycle {} is at {:?} ({:?}), the reference has {:?}",
            before.cycle, report.place, report.place_kind, places[0].0
        );
        return Err(mismatch(what));
    };
    let short = cycle.recall_margin(&before, &report.recall);
    if short >= TIE {
        return Err(mismatch(format!(
            "the library of cycle {} chose {:?}, {short} worse than the reference",
            before.cycle, report.recall
        )));
    }
    let found = differences(
        &cycle.advance(&before, Some(place), Some(&report.recall)),
        &after,
        &report,
        field.coefficients().saturation,
    );
    if let Some(Difference {
        what,
        at,
        found,
        expected,
        ..
    }) = found.iter().find(|difference| !difference.is_within())
    {
        return Err(mismatch(format!(
            "{what} {at} is {found} after cycle {}, the reference has {expected}",
            before.cycle
        )));
    }
    let tie = (place != places[0].0).then_some((place, places[0].0, score_gap));
    Ok(Agreement {
        differences: found,
        tie,
        is_recall_tie: report.recall != cycle.recall(&before),
        start,
        seconds,
    })
}

/// The worst differences of field, means, library, motors, memory and modulation after a cycle.
///
/// # Panics
/// If the two have different shapes: an error in the calling code.
pub fn differences(
    expected: &Outcome,
    after: &State,
    report: &Report,
    saturation: f32,
) -> Vec<Difference> {
    let reported = [
        report.drive,
        report.explore,
        report.intensity,
        report.novelty,
        report.error,
        report.gradient[0],
        report.gradient[1],
        report.gradient[2],
    ];
    let [x, y, z] = expected.gradient;
    let modulation = [
        expected.drive,
        expected.explore,
        expected.intensity,
        expected.novelty,
        expected.error,
        x,
        y,
        z,
    ];
    let scale = |_: usize, _: f64| f64::from(saturation);
    let size = |_: usize, expected: f64| expected.abs().max(1.0);
    // A plateau is (its previous value + 1) times a ramp.
    let remembered = |at: usize, number: f64| {
        if at == MEMORY_PLATEAU {
            expected.plateau + 1.0
        } else {
            size(at, number)
        }
    };
    let (field, number) = match expected.storage {
        Storage::F32 => (FIELD_TOLERANCE, NUMBER_TOLERANCE),
        Storage::Bf16 => (BF16_TOLERANCE, BF16_NUMBER_TOLERANCE),
    };
    let mut all = vec![
        worst("field", &after.field, &expected.field, scale, field),
        worst("sites", &after.sites, &expected.sites, scale, field),
        worst(
            "regions",
            &after.descriptor,
            &expected.descriptor,
            scale,
            field,
        ),
        worst("library", &after.library, &expected.library, scale, field),
        worst("traits", &after.traits, &expected.traits, size, number),
        worst("motors", &report.motors, &expected.motors, size, number),
        worst(
            "memory",
            &after.memory,
            &expected.memory,
            remembered,
            number,
        ),
        worst("modulation", &reported, &modulation, size, number),
    ];
    if expected.storage == Storage::Bf16 {
        let is_apart = |(found, expected): &(&f32, &f64)| {
            (f64::from(**found) - **expected).abs() > FIELD_TOLERANCE * f64::from(saturation)
        };
        let apart = after
            .field
            .iter()
            .zip(&expected.field)
            .filter(is_apart)
            .count();
        let share = apart as f64 / expected.field.len() as f64;
        all.push(Difference {
            what: "rounded differently",
            at: 0,
            found: apart as f64,
            expected: 0.0,
            worst: share,
            tolerance: MAX_MISROUNDED_FRACTION,
        });
    }
    all
}

fn worst(
    what: &'static str,
    found: &[f32],
    expected: &[f64],
    scale: impl Fn(usize, f64) -> f64,
    tolerance: f64,
) -> Difference {
    assert_eq!(found.len(), expected.len(), "{what} of another shape");
    let mut worst = Difference {
        what,
        at: 0,
        found: 0.0,
        expected: 0.0,
        worst: 0.0,
        tolerance,
    };
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let found = f64::from(*found);
        let difference = (found - expected).abs() / scale(at, *expected);
        if difference > worst.worst || difference.is_nan() {
            worst = Difference {
                at,
                found,
                expected: *expected,
                worst: difference,
                ..worst
            };
        }
    }
    worst
}
