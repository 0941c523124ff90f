//! Rows of floats added up by row number: the adjoint of a gather.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::{NoBindings, Slices};
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, TypedKernel, WORKGROUP, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::movement::gather::rows_of;
use crate::plan::PlanBuilder;
use crate::view::View;

/// Rows of `x` of a launch: each invocation walks all of them, and software Vulkan ends loops after
/// 65,535 iterations.
const ROWS: usize = 4096;

kernel_arguments! {
    /// `y[r, ..] += Σ x[i, ..]` over the i with `segments[i] = r`.
    pub(crate) struct SegmentSum { read x: f32, read segments: u32, read_write y: f32; rows: usize, cols: usize, count: usize }
}

pub(crate) static SEGMENT_SUM: LazyLock<TypedKernel<SegmentSum>> = LazyLock::new(|| {
    let builder = SegmentSum::define("segment_sum_f32").body(include_str!("segment_sum_f32.wgsl"));
    let loops = |SegmentSum { cols, count, .. }: SegmentSum<NoBindings>, groups: u32| {
        crate::kernel::loops_over(
            (count as u64).saturating_mul(cols as u64),
            groups.saturating_mul(WORKGROUP),
            count as u64 + 1,
        )
    };
    built_in(builder.loops(loops), segment_sum)
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SEGMENT_SUM.clone()]
}

/// Each thread owns a range of the rows of `y` and adds the values for that range.
fn segment_sum(
    call: &NativeCall<'_>,
    SegmentSum {
        x,
        segments,
        y,
        rows,
        cols,
        count,
    }: SegmentSum<Slices<'_>>,
) {
    let threads = call.threads_for(count * cols);
    let share = rows.div_ceil(threads);
    for_each_chunk(&mut y[..rows * cols], share * cols, threads, |part, y| {
        let first = part * share;
        for (x, &row) in x.chunks_exact(cols).zip(&segments[..count]) {
            let offset = (row as usize).wrapping_sub(first);
            let Some(y) = y.get_mut(
                offset.saturating_mul(cols)..offset.saturating_add(1).saturating_mul(cols),
            ) else {
                continue;
            };
            simd(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, &x)| *y += x),
            );
        }
    });
}

impl PlanBuilder {
    /// Records `y[r, ..] = Σ x[i, ..]` over all i with `segments[i] = r`: the gradient of
    /// [`PlanBuilder::gather`] with respect to its table. A row without a segment is zero; a
    /// segment beyond `y` adds nothing.
    ///
    /// # Shapes
    /// `x` [count, cols] f32, `segments` \[count\] u32 in any order, `y` [rows, cols] f32.
    /// # Numerics
    /// Each sum in f32 in the order of i, from 0: the same bits on every device.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// A launch that clears `y`, and one for each 4,096 rows of `x`, which reads `x` once. On a GPU
    /// each row reads the row numbers up to the first equal one, and the first row of a segment all
    /// of them.
    pub fn segment_sum(&mut self, x: View, segments: View, y: View, cols: usize) -> Result<()> {
        let (rows, count) = (rows_of("segment_sum: y", y, cols)?, segments.len());
        if !x.fills(&[count, cols]) {
            return Err(Error::invalid(format!(
                "segment_sum: {} elements for {count} segments of rows of {cols}",
                x.len()
            )));
        }
        self.whole(|plan| {
            plan.fill(y, 0)?;
            if x.is_empty() || y.is_empty() {
                return Ok(());
            }
            (0..count).step_by(ROWS).try_for_each(|first| {
                let count = ROWS.min(count - first);
                let (x, segments) = (
                    x.part(first * cols..(first + count) * cols),
                    segments.part(first..first + count),
                );
                plan.launch(
                    &SEGMENT_SUM,
                    SegmentSum {
                        x,
                        segments,
                        y,
                        rows,
                        cols,
                        count,
                    },
                    groups_for(count * cols),
                )
            })
        })
    }
}
