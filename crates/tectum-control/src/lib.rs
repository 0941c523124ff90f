//! Bodies, brains, twins, the closed loop that runs them on time, and the scenarios that name them.

pub mod body;
pub mod brain;
pub mod clock;
pub mod closed_loop;
#[cfg(any(test, feature = "bench"))]
pub mod conformance;
mod document;
mod kernel;
pub mod least_squares;
pub mod real_time;
pub mod recording;
mod reference;
mod registry;
pub mod rig_csv;
pub mod run_folder;
pub mod scenario;
pub mod twin;

#[cfg(any(test, feature = "bench"))]
pub use brain::mppi::bench_suite;
pub use reference::scenario_reference;
