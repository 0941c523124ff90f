//! Reading recordings.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::records::{self, Message};
use super::{
    ACTION_TOPIC, ARRAY_PREFIX, COMMAND_TOPIC, OBSERVATION_TOPIC, TICK_FIELDS, TICK_TOPIC, arrays,
};
use crate::body::link::LinkState;
use crate::message::Array;

/// A recording in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Names of the numbers of an observation.
    pub observation_names: Vec<String>,
    /// Names of the arrays of an observation.
    pub array_names: Vec<String>,
    /// Names of the numbers of an action.
    pub action_names: Vec<String>,
    /// Names of the brain's commands, if a caller set any.
    pub command_names: Vec<String>,
    /// Name of what the task measured, if there was a task.
    pub measure_name: Option<String>,
    /// The periods in order.
    pub ticks: Vec<TraceTick>,
    /// Messages on all channels.
    pub messages: usize,
}

/// A period of a recording; see [`TickRecord`](crate::closed_loop::TickRecord).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceTick {
    /// Number of the period.
    pub tick: u64,
    /// Its beginning, nanoseconds.
    pub time_ns: u64,
    /// One number for each name; NaN where none was recorded.
    pub observation: Vec<f64>,
    /// One array for each name.
    pub arrays: Vec<Array>,
    /// One number for each name; NaN where none was recorded.
    pub action: Vec<f64>,
    /// What callers had set of the commands from this period on, where it changed: NaN for one
    /// that followed its schedule.
    pub commands: Option<Vec<f64>>,
    /// What the task measured; NaN where nothing was recorded.
    pub measure: f64,
    /// The score; NaN where none was recorded.
    pub reward: f64,
    /// The answer was late.
    pub held: bool,
    /// The brain failed.
    pub fallback: bool,
    /// The episode ended.
    pub terminated: bool,
    /// Host time of the answer, if measured.
    pub latency_ms: Option<f64>,
    /// From the beginning of the period to its observation, if measured.
    pub lateness_ms: Option<f64>,
    /// The connection of a body outside of the process.
    pub link: Option<LinkState>,
    /// From the arrival of the last observation to the period, if measured.
    pub observation_age_ms: Option<f64>,
    /// From the sending of the action that the body had applied to the period, if measured.
    pub action_age_ms: Option<f64>,
    /// From the arrival of the observation to its use, if measured.
    pub queue_ms: Option<f64>,
    /// The last round trip over the connection, if measured.
    pub network_ms: Option<f64>,
}

/// What callers set of a brain's commands in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedCommands {
    /// The commands in order.
    pub names: Vec<String>,
    /// The number of a period, counted from the first of the recording, and the values from then on:
    /// NaN for a command that followed its schedule.
    pub values: Vec<(u64, Vec<f64>)>,
}

impl Trace {
    /// What callers set of the brain's commands.
    pub fn commands(&self) -> RecordedCommands {
        let ticks = (0..).zip(&self.ticks);
        RecordedCommands {
            names: self.command_names.clone(),
            values: ticks
                .filter_map(|(place, tick)| Some((place, tick.commands.clone()?)))
                .collect(),
        }
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// `Io` or `Data` naming the path.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io(path.display(), source))?;
        Self::of(&mut BufReader::new(file)).map_err(|error| error.at(path.display()))
    }

    /// Reads a recording from the bytes of the file, up to the end of its data; the summary after
    /// it is not needed.
    ///
    /// # Errors
    /// `Data` for bytes that are not such a recording, naming the message: each period needs one
    /// observation, one action and one tick, with the same channels throughout.
    pub fn parse(mut bytes: &[u8]) -> Result<Self> {
        Self::of(&mut bytes)
    }

    fn of(source: &mut dyn Read) -> Result<Self> {
        let mut trace = Self::default();
        let mut open = TraceTick::default();
        records::messages(source, &mut |message| {
            let place = trace.messages;
            trace.messages += 1;
            trace
                .take(&message, &mut open)
                .map_err(|error| error.at(format_args!("message {place}")))
        })?;
        Ok(trace)
    }

