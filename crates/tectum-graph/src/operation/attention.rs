//! Scaled dot-product attention of each head.

use tectum::{AttentionSizes, Error};

use super::{
    Adjoints, Call, CallText, Dim, Factor, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View, no_derivative_of_fused,
};
use crate::parse::parse_number;

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
    /// Whether a query sees only the keys up to its own position; the last query has the position
    /// of the last key.
    pub causal: bool,
}

impl Heads {
    /// `count` heads of queries, keys and values, scaled by the root of their width.
    pub fn new(count: usize, width: usize) -> Self {
        Self {
            count,
            kv: count,
            width,
            scale: (1.0 / (width as f64).sqrt()) as f32,
            causal: false,
        }
    }

    pub(super) fn text(&self) -> String {
        let Heads {
            count,
            kv,
            width,
            scale,
            causal,
        } = self;
        let causal = if *causal { ", causal" } else { "" };
        format!("heads {count}, kv {kv}, width {width}, scale {scale}{causal}")
    }

    pub(super) fn parse(text: &CallText<'_>) -> Result<Self> {
        Ok(Heads {
            count: text.number("heads")?,
            kv: text.number("kv")?,
            width: text.number("width")?,
            scale: text.number("scale")?,
            causal: text.arguments.contains(&"causal"),
        })
    }

    /// Whether the heads are well formed.
    pub(super) fn are_whole(&self) -> bool {
        self.count * self.kv * self.width != 0
            && self.count.is_multiple_of(self.kv)
            && self.scale.is_finite()
    }

    /// A value [B, T, count·width] as [B, kv, count/kv·T, width]: for each head of keys, the rows
    /// of the heads that it serves.
    fn split(&self, builder: &mut GraphBuilder, x: Node, count: usize) -> Result<Node> {
        let sizes = builder.graph().shape(x)?.fixed();
        let heads = builder.reshape(x, [sizes[0], sizes[1], count, self.width])?;
        let heads = builder.permute(heads, &[0, 2, 1, 3])?;
        builder.reshape(
            heads,
            [sizes[0], self.kv, count / self.kv * sizes[1], self.width],
        )
    }

    /// scale · a·b with the result of `split` back as [B, T, count·width].
    fn product(
        &self,
        builder: &mut GraphBuilder,
        a: Factor,
        b: Node,
        scale: f32,
        [items, count, rows]: [usize; 3],
    ) -> Result<Node> {
        let product = builder.matmul(a, b)?;
        let heads = builder.reshape(product, [items, count, rows, self.width])?;
        let rows_first = builder.permute(heads, &[0, 2, 1, 3])?;
        let whole = builder.reshape(rows_first, [items, rows, count * self.width])?;
        if scale == 1.0 {
            Ok(whole)
        } else {
            builder.scale(whole, scale)
        }
    }

    /// Whether a value of rows of an item holds this many heads from a column on.
    pub(super) fn fit(&self, shape: Shape, start: usize, count: usize) -> bool {
        let end = count
            .checked_mul(self.width)
            .and_then(|columns| columns.checked_add(start));
        shape.rank() == 3
            && matches!((shape.last(), end), (Dim::Size(columns), Some(end)) if end <= columns)
    }

    /// The sizes of a launch for these queries and as many keys of an item.
    pub(super) fn sizes(&self, queries: Shape, keys: Shape) -> AttentionSizes {
        let (queries, keys) = (queries.fixed(), keys.fixed());
        AttentionSizes {
            batch: queries[0],
            queries: queries[1],
            keys: keys[1],
            heads: self.count,
            kv_heads: self.kv,
            width: self.width,
        }
    }
}

/// Some neighbouring columns of the last axis of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnSlice {
    pub node: Node,
    pub start: usize,
}

impl ColumnSlice {
    fn text(self) -> String {
        let start = if self.start == 0 {
            String::new()
        } else {
            format!("@{}", self.start)
        };
        format!("%{}{start}", self.node)
    }

