//! Scatter, running sums, the greatest elements, bits and random numbers: text, devices and gradients.

use tectum::{DType, Device, ScatterUpdate};

use super::derivatives::check;
use crate::{Comparison, Distribution, Graph, GraphBuilder, Node, Tensor};

/// Every operation on x [3, 4], once.
fn all() -> Graph {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [3, 4]).expect("right");
    let updates = g.input("updates", [5, 4]).expect("right");
    let whole = g.convert(x, DType::I32).expect("right");
    let whole_updates = g.convert(updates, DType::I32).expect("right");
    // The last is negative: it is out of range, and so is 3.
    let rows = g.integer_constant(&[2, 0, 2, 3, -1], [5]).expect("right");
    for how in [
        ScatterUpdate::Assign,
        ScatterUpdate::Add,
        ScatterUpdate::Mul,
        ScatterUpdate::Max,
        ScatterUpdate::Min,
    ] {
        let y = g.scatter(how, x, rows, updates).expect("right");
        g.output(&format!("floats {how:?}"), y).expect("right");
        let y = g.scatter(how, whole, rows, whole_updates).expect("right");
        g.output(&format!("integers {how:?}"), y).expect("right");
    }
    for (exclusive, reverse) in [(false, false), (true, false), (false, true), (true, true)] {
        for (name, x) in [("floats", x), ("integers", whole)] {
            let y = g.cumsum(x, exclusive, reverse).expect("right");
            g.output(&format!("{name} {exclusive} {reverse}"), y)
                .expect("right");
        }
    }
    let best = g.top_k(x, 3).expect("right");
    g.output("best", best).expect("right");
    let bits = g.bitcast(x, DType::I32).expect("right");
    let one = g.integer_constant(&[i32::MIN], [1, 1]).expect("right");
    let turned = g
        .integer(crate::IntegerOp::Xor, bits, Some(one))
        .expect("right");
    let negative = g.bitcast(turned, DType::F32).expect("right");
    g.output("negative", negative).expect("right");
    let key = g
        .integer_constant(&[-1, 7, 3, i32::MIN], [4])
        .expect("right");
    for distribution in [Distribution::Uniform, Distribution::Normal] {
        let y = g.random(distribution, key, [3, 5]).expect("right");
        g.output(&format!("{distribution:?}"), y).expect("right");
    }
    g.finish().expect("right")
}

/// Halves and whole numbers, of which some are equal: exact in f32.
fn feeds(graph: &Graph) -> Vec<(Node, Tensor)> {
    let value = |place: usize| ((place * 7 + 3) % 5) as f64 * 1.5 - 3.0;
    graph
        .inputs()
        .map(|(_, node, shape)| {
            (
                node,
                Tensor::new(shape, (0..shape.len()).map(value).collect()).expect("filled"),
            )
        })
        .collect()
}

#[test]
fn text_is_read_back() {
    let graph = all();
    let text = graph.describe();
    // A constant of more than four values cannot be read.
    let short = text
        .replace("2, 0, 2, 3, …", "2, 0, 2, 3")
        .replace(
            "integer_constant(2, 0, 2, 3) [5]",
            "integer_constant(2, 0, 2, 3) [4]",
        )
        .replace("[5, 4]", "[4, 4]");
    assert_eq!(Graph::parse(&short).expect("a graph").describe(), short);
}

#[test]
fn devices_agree_with_the_evaluator() {
    let graph = all();
    let feeds = feeds(&graph);
    let wanted = graph.evaluate(&feeds).expect("fed");
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!(
                "skipped: {id} is absent: scatter, running sums, the greatest elements and bits"
            );
            continue;
        };
        for compiled in [graph.compile(&device), graph.compile_unfused(&device)] {
            let mut compiled = compiled.expect("compiles");
            for ((name, ..), (_, tensor)) in graph.inputs().zip(&feeds) {
                compiled
                    .set_input(
                        name,
                        &tensor
                            .data()
                            .iter()
                            .map(|value| *value as f32)
                            .collect::<Vec<f32>>(),
                    )
                    .expect("fits");
            }
            compiled.run().expect("runs");
            for ((name, node, _), wanted) in graph.outputs().zip(&wanted) {
                let got: Vec<f64> = match graph.dtype(node).expect("there") {
                    DType::I32 => compiled
                        .output_integers(name)
                        .expect("ran")
                        .iter()
                        .copied()
                        .map(f64::from)
                        .collect(),
                    _ => compiled
                        .output(name)
                        .expect("ran")
                        .iter()
                        .copied()
                        .map(f64::from)
                        .collect(),
                };
                assert_eq!(got, wanted.data(), "{id}: {name}");
            }
        }
    }
}

