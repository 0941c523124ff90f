//! The metadata that mjlab writes into its files, as a contract.

use std::collections::BTreeMap;

use serde_json::Value;
use tectum::{Error, Result};

use super::contract::action::ActionRule;
use super::contract::command::CommandRule;
use super::contract::history::History;
use super::contract::term::{ActionStage, Term, TermSource};
use super::contract::{Contract, METADATA_KEY};
use crate::body::BodySpec;
use crate::body::motors::{self, MotorRule};
use crate::body::names::place_of;

/// The key by which metadata of mjlab are known.
const JOINTS: &str = "joint_names";
/// The key by which metadata of holosoma are known, whose values are JSON.
const DOFS: &str = "dof_names";

/// The keys that [`contract`] uses.
const USED: [&str; 14] = [
    JOINTS,
    "observation_names",
    "observation_terms_scale",
    "observation_terms_clip",
    "observation_terms_history_length",
    "default_joint_pos",
    "action_scale",
    "joint_stiffness",
    "joint_damping",
    "observation_history_lengths",
    DOFS,
    "kp",
    "kd",
    "command_ranges",
];

/// Whether metadata of a file make a contract.
pub fn is_known(metadata: &BTreeMap<&str, &str>) -> bool {
    metadata.contains_key(JOINTS) || metadata.contains_key(DOFS)
}

/// The metadata of a file that make no part of its contract, by key.
pub fn unused<'m>(metadata: &BTreeMap<&'m str, &'m str>) -> Vec<(&'m str, &'m str)> {
    let is_known = is_known(metadata);
    metadata
        .iter()
        .map(|(key, text)| (*key, *text))
        .filter(|(key, _)| *key != METADATA_KEY && !(is_known && USED.contains(key)))
        .collect()
}

/// Lists of numbers that exporters write with three decimals.
const ROUNDED: [&str; 4] = [
    "joint_stiffness",
    "joint_damping",
    "default_joint_pos",
    "action_scale",
];

/// The contract of a file with mjlab's keys. A term is made of the channels with its name: `T`, or
/// all that begin with `T.`; `joint_pos` and `joint_vel` of `joint_pos.JOINT` in the order of the
/// file's joints, and `actions` is the previous action. The file lists all joints, and scales and
/// gains of those alone that the policy drives: they are those of which `body` has an action.
///
/// # Errors
/// `Data` naming the key.
pub fn contract(
    metadata: &BTreeMap<&str, &str>,
    origin: &str,
    body: Option<&BodySpec>,
) -> Result<Contract> {
    if metadata.contains_key(DOFS) {
        return holosoma(metadata, origin);
    }
    let list = |key: &str| -> Vec<&str> {
        metadata
            .get(key)
            .map(|text| {
                text.split(',')
                    .map(str::trim)
                    .filter(|text| !text.is_empty())
                    .collect()
            })
            .unwrap_or_default()
    };
    let number = |key: &str, text: &str| {
        text.parse::<f64>()
            .map_err(|_| Error::data(format!("{origin}: {key}: {text:?} is no number")))
    };
    let numbers = |key: &str| {
        list(key)
            .into_iter()
            .map(|text| number(key, text))
            .collect::<Result<Vec<_>>>()
    };
    let nested = |key: &str, index: usize| -> Result<Vec<f64>> {
        list(key).get(index).map_or(Ok(Vec::new()), |text| {
            text.split(';').map(|text| number(key, text)).collect()
        })
    };
    let mut assumed = vec!["the metadata states no rate: the policy runs at the body's".to_owned()];
    let rounded: Vec<&str> = ROUNDED
        .into_iter()
        .filter(|key| list(key).iter().any(|text| has_three_decimals(text)))
        .collect();
    if !rounded.is_empty() {
        assumed.push(format!(
            "{} are rounded to 3 decimals in the metadata; the training's own files have all digits",
            rounded.join(", ")
        ));
    }
    let names = list("observation_names");
    let joints: Vec<String> = list(JOINTS).into_iter().map(str::to_owned).collect();
    let mut observation = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let source = match *name {
            "actions" | "last_action" => TermSource::PreviousAction(ActionStage::Raw),
            "joint_pos" | "joint_vel" => TermSource::Channels(
                joints
                    .iter()
                    .map(|joint| format!("{name}.{joint}"))
                    .collect(),
            ),
            name => TermSource::Channels(vec![format!("{name}.*")]),
        };
        let scale = nested("observation_terms_scale", index)?;
        let clip = match nested("observation_terms_clip", index)?[..] {
            [low, high] if low <= high => vec![[low, high]],
            [] => Vec::new(),
            _ => {
                return Err(Error::data(format!(
                    "{origin}: observation_terms_clip of {name} is no lower and upper bound"
                )));
            }
        };
        let history = nested("observation_terms_history_length", index)?
            .first()
            .copied()
            .or(nested("observation_history_lengths", index)?
                .first()
                .copied())
            .unwrap_or(0.0)
            .max(1.0) as usize;
        let offset = match (*name, numbers("default_joint_pos")?) {
            ("joint_pos", positions) if !positions.is_empty() => {
                assumed.push("joint_pos is relative to default_joint_pos".to_owned());
                positions
            }
            _ => Vec::new(),
        };
        observation.push(Term {
            source,
            offset,
            clip,
            scale,
            history: History::oldest_first(history),
            place: format!("observation_names {}, {name}", index + 1),
            ..Term::default()
        });
    }
    let driven = driven(&joints, body, &mut assumed);
    let of_driven = |numbers: Vec<f64>, default: f64| match numbers.len() {
        0 => vec![default],
        len if len == joints.len() => driven.iter().map(|joint| numbers[*joint]).collect(),
        _ => numbers,
    };
    let offset = numbers("default_joint_pos")?;
    if !offset.is_empty() {
        assumed.push("actions are added to default_joint_pos".to_owned());
    }
    let gains = [numbers("joint_stiffness")?, numbers("joint_damping")?];
    let motors = drive(body, &joints, &driven, gains, &mut assumed);
    let channels: Vec<String> = driven.iter().map(|joint| joints[*joint].clone()).collect();
    Ok(Contract {
        observation,
        action: ActionRule {
            channels: Some(channels).filter(|channels| !channels.is_empty()),
            scale: of_driven(numbers("action_scale")?, 1.0),
            offset: of_driven(offset, 0.0),
            chunk: 1,
            ..ActionRule::default()
        },
        motors,
        assumed,
        origin: origin.to_owned(),
        ..Contract::default()
    })
}

