//! Single cycles of every device from its own state, compared with float64.

use super::*;
/// Cycles of a soak test from `TECTUM_FIELD_CYCLES`, otherwise the test's default.
fn cycles(default: u64) -> u64 {
    std::env::var("TECTUM_FIELD_CYCLES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Runs a field and compares each `every`-th cycle with the reference; returns the number of
/// near-ties.
fn compare(device: &Device, shape: Shape, options: Options, total: u64, every: u64) -> usize {
    compare_split(std::slice::from_ref(device), shape, options, total, every)
}

/// The same for a field split over devices.
fn compare_split(
    devices: &[Device],
    shape: Shape,
    options: Options,
    total: u64,
    every: u64,
) -> usize {
    let mut field = Simulation::split(shape, options, devices).expect("it compiles");
    let device = devices
        .iter()
        .map(|device| device.info().id.clone())
        .collect::<Vec<_>>()
        .join(" and ");
    let mut ties = 0;
    for cycle in 0..total {
        // Coefficients change while it runs.
        field
            .set_coefficients(if cycle % 400 < 200 {
                conformance::strong()
            } else {
                Coefficients::default()
            })
            .expect("in range");
        let sensors = observation(cycle, options.sensors);
        let reward = (0.01 * cycle as f32).sin();
        if !(cycle + 1).is_multiple_of(every) {
            field.tick(&sensors, reward).expect("it runs");
            continue;
        }
        let agreement = super::super::agreement::compare(&mut field, &sensors, reward)
            .unwrap_or_else(|error| panic!("cycle {cycle} on {device}: {error}"));
        if let Some((place, best, apart)) = agreement.tie {
            eprintln!(
                "near-tie in cycle {cycle} on {device}: {place:?} for {best:?}, {apart:e} apart"
            );
        }
        ties += usize::from(agreement.tie.is_some()) + usize::from(agreement.is_recall_tie);
    }
    ties
}

#[test]
fn a_library_agrees_with_float64_while_it_fills_and_when_it_is_full() {
    for device in devices() {
        for (cells, channels, patterns) in [
            ([8, 8, 8], 64, 12),
            ([4, 8, 12], 32, 300),
            ([8, 4, 4], 256, 1),
        ] {
            let shape = Shape::new(cells, channels).expect("a field");
            compare(
                &device,
                shape,
                Options {
                    patterns,
                    ..options(13)
                },
                60,
                5,
            );
        }
    }
}

#[test]
fn every_boundary_and_shape_agrees_with_float64() {
    for device in devices() {
        for (cells, channels) in [
            ([8, 8, 8], 64),
            ([4, 8, 12], 32),
            ([16, 16, 16], 32),
            ([4, 4, 4], 96),
        ] {
            let shape = Shape::new(cells, channels).expect("a field");
            for boundary in Boundary::ALL {
                compare(
                    &device,
                    shape,
                    Options {
                        boundary,
                        ..options(13)
                    },
                    12,
                    3,
                );
            }
        }
        let most = Options {
            motors: 16,
            ..options(256)
        };
        compare(
            &device,
            Shape::new([8, 4, 4], 256).expect("a field"),
            most,
            6,
            2,
        );
        compare(
            &device,
            Shape::new([8, 4, 4], 256).expect("a field"),
            Options {
                motors: 1,
                ..options(1)
            },
            6,
            2,
        );
    }
}

#[test]
fn a_field_kept_as_bf16_agrees_with_float64_rounded_by_the_same_chance() {
    for device in devices() {
        for (cells, channels) in [([8, 8, 8], 64), ([4, 8, 12], 32), ([8, 4, 4], 256)] {
            let shape = Shape::new(cells, channels).expect("a field");
            for boundary in Boundary::ALL {
                let options = Options {
                    boundary,
                    patterns: 12,
                    storage: Storage::Bf16,
                    ..options(13)
                };
                compare(&device, shape, options, 12, 3);
            }
        }
    }
}

#[test]
fn rules_that_change_by_less_than_a_unit_of_the_last_place_change_when_kept_as_bf16() {
    let shape = Shape::new([8; 3], 64).expect("a field");
    let rules = |field: &Simulation| {
        let state = field.state().expect("readable");
        state
            .field
            .chunks_exact(64)
            .flat_map(|cell| cell[48..52].iter().map(|d| f64::from(*d)))
            .sum::<f64>()
            / (4 * 512) as f64
    };
    let moved = |storage: Storage| {
        let mut field = Simulation::new(
            shape,
            Options {
                storage,
                ..options(13)
            },
            &cpu(),
        )
        .expect("it compiles");
        let before = rules(&field);
        for cycle in 0..1000 {
            field.tick(&observation(cycle, 13), 0.0).expect("it runs");
        }
        rules(&field) - before
    };
    let [exact, kept] = [Storage::F32, Storage::Bf16].map(moved);
    // A unit in the last place is 2⁻⁷ below 2; a cycle changes a rule by a hundredth of that or
    // less.
    assert!(
        exact.abs() > 0.004 && exact.abs() / 1000.0 < 0.01 / 128.0,
        "moved by {exact}"
    );
    assert!(
        (exact - kept).abs() < 0.2 * exact.abs(),
        "moved by {kept} as bf16, {exact} as f32"
    );
}

#[test]
fn a_field_split_over_devices_has_the_elements_of_a_whole_one() {
    for (cells, channels, parts) in [
        ([8, 8, 8], 64, 2),
        ([16, 8, 8], 64, 3),
        ([8, 4, 4], 96, 8),
        ([16, 16, 16], 32, 3),
    ] {
        let shape = Shape::new(cells, channels).expect("a field");
        for (boundary, (patterns, storage)) in Boundary::ALL.into_iter().zip([
            (0, Storage::F32),
            (12, Storage::F32),
            (12, Storage::Bf16),
        ]) {
            let options = Options {
                boundary,
                patterns,
                storage,
                ..options(13)
            };
            let devices = vec![cpu(); parts];
            let mut whole = Simulation::new(shape, options, &cpu()).expect("it compiles");
            let mut split = Simulation::split(shape, options, &devices).expect("it compiles");
            let run = |field: &mut Simulation| {
                (0..25)
                    .map(|_| {
                        field
                            .tick(&observation(field.cycle(), 13), 0.3)
                            .expect("it runs")
                    })
                    .collect::<Vec<_>>()
            };
            assert_eq!(run(&mut split), run(&mut whole), "{boundary:?} in {parts}");
            assert_eq!(
                split.state().expect("readable"),
                whole.state().expect("readable"),
                "{boundary:?} in {parts}"
            );
            // One continues from the state of the other.
            whole
                .set_state(&split.state().expect("readable"))
                .expect("it fits");
            assert_eq!(run(&mut split), run(&mut whole), "{boundary:?} in {parts}");
        }
    }
}

#[test]
fn a_field_split_over_devices_of_different_kinds_agrees_with_float64() {
    for other in devices() {
        for (boundary, storage) in
            Boundary::ALL
                .into_iter()
                .zip([Storage::F32, Storage::Bf16, Storage::F32])
        {
            let options = Options {
                boundary,
                patterns: 12,
                storage,
                ..options(13)
            };
            compare_split(
                &[other.clone(), cpu()],
                Shape::new([8, 8, 8], 64).expect("a field"),
                options,
                12,
                3,
            );
        }
        compare_split(
            &[cpu(), other.clone(), cpu()],
            Shape::new([16, 16, 16], 32).expect("a field"),
            options(24),
            6,
            2,
        );
    }
}

#[test]
fn a_field_is_split_by_whole_sites_over_devices_that_there_are() {
    let shape = Shape::new([16, 16, 16], 64).expect("a field");
    let refused = |devices: usize| {
        Simulation::split(shape, options(3), &vec![cpu(); devices])
            .expect_err("not so many")
            .to_string()
    };
    assert!(
        refused(9).contains("9 devices for 8 sites along X") && refused(0).contains("no device")
    );
    let mut field = Simulation::split(shape, options(3), &[cpu(), cpu()]).expect("it compiles");
    assert_eq!(field.trace().expect("nothing to trace"), Vec::new());
    let mut state = field.state().expect("readable");
    state.sites.pop();
    assert!(
        field
            .set_state(&state)
            .expect_err("short")
            .to_string()
            .contains("sites given")
    );
}

#[test]
fn each_hundredth_cycle_agrees_with_float64() {
    let shape = Shape::new([8; 3], 64).expect("a field");
    for device in devices() {
        let total = cycles(if device.info().software { 200 } else { 2000 });
        let ties = compare(
            &device,
            shape,
            Options {
                patterns: 64,
                ..options(24)
            },
            total,
            100,
        );
        eprintln!("{}: {total} cycles, {ties} near-ties", device.info().id);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    // Large enough that rows are distributed over threads.
    let shape = Shape::new([16; 3], 64).expect("a field");
    let options = Options {
        patterns: 4096,
        ..options(9)
    };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let mut field = Simulation::new(shape, options, &cpu()).expect("it compiles");
            let reports: Vec<Report> = (0..50)
                .map(|cycle| field.tick(&observation(cycle, 9), 0.5).expect("it runs"))
                .collect();
            (reports, field.state().expect("readable"))
        })
    };
    assert_eq!(run(1), run(2));
}
