//! The elementwise families, generated from one op table: WGSL body, native twin, float64 reference
//! and test domain.

pub mod cast;
pub mod compare;
pub mod integer;
pub mod optimizer;
pub mod transfer;

use std::sync::{Arc, LazyLock};

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{KernelArguments, NoBindings, Slices};
use crate::kernel::math::Real;
use crate::kernel::native::{BLOCK, NativeCall, for_each_block, for_each_chunk, simd};
use crate::kernel::{Kernel, KernelBuilder, Prelude, TypedKernel, groups_for, math, reference};
use crate::kernel_arguments;
use crate::operation::{built_in, same_len};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y = f(x0)`
    pub(crate) struct Unary { read x0: T, write y: T; n: usize }

    /// `y = f(x0, x1)`; `period` is the length of `x1`, each element of which counts for `run`
    /// elements.
    pub(crate) struct Binary { read x0: T, read x1: T, write y: T; n: usize, period: usize, run: usize }
}

/// How many operands an [`Op`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// `y = f(a)`
    Unary,
    /// `y = f(a, b)`, where `b` may repeat: element `i` of `a` meets element `i mod len(b)` of `b`.
    Binary,
}

/// A row of the op table.
pub struct Op {
    /// The operation's name; its kernels are `{name}_f32` and `{name}_f64`.
    pub name: &'static str,
    /// Number of operands.
    pub arity: Arity,
    /// The WGSL expression of `a` (and `b`).
    pub wgsl: &'static str,
    /// The float64 reference; unary operations ignore `b`.
    pub reference: fn(a: f64, b: f64) -> f64,
    /// The range from which tests draw `a` and `b`.
    pub domain: (f32, f32),
    /// Allowed error relative to the result's magnitude, in units of 2⁻²³.
    pub ulp: f64,
    /// Its kernels on f32 and on f64.
    define: fn(&Op) -> [OpKernel; 2],
}

/// The kernel of an operation by its arity.
pub(crate) enum OpKernel {
    Unary(TypedKernel<Unary>),
    Binary(TypedKernel<Binary>),
}

impl OpKernel {
    fn kernel(&self) -> &Arc<Kernel> {
        match self {
            OpKernel::Unary(kernel) => kernel,
            OpKernel::Binary(kernel) => kernel,
        }
    }
}

macro_rules! op_table {
    ($($arity:ident $name:ident($a:ident $(, $b:ident)?) wgsl $wgsl:literal native $native:expr, $(unless $near:expr => $full:expr,)? reference $reference:expr, from $low:literal to $high:literal, ulp $ulp:literal;)*) => {
        /// The op table. `unless` gives the condition on arguments for which `native` is correct,
        /// and the function that is correct for all.
        pub static OPS: &[Op] = &[$({
            fn single(call: &NativeCall<'_>, arguments: $arity<Slices<'_, f32>>) {
                op_table!(@run $arity, call, arguments, #[inline(always)] |$a: f32 $(, $b: f32)?| -> f32 { $native } $(, #[inline(always)] |$a: f32| $near, |$a: f32| $full)?);
            }
            fn double(call: &NativeCall<'_>, arguments: $arity<Slices<'_, f64>>) {
                #[allow(unused_imports, reason = "the rows name `math`, which is that of the type")]
                use crate::kernel::math::double as math;
                op_table!(@run $arity, call, arguments, #[inline(always)] |$a: f64 $(, $b: f64)?| -> f64 { $native } $(, #[inline(always)] |$a: f64| $near, |$a: f64| $full)?);
            }
            fn define(op: &Op) -> [OpKernel; 2] {
                let single = built_in(with_body(op, $arity::define_on::<f32>(format!("{}_f32", op.name))), single);
                let double = built_in(with_body(op, $arity::define_on::<f64>(format!("{}_f64", op.name))), double);
                [OpKernel::$arity(single), OpKernel::$arity(double)]
            }
            fn reference(first: f64, second: f64) -> f64 {
                let $a = first;
                $(let $b = second;)?
                let _ = second;
                $reference
            }
            Op { name: stringify!($name), arity: Arity::$arity, wgsl: $wgsl, reference, domain: ($low, $high), ulp: $ulp, define }
        }),*];
    };
    (@run Unary, $call:ident, $arguments:ident, $f:expr) => { unary($call, $arguments, $f, |_, _| {}) };
    (@run Unary, $call:ident, $arguments:ident, $f:expr, $near:expr, $full:expr) => { unary($call, $arguments, $f, |x, y| repair(x, y, $near, $full)) };
    (@run Binary, $call:ident, $arguments:ident, $f:expr) => {
        binary($call, ($arguments.x0, $arguments.x1, $arguments.y), [$arguments.n, $arguments.period, $arguments.run], $f)
    };
}

// Each bound is the one stated for the function in `math.rs`, or what Vulkan allows for a division
// or square root (2.5 ulp), never the result of a run.
op_table! {
    Binary add(a, b) wgsl "a + b" native a + b, reference a + b, from -100.0 to 100.0, ulp 1.0;
    Binary sub(a, b) wgsl "a - b" native a - b, reference a - b, from -100.0 to 100.0, ulp 1.0;
    Binary mul(a, b) wgsl "a * b" native a * b, reference a * b, from -100.0 to 100.0, ulp 1.0;
    Binary div(a, b) wgsl "a / b" native a / b, reference a / b, from -100.0 to 100.0, ulp 3.0;
    Binary min(a, b) wgsl "tectum_min(a, b)" native math::min(a, b), reference nan_aware(a, b, f64::min), from -100.0 to 100.0, ulp 0.0;
    Binary max(a, b) wgsl "tectum_max(a, b)" native math::max(a, b), reference nan_aware(a, b, f64::max), from -100.0 to 100.0, ulp 0.0;
    Binary tanh_grad(y, dy) wgsl "b * (1.0 - a * a)" native dy * (1.0 - y * y), reference dy * (1.0 - y * y), from -0.75 to 0.75, ulp 4.0;
    Binary sigmoid_grad(y, dy) wgsl "b * (a * (1.0 - a))" native dy * (y * (1.0 - y)), reference dy * (y * (1.0 - y)), from 0.0 to 0.75, ulp 4.0;
    Binary relu_grad(y, dy) wgsl "select(0.0, b, a > 0.0)" native if y > 0.0 { dy } else { 0.0 }, reference if y > 0.0 { dy } else { 0.0 }, from -100.0 to 100.0, ulp 0.0;
    Binary pow(a, b) wgsl "tectum_pow(a, b)" native math::pow(a, b), reference a.powf(b), from 0.0 to 20.0, ulp 4.0;
    Binary fmod(a, b) wgsl "tectum_fmod(a, b)" native math::fmod(a, b), reference a % b, from -100.0 to 100.0, ulp 0.0;
    Binary mod(a, b) wgsl "tectum_mod(a, b)" native math::modulo(a, b), reference reference::modulo(a, b), from -100.0 to 100.0, ulp 1.0;
    Unary abs(a) wgsl "abs(a)" native a.abs(), reference a.abs(), from -100.0 to 100.0, ulp 0.0;
    Unary neg(a) wgsl "-a" native -a, reference -a, from -100.0 to 100.0, ulp 0.0;
    Unary sqrt(a) wgsl "sqrt(a)" native a.sqrt(), reference a.sqrt(), from 0.0 to 100.0, ulp 3.0;
    Unary exp(a) wgsl "tectum_exp(a)" native math::exp(a), reference a.exp(), from -100.0 to 90.0, ulp 2.0;
    Unary log(a) wgsl "tectum_log(a)" native math::log(a), reference a.ln(), from 0.0 to 100.0, ulp 2.0;
    Unary sigmoid(a) wgsl "tectum_sigmoid(a)" native math::sigmoid(a), reference 1.0 / (1.0 + (-a).exp()), from -100.0 to 100.0, ulp 4.0;
    Unary tanh(a) wgsl "tectum_tanh(a)" native math::tanh(a), reference a.tanh(), from -12.0 to 12.0, ulp 4.0;
    Unary relu(a) wgsl "tectum_relu(a)" native math::relu(a), reference if a < 0.0 { 0.0 } else { a }, from -100.0 to 100.0, ulp 0.0;
    Unary gelu(a) wgsl "tectum_gelu(a)" native math::gelu(a), reference reference::gelu(a), from -12.0 to 12.0, ulp 2.0;
    Unary gelu_erf(a) wgsl "tectum_gelu_erf(a)" native math::gelu_erf(a), reference reference::gelu_erf(a), from -15.0 to 15.0, ulp 2.0;
    Unary silu(a) wgsl "tectum_silu(a)" native math::silu(a), reference reference::silu(a), from -110.0 to 110.0, ulp 2.0;
    Unary elu(a) wgsl "tectum_elu(a)" native math::elu(a), reference reference::elu(a), from -100.0 to 100.0, ulp 2.0;
    Unary hard_sigmoid(a) wgsl "tectum_hard_sigmoid(a)" native math::hard_sigmoid(a), reference reference::hard_sigmoid(a), from -100.0 to 100.0, ulp 2.0;
    Unary hard_swish(a) wgsl "tectum_hard_swish(a)" native math::hard_swish(a), reference reference::hard_swish(a), from -100.0 to 100.0, ulp 3.0;
    Unary relu6(a) wgsl "tectum_relu6(a)" native math::relu6(a), reference reference::relu6(a), from -100.0 to 100.0, ulp 0.0;
    Unary erf(a) wgsl "tectum_erf(a)" native math::erf(a), reference reference::erf(a), from -5.0 to 5.0, ulp 2.0;
    Unary sin(a) wgsl "tectum_sin(a)" native math::sin_near(a), unless math::is_near(a) => math::sin(a), reference a.sin(), from -20000.0 to 20000.0, ulp 2.0;
    Unary cos(a) wgsl "tectum_cos(a)" native math::cos_near(a), unless math::is_near(a) => math::cos(a), reference a.cos(), from -20000.0 to 20000.0, ulp 2.0;
    Unary exp2(a) wgsl "tectum_exp2(a)" native math::exp2(a), reference a.exp2(), from -150.0 to 130.0, ulp 2.0;
    Unary log2(a) wgsl "tectum_log2(a)" native math::log2(a), reference a.log2(), from 0.0 to 100.0, ulp 2.0;
    Unary sign(a) wgsl "tectum_sign(a)" native math::sign(a), reference if a == 0.0 || a.is_nan() { a } else { a.signum() }, from -100.0 to 100.0, ulp 0.0;
    Unary tan(a) wgsl "tectum_tan(a)" native math::tan_near(a), unless math::is_near(a) => math::tan(a), reference a.tan(), from -20000.0 to 20000.0, ulp 7.0;
    Unary asin(a) wgsl "tectum_asin(a)" native math::asin(a), reference a.asin(), from -1.0 to 1.0, ulp 8.0;
    Unary acos(a) wgsl "tectum_acos(a)" native math::acos(a), reference a.acos(), from -1.0 to 1.0, ulp 8.0;
    Unary atan(a) wgsl "tectum_atan(a)" native math::atan(a), reference a.atan(), from -100.0 to 100.0, ulp 5.0;
    Unary sinh(a) wgsl "tectum_sinh(a)" native math::sinh(a), reference a.sinh(), from -90.0 to 90.0, ulp 4.0;
    Unary cosh(a) wgsl "tectum_cosh(a)" native math::cosh(a), reference a.cosh(), from -90.0 to 90.0, ulp 4.0;
    Unary asinh(a) wgsl "tectum_asinh(a)" native math::asinh(a), reference reference::asinh(a), from -100.0 to 100.0, ulp 4.0;
    Unary acosh(a) wgsl "tectum_acosh(a)" native math::acosh(a), reference reference::acosh(a), from 1.0 to 100.0, ulp 8.0;
    Unary atanh(a) wgsl "tectum_atanh(a)" native math::atanh(a), reference reference::atanh(a), from -1.0 to 1.0, ulp 6.0;
    Unary floor(a) wgsl "floor(a)" native a.floor(), reference a.floor(), from -100.0 to 100.0, ulp 0.0;
    Unary ceil(a) wgsl "ceil(a)" native a.ceil(), reference a.ceil(), from -100.0 to 100.0, ulp 0.0;
    Unary round(a) wgsl "tectum_round(a)" native a.round_ties_even(), reference a.round_ties_even(), from -100.0 to 100.0, ulp 0.0;
    Unary square(a) wgsl "a * a" native a * a, reference a * a, from -100.0 to 100.0, ulp 1.0;
    Unary reciprocal(a) wgsl "1.0 / a" native 1.0 / a, reference 1.0 / a, from -100.0 to 100.0, ulp 3.0;
    Unary rsqrt(a) wgsl "1.0 / sqrt(a)" native 1.0 / a.sqrt(), reference 1.0 / a.sqrt(), from 0.0 to 100.0, ulp 5.0;
}

fn nan_aware(a: f64, b: f64, pick: fn(f64, f64) -> f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        pick(a, b)
    }
}

fn unary<T: Element>(
    call: &NativeCall<'_>,
    Unary { x0: x, y, n }: Unary<Slices<'_, T>>,
    f: impl Fn(T) -> T + Copy + Sync,
    repair: impl Fn(&[T], &mut [T]) + Sync,
) {
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        let x = &x[index * BLOCK..][..y.len()];
        simd(
            #[inline(always)]
            || {
                for (y, &a) in y.iter_mut().zip(x) {
                    *y = f(a);
                }
            },
        );
        repair(x, y);
    });
}

/// Recomputes the elements that are not near, one at a time.
pub(crate) fn repair<T: Real>(
    x: &[T],
    y: &mut [T],
    near: impl Fn(T) -> bool,
    full: impl Fn(T) -> T,
) {
    for (x, y) in x.chunks(64).zip(y.chunks_mut(64)) {
        if !x.iter().fold(true, |all, &a| all & near(a)) {
            y.iter_mut()
                .zip(x)
                .filter(|(_, a)| !near(**a))
                .for_each(|(y, &a)| *y = full(a));
        }
    }
}

fn binary<T: Element, Y: Element>(
    call: &NativeCall<'_>,
    (a, b, y): (&[T], &[T], &mut [Y]),
    [n, period, run]: [usize; 3],
    f: impl Fn(T, T) -> Y + Copy + Sync,
) {
    if run > 1 {
        return binary_runs(call, (a, b, y), [n, period, run], f);
    }
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n), |index, y| {
        let start = index * BLOCK;
        let a = &a[start..][..y.len()];
        if period == 1 {
            let b = b[0];
            return simd(
                #[inline(always)]
                || y.iter_mut().zip(a).for_each(|(y, &a)| *y = f(a, b)),
            );
        }
        let mut done = 0;
        while done < y.len() {
            let phase = (start + done) % period;
            let run = (period - phase).min(y.len() - done);
            let (y, a, b) = (&mut y[done..][..run], &a[done..][..run], &b[phase..][..run]);
            simd(
                #[inline(always)]
                || {
                    for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                        *y = f(a, b);
                    }
                },
            );
            done += run;
        }
    });
}

/// With each element of `b` for a run of elements.
fn binary_runs<T: Element, Y: Element>(
    call: &NativeCall<'_>,
    (a, b, y): (&[T], &[T], &mut [Y]),
    sizes: [usize; 3],
    f: impl Fn(T, T) -> Y + Copy + Sync,
) {
    let [n, period, run] = sizes;
    let runs = (BLOCK / run).max(1);
    for_each_chunk(&mut y[..n], runs * run, call.threads_for(n), |index, y| {
        let first = index * runs;
        for (at, (y, a)) in y
            .chunks_mut(run)
            .zip(a[first * run..].chunks(run))
            .enumerate()
        {
            let b = b[(first + at) % period];
            simd(
                #[inline(always)]
                || y.iter_mut().zip(a).for_each(|(y, &a)| *y = f(a, b)),
            );
        }
    });
}

/// Elements of a launch.
trait Count {
    fn count(&self) -> usize;
}

impl Count for Unary<NoBindings> {
    fn count(&self) -> usize {
        self.n
    }
}

impl Count for Binary<NoBindings> {
    fn count(&self) -> usize {
        self.n
    }
}

fn with_body<A: KernelArguments<Parameters: Count>, T: Element>(
    op: &Op,
    builder: KernelBuilder<A, T>,
) -> KernelBuilder<A, T> {
    let body = elementwise_body(op.arity, op.wgsl);
    let prelude = if FUNCTIONS.contains(&op.name) {
        Prelude::Functions
    } else {
        Prelude::Math
    };
    let builder = builder.prelude(prelude).body(body);
    if op.name.ends_with("mod") {
        return builder.flops(|parameters| LONG_DIVISION_FLOPS * parameters.count() as f64);
    }
    if TRANSCENDENTAL.contains(&op.name) {
        return builder.flops(|parameters| TRANSCENDENTAL_FLOPS * parameters.count() as f64);
    }
    builder.flops(|parameters| parameters.count() as f64)
}

/// The body of a kernel that gives each element of `y` the value of an expression of `a`, the
/// element of `x0`, and `b`, that of `x1`, which repeats.
fn elementwise_body(arity: Arity, wgsl: &str) -> String {
    let load_b = match arity {
        Arity::Unary => "",
        Arity::Binary => {
            "var j = i; if params.period != params.n { j = (i / params.run) % params.period; }\n        let b = x1[j];\n"
        }
    };
    format!(
        "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {{
        let a = x0[i];
        {load_b}        y[i] = {wgsl};
    }}
}}
"
    )
}

/// Operations that are polynomials of some length, and about how many steps they take.
const TRANSCENDENTAL: [&str; 15] = [
    "exp", "log", "sigmoid", "tanh", "gelu", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "asinh", "acosh", "atanh", "pow",
];
const TRANSCENDENTAL_FLOPS: f64 = 24.0;
/// A few steps of long division by words, where the operands' exponents are not far apart.
const LONG_DIVISION_FLOPS: f64 = 16.0;
/// Operations whose device code calls functions of [`Prelude::Functions`].
const FUNCTIONS: [&str; 13] = [
    "sign", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "pow",
    "fmod", "mod",
];

static KERNELS: LazyLock<Vec<[OpKernel; 2]>> =
    LazyLock::new(|| OPS.iter().map(|op| (op.define)(op)).collect());

/// The kernels of this family: those of the op table on f32, then on f64; integers, comparisons,
/// transfers, casts and the optimiser.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let table = [0, 1].into_iter().flat_map(|width| {
        KERNELS
            .iter()
            .map(move |kernels| kernels[width].kernel().clone())
    });
    table
        .chain(integer::kernels())
        .chain(compare::kernels())
        .chain(transfer::kernels())
        .chain(cast::kernels())
        .chain(optimizer::kernels())
        .collect()
}

/// The op of a name.
pub fn operation(name: &str) -> Option<&'static Op> {
    OPS.iter().find(|op| op.name == name)
}

/// The kernel of a name: of the table of integers for i32 and u32, of the op table for floats.
fn find(name: &str, dtype: DType) -> Option<&'static OpKernel> {
    if matches!(dtype, DType::I32 | DType::U32) {
        return integer::find(name, dtype);
    }
    let index = OPS.iter().position(|op| op.name == name)?;
    Some(&KERNELS[index][usize::from(dtype == DType::F64)])
}

impl PlanBuilder {
    /// Records `y[i] = op(x[i])` for an operation of a table, of the type of `x`.
    ///
    /// On f32 and f64: `abs`, `neg`, `sign` (0 for 0, NaN for NaN), `sqrt`, `exp`, `log`,
    /// `sigmoid`, `tanh`, `relu`, `relu6`, `gelu`, `gelu_erf`, `silu`, `elu`, `hard_sigmoid`,
    /// `hard_swish`, `erf`, `sin`, `cos`, `tan`, `asin`, `acos`, `atan`, `sinh`, `cosh`, `asinh`,
    /// `acosh`, `atanh`, `exp2`, `log2`, `floor`, `ceil`, `round` (to even), `square`,
    /// `reciprocal`, `rsqrt`. On i32 and u32, modulo 2³²: `neg`, `abs`, `sign`, `not` (of each
    /// bit).
    ///
    /// # Errors
    /// `Invalid` for another name or lengths that differ; as [`PlanBuilder::launch`].
    pub fn unary(&mut self, op: &str, x: View, y: View) -> Result<()> {
        let Some(OpKernel::Unary(kernel)) = find(op, x.dtype()) else {
            return Err(unknown(op, Arity::Unary, x.dtype()));
        };
        same_len(op, x, y)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(
            kernel,
            Unary {
                x0: x,
                y,
                n: y.len(),
            },
            groups_for(y.len()),
        )
    }

    /// Records `y[i] = op(a[i], b[i mod len(b)])` for an operation of a table, of the type of `a`:
    /// `b` may be a scalar or a row that repeats.
    ///
    /// On f32 and f64: `add`, `sub`, `mul`, `div`, `min`, `max`, `pow` (as IEEE 754 `pow`), `fmod`
    /// (the remainder with the sign of `a`), `mod` (that with the sign of `b`), `tanh_grad`,
    /// `sigmoid_grad`, `relu_grad`. On i32 and u32, modulo 2³²: `add`, `sub`, `mul`, `div`
    /// (truncated), `rem` (its remainder), `mod` (the remainder with the sign of `b`), `min`,
    /// `max`, `and`, `or`, `xor`, `shl`, `shr` (arithmetic on i32), `pow`. A divisor of 0 gives 0,
    /// a shift by 32 or more 0 or the sign, a negative power 0 except of 1 and −1.
    ///
    /// # Errors
    /// `Invalid` for another name, `a` and `y` of different lengths, or a `b` whose length does not
    /// divide theirs; as [`PlanBuilder::launch`].
    pub fn binary(&mut self, op: &str, a: View, b: View, y: View) -> Result<()> {
        self.binary_by_run(op, a, b, 1, y)
    }

    /// Records `y[i] = op(a[i], b[⌊i / run⌋ mod len(b)])`: as [`PlanBuilder::binary`], with each
    /// element of `b` for a run of elements, such as the pixels of a channel.
    ///
    /// # Errors
    /// `Invalid` if the length of `a` is no multiple of `run` times that of `b`; as
    /// [`PlanBuilder::binary`].
    pub fn binary_by_run(&mut self, op: &str, a: View, b: View, run: usize, y: View) -> Result<()> {
        let Some(OpKernel::Binary(kernel)) = find(op, a.dtype()) else {
            return Err(unknown(op, Arity::Binary, a.dtype()));
        };
        same_len(op, a, y)?;
        if y.is_empty() {
            return Ok(());
        }
        check_period(op, a, b.len(), run)?;
        self.launch(
            kernel,
            Binary {
                x0: a,
                x1: b,
                y,
                n: y.len(),
                period: b.len(),
                run,
            },
            groups_for(y.len()),
        )
    }
}

/// Refuses a `b` that does not repeat to the length of `a`, each element for a run.
fn check_period(op: &str, a: View, period: usize, run: usize) -> Result<()> {
    if period
        .checked_mul(run)
        .is_some_and(|whole| whole > 0 && a.len().is_multiple_of(whole))
    {
        return Ok(());
    }
    let runs = if run == 1 {
        String::new()
    } else {
        format!(" for runs of {run}")
    };
    Err(Error::invalid(format!(
        "{op}: b has {period} elements{runs}, which does not divide a's {}",
        a.len()
    )))
}

fn unknown(op: &str, arity: Arity, dtype: DType) -> Error {
    let names: Vec<_> = if matches!(dtype, DType::I32 | DType::U32) {
        integer::INTEGER_OPS
            .iter()
            .filter(|row| row.arity == arity)
            .map(|row| row.name)
            .collect()
    } else {
        OPS.iter()
            .filter(|row| row.arity == arity)
            .map(|row| row.name)
            .collect()
    };
    Error::invalid(format!(
        "{op}: no such {arity:?} operation on {}; there are {}",
        dtype.wgsl(),
        names.join(", ")
    ))
}
