//! Balancing by a linear-quadratic regulator, or by MPC of the same problem under bounds, with
//! energy swing-up outside its range.

pub mod adaptive;
mod hypothesis;
mod lookahead;
pub mod mpc;
pub mod regulation;

use serde::Serialize;
use tectum::snapshot::{Array, Snapshot};
use tectum::{Error, Result, RunStats};

use self::mpc::{Limits, LinearMpc};
use self::regulation::{dot, linearise};
use crate::body::control::{Linear, LqrWeights, Regulator};
use crate::body::swing_up::SwingUp;
use crate::body::{
    ActionChannel, Body, BodySpec, ControlModel, Equilibrium, control_model, wrapped_rad,
};
use crate::brain::recipe::{BrainContext, BrainSettings, BuildStandIn, Recipe};
use crate::brain::{Brain, StandIn};
use crate::document::Section;

/// Angle from upright within which balancing starts and beyond which it stops, radians.
const CAPTURE_RAD: f64 = 0.4;
const RELEASE_RAD: f64 = 0.7;
/// Balancing starts when the regulator demands at most this many times the action's limit; with a
/// plan, at its end.
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

    fn reads_arrays(&self) -> bool {
        false
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(regulated(context)?)))
    }

    fn stand_in(&self) -> Option<BuildStandIn> {
        Some(|context| Ok(Box::new(regulated(context)?)))
    }
}

impl BrainSettings for MpcSpec {
    fn standard() -> Option<Self> {
        Some(Self)
    }

    fn read(_: &mut Section<'_, '_>, _: &BodySpec) -> Result<Self> {
        Ok(Self)
    }

    fn reads_arrays(&self) -> bool {
        false
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        Ok(Recipe::Host(Box::new(Lqr::planned(
            context.model()?,
            context.settings.regulator()?,
        )?)))
    }
}

fn regulated(context: &BrainContext<'_>) -> Result<Lqr> {
    let Regulator {
        weights, swing_up, ..
    } = context.settings.regulator()?;
    Lqr::with_weights(context.model()?, &weights, swing_up)
}

/// The regulator u = u_eq − K (s − s_eq) around the equilibrium, or MPC instead of it, its
/// observer, and the swing-up law.
///
/// K comes from the discrete Riccati equation of the model's linearisation, solved at construction.
/// The observer is the model itself: each tick sets the observed numbers, corrects or keeps the
/// others ([`ControlModel::assimilate`]), and predicts the next tick with the action given.
/// [`Lqr::state`] is therefore the model's state and whether it balances.
///
/// # Numerics
/// f64 throughout; deterministic.
pub struct Lqr {
    model: Box<dyn ControlModel>,
    equilibrium: Equilibrium,
    /// One row for each number of an action.
    gain: Vec<f64>,
    plan: Option<LinearMpc>,
    /// The state minus that of the equilibrium; of an angle around the circle.
    deviation: Vec<f64>,
    /// Whether each number of the state is an angle.
    wraps: Vec<bool>,
    /// Buffer of the model's state.
    state: Vec<f64>,
    swing_up: Option<SwingUp>,
    is_balancing: bool,
    has_observed: bool,
    /// What is wrong with the equilibrium.
    notes: Vec<String>,
}

impl Lqr {
    /// Makes the regulator of a known body; `model` is a separate instance, not the plant.
    ///
    /// # Errors
    /// A body without default weights (see [`Lqr::with_weights`]); a Riccati equation that does not
    /// converge.
    pub fn new(model: Box<dyn Body>) -> Result<Self> {
        let Regulator {
            weights, swing_up, ..
        } = Regulator::of(&model.spec().name)?;
        Self::with_weights(model, &weights, swing_up)
    }

    /// Makes a planner of a known body: the same problem over a horizon, under the bounds of
    /// action, travel and speed (see [`mpc`]).
    ///
    /// # Errors
    /// As [`Lqr::new`].
    pub fn with_mpc(model: Box<dyn Body>) -> Result<Self> {
        let regulator = Regulator::of(&model.spec().name)?;
        Self::planned(model, regulator)
    }

