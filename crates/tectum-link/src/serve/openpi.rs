//! The observations and actions of openpi's policy protocol.
//!
//! An observation is a map without the key `type`:
//!
//! | key | value |
//! |---|---|
//! | `observation/state` | all channels of one number, in the body's order: a vector |
//! | `observation/NAME`, `NAME` | the channel of this name: one number, or an array of its shape |
//! | `prompt` | a text, which is not used |
//!
//! Each channel is stated once. Numbers may have any type of NumPy that is a number; arrays have
//! the type of the channel.

use tectum::{Error, Result};
use tectum_control::body::{BodySpec, ObservationChannel};
use tectum_control::message::{Array, Message};

const STATE: &str = "observation/state";
const PREFIX: &str = "observation/";
const PROMPT: &str = "prompt";

/// Reads an observation.
///
/// # Errors
/// `Data` naming the key that is unknown, states a channel again, or has another length, shape or
/// type; naming a channel that is not stated, or is not finite.
pub(crate) fn read(map: &Message, body: &BodySpec, observation: &mut [f32]) -> Result<()> {
    let mut is_stated = vec![false; body.observation.len()];
    for key in map.names() {
        match key {
            PROMPT => {}
            STATE => read_state(map, body, observation, &mut is_stated)?,
            _ => {
                let place = channel(key, body)?;
                set(key, place, body, &map.elements(key)?, observation)?;
                state(key, place, body, &mut is_stated)?;
            }
        }
    }
    if let Some(place) = is_stated.iter().position(|is_stated| !is_stated) {
        return Err(Error::data(format!(
            "channel {} is missing; its key is \"{PREFIX}{0}\"{1}",
            body.observation[place].name,
            match body.observation[place].is_array() {
                true => "",
                false => ", or \"observation/state\" with all numbers",
            }
        )));
    }
    require_finite(body, observation)
}

/// Refuses an observation that is not finite.
///
/// # Errors
/// `Data` naming the channel.
pub(crate) fn require_finite(body: &BodySpec, observation: &[f32]) -> Result<()> {
    let mut channels = body.observation.iter().zip(body.ranges());
    let found = channels.find(|(_, range)| {
        let mut elements = observation[range.clone()].iter();
        elements.any(|number| !number.is_finite())
    });
    found.map_or(Ok(()), |(channel, _)| {
        Err(Error::data(format!(
            "channel {} is not finite",
            channel.name
        )))
    })
}

/// The answer of a policy: a chunk of one row, and times.
pub(crate) fn answer(action: &[f32], infer_ms: f64, total_ms: Option<f64>) -> Message {
    let actions = Array {
        shape: vec![1, action.len()],
        ..Array::of_f32(action)
    };
    let timing = Message::default().with("infer_ms", infer_ms);
    let timing = match total_ms {
        Some(total_ms) => timing.with("prev_total_ms", total_ms),
        None => timing,
    };
    Message::default()
        .with_array("actions", &actions)
        .with_map("server_timing", timing)
}

/// The place of the channel that a key names.
fn channel(key: &str, body: &BodySpec) -> Result<usize> {
    let find = |name: &str| {
        let mut channels = body.observation.iter();
        channels.position(|channel| channel.name == name)
    };
    let own = key.strip_prefix(PREFIX).and_then(find);
    own.or_else(|| find(key)).ok_or_else(|| {
        let known: Vec<String> = body
            .observation
            .iter()
            .map(|channel| format!("{PREFIX}{}", channel.name))
            .collect();
        Error::data(format!(
            "key {key:?} is unknown; known: {STATE}, {}",
            known.join(", ")
        ))
    })
}

fn state(key: &str, place: usize, body: &BodySpec, is_stated: &mut [bool]) -> Result<()> {
    match std::mem::replace(&mut is_stated[place], true) {
        false => Ok(()),
        true => Err(Error::data(format!(
            "key {key:?} states the channel {} a second time",
            body.observation[place].name
        ))),
    }
}

