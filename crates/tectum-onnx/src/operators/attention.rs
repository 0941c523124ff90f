//! Attention, rotations of positions, and the recurrences that take its place.

use tectum::{Activation, Error, Result};
use tectum_graph::{BinaryOp, Comparison, Heads, IntegerOp, Node, Reduction};

use super::Family;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, shape};

pub(super) const FAMILY: Family = &[
    ("Attention", attention),
    ("CausalConvWithState", causal_conv),
    ("LinearAttention", linear_attention),
    ("RotaryEmbedding", rotary_embedding),
];

/// Columns of a head of the fused operation.
const MAX_FUSED_WIDTH: usize = 128;

/// Tokens for which a recurrence is unrolled.
const MAX_STEPS: usize = 4096;

/// A positive number of heads.
fn heads(call: &Call<'_>, name: &'static str) -> Result<usize> {
    let count = call
        .attributes
        .int(name)?
        .ok_or_else(|| Error::data(format!("attribute {name} is missing")))?;
    usize::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Error::data(format!("{name} {count}")))
}

/// A value [B, T, H·D] as [B, H, T, D].
fn split_heads(emit: &mut Emit<'_>, value: &Value, count: usize) -> Result<Value> {
    match value.dims[..] {
        [batch, tokens, columns] if columns.is_multiple_of(count) => {
            let split = emit.reshape(value, &[batch, tokens, count, columns / count])?;
            emit.permute(&split, &[0, 2, 1, 3])
        }
        _ => Err(Error::data(format!("{:?} in {count} heads", value.dims))),
    }
}

/// A value [B, H, T, D] as [B, T, H·D].
fn merge_heads(emit: &mut Emit<'_>, value: &Value) -> Result<Value> {
    let turned = emit.permute(value, &[0, 2, 1, 3])?;
    let (batch, tokens) = (turned.dims[0], turned.dims[1]);
    emit.reshape(&turned, &[batch, tokens, turned.len() / batch / tokens])
}

/// Which keys a query sees, apart from masks.
struct Visibility {
    is_causal: bool,
    /// Keys to the left and to the right of the query's own position.
    window: [Option<i32>; 2],
    /// Keys before the first query.
    past: usize,
}

impl Visibility {
    fn of(call: &Call<'_>, past: usize) -> Result<Self> {
        let side = |name: &'static str| -> Result<Option<i32>> {
            let size = call.attributes.int_or(name, -1)?;
            Ok(if size < 0 {
                None
            } else {
                i32::try_from(size).ok()
            })
        };
        Ok(Self {
            is_causal: call.attributes.flag("is_causal", false)?,
            window: [side("left_window_size")?, side("right_window_size")?],
            past,
        })
    }

    /// The last key that a query sees, relative to its position.
    fn right(&self) -> Option<i32> {
        let causal = self.is_causal.then_some(0);
        causal.into_iter().chain(self.window[1]).min()
    }

    /// Truth values of [T, S], or [B, 1, T, S] for items of different lengths; none if every key is
    /// seen.
    fn mask(
        &self,
        emit: &mut Emit<'_>,
        queries: usize,
        keys: usize,
        lengths: Option<Node>,
    ) -> Result<Option<Node>> {
        let (left, right) = (self.window[0], self.right());
        let Some(lengths) = lengths else {
            if left.is_none() && right.is_none() {
                return Ok(None);
            }
            let sees = |query: usize, key: usize| {
                let beyond = key as i64 - (query + self.past) as i64;
                right.is_none_or(|right| beyond <= right.into())
                    && left.is_none_or(|left| beyond >= -i64::from(left))
            };
            let mask: Vec<i32> = (0..queries * keys)
                .map(|place| sees(place / keys, place % keys).into())
                .collect();
            return emit
                .builder
                .integer_constant(&mask, [queries, keys])
                .map(Some);
        };
        let batch = emit.dims(lengths)?[0];
        let lengths = emit.builder.reshape(lengths, [batch, 1, 1, 1])?;
        let places: Vec<i32> = (0..keys as i32).collect();
        let places = emit.builder.integer_constant(&places, [1, 1, 1, keys])?;
        let mut mask = emit.builder.compare(Comparison::Less, places, lengths)?;
        // The places of keys relative to the query's own.
        let own: Vec<i32> = (0..queries as i32)
            .map(|query| query - queries as i32)
            .collect();
        let own = emit.builder.integer_constant(&own, [1, 1, queries, 1])?;
        let own = emit.builder.integer(IntegerOp::Add, own, Some(lengths))?;
        let beyond = emit.builder.integer(IntegerOp::Sub, places, Some(own))?;
        for (bound, comparison) in [
            (right, Comparison::LessEqual),
            (left.map(|left| -left), Comparison::GreaterEqual),
        ] {
            if let Some(bound) = bound {
                let bound = emit.integer(bound)?;
                let is_inside = emit.builder.compare(comparison, beyond, bound)?;
                mask = emit
                    .builder
                    .integer(IntegerOp::And, mask, Some(is_inside))?;
            }
        }
        Ok(Some(mask))
    }
}

