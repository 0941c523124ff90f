//! The kernels of MPPI that are not the runtime's: controls, weighting, shift. The rollout is in
//! `rollout.rs`.

use std::sync::LazyLock;

use tectum::{TypedKernel, kernel_arguments};

use crate::kernel::built_in;

kernel_arguments! {
    /// Sampled controls around the mean: the last action, then that of each step, a row for each of
    /// its numbers; the noise of a step is that of its knot. `limits` has lowest value, highest
    /// value and scale of the noise of each number of an action.
    pub struct Controls {
        read observation: f32, read mean: f32, read eps: f32, read sigma: f32, read limits: f32, write u: f32;
        samples: usize, horizon: usize, hold: usize, channels: usize, actions: usize
    }

    /// Softmax arguments of the samples from their costs.
    pub struct ScaleCosts { read costs: f32, read total: f32, read greatest: f32, write y: f32; samples: usize, temperature: f32 }

    /// The action and the next tick's mean.
    pub struct Shift {
        read weighted: f32, read total: f32, read greatest: f32, read best_weight: f32, read limits: f32, write mean: f32, write result: f32;
        samples: usize, rows: usize, actions: usize
    }
}

pub static CONTROLS: LazyLock<TypedKernel<Controls>> = LazyLock::new(|| {
    built_in(
        Controls::define("mppi_controls").body(include_str!("../../../kernels/mppi_controls.wgsl")),
        |_, arguments| {
            let Controls {
                observation,
                mean,
                eps,
                sigma,
                limits,
                u,
                samples,
                horizon,
                hold,
                channels,
                actions,
            } = arguments;
            let (last, rest) = u.split_at_mut(actions * samples);
            last.chunks_mut(samples)
                .zip(&observation[channels..])
                .for_each(|(row, last)| row.fill(*last));
            for (row, u) in rest.chunks_mut(samples).take(horizon * actions).enumerate() {
                let (t, action) = (row / actions, row % actions);
                let &[low, high, scale] = limits[3 * action..]
                    .first_chunk()
                    .expect("invariant: three numbers for each action");
                let eps = &eps[(t / hold * actions + action) * samples..][..samples];
                for ((u, eps), sigma) in u.iter_mut().zip(eps).zip(sigma) {
                    *u = (mean[row] + sigma * scale * eps).clamp(low, high);
                }
                u[0] = mean[row].clamp(low, high);
            }
        },
    )
});

pub static SCALE_COSTS: LazyLock<TypedKernel<ScaleCosts>> = LazyLock::new(|| {
    built_in(
        ScaleCosts::define("mppi_temper").body(include_str!("../../../kernels/mppi_temper.wgsl")),
        |_, arguments| {
            let ScaleCosts {
                costs,
                total,
                greatest,
                y,
                samples,
                temperature,
            } = arguments;
            let least = -greatest[0];
            let spread = temperature * (total[0] / samples as f32 - least + 1e-6);
            y.iter_mut()
                .zip(costs)
                .take(samples)
                .for_each(|(y, cost)| *y = (least - cost) / spread);
        },
    )
});

pub static SHIFT: LazyLock<TypedKernel<Shift>> = LazyLock::new(|| {
    built_in(
        Shift::define("mppi_shift").body(include_str!("../../../kernels/mppi_shift.wgsl")),
        |_, arguments| {
            let Shift {
                weighted,
                total,
                greatest,
                best_weight,
                limits,
                mean,
                result,
                samples,
                rows,
                actions,
            } = arguments;
            mean[..rows - actions].copy_from_slice(&weighted[actions..rows]);
            mean[rows - actions..rows].copy_from_slice(&weighted[rows - actions..rows]);
            for (action, result) in result[..actions].iter_mut().enumerate() {
                *result = weighted[action].clamp(limits[3 * action], limits[3 * action + 1]);
            }
            result[actions..].copy_from_slice(&[
                -greatest[0],
                total[0] / samples as f32,
                best_weight[0],
            ]);
        },
    )
});