/// Whether a number is written with three decimals, as exporters round it.
fn has_three_decimals(text: &str) -> bool {
    text.split_once('.')
        .is_some_and(|(_, decimals)| decimals.len() == 3)
}

/// The joints that the policy drives: those of which a body has an action, all if it has none.
fn driven(joints: &[String], body: Option<&BodySpec>, assumed: &mut Vec<String>) -> Vec<usize> {
    let all = || (0..joints.len()).collect();
    let Some(body) = body else {
        return all();
    };
    let actions = || body.action.iter().map(|channel| channel.name.as_str());
    let (driven, passive): (Vec<usize>, Vec<usize>) =
        (0..joints.len()).partition(|joint| place_of(&joints[*joint], actions()).is_some());
    if driven.is_empty() {
        return all();
    }
    if !passive.is_empty() {
        let names: Vec<&str> = passive
            .iter()
            .map(|joint| joints[*joint].as_str())
            .collect();
        assumed.push(format!(
            "joints {} are passive: the body {} has no action of their names (assumed)",
            names.join(", "),
            body.name
        ));
    }
    driven
}

/// The stage that drives joints by the gains of a file, where a body receives torques.
fn drive(
    body: Option<&BodySpec>,
    joints: &[String],
    driven: &[usize],
    [stiffness, damping]: [Vec<f64>; 2],
    assumed: &mut Vec<String>,
) -> Option<MotorRule> {
    if stiffness.is_empty() {
        return None;
    }
    let of_driven = |gains: &[f64]| {
        if gains.len() == joints.len() {
            driven.iter().map(|joint| gains[*joint]).collect()
        } else {
            gains.to_vec()
        }
    };
    let receives_torque = body.is_none_or(|body| {
        driven.iter().all(|joint| {
            let known = body.action.iter().map(|channel| channel.name.as_str());
            place_of(&joints[*joint], known)
                .is_some_and(|place| motors::is_torque(&body.action[place].unit))
        })
    });
    if !receives_torque {
        assumed.push(format!(
            "joint_stiffness {stiffness:?} and joint_damping {damping:?} are not used: the body has its own"
        ));
        return None;
    }
    Some(MotorRule {
        stiffness: of_driven(&stiffness),
        damping: of_driven(&damping),
        ..MotorRule::default()
    })
}

/// The contract of a file with holosoma's keys: its joints, gains and commands. Its terms are not in
/// the metadata by themselves.
fn holosoma(metadata: &BTreeMap<&str, &str>, origin: &str) -> Result<Contract> {
    let value = |key: &str| -> Result<Option<Value>> {
        let parse = |text: &&str| {
            serde_json::from_str(text)
                .map_err(|error| Error::data(format!("{origin}: {key}: no JSON: {error}")))
        };
        metadata.get(key).map(parse).transpose()
    };
    let numbers = |key: &str| -> Result<Vec<f64>> {
        let list = value(key)?;
        let list = list.as_ref().and_then(Value::as_array);
        let number = |item: &Value| {
            item.as_f64()
                .ok_or_else(|| Error::data(format!("{origin}: {key}: {item} is no number")))
        };
        list.into_iter().flatten().map(number).collect()
    };
    let names = value(DOFS)?;
    let names: Vec<String> = names
        .as_ref()
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    let (stiffness, damping) = (numbers("kp")?, numbers("kd")?);
    if stiffness.len() != names.len() || damping.len() != names.len() {
        return Err(Error::data(format!(
            "{origin}: kp and kd have {} and {} numbers for {} joints",
            stiffness.len(),
            damping.len(),
            names.len()
        )));
    }
    let ranges = value("command_ranges")?;
    let mut commands = Vec::new();
    for (name, range) in ranges
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let bounds: Vec<f64> = range
            .as_array()
            .map(|range| range.iter().filter_map(Value::as_f64).collect())
            .unwrap_or_default();
        if let [low, high] = bounds[..] {
            commands.push(CommandRule {
                name: name.clone(),
                value: 0.0,
                unit: None,
                range: [low, high],
                schedule: Vec::new(),
                is_linear: false,
            });
        }
    }
    Ok(Contract {
        commands,
        action: ActionRule {
            channels: Some(names.clone()),
            clip: vec![[-100.0, 100.0]],
            scale: vec![0.25],
            chunk: 1,
            ..ActionRule::default()
        },
        motors: Some(MotorRule {
            joints: Some(names),
            stiffness,
            damping,
            ..MotorRule::default()
        }),
        assumed: vec![
            "actions are clipped to ±100, and multiplied by 0.25 (1.0 for tracking)".to_owned(),
        ],
        unread: vec![
            "the terms, which holosoma sorts by name within a group: each fills its history, the oldest first, with zeros before the first value".to_owned(),
            "the default pose, which is the offset of the action".to_owned(),
        ],
        origin: origin.to_owned(),
        ..Contract::default()
    })
}
