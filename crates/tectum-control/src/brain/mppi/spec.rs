//! The `[brain]` part of a scenario whose brain is MPPI.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tectum::{Error, Result};

use super::recipe::{MppiRecipe, Training};
use super::{EquationModel, Model, MppiConfig, MppiParameters, OnlineLearning};
use crate::body::{BodySettings, BodySpec, equations};
#[cfg(any(test, feature = "bench"))]
use crate::brain::recipe::Conformance;
use crate::brain::recipe::{BrainContext, BrainSettings, Recipe};
use crate::clock::ClockKind;
use crate::document::{Key, Section};
use crate::twin::{MIN_TRANSITIONS, OnlineSettings, RecordedTwin, Twin, TwinLayout, TwinRecipe};

/// What MPPI rolls out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MppiModel {
    /// A learned twin.
    Twin,
    /// The body's own equations.
    Plant,
}

/// Settings of MPPI; omitted settings have the body's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MppiSpec {
    /// What is rolled out; for the equations of a body from a file, or else a twin, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<MppiModel>,
    /// Rollouts per tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
    /// Steps of a rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<usize>,
    /// Ticks for which a step of the plan is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<usize>,
    /// Sampling iterations per tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
    /// Maximum standard deviation of the noise, in units of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Minimum standard deviation of the noise, in units of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma_min: Option<f64>,
    /// Temperature of the softmax over rollouts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Weight of the square of an action's change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_weight: Option<f64>,
    /// Weight of the square of the pole's energy error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_weight: Option<f64>,
    /// Weight of a rollout's last step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_multiplier: Option<f64>,
    /// Weights of the running cost by name of the observation or action channel.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cost: BTreeMap<String, f64>,
    /// The learned model.
    #[serde(skip_serializing_if = "TwinSpec::is_empty")]
    pub twin: TwinSpec,
}

/// Settings of the twin and its training; omitted settings have the body's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TwinSpec {
    /// Widths of the hidden layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Vec<usize>>,
    /// Simulated transitions to train on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transitions: Option<usize>,
    /// Training steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Transitions of a training step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// AdamW's rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// AdamW's decay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// A twin that `tectum train twin` wrote, relative to the working directory; it is not trained
    /// further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A recording of the rig to train on instead of simulated transitions, relative to the working
    /// directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Online learning from the body's transitions; off without the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineSpec>,
}

/// Settings of online learning; omitted settings have a default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OnlineSpec {
    /// Transitions under random actions before the first round, for an untrained twin; 0 for one
    /// trained before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<usize>,
    /// Transitions between two rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<usize>,
    /// Transitions kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_capacity: Option<usize>,
    /// Training steps of a round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
}

/// Defaults of online learning: transitions between two rounds, transitions kept, steps of a round.
const ONLINE_EVERY: usize = 25;
const ONLINE_CAPACITY: usize = 10_000;
const ONLINE_STEPS: usize = 500;

/// Meaning of a key, for the reference.
const LEARNING_RATE: &str =
    "AdamW's maximum rate; a quarter of the default in rounds of online learning after a training";

/// Keys of a twin that is trained at the start.
const TRAINING_KEYS: [&str; 8] = [
    "hidden",
    "transitions",
    "steps",
    "batch",
    "learning_rate",
    "weight_decay",
    "data",
    "online",
];

impl TwinSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl BrainSettings for MppiSpec {
    fn standard() -> Option<Self> {
        Some(Self::default())
    }

