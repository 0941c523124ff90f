use std::ops::ControlFlow;

use tectum::{Activation, Device, Error, Window};

use crate::{
    AdamW, Batches, Graph, GraphBuilder, Init, LearningRate, Node, PoolKind, Trainer, rows,
};

const FEATURES: usize = 3;
const BATCH: usize = 8;

fn device() -> Device {
    Device::open("cpu").expect("cpu")
}

fn network() -> (Graph, Node) {
    let mut g = GraphBuilder::new();
    let (x, target) = (
        g.input("x", [BATCH, FEATURES]).expect("right"),
        g.input("target", [BATCH, 1]).expect("right"),
    );
    let hidden = g.dense("one", x, 16, Activation::Gelu).expect("right");
    let y = g.dense("two", hidden, 1, Activation::None).expect("right");
    let loss = g.mse(y, target).expect("right");
    g.output("y", y).expect("right");
    (g.finish().expect("right"), loss)
}

/// 64 samples of a smooth function.
fn samples() -> (Vec<f32>, Vec<f32>) {
    let x: Vec<f32> = (0..64 * FEATURES)
        .map(|place| (place as f32 * 0.37).sin())
        .collect();
    let target = x.chunks(FEATURES).map(|x| x[0] * x[1] + x[2]).collect();
    (x, target)
}

fn trainer(optimizer: AdamW, device: &Device) -> Trainer {
    let (graph, loss) = network();
    let mut trainer = Trainer::new(&graph, loss, optimizer, device).expect("compiles");
    trainer
        .initialize(3, &[("*.weight", Init::XavierUniform), ("*", Init::Zeros)])
        .expect("matches");
    trainer
}

/// The losses of some epochs.
fn train(trainer: &mut Trainer, epochs: std::ops::Range<u32>) -> Vec<f32> {
    let (x, target) = samples();
    let batches = Batches::new(64, BATCH, 5).expect("fits");
    let mut losses = Vec::new();
    for batch in epochs.flat_map(|epoch| batches.epoch(epoch)) {
        trainer
            .set_input("x", &rows(&x, FEATURES, &batch))
            .expect("fits");
        trainer
            .set_input("target", &rows(&target, 1, &batch))
            .expect("fits");
        losses.push(trainer.step().expect("runs"));
    }
    losses
}

fn cosine() -> AdamW {
    let learning_rate = LearningRate::Cosine {
        peak: 0.02,
        warm_up: 20,
        total: 400,
        floor: 1e-4,
    };
    AdamW {
        learning_rate,
        clip_norm: Some(1.0),
        ..AdamW::default()
    }
}

#[test]
fn a_network_learns_a_function_on_every_device() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a trained network");
            continue;
        };
        let losses = train(&mut trainer(cosine(), &device), 0..50);
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        let (first, last) = (mean(&losses[..8]), mean(&losses[392..]));
        assert!(last < 0.02 * first, "{id}: {first} → {last}");
    }
}

/// Images of 8 × 8 with a bright square at one of four corners, shifted, and noise; the class is
/// the corner.
fn images() -> (Vec<f32>, Vec<u32>) {
    let classes: Vec<u32> = (0..64).map(|sample| (sample * 7 / 3) % 4).collect();
    let pixel = |sample: usize, place: usize| {
        let (row, column, class) = (place / 8, place % 8, classes[sample] as usize);
        let (first_row, first_column) =
            (class / 2 * 4 + sample % 2, class % 2 * 4 + sample / 2 % 2);
        let is_bright = (first_row..first_row + 3).contains(&row)
            && (first_column..first_column + 3).contains(&column);
        f32::from(u8::from(is_bright)) + 0.5 * ((sample * 64 + place) as f32 * 1.7).sin()
    };
    let x = (0..64 * 64)
        .map(|place| pixel(place / 64, place % 64))
        .collect();
    (x, classes)
}

