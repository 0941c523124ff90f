//! From the messages of a file to the periods of a body.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use tectum::{Error, Result};

use super::keys::{ChannelKeys, Keys};
use super::series::Series;
use super::{Recorded, RecordedReport, action_channel, observation_channel, period_ns};
use crate::body::BodySpec;
use crate::nearest::suggestion;
use crate::recording::RecordingContents;
use crate::recording::fields::{FieldReader, FieldRequest, Reading};
use crate::recording::records::{self, Message};
use crate::recording::topics::Survey;

/// The maximum of memory for the values of all channels.
const MAX_HELD_BYTES: usize = 1 << 32;
/// The maximum number of periods.
const MAX_PERIODS: u64 = 1 << 24;
/// Joints that an error lists at most.
const MAX_JOINTS: usize = 500;

/// Reads a recording.
///
/// # Errors
/// `Io` or `Data` naming the file, and the topic and the message; `Data` for a topic, a field or a
/// joint that the recording does not have, listing those that it has.
pub(super) fn read(path: &Path, name: &str, keys: &Keys) -> Result<Recorded> {
    let file = File::open(path).map_err(|source| Error::io(path.display(), source))?;
    let mut mapping = Mapping::new(keys);
    records::messages(&mut BufReader::new(file), &mut |message| {
        mapping.add(&message)
    })?;
    mapping.finish(path, name)
}

/// A channel that is mapped, with what was found.
struct Mapped<'k> {
    kind: &'static str,
    keys: &'k ChannelKeys,
    series: Series,
    /// The joints of its topic, as long as its own was not found.
    joints: BTreeSet<String>,
}

impl Mapped<'_> {
    fn named(&self) -> String {
        format!("{} {:?}", self.kind, self.keys.stated.name)
    }
}

/// The channels of a topic.
#[derive(Default)]
struct Topic {
    /// Their places among all channels.
    channels: Vec<usize>,
    requests: Vec<FieldRequest>,
    messages: u64,
}

struct Mapping<'k> {
    keys: &'k Keys,
    mapped: Vec<Mapped<'k>>,
    topics: BTreeMap<&'k str, Topic>,
    /// By the number of a channel of the file: a topic may have several senders.
    readers: HashMap<u16, FieldReader>,
    readings: Vec<Reading>,
    survey: Survey,
    held_bytes: usize,
}

