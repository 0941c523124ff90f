//! The `mcap` crate's writer, without compression.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use mcap::records::{MessageHeader, Metadata};
use mcap::{McapError, WriteOptions};
use serde_json::Value;
use tectum::{Error, Result};

/// Writes messages of channels, in chunks that end where it is flushed.
pub(super) struct Writer<W: Write + Seek>(mcap::Writer<W>);

impl<W: Write + Seek> Writer<W> {
    pub fn new(file: W) -> Result<Self> {
        let options = WriteOptions::new()
            .compression(None)
            .profile("")
            .library(concat!("tectum ", env!("CARGO_PKG_VERSION")));
        options.create(file).map(Self).map_err(unwritable)
    }

    /// Adds a channel of JSON messages with their schema; returns its number.
    pub fn add_channel(&mut self, topic: &str, name: &str, schema: &Value) -> Result<u16> {
        let schema_id = self
            .0
            .add_schema(name, "jsonschema", schema.to_string().as_bytes())
            .map_err(unwritable)?;
        self.0
            .add_channel(schema_id, topic, "json", &BTreeMap::new())
            .map_err(unwritable)
    }

    pub fn write_metadata(&mut self, name: &str, texts: BTreeMap<String, String>) -> Result<()> {
        self.0
            .write_metadata(&Metadata {
                name: name.to_owned(),
                metadata: texts,
            })
            .map_err(unwritable)
    }

    pub fn write(
        &mut self,
        channel_id: u16,
        sequence: u32,
        time_ns: u64,
        json: &[u8],
    ) -> Result<()> {
        let header = MessageHeader {
            channel_id,
            sequence,
            log_time: time_ns,
            publish_time: time_ns,
        };
        self.0
            .write_to_known_channel(&header, json)
            .map_err(unwritable)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(unwritable)
    }

    /// Writes the index and returns the file.
    pub fn finish(mut self) -> Result<W> {
        self.0.finish().map_err(unwritable)?;
        Ok(self.0.into_inner())
    }
}

fn unwritable(source: McapError) -> Error {
    match source {
        McapError::Io(source) => Error::io("recording", source),
        source => Error::data("recording: cannot be written").with_source(source),
    }
}
