//! The laboratory rig: a pole on a linear actuator of short travel.

pub mod disturbed;
pub mod dynamics;
pub mod identification;
mod lanes;

use std::f64::consts::PI;

use tectum::{Error, Result};

use self::disturbed::{Disturbances, DisturbedRig};
use self::dynamics::{Dynamics, Motion, rk4};
use super::batch::{BatchKernel, StepKernel};
use super::control::{Bound, ChannelCost, LqrWeights, MppiParameters, Regulator};
use super::parameters::{BodyParameters, Parameter};
use super::schematic::Schematic;
use super::settings::{PlantSettings, read_settings};
use super::swing_up::{SwingUp, SwingUpSettings};
use super::task::{UPRIGHT_RAD, upright};
use super::uniform::Uniform;
use super::{
    ActionChannel, Body, BodySpec, ControlModel, Descriptor, Equilibrium, ExactState,
    ObservationChannel, RandomizeState, Start, Step, applied_action, check_state, wrapped_rad,
};
use crate::document::Section;

pub(crate) const M_PER_IN: f64 = 0.0254;
const SUBSTEP_S: f64 = 0.004;
/// The longest period: a step takes an integration step for each [`SUBSTEP_S`] of it.
const MAX_PERIOD_S: f64 = 10.0;

/// What is known of the body by its name.
pub static DESCRIPTOR: Descriptor = Descriptor {
    disturbed: Some(|disturbances, start| {
        Ok(Box::new(DisturbedRig::new(
            RigParameters::default(),
            disturbances,
            start,
        )?))
    }),
    batch: Some(BatchKernel {
        numbers: 6,
        has_starts: false,
        angles: &[2],
        define: |name| {
            StepKernel::new(lanes::define(name), |step| {
                lanes::arguments(&RigParameters::default(), step)
            })
        },
    }),
    mppi: Some(|| RigParameters::default().mppi()),
    regulator: Some(|| RigParameters::default().regulator()),
    settings: Some(read_settings::<BodyParameters<RigParameters>>),
    learns_from_rig_recordings: true,
    ..Descriptor::new(
        "rig",
        &[Start::Hanging, Start::Random],
        |start| Ok(Box::new(Rig::new(RigParameters::default(), start)?)),
        || upright(|state| wrapped_rad(state[2])),
    )
};

/// The weights of a rig's regulator, whatever the length of its pole.
pub(crate) fn regulator_weights() -> LqrWeights {
    LqrWeights {
        state: vec![625.0, 0.0, 100.0, 0.0, 0.0, 0.0],
        action: vec![0.25],
    }
}

