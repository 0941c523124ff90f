//! The rollout over a plant's own equations, for bodies with f32 equations for devices.

use std::sync::{Arc, LazyLock};

use tectum::kernel::native::{for_each_columns, simd};
use tectum::kernel::{loops_over, math};
use tectum::{DType, Error, Kernel, NativeCall, Prelude, Result};

use crate::body::batch::{pendulum_cost, pendulum_step, wrap_angle};
use crate::kernel::{built_in, floats, words};

/// Bodies with such equations.
pub const PLANTS: [&str; 1] = ["pendulum"];
/// Samples per SIMD block of the native twin.
const LANES: usize = 16;
/// A cost that is not finite, or greater.
const MAX_COST: f32 = 1e9;

static PENDULUM: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("mppi_plant_pendulum").prelude(Prelude::Math);
    let builder = builder.read("observation", DType::F32).read("handover", DType::F32).read_write("u", DType::F32).write("costs", DType::F32);
    let constants = ["terminal_multiplier", "energy_weight", "gain_position", "gain_speed", "low", "high"];
    let builder = floats(words(builder, &["samples", "horizon"]), &constants);
    let body = [include_str!("../../../kernels/plant_pendulum.wgsl"), include_str!("../../../kernels/mppi_plant.wgsl")].concat();
    let builder = builder.loops(|params, groups| loops_over(u64::from(params[0]), groups.saturating_mul(64), u64::from(params[1])));
    built_in(builder.body(body), pendulum)
});

/// The rollout kernel of a body.
///
/// # Errors
/// `Unsupported` for a body without such equations, naming those that have them.
pub fn plant_kernel(body: &str) -> Result<&'static Arc<Kernel>> {
    match body {
        "pendulum" => Ok(&PENDULUM),
        _ => Err(Error::unsupported(format!("mppi has no equations of body {body} to roll out; known: {}", PLANTS.join(", ")))),
    }
}

/// A value for each of the samples in a SIMD block.
type F32Lanes = [f32; LANES];

fn pendulum(call: &NativeCall<'_>) {
    let (observation, handover, u) = (call.read::<f32>(0), call.read::<f32>(1), call.write::<f32>(2));
    let (samples, horizon) = (call.size(0), call.size(1));
    let [terminal, energy_weight, gain, speed_gain, low, high] = std::array::from_fn(|i| call.f32(2 + i));
    let threads = call.threads_for(16 * samples * horizon);
    for_each_columns(&mut u[samples..][..samples * horizon], &mut call.write::<f32>(3)[..samples], LANES, threads, |block, mut u, costs| {
        simd(
            #[inline(always)]
            || {
                let (mut angle, mut speed, mut cost): (F32Lanes, F32Lanes, F32Lanes) = ([observation[0]; LANES], [observation[1]; LANES], [0.0; LANES]);
                // The step from which each sample is regulated.
                let mut drawn = [0u32; LANES];
                for (lane, drawn) in drawn.iter_mut().enumerate() {
                    let share = handover[block * LANES + lane] * (horizon + 1) as f32;
                    *drawn = if block + lane == 0 { horizon as u32 } else { share as u32 };
                }
                let first = *drawn.iter().min().expect("invariant: there are lanes") as usize;
                for t in 0..horizon {
                    // The length is known to the compiler: otherwise the lanes would not be vectorised.
                    let torques: &mut F32Lanes = u.row(t).first_chunk_mut().expect("invariant: samples come in whole blocks");
                    if t >= first {
                        for lane in 0..LANES {
                            let regulated = (-gain * wrap_angle(angle[lane]) - speed_gain * speed[lane]).clamp(low, high);
                            torques[lane] = if t as u32 >= drawn[lane] { regulated } else { torques[lane] };
                        }
                    }
                    for lane in 0..LANES {
                        cost[lane] += pendulum_cost(angle[lane], speed[lane], torques[lane]);
                        [angle[lane], speed[lane]] = pendulum_step(angle[lane], speed[lane], torques[lane]);
                    }
                }
                let costs: &mut F32Lanes = costs.first_chunk_mut().expect("invariant: samples come in whole blocks");
                for lane in 0..LANES {
                    let energy = speed[lane] * speed[lane] / 30.0 + math::cos_near(angle[lane]) - 1.0;
                    let cost = cost[lane] + terminal * pendulum_cost(angle[lane], speed[lane], 0.0) + energy_weight * energy * energy;
                    costs[lane] = if cost.is_finite() { cost.min(MAX_COST) } else { MAX_COST };
                }
            },
        );
    });
}