/// A mask whose last axis has `keys` places; missing ones are not seen.
fn whole_mask(emit: &mut Emit<'_>, mask: &Value, keys: usize) -> Result<Value> {
    let axis = mask
        .rank()
        .checked_sub(1)
        .ok_or_else(|| Error::data("a mask without dimensions"))?;
    if mask.dims[axis] >= keys || mask.dims[axis] == 1 {
        return Ok(mask.clone());
    }
    let mut dims = mask.dims.clone();
    dims[axis] = keys - mask.dims[axis];
    let fill = if mask.element == ElementType::Bool {
        0.0
    } else {
        f64::NEG_INFINITY
    };
    let rest = Array::wide(mask.element, &dims, vec![fill; dims.iter().product()]).into();
    emit.join(&[mask.clone(), rest], axis)
}

fn attention(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let [q, k, v] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let element = q.element;
    let is_flat = q.rank() == 3;
    let [q, mut k, mut v] = if is_flat {
        let (count, kv) = (heads(call, "q_num_heads")?, heads(call, "kv_num_heads")?);
        [
            split_heads(emit, q, count)?,
            split_heads(emit, k, kv)?,
            split_heads(emit, v, kv)?,
        ]
    } else {
        call.attributes.int("q_num_heads")?;
        call.attributes.int("kv_num_heads")?;
        [q.clone(), k.clone(), v.clone()]
    };
    let mut past = 0;
    if let (Some(past_k), Some(past_v)) = (call.optional(4), call.optional(5)) {
        past = past_k.dims.get(2).copied().unwrap_or(0);
        (k, v) = (
            emit.join(&[past_k.clone(), k], 2)?,
            emit.join(&[past_v.clone(), v], 2)?,
        );
    }
    let fault = || {
        Error::data(format!(
            "queries {:?}, keys {:?}, values {:?}",
            q.dims, k.dims, v.dims
        ))
    };
    let (
        &[batch, count, queries, width],
        &[k_batch, kv, keys, k_width],
        &[v_batch, v_kv, v_keys, v_width],
    ) = (&q.dims[..], &k.dims[..], &v.dims[..])
    else {
        return Err(fault());
    };
    if (k_batch, v_batch, k_width, v_kv, v_keys) != (batch, batch, width, kv, keys)
        || !count.is_multiple_of(kv)
    {
        return Err(fault());
    }
    let scale = call
        .attributes
        .float("scale")?
        .unwrap_or((1.0 / (width as f64).sqrt()) as f32);
    let softcap = call.attributes.float_or("softcap", 0.0)?;
    let mode = call.attributes.int_or("qk_matmul_output_mode", 0)?;
    // Weights are f32 on devices.
    call.attributes.int("softmax_precision")?;
    let visibility = Visibility::of(call, past)?;
    let ends_together = !visibility.is_causal || keys == queries + past;
    let is_plain = call.optional(3).is_none()
        && call.optional(6).is_none()
        && softcap == 0.0
        && visibility.window == [None; 2]
        && !call.wants(3);
    if is_plain
        && ends_together
        && v_width == width
        && width <= MAX_FUSED_WIDTH
        && scale.is_finite()
    {
        let operands = [
            merge_heads(emit, &q)?,
            merge_heads(emit, &k)?,
            merge_heads(emit, &v)?,
        ];
        let operands = [
            emit.node(&operands[0])?,
            emit.node(&operands[1])?,
            emit.node(&operands[2])?,
        ];
        let node = emit.builder.attention(
            operands,
            None,
            Heads {
                count,
                kv,
                width,
                scale,
                causal: visibility.is_causal,
            },
        )?;
        let y = emit.value(node, element)?;
        let y = if is_flat {
            y
        } else {
            split_heads(emit, &y, count)?
        };
        return Ok(vec![y, k, v]);
    }
    // The heads that one head of keys serves are rows of one product.
    let rows = count / kv * queries;
    let [q, k_node, v_node] = [emit.node(&q)?, emit.node(&k)?, emit.node(&v)?];
    let (q, k_rows) = (
        emit.builder.reshape(q, [batch * kv, rows, width])?,
        emit.builder.reshape(k_node, [batch * kv, keys, width])?,
    );
    let scores = emit.builder.matmul(q, k_rows.transpose())?;
    let scores = emit.builder.scale(scores, scale)?;
    let raw = emit
        .builder
        .reshape(scores, [batch, count, queries, keys])?;
    let capped = match softcap {
        0.0 => raw,
        cap => {
            let inner = emit.builder.scale(raw, 1.0 / cap)?;
            let inner = emit.builder.tanh(inner)?;
            emit.builder.scale(inner, cap)?
        }
    };
    let mut biased = capped;
    let lengths = match call.optional(6) {
        Some(lengths) => Some(emit.node(lengths)?),
        None => None,
    };
    let seen = visibility.mask(emit, queries, keys, lengths)?;
    let is_masked = seen.is_some() || call.optional(3).is_some();
    let hidden = emit.number(f32::NEG_INFINITY)?;
    if let Some(mask) = call.optional(3) {
        let mask = whole_mask(emit, mask, keys)?;
        let node = emit.node(&mask)?;
        biased = if mask.element == ElementType::Bool {
            emit.builder.select(node, biased, hidden)?
        } else {
            emit.builder.add(biased, node)?
        };
    }
    if let Some(seen) = seen {
        biased = emit.builder.select(seen, biased, hidden)?;
    }
    let mut weights = emit.builder.softmax(biased, 3)?;
    if is_masked {
        // A query that sees no key gives zeros.
        let greatest = emit.builder.reduce_axes(Reduction::Max, biased, &[3])?;
        let is_blind = emit.builder.compare(Comparison::Equal, greatest, hidden)?;
        let zero = emit.number(0.0)?;
        weights = emit.builder.select(is_blind, zero, weights)?;
    }
    let (flat, v_rows) = (
        emit.builder.reshape(weights, [batch * kv, rows, keys])?,
        emit.builder.reshape(v_node, [batch * kv, keys, v_width])?,
    );
    let y = emit.builder.matmul(flat, v_rows)?;
    let y = emit.shaped(y, element, &[batch, count, queries, v_width])?;
    let y = if is_flat { merge_heads(emit, &y)? } else { y };
    let shown = match mode {
        0 => raw,
        1 => capped,
        2 => biased,
        3 => weights,
        other => return Err(Error::data(format!("qk_matmul_output_mode {other}"))),
    };
    Ok(vec![y, k, v, emit.value(shown, element)?])
}