/// Its parameters in scenarios.
const PARAMETERS: [Parameter<RigParameters>; 11] = [
    Parameter {
        name: "pole_length_m",
        unit: "m",
        about: "length of the pole as of a point mass: of a rod, two thirds",
        range: [0.02, 5.0],
        get: |rig| rig.dynamics.length_m,
        set: |rig, value| rig.dynamics.length_m = value,
    },
    Parameter {
        name: "pole_damping_per_s",
        unit: "1/s",
        about: "share of its speed that the pole loses in a second",
        range: [0.0, 10.0],
        get: |rig| rig.dynamics.pole_damping_per_s,
        set: |rig, value| rig.dynamics.pole_damping_per_s = value,
    },
    Parameter {
        name: "gravity",
        unit: "m/s²",
        about: "acceleration of free fall",
        range: [0.1, 100.0],
        get: |rig| rig.dynamics.gravity,
        set: |rig, value| rig.dynamics.gravity = value,
    },
    Parameter {
        name: "travel_in",
        unit: "in",
        about: "travel of the cart to either side of the middle",
        range: [0.5, 100.0],
        get: |rig| rig.travel_in,
        set: |rig, value| rig.travel_in = value,
    },
    Parameter {
        name: "command_period_s",
        unit: "s",
        about: "time between two commands",
        range: [0.005, 0.2],
        get: |rig| rig.dt_s,
        set: |rig, value| rig.dt_s = value,
    },
    Parameter {
        name: "servo_gain",
        unit: "in/s/V",
        about: "speed per volt beyond the dead band; negative: positive volts retract",
        range: [-50.0, 50.0],
        get: |rig| rig.servo_gain_in_per_s_per_v,
        set: |rig, value| rig.servo_gain_in_per_s_per_v = value,
    },
    Parameter {
        name: "servo_dead_band_v",
        unit: "V",
        about: "volts below which the servo does not move",
        range: [0.0, 5.0],
        get: |rig| rig.servo_dead_band_v,
        set: |rig, value| rig.servo_dead_band_v = value,
    },
    Parameter {
        name: "servo_limit",
        unit: "in/s",
        about: "highest speed of the cart",
        range: [0.1, 200.0],
        get: |rig| rig.servo_limit_in_per_s,
        set: |rig, value| rig.servo_limit_in_per_s = value,
    },
    Parameter {
        name: "servo_lag_s",
        unit: "s",
        about: "time constant of the servo",
        range: [0.5 * SUBSTEP_S, 1.0],
        get: |rig| rig.servo_lag_s,
        set: |rig, value| rig.servo_lag_s = value,
    },
    Parameter {
        name: "delay_s",
        unit: "s",
        about: "from an observation to the effect of its answer, at most command_period_s; the command before acts until then",
        range: [0.0, 0.2],
        get: |rig| rig.delay_s,
        set: |rig, value| rig.delay_s = value,
    },
    Parameter {
        name: "command_limit_v",
        unit: "V",
        about: "highest command to either side",
        range: [0.1, 100.0],
        get: |rig| f64::from(rig.command_limit_v),
        set: |rig, value| rig.command_limit_v = value as f32,
    },
];

impl PlantSettings for BodyParameters<RigParameters> {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        Self::read(
            section,
            "Parameters of the rig or the seeker, which controllers know; its own if absent.",
            &PARAMETERS,
        )
    }

    fn make(&self, start: Start) -> Result<Box<dyn Body>> {
        Ok(Box::new(Rig::new(self.values, start)?))
    }

    fn disturbed(&self, disturbances: Disturbances, start: Start) -> Option<Result<Box<dyn Body>>> {
        Some(
            DisturbedRig::new(self.values, disturbances, start)
                .map(|rig| Box::new(rig) as Box<dyn Body>),
        )
    }

    fn mppi(&self) -> Option<Result<MppiParameters>> {
        Some(Ok(self.values.mppi()))
    }

    fn changes_batches(&self) -> bool {
        !self.changed.is_empty()
    }

    fn regulator(&self) -> Option<Result<Regulator>> {
        Some(Ok(self.values.regulator()))
    }
}

/// Constants of the rig.
///
/// The defaults are identified from a recording of the real one (the file rig.csv of the reference
/// data):
///
/// - The actuator is a *saturating* velocity servo: −4.5 in/s per volt outside a dead band of 0.1
///   V, at most 12.1 in/s, time constant 7.5 ms. That explains the velocity of each interval to R²
///   0.985 (0.97 in/s rms); a linear law of −2.7 in/s per volt reaches 0.930.
/// - A command takes effect 13 ms before its row's position sample, so an answer to one row, sent
///   with the next, takes effect after 27 ms.
/// - The pole swings like a point mass at 0.17 m and loses 0.31 of its speed per second: windows of
///   0.8 s, driven by the recorded cart velocity and with free starts, are met to 3.4 degrees rms
///   (median 1.2). The 0.3 m of the rig's notes leave 8.2.
///
/// Cart and pole mass come from the notes; under a velocity servo they shape the force, not the
/// motion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RigParameters {
    /// Cart and pole.
    pub dynamics: Dynamics,
    /// Travel to either side of the middle, inches; the cart halts there. Default: 4.0.
    pub travel_in: f64,
    /// Time between two commands, seconds. Default: 0.04.
    pub dt_s: f64,
    /// Velocity per volt beyond the dead band; negative: positive volts retract. Default: -4.5.
    pub servo_gain_in_per_s_per_v: f64,
    /// Volts below which the servo does not move. Default: 0.1.
    pub servo_dead_band_v: f64,
    /// Highest speed, inches per second. Default: 12.1.
    pub servo_limit_in_per_s: f64,
    /// Time constant of the servo, seconds. Default: 0.0075.
    pub servo_lag_s: f64,
    /// From observation to the answer's effect, seconds; the previous command acts until then.
    /// Default: 0.027.
    pub delay_s: f64,
    /// Highest command to either side, volts. Default: 5.0.
    pub command_limit_v: f32,
}

