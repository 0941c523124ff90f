use tectum::{Activation, Device};

use super::error_bound::error_bounds;
use super::random_graph::{random_feeds, random_graph, seeds};
use crate::operation::Linear;
use crate::{CompiledGraph, Graph, Node, Operation, Pass, Tensor};

/// Greatest error as a share of its bound, elements compared, products fused with a bias,
/// activation or residual, and chains.
#[derive(Debug, Default)]
struct Seen {
    share: f64,
    compared: usize,
    fused: [usize; 3],
    chains: usize,
}

fn run(mut compiled: CompiledGraph, graph: &Graph, feeds: &[(Node, Tensor)]) -> CompiledGraph {
    let floats = |node: Node| -> Vec<f32> {
        let (_, tensor) = feeds
            .iter()
            .find(|(fed, _)| *fed == node)
            .expect("invariant: all are fed");
        tensor.data().iter().map(|&value| value as f32).collect()
    };
    for (name, node, _) in graph.inputs() {
        compiled.set_input(name, &floats(node)).expect("fits");
    }
    for (name, node, _) in graph.parameters() {
        compiled.set_parameter(name, &floats(node)).expect("fits");
        assert_eq!(
            compiled.parameter(name).expect("reads"),
            floats(node),
            "{name}: what was set is there"
        );
    }
    compiled.run().expect("runs");
    compiled
}

/// The graph with all fed nodes after everything else, in reverse order, and the handles of the fed
/// nodes.
fn fed_last(graph: &Graph) -> (Graph, Vec<(Node, Node)>) {
    let (mut late, last) = (graph.clone(), graph.next);
    let moved = |node: Node| {
        if graph.nodes[&node].operation.is_fed() {
            Node {
                number: 2 * last - node.number,
                ..node
            }
        } else {
            node
        }
    };
    late.nodes = graph
        .nodes
        .iter()
        .map(|(node, definition)| (moved(*node), definition.clone()))
        .collect();
    late.nodes
        .values_mut()
        .flat_map(|definition| definition.operation.operands_mut())
        .for_each(|operand| *operand = moved(*operand));
    late.outputs
        .iter_mut()
        .for_each(|(_, node)| *node = moved(*node));
    late.next = 2 * last + 1;
    (
        late,
        graph
            .nodes
            .keys()
            .filter(|node| moved(**node) != **node)
            .map(|node| (*node, moved(*node)))
            .collect(),
    )
}

/// Fed nodes may come after their readers: passes and texts contain such graphs.
#[test]
fn defect_16_what_is_fed_may_come_last() {
    for seed in seeds().take(100) {
        let graph = random_graph(seed);
        let (late, moved) = fed_last(&graph);
        let feeds = random_feeds(&graph, seed);
        let late_feeds: Vec<(Node, Tensor)> = feeds
            .iter()
            .map(|(node, tensor)| {
                (
                    moved
                        .iter()
                        .find(|(from, _)| from == node)
                        .expect("moved")
                        .1,
                    tensor.clone(),
                )
            })
            .collect();
        let (Ok(wanted), Ok(found)) = (
            graph.output("loss").and_then(|loss| graph.gradients(loss)),
            late.output("loss").and_then(|loss| late.gradients(loss)),
        ) else {
            panic!("seed {seed}: a gradient is missing")
        };
        for (wanted, found) in [
            (graph.clone(), late),
            (wanted.clone(), found.clone()),
            (wanted.optimize(), found.optimize()),
        ] {
            let found: Vec<(String, Tensor)> = found
                .outputs()
                .map(|(name, ..)| name.to_owned())
                .zip(found.evaluate(&late_feeds).expect("fed"))
                .collect();
            for ((name, ..), wanted) in wanted.outputs().zip(wanted.evaluate(&feeds).expect("fed"))
            {
                let (_, found) = found
                    .iter()
                    .find(|(other, _)| other == name)
                    .expect("an output");
                assert!(
                    found
                        .data()
                        .iter()
                        .zip(wanted.data())
                        .all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs())),
                    "seed {seed}: {name}"
                );
            }
        }
    }
}