/// Convolution, maximum pooling, depthwise convolution, mean pooling, dense layer.
fn convolutional_network() -> tectum::Result<(Graph, Node)> {
    let mut g = GraphBuilder::new();
    let (x, classes) = (
        g.input("x", [BATCH, 1, 8, 8])?,
        g.indices("classes", [BATCH])?,
    );
    let (w, bias) = (
        g.parameter("one.weight", [6, 1, 3, 3])?,
        g.parameter("one.bias", [6])?,
    );
    let padded = Window {
        pad_before: [0, 1, 1],
        pad_after: [0, 1, 1],
        ..Window::new([1, 3, 3])
    };
    let x = g.convolution(x, w, Some(bias), 1, padded)?;
    let x = g.relu(x)?;
    let x = g.pool(
        x,
        PoolKind::Max,
        Window {
            stride: [1, 2, 2],
            ..Window::new([1, 2, 2])
        },
    )?;
    let (w, bias) = (
        g.parameter("two.weight", [6, 1, 3, 3])?,
        g.parameter("two.bias", [6])?,
    );
    let x = g.convolution(x, w, Some(bias), 6, padded)?;
    let x = g.activate(x, Activation::Silu)?;
    let x = g.pool(
        x,
        PoolKind::MeanInside,
        Window {
            stride: [1, 2, 2],
            ..Window::new([1, 2, 2])
        },
    )?;
    let flat = g.reshape(x, [BATCH, 24])?;
    let logits = g.dense("three", flat, 4, Activation::None)?;
    let loss = g.cross_entropy(logits, classes)?;
    g.output("logits", logits)?;
    Ok((g.finish()?, loss))
}

#[test]
fn a_convolutional_network_learns_classes_on_every_device() {
    let (graph, loss) = convolutional_network().expect("right");
    let (x, classes) = images();
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a convolutional network");
            continue;
        };
        let optimizer = AdamW {
            learning_rate: 0.01.into(),
            ..AdamW::default()
        };
        let mut trainer = Trainer::new(&graph, loss, optimizer, &device).expect("compiles");
        trainer
            .initialize(5, &[("*.weight", Init::KaimingNormal), ("*", Init::Zeros)])
            .expect("matches");
        let first = trainer.parameters().expect("reads");
        let batches = Batches::new(64, BATCH, 5).expect("fits");
        let mut losses = Vec::new();
        let feed = |trainer: &mut Trainer, batch: Vec<usize>| {
            trainer.set_input("x", &rows(&x, 64, &batch))?;
            trainer.set_indices("classes", &rows(&classes, 1, &batch))
        };
        let show = |_: &Trainer, loss: f32| {
            losses.push(loss);
            Ok(ControlFlow::Continue(()))
        };
        trainer
            .fit((0..25).flat_map(|epoch| batches.epoch(epoch)), feed, show)
            .expect("runs")
            .is_break();
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        let (early, late) = (mean(&losses[..8]), mean(&losses[192..]));
        assert!(late < 0.05 * early, "{id}: {early} → {late}");
        let is_moved = first
            .iter()
            .zip(trainer.parameters().expect("reads"))
            .all(|((_, before), (_, after))| before.iter().zip(&after).all(|(a, b)| a != b));
        assert!(is_moved, "{id}: a parameter stayed");
    }
}

/// Filters are drawn by the elements that one element of the result sums: 9 · 8 here, and as many
/// through the transposed one.
#[test]
fn filters_are_drawn_by_the_elements_that_they_sum() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 16, 4, 4]).expect("right");
    let (down, up) = (
        g.parameter("down", [64, 8, 3, 3]).expect("right"),
        g.parameter("up", [64, 32, 3, 3]).expect("right"),
    );
    let y = g
        .convolution(x, down, None, 2, Window::new([1, 3, 3]))
        .expect("right");
    let y = g
        .convolution_transposed(y, up, None, 8, Window::new([1, 3, 3]), [0; 3])
        .expect("right");
    let loss = g.sum(y).expect("right");
    g.output("loss", loss).expect("right");
    let mut trainer = Trainer::new(
        &g.finish().expect("right"),
        loss,
        AdamW::default(),
        &device(),
    )
    .expect("compiles");
    trainer
        .initialize(9, &[("*", Init::KaimingNormal)])
        .expect("matches");
    for name in ["down", "up"] {
        let values = trainer.parameter(name).expect("reads");
        let square = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        assert!((square * 72.0 - 2.0).abs() < 0.1, "{name}: {square}");
    }
}

#[test]
fn a_loaded_checkpoint_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("checkpoint.safetensors");
    let mut whole = trainer(cosine(), &device());
    train(&mut whole, 0..3);
    whole.save(&path).expect("writes");
    let wanted = train(&mut whole, 3..6);

    let mut resumed = trainer(cosine(), &device());
    resumed.load(&path).expect("reads");
    assert_eq!(resumed.steps(), 24);
    let bits = |losses: &[f32]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&train(&mut resumed, 3..6)), bits(&wanted));
    assert_eq!(
        resumed.parameters().expect("reads"),
        whole.parameters().expect("reads")
    );

    // A checkpoint of another network changes nothing.
    let mut g = GraphBuilder::new();
    let w = g.parameter("one.weight", [2, 2]).expect("right");
    let loss = g.sum(w).expect("right");
    g.output("loss", loss).expect("right");
    let mut other = Trainer::new(
        &g.finish().expect("right"),
        loss,
        AdamW::default(),
        &device(),
    )
    .expect("compiles");
    let error = other
        .load(&path)
        .expect_err("of another network")
        .to_string();
    assert!(
        error.contains("checkpoint.safetensors") && error.contains("parameters.one.weight"),
        "{error}"
    );
    assert_eq!(
        (other.parameter("one.weight").expect("reads"), other.steps()),
        (vec![0.0; 4], 0)
    );
}

