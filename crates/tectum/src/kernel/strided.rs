//! Copies of strided words, and of two rows into one.

use std::sync::{Arc, LazyLock};

use super::native::{NativeCall, for_each_chunk};
use super::{Kernel, built_in};
use crate::dtype::DType;

/// `y[i0, i1, i2, i3] = x[first + i0·s0 + i1·s1 + i2·s2 + i3·s3]`.
pub static COPY_STRIDED: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("copy_strided_u32").read("x", DType::U32).write("y", DType::U32);
    let builder = ["n", "first", "d1", "d2", "d3", "s0", "s1", "s2", "s3"].into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    built_in(builder.body(include_str!("../../kernels/copy_strided_u32.wgsl")), copy_strided)
});

/// `y[i, ..]` is `a[i, ..]` followed by `b[i, ..]`.
pub static CONCAT: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("concat_u32").read("a", DType::U32).read("b", DType::U32).write("y", DType::U32);
    let builder = ["n", "a_len", "b_len"].into_iter().fold(builder, |builder, name| builder.param(name, DType::U32));
    built_in(builder.body(include_str!("../../kernels/concat_u32.wgsl")), concat)
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![COPY_STRIDED.clone(), CONCAT.clone()]
}

/// Rows of the last axis, contiguous or strided.
fn copy_strided(call: &NativeCall<'_>) {
    let (x, y, n) = (call.read::<u32>(0), call.write::<u32>(1), call.size(0));
    let first = call.size(1);
    let [d1, d2, d3] = [2, 3, 4].map(|index| call.size(index));
    let [s0, s1, s2, s3] = [5, 6, 7, 8].map(|index| call.size(index));
    for_each_chunk(&mut y[..n], d3, call.threads_for(n), |row, y| {
        let (i2, i1, i0) = (row % d2, row / d2 % d1, row / d2 / d1);
        let x = &x[first + i0 * s0 + i1 * s1 + i2 * s2..];
        if s3 == 1 {
            y.copy_from_slice(&x[..y.len()]);
        } else {
            y.iter_mut().enumerate().for_each(|(i, y)| *y = x[i * s3]);
        }
    });
}

fn concat(call: &NativeCall<'_>) {
    let (a, b, y) = (call.read::<u32>(0), call.read::<u32>(1), call.write::<u32>(2));
    let [n, a_len, b_len] = [0, 1, 2].map(|index| call.size(index));
    for_each_chunk(&mut y[..n], a_len + b_len, call.threads_for(n), |row, y| {
        let (from_a, from_b) = y.split_at_mut(a_len);
        from_a.copy_from_slice(&a[row * a_len..][..a_len]);
        from_b.copy_from_slice(&b[row * b_len..][..b_len]);
    });
}
