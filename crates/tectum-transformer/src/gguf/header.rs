//! The header of a GGUF file: metadata and descriptions of tensors, all checked against the file's
//! length before use. <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>

use std::collections::BTreeSet;

use tectum::{Error, Result};

use super::tensor_type::TensorType;
use super::value::{Cursor, Value, ValueType};

/// The first bytes of a file.
const MAGIC: [u8; 4] = *b"GGUF";
/// Versions with this layout; before version 2 counts and lengths had 32 bits.
const VERSIONS: [u32; 2] = [2, 3];
/// Default alignment of tensors.
const ALIGNMENT: u64 = 32;
const ALIGNMENT_KEY: &str = "general.alignment";
/// Maximum keys, and maximum tensors; the largest models have some thousands.
const MAX_ENTRIES: u64 = 1 << 16;
/// Maximum name of a key or a tensor, in bytes.
const MAX_NAME_BYTES: u64 = 65_535;
/// Maximum dimensions of a tensor.
const MAX_DIMENSIONS: u32 = 4;
/// Minimum bytes of a key with its value, and of a tensor's description.
const MIN_KEY_BYTES: u64 = 8 + 4 + 1;
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// The header of a file.
#[derive(Debug)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// Tensors begin at multiples of this many bytes.
    pub alignment: u64,
    keys: Vec<Key>,
    tensors: Vec<GgufTensor>,
}

/// One tensor of a file.
#[derive(Debug, Clone)]
pub struct GgufTensor {
    /// Its name.
    pub name: String,
    /// Sizes of its dimensions, the innermost last.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub kind: &'static TensorType,
    /// Its size in bytes.
    pub bytes: usize,
    /// Its offset in the file, in bytes.
    pub start: usize,
}

/// One key, whose value is in the file.
#[derive(Debug)]
struct Key {
    name: String,
    kind: ValueType,
    at: usize,
}

impl GgufTensor {
    /// Reads the elements as f32, from the whole file that the header was read from.
    ///
    /// # Numerics
    /// Halves are widened exactly; codes become the same numbers, bit for bit, as in the Python
    /// package `gguf`.
    ///
    /// # Errors
    /// `Unsupported` for a type that cannot be read.
    pub fn read(&self, file: &[u8], to: &mut [f32]) -> Result<()> {
        let widen = self
            .kind
            .dequantizer()
            .map_err(|error| error.at(format!("tensor {}", self.name.escape_debug())))?;
        widen(&file[self.start..][..self.bytes], to);
        Ok(())
    }
}

impl Header {
    /// Reads the header of a whole file and checks that everything it refers to is in the file.
    ///
    /// # Errors
    /// `Data`, naming the key or tensor: not a GGUF file; another version or byte order; a
    /// truncated file; more keys, tensors or dimensions than any model has; names that are
    /// duplicate or not UTF-8; unknown types; sizes that overflow or are not a multiple of the
    /// block; tensors outside the file, overlapping or not aligned.
    ///
    /// # Cost
    /// One pass over the header. No values are stored; keys and tensors take some hundred bytes
    /// each.
    pub fn parse(bytes: &[u8]) -> Result<Header> {
        let mut cursor = Cursor::new(bytes, 0);
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(Error::data("not a GGUF file: it does not begin with GGUF"));
        }
        cursor.at = MAGIC.len();
        let version = cursor.u32().map_err(|error| error.at("the version"))?;
        if VERSIONS.contains(&version.swap_bytes()) {
            return Err(Error::data(format!(
                "version {} with the greatest byte first; the smallest first is read",
                version.swap_bytes()
            )));
        }
        if !VERSIONS.contains(&version) {
            return Err(Error::data(format!(
                "version {version}; versions 2 and 3 are read"
            )));
        }
        let tensors = count(&mut cursor, "tensors", MIN_TENSOR_BYTES)?;
        let keys = count(&mut cursor, "keys", MIN_KEY_BYTES)?;
        // Keys come before tensors, but both counts come first.
        let keys = read_keys(&mut cursor, keys)?;
        let mut header = Header {
            version,
            alignment: ALIGNMENT,
            keys,
            tensors: Vec::new(),
        };
        header.alignment = header.read_alignment(bytes)?;
        header.tensors = read_tensors(&mut cursor, tensors)?;
        header.place(cursor.at, bytes.len())?;
        Ok(header)
    }

    /// The keys in the file's order, each with the type of its value.
    pub fn keys(&self) -> impl Iterator<Item = (&str, ValueType)> {
        self.keys.iter().map(|key| (key.name.as_str(), key.kind))
    }

    /// The tensors in the file's order.
    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }

    /// The value of a key, in the file that the header was read from.
    pub fn value<'a>(&self, name: &str, bytes: &'a [u8]) -> Option<Value<'a>> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        Cursor::new(bytes, key.at).value(key.kind, 0).ok()
    }

    fn read_alignment(&self, bytes: &[u8]) -> Result<u64> {
        match self.value(ALIGNMENT_KEY, bytes) {
            None => Ok(ALIGNMENT),
            Some(Value::Unsigned(alignment))
                if alignment.is_power_of_two() && alignment <= 1 << 30 =>
            {
                Ok(alignment)
            }
            Some(value) => Err(Error::data(format!(
                "key {ALIGNMENT_KEY} is {value}; a power of two up to 2^30 is needed"
            ))),
        }
    }

    /// Converts offsets to positions in the file and checks that they are inside it, aligned and
    /// not overlapping.
    fn place(&mut self, end: usize, len: usize) -> Result<()> {
        let alignment = self.alignment as usize;
        let Some(data) = end.checked_next_multiple_of(alignment) else {
            return Err(Error::data("the header has no end"));
        };
        for tensor in &mut self.tensors {
            let fault = |what: String| {
                Err(Error::data(format!(
                    "tensor {} {what}",
                    tensor.name.escape_debug()
                )))
            };
            if !tensor.start.is_multiple_of(alignment) {
                return fault(format!(
                    "begins at {}, no multiple of {alignment}",
                    tensor.start
                ));
            }
            let start = data.checked_add(tensor.start);
            match start.and_then(|start| start.checked_add(tensor.bytes)) {
                Some(end) if end <= len => tensor.start += data,
                _ => {
                    let room = len.saturating_sub(data);
                    return fault(format!(
                        "of {} bytes begins at {} of the {room} that the file has for tensors",
                        tensor.bytes, tensor.start
                    ));
                }
            }
        }
        let mut order: Vec<&GgufTensor> = self
            .tensors
            .iter()
            .filter(|tensor| tensor.bytes > 0)
            .collect();
        order.sort_by_key(|tensor| tensor.start);
        match order
            .windows(2)
            .find(|pair| pair[0].start + pair[0].bytes > pair[1].start)
        {
            Some(pair) => Err(Error::data(format!(
                "tensor {} overlaps tensor {}",
                pair[1].name.escape_debug(),
                pair[0].name.escape_debug()
            ))),
            None => Ok(()),
        }
    }
}

