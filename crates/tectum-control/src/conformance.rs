//! Conformance of this crate's kernels: the cases that `tectum verify` and the tests run in addition to those of `tectum`.
//!
//! Each family has its cases next to its kernels. The references use float64 or integers and call none of the code that devices run.

use std::sync::Arc;

use tectum_bench::conformance::Suite;
use tectum::{Kernel, Result};

use crate::body::batch;
use crate::brain::mppi;
use crate::twin::Network;
use tectum_field as field;
use tectum_spiking as spiking;

/// Every suite of this crate.
pub fn suites() -> Vec<Suite> {
    [batch::conformance::suites(), mppi::conformance::suites(), spiking::conformance::suites(), field::conformance::suites()].into_iter().flatten().collect()
}

/// Every kernel of this crate. The rollout of a twin is generated for a network's shape; the rig's is included.
///
/// # Errors
/// None for the rig's network.
pub fn kernels() -> Result<Vec<Arc<Kernel>>> {
    let rig = Network::new(7, &[64, 64], 4)?;
    Ok([mppi::kernels(&rig)?, batch::kernels(), spiking::kernels()?, field::kernels()].concat())
}
