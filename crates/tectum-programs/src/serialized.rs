//! Programs as bytes: a header, then the parts.

use tectum::{Error, Result};

use super::{Program, ProgramParts};

/// The first bytes of a serialised program.
const MAGIC: [u8; 4] = *b"TPRG";

impl Program {
    /// The version of the serialised form; a change of the instructions' encoding raises it.
    pub const FORMAT: u16 = 1;

    /// The serialised form: magic, version, name, declarations, labels and instructions. It has no source text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [&MAGIC[..], &Self::FORMAT.to_le_bytes()].concat();
        postcard::to_extend(&*self.parts, head).expect("invariant: parts are plain data, and memory takes all of it")
    }

    /// Reads the serialised form.
    ///
    /// # Errors
    /// Kind `Data`: other magic or version, bytes that are no program, bytes left over.
    pub fn from_bytes(bytes: &[u8]) -> Result<Program> {
        let body = bytes.strip_prefix(&MAGIC).ok_or_else(|| Error::data("program: the bytes do not begin with TPRG"))?;
        let (version, body) = body.split_first_chunk().ok_or_else(|| Error::data("program: the bytes end in the header"))?;
        let version = u16::from_le_bytes(*version);
        if version != Self::FORMAT {
            return Err(Error::data(format!("program: version {version} of the serialised form, this build reads {}", Self::FORMAT)));
        }
        let malformed = |error: postcard::Error| Error::data(format!("program: malformed after the header: {error}"));
        let (parts, rest) = postcard::take_from_bytes::<ProgramParts>(body).map_err(malformed)?;
        if !rest.is_empty() {
            return Err(Error::data(format!("program: {} bytes after the end", rest.len())));
        }
        Program::new(parts).map_err(|error| Error::data(error.to_string()))
    }
}
