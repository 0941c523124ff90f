//! Conformance cases and bench suites: what `tectum verify` and `tectum bench` run, and what a
//! user's own kernel is checked with.
//!
//! ```
//! use tectum_bench::conformance::{Case, Data, Expected, Output, Suite, verify};
//! let suite = Suite::new("relu", |seed| {
//!     let x = seed.floats(100, -1.0, 1.0);
//!     let expected = x.iter().map(|x| Expected::exactly(f64::from(x.max(0.0)))).collect();
//!     vec![Case::new("100", vec![Data::F32(x)], vec![Output::Near(expected)], |plan, x, y| plan.unary("relu", x[0], y[0]))]
//! });
//! assert!(verify(&tectum::Device::open("cpu")?, 1, vec![suite], &[], &mut tectum::WorkProgress::ignore)?.passed());
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | module | what for |
//! |---|---|
//! | [`conformance`] | cases of kernels and simulations against float64, on every device |
//! | [`mod@bench`] | rows of suites, timed next to rooflines and peers; records |
//! | [`api_fuzz`] | random calls of the public interface against a model of it |

pub mod api_fuzz;
pub mod bench;
pub mod conformance;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
