//! The stage between an action and the motors: a body whose actions are targets of joints.
//!
//! [`Driven`] wraps a body that is stepped by torques (or by targets and gains, where the body has
//! a controller of its own) and runs at its own rate: a period of the driven body is
//! [`decimation`](MotorRule::decimation) periods of the body. In each of them the torque of a joint
//! is
//!
//! | control | torque |
//! |---|---|
//! | position | stiffness (target - position) - damping velocity |
//! | velocity | damping (target - velocity) |
//! | torque | target |
//!
//! within ±`torque_limit`. Joints that the action does not drive hold their stated targets. Before
//! the policy runs, motors pass through the stated states; without an answer they are in the safe
//! state: they hold the default pose unless the contract states another.
//!
//! A body receives targets and gains instead of torques where it has the action channels
//! `JOINT.position`, `JOINT.velocity`, `JOINT.stiffness`, `JOINT.damping` and `JOINT.torque`; a
//! channel of the joint's name in rad or m receives the target position.

mod joint;
pub mod rule;

use tectum::{Error, Result};

pub use self::joint::is_torque;
use self::joint::{Joint, JointGains, bind};
pub use self::rule::{Control, MotorRule, MotorState};
use super::link::LinkStatus;
use super::schematic::Schematic;
use super::{ActionChannel, Body, BodySpec, Command, ExactState, Picture, Push, Step, lacks};
use crate::clock::ClockKind;

/// Numbers of the stage's own state before those of the joints.
const OWN_STATE: usize = 2;
/// Numbers of a joint's state.
const JOINT_STATE: usize = 4;

/// A body whose actions are targets of joints.
pub struct Driven {
    body: Box<dyn Body>,
    bound: Bound,
    /// Nanoseconds of a period of the body.
    period_ns: u64,
    /// Share of the way to a new target in one period of the body, and to a new torque.
    filter: f64,
    lag: f64,
    /// The state before the policy runs; all of them are over at its length.
    phase: usize,
    /// Periods of the driven body in that state.
    elapsed: u64,
    memory: Vec<Memory>,
    observation: Vec<f32>,
    action: Vec<f32>,
}

/// A rule met with a body.
#[derive(Debug)]
struct Bound {
    /// What a policy sees.
    spec: BodySpec,
    joints: Vec<Joint>,
    decimation: u64,
    start: Vec<Phase>,
    safe: (MotorState, Vec<JointGains>),
    gains: Vec<JointGains>,
}

/// A state before the policy runs.
#[derive(Debug, Clone)]
struct Phase {
    state: MotorState,
    periods: u64,
    gains: Vec<JointGains>,
}

/// What the stage remembers of a joint.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    /// The target after the limit of its rate and the filter.
    target: f64,
    /// The torque after the lag.
    torque: f64,
    /// Its position when the present state began.
    begin: f64,
    /// The last target of the policy.
    command: f64,
}

impl MotorRule {
    /// What a policy sees of a body that this stage drives: its observations, and targets as
    /// actions.
    ///
    /// # Errors
    /// As [`Driven::new`].
    pub fn spec(&self, body: &BodySpec, period_s: Option<f64>) -> Result<BodySpec> {
        self.bound(body, period_s).map(|bound| bound.spec)
    }

    /// The rule met with a body.
    fn bound(&self, body: &BodySpec, period_s: Option<f64>) -> Result<Bound> {
        let joints = bind(self, body)?;
        let decimation = self.periods(body, period_s)?;
        let spec = driven_spec(body, &joints, decimation);
        let driven = joints.iter().filter(|joint| joint.is_driven).count();
        let gains: Vec<JointGains> = joints.iter().map(|joint| joint.gains).collect();
        let of_state = |state: &rule::Gains| joint::gains_of(state, &gains, driven);
        let phase = |start: &rule::StartRule| {
            Ok(Phase {
                state: start.state,
                periods: ((start.seconds / spec.dt_s).round() as u64).max(1),
                gains: of_state(&start.gains)?,
            })
        };
        Ok(Bound {
            start: self.start.iter().map(phase).collect::<Result<_>>()?,
            safe: (self.safe.state, of_state(&self.safe.gains)?),
            gains,
            joints,
            decimation,
            spec,
        })
    }

    /// The periods of the body in one of the policy.
    fn periods(&self, body: &BodySpec, period_s: Option<f64>) -> Result<u64> {
        let invalid = |message: String| Err(Error::invalid(format!("motors: {message}")));
        let stated = self.decimation;
        if stated == Some(0) {
            return invalid("decimation is 0".to_owned());
        }
        let Some(period_s) = period_s else {
            return Ok(stated.unwrap_or(1));
        };
        let periods = period_s / body.dt_s;
        let whole = periods.round();
        if whole < 1.0
            || whole > rule::MAX_DECIMATION as f64
            || (periods - whole).abs() > 1e-6 * whole
        {
            return invalid(format!(
                "a period of {period_s} s is no whole number of periods of the body {}, {} s",
                body.name, body.dt_s
            ));
        }
        match stated {
            Some(stated) if stated != whole as u64 => invalid(format!(
                "decimation {stated} of the body's period {} s is {} s; the contract states {period_s} s",
                body.dt_s,
                stated as f64 * body.dt_s
            )),
            _ => Ok(whole as u64),
        }
    }
}

