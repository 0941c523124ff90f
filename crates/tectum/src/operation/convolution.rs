//! Convolutions, transposed convolutions and pooling over one, two or three axes of space.
//!
//! Arrays are [N, C, D, H, W], row-major; missing leading axes of space have size 1. A
//! [`Window`](window::Window) says which elements of the input an element of the output reads. On
//! the CPU a convolution is a product of the filters with patches of the input, 64 output elements
//! at a time; filters of 3 × 3 may be transformed for Winograd's algorithm. Where each filter reads
//! one channel, vectors hold sixteen channels, or sixteen columns of wide rows; pooling is computed
//! along rows.

pub(crate) mod chunks;
pub(crate) mod depthwise;
pub(crate) mod depthwise_rows;
pub mod forward;
pub(crate) mod interleaved;
pub(crate) mod padded;
pub(crate) mod patches;
pub mod pool;
pub(crate) mod pool_rows;
pub mod transposed;
pub mod window;
pub(crate) mod winograd;

use std::sync::Arc;

use crate::kernel::Kernel;

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [forward::kernels, transposed::kernels, pool::kernels]
        .into_iter()
        .flat_map(|kernels| kernels())
        .collect()
}
