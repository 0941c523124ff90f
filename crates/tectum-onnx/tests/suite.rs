//! Tests of the reader: ONNX's own, and files that are broken.

#[path = "suite/backend.rs"]
mod backend;