    fn parse(text: &CallText<'_>, index: usize) -> Result<Self> {
        match text.at(index)?.split_once('@') {
            None => Ok(Self {
                node: text.node(index)?,
                start: 0,
            }),
            Some((node, start)) => Ok(Self {
                node: text.reference(node)?,
                start: parse_number(start)?,
            }),
        }
    }

    /// The view of the whole value, its columns, and the first of these.
    fn lowered(self, lowering: &Lowering<'_>) -> (View, usize, usize) {
        (
            lowering.views[&self.node],
            lowering.shape(self.node).matrix()[1],
            self.start,
        )
    }
}

/// Queries, keys and values.
pub(super) type Operands = [ColumnSlice; 3];

/// The first three arguments of attention.
pub(super) fn operands_text(operands: &Operands) -> String {
    operands.map(ColumnSlice::text).join(", ")
}

pub(super) fn parse_operands(text: &CallText<'_>) -> Result<Operands> {
    Ok([
        ColumnSlice::parse(text, 0)?,
        ColumnSlice::parse(text, 1)?,
        ColumnSlice::parse(text, 2)?,
    ])
}

pub(super) fn lowered_operands(
    operands: &Operands,
    lowering: &Lowering<'_>,
) -> [(View, usize, usize); 3] {
    operands.map(|operand| operand.lowered(lowering))
}

/// Scaled dot-product attention of each head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attention {
    pub operands: Operands,
    pub mask: Option<Node>,
    pub heads: Heads,
}

impl Op for Attention {
    fn arguments(&self, _: String) -> String {
        let mask = self
            .mask
            .map_or(String::new(), |mask| format!(", mask %{mask}"));
        format!(
            "{}{mask}, {}",
            operands_text(&self.operands),
            self.heads.text()
        )
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        self.operands
            .iter_mut()
            .map(|operand| &mut operand.node)
            .chain(self.mask.as_mut())
            .collect()
    }

    fn columns_mut(&mut self) -> &mut [ColumnSlice] {
        &mut self.operands
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let operands = self
            .operands
            .map(|operand| (&values[&operand.node], operand.start));
        let (keys, queries) = (operands[1].0.shape.fixed()[1], shape.fixed()[1]);
        let seen = |_: usize, query: usize| {
            if self.heads.causal {
                (keys + query + 1).saturating_sub(queries)
            } else {
                keys
            }
        };
        Ok(attend(
            operands,
            self.mask.map(|mask| &values[&mask]),
            self.heads,
            shape,
            seen,
        ))
    }

