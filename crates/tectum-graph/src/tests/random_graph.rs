//! Random networks for the equivalence and derivative tests.

use std::ops::Range;

use tectum::{Activation, DType, Result};

use crate::{Graph, GraphBuilder, Node, Shape, Tensor};

/// Seeds of each kind of random graph: 100 of them, from 0 on; or `TECTUM_GRAPHS`, from
/// `TECTUM_SEED` on.
pub fn seeds() -> Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    match number("TECTUM_GRAPHS") {
        None => 0..100,
        Some(count) => {
            let first = number("TECTUM_SEED").unwrap_or(0);
            first..first + count
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// Uniform in [−1, 1), exact in f32.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub fn pick(&mut self, nodes: &[Node]) -> Node {
        nodes[self.below(nodes.len())]
    }
}

/// A network of some twenty operations with a scalar output `loss` and a few other outputs.
pub fn random_graph(seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let mut g = GraphBuilder::new();
    let built = grow(&mut g, &mut random).expect("invariant: only what fits is added");
    g.output("loss", built)
        .expect("invariant: the name is free");
    g.finish().expect("invariant: there is an output")
}

/// Values for all inputs and parameters, exact in f32.
pub fn random_feeds(graph: &Graph, seed: u64) -> Vec<(Node, Tensor)> {
    let mut random = Random::new(seed ^ 0x5eed);
    let mut fill = |(_, node, shape): (&str, Node, Shape)| {
        let is_index = graph.dtype(node).expect("its node") == DType::U32;
        let mut value = || {
            if is_index {
                random.below(5) as f64
            } else {
                f64::from(random.unit())
            }
        };
        let data = (0..shape.len()).map(|_| value()).collect();
        (node, Tensor::new(shape, data).expect("invariant: filled"))
    };
    let feeds = graph.inputs().chain(graph.parameters()).map(&mut fill);
    feeds.collect()
}

/// Values of a quarter of the size, near those of an initializer: derivatives through many products
/// of larger ones are of any size.
pub fn small_feeds(graph: &Graph, seed: u64) -> Vec<(Node, Tensor)> {
    let small = |(node, mut tensor): (Node, Tensor)| {
        if graph.dtype(node).expect("its node") == DType::F32 {
            tensor.data.iter_mut().for_each(|value| *value *= 0.25);
        }
        (node, tensor)
    };
    random_feeds(graph, seed).into_iter().map(small).collect()
}

fn grow(g: &mut GraphBuilder, random: &mut Random) -> Result<Node> {
    let rows = [1, 3, 8][random.below(3)];
    let mut nodes = vec![
        g.input("x", [rows, 1 + random.below(9)])?,
        g.parameter("p", [1 + random.below(4), 5])?,
    ];
    for step in 0..8 + random.below(12) {
        let x = random.pick(&nodes);
        let node = add_operation(g, random, x, &nodes, step)?;
        if random.below(6) == 0 {
            g.output(&format!("out{step}"), node)?;
        }
        nodes.push(node);
    }
    let last = *nodes.last().expect("invariant: never empty");
    if random.below(2) == 0 {
        g.mean(last)
    } else {
        close(g, last, random)
    }
}

/// A loss by the squared distance from a target.
fn close(g: &mut GraphBuilder, last: Node, random: &mut Random) -> Result<Node> {
    let target = g.input("target", g.graph().shape(last)?)?;
    if random.below(2) == 0 {
        g.mse(last, target)
    } else {
        g.mse(target, last)
    }
}

fn add_operation(
    g: &mut GraphBuilder,
    random: &mut Random,
    x: Node,
    nodes: &[Node],
    step: usize,
) -> Result<Node> {
    let [rows, cols] = g.graph().shape(x)?.matrix();
    match random.below(19) {
        0..3 => layer(g, random, x, step),
        3 => {
            let weight = g.parameter(&format!("left{step}"), [1 + random.below(6), rows])?;
            let product = g.matmul(weight, x)?;
            g.scale(product, 1.0 / rows as f32)
        }
        4 => g.tanh(x),
        5 => g.relu(x),
        6 => g.sigmoid(x),
        7 => g.scale(x, 2.0 * random.unit()),
        8 => g.sum_over_rows(x),
        9 => g.sum_over_columns(x),
        10 => g.mean(x),
        13 => g.activate(
            x,
            [Activation::Gelu, Activation::GeluErf, Activation::Silu][random.below(3)],
        ),
        // Functions of arguments inside their domain, and a divisor that is not small.
        14 => {
            let bounded = g.tanh(x)?;
            let positive = g.exp(bounded)?;
            match random.below(4) {
                0 => g.sqrt(positive),
                1 => g.erf(bounded),
                2 => g.log(positive),
                _ => g.div(x, positive),
            }
        }
        // A duplicated computation.
        11 => {
            let (one, two) = (g.tanh(x)?, g.tanh(x)?);
            g.add(one, two)
        }
        // Constants, known before anything is fed.
        12 => {
            let row = constant(g, random, [1, cols])?;
            let (bent, factor) = (g.sigmoid(row)?, constant(g, random, [1, 1])?);
            let known = g.mul(bent, factor)?;
            g.mul(x, known)
        }
        _ => {
            let shape = [[rows, cols], [1, cols], [1, 1]][random.below(3)];
            let same: Vec<Node> = nodes
                .iter()
                .copied()
                .filter(|node| g.graph().shape(*node).is_ok_and(|other| other == shape))
                .collect();
            let other = match random.below(6) {
                0 => constant(g, random, shape)?,
                3.. if !same.is_empty() => random.pick(&same),
                _ => g.parameter(&format!("with{step}"), shape)?,
            };
            match random.below(7) {
                0 => g.add(x, other),
                1 => g.add(other, x),
                2 => g.sub(x, other),
                3 => g.mul(x, other),
                4 => g.max(other, x),
                5 => g.min(x, other),
                _ => g.mul(other, x),
            }
        }
    }
}

fn constant(g: &mut GraphBuilder, random: &mut Random, shape: [usize; 2]) -> Result<Node> {
    let data: Vec<f32> = (0..shape[0] * shape[1]).map(|_| random.unit()).collect();
    g.constant(&data, shape)
}

/// A product with any of its tails, in any order of operands, plain or transposed.
fn layer(g: &mut GraphBuilder, random: &mut Random, x: Node, step: usize) -> Result<Node> {
    let [_, inner] = g.graph().shape(x)?.matrix();
    let width = 1 + random.below(7);
    let product = if random.below(2) == 0 {
        let weight = g.parameter(&format!("weight{step}"), [inner, width])?;
        g.matmul(x, weight)?
    } else {
        let weight = g.parameter(&format!("weight{step}"), [width, inner])?;
        if random.below(4) == 0 {
            let transposed = g.matmul(weight, x.transpose())?;
            return g.tanh(transposed);
        }
        g.matmul(x, weight.transpose())?
    };
    let bias = g.parameter(&format!("bias{step}"), [1, width])?;
    let sum = match random.below(3) {
        0 => product,
        1 => g.add(product, bias)?,
        _ => g.add(bias, product)?,
    };
    let active = match random.below(4) {
        0 => g.tanh(sum)?,
        1 => g.relu(sum)?,
        2 => g.sigmoid(sum)?,
        _ => sum,
    };
    match random.below(3) {
        0 => {
            let residual = g.parameter(&format!("residual{step}"), g.graph().shape(active)?)?;
            g.add(residual, active)
        }
        _ => Ok(active),
    }
}
