//! The container of every message: a header and structures.
//!
//! ```text
//! u8 4 | u16 counter | u8 count | agent id | u32 length × count | structures
//! structure = u8 type | u8 1 | body
//! ```
//!
//! Numbers are little-endian. The agent id has 48 bytes in the released client and 8 in the public
//! source of February 2026, and both have the version 4: the size is the one with which the lengths
//! add up to the message.

use tectum::{Error, Result};

/// The version of the container.
const VERSION: u8 = 4;
/// The version of a structure.
const STRUCTURE_VERSION: u8 = 1;
/// Bytes before the agent id.
const HEADER: usize = 4;
/// Bytes of a structure before its body.
pub(crate) const STRUCTURE_HEADER: usize = 2;
/// The first bytes of the pickles of Python's protocols 2 to 5, and of a frame of LZ4.
const PICKLE: u8 = 0x80;
const LZ4: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// The type of a structure that is a JSON document.
pub(crate) const JSON: u8 = 1;
/// The type of a structure of neuron voxels.
pub(crate) const VOXELS: u8 = 11;

/// The size of an agent's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdSize {
    /// 48 bytes: `feagi-rust-py-libs` 0.0.120.
    Long,
    /// 8 bytes: the public source of February 2026.
    Short,
}

impl IdSize {
    pub fn bytes(self) -> usize {
        match self {
            Self::Long => AgentId::MAX_BYTES,
            Self::Short => 8,
        }
    }
}

/// An agent's id, which the server chooses; all zero before the registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AgentId {
    size: IdSize,
    /// Zero after the id's own bytes.
    bytes: [u8; Self::MAX_BYTES],
}

impl AgentId {
    const MAX_BYTES: usize = 48;

    /// An id of the first bytes of a longer text.
    pub fn new(size: IdSize, bytes: [u8; Self::MAX_BYTES]) -> Self {
        let mut own = [0; Self::MAX_BYTES];
        own[..size.bytes()].copy_from_slice(&bytes[..size.bytes()]);
        Self { size, bytes: own }
    }

    /// The id of messages that name no agent.
    pub fn blank(size: IdSize) -> Self {
        Self::new(size, [0; Self::MAX_BYTES])
    }

    pub fn is_blank(&self) -> bool {
        self.bytes == [0; Self::MAX_BYTES]
    }

    pub fn size(&self) -> IdSize {
        self.size
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size.bytes()]
    }
}

/// A message's content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Container<'b> {
    /// Counts a sender's frames; 0 where they are not counted.
    pub counter: u16,
    pub agent: AgentId,
    pub structures: Vec<Structure<'b>>,
}

/// A part of a container.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Structure<'b> {
    pub kind: u8,
    /// All of it, type and version included: offsets in it count from its first byte.
    pub bytes: &'b [u8],
}

impl<'b> Structure<'b> {
    /// What follows type and version.
    pub fn body(&self) -> &'b [u8] {
        self.bytes.get(STRUCTURE_HEADER..).unwrap_or_default()
    }
}

impl<'b> Container<'b> {
    /// Reads a message.
    ///
    /// # Errors
    /// `Unsupported` for a pickle; `Data` for another version, lengths that do not add up, and a
    /// structure without a header or of another version.
    pub fn parse(bytes: &'b [u8]) -> Result<Self> {
        let [version, low, high, count, rest @ ..] = bytes else {
            return Err(Error::data(format!(
                "container: {} bytes; its header has {HEADER}",
                bytes.len()
            )));
        };
        let sizes = [IdSize::Long, IdSize::Short];
        let fitting = sizes.into_iter().find_map(|size| {
            let (agent, rest) = rest.split_at_checked(size.bytes())?;
            let (lengths, rest) = rest.split_at_checked(4 * usize::from(*count))?;
            let lengths = lengths.as_chunks::<4>().0.iter();
            let lengths: Vec<u32> = lengths.map(|bytes| u32::from_le_bytes(*bytes)).collect();
            let total: u64 = lengths.iter().copied().map(u64::from).sum();
            (total == rest.len() as u64).then_some((size, agent, lengths, rest))
        });
        let Some((size, agent, lengths, mut rest)) = fitting.filter(|_| *version == VERSION) else {
            return Err(refusal(bytes));
        };
        let mut id = [0; AgentId::MAX_BYTES];
        id[..size.bytes()].copy_from_slice(agent);
        let mut structures = Vec::with_capacity(lengths.len());
        for (place, length) in lengths.into_iter().enumerate() {
            let (own, others) = rest.split_at(length as usize);
            rest = others;
            structures.push(structure(place, own)?);
        }
        Ok(Self {
            counter: u16::from_le_bytes([*low, *high]),
            agent: AgentId::new(size, id),
            structures,
        })
    }
}

fn structure(place: usize, bytes: &[u8]) -> Result<Structure<'_>> {
    match bytes {
        [kind, STRUCTURE_VERSION, ..] => Ok(Structure { kind: *kind, bytes }),
        [kind, version, ..] => Err(Error::data(format!(
            "container: structure {place} of type {kind} has the version {version}; {STRUCTURE_VERSION} is needed"
        ))),
        _ => Err(Error::data(format!(
            "container: structure {place} has {} bytes; type and version need {STRUCTURE_HEADER}",
            bytes.len()
        ))),
    }
}

