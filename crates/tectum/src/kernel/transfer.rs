//! Fill and copy, on 32-bit words of any type.

use std::sync::{Arc, LazyLock};

use super::native::for_each_block;
use super::{Kernel, TypedKernel, built_in};
use crate::kernel_arguments;

const CHUNK: usize = super::native::BLOCK;

kernel_arguments! {
    /// `y[i] = word` for `i < n`.
    pub(crate) struct Fill { write y: u32; n: usize, word: u32 }

    /// `y[i] = x[i]` for `i < n`.
    pub(crate) struct Copy { read x: u32, write y: u32; n: usize }
}

pub(crate) static FILL: LazyLock<TypedKernel<Fill>> = LazyLock::new(|| {
    built_in(Fill::define("fill_u32").body(include_str!("../../kernels/fill_u32.wgsl")), |call, Fill { y, n, word }| {
        for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |_, y| y.fill(word));
    })
});

pub(crate) static COPY: LazyLock<TypedKernel<Copy>> = LazyLock::new(|| {
    built_in(Copy::define("copy_u32").body(include_str!("../../kernels/copy_u32.wgsl")), |call, Copy { x, y, n }| {
        for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |index, y| y.copy_from_slice(&x[index * CHUNK..][..y.len()]));
    })
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![FILL.clone(), COPY.clone()]
}
