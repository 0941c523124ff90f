//! Ensembles of a recorded rig: what they read, how they learn, and that files preserve them.

use std::ops::ControlFlow;

use tectum::{Device, Session};

use super::fit::{self, Physics, Samples};
use super::sequence::{CHANNELS, changes, energy_balance, statistics};
use super::*;
use crate::body::rig::RigParameters;
use crate::body::rig::simulated;
use crate::rig_csv::RigRecording;

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

fn recorded(rows: usize) -> RigRecording {
    simulated(RigParameters::default(), rows, 0.0)
}

fn quick() -> EnsembleSettings {
    let settings = EnsembleSettings::default();
    let recipe = TwinRecipe {
        hidden: vec![24, 24],
        steps: 600,
        ..settings.recipe
    };
    EnsembleSettings {
        members: 2,
        recipe,
        data: "made.csv".into(),
        ..settings
    }
}

#[test]
fn what_is_read_of_a_row_is_what_the_layout_says() {
    let layout = SequenceLayout { lags: 2 };
    let past = RowHistory {
        position: vec![0.5, 1.0, 2.0],
        velocity: vec![0.0, 50.0, 100.0],
        angle: vec![170.0, 178.0, -174.0],
        command: vec![1.0, 2.0, 3.0, -5.0],
        seconds: vec![0.04, 0.04, 0.04, 0.05],
    };
    let mut features = Vec::new();
    layout.encode(&past, &mut features);
    assert_eq!(features.len(), layout.features());
    let (sine, cosine) = (
        (-174.0f64).to_radians().sin_cos(),
        178.0f64.to_radians().sin_cos(),
    );
    let expected = [
        0.5, 0.2, sine.0, sine.1, 0.2, -0.25, 0.1, cosine.0, cosine.1, 0.2, -1.0, 0.6, 0.4, 0.25,
    ];
    for (at, (found, expected)) in features.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() < 1e-6,
            "{at}: {found} for {expected}"
        );
    }
    // From −174 the last change of 8 continues, plus 3.
    assert_eq!(layout.next(&past, [0.1, -20.0, 3.0]), [2.1, 80.0, -163.0]);
    let mut moved = past.clone();
    moved.push([2.1, 80.0, -163.0], 4.0, 0.04);
    assert_eq!(
        (moved.angle, moved.command),
        (vec![178.0, -174.0, -163.0], vec![2.0, 3.0, -5.0, 4.0])
    );
}

#[test]
fn rows_that_touch_a_jump_or_the_dead_zone_or_another_part_are_left_out() {
    let mut recording = recorded(1200);
    recording
        .pend_position_deg
        .iter_mut()
        .for_each(|angle| *angle = 10.0);
    recording.angle_is_valid[100] = false;
    recording.pend_position_deg[200] = crate::rig_csv::DEAD_ZONE_DEG;
    let layout = SequenceLayout { lags: 3 };
    let rows = layout.rows_of(&recording, DataSplit::Train, 1000, 1);
    // A sample of row k touches k − 3 to k + 1.
    for absent in (99..104).chain(199..204).chain([1, 2, 999, 1000]) {
        assert!(!rows.contains(&absent), "{absent}");
    }
    for present in [3, 98, 104, 198, 204, 998] {
        assert!(rows.contains(&present), "{present}");
    }
    let tested = layout.rows_of(&recording, DataSplit::Test, 1000, 1);
    assert_eq!((tested.first(), tested.last()), (Some(&1003), Some(&1198)));
    assert!(
        layout
            .rows_of(&recording, DataSplit::Validation, 1000, 1)
            .is_empty()
    );
    assert!(
        SequenceLayout { lags: 0 }.check().is_err() && SequenceLayout { lags: 17 }.check().is_err()
    );
}

