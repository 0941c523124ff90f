//! Elementary functions on `f32` and `f64`: the native twin of `kernel/wgsl/math.wgsl`: the same
//! reductions and polynomials, here with fused steps.
//!
//! Both types share one text, `math/functions.rs`, `math/exponentials.rs`, `math/trigonometric.rs`,
//! `math/hyperbolic.rs`, `math/powers.rs` and `math/remainders.rs`; constants and polynomials of
//! each are in `math/single.rs` and `math/double.rs`. The functions of this module work on f32;
//! [`slices`] has some of them for slices.
//!
//! Every function but [`sin`], [`cos`], [`tan`] and the remainders is free of branches and of table
//! look-ups, so a plain loop over a slice vectorises wherever it is compiled with SIMD enabled
//! (inside `pulp::Arch::dispatch`, for instance); for those three, [`sin_near`], [`cos_near`] and
//! [`tan_near`] are. Only IEEE 754 additions, multiplications, divisions, square roots, exact
//! remainders and fused multiply-adds are used, so the result has the same bits on every CPU; one
//! without fused multiply-add computes it in software, slowly.
//!
//! # Numerics
//!
//! The errors stated are the largest found, rounded up: for f32 against float64 over every value
//! (`tectum verify --functions --exhaustive`), for f64 against a reference of twice the precision
//! over all exponents. Common to all: NaN in gives NaN out, results below the smallest normal
//! number are rounded to subnormal ones.
//!
//! | | exp, exp2 | log | log2 | tanh | erf | sin, cos | sigmoid | silu, gelu | gelu_erf | elu |
//! |---|---|---|---|---|---|---|---|---|---|---|
//! | f32 | 1.1 | 0.9 | 1.6 | 1.8 | 1.3 | 1.1 | 2.3 | 1.6 | 1.8 | 1.6 |
//! | f64 | 1.1 | 0.9 | 1.6 | 1.8 | 1.5 | 1.1 | 2.3 | 1.6 | 1.8 | 1.6 |
//!
//! | | tan | asin | acos | atan | sinh, cosh | asinh | acosh | atanh | pow |
//! |---|---|---|---|---|---|---|---|---|---|
//! | f32 | 2.4 | 1.4 | 1.1 | 2.1 | 1.6 | 1.2 | 1.8 | 1.3 | 1 |
//!
//! Those of the second table are the largest found on f32 over samples of all exponents; `asin` to
//! `pow` have the same steps on f64, where their cases allow 4 to 8. `sign`, `fmod` and `relu6` are
//! exact, `hard_sigmoid` and `hard_swish` round two and three times, `modulo` rounds once.
//!
//! # Source
//!
//! Range reduction after Cody and Waite, *Software Manual for the Elementary Functions* (1980). On
//! f32 the polynomials of `exp`, `log`, `sin` and `cos` are those of the single-precision Cephes
//! library (S. L. Moshier), from which we depart in scaling by integer addition on the exponent and
//! in having no branches; those of the error function, and all on f64, are our own.

pub mod double;
mod gelu_of_sum;
mod single;
pub mod slices;

pub use single::{
    acos, acosh, asin, asinh, atan, atanh, cosh, fmod, modulo, pow, sign, sinh, tan, tan_near,
};
pub use single::{
    cos, cos_near, elu, erf, exp, exp2, gelu, gelu_erf, hard_sigmoid, hard_swish, is_nan, is_near,
    log, log2, max, min, relu, relu6, sigmoid, silu, sin, sin_near, tanh,
};
pub(crate) use single::{exp_normal, four};

use std::ops::{Add, AddAssign, Div, Mul};

use crate::dtype::Element;

/// `dst = alpha·dst + beta·lhs·rhs` of the crate `gemm`: m, n, k; pointer, column stride and row
/// stride of dst; whether dst is read; the same of lhs and rhs; alpha, beta; three flags of complex
/// numbers; the threads.
#[cfg(feature = "gemm")]
pub(crate) type StridedProduct<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    gemm_common::Parallelism,
);

/// The float types that kernels exist for.
pub(crate) trait Real:
    Element + Add<Output = Self> + AddAssign + Mul<Output = Self> + Div<Output = Self>
{
    const ZERO: Self;
    const INFINITY: Self;
    const NEG_INFINITY: Self;
    /// The nearest number to a count.
    fn from_count(count: usize) -> Self;
    /// self·a + b, rounded once.
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn min(a: Self, b: Self) -> Self;
    fn max(a: Self, b: Self) -> Self;
    fn relu(self) -> Self;
    /// tanh(x), under a name that no method of `f32` hides.
    fn hyperbolic_tangent(self) -> Self;
    fn sigmoid(self) -> Self;
    fn gelu(self) -> Self;
    /// x·Φ(x) of an x that is a rounded sum.
    fn gelu_erf_of_sum(self) -> Self;
    fn silu(self) -> Self;
    fn elu(self) -> Self;
    fn hard_sigmoid(self) -> Self;
    fn hard_swish(self) -> Self;
    fn relu6(self) -> Self;
    /// The product of matrices with any strides.
    #[cfg(feature = "gemm")]
    fn strided_product() -> StridedProduct<Self>;
}

macro_rules! real {
    ($real:ident, $functions:ident, $gelu_erf:path, $product:path) => {
        impl Real for $real {
            const ZERO: Self = 0.0;
            const INFINITY: Self = $real::INFINITY;
            const NEG_INFINITY: Self = $real::NEG_INFINITY;
            #[inline(always)]
            fn from_count(count: usize) -> Self {
                count as Self
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                $real::mul_add(self, a, b)
            }
            #[inline(always)]
            fn min(a: Self, b: Self) -> Self {
                $functions::min(a, b)
            }
            #[inline(always)]
            fn max(a: Self, b: Self) -> Self {
                $functions::max(a, b)
            }
            #[inline(always)]
            fn relu(self) -> Self {
                $functions::relu(self)
            }
            #[inline(always)]
            fn hyperbolic_tangent(self) -> Self {
                $functions::tanh(self)
            }
            #[inline(always)]
            fn sigmoid(self) -> Self {
                $functions::sigmoid(self)
            }
            #[inline(always)]
            fn gelu(self) -> Self {
                $functions::gelu(self)
            }
            #[inline(always)]
            fn gelu_erf_of_sum(self) -> Self {
                $gelu_erf(self)
            }
            #[inline(always)]
            fn silu(self) -> Self {
                $functions::silu(self)
            }
            #[inline(always)]
            fn elu(self) -> Self {
                $functions::elu(self)
            }
            #[inline(always)]
            fn hard_sigmoid(self) -> Self {
                $functions::hard_sigmoid(self)
            }
            #[inline(always)]
            fn hard_swish(self) -> Self {
                $functions::hard_swish(self)
            }
            #[inline(always)]
            fn relu6(self) -> Self {
                $functions::relu6(self)
            }
            #[cfg(feature = "gemm")]
            fn strided_product() -> StridedProduct<Self> {
                $product()
            }
        }
    };
}

real!(
    f32,
    single,
    gelu_of_sum::gelu_erf_of_sum,
    gemm_f32::gemm::f32::get_gemm_fn
);
real!(
    f64,
    double,
    double::gelu_erf,
    gemm_f64::gemm::f64::get_gemm_fn
);

#[cfg(test)]
mod tests;
