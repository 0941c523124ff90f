//! Fill and copy, on 32-bit words of any type.

use std::sync::{Arc, LazyLock};

use super::native::for_each_block;
use super::{Kernel, built_in};
use crate::dtype::DType;

const CHUNK: usize = super::native::BLOCK;

/// `y[i] = word` for `i < n`.
pub static FILL: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("fill_u32").write("y", DType::U32).param("n", DType::U32).param("word", DType::U32).body(include_str!("../../kernels/fill_u32.wgsl")),
        |call| {
            let (y, n, word) = (call.write::<u32>(0), call.size(0), call.u32(1));
            for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |_, y| y.fill(word));
        },
    )
});

/// `y[i] = x[i]` for `i < n`.
pub static COPY: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("copy_u32").read("x", DType::U32).write("y", DType::U32).param("n", DType::U32).body(include_str!("../../kernels/copy_u32.wgsl")),
        |call| {
            let (x, y, n) = (call.read::<u32>(0), call.write::<u32>(1), call.size(0));
            for_each_block(&mut y[..n], CHUNK, call.threads_for(n), |index, y| {
                y.copy_from_slice(&x[index * CHUNK..][..y.len()]);
            });
        },
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![FILL.clone(), COPY.clone()]
}
