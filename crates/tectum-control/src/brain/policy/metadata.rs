//! The metadata that mjlab writes into its files, as a contract.

use std::collections::BTreeMap;

use tectum::{Error, Result};

use super::contract::{ActionRule, Contract, Term, TermFunction, TermSource};

/// The contract of a file with mjlab's keys. A term is made of the channels with its name: `T`, or
/// all that begin with `T.`; `joint_pos` and `joint_vel` of `joint_pos.JOINT` in the order of the
/// file's joints, and `actions` is the previous action.
///
/// # Errors
/// `Data` naming the key.
pub(super) fn contract(metadata: &BTreeMap<&str, &str>, origin: &str) -> Result<Contract> {
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
    let joints: Vec<String> = list("joint_names").into_iter().map(str::to_owned).collect();
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
    let scale = numbers("action_scale")?;
    let offset = numbers("default_joint_pos")?;
    if !offset.is_empty() {
        assumed.push("actions are added to default_joint_pos".to_owned());
    }
    Ok(Contract {
        observation,
        action: ActionRule {
            channels: Some(joints).filter(|joints| !joints.is_empty()),
            scale: if scale.is_empty() { vec![1.0] } else { scale },
            offset: if offset.is_empty() { vec![0.0] } else { offset },
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
