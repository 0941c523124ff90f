//! Scaled dot-product attention over heads, in one launch and without the matrix of all products in
//! memory: over keys that are all present, or over those that a cache holds so far.

use std::sync::{Arc, LazyLock};

use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, prefetch_line_l2, simd, with_simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::attention::cache::span;
use crate::operation::attention::cache_codes::{CachedRows, MAX_WIDTH};
use crate::operation::attention::cache_format::CacheFormats;
use crate::operation::attention::cache_read::{self, Caches};
use crate::operation::built_in;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{
    CacheLine, ColumnMajor, MAX_PANELS_PER_PASS, Rows, StridedPanel, Strip, panels_per_pass,
};
use crate::operation::product::transpose_16x16::{TransposeIn, TransposeOut};
use crate::operation::reduce::softmax::exponentials_of_sixteen as exponentials;

kernel_arguments! {
    /// `y = softmax(scale·q·kᵀ)·v` for each head. `mask` [batch, keys] is added to the products of
    /// each key. With `spans` [batch, 2] the number of keys of each item is given at run time, keys
    /// kept before and new ones; the queries are those of the new ones.
    pub(crate) struct AttentionArguments {
        read q: f32, read k: f32, read v: f32, write y: f32, optional mask: f32, optional spans: u32;
        batch: usize, queries: usize, keys: usize, heads: usize, group: usize, width: usize,
        q_row: usize, q_start: usize, k_row: usize, k_start: usize, v_row: usize, v_start: usize, causal: u32, scale: f32
    }

    /// The same over caches in other formats than f32. `k_new` and `v_new` are the run's own rows,
    /// next to codes; `k_row` to `v_start` are their places.
    pub(crate) struct CachedAttentionArguments {
        read q: f32, read k: u32, read v: u32, write y: f32, read spans: u32, optional k_new: f32, optional v_new: f32;
        batch: usize, queries: usize, keys: usize, heads: usize, group: usize, width: usize,
        q_row: usize, q_start: usize, k_row: usize, k_start: usize, v_row: usize, v_start: usize, causal: u32, scale: f32,
        columns: usize, k_words: usize, v_words: usize, k_full: usize, v_full: usize
    }
}

/// Queries that one workgroup computes.
pub const QUERY_TILE: usize = 16;

pub(crate) static ATTENTION: LazyLock<TypedKernel<AttentionArguments>> =
    LazyLock::new(|| built_in(define("attention_f32", ""), plain));
pub(crate) static ATTENTION_MASK: LazyLock<TypedKernel<AttentionArguments>> = LazyLock::new(|| {
    built_in(
        define("attention_mask_f32", " + mask[batch * params.keys + key]").with("mask"),
        plain,
    )
});
pub(crate) static ATTENTION_CACHED: LazyLock<TypedKernel<AttentionArguments>> =
    LazyLock::new(|| {
        let builder = AttentionArguments::define("attention_cached_f32").with("spans");
        built_in(
            with_body(builder, "", cache_read::counts("params.queries")),
            plain,
        )
    });

static CACHED: LazyLock<[TypedKernel<CachedAttentionArguments>; 4]> = LazyLock::new(|| {
    [
        built_in(define_cached(CacheFormats::F16), |call, arguments| {
            cached_twin(call, arguments, CacheFormats::F16)
        }),
        built_in(define_cached(CacheFormats::Q8), |call, arguments| {
            cached_twin(call, arguments, CacheFormats::Q8)
        }),
        built_in(define_cached(CacheFormats::K8V4), |call, arguments| {
            cached_twin(call, arguments, CacheFormats::K8V4)
        }),
        built_in(define_cached(CacheFormats::Q4), |call, arguments| {
            cached_twin(call, arguments, CacheFormats::Q4)
        }),
    ]
});

