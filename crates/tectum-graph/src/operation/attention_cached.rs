//! Causal attention to the contents of caches, after keys and values are written there.

use tectum::operation::attention::cache_reference::ReferenceCache;
use tectum::{CacheFormat, CacheFormats};

use super::attention::{Operands, attend, lowered_operands, operands_text, parse_operands};
use super::{
    Adjoints, Call, CallText, ColumnSlice, Dim, Fed, FedKind, Graph, GraphBuilder, Heads, Lowering,
    Node, Op, Operation, Result, Shape, Tensor, Values, View, no_derivative, nodes,
};

/// Causal attention to the contents of caches, after keys and values are written there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionCached {
    pub operands: Operands,
    pub caches: [Node; 2],
    pub formats: CacheFormats,
    pub spans: Node,
    pub heads: Heads,
}

impl Op for AttentionCached {
    fn arguments(&self, _: String) -> String {
        let [keys, values] = self.caches;
        format!(
            "{}, {}, {}",
            operands_text(&self.operands),
            nodes(&[keys, values, self.spans]),
            self.heads.text()
        )
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        let operands = self.operands.iter_mut().map(|operand| &mut operand.node);
        operands
            .chain(&mut self.caches)
            .chain([&mut self.spans])
            .collect()
    }

    fn columns_mut(&mut self) -> &mut [ColumnSlice] {
        &mut self.operands
    }

    fn writes_state(&self) -> bool {
        true
    }

    /// A cache is given as the values that were written there; the operation rounds them to the
    /// format.
    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let [q, k, v] = self
            .operands
            .map(|operand| (&values[&operand.node], operand.start));
        let (caches, spans) = (
            self.caches.map(|cache| &values[&cache]),
            &values[&self.spans],
        );
        let (most, queries) = (caches[0].shape.fixed()[1], k.0.shape.fixed()[1]);
        let span = |item: usize| {
            [(0, most), (1, queries)]
                .map(|(index, most)| (spans.data[2 * item + index] as usize).min(most))
        };
        let with_new = |side: usize, (new, start): (&Tensor, usize)| {
            let cache = stored(self.formats.each()[side], side == 0, caches[side], span);
            let (sizes, from) = (cache.shape.fixed(), new.shape.fixed());
            Tensor::from_fn(cache.shape, |place| {
                let (item, row, column) = (
                    place / (sizes[1] * sizes[2]),
                    place / sizes[2] % sizes[1],
                    place % sizes[2],
                );
                let [kept, count] = span(item);
                match row.checked_sub(kept).filter(|t| *t < count) {
                    Some(t) => new.data[(item * from[1] + t) * from[2] + start + column],
                    None => cache.data[place],
                }
            })
        };
        let (keys, values) = (with_new(0, k), with_new(1, v));
        // Halves include the new rows when read; codes are made afterwards.
        let with_all = |cache: Tensor, is_keys: bool| match self.formats {
            CacheFormats::F16 => stored(CacheFormat::F16, is_keys, &cache, |item| {
                [span(item).iter().sum(), 0]
            }),
            _ => cache,
        };
        let (keys, values) = (with_all(keys, true), with_all(values, false));
        let seen = |item: usize, query: usize| {
            let [kept, count] = span(item);
            (kept + query + 1).min(kept + count).min(most)
        };
        Ok(attend(
            [q, (&keys, 0), (&values, 0)],
            None,
            self.heads,
            shape,
            seen,
        ))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        no_derivative(self.name())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let sizes = self.heads.sizes(
            lowering.shape(self.operands[0].node),
            lowering.shape(self.caches[0]),
        );
        let columns = lowered_operands(&self.operands, lowering);
        let ([keys, values], [k_format, v_format]) = (
            self.caches.map(|cache| lowering.views[&cache]),
            self.formats.each(),
        );
        let spans = lowering.views[&self.spans];
        lowering.plan.attention_cached(
            columns,
            [(keys, k_format), (values, v_format)],
            spans,
            y,
            sizes,
            self.heads.scale,
        )
    }
}

/// The rows written to a cache, rounded to its format.
fn stored(
    format: CacheFormat,
    is_keys: bool,
    cache: &Tensor,
    span: impl Fn(usize) -> [usize; 2],
) -> Tensor {
    let sizes = cache.shape.fixed();
    let [rows, columns] = [sizes[1], sizes[2]];
    let mut held = cache.clone();
    if format == CacheFormat::F32 {
        return held;
    }
    for (item, data) in held.data.chunks_mut(rows * columns).enumerate() {
        let kept = span(item)[0].min(rows);
        let mut words = ReferenceCache::new(
            format,
            is_keys,
            [rows, columns],
            vec![0; format.words(rows, columns)],
        );
        words.add(0, &data[..kept * columns]);
        data[..kept * columns]
            .iter_mut()
            .enumerate()
            .for_each(|(at, value)| *value = words.value(kept, at / columns, at % columns));
    }
    held
}

impl Call for AttentionCached {
    const NAME: &'static str = "attention_cached";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let (operands, heads) = (parse_operands(text)?, Heads::parse(text)?);
        builder.attention_cached_of(
            operands,
            [text.node(3)?, text.node(4)?],
            text.node(5)?,
            heads,
        )
    }
}

