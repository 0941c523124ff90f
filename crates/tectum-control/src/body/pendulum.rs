//! Gymnasium's `Pendulum-v1`: a torque-limited pole that has to be pumped up.

use std::f64::consts::PI;

use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{cos_near, sin_near};
use tectum::kernel::native::{for_each_columns, simd};
use tectum::{NativeCall, Result};

use super::batch::lanes::{F32Lanes, LANES, applied, step_all, wrap_angle};
use super::batch::{BatchKernel, StepBodies, StepKernel, with_body};
use super::control::{
    Bound, ChannelCost, LqrWeights, MAX_COST, MppiParameters, PlantModel, PlantRollout, Regulator,
};
use super::schematic::{Role, Schematic};
use super::swing_up::SwingUp;
use super::task::upright;
use super::uniform::Uniform;
use super::{
    ActionChannel, Body, BodySpec, ControlModel, Descriptor, Equilibrium, ExactState,
    ObservationChannel, RandomizeState, Start, Step, applied_action, check_state, wrapped_rad,
};
use crate::kernel::built_in;

const PLANT_WGSL: &str = include_str!("../../kernels/plant_pendulum.wgsl");

/// What is known of the body by its name.
pub static DESCRIPTOR: Descriptor = Descriptor {
    batch: Some(BatchKernel {
        numbers: 2,
        has_starts: false,
        angles: &[0],
        define: |name| {
            StepKernel::new(
                built_in(
                    with_body(
                        StepBodies::define(format!("body_{name}")),
                        &[PLANT_WGSL, include_str!("../../kernels/body_pendulum.wgsl")],
                    ),
                    step_lanes,
                ),
                |step| step,
            )
        },
    }),
    mppi: Some(mppi_parameters),
    plant: Some(PlantModel {
        wgsl: PLANT_WGSL,
        define: |builder| built_in(builder, roll_out_lanes),
        parameters: |over_twin| MppiParameters {
            samples: 4096,
            horizon: 60,
            temperature: 5e-4,
            energy_weight: 0.0,
            ..over_twin
        },
        reward_weights: || LqrWeights {
            state: vec![1.0, 0.1],
            action: vec![0.001],
        },
    }),
    regulator: Some(|| Regulator {
        weights: LqrWeights {
            state: vec![100.0, 1.0],
            action: vec![1.0],
        },
        swing_up: Some(SwingUp::Torque {
            length_over_gravity_s2: 1.0 / 15.0,
        }),
        horizon: 40,
        bounds: vec![Bound {
            state: 1,
            max_abs: 8.0,
        }],
    }),
    ..Descriptor::new(
        "pendulum",
        &[Start::Random, Start::Hanging],
        |start| Ok(Box::new(Pendulum::new(start))),
        || upright(|state| wrapped_rad(state[0])),
    )
};

const GRAVITY: f64 = 10.0;
const MASS_KG: f64 = 1.0;
const LENGTH_M: f64 = 1.0;
const DT_S: f64 = 0.05;
const MAX_TORQUE_N_M: f32 = 2.0;
const MAX_SPEED_RAD_PER_S: f64 = 8.0;

/// The plant `Pendulum-v1`.
///
/// ω' = clip(ω + (3g/(2l) sin θ + 3/(m l²) u) dt, ±8); θ' = θ + ω' dt; θ = 0 is upright.
///
/// The reward is Gymnasium's, of the state before the step: −(wrap(θ)² + 0.1 ω² + 0.001 u²). The
/// observation is the wrapped angle and the speed, from which Gymnasium's (cos θ, sin θ, ω)
/// follows. It never terminates; Gymnasium truncates after 200 steps. State: θ (rad, never
/// wrapped), ω (rad/s).
///
/// # Source
/// Gymnasium 1.x, `classic_control/pendulum.py`. Random starts have its distribution (θ in ±π, ω in
/// ±1), not its generator.
pub struct Pendulum {
    spec: BodySpec,
    start: Start,
    angle_rad: f64,
    speed_rad_per_s: f64,
}

impl Pendulum {
    /// Makes the plant, at its start for seed 0.
    pub fn new(start: Start) -> Self {
        let mut pendulum = Self {
            spec: spec(),
            start,
            angle_rad: 0.0,
            speed_rad_per_s: 0.0,
        };
        pendulum.reset(0);
        pendulum
    }
}

