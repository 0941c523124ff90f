//! Attention of one query for each item over a cache, as every generated token needs it. All time
//! goes into reading keys and values once.

use std::sync::{Arc, LazyLock};

use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, simd, with_simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::attention::cache::span;
use crate::operation::attention::cache_codes::MAX_WIDTH;
use crate::operation::attention::cache_format::{BLOCK, CacheFormats};
use crate::operation::attention::cache_read::{self, Caches};
use crate::operation::attention::forward::{KvSource, Operand, Plain};
use crate::operation::product::dots::dots;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{Rows, StridedPanel, Strip, panels_per_pass};
use crate::operation::reduce::softmax::exponentials_of_sixteen as exponentials;
use crate::operation::{built_in, reduce};

kernel_arguments! {
    /// `y = softmax(scale·q·kᵀ)·v` for each head of one query, over the number of keys that `spans`
    /// gives at run time.
    pub(crate) struct DecodeArguments {
        read q: f32, read k: f32, read v: f32, write y: f32, read spans: u32;
        batch: usize, keys: usize, heads: usize, group: usize, width: usize, q_row: usize, q_start: usize, lanes: usize, scale: f32
    }

    /// The same over caches in other formats than f32. `k_new` and `v_new` are the run's own rows,
    /// next to codes; `k_row` to `v_start` are their places.
    pub(crate) struct CachedDecodeArguments {
        read q: f32, read k: u32, read v: u32, write y: f32, read spans: u32, optional k_new: f32, optional v_new: f32;
        batch: usize, keys: usize, heads: usize, group: usize, width: usize, q_row: usize, q_start: usize, lanes: usize, scale: f32,
        queries: usize, k_row: usize, k_start: usize, v_row: usize, v_start: usize,
        columns: usize, k_words: usize, v_words: usize, k_full: usize, v_full: usize
    }
}

pub(crate) static ATTENTION_DECODE: LazyLock<TypedKernel<DecodeArguments>> = LazyLock::new(|| {
    let builder = DecodeArguments::define("attention_decode_f32")
        .prelude(Prelude::Math)
        .prelude(Prelude::Tree);
    let first = "batch * params.keys * columns + head / params.group * params.width";
    let builder = builder.body(body_with([
        first,
        "k[first + key * columns + i]",
        "v[first + (block + i) * columns + column]",
    ]));
    built_in(
        builder.loops(
            |DecodeArguments {
                 batch,
                 keys,
                 heads,
                 width,
                 ..
             },
             groups| loops([batch, keys, heads, width], groups),
        ),
        native,
    )
});

static CACHED: LazyLock<[TypedKernel<CachedDecodeArguments>; 4]> = LazyLock::new(|| {
    [
        built_in(define_cached(CacheFormats::F16), |call, arguments| {
            cached_native(call, arguments, CacheFormats::F16)
        }),
        built_in(define_cached(CacheFormats::Q8), |call, arguments| {
            cached_native(call, arguments, CacheFormats::Q8)
        }),
        built_in(define_cached(CacheFormats::K8V4), |call, arguments| {
            cached_native(call, arguments, CacheFormats::K8V4)
        }),
        built_in(define_cached(CacheFormats::Q4), |call, arguments| {
            cached_native(call, arguments, CacheFormats::Q4)
        }),
    ]
});

/// The kernel over caches of a pair of formats; none for f32.
pub(crate) fn cached(formats: CacheFormats) -> Option<&'static TypedKernel<CachedDecodeArguments>> {
    cache_read::index(formats).map(|index| &CACHED[index])
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    std::iter::once(&**ATTENTION_DECODE)
        .chain(CACHED.iter().map(|kernel| &**kernel))
        .cloned()
        .collect()
}

/// Iterations over 256 keys for each head; a cache may be full.
fn loops(sizes: [usize; 4], groups: u32) -> u64 {
    let [batch, keys, heads, width] = sizes.map(|size| size as u64);
    crate::kernel::loops_over(
        batch.saturating_mul(heads),
        groups,
        keys.div_ceil(256) * (width + 560) + 24,
    )
}

/// The body with how both caches are read.
fn body_with([first, key, value]: [&str; 3]) -> String {
    let body = include_str!("attention_decode_f32.wgsl").replace(
        "= KEY_COUNT;",
        &format!("= {};", cache_read::counts("1u")[0]),
    );
    body.replace("= FIRST_AT;", &format!("= {first};"))
        .replace("* KEY_HERE;", &format!("* {key};"))
        .replace("* VALUE_HERE;", &format!("* {value};"))
}

fn define_cached(formats: CacheFormats) -> KernelBuilder<CachedDecodeArguments> {
    let builder = cache_read::with_preludes(
        CachedDecodeArguments::define(format!("attention_decode_{formats}")),
        formats,
    )
    .prelude(Prelude::Tree);
    let reads = [
        "head / params.group * params.width",
        "read_k(batch, key, first + i)",
        "read_v(batch, block + i, first + column)",
    ];
    builder
        .body(body_with(reads) + &cache_read::functions(formats))
        .loops(
            |CachedDecodeArguments {
                 batch,
                 keys,
                 heads,
                 width,
                 ..
             },
             groups| loops([batch, keys, heads, width], groups),
        )
}

