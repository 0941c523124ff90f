//! The encoder of BERT: Devlin et al., *BERT: Pre-training of Deep Bidirectional Transformers for
//! Language Understanding*,
//! <https://arxiv.org/abs/1810.04805>. Reference implementation:
//! <https://github.com/huggingface/transformers/blob/main/src/transformers/models/bert/modeling_bert.py>; pooling as in
//! <https://github.com/UKPLab/sentence-transformers> (Reimers and Gurevych, <https://arxiv.org/abs/1908.10084>).

use tectum::Result;
use tectum_graph::{Dim, Graph, GraphBuilder, Heads, Node};

use super::config::Config;
use super::head::{Dense, Head, HeadStep, Pooling};

/// The graph of an encoder and the names of its inputs.
#[derive(Debug, Clone)]
pub struct Bert {
    /// Inputs `ids` [B, T] (row numbers), `mask` [B, T] (0, or −∞ for padding) and `pool` [B, P, T]
    /// (the weight of each token in each of the P vectors of a text that are weighted sums; one that
    /// is not read if all are maxima); output `embedding` [B, D]. Parameters have the names and
    /// shapes of the tensors of the file; those of the steps after the encoder begin with the folder
    /// of the step and a dot.
    pub graph: Graph,
}

impl Bert {
    /// The graph over letters B (texts) and T (tokens).
    ///
    /// # Errors
    /// `Unsupported` for an unknown activation; `Invalid` for inconsistent sizes.
    pub(super) fn build(config: &Config, head: &Head) -> Result<Bert> {
        let mut encoder = Encoder {
            g: GraphBuilder::new(),
            config,
        };
        let embedding = encoder.embedding(head)?;
        let mut g = encoder.g;
        g.output("embedding", embedding)?;
        Ok(Bert { graph: g.finish()? })
    }
}

struct Encoder<'a> {
    g: GraphBuilder,
    config: &'a Config,
}

