//! ONNX files as graphs: read, checked, and run on every device.
//!
//! | type | what for |
//! |---|---|
//! | [`Model`] | a file: its inputs, outputs, operators and metadata |
//! | [`Network`] | the file as a [`Graph`](tectum_graph::Graph) with its weights, all sizes known |
//! | [`CompiledNetwork`] | runs on a device |
//! | [`Array`] | a tensor on the host, of any element type of ONNX |
//!
//! Shapes are resolved when a model is loaded: symbolic dimensions get sizes, arithmetic on shapes
//! is folded, and every operator, attribute or type that is not supported is reported, all of them
//! in one error that names node, operator and opset.
//!
//! On devices, floats of any width are f32, and integers and truth values are i32; [`Array`] keeps
//! the types of the file. An integer beyond 32 bits is refused where it would reach a device.

mod array;
mod assumption;
mod attributes;
#[cfg(feature = "bench")]
mod bench;
mod element;
mod emit;
mod import;
mod model;
mod network;
mod npz;
mod operators;
mod reader;

pub use array::Array;
pub use assumption::Assumption;
#[cfg(feature = "bench")]
pub use bench::suite as bench_suite;
pub use element::ElementType;
pub use model::{Model, Port, PortDim};
pub use network::{CompiledNetwork, Network, NetworkPort};
pub use npz::read_npz;
pub use operators::supported as supported_operators;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