/// The kernel over caches of a pair of formats; none for f32.
pub(crate) fn cached(
    formats: CacheFormats,
) -> Option<&'static TypedKernel<CachedAttentionArguments>> {
    cache_read::index(formats).map(|index| &CACHED[index])
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [&ATTENTION, &ATTENTION_MASK, &ATTENTION_CACHED]
        .into_iter()
        .map(|kernel| &***kernel)
        .chain(CACHED.iter().map(|kernel| &**kernel))
        .cloned()
        .collect()
}

fn define(name: &str, mask_term: &str) -> KernelBuilder<AttentionArguments> {
    with_body(
        AttentionArguments::define(name),
        mask_term,
        ["params.keys", "params.queries"].map(str::to_owned),
    )
}

fn with_body(
    builder: KernelBuilder<AttentionArguments>,
    mask_term: &str,
    counts: [String; 2],
) -> KernelBuilder<AttentionArguments> {
    let body = body_with(
        mask_term,
        counts,
        [
            "(batch * params.keys + key) * params.k_row + params.k_start + kv_head * params.width",
            "k[k_at + i]",
            "(batch * params.keys + first_key + i) * params.v_row + params.v_start + kv_head * params.width",
            "v[v_at + column]",
        ],
    );
    builder
        .prelude(Prelude::Math)
        .body(body)
        .flops(
            |AttentionArguments {
                 batch,
                 queries,
                 keys,
                 heads,
                 width,
                 ..
             }| flops([batch, queries, keys, heads, width]),
        )
        .loops(
            |AttentionArguments {
                 batch,
                 queries,
                 keys,
                 heads,
                 width,
                 ..
             },
             groups| loops([batch, queries, keys, heads, width], groups),
        )
}

/// Iterations over 16 keys for each tile of queries; a cache may be full.
fn loops(sizes: [usize; 5], groups: u32) -> u64 {
    let [batch, queries, keys, heads, width] = sizes.map(|size| size as u64);
    let tiles = batch
        .saturating_mul(heads)
        .saturating_mul(queries.div_ceil(QUERY_TILE as u64));
    crate::kernel::loops_over(
        tiles,
        groups,
        keys.div_ceil(16) * (width + 181) + width + 24,
    )
}

fn flops(sizes: [usize; 5]) -> f64 {
    4.0 * sizes.map(|size| size as f64).iter().product::<f64>()
}

/// The body with a term of the mask, the counts of keys and queries, and how both caches are read.
fn body_with(
    mask_term: &str,
    counts: [String; 2],
    [key_at, key, value_at, value]: [&str; 4],
) -> String {
    let body = include_str!("attention_f32.wgsl").replace("MASK_TERM", mask_term);
    let body = body
        .replace("= KEY_COUNT;", &format!("= {};", counts[0]))
        .replace("= QUERY_COUNT;", &format!("= {};", counts[1]));
    let body = body
        .replace("= KEY_AT;", &format!("= {key_at};"))
        .replace("* KEY_HERE;", &format!("* {key};"));
    body.replace("= VALUE_AT;", &format!("= {value_at};"))
        .replace("* VALUE_HERE;", &format!("* {value};"))
}

fn define_cached(formats: CacheFormats) -> KernelBuilder<CachedAttentionArguments> {
    let builder = cache_read::with_preludes(
        CachedAttentionArguments::define(format!("attention_cached_{formats}")),
        formats,
    );
    let reads = [
        "kv_head * params.width",
        "read_k(batch, key, k_at + i)",
        "kv_head * params.width",
        "read_v(batch, first_key + i, v_at + column)",
    ];
    builder
        .body(
            body_with("", cache_read::counts("params.queries"), reads)
                + &cache_read::functions(formats),
        )
        .flops(
            |CachedAttentionArguments {
                 batch,
                 queries,
                 keys,
                 heads,
                 width,
                 ..
             }| flops([batch, queries, keys, heads, width]),
        )
        .loops(
            |CachedAttentionArguments {
                 batch,
                 queries,
                 keys,
                 heads,
                 width,
                 ..
             },
             groups| loops([batch, queries, keys, heads, width], groups),
        )
}

