//! Operations on sequences: random graphs on every device against the evaluator, the text form,
//! refusals, and passes as text in → text out.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, Device, Result};

use super::cached_networks;
use super::random_graph::{Random, random_feeds, seeds, small_feeds};
use crate::operation::{Fed, FedKind};
use crate::{Dim, Graph, GraphBuilder, Heads, Node, Operation, Shape, Tensor};

/// Greatest difference between a device and float64, as a share of the greatest magnitude of a
/// value: some twenty operations of a few hundred roundings each. In addition, this multiple of the
/// change caused by rounding all fed values once: norms of nearly equal values and scores of large
/// values magnify every rounding before them, and a sum of n products has √n roundings where the
/// nudged factors of the products change it by one over √n; n is up to 96.
const TOLERANCE: f64 = 2e-5;
const MAGNIFIED: f64 = 96.0;

/// A sequence [B, T, D] that passes through ten operations or so.
fn random_network(seed: u64) -> Graph {
    network(seed, |g, random| grow(g, random, true).map(drop))
}

/// One without caches, whose mask is a parameter, with an output `loss`.
pub fn trainable_network(seed: u64) -> Graph {
    network(seed, |g, random| {
        let [x, pooled] = grow(g, random, false)?;
        let shape = g.graph().shape(x)?;
        let square = g.mul(pooled, pooled)?;
        let mean = g.mean(square)?;
        let loss = match random.below(3) {
            0 => {
                let target = g.input("target", shape)?;
                g.mse(x, target)?
            }
            _ => {
                let classes = g.indices("classes", Shape::of(&shape.dims()[..2]))?;
                g.cross_entropy(x, classes)?
            }
        };
        let sum = g.add(loss, mean)?;
        g.output("loss", sum)
    })
}

fn network(seed: u64, build: impl FnOnce(&mut GraphBuilder, &mut Random) -> Result<()>) -> Graph {
    let mut g = GraphBuilder::new();
    build(&mut g, &mut Random::new(seed)).expect("invariant: only what fits is added");
    g.finish().expect("invariant: there is an output")
}

fn grow(g: &mut GraphBuilder, random: &mut Random, with_caches: bool) -> Result<[Node; 2]> {
    let (batch, time, width) = (
        1 + random.below(3),
        1 + random.below(9),
        4 * (1 + random.below(6)),
    );
    let table = g.parameter("table", [5, width])?;
    let ids = g.indices("ids", [batch, time])?;
    let places = g.indices("places", [time])?;
    let mask = if with_caches {
        g.input("mask", [batch, time])?
    } else {
        g.parameter("mask", [batch, time])?
    };
    let spans = if with_caches {
        Some(g.indices("spans", [batch, 2])?)
    } else {
        None
    };
    let mut x = g.gather(table, ids)?;
    for step in 0..4 + random.below(8) {
        x = add_operation(g, random, x, ([mask, places, ids], spans), step)?;
        if random.below(5) == 0 {
            g.output(&format!("out{step}"), x)?;
        }
    }
    let pooled = g.sum_axis(x, 1)?;
    g.output("pooled", pooled)?;
    g.output("last", x)?;
    Ok([x, pooled])
}

fn vector(g: &mut GraphBuilder, name: &str, width: usize, random: &mut Random) -> Result<Node> {
    if random.below(2) == 0 {
        g.parameter(name, [width])
    } else {
        g.parameter(name, [1, width])
    }
}

fn add_operation(
    g: &mut GraphBuilder,
    random: &mut Random,
    x: Node,
    ([mask, places, ids], spans): ([Node; 3], Option<Node>),
    step: usize,
) -> Result<Node> {
    let sizes = g.graph().shape(x)?.sizes().expect("fixed");
    let [batch, time, width] = [sizes[0], sizes[1], sizes[2]];
    let name = |what: &str| format!("{what}{step}");
    match random.below(18) {
        0 => {
            let gain = vector(g, &name("gain"), width, random)?;
            let bias = vector(g, &name("bias"), width, random)?;
            g.layer_norm(x, gain, bias, 1e-3)
        }
        1 => {
            let gain = vector(g, &name("gain"), width, random)?;
            g.rms_norm(x, gain, 1e-3)
        }
        2 => {
            let axis = random.below(3);
            let soft = g.softmax(x, axis)?;
            g.add(soft, x)
        }
        3 => {
            let activation = [
                Activation::Gelu,
                Activation::GeluErf,
                Activation::Silu,
                Activation::Tanh,
            ][random.below(4)];
            let weight = g.parameter(&name("weight"), [width, width])?;
            let product = if random.below(2) == 0 {
                g.matmul(x, weight)?
            } else {
                g.matmul(x, weight.transpose())?
            };
            let bias = vector(g, &name("bias"), width, random)?;
            let sum = g.add(product, bias)?;
            let active = g.activate(sum, activation)?;
            if random.below(2) == 0 {
                g.add(active, x)
            } else {
                Ok(active)
            }
        }
        4 => {
            let (first, count) = (random.below(width), 1 + random.below(3));
            let parts: Result<Vec<Node>> = (0..count)
                .map(|_| g.slice(x, 2, first, width - first))
                .collect();
            let start = g.slice(x, 2, 0, 1)?;
            let whole = g.concat(&[&parts?[..], &[start]].concat(), 2)?;
            let wide = g.graph().shape(whole)?.sizes().expect("fixed")[2];
            let weight = g.parameter(&name("weight"), [wide, width])?;
            g.matmul(whole, weight)
        }
        5 => {
            let turned = g.permute(x, &[1, 0, 2])?;
            let bent = g.tanh(turned)?;
            g.permute(bent, &[1, 0, 2])
        }
        6 => {
            let flat = g.reshape(x, [batch * time, width])?;
            let bent = g.sigmoid(flat)?;
            g.reshape(bent, [batch, time, width])
        }
        7 => {
            // Products for each item: [T, T] of each row with each other row, then back.
            let scores = g.matmul(x, x.transpose())?;
            let scores = g.scale(scores, 0.3)?;
            let weights = g.softmax(scores, 2)?;
            g.matmul(weights, x)
        }
        12 => {
            let (one, two) = (g.softmax(x, 2)?, g.softmax(x, 2)?);
            g.sub(x, one).and_then(|less| g.add(less, two))
        }
        13 | 14 => match spans {
            Some(spans) => cached_networks::attention(g, random, x, spans, step),
            None => attention(g, random, x, mask, step),
        },
        15 => {
            let offset = g.parameter(&name("offset"), [time, width])?;
            g.add(x, offset)
        }
        16 => {
            let sums = g.segment_sum(x, ids, [5, width])?;
            g.gather(sums, ids)
        }
        17 => {
            let bounded = g.tanh(x)?;
            let positive = g.exp(bounded)?;
            let quotient = g.div(x, positive)?;
            let (normalizer, greatest) = (g.logsumexp(quotient)?, g.max_over_columns(bounded)?);
            let normalizer = g.add(normalizer, greatest)?;
            let [root, erf] = [g.sqrt(positive)?, g.erf(quotient)?];
            let sum = g.add(root, erf)?;
            let row = g.parameter(&name("row"), [1, width])?;
            let repeated = g.matmul(normalizer, row)?;
            g.sub(sum, repeated)
        }
        8 => g.rotary(x, places, [1, 2][random.below(2)], 100.0),
        _ => attention(g, random, x, mask, step),
    }
}

