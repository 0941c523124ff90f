//! Weights in one or several memory-mapped safetensors files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors};
use tectum::kernel::pack::{bf16_bits, f16_bits};
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{ContentHash, Error, Result};

/// The file of a model in one file, and the index of a model in several files.
const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The tensors of a model, which are read from their files on demand.
#[derive(Debug)]
pub struct SafetensorsWeights {
    files: Vec<(PathBuf, Mmap)>,
    entries: BTreeMap<String, TensorEntry>,
}

/// One tensor of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// Sizes of its dimensions.
    pub shape: Vec<usize>,
    /// The type of its elements, as named in the file.
    pub dtype: String,
    /// Its size in bytes.
    pub bytes: usize,
    kind: Dtype,
    file: usize,
    start: usize,
}

/// The index of a model in several files.
#[derive(serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl SafetensorsWeights {
    /// Opens `model.safetensors` of a folder, or the files that `model.safetensors.index.json`
    /// lists.
    ///
    /// # Errors
    /// `Io` for a file that cannot be opened; `Data`, naming file and tensor, for an invalid
    /// header, a truncated file, an index that does not match the files.
    pub fn open(folder: &Path) -> Result<SafetensorsWeights> {
        let index = folder.join(INDEX);
        if !folder.join(SINGLE).exists() && !index.exists() {
            return Err(without_safetensors(folder));
        }
        let mut weights = SafetensorsWeights {
            files: Vec::new(),
            entries: BTreeMap::new(),
        };
        if folder.join(SINGLE).exists() {
            weights.add(&folder.join(SINGLE))?;
            return Ok(weights);
        }
        let text = std::fs::read(&index).map_err(|source| Error::io(index.display(), source))?;
        let list: Index = serde_json::from_slice(&text)
            .map_err(|source| Error::data(index.display().to_string()).with_source(source))?;
        let mut names: Vec<&String> = list.weight_map.values().collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            // The index may only refer to files in the same folder.
            if Path::new(name).components().count() != 1 || name.starts_with('.') {
                return Err(Error::data(format!(
                    "{}: {name} is not a file in the same folder",
                    index.display()
                )));
            }
            weights.add(&folder.join(name))?;
        }
        for (tensor, file) in &list.weight_map {
            let found = weights
                .entries
                .get(tensor)
                .map(|entry| weights.files[entry.file].0.as_path());
            if found != Some(folder.join(file).as_path()) {
                return Err(Error::data(format!(
                    "{}: {file} does not hold tensor {tensor}",
                    index.display()
                )));
            }
        }
        Ok(weights)
    }

    /// Opens one file.
    ///
    /// # Errors
    /// As [`SafetensorsWeights::open`].
    pub fn open_file(path: &Path) -> Result<SafetensorsWeights> {
        let mut weights = SafetensorsWeights {
            files: Vec::new(),
            entries: BTreeMap::new(),
        };
        weights.add(path)?;
        Ok(weights)
    }

    /// A text of the metadata, of the first file if there are several; none if the key is missing.
    ///
    /// # Errors
    /// `Data` for an invalid header.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        let Some((path, map)) = self.files.first() else {
            return Ok(None);
        };
        let refused = |source| {
            Error::data(format!("{}: not a safetensors file", path.display())).with_source(source)
        };
        let (_, header) = SafeTensors::read_metadata(map).map_err(refused)?;
        Ok(header
            .metadata()
            .as_ref()
            .and_then(|texts| texts.get(key).cloned()))
    }

    /// The hash of the first file's content.
    pub fn hash(&self) -> Option<ContentHash> {
        self.files.first().map(|(_, map)| ContentHash::of(map))
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let map = map(path)?;
        let refused = |source| {
            Error::data(format!("{}: not a safetensors file", path.display())).with_source(source)
        };
        let (header, metadata) = SafeTensors::read_metadata(&map).map_err(refused)?;
        let data = 8 + header;
        for (name, info) in metadata.tensors() {
            let (start, end) = info.data_offsets;
            let entry = TensorEntry {
                shape: info.shape.clone(),
                dtype: format!("{:?}", info.dtype),
                bytes: end - start,
                kind: info.dtype,
                file: self.files.len(),
                start: data + start,
            };
            if data + end > map.len() || self.entries.insert(name.clone(), entry).is_some() {
                return Err(Error::data(format!(
                    "{}: tensor {name} is cut short or occurs twice",
                    path.display()
                )));
            }
        }
        self.files.push((path.to_owned(), map));
        Ok(())
    }

    /// The tensors by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &TensorEntry)> {
        self.entries
            .iter()
            .map(|(name, entry)| (name.as_str(), entry))
    }

    /// Whether there is a tensor whose name has this beginning.
    pub(super) fn has_prefix(&self, prefix: &str) -> bool {
        self.entries
            .range(prefix.to_owned()..)
            .next()
            .is_some_and(|(name, _)| name.starts_with(prefix))
    }

    /// Whether two tensors exist and have the same type, shape and bytes.
    pub(super) fn are_same(&self, names: [&str; 2]) -> bool {
        let [Some(one), Some(other)] = names.map(|name| self.entries.get(name)) else {
            return false;
        };
        let bytes = |entry: &TensorEntry| &self.files[entry.file].1[entry.start..][..entry.bytes];
        (one.kind, &one.shape) == (other.kind, &other.shape) && bytes(one) == bytes(other)
    }

    /// The format that stores a tensor's values exactly; f32 if there is no such tensor.
    pub fn format(&self, name: &str) -> PanelFormat {
        match self.entries.get(name).map(|entry| entry.kind) {
            Some(Dtype::F16) => PanelFormat::F16,
            Some(Dtype::BF16) => PanelFormat::Bf16,
            _ => PanelFormat::F32,
        }
    }

    /// Checks that a tensor of this shape can be read; reads none of it.
    ///
    /// # Errors
    /// As [`SafetensorsWeights::read`].
    pub fn check(&self, name: &str, shape: &[usize]) -> Result<()> {
        self.entry(name, shape).map(drop)
    }

    /// Reads a tensor of f32, f16 or bf16 as f32.
    ///
    /// # Errors
    /// `Data`, naming tensor and file, for an unknown name or a different shape or type.
    pub fn read(&self, name: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        let entry = self.entry(name, shape)?;
        let (path, map) = &self.files[entry.file];
        if to.len() != shape.iter().product::<usize>() {
            return Err(Error::invalid(format!(
                "{}: tensor {name} of {shape:?} read into {} elements",
                path.display(),
                to.len()
            )));
        }
        let data = &map[entry.start..][..entry.bytes];
        match entry.kind {
            Dtype::F16 => half(data, to, f16_bits),
            Dtype::BF16 => half(data, to, bf16_bits),
            _ => to
                .iter_mut()
                .zip(data.as_chunks().0)
                .for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes)),
        }
        Ok(())
    }

    /// The entry of a tensor that can be read.
    fn entry(&self, name: &str, shape: &[usize]) -> Result<&TensorEntry> {
        let Some(entry) = self.entries.get(name) else {
            let files: Vec<String> = self
                .files
                .iter()
                .map(|(path, _)| path.display().to_string())
                .collect();
            return Err(Error::data(format!(
                "{}: no tensor {name}, which has shape {shape:?}",
                files.join(", ")
            )));
        };
        let place = || format!("{}: tensor {name}", self.files[entry.file].0.display());
        if entry.shape != shape {
            return Err(Error::data(format!(
                "{} is {:?}, {shape:?} is needed",
                place(),
                entry.shape
            )));
        }
        match entry.kind {
            Dtype::F32 | Dtype::F16 | Dtype::BF16 => Ok(entry),
            _ => Err(Error::data(format!(
                "{} holds {}; F32, F16 and BF16 are read",
                place(),
                entry.dtype
            ))),
        }
    }
}