/// Why bytes are no container.
fn refusal(bytes: &[u8]) -> Error {
    let is_pickle = matches!(bytes, [PICKLE, 2..=5, ..]) || bytes.starts_with(&LZ4);
    if is_pickle {
        return Error::unsupported(
            "container: it is a pickle or LZ4, as feagi_connector of 2025 sends; pickles are never read",
        );
    }
    match bytes.first() {
        Some(&VERSION) => Error::data(format!(
            "container: its lengths do not add up to its {} bytes, with an agent id of neither 48 nor 8 bytes",
            bytes.len()
        )),
        version => Error::data(format!(
            "container: version {}; {VERSION} is needed",
            version.copied().unwrap_or_default()
        )),
    }
}

/// A message of one structure.
pub(crate) fn write(counter: u16, agent: &AgentId, structure: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + agent.size.bytes() + 4 + structure.len());
    bytes.push(VERSION);
    bytes.extend(counter.to_le_bytes());
    bytes.push(1);
    bytes.extend(agent.bytes());
    bytes.extend((structure.len() as u32).to_le_bytes());
    bytes.extend(structure);
    bytes
}

/// A structure that is a JSON document.
pub(crate) fn write_json(text: &str) -> Vec<u8> {
    [&[JSON, STRUCTURE_VERSION], text.as_bytes()].concat()
}

/// The header of a structure of neuron voxels.
pub(crate) const VOXELS_HEADER: [u8; STRUCTURE_HEADER] = [VOXELS, STRUCTURE_VERSION];

#[cfg(test)]
mod tests {
    use tectum::ErrorKind;

    use super::*;

    /// `"heart_beat"` of an agent, in hexadecimal, with an id of 8 bytes.
    const SHORT: [u8; 30] = [
        4, 7, 1, 1, // version, counter 263, one structure
        1, 2, 3, 4, 5, 6, 7, 8, // agent
        14, 0, 0, 0, // length
        1, 1, b'"', b'h', b'e', b'a', b'r', b't', b'_', b'b', b'e', b'a', b't', b'"',
    ];

    #[test]
    fn the_lengths_show_the_size_of_the_id() {
        let long: Vec<u8> = [&SHORT[..4], &[9; 48], &SHORT[12..]].concat();
        for (bytes, size, id) in [
            (&SHORT[..], IdSize::Short, vec![1, 2, 3, 4, 5, 6, 7, 8]),
            (&long, IdSize::Long, vec![9; 48]),
        ] {
            let container = Container::parse(bytes).expect("whole");
            assert_eq!(
                (
                    container.counter,
                    container.agent.size(),
                    container.agent.bytes()
                ),
                (263, size, &id[..])
            );
            assert_eq!(container.structures[0].kind, JSON);
            assert_eq!(container.structures[0].body(), b"\"heart_beat\"");
            let structure = write_json("\"heart_beat\"");
            assert_eq!(write(263, &container.agent, &structure), bytes);
        }
    }

    #[test]
    fn a_container_without_structures_has_only_its_header() {
        for (length, size) in [(52, IdSize::Long), (12, IdSize::Short)] {
            let mut bytes = vec![0; length];
            bytes[0] = 4;
            let container = Container::parse(&bytes).expect("empty");
            assert_eq!(container.agent, AgentId::blank(size));
            assert!(container.agent.is_blank() && container.structures.is_empty());
        }
    }

    #[test]
    fn what_is_no_container_is_refused_with_its_reason() {
        let mut other_version = SHORT;
        other_version[0] = 3;
        let mut other_structure = SHORT;
        other_structure[17] = 2;
        let mut long = SHORT;
        long[12] = 15;
        let longer = [&SHORT[..], &[0]].concat();
        let tiny = [4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
        for (bytes, kind, reason) in [
            (
                &b"abc"[..],
                ErrorKind::Data,
                "container: 3 bytes; its header has 4",
            ),
            (
                &other_version,
                ErrorKind::Data,
                "container: version 3; 4 is needed",
            ),
            (&long, ErrorKind::Data, "do not add up to its 30 bytes"),
            (&longer, ErrorKind::Data, "do not add up to its 31 bytes"),
            (
                &SHORT[..29],
                ErrorKind::Data,
                "do not add up to its 29 bytes",
            ),
            (
                &other_structure,
                ErrorKind::Data,
                "structure 0 of type 1 has the version 2; 1",
            ),
            (
                &tiny,
                ErrorKind::Data,
                "structure 0 has 1 bytes; type and version need 2",
            ),
            (
                b"\x80\x04\x95\x0b.",
                ErrorKind::Unsupported,
                "pickles are never read",
            ),
            (
                b"\x04\x22\x4d\x18abcd",
                ErrorKind::Unsupported,
                "feagi_connector of 2025",
            ),
        ] {
            let error = Container::parse(bytes).expect_err(reason);
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
