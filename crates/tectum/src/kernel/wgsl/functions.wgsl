// Sign, tangent, inverse, hyperbolic and power functions and remainders, the same text for f32 and for f64. Needs the math prelude, whose rules hold
// here too. Native twins: `src/kernel/math/{remainders,trigonometric,hyperbolic,powers}.rs`. Constants and polynomials of each width are in
// functions_f32.wgsl and functions_f64.wgsl, of which a kernel has one; the largest errors are stated there. NaN gives NaN except where stated.

// y, but NaN where a condition holds.
fn tectum_nan_if(condition: bool, y: TectumBits) -> real {
    return bitcast<real>(select(y, TECTUM_NAN, condition));
}

// The bits of a non-negative y with the sign of x.
fn tectum_with_sign(y: real, x: real) -> TectumBits {
    return bitcast<TectumBits>(y) | (bitcast<TectumBits>(x) & TECTUM_SIGN);
}

// -1, 1, or x itself if it is zero or NaN. Exact.
fn tectum_sign(x: real) -> real {
    let bits = bitcast<TectumBits>(x);
    let one = TECTUM_ONE | (bits & TECTUM_SIGN);
    return bitcast<real>(select(one, bits, tectum_magnitude(x) == TectumBits(0) || tectum_is_nan(x)));
}

// The tangent of any angle in radians: odd. tan(±inf) = NaN.
fn tectum_tan(x: real) -> real {
    let size = tectum_magnitude(x);
    if size >= TECTUM_INF {
        return tectum_nan();
    }
    var reduced: TectumReduced;
    if size > TECTUM_ANGLE_NEAR {
        reduced = tectum_reduce_far(bitcast<real>(size));
    } else {
        reduced = tectum_reduce_near(bitcast<real>(size));
    }
    let y = tectum_sine_quarters(reduced, 0u) / tectum_sine_quarters(reduced, 1u);
    return bitcast<real>(bitcast<TectumBits>(y) ^ (bitcast<TectumBits>(x) & TECTUM_SIGN));
}

// s and the arcsine of s less s, where s is a up to 1/2, beyond it sqrt((1 - a)/2).
fn tectum_arc(a: real) -> vec2<real> {
    let half = max(0.5 * (1.0 - a), real(0.0));
    let is_large = a > 0.5;
    let z = select(a * a, half, is_large);
    let s = select(a, sqrt(half), is_large);
    return vec2<real>(s, s * (z * tectum_arcsine_polynomial(z)));
}

// The arcsine: odd; NaN beyond ±1.
fn tectum_asin(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_ONE));
    let arc = tectum_arc(a);
    let large = TECTUM_RIGHT_HI - tectum_hold(2.0 * arc.x + (2.0 * arc.y - TECTUM_RIGHT_LO));
    return tectum_nan_if(size > TECTUM_ONE, tectum_with_sign(select(arc.x + arc.y, large, a > 0.5), x));
}

// The arccosine; NaN beyond ±1.
fn tectum_acos(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_ONE));
    let negative = bitcast<TectumBits>(x) >= TECTUM_SIGN;
    let arc = tectum_arc(a);
    let s = select(arc.x, -arc.x, negative);
    let rest = select(arc.y, -arc.y, negative);
    let small = TECTUM_RIGHT_HI - tectum_hold(s + (rest - TECTUM_RIGHT_LO));
    let large = select(arc.x + arc.y, TECTUM_RIGHT_HI - tectum_hold(arc.x + (arc.y - TECTUM_RIGHT_LO)), negative);
    return tectum_nan_if(size > TECTUM_ONE, bitcast<TectumBits>(select(small, 2.0 * large, a > 0.5)));
}

// The arctangent: odd, never beyond ±pi/2. The arctangent of a is that of a, pi/4 and that of (a - 1)/(a + 1), or pi/2 and that of -1/a.
fn tectum_atan(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_ATAN_END));
    let is_near = a <= TECTUM_ATAN_NEAR;
    let is_far = a > TECTUM_ATAN_FAR;
    let top = select(select(a - 1.0, real(-1.0), is_far), a, is_near);
    let below = select(select(a + 1.0, a, is_far), real(1.0), is_near);
    let part = select(select(real(0.5), real(1.0), is_far), real(0.0), is_near);
    let u = top / below;
    let z = u * u;
    let rest = tectum_hold(u + (u * (z * tectum_arctangent_polynomial(z)) + part * TECTUM_RIGHT_LO));
    return tectum_nan_if(size > TECTUM_INF, tectum_with_sign(part * TECTUM_RIGHT_HI + rest, x));
}

