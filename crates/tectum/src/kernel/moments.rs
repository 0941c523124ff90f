//! Mean and variance over the last axis, by fixed trees.
//!
//! The mean is a sum divided once. The variance takes two passes over each segment, which stays in cache between them, and
//! merges segments by their means: no large values cancel, for any mean.

use std::sync::{Arc, LazyLock};

use super::arguments::Slices;
use super::math::Real;
use super::native::{NativeCall, for_each_chunk, for_each_chunk_pair, simd};
use super::reduce::{each_lane, fold_tree, sum};
use super::{Kernel, Prelude, TypedKernel, built_in};
use crate::dtype::DType;
use crate::kernel_arguments;

kernel_arguments! {
    /// `y[row] = Σ x[row, ..] / divisor`: the last step of a mean, over a row or over the sums of its segments.
    pub(crate) struct Mean { read x: T, write y: T; rows: usize, cols: usize, divisor: usize }

    /// `mean[row, s]` and `spread[row, s] = scale·Σ (x − mean)²` of segment `s` of row `row`.
    pub(crate) struct Moments { read x: f32, write mean: f32, write spread: f32; rows: usize, cols: usize, segment: usize, segments: usize, scale: f32 }

    /// Mean and `scale·Σ (x − mean)²` of each row from those of its segments.
    pub(crate) struct MomentsMerge {
        read means: f32, read spreads: f32, write mean: f32, write spread: f32;
        rows: usize, cols: usize, segment: usize, segments: usize, scale: f32
    }
}

/// Independent accumulators of the native twins: four vectors of the widest SIMD.
const LANES: usize = 64;

static MEAN: LazyLock<[TypedKernel<Mean>; 2]> = LazyLock::new(|| [define_mean::<f32>(), define_mean::<f64>()]);

/// The last step of a mean of f64, or of f32 for every other type.
pub(crate) fn mean_kernel(dtype: DType) -> &'static TypedKernel<Mean> {
    &MEAN[usize::from(dtype == DType::F64)]
}

fn define_mean<T: Real>() -> TypedKernel<Mean> {
    let builder = Mean::define_on::<T>(format!("mean_{}", T::DTYPE.wgsl())).prelude(Prelude::Tree).body(include_str!("../../kernels/mean.wgsl"));
    let builder = builder.loops(|Mean { rows, cols, .. }, groups| super::loops_over_rows([rows, cols], groups, 1));
    built_in(builder, |call, Mean { x, y, rows, cols, divisor }| {
        let threads = call.threads_for(x.len());
        let chunk = rows.div_ceil(threads * 4).max(1);
        for_each_chunk(&mut y[..rows], chunk, threads, |index, y| {
            for (offset, y) in y.iter_mut().enumerate() {
                *y = sum(&x[(index * chunk + offset) * cols..][..cols]) / T::from_count(divisor);
            }
        });
    })
}

pub(crate) static MOMENTS: LazyLock<TypedKernel<Moments>> = LazyLock::new(|| {
    let builder = Moments::define("moments_f32").prelude(Prelude::Tree).body(include_str!("../../kernels/moments_f32.wgsl"));
    built_in(builder.loops(|Moments { rows, segment, segments, .. }, groups| loops([rows, segment, segments], groups)), moments)
});

pub(crate) static MOMENTS_MERGE: LazyLock<TypedKernel<MomentsMerge>> = LazyLock::new(|| {
    let builder = MomentsMerge::define("moments_merge_f32").prelude(Prelude::Tree).body(include_str!("../../kernels/moments_merge_f32.wgsl"));
    built_in(builder.loops(|MomentsMerge { rows, segment, segments, .. }, groups| loops([rows, segment, segments], groups)), merge)
});

/// Of segments: two passes over their elements; merged: over the segments of each row.
fn loops(sizes: [usize; 3], groups: u32) -> u64 {
    let [rows, segment, segments] = sizes.map(|size| size as u64);
    let turns = 2 * (segment.max(segments).div_ceil(u64::from(super::WORKGROUP)) + 1) + 40;
    super::loops_over(rows.saturating_mul(segments), groups, turns)
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    MEAN.iter().map(|kernel| &**kernel).chain([&**MOMENTS, &**MOMENTS_MERGE]).cloned().collect()
}

fn moments(call: &NativeCall<'_>, Moments { x, mean, spread, rows, cols, segment, segments, scale }: Moments<Slices<'_>>) {
    let items = rows * segments;
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

fn merge(_: &NativeCall<'_>, arguments: MomentsMerge<Slices<'_>>) {
    let MomentsMerge { means, spreads, mean, spread, rows, cols, segment, segments, scale } = arguments;
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
