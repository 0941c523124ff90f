//! Sum, product, max, min and argmax over the last axis, and sum over the first, by fixed trees.
//!
//! One launch reduces each *segment* of a row to one value; the plan launches the same kernel again
//! over the segments' results until one is left. The split depends only on the shape, so the same
//! device gives the same bits every time.

pub mod cumsum;
mod integer;
pub mod moments;
pub mod normalize;
pub mod scan;
pub mod softmax;
pub mod top_k;

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{NoBindings, Slices};
use crate::kernel::math::Real;
use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::kernel::order::order_key;
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel, WORKGROUP, groups_for};
use crate::kernel_arguments;
use crate::operation::{built_in, groups};
use crate::plan::PlanBuilder;
use crate::view::View;

/// Elements of a row that one workgroup reduces.
pub const SEGMENT: usize = 4096;
/// Rows that one invocation adds up in a sum over the first axis.
pub const COLUMN_SEGMENT: usize = 64;
/// Independent accumulators of the native twins: four vectors of the widest SIMD.
const LANES: usize = 64;

kernel_arguments! {
    /// A reduction of each segment of the rows, or of the columns, to one element.
    pub(crate) struct Reduction { read x: T, write y: T; rows: usize, cols: usize, segment: usize, segments: usize }

    /// `y[row, s]` = column of the first greatest element of segment `s` of row `row`; a NaN counts
    /// as greater than all.
    pub(crate) struct Argmax { read x: f32, write y: u32; rows: usize, cols: usize, segment: usize, segments: usize }

    /// `y[row]` = the candidate of row `row` whose element of `x` is the first greatest.
    pub(crate) struct ArgmaxMerge { read x: f32, read candidates: u32, write y: u32; rows: usize, cols: usize, count: usize }
}

/// A workgroup for each segment of a row.
fn loops([rows, segment, segments]: [usize; 3], groups: u32) -> u64 {
    crate::kernel::loops_over(
        (rows as u64).saturating_mul(segments as u64),
        groups,
        (segment as u64).div_ceil(u64::from(WORKGROUP)) + 20,
    )
}

/// An invocation for each segment of a column.
fn column_loops(
    Reduction {
        cols,
        segment,
        segments,
        ..
    }: Reduction<NoBindings>,
    groups: u32,
) -> u64 {
    crate::kernel::loops_over(
        (segments as u64).saturating_mul(cols as u64),
        groups.saturating_mul(WORKGROUP),
        segment as u64 + 1,
    )
}

fn define<T: Real>(operation: &str, body: impl Into<String>) -> KernelBuilder<Reduction, T> {
    Reduction::define_on::<T>(format!("{operation}_{}", T::DTYPE.wgsl()))
        .prelude(Prelude::Tree)
        .body(body)
}

fn define_rows<T: Real>(operation: &str, body: impl Into<String>) -> KernelBuilder<Reduction, T> {
    define(operation, body).loops(
        |Reduction {
             rows,
             segment,
             segments,
             ..
         },
         groups| loops([rows, segment, segments], groups),
    )
}

/// Prepends a tree of the kernel's own where the prelude has none.
fn row_body(combine: &str, neutral: &str, tree: &str) -> String {
    let own = match tree {
        "tree_min" => TREE_MIN,
        "tree_combined" => TREE_COMBINED,
        _ => "",
    };
    let body = include_str!("reduce/reduce.wgsl")
        .replace("NEUTRAL", neutral)
        .replace("TREE", tree);
    format!("{own}fn combine(a: real, b: real) -> real {{\n    return {combine};\n}}\n{body}")
}

/// The minimum of all lanes is the negated maximum of their negatives: exact, and NaN stays NaN.
const TREE_MIN: &str = "fn tree_min(lane: u32, value: real) -> real {\n    return -tectum_tree_max(lane, -value);\n}\n";

/// As the trees of the prelude, by the kernel's own combination.
const TREE_COMBINED: &str = "
fn tree_combined(lane: u32, value: real) -> real {
    tectum_partial[lane] = value;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            tectum_partial[lane] = combine(tectum_partial[lane], tectum_partial[lane + half]);
        }
        workgroupBarrier();
    }
    let result = tectum_partial[0];
    workgroupBarrier();
    return result;
}
";

