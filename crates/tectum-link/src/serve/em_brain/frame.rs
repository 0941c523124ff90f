//! Frames of em-brain's protocol.
//!
//! ```text
//! byte 0   u32 big-endian      0x524F424F, "ROBO"
//! byte 4   u32 big-endian      5 + 4 n, the bytes after this number
//! byte 8   u8                  type: 0 sensors, 1 action, 2 handshake, 255 error
//! byte 9   u32 big-endian      n
//! byte 13  n × f32 little-endian
//! ```

/// "ROBO".
const MAGIC: u32 = 0x524F_424F;
/// Bytes before the numbers.
const HEAD: usize = 13;
/// Bytes that the length counts besides the numbers: the type and the count.
const COUNTED: u32 = 5;
/// The maximum count of numbers of a frame.
pub(super) const MAX_NUMBERS: u32 = 16_384;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sensors,
    Action,
    Handshake,
    Error,
}

impl Kind {
    const ALL: [(Self, u8); 4] = [
        (Self::Sensors, 0),
        (Self::Action, 1),
        (Self::Handshake, 2),
        (Self::Error, 255),
    ];

    pub(super) fn code(self) -> u8 {
        let known = Self::ALL.iter().find(|(kind, _)| *kind == self);
        known.map_or(255, |(_, code)| *code)
    }

    fn of(code: u8) -> Option<Self> {
        let known = Self::ALL.iter().find(|(_, known)| *known == code);
        known.map(|(kind, _)| *kind)
    }
}

/// Some numbers and what they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub kind: Kind,
    pub numbers: Vec<f32>,
}

impl Frame {
    /// The bytes of the frame.
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = self.numbers.len() as u32;
        let mut bytes = Vec::with_capacity(HEAD + 4 * self.numbers.len());
        bytes.extend(MAGIC.to_be_bytes());
        bytes.extend((COUNTED + 4 * count).to_be_bytes());
        bytes.push(self.kind.code());
        bytes.extend(count.to_be_bytes());
        let numbers = self.numbers.iter();
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// The frame that bytes begin with, and its number of bytes; none until more bytes arrive. What
    /// cannot become a frame is refused as soon as that is known.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let Some((magic, rest)) = word(bytes) else {
            return Ok(None);
        };
        if magic != MAGIC {
            return Err(format!(
                "a frame begins with 0x{magic:08X}, needs 0x{MAGIC:08X} (\"ROBO\")"
            ));
        }
        let Some((length, rest)) = word(rest) else {
            return Ok(None);
        };
        let count = length
            .checked_sub(COUNTED)
            .filter(|bytes| bytes.is_multiple_of(4));
        let count = count.map(|bytes| bytes / 4);
        let count = count.filter(|count| *count <= MAX_NUMBERS).ok_or_else(|| {
            format!("a frame has the length {length}, needs 5 + 4 n with n up to {MAX_NUMBERS}")
        })?;
        let Some((code, rest)) = rest.split_first() else {
            return Ok(None);
        };
        let kind = Kind::of(*code)
            .ok_or_else(|| format!("a frame has the type {code}; known: 0, 1, 2, 255"))?;
        let Some((stated, rest)) = word(rest) else {
            return Ok(None);
        };
        if stated != count {
            return Err(format!(
                "a frame states {stated} numbers, its length {length} has {count}"
            ));
        }
        let size = 4 * count as usize;
        let Some(data) = rest.get(..size) else {
            return Ok(None);
        };
        let numbers = data.as_chunks().0.iter();
        let numbers = numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Ok(Some((Self { kind, numbers }, HEAD + size)))
    }
}

/// The first big-endian word, and what follows it.
fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*word), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_bytes_of_the_table() {
        let frame = Frame {
            kind: Kind::Action,
            numbers: vec![0.5, -2.0],
        };
        let bytes = [
            0x52, 0x4f, 0x42, 0x4f, 0, 0, 0, 13, 1, 0, 0, 0, 2, 0, 0, 0, 0x3f, 0, 0, 0, 0xc0,
        ];
        assert_eq!(frame.to_bytes(), bytes);
        for end in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..end]), Ok(None), "{end} bytes");
        }
        assert_eq!(Frame::decode(&bytes), Ok(Some((frame, 21))));
    }

    #[test]
    fn what_cannot_become_a_frame_is_refused_at_once() {
        for (bytes, reason) in [
            (
                &[0xde, 0xad, 0xbe, 0xef][..],
                "a frame begins with 0xDEADBEEF, needs 0x524F424F (\"ROBO\")",
            ),
            (
                b"ROBO\x00\x00\x00\x04",
                "a frame has the length 4, needs 5 + 4 n with n up to 16384",
            ),
            (
                b"ROBO\x00\x00\x00\x07",
                "a frame has the length 7, needs 5 + 4 n with n up to 16384",
            ),
            (
                b"ROBO\x00\x01\x00\x09",
                "a frame has the length 65545, needs 5 + 4 n with n up to 16384",
            ),
            (
                b"ROBO\x00\x00\x00\x05\x07",
                "a frame has the type 7; known: 0, 1, 2, 255",
            ),
            (
                b"ROBO\x00\x00\x00\x09\x00\x00\x00\x00\x02",
                "a frame states 2 numbers, its length 9 has 1",
            ),
        ] {
            assert_eq!(Frame::decode(bytes), Err(reason.to_owned()), "{bytes:?}");
        }
        assert_eq!(
            Frame::decode(b"ROBO\x00\x01\x00\x05"),
            Ok(None),
            "the maximum"
        );
    }
}
