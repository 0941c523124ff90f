//! The configuration in a model's folder: `config.json` and `generation_config.json`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tectum::{Error, Result};

/// The configuration file of a folder.
const CONFIG: &str = "config.json";
/// The `model_type` of encoders, and those of decoders, of which `families.rs` has the models.
const ENCODER: &str = "bert";
pub(super) const DECODERS: [&str; 4] = ["gpt2", "llama", "qwen2", "qwen3"];

/// The content of a folder's `config.json`: read once, parsed for the family and by the family.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub path: PathBuf,
    text: Vec<u8>,
}

/// One token or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum EndTokens {
    One(u32),
    Several(Vec<u32>),
}

/// The end-of-text setting of `generation_config.json` and `config.json`.
#[derive(Deserialize)]
struct EndConfig {
    #[serde(default)]
    eos_token_id: Option<EndTokens>,
}

/// What a path of a model may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelPath {
    /// An encoder's folder.
    Folder,
    /// A decoder's folder or GGUF file.
    FolderOrGguf,
}

impl ConfigFile {
    /// # Errors
    /// `Io`, naming the path, for a folder that does not exist or a file that cannot be read;
    /// `Data` for what is not the folder of a model.
    pub fn read(folder: &Path, allowed: ModelPath) -> Result<ConfigFile> {
        let (place, path) = (folder.display(), folder.join(CONFIG));
        let has_gguf = allowed == ModelPath::FolderOrGguf;
        if !folder.exists() {
            let known = if has_gguf {
                "a model is a folder or a GGUF file"
            } else {
                "an encoder is a folder"
            };
            let text = format!(
                "there is no such file or folder; {known} on this machine; none is downloaded"
            );
            return Err(Error::io(
                place,
                std::io::Error::new(std::io::ErrorKind::NotFound, text),
            ));
        } else if let Some(model) = folder
            .parent()
            .filter(|model| !folder.is_dir() && model.join(CONFIG).exists())
        {
            return Err(Error::data(format!(
                "{place}: a file of a model; name its folder, {}",
                shown(model)
            )));
        } else if !folder.is_dir() {
            let needed = if has_gguf { ", or a file .gguf," } else { "" };
            return Err(Error::data(format!(
                "{place}: not a model: a folder with {CONFIG}{needed} is needed"
            )));
        } else if !path.exists() {
            return Err(Error::data(format!(
                "{place}: not the folder of a model: it has no {CONFIG}"
            )));
        }
        let text = std::fs::read(&path).map_err(|source| Error::io(path.display(), source))?;
        Ok(ConfigFile { path, text })
    }

    /// # Errors
    /// `Data`, naming the path, for content that is not JSON or lacks a key.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        parse_json(&self.path, &self.text)
    }

    /// The tokens that end a text, of `generation_config.json` next to it, otherwise its own.
    ///
    /// # Errors
    /// `Io`; `Data` for a file that cannot be read.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        let generation = self.path.with_file_name("generation_config.json");
        let preferred = if generation.exists() {
            read_json::<EndConfig>(&generation)?.eos_token_id
        } else {
            None
        };
        Ok(
            match preferred.map_or_else(
                || Ok(self.parse::<EndConfig>()?.eos_token_id),
                |tokens| Ok::<_, Error>(Some(tokens)),
            )? {
                Some(EndTokens::One(token)) => vec![token],
                Some(EndTokens::Several(tokens)) => tokens,
                None => Vec::new(),
            },
        )
    }

    /// The `model_type`; none if it is missing.
    pub fn family(&self) -> Result<Option<String>> {
        #[derive(Deserialize)]
        struct Family {
            model_type: Option<String>,
        }
        Ok(self.parse::<Family>()?.model_type)
    }

    /// Why the `model_type` is refused, and which ones are known.
    pub fn refused_family(&self) -> Result<Error> {
        let known = format!(
            "encoders: {ENCODER:?}; decoders: \"{}\"",
            DECODERS.join("\", \"")
        );
        let reason = match self.family()? {
            None => format!("model_type is missing; known: {known}"),
            Some(family) if family == ENCODER => format!(
                "model_type {family:?} is that of an encoder, which `tectum embed` runs; {known}"
            ),
            Some(family) if DECODERS.contains(&family.as_str()) => {
                format!(
                    "model_type {family:?} is that of a decoder, which `tectum generate` runs; {known}"
                )
            }
            Some(family) => format!("model_type {family:?} is not supported; {known}"),
        };
        Ok(Error::unsupported(format!(
            "{}: {reason}",
            self.path.display()
        )))
    }
}

