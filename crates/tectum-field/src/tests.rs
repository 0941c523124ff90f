//! The cycle compared with float64, and cases worked out by hand.

mod agreement;
mod analytic;
mod api_fuzz;
mod library;
mod worked;

use tectum::{Boundary, Device};

use super::conformance::observation;
use super::draw::{draw, key};
use super::reference::Cycle;
use super::*;

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

/// The CPU and every other available device.
fn devices() -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

fn options(sensors: usize) -> Options {
    Options {
        sensors,
        motors: 6,
        boundary: Boundary::Closed,
        seed: 7,
        patterns: 0,
        storage: Storage::F32,
    }
}

/// Coefficients with only diffusion: R(0.999 − 0.01N) is 1 for an N of 0 that no test of these
/// reaches beyond a cycle.
fn only_diffusion(diffusion: [f32; 3]) -> Coefficients {
    Coefficients {
        retention: 1.0,
        decay_depth: 0.0,
        diffusion,
        diffusion_depth: [0.0; 3],
        coupling: 0.0,
        noise: 0.0,
        wave: 0.0,
        error_drive: 0.0,
        imprint: 0.0,
        dynamics_rate: 0.0,
        echo: 0.0,
        exploration: 0.0,
        saturation: 1e6,
        recall: 0.0,
        familiar: 1.0,
        attraction: 0.0,
        strategy: 0.0,
    }
}

#[test]
fn draws_have_the_mean_and_the_variance_that_are_promised() {
    let n = 1 << 20;
    let draws = (0..n)
        .map(|i| f64::from(draw(i, key(1, 2))))
        .collect::<Vec<_>>();
    let mean = draws.iter().sum::<f64>() / f64::from(n);
    let variance = draws.iter().map(|v| v * v).sum::<f64>() / f64::from(n);
    // Four standard errors: 147.8/1024 of the mean; the fourth moment of four bytes is 2.7
    // variances squared.
    assert!(mean.abs() < 4.0 * 147.8 / 1024.0, "mean {mean}");
    assert!(
        (variance / 21845.0 - 1.0).abs() < 4.0 * 1.7f64.sqrt() / 1024.0,
        "variance {variance}"
    );
    // Neighbours in place and in time are uncorrelated.
    for other in [
        |i| draw(i + 1, key(1, 2)),
        |i| draw(i + 64, key(1, 2)),
        |i| draw(i, key(1, 3)),
        |i| draw(i, key(2, 2)),
    ] {
        let product: f64 = (0..n)
            .map(|i| draws[i as usize] * f64::from(other(i)))
            .sum::<f64>()
            / f64::from(n)
            / 21845.0;
        assert!(product.abs() < 4.0 / 1024.0, "correlation {product}");
    }
}

#[test]
fn coefficients_beyond_their_ranges_are_refused_by_name() {
    let refused = |change: fn(&mut Coefficients)| {
        let mut coefficients = Coefficients::default();
        change(&mut coefficients);
        coefficients
            .check()
            .expect_err("beyond its range")
            .to_string()
    };
    assert!(refused(|c| c.noise = -0.1).contains("noise is -0.1"));
    assert!(refused(|c| c.coupling = f32::NAN).contains("coupling is NaN"));
    assert!(refused(|c| c.saturation = 0.0).contains("saturation is 0"));
    assert!(refused(|c| c.diffusion_depth[1] = 0.06).contains("along Y"));
    assert!(refused(|c| c.diffusion = [0.2; 3]).contains("stable to 0.5"));
    Coefficients {
        diffusion: [0.25, 0.25, 0.0],
        diffusion_depth: [0.0; 3],
        ..Coefficients::default()
    }
    .check()
    .expect("at the bound");
}

