//! AdamW, in place.

use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::native::simd;
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::plan::PlanBuilder;
use crate::view::View;

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
    built_in(
        AdamW::define("adamw_f32").body(include_str!("adamw_f32.wgsl")),
        |_, arguments| {
            let AdamW {
                schedule,
                g,
                w,
                m,
                v,
                n,
                beta1,
                beta2,
                epsilon,
            } = arguments;
            let [rate, unbias1, unbias2, decay] =
                [schedule[0], schedule[1], schedule[2], schedule[3]];
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

impl PlanBuilder {
    /// Records one step of AdamW on the weights `w` with gradient `g` and moments `m` and `v`, all
    /// in place; `schedule` is `[learning rate, 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), weight decay]`, with β₁ =
    /// `beta1` and β₂ = `beta2` and ε = 1e-8.
    ///
    /// # Shapes
    /// `g`, `w`, `m`, `v` \[n\] f32, `schedule` \[4\] f32.
    /// # Errors
    /// `Invalid` if lengths differ; as [`PlanBuilder::launch`].
    pub fn adamw(
        &mut self,
        schedule: View,
        g: View,
        weights: [View; 3],
        beta1: f32,
        beta2: f32,
    ) -> Result<()> {
        let [w, m, v] = weights;
        if [w.len(), m.len(), v.len()] != [g.len(); 3] || schedule.len() != SCHEDULE_WORDS {
            return Err(Error::invalid(format!(
                "adamw: gradient {}, weights {}, moments {} and {}, schedule {} elements; n, n, n, n and 4 needed",
                g.len(),
                w.len(),
                m.len(),
                v.len(),
                schedule.len()
            )));
        }
        if g.is_empty() {
            return Ok(());
        }
        self.launch(
            &ADAMW,
            AdamW {
                schedule,
                g,
                w,
                m,
                v,
                n: g.len(),
                beta1,
                beta2,
                epsilon: 1e-8,
            },
            groups_for(g.len()),
        )
    }
}