/// The reductions of one float type.
pub(crate) struct Reductions {
    /// `y[row, s]` = sum of segment `s` of row `row`.
    pub sum: TypedKernel<Reduction>,
    /// `y[row, s]` = greatest element of segment `s` of row `row`; NaN if there is one.
    pub max: TypedKernel<Reduction>,
    /// `y[row, s]` = least element of segment `s` of row `row`; NaN if there is one.
    pub min: TypedKernel<Reduction>,
    /// `y[row, s]` = product of segment `s` of row `row`.
    pub prod: TypedKernel<Reduction>,
    /// `y[s, col]` = sum of column `col` over the rows of segment `s`.
    pub sum_columns: TypedKernel<Reduction>,
}

static SINGLE: LazyLock<Reductions> = LazyLock::new(reductions::<f32>);
static DOUBLE: LazyLock<Reductions> = LazyLock::new(reductions::<f64>);

/// The reductions of f64, or of f32 for every other type.
pub(crate) fn of(dtype: DType) -> &'static Reductions {
    if dtype == DType::F64 {
        &DOUBLE
    } else {
        &SINGLE
    }
}

fn reductions<T: Real>() -> Reductions {
    Reductions {
        sum: built_in(
            define_rows::<T>("sum", row_body("a + b", "real(0.0)", "tectum_tree_sum")),
            |call, rows| reduce_rows(call, rows, sum),
        ),
        max: built_in(
            define_rows::<T>(
                "max",
                row_body("tectum_max(a, b)", "-tectum_inf()", "tectum_tree_max"),
            ),
            |call, rows| reduce_rows(call, rows, max),
        ),
        min: built_in(
            define_rows::<T>(
                "min",
                row_body("tectum_min(a, b)", "tectum_inf()", "tree_min"),
            ),
            |call, rows| reduce_rows(call, rows, min),
        ),
        prod: built_in(
            define_rows::<T>("prod", row_body("a * b", "real(1.0)", "tree_combined")),
            |call, rows| reduce_rows(call, rows, prod),
        ),
        sum_columns: built_in(
            define::<T>("sum_columns", include_str!("reduce/sum_columns.wgsl")).loops(column_loops),
            sum_columns,
        ),
    }
}

pub(crate) static ARGMAX: LazyLock<TypedKernel<Argmax>> = LazyLock::new(|| {
    let builder = Argmax::define("argmax_f32")
        .prelude(Prelude::Order)
        .body(include_str!("reduce/argmax_f32.wgsl"));
    let builder = builder.loops(
        |Argmax {
             rows,
             segment,
             segments,
             ..
         },
         groups| loops([rows, segment, segments], groups),
    );
    built_in(
        builder,
        |call,
         Argmax {
             x,
             y,
             rows,
             cols,
             segment,
             segments,
         }| {
            for_each_chunk(
                &mut y[..rows * segments],
                1,
                call.threads_for(x.len()),
                |item, y| {
                    let (row, start) = (item / segments, item % segments * segment);
                    let part = &x[row * cols..][start..(start + segment).min(cols)];
                    y[0] = (start + first_greatest(part)) as u32;
                },
            );
        },
    )
});

pub(crate) static ARGMAX_MERGE: LazyLock<TypedKernel<ArgmaxMerge>> = LazyLock::new(|| {
    let builder = ArgmaxMerge::define("argmax_merge_f32")
        .prelude(Prelude::Order)
        .body(include_str!("reduce/argmax_merge_f32.wgsl"));
    let builder = builder.loops(|ArgmaxMerge { rows, count, .. }, groups| {
        crate::kernel::loops_over(
            rows as u64,
            groups.saturating_mul(WORKGROUP),
            count as u64 + 1,
        )
    });
    built_in(
        builder,
        |_,
         ArgmaxMerge {
             x,
             candidates,
             y,
             rows,
             cols,
             count,
         }| {
            for (row, y) in y[..rows].iter_mut().enumerate() {
                let x = &x[row * cols..];
                let candidates = &candidates[row * count..][..count];
                *y = candidates
                    .iter()
                    .copied()
                    .fold(candidates[0], |best, candidate| {
                        let (b, c) = (
                            order_key(x[best as usize]),
                            order_key(x[candidate as usize]),
                        );
                        if c > b || (c == b && candidate < best) {
                            candidate
                        } else {
                            best
                        }
                    });
            }
        },
    )
});

