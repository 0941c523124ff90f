//! The contents of a GGUF file.

use std::path::Path;

use serde::Serialize;
use tectum::{Device, Result};
use tectum_transformer::{Checkpoint, Gguf, GgufTensor, Value, ValueType};

use super::InspectArgs;
use super::model::{DecoderInspection, decoder, decoder_text};
use crate::input_text::clipped;
use crate::table::{bytes, print, print_json, table};

/// Maximum number of characters of a value in a table.
const MAX_SHOWN: usize = 72;
/// Number of values of an array in JSON.
const FIRST: usize = 16;

/// The output, as JSON.
#[derive(Serialize)]
struct Inspection {
    kind: &'static str,
    file: String,
    version: u32,
    alignment: u64,
    bytes: usize,
    metadata: Vec<Entry>,
    tensors: Vec<TensorEntry>,
    /// The decoder in the file; none if it cannot run here.
    decoder: Option<DecoderInspection>,
    /// Why it cannot.
    refused: Option<String>,
}

/// A key of the metadata; an array has its length and its first values.
#[derive(Serialize)]
struct Entry {
    key: String,
    #[serde(rename = "type")]
    kind: &'static str,
    value: serde_json::Value,
    #[serde(skip)]
    shown: String,
}

/// A tensor.
#[derive(Serialize)]
struct TensorEntry {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    shape: Vec<usize>,
    bytes: usize,
}

/// Reads a file and prints its contents, whether it can run or not. If it can, every tensor is
/// read.
pub fn inspect_gguf(args: &InspectArgs, path: &Path) -> Result<()> {
    let file = Gguf::open(path)?;
    let held = file
        .tensors()
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor.kind.name, tensor.bytes))
        .collect::<Vec<_>>();
    let null = Device::open("null")?;
    let (decoder, refused) =
        match Checkpoint::open(path).and_then(|model| decoder(path, &model, &null, &held)) {
            Ok(decoder) => (Some(decoder), None),
            Err(error) => (None, Some(error.to_string())),
        };
    let entry = |(key, kind): (&str, ValueType)| {
        let value = file.value(key)?;
        Some(Entry {
            key: key.to_owned(),
            kind: kind.name(),
            shown: clipped(&value.to_string(), MAX_SHOWN),
            value: json(&value),
        })
    };
    let tensor = |tensor: &GgufTensor| TensorEntry {
        name: tensor.name.clone(),
        kind: tensor.kind.name,
        shape: tensor.shape.clone(),
        bytes: tensor.bytes,
    };
    let inspection = Inspection {
        kind: "gguf",
        file: path.display().to_string(),
        version: file.header().version,
        alignment: file.header().alignment,
        bytes: file.bytes(),
        metadata: file.keys().filter_map(entry).collect(),
        tensors: file.tensors().iter().map(tensor).collect(),
        decoder,
        refused,
    };
    if args.json {
        print_json(&inspection)
    } else {
        print(&text(&inspection))
    }
}

fn json(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Unsigned(number) => (*number).into(),
        Value::Signed(number) => (*number).into(),
        Value::F32(number) => (*number).into(),
        Value::F64(number) => (*number).into(),
        Value::Bool(is) => (*is).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Array(array) => {
            let first: Vec<serde_json::Value> = array
                .values()
                .take(FIRST)
                .map(|value| json(&value))
                .collect();
            serde_json::json!({"element": array.element.name(), "len": array.len, "first": first})
        }
    }
}

fn text(inspection: &Inspection) -> String {
    let Inspection {
        file,
        version,
        alignment,
        metadata,
        tensors,
        ..
    } = inspection;
    let head = match (&inspection.decoder, &inspection.refused) {
        (Some(decoder), _) => decoder_text(decoder),
        (None, refused) => format!(
            "no decoder that runs here ({})\n",
            refused.as_deref().unwrap_or(file)
        ),
    };
    let key = |entry: &Entry| {
        vec![
            entry.key.escape_debug().to_string(),
            entry.kind.to_owned(),
            entry.shown.clone(),
        ]
    };
    let keys: Vec<Vec<String>> = metadata.iter().map(key).collect();
    let row = |tensor: &TensorEntry| {
        vec![
            tensor.name.escape_debug().to_string(),
            tensor.kind.to_owned(),
            format!("{:?}", tensor.shape),
            bytes(tensor.bytes as f64),
        ]
    };
    let rows: Vec<Vec<String>> = tensors.iter().map(row).collect();
    let size = bytes(inspection.bytes as f64);
    format!(
        "{head}\nGGUF of version {version}, {size}, tensors at multiples of {alignment} bytes\n\n{}\n{}",
        table(&keys),
        table(&rows)
    )
}
