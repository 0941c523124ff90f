//! Which field of which message is which channel.
//!
//! A channel of an observation keeps the last number that arrived for it: several nodes may publish
//! parts of one topic, such as the joints of an arm and those of its gripper.

use std::time::{Duration, Instant};

use tectum::{Error, Result};
use tectum_control::body::BodySpec;
use tectum_control::ros::{
    Decoder, Definition, Element, Encoder, Fields, Number, Numbers, STAMP, Value,
};

use super::graph::{NO_HASH, Topic, name_fault, resolved};
use super::{Ros2Field, Ros2Settings};

/// The definition of the messages that arm the robot, and the path of their value.
const ARM: (&str, &str) = ("std_msgs/msg/Bool", "data");
/// The definition of simulated time, and the paths of its values.
const CLOCK: (&str, [&str; 2]) = ("rosgraph_msgs/msg/Clock", ["clock.sec", "clock.nanosec"]);

/// Nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;

/// What a message was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Values of channels. If the leading one is among them, `led` is the time of the message in
    /// nanoseconds, or none if it states none.
    Channels { led: Option<Option<i64>> },
    /// Whether the operator allows actions again.
    Arm(bool),
    /// The simulated time in nanoseconds.
    Clock(i64),
}

/// The topics of a node, and the latest value of each channel.
pub(crate) struct Mapping {
    body: BodySpec,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    channels: Vec<Channel>,
    /// The channel whose values complete an observation.
    leading: usize,
    has_clock: bool,
    max_age: Duration,
    observation: Vec<f32>,
}

/// A topic that is subscribed to.
struct Input {
    topic: Topic,
    decoder: Decoder,
    content: Content,
}

enum Content {
    /// The places of the channels.
    Channels {
        channels: Vec<usize>,
        /// The paths of the time in the header.
        stamp: Option<[usize; 2]>,
    },
    Arm,
    Clock,
}

/// A channel of the observation.
struct Channel {
    topic: String,
    /// The place of its path in the decoder.
    path: usize,
    /// A joint, and the place of the path of its names.
    joint: Option<(String, usize)>,
    /// When its value arrived.
    arrived: Option<Instant>,
    /// Why the last message had no value for it.
    fault: Option<String>,
}

/// A topic that is published.
struct Output {
    topic: Topic,
    encoder: Encoder,
    /// The value of each path.
    sources: Vec<Source>,
    joints: Vec<String>,
}

/// Where the value of a field of an action is from.
enum Source {
    /// A channel.
    Channel(usize),
    /// A channel, rounded to a whole number.
    Whole(usize),
    /// A channel for each joint.
    Joints(Vec<usize>),
    /// The names of the joints.
    Names,
    /// Seconds and nanoseconds of the time of sending.
    Seconds,
    Nanoseconds,
}

impl Mapping {
    /// Compiles the fields of a scenario.
    ///
    /// # Errors
    /// `Invalid` naming a channel whose topic, type, field or joint does not fit, or a name that is
    /// none.
    pub fn new(settings: &Ros2Settings) -> Result<Self> {
        Self::compile(settings).map_err(|error| Error::invalid(error.to_string()))
    }

