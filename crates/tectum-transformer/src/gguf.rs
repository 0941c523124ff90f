//! Models in GGUF files, the format of llama.cpp and related tools: one file with metadata and
//! weights of few bits.
//!
//! Versions 2 and 3, little-endian. Weights are widened to f32 when they are read.

mod file;
mod header;
mod model;
mod tensor_type;
mod value;

pub use file::Gguf;
pub use header::{GgufTensor, Header};
pub use tensor_type::TensorType;
pub use value::{Array, Value, ValueType};

pub(super) use model::{GgufModel, contents};
