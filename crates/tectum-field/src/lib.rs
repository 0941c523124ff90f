//! The field brain: a 4-D field that senses, moves and changes its own rules. One cycle is one plan.
//!
//! A [`Shape`] and [`Options`] make a [`Simulation`]; [`Simulation::tick`] maps sensors to motors. `docs/field.md` describes the
//! cycle, [`mod@reference`] computes it in float64.

mod agreement;
#[cfg(any(test, feature = "bench"))]
mod bench;
mod check;
mod coefficients;
#[cfg(any(test, feature = "bench"))]
mod conformance;
mod draw;
mod kernel;
mod kernels;
mod layout;
mod options;
mod record;
pub mod reference;
mod shape;
mod simulation;
mod split;
mod state;
mod storage;
mod waves;
mod whole;

pub use agreement::{Difference, TIE, differences};
#[cfg(any(test, feature = "bench"))]
pub use bench::suite as bench_suite;
pub use check::{CheckReport, Latency, Pass, check};
pub use coefficients::Coefficients;
#[cfg(any(test, feature = "bench"))]
pub use conformance::suites as conformance_suites;
pub use kernels::kernels;
pub use options::Options;
pub use shape::Shape;
pub use simulation::{ImprintSiteKind, Recall, Report, Simulation};
pub use state::State;
pub use storage::Storage;

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
