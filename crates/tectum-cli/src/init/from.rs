//! Contracts from the files of training frameworks.

mod isaac_lab;
mod joints;
mod lerobot;
mod pickle;
mod rl_sar;
mod stable_baselines3;
mod unitree_rl_lab;
mod yaml;

use std::path::{Path, PathBuf};

use tectum::{Error, Result};
use tectum_control::body::BodySpec;
use tectum_control::brain::policy::contract::Contract;

use self::yaml::Node;

/// What is known besides the files.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub body: Option<&'a BodySpec>,
    /// The input and the output of the policy's file, where it has one of each.
    pub ports: Option<(&'a str, &'a str)>,
}

/// Reads the contract that files of one framework state.
///
/// # Errors
/// `Io` or `Data` naming file and key; `Unsupported` for a file of no known framework.
pub fn contract(files: &[PathBuf], around: Around<'_>) -> Result<Contract> {
    let ending = |path: &Path| {
        path.extension().map_or_else(String::new, |ending| {
            ending.to_string_lossy().to_lowercase()
        })
    };
    let of_ending = |endings: &[&str]| {
        files
            .iter()
            .filter(|path| endings.contains(&ending(path).as_str()))
            .map(PathBuf::as_path)
            .collect::<Vec<_>>()
    };
    let (yamls, zips) = (of_ending(&["yaml", "yml"]), of_ending(&["zip", "pkl"]));
    let jsons = of_ending(&["json"]);
    if yamls.len() + zips.len() + jsons.len() < files.len() {
        let other = files
            .iter()
            .find(|path| !["yaml", "yml", "zip", "pkl", "json"].contains(&ending(path).as_str()));
        return Err(Error::unsupported(format!(
            "init: --from {}: known are deploy.yaml, config.yaml, env.yaml, config.json, FILE.zip and vecnormalize.pkl",
            other.map_or_else(String::new, |path| path.display().to_string())
        )));
    }
    match (&yamls[..], &zips[..], &jsons[..]) {
        ([], [], [json]) => lerobot::contract(json, around),
        ([], [_, ..], []) => stable_baselines3::contract(&zips, around),
        ([_, ..], [], []) => of_yaml(&yamls, around),
        _ => Err(Error::invalid(
            "init: the files of --from belong to several frameworks",
        )),
    }
}

fn of_yaml(files: &[&Path], around: Around<'_>) -> Result<Contract> {
    let documents = files
        .iter()
        .map(|path| yaml::read(path))
        .collect::<Result<Vec<_>>>()?;
    let origins: Vec<String> = files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let roots: Vec<Node<'_>> = documents
        .iter()
        .zip(&origins)
        .map(|(document, origin)| Node::root(document, origin))
        .collect();
    let with = |keys: &[&str]| {
        roots
            .iter()
            .find(|root| keys.iter().all(|key| root.get(key).is_some()))
    };
    let mut contract = if let Some(root) = with(&["joint_ids_map", "observations", "actions"]) {
        unitree_rl_lab::contract(root, around)
    } else if let Some(root) = with(&["sim", "decimation", "observations", "actions"]) {
        isaac_lab::contract(root, with(&["policy", "algorithm"]), around)
    } else if rl_sar::is_one(&roots) {
        rl_sar::contract(&roots, around)
    } else {
        Err(Error::unsupported(format!(
            "init: --from {}: it is neither deploy.yaml of unitree_rl_lab, nor env.yaml of Isaac Lab, nor config.yaml of rl_sar",
            origins.join(", ")
        )))
    }?;
    contract.origin = origins.join(", ");
    if let Some((input, output)) = around.ports {
        contract.input = contract.input.or_else(|| Some(input.to_owned()));
        contract.output = contract.output.or_else(|| Some(output.to_owned()));
    }
    Ok(contract)
}