    /// The scores are computed again, as matrices of [T, S] for each head; Pᵀ·G, and from the
    /// gradient of P that of the softmax.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let (
            Self {
                operands,
                mask,
                heads,
            },
            Heads {
                count, kv, scale, ..
            },
        ) = (*self, self.heads);
        let [q, k, v] = operands.map(|operand| operand.node);
        let builder = &mut pass.builder;
        if operands != builder.whole_operands("attention", [q, k, v], heads)? {
            return no_derivative_of_fused();
        }
        let [q_shape, k_shape] = [q, k].map(|node| builder.graph().shape(node));
        let (Some(queries), Some(keys)) = (q_shape?.sizes(), k_shape?.sizes()) else {
            return Err(Error::unsupported(
                "the gradient of attention needs sizes; bind the letters first",
            ));
        };
        let [items, queries, keys] = [queries[0], queries[1], keys[1]];
        let ([whole_q, whole_g], [whole_k, whole_v]) = (
            [q, g].map(|x| heads.split(builder, x, count)),
            [k, v].map(|x| heads.split(builder, x, kv)),
        );
        let (whole_q, whole_k, whole_v, whole_g) = (whole_q?, whole_k?, whole_v?, whole_g?);
        let (flat, square) = (
            [items, kv, count / kv * queries, keys],
            [items, count, queries, keys],
        );

        let products = builder.matmul(whole_q, whole_k.transpose())?;
        let mut scores = builder.reshape(products, square)?;
        scores = builder.scale(scores, scale)?;
        if let Some(mask) = mask {
            let row = builder.reshape(mask, [items, 1, keys])?;
            let one = builder.constant(&[1.0], [1, 1])?;
            let ones = builder.broadcast(one, [items, count * queries, 1])?;
            let repeated = builder.matmul(ones, row)?;
            let repeated = builder.reshape(repeated, square)?;
            scores = builder.add(scores, repeated)?;
        }
        if heads.causal {
            let is_seen = |place: usize| place % keys + queries <= keys + place / keys;
            let hidden: Vec<f32> = (0..queries * keys)
                .map(|place| {
                    if is_seen(place) {
                        0.0
                    } else {
                        f32::NEG_INFINITY
                    }
                })
                .collect();
            let hidden = builder.constant(&hidden, [queries, keys])?;
            scores = builder.add(scores, hidden)?;
        }
        let weights = builder.softmax(scores, 3)?;
        let weights = builder.reshape(weights, flat)?;
        let weights_adjoint = builder.matmul(whole_g, whole_v.transpose())?;
        let scores_adjoint = builder.softmax_adjoint(weights, weights_adjoint)?;

        pass.give(q, |pass| {
            heads.product(
                &mut pass.builder,
                scores_adjoint.into(),
                whole_k,
                scale,
                [items, count, queries],
            )
        })?;
        pass.give(k, |pass| {
            heads.product(
                &mut pass.builder,
                scores_adjoint.transpose(),
                whole_q,
                scale,
                [items, kv, keys],
            )
        })?;
        pass.give(v, |pass| {
            heads.product(
                &mut pass.builder,
                weights.transpose(),
                whole_g,
                1.0,
                [items, kv, keys],
            )
        })?;
        mask.map_or(Ok(()), |mask| {
            pass.give(mask, |pass| {
                let rows = pass
                    .builder
                    .reshape(scores_adjoint, [items, count * queries, keys])?;
                let sum = pass.builder.sum_axis(rows, 1)?;
                pass.builder.reshape(sum, [items, keys])
            })
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [q, k, _] = self.operands.map(|operand| lowering.shape(operand.node));
        let columns = lowered_operands(&self.operands, lowering);
        let mask = self.mask.map(|mask| lowering.views[&mask]);
        lowering.plan.attention(
            columns,
            mask,
            y,
            self.heads.sizes(q, k),
            self.heads.scale,
            self.heads.causal,
        )
    }
}

/// Attention where each query of an item sees the first keys, as many as `seen` gives.
pub(super) fn attend(
    [q, k, v]: [(&Tensor, usize); 3],
    mask: Option<&Tensor>,
    heads: Heads,
    shape: Shape,
    seen: impl Fn(usize, usize) -> usize,
) -> Tensor {
    let [batch, queries, columns] = [0, 1, 2].map(|axis| shape.fixed()[axis]);
    let keys = k.0.shape.fixed()[1];
    let at = |(value, start): (&Tensor, usize), item: usize, row: usize, column: usize| {
        let sizes = value.shape.fixed();
        value.data[(item * sizes[1] + row) * sizes[2] + start + column]
    };
    let mut data = Vec::with_capacity(batch * queries * columns);
    for (item, query) in (0..batch).flat_map(|item| (0..queries).map(move |query| (item, query))) {
        for head in 0..heads.count {
            let kv_head = head / (heads.count / heads.kv);
            let score = |key: usize| {
                let column = |i: usize| {
                    at(q, item, query, head * heads.width + i)
                        * at(k, item, key, kv_head * heads.width + i)
                };
                let masked = mask.map_or(0.0, |mask| mask.data[item * keys + key]);
                f64::from(heads.scale) * (0..heads.width).map(column).sum::<f64>() + masked
            };
            let scores: Vec<f64> = (0..seen(item, query)).map(score).collect();
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores
                .iter()
                .map(|score| (score - greatest).exp())
                .collect();
            let total: f64 = weights.iter().sum();
            for i in 0..heads.width {
                let sum: f64 = weights
                    .iter()
                    .enumerate()
                    .map(|(key, weight)| weight * at(v, item, key, kv_head * heads.width + i))
                    .sum();
                data.push(sum / total);
            }
        }
    }
    Tensor { shape, data }
}

