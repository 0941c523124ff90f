//! The parts of a contract that a file's metadata state, as TOML.

use tectum_control::body::BodySpec;
use tectum_control::brain::policy::binding::{observed, place_of};
use tectum_control::brain::policy::contract::{Contract, TermSource};

use super::list;

/// The terms of a contract. Names that the body does not have are marked.
pub fn observations(contract: &Contract, body: Option<&BodySpec>) -> String {
    let mut text = String::new();
    for term in &contract.observation {
        text += &format!("# {}\n", term.place);
        text += &match &term.source {
            TermSource::Channels(names) => {
                let missing: Vec<&str> = names
                    .iter()
                    .filter(|name| body.is_some_and(|body| observed(body, name).is_err()))
                    .map(String::as_str)
                    .collect();
                let mark = match body {
                    Some(body) if !missing.is_empty() => format!(
                        "# The body {} has no channel {}; a command is `value = [0.0]` instead.\n",
                        body.name,
                        missing.join(", ")
                    ),
                    _ => String::new(),
                };
                let names = list(names.iter().map(String::as_str));
                format!("{mark}[[observation]]\nchannels = [{names}]\n")
            }
            TermSource::PreviousAction => {
                "[[observation]]\nsource = \"previous action\"\n".to_owned()
            }
            TermSource::Step => "[[observation]]\nsource = \"step\"\n".to_owned(),
            TermSource::Constant(numbers) => {
                format!("[[observation]]\nvalue = {numbers:?}\n")
            }
        };
        text += &factors("offset", &term.offset, 0.0);
        if let Some(clip) = term
            .clip
            .filter(|clip| clip.iter().any(|end| end.is_finite()))
        {
            text += &format!("clip = {clip:?}\n");
        }
        text += &factors("scale", &term.scale, 1.0);
        if term.history > 1 {
            text += &format!("history = {}\n", term.history);
        }
        text += "\n";
    }
    text
}

/// The channels, scales and offsets of a contract's action. Channels of the body that it does not
/// drive are passive.
pub fn actions(contract: &Contract, body: Option<&BodySpec>) -> String {
    let rule = &contract.action;
    let Some(names) = &rule.channels else {
        return "# channels = [\"NAME\"]\n".to_owned();
    };
    let mut text = format!("channels = [{}]\n", list(names.iter().map(String::as_str)));
    if let Some(body) = body {
        let known = || body.action.iter().map(|channel| channel.name.as_str());
        let driven: Vec<usize> = names
            .iter()
            .filter_map(|name| place_of(name, known()))
            .collect();
        let passive: Vec<&str> = known()
            .enumerate()
            .filter(|(place, _)| !driven.contains(place))
            .map(|(_, name)| name)
            .collect();
        if driven.len() < names.len() {
            text += &format!(
                "# The body {} has no action of some of these names.\n",
                body.name
            );
        } else if !passive.is_empty() {
            text += &format!("passive = [{}]\n", list(passive));
        }
    }
    text += &factors("scale", &rule.scale, 1.0);
    text += &factors("offset", &rule.offset, 0.0);
    for (key, gains) in [("stiffness", &rule.stiffness), ("damping", &rule.damping)] {
        if !gains.is_empty() {
            text += &format!("{key} = {gains:?}\n");
        }
    }
    text
}

/// A key with one number for all, or a list; nothing if it has no effect.
fn factors(key: &str, numbers: &[f64], neutral: f64) -> String {
    match numbers {
        [one] if *one == neutral => String::new(),
        [one] => format!("{key} = {one:?}\n"),
        several => format!("{key} = {several:?}\n"),
    }
}
