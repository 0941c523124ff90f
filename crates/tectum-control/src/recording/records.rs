//! The records of MCAP files: messages, and the channels and schemas that they have.
//!
//! The `mcap` crate writes recordings but does not read them here: on a corrupt length it panics or
//! allocates gigabytes. Here every length is checked against the remaining bytes, and a file is read
//! record by record: at most one chunk is in memory. Checksums are not verified.
//!
//! # Source
//! The MCAP format specification, <https://mcap.dev/spec>: records and chunks.

#[cfg(feature = "mcap")]
mod compression;

use std::collections::HashMap;
use std::io::Read;

use tectum::{Error, Result};

const MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";
/// Opcode and length of a record.
const HEAD_BYTES: usize = 9;
const FOOTER: u8 = 0x02;
const SCHEMA: u8 = 0x03;
const CHANNEL: u8 = 0x04;
const MESSAGE: u8 = 0x05;
const CHUNK: u8 = 0x06;
const DATA_END: u8 = 0x0F;
/// The maximum length of a record that is read.
const MAX_RECORD: u64 = 1 << 30;
/// The maximum length of all channels and schemas together.
const MAX_DESCRIBED: usize = 1 << 25;
/// What a channel or a schema takes besides its texts.
const DESCRIPTION_BYTES: usize = 128;

/// A message.
pub(crate) struct Message<'m> {
    /// The number of its channel.
    pub id: u16,
    pub channel: &'m Channel,
    /// The type of the channel's messages, if it has one.
    pub schema: Option<&'m Schema>,
    /// When it was recorded.
    pub log_time_ns: u64,
    /// When it was sent.
    pub publish_time_ns: u64,
    pub data: &'m [u8],
}

/// A source of messages of one type.
pub(crate) struct Channel {
    pub topic: String,
    /// The encoding of its messages, such as `json` and `cdr`.
    pub encoding: String,
    schema: u16,
}

/// The type of messages.
pub(crate) struct Schema {
    pub name: String,
    /// The encoding of the text, such as `jsonschema` and `ros2msg`.
    pub encoding: String,
    pub text: Vec<u8>,
}

/// What the records up to a place describe.
#[derive(Default)]
struct Described {
    channels: HashMap<u16, Channel>,
    schemas: HashMap<u16, Schema>,
    /// The length of all of it.
    bytes: usize,
}

impl Described {
    fn count(&mut self, texts: usize, body: &Fields<'_>) -> Result<()> {
        self.bytes += DESCRIPTION_BYTES + texts;
        match self.bytes <= MAX_DESCRIBED {
            true => Ok(()),
            false => Err(body.wrong("is one channel or schema too many")),
        }
    }
}

/// What receives messages.
type Take<'t> = &'t mut dyn FnMut(Message<'_>) -> Result<()>;

/// Passes every message to `take`, in the file's order.
///
/// # Errors
/// `Io` from the source; `Data` naming the byte of a malformed record; what `take` reports.
pub(crate) fn messages(source: &mut dyn Read, take: Take<'_>) -> Result<()> {
    let mut magic = Vec::new();
    read_up_to(source, MAGIC.len() as u64, &mut magic)?;
    if magic != MAGIC {
        return Err(foreign());
    }
    let (mut place, mut described) = (MAGIC.len(), Described::default());
    let (mut head, mut record, mut chunk) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        read_up_to(source, HEAD_BYTES as u64, &mut head)?;
        let mut fields = Fields::new(&head, place);
        if head.is_empty() {
            return Err(Error::data(format!(
                "not a whole MCAP recording: it breaks off at byte {place}; tectum recover makes it whole"
            )));
        }
        let [opcode, length @ ..] = *fields.array::<HEAD_BYTES>()?;
        let length = u64::from_le_bytes(length);
        place += HEAD_BYTES;
        let is_read = matches!(opcode, SCHEMA | CHANNEL | MESSAGE | CHUNK);
        let read = match (opcode, is_read) {
            (FOOTER | DATA_END, _) => return Ok(()),
            (_, false) => skip(source, length)?,
            (_, true) if length > MAX_RECORD => {
                return Err(fields.wrong(&format!(
                    "has {length} bytes, more than the maximum of {MAX_RECORD}"
                )));
            }
            (_, true) => read_up_to(source, length, &mut record)?,
        };
        if read < length {
            return Err(fields.wrong("is cut short"));
        }
        if is_read {
            let body = Fields::new(&record, place);
            each(opcode, body, &mut described, &mut chunk, take)?;
        }
        place += length as usize;
    }
}