fn spec() -> BodySpec {
    let (half_turn, speed) = (PI as f32, MAX_SPEED_RAD_PER_S as f32);
    BodySpec {
        name: DESCRIPTOR.name.into(),
        dt_s: DT_S,
        observation: vec![
            ObservationChannel::new("angle", "rad", -half_turn..=half_turn)
                .wrapping(1.0)
                .scaled(1.0),
            ObservationChannel::new("speed", "rad/s", -speed..=speed),
        ],
        action: vec![ActionChannel::new(
            "torque",
            "N m",
            -MAX_TORQUE_N_M..=MAX_TORQUE_N_M,
        )],
        safe_action: vec![0.0],
    }
}

impl Body for Pendulum {
    capabilities!(ExactState, RandomizeState, ControlModel);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        (self.angle_rad, self.speed_rad_per_s) = match self.start {
            Start::Hanging => (PI + uniform.within(0.05), uniform.within(0.05)),
            Start::Random => (uniform.within(PI), uniform.within(1.0)),
        };
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[
            wrapped_rad(self.angle_rad) as f32,
            self.speed_rad_per_s as f32,
        ]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let (torque_n_m, refused) = applied_action(&self.spec, action);
        let cost = wrapped_rad(self.angle_rad).powi(2)
            + 0.1 * self.speed_rad_per_s.powi(2)
            + 0.001 * torque_n_m.powi(2);
        let acceleration = 3.0 * GRAVITY / (2.0 * LENGTH_M) * self.angle_rad.sin()
            + 3.0 / (MASS_KG * LENGTH_M.powi(2)) * torque_n_m;
        let speed = self.speed_rad_per_s + acceleration * DT_S;
        self.speed_rad_per_s = speed.clamp(-MAX_SPEED_RAD_PER_S, MAX_SPEED_RAD_PER_S);
        self.angle_rad += self.speed_rad_per_s * DT_S;
        Step {
            reward: -cost,
            refused,
            ..Step::default()
        }
    }

    /// As Gymnasium draws it: the angle grows to the left.
    fn schematic(&self) -> Schematic {
        let (sin, cos) = self.angle_rad.sin_cos();
        let reach_m = 1.2 * LENGTH_M;
        Schematic::new([-reach_m, -reach_m], [reach_m, reach_m])
            .line(Role::Fixed, [-0.2, 0.0], [0.2, 0.0], 0.03)
            .line(
                Role::Link,
                [0.0, 0.0],
                [-LENGTH_M * sin, LENGTH_M * cos],
                0.12,
            )
            .disc(Role::Joint, [0.0, 0.0], 0.05)
    }
}

impl ExactState for Pendulum {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend([self.angle_rad, self.speed_rad_per_s]);
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        [self.angle_rad, self.speed_rad_per_s] = check_state(DESCRIPTOR.name, state)?;
        Ok(())
    }
}

impl RandomizeState for Pendulum {
    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.angle_rad = uniform.within(PI);
        self.speed_rad_per_s = uniform.within(MAX_SPEED_RAD_PER_S);
    }
}

impl ControlModel for Pendulum {
    fn assimilate(&mut self, observation: &[f32]) {
        self.angle_rad = f64::from(observation[0]);
        self.speed_rad_per_s = f64::from(observation[1]);
    }

    fn equilibrium(&self) -> Equilibrium {
        Equilibrium {
            state: vec![0.0; 2],
            state_step: vec![1e-5; 2],
            action: vec![0.0],
            action_step: vec![1e-2],
        }
    }
}

/// MPPI's parameters: its own reward, with the speed and the torque divided by their ranges.
fn mppi_parameters() -> MppiParameters {
    MppiParameters {
        samples: 1024,
        horizon: 45,
        hold: 5,
        sigma: 8.0,
        sigma_min: Some(0.1),
        temperature: 0.005,
        channels: vec![
            ChannelCost {
                squared_angle: true,
                ..ChannelCost::weight(1.0)
            },
            ChannelCost::weight(6.4),
        ],
        action_weight: 0.004,
        rate_weight: 0.0,
        energy_weight: 100.0,
        energy_at_end: true,
        energy_ratio: 1.0 / 15.0,
        angle_channel: Some(0),
        velocity_channel: Some(1),
        ..MppiParameters::default()
    }
}

