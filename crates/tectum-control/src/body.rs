//! Plants: what a brain observes and controls.
//!
//! A body is deterministic: random numbers are drawn in [`Body::reset`] and [`Body::scatter`] from the seed given there and
//! nowhere else, so [`Body::state`] contains everything that the next step depends on, including the delay line.

pub mod acrobot;
pub mod batch;
pub mod cart_pole;
pub mod pendulum;
pub mod rig;
pub mod seeker;
pub(crate) mod uniform;

use tectum::{Error, Result};

use acrobot::Acrobot;
use cart_pole::CartPole;
use pendulum::Pendulum;
use rig::{Rig, RigParameters};
use seeker::Seeker;

/// How numbers of an observation channel behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChannelKind {
    /// An ordinary quantity.
    Linear,
    /// A quantity that wraps after a full turn; 0 is upright.
    Angle {
        /// Radians in one unit of the channel: 1 for radians, π/180 for degrees.
        rad_per_unit: f64,
    },
}

/// One number of an observation.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationChannel {
    /// Name, as in recordings.
    pub name: &'static str,
    /// Unit, as printed.
    pub unit: &'static str,
    /// Whether the number wraps.
    pub kind: ChannelKind,
    /// Lowest value expected; for plots and checks, never used to clip.
    pub low: f32,
    /// Highest value expected.
    pub high: f32,
    /// Typical magnitude: learned models divide a linear channel by it, cost tables use it as the unit.
    pub scale: f32,
}

/// One number of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionChannel {
    /// Name, as in recordings.
    pub name: &'static str,
    /// Unit, as printed.
    pub unit: &'static str,
    /// Lowest value; lower ones are clipped to it.
    pub low: f32,
    /// Highest value; higher ones are clipped to it.
    pub high: f32,
    /// Only `low` and `high` are possible: the body applies `high` for values ≥ 0 and `low` for the others.
    pub discrete: bool,
}

impl ActionChannel {
    /// What the body applies for `value`; `None` if it is not a finite number.
    pub fn applied(&self, value: f32) -> Option<f32> {
        match (value.is_finite(), self.discrete) {
            (false, _) => None,
            (true, true) => Some(if value >= 0.0 { self.high } else { self.low }),
            (true, false) => Some(value.clamp(self.low, self.high)),
        }
    }
}

/// The constants of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct BodySpec {
    /// Name, as in scenarios.
    pub name: &'static str,
    /// Time between two actions, in seconds.
    pub dt_s: f64,
    /// The numbers of an observation, in order.
    pub observation: Vec<ObservationChannel>,
    /// The numbers of an action, in order.
    pub action: Vec<ActionChannel>,
    /// Applied when the brain gives no action, one number for each action channel.
    pub safe_action: Vec<f32>,
}

/// What one step returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The body's own score of the step; each body documents how it is computed.
    pub reward: f64,
    /// The episode is over: the body is outside the region where its task is defined.
    pub terminated: bool,
    /// The action was not finite, so the safe action was applied instead.
    pub refused: bool,
}

/// Where [`Body::reset`] starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Hanging at rest, moved by a small seeded perturbation.
    Hanging,
    /// The body's own random reset.
    Random,
}

impl Start {
    /// Reads a start from its name in scenarios.
    ///
    /// # Errors
    /// Unknown names, listing the known ones.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "hanging" => Ok(Self::Hanging),
            "random" => Ok(Self::Random),
            _ => Err(Error::invalid(format!("start {name:?} is unknown; known: hanging, random"))),
        }
    }
}

/// The balanced state, with the steps that a numerical linearisation around it should take.
#[derive(Debug, Clone, PartialEq)]
pub struct Upright {
    /// A [`Body::state`] in which the body stays upright under the safe action (or nearly so, where the action is discrete).
    pub state: Vec<f64>,
    /// Perturbation of each state number; 0 marks a number that is not a dynamic state.
    pub state_step: Vec<f64>,
    /// Perturbation of the action: large where small actions fall into a dead band.
    pub action_step: f32,
}

/// A plant that runs in steps of a fixed time.
pub trait Body: Send {
    /// Describes channels, units and time.
    fn spec(&self) -> &BodySpec;