/// The kernels of this family.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let own = |family: &Reductions| {
        [
            &family.sum,
            &family.max,
            &family.min,
            &family.prod,
            &family.sum_columns,
        ]
        .map(|kernel| Arc::clone(kernel))
    };
    let own = own(&SINGLE)
        .into_iter()
        .chain([ARGMAX.clone(), ARGMAX_MERGE.clone()])
        .chain(own(&DOUBLE));
    let others = [
        integer::kernels,
        softmax::kernels,
        moments::kernels,
        normalize::kernels,
        scan::kernels,
        cumsum::kernels,
        top_k::kernels,
    ];
    own.chain(others.into_iter().flat_map(|kernels| kernels()))
        .collect()
}

fn reduce_rows<T: Element>(
    call: &NativeCall<'_>,
    arguments: Reduction<Slices<'_, T>>,
    reduce: fn(&[T]) -> T,
) {
    let Reduction {
        x,
        y,
        rows,
        cols,
        segment,
        segments,
    } = arguments;
    let items = rows * segments;
    let threads = call.threads_for(x.len());
    let chunk = items.div_ceil(threads * 4).max(1);
    for_each_chunk(&mut y[..items], chunk, threads, |index, y| {
        for (offset, y) in y.iter_mut().enumerate() {
            let item = index * chunk + offset;
            let (row, start) = (item / segments, item % segments * segment);
            *y = reduce(&x[row * cols..][start..(start + segment).min(cols)]);
        }
    });
}

/// Sum by 64 interleaved accumulators, then a tree over them.
pub(crate) fn sum<T: Real>(x: &[T]) -> T {
    fold_lanes(x, T::ZERO, |a, b| a + b, |a, b| a + b)
}

/// Product by 64 interleaved accumulators, then a tree over them.
pub(crate) fn prod<T: Real>(x: &[T]) -> T {
    fold_lanes(x, T::from_count(1), |a, b| a * b, |a, b| a * b)
}

/// Greatest element; NaN if there is one; −∞ for none.
pub(crate) fn max<T: Real>(x: &[T]) -> T {
    fold_lanes(x, T::NEG_INFINITY, T::max, T::max)
}

/// Least element; NaN if there is one; +∞ for none.
pub(crate) fn min<T: Real>(x: &[T]) -> T {
    fold_lanes(x, T::INFINITY, T::min, T::min)
}

/// At the start of a cache line: a vector of accumulators on the stack that crosses two costs a
/// quarter of the speed.
#[repr(align(64))]
pub(crate) struct CacheAligned<T>(pub(crate) T);

/// Steps 64 interleaved accumulators by `step(accumulator, element)`, then merges them by a tree.
#[inline(always)]
pub(crate) fn fold_lanes<T: Real>(
    x: &[T],
    zero: T,
    step: impl Fn(T, T) -> T + Copy,
    merge: impl Fn(T, T) -> T,
) -> T {
    simd(
        #[inline(always)]
        || {
            let mut lanes = CacheAligned([zero; LANES]);
            let (blocks, rest) = x.as_chunks::<LANES>();
            for block in blocks {
                lanes.0 = each_lane(lanes.0, |lane, folded| step(folded, block[lane]));
            }
            for (folded, &x) in lanes.0.iter_mut().zip(rest) {
                *folded = step(*folded, x);
            }
            fold_tree(lanes.0, merge)
        },
    )
}

/// Steps every accumulator, in registers: through `&mut` they would go to the stack and back.
#[inline(always)]
pub(crate) fn each_lane<T: Real, const N: usize>(
    lanes: [T; N],
    f: impl Fn(usize, T) -> T,
) -> [T; N] {
    let mut next = [T::ZERO; N];
    for lane in 0..N {
        next[lane] = f(lane, lanes[lane]);
    }
    next
}

