//! Copies of strided words, and of two rows into one.

use std::sync::{Arc, LazyLock};

use super::arguments::Slices;
use super::native::{NativeCall, for_each_chunk};
use super::{Kernel, TypedKernel, built_in};
use crate::kernel_arguments;

kernel_arguments! {
    /// `y[i0, i1, i2, i3] = x[first + i0·s0 + i1·s1 + i2·s2 + i3·s3]`.
    pub(crate) struct CopyStrided {
        read x: u32, write y: u32;
        n: usize, first: usize, d1: usize, d2: usize, d3: usize, s0: usize, s1: usize, s2: usize, s3: usize
    }

    /// `y[i, ..]` is `a[i, ..]` followed by `b[i, ..]`.
    pub(crate) struct Concat { read a: u32, read b: u32, write y: u32; n: usize, a_len: usize, b_len: usize }
}

pub(crate) static COPY_STRIDED: LazyLock<TypedKernel<CopyStrided>> =
    LazyLock::new(|| built_in(CopyStrided::define("copy_strided_u32").body(include_str!("../../kernels/copy_strided_u32.wgsl")), copy_strided));

pub(crate) static CONCAT: LazyLock<TypedKernel<Concat>> =
    LazyLock::new(|| built_in(Concat::define("concat_u32").body(include_str!("../../kernels/concat_u32.wgsl")), concat));

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![COPY_STRIDED.clone(), CONCAT.clone()]
}

/// Rows of the last axis, contiguous or strided.
fn copy_strided(call: &NativeCall<'_>, arguments: CopyStrided<Slices<'_>>) {
    let CopyStrided { x, y, n, first, d1, d2, d3, s0, s1, s2, s3 } = arguments;
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

fn concat(call: &NativeCall<'_>, Concat { a, b, y, n, a_len, b_len }: Concat<Slices<'_>>) {
    for_each_chunk(&mut y[..n], a_len + b_len, call.threads_for(n), |row, y| {
        let (from_a, from_b) = y.split_at_mut(a_len);
        from_a.copy_from_slice(&a[row * a_len..][..a_len]);
        from_b.copy_from_slice(&b[row * b_len..][..b_len]);
    });
}
