//! Gymnasium's `Acrobot-v1`: two links of which only the joint between them is driven.

use std::f32::consts::PI as PI_F32;
use std::f64::consts::{PI, TAU};

use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{cos_near, sin_near};
use tectum::{Error, NativeCall, Result};

use super::batch::lanes::{
    LANES, applied, flag, reset_terminated, runge_kutta, step_all, wrap_angle,
};
use super::batch::{BatchKernel, StepBodies, StepKernel, with_body};
use super::schematic::{Role, Schematic};
use super::task::upright;
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
        angles: &[0, 1],
        define: |name| {
            StepKernel::new(
                built_in(
                    with_body(
                        StepBodies::define(format!("body_{name}")).with("starts"),
                        &[include_str!("../../kernels/body_acrobot.wgsl")],
                    ),
                    step_lanes,
                ),
                |step| step,
            )
        },
    }),
    without_controller: Some(
        "its episode ends as soon as the tip is a link's length above the base, so there is no rest that a regulator could hold; \
         two links that are to be balanced are an equation file, as double_pendulum.plant",
    ),
    ..Descriptor::new(
        "acrobot",
        &[Start::Random],
        |start| Ok(Box::new(Acrobot::new(start)?)),
        || upright(tip_angle_rad),
    )
};

const GRAVITY: f64 = 9.8;
const DT_S: f64 = 0.2;
/// Both links: mass, length, centre of mass, moment of inertia.
const LINK_KG: f64 = 1.0;
const LINK_M: f64 = 1.0;
const CENTRE_M: f64 = 0.5;
const INERTIA: f64 = 1.0;
const SPEED_LIMITS: [f64; 2] = [4.0 * PI, 9.0 * PI];
const TORQUE_NM: f32 = 1.0;

/// The plant `Acrobot-v1`.
///
/// With θ₁ from hanging and θ₂ between the links: d₁ = m c² + m(l² + c² + 2lc cos θ₂) + 2I, d₂ =
/// m(c² + lc cos θ₂) + I, φ₂ = m c g cos(θ₁ + θ₂ − π/2), φ₁ = −m l c θ̇₂² sin θ₂ − 2m l c θ̇₂θ̇₁
/// sin θ₂ + (m c + m l) g cos(θ₁ − π/2) + φ₂, θ̈₂ = (τ + d₂/d₁ φ₁ − m l c θ̇₁² sin θ₂ − φ₂)/(m c² +
/// I − d₂²/d₁), θ̈₁ = −(d₂ θ̈₂ + φ₁)/d₁; one Runge-Kutta step of order 4, then angles are wrapped
/// and speeds are clamped to ±4π and ±9π.
///
/// The reward is −1 a step, 0 for the one that brings the tip a link's length above the base, which
/// terminates; Gymnasium truncates after 500. State: θ₁, θ₂ (rad), θ̇₁, θ̇₂ (rad/s). Torques
/// between Gymnasium's −1, 0 and 1 N m are applied unchanged. The observation measures the first
/// angle from upright.
///
/// # Source
/// Gymnasium 1.x, `classic_control/acrobot.py`, dynamics of Sutton's book. Starts have its
/// distribution (±0.1 in each number), not its generator.
pub struct Acrobot {
    spec: BodySpec,
    x: [f64; 4],
}

impl Acrobot {
    /// Makes the plant, at its start for seed 0.
    ///
    /// # Errors
    /// A start other than random, which is near hanging.
    pub fn new(start: Start) -> Result<Self> {
        if start != Start::Random {
            return Err(Error::invalid(
                "acrobot: start \"hanging\" is what its random start is near; known: random",
            ));
        }
        let mut acrobot = Self {
            spec: spec(),
            x: [0.0; 4],
        };
        acrobot.reset(0);
        Ok(acrobot)
    }
}

/// The angle from upright of the line from the base to the tip.
fn tip_angle_rad(state: &[f64]) -> f64 {
    let (first, second) = (state[0], state[1]);
    let (across, up) = (
        first.sin() + (first + second).sin(),
        -first.cos() - (first + second).cos(),
    );
    wrapped_rad(across.atan2(up))
}

