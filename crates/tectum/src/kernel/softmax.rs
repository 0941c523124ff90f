//! Softmax over the last axis.

use std::sync::{Arc, LazyLock};

use super::native::{NativeCall, for_each_block, simd};
use super::{Kernel, Prelude, built_in, reduce};
use crate::dtype::DType;

/// `y[row, i] = exp(scale·x[row, i] − m) / Σ exp(scale·x[row, j] − m)` with `m` the row's greatest scaled element.
///
/// A NaN or a scaled +∞ makes the whole row NaN, and so does a row of −∞ alone.
pub static SOFTMAX: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("softmax_f32")
            .prelude(Prelude::Tree)
            .read("x", DType::F32)
            .write("y", DType::F32)
            .param("rows", DType::U32)
            .param("cols", DType::U32)
            .param("scale", DType::F32)
            .body(include_str!("../../kernels/softmax_f32.wgsl")),
        softmax,
    )
});

/// Independent accumulators of the native twin: enough of the widest vectors to hide the latency of an addition.
const LANES: usize = 32;

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SOFTMAX.clone()]
}

fn softmax(call: &NativeCall<'_>) {
    let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
    let (rows, cols, scale) = (call.size(0), call.size(1), call.f32(2));
    // exp costs some eight times a copied element.
    let threads = call.threads_for(rows * cols * 8);
    for_each_block(&mut y[..rows * cols], cols, threads, |row, y| {
        let x = &x[row * cols..][..cols];
        simd(
            #[inline(always)]
            || softmax_row(x, y, scale),
        );
    });
}

/// Three passes over a row that stays in L1: the greatest scaled element, exponentials with their sum, and the division.
#[inline(always)]
fn softmax_row(x: &[f32], y: &mut [f32], scale: f32) {
    let greatest = greatest_scaled(x, scale);
    if !greatest.is_finite() {
        return y.fill(f32::NAN);
    }
    let ((x_blocks, x_rest), (y_blocks, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks_mut::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for ((lane, y), &x) in lanes.iter_mut().zip(y).zip(x) {
            *y = exp_not_positive(scale * x - greatest);
            *lane += *y;
        }
    }
    for ((lane, y), &x) in lanes.iter_mut().zip(y_rest).zip(x_rest) {
        *y = exp_not_positive(scale * x - greatest);
        *lane += *y;
    }
    let inverse = 1.0 / reduce::fold_tree(lanes, |a, b| a + b);
    y.iter_mut().for_each(|y| *y *= inverse);
}

/// The greatest of `scale·x`; NaN if there is one.
#[inline(always)]
fn greatest_scaled(x: &[f32], scale: f32) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut unordered = [0u32; LANES];
    let mut step = |x: &[f32]| {
        for ((lane, nan), &x) in lanes.iter_mut().zip(&mut unordered).zip(x) {
            let scaled = scale * x;
            *lane = if scaled > *lane { scaled } else { *lane };
            *nan |= u32::from(scaled.is_nan());
        }
    };
    let (blocks, rest) = x.as_chunks::<LANES>();
    blocks.iter().for_each(|block| step(block));
    step(rest);
    if unordered.iter().any(|&nan| nan != 0) { f32::NAN } else { reduce::fold_tree(lanes, |a, b| if a > b { a } else { b }) }
}

/// eˣ for x ≤ 0 or −∞, at most 1.5 ulp, 0 below −87.33: [`math::exp`](super::math::exp) without the cases that cannot occur.
#[inline(always)]
fn exp_not_positive(x: f32) -> f32 {
    const LOWEST: f32 = -87.33;
    // Adding 1.5·2²³ rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
    const LN2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    let inside = if x < LOWEST { LOWEST } else { x };
    let shifted = inside * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (inside - n * LN2[0]) - n * LN2[1];
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let y = 1.0 + (r + p * (r * r));
    let y = f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23));
    if x < LOWEST { 0.0 } else { y }
}
