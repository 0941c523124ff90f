//! Transformers: encoders and decoders read from the folders that Hugging Face models come in, decoders from GGUF files too;
//! `docs/models.md` is the guide.
//!
//! A model's file makes a [`Graph`](tectum::Graph) over letters as B (batch) and T (tokens) whose parameters are named as the
//! tensors of the file; everything else, the loading, the tokens and the runs, is the same for all.

mod bench;
mod bert;
mod cache_errors;
mod checkpoint;
mod config;
mod context;
mod decoder;
mod decoder_graph;
mod embedder;
mod explanation;
mod generator;
mod gguf;
mod gpt2;
mod llama;
mod measure;
mod resident;
mod sampler;
#[cfg(test)]
mod tests;
mod text_stream;
mod tokens;
mod weights;

pub use bench::{minilm, suite};
pub use bert::Bert;
pub use cache_errors::{CacheError, cache_errors};
pub use checkpoint::{input_files, is_decoder};
pub use config::{Config, Pooling};
pub use context::MAX_PREFILL_CHUNK;
pub use decoder::Decoder;
pub use decoder_graph::DecoderSizes;
pub use embedder::{Embedder, Embedding};
pub use explanation::{NodeExplanation, Routing, RunExplanation, explain_run, open_device};
pub use generator::{FinishReason, GenerateOptions, Generation, end_tokens, generate, generate_each};
pub use gguf::{Array, Gguf, GgufTensor, Header, TensorType, Value, ValueType, gguf_file};
pub use measure::{Accuracy, FormatMeasure, cosine, measure_formats};
pub use sampler::{Sampler, SamplingParams};
pub use tokens::Tokens;
pub use weights::{SafetensorsWeights, TensorEntry};
