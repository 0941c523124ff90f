//! Building the operations of networks over sequences: softmax, norms, attention, rotary positions.

use tectum::Result;

use super::builder::GraphBuilder;
use super::{ColumnSlice, Dim, Node, Operation, Shape};

/// How attention divides the columns of its operands into heads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heads {
    /// Heads of the queries.
    pub count: usize,
    /// Heads of the keys and values; each serves an equal number of consecutive query heads.
    pub kv: usize,
    /// Columns of a head.
    pub width: usize,
    /// Factor for the products of queries and keys.
    pub scale: f32,
    /// Whether a query sees only the keys up to its own position; the last query has the position of the last key.
    pub causal: bool,
}

impl Heads {
    /// `count` heads of queries, keys and values, scaled by the root of their width.
    pub fn new(count: usize, width: usize) -> Self {
        Self { count, kv: count, width, scale: (1.0 / (width as f64).sqrt()) as f32, causal: false }
    }
}

impl GraphBuilder {
    /// Adds softmax over an axis.
    ///
    /// # Errors
    /// `Invalid` if there is no such axis or the node is not of this graph.
    pub fn softmax(&mut self, x: Node, axis: usize) -> Result<Node> {
        let shape = self.shape("softmax", x)?;
        self.check_axis("softmax", shape, axis)?;
        if axis + 1 == shape.rank() {
            return Ok(self.push(Operation::Softmax { x }, shape));
        }
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        order.swap(axis, shape.rank() - 1);
        let last = self.permute(x, &order)?;
        let soft = self.push(Operation::Softmax { x: last }, self.graph().shape(last)?);
        self.permute(soft, &order)
    }

    /// Adds layer norm over the last axis: (x − mean) / √(variance + epsilon) · gain + bias.
    ///
    /// # Shapes
    /// `x` [.., n], `gain` and `bias` [n].
    /// # Errors
    /// `Invalid` if the shapes differ, `epsilon` is not positive, or a node is not of this graph.
    /// # Source
    /// Ba, Kiros, Hinton, *Layer Normalization*, <https://arxiv.org/abs/1607.06450>.
    pub fn layer_norm(&mut self, x: Node, gain: Node, bias: Node, epsilon: f32) -> Result<Node> {
        let shape = self.norm_shape("layer_norm", x, &[gain, bias], epsilon)?;
        Ok(self.push(Operation::LayerNorm { x, gain, bias, epsilon }, shape))
    }

    /// Adds root-mean-square norm over the last axis: x / √(mean of x² + epsilon) · gain.
    ///
    /// # Shapes
    /// `x` [.., n], `gain` [n].
    /// # Errors
    /// As [`GraphBuilder::layer_norm`].
    /// # Source
    /// Zhang and Sennrich, *Root Mean Square Layer Normalization*, <https://arxiv.org/abs/1910.07467>.
    pub fn rms_norm(&mut self, x: Node, gain: Node, epsilon: f32) -> Result<Node> {
        let shape = self.norm_shape("rms_norm", x, &[gain], epsilon)?;
        Ok(self.push(Operation::RmsNorm { x, gain, epsilon }, shape))
    }

    fn norm_shape(&mut self, op: &str, x: Node, vectors: &[Node], epsilon: f32) -> Result<Shape> {
        let shape = self.shape(op, x)?;
        for &vector in vectors {
            let vector = self.shape(op, vector)?;
            if shape.rank() == 0 || !vector.is_row_of(shape) {
                return Err(self.fault(format_args!("{op}: x {shape:?}, gain or bias {vector:?}: a vector of {:?} is needed", shape.last())));
            }
        }
        if epsilon.is_nan() || epsilon <= 0.0 {
            return Err(self.fault(format_args!("{op}: epsilon {epsilon} is not positive")));
        }
        Ok(shape)
    }

