//! The `[brain]` part of a scenario.

use std::collections::BTreeMap;

use serde::Serialize;
use tectum::Result;

#[cfg(feature = "field")]
use super::field::spec::FieldSpec;
#[cfg(feature = "spiking")]
use super::genome::spec::GenomeSpec;
use crate::body::BodySpec;
use crate::document::{Located, Section, TomlSource};
use crate::twin::MIN_TRANSITIONS;

/// Brains that can stand in for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StandInKind {
    /// Linear-quadratic regulator with energy swing-up.
    Lqr,
    /// The same for a rig whose length and lag are not known.
    Adaptive,
}

/// The brains' names.
pub const BRAIN_NAMES: [&str; 7] = ["mppi", "lqr", "mpc", "adaptive", "zero", "field", "genome"];

/// Which brain, with the settings that the scenario gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum BrainSpec {
    /// Model-predictive path integral control over a learned twin.
    Mppi(Box<MppiSpec>),
    /// Linear-quadratic regulator with energy swing-up.
    Lqr,
    /// The same problem planned over a horizon, under the bounds of action, travel and speed.
    Mpc,
    /// The regulator for a rig whose length and lag are not known.
    Adaptive,
    /// The safe action at every tick: the baseline.
    Zero,
    /// A field.
    #[cfg(feature = "field")]
    Field(Box<FieldSpec>),
    /// A genome's spiking network.
    #[cfg(feature = "spiking")]
    Genome(Box<GenomeSpec>),
}

/// What MPPI rolls out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MppiModel {
    /// A learned twin.
    #[default]
    Twin,
    /// The body's own equations.
    Plant,
}

impl MppiModel {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
    fn is_twin(&self) -> bool {
        *self == Self::Twin
    }
}

/// Settings of MPPI; omitted settings have the body's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MppiSpec {
    /// What is rolled out.
    #[serde(skip_serializing_if = "MppiModel::is_twin")]
    pub model: MppiModel,
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
    /// A twin that `tectum train twin` wrote, relative to the working directory; it is not trained further.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A recording of the rig to train on instead of simulated transitions, relative to the working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Online learning from the body's transitions; off without the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineSpec>,
}

/// Settings of online learning; omitted settings have a default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OnlineSpec {
    /// Transitions under random actions before the first round, for an untrained twin; 0 for one trained before.
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

/// Keys of a twin that is trained at the start.
const TRAINING_KEYS: [&str; 8] = ["hidden", "transitions", "steps", "batch", "learning_rate", "weight_decay", "data", "online"];

impl TwinSpec {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl BrainSpec {
    /// A brain by name, with default settings; none for a genome, which has no default wiring.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "mppi" => Some(Self::Mppi(Box::default())),
            "lqr" => Some(Self::Lqr),
            "mpc" => Some(Self::Mpc),
            "adaptive" => Some(Self::Adaptive),
            "zero" => Some(Self::Zero),
            #[cfg(feature = "field")]
            "field" => Some(Self::Field(Box::default())),
            _ => None,
        }
    }

    /// The brain's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mppi(_) => "mppi",
            Self::Lqr => "lqr",
            Self::Mpc => "mpc",
            Self::Adaptive => "adaptive",
            Self::Zero => "zero",
            #[cfg(feature = "field")]
            Self::Field(_) => "field",
            #[cfg(feature = "spiking")]
            Self::Genome(_) => "genome",
        }
    }

    /// Whether its work depends on its data, so that a device is found by trial.
    pub(crate) fn is_tried(&self) -> bool {
        match self {
            #[cfg(feature = "field")]
            Self::Field(_) => true,
            #[cfg(feature = "spiking")]
            Self::Genome(_) => true,
            _ => false,
        }
    }

    pub(crate) fn read(mut section: Section<'_, '_>, source: TomlSource<'_>, body: &BodySpec) -> Result<Self> {
        // The key `genome` already identifies the brain.
        let name = if section.has("genome") { section.string("name")? } else { Some(section.required("name")?) };
        let Some(Located { value: name, place }) = name.filter(|name| name.value != "genome") else {
            #[cfg(feature = "spiking")]
            {
                let spec = GenomeSpec::read(&mut section, body)?;
                section.finish()?;
                return Ok(Self::Genome(Box::new(spec)));
            }
            #[cfg(not(feature = "spiking"))]
            return Err(tectum::Error::unsupported("this build leaves out genomes: the feature \"spiking\" of the crate tectum-control is off"));
        };
        let Some(mut spec) = Self::named(name) else {
            if name == "field" {
                let reason = "this build leaves it out: the feature \"field\" of the crate tectum-control is off";
                return Err(tectum::Error::unsupported(format!("brain {name:?}: {reason}")));
            }
            return Err(source.error(&place, format!("brain {name:?} is unknown; known: {}", BRAIN_NAMES.join(", "))));
        };
        match &mut spec {
            Self::Mppi(mppi) => mppi.read(&mut section, body)?,
            #[cfg(feature = "field")]
            Self::Field(field) => {
                field.read(&mut section, body)?;
                field.check().map_err(|error| source.error(&place, error))?;
            }
            _ => {}
        }
        section.finish()?;
        Ok(spec)
    }
}

