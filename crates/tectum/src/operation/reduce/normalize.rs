//! Layer norm and root-mean-square norm over the last axis.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{
    NativeCall, PREFETCH_STEP, for_each_block, prefetch, prefetch_write, simd,
};
use crate::kernel::{Kernel, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::reduce::moments::sum_of_squares;
use crate::operation::reduce::sum;
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[row, i] = (x[row, i] − mean) / √(variance + ε) · gain[i] + bias[i]`.
    pub(crate) struct LayerNorm { read x: f32, read gain: f32, read bias: f32, write y: f32; rows: usize, cols: usize, epsilon: f32 }

    /// `y[row, i] = x[row, i] / √(Σ x² / cols + ε) · gain[i]`.
    pub(crate) struct RmsNorm { read x: f32, read gain: f32, write y: f32; rows: usize, cols: usize, epsilon: f32 }
}

pub(crate) static LAYER_NORM: LazyLock<TypedKernel<LayerNorm>> = LazyLock::new(|| {
    let builder = LayerNorm::define("layer_norm_f32")
        .prelude(Prelude::Tree)
        .body(include_str!("layer_norm_f32.wgsl"));
    built_in(
        builder.loops(|LayerNorm { rows, cols, .. }, groups| {
            crate::kernel::loops_over_rows([rows, cols], groups, 3)
        }),
        layer_norm,
    )
});

pub(crate) static RMS_NORM: LazyLock<TypedKernel<RmsNorm>> = LazyLock::new(|| {
    let builder = RmsNorm::define("rms_norm_f32")
        .prelude(Prelude::Tree)
        .body(include_str!("rms_norm_f32.wgsl"));
    built_in(
        builder.loops(|RmsNorm { rows, cols, .. }, groups| {
            crate::kernel::loops_over_rows([rows, cols], groups, 2)
        }),
        rms_norm,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![LAYER_NORM.clone(), RMS_NORM.clone()]
}

fn layer_norm(
    call: &NativeCall<'_>,
    LayerNorm {
        x,
        gain,
        bias,
        y,
        rows,
        cols,
        epsilon,
    }: LayerNorm<Slices<'_>>,
) {
    let (gain, bias) = (&gain[..cols], &bias[..cols]);
    for_each_block(
        &mut y[..rows * cols],
        cols,
        call.threads_for(2 * rows * cols),
        |row, y| {
            let (x, next) = x[row * cols..].split_at(cols);
            prefetch_write(y);
            let mean = sum(x) / cols as f32;
            let inverse = 1.0 / (sum_of_squares(x, mean) / cols as f32 + epsilon).sqrt();
            scaled(
                x,
                next,
                y,
                [gain, bias],
                #[inline(always)]
                |x, gain, bias| ((x - mean) * inverse) * gain + bias,
            );
        },
    );
}

fn rms_norm(
    call: &NativeCall<'_>,
    RmsNorm {
        x,
        gain,
        y,
        rows,
        cols,
        epsilon,
    }: RmsNorm<Slices<'_>>,
) {
    let gain = &gain[..cols];
    for_each_block(
        &mut y[..rows * cols],
        cols,
        call.threads_for(2 * rows * cols),
        |row, y| {
            let (x, next) = x[row * cols..].split_at(cols);
            let inverse = 1.0 / (sum_of_squares(x, 0.0) / cols as f32 + epsilon).sqrt();
            scaled(
                x,
                next,
                y,
                [gain, gain],
                #[inline(always)]
                |x, gain, _| (x * inverse) * gain,
            );
        },
    );
}

/// `y = f(x, gain, bias)` element by element, prefetching the next row.
#[inline(always)]
fn scaled(
    x: &[f32],
    next: &[f32],
    y: &mut [f32],
    [gain, bias]: [&[f32]; 2],
    f: impl Fn(f32, f32, f32) -> f32,
) {
    simd(
        #[inline(always)]
        || {
            let (x_blocks, x_rest) = x.as_chunks::<PREFETCH_STEP>();
            let (y_blocks, y_rest) = y.as_chunks_mut::<PREFETCH_STEP>();
            let (gain_blocks, gain_rest) = gain.as_chunks::<PREFETCH_STEP>();
            let (bias_blocks, bias_rest) = bias.as_chunks::<PREFETCH_STEP>();
            for (index, (((y, x), gain), bias)) in y_blocks
                .iter_mut()
                .zip(x_blocks)
                .zip(gain_blocks)
                .zip(bias_blocks)
                .enumerate()
            {
                prefetch(next, index * PREFETCH_STEP);
                // Through registers: the compiler does not know that y does not alias the inputs.
                let mut made = [0.0; PREFETCH_STEP];
                for lane in 0..PREFETCH_STEP {
                    made[lane] = f(x[lane], gain[lane], bias[lane]);
                }
                *y = made;
            }
            for (((y, &x), &gain), &bias) in
                y_rest.iter_mut().zip(x_rest).zip(gain_rest).zip(bias_rest)
            {
                *y = f(x, gain, bias);
            }
        },
    );
}

impl PlanBuilder {
    /// Records `y[row, i] = (x[row, i] − mean) / √(variance + epsilon) · gain[i] + bias[i]`, mean
    /// and variance of the row.
    ///
    /// # Shapes
    /// `gain` and `bias` \[cols\], `x` and `y` [rows, cols], `cols` being the length of `gain`.
    /// # Numerics
    /// f32, the variance by two passes over fixed trees; same device, same bits.
    /// # Errors
    /// `Invalid` if the lengths do not fit or `epsilon` is not positive; as
    /// [`PlanBuilder::launch`].
    /// # Cost
    /// One launch; a row is read from memory once and from cache after.
    pub fn layer_norm(
        &mut self,
        x: View,
        [gain, bias]: [View; 2],
        y: View,
        epsilon: f32,
    ) -> Result<()> {
        let cols = gain.len();
        let rows = norm_rows("layer_norm", x, y, cols, epsilon)?;
        if bias.len() != cols {
            return Err(Error::invalid(format!(
                "layer_norm: gain has {cols} and bias {} elements",
                bias.len()
            )));
        }
        if rows == 0 {
            return Ok(());
        }
        self.launch(
            &LAYER_NORM,
            LayerNorm {
                x,
                gain,
                bias,
                y,
                rows,
                cols,
                epsilon,
            },
            groups(rows),
        )
    }

    /// Records `y[row, i] = x[row, i] / √(mean of x[row, ..]² + epsilon) · gain[i]`.
    ///
    /// # Shapes
    /// `gain` \[cols\], `x` and `y` [rows, cols].
    /// # Errors
    /// As [`PlanBuilder::layer_norm`].
    pub fn rms_norm(&mut self, x: View, gain: View, y: View, epsilon: f32) -> Result<()> {
        let cols = gain.len();
        let rows = norm_rows("rms_norm", x, y, cols, epsilon)?;
        if rows == 0 {
            return Ok(());
        }
        self.launch(
            &RMS_NORM,
            RmsNorm {
                x,
                gain,
                y,
                rows,
                cols,
                epsilon,
            },
            groups(rows),
        )
    }
}

/// The number of rows, once the lengths fit.
fn norm_rows(op: &str, x: View, y: View, cols: usize, epsilon: f32) -> Result<usize> {
    if epsilon.is_nan() || epsilon <= 0.0 {
        return Err(Error::invalid(format!(
            "{op}: epsilon {epsilon} is not positive"
        )));
    }
    let rows = x.len().checked_div(cols).unwrap_or(0);
    if x.len() != y.len() || rows * cols != x.len() {
        return Err(Error::invalid(format!(
            "{op}: x has {} and y {} elements, whole rows of gain's {cols} needed",
            x.len(),
            y.len()
        )));
    }
    Ok(rows)
}