    fn take(&mut self, message: &Message<'_>, open: &mut TraceTick) -> Result<()> {
        let fields: Map<String, Value> = serde_json::from_slice(message.data)
            .map_err(|source| Error::data("not a JSON object").with_source(source))?;
        match message.channel.topic.as_str() {
            OBSERVATION_TOPIC => {
                take_numbers(&fields, &mut self.observation_names, &mut open.observation)
            }
            ACTION_TOPIC => take_numbers(&fields, &mut self.action_names, &mut open.action),
            COMMAND_TOPIC => {
                let mut commands = open.commands.take().unwrap_or_default();
                take_numbers(&fields, &mut self.command_names, &mut commands)?;
                open.commands = Some(commands);
                Ok(())
            }
            TICK_TOPIC => {
                let measure = fields
                    .iter()
                    .find(|(name, _)| TICK_FIELDS.iter().all(|(known, ..)| known != name));
                if self.ticks.is_empty() {
                    self.measure_name = measure.map(|(name, _)| name.clone());
                }
                open.measure = measure.map_or(f64::NAN, |(_, value)| number(value));
                if open.arrays.len() != self.array_names.len() {
                    return Err(Error::data(format!(
                        "a period with {} arrays; {} are needed",
                        open.arrays.len(),
                        self.array_names.len()
                    )));
                }
                closed(std::mem::take(open), &fields, message.log_time_ns)
                    .map(|tick| self.ticks.push(tick))
            }
            topic => match topic.strip_prefix(ARRAY_PREFIX) {
                Some(name) => self.take_array(name, &fields, open),
                None => Ok(()),
            },
        }
    }

    /// Reads an array, which must have the same place, shape and elements in each period.
    fn take_array(
        &mut self,
        name: &str,
        fields: &Map<String, Value>,
        open: &mut TraceTick,
    ) -> Result<()> {
        let array = arrays::read(fields).map_err(|error| error.at(name))?;
        let place = open.arrays.len();
        if self.ticks.is_empty() {
            self.array_names.push(name.to_owned());
        } else if self
            .array_names
            .get(place)
            .is_none_or(|known| known != name)
        {
            return Err(Error::data(format!(
                "array {name}: {:?} are needed",
                self.array_names.join(", ")
            )));
        }
        let known = self.ticks.first().map(|tick| &tick.arrays[place]);
        if known.is_some_and(|known| (&known.shape, known.element) != (&array.shape, array.element))
        {
            return Err(Error::data(format!(
                "array {name}: its shape is {:?} of {}, not that of the first period",
                array.shape,
                array.element.name()
            )));
        }
        open.arrays.push(array);
        Ok(())
    }
}

/// Reads the numbers of a message, which must have the same channels as the first of its kind.
fn take_numbers(
    fields: &Map<String, Value>,
    names: &mut Vec<String>,
    numbers: &mut Vec<f64>,
) -> Result<()> {
    if names.is_empty() {
        names.extend(fields.keys().cloned());
    }
    if names.is_empty() || !names.iter().eq(fields.keys()) {
        let found = fields.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(Error::data(format!(
            "channels {found:?}; {:?} are needed",
            names.join(", ")
        )));
    } else if !numbers.is_empty() {
        return Err(Error::data("the second of its kind in one period"));
    }
    numbers.extend(fields.values().map(number));
    Ok(())
}

fn closed(open: TraceTick, fields: &Map<String, Value>, time_ns: u64) -> Result<TraceTick> {
    if open.observation.is_empty() && open.arrays.is_empty() || open.action.is_empty() {
        return Err(Error::data("a period without an observation or an action"));
    }
    let field = |name: &str| {
        fields
            .get(name)
            .ok_or_else(|| Error::data(format!("a {TICK_TOPIC} message has no {name}")))
    };
    let is = |name: &str| field(name).map(|value| value.as_bool().unwrap_or(false));
    let link = fields.get("link").and_then(Value::as_str);
    let number_of = |name: &str| fields.get(name).and_then(Value::as_f64);
    Ok(TraceTick {
        tick: field("tick")?
            .as_u64()
            .ok_or_else(|| Error::data(format!("a {TICK_TOPIC} message has no number")))?,
        time_ns,
        reward: number(field("reward")?),
        held: is("held")?,
        fallback: is("fallback")?,
        terminated: is("terminated")?,
        latency_ms: number_of("latency_ms"),
        lateness_ms: number_of("lateness_ms"),
        link: link.and_then(LinkState::from_name),
        observation_age_ms: number_of("observation_age_ms"),
        action_age_ms: number_of("action_age_ms"),
        queue_ms: number_of("queue_ms"),
        network_ms: number_of("network_ms"),
        ..open
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
