//! Recording sum, max, argmax and softmax. Sums and extremes are of f32 or f64, as the operand is.

use super::{PlanBuilder, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::reduce::{self, Argmax, ArgmaxMerge, COLUMN_SEGMENT, Reduction, SEGMENT};
use crate::kernel::softmax::{self, Softmax};
use crate::kernel::{MAX_GROUPS, TypedKernel, groups_for};

impl PlanBuilder {
    /// Records `y[row] = Σ x[row, ..]`. A row of no elements sums to 0.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` [rows], both f32 or both f64.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn sum(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("sum", x, y, rows, cols)?;
        if cols == 0 {
            return self.fill_number(y, 0.0);
        }
        self.whole(|plan| plan.reduce_rows(&reduce::of(x.dtype()).sum, x, y, rows, cols))
    }

    /// Records `y[row] = max x[row, ..]`, NaN if the row holds one. A row of no elements gives −∞.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` [rows].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn max(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("max", x, y, rows, cols)?;
        if cols == 0 {
            return self.fill_number(y, f64::NEG_INFINITY);
        }
        self.whole(|plan| plan.reduce_rows(&reduce::of(x.dtype()).max, x, y, rows, cols))
    }

    pub(super) fn reduce_rows(&mut self, kernel: &TypedKernel<Reduction>, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let segments = cols.div_ceil(SEGMENT);
        let target = if segments == 1 { y } else { self.temp(x.dtype(), rows * segments) };
        self.launch(kernel, Reduction { x, y: target, rows, cols, segment: SEGMENT.min(cols), segments }, groups(rows * segments))?;
        if segments == 1 { Ok(()) } else { self.reduce_rows(kernel, target, y, rows, segments) }
    }

    /// Records `y[col] = Σ x[.., col]`.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` [cols].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn sum_columns(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("sum_columns", x, y, cols, rows)?;
        if rows == 0 {
            return self.fill_number(y, 0.0);
        }
        if cols == 0 {
            return Ok(());
        }
        let segments = rows.div_ceil(COLUMN_SEGMENT);
        self.whole(|plan| {
            let target = if segments == 1 { y } else { plan.temp(x.dtype(), segments * cols) };
            let arguments = Reduction { x, y: target, rows, cols, segment: COLUMN_SEGMENT.min(rows), segments };
            plan.launch(&reduce::of(x.dtype()).sum_columns, arguments, groups_for(segments * cols))?;
            if segments == 1 { Ok(()) } else { plan.sum_columns(target, y, segments, cols) }
        })
    }

    /// Records `y[row]` = the column of the first greatest element of the row; a NaN counts as greater than all.
    ///
    /// # Shapes
    /// `x` [rows, cols] f32, `y` [rows] u32.
    /// # Errors
    /// As [`PlanBuilder::sum`]; `Invalid` if `cols` is 0 and `rows` is not.
    pub fn argmax(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("argmax", x, y, rows, cols)?;
        if rows == 0 {
            return Ok(());
        }
        if cols == 0 {
            return Err(Error::invalid("argmax: an empty row has no maximum"));
        }
        let segments = cols.div_ceil(SEGMENT);
        self.whole(|plan| {
            let target = if segments == 1 { y } else { plan.temp(DType::U32, rows * segments) };
            plan.launch(&reduce::ARGMAX, Argmax { x, y: target, rows, cols, segment: SEGMENT.min(cols), segments }, groups(rows * segments))?;
            if segments > 1 {
                plan.launch(&reduce::ARGMAX_MERGE, ArgmaxMerge { x, candidates: target, y, rows, cols, count: segments }, groups_for(rows))?;
            }
            Ok(())
        })
    }

    /// Records `y[row, ..] = softmax(scale · x[row, ..])`.
    ///
    /// # Shapes
    /// `x` and `y` [rows, cols].
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn softmax(&mut self, x: View, y: View, rows: usize, cols: usize, scale: f32) -> Result<()> {
        if !x.fills(&[rows, cols]) || !y.fills(&[rows, cols]) {
            return Err(Error::invalid(format!("softmax: x has {} and y {} elements, [{rows}, {cols}] needed", x.len(), y.len())));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.launch(&softmax::SOFTMAX, Softmax { x, y, rows, cols, scale }, groups(rows))
    }
}

/// One workgroup for each item, capped so that the kernel strides over the rest.
pub(super) fn groups(items: usize) -> u32 {
    items.min(MAX_GROUPS as usize) as u32
}

pub(super) fn check(op: &str, x: View, y: View, kept: usize, reduced: usize) -> Result<()> {
    if x.fills(&[kept, reduced]) && y.len() == kept {
        return Ok(());
    }
    Err(Error::invalid(format!("{op}: x has {} and y {} elements, {kept} × {reduced} and {kept} needed", x.len(), y.len())))
}
