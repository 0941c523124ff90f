//! Bodies in messages: their channels, and their observations.

use rmpv::Value;
use tectum::{Error, Result};

use super::{ActionChannel, BodySpec, ChannelKind, ObservationChannel};
use crate::message::{Array, ElementType, Message};

impl BodySpec {
    /// Reads the constants of a body from a message of the type `spec`.
    ///
    /// # Errors
    /// `Data` naming the body and the field that is missing or not valid.
    pub fn from_message(name: &str, message: &Message) -> Result<Self> {
        let refused = |what: &str| Error::data(format!("body {name}: it states no valid {what}"));
        let channels = message.maps("observation").unwrap_or_default();
        let observation = channels
            .iter()
            .map(|channel| observation_channel(channel).ok_or_else(|| refused("observation")))
            .collect::<Result<Vec<_>>>()?;
        if observation.is_empty() {
            return Err(refused("observation"));
        }
        let channels = message.maps("action").unwrap_or_default();
        let action = channels
            .iter()
            .map(|channel| action_channel(channel).ok_or_else(|| refused("action")))
            .collect::<Result<Vec<_>>>()?;
        let safe_action = message.array("safe_action")?.to_f32();
        let safe_action = safe_action
            .filter(|safe| {
                safe.len() == action.len() && safe.iter().all(|number| number.is_finite())
            })
            .ok_or_else(|| refused("safe action"))?;
        let dt_s = message
            .number("period")
            .filter(|period| (1e-6..=1e6).contains(period))
            .ok_or_else(|| refused("period"))?;
        let spec = Self {
            name: name.to_owned(),
            dt_s,
            observation,
            action,
            safe_action,
        };
        spec.check()?;
        Ok(spec)
    }

    /// Adds the constants of the body to a message, as [`BodySpec::from_message`] reads them.
    pub fn to_message(&self, message: Message) -> Message {
        let observation = self.observation.iter().map(|channel| {
            let wraps = ("wraps".into(), (channel.kind != ChannelKind::Linear).into());
            let head = (&*channel.name, &*channel.unit, channel.low, channel.high);
            channel_map(head, &channel.shape, channel.element, wraps)
        });
        let action = self.action.iter().map(|channel| {
            let head = (&*channel.name, &*channel.unit, channel.low, channel.high);
            let discrete = ("discrete".into(), channel.discrete.into());
            channel_map(head, &[], ElementType::F32, discrete)
        });
        message
            .with("name", self.name.as_str())
            .with("period", self.dt_s)
            .with("observation", observation.collect::<Vec<_>>())
            .with("action", action.collect::<Vec<_>>())
            .with_array("safe_action", &Array::of_f32(&self.safe_action))
    }

    /// Reads an observation: the channels of one number from the vector `observation`, the others
    /// from the map `arrays` by their names.
    ///
    /// # Errors
    /// `Data` naming the channel that is missing, or has another shape or other elements.
    pub fn read_observation(&self, message: &Message, observation: &mut Vec<f32>) -> Result<()> {
        let arrays = self.observation.iter().filter(|channel| channel.is_array());
        let count = self.observation.len() - arrays.clone().count();
        let numbers = message.array("observation")?.to_f32();
        let numbers = numbers
            .filter(|numbers| numbers.len() == count)
            .ok_or_else(|| {
                Error::data(format!("its observation is not {count} numbers of float32"))
            })?;
        let parts = message.map("arrays");
        observation.clear();
        let mut numbers = numbers.into_iter();
        for channel in &self.observation {
            if !channel.is_array() {
                observation.extend(numbers.next());
                continue;
            }
            let missing = || Error::data(format!("its observation has no array {}", channel.name));
            let array = parts.as_ref().ok_or_else(missing)?.array(&channel.name)?;
            if array.shape != channel.shape || array.element != channel.element {
                return Err(Error::data(format!(
                    "array {} has the shape {:?} of {}, needs {:?} of {}",
                    channel.name,
                    array.shape,
                    array.element.name(),
                    channel.shape,
                    channel.element.name()
                )));
            }
            array.append_to(observation);
        }
        Ok(())
    }

    /// Adds an observation to a message, as [`BodySpec::read_observation`] reads it.
    ///
    /// # Panics
    /// If `observation` does not have [`BodySpec::observation_len`] elements.
    pub fn write_observation(&self, message: Message, observation: &[f32]) -> Message {
        let (mut numbers, mut arrays) = (Vec::new(), Message::default());
        for (channel, range) in self.observation.iter().zip(self.ranges()) {
            let elements = &observation[range];
            if channel.is_array() {
                let array = Array::of_elements(elements, channel.element, &channel.shape);
                arrays = arrays.with_array(&channel.name, &array);
            } else {
                numbers.extend_from_slice(elements);
            }
        }
        let message = message.with_array("observation", &Array::of_f32(&numbers));
        if arrays == Message::default() {
            message
        } else {
            message.with_map("arrays", arrays)
        }
    }
}

/// The map of a channel with its name, unit and range.
fn channel_map(
    (name, unit, low, high): (&str, &str, f32, f32),
    shape: &[usize],
    element: ElementType,
    kind: (Value, Value),
) -> Value {
    let shape = shape.iter().map(|size| Value::from(*size as u64));
    let pairs = [
        ("name".into(), name.into()),
        ("unit".into(), unit.into()),
        ("low".into(), f64::from(low).into()),
        ("high".into(), f64::from(high).into()),
        ("shape".into(), Value::Array(shape.collect())),
        ("dtype".into(), element.code().0.into()),
    ];
    Value::Map(pairs.into_iter().chain([kind]).collect())
}

