// Elementary functions on `Real`, in terms of the constants and polynomials of the file that
// includes this one: `single.rs` for f32, `double.rs` for f64.

/// Returns whether `x` is NaN, by its bits.
#[inline(always)]
pub fn is_nan(x: Real) -> bool {
    magnitude(x) > INF
}

/// Computes the natural logarithm ln x.
///
/// # Numerics
///
/// Subnormal arguments included. `log(±0) = -inf`, `log(+inf) = inf`, and a negative argument gives
/// NaN.
///
/// # Source
///
/// x = m·2ᵉ, √½ ≤ m < √2, f = m − 1, ln m = f − f²/2 + f³·P(f).
#[inline(always)]
pub fn log(x: Real) -> Real {
    let (f, e) = log_reduced(x);
    let tail = log_cubic(f) + e * LN2_LO - 0.5 * (f * f);
    log_ends(x, (f + tail) + e * LN2_HI)
}

/// Computes the binary logarithm.
///
/// # Numerics
///
/// Subnormal arguments included, exact for powers of two; ends as [`log`].
///
/// # Source
///
/// As [`log`], log₂ m = ln m + ln m·(log₂ e − 1), the sum f + tail carried with its rounding error.
#[inline(always)]
pub fn log2(x: Real) -> Real {
    let (f, e) = log_reduced(x);
    let tail = log_cubic(f) - 0.5 * (f * f);
    let sum = f + tail;
    let lost = (f - sum) + tail;
    log_ends(x, e + (sum + (sum * LOG2_E_LESS_ONE + lost * LOG2_E)))
}

/// f and e with x = (1 + f)·2ᵉ, √½ ≤ 1 + f < √2, for a positive finite x.
#[inline(always)]
fn log_reduced(x: Real) -> (Real, Real) {
    let bits = x.to_bits();

    // A subnormal is its fraction as an integer times the smallest number, and that integer is
    // exact as a float.
    let subnormal = bits <= FRACTION_MASK;
    let normal = select(subnormal, fraction_as_float(bits).to_bits(), bits);
    let shifted = normal.wrapping_sub(SQRT_HALF_BITS);
    let e = ((shifted as Int >> FRACTION) as i32 - if subnormal { SUBNORMAL_EXPONENT } else { 0 }) as Real;
    (Real::from_bits((shifted & FRACTION_MASK) + SQRT_HALF_BITS) - 1.0, e)
}

/// f³·P(f).
#[inline(always)]
fn log_cubic(f: Real) -> Real {
    f * (f * f) * log_polynomial(f)
}

/// y, except for arguments without a finite logarithm.
#[inline(always)]
fn log_ends(x: Real, y: Real) -> Real {
    let bits = x.to_bits();
    let y = select(bits == INF, INF, y.to_bits());
    let y = select(bits > INF, NAN, y);
    Real::from_bits(select(magnitude(x) == 0, SIGN | INF, y))
}

/// Returns the minimum of two numbers: exact; NaN if either is NaN; −0 is less than +0 (IEEE
/// 754-2019 `minimum`).
#[inline(always)]
pub fn min(a: Real, b: Real) -> Real {
    let least = select(order_bits(a) < order_bits(b), a.to_bits(), b.to_bits());
    Real::from_bits(select(is_nan(a) | is_nan(b), NAN, least))
}

/// Returns the maximum of two numbers: exact; NaN if either is NaN; +0 is greater than −0 (IEEE
/// 754-2019 `maximum`).
#[inline(always)]
pub fn max(a: Real, b: Real) -> Real {
    let greatest = select(order_bits(a) < order_bits(b), b.to_bits(), a.to_bits());
    Real::from_bits(select(is_nan(a) | is_nan(b), NAN, greatest))
}

/// Computes max(x, 0): exact; NaN stays NaN, −0 becomes +0.
#[inline(always)]
pub fn relu(x: Real) -> Real {
    let below = (x.to_bits() >= SIGN) & (x.to_bits() <= (SIGN | INF));
    Real::from_bits(select(below, 0, x.to_bits()))
}

/// e^(high + low) − 1 for |high + low| ≤ ½ ln 2, to a quarter ulp if `high` is exact.
#[inline(always)]
fn exp_pair_less_one(high: Real, low: Real) -> Real {
    let r = high + low;
    high + exp_polynomial(r).mul_add(r * r, low)
}