fn cached_twin(
    call: &NativeCall<'_>,
    arguments: CachedAttentionArguments<Slices<'_>>,
    formats: CacheFormats,
) {
    let CachedAttentionArguments {
        q,
        k,
        v,
        y,
        spans,
        k_new,
        v_new,
        batch,
        queries,
        keys,
        heads,
        group,
        width,
        ..
    } = arguments;
    let CachedAttentionArguments {
        q_row,
        q_start,
        k_row,
        k_start,
        v_row,
        v_start,
        causal,
        scale,
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
    let work = Attention {
        q: (q, q_row, q_start),
        mask: None,
        spans: Some(spans),
        queries,
        keys,
        heads,
        group,
        width,
        causal: causal == 1,
        scale,
    };
    attention(call, &work, batch, y, |item| {
        [0, 1].map(|side| caches.side(side, item))
    });
}

/// Queries per task of the native twin: a whole number of panels.
const QUERY_BLOCK: usize = 128;
/// Minimum bytes of keys of all items for prefetching a head's keys while the previous head is
/// processed: fewer are in L2 anyway.
const PREFETCH_MIN_BYTES: usize = 1 << 20;
/// Keys of one product with one panel of queries: their weights fill L1. With two panels half as
/// many.
const KEY_BLOCK: usize = 384;
/// The same where keys are decoded first: this many decoded rows stay in L2.
const QUANTIZED_KEY_BLOCK: usize = 128;

/// The source of an item's keys or values.
pub(crate) trait KvSource {
    /// Keys of one product.
    const KEY_BLOCK: usize;
    /// Whether reading rows prefetches as many after them.
    const PREFETCHES: bool;
    /// Buffer for the rows of this many keys, where they cannot be read in place.
    type Workspace;
    fn workspace() -> Self::Workspace;
    /// The rows of some keys from the columns of a head on, and their stride.
    fn rows<'a>(
        &'a self,
        keys: [usize; 2],
        columns: [usize; 2],
        room: &'a mut Self::Workspace,
    ) -> (&'a [f32], usize);
    /// Prefetches the data of the rows of some keys.
    fn ask(&self, keys: [usize; 2], columns: [usize; 2]);
}

/// Rows in place: elements from the item's first row on, columns of a row, and the column where the
/// heads begin.
pub(crate) struct Plain<'a>(pub Operand<'a>);

impl KvSource for Plain<'_> {
    const KEY_BLOCK: usize = KEY_BLOCK;
    const PREFETCHES: bool = false;
    type Workspace = ();

    fn workspace() {}

    fn rows<'a>(
        &'a self,
        [first, _]: [usize; 2],
        [column, _]: [usize; 2],
        (): &'a mut (),
    ) -> (&'a [f32], usize) {
        let (data, columns, start) = self.0;
        (&data[first * columns + start + column..], columns)
    }

    fn ask(&self, [first, count]: [usize; 2], [column, width]: [usize; 2]) {
        let (data, columns, start) = self.0;
        for row in first..first + count {
            (0..width)
                .step_by(PANEL)
                .for_each(|at| prefetch_line_l2(data, row * columns + start + column + at));
        }
    }
}

impl KvSource for CachedRows<'_> {
    const KEY_BLOCK: usize = QUANTIZED_KEY_BLOCK;
    const PREFETCHES: bool = true;
    type Workspace = [CacheLine; QUANTIZED_KEY_BLOCK * MAX_WIDTH / PANEL];

    fn workspace() -> Self::Workspace {
        [CacheLine::ZERO; QUANTIZED_KEY_BLOCK * MAX_WIDTH / PANEL]
    }

    fn rows<'a>(
        &'a self,
        [first, count]: [usize; 2],
        [column, width]: [usize; 2],
        room: &'a mut Self::Workspace,
    ) -> (&'a [f32], usize) {
        let room: &mut [f32] = bytemuck::cast_slice_mut(room);
        simd(
            #[inline(always)]
            || self.read(first, count, [column, width], room),
        );
        (room, width)
    }

    fn ask(&self, [first, count]: [usize; 2], columns: [usize; 2]) {
        CachedRows::ask(self, first..first + count, columns);
    }
}