impl Default for RigParameters {
    fn default() -> Self {
        Self {
            dynamics: Dynamics {
                cart_kg: 1.0,
                pole_kg: 0.1,
                length_m: 0.17,
                gravity: 9.81,
                cart_damping: 0.0,
                pole_damping_per_s: 0.31,
            },
            travel_in: 4.0,
            dt_s: 0.04,
            servo_gain_in_per_s_per_v: -4.5,
            servo_dead_band_v: 0.1,
            servo_limit_in_per_s: 12.1,
            servo_lag_s: 0.0075,
            delay_s: 0.027,
            command_limit_v: 5.0,
        }
    }
}

impl RigParameters {
    /// Settings of the regulator and of the planner.
    fn regulator(&self) -> Regulator {
        let bounds = vec![
            Bound {
                state: 0,
                max_abs: 0.95 * self.travel_m(),
            },
            Bound {
                state: 1,
                max_abs: self.servo_limit_in_per_s * M_PER_IN,
            },
        ];
        Regulator {
            weights: regulator_weights(),
            swing_up: Some(self.swing_up(SwingUpSettings::default())),
            horizon: 40,
            bounds,
        }
    }

    /// Parameters of MPPI over a twin: the barrier is at 0.7 of the travel, the energy that of the
    /// pole.
    fn mppi(&self) -> MppiParameters {
        let barrier = ChannelCost::with_barrier(0.1, 50.0, (0.7 * self.travel_in) as f32);
        MppiParameters {
            samples: 128,
            channels: vec![
                barrier,
                ChannelCost::weight(0.0),
                ChannelCost::weight(0.05),
                ChannelCost::weight(1.0),
            ],
            energy_ratio: (self.dynamics.length_m as f32 / self.dynamics.gravity as f32)
                * 1f32.to_radians().powi(2),
            angle_channel: Some(3),
            velocity_channel: Some(2),
            terminal_multiplier: 5.0,
            previous_action: true,
            ..MppiParameters::default()
        }
    }

