//! Scaled dot-product attention over heads, in one launch and without the matrix of all products in memory: over keys that are
//! all there, or over those that a cache holds so far.

use std::sync::{Arc, LazyLock};

use super::gemm_panels::{Columns, PANEL, Rows, Strip};
use super::native::{NativeCall, for_each_chunk, simd, with_simd};
use super::softmax::exponentials_of_sixteen as exponentials;
use super::{Kernel, Prelude, built_in};
use crate::dtype::DType;

/// The widest head.
pub const MAX_WIDTH: usize = 128;
/// Queries that one workgroup makes.
pub const QUERY_TILE: usize = 16;

/// `y = softmax(scale·q·kᵀ)·v` for each head.
pub static ATTENTION: LazyLock<Arc<Kernel>> = LazyLock::new(|| define("attention_f32", Extra::None));
/// The same with a number added to the products of each key.
pub static ATTENTION_MASK: LazyLock<Arc<Kernel>> = LazyLock::new(|| define("attention_mask_f32", Extra::Mask));
/// The same over as many keys of each item as `spans` [batch, 2] says at run time: keys that were kept before and new ones, the
/// queries being those of the new ones.
pub static ATTENTION_CACHED: LazyLock<Arc<Kernel>> = LazyLock::new(|| define("attention_cached_f32", Extra::Spans));

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ATTENTION.clone(), ATTENTION_MASK.clone(), ATTENTION_CACHED.clone()]
}

/// The fifth binding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    None,
    Mask,
    Spans,
}

/// Keys of an item that are there: those kept and the new ones, inside the cache.
pub(super) const CACHED_KEYS: &str = "min(spans[2u * batch] + spans[2u * batch + 1u], params.keys)";

fn define(name: &str, extra: Extra) -> Arc<Kernel> {
    let builder = Kernel::define(name).prelude(Prelude::Math);
    let builder = builder.read("q", DType::F32).read("k", DType::F32).read("v", DType::F32).write("y", DType::F32);
    let builder = match extra {
        Extra::None => builder,
        Extra::Mask => builder.read("mask", DType::F32),
        Extra::Spans => builder.read("spans", DType::U32),
    };
    let names = ["batch", "queries", "keys", "heads", "group", "width", "q_row", "q_start", "k_row", "k_start", "v_row", "v_start", "causal"];
    let builder = names.into_iter().fold(builder, |builder, name| builder.param(name, DType::U32)).param("scale", DType::F32);
    let term = if extra == Extra::Mask { " + mask[batch * params.keys + key]" } else { "" };
    let counts = if extra == Extra::Spans { [CACHED_KEYS, "spans[2u * batch + 1u]"] } else { ["params.keys", "params.queries"] };
    let body = include_str!("../../kernels/attention_f32.wgsl").replace("MASK_TERM", term);
    let body = body.replace("= KEY_COUNT;", &format!("= {};", counts[0])).replace("= QUERY_COUNT;", &format!("= {};", counts[1]));
    let native: super::NativeFn = match extra {
        Extra::None => |call| attention(call, None, None),
        Extra::Mask => |call| attention(call, Some(call.read(4)), None),
        Extra::Spans => |call| attention(call, None, Some(call.read(4))),
    };
    let flops: super::FlopsFn = |params| 4.0 * [0, 1, 2, 3, 5].into_iter().map(|index| f64::from(params[index])).product::<f64>();
    built_in(builder.body(body).flops(flops), native)
}

/// Queries of a task of the native twin: a whole number of panels.
const QUERY_BLOCK: usize = 64;
/// Keys of one product: their weights for a panel of queries fill an L1.
const KEY_BLOCK: usize = 384;

/// An operand: its elements, columns of a row, and the column where its heads begin.
type Operand<'a> = (&'a [f32], usize, usize);

/// One number for each query of a panel.
type Lanes = [f32; PANEL];

struct Attention<'a> {
    q: Operand<'a>,
    k: Operand<'a>,
    v: Operand<'a>,
    mask: Option<&'a [f32]>,
    spans: Option<&'a [u32]>,
    queries: usize,
    keys: usize,
    heads: usize,
    group: usize,
    width: usize,
    causal: bool,
    scale: f32,
}

fn attention(call: &NativeCall<'_>, mask: Option<&[f32]>, spans: Option<&[u32]>) {
    let y = call.write::<f32>(3);
    let operand = |binding: usize, first: usize| (call.read::<f32>(binding), call.size(first), call.size(first + 1));
    let [batch, queries, keys, heads, group, width] = [0, 1, 2, 3, 4, 5].map(|index| call.size(index));
    let (causal, scale) = (call.u32(12) == 1, call.f32(13));
    let work = Attention { q: operand(0, 6), k: operand(1, 8), v: operand(2, 10), mask, spans, queries, keys, heads, group, width, causal, scale };
    let most_keys = (0..batch).map(|item| work.counts(item)[1]).max().unwrap_or(0);
    let threads = call.threads_for(batch * queries * most_keys * heads * width / 8);
    let row = heads * width;
    let block = if threads > 1 { QUERY_BLOCK.min((batch * queries).div_ceil(2 * threads).next_multiple_of(PANEL)) } else { QUERY_BLOCK };
    for_each_chunk(&mut y[..batch * queries * row], block * row, threads, |index, y| {
        let (first, rows) = (index * block, y.len() / row);
        let mut done = 0;
        // A panel is of one item of the batch.
        while done < rows {
            let (item, query) = ((first + done) / queries, (first + done) % queries);
            let count = (rows - done).min(queries - query).min(PANEL);
            let y = &mut y[done * row..][..count * row];
            (0..heads).for_each(|head| work.panel([item, query, count], head, &mut y[head * width..]));
            done += count;
        }
    });
}