#[test]
fn the_balance_of_energy_holds_for_a_simulated_rig() {
    // On its own recording: the error of a step is of the third order in its change of angle of up
    // to 20 degrees.
    let recording = recorded(600);
    let rows: Vec<usize> = (3..598).collect();
    let truth = changes(&recording, &rows);
    let (mean, deviation) = statistics(&truth);
    let physics = energy_balance(
        &recording,
        &RigParameters::default(),
        &rows,
        &mean,
        &deviation,
    );
    let mut off = Vec::new();
    let mut taken = Vec::new();
    for (at, truth) in truth.chunks_exact(CHANNELS).enumerate() {
        let y: Vec<f64> = (0..CHANNELS)
            .map(|c| (truth[c] - f64::from(mean[c])) / f64::from(deviation[c]))
            .collect();
        let found: f64 = y
            .iter()
            .zip(&physics.slopes[at * CHANNELS..])
            .map(|(y, slope)| y * f64::from(*slope))
            .sum();
        off.push((found - f64::from(physics.values[at])).abs());
        taken.push(
            (found
                + f64::from(mean[2]) * f64::from(physics.slopes[at * CHANNELS + 2] / deviation[2]))
            .abs(),
        );
    }
    let [off, taken] = [off, taken].map(|sizes| quantile::quantile(sizes, 0.5));
    assert!(
        off < 0.05 * taken,
        "median {off} where the terms are {taken}"
    );
}

#[test]
fn hubers_loss_is_the_square_within_its_bound_and_the_size_beyond() {
    let recipe = TwinRecipe {
        huber: Some(0.5),
        ..TwinRecipe::default()
    };
    let mut builder = tectum_graph::GraphBuilder::new();
    let (x, zero) = (
        builder.input("x", [1, 4]).expect("new"),
        builder.input("zero", [1, 4]).expect("new"),
    );
    let loss = fit::loss(&mut builder, &recipe, x, zero).expect("it fits");
    builder.output("loss", loss).expect("new");
    let graph = builder.finish().expect("whole");
    let mut plan = tectum::PlanBuilder::new("loss");
    let views = ["x", "zero"].map(|name| plan.input(name, tectum::DType::F32, 4));
    let told = plan.output("loss", tectum::DType::F32, 1);
    graph
        .record(
            &mut plan,
            &[(x, views[0]), (zero, views[1])],
            &[(loss, told)],
        )
        .expect("it fits");
    let mut run = plan
        .finish()
        .expect("whole")
        .compile(&cpu())
        .expect("it compiles");
    run.input::<f32>(views[0])
        .copy_from_slice(&[0.25, -0.5, 2.0, -1.0]);
    run.input::<f32>(views[1]).fill(0.0);
    run.run().expect("it runs");
    // 0.03125, 0.125, 0.5·(2 − 0.25), 0.5·(1 − 0.25).
    let expected = (0.03125 + 0.125 + 0.875 + 0.375) / 4.0;
    assert!(
        (run.output::<f32>(told)[0] - expected).abs() < 1e-6,
        "{:?}",
        run.output::<f32>(told)
    );
}

#[test]
fn a_fit_stops_when_what_was_held_out_gains_no_more_and_keeps_the_best() {
    // The held-out samples say the opposite: the first evaluation is the best.
    let network = Network::new(1, &[4], 1).expect("a network");
    let line = |sign: f32| Samples {
        features: (0..64).map(|i| i as f32 / 32.0 - 1.0).collect(),
        targets: (0..64).map(|i| sign * (i as f32 / 32.0 - 1.0)).collect(),
        physics: None,
    };
    let recipe = TwinRecipe {
        steps: 600,
        batch: 32,
        patience: Some(100),
        ..TwinRecipe::default()
    };
    let (_, report) = fit::fit(
        &network,
        &recipe,
        &network.initial_weights(1),
        [&line(1.0), &line(-1.0)],
        &mut Session::new(&cpu()),
        1,
        |_, _| ControlFlow::Continue(()),
    )
    .expect("it fits");
    assert_eq!(
        (report.best_step, report.steps, report.curve.len()),
        (10, 110, 11)
    );
    let (_, whole) = fit::fit(
        &network,
        &TwinRecipe {
            patience: None,
            ..recipe
        },
        &network.initial_weights(1),
        [&line(1.0), &line(1.0)],
        &mut Session::new(&cpu()),
        1,
        |_, _| ControlFlow::Continue(()),
    )
    .expect("it fits");
    assert_eq!((whole.best_step, whole.steps), (600, 600));
    assert!(
        whole.held_out_loss < 0.01 && whole.curve.is_empty(),
        "{whole:?}"
    );
}

