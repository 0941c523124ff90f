//! Rows stored to the rows of a table by their numbers, or combined with them.

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{NoBindings, Slices};
use crate::kernel::math;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel, WORKGROUP, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::movement::gather::rows_of;
use crate::plan::PlanBuilder;
use crate::view::View;

/// Rows of the updates of a launch: each invocation walks all of them, and software Vulkan ends
/// loops after 65,535 iterations.
const ROWS: usize = 4096;

kernel_arguments! {
    /// `y[indices[i], ..]` becomes `updates[i, ..]`, or is combined with it, in the order of i.
    pub(crate) struct ScatterRows { read updates: T, read indices: u32, read_write y: T; rows: usize, cols: usize, count: usize }
}

/// What an update does to an element of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScatterUpdate {
    /// Replaces it.
    Assign,
    /// Is added to it.
    Add,
    /// Multiplies it.
    Mul,
    /// Replaces it if it is greater; NaN stays.
    Max,
    /// Replaces it if it is less; NaN stays.
    Min,
}

fn loops(ScatterRows { cols, count, .. }: ScatterRows<NoBindings>, groups: u32) -> u64 {
    crate::kernel::loops_over(
        (count as u64).saturating_mul(cols as u64),
        groups.saturating_mul(WORKGROUP),
        count as u64 + 1,
    )
}

fn define<T: Element>(name: &str, combine: &str) -> KernelBuilder<ScatterRows, T> {
    let number = T::DTYPE.wgsl();
    let combine =
        format!("fn combine(a: {number}, b: {number}) -> {number} {{\n    return {combine};\n}}\n");
    let builder = ScatterRows::define_on::<T>(format!("scatter_rows_{name}_{number}")).loops(loops);
    builder.body(format!("{combine}{}", include_str!("scatter_rows.wgsl")))
}

static ASSIGN: LazyLock<TypedKernel<ScatterRows>> = LazyLock::new(|| {
    let builder = ScatterRows::define("scatter_rows_assign_u32")
        .body(include_str!("scatter_assign_u32.wgsl"))
        .loops(loops);
    built_in(builder, |call, arguments| {
        scatter(call, arguments, |_, b| b)
    })
});

/// Sums, products, maxima and minima.
type Combined = [TypedKernel<ScatterRows>; 4];

static FLOATS: LazyLock<Combined> = LazyLock::new(|| {
    [
        built_in(define::<f32>("add", "a + b"), |call, arguments| {
            scatter(call, arguments, |a, b| a + b)
        }),
        built_in(define::<f32>("mul", "a * b"), |call, arguments| {
            scatter(call, arguments, |a, b| a * b)
        }),
        built_in(
            define::<f32>("max", "tectum_max(a, b)").prelude(Prelude::Math),
            |call, arguments| scatter(call, arguments, math::max),
        ),
        built_in(
            define::<f32>("min", "tectum_min(a, b)").prelude(Prelude::Math),
            |call, arguments| scatter(call, arguments, math::min),
        ),
    ]
});

