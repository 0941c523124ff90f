//! Every device one cycle from its own state, against float64.

use super::*;
use crate::field::reference::{Outcome, Place};

/// The largest difference of a field's element, in parts of saturation: an argument is a sum of some 40 products of size at most
/// 2, each rounded to 6e-8, and tanh flattens.
const FIELD_TOLERANCE: f64 = 4e-6;
/// The largest difference of a statistic, a motor or a modulating number; sums over a field of differences that are not even.
const NUMBER_TOLERANCE: f64 = 2e-5;
/// A place is as good as another if its score is within this.
const TIE: f64 = 1e-5;

/// Cycles of a soak by `TECTUM_FIELD_CYCLES`, else as many as a test has time for.
fn cycles(default: u64) -> u64 {
    std::env::var("TECTUM_FIELD_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a field, and holds each `every`-th cycle against the reference; how many near-ties there were.
fn compare(device: &Device, shape: Shape, options: Options, total: u64, every: u64) -> usize {
    let mut field = Simulation::new(shape, options, device).expect("it compiles");
    let strong = Coefficients { coupling: 1.0, noise: 0.02, wave: 0.05, imprint: 3.0, ..Coefficients::default() };
    let mut ties = 0;
    for cycle in 0..total {
        // Coefficients change while it runs.
        field.set_coefficients(if cycle % 400 < 200 { strong } else { Coefficients::default() }).expect("in range");
        let sensors = observation(cycle, options.sensors);
        let reward = (0.01 * cycle as f32).sin();
        if !(cycle + 1).is_multiple_of(every) {
            field.tick(&sensors, reward).expect("it runs");
            continue;
        }
        let before = field.state().expect("readable");
        let report = field.tick(&sensors, reward).expect("it runs");
        let after = field.state().expect("readable");
        let coefficients = *field.coefficients();
        let reference = Cycle { shape: &shape, options: &options, coefficients: &coefficients, sensors: &sensors, reward };
        let places = reference.places(&before);
        let (place, short) = *places.iter().find(|(place, _)| place.cell == report.place && place.kind == report.place_kind).expect("a site's centre");
        if place != places[0].0 {
            assert!(short < TIE, "cycle {cycle} on {}: {place:?} is worse than {:?} by {short}", device.info().id, places[0].0);
            eprintln!("near-tie in cycle {cycle} on {}: {place:?} for {:?}, {short:e} apart", device.info().id, places[0].0);
            ties += 1;
        }
        check(&format!("cycle {cycle} on {}", device.info().id), &reference.advance(&before, Some(place)), &after, &report, &coefficients, place);
    }
    ties
}

fn check(name: &str, expected: &Outcome, after: &State, report: &Report, coefficients: &Coefficients, place: Place) {
    let worst = |found: &[f32], expected: &[f64]| {
        let differences = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).enumerate();
        differences.fold((0, 0.0), |worst, next| if next.1 > worst.1 || next.1.is_nan() { next } else { worst })
    };
    assert_eq!(expected.place, place);
    let bound = FIELD_TOLERANCE * f64::from(coefficients.saturation);
    for (what, found, expected, tolerance) in [
        ("field", &after.field, &expected.field, bound),
        ("sites", &after.sites, &expected.sites, bound),
        ("descriptor", &after.descriptor, &expected.descriptor, bound),
        ("motors", &report.motors, &expected.motors, NUMBER_TOLERANCE),
    ] {
        let (at, difference) = worst(found, expected);
        assert!(difference <= tolerance, "{name}: {what} {at} is {} for {}", found[at], expected[at]);
    }
    for (at, (found, expected)) in after.memory.iter().zip(&expected.memory).enumerate() {
        // A plateau counts cycles and falls to 0 with a hundredth of error: it is held to its size.
        let tolerance = NUMBER_TOLERANCE * expected.abs().max(1.0);
        assert!((f64::from(*found) - expected).abs() <= tolerance, "{name}: memory word {at} is {found} for {expected}");
    }
    let told = [
        ("drive", report.drive, expected.drive),
        ("explore", report.explore, expected.explore),
        ("intensity", report.intensity, expected.intensity),
        ("novelty", report.novelty, expected.novelty),
        ("error", report.error, expected.error),
        ("gradient along X", report.gradient[0], expected.gradient[0]),
        ("gradient along Y", report.gradient[1], expected.gradient[1]),
        ("gradient along Z", report.gradient[2], expected.gradient[2]),
    ];
    for (what, found, expected) in told {
        assert!((f64::from(found) - expected).abs() <= NUMBER_TOLERANCE, "{name}: {what} is {found} for {expected}");
    }
}

#[test]
fn every_boundary_and_shape_agrees_with_float64() {
    for device in devices() {
        for (cells, channels) in [([8, 8, 8], 64), ([4, 8, 12], 32), ([16, 16, 16], 32), ([4, 4, 4], 96)] {
            let shape = Shape::new(cells, channels).expect("a field");
            for boundary in Boundary::ALL {
                compare(&device, shape, Options { boundary, ..options(13) }, 12, 3);
            }
        }
        let most = Options { motors: 16, ..options(256) };
        compare(&device, Shape::new([8, 4, 4], 256).expect("a field"), most, 6, 2);
        compare(&device, Shape::new([8, 4, 4], 256).expect("a field"), Options { motors: 1, ..options(1) }, 6, 2);
    }
}

#[test]
fn each_hundredth_cycle_agrees_with_float64() {
    let shape = Shape::new([8; 3], 64).expect("a field");
    for device in devices() {
        let total = cycles(if device.info().software { 200 } else { 2000 });
        let ties = compare(&device, shape, options(24), total, 100);
        eprintln!("{}: {total} cycles, {ties} near-ties", device.info().id);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    // Large enough that rows are shared.
    let shape = Shape::new([16; 3], 64).expect("a field");
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let mut field = Simulation::new(shape, options(9), &cpu()).expect("it compiles");
            let reports: Vec<Report> = (0..50).map(|cycle| field.tick(&observation(cycle, 9), 0.5).expect("it runs")).collect();
            (reports, field.state().expect("readable"))
        })
    };
    assert_eq!(run(1), run(2));
}