#[test]
fn values_are_those_of_a_hand_calculation() {
    let graph = Graph::parse("%0 = input x [1, 4]\n%1 = cumsum(%0, exclusive, reverse) [1, 4]\n%2 = top_k(%0) [1, 2]\noutput sums %1\noutput best %2\n")
        .expect("a graph");
    let x = graph.inputs().next().expect("there").1;
    let values = graph
        .evaluate(&[(
            x,
            Tensor::new([1, 4], vec![3.0, 1.0, 3.0, 2.0]).expect("filled"),
        )])
        .expect("fed");
    assert_eq!(values[0].data(), [6.0, 5.0, 2.0, 0.0]);
    assert_eq!(values[1].data(), [0.0, 2.0], "ties by the lower column");
}

#[test]
fn gradients_match_central_differences() {
    let mut g = GraphBuilder::new();
    let (table, updates) = (
        g.parameter("table", [4, 3]).expect("right"),
        g.parameter("updates", [2, 3]).expect("right"),
    );
    let rows = g.integer_constant(&[3, 1], [2]).expect("right");
    let mut sums = Vec::new();
    for how in [ScatterUpdate::Assign, ScatterUpdate::Add] {
        let y = g.scatter(how, table, rows, updates).expect("right");
        let running = g
            .cumsum(y, how == ScatterUpdate::Add, how == ScatterUpdate::Assign)
            .expect("right");
        let squares = g.mul(running, running).expect("right");
        sums.push(g.sum(squares).expect("right"));
    }
    let loss = g.add(sums[0], sums[1]).expect("right");
    g.output("loss", loss).expect("right");
    let (compared, _) = check(&g.finish().expect("right"), "loss", "grad.", 3);
    assert_eq!(compared, 18);
}

/// Their text shows only the first values.
#[test]
fn long_integer_constants_that_differ_are_not_merged() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [6, 1]).expect("right");
    for (name, last) in [("first", 4), ("second", 5)] {
        let rows = g.integer_constant(&[0, 1, 2, 3, last], [5]).expect("right");
        let y = g.gather(x, rows).expect("right");
        g.output(name, y).expect("right");
    }
    let graph = g.finish().expect("right");
    let feeds = feeds(&graph);
    let (plain, optimized) = (
        graph.evaluate(&feeds).expect("fed"),
        graph.optimize().evaluate(&feeds).expect("fed"),
    );
    assert_eq!(plain, optimized);
    assert_ne!(plain[0], plain[1]);
}

/// A comparison of constants is of integers: it must not become a constant of floats.
#[test]
fn integers_of_constants_stay_integers() {
    let mut g = GraphBuilder::new();
    let (one, two) = (
        g.constant(&[1.0], [1, 1]).expect("right"),
        g.constant(&[2.0], [1, 1]).expect("right"),
    );
    let x = g.input("x", [1, 2]).expect("right");
    let is_less = g.compare(Comparison::Less, one, two).expect("right");
    let y = g.select(is_less, x, one).expect("right");
    g.output("y", y).expect("right");
    let mut run = g
        .finish()
        .expect("right")
        .compile(&Device::open("cpu").expect("there"))
        .expect("the types fit");
    run.set_input("x", &[3.0, -4.0]).expect("fits");
    run.run().expect("runs");
    assert_eq!(run.output("y").expect("there"), [3.0, -4.0]);
}

/// The gradient of a repetition sums to a value with more leading ones than the result has
/// dimensions.
#[test]
fn a_repetition_to_fewer_dimensions_has_a_gradient() {
    let mut g = GraphBuilder::new();
    let w = g.parameter("w", [1, 1, 3, 1]).expect("right");
    let repeated = g.broadcast(w, [3, 4]).expect("it repeats");
    let loss = g.sum(repeated).expect("right");
    g.output("loss", loss).expect("right");
    let graph = g.finish().expect("right").gradients(loss).expect("smooth");
    let feed = Tensor::new([1, 1, 3, 1], vec![1.0, 2.0, 3.0]).expect("fits");
    let values = graph.evaluate(&[(w, feed)]).expect("fed");
    assert_eq!(
        (values[0].data(), values[1].data()),
        (&[24.0][..], &[4.0; 3][..])
    );
    let truth =
        Graph::parse("%0 = input x [1, 1]\n%1 = is_nan(%0) [1, 1]\noutput y %1").expect("valid");
    let loss = truth.output("y").expect("there");
    assert!(
        truth
            .gradients(loss)
            .expect_err("no float")
            .to_string()
            .contains("[1, 1] i32, [1, 1] f32 is needed")
    );
}
