//! Channels of a recording that are arrays.

use std::io::{Seek, Write};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tectum::{Error, Result};

use super::writer::Writer;
use super::{ARRAY_PREFIX, unformattable};
use crate::body::ObservationChannel;
use crate::closed_loop::TickRecord;
use crate::message::{Array, ElementType};

/// The topic of an array.
pub(super) struct ArrayTopic {
    pub id: u16,
    channel: ObservationChannel,
    range: Range<usize>,
    /// The fields that are the same in each message, as the end of an object.
    constant: String,
}

impl ArrayTopic {
    pub fn new<W: Write + Seek>(
        writer: &mut Writer<W>,
        channel: &ObservationChannel,
        range: Range<usize>,
    ) -> Result<Self> {
        let picture = picture_fields(channel);
        let mut fields = Map::new();
        fields.insert("shape".to_owned(), json!(channel.shape));
        fields.insert("dtype".to_owned(), json!(channel.element.code().0));
        let name = match picture {
            Some(_) => "foxglove.RawImage",
            None => "tectum.Array",
        };
        fields.extend(picture.unwrap_or_default());
        let mut schema = schema_of(&fields);
        schema["title"] = name.into();
        let topic = format!("{ARRAY_PREFIX}{}", channel.name);
        Ok(Self {
            id: writer.add_channel(&topic, name, &schema)?,
            channel: channel.clone(),
            range,
            constant: Value::Object(fields).to_string().split_off(1),
        })
    }

    /// Writes the message of a period.
    pub fn write(&self, json: &mut Vec<u8>, record: &TickRecord<'_>) -> Result<()> {
        let elements = &record.observation[self.range.clone()];
        let array = Array::of_elements(elements, self.channel.element, &self.channel.shape);
        let (seconds, nanoseconds) = (
            record.time_ns / 1_000_000_000,
            record.time_ns % 1_000_000_000,
        );
        json.clear();
        write!(
            json,
            "{{\"timestamp\":{{\"sec\":{seconds},\"nsec\":{nanoseconds}}},\"data\":\"{}\",{}",
            STANDARD.encode(&array.data),
            self.constant
        )
        .map_err(unformattable)
    }
}

/// What a viewer of pictures needs to know; none for other arrays.
fn picture_fields(channel: &ObservationChannel) -> Option<Map<String, Value>> {
    let (height, width, colors) = match channel.shape[..] {
        [height, width] => (height, width, 1),
        [height, width, colors] => (height, width, colors),
        _ => return None,
    };
    let encoding = match (channel.element, colors) {
        (ElementType::U8, 3) => "rgb8",
        (ElementType::U8, 1) => "mono8",
        (ElementType::F32, 1) => "32FC1",
        _ => return None,
    };
    let step = width * colors * channel.element.code().1;
    let fields = json!({
        "frame_id": channel.name,
        "height": height,
        "width": width,
        "encoding": encoding,
        "step": step,
    });
    fields.as_object().cloned()
}

fn schema_of(fields: &Map<String, Value>) -> Value {
    let kind = |value: &Value| match value {
        Value::Array(_) => json!({ "type": "array", "items": { "type": "integer" } }),
        Value::String(_) => json!({ "type": "string" }),
        _ => json!({ "type": "integer" }),
    };
    let fields = fields
        .iter()
        .map(|(name, value)| (name.clone(), kind(value)));
    let time = json!({
        "type": "object",
        "properties": { "sec": { "type": "integer" }, "nsec": { "type": "integer" } },
    });
    let data = json!({ "type": "string", "contentEncoding": "base64" });
    let more = [("timestamp".to_owned(), time), ("data".to_owned(), data)];
    let properties: Map<_, _> = fields.chain(more).collect();
    json!({ "type": "object", "properties": properties })
}

/// The array of a message.
///
/// # Errors
/// `Data` for a field that is missing, elements of an unknown type, or bytes that do not fill the
/// shape.
pub(super) fn read(fields: &Map<String, Value>) -> Result<Array> {
    let refused = |what: &str| Error::data(format!("an array has no valid {what}"));
    let text = |name: &str| {
        let value = fields.get(name).and_then(Value::as_str);
        value.ok_or_else(|| refused(name))
    };
    let sizes = fields.get("shape").and_then(Value::as_array);
    let size = |size: &Value| size.as_u64().and_then(|size| usize::try_from(size).ok());
    let shape: Option<Vec<usize>> = sizes.and_then(|sizes| sizes.iter().map(size).collect());
    let shape = shape.ok_or_else(|| refused("shape"))?;
    let element = ElementType::from_code(text("dtype")?).ok_or_else(|| refused("dtype"))?;
    let data = STANDARD.decode(text("data")?);
    let data = data.map_err(|source| refused("data").with_source(source))?;
    Array::new(element, shape, data).map_err(|reason| Error::data(format!("an array {reason}")))
}
