//! A decoder on disk: a Hugging Face folder, or one GGUF file.

use std::path::{Path, PathBuf};

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Error, Result};
use tectum_graph::Graph;

use super::SafetensorsWeights;
use super::config::{ConfigFile, ModelPath};
use super::decoder_graph::DecoderSizes;
use super::families;
use super::family::{DecoderModel, Family, HEAD};
#[cfg(feature = "gguf")]
use super::gguf::GgufModel;
use super::gguf_file;
use super::head::module_folders;

/// A decoder's folder or file, read once: its sizes, graph and settings, and where the weights are.
/// No weight is read until it is put on a device ([`Decoder::new`](super::Decoder::new)).
#[derive(Debug)]
pub struct Checkpoint {
    pub(super) sizes: DecoderSizes,
    pub(super) graph: Graph,
    tensors: Tensors,
}

#[derive(Debug)]
enum Tensors {
    /// Safetensors, the part of parameter names that their tensor names lack, and the
    /// configuration.
    Folder(SafetensorsWeights, &'static str, ConfigFile),
    #[cfg(feature = "gguf")]
    File(Box<GgufModel>),
}

/// The files of a model: the GGUF file, or every `.json` and `.safetensors` of a folder and of the
/// folders that its `modules.json` lists, in name order.
///
/// # Errors
/// `Io` for a folder that cannot be listed; as [`gguf_file`].
pub fn input_files(path: &Path) -> Result<Vec<PathBuf>> {
    if let Some(file) = gguf_file(path)? {
        return Ok(vec![file]);
    }
    let mut entries = Vec::new();
    let folders = module_folders(path)
        .into_iter()
        .filter(|folder| folder.is_dir());
    for folder in std::iter::once(path.to_owned()).chain(folders) {
        let failed = |source| Error::io(folder.display(), source);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?);
        }
    }
    let is_read = |file: &PathBuf| {
        file.extension()
            .is_some_and(|ending| ending == "json" || ending == "safetensors")
    };
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(is_read)
        .collect();
    files.sort();
    Ok(files)
}

impl Checkpoint {
    /// Opens a folder or a GGUF file and checks that its tensors have the names, shapes and types
    /// that the model needs; reads none of them, except to compare `lm_head.weight` with the table of
    /// tokens where `tie_word_embeddings` says that they are one.
    ///
    /// # Errors
    /// As [`super::Decoder::open`].
    pub fn open(path: &Path) -> Result<Checkpoint> {
        match gguf_file(path)? {
            Some(file) => Checkpoint::open_file(&file),
            None => Checkpoint::open_folder(path, ConfigFile::read(path, ModelPath::FolderOrGguf)?),
        }
    }

    /// The model's sizes.
    pub fn sizes(&self) -> &DecoderSizes {
        &self.sizes
    }

