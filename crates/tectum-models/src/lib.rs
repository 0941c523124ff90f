//! Bodies, brains and the closed loop, over the public API of `tectum` alone.

#[cfg(test)]
mod api_fuzz;
pub mod body;
pub mod brain;
pub mod clock;
pub mod closed_loop;
pub mod conformance;
pub mod field;
pub mod genome;
mod kernel;
pub mod least_squares;
pub mod real_time;
pub mod recording;
pub mod rig_csv;
pub mod run_folder;
pub mod scenario;
pub mod snapshot;
pub mod spiking;
pub mod transformer;
pub mod twin;