// e^a / 2 for 0 <= a <= TECTUM_SINH_MAX.
fn tectum_half_exp(a: real) -> real {
    let n = tectum_round(a * TECTUM_LOG2_E);
    let w = tectum_exp_less_one(tectum_hold(a - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    return tectum_raise(1.0 + w, i32(n) - 1);
}

// e^-a / 2, of e^a / 2; where it is lost next to that, any small number.
fn tectum_half_exp_inverse(half_exp: real) -> real {
    return 0.25 / min(half_exp, TECTUM_HALF_EXP_END);
}

// The hyperbolic sine: odd. sinh(±inf) = ±inf. x + x^3 P(x^2) below 1, else (e^x - e^-x)/2.
fn tectum_sinh(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_SINH_MAX));
    let z = min(a * a, real(1.0));
    let near = a + a * (z * tectum_sinh_polynomial(z));
    let half_exp = tectum_half_exp(a);
    let far = half_exp - tectum_half_exp_inverse(half_exp);
    var y = select(bitcast<TectumBits>(far), bitcast<TectumBits>(near), size < TECTUM_ONE);
    y = select(y, TECTUM_INF, size > TECTUM_SINH_MAX) | (bitcast<TectumBits>(x) & TECTUM_SIGN);
    return tectum_nan_if(tectum_is_nan(x), y);
}

// The hyperbolic cosine (e^x + e^-x)/2. cosh(±inf) = inf.
fn tectum_cosh(x: real) -> real {
    let size = tectum_magnitude(x);
    let half_exp = tectum_half_exp(bitcast<real>(min(size, TECTUM_SINH_MAX)));
    let y = bitcast<TectumBits>(half_exp + tectum_half_exp_inverse(half_exp));
    return tectum_nan_if(tectum_is_nan(x), select(y, TECTUM_INF, size > TECTUM_SINH_MAX));
}

// The inverse hyperbolic sine of a finite a >= 0. a + a^3 P(a^2) below 1/2; ln(a + sqrt(a^2 + 1)), both sums with what their rounding lost; from
// TECTUM_ASINH_FAR on ln a + ln 2 + 1/(4 a^2) - 3/(32 a^4).
fn tectum_asinh_positive(a: real) -> real {
    let z = min(a * a, real(0.25));
    let near = a + a * (z * tectum_asinh_polynomial(z));

    let b = min(a, TECTUM_ASINH_FAR);
    let square = tectum_product(b, b);
    let sum = tectum_ordered_sum(max(square.x, real(1.0)), min(square.x, real(1.0)));
    let root = tectum_hold(sqrt(sum.x));
    let again = tectum_product(root, root);
    let root_low = (tectum_hold(tectum_hold(sum.x - again.x) - again.y) + (sum.y + square.y)) / (2.0 * root);
    let whole = tectum_ordered_sum(root, b);

    let r = 1.0 / max(a, real(1.0));
    let z_far = r * r;
    let is_far = a > TECTUM_ASINH_FAR;
    let high = select(whole.x, a, is_far);
    let low = select((whole.y + root_low) / whole.x, TECTUM_LN2 + z_far * (0.25 - 0.09375 * z_far), is_far);
    return select(tectum_log(high) + low, near, a < 0.5);
}

// The inverse hyperbolic sine: odd. asinh(±inf) = ±inf.
fn tectum_asinh(x: real) -> real {
    let size = tectum_magnitude(x);
    let y = bitcast<TectumBits>(tectum_asinh_positive(bitcast<real>(min(size, TECTUM_INF - TectumBits(1)))));
    return tectum_nan_if(tectum_is_nan(x), select(y, TECTUM_INF, size == TECTUM_INF) | (bitcast<TectumBits>(x) & TECTUM_SIGN));
}