/// Training that is broken off has the parameters, moments and steps of the steps that were taken,
/// and continues with the same bits.
#[test]
fn a_training_that_is_broken_off_keeps_what_it_reached() {
    let (x, target) = samples();
    let batches: Vec<Vec<usize>> = (0..3)
        .flat_map(|epoch| Batches::new(64, BATCH, 5).expect("fits").epoch(epoch))
        .collect();
    let feed = |trainer: &mut Trainer, batch: &Vec<usize>| {
        trainer.set_input("x", &rows(&x, FEATURES, batch))?;
        trainer.set_input("target", &rows(&target, 1, batch))
    };
    let mut whole = trainer(cosine(), &device());
    let wanted = train(&mut whole, 0..3);

    let (mut broken, mut losses) = (trainer(cosine(), &device()), Vec::new());
    let mut note = |trainer: &Trainer, loss: f32| {
        losses.push(loss);
        Ok(if trainer.steps() == 10 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    };
    assert!(
        broken
            .fit(&batches, feed, &mut note)
            .expect("runs")
            .is_break()
    );
    assert_eq!(broken.steps(), 10);
    assert!(
        broken
            .fit(&batches[10..], feed, &mut note)
            .expect("runs")
            .is_continue()
    );
    assert_eq!(losses, wanted);
    assert_eq!(
        broken.parameters().expect("reads"),
        whole.parameters().expect("reads")
    );

    // The step before an error is kept; an error of `feed` prevents its step.
    let error = broken
        .fit(&batches, feed, |_, _| Err(Error::cancelled("enough")))
        .expect_err("an error");
    assert_eq!(
        (error.kind(), broken.steps()),
        (tectum::ErrorKind::Cancelled, 25)
    );
    broken
        .fit(
            &batches,
            |trainer, _| trainer.set_input("y", &[]),
            |_, _| Ok(ControlFlow::Continue(())),
        )
        .expect_err("no such input");
    assert_eq!(broken.steps(), 25);
}

/// Gradients of 1 and 100 clipped to a norm of 1 move a weight as gradients of 1.
#[test]
fn gradients_are_clipped_by_their_norm() {
    let run = |clip_norm: Option<f32>, gradients: [f32; 3]| {
        let mut g = GraphBuilder::new();
        let (x, w) = (
            g.input("x", [1, 2]).expect("right"),
            g.parameter("w", [1, 2]).expect("right"),
        );
        let product = g.mul(w, x).expect("right");
        let loss = g.sum(product).expect("right");
        g.output("loss", loss).expect("right");
        let optimizer = AdamW {
            clip_norm,
            weight_decay: 0.0,
            ..AdamW::default()
        };
        let mut trainer = Trainer::new(&g.finish().expect("right"), loss, optimizer, &device())
            .expect("compiles");
        for gradient in gradients {
            // Of norm `gradient`.
            trainer
                .set_input("x", &[0.6 * gradient, 0.8 * gradient])
                .expect("fits");
            trainer.step().expect("runs");
        }
        trainer.parameter("w").expect("reads")
    };
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-7);
    let wanted = run(None, [0.5, 1.0, 1.0]);
    assert!(near(&run(Some(1.0), [0.5, 1.0, 100.0]), &wanted));
    assert!(!near(&run(None, [0.5, 1.0, 100.0]), &wanted));
}

#[test]
fn learning_rates_follow_their_schedule() {
    let at = |rate: LearningRate, steps: [u64; 4]| steps.map(|step| rate.at(step));
    assert_eq!(at(0.5.into(), [0, 1, 2, 3]), [0.5; 4]);
    assert_eq!(
        at(
            LearningRate::StepDecay {
                initial: 1.0,
                factor: 0.5,
                every: 10
            },
            [0, 9, 10, 25]
        ),
        [1.0, 1.0, 0.5, 0.25]
    );
    let cosine = LearningRate::Cosine {
        peak: 1.0,
        warm_up: 4,
        total: 12,
        floor: 0.0,
    };
    assert_eq!(at(cosine, [0, 3, 4, 8]), [0.25, 1.0, 1.0, 0.5]);
    assert_eq!(at(cosine, [12, 13, 1000, 1 << 40]), [0.0; 4]);
}