impl MppiSpec {
    fn read(&mut self, section: &mut Section<'_, '_>, body: &BodySpec) -> Result<()> {
        self.model = section.choice("model", &[("twin", MppiModel::Twin), ("plant", MppiModel::Plant)])?.unwrap_or_default();
        if self.model == MppiModel::Plant {
            section.refuse(&["rate_weight", "cost", "twin"], "model \"plant\" learns nothing, and its cost is the body's reward")?;
        }
        self.samples = section.whole("samples", 1..=1 << 20)?.map(|n| n as usize);
        self.horizon = section.whole("horizon", 1..=1024)?.map(|n| n as usize);
        self.hold = section.whole("hold", 1..=64)?.map(|n| n as usize);
        self.iterations = section.whole("iterations", 1..=8)?.map(|n| n as usize);
        self.sigma = section.positive("sigma")?;
        self.sigma_min = section.non_negative("sigma_min")?;
        self.temperature = section.positive("temperature")?;
        self.rate_weight = section.non_negative("rate_weight")?;
        self.energy_weight = section.non_negative("energy_weight")?;
        self.terminal_multiplier = section.non_negative("terminal_multiplier")?;
        let mut cost = section.section("cost")?;
        let channels = body.observation.iter().map(|channel| &channel.name).chain(body.action.iter().map(|channel| &channel.name));
        for name in channels {
            self.cost.extend(cost.non_negative(name)?.map(|weight| (name.clone(), weight)));
        }
        cost.finish()?;
        self.twin.read(section.section("twin")?)
    }
}

impl TwinSpec {
    fn read(&mut self, mut section: Section<'_, '_>) -> Result<()> {
        self.file = section.string("file")?.map(|file| file.value.to_owned());
        if self.file.is_some() {
            section.refuse(&TRAINING_KEYS, "the twin in the file is trained")?;
        }
        let widths = section.whole_list("hidden", 1..=4096)?;
        self.hidden = widths.map(|widths| widths.into_iter().map(|width| width as usize).collect());
        self.transitions = section.whole("transitions", 1..=1 << 26)?.map(|n| n as usize);
        self.steps = section.whole("steps", 1..=1 << 24)?.map(|n| n as usize);
        self.batch = section.whole("batch", 1..=1 << 16)?.map(|n| n as usize);
        self.learning_rate = section.positive("learning_rate")?;
        self.weight_decay = section.non_negative("weight_decay")?;
        self.data = section.string("data")?.map(|data| data.value.to_owned());
        if section.has("online") {
            self.online = Some(OnlineSpec::read(section.section("online")?)?);
            if self.online.is_some_and(OnlineSpec::starts_untrained) {
                section.refuse(&["transitions", "steps", "data"], "a twin with a warm_up starts untrained")?;
            }
        }
        section.finish()
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
            warm_up: section.whole("warm_up", 0..=1 << 20)?.map(|n| n as usize),
            every: section.whole("every", 1..=1 << 20)?.map(|n| n as usize),
            replay_capacity: section.whole("replay_capacity", least..=1 << 20)?.map(|n| n as usize),
            steps: section.whole("steps", 1..=1 << 20)?.map(|n| n as usize),
        };
        section.finish()?;
        Ok(spec)
    }
}
