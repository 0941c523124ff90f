//! The metadata that mjlab writes into its files, as a contract.

use std::collections::BTreeMap;

use tectum::{Error, Result};

use super::binding::place_of;
use super::contract::{ActionRule, Contract, METADATA_KEY, Term, TermFunction, TermSource};
use crate::body::BodySpec;

/// The key by which metadata of mjlab are known.
const JOINTS: &str = "joint_names";

/// The keys that [`contract`] uses.
const USED: [&str; 9] = [
    JOINTS,
    "observation_names",
    "observation_terms_scale",
    "observation_terms_clip",
    "observation_terms_history_length",
    "default_joint_pos",
    "action_scale",
    "joint_stiffness",
    "joint_damping",
];

/// Whether metadata of a file make a contract.
pub fn is_known(metadata: &BTreeMap<&str, &str>) -> bool {
    metadata.contains_key(JOINTS)
}

/// The metadata of a file that make no part of its contract, by key.
pub fn unused<'m>(metadata: &BTreeMap<&'m str, &'m str>) -> Vec<(&'m str, &'m str)> {
    let is_mjlab = is_known(metadata);
    metadata
        .iter()
        .map(|(key, text)| (*key, *text))
        .filter(|(key, _)| *key != METADATA_KEY && !(is_mjlab && USED.contains(key)))
        .collect()
}

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
    let names = list("observation_names");
    let joints: Vec<String> = list(JOINTS).into_iter().map(str::to_owned).collect();
    let mut assumed = Vec::new();
    let mut observation = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let source = match *name {
            "actions" | "last_action" => TermSource::PreviousAction,
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
            [low, high] if low <= high => Some([low, high]),
            [] => None,
            _ => {
                return Err(Error::data(format!(
                    "{origin}: observation_terms_clip of {name} is no lower and upper bound"
                )));
            }
        };
        let history = nested("observation_terms_history_length", index)?
            .first()
            .copied()
            .unwrap_or(0.0)
            .max(1.0) as usize;
        let offset = match (*name, numbers("default_joint_pos")?) {
            ("joint_pos", positions) if !positions.is_empty() => {
                assumed.push("joint_pos is relative to default_joint_pos".to_owned());
                positions
            }
            _ => vec![0.0],
        };
        let scale = if scale.is_empty() { vec![1.0] } else { scale };
        observation.push(Term {
            input: None,
            source,
            function: TermFunction::Identity,
            unit: None,
            offset,
            clip,
            scale,
            history,
            place: format!("observation_names {}, {name}", index + 1),
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
    let channels: Vec<String> = driven.iter().map(|joint| joints[*joint].clone()).collect();
    Ok(Contract {
        observation,
        action: ActionRule {
            channels: Some(channels).filter(|channels| !channels.is_empty()),
            scale: of_driven(numbers("action_scale")?, 1.0),
            offset: of_driven(offset, 0.0),
            chunk: 1,
            stiffness: numbers("joint_stiffness")?,
            damping: numbers("joint_damping")?,
            ..ActionRule::default()
        },
        assumed,
        origin: origin.to_owned(),
        ..Contract::default()
    })
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
