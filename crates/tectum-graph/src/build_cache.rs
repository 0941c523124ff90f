//! Building attention over caches filled by earlier runs.

use tectum::{CacheFormat, CacheFormats, Error, Result};

use super::builder::GraphBuilder;
use super::{ColumnSlice, Dim, Graph, Heads, Node, Operation, Shape};

impl GraphBuilder {
    /// Adds a value that stays on the device between runs, zero at first, which one operation reads and updates.
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn state(&mut self, name: &str, shape: impl Into<Shape>) -> Result<Node> {
        self.state_as(name, CacheFormat::F32, shape)
    }

    /// Adds a state in a format: it defines how each value is stored, and the state's size on the device ([`Graph::state_words`]).
    ///
    /// # Errors
    /// As [`GraphBuilder::input`].
    pub fn state_as(&mut self, name: &str, format: CacheFormat, shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_new("state", name, shape)?;
        Ok(self.push(Operation::State { name: name.to_owned(), format }, shape))
    }

    /// Adds causal attention of new tokens to those kept in caches and to themselves: with c = kept, q's row t sees rows up to c + t
    /// of the caches, into which k's and v's rows are written from c on. The caches keep them for later runs.
    ///
    /// # Shapes
    /// `q` [B, T, count·width], `k` and `v` [B, T, kv·width]; `caches` of keys and of values [B, S, kv·width], states without other
    /// readers; `spans` [B, 2] as [`GraphBuilder::indices`] adds them: how many tokens were kept, and how many of the T are new. The
    /// rest is padding, which sees what the last new token sees and is not kept. Gives [B, T, count·width].
    /// # Numerics
    /// Attention sees values as the cache formats store them: f16 each row as halves; q8 and q4 codes of whole windows of 64 tokens, halves of
    /// later tokens and of the first 4, and new rows unchanged.
    /// # Errors
    /// `Invalid` if the shapes do not fit the heads, these are not causal, `count` is no multiple of `kv`, a cache is no state or is read
    /// twice, the formats of the caches are not a pair of [`CacheFormats`], or a node is not of this graph.
    /// # Source
    /// As [`GraphBuilder::attention`]; cached keys and values: Pope et al., *Efficiently Scaling Transformer Inference*,
    /// <https://arxiv.org/abs/2211.05102>, section 2.1.
    pub fn attention_cached(&mut self, operands: [Node; 3], caches: [Node; 2], spans: Node, heads: Heads) -> Result<Node> {
        let widths = [heads.count, heads.kv, heads.kv].map(|count| Dim::Size(count.saturating_mul(heads.width)));
        for (node, width) in operands.into_iter().zip(widths) {
            let shape = self.shape("attention_cached", node)?;
            if shape.last() != width {
                return Err(self.fault(format_args!("attention_cached: operand {node} {shape:?} for heads of {width:?} columns in all")));
            }
        }
        self.attention_cached_of(operands.map(|node| ColumnSlice { node, start: 0 }), caches, spans, heads)
    }

    /// Attention over caches; its operands are some of the columns of values.
    pub(super) fn attention_cached_of(&mut self, operands: [ColumnSlice; 3], caches: [Node; 2], spans: Node, heads: Heads) -> Result<Node> {
        let mut shapes = Vec::new();
        for operand in operands {
            shapes.push(self.shape("attention_cached", operand.node)?);
        }
        let spans_shape = self.index_shape("attention_cached", spans)?;
        let cache_shapes = [self.cache_shape(caches[0])?, self.cache_shape(caches[1])?];
        let Heads { count, kv, width, scale, causal } = heads;
        let holds = |shape: Shape, start: usize, count: usize| {
            let end = count.checked_mul(width).and_then(|columns| columns.checked_add(start));
            shape.rank() == 3 && matches!((shape.last(), end), (Dim::Size(columns), Some(end)) if end <= columns)
        };
        let rows_agree = shapes.iter().all(|shape| shape.rank() == 3 && shape.dims()[..2] == shapes[0].dims()[..2]);
        let fits = rows_agree
            && shapes.iter().zip(operands).zip([count, kv, kv]).all(|((shape, operand), count)| holds(*shape, operand.start, count))
            && cache_shapes[0] == cache_shapes[1]
            && cache_shapes[0].rank() == 3
            && cache_shapes[0].dims()[0] == shapes[0].dims()[0]
            && cache_shapes[0].last() == Dim::Size(kv.saturating_mul(width))
            && spans_shape.dims() == [shapes[0].dims()[0], Dim::Size(2)];
        if !fits || caches[0] == caches[1] || !causal || count * kv * width == 0 || !count.is_multiple_of(kv) || !scale.is_finite() {
            let causal = if causal { "causal" } else { "not causal" };
            return Err(self.fault(format_args!(
                "attention_cached: q, k, v {shapes:?}, caches {cache_shapes:?}, spans {spans_shape:?} for {count} heads, {kv} of keys and \
                 values, of {width}, scale {scale}, {causal}"
            )));
        }
        let formats = caches.map(|cache| self.graph().format(cache));
        let Some(formats) = CacheFormats::of(formats) else {
            return Err(self.fault(format_args!("attention_cached: a cache of {} keys and {} values", formats[0], formats[1])));
        };
        let [q, k, v] = operands;
        Ok(self.push(Operation::AttentionCached { q, k, v, caches, formats, spans, heads }, shapes[0].with(2, count * width)))
    }

