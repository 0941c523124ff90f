//! Gymnasium's `CartPole-v1`: a pole on a cart that is pushed left or right.

use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{cos_near, sin_near};
use tectum::{Error, NativeCall, Result};

use super::batch::lanes::{LANES, flag, reset_terminated, step_all, wrap_angle};
use super::batch::{BatchKernel, StepBodies, StepKernel, with_body};
use super::control::{Bound, ChannelCost, LqrWeights, MppiParameters, Regulator};
use super::schematic::Schematic;
use super::task::balance;
use super::uniform::Uniform;
use super::{
    ActionChannel, Body, BodySpec, ControlModel, Descriptor, Equilibrium, ExactState,
    ObservationChannel, RandomizeState, Start, Step, applied_action, check_state, wrapped_rad,
};
use crate::kernel::built_in;

/// What is known of the body by its name.
pub static DESCRIPTOR: Descriptor = Descriptor {
    batch: Some(BatchKernel {
        numbers: 5,
        has_starts: true,
        angles: &[],
        define: |name| {
            StepKernel::new(
                built_in(
                    with_body(
                        StepBodies::define(format!("body_{name}")).with("starts"),
                        &[include_str!("../../kernels/body_cart_pole.wgsl")],
                    ),
                    step_lanes,
                ),
                |step| step,
            )
        },
    }),
    mppi: Some(|| MppiParameters {
        horizon: 30,
        sigma: 10.0,
        sigma_min: None,
        temperature: 0.05,
        channels: vec![
            ChannelCost::with_barrier(1.0, 50.0, 1.8),
            ChannelCost::weight(0.05),
            ChannelCost::with_barrier(10.0, 50.0, 0.15),
            ChannelCost::weight(0.05),
        ],
        action_weight: 0.0,
        rate_weight: 0.0,
        energy_weight: 0.0,
        terminal_multiplier: 5.0,
        ..MppiParameters::default()
    }),
    regulator: Some(|| Regulator {
        weights: LqrWeights {
            state: vec![1.0, 0.25, 100.0, 1.0, 0.0],
            action: vec![0.01],
        },
        swing_up: None,
        horizon: 75,
        bounds: vec![
            Bound {
                state: 0,
                max_abs: 0.95 * 2.4,
            },
            Bound {
                state: 2,
                max_abs: 0.95 * 12f64.to_radians(),
            },
        ],
    }),
    ..Descriptor::new(
        "cart_pole",
        &[Start::Random],
        |start| Ok(Box::new(CartPole::new(start)?)),
        || balance(|state| wrapped_rad(state[2])),
    )
};

const GRAVITY: f64 = 9.8;
const CART_KG: f64 = 1.0;
const POLE_KG: f64 = 0.1;
const TOTAL_KG: f64 = CART_KG + POLE_KG;
const HALF_LENGTH_M: f64 = 0.5;
const FORCE_N: f32 = 10.0;
const DT_S: f64 = 0.02;
const POSITION_LIMIT_M: f64 = 2.4;
const ANGLE_LIMIT_RAD: f64 = 12.0 * 2.0 * std::f64::consts::PI / 360.0;

/// The plant `CartPole-v1`.
///
/// temp = (F + m_p l ω² sin θ)/M; ω̇ = (g sin θ − temp cos θ)/(l(4/3 − m_p cos² θ/M)); v̇ = temp −
/// m_p l ω̇ cos θ/M; explicit Euler.
///
/// The reward is 1 for every step up to and with the terminating one, 0 after it. Terminates beyond
/// 2.4 m or 12 degrees; Gymnasium truncates after 500 steps. State: x (m), v (m/s), θ (rad), ω
/// (rad/s), fallen (0 or 1).
///
/// # Source
/// Gymnasium 1.x, `classic_control/cartpole.py`. Starts have its distribution (±0.05 in each
/// number), not its generator.
pub struct CartPole {
    spec: BodySpec,
    x: [f64; 4],
    fallen: bool,
}

impl CartPole {
    /// Makes the plant, at its start for seed 0.
    ///
    /// # Errors
    /// A start other than random: the plant terminates beyond 12 degrees, so it cannot hang.
    pub fn new(start: Start) -> Result<Self> {
        if start != Start::Random {
            return Err(Error::invalid(
                "cart_pole: start \"hanging\" is beyond its 12 degrees; known: random",
            ));
        }
        let mut cart_pole = Self {
            spec: spec(),
            x: [0.0; 4],
            fallen: false,
        };
        cart_pole.reset(0);
        Ok(cart_pole)
    }

    fn is_outside(&self) -> bool {
        self.x[0].abs() > POSITION_LIMIT_M || self.x[2].abs() > ANGLE_LIMIT_RAD
    }
}