    /// Puts the body at its start; the same seed gives the same start on every machine.
    fn reset(&mut self, seed: u64);

    /// Puts the body in a state drawn from its whole range, to excite it for learning.
    ///
    /// Hidden memory (filters, delay lines) is only consistent with the observation after one further step.
    fn randomize_state(&mut self, seed: u64);

    /// Writes the observation.
    ///
    /// # Panics
    /// If `observation` does not have one number for each channel.
    fn observe(&self, observation: &mut [f32]);

    /// Applies an action for `dt_s` seconds. Values are clipped to the channel's range; if one is not finite, the safe action is
    /// applied and the step reports it: a plant cannot wait until a brain recovers.
    ///
    /// # Panics
    /// If `action` does not have one number for each channel.
    fn step(&mut self, action: &[f32]) -> Step;

    /// The pole's angle from upright in radians, in [−π, π); without a pole, the angle from the direction that the body should face.
    fn upright_angle_rad(&self) -> f64;

    /// Everything that the next step depends on; each body documents the order.
    fn state(&self) -> Vec<f64>;

    /// Restores what [`Body::state`] returned, exactly.
    ///
    /// # Errors
    /// A wrong length or a number that is not finite.
    fn set_state(&mut self, state: &[f64]) -> Result<()>;

    /// Replaces the observed part of the state and keeps the rest: the correction step of an observer.
    fn assimilate(&mut self, observation: &[f32]);

    /// The balanced state to linearise around.
    fn upright(&self) -> Upright;
}

/// Names that [`body`] knows.
pub const BODY_NAMES: [&str; 5] = ["rig", "pendulum", "cart_pole", "acrobot", "seeker"];

/// Makes a body by name, at its start for seed 0.
///
/// `start` is where resets begin; without it the rig hangs, the Gymnasium plants start at random, as in Gymnasium, and so does
/// the seeker.
///
/// # Errors
/// An unknown name; a start that the body does not have.
///
/// # Example
/// ```
/// let mut body = tectum_control::body::body("pendulum", Some(tectum_control::body::Start::Hanging)).unwrap();
/// body.set_state(&[0.0, 0.0]).unwrap();
/// assert_eq!(body.step(&[0.0]).reward, 0.0);
/// assert_eq!(body.upright_angle_rad(), 0.0);
/// ```
pub fn body(name: &str, start: Option<Start>) -> Result<Box<dyn Body>> {
    match name {
        "rig" => Ok(Box::new(Rig::new(RigParameters::default(), start.unwrap_or(Start::Hanging))?)),
        "pendulum" => Ok(Box::new(Pendulum::new(start.unwrap_or(Start::Random)))),
        "cart_pole" => Ok(Box::new(CartPole::new(start.unwrap_or(Start::Random))?)),
        "acrobot" => Ok(Box::new(Acrobot::new(start.unwrap_or(Start::Random))?)),
        "seeker" => Ok(Box::new(Seeker::new(start.unwrap_or(Start::Random))?)),
        _ => Err(Error::invalid(format!("body {name:?} is unknown; known: {}", BODY_NAMES.join(", ")))),
    }
}

/// An angle in [−π, π).
pub(crate) fn wrapped_rad(angle_rad: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    (angle_rad + PI).rem_euclid(TAU) - PI
}

/// The single action channel's applied value, and whether the given one was rejected.
fn applied_action(spec: &BodySpec, action: &[f32]) -> (f64, bool) {
    assert_eq!(action.len(), 1, "{}: an action has 1 number", spec.name);
    let applied = spec.action[0].applied(action[0]);
    (f64::from(applied.unwrap_or(spec.safe_action[0])), applied.is_none())
}

/// Rejects a snapshot of the wrong length or with numbers that are not finite.
fn check_state<const N: usize>(name: &str, state: &[f64]) -> Result<[f64; N]> {
    let numbers: [f64; N] = state.try_into().map_err(|_| Error::invalid(format!("{name}: a state has {N} numbers, given {}", state.len())))?;
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => Err(Error::invalid(format!("{name}: state number {place} is {}", numbers[place]))),
        None => Ok(numbers),
    }
}
