//! Mean and variance over the last axis, by fixed trees.
//!
//! The mean is a sum divided once. The variance takes two passes over each segment, which stays in
//! cache between them, and merges segments by their means: no large values cancel, for any mean.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::math::Real;
use crate::kernel::native::{NativeCall, for_each_chunk, for_each_chunk_pair};
use crate::kernel::{Kernel, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::reduce::{self, Reduction, SEGMENT, check, fold_lanes, sum};
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[row] = Σ x[row, ..] / divisor`: the last step of a mean, over a row or over the sums of
    /// its segments.
    pub(crate) struct Mean { read x: T, write y: T; rows: usize, cols: usize, divisor: usize }

    /// `mean[row, s]` and `spread[row, s] = scale·Σ (x − mean)²` of segment `s` of row `row`.
    pub(crate) struct Moments { read x: f32, write mean: f32, write spread: f32; rows: usize, cols: usize, segment: usize, segments: usize, scale: f32 }

    /// Mean and `scale·Σ (x − mean)²` of each row from those of its segments.
    pub(crate) struct MomentsMerge {
        read means: f32, read spreads: f32, write mean: f32, write spread: f32;
        rows: usize, cols: usize, segment: usize, segments: usize, scale: f32
    }
}

static MEAN: LazyLock<[TypedKernel<Mean>; 2]> =
    LazyLock::new(|| [define_mean::<f32>(), define_mean::<f64>()]);

/// The last step of a mean of f64, or of f32 for every other type.
pub(crate) fn mean_kernel(dtype: DType) -> &'static TypedKernel<Mean> {
    &MEAN[usize::from(dtype == DType::F64)]
}

fn define_mean<T: Real>() -> TypedKernel<Mean> {
    let builder = Mean::define_on::<T>(format!("mean_{}", T::DTYPE.wgsl()))
        .prelude(Prelude::Tree)
        .body(include_str!("mean.wgsl"));
    let builder = builder.loops(|Mean { rows, cols, .. }, groups| {
        crate::kernel::loops_over_rows([rows, cols], groups, 1)
    });
    built_in(
        builder,
        |call,
         Mean {
             x,
             y,
             rows,
             cols,
             divisor,
         }| {
            let threads = call.threads_for(x.len());
            let chunk = rows.div_ceil(threads * 4).max(1);
            for_each_chunk(&mut y[..rows], chunk, threads, |index, y| {
                for (offset, y) in y.iter_mut().enumerate() {
                    *y =
                        sum(&x[(index * chunk + offset) * cols..][..cols]) / T::from_count(divisor);
                }
            });
        },
    )
}

pub(crate) static MOMENTS: LazyLock<TypedKernel<Moments>> = LazyLock::new(|| {
    let builder = Moments::define("moments_f32")
        .prelude(Prelude::Tree)
        .body(include_str!("moments_f32.wgsl"));
    built_in(
        builder.loops(
            |Moments {
                 rows,
                 segment,
                 segments,
                 ..
             },
             groups| loops([rows, segment, segments], groups),
        ),
        moments,
    )
});

pub(crate) static MOMENTS_MERGE: LazyLock<TypedKernel<MomentsMerge>> = LazyLock::new(|| {
    let builder = MomentsMerge::define("moments_merge_f32")
        .prelude(Prelude::Tree)
        .body(include_str!("moments_merge_f32.wgsl"));
    built_in(
        builder.loops(
            |MomentsMerge {
                 rows,
                 segment,
                 segments,
                 ..
             },
             groups| loops([rows, segment, segments], groups),
        ),
        merge,
    )
});

/// Of segments: two passes over their elements; merged: over the segments of each row.
fn loops(sizes: [usize; 3], groups: u32) -> u64 {
    let [rows, segment, segments] = sizes.map(|size| size as u64);
    let turns = 2
        * (segment
            .max(segments)
            .div_ceil(u64::from(crate::kernel::WORKGROUP))
            + 1)
        + 40;
    crate::kernel::loops_over(rows.saturating_mul(segments), groups, turns)
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    MEAN.iter()
        .map(|kernel| &**kernel)
        .chain([&**MOMENTS, &**MOMENTS_MERGE])
        .cloned()
        .collect()
}

fn moments(
    call: &NativeCall<'_>,
    Moments {
        x,
        mean,
        spread,
        rows,
        cols,
        segment,
        segments,
        scale,
    }: Moments<Slices<'_>>,
) {
    let items = rows * segments;
    let threads = call.threads_for(x.len());
    let chunk = items.div_ceil(threads * 4).max(1);
    for_each_chunk_pair(
        (&mut mean[..items], &mut spread[..items]),
        [chunk; 2],
        threads,
        |index, mean, spread| {
            for (offset, (mean, spread)) in mean.iter_mut().zip(spread).enumerate() {
                let item = index * chunk + offset;
                let (row, start) = (item / segments, item % segments * segment);
                let x = &x[row * cols..][start..(start + segment).min(cols)];
                *mean = sum(x) / x.len() as f32;
                *spread = sum_of_squares(x, *mean) * scale;
            }
        },
    );
}

fn merge(_: &NativeCall<'_>, arguments: MomentsMerge<Slices<'_>>) {
    let MomentsMerge {
        means,
        spreads,
        mean,
        spread,
        rows,
        cols,
        segment,
        segments,
        scale,
    } = arguments;
    let size = |s: usize| segment.min(cols - s * segment) as f32;
    for row in 0..rows {
        let (means, spreads) = (
            &means[row * segments..][..segments],
            &spreads[row * segments..][..segments],
        );
        let total: f64 = means
            .iter()
            .enumerate()
            .map(|(s, mean)| f64::from(size(s)) * f64::from(*mean))
            .sum();
        let centre = total / cols as f64;
        let squares: f64 = (0..segments)
            .map(|s| {
                f64::from(spreads[s]) + f64::from(size(s)) * (f64::from(means[s]) - centre).powi(2)
            })
            .sum();
        mean[row] = centre as f32;
        spread[row] = (squares * f64::from(scale)) as f32;
    }
}

/// Σ (x − centre)² by 64 interleaved accumulators, then a tree over them; with a centre of 0 the
/// sum of squares.
pub(crate) fn sum_of_squares(x: &[f32], centre: f32) -> f32 {
    fold_lanes(
        x,
        0.0,
        #[inline(always)]
        |sum, x| {
            let deviation = x - centre;
            sum + deviation * deviation
        },
        |a, b| a + b,
    )
}

impl PlanBuilder {
    /// Records `y[row] = Σ x[row, ..] / cols`. A row of no elements gives NaN.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` \[rows\].
    /// # Numerics
    /// Accumulation in the type of `x` by the tree of [`PlanBuilder::sum`], one division; same
    /// device, same bits.
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn mean(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("mean", x, y, rows, cols)?;
        if cols == 0 {
            return self.fill_number(y, f64::NAN);
        }
        if rows == 0 {
            return Ok(());
        }
        self.whole(|plan| {
            let (mut from, mut width) = (x, cols);
            while width > SEGMENT {
                let segments = width.div_ceil(SEGMENT);
                let sums = plan.temp(x.dtype(), rows * segments);
                let arguments = Reduction {
                    x: from,
                    y: sums,
                    rows,
                    cols: width,
                    segment: SEGMENT,
                    segments,
                };
                plan.launch(
                    &reduce::of(x.dtype()).sum,
                    arguments,
                    groups(rows * segments),
                )?;
                (from, width) = (sums, segments);
            }
            plan.launch(
                mean_kernel(x.dtype()),
                Mean {
                    x: from,
                    y,
                    rows,
                    cols: width,
                    divisor: cols,
                },
                groups(rows),
            )
        })
    }

    /// Records the mean of each row and its variance `Σ (x − mean)² / (cols − ddof)`: `ddof` 0 for
    /// the variance of the row itself, 1 for the unbiased estimate from a sample. A row of no
    /// elements gives NaN for both, one of `ddof` elements or fewer NaN for its variance.
    ///
    /// # Shapes
    /// `x` [rows, cols], `mean` and `variance` \[rows\].
    /// # Numerics
    /// Two passes over segments of 4,096 elements, merged by their means: the error grows with the
    /// mean's distance from 0 only through the rounding of the mean itself. Same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch for rows of up to 4,096 elements, else two.
    /// # Source
    /// Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample
    /// Variances* (1979).
    pub fn variance(
        &mut self,
        x: View,
        mean: View,
        variance: View,
        rows: usize,
        cols: usize,
        ddof: usize,
    ) -> Result<()> {
        check("variance: mean", x, mean, rows, cols)?;
        check("variance", x, variance, rows, cols)?;
        if [x, mean, variance]
            .iter()
            .any(|view| view.dtype() != DType::F32)
        {
            return Err(Error::invalid("variance: of f32 alone"));
        }
        if cols == 0 {
            mean.check_no_overlap(variance, "variance")?;
            return self.whole(|plan| {
                [mean, variance]
                    .into_iter()
                    .try_for_each(|y| plan.fill_number(y, f64::NAN))
            });
        }
        if rows == 0 {
            return Ok(());
        }
        let scale = if cols > ddof {
            1.0 / (cols - ddof) as f32
        } else {
            f32::NAN
        };
        let segments = cols.div_ceil(SEGMENT);
        let segment = SEGMENT.min(cols);
        if segments == 1 {
            return self.launch(
                &MOMENTS,
                Moments {
                    x,
                    mean,
                    spread: variance,
                    rows,
                    cols,
                    segment,
                    segments,
                    scale,
                },
                groups(rows),
            );
        }
        self.whole(|plan| {
            let [means, spreads] = [0, 1].map(|_| plan.temp(DType::F32, rows * segments));
            let parts = Moments {
                x,
                mean: means,
                spread: spreads,
                rows,
                cols,
                segment,
                segments,
                scale: 1.0,
            };
            plan.launch(&MOMENTS, parts, groups(rows * segments))?;
            let merged = MomentsMerge {
                means,
                spreads,
                mean,
                spread: variance,
                rows,
                cols,
                segment,
                segments,
                scale,
            };
            plan.launch(&MOMENTS_MERGE, merged, groups(rows))
        })
    }
}
