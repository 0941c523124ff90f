//! Attention of one query for each item over a cache: what every token that is generated asks for. All time goes into reading
//! keys and values once.

use std::sync::{Arc, LazyLock};

use super::attention::{CACHED_KEYS, MAX_WIDTH, cached_keys};
use super::cache_codes::CachedRows;
use super::cache_format::{BLOCK, CacheFormats};
use super::cache_read::{self, Caches, PLACES};
use super::gemm::dot_by_lanes;
use super::native::{NativeCall, for_each_chunk, simd};
use super::softmax::exponentials_of_sixteen as exponentials;
use super::{Kernel, Prelude, built_in, reduce};
use crate::dtype::DType;

/// `y = softmax(scale·q·kᵀ)·v` for each head of one query, over as many keys as `spans` says at run time.
pub static ATTENTION_DECODE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("attention_decode_f32").prelude(Prelude::Math).prelude(Prelude::Tree);
    let builder = builder.read("q", DType::F32).read("k", DType::F32).read("v", DType::F32).write("y", DType::F32).read("spans", DType::U32);
    let builder = NAMES.into_iter().fold(builder, |builder, name| builder.param(name, DType::U32)).param("scale", DType::F32);
    let first = "batch * params.keys * columns + head / params.group * params.width";
    built_in(builder.body(body_with([first, "k[first + key * columns + i]", "v[first + (block + i) * columns + column]"])), decode)
});

static CACHED: LazyLock<[Arc<Kernel>; 4]> = LazyLock::new(|| cache_read::for_each_format(define_cached));

/// The kernel over caches of a pair of formats.
pub fn cached(formats: CacheFormats) -> &'static Arc<Kernel> {
    cache_read::index(formats).map_or(&ATTENTION_DECODE, |index| &CACHED[index])
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    std::iter::once(&*ATTENTION_DECODE).chain(&*CACHED).cloned().collect()
}

const NAMES: [&str; 8] = ["batch", "keys", "heads", "group", "width", "q_row", "q_start", "lanes"];

/// The body with how both caches are read.
fn body_with([first, key, value]: [&str; 3]) -> String {
    let body = include_str!("../../kernels/attention_decode_f32.wgsl").replace("= KEY_COUNT;", &format!("= {CACHED_KEYS};"));
    body.replace("= FIRST_AT;", &format!("= {first};")).replace("* KEY_HERE;", &format!("* {key};")).replace("* VALUE_HERE;", &format!("* {value};"))
}

/// Over caches in another format than f32: the parameters, then those of the caches.
fn define_cached(formats: CacheFormats) -> Arc<Kernel> {
    let builder = cache_read::bind("attention_decode", formats).prelude(Prelude::Tree);
    let builder = NAMES.into_iter().fold(builder, |builder, name| builder.param(name, DType::U32)).param("scale", DType::F32);
    let builder = PLACES.into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    let reads = ["head / params.group * params.width", "read_k(batch, key, first + i)", "read_v(batch, block + i, first + column)"];
    let native: super::NativeFn = match formats {
        CacheFormats::Q8 => |call| decode_cached(call, CacheFormats::Q8),
        CacheFormats::K8V4 => |call| decode_cached(call, CacheFormats::K8V4),
        CacheFormats::Q4 => |call| decode_cached(call, CacheFormats::Q4),
        _ => |call| decode_cached(call, CacheFormats::F16),
    };
    built_in(builder.body(body_with(reads) + &cache_read::functions(formats)), native)
}

/// Elements that a vector loop steps over at a time.
const LANES: usize = 16;
/// Keys whose weights are made at a time.
const KEY_BLOCK: usize = 256;

fn decode(call: &NativeCall<'_>) {
    let (q, k, v, y) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2), call.write::<f32>(3));
    let spans = call.read::<u32>(4);
    let [batch, most, heads, group, width, q_row, q_start] = [0, 1, 2, 3, 4, 5, 6].map(|index| call.size(index));
    let scale = call.f32(8);
    let columns = heads / group * width;
    let keys: usize = (0..batch).map(|item| cached_keys(spans, item, most)).sum();
    // A multiply-add is an eighth of a streamed element: each is loaded for one.
    let threads = call.threads_for(keys * heads * width / 8);
    for_each_chunk(&mut y[..batch * heads * width], width, threads, |index, y| {
        let (item, head) = (index / heads, index % heads);
        let first = item * most * columns + head / group * width;
        let q = &q[item * q_row + q_start + head * width..][..width];
        let keys = cached_keys(spans, item, most);
        simd(
            #[inline(always)]
            || one_head(q, [&k[first..], &v[first..]], [keys, columns], scale, y),
        );
    });
}

