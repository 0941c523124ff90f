//! Recordings of runs as MCAP files, which Foxglove and Rerun open.
//!
//! Three channels of JSON messages with their schemas, one message per period on each:
//! `/observation` and `/action` have a number for each channel of the body by name, `/tick` the
//! number of the period, the task's measure by name, `reward`, `held`, `fallback`, `terminated`
//! and, where they were measured, `latency_ms` and `lateness_ms`; for a body outside of the process
//! also `link`, the state of its connection, with the times that were measured. `/command` has what
//! callers set of the brain's commands, in the periods in which it changed, by name; `null` follows
//! the schedule. Times are the
//! body's, from 0 at tick 0. A number that is not finite is `null`. A channel that is an array has a
//! topic of its own, `/observation/NAME`: `shape`, `dtype` (a code of NumPy) and `data`, its bytes
//! in C order as base64. Those of a picture have the fields of a `foxglove.RawImage` too, so that
//! viewers show it.
//!
//! That of a run folder begins with the metadata record `tectum.run`: the names of body and brain,
//! and the scenario. The file contains nothing else: no date, no machine name. Identical runs give
//! identical bytes.

mod arrays;
pub(crate) mod fields;
pub(crate) mod records;
#[cfg(feature = "genome")]
mod spikes;
pub(crate) mod topics;
mod trace;
#[cfg_attr(not(feature = "mcap"), path = "recording/left_out.rs")]
mod writer;

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use serde_json::{Map, Value, json};
use tectum::{Error, Result};

use crate::body::BodySpec;
use crate::body::link::LinkStatus;
use crate::body::task::Measure;
use crate::brain::commands::CommandChannel;
use crate::closed_loop::TickRecord;
use arrays::ArrayTopic;
pub use records::{RecoveredRecording, recover_recording};
#[cfg(feature = "genome")]
pub use spikes::SpikeRecorder;
pub use topics::{RecordingContents, TopicContents};
pub use trace::{RecordedCommands, Trace, TraceTick};
use writer::Writer;

const OBSERVATION_TOPIC: &str = "/observation";
/// How the topics of arrays begin; the name of the channel follows.
const ARRAY_PREFIX: &str = "/observation/";
const ACTION_TOPIC: &str = "/action";
const TICK_TOPIC: &str = "/tick";
const COMMAND_TOPIC: &str = "/command";
/// Periods of a chunk. A killed run loses the last chunk; a number of periods and not a time, so
/// that identical runs give identical bytes.
const FLUSH_PERIODS: u32 = 50;

/// Writes a recording, period by period.
pub struct Recorder<W: Write + Seek> {
    writer: Writer<W>,
    observation: Topic,
    arrays: Vec<ArrayTopic>,
    action: Topic,
    tick_id: u16,
    /// None for a brain without commands.
    command: Option<Topic>,
    /// The name of the task's measure.
    measure: Option<String>,
    /// Periods since the last flush.
    unflushed: u32,
    json: Vec<u8>,
}

struct Topic {
    id: u16,
    /// Each number with its place.
    names: Vec<(String, usize)>,
}

