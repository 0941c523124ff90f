//! Defects of the system that graphs replace, each with a name; those of weights, caches and pools
//! are tested with those modules (`docs/graphs.md` lists all).

use tectum::{Activation, Device};

use crate::{Graph, GraphBuilder, Node, Tensor};

/// Compares a graph's results on each device, fused and not, with the evaluator; its inputs are
/// filled with sines. Returns the evaluator's outputs.
fn outputs(graph: &Graph) -> Vec<Vec<f64>> {
    let sines = |len: usize, node: Node| {
        (0..len)
            .map(|index| f64::from((index as f32 * 0.7 + node.number as f32).sin()))
            .collect::<Vec<f64>>()
    };
    let feeds: Vec<(Node, Tensor)> = graph
        .inputs()
        .map(|(_, node, shape)| {
            (
                node,
                Tensor::new(shape, sines(shape.len(), node)).expect("filled"),
            )
        })
        .collect();
    let wanted: Vec<Vec<f64>> = graph
        .evaluate(&feeds)
        .expect("fed")
        .into_iter()
        .map(|tensor| tensor.data)
        .collect();
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a defect of the predecessor");
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
            for ((name, ..), wanted) in graph.outputs().zip(&wanted) {
                let got = compiled.output(name).expect("ran");
                assert_eq!(got.len(), wanted.len(), "{id}: {name}");
                for (got, wanted) in got.iter().zip(wanted) {
                    assert!(
                        (f64::from(*got) - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
                        "{id}: {name}: {got}, not {wanted}"
                    );
                }
            }
        }
    }
    wanted
}

/// x [4, 3], w [3, 2], row [1, 2] and matrix [4, 2], with the operations built over them.
fn build(f: impl FnOnce(&mut GraphBuilder, [Node; 4])) -> Graph {
    let mut g = GraphBuilder::new();
    let nodes = [
        ("x", [4, 3]),
        ("w", [3, 2]),
        ("row", [1, 2]),
        ("matrix", [4, 2]),
    ]
    .map(|(name, shape)| g.input(name, shape).expect("right"));
    f(&mut g, nodes);
    g.finish().expect("right")
}

/// Its optimised graphs lost outputs.
#[test]
fn an_optimised_graph_keeps_every_output() {
    let graph = build(|g, [x, w, row, _]| {
        let product = g.matmul(x, w).expect("right");
        let sum = g.add(product, row).expect("right");
        let bent = g.tanh(sum).expect("right");
        [("product", product), ("sum", sum), ("bent", bent)]
            .into_iter()
            .for_each(|(name, node)| g.output(name, node).expect("right"));
    });
    let names = |graph: &Graph| {
        graph
            .outputs()
            .map(|(name, node, shape)| (name.to_owned(), node, shape))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&graph.optimize()), names(&graph));
    assert_eq!(outputs(&graph).len(), 3);
}

/// Its fusion accepted a product as first operand only, and dropped the node that made the other.
#[test]
fn a_product_is_fused_as_either_operand_and_what_makes_the_other_stays() {
    for swapped in [false, true] {
        let graph = build(|g, [x, w, _, matrix]| {
            let residual = g.relu(matrix).expect("right");
            let product = g.matmul(x, w).expect("right");
            let (a, b) = if swapped {
                (residual, product)
            } else {
                (product, residual)
            };
            let y = g.add(a, b).expect("right");
            g.output("y", y).expect("right");
        });
        assert!(
            graph
                .optimize()
                .describe()
                .contains("%6 = linear(%0, %1, residual %4) [4, 2]"),
            "{}",
            graph.optimize().describe()
        );
        outputs(&graph);
    }
}

/// Its product with a sum ran the kernel that ends with a GELU.
#[test]
fn a_product_with_a_sum_has_the_activation_that_it_was_given_or_none() {
    let made = [Activation::None, Activation::Gelu, Activation::GeluErf].map(|activation| {
        let graph = build(|g, [x, w, row, _]| {
            let product = g
                .matmul(x, w)
                .and_then(|product| g.add(product, row))
                .expect("right");
            let y = g.activate(product, activation).expect("right");
            g.output("y", y).expect("right");
        });
        outputs(&graph).swap_remove(0)
    });
    assert!(
        made[0]
            .iter()
            .zip(&made[1])
            .all(|(plain, bent)| (plain - bent).abs() > 1e-3)
    );
    for (plain, bent) in made[0].iter().zip(&made[1]) {
        let tanh = (0.797_884_560_802_865_4 * (plain + 0.044_715 * plain.powi(3))).tanh();
        assert!(
            (bent - 0.5 * plain * (1.0 + tanh)).abs() < 1e-9,
            "the pair of constants that is right"
        );
    }
}

/// Its norms and softmax ran over the whole tensor.
#[test]
fn norms_and_softmax_go_over_rows() {
    let graph = build(|g, [_, _, row, matrix]| {
        let wide = g.concat(&[matrix, row], 0).expect("right");
        let (soft, normed) = (
            g.softmax(wide, 1).expect("right"),
            g.layer_norm(wide, row, row, 1e-5).expect("right"),
        );
        g.output("soft", soft).expect("right");
        g.output("normed", normed).expect("right");
    });
    let made = outputs(&graph);
    assert!(
        made[0]
            .chunks(2)
            .all(|row| (row[0] + row[1] - 1.0).abs() < 1e-12),
        "each row has sum 1"
    );
    let row = [2.0f32.sin(), (0.7f32 + 2.0).sin()].map(f64::from);
    assert!(
        made[1]
            .chunks(2)
            .all(|made| (made[0] / row[0] - 1.0 + (made[1] / row[1] - 1.0)).abs() < 1e-9),
        "each row has mean 0 before gain and bias"
    );
}

/// Its end-to-end test passed because node 0 was mistaken for input 0; its devices gave zeros.
#[test]
fn a_result_is_no_input_and_no_zeros() {
    let graph = build(|g, [.., matrix]| {
        let y = g.scale(matrix, 2.0).expect("right");
        g.output("y", y).expect("right");
    });
    let (_, node, _) = graph.outputs().next().expect("there");
    assert!(graph.inputs().all(|(_, input, _)| input != node));
    let made = outputs(&graph).swap_remove(0);
    assert!(made.iter().enumerate().all(|(index, y)| {
        (y - 2.0 * f64::from((index as f32 * 0.7 + 3.0).sin())).abs() < 1e-12 && y.abs() > 1e-3
    }));
}
