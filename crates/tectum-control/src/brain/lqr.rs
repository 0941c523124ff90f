//! Balancing by a linear-quadratic regulator, or by MPC of the same problem under bounds, with energy swing-up outside its range.

pub mod adaptive;
mod hypothesis;
mod lookahead;
pub mod mpc;
pub mod riccati;
pub mod swing_up;

use serde::Serialize;
use tectum::snapshot::{Array, Snapshot};
use tectum::{Error, Result, RunStats};

use self::mpc::{Bound, Limits, LinearMpc};
use self::riccati::{dot, linearise};
use self::swing_up::{SwingUp, SwingUpSettings};
use crate::body::rig::{M_PER_IN, RigParameters};
use crate::body::{Body, BodySpec, Upright};
use crate::brain::recipe::{BrainContext, BrainSettings, BuildStandIn, Recipe};
use crate::brain::{Brain, StandIn};
use crate::document::Section;

/// Angle from upright within which balancing starts and beyond which it stops, radians.
const CAPTURE_RAD: f64 = 0.4;
const RELEASE_RAD: f64 = 0.7;
/// Balancing starts when the regulator demands at most this many times the action's limit; with a plan, at its end.
const CAPTURE_ACTION: f64 = 1.5;

/// The regulator in a scenario: it has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LqrSpec;

/// The planner under bounds in a scenario: it has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MpcSpec;

impl BrainSettings for LqrSpec {
    fn standard() -> Option<Self> {
        Some(Self)
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Ok(Self)
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(Lqr::new(context.model()?)?)))
    }

    fn stand_in(&self) -> Option<BuildStandIn> {
        Some(|context| Ok(Box::new(Lqr::new(context.model()?)?)))
    }
}

impl BrainSettings for MpcSpec {
    fn standard() -> Option<Self> {
        Some(Self)
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Ok(Self)
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(Lqr::with_mpc(context.model()?)?)))
    }
}

/// Quadratic cost of the regulator: Σ q_i s_i² + r u². By Bryson's rule each weight is 1 divided by the square of the acceptable
/// deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct LqrWeights {
    /// One for each number of [`Body::state`].
    pub state: Vec<f64>,
    /// Of the action.
    pub action: f64,
}

/// The weights for the rig.
fn rig_weights() -> LqrWeights {
    LqrWeights { state: vec![625.0, 0.0, 100.0, 0.0, 0.0, 0.0], action: 0.25 }
}

/// The regulator u = −K (s − s_upright), or MPC instead of it, its observer, and the swing-up law.
///
/// K comes from the discrete Riccati equation of the model's linearisation, solved at construction. The observer is the
/// model itself: each tick sets the observed numbers, keeps the others (servo velocity, delayed command), and predicts the next
/// tick with the action given. [`Lqr::state`] is therefore the model's state and whether it balances.
///
/// # Numerics
/// f64 throughout; deterministic.
pub struct Lqr {
    model: Box<dyn Body>,
    upright: Upright,
    gain: Vec<f64>,
    plan: Option<LinearMpc>,
    /// The state minus the upright state.
    deviation: Vec<f64>,
    swing_up: Option<SwingUp>,
    is_balancing: bool,
}

/// The settings for a body: weights, and the swing-up law, if it needs one.
fn known(name: &str) -> Result<(LqrWeights, Option<SwingUp>)> {
    match name {
        "rig" => Ok((rig_weights(), Some(SwingUp::cart_velocity(&RigParameters::default(), SwingUpSettings::default())))),
        "pendulum" => Ok((LqrWeights { state: vec![100.0, 1.0], action: 1.0 }, Some(SwingUp::Torque { length_over_gravity_s2: 1.0 / 15.0 }))),
        "cart_pole" => Ok((LqrWeights { state: vec![1.0, 0.25, 100.0, 1.0, 0.0], action: 0.01 }, None)),
        _ => Err(Error::invalid(format!("lqr: no weights for body {name:?}; known: rig, pendulum, cart_pole"))),
    }
}

/// Bounds of the plan for a known body: the cart short of its stops, feasible actuator speeds, and the angle within which the episode continues.
fn limits(model: &dyn Body) -> Limits {
    let bound = |state, max_abs| Bound { state, max_abs };
    let (horizon, states) = match model.spec().name {
        "rig" => {
            let rig = RigParameters::default();
            (40, vec![bound(0, 0.95 * rig.travel_m()), bound(1, rig.servo_limit_in_per_s * M_PER_IN)])
        }
        "cart_pole" => (75, vec![bound(0, 0.95 * 2.4), bound(2, 0.95 * 12f64.to_radians())]),
        _ => (40, vec![bound(1, 8.0)]),
    };
    let channel = &model.spec().action[0];
    Limits { horizon, action: [channel.low, channel.high].map(f64::from), states }
}

