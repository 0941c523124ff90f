// Hyperbolic functions and their inverses on `Real`, in terms of the steps of `functions.rs` and
// `exponentials.rs`.

/// eᵃ/2 for 0 ≤ a up to [`SINH_MAX`].
#[inline(always)]
fn half_exp(a: Real) -> Real {
    let shifted = fused(a, LOG2_E, ROUND);
    lower(ONE + exp_less_one(less_ln2(a, shifted - ROUND)), whole(shifted).wrapping_sub(1))
}

/// Computes the hyperbolic sine.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd. `sinh(±inf) = ±inf`, overflow gives infinity.
///
/// # Source
///
/// x + x³·P(x²) below 1, else (eˣ − e⁻ˣ)/2.
#[inline(always)]
pub fn sinh(x: Real) -> Real {
    let a = at_most(absolute(x), Real::from_bits(SINH_MAX));
    let z = at_most(a * a, ONE);
    let near = fused(a, z * polynomial(&SINH_COEFFICIENTS, z), a);
    let half_exp = half_exp(a);
    let far = half_exp - (HALF * HALF) / half_exp;
    let y = if a < ONE { near } else { far };
    let overflows = (magnitude(x) > SINH_MAX) & !is_nan(x);
    with_sign(Real::from_bits(select(overflows, INF, y.to_bits())), x)
}

/// Computes the hyperbolic cosine (eˣ + e⁻ˣ)/2.
///
/// # Numerics
///
/// `cosh(±inf) = inf`, overflow gives infinity.
#[inline(always)]
pub fn cosh(x: Real) -> Real {
    let half_exp = half_exp(at_most(absolute(x), Real::from_bits(SINH_MAX)));
    let y = half_exp + (HALF * HALF) / half_exp;
    let overflows = (magnitude(x) > SINH_MAX) & !is_nan(x);
    Real::from_bits(select(overflows, INF, y.to_bits()))
}

/// asinh(a) for a ≥ 0.
#[inline(always)]
fn asinh_positive(a: Real) -> Real {
    let z = at_most(a * a, HALF * HALF);
    let near = fused(a, z * polynomial(&ASINH_COEFFICIENTS, z), a);

    // a + √(a² + 1), each step with its rounding error.
    let b = at_most(a, ASINH_FAR);
    let square = b * b;
    let square_low = fused(b, b, -square);
    let (sum, sum_low) = ordered_sum(at_least(square, ONE), at_most(square, ONE));
    let root = sum.sqrt();
    let root_low = (fused(-root, root, sum) + (sum_low + square_low)) / (TWO * root);
    let (total, total_low) = ordered_sum(root, b);

    let r = ONE / at_least(a, ONE);
    let z = r * r;
    let is_far = a > ASINH_FAR;
    let high = if is_far { a } else { total };
    let low = if is_far { LN2 + z * (0.25 - 0.09375 * z) } else { (total_low + root_low) / total };
    if a < HALF { near } else { log(high) + low }
}

/// Computes the inverse hyperbolic sine.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd. `asinh(±inf) = ±inf`.
///
/// # Source
///
/// x + x³·P(x²) below ½; ln(x + √(x² + 1)), both sums with their rounding errors; for large x ln x +
/// ln 2 + 1/(4x²) − 3/(32x⁴).
#[inline(always)]
pub fn asinh(x: Real) -> Real {
    with_sign(asinh_positive(absolute(x)), x)
}

/// Computes the inverse hyperbolic cosine.
///
/// # Numerics
///
/// Relative accuracy is preserved where it is small. `acosh(inf) = inf`; NaN below 1.
///
/// # Source
///
/// 2·asinh(√((x − 1)/2)).
#[inline(always)]
pub fn acosh(x: Real) -> Real {
    TWO * asinh_positive(((x - ONE) * HALF).sqrt())
}

/// Computes the inverse hyperbolic tangent.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd. `atanh(±1) = ±inf`; NaN beyond.
///
/// # Source
///
/// x + x³·P(x²) below ½, else ½·ln((1 + x)/(1 − x)).
#[inline(always)]
pub fn atanh(x: Real) -> Real {
    let a = absolute(x);
    let z = at_most(a * a, HALF * HALF);
    let near = fused(a, z * polynomial(&ATANH_COEFFICIENTS, z), a);
    let far = HALF * log((ONE + a) / (ONE - a));
    with_sign(if a < HALF { near } else { far }, x)
}
