//! Reads caches in formats other than f32: the WGSL text for attention kernels, and the same for their twins.

use std::sync::Arc;

use super::cache::span;
use super::cache_codes::CachedRows;
use super::cache_format::CacheFormats;
use super::native::NativeCall;
use super::{Kernel, KernelBuilder, Prelude};
use crate::dtype::DType;

/// The parameters after those of the kernel for f32: where the run's own rows are, and the layout of the caches.
pub const PLACES: [&str; 10] = ["queries", "k_row", "k_start", "v_row", "v_start", "columns", "k_words", "v_words", "k_full", "v_full"];

/// Expressions for the number of an item's present keys (those kept and the new ones inside the cache), and for the number of new ones.
pub(super) fn counts(queries: &str) -> [String; 2] {
    let kept = "min(spans[2u * batch], params.keys)";
    let new = format!("min(min(spans[2u * batch + 1u], {queries}), params.keys - {kept})");
    [format!("{kept} + {new}"), new]
}

/// A kernel for each pair of formats but f32.
pub(super) fn for_each_format(define: impl Fn(CacheFormats) -> Arc<Kernel>) -> [Arc<Kernel>; 4] {
    [CacheFormats::F16, CacheFormats::Q8, CacheFormats::K8V4, CacheFormats::Q4].map(define)
}

/// The index of a pair among the kernels; none for f32.
pub(super) fn index(formats: CacheFormats) -> Option<usize> {
    CacheFormats::ALL.iter().position(|pair| *pair == formats)?.checked_sub(1)
}

/// Starts a kernel that reads queries, caches and spans: bindings q, k, v, y, spans, and k_new and v_new for coded caches.
pub(super) fn bind(name: &str, formats: CacheFormats) -> KernelBuilder {
    let builder = Kernel::define(format!("{name}_{formats}")).prelude(Prelude::Math).prelude(Prelude::Pack).prelude(Prelude::Cache);
    let builder = builder.read("q", DType::F32).read("k", DType::U32).read("v", DType::U32).write("y", DType::F32).read("spans", DType::U32);
    if formats == CacheFormats::F16 { builder } else { builder.read("k_new", DType::F32).read("v_new", DType::F32) }
}

/// The functions `read_k` and `read_v` of a pair of formats.
pub(super) fn functions(formats: CacheFormats) -> String {
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
    let four = |at: &str, range: &str| FOUR.replace("item + AT", &format!("item + {at}")).replace("RANGE", range);
    let codes = |is_keys: bool| match (formats, is_keys) {
        (CacheFormats::Q8, _) | (CacheFormats::K8V4, true) => EIGHT.to_owned(),
        (_, true) => four("key / 32u * 160u * blocks + key % 32u * 4u * blocks", "item + key / 32u * 160u * blocks + 128u * blocks + column"),
        (_, false) => four("key * 5u * blocks", "at + 4u * blocks + column / 32u"),
    };
    let whole = include_str!("../../kernels/cache_read.wgsl");
    let side = |name: &str, is_keys: bool| {
        let text = if formats == CacheFormats::F16 { HALVES.to_owned() } else { whole.replace("CODES", &codes(is_keys)) };
        text.replace("SIDE", name)
    };
    side("k", true) + &side("v", false)
}

/// Keys and values of the items as a twin reads them.
pub(super) struct Caches<'a> {
    formats: CacheFormats,
    words: [&'a [u32]; 2],
    new: [&'a [f32]; 2],
    spans: &'a [u32],
    places: [usize; 10],
    keys: usize,
}

impl<'a> Caches<'a> {
    /// `params` are the parameters that [`PLACES`] are.
    pub fn new(call: &NativeCall<'a>, formats: CacheFormats, keys: usize, params: impl Iterator<Item = usize>) -> Self {
        let new = if formats == CacheFormats::F16 { [&[][..]; 2] } else { [call.read::<f32>(5), call.read::<f32>(6)] };
        let mut places = [0; PLACES.len()];
        places.iter_mut().zip(params).for_each(|(place, index)| *place = call.size(index));
        Self { formats, words: [call.read(1), call.read(2)], new, spans: call.read(4), places, keys }
    }

    pub fn spans(&self) -> &'a [u32] {
        self.spans
    }

    /// Keys (0) or values (1) of an item.
    pub fn side(&self, side: usize, item: usize) -> CachedRows<'a> {
        let queries = self.places[0];
        let [row, start] = [1, 2].map(|index| self.places[index + 2 * side]);
        let words = self.places[6 + side];
        // Only halves hold the run's own rows already.
        let new = if self.new[side].is_empty() { self.new[side] } else { &self.new[side][item * queries * row + start..] };
        CachedRows {
            format: self.formats.each()[side],
            is_keys: side == 0,
            words: &self.words[side][item * words..][..words],
            rows: self.keys,
            columns: self.places[5],
            kept: span(self.spans, item, [queries, self.keys])[0],
            new: (new, row),
        }
    }
}