/// Maximum query heads that are computed together: each row of keys and values is read once for all
/// of them.
const HEADS: usize = 8;

fn native(call: &NativeCall<'_>, arguments: DecodeArguments<Slices<'_>>) {
    let DecodeArguments {
        q,
        k,
        v,
        y,
        spans,
        batch,
        keys,
        heads,
        group,
        width,
        q_row,
        q_start,
        scale,
        ..
    } = arguments;
    let columns = heads / group * width;
    let work = Decode {
        q: (q, q_row, q_start),
        spans,
        batch,
        keys,
        heads,
        group,
        width,
        scale,
    };
    decode(call, &work, y, |item| {
        [k, v].map(|data| Plain((&data[item * keys * columns..], columns, 0)))
    });
}

fn cached_native(
    call: &NativeCall<'_>,
    arguments: CachedDecodeArguments<Slices<'_>>,
    formats: CacheFormats,
) {
    let CachedDecodeArguments {
        q,
        k,
        v,
        y,
        spans,
        k_new,
        v_new,
        batch,
        keys,
        heads,
        group,
        width,
        q_row,
        q_start,
        scale,
        ..
    } = arguments;
    let CachedDecodeArguments {
        queries,
        k_row,
        k_start,
        v_row,
        v_start,
        columns,
        k_words,
        v_words,
        ..
    } = arguments;
    let rows = [(k_new, k_row, k_start), (v_new, v_row, v_start)];
    let caches = Caches {
        formats,
        words: [(k, k_words), (v, v_words)],
        rows,
        spans,
        queries,
        columns,
        keys,
    };
    let work = Decode {
        q: (q, q_row, q_start),
        spans,
        batch,
        keys,
        heads,
        group,
        width,
        scale,
    };
    decode(call, &work, y, |item| {
        [0, 1].map(|side| caches.side(side, item))
    });
}

/// One query for each item over the keys that `spans` counts, at most `keys`.
struct Decode<'a> {
    q: Operand<'a>,
    spans: &'a [u32],
    batch: usize,
    keys: usize,
    heads: usize,
    group: usize,
    width: usize,
    scale: f32,
}

fn decode<S: KvSource>(
    call: &NativeCall<'_>,
    work: &Decode<'_>,
    y: &mut [f32],
    sources: impl Fn(usize) -> [S; 2] + Sync,
) {
    let &Decode {
        q: (q, q_row, q_start),
        spans,
        batch,
        keys: most,
        heads,
        group,
        width,
        scale,
    } = work;
    let keys: usize = (0..batch).map(|item| span(spans, item, [1, most])[1]).sum();
    // A multiply-add is an eighth of a streamed element: each is loaded for one.
    let threads = call.threads_for(keys * heads * width / 8);
    // As many heads together as share keys and values, unless threads would be idle.
    let serves =
        |together: &usize| group.is_multiple_of(*together) && batch * heads / together >= threads;
    let together = (1..=group.min(HEADS)).rev().find(serves).unwrap_or(1);
    for_each_chunk(
        &mut y[..batch * heads * width],
        together * width,
        threads,
        |index, y| {
            let (item, head) = (index * together / heads, index * together % heads);
            let q = &q[item * q_row + q_start + head * width..][..together * width];
            let (sources, mut room) = (sources(item), S::workspace());
            let keys = span(spans, item, [1, most])[1];
            decode_heads(
                q,
                (&sources, &mut room),
                [keys, head / group * width, width],
                scale,
                y,
            );
        },
    );
}

/// Up to eight heads of one query that share keys and values, whose columns begin at `column`.
fn decode_heads<S: KvSource>(
    q: &[f32],
    ([k, v], room): (&[S; 2], &mut S::Workspace),
    [keys, column, width]: [usize; 3],
    scale: f32,
    y: &mut [f32],
) {
    let (heads, columns) = (q.len() / width, [column, width]);
    let mut query = [0.0f32; HEADS * MAX_WIDTH];
    let query = &mut query[..q.len()];
    query.iter_mut().zip(q).for_each(|(to, &q)| *to = q * scale);
    let mut sums = Sums {
        width,
        heads,
        strips: [0.0; HEADS * MAX_WIDTH],
    };
    let (mut greatest, mut totals) = ([f32::NEG_INFINITY; HEADS], [0.0f32; HEADS]);
    for block in (0..keys).step_by(BLOCK) {
        let count = BLOCK.min(keys - block);
        // Positions beyond the last key have weight 0.
        let mut weights = [[f32::NEG_INFINITY; BLOCK]; HEADS];
        if !S::PREFETCHES || block == 0 {
            v.ask([block, count], columns);
        }
        let (rows, stride) = k.rows([block, count], columns, room);
        for (query, weights) in query.chunks_exact(width).zip(&mut weights) {
            dots(query, rows, stride, &mut weights[..count]);
        }
        if !S::PREFETCHES {
            k.ask([block + count, BLOCK.min(keys - block - count)], columns);
        }
        let shrinks = simd(
            #[inline(always)]
            || weigh(&mut weights[..heads], &mut greatest, &mut totals),
        );
        let (rows, stride) = v.rows([block, count], columns, room);
        sums.rescale(&shrinks);
        sums.add(
            weights[..heads].as_flattened(),
            StridedPanel {
                data: rows,
                stride,
                count,
            },
        );
    }
    sums.write(&totals.map(|total| 1.0 / total), y);
}

