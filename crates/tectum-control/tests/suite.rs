//! The integration tests, in one program: linked once, with one set of threads.

mod bodies;
mod closed_loop;
mod conformance;
mod defects;
mod equations;
mod field_brain;
#[path = "../../tectum-transformer/tests/gguf/writer.rs"]
mod gguf_writer;
mod guard;
mod gymnasium_parity;
mod learning;
mod lqr;
mod motors;
mod other_rigs;
mod own_body;
mod parser_fuzz;
mod pendulum_regret;
#[cfg(feature = "onnx")]
mod policy;
#[path = "../../tectum/tests/power_loss.rs"]
mod power_loss;
#[cfg(feature = "onnx")]
mod recordings;
mod recovery;
mod rig_recording;
mod ros_messages;
mod run_folder;
mod sample_recording;
#[cfg(feature = "onnx")]
#[allow(dead_code, reason = "its own tests use all of them")]
#[path = "../../tectum-onnx/tests/suite/small_models.rs"]
mod small_models;
mod snapshots;
mod stand_in;
mod translation;
mod twin;