#[test]
fn what_physics_says_moves_the_fit() {
    // Targets are 0, physics requires 1: the result is in between, by their weights.
    let network = Network::new(1, &[4], 1).expect("a network");
    let ones = vec![1.0; 64];
    let samples = Samples {
        features: ones.clone(),
        targets: vec![0.0; 64],
        physics: Some(Physics {
            slopes: ones.clone(),
            values: ones,
        }),
    };
    let recipe = TwinRecipe {
        steps: 400,
        batch: 32,
        physics_weight: 3.0,
        weight_decay: 0.0,
        ..TwinRecipe::default()
    };
    let (_, report) = fit::fit(
        &network,
        &recipe,
        &network.initial_weights(1),
        [
            &samples,
            &Samples {
                physics: None,
                ..samples.clone()
            },
        ],
        &mut Session::new(&cpu()),
        1,
        |_, _| ControlFlow::Continue(()),
    )
    .expect("it fits");
    // y² + 3(y − 1)² is least at 3/4, where the squared error is 9/16.
    assert!((report.held_out_loss - 0.5625).abs() < 0.01, "{report:?}");
}

#[test]
fn an_ensemble_learns_a_simulated_rig_alike_on_every_device_and_a_file_holds_it() {
    let recording = recorded(4600);
    let (ensemble, reports) = Ensemble::train(
        &recording,
        Some(&RigParameters::default()),
        &quick(),
        &mut Session::new(&cpu()),
        |_, _, _| ControlFlow::Continue(()),
    )
    .expect("it trains");
    assert_eq!(
        (ensemble.members.len(), reports.len(), ensemble.origin.rows),
        (2, 2, 4600)
    );
    let found = inspect(&ensemble, &recording, &cpu()).expect("it can be compared");
    let angle = |method: Method| {
        found
            .one_step
            .iter()
            .find(|row| row.method == method && row.channel == "pend_position")
            .expect("listed")
            .median
    };
    assert!(
        angle(Method::Twin) < 0.5 * angle(Method::ConstantVelocity),
        "{} against {}",
        angle(Method::Twin),
        angle(Method::ConstantVelocity)
    );
    assert!(
        angle(Method::Physics) < 0.1,
        "the rig itself is off by {}",
        angle(Method::Physics)
    );
    assert_eq!(
        found
            .horizons
            .iter()
            .map(|horizon| horizon.steps)
            .collect::<Vec<_>>(),
        [1, 5, 10, 25]
    );
    let first = found.horizons[0].errors[0].median;
    assert!(
        (first - angle(Method::Twin)).abs() < 1e-3 * first,
        "one step of a run is one step: {first}"
    );

    let path = std::env::temp_dir().join(format!("tectum-twin-{}.safetensors", std::process::id()));
    ensemble.save(&path).expect("writable");
    let read = Ensemble::load(&path).expect("whole");
    assert_eq!(
        (
            &read.members,
            &read.mean,
            &read.noise,
            &read.origin,
            read.layout
        ),
        (
            &ensemble.members,
            &ensemble.mean,
            &ensemble.noise,
            &ensemble.origin,
            ensemble.layout
        )
    );
    refuses_what_is_no_twin(&path);
    std::fs::remove_file(&path).expect("ours");

    let Some(vulkan) = Device::open_if_present("vulkan:0").expect("absent or usable") else {
        return eprintln!("skipped: no Vulkan device");
    };
    let few = EnsembleSettings {
        members: 1,
        recipe: TwinRecipe {
            steps: 20,
            batch: 64,
            patience: None,
            physics_weight: 0.1,
            ..quick().recipe
        },
        ..quick()
    };
    let [here, there] = [cpu(), vulkan].map(|device| {
        Ensemble::train(
            &recording,
            Some(&RigParameters::default()),
            &few,
            &mut Session::new(&device),
            |_, _, _| ControlFlow::Continue(()),
        )
        .expect("it trains")
        .1
    });
    let (here, there) = (here[0].held_out_loss, there[0].held_out_loss);
    assert!(
        (here - there).abs() < 1e-3 * here,
        "{here} on the CPU, {there} on Vulkan"
    );
}

