//! The library: recall from many patterns, storage and replacement.

use super::super::layout::{MEMORY_SCORES, MEMORY_SIMILARITY, OCTANTS, TRAIT_WORDS};
use super::*;

const CONTENT: usize = 8;
const WIDTH: usize = OCTANTS * CONTENT;

/// An idle field of 4³ cells and 8 content channels whose octants have the same content.
fn field(
    device: &Device,
    patterns: usize,
    coefficients: Coefficients,
    content: [f32; CONTENT],
) -> Simulation {
    let shape = Shape::new([4; 3], 32).expect("a field");
    let mut field = Simulation::new(
        shape,
        Options {
            patterns,
            ..options(2)
        },
        device,
    )
    .expect("it compiles");
    field.set_coefficients(coefficients).expect("in range");
    let mut state = State::new(&shape, 1).with_patterns(&shape, patterns);
    state.field.fill(0.0);
    state
        .field
        .chunks_exact_mut(32)
        .for_each(|cell| cell[..CONTENT].copy_from_slice(&content));
    state.recompute_means(&shape);
    field.set_state(&state).expect("it fits");
    field
}

/// Puts a pattern with the same content in all octants into a place, with its age, use and reward.
fn put(state: &mut State, place: usize, content: [f32; CONTENT], [age, used, reward]: [f32; 3]) {
    let pattern = &mut state.library[place * WIDTH..][..WIDTH];
    pattern
        .chunks_exact_mut(CONTENT)
        .for_each(|octant| octant.copy_from_slice(&content));
    let length = pattern.iter().map(|v| v * v).sum::<f32>().sqrt();
    state.traits[place * TRAIT_WORDS..][..TRAIT_WORDS]
        .copy_from_slice(&[length, age, used, reward]);
}

/// A content in one channel.
fn along(channel: usize) -> [f32; CONTENT] {
    std::array::from_fn(|c| if c == channel { 0.5 } else { 0.0 })
}

#[test]
fn a_new_pattern_is_stored_once_and_then_familiar() {
    for device in devices() {
        let mut field = field(
            &device,
            3,
            Coefficients {
                familiar: 0.9,
                ..only_diffusion([0.0; 3])
            },
            along(0),
        );
        let first = field.tick(&[0.0; 2], 0.25).expect("it runs");
        assert_eq!(
            first.recall,
            Recall {
                stored: Some(0),
                attractor: Some(0),
                kept: 1,
                ..Recall::default()
            }
        );
        // Nothing was similar to it: novelty 1, and nothing is recalled.
        assert_eq!(first.novelty, 1.0);
        let second = field.tick(&[0.0; 2], 0.0).expect("it runs");
        assert_eq!(
            second.recall,
            Recall {
                nearest: Some(0),
                top: vec![0],
                stored: None,
                attractor: None,
                kept: 1
            }
        );
        // A cosine of 1, less 10⁻⁶ over the square of the length; the drift of novelty is 0.1·sin
        // 0.01.
        assert!(
            (second.novelty - 0.1 * 0.01f32.sin()).abs() < 1e-5,
            "{}",
            second.novelty
        );
        let state = field.state().expect("readable");
        // Length 0.5·√8; age 0, for it was met; use 0.001 of weight 1; reward a tenth of the way
        // from 0.25 to 0.
        for (found, expected) in
            state.traits[..TRAIT_WORDS]
                .iter()
                .zip([0.5 * 8f32.sqrt(), 0.0, 0.001, 0.225])
        {
            assert!(
                (found - expected).abs() < 1e-6,
                "{found} for {expected} on {}",
                device.info().id
            );
        }
        // The attractor lost a twentieth.
        let attractor = &state.traits[3 * TRAIT_WORDS..][..TRAIT_WORDS];
        assert!(
            (attractor[1] - 0.2375).abs() < 1e-6 && attractor[3] == 1.0,
            "{attractor:?}"
        );
    }
}

