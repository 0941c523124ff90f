//! The k greatest elements of each row with their columns, exact and in one order on every device.
//!
//! Order: greater first, NaN before all, ties by the lower column. A chunk of 1,024 candidates is sorted by one
//! workgroup, which keeps the first k; the plan launches the merge over the kept candidates until one chunk is left.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use super::native::NativeCall;
use super::order::order_key;
use super::{Kernel, Prelude, built_in};
use crate::dtype::DType;

/// Candidates that one workgroup sorts.
pub const CHUNK: usize = 1024;
/// The greatest k: half a chunk, so that every round at least halves the candidates.
pub const MAX_K: usize = CHUNK / 2;
/// The column of a place without an element.
pub const NO_COLUMN: u32 = u32::MAX;

fn define(name: &'static str, candidate_columns: bool, native: super::NativeFn) -> Arc<Kernel> {
    let mut builder = Kernel::define(name).prelude(Prelude::Order).read("x", DType::F32);
    let column = if candidate_columns {
        builder = builder.read("candidates", DType::U32);
        "candidates[row * params.cols + i]"
    } else {
        "i"
    };
    let body = include_str!("../../kernels/top_k_f32.wgsl").replace("CANDIDATE_COLUMN", column);
    let builder = builder
        .write("values", DType::F32)
        .write("columns", DType::U32)
        .param("rows", DType::U32)
        .param("cols", DType::U32)
        .param("chunks", DType::U32)
        .param("k", DType::U32)
        .body(body);
    built_in(builder, native)
}

/// The first round: candidates are the row's own columns.
pub static TOP_K: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    define("top_k_f32", false, |call| {
        select(call, call.read::<f32>(0), None, call.write::<f32>(1), call.write::<u32>(2));
    })
});

/// A later round: candidates carry their columns.
pub static TOP_K_MERGE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    define("top_k_merge_f32", true, |call| {
        select(call, call.read::<f32>(0), Some(call.read::<u32>(1)), call.write::<f32>(2), call.write::<u32>(3));
    })
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![TOP_K.clone(), TOP_K_MERGE.clone()]
}

/// Key and column of a candidate; sorts before another when it is to be kept first.
type Candidate = (Reverse<u32>, u32);

fn select(call: &NativeCall<'_>, x: &[f32], candidates: Option<&[u32]>, values: &mut [f32], columns: &mut [u32]) {
    let (rows, cols, chunks, k) = (call.size(0), call.size(1), call.size(2), call.size(3));
    let mut sorted: [(Candidate, f32); CHUNK] = [((Reverse(0), NO_COLUMN), f32::NEG_INFINITY); CHUNK];
    for item in 0..rows * chunks {
        let (row, start) = (item / chunks, item % chunks * CHUNK);
        let count = CHUNK.min(cols - start);
        for (offset, slot) in sorted[..count].iter_mut().enumerate() {
            let i = start + offset;
            let value = x[row * cols + i];
            let column = candidates.map_or(i as u32, |c| c[row * cols + i]);
            let key = if column == NO_COLUMN { 0 } else { order_key(value) };
            *slot = ((Reverse(key), column), value);
        }
        let kept = k.min(count);
        if kept < count {
            sorted[..count].select_nth_unstable_by_key(kept, |entry| entry.0);
        }
        sorted[..kept].sort_unstable_by_key(|entry| entry.0);
        for place in 0..k {
            let ((_, column), value) = if place < kept { sorted[place] } else { ((Reverse(0), NO_COLUMN), f32::NEG_INFINITY) };
            values[item * k + place] = value;
            columns[item * k + place] = column;
        }
    }
}
