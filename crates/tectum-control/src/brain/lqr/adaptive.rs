//! The regulator of a rig with unknown pole length and lag.
//!
//! Many models of the rig run in parallel, one for each length and lag, each with its own filter
//! that follows the readings and rejects outliers. The one with the best recent forecasts is
//! selected: its motion, extrapolated over the lag with the commands given, is regulated by its own
//! gain. Before that the pole is swung up by that law, of a few, which reaches a catch soonest
//! according to the model.
//!
//! # Cost
//! A tick steps every model once, ten substeps of RK4 each; during swing-up, the selected one some
//! hundreds to thousands of times more. All of it is f64 on the host, without allocation.
//!
//! # Source
//! Multiple-model estimation: Magill, "Optimal adaptive estimation of sampled stochastic
//! processes", IEEE TAC 10 (1965); here with fixed gains and the best model instead of the mean.

use serde::Serialize;
use tectum::{Error, Result, RunStats};

use super::RELEASE_RAD;
use super::hypothesis::{Hypothesis, STATE_LEN};
use super::lookahead::{best_swing_up_command, can_stabilize};
use crate::body::rig::{self, M_PER_IN};
use crate::body::{BodySpec, wrapped_rad};
use crate::brain::recipe::{BrainContext, BrainSettings, BuildStandIn, Recipe};
use crate::brain::{Brain, StandIn};
use crate::document::Section;
use tectum::snapshot::{Array, Snapshot};

/// The adaptive regulator in a scenario: it has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AdaptiveSpec;

impl BrainSettings for AdaptiveSpec {
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
        Ok(Recipe::Host(Box::new(Adaptive::new(context.body)?)))
    }

    fn stand_in(&self) -> Option<BuildStandIn> {
        Some(|context| Ok(Box::new(Adaptive::new(context.body)?)))
    }
}

/// Candidate lengths, relative to the identified one: from the minimum, in equal steps.
const LENGTH_COUNT: usize = 29;
const MIN_LENGTH: f64 = 0.65;
const LENGTH_STEP: f64 = 0.025;
/// The maximum candidate lag, periods.
const MAX_DELAY_SAMPLES: usize = 2;
/// Commands that are stored: those not yet in effect, and the one before them.
const COMMANDS: usize = MAX_DELAY_SAMPLES + 2;
/// Another model is selected when its misfit is below this share of the selected one's.
const SWITCH_RATIO: f64 = 0.8;
/// Channels of the rig's observation.
const POSITION: usize = 0;
const ANGLE: usize = 3;

/// The adaptive regulator.
///
/// # Numerics
/// f64 throughout; deterministic.
pub struct Adaptive {
    models: Vec<Hypothesis>,
    believed: usize,
    /// The commands given, the latest first.
    commands: [f64; COMMANDS],
    is_initialized: bool,
    is_balancing: bool,
}

impl Adaptive {
    /// Makes the regulator for the rig.
    ///
    /// # Errors
    /// `Invalid` for another body.
    pub fn new(body: &BodySpec) -> Result<Self> {
        let known = rig::DESCRIPTOR.name;
        if body.name != known {
            return Err(Error::invalid(format!(
                "adaptive: body {:?} has no models of other lengths and lags; known: {known}",
                body.name
            )));
        }
        let lengths = (0..LENGTH_COUNT).map(|index| MIN_LENGTH + LENGTH_STEP * index as f64);
        let models: Vec<Hypothesis> = lengths
            .map(|length| Hypothesis::for_length(length, MAX_DELAY_SAMPLES))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        // Initially the rig is assumed to be the identified one.
        let believed = models
            .iter()
            .position(|model| {
                model.delay_samples == 0 && (model.length_ratio() - 1.0).abs() < 0.5 * LENGTH_STEP
            })
            .unwrap_or(0);
        Ok(Self {
            models,
            believed,
            commands: [0.0; COMMANDS],
            is_initialized: false,
            is_balancing: false,
        })
    }

    /// The selected length of the pole, relative to the identified rig's, and the selected lag in
    /// periods.
    pub fn selected(&self) -> (f64, usize) {
        let model = &self.models[self.believed];
        (model.length_ratio(), model.delay_samples)
    }