/// Pairs of columns as the real and imaginary parts of numbers, turned by an angle for each token
/// and pair.
fn rotary_embedding(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let is_interleaved = call.attributes.flag("interleaved", false)?;
    let rotated = call.attributes.int_or("rotary_embedding_dim", 0)?;
    let fault = || Error::data(format!("rotations of {:?}", x.dims));
    // Tokens are axis 1 or 2; the angles repeat over the other one.
    let (split, tokens_axis) = match x.dims[..] {
        [batch, tokens, columns] => {
            let count = heads(call, "num_heads")?;
            if !columns.is_multiple_of(count) {
                return Err(fault());
            }
            (
                emit.reshape(x, &[batch, tokens, count, columns / count])?,
                1,
            )
        }
        [_, _, _, _] => {
            call.attributes.int("num_heads")?;
            (x.clone(), 2)
        }
        _ => return Err(fault()),
    };
    let (batch, tokens, width) = (split.dims[0], split.dims[tokens_axis], split.dims[3]);
    let rotated = if rotated == 0 {
        width
    } else {
        usize::try_from(rotated).unwrap_or(usize::MAX)
    };
    if rotated > width || !rotated.is_multiple_of(2) || rotated == 0 {
        return Err(fault());
    }
    let half = rotated / 2;
    let angles = if tokens_axis == 1 {
        [batch, tokens, 1, half]
    } else {
        [batch, 1, tokens, half]
    };
    let table = |emit: &mut Emit<'_>, index: usize| -> Result<Node> {
        let cache = call.input(index)?;
        let node = emit.node(cache)?;
        let rows = match call.optional(3) {
            Some(positions) => {
                let positions = emit.node(positions)?;
                emit.builder.gather(node, positions)?
            }
            None => node,
        };
        let dims = emit.dims(rows)?;
        if dims[..] != [batch, tokens, half] {
            return Err(Error::data(format!(
                "angles {:?} for {batch} items of {tokens} tokens and {half} pairs",
                cache.dims
            )));
        }
        emit.builder.reshape(rows, shape(&angles)?)
    };
    let (cosines, sines) = (table(emit, 1)?, table(emit, 2)?);
    let node = emit.node(&split)?;
    let turned = emit.builder.slice(node, 3, 0, rotated)?;
    let [a, b, c, _] = <[usize; 4]>::try_from(split.dims.clone()).map_err(|_| fault())?;
    // The parts are neighbours, or halves.
    let pairs = if is_interleaved {
        [a, b, c, half, 2]
    } else {
        [a, b, c, 2, half]
    };
    let part_axis = if is_interleaved { 4 } else { 3 };
    let paired = emit.builder.reshape(turned, pairs)?;
    let part = |emit: &mut Emit<'_>, index: usize| -> Result<Node> {
        let part = emit.builder.slice(paired, part_axis, index, 1usize)?;
        emit.builder.reshape(part, [a, b, c, half])
    };
    let (real, imaginary) = (part(emit, 0)?, part(emit, 1)?);
    let sum =
        |emit: &mut Emit<'_>, by_real: Node, by_imaginary: Node, op: BinaryOp| -> Result<Node> {
            let (a_product, b_product) = (
                emit.builder.mul(real, by_real)?,
                emit.builder.mul(imaginary, by_imaginary)?,
            );
            let sum = emit.builder.binary(op, a_product, b_product)?;
            emit.builder.reshape(
                sum,
                if is_interleaved {
                    [a, b, c, half, 1]
                } else {
                    [a, b, c, 1, half]
                },
            )
        };
    let parts = [
        sum(emit, cosines, sines, BinaryOp::Sub)?,
        sum(emit, sines, cosines, BinaryOp::Add)?,
    ];
    let joined = emit.builder.concat(&parts, part_axis)?;
    let mut y = emit.builder.reshape(joined, [a, b, c, rotated])?;
    if rotated < width {
        let rest = emit.builder.slice(node, 3, rotated, width - rotated)?;
        y = emit.builder.concat(&[y, rest], 3)?;
    }
    Ok(vec![emit.shaped(y, x.element, &x.dims)?])
}

