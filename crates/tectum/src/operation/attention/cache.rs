//! Appends keys and values of new tokens to a cache: unchanged, as halves, or as codes of whole
//! windows of tokens with the rest as halves.

use std::sync::{Arc, LazyLock};

use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::attention::cache_codes::{block4, code4, code8, half, range, value};
use crate::operation::attention::cache_format::{
    BLOCK, CacheFormat, FIRST, WINDOW, quantized_tokens,
};
use crate::operation::built_in;

kernel_arguments! {
    /// Rows of keys and values into their caches, after those that `spans` counts as present.
    pub(crate) struct CacheStore {
        read k: f32, read v: f32, read spans: u32, read_write k_cache: f32, read_write v_cache: f32;
        batch: usize, queries: usize, keys: usize, columns: usize, k_row: usize, k_start: usize, v_row: usize, v_start: usize
    }

    /// The same, as halves.
    pub(crate) struct CacheStoreHalves {
        read k: f32, read v: f32, read spans: u32, read_write k_cache: u32, read_write v_cache: u32;
        batch: usize, queries: usize, keys: usize, columns: usize, k_row: usize, k_start: usize, v_row: usize, v_start: usize,
        k_words: usize, v_words: usize, k_full: usize, v_full: usize
    }

    /// Codes of whole windows of keys or of values.
    pub(crate) struct CacheCode {
        read x: f32, read spans: u32, read_write cache: u32;
        batch: usize, queries: usize, keys: usize, columns: usize, x_row: usize, x_start: usize, words: usize, full: usize
    }
}

pub(crate) static CACHE_STORE: LazyLock<TypedKernel<CacheStore>> = LazyLock::new(|| {
    built_in(
        CacheStore::define("cache_store_f32").body(include_str!("cache_store_f32.wgsl")),
        store,
    )
});

/// Each row in its place.
pub(crate) static CACHE_STORE_HALVES: LazyLock<TypedKernel<CacheStoreHalves>> =
    LazyLock::new(|| {
        built_in(
            define_halves("cache_store_f16", IN_THEIR_ROWS),
            |_, arguments| store_halves(arguments, false),
        )
    });
/// Next to codes: the first tokens and those outside whole windows of tokens.
pub(crate) static CACHE_KEEP: LazyLock<TypedKernel<CacheStoreHalves>> = LazyLock::new(|| {
    built_in(
        define_halves("cache_keep_f16", IN_THE_WINDOW),
        |_, arguments| store_halves(arguments, true),
    )
});

