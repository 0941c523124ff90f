//! Fields of the messages of a topic, of any encoding that is read.
//!
//! `cdr` with the schema encoding `ros2msg` is ROS 2; `json` is any other tool. A field is named by
//! a path, `pose.pose.position.x`. With a joint, it is the element of an array at the place that
//! the joint has in the array of names next to it, which may differ from message to message.

mod json;
mod picture;
mod ros;

use tectum::{Error, Result};

use super::records::{Channel, Schema};
use crate::message::Array;
use crate::nearest::suggestion;

/// A field that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldRequest {
    /// Its path; none for a message that is an array as a whole.
    pub field: Option<String>,
    /// The joint whose element it is.
    pub joint: Option<String>,
}

/// What a message has for a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    Number(f64),
    Array(Array),
    /// The message does not have the joint, as those of other parts of a robot.
    Absent,
}

/// Which time of a message is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// The time of the record.
    Record,
    /// The time in the header of the message.
    Header,
}

/// Reads fields of the messages of one channel.
pub(crate) enum FieldReader {
    Ros(ros::RosReader),
    Json(json::JsonReader),
}

impl FieldReader {
    /// A reader of fields, each with the place of its request.
    ///
    /// # Errors
    /// `Data` for a field that messages do not have, listing what they have; `Unsupported` naming an
    /// encoding that is not read.
    pub fn new(
        channel: &Channel,
        schema: Option<&Schema>,
        requests: &[FieldRequest],
        stamp: Stamp,
    ) -> Result<Self> {
        let schema_encoding = schema.map_or("", |schema| &schema.encoding);
        match (channel.encoding.as_str(), schema) {
            ("cdr", Some(schema)) if schema_encoding == "ros2msg" => {
                ros::RosReader::new(schema, requests, stamp).map(Self::Ros)
            }
            ("json", _) => Ok(Self::Json(json::JsonReader::new(requests, stamp))),
            (encoding, _) => Err(Error::unsupported(format!(
                "its messages are {encoding:?} with the schema {schema_encoding:?}; \
                 \"cdr\" with \"ros2msg\" and \"json\" are read"
            ))),
        }
    }

    /// Reads a message: one reading for each request, and the time of the header if it was
    /// requested.
    ///
    /// # Errors
    /// `Data` for a message that is not of its type, or lacks a field.
    pub fn read(&mut self, message: &[u8], readings: &mut Vec<Reading>) -> Result<Option<u64>> {
        readings.clear();
        match self {
            Self::Ros(reader) => reader.read(message, readings),
            Self::Json(reader) => reader.read(message, readings),
        }
    }

    /// The joints of the last message, where a request has one.
    pub fn joints(&self) -> &[String] {
        match self {
            Self::Ros(reader) => reader.joints(),
            Self::Json(reader) => reader.joints(),
        }
    }
}

/// The fields that messages of a channel have, as a list of paths and types; `message` is the first
/// one.
pub(crate) fn listed(channel: &Channel, schema: Option<&Schema>, message: &[u8]) -> Vec<String> {
    match (channel.encoding.as_str(), schema) {
        ("cdr", Some(schema)) if schema.encoding == "ros2msg" => ros::listed(schema),
        ("json", _) => json::listed(message),
        _ => Vec::new(),
    }
}

/// The time of a stamp in nanoseconds.
fn stamp_ns(seconds: f64, nanoseconds: f64) -> Result<u64> {
    let is_time = seconds >= 0.0
        && (0.0..1e9).contains(&nanoseconds)
        && (seconds > 0.0 || nanoseconds > 0.0)
        && seconds < 1e10;
    match is_time {
        true => Ok(seconds as u64 * 1_000_000_000 + nanoseconds as u64),
        false => Err(Error::data(format!(
            "the time in its header is {seconds} s and {nanoseconds} ns, which is no time"
        ))),
    }
}

/// The error for a field that messages do not have.
fn unknown_field(field: &str, known: &[String]) -> Error {
    let names = known
        .iter()
        .map(|field| field.split(':').next().unwrap_or(field));
    Error::data(format!(
        "it has no field {field:?}{}; it has {}",
        suggestion(field, names),
        known.join(", ")
    ))
}
