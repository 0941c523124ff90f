//! Brains: controllers that compute an action from an observation, one tick at a time; and the list
//! of all of them.

pub mod commands;
pub(crate) mod custom;
#[cfg(feature = "field")]
pub mod field;
#[cfg(feature = "genome")]
pub mod genome;
pub mod lqr;
pub mod mppi;
#[cfg(feature = "onnx")]
pub mod policy;
mod recipe;
pub mod safe;
mod stateless;
pub mod zero;

use serde::Serialize;
use tectum::{CodeObject, Device, Error, InputFile, LaunchTime, Result, RunStats};

use self::commands::CommandInputs;
use self::custom::NAMES;
#[cfg(feature = "field")]
use self::field::spec::FieldSpec;
#[cfg(feature = "genome")]
use self::genome::spec::GenomeSpec;
use self::lqr::adaptive::AdaptiveSpec;
use self::lqr::{LqrSpec, MpcSpec};
use self::mppi::spec::MppiSpec;
#[cfg(feature = "onnx")]
use self::policy::spec::PolicySpec;
#[cfg(any(test, feature = "bench"))]
use self::recipe::Conformance;
use self::safe::SafeSpec;
use self::zero::ZeroSpec;
use crate::body::BodySpec;
use crate::body::motors::MotorRule;
use crate::document::{Key, Located, Section, TomlSource};
use crate::registry::AsTable;
use crate::twin::LearningCounts;
pub use custom::{CustomBrain, register_brain};
pub use recipe::{BrainContext, BrainSettings, BuildStandIn, DeviceRecipe, Recipe};
pub use stateless::Stateless;
use tectum::snapshot::Snapshot;
use toml::Table;

/// Rebuilds a brain on a device, in its initial state; [`Brain::restore`] then sets the saved
/// state.
pub type Rebuild = Box<dyn FnOnce(&Device) -> Result<Box<dyn Brain>> + Send>;

/// A brain of plain host arithmetic that follows another brain, ready to answer instead of it.
pub trait StandIn: Brain {
    /// Processes a period with its observation, which may not be finite, and the action that the
    /// body received.
    fn follow(&mut self, observation: &[f32], action: &[f32]);
}

/// A controller, network or any other policy in the closed loop.
///
/// A tick neither allocates device memory nor compiles; everything is built before the loop starts.
/// The state of a brain can be saved as a [`Snapshot`], independent of the device, and restored:
/// the next tick is then the same bit for bit on the same device. A control law without state is a
/// [`Stateless`].
pub trait Brain: Send {
    /// The brain's name in scenarios, receipts and logs.
    fn name(&self) -> &'static str;

    /// Reads one observation and writes one action, in the body's units and order.
    ///
    /// # Errors
    /// What the device reports; the loop then issues the body's safe action.
    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats>;

    /// The state, as named arrays.
    ///
    /// # Errors
    /// What the device reports.
    fn snapshot(&self) -> Result<Snapshot>;

    /// Restores a state.
    ///
    /// # Errors
    /// `Data` naming the array if one is missing or has a different length.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<()>;

    /// Ticks up to the last one that had no answer of their own because it is still being computed:
    /// they left `action` as it was, and the loop treats them as late answers. 0 for brains that
    /// compute every answer in its tick.
    fn unanswered_ticks(&self) -> u64 {
        0
    }

    /// Reports that the body did not receive the last answer, or was reset: the next observation
    /// does not follow from that answer.
    fn interrupted(&mut self) {}

    /// Reports that the episode is over: the next observation is the first of another one.
    fn episode_ended(&mut self) {}

    /// Counters of learning; none for brains that do not learn a model while they run.
    fn learning(&self) -> Option<LearningCounts> {
        None
    }

    /// The time of each launch of one more tick on the last observation, which advances the state;
    /// empty for brains without launches.
    ///
    /// # Errors
    /// What the device reports.
    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        Ok(Vec::new())
    }

    /// How to build the same brain on another device without data from the present device; none for
    /// brains that run on no device.
    fn rebuild(&self) -> Option<Rebuild> {
        None
    }

    /// What a caller may give it while it runs; none for a brain without commands.
    fn commands(&self) -> Option<CommandInputs> {
        None
    }

    /// The inputs of its networks at the last tick by name, to compare them with those of another
    /// program.
    fn network_inputs(&self) -> Vec<(String, Vec<f32>)> {
        Vec::new()
    }

    /// The device that ticks run on; none for brains that are plain host arithmetic.
    fn device(&self) -> Option<&Device> {
        None
    }

    /// Requested settings that it does not support, for the receipt.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// What its user should know of the ticks so far, such as an output that never changed.
    fn run_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The files that it was built from, for the receipt.
    fn inputs(&self) -> Vec<InputFile> {
        Vec::new()
    }

    /// Name and content hash of the kernels that ticks launch.
    fn code(&self) -> Vec<CodeObject> {
        Vec::new()
    }
}

