// Elementary functions on f32. Native twin: `src/kernel/math.rs`, the same algorithm line for line.
//
// Numerics. WGSL lets a driver fuse, regroup and approximate float arithmetic, take NaN and infinity for impossible, and
// flush subnormals; its built-in exp, log, tanh, sin and cos are of unstated quality. So none of those is used; special values
// are recognised and made on bits; `+ - * /`, `round` and `clamp` carry the rest, with every cancellation
// either exact, so that fusing cannot change it, or kept apart by `tectum_hold`, so that regrouping cannot lose it.
// Largest error against float64, in units in the last place, where + - * and / are correctly rounded:
//
//     exp 1.1   log 0.9   tanh 1.4   sigmoid 2.5   gelu 2.4   sin, cos 1.1 (|x| <= 12867)   min, max, relu exact
//
// A device whose division errs by 2.5 ulp, as Vulkan allows, adds 2 ulp to sigmoid and gelu and 1 to tanh. Common to all:
// NaN gives NaN, and a result smaller than the smallest normal number (2^-126) may be 0.
//
// Source. Range reduction after Cody and Waite (1980); polynomials of the single-precision Cephes library (S. L. Moshier).

const TECTUM_INF: u32 = 0x7f800000u;
const TECTUM_NAN: u32 = 0x7fc00000u;
const TECTUM_SIGN: u32 = 0x80000000u;
const TECTUM_ONE: u32 = 0x3f800000u;
const TECTUM_LOG2_E: f32 = 1.44269504;
// ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
const TECTUM_LN2_HI: f32 = 0.693359375;
const TECTUM_LN2_LO: f32 = -2.12194440e-4;
// Largest argument with a finite exponential, 88.72283; magnitude of the lowest with a normal one, 87.33654.
const TECTUM_EXP_MAX: u32 = 0x42b17217u;
const TECTUM_EXP_MIN: u32 = 0x42aeac4fu;

// +infinity. Made at run time: a constant expression may not be infinite.
fn tectum_inf() -> f32 {
    var bits = TECTUM_INF;
    return bitcast<f32>(bits);
}

// A quiet NaN. Made at run time: a constant expression may not be NaN.
fn tectum_nan() -> f32 {
    var bits = TECTUM_NAN;
    return bitcast<f32>(bits);
}

// Bits without the sign.
fn tectum_magnitude(x: f32) -> u32 {
    return bitcast<u32>(x) & 0x7fffffffu;
}

// Says whether x is NaN, by its bits: `x != x` may be folded to false.
fn tectum_is_nan(x: f32) -> bool {
    return tectum_magnitude(x) > TECTUM_INF;
}

// x itself, for |x| <= 4096: a clamp that never bites, across which no compiler regroups sums.
fn tectum_hold(x: f32) -> f32 {
    return clamp(x, -4096.0, 4096.0);
}

// e^(high + low) * 2^n for |high + low| <= ln(2)/2, high exact.
fn tectum_exp_scaled(high: f32, low: f32, n: f32) -> f32 {
    let r = high + low;
    var p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 0.5;
    let y = 1.0 + tectum_hold(high + (p * (r * r) + low));
    return bitcast<f32>(bitcast<u32>(y) + (u32(i32(n)) << 23u));
}