/// A folder, of which the path may be empty.
fn shown(folder: &Path) -> String {
    if folder.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        folder.display().to_string()
    }
}

/// `config.json` of an encoder of the BERT family.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Config {
    /// The family: `bert`.
    pub model_type: String,
    /// Rows of the table of tokens.
    pub vocab_size: usize,
    /// Width D of a token.
    pub hidden_size: usize,
    /// Layers.
    pub num_hidden_layers: usize,
    /// Heads H of a layer.
    pub num_attention_heads: usize,
    /// Width of a layer's middle.
    pub intermediate_size: usize,
    /// Maximum tokens of a text.
    pub max_position_embeddings: usize,
    /// Rows of the table of token types.
    pub type_vocab_size: usize,
    /// The activation of a layer's middle, by Hugging Face's name.
    pub hidden_act: String,
    /// Added to a variance before the square root.
    pub layer_norm_eps: f32,
    /// The kind of position embedding; `absolute` by default.
    #[serde(default)]
    pub position_embedding_type: Option<String>,
}

impl Config {
    /// Reads and checks a folder's `config.json`.
    ///
    /// # Errors
    /// `Io`; `Data` for a file that cannot be read; `Unsupported` for another family, activation or
    /// kind of positions; `Invalid` for sizes that no model has.
    pub fn read(folder: &Path) -> Result<Config> {
        Config::of(&ConfigFile::read(folder, ModelPath::Folder)?)
    }

    pub(super) fn of(file: &ConfigFile) -> Result<Config> {
        let path = &file.path;
        if file.family()?.as_deref() != Some(ENCODER) {
            return Err(file.refused_family()?);
        }
        let config: Config = file.parse()?;
        config
            .activation()
            .map_err(|error| error.at(path.display()))?;
        let positions = config
            .position_embedding_type
            .as_deref()
            .unwrap_or("absolute");
        if positions != "absolute" {
            return Err(Error::unsupported(format!(
                "{}: position_embedding_type {positions:?}; \"absolute\" is supported",
                path.display()
            )));
        }
        let rows = [
            config.vocab_size,
            config.max_position_embeddings,
            config.type_vocab_size,
        ];
        let sizes = [
            &rows[..],
            &[
                config.hidden_size,
                config.num_attention_heads,
                config.intermediate_size,
            ],
        ]
        .concat();
        if sizes.contains(&0)
            || !config
                .hidden_size
                .is_multiple_of(config.num_attention_heads)
            || config.num_hidden_layers > 1000
        {
            return Err(Error::invalid(format!(
                "{}: sizes that no model has: {config:?}",
                path.display()
            )));
        }
        Ok(config)
    }

    /// The activation of a layer's middle.
    pub(super) fn activation(&self) -> Result<tectum::Activation> {
        activation("hidden_act", &self.hidden_act)
    }
}

/// The activation with a Hugging Face name, which the configuration has under a key.
pub(super) fn activation(key: &str, name: &str) -> Result<tectum::Activation> {
    match name {
        "gelu" => Ok(tectum::Activation::GeluErf),
        "gelu_new" | "gelu_pytorch_tanh" | "gelu_fast" => Ok(tectum::Activation::Gelu),
        "relu" => Ok(tectum::Activation::Relu),
        "silu" | "swish" => Ok(tectum::Activation::Silu),
        other => Err(Error::unsupported(format!(
            "{key} {other:?}; gelu, gelu_new, relu and silu are supported"
        ))),
    }
}

/// Reads a JSON file.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
    parse_json(path, &text)
}

fn parse_json<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T> {
    serde_json::from_slice(text)
        .map_err(|source| Error::data(path.display().to_string()).with_source(source))
}
