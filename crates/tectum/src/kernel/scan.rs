//! Exclusive prefix sums of u32 and stream compaction.
//!
//! A block of 1,024 elements is scanned by one workgroup, which also writes the block's sum; the plan scans the sums the
//! same way and adds the results back. Sums wrap modulo 2³². Integer arithmetic: the same bits on every device.

use std::sync::{Arc, LazyLock};

use rayon::prelude::*;

use super::{Kernel, built_in};
use crate::dtype::DType;

/// Elements that one workgroup scans.
pub const BLOCK: usize = 1024;

/// `y` = exclusive scan of `x` within each block, `sums[block]` = the block's sum; with `flags` 1, every nonzero element
/// counts as 1.
pub static SCAN_BLOCK: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("scan_block_u32")
            .read("x", DType::U32)
            .write("y", DType::U32)
            .write("sums", DType::U32)
            .param("n", DType::U32)
            .param("flags", DType::U32)
            .body(include_str!("../../kernels/scan_block_u32.wgsl")),
        |call| {
            let (x, y, sums) = (call.read::<u32>(0), call.write::<u32>(1), call.write::<u32>(2));
            let (n, flags) = (call.size(0), call.u32(1) != 0);
            let scan = |(y, (x, sum)): (&mut [u32], (&[u32], &mut u32))| {
                *sum = 0;
                for (x, y) in x.iter().zip(y) {
                    *y = *sum;
                    *sum = sum.wrapping_add(if flags { u32::from(*x != 0) } else { *x });
                }
            };
            if call.threads_for(n) > 1 {
                y[..n].par_chunks_mut(BLOCK).zip(x[..n].par_chunks(BLOCK).zip(sums)).for_each(scan);
            } else {
                y[..n].chunks_mut(BLOCK).zip(x[..n].chunks(BLOCK).zip(sums)).for_each(scan);
            }
        },
    )
});

/// `y[i] += offsets[i / block]`.
pub static SCAN_ADD: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("scan_add_u32")
            .read("offsets", DType::U32)
            .read_write("y", DType::U32)
            .param("n", DType::U32)
            .body(include_str!("../../kernels/scan_add_u32.wgsl")),
        |call| {
            let (offsets, y, n) = (call.read::<u32>(0), call.write::<u32>(1), call.size(0));
            for (block, &offset) in y[..n].chunks_mut(BLOCK).zip(offsets) {
                block.iter_mut().for_each(|y| *y = y.wrapping_add(offset));
            }
        },
    )
});

/// `indices[offsets[i]] = i` for every nonzero `flags[i]`.
pub static COMPACT: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    built_in(
        Kernel::define("compact_u32")
            .read("flags", DType::U32)
            .read("offsets", DType::U32)
            .read_write("indices", DType::U32)
            .param("n", DType::U32)
            .body(include_str!("../../kernels/compact_u32.wgsl")),
        |call| {
            let (flags, offsets, indices) = (call.read::<u32>(0), call.read::<u32>(1), call.write::<u32>(2));
            let n = call.size(0);
            let count = offsets[n - 1] as usize + usize::from(flags[n - 1] != 0);
            // Every index is written where the next kept one belongs and overwritten unless it is kept: no branch on the
            // flags. Once all are found nothing more is written.
            let indices = &mut indices[..count];
            let mut next = 0;
            for (i, &flag) in flags[..n].iter().enumerate() {
                let Some(place) = indices.get_mut(next) else { break };
                *place = i as u32;
                next += usize::from(flag != 0);
            }
        },
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SCAN_BLOCK.clone(), SCAN_ADD.clone(), COMPACT.clone()]
}
