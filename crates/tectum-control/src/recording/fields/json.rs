//! Fields of messages of JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use tectum::{Error, Result};

use super::picture::Picture;
use super::{FieldRequest, Reading, Stamp, stamp_ns, unknown_field};
use crate::message::Array;
use crate::recording::arrays;
use crate::ros::{NAMES, name_paths};

/// Fields that an error or an inspection lists at most.
const MAX_LISTED: usize = 200;

/// The longest path below which fields are listed.
const MAX_LISTED_PATH: usize = 1000;
/// The longest message: parsed, a list of short numbers takes sixteen times its bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// Reads messages of one channel.
pub(crate) struct JsonReader {
    requests: Vec<FieldRequest>,
    stamp: Stamp,
    joints: Vec<String>,
}

impl JsonReader {
    pub fn new(requests: &[FieldRequest], stamp: Stamp) -> Self {
        Self {
            requests: requests.to_vec(),
            stamp,
            joints: Vec::new(),
        }
    }

    pub fn read(&mut self, message: &[u8], readings: &mut Vec<Reading>) -> Result<Option<u64>> {
        if message.len() > MAX_MESSAGE {
            return Err(Error::unsupported(format!(
                "it has {} bytes, messages of JSON have up to {MAX_MESSAGE}",
                message.len()
            )));
        }
        let message: Map<String, Value> = serde_json::from_slice(message)
            .map_err(|source| Error::data("not a JSON object").with_source(source))?;
        let message = Value::Object(message);
        for request in &self.requests {
            let reading = match (&request.field, &request.joint) {
                (None, _) => Reading::Array(whole(&message)?),
                (Some(field), None) => value_of(&message, field)?,
                (Some(field), Some(joint)) => joint_of(&message, field, joint, &mut self.joints)?,
            };
            readings.push(reading);
        }
        match self.stamp {
            Stamp::Record => Ok(None),
            Stamp::Header => stamp(&message).map(Some),
        }
    }

    pub fn joints(&self) -> &[String] {
        &self.joints
    }
}

/// The value at a path. Names may contain dots: the longest name that an object has is used.
fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    if let (Value::Array(items), Some(rest)) = (value, path.strip_prefix('[')) {
        let (index, rest) = rest.split_once(']')?;
        let item = items.get(index.parse::<usize>().ok()?)?;
        return find(item, rest.strip_prefix('.').unwrap_or(rest));
    }
    let fields = value.as_object()?;
    let ends = path.match_indices(['.', '[']).map(|(place, _)| place);
    let ends: Vec<usize> = ends.chain([path.len()]).collect();
    ends.into_iter().rev().find_map(|end| {
        let rest = &path[end..];
        find(
            fields.get(&path[..end])?,
            rest.strip_prefix('.').unwrap_or(rest),
        )
    })
}

fn value_of(message: &Value, field: &str) -> Result<Reading> {
    let value = find(message, field);
    let value = value.ok_or_else(|| unknown_field(field, &fields_of(message)))?;
    reading(value).ok_or_else(|| {
        Error::data(format!(
            "field {field:?} is neither a number nor a list of numbers"
        ))
    })
}

fn reading(value: &Value) -> Option<Reading> {
    if let Value::Array(items) = value {
        let numbers = items
            .iter()
            .map(|item| number(item).map(|number| number as f32));
        let numbers: Vec<f32> = numbers.collect::<Option<_>>()?;
        return Some(Reading::Array(Array::of_f32(&numbers)));
    }
    number(value).map(Reading::Number)
}

/// A number; JSON has `null` for those that are not finite.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(f64::NAN),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        value => value.as_f64(),
    }
}

