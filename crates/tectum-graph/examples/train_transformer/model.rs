//! A decoder-only transformer of two layers over the characters of a text, its batches and its
//! first weights; `bench/peers/train_transformer.py` has the same.

use tectum::{Activation, Device, Result};
use tectum_graph::{AdamW, Graph, GraphBuilder, Heads, Node, Trainer};

const TEXT: &str = "a neuron adds up what it receives, and fires when the sum is large enough. a network of neurons learns by changing how \
    strongly each one listens to the others. what it has learned is in the strengths, not in the neurons.";
const BATCH: usize = 4;
const TIME: usize = 16;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const LAYERS: usize = 2;

/// The model with its loss, the training, and the text as class numbers.
pub struct Model {
    trainer: Trainer,
    text: Vec<u32>,
}

impl Model {
    /// Compiles the training with the weights of the script.
    pub fn new(device: &Device) -> Result<Self> {
        let mut symbols: Vec<char> = TEXT.chars().collect();
        symbols.sort_unstable();
        symbols.dedup();
        let number = |symbol: char| {
            symbols
                .binary_search(&symbol)
                .map_or(0, |number| number as u32)
        };
        let (graph, loss) = build(symbols.len())?;
        let optimizer = AdamW {
            learning_rate: 3e-3.into(),
            ..AdamW::default()
        };
        let mut trainer = Trainer::new(&graph, loss, optimizer, device)?;
        for (position, (name, _, shape)) in graph.parameters().enumerate() {
            let values: Vec<f32> = (0..shape.elements().unwrap_or(0))
                .map(|element| first_value(name, position, element))
                .collect();
            trainer.set_parameter(name, &values)?;
        }
        Ok(Self {
            trainer,
            text: TEXT.chars().map(number).collect(),
        })
    }

    /// One step on the next batch; returns its loss.
    pub fn step(&mut self) -> Result<f32> {
        let step = self.trainer.steps() as usize;
        let starts: Vec<usize> = (0..BATCH)
            .map(|item| (step * BATCH + item) * 7 % (self.text.len() - TIME))
            .collect();
        let windows = |offset: usize| {
            starts
                .iter()
                .flat_map(|start| &self.text[start + offset..][..TIME])
                .copied()
                .collect::<Vec<u32>>()
        };
        self.trainer.set_indices("ids", &windows(0))?;
        self.trainer.set_indices("targets", &windows(1))?;
        self.trainer.step()
    }
}

/// Logits for the next character at each place, and their cross-entropy.
fn build(classes: usize) -> Result<(Graph, Node)> {
    let mut g = GraphBuilder::new();
    let (ids, targets) = (
        g.indices("ids", [BATCH, TIME])?,
        g.indices("targets", [BATCH, TIME])?,
    );
    let (tokens, places) = (
        g.parameter("tokens", [classes, WIDTH])?,
        g.parameter("places", [TIME, WIDTH])?,
    );
    let embedded = g.gather(tokens, ids)?;
    let mut x = g.add(embedded, places)?;
    for layer in 0..LAYERS {
        let y = norm(&mut g, &format!("{layer}.norm1"), x)?;
        let mut projected = |name: &str, x: Node| {
            let weight = g.parameter(&format!("{layer}.{name}.weight"), [WIDTH, WIDTH])?;
            g.matmul(x, weight)
        };
        let operands = [projected("q", y)?, projected("k", y)?, projected("v", y)?];
        // The weights of the output are added here, in the order of the script.
        let out = g.parameter(&format!("{layer}.out.weight"), [WIDTH, WIDTH])?;
        let attended = g.attention(
            operands,
            None,
            Heads {
                causal: true,
                ..Heads::new(HEADS, WIDTH / HEADS)
            },
        )?;
        let attended = g.matmul(attended, out)?;
        x = g.add(x, attended)?;
        let y = norm(&mut g, &format!("{layer}.norm2"), x)?;
        let hidden = g.dense(&format!("{layer}.up"), y, 4 * WIDTH, Activation::Gelu)?;
        let down = g.dense(&format!("{layer}.down"), hidden, WIDTH, Activation::None)?;
        x = g.add(x, down)?;
    }
    let x = norm(&mut g, "norm", x)?;
    let head = g.parameter("head", [WIDTH, classes])?;
    let logits = g.matmul(x, head)?;
    let loss = g.cross_entropy(logits, targets)?;
    g.output("loss", loss)?;
    Ok((g.finish()?, loss))
}

fn norm(g: &mut GraphBuilder, name: &str, x: Node) -> Result<Node> {
    let (gain, bias) = (
        g.parameter(&format!("{name}.gain"), [WIDTH])?,
        g.parameter(&format!("{name}.bias"), [WIDTH])?,
    );
    g.layer_norm(x, gain, bias, 1e-5)
}

/// 1 for gains, 0 for biases, and for weights a number in [−scale, scale) by a hash of the
/// positions of parameter and element.
fn first_value(name: &str, position: usize, element: usize) -> f32 {
    let scale = match name {
        _ if name.ends_with(".gain") => return 1.0,
        _ if name.ends_with(".bias") => return 0.0,
        "tokens" | "places" => 0.5,
        _ if name.ends_with(".down.weight") => 0.125,
        _ => 0.25,
    };
    let [position, element] = [position, element].map(|number| number as u32);
    let mut h = position
        .wrapping_mul(0x9e37_79b1)
        .wrapping_add(element.wrapping_mul(0x85eb_ca77))
        .wrapping_add(0x1656_67b1);
    h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    h ^= h >> 15;
    ((h >> 8) as f32 / (1 << 23) as f32 - 1.0) * scale
}
