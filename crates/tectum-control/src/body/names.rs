//! Channels of a body by name.

use tectum::{Error, Result};

use super::BodySpec;
use crate::nearest::suggestion;

/// A name as an equation file can have it, whose names have letters, digits and underscores alone.
fn plain(name: &str) -> String {
    name.chars()
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect()
}

/// The place of a name: its own, else that of the only name that is the same in an equation file,
/// such as `joint_pos_hip` for `joint_pos.hip`.
pub fn place_of<'n>(name: &str, mut known: impl Iterator<Item = &'n str> + Clone) -> Option<usize> {
    let own = known.clone().position(|other| other == name);
    own.or_else(|| {
        let name = plain(name);
        let is_same = |other: &str| plain(other) == name;
        let place = known.clone().position(is_same)?;
        known.nth(place);
        (!known.any(is_same)).then_some(place)
    })
}

/// The channels of a name: one, or those that `NAME.*` represents: NAME itself or all that begin
/// with `NAME.`, or with `NAME_` where a body has no such name.
///
/// # Errors
/// `Invalid` for a name that the body does not have, listing its channels.
pub fn observed(body: &BodySpec, name: &str) -> Result<Vec<usize>> {
    let channels = || body.observation.iter().map(|channel| channel.name.as_str());
    let matching: Vec<usize> = match name.strip_suffix(".*") {
        Some(stem) => {
            let of_group = |stem: &str, mark: char| -> Vec<usize> {
                let belongs = |channel: &str| {
                    channel == stem
                        || channel
                            .strip_prefix(stem)
                            .is_some_and(|rest| rest.starts_with(mark))
                };
                (0..body.observation.len())
                    .filter(|index| belongs(&body.observation[*index].name))
                    .collect()
            };
            let dotted = of_group(stem, '.');
            if dotted.is_empty() {
                of_group(&plain(stem), '_')
            } else {
                dotted
            }
        }
        None => place_of(name, channels()).into_iter().collect(),
    };
    if !matching.is_empty() {
        return Ok(matching);
    }
    let all = channels().collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!(
        "the body {} has no channel {name:?}{}; it has {all}",
        body.name,
        suggestion(name, channels())
    )))
}
