//! Gymnasium's `Pendulum-v1`: a torque-limited pole that has to be pumped up.

use std::f64::consts::PI;

use tectum::Result;

use super::uniform::Uniform;
use super::{ActionChannel, Body, BodySpec, ChannelKind, ObservationChannel, Start, Step, Upright, applied_action, check_state, wrapped_rad};

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
/// The reward is Gymnasium's, of the state before the step: −(wrap(θ)² + 0.1 ω² + 0.001 u²). The observation is the wrapped angle
/// and the speed, from which Gymnasium's (cos θ, sin θ, ω) follows. It never terminates; Gymnasium truncates after 200 steps.
/// State: θ (rad, never wrapped), ω (rad/s).
///
/// # Source
/// Gymnasium 1.x, `classic_control/pendulum.py`. Random starts have its distribution (θ in ±π, ω in ±1), not its generator.
pub struct Pendulum {
    spec: BodySpec,
    start: Start,
    angle_rad: f64,
    speed_rad_per_s: f64,
}

impl Pendulum {
    /// Makes the plant, at its start for seed 0.
    pub fn new(start: Start) -> Self {
        let mut pendulum = Self { spec: spec(), start, angle_rad: 0.0, speed_rad_per_s: 0.0 };
        pendulum.reset(0);
        pendulum
    }
}

fn spec() -> BodySpec {
    let (half_turn, speed) = (PI as f32, MAX_SPEED_RAD_PER_S as f32);
    let angle = ChannelKind::Angle { rad_per_unit: 1.0 };
    BodySpec {
        name: "pendulum",
        dt_s: DT_S,
        observation: vec![
            ObservationChannel { name: "angle", unit: "rad", kind: angle, low: -half_turn, high: half_turn, scale: 1.0 },
            ObservationChannel { name: "speed", unit: "rad/s", kind: ChannelKind::Linear, low: -speed, high: speed, scale: speed },
        ],
        action: vec![ActionChannel { name: "torque", unit: "N m", low: -MAX_TORQUE_N_M, high: MAX_TORQUE_N_M, discrete: false }],
        safe_action: vec![0.0],
    }
}

impl Body for Pendulum {
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

    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.angle_rad = uniform.within(PI);
        self.speed_rad_per_s = uniform.within(MAX_SPEED_RAD_PER_S);
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.upright_angle_rad() as f32, self.speed_rad_per_s as f32]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let (torque_n_m, refused) = applied_action(&self.spec, action);
        let cost = self.upright_angle_rad().powi(2) + 0.1 * self.speed_rad_per_s.powi(2) + 0.001 * torque_n_m.powi(2);
        let acceleration = 3.0 * GRAVITY / (2.0 * LENGTH_M) * self.angle_rad.sin() + 3.0 / (MASS_KG * LENGTH_M.powi(2)) * torque_n_m;
        let speed = self.speed_rad_per_s + acceleration * DT_S;
        self.speed_rad_per_s = speed.clamp(-MAX_SPEED_RAD_PER_S, MAX_SPEED_RAD_PER_S);
        self.angle_rad += self.speed_rad_per_s * DT_S;
        Step { reward: -cost, terminated: false, refused }
    }

    fn upright_angle_rad(&self) -> f64 {
        wrapped_rad(self.angle_rad)
    }

    fn state(&self) -> Vec<f64> {
        vec![self.angle_rad, self.speed_rad_per_s]
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        [self.angle_rad, self.speed_rad_per_s] = check_state("pendulum", state)?;
        Ok(())
    }

    fn assimilate(&mut self, observation: &[f32]) {
        self.angle_rad = f64::from(observation[0]);
        self.speed_rad_per_s = f64::from(observation[1]);
    }

    fn upright(&self) -> Upright {
        Upright { state: vec![0.0; 2], state_step: vec![1e-5; 2], action_step: 1e-2 }
    }
}
