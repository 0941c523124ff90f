//! Rows of a table by index, and their sum back into one.
//!
//! An index beyond the table is never followed: it gives a row of zeros (or adds nothing) and is counted, so that the host
//! can detect it. Sums are of integers, hence the same bits in any order of addition.

use std::sync::{Arc, LazyLock};

use super::native::{NativeCall, for_each_chunk, simd};
use super::{Kernel, built_in};
use crate::dtype::DType;

/// `y[i, ..] = table[indices[i], ..]`, zeros for an index beyond the table.
pub static GATHER: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("gather_u32")
            .read("table", DType::U32)
            .read("indices", DType::U32)
            .write("y", DType::U32)
            .atomic("faults", DType::U32)
            .param("rows", DType::U32)
            .param("cols", DType::U32)
            .param("count", DType::U32)
            .body(include_str!("../../kernels/gather_u32.wgsl")),
        gather,
    )
});

/// `y[indices[i], ..] += x[i, ..]` modulo 2³², ignoring an index beyond `y`.
pub static SCATTER_ADD: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("scatter_add_u32")
            .read("x", DType::U32)
            .read("indices", DType::U32)
            .atomic("y", DType::U32)
            .atomic("faults", DType::U32)
            .param("rows", DType::U32)
            .param("cols", DType::U32)
            .param("count", DType::U32)
            .body(include_str!("../../kernels/scatter_add_u32.wgsl")),
        scatter_add,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![GATHER.clone(), SCATTER_ADD.clone()]
}

fn count_faults(indices: &[u32], rows: usize) -> u32 {
    indices.iter().filter(|&&index| index as usize >= rows).count() as u32
}

fn gather(call: &NativeCall<'_>) {
    let (table, y, faults) = (call.read::<u32>(0), call.write::<u32>(2), call.write::<u32>(3));
    let (rows, cols, count) = (call.size(0), call.size(1), call.size(2));
    let indices = &call.read::<u32>(1)[..count];
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
fn scatter_add(call: &NativeCall<'_>) {
    let (x, y, faults) = (call.read::<u32>(0), call.write::<u32>(2), call.write::<u32>(3));
    let (rows, cols, count) = (call.size(0), call.size(1), call.size(2));
    let indices = &call.read::<u32>(1)[..count];
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
