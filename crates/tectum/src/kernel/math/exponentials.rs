// The exponentials, in terms of the constants and steps of the file that includes this one: `single.rs`, `double.rs`, or
// `single/four.rs` for four arguments side by side.

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
/// Relative accuracy kept down to 0; odd, and never beyond ±1. `tanh(±inf) = ±1`.
///
/// # Source
///
/// y = t/(t + 2) with t = e²ˣ − 1 = 2ⁿ·(eʳ − 1) + (2ⁿ − 1), and one step of Newton's method on t − y·(t + 2), which has the sum
/// without its rounding: the slope 1/(t + 2) = (1 − y)/2 is taken times 1 − y, since the step matters only where y is small.
#[inline(always)]
pub fn tanh(x: Real) -> Real {
    let a = at_most(absolute(x), TANH_ONE);
    let twice = a + a;
    let shifted = fused(twice, LOG2_E, ROUND);
    let power = power_of(shifted);
    let t = fused(exp_less_one(less_ln2(twice, shifted - ROUND)), power, power - ONE);
    let y = t / (t + TWO);
    let rest = fused(y, -TWO, fused(y, -t, t));
    let near = fused(y, -SQRT_HALF, SQRT_HALF);
    with_sign(fused(rest, near * near, y), x)
}

/// Computes the logistic function 1/(1 + e⁻ˣ).
///
/// # Numerics
///
/// Always in [0, 1]. `sigmoid(-inf) = 0`, `sigmoid(+inf) = 1`.
///
/// # Source
///
/// 1/(1 + e) or e/(1 + e) with e = exp(−|x|): one division, and nothing overflows. The roundings of e, of the sum and of the
/// quotient add up to 2.3 ulp; half of that took twice the time.
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
    let mut p = EXP_COEFFICIENTS[0];
    let mut i = 1;
    while i < EXP_COEFFICIENTS.len() {
        p = fused(p, r, EXP_COEFFICIENTS[i]);
        i += 1;
    }
    p
}
