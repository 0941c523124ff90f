//! Attention over keys that are all present, or over those that a cache holds so far; rotary
//! positions.

pub mod cache;
pub mod cache_codes;
pub mod cache_format;
mod cache_read;
pub mod cache_reference;
mod decode;
mod forward;
pub mod rotary;

use std::sync::Arc;

use cache::{CacheCode, CacheStore, CacheStoreHalves};
use cache_format::{CacheFormat, CacheFormats, WINDOW};
use decode::{CachedDecodeArguments, DecodeArguments};
use forward::{AttentionArguments, CachedAttentionArguments};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, groups_for};
use crate::operation::groups;
use crate::plan::PlanBuilder;
use crate::view::{View, elements};

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [
        forward::kernels,
        decode::kernels,
        cache::kernels,
        rotary::kernels,
    ]
    .into_iter()
    .flat_map(|kernels| kernels())
    .collect()
}

/// The sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSizes {
    /// Items, each with its own keys.
    pub batch: usize,
    /// Queries of an item.
    pub queries: usize,
    /// Keys and values of an item; for a cache, its capacity.
    pub keys: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of the keys and values; each serves `heads / kv_heads` heads of the queries.
    pub kv_heads: usize,
    /// Columns of a head.
    pub width: usize,
}

impl PlanBuilder {
    /// Records `y[b, t, h] = Σ_s softmax_s(scale·q[b, t, h]·k[b, s, h'] + mask[b, s])·v[b, s, h']`,
    /// with h' the head of the keys that serves h. With `causal`, query t sees the keys up to t +
    /// keys − queries. A query that sees no key gives NaN.
    ///
    /// # Shapes
    /// Of q, k and v: the view, the columns of a row, and the column where the heads begin, so that
    /// all three may be parts of one product; rows are [batch, queries] or [batch, keys]. `mask`
    /// [batch, keys], `y` [batch, queries, heads · width].
    /// # Numerics
    /// f32; sums are rescaled as the greatest product grows, in an order that depends only on the
    /// sizes: same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit or `heads` is no multiple of `kv_heads`; `Unsupported`
    /// for heads wider than 128; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch; no product of queries and keys is stored.
    pub fn attention(
        &mut self,
        columns: [(View, usize, usize); 3],
        mask: Option<View>,
        y: View,
        sizes: AttentionSizes,
        scale: f32,
        causal: bool,
    ) -> Result<()> {
        let AttentionSizes {
            batch,
            queries,
            keys,
            heads,
            kv_heads,
            width,
        } = sizes;
        check_width("attention", width)?;
        let fits = |(view, row, start): (View, usize, usize), rows: usize, heads: usize| {
            view.fills(&[batch, rows, row]) && ends_within([start, heads, width], row)
        };
        let [q, k, v] = columns;
        let operands_fit =
            fits(q, queries, heads) && fits(k, keys, kv_heads) && fits(v, keys, kv_heads);
        let mask_fits = mask.is_none_or(|mask| mask.fills(&[batch, keys]));
        if !operands_fit
            || !mask_fits
            || !y.fills(&[batch, queries, heads, width])
            || kv_heads == 0
            || !heads.is_multiple_of(kv_heads)
        {
            let shown = columns.map(|(view, row, start)| (view.len(), row, start));
            let (mask, y) = (mask.map(|mask| mask.len()), y.len());
            return Err(Error::invalid(format!(
                "attention: {shown:?} elements, columns and first column, mask {mask:?}, y {y} for {sizes:?}"
            )));
        }
        if y.is_empty() || keys == 0 {
            return self.fill(y, f32::NAN.to_bits());
        }
        let ((q, q_row, q_start), (k, k_row, k_start), (v, v_row, v_start)) = (q, k, v);
        let group = heads / kv_heads;
        #[rustfmt::skip]
        let arguments = AttentionArguments {
            q, k, v, y, mask, spans: None, batch, queries, keys, heads, group, width, q_row, q_start, k_row, k_start, v_row, v_start,
            causal: u32::from(causal), scale,
        };
        let kernel = if mask.is_some() {
            &forward::ATTENTION_MASK
        } else {
            &forward::ATTENTION
        };
        self.launch(
            kernel,
            arguments,
            groups(batch * heads * queries.div_ceil(forward::QUERY_TILE)),
        )
    }

