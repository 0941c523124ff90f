//! Elementary functions on `f32`: the native twin of `kernels/lib/math.wgsl`: the same reductions and polynomials, here with fused steps.
//!
//! Every function but [`sin`] and [`cos`] is free of branches and of table look-ups, so a plain loop over a slice vectorises
//! wherever it is compiled with SIMD enabled (inside `pulp::Arch::dispatch`, for instance); for those two, [`sin_near`] and
//! [`cos_near`] are. Only IEEE 754 additions, multiplications, divisions and fused multiply-adds are used, so the result has
//! the same bits on every CPU; one without fused multiply-add computes it in software, slowly.
//!
//! # Numerics
//!
//! The errors stated are the largest found against float64 over every `f32` value, rounded up
//! (`tectum verify --functions --exhaustive`). Common to all: NaN in gives NaN out, results below the smallest normal number
//! (2⁻¹²⁶) are rounded to subnormal ones.
//!
//! # Source
//!
//! Range reduction after Cody and Waite, *Software Manual for the Elementary Functions* (1980); the polynomials of
//! `exp`, `log`, `tanh`, `sin` and `cos` are those of the single-precision Cephes library (S. L. Moshier). We depart from
//! Cephes in scaling by integer addition on the exponent and in having no branches. The polynomials of the error function are
//! our own minimax fits.

mod erf;
mod logistic;
mod pair;
mod sine;

pub use erf::{erf, gelu_erf};
pub use logistic::{gelu, sigmoid, silu};
pub use sine::{cos, cos_near, is_near, sin, sin_near};

/// `+inf` as bits; a larger magnitude is NaN.
const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const SIGN: u32 = 0x8000_0000;

/// Adding 1.5·2²³ rounds to the nearest integer (ties to even) and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
const LN2_HI: f32 = 355.0 / 512.0;
const LN2_LO: f32 = -2.121_944_4e-4;

/// The largest argument whose exponential is finite.
const EXP_MAX: f32 = f32::from_bits(0x42b1_7217);
/// Below this the exponential rounds to 0.
const EXP_END: f32 = -104.0;

/// Says whether `x` is NaN, by its bits.
#[inline(always)]
pub fn is_nan(x: f32) -> bool {
    magnitude(x) > INF
}

/// Computes eˣ.
///
/// # Numerics
///
/// At most 1.1 ulp. `exp(-inf) = 0`, `exp(+inf) = inf`, overflow above 88.72283 gives inf.
///
/// # Source
///
/// Cephes `expf`: x = n·ln 2 + r, |r| ≤ ½ ln 2, eʳ = 1 + r + r²·P₅(r).
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let inside = if x > EXP_END { x } else { EXP_END };
    let inside = if inside < EXP_MAX { inside } else { EXP_MAX };
    let shifted = inside.mul_add(LOG2_E, ROUND);
    let y = raise(exp_reduced(n_ln2_less(inside, shifted - ROUND)), whole(shifted));
    // Overflow gives inf, NaN stays NaN.
    if x <= EXP_MAX { y } else { x + f32::INFINITY }
}

/// Computes 2ˣ.
///
/// # Numerics
///
/// At most 1.1 ulp, exact for whole numbers. `exp2(-inf) = 0`, `exp2(+inf) = inf`, overflow from 128 on gives inf.
///
/// # Source
///
/// As [`exp`], with n the whole number nearest to x and r = (x − n)·ln 2.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    /// The float before 128.
    const MAX: f32 = 127.999_99;
    const END: f32 = -151.0;
    let inside = if x > END { x } else { END };
    let inside = if inside < MAX { inside } else { MAX };
    let shifted = inside + ROUND;
    let y = raise(exp_reduced((inside - (shifted - ROUND)) * std::f32::consts::LN_2), whole(shifted));
    if x <= MAX { y } else { x + f32::INFINITY }
}

