// Constants and polynomials of math.wgsl for f32. Native twin: `src/kernel/math/single.rs`.
//
// Largest error against float64 over all arguments, in units in the last place, where + - * and / are correctly rounded:
//
//     exp, exp2 1.1   log 0.9   log2 1.6   tanh 1.4   erf 1.3   sin, cos 1.1
//     sigmoid 1.1   silu, gelu 1.6   gelu_erf 1.8   min, max, relu exact
//
// A device whose division errs by 2.5 ulp, as Vulkan allows, adds 1 ulp to tanh; the other quotients are corrected.
//
// Source. Polynomials of the single-precision Cephes library (S. L. Moshier), those of erf and gelu_erf our own.
alias real = f32;
alias TectumBits = u32;
alias TectumInt = i32;

const TECTUM_WIDTH: u32 = 32u;
const TECTUM_FRACTION: u32 = 23u;
const TECTUM_BIAS: i32 = 127;
const TECTUM_FRACTION_MASK: u32 = 0x007fffffu;
const TECTUM_INF: u32 = 0x7f800000u;
const TECTUM_NAN: u32 = 0x7fc00000u;
const TECTUM_SIGN: u32 = 0x80000000u;
const TECTUM_ONE: u32 = 0x3f800000u;
// The upper half of the significand.
const TECTUM_UPPER: u32 = 0xfffff000u;
// No number that is held is greater.
const TECTUM_HELD: f32 = 4096.0;
const TECTUM_SQRT_HALF: u32 = 0x3f3504f3u;
const TECTUM_LOG2_E: f32 = 1.44269504;
const TECTUM_LOG2_E_LESS_ONE: f32 = 0.44269504089;
// ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
const TECTUM_LN2_HI: f32 = 0.693359375;
const TECTUM_LN2_LO: f32 = -2.12194440e-4;
// Largest argument with a finite exponential, 88.72283; -104, below which the exponential rounds to 0.
const TECTUM_EXP_MAX: u32 = 0x42b17217u;
const TECTUM_EXP_END: u32 = 0xc2d00000u;
// The same of the binary exponential: the number below 128, -151.
const TECTUM_EXP2_MAX: u32 = 0x42ffffffu;
const TECTUM_EXP2_END: u32 = 0xc3170000u;
// Where tanh and erf leave their first polynomial, 0.625 and 0.921875, and where they are 1: 10, 3.9375.
const TECTUM_TANH_SPLIT: u32 = 0x3f200000u;
const TECTUM_TANH_ONE: u32 = 0x41200000u;
const TECTUM_ERF_SPLIT: u32 = 0x3f6c0000u;
const TECTUM_ERF_ONE: u32 = 0x407c0000u;
// From here down e^x - 1 is -1: 20.
const TECTUM_ELU_END: u32 = 0x41a00000u;
// From these magnitudes on sigmoid, silu, gelu and gelu_erf have reached their ends: 104, 112, 11, 14.5.
const TECTUM_SIGMOID_END: u32 = 0x42d00000u;
const TECTUM_SILU_END: u32 = 0x42e00000u;
const TECTUM_GELU_END: u32 = 0x41300000u;
const TECTUM_GELU_ERF_END: u32 = 0x41680000u;
// Steps of the grid about which gelu and gelu_erf are expanded.
const TECTUM_GRID: f32 = 64.0;
const TECTUM_GRID_STEP: f32 = 0.015625;
const TECTUM_SQUARE: f32 = 8.0;
const TECTUM_SQUARE_STEP: f32 = 0.125;
const TECTUM_TOP: f32 = 1024.0;
const TECTUM_TOP_STEP: f32 = 0.0009765625;
// A = 2 sqrt(2/pi), the upper part a multiple of the top step; B = 0.044715 A, the upper part of 14 bits.
const TECTUM_GELU_A_HI: f32 = 1.595703125;
const TECTUM_GELU_A_LO: f32 = 6.599660573e-5;
const TECTUM_GELU_B_HI: f32 = 0.071350097656;
const TECTUM_GELU_B_LO: f32 = 4.718616350e-6;
// The first coefficient of the normal tail.
const TECTUM_TAIL_LAST: f32 = 0.75645899773;
// The largest angle that Cody and Waite's reduction takes, 12867 rad, and pi/2 in four parts, three of 11 bits.
const TECTUM_ANGLE_NEAR: u32 = 0x46490c00u;
const TECTUM_TWO_OVER_PI: f32 = 0.63661977;
const TECTUM_HALF_PI_0: f32 = 1.5703125;
const TECTUM_HALF_PI_1: f32 = 4.83751297e-4;
const TECTUM_HALF_PI_2: f32 = 7.54953362e-8;
const TECTUM_HALF_PI_3: f32 = 2.56334415e-12;

