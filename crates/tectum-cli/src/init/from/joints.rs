//! Names of joints that a file numbers or describes by patterns.

use regex::Regex;
use tectum::Result;
use tectum_control::body::BodySpec;
use tectum_control::brain::policy::contract::term::Term;

use super::yaml::Node;

/// Names of a body's joints in the order of its actions; `joint_0` and so on without a body.
pub fn names(body: Option<&BodySpec>, count: usize, assumed: &mut Vec<String>) -> Vec<String> {
    match body {
        Some(body) if body.action.len() >= count => {
            assumed.push(format!(
                "motors are the actions of the body {} in their order",
                body.name
            ));
            body.action
                .iter()
                .map(|channel| channel.name.clone())
                .collect()
        }
        Some(body) => {
            assumed.push(format!(
                "the body {} has {} actions for {count} motors: replace joint_0 and so on by their names",
                body.name,
                body.action.len()
            ));
            numbered(count)
        }
        None => {
            assumed.push(
                "the file has no names of joints: replace joint_0 and so on by them, or give --body"
                    .to_owned(),
            );
            numbered(count)
        }
    }
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("joint_{index}")).collect()
}

/// A term of one channel for each joint.
pub fn term(kind: &str, joints: &[String], place: &str) -> Term {
    let channels = joints.iter().map(|joint| format!("{kind}.{joint}"));
    Term::of_channels(channels.collect(), place)
}

/// The numbers of joints: one for all, or those of the patterns that match their names as a whole;
/// none for a joint that no pattern matches.
///
/// # Errors
/// `Data` for a pattern that is not valid, or a value that is no number.
pub fn of_patterns(node: &Node<'_>, joints: &[String]) -> Result<Vec<Option<f64>>> {
    let entries = node.entries();
    if entries.is_empty() {
        let numbers = node.numbers()?;
        return Ok(match numbers[..] {
            [one] => vec![Some(one); joints.len()],
            _ if numbers.len() == joints.len() => numbers.into_iter().map(Some).collect(),
            _ => {
                return Err(node.error(format_args!(
                    "it has {} numbers for {} joints",
                    numbers.len(),
                    joints.len()
                )));
            }
        });
    }
    let mut values = vec![None; joints.len()];
    for (pattern, value) in entries {
        let number = value.number()?;
        for place in matching(node, &[pattern], joints)? {
            values[place] = Some(number);
        }
    }
    Ok(values)
}

/// The joints whose names a pattern matches as a whole.
///
/// # Errors
/// `Data` for a pattern that is not valid.
pub fn matching(node: &Node<'_>, patterns: &[String], joints: &[String]) -> Result<Vec<usize>> {
    let patterns = patterns
        .iter()
        .map(|pattern| Regex::new(&format!("^(?:{pattern})$")).map_err(|error| node.error(error)))
        .collect::<Result<Vec<_>>>()?;
    Ok((0..joints.len())
        .filter(|joint| {
            patterns
                .iter()
                .any(|pattern| pattern.is_match(&joints[*joint]))
        })
        .collect())
}