impl<W: Write + Seek> Recorder<W> {
    /// Begins a recording of a body, and of what its task measures.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn new(file: W, body: &BodySpec, measure: Option<&Measure>) -> Result<Self> {
        let mut writer = Writer::new(file)?;
        let channels = body.observation.iter().zip(body.ranges());
        let observation = channels
            .clone()
            .filter(|(channel, _)| !channel.is_array())
            .map(|(channel, range)| (&*channel.name, &*channel.unit, range.start));
        let action = body.action.iter().zip(0..);
        let action = action.map(|(channel, place)| (&*channel.name, &*channel.unit, place));
        let observation = numbers_topic(
            &mut writer,
            OBSERVATION_TOPIC,
            "tectum.Observation",
            observation,
        )?;
        let action = numbers_topic(&mut writer, ACTION_TOPIC, "tectum.Action", action)?;
        let arrays = channels
            .filter(|(channel, _)| channel.is_array())
            .map(|(channel, range)| ArrayTopic::new(&mut writer, channel, range))
            .collect::<Result<_>>()?;
        let tick_id = writer.add_channel(TICK_TOPIC, "tectum.Tick", &tick_schema(measure))?;
        let measure = measure.map(|measure| measure.name.to_string());
        Ok(Self {
            writer,
            observation,
            arrays,
            action,
            tick_id,
            command: None,
            measure,
            unflushed: 0,
            json: Vec::with_capacity(512),
        })
    }

    /// Adds a topic for the commands of the brain, before the first period.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn add_commands(&mut self, commands: &[CommandChannel]) -> Result<()> {
        if !commands.is_empty() {
            let channels = commands.iter().zip(0..);
            let channels = channels.map(|(channel, place)| (&*channel.name, &*channel.unit, place));
            let (writer, name) = (&mut self.writer, "tectum.Command");
            self.command = Some(numbers_topic(writer, COMMAND_TOPIC, name, channels)?);
        }
        Ok(())
    }

    /// Adds a metadata record: texts by name, for people and viewers. It is not a message of a
    /// topic.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn add_metadata(&mut self, name: &str, texts: BTreeMap<String, String>) -> Result<()> {
        self.writer.write_metadata(name, texts)
    }

    /// Adds a period.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn push(&mut self, record: &TickRecord<'_>) -> Result<()> {
        if !self.observation.names.is_empty() {
            write_numbers(&mut self.json, &self.observation.names, record.observation)?;
            self.send(self.observation.id, record)?;
        }
        for array in &self.arrays {
            array.write(&mut self.json, record)?;
            self.writer
                .write(array.id, record.tick as u32, record.time_ns, &self.json)?;
        }
        write_numbers(&mut self.json, &self.action.names, record.action)?;
        self.send(self.action.id, record)?;
        if let (Some(topic), Some(commands)) = (&self.command, record.commands) {
            write_numbers(&mut self.json, &topic.names, commands)?;
            self.send(topic.id, record)?;
        }
        write_tick(&mut self.json, self.measure.as_deref(), record)?;
        self.send(self.tick_id, record)?;
        self.unflushed += 1;
        if self.unflushed >= FLUSH_PERIODS {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Ends the chunk and writes it to the file: after a kill, [`recover_recording`] restores the
    /// recording up to here.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.unflushed = 0;
        self.writer.flush()
    }

    /// Writes the index and returns the file.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn finish(self) -> Result<W> {
        self.writer.finish()
    }

    fn send(&mut self, channel_id: u16, record: &TickRecord<'_>) -> Result<()> {
        self.writer
            .write(channel_id, record.tick as u32, record.time_ns, &self.json)
    }
}

fn numbers_topic<'n, W: Write + Seek>(
    writer: &mut Writer<W>,
    topic: &str,
    name: &str,
    channels: impl Iterator<Item = (&'n str, &'n str, usize)> + Clone,
) -> Result<Topic> {
    let number = |(name, unit, _): (&str, &str, usize)| {
        (
            name.to_owned(),
            json!({ "type": ["number", "null"], "description": unit }),
        )
    };
    let properties = channels.clone().map(number).collect::<Map<_, _>>();
    let schema = json!({ "title": name, "type": "object", "properties": properties });
    Ok(Topic {
        id: writer.add_channel(topic, name, &schema)?,
        names: channels
            .map(|(name, _, place)| (name.to_owned(), place))
            .collect(),
    })
}

