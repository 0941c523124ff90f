//! Bodies, brains, twins, the closed loop that runs them on time, and the scenarios that name them.
//!
//! ```
//! use tectum_control::scenario::Scenario;
//! use tectum_control::scenario::build::{brain_recipe, build_body, build_loop};
//! let text = "[body]\nname = \"pendulum\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 20\nclock = \"sim\"\n";
//! let scenario = Scenario::parse(text, "swing.toml", "swing")?;
//! let body = build_body(&scenario)?;
//! let recipe = brain_recipe(&scenario, body.spec())?;
//! let mut closed_loop = build_loop(&scenario, body, recipe, &tectum::Device::open("cpu")?, &mut tectum::WorkProgress::ignore)?;
//! let outcome = closed_loop.simulate().into_result()?;
//! assert!(outcome.metrics.success_fraction() > 0.5);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | module | what for |
//! |---|---|
//! | [`scenario`] | runs as TOML files; [`run_folder::run`] runs one and writes its folder |
//! | [`body`], [`body::task`] | plants: built in, registered or your own; what success is |
//! | [`brain`] | controllers, the same way |
//! | [`closed_loop`], [`clock`], [`real_time`] | the loop: deadlines, faults, stand-ins, guards; real or simulated time |
//! | [`twin`], [`rig_csv`] | learned models of plants, from recordings |
//! | [`ros`] | messages of ROS 2: definitions, CDR, type hashes |
//! | [`recorded`], [`replay`] | recordings of any robot as bodies; brains compared with recorded actions |
//! | [`run_folder`], [`recording`] | what a run writes: receipt, summary, MCAP, snapshot |
//! | [`live`] | what others see of a run while it happens, and how they steer it |

pub mod body;
pub mod brain;
pub mod clock;
pub mod closed_loop;
#[cfg(any(test, feature = "bench"))]
pub mod conformance;
mod document;
mod kernel;
pub mod least_squares;
pub mod live;
pub mod message;
mod nearest;
pub mod real_time;
pub mod recorded;
pub mod recording;
mod reference;
mod registry;
pub mod replay;
mod riccati;
pub mod rig_csv;
pub mod ros;
pub mod run_folder;
mod samples;
pub mod scenario;
pub mod twin;

#[cfg(any(test, feature = "bench"))]
pub use brain::mppi::bench_suite;
pub use nearest::nearest;
pub use reference::scenario_reference;
pub use samples::SAMPLES;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/equations.md")]
struct PageExamples;