    /// The shape of a state that has no reader yet.
    fn cache_shape(&self, node: Node) -> Result<Shape> {
        let shape = self.graph().shape(node).map_err(|error| error.at("attention_cached"))?;
        let is_state = matches!(self.graph().nodes[&node].operation, Operation::State { .. });
        if is_state && !self.graph().uses().contains_key(&node) {
            return Ok(shape);
        }
        let fault = if is_state { "is read already" } else { "is no state" };
        Err(self.fault(format_args!("attention_cached: cache {node} {shape:?} {fault}")))
    }
}

impl Graph {
    /// The states in the order they were added: name, node and shape.
    pub fn states(&self) -> impl Iterator<Item = (&str, Node, Shape)> {
        self.nodes.iter().filter_map(|(&node, definition)| match &definition.operation {
            Operation::State { name, .. } => Some((name.as_str(), node, definition.shape)),
            _ => None,
        })
    }

    /// The same network with its caches in these formats. Keys and values are rounded to the formats.
    #[must_use]
    pub fn with_caches(&self, formats: CacheFormats) -> Graph {
        let mut changed = self.clone();
        for definition in self.nodes.values() {
            let Operation::AttentionCached { caches, .. } = &definition.operation else { continue };
            for (cache, to) in caches.iter().zip(formats.each()) {
                let state = changed.nodes.get_mut(cache).map(|definition| &mut definition.operation);
                if let Some(Operation::State { format, .. }) = state {
                    *format = to;
                }
            }
        }
        let attentions = changed.nodes.values_mut().map(|definition| &mut definition.operation);
        for operation in attentions {
            if let Operation::AttentionCached { formats: to, .. } = operation {
                *to = formats;
            }
        }
        changed
    }

    /// Words of 32 bits that a state takes on a device: the number of f32 elements of a view that feeds it.
    ///
    /// # Errors
    /// `Invalid` if the node is not a state of this graph or has unbound letters.
    pub fn state_words(&self, node: Node) -> Result<usize> {
        let shape = self.shape(node).map_err(|error| error.at("state_words"))?;
        let is_state = matches!(self.nodes[&node].operation, Operation::State { .. });
        match shape.sizes().filter(|_| is_state) {
            Some(sizes) => Ok(words(self.format(node), &sizes)),
            None => Err(Error::invalid(format!("state_words: node {node} is no state whose letters are bound"))),
        }
    }

    /// The format of a state; f32 for any other node.
    pub(super) fn format(&self, node: Node) -> CacheFormat {
        match &self.nodes[&node].operation {
            Operation::State { format, .. } => *format,
            _ => CacheFormat::F32,
        }
    }

    /// The elements of a view that feeds or receives a value.
    pub(super) fn view_len(&self, node: Node) -> usize {
        match &self.nodes[&node].operation {
            Operation::State { format, .. } => words(*format, &self.nodes[&node].shape.fixed()),
            _ => self.nodes[&node].shape.len(),
        }
    }
}

/// Words of a state of these sizes: the last are columns, those before it tokens, the others items.
fn words(format: CacheFormat, sizes: &[usize]) -> usize {
    let (columns, rest) = sizes.split_last().map_or((1, &[][..]), |(last, rest)| (*last, rest));
    let (rows, items) = rest.split_last().map_or((1, &[][..]), |(last, rest)| (*last, rest));
    items.iter().product::<usize>() * format.words(rows, columns)
}
