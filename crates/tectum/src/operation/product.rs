//! Matrix products: of floats, halves and bytes, with weights in panels.

pub(crate) mod dots;
pub(crate) mod finish;
pub mod gemm;
pub mod gemm_batched;
pub mod gemm_i8;
pub mod gemm_panels;
pub mod panel_format;
pub(crate) mod panel_halves;
pub mod quantize_rows;
#[cfg(any(test, not(feature = "gemm")))]
pub(crate) mod strided;
pub(crate) mod strip;
pub(crate) mod strip_i8;
pub(crate) mod tiles;
pub(crate) mod transpose_16x16;

use std::sync::Arc;

use crate::kernel::{Kernel, loops_over};

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [
        gemm::kernels,
        gemm_batched::kernels,
        gemm_i8::kernels,
        gemm_panels::kernels,
        quantize_rows::kernels,
    ]
    .into_iter()
    .flat_map(|kernels| kernels())
    .collect()
}

/// Loop iterations of products in tiles: `batch` products of m × n elements, each over `inner`
/// elements.
pub(crate) fn loops_of_product([batch, m, n]: [usize; 3], groups: u32, inner: usize) -> u64 {
    let tiles = (batch as u64)
        .saturating_mul(m.div_ceil(gemm::TILE) as u64)
        .saturating_mul(n.div_ceil(gemm::TILE) as u64);
    loops_over(tiles, groups, (inner as u64).div_ceil(16) * 23 + 24)
}