/// A value [B, T, H·D] as [T, B·H, D..], whose tokens are contiguous.
fn tokens_first(
    emit: &mut Emit<'_>,
    value: &Value,
    dims: [usize; 4],
    last: &[usize],
) -> Result<Node> {
    let [batch, tokens, count, width] = dims;
    let split = emit.reshape(value, &[batch, tokens, count, width])?;
    let turned = emit.permute(&split, &[1, 0, 2, 3])?;
    let node = emit.node(&turned)?;
    emit.builder
        .reshape(node, shape(&[&[tokens, batch * count], last].concat())?)
}

/// A state that each token updates and reads.
fn linear_attention(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let [q, k, v] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (count, kv) = (heads(call, "q_num_heads")?, heads(call, "kv_num_heads")?);
    call.attributes.int("chunk_size")?;
    let (is_gated, is_delta) = match call.attributes.string_or("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Error::data(format!("update_rule {other:?}"))),
    };
    let fault = || {
        Error::data(format!(
            "queries {:?}, keys {:?}, values {:?} in {count} and {kv} heads",
            q.dims, k.dims, v.dims
        ))
    };
    let (&[batch, tokens, q_columns], &[_, _, k_columns], &[_, _, v_columns]) =
        (&q.dims[..], &k.dims[..], &v.dims[..])
    else {
        return Err(fault());
    };
    let (width, v_width) = (k_columns / kv, v_columns / kv);
    let fits = k.dims[..2] == q.dims[..2]
        && v.dims[..2] == q.dims[..2]
        && q_columns == count * width
        && k_columns == kv * width
        && v_columns == kv * v_width;
    if !fits || !count.is_multiple_of(kv) {
        return Err(fault());
    }
    if tokens > MAX_STEPS {
        return Err(Error::unsupported(format!(
            "a recurrence over {tokens} tokens; at most {MAX_STEPS} are unrolled"
        )));
    }
    let scale = match call.attributes.float_or("scale", 0.0)? {
        0.0 => (1.0 / (width as f64).sqrt()) as f32,
        scale => scale,
    };
    let (group, states) = (count / kv, batch * kv);
    let q_rows = tokens_first(emit, q, [batch, tokens, kv, group * width], &[group, width])?;
    let k_rows = tokens_first(emit, k, [batch, tokens, kv, width], &[width, 1])?;
    let v_rows = tokens_first(emit, v, [batch, tokens, kv, v_width], &[1, v_width])?;
    let gate = |emit: &mut Emit<'_>, index: usize, what: &str| -> Result<Node> {
        let value = call
            .optional(index)
            .ok_or_else(|| Error::data(format!("{what} is missing")))?;
        let columns = value.dims.last().copied().unwrap_or(0);
        let value = if columns == 1 {
            emit.repeat(value, &[batch, tokens, kv])?
        } else {
            value.clone()
        };
        let each = value.len() / (batch * tokens * kv).max(1);
        if each * batch * tokens * kv != value.len() || each == 0 {
            return Err(Error::data(format!("{what} {:?}", value.dims)));
        }
        tokens_first(emit, &value, [batch, tokens, kv, each], &[each, 1])
    };
    let decay = if is_gated {
        Some(gate(emit, 4, "the decay")?)
    } else {
        None
    };
    let decay = match decay {
        Some(decay) => Some(emit.builder.exp(decay)?),
        None => None,
    };
    let rate = if is_delta {
        Some(gate(emit, 5, "the update rate")?)
    } else {
        None
    };
    let mut state = match call.optional(3) {
        Some(_) => emit.input(call, 3)?,
        None => emit.zeros(ElementType::F32, &[states, width, v_width])?,
    };
    state = emit.builder.reshape(state, [states, width, v_width])?;
    let mut outputs = Vec::new();
    for token in 0..tokens {
        let at = |emit: &mut Emit<'_>, rows: Node| -> Result<Node> {
            let dims = emit.dims(rows)?;
            let row = emit.builder.slice(rows, 0, token, 1usize)?;
            emit.builder.reshape(row, shape(&dims[1..])?)
        };
        let [q, k, mut v] = [at(emit, q_rows)?, at(emit, k_rows)?, at(emit, v_rows)?];
        if let Some(decay) = decay {
            let decay = at(emit, decay)?;
            state = emit.builder.mul(state, decay)?;
        }
        if let Some(rate) = rate {
            let rate = at(emit, rate)?;
            let key = emit.builder.reshape(k, [states, 1, width])?;
            let recalled = emit.builder.matmul(key, state)?;
            let missing = emit.builder.sub(v, recalled)?;
            v = emit.builder.mul(missing, rate)?;
        }
        let update = emit.builder.mul(k, v)?;
        state = emit.builder.add(state, update)?;
        let y = emit.builder.matmul(q, state)?;
        outputs.push(emit.builder.reshape(y, [1, batch, kv * group, v_width])?);
    }
    let joined = if outputs.len() == 1 {
        outputs[0]
    } else {
        emit.builder.concat(&outputs, 0)?
    };
    let scaled = emit.builder.scale(joined, scale)?;
    let turned = emit.builder.permute(scaled, &[1, 0, 2, 3])?;
    let y = emit.shaped(turned, q.element, &[batch, tokens, count * v_width])?;
    let state_element = call.optional(3).map_or(q.element, |state| state.element);
    Ok(vec![
        y,
        emit.shaped(state, state_element, &[batch, kv, width, v_width])?,
    ])
}

