use tectum::Device;

use super::networks::trainable_network;
use super::random_graph::{Random, random_feeds, random_graph, seeds, small_feeds};
use crate::{Graph, GraphBuilder, Heads, Node, Tensor};

/// Half the difference between two evaluations.
const STEP: f64 = 1e-5;
/// Error of a central difference in float64: STEP² of a third derivative, and rounding over STEP,
/// by the loss's scale.
const TOLERANCE: f64 = 1e-7;

fn value(graph: &Graph, feeds: &[(Node, Tensor)], output: &str) -> Tensor {
    let index = graph
        .outputs()
        .position(|(name, ..)| name == output)
        .expect("there");
    graph.evaluate(feeds).expect("fed").swap_remove(index)
}

fn moved(feeds: &[(Node, Tensor)], node: Node, index: usize, by: f64) -> Vec<(Node, Tensor)> {
    let mut feeds = feeds.to_vec();
    for (_, tensor) in feeds.iter_mut().filter(|(fed, _)| *fed == node) {
        let mut data = tensor.data().to_vec();
        data[index] += by;
        *tensor = Tensor::new(tensor.shape(), data).expect("as long as before");
    }
    feeds
}

/// Compares every element of every gradient with central differences; gives how many were compared
/// and how many kinks of relu were met.
pub fn check(graph: &Graph, loss: &str, prefix: &str, seed: u64) -> (usize, usize) {
    let gradients = graph
        .gradients(graph.output(loss).expect("there"))
        .expect("differentiates");
    let feeds = random_feeds(graph, seed);
    let base = value(graph, &feeds, loss).data()[0];
    let (mut compared, mut kinks) = (0, 0);
    for (name, node, _) in graph.parameters() {
        let gradient = value(&gradients, &feeds, &format!("{prefix}{name}"));
        for (index, &gradient) in gradient.data().iter().enumerate() {
            let at = |by: f64| value(graph, &moved(&feeds, node, index, by), loss).data()[0];
            let (up, down) = (at(STEP), at(-STEP));
            let difference = (up - down) / (2.0 * STEP);
            let scale = base.abs() + gradient.abs() + 1.0;
            compared += 1;
            if (difference - gradient).abs() <= TOLERANCE * scale {
                continue;
            }
            // A kink within the step shows as one-sided slopes that differ; the gradient is then
            // one of them or between.
            let (left, right) = ((base - down) / STEP, (up - base) / STEP);
            let is_between = gradient >= left.min(right) - 1e-3 * scale
                && gradient <= left.max(right) + 1e-3 * scale;
            assert!(
                (left - right).abs() > 1e-2 * scale && is_between,
                "seed {seed}: d{loss}/d{name}[{index}] is {gradient}, not {difference}\n{}",
                graph.describe()
            );
            kinks += 1;
        }
    }
    (compared, kinks)
}

#[test]
fn gradients_of_random_graphs_match_central_differences() {
    let (mut compared, mut kinks) = (0, 0);
    for seed in 0..100 {
        let (more, more_kinks) = check(&random_graph(seed), "loss", "grad.", seed);
        (compared, kinks) = (compared + more, kinks + more_kinks);
    }
    eprintln!("{compared} derivatives compared, {kinks} at kinks");
    assert!(
        compared > 3_000 && kinks * 1_000 < compared,
        "{compared} compared, {kinks} at kinks"
    );
}

/// Gradients are nodes like any other, so they can be differentiated: the sum of a gradient's
/// squares.
#[test]
fn second_gradients_match_central_differences() {
    let mut compared = 0;
    for seed in 0..30 {
        let graph = random_graph(seed);
        let first = graph
            .gradients(graph.output("loss").expect("there"))
            .expect("differentiates");
        let node = first.output("grad.p").expect("there");
        let mut g = GraphBuilder::from(first);
        let square = g.mul(node, node).expect("right");
        let sum = g.sum(square).expect("right");
        g.output("roughness", sum).expect("right");
        compared += check(&g.finish().expect("right"), "roughness", "grad.grad.", seed).0;
    }
    assert!(compared > 500, "{compared}");
}

