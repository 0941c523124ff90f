//! Tests of the reader: ONNX's own, and files that are broken.

#[path = "suite/backend.rs"]
mod backend;
#[path = "suite/convolutions.rs"]
mod convolutions;
#[path = "suite/domains.rs"]
mod domains;
#[path = "suite/fuzz.rs"]
mod fuzz;
#[path = "suite/integers.rs"]
mod integers;
#[path = "suite/ports.rs"]
mod ports;
#[path = "suite/random.rs"]
mod random;
#[path = "suite/refusals.rs"]
mod refusals;
#[path = "suite/small_models.rs"]
mod small_models;