impl Call for Attention {
    const NAME: &'static str = "attention";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.attention_of(
            parse_operands(text)?,
            text.named_node("mask")?,
            Heads::parse(text)?,
        )
    }
}

impl GraphBuilder {
    /// Adds scaled dot-product attention: for each head, softmax(scale · q·kᵀ + mask) · v. A query
    /// that sees no key gives NaN.
    ///
    /// # Shapes
    /// `q` [B, T, count·width], `k` and `v` [B, S, kv·width], `mask` [B, S], added to the products
    /// of every query and head: 0 for a key that is seen, −∞ for one that is not. Gives [B, T,
    /// count·width].
    /// # Errors
    /// `Invalid` if the shapes do not fit the heads, `count` is no multiple of `kv`, or a node is
    /// not of this graph.
    /// # Source
    /// Vaswani et al., *Attention Is All You Need*, <https://arxiv.org/abs/1706.03762>, section
    /// 3.2; heads that share keys and values: Ainslie et al., *GQA*, <https://arxiv.org/abs/2305.13245>.
    pub fn attention(
        &mut self,
        operands: [Node; 3],
        mask: Option<Node>,
        heads: Heads,
    ) -> Result<Node> {
        let operands = self.whole_operands("attention", operands, heads)?;
        self.attention_of(operands, mask, heads)
    }

    /// Operands of attention that are whole values.
    pub(super) fn whole_operands(
        &self,
        op: &str,
        operands: [Node; 3],
        heads: Heads,
    ) -> Result<Operands> {
        let widths = [heads.count, heads.kv, heads.kv]
            .map(|count| Dim::Size(count.saturating_mul(heads.width)));
        for (node, width) in operands.into_iter().zip(widths) {
            let shape = self.shape(op, node)?;
            if shape.last() != width {
                return Err(self.fault(format_args!(
                    "{op}: operand {node} {shape:?} for heads of {width:?} columns in all"
                )));
            }
        }
        Ok(operands.map(|node| ColumnSlice { node, start: 0 }))
    }

    /// Attention over some of the columns of its operands.
    fn attention_of(
        &mut self,
        operands: Operands,
        mask: Option<Node>,
        heads: Heads,
    ) -> Result<Node> {
        let [q_shape, k_shape, v_shape] =
            operands.map(|columns| self.shape("attention", columns.node));
        let shapes = [q_shape?, k_shape?, v_shape?];
        let mask_shape = mask.map(|mask| self.shape("attention", mask)).transpose()?;
        let (
            [q, k, v],
            Heads {
                count,
                kv,
                width,
                scale,
                ..
            },
        ) = (shapes, heads);
        let fits = shapes
            .iter()
            .zip(operands)
            .zip([count, kv, kv])
            .all(|((shape, columns), count)| heads.fit(*shape, columns.start, count))
            && q.dims()[0] == k.dims()[0]
            && k.dims()[..2] == v.dims()[..2]
            && mask_shape.is_none_or(|mask| mask.dims() == &k.dims()[..2]);
        if !fits || !heads.are_whole() {
            return Err(self.fault(format_args!(
                "attention: q {q:?}, k {k:?}, v {v:?}, mask {mask_shape:?} for {count} heads, {kv} of keys and values, of {width}, scale {scale}"
            )));
        }
        Ok(self.push(
            Attention {
                operands,
                mask,
                heads,
            },
            q.with(2, count * width),
        ))
    }
}
