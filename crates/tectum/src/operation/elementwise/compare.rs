//! Comparisons, predicates on floats, and the choice between two values by a condition. Conditions
//! are i32 words: 0 or 1 as results, any nonzero word as operands.
//!
//! Device code compares floats by their bits: a driver may take NaN for impossible and fold
//! `x != x` to false, and may flush subnormal numbers.

use std::sync::{Arc, LazyLock};

use super::cast::each;
use super::{Arity, binary, check_period, elementwise_body};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{BLOCK, NativeCall, for_each_block, simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel, groups_for};
use crate::kernel_arguments;
use crate::operation::{built_in, same_len};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y = x0 ∘ x1` as 0 or 1; `period` is the length of `x1`, each element of which counts for
    /// `run` elements.
    pub(crate) struct Compare { read x0: T, read x1: T, write y: i32; n: usize, period: usize, run: usize }

    /// `y = p(x0)` as 0 or 1.
    pub(crate) struct Test { read x0: T, write y: i32; n: usize }

    /// `y` is `a` where the condition is not 0, else `b`; the periods are the lengths of `a` and
    /// `b`.
    pub(crate) struct Select { read condition: i32, read a: u32, read b: u32, write y: u32; n: usize, a_period: usize, b_period: usize }
}

macro_rules! comparisons {
    ($($name:ident holds $wgsl:literal native $operator:tt;)*) => {
        /// The names of the comparisons.
        pub const COMPARISONS: &[&str] = &[$(stringify!($name)),*];

        fn comparisons<T: Element + PartialOrd>() -> Vec<TypedKernel<Compare>> {
            vec![$(built_in(define_comparison::<T>(stringify!($name), $wgsl), |call, Compare { x0, x1, y, n, period, run }| {
                binary(call, (x0, x1, y), [n, period, run], #[inline(always)] |a: T, b: T| i32::from(a $operator b));
            })),*]
        }
    };
}

// On keys with a total order: integers as they are, floats by their bits.
comparisons! {
    equal holds "is_ordered && p == q" native ==;
    less holds "is_ordered && p < q" native <;
    less_equal holds "is_ordered && p <= q" native <=;
    greater holds "is_ordered && p > q" native >;
    greater_equal holds "is_ordered && p >= q" native >=;
    not_equal holds "!is_ordered || p != q" native !=;
}

/// An integer that orders as the float does, the same for both zeros.
const FLOAT_KEY: &str = "
fn key(x: real) -> TectumInt {
    return select(tectum_order_bits(x), TectumInt(0), tectum_magnitude(x) == TectumBits(0));
}
";

fn define_comparison<T: Element>(name: &str, condition: &str) -> KernelBuilder<Compare, T> {
    let builder = Compare::define_on::<T>(format!("{name}_{}", T::DTYPE.wgsl()));
    let holds = |key: &str| {
        format!(
            "fn holds(is_ordered: bool, p: {key}, q: {key}) -> i32 {{\n    return select(0, 1, {condition});\n}}\n"
        )
    };
    if matches!(T::DTYPE, DType::F32 | DType::F64) {
        let body = elementwise_body(
            Arity::Binary,
            "holds(!(tectum_is_nan(a) || tectum_is_nan(b)), key(a), key(b))",
        );
        return builder
            .prelude(Prelude::Math)
            .body(format!("{FLOAT_KEY}{}{body}", holds("TectumInt")));
    }
    builder.body(format!(
        "{}{}",
        holds(T::DTYPE.wgsl()),
        elementwise_body(Arity::Binary, "holds(true, a, b)")
    ))
}

/// The names of the predicates.
pub const PREDICATES: &[&str] = &["is_nan", "is_inf"];

macro_rules! predicates {
    ($real:ident) => {
        [
            built_in(
                define_predicate::<$real>("is_nan", "tectum_magnitude(a) > TECTUM_INF"),
                |call, Test { x0, y, n }| {
                    each(call, (x0, y, n), |a: $real| i32::from(a.is_nan()));
                },
            ),
            built_in(
                define_predicate::<$real>("is_inf", "tectum_magnitude(a) == TECTUM_INF"),
                |call, Test { x0, y, n }| {
                    each(call, (x0, y, n), |a: $real| i32::from(a.is_infinite()));
                },
            ),
        ]
    };
}

fn define_predicate<T: Element>(name: &str, condition: &str) -> KernelBuilder<Test, T> {
    let body = elementwise_body(Arity::Unary, &format!("select(0, 1, {condition})"));
    Test::define_on::<T>(format!("{name}_{}", T::DTYPE.wgsl()))
        .prelude(Prelude::Math)
        .body(body)
}

/// The comparisons of each type.
static COMPARE: LazyLock<[(DType, Vec<TypedKernel<Compare>>); 4]> = LazyLock::new(|| {
    [
        (DType::F32, comparisons::<f32>()),
        (DType::I32, comparisons::<i32>()),
        (DType::U32, comparisons::<u32>()),
        (DType::F64, comparisons::<f64>()),
    ]
});

/// The predicates on f32, then those on f64.
static TEST: LazyLock<[[TypedKernel<Test>; 2]; 2]> =
    LazyLock::new(|| [predicates!(f32), predicates!(f64)]);

static SELECT: LazyLock<TypedKernel<Select>> = LazyLock::new(|| {
    built_in(
        Select::define("select_u32").body(include_str!("select_u32.wgsl")),
        select,
    )
});

fn select(call: &NativeCall<'_>, arguments: Select<Slices<'_>>) {
    let Select {
        condition,
        a,
        b,
        y,
        n,
        a_period,
        b_period,
    } = arguments;
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        let mut done = 0;
        while done < y.len() {
            // A run ends where a row begins again; a scalar has no rows.
            let place = index * BLOCK + done;
            let [a_phase, b_phase] = [a_period, b_period].map(|period| place % period);
            let until = |period: usize, phase: usize| {
                if period == 1 {
                    usize::MAX
                } else {
                    period - phase
                }
            };
            let run = (y.len() - done)
                .min(until(a_period, a_phase))
                .min(until(b_period, b_phase));
            let (y, condition) = (&mut y[done..][..run], &condition[place..][..run]);
            let rows =
                [(a, a_period, a_phase), (b, b_period, b_phase)].map(|(x, period, phase)| {
                    if period == 1 {
                        &x[..1]
                    } else {
                        &x[phase..][..run]
                    }
                });
            simd(
                #[inline(always)]
                || match rows {
                    [[a], [b]] => y
                        .iter_mut()
                        .zip(condition)
                        .for_each(|(y, &c)| *y = if c != 0 { *a } else { *b }),
                    [[a], b] => y
                        .iter_mut()
                        .zip(condition)
                        .zip(b)
                        .for_each(|((y, &c), &b)| *y = if c != 0 { *a } else { b }),
                    [a, [b]] => y
                        .iter_mut()
                        .zip(condition)
                        .zip(a)
                        .for_each(|((y, &c), &a)| *y = if c != 0 { a } else { *b }),
                    [a, b] => y
                        .iter_mut()
                        .zip(condition)
                        .zip(a.iter().zip(b))
                        .for_each(|((y, &c), (&a, &b))| *y = if c != 0 { a } else { b }),
                },
            );
            done += run;
        }
    });
}

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let compare = COMPARE
        .iter()
        .flat_map(|(_, kernels)| kernels.iter().map(|kernel| Arc::clone(kernel)));
    let test = TEST.iter().flatten().map(|kernel| Arc::clone(kernel));
    compare.chain(test).chain([Arc::clone(&SELECT)]).collect()
}

impl PlanBuilder {
    /// Records `y[i] = 1` where `a[i] ∘ b[i mod len(b)]` holds, else 0, for the comparison ∘ of a
    /// name (`equal`, `less`, `less_equal`, `greater`, `greater_equal`, `not_equal`): `b` may be a
    /// scalar or a row that repeats.
    ///
    /// # Shapes
    /// `a` \[n\] f32, f64, i32 or u32, `b` of its type, `y` \[n\] i32.
    /// # Numerics
    /// Exact. Both zeros are equal; with NaN only `not_equal` holds.
    /// # Errors
    /// `Invalid` for another name, `a` and `y` of different lengths, or a `b` whose length does not
    /// divide theirs; as [`PlanBuilder::launch`].
    pub fn compare(&mut self, comparison: &str, a: View, b: View, y: View) -> Result<()> {
        let index = COMPARISONS.iter().position(|name| *name == comparison);
        let kernels = COMPARE
            .iter()
            .find(|(dtype, _)| *dtype == a.dtype())
            .map(|(_, kernels)| kernels);
        let Some(kernel) = index.zip(kernels).map(|(index, kernels)| &kernels[index]) else {
            return Err(Error::invalid(format!(
                "{comparison}: no such comparison; there are {}",
                COMPARISONS.join(", ")
            )));
        };
        same_len(comparison, a, y)?;
        if y.is_empty() {
            return Ok(());
        }
        check_period(comparison, a, b.len(), 1)?;
        self.launch(
            kernel,
            Compare {
                x0: a,
                x1: b,
                y,
                n: y.len(),
                period: b.len(),
                run: 1,
            },
            groups_for(y.len()),
        )
    }

    /// Records `y[i] = 1` where a predicate of a name (`is_nan`, `is_inf`) holds for `x[i]`, else 0.
    ///
    /// # Shapes
    /// `x` \[n\] f32 or f64, `y` \[n\] i32.
    /// # Errors
    /// `Invalid` for another name or lengths that differ; as [`PlanBuilder::launch`].
    pub fn predicate(&mut self, predicate: &str, x: View, y: View) -> Result<()> {
        let Some(index) = PREDICATES.iter().position(|name| *name == predicate) else {
            return Err(Error::invalid(format!(
                "{predicate}: no such predicate; there are {}",
                PREDICATES.join(", ")
            )));
        };
        same_len(predicate, x, y)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            &TEST[usize::from(x.dtype() == DType::F64)][index],
            Test {
                x0: x,
                y,
                n: y.len(),
            },
            groups_for(y.len()),
        )
    }

    /// Records `y[i] = a[i mod len(a)]` where `condition[i]` is not 0, else `b[i mod len(b)]`:
    /// either may be a scalar or a row that repeats. Words of any 32-bit type, copied bit by bit.
    ///
    /// # Shapes
    /// `condition` \[n\] i32, `y` \[n\], the lengths of `a` and `b` divide n.
    /// # Errors
    /// `Invalid` if the lengths do not fit or `a`, `b` and `y` are not of one type; as
    /// [`PlanBuilder::launch`].
    pub fn select(&mut self, condition: View, a: View, b: View, y: View) -> Result<()> {
        same_len("select", condition, y)?;
        if a.dtype() != y.dtype() || b.dtype() != y.dtype() || y.dtype() == DType::F64 {
            let types = [a, b, y].map(|view| view.dtype().wgsl());
            return Err(Error::invalid(format!(
                "select: a, b and y are {}; one type of 32 bits needed",
                types.join(", ")
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        check_period("select", y, a.len(), 1)?;
        check_period("select", y, b.len(), 1)?;
        let [a, b, y] = [a, b, y].map(|view| view.reinterpret(DType::U32));
        self.launch(
            &SELECT,
            Select {
                condition,
                a,
                b,
                y,
                n: y.len(),
                a_period: a.len(),
                b_period: b.len(),
            },
            groups_for(y.len()),
        )
    }
}