#[test]
fn parameters_are_drawn_by_their_rule() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 200]).expect("right");
    let weights = [
        ("a.weight", [200, 100]),
        ("b.weight", [200, 100]),
        ("b.bias", [1, 200]),
    ]
    .map(|(name, shape)| g.parameter(name, shape).expect("right"));
    let hidden = g.matmul(x, weights[0]).expect("right");
    let back = g.matmul(hidden, weights[1].transpose()).expect("right");
    let sum = g.add(back, weights[2]).expect("right");
    let loss = g.sum(sum).expect("right");
    g.output("loss", loss).expect("right");
    let mut trainer = Trainer::new(
        &g.finish().expect("right"),
        loss,
        AdamW::default(),
        &device(),
    )
    .expect("compiles");
    let rules = [
        ("*.weight", Init::KaimingNormal),
        (
            "*",
            Init::Uniform {
                low: 1.0,
                high: 3.0,
            },
        ),
    ];
    trainer.initialize(9, &rules).expect("matches");
    // The weights of a are read as [200, 100], those of b as the transpose.
    for (name, inputs) in [("a.weight", 200.0), ("b.weight", 100.0)] {
        let values = trainer.parameter(name).expect("reads");
        let square = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        assert!((square * inputs - 2.0).abs() < 0.1, "{name}: {square}");
    }
    let bias = trainer.parameter("b.bias").expect("reads");
    assert!(
        bias.iter().all(|value| (1.0..3.0).contains(value))
            && (bias.iter().sum::<f32>() / 200.0 - 2.0).abs() < 0.2
    );
    let first = trainer.parameters().expect("reads");
    assert_ne!(first[0].1, first[1].1);
    trainer.initialize(9, &rules).expect("matches");
    assert_eq!(trainer.parameters().expect("reads"), first);
    trainer
        .initialize(
            10,
            &[("a.*", Init::XavierUniform), ("b.b*s", Init::Constant(7.0))],
        )
        .expect("matches");
    let bound = (6.0f32 / 300.0).sqrt();
    assert!(
        trainer
            .parameter("a.weight")
            .expect("reads")
            .iter()
            .all(|value| value.abs() <= bound)
    );
    assert_eq!(
        (
            trainer.parameter("b.weight").expect("reads"),
            trainer.parameter("b.bias").expect("reads")
        ),
        (first[1].1.clone(), vec![7.0; 200])
    );
    assert_eq!(
        trainer
            .initialize(1, &[("c*", Init::Ones)])
            .expect_err("absent")
            .to_string(),
        "initialize: c* matches no parameter"
    );
}

#[test]
fn batches_hold_each_sample_once() {
    let batches = Batches::new(103, 10, 1).expect("fits");
    let order = |epoch| batches.epoch(epoch).flatten().collect::<Vec<usize>>();
    let mut sorted = order(0);
    sorted.sort_unstable();
    sorted.dedup();
    assert!(sorted.len() == 100 && sorted.iter().all(|sample| *sample < 103));
    assert_ne!(order(0), order(1));
    assert_ne!(
        order(0),
        Batches::new(103, 10, 2)
            .expect("fits")
            .epoch(0)
            .flatten()
            .collect::<Vec<usize>>()
    );
    assert!(Batches::new(9, 10, 1).is_err() && Batches::new(9, 0, 1).is_err());
}

#[test]
fn a_training_that_cannot_work_is_refused() {
    let (graph, loss) = network();
    let refused = |optimizer: AdamW| {
        Trainer::new(&graph, loss, optimizer, &device())
            .expect_err("refused")
            .to_string()
    };
    assert!(
        refused(AdamW {
            beta2: 1.0,
            ..AdamW::default()
        })
        .starts_with("trainer: AdamW {")
    );
    let learning_rate = LearningRate::Cosine {
        peak: 1.0,
        warm_up: 5,
        total: 5,
        floor: 0.0,
    };
    assert!(
        refused(AdamW {
            learning_rate,
            ..AdamW::default()
        })
        .contains("warm_up < total")
    );
    let y = graph.output("y").expect("there");
    let error = Trainer::new(&graph, y, AdamW::default(), &device())
        .expect_err("no scalar")
        .to_string();
    assert!(
        error.starts_with("trainer: gradients: the loss is [8, 1] f32, [1, 1] f32 is needed"),
        "{error}"
    );
}
