//! Elementary functions on `f32`: constants and polynomials of this width, and reduction of far
//! angles. For the functions see the module above.

pub(crate) mod four;

type Real = f32;
type Bits = u32;
type Int = i32;

/// Bits of the fraction.
const FRACTION: u32 = 23;
const FRACTION_MASK: Bits = (1 << FRACTION) - 1;
const BIAS: i32 = 127;
/// The smallest number above 0 is 2 to the minus this.
const SUBNORMAL_EXPONENT: i32 = 149;
/// `+inf` as bits; a larger magnitude is NaN.
const INF: Bits = 0x7f80_0000;
const NAN: Bits = 0x7fc0_0000;
const SIGN: Bits = 1 << (Bits::BITS - 1);
/// The upper half of the significand.
const UPPER: Bits = 0xffff_f000;
const SQRT_HALF_BITS: Bits = 0x3f35_04f3;

/// Adding it rounds to the nearest integer (ties to even) and leaves that in the low bits:
/// 1.5·2^FRACTION.
const ROUND: Real = 12_582_912.0;

const LOG2_E: Real = std::f32::consts::LOG2_E;
const LOG2_E_LESS_ONE: Real = 0.442_695_05;
/// ln 2 in two parts; the upper is short enough that its product with any exponent is exact.
const LN2_HI: Real = 355.0 / 512.0;
const LN2_LO: Real = -2.121_944_4e-4;

const LN2: Real = std::f32::consts::LN_2;
const HALF_LN2: Real = LN2 / TWO;

const ONE: Real = 1.0;
const TWO: Real = 2.0;

/// Of (eʳ − 1 − r)/r², the highest first: eʳ − 1 to 1.6e-8 of itself.
const EXP_COEFFICIENTS: [Real; 5] = [
    1.394_649_7e-3,
    8.366_611e-3,
    4.166_628e-2,
    1.666_654_3e-1,
    0.5,
];

/// Beyond these the exponential is 0 and inf, and so is the binary one.
const EXP_END: Real = -104.0;
const EXP_TOP: Real = 89.0;
const EXP2_END: Real = -151.0;
const EXP2_TOP: Real = 128.0;
/// Below, eˣ − 1 is −1.
const ELU_END: Real = -20.0;
/// From here on tanh is 1.
const TANH_ONE: Real = 10.0;
/// Where erf leaves its first polynomial, 0.921875, and where it is 1: 3.9375.
const ERF_SPLIT: Bits = 0x3f6c_0000;
const ERF_ONE: Bits = 0x407c_0000;
/// Magnitudes from which the functions have their limits: 112, 11, 14.5.
const SILU_END: Bits = 0x42e0_0000;
const GELU_END: Bits = 0x4130_0000;
const GELU_ERF_END: Bits = 0x4168_0000;

/// Steps to 1 of the grid about which gelu and gelu_erf are expanded, of its squares, and of what
/// they multiply.
const GRID: Real = 64.0;
const SQUARE: Real = 8.0;
const TOP: Real = 1024.0;
/// 2√(2/π) in two parts, the upper a multiple of 1/TOP.
const GELU_A: [Real; 2] = [1.595_703_1, 6.599_66e-5];
/// 2√(2/π)·0.044715 in two parts, the upper of 14 bits.
const GELU_B: [Real; 2] = [0.071_350_1, 4.718_616_4e-6];
/// The first coefficient of the normal tail.
const TAIL_LAST: Real = 0.756_459;

const TWO_OVER_PI: Real = std::f32::consts::FRAC_2_PI;
/// π/2 in four parts, the first three of 11 bits: their products with a near quadrant are exact.
const HALF_PI: [Real; 4] = [1.570_312_5, 4.837_513e-4, 7.549_533_6e-8, 2.563_344e-12];
/// The largest angle that Cody and Waite's reduction takes: 12 867 rad.
const NEAR: Bits = 0x4649_0c00;
/// The largest angle that the near functions take: 2²² rad.
const NEAR_END: Bits = 0x4a80_0000;
/// 2/π in binary: 32 zeros, then 224 bits after the point.
const TWO_OVER_PI_WORDS: [u32; 8] = [
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
];