/// A count of entries, at most as many as the file has room for.
fn count(cursor: &mut Cursor<'_>, what: &str, least: u64) -> Result<u64> {
    let count = cursor
        .u64()
        .map_err(|error| error.at(format!("the number of {what}")))?;
    if count > MAX_ENTRIES || count > cursor.left() / least {
        let room = MAX_ENTRIES.min(cursor.left() / least);
        return Err(Error::data(format!(
            "the number of {what}: {count}; the file has room for {room}"
        )));
    }
    Ok(count)
}

/// A name of a key or a tensor.
fn name(cursor: &mut Cursor<'_>) -> Result<String> {
    let bytes = cursor.text()?;
    if bytes.len() as u64 > MAX_NAME_BYTES {
        return Err(Error::data(format!(
            "has a name of {} bytes; the maximum is {MAX_NAME_BYTES}",
            bytes.len()
        )));
    }
    // Copied before it is checked: another process may write to the file.
    String::from_utf8(bytes.to_vec())
        .map_err(|source| Error::data("has a name that is no UTF-8").with_source(source))
}

fn read_keys(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<Key>> {
    let mut keys: Vec<Key> = Vec::new();
    for index in 0..count {
        let name = name(cursor).map_err(|error| error.at(format!("key {index}")))?;
        let mut read = || {
            let kind = cursor.value_type()?;
            let at = cursor.at;
            cursor.skip(kind).map(|()| (kind, at))
        };
        let (kind, at) =
            read().map_err(|error| error.at(format!("key {}", name.escape_debug())))?;
        keys.push(Key { name, kind, at });
    }
    check_unique("key", keys.iter().map(|key| key.name.as_str()))?;
    Ok(keys)
}

fn read_tensors(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<GgufTensor>> {
    let mut tensors: Vec<GgufTensor> = Vec::new();
    for index in 0..count {
        let name = name(cursor).map_err(|error| error.at(format!("tensor {index}")))?;
        let tensor = read_tensor(cursor, &name)
            .map_err(|error| error.at(format!("tensor {}", name.escape_debug())))?;
        tensors.push(tensor);
    }
    check_unique("tensor", tensors.iter().map(|tensor| tensor.name.as_str()))?;
    Ok(tensors)
}

/// A tensor whose start is as in the file, relative to the start of the tensor data.
fn read_tensor(cursor: &mut Cursor<'_>, name: &str) -> Result<GgufTensor> {
    let dimensions = cursor.u32()?;
    if dimensions > MAX_DIMENSIONS {
        return Err(Error::data(format!(
            "has {dimensions} dimensions; the maximum is {MAX_DIMENSIONS}"
        )));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = cursor.u64()?;
        shape.push(
            usize::try_from(size).map_err(|_| Error::data(format!("has a dimension of {size}")))?,
        );
    }
    // The file has the innermost dimension first.
    shape.reverse();
    let number = cursor.u32()?;
    let kind = TensorType::of(number)
        .ok_or_else(|| Error::data(format!("is of unknown type {number}")))?;
    let start = cursor.u64()?;
    // Sizes of 0 count as 1, so that overflow does not depend on the order of factors.
    let elements = shape.iter().try_fold(1usize, |elements, size| {
        elements.checked_mul((*size).max(1))
    });
    let bytes = elements.and_then(|elements| elements.div_ceil(kind.block).checked_mul(kind.bytes));
    let (Some(bytes), Ok(start)) = (bytes, usize::try_from(start)) else {
        return Err(Error::data(format!(
            "is {shape:?} of {} from {start} on, more than can be counted",
            kind.name
        )));
    };
    let inner = shape.last().copied().unwrap_or(1);
    if !inner.is_multiple_of(kind.block) {
        return Err(Error::data(format!(
            "has rows of {inner} elements, no whole number of {}'s blocks of {}",
            kind.name, kind.block
        )));
    }
    let bytes = if shape.contains(&0) { 0 } else { bytes };
    Ok(GgufTensor {
        name: name.to_owned(),
        shape,
        kind,
        bytes,
        start,
    })
}

/// Rejects a duplicate name.
fn check_unique<'a>(what: &str, mut names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(name) => Err(Error::data(format!(
            "{what} {} occurs twice",
            name.escape_debug()
        ))),
        None => Ok(()),
    }
}
