//! Snapshots: named arrays that hold the state of a brain, a body or a loop, on any device.

mod safetensors;

use std::collections::BTreeMap;
use std::path::Path;

use crate::content_hash::{ContentHash, ContentHasher};
use crate::error::Error;
use crate::file;
use safetensors::{Contents, Elements};

/// The header's entry with the checksum of all arrays.
const CHECKSUM: &str = "checksum";

/// One array of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
}

/// Named arrays; saved as one safetensors file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    arrays: BTreeMap<String, Array>,
}

impl Snapshot {
    /// Adds or replaces an array.
    pub fn insert(&mut self, name: impl Into<String>, array: Array) {
        self.arrays.insert(name.into(), array);
    }

    /// Inserts another snapshot's arrays under `prefix.`.
    pub fn insert_all(&mut self, prefix: &str, other: Snapshot) {
        self.arrays.extend(
            other
                .arrays
                .into_iter()
                .map(|(name, array)| (format!("{prefix}.{name}"), array)),
        );
    }

    /// The arrays under `prefix.`, with the prefix removed.
    #[must_use]
    pub fn part(&self, prefix: &str) -> Snapshot {
        let named = self.arrays.iter().filter_map(|(name, array)| {
            let rest = name.strip_prefix(prefix)?.strip_prefix('.')?;
            Some((rest.to_owned(), array.clone()))
        });
        Snapshot {
            arrays: named.collect(),
        }
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    /// An array of 32-bit floats of a known length.
    ///
    /// # Errors
    /// `Data` naming the array if it is missing, of another type or length.
    pub fn f32(&self, name: &str, len: usize) -> Result<&[f32], Error> {
        match self.arrays.get(name) {
            Some(Array::F32(data)) if data.len() == len => Ok(data),
            found => Err(mismatch_error(name, "f32", len, found)),
        }
    }

    /// An array of 64-bit floats of a known length.
    ///
    /// # Errors
    /// As [`Snapshot::f32`].
    pub fn f64(&self, name: &str, len: usize) -> Result<&[f64], Error> {
        match self.arrays.get(name) {
            Some(Array::F64(data)) if data.len() == len => Ok(data),
            found => Err(mismatch_error(name, "f64", len, found)),
        }
    }

    /// An array of 32-bit unsigned integers of a known length.
    ///
    /// # Errors
    /// As [`Snapshot::f32`].
    pub fn u32(&self, name: &str, len: usize) -> Result<&[u32], Error> {
        match self.arrays.get(name) {
            Some(Array::U32(data)) if data.len() == len => Ok(data),
            found => Err(mismatch_error(name, "u32", len, found)),
        }
    }

    /// The length of an array, if it exists.
    pub fn len_of(&self, name: &str) -> Option<usize> {
        self.arrays.get(name).map(Array::len)
    }

    /// An array of 64-bit unsigned integers of a known length.
    ///
    /// # Errors
    /// As [`Snapshot::f32`].
    pub fn u64(&self, name: &str, len: usize) -> Result<&[u64], Error> {
        match self.arrays.get(name) {
            Some(Array::U64(data)) if data.len() == len => Ok(data),
            found => Err(mismatch_error(name, "u64", len, found)),
        }
    }

    /// The first array that holds a NaN.
    pub fn nan_in(&self) -> Option<&str> {
        let holds_nan = |array: &Array| match array {
            Array::F32(data) => data.iter().any(|number| number.is_nan()),
            Array::F64(data) => data.iter().any(|number| number.is_nan()),
            Array::U32(_) | Array::U64(_) => false,
        };
        self.arrays
            .iter()
            .find(|(_, array)| holds_nan(array))
            .map(|(name, _)| name.as_str())
    }

    /// The snapshot as a safetensors file; [`Snapshot::parse`] reads it back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let arrays = self
            .arrays
            .iter()
            .map(|(name, array)| (name.as_str(), array.elements()))
            .collect();
        safetensors::encode(&arrays, (CHECKSUM, self.checksum().to_string()))
    }

    /// Reads a snapshot from the bytes of its file.
    ///
    /// # Errors
    /// `Data`, naming the invalid array if there is one.
    pub fn parse(bytes: &[u8]) -> Result<Snapshot, Error> {
        let Contents { arrays, metadata } =
            safetensors::decode(bytes).map_err(|e| Error::data("not a snapshot").with_source(e))?;
        let arrays = arrays
            .into_iter()
            .map(|(name, array)| (name, Array::of(&array)));
        let snapshot = Snapshot {
            arrays: arrays.collect(),
        };
        let told = metadata
            .get(CHECKSUM)
            .and_then(|checksum| checksum.as_str());
        let told = told.ok_or_else(|| Error::data("header: there is no checksum"))?;
        if told != snapshot.checksum().to_string() {
            return Err(Error::data(format!(
                "header: checksum {told}, but that of the arrays is {}: the file is damaged",
                snapshot.checksum()
            )));
        }
        Ok(snapshot)
    }