    /// The tokens that end a text: from a folder's `generation_config.json`, otherwise its
    /// `config.json`, or from a GGUF file's metadata; none if they are not defined.
    ///
    /// # Errors
    /// `Io`; `Data` for a file that cannot be read.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        match &self.tensors {
            Tensors::Folder(.., config) => config.end_tokens(),
            #[cfg(feature = "gguf")]
            Tensors::File(model) => model.end_tokens(),
        }
    }

    /// The name of the tensor that holds a parameter.
    pub(super) fn tensor(&self, parameter: &str) -> String {
        match &self.tensors {
            Tensors::Folder(_, lacking, _) => parameter
                .strip_prefix(lacking)
                .unwrap_or(parameter)
                .to_owned(),
            #[cfg(feature = "gguf")]
            Tensors::File(model) => model.tensor(parameter),
        }
    }

    /// The format that stores a parameter's values exactly, or f32.
    pub(super) fn format(&self, parameter: &str) -> PanelFormat {
        match &self.tensors {
            Tensors::Folder(weights, ..) => weights.format(&self.tensor(parameter)),
            #[cfg(feature = "gguf")]
            Tensors::File(model) => model.format(parameter),
        }
    }

    /// Reads a parameter.
    ///
    /// # Errors
    /// `Data`, naming tensor and file, if it does not exist or has a different shape or type.
    pub(super) fn read(&self, parameter: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        match &self.tensors {
            Tensors::Folder(weights, ..) => weights.read(&self.tensor(parameter), shape, to),
            #[cfg(feature = "gguf")]
            Tensors::File(model) => model.read(parameter, shape, to),
        }
    }

    #[cfg(not(feature = "gguf"))]
    pub(super) fn open_file(file: &Path) -> Result<Checkpoint> {
        let reason = "this build leaves GGUF files out: the feature \"gguf\" of the crate tectum-transformer is off";
        Err(Error::unsupported(format!("{}: {reason}", file.display())))
    }

    #[cfg(feature = "gguf")]
    pub(super) fn open_file(file: &Path) -> Result<Checkpoint> {
        let model = GgufModel::open(file, check)?;
        log(file, &model.sizes);
        Ok(Checkpoint {
            sizes: model.sizes.clone(),
            graph: model.graph.clone(),
            tensors: Tensors::File(Box::new(model)),
        })
    }

    pub(super) fn open_folder(folder: &Path, config: ConfigFile) -> Result<Checkpoint> {
        let place = config.path.display();
        let Some(family) = config.family()?.and_then(|name| families::named(&name)) else {
            return Err(config.refused_family()?);
        };
        let mut model = (family.read)(&config)?;
        check(model.sizes()).map_err(|error| error.at(&place))?;
        let (prefix, first) = (family.prefix, family.first_tensor);
        let weights = SafetensorsWeights::open(folder)?;
        // Files with only the inner model lack the prefix of every name.
        let is_inner = weights
            .entries()
            .all(|(name, _)| name != format!("{prefix}{first}"))
            && weights.entries().any(|(name, _)| name == first);
        let lacking = if is_inner { prefix } else { "" };
        fit(&mut *model, family, &weights, &prefix[lacking.len()..]);
        let model = Checkpoint {
            sizes: model.sizes().clone(),
            graph: model.build()?,
            tensors: Tensors::Folder(weights, lacking, config),
        };
        model.check_tensors()?;
        log(folder, &model.sizes);
        Ok(model)
    }

    /// Checks that every parameter has a tensor of its shape that can be read.
    fn check_tensors(&self) -> Result<()> {
        match &self.tensors {
            Tensors::Folder(weights, ..) => {
                self.graph.parameters().try_for_each(|(name, _, shape)| {
                    let sizes = shape
                        .sizes()
                        .expect("invariant: parameters have no letters");
                    weights.check(&self.tensor(name), &sizes)
                })
            }
            #[cfg(feature = "gguf")]
            Tensors::File(_) => Ok(()),
        }
    }
}

/// Fits a model to the tensors of its files, whose names begin with `prefix`.
///
/// Scores come from a tensor of their own if there is one that differs from the table of tokens,
/// whatever `tie_word_embeddings` says, as in transformers. The graph ends with the first layer that
/// the files lack: the check of its tensors then names it, without the work for all later ones.
fn fit(model: &mut dyn DecoderModel, family: &Family, weights: &SafetensorsWeights, prefix: &str) {
    let table = format!("{prefix}{}", family.first_tensor);
    let has_head = weights.entries().any(|(name, _)| name == HEAD);
    let sizes = model.sizes_mut();
    if sizes.tied_embeddings && has_head && !weights.are_same([HEAD, &table]) {
        tracing::warn!(
            "tie_word_embeddings is true, but {HEAD} differs from {table}: scores are computed with {HEAD}"
        );
        sizes.tied_embeddings = false;
    }
    let layers = (0..sizes.layers)
        .take_while(|layer| weights.has_prefix(&format!("{prefix}{}{layer}.", family.layers)))
        .count();
    sizes.layers = sizes.layers.min(layers + 1);
}

fn log(path: &Path, sizes: &DecoderSizes) {
    let DecoderSizes {
        layers,
        width,
        heads,
        context,
        ..
    } = sizes;
    tracing::info!(path = %path.display(), family = sizes.family, layers, width, heads, context, tokens = sizes.vocab_size, "decoder opened");
}

/// Rejects sizes that no model has.
fn check(sizes: &DecoderSizes) -> Result<()> {
    let counts = [
        sizes.vocab_size,
        sizes.width,
        sizes.layers,
        sizes.heads,
        sizes.kv_heads,
        sizes.head_width,
        sizes.ffn_width,
        sizes.context,
    ];
    // A layer has about ten nodes; tensors are counted in u32.
    let fits = counts.iter().all(|count| (1..=1 << 24).contains(count)) && sizes.layers <= 1000;
    if fits && sizes.heads.is_multiple_of(sizes.kv_heads) {
        Ok(())
    } else {
        Err(Error::invalid(format!(
            "sizes that no model has: {sizes:?}"
        )))
    }
}
