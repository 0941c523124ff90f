//! Draws: which bits they are, that they repeat, and the distributions that they follow.

use rten_onnx::onnx::{AttributeProto, DataType, GraphProto, NodeProto, TensorProto};
use tectum::Device;
use tectum::kernel::random::{normal, normal_table, philox, uniform};
use tectum_onnx::{CompiledNetwork, Model, Network};

use super::small_models::{
    float, floats, graph, int, int64s, ints, model, node, numbers, outputs, port,
};

fn network(nodes: Vec<NodeProto>, initializer: Vec<TensorProto>, names: &str) -> Network {
    let graph = GraphProto {
        node: nodes,
        initializer,
        input: vec![port("x", DataType::FLOAT, &[2, 3])],
        output: outputs(names),
        ..GraphProto::default()
    };
    let model = Model::from_bytes(&model(graph).write_buf().expect("bytes")).expect("a model");
    model.load(&[]).expect("a network")
}

fn on_cpu(network: &Network) -> CompiledNetwork {
    let device = Device::open("cpu").expect("a device");
    let mut compiled = network.compile(&device).expect("compiled");
    compiled.set_floats("x", &[0.0; 6]).expect("fed");
    compiled
}

/// The numbers of the next run.
fn drawn(network: &mut CompiledNetwork, output: &str) -> Vec<f64> {
    network.run().expect("a run");
    network.output(output).expect("an output").to_f64()
}

fn of_shape(dims: &[i64], more: Vec<AttributeProto>) -> Vec<AttributeProto> {
    [vec![ints("shape", dims)], more].concat()
}

#[test]
fn draws_have_the_bits_of_philox_by_seed_node_and_run() {
    let nodes = vec![
        node("RandomUniform", "", "u", of_shape(&[5], vec![])),
        node("RandomNormalLike", "x", "n", vec![]),
        node(
            "RandomNormal",
            "",
            "own",
            of_shape(&[5], vec![float("seed", 2.0)]),
        ),
    ];
    let network = network(nodes, vec![], "u n own");
    assert!(network.is_random());
    let bits = |key: [u32; 2], place: u32, run: u32, at: usize| {
        let stream = place.wrapping_mul(0x9e37_79b9).wrapping_add(1);
        philox([at as u32 / 4, stream, run, 0], key)[at % 4]
    };
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: draws of a network");
            continue;
        };
        let mut compiled = network.compile(&device).expect("compiled");
        compiled.set_floats("x", &[0.0; 6]).expect("fed");
        // The last one counts up by itself.
        for (seed, run, is_set) in [
            (0, 0, false),
            (1 << 40 | 7, 9, true),
            (1 << 40 | 7, 10, false),
        ] {
            if is_set {
                compiled.set_draws(seed, run);
            }
            compiled.run().expect("a run");
            let key = [seed as u32, (seed >> 32) as u32];
            for (at, found) in compiled.floats("u").expect("drawn").iter().enumerate() {
                assert_eq!(*found, uniform(bits(key, 0, run, at)), "{id}, run {run}");
            }
            for (at, found) in compiled.floats("n").expect("drawn").iter().enumerate() {
                let expected = normal(bits(key, 1, run, at), normal_table());
                assert_eq!(*found, expected, "{id}, run {run}");
            }
            let own = [2.0f32.to_bits(), u32::MAX];
            for (at, found) in compiled.floats("own").expect("drawn").iter().enumerate() {
                let expected = normal(bits(own, 2, run, at), normal_table());
                assert_eq!(*found, expected, "{id}, run {run}, the node's seed");
            }
        }
    }
}

#[test]
fn draws_of_known_tensors_and_of_repetitions_differ() {
    let body = GraphProto {
        node: vec![
            node("RandomUniformLike", "v", "v1", vec![]),
            node("Identity", "c", "next", vec![]),
            node("Identity", "v1", "kept", vec![]),
        ],
        input: vec![
            port("i", DataType::INT64, &[]),
            port("c", DataType::BOOL, &[]),
            port("v", DataType::FLOAT, &[2, 3]),
        ],
        output: outputs("next v1 kept"),
        ..GraphProto::default()
    };
    let nodes = vec![
        node("RandomNormalLike", "known", "y", vec![]),
        node("Loop", "n _ known", "last all", vec![graph("body", body)]),
    ];
    let initializer = vec![floats("known", &[2, 3]), int64s("n", &[], &[2])];
    let mut compiled = on_cpu(&network(nodes, initializer, "y all"));
    let first = drawn(&mut compiled, "y");
    let all = compiled.output("all").expect("an output").to_f64();
    assert!(
        all[..6].iter().zip(&all[6..]).all(|(a, b)| a != b),
        "{all:?}"
    );
    assert_ne!(drawn(&mut compiled, "y"), first);
}

