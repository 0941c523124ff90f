//! Imprint and motors of a field of 4³ cells, worked out by hand.

use super::*;

/// A field of 4 × 4 × 4 cells and 8 content channels with a few values, in which only the terms
/// under test are active.
fn field(coefficients: Coefficients, values: &[([usize; 3], usize, f32)]) -> Simulation {
    let shape = Shape::new([4; 3], 32).expect("a field");
    let mut state = State::new(&shape, 1);
    state.field.fill(0.0);
    for (place, channel, value) in values {
        state.field[shape.at(*place, *channel)] = *value;
    }
    state.recompute_means(&shape);
    let mut field = Simulation::new(
        shape,
        Options {
            motors: 4,
            ..options(8)
        },
        &cpu(),
    )
    .expect("it compiles");
    field.set_state(&state).expect("it fits");
    field.set_coefficients(coefficients).expect("in range");
    field
}

fn imprinting() -> Coefficients {
    Coefficients {
        imprint: 1.0,
        ..only_diffusion([0.0; 3])
    }
}

/// The observation of most cases: only sensor 2, so only channel 2.
const SENSORS: [f32; 8] = [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0];

#[test]
fn an_imprint_fades_by_a_fifth_with_each_step() {
    let mut field = field(imprinting(), &[]);
    let report = field.tick(&SENSORS, 1.0).expect("it runs");
    // An empty field: every site is as empty as the first.
    assert_eq!(
        (report.place, report.place_kind),
        ([0, 0, 0], ImprintSiteKind::Emptiest)
    );
    // Nothing is predicted, so the errors are 0.5 of one sensor; weight 1.5 − 0.5·8/50 = 1.42; mean
    // 1.42·0.5/8 = 0.08875.
    assert!((report.error - 0.08875).abs() < 1e-6, "{}", report.error);
    // Confidence 0.9·0.5 + 0.1/(1 + 5·0.08875) = 0.519256; information 0; drive half of it;
    // strength 0.1 + 0.7·(1 − 0.259628) = 0.618260; amplification 1 + 0.5·0.480744 = 1.240372;
    // surprise 0.1 + 0.9·0.08875 = 0.179875; J with a reward of 1 = 0.137943.
    assert!(
        (report.confidence - 0.519_264).abs() < 1e-5,
        "{}",
        report.confidence
    );
    let strength = 0.1 + 0.7 * (1.0 - f64::from(report.confidence) / 2.0);
    let expected = strength * (1.0 + 0.5 * (1.0 - f64::from(report.confidence))) * 0.179_875;
    assert!(
        (f64::from(report.intensity) - expected).abs() < 1e-6,
        "{} for {expected}",
        report.intensity
    );
    let shape = *field.shape();
    let after = field.state().expect("readable").field;
    for (place, steps) in [
        ([0, 0, 0], 0),
        ([1, 0, 0], 1),
        ([1, 1, 0], 2),
        ([2, 2, 2], 6),
        ([2, 0, 0], 2),
    ] {
        let expected = 0.5 * report.intensity * 0.8f32.powi(steps);
        let found = after[shape.at(place, 2)];
        assert!(
            (found - expected).abs() < 1e-6,
            "{place:?}: {found} for {expected}"
        );
        assert_eq!(
            after[shape.at(place, 3)],
            0.0,
            "other channels are left alone"
        );
    }
    assert_eq!(after[shape.at([3, 0, 0], 2)], 0.0, "three steps away");
}

#[test]
fn reward_scales_the_imprint_and_the_worst_stops_it() {
    let at = |reward: f32| {
        field(imprinting(), &[])
            .tick(&SENSORS, reward)
            .expect("it runs")
            .intensity
    };
    assert_eq!(at(-1.0), 0.0);
    assert!((at(0.0) / at(1.0) - 0.5).abs() < 1e-6);
    assert_eq!(at(f32::NAN), at(0.0));
    assert_eq!(at(5.0), at(1.0));
}

