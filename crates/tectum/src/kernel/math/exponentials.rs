// The exponentials, in terms of the constants and steps of the file that includes this one:
// `single.rs`, `double.rs`, or `single/four.rs` for four arguments side by side.

/// Computes eˣ.
///
/// # Numerics
///
/// `exp(-inf) = 0`, `exp(+inf) = inf`, overflow gives inf.
///
/// # Source
///
/// x = n·ln 2 + r, |r| ≤ ½ ln 2, eʳ = 1 + r + r²·P(r).
#[inline(always)]
pub fn exp(x: Real) -> Real {
    let inside = at_most(at_least(x, EXP_END), EXP_TOP);
    let shifted = fused(inside, LOG2_E, ROUND);
    scaled(ONE + exp_less_one(less_ln2(inside, shifted - ROUND)), shifted)
}

/// Computes 2ˣ.
///
/// # Numerics
///
/// Exact for whole numbers. `exp2(-inf) = 0`, `exp2(+inf) = inf`, overflow gives inf.
///
/// # Source
///
/// As [`exp`], with n the whole number nearest to x and r = (x − n)·ln 2.
#[inline(always)]
pub fn exp2(x: Real) -> Real {
    let inside = at_most(at_least(x, EXP2_END), EXP2_TOP);
    let shifted = inside + ROUND;
    scaled(ONE + exp_less_one((inside - (shifted - ROUND)) * LN2), shifted)
}

/// Computes the hyperbolic tangent.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd, and never beyond ±1. `tanh(±inf) = ±1`.
///
/// # Source
///
/// y = t/(t + 1) with t = (e²ˣ − 1)/2 = 2ⁿ·(e²ʳ − 1)/2 + (2ⁿ − 1)/2 and r = x − n·½ ln 2, first by
/// about the reciprocal of t + 1, then by one step of Newton's method on t − y·(t + 1), which has
/// the sum without its rounding and squares the error of the reciprocal.
#[inline(always)]
pub fn tanh(x: Real) -> Real {
    let a = at_most(absolute(x), TANH_ONE);
    let shifted = fused(a, TWICE_LOG2_E, ROUND);
    let power = power_of(shifted);
    let r = less_half_ln2(a, shifted - ROUND);
    let t = fused(fused(polynomial(&TWICE_EXP_COEFFICIENTS, r), r * r, r), power, fused(power, HALF, -HALF));
    let inverse = about_reciprocal(t + ONE);
    let y = t * inverse;
    let rest = fused(y, -t, t) - y;
    with_sign(fused(rest, inverse, y), x)
}

/// Computes the logistic function 1/(1 + e⁻ˣ).
///
/// # Numerics
///
/// Always in [0, 1]. `sigmoid(-inf) = 0`, `sigmoid(+inf) = 1`.
///
/// # Source
///
/// 1/(1 + e) or e/(1 + e) with e = exp(−|x|): one division, and nothing overflows. The roundings of
/// e, of the sum and of the quotient add up to 2.3 ulp; half of that took twice the time.
#[inline(always)]
pub fn sigmoid(x: Real) -> Real {
    let inside = at_least(negative(x), EXP_END);
    let shifted = fused(inside, LOG2_E, ROUND);
    let e = scaled(ONE + exp_less_one(less_ln2(inside, shifted - ROUND)), shifted);
    if_negative(x, e, ONE) / (ONE + e)
}

/// eˣ for an x whose exponential is a normal number.
#[inline(always)]
pub(crate) fn exp_normal(x: Real) -> Real {
    let shifted = fused(x, LOG2_E, ROUND);
    (ONE + exp_less_one(less_ln2(x, shifted - ROUND))) * power_of(shifted)
}

/// x − n·ln 2, the first step exact.
#[inline(always)]
fn less_ln2(x: Real, n: Real) -> Real {
    fused(n, -LN2_LO, fused(n, -LN2_HI, x))
}

/// eʳ − 1 for |r| ≤ ½ ln 2.
#[inline(always)]
fn exp_less_one(r: Real) -> Real {
    fused(exp_polynomial(r), r * r, r)
}

/// (eʳ − 1 − r)/r² for |r| ≤ ½ ln 2.
#[inline(always)]
fn exp_polynomial(r: Real) -> Real {
    polynomial(&EXP_COEFFICIENTS, r)
}

/// The highest coefficient first.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[Real; N], r: Real) -> Real {
    let mut p = coefficients[0];
    let mut i = 1;
    while i < N {
        p = fused(p, r, coefficients[i]);
        i += 1;
    }
    p
}
