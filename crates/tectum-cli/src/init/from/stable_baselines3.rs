//! ZIP files of Stable-Baselines3, and the pickle of `VecNormalize` next to them.
//!
//! Of the objects in a ZIP, only the fields in JSON are read; what is serialized in them is never
//! decoded.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;
use tectum::{Error, Result};
use tectum_control::brain::policy::contract::Contract;
use tectum_control::brain::policy::contract::action::ActionRule;
use tectum_control::brain::policy::contract::input::InputRule;
use tectum_control::brain::policy::contract::normalizer::{Formula, Normalizer};
use tectum_control::brain::policy::contract::term::Term;
use zip::ZipArchive;

use super::Around;
use super::pickle::Pickle;

/// The maximum size of the settings in a ZIP.
const MAX_SETTINGS: u64 = 64 << 20;

pub fn contract(files: &[&Path], around: Around<'_>) -> Result<Contract> {
    let mut contract = Contract {
        action: ActionRule {
            chunk: 1,
            ..ActionRule::default()
        },
        origin: files
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
        ..Contract::default()
    };
    let mut width = None;
    for path in files {
        let at = |error: Error| error.at(path.display());
        if path.extension().is_some_and(|ending| ending == "pkl") {
            read_normalizer(path, around, &mut contract).map_err(at)?;
        } else {
            width = read_zip(path, around, &mut contract).map_err(at)?;
        }
    }
    let names = match around.body {
        Some(body) => body
            .observation
            .iter()
            .map(|channel| channel.name.clone())
            .collect(),
        None => (0..width.unwrap_or(0))
            .map(|index| format!("channel_{index}"))
            .collect::<Vec<_>>(),
    };
    contract.assumed.push(match around.body {
        Some(body) => format!(
            "the observation is that of the body {} in its order",
            body.name
        ),
        None => "the file has no names of channels: replace channel_0 and so on by them".to_owned(),
    });
    contract
        .observation
        .push(Term::of_channels(names, "the observation space"));
    if let Some((input, output)) = around.ports {
        contract.input = Some(input.to_owned());
        contract.output = Some(output.to_owned());
    }
    Ok(contract)
}

