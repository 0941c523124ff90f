//! The safetensors format: the length of a header, the header in JSON, then the elements of all
//! arrays.
//!
//! # Source
//! <https://github.com/huggingface/safetensors>, "Format". Only the four element types of snapshots are read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// Maximum bytes of a header, as in the format's own reader.
const MAX_HEADER: u64 = 100_000_000;
/// The header's entry that is no array.
const METADATA: &str = "__metadata__";
/// Element types with their bytes, in the order in which arrays are written: wider ones first.
const DTYPES: [(&str, usize); 4] = [("U64", 8), ("F64", 8), ("F32", 4), ("U32", 4)];

/// An array: its element type as the format names it, its number of elements, and their bytes.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    pub dtype: &'a str,
    pub len: usize,
    pub bytes: &'a [u8],
}

/// What a file has.
#[derive(Debug)]
pub struct Contents<'a> {
    /// In the order of their bytes.
    pub arrays: Vec<(String, Elements<'a>)>,
    pub metadata: Map<String, Value>,
}

/// An array of a header.
#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// A file with arrays of one dimension and an entry of the metadata.
pub fn encode(arrays: &BTreeMap<&str, Elements<'_>>, (key, text): (&str, String)) -> Vec<u8> {
    let mut header = Map::from_iter([(METADATA.to_owned(), json!({ key: text }))]);
    let mut data = Vec::new();
    for (dtype, _) in DTYPES {
        for (name, array) in arrays.iter().filter(|(_, array)| array.dtype == dtype) {
            let begin = data.len();
            data.extend(array.bytes);
            header.insert((*name).to_owned(), json!({ "dtype": dtype, "shape": [array.len], "data_offsets": [begin, data.len()] }));
        }
    }
    let mut header = Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_slice(),
        &data,
    ]
    .concat()
}