    fn compile(settings: &Ros2Settings) -> Result<Self> {
        check_name("node", &settings.node, false)?;
        let namespace = &settings.namespace;
        if namespace != "/" {
            check_name("namespace", namespace, true)?;
        }
        if !namespace.starts_with('/') {
            return Err(Error::data(format!(
                "namespace {namespace:?} needs a slash at its beginning: \"/{namespace}\""
            )));
        }
        check_body(&settings.body)?;
        let max_age = Duration::try_from_secs_f64(settings.max_age_s).map_err(|_| {
            Error::data(format!(
                "max_age is {}, needs seconds from 0 on",
                settings.max_age_s
            ))
        })?;
        let resolve = |name: &str| resolved(name, &settings.namespace, &settings.node);
        let groups = grouped(settings, "observation", &settings.observation)?;
        let leading_topic = match &settings.trigger {
            Some(name) => resolve(name),
            None => groups
                .first()
                .map_or_else(String::new, |group| group.topic.name.clone()),
        };
        let mut channels: Vec<Option<Channel>> =
            settings.observation.iter().map(|_| None).collect();
        let mut inputs = Vec::new();
        for group in &groups {
            inputs.push(group.input(settings, &mut channels)?);
        }
        let channels: Vec<Channel> = channels.into_iter().flatten().collect();
        let leading = channels
            .iter()
            .position(|channel| channel.topic == leading_topic);
        let leading = leading.ok_or_else(|| {
            Error::data(format!(
                "trigger: the observation has no channel of the topic {leading_topic}"
            ))
        })?;
        let extra = |name: &str, definition: Definition, paths: &[&str], content: Content| {
            Ok::<Input, Error>(Input {
                topic: settings.topic(resolve(name), &definition),
                decoder: Decoder::new(&definition, paths)?,
                content,
            })
        };
        check_name("arm", &settings.arm, true)?;
        let definition = Definition::known(ARM.0)?;
        inputs.push(extra(&settings.arm, definition, &[ARM.1], Content::Arm)?);
        if let Some(clock) = &settings.clock {
            check_name("clock", clock, true)?;
            let definition = Definition::known(CLOCK.0)?;
            inputs.push(extra(clock, definition, &CLOCK.1, Content::Clock)?);
        }
        let groups = grouped(settings, "action", &settings.action)?;
        let outputs = groups.iter().map(|group| group.output(settings));
        let outputs = outputs.collect::<Result<Vec<_>>>()?;
        check_distinct(&inputs, &outputs)?;
        Ok(Self {
            observation: vec![0.0; settings.body.observation_len()],
            body: settings.body.clone(),
            inputs,
            outputs,
            channels,
            leading,
            has_clock: settings.clock.is_some(),
            max_age,
        })
    }

    /// The topics that are subscribed to.
    pub fn subscribed(&self) -> Vec<Topic> {
        self.inputs
            .iter()
            .map(|input| input.topic.clone())
            .collect()
    }

    /// The topics that are published.
    pub fn published(&self) -> Vec<Topic> {
        self.outputs
            .iter()
            .map(|output| output.topic.clone())
            .collect()
    }

    /// Reads a message of one of the topics that are subscribed to.
    ///
    /// # Errors
    /// The reason why it is not used, with the topic.
    pub fn read(
        &mut self,
        topic: usize,
        message: &[u8],
        now: Instant,
    ) -> std::result::Result<Arrival, String> {
        let Self {
            inputs,
            channels,
            body,
            observation,
            leading,
            ..
        } = self;
        let Input {
            topic,
            decoder,
            content,
        } = &mut inputs[topic];
        let fields = decoder
            .decode(message)
            .map_err(|error| format!("topic {}: {error}", topic.name))?;
        let whole = |path| {
            fields
                .number(path)
                .map_or(0, |number| number.to_f64() as i64)
        };
        let time_ns = |[seconds, nanoseconds]: [usize; 2]| {
            whole(seconds)
                .saturating_mul(SECOND)
                .saturating_add(whole(nanoseconds))
        };
        let (places, stamp) = match content {
            Content::Arm => return Ok(Arrival::Arm(whole(0) != 0)),
            Content::Clock => return Ok(Arrival::Clock(time_ns([0, 1]))),
            Content::Channels { channels, stamp } => (channels, *stamp),
        };
        let (mut is_leading, mut fault) = (false, None);
        for place in places.iter().copied() {
            let channel = &mut channels[place];
            let (own, range) = (&body.observation[place], body.range(place));
            let values = &mut observation[range];
            let taken = match &channel.joint {
                None => take_numbers(&fields, channel.path, values),
                Some((joint, names)) => take_joint(&fields, [channel.path, *names], joint, values),
            };
            match taken {
                Ok(()) => {
                    bound(values, [own.low, own.high]);
                    channel.arrived = Some(now);
                    is_leading |= place == *leading;
                }
                Err(reason) => {
                    let reason = format!("topic {}: channel {}: {reason}", topic.name, own.name);
                    channel.fault = Some(reason.clone());
                    // A joint that another node publishes is no fault.
                    fault = fault.or((channel.joint.is_none()).then_some(reason));
                }
            }
        }
        match fault {
            None => {
                // A time of 0 is one that the node did not set.
                let stamp_ns = stamp.map(time_ns).filter(|stamp_ns| *stamp_ns != 0);
                let led = is_leading.then_some(stamp_ns);
                Ok(Arrival::Channels { led })
            }
            Some(reason) => Err(reason),
        }
    }