    fn planned(
        model: Box<dyn Body>,
        Regulator {
            weights,
            swing_up,
            horizon,
            bounds,
        }: Regulator,
    ) -> Result<Self> {
        if let (name, [_, _, ..]) = (&model.spec().name, &model.spec().action[..]) {
            return Err(Error::invalid(format!(
                "mpc: body {name} has {} actions, the planner drives 1; lqr drives any number",
                model.spec().action.len()
            )));
        }
        let (regulator, linear) = Self::linearised(model, &weights, swing_up)?;
        let channel = &regulator.model.spec().action[0];
        let balanced = f64::from(regulator.equilibrium.action[0]);
        let action = [channel.low, channel.high].map(|limit| f64::from(limit) - balanced);
        if action[0] >= 0.0 || action[1] <= 0.0 {
            let ActionChannel {
                name,
                low,
                high,
                unit,
                ..
            } = channel;
            return Err(Error::invalid(format!(
                "mpc: {name} is {balanced} {unit} at the equilibrium; it needs room within {low} to {high}"
            )));
        }
        let limits = Limits {
            horizon,
            action,
            states: bounds,
        };
        Ok(Self {
            plan: Some(LinearMpc::new(
                &linear,
                &weights,
                &limits,
                &regulator.model.state_names(),
            )?),
            ..regulator
        })
    }

    /// Makes the regulator of any body.
    ///
    /// # Errors
    /// `Unsupported` for a body that cannot be a controller's model; weights of the wrong length; a
    /// swing-up law for more than one action; a Riccati equation that does not converge.
    pub fn with_weights(
        model: Box<dyn Body>,
        weights: &LqrWeights,
        swing_up: Option<SwingUp>,
    ) -> Result<Self> {
        Self::linearised(model, weights, swing_up).map(|(regulator, _)| regulator)
    }

    fn linearised(
        model: Box<dyn Body>,
        weights: &LqrWeights,
        swing_up: Option<SwingUp>,
    ) -> Result<(Self, Linear)> {
        let mut model = control_model(model)?;
        let equilibrium = model.equilibrium();
        if swing_up.is_some() && equilibrium.action.len() != 1 {
            let (name, actions) = (&model.spec().name, equilibrium.action.len());
            return Err(Error::invalid(format!(
                "lqr: body {name} has {actions} actions, a swing-up law drives 1"
            )));
        }
        let linear = match model.linearized()? {
            Some(linear) => linear,
            None => linearise(model.as_mut(), &equilibrium)?,
        };
        let gain = linear.regulation(weights, &model.state_names())?.gain;
        model.set_state(&equilibrium.state)?;
        let n = equilibrium.state.len();
        let mut wraps = model.wrapped_states();
        wraps.resize(n, false);
        let (state, deviation) = (Vec::with_capacity(n), vec![0.0; n]);
        let notes = model.drift().into_iter().collect();
        Ok((
            Self {
                model,
                state,
                deviation,
                wraps,
                equilibrium,
                gain,
                plan: None,
                swing_up,
                is_balancing: false,
                has_observed: false,
                notes,
            },
            linear,
        ))
    }

    /// The gain K: for each number of an action, one for each number of
    /// [`ExactState::state`](crate::body::ExactState::state).
    pub fn gain(&self) -> &[f64] {
        &self.gain
    }

    /// Whether it plans under bounds.
    pub fn uses_mpc(&self) -> bool {
        self.plan.is_some()
    }

    /// Answers an observation. One that is not finite gets the safe action, and the observer
    /// continues by prediction.
    pub fn tick(&mut self, observation: &[f32], action: &mut [f32]) {
        if self.assimilate(observation) {
            self.compute_action(action);
        } else {
            action.copy_from_slice(&self.model.spec().safe_action);
        }
        self.model.step(action);
    }

    /// Lets the observer follow an action of another controller.
    pub fn follow(&mut self, observation: &[f32], action: &[f32]) {
        self.assimilate(observation);
        self.model.step(action);
    }