/// The rounding error of log₂ e.
const LOG2_E_LOW: Real = 1.925_963e-8;
/// π/2 and ⅓ in two parts.
const RIGHT_ANGLE: [Real; 2] = [std::f32::consts::FRAC_PI_2, -4.371_139e-8];
const THIRD: [Real; 2] = [0.333_333_34, -9.934_108e-9];
/// About tan(π/8) and its inverse: between them the arctangent is reduced by π/4.
const ATAN_NEAR: Real = 0.414_213_56;
const ATAN_FAR: Real = 2.414_213_5;
/// From here on the arctangent is π/2.
const ATAN_END: Real = 2_147_483_648.0;
/// The largest argument with a finite hyperbolic sine, as bits.
const SINH_MAX: Bits = 0x42b2_d4fc;
/// From here on three terms of a series give the inverse hyperbolic sine.
const ASINH_FAR: Real = 32.0;
/// No power of a number other than 1 to a greater magnitude is finite and not 0, as bits.
const POW_END: Bits = 0x5380_0000;
/// No power of 2 with an exponent of this magnitude is a number of the type.
const POW_OUTSIDE: Real = 160.0;

/// (asin(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ARCSINE_COEFFICIENTS: [Real; 6] = [
    0.033_690_847,
    0.017_149_238,
    0.031_100_662,
    0.044_599_403,
    0.075_000_94,
    0.166_666_66,
];
/// (atan(x)/x − 1)/z of z = x², |x| ≤ tan(π/8), the highest coefficient first.
const ARCTANGENT_COEFFICIENTS: [Real; 5] = [
    -0.064_519_16,
    0.107_437_275,
    -0.142_639_55,
    0.199_995_4,
    -0.333_333_3,
];
/// (sinh(x)/x − 1)/z of z = x² ≤ 1, the highest coefficient first.
const SINH_COEFFICIENTS: [Real; 4] = [
    2.806_280_2e-06,
    0.000_198_381_02,
    0.008_333_339,
    0.166_666_67,
];
/// (asinh(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ASINH_COEFFICIENTS: [Real; 5] = [
    -0.014_288_508,
    0.028_783_606,
    -0.044_506_513,
    0.074_995_82,
    -0.166_666_64,
];
/// (atanh(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ATANH_COEFFICIENTS: [Real; 6] = [
    0.157_517_8,
    0.064_934_894,
    0.114_698_75,
    0.142_639_8,
    0.200_004_73,
    0.333_333_3,
];
/// (artanh(s)/s − 1 − z/3)/z² of z = s², |s| ≤ 3 − 2√2, the highest coefficient first.
const POWER_COEFFICIENTS: [Real; 4] = [0.095_601_95, 0.111_023_82, 0.142_857_66, 0.2];

/// (ln(1 + f) − f + f²/2)/f³ for √½ ≤ 1 + f < √2.
#[inline(always)]
fn log_polynomial(f: f32) -> f32 {
    let p = 7.037_683_6e-2_f32;
    let p = p.mul_add(f, -1.151_461e-1);
    let p = p.mul_add(f, 1.167_699_87e-1);
    let p = p.mul_add(f, -1.242_014_1e-1);
    let p = p.mul_add(f, 1.424_932_3e-1);
    let p = p.mul_add(f, -1.666_805_7e-1);
    let p = p.mul_add(f, 2.000_071_4e-1);
    let p = p.mul_add(f, -2.499_999_4e-1);
    p.mul_add(f, 3.333_333e-1)
}

/// erf(x)/x − 1 of z = x² below the split.
#[inline(always)]
fn erf_polynomial(z: f32) -> f32 {
    let p = 7.997_498e-5_f32;
    let p = p.mul_add(z, -8.049_931e-4);
    let p = p.mul_add(z, 5.192_415e-3);
    let p = p.mul_add(z, -2.685_573_3e-2);
    let p = p.mul_add(z, 1.128_362_6e-1);
    let p = p.mul_add(z, -3.761_263e-1);
    p.mul_add(z, 1.283_791_7e-1)
}

/// (P(w) − `TAIL_LAST`)/w, for P see `normal_tail`.
#[inline(always)]
fn tail_polynomial(w: f32) -> f32 {
    let p = 7.590_033e-5_f32;
    let p = p.mul_add(w, -6.325_491e-5);
    let p = p.mul_add(w, -5.454_203e-4);
    let p = p.mul_add(w, -2.628_223_2e-4);
    let p = p.mul_add(w, 1.952_935_4e-3);
    let p = p.mul_add(w, 3.529_246e-3);
    let p = p.mul_add(w, -5.249_216_7e-3);
    let p = p.mul_add(w, -2.295_117_5e-2);
    let p = p.mul_add(w, 2.230_123_6e-2);
    let p = p.mul_add(w, 0.157_680_72);
    p.mul_add(w, -0.513_991_1)
}