/// Over keys and values that are stored as f32.
fn plain(call: &NativeCall<'_>, arguments: AttentionArguments<Slices<'_>>) {
    let AttentionArguments {
        q,
        k,
        v,
        y,
        mask,
        spans,
        batch,
        queries,
        keys,
        heads,
        group,
        width,
        ..
    } = arguments;
    let AttentionArguments {
        q_row,
        q_start,
        k_row,
        k_start,
        v_row,
        v_start,
        causal,
        scale,
        ..
    } = arguments;
    let work = Attention {
        q: (q, q_row, q_start),
        mask,
        spans,
        queries,
        keys,
        heads,
        group,
        width,
        causal: causal == 1,
        scale,
    };
    let operands = [(k, k_row, k_start), (v, v_row, v_start)];
    attention(call, &work, batch, y, |item| {
        operands
            .map(|(data, columns, start)| Plain((&data[item * keys * columns..], columns, start)))
    });
}

/// An operand: its elements, columns of a row, and the column where its heads begin.
pub(crate) type Operand<'a> = (&'a [f32], usize, usize);

/// One number for each query of a panel.
type Lanes = [f32; PANEL];

/// The buffers of a task, for one panel of queries after another or for two together. Rows of
/// panels begin at cache lines.
#[repr(align(64))]
struct Scratch {
    queries: [f32; MAX_WIDTH * PANEL * MAX_PANELS_PER_PASS],
    sums: [f32; MAX_WIDTH * PANEL * MAX_PANELS_PER_PASS],
    weights: [f32; KEY_BLOCK * PANEL],
}

impl Scratch {
    fn new() -> Self {
        let each = [0.0; MAX_WIDTH * PANEL * MAX_PANELS_PER_PASS];
        Self {
            queries: each,
            sums: each,
            weights: [0.0; KEY_BLOCK * PANEL],
        }
    }
}

/// The arguments of a panel of queries: keys and values, buffers for their rows, and its results.
type Given<'a, S> = (
    &'a [S; 2],
    &'a mut <S as KvSource>::Workspace,
    &'a mut Scratch,
);

struct Attention<'a> {
    q: Operand<'a>,
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

fn attention<S: KvSource>(
    call: &NativeCall<'_>,
    work: &Attention<'_>,
    batch: usize,
    y: &mut [f32],
    sources: impl Fn(usize) -> [S; 2] + Sync,
) {
    let &Attention {
        queries,
        keys,
        heads,
        group,
        width,
        ..
    } = work;
    let most_keys = (0..batch)
        .map(|item| work.counts(item)[1])
        .max()
        .unwrap_or(0);
    let threads = call.threads_for(batch * queries * most_keys * heads * width / 8);
    let row = heads * width;
    let asks = batch * keys * row / group * size_of::<f32>() >= PREFETCH_MIN_BYTES;
    let block = if threads > 1 {
        QUERY_BLOCK.min(
            (batch * queries)
                .div_ceil(2 * threads)
                .next_multiple_of(PANEL * panels_per_pass()),
        )
    } else {
        QUERY_BLOCK
    };
    for_each_chunk(
        &mut y[..batch * queries * row],
        block * row,
        threads,
        |index, y| {
            let (first, rows) = (index * block, y.len() / row);
            let (mut done, mut room, mut scratch) = (0, S::workspace(), Scratch::new());
            while done < rows {
                let (item, query) = ((first + done) / queries, (first + done) % queries);
                let count = (rows - done).min(queries - query);
                let sources = sources(item);
                let y = &mut y[done * row..][..count * row];
                // All queries of a head, whose keys and values are then in cache, before the next
                // head.
                for head in 0..heads {
                    if asks && head + 1 < heads {
                        work.ask(&sources, [item, query, count], head + 1);
                    }
                    for (panel, y) in y.chunks_mut(PANEL * panels_per_pass() * row).enumerate() {
                        let (given, place) = (
                            (&sources, &mut room, &mut scratch),
                            [
                                item,
                                query + panel * PANEL * panels_per_pass(),
                                y.len() / row,
                            ],
                        );
                        let y = &mut y[head * width..];
                        match place[2] > PANEL {
                            true => work.panels::<S, MAX_PANELS_PER_PASS>(given, place, head, y),
                            false => work.panels::<S, 1>(given, place, head, y),
                        }
                    }
                }
                done += count;
            }
        },
    );
}