fn refuses_what_is_no_twin(path: &std::path::Path) {
    let whole = std::fs::read(path).expect("there");
    let broken = path.with_extension("broken");
    let refused = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).expect("writable");
        let error = Ensemble::load(&broken).expect_err("broken").to_string();
        assert!(error.contains("broken"), "no path in {error}");
        error
    };
    assert!(refused(&whole[..whole.len() - 4]).contains("not a safetensors file"));
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = whole
            .windows(from.len())
            .position(|part| part == from.as_bytes())
            .unwrap_or_else(|| panic!("no {from}"));
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    assert!(refused(&replaced("tectum.twin", "tectum.tiwn")).contains("no twin"));
    assert!(refused(&replaced("\\\"version\\\":2", "\\\"version\\\":7")).contains("version 7"));
    assert!(refused(&replaced("\\\"members\\\":2", "\\\"members\\\":3")).contains("member.2."));
    assert!(refused(&replaced("\\\"lags\\\":4", "\\\"lags\\\":5")).contains("is needed"));
    let mut nan = whole.clone();
    let end = nan.len();
    nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(refused(&nan).contains("is NaN at"));
    std::fs::remove_file(broken).expect("ours");
}

#[test]
fn settings_and_recordings_that_cannot_be_are_refused() {
    let recording = recorded(300);
    let refused = |settings: EnsembleSettings| {
        Ensemble::train(
            &recording,
            None,
            &settings,
            &mut Session::new(&cpu()),
            |_, _, _| ControlFlow::Continue(()),
        )
        .expect_err("refused")
        .to_string()
    };
    assert!(refused(quick()).contains("usable rows"));
    assert!(
        refused(EnsembleSettings {
            members: 0,
            ..quick()
        })
        .contains("0 networks")
    );
    assert!(
        refused(EnsembleSettings {
            layout: SequenceLayout { lags: 40 },
            ..quick()
        })
        .contains("40 rows")
    );
}