    /// Answers an observation. One that is not finite gets 0 V, and the models continue by their
    /// forecasts.
    fn answer(&mut self, observation: &[f32]) -> f32 {
        let command_v = if self.update(observation) {
            self.command()
        } else {
            0.0
        };
        self.push_command(command_v);
        command_v
    }

    /// Processes a reading, and returns whether it is valid.
    fn update(&mut self, observation: &[f32]) -> bool {
        let is_seen = observation.iter().all(|number| number.is_finite());
        let reading = is_seen.then(|| {
            [
                f64::from(observation[POSITION]) * M_PER_IN,
                f64::from(observation[ANGLE]).to_radians(),
            ]
        });
        match (self.is_initialized, reading) {
            (true, reading) => self
                .models
                .iter_mut()
                .for_each(|model| model.follow(reading, &self.commands)),
            (false, Some([position_m, angle_rad])) => {
                self.models
                    .iter_mut()
                    .for_each(|model| model.begin(position_m, angle_rad));
                self.is_initialized = true;
            }
            (false, None) => {}
        }
        self.select_hypothesis();
        is_seen
    }

    fn push_command(&mut self, command_v: f32) {
        self.commands.rotate_right(1);
        self.commands[0] = f64::from(command_v);
    }

    fn select_hypothesis(&mut self) {
        let of = |model: &(usize, &Hypothesis)| model.1.misfit;
        let best = self
            .models
            .iter()
            .enumerate()
            .min_by(|a, b| of(a).total_cmp(&of(b)));
        if let Some((best, model)) = best
            && model.misfit < SWITCH_RATIO * self.models[self.believed].misfit
        {
            self.believed = best;
        }
    }

    fn command(&mut self) -> f32 {
        let model = &self.models[self.believed];
        let (motion, last_command_v) = (model.now(&self.commands), self.commands[0]);
        let angle_rad = wrapped_rad(motion[2]).abs();
        self.is_balancing = if self.is_balancing {
            angle_rad < RELEASE_RAD
        } else {
            can_stabilize(model, motion, last_command_v)
        };
        let wanted_v = if self.is_balancing {
            model.state_feedback(motion, last_command_v)
        } else {
            best_swing_up_command(model, motion, last_command_v)
        };
        let limit_v = f64::from(model.rig.command_limit_v);
        wanted_v.clamp(-limit_v, limit_v) as f32
    }
}

impl StandIn for Adaptive {
    fn follow(&mut self, observation: &[f32], action: &[f32]) {
        self.update(observation);
        self.is_balancing = false;
        self.push_command(action[0]);
    }
}

impl Brain for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        action[0] = self.answer(observation);
        Ok(RunStats::default())
    }

    /// The rig stands elsewhere; what is known of it stays.
    fn episode_ended(&mut self) {
        (self.is_initialized, self.is_balancing) = (false, false);
        self.commands.fill(0.0);
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert(
            "models",
            Array::F64(self.models.iter().flat_map(Hypothesis::state).collect()),
        );
        snapshot.insert("commands", Array::F64(self.commands.to_vec()));
        let flags = [
            self.believed as u64,
            u64::from(self.is_initialized),
            u64::from(self.is_balancing),
        ];
        snapshot.insert("flags", Array::U64(flags.to_vec()));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let states = snapshot.f64("models", self.models.len() * STATE_LEN)?;
        let commands = snapshot.f64("commands", COMMANDS)?;
        let flags = snapshot.u64("flags", 3)?;
        let believed = usize::try_from(flags[0])
            .ok()
            .filter(|believed| *believed < self.models.len());
        let believed = believed.ok_or_else(|| {
            Error::data(format!(
                "snapshot: flags: model {} of {} is believed",
                flags[0],
                self.models.len()
            ))
        })?;
        for (model, state) in self.models.iter_mut().zip(states.as_chunks().0) {
            model.set_state(state);
        }
        self.commands.copy_from_slice(commands);
        (self.believed, self.is_initialized, self.is_balancing) =
            (believed, flags[1] != 0, flags[2] != 0);
        Ok(())
    }
}
