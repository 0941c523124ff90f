// Elementary functions on f32. Native twin: `src/kernel/math.rs`, the same reductions and polynomials with fused steps.
//
// Numerics. WGSL lets a driver fuse, regroup and approximate float arithmetic, take NaN and infinity for impossible, and
// flush subnormals; its built-in exp, log, tanh, sin and cos are of unstated quality. So none of those is used; special values
// are recognised and made on bits; `+ - * /`, `round` and `clamp` carry the rest, with every cancellation
// either exact, so that fusing cannot change it, or kept apart by `tectum_hold`, so that regrouping cannot lose it.
// Largest error against float64 over all arguments, in units in the last place, where + - * and / are correctly rounded:
//
//     exp, exp2 1.1   log 0.9   log2 1.6   tanh 1.4   erf 1.3   sin, cos 1.1
//     sigmoid 1.1   silu, gelu 1.6   gelu_erf 1.8   min, max, relu exact
//
// A device whose division errs by 2.5 ulp, as Vulkan allows, adds 1 ulp to tanh; the other quotients are corrected. Common to
// all: NaN gives NaN, and a device that flushes subnormals makes results below the smallest normal number (2^-126) 0.
//
// Source. Range reduction after Cody and Waite (1980), and Payne and Hanek (1983); polynomials of the single-precision Cephes
// library (S. L. Moshier), those of erf and gelu_erf our own.

const TECTUM_INF: u32 = 0x7f800000u;
const TECTUM_NAN: u32 = 0x7fc00000u;
const TECTUM_SIGN: u32 = 0x80000000u;
const TECTUM_ONE: u32 = 0x3f800000u;
const TECTUM_LOG2_E: f32 = 1.44269504;
// ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
const TECTUM_LN2_HI: f32 = 0.693359375;
const TECTUM_LN2_LO: f32 = -2.12194440e-4;
// Largest argument with a finite exponential, 88.72283; -104, below which the exponential rounds to 0.
const TECTUM_EXP_MAX: u32 = 0x42b17217u;
const TECTUM_EXP_END: u32 = 0xc2d00000u;
// From these magnitudes on sigmoid, silu, gelu and gelu_erf have reached their ends: 104, 112, 11, 14.5.
const TECTUM_SIGMOID_END: u32 = 0x42d00000u;
const TECTUM_SILU_END: u32 = 0x42e00000u;
const TECTUM_GELU_END: u32 = 0x41300000u;
const TECTUM_GELU_ERF_END: u32 = 0x41680000u;
// The largest angle that Cody and Waite's reduction takes: 12867 rad.
const TECTUM_ANGLE_NEAR: u32 = 0x46490c00u;

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

// 2^n for -126 <= n <= 127.
fn tectum_power(n: i32) -> f32 {
    return bitcast<f32>((n + 127) << 23u);
}

// y 2^n for 1/2 <= y < 2 and -250 <= n <= 128: half of n by integer addition on the exponent.
fn tectum_raise(y: f32, n: i32) -> f32 {
    let half = n >> 1u;
    return bitcast<f32>(bitcast<i32>(y) + (half << 23u)) * tectum_power(n - half);
}

// y 2^n for any y and -252 <= n <= 0.
fn tectum_lower(y: f32, n: i32) -> f32 {
    let half = n >> 1u;
    return y * tectum_power(half) * tectum_power(n - half);
}

// e^(high + low) - 1 for |high + low| <= ln(2)/2, high exact.
fn tectum_exp_less_one(high: f32, low: f32) -> f32 {
    let r = high + low;
    var p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 0.5;
    return tectum_hold(high + (p * (r * r) + low));
}