#[test]
fn places_are_asked_for_in_order() {
    let chosen = |values: &[([usize; 3], usize, f32)]| {
        let report = field(imprinting(), values)
            .tick(&SENSORS, 0.0)
            .expect("it runs");
        (report.place, report.place_kind)
    };
    // The same pattern: cosine 1, energy 0.25/8.
    assert_eq!(
        chosen(&[([1, 2, 3], 2, 0.5)]),
        ([1, 2, 3], ImprintSiteKind::Existing)
    );
    // Two sites hold it equally: the first one is chosen.
    assert_eq!(
        chosen(&[([3, 2, 1], 2, 0.5), ([1, 2, 3], 2, 0.5)]),
        ([1, 2, 3], ImprintSiteKind::Existing)
    );
    // Energy 25/8 > 2 is too much for an existing one; at a corner 8 sites share 5: 0.625 resonates
    // there.
    assert_eq!(
        chosen(&[([0, 0, 0], 2, 5.0)]),
        ([0, 0, 0], ImprintSiteKind::Resonant)
    );
    // A pattern at 45°: cosine 0.707; at the corner resonance 0.1/8 is too little.
    assert_eq!(
        chosen(&[([3, 3, 3], 2, 0.1), ([3, 3, 3], 1, 0.1)]),
        ([3, 3, 3], ImprintSiteKind::Correlated)
    );
    // Nothing similar: the first site without energy.
    assert_eq!(
        chosen(&[
            ([0, 0, 0], 1, 0.1),
            ([0, 0, 1], 1, 0.1),
            ([0, 0, 2], 2, -0.1)
        ]),
        ([0, 0, 3], ImprintSiteKind::Emptiest)
    );
    // The pattern's opposite is not similar to it.
    assert_eq!(
        chosen(&[([0, 0, 0], 2, -0.5)]),
        ([0, 0, 1], ImprintSiteKind::Emptiest)
    );
}

#[test]
fn motors_go_by_the_end_slices() {
    // One cell of 16 on each end slice, one channel of 8: 1.28 there is a mean of 0.01 over the
    // slice.
    let still = only_diffusion([0.0; 3]);
    let report = field(still, &[([3, 1, 1], 0, 1.28), ([1, 0, 1], 0, 2.56)])
        .tick(&[0.0; 8], 0.0)
        .expect("it runs");
    let kept = 0.999 - 0.01 * report.information / 1.5;
    for (axis, expected) in [(0, 0.01), (1, -0.02), (2, 0.0)] {
        assert!(
            (report.gradient[axis] - kept * expected).abs() < 1e-8,
            "along {axis}: {}",
            report.gradient[axis]
        );
    }
    let expected = [(0, 0.05f64), (1, -0.1), (2, 0.0), (3, 0.0)];
    for (motor, raw) in expected {
        let expected = (f64::from(kept) * raw).tanh();
        assert!(
            (f64::from(report.motors[motor]) - expected).abs() < 1e-6,
            "motor {motor}: {} for {expected}",
            report.motors[motor]
        );
    }
}

#[test]
fn a_brain_that_is_not_confident_moves_more() {
    let still = only_diffusion([0.0; 3]);
    let shape = Shape::new([4; 3], 32).expect("a field");
    let moved = |confidence: f32| {
        let mut field = field(still, &[([3, 1, 1], 0, 2.56)]);
        let mut state = field.state().expect("readable");
        state.memory[crate::layout::MEMORY_CONFIDENCE] = confidence;
        assert_eq!(state.field.len(), shape.elements());
        field.set_state(&state).expect("it fits");
        let report = field.tick(&[0.0; 8], 0.0).expect("it runs");
        (
            report.confidence,
            report.motors[0] / (5.0 * report.gradient[0]).tanh(),
        )
    };
    // Confidence 0.9·c + 0.1/(1 + 5e), the errors near 0: from 0.1 it comes to 0.19, the gain to
    // 1.5 + 2·0.11.
    let (confidence, gain) = moved(0.1);
    assert!(
        (gain - (1.5 + 2.0 * (0.3 - confidence))).abs() < 1e-4,
        "{gain} at {confidence}"
    );
    let (_, gain) = moved(0.6);
    assert!((gain - 1.0).abs() < 1e-5, "{gain}");
}