#[test]
fn impossible_shapes_and_counts_are_refused() {
    for (cells, channels) in [
        ([6, 8, 8], 64),
        ([8, 8, 8], 48),
        ([8, 8, 68], 64),
        ([0, 8, 8], 64),
        ([8, 8, 8], 288),
        ([20, 20, 20], 64),
    ] {
        assert!(
            Shape::new(cells, channels).is_err(),
            "{cells:?} × {channels}"
        );
    }
    let shape = Shape::new([8; 3], 32).expect("a field");
    assert!(Simulation::new(shape, options(0), &cpu()).is_err());
    assert!(Simulation::new(shape, options(257), &cpu()).is_err());
    assert!(
        Simulation::new(
            shape,
            Options {
                patterns: 4097,
                ..options(1)
            },
            &cpu()
        )
        .is_err()
    );
    assert!(
        Simulation::new(
            shape,
            Options {
                motors: 17,
                ..options(1)
            },
            &cpu()
        )
        .is_err()
    );
    let mut field = Simulation::new(shape, options(3), &cpu()).expect("it compiles");
    assert!(field.tick(&[0.0; 2], 0.0).is_err());
}

#[test]
fn a_snapshot_goes_on_exactly() {
    let shape = Shape::new([8, 8, 16], 64).expect("a field");
    let ways = [(0, Storage::F32), (8, Storage::F32), (8, Storage::Bf16)];
    for (device, (patterns, storage)) in devices()
        .into_iter()
        .flat_map(|device| ways.map(|way| (device.clone(), way)))
    {
        let options = Options {
            patterns,
            storage,
            ..options(5)
        };
        let mut field = Simulation::new(shape, options, &device).expect("it compiles");
        let run = |field: &mut Simulation, cycles: u64| {
            (0..cycles)
                .map(|_| {
                    field
                        .tick(&observation(field.cycle(), 5), 0.3)
                        .expect("it runs")
                })
                .collect::<Vec<_>>()
        };
        run(&mut field, 33);
        let snapshot = field.state().expect("readable").to_snapshot(&shape);
        assert_eq!(
            field.state().expect("readable").traits.len(),
            if patterns == 0 { 0 } else { 4 * (8 + 20) }
        );
        let expected = (run(&mut field, 20), field.state().expect("readable"));
        let bytes = snapshot.to_bytes();
        let state = State::from_snapshot(
            &shape,
            patterns,
            &tectum::snapshot::Snapshot::parse(&bytes).expect("whole"),
        )
        .expect("of this shape");
        let mut other = Simulation::new(shape, options, &device).expect("it compiles");
        other.set_state(&state).expect("it fits");
        assert_eq!(
            (run(&mut other, 20), other.state().expect("readable")),
            expected,
            "on {}",
            device.info().id
        );
        let larger = Shape::new([8, 8, 8], 64).expect("a field");
        assert!(
            State::from_snapshot(&larger, patterns, &snapshot)
                .expect_err("another shape")
                .to_string()
                .contains("field of")
        );
        if patterns > 0 {
            assert!(
                State::from_snapshot(&shape, 9, &snapshot)
                    .expect_err("a larger library")
                    .to_string()
                    .contains("library")
            );
        }
    }
}

#[test]
fn a_cycle_is_one_transfer_each_way_and_five_launches_or_seven_with_a_library() {
    let shape = Shape::new([8; 3], 64).expect("a field");
    for (device, patterns) in devices()
        .into_iter()
        .flat_map(|device| [(device.clone(), 0), (device, 64)])
    {
        let mut field = Simulation::new(
            shape,
            Options {
                patterns,
                ..options(5)
            },
            &device,
        )
        .expect("it compiles");
        for _ in 0..3 {
            field
                .tick(&observation(field.cycle(), 5), 0.0)
                .expect("it runs");
            let stats = field.stats();
            let expected = if device.info().id == "cpu" { 0 } else { 1 };
            let launches = if patterns == 0 { 5 } else { 7 };
            assert_eq!(
                (stats.transfers_up, stats.transfers_down, stats.launches),
                (expected, expected, launches),
                "on {}",
                device.info().id
            );
            assert_eq!(stats.fallbacks, 0);
        }
    }
}