    /// What is still missing; none when each channel has a value, and the simulated time is known if a
    /// clock is stated.
    pub fn missing(&self, has_time: bool) -> Option<String> {
        let mut reasons: Vec<String> = Vec::new();
        let absent = self
            .channels
            .iter()
            .filter(|channel| channel.arrived.is_none());
        for channel in absent {
            let none = || format!("no message has arrived on {}", channel.topic);
            let reason = channel.fault.clone().unwrap_or_else(none);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        if self.has_clock && !has_time {
            reasons.push("no simulated time has arrived".to_owned());
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// The latest value of all channels.
    ///
    /// # Errors
    /// The channel without a value that is recent enough.
    pub fn observation(&self, now: Instant) -> std::result::Result<&[f32], String> {
        let is_old = |channel: &Channel| match channel.arrived {
            Some(arrived) => now.saturating_duration_since(arrived) > self.max_age,
            None => true,
        };
        match self.channels.iter().position(is_old) {
            None => Ok(&self.observation),
            Some(place) => Err(format!(
                "topic {}: channel {} has had no value for {} s",
                self.channels[place].topic,
                self.body.observation[place].name,
                self.max_age.as_secs_f64()
            )),
        }
    }

    /// The messages of an action, each with the place of its topic.
    ///
    /// # Errors
    /// `Invalid` for a number that a field cannot have.
    pub fn messages(&self, action: &[f32], stamp_ns: i64) -> Result<Vec<(usize, Vec<u8>)>> {
        let outputs = self.outputs.iter().enumerate();
        let message = |(place, output): (usize, &Output)| {
            let mut bytes = Vec::new();
            output.encode(action, stamp_ns, &mut bytes)?;
            Ok((place, bytes))
        };
        outputs.map(message).collect()
    }
}

impl Output {
    fn encode(&self, action: &[f32], stamp_ns: i64, bytes: &mut Vec<u8>) -> Result<()> {
        let names: Vec<&str> = self.joints.iter().map(String::as_str).collect();
        let joints = self.sources.iter().map(|source| match source {
            Source::Joints(places) => places.iter().map(|place| action[*place]).collect(),
            _ => Vec::new(),
        });
        let joints: Vec<Vec<f32>> = joints.collect();
        let values = self.sources.iter().zip(&joints);
        let values: Vec<Value<'_>> = values
            .map(|(source, joints)| match source {
                Source::Channel(place) => Value::Number(Number::Float(f64::from(action[*place]))),
                Source::Whole(place) => {
                    Value::Number(Number::Signed(action[*place].round() as i64))
                }
                Source::Joints(_) => Value::Numbers(Numbers::F32(joints)),
                Source::Names => Value::Texts(&names),
                Source::Seconds => Value::Number(Number::Signed(stamp_ns.div_euclid(SECOND))),
                Source::Nanoseconds => Value::Number(Number::Signed(stamp_ns.rem_euclid(SECOND))),
            })
            .collect();
        let encoded = self.encoder.encode(&values, bytes);
        encoded.map_err(|error| error.at(format_args!("topic {}", self.topic.name)))
    }
}

/// Reads the numbers of a field.
fn take_numbers(
    fields: &Fields<'_>,
    path: usize,
    values: &mut [f32],
) -> std::result::Result<(), String> {
    let numbers = fields.numbers(path);
    if numbers.len() != values.len() {
        return Err(format!(
            "it has {} elements, the channel has {}",
            numbers.len(),
            values.len()
        ));
    }
    if fields.numbers(path).any(|number| number.to_f64().is_nan()) {
        return Err("it is not a number".to_owned());
    }
    for (value, number) in values.iter_mut().zip(numbers) {
        *value = number.to_f64() as f32;
    }
    Ok(())
}

/// Reads the number of a joint, whose place is that of its name.
fn take_joint(
    fields: &Fields<'_>,
    [path, names]: [usize; 2],
    joint: &str,
    values: &mut [f32],
) -> std::result::Result<(), String> {
    let (_, number) = fields.joint(path, names, joint).ok_or_else(|| {
        let known: Vec<&str> = fields.texts(names).collect();
        format!("no joint {joint:?} among {}", known.join(", "))
    })?;
    let number =
        number.ok_or_else(|| format!("the field has no number for the joint {joint:?}"))?;
    match number.to_f64() {
        number if number.is_nan() => Err(format!("joint {joint:?} is not a number")),
        number => {
            values.fill(number as f32);
            Ok(())
        }
    }
}

/// Infinite numbers, such as the ranges of a scan without a reflection, are the bounds of their
/// channel.
fn bound(values: &mut [f32], [low, high]: [f32; 2]) {
    for value in values.iter_mut().filter(|value| value.is_infinite()) {
        *value = value.clamp(low, high);
    }
}

/// The channels of a topic.
struct Group<'s> {
    topic: Topic,
    definition: Definition,
    /// What the channels are: `observation` or `action`.
    kind: &'static str,
    /// Place, name and field of each.
    channels: Vec<(usize, &'s str, &'s Ros2Field)>,
}

/// The channels by topic, in the order of the first one.
fn grouped<'s>(
    settings: &'s Ros2Settings,
    kind: &'static str,
    fields: &'s [Ros2Field],
) -> Result<Vec<Group<'s>>> {
    let names: Vec<&str> = match kind {
        "action" => settings.body.action.iter().map(|own| &*own.name).collect(),
        _ => settings
            .body
            .observation
            .iter()
            .map(|own| &*own.name)
            .collect(),
    };
    if names.len() != fields.len() {
        return Err(Error::data(format!(
            "the {kind} has {} channels and {} fields",
            names.len(),
            fields.len()
        )));
    }
    let mut groups: Vec<Group<'s>> = Vec::new();
    for (place, (name, field)) in names.into_iter().zip(fields).enumerate() {
        let at = |error: Error| error.at(format_args!("{kind} {name}"));
        check_name("topic", &field.topic, true).map_err(at)?;
        let path = resolved(&field.topic, &settings.namespace, &settings.node);
        let channel = (place, name, field);
        match groups.iter_mut().find(|group| group.topic.name == path) {
            Some(group) if group.topic.kind == field.kind => group.channels.push(channel),
            Some(group) => {
                return Err(at(Error::data(format!(
                    "topic {path} has the type {:?} here and {:?} above",
                    field.kind, group.topic.kind
                ))));
            }
            None => {
                let definition = Definition::known(&field.kind).map_err(at)?;
                groups.push(Group {
                    topic: settings.topic(path, &definition),
                    definition,
                    kind,
                    channels: vec![channel],
                });
            }
        }
    }
    Ok(groups)
}

