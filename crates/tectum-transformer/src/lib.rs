//! Transformers: encoders and decoders from Hugging Face model folders, decoders also from GGUF
//! files; `docs/models.md` is the guide.
//!
//! ```no_run
//! use std::{ops::ControlFlow, path::Path};
//! use tectum_transformer::{Decoder, GenerateOptions, Tokens, generate};
//! let folder = Path::new("Qwen3-0.6B");
//! let mut decoder = Decoder::open(folder, &tectum::Device::open("cpu")?, 512)?;
//! let tokens = Tokens::read(folder, None)?;
//! let options = GenerateOptions { max_new_tokens: 64, ..GenerateOptions::default() };
//! generate(&mut decoder, Some(&tokens), &tokens.encode("Once upon a time")?, &options, |piece| {
//!     print!("{piece}");
//!     Ok(ControlFlow::Continue(()))
//! })?;
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | type | what for |
//! |---|---|
//! | [`Model`] | a folder or a file of unknown kind |
//! | [`Encoder`], [`Embedder`] | vectors of texts |
//! | [`Checkpoint`], [`Decoder`], [`generate`], [`Sampler`] | texts, token by token |
//! | [`Tokens`] | tokenizers |
//! | [`Gguf`], [`SafetensorsWeights`] | what is in a file |
//! | [`measure_formats`], [`cache_errors`] | what fewer bits cost |
//!
//! Each model's source file builds a [`Graph`](tectum_graph::Graph) over letters such as B (batch)
//! and T (tokens); parameters have the names of the tensors in the model's file. Loading, tokens
//! and runs are the same for all models.

#[cfg(any(test, feature = "bench"))]
mod bench;
mod bert;
mod cache_errors;
mod checkpoint;
mod config;
mod context;
mod decoder;
mod decoder_graph;
mod device_weights;
mod embedder;
mod encoder;
mod encoder_weights;
mod explanation;
mod families;
mod family;
mod generator;
#[cfg(feature = "gguf")]
mod gguf;
mod gguf_file;
mod gpt2;
mod head;
mod llama;
mod measure;
mod model;
mod prepared_graph;
mod sampler;
mod samples;
#[cfg(test)]
mod tests;
mod text_stream;
mod tokens;
mod weights;

#[cfg(any(test, feature = "bench"))]
pub use bench::{minilm, suite as bench_suite};
pub use bert::Bert;
pub use cache_errors::{CacheError, cache_errors};
pub use checkpoint::{Checkpoint, input_files};
pub use config::Config;
pub use context::MAX_PREFILL_CHUNK;
pub use decoder::Decoder;
pub use decoder_graph::DecoderSizes;
pub use embedder::{Embedder, Embedding};
pub use encoder::Encoder;
pub use explanation::{NodeExplanation, Routing, RunExplanation};
pub use generator::{FinishReason, GenerateOptions, Generation, generate, generate_each};
#[cfg(feature = "gguf")]
pub use gguf::{Array, Gguf, GgufTensor, Header, TensorType, Value, ValueType};
pub use gguf_file::gguf_file;
pub use head::Pooling;
pub use measure::{Accuracy, FormatMeasure, cosine, measure_formats};
pub use model::Model;
pub use sampler::{Sampler, SamplingParams};
pub use samples::{SAMPLES, sample};
pub use tokens::Tokens;
pub use weights::{SafetensorsWeights, TensorEntry};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