/// The evaluator on the graph as built = on the optimized one (to float64 rounding) = every device,
/// fused and not (within the bound of each element).
fn check(seed: u64, graph: &Graph, device: &Device, seen: &mut Seen) {
    let feeds = random_feeds(graph, seed);
    let values = graph.evaluate_nodes(&feeds).expect("fed");
    let bounds = error_bounds(graph, &values);
    let optimized = graph.optimize();
    for definition in optimized.nodes.values() {
        seen.chains += usize::from(matches!(definition.operation, Operation::Chain(_)));
        if let Operation::Linear(Linear { tail, .. }) = definition.operation {
            let parts = [
                tail.bias.is_some(),
                tail.activation != Activation::None,
                tail.residual.is_some(),
            ];
            seen.fused
                .iter_mut()
                .zip(parts)
                .for_each(|(count, part)| *count += usize::from(part));
        }
    }
    let optimized_values = optimized.evaluate(&feeds).expect("fed");
    for pass in Pass::ALL {
        let without = graph
            .optimize_without(&[pass])
            .evaluate(&feeds)
            .expect("fed");
        for ((name, node, _), value) in graph.outputs().zip(&without) {
            for ((got, wanted), bound) in value
                .data()
                .iter()
                .zip(values[&node].data())
                .zip(&bounds[&node])
            {
                assert!(
                    (got - wanted).abs() <= *bound,
                    "seed {seed}: {name} without {pass}"
                );
            }
        }
    }
    for (form, compiled) in [
        ("unfused", graph.compile_unfused(device)),
        ("fused", graph.compile(device)),
    ] {
        let compiled = run(compiled.expect("compiles"), graph, &feeds);
        for ((name, node, _), passed) in graph.outputs().zip(&optimized_values) {
            let got = compiled.output(name).expect("ran");
            for (index, (&got, &wanted)) in got.iter().zip(values[&node].data()).enumerate() {
                let bound = bounds[&node][index];
                assert!(
                    (passed.data()[index] - wanted).abs() <= bound,
                    "seed {seed}: {name}[{index}] optimized"
                );
                let share = (f64::from(got) - wanted).abs() / bound;
                assert!(
                    share <= 1.0,
                    "seed {seed}, {form}, {device:?}: {name}[{index}] is {got}, not {wanted} ± {bound:e}\n{}\n{}",
                    graph.describe(),
                    optimized.describe()
                );
                seen.share = seen.share.max(share);
                seen.compared += 1;
            }
        }
    }
}

fn check_on(id: &str) {
    let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
        eprintln!("skipped: {id} is absent: random graphs");
        return;
    };
    let mut seen = Seen::default();
    for seed in seeds() {
        let graph = random_graph(seed);
        let gradients = graph
            .gradients(graph.output("loss").expect("there"))
            .expect("differentiates");
        check(seed, &gradients, &device, &mut seen);
    }
    let graphs = seeds().count();
    eprintln!("{id}: {graphs} graphs with gradients, fused and not: {seen:?}");
    assert!(
        seen.compared > 40 * graphs && seen.fused.iter().all(|&count| 40 * count > graphs),
        "{seen:?}"
    );
    assert!(2 * seen.chains > graphs, "{seen:?}");
}

#[test]
fn random_graphs_and_their_gradients_agree_on_the_cpu() {
    check_on("cpu");
}

#[test]
fn random_graphs_and_their_gradients_agree_on_vulkan() {
    check_on("vulkan:0");
}

#[test]
fn random_graphs_and_their_gradients_agree_on_cuda() {
    check_on("cuda:0");
}

/// A bound that allows anything would prove nothing: most are tight.
#[test]
fn the_bounds_are_tight() {
    let (mut tight, mut all) = (0, 0);
    for seed in seeds() {
        let graph = random_graph(seed);
        let graph = graph
            .gradients(graph.output("loss").expect("there"))
            .expect("differentiates");
        let values = graph
            .evaluate_nodes(&random_feeds(&graph, seed))
            .expect("fed");
        for (node, bounds) in error_bounds(&graph, &values) {
            let scale = values[&node]
                .data()
                .iter()
                .fold(0.0f64, |scale, value| scale.max(value.abs()));
            tight += bounds
                .iter()
                .filter(|bound| **bound <= 1e-4 * scale + 1e-30)
                .count();
            all += bounds.len();
        }
    }
    eprintln!("{tight} of {all} bounds are within 1e-4 of their tensor's magnitude");
    assert!(tight as f64 > 0.95 * all as f64, "{tight} of {all}");
}