// e^x for an x whose exponential is a normal number.
fn tectum_exp_normal(x: f32) -> f32 {
    let n = round(x * TECTUM_LOG2_E);
    let y = 1.0 + tectum_exp_less_one(tectum_hold(x - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    return bitcast<f32>(bitcast<i32>(y) + (i32(n) << 23u));
}

// e^x. exp(-inf) = 0, exp(+inf) = inf; inf above 88.72283.
// x = n ln 2 + r, |r| <= ln(2)/2, e^r = 1 + r + r^2 P5(r).
fn tectum_exp(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let over = bitcast<i32>(x) > i32(TECTUM_EXP_MAX);
    let inside = bitcast<f32>(select(select(bits, TECTUM_EXP_END, bits > TECTUM_EXP_END), 0u, over));
    let n = round(inside * TECTUM_LOG2_E);
    let w = tectum_exp_less_one(tectum_hold(inside - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO);
    let y = bitcast<u32>(tectum_raise(1.0 + w, i32(n)));
    return bitcast<f32>(select(select(y, TECTUM_INF, over), TECTUM_NAN, tectum_is_nan(x)));
}

// 2^x, exact for whole numbers. exp2(-inf) = 0, exp2(+inf) = inf; inf from 128 on.
fn tectum_exp2(x: f32) -> f32 {
    let end = 0xc3170000u;
    let bits = bitcast<u32>(x);
    let over = bitcast<i32>(x) > 0x42ffffff;
    let inside = bitcast<f32>(select(select(bits, end, bits > end), 0u, over));
    let n = round(inside);
    let f = inside - n;
    let w = tectum_exp_less_one(tectum_hold(f * TECTUM_LN2_HI), f * TECTUM_LN2_LO);
    let y = bitcast<u32>(tectum_raise(1.0 + w, i32(n)));
    return bitcast<f32>(select(select(y, TECTUM_INF, over), TECTUM_NAN, tectum_is_nan(x)));
}

// f and e with x = (1 + f) 2^e, sqrt(1/2) <= 1 + f < sqrt(2), for a positive finite x, subnormal or not.
fn tectum_log_reduced(x: f32) -> vec2<f32> {
    let sqrt_half = 0x3f3504f3u;
    let bits = bitcast<u32>(x);

    // A subnormal is its mantissa as an integer times 2^-149, and that integer is exact as a float.
    let subnormal = bits < 0x00800000u;
    let normal = select(bits, bitcast<u32>(f32(bits)), subnormal);
    let shifted = normal - sqrt_half;
    let e = f32((bitcast<i32>(shifted) >> 23u) - select(0, 149, subnormal));
    return vec2<f32>(bitcast<f32>((shifted & 0x007fffffu) + sqrt_half) - 1.0, e);
}

// f^3 P8(f).
fn tectum_log_cubic(f: f32) -> f32 {
    var p = 7.0376836292e-2;
    p = p * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    return f * (f * f) * p;
}

// y, but for the arguments that have no finite logarithm.
fn tectum_log_ends(x: f32, y: f32) -> f32 {
    let bits = bitcast<u32>(x);
    var end = select(bitcast<u32>(y), TECTUM_INF, bits == TECTUM_INF);
    end = select(end, TECTUM_NAN, bits > TECTUM_INF);
    return bitcast<f32>(select(end, TECTUM_SIGN | TECTUM_INF, tectum_magnitude(x) == 0u));
}

// ln x. log(±0) = -inf, log(+inf) = inf, log(x < 0) = NaN. ln (1 + f) = f - f^2/2 + f^3 P8(f).
fn tectum_log(x: f32) -> f32 {
    let reduced = tectum_log_reduced(x);
    let tail = (tectum_log_cubic(reduced.x) + reduced.y * TECTUM_LN2_LO) - 0.5 * (reduced.x * reduced.x);
    return tectum_log_ends(x, tectum_hold(reduced.x + tail) + reduced.y * TECTUM_LN2_HI);
}

// The binary logarithm, exact for powers of two; ends as tectum_log.
fn tectum_log2(x: f32) -> f32 {
    let reduced = tectum_log_reduced(x);
    let tail = tectum_hold(tectum_log_cubic(reduced.x) - 0.5 * (reduced.x * reduced.x));
    let sum = tectum_hold(reduced.x + tail);
    let lost = tectum_hold(reduced.x - sum) + tail;
    return tectum_log_ends(x, reduced.y + tectum_hold(sum + (sum * 0.44269504089 + lost * TECTUM_LOG2_E)));
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
    let far = 1.0 - 2.0 / (tectum_exp_normal(a + a) + 1.0);

    let y = select(bitcast<u32>(far), bitcast<u32>(near), size < split) | (bitcast<u32>(x) & TECTUM_SIGN);
    return bitcast<f32>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// a + b for |a| >= |b| or a = 0: the rounded sum, and what its rounding lost.
fn tectum_ordered_sum(a: f32, b: f32) -> vec2<f32> {
    let sum = tectum_hold(a + b);
    return vec2<f32>(sum, b - tectum_hold(sum - a));
}

// a b: the rounded product, and what its rounding lost, by parts of 12 bits.
fn tectum_product(a: f32, b: f32) -> vec2<f32> {
    let a_hi = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let b_hi = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let a_lo = a - a_hi;
    let b_lo = b - b_hi;
    let product = tectum_hold(a * b);
    let rest = tectum_hold(a_hi * b_hi - product) + tectum_hold(a_hi * b_lo + a_lo * b_hi);
    return vec2<f32>(product, tectum_hold(rest) + a_lo * b_lo);
}

// (a.x + a.y) / (b.x + b.y) in two parts, even where the division is off by some units in the last place.
fn tectum_quotient(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let reciprocal = 1.0 / b.x;
    let q = tectum_hold(a.x * reciprocal);
    let p = tectum_product(q, b.x);
    return vec2<f32>(q, (tectum_hold(tectum_hold(a.x - p.x) - p.y) + (a.y - q * b.y)) * reciprocal);
}

// e^-t for t >= 0 as (1 + w) 2^n, |w| < 1/2, -252 <= n <= 0.
struct TectumFalling {
    w: f32,
    n: i32,
}

// A positive number (high + low) 2^n.
struct TectumScaled {
    high: f32,
    low: f32,
    n: i32,
}

// From -t in two parts, the upper so short that n ln 2 (its upper part) is subtracted from it exactly.
fn tectum_falling(high: f32, low: f32) -> TectumFalling {
    let n = round((high + low) * TECTUM_LOG2_E);
    return TectumFalling(tectum_exp_less_one(tectum_hold(high - n * TECTUM_LN2_HI), n * -TECTUM_LN2_LO + low), i32(n));
}

// 2^n, or 2^-126 where that is smaller: for sums with 1, where it is lost either way.
fn tectum_power_beside_one(n: i32) -> f32 {
    return tectum_power(max(n, -126));
}

// The number times a factor.
fn tectum_times(number: TectumScaled, factor: f32) -> f32 {
    return tectum_lower(tectum_hold(factor * number.high) + factor * number.low, number.n);
}

// 1 / (1 + e^-t); for a negative argument e^-t / (1 + e^-t).
fn tectum_logistic(falling: TectumFalling, negative: bool) -> TectumScaled {
    let m = tectum_ordered_sum(1.0, falling.w);
    let power = tectum_power_beside_one(falling.n);
    let sum = tectum_ordered_sum(1.0, m.x * power);
    let top = select(vec2<f32>(1.0, 0.0), m, negative);
    let q = tectum_quotient(top, vec2<f32>(sum.x, sum.y + m.y * power));
    return TectumScaled(q.x, q.y, select(0, falling.n, negative));
}

// x, its magnitude no greater than that of the bits `end`.
fn tectum_within(x: f32, end: u32) -> f32 {
    return bitcast<f32>(min(tectum_magnitude(x), end) | (bitcast<u32>(x) & TECTUM_SIGN));
}

// y, but x itself from the end on, and NaN for NaN.
fn tectum_gate_ends(x: f32, end: u32, y: f32) -> f32 {
    let reached = bitcast<i32>(x) >= i32(end);
    return bitcast<f32>(select(select(bitcast<u32>(y), bitcast<u32>(x), reached), TECTUM_NAN, tectum_is_nan(x)));
}

// The logistic function 1 / (1 + e^-x), in [0, 1].
fn tectum_sigmoid(x: f32) -> f32 {
    let falling = tectum_falling(-abs(tectum_within(x, TECTUM_SIGMOID_END)), 0.0);
    let y = tectum_times(tectum_logistic(falling, bitcast<u32>(x) >= TECTUM_SIGN), 1.0);
    return bitcast<f32>(select(bitcast<u32>(y), TECTUM_NAN, tectum_is_nan(x)));
}

// The sigmoid-weighted linear unit x / (1 + e^-x). silu(-inf) = -0, silu(+inf) = inf.
fn tectum_silu(x: f32) -> f32 {
    let inside = tectum_within(x, TECTUM_SILU_END);
    let share = tectum_logistic(tectum_falling(-abs(inside), 0.0), bitcast<u32>(x) >= TECTUM_SIGN);
    return tectum_gate_ends(x, TECTUM_SILU_END, tectum_times(share, inside));
}

// e^-t for t = 2 sqrt(2/pi) (x + 0.044715 x^3) and 0 <= x <= 11. t passes 100, so it is carried as an exact part and a
// remainder, expanded about the multiple of 1/64 nearest to x.
fn tectum_gelu_falling(x: f32) -> TectumFalling {
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
    return tectum_falling(-(c * tectum_hold(top)), -tectum_hold(c * low + d * slope));
}

// The Gaussian error linear unit in its tanh form, x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + e^-t).
// gelu(-inf) = -0, gelu(+inf) = inf.
fn tectum_gelu(x: f32) -> f32 {
    let inside = tectum_within(x, TECTUM_GELU_END);
    let share = tectum_logistic(tectum_gelu_falling(abs(inside)), bitcast<u32>(x) >= TECTUM_SIGN);
    return tectum_gate_ends(x, TECTUM_GELU_END, tectum_times(share, inside));
}

// The error function: odd, never beyond ±1. x + x P6(x^2) below 0.921875, else 1 - e^P7(|x|), P7 near ln erfc.
fn tectum_erf(x: f32) -> f32 {
    let split = 0x3f6c0000u;
    let one_from = 0x407c0000u;
    let size = tectum_magnitude(x);
    let a = bitcast<f32>(min(size, one_from));

    let z = a * a;
    var p = 7.9974975961e-5;
    p = p * z - 8.0499309115e-4;
    p = p * z + 5.1924148574e-3;
    p = p * z - 2.6855733246e-2;
    p = p * z + 1.1283625662e-1;
    p = p * z - 3.7612628937e-1;
    p = p * z + 1.2837916613e-1;
    let near = a + a * p;

    p = -2.1098350771e-5;
    p = p * a + 4.3450362864e-4;
    p = p * a - 4.1712718084e-3;
    p = p * a + 2.5119990110e-2;
    p = p * a - 1.0828095675e-1;
    p = p * a - 6.3334614038e-1;
    p = p * a - 1.1295152903;
    p = p * a + 1.7475396453e-4;
    let far = 1.0 - tectum_exp_normal(p);

    let y = select(bitcast<u32>(far), bitcast<u32>(near), size < split) | (bitcast<u32>(x) & TECTUM_SIGN);
    return bitcast<f32>(select(y, TECTUM_NAN, tectum_is_nan(x)));
}

// The normal distribution's tail Phi(-u) = e^(-u^2/2) P11(w) / (u + 2.5), w = (u - 2)/(u + 2.5), for 0 <= u <= 14.5; u^2
// is carried as the exact square of the multiple of 1/64 nearest to u and a remainder.
fn tectum_normal_tail(u: f32) -> TectumScaled {
    let c = round(u * 64.0) * 0.015625;
    let falling = tectum_falling(-0.5 * (c * c), -0.5 * (tectum_hold(u - c) * (u + c)));

    // w and its remainder; sums and differences carry what their rounding lost.
    let below = tectum_hold(u - 2.0);
    let above = tectum_hold(u + 2.5);
    let below_lost = u - tectum_hold(below + 2.0);
    let part = tectum_hold(above - 2.5);
    let above_lost = tectum_hold(u - part) + tectum_hold(2.5 - tectum_hold(above - part));
    let w = tectum_quotient(vec2<f32>(below, below_lost), vec2<f32>(above, above_lost));

    var p = 7.5900330604e-5;
    p = p * w.x - 6.3254912675e-5;
    p = p * w.x - 5.4542027647e-4;
    p = p * w.x - 2.6282231556e-4;
    p = p * w.x + 1.9529353594e-3;
    p = p * w.x + 3.5292459652e-3;
    p = p * w.x - 5.2492166869e-3;
    p = p * w.x - 2.2951174527e-2;
    p = p * w.x + 2.2301236168e-2;
    p = p * w.x + 1.5768072009e-1;
    p = tectum_hold(p * w.x - 5.1399111748e-1);
    let last = tectum_product(p, w.x);
    let g = tectum_ordered_sum(0.75645899773, last.x);
    let g_low = (g.y + 6.65699984e-9) + (last.y + p * w.y);

    let m = tectum_ordered_sum(1.0, falling.w);
    let top = tectum_product(m.x, g.x);
    let q = tectum_quotient(vec2<f32>(top.x, top.y + (m.x * g_low + m.y * g.x)), vec2<f32>(above, above_lost));
    return TectumScaled(q.x, q.y, falling.n);
}

// The Gaussian error linear unit x Phi(x) = x/2 (1 + erf(x / sqrt(2))). gelu_erf(-inf) = -0, gelu_erf(+inf) = inf.
fn tectum_gelu_erf(x: f32) -> f32 {
    let negative = bitcast<u32>(x) >= TECTUM_SIGN;
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
    r: f32,
    low: f32,
    quadrant: u32,
}

// For |x| <= 12867.
fn tectum_reduce_near(x: f32) -> TectumReduced {
    let n = round(x * 0.63661977);

    // pi/2 in four parts, the first three of 11 bits: their products with n below 2^13 are exact, and so is `high`.
    // What follows is rounded: r carries the sum, low what the rounding lost.
    let high = tectum_hold(tectum_hold(x - n * 1.5703125) - n * 4.83751297e-4);
    let r = tectum_hold(high - n * 7.54953362e-8);
    let low = tectum_hold(tectum_hold(high - r) - n * 7.54953362e-8) - n * 2.56334415e-12;
    return TectumReduced(r, low, bitcast<u32>(i32(n)));
}

// The upper 32 bits of a b.
fn tectum_multiply_high(a: u32, b: u32) -> u32 {
    let a_lo = a & 0xffffu;
    let a_hi = a >> 16u;
    let b_lo = b & 0xffffu;
    let b_hi = b >> 16u;
    let middle = a_hi * b_lo + ((a_lo * b_lo) >> 16u);
    let other = a_lo * b_hi + (middle & 0xffffu);
    return a_hi * b_hi + (middle >> 16u) + (other >> 16u);
}

// For a positive finite x of 2^13 and more, in integers. x = m 2^e; in x 2/pi, bits of 2/pi worth 4 and more, times the
// integer m, are whole turns: 96 bits from there on matter.
fn tectum_reduce_far(x: f32) -> TectumReduced {
    // 2/pi in binary: 32 zeros, then 224 bits after the point.
    var two_over_pi = array<u32, 8>(
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    );
    let m = (bitcast<u32>(x) & 0x007fffffu) | 0x00800000u;
    let offset = (bitcast<u32>(x) >> 23u) - 120u;
    let first = min(offset >> 5u, 4u);
    let left = offset & 31u;
    let right = 31u - left;
    let w0 = (two_over_pi[first] << left) | ((two_over_pi[first + 1u] >> 1u) >> right);
    let w1 = (two_over_pi[first + 1u] << left) | ((two_over_pi[first + 2u] >> 1u) >> right);
    let w2 = (two_over_pi[first + 2u] << left) | ((two_over_pi[first + 3u] >> 1u) >> right);

    // The fraction of a turn in 64 bits.
    let carried = tectum_multiply_high(m, w2);
    let turn_lo = m * w1 + carried;
    let turn_hi = m * w0 + tectum_multiply_high(m, w1) + select(0u, 1u, turn_lo < carried);

    // The nearest quarter, and the rest as a fraction of one, in units of 2^-62, its sign apart.
    let quadrant = (turn_hi + 0x20000000u) >> 30u;
    let signed_hi = turn_hi - (quadrant << 30u);
    let negative = signed_hi >= TECTUM_SIGN;
    let hi = select(signed_hi, ~signed_hi + select(0u, 1u, turn_lo == 0u), negative);
    let lo = select(turn_lo, 0u - turn_lo, negative);
    let zeros = select(countLeadingZeros(hi), 32u + min(countLeadingZeros(lo), 31u), hi == 0u);
    let shift = zeros & 31u;
    let upper = select(hi, lo, hi == 0u);
    let lower = select(lo, 0u, hi == 0u);
    let leading = (upper << shift) | ((lower >> 1u) >> (31u - shift));

    // 24 and 8 bits of rest pi/2, both exact.
    let product = tectum_multiply_high(leading, 0xc90fdaa2u);
    let unit = bitcast<f32>(((98u - zeros) << 23u) | select(0u, TECTUM_SIGN, negative));
    return TectumReduced(f32(product & 0xffffff00u) * unit, f32(product & 0xffu) * unit, quadrant);
}

// sin(x + quarters pi/2), for a reduced x.
fn tectum_sine_quarters(x: TectumReduced, quarters: u32) -> f32 {
    let r = x.r;
    let z = r * r;
    let s = (-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1;
    let sine = r + (r * (z * s) + x.low);
    let c = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
    let cosine = 1.0 - tectum_hold(0.5 * z - (z * z * c - r * x.low));

    let quadrant = x.quadrant + quarters;
    let y = bitcast<u32>(select(cosine, sine, (quadrant & 1u) == 0u));
    let sign = (y & TECTUM_SIGN) ^ ((quadrant & 2u) << 30u);
    return bitcast<f32>(min(y & 0x7fffffffu, TECTUM_ONE) | sign);
}

// sin(|x| + quarters pi/2); NaN for infinities and NaN.
fn tectum_sine_of_size(x: f32, quarters: u32) -> f32 {
    let size = tectum_magnitude(x);
    if size >= TECTUM_INF {
        return tectum_nan();
    }
    if size > TECTUM_ANGLE_NEAR {
        return tectum_sine_quarters(tectum_reduce_far(bitcast<f32>(size)), quarters);
    }
    return tectum_sine_quarters(tectum_reduce_near(bitcast<f32>(size)), quarters);
}

// The sine of any angle in radians: odd, in [-1, 1]. sin(±inf) = NaN.
fn tectum_sin(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(tectum_sine_of_size(x, 0u)) ^ (bitcast<u32>(x) & TECTUM_SIGN));
}

// The cosine of any angle in radians, as for `tectum_sin`.
fn tectum_cos(x: f32) -> f32 {
    return tectum_sine_of_size(x, 1u);
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