impl<'k> Mapping<'k> {
    fn new(keys: &'k Keys) -> Self {
        let of = |kind, channels: &'k [ChannelKeys]| {
            channels.iter().map(move |keys| Mapped {
                kind,
                keys,
                series: Series::default(),
                joints: BTreeSet::new(),
            })
        };
        let observation = of("observation", &keys.observation);
        let mapped: Vec<Mapped<'k>> = observation.chain(of("action", &keys.action)).collect();
        let mut topics: BTreeMap<&str, Topic> = BTreeMap::new();
        for (place, channel) in mapped.iter().enumerate() {
            let topic = topics.entry(channel.keys.topic.as_str()).or_default();
            topic.channels.push(place);
            topic.requests.push(channel.keys.request());
        }
        Self {
            keys,
            mapped,
            topics,
            readers: HashMap::new(),
            readings: Vec::new(),
            survey: Survey::default(),
            held_bytes: 0,
        }
    }

    fn add(&mut self, message: &Message<'_>) -> Result<()> {
        self.survey.add(message);
        let name = message.channel.topic.as_str();
        match self.topics.get_mut(name) {
            None => Ok(()),
            Some(topic) => {
                let place = topic.messages;
                topic.messages += 1;
                self.take(message)
                    .map_err(|error| error.at(format_args!("topic {name}, message {place}")))
            }
        }
    }

    /// Reads a message of a topic that has channels.
    fn take(&mut self, message: &Message<'_>) -> Result<()> {
        let Some(topic) = self.topics.get(message.channel.topic.as_str()) else {
            return Ok(());
        };
        let clock = self.keys.clock.unwrap_or_default();
        let reader = match self.readers.entry(message.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let (channel, schema) = (message.channel, message.schema);
                let reader = FieldReader::new(channel, schema, &topic.requests, clock.stamp())?;
                new.insert(reader)
            }
        };
        let stamp_ns = reader.read(message.data, &mut self.readings)?;
        let time_ns = match clock {
            super::RecordingClock::LogTime => message.log_time_ns,
            super::RecordingClock::PublishTime => message.publish_time_ns,
            super::RecordingClock::HeaderStamp => stamp_ns.unwrap_or(message.log_time_ns),
        };
        for (place, reading) in topic.channels.iter().zip(self.readings.drain(..)) {
            let mapped = &mut self.mapped[*place];
            if reading == Reading::Absent && mapped.joints.len() < MAX_JOINTS {
                mapped.joints.extend(reader.joints().iter().cloned());
            }
            let held = mapped.series.push(time_ns, reading);
            self.held_bytes += held.map_err(|error| error.at(mapped.named()))?;
        }
        match self.held_bytes <= MAX_HELD_BYTES {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "the values of the channels take more than {MAX_HELD_BYTES} bytes"
            ))),
        }
    }

    fn finish(mut self, path: &Path, name: &str) -> Result<Recorded> {
        let contents = std::mem::take(&mut self.survey).finish();
        for mapped in &mut self.mapped {
            check_found(mapped, &contents)?;
            mapped.series.sort();
        }
        let period_ns = period_ns(self.keys.period);
        let times = Times::new(&self.mapped, period_ns)?;
        let limit_ns = self.keys.gap.map(|gap_s| (gap_s * 1e9).round() as u64);
        for mapped in &mut self.mapped {
            let offset_ns = offset_ns(mapped.kind, period_ns);
            let ticks = 0..times.periods;
            // The last instant may be beyond the range of times.
            let instant = |tick| times.instant_ns(tick, period_ns).saturating_add(offset_ns);
            let instants = ticks.map(instant);
            mapped.series.choose(instants, limit_ns, period_ns);
        }
        let channels = self.mapped.iter().map(|mapped| {
            let ChannelKeys { stated, topic, .. } = mapped.keys;
            mapped.series.report(mapped.kind, &stated.name, topic)
        });
        let report = RecordedReport {
            file: path.display().to_string(),
            clock: self.keys.clock.unwrap_or_default(),
            period_s: self.keys.period,
            periods: times.periods,
            stale_periods: 0,
            skipped_before_s: times.skipped_before_ns as f64 / 1e9,
            skipped_after_s: times.skipped_after_ns as f64 / 1e9,
            channels: channels.collect(),
            contents,
        };
        let mut series: Vec<Series> = self.mapped.into_iter().map(|own| own.series).collect();
        let action = series.split_off(self.keys.observation.len());
        let spec = spec(name, self.keys, &series, &action)?;
        let mut recorded = Recorded {
            spec,
            observation: series,
            action,
            begin_ns: times.begin_ns,
            report,
        };
        let stale = recorded.actions().iter().filter(|tick| tick.held).count();
        recorded.report.stale_periods = stale as u64;
        Ok(recorded)
    }
}

/// Refuses a channel without a message.
fn check_found(mapped: &Mapped<'_>, contents: &RecordingContents) -> Result<()> {
    if mapped.series.span_ns().is_some() {
        return Ok(());
    }
    let topic = &mapped.keys.topic;
    let names = || contents.topics.iter().map(|own| own.topic.as_str());
    if !names().any(|own| own == topic) {
        let known = contents.topics.iter();
        let known: Vec<String> = known
            .map(|own| format!("{} ({})", own.topic, own.kind))
            .collect();
        return Err(Error::data(format!(
            "{}: the recording has no messages of the topic {topic:?}{}; it has {}",
            mapped.named(),
            suggestion(topic, names()),
            known.join(", ")
        )));
    }
    let joint = mapped.keys.joint.as_deref().unwrap_or_default();
    let known: Vec<&str> = mapped.joints.iter().map(String::as_str).collect();
    Err(Error::data(format!(
        "{}: no message of {topic} has a value for the joint {joint:?}{}; it has the joints {}",
        mapped.named(),
        suggestion(joint, known.iter().copied()),
        known.join(", ")
    )))
}

