// Tangent and inverse trigonometric functions on `Real`, in terms of the steps of `functions.rs`
// and `exponentials.rs`.

/// Computes the tangent of an angle in radians.
///
/// # Numerics
///
/// For every finite angle. Odd. `tan(±inf) = NaN`.
///
/// # Source
///
/// The quotient of sine and cosine of one reduced angle.
#[inline]
pub fn tan(x: Real) -> Real {
    if is_near(x) { tan_near(x) } else { odd(x, far_tan(x)) }
}

/// [`tan`] as [`sin_near`] is to [`sin`].
#[inline(always)]
pub fn tan_near(x: Real) -> Real {
    let size = magnitude(x);
    let outside = size > NEAR_END;
    let y = reduced_tan(&reduce_near(Real::from_bits(select(outside, 0, size))));
    odd(x, Real::from_bits(select(outside, NAN, y.to_bits())))
}

#[cold]
fn far_tan(x: Real) -> Real {
    if x.is_finite() { reduced_tan(&reduce_far(Real::from_bits(magnitude(x)))) } else { Real::from_bits(NAN) }
}

#[inline(always)]
fn reduced_tan(x: &Reduced) -> Real {
    sine_quarters(x, 0) / sine_quarters(x, 1)
}

/// s and the arcsine of s less s, where s is a up to ½, beyond it √((1 − a)/2).
#[inline(always)]
fn arc(a: Real) -> (Real, Real) {
    let half = (ONE - a) * HALF;
    let is_large = a > HALF;
    let z = if is_large { half } else { a * a };
    let s = if is_large { half.sqrt() } else { a };
    (s, s * (z * polynomial(&ARCSINE_COEFFICIENTS, z)))
}

/// Computes the arcsine.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd. NaN beyond ±1.
///
/// # Source
///
/// x + x³·P(x²) up to ½, else π/2 − 2·asin(√((1 − x)/2)).
#[inline(always)]
pub fn asin(x: Real) -> Real {
    let a = absolute(x);
    let (s, rest) = arc(a);
    let large = RIGHT_ANGLE[0] - (TWO * s + (TWO * rest - RIGHT_ANGLE[1]));
    with_sign(if a > HALF { large } else { s + rest }, x)
}

/// Computes the arccosine.
///
/// # Numerics
///
/// Relative accuracy is preserved where it is small. NaN beyond ±1.
///
/// # Source
///
/// π/2 − asin(x) up to ½, else 2·asin(√((1 − x)/2)), for negative x π less that.
#[inline(always)]
pub fn acos(x: Real) -> Real {
    let a = absolute(x);
    let (s, rest) = arc(a);
    let rest_of_right = RIGHT_ANGLE[0] - (s + (rest - RIGHT_ANGLE[1]));
    let small = if_negative(x, RIGHT_ANGLE[0] + (s + (rest + RIGHT_ANGLE[1])), rest_of_right);
    let large = TWO * if_negative(x, rest_of_right, s + rest);
    if a > HALF { large } else { small }
}

/// Computes the arctangent.
///
/// # Numerics
///
/// Relative accuracy is preserved down to 0; odd, and never beyond ±π/2. `atan(±inf) = ±π/2`.
///
/// # Source
///
/// x + x³·P(x²) up to tan(π/8), π/4 and that of (x − 1)/(x + 1) up to its inverse, else π/2 and
/// that of −1/x.
#[inline(always)]
pub fn atan(x: Real) -> Real {
    let a = at_most(absolute(x), ATAN_END);
    let (is_near, is_far) = (a <= ATAN_NEAR, a > ATAN_FAR);
    let top = if is_near {
        a
    } else if is_far {
        -ONE
    } else {
        a - ONE
    };
    let below = if is_near {
        ONE
    } else if is_far {
        a
    } else {
        a + ONE
    };
    let part = if is_near {
        0.0
    } else if is_far {
        ONE
    } else {
        HALF
    };
    let u = top / below;
    let z = u * u;
    let rest = u + fused(u, z * polynomial(&ARCTANGENT_COEFFICIENTS, z), part * RIGHT_ANGLE[1]);
    with_sign(part * RIGHT_ANGLE[0] + rest, x)
}
