//! Sum, product, max and min of i32 over the last axis, modulo 2³².

use std::sync::{Arc, LazyLock};

use super::{Reduction, loops, reduce_rows, row_body};
use crate::kernel::native::simd;
use crate::kernel::{Kernel, KernelBuilder, TypedKernel};
use crate::operation::built_in;

/// The reductions of i32.
pub(super) struct IntegerReductions {
    pub sum: TypedKernel<Reduction>,
    pub prod: TypedKernel<Reduction>,
    pub max: TypedKernel<Reduction>,
    pub min: TypedKernel<Reduction>,
}

pub(super) static REDUCTIONS: LazyLock<IntegerReductions> = LazyLock::new(|| IntegerReductions {
    sum: built_in(define("sum", "a + b", "0"), |call, rows| {
        reduce_rows(call, rows, |x| fold(x, 0, i32::wrapping_add))
    }),
    prod: built_in(define("prod", "a * b", "1"), |call, rows| {
        reduce_rows(call, rows, |x| fold(x, 1, i32::wrapping_mul))
    }),
    max: built_in(define("max", "max(a, b)", "-2147483648"), |call, rows| {
        reduce_rows(call, rows, |x| fold(x, i32::MIN, i32::max))
    }),
    min: built_in(define("min", "min(a, b)", "2147483647"), |call, rows| {
        reduce_rows(call, rows, |x| fold(x, i32::MAX, i32::min))
    }),
});

fn define(name: &str, combine: &str, neutral: &str) -> KernelBuilder<Reduction, i32> {
    let body = row_body(combine, &format!("real({neutral})"), "tree_combined");
    let builder = Reduction::define_on::<i32>(format!("{name}_i32")).body(format!(
        "alias real = i32;\nvar<workgroup> tectum_partial: array<real, 256>;\n{body}"
    ));
    builder.loops(
        |Reduction {
             rows,
             segment,
             segments,
             ..
         },
         groups| loops([rows, segment, segments], groups),
    )
}

/// Integers modulo 2³² may be combined in any order, so the compiler chooses the lanes.
#[inline(always)]
fn fold(x: &[i32], neutral: i32, combine: impl Fn(i32, i32) -> i32) -> i32 {
    simd(
        #[inline(always)]
        || x.iter().fold(neutral, |all, &x| combine(all, x)),
    )
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let IntegerReductions {
        sum,
        prod,
        max,
        min,
    } = &*REDUCTIONS;
    [sum, prod, max, min]
        .map(|kernel| Arc::clone(kernel))
        .to_vec()
}