// e^x for -87.33654 <= x <= 88.72283.
fn tectum_exp_finite(x: f32) -> f32 {
    let n = round(x * TECTUM_LOG2_E);
    return tectum_exp_scaled(tectum_hold(x - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO, n);
}

// e^x. exp(-inf) = 0, exp(+inf) = inf; inf above 88.72283, 0 below -87.33654.
// x = n ln 2 + r, |r| <= ln(2)/2, e^r = 1 + r + r^2 P5(r).
fn tectum_exp(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let over = bitcast<i32>(x) > i32(TECTUM_EXP_MAX);
    let under = bits > (TECTUM_SIGN | TECTUM_EXP_MIN);
    let inside = bitcast<f32>(select(bits, 0u, over || under));
    var y = bitcast<u32>(tectum_exp_finite(inside));
    y = select(y, TECTUM_INF, over);
    y = select(y, 0u, under);
    return bitcast<f32>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// ln x, subnormal arguments included. log(±0) = -inf, log(+inf) = inf, log(x < 0) = NaN.
// x = m 2^e, sqrt(1/2) <= m < sqrt(2), f = m - 1, ln m = f - f^2/2 + f^3 P8(f).
fn tectum_log(x: f32) -> f32 {
    let sqrt_half = 0x3f3504f3u;
    let bits = bitcast<u32>(x);

    // A subnormal is its mantissa as an integer times 2^-149, and that integer is exact as a float.
    let subnormal = bits < 0x00800000u;
    let normal = select(bits, bitcast<u32>(f32(bits)), subnormal);
    let shifted = normal - sqrt_half;
    let e = f32((bitcast<i32>(shifted) >> 23u) - select(0, 149, subnormal));
    let f = bitcast<f32>((shifted & 0x007fffffu) + sqrt_half) - 1.0;

    var p = 7.0376836292e-2;
    p = p * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    let f2 = f * f;
    let tail = (f * f2 * p + e * TECTUM_LN2_LO) - 0.5 * f2;
    var y = bitcast<u32>(tectum_hold(f + tail) + e * TECTUM_LN2_HI);

    y = select(y, TECTUM_INF, bits == TECTUM_INF);
    y = select(y, TECTUM_NAN, bits > TECTUM_INF);
    y = select(y, TECTUM_SIGN | TECTUM_INF, tectum_magnitude(x) == 0u);
    return bitcast<f32>(y);
}

// The hyperbolic tangent: relative accuracy down to 0, odd, never beyond ±1.
// x + x^3 P4(x^2) below 0.625, else 1 - 2 / (e^2x + 1).
fn tectum_tanh(x: f32) -> f32 {
    let split = 0x3f200000u;
    let one_from = 0x41200000u;
    let size = tectum_magnitude(x);
    let a = bitcast<f32>(min(size, one_from));

    let z = a * a;
    var p = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    let near = a + a * (z * p);
    let far = 1.0 - 2.0 / (tectum_exp_finite(a + a) + 1.0);

    let y = select(bitcast<u32>(far), bitcast<u32>(near), size < split) | (bitcast<u32>(x) & TECTUM_SIGN);
    return bitcast<f32>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// The logistic function 1 / (1 + e^-x): in [0, 1], relative accuracy down to -87.33654, below which 0.
fn tectum_sigmoid(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let saturated = tectum_magnitude(x) > TECTUM_EXP_MIN;
    let inside = bitcast<f32>(select(tectum_magnitude(x) | TECTUM_SIGN, 0u, saturated));
    let e = tectum_exp_finite(inside);
    let numerator = select(e, 1.0, bits < TECTUM_SIGN);
    let y = min(bitcast<u32>(numerator / (1.0 + e)), TECTUM_ONE);
    let end = select(0u, TECTUM_ONE, bits < TECTUM_SIGN);
    return bitcast<f32>(select(select(y, end, saturated), TECTUM_NAN, tectum_is_nan(x)));
}

// e^-t for t = 2 sqrt(2/pi) (x + 0.044715 x^3) and |x| <= 10. t reaches 87, so it is carried as an exact part and a
// remainder, expanded about the multiple of 1/64 nearest to x.
fn tectum_gelu_exponential(x: f32) -> f32 {
    // A = 2 sqrt(2/pi), the upper part a multiple of 2^-10; B = 0.044715 A, the upper part of 14 bits.
    let a_hi = 1.595703125;
    let a_lo = 6.599660573e-5;
    let b_hi = 0.071350097656;
    let b_lo = 4.718616350e-6;

    // c is x to a multiple of 1/64, d the rest; c and c^2 are exact.
    let c = round(x * 64.0) * 0.015625;
    let d = x - c;
    let c2 = c * c;

    // A + B c^2 = top + low, top a multiple of 2^-10; all but the last two products are exact.
    let c2_hi = round(c2 * 8.0) * 0.125;
    let near = round(c2 * (1024.0 * b_hi)) * 0.0009765625;
    let rest = tectum_hold(c2_hi * b_hi - near) + tectum_hold(c2 - c2_hi) * b_hi;
    let low = rest + (c2 * b_lo + a_lo);
    let top = a_hi + near;

    // t = c (A + B c^2) + d (A + B (3 c^2 + 3 c d + d^2)).
    let slope = top + (low + (b_hi + b_lo) * (2.0 * c2 + d * (3.0 * c + d)));
    let t_hi = c * tectum_hold(top);
    let t_lo = tectum_hold(c * low + d * slope);

    let n = round((t_hi + t_lo) * -TECTUM_LOG2_E);
    return tectum_exp_scaled(tectum_hold(-t_hi - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO - t_lo, n);
}

// The Gaussian error linear unit in its tanh form, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + e^-t):
// relative accuracy down to -10, below which (under 1.3e-37 in magnitude) +0. gelu(-inf) = 0, gelu(+inf) = inf.
fn tectum_gelu(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let saturated = tectum_magnitude(x) > 0x41200000u;
    let inside = bitcast<f32>(select(bits, 0u, saturated));
    let y = bitcast<u32>(inside / (1.0 + tectum_gelu_exponential(inside)));
    let end = select(0u, bits, bits < TECTUM_SIGN);
    return bitcast<f32>(select(select(y, end, saturated), TECTUM_NAN, tectum_is_nan(x)));
}

// sin(x + quarters pi/2).
fn tectum_sine_quarters(x: f32, quarters: u32) -> f32 {
    let outside = tectum_magnitude(x) > 0x4a800000u;
    let inside = bitcast<f32>(select(bitcast<u32>(x), 0u, outside));
    let n = round(inside * 0.63661977);

    // pi/2 in four parts, the first three of 11 bits: their products with n below 2^13 are exact, and so is `high`.
    // What follows is rounded: r carries the sum, low what the rounding lost.
    let high = tectum_hold(tectum_hold(inside - n * 1.5703125) - n * 4.83751297e-4);
    let r = tectum_hold(high - n * 7.54953362e-8);
    let low = tectum_hold(tectum_hold(high - r) - n * 7.54953362e-8) - n * 2.56334415e-12;
    let z = r * r;

    let s = (-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1;
    let sine = r + (r * (z * s) + low);
    let c = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
    let cosine = 1.0 - tectum_hold(0.5 * z - (z * z * c - r * low));

    let quadrant = u32(i32(n)) + quarters;
    let y = bitcast<u32>(select(cosine, sine, (quadrant & 1u) == 0u));
    let sign = (y & TECTUM_SIGN) ^ ((quadrant & 2u) << 30u);
    let size = min(y & 0x7fffffffu, TECTUM_ONE);
    return bitcast<f32>(select(size | sign, TECTUM_NAN, outside));
}

// The sine of an angle in radians: odd, in [-1, 1]. Beyond 12867 rad an absolute error up to |x| 2^-23; above 2^22 rad, where
// neighbouring floats are half a radian apart, NaN. sin(±inf) = NaN.
fn tectum_sin(x: f32) -> f32 {
    let y = bitcast<u32>(tectum_sine_quarters(bitcast<f32>(tectum_magnitude(x)), 0u));
    return bitcast<f32>(y ^ (bitcast<u32>(x) & TECTUM_SIGN));
}

// The cosine of an angle in radians, as for `tectum_sin`.
fn tectum_cos(x: f32) -> f32 {
    return tectum_sine_quarters(x, 1u);
}

// An integer that orders as the float does, -0 below +0.
fn tectum_order_bits(x: f32) -> i32 {
    let bits = bitcast<i32>(x);
    return bits ^ ((bits >> 31u) & 0x7fffffff);
}

// The lesser of two numbers: exact; NaN if either is NaN; -0 is less than +0 (IEEE 754-2019 minimum).
fn tectum_min(a: f32, b: f32) -> f32 {
    let least = select(bitcast<u32>(b), bitcast<u32>(a), tectum_order_bits(a) < tectum_order_bits(b));
    return bitcast<f32>(select(least, TECTUM_NAN, tectum_is_nan(a) || tectum_is_nan(b)));
}

// The greater of two numbers: exact; NaN if either is NaN; +0 is greater than -0 (IEEE 754-2019 maximum).
fn tectum_max(a: f32, b: f32) -> f32 {
    let greatest = select(bitcast<u32>(a), bitcast<u32>(b), tectum_order_bits(a) < tectum_order_bits(b));
    return bitcast<f32>(select(greatest, TECTUM_NAN, tectum_is_nan(a) || tectum_is_nan(b)));
}

// max(x, 0): exact; NaN stays NaN, -0 becomes +0.
fn tectum_relu(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    return bitcast<f32>(select(bits, 0u, bits >= TECTUM_SIGN && bits <= (TECTUM_SIGN | TECTUM_INF)));
}