/// Step of a difference of fourth order, and its error: STEP⁴ of a fifth derivative, rounding over
/// STEP, factors rounded to f32.
const FINE_STEP: f64 = 1e-4;
const FINE_TOLERANCE: f64 = 2e-7;

/// Compares a few elements of every gradient with central differences of fourth order; gives how
/// many and the greatest error by scale.
fn check_finely(graph: &Graph, loss: &str, prefix: &str, seed: u64) -> (usize, f64) {
    let gradients = graph
        .gradients(graph.output(loss).expect("there"))
        .expect("differentiates");
    let feeds = small_feeds(graph, seed);
    let mut random = Random::new(seed);
    let base = value(graph, &feeds, loss).data()[0];
    let values = gradients.evaluate(&feeds).expect("fed");
    let (mut compared, mut worst) = (0, 0.0f64);
    for (name, node, shape) in graph.parameters() {
        let output = gradients
            .outputs()
            .position(|(other, ..)| other == format!("{prefix}{name}"))
            .expect("there");
        for _ in 0..2 {
            let index = random.below(shape.len());
            let gradient = values[output].data()[index];
            let slope = |by: f64| {
                let [up, down] = [by, -by]
                    .map(|by| value(graph, &moved(&feeds, node, index, by), loss).data()[0]);
                (up - down) / (2.0 * by)
            };
            let difference = (4.0 * slope(FINE_STEP) - slope(2.0 * FINE_STEP)) / 3.0;
            let error = (difference - gradient).abs() / (base.abs() + gradient.abs() + 1.0);
            assert!(
                error <= FINE_TOLERANCE,
                "seed {seed}: d{loss}/d{name}[{index}] is {gradient}, not {difference}\n{}",
                graph.describe()
            );
            (compared, worst) = (compared + 1, worst.max(error));
        }
    }
    (compared, worst)
}

#[test]
fn gradients_of_random_networks_match_central_differences() {
    let checked: Vec<_> = seeds()
        .take(60)
        .map(|seed| check_finely(&trainable_network(seed), "loss", "grad.", seed))
        .collect();
    let (compared, worst) = (
        checked.iter().map(|(compared, _)| compared).sum::<usize>(),
        checked
            .iter()
            .fold(0.0f64, |worst, (_, error)| worst.max(*error)),
    );
    eprintln!("{compared} derivatives compared, greatest error {worst:e}");
    assert!(compared > 1_000, "{compared} compared");
}

/// The sum of squares of a gradient.
#[test]
fn second_gradients_of_random_networks_match_central_differences() {
    let (mut compared, mut worst) = (0, 0.0f64);
    for seed in 0..10 {
        let graph = trainable_network(seed);
        let first = graph
            .gradients(graph.output("loss").expect("there"))
            .expect("differentiates");
        let node = first.output("grad.table").expect("there");
        let mut g = GraphBuilder::from(first);
        let square = g.mul(node, node).expect("right");
        let sum = g.sum(square).expect("right");
        g.output("roughness", sum).expect("right");
        let (count, error) =
            check_finely(&g.finish().expect("right"), "roughness", "grad.grad.", seed);
        (compared, worst) = (compared + count, worst.max(error));
    }
    eprintln!("{compared} second derivatives compared, greatest error {worst:e}");
    assert!(compared > 100, "{compared} compared");
}

