//! Models in GGUF files, as llama.cpp and its kin take them: one file with what a folder says in several, and weights of few bits.
//!
//! Version 2 and 3, the smallest byte first. Weights are widened to f32 as they are read.

mod file;
mod header;
mod model;
mod tensor_type;
mod value;

pub use file::{Gguf, gguf_file};
pub use header::{GgufTensor, Header};
pub use tensor_type::TensorType;
pub use value::{Array, Value, ValueType};

pub(super) use model::GgufModel;