impl Group<'_> {
    /// Checks a field on its own, so that the error names its channel. Returns whether it is of
    /// whole numbers.
    fn check_field(&self, name: &str, field: &Ros2Field, is_array: bool) -> Result<bool> {
        let at = |error: Error| error.at(format_args!("{} {name}", self.kind));
        let decoder = Decoder::new(&self.definition, &[&field.field]).map_err(at)?;
        let kind = decoder.kind(0);
        let number = kind.and_then(|kind| match kind.element {
            Element::Number(primitive) => Some((primitive, kind.is_array())),
            _ => None,
        });
        let path = &field.field;
        match (number, &field.joint) {
            (None, _) => Err(at(Error::data(format!("field {path:?} has no numbers")))),
            (Some((_, false)), Some(joint)) => Err(at(Error::data(format!(
                "field {path:?} is one number; joint {joint:?} needs a list with one for each joint"
            )))),
            (Some((_, true)), None) if !is_array => Err(at(Error::data(format!(
                "field {path:?} is an array: an index ({path}[0]), a joint or a shape is needed"
            )))),
            (Some((_, false)), None) if is_array => Err(at(Error::data(format!(
                "field {path:?} is one number, the channel has a shape"
            )))),
            (Some((primitive, _)), _) => Ok(primitive.whole_range().is_some()),
        }
    }

    /// Whether the type has a header with a time.
    fn has_stamp(&self) -> bool {
        Decoder::new(&self.definition, &STAMP).is_ok()
    }

    /// The path of the names of joints that belong to a channel.
    fn names_path(&self, name: &str, field: &Ros2Field) -> Result<String> {
        self.definition.joint_names(&field.field).ok_or_else(|| {
            let own = self.definition.name();
            let error = Error::data(format!("{own} has no names of joints"));
            error.at(format_args!("{} {name}", self.kind))
        })
    }

    fn input(&self, settings: &Ros2Settings, channels: &mut [Option<Channel>]) -> Result<Input> {
        let mut paths: Vec<String> = Vec::new();
        for (place, name, field) in &self.channels {
            let is_array = settings.body.observation[*place].is_array();
            self.check_field(name, field, is_array)?;
            if is_array && field.joint.is_some() {
                let error = Error::data("a joint is one number, the channel has a shape");
                return Err(error.at(format_args!("observation {name}")));
            }
            let path = place_of(&mut paths, &field.field);
            let joint = field.joint.as_ref().map(|joint| {
                let names = self.names_path(name, field)?;
                Ok::<_, Error>((joint.clone(), place_of(&mut paths, &names)))
            });
            channels[*place] = Some(Channel {
                topic: self.topic.name.clone(),
                path,
                joint: joint.transpose()?,
                arrived: None,
                fault: None,
            });
        }
        let stamp = self
            .has_stamp()
            .then(|| STAMP.map(|path| place_of(&mut paths, path)));
        Ok(Input {
            topic: self.topic.clone(),
            decoder: Decoder::new(&self.definition, &paths)?,
            content: Content::Channels {
                channels: self.channels.iter().map(|(place, ..)| *place).collect(),
                stamp,
            },
        })
    }

    fn output(&self, settings: &Ros2Settings) -> Result<Output> {
        let mut joints: Vec<String> = Vec::new();
        for joint in self
            .channels
            .iter()
            .filter_map(|(.., field)| field.joint.as_ref())
        {
            if !joints.contains(joint) {
                joints.push(joint.clone());
            }
        }
        let (mut paths, mut sources) = (Vec::new(), Vec::new());
        let mut names = None;
        for (place, name, field) in &self.channels {
            let is_whole = self.check_field(name, field, false)?;
            let path = field.field.as_str();
            if field.joint.is_none() {
                paths.push(path);
                sources.push(match is_whole {
                    true => Source::Whole(*place),
                    false => Source::Channel(*place),
                });
                continue;
            }
            names = Some(self.names_path(name, field)?);
            if !paths.contains(&path) {
                paths.push(path);
                sources.push(Source::Joints(self.places_of(path, &joints)?));
            }
        }
        if let Some(path) = &names {
            paths.push(path);
            sources.push(Source::Names);
        }
        if self.has_stamp() && !paths.contains(&STAMP[0]) {
            paths.extend(STAMP);
            sources.extend([Source::Seconds, Source::Nanoseconds]);
        }
        let output = Output {
            topic: self.topic.clone(),
            encoder: Encoder::new(&self.definition, &paths)?,
            sources,
            joints,
        };
        // What lies between two numbers that a field can have is one that it can have.
        let action = &settings.body.action;
        let lows: Vec<f32> = action.iter().map(|channel| channel.low).collect();
        let highs: Vec<f32> = action.iter().map(|channel| channel.high).collect();
        for action in [&lows, &highs, &settings.body.safe_action] {
            output.encode(action, 0, &mut Vec::new())?;
        }
        Ok(output)
    }

    /// The channel of each joint in a field.
    fn places_of(&self, path: &str, joints: &[String]) -> Result<Vec<usize>> {
        let place = |joint: &String| {
            let mut own = self
                .channels
                .iter()
                .filter(|(.., field)| field.field == path && field.joint.as_ref() == Some(joint));
            match (own.next(), own.next()) {
                (Some((place, ..)), None) => Ok(*place),
                (None, _) => Err(Error::data(format!(
                    "topic {}: the action has no channel for {path:?} of joint {joint:?}, which it has another field of",
                    self.topic.name
                ))),
                (Some(_), Some((_, name, _))) => Err(Error::data(format!(
                    "action {name}: another channel has {path:?} of joint {joint:?}"
                ))),
            }
        };
        joints.iter().map(place).collect()
    }
}