/// Codes of 8 bits, by blocks of columns.
static CACHE_CODE_Q8: LazyLock<TypedKernel<CacheCode>> = LazyLock::new(|| {
    built_in(
        define_codes("cache_code_q8", &code_rows(CacheFormat::Q8)),
        |_, arguments| code_rows_q8(arguments),
    )
});
/// Codes of 4 bits, by blocks of columns.
static CACHE_CODE_Q4: LazyLock<TypedKernel<CacheCode>> = LazyLock::new(|| {
    built_in(
        define_codes("cache_code_q4", &code_rows(CacheFormat::Q4)),
        |_, arguments| code_rows_q4(arguments),
    )
});
/// Codes of 4 bits, by blocks of tokens.
static CACHE_CODE_Q4_COLUMNS: LazyLock<TypedKernel<CacheCode>> = LazyLock::new(|| {
    let body = include_str!("cache_code_columns.wgsl");
    built_in(
        define_codes("cache_code_q4_columns", body),
        |_, arguments| code_columns(arguments),
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let stores = [&**CACHE_STORE, &**CACHE_STORE_HALVES, &**CACHE_KEEP];
    stores
        .into_iter()
        .chain([&**CACHE_CODE_Q8, &**CACHE_CODE_Q4, &**CACHE_CODE_Q4_COLUMNS])
        .cloned()
        .collect()
}

/// The kernel that makes codes of a format.
pub(crate) fn quantize_kernel(
    format: CacheFormat,
    is_keys: bool,
) -> &'static TypedKernel<CacheCode> {
    match (format, is_keys) {
        (CacheFormat::Q4, true) => &CACHE_CODE_Q4_COLUMNS,
        (CacheFormat::Q4, false) => &CACHE_CODE_Q4,
        _ => &CACHE_CODE_Q8,
    }
}

const IN_THEIR_ROWS: &str = "k_cache[batch * params.k_words + place * words + word] = k_made;
            v_cache[batch * params.v_words + place * words + word] = v_made;";
const IN_THE_WINDOW: &str = "let there = kept + min(min(spans[2u * batch + 1u], params.queries), params.keys - kept);
            if place < 4u {
                k_cache[batch * params.k_words + params.k_full + (64u + place) * words + word] = k_made;
                v_cache[batch * params.v_words + params.v_full + (64u + place) * words + word] = v_made;
            }
            if place >= there / 64u * 64u {
                k_cache[batch * params.k_words + params.k_full + place % 64u * words + word] = k_made;
                v_cache[batch * params.v_words + params.v_full + place % 64u * words + word] = v_made;
            }";

fn define_halves(name: &str, places: &str) -> KernelBuilder<CacheStoreHalves> {
    let body = include_str!("cache_store_f16.wgsl").replace("STORE", places);
    CacheStoreHalves::define(name)
        .prelude(Prelude::Pack)
        .prelude(Prelude::Cache)
        .body(body)
}

fn define_codes(name: &str, body: &str) -> KernelBuilder<CacheCode> {
    CacheCode::define(name)
        .prelude(Prelude::Pack)
        .prelude(Prelude::Cache)
        .body(body)
}

/// The body that makes codes of rows of a format.
fn code_rows(format: CacheFormat) -> String {
    let (row_words, code, scales) = match format {
        CacheFormat::Q8 => (
            "(8u * blocks + pairs)",
            CODE_8,
            "cache[at + 8u * blocks + pair] = scales;",
        ),
        _ => ("(5u * blocks)", CODE_4, ""),
    };
    let body = include_str!("cache_code_rows.wgsl").replace("ROW_WORDS", row_words);
    let body = body.replace(
        "            SCALES\n",
        &if scales.is_empty() {
            String::new()
        } else {
            format!("            {scales}\n")
        },
    );
    body.replace("CODE", code).replace(
        "            var scales = 0u;\n",
        if scales.is_empty() {
            ""
        } else {
            "            var scales = 0u;\n"
        },
    )
}

const CODE_8: &str = "var greatest = 0u;
                    for (var place = 0u; place < 32u; place += 1u) {
                        greatest = max(greatest, bitcast<u32>(half_of(batch, kept, row, block, place)) & 0x7fffffffu);
                    }
                    var bits = 0x7e00u;
                    if greatest < 0x7f800000u {
                        bits = tectum_cache_half(bitcast<f32>(greatest) * (1.0 / 127.0));
                    }
                    scales |= bits << (16u * half);
                    let scale = tectum_cache_value(bits);
                    for (var word = 0u; word < 8u; word += 1u) {
                        var codes = 0u;
                        for (var place = 0u; place < 4u; place += 1u) {
                            let code = tectum_cache_code(half_of(batch, kept, row, block, 4u * word + place), scale, -127.0, 127.0);
                            codes |= (bitcast<u32>(code) & 0xffu) << (8u * place);
                        }
                        cache[at + 8u * block + word] = codes;
                    }";
const CODE_4: &str = "var least = half_of(batch, kept, row, block, 0u);
                    var most = least;
                    var is_finite = true;
                    for (var place = 0u; place < 32u; place += 1u) {
                        let value = half_of(batch, kept, row, block, place);
                        least = min(least, value);
                        most = max(most, value);
                        is_finite = is_finite && tectum_cache_is_finite(value);
                    }
                    let range = tectum_cache_range(least, most, is_finite);
                    cache[at + 4u * blocks + block] = range;
                    let scale = tectum_cache_value(range);
                    least = tectum_cache_value(range >> 16u);
                    for (var word = 0u; word < 4u; word += 1u) {
                        var codes = 0u;
                        for (var place = 0u; place < 8u; place += 1u) {
                            let above = half_of(batch, kept, row, block, 4u * word + place % 4u + place / 4u * 16u) - least;
                            codes |= u32(tectum_cache_code(above, scale, 0.0, 15.0)) << (place % 4u * 8u + place / 4u * 4u);
                        }
                        cache[at + 4u * block + word] = codes;
                    }";

fn store(_: &NativeCall<'_>, arguments: CacheStore<Slices<'_>>) {
    let CacheStore {
        k,
        v,
        spans,
        k_cache,
        v_cache,
        batch,
        queries,
        keys,
        columns,
        k_row,
        k_start,
        v_row,
        v_start,
    } = arguments;
    for (x, cache, row, start) in [(k, k_cache, k_row, k_start), (v, v_cache, v_row, v_start)] {
        for item in 0..batch {
            let [kept, there] = span(spans, item, [queries, keys]);
            for t in 0..there - kept {
                let x = &x[(item * queries + t) * row + start..][..columns];
                cache[(item * keys + kept + t) * columns..][..columns].copy_from_slice(x);
            }
        }
    }
}

/// Tokens kept before and after a run of this many queries, inside a cache of `keys`.
pub(crate) fn span(spans: &[u32], item: usize, [queries, keys]: [usize; 2]) -> [usize; 2] {
    let [kept, new] = [0, 1].map(|index| spans[2 * item + index] as usize);
    let kept = kept.min(keys);
    [kept, (kept + new.min(queries)).min(keys)]
}

/// Rows of halves: each in its place, or with `in_window` the first tokens and those outside whole
/// windows.
fn store_halves(arguments: CacheStoreHalves<Slices<'_>>, in_window: bool) {
    let CacheStoreHalves {
        k,
        v,
        spans,
        k_cache,
        v_cache,
        batch,
        queries,
        keys,
        columns,
        k_row,
        k_start,
        v_row,
        v_start,
        ..
    } = arguments;
    let CacheStoreHalves {
        k_words,
        v_words,
        k_full,
        v_full,
        ..
    } = arguments;
    let sides = [
        (k, k_cache, [k_row, k_start, k_words, k_full]),
        (v, v_cache, [v_row, v_start, v_words, v_full]),
    ];
    for (x, cache, [row, start, words, full]) in sides {
        let half_words = columns.div_ceil(2);
        for item in 0..batch {
            let cache = &mut cache[item * words..][..words];
            let [kept, there] = span(spans, item, [queries, keys]);
            for place in kept..there {
                let x = &x[(item * queries + place - kept) * row + start..][..columns];
                let mut put = |at: usize| put_halves(x, &mut cache[at..][..half_words]);
                match in_window {
                    false => put(place * half_words),
                    true => {
                        if place < FIRST {
                            put(full + (WINDOW + place) * half_words);
                        }
                        if place >= quantized_tokens(there) {
                            put(full + place % WINDOW * half_words);
                        }
                    }
                }
            }
        }
    }
}

fn put_halves(x: &[f32], words: &mut [u32]) {
    simd(
        #[inline(always)]
        || {
            let (pairs, rest) = x.as_chunks::<2>();
            words
                .iter_mut()
                .zip(pairs)
                .for_each(|(word, [low, high])| *word = half(*low) | (half(*high) << 16));
            if let [last] = rest {
                words[pairs.len()] = half(*last);
            }
        },
    );
}

/// Runs `work` over each block of 32 tokens that becomes codes: the item's words, its first token,
/// the values of the tokens as halves.
fn for_each_part(
    arguments: CacheCode<Slices<'_>>,
    mut work: impl FnMut(&mut [u32], usize, &[f32]),
) {
    let CacheCode {
        x,
        spans,
        cache,
        batch,
        queries,
        keys,
        columns,
        x_row,
        x_start,
        words,
        full,
    } = arguments;
    let half_words = columns.div_ceil(2);
    let mut values = Vec::new();
    for (item, cache) in cache.chunks_exact_mut(words).take(batch).enumerate() {
        let [kept, there] = span(spans, item, [queries, keys]);
        for first in (quantized_tokens(kept)..quantized_tokens(there)).step_by(BLOCK) {
            values.resize(BLOCK * columns, 0.0f32);
            for (row, values) in (first..).zip(values.chunks_exact_mut(columns)) {
                if row >= kept {
                    let x = &x[(item * queries + row - kept) * x_row + x_start..][..columns];
                    simd(
                        #[inline(always)]
                        || {
                            values
                                .iter_mut()
                                .zip(x)
                                .for_each(|(to, &x)| *to = value(half(x)))
                        },
                    );
                } else {
                    let halves: &[u16] = bytemuck::cast_slice(
                        &cache[full + row % WINDOW * half_words..][..half_words],
                    );
                    values
                        .iter_mut()
                        .zip(halves)
                        .for_each(|(to, &half)| *to = value(u32::from(half)));
                }
            }
            work(cache, first, &values);
        }
    }
}

/// The columns of a block; the last block is padded with its first column.
#[inline(always)]
fn block_of(row: &[f32], block: usize) -> [f32; BLOCK] {
    let row = &row[block * BLOCK..];
    std::array::from_fn(|place| {
        if place < row.len() {
            row[place]
        } else {
            row[0]
        }
    })
}

fn code_rows_q8(arguments: CacheCode<Slices<'_>>) {
    let columns = arguments.columns;
    let (row_words, blocks) = (CacheFormat::Q8.row_words(columns), columns.div_ceil(BLOCK));
    for_each_part(arguments, |cache, first, values| {
        for (row, values) in (first..).zip(values.chunks_exact(columns)) {
            let (codes, scales) = cache[row * row_words..][..row_words].split_at_mut(blocks * 8);
            let (codes, scales): (&mut [[u8; BLOCK]], &mut [u16]) = (
                bytemuck::cast_slice_mut(codes),
                bytemuck::cast_slice_mut(scales),
            );
            scales.fill(0);
            for (block, (codes, scale)) in codes.iter_mut().zip(scales).enumerate() {
                let (made, bits) = simd(
                    #[inline(always)]
                    || code8(&block_of(values, block)),
                );
                (*codes, *scale) = (made, bits as u16);
            }
        }
    });
}

fn code_rows_q4(arguments: CacheCode<Slices<'_>>) {
    let columns = arguments.columns;
    let (row_words, blocks) = (CacheFormat::Q4.row_words(columns), columns.div_ceil(BLOCK));
    for_each_part(arguments, |cache, first, values| {
        for (row, values) in (first..).zip(values.chunks_exact(columns)) {
            let (codes, ranges) = cache[row * row_words..][..row_words].split_at_mut(blocks * 4);
            let codes: &mut [[u8; 16]] = bytemuck::cast_slice_mut(codes);
            for (block, (codes, range)) in codes.iter_mut().zip(ranges).enumerate() {
                (*codes, *range) = simd(
                    #[inline(always)]
                    || block4(&block_of(values, block)),
                );
            }
        }
    });
}

fn code_columns(arguments: CacheCode<Slices<'_>>) {
    let columns = arguments.columns;
    let blocks = columns.div_ceil(BLOCK);
    for_each_part(arguments, |cache, first, values| {
        let group = &mut cache[first * 5 * blocks..][..BLOCK * 5 * blocks];
        let (codes, ranges) = group.split_at_mut(BLOCK * blocks * 4);
        let from = if first == 0 { FIRST } else { 0 };
        for block in 0..blocks {
            let width = BLOCK.min(columns - block * BLOCK);
            let rows = values.chunks_exact(columns).map(|row| block_of(row, block));
            let (mut least, mut most, mut finite) = (
                [f32::INFINITY; BLOCK],
                [f32::NEG_INFINITY; BLOCK],
                [true; BLOCK],
            );
            for row in rows.clone().skip(from) {
                least = std::array::from_fn(|place| least[place].min(row[place]));
                most = std::array::from_fn(|place| most[place].max(row[place]));
                finite = std::array::from_fn(|place| finite[place] && row[place].is_finite());
            }
            let words: [u32; BLOCK] =
                std::array::from_fn(|place| range(least[place], most[place], finite[place]));
            ranges[block * BLOCK..][..width].copy_from_slice(&words[..width]);
            for (index, row) in rows.enumerate() {
                let codes: &mut [[u8; 16]] =
                    bytemuck::cast_slice_mut(&mut codes[index * blocks * 4..][..blocks * 4]);
                let made = simd(
                    #[inline(always)]
                    || codes_of_columns(&row, &words),
                );
                let code = |place: usize| {
                    if index < from || place >= width {
                        0
                    } else {
                        made[place]
                    }
                };
                codes[block] = std::array::from_fn(|place| code(place) | (code(place + 16) << 4));
            }
        }
    });
}

#[inline(always)]
fn codes_of_columns(row: &[f32; BLOCK], words: &[u32; BLOCK]) -> [u8; BLOCK] {
    std::array::from_fn(|place| {
        code4(row[place], value(words[place]), value(words[place] >> 16)) as u8
    })
}
