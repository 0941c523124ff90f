//! The contents of a model's folder.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tectum::{CacheFormats, Device, Result};
use tectum_transformer::{Checkpoint, Decoder, Embedder, Model, SafetensorsWeights};

use super::InspectArgs;
use crate::count::counted;
use crate::generate::tokenizer_folder;
use crate::table::{bytes, print, print_json, table};

/// The output, as JSON.
#[derive(Serialize)]
struct Inspection {
    kind: &'static str,
    file: String,
    family: String,
    parameters: usize,
    layers: usize,
    width: usize,
    heads: usize,
    ffn_width: usize,
    activation: String,
    tokens: usize,
    max_tokens: usize,
    /// Of the poolings, joined by `+` if there are several.
    pooling: String,
    /// The steps on the pooled vector.
    steps: Vec<String>,
    normalized: bool,
    /// Numbers of a vector.
    embedding_width: usize,
    /// What precedes every text.
    prompt: String,
    tensors: usize,
    unused: Vec<String>,
    bytes_by_dtype: BTreeMap<String, usize>,
}

/// The output for a decoder, as JSON.
#[derive(Serialize)]
pub struct DecoderInspection {
    kind: &'static str,
    file: String,
    family: String,
    parameters: usize,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head_width: usize,
    ffn_width: usize,
    activation: String,
    tokens: usize,
    max_tokens: usize,
    /// Whether the table of tokens also gives their scores.
    tied_embeddings: bool,
    /// Device bytes of keys and values for each token of a context.
    cache_bytes_per_token: usize,
    /// Whether a text can be given, not only token numbers.
    tokenizer: bool,
    end_tokens: Vec<u32>,
    tensors: usize,
    unused: Vec<String>,
    bytes_by_dtype: BTreeMap<String, usize>,
}

/// Reads a model's folder and prints its contents. Every tensor that the model needs is read, so a
/// model that is shown can run.
pub fn inspect_model(args: &InspectArgs) -> Result<()> {
    let device = Device::open("null")?;
    if let Model::Decoder(model) = Model::open(&args.file)? {
        let weights = SafetensorsWeights::open(&args.file)?;
        let held = weights
            .entries()
            .map(|(name, entry)| (name, entry.dtype.as_str(), entry.bytes))
            .collect::<Vec<_>>();
        let inspection = decoder(&args.file, &model, &device, &held)?;
        return if args.json {
            print_json(&inspection)
        } else {
            print(&decoder_text(&inspection))
        };
    }
    let inspection = encoder(args, &device)?;
    if args.json {
        print_json(&inspection)
    } else {
        print(&text(&inspection))
    }
}

/// Tensors of a file by name, type and bytes: those that no parameter of a graph reads, and bytes
/// by type.
fn tensors(
    held: &[(&str, &str, usize)],
    is_used: impl Fn(&str) -> bool,
) -> (Vec<String>, BTreeMap<String, usize>) {
    let mut bytes_by_dtype = BTreeMap::new();
    for (_, dtype, bytes) in held {
        *bytes_by_dtype.entry((*dtype).to_owned()).or_insert(0) += bytes;
    }
    let unused = held
        .iter()
        .filter(|(name, ..)| !is_used(name))
        .map(|(name, ..)| (*name).to_owned())
        .collect();
    (unused, bytes_by_dtype)
}

fn encoder(args: &InspectArgs, device: &Device) -> Result<Inspection> {
    let embedder = Embedder::open(&args.file, device)?;
    let weights = SafetensorsWeights::open(&args.file)?;
    let config = embedder.config();
    let poolings: Vec<String> = embedder
        .poolings()
        .iter()
        .map(ToString::to_string)
        .collect();
    let is_used = |name: &str| {
        embedder
            .graph()
            .parameters()
            .any(|(parameter, ..)| parameter == name)
    };
    let held = weights
        .entries()
        .map(|(name, entry)| (name, entry.dtype.as_str(), entry.bytes))
        .collect::<Vec<_>>();
    let (unused, bytes_by_dtype) = tensors(&held, is_used);
    Ok(Inspection {
        kind: "encoder",
        file: args.file.display().to_string(),
        family: config.model_type.clone(),
        parameters: embedder.parameters(),
        layers: config.num_hidden_layers,
        width: config.hidden_size,
        heads: config.num_attention_heads,
        ffn_width: config.intermediate_size,
        activation: config.hidden_act.clone(),
        tokens: config.vocab_size,
        max_tokens: embedder.max_tokens(),
        pooling: poolings.join("+"),
        steps: embedder.steps().collect(),
        normalized: embedder.normalized(),
        embedding_width: embedder.width(),
        prompt: embedder.prompt().to_owned(),
        tensors: held.len(),
        unused,
        bytes_by_dtype,
    })
}