/// Of (e²ʳ − 1 − 2r)/2r², the highest first.
const TWICE_EXP_COEFFICIENTS: [Real; EXP_COEFFICIENTS.len()] = {
    let mut all = EXP_COEFFICIENTS;
    let (mut i, mut factor) = (all.len(), TWO);
    while i > 0 {
        i -= 1;
        all[i] *= factor;
        factor *= TWO;
    }
    all
};
const TWICE_LOG2_E: Real = TWO * LOG2_E;
const HALF: Real = ONE / TWO;

/// a·b + c, rounded once.
#[inline(always)]
fn fused(a: Real, b: Real, c: Real) -> Real {
    a.mul_add(b, c)
}

/// The greater of x and a bound; NaN stays.
#[inline(always)]
fn at_least(x: Real, least: Real) -> Real {
    if least > x { least } else { x }
}

/// The lesser of x and a bound; NaN stays.
#[inline(always)]
fn at_most(x: Real, most: Real) -> Real {
    if most < x { most } else { x }
}

/// |x|.
#[inline(always)]
fn absolute(x: Real) -> Real {
    Real::from_bits(magnitude(x))
}

/// −|x|.
#[inline(always)]
fn negative(x: Real) -> Real {
    Real::from_bits(x.to_bits() | SIGN)
}

/// A non-negative y with the sign of x.
#[inline(always)]
fn with_sign(y: Real, x: Real) -> Real {
    Real::from_bits(y.to_bits() | (x.to_bits() & SIGN))
}

/// One of two by the sign bit of x.
#[inline(always)]
fn if_negative(x: Real, yes: Real, no: Real) -> Real {
    if x.to_bits() >= SIGN { yes } else { no }
}

/// 2ⁿ for the n that adding [`ROUND`] left, the exponent of a normal number.
#[inline(always)]
fn power_of(shifted: Real) -> Real {
    Real::from_bits((shifted.to_bits() << FRACTION).wrapping_add((BIAS as Bits) << FRACTION))
}

/// y·2ⁿ for the n that adding [`ROUND`] left, rounded once if it is subnormal.
#[inline(always)]
fn scaled(y: Real, shifted: Real) -> Real {
    lower(y, whole(shifted))
}

/// The integer that adding [`ROUND`] left in the low bits.
#[inline(always)]
fn whole(shifted: Real) -> i32 {
    shifted.to_bits() as i32 - ROUND.to_bits() as i32
}

/// y·2ⁿ, rounded once if it is subnormal.
#[inline(always)]
fn lower(y: Real, n: i32) -> Real {
    let half = n >> 1;
    y * power(half) * power(n - half)
}

/// 2ⁿ for the exponents of normal numbers.
#[inline(always)]
fn power(n: i32) -> Real {
    Real::from_bits((Int::from(n + BIAS) << FRACTION) as Bits)
}

/// Bits without the sign.
#[inline(always)]
fn magnitude(x: Real) -> Bits {
    x.to_bits() & !SIGN
}

/// An integer that orders as the float does, −0 below +0.
#[inline(always)]
fn order_bits(x: Real) -> Int {
    let bits = x.to_bits() as Int;
    bits ^ ((bits >> (Bits::BITS - 1)) & Int::MAX)
}

#[inline(always)]
fn select(condition: bool, yes: Bits, no: Bits) -> Bits {
    if condition { yes } else { no }
}

/// a + b for |a| ≥ |b| or a = 0, as the rounded sum and its rounding error; exact.
#[inline(always)]
fn ordered_sum(a: Real, b: Real) -> (Real, Real) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// a·b as the rounded product and its rounding error, by parts of half as many bits; exact where no
/// part underflows.
#[inline(always)]
fn product(a: Real, b: Real) -> (Real, Real) {
    let upper = |x: Real| Real::from_bits(x.to_bits() & UPPER);
    let (a_hi, b_hi) = (upper(a), upper(b));
    let (a_lo, b_lo) = (a - a_hi, b - b_hi);
    let product = a * b;
    (product, ((a_hi * b_hi - product) + (a_hi * b_lo + a_lo * b_hi)) + a_lo * b_lo)
}