/// Computes the natural logarithm ln x.
///
/// # Numerics
///
/// At most 0.9 ulp, subnormal arguments included. `log(±0) = -inf`, `log(+inf) = inf`, and a negative argument gives NaN.
///
/// # Source
///
/// Cephes `logf`: x = m·2ᵉ, √½ ≤ m < √2, f = m − 1, ln m = f − f²/2 + f³·P₈(f).
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (f, e) = log_reduced(x);
    let tail = log_cubic(f) + e * LN2_LO - 0.5 * (f * f);
    log_ends(x, (f + tail) + e * LN2_HI)
}

/// Computes the binary logarithm.
///
/// # Numerics
///
/// At most 1.6 ulp, subnormal arguments included, exact for powers of two; ends as [`log`].
///
/// # Source
///
/// As [`log`], log₂ m = ln m + ln m·(log₂ e − 1), the sum f + tail carried with what its rounding lost.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    const LOG2_E_LESS_ONE: f32 = 0.442_695_05;
    let (f, e) = log_reduced(x);
    let tail = log_cubic(f) - 0.5 * (f * f);
    let sum = f + tail;
    let lost = (f - sum) + tail;
    log_ends(x, e + (sum + (sum * LOG2_E_LESS_ONE + lost * LOG2_E)))
}

/// f and e with x = (1 + f)·2ᵉ, √½ ≤ 1 + f < √2, for a positive finite x.
#[inline(always)]
fn log_reduced(x: f32) -> (f32, f32) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits();

    // A subnormal is its mantissa as an integer times 2^-149, and that integer is exact as a float.
    let subnormal = bits < 0x0080_0000;
    let normal = select(subnormal, (bits as i32 as f32).to_bits(), bits);
    let shifted = normal.wrapping_sub(SQRT_HALF);
    let e = ((shifted as i32 >> 23) - if subnormal { 149 } else { 0 }) as f32;
    (f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF) - 1.0, e)
}

/// f³·P₈(f).
#[inline(always)]
fn log_cubic(f: f32) -> f32 {
    let p = 7.037_683_6e-2_f32;
    let p = p.mul_add(f, -1.151_461e-1);
    let p = p.mul_add(f, 1.167_699_87e-1);
    let p = p.mul_add(f, -1.242_014_1e-1);
    let p = p.mul_add(f, 1.424_932_3e-1);
    let p = p.mul_add(f, -1.666_805_7e-1);
    let p = p.mul_add(f, 2.000_071_4e-1);
    let p = p.mul_add(f, -2.499_999_4e-1);
    let p = p.mul_add(f, 3.333_333e-1);
    f * (f * f) * p
}

/// y, but for the arguments that have no finite logarithm.
#[inline(always)]
fn log_ends(x: f32, y: f32) -> f32 {
    let bits = x.to_bits();
    let y = select(bits == INF, INF, y.to_bits());
    let y = select(bits > INF, NAN, y);
    f32::from_bits(select(magnitude(x) == 0, SIGN | INF, y))
}

/// Computes the hyperbolic tangent.
///
/// # Numerics
///
/// At most 1.4 ulp, relative accuracy kept down to 0; odd, and never beyond ±1. `tanh(±inf) = ±1`.
///
/// # Source
///
/// Cephes `tanhf`: x + x³·P₄(x²) below 0.625, else 1 − 2/(e²ˣ + 1).
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    const SPLIT: u32 = 0x3f20_0000;
    const ONE_FROM: u32 = 0x4120_0000;
    let size = magnitude(x);
    let a = f32::from_bits(select(size > ONE_FROM, ONE_FROM, size));

    let z = a * a;
    let p = -5.704_988_7e-3_f32;
    let p = p.mul_add(z, 2.063_908_8e-2);
    let p = p.mul_add(z, -5.373_971_6e-2);
    let p = p.mul_add(z, 1.333_144_2e-1);
    let p = p.mul_add(z, -3.333_328e-1);
    let near = a + a * (z * p);
    let far = 1.0 - 2.0 / (exp_normal(a + a) + 1.0);

    let y = select(size < SPLIT, near.to_bits(), far.to_bits()) | (x.to_bits() & SIGN);
    f32::from_bits(select(is_nan(x), NAN, y))
}