/// Opens a decoder whose files hold these tensors, by name, type and bytes.
pub fn decoder(
    path: &Path,
    model: &Checkpoint,
    device: &Device,
    held: &[(&str, &str, usize)],
) -> Result<DecoderInspection> {
    let decoder = Decoder::new(model, device, usize::MAX, CacheFormats::F32, None)?;
    let sizes = decoder.sizes();
    let (unused, bytes_by_dtype) =
        tensors(held, |name| decoder.tensors().any(|tensor| tensor == name));
    Ok(DecoderInspection {
        kind: "decoder",
        file: path.display().to_string(),
        family: sizes.family.clone(),
        parameters: decoder.parameters(),
        layers: sizes.layers,
        width: sizes.width,
        heads: sizes.heads,
        kv_heads: sizes.kv_heads,
        head_width: sizes.head_width,
        ffn_width: sizes.ffn_width,
        activation: sizes.activation.clone(),
        tokens: sizes.vocab_size,
        max_tokens: sizes.context,
        tied_embeddings: sizes.tied_embeddings,
        cache_bytes_per_token: decoder.cache_bytes_per_token(),
        tokenizer: tokenizer_folder(path).join("tokenizer.json").exists(),
        end_tokens: model.end_tokens()?,
        tensors: held.len(),
        unused,
        bytes_by_dtype,
    })
}

/// The output for a decoder, as text.
pub fn decoder_text(inspection: &DecoderInspection) -> String {
    let DecoderInspection {
        family,
        file,
        parameters,
        layers,
        width,
        heads,
        kv_heads,
        head_width,
        ffn_width,
        activation,
        tokens,
        ..
    } = inspection;
    let ends: Vec<String> = inspection.end_tokens.iter().map(u32::to_string).collect();
    let ends = if ends.is_empty() {
        "none ends a text".to_owned()
    } else {
        format!("{} ends a text", ends.join(" or "))
    };
    let tokenizer = if inspection.tokenizer {
        ""
    } else {
        "; no tokenizer.json: prompts are numbers of tokens"
    };
    let tied = if inspection.tied_embeddings {
        " (its scores are read from the table of tokens)"
    } else {
        ""
    };
    let per_token = bytes(inspection.cache_bytes_per_token as f64);
    let shape = format!(
        "{layers} of width {width}, {} of {head_width}, {kv_heads} of keys and values, feed-forward {ffn_width} ({activation})",
        counted(heads, "head")
    );
    let rows = [
        ("parameters", format!("{parameters}{tied}")),
        ("layers", shape),
        ("tokens", format!("{tokens}; {ends}{tokenizer}")),
        (
            "context",
            format!(
                "at most {} tokens, {per_token} of keys and values each",
                inspection.max_tokens
            ),
        ),
        (
            "tensors",
            held(inspection.tensors, &inspection.bytes_by_dtype),
        ),
        ("unused", listed(&inspection.unused)),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    format!(
        "decoder of the {family} family ({file})\n\n{}",
        table(&rows)
    )
}

fn held(tensors: usize, bytes_by_dtype: &BTreeMap<String, usize>) -> String {
    let held: Vec<String> = bytes_by_dtype
        .iter()
        .map(|(dtype, held)| format!("{dtype} {}", bytes(*held as f64)))
        .collect();
    format!("{tensors}: {}", held.join(", "))
}

fn listed(unused: &[String]) -> String {
    if unused.is_empty() {
        "none".to_owned()
    } else {
        unused.join(", ")
    }
}

fn text(inspection: &Inspection) -> String {
    let Inspection {
        family,
        file,
        parameters,
        layers,
        width,
        heads,
        ffn_width,
        activation,
        tokens,
        max_tokens,
        ..
    } = inspection;
    let steps: String = inspection
        .steps
        .iter()
        .map(|step| format!(", then {step}"))
        .collect();
    let mut rows = vec![
        ("parameters", parameters.to_string()),
        (
            "layers",
            format!(
                "{layers} of width {width}, {} of {}, feed-forward {ffn_width} ({activation})",
                counted(heads, "head"),
                width / heads
            ),
        ),
        (
            "tokens",
            format!("{tokens}; at most {max_tokens} of a text, longer ones are cut"),
        ),
        ("pooling", format!("{}{steps}", inspection.pooling)),
        (
            "tensors",
            held(inspection.tensors, &inspection.bytes_by_dtype),
        ),
        ("unused", listed(&inspection.unused)),
    ];
    if !inspection.prompt.is_empty() {
        rows.push((
            "prompt",
            format!("{:?} before every text", inspection.prompt),
        ));
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    format!(
        "encoder of the {family} family ({file})\n\n{}",
        table(&rows)
    )
}