/// Logits that no exponential represents, and classes that are impossible or out of range.
#[test]
fn cross_entropy_is_stable() {
    let mut g = GraphBuilder::new();
    let (logits, classes) = (
        g.parameter("logits", [4, 3]).expect("right"),
        g.indices("classes", [4]).expect("right"),
    );
    let loss = g.cross_entropy(logits, classes).expect("right");
    g.output("loss", loss).expect("right");
    let graph = g
        .finish()
        .expect("right")
        .gradients(loss)
        .expect("differentiates");
    let rows: [f32; 12] = [
        1000.0,
        0.0,
        -1000.0,
        0.0,
        0.0,
        f32::NEG_INFINITY,
        -1e4,
        -1e4,
        -1e4,
        0.0,
        0.0,
        0.0,
    ];
    // log(1) + 2000, log 2, log 3, and log 3 less the 0 of a class out of range.
    let (two, three) = (2f32.ln(), 3f32.ln());
    let wanted_loss = (2000.0 + two + three + three) / 4.0;
    let third = 1.0 / 12.0;
    let wanted = [
        0.25,
        0.0,
        -0.25,
        -0.125,
        0.125,
        0.0,
        third - 0.25,
        third,
        third,
        third,
        third,
        third,
    ];
    let feeds = [
        (logits, Tensor::new([4, 3], rows.map(f64::from).to_vec())),
        (classes, Tensor::new([4], vec![2.0, 0.0, 0.0, 7.0])),
    ];
    let feeds = feeds.map(|(node, tensor)| (node, tensor.expect("filled")));
    let close = |a: f64, b: f32| (a - f64::from(b)).abs() <= 1e-6 * (1.0 + f64::from(b).abs());
    assert!(close(value(&graph, &feeds, "loss").data()[0], wanted_loss));
    assert!(
        value(&graph, &feeds, "grad.logits")
            .data()
            .iter()
            .zip(wanted)
            .all(|(a, b)| close(*a, b))
    );
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            continue;
        };
        let mut run = graph.compile(&device).expect("compiles");
        run.set_parameter("logits", &rows).expect("fits");
        run.set_indices("classes", &[2, 0, 0, 7]).expect("fits");
        run.run().expect("runs");
        assert!(
            close(f64::from(run.output("loss").expect("ran")[0]), wanted_loss),
            "{id}"
        );
        let gradient = run.output("grad.logits").expect("ran");
        assert!(
            gradient
                .iter()
                .zip(wanted)
                .all(|(a, b)| close(f64::from(*a), b)),
            "{id}: {gradient:?}"
        );
    }
}

/// A key hidden by a mask of −∞ has no gradient, and makes no NaN of the others.
#[test]
fn a_hidden_key_has_no_gradient() {
    let mut g = GraphBuilder::new();
    let operands = ["q", "k", "v"].map(|name| g.parameter(name, [1, 3, 4]).expect("right"));
    let mask = g
        .constant(&[0.0, f32::NEG_INFINITY, 0.0], [1, 3])
        .expect("right");
    let y = g
        .attention(
            operands,
            Some(mask),
            Heads {
                causal: true,
                ..Heads::new(2, 2)
            },
        )
        .expect("right");
    let square = g.mul(y, y).expect("right");
    let loss = g.sum(square).expect("right");
    g.output("loss", loss).expect("right");
    let graph = g.finish().expect("right");
    assert_eq!(check(&graph, "loss", "grad.", 1), (36, 0));
    let gradients = graph.gradients(loss).expect("differentiates");
    let feeds = random_feeds(&graph, 1);
    let mut run = gradients
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    for (name, node, _) in graph.parameters() {
        let tensor = &feeds.iter().find(|(fed, _)| *fed == node).expect("fed").1;
        run.set_parameter(
            name,
            &tensor
                .data()
                .iter()
                .map(|value| *value as f32)
                .collect::<Vec<_>>(),
        )
        .expect("fits");
    }
    run.run().expect("runs");
    for name in ["grad.q", "grad.k", "grad.v"] {
        let wanted = value(&gradients, &feeds, name);
        let got = run.output(name).expect("ran");
        assert!(
            got.iter()
                .zip(wanted.data())
                .all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6),
            "{name}: {got:?}"
        );
        assert!(name == "grad.q" || got[4..8] == [0.0; 4], "{name}: {got:?}");
    }
}

#[test]
fn a_parameter_that_the_loss_ignores_has_a_gradient_of_zeros() {
    let mut g = GraphBuilder::new();
    let (used, unused) = (
        g.parameter("used", [1, 1]).expect("right"),
        g.parameter("unused", [2, 3]).expect("right"),
    );
    let after = g.tanh(unused).expect("right");
    let loss = g.scale(used, 3.0).expect("right");
    g.output("loss", loss).expect("right");
    g.output("after", after).expect("right");
    let graph = g.finish().expect("right").gradients(loss).expect("right");
    let feeds = random_feeds(&graph, 1);
    assert_eq!(value(&graph, &feeds, "grad.unused").data(), [0.0; 6]);
    assert_eq!(value(&graph, &feeds, "grad.used").data(), [3.0]);
}