    /// Records the append of new tokens' keys and values to caches, and attention of the new
    /// tokens' queries to all that are present then, each to those up to its own place. `spans`
    /// gives for each item the number of kept and of new tokens, so that one compiled plan serves
    /// every length.
    ///
    /// # Shapes
    /// Of q, k and v as in [`PlanBuilder::attention`], all of `queries` rows an item; `caches` of
    /// keys and of values, which must be writable, for each item the words of their formats
    /// ([`CacheFormat::words`]): for f32 [keys, kv_heads · width]; `spans` [batch, 2] u32; `y`
    /// [batch, queries, heads · width]. Rows of q from an item's new tokens on are padding: they
    /// see what the last new token sees, and their keys and values are not kept. Tokens beyond the
    /// cache's capacity are not kept either: their queries see all that is present. Counts of new
    /// tokens are clamped to `queries`, counts of kept ones to `keys`.
    /// # Numerics
    /// As [`PlanBuilder::attention`], over the caches' contents: for q8 and q4 codes of whole
    /// windows of 64 tokens except the first 4, halves of the others, and the run's new tokens
    /// unchanged (`docs/decisions/0021-caches-of-fewer-bits.md`).
    /// # Errors
    /// As [`PlanBuilder::attention`]; `Unsupported` for other pairs than [`CacheFormats`] has.
    /// # Cost
    /// Two launches, four with codes; reads each item's caches once for each head and tile of 16
    /// queries.
    pub fn attention_cached(
        &mut self,
        columns: [(View, usize, usize); 3],
        caches: [(View, CacheFormat); 2],
        spans: View,
        y: View,
        sizes: AttentionSizes,
        scale: f32,
    ) -> Result<()> {
        let AttentionSizes {
            batch,
            queries,
            keys,
            heads,
            kv_heads,
            width,
        } = sizes;
        check_width("attention_cached", width)?;
        let Some(formats) = CacheFormats::of(caches.map(|(_, format)| format)) else {
            let [keys, values] = caches.map(|(_, format)| format);
            return Err(Error::unsupported(format!(
                "attention_cached: a cache of {keys} keys and {values} values"
            )));
        };
        let caches = caches.map(|(cache, _)| cache);
        let fits = |(view, row, start): (View, usize, usize), heads: usize| {
            view.fills(&[batch, queries, row]) && ends_within([start, heads, width], row)
        };
        let [q, k, v] = columns;
        let operands_fit = fits(q, heads)
            && fits(k, kv_heads)
            && fits(v, kv_heads)
            && y.fills(&[batch, queries, heads, width]);
        // Caches are padded to whole windows.
        let is_counted =
            elements(&[4, batch, keys.saturating_add(WINDOW), kv_heads, width]).is_some();
        let cached = elements(&[kv_heads, width]).filter(|_| is_counted);
        // An empty batch takes no words, whatever its sizes.
        let words = |format: CacheFormat| {
            if batch == 0 {
                Some(0)
            } else {
                cached.map(|cached| batch * format.words(keys, cached))
            }
        };
        let caches_fit = caches.iter().zip(formats.each()).all(|(cache, format)| {
            cache.dtype().bytes() == 4 && words(format) == Some(cache.len())
        }) && spans.fills(&[2, batch])
            && spans.dtype() == DType::U32;
        if !operands_fit
            || !caches_fit
            || keys == 0
            || kv_heads == 0
            || !heads.is_multiple_of(kv_heads)
        {
            let shown = columns.map(|(view, row, start)| (view.len(), row, start));
            let (caches, y) = (caches.map(|cache| cache.len()), y.len());
            return Err(Error::invalid(format!(
                "attention_cached: {shown:?} elements, columns and first column, {formats} caches {caches:?}, spans {}, y {y} for {sizes:?}",
                spans.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.whole(|plan| match formats {
            CacheFormats::F32 => plan.attention_floats(columns, caches, [spans, y], sizes, scale),
            _ => plan.attention_coded(
                columns,
                (caches.map(|cache| cache.reinterpret(DType::U32)), formats),
                [spans, y],
                sizes,
                scale,
            ),
        })
    }

    /// The launches over caches of f32; the caller has checked all arguments.
    fn attention_floats(
        &mut self,
        [
            (q, q_row, q_start),
            (k, k_row, k_start),
            (v, v_row, v_start),
        ]: [(View, usize, usize); 3],
        caches: [View; 2],
        [spans, y]: [View; 2],
        sizes: AttentionSizes,
        scale: f32,
    ) -> Result<()> {
        let AttentionSizes {
            batch,
            queries,
            keys,
            heads,
            kv_heads,
            width,
        } = sizes;
        let (columns, group, [k_cache, v_cache]) = (kv_heads * width, heads / kv_heads, caches);
        let stored = CacheStore {
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
        };
        self.launch(
            &cache::CACHE_STORE,
            stored,
            groups_for(batch * queries * columns),
        )?;
        let [k, v] = caches;
        if queries == 1 {
            let lanes = width.next_power_of_two();
            let arguments = DecodeArguments {
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
                lanes,
                scale,
            };
            return self.launch(&decode::ATTENTION_DECODE, arguments, groups(batch * heads));
        }
        #[rustfmt::skip]
        let arguments = AttentionArguments {
            q, k, v, y, mask: None, spans: Some(spans), batch, queries, keys, heads, group, width, q_row, q_start,
            k_row: columns, k_start: 0, v_row: columns, v_start: 0, causal: 1, scale,
        };
        self.launch(
            &forward::ATTENTION_CACHED,
            arguments,
            groups(batch * heads * queries.div_ceil(forward::QUERY_TILE)),
        )
    }

    /// The launches over caches in other formats than f32; the caller has checked all arguments.
    fn attention_coded(
        &mut self,
        [
            (q, q_row, q_start),
            (k, k_row, k_start),
            (v, v_row, v_start),
        ]: [(View, usize, usize); 3],
        (caches, formats): ([View; 2], CacheFormats),
        [spans, y]: [View; 2],
        sizes: AttentionSizes,
        scale: f32,
    ) -> Result<()> {
        let AttentionSizes {
            batch,
            queries,
            keys,
            heads,
            kv_heads,
            width,
        } = sizes;
        let (columns, group, [k_cache, v_cache]) = (kv_heads * width, heads / kv_heads, caches);
        let [k_words, v_words] = formats.each().map(|format| format.words(keys, columns));
        let [k_full, v_full] = formats.each().map(|format| format.full_at(keys, columns));
        #[rustfmt::skip]
        let halves = || CacheStoreHalves {
            k, v, spans, k_cache, v_cache, batch, queries, keys, columns, k_row, k_start, v_row, v_start, k_words, v_words, k_full, v_full,
        };
        let halves_groups = groups_for(batch * queries * columns.div_ceil(2));
        let holds_codes = formats != CacheFormats::F16;
        if !holds_codes {
            self.launch(&cache::CACHE_STORE_HALVES, halves(), halves_groups)?;
        }
        let [k_new, v_new] = [k, v].map(|row| holds_codes.then_some(row));
        let missing = || Error::unsupported(format!("attention_cached: caches of {formats}"));
        if queries == 1 {
            #[rustfmt::skip]
            let arguments = CachedDecodeArguments {
                q, k: k_cache, v: v_cache, y, spans, k_new, v_new, batch, keys, heads, group, width, q_row, q_start, lanes: width.next_power_of_two(), scale,
                queries, k_row, k_start, v_row, v_start, columns, k_words, v_words, k_full, v_full,
            };
            self.launch(
                decode::cached(formats).ok_or_else(missing)?,
                arguments,
                groups(batch * heads),
            )?;
        } else {
            #[rustfmt::skip]
            let arguments = CachedAttentionArguments {
                q, k: k_cache, v: v_cache, y, spans, k_new, v_new, batch, queries, keys, heads, group, width, q_row, q_start, k_row, k_start, v_row, v_start,
                causal: 1, scale, columns, k_words, v_words, k_full, v_full,
            };
            let tiles = batch * heads * queries.div_ceil(forward::QUERY_TILE);
            self.launch(
                forward::cached(formats).ok_or_else(missing)?,
                arguments,
                groups(tiles),
            )?;
        }
        if !holds_codes {
            return Ok(());
        }
        // The codes are computed from the window before the rest overwrites it.
        let [k_format, v_format] = formats.each();
        let code_groups =
            groups_for(batch * queries.next_multiple_of(WINDOW) * columns.div_ceil(64));
        let coded = CacheCode {
            x: k,
            spans,
            cache: k_cache,
            batch,
            queries,
            keys,
            columns,
            x_row: k_row,
            x_start: k_start,
            words: k_words,
            full: k_full,
        };
        self.launch(cache::quantize_kernel(k_format, true), coded, code_groups)?;
        let coded = CacheCode {
            x: v,
            spans,
            cache: v_cache,
            batch,
            queries,
            keys,
            columns,
            x_row: v_row,
            x_start: v_start,
            words: v_words,
            full: v_full,
        };
        self.launch(cache::quantize_kernel(v_format, false), coded, code_groups)?;
        self.launch(&cache::CACHE_KEEP, halves(), halves_groups)
    }
}

/// Whether heads of a width that begin at a column end within a row.
fn ends_within([start, heads, width]: [usize; 3], row: usize) -> bool {
    elements(&[heads, width])
        .and_then(|columns| start.checked_add(columns))
        .is_some_and(|end| end <= row)
}

fn check_width(op: &str, width: usize) -> Result<()> {
    let most = crate::operation::attention::cache_codes::MAX_WIDTH;
    if width <= most {
        Ok(())
    } else {
        Err(Error::unsupported(format!(
            "{op}: heads of {width} columns; at most {most} are possible"
        )))
    }
}