#[test]
fn an_output_that_draws_nothing_leaves_the_draws_out() {
    let nodes = vec![
        node("Neg", "x", "mean", vec![]),
        node("RandomNormalLike", "mean", "e", vec![]),
        node("Add", "mean e", "sample", vec![]),
    ];
    let graph = GraphProto {
        node: nodes,
        input: vec![port("x", DataType::FLOAT, &[2, 3])],
        output: outputs("mean sample"),
        ..GraphProto::default()
    };
    let model = Model::from_bytes(&model(graph).write_buf().expect("bytes")).expect("a model");
    let of = |names: &[&str]| model.load_outputs(&[], names).expect("a network");
    assert!(!of(&["mean"]).is_random() && of(&["mean"]).assumptions().is_empty());
    let sampled = of(&["mean", "sample"]);
    assert!(sampled.is_random());
    assert_eq!(
        sampled.assumptions()[0].to_string(),
        "the seed of random numbers is 0"
    );
    assert_eq!(
        sampled.inputs().len(),
        1,
        "the key of draws is no input of the file"
    );
}

/// Mean and variance over all draws, next to the exact ones; the tolerances are four standard
/// errors.
fn check_moments(operator: &str, attributes: Vec<AttributeProto>, mean: f64, variance: f64) {
    const RUNS: usize = 500;
    let nodes = vec![node(operator, "", "y", of_shape(&[40], attributes))];
    let mut compiled = on_cpu(&network(nodes, vec![], "y"));
    let all: Vec<f64> = (0..RUNS).flat_map(|_| drawn(&mut compiled, "y")).collect();
    let count = all.len() as f64;
    let found = all.iter().sum::<f64>() / count;
    let spread = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let (error, spread_error) = (
        4.0 * (variance / count).sqrt(),
        4.0 * variance * (2.0 / count).sqrt(),
    );
    assert!(
        (found - mean).abs() < error,
        "{operator}: mean {found}, {mean} expected"
    );
    assert!(
        (spread - variance).abs() < spread_error,
        "{operator}: variance {spread}, {variance} expected"
    );
}

#[test]
fn draws_follow_their_distributions() {
    check_moments(
        "RandomNormal",
        vec![float("mean", 3.0), float("scale", 0.5)],
        3.0,
        0.25,
    );
    check_moments(
        "RandomUniform",
        vec![float("low", -2.0), float("high", 1.0)],
        -0.5,
        9.0 / 12.0,
    );
}

/// How often each value occurs, next to its probability: Pearson's chi-square per degree of
/// freedom.
fn chi_square(all: &[f64], probabilities: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (value, probability) in probabilities.iter().enumerate() {
        let found = all.iter().filter(|drawn| **drawn == value as f64).count() as f64;
        let expected = probability * all.len() as f64;
        if *probability == 0.0 {
            assert_eq!(found, 0.0, "{value} is impossible");
        } else {
            sum += (found - expected).powi(2) / expected;
        }
    }
    sum
}

#[test]
fn classes_are_drawn_by_their_probabilities() {
    let probabilities = [[0.1f64, 0.0, 0.5, 0.4], [0.25, 0.25, 0.25, 0.25]];
    // Logarithms need not be of a sum of 1.
    let logits: Vec<f32> = probabilities
        .iter()
        .flatten()
        .map(|p| p.ln() as f32 + 3.0)
        .collect();
    let nodes = vec![node(
        "Multinomial",
        "p",
        "y",
        vec![int("sample_size", 20), int("dtype", 7)],
    )];
    let mut compiled = on_cpu(&network(nodes, vec![numbers("p", &[2, 4], &logits)], "y"));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let all = drawn(&mut compiled, "y");
        first.extend_from_slice(&all[..20]);
        second.extend_from_slice(&all[20..]);
    }
    // 0.1 % of chi-squares of 2 and 3 degrees of freedom exceed these.
    let found = [&first, &second].map(Vec::as_slice);
    assert!(chi_square(found[0], &probabilities[0]) < 13.8);
    assert!(chi_square(found[1], &probabilities[1]) < 16.3);
}

#[test]
fn truth_values_are_drawn_by_their_probabilities() {
    let probabilities = [0.0f32, 0.3, 0.5, 1.0];
    let nodes = vec![node("Bernoulli", "p", "y", vec![int("dtype", 9)])];
    let mut compiled = on_cpu(&network(
        nodes,
        vec![numbers("p", &[4], &probabilities)],
        "y",
    ));
    let mut all = vec![Vec::new(); 4];
    for _ in 0..4000 {
        for (all, value) in all.iter_mut().zip(drawn(&mut compiled, "y")) {
            all.push(value);
        }
    }
    for (all, p) in all.iter().zip(probabilities) {
        // 0.1 % of chi-squares of 1 degree of freedom exceed this.
        assert!(
            chi_square(all, &[1.0 - f64::from(p), f64::from(p)]) < 10.9,
            "{p}"
        );
    }
}