/// Converts each head's products to weights by the maximum so far; returns the factor of its
/// earlier sums.
#[inline(always)]
fn weigh(
    weights: &mut [[f32; BLOCK]],
    greatest: &mut [f32; HEADS],
    totals: &mut [f32; HEADS],
) -> [f32; HEADS] {
    let mut shrinks = [0.0; HEADS];
    for (head, weights) in weights.iter_mut().enumerate() {
        let mut lanes = [greatest[head]; PANEL];
        for weights in weights.as_chunks::<PANEL>().0 {
            // A NaN is not greater, but its own weight is NaN and so is the sum.
            lanes = std::array::from_fn(|lane| {
                if weights[lane] > lanes[lane] {
                    weights[lane]
                } else {
                    lanes[lane]
                }
            });
        }
        let grown = reduce::fold_tree(lanes, |a, b| if b > a { b } else { a });
        let mut parts = [0.0f32; PANEL];
        for weights in weights.as_chunks_mut::<PANEL>().0 {
            *weights = exponentials(std::array::from_fn(|lane| weights[lane] - grown));
            parts = std::array::from_fn(|lane| parts[lane] + weights[lane]);
        }
        let shrink = exponentials([greatest[head] - grown; PANEL])[0];
        totals[head] = totals[head] * shrink + reduce::fold_tree(parts, |a, b| a + b);
        (greatest[head], shrinks[head]) = (grown, shrink);
    }
    shrinks
}

/// Sums of values: strips of as many columns as fit the registers, each for all heads one after
/// another.
struct Sums {
    width: usize,
    heads: usize,
    strips: [f32; HEADS * MAX_WIDTH],
}

impl Sums {
    /// The strips and the first column of each.
    fn each(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        let step = panels_per_pass() * PANEL;
        self.strips[..self.heads * self.width]
            .chunks_mut(step * self.heads)
            .enumerate()
            .map(move |(index, strip)| (index * step, strip))
    }

    fn rescale(&mut self, shrinks: &[f32; HEADS]) {
        let heads = self.heads;
        for (_, strip) in self.each() {
            for (sums, shrink) in strip.chunks_exact_mut(strip.len() / heads).zip(shrinks) {
                sums.iter_mut().for_each(|sum| *sum *= shrink);
            }
        }
    }

    /// Adds weighted rows; the weights of each head are a block.
    fn add(&mut self, weights: &[f32], rows: StridedPanel<'_>) {
        let (heads, a) = (
            self.heads,
            Rows {
                data: weights,
                stride: BLOCK,
            },
        );
        for (first, strip) in self.each() {
            let columns = strip.len() / heads;
            let panel = |index: usize| StridedPanel {
                data: &rows.data[first + index * PANEL..],
                ..rows
            };
            match (columns / PANEL, columns % PANEL) {
                (2, 0) => with_simd(Strip::alone(a, [panel(0), panel(1)], strip, true)),
                (1, 0) => with_simd(Strip::alone(a, [panel(0)], strip, true)),
                _ => {
                    for (sums, weights) in
                        strip.chunks_exact_mut(columns).zip(weights.chunks(BLOCK))
                    {
                        for (row, &weight) in weights[..rows.count].iter().enumerate() {
                            let row = &rows.data[row * rows.stride + first..][..columns];
                            sums.iter_mut()
                                .zip(row)
                                .for_each(|(sum, &value)| *sum = weight.mul_add(value, *sum));
                        }
                    }
                }
            }
        }
    }

    /// Writes the heads one after another, each times its own factor.
    fn write(&mut self, factors: &[f32; HEADS], y: &mut [f32]) {
        let (width, heads) = (self.width, self.heads);
        for (first, strip) in self.each() {
            let columns = strip.len() / heads;
            for ((sums, factor), y) in strip
                .chunks_exact(columns)
                .zip(factors)
                .zip(y.chunks_exact_mut(width))
            {
                y[first..][..columns]
                    .iter_mut()
                    .zip(sums)
                    .for_each(|(y, &sum)| *y = sum * factor);
            }
        }
    }
}