// The nearest whole number, ties to even.
fn tectum_round(x: f32) -> f32 {
    return round(x);
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2.
fn tectum_exp_polynomial(r: f32) -> f32 {
    var p: f32 = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 0.5;
    return p;
}

// (ln(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) <= 1 + f < sqrt(2).
fn tectum_log_polynomial(f: f32) -> f32 {
    var p: f32 = 7.0376836292e-2;
    p = p * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    return p;
}

// (tanh(x) - x) / x^3 of z = x^2 below the split.
fn tectum_tanh_polynomial(z: f32) -> f32 {
    var p: f32 = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    return p;
}

// erf(x)/x - 1 of z = x^2 below the split.
fn tectum_erf_polynomial(z: f32) -> f32 {
    var p: f32 = 7.9974975961e-5;
    p = p * z - 8.0499309115e-4;
    p = p * z + 5.1924148574e-3;
    p = p * z - 2.6855733246e-2;
    p = p * z + 1.1283625662e-1;
    p = p * z - 3.7612628937e-1;
    p = p * z + 1.2837916613e-1;
    return p;
}

// (P(w) - TECTUM_TAIL_LAST) / w, for P see tectum_normal_tail.
fn tectum_tail_polynomial(w: f32) -> f32 {
    var p: f32 = 7.5900330604e-5;
    p = p * w - 6.3254912675e-5;
    p = p * w - 5.4542027647e-4;
    p = p * w - 2.6282231556e-4;
    p = p * w + 1.9529353594e-3;
    p = p * w + 3.5292459652e-3;
    p = p * w - 5.2492166869e-3;
    p = p * w - 2.2951174527e-2;
    p = p * w + 2.2301236168e-2;
    p = p * w + 1.5768072009e-1;
    p = p * w - 5.1399111748e-1;
    return p;
}

// (sin(r) - r) / r^3 of z = r^2, |r| <= pi/4.
fn tectum_sine_polynomial(z: f32) -> f32 {
    var p: f32 = -1.9515295891e-4;
    p = p * z + 8.3321608736e-3;
    p = p * z - 1.6666654611e-1;
    return p;
}

// (cos(r) - 1 + r^2/2) / r^4 of z = r^2, |r| <= pi/4.
fn tectum_cosine_polynomial(z: f32) -> f32 {
    var p: f32 = 2.443315711809948e-5;
    p = p * z - 1.388731625493765e-3;
    p = p * z + 4.166664568298827e-2;
    return p;
}

// What the last two coefficients of the normal tail lost.
fn tectum_tail_low(w: f32) -> f32 {
    return 6.65699984e-9;
}

// erfc(a) = e^P(a), P near ln erfc.
fn tectum_erf_complement(a: f32) -> f32 {
    var p = -2.1098350771e-5;
    p = p * a + 4.3450362864e-4;
    p = p * a - 4.1712718084e-3;
    p = p * a + 2.5119990110e-2;
    p = p * a - 1.0828095675e-1;
    p = p * a - 6.3334614038e-1;
    p = p * a - 1.1295152903;
    p = p * a + 1.7475396453e-4;
    return tectum_exp_normal(p);
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