    /// Corrects the observer by an observation if it is finite; returns whether it is.
    fn assimilate(&mut self, observation: &[f32]) -> bool {
        let is_finite = observation.iter().all(|number| number.is_finite());
        match (is_finite, self.has_observed) {
            (false, _) => {}
            (true, false) => self.model.begin(observation),
            (true, true) => self.model.assimilate(observation),
        }
        self.has_observed |= is_finite;
        is_finite
    }

    /// Observer and mode, for snapshots: 1 if it balances, −1 if it has not observed anything, or
    /// 0.
    pub fn state(&self) -> Vec<f64> {
        let mut state = self.model.state();
        state.push(match (self.has_observed, self.is_balancing) {
            (false, _) => -1.0,
            (true, false) => 0.0,
            (true, true) => 1.0,
        });
        state
    }

    /// Restores what [`Lqr::state`] returned.
    ///
    /// # Errors
    /// As [`ExactState::set_state`](crate::body::ExactState::set_state).
    pub fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let (mode, model) = state
            .split_last()
            .ok_or_else(|| Error::invalid("lqr: the state is empty"))?;
        self.model.set_state(model)?;
        (self.has_observed, self.is_balancing) = (*mode >= 0.0, *mode > 0.0);
        Ok(())
    }

    fn compute_action(&mut self, action: &mut [f32]) {
        self.state.clear();
        self.model.append_state(&mut self.state);
        for (place, deviation) in self.deviation.iter_mut().enumerate() {
            let difference = self.state[place] - self.equilibrium.state[place];
            *deviation = if self.wraps[place] {
                wrapped_rad(difference)
            } else {
                difference
            };
        }
        if self.swing_up.is_none() && self.plan.is_none() {
            self.is_balancing = true;
            for (channel, number) in action.iter_mut().enumerate() {
                let ActionChannel { low, high, .. } = self.model.spec().action[channel];
                let regulated = -dot(
                    &self.gain[channel * self.deviation.len()..][..self.deviation.len()],
                    &self.deviation,
                );
                *number = (f64::from(self.equilibrium.action[channel]) + regulated)
                    .clamp(f64::from(low), f64::from(high)) as f32;
            }
            return;
        }
        let reach = if self.is_balancing {
            RELEASE_RAD
        } else {
            CAPTURE_RAD
        };
        let is_near = self
            .swing_up
            .as_ref()
            .is_none_or(|swing_up| swing_up.angle_rad(&self.state).abs() < reach);
        let (balancing, asked) = if is_near {
            self.balance()
        } else {
            (0.0, f64::INFINITY)
        };
        let channel = &self.model.spec().action[0];
        let (low, high) = (f64::from(channel.low), f64::from(channel.high));
        self.is_balancing = is_near
            && (self.is_balancing
                || self.swing_up.is_none()
                || asked.abs() <= CAPTURE_ACTION * high);
        let wanted = match &self.swing_up {
            Some(swing_up) if !self.is_balancing => high * swing_up.action_fraction(&self.state),
            _ => f64::from(self.equilibrium.action[0]) + balancing,
        };
        action[0] = wanted.clamp(low, high) as f32;
    }

    /// The balancing action, and the regulator's demand: now, or at the end of the plan; both as
    /// deviations from the equilibrium's.
    fn balance(&mut self) -> (f64, f64) {
        let regulated = |deviation: &[f64]| -dot(&self.gain, deviation);
        match &mut self.plan {
            None => (regulated(&self.deviation), regulated(&self.deviation)),
            Some(plan) => {
                plan.plan(&self.deviation);
                (
                    plan.actions()[0],
                    regulated(&plan.states()[plan.actions().len() * self.gain.len()..]),
                )
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

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        Lqr::tick(self, observation, action);
        Ok(RunStats::default())
    }

    /// The observer begins again with the next observation, and swings up first.
    fn episode_ended(&mut self) {
        (self.has_observed, self.is_balancing) = (false, false);
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