#[test]
fn a_silent_field_is_not_stored_and_matches_nothing() {
    for device in devices() {
        let mut field = field(&device, 3, only_diffusion([0.0; 3]), [0.0; CONTENT]);
        for _ in 0..2 {
            assert_eq!(
                field.tick(&[0.0; 2], 1.0).expect("it runs").recall,
                Recall::default()
            );
        }
        let mut state = field.state().expect("readable");
        put(&mut state, 1, along(2), [0.0; 3]);
        field.set_state(&state).expect("it fits");
        let report = field.tick(&[0.0; 2], 1.0).expect("it runs");
        assert_eq!(
            report.recall,
            Recall {
                nearest: Some(1),
                top: vec![1],
                stored: None,
                attractor: None,
                kept: 1
            }
        );
        assert_eq!(
            field.state().expect("readable").memory[MEMORY_SIMILARITY],
            0.0
        );
    }
}

#[test]
fn the_least_valuable_pattern_goes_and_of_equals_the_first() {
    // Reward, recency and use of each: punished patterns are replaced first, then old and unused
    // ones.
    let cases: [(&[[f32; 3]], usize); 5] = [
        (&[[500.0, 0.0, 0.0], [900.0, 0.0, 0.0], [10.0, 0.0, 0.0]], 1),
        (
            &[[900.0, 0.9, 0.0], [900.0, 0.0, 0.0], [800.0, 0.0, 0.0]],
            1,
        ),
        (
            &[[0.0, 0.0, -1.0], [5000.0, 0.0, 0.0], [900.0, 0.0, 1.0]],
            0,
        ),
        (
            &[[100.0, 0.0, 1.0], [100.0, 0.0, -0.5], [300.0, 0.0, 0.5]],
            1,
        ),
        (&[[0.0, 0.0, 0.5], [70.0, 0.1, 0.2], [70.0, 0.1, 0.2]], 1),
    ];
    for device in devices() {
        for (traits, expected) in cases {
            let mut field = field(&device, 3, only_diffusion([0.0; 3]), along(7));
            let mut state = field.state().expect("readable");
            traits
                .iter()
                .enumerate()
                .for_each(|(place, traits)| put(&mut state, place, along(place), *traits));
            field.set_state(&state).expect("it fits");
            let report = field.tick(&[0.0; 2], 0.0).expect("it runs");
            assert_eq!(
                (report.recall.stored, report.recall.kept),
                (Some(expected), 3),
                "{traits:?} on {}",
                device.info().id
            );
            let after = field.state().expect("readable");
            assert_eq!(after.library[expected * WIDTH..][..CONTENT], along(7));
            assert_eq!(after.traits[expected * TRAIT_WORDS + 1], 0.0);
        }
        // A free place is used before one that is worth nothing.
        let mut field = field(&device, 3, only_diffusion([0.0; 3]), along(7));
        let mut state = field.state().expect("readable");
        put(&mut state, 0, along(0), [0.0, 0.0, -1.0]);
        put(&mut state, 2, along(0), [0.0, 0.0, -1.0]);
        field.set_state(&state).expect("it fits");
        let recall = field.tick(&[0.0; 2], 0.0).expect("it runs").recall;
        assert_eq!((recall.stored, recall.kept), (Some(1), 3));
    }
}