/// Picks the lesser of two numbers: exact; NaN if either is NaN; −0 is less than +0 (IEEE 754-2019 `minimum`).
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    let least = select(order_bits(a) < order_bits(b), a.to_bits(), b.to_bits());
    f32::from_bits(select(is_nan(a) | is_nan(b), NAN, least))
}

/// Picks the greater of two numbers: exact; NaN if either is NaN; +0 is greater than −0 (IEEE 754-2019 `maximum`).
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    let greatest = select(order_bits(a) < order_bits(b), b.to_bits(), a.to_bits());
    f32::from_bits(select(is_nan(a) | is_nan(b), NAN, greatest))
}

/// Computes max(x, 0): exact; NaN stays NaN, −0 becomes +0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    let below = (x.to_bits() >= SIGN) & (x.to_bits() <= (SIGN | INF));
    f32::from_bits(select(below, 0, x.to_bits()))
}

/// eˣ for an x whose exponential is a normal number.
#[inline(always)]
pub(super) fn exp_normal(x: f32) -> f32 {
    let shifted = x.mul_add(LOG2_E, ROUND);
    let y = exp_reduced(n_ln2_less(x, shifted - ROUND));
    f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// x − n·ln 2, the first step exact.
#[inline(always)]
fn n_ln2_less(x: f32, n: f32) -> f32 {
    n.mul_add(-LN2_LO, n.mul_add(-LN2_HI, x))
}

/// eʳ for |r| ≤ ½ ln 2.
#[inline(always)]
fn exp_reduced(r: f32) -> f32 {
    1.0 + exp_polynomial(r).mul_add(r * r, r)
}

/// e^(high + low) − 1 for |high + low| ≤ ½ ln 2, to 2⁻²⁶ if `high` is exact.
#[inline(always)]
fn exp_less_one(high: f32, low: f32) -> f32 {
    let r = high + low;
    high + exp_polynomial(r).mul_add(r * r, low)
}

/// (eʳ − 1 − r) / r².
#[inline(always)]
fn exp_polynomial(r: f32) -> f32 {
    let p = 1.987_569_1e-4_f32;
    let p = p.mul_add(r, 1.398_199_9e-3);
    let p = p.mul_add(r, 8.333_452e-3);
    let p = p.mul_add(r, 4.166_579_6e-2);
    let p = p.mul_add(r, 1.666_666_5e-1);
    p.mul_add(r, 0.5)
}

/// The integer that adding [`ROUND`] left in the low bits.
#[inline(always)]
fn whole(shifted: f32) -> i32 {
    shifted.to_bits() as i32 - ROUND.to_bits() as i32
}

/// y·2ⁿ for ½ ≤ y < 2 and −250 ≤ n ≤ 128, rounded once if it is subnormal: half of n by integer addition on the exponent.
#[inline(always)]
fn raise(y: f32, n: i32) -> f32 {
    let half = n >> 1;
    f32::from_bits(y.to_bits().wrapping_add((half << 23) as u32)) * power(n - half)
}

/// y·2ⁿ for any y and −252 ≤ n ≤ 0, rounded once if it is subnormal.
#[inline(always)]
fn lower(y: f32, n: i32) -> f32 {
    let half = n >> 1;
    y * power(half) * power(n - half)
}

/// 2ⁿ for −126 ≤ n ≤ 127.
#[inline(always)]
fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// Bits without the sign.
#[inline(always)]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & !SIGN
}

/// An integer that orders as the float does, −0 below +0.
#[inline(always)]
fn order_bits(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    bits ^ ((bits >> 31) & i32::MAX)
}

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

#[cfg(test)]
mod tests;