/// A convolution of each channel with the tokens up to its own; the last tokens are a state.
fn causal_conv(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, weight) = (call.input(0)?, call.input(1)?);
    let fault = || Error::data(format!("{:?} with weights {:?}", x.dims, weight.dims));
    let (&[batch, channels, tokens], &[weight_channels, 1, size]) = (&x.dims[..], &weight.dims[..])
    else {
        return Err(fault());
    };
    if channels != weight_channels || size == 0 {
        return Err(fault());
    }
    let past_dims = [batch, channels, size - 1];
    let past = match call.optional(3) {
        Some(past) if past.dims == past_dims => past.clone(),
        Some(_) => return Err(fault()),
        None => Array::wide(x.element, &past_dims, vec![0.0; past_dims.iter().product()]).into(),
    };
    let whole = emit.join(&[past, x.clone()], 2)?;
    let (rows, weights) = (emit.node(&whole)?, emit.node(weight)?);
    let weights = emit.builder.reshape(weights, [channels, size])?;
    let mut sum: Option<Node> = None;
    for place in 0..size {
        let part = emit.builder.slice(rows, 2, place, tokens)?;
        let factor = emit.builder.slice(weights, 1, place, 1usize)?;
        let term = emit.builder.mul(part, factor)?;
        sum = Some(match sum {
            Some(sum) => emit.builder.add(sum, term)?,
            None => term,
        });
    }
    let mut y = sum.ok_or_else(fault)?;
    if let Some(bias) = call.optional(2) {
        let bias = emit.reshape(bias, &[channels, 1])?;
        let bias = emit.node(&bias)?;
        y = emit.builder.add(y, bias)?;
    }
    y = match call.attributes.string_or("activation", "none")? {
        "none" => y,
        "silu" | "swish" => emit.builder.activate(y, Activation::Silu)?,
        other => return Err(Error::data(format!("activation {other:?}"))),
    };
    let kept: Vec<usize> = (tokens..tokens + size - 1).collect();
    let state = if kept.is_empty() {
        Array::wide(x.element, &past_dims, Vec::new()).into()
    } else {
        emit.take(&whole, 2, &kept)?
    };
    Ok(vec![emit.value(y, x.element)?, state])
}