    /// The content hash of names, types and elements, in name order.
    fn checksum(&self) -> ContentHash {
        let mut hasher = ContentHasher::default();
        for (name, array) in &self.arrays {
            let Elements { dtype, len, bytes } = array.elements();
            hasher.update(format!("{name:?}{dtype}{len}").as_bytes());
            hasher.update(bytes);
        }
        hasher.finish()
    }

    /// Writes the snapshot as a whole file.
    ///
    /// # Errors
    /// `Io` naming the path.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        file::write(path, &self.to_bytes())
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// `Io` or `Data` naming the path, and the invalid array if there is one.
    pub fn load(path: &Path) -> Result<Snapshot, Error> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path.display(), e))?;
        Self::parse(&bytes).map_err(|error| error.at(path.display()))
    }
}

impl Array {
    fn len(&self) -> usize {
        match self {
            Array::F32(data) => data.len(),
            Array::F64(data) => data.len(),
            Array::U32(data) => data.len(),
            Array::U64(data) => data.len(),
        }
    }

    fn elements(&self) -> Elements<'_> {
        let (dtype, bytes) = match self {
            Array::F32(data) => ("F32", bytemuck::cast_slice(data)),
            Array::F64(data) => ("F64", bytemuck::cast_slice(data)),
            Array::U32(data) => ("U32", bytemuck::cast_slice(data)),
            Array::U64(data) => ("U64", bytemuck::cast_slice(data)),
        };
        Elements {
            dtype,
            len: self.len(),
            bytes,
        }
    }

    /// The array of whole elements of a type of snapshots.
    fn of(&Elements { dtype, bytes, .. }: &Elements<'_>) -> Array {
        match dtype {
            "F32" => Array::F32(bytemuck::pod_collect_to_vec(bytes)),
            "F64" => Array::F64(bytemuck::pod_collect_to_vec(bytes)),
            "U32" => Array::U32(bytemuck::pod_collect_to_vec(bytes)),
            _ => Array::U64(bytemuck::pod_collect_to_vec(bytes)),
        }
    }
}

fn mismatch_error(name: &str, dtype: &str, len: usize, found: Option<&Array>) -> Error {
    let found = match found {
        None => "it is missing".to_owned(),
        Some(array) => format!("it holds {} elements", array.len()),
    };
    Error::data(format!(
        "snapshot: array {name} of {len} {dtype} needed; {found}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_detected() {
        let mut snapshot = Snapshot::default();
        snapshot.insert("fired", Array::U32(vec![7, 9, 11]));
        let bytes = snapshot.to_bytes();
        assert_eq!(Snapshot::parse(&bytes).expect("it is whole"), snapshot);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(
                Snapshot::parse(&damaged).is_err() || at < bytes.len() - 12,
                "a change of byte {at} is not detected"
            );
            assert!(
                Snapshot::parse(&bytes[..at]).is_err(),
                "{at} bytes are not the whole file"
            );
        }
    }

    #[test]
    fn saving_and_loading_gives_the_same_bits_and_misfits_are_named() {
        let mut snapshot = Snapshot::default();
        snapshot.insert("mean", Array::F32(vec![1.0, -0.0, f32::MIN_POSITIVE]));
        snapshot.insert("state", Array::F64(vec![std::f64::consts::PI]));
        snapshot.insert("tick", Array::U64(vec![u64::MAX]));
        let mut whole = Snapshot::default();
        whole.insert_all("brain", snapshot.clone());
        let path = std::env::temp_dir().join(format!(
            "tectum-snapshot-{}.safetensors",
            std::process::id()
        ));
        whole.save(&path).expect("writable");
        let read = Snapshot::load(&path).expect("readable");
        std::fs::remove_file(&path).expect("there");
        assert_eq!(read.part("brain"), snapshot);
        let error = read
            .part("brain")
            .f32("mean", 4)
            .expect_err("another length")
            .to_string();
        assert!(
            error.contains("mean") && error.contains('4') && error.contains('3'),
            "{error}"
        );
    }
}
