//! Softmax over the last axis.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::math::four::{self, Four};
use crate::kernel::native::{NativeCall, PREFETCH_STEP, for_each_block, prefetch, simd};
use crate::kernel::{Kernel, Prelude, TypedKernel, math};
use crate::kernel_arguments;
use crate::operation::reduce::{self, CacheAligned};
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[row, i] = exp(scale·x[row, i] − m) / Σ exp(scale·x[row, j] − m)` with `m` the row's
    /// greatest scaled element.
    ///
    /// A NaN or a scaled +∞ makes the whole row NaN, and so does a row of −∞ alone.
    pub(crate) struct Softmax { read x: f32, write y: f32; rows: usize, cols: usize, scale: f32 }
}

pub(crate) static SOFTMAX: LazyLock<TypedKernel<Softmax>> = LazyLock::new(|| {
    let builder = Softmax::define("softmax_f32")
        .prelude(Prelude::Tree)
        .body(include_str!("softmax_f32.wgsl"));
    built_in(
        builder.loops(|Softmax { rows, cols, .. }, groups| {
            crate::kernel::loops_over_rows([rows, cols], groups, 3)
        }),
        softmax,
    )
});

/// Independent accumulators of the exponentials' sum.
const LANES: usize = PREFETCH_STEP;

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SOFTMAX.clone()]
}

fn softmax(
    call: &NativeCall<'_>,
    Softmax {
        x,
        y,
        rows,
        cols,
        scale,
    }: Softmax<Slices<'_>>,
) {
    // An exponential costs about eight times as much as a copied element.
    let threads = call.threads_for(rows * cols * 8);
    for_each_block(&mut y[..rows * cols], cols, threads, |row, y| {
        let (x, next) = x[row * cols..].split_at(cols);
        let greatest = greatest_scaled(x, scale);
        simd(
            #[inline(always)]
            || exponentials(x, next, y, scale, greatest),
        );
    });
}

/// Exponentials with their sum, and the division, over a row that stays in L1.
///
/// There is no test for NaN: it passes the first comparison, but its own exponential is NaN, and so
/// are the sum and the row. So is that of +∞ less itself, and of −∞ less itself where nothing is
/// greater.
#[inline(always)]
fn exponentials(x: &[f32], next: &[f32], y: &mut [f32], scale: f32, greatest: f32) {
    let mut sums = CacheAligned([0.0; LANES]);
    let ((x, x_rest), (y_blocks, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks_mut::<LANES>());
    for (block, (x, y)) in x.iter().zip(y_blocks).enumerate() {
        prefetch(next, block * LANES);
        let mut made = [0.0; LANES];
        for lane in 0..LANES / 4 {
            let places = [
                lane,
                lane + LANES / 4,
                lane + LANES / 2,
                lane + 3 * (LANES / 4),
            ];
            let less = [x[places[0]], x[places[1]], x[places[2]], x[places[3]]];
            let less = [
                scale * less[0] - greatest,
                scale * less[1] - greatest,
                scale * less[2] - greatest,
                scale * less[3] - greatest,
            ];
            let four = four_not_positive(less);
            (
                made[places[0]],
                made[places[1]],
                made[places[2]],
                made[places[3]],
            ) = (four[0], four[1], four[2], four[3]);
        }
        sums.0
            .iter_mut()
            .zip(&made)
            .for_each(|(sum, made)| *sum += made);
        *y = made;
    }
    for ((x, y), sum) in x_rest.iter().zip(y_rest).zip(&mut sums.0) {
        *y = exp_not_positive(scale * x - greatest);
        *sum += *y;
    }
    let inverse = 1.0 / reduce::fold_tree(sums.0, |a, b| a + b);
    y.iter_mut().for_each(|y| *y *= inverse);
}

/// eˣ of sixteen that are not positive, or −∞, or NaN.
#[inline(always)]
pub(crate) fn exponentials_of_sixteen(x: [f32; 16]) -> [f32; 16] {
    // One vector: four at a time, as above, would be vectors of four.
    let mut made = [0.0; 16];
    for (made, x) in made.iter_mut().zip(x) {
        *made = exp_not_positive(x);
    }
    made
}

/// The maximum of `scale·x` except NaN: rounding preserves order, so it is the scaled maximum or
/// minimum.
fn greatest_scaled(x: &[f32], scale: f32) -> f32 {
    let greatest = if scale >= 0.0 {
        reduce::fold_lanes(x, f32::NEG_INFINITY, f32::max, f32::max)
    } else {
        reduce::fold_lanes(x, f32::INFINITY, f32::min, f32::min)
    };
    scale * greatest
}

/// The lowest argument whose exponential is a normal number.
const LOWEST: f32 = -87.33;

/// eˣ for x ≤ 0 or −∞, at most 1.5 ulp, 0 below −87.33, NaN for NaN: [`math::exp`] without the
/// cases that cannot occur.
#[inline(always)]
fn exp_not_positive(x: f32) -> f32 {
    ends(x, math::exp_normal(inside(x)))
}

/// The same of four.
#[inline(always)]
fn four_not_positive(x: [f32; 4]) -> [f32; 4] {
    let Four(y) = four::exp_normal(Four([
        inside(x[0]),
        inside(x[1]),
        inside(x[2]),
        inside(x[3]),
    ]));
    [
        ends(x[0], y[0]),
        ends(x[1], y[1]),
        ends(x[2], y[2]),
        ends(x[3], y[3]),
    ]
}

/// NaN is preserved.
#[inline(always)]
fn inside(x: f32) -> f32 {
    if LOWEST > x { LOWEST } else { x }
}

/// The exponential of NaN is NaN already; 0 · x would be NaN for −∞ as well.
#[inline(always)]
fn ends(x: f32, y: f32) -> f32 {
    if x < LOWEST { 0.0 } else { y }
}

impl PlanBuilder {
    /// Records `y[row, ..] = softmax(scale · x[row, ..])`.
    ///
    /// # Shapes
    /// `x` and `y` [rows, cols].
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn softmax(
        &mut self,
        x: View,
        y: View,
        rows: usize,
        cols: usize,
        scale: f32,
    ) -> Result<()> {
        if !x.fills(&[rows, cols]) || !y.fills(&[rows, cols]) {
            return Err(Error::invalid(format!(
                "softmax: x has {} and y {} elements, [{rows}, {cols}] needed",
                x.len(),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            &SOFTMAX,
            Softmax {
                x,
                y,
                rows,
                cols,
                scale,
            },
            groups(rows),
        )
    }
}