    /// Adds scaled dot-product attention: for each head, softmax(scale · q·kᵀ + mask) · v. A query that sees no key gives NaN.
    ///
    /// # Shapes
    /// `q` [B, T, count·width], `k` and `v` [B, S, kv·width], `mask` [B, S], added to the products of every query and head:
    /// 0 for a key that is seen, −∞ for one that is not. Gives [B, T, count·width].
    /// # Errors
    /// `Invalid` if the shapes do not fit the heads, `count` is no multiple of `kv`, or a node is not of this graph.
    /// # Source
    /// Vaswani et al., *Attention Is All You Need*, <https://arxiv.org/abs/1706.03762>, section 3.2; heads that share keys and
    /// values: Ainslie et al., *GQA*, <https://arxiv.org/abs/2305.13245>.
    pub fn attention(&mut self, [q, k, v]: [Node; 3], mask: Option<Node>, heads: Heads) -> Result<Node> {
        let widths = [heads.count, heads.kv, heads.kv].map(|count| Dim::Size(count.saturating_mul(heads.width)));
        for (node, width) in [q, k, v].into_iter().zip(widths) {
            let shape = self.shape("attention", node)?;
            if shape.last() != width {
                return Err(self.fault(format_args!("attention: operand {node} {shape:?} for heads of {width:?} columns in all")));
            }
        }
        self.attention_of([q, k, v].map(|node| ColumnSlice { node, start: 0 }), mask, heads)
    }

    /// Attention over some of the columns of its operands.
    pub(super) fn attention_of(&mut self, [q, k, v]: [ColumnSlice; 3], mask: Option<Node>, heads: Heads) -> Result<Node> {
        let [q_shape, k_shape, v_shape] = [q, k, v].map(|columns| self.shape("attention", columns.node));
        let (q_shape, k_shape, v_shape) = (q_shape?, k_shape?, v_shape?);
        let mask_shape = mask.map(|mask| self.shape("attention", mask)).transpose()?;
        let Heads { count, kv, width, scale, .. } = heads;
        let holds = |shape: Shape, start: usize, count: usize| {
            let end = count.checked_mul(width).and_then(|columns| columns.checked_add(start));
            shape.rank() == 3 && matches!((shape.last(), end), (Dim::Size(columns), Some(end)) if end <= columns)
        };
        let fits = holds(q_shape, q.start, count)
            && holds(k_shape, k.start, kv)
            && holds(v_shape, v.start, kv)
            && q_shape.dims()[0] == k_shape.dims()[0]
            && k_shape.dims()[..2] == v_shape.dims()[..2]
            && mask_shape.is_none_or(|mask| mask.dims() == &k_shape.dims()[..2]);
        if !fits || count * kv * width == 0 || !count.is_multiple_of(kv) || !scale.is_finite() {
            return Err(self.fault(format_args!(
                "attention: q {q_shape:?}, k {k_shape:?}, v {v_shape:?}, mask {mask_shape:?} for {count} heads, {kv} of keys and values, \
                 of {width}, scale {scale}"
            )));
        }
        Ok(self.push(Operation::Attention { q, k, v, mask, heads }, q_shape.with(2, count * width)))
    }

    /// Adds rotary positions: in each head of w columns, columns j and j + w/2 are rotated by position · base^(−2j/w).
    ///
    /// # Shapes
    /// `x` [B, T, heads·w], `positions` [T] or [B, T] as [`GraphBuilder::indices`] adds them.
    /// # Errors
    /// `Invalid` if the shapes do not fit, w is odd, `base` is not above 1, or a node is not of this graph.
    /// # Source
    /// Su et al., *RoFormer*, <https://arxiv.org/abs/2104.09864>; pairs half a head apart, as required by the
    /// weights of Llama and Qwen published for Hugging Face transformers.
    pub fn rotary(&mut self, x: Node, positions: Node, heads: usize, base: f32) -> Result<Node> {
        let shape = self.shape("rotary", x)?;
        let places = self.index_shape("rotary", positions)?;
        let is_whole = matches!(shape.last(), Dim::Size(columns) if heads > 0 && columns.is_multiple_of(heads.saturating_mul(2)));
        let fits = shape.rank() == 3 && (places.dims() == &shape.dims()[..2] || places.dims() == &shape.dims()[1..2]);
        if !fits || !is_whole || !base.is_finite() || base <= 1.0 {
            return Err(self.fault(format_args!("rotary: x {shape:?}, positions {places:?} for {heads} heads, base {base}")));
        }
        Ok(self.push(Operation::Rotary { x, positions, heads, base }, shape))
    }
}
