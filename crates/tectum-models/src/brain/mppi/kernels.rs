//! The kernels of MPPI that are not the runtime's: controls, rollout step, weighing, shift.

use std::sync::{Arc, LazyLock};

use tectum::kernel::math;
use tectum::{DType, Kernel, KernelBuilder, NativeCall, Prelude};

/// Numbers of the table for each channel; see `kernels/lib_mppi.wgsl`.
pub const CHANNEL_NUMBERS: usize = 9;
/// A cost that is not finite, or greater.
const MAX_COST: f32 = 1e9;

fn finish(builder: KernelBuilder, native: fn(&NativeCall<'_>)) -> Arc<Kernel> {
    builder.native(native).expect("invariant: the kernel tables of this file are well formed")
}

fn words(builder: KernelBuilder, names: &[&'static str]) -> KernelBuilder {
    names.iter().fold(builder, |builder, name| builder.param(name, DType::U32))
}

fn floats(builder: KernelBuilder, names: &[&'static str]) -> KernelBuilder {
    names.iter().fold(builder, |builder, name| builder.param(name, DType::F32))
}

/// Sampled controls around the mean.
pub static CONTROLS: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["observation", "mean", "eps", "sigma"]
        .into_iter()
        .fold(Kernel::define("mppi_controls"), |builder, name| builder.read(name, DType::F32))
        .write("u", DType::F32);
    let builder = words(builder, &["samples", "horizon", "hold", "channels"]);
    let builder = floats(builder, &["low", "high"]).body(include_str!("../../../kernels/mppi_controls.wgsl"));
    finish(builder, |call| {
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

/// The words shared by `mppi_begin` and `mppi_step`, in order.
const ROLLOUT_WORDS: [&str; 8] =
    ["samples", "horizon", "channels", "features", "previous", "discrete", "angle_channel", "velocity_channel"];

fn rollout_params(builder: KernelBuilder) -> KernelBuilder {
    floats(words(builder, &ROLLOUT_WORDS), &["low", "high"])
}

/// Samples at the observed state.
pub static BEGIN: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["observation", "u", "table"]
        .into_iter()
        .fold(Kernel::define("mppi_begin").prelude(Prelude::Math), |builder, name| builder.read(name, DType::F32));
    let builder = builder.write("states", DType::F32).write("costs", DType::F32).write("features", DType::F32);
    let body = concat!(include_str!("../../../kernels/lib_mppi.wgsl"), include_str!("../../../kernels/mppi_begin.wgsl"));
    finish(rollout_params(builder).body(body), |call| {
        let (observation, u, table) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let (states, costs, features) = (call.write::<f32>(3), call.write::<f32>(4), call.write::<f32>(5));
        let rollout = Rollout::of(call, u, table);
        for (states, observed) in states.chunks_mut(rollout.samples).zip(observation).take(rollout.channels) {
            states.fill(*observed);
        }
        costs[..rollout.samples].fill(0.0);
        rollout.write_features(0, states, features);
    })
});

/// One step of every sample.
pub static STEP: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["change", "u", "table"]
        .into_iter()
        .fold(Kernel::define("mppi_step").prelude(Prelude::Math), |builder, name| builder.read(name, DType::F32));
    let builder = ["states", "costs", "features"].into_iter().fold(builder, |builder, name| builder.read_write(name, DType::F32));
    let builder = words(rollout_params(builder), &["t"]);
    let weights = ["state_multiplier", "energy_weight", "energy_ratio", "action_weight", "rate_weight"];
    let body = concat!(include_str!("../../../kernels/lib_mppi.wgsl"), include_str!("../../../kernels/mppi_step.wgsl"));
    finish(floats(builder, &weights).body(body), step)
});

/// Softmax arguments of the samples.
pub static TEMPER: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = ["costs", "total", "greatest"]
        .into_iter()
        .fold(Kernel::define("mppi_temper"), |builder, name| builder.read(name, DType::F32))
        .write("y", DType::F32);
    let builder = floats(words(builder, &["samples"]), &["temperature"]);
    finish(builder.body(include_str!("../../../kernels/mppi_temper.wgsl")), |call| {
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
    finish(builder.body(include_str!("../../../kernels/mppi_shift.wgsl")), |call| {
        let (weighted, total, greatest) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
        let (best_weight, mean, result) = (call.read::<f32>(3), call.write::<f32>(4), call.write::<f32>(5));
        let (samples, horizon) = (call.size(0), call.size(1));
        mean[..horizon - 1].copy_from_slice(&weighted[1..horizon]);
        mean[horizon - 1] = weighted[horizon - 1];
        let action = weighted[0].clamp(call.f32(2), call.f32(3));
        result.copy_from_slice(&[action, -greatest[0], total[0] / samples as f32, best_weight[0]]);
    })
});

/// Every kernel of this file.
pub fn kernels() -> [&'static Arc<Kernel>; 5] {
    [&CONTROLS, &BEGIN, &STEP, &TEMPER, &SHIFT]
}

/// What both rollout kernels read of their parameters.
struct Rollout<'a> {
    samples: usize,
    horizon: usize,
    channels: usize,
    features: usize,
    previous: bool,
    discrete: bool,
    angle_channel: usize,
    velocity_channel: usize,
    low: f32,
    high: f32,
    u: &'a [f32],
    table: &'a [f32],
}