fn read_state(
    map: &Message,
    body: &BodySpec,
    observation: &mut [f32],
    is_stated: &mut [bool],
) -> Result<()> {
    let numbers = map.elements(STATE)?;
    let is_number = |channel: &&ObservationChannel| !channel.is_array();
    let count = body.observation.iter().filter(is_number).count();
    if numbers.shape != [count] {
        return Err(Error::data(format!(
            "key {STATE:?} has the shape {:?}, needs [{count}]: one number for each of {}",
            numbers.shape,
            body.observation
                .iter()
                .filter(is_number)
                .map(|channel| channel.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        )));
    }
    let mut elements = Vec::with_capacity(count);
    numbers.append_to(&mut elements);
    let channels = body.observation.iter().zip(body.ranges()).enumerate();
    let numbers = channels.filter(|(_, (channel, _))| is_number(channel));
    for ((place, (_, range)), number) in numbers.zip(elements) {
        observation[range.start] = number;
        state(STATE, place, body, is_stated)?;
    }
    Ok(())
}

/// Writes one channel.
fn set(
    key: &str,
    place: usize,
    body: &BodySpec,
    elements: &Array,
    observation: &mut [f32],
) -> Result<()> {
    let channel = &body.observation[place];
    let is_number = !channel.is_array() && matches!(elements.shape[..], [] | [1]);
    let is_array = elements.shape == channel.shape && elements.element == channel.element;
    if !(is_number || channel.is_array() && is_array) {
        return Err(Error::data(format!(
            "key {key:?} has the shape {:?} of {}, needs {:?} of {}",
            elements.shape,
            elements.element.name(),
            channel.shape,
            channel.element.name()
        )));
    }
    let mut own = Vec::with_capacity(channel.size());
    elements.append_to(&mut own);
    observation[body.range(place)].copy_from_slice(&own);
    Ok(())
}

#[cfg(test)]
mod tests {
    use tectum_control::body::ActionChannel;
    use tectum_control::message::ElementType;

    use super::*;

    fn body() -> BodySpec {
        let number = |name: &str| ObservationChannel::new(name, "m", -1.0..=1.0);
        BodySpec {
            name: "arm".into(),
            dt_s: 0.02,
            observation: vec![
                number("x"),
                number("image").array([2, 1, 3], ElementType::U8),
                number("y"),
            ],
            action: vec![ActionChannel::new("u", "V", -1.0..=1.0)],
            safe_action: vec![0.0],
        }
    }

    fn image() -> Array {
        Array {
            element: ElementType::U8,
            shape: vec![2, 1, 3],
            data: vec![0, 1, 2, 253, 254, 255],
        }
    }

    fn found(map: &Message) -> std::result::Result<Vec<f32>, String> {
        let mut observation = vec![0.0; 8];
        read(map, &body(), &mut observation).map_err(|error| error.to_string())?;
        Ok(observation)
    }

    #[test]
    fn channels_are_stated_together_or_one_by_one() {
        let expected = Ok(vec![0.5, 0.0, 1.0, 2.0, 253.0, 254.0, 255.0, -0.5]);
        let state = Message::default()
            .with_array("observation/state", &Array::of_f64(&[0.5, -0.5]))
            .with_array("observation/image", &image())
            .with("prompt", "pick it up");
        assert_eq!(found(&state), expected);
        let single = Message::default()
            .with("y", -0.5)
            .with_array("image", &image())
            .with_array("observation/x", &Array::of_f32(&[0.5]));
        assert_eq!(found(&single), expected);
    }

    #[test]
    fn a_key_that_does_not_fit_is_named() {
        let state = |numbers: &[f32]| {
            Message::default().with_array("observation/state", &Array::of_f32(numbers))
        };
        let whole = || state(&[0.5, -0.5]).with_array("image", &image());
        let small = Array {
            shape: vec![1, 2, 3],
            ..image()
        };
        let floats = Array {
            shape: vec![2, 1, 3],
            ..Array::of_f32(&[0.0; 6])
        };
        for (map, reason) in [
            (
                state(&[0.5]),
                "key \"observation/state\" has the shape [1], needs [2]: one number for each of x, y",
            ),
            (
                whole().with("observation/z", 1.0),
                "key \"observation/z\" is unknown; known: observation/state, observation/x, observation/image, observation/y",
            ),
            (
                whole().with("x", 1.0),
                "key \"x\" states the channel x a second time",
            ),
            (
                state(&[0.0, 0.0]).with_array("image", &small),
                "key \"image\" has the shape [1, 2, 3] of uint8, needs [2, 1, 3] of uint8",
            ),
            (
                state(&[0.0, 0.0]).with_array("image", &floats),
                "key \"image\" has the shape [2, 1, 3] of float32, needs [2, 1, 3] of uint8",
            ),
            (
                state(&[0.0, 0.0]),
                "channel image is missing; its key is \"observation/image\"",
            ),
            (
                Message::default()
                    .with("x", 0.0)
                    .with_array("image", &image()),
                "channel y is missing; its key is \"observation/y\", or \"observation/state\" with all numbers",
            ),
            (
                state(&[0.0, f32::NAN]).with_array("image", &image()),
                "channel y is not finite",
            ),
            (Message::default().with("x", "one"), "x is no array"),
        ] {
            assert_eq!(found(&map), Err(reason.to_owned()));
        }
    }

    #[test]
    fn an_answer_is_a_chunk_of_one_row() {
        let answer = answer(&[0.5, -0.5], 1.5, Some(2.5));
        let actions = answer.array("actions").expect("an array");
        assert_eq!(
            (actions.shape.as_slice(), actions.to_f32()),
            (&[1, 2][..], Some(vec![0.5, -0.5]))
        );
        let timing = answer.map("server_timing").expect("a map");
        assert_eq!(
            (timing.number("infer_ms"), timing.number("prev_total_ms")),
            (Some(1.5), Some(2.5))
        );
    }
}