/// (a + a_lo) / (b + b_lo), to nearly twice the precision even where the division is off by some
/// units in the last place.
#[inline(always)]
fn quotient((a, a_lo): (Real, Real), (b, b_lo): (Real, Real)) -> (Real, Real) {
    let reciprocal = 1.0 / b;
    let q = a * reciprocal;
    let (p, p_lo) = product(q, b);
    (q, (((a - p) - p_lo) + (a_lo - q * b_lo)) * reciprocal)
}

/// Computes the error function 2/√π ∫₀ˣ e^(−t²) dt.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd, and never beyond ±1. `erf(±inf) = ±1`.
///
/// # Source
///
/// x + x·P(x²) below 0.921875, else 1 − erfc(|x|).
#[inline(always)]
pub fn erf(x: Real) -> Real {
    let size = magnitude(x);
    let a = Real::from_bits(size.min(ERF_ONE));

    let near = a + a * erf_polynomial(a * a);
    let far = 1.0 - erf_complement(a);

    let y = select(size < ERF_SPLIT, near.to_bits(), far.to_bits()) | (x.to_bits() & SIGN);
    Real::from_bits(select(is_nan(x), NAN, y))
}

/// Computes the Gaussian error linear unit x·Φ(x) = ½x(1 + erf(x/√2)).
///
/// # Numerics
///
/// Relative accuracy is preserved in the negative tail. `gelu_erf(-inf) = -0`,
/// `gelu_erf(+inf) = inf`.
///
/// # Source
///
/// Hendrycks and Gimpel, arXiv:1606.08415. The tail Φ(−u) = e^(−u²/2)·P(w)/(u + 2.5), w = (u −
/// 2)/(u + 2.5); u² is carried as the exact square of the multiple of the grid nearest to u and a
/// remainder.
#[inline(always)]
pub fn gelu_erf(x: Real) -> Real {
    let u = Real::from_bits(magnitude(x).min(GELU_ERF_END));
    let negative = x.to_bits() >= SIGN;
    let inside = Real::from_bits(u.to_bits() | (x.to_bits() & SIGN));
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
    gate_ends(x, GELU_ERF_END, share.times(inside))
}

/// Φ(−u) for u from 0 to where it underflows.
#[inline(always)]
fn normal_tail(u: Real) -> Scaled {
    let c = ((u * GRID + ROUND) - ROUND) * (1.0 / GRID);
    let falling = Falling::new(-0.5 * (c * c), -0.5 * ((u - c) * (u + c)));

    // w and its remainder; sums and differences carry their rounding errors.
    let (below, above) = (u - 2.0, u + 2.5);
    let below_lost = u - (below + 2.0);
    let above_lost = (u - (above - 2.5)) + (2.5 - (above - (above - 2.5)));
    let (w, w_lost) = quotient((below, below_lost), (above, above_lost));

    // The last two steps carry their rounding errors.
    let p = tail_polynomial(w);
    let (last, last_lost) = product(p, w);
    let (g, g_lost) = ordered_sum(TAIL_LAST, last);
    let g_low = (g_lost + tail_low(w)) + (last_lost + p * w_lost);

    let m = ordered_sum(1.0, falling.w);
    let (top, top_lost) = product(m.0, g);
    let (high, low) = quotient((top, top_lost + (m.0 * g_low + m.1 * g)), (above, above_lost));
    Scaled { high, low, n: falling.n }
}

/// e^-t for t ≥ 0 as (1 + w)·2ⁿ.
struct Falling {
    /// 1 + w less 1, |w| < ½.
    w: Real,
    /// The exponent, at most 0.
    n: i32,
}

impl Falling {
    /// From −t in two parts; the upper is short enough that n·[`LN2_HI`] is subtracted from it
    /// exactly.
    #[inline(always)]
    fn new(high: Real, low: Real) -> Self {
        let shifted = (high + low) * LOG2_E + ROUND;
        let n = shifted - ROUND;
        Self { w: exp_pair_less_one(high - n * LN2_HI, n * -LN2_LO + low), n: whole(shifted) }
    }
}

/// 2ⁿ, or the smallest normal number where that is smaller: for sums with 1, where it is lost
/// either way.
#[inline(always)]
fn power_beside_one(n: i32) -> Real {
    power(n.max(1 - BIAS))
}

/// A positive number (high + low)·2ⁿ.
struct Scaled {
    high: Real,
    low: Real,
    n: i32,
}