fn spec() -> BodySpec {
    let angle = |name| {
        ObservationChannel::new(name, "rad", -PI as f32..=PI as f32)
            .wrapping(1.0)
            .scaled(1.0)
    };
    let speed = |name, limit: f64| {
        ObservationChannel::new(name, "rad/s", -limit as f32..=limit as f32)
            .scaled(limit as f32 / 4.0)
    };
    BodySpec {
        name: DESCRIPTOR.name.into(),
        dt_s: DT_S,
        observation: vec![
            angle("angle"),
            angle("elbow"),
            speed("speed", SPEED_LIMITS[0]),
            speed("elbow_speed", SPEED_LIMITS[1]),
        ],
        action: vec![ActionChannel::new("torque", "N m", -TORQUE_NM..=TORQUE_NM)],
        safe_action: vec![0.0],
    }
}

/// The rates of the four numbers of the state under a torque.
fn rates([first, second, first_speed, second_speed]: [f64; 4], torque: f64) -> [f64; 4] {
    let (sin, cos) = second.sin_cos();
    let d1 = LINK_KG * CENTRE_M.powi(2)
        + LINK_KG * (LINK_M.powi(2) + CENTRE_M.powi(2) + 2.0 * LINK_M * CENTRE_M * cos)
        + INERTIA
        + INERTIA;
    let d2 = LINK_KG * (CENTRE_M.powi(2) + LINK_M * CENTRE_M * cos) + INERTIA;
    let phi2 = LINK_KG * CENTRE_M * GRAVITY * (first + second - PI / 2.0).cos();
    let phi1 = -LINK_KG * LINK_M * CENTRE_M * second_speed.powi(2) * sin
        - 2.0 * LINK_KG * LINK_M * CENTRE_M * second_speed * first_speed * sin
        + (LINK_KG * CENTRE_M + LINK_KG * LINK_M) * GRAVITY * (first - PI / 2.0).cos()
        + phi2;
    let second_rate =
        (torque + d2 / d1 * phi1 - LINK_KG * LINK_M * CENTRE_M * first_speed.powi(2) * sin - phi2)
            / (LINK_KG * CENTRE_M.powi(2) + INERTIA - d2.powi(2) / d1);
    let first_rate = -(d2 * second_rate + phi1) / d1;
    [first_speed, second_speed, first_rate, second_rate]
}

/// One step of the classical Runge-Kutta method of order 4.
fn rk4_step(x: [f64; 4], torque: f64, dt: f64) -> [f64; 4] {
    let along = |rate: [f64; 4], dt: f64| std::array::from_fn(|i| x[i] + dt * rate[i]);
    let k1 = rates(x, torque);
    let k2 = rates(along(k1, dt / 2.0), torque);
    let k3 = rates(along(k2, dt / 2.0), torque);
    let k4 = rates(along(k3, dt), torque);
    std::array::from_fn(|i| x[i] + dt / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}

/// Full turns that are subtracted one by one.
const MAX_TURNS: f64 = 64.0;

/// An angle wrapped to [−π, π] by full turns, as in Gymnasium: an angle already in the range keeps
/// its bits. Of an angle beyond [`MAX_TURNS`], which a step reaches only from speeds beyond the
/// limits, the exact remainder is taken first: 2⁵⁴ radians less a turn are 2⁵⁴ radians. NaN for one
/// that is not finite.
fn wrapped_by_turns(mut angle: f64) -> f64 {
    if angle.abs() > MAX_TURNS * TAU {
        angle %= TAU;
    }
    while angle > PI {
        angle -= 2.0 * PI;
    }
    while angle < -PI {
        angle += 2.0 * PI;
    }
    angle
}

impl Body for Acrobot {
    capabilities!(ExactState, RandomizeState, ControlModel);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = std::array::from_fn(|_| uniform.within(0.1));
    }

    fn observe(&self, observation: &mut [f32]) {
        let [first, second, first_speed, second_speed] = self.x;
        observation.copy_from_slice(&[
            wrapped_rad(first + PI) as f32,
            wrapped_rad(second) as f32,
            first_speed as f32,
            second_speed as f32,
        ]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let (torque, refused) = applied_action(&self.spec, action);
        let [first, second, first_speed, second_speed] = rk4_step(self.x, torque, DT_S);
        let held = |speed: f64, limit: f64| speed.clamp(-limit, limit);
        self.x = [
            wrapped_by_turns(first),
            wrapped_by_turns(second),
            held(first_speed, SPEED_LIMITS[0]),
            held(second_speed, SPEED_LIMITS[1]),
        ];
        let terminated = -self.x[0].cos() - (self.x[1] + self.x[0]).cos() > 1.0;
        Step {
            reward: if terminated { 0.0 } else { -1.0 },
            terminated,
            truncated: false,
            refused,
        }
    }

    /// With the height that the tip is to reach.
    fn schematic(&self) -> Schematic {
        let below = |from: [f64; 2], angle: f64| {
            let (sin, cos) = angle.sin_cos();
            [from[0] + LINK_M * sin, from[1] - LINK_M * cos]
        };
        let (base, reach_m) = ([0.0, 0.0], 2.2 * LINK_M);
        let elbow = below(base, self.x[0]);
        let tip = below(elbow, self.x[0] + self.x[1]);
        Schematic::new([-reach_m, -reach_m], [reach_m, reach_m])
            .line(Role::Goal, [-reach_m, LINK_M], [reach_m, LINK_M], 0.02)
            .line(Role::Link, base, elbow, 0.16)
            .line(Role::Link, elbow, tip, 0.16)
            .disc(Role::Joint, base, 0.07)
            .disc(Role::Joint, elbow, 0.07)
    }
}

impl ExactState for Acrobot {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(self.x);
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        self.x = check_state(DESCRIPTOR.name, state)?;
        Ok(())
    }
}