fn driven_spec(body: &BodySpec, joints: &[Joint], decimation: u64) -> BodySpec {
    let driven = || joints.iter().filter(|joint| joint.is_driven);
    let target = |joint: &Joint| {
        let [low, high] = joint.target_range.map(|bound| bound as f32);
        ActionChannel::new(&joint.name, joint.unit(), low..=high)
    };
    BodySpec {
        name: body.name.clone(),
        dt_s: body.dt_s * decimation as f64,
        observation: body.observation.clone(),
        action: driven().map(target).collect(),
        safe_action: driven().map(|joint| joint.rest() as f32).collect(),
    }
}

impl Driven {
    /// Drives a body by a rule; `period_s` is the time between two actions, if it is stated.
    ///
    /// # Errors
    /// `Invalid` for a joint without channels of its position, velocity or action; for lists of
    /// different lengths; for a period that is no whole number of the body's.
    pub fn new(body: Box<dyn Body>, rule: &MotorRule, period_s: Option<f64>) -> Result<Self> {
        let inner = body.spec();
        let dt_s = inner.dt_s;
        let bound = rule.bound(inner, period_s)?;
        let mut driven = Self {
            observation: vec![0.0; inner.observation_len()],
            action: inner.safe_action.clone(),
            period_ns: (dt_s * 1e9).round() as u64,
            filter: rule.filter_hz.map_or(1.0, |filter_hz| {
                -(-std::f64::consts::TAU * filter_hz * dt_s).exp_m1()
            }),
            lag: rule.lag_s.map_or(1.0, |lag_s| -(-dt_s / lag_s).exp_m1()),
            memory: vec![Memory::default(); bound.joints.len()],
            phase: 0,
            elapsed: 0,
            bound,
            body,
        };
        driven.begin_episode();
        Ok(driven)
    }

    /// Periods of the body in one of the driven body.
    pub fn decimation(&self) -> u64 {
        self.bound.decimation
    }

    fn begin_episode(&mut self) {
        (self.phase, self.elapsed) = (0, 0);
        self.body.observe(&mut self.observation);
        for (joint, memory) in self.bound.joints.iter().zip(&mut self.memory) {
            let position = joint.start(&self.observation);
            *memory = Memory {
                target: if joint.control == Control::Position {
                    position
                } else {
                    0.0
                },
                torque: 0.0,
                begin: position,
                command: joint.rest(),
            };
        }
    }

    /// One period of the body in a state of the motors.
    fn step_body(&mut self, state: MotorState, gains: Gaining, share: f64) -> Step {
        let dt_s = self.body.spec().dt_s;
        self.body.observe(&mut self.observation);
        let list = match gains {
            Gaining::Run => &self.bound.gains,
            Gaining::Safe => &self.bound.safe.1,
            Gaining::Start(phase) => &self.bound.start[phase].gains,
        };
        for ((joint, memory), gains) in self.bound.joints.iter().zip(&mut self.memory).zip(list) {
            let goal = match state {
                MotorState::Run => memory.command,
                MotorState::Move if joint.control == Control::Position => {
                    memory.begin + share * (joint.default - memory.begin)
                }
                _ => joint.rest(),
            };
            memory.target = joint.limited(
                memory.target + self.filter * (goal - memory.target),
                memory.target,
                dt_s,
            );
            let target = joint::Target {
                state,
                target: memory.target,
                gains: *gains,
            };
            let torque = joint.torque(&self.observation, &target);
            // Of a torque that is not finite nothing is kept, and the body refuses it.
            let applied = memory.torque + self.lag * (torque - memory.torque);
            if applied.is_finite() {
                memory.torque = applied;
            }
            joint.command(&mut self.action, &target, applied);
        }
        self.body.step(&self.action)
    }
}

/// Whose gains apply.
#[derive(Debug, Clone, Copy)]
enum Gaining {
    Run,
    Safe,
    Start(usize),
}

impl Body for Driven {
    fn spec(&self) -> &BodySpec {
        &self.bound.spec
    }

    fn reset(&mut self, seed: u64) {
        self.body.reset(seed);
        self.begin_episode();
    }

