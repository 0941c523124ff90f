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

    /// The negatives of costs; the costs that count, less than the maximum, and 1 for each of them.
    pub struct KeepCosts { read costs: f32, write negative: f32, write kept: f32; samples: usize, max_cost: f32 }

    /// Softmax arguments of the samples from their costs.
    pub struct ScaleCosts { read costs: f32, read totals: f32, read greatest: f32, write y: f32; samples: usize, temperature: f32, max_cost: f32 }

    /// The action and the next tick's mean.
    pub struct Shift {
        read weighted: f32, read totals: f32, read greatest: f32, read best_weight: f32, read limits: f32, write mean: f32, write result: f32;
        rows: usize, actions: usize
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

pub static KEEP_COSTS: LazyLock<TypedKernel<KeepCosts>> = LazyLock::new(|| {
    built_in(
        KeepCosts::define("mppi_keep").body(include_str!("../../../kernels/mppi_keep.wgsl")),
        |_, arguments| {
            let KeepCosts {
                costs,
                negative,
                kept,
                samples,
                max_cost,
            } = arguments;
            let (kept, flags) = kept.split_at_mut(samples);
            for (k, cost) in costs[..samples].iter().enumerate() {
                negative[k] = -cost;
                (kept[k], flags[k]) = if *cost < max_cost {
                    (*cost, 1.0)
                } else {
                    (0.0, 0.0)
                };
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
                totals,
                greatest,
                y,
                samples,
                temperature,
                max_cost,
            } = arguments;
            let least = -greatest[0];
            let spread = temperature * (totals[0] / totals[1].max(1.0) - least + 1e-6);
            for (y, cost) in y.iter_mut().zip(costs).take(samples) {
                *y = match (totals[1] > 0.0, *cost < max_cost) {
                    (false, _) => 0.0,
                    (true, false) => -1e30,
                    (true, true) => (least - cost) / spread,
                };
            }
        },
    )
});

pub static SHIFT: LazyLock<TypedKernel<Shift>> = LazyLock::new(|| {
    built_in(
        Shift::define("mppi_shift").body(include_str!("../../../kernels/mppi_shift.wgsl")),
        |_, arguments| {
            let Shift {
                weighted,
                totals,
                greatest,
                best_weight,
                limits,
                mean,
                result,
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
                totals[0] / totals[1].max(1.0),
                best_weight[0],
                totals[1],
            ]);
        },
    )
});