/// One head of one query; keys and values begin at the head's columns of the first and are `columns` apart.
#[inline(always)]
fn one_head(q: &[f32], [k, v]: [&[f32]; 2], [keys, columns]: [usize; 2], scale: f32, y: &mut [f32]) {
    let width = q.len();
    let mut query = [0.0f32; MAX_WIDTH];
    query[..width].iter_mut().zip(q).for_each(|(to, &q)| *to = q * scale);
    let mut sums = [0.0f32; MAX_WIDTH];
    let sums = &mut sums[..width];
    let (mut greatest, mut total) = (f32::NEG_INFINITY, 0.0f32);
    for block in (0..keys).step_by(KEY_BLOCK) {
        let count = KEY_BLOCK.min(keys - block);
        // What is beyond the last key weighs nothing.
        let mut weights = [f32::NEG_INFINITY; KEY_BLOCK];
        for (key, weight) in weights[..count].iter_mut().enumerate() {
            *weight = dot_by_lanes(&query[..width], &k[(block + key) * columns..][..width]);
        }
        // A NaN is not greater, but its own weight is NaN and so is the sum.
        let grown = weights[..count].iter().fold(greatest, |greatest, &weight| if weight > greatest { weight } else { greatest });
        let mut parts = [0.0f32; LANES];
        for weights in weights.as_chunks_mut::<LANES>().0 {
            *weights = exponentials(std::array::from_fn(|lane| weights[lane] - grown));
            parts = std::array::from_fn(|lane| parts[lane] + weights[lane]);
        }
        let shrink = exponentials([greatest - grown; LANES])[0];
        total = total * shrink + reduce::fold_tree(parts, |a, b| a + b);
        greatest = grown;
        sums.iter_mut().for_each(|sum| *sum *= shrink);
        for (key, &weight) in weights[..count].iter().enumerate() {
            let v = &v[(block + key) * columns..][..width];
            sums.iter_mut().zip(v).for_each(|(sum, &v)| *sum += weight * v);
        }
    }
    let inverse = 1.0 / total;
    y.iter_mut().zip(&*sums).for_each(|(y, &sum)| *y = sum * inverse);
}

/// Query heads of one head of keys and values that are made together: each row of codes is made numbers once for all of them.
const HEADS: usize = 8;

fn decode_cached(call: &NativeCall<'_>, formats: CacheFormats) {
    let (q, y) = (call.read::<f32>(0), call.write::<f32>(3));
    let [batch, most, heads, group, width, q_row, q_start] = [0, 1, 2, 3, 4, 5, 6].map(|index| call.size(index));
    let scale = call.f32(8);
    let caches = Caches::new(call, formats, most, NAMES.len() + 1..NAMES.len() + 1 + PLACES.len());
    let keys: usize = (0..batch).map(|item| cached_keys(caches.spans(), item, most)).sum();
    let threads = call.threads_for(keys * heads * width / 8);
    for_each_chunk(&mut y[..batch * heads * width], group * width, threads, |index, y| {
        let (item, kv_head) = (index / (heads / group), index % (heads / group));
        let sides = [0, 1].map(|side| caches.side(side, item));
        let q = &q[item * q_row + q_start + kv_head * group * width..][..group * width];
        let keys = cached_keys(caches.spans(), item, most);
        for (q, y) in q.chunks(HEADS * width).zip(y.chunks_mut(HEADS * width)) {
            simd(
                #[inline(always)]
                || some_heads(q, &sides, [keys, kv_head * width, width], scale, y),
            );
        }
    });
}

/// Up to eight heads of one query that share keys and values, whose columns begin at `column`.
#[inline(always)]
fn some_heads(q: &[f32], [k, v]: &[CachedRows<'_>; 2], [keys, column, width]: [usize; 3], scale: f32, y: &mut [f32]) {
    let heads = q.len() / width;
    let mut query = [0.0f32; HEADS * MAX_WIDTH];
    query[..q.len()].iter_mut().zip(q).for_each(|(to, &q)| *to = q * scale);
    let mut sums = [0.0f32; HEADS * MAX_WIDTH];
    let (mut greatest, mut totals) = ([f32::NEG_INFINITY; HEADS], [0.0f32; HEADS]);
    let mut rows = [0.0f32; BLOCK * MAX_WIDTH];
    for block in (0..keys).step_by(BLOCK) {
        let count = BLOCK.min(keys - block);
        // What is beyond the last key weighs nothing.
        let mut weights = [[f32::NEG_INFINITY; BLOCK]; HEADS];
        k.read(block, count, [column, width], &mut rows);
        for (head, weights) in weights[..heads].iter_mut().enumerate() {
            let query = &query[head * width..][..width];
            for (weight, k) in weights[..count].iter_mut().zip(rows.chunks_exact(width)) {
                *weight = dot_by_lanes(query, k);
            }
        }
        v.read(block, count, [column, width], &mut rows);
        for (head, weights) in weights[..heads].iter_mut().enumerate() {
            let sums = &mut sums[head * width..][..width];
            // A NaN is not greater, but its own weight is NaN and so is the sum.
            let grown = weights[..count].iter().fold(greatest[head], |greatest, &weight| if weight > greatest { weight } else { greatest });
            let mut parts = [0.0f32; LANES];
            for weights in weights.as_chunks_mut::<LANES>().0 {
                *weights = exponentials(std::array::from_fn(|lane| weights[lane] - grown));
                parts = std::array::from_fn(|lane| parts[lane] + weights[lane]);
            }
            let shrink = exponentials([greatest[head] - grown; LANES])[0];
            totals[head] = totals[head] * shrink + reduce::fold_tree(parts, |a, b| a + b);
            greatest[head] = grown;
            for sum in &mut *sums {
                *sum *= shrink;
            }
            for (v, &weight) in rows.chunks_exact(width).zip(&weights[..count]) {
                for (sum, &v) in sums.iter_mut().zip(v) {
                    *sum += weight * v;
                }
            }
        }
    }
    for ((y, sums), total) in y.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(totals) {
        let inverse = 1.0 / total;
        y.iter_mut().zip(sums).for_each(|(y, &sum)| *y = sum * inverse);
    }
}