impl Attention<'_> {
    /// Queries and keys of an item.
    fn counts(&self, item: usize) -> [usize; 2] {
        match self.spans {
            None => [self.queries, self.keys],
            Some(spans) => {
                let [kept, there] = span(spans, item, [self.queries, self.keys]);
                [there - kept, there]
            }
        }
    }

    /// Prefetches a head's queries, keys and values, as many as one product takes.
    fn ask<S: KvSource>(&self, sources: &[S; 2], [item, query, count]: [usize; 3], head: usize) {
        Plain(self.q).ask(
            [item * self.queries + query, count],
            [head * self.width, self.width],
        );
        if head.is_multiple_of(self.group) {
            let keys = self.counts(item)[1].min(S::KEY_BLOCK);
            sources
                .iter()
                .for_each(|side| side.ask([0, keys], [head / self.group * self.width, self.width]));
        }
    }

    /// One head of up to 16 queries of an item, or as many for each panel side by side; `y` begins
    /// at the head's columns of the first.
    ///
    /// A key's products with all queries are adjacent, so that exponentials, sums and maxima work
    /// lane by lane, and the weights are panels in the layout that the product with the values
    /// reads.
    fn panels<S: KvSource, const PANELS: usize>(
        &self,
        ([k, v], room, scratch): Given<'_, S>,
        [item, query, count]: [usize; 3],
        head: usize,
        y: &mut [f32],
    ) {
        let (width, row, lanes) = (self.width, self.heads * self.width, PANELS * PANEL);
        let Scratch {
            queries,
            sums,
            weights: all_weights,
        } = scratch;
        let (queries, sums) = (&mut queries[..width * lanes], &mut sums[..width * lanes]);
        let q = head_of(self.q, item * self.queries + query, head, width);
        with_simd(TransposeIn {
            q,
            stride: self.q.1,
            count,
            panels: &mut *queries,
            width,
            scale: self.scale,
        });
        let queries: [&[f32]; PANELS] =
            std::array::from_fn(|panel| &queries[panel * width * PANEL..][..width * PANEL]);
        sums.fill(0.0);
        let (mut greatest, mut totals) = (
            [[f32::NEG_INFINITY; PANEL]; PANELS],
            [[0.0f32; PANEL]; PANELS],
        );
        let [queries_there, keys_there] = self.counts(item);
        let seen = |query: usize| match self.causal {
            true => (keys_there + query + 1)
                .saturating_sub(queries_there)
                .min(keys_there),
            false => keys_there,
        };
        let last_seen = seen(query + count - 1);
        let columns = [head / self.group * width, width];
        for first_key in (0..last_seen).step_by(S::KEY_BLOCK / PANELS) {
            let keys = (S::KEY_BLOCK / PANELS).min(last_seen - first_key);
            let weights = &mut all_weights[..keys * lanes];
            let (data, stride) = k.rows([first_key, keys], columns, room);
            with_simd(Strip::alone(Rows { data, stride }, queries, weights, false));
            if self.causal {
                for (key, weights) in weights
                    .chunks_exact_mut(lanes)
                    .enumerate()
                    .skip(seen(query).saturating_sub(first_key))
                {
                    let hidden = (0..lanes)
                        .take_while(|lane| seen(query + lane) <= first_key + key)
                        .count();
                    weights[..hidden].fill(f32::NEG_INFINITY);
                }
            }
            let mask = self
                .mask
                .map(|mask| &mask[item * self.keys + first_key..][..keys]);
            let weights = weights.as_chunks_mut().0.as_chunks_mut::<PANELS>().0;
            let shrink = match mask.filter(|mask| mask.iter().any(|&term| term != 0.0)) {
                Some(mask) => online_softmax(weights, |key| mask[key], &mut greatest, &mut totals),
                // −0: the compiler removes its addition.
                None => online_softmax(weights, |_| -0.0, &mut greatest, &mut totals),
            };
            if first_key > 0 {
                let sums = sums.as_chunks_mut::<PANEL>().0.as_chunks_mut::<PANELS>().0;
                sums.iter_mut()
                    .flat_map(|sums| sums.iter_mut().zip(&shrink))
                    .for_each(|(sums, shrink)| {
                        sums.iter_mut()
                            .zip(shrink)
                            .for_each(|(sum, shrink)| *sum *= shrink);
                    });
            }
            let (data, stride) = v.rows([first_key, keys], columns, room);
            let (count, weights) = (weights.len(), weights.as_flattened().as_flattened());
            let weights: [_; PANELS] = std::array::from_fn(|panel| StridedPanel {
                data: &weights[panel * PANEL..],
                stride: PANELS * PANEL,
                count,
            });
            with_simd(Strip::alone(
                ColumnMajor { data, stride },
                weights,
                sums,
                first_key > 0,
            ));
        }
        // For a query without visible keys this is 0 · ∞, which is NaN.
        let inverses: [Lanes; PANELS] = totals.map(|totals| totals.map(|total| 1.0 / total));
        with_simd(TransposeOut {
            sums,
            inverses: &inverses,
            y,
            row,
            count,
        });
    }
}

