//! Reads caches in formats other than f32: the WGSL text for attention kernels, and the same for
//! their twins.

use crate::kernel::arguments::KernelArguments;
use crate::kernel::{KernelBuilder, Prelude};
use crate::operation::attention::cache::span;
use crate::operation::attention::cache_codes::CachedRows;
use crate::operation::attention::cache_format::CacheFormats;

/// Expressions for the number of an item's present keys (those kept and the new ones inside the
/// cache), and for the number of new ones.
pub(crate) fn counts(queries: &str) -> [String; 2] {
    let kept = "min(spans[2u * batch], params.keys)";
    let new = format!("min(min(spans[2u * batch + 1u], {queries}), params.keys - {kept})");
    [format!("{kept} + {new}"), new]
}

/// The index of a pair among the kernels; none for f32.
pub(crate) fn index(formats: CacheFormats) -> Option<usize> {
    CacheFormats::ALL
        .iter()
        .position(|pair| *pair == formats)?
        .checked_sub(1)
}

/// Adds the preludes of a kernel that reads caches, and next to codes the run's own rows.
pub(crate) fn with_preludes<A: KernelArguments>(
    builder: KernelBuilder<A>,
    formats: CacheFormats,
) -> KernelBuilder<A> {
    let builder = builder
        .prelude(Prelude::Math)
        .prelude(Prelude::Pack)
        .prelude(Prelude::Cache);
    if formats == CacheFormats::F16 {
        builder
    } else {
        builder.with("k_new").with("v_new")
    }
}

/// The functions `read_k` and `read_v` of a pair of formats.
pub(crate) fn functions(formats: CacheFormats) -> String {
    const HALVES: &str = "\nfn read_SIDE(batch: u32, key: u32, column: u32) -> f32 {
    return tectum_cache_pick(SIDE[batch * params.SIDE_words + key * ((params.columns + 1u) / 2u) + column / 2u], column);
}\n";
    const EIGHT: &str = "let at = item + key * (8u * blocks + (blocks + 1u) / 2u);
    let code = bitcast<i32>(SIDE[at + column / 4u] << (24u - column % 4u * 8u)) >> 24u;
    return f32(code) * tectum_cache_pick(SIDE[at + 8u * blocks + column / 64u], column / 32u);";
    const FOUR: &str = "let at = item + AT;
    let place = column % 32u;
    let code = (SIDE[at + column / 32u * 4u + place % 16u / 4u] >> (place % 4u * 8u + place / 16u * 4u)) & 15u;
    let range = SIDE[RANGE];
    return tectum_cache_value(range >> 16u) + f32(code) * tectum_cache_value(range);";
    let four = |at: &str, range: &str| {
        FOUR.replace("item + AT", &format!("item + {at}"))
            .replace("RANGE", range)
    };
    let codes = |is_keys: bool| match (formats, is_keys) {
        (CacheFormats::Q8, _) | (CacheFormats::K8V4, true) => EIGHT.to_owned(),
        (_, true) => four(
            "key / 32u * 160u * blocks + key % 32u * 4u * blocks",
            "item + key / 32u * 160u * blocks + 128u * blocks + column",
        ),
        (_, false) => four("key * 5u * blocks", "at + 4u * blocks + column / 32u"),
    };
    let whole = include_str!("cache_read.wgsl");
    let side = |name: &str, is_keys: bool| {
        let text = if formats == CacheFormats::F16 {
            HALVES.to_owned()
        } else {
            whole.replace("CODES", &codes(is_keys))
        };
        text.replace("SIDE", name)
    };
    side("k", true) + &side("v", false)
}

/// Keys and values of the items as a twin reads them.
pub(crate) struct Caches<'a> {
    pub formats: CacheFormats,
    /// Words of keys and of values, and how many an item has.
    pub words: [(&'a [u32], usize); 2],
    /// The run's own rows where the caches hold codes, numbers of a row, and the column where they
    /// begin.
    pub rows: [(Option<&'a [f32]>, usize, usize); 2],
    pub spans: &'a [u32],
    pub queries: usize,
    pub columns: usize,
    pub keys: usize,
}

impl<'a> Caches<'a> {
    /// Keys (0) or values (1) of an item.
    pub fn side(&self, side: usize, item: usize) -> CachedRows<'a> {
        let (new, row, start) = self.rows[side];
        let (words, count) = self.words[side];
        CachedRows {
            format: self.formats.each()[side],
            is_keys: side == 0,
            words: &words[item * count..][..count],
            rows: self.keys,
            columns: self.columns,
            kept: span(self.spans, item, [self.queries, self.keys])[0],
            // Halves hold the run's own rows already.
            new: (
                new.map_or(&[], |new| &new[item * self.queries * row + start..]),
                row,
            ),
        }
    }
}
