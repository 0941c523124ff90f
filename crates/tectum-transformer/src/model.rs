//! A model on disk, of any kind.

use std::path::Path;

use tectum::Result;

use super::config::{ConfigFile, ModelPath};
use super::{Checkpoint, Encoder, families, gguf_file};

/// A model's folder or file, read once; no weight is read.
///
/// # Example
/// ```
/// use std::path::Path;
/// use tectum_transformer::Model;
/// let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models/sample-decoder");
/// assert!(matches!(Model::open(Path::new(folder))?, Model::Decoder(model) if model.sizes().family == "llama"));
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub enum Model {
    /// Turns a text into a vector.
    Encoder(Box<Encoder>),
    /// Continues a text.
    Decoder(Box<Checkpoint>),
}

impl Model {
    /// Opens a Hugging Face folder or a GGUF file. A folder of no known family of decoders is read
    /// as an encoder.
    ///
    /// # Errors
    /// As [`Checkpoint::open`] and [`Encoder::read`].
    pub fn open(path: &Path) -> Result<Model> {
        if let Some(file) = gguf_file(path)? {
            return Ok(Model::Decoder(Box::new(Checkpoint::open_file(&file)?)));
        }
        let config = ConfigFile::read(path, ModelPath::FolderOrGguf)?;
        match config.family()?.and_then(|name| families::named(&name)) {
            Some(_) => Ok(Model::Decoder(Box::new(Checkpoint::open_folder(
                path, config,
            )?))),
            None => Ok(Model::Encoder(Box::new(Encoder::of_folder(path, &config)?))),
        }
    }
}
