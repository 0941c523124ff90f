//! A memory-mapped GGUF file.

use std::path::{Path, PathBuf};

use memmap2::Mmap;
use tectum::{Error, Result};

use super::header::{GgufTensor, Header};
use super::value::{Value, ValueType};
use crate::weights::map;

/// The file name extension.
const EXTENSION: &str = "gguf";

/// A GGUF file: its metadata and its tensors, which are read on demand.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    map: Mmap,
    header: Header,
}

/// The GGUF file of a path: the path itself if it has the extension, or the only GGUF file of a folder without safetensors.
///
/// # Errors
/// `Io` for a folder that cannot be read, `Invalid` if there are several.
pub fn gguf_file(path: &Path) -> Result<Option<PathBuf>> {
    let is_gguf = |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION));
    if !path.is_dir() {
        return Ok(is_gguf(path).then(|| path.to_owned()));
    }
    let failed = |source| Error::io(path.display(), source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name == "model.safetensors" || name == "model.safetensors.index.json" {
            return Ok(None);
        }
        if is_gguf(&file) {
            files.push(file);
        }
    }
    if files.len() > 1 {
        return Err(Error::invalid(format!("{}: holds {} files .gguf; one of them is to be named", path.display(), files.len())));
    }
    Ok(files.pop())
}

impl Gguf {
    /// Opens a file.
    ///
    /// # Errors
    /// `Io` for a file that cannot be opened; as [`Header::parse`], with the file's name.
    pub fn open(path: &Path) -> Result<Gguf> {
        let map = map(path)?;
        let header = Header::parse(&map).map_err(|error| error.at(path.display()))?;
        Ok(Gguf { path: path.to_owned(), map, header })
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
    /// `Data`, naming file and tensor, for an unknown name or a different shape; `Unsupported` for a type that cannot be
    /// read.
    pub fn read(&self, name: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        let path = self.path.display();
        let Some(tensor) = self.tensor(name) else { return Err(Error::data(format!("{path}: no tensor {name}, which has shape {shape:?}"))) };
        if tensor.shape != shape || to.len() != shape.iter().product::<usize>() {
            return Err(Error::data(format!("{path}: tensor {name} is {:?}, {shape:?} is needed", tensor.shape)));
        }
        tensor.read(&self.map, to).map_err(|error| error.at(path))
    }
}