// The inverse hyperbolic cosine 2 asinh(sqrt((x - 1)/2)). acosh(inf) = inf; NaN below 1.
fn tectum_acosh(x: real) -> real {
    let bits = bitcast<TectumBits>(x);
    let inside = bitcast<real>(select(TECTUM_ONE, bits, bits > TECTUM_ONE && bits < TECTUM_INF));
    let y = bitcast<TectumBits>(2.0 * tectum_asinh_positive(sqrt(0.5 * (inside - 1.0))));
    return tectum_nan_if(bits < TECTUM_ONE || bits > TECTUM_INF, select(y, TECTUM_INF, bits == TECTUM_INF));
}

// The inverse hyperbolic tangent: odd. atanh(±1) = ±inf; NaN beyond. x + x^3 P(x^2) below 1/2, else ln((1 + x)/(1 - x))/2.
fn tectum_atanh(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(select(TectumBits(0), size, size < TECTUM_ONE));
    let z = min(a * a, real(0.25));
    let near = a + a * (z * tectum_atanh_polynomial(z));
    let far = 0.5 * tectum_log((1.0 + a) / (1.0 - a));
    let y = select(bitcast<TectumBits>(select(far, near, a < 0.5)), TECTUM_INF, size == TECTUM_ONE);
    return tectum_nan_if(size > TECTUM_ONE, y | (bitcast<TectumBits>(x) & TECTUM_SIGN));
}

// The binary logarithm of a positive finite a in two parts. With m = a/2^e and s = (m - 1)/(m + 1), ln m = 2 s (1 + s^2/3 + s^4 Q(s^2)); the first
// two terms are carried in two parts.
fn tectum_log2_pair(a: real) -> vec2<real> {
    let reduced = tectum_log_reduced(a);
    let s = tectum_quotient(vec2<real>(reduced.x, 0.0), tectum_ordered_sum(2.0, reduced.x));
    let square = tectum_product(s.x, s.x);
    let z = square.x;
    let z_low = square.y + 2.0 * (s.x * s.y);
    let k = tectum_ordered_sum(TECTUM_THIRD_HI, z * tectum_power_polynomial(z));
    let k_low = k.y + TECTUM_THIRD_LO;
    let t = tectum_product(z, k.x);
    let t_low = t.y + (z * k_low + z_low * k.x);
    let v = tectum_product(s.x, t.x);
    let v_low = v.y + (s.x * t_low + s.y * t.x);
    let h = tectum_ordered_sum(s.x, v.x);
    let h_low = h.y + (v_low + s.y);
    let g = tectum_product(2.0 * h.x, TECTUM_LOG2_E);
    let g_low = g.y + 2.0 * (h.x * TECTUM_LOG2_E_LOW + h_low * TECTUM_LOG2_E);
    let high = tectum_ordered_sum(reduced.y, g.x);
    return tectum_ordered_sum(high.x, high.y + g_low);
}

// a^y for a positive finite a and a finite y. Beyond the exponents of the type inf and 0.
fn tectum_power_positive(a: real, y: real) -> TectumBits {
    let log2 = tectum_log2_pair(a);
    let inside = tectum_within(y, TECTUM_POW_END);
    let about = inside * log2.x;
    let is_outside = abs(about) > TECTUM_POW_OUTSIDE;
    let exponent = select(inside, real(0.0), is_outside);
    let t = tectum_product(exponent, log2.x);
    let t_low = t.y + exponent * log2.y;
    let n = tectum_round(t.x);
    let f = tectum_hold(t.x - n);
    let w = tectum_exp_less_one(tectum_hold(f * TECTUM_LN2_HI), f * TECTUM_LN2_LO + t_low * TECTUM_LN2);
    let end = select(TectumBits(0), TECTUM_INF, about > 0.0);
    return select(bitcast<TectumBits>(tectum_raise(1.0 + w, i32(n))), end, is_outside);
}

