//! Common parts of all decoders' graphs: the inputs, the caches, and the path from a token's vector
//! to scores.

use tectum::Result;
use tectum_graph::{Dim, Factor, Graph, GraphBuilder, Heads, Node};

/// The sizes of a decoder of any family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecoderSizes {
    /// The family: `gpt2`, `llama`, `qwen2` or `qwen3`.
    pub family: String,
    /// Tokens V that are distinguished.
    pub vocab_size: usize,
    /// Width D of a token.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; each is used by `heads / kv_heads` heads of the queries.
    pub kv_heads: usize,
    /// Columns of a head.
    pub head_width: usize,
    /// Width of a layer's middle.
    pub ffn_width: usize,
    /// The activation of the middle, by Hugging Face's name.
    pub activation: String,
    /// Maximum tokens of a context.
    pub context: usize,
    /// Whether the table of tokens also gives their scores.
    pub tied_embeddings: bool,
}

impl DecoderSizes {
    /// Columns of a row of a cache.
    pub(super) fn cached_columns(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// How attention divides its operands.
    pub(super) fn attention_heads(&self) -> Heads {
        Heads {
            kv: self.kv_heads,
            causal: true,
            ..Heads::new(self.heads, self.head_width)
        }
    }
}

/// A decoder's graph under construction.
///
/// Inputs: `ids` and `positions` [B, T], `spans` [B, 2] (cached tokens, new tokens), `rows` [R]
/// (the indices of those of the B · T tokens that get scores); states `keys.N` and `values.N` [B,
/// S, columns] of each layer N; output `logits` [R, V]. Parameters have the names and shapes of the
/// tensors of the file.
pub(super) struct DecoderGraph<'a> {
    pub g: GraphBuilder,
    pub sizes: &'a DecoderSizes,
    pub ids: Node,
    pub positions: Node,
    spans: Node,
    rows: Node,
}

impl<'a> DecoderGraph<'a> {
    pub fn new(sizes: &'a DecoderSizes) -> Result<Self> {
        let mut g = GraphBuilder::new();
        let (texts, time) = (Dim::from('B'), [Dim::from('B'), Dim::from('T')]);
        let (ids, positions) = (g.indices("ids", time)?, g.indices("positions", time)?);
        let (spans, rows) = (
            g.indices("spans", [texts, 2.into()])?,
            g.indices("rows", [Dim::from('R')])?,
        );
        Ok(DecoderGraph {
            g,
            sizes,
            ids,
            positions,
            spans,
            rows,
        })
    }

    /// Attention of a layer to the contents of its caches; operands [B, T, heads · width].
    pub fn attend(&mut self, layer: usize, operands: [Node; 3]) -> Result<Node> {
        let shape = [
            Dim::from('B'),
            Dim::from('S'),
            Dim::from(self.sizes.cached_columns()),
        ];
        let caches = [
            self.g.state(&format!("keys.{layer}"), shape)?,
            self.g.state(&format!("values.{layer}"), shape)?,
        ];
        self.g
            .attention_cached(operands, caches, self.spans, self.sizes.attention_heads())
    }

    /// Selects the rows that get scores: [B, T, D] to [R, D].
    pub fn select_rows(&mut self, x: Node) -> Result<Node> {
        self.g.gather(x, self.rows)
    }

    /// Computes the scores: `x` [R, D], `table` [V, D].
    pub fn finish(mut self, x: Node, table: Node) -> Result<Graph> {
        let logits = self.g.matmul(x, table.transpose())?;
        self.g.output("logits", logits)?;
        self.g.finish()
    }

    /// x·W + b for a bias of this name.
    pub fn affine(&mut self, x: Node, weight: impl Into<Factor>, bias: Node) -> Result<Node> {
        let product = self.g.matmul(x, weight)?;
        self.g.add(product, bias)
    }
}