fn range(channel: &Message) -> Option<[f32; 2]> {
    let [low, high] = [
        channel.number("low")? as f32,
        channel.number("high")? as f32,
    ];
    (low.is_finite() && high.is_finite() && low <= high).then_some([low, high])
}

fn observation_channel(channel: &Message) -> Option<ObservationChannel> {
    let [low, high] = range(channel)?;
    let made = ObservationChannel::new(channel.text("name")?, channel.text("unit")?, low..=high);
    let scale = if made.scale > 0.0 { made.scale } else { 1.0 };
    let element = ElementType::from_code(channel.text("dtype")?)?;
    let made = made.scaled(scale).array(channel.sizes("shape")?, element);
    Some(match channel.flag("wraps")? {
        true => made.wrapping(1.0),
        false => made,
    })
}

fn action_channel(channel: &Message) -> Option<ActionChannel> {
    let [low, high] = range(channel)?;
    let is_number = channel.sizes("shape")?.is_empty();
    let made = ActionChannel::new(channel.text("name")?, channel.text("unit")?, low..=high);
    is_number.then_some(ActionChannel {
        discrete: channel.flag("discrete").unwrap_or(false),
        ..made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn camera() -> BodySpec {
        let picture = ObservationChannel::new("camera", "", 0.0..=255.0);
        BodySpec {
            name: "camera".into(),
            dt_s: 0.02,
            observation: vec![
                ObservationChannel::new("yaw", "rad", -3.0..=3.0).wrapping(1.0),
                picture.array([2, 1, 3], ElementType::U8),
                ObservationChannel::new("gap", "m", 0.0..=2.0),
            ],
            action: vec![
                ActionChannel::new("turn", "rad/s", -1.0..=1.0),
                ActionChannel {
                    discrete: true,
                    ..ActionChannel::new("lamp", "", 0.0..=1.0)
                },
            ],
            safe_action: vec![0.0, 0.0],
        }
    }

    fn sent(message: Message) -> Message {
        let mut bytes = Vec::new();
        message.write(&mut bytes).expect("memory");
        Message::read(&mut bytes.as_slice())
            .expect("a frame")
            .expect("one")
    }

    #[test]
    fn a_body_and_its_observation_are_read_as_they_were_written() {
        let spec = camera();
        let message = sent(spec.to_message(Message::new("spec", 0)));
        assert_eq!(
            BodySpec::from_message("camera", &message).expect("a body"),
            spec
        );
        assert_eq!((spec.observation_len(), spec.range(2)), (8, 7..8));
        let observation = [0.5, 0.0, 1.0, 127.0, 128.0, 254.0, 255.0, -0.25];
        let message = spec.write_observation(Message::new("observation", 1), &observation);
        let picture = message
            .map("arrays")
            .and_then(|map| map.array("camera").ok());
        assert_eq!(
            picture.map(|array| array.data),
            Some(vec![0, 1, 127, 128, 254, 255])
        );
        let mut read = Vec::new();
        spec.read_observation(&sent(message), &mut read)
            .expect("an observation");
        assert_eq!(read, observation);
    }

    #[test]
    fn observations_of_another_body_are_refused_by_channel() {
        let spec = camera();
        let numbers = Array::of_f32(&[0.0, 0.0]);
        let message = || Message::new("observation", 1).with_array("observation", &numbers);
        let with = |array: Array| {
            let arrays = Message::default().with_array("camera", &array);
            message().with_map("arrays", arrays)
        };
        let few = Message::new("observation", 1).with_array("observation", &Array::of_f32(&[0.0]));
        for (message, reason) in [
            (few, "its observation is not 2 numbers of float32"),
            (message(), "its observation has no array camera"),
            (
                with(Array::of_elements(&[0.0; 6], ElementType::U8, &[1, 2, 3])),
                "array camera has the shape [1, 2, 3] of uint8, needs [2, 1, 3] of uint8",
            ),
            (
                with(Array::of_elements(&[0.0; 6], ElementType::F32, &[2, 1, 3])),
                "array camera has the shape [2, 1, 3] of float32, needs [2, 1, 3] of uint8",
            ),
        ] {
            let error = spec.read_observation(&message, &mut Vec::new());
            let error = error.expect_err("another body").to_string();
            assert_eq!(error, reason);
        }
        for (shape, element, reason) in [
            (
                vec![0],
                ElementType::U8,
                "the shape is [0], needs 1 to 67108864 elements",
            ),
            (
                vec![usize::MAX, 2],
                ElementType::U8,
                "the shape is [18446744073709551615, 2], needs 1 to 67108864 elements",
            ),
            (
                vec![2],
                ElementType::I64,
                "the elements are int64, needs float32, uint8, int8 or bool",
            ),
        ] {
            let mut spec = camera();
            spec.observation[1] = spec.observation[1].clone().array(shape, element);
            let error = spec.check().expect_err("no array").to_string();
            assert_eq!(error, format!("body camera: channel camera: {reason}"));
        }
    }
}
