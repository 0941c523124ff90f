//! Closed forms: modes, conservation, ramps, shifts.

use super::*;

/// A field with content from a function of the place and zero elsewhere, ready to run with some
/// coefficients.
fn made(
    shape: Shape,
    options: Options,
    device: &Device,
    coefficients: Coefficients,
    content: impl Fn([usize; 3], usize) -> f32,
) -> Simulation {
    let mut state = State::new(&shape, options.seed);
    state.field.fill(0.0);
    for_each_cell(&shape, |place| {
        for channel in 0..shape.content() {
            state.field[shape.at(place, channel)] = content(place, channel);
        }
    });
    state.recompute_means(&shape);
    let mut field = Simulation::new(shape, options, device).expect("it compiles");
    field.set_state(&state).expect("it fits");
    field.set_coefficients(coefficients).expect("in range");
    field
}

fn for_each_cell(shape: &Shape, mut work: impl FnMut([usize; 3])) {
    let [nx, ny, nz] = shape.cells();
    (0..nx * ny * nz).for_each(|cell| work([cell / (ny * nz), cell / nz % ny, cell % nz]));
}

/// The retention of a cycle with `only_diffusion`, for the information that a report contains.
fn retention(report: &Report) -> f64 {
    0.999 - 0.01 * (f64::from(report.information) / 1.5).clamp(0.0, 1.0)
}

#[test]
fn a_fourier_mode_damps_at_the_predicted_rate() {
    let shape = Shape::new([16, 8, 8], 32).expect("a field");
    let diffusion = [0.2, 0.1, 0.15];
    let options = Options {
        boundary: Boundary::Periodic,
        ..options(2)
    };
    for device in devices() {
        for waves in [[1, 0, 0], [0, 2, 0], [0, 0, 3], [3, 1, 2], [8, 4, 4]] {
            let angles: [f64; 3] = std::array::from_fn(|axis| {
                std::f64::consts::TAU * f64::from(waves[axis]) / shape.cells()[axis] as f64
            });
            let mode = |place: [usize; 3]| {
                (0..3)
                    .map(|axis| angles[axis] * place[axis] as f64)
                    .sum::<f64>()
                    .cos()
            };
            let mut field = made(
                shape,
                options,
                &device,
                only_diffusion(diffusion),
                |place, _| mode(place) as f32,
            );
            let factor = 1.0
                - 4.0
                    * (0..3)
                        .map(|axis| f64::from(diffusion[axis]) * (angles[axis] / 2.0).sin().powi(2))
                        .sum::<f64>();
            let mut amplitude = 1.0;
            for _ in 0..10 {
                let report = field.tick(&[0.0; 2], 0.0).expect("it runs");
                amplitude *= factor * retention(&report);
            }
            let after = field.state().expect("readable").field;
            for_each_cell(&shape, |place| {
                let (found, expected) = (
                    f64::from(after[shape.at(place, 3)]),
                    amplitude * mode(place),
                );
                assert!(
                    (found - expected).abs() < 2e-5,
                    "mode {waves:?} on {} at {place:?}: {found} for {expected}",
                    device.info().id
                );
            });
        }
    }
}

#[test]
fn diffusion_conserves_mass_within_closed_and_periodic_boundaries_and_loses_it_at_a_zero() {
    let shape = Shape::new([8, 8, 12], 32).expect("a field");
    for device in devices() {
        for boundary in Boundary::ALL {
            let value = |place: [usize; 3], channel: usize| {
                draw(shape.at(place, channel) as u32, key(3, 3)) as f32 / 510.0 + 0.5
            };
            let mut field = made(
                shape,
                Options {
                    boundary,
                    ..options(2)
                },
                &device,
                only_diffusion([0.16; 3]),
                value,
            );
            let mass = |field: &Simulation| -> f64 {
                let state = field.state().expect("readable");
                state
                    .field
                    .chunks_exact(32)
                    .flat_map(|cell| &cell[..shape.content()])
                    .map(|v| f64::from(*v))
                    .sum()
            };
            let mut expected = mass(&field);
            for _ in 0..20 {
                expected *= retention(&field.tick(&[0.0; 2], 0.0).expect("it runs"));
            }
            let found = mass(&field) / expected;
            let is_kept = (found - 1.0).abs() < 2e-6;
            assert_eq!(
                is_kept,
                boundary != Boundary::Zero,
                "{boundary:?} on {}: {found} of the mass is left",
                device.info().id
            );
        }
    }
}

