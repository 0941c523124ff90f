//! Conformance of the models' kernels: the cases that `tectum verify` and the tests run in addition to those of `tectum-bench`.
//!
//! Each family has its cases next to its kernels. The references use float64 or integers and call none of the code that devices run.

use std::sync::Arc;

use tectum::{Kernel, Result};
use tectum_bench::conformance::Suite;

use crate::body::batch;
use crate::brain::mppi;
use crate::twin::Network;

/// Every suite of bodies, brains, spiking networks and fields.
pub fn suites() -> Vec<Suite> {
    [batch::conformance::suites(), mppi::conformance::suites(), tectum_spiking::conformance_suites(), tectum_field::conformance_suites()]
        .into_iter()
        .flatten()
        .collect()
}

/// Every kernel of theirs. The rollout of a twin is generated for a network's shape; the rig's is included.
///
/// # Errors
/// None for the rig's network.
pub fn kernels() -> Result<Vec<Arc<Kernel>>> {
    let rig = Network::new(7, &[64, 64], 4)?;
    Ok([mppi::kernels(&rig)?, batch::kernels(), tectum_spiking::kernels()?, tectum_field::kernels()].concat())
}