impl Lqr {
    /// Makes the regulator of a known body; `model` is a separate instance, not the plant.
    ///
    /// # Errors
    /// A body without default weights (see [`Lqr::with_weights`]); a Riccati equation that does not converge.
    pub fn new(model: Box<dyn Body>) -> Result<Self> {
        let (weights, swing_up) = known(model.spec().name)?;
        Self::with_weights(model, &weights, swing_up)
    }

    /// Makes a planner of a known body: the same problem over a horizon, under the bounds of action, travel and speed (see [`mpc`]).
    ///
    /// # Errors
    /// As [`Lqr::new`].
    pub fn with_mpc(mut model: Box<dyn Body>) -> Result<Self> {
        let (weights, swing_up) = known(model.spec().name)?;
        let upright = model.upright();
        let plan = LinearMpc::new(&linearise(model.as_mut(), &upright)?, &weights, &limits(model.as_ref()))?;
        Ok(Self { plan: Some(plan), ..Self::with_weights(model, &weights, swing_up)? })
    }

    /// Makes the regulator of any body with one action.
    ///
    /// # Errors
    /// Weights of the wrong length; more than one action; a Riccati equation that does not converge.
    pub fn with_weights(mut model: Box<dyn Body>, weights: &LqrWeights, swing_up: Option<SwingUp>) -> Result<Self> {
        let upright = model.upright();
        let linear = linearise(model.as_mut(), &upright)?;
        let gain = linear.gain(&weights.state, weights.action)?;
        model.set_state(&upright.state)?;
        Ok(Self { model, deviation: vec![0.0; gain.len()], upright, gain, plan: None, swing_up, is_balancing: false })
    }

    /// The gain K, one for each number of [`Body::state`].
    pub fn gain(&self) -> &[f64] {
        &self.gain
    }

    /// Whether it plans under bounds.
    pub fn uses_mpc(&self) -> bool {
        self.plan.is_some()
    }

    /// Answers an observation. One that is not finite gets the safe action, and the observer continues by prediction.
    pub fn tick(&mut self, observation: &[f32], action: &mut [f32]) {
        if observation.iter().all(|number| number.is_finite()) {
            self.model.assimilate(observation);
            action[0] = self.compute_action();
        } else {
            action.copy_from_slice(&self.model.spec().safe_action);
        }
        self.model.step(action);
    }

    /// Lets the observer follow an action of another controller.
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

    /// Restores what [`Lqr::state`] returned.
    ///
    /// # Errors
    /// As [`Body::set_state`].
    pub fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let (mode, model) = state.split_last().ok_or_else(|| Error::invalid("lqr: the state is empty"))?;
        self.model.set_state(model)?;
        self.is_balancing = *mode != 0.0;
        Ok(())
    }

    fn compute_action(&mut self) -> f32 {
        let state = self.model.state();
        for (deviation, (now, upright)) in self.deviation.iter_mut().zip(state.iter().zip(&self.upright.state)) {
            *deviation = now - upright;
        }
        let angle = self.model.upright_angle_rad().abs();
        let is_near = self.swing_up.is_none() || angle < if self.is_balancing { RELEASE_RAD } else { CAPTURE_RAD };
        let (balancing, asked) = if is_near { self.balance() } else { (0.0, f64::INFINITY) };
        let channel = &self.model.spec().action[0];
        let (low, high) = (f64::from(channel.low), f64::from(channel.high));
        self.is_balancing = is_near && (self.is_balancing || self.swing_up.is_none() || asked.abs() <= CAPTURE_ACTION * high);
        let wanted = match &self.swing_up {
            Some(swing_up) if !self.is_balancing => high * swing_up.action_fraction(&state),
            _ => balancing,
        };
        wanted.clamp(low, high) as f32
    }

    /// The balancing action, and the regulator's demand: now, or at the end of the plan.
    fn balance(&mut self) -> (f64, f64) {
        let regulated = |deviation: &[f64]| -dot(&self.gain, deviation);
        match &mut self.plan {
            None => (regulated(&self.deviation), regulated(&self.deviation)),
            Some(plan) => {
                plan.plan(&self.deviation);
                (plan.actions()[0], regulated(&plan.states()[plan.actions().len() * self.gain.len()..]))
            }
        }
    }
}

impl StandIn for Lqr {
    fn follow(&mut self, observation: &[f32], action: &[f32]) {
        Lqr::follow(self, observation, action);
    }
}

impl Brain for Lqr {
    fn name(&self) -> &'static str {
        if self.uses_mpc() { "mpc" } else { "lqr" }
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        Lqr::tick(self, observation, action);
        Ok(RunStats::default())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("state", Array::F64(self.state()));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let len = self.state().len();
        self.set_state(snapshot.f64("state", len)?)
    }
}
