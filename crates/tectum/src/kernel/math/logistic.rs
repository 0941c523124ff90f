//! The logistic function and the gates made of it.

use super::pair::{ordered_sum, quotient};
use super::{LN2_HI, LN2_LO, LOG2_E, NAN, ROUND, SIGN, exp_less_one, is_nan, lower, magnitude, power, select, whole};

/// 2√(2/π) in two parts, the upper a multiple of 2⁻¹⁰.
const GELU_A: [f32; 2] = [1.595_703_1, 6.599_66e-5];
/// 2√(2/π)·0.044715 in two parts, the upper of 14 bits.
const GELU_B: [f32; 2] = [0.071_350_1, 4.718_616_4e-6];

/// e^-t for t ≥ 0 as (1 + w)·2ⁿ.
pub(super) struct Falling {
    /// 1 + w less 1, |w| < ½.
    pub(super) w: f32,
    /// The exponent, −252 ≤ n ≤ 0.
    pub(super) n: i32,
}

impl Falling {
    /// From −t in two parts, the upper so short that n·[`LN2_HI`] is subtracted from it exactly.
    #[inline(always)]
    pub(super) fn new(high: f32, low: f32) -> Self {
        let shifted = (high + low) * LOG2_E + ROUND;
        let n = shifted - ROUND;
        Self { w: exp_less_one(high - n * LN2_HI, n * -LN2_LO + low), n: whole(shifted) }
    }
}

/// 2ⁿ, or 2⁻¹²⁶ where that is smaller: for sums with 1, where it is lost either way.
#[inline(always)]
pub(super) fn power_beside_one(n: i32) -> f32 {
    power(n.max(-126))
}

/// A positive number (high + low)·2ⁿ.
pub(super) struct Scaled {
    pub(super) high: f32,
    pub(super) low: f32,
    pub(super) n: i32,
}

impl Scaled {
    /// The number times a factor.
    #[inline(always)]
    pub(super) fn times(&self, factor: f32) -> f32 {
        lower(factor * self.high + factor * self.low, self.n)
    }
}

/// 1/(1 + e^∓t): for a negative argument e^-t/(1 + e^-t).
#[inline(always)]
fn logistic(falling: &Falling, negative: bool) -> Scaled {
    let m = ordered_sum(1.0, falling.w);
    let power = power_beside_one(falling.n);
    let (sum, lost) = ordered_sum(1.0, m.0 * power);
    let top = if negative { m } else { (1.0, 0.0) };
    let (high, low) = quotient(top, (sum, lost + m.1 * power));
    Scaled { high, low, n: if negative { falling.n } else { 0 } }
}

/// Computes the logistic function 1/(1 + e⁻ˣ).
///
/// # Numerics
///
/// At most 1.1 ulp; always in [0, 1]. `sigmoid(-inf) = 0`, `sigmoid(+inf) = 1`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let y = logistic(&falling(x, END_OF_SIGMOID), x.to_bits() >= SIGN).times(1.0);
    f32::from_bits(select(is_nan(x), NAN, y.to_bits()))
}

/// Computes the sigmoid-weighted linear unit x/(1 + e⁻ˣ).
///
/// # Numerics
///
/// At most 1.6 ulp. `silu(-inf) = -0`, `silu(+inf) = inf`.
///
/// # Source
///
/// Elfwing, Uchibe and Doya, arXiv:1702.03118.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    let inside = f32::from_bits(magnitude(x).min(END_OF_SILU) | (x.to_bits() & SIGN));
    let y = logistic(&falling(x, END_OF_SILU), x.to_bits() >= SIGN).times(inside);
    gate_ends(x, END_OF_SILU, y)
}

/// Computes the Gaussian error linear unit in its tanh form, ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
///
/// # Numerics
///
/// At most 1.6 ulp, relative accuracy kept in the negative tail. `gelu(-inf) = -0`, `gelu(+inf) = inf`.
///
/// # Source
///
/// Hendrycks and Gimpel, arXiv:1606.08415. Computed as x/(1 + e⁻ᵗ), t = 2√(2/π)(x + 0.044715x³); t passes 100, so it is
/// carried as an exact part and a remainder, expanded about the multiple of 1/64 nearest to x.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let size = f32::from_bits(magnitude(x).min(END_OF_GELU));
    let inside = f32::from_bits(size.to_bits() | (x.to_bits() & SIGN));
    let y = logistic(&gelu_falling(size), x.to_bits() >= SIGN).times(inside);
    gate_ends(x, END_OF_GELU, y)
}

/// From these magnitudes on the functions have reached their ends: 104, 112, 11.
const END_OF_SIGMOID: u32 = 0x42d0_0000;
const END_OF_SILU: u32 = 0x42e0_0000;
const END_OF_GELU: u32 = 0x4130_0000;

#[inline(always)]
fn falling(x: f32, end: u32) -> Falling {
    Falling::new(f32::from_bits(magnitude(x).min(end) | SIGN), 0.0)
}

/// y, but x itself from the end on, and NaN for NaN.
#[inline(always)]
pub(super) fn gate_ends(x: f32, end: u32, y: f32) -> f32 {
    let reached = (x.to_bits() as i32) >= end as i32;
    f32::from_bits(select(is_nan(x), NAN, select(reached, x.to_bits(), y.to_bits())))
}

/// e⁻ᵗ for t = 2√(2/π)(x + 0.044715x³) and 0 ≤ x ≤ 11.
#[inline(always)]
fn gelu_falling(x: f32) -> Falling {
    // c is x to a multiple of 1/64, d the rest; c and c² are exact.
    let c = ((x * 64.0 + ROUND) - ROUND) * 0.015_625;
    let d = x - c;
    let c2 = c * c;

    // A + B·c² = top + low, top a multiple of 2^-10; all but the last two products are exact.
    let c2_hi = ((c2 * 8.0 + ROUND) - ROUND) * 0.125;
    let near = ((c2 * (1024.0 * GELU_B[0]) + ROUND) - ROUND) * (1.0 / 1024.0);
    let rest = (c2_hi * GELU_B[0] - near) + (c2 - c2_hi) * GELU_B[0];
    let low = rest + (c2 * GELU_B[1] + GELU_A[1]);
    let top = GELU_A[0] + near;

    // t = c(A + B·c²) + d(A + B(3c² + 3cd + d²)).
    let slope = top + (low + (GELU_B[0] + GELU_B[1]) * (2.0 * c2 + d * (3.0 * c + d)));
    Falling::new(-(c * top), -(c * low + d * slope))
}
