//! A decoder on disk: a Hugging Face folder, or one GGUF file.

use std::path::{Path, PathBuf};

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Error, Result};
use tectum_graph::Graph;

use super::SafetensorsWeights;
use super::config::{ConfigFile, ModelPath};
use super::decoder_graph::DecoderSizes;
use super::families;
#[cfg(feature = "gguf")]
use super::gguf::GgufModel;
use super::gguf_file;

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

/// The files of a model: the GGUF file, or every `.json` and `.safetensors` of a folder, in name
/// order.
///
/// # Errors
/// `Io` for a folder that cannot be listed; as [`gguf_file`].
pub fn input_files(path: &Path) -> Result<Vec<PathBuf>> {
    if let Some(file) = gguf_file(path)? {
        return Ok(vec![file]);
    }
    let failed = |source| Error::io(path.display(), source);
    let entries = std::fs::read_dir(path)
        .map_err(failed)?
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(failed)?;
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
    /// Opens a folder or a GGUF file; reads no tensor.
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
        let model = (family.read)(&config)?;
        check(model.sizes()).map_err(|error| error.at(&place))?;
        let (sizes, graph, prefix, first) = (
            model.sizes().clone(),
            model.build()?,
            family.prefix,
            family.first_tensor,
        );
        let weights = SafetensorsWeights::open(folder)?;
        // Files with only the inner model lack the prefix of every name.
        let is_inner = weights
            .entries()
            .all(|(name, _)| name != format!("{prefix}{first}"))
            && weights.entries().any(|(name, _)| name == first);
        let tensors = Tensors::Folder(weights, if is_inner { prefix } else { "" }, config);
        log(folder, &sizes);
        Ok(Checkpoint {
            sizes,
            graph,
            tensors,
        })
    }
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
