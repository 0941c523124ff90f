// Powers on `Real`, in terms of the steps of `functions.rs` and `exponentials.rs`.

/// log₂ a of a positive finite a in two parts.
///
/// With m = a/2ᵉ and s = (m − 1)/(m + 1), ln m = 2s·(1 + s²/3 + s⁴·Q(s²)); the first two terms are
/// carried in two parts.
#[inline(always)]
fn log2_pair(a: Real) -> (Real, Real) {
    let (f, e) = log_reduced(a);
    let (s, s_low) = quotient((f, 0.0), ordered_sum(TWO, f));
    let (z, z_low) = product(s, s);
    let z_low = z_low + TWO * (s * s_low);
    let (k, k_low) = ordered_sum(THIRD[0], z * polynomial(&POWER_COEFFICIENTS, z));
    let k_low = k_low + THIRD[1];
    let (t, t_low) = product(z, k);
    let t_low = t_low + (z * k_low + z_low * k);
    let (v, v_low) = product(s, t);
    let v_low = v_low + (s * t_low + s_low * t);
    let (h, h_low) = ordered_sum(s, v);
    let h_low = h_low + (v_low + s_low);
    let (g, g_low) = product(TWO * h, LOG2_E);
    let g_low = g_low + TWO * (h * LOG2_E_LOW + h_low * LOG2_E);
    let (high, low) = ordered_sum(e, g);
    ordered_sum(high, low + g_low)
}

/// aʸ for a positive finite a and a finite y; beyond the exponents of the type infinity and 0.
#[inline(always)]
fn power_positive(a: Real, y: Real) -> Bits {
    let (high, low) = log2_pair(a);
    let inside = Real::from_bits(magnitude(y).min(POW_END) | (y.to_bits() & SIGN));
    let about = inside * high;
    let is_outside = absolute(about) > POW_OUTSIDE;
    let exponent = Real::from_bits(select(is_outside, 0, inside.to_bits()));
    let (t, t_low) = product(exponent, high);
    let t_low = t_low + exponent * low;
    let shifted = t + ROUND;
    let f = t - (shifted - ROUND);
    let power = scaled(ONE + exp_less_one(fused(t_low, LN2, f * LN2)), shifted);
    let end = select(about > ONE, INF, 0);
    select(is_outside, end, power.to_bits())
}

/// Computes xʸ.
///
/// # Numerics
///
/// By the rules of IEEE 754 `pow`: x⁰ = 1 and 1ʸ = 1 even for NaN; a negative x has real powers
/// only for whole y, else the result is NaN; zero and infinity have the powers of a limit, with the
/// sign of x for odd y. Overflow gives infinity.
///
/// # Source
///
/// 2 to the power of y·log₂ |x|, which is carried in two parts.
#[inline(always)]
pub fn pow(x: Real, y: Real) -> Real {
    let (size, y_size) = (magnitude(x), magnitude(y));
    let one = Real::to_bits(ONE);
    let y_is_finite = y_size < INF;
    let x_is_ordinary = (size > 0) & (size < INF);

    let y_finite = Real::from_bits(select(y_is_finite, y.to_bits(), 0));
    let is_whole = |y: Real| y.round_ties_even().to_bits() == y.to_bits();
    let y_is_whole = is_whole(y_finite);
    let y_is_odd = y_is_whole & !is_whole(y_finite * HALF);

    let inside = power_positive(Real::from_bits(select(x_is_ordinary, size, one)), y_finite);
    let grows = (size > one) == (y.to_bits() < SIGN);
    let z = select(x_is_ordinary & y_is_finite, inside, select(grows, INF, 0));
    let z = select(size == one, one, z);
    let is_negative = x.to_bits() >= SIGN;
    let z = z | select(is_negative & y_is_odd, SIGN, 0);
    let z = select(is_negative & x_is_ordinary & !y_is_whole, NAN, z);
    let z = select((size > INF) | (y_size > INF), NAN, z);
    Real::from_bits(select((y_size == 0) | (x.to_bits() == one), one, z))
}