/// Says which weights a folder has instead.
fn without_safetensors(folder: &Path) -> Error {
    let format_of = |name: &str| match Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str())
    {
        Some("bin" | "pt" | "pth" | "ckpt") => Some("PyTorch"),
        Some("h5") => Some("TensorFlow"),
        Some("msgpack") => Some("Flax"),
        Some("onnx") => Some("ONNX"),
        Some("safetensors") => Some("safetensors under another name"),
        _ => None,
    };
    let names = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut others: Vec<String> = names
        .filter_map(|name| format_of(&name).map(|format| format!("{name} ({format})")))
        .collect();
    others.sort();
    let found = if others.is_empty() {
        String::new()
    } else {
        format!("; found: {}", others.join(", "))
    };
    let needed = "weights in safetensors are needed; transformers converts other ones: save_pretrained(FOLDER)";
    let text = format!("there is no {SINGLE}{found}; {needed}");
    Error::io(
        folder.display(),
        std::io::Error::new(std::io::ErrorKind::NotFound, text),
    )
}

/// Memory-maps a model's file.
pub(super) fn map(path: &Path) -> Result<Mmap> {
    let file = File::open(path).map_err(|source| Error::io(path.display(), source))?;
    // SAFETY: the map is only read. If another process writes to the file, numbers change; they are
    // only copied and interpreted as floats. Texts of GGUF files are copied before they are
    // checked, and a safetensors header is read once, when the file is opened. Truncating the file
    // ends the process.
    unsafe { Mmap::map(&file) }.map_err(|source| Error::io(path.display(), source))
}

fn half(data: &[u8], to: &mut [f32], widen: fn(u32) -> u32) {
    to.iter_mut()
        .zip(data.as_chunks().0)
        .for_each(|(to, bytes)| *to = f32::from_bits(widen(u32::from(u16::from_le_bytes(*bytes)))));
}
