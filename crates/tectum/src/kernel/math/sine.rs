//! Sine and cosine of any angle.

use super::{NAN, ROUND, SIGN, magnitude, select};

/// π/2 in four parts, the first three of 11 bits: their products with a quadrant below 2¹³ are exact.
const HALF_PI: [f32; 4] = [1.570_312_5, 4.837_513e-4, 7.549_533_6e-8, 2.563_344e-12];
/// The largest angle that Cody and Waite's reduction takes: 12 867 rad.
const NEAR: u32 = 0x4649_0c00;
/// The largest angle that the near functions take: 2²² rad, where neighbouring floats are half a radian apart.
const NEAR_END: u32 = 0x4a80_0000;
/// 2/π in binary: 32 zeros, then 224 bits after the point.
const TWO_OVER_PI: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// x less a multiple of π/2: r + low, |r| ≤ π/4, and the multiple modulo 4.
struct Reduced {
    r: f32,
    low: f32,
    quadrant: u32,
}

/// Computes the sine of an angle in radians.
///
/// # Numerics
///
/// At most 1.1 ulp for every finite angle, close to multiples of π included. Odd, and always in [-1, 1]. `sin(±inf) = NaN`.
///
/// # Source
///
/// Cephes `sinf` and `cosf` on |r| ≤ π/4. Reduction by Cody and Waite with π/2 in four parts up to 12 867 rad, beyond that by
/// Payne and Hanek (ACM SIGNUM 18, 1983) in integers.
#[inline]
pub fn sin(x: f32) -> f32 {
    if is_near(x) { sin_near(x) } else { odd(x, far(x, 0)) }
}

/// Computes the cosine of an angle in radians.
///
/// # Numerics
///
/// As for [`sin`].
#[inline]
pub fn cos(x: f32) -> f32 {
    if is_near(x) { cos_near(x) } else { far(x, 1) }
}

/// Whether [`sin_near`] and [`cos_near`] are as good as [`sin`] and [`cos`]: |x| ≤ 12 867 rad.
#[inline(always)]
pub fn is_near(x: f32) -> bool {
    magnitude(x) <= NEAR
}

/// [`sin`] for |x| ≤ 12 867 rad, without a branch: loops of it vectorise. Beyond that an absolute error up to |x|·2⁻²³, and
/// NaN above 2²² rad.
#[inline(always)]
pub fn sin_near(x: f32) -> f32 {
    odd(x, near(f32::from_bits(magnitude(x)), 0))
}

/// [`cos`] as [`sin_near`] is to [`sin`].
#[inline(always)]
pub fn cos_near(x: f32) -> f32 {
    near(x, 1)
}

#[inline(always)]
fn odd(x: f32, y: f32) -> f32 {
    f32::from_bits(y.to_bits() ^ (x.to_bits() & SIGN))
}

#[inline(always)]
fn near(x: f32, quarters: u32) -> f32 {
    let outside = magnitude(x) > NEAR_END;
    let y = sine_quarters(&reduce_near(f32::from_bits(select(outside, 0, x.to_bits()))), quarters);
    f32::from_bits(select(outside, NAN, y.to_bits()))
}

#[cold]
fn far(x: f32, quarters: u32) -> f32 {
    if x.is_finite() { sine_quarters(&reduce_far(f32::from_bits(magnitude(x))), quarters) } else { f32::from_bits(NAN) }
}

#[inline(always)]
fn reduce_near(x: f32) -> Reduced {
    let shifted = x * std::f32::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let r = x - n * HALF_PI[0];
    let high = r - n * HALF_PI[1];

    // What follows is rounded: r carries the sum, low what the rounding lost.
    let r = high - n * HALF_PI[2];
    let low = ((high - r) - n * HALF_PI[2]) - n * HALF_PI[3];
    Reduced { r, low, quadrant: shifted.to_bits() }
}

/// For a positive finite x of 2¹³ and more.
fn reduce_far(x: f32) -> Reduced {
    // x = m·2^e. In x·2/π, bits of 2/π worth 4 and more, times the integer m, are whole turns: 96 bits from there on matter.
    let m = u64::from((x.to_bits() & 0x007f_ffff) | 0x0080_0000);
    let offset = ((x.to_bits() >> 23) - 150 + 30) as usize;
    let bits = |index: usize| {
        let two = u64::from(TWO_OVER_PI[index]) << 32 | u64::from(TWO_OVER_PI[index + 1]);
        (two << (offset % 32)) >> 32
    };
    let first = offset / 32;
    let turn = ((m * bits(first)) << 32).wrapping_add(m * bits(first + 1)).wrapping_add((m * bits(first + 2)) >> 32);

    // The nearest quarter, and the signed rest as a fraction of one, in units of 2^-62.
    let quadrant = (turn.wrapping_add(1 << 61) >> 62) as u32;
    let rest = turn.wrapping_sub(u64::from(quadrant) << 62) as i64;
    let zeros = rest.unsigned_abs().leading_zeros();
    let leading = (rest.unsigned_abs() << zeros) >> 32;
    let product = ((leading * 0xc90f_daa2) >> 32) as u32;

    // 24 and 8 bits of rest·π/2, both exact.
    let unit = f32::from_bits((127 - 29 - zeros) << 23 | if rest < 0 { SIGN } else { 0 });
    Reduced { r: (product & 0xffff_ff00) as f32 * unit, low: (product & 0xff) as f32 * unit, quadrant }
}

/// sin(x + quarters·π/2).
#[inline(always)]
fn sine_quarters(&Reduced { r, low, quadrant }: &Reduced, quarters: u32) -> f32 {
    let z = r * r;
    let s = (-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1;
    let s = r + (r * (z * s) + low);
    let c = (2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2;
    let c = 1.0 - (0.5 * z - (z * z * c - r * low));

    let quadrant = quadrant.wrapping_add(quarters);
    let y = select(quadrant & 1 == 0, s.to_bits(), c.to_bits());
    let one = 1.0f32.to_bits();
    let y = select(y & !SIGN > one, one | (y & SIGN), y);
    f32::from_bits(y ^ ((quadrant & 2) << 30))
}
