//! The `[brain]` part of a scenario, and the list of all brains.

use serde::Serialize;
use tectum::{Error, Result};

#[cfg(feature = "field")]
use super::field::spec::FieldSpec;
#[cfg(feature = "spiking")]
use super::genome::spec::GenomeSpec;
use super::lqr::adaptive::AdaptiveSpec;
use super::lqr::{LqrSpec, MpcSpec};
use super::mppi::spec::MppiSpec;
use super::recipe::BrainSettings;
#[cfg(any(test, feature = "bench"))]
use super::recipe::Conformance;
use super::zero::ZeroSpec;
use super::{BrainContext, Recipe, StandIn};
use crate::body::BodySpec;
use crate::document::{Located, Section, TomlSource};

macro_rules! brains {
    ($($(#[$about:meta])* $name:literal => $variant:ident($settings:ty) $(if $feature:literal)?,)*) => {
        /// The brains' names.
        pub const BRAIN_NAMES: &[&str] = &[$($name),*];

        /// Which brain, with the settings that the scenario gives.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "name")]
        pub enum BrainSpec {
            $($(#[cfg(feature = $feature)])? $(#[$about])* #[serde(rename = $name)] $variant(Box<$settings>),)*
        }

        impl BrainSpec {
            /// A brain by name, with default settings; none for a genome, which has no default wiring.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($(#[cfg(feature = $feature)])? $name => <$settings>::standard().map(|settings| Self::$variant(Box::new(settings))),)*
                    _ => None,
                }
            }

            /// The brain's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(_) => $name,)*
                }
            }

            fn settings(&self) -> &dyn BrainSettings {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(settings) => settings.as_ref(),)*
                }
            }

            fn settings_mut(&mut self) -> &mut dyn BrainSettings {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant(settings) => settings.as_mut(),)*
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
                    _ => Ok(None),
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
    /// Model-predictive path integral control over a learned twin.
    "mppi" => Mppi(MppiSpec),
    /// Linear-quadratic regulator with energy swing-up.
    "lqr" => Lqr(LqrSpec),
    /// The same problem planned over a horizon, under the bounds of action, travel and speed.
    "mpc" => Mpc(MpcSpec),
    /// The regulator for a rig whose length and lag are not known.
    "adaptive" => Adaptive(AdaptiveSpec),
    /// The safe action at every tick: the baseline.
    "zero" => Zero(ZeroSpec),
    /// A field.
    "field" => Field(FieldSpec) if "field",
    /// A genome's spiking network.
    "genome" => Genome(GenomeSpec) if "spiking",
}

/// The brains that a scenario is not needed for: those with default settings.
pub fn standard_names() -> impl Iterator<Item = &'static str> {
    BRAIN_NAMES.iter().copied().filter(|name| BrainSpec::named(name).is_some())
}

/// The brains that can stand in for another.
pub(crate) fn stand_in_names() -> impl Iterator<Item = &'static str> {
    standard_names().filter(|name| BrainSpec::named(name).is_some_and(|brain| brain.settings().stand_in().is_some()))
}

impl BrainSpec {
    /// Reads the section `[brain]`. A key with the name of a brain identifies it as well as the key `name`.
    pub(crate) fn read(mut section: Section<'_, '_>, source: TomlSource<'_>, body: &BodySpec) -> Result<Self> {
        let implied = BRAIN_NAMES.iter().find(|name| section.has(name)).map(|name| Located { value: *name, place: 0..0 });
        let missing = section.missing("name");
        let Located { value: name, place } = section.string("name")?.or(implied).ok_or(missing)?;
        let unknown = || source.error(&place, format!("brain {name:?} is unknown; known: {}", BRAIN_NAMES.join(", ")));
        let spec = Self::read_settings(name, &mut section, body)?.ok_or_else(unknown)?;
        spec.settings().check().map_err(|error| source.error(&place, error))?;
        section.finish()?;
        Ok(spec)
    }

    /// Trains its twin on the recording in a file.
    ///
    /// # Errors
    /// A brain without a twin that is trained before the first tick.
    pub fn set_data(&mut self, path: &str) -> Result<()> {
        let name = self.name();
        if self.settings_mut().set_data(path)? { Ok(()) } else { Err(Error::invalid(format!("data {path}: brain {name:?} learns nothing from it"))) }
    }

    /// Plans with the twin in a file instead of one that is trained at the start.
    ///
    /// # Errors
    /// A brain without a twin, or one that rolls out the plant itself.
    pub fn set_twin(&mut self, path: &str) -> Result<()> {
        let name = self.name();
        if self.settings_mut().set_twin(path)? { Ok(()) } else { Err(Error::invalid(format!("twin {path}: brain {name:?} plans with no twin"))) }
    }

    /// Checks the settings against a body, and records the brain's plans. Nothing is trained or compiled.
    ///
    /// # Errors
    /// Settings, a twin or a genome that do not fit the body; a file that cannot be read.
    pub fn recipe(&self, context: &BrainContext<'_>) -> Result<Recipe> {
        self.settings().recipe(context)
    }

    /// Makes the brain as a stand-in.
    ///
    /// # Errors
    /// `Invalid` for a brain that cannot stand in for another, or does not support the body.
    pub fn stand_in(&self, context: &BrainContext<'_>) -> Result<Box<dyn StandIn>> {
        let build = self.settings().stand_in();
        build.ok_or_else(|| Error::invalid(format!("brain {:?} cannot stand in for another", self.name())))?(context)
    }
}
