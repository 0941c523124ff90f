//! Rows of a table by index, and their sum back into one.
//!
//! An index beyond the table is never followed: it gives a row of zeros (or adds nothing) and is counted, so that the host
//! can detect it. Sums are of integers, hence the same bits in any order of addition.

use std::sync::{Arc, LazyLock};

use super::arguments::Slices;
use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, TypedKernel, built_in};
use crate::kernel_arguments;

kernel_arguments! {
    /// `y[i, ..] = table[indices[i], ..]`, zeros for an index beyond the table.
    pub(crate) struct Gather { read table: u32, read indices: u32, write y: u32, atomic faults: u32; rows: usize, cols: usize, count: usize }

    /// `y[indices[i], ..] += x[i, ..]` modulo 2³², ignoring an index beyond `y`.
    pub(crate) struct ScatterAdd { read x: u32, read indices: u32, atomic y: u32, atomic faults: u32; rows: usize, cols: usize, count: usize }
}

pub(crate) static GATHER: LazyLock<TypedKernel<Gather>> =
    LazyLock::new(|| built_in(Gather::define("gather_u32").body(include_str!("../../kernels/gather_u32.wgsl")), gather));

pub(crate) static SCATTER_ADD: LazyLock<TypedKernel<ScatterAdd>> =
    LazyLock::new(|| built_in(ScatterAdd::define("scatter_add_u32").body(include_str!("../../kernels/scatter_add_u32.wgsl")), scatter_add));

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![GATHER.clone(), SCATTER_ADD.clone()]
}

fn count_faults(indices: &[u32], rows: usize) -> u32 {
    indices.iter().filter(|&&index| index as usize >= rows).count() as u32
}

fn gather(call: &NativeCall<'_>, Gather { table, indices, y, faults, rows, cols, count }: Gather<Slices<'_>>) {
    let indices = &indices[..count];
    faults[0] = faults[0].wrapping_add(count_faults(indices, rows));
    let chunk = (4096 / cols).max(1);
    for_each_chunk(&mut y[..count * cols], chunk * cols, call.threads_for(count * cols), |part, y| {
        let indices = &indices[part * chunk..];
        if cols == 1 {
            return y.iter_mut().zip(indices).for_each(|(y, &row)| *y = table[..rows].get(row as usize).copied().unwrap_or(0));
        }
        for (y, &row) in y.chunks_exact_mut(cols).zip(indices) {
            match row as usize {
                row if row < rows => y.copy_from_slice(&table[row * cols..][..cols]),
                _ => y.fill(0),
            }
        }
    });
}

/// Each thread owns a range of the rows of `y` and adds the values for that range.
fn scatter_add(call: &NativeCall<'_>, ScatterAdd { x, indices, y, faults, rows, cols, count }: ScatterAdd<Slices<'_>>) {
    let indices = &indices[..count];
    faults[0] = faults[0].wrapping_add(count_faults(indices, rows));
    let threads = call.threads_for(count * cols);
    let share = rows.div_ceil(threads);
    for_each_chunk(&mut y[..rows * cols], share * cols, threads, |part, y| {
        let first = part * share;
        for (x, &row) in x.chunks_exact(cols).zip(indices) {
            let offset = (row as usize).wrapping_sub(first);
            let Some(y) = y.get_mut(offset.saturating_mul(cols)..offset.saturating_add(1).saturating_mul(cols)) else { continue };
            if let ([y], [x]) = (&mut *y, x) {
                *y = y.wrapping_add(*x);
                continue;
            }
            simd(
                #[inline(always)]
                || y.iter_mut().zip(x).for_each(|(y, &x)| *y = y.wrapping_add(x)),
            );
        }
    });
}
