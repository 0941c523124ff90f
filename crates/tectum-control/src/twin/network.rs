//! The twin's network: a dense tanh graph with its weights packed in one buffer.

use tectum::kernel::random;
use tectum::{Activation, PlanBuilder, Result, View};
use tectum_graph::{GraphBuilder, Node, ParameterLayout};

/// The name of the graph's input and output.
const INPUT: &str = "features";
const OUTPUT: &str = "change";

/// A dense network: tanh in the hidden layers, none in the last.
#[derive(Debug, Clone)]
pub struct Network {
    features: usize,
    hidden: Vec<usize>,
    channels: usize,
    parameters: ParameterLayout,
}

impl Network {
    /// A network of `features` inputs, hidden layers of the given widths and `channels` outputs.
    ///
    /// # Errors
    /// `Invalid` if a width is 0.
    pub fn new(features: usize, hidden: &[usize], channels: usize) -> Result<Self> {
        let (mut builder, _, output) = build(features, hidden, channels, 1)?;
        builder.output(OUTPUT, output)?;
        let parameters = builder.finish()?.parameter_layout();
        Ok(Self {
            features,
            hidden: hidden.to_vec(),
            channels,
            parameters,
        })
    }

    /// The position of each weight.
    pub fn parameters(&self) -> &ParameterLayout {
        &self.parameters
    }

    /// Inputs of the network.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Widths of the hidden layers.
    pub fn hidden(&self) -> &[usize] {
        &self.hidden
    }

    /// Outputs of the network.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The graph for a batch, still open: builder, input [batch, features], output [batch,
    /// channels].
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn builder(&self, batch: usize) -> Result<(GraphBuilder, Node, Node)> {
        build(self.features, &self.hidden, self.channels, batch)
    }

    /// Records the network on a batch: `y = network(x)`.
    ///
    /// # Shapes
    /// `x` [batch, features], `weights` as [`Network::parameters`], `y` [batch, channels].
    /// # Errors
    /// `Invalid` if a view has another length.
    pub fn record(
        &self,
        plan: &mut PlanBuilder,
        batch: usize,
        x: View,
        weights: View,
        y: View,
    ) -> Result<()> {
        let (mut builder, input, output) = self.builder(batch)?;
        builder.output(OUTPUT, output)?;
        let graph = builder.finish()?;
        let mut feeds = vec![(input, x)];
        feeds.extend(self.parameters.feeds(&graph, weights)?);
        graph.record(plan, &feeds, &[(output, y)])
    }

    /// Weights drawn from N(0, 1/inputs), the last layer's a tenth of that, biases 0: the same bits
    /// on every device.
    pub fn initial_weights(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.parameters.len()];
        let last = self.hidden.len();
        for (index, entry) in self.parameters.entries().iter().enumerate() {
            let (layer, is_bias) = (index / 2, index % 2 == 1);
            if is_bias {
                continue;
            }
            let [rows, cols] = entry.shape;
            let deviation =
                (1.0 / rows as f64).sqrt() as f32 * if layer == last { 0.1 } else { 1.0 };
            for (i, weight) in weights[entry.offset..][..rows * cols]
                .iter_mut()
                .enumerate()
            {
                let words = random::philox(
                    [i as u32 / 4, layer as u32, 0, 0],
                    [seed as u32, (seed >> 32) as u32],
                );
                *weight = deviation * random::normal(words[i % 4], random::normal_table());
            }
        }
        weights
    }
}

fn build(
    features: usize,
    hidden: &[usize],
    channels: usize,
    batch: usize,
) -> Result<(GraphBuilder, Node, Node)> {
    let mut builder = GraphBuilder::new();
    let input = builder.input(INPUT, [batch, features])?;
    let mut value = input;
    for (index, &width) in hidden.iter().enumerate() {
        value = builder.dense(&format!("layer{index}"), value, width, Activation::Tanh)?;
    }
    let output = builder.dense(
        &format!("layer{}", hidden.len()),
        value,
        channels,
        Activation::None,
    )?;
    Ok((builder, input, output))
}