impl RandomizeState for Acrobot {
    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.x = [PI, PI, SPEED_LIMITS[0], SPEED_LIMITS[1]].map(|bound| uniform.within(bound));
    }
}

impl ControlModel for Acrobot {
    fn assimilate(&mut self, observation: &[f32]) {
        let seen: [f64; 4] = std::array::from_fn(|i| f64::from(observation[i]));
        self.x = [wrapped_rad(seen[0] - PI), seen[1], seen[2], seen[3]];
    }

    fn equilibrium(&self) -> Equilibrium {
        Equilibrium {
            state: vec![PI, 0.0, 0.0, 0.0],
            state_step: vec![1e-5; 4],
            action: vec![0.0],
            action_step: vec![TORQUE_NM],
        }
    }
}

/// Rates of angles and speeds in f32.
#[inline(always)]
fn rates_f32([first, second, first_speed, second_speed]: [f32; 4], torque: f32) -> [f32; 4] {
    let (sine, cosine) = (sin_near(second), cos_near(second));
    let (d1, d2) = (3.5 + cosine, 1.25 + 0.5 * cosine);
    let phi2 = 4.9 * sin_near(first + second);
    let phi1 =
        14.7 * sin_near(first) + phi2 - (0.5 * second_speed + first_speed) * second_speed * sine;
    let rate = (torque + d2 / d1 * phi1 - 0.5 * first_speed * first_speed * sine - phi2)
        / (1.25 - d2 * d2 / d1);
    [first_speed, second_speed, -(d2 * rate + phi1) / d1, rate]
}

