//! The float64 evaluator's operations on sequences: plain, readable loops.

use std::collections::BTreeMap;

use tectum::operation::attention::cache_reference::ReferenceCache;
use tectum::operation::product::panel_format::PANEL;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormat, CacheFormats};

use super::tensor::Tensor;
use super::{Heads, Node, Operation, Shape};

/// Operations that move elements, normalise rows, or compute attention.
pub(super) fn compute_network(operation: &Operation, shape: Shape, values: &BTreeMap<Node, Tensor>) -> Tensor {
    match operation {
        Operation::LinearPanels { a, b, format, tail } => {
            let (a, b) = (&values[a], &values[b]);
            let ([_, k], [_, n]) = (a.shape.matrix(), shape.matrix());
            // Words are given as their numbers; rows stay unquantized, where a device converts them to codes.
            let words: Vec<u32> = if *format == PanelFormat::F32 { Vec::new() } else { b.data.iter().map(|word| *word as u32).collect() };
            let coded = if words.is_empty() { Vec::new() } else { format.unpack(&words, [k, n]) };
            Tensor::from_fn(shape, |place| {
                let (row, col) = (place / n, place % n);
                let weight = |i: usize| coded.get(i * n + col).map_or_else(|| b.data[(col / PANEL * k + i) * PANEL + col % PANEL], |weight| f64::from(*weight));
                let product: f64 = (0..k).map(|i| a.data[row * k + i] * weight(i)).sum();
                let bias = tail.bias.map_or(0.0, |node| values[&node].data[col]);
                let residual = tail.residual.map_or(0.0, |node| values[&node].data[place]);
                tail.activation.reference(product + bias) + residual
            })
        }
        Operation::Gather { table, indices } => {
            let (table, indices) = (&values[table], &values[indices]);
            let [rows, cols] = table.shape.matrix();
            Tensor::from_fn(shape, |place| {
                let row = indices.data[place / cols] as usize;
                if row < rows { table.data[row * cols + place % cols] } else { 0.0 }
            })
        }
        Operation::Reshape { x } => Tensor { shape, data: values[x].data.clone() },
        Operation::Permute { x, order } => {
            let x = &values[x];
            let (to, from) = (shape.strides(), x.shape.strides());
            let sizes = shape.fixed();
            let source = |place: usize| (0..sizes.len()).map(|axis| place / to[axis] % sizes[axis] * from[order[axis]]).sum::<usize>();
            Tensor::from_fn(shape, |place| x.data[source(place)])
        }
        Operation::Slice { x, axis, start } => {
            let x = &values[x];
            let ([_, len, inner], [_, whole, _]) = (shape.around(*axis), x.shape.around(*axis));
            Tensor::from_fn(shape, |place| {
                let (outer, at) = (place / (len * inner), place / inner % len);
                x.data[(outer * whole + start + at) * inner + place % inner]
            })
        }
        Operation::Concat { parts, axis } => concat(parts, *axis, shape, values),
        Operation::Softmax { x } => by_rows(&values[x], |row| {
            let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|x| *x = (*x - greatest).exp());
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|x| *x /= sum);
        }),
        Operation::LayerNorm { x, gain, bias, epsilon } => by_rows(&values[x], |row| {
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            let inverse = 1.0 / (variance + f64::from(*epsilon)).sqrt();
            let vectors = values[gain].data.iter().zip(&values[bias].data);
            row.iter_mut().zip(vectors).for_each(|(x, (gain, bias))| *x = (*x - mean) * inverse * gain + bias);
        }),
        Operation::RmsNorm { x, gain, epsilon } => by_rows(&values[x], |row| {
            let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let inverse = 1.0 / (square + f64::from(*epsilon)).sqrt();
            row.iter_mut().zip(&values[gain].data).for_each(|(x, gain)| *x *= inverse * gain);
        }),
        Operation::Attention { q, k, v, mask, heads } => {
            let (keys, queries) = (values[&k.node].shape.fixed()[1], shape.fixed()[1]);
            let seen = |_: usize, query: usize| if heads.causal { (keys + query + 1).saturating_sub(queries) } else { keys };
            let operands = [q, k, v].map(|operand| (&values[&operand.node], operand.start));
            attention(operands, mask.map(|mask| &values[&mask]), *heads, shape, seen)
        }
        Operation::AttentionCached { q, k, v, caches, formats, spans, heads } => {
            let operands = [q, k, v].map(|operand| (&values[&operand.node], operand.start));
            attention_cached(operands, (caches.map(|cache| &values[&cache]), *formats), &values[spans], *heads, shape)
        }
        Operation::Rotary { x, positions, heads, base } => rotary(&values[x], &values[positions], *heads, *base),
        _ => unreachable!("invariant: the caller has fed values and computes the others"),
    }
}

fn by_rows(x: &Tensor, mut f: impl FnMut(&mut [f64])) -> Tensor {
    let mut y = x.clone();
    y.data.chunks_mut(x.shape.matrix()[1]).for_each(&mut f);
    y
}

fn concat(parts: &[Node], axis: usize, shape: Shape, values: &BTreeMap<Node, Tensor>) -> Tensor {
    let [outer, ..] = shape.around(axis);
    let mut data = Vec::with_capacity(shape.len());
    for index in 0..outer {
        for part in parts {
            let part = &values[part].data;
            let chunk = part.len() / outer;
            data.extend_from_slice(&part[index * chunk..][..chunk]);
        }
    }
    Tensor { shape, data }
}

