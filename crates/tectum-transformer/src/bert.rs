//! The encoder of BERT: Devlin et al., *BERT: Pre-training of Deep Bidirectional Transformers for
//! Language Understanding*,
//! <https://arxiv.org/abs/1810.04805>. Reference implementation:
//! <https://github.com/huggingface/transformers/blob/main/src/transformers/models/bert/modeling_bert.py>; pooling as in
//! <https://github.com/UKPLab/sentence-transformers> (Reimers and Gurevych, <https://arxiv.org/abs/1908.10084>).

use tectum::Result;
use tectum_graph::{Dim, Graph, GraphBuilder, Heads, Node};

use super::config::{Config, Head};

/// The graph of an encoder and the names of its inputs.
#[derive(Debug, Clone)]
pub struct Bert {
    /// Inputs `ids` [B, T] (row numbers), `mask` [B, T] (0, or −∞ for padding) and `pool` [B, 1, T]
    /// (the weight of each token in the text's vector); output `embedding` [B, D]. Parameters have
    /// the names and shapes of the tensors of the file.
    pub graph: Graph,
}

impl Bert {
    /// The graph over letters B (texts) and T (tokens).
    ///
    /// # Errors
    /// `Unsupported` for an unknown activation; `Invalid` for inconsistent sizes.
    pub(super) fn build(config: &Config, head: Head) -> Result<Bert> {
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
    fn embedding(&mut self, head: Head) -> Result<Node> {
        let (batch, time, width) = (Dim::from('B'), Dim::from('T'), self.config.hidden_size);
        let ids = self.g.indices("ids", [batch, time])?;
        let mask = self.g.input("mask", [batch, time])?;
        let pool = self.g.input("pool", [batch, 1.into(), time])?;

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

        let pooled = self.g.matmul(pool, x)?;
        let pooled = self.g.reshape(pooled, [batch, width.into()])?;
        if !head.normalized {
            return Ok(pooled);
        }
        // x / |x| is the root-mean-square norm over √D.
        let gain = self
            .g
            .constant(&vec![(1.0 / (width as f64).sqrt()) as f32; width], [width])?;
        self.g.rms_norm(pooled, gain, 1e-24)
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
