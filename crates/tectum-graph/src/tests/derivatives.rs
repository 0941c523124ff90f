use super::random_graph::{random_feeds, random_graph};
use crate::{Graph, GraphBuilder, Node, Tensor};

/// Half the difference between two evaluations.
const STEP: f64 = 1e-5;
/// Error of a central difference in float64: STEP² of a third derivative, and rounding over STEP, by the loss's scale.
const TOLERANCE: f64 = 1e-7;

fn value(graph: &Graph, feeds: &[(Node, Tensor)], output: &str) -> Tensor {
    let index = graph.outputs().position(|(name, ..)| name == output).expect("there");
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

/// Compares every element of every gradient with central differences; gives how many were compared and how many kinks
/// of relu were met.
fn check(graph: &Graph, loss: &str, prefix: &str, seed: u64) -> (usize, usize) {
    let gradients = graph.gradients(graph.output(loss).expect("there")).expect("differentiates");
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
            // A kink within the step shows as one-sided slopes that differ; the gradient is then one of them or between.
            let (left, right) = ((base - down) / STEP, (up - base) / STEP);
            let is_between = gradient >= left.min(right) - 1e-3 * scale && gradient <= left.max(right) + 1e-3 * scale;
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
    assert!(compared > 3_000 && kinks * 1_000 < compared, "{compared} compared, {kinks} at kinks");
}

/// Gradients are nodes like any other, so they can be differentiated: the sum of a gradient's squares.
#[test]
fn second_gradients_match_central_differences() {
    let mut compared = 0;
    for seed in 0..30 {
        let graph = random_graph(seed);
        let first = graph.gradients(graph.output("loss").expect("there")).expect("differentiates");
        let node = first.output("grad.p").expect("there");
        let mut g = GraphBuilder::from(first);
        let square = g.mul(node, node).expect("right");
        let sum = g.sum(square).expect("right");
        g.output("roughness", sum).expect("right");
        compared += check(&g.finish().expect("right"), "roughness", "grad.grad.", seed).0;
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn a_parameter_that_the_loss_ignores_has_a_gradient_of_zeros() {
    let mut g = GraphBuilder::new();
    let (used, unused) = (g.parameter("used", [1, 1]).expect("right"), g.parameter("unused", [2, 3]).expect("right"));
    let after = g.tanh(unused).expect("right");
    let loss = g.scale(used, 3.0).expect("right");
    g.output("loss", loss).expect("right");
    g.output("after", after).expect("right");
    let graph = g.finish().expect("right").gradients(loss).expect("right");
    let feeds = random_feeds(&graph, 1);
    assert_eq!(value(&graph, &feeds, "grad.unused").data(), [0.0; 6]);
    assert_eq!(value(&graph, &feeds, "grad.used").data(), [3.0]);
}
