//! Every device one cycle from its own state, against float64.

use super::*;
/// Cycles of a soak by `TECTUM_FIELD_CYCLES`, else as many as a test has time for.
fn cycles(default: u64) -> u64 {
    std::env::var("TECTUM_FIELD_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a field, and holds each `every`-th cycle against the reference; how many near-ties there were.
fn compare(device: &Device, shape: Shape, options: Options, total: u64, every: u64) -> usize {
    let mut field = Simulation::new(shape, options, device).expect("it compiles");
    let remembering = Coefficients { recall: 0.2, familiar: 0.9999, attraction: 0.02, strategy: 1.0, ..Coefficients::default() };
    let strong = Coefficients { coupling: 1.0, noise: 0.02, wave: 0.05, imprint: 3.0, ..remembering };
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
        let short = reference.recall_short(&before, &report.recall);
        assert!(short < TIE, "cycle {cycle} on {}: {:?} is worse than {:?} by {short}", device.info().id, report.recall, reference.recall(&before));
        if report.recall != reference.recall(&before) {
            eprintln!("near-tie in cycle {cycle} on {}: {:?} for {:?}, {short:e} apart", device.info().id, report.recall, reference.recall(&before));
            ties += 1;
        }
        for found in differences(&reference.advance(&before, Some(place), Some(&report.recall)), &after, &report, coefficients.saturation) {
            assert!(found.is_within(), "cycle {cycle} on {}: {found:?}", device.info().id);
        }
    }
    ties
}

#[test]
fn a_library_agrees_with_float64_while_it_fills_and_when_it_is_full() {
    for device in devices() {
        for (cells, channels, patterns) in [([8, 8, 8], 64, 12), ([4, 8, 12], 32, 300), ([8, 4, 4], 256, 1)] {
            let shape = Shape::new(cells, channels).expect("a field");
            compare(&device, shape, Options { patterns, ..options(13) }, 60, 5);
        }
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
        let ties = compare(&device, shape, Options { patterns: 64, ..options(24) }, total, 100);
        eprintln!("{}: {total} cycles, {ties} near-ties", device.info().id);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    // Large enough that rows are shared.
    let shape = Shape::new([16; 3], 64).expect("a field");
    let options = Options { patterns: 4096, ..options(9) };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let mut field = Simulation::new(shape, options, &cpu()).expect("it compiles");
            let reports: Vec<Report> = (0..50).map(|cycle| field.tick(&observation(cycle, 9), 0.5).expect("it runs")).collect();
            (reports, field.state().expect("readable"))
        })
    };
    assert_eq!(run(1), run(2));
}