fn spec() -> BodySpec {
    let channel = |name, unit, bound: f32| ObservationChannel::new(name, unit, -bound..=bound);
    BodySpec {
        name: DESCRIPTOR.name.into(),
        dt_s: DT_S,
        observation: vec![
            channel("position", "m", POSITION_LIMIT_M as f32),
            channel("velocity", "m/s", 3.0).scaled(2.0),
            channel("angle", "rad", ANGLE_LIMIT_RAD as f32)
                .wrapping(1.0)
                .scaled(1.0),
            channel("speed", "rad/s", 3.0).scaled(2.0),
        ],
        action: vec![ActionChannel {
            discrete: true,
            ..ActionChannel::new("force", "N", -FORCE_N..=FORCE_N)
        }],
        safe_action: vec![FORCE_N],
    }
}

impl Body for CartPole {
    capabilities!(ExactState, RandomizeState, ControlModel);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = std::array::from_fn(|_| uniform.within(0.05));
        self.fallen = false;
    }

    fn observe(&self, observation: &mut [f32]) {
        let [x, v, angle, speed] = self.x;
        observation.copy_from_slice(&[x as f32, v as f32, wrapped_rad(angle) as f32, speed as f32]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let (force_n, refused) = applied_action(&self.spec, action);
        let [x, v, angle, speed] = self.x;
        let (sin, cos) = angle.sin_cos();
        let temp = (force_n + POLE_KG * HALF_LENGTH_M * speed.powi(2) * sin) / TOTAL_KG;
        let speed_rate = (GRAVITY * sin - cos * temp)
            / (HALF_LENGTH_M * (4.0 / 3.0 - POLE_KG * cos.powi(2) / TOTAL_KG));
        let v_rate = temp - POLE_KG * HALF_LENGTH_M * speed_rate * cos / TOTAL_KG;
        self.x = [
            x + DT_S * v,
            v + DT_S * v_rate,
            angle + DT_S * speed,
            speed + DT_S * speed_rate,
        ];
        let reward = if self.fallen { 0.0 } else { 1.0 };
        let terminated = self.is_outside();
        self.fallen |= terminated;
        Step {
            reward,
            terminated,
            truncated: false,
            refused,
        }
    }

    fn schematic(&self) -> Schematic {
        let [position, _, angle, _] = self.x;
        Schematic::cart_and_pole(POSITION_LIMIT_M, position, angle, 2.0 * HALF_LENGTH_M)
    }
}

impl ExactState for CartPole {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(self.x);
        state.push(f64::from(u8::from(self.fallen)));
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let [x, v, angle, speed, fallen] = check_state(DESCRIPTOR.name, state)?;
        self.x = [x, v, angle, speed];
        self.fallen = fallen != 0.0;
        Ok(())
    }
}

impl RandomizeState for CartPole {
    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = [POSITION_LIMIT_M, 3.0, 0.5, 3.0].map(|bound| uniform.within(bound));
        self.fallen = false;
    }
}

impl ControlModel for CartPole {
    fn assimilate(&mut self, observation: &[f32]) {
        self.x = std::array::from_fn(|i| f64::from(observation[i]));
    }

    fn equilibrium(&self) -> Equilibrium {
        let state_step = vec![1e-5, 1e-5, 1e-5, 1e-5, 0.0];
        Equilibrium {
            state: vec![0.0; 5],
            state_step,
            action: vec![0.0],
            action_step: vec![FORCE_N],
        }
    }
}

/// One step of many instances, in f32.
fn step_lanes(call: &NativeCall<'_>, arguments: StepBodies<Slices<'_>>) {
    let starts = arguments.starts.unwrap_or_default().as_chunks::<5>().0;
    step_all::<1, 5, 6>(
        call,
        arguments,
        160,
        #[inline(always)]
        |actions, state, shown, first| {
            let had_ended = state[4];
            for lane in 0..LANES {
                let (x, v, angle, speed) = (
                    state[0][lane],
                    state[1][lane],
                    state[2][lane],
                    state[3][lane],
                );
                let force = if actions[0][lane] < 0.0 && actions[0][lane].is_finite() {
                    -10.0
                } else {
                    10.0
                };
                let (sine, cosine) = (sin_near(angle), cos_near(angle));
                let push = (force + 0.05 * speed * speed * sine) / 1.1;
                let turning = (9.8 * sine - cosine * push)
                    / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1));
                state[0][lane] = x + 0.02 * v;
                state[1][lane] = v + 0.02 * (push - 0.05 * turning * cosine / 1.1);
                state[2][lane] = angle + 0.02 * speed;
                state[3][lane] = speed + 0.02 * turning;
                state[4][lane] =
                    flag((state[0][lane].abs() > 2.4) | (state[2][lane].abs() > 0.209_439_51));
                shown[4][lane] = 1.0;
            }
            reset_terminated(&had_ended, starts, first, state, shown);
            for lane in 0..LANES {
                shown[0][lane] = state[0][lane];
                shown[1][lane] = state[1][lane];
                shown[2][lane] = wrap_angle(state[2][lane]);
                shown[3][lane] = state[3][lane];
                shown[5][lane] = state[4][lane];
            }
        },
    );
}