    fn observe(&self, observation: &mut [f32]) {
        self.body.observe(observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        self.advance(&mut Command::new(action))
    }

    /// Steps the body through its periods, each at its time. The reward is the sum of theirs.
    fn advance(&mut self, command: &mut Command<'_>) -> Step {
        let action = command.action;
        assert_eq!(
            action.len(),
            self.bound.spec.action.len(),
            "{}: numbers of an action",
            self.bound.spec.name
        );
        let refused = action.iter().any(|number| !number.is_finite());
        let (state, gains) = match self.bound.start.get(self.phase) {
            _ if command.is_safe || refused => (self.bound.safe.0, Gaining::Safe),
            Some(phase) => (phase.state, Gaining::Start(self.phase)),
            None => (MotorState::Run, Gaining::Run),
        };
        if state == MotorState::Run {
            let driven = self
                .bound
                .joints
                .iter()
                .zip(&mut self.memory)
                .filter(|(joint, _)| joint.is_driven);
            for ((_, memory), number) in driven.zip(action) {
                memory.command = f64::from(*number);
            }
        }
        let mut sum = Step {
            refused,
            ..Step::default()
        };
        let all = self
            .bound
            .start
            .get(self.phase)
            .map_or(1, |phase| phase.periods)
            * self.bound.decimation;
        for period in 0..self.bound.decimation {
            command.wait(period * self.period_ns, self.period_ns);
            let share = (self.elapsed * self.bound.decimation + period + 1) as f64 / all as f64;
            let step = self.step_body(state, gains, share.min(1.0));
            sum.reward += step.reward;
            (sum.terminated, sum.truncated) = (step.terminated, step.truncated);
            sum.refused |= step.refused;
            if step.ends_episode() {
                break;
            }
        }
        if matches!(gains, Gaining::Start(_)) {
            self.elapsed += 1;
            if self.elapsed >= self.bound.start[self.phase].periods {
                (self.phase, self.elapsed) = (self.phase + 1, 0);
                self.body.observe(&mut self.observation);
                for (joint, memory) in self.bound.joints.iter().zip(&mut self.memory) {
                    memory.begin = joint.start(&self.observation);
                }
            }
        }
        sum
    }

    fn link(&mut self, clock: ClockKind) -> Option<LinkStatus> {
        self.body.link(clock)
    }

    fn commands(&mut self, set: &mut dyn FnMut(&str, Option<f64>) -> Result<()>) {
        self.body.commands(set);
    }

    fn clock(&self) -> Option<ClockKind> {
        self.body.clock()
    }

    fn is_ready(&self) -> bool {
        self.phase >= self.bound.start.len()
    }

    fn into_inner(self: Box<Self>) -> Option<Box<dyn Body>> {
        Some(self.body)
    }

    fn inner_period_s(&self) -> Option<f64> {
        Some(self.body.spec().dt_s)
    }

    fn schematic(&self) -> Schematic {
        self.body.schematic()
    }

    fn health(&self) -> Result<()> {
        self.body.health()
    }

    fn pushed(&mut self) -> Option<&mut dyn Push> {
        self.body.pushed()
    }

    fn picture(&mut self, width: u32, height: u32) -> Result<Option<Picture>> {
        self.body.picture(width, height)
    }

    fn exact_state(&self) -> Option<&dyn ExactState> {
        self.body.exact_state().map(|_| self as &dyn ExactState)
    }

    fn exact_state_mut(&mut self) -> Option<&mut dyn ExactState> {
        self.body.exact_state()?;
        Some(self)
    }
}

impl ExactState for Driven {
    /// The state of the body, then the state of the start and its periods, then of each joint the
    /// target, the torque, the position at which the state began and the policy's target.
    fn append_state(&self, state: &mut Vec<f64>) {
        if let Some(body) = self.body.exact_state() {
            body.append_state(state);
        }
        state.extend([self.phase as f64, self.elapsed as f64]);
        for memory in &self.memory {
            state.extend([memory.target, memory.torque, memory.begin, memory.command]);
        }
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let own = OWN_STATE + JOINT_STATE * self.memory.len();
        let len = state.len().checked_sub(own).ok_or_else(|| {
            Error::invalid(format!(
                "{}: a state has at least {own} numbers, not {}",
                self.bound.spec.name,
                state.len()
            ))
        })?;
        let (body, own) = state.split_at(len);
        if let Some(place) = own.iter().position(|number| !number.is_finite()) {
            return Err(Error::invalid(format!(
                "{}: state number {} is {}",
                self.bound.spec.name,
                len + place,
                own[place]
            )));
        }
        let (phase, elapsed) = (own[0], own[1]);
        let phases = &self.bound.start;
        let is_valid = phase == phases.len() as f64 && elapsed == 0.0
            || phases.get(phase as usize).is_some_and(|own| {
                phase >= 0.0
                    && phase.fract() == 0.0
                    && elapsed.fract() == 0.0
                    && (0.0..own.periods as f64).contains(&elapsed)
            });
        if !is_valid {
            return Err(Error::invalid(format!(
                "{}: its start has no state {phase} with {elapsed} periods",
                self.bound.spec.name
            )));
        }
        match self.body.exact_state_mut() {
            Some(inner) => inner.set_state(body)?,
            None => return Err(lacks(&self.bound.spec, "exact state")),
        }
        (self.phase, self.elapsed) = (own[0] as usize, own[1] as u64);
        for (memory, numbers) in self
            .memory
            .iter_mut()
            .zip(own[OWN_STATE..].chunks_exact(JOINT_STATE))
        {
            *memory = Memory {
                target: numbers[0],
                torque: numbers[1],
                begin: numbers[2],
                command: numbers[3],
            };
        }
        Ok(())
    }
}