    fn check(&self) -> Result<()> {
        let positive = [
            ("cart_kg", self.dynamics.cart_kg),
            ("pole_kg", self.dynamics.pole_kg),
            ("length_m", self.dynamics.length_m),
            ("travel_in", self.travel_in),
            ("dt_s", self.dt_s),
            ("servo_limit_in_per_s", self.servo_limit_in_per_s),
            ("servo_lag_s", self.servo_lag_s),
            ("command_limit_v", f64::from(self.command_limit_v)),
        ];
        if let Some((name, value)) = positive
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value > 0.0))
        {
            return Err(Error::invalid(format!(
                "rig: {name} is {value}, needs a number above 0"
            )));
        }
        if self.dt_s > MAX_PERIOD_S {
            return Err(Error::invalid(format!(
                "rig: dt_s is {}, needs {MAX_PERIOD_S} or less",
                self.dt_s
            )));
        }
        if self.servo_lag_s < 0.5 * SUBSTEP_S {
            let shortest_s = 0.5 * SUBSTEP_S;
            return Err(Error::invalid(format!(
                "rig: servo_lag_s is {}, needs {shortest_s} or more",
                self.servo_lag_s
            )));
        }
        if !(0.0..=self.dt_s).contains(&self.delay_s) {
            return Err(Error::invalid(format!(
                "rig: delay_s is {}, needs 0 to dt_s = {}",
                self.delay_s, self.dt_s
            )));
        }
        Ok(())
    }

    /// The velocity (m/s) that a command demands.
    pub fn commanded_velocity(&self, command_v: f64) -> f64 {
        let beyond_v = (command_v.abs() - self.servo_dead_band_v)
            .max(0.0)
            .copysign(command_v);
        let limit = self.servo_limit_in_per_s;
        (self.servo_gain_in_per_s_per_v * beyond_v).clamp(-limit, limit) * M_PER_IN
    }

    /// Number of integration steps for a time.
    pub(crate) fn substeps(time_s: f64) -> u64 {
        (time_s / SUBSTEP_S - 1e-9).ceil().max(0.0) as u64
    }

    /// Advances by `time_s` under one command.
    pub fn advance(&self, mut motion: Motion, command_v: f64, time_s: f64) -> Motion {
        let substeps = Self::substeps(time_s);
        let target = self.commanded_velocity(command_v);
        for _ in 0..substeps {
            motion = self.stopped_at_travel(rk4(motion, time_s / substeps as f64, |motion| {
                self.rate(motion, target)
            }));
        }
        motion
    }

    /// Advances by one period: the previous command acts until the new one takes effect.
    pub fn step(&self, motion: Motion, last_command_v: f64, command_v: f64) -> Motion {
        let heard = self.advance(motion, last_command_v, self.delay_s);
        self.advance(heard, command_v, self.dt_s - self.delay_s)
    }

    fn rate(&self, motion: Motion, target_m_per_s: f64) -> Motion {
        let [x, v, _, speed] = motion;
        let demanded = (target_m_per_s - v) / self.servo_lag_s;
        let is_held = v == 0.0 && x.abs() >= self.travel_m() && demanded * x > 0.0;
        let force_n = self
            .dynamics
            .force_for(motion, if is_held { 0.0 } else { demanded });
        let (x_rate, speed_rate) = self.dynamics.accelerations(motion, force_n);
        // The two lines above cancel to the demanded acceleration up to rounding; a held cart must
        // not creep.
        [v, if is_held { 0.0 } else { x_rate }, speed, speed_rate]
    }

    fn stopped_at_travel(&self, motion: Motion) -> Motion {
        let [x, v, angle, speed] = motion;
        if x.abs() <= self.travel_m() {
            return motion;
        }
        let speed = speed + v * angle.cos() / self.dynamics.length_m;
        [self.travel_m().copysign(x), 0.0, angle, speed]
    }

    /// Travel to either side of the middle, metres.
    pub fn travel_m(&self) -> f64 {
        self.travel_in * M_PER_IN
    }

    /// Its swing-up law.
    pub fn swing_up(&self, pumping: SwingUpSettings) -> SwingUp {
        SwingUp::CartVelocity {
            length_m: self.dynamics.length_m,
            gravity: self.dynamics.gravity,
            travel_m: self.travel_m(),
            direction: self.servo_gain_in_per_s_per_v.signum(),
            pumping,
        }
    }
}

/// The simulated rig.
///
/// The servo pushes with the force that gives the cart the acceleration (v_cmd − v)/lag, so cart
/// and pole stay one system (see [`Dynamics`]). Integrated by RK4 in substeps of at most 4 ms. At a
/// stop the cart halts and the pole keeps its angular momentum about the pivot.
///
/// The reward of a step is 1 when it ends within 10 degrees of upright, else 0: the mean reward is
/// the fraction of time inverted. It never terminates. State: position (m), velocity (m/s), angle
/// (rad, never wrapped), speed (rad/s), command still acting (V), velocity over the last interval
/// (in/s).
pub struct Rig {
    spec: BodySpec,
    parameters: RigParameters,
    start: Start,
    motion: Motion,
    last_command_v: f64,
    interval_velocity_in_per_s: f64,
}

impl Rig {
    /// Makes a rig, at its start for seed 0.
    ///
    /// # Errors
    /// Invalid parameters.
    pub fn new(parameters: RigParameters, start: Start) -> Result<Self> {
        parameters.check()?;
        let mut rig = Self {
            spec: spec(&parameters),
            parameters,
            start,
            motion: [0.0; 4],
            last_command_v: 0.0,
            interval_velocity_in_per_s: 0.0,
        };
        rig.reset(0);
        Ok(rig)
    }