impl Encoder<'_> {
    fn embedding(&mut self, head: &Head) -> Result<Node> {
        let (batch, time, width) = (Dim::from('B'), Dim::from('T'), self.config.hidden_size);
        let weighted = head.weighted().count();
        let ids = self.g.indices("ids", [batch, time])?;
        let mask = self.g.input("mask", [batch, time])?;
        let pool = self
            .g
            .input("pool", [batch, weighted.max(1).into(), time])?;

        // Token, position and token type (the first: one text, no pair).
        let words = self.table("word", self.config.vocab_size)?;
        let positions = self.table("position", self.config.max_position_embeddings)?;
        let types = self.table("token_type", self.config.type_vocab_size)?;
        let word = self.g.gather(words, ids)?;
        let position = self.g.slice(positions, 0, 0, time)?;
        let kind = self.g.slice(types, 0, 0, 1)?;
        let sum = self.g.add(word, position)?;
        let sum = self.g.add(sum, kind)?;
        let mut x = self.norm("embeddings.LayerNorm", sum)?;
        for layer in 0..self.config.num_hidden_layers {
            x = self.layer(&format!("encoder.layer.{layer}"), x, mask)?;
        }

        let mut vector = self.pool(head, x, mask, pool)?;
        let mut width = width * head.poolings.len();
        for step in &head.steps {
            vector = match step {
                HeadStep::Dense(layer) => self.head_dense(layer, vector)?,
                HeadStep::LayerNorm(path) => self.head_norm(path, vector, width)?,
                HeadStep::Normalize => self.normalize(vector, width)?,
                HeadStep::Truncate(count) => self.g.slice(vector, 1, 0, *count)?,
            };
            if let HeadStep::Dense(layer) = step {
                width = layer.sizes[0];
            }
        }
        Ok(vector)
    }

    /// The poolings of `x` [B, T, D], concatenated: [B, D · poolings].
    fn pool(&mut self, head: &Head, x: Node, mask: Node, pool: Node) -> Result<Node> {
        let (batch, width) = (Dim::from('B'), self.config.hidden_size);
        let weighted = head.weighted().count();
        let sums = match weighted {
            0 => None,
            count => {
                let sums = self.g.matmul(pool, x)?;
                Some(self.g.reshape(sums, [batch, (count * width).into()])?)
            }
        };
        if let Some(sums) = sums.filter(|_| weighted == head.poolings.len()) {
            return Ok(sums);
        }
        // The maximum over the tokens, of which padding is −∞.
        let padding = self.g.reshape(mask, [batch, 'T'.into(), 1.into()])?;
        let masked = self.g.add(x, padding)?;
        let turned = self.g.permute(masked, &[0, 2, 1])?;
        let maxima = self.g.max_over_columns(turned)?;
        let maxima = self.g.reshape(maxima, [batch, width.into()])?;
        let (mut parts, mut taken) = (Vec::new(), 0);
        for pooling in &head.poolings {
            parts.push(match sums.filter(|_| *pooling != Pooling::Max) {
                Some(sums) => {
                    taken += 1;
                    self.g.slice(sums, 1, (taken - 1) * width, width)?
                }
                None => maxima,
            });
        }
        match parts[..] {
            [only] => Ok(only),
            _ => self.g.concat(&parts, 1),
        }
    }

    /// activation(x·Wᵀ + b), and the operand if the layer adds it.
    fn head_dense(&mut self, layer: &Dense, x: Node) -> Result<Node> {
        let (name, [out, inner]) = (&layer.path, layer.sizes);
        let weight = self
            .g
            .parameter(&format!("{name}.linear.weight"), [out, inner])?;
        let mut y = self.g.matmul(x, weight.transpose())?;
        if layer.has_bias {
            let bias = self.g.parameter(&format!("{name}.linear.bias"), [out])?;
            y = self.g.add(y, bias)?;
        }
        let y = self.g.activate(y, layer.activation)?;
        if !layer.has_residual {
            return Ok(y);
        }
        let residual = if out == inner {
            x
        } else {
            let weight = self
                .g
                .parameter(&format!("{name}.residual.weight"), [out, inner])?;
            self.g.matmul(x, weight.transpose())?
        };
        self.g.add(y, residual)
    }

    /// Layer norm as PyTorch's default.
    fn head_norm(&mut self, name: &str, x: Node, width: usize) -> Result<Node> {
        let gain = self.g.parameter(&format!("{name}.norm.weight"), [width])?;
        let bias = self.g.parameter(&format!("{name}.norm.bias"), [width])?;
        self.g.layer_norm(x, gain, bias, 1e-5)
    }

    /// x / |x|, which is the root-mean-square norm over √D.
    fn normalize(&mut self, x: Node, width: usize) -> Result<Node> {
        let gain = (1.0 / (width as f64).sqrt()) as f32;
        let gain = self.g.constant(&vec![gain; width], [width])?;
        self.g.rms_norm(x, gain, 1e-24)
    }

    fn table(&mut self, kind: &str, rows: usize) -> Result<Node> {
        self.g.parameter(
            &format!("embeddings.{kind}_embeddings.weight"),
            [rows, self.config.hidden_size],
        )
    }

    fn layer(&mut self, name: &str, x: Node, mask: Node) -> Result<Node> {
        let width = self.config.hidden_size;
        // Weights, then biases, adjacent: the three products become one without copies.
        let parts = ["query", "key", "value"].map(|part| format!("{name}.attention.self.{part}"));
        let (mut weights, mut operands) = (Vec::new(), Vec::new());
        for part in &parts {
            weights.push(
                self.g
                    .parameter(&format!("{part}.weight"), [width, width])?,
            );
        }
        for (part, weight) in parts.iter().zip(weights) {
            let bias = self.g.parameter(&format!("{part}.bias"), [width])?;
            let product = self.g.matmul(x, weight.transpose())?;
            operands.push(self.g.add(product, bias)?);
        }
        let heads = Heads::new(
            self.config.num_attention_heads,
            width / self.config.num_attention_heads,
        );
        let attended =
            self.g
                .attention([operands[0], operands[1], operands[2]], Some(mask), heads)?;
        let output = self.dense(
            &format!("{name}.attention.output.dense"),
            attended,
            [width, width],
        )?;
        let sum = self.g.add(output, x)?;
        let x = self.norm(&format!("{name}.attention.output.LayerNorm"), sum)?;

        let middle = self.dense(
            &format!("{name}.intermediate.dense"),
            x,
            [self.config.intermediate_size, width],
        )?;
        let middle = self.g.activate(middle, self.config.activation()?)?;
        let output = self.dense(
            &format!("{name}.output.dense"),
            middle,
            [width, self.config.intermediate_size],
        )?;
        let sum = self.g.add(output, x)?;
        self.norm(&format!("{name}.output.LayerNorm"), sum)
    }

    /// x·Wᵀ + b for W [out, in], as PyTorch stores it.
    fn dense(&mut self, name: &str, x: Node, [out, inner]: [usize; 2]) -> Result<Node> {
        let weight = self.g.parameter(&format!("{name}.weight"), [out, inner])?;
        let bias = self.g.parameter(&format!("{name}.bias"), [out])?;
        let product = self.g.matmul(x, weight.transpose())?;
        self.g.add(product, bias)
    }

    fn norm(&mut self, name: &str, x: Node) -> Result<Node> {
        let width = self.config.hidden_size;
        let gain = self.g.parameter(&format!("{name}.weight"), [width])?;
        let bias = self.g.parameter(&format!("{name}.bias"), [width])?;
        self.g.layer_norm(x, gain, bias, self.config.layer_norm_eps)
    }
}