#[test]
fn loss_and_gradients_are_pytorchs() {
    #[derive(serde::Deserialize)]
    struct Case {
        huber: Option<f32>,
        physics: f32,
        loss: f64,
        gradients: Vec<f64>,
    }
    #[derive(serde::Deserialize)]
    struct File {
        cases: Vec<Case>,
    }
    // twin_gradients.py, next to the data, makes the same numbers.
    let wave = |count: usize, step: f64, size: f64| {
        (0..count)
            .map(|i| (size * (step * (i + 1) as f64).sin()) as f32)
            .collect::<Vec<_>>()
    };
    let file: File = serde_json::from_str(include_str!("../../tests/data/twin_gradients.json"))
        .expect("as it was written");
    let network = Network::new(5, &[8, 8], 3).expect("a network");
    let layout = network.parameters();
    let mut packed = vec![0.0; layout.len()];
    for (index, entry) in layout.entries().iter().enumerate() {
        let (layer, is_bias) = ((index / 2) as f64, index % 2 == 1);
        let (step, size) = if is_bias {
            (0.4 + 0.1 * layer, 0.2)
        } else {
            (0.7 + 0.1 * layer, 0.5)
        };
        packed[entry.range()].copy_from_slice(&wave(entry.shape[0] * entry.shape[1], step, size));
    }
    assert_eq!(file.cases.len(), 3);
    for case in file.cases {
        let recipe = TwinRecipe {
            batch: 6,
            huber: case.huber,
            physics_weight: case.physics,
            ..TwinRecipe::default()
        };
        let objective = fit::objective(&network, &recipe).expect("it fits");
        let mut plan = tectum::PlanBuilder::new("gradients");
        let mut input = |name: &str, len: usize| plan.input(name, tectum::DType::F32, len);
        let (x, target, weights) = (
            input("x", 30),
            input("target", 18),
            input("weights", layout.len()),
        );
        let physics = [input("slopes", 18), input("values", 6)];
        let (loss, gradient) = (
            plan.output("loss", tectum::DType::F32, 1),
            plan.output("gradient", tectum::DType::F32, layout.len()),
        );
        let mut feeds = vec![(objective.input, x), (objective.wanted, target)];
        feeds.extend(objective.equation.into_iter().flatten().zip(physics));
        feeds.extend(layout.feeds(&objective.graph, weights).expect("it fits"));
        let mut results = vec![(objective.loss, loss)];
        results.extend(
            layout
                .gradient_outputs(&objective.graph, gradient)
                .expect("all are there"),
        );
        objective
            .graph
            .record(&mut plan, &feeds, &results)
            .expect("it fits");
        let mut run = plan
            .finish()
            .expect("whole")
            .compile(&cpu())
            .expect("it compiles");
        for (view, numbers) in [
            (x, wave(30, 1.3, 1.0)),
            (target, wave(18, 0.9, 1.0)),
            (weights, packed.clone()),
            (physics[0], wave(18, 1.7, 1.0)),
            (physics[1], wave(6, 0.6, 1.0)),
        ] {
            run.input::<f32>(view).copy_from_slice(&numbers);
        }
        run.run().expect("it runs");
        assert!(
            (f64::from(run.output::<f32>(loss)[0]) - case.loss).abs() < 1e-6,
            "{:?} for {}",
            run.output::<f32>(loss),
            case.loss
        );
        let found: Vec<f32> = layout
            .entries()
            .iter()
            .flat_map(|entry| run.output::<f32>(gradient)[entry.range()].to_vec())
            .collect();
        assert_eq!(found.len(), case.gradients.len());
        for (at, (found, expected)) in found.iter().zip(&case.gradients).enumerate() {
            assert!(
                (f64::from(*found) - expected).abs() < 1e-6,
                "{at}: {found} for {expected}, bound {:?}, physics {}",
                case.huber,
                case.physics
            );
        }
    }
}

/// What a network gives for one row, in float64.
fn predict(network: &Network, weights: &[f32], row: &[f32]) -> Vec<f64> {
    let mut x: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
    let entries = network.parameters().entries();
    for (index, pair) in entries.chunks_exact(2).enumerate() {
        let (weight, bias) = (&weights[pair[0].range()], &weights[pair[1].range()]);
        let sum = |j: usize| {
            f64::from(bias[j])
                + x.iter()
                    .enumerate()
                    .map(|(i, x)| x * f64::from(weight[i * bias.len() + j]))
                    .sum::<f64>()
        };
        let is_hidden = 2 * (index + 1) < entries.len();
        x = (0..bias.len())
            .map(sum)
            .map(|y| if is_hidden { y.tanh() } else { y })
            .collect();
    }
    x
}

#[test]
fn weights_in_other_units_predict_the_same_changes() {
    let layout = TwinLayout::of(
        crate::body::body("pendulum", None).expect("known").spec(),
        false,
    )
    .expect("one action");
    let mut twin = Twin::untrained(&layout, &[9]).expect("a width above 0");
    twin.weights
        .iter_mut()
        .enumerate()
        .for_each(|(i, weight)| *weight = (i as f32).sin());
    (twin.change_mean, twin.change_deviation) = (vec![0.2, -1.0], vec![0.5, 3.0]);
    let (mean, deviation) = ([-0.3f32, 0.7], [2.0f32, 0.25]);
    let other = twin.rescaled_weights(&mean, &deviation);
    let row = [0.6, -0.8, 0.3, 0.9];
    let (before, after) = (
        predict(&twin.network, &twin.weights, &row),
        predict(&twin.network, &other, &row),
    );
    for c in 0..2 {
        let then = f64::from(twin.change_mean[c]) + f64::from(twin.change_deviation[c]) * before[c];
        let now = f64::from(mean[c]) + f64::from(deviation[c]) * after[c];
        assert!((then - now).abs() < 1e-5, "{then} {now}");
    }
}