/// The element of a joint: at the place of its name in a list of names next to the field, or in the
/// object of this name of a list of objects, `joints.position`.
fn joint_of(
    message: &Value,
    field: &str,
    joint: &str,
    joints: &mut Vec<String>,
) -> Result<Reading> {
    let lists = name_paths(field).filter_map(|path| find(message, &path)?.as_array());
    // What is no text keeps its place.
    let text = |name: &'_ Value| name.as_str().unwrap_or_default().to_owned();
    let names = lists.map(|names| names.iter().map(text).collect::<Vec<_>>());
    if let Some(names) = names.into_iter().next() {
        keep(joints, &names);
        let values = find(message, field).and_then(Value::as_array);
        let values = values.ok_or_else(|| unknown_field(field, &fields_of(message)))?;
        let Some(place) = names.iter().position(|name| *name == joint) else {
            return Ok(Reading::Absent);
        };
        if values.is_empty() {
            return Ok(Reading::Absent);
        }
        let value = values.get(place).and_then(number);
        return value.map(Reading::Number).ok_or_else(|| {
            Error::data(format!(
                "joint {joint}: {field} has no number at its place {place}"
            ))
        });
    }
    let split = field.rsplit_once('.');
    let list = split.and_then(|(list, own)| Some((find(message, list)?.as_array()?, own)));
    let (list, own) = list.ok_or_else(|| unknown_field(field, &fields_of(message)))?;
    let name = |item: &'_ Value| {
        let name = NAMES.iter().find_map(|name| item.get(name)?.as_str());
        name.unwrap_or_default().to_owned()
    };
    let names: Vec<String> = list.iter().map(name).collect();
    let Some(place) = names.iter().position(|name| name == joint) else {
        keep(joints, &names);
        return Ok(Reading::Absent);
    };
    keep(joints, &names);
    let value = list[place].get(own).and_then(number);
    value
        .map(Reading::Number)
        .ok_or_else(|| Error::data(format!("joint {joint}: it has no number {own}")))
}

fn keep(joints: &mut Vec<String>, names: &[impl AsRef<str>]) {
    let names = names.iter().map(AsRef::as_ref);
    if !names.clone().eq(joints.iter().map(String::as_str)) {
        *joints = names.map(str::to_owned).collect();
    }
}

/// The array that a message is as a whole: a picture, or an array of our own recordings.
fn whole(message: &Value) -> Result<Array> {
    let fields = message.as_object();
    let text = |name: &str| message.get(name).and_then(Value::as_str);
    if let Some(fields) = fields.filter(|fields| fields.contains_key("dtype")) {
        return arrays::read(fields);
    }
    let size = |name: &str| {
        let size = message.get(name).and_then(Value::as_u64);
        size.and_then(|size| usize::try_from(size).ok())
    };
    let parts = (
        size("height"),
        size("width"),
        size("step"),
        text("encoding"),
        text("data"),
    );
    let (Some(height), Some(width), Some(step), Some(encoding), Some(data)) = parts else {
        return Err(Error::data(format!(
            "it is no array, so that a channel needs a field; it has {}",
            fields_of(message).join(", ")
        )));
    };
    let data = STANDARD
        .decode(data)
        .map_err(|source| Error::data("the data of a picture is not base64").with_source(source))?;
    Picture {
        height,
        width,
        step,
        encoding,
        is_big: false,
        data: &data,
    }
    .to_array()
}

fn stamp(message: &Value) -> Result<u64> {
    let stamp = ["header.stamp", "timestamp"]
        .iter()
        .find_map(|path| find(message, path));
    let part = |names: &[&str]| {
        let part = names.iter().find_map(|name| stamp?.get(name)?.as_f64());
        part.ok_or_else(|| {
            Error::data(
                "it has no header.stamp and no timestamp, which the clock of the body needs",
            )
        })
    };
    stamp_ns(part(&["sec"])?, part(&["nanosec", "nsec"])?)
}

/// The fields of a message.
pub(super) fn listed(message: &[u8]) -> Vec<String> {
    if message.len() > MAX_MESSAGE {
        return Vec::new();
    }
    serde_json::from_slice(message).map_or_else(|_| Vec::new(), |message| fields_of(&message))
}

fn fields_of(message: &Value) -> Vec<String> {
    let mut listed = Vec::new();
    list(message, "", &mut listed);
    listed
}

/// Adds the paths below a value. JSON is parsed to a bounded depth.
fn list(value: &Value, path: &str, listed: &mut Vec<String>) {
    if listed.len() >= MAX_LISTED || path.len() > MAX_LISTED_PATH {
        return;
    }
    let kind = match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                list(value, &format!("{path}{dot}{name}"), listed);
            }
            return;
        }
        Value::Array(items) => {
            let path = format!("{path}[]");
            match items.first() {
                Some(first) => list(first, &path, listed),
                None => listed.push(format!("{path}: empty")),
            }
            return;
        }
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Null => "null",
    };
    listed.push(format!("{path}: {kind}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_keeps_its_place() {
        let request = FieldRequest {
            field: Some("position".to_owned()),
            joint: Some("knee".to_owned()),
        };
        let mut reader = JsonReader::new(&[request], Stamp::Record);
        let mut readings = Vec::new();
        let message = br#"{"name": ["hip", null, "knee"], "position": [1, 2, 3]}"#;
        reader.read(message, &mut readings).expect("a message");
        assert_eq!(readings, [Reading::Number(3.0)]);
    }
}
