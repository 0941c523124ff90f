//! The error function and the gate made of it.

use super::logistic::{Falling, Scaled, gate_ends, power_beside_one};
use super::pair::{ordered_sum, product, quotient};
use super::{NAN, ROUND, SIGN, exp_normal, is_nan, magnitude, select};

/// Computes the error function 2/√π ∫₀ˣ e^(−t²) dt.
///
/// # Numerics
///
/// At most 1.3 ulp, relative accuracy kept down to 0; odd, and never beyond ±1. `erf(±inf) = ±1`.
///
/// # Source
///
/// x + x·P₆(x²) below 0.921875, else 1 − e^(P₇(|x|)) with P₇ near ln erfc; both fitted to least relative error of `erf`.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    const SPLIT: u32 = 0x3f6c_0000;
    const ONE_FROM: u32 = 0x407c_0000;
    let size = magnitude(x);
    let a = f32::from_bits(size.min(ONE_FROM));

    let z = a * a;
    let p = 7.997_498e-5;
    let p = p * z - 8.049_931e-4;
    let p = p * z + 5.192_415e-3;
    let p = p * z - 2.685_573_3e-2;
    let p = p * z + 1.128_362_6e-1;
    let p = p * z - 3.761_263e-1;
    let p = p * z + 1.283_791_7e-1;
    let near = a + a * p;

    let p = -2.109_835e-5;
    let p = p * a + 4.345_036_3e-4;
    let p = p * a - 4.171_272e-3;
    let p = p * a + 2.511_999e-2;
    let p = p * a - 1.082_809_6e-1;
    let p = p * a - 6.333_461_4e-1;
    let p = p * a - 1.129_515_3;
    let p = p * a + 1.747_539_6e-4;
    let far = 1.0 - exp_normal(p);

    let y = select(size < SPLIT, near.to_bits(), far.to_bits()) | (x.to_bits() & SIGN);
    f32::from_bits(select(is_nan(x), NAN, y))
}

/// From 14.5 on `gelu_erf` is x, or 0.
const END: u32 = 0x4168_0000;

/// Computes the Gaussian error linear unit x·Φ(x) = ½x(1 + erf(x/√2)).
///
/// # Numerics
///
/// At most 1.8 ulp, relative accuracy kept in the negative tail. `gelu_erf(-inf) = -0`, `gelu_erf(+inf) = inf`.
///
/// # Source
///
/// Hendrycks and Gimpel, arXiv:1606.08415. The tail Φ(−u) = e^(−u²/2)·P₁₁(w)/(u + 2.5), w = (u − 2)/(u + 2.5), P₁₁ fitted to
/// least relative error; u² is carried as the exact square of the multiple of 1/64 nearest to u and a remainder.
#[inline(always)]
pub fn gelu_erf(x: f32) -> f32 {
    let u = f32::from_bits(magnitude(x).min(END));
    let negative = x.to_bits() >= SIGN;
    let inside = f32::from_bits(u.to_bits() | (x.to_bits() & SIGN));
    let tail = normal_tail(u);

    // Φ(x) is the tail, or 1 less the tail.
    let power = power_beside_one(tail.n);
    let (high, low) = (tail.high * power, tail.low * power);
    let (body, lost) = ordered_sum(1.0, -high);
    let share = Scaled {
        high: if negative { tail.high } else { body },
        low: if negative { tail.low } else { lost - low },
        n: if negative { tail.n } else { 0 },
    };
    gate_ends(x, END, share.times(inside))
}

/// Φ(−u) for 0 ≤ u ≤ 14.5.
#[inline(always)]
fn normal_tail(u: f32) -> Scaled {
    let c = ((u * 64.0 + ROUND) - ROUND) * 1.562_5e-2;
    let falling = Falling::new(-0.5 * (c * c), -0.5 * ((u - c) * (u + c)));

    // w and its remainder; sums and differences carry what their rounding lost.
    let (below, above) = (u - 2.0, u + 2.5);
    let below_lost = u - (below + 2.0);
    let above_lost = (u - (above - 2.5)) + (2.5 - (above - (above - 2.5)));
    let (w, w_lost) = quotient((below, below_lost), (above, above_lost));

    let p = 7.590_033e-5;
    let p = p * w - 6.325_491e-5;
    let p = p * w - 5.454_203e-4;
    let p = p * w - 2.628_223_2e-4;
    let p = p * w + 1.952_935_4e-3;
    let p = p * w + 3.529_246e-3;
    let p = p * w - 5.249_216_7e-3;
    let p = p * w - 2.295_117_5e-2;
    let p = p * w + 2.230_123_6e-2;
    let p = p * w + 0.157_680_72;
    let p = p * w - 0.513_991_1;
    let (last, last_lost) = product(p, w);
    let (g, g_lost) = ordered_sum(0.756_459, last);
    let g_low = (g_lost + 6.657e-9) + (last_lost + p * w_lost);

    let m = ordered_sum(1.0, falling.w);
    let (top, top_lost) = product(m.0, g);
    let (high, low) = quotient((top, top_lost + (m.0 * g_low + m.1 * g)), (above, above_lost));
    Scaled { high, low, n: falling.n }
}