#[test]
fn a_linear_ramp_has_its_exact_gradient() {
    let shape = Shape::new([8, 12, 16], 32).expect("a field");
    let slopes = [0.25, -0.125, 0.0625];
    for device in devices() {
        let value =
            |place: [usize; 3], _| (0..3).map(|axis| slopes[axis] * place[axis] as f32).sum();
        let mut field = made(shape, options(2), &device, only_diffusion([0.0; 3]), value);
        let report = field.tick(&[0.0; 2], 0.0).expect("it runs");
        for (axis, slope) in slopes.into_iter().enumerate() {
            let expected = retention(&report) * f64::from(slope) * (shape.cells()[axis] - 1) as f64;
            assert!(
                (f64::from(report.gradient[axis]) - expected).abs() < 1e-6 * expected.abs(),
                "along {axis}: {} for {expected}",
                report.gradient[axis]
            );
        }
        // Both motors are the tanh of five times the difference, weaker by the share of
        // exploration, whose noise is 0.
        let expected = (5.0 * f64::from(report.gradient[1])).tanh();
        assert!(
            (f64::from(report.motors[1]) - expected).abs() < 1e-6,
            "{} for {expected}",
            report.motors[1]
        );
    }
}

#[test]
fn a_step_commutes_with_shifts_under_periodic_boundaries() {
    let shape = Shape::new([8, 8, 8], 64).expect("a field");
    // Only terms that do not depend on the place: no noise, waves, imprint, echo and error.
    let coefficients = Coefficients {
        noise: 0.0,
        wave: 0.0,
        imprint: 0.0,
        echo: 0.0,
        error_drive: 0.0,
        coupling: 1.0,
        diffusion_depth: [0.05, 0.02, 0.03],
        ..Coefficients::default()
    };
    let options = Options {
        boundary: Boundary::Periodic,
        ..options(2)
    };
    let moved = |place: [usize; 3], shift: [usize; 3]| {
        std::array::from_fn(|axis| (place[axis] + shift[axis]) % shape.cells()[axis])
    };
    for device in devices() {
        let shift = [3, 6, 1];
        // Silent sensors without a prediction: no region has an error.
        let mut first = State::new(&shape, 11);
        first.memory[crate::layout::MEMORY_SIZE] = 0.0;
        first.descriptor.fill(0.0);
        let mut shifted = first.clone();
        for_each_cell(&shape, |place| {
            let (from, to) = (shape.at(place, 0), shape.at(moved(place, shift), 0));
            shifted.field[to..to + 64].copy_from_slice(&first.field[from..from + 64]);
        });
        let after = [first, shifted].map(|state| {
            let mut field = Simulation::new(shape, options, &device).expect("it compiles");
            field.set_state(&state).expect("it fits");
            field.set_coefficients(coefficients).expect("in range");
            field.tick(&[0.0; 2], 0.0).expect("it runs");
            field.state().expect("readable").field
        });
        for_each_cell(&shape, |place| {
            for channel in 0..64 {
                let [a, b] = [
                    after[0][shape.at(place, channel)],
                    after[1][shape.at(moved(place, shift), channel)],
                ];
                assert!(
                    (a - b).abs() <= 2e-6 * a.abs().max(0.1),
                    "{place:?}, channel {channel} on {}: {a} and {b}",
                    device.info().id
                );
            }
        });
    }
}

#[test]
fn an_unforced_field_stays_within_its_bounds() {
    let shape = Shape::new([8; 3], 32).expect("a field");
    let at_the_bound = Coefficients {
        diffusion: [1.0 / 6.0; 3],
        diffusion_depth: [0.0; 3],
        coupling: 0.0,
        ..only_diffusion([0.0; 3])
    };
    let checkered = |place: [usize; 3], _| {
        if place.iter().sum::<usize>() % 2 == 0 {
            1.0
        } else {
            -1.0
        }
    };
    let mut field = made(
        shape,
        Options {
            boundary: Boundary::Periodic,
            ..options(2)
        },
        &cpu(),
        at_the_bound,
        checkered,
    );
    for _ in 0..50 {
        field.tick(&[0.0; 2], 0.0).expect("it runs");
        let largest = field
            .state()
            .expect("readable")
            .field
            .iter()
            .fold(0f32, |largest, v| largest.max(v.abs()));
        assert!(
            largest <= 1.0,
            "the step at the bound of stability made {largest} of 1"
        );
    }
}