/// One step of angle and speed in f32.
#[inline(always)]
fn plant_step(angle: f32, speed: f32, torque: f32) -> [f32; 2] {
    let speed = (speed + (15.0 * sin_near(angle) + 3.0 * torque) * 0.05).clamp(-8.0, 8.0);
    [angle + speed * 0.05, speed]
}

/// The cost of a step in f32.
#[inline(always)]
fn plant_cost(angle: f32, speed: f32, torque: f32) -> f32 {
    let angle = wrap_angle(angle);
    angle * angle + 0.1 * speed * speed + 0.001 * torque * torque
}

/// One step of many instances.
fn step_lanes(call: &NativeCall<'_>, arguments: StepBodies<Slices<'_>>) {
    step_all::<1, 2, 4>(
        call,
        arguments,
        100,
        #[inline(always)]
        |actions, [angles, speeds], shown, _| {
            for lane in 0..LANES {
                let torque = applied(actions[0][lane], 2.0);
                let reward = -plant_cost(angles[lane], speeds[lane], torque);
                let [angle, speed] = plant_step(angles[lane], speeds[lane], torque);
                (angles[lane], speeds[lane]) = (wrap_angle(angle), speed);
                (
                    shown[0][lane],
                    shown[1][lane],
                    shown[2][lane],
                    shown[3][lane],
                ) = (angles[lane], speed, reward, 0.0);
            }
        },
    );
}

/// MPPI's rollout over the equations; `mppi_plant.wgsl` has its formula.
fn roll_out_lanes(call: &NativeCall<'_>, arguments: PlantRollout<Slices<'_>>) {
    let PlantRollout {
        observation,
        handover,
        u,
        costs,
        samples,
        horizon,
        terminal_multiplier: terminal,
        energy_weight,
        ..
    } = arguments;
    let PlantRollout {
        gain_position: gain,
        gain_speed: speed_gain,
        low,
        high,
        ..
    } = arguments;
    let threads = call.threads_for(16 * samples * horizon);
    for_each_columns(
        &mut u[samples..][..samples * horizon],
        (&mut costs[..samples], 1),
        LANES,
        threads,
        |block, mut u, costs| {
            simd(
                #[inline(always)]
                || {
                    let (mut angle, mut speed, mut cost): (F32Lanes, F32Lanes, F32Lanes) = (
                        [observation[0]; LANES],
                        [observation[1]; LANES],
                        [0.0; LANES],
                    );
                    // The step from which each sample is regulated.
                    let mut drawn = [0u32; LANES];
                    for (lane, drawn) in drawn.iter_mut().enumerate() {
                        let share = handover[block * LANES + lane] * (horizon + 1) as f32;
                        *drawn = if block + lane == 0 {
                            horizon as u32
                        } else {
                            share as u32
                        };
                    }
                    let first = *drawn.iter().min().expect("invariant: there are lanes") as usize;
                    for t in 0..horizon {
                        // The length is known to the compiler: otherwise the lanes would not be
                        // vectorised.
                        let torques: &mut F32Lanes = u
                            .row(t)
                            .first_chunk_mut()
                            .expect("invariant: samples come in whole blocks");
                        if t >= first {
                            for lane in 0..LANES {
                                let regulated = (-gain * wrap_angle(angle[lane])
                                    - speed_gain * speed[lane])
                                    .clamp(low, high);
                                torques[lane] = if t as u32 >= drawn[lane] {
                                    regulated
                                } else {
                                    torques[lane]
                                };
                            }
                        }
                        for lane in 0..LANES {
                            cost[lane] += plant_cost(angle[lane], speed[lane], torques[lane]);
                            [angle[lane], speed[lane]] =
                                plant_step(angle[lane], speed[lane], torques[lane]);
                        }
                    }
                    let costs: &mut F32Lanes = costs
                        .first_chunk_mut()
                        .expect("invariant: samples come in whole blocks");
                    for lane in 0..LANES {
                        let energy = speed[lane] * speed[lane] / 30.0 + cos_near(angle[lane]) - 1.0;
                        let cost = cost[lane]
                            + terminal * plant_cost(angle[lane], speed[lane], 0.0)
                            + energy_weight * energy * energy;
                        costs[lane] = if cost.is_finite() {
                            cost.min(MAX_COST)
                        } else {
                            MAX_COST
                        };
                    }
                },
            );
        },
    );
}