    fn read(section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Self> {
        let models = [("twin", MppiModel::Twin), ("plant", MppiModel::Plant)];
        let about = "what is rolled out: a learned twin, or the body's own equations";
        let model = section.choice(
            Key::new("model", about).or("`\"plant\"` for equation files, else `\"twin\"`"),
            &models,
        )?;
        if (Self {
            model,
            ..Self::default()
        })
        .model_for(body)
            == MppiModel::Plant
        {
            section.refuse(
                &["rate_weight", "cost", "twin"],
                "model \"plant\" learns nothing, and its cost is the body's own: weights or reward",
            )?;
        }
        Ok(Self {
            model,
            samples: section
                .whole(
                    of_body("samples", "rollouts per tick, a multiple of 64"),
                    1..=1 << 20,
                )?
                .map(|n| n as usize),
            horizon: section
                .whole(
                    of_body("horizon", "length of a rollout").unit("steps"),
                    1..=1024,
                )?
                .map(|n| n as usize),
            hold: section
                .whole(
                    of_body("hold", "time for which a step of the plan is held").unit("ticks"),
                    1..=64,
                )?
                .map(|n| n as usize),
            iterations: section
                .whole(
                    of_body(
                        "iterations",
                        "sampling iterations per tick, each around the mean of the one before",
                    ),
                    1..=8,
                )?
                .map(|n| n as usize),
            sigma: section.positive(
                of_body("sigma", "maximum standard deviation of the noise").unit("the action's"),
            )?,
            sigma_min: section.non_negative(
                of_body("sigma_min", "minimum standard deviation of the noise")
                    .unit("the action's"),
            )?,
            temperature: section.positive(of_body(
                "temperature",
                "temperature of the softmax over rollouts, as a share of the costs' spread",
            ))?,
            rate_weight: section.non_negative(of_body(
                "rate_weight",
                "weight of the square of an action's change; only over a twin",
            ))?,
            energy_weight: section.non_negative(of_body(
                "energy_weight",
                "weight of the square of the pole's energy error",
            ))?,
            terminal_multiplier: section.non_negative(of_body(
                "terminal_multiplier",
                "weight of a rollout's last step",
            ))?,
            cost: read_cost(
                section.section(Key::new(
                    "cost",
                    "Weights of the running cost, only over a twin.",
                ))?,
                body,
            )?,
            twin: TwinSpec::read(section.section(Key::new(
                "twin",
                "The learned model and its training, only with `model = \"twin\"`.",
            ))?)?,
        })
    }

    fn set_data(&mut self, path: &str) -> Result<bool> {
        let refused = |reason: &str| Err(Error::invalid(format!("data {path}: {reason}")));
        if self.model == Some(MppiModel::Plant) {
            return refused("model \"plant\" learns nothing from it");
        } else if self.twin.online.is_some_and(OnlineSpec::starts_untrained) {
            return refused("a twin with a warm_up starts untrained");
        } else if self.twin.file.is_some() {
            return refused("the twin is read from a file and learns nothing from it");
        }
        self.twin.data = Some(path.to_owned());
        Ok(true)
    }

    fn set_twin(&mut self, path: &str) -> Result<bool> {
        if self.model == Some(MppiModel::Plant) {
            return Err(Error::invalid(format!(
                "twin {path}: model \"plant\" plans with no twin"
            )));
        }
        self.twin = TwinSpec {
            file: Some(path.to_owned()),
            ..TwinSpec::default()
        };
        Ok(true)
    }

    fn reads_arrays(&self) -> bool {
        false
    }

    fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        let BrainContext {
            body,
            seed,
            settings,
            clock,
        } = *context;
        let model = self.model_for(body);
        if model == MppiModel::Plant && !self.twin.is_empty() {
            return Err(Error::invalid(format!(
                "mppi: body {} is planned with its own equations, not with a twin",
                body.name
            )));
        }
        let parameters = self.parameters(settings, body)?;
        let (config, training) =
            if let (MppiModel::Plant, Some((system, values))) = (model, settings.equations()) {
                let equations = EquationModel::new(settings, system, values)?;
                (
                    MppiConfig::new(Model::Equations(Arc::new(equations)), parameters, None)?,
                    None,
                )
            } else if model == MppiModel::Plant {
                let layout = TwinLayout::of(body, parameters.previous_action)?;
                (
                    MppiConfig::new(
                        Model::Plant {
                            body: body.name.to_owned(),
                            layout,
                        },
                        parameters,
                        None,
                    )?,
                    None,
                )
            } else if let Some(file) = &self.twin.file {
                (
                    MppiConfig::new(
                        Model::Recorded(Box::new(RecordedTwin::load(file, body)?)),
                        parameters,
                        None,
                    )?,
                    None,
                )
            } else {
                let layout = TwinLayout::of(body, parameters.previous_action)?;
                let (recipe, online) = (self.twin.recipe(), self.twin.online(clock));
                // Checked before anything is trained.
                online
                    .iter()
                    .try_for_each(|online| online.settings.check())?;
                let config = MppiConfig::new(
                    Model::Twin(Twin::untrained(&layout, &recipe.hidden)?),
                    parameters,
                    online,
                )?;
                let is_online_only = self.twin.online.is_some_and(OnlineSpec::starts_untrained);
                let training = Training {
                    recipe,
                    is_online_only,
                    data: self.twin.data.clone(),
                    body: settings.clone(),
                };
                (config, Some(training))
            };
        Ok(Recipe::Device(Box::new(MppiRecipe {
            config,
            seed,
            training,
        })))
    }

