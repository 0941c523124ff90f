// Elementary functions, the same text for f32 and for f64. Native twin: `src/kernel/math/functions.rs`, the same
// reductions and polynomials with fused steps. Aliases, constants and polynomials of each width stand in math_f32.wgsl and math_f64.wgsl, of which a kernel
// has one: `real` is the float, `TectumBits` and `TectumInt` are integers as wide.
//
// Numerics. WGSL lets a driver fuse, regroup and approximate float arithmetic, take NaN and infinity for impossible, and
// flush subnormals; its built-in exp, log, tanh, sin and cos are of unstated quality. So none of those is used; special values
// are recognised and made on bits; `+ - * /` and `clamp` carry the rest, with every cancellation
// either exact, so that fusing cannot change it, or kept apart by `tectum_hold`, so that regrouping cannot lose it.
// The largest errors are stated with the constants. Common to all: NaN gives NaN, and a device that flushes subnormals makes
// results below the smallest normal number 0.
//
// Source. Range reduction after Cody and Waite (1980), and Payne and Hanek (1983).

// +infinity. Made at run time: a constant expression may not be infinite.
fn tectum_inf() -> real {
    var bits = TECTUM_INF;
    return bitcast<real>(bits);
}

// A quiet NaN. Made at run time: a constant expression may not be NaN.
fn tectum_nan() -> real {
    var bits = TECTUM_NAN;
    return bitcast<real>(bits);
}

// Bits without the sign.
fn tectum_magnitude(x: real) -> TectumBits {
    return bitcast<TectumBits>(x) & ~TECTUM_SIGN;
}

// Says whether x is NaN, by its bits: `x != x` may be folded to false.
fn tectum_is_nan(x: real) -> bool {
    return tectum_magnitude(x) > TECTUM_INF;
}

// x itself, for |x| <= TECTUM_HELD: a clamp that never bites, across which no compiler regroups sums.
fn tectum_hold(x: real) -> real {
    return clamp(x, -TECTUM_HELD, TECTUM_HELD);
}

// 2^n for the exponents of normal numbers.
fn tectum_power(n: i32) -> real {
    return bitcast<real>(TectumInt(n + TECTUM_BIAS) << TECTUM_FRACTION);
}

// y 2^n for 1/2 <= y < 2: half of n by integer addition on the exponent.
fn tectum_raise(y: real, n: i32) -> real {
    let half = n >> 1u;
    return bitcast<real>(bitcast<TectumInt>(y) + (TectumInt(half) << TECTUM_FRACTION)) * tectum_power(n - half);
}

// y 2^n for any y and n <= 0.
fn tectum_lower(y: real, n: i32) -> real {
    let half = n >> 1u;
    return y * tectum_power(half) * tectum_power(n - half);
}

// e^(high + low) - 1 for |high + low| <= ln(2)/2, high exact.
fn tectum_exp_less_one(high: real, low: real) -> real {
    let r = high + low;
    return tectum_hold(high + (tectum_exp_polynomial(r) * (r * r) + low));
}