fn foreign() -> Error {
    Error::data("not an MCAP recording: it does not begin as one")
}

/// Reads as many bytes, or up to the end of the source. The memory grows with what arrives.
fn read_up_to(source: &mut dyn Read, length: u64, bytes: &mut Vec<u8>) -> Result<u64> {
    bytes.clear();
    let read = source.take(length).read_to_end(bytes);
    read.map(|read| read as u64).map_err(unreadable)
}

fn skip(source: &mut dyn Read, length: u64) -> Result<u64> {
    std::io::copy(&mut source.take(length), &mut std::io::sink()).map_err(unreadable)
}

fn unreadable(source: std::io::Error) -> Error {
    Error::io("MCAP recording", source)
}

/// A recovered recording of a killed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveredRecording {
    /// The file: its complete chunks, then an end without an index, which readers do not need. A
    /// complete recording is unchanged.
    pub bytes: Vec<u8>,
    /// Messages in it.
    pub messages: u64,
    /// Bytes at the end of the truncated file that belong to no complete chunk.
    pub lost_bytes: u64,
}

/// Recovers a recording up to its last complete chunk.
///
/// # Errors
/// `Data` for bytes that do not begin like a recording.
pub fn recover_recording(bytes: &[u8]) -> Result<RecoveredRecording> {
    let records = bytes.strip_prefix(MAGIC).ok_or_else(foreign)?;
    let mut fields = Fields::new(records, MAGIC.len());
    let (mut described, mut chunk) = (Described::default(), Vec::new());
    let (mut messages, mut whole, mut is_data) = (0, MAGIC.len(), true);
    loop {
        match fields.record() {
            Ok(Some((FOOTER, _))) if fields.bytes == MAGIC => {
                return Ok(RecoveredRecording {
                    bytes: bytes.to_vec(),
                    messages,
                    lost_bytes: 0,
                });
            }
            Ok(Some((FOOTER, _)) | None) | Err(_) => break,
            Ok(Some((DATA_END, _))) => is_data = false,
            Ok(Some((opcode, body))) if is_data => {
                let mut count = 0;
                let visited = each(opcode, body, &mut described, &mut chunk, &mut |_| {
                    count += 1;
                    Ok(())
                });
                match visited {
                    Ok(()) => (messages, whole) = (messages + count, fields.place),
                    Err(_) => break,
                }
            }
            Ok(Some(_)) => {}
        }
    }
    let mut made = bytes[..whole].to_vec();
    // Zeros: no checksum, no summary.
    for (opcode, length) in [(DATA_END, 4u64), (FOOTER, 20)] {
        made.push(opcode);
        made.extend(length.to_le_bytes());
        made.resize(made.len() + length as usize, 0);
    }
    made.extend(MAGIC);
    Ok(RecoveredRecording {
        bytes: made,
        messages,
        lost_bytes: (bytes.len() - whole) as u64,
    })
}

/// Visits a record, or the records of a chunk, which may be decompressed to `buffer`.
fn each(
    opcode: u8,
    mut body: Fields<'_>,
    described: &mut Described,
    buffer: &mut Vec<u8>,
    take: Take<'_>,
) -> Result<()> {
    if opcode != CHUNK {
        return one(opcode, body, described, take);
    }
    let mut inner = body.chunk(buffer)?;
    while let Some((opcode, body)) = inner.record()? {
        one(opcode, body, described, take)?;
    }
    Ok(())
}