    #[cfg(any(test, feature = "bench"))]
    fn conformance() -> Option<Conformance> {
        Some(Conformance {
            suites: super::conformance::suites,
            kernels: || super::kernels(&crate::twin::Network::new(7, &[64, 64], 4)?),
        })
    }
}

/// A key whose default is a setting of the body.
fn of_body<'k>(name: &'k str, about: &'k str) -> Key<'k> {
    Key::new(name, about).or("the body's")
}

/// Weights by name of the observation or action channel.
fn read_cost(mut section: Section<'_, '_>, body: &BodySpec) -> Result<BTreeMap<String, f64>> {
    let mut cost = BTreeMap::new();
    for name in body
        .observation
        .iter()
        .map(|channel| &channel.name)
        .chain(body.action.iter().map(|channel| &channel.name))
    {
        cost.extend(
            section
                .non_negative(
                    of_body(
                        name,
                        "weight of an observation or action channel, by its name",
                    )
                    .one_of("CHANNEL"),
                )?
                .map(|weight| (name.clone(), weight)),
        );
    }
    section.finish()?;
    Ok(cost)
}

impl MppiSpec {
    /// What is rolled out; if the scenario does not say, the equations of a body from a file of
    /// them, else a twin.
    pub(crate) fn model_for(&self, body: &BodySpec) -> MppiModel {
        let standard = if body.name.ends_with(equations::ENDING) {
            MppiModel::Plant
        } else {
            MppiModel::Twin
        };
        self.model.unwrap_or(standard)
    }

    /// The body's defaults, overridden by the scenario's settings.
    pub(crate) fn parameters(
        &self,
        settings: &BodySettings,
        body: &BodySpec,
    ) -> Result<MppiParameters> {
        let mut parameters = match (self.model_for(body), settings.equations()) {
            (MppiModel::Twin, _) => settings.mppi()?,
            (MppiModel::Plant, Some((system, _))) => MppiParameters::for_equations(system),
            (MppiModel::Plant, None) => MppiParameters::for_plant(&body.name)?,
        };
        let set = |target: &mut f32, given: Option<f64>| {
            given.into_iter().for_each(|value| *target = value as f32)
        };
        parameters.samples = self.samples.unwrap_or(parameters.samples);
        parameters.horizon = self.horizon.unwrap_or(parameters.horizon);
        parameters.hold = self.hold.unwrap_or(parameters.hold);
        parameters.iterations = self.iterations.unwrap_or(parameters.iterations);
        parameters.sigma_min = self
            .sigma_min
            .map(|value| value as f32)
            .or(parameters.sigma_min);
        set(&mut parameters.sigma, self.sigma);
        set(&mut parameters.temperature, self.temperature);
        set(&mut parameters.rate_weight, self.rate_weight);
        set(&mut parameters.energy_weight, self.energy_weight);
        set(
            &mut parameters.terminal_multiplier,
            self.terminal_multiplier,
        );
        for (name, &weight) in &self.cost {
            match body
                .observation
                .iter()
                .position(|channel| channel.name == *name)
            {
                Some(index) => parameters.channels[index].weight = weight as f32,
                None => parameters.action_weight = weight as f32,
            }
        }
        Ok(parameters)
    }
}

