//! Softmax over the last axis.

use std::sync::{Arc, LazyLock};

use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, Prelude, built_in, math, reduce};
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

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SOFTMAX.clone()]
}

fn softmax(call: &NativeCall<'_>) {
    let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
    let (rows, cols, scale) = (call.size(0), call.size(1), call.f32(2));
    // exp costs some eight times a copied element.
    let threads = call.threads_for(rows * cols * 8);
    for_each_chunk(&mut y[..rows * cols], cols, threads, |row, y| {
        let x = &x[row * cols..][..cols];
        simd(
            #[inline(always)]
            || y.iter_mut().zip(x).for_each(|(y, &x)| *y = scale * x),
        );
        let greatest = reduce::max(y);
        simd(
            #[inline(always)]
            || y.iter_mut().for_each(|y| *y = math::exp(*y - greatest)),
        );
        let inverse = 1.0 / reduce::sum(y);
        simd(
            #[inline(always)]
            || y.iter_mut().for_each(|y| *y *= inverse),
        );
    });
}