// e^x for an x whose exponential is a normal number.
fn tectum_exp_normal(x: real) -> real {
    let n = tectum_round(x * TECTUM_LOG2_E);
    let y = 1.0 + tectum_exp_less_one(tectum_hold(x - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    return bitcast<real>(bitcast<TectumInt>(y) + (TectumInt(n) << TECTUM_FRACTION));
}

// e^x. exp(-inf) = 0, exp(+inf) = inf; inf above TECTUM_EXP_MAX.
// x = n ln 2 + r, |r| <= ln(2)/2, e^r = 1 + r + r^2 P(r).
fn tectum_exp(x: real) -> real {
    let bits = bitcast<TectumBits>(x);
    let over = bitcast<TectumInt>(x) > TectumInt(TECTUM_EXP_MAX);
    let inside = bitcast<real>(select(select(bits, TECTUM_EXP_END, bits > TECTUM_EXP_END), TectumBits(0), over));
    let n = tectum_round(inside * TECTUM_LOG2_E);
    let w = tectum_exp_less_one(tectum_hold(inside - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    let y = bitcast<TectumBits>(tectum_raise(1.0 + w, i32(n)));
    return bitcast<real>(select(select(y, TECTUM_INF, over), TECTUM_NAN, tectum_is_nan(x)));
}

// 2^x, exact for whole numbers. exp2(-inf) = 0, exp2(+inf) = inf; inf above TECTUM_EXP2_MAX.
fn tectum_exp2(x: real) -> real {
    let bits = bitcast<TectumBits>(x);
    let over = bitcast<TectumInt>(x) > TectumInt(TECTUM_EXP2_MAX);
    let inside = bitcast<real>(select(select(bits, TECTUM_EXP2_END, bits > TECTUM_EXP2_END), TectumBits(0), over));
    let n = tectum_round(inside);
    let f = inside - n;
    let w = tectum_exp_less_one(tectum_hold(f * TECTUM_LN2_HI), f * TECTUM_LN2_LO);
    let y = bitcast<TectumBits>(tectum_raise(1.0 + w, i32(n)));
    return bitcast<real>(select(select(y, TECTUM_INF, over), TECTUM_NAN, tectum_is_nan(x)));
}

// f and e with x = (1 + f) 2^e, sqrt(1/2) <= 1 + f < sqrt(2), for a positive finite x, subnormal or not.
fn tectum_log_reduced(x: real) -> vec2<real> {
    let bits = bitcast<TectumBits>(x);

    // A subnormal is its fraction as an integer times the least number, and that integer is exact as a float.
    let subnormal = bits <= TECTUM_FRACTION_MASK;
    let normal = select(bits, bitcast<TectumBits>(real(bits)), subnormal);
    let shifted = normal - TECTUM_SQRT_HALF;
    let e = real(i32(bitcast<TectumInt>(shifted) >> TECTUM_FRACTION) - select(0, TECTUM_BIAS + i32(TECTUM_FRACTION) - 1, subnormal));
    return vec2<real>(bitcast<real>((shifted & TECTUM_FRACTION_MASK) + TECTUM_SQRT_HALF) - 1.0, e);
}

// f^3 P(f).
fn tectum_log_cubic(f: real) -> real {
    return f * (f * f) * tectum_log_polynomial(f);
}

// y, but for the arguments that have no finite logarithm.
fn tectum_log_ends(x: real, y: real) -> real {
    let bits = bitcast<TectumBits>(x);
    var end = select(bitcast<TectumBits>(y), TECTUM_INF, bits == TECTUM_INF);
    end = select(end, TECTUM_NAN, bits > TECTUM_INF);
    return bitcast<real>(select(end, TECTUM_SIGN | TECTUM_INF, tectum_magnitude(x) == TectumBits(0)));
}

// ln x. log(±0) = -inf, log(+inf) = inf, log(x < 0) = NaN. ln (1 + f) = f - f^2/2 + f^3 P(f).
fn tectum_log(x: real) -> real {
    let reduced = tectum_log_reduced(x);
    let tail = (tectum_log_cubic(reduced.x) + reduced.y * TECTUM_LN2_LO) - 0.5 * (reduced.x * reduced.x);
    return tectum_log_ends(x, tectum_hold(reduced.x + tail) + reduced.y * TECTUM_LN2_HI);
}

// The binary logarithm, exact for powers of two; ends as tectum_log.
fn tectum_log2(x: real) -> real {
    let reduced = tectum_log_reduced(x);
    let tail = tectum_hold(tectum_log_cubic(reduced.x) - 0.5 * (reduced.x * reduced.x));
    let sum = tectum_hold(reduced.x + tail);
    let lost = tectum_hold(reduced.x - sum) + tail;
    return tectum_log_ends(x, reduced.y + tectum_hold(sum + (sum * TECTUM_LOG2_E_LESS_ONE + lost * TECTUM_LOG2_E)));
}

// The hyperbolic tangent: relative accuracy down to 0, odd, never beyond ±1.
// x + x^3 P(x^2) below 0.625, else 1 - 2 / (e^2x + 1).
fn tectum_tanh(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_TANH_ONE));

    let z = a * a;
    let near = a + a * (z * tectum_tanh_polynomial(z));
    let far = 1.0 - 2.0 / (tectum_exp_normal(a + a) + 1.0);

    let y = select(bitcast<TectumBits>(far), bitcast<TectumBits>(near), size < TECTUM_TANH_SPLIT) | (bitcast<TectumBits>(x) & TECTUM_SIGN);
    return bitcast<real>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// a + b for |a| >= |b| or a = 0: the rounded sum, and what its rounding lost.
fn tectum_ordered_sum(a: real, b: real) -> vec2<real> {
    let sum = tectum_hold(a + b);
    return vec2<real>(sum, b - tectum_hold(sum - a));
}

// a b: the rounded product, and what its rounding lost, by parts of half as many bits.
fn tectum_product(a: real, b: real) -> vec2<real> {
    let a_hi = bitcast<real>(bitcast<TectumBits>(a) & TECTUM_UPPER);
    let b_hi = bitcast<real>(bitcast<TectumBits>(b) & TECTUM_UPPER);
    let a_lo = a - a_hi;
    let b_lo = b - b_hi;
    let product = tectum_hold(a * b);
    let rest = tectum_hold(a_hi * b_hi - product) + tectum_hold(a_hi * b_lo + a_lo * b_hi);
    return vec2<real>(product, tectum_hold(rest) + a_lo * b_lo);
}

// (a.x + a.y) / (b.x + b.y) in two parts, even where the division is off by some units in the last place.
fn tectum_quotient(a: vec2<real>, b: vec2<real>) -> vec2<real> {
    let reciprocal = 1.0 / b.x;
    let q = tectum_hold(a.x * reciprocal);
    let p = tectum_product(q, b.x);
    return vec2<real>(q, (tectum_hold(tectum_hold(a.x - p.x) - p.y) + (a.y - q * b.y)) * reciprocal);
}

// e^-t for t >= 0 as (1 + w) 2^n, |w| < 1/2, n <= 0.
struct TectumFalling {
    w: real,
    n: i32,
}

// A positive number (high + low) 2^n.
struct TectumScaled {
    high: real,
    low: real,
    n: i32,
}

// From -t in two parts, the upper so short that n ln 2 (its upper part) is subtracted from it exactly.
fn tectum_falling(high: real, low: real) -> TectumFalling {
    let n = tectum_round((high + low) * TECTUM_LOG2_E);
    return TectumFalling(tectum_exp_less_one(tectum_hold(high - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO + low), i32(n));
}

// 2^n, or the least normal number where that is smaller: for sums with 1, where it is lost either way.
fn tectum_power_beside_one(n: i32) -> real {
    return tectum_power(max(n, 1 - TECTUM_BIAS));
}

// The number times a factor.
fn tectum_times(number: TectumScaled, factor: real) -> real {
    return tectum_lower(tectum_hold(factor * number.high) + factor * number.low, number.n);
}

// 1 / (1 + e^-t); for a negative argument e^-t / (1 + e^-t).
fn tectum_logistic(falling: TectumFalling, negative: bool) -> TectumScaled {
    let m = tectum_ordered_sum(1.0, falling.w);
    let power = tectum_power_beside_one(falling.n);
    let sum = tectum_ordered_sum(1.0, m.x * power);
    let top = select(vec2<real>(1.0, 0.0), m, negative);
    let q = tectum_quotient(top, vec2<real>(sum.x, sum.y + m.y * power));
    return TectumScaled(q.x, q.y, select(0, falling.n, negative));
}

// x, its magnitude no greater than that of the bits `end`.
fn tectum_within(x: real, end: TectumBits) -> real {
    return bitcast<real>(min(tectum_magnitude(x), end) | (bitcast<TectumBits>(x) & TECTUM_SIGN));
}

// y, but x itself from the end on, and NaN for NaN.
fn tectum_gate_ends(x: real, end: TectumBits, y: real) -> real {
    let reached = bitcast<TectumInt>(x) >= TectumInt(end);
    return bitcast<real>(select(select(bitcast<TectumBits>(y), bitcast<TectumBits>(x), reached), TECTUM_NAN, tectum_is_nan(x)));
}

// The logistic function 1 / (1 + e^-x), in [0, 1].
fn tectum_sigmoid(x: real) -> real {
    let falling = tectum_falling(-abs(tectum_within(x, TECTUM_SIGMOID_END)), 0.0);
    let y = tectum_times(tectum_logistic(falling, bitcast<TectumBits>(x) >= TECTUM_SIGN), 1.0);
    return bitcast<real>(select(bitcast<TectumBits>(y), TECTUM_NAN, tectum_is_nan(x)));
}

// The sigmoid-weighted linear unit x / (1 + e^-x). silu(-inf) = -0, silu(+inf) = inf.
fn tectum_silu(x: real) -> real {
    let inside = tectum_within(x, TECTUM_SILU_END);
    let share = tectum_logistic(tectum_falling(-abs(inside), 0.0), bitcast<TectumBits>(x) >= TECTUM_SIGN);
    return tectum_gate_ends(x, TECTUM_SILU_END, tectum_times(share, inside));
}

// The exponential linear unit: e^x - 1 = 2^n (e^r - 1) + (2^n - 1) below 0, else x. elu(-inf) = -1, elu(+inf) = inf.
fn tectum_elu(x: real) -> real {
    let below = -abs(tectum_within(x, TECTUM_ELU_END));
    let n = tectum_round(below * TECTUM_LOG2_E);
    let w = tectum_exp_less_one(tectum_hold(below - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    let power = tectum_power(i32(n));
    let y = bitcast<TectumBits>(tectum_hold(power - 1.0) + power * w);
    let bits = bitcast<TectumBits>(x);
    return bitcast<real>(select(select(bits, y, bits >= TECTUM_SIGN), TECTUM_NAN, tectum_is_nan(x)));
}

// min(max(x, 0), 6).
fn tectum_relu6(x: real) -> real {
    return tectum_min(tectum_relu(x), real(6.0));
}

// min(max(x + 3, 0), 6) / 6.
fn tectum_hard_sigmoid(x: real) -> real {
    return tectum_relu6(x + 3.0) * (real(1.0) / real(6.0));
}

// x min(max(x + 3, 0), 6) / 6.
fn tectum_hard_swish(x: real) -> real {
    return x * tectum_hard_sigmoid(x);
}

// e^-t for t = 2 sqrt(2/pi) (x + 0.044715 x^3) and x from 0 to where it underflows. t passes 100, so it is carried as an exact part and a
// remainder, expanded about the multiple of the grid nearest to x.
fn tectum_gelu_falling(x: real) -> TectumFalling {
    // c is x to a multiple of the grid, d the rest; c and c^2 are exact.
    let c = tectum_round(x * TECTUM_GRID) * TECTUM_GRID_STEP;
    let d = x - c;
    let c2 = c * c;

    // A + B c^2 = top + low, top a multiple of TECTUM_TOP_STEP; all but the last two products are exact.
    let c2_hi = tectum_round(c2 * TECTUM_SQUARE) * TECTUM_SQUARE_STEP;
    let near = tectum_round(c2 * (TECTUM_TOP * TECTUM_GELU_B_HI)) * TECTUM_TOP_STEP;
    let rest = tectum_hold(c2_hi * TECTUM_GELU_B_HI - near) + tectum_hold(c2 - c2_hi) * TECTUM_GELU_B_HI;
    let low = rest + (c2 * TECTUM_GELU_B_LO + TECTUM_GELU_A_LO);
    let top = TECTUM_GELU_A_HI + near;

    // t = c (A + B c^2) + d (A + B (3 c^2 + 3 c d + d^2)).
    let slope = top + (low + (TECTUM_GELU_B_HI + TECTUM_GELU_B_LO) * (2.0 * c2 + d * (3.0 * c + d)));
    return tectum_falling(-(c * tectum_hold(top)), -tectum_hold(c * low + d * slope));
}

// The Gaussian error linear unit in its tanh form, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + e^-t).
// gelu(-inf) = -0, gelu(+inf) = inf.
fn tectum_gelu(x: real) -> real {
    let inside = tectum_within(x, TECTUM_GELU_END);
    let share = tectum_logistic(tectum_gelu_falling(abs(inside)), bitcast<TectumBits>(x) >= TECTUM_SIGN);
    return tectum_gate_ends(x, TECTUM_GELU_END, tectum_times(share, inside));
}

// The error function: odd, never beyond ±1. x + x P(x^2) below 0.921875, else 1 - erfc(|x|).
fn tectum_erf(x: real) -> real {
    let size = tectum_magnitude(x);
    let a = bitcast<real>(min(size, TECTUM_ERF_ONE));
    let near = a + a * tectum_erf_polynomial(a * a);
    let far = 1.0 - tectum_erf_complement(a);
    let y = select(bitcast<TectumBits>(far), bitcast<TectumBits>(near), size < TECTUM_ERF_SPLIT) | (bitcast<TectumBits>(x) & TECTUM_SIGN);
    return bitcast<real>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// The normal distribution's tail Phi(-u) = e^(-u^2/2) P(w) / (u + 2.5), w = (u - 2)/(u + 2.5), for u from 0 to where it
// underflows; u^2 is carried as the exact square of the multiple of the grid nearest to u and a remainder.
fn tectum_normal_tail(u: real) -> TectumScaled {
    let c = tectum_round(u * TECTUM_GRID) * TECTUM_GRID_STEP;
    let falling = tectum_falling(-0.5 * (c * c), -0.5 * (tectum_hold(u - c) * (u + c)));

    // w and its remainder; sums and differences carry what their rounding lost.
    let below = tectum_hold(u - 2.0);
    let above = tectum_hold(u + 2.5);
    let below_lost = u - tectum_hold(below + 2.0);
    let part = tectum_hold(above - 2.5);
    let above_lost = tectum_hold(u - part) + tectum_hold(2.5 - tectum_hold(above - part));
    let w = tectum_quotient(vec2<real>(below, below_lost), vec2<real>(above, above_lost));

    // The last two steps carry what they lose.
    let p = tectum_hold(tectum_tail_polynomial(w.x));
    let last = tectum_product(p, w.x);
    let g = tectum_ordered_sum(TECTUM_TAIL_LAST, last.x);
    let g_low = (g.y + tectum_tail_low(w.x)) + (last.y + p * w.y);

    let m = tectum_ordered_sum(1.0, falling.w);
    let top = tectum_product(m.x, g.x);
    let q = tectum_quotient(vec2<real>(top.x, top.y + (m.x * g_low + m.y * g.x)), vec2<real>(above, above_lost));
    return TectumScaled(q.x, q.y, falling.n);
}

// The Gaussian error linear unit x Phi(x) = x/2 (1 + erf(x / sqrt(2))). gelu_erf(-inf) = -0, gelu_erf(+inf) = inf.
fn tectum_gelu_erf(x: real) -> real {
    let negative = bitcast<TectumBits>(x) >= TECTUM_SIGN;
    let inside = tectum_within(x, TECTUM_GELU_ERF_END);
    let tail = tectum_normal_tail(abs(inside));

    // Phi(x) is the tail, or 1 less the tail.
    let power = tectum_power_beside_one(tail.n);
    let body = tectum_ordered_sum(1.0, -(tail.high * power));
    let high = select(body.x, tail.high, negative);
    let low = select(body.y - tail.low * power, tail.low, negative);
    return tectum_gate_ends(x, TECTUM_GELU_ERF_END, tectum_times(TectumScaled(high, low, select(0, tail.n, negative)), inside));
}

// x less a multiple of pi/2: r + low, |r| <= pi/4, and the multiple modulo 4.
struct TectumReduced {
    r: real,
    low: real,
    quadrant: u32,
}

// For |x| up to TECTUM_ANGLE_NEAR.
fn tectum_reduce_near(x: real) -> TectumReduced {
    let n = tectum_round(x * TECTUM_TWO_OVER_PI);

    // pi/2 in four parts, the first three so short that their products with n are exact, and so is `high`.
    // What follows is rounded: r carries the sum, low what the rounding lost.
    let high = tectum_hold(tectum_hold(x - n * TECTUM_HALF_PI_0) - n * TECTUM_HALF_PI_1);
    let r = tectum_hold(high - n * TECTUM_HALF_PI_2);
    let low = tectum_hold(tectum_hold(high - r) - n * TECTUM_HALF_PI_2) - n * TECTUM_HALF_PI_3;
    return TectumReduced(r, low, bitcast<u32>(i32(n)));
}

// sin(x + quarters pi/2), for a reduced x.
fn tectum_sine_quarters(x: TectumReduced, quarters: u32) -> real {
    let r = x.r;
    let z = r * r;
    let sine = r + (r * (z * tectum_sine_polynomial(z)) + x.low);
    let cosine = 1.0 - tectum_hold(0.5 * z - (z * z * tectum_cosine_polynomial(z) - r * x.low));

    let quadrant = x.quadrant + quarters;
    let y = bitcast<TectumBits>(select(cosine, sine, (quadrant & 1u) == 0u));
    let sign = (y & TECTUM_SIGN) ^ (TectumBits(quadrant & 2u) << (TECTUM_WIDTH - 2u));
    return bitcast<real>(min(y & ~TECTUM_SIGN, TECTUM_ONE) | sign);
}

// sin(|x| + quarters pi/2); NaN for infinities and NaN.
fn tectum_sine_of_size(x: real, quarters: u32) -> real {
    let size = tectum_magnitude(x);
    if size >= TECTUM_INF {
        return tectum_nan();
    }
    if size > TECTUM_ANGLE_NEAR {
        return tectum_sine_quarters(tectum_reduce_far(bitcast<real>(size)), quarters);
    }
    return tectum_sine_quarters(tectum_reduce_near(bitcast<real>(size)), quarters);
}

// The sine of any angle in radians: odd, in [-1, 1]. sin(±inf) = NaN.
fn tectum_sin(x: real) -> real {
    return bitcast<real>(bitcast<TectumBits>(tectum_sine_of_size(x, 0u)) ^ (bitcast<TectumBits>(x) & TECTUM_SIGN));
}

// The cosine of any angle in radians, as for `tectum_sin`.
fn tectum_cos(x: real) -> real {
    return tectum_sine_of_size(x, 1u);
}

// An integer that orders as the float does, -0 below +0.
fn tectum_order_bits(x: real) -> TectumInt {
    let bits = bitcast<TectumInt>(x);
    return bits ^ ((bits >> (TECTUM_WIDTH - 1u)) & bitcast<TectumInt>(~TECTUM_SIGN));
}

// The lesser of two numbers: exact; NaN if either is NaN; -0 is less than +0 (IEEE 754-2019 minimum).
fn tectum_min(a: real, b: real) -> real {
    let least = select(bitcast<TectumBits>(b), bitcast<TectumBits>(a), tectum_order_bits(a) < tectum_order_bits(b));
    return bitcast<real>(select(least, TECTUM_NAN, tectum_is_nan(a) || tectum_is_nan(b)));
}

// The greater of two numbers: exact; NaN if either is NaN; +0 is greater than -0 (IEEE 754-2019 maximum).
fn tectum_max(a: real, b: real) -> real {
    let greatest = select(bitcast<TectumBits>(a), bitcast<TectumBits>(b), tectum_order_bits(a) < tectum_order_bits(b));
    return bitcast<real>(select(greatest, TECTUM_NAN, tectum_is_nan(a) || tectum_is_nan(b)));
}

// max(x, 0): exact; NaN stays NaN, -0 becomes +0.
fn tectum_relu(x: real) -> real {
    let bits = bitcast<TectumBits>(x);
    return bitcast<real>(select(bits, TectumBits(0), bits >= TECTUM_SIGN && bits <= (TECTUM_SIGN | TECTUM_INF)));
}
