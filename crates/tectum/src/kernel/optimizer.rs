//! AdamW, in place.

use std::sync::{Arc, LazyLock};

use super::native::simd;
use super::{Kernel, TypedKernel, built_in};
use crate::kernel_arguments;

/// Words of the `schedule` binding: learning rate, 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), weight decay.
pub const SCHEDULE_WORDS: usize = 4;

kernel_arguments! {
    /// One step of AdamW on `n` weights:
    /// `m ← β₁m + (1−β₁)g`, `v ← β₂v + (1−β₂)g²`, `w ← w − lr·(m̂/(√v̂ + ε) + λw)`.
    ///
    /// # Source
    /// Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, ICLR 2019, Algorithm 2.
    pub(crate) struct AdamW {
        read schedule: f32, read g: f32, read_write w: f32, read_write m: f32, read_write v: f32;
        n: usize, beta1: f32, beta2: f32, epsilon: f32
    }
}

pub(crate) static ADAMW: LazyLock<TypedKernel<AdamW>> = LazyLock::new(|| {
    built_in(AdamW::define("adamw_f32").body(include_str!("../../kernels/adamw_f32.wgsl")), |_, arguments| {
        let AdamW { schedule, g, w, m, v, n, beta1, beta2, epsilon } = arguments;
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
    })
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![ADAMW.clone()]
}