/// Products of queries, keys and values with parameters, biases or none, then attention with each
/// of its options.
fn attention(
    g: &mut GraphBuilder,
    random: &mut Random,
    x: Node,
    mask: Node,
    step: usize,
) -> Result<Node> {
    let width = g.graph().shape(x)?.matrix()[1];
    let (count, kv) = [(1, 1), (2, 1), (2, 2), (4, 2)][random.below(4)];
    let heads = Heads {
        kv,
        causal: random.below(2) == 0,
        ..Heads::new(count, width / count)
    };
    let has_bias = random.below(2) == 0;
    let columns = [count, kv, kv].map(|heads| heads * width / count);
    let mut weights = Vec::new();
    for (which, columns) in ["q", "k", "v"].into_iter().zip(columns) {
        weights.push(g.parameter(&format!("{which}{step}"), [columns, width])?);
    }
    let mut operands = Vec::new();
    for (index, weight) in weights.into_iter().enumerate() {
        let product = g.matmul(x, weight.transpose())?;
        let operand = match has_bias {
            true => {
                let bias = g.parameter(&format!("bias{index}.{step}"), [columns[index]])?;
                g.add(product, bias)?
            }
            false => product,
        };
        operands.push(operand);
    }
    let mask = (random.below(2) == 0).then_some(mask);
    g.attention([operands[0], operands[1], operands[2]], mask, heads)
}

pub fn outputs_on(
    graph: &Graph,
    feeds: &[(Node, Tensor)],
    device: &Device,
    fused: bool,
) -> Vec<Vec<f32>> {
    let compiled = if fused {
        graph.compile(device)
    } else {
        graph.compile_unfused(device)
    };
    let mut compiled = compiled.expect("compiles");
    for (name, node, _) in graph.inputs().chain(graph.parameters()) {
        let data = feeds
            .iter()
            .find(|(fed, _)| *fed == node)
            .expect("invariant: all are fed")
            .1
            .data();
        let floats: Vec<f32> = data.iter().map(|&value| value as f32).collect();
        match graph.nodes[&node].operation {
            Operation::Fed(Fed {
                kind: FedKind::Indices,
                ..
            }) => compiled
                .set_indices(
                    name,
                    &data.iter().map(|&value| value as u32).collect::<Vec<_>>(),
                )
                .expect("fits"),
            Operation::Fed(Fed {
                kind: FedKind::Parameter(PanelFormat::F32),
                ..
            }) => compiled.set_parameter(name, &floats).expect("fits"),
            Operation::Fed(Fed {
                kind: FedKind::Parameter(_),
                ..
            }) => {
                let words: Vec<u32> = data.iter().map(|&word| word as u32).collect();
                compiled.set_words(name, &words).expect("fits");
            }
            _ => compiled.set_input(name, &floats).expect("fits"),
        }
    }
    for (name, node, _) in graph.states() {
        cached_networks::set(&mut compiled, graph, (name, node), feeds);
    }
    compiled.run().expect("runs");
    graph
        .outputs()
        .map(|(name, ..)| compiled.output(name).expect("ran").to_vec())
        .collect()
}

/// The fed values, each number changed by one rounding.
fn nudged(graph: &Graph, feeds: &[(Node, Tensor)], seed: u64) -> Vec<(Node, Tensor)> {
    let mut random = Random::new(seed ^ 0x4d6f7665);
    let nudge = |(node, tensor): &(Node, Tensor)| {
        // Values of caches would get different codes.
        let is_exact = matches!(
            graph.nodes[node].operation,
            Operation::Fed(Fed {
                kind: FedKind::Indices | FedKind::State(_),
                ..
            })
        );
        let mut factor = || {
            if is_exact {
                1.0
            } else {
                1.0 + f64::from(f32::EPSILON) * (random.below(2) as f64 - 0.5)
            }
        };
        let data = tensor.data().iter().map(|value| value * factor()).collect();
        (
            *node,
            Tensor::new(tensor.shape(), data).expect("of the same shape"),
        )
    };
    feeds.iter().map(nudge).collect()
}

/// A graph, and the values that it is fed with, of a seed.
type Networks = (fn(u64) -> Graph, fn(&Graph, u64) -> Vec<(Node, Tensor)>);

/// The evaluator on the graph as built = on the optimized one = every device, fused and not.
fn check_on(id: &str, (make, feeds_of): Networks, floor: f64) -> Option<[usize; 3]> {
    let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
        eprintln!("skipped: {id} is absent: random networks");
        return None;
    };
    let (mut compared, mut merged, mut caches, mut worst) = (0, 0, 0, 0.0f64);
    for seed in seeds() {
        let graph = make(seed);
        let mut feeds = feeds_of(&graph, seed);
        cached_networks::feed(&graph, &mut feeds, seed);
        caches += graph.states().count();
        let optimized = graph.optimize();
        merged += usize::from(optimized.describe().contains('@'));
        let (wanted, passed) = (
            graph.evaluate(&feeds).expect("fed"),
            optimized.evaluate(&feeds).expect("fed"),
        );
        let nudged = graph.evaluate(&nudged(&graph, &feeds, seed)).expect("fed");
        let floor = floor
            * wanted
                .iter()
                .flat_map(Tensor::data)
                .fold(0.0f64, |greatest, value| greatest.max(value.abs()));
        for fused in [false, true] {
            let got = outputs_on(&graph, &feeds, &device, fused);
            for (((name, ..), got), ((wanted, passed), nudged)) in graph
                .outputs()
                .zip(got)
                .zip(wanted.iter().zip(&passed).zip(&nudged))
            {
                let moved = wanted
                    .data()
                    .iter()
                    .zip(nudged.data())
                    .fold(0.0f64, |moved, (wanted, nudged)| {
                        moved.max((wanted - nudged).abs())
                    });
                let scale = wanted
                    .data()
                    .iter()
                    .fold(floor.max(1e-3), |scale, value| scale.max(value.abs()));
                for (index, (got, (wanted, passed))) in got
                    .iter()
                    .zip(wanted.data().iter().zip(passed.data()))
                    .enumerate()
                {
                    let place = || {
                        format!(
                            "seed {seed}, fused {fused}, {id}: {name}[{index}]\n{}\n{}",
                            graph.describe(),
                            optimized.describe()
                        )
                    };
                    assert!(
                        (wanted - passed).abs() <= 1e-10 * scale,
                        "optimized: {passed}, not {wanted}: {}",
                        place()
                    );
                    let share =
                        (f64::from(*got) - wanted).abs() / (TOLERANCE * scale + MAGNIFIED * moved);
                    assert!(share <= 1.0, "{got}, not {wanted}: {}", place());
                    worst = worst.max(share);
                    compared += 1;
                }
            }
        }
    }
    let count = seeds().count();
    eprintln!(
        "{id}: {count} networks, fused and not: {compared} elements, worst {worst:.3} of what is allowed, {merged} with merged products, {caches} caches"
    );
    Some([compared, merged, caches])
}

