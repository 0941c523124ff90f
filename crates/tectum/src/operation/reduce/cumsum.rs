//! Running sums over the last axis, of f32 and i32.
//!
//! Each segment of a row is added up in order; the segments' sums are added up the same way, and
//! their results are added to the segments. The split depends only on the shape: the same bits on
//! every device.

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{NoBindings, Slices};
use crate::kernel::native::{NativeCall, for_each_chunk, for_each_chunk_pair};
use crate::kernel::{Kernel, TypedKernel, WORKGROUP, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

/// Elements of a row that one invocation adds up.
const SEGMENT: usize = 1024;

kernel_arguments! {
    /// Running sums of each segment of the rows of `x`, and the segments' sums.
    pub(crate) struct Cumsum {
        read x: T, write y: T, write totals: T;
        rows: usize, cols: usize, segment: usize, segments: usize, exclusive: u32, reverse: u32
    }

    /// `y[row, j] += offsets[row, segment of j]`.
    pub(crate) struct CumsumAdd { read offsets: T, read_write y: T; rows: usize, cols: usize, segment: usize, segments: usize, reverse: u32 }
}

/// The kernels of one type.
struct Cumsums {
    sum: TypedKernel<Cumsum>,
    add: TypedKernel<CumsumAdd>,
}

/// What is summed.
trait Summed: Element {
    const ZERO: Self;
    /// Integers wrap.
    fn plus(self, other: Self) -> Self;
}

impl Summed for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self + other
    }
}

impl Summed for i32 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

static FLOATS: LazyLock<Cumsums> = LazyLock::new(cumsums::<f32>);
static INTEGERS: LazyLock<Cumsums> = LazyLock::new(cumsums::<i32>);

fn cumsums<T: Summed>() -> Cumsums {
    let loops = |Cumsum {
                     rows,
                     segment,
                     segments,
                     ..
                 }: Cumsum<NoBindings>,
                 groups: u32| {
        crate::kernel::loops_over(
            (rows as u64).saturating_mul(segments as u64),
            groups.saturating_mul(WORKGROUP),
            segment as u64 + 1,
        )
    };
    let number = T::DTYPE.wgsl();
    let sum = Cumsum::define_on::<T>(format!("cumsum_{number}"));
    let sum = sum
        .body(format!(
            "alias number = {number};\n{}",
            include_str!("cumsum.wgsl")
        ))
        .loops(loops);
    let add = CumsumAdd::define_on::<T>(format!("cumsum_add_{number}"))
        .body(include_str!("cumsum_add.wgsl"));
    Cumsums {
        sum: built_in(sum, sum_segments),
        add: built_in(add, add_offsets),
    }
}

fn sum_segments<T: Summed>(call: &NativeCall<'_>, arguments: Cumsum<Slices<'_, T>>) {
    let Cumsum {
        x,
        y,
        totals,
        rows,
        cols,
        segment,
        segments,
        exclusive,
        reverse,
    } = arguments;
    let outputs = (&mut y[..rows * cols], &mut totals[..rows * segments]);
    for_each_chunk_pair(
        outputs,
        [cols, segments],
        call.threads_for(rows * cols),
        |row, y, totals| {
            let x = &x[row * cols..][..cols];
            for (index, sum) in totals.iter_mut().enumerate() {
                let mut total = T::ZERO;
                for place in index * segment..cols.min((index + 1) * segment) {
                    let col = if reverse != 0 {
                        cols - 1 - place
                    } else {
                        place
                    };
                    let before = total;
                    total = total.plus(x[col]);
                    y[col] = if exclusive != 0 { before } else { total };
                }
                *sum = total;
            }
        },
    );
}

fn add_offsets<T: Summed>(
    call: &NativeCall<'_>,
    CumsumAdd {
        offsets,
        y,
        rows,
        cols,
        segment,
        segments,
        reverse,
    }: CumsumAdd<Slices<'_, T>>,
) {
    for_each_chunk(
        &mut y[..rows * cols],
        cols,
        call.threads_for(rows * cols),
        |row, y| {
            let offsets = &offsets[row * segments..][..segments];
            for (col, y) in y.iter_mut().enumerate() {
                let place = if reverse != 0 { cols - 1 - col } else { col };
                *y = y.plus(offsets[place / segment]);
            }
        },
    );
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [&*FLOATS, &*INTEGERS]
        .into_iter()
        .flat_map(|kernels| [Arc::clone(&kernels.sum), Arc::clone(&kernels.add)])
        .collect()
}

impl PlanBuilder {
    /// Records the running sums of each row: `y[row, j] = Σ x[row, ..= j]`, without the element
    /// itself if `exclusive`; with `reverse` from the end of the row: `Σ x[row, j ..]`.
    ///
    /// # Shapes
    /// `x` and `y` [rows, cols], both f32 or both i32.
    /// # Numerics
    /// On f32 in the order of the elements within 1,024 of them, then by segments of as many: the
    /// same bits on every device. Integers wrap modulo 2³².
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch up to 1,024 columns, three up to 1,024².
    pub fn cumsum(
        &mut self,
        x: View,
        y: View,
        rows: usize,
        cols: usize,
        exclusive: bool,
        reverse: bool,
    ) -> Result<()> {
        if !x.fills(&[rows, cols]) || y.len() != x.len() {
            return Err(Error::invalid(format!(
                "cumsum: x has {} and y {} elements, {rows} × {cols} needed",
                x.len(),
                y.len()
            )));
        }
        let kernels = match x.dtype() {
            DType::F32 => &*FLOATS,
            DType::I32 => &*INTEGERS,
            other => {
                return Err(Error::invalid(format!(
                    "cumsum: x is {}; f32 or i32 needed",
                    other.wgsl()
                )));
            }
        };
        if x.is_empty() {
            return Ok(());
        }
        let segments = cols.div_ceil(SEGMENT);
        let (segment, reverse) = (SEGMENT.min(cols), u32::from(reverse));
        self.whole(|plan| {
            let totals = plan.temp(x.dtype(), rows * segments);
            let arguments = Cumsum {
                x,
                y,
                totals,
                rows,
                cols,
                segment,
                segments,
                exclusive: u32::from(exclusive),
                reverse,
            };
            plan.launch(&kernels.sum, arguments, groups_for(rows * segments))?;
            if segments == 1 {
                return Ok(());
            }
            let offsets = plan.temp(x.dtype(), rows * segments);
            plan.cumsum(totals, offsets, rows, segments, true, false)?;
            plan.launch(
                &kernels.add,
                CumsumAdd {
                    offsets,
                    y,
                    rows,
                    cols,
                    segment,
                    segments,
                    reverse,
                },
                groups_for(rows * cols),
            )
        })
    }
}
