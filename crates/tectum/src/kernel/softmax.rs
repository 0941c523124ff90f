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
const LANES: usize = 64;

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

/// Four passes over a row that stays in L1: the greatest scaled element, exponentials, their sum, and the division.
///
/// A NaN is not looked for: it passes by the first comparison, but its own exponential is NaN, and with it the sum and the row.
/// So is that of +∞ less itself, and of −∞ less itself where nothing is greater.
#[inline(always)]
fn softmax_row(x: &[f32], y: &mut [f32], scale: f32) {
    let greatest = greatest_scaled(x, scale);
    for (y, &x) in y.iter_mut().zip(x) {
        *y = exp_not_positive(scale * x - greatest);
    }
    let inverse = 1.0 / reduce::sum(y);
    y.iter_mut().for_each(|y| *y *= inverse);
}

/// The greatest of `scale·x` but for NaN.
#[inline(always)]
fn greatest_scaled(x: &[f32], scale: f32) -> f32 {
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = greater(*lane, scale * x);
        }
    }
    for (lane, &x) in lanes.iter_mut().zip(rest) {
        *lane = greater(*lane, scale * x);
    }
    reduce::fold_tree(lanes, greater)
}

/// eˣ for x ≤ 0 or −∞, at most 1.5 ulp, 0 below −87.33, NaN for NaN: [`math::exp`](super::math::exp) without the cases that
/// cannot occur.
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
    // The bits of a NaN went through integer arithmetic: 0 · x is 0, or NaN again.
    if x < LOWEST { 0.0 } else { y + 0.0 * x }
}
