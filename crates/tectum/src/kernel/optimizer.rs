//! AdamW, in place.

use std::sync::{Arc, LazyLock};

use super::native::simd;
use super::{Kernel, built_in};
use crate::dtype::DType;

/// Words of the `schedule` binding: learning rate, 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), weight decay.
pub const SCHEDULE_WORDS: usize = 4;

/// One step of AdamW on `n` weights:
/// `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `w ← w − lr·(m̂/(√v̂ + ε) + λw)`.
///
/// # Source
/// Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, ICLR 2019, Algorithm 2.
pub static ADAMW: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("adamw_f32")
            .read("schedule", DType::F32)
            .read("g", DType::F32)
            .read_write("w", DType::F32)
            .read_write("m", DType::F32)
            .read_write("v", DType::F32)
            .param("n", DType::U32)
            .param("beta1", DType::F32)
            .param("beta2", DType::F32)
            .param("epsilon", DType::F32)
            .body(include_str!("../../kernels/adamw_f32.wgsl")),
        |call| {
            let schedule = call.read::<f32>(0);
            let (g, w, m, v) = (call.read::<f32>(1), call.write::<f32>(2), call.write::<f32>(3), call.write::<f32>(4));
            let (n, beta1, beta2, epsilon) = (call.size(0), call.f32(1), call.f32(2), call.f32(3));
            let [rate, unbias1, unbias2, decay] = [schedule[0], schedule[1], schedule[2], schedule[3]];
            simd(
                #[inline(always)]
                || {
                    for (((w, m), v), &g) in w[..n].iter_mut().zip(m).zip(v).zip(g) {
                        *m = beta1 * *m + (1.0 - beta1) * g;
                        *v = beta2 * *v + (1.0 - beta2) * (g * g);
                        let step = (*m * unbias1) / ((*v * unbias2).sqrt() + epsilon);
                        *w -= rate * (step + decay * *w);
                    }
                },
            );
        },
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ADAMW.clone()]
}