/// The fields of a period on [`TICK_TOPIC`] besides the task's measure: name, JSON type and
/// meaning.
const TICK_FIELDS: [(&str, &[&str], &str); 12] = [
    ("tick", &["integer"], "number of the period"),
    (
        "reward",
        &["number", "null"],
        "the body's score of the step",
    ),
    (
        "held",
        &["boolean"],
        "the answer was late, or the body sent no new observation",
    ),
    (
        "fallback",
        &["boolean"],
        "the brain failed; the action is the safe one",
    ),
    ("terminated", &["boolean"], "the episode ended"),
    ("latency_ms", &["number"], "host time of the answer"),
    (
        "lateness_ms",
        &["number"],
        "from the beginning of the period to its observation",
    ),
    (
        "link",
        &["string"],
        "the connection of a body outside of the process: fresh, held, waiting, stale, disconnected or disarmed",
    ),
    (
        "observation_age_ms",
        &["number"],
        "from the arrival of the last observation to the period",
    ),
    (
        "action_age_ms",
        &["number"],
        "from the sending of the action that the body had applied before its observation to the period",
    ),
    (
        "queue_ms",
        &["number"],
        "from the arrival of the observation to its use",
    ),
    (
        "network_ms",
        &["number"],
        "the last round trip over the connection",
    ),
];

/// Topics, fields and their meaning, for the reference of scenarios.
pub(crate) fn topic_rows() -> Vec<[String; 3]> {
    let numbers = [
        (OBSERVATION_TOPIC, "the observation at its beginning"),
        (ACTION_TOPIC, "the action that the body got"),
    ];
    let numbers =
        numbers.map(|(topic, meaning)| [topic, "a number for each channel, by name", meaning]);
    let commands = [
        COMMAND_TOPIC,
        "a number for each command, by name",
        "what callers set of the brain's commands, where it changed; `null` follows the schedule",
    ];
    let arrays = [
        "/observation/NAME",
        "`shape`, `dtype`, `data`",
        "a channel that is an array: its bytes in base64; pictures have the fields of `foxglove.RawImage` too",
    ];
    let measure = [
        TICK_TOPIC,
        "the task's measure, by its name",
        "what the task measured at its beginning",
    ];
    let fields = TICK_FIELDS.map(|(name, _, meaning)| {
        [
            TICK_TOPIC.to_owned(),
            format!("`{name}`"),
            meaning.to_owned(),
        ]
    });
    numbers
        .into_iter()
        .chain([arrays, commands, measure])
        .map(|row| row.map(str::to_owned))
        .chain(fields)
        .collect()
}

fn tick_schema(measure: Option<&Measure>) -> Value {
    let kind = |kinds: &[&str]| {
        if let [kind] = kinds {
            json!(kind)
        } else {
            json!(kinds)
        }
    };
    let measure = measure.map(|measure| {
        (
            measure.name.to_string(),
            kind(&["number", "null"]),
            format!("{} at its beginning", measure.description),
        )
    });
    let mut fields: Vec<_> = TICK_FIELDS
        .iter()
        .map(|(name, kinds, description)| {
            ((*name).to_owned(), kind(kinds), (*description).to_owned())
        })
        .collect();
    fields.splice(1..1, measure);
    let properties = fields
        .into_iter()
        .map(|(name, kind, description)| {
            (name, json!({ "type": kind, "description": description }))
        })
        .collect::<Map<_, _>>();
    json!({ "title": "tectum.Tick", "type": "object", "properties": properties })
}

fn write_numbers<N: Copy + Into<f64> + std::fmt::Display>(
    json: &mut Vec<u8>,
    names: &[(String, usize)],
    numbers: &[N],
) -> Result<()> {
    json.clear();
    json.push(b'{');
    for (index, (name, place)) in names.iter().enumerate() {
        let (comma, number) = (if index == 0 { "" } else { "," }, &numbers[*place]);
        write!(
            json,
            "{comma}\"{name}\":{}",
            Number((*number).into(), number)
        )
        .map_err(unformattable)?;
    }
    json.push(b'}');
    Ok(())
}

