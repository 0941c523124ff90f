//! Mean and variance over the last axis, by fixed trees.
//!
//! The mean is a sum divided once. The variance takes two passes over each segment, which stays in cache between them, and
//! merges segments by their means: no large values cancel, for any mean.

use std::sync::{Arc, LazyLock};

use super::math::Real;
use super::native::{NativeCall, for_each_chunk, for_each_chunk_pair, simd};
use super::reduce::{each_lane, fold_tree, sum};
use super::{Kernel, Prelude, built_in};
use crate::dtype::DType;

/// Independent accumulators of the native twins: four vectors of the widest SIMD.
const LANES: usize = 64;

static MEAN: LazyLock<[Arc<Kernel>; 2]> = LazyLock::new(|| [define_mean::<f32>(), define_mean::<f64>()]);

/// `y[row] = Σ x[row, ..] / divisor`: the last step of a mean, over a row or over the sums of its segments; of f64, or of f32
/// for every other type.
pub fn mean_kernel(dtype: DType) -> &'static Arc<Kernel> {
    &MEAN[usize::from(dtype == DType::F64)]
}

fn define_mean<T: Real>() -> Arc<Kernel> {
    built_in(
        Kernel::define(format!("mean_{}", T::DTYPE.wgsl()))
            .prelude(Prelude::Tree)
            .read("x", T::DTYPE)
            .write("y", T::DTYPE)
            .param("rows", DType::U32)
            .param("cols", DType::U32)
            .param("divisor", DType::U32)
            .loops(|params, groups| super::loops_over_rows(params, groups, 1))
            .body(include_str!("../../kernels/mean.wgsl")),
        |call| {
            let (x, y) = (call.read::<T>(0), call.write::<T>(1));
            let (rows, cols, divisor) = (call.size(0), call.size(1), T::from_count(call.size(2)));
            let threads = call.threads_for(x.len());
            let chunk = rows.div_ceil(threads * 4).max(1);
            for_each_chunk(&mut y[..rows], chunk, threads, |index, y| {
                for (offset, y) in y.iter_mut().enumerate() {
                    *y = sum(&x[(index * chunk + offset) * cols..][..cols]) / divisor;
                }
            });
        },
    )
}

/// `mean[row, s]` and `spread[row, s] = scale·Σ (x − mean)²` of segment `s` of row `row`.
pub static MOMENTS: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("moments_f32").prelude(Prelude::Tree).read("x", DType::F32);
    built_in(with_results(builder).body(include_str!("../../kernels/moments_f32.wgsl")), moments)
});

/// Mean and `scale·Σ (x − mean)²` of each row from those of its segments.
pub static MOMENTS_MERGE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("moments_merge_f32").prelude(Prelude::Tree).read("means", DType::F32).read("spreads", DType::F32);
    built_in(with_results(builder).body(include_str!("../../kernels/moments_merge_f32.wgsl")), merge)
});

fn with_results(builder: super::KernelBuilder) -> super::KernelBuilder {
    builder
        .write("mean", DType::F32)
        .write("spread", DType::F32)
        .param("rows", DType::U32)
        .param("cols", DType::U32)
        .param("segment", DType::U32)
        .param("segments", DType::U32)
        .param("scale", DType::F32)
        .loops(|params, groups| {
            // Of segments: two passes over their elements; merged: over the segments of each row.
            let [rows, segment, segments] = [0, 2, 3].map(|index| u64::from(params[index]));
            let turns = 2 * (segment.max(segments).div_ceil(u64::from(super::WORKGROUP)) + 1) + 40;
            super::loops_over(rows.saturating_mul(segments), groups, turns)
        })
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    MEAN.iter().chain([&*MOMENTS, &*MOMENTS_MERGE]).cloned().collect()
}

fn moments(call: &NativeCall<'_>) {
    let (x, mean, spread) = (call.read::<f32>(0), call.write::<f32>(1), call.write::<f32>(2));
    let [rows, cols, segment, segments] = [0, 1, 2, 3].map(|index| call.size(index));
    let (items, scale) = (rows * segments, call.f32(4));
    let threads = call.threads_for(x.len());
    let chunk = items.div_ceil(threads * 4).max(1);
    for_each_chunk_pair((&mut mean[..items], &mut spread[..items]), [chunk; 2], threads, |index, mean, spread| {
        for (offset, (mean, spread)) in mean.iter_mut().zip(spread).enumerate() {
            let item = index * chunk + offset;
            let (row, start) = (item / segments, item % segments * segment);
            let x = &x[row * cols..][start..(start + segment).min(cols)];
            *mean = sum(x) / x.len() as f32;
            *spread = sum_of_squares(x, *mean) * scale;
        }
    });
}

fn merge(call: &NativeCall<'_>) {
    let (means, spreads) = (call.read::<f32>(0), call.read::<f32>(1));
    let (mean, spread) = (call.write::<f32>(2), call.write::<f32>(3));
    let [rows, cols, segment, segments] = [0, 1, 2, 3].map(|index| call.size(index));
    let scale = call.f32(4);
    let size = |s: usize| segment.min(cols - s * segment) as f32;
    for row in 0..rows {
        let (means, spreads) = (&means[row * segments..][..segments], &spreads[row * segments..][..segments]);
        let total: f64 = means.iter().enumerate().map(|(s, mean)| f64::from(size(s)) * f64::from(*mean)).sum();
        let centre = total / cols as f64;
        let squares: f64 = (0..segments).map(|s| f64::from(spreads[s]) + f64::from(size(s)) * (f64::from(means[s]) - centre).powi(2)).sum();
        mean[row] = centre as f32;
        spread[row] = (squares * f64::from(scale)) as f32;
    }
}

/// Σ (x − centre)² by 64 interleaved accumulators, then a tree over them; with a centre of 0 the sum of squares.
pub(super) fn sum_of_squares(x: &[f32], centre: f32) -> f32 {
    simd(
        #[inline(always)]
        || {
            let mut lanes = [0.0f32; LANES];
            let (blocks, rest) = x.as_chunks::<LANES>();
            for block in blocks {
                lanes = each_lane(lanes, |lane, sum| sum + (block[lane] - centre) * (block[lane] - centre));
            }
            for (lane, x) in lanes.iter_mut().zip(rest) {
                let deviation = x - centre;
                *lane += deviation * deviation;
            }
            fold_tree(lanes, |a, b| a + b)
        },
    )
}
