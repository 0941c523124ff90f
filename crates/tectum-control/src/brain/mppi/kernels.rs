//! The kernels of MPPI that are not the runtime's: controls, weighting, shift. The rollout is in `rollout.rs`.

use std::sync::LazyLock;

use tectum::{TypedKernel, kernel_arguments};

use crate::kernel::built_in;

kernel_arguments! {
    /// Sampled controls around the mean: the last action in row 0, then one row for each step; the noise of a step is that of its knot.
    pub struct Controls {
        read observation: f32, read mean: f32, read eps: f32, read sigma: f32, write u: f32;
        samples: usize, horizon: usize, hold: usize, channels: usize, low: f32, high: f32
    }

    /// Softmax arguments of the samples from their costs.
    pub struct ScaleCosts { read costs: f32, read total: f32, read greatest: f32, write y: f32; samples: usize, temperature: f32 }

    /// The action and the next tick's mean.
    pub struct Shift {
        read weighted: f32, read total: f32, read greatest: f32, read best_weight: f32, write mean: f32, write result: f32;
        samples: usize, horizon: usize, low: f32, high: f32
    }
}

pub static CONTROLS: LazyLock<TypedKernel<Controls>> = LazyLock::new(|| {
    built_in(Controls::define("mppi_controls").body(include_str!("../../../kernels/mppi_controls.wgsl")), |_, arguments| {
        let Controls { observation, mean, eps, sigma, u, samples, horizon, hold, channels, low, high } = arguments;
        let (first, rest) = u.split_at_mut(samples);
        first.fill(observation[channels]);
        for (t, row) in rest.chunks_mut(samples).take(horizon).enumerate() {
            let eps = &eps[t / hold * samples..][..samples];
            for ((u, eps), sigma) in row.iter_mut().zip(eps).zip(sigma) {
                *u = (mean[t] + sigma * eps).clamp(low, high);
            }
            row[0] = mean[t].clamp(low, high);
        }
    })
});

pub static SCALE_COSTS: LazyLock<TypedKernel<ScaleCosts>> = LazyLock::new(|| {
    built_in(ScaleCosts::define("mppi_temper").body(include_str!("../../../kernels/mppi_temper.wgsl")), |_, arguments| {
        let ScaleCosts { costs, total, greatest, y, samples, temperature } = arguments;
        let least = -greatest[0];
        let spread = temperature * (total[0] / samples as f32 - least + 1e-6);
        y.iter_mut().zip(costs).take(samples).for_each(|(y, cost)| *y = (least - cost) / spread);
    })
});

pub static SHIFT: LazyLock<TypedKernel<Shift>> = LazyLock::new(|| {
    built_in(Shift::define("mppi_shift").body(include_str!("../../../kernels/mppi_shift.wgsl")), |_, arguments| {
        let Shift { weighted, total, greatest, best_weight, mean, result, samples, horizon, low, high } = arguments;
        mean[..horizon - 1].copy_from_slice(&weighted[1..horizon]);
        mean[horizon - 1] = weighted[horizon - 1];
        let action = weighted[0].clamp(low, high);
        result.copy_from_slice(&[action, -greatest[0], total[0] / samples as f32, best_weight[0]]);
    })
});