/// Reads spaces and the kind of the policy; returns the width of the observation.
fn read_zip(path: &Path, around: Around<'_>, contract: &mut Contract) -> Result<Option<usize>> {
    let file = File::open(path).map_err(|error| Error::io("the file", error))?;
    let broken = |error: zip::result::ZipError| Error::data(format!("no ZIP: {error}"));
    let mut archive = ZipArchive::new(file).map_err(broken)?;
    let mut text = String::new();
    archive
        .by_name("data")
        .map_err(|_| Error::data("it has no member \"data\": it is no file of Stable-Baselines3"))?
        .take(MAX_SETTINGS)
        .read_to_string(&mut text)
        .map_err(|error| Error::io("member data", error))?;
    let data: Value = serde_json::from_str(&text)
        .map_err(|error| Error::data(format!("member data is no JSON: {error}")))?;
    let space = |key: &str| {
        data.get(key)
            .filter(|space| space.is_object())
            .ok_or_else(|| Error::data(format!("it has no {key}")))
    };
    let kind = |space: &Value| {
        space
            .get(":type:")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let observation = space("observation_space")?;
    if !kind(observation).contains("Box") {
        contract.unread.push(format!(
            "observation_space {}: write a term for each input",
            kind(observation)
        ));
    }
    let shape: Vec<usize> = observation
        .get("_shape")
        .and_then(Value::as_array)
        .map(|shape| {
            shape
                .iter()
                .filter_map(Value::as_u64)
                .map(|size| size as usize)
                .collect()
        })
        .unwrap_or_default();
    let action = space("action_space")?;
    let class = data
        .pointer("/policy_class/__module__")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind(action).contains("Discrete") {
        read_choices(action, around, contract)?;
    } else {
        read_box(action, class, around, contract)?;
    }
    if data.get("use_sde").and_then(Value::as_bool) == Some(true) {
        contract
            .unread
            .push("use_sde: noise of the training".to_owned());
    }
    Ok(Some(shape.iter().product()))
}

/// Actions of a box: clipped to its bounds, or scaled to them where the policy is squashed.
fn read_box(
    action: &Value,
    class: &str,
    around: Around<'_>,
    contract: &mut Contract,
) -> Result<()> {
    let (low, high) = (bounds(action, "low")?, bounds(action, "high")?);
    contract.action.channels = around.body.map(|body| {
        body.action
            .iter()
            .map(|channel| channel.name.clone())
            .collect()
    });
    // SAC and TD3 give numbers in [-1, 1]; others are clipped.
    if [".sac.", ".td3.", ".ddpg."]
        .iter()
        .any(|part| class.contains(part))
    {
        contract.action.scale = low
            .iter()
            .zip(&high)
            .map(|(low, high)| 0.5 * (high - low))
            .collect();
        contract.action.offset = low
            .iter()
            .zip(&high)
            .map(|(low, high)| 0.5 * (high + low))
            .collect();
        contract
            .assumed
            .push("the exported output is that of the squashed actor, in [-1, 1]".to_owned());
    } else {
        contract.action.clip = low
            .iter()
            .zip(&high)
            .map(|(low, high)| [*low, *high])
            .collect();
        contract
            .assumed
            .push("the exported output is the mean of the distribution".to_owned());
    }
    Ok(())
}

/// Actions to choose from: the bounds of the only channel of a body that has two values.
fn read_choices(action: &Value, around: Around<'_>, contract: &mut Contract) -> Result<()> {
    let count = match action.get("n") {
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
        None => None,
    };
    let count = count.ok_or_else(|| Error::data("action_space has no n"))?;
    match around.body.map(|body| &body.action[..]) {
        Some([only]) if only.discrete && count == 2 => {
            contract.action.channels = Some(vec![only.name.clone()]);
            contract.action.choices = vec![vec![only.low.into()], vec![only.high.into()]];
        }
        _ => {
            contract.unread.push(format!(
                "{count} actions: `choices` gives what each of them does"
            ));
        }
    }
    Ok(())
}

/// Bounds of a box, of which the file has a text that may be abbreviated.
fn bounds(space: &Value, key: &str) -> Result<Vec<f64>> {
    let missing = || Error::data(format!("action_space has no {key}"));
    let text = space.get(key).and_then(Value::as_str).ok_or_else(missing)?;
    let numbers: Vec<f64> = text
        .trim_matches(['[', ']'])
        .split_whitespace()
        .filter_map(|text| text.parse().ok())
        .collect();
    let shape: Vec<u64> = space
        .get("_shape")
        .and_then(Value::as_array)
        .map(|shape| shape.iter().filter_map(Value::as_u64).collect())
        .unwrap_or_default();
    let len = shape.iter().product::<u64>() as usize;
    if numbers.len() == len {
        return Ok(numbers);
    }
    let all = space
        .get(format!("{key}_repr"))
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    all.map(|bound| vec![bound; len]).ok_or_else(|| {
        Error::data(format!(
            "action_space: {key} {text:?} does not have {len} numbers"
        ))
    })
}

/// The statistics of `VecNormalize`.
fn read_normalizer(path: &Path, around: Around<'_>, contract: &mut Contract) -> Result<()> {
    let bytes = std::fs::read(path).map_err(|error| Error::io("the file", error))?;
    let pickle = Pickle::parse(&bytes)?;
    let root = pickle.root();
    if !root.class().ends_with(".VecNormalize") {
        return Err(Error::data("it is no pickle of VecNormalize"));
    }
    if root.get("norm_obs").is_some_and(|flag| !flag.is_true()) {
        return Ok(());
    }
    let number = |key: &str| {
        root.get(key)
            .and_then(super::pickle::Item::numbers)
            .and_then(|numbers| numbers.first().copied())
            .ok_or_else(|| Error::data(format!("it has no number {key}")))
    };
    let (epsilon, clip) = (number("epsilon")?, number("clip_obs")?);
    let statistics = root
        .get("obs_rms")
        .ok_or_else(|| Error::data("it has no obs_rms"))?;
    let of = |item: super::pickle::Item<'_>, name: &str| -> Result<InputRule> {
        let array = |key: &str| {
            item.get(key)
                .and_then(super::pickle::Item::numbers)
                .ok_or_else(|| Error::data(format!("obs_rms has no array {key}")))
        };
        Ok(InputRule {
            normalize: Some(Normalizer {
                formula: Formula::Var,
                low: array("mean")?,
                high: array("var")?,
                epsilon,
                clip: Some(clip),
            }),
            ..InputRule::of(name)
        })
    };
    let keys = statistics.keys();
    if keys.is_empty() {
        let name = around.ports.map_or("obs", |(input, _)| input);
        contract.inputs.push(of(statistics, name)?);
    }
    for key in keys {
        if let Some(item) = statistics.get(&key) {
            contract.inputs.push(of(item, &key)?);
        }
    }
    contract
        .assumed
        .push("the exported file has no normaliser of its own".to_owned());
    Ok(())
}