impl Scaled {
    /// The number times a factor.
    #[inline(always)]
    fn times(&self, factor: Real) -> Real {
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

/// Computes the sigmoid-weighted linear unit x/(1 + e⁻ˣ).
///
/// # Numerics
///
/// `silu(-inf) = -0`, `silu(+inf) = inf`.
///
/// # Source
///
/// Elfwing, Uchibe and Doya, arXiv:1702.03118.
#[inline(always)]
pub fn silu(x: Real) -> Real {
    let inside = Real::from_bits(magnitude(x).min(SILU_END) | (x.to_bits() & SIGN));
    let y = logistic(&falling(x, SILU_END), x.to_bits() >= SIGN).times(inside);
    gate_ends(x, SILU_END, y)
}

/// Computes the exponential linear unit: eˣ − 1 below 0, else x.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0. `elu(-inf) = -1`, `elu(+inf) = inf`.
///
/// # Source
///
/// Clevert, Unterthiner and Hochreiter, arXiv:1511.07289. eˣ − 1 = 2ⁿ·(eʳ − 1) + (2ⁿ − 1).
#[inline(always)]
pub fn elu(x: Real) -> Real {
    let below = at_least(negative(x), ELU_END);
    let shifted = fused(below, LOG2_E, ROUND);
    let power = power_of(shifted);
    let y = fused(power, exp_less_one(less_ln2(below, shifted - ROUND)), power - ONE);
    if_negative(x, y, x)
}

/// Computes the piecewise linear sigmoid min(max(x + 3, 0), 6)/6; NaN stays.
#[inline(always)]
pub fn hard_sigmoid(x: Real) -> Real {
    relu6(x + 3.0) * (1.0 / 6.0)
}

/// Computes x·min(max(x + 3, 0), 6)/6, with `hard_swish(-inf) = NaN` as for any factor 0.
///
/// # Source
///
/// Howard et al., arXiv:1905.02244.
#[inline(always)]
pub fn hard_swish(x: Real) -> Real {
    x * hard_sigmoid(x)
}

/// Computes min(max(x, 0), 6); NaN stays.
#[inline(always)]
pub fn relu6(x: Real) -> Real {
    min(relu(x), 6.0)
}

/// Computes the Gaussian error linear unit in its tanh form, ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
///
/// # Numerics
///
/// Relative accuracy is preserved in the negative tail. `gelu(-inf) = -0`, `gelu(+inf) = inf`.
///
/// # Source
///
/// Hendrycks and Gimpel, arXiv:1606.08415. Computed as x/(1 + e⁻ᵗ), t = 2√(2/π)(x + 0.044715x³); t
/// passes 100, so it is carried as an exact part and a remainder, expanded about the multiple of
/// the grid nearest to x.
#[inline(always)]
pub fn gelu(x: Real) -> Real {
    let size = Real::from_bits(magnitude(x).min(GELU_END));
    let inside = Real::from_bits(size.to_bits() | (x.to_bits() & SIGN));
    let y = logistic(&gelu_falling(size), x.to_bits() >= SIGN).times(inside);
    gate_ends(x, GELU_END, y)
}

#[inline(always)]
fn falling(x: Real, end: Bits) -> Falling {
    Falling::new(Real::from_bits(magnitude(x).min(end) | SIGN), 0.0)
}

/// y, but x itself from the limit on, and NaN for NaN.
#[inline(always)]
fn gate_ends(x: Real, end: Bits, y: Real) -> Real {
    let reached = (x.to_bits() as Int) >= end as Int;
    Real::from_bits(select(is_nan(x), NAN, select(reached, x.to_bits(), y.to_bits())))
}

/// e⁻ᵗ for t = 2√(2/π)(x + 0.044715x³) and x from 0 to where it underflows.
#[inline(always)]
fn gelu_falling(x: Real) -> Falling {
    // c is x to a multiple of the grid, d the rest; c and c² are exact.
    let c = ((x * GRID + ROUND) - ROUND) * (1.0 / GRID);
    let d = x - c;
    let c2 = c * c;

    // A + B·c² = top + low, top a multiple of 1/TOP; all but the last two products are exact.
    let c2_hi = ((c2 * SQUARE + ROUND) - ROUND) * (1.0 / SQUARE);
    let near = ((c2 * (TOP * GELU_B[0]) + ROUND) - ROUND) * (1.0 / TOP);
    let rest = (c2_hi * GELU_B[0] - near) + (c2 - c2_hi) * GELU_B[0];
    let low = rest + (c2 * GELU_B[1] + GELU_A[1]);
    let top = GELU_A[0] + near;

    // t = c(A + B·c²) + d(A + B(3c² + 3cd + d²)).
    let slope = top + (low + (GELU_B[0] + GELU_B[1]) * (2.0 * c2 + d * (3.0 * c + d)));
    Falling::new(-(c * top), -(c * low + d * slope))
}

/// x less a multiple of π/2: r + low, |r| ≤ π/4, and the multiple modulo 4.
struct Reduced {
    r: Real,
    low: Real,
    quadrant: u32,
}

/// Computes the sine of an angle in radians.
///
/// # Numerics
///
/// For every finite angle, close to multiples of π included. Odd, and always in [-1, 1].
/// `sin(±inf) = NaN`.
///
/// # Source
///
/// Polynomials on |r| ≤ π/4. Reduction by Cody and Waite with π/2 in four parts for near angles,
/// beyond that by Payne and Hanek (ACM SIGNUM 18, 1983) in integers.
#[inline]
pub fn sin(x: Real) -> Real {
    if is_near(x) { sin_near(x) } else { odd(x, far(x, 0)) }
}

/// Computes the cosine of an angle in radians.
///
/// # Numerics
///
/// As for [`sin`].
#[inline]
pub fn cos(x: Real) -> Real {
    if is_near(x) { cos_near(x) } else { far(x, 1) }
}

/// Whether [`sin_near`] and [`cos_near`] are as good as [`sin`] and [`cos`]: 12 867 rad in f32, 823
/// 549 rad in f64.
#[inline(always)]
pub fn is_near(x: Real) -> bool {
    magnitude(x) <= NEAR
}

/// [`sin`] for near angles, without a branch: loops of it vectorise. Beyond that an absolute error
/// of some ulp of x, and NaN for the largest.
#[inline(always)]
pub fn sin_near(x: Real) -> Real {
    odd(x, near(Real::from_bits(magnitude(x)), 0))
}

/// [`cos`] as [`sin_near`] is to [`sin`].
#[inline(always)]
pub fn cos_near(x: Real) -> Real {
    near(x, 1)
}

#[inline(always)]
fn odd(x: Real, y: Real) -> Real {
    Real::from_bits(y.to_bits() ^ (x.to_bits() & SIGN))
}

#[inline(always)]
fn near(x: Real, quarters: u32) -> Real {
    let outside = magnitude(x) > NEAR_END;
    let y = sine_quarters(&reduce_near(Real::from_bits(select(outside, 0, x.to_bits()))), quarters);
    Real::from_bits(select(outside, NAN, y.to_bits()))
}

#[cold]
fn far(x: Real, quarters: u32) -> Real {
    if x.is_finite() { sine_quarters(&reduce_far(Real::from_bits(magnitude(x))), quarters) } else { Real::from_bits(NAN) }
}

#[inline(always)]
fn reduce_near(x: Real) -> Reduced {
    let shifted = x * TWO_OVER_PI + ROUND;
    let n = shifted - ROUND;
    let r = x - n * HALF_PI[0];
    let high = r - n * HALF_PI[1];

    // What follows is rounded: r carries the sum, low the rounding error.
    let r = high - n * HALF_PI[2];
    let low = ((high - r) - n * HALF_PI[2]) - n * HALF_PI[3];
    // The cast changes the type only on f64.
    #[allow(clippy::unnecessary_cast)]
    let quadrant = shifted.to_bits() as u32;
    Reduced { r, low, quadrant }
}

/// sin(x + quarters·π/2).
#[inline(always)]
fn sine_quarters(&Reduced { r, low, quadrant }: &Reduced, quarters: u32) -> Real {
    let z = r * r;
    let s = sine_polynomial(z);
    let s = r + (r * (z * s) + low);
    let c = cosine_polynomial(z);
    let c = 1.0 - (0.5 * z - (z * z * c - r * low));

    let quadrant = quadrant.wrapping_add(quarters);
    let y = select(quadrant & 1 == 0, s.to_bits(), c.to_bits());
    let one = Real::to_bits(1.0);
    let y = select(y & !SIGN > one, one | (y & SIGN), y);
    Real::from_bits(y ^ (Bits::from(quadrant & 2) << (Bits::BITS - 2)))
}