/// Folds a power of two of lanes by halves.
#[inline(always)]
pub(crate) fn fold_tree<T: Real, const N: usize>(mut lanes: [T; N], f: impl Fn(T, T) -> T) -> T {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = f(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

/// The greatest key by lanes, then the first block that holds it, then its place there.
fn first_greatest(x: &[f32]) -> usize {
    let keys = |block: &[f32], lanes: &mut [u32; LANES]| {
        lanes
            .iter_mut()
            .zip(block)
            .for_each(|(lane, &x)| *lane = (*lane).max(order_key(x)));
    };
    let greatest = simd(
        #[inline(always)]
        || {
            let mut lanes = [0; LANES];
            x.chunks(LANES).for_each(|block| keys(block, &mut lanes));
            lanes.into_iter().fold(0, u32::max)
        },
    );
    let holds = |block: &[f32]| {
        simd(
            #[inline(always)]
            || {
                block
                    .iter()
                    .fold(false, |held, &x| held | (order_key(x) == greatest))
            },
        )
    };
    let block = x.chunks(LANES).position(holds).unwrap_or(0) * LANES;
    block
        + x[block..]
            .iter()
            .position(|&x| order_key(x) == greatest)
            .unwrap_or(0)
}

fn sum_columns<T: Real>(
    call: &NativeCall<'_>,
    Reduction {
        x,
        y,
        rows,
        cols,
        segment,
        segments,
    }: Reduction<Slices<'_, T>>,
) {
    for_each_chunk(
        &mut y[..segments * cols],
        cols,
        call.threads_for(rows * cols),
        |s, y| {
            let part = &x[s * segment * cols..rows.min((s + 1) * segment) * cols];
            y.fill(T::ZERO);
            simd(
                #[inline(always)]
                || {
                    for row in part.chunks_exact(cols) {
                        for (y, &x) in y.iter_mut().zip(row) {
                            *y += x;
                        }
                    }
                },
            );
        },
    );
}

impl PlanBuilder {
    /// Records `y[row] = Σ x[row, ..]`. A row of no elements sums to 0.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` \[rows\], both f32, f64 or i32.
    /// # Numerics
    /// Integers wrap modulo 2³².
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn sum(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        let kernel = if x.dtype() == DType::I32 {
            &integer::REDUCTIONS.sum
        } else {
            &of(x.dtype()).sum
        };
        self.reduce(("sum", kernel), [x, y], [rows, cols], (0.0, 0))
    }

    /// Records `y[row] = Π x[row, ..]`. The product of a row of no elements is 1.
    ///
    /// # Shapes
    /// As [`PlanBuilder::sum`].
    /// # Numerics
    /// By a fixed tree: a partial product may overflow where the product in the order of the
    /// elements does not. Integers wrap modulo 2³².
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn prod(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        let kernel = if x.dtype() == DType::I32 {
            &integer::REDUCTIONS.prod
        } else {
            &of(x.dtype()).prod
        };
        self.reduce(("prod", kernel), [x, y], [rows, cols], (1.0, 1))
    }

    /// Records `y[row] = max x[row, ..]`, NaN if the row holds one. A row of no elements gives −∞,
    /// or the minimum of the integer type.
    ///
    /// # Shapes
    /// As [`PlanBuilder::sum`].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn max(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        let kernel = if x.dtype() == DType::I32 {
            &integer::REDUCTIONS.max
        } else {
            &of(x.dtype()).max
        };
        self.reduce(
            ("max", kernel),
            [x, y],
            [rows, cols],
            (f64::NEG_INFINITY, i32::MIN),
        )
    }

    /// Records `y[row] = min x[row, ..]`, NaN if the row holds one. A row of no elements gives +∞,
    /// or the greatest integer.
    ///
    /// # Shapes
    /// As [`PlanBuilder::sum`].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn min(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        let kernel = if x.dtype() == DType::I32 {
            &integer::REDUCTIONS.min
        } else {
            &of(x.dtype()).min
        };
        self.reduce(
            ("min", kernel),
            [x, y],
            [rows, cols],
            (f64::INFINITY, i32::MAX),
        )
    }

    /// Reduces each row; the last argument is the result for rows of no elements, on floats and on
    /// integers.
    fn reduce(
        &mut self,
        (op, kernel): (&str, &TypedKernel<Reduction>),
        [x, y]: [View; 2],
        [rows, cols]: [usize; 2],
        (float, integer): (f64, i32),
    ) -> Result<()> {
        check(op, x, y, rows, cols)?;
        match (cols, y.dtype()) {
            (0, DType::I32) => self.fill(y, integer as u32),
            (0, _) => self.fill_number(y, float),
            _ => self.whole(|plan| plan.reduce_rows(kernel, x, y, rows, cols)),
        }
    }

    pub(crate) fn reduce_rows(
        &mut self,
        kernel: &TypedKernel<Reduction>,
        x: View,
        y: View,
        rows: usize,
        cols: usize,
    ) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let segments = cols.div_ceil(SEGMENT);
        let target = if segments == 1 {
            y
        } else {
            self.temp(x.dtype(), rows * segments)
        };
        self.launch(
            kernel,
            Reduction {
                x,
                y: target,
                rows,
                cols,
                segment: SEGMENT.min(cols),
                segments,
            },
            groups(rows * segments),
        )?;
        if segments == 1 {
            Ok(())
        } else {
            self.reduce_rows(kernel, target, y, rows, segments)
        }
    }

    /// Records `y[col] = Σ x[.., col]`.
    ///
    /// # Shapes
    /// `x` [rows, cols], `y` \[cols\].
    /// # Errors
    /// As [`PlanBuilder::sum`].
    pub fn sum_columns(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("sum_columns", x, y, cols, rows)?;
        if rows == 0 {
            return self.fill_number(y, 0.0);
        }
        if cols == 0 {
            return Ok(());
        }
        let segments = rows.div_ceil(COLUMN_SEGMENT);
        self.whole(|plan| {
            let target = if segments == 1 {
                y
            } else {
                plan.temp(x.dtype(), segments * cols)
            };
            let arguments = Reduction {
                x,
                y: target,
                rows,
                cols,
                segment: COLUMN_SEGMENT.min(rows),
                segments,
            };
            plan.launch(
                &of(x.dtype()).sum_columns,
                arguments,
                groups_for(segments * cols),
            )?;
            if segments == 1 {
                Ok(())
            } else {
                plan.sum_columns(target, y, segments, cols)
            }
        })
    }

    /// Records `y[row]` = the column of the first greatest element of the row; a NaN counts as
    /// greater than all.
    ///
    /// # Shapes
    /// `x` [rows, cols] f32, `y` \[rows\] u32.
    /// # Errors
    /// As [`PlanBuilder::sum`]; `Invalid` if `cols` is 0 and `rows` is not.
    pub fn argmax(&mut self, x: View, y: View, rows: usize, cols: usize) -> Result<()> {
        check("argmax", x, y, rows, cols)?;
        if rows == 0 {
            return Ok(());
        }
        if cols == 0 {
            return Err(Error::invalid("argmax: an empty row has no maximum"));
        }
        let segments = cols.div_ceil(SEGMENT);
        self.whole(|plan| {
            let target = if segments == 1 {
                y
            } else {
                plan.temp(DType::U32, rows * segments)
            };
            plan.launch(
                &ARGMAX,
                Argmax {
                    x,
                    y: target,
                    rows,
                    cols,
                    segment: SEGMENT.min(cols),
                    segments,
                },
                groups(rows * segments),
            )?;
            if segments > 1 {
                plan.launch(
                    &ARGMAX_MERGE,
                    ArgmaxMerge {
                        x,
                        candidates: target,
                        y,
                        rows,
                        cols,
                        count: segments,
                    },
                    groups_for(rows),
                )?;
            }
            Ok(())
        })
    }
}

fn check(op: &str, x: View, y: View, kept: usize, reduced: usize) -> Result<()> {
    if x.fills(&[kept, reduced]) && y.len() == kept {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{op}: x has {} and y {} elements, {kept} × {reduced} and {kept} needed",
        x.len(),
        y.len()
    )))
}