impl TwinSpec {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let file = Key::new(
            "file",
            "a twin that `tectum train twin` wrote, relative to the working directory; it is not trained further",
        );
        let file = section.string(file)?.map(|file| file.value.to_owned());
        if file.is_some() {
            section.refuse(&TRAINING_KEYS, "the twin in the file is trained")?;
        }
        let defaults = TwinRecipe::default();
        let hidden = Key::new("hidden", "widths of the hidden layers")
            .or(format_args!("{:?}", defaults.hidden));
        let widths = section.whole_list(hidden, 1..=4096)?;
        let mut twin = Self {
            file,
            hidden: widths.map(|widths| widths.into_iter().map(|width| width as usize).collect()),
            transitions: section.whole(Key::new("transitions", "simulated transitions to train on").or(defaults.transitions), 1..=1 << 26)?.map(|n| n as usize),
            steps: section.whole(Key::new("steps", "training steps").or(defaults.steps), 1..=1 << 24)?.map(|n| n as usize),
            batch: section
                .whole(Key::new("batch", "transitions of a training step; 128 in a round of online learning if not given").or(defaults.batch), 1..=1 << 16)?
                .map(|n| n as usize),
            learning_rate: section.positive(Key::new("learning_rate", LEARNING_RATE).or(defaults.learning_rate))?,
            weight_decay: section.non_negative(Key::new("weight_decay", "AdamW's decay").or(defaults.weight_decay))?,
            data: section.string(Key::new("data", "a recording of the rig to train on instead of simulated transitions"))?.map(|data| data.value.to_owned()),
            online: None,
        };
        if section.has("online") {
            let online = OnlineSpec::read(section.section(Key::new(
                "online",
                "Learning while the loop runs; without this table it is off.",
            ))?)?;
            if online.starts_untrained() {
                section.refuse(
                    &["transitions", "steps", "data"],
                    "a twin with a warm_up starts untrained",
                )?;
            }
            twin.online = Some(online);
        }
        section.finish()?;
        Ok(twin)
    }

    /// How it is trained at the start.
    pub(crate) fn recipe(&self) -> TwinRecipe {
        let defaults = TwinRecipe::default();
        TwinRecipe {
            hidden: self.hidden.clone().unwrap_or(defaults.hidden),
            transitions: self.transitions.unwrap_or(defaults.transitions),
            steps: self.steps.unwrap_or(defaults.steps),
            batch: self.batch.unwrap_or(defaults.batch),
            learning_rate: self
                .learning_rate
                .map_or(defaults.learning_rate, |value| value as f32),
            weight_decay: self
                .weight_decay
                .map_or(defaults.weight_decay, |value| value as f32),
            ..defaults
        }
    }

    /// How it learns online: in small batches and few steps, so that a round ends before the next
    /// begins, and at a lower rate if it is already trained.
    pub(crate) fn online(&self, clock: ClockKind) -> Option<OnlineLearning> {
        let online = self.online?;
        let settings = OnlineSettings {
            warm_up: online.warm_up.unwrap_or(0),
            every: online.every.unwrap_or(ONLINE_EVERY),
            replay_capacity: online.replay_capacity.unwrap_or(ONLINE_CAPACITY),
            is_threaded: clock == ClockKind::Real,
        };
        let mut recipe = TwinRecipe {
            steps: online.steps.unwrap_or(ONLINE_STEPS),
            batch: self.batch.unwrap_or(128),
            ..self.recipe()
        };
        if !online.starts_untrained() && self.learning_rate.is_none() {
            recipe.learning_rate *= 0.25;
        }
        Some(OnlineLearning { settings, recipe })
    }
}

impl OnlineSpec {
    /// Whether there is no training before the first tick.
    pub fn starts_untrained(self) -> bool {
        self.warm_up.is_some_and(|transitions| transitions > 0)
    }

    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let least = MIN_TRANSITIONS as u64;
        let spec = Self {
            warm_up: section
                .whole(
                    Key::new(
                        "warm_up",
                        "transitions under random actions before the first round, at least 20: the twin starts untrained; 0: it is trained at the start",
                    )
                    .or(0),
                    0..=1 << 20,
                )?
                .map(|n| n as usize),
            every: section.whole(Key::new("every", "transitions between two rounds").or(ONLINE_EVERY), 1..=1 << 20)?.map(|n| n as usize),
            replay_capacity: section.whole(Key::new("replay_capacity", "transitions kept").or(ONLINE_CAPACITY), least..=1 << 20)?.map(|n| n as usize),
            steps: section.whole(Key::new("steps", "training steps of a round").or(ONLINE_STEPS), 1..=1 << 20)?.map(|n| n as usize),
        };
        section.finish()?;
        Ok(spec)
    }
}
