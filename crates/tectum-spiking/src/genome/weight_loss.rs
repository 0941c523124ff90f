//! When the synapses of a file's plastic mappings lose weight: the two engines that the format has
//! had differ, and no key says which one a file was written for.

use std::str::FromStr;

use serde::Serialize;
use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::schema::{SCHEMA_KEY, schema};
use crate::learning::WeightLoss;

/// When the synapses of plastic mappings lose weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightLossPolicy {
    /// As the engine that the file was written for.
    #[default]
    Detect,
    /// [`WeightLoss::AnyFiring`].
    AnyFiring,
    /// [`WeightLoss::SteadySource`].
    SteadySource,
}

/// When the synapses of plastic mappings lose weight, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WeightLossReport {
    /// The caller's choice.
    pub policy: WeightLossPolicy,
    /// The condition that acts.
    pub condition: WeightLoss,
    /// The reason for it.
    pub evidence: String,
}

impl WeightLossReport {
    /// Determines it for a file of a version of the format.
    pub(super) fn new(
        policy: WeightLossPolicy,
        version: &str,
        sections: &Map<String, Value>,
    ) -> Self {
        let (condition, evidence) = match policy {
            WeightLossPolicy::AnyFiring => (WeightLoss::AnyFiring, "as requested".to_owned()),
            WeightLossPolicy::SteadySource => (WeightLoss::SteadySource, "as requested".to_owned()),
            WeightLossPolicy::Detect => detect(version, sections),
        };
        Self {
            policy,
            condition,
            evidence,
        }
    }

    /// A sentence about it.
    pub fn note(&self) -> String {
        let condition = match self.condition {
            WeightLoss::AnyFiring => "either end fired in any burst of the window",
            WeightLoss::SteadySource => "its source fired in every burst of the window",
        };
        format!(
            "learning: a weight that does not gain loses if {condition} (weight loss {}: {})",
            self.condition.name(),
            self.evidence
        )
    }
}

/// The newer engine brought version 2.1, `simulation_timestep` and `genome_schema_version`.
fn detect(version: &str, sections: &Map<String, Value>) -> (WeightLoss, String) {
    let physiology = sections.get("physiology").and_then(Value::as_object);
    let newer = if schema(sections).is_some() {
        Some(format!("the file has {SCHEMA_KEY} {version}"))
    } else if !["2", "2.0"].contains(&version) {
        Some(format!("the file has version {version}"))
    } else {
        physiology
            .is_some_and(|fields| fields.contains_key("simulation_timestep"))
            .then(|| "the file has simulation_timestep".to_owned())
    };
    match newer {
        Some(evidence) => (WeightLoss::AnyFiring, evidence),
        None => (
            WeightLoss::SteadySource,
            format!("version {version} without simulation_timestep and genome_schema_version"),
        ),
    }
}

impl FromStr for WeightLossPolicy {
    type Err = Error;

    /// # Errors
    /// `Invalid` for any word except detect, any_firing and steady_source.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "detect" => Ok(WeightLossPolicy::Detect),
            "any_firing" => Ok(WeightLossPolicy::AnyFiring),
            "steady_source" => Ok(WeightLossPolicy::SteadySource),
            _ => Err(Error::invalid(format!(
                "weight loss {text:?}: detect, any_firing or steady_source needed"
            ))),
        }
    }
}
