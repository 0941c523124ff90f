//! The k greatest elements of each row with their columns, exact and in one order on every device.
//!
//! Order: greater first, NaN before all, ties by the lower column. A chunk of 1,024 candidates is
//! sorted by one workgroup, which keeps the first k; the plan launches the merge over the kept
//! candidates until one chunk is left.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::{NoBindings, Slices};
use crate::kernel::native::{NativeCall, for_each_chunk_pair, simd};
use crate::kernel::order::order_key;
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel};
use crate::kernel_arguments;
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

/// Candidates that one workgroup sorts.
pub const CHUNK: usize = 1024;
/// The greatest k: half a chunk, so that every round at least halves the candidates.
pub const MAX_K: usize = CHUNK / 2;
/// The column of a place without an element.
pub const NO_COLUMN: u32 = u32::MAX;

kernel_arguments! {
    /// The k greatest of each chunk of the rows; candidates are the row's own columns, or carry
    /// their columns.
    pub(crate) struct TopK { read x: f32, optional candidates: u32, write values: f32, write columns: u32; rows: usize, cols: usize, chunks: usize, k: usize }
}

fn define(name: &'static str, column: &str) -> KernelBuilder<TopK> {
    let body = include_str!("top_k_f32.wgsl").replace("CANDIDATE_COLUMN", column);
    // 55 steps of the network that sorts 1,024 candidates, two pairs an invocation.
    let loops = |TopK { rows, chunks, .. }: TopK<NoBindings>, groups: u32| {
        crate::kernel::loops_over((rows as u64).saturating_mul(chunks as u64), groups, 250)
    };
    TopK::define(name)
        .prelude(Prelude::Order)
        .loops(loops)
        .body(body)
}

/// The first round: candidates are the row's own columns.
pub(crate) static TOP_K: LazyLock<TypedKernel<TopK>> =
    LazyLock::new(|| built_in(define("top_k_f32", "i"), select));