/// Refuses a body whose bounds or safe action are not those of its channels.
fn check_body(body: &BodySpec) -> Result<()> {
    body.check()?;
    let observation = body.observation.iter();
    let observation = observation.map(|own| (&own.name, own.low, own.high));
    let action = body.action.iter().map(|own| (&own.name, own.low, own.high));
    // Also of bounds that are no numbers.
    let is_range = |(_, low, high): &(&String, f32, f32)| low <= high;
    let bad = observation.chain(action).find(|own| !is_range(own));
    if let Some((name, low, high)) = bad {
        return Err(Error::data(format!(
            "channel {name}: the range is {low} to {high}, the lower bound is needed first"
        )));
    }
    match body.safe_action.len() == body.action.len() {
        true => Ok(()),
        false => Err(Error::data(format!(
            "the safe action has {} numbers, the action has {} channels",
            body.safe_action.len(),
            body.action.len()
        ))),
    }
}

/// The place of a path in a list, which gets it if it lacks it.
fn place_of(paths: &mut Vec<String>, path: &str) -> usize {
    match paths.iter().position(|known| *known == path) {
        Some(place) => place,
        None => {
            paths.push(path.to_owned());
            paths.len() - 1
        }
    }
}

/// A topic has one meaning: no message is read in two ways, and none of the node itself is read.
fn check_distinct(inputs: &[Input], outputs: &[Output]) -> Result<()> {
    let names = inputs.iter().map(|input| &input.topic.name);
    let names = names.chain(outputs.iter().map(|output| &output.topic.name));
    let names: Vec<&String> = names.collect();
    let twice = names
        .iter()
        .enumerate()
        .find(|(place, name)| names[..*place].contains(name));
    match twice {
        None => Ok(()),
        Some((_, name)) => Err(Error::data(format!(
            "topic {name} is stated twice: as observation, action, clock or arm"
        ))),
    }
}