macro_rules! brains {
    ($($name:literal, $about:literal => $variant:ident($settings:ty) $(if $feature:literal)?,)*) => {
        /// The names of the built-in brains.
        pub const BRAIN_NAMES: &[&str] = &[$($name),*];

        /// What each of them is, for the reference of scenarios.
        pub(crate) const BRAIN_DESCRIPTIONS: &[(&str, &str)] = &[$(($name, $about)),*];

        /// Which brain, with the settings that the scenario gives.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "name")]
        pub enum BrainSpec {
            $($(#[cfg(feature = $feature)])? #[doc = $about] #[serde(rename = $name)] $variant(Box<$settings>),)*
            /// A brain that [`register_brain`] added, or that a run only described.
            #[serde(untagged)]
            Custom(CustomBrain),
        }

        impl BrainSpec {
            /// A built-in or registered brain by name, with default settings; none for a genome,
            /// which has no default wiring.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($(#[cfg(feature = $feature)])? $name => <$settings>::standard().map(|settings| Self::$variant(Box::new(settings))),)*
                    _ => CustomBrain::named(name).map(Self::Custom),
                }
            }

            /// The brain's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(_) => $name,)*
                    Self::Custom(brain) => brain.name,
                }
            }

            fn settings(&self) -> &dyn BrainSettings {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(settings) => settings.as_ref(),)*
                    Self::Custom(brain) => &*brain.settings,
                }
            }

            /// The settings of a built-in brain, to change them.
            fn settings_mut(&mut self) -> Option<&mut dyn BrainSettings> {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(settings) => Some(settings.as_mut()),)*
                    Self::Custom(_) => None,
                }
            }

            /// Reads the settings of a brain; none for an unknown one.
            fn read_settings(name: &str, section: &mut Section<'_, '_>, body: &BodySpec) -> Result<Option<Self>> {
                match name {
                    $($(#[cfg(feature = $feature)])? $name => Ok(Some(Self::$variant(Box::new(<$settings>::read(section, body)?)))),)*
                    $($(#[cfg(not(feature = $feature))] $name => {
                        let reason = "this build leaves it out: the feature";
                        Err(Error::unsupported(format!("brain {name:?}: {reason} {:?} of the crate tectum-control is off", $feature)))
                    })?)*
                    _ => Ok(CustomBrain::read(name, section, body)?.map(Self::Custom)),
                }
            }

            /// Kernels of all brains with their conformance cases.
            #[cfg(any(test, feature = "bench"))]
            pub(crate) fn conformance() -> impl Iterator<Item = Conformance> {
                [$($(#[cfg(feature = $feature)])? <$settings>::conformance()),*].into_iter().flatten()
            }
        }
    };
}

brains! {
    "mppi", "Model-predictive path integral control over a learned twin." => Mppi(MppiSpec),
    "lqr", "Linear-quadratic regulator with energy swing-up." => Lqr(LqrSpec),
    "mpc", "The same problem planned over a horizon, under the bounds of action, travel and speed." => Mpc(MpcSpec),
    "adaptive", "The regulator for a rig whose length and lag are not known." => Adaptive(AdaptiveSpec),
    "zero", "Zero at every tick: the baseline." => Zero(ZeroSpec),
    "safe", "The body's safe action at every tick, to record what it observes." => Safe(SafeSpec),
    "field", "A field." => Field(FieldSpec) if "field",
    "genome", "A genome's spiking network." => Genome(GenomeSpec) if "genome",
    "policy", "A trained policy from an ONNX file." => Policy(PolicySpec) if "onnx",
}

/// The brains that a scenario is not needed for: those with default settings.
pub fn standard_names() -> impl Iterator<Item = &'static str> {
    NAMES
        .names()
        .into_iter()
        .filter(|name| BrainSpec::named(name).is_some())
}

/// The brains that can stand in for another.
pub(crate) fn stand_in_names() -> impl Iterator<Item = &'static str> {
    standard_names().filter(|name| {
        BrainSpec::named(name).is_some_and(|brain| brain.settings().stand_in().is_some())
    })
}

