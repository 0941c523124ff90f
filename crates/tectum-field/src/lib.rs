//! The field brain: a 4-D field that senses, moves and changes its own rules. One cycle is one
//! plan.
//!
//! A [`Shape`] and [`Options`] make a [`Simulation`]; [`Simulation::tick`] maps sensors to motors.
//! `docs/field.md` describes the cycle, [`mod@reference`] computes it in float64.
//!
//! ```
//! use tectum::{Boundary, Device};
//! use tectum_field::{Options, Shape, Simulation, Storage};
//! let options = Options { sensors: 2, motors: 1, boundary: Boundary::Periodic, seed: 1, patterns: 0, storage: Storage::F32 };
//! let mut field = Simulation::new(Shape::new([8, 8, 8], 32)?, options, &Device::open("cpu")?)?;
//! for _ in 0..3 {
//!     let report = field.tick(&[0.5, -0.5], 0.0)?;
//!     assert!(report.motors[0].abs() <= 1.0);
//! }
//! assert_eq!(field.cycle(), 3);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | module or type | what for |
//! |---|---|
//! | [`Shape`], [`Options`], [`Storage`] | cells and channels, sensors and motors, f32 or bf16 |
//! | [`Simulation`], [`Report`], [`State`] | cycles on one device or several; what a cycle did; the elements |
//! | [`Coefficients`] | the rules of the field, which it changes itself |
//! | [`check()`], [`differences`] | comparison of a device with the reference |

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
pub use check::{CheckReport, Finding, Latency, Pass, check};
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