fn check_networks_on(id: &str) {
    if let Some([compared, merged, caches]) = check_on(id, (random_network, random_feeds), 0.0) {
        assert!(
            compared > 20_000 && merged > 20 && caches > 50,
            "{compared} compared, {merged} merged, {caches} caches"
        );
    }
}

/// All outputs, with the gradients of the loss. A gradient of terms that cancel, for example 0 for
/// the bias of keys, is compared by a share of the greatest value of any output: its terms are not
/// small.
fn check_gradients_on(id: &str) {
    let gradients = |seed| {
        let graph = trainable_network(seed);
        graph
            .output("loss")
            .and_then(|loss| graph.gradients(loss))
            .expect("differentiates")
    };
    if let Some([compared, ..]) = check_on(id, (gradients, small_feeds), 0.03) {
        assert!(compared > 100_000, "{compared} compared");
    }
}

#[test]
fn random_networks_agree_on_the_cpu() {
    check_networks_on("cpu");
}

#[test]
fn random_networks_agree_on_vulkan() {
    check_networks_on("vulkan:0");
}

#[test]
fn random_networks_agree_on_cuda() {
    check_networks_on("cuda:0");
}

#[test]
fn gradients_of_random_networks_agree_on_the_cpu() {
    check_gradients_on("cpu");
}

#[test]
fn gradients_of_random_networks_agree_on_vulkan() {
    check_gradients_on("vulkan:0");
}

#[test]
fn gradients_of_random_networks_agree_on_cuda() {
    check_gradients_on("cuda:0");
}

/// The printed text parses as the same graph, also after the passes.
#[test]
fn text_is_read_back_as_the_same_graph() {
    for seed in seeds() {
        let (graph, trainable) = (random_network(seed), trainable_network(seed));
        for graph in [graph.optimize(), graph, trainable.optimize(), trainable] {
            let text = graph.describe();
            assert_eq!(
                Graph::parse(&text)
                    .unwrap_or_else(|error| panic!("{error}\n{text}"))
                    .describe(),
                text
            );
        }
    }
    let mut g = GraphBuilder::new();
    let (x, target) = (
        g.input("x", [3, 4]).expect("right"),
        g.input("target", [3, 2]).expect("right"),
    );
    let hidden = g.dense("one", x, 5, Activation::Tanh).expect("right");
    let y = g
        .dense("two", hidden, 2, Activation::Sigmoid)
        .expect("right");
    let loss = g.mse(y, target).expect("right");
    g.output("loss", loss).expect("right");
    let text = g
        .finish()
        .expect("right")
        .gradients(loss)
        .expect("differentiates")
        .optimize()
        .describe();
    assert_eq!(Graph::parse(&text).expect("read").describe(), text);
}

