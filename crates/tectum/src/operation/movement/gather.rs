//! Rows of a table by index, and their sum back into one.
//!
//! An index beyond the table is never followed: it gives a row of zeros (or adds nothing) and is
//! counted, so that the host can detect it. Sums are of integers, hence the same bits in any order
//! of addition.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::{built_in, words_each};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[i, ..] = table[indices[i], ..]`, zeros for an index beyond the table.
    pub(crate) struct Gather { read table: u32, read indices: u32, write y: u32, atomic faults: u32; rows: usize, cols: usize, count: usize }

    /// `y[indices[i], ..] += x[i, ..]` modulo 2³², ignoring an index beyond `y`.
    pub(crate) struct ScatterAdd { read x: u32, read indices: u32, atomic y: u32, atomic faults: u32; rows: usize, cols: usize, count: usize }
}

pub(crate) static GATHER: LazyLock<TypedKernel<Gather>> = LazyLock::new(|| {
    built_in(
        Gather::define("gather_u32")
            .body(include_str!("gather_u32.wgsl"))
            .read_words("table", |Gather { cols, count, .. }| {
                cols as f64 * count as f64
            }),
        gather,
    )
});

pub(crate) static SCATTER_ADD: LazyLock<TypedKernel<ScatterAdd>> = LazyLock::new(|| {
    built_in(
        ScatterAdd::define("scatter_add_u32").body(include_str!("scatter_add_u32.wgsl")),
        scatter_add,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![GATHER.clone(), SCATTER_ADD.clone()]
}

fn count_faults(indices: &[u32], rows: usize) -> u32 {
    indices
        .iter()
        .filter(|&&index| index as usize >= rows)
        .count() as u32
}

fn gather(
    call: &NativeCall<'_>,
    Gather {
        table,
        indices,
        y,
        faults,
        rows,
        cols,
        count,
    }: Gather<Slices<'_>>,
) {
    let indices = &indices[..count];
    faults[0] = faults[0].wrapping_add(count_faults(indices, rows));
    let chunk = (4096 / cols).max(1);
    for_each_chunk(
        &mut y[..count * cols],
        chunk * cols,
        call.threads_for(count * cols),
        |part, y| {
            let indices = &indices[part * chunk..];
            if cols == 1 {
                return y.iter_mut().zip(indices).for_each(|(y, &row)| {
                    *y = table[..rows].get(row as usize).copied().unwrap_or(0)
                });
            }
            for (y, &row) in y.chunks_exact_mut(cols).zip(indices) {
                match row as usize {
                    row if row < rows => y.copy_from_slice(&table[row * cols..][..cols]),
                    _ => y.fill(0),
                }
            }
        },
    );
}

/// Each thread owns a range of the rows of `y` and adds the values for that range.
fn scatter_add(
    call: &NativeCall<'_>,
    ScatterAdd {
        x,
        indices,
        y,
        faults,
        rows,
        cols,
        count,
    }: ScatterAdd<Slices<'_>>,
) {
    let indices = &indices[..count];
    faults[0] = faults[0].wrapping_add(count_faults(indices, rows));
    let threads = call.threads_for(count * cols);
    let share = rows.div_ceil(threads);
    for_each_chunk(&mut y[..rows * cols], share * cols, threads, |part, y| {
        let first = part * share;
        for (x, &row) in x.chunks_exact(cols).zip(indices) {
            let offset = (row as usize).wrapping_sub(first);
            let Some(y) = y.get_mut(
                offset.saturating_mul(cols)..offset.saturating_add(1).saturating_mul(cols),
            ) else {
                continue;
            };
            if let ([y], [x]) = (&mut *y, x) {
                *y = y.wrapping_add(*x);
                continue;
            }
            simd(
                #[inline(always)]
                || {
                    y.iter_mut()
                        .zip(x)
                        .for_each(|(y, &x)| *y = y.wrapping_add(x))
                },
            );
        }
    });
}

impl PlanBuilder {
    /// Records `y[i, ..] = table[indices[i], ..]` for types of one width. An index beyond the table
    /// gives a row of zeros, and `faults` is set to the number of such indices.
    ///
    /// # Shapes
    /// `table` [rows, cols], `indices` \[count\] u32, `y` [count, cols], `faults` \[1\] u32.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// Two launches: one clears `faults`.
    pub fn gather(
        &mut self,
        table: View,
        indices: View,
        y: View,
        faults: View,
        cols: usize,
    ) -> Result<()> {
        let (rows, count) = (rows_of("gather: table", table, cols)?, indices.len());
        check_rows("gather", y, faults, count, cols)?;
        let words = words_each("gather", &[table, y])?;
        faults.check_no_overlap(y, "gather")?;
        self.whole(|plan| {
            plan.fill(faults, 0)?;
            if y.is_empty() {
                return Ok(());
            }
            if rows == 0 {
                plan.fill(y, 0)?;
                return plan.fill(faults, count as u32);
            }
            let ([table, y], cols) = (
                [table, y].map(|view| view.reinterpret(DType::U32)),
                cols * words,
            );
            plan.launch(
                &GATHER,
                Gather {
                    table,
                    indices,
                    y,
                    faults,
                    rows,
                    cols,
                    count,
                },
                groups_for(count * cols),
            )
        })
    }

    /// Records `y[indices[i], ..] += x[i, ..]` for integers, modulo 2³². An index beyond `y` adds
    /// nothing, and `faults` is set to the number of such indices. Rows may repeat; the order of
    /// the additions does not matter.
    ///
    /// # Shapes
    /// `x` [count, cols] i32 or u32, `indices` \[count\] u32, `y` [rows, cols] of x's type,
    /// `faults` \[1\] u32.
    /// # Errors
    /// `Invalid` if the lengths or types do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// Two launches: one clears `faults`.
    pub fn scatter_add(
        &mut self,
        x: View,
        indices: View,
        y: View,
        faults: View,
        cols: usize,
    ) -> Result<()> {
        let (rows, count) = (rows_of("scatter_add: y", y, cols)?, indices.len());
        check_rows("scatter_add", x, faults, count, cols)?;
        if x.dtype() != y.dtype() || !matches!(x.dtype(), DType::I32 | DType::U32) {
            return Err(Error::invalid(format!(
                "scatter_add: x is {} and y {}; one integer type needed",
                x.dtype().wgsl(),
                y.dtype().wgsl()
            )));
        }
        self.whole(|plan| {
            plan.fill(faults, 0)?;
            if x.is_empty() {
                return Ok(());
            }
            if rows == 0 {
                return plan.fill(faults, count as u32);
            }
            let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
            plan.launch(
                &SCATTER_ADD,
                ScatterAdd {
                    x,
                    indices,
                    y,
                    faults,
                    rows,
                    cols,
                    count,
                },
                groups_for(count * cols),
            )
        })
    }
}

pub(super) fn rows_of(what: &str, view: View, cols: usize) -> Result<usize> {
    let rows = view.len().checked_div(cols).unwrap_or(0);
    if view.fills(&[rows, cols]) {
        Ok(rows)
    } else {
        Err(Error::invalid(format!(
            "{what} has {} elements, rows of {cols} needed",
            view.len()
        )))
    }
}

fn check_rows(op: &str, rows: View, faults: View, count: usize, cols: usize) -> Result<()> {
    if rows.fills(&[count, cols]) && faults.len() == 1 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{op}: {} elements for {count} indices of rows of {cols}, faults {}; 1 needed",
        rows.len(),
        faults.len()
    )))
}
