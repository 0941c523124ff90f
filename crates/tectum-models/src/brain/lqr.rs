//! Balancing by a linear-quadratic regulator, with energy swing-up outside its reach.

pub mod adaptive;
mod hypothesis;
mod lookahead;
pub mod riccati;
pub mod swing_up;

use tectum::{Error, Result};

use self::riccati::linearise;
use self::swing_up::{Pumping, SwingUp};
use crate::body::rig::RigParameters;
use crate::body::{Body, Upright};

/// How far from upright balancing starts and gives up, radians.
const CAPTURE_RAD: f64 = 0.4;
const RELEASE_RAD: f64 = 0.7;
/// Balancing starts when the regulator asks for at most this many times the action's limit.
const CAPTURE_ACTION: f64 = 1.5;

/// Quadratic cost of the regulator: Σ q_i s_i² + r u². By Bryson's rule each weight is 1 over the square of a deviation that is as bad as
/// any other.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// One for each number of [`Body::state`].
    pub state: Vec<f64>,
    /// Of the action.
    pub action: f64,
}

/// For the rig.
fn rig_weights() -> Weights {
    Weights { state: vec![625.0, 0.0, 100.0, 0.0, 0.0, 0.0], action: 0.25 }
}

/// The regulator u = −K (s − s_upright), its observer, and the swing-up law.
///
/// K comes from the discrete Riccati equation of the model's own linearisation, made when the regulator is. The observer is the
/// model itself: each tick takes over what is observed, keeps what is not (servo velocity, delayed command), and predicts the next
/// tick with the action given. [`Lqr::state`] is therefore the model's state and whether it balances.
///
/// # Numerics
/// f64 throughout; deterministic.
pub struct Lqr {
    model: Box<dyn Body>,
    upright: Upright,
    gain: Vec<f64>,
    swing_up: Option<SwingUp>,
    is_balancing: bool,
}

impl Lqr {
    /// Makes the regulator of a known body; `model` is an instance of its own, not the plant.
    ///
    /// # Errors
    /// A body without weights of its own here (see [`Lqr::with_weights`]); a Riccati equation that does not converge.
    pub fn new(model: Box<dyn Body>) -> Result<Self> {
        let (state, action, swing_up) = match model.spec().name {
            "rig" => {
                let swing_up = SwingUp::cart_velocity(&RigParameters::default(), Pumping::default());
                let Weights { state, action } = rig_weights();
                (state, action, Some(swing_up))
            }
            "pendulum" => (vec![100.0, 1.0], 1.0, Some(SwingUp::Torque { length_over_gravity_s2: 1.0 / 15.0 })),
            "cart_pole" => (vec![1.0, 0.25, 100.0, 1.0, 0.0], 0.01, None),
            name => return Err(Error::invalid(format!("lqr: no weights for body {name:?}; known: rig, pendulum, cart_pole"))),
        };
        Self::with_weights(model, &Weights { state, action }, swing_up)
    }

    /// Makes the regulator of any body with one action.
    ///
    /// # Errors
    /// Weights of the wrong length; more than one action; a Riccati equation that does not converge.
    pub fn with_weights(mut model: Box<dyn Body>, weights: &Weights, swing_up: Option<SwingUp>) -> Result<Self> {
        let upright = model.upright();
        let linear = linearise(model.as_mut(), &upright)?;
        let gain = linear.gain(&weights.state, weights.action)?;
        model.set_state(&upright.state)?;
        Ok(Self { model, upright, gain, swing_up, is_balancing: false })
    }

    /// The gain K, one for each number of [`Body::state`].
    pub fn gain(&self) -> &[f64] {
        &self.gain
    }

    /// Answers an observation. One that is not finite gets the safe action, and the observer goes on by prediction.
    pub fn tick(&mut self, observation: &[f32], action: &mut [f32]) {
        if observation.iter().all(|number| number.is_finite()) {
            self.model.assimilate(observation);
            action[0] = self.answer();
        } else {
            action.copy_from_slice(&self.model.spec().safe_action);
        }
        self.model.step(action);
    }

    /// Lets the observer follow an action that another gave.
    pub fn follow(&mut self, observation: &[f32], action: &[f32]) {
        if observation.iter().all(|number| number.is_finite()) {
            self.model.assimilate(observation);
        }
        self.model.step(action);
    }

    /// Observer and mode, for snapshots.
    pub fn state(&self) -> Vec<f64> {
        let mut state = self.model.state();
        state.push(f64::from(u8::from(self.is_balancing)));
        state
    }

    /// Restores what [`Lqr::state`] gave.
    ///
    /// # Errors
    /// As [`Body::set_state`].
    pub fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let (mode, model) = state.split_last().ok_or_else(|| Error::invalid("lqr: the state is empty"))?;
        self.model.set_state(model)?;
        self.is_balancing = *mode != 0.0;
        Ok(())
    }

    fn answer(&mut self) -> f32 {
        let state = self.model.state();
        let deviation = state.iter().zip(&self.upright.state).map(|(now, upright)| now - upright);
        let regulated = -deviation.zip(&self.gain).map(|(deviation, gain)| deviation * gain).sum::<f64>();
        let channel = &self.model.spec().action[0];
        let limit = f64::from(channel.high);
        let Some(swing_up) = &self.swing_up else { return regulated.clamp(f64::from(channel.low), limit) as f32 };
        let angle = self.model.upright_angle_rad().abs();
        let is_captured = angle < CAPTURE_RAD && regulated.abs() <= CAPTURE_ACTION * limit;
        self.is_balancing = if self.is_balancing { angle < RELEASE_RAD } else { is_captured };
        let wanted = if self.is_balancing { regulated } else { limit * swing_up.share(&state) };
        wanted.clamp(f64::from(channel.low), limit) as f32
    }
}