static INTEGERS: LazyLock<Combined> = LazyLock::new(|| {
    [
        built_in(define::<i32>("add", "a + b"), |call, arguments| {
            scatter(call, arguments, i32::wrapping_add)
        }),
        built_in(define::<i32>("mul", "a * b"), |call, arguments| {
            scatter(call, arguments, i32::wrapping_mul)
        }),
        built_in(define::<i32>("max", "max(a, b)"), |call, arguments| {
            scatter(call, arguments, i32::max)
        }),
        built_in(define::<i32>("min", "min(a, b)"), |call, arguments| {
            scatter(call, arguments, i32::min)
        }),
    ]
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [&*ASSIGN]
        .into_iter()
        .chain(&*FLOATS)
        .chain(&*INTEGERS)
        .map(|kernel| Arc::clone(kernel))
        .collect()
}

/// Each thread owns a range of the rows of `y` and takes the updates of that range.
fn scatter<T: Element>(
    call: &NativeCall<'_>,
    arguments: ScatterRows<Slices<'_, T>>,
    combine: impl Fn(T, T) -> T + Copy + Sync,
) {
    let ScatterRows {
        updates,
        indices,
        y,
        rows,
        cols,
        count,
    } = arguments;
    let threads = call.threads_for(count * cols);
    let share = rows.div_ceil(threads);
    for_each_chunk(&mut y[..rows * cols], share * cols, threads, |part, y| {
        let first = part * share;
        for (x, &row) in updates.chunks_exact(cols).zip(&indices[..count]) {
            let offset = (row as usize).wrapping_sub(first);
            let Some(y) = y.get_mut(
                offset.saturating_mul(cols)..offset.saturating_add(1).saturating_mul(cols),
            ) else {
                continue;
            };
            simd(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, &x)| *y = combine(*y, x)),
            );
        }
    });
}

impl PlanBuilder {
    /// Records `y[indices[i], ..] = updates[i, ..]` for all i, or the combination of both, in the
    /// order of i: with equal indices the last assignment stays. An index beyond the rows of `y` is
    /// ignored, and so is a negative one. Other rows of `y` keep their values.
    ///
    /// # Shapes
    /// `indices` \[count\] i32 or u32; `updates` [count, cols] and `y` [rows, cols], both f32 or
    /// both i32, for an assignment also both u32. `cols` is the length of `updates` divided by that
    /// of `indices`.
    /// # Numerics
    /// On f32 in the order of i from the value in `y`: the same bits on every device. Integers wrap
    /// modulo 2³².
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`], thus also if
    /// nothing wrote `y`.
    /// # Cost
    /// A launch for each 4,096 rows of the updates. On a GPU each element of the updates reads up
    /// to as many indices; the rows of `y` do not count.
    pub fn scatter(
        &mut self,
        indices: View,
        updates: View,
        y: View,
        how: ScatterUpdate,
    ) -> Result<()> {
        let count = indices.len();
        let is_integer = matches!(indices.dtype(), DType::I32 | DType::U32);
        let has_kernel = matches!(
            (y.dtype(), how),
            (DType::F32 | DType::I32, _) | (DType::U32, ScatterUpdate::Assign)
        );
        if !is_integer || !has_kernel || updates.dtype() != y.dtype() {
            let types = [indices, updates, y].map(|view| view.dtype().wgsl());
            return Err(Error::invalid(format!(
                "scatter: indices, updates and y are {}; integers and one type of f32, i32 needed",
                types.join(", ")
            )));
        }
        if count == 0 && updates.is_empty() {
            return Ok(());
        }
        let cols = updates.len().checked_div(count).unwrap_or(0);
        if !updates.fills(&[count, cols]) {
            return Err(Error::invalid(format!(
                "scatter: {} elements for {count} indices",
                updates.len()
            )));
        }
        if updates.is_empty() || y.is_empty() {
            return Ok(());
        }
        let rows = rows_of("scatter: y", y, cols)?;
        let indices = indices.reinterpret(DType::U32);
        let (kernel, updates, y) = match (how, y.dtype()) {
            (ScatterUpdate::Assign, _) => (
                &*ASSIGN,
                updates.reinterpret(DType::U32),
                y.reinterpret(DType::U32),
            ),
            (how, DType::F32) => (&FLOATS[how as usize - 1], updates, y),
            (how, _) => (&INTEGERS[how as usize - 1], updates, y),
        };
        self.whole(|plan| {
            (0..count).step_by(ROWS).try_for_each(|first| {
                let count = ROWS.min(count - first);
                let (updates, indices) = (
                    updates.part(first * cols..(first + count) * cols),
                    indices.part(first..first + count),
                );
                plan.launch(
                    kernel,
                    ScatterRows {
                        updates,
                        indices,
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
