//! Conformance cases and bench suites: what `tectum verify` and `tectum bench` run, and what a user's own kernel is checked with.

pub mod api_fuzz;
pub mod bench;
pub mod conformance;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
