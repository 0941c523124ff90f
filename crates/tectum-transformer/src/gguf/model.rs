//! Decoders in GGUF files: sizes by key, tensors with GGUF's names and element order.

use std::collections::BTreeSet;
use std::path::Path;

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Error, Result};
use tectum_graph::Graph;

use super::file::Gguf;
use super::value::Value;
use crate::decoder_graph::DecoderSizes;
use crate::families;
use crate::family::{DecoderModel, Family, GgufKeys, TensorOrder};

/// The version of the codes' layout; earlier versions have different blocks.
const QUANTIZATION: usize = 2;

/// The key of the model's architecture.
const ARCHITECTURE: &str = "general.architecture";

/// Keys of a family that are read or can be ignored.
const KNOWN: [&str; 17] = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.type",
    "vocab_size",
];

/// A decoder and its file.
#[derive(Debug)]
pub struct GgufModel {
    pub sizes: DecoderSizes,
    pub graph: Graph,
    family: &'static Family,
    file: Gguf,
}

/// The keys of a family.
struct Keys<'a> {
    file: &'a Gguf,
    family: &'static Family,
}

impl GgufModel {
    /// Opens a file, checks the model's metadata and that every tensor exists; reads no tensor.
    ///
    /// # Errors
    /// As [`Gguf::open`]; `Data` for a key that is missing or has another type, a tensor that is
    /// missing or has another shape; `Unsupported` for another family, an unknown key or tensor of
    /// the family, an unsupported setting or type.
    pub fn open(path: &Path, check: impl Fn(&DecoderSizes) -> Result<()>) -> Result<GgufModel> {
        let file = Gguf::open(path)?;
        let (family, mut model) =
            describe(&file, check).map_err(|error| error.at(path.display()))?;
        // Up to the first layer that the file lacks, which the check then names.
        let layers = layers(&file);
        let sizes = model.sizes_mut();
        sizes.layers = (0..sizes.layers)
            .find(|layer| !layers.contains(layer))
            .map_or(sizes.layers, |absent| absent + 1);
        let (sizes, graph) = (
            model.sizes().clone(),
            model.build().map_err(|error| error.at(path.display()))?,
        );
        let model = GgufModel {
            sizes,
            graph,
            family,
            file,
        };
        model
            .check_tensors()
            .map_err(|error| error.at(path.display()))?;
        Ok(model)
    }

    /// The tokens that end a text, and a turn of a conversation, from the file's metadata.
    ///
    /// # Errors
    /// `Data` for a key that is no token.
    pub fn end_tokens(&self) -> Result<Vec<u32>> {
        let file = &self.file;
        let mut tokens = Vec::new();
        for key in [
            "tokenizer.ggml.eos_token_id",
            "tokenizer.ggml.eot_token_id",
            "tokenizer.ggml.eom_token_id",
        ] {
            let token = match file.value(key) {
                None => continue,
                Some(Value::Unsigned(token)) => u32::try_from(token).ok(),
                Some(Value::Signed(token)) => u32::try_from(token).ok(),
                Some(_) => None,
            };
            tokens.push(token.ok_or_else(|| {
                Error::data(format!("{}: key {key} is no token", file.path().display()))
            })?);
        }
        tokens.sort_unstable();
        tokens.dedup();
        Ok(tokens)
    }

    /// The name in the file of the tensor that holds a parameter.
    pub fn tensor(&self, parameter: &str) -> String {
        self.family.gguf_tensor(parameter)
    }

    /// The format that stores a parameter's values exactly, or f32.
    pub fn format(&self, parameter: &str) -> PanelFormat {
        match self
            .file
            .tensor(&self.tensor(parameter))
            .map(|tensor| tensor.kind.name)
        {
            Some("F16") => PanelFormat::F16,
            Some("BF16") => PanelFormat::Bf16,
            _ => PanelFormat::F32,
        }
    }

    /// Reads a parameter in the element order of the graph.
    ///
    /// # Errors
    /// As [`Gguf::read`].
    pub fn read(&self, parameter: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        let (name, order) = (self.tensor(parameter), self.order(parameter));
        self.file.read(&name, &file_shape(shape, order), to)?;
        match (order, shape) {
            (TensorOrder::Interleaved(heads), _) => {
                deinterleave_heads(to, heads, shape.get(1).copied().unwrap_or(1))
            }
            (TensorOrder::Transposed, &[rows, columns]) => transpose(to, rows, columns),
            _ => {}
        }
        Ok(())
    }

    fn order(&self, parameter: &str) -> TensorOrder {
        (self.family.gguf_order)(&self.sizes, parameter)
    }