#[test]
fn the_field_is_pulled_to_what_is_recalled_by_score_and_recency() {
    for device in devices() {
        let coefficients = Coefficients {
            recall: 0.5,
            familiar: 0.0,
            ..only_diffusion([0.0; 3])
        };
        let mut now = along(0);
        now[1] = 0.5;
        let mut field = field(&device, 4, coefficients, now);
        let mut state = field.state().expect("readable");
        put(&mut state, 1, along(0), [0.0, 0.0, 0.0]);
        put(&mut state, 2, along(1), [500.0, 0.0, 0.0]);
        field.set_state(&state).expect("it fits");
        let report = field.tick(&[0.0; 2], 0.0).expect("it runs");
        assert_eq!(report.recall.top, [1, 2]);
        // Both cosines are 1/√2; the second is weaker by e. Weights of exp 5r; pull ½·r of the
        // first.
        let (first, second) = (0.5f64.sqrt(), 0.5f64.sqrt() * (-1f64).exp());
        let weight = 1.0 / (1.0 + (5.0 * (second - first)).exp());
        let pull = 0.5 * first;
        let kept = 0.999 - 0.01 * (f64::from(report.information) / 1.5).clamp(0.0, 1.0);
        let after = field.state().expect("readable");
        for (channel, recalled) in [(0, 0.5 * weight), (1, 0.5 * (1.0 - weight)), (2, 0.0)] {
            let expected = (kept - pull) * f64::from(now[channel]) + pull * recalled;
            let found = f64::from(after.field[field.shape().at([1, 2, 3], channel)]);
            assert!(
                (found - expected).abs() < 1e-5,
                "channel {channel}: {found} for {expected} on {}",
                device.info().id
            );
        }
        assert!((f64::from(after.memory[MEMORY_SCORES]) - first).abs() < 1e-5);
    }
}

#[test]
fn attractors_pull_towards_reward_and_push_from_punishment() {
    for device in devices() {
        for (reward, sign) in [(1.0, 1.0), (-0.5, -1.0), (0.05, 0.0)] {
            let mut field = field(
                &device,
                2,
                Coefficients {
                    attraction: 0.02,
                    strategy: 0.5,
                    ..only_diffusion([0.0; 3])
                },
                along(3),
            );
            field.tick(&[0.0; 2], reward).expect("it runs");
            let mut state = field.state().expect("readable");
            state
                .field
                .chunks_exact_mut(32)
                .for_each(|cell| cell[3] = 0.2);
            state.recompute_means(field.shape());
            field.set_state(&state).expect("it fits");
            let report = field.tick(&[0.0; 2], 0.0).expect("it runs");
            let kept = 0.999 - 0.01 * (report.information / 1.5).clamp(0.0, 1.0);
            // Cosine 1: the full rate 0.02·|ρ| towards 0.5, or away from it. A rewarding one also
            // drives, by 0.2·|ρ|·tanh of the mean of tanh over eight temporal channels of which one
            // holds 0.5.
            let strength = f32::abs(reward);
            let lead = if sign > 0.0 {
                0.2 * strength * (0.5f32.tanh() / 8.0).tanh()
            } else {
                0.0
            };
            let expected = kept * 0.2 + sign * 0.02 * strength * (0.5 - 0.2) + lead;
            let after = field.state().expect("readable");
            let found = after.field[field.shape().at([0; 3], 3)];
            assert!(
                (found - expected).abs() < 1e-6,
                "reward {reward}: {found} for {expected} on {}",
                device.info().id
            );
            // The strategic pattern enters temporal channel 3, half of it at full strength.
            let found = after.field[field.shape().at([0; 3], CONTENT + 3)];
            let expected = if sign > 0.0 { 0.5 * 0.5f32.tanh() } else { 0.0 };
            assert!(
                (found - expected).abs() < 1e-5,
                "reward {reward}: {found} for {expected} on {}",
                device.info().id
            );
        }
    }
}