    /// The constants this rig runs with.
    pub fn parameters(&self) -> &RigParameters {
        &self.parameters
    }
}

fn spec(parameters: &RigParameters) -> BodySpec {
    let channel =
        |name, unit, bound: f64| ObservationChannel::new(name, unit, -bound as f32..=bound as f32);
    let volts = parameters.command_limit_v;
    BodySpec {
        name: DESCRIPTOR.name.into(),
        dt_s: parameters.dt_s,
        observation: vec![
            channel("la_position", "in", parameters.travel_in),
            channel("la_velocity", "in/s", parameters.servo_limit_in_per_s).scaled(12.0),
            channel("pend_velocity", "deg/s", 1000.0).scaled(600.0),
            channel("pend_position", "deg", 180.0)
                .wrapping(PI / 180.0)
                .scaled(1.0),
        ],
        action: vec![ActionChannel::new("cmd_volts", "V", -volts..=volts)],
        safe_action: vec![0.0],
    }
}

impl Body for Rig {
    capabilities!(ExactState, RandomizeState, ControlModel);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.last_command_v = 0.0;
        self.interval_velocity_in_per_s = 0.0;
        self.motion = match self.start {
            Start::Hanging => [
                uniform.within(0.2 * M_PER_IN),
                0.0,
                PI + uniform.within(0.05),
                uniform.within(0.1),
            ],
            Start::Random => [
                uniform.within(0.5 * self.parameters.travel_m()),
                0.0,
                uniform.within(PI),
                uniform.within(1.0),
            ],
        };
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[
            (self.motion[0] / M_PER_IN) as f32,
            self.interval_velocity_in_per_s as f32,
            self.motion[3].to_degrees() as f32,
            wrapped_rad(self.motion[2]).to_degrees() as f32,
        ]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let (command_v, refused) = applied_action(&self.spec, action);
        let before_m = self.motion[0];
        self.motion = self
            .parameters
            .step(self.motion, self.last_command_v, command_v);
        self.last_command_v = command_v;
        self.interval_velocity_in_per_s =
            (self.motion[0] - before_m) / M_PER_IN / self.parameters.dt_s;
        let is_upright = wrapped_rad(self.motion[2]).abs() < UPRIGHT_RAD;
        Step {
            reward: f64::from(u8::from(is_upright)),
            refused,
            ..Step::default()
        }
    }

    fn schematic(&self) -> Schematic {
        let [position, _, angle, _] = self.motion;
        let pole_m = self.parameters.dynamics.length_m;
        Schematic::cart_and_pole(self.parameters.travel_m(), position, angle, pole_m)
    }
}

impl ExactState for Rig {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(self.motion);
        state.extend([self.last_command_v, self.interval_velocity_in_per_s]);
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let [x, v, angle, speed, command_v, interval] = check_state(DESCRIPTOR.name, state)?;
        self.motion = [x, v, angle, speed];
        self.last_command_v = command_v;
        self.interval_velocity_in_per_s = interval;
        Ok(())
    }
}

impl RandomizeState for Rig {
    /// Half of the states are anywhere, half near upright and slow, where a learned model must be
    /// most accurate. The cart stays away from the stops, whose impacts would dominate a model's
    /// error.
    fn randomize_state(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        let is_near_upright = uniform.between(0.0, 1.0) < 0.5;
        let (angle_rad, speed) = if is_near_upright {
            (0.5, 3.6)
        } else {
            (PI, 16.0)
        };
        let limit_v = f64::from(self.parameters.command_limit_v);
        let v = self.parameters.commanded_velocity(uniform.within(limit_v));
        self.motion = [
            uniform.within(0.6 * self.parameters.travel_m()),
            v,
            uniform.within(angle_rad),
            uniform.within(speed),
        ];
        self.last_command_v = uniform.within(limit_v);
        self.interval_velocity_in_per_s = v / M_PER_IN;
    }
}

impl ControlModel for Rig {
    fn assimilate(&mut self, observation: &[f32]) {
        self.motion[0] = f64::from(observation[0]) * M_PER_IN;
        self.interval_velocity_in_per_s = f64::from(observation[1]);
        self.motion[3] = f64::from(observation[2]).to_radians();
        self.motion[2] = f64::from(observation[3]).to_radians();
    }