#[test]
fn text_that_is_no_graph_is_refused_with_its_line() {
    let cases = [
        (
            "%0 = input x [2, 3]\n%1 = relu(%0) [3, 2]\noutput y %1",
            "line 2, `%1 = relu(%0) [3, 2]`: the shape that follows is [2, 3]",
        ),
        (
            "%0 = input x [2, 3]\n%1 = relu(%2) [2, 3]",
            "line 2, `%1 = relu(%2) [2, 3]`: activate: node 2 is not in this graph",
        ),
        (
            "%0 = input x [2, 3]\n%0 = input y [2, 3]",
            "line 2, `%0 = input y [2, 3]`: 0 is taken",
        ),
        (
            "%0 = constant(1, 2, 3, 4, …) [5]",
            "line 1, `%0 = constant(1, 2, 3, 4, …) [5]`: \"…\" is no such number",
        ),
        (
            "%0 = input x [0]",
            "line 1, `%0 = input x [0]`: input x: [0] holds no elements (node 2147483648)",
        ),
        (
            "%0 = conv(%1) [1]",
            "line 1, `%0 = conv(%1) [1]`: no operation conv",
        ),
        (
            "%0 = input x [2]\n%2 = chain(relu(%0)) [2]",
            "line 2, `%2 = chain(relu(%0)) [2]`: a chain is `%NODE = OPERATION | … OPERATION`",
        ),
        (
            "%0 = input x [2]\n%2 = chain(%1 = softmax(%0) | relu(%1)) [2]",
            "line 2, `%2 = chain(%1 = softmax(%0) | relu(%1)) [2]`: chain: 1 is not computed element by element from values of [2] (node 2147483649)",
        ),
        (
            "%0 = input x [2]\n%2 = chain(%0 = relu(%0) | relu(%0)) [2]",
            "line 2, `%2 = chain(%0 = relu(%0) | relu(%0)) [2]`: 0 is taken",
        ),
        (
            "%0 = input x [1, 1, 1, 1, 1, 1, 1, 1, 1]",
            "line 1, `%0 = input x [1, 1, 1, 1, 1, 1, 1, 1, 1]`: 9 dimensions; at most 8 are possible",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(Graph::parse(text).expect_err(message).to_string(), message);
    }
}

type Mistake = fn(&mut GraphBuilder, [Node; 4]) -> Result<()>;

/// Mistakes on x [2, 5, 12], w [12, 12], ids [2, 5] and v [12], with the whole message.
#[test]
fn mistakes_are_named_with_node_and_shapes() {
    let cases: &[(Mistake, &str)] = &[
        (
            |g, [_, _, ids, v]| g.gather(v, ids).map(drop),
            "gather: table [12], indices [2, 5]: a table [rows.., n] and at most seven dimensions of indices are needed (node 4)",
        ),
        (
            |g, [_, w, _, v]| g.gather(w, v).map(drop),
            "gather: operand 3 [12] is f32, row numbers are needed (node 4)",
        ),
        (
            |g, [x, _, ids, _]| g.add(x, ids).map(drop),
            "add: operand 2 [2, 5] is u32, f32 is needed (node 4)",
        ),
        (
            |g, [x, ..]| g.reshape(x, [10, 11]).map(drop),
            "reshape: [2, 5, 12] to [10, 11]: they do not hold as many elements (node 4)",
        ),
        (
            |g, [x, ..]| g.permute(x, &[0, 1, 1]).map(drop),
            "permute: [2, 5, 12] by [0, 1, 1]: each axis is needed once (node 4)",
        ),
        (
            |g, [x, ..]| g.slice(x, 1, 3, 3).map(drop),
            "slice: 3 from 3 on of axis 1 of [2, 5, 12], which is 5 (node 4)",
        ),
        (
            |g, [x, ..]| g.slice(x, 3, 0, 1).map(drop),
            "slice: [2, 5, 12] has no axis 3 (node 4)",
        ),
        (
            |g, [x, w, ..]| g.concat(&[x, w], 1).map(drop),
            "concat: [2, 5, 12] and [12, 12] along axis 1 (node 4)",
        ),
        (
            |g, [x, ..]| g.softmax(x, 3).map(drop),
            "softmax: [2, 5, 12] has no axis 3 (node 4)",
        ),
        (
            |g, [x, w, _, v]| g.layer_norm(x, v, w, 1e-5).map(drop),
            "layer_norm: x [2, 5, 12], gain or bias [12, 12]: a vector of 12 is needed (node 4)",
        ),
        (
            |g, [x, _, _, v]| g.rms_norm(x, v, 0.0).map(drop),
            "rms_norm: epsilon 0 is not positive (node 4)",
        ),
        (
            |g, [x, ..]| g.attention([x; 3], None, Heads::new(5, 2)).map(drop),
            "attention: operand 0 [2, 5, 12] for heads of 10 columns in all (node 4)",
        ),
        (
            |g, [x, w, ..]| g.attention([x; 3], Some(w), Heads::new(3, 4)).map(drop),
            "attention: q [2, 5, 12], k [2, 5, 12], v [2, 5, 12], mask Some([12, 12]) for 3 heads, 3 of keys and values, of 4, scale 0.5 (node 4)",
        ),
        (
            |g, [x, _, ids, _]| g.rotary(x, ids, 4, 100.0).map(drop),
            "rotary: x [2, 5, 12], positions [2, 5] for 4 heads, base 100 (node 4)",
        ),
        (
            |g, [x, _, _, v]| g.matmul(x, v).map(drop),
            "matmul: lhs [2, 5, 12], rhs [12]: at least two dimensions are needed (node 4)",
        ),
        (
            |g, [x, w, ..]| g.matmul(x.transpose(), w).map(drop),
            "matmul: lhs [2, 12, 5], rhs [12, 12]: inner sizes 5 and 12 differ (node 4)",
        ),
        (
            |g, _| g.input("b", [Dim::from('b'), 3.into()]).map(drop),
            "input b: [b, 3]: 'b' is no letter for a dimension; A to Z are (node 4)",
        ),
    ];
    for (mistake, message) in cases {
        let mut g = GraphBuilder::new();
        let nodes = [
            g.input("x", [2, 5, 12]),
            g.input("w", [12, 12]),
            g.indices("ids", [2, 5]),
            g.input("v", [12]),
        ]
        .map(|node| node.expect("right"));
        assert_eq!(
            mistake(&mut g, nodes).expect_err(message).to_string(),
            *message
        );
    }
}

#[test]
fn letters_are_bound_before_anything_is_computed() {
    let text = "%0 = input x [B, T, 4]\n%1 = parameter w [4, 2]\n%2 = matmul(%0, %1) [B, T, 2]\noutput y %2\n";
    let graph = Graph::parse(text).expect("read");
    assert_eq!(graph.describe(), text);
    let device = Device::open("null").expect("always there");
    let message = "node 0 is [B, T, 4]: its letters are to be bound first";
    assert_eq!(
        graph.compile(&device).expect_err("unbound").to_string(),
        message
    );
    assert_eq!(
        graph.evaluate(&[]).expect_err("unbound").to_string(),
        message
    );
    assert_eq!(
        graph.bind(&[('C', 1)]).expect_err("absent").to_string(),
        "bind: no dimension is C"
    );
    assert_eq!(
        graph.bind(&[('B', 0)]).expect_err("nothing").to_string(),
        "bind: node 0: [0, T, 4] holds no elements"
    );
    let bound = graph.bind(&[('B', 2), ('T', 3)]).expect("binds");
    assert_eq!(bound.describe(), text.replace('B', "2").replace('T', "3"));
    assert!(bound.compile(&device).is_ok());
    let text = "%0 = input x [8, 4]\n%1 = slice(%0, axis 0, from 3) [T, 4]\noutput y %1\n";
    let graph = Graph::parse(text).expect("read");
    assert!(graph.bind(&[('T', 5)]).is_ok());
    assert_eq!(
        graph.bind(&[('T', 6)]).expect_err("too long").to_string(),
        "bind: node 1: 6 from 3 on of axis 0 of [8, 4]"
    );
}

#[test]
fn means_over_letters_become_factors_when_they_are_bound() {
    let loss = |rows: Dim| {
        let mut g = GraphBuilder::new();
        let x = g.input("x", [rows, 3.into()])?;
        let w = g.parameter("w", [3, 2])?;
        let y = g.matmul(x, w)?;
        let target = g.input("target", [rows, 2.into()])?;
        let loss = g.mse(y, target)?;
        g.output("loss", loss)?;
        g.finish()?.gradients(loss)
    };
    let (sized, lettered) = (loss(4.into()), loss('B'.into()));
    let (sized, lettered) = (sized.expect("right"), lettered.expect("right"));
    let text = lettered.describe();
    assert!(text.contains("average("), "{text}");
    assert_eq!(Graph::parse(&text).expect("read").describe(), text);
    let bound = lettered.bind(&[('B', 4)]).expect("binds");
    assert_eq!(bound.describe(), sized.describe());
    // What remains unbound is not computed.
    assert!(lettered.bind(&[('B', 0)]).is_err());
}

#[test]
fn places_of_an_axis_are_taken_in_any_order() {
    let mut g = GraphBuilder::new();
    let x = g.parameter("x", [2, 3, 2]).expect("right");
    let taken = g.take(x, 1, &[2, 0, 0, 1]).expect("right");
    g.output("y", taken).expect("right");
    let mut large = GraphBuilder::new();
    let long = large.input("long", [1 << 30, 3]).expect("right");
    let message = large.take(long, 1, &[0, 2]).expect_err("rows").to_string();
    assert!(message.contains("3221225472 rows"), "{message}");
    for (axis, places) in [(1, &[3][..]), (1, &[][..]), (3, &[0][..])] {
        assert!(g.take(x, axis, places).is_err(), "{axis} {places:?}");
    }
    let letters = g
        .input("letters", [Dim::from('B'), 2.into()])
        .expect("right");
    let message = g.take(letters, 1, &[0]).expect_err("sizes").to_string();
    assert!(message.contains("sizes are needed"), "{message}");
    let graph = g.finish().expect("right").bind(&[('B', 1)]).expect("binds");
    let values = Tensor {
        shape: [2, 3, 2].into(),
        data: (0..12).map(f64::from).collect(),
    };
    let zeros = Tensor {
        shape: [1, 2].into(),
        data: vec![0.0; 2],
    };
    let found = graph.evaluate(&[(x, values), (letters, zeros)]);
    let expected = [4, 5, 0, 1, 0, 1, 2, 3, 10, 11, 6, 7, 6, 7, 8, 9].map(f64::from);
    assert_eq!(found.expect("right")[0].data, expected);
}

/// Text in → text out.
#[test]
fn products_of_one_value_merge_where_nothing_is_lost() {
    let parameters = "%0 = input x [2, 3, 4]\n%1 = parameter q [4, 4]\n%2 = parameter k [2, 4]\n%3 = parameter b [4]\n%4 = parameter c [1, 2]\n";
    let cases = [
        (
            "without a bias",
            "%5 = matmul(%0, %1ᵀ) [2, 3, 4]; %6 = matmul(%0, %2ᵀ) [2, 3, 2]; output a %5; output b %6",
            "%4.1 = concat(%1, %2, axis 0) [6, 4]; %4.2 = linear(%0, %4.1ᵀ) [2, 3, 6]; %5 = slice(%4.2, axis 2, from 0) [2, 3, 4]; \
             %6 = slice(%4.2, axis 2, from 4) [2, 3, 2]; output a %5; output b %6",
        ),
        (
            "with biases of either form",
            "%5 = linear(%0, %1ᵀ, bias %3) [2, 3, 4]; %6 = linear(%0, %2ᵀ, bias %4) [2, 3, 2]; output a %5; output b %6",
            "%4.1 = concat(%1, %2, axis 0) [6, 4]; %4.2 = reshape(%3) [1, 4]; %4.3 = concat(%4.2, %4, axis 1) [1, 6]; \
             %4.4 = linear(%0, %4.1ᵀ, bias %4.3) [2, 3, 6]; %5 = slice(%4.4, axis 2, from 0) [2, 3, 4]; \
             %6 = slice(%4.4, axis 2, from 4) [2, 3, 2]; output a %5; output b %6",
        ),
        (
            "one with a bias, one without",
            "%5 = linear(%0, %1ᵀ, bias %3) [2, 3, 4]; %6 = matmul(%0, %2ᵀ) [2, 3, 2]; output a %5; output b %6",
            "=",
        ),
        (
            "an activation",
            "%5 = linear(%0, %1ᵀ, tanh) [2, 3, 4]; %6 = matmul(%0, %2ᵀ) [2, 3, 2]; output a %5; output b %6",
            "=",
        ),
        (
            "weights that are no [out, in]",
            "%5 = matmul(%0, %1) [2, 3, 4]; %6 = matmul(%0, %2ᵀ) [2, 3, 2]; output a %5; output b %6",
            "=",
        ),
    ];
    for (name, before, after) in cases {
        let before = format!("{parameters}{}\n", before.replace("; ", "\n"));
        let after = if after == "=" {
            before.clone()
        } else {
            format!("{parameters}{}\n", after.replace("; ", "\n"))
        };
        assert_eq!(
            Graph::parse(&before)
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .merge_products()
                .describe(),
            after,
            "{name}"
        );
    }
}

/// Text in → text out: weights that only products read are packed in panels; the results are the
/// same.
#[test]
fn weights_take_panels_where_products_alone_read_them() {
    let parameters = "%0 = input x [2, 3, 4]\n%1 = parameter q [32, 4]\n%2 = parameter k [20, 4]\n%3 = parameter w [4, 5]\n";
    let packed = "%0 = input x [2, 3, 4]\n%1 = parameter q [2, 4, 16]\n%2 = parameter k [2, 4, 16]\n%3 = parameter w [1, 4, 16]\n";
    let cases = [
        (
            "transposed or not, with a tail",
            "%4 = linear(%0, %1ᵀ, tanh) [2, 3, 32]; %5 = matmul(%0, %2ᵀ) [2, 3, 20]; %6 = matmul(%0, %3) [2, 3, 5]; output a %4; output b %5; output c %6",
            "%4 = linear_panels(%0, %1, tanh) [2, 3, 32]; %5 = linear_panels(%0, %2) [2, 3, 20]; %6 = linear_panels(%0, %3) [2, 3, 5]; \
             output a %4; output b %5; output c %6",
        ),
        (
            "put together, all but the last whole panels",
            "%4 = concat(%1, %2, axis 0) [52, 4]; %5 = matmul(%0, %4ᵀ) [2, 3, 52]; %6 = matmul(%0, %3) [2, 3, 5]; output a %5; output b %6",
            "%4 = concat(%1, %2, axis 0) [4, 4, 16]; %5 = linear_panels(%0, %4) [2, 3, 52]; %6 = linear_panels(%0, %3) [2, 3, 5]; \
             output a %5; output b %6",
        ),
        (
            "not in whole panels",
            "%4 = concat(%2, %1, axis 0) [52, 4]; %5 = matmul(%0, %4ᵀ) [2, 3, 52]; output a %5",
            "=",
        ),
        (
            "an output",
            "%4 = matmul(%0, %1ᵀ) [2, 3, 32]; output a %4; output b %1",
            "=",
        ),
        (
            "another reader",
            "%4 = matmul(%0, %1ᵀ) [2, 3, 32]; %5 = tanh(%1) [32, 4]; output a %4; output b %5",
            "=",
        ),
        (
            "read alone and put together",
            "%4 = concat(%1, %2, axis 0) [52, 4]; %5 = matmul(%0, %4ᵀ) [2, 3, 52]; %6 = matmul(%0, %1ᵀ) [2, 3, 32]; output a %5; output b %6",
            "%4 = concat(%1, %2, axis 0) [4, 4, 16]; %5 = linear_panels(%0, %4) [2, 3, 52]; %6 = linear_panels(%0, %1) [2, 3, 32]; output a %5; output b %6",
        ),
    ];
    for (name, before, after) in cases {
        let graph = Graph::parse(&format!("{parameters}{}\n", before.replace("; ", "\n")))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (made, list) = graph.pack_weights(|_| PanelFormat::F32);
        let text = made.describe();
        assert_eq!(
            Graph::parse(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
                .describe(),
            text,
            "{name}: read back"
        );
        if after == "=" {
            assert_eq!((text, list.len()), (graph.describe(), 0), "{name}");
            continue;
        }
        let lines = after.replace("; ", "\n");
        assert!(
            text.ends_with(&format!("{lines}\n"))
                && text.starts_with(&packed[..packed.rfind("%3").expect("there")]),
            "{name}: {text}"
        );
        check_packed(name, &graph, &made, &list);
    }
}

/// A line is one operation: repetition, which is another, has its own.
#[test]
fn an_operand_that_repeats_needs_its_own_line() {
    let error = Graph::parse(
        "%0 = input x [2, 3, 4]\n%1 = input y [2, 1, 4]\n%2 = add(%0, %1) [2, 3, 4]\noutput z %2\n",
    )
    .err()
    .map(|error| error.to_string());
    assert!(
        error
            .as_ref()
            .is_some_and(|error| error.contains("a `broadcast` on its own line is needed")),
        "{error:?}"
    );
}

/// One element for each run of the other operand, such as a factor of each channel, is read where
/// it lies: the values are those of the repeated operand.
#[test]
fn an_element_for_each_run_is_not_copied() {
    for op in ["add", "sub", "mul", "div", "max", "min"] {
        for (x, y) in [
            ("[2, 3, 4, 5]", "[3, 1, 1]"),
            ("[2, 3, 4, 5]", "[1, 3, 4, 1]"),
            ("[6, 7]", "[6, 1]"),
        ] {
            let inputs = format!("%0 = input x {x}\n%1 = input y {y}\n");
            let direct = Graph::parse(&format!("{inputs}%2 = {op}(%0, %1) {x}\noutput z %2\n"))
                .expect("read");
            let repeated = Graph::parse(&format!(
                "{inputs}%2 = broadcast(%1) {x}\n%3 = {op}(%0, %2) {x}\noutput z %3\n"
            ))
            .expect("read");
            let values = |graph: &Graph| {
                let feeds = random_feeds(graph, 5);
                (
                    graph.evaluate(&feeds).expect("fed"),
                    outputs_on(graph, &feeds, &Device::open("cpu").expect("cpu"), true),
                )
            };
            assert_eq!(values(&direct), values(&repeated), "{op} of {x} and {y}");
            assert!(
                !direct.optimize().describe().contains("broadcast"),
                "{op} of {x} and {y}"
            );
        }
    }
}

/// Text in → text out: a convolution takes the addition and the activation that follow it, and its
/// filters are packed; the results are the same.
#[test]
fn convolutions_take_their_tail_and_panels() {
    let parameters = "%0 = input x [2, 6, 5, 5]\n%1 = parameter w [20, 3, 3, 3]\n%2 = parameter b [20]\n%3 = parameter d [6, 1, 3, 3]\n\
                      %4 = input r [2, 20, 5, 5]\n";
    let window = "kernel 1 3 3, stride 1 1 1, dilation 1 1 1, before 0 1 1, after 0 1 1";
    let cases = [
        (
            "addition and activation",
            "%5 = convolution(%0, %1, bias %2, groups 2, WINDOW) [2, 20, 5, 5]; %6 = add(%4, %5) [2, 20, 5, 5]; %7 = relu(%6) [2, 20, 5, 5]; output y %7",
            "%7 = convolution(%0, %1, bias %2, residual %4, groups 2, WINDOW, panels, relu) [2, 20, 5, 5]; output y %7",
        ),
        (
            "an activation first",
            "%5 = convolution(%0, %1, groups 2, WINDOW) [2, 20, 5, 5]; %6 = hard_swish(%5) [2, 20, 5, 5]; %7 = add(%6, %4) [2, 20, 5, 5]; output y %7",
            "%6 = convolution(%0, %1, groups 2, WINDOW, panels, hard_swish) [2, 20, 5, 5]; %7 = add(%6, %4) [2, 20, 5, 5]; output y %7",
        ),
        (
            "filters of one channel, another reader",
            "%5 = convolution(%0, %3, groups 6, WINDOW) [2, 6, 5, 5]; %6 = relu6(%5) [2, 6, 5, 5]; output y %6; output z %5",
            "%5 = convolution(%0, %3, groups 6, WINDOW) [2, 6, 5, 5]; %6 = relu6(%5) [2, 6, 5, 5]; output y %6; output z %5",
        ),
        (
            "an addition that repeats",
            "%5 = convolution(%0, %1, groups 2, WINDOW) [2, 20, 5, 5]; %6 = reshape(%2) [20, 1, 1]; %7 = relu6(%5) [2, 20, 5, 5]; \
             %8 = broadcast(%6) [2, 20, 5, 5]; %9 = add(%7, %8) [2, 20, 5, 5]; output y %9",
            "%6 = reshape(%2) [20, 1, 1]; %7 = convolution(%0, %1, groups 2, WINDOW, panels, relu6) [2, 20, 5, 5]; \
             %8 = broadcast(%6) [2, 20, 5, 5]; %9 = add(%7, %8) [2, 20, 5, 5]; output y %9",
        ),
    ];
    for (name, before, after) in cases {
        let lines = |text: &str| text.replace("WINDOW", window).replace("; ", "\n");
        let graph = Graph::parse(&format!("{parameters}{}\n", lines(before)))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let fused = graph.fuse();
        let (made, list) = fused.pack_filters();
        let text = made.describe();
        assert!(
            text.ends_with(&format!("{}\n", lines(after))),
            "{name}: {text}"
        );
        assert_eq!(
            text.contains("%1 = parameter w [2, 1, 27, 16]\n"),
            after.contains("panels"),
            "{name}: {text}"
        );
        assert_eq!(
            Graph::parse(&text)
                .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
                .describe(),
            text,
            "{name}: read back"
        );
        check_packed(name, &graph, &made, &list);
        let (again, list) = made.pack_filters();
        assert_eq!(
            (again.describe(), list.len()),
            (text, 0),
            "{name}: packed twice"
        );
    }
}

/// Text in → text out: the layout of filters follows their window and the sizes; the results are
/// the same.
#[test]
fn filters_of_three_by_three_are_transformed() {
    let window = |stride: usize| {
        format!(
            "kernel 1 3 3, stride 1 {stride} {stride}, dilation 1 1 1, before 0 1 1, after 0 1 1"
        )
    };
    let (plain, strided) = (window(1), window(2));
    let text = |sizes: &str, filters: &str, lines: &[String]| {
        format!(
            "%0 = input x [1, 32, {sizes}]\n%1 = parameter w {filters}\n{}\n",
            lines.join("\n")
        )
    };
    let one = |layout: &str, sizes: &str| {
        vec![
            format!("%2 = convolution(%0, %1, groups 1, {plain}{layout}) [1, 24, {sizes}]"),
            "output y %2".to_owned(),
        ]
    };
    let both = |layout: &str| {
        let second = format!("%3 = convolution(%0, %1, groups 1, {strided}{layout}) [1, 24, 4, 4]");
        vec![
            format!("%2 = convolution(%0, %1, groups 1, {plain}{layout}) [1, 24, 7, 7]"),
            second,
            "output y %2".to_owned(),
            "output z %3".to_owned(),
        ]
    };
    let cases = [
        (
            "16 tiles of 2 × 2",
            "7, 7",
            one("", "7, 7"),
            one(", winograd2", "7, 7"),
            "[16, 2, 32, 16]",
        ),
        (
            "16 tiles of 4 × 4",
            "14, 14",
            one("", "14, 14"),
            one(", winograd4", "14, 14"),
            "[36, 2, 32, 16]",
        ),
        (
            "exact",
            "14, 14",
            one(", exact", "14, 14"),
            one(", panels, exact", "14, 14"),
            "[1, 2, 288, 16]",
        ),
        (
            "another window",
            "7, 7",
            both(""),
            both(", panels"),
            "[1, 2, 288, 16]",
        ),
    ];
    for (name, sizes, before, after, filters) in cases {
        let graph = Graph::parse(&text(sizes, "[24, 32, 3, 3]", &before))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let (made, list) = graph.pack_filters();
        assert_eq!(made.describe(), text(sizes, filters, &after), "{name}");
        assert_eq!(
            Graph::parse(&made.describe())
                .unwrap_or_else(|error| panic!("{name}: {error}"))
                .describe(),
            made.describe(),
            "{name}: read back"
        );
        check_near(name, &graph, &made, &list, 1e-5);
    }
}

/// The results of the evaluator are unchanged except for the rounding of packed values, those of
/// the CPU too.
fn check_near(
    name: &str,
    graph: &Graph,
    made: &Graph,
    list: &[crate::PackedParameter],
    bound: f64,
) {
    let feeds = random_feeds(graph, 7);
    let wanted = graph.evaluate(&feeds).expect("fed");
    let pack = |(node, tensor): (Node, Tensor)| match list.iter().find(|packed| packed.node == node)
    {
        None => (node, tensor),
        Some(packed) => (node, in_panels(packed, made, &tensor)),
    };
    let feeds: Vec<(Node, Tensor)> = feeds.into_iter().map(pack).collect();
    let got = made.evaluate(&feeds).expect("fed");
    let cpu = outputs_on(made, &feeds, &Device::open("cpu").expect("cpu"), true);
    for ((wanted, got), cpu) in wanted.iter().zip(&got).zip(&cpu) {
        let largest = wanted
            .data()
            .iter()
            .fold(1.0f64, |largest, value| largest.max(value.abs()));
        let is_near = |value: f64, wanted: f64| (value - wanted).abs() <= bound * largest;
        assert!(
            wanted
                .data()
                .iter()
                .zip(got.data())
                .all(|(wanted, got)| is_near(*got, *wanted)),
            "{name}: evaluator"
        );
        assert!(
            wanted
                .data()
                .iter()
                .zip(cpu)
                .all(|(wanted, cpu)| is_near(f64::from(*cpu), *wanted)),
            "{name}: CPU"
        );
    }
}

/// The results of the evaluator and the CPU are unchanged.
fn check_packed(name: &str, graph: &Graph, made: &Graph, list: &[crate::PackedParameter]) {
    let feeds = random_feeds(graph, 7);
    let wanted = graph.evaluate(&feeds).expect("fed");
    let feeds: Vec<(Node, Tensor)> = feeds
        .into_iter()
        .map(
            |(node, tensor)| match list.iter().find(|packed| packed.node == node) {
                None => (node, tensor),
                Some(packed) => (node, in_panels(packed, made, &tensor)),
            },
        )
        .collect();
    let got = made.evaluate(&feeds).expect("fed");
    let cpu = outputs_on(made, &feeds, &Device::open("cpu").expect("cpu"), true);
    for ((wanted, got), cpu) in wanted.iter().zip(&got).zip(&cpu) {
        assert_eq!(wanted, got, "{name}");
        assert!(
            wanted
                .data()
                .iter()
                .zip(cpu)
                .all(|(wanted, cpu)| (wanted - f64::from(*cpu)).abs() < 1e-5),
            "{name}: {cpu:?}"
        );
    }
}

/// Text in → text out: other formats of weights, and where they stay floats.
#[test]
fn weights_are_kept_in_fewer_bits_where_they_lie_together() {
    let parameters = "%0 = input x [3, 130]\n%1 = parameter q [32, 130]\n%2 = parameter k [20, 130]\n%3 = parameter w [130, 5]\n";
    let products = "%4 = concat(%1, %2, axis 0) [52, 130]\n%5 = matmul(%0, %4ᵀ) [3, 52]\n%6 = matmul(%0, %3) [3, 5]\noutput a %5\noutput b %6\n";
    let graph = Graph::parse(&format!("{parameters}{products}")).expect("read");
    let (made, list) = graph.pack_weights(|_| PanelFormat::Int8);
    let wanted = "%0 = input x [3, 130]\n%1 = parameter q int8 [2, 68, 16]\n%2 = parameter k int8 [2, 68, 16]\n%3 = parameter w int8 [1, 68, 16]\n\
                  %4 = concat(%1, %2, axis 0) [4, 68, 16]\n%5 = linear_panels(%0, %4, weights int8) [3, 52]\n\
                  %6 = linear_panels(%0, %3, weights int8) [3, 5]\noutput a %5\noutput b %6\n";
    assert_eq!((made.describe().as_str(), list.len()), (wanted, 3));
    assert_eq!(Graph::parse(wanted).expect("read back").describe(), wanted);
    let (made, _) = graph.pack_weights(|name| {
        if name == "k" {
            PanelFormat::Bf16
        } else {
            PanelFormat::F16
        }
    });
    let wanted = "%1 = parameter q [2, 130, 16]\n%2 = parameter k [2, 130, 16]\n%3 = parameter w f16 [1, 68, 16]\n";
    assert!(
        made.describe().contains(wanted),
        "of two formats, put together: {}",
        made.describe()
    );
    let apart = Graph::parse(&format!(
        "{parameters}{}",
        products.replace("concat(%1, %2", "concat(%2, %1")
    ))
    .expect("read");
    let (made, _) = apart.pack_weights(|_| PanelFormat::F16);
    assert!(
        made.describe().contains("%3 = parameter w f16 [1, 68, 16]")
            && !made.describe().contains("q f16"),
        "not in whole panels: {}",
        made.describe()
    );
    let error = Graph::parse(&wanted_mixed())
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        error.contains("linear_panels: a [3, 130], b [1, 68, 16] for 5 columns of bf16"),
        "{error}"
    );
}

fn wanted_mixed() -> String {
    "%0 = input x [3, 130]\n%1 = parameter w f16 [1, 68, 16]\n%2 = linear_panels(%0, %1, weights bf16) [3, 5]\noutput a %2\n".to_owned()
}

/// Words of parameters that are not contiguous are copied as words.
#[test]
fn words_that_lie_apart_are_put_together() {
    let text = "%0 = input x [3, 130]\n%1 = parameter q f16 [2, 68, 16]\n%2 = parameter k f16 [1, 68, 16]\n\
                %3 = concat(%2, %1, axis 0) [3, 68, 16]\n%4 = linear_panels(%0, %3, weights f16) [3, 48]\noutput a %4\n";
    let graph = Graph::parse(text).expect("read");
    assert_eq!(
        graph
            .nodes
            .keys()
            .map(|node| graph.dtype(*node).expect("there").wgsl())
            .collect::<Vec<_>>(),
        ["f32", "u32", "u32", "u32", "f32"]
    );
    let mut run = graph
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    run.set_input("x", &[1.0; 3 * 130]).expect("fits");
    // Pairs of halves: 1 and 1, 2 and 2.
    run.set_words("k", &[0x3c00_3c00u32; 68 * 16])
        .expect("fits");
    run.set_words("q", &[0x4000_4000u32; 2 * 68 * 16])
        .expect("fits");
    run.run().expect("runs");
    let row = [[130.0; 16], [260.0; 16], [260.0; 16]].concat();
    assert_eq!(run.output("a").expect("ran"), row.repeat(3));
    assert!(run.parameter("k").is_err(), "words are no floats");
}

/// Halves have the bits of the floats that they represent; integers differ by no more than the
/// steps of their rows; the evaluator agrees.
#[test]
fn weights_in_fewer_bits_give_what_they_stand_for() {
    let text = "%0 = input x [3, 130]\n%1 = parameter q [32, 130]\n%2 = parameter k [20, 130]\n%3 = parameter b [52]\n\
                %4 = concat(%1, %2, axis 0) [52, 130]\n%5 = linear(%0, %4ᵀ, bias %3) [3, 52]\noutput a %5\n";
    let (graph, cpu) = (
        Graph::parse(text).expect("read"),
        Device::open("cpu").expect("cpu"),
    );
    for format in PanelFormat::ALL {
        let (made, list) = graph.pack_weights(|_| format);
        let (mut plain, mut packed) = (Vec::new(), Vec::new());
        for (node, tensor) in random_feeds(&graph, 11) {
            let found = list.iter().find(|packed| packed.node == node);
            let Some(entry) = found else {
                plain.push((node, tensor.clone()));
                packed.push((node, tensor));
                continue;
            };
            let (panels, [k, n]) = (in_panels(entry, &made, &tensor), entry.sizes);
            let word = |value: &f64| {
                if format == PanelFormat::F32 {
                    (*value as f32).to_bits()
                } else {
                    *value as u32
                }
            };
            let words: Vec<u32> = panels.data().iter().map(word).collect();
            packed.push((node, panels));
            // The values that the panels represent, in the parameter's layout: [n, k].
            let weights = format.unpack(&words, [k, n]);
            let turned = (0..n * k)
                .map(|at| f64::from(weights[at % k * n + at / k]))
                .collect();
            plain.push((node, Tensor::new(tensor.shape(), turned).expect("fits")));
        }
        let wanted = graph.evaluate(&plain).expect("fed");
        let got = made.evaluate(&packed).expect("fed");
        assert!(
            wanted[0]
                .data()
                .iter()
                .zip(got[0].data())
                .all(|(wanted, got)| (wanted - got).abs() < 1e-12),
            "{format}"
        );
        let floats = outputs_on(
            &graph.pack_weights(|_| PanelFormat::F32).0,
            &repacked(&graph, &plain),
            &cpu,
            true,
        );
        let coded = outputs_on(&made, &packed, &cpu, true);
        for (floats, coded) in floats[0].iter().zip(&coded[0]) {
            match format {
                PanelFormat::Int8 => assert!((floats - coded).abs() < 0.2, "{coded} for {floats}"),
                _ => assert_eq!(floats.to_bits(), coded.to_bits(), "{format}"),
            }
        }
    }
}

/// The values of a parameter in panels, or the words that hold them as numbers.
fn in_panels(packed: &crate::PackedParameter, made: &Graph, values: &Tensor) -> Tensor {
    let values: Vec<f32> = values.data().iter().map(|&value| value as f32).collect();
    let shape = made.shape(packed.node).expect("there");
    let mut words = vec![u32::MAX; shape.len()];
    packed.pack(&values, &mut words);
    let number = |word: u32| {
        if packed.format == PanelFormat::F32 {
            f64::from(f32::from_bits(word))
        } else {
            f64::from(word)
        }
    };
    Tensor::new(shape, words.into_iter().map(number).collect()).expect("fits")
}

/// Parameters in panels of f32.
fn repacked(graph: &Graph, feeds: &[(Node, Tensor)]) -> Vec<(Node, Tensor)> {
    let (made, list) = graph.pack_weights(|_| PanelFormat::F32);
    let pack = |(node, tensor): &(Node, Tensor)| {
        let Some(entry) = list.iter().find(|packed| packed.node == *node) else {
            return (*node, tensor.clone());
        };
        (*node, in_panels(entry, &made, tensor))
    };
    feeds.iter().map(pack).collect()
}

#[test]
fn attention_reads_slices_where_they_lie_and_leaves_them_to_others() {
    let before = "%0 = input x [1, 2, 12]\n%1 = slice(%0, axis 2, from 0) [1, 2, 4]\n%2 = slice(%0, axis 2, from 4) [1, 2, 4]\n\
                  %3 = slice(%0, axis 2, from 8) [1, 2, 4]\n%4 = attention(%1, %2, %3, heads 2, kv 2, width 2, scale 0.5) [1, 2, 4]\n\
                  output y %4\noutput k %2\n";
    let after = "%0 = input x [1, 2, 12]\n%2 = slice(%0, axis 2, from 4) [1, 2, 4]\n\
                 %4 = attention(%0, %0@4, %0@8, heads 2, kv 2, width 2, scale 0.5) [1, 2, 4]\noutput y %4\noutput k %2\n";
    assert_eq!(
        Graph::parse(before)
            .expect("read")
            .fuse_slices()
            .prune()
            .describe(),
        after
    );
}

/// Contiguous memory is bound as one view: the merged products of a layer cost one launch,
/// attention another.
#[test]
fn merged_products_move_no_weights() {
    let text = "%0 = input x [1, 8, 64]\n%1 = parameter q [64, 64]\n%2 = parameter k [64, 64]\n%3 = parameter v [64, 64]\n\
                %4 = matmul(%0, %1ᵀ) [1, 8, 64]\n%5 = matmul(%0, %2ᵀ) [1, 8, 64]\n%6 = matmul(%0, %3ᵀ) [1, 8, 64]\n\
                %7 = attention(%4, %5, %6, heads 2, kv 2, width 32, scale 0.125) [1, 8, 64]\noutput y %7\n";
    let graph = Graph::parse(text).expect("read");
    let (layout, mut plan) = (graph.parameter_layout(), tectum::PlanBuilder::new("p"));
    let (w, x) = (
        plan.state("w", tectum::DType::F32, layout.len()),
        plan.input("x", tectum::DType::F32, 512),
    );
    let y = plan.output("y", tectum::DType::F32, 512);
    let mut feeds = layout.feeds(&graph, w).expect("fits");
    feeds.push((graph.inputs().next().expect("there").1, x));
    graph
        .record(&mut plan, &feeds, &[(graph.output("y").expect("there"), y)])
        .expect("records");
    let text = plan.finish().expect("whole").describe();
    assert_eq!(
        text,
        "gemm_f32 x[512] w[12288] temp3[1536] groups 3\nattention_f32 temp3[1536] temp3[1536] temp3[1536] y[512] groups 2\n"
    );
}
