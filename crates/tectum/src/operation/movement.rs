//! Elements moved: gathers and scatters, strided copies, transposes.

pub mod gather;
pub mod strided;
pub mod transpose;

use std::sync::Arc;

use crate::kernel::Kernel;

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [gather::kernels, strided::kernels, transpose::kernels].into_iter().flat_map(|kernels| kernels()).collect()
}