// x^y by the rules of IEEE 754 `pow`: x^0 = 1 and 1^y = 1 even for NaN; a negative x has real powers only for whole y.
fn tectum_pow(x: real, y: real) -> real {
    let size = tectum_magnitude(x);
    let y_size = tectum_magnitude(y);
    let y_is_finite = y_size < TECTUM_INF;
    let x_is_ordinary = size > TectumBits(0) && size < TECTUM_INF;

    let y_finite = bitcast<real>(select(TectumBits(0), bitcast<TectumBits>(y), y_is_finite));
    let half = 0.5 * y_finite;
    let y_is_whole = bitcast<TectumBits>(tectum_round(y_finite)) == bitcast<TectumBits>(y_finite);
    let y_is_odd = y_is_whole && bitcast<TectumBits>(tectum_round(half)) != bitcast<TectumBits>(half);

    let inside = tectum_power_positive(bitcast<real>(select(TECTUM_ONE, size, x_is_ordinary)), y_finite);
    let grows = (size > TECTUM_ONE) == (bitcast<TectumBits>(y) < TECTUM_SIGN);
    let end = select(TectumBits(0), TECTUM_INF, grows);
    var z = select(end, inside, x_is_ordinary && y_is_finite);
    z = select(z, TECTUM_ONE, size == TECTUM_ONE);
    let is_negative = bitcast<TectumBits>(x) >= TECTUM_SIGN;
    z |= select(TectumBits(0), TECTUM_SIGN, is_negative && y_is_odd);
    z = select(z, TECTUM_NAN, is_negative && x_is_ordinary && !y_is_whole);
    z = select(z, TECTUM_NAN, size > TECTUM_INF || y_size > TECTUM_INF);
    return bitcast<real>(select(z, TECTUM_ONE, y_size == TectumBits(0) || bitcast<TectumBits>(x) == TECTUM_ONE));
}

// The remainder of a / b truncated: exact, with the sign of a, as C's fmod. NaN for an infinite a or b = 0; a itself for an infinite b. Long division of
// the significands as integers, as many bits at a time as fit.
fn tectum_fmod(a: real, b: real) -> real {
    let sign = bitcast<TectumBits>(a) & TECTUM_SIGN;
    let x = tectum_magnitude(a);
    let d = tectum_magnitude(b);
    if x >= TECTUM_INF || d > TECTUM_INF || d == TectumBits(0) {
        return tectum_nan();
    }
    if x < d {
        return a;
    }

    // A subnormal number has the exponent of the smallest normal one, and no leading bit.
    let whole = TECTUM_FRACTION_MASK + TectumBits(1);
    let x_exponent = max(u32(x >> TECTUM_FRACTION), 1u);
    let d_exponent = max(u32(d >> TECTUM_FRACTION), 1u);
    let divisor = (d & TECTUM_FRACTION_MASK) | select(TectumBits(0), whole, d >= whole);
    var m = ((x & TECTUM_FRACTION_MASK) | select(TectumBits(0), whole, x >= whole)) % divisor;
    var left = x_exponent - d_exponent;
    while left > 0u && m != TectumBits(0) {
        let step = min(left, TECTUM_WIDTH - TECTUM_FRACTION - 1u);
        m = (m << step) % divisor;
        left -= step;
    }
    if m == TectumBits(0) {
        return bitcast<real>(sign);
    }

    // m < 2^(TECTUM_FRACTION + 1) is exact as a float, whose exponent says how far it is from its leading place.
    let up = TECTUM_FRACTION + u32(TECTUM_BIAS) - u32(bitcast<TectumBits>(real(m)) >> TECTUM_FRACTION);
    let normal = ((m << up) & TECTUM_FRACTION_MASK) | (TectumBits(d_exponent - min(up, d_exponent)) << TECTUM_FRACTION);
    return bitcast<real>(sign | select(m << (d_exponent - 1u), normal, d_exponent > up));
}

// The remainder of a / b floored, with the sign of b, as Python's %: that of tectum_fmod, b added where the signs differ and it is not zero.
fn tectum_mod(a: real, b: real) -> real {
    let rest = tectum_fmod(a, b);
    let b_sign = bitcast<TectumBits>(b) & TECTUM_SIGN;
    if tectum_magnitude(rest) == TectumBits(0) {
        return bitcast<real>(b_sign);
    }
    if tectum_is_nan(rest) || (bitcast<TectumBits>(rest) & TECTUM_SIGN) == b_sign {
        return rest;
    }
    if tectum_magnitude(b) == TECTUM_INF {
        return b;
    }
    return rest + b;
}
