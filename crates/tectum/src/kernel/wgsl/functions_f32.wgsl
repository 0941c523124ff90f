// Constants and polynomials of functions.wgsl for f32. Native twin: `src/kernel/math/single.rs`.
//
// Largest error against float64 over all exponents in units in the last place, where + - * / and the square root are
// correctly rounded:
//
//     tan 2.4   asin 1.4   acos 1.1   atan 2.1   sinh, cosh 1.6   asinh 1.2   acosh 1.8   atanh 1.3   mod 0.5   sign, fmod exact
//
// Source. Polynomials our own, interpolated at Chebyshev nodes.

// ln 2, and what log2(e) lost.
const TECTUM_LN2: f32 = 0.69314718;
const TECTUM_LOG2_E_LOW: f32 = 1.925963034e-8;
// pi/2 and 1/3 in two parts.
const TECTUM_RIGHT_HI: f32 = 1.570796371;
const TECTUM_RIGHT_LO: f32 = -4.371138829e-8;
const TECTUM_THIRD_HI: f32 = 0.3333333433;
const TECTUM_THIRD_LO: f32 = -9.934107759e-9;
// About tan(pi/8) and its inverse: between them the arctangent is reduced by pi/4.
const TECTUM_ATAN_NEAR: f32 = 0.41421356;
const TECTUM_ATAN_FAR: f32 = 2.4142135;
// Next to this number its inverse is lost.
const TECTUM_HALF_EXP_END: f32 = 1099511627776.0;
// From here on three terms of a series give the inverse hyperbolic sine.
const TECTUM_ASINH_FAR: f32 = 32.0;
// No power of 2 with an exponent of this magnitude is a number of the type.
const TECTUM_POW_OUTSIDE: f32 = 160.0;
// Largest argument with a finite hyperbolic sine; where the arctangent is pi/2; no power of a number other than 1 to a greater one is finite and not 0.
const TECTUM_SINH_MAX: u32 = 0x42b2d4fcu;
const TECTUM_ATAN_END: u32 = 0x4f000000u;
const TECTUM_POW_END: u32 = 0x53800000u;

// (asin(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_arcsine_polynomial(z: f32) -> f32 {
    var p: f32 = 0.0336908475;
    p = p * z + 0.0171492379;
    p = p * z + 0.0311006624;
    p = p * z + 0.0445994027;
    p = p * z + 0.0750009418;
    p = p * z + 0.166666657;
    return p;
}

// (atan(x)/x - 1)/z of z = x^2, |x| <= tan(pi/8).
fn tectum_arctangent_polynomial(z: f32) -> f32 {
    var p: f32 = -0.0645191595;
    p = p * z + 0.107437275;
    p = p * z - 0.142639548;
    p = p * z + 0.199995399;
    p = p * z - 0.333333313;
    return p;
}

// (sinh(x)/x - 1)/z of z = x^2 <= 1.
fn tectum_sinh_polynomial(z: f32) -> f32 {
    var p: f32 = 2.80628024e-6;
    p = p * z + 0.000198381022;
    p = p * z + 0.00833333936;
    p = p * z + 0.166666672;
    return p;
}

// (asinh(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_asinh_polynomial(z: f32) -> f32 {
    var p: f32 = -0.0142885083;
    p = p * z + 0.0287836064;
    p = p * z - 0.0445065126;
    p = p * z + 0.0749958232;
    p = p * z - 0.166666642;
    return p;
}

// (atanh(x)/x - 1)/z of z = x^2 <= 1/4.
fn tectum_atanh_polynomial(z: f32) -> f32 {
    var p: f32 = 0.157517806;
    p = p * z + 0.0649348944;
    p = p * z + 0.114698753;
    p = p * z + 0.142639801;
    p = p * z + 0.200004727;
    p = p * z + 0.333333313;
    return p;
}

// (atanh(s)/s - 1 - z/3)/z^2 of z = s^2, |s| <= 3 - 2 sqrt(2).
fn tectum_power_polynomial(z: f32) -> f32 {
    var p: f32 = 0.0956019536;
    p = p * z + 0.111023821;
    p = p * z + 0.142857656;
    p = p * z + 0.200000003;
    return p;
}