    fn equilibrium(&self) -> Equilibrium {
        // A volt is the size of a balancing command: inside the dead band the servo would ignore
        // it.
        let state_step = vec![1e-5, 1e-5, 1e-5, 1e-5, 1.0, 0.0];
        Equilibrium {
            state: vec![0.0; 6],
            state_step,
            action: vec![0.0],
            action_step: vec![1.0],
        }
    }
}

/// A recording of a simulated rig under slow random commands, its angles with noise of up to a
/// size.
#[cfg(test)]
pub(crate) fn simulated(
    parameters: RigParameters,
    rows: usize,
    noise_deg: f64,
) -> crate::rig_csv::RigRecording {
    let mut rig = Rig::new(parameters, Start::Hanging).expect("a rig");
    let mut random = crate::body::uniform::Uniform::new(11);
    let mut recording = crate::rig_csv::RigRecording::default();
    let (mut seen, mut command) = ([0.0f32; 4], 0.0f32);
    for row in 0..rows {
        // A row's command has acted for a while at its sample: the rig hears it after the row
        // before.
        rig.observe(&mut seen);
        let [position, _, velocity, angle] = seen.map(f64::from);
        recording.push([
            position,
            velocity,
            angle + random.within(noise_deg),
            f64::from(command),
            40.0,
        ]);
        if row % 4 == 0 {
            command = (random.within(3.0) + 0.8 * position) as f32;
        }
        rig.step(&[command]);
    }
    recording
}

#[cfg(test)]
mod tests {
    use super::{M_PER_IN, Rig, RigParameters};
    use crate::body::{Body, ExactState, Start};

    fn rig() -> Rig {
        Rig::new(RigParameters::default(), Start::Hanging).expect("default parameters")
    }

    #[test]
    fn the_servo_runs_at_its_identified_speed_and_the_cart_halts_at_the_stop() {
        let mut rig = rig();
        let mut observation = [0.0f32; 4];
        rig.step(&[-1.1]);
        for _ in 0..5 {
            rig.step(&[-1.1]);
        }
        rig.observe(&mut observation);
        assert!((observation[1] - 4.5).abs() < 0.01, "{observation:?}");
        for _ in 0..100 {
            rig.step(&[-5.0]);
        }
        rig.observe(&mut observation);
        assert_eq!(observation[..2], [4.0, 0.0]);
        rig.step(&[5.0]);
        rig.step(&[5.0]);
        rig.observe(&mut observation);
        assert!(observation[0] < 3.8, "leaves the stop: {observation:?}");
    }

    #[test]
    fn a_command_acts_only_after_the_delay() {
        let mut rig = rig();
        rig.set_state(&[0.0; 6]).expect("six numbers");
        rig.step(&[-5.0]);
        let moved_in = rig.state()[0] / M_PER_IN;
        // 13 ms at 12.1 in/s less the lag's share: 12.1 (T − τ(1 − e^(−T/τ))).
        let expected_in = 12.1 * (0.013 - 0.0075 * (1.0 - (-0.013f64 / 0.0075).exp()));
        assert!(
            (moved_in - expected_in).abs() < 5e-3,
            "{moved_in} {expected_in}"
        );
    }

    #[test]
    fn parameters_without_meaning_are_refused() {
        let delay = RigParameters {
            delay_s: 0.05,
            ..RigParameters::default()
        };
        let error = Rig::new(delay, Start::Hanging).err().expect("refused");
        assert_eq!(
            error.to_string(),
            "rig: delay_s is 0.05, needs 0 to dt_s = 0.04"
        );
        // A step of it would take 2.5e11 integration steps.
        let period = RigParameters {
            dt_s: 1e9,
            ..RigParameters::default()
        };
        let error = Rig::new(period, Start::Hanging).err().expect("refused");
        assert_eq!(
            error.to_string(),
            "rig: dt_s is 1000000000, needs 10 or less"
        );
    }
}