/// (sin r − r)/r³ of z = r², |r| ≤ π/4.
#[inline(always)]
fn sine_polynomial(z: f32) -> f32 {
    let p = -1.951_529_6e-4_f32;
    let p = p.mul_add(z, 8.332_161e-3);
    p.mul_add(z, -1.666_665_5e-1)
}

/// (cos r − 1 + r²/2)/r⁴ of z = r², |r| ≤ π/4.
#[inline(always)]
fn cosine_polynomial(z: f32) -> f32 {
    let p = 2.443_315_7e-5_f32;
    let p = p.mul_add(z, -1.388_731_6e-3);
    p.mul_add(z, 4.166_664_6e-2)
}

/// The rounding errors of the last two coefficients of the normal tail.
#[inline(always)]
fn tail_low(_: f32) -> f32 {
    6.657e-9
}

/// erfc(a) = e^P(a), P near ln erfc.
#[inline(always)]
fn erf_complement(a: f32) -> f32 {
    let p = -2.109_835e-5_f32;
    let p = p.mul_add(a, 4.345_036_3e-4);
    let p = p.mul_add(a, -4.171_272e-3);
    let p = p.mul_add(a, 2.511_999e-2);
    let p = p.mul_add(a, -1.082_809_6e-1);
    let p = p.mul_add(a, -6.333_461_4e-1);
    let p = p.mul_add(a, -1.129_515_3);
    let p = p.mul_add(a, 1.747_539_6e-4);
    exp_normal(p)
}

/// The bits of a subnormal number as an integer.
#[inline(always)]
fn fraction_as_float(bits: u32) -> f32 {
    bits as i32 as f32
}

/// For a positive finite x of 2¹³ and more.
fn reduce_far(x: f32) -> Reduced {
    // x = m·2^e. In x·2/π, bits of 2/π worth 4 and more, times the integer m, are full revolutions:
    // the 96 bits after them matter.
    let m = u64::from((x.to_bits() & 0x007f_ffff) | 0x0080_0000);
    let offset = ((x.to_bits() >> 23) - 120) as usize;
    let bits = |index: usize| {
        let two =
            u64::from(TWO_OVER_PI_WORDS[index]) << 32 | u64::from(TWO_OVER_PI_WORDS[index + 1]);
        (two << (offset % 32)) >> 32
    };
    let first = offset / 32;
    let turn = ((m * bits(first)) << 32)
        .wrapping_add(m * bits(first + 1))
        .wrapping_add((m * bits(first + 2)) >> 32);

    // The nearest quarter, and the signed remainder as a fraction of one, in units of 2^-62.
    let quadrant = (turn.wrapping_add(1 << 61) >> 62) as u32;
    let rest = turn.wrapping_sub(u64::from(quadrant) << 62) as i64;
    let zeros = rest.unsigned_abs().leading_zeros();
    let leading = (rest.unsigned_abs() << zeros) >> 32;
    let product = ((leading * 0xc90f_daa2) >> 32) as u32;

    // 24 and 8 bits of rest·π/2, both exact.
    let unit = f32::from_bits((127 - 29 - zeros) << 23 | if rest < 0 { SIGN } else { 0 });
    Reduced {
        r: (product & 0xffff_ff00) as f32 * unit,
        low: (product & 0xff) as f32 * unit,
        quadrant,
    }
}

/// x − n·½ ln 2 for n up to 29, the product and the sum rounded once: half of ln 2 is off by 1e-9
/// only.
#[inline(always)]
fn less_half_ln2(x: Real, n: Real) -> Real {
    fused(n, -HALF_LN2, x)
}

/// About 1/x of a normal positive x whose inverse is normal, to 7e-6 of it. A division takes as
/// long as ten other steps.
///
/// Source: inverting the exponent and the fraction together is within 5.1 % of it; then the first
/// four terms of 1/(1 − e).
#[inline(always)]
fn about_reciprocal(x: Real) -> Real {
    let guess = Real::from_bits(0x7ef3_1000_u32.wrapping_sub(x.to_bits()));
    let e = fused(-x, guess, ONE);
    fused(guess, fused(e, fused(e, e, e), e), guess)
}

include!("functions.rs");
include!("exponentials.rs");
include!("remainders.rs");
include!("trigonometric.rs");
include!("hyperbolic.rs");
include!("powers.rs");
