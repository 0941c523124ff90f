//! Programs as bytes: a header, then the text form.

use tectum::{Error, Result};

use super::Program;

/// The first bytes of a serialised program.
const MAGIC: [u8; 4] = *b"TPRG";

impl Program {
    /// The version of the serialised form; a change of the text form raises it.
    pub const FORMAT: u16 = 2;

    /// The serialised form: magic, version and the text form as it is printed, without the comments
    /// and the layout of a source.
    pub fn to_bytes(&self) -> Vec<u8> {
        [
            &MAGIC[..],
            &Self::FORMAT.to_le_bytes(),
            self.to_string().as_bytes(),
        ]
        .concat()
    }

    /// Reads the serialised form.
    ///
    /// # Errors
    /// Kind `Data`: other magic or version, a text that is no program, or one that is not as it is
    /// printed, such as one that was cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
        let body = bytes
            .strip_prefix(&MAGIC)
            .ok_or_else(|| Error::data("program: the bytes do not begin with TPRG"))?;
        let (version, body) = body
            .split_first_chunk()
            .ok_or_else(|| Error::data("program: the bytes end in the header"))?;
        let version = u16::from_le_bytes(*version);
        if version != Self::FORMAT {
            return Err(Error::data(format!(
                "program: version {version} of the serialised form, this build reads {}",
                Self::FORMAT
            )));
        }
        let malformed =
            |reason: String| Error::data(format!("program: malformed after the header: {reason}"));
        let text = std::str::from_utf8(body).map_err(|error| malformed(error.to_string()))?;
        let program = Program::parse(text).map_err(|error| malformed(error.to_string()))?;
        if program.to_string() != text {
            return Err(malformed(
                "the text is not as a program is printed".to_owned(),
            ));
        }
        Ok(Program {
            source: None,
            ..program
        })
    }
}
