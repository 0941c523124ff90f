//! Area ids: eight bytes, for every spelling in files.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use tectum::Error;

/// An area's id: eight bytes. Six characters are padded with `__`, seven with `_`; twelve are
/// base64 of the eight bytes; the spellings of a core area are one id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AreaId([u8; 8]);

/// Areas with a fixed meaning in the format; the number is the reference's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreArea {
    /// Ends the brain when it fires.
    Death = 0,
    /// Fires in every burst.
    Power = 1,
    /// Fires while the brain is fatigued.
    Fatigue = 2,
    /// Pain.
    Pain = 3,
    /// Pleasure.
    Pleasure = 4,
    /// Fear.
    Fear = 5,
    /// Hope.
    Hope = 6,
}

/// The canonical eight bytes of each core area, then the other spellings that files use.
const CORE: [(CoreArea, &[u8; 8], &[&str]); 7] = [
    (CoreArea::Death, b"___death", &["_death"]),
    (CoreArea::Power, b"___power", &["_power", "___pwr"]),
    (CoreArea::Fatigue, b"___fatig", &["_fatig", "_fatigue"]),
    (CoreArea::Pain, b"___pain_", &["_pain"]),
    (CoreArea::Pleasure, b"___pleas", &["_pleasure"]),
    (CoreArea::Fear, b"___fear_", &["_fear"]),
    (CoreArea::Hope, b"___hope_", &["_hope"]),
];

impl AreaId {
    /// The eight bytes.
    pub fn bytes(self) -> [u8; 8] {
        self.0
    }

    /// The core area with this id, if any.
    pub fn core(self) -> Option<CoreArea> {
        CORE.iter()
            .find(|(_, bytes, _)| **bytes == self.0)
            .map(|(core, _, _)| *core)
    }

    /// The id of a core area.
    pub fn from_core(core: CoreArea) -> Self {
        Self(*CORE[core as usize].1)
    }

    /// The id as twelve characters of base64, as in newer files.
    pub fn base64(self) -> String {
        encode_base64(self.0)
    }
}

impl FromStr for AreaId {
    type Err = Error;

    /// Parses any spelling.
    ///
    /// # Errors
    /// `Data` for a text that is not an id.
    fn from_str(text: &str) -> Result<Self, Error> {
        let named = CORE.iter().find(|(_, bytes, spellings)| {
            bytes.as_slice() == text.as_bytes() || spellings.contains(&text)
        });
        if let Some((core, _, _)) = named {
            return Ok(Self::from_core(*core));
        }
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
        let bytes = match text.len() {
            6..=8 if is_plain => padded(text.as_bytes()),
            12 => decode_base64(text.as_bytes()),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| {
            Error::data(format!(
                "area id {text:?}: six to eight ASCII characters or twelve of base64 needed"
            ))
        })?;
        // An alternative spelling of a core area, padded to eight bytes, is the same core area.
        let spelled = std::str::from_utf8(&bytes).unwrap_or_default();
        let core = CORE.iter().find(|(_, known, spellings)| {
            known.as_slice() == bytes || spellings.contains(&spelled.trim_end_matches("__"))
        });
        Ok(core.map_or(Self(bytes), |(core, ..)| Self::from_core(*core)))
    }
}

impl fmt::Display for AreaId {
    /// Six characters if the padding allows, eight if all are printable, otherwise base64; core
    /// areas as `_power`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(core) = self.core() {
            return f.write_str(CORE[core as usize].2[0]);
        }
        match std::str::from_utf8(&self.0) {
            Ok(text)
                if self
                    .0
                    .iter()
                    .all(|byte| byte.is_ascii_graphic() || *byte == b' ') =>
            {
                f.write_str(text.strip_suffix("__").unwrap_or(text))
            }
            _ => f.write_str(&self.base64()),
        }
    }
}

impl Serialize for AreaId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn padded(bytes: &[u8]) -> Option<[u8; 8]> {
    let mut id = [b'_'; 8];
    id.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(id)
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Eight bytes of eleven digits and one `=`. The two unused bits must be zero, so that an id has
/// one spelling.
fn decode_base64(text: &[u8]) -> Option<[u8; 8]> {
    let (pad, digits) = text.split_last()?;
    if *pad != b'=' || digits.len() != 11 {
        return None;
    }
    let value = digits.iter().try_fold(0u128, |value, digit| {
        let digit = ALPHABET.iter().position(|letter| letter == digit)?;
        Some((value << 6) | digit as u128)
    })?;
    (value & 3 == 0).then(|| ((value >> 2) as u64).to_be_bytes())
}

fn encode_base64(bytes: [u8; 8]) -> String {
    let value = u128::from(u64::from_be_bytes(bytes)) << 2;
    let digits = (0..11)
        .rev()
        .map(|digit| char::from(ALPHABET[(value >> (6 * digit)) as usize & 63]));
    digits.chain(['=']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_one_id() {
        let id = |text: &str| text.parse::<AreaId>().expect(text);
        for (text, shown, core) in [
            ("_power", "_power", Some(CoreArea::Power)),
            ("___pwr", "_power", Some(CoreArea::Power)),
            ("___power", "_power", Some(CoreArea::Power)),
            ("___pwr__", "_power", Some(CoreArea::Power)),
            ("_pain", "_pain", Some(CoreArea::Pain)),
            ("___hope_", "_hope", Some(CoreArea::Hope)),
            ("_pleasure", "_pleasure", Some(CoreArea::Pleasure)),
            ("X19fcG93ZXI=", "_power", Some(CoreArea::Power)),
            ("X19fcHdyX18=", "_power", Some(CoreArea::Power)),
            ("_death", "_death", Some(CoreArea::Death)),
            ("___death", "_death", Some(CoreArea::Death)),
            ("_fatig", "_fatig", Some(CoreArea::Fatigue)),
            ("_fatigue", "_fatig", Some(CoreArea::Fatigue)),
            ("o__mot", "o__mot", None),
            ("o__mot__", "o__mot", None),
            ("b19fbW90X18=", "o__mot", None),
            ("iv00CC", "iv00CC", None),
            ("c_avoid", "c_avoid_", None),
            ("___fear", "_fear", Some(CoreArea::Fear)),
            ("isvi\u{7f}abc", "", None),
        ] {
            match text.parse::<AreaId>() {
                Ok(id) => assert_eq!(
                    (id.to_string().as_str(), id.core()),
                    (shown, core),
                    "{text}"
                ),
                Err(error) => assert!(shown.is_empty(), "{text}: {error}"),
            }
        }
        assert_eq!(id("o__mot"), id("b19fbW90X18="));
        assert_eq!(id("o__mot").base64(), "b19fbW90X18=");
        let binary = id("aXN2aQkABQA=");
        assert_eq!(
            (binary.bytes(), binary.to_string().as_str()),
            (*b"isvi\x09\0\x05\0", "aXN2aQkABQA=")
        );
        for wrong in [
            "",
            "abc",
            "abcdefghi",
            "b19fbW90X19=",
            "b19fbW90X18!",
            "é__mot_",
        ] {
            assert!(wrong.parse::<AreaId>().is_err(), "{wrong}");
        }
    }
}