/// Keys of an item: kept and new ones, inside a cache of `most`.
pub(super) fn cached_keys(spans: &[u32], item: usize, most: usize) -> usize {
    (spans[2 * item] as usize + spans[2 * item + 1] as usize).min(most)
}

impl Attention<'_> {
    /// Queries and keys of an item.
    fn counts(&self, item: usize) -> [usize; 2] {
        match self.spans {
            None => [self.queries, self.keys],
            Some(spans) => [spans[2 * item + 1] as usize, cached_keys(spans, item, self.keys)],
        }
    }

    /// One head of up to 16 queries of an item; `y` begins at the head's columns of the first.
    ///
    /// A key's products with all queries lie side by side, so that exponentials, sums and the greatest go through lanes alone, and
    /// the weights are a panel as the product with the values reads it.
    fn panel(&self, [item, query, count]: [usize; 3], head: usize, y: &mut [f32]) {
        let (width, row) = (self.width, self.heads * self.width);
        let at = |operand, first_row, head| head_of(operand, first_row, head, width);
        let mut queries = [0.0f32; MAX_WIDTH * PANEL];
        let queries = &mut queries[..width * PANEL];
        let q = at(self.q, item * self.queries + query, head);
        for lane in 0..count {
            let q = &q[lane * self.q.1..][..width];
            queries.chunks_exact_mut(PANEL).zip(q).for_each(|(to, &q)| to[lane] = q * self.scale);
        }
        let mut sums = [0.0f32; MAX_WIDTH * PANEL];
        let sums = &mut sums[..width * PANEL];
        let (mut greatest, mut totals) = ([f32::NEG_INFINITY; PANEL], [0.0f32; PANEL]);
        let mut weights = [0.0f32; KEY_BLOCK * PANEL];
        let [queries_there, keys_there] = self.counts(item);
        let seen = |query: usize| match self.causal {
            true => (keys_there + query + 1).saturating_sub(queries_there).min(keys_there),
            false => keys_there,
        };
        let last_seen = seen(query + count - 1);
        for first_key in (0..last_seen).step_by(KEY_BLOCK) {
            let keys = KEY_BLOCK.min(last_seen - first_key);
            let weights = &mut weights[..keys * PANEL];
            let kv_row = item * self.keys + first_key;
            let k = Rows { data: at(self.k, kv_row, head / self.group), apart: self.k.1 };
            with_simd(Strip { a: k, b: queries, strip: weights, onto: false });
            if self.causal {
                for (key, weights) in weights.chunks_exact_mut(PANEL).enumerate().skip(seen(query).saturating_sub(first_key)) {
                    let hidden = (0..PANEL).take_while(|lane| seen(query + lane) <= first_key + key).count();
                    weights[..hidden].fill(f32::NEG_INFINITY);
                }
            }
            let mask = self.mask.map(|mask| &mask[kv_row..][..keys]);
            let shrink = weigh(weights, mask, &mut greatest, &mut totals);
            if first_key > 0 {
                sums.chunks_exact_mut(PANEL).for_each(|sums| sums.iter_mut().zip(shrink).for_each(|(sum, shrink)| *sum *= shrink));
            }
            let v = Columns { data: at(self.v, kv_row, head / self.group), apart: self.v.1 };
            with_simd(Strip { a: v, b: weights, strip: sums, onto: first_key > 0 });
        }
        for lane in 0..count {
            // Of a query that saw nothing 0 · ∞, which is NaN.
            let inverse = 1.0 / totals[lane];
            let sums = sums.chunks_exact(PANEL).map(|sums| sums[lane]);
            y[lane * row..][..width].iter_mut().zip(sums).for_each(|(y, sum)| *y = sum * inverse);
        }
    }
}

/// What an operand holds from a row's columns of a head on.
fn head_of((data, columns, start): Operand<'_>, first_row: usize, head: usize, width: usize) -> &[f32] {
    &data[first_row * columns + start + head * width..]
}

/// Makes products into weights by the greatest so far of each lane; gives what earlier sums are to be multiplied with.
fn weigh(weights: &mut [f32], mask: Option<&[f32]>, greatest: &mut Lanes, totals: &mut Lanes) -> Lanes {
    simd(
        #[inline(always)]
        || {
            let weights = weights.as_chunks_mut::<PANEL>().0;
            if let Some(mask) = mask {
                for (weights, &mask) in weights.iter_mut().zip(mask) {
                    weights.iter_mut().for_each(|weight| *weight += mask);
                }
            }
            let mut grown = *greatest;
            for weights in &*weights {
                for lane in 0..PANEL {
                    grown[lane] = if weights[lane] > grown[lane] { weights[lane] } else { grown[lane] };
                }
            }
            // A lane that has seen nothing yet takes its products from 0: its weights are then 0 and no infinities are subtracted.
            let base = grown.map(|grown| if grown == f32::NEG_INFINITY { 0.0 } else { grown });
            let mut sums = [0.0f32; PANEL];
            for weights in weights {
                let made = exponentials(std::array::from_fn(|lane| weights[lane] - base[lane]));
                for lane in 0..PANEL {
                    sums[lane] += made[lane];
                }
                *weights = made;
            }
            let shrink = exponentials(std::array::from_fn(|lane| greatest[lane] - base[lane]));
            for lane in 0..PANEL {
                totals[lane] = totals[lane] * shrink[lane] + sums[lane];
            }
            *greatest = grown;
            shrink
        },
    )
}