/// Stores a channel or a schema, or passes on a message; other records are not needed. Channels and
/// schemas are written again before the chunks that use them.
fn one(opcode: u8, mut body: Fields<'_>, described: &mut Described, take: Take<'_>) -> Result<()> {
    let begin = body;
    match opcode {
        SCHEMA => {
            let id = body.u16()?;
            let (name, encoding) = (body.text("name")?, body.text("encoding")?);
            let text = body.prefixed()?;
            if !described.schemas.contains_key(&id) {
                described.count(name.len() + encoding.len() + text.len(), &begin)?;
                let schema = Schema {
                    name: name.to_owned(),
                    encoding: encoding.to_owned(),
                    text: text.to_vec(),
                };
                described.schemas.insert(id, schema);
            }
        }
        CHANNEL => {
            let (id, schema) = (body.u16()?, body.u16()?);
            let (topic, encoding) = (body.text("topic")?, body.text("encoding")?);
            if !described.channels.contains_key(&id) {
                described.count(topic.len() + encoding.len(), &begin)?;
                let channel = Channel {
                    topic: topic.to_owned(),
                    encoding: encoding.to_owned(),
                    schema,
                };
                described.channels.insert(id, channel);
            }
        }
        MESSAGE => {
            let (id, _sequence) = (body.u16()?, body.u32()?);
            let (log_time_ns, publish_time_ns) = (body.u64()?, body.u64()?);
            let channel = described.channels.get(&id);
            let channel = channel.ok_or_else(|| begin.wrong("is a message of no channel"))?;
            take(Message {
                id,
                channel,
                schema: described.schemas.get(&channel.schema),
                log_time_ns,
                publish_time_ns,
                data: body.bytes,
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// The remaining bytes of a record, or of records, and their offset in the file.
#[derive(Clone, Copy)]
struct Fields<'b> {
    bytes: &'b [u8],
    place: usize,
    /// The offset of the compressed chunk in the file, from whose begin `place` counts.
    chunk: Option<usize>,
}

impl<'b> Fields<'b> {
    fn new(bytes: &'b [u8], place: usize) -> Self {
        Self {
            bytes,
            place,
            chunk: None,
        }
    }

    /// The next record's opcode and body; none at the end.
    fn record(&mut self) -> Result<Option<(u8, Fields<'b>)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let [opcode, length @ ..] = *self.array::<HEAD_BYTES>()?;
        let mut body = *self;
        body.bytes = self.sized(u64::from_le_bytes(length))?;
        Ok(Some((opcode, body)))
    }

    /// The records of a chunk.
    fn chunk<'c>(&mut self, buffer: &'c mut Vec<u8>) -> Result<Fields<'c>>
    where
        'b: 'c,
    {
        let (_start, _end, size, _checksum) = (self.u64()?, self.u64()?, self.u64()?, self.u32()?);
        let compression = self.text("compression")?;
        let length = self.u64()?;
        let mut records = *self;
        records.bytes = self.sized(length)?;
        if compression.is_empty() {
            return Ok(records);
        }
        decompress(compression, records.bytes, size, buffer)
            .map_err(|reason| records.wrong(&reason))?;
        Ok(Fields {
            bytes: buffer,
            place: 0,
            chunk: Some(records.place),
        })
    }

    fn text(&mut self, what: &str) -> Result<&'b str> {
        let begin = *self;
        let text = std::str::from_utf8(self.prefixed()?);
        text.map_err(|_| begin.wrong(&format!("is no {what}: it is not UTF-8")))
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(|bytes| u16::from_le_bytes(*bytes))
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Bytes after their length.
    fn prefixed(&mut self) -> Result<&'b [u8]> {
        let length = self.u32()?;
        self.sized(u64::from(length))
    }

    fn array<const N: usize>(&mut self) -> Result<&'b [u8; N]> {
        let (taken, rest) = self
            .bytes
            .split_first_chunk()
            .ok_or_else(|| self.wrong("is cut short"))?;
        (self.bytes, self.place) = (rest, self.place + N);
        Ok(taken)
    }

    fn sized(&mut self, length: u64) -> Result<&'b [u8]> {
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| self.wrong("is cut short"))?;
        (self.bytes, self.place) = (rest, self.place + taken.len());
        Ok(taken)
    }

    fn wrong(&self, what: &str) -> Error {
        let chunk = self.chunk.map_or_else(String::new, |place| {
            format!(" of the compressed chunk at byte {place}")
        });
        Error::data(format!(
            "not an MCAP recording: the data at byte {}{chunk} {what}",
            self.place
        ))
    }
}

#[cfg(feature = "mcap")]
use compression::decompress;

#[cfg(not(feature = "mcap"))]
fn decompress(
    _kind: &str,
    _bytes: &[u8],
    _size: u64,
    _records: &mut Vec<u8>,
) -> std::result::Result<(), String> {
    Err("is a compressed chunk: the feature \"mcap\" of the crate tectum-control is off".into())
}
