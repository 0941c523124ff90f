//! The topics of an MCAP file, of this crate or any other tool.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Serialize;
use tectum::{Error, Result};

use super::fields;
use super::records::{self, Message};

/// What a recording contains.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordingContents {
    /// Messages of all topics.
    pub messages: u64,
    /// The time of the first message in seconds: since 1970, or since the begin of a run.
    pub begin_s: f64,
    /// From the first to the last message.
    pub seconds: f64,
    /// The topics by name.
    pub topics: Vec<TopicContents>,
}

/// What a topic contains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopicContents {
    /// Its name.
    pub topic: String,
    /// The type of its messages; empty if the file has none.
    #[serde(rename = "type")]
    pub kind: String,
    /// The encoding of its messages, such as `cdr` and `json`.
    pub encoding: String,
    /// Their number.
    pub messages: u64,
    /// Messages in a second, between the first and the last one.
    pub rate_hz: f64,
    /// Paths and types of the fields, those of JSON as in the first message; none of an encoding
    /// that is not read.
    pub fields: Vec<String>,
}

impl RecordingContents {
    /// Reads what a file contains, up to the end of its data.
    ///
    /// # Errors
    /// `Io` or `Data` naming the file.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io(path.display(), source))?;
        let mut survey = Survey::default();
        records::messages(&mut BufReader::new(file), &mut |message| {
            survey.add(&message);
            Ok(())
        })
        .map_err(|error| error.at(path.display()))?;
        Ok(survey.finish())
    }
}

/// Bytes of the fields of all topics, after which those of further topics are left out.
const MAX_LISTED_BYTES: usize = 4 << 20;

/// Collects the topics of a file, message by message.
#[derive(Default)]
pub(crate) struct Survey {
    topics: BTreeMap<String, Found>,
    /// Bytes of the fields of all topics.
    listed_bytes: usize,
}

struct Found {
    contents: TopicContents,
    first_ns: u64,
    last_ns: u64,
}

impl Survey {
    pub fn add(&mut self, message: &Message<'_>) {
        let (channel, time_ns) = (message.channel, message.log_time_ns);
        let found = match self.topics.get_mut(&channel.topic) {
            Some(found) => found,
            None => {
                let fields = match self.listed_bytes < MAX_LISTED_BYTES {
                    true => fields::listed(channel, message.schema, message.data),
                    false => Vec::new(),
                };
                self.listed_bytes += fields.iter().map(String::len).sum::<usize>();
                let contents = TopicContents {
                    topic: channel.topic.clone(),
                    kind: message
                        .schema
                        .map_or_else(String::new, |own| own.name.clone()),
                    encoding: channel.encoding.clone(),
                    messages: 0,
                    rate_hz: 0.0,
                    fields,
                };
                let found = Found {
                    contents,
                    first_ns: time_ns,
                    last_ns: time_ns,
                };
                self.topics.entry(channel.topic.clone()).or_insert(found)
            }
        };
        found.contents.messages += 1;
        found.first_ns = found.first_ns.min(time_ns);
        found.last_ns = found.last_ns.max(time_ns);
    }

    pub fn finish(self) -> RecordingContents {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let first_ns = self.topics.values().map(|found| found.first_ns).min();
        let last_ns = self.topics.values().map(|found| found.last_ns).max();
        let (first_ns, last_ns) = (first_ns.unwrap_or(0), last_ns.unwrap_or(0));
        let topics: Vec<TopicContents> = self
            .topics
            .into_values()
            .map(|found| {
                let intervals = (found.contents.messages - 1) as f64;
                let span_s = seconds(found.last_ns - found.first_ns);
                TopicContents {
                    rate_hz: if span_s > 0.0 {
                        intervals / span_s
                    } else {
                        0.0
                    },
                    ..found.contents
                }
            })
            .collect();
        RecordingContents {
            messages: topics.iter().map(|topic| topic.messages).sum(),
            begin_s: seconds(first_ns),
            seconds: seconds(last_ns - first_ns),
            topics,
        }
    }
}
