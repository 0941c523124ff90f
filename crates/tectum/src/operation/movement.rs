//! Elements moved: gathers, scatters and sums of rows by their numbers, strided copies, transposes.

pub mod gather;
pub mod one_hot;
pub mod scatter;
pub mod segment_sum;
pub mod strided;
pub mod transpose;

use std::sync::Arc;

use crate::kernel::Kernel;

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [
        gather::kernels,
        one_hot::kernels,
        scatter::kernels,
        segment_sum::kernels,
        strided::kernels,
        transpose::kernels,
    ]
    .into_iter()
    .flat_map(|kernels| kernels())
    .collect()
}