/// How long after the beginning of a period a message may be to belong to it: an action follows the
/// observation that it answers.
fn offset_ns(kind: &str, period_ns: u64) -> u64 {
    match kind {
        "action" => period_ns.saturating_sub(1),
        _ => 0,
    }
}

/// The periods in which each channel has a message, and has one again later.
struct Times {
    begin_ns: u64,
    periods: u64,
    skipped_before_ns: u64,
    skipped_after_ns: u64,
}

impl Times {
    /// The beginning of a period.
    fn instant_ns(&self, tick: u64, period_ns: u64) -> u64 {
        self.begin_ns.saturating_add(tick.saturating_mul(period_ns))
    }

    fn new(mapped: &[Mapped<'_>], period_ns: u64) -> Result<Self> {
        let spans = mapped.iter().filter_map(|own| {
            let (first_ns, last_ns) = own.series.span_ns()?;
            let begin_ns = first_ns.saturating_sub(offset_ns(own.kind, period_ns));
            Some((own, begin_ns, first_ns, last_ns))
        });
        let begin = spans.clone().max_by_key(|(_, begin_ns, ..)| *begin_ns);
        let end = spans.clone().min_by_key(|(.., last_ns)| *last_ns);
        let (Some((late, begin_ns, ..)), Some((early, .., end_ns))) = (begin, end) else {
            return Err(Error::data("there are no channels"));
        };
        if end_ns < begin_ns {
            return Err(Error::data(format!(
                "no period has a message of each channel: {} ends {} s before {} begins",
                early.named(),
                (begin_ns - end_ns) as f64 / 1e9,
                late.named()
            )));
        }
        let periods = (end_ns - begin_ns) / period_ns.max(1) + 1;
        if periods > MAX_PERIODS {
            return Err(Error::unsupported(format!(
                "{} s are {periods} periods, the maximum is {MAX_PERIODS}",
                (end_ns - begin_ns) as f64 / 1e9
            )));
        }
        let first_ns = spans.clone().map(|(_, _, first_ns, _)| first_ns).min();
        let last_ns = spans.map(|(.., last_ns)| last_ns).max();
        Ok(Self {
            begin_ns,
            periods,
            skipped_before_ns: begin_ns.saturating_sub(first_ns.unwrap_or(begin_ns)),
            skipped_after_ns: last_ns.unwrap_or(end_ns).saturating_sub(end_ns),
        })
    }
}

/// The constants of the body.
fn spec(name: &str, keys: &Keys, observation: &[Series], action: &[Series]) -> Result<BodySpec> {
    if let Some((keys, _)) = keys
        .action
        .iter()
        .zip(action)
        .find(|(_, series)| series.shape().is_some())
    {
        return Err(Error::data(format!(
            "action {:?}: the field is an array; an action is a number, such as {}[0]",
            keys.stated.name,
            keys.field.as_deref().unwrap_or("data")
        )));
    }
    let observations = keys.observation.iter().zip(observation);
    let actions = keys.action.iter().zip(action);
    let action: Vec<_> = actions
        .map(|(keys, series)| action_channel(&keys.stated, series))
        .collect();
    let safe_action = match &keys.safe_action {
        Some(safe) => safe.iter().map(|number| *number as f32).collect(),
        None => action
            .iter()
            .map(|own| 0f32.clamp(own.low, own.high))
            .collect(),
    };
    let spec = BodySpec {
        name: name.to_owned(),
        dt_s: keys.period,
        observation: observations
            .map(|(keys, series)| observation_channel(&keys.stated, series))
            .collect(),
        action,
        safe_action,
    };
    spec.check()?;
    Ok(spec)
}