/// An operand of attention: a value, and the first column of its heads.
type Operand<'a> = (&'a Tensor, usize);

fn attention([q, k, v]: [Operand<'_>; 3], mask: Option<&Tensor>, heads: Heads, shape: Shape, seen: impl Fn(usize, usize) -> usize) -> Tensor {
    let [batch, queries, columns] = [0, 1, 2].map(|axis| shape.fixed()[axis]);
    let keys = k.0.shape.fixed()[1];
    let at = |(value, start): Operand<'_>, item: usize, row: usize, column: usize| {
        let sizes = value.shape.fixed();
        value.data[(item * sizes[1] + row) * sizes[2] + start + column]
    };
    let mut data = Vec::with_capacity(batch * queries * columns);
    for (item, query) in (0..batch).flat_map(|item| (0..queries).map(move |query| (item, query))) {
        for head in 0..heads.count {
            let kv_head = head / (heads.count / heads.kv);
            let score = |key: usize| {
                let column = |i: usize| at(q, item, query, head * heads.width + i) * at(k, item, key, kv_head * heads.width + i);
                let masked = mask.map_or(0.0, |mask| mask.data[item * keys + key]);
                f64::from(heads.scale) * (0..heads.width).map(column).sum::<f64>() + masked
            };
            let scores: Vec<f64> = (0..seen(item, query)).map(score).collect();
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
            let total: f64 = weights.iter().sum();
            for i in 0..heads.width {
                let sum: f64 = weights.iter().enumerate().map(|(key, weight)| weight * at(v, item, key, kv_head * heads.width + i)).sum();
                data.push(sum / total);
            }
        }
    }
    Tensor { shape, data }
}

/// Attention to the caches after the new keys and values are written. A cache is given as the values that were written there;
/// the operation rounds them to the format.
fn attention_cached([q, k, v]: [Operand<'_>; 3], (caches, formats): ([&Tensor; 2], CacheFormats), spans: &Tensor, heads: Heads, shape: Shape) -> Tensor {
    let (most, queries) = (caches[0].shape.fixed()[1], k.0.shape.fixed()[1]);
    let span = |item: usize| [(0, most), (1, queries)].map(|(index, most)| (spans.data[2 * item + index] as usize).min(most));
    let with_new = |side: usize, (new, start): Operand<'_>| {
        let cache = kept_by(formats.each()[side], side == 0, caches[side], span);
        let (sizes, from) = (cache.shape.fixed(), new.shape.fixed());
        Tensor::from_fn(cache.shape, |place| {
            let (item, row, column) = (place / (sizes[1] * sizes[2]), place / sizes[2] % sizes[1], place % sizes[2]);
            let [kept, count] = span(item);
            match row.checked_sub(kept).filter(|t| *t < count) {
                Some(t) => new.data[(item * from[1] + t) * from[2] + start + column],
                None => cache.data[place],
            }
        })
    };
    let (keys, values) = (with_new(0, k), with_new(1, v));
    // Halves include the new rows when read; codes are made afterwards.
    let with_all = |cache: Tensor, is_keys: bool| match formats {
        CacheFormats::F16 => kept_by(CacheFormat::F16, is_keys, &cache, |item| [span(item).iter().sum(), 0]),
        _ => cache,
    };
    let (keys, values) = (with_all(keys, true), with_all(values, false));
    let seen = |item: usize, query: usize| {
        let [kept, count] = span(item);
        (kept + query + 1).min(kept + count).min(most)
    };
    attention([q, (&keys, 0), (&values, 0)], None, heads, shape, seen)
}

/// The rows written to a cache, rounded to its format.
fn kept_by(format: CacheFormat, is_keys: bool, cache: &Tensor, span: impl Fn(usize) -> [usize; 2]) -> Tensor {
    let sizes = cache.shape.fixed();
    let [rows, columns] = [sizes[1], sizes[2]];
    let mut held = cache.clone();
    if format == CacheFormat::F32 {
        return held;
    }
    for (item, data) in held.data.chunks_mut(rows * columns).enumerate() {
        let kept = span(item)[0].min(rows);
        let mut words = ReferenceCache::new(format, is_keys, [rows, columns], vec![0; format.words(rows, columns)]);
        words.add(0, &data[..kept * columns]);
        data[..kept * columns].iter_mut().enumerate().for_each(|(at, value)| *value = words.value(kept, at / columns, at % columns));
    }
    held
}

fn rotary(x: &Tensor, positions: &Tensor, heads: usize, base: f32) -> Tensor {
    let columns = x.shape.matrix()[1];
    let half = columns / heads / 2;
    Tensor::from_fn(x.shape, |place| {
        let (row, column) = (place / columns, place % columns);
        let (in_head, is_second) = (column % (2 * half), column % (2 * half) >= half);
        let pair = (in_head % half) as f64;
        let position = positions.data[row % positions.data.len()];
        let (sine, cosine) = (position * f64::from(base).powf(-pair / half as f64)).sin_cos();
        let (here, other) = (x.data[place], x.data[if is_second { place - half } else { place + half }]);
        if is_second { here * cosine + other * sine } else { here * cosine - other * sine }
    })
}
