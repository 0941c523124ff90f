//! The kernels of MPPI that are not the runtime's: controls, weighting, shift. The rollout is in `rollout.rs`.

use std::sync::{Arc, LazyLock};

use tectum::{DType, Kernel};

use crate::kernel::{built_in, floats, words};

/// Sampled controls around the mean.
pub static CONTROLS: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["observation", "mean", "eps", "sigma"]
        .into_iter()
        .fold(Kernel::define("mppi_controls"), |builder, name| builder.read(name, DType::F32))
        .write("u", DType::F32);
    let builder = words(builder, &["samples", "horizon", "hold", "channels"]);
    let builder = floats(builder, &["low", "high"]).body(include_str!("../../../kernels/mppi_controls.wgsl"));
    built_in(builder, |call| {
        let (observation, mean, eps) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let (sigma, u) = (call.read::<f32>(3), call.write::<f32>(4));
        let [samples, horizon, hold, channels] = [0, 1, 2, 3].map(|index| call.size(index));
        let (low, high) = (call.f32(4), call.f32(5));
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

/// Softmax arguments of the samples.
pub static SCALE_COSTS: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder =
        ["costs", "total", "greatest"].into_iter().fold(Kernel::define("mppi_temper"), |builder, name| builder.read(name, DType::F32)).write("y", DType::F32);
    let builder = floats(words(builder, &["samples"]), &["temperature"]);
    built_in(builder.body(include_str!("../../../kernels/mppi_temper.wgsl")), |call| {
        let (costs, total, greatest) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let (y, samples) = (call.write::<f32>(3), call.size(0));
        let least = -greatest[0];
        let spread = call.f32(1) * (total[0] / samples as f32 - least + 1e-6);
        y.iter_mut().zip(costs).take(samples).for_each(|(y, cost)| *y = (least - cost) / spread);
    })
});

/// The action and the next tick's mean.
pub static SHIFT: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["weighted", "total", "greatest", "best_weight"]
        .into_iter()
        .fold(Kernel::define("mppi_shift"), |builder, name| builder.read(name, DType::F32))
        .write("mean", DType::F32)
        .write("result", DType::F32);
    let builder = floats(words(builder, &["samples", "horizon"]), &["low", "high"]);
    built_in(builder.body(include_str!("../../../kernels/mppi_shift.wgsl")), |call| {
        let (weighted, total, greatest) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let (best_weight, mean, result) = (call.read::<f32>(3), call.write::<f32>(4), call.write::<f32>(5));
        let (samples, horizon) = (call.size(0), call.size(1));
        mean[..horizon - 1].copy_from_slice(&weighted[1..horizon]);
        mean[horizon - 1] = weighted[horizon - 1];
        let action = weighted[0].clamp(call.f32(2), call.f32(3));
        result.copy_from_slice(&[action, -greatest[0], total[0] / samples as f32, best_weight[0]]);
    })
});
