//! Exclusive prefix sums of u32 and stream compaction.
//!
//! A block of 1,024 elements is scanned by one workgroup, which also writes the block's sum; the
//! plan scans the sums the same way and adds the results back. Sums wrap modulo 2³². Integer
//! arithmetic: the same bits on every device.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, for_each_chunk_pair, simd};
use crate::kernel::{Kernel, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

/// Elements that one workgroup scans.
pub const BLOCK: usize = 1024;

kernel_arguments! {
    /// `y` = exclusive scan of `x` within each block, `sums[block]` = the block's sum; with `flags`
    /// 1, every nonzero element counts as 1.
    pub(crate) struct ScanBlock { read x: u32, write y: u32, write sums: u32; n: usize, flags: u32 }

    /// `y[i] += offsets[i / block]`.
    pub(crate) struct ScanAdd { read offsets: u32, read_write y: u32; n: usize }

    /// `indices[offsets[i]] = i` for every nonzero `flags[i]`.
    pub(crate) struct Compact { read flags: u32, read offsets: u32, read_write indices: u32; n: usize }
}

pub(crate) static SCAN_BLOCK: LazyLock<TypedKernel<ScanBlock>> = LazyLock::new(|| {
    built_in(
        ScanBlock::define("scan_block_u32").body(include_str!("scan_block_u32.wgsl")),
        |call,
         ScanBlock {
             x,
             y,
             sums,
             n,
             flags,
         }| {
            let sums = &mut sums[..n.div_ceil(BLOCK)];
            for_each_chunk_pair(
                (&mut y[..n], sums),
                [BLOCK, 1],
                call.threads_for(n),
                |block, y, sum| {
                    let mut total = 0u32;
                    for (x, y) in x[block * BLOCK..n].iter().zip(y) {
                        *y = total;
                        total =
                            total.wrapping_add(if flags != 0 { u32::from(*x != 0) } else { *x });
                    }
                    sum[0] = total;
                },
            );
        },
    )
});

pub(crate) static SCAN_ADD: LazyLock<TypedKernel<ScanAdd>> = LazyLock::new(|| {
    built_in(
        ScanAdd::define("scan_add_u32").body(include_str!("scan_add_u32.wgsl")),
        |call, ScanAdd { offsets, y, n }| {
            for_each_chunk(&mut y[..n], BLOCK, call.threads_for(n), |index, block| {
                let offset = offsets[index];
                simd(
                    #[inline(always)]
                    || block.iter_mut().for_each(|y| *y = y.wrapping_add(offset)),
                );
            });
        },
    )
});

pub(crate) static COMPACT: LazyLock<TypedKernel<Compact>> = LazyLock::new(|| {
    built_in(
        Compact::define("compact_u32").body(include_str!("compact_u32.wgsl")),
        compact,
    )
});

fn compact(
    call: &NativeCall<'_>,
    Compact {
        flags,
        offsets,
        indices,
        n,
    }: Compact<Slices<'_>>,
) {
    let threads = call.threads_for(n);
    let piece = n.div_ceil(4 * threads).max(1);
    let count = offsets[n - 1] as usize + usize::from(flags[n - 1] != 0);
    // The kept indices of a piece of the flags lie between the offsets of its ends.
    let mut rest = &mut indices[..count];
    rayon_core::in_place_scope(|scope| {
        for start in (0..n).step_by(piece) {
            let end = n.min(start + piece);
            let kept =
                offsets.get(end).map_or(count, |&offset| offset as usize) - offsets[start] as usize;
            let (part, after) = std::mem::take(&mut rest).split_at_mut(kept);
            rest = after;
            let mut work = move || keep_indices(&flags[start..end], start, part);
            if threads > 1 {
                scope.spawn(move |_| work())
            } else {
                work()
            }
        }
    });
}

/// Writes the places of nonzero flags, as many as `kept` holds; the first flag's place is `first`.
///
/// Every place is written to the next kept slot and overwritten unless it is kept: no branch on the
/// flags. Once all are found, writing stops.
fn keep_indices(flags: &[u32], first: usize, kept: &mut [u32]) {
    let mut next = 0;
    for (offset, &flag) in flags.iter().enumerate() {
        let Some(place) = kept.get_mut(next) else {
            break;
        };
        *place = (first + offset) as u32;
        next += usize::from(flag != 0);
    }
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![SCAN_BLOCK.clone(), SCAN_ADD.clone(), COMPACT.clone()]
}

impl PlanBuilder {
    /// Records the exclusive prefix sum of `x` modulo 2³² into `y` and its total into `total`.
    ///
    /// # Shapes
    /// `x` and `y` \[n\] u32, `total` \[1\] u32.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn exclusive_scan(&mut self, x: View, y: View, total: View) -> Result<()> {
        self.whole(|plan| plan.scan(x, y, total, false))
    }

    /// Records the indices of the nonzero `flags` in order into `indices`, and their number into
    /// `count`. Elements of `indices` beyond the count keep their values.
    ///
    /// # Shapes
    /// `flags` and `indices` \[n\] u32, `count` \[1\] u32.
    /// # Errors
    /// As [`PlanBuilder::exclusive_scan`].
    pub fn compact(&mut self, flags: View, indices: View, count: View) -> Result<()> {
        if flags.len() != indices.len() {
            return Err(Error::invalid(format!(
                "compact: {} flags and {} indices",
                flags.len(),
                indices.len()
            )));
        }
        count.check_no_overlap(indices, "compact")?;
        self.whole(|plan| {
            let offsets = plan.temp(DType::U32, flags.len());
            plan.scan(flags, offsets, count, true)?;
            if flags.is_empty() {
                return Ok(());
            }
            plan.launch(
                &COMPACT,
                Compact {
                    flags,
                    offsets,
                    indices,
                    n: flags.len(),
                },
                groups_for(flags.len()),
            )
        })
    }

    fn scan(&mut self, x: View, y: View, total: View, flags: bool) -> Result<()> {
        if x.len() != y.len() || total.len() != 1 {
            return Err(Error::invalid(format!(
                "scan: x {}, y {}, total {} elements; n, n, 1 needed",
                x.len(),
                y.len(),
                total.len()
            )));
        }
        if x.is_empty() {
            return self.fill(total, 0);
        }
        // Blocks are scanned before their sums: the operand and the results must not overlap, as in
        // one launch, for any number of blocks.
        self.check_aliases(&SCAN_BLOCK, &[x, y, total])?;
        let blocks = x.len().div_ceil(BLOCK);
        let sums = if blocks == 1 {
            total
        } else {
            self.temp(DType::U32, blocks)
        };
        self.launch(
            &SCAN_BLOCK,
            ScanBlock {
                x,
                y,
                sums,
                n: x.len(),
                flags: u32::from(flags),
            },
            groups(blocks),
        )?;
        if blocks > 1 {
            let offsets = self.temp(DType::U32, blocks);
            self.scan(sums, offsets, total, false)?;
            self.launch(
                &SCAN_ADD,
                ScanAdd {
                    offsets,
                    y,
                    n: x.len(),
                },
                groups_for(x.len()),
            )?;
        }
        Ok(())
    }
}
