//! A memory-mapped GGUF file.

use std::path::{Path, PathBuf};

use memmap2::Mmap;
use tectum::{Error, Result};

use super::header::{GgufTensor, Header};
use super::value::{Value, ValueType};
use crate::weights::map;

/// A GGUF file: its metadata and its tensors, which are read on demand.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    map: Mmap,
    header: Header,
}

impl Gguf {
    /// Opens a file.
    ///
    /// # Errors
    /// `Io` for a file that cannot be opened; as [`Header::parse`], with the file's name.
    pub fn open(path: &Path) -> Result<Gguf> {
        let map = map(path)?;
        let header = Header::parse(&map).map_err(|error| error.at(path.display()))?;
        Ok(Gguf {
            path: path.to_owned(),
            map,
            header,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<Value<'_>> {
        self.header.value(key, &self.map)
    }

    /// The keys in the file's order, with the types of their values.
    pub fn keys(&self) -> impl Iterator<Item = (&str, ValueType)> {
        self.header.keys()
    }

    /// The tensors in the file's order.
    pub fn tensors(&self) -> &[GgufTensor] {
        self.header.tensors()
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<&GgufTensor> {
        self.tensors().iter().find(|tensor| tensor.name == name)
    }

    /// Reads a tensor as f32.
    ///
    /// # Numerics
    /// As [`GgufTensor::read`].
    ///
    /// # Errors
    /// `Data`, naming file and tensor, for an unknown name or a different shape; `Unsupported` for
    /// a type that cannot be read.
    pub fn read(&self, name: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        let path = self.path.display();
        let Some(tensor) = self.tensor(name) else {
            return Err(Error::data(format!(
                "{path}: no tensor {name}, which has shape {shape:?}"
            )));
        };
        if tensor.shape != shape || to.len() != shape.iter().product::<usize>() {
            return Err(Error::data(format!(
                "{path}: tensor {name} is {:?}, {shape:?} is needed",
                tensor.shape
            )));
        }
        tensor.read(&self.map, to).map_err(|error| error.at(path))
    }
}