fn write_tick(json: &mut Vec<u8>, measure: Option<&str>, record: &TickRecord<'_>) -> Result<()> {
    json.clear();
    let TickRecord {
        tick,
        held,
        fallback,
        terminated,
        ..
    } = record;
    write!(json, "{{\"tick\":{tick}").map_err(unformattable)?;
    if let Some(name) = measure {
        write!(
            json,
            ",\"{name}\":{}",
            Number(record.measure, &record.measure)
        )
        .map_err(unformattable)?;
    }
    let reward = Number(record.reward, &record.reward);
    write!(
        json,
        ",\"reward\":{reward},\"held\":{held},\"fallback\":{fallback},\"terminated\":{terminated}"
    )
    .map_err(unformattable)?;
    if let Some(timing) = record.timing {
        let (latency_ms, lateness_ms) = (
            timing.latency_ns as f64 / 1e6,
            timing.lateness_ns as f64 / 1e6,
        );
        write!(
            json,
            ",\"latency_ms\":{latency_ms},\"lateness_ms\":{lateness_ms}"
        )
        .map_err(unformattable)?;
    }
    record.link.map_or(Ok(()), |link| write_link(json, &link))?;
    json.push(b'}');
    Ok(())
}

/// Writes the fields of a connection, without times that were not measured.
fn write_link(json: &mut Vec<u8>, link: &LinkStatus) -> Result<()> {
    write!(json, ",\"link\":\"{}\"", link.state.name()).map_err(unformattable)?;
    for (name, ns) in [
        ("observation_age_ms", link.observation_age_ns),
        ("action_age_ms", link.action_age_ns),
        ("queue_ms", link.queue_ns),
        ("network_ms", link.network_ns),
    ] {
        if let Some(ns) = ns {
            write!(json, ",\"{name}\":{}", ns as f64 / 1e6).map_err(unformattable)?;
        }
    }
    Ok(())
}

/// A number in the shortest form that parses to the same value, or `null` if JSON cannot represent
/// it.
struct Number<'n, T>(f64, &'n T);

impl<T: std::fmt::Display> std::fmt::Display for Number<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_finite() {
            self.1.fmt(f)
        } else {
            f.write_str("null")
        }
    }
}