/// A later round: candidates carry their columns.
pub(crate) static TOP_K_MERGE: LazyLock<TypedKernel<TopK>> = LazyLock::new(|| {
    built_in(
        define("top_k_merge_f32", "candidates[row * params.cols + i]").with("candidates"),
        select,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![TOP_K.clone(), TOP_K_MERGE.clone()]
}

/// Key and column of a candidate, and its value; the first two order candidates, those to be kept
/// first.
type Candidate = ((Reverse<u32>, u32), f32);
const NONE: Candidate = ((Reverse(0), NO_COLUMN), f32::NEG_INFINITY);

/// The k greatest of each chunk, except those that k candidates of the row's earlier chunks exceed:
/// they cannot be among the row's k, and a chunk without others is only read.
fn select(
    call: &NativeCall<'_>,
    TopK {
        x,
        candidates,
        values,
        columns,
        rows,
        cols,
        chunks,
        k,
    }: TopK<Slices<'_>>,
) {
    let (items, threads) = (rows * chunks, call.threads_for(rows * cols));
    let piece = items.div_ceil(2 * threads).max(1);
    for_each_chunk_pair(
        (&mut values[..items * k], &mut columns[..items * k]),
        [piece * k; 2],
        threads,
        |index, values, columns| {
            let mut best = Best {
                candidates: [NONE; MAX_K + CHUNK],
                len: 0,
                k,
            };
            for (offset, (values, columns)) in
                values.chunks_mut(k).zip(columns.chunks_mut(k)).enumerate()
            {
                let (row, chunk) = (
                    (index * piece + offset) / chunks,
                    (index * piece + offset) % chunks,
                );
                if chunk == 0 {
                    best.len = 0;
                }
                let range = row * cols + chunk * CHUNK..row * cols + cols.min((chunk + 1) * CHUNK);
                let found = best.add(
                    &x[range.clone()],
                    candidates.map(|columns| &columns[range]),
                    (chunk * CHUNK) as u32,
                );
                for (place, (value, column)) in values.iter_mut().zip(columns).enumerate() {
                    ((_, *column), *value) = found.get(place).copied().unwrap_or(NONE);
                }
                let count = found.len();
                best.keep(count);
            }
        },
    );
}

/// The best candidates of a row so far.
struct Best {
    /// The first `len` are the best, unordered; those of a chunk are placed after them.
    candidates: [Candidate; MAX_K + CHUNK],
    len: usize,
    k: usize,
}

/// Elements that are tested together.
const BLOCK: usize = 64;

impl Best {
    /// Places the new candidates of a chunk after the best, sorted, at most k.
    fn add(&mut self, x: &[f32], columns: Option<&[u32]>, first: u32) -> &[Candidate] {
        // An equal key comes later in the row and loses.
        let exceeds = match self.len < self.k {
            true => 0,
            false => (self.candidates[self.len - 1].0.0.0).saturating_add(1),
        };
        let none_exceeds_nan =
            self.len == self.k && self.candidates[self.len - 1].0.0.0 == u32::MAX;
        let mut end = self.len;
        for (index, block) in x.chunks(BLOCK).enumerate() {
            if none_exceeds_nan || !any_from(block, exceeds) {
                continue;
            }
            for (offset, &value) in block.iter().enumerate() {
                let at = index * BLOCK + offset;
                let (key, column) = (
                    order_key(value),
                    columns.map_or(first + at as u32, |columns| columns[at]),
                );
                if key >= exceeds && column != NO_COLUMN {
                    self.candidates[end] = ((Reverse(key), column), value);
                    end += 1;
                }
            }
        }
        let found = &mut self.candidates[self.len..end];
        let kept = self.k.min(found.len());
        if kept < found.len() {
            found.select_nth_unstable_by_key(kept, |candidate| candidate.0);
        }
        found[..kept].sort_unstable_by_key(|candidate| candidate.0);
        &found[..kept]
    }

    /// Merges the `found` candidates after the best into them; the last is the worst.
    fn keep(&mut self, found: usize) {
        let all = &mut self.candidates[..self.len + found];
        self.len = self.k.min(all.len());
        if found > 0 && self.len == self.k {
            all.select_nth_unstable_by_key(self.k - 1, |candidate| candidate.0);
        }
    }
}

/// Returns whether a key is at least `least`.
fn any_from(block: &[f32], least: u32) -> bool {
    simd(
        #[inline(always)]
        || {
            block
                .iter()
                .fold(false, |any, &x| any | (order_key(x) >= least))
        },
    )
}

impl PlanBuilder {
    /// Records the k greatest elements of each row with their columns: greater first, NaN before
    /// all, ties by the lower column.
    ///
    /// # Shapes
    /// `x` [rows, cols] f32, `values` [rows, k] f32, `columns` [rows, k] u32.
    /// # Errors
    /// `Invalid` unless 1 ≤ k ≤ min(cols, 512) and the lengths fit; as [`PlanBuilder::launch`].
    pub fn top_k(
        &mut self,
        x: View,
        values: View,
        columns: View,
        rows: usize,
        k: usize,
    ) -> Result<()> {
        if rows == 0 && x.is_empty() {
            return Ok(());
        }
        let cols = x.len() / rows.max(1);
        let fits = x.fills(&[rows, cols]) && values.fills(&[rows, k]) && columns.fills(&[rows, k]);
        if k == 0 || k > MAX_K || k > cols || !fits {
            return Err(Error::invalid(format!(
                "top_k: x has {} elements in {rows} rows, k = {k}, values {} and columns {}; k of 1 to {} (at most {}) and outputs of rows × k needed",
                x.len(),
                values.len(),
                columns.len(),
                cols,
                MAX_K
            )));
        }
        self.whole(|plan| plan.top_k_chunks(x, [values, columns], [rows, cols, k]))
    }

    /// The launches of a top-k: over chunks, then over what they kept; the caller has checked all
    /// arguments.
    fn top_k_chunks(
        &mut self,
        x: View,
        [values, columns]: [View; 2],
        [rows, cols, k]: [usize; 3],
    ) -> Result<()> {
        let (mut source, mut candidates, mut width) = (x, None, cols);
        loop {
            let chunks = width.div_ceil(CHUNK);
            let (to_values, to_columns) = if chunks == 1 {
                (values, columns)
            } else {
                (
                    self.temp(DType::F32, rows * chunks * k),
                    self.temp(DType::U32, rows * chunks * k),
                )
            };
            let kernel = if candidates.is_none() {
                &TOP_K
            } else {
                &TOP_K_MERGE
            };
            let arguments = TopK {
                x: source,
                candidates,
                values: to_values,
                columns: to_columns,
                rows,
                cols: width,
                chunks,
                k,
            };
            self.launch(kernel, arguments, groups(rows * chunks))?;
            if chunks == 1 {
                return Ok(());
            }
            (source, candidates, width) = (to_values, Some(to_columns), chunks * k);
        }
    }
}