/// The arrays of a file with their types and bytes, and the texts of its metadata.
///
/// # Errors
/// `Data` for a header that is not one, an array of another type, and bytes that belong to no array
/// or to two.
pub fn decode(bytes: &[u8]) -> Result<Contents<'_>> {
    let (len, rest) = bytes
        .split_first_chunk()
        .ok_or_else(|| Error::data("the file ends before its header"))?;
    let len = u64::from_le_bytes(*len);
    let parts = usize::try_from(len)
        .ok()
        .filter(|_| len <= MAX_HEADER)
        .and_then(|len| rest.split_at_checked(len));
    let (header, data) = parts.ok_or_else(|| {
        Error::data(format!(
            "a header of {len} bytes in a file of {}",
            bytes.len()
        ))
    })?;
    let mut header: Map<String, Value> =
        serde_json::from_slice(header).map_err(|e| Error::data(format!("header: {e}")))?;
    let metadata = match header.remove(METADATA) {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let mut arrays = Vec::with_capacity(header.len());
    for (name, value) in header {
        let array: Described = serde_json::from_value(value)
            .map_err(|e| Error::data(format!("header: array {name}: {e}")))?;
        arrays.push((name, array));
    }
    arrays.sort_by_key(|(_, array)| array.data_offsets);
    let (mut found, mut end) = (Vec::with_capacity(arrays.len()), 0);
    for (
        name,
        Described {
            dtype,
            shape,
            data_offsets: [from, to],
        },
    ) in arrays
    {
        let (dtype, width) = DTYPES
            .into_iter()
            .find(|(known, _)| *known == dtype)
            .ok_or_else(|| Error::data(format!("array {name} is of type {dtype}")))?;
        let needed = shape
            .iter()
            .try_fold(width, |bytes, size| bytes.checked_mul(*size));
        let elements = data
            .get(from..to)
            .filter(|elements| from == end && needed == Some(elements.len()));
        let misplaced = || {
            Error::data(format!(
                "array {name} of {shape:?} {dtype} is at bytes {from} to {to} of {}",
                data.len()
            ))
        };
        let bytes = elements.ok_or_else(misplaced)?;
        found.push((
            name,
            Elements {
                dtype,
                len: bytes.len() / width,
                bytes,
            },
        ));
        end = to;
    }
    if end == data.len() {
        Ok(Contents {
            arrays: found,
            metadata,
        })
    } else {
        Err(Error::data(format!(
            "{} bytes after the last array",
            data.len() - end
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [
            &(header.len() as u64).to_le_bytes(),
            header.as_bytes(),
            data,
        ]
        .concat()
    }

    /// Those of the format's own library too (`crates/tectum-control/tests/snapshots.rs`).
    #[test]
    fn arrays_are_written_wider_types_first_and_then_by_name() {
        let arrays = BTreeMap::from([
            (
                "b",
                Elements {
                    dtype: "F32",
                    len: 1,
                    bytes: &[0, 0, 128, 63],
                },
            ),
            (
                "a",
                Elements {
                    dtype: "U32",
                    len: 1,
                    bytes: &[7, 0, 0, 0],
                },
            ),
            (
                "c",
                Elements {
                    dtype: "F64",
                    len: 1,
                    bytes: &[0, 0, 0, 0, 0, 0, 240, 63],
                },
            ),
        ]);
        let header = concat!(
            r#"{"__metadata__":{"k":"v"},"c":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"#,
            r#""a":{"dtype":"U32","shape":[1],"data_offsets":[12,16]}}"#
        );
        let padded = format!("{header:<width$}", width = header.len().next_multiple_of(8));
        let expected = file(
            &padded,
            &[0, 0, 0, 0, 0, 0, 240, 63, 0, 0, 128, 63, 7, 0, 0, 0],
        );
        assert_eq!(encode(&arrays, ("k", "v".to_owned())), expected);
        let Contents { arrays, metadata } = decode(&expected).expect("its own");
        let read: Vec<_> = arrays
            .iter()
            .map(|(name, array)| (name.as_str(), array.dtype, array.bytes.len()))
            .collect();
        assert_eq!(read, [("c", "F64", 8), ("b", "F32", 4), ("a", "U32", 4)]);
        assert_eq!(metadata["k"], "v");
    }

    #[test]
    fn arrays_that_do_not_cover_the_file_once_are_refused() {
        let one = |offsets: &str, shape: &str| {
            format!(r#"{{"a":{{"dtype":"U32","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        let two = r#"{"a":{"dtype":"U32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U32","shape":[1],"data_offsets":[0,4]}}"#;
        for (bytes, part) in [
            (vec![1, 0], "ends before its header"),
            (
                file(&"9".repeat(9), &[])[..12].to_vec(),
                "a header of 9 bytes in a file of 12",
            ),
            (
                [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
                "a header of 18446744073709551615 bytes",
            ),
            (file("[]", &[]), "header: "),
            (file(r#"{"a":1}"#, &[]), "header: array a: "),
            (
                file(&one("[0,4]", "[1]").replace("U32", "F16"), &[0; 4]),
                "array a is of type F16",
            ),
            (
                file(&one("[0,4]", "[2]"), &[0; 4]),
                "array a of [2] U32 is at bytes 0 to 4 of 4",
            ),
            (
                file(&one("[4,8]", "[1]"), &[0; 8]),
                "is at bytes 4 to 8 of 8",
            ),
            (
                file(&one("[0,4]", "[1]"), &[0; 3]),
                "is at bytes 0 to 4 of 3",
            ),
            (
                file(&one("[4,0]", "[1]"), &[0; 4]),
                "is at bytes 4 to 0 of 4",
            ),
            (
                file(&one("[0,4]", "[4611686018427387905]"), &[0; 4]),
                "is at bytes 0 to 4 of 4",
            ),
            (
                file(&one("[0,4]", "[1]"), &[0; 5]),
                "1 bytes after the last array",
            ),
            (
                file(two, &[0; 4]),
                "array b of [1] U32 is at bytes 0 to 4 of 4",
            ),
        ] {
            let error = decode(&bytes).expect_err(part).to_string();
            assert!(error.contains(part), "{error}: {part}");
        }
    }
}