fn check_name(key: &str, name: &str, is_path: bool) -> Result<()> {
    match name_fault(name, is_path) {
        None => Ok(()),
        Some(fault) => Err(Error::data(format!("{key} {name:?} {fault}"))),
    }
}

impl Ros2Settings {
    fn topic(&self, name: String, definition: &Definition) -> Topic {
        Topic {
            name,
            kind: definition.name().to_owned(),
            hash: match self.has_type_hashes {
                true => definition.type_hash(),
                false => NO_HASH.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tectum_control::body::{ActionChannel, ObservationChannel};

    use super::*;
    use crate::Address;

    const JOINTS: &str = "sensor_msgs/msg/JointState";

    fn field(topic: &str, kind: &str, path: &str, joint: Option<&str>) -> Ros2Field {
        Ros2Field {
            topic: topic.to_owned(),
            kind: kind.to_owned(),
            field: path.to_owned(),
            joint: joint.map(str::to_owned),
        }
    }

    fn mapping() -> Mapping {
        let number = |name: &str| ObservationChannel::new(name, "", -10.0..=10.0);
        let body = BodySpec {
            name: "robot".into(),
            dt_s: 0.02,
            observation: vec![
                number("hip"),
                number("grip"),
                number("ranges").array([3], tectum_control::message::ElementType::F32),
            ],
            action: vec![ActionChannel::new("u", "", -1.0..=1.0)],
            safe_action: vec![0.0],
        };
        let address = Address::parse_zenoh("tcp/127.0.0.1:1").expect("an address");
        let settings = Ros2Settings {
            observation: vec![
                field("joints", JOINTS, "position", Some("hip")),
                field("joints", JOINTS, "position", Some("grip")),
                field("scan", "sensor_msgs/msg/LaserScan", "ranges", None),
            ],
            action: vec![field(
                "u",
                "std_msgs/msg/Float64MultiArray",
                "data[0]",
                None,
            )],
            ..Ros2Settings::new(address, body)
        };
        Mapping::new(&settings).expect("valid")
    }

    fn joints(names: &[&str], position: &[f64], seconds: i64) -> Vec<u8> {
        let definition = Definition::known(JOINTS).expect("known");
        let paths = ["header.stamp.sec", "name", "position"];
        let encoder = Encoder::new(&definition, &paths).expect("its fields");
        let mut bytes = Vec::new();
        let values = [
            Value::Number(Number::Signed(seconds)),
            Value::Texts(names),
            Value::Numbers(Numbers::F64(position)),
        ];
        encoder.encode(&values, &mut bytes).expect("they fit");
        bytes
    }

    fn scan(ranges: &[f64]) -> Vec<u8> {
        let definition = Definition::known("sensor_msgs/msg/LaserScan").expect("known");
        let encoder = Encoder::new(&definition, &["ranges"]).expect("its field");
        let mut bytes = Vec::new();
        let values = [Value::Numbers(Numbers::F64(ranges))];
        encoder.encode(&values, &mut bytes).expect("they fit");
        bytes
    }

    #[test]
    fn joints_of_several_nodes_complete_an_observation() {
        let (mut mapping, now) = (mapping(), Instant::now());
        let led = |led| Ok(Arrival::Channels { led });
        assert_eq!(
            mapping.missing(false).as_deref(),
            Some("no message has arrived on /joints; no message has arrived on /scan")
        );
        let arm = joints(&["elbow", "hip"], &[9.0, 1.5], 7);
        assert_eq!(mapping.read(0, &arm, now), led(Some(Some(7_000_000_000))));
        assert_eq!(
            mapping.missing(false).as_deref(),
            Some(
                "topic /joints: channel grip: no joint \"grip\" among elbow, hip; no message has arrived on /scan"
            )
        );
        let hand = joints(&["grip"], &[0.25], 0);
        assert_eq!(mapping.read(0, &hand, now), led(None));
        assert_eq!(mapping.read(1, &scan(&[1.0, 2.0, 3.0]), now), led(None));
        assert_eq!(mapping.missing(false), None);
        let later = now + Duration::from_millis(400);
        let expected = Ok(&[1.5, 0.25, 1.0, 2.0, 3.0][..]);
        assert_eq!(mapping.observation(later), expected);
        // A time of 0 is none.
        let arm = joints(&["hip"], &[2.5], 0);
        assert_eq!(mapping.read(0, &arm, later), led(Some(None)));
        let latest = now + Duration::from_millis(600);
        assert_eq!(
            mapping.observation(latest).expect_err("the hand is old"),
            "topic /joints: channel grip has had no value for 0.5 s"
        );
    }

    #[test]
    fn numbers_that_cannot_be_used_keep_the_value_before() {
        let (mut mapping, now) = (mapping(), Instant::now());
        let inf = f64::INFINITY;
        mapping
            .read(0, &joints(&["hip", "grip"], &[1.0, 2.0], 0), now)
            .expect("used");
        mapping
            .read(1, &scan(&[inf, 5.0, -inf]), now)
            .expect("used");
        let expected = Ok(&[1.0, 2.0, 10.0, 5.0, -10.0][..]);
        assert_eq!(mapping.observation(now), expected);
        // A part of a joint's numbers is no fault: other nodes may have them.
        let led = Ok(Arrival::Channels { led: None });
        assert_eq!(mapping.read(0, &joints(&["hip"], &[f64::NAN], 0), now), led);
        assert_eq!(mapping.read(0, &joints(&["a", "hip"], &[4.0], 0), now), led);
        for (message, reason) in [
            (
                scan(&[1.0, 2.0]),
                "topic /scan: channel ranges: it has 2 elements, the channel has 3",
            ),
            (
                scan(&[1.0, f64::NAN, 3.0]),
                "topic /scan: channel ranges: it is not a number",
            ),
        ] {
            assert_eq!(mapping.read(1, &message, now).expect_err("refused"), reason);
        }
        for length in 0..scan(&[1.0; 3]).len() {
            let error = mapping.read(1, &scan(&[1.0; 3])[..length], now);
            let error = error.expect_err("a part of a message");
            assert!(error.starts_with("topic /scan: "), "{error}");
        }
        assert_eq!(mapping.observation(now), expected);
    }
}
