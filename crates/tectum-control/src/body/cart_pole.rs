//! Gymnasium's `CartPole-v1`: a pole on a cart that is pushed left or right.

use tectum::{Error, Result};

use super::uniform::Uniform;
use super::{ActionChannel, Body, BodySpec, ChannelKind, ObservationChannel, Start, Step, Upright, applied_action, check_state, wrapped_rad};

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
/// temp = (F + m_p l ω² sin θ)/M; ω̇ = (g sin θ − temp cos θ)/(l(4/3 − m_p cos² θ/M)); v̇ = temp − m_p l ω̇ cos θ/M; explicit Euler.
///
/// The reward is 1 for every step up to and with the terminating one, 0 after it. Terminates beyond 2.4 m or 12 degrees; Gymnasium
/// truncates after 500 steps. State: x (m), v (m/s), θ (rad), ω (rad/s), fallen (0 or 1).
///
/// # Source
/// Gymnasium 1.x, `classic_control/cartpole.py`. Starts have its distribution (±0.05 in each number), not its generator.
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
            return Err(Error::invalid("cart_pole: start \"hanging\" is beyond its 12 degrees; known: random"));
        }
        let mut cart_pole = Self { spec: spec(), x: [0.0; 4], fallen: false };
        cart_pole.reset(0);
        Ok(cart_pole)
    }

    fn is_outside(&self) -> bool {
        self.x[0].abs() > POSITION_LIMIT_M || self.x[2].abs() > ANGLE_LIMIT_RAD
    }
}

fn spec() -> BodySpec {
    let linear = |name, unit, bound: f32, scale| ObservationChannel { name, unit, kind: ChannelKind::Linear, low: -bound, high: bound, scale };
    let (position, angle) = (POSITION_LIMIT_M as f32, ANGLE_LIMIT_RAD as f32);
    let angle_kind = ChannelKind::Angle { rad_per_unit: 1.0 };
    BodySpec {
        name: "cart_pole",
        dt_s: DT_S,
        observation: vec![
            linear("position", "m", position, position),
            linear("velocity", "m/s", 3.0, 2.0),
            ObservationChannel { name: "angle", unit: "rad", kind: angle_kind, low: -angle, high: angle, scale: 1.0 },
            linear("speed", "rad/s", 3.0, 2.0),
        ],
        action: vec![ActionChannel { name: "force", unit: "N", low: -FORCE_N, high: FORCE_N, discrete: true }],
        safe_action: vec![FORCE_N],
    }
}

impl Body for CartPole {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = std::array::from_fn(|_| uniform.within(0.05));
        self.fallen = false;
    }

    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = [POSITION_LIMIT_M, 3.0, 0.5, 3.0].map(|bound| uniform.within(bound));
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
        let speed_rate = (GRAVITY * sin - cos * temp) / (HALF_LENGTH_M * (4.0 / 3.0 - POLE_KG * cos.powi(2) / TOTAL_KG));
        let v_rate = temp - POLE_KG * HALF_LENGTH_M * speed_rate * cos / TOTAL_KG;
        self.x = [x + DT_S * v, v + DT_S * v_rate, angle + DT_S * speed, speed + DT_S * speed_rate];
        let reward = if self.fallen { 0.0 } else { 1.0 };
        let terminated = self.is_outside();
        self.fallen |= terminated;
        Step { reward, terminated, refused }
    }

    fn upright_angle_rad(&self) -> f64 {
        wrapped_rad(self.x[2])
    }

    fn state(&self) -> Vec<f64> {
        let [x, v, angle, speed] = self.x;
        vec![x, v, angle, speed, f64::from(u8::from(self.fallen))]
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let [x, v, angle, speed, fallen] = check_state("cart_pole", state)?;
        self.x = [x, v, angle, speed];
        self.fallen = fallen != 0.0;
        Ok(())
    }

    fn assimilate(&mut self, observation: &[f32]) {
        self.x = std::array::from_fn(|i| f64::from(observation[i]));
    }

    fn upright(&self) -> Upright {
        let state_step = vec![1e-5, 1e-5, 1e-5, 1e-5, 0.0];
        Upright { state: vec![0.0; 5], state_step, action_step: FORCE_N }
    }
}