impl GraphBuilder {
    /// Adds causal attention of new tokens to those kept in caches and to themselves: with c =
    /// kept, q's row t sees rows up to c + t of the caches, into which k's and v's rows are written
    /// from c on. The caches keep them for later runs.
    ///
    /// # Shapes
    /// `q` [B, T, count·width], `k` and `v` [B, T, kv·width]; `caches` of keys and of values [B, S,
    /// kv·width], states without other readers; `spans` [B, 2] as [`GraphBuilder::indices`] adds
    /// them: how many tokens were kept, and how many of the T are new. The rest is padding, which
    /// sees what the last new token sees and is not kept. Gives [B, T, count·width].
    /// # Numerics
    /// Attention sees values as the cache formats store them: f16 each row as halves; q8 and q4
    /// codes of whole windows of 64 tokens, halves of later tokens and of the first 4, and new rows
    /// unchanged.
    /// # Errors
    /// `Invalid` if the shapes do not fit the heads, these are not causal, `count` is no multiple
    /// of `kv`, a cache is no state or is read twice, the formats of the caches are not a pair of
    /// [`CacheFormats`], or a node is not of this graph.
    /// # Source
    /// As [`GraphBuilder::attention`]; cached keys and values: Pope et al., *Efficiently Scaling
    /// Transformer Inference*,
    /// <https://arxiv.org/abs/2211.05102>, section 2.1.
    pub fn attention_cached(
        &mut self,
        operands: [Node; 3],
        caches: [Node; 2],
        spans: Node,
        heads: Heads,
    ) -> Result<Node> {
        let operands = self.whole_operands("attention_cached", operands, heads)?;
        self.attention_cached_of(operands, caches, spans, heads)
    }

    /// Attention over caches; its operands are some of the columns of values.
    fn attention_cached_of(
        &mut self,
        operands: Operands,
        caches: [Node; 2],
        spans: Node,
        heads: Heads,
    ) -> Result<Node> {
        let [q_shape, k_shape, v_shape] =
            operands.map(|operand| self.shape("attention_cached", operand.node));
        let shapes = [q_shape?, k_shape?, v_shape?];
        let spans_shape = self.index_shape("attention_cached", spans)?;
        let [(keys, k_format), (values, v_format)] =
            [self.cache(caches[0])?, self.cache(caches[1])?];
        let Heads {
            count,
            kv,
            width,
            scale,
            causal,
        } = heads;
        let rows_agree = shapes
            .iter()
            .all(|shape| shape.rank() == 3 && shape.dims()[..2] == shapes[0].dims()[..2]);
        let fits = rows_agree
            && shapes
                .iter()
                .zip(operands)
                .zip([count, kv, kv])
                .all(|((shape, operand), count)| heads.fit(*shape, operand.start, count))
            && keys == values
            && keys.rank() == 3
            && keys.dims()[0] == shapes[0].dims()[0]
            && keys.last() == Dim::Size(kv.saturating_mul(width))
            && spans_shape.dims() == [shapes[0].dims()[0], Dim::Size(2)];
        if !fits || caches[0] == caches[1] || !causal || !heads.are_whole() {
            let causal = if causal { "causal" } else { "not causal" };
            return Err(self.fault(format_args!(
                "attention_cached: q, k, v {shapes:?}, caches {:?}, spans {spans_shape:?} for {count} heads, {kv} of keys and \
                 values, of {width}, scale {scale}, {causal}",
                [keys, values]
            )));
        }
        let Some(formats) = CacheFormats::of([k_format, v_format]) else {
            return Err(self.fault(format_args!(
                "attention_cached: a cache of {k_format} keys and {v_format} values"
            )));
        };
        Ok(self.push(
            AttentionCached {
                operands,
                caches,
                formats,
                spans,
                heads,
            },
            shapes[0].with(2, count * width),
        ))
    }

    /// The shape and format of a state that has no reader yet.
    fn cache(&self, node: Node) -> Result<(Shape, CacheFormat)> {
        let shape = self
            .graph()
            .shape(node)
            .map_err(|error| error.at("attention_cached"))?;
        let fault = match self.graph().nodes[&node].operation.state_format() {
            Some(format) if !self.graph().uses().contains_key(&node) => return Ok((shape, format)),
            Some(_) => "is read already",
            None => "is no state",
        };
        Err(self.fault(format_args!(
            "attention_cached: cache {node} {shape:?} {fault}"
        )))
    }
}

impl Graph {
    /// The same network with its caches in these formats. Keys and values are rounded to the
    /// formats.
    #[must_use]
    pub fn with_caches(&self, formats: CacheFormats) -> Graph {
        let mut changed = self.clone();
        let attentions = changed
            .nodes
            .values_mut()
            .filter_map(|definition| match &mut definition.operation {
                Operation::AttentionCached(attention) => Some(attention),
                _ => None,
            });
        let mut caches = Vec::new();
        for attention in attentions {
            attention.formats = formats;
            caches.extend(attention.caches.into_iter().zip(formats.each()));
        }
        for (cache, format) in caches {
            if let Some(Operation::Fed(Fed { kind, .. })) = changed
                .nodes
                .get_mut(&cache)
                .map(|definition| &mut definition.operation)
            {
                *kind = FedKind::State(format);
            }
        }
        changed
    }
}
