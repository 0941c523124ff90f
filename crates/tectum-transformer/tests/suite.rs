//! The integration tests, in one program: linked once, with one set of threads.

mod cache_errors;
mod decoders;
mod encoders;
mod gguf;
#[path = "gguf/writer.rs"]
mod gguf_writer;
mod heads;
mod sampler;