    /// Checks that parameters and tensors correspond one to one.
    fn check_tensors(&self) -> Result<()> {
        let mut used = BTreeSet::new();
        for (parameter, _, shape) in self.graph.parameters() {
            let name = self.tensor(parameter);
            let shape = file_shape(
                &shape
                    .sizes()
                    .expect("invariant: parameters have no letters"),
                self.order(parameter),
            );
            match self.file.tensor(&name) {
                None => {
                    return Err(Error::data(format!(
                        "no tensor {name}, which has shape {shape:?}"
                    )));
                }
                Some(tensor) if tensor.shape != shape => {
                    return Err(Error::data(format!(
                        "tensor {name} is {:?}, {shape:?} is needed",
                        tensor.shape
                    )));
                }
                Some(tensor) => {
                    tensor
                        .kind
                        .dequantizer()
                        .map_err(|error| error.at(format!("tensor {name}")))?;
                }
            }
            used.insert(name);
        }
        match self
            .file
            .tensors()
            .iter()
            .find(|tensor| !used.contains(&tensor.name))
        {
            Some(tensor) => {
                let name = tensor.name.escape_debug();
                Err(Error::unsupported(format!(
                    "tensor {name}, which no part of the family {:?} reads here",
                    self.sizes.family
                )))
            }
            None => Ok(()),
        }
    }
}

/// What a file holds, by its architecture, as part of a message.
///
/// # Errors
/// As [`Gguf::open`].
pub fn contents(path: &Path) -> Result<String> {
    Ok(match Gguf::open(path)?.value(ARCHITECTURE) {
        Some(Value::Text(name)) if families::named(&name).is_some() => {
            "it holds a decoder, which `tectum generate` runs".to_owned()
        }
        Some(Value::Text(name)) if is_encoder(&name) => format!(
            "it holds an encoder ({ARCHITECTURE} {name:?}), and encoders are not read from GGUF files"
        ),
        Some(Value::Text(name)) => {
            format!(
                "it holds neither an encoder nor a decoder that is known ({ARCHITECTURE} {name:?})"
            )
        }
        _ => format!("it has no key {ARCHITECTURE}, which is a text"),
    })
}

/// Whether an architecture of llama.cpp computes vectors of texts.
fn is_encoder(architecture: &str) -> bool {
    architecture.contains("bert") || ["t5encoder", "gemma-embedding"].contains(&architecture)
}

/// The numbers of the layers of which a file has tensors.
fn layers(file: &Gguf) -> BTreeSet<usize> {
    file.tensors()
        .iter()
        .filter_map(|tensor| {
            let (layer, _) = tensor.name.strip_prefix("blk.")?.split_once('.')?;
            layer.parse().ok()
        })
        .collect()
}

/// Family and model of the decoder of a file.
fn describe(
    file: &Gguf,
    check: impl Fn(&DecoderSizes) -> Result<()>,
) -> Result<(&'static Family, Box<dyn DecoderModel>)> {
    let name = match file.value(ARCHITECTURE) {
        Some(Value::Text(family)) => family,
        _ => {
            return Err(Error::data(format!(
                "no key {ARCHITECTURE}, which is a text"
            )));
        }
    };
    let family = families::named(&name).ok_or_else(|| {
        let known = families::names();
        Error::unsupported(if is_encoder(&name) {
            format!(
                "{ARCHITECTURE} {name:?} is that of an encoder, which `tectum embed` reads from a folder with config.json; of GGUF files the decoders {known} are supported"
            )
        } else {
            format!("{ARCHITECTURE} {name:?}; {known} are supported")
        })
    })?;
    let keys = Keys { file, family };
    keys.check()?;
    let sizes = keys.sizes()?;
    check(&sizes)?;
    Ok((family, (family.read_gguf)(&keys, sizes)?))
}

impl GgufKeys for Keys<'_> {
    fn needed_number(&self, key: &str) -> Result<f32> {
        self.number(key)?.ok_or_else(|| self.missing(key))
    }

    fn number(&self, key: &str) -> Result<Option<f32>> {
        match self.file.value(&self.name(key)) {
            None => Ok(None),
            Some(Value::F32(number)) if number.is_finite() => Ok(Some(number)),
            Some(Value::F64(number)) if (number as f32).is_finite() => Ok(Some(number as f32)),
            Some(_) => Err(Error::data(format!("key {} is no number", self.name(key)))),
        }
    }

    fn has_tensor(&self, name: &str) -> bool {
        self.file.tensor(name).is_some()
    }
}

