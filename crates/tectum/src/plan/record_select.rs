//! Recording scan, compaction and top-k.

use super::record_reduce::groups;
use super::{PlanBuilder, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::groups_for;
use crate::kernel::scan::{self, Compact, ScanAdd, ScanBlock};
use crate::kernel::top_k::{self, TopK};

impl PlanBuilder {
    /// Records the exclusive prefix sum of `x` modulo 2³² into `y` and its total into `total`.
    ///
    /// # Shapes
    /// `x` and `y` [n] u32, `total` [1] u32.
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn exclusive_scan(&mut self, x: View, y: View, total: View) -> Result<()> {
        self.whole(|plan| plan.scan(x, y, total, false))
    }

    /// Records the indices of the nonzero `flags` in order into `indices`, and their number into `count`. Elements of
    /// `indices` beyond the count keep their values.
    ///
    /// # Shapes
    /// `flags` and `indices` [n] u32, `count` [1] u32.
    /// # Errors
    /// As [`PlanBuilder::exclusive_scan`].
    pub fn compact(&mut self, flags: View, indices: View, count: View) -> Result<()> {
        if flags.len() != indices.len() {
            return Err(Error::invalid(format!("compact: {} flags and {} indices", flags.len(), indices.len())));
        }
        count.check_no_overlap(indices, "compact")?;
        self.whole(|plan| {
            let offsets = plan.temp(DType::U32, flags.len());
            plan.scan(flags, offsets, count, true)?;
            if flags.is_empty() {
                return Ok(());
            }
            plan.launch(&scan::COMPACT, Compact { flags, offsets, indices, n: flags.len() }, groups_for(flags.len()))
        })
    }

    fn scan(&mut self, x: View, y: View, total: View, flags: bool) -> Result<()> {
        if x.len() != y.len() || total.len() != 1 {
            return Err(Error::invalid(format!("scan: x {}, y {}, total {} elements; n, n, 1 needed", x.len(), y.len(), total.len())));
        }
        if x.is_empty() {
            return self.fill(total, 0);
        }
        // Blocks are scanned before their sums: the operand and the results must not overlap, as in one launch, for any number of blocks.
        if [x, y, total].iter().all(|view| view.of(self.id).is_ok()) {
            self.check_aliases(&scan::SCAN_BLOCK, &[x, y, total])?;
        }
        let blocks = x.len().div_ceil(scan::BLOCK);
        let sums = if blocks == 1 { total } else { self.temp(DType::U32, blocks) };
        self.launch(&scan::SCAN_BLOCK, ScanBlock { x, y, sums, n: x.len(), flags: u32::from(flags) }, groups(blocks))?;
        if blocks > 1 {
            let offsets = self.temp(DType::U32, blocks);
            self.scan(sums, offsets, total, false)?;
            self.launch(&scan::SCAN_ADD, ScanAdd { offsets, y, n: x.len() }, groups_for(x.len()))?;
        }
        Ok(())
    }

    /// Records the k greatest elements of each row with their columns: greater first, NaN before all, ties by the lower
    /// column.
    ///
    /// # Shapes
    /// `x` [rows, cols] f32, `values` [rows, k] f32, `columns` [rows, k] u32.
    /// # Errors
    /// `Invalid` unless 1 ≤ k ≤ min(cols, 512) and the lengths fit; as [`PlanBuilder::launch`].
    pub fn top_k(&mut self, x: View, values: View, columns: View, rows: usize, k: usize) -> Result<()> {
        if rows == 0 && x.is_empty() {
            return Ok(());
        }
        let cols = x.len() / rows.max(1);
        let fits = x.fills(&[rows, cols]) && values.fills(&[rows, k]) && columns.fills(&[rows, k]);
        if k == 0 || k > top_k::MAX_K || k > cols || !fits {
            return Err(Error::invalid(format!(
                "top_k: x has {} elements in {rows} rows, k = {k}, values {} and columns {}; k of 1 to {} (at most {}) and outputs of rows × k needed",
                x.len(),
                values.len(),
                columns.len(),
                cols,
                top_k::MAX_K
            )));
        }
        self.whole(|plan| plan.top_k_chunks(x, [values, columns], [rows, cols, k]))
    }

    /// The launches of a top-k: over chunks, then over what they kept; the caller has checked all arguments.
    fn top_k_chunks(&mut self, x: View, [values, columns]: [View; 2], [rows, cols, k]: [usize; 3]) -> Result<()> {
        let (mut source, mut candidates, mut width) = (x, None, cols);
        loop {
            let chunks = width.div_ceil(top_k::CHUNK);
            let (to_values, to_columns) =
                if chunks == 1 { (values, columns) } else { (self.temp(DType::F32, rows * chunks * k), self.temp(DType::U32, rows * chunks * k)) };
            let kernel = if candidates.is_none() { &top_k::TOP_K } else { &top_k::TOP_K_MERGE };
            let arguments = TopK { x: source, candidates, values: to_values, columns: to_columns, rows, cols: width, chunks, k };
            self.launch(kernel, arguments, groups(rows * chunks))?;
            if chunks == 1 {
                return Ok(());
            }
            (source, candidates, width) = (to_values, Some(to_columns), chunks * k);
        }
    }
}
