//! The records of an MCAP file that are needed to read a recording.
//!
//! The `mcap` crate writes recordings but does not read them here: on a corrupt length it panics or
//! allocates gigabytes. Here every length is checked against the remaining bytes, and nothing is
//! copied. Checksums are not verified.
//!
//! # Source
//! The MCAP format specification, <https://mcap.dev/spec>: records, and chunks without compression.

use tectum::{Error, Result};

const MAGIC: &[u8; 8] = b"\x89MCAP0\r\n";
/// Opcode and length of a record.
const HEAD_BYTES: usize = 9;
const FOOTER: u8 = 0x02;
const CHANNEL: u8 = 0x04;
const MESSAGE: u8 = 0x05;
const CHUNK: u8 = 0x06;
const DATA_END: u8 = 0x0F;
/// The maximum number of channels: a recording has three.
const MAX_CHANNELS: usize = 256;

/// A message and the topic of its channel.
pub(super) struct Message<'b> {
    pub topic: &'b str,
    pub time_ns: u64,
    pub data: &'b [u8],
}

/// Passes every message to `take`, in the file's order.
///
/// # Errors
/// `Data` naming the byte of a malformed record; what `take` reports.
pub(super) fn messages<'b>(
    bytes: &'b [u8],
    take: &mut dyn FnMut(Message<'b>) -> Result<()>,
) -> Result<()> {
    let records = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| Error::data("not an MCAP recording: it does not begin as one"))?;
    let mut channels = Vec::new();
    let mut fields = Fields {
        bytes: records,
        place: MAGIC.len(),
    };
    while let Some((opcode, body)) = fields.record()? {
        match opcode {
            FOOTER | DATA_END => return Ok(()),
            _ => each(opcode, body, &mut channels, take)?,
        }
    }
    Err(Error::data(format!(
        "not a whole MCAP recording: it breaks off at byte {}; tectum recover makes it whole",
        bytes.len()
    )))
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
    let records = bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| Error::data("not an MCAP recording: it does not begin as one"))?;
    let mut fields = Fields {
        bytes: records,
        place: MAGIC.len(),
    };
    let (mut channels, mut messages, mut whole, mut is_data) = (Vec::new(), 0, MAGIC.len(), true);
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
            Ok(Some((opcode, body))) if is_data => match counted(opcode, body, &mut channels) {
                Ok(count) => (messages, whole) = (messages + count, fields.place),
                Err(_) => break,
            },
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

/// The messages of a record, which may be a chunk.
fn counted<'b>(opcode: u8, body: Fields<'b>, channels: &mut Vec<(u16, &'b str)>) -> Result<u64> {
    let mut count = 0;
    each(opcode, body, channels, &mut |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Visits a record, or the records of a chunk.
fn each<'b>(
    opcode: u8,
    mut body: Fields<'b>,
    channels: &mut Vec<(u16, &'b str)>,
    take: &mut dyn FnMut(Message<'b>) -> Result<()>,
) -> Result<()> {
    if opcode != CHUNK {
        return one(opcode, body, channels, take);
    }
    let mut inner = body.chunk()?;
    while let Some((opcode, body)) = inner.record()? {
        one(opcode, body, channels, take)?;
    }
    Ok(())
}

/// Stores a channel or passes on a message; other records are not needed.
fn one<'b>(
    opcode: u8,
    mut body: Fields<'b>,
    channels: &mut Vec<(u16, &'b str)>,
    take: &mut dyn FnMut(Message<'b>) -> Result<()>,
) -> Result<()> {
    let place = body.place;
    if opcode == CHANNEL {
        let (id, _schema) = (body.u16()?, body.u16()?);
        let topic = std::str::from_utf8(body.prefixed()?)
            .map_err(|_| body.wrong("has a topic that is not text"))?;
        // A channel is written again before the chunks that use it.
        if channels.iter().all(|(known, _)| *known != id) {
            channels.push((id, topic));
        }
        if channels.len() > MAX_CHANNELS {
            return Err(body.wrong("is one channel too many"));
        }
    } else if opcode == MESSAGE {
        let (id, _sequence, time_ns, _published) =
            (body.u16()?, body.u32()?, body.u64()?, body.u64()?);
        let topic = channels
            .iter()
            .find(|(known, _)| *known == id)
            .map(|(_, topic)| *topic);
        let topic = topic.ok_or_else(|| {
            Error::data(format!(
                "not an MCAP recording: the record at byte {place} is of no channel"
            ))
        })?;
        take(Message {
            topic,
            time_ns,
            data: body.bytes,
        })?;
    }
    Ok(())
}

/// The remaining bytes of a record, or of records, and their offset in the file.
#[derive(Clone, Copy)]
struct Fields<'b> {
    bytes: &'b [u8],
    place: usize,
}

impl<'b> Fields<'b> {
    /// The next record's opcode and body; none at the end.
    fn record(&mut self) -> Result<Option<(u8, Fields<'b>)>> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let [opcode, length @ ..] = *self.array::<HEAD_BYTES>()?;
        let place = self.place;
        let bytes = self.sized(u64::from_le_bytes(length))?;
        Ok(Some((opcode, Fields { bytes, place })))
    }

    /// The records of a chunk.
    fn chunk(&mut self) -> Result<Fields<'b>> {
        let (_start, _end, _size, _checksum) = (self.u64()?, self.u64()?, self.u64()?, self.u32()?);
        if !self.prefixed()?.is_empty() {
            return Err(self.wrong("is a compressed chunk, which recordings do not have"));
        }
        let length = self.u64()?;
        let place = self.place;
        Ok(Fields {
            bytes: self.sized(length)?,
            place,
        })
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
        *self = Self {
            bytes: rest,
            place: self.place + N,
        };
        Ok(taken)
    }

    fn sized(&mut self, length: u64) -> Result<&'b [u8]> {
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.bytes.split_at_checked(length));
        let (taken, rest) = split.ok_or_else(|| self.wrong("is cut short"))?;
        *self = Self {
            bytes: rest,
            place: self.place + taken.len(),
        };
        Ok(taken)
    }

    fn wrong(&self, what: &str) -> Error {
        Error::data(format!(
            "not an MCAP recording: the data at byte {} {what}",
            self.place
        ))
    }
}
