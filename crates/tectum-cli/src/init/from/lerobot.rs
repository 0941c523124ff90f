//! `config.json` of LeRobot, and the statistics of the processors next to it.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::Value;
use tectum::{Error, Result};
use tectum_control::brain::policy::contract::Contract;
use tectum_control::brain::policy::contract::action::ActionRule;
use tectum_control::brain::policy::contract::history::{Fill, History};
use tectum_control::brain::policy::contract::input::InputRule;
use tectum_control::brain::policy::contract::normalizer::{Formula, Normalizer};
use tectum_control::brain::policy::contract::term::Term;

use super::Around;

/// Added to the standard deviation of inputs.
const EPSILON: f64 = 1e-8;

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::data(format!("{}: no JSON: {error}", path.display())))
}

pub fn contract(path: &Path, around: Around<'_>) -> Result<Contract> {
    let config = read_json(path)?;
    let missing = |key: &str| Error::data(format!("{}: it has no {key}", path.display()));
    let features = |key: &str| {
        config
            .get(key)
            .and_then(Value::as_object)
            .ok_or_else(|| missing(key))
    };
    let modes = features("normalization_mapping")?;
    let mode = |kind: &str| {
        modes
            .get(kind)
            .and_then(Value::as_str)
            .unwrap_or("IDENTITY")
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let whole = |key: &str| config.get(key).and_then(Value::as_u64);
    let mut contract = Contract {
        origin: path.display().to_string(),
        assumed: vec![
            "the rate of the policy is in its data set, not in the file: add `period`".to_owned(),
        ],
        ..Contract::default()
    };
    let steps = whole("n_obs_steps").unwrap_or(1) as usize;
    let inputs = Statistics::read(folder, "policy_preprocessor.json", &mut contract.unread)?;
    for (name, feature) in features("input_features")? {
        let kind = feature
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let shape = shape_of(feature);
        let len: usize = shape.iter().product();
        if kind == "VISUAL" {
            contract.unread.push(format!(
                "input {name} {shape:?}: an image, which a term must fill from channels"
            ));
            continue;
        }
        let channels = channels(around, len, name, &mut contract.assumed);
        let mut term = Term {
            input: Some(name.clone()),
            ..Term::of_channels(channels, name.as_str())
        };
        if steps > 1 {
            term.history = History::oldest_first(steps);
            term.fill = Some(Fill::First);
        }
        contract.observation.push(term);
        if let Some(normalize) = inputs.normalizer(name, mode(kind), EPSILON, &mut contract.unread)
        {
            contract.inputs.push(InputRule {
                normalize: Some(normalize),
                ..InputRule::of(name)
            });
        }
    }
    let outputs = Statistics::read(folder, "policy_postprocessor.json", &mut contract.unread)?;
    let chunk = whole("chunk_size")
        .or_else(|| whole("horizon"))
        .unwrap_or(1) as usize;
    let used = whole("n_action_steps").map(|steps| steps as usize);
    contract.action = ActionRule {
        channels: around.body.map(|body| {
            body.action
                .iter()
                .map(|channel| channel.name.clone())
                .collect()
        }),
        unnormalize: outputs.normalizer("action", mode("ACTION"), 0.0, &mut contract.unread),
        chunk,
        replan_steps: used.filter(|used| *used < chunk),
        temporal_ensemble_coeff: config
            .get("temporal_ensemble_coeff")
            .and_then(Value::as_f64),
        ..ActionRule::default()
    };
    if config.get("type").and_then(Value::as_str) == Some("diffusion") && steps > 1 {
        contract.unread.push(format!(
            "a diffusion policy executes its rows from row {} on: export those rows",
            steps - 1
        ));
    }
    Ok(contract)
}

fn shape_of(feature: &Value) -> Vec<usize> {
    feature
        .get("shape")
        .and_then(Value::as_array)
        .map(|shape| {
            shape
                .iter()
                .filter_map(Value::as_u64)
                .map(|size| size as usize)
                .collect()
        })
        .unwrap_or_default()
}

fn channels(
    around: Around<'_>,
    len: usize,
    feature: &str,
    assumed: &mut Vec<String>,
) -> Vec<String> {
    match around.body {
        Some(body) if body.observation.len() == len => {
            assumed.push(format!(
                "{feature} is the observation of the body {} in its order",
                body.name
            ));
            body.observation
                .iter()
                .map(|channel| channel.name.clone())
                .collect()
        }
        _ => {
            assumed.push(format!(
                "the file has no names of the channels of {feature}: replace state_0 and so on by them"
            ));
            (0..len).map(|index| format!("state_{index}")).collect()
        }
    }
}

/// The statistics of a processor: arrays by FEATURE.STATISTIC.
#[derive(Default)]
struct Statistics(Vec<(String, Vec<f64>)>);

impl Statistics {
    /// Reads the state of a processor's normalising step; none if the processor is not there.
    fn read(folder: &Path, name: &str, unread: &mut Vec<String>) -> Result<Self> {
        let path = folder.join(name);
        if !path.is_file() {
            unread.push(format!("{name}: it is not next to the file"));
            return Ok(Self::default());
        }
        let processor = read_json(&path)?;
        let mut arrays = Vec::new();
        let steps = processor.get("steps").and_then(Value::as_array);
        for step in steps.into_iter().flatten() {
            let Some(state) = step.get("state_file").and_then(Value::as_str) else {
                continue;
            };
            let file = folder.join(state);
            let bytes = std::fs::read(&file).map_err(|error| Error::io(file.display(), error))?;
            let at = |message: String| Error::data(format!("{}: {message}", file.display()));
            let tensors =
                SafeTensors::deserialize(&bytes).map_err(|error| at(error.to_string()))?;
            for (name, tensor) in tensors.tensors() {
                let numbers = match tensor.dtype() {
                    Dtype::F32 => tensor
                        .data()
                        .as_chunks()
                        .0
                        .iter()
                        .map(|chunk| f64::from(f32::from_le_bytes(*chunk)))
                        .collect(),
                    Dtype::F64 => tensor
                        .data()
                        .as_chunks()
                        .0
                        .iter()
                        .map(|chunk| f64::from_le_bytes(*chunk))
                        .collect(),
                    _ => continue,
                };
                arrays.push((name.clone(), numbers));
            }
        }
        Ok(Self(arrays))
    }

    fn array(&self, feature: &str, statistic: &str) -> Option<Vec<f64>> {
        let name = format!("{feature}.{statistic}");
        self.0
            .iter()
            .find(|(own, _)| *own == name)
            .map(|(_, numbers)| numbers.clone())
    }

    /// The normaliser of a feature in a mode; a feature without statistics passes unchanged.
    fn normalizer(
        &self,
        feature: &str,
        mode: &str,
        epsilon: f64,
        unread: &mut Vec<String>,
    ) -> Option<Normalizer> {
        let (formula, keys) = match mode {
            "IDENTITY" => return None,
            "MEAN_STD" => (Formula::Std, ["mean", "std"]),
            "MIN_MAX" => (Formula::Range, ["min", "max"]),
            "QUANTILES" => (Formula::Range, ["q01", "q99"]),
            "QUANTILE10" => (Formula::Range, ["q10", "q90"]),
            other => {
                unread.push(format!("{feature}: the normalization {other} is unknown"));
                return None;
            }
        };
        let (Some(low), Some(high)) = (self.array(feature, keys[0]), self.array(feature, keys[1]))
        else {
            unread.push(format!(
                "{feature}: no statistics {} and {} were found",
                keys[0], keys[1]
            ));
            return None;
        };
        // A range of zero is replaced by 1e-8.
        let mut high = high;
        if formula == Formula::Range {
            for (high, low) in high.iter_mut().zip(&low) {
                if *high == *low {
                    *high = low + EPSILON;
                }
            }
        }
        Some(Normalizer {
            formula,
            low,
            high,
            epsilon: if formula == Formula::Std {
                epsilon
            } else {
                0.0
            },
            clip: None,
        })
    }
}