impl BrainSpec {
    /// Reads the section `[brain]`. A key with the name of a brain identifies it as well as the key
    /// `name`.
    pub(crate) fn read(
        mut section: Section<'_, '_>,
        source: TomlSource<'_>,
        body: &BodySpec,
    ) -> Result<Self> {
        let implied = NAMES
            .names()
            .into_iter()
            .find(|name| section.has(name))
            .map(|value| Located { value, place: 0..0 });
        let missing = section.missing("name");
        let key = Key::new("name", "one of the brains below, or a registered name")
            .or("required, unless a key has the name of a brain");
        let Located { value: name, place } = section.string(key)?.or(implied).ok_or(missing)?;
        let unknown = || {
            if source.is_record {
                NAMES.unregistered(name)
            } else {
                NAMES.unknown(name)
            }
        };
        let spec = Self::read_settings(name, &mut section, body)?
            .ok_or_else(|| source.error(&place, unknown()))?;
        spec.settings()
            .check()
            .map_err(|error| source.error(&place, error))?;
        section.finish()?;
        Ok(spec)
    }

    /// A brain by name, with default settings.
    ///
    /// # Errors
    /// An unknown name; a genome, whose file, sensors and motors only a scenario can give.
    pub(crate) fn require(name: &str) -> Result<Self> {
        Self::named(name).ok_or_else(|| match NAMES.names().contains(&name) {
            true => Error::invalid(format!(
                "brain {name:?} is wired to its body by a scenario, which this one does not do"
            )),
            false => NAMES.unknown(name),
        })
    }

    /// The brain that a loop runs, known by its name and the settings that its user states.
    ///
    /// # Errors
    /// A built-in brain that has settings.
    pub(crate) fn described(
        name: &'static str,
        runs_on_device: bool,
        settings: Table,
    ) -> Result<Self> {
        if !BRAIN_NAMES.contains(&name) {
            return Ok(Self::Custom(CustomBrain::described(name, settings)));
        }
        // Brains of plain host arithmetic have none.
        let spec = Self::named(name).filter(|_| settings.is_empty() && !runs_on_device);
        spec.ok_or_else(|| Error::invalid(format!("describe: brain {name:?} is built in; the scenario that it is built from states its settings")))
    }

    /// The keys of `[brain]` besides the name.
    pub(crate) fn table(&self) -> Result<Table> {
        let mut table = self.to_table()?;
        table.remove("name");
        Ok(table)
    }

    /// Trains its twin on the recording in a file.
    ///
    /// # Errors
    /// A brain without a twin that is trained before the first tick.
    pub fn set_data(&mut self, path: &str) -> Result<()> {
        let name = self.name();
        if self
            .settings_mut()
            .map_or(Ok(false), |settings| settings.set_data(path))?
        {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "data {path}: brain {name:?} learns nothing from it"
            )))
        }
    }

    /// Plans with the twin in a file instead of one that is trained at the start.
    ///
    /// # Errors
    /// A brain without a twin, or one that rolls out the plant itself.
    pub fn set_twin(&mut self, path: &str) -> Result<()> {
        let name = self.name();
        if self
            .settings_mut()
            .map_or(Ok(false), |settings| settings.set_twin(path))?
        {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "twin {path}: brain {name:?} plans with no twin"
            )))
        }
    }

    /// Uses the contract in a file instead of the one that belongs to the policy.
    ///
    /// # Errors
    /// A brain that is no policy.
    pub fn set_contract(&mut self, path: &str) -> Result<()> {
        #[cfg(feature = "onnx")]
        if let Self::Policy(policy) = self {
            policy.contract = Some(path.to_owned());
            return Ok(());
        }
        Err(Error::invalid(format!(
            "contract {path}: brain {:?} is no policy",
            self.name()
        )))
    }

    /// The stage between its actions and the motors of a body, and the time between two actions, if
    /// it states one.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn motors(&self, body: &BodySpec) -> Result<Option<(MotorRule, Option<f64>)>> {
        self.settings().motors(body)
    }

    /// Checks the settings against a body, and records the brain's plans. Nothing is trained or
    /// compiled.
    ///
    /// # Errors
    /// Settings, a twin or a genome that do not fit the body; a file that cannot be read.
    pub fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        let settings = self.settings();
        if !settings.reads_arrays() {
            context
                .body
                .require_numbers(&format!("brain {}", self.name()))?;
        }
        settings.recipe(context)
    }

    /// Makes the brain as a stand-in.
    ///
    /// # Errors
    /// `Invalid` for a brain that cannot stand in for another, or does not support the body.
    pub fn stand_in(&self, context: &BrainContext<'_>) -> Result<Box<dyn StandIn>> {
        let build = self.settings().stand_in();
        build.ok_or_else(|| {
            Error::invalid(format!(
                "brain {:?} cannot stand in for another",
                self.name()
            ))
        })?(context)
    }
}