fn unformattable(source: std::io::Error) -> Error {
    Error::io("recording", source)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Recorder, Trace};
    use crate::body::{ActionChannel, BodySpec, ObservationChannel, body, pendulum};
    use crate::closed_loop::{TickRecord, Timing};
    use crate::message::ElementType;

    #[test]
    fn what_was_recorded_is_read_back_and_the_same_run_gives_the_same_bytes() {
        let body = body("pendulum", None).expect("known");
        let record = |tick: u64| TickRecord {
            tick,
            time_ns: tick * 50_000_000,
            observation: &[0.1, f32::NAN],
            action: &[-2.0],
            measure: 0.1,
            reward: -1e-7,
            held: tick == 2,
            fallback: false,
            terminated: false,
            timing: (tick == 3).then_some(Timing {
                latency_ns: 1_500_000,
                lateness_ns: 2_000,
            }),
            link: None,
            commands: None,
        };
        let write = || {
            let mut recorder = Recorder::new(
                Cursor::new(Vec::new()),
                body.spec(),
                Some((pendulum::DESCRIPTOR.task)().measure()),
            )
            .expect("in memory");
            for tick in 1..=3 {
                recorder.push(&record(tick)).expect("in memory");
            }
            recorder.finish().expect("in memory").into_inner()
        };
        let bytes = write();
        assert_eq!(bytes, write());
        let trace = Trace::parse(&bytes).expect("an MCAP file");
        assert_eq!(
            (
                trace.observation_names.as_slice(),
                trace.action_names.as_slice()
            ),
            (
                &["angle".into(), "speed".into()][..],
                &["torque".into()][..]
            )
        );
        assert_eq!(
            (trace.messages, trace.measure_name.as_deref()),
            (9, Some("angle_rad"))
        );
        let outside = mcap::MessageStream::new(&bytes)
            .expect("an MCAP file")
            .filter(Result::is_ok)
            .count();
        assert_eq!(outside, 9, "the format's own reader finds the same");
        let last = &trace.ticks[2];
        assert_eq!(
            (
                last.tick,
                last.time_ns,
                last.held,
                last.latency_ms,
                last.lateness_ms
            ),
            (3, 150_000_000, false, Some(1.5), Some(0.002))
        );
        assert_eq!(
            (
                last.observation[0],
                last.action[0],
                last.measure,
                last.reward
            ),
            (0.1, -2.0, 0.1, -1e-7)
        );
        assert!(
            last.observation[1].is_nan()
                && trace.ticks[1].held
                && trace.ticks[1].latency_ms.is_none()
        );
    }

    /// A body with a picture between two numbers.
    fn rover() -> BodySpec {
        let number = |name| ObservationChannel::new(name, "m", 0.0..=1.0);
        BodySpec {
            name: "rover".into(),
            dt_s: 0.1,
            observation: vec![
                number("gap"),
                number("camera").array([2, 1, 3], ElementType::U8),
                number("speed"),
                number("scan").array([2, 2, 2], ElementType::F32),
            ],
            action: vec![ActionChannel::new("turn", "", -1.0..=1.0)],
            safe_action: vec![0.0],
        }
    }

    #[test]
    fn arrays_are_recorded_in_topics_of_their_own() {
        let observation: Vec<f32> = [0.5, 0.0, 1.0, 2.0, 253.0, 254.0, 255.0, -0.5]
            .into_iter()
            .chain((0..8).map(|place| place as f32 / 3.0))
            .collect();
        let mut recorder =
            Recorder::new(Cursor::new(Vec::new()), &rover(), None).expect("in memory");
        for tick in 0..3 {
            let record = TickRecord {
                tick,
                time_ns: tick * 1_100_000_000,
                observation: &observation,
                action: &[0.25],
                measure: f64::NAN,
                reward: 0.0,
                held: false,
                fallback: false,
                terminated: false,
                timing: None,
                link: None,
                commands: None,
            };
            recorder.push(&record).expect("in memory");
        }
        let bytes = recorder.finish().expect("in memory").into_inner();
        let trace = Trace::parse(&bytes).expect("an MCAP file");
        assert_eq!(trace.observation_names, ["gap", "speed"]);
        assert_eq!(trace.array_names, ["camera", "scan"]);
        let tick = &trace.ticks[2];
        assert_eq!(tick.observation, [0.5, -0.5]);
        let [camera, scan] = &tick.arrays[..] else {
            panic!("two arrays")
        };
        assert_eq!(camera.shape, [2, 1, 3]);
        assert_eq!(camera.data, [0, 1, 2, 253, 254, 255]);
        assert_eq!(scan.to_f32().as_deref(), Some(&observation[8..]));
        let pictures = mcap::MessageStream::new(&bytes)
            .expect("an MCAP file")
            .flatten()
            .filter(|message| message.channel.topic == "/observation/camera");
        let picture = pictures.last().expect("a picture");
        let schema = picture.channel.schema.clone().expect("a schema");
        assert_eq!(schema.name, "foxglove.RawImage");
        let fields: serde_json::Value = serde_json::from_slice(&picture.data).expect("JSON");
        for (name, value) in [
            ("encoding", serde_json::json!("rgb8")),
            ("height", 2.into()),
            ("width", 1.into()),
            ("step", 3.into()),
            ("data", "AAEC/f7/".into()),
            (
                "timestamp",
                serde_json::json!({ "sec": 2, "nsec": 200_000_000 }),
            ),
        ] {
            assert_eq!(fields[name], value, "{name}");
        }
    }

    #[test]
    fn a_file_that_is_no_recording_is_refused() {
        assert!(Trace::parse(b"").is_err());
        assert!(Trace::parse(b"a,b,c\n1,2,3\n").is_err());
    }
}