/// An operand's elements from a row's columns of a head on.
fn head_of(
    (data, columns, start): Operand<'_>,
    first_row: usize,
    head: usize,
    width: usize,
) -> &[f32] {
    &data[first_row * columns + start + head * width..]
}

/// Converts products, each with a term of its key, to weights by each lane's maximum so far;
/// returns the factors of the earlier sums. The terms are added twice rather than stored: with a
/// separate pass all this took 1.7 times as long.
fn online_softmax<const PANELS: usize>(
    weights: &mut [[Lanes; PANELS]],
    term: impl Fn(usize) -> f32,
    greatest: &mut [Lanes; PANELS],
    totals: &mut [Lanes; PANELS],
) -> [Lanes; PANELS] {
    simd(
        #[inline(always)]
        || {
            let mut shrinks = [[0.0; PANEL]; PANELS];
            for panel in 0..PANELS {
                let mut grown = greatest[panel];
                for (key, weights) in weights.iter().enumerate() {
                    let term = term(key);
                    for lane in 0..PANEL {
                        let product = weights[panel][lane] + term;
                        grown[lane] = if product > grown[lane] {
                            product
                        } else {
                            grown[lane]
                        };
                    }
                }
                // A lane without a maximum yet uses 0: its weights are then 0 and no infinities are
                // subtracted.
                let base = grown.map(|grown| {
                    if grown == f32::NEG_INFINITY {
                        0.0
                    } else {
                        grown
                    }
                });
                let mut sums = [0.0f32; PANEL];
                for (key, weights) in weights.iter_mut().enumerate() {
                    let term = term(key);
                    let made = exponentials(std::array::from_fn(|lane| {
                        weights[panel][lane] + term - base[lane]
                    }));
                    for lane in 0..PANEL {
                        sums[lane] += made[lane];
                    }
                    weights[panel] = made;
                }
                let shrink = exponentials(std::array::from_fn(|lane| {
                    greatest[panel][lane] - base[lane]
                }));
                for lane in 0..PANEL {
                    totals[panel][lane] = totals[panel][lane] * shrink[lane] + sums[lane];
                }
                greatest[panel] = grown;
                shrinks[panel] = shrink;
            }
            shrinks
        },
    )
}