impl<'a> Rollout<'a> {
    fn of(call: &NativeCall<'a>, u: &'a [f32], table: &'a [f32]) -> Self {
        Self {
            samples: call.size(0),
            horizon: call.size(1),
            channels: call.size(2),
            features: call.size(3),
            previous: call.u32(4) != 0,
            discrete: call.u32(5) != 0,
            angle_channel: call.size(6),
            velocity_channel: call.size(7),
            low: call.f32(8),
            high: call.f32(9),
            u,
            table,
        }
    }

    fn channel(&self, index: usize) -> &[f32; CHANNEL_NUMBERS] {
        self.table[index * CHANNEL_NUMBERS..].first_chunk().expect("invariant: the plan binds the whole table")
    }

    fn applied(&self, value: f32) -> f32 {
        match (self.discrete, value >= 0.0) {
            (false, _) => value,
            (true, true) => self.high,
            (true, false) => self.low,
        }
    }

    fn write_features(&self, t: usize, states: &[f32], features: &mut [f32]) {
        let half_range = 0.5 * (self.high - self.low);
        let (before, now) = (&self.u[t * self.samples..][..self.samples], &self.u[(t + 1) * self.samples..][..self.samples]);
        let mut place = 0;
        for c in 0..self.channels {
            let [rad, scale, ..] = *self.channel(c);
            let states = &states[c * self.samples..][..self.samples];
            let rows = features.chunks_mut(self.features).zip(states);
            if rad == 0.0 {
                rows.for_each(|(row, s)| row[place] = s / scale);
                place += 1;
            } else {
                rows.for_each(|(row, s)| (row[place], row[place + 1]) = (math::sin(s * rad), math::cos(s * rad)));
                place += 2;
            }
        }
        for (row, (before, now)) in features.chunks_mut(self.features).zip(before.iter().zip(now)) {
            if self.previous {
                row[place] = self.applied(*before) / half_range;
            }
            row[place + usize::from(self.previous)] = self.applied(*now) / half_range;
        }
    }
}

fn step(call: &NativeCall<'_>) {
    let (change, u, table) = (call.read::<f32>(0), call.read::<f32>(1), call.read::<f32>(2));
    let (states, costs, features) = (call.write::<f32>(3), call.write::<f32>(4), call.write::<f32>(5));
    let rollout = Rollout::of(call, u, table);
    let (samples, t) = (rollout.samples, call.size(10));
    let [state_multiplier, energy_weight, energy_ratio, action_weight, rate_weight] = [11, 12, 13, 14, 15].map(|i| call.f32(i));
    for k in 0..samples {
        let (mut cost, mut cosine, mut velocity) = (0.0f32, 1.0f32, 0.0f32);
        for c in 0..rollout.channels {
            let [rad, scale, mean, deviation, weight, barrier, limit, barrier_scale, half_turn] = *rollout.channel(c);
            let mut s = states[c * samples + k] + mean + deviation * change[k * rollout.channels + c];
            let mut charge = (s / scale) * (s / scale);
            if rad != 0.0 {
                s -= 2.0 * half_turn * ((s + half_turn) / (2.0 * half_turn)).floor();
                let cos_angle = math::cos(s * rad);
                charge = 1.0 - cos_angle;
                if c == rollout.angle_channel {
                    cosine = cos_angle;
                }
            }
            if c == rollout.velocity_channel {
                velocity = s;
            }
            let beyond = (s.abs() - limit).max(0.0) / barrier_scale;
            cost += state_multiplier * weight * charge + barrier * beyond * beyond;
            states[c * samples + k] = s;
        }
        let energy = 0.5 * energy_ratio * velocity * velocity + cosine - 1.0;
        let now = u[(t + 1) * samples + k];
        let rate = now - u[t * samples + k];
        cost += energy_weight * energy * energy + action_weight * now * now + rate_weight * rate * rate + costs[k];
        costs[k] = if cost.is_finite() { cost.min(MAX_COST) } else { MAX_COST };
    }
    if t + 1 < rollout.horizon {
        rollout.write_features(t + 1, states, features);
    }
}