/// A full library of random patterns around the current one, some of them equal.
fn full(shape: &Shape, seed: u64) -> State {
    let patterns = 4096;
    let mut state = State::new(shape, seed).with_patterns(shape, patterns);
    let width = OCTANTS * shape.content();
    let number = |i: usize, of: u64| draw(i as u32, key(seed, of)) as f32 / 510.0;
    for row in 0..patterns {
        // Every seventh is one of nine patterns: many equal scores, of which the lowest rows must
        // be chosen.
        let from = if row % 7 == 0 { row % 9 } else { row };
        let pattern = &mut state.library[row * width..][..width];
        pattern
            .iter_mut()
            .enumerate()
            .for_each(|(i, v)| *v = 0.1 + number(from * width + i, 1));
        let length = pattern.iter().map(|v| v * v).sum::<f32>().sqrt();
        let age = if row % 7 == 0 {
            40.0
        } else {
            500.0 * (1.0 + number(row, 2))
        };
        let own = [
            length,
            age.round(),
            0.5 + 0.5 * number(row, 3),
            number(row, 4),
        ];
        state.traits[row * TRAIT_WORDS..][..TRAIT_WORDS].copy_from_slice(&own);
    }
    state
}

#[test]
fn a_full_library_of_4096_recalls_as_float64_does() {
    let shape = Shape::new([8; 3], 64).expect("a field");
    let options = Options {
        patterns: 4096,
        ..options(6)
    };
    let mut ties = 0;
    for device in devices() {
        let mut field = Simulation::new(shape, options, &device).expect("it compiles");
        field
            .set_coefficients(Coefficients {
                familiar: 1.0,
                recall: 0.3,
                ..Coefficients::default()
            })
            .expect("in range");
        for seed in 0..4 {
            field.set_state(&full(&shape, seed)).expect("it fits");
            for cycle in 0..5u8 {
                let before = field.state().expect("readable");
                let sensors = observation(u64::from(cycle), 6);
                let reward = 0.3 - 0.1 * f32::from(cycle);
                let report = field.tick(&sensors, reward).expect("it runs");
                let after = field.state().expect("readable");
                let coefficients = *field.coefficients();
                let reference = Cycle {
                    shape: &shape,
                    options: &options,
                    coefficients: &coefficients,
                    sensors: &sensors,
                    reward,
                };
                let own = reference.recall(&before);
                let short = reference.recall_margin(&before, &report.recall);
                assert!(
                    short < TIE,
                    "seed {seed}, cycle {cycle} on {}: {:?} for {own:?}, {short} apart",
                    device.info().id,
                    report.recall
                );
                assert_eq!(
                    (
                        report.recall.top.len(),
                        report.recall.kept,
                        report.recall.stored.is_some()
                    ),
                    (8, 4096, true)
                );
                if report.recall != own {
                    eprintln!(
                        "near-tie, seed {seed}, cycle {cycle} on {}: {:?} for {own:?}, {short:e} apart",
                        device.info().id,
                        report.recall
                    );
                    ties += 1;
                }
                let expected = reference.advance(
                    &before,
                    Some(reference.places(&before)[0].0),
                    Some(&report.recall),
                );
                for found in differences(&expected, &after, &report, coefficients.saturation) {
                    assert!(
                        found.is_within(),
                        "seed {seed}, cycle {cycle} on {}: {found:?}",
                        device.info().id
                    );
                }
            }
        }
    }
    eprintln!("{ties} near-ties in full libraries");
}

#[test]
fn of_equal_scores_the_lowest_rows_are_recalled_first() {
    for device in devices() {
        let mut field = field(
            &device,
            600,
            Coefficients {
                familiar: 0.5,
                ..only_diffusion([0.0; 3])
            },
            along(4),
        );
        let mut state = field.state().expect("readable");
        for place in (5..600).rev().step_by(31) {
            put(&mut state, place, along(4), [3.0, 0.0, 0.0]);
        }
        put(&mut state, 300, along(4), [2.0, 0.0, 0.0]);
        field.set_state(&state).expect("it fits");
        let recall = field.tick(&[0.0; 2], 0.0).expect("it runs").recall;
        let rows: Vec<usize> = (5..600)
            .rev()
            .step_by(31)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .take(7)
            .collect();
        assert_eq!(
            recall.top,
            [vec![300], rows.clone()].concat(),
            "on {}",
            device.info().id
        );
        assert_eq!(recall.nearest, rows.iter().copied().min());
    }
}
