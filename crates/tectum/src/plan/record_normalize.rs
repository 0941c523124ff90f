//! Recording min, mean, variance, layer norm and root-mean-square norm.

use super::record_reduce::{check, groups};
use super::{PlanBuilder, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::moments::{self, Mean, Moments, MomentsMerge};
use crate::kernel::normalize::{self, LayerNorm, RmsNorm};
use crate::kernel::reduce::{self, Reduction, SEGMENT};

impl PlanBuilder {
    /// Records `y[row] = min x[row, ..]`, NaN if the row holds one. A row of no elements gives +∞.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` [rows].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn min(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("min", x, y, rows, cols)?;
        if cols == 0 {
            return self.fill_number(y, f64::INFINITY);
        }
        self.whole(|plan| plan.reduce_rows(&reduce::of(x.dtype()).min, x, y, rows, cols))
    }

    /// Records `y[row] = Σ x[row, ..] / cols`. A row of no elements gives NaN.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` [rows].
    /// # Numerics
    /// Accumulation in the type of `x` by the tree of [`PlanBuilder::sum`], one division; same device, same bits.
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
                let arguments = Reduction { x: from, y: sums, rows, cols: width, segment: SEGMENT, segments };
                plan.launch(&reduce::of(x.dtype()).sum, arguments, groups(rows * segments))?;
                (from, width) = (sums, segments);
            }
            plan.launch(moments::mean_kernel(x.dtype()), Mean { x: from, y, rows, cols: width, divisor: cols }, groups(rows))
        })
    }

    /// Records the mean of each row and its variance `Σ (x − mean)² / (cols − ddof)`: `ddof` 0 for the variance of the row
    /// itself, 1 for the unbiased estimate from a sample. A row of no elements gives NaN for both, one of `ddof` elements or
    /// fewer NaN for its variance.
    ///
    /// # Shapes
    /// `x` [rows, cols], `mean` and `variance` [rows].
    /// # Numerics
    /// Two passes over segments of 4,096 elements, merged by their means: the error grows with the mean's distance
    /// from 0 only through the rounding of the mean itself. Same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch for rows of up to 4,096 elements, else two.
    /// # Source
    /// Chan, Golub and LeVeque, *Updating Formulae and a Pairwise Algorithm for Computing Sample Variances* (1979).
    pub fn variance(&mut self, x: View, mean: View, variance: View, rows: usize, cols: usize, ddof: usize) -> Result<()> {
        check("variance: mean", x, mean, rows, cols)?;
        check("variance", x, variance, rows, cols)?;
        if [x, mean, variance].iter().any(|view| view.dtype() != DType::F32) {
            return Err(Error::invalid("variance: of f32 alone"));
        }
        if cols == 0 {
            mean.check_no_overlap(variance, "variance")?;
            return self.whole(|plan| [mean, variance].into_iter().try_for_each(|y| plan.fill_number(y, f64::NAN)));
        }
        if rows == 0 {
            return Ok(());
        }
        let scale = if cols > ddof { 1.0 / (cols - ddof) as f32 } else { f32::NAN };
        let segments = cols.div_ceil(SEGMENT);
        let segment = SEGMENT.min(cols);
        if segments == 1 {
            return self.launch(&moments::MOMENTS, Moments { x, mean, spread: variance, rows, cols, segment, segments, scale }, groups(rows));
        }
        self.whole(|plan| {
            let [means, spreads] = [0, 1].map(|_| plan.temp(DType::F32, rows * segments));
            let parts = Moments { x, mean: means, spread: spreads, rows, cols, segment, segments, scale: 1.0 };
            plan.launch(&moments::MOMENTS, parts, groups(rows * segments))?;
            let merged = MomentsMerge { means, spreads, mean, spread: variance, rows, cols, segment, segments, scale };
            plan.launch(&moments::MOMENTS_MERGE, merged, groups(rows))
        })
    }

    /// Records `y[row, i] = (x[row, i] − mean) / √(variance + epsilon) · gain[i] + bias[i]`, mean and variance of the row.
    ///
    /// # Shapes
    /// `gain` and `bias` [cols], `x` and `y` [rows, cols], `cols` being the length of `gain`.
    /// # Numerics
    /// f32, the variance by two passes over fixed trees; same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit or `epsilon` is not positive; as [`PlanBuilder::launch`].
    /// # Cost
    /// One launch; a row is read from memory once and from cache after.
    pub fn layer_norm(&mut self, x: View, [gain, bias]: [View; 2], y: View, epsilon: f32) -> Result<()> {
        let cols = gain.len();
        let rows = norm_rows("layer_norm", x, y, cols, epsilon)?;
        if bias.len() != cols {
            return Err(Error::invalid(format!("layer_norm: gain has {cols} and bias {} elements", bias.len())));
        }
        if rows == 0 {
            return Ok(());
        }
        self.launch(&normalize::LAYER_NORM, LayerNorm { x, gain, bias, y, rows, cols, epsilon }, groups(rows))
    }

    /// Records `y[row, i] = x[row, i] / √(mean of x[row, ..]² + epsilon) · gain[i]`.
    ///
    /// # Shapes
    /// `gain` [cols], `x` and `y` [rows, cols].
    /// # Errors
    /// As [`PlanBuilder::layer_norm`].
    pub fn rms_norm(&mut self, x: View, gain: View, y: View, epsilon: f32) -> Result<()> {
        let cols = gain.len();
        let rows = norm_rows("rms_norm", x, y, cols, epsilon)?;
        if rows == 0 {
            return Ok(());
        }
        self.launch(&normalize::RMS_NORM, RmsNorm { x, gain, y, rows, cols, epsilon }, groups(rows))
    }
}

/// The number of rows, once the lengths fit.
fn norm_rows(op: &str, x: View, y: View, cols: usize, epsilon: f32) -> Result<usize> {
    if epsilon.is_nan() || epsilon <= 0.0 {
        return Err(Error::invalid(format!("{op}: epsilon {epsilon} is not positive")));
    }
    let rows = x.len().checked_div(cols).unwrap_or(0);
    if x.len() != y.len() || rows * cols != x.len() {
        return Err(Error::invalid(format!("{op}: x has {} and y {} elements, whole rows of gain's {cols} needed", x.len(), y.len())));
    }
    Ok(rows)
}