#[test]
fn suspect_a_loss_that_is_no_number_never_replaces_the_best_weights() {
    let best = |loss| {
        Some(fit::BestWeights {
            loss,
            step: 1,
            weights: Vec::new(),
        })
    };
    assert!(
        !fit::BestWeights::improves(&best(0.5), f32::NAN)
            && !fit::BestWeights::improves(&None, f32::NAN)
            && !fit::BestWeights::improves(&None, f32::INFINITY)
    );
    assert!(
        fit::BestWeights::improves(&best(0.5), 0.25)
            && fit::BestWeights::improves(&None, 0.25)
            && !fit::BestWeights::improves(&best(0.5), 0.5)
    );
    // Held-out samples without a loss: an error, not weights that were never evaluated.
    let network = Network::new(1, &[4], 1).expect("a network");
    let samples = Samples {
        features: vec![0.5; 64],
        targets: vec![0.1; 64],
        physics: None,
    };
    let held_out = Samples {
        targets: [vec![0.1; 63], vec![f32::NAN]].concat(),
        ..samples.clone()
    };
    let recipe = TwinRecipe {
        steps: 60,
        batch: 32,
        patience: Some(100),
        ..TwinRecipe::default()
    };
    let error = fit::fit(
        &network,
        &recipe,
        &network.initial_weights(1),
        [&samples, &held_out],
        &mut Session::new(&cpu()),
        1,
        |_, _| ControlFlow::Continue(()),
    )
    .expect_err("no loss")
    .to_string();
    assert!(error.contains("held out is NaN"), "{error}");
}

#[test]
fn suspect_all_64_bits_of_a_seed_choose_the_batches() {
    let network = Network::new(1, &[4], 1).expect("a network");
    let samples = Samples {
        features: (0..64).map(|i| i as f32 / 32.0 - 1.0).collect(),
        targets: (0..64).map(|i| (i as f32).sin()).collect(),
        physics: None,
    };
    let recipe = TwinRecipe {
        steps: 20,
        batch: 32,
        ..TwinRecipe::default()
    };
    let weights = |seed: u64| {
        fit::fit(
            &network,
            &recipe,
            &network.initial_weights(1),
            [&samples, &samples],
            &mut Session::new(&cpu()),
            seed,
            |_, _| ControlFlow::Continue(()),
        )
        .expect("it fits")
        .0
    };
    assert!(weights(5) == weights(5) && weights(5) != weights(5 + (1 << 32)));
}

/// The second of three networks is broken off: it is there with the weights that it reached, and
/// the ensemble predicts with both.
#[test]
fn an_ensemble_that_is_broken_off_has_the_networks_so_far() {
    let recording = recorded(4600);
    let settings = EnsembleSettings {
        members: 3,
        recipe: TwinRecipe {
            steps: 60,
            ..quick().recipe
        },
        ..quick()
    };
    let watch = |member: usize, done: usize, _: f32| {
        if (member, done) == (1, 30) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let (ensemble, reports) = Ensemble::train(
        &recording,
        None,
        &settings,
        &mut Session::new(&cpu()),
        watch,
    )
    .expect("it trains");
    assert_eq!(
        reports
            .iter()
            .map(|report| report.steps)
            .collect::<Vec<_>>(),
        [60, 30]
    );
    assert!(ensemble.members.len() == 2 && ensemble.noise.iter().all(|noise| *noise > 0.0));
}
