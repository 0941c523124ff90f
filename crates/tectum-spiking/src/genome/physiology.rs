//! Settings of the brain as a whole.

use serde::Serialize;
use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::record::{self, is_same, kind};
use super::warnings::{Warnings, quoted};

/// Settings of the brain as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Physiology {
    /// Duration of a burst in seconds (`simulation_timestep`, formerly `burst_delay`); 0.1, as in
    /// the reference, if missing.
    pub timestep_s: f64,
    /// Whether the file states the duration of a burst.
    #[serde(skip)]
    pub states_timestep: bool,
    /// The window of coincidence for plasticity, in bursts.
    pub plasticity_queue_depth: u16,
    /// The precision that the genome was made for, such as `fp32`; has no effect.
    pub quantization_precision: Option<String>,
}

/// The reference's default burst period.
const DEFAULT_TIMESTEP_S: f64 = 0.1;
/// The reference's default window.
const DEFAULT_QUEUE_DEPTH: u16 = 3;
/// Maximum duration of a burst.
const MAX_TIMESTEP_S: f64 = 3600.0;
/// Keys that older files have next to the section; the older loader moves them into it.
const MOVED_KEYS: [&str; 2] = ["burst_delay", "plasticity_queue_depth"];
/// Keys that concern a brain's life cycle, not a run.
const IGNORED_KEYS: [&str; 8] = [
    "max_age",
    "evolution_burst_count",
    "ipu_idle_threshold",
    "lifespan_mgmt_interval",
    "sleep",
    "sleep_trigger_inactivity_window",
    "sleep_trigger_neural_activity_max",
    "genome_age",
];

impl Physiology {
    /// Reads the section `physiology`, with its keys that older files have next to it.
    pub(super) fn read(sections: &Map<String, Value>, warnings: &mut Warnings) -> Result<Self> {
        let fields = &fields(sections)?;
        for (key, value) in fields {
            let is_read = [
                "simulation_timestep",
                "burst_delay",
                "plasticity_queue_depth",
                "quantization_precision",
            ]
            .contains(&key.as_str());
            if key == "rate_modulated_leak" {
                record::warn_unsupported(key, value, warnings);
            } else if !is_read && !IGNORED_KEYS.contains(&key.as_str()) {
                warnings.add(format!("physiology: key {} is unknown", quoted(key)));
            }
        }
        let stated = match (
            timestep(fields, "simulation_timestep")?,
            timestep(fields, "burst_delay")?,
        ) {
            (Some(new), Some(old)) if new != old => {
                return Err(Error::data(
                    "physiology: simulation_timestep and burst_delay differ",
                ));
            }
            (new, old) => new.or(old),
        };
        Ok(Self {
            timestep_s: stated.unwrap_or(DEFAULT_TIMESTEP_S),
            states_timestep: stated.is_some(),
            plasticity_queue_depth: queue_depth(fields)?,
            quantization_precision: precision(fields)?,
        })
    }
}

/// The section's keys, with those next to it; a key whose value is null is absent.
fn fields(sections: &Map<String, Value>) -> Result<Map<String, Value>> {
    let mut fields = match sections.get("physiology") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(fields)) => fields.clone(),
        Some(other) => {
            return Err(Error::data(format!(
                "physiology: {} given; an object needed",
                kind(other)
            )));
        }
    };
    fields.retain(|_, value| !value.is_null());
    for key in MOVED_KEYS {
        let Some(value) = sections.get(key).filter(|value| !value.is_null()) else {
            continue;
        };
        match fields.get(key) {
            Some(other) if !is_same(other, value) => {
                return Err(Error::data(format!(
                    "{key}: {} given next to physiology, where it is {}",
                    kind(value),
                    kind(other)
                )));
            }
            _ => fields.insert(key.to_owned(), value.clone()),
        };
    }
    Ok(fields)
}

fn timestep(fields: &Map<String, Value>, key: &str) -> Result<Option<f64>> {
    let Some(value) = fields.get(key) else {
        return Ok(None);
    };
    let seconds = value
        .as_f64()
        .filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMESTEP_S);
    let wrong = || {
        Error::data(format!(
            "physiology: {key}: {} given; seconds above 0 and to {MAX_TIMESTEP_S} needed",
            kind(value)
        ))
    };
    seconds.map(Some).ok_or_else(wrong)
}

fn queue_depth(fields: &Map<String, Value>) -> Result<u16> {
    let Some(value) = fields.get("plasticity_queue_depth") else {
        return Ok(DEFAULT_QUEUE_DEPTH);
    };
    let depth = value
        .as_f64()
        .filter(|depth| depth.fract() == 0.0 && (0.0..=f64::from(u16::MAX)).contains(depth));
    let wrong = || {
        Error::data(format!(
            "physiology: plasticity_queue_depth: {} given; a whole number from 0 to 65535 needed",
            kind(value)
        ))
    };
    depth.map(|depth| depth as u16).ok_or_else(wrong)
}

fn precision(fields: &Map<String, Value>) -> Result<Option<String>> {
    match fields.get("quantization_precision") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(precision)) => Ok(Some(precision.clone())),
        Some(other) => Err(Error::data(format!(
            "physiology: quantization_precision: {} given; a text needed",
            kind(other)
        ))),
    }
}