impl Keys<'_> {
    /// Rejects unsupported settings by key.
    fn check(&self) -> Result<()> {
        let prefix = format!("{}.", self.family.name);
        if let Some((key, _)) = self.file.keys().find(|(key, _)| {
            key.strip_prefix(&prefix)
                .is_some_and(|key| !KNOWN.contains(&key))
        }) {
            return Err(Error::unsupported(format!(
                "key {}, which is not known here",
                key.escape_debug()
            )));
        }
        let is_scaled = match self.file.value(&self.name("rope.scaling.type")) {
            None => false,
            Some(Value::Text(kind)) => kind != "none",
            Some(_) => true,
        };
        if is_scaled
            || self
                .number("rope.scaling.factor")?
                .is_some_and(|factor| factor != 1.0)
        {
            return Err(Error::unsupported(format!(
                "{}: scaled rotations are not supported",
                self.name("rope.scaling")
            )));
        }
        if self
            .size("expert_count")?
            .is_some_and(|experts| experts > 0)
        {
            return Err(Error::unsupported(format!(
                "{}: experts are not supported",
                self.name("expert_count")
            )));
        }
        if self.whole("split.count")?.is_some_and(|files| files > 1) {
            return Err(Error::unsupported(
                "split.count: a model in several files is not supported",
            ));
        }
        match self.whole("general.quantization_version")? {
            Some(version) if version != QUANTIZATION => Err(Error::unsupported(format!(
                "general.quantization_version {version}; {QUANTIZATION} is supported"
            ))),
            _ => Ok(()),
        }
    }

    fn sizes(&self) -> Result<DecoderSizes> {
        let (width, heads) = (
            self.needed("embedding_length")?,
            self.needed("attention.head_count")?,
        );
        let head_width = self
            .size("attention.key_length")?
            .or(width.checked_div(heads))
            .unwrap_or(0);
        for key in ["attention.value_length", "rope.dimension_count"] {
            if let Some(size) = self.size(key)?.filter(|size| *size != head_width) {
                return Err(Error::unsupported(format!(
                    "{} {size} of heads of {head_width}; as many are supported",
                    self.name(key)
                )));
            }
        }
        let table = self
            .file
            .tensor("token_embd.weight")
            .ok_or_else(|| Error::data("no tensor token_embd.weight"))?;
        let tokens = table.shape.first().copied().unwrap_or(0);
        if let Some(said) = self.size("vocab_size")?.filter(|said| *said != tokens) {
            return Err(Error::data(format!(
                "{} {said}; tensor token_embd.weight has {tokens} rows",
                self.name("vocab_size")
            )));
        }
        Ok(DecoderSizes {
            family: self.family.name.to_owned(),
            vocab_size: tokens,
            width,
            layers: self.needed("block_count")?,
            heads,
            kv_heads: self.size("attention.head_count_kv")?.unwrap_or(heads),
            head_width,
            ffn_width: self.needed("feed_forward_length")?,
            activation: self.family.gguf_activation.to_owned(),
            context: self.needed("context_length")?,
            tied_embeddings: self.file.tensor("output.weight").is_none(),
        })
    }

    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.family.name)
    }

    fn missing(&self, key: &str) -> Error {
        Error::data(format!("no key {}", self.name(key)))
    }

    fn needed(&self, key: &str) -> Result<usize> {
        self.size(key)?.ok_or_else(|| self.missing(key))
    }

    fn size(&self, key: &str) -> Result<Option<usize>> {
        self.whole(&self.name(key))
    }

    /// An integer by its full key.
    fn whole(&self, name: &str) -> Result<Option<usize>> {
        let Some(value) = self.file.value(name) else {
            return Ok(None);
        };
        let number = match value {
            Value::Unsigned(number) => usize::try_from(number).ok(),
            Value::Signed(number) => usize::try_from(number).ok(),
            _ => None,
        };
        number
            .map(Some)
            .ok_or_else(|| Error::data(format!("key {name} is no whole number")))
    }
}

fn file_shape(shape: &[usize], order: TensorOrder) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if order == TensorOrder::Transposed {
        shape.reverse();
    }
    shape
}

/// Reorders rows of heads from alternating halves to one half after the other.
fn deinterleave_heads(rows: &mut [f32], heads: usize, columns: usize) {
    let head_len = rows.len() / heads;
    let half = head_len / columns / 2;
    let mut turns = vec![0.0; head_len];
    for head in rows.chunks_exact_mut(head_len) {
        turns.copy_from_slice(head);
        for (index, row) in turns.chunks_exact(columns).enumerate() {
            let place = index / 2 + half * (index % 2);
            head[place * columns..][..columns].copy_from_slice(row);
        }
    }
}

/// Transposes [columns, rows] to [rows, columns].
fn transpose(to: &mut [f32], rows: usize, columns: usize) {
    let from = to.to_vec();
    for (row, to) in to.chunks_exact_mut(columns).enumerate() {
        to.iter_mut()
            .enumerate()
            .for_each(|(column, to)| *to = from[column * rows + row]);
    }
}
