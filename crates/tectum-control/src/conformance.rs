//! Conformance of the models' kernels: the cases that `tectum verify` and the tests run in addition
//! to those of `tectum-bench`.
//!
//! Each family has its cases next to its kernels. The references use float64 or integers and call
//! none of the code that devices run.

use std::sync::Arc;

use tectum::{Kernel, Result};
use tectum_bench::conformance::Suite;

use crate::body::batch;
use crate::brain::BrainSpec;

/// Every suite of bodies and brains.
pub fn suites() -> Vec<Suite> {
    batch::conformance::suites()
        .into_iter()
        .chain(BrainSpec::conformance().flat_map(|of| (of.suites)()))
        .collect()
}

/// Every kernel of theirs. The rollout of a twin is generated for a network's shape; the rig's is
/// included.
///
/// # Errors
/// None for the rig's network.
pub fn kernels() -> Result<Vec<Arc<Kernel>>> {
    let of_brains = BrainSpec::conformance()
        .map(|of| (of.kernels)())
        .collect::<Result<Vec<_>>>()?;
    Ok([of_brains.concat(), batch::kernels()].concat())
}