/// One step of many instances, in f32.
fn step_lanes(call: &NativeCall<'_>, arguments: StepBodies<Slices<'_>>) {
    let starts = arguments.starts.unwrap_or_default().as_chunks::<5>().0;
    step_all::<1, 5, 6>(
        call,
        arguments,
        1000,
        #[inline(always)]
        |actions, state, shown, first| {
            let had_ended = state[4];
            for lane in 0..LANES {
                let torque = applied(actions[0][lane], 1.0);
                let before = [
                    state[0][lane],
                    state[1][lane],
                    state[2][lane],
                    state[3][lane],
                ];
                let [first, second, first_speed, second_speed] = runge_kutta(
                    before,
                    0.2,
                    #[inline(always)]
                    |s| rates_f32(s, torque),
                );
                state[0][lane] = wrap_angle(first);
                state[1][lane] = wrap_angle(second);
                state[2][lane] = first_speed.clamp(-4.0 * PI_F32, 4.0 * PI_F32);
                state[3][lane] = second_speed.clamp(-9.0 * PI_F32, 9.0 * PI_F32);
                state[4][lane] = flag(
                    -cos_near(state[0][lane]) - cos_near(state[1][lane] + state[0][lane]) > 1.0,
                );
                shown[4][lane] = state[4][lane] - 1.0;
            }
            reset_terminated(&had_ended, starts, first, state, shown);
            for lane in 0..LANES {
                shown[0][lane] = wrap_angle(state[0][lane] + PI_F32);
                shown[1][lane] = wrap_angle(state[1][lane]);
                shown[2][lane] = state[2][lane];
                shown[3][lane] = state[3][lane];
                shown[5][lane] = state[4][lane];
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinetic and potential energy of the free links.
    fn energy([first, second, first_speed, second_speed]: [f64; 4]) -> f64 {
        let (m, l, c) = (LINK_KG, LINK_M, CENTRE_M);
        let both = first_speed + second_speed;
        let kinetic = 0.5 * (m * c * c + INERTIA) * first_speed.powi(2)
            + 0.5
                * m
                * (l * l * first_speed.powi(2)
                    + c * c * both.powi(2)
                    + 2.0 * l * c * first_speed * both * second.cos())
            + 0.5 * INERTIA * both.powi(2);
        kinetic - m * GRAVITY * (c * first.cos() + l * first.cos() + c * (first + second).cos())
    }

    /// As Gymnasium wraps, turn by turn.
    fn turn_by_turn(mut angle: f64) -> f64 {
        while angle > PI {
            angle -= TAU;
        }
        while angle < -PI {
            angle += TAU;
        }
        angle
    }

    #[test]
    fn angles_of_few_turns_keep_the_bits_of_gymnasium() {
        let mut uniform = Uniform::new(3);
        for bound in [1.0, PI, TAU, 30.0, MAX_TURNS * TAU] {
            for _ in 0..1000 {
                let angle = uniform.within(bound);
                let wrapped = wrapped_by_turns(angle);
                assert_eq!(wrapped.to_bits(), turn_by_turn(angle).to_bits(), "{angle}");
            }
        }
    }

    /// Of any size: a loop over turns would not end.
    #[test]
    fn large_angles_are_wrapped_by_their_remainder() {
        for angle in [403.0, 1e6, 1e10, 2f64.powi(54), 1e300, f64::MAX] {
            for angle in [angle, -angle] {
                let wrapped = wrapped_by_turns(angle);
                assert!(wrapped.abs() <= PI, "{angle}: {wrapped}");
                let turns = (angle % TAU - wrapped) / TAU;
                assert!((turns - turns.round()).abs() < 1e-12, "{angle}: {wrapped}");
            }
        }
        for angle in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert!(wrapped_by_turns(angle).is_nan());
        }
    }

    /// Each number is finite, and so the setter accepts it: the speeds bring the angles to 1e17.
    #[test]
    fn a_step_from_any_finite_state_ends() {
        let mut acrobot = Acrobot::new(Start::Random).expect("a body");
        for number in [100.0, 1000.0, 1e10, 1e300, f64::MAX] {
            for state in [[number; 4], [0.0, 0.0, number, 0.0], [-number; 4]] {
                acrobot.set_state(&state).expect("finite");
                for _ in 0..3 {
                    acrobot.step(&[1.0]);
                }
                let wrapped = acrobot.x[..2]
                    .iter()
                    .all(|angle| angle.is_nan() || angle.abs() <= PI);
                assert!(wrapped, "{state:?}: {:?}", acrobot.x);
            }
        }
    }

    /// What the exact flow conserves, short steps of order 4 conserve except for their error.
    #[test]
    fn the_equations_keep_the_energy_of_the_free_links() {
        let mut x = [1.2, -0.7, 0.4, 0.9];
        let before = energy(x);
        for _ in 0..1000 {
            x = rk4_step(x, 0.0, 1e-3);
        }
        assert!(
            (energy(x) - before).abs() < 1e-9 * before.abs(),
            "{before} became {}",
            energy(x)
        );
    }
}
