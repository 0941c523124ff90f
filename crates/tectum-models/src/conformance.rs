//! Conformance of this crate's kernels: the cases that `tectum verify` and the tests run beside those of `tectum`.
//!
//! Each family has its cases beside its kernels. The references are in float64 or in whole numbers and call none of the code that devices run.

use std::sync::Arc;

use tectum::conformance::Suite;
use tectum::{Kernel, Result};

use crate::body::batch;
use crate::brain::mppi;
use crate::twin::Network;
use crate::{field, spiking};

/// Every suite of this crate.
pub fn suites() -> Vec<Suite> {
    [batch::conformance::suites(), mppi::conformance::suites(), spiking::conformance::suites(), field::conformance::suites()].into_iter().flatten().collect()
}

/// Every kernel of this crate. Of the rollout of a twin, which is generated for a network's shape, that of the rig.
///
/// # Errors
/// None that the rig's network has.
pub fn kernels() -> Result<Vec<Arc<Kernel>>> {
    let rig = Network::new(7, &[64, 64], 4)?;
    Ok([mppi::kernels(&rig)?, batch::kernels(), spiking::kernels()?, field::kernels()].concat())
}
