//! Elementary functions on `f64`: constants and polynomials of this width, and reduction of far
//! angles. For the functions see the module above.

type Real = f64;
type Bits = u64;
type Int = i64;

/// Bits of the fraction.
const FRACTION: u32 = 52;
const FRACTION_MASK: Bits = (1 << FRACTION) - 1;
const BIAS: i32 = 1023;
/// The smallest number above 0 is 2 to the minus this.
const SUBNORMAL_EXPONENT: i32 = 1074;
/// `+inf` as bits; a larger magnitude is NaN.
const INF: Bits = 0x7ff0_0000_0000_0000;
const NAN: Bits = 0x7ff8_0000_0000_0000;
const SIGN: Bits = 1 << (Bits::BITS - 1);
/// The upper half of the significand.
const UPPER: Bits = 0xffff_ffff_f800_0000;
const SQRT_HALF_BITS: Bits = 0x3fe6_a09e_667f_3bcd;

/// Adding it rounds to the nearest integer (ties to even) and leaves that in the low bits:
/// 1.5·2^FRACTION.
const ROUND: Real = 6_755_399_441_055_744.0;

const LOG2_E: Real = std::f64::consts::LOG2_E;
const LOG2_E_LESS_ONE: Real = 0.442_695_040_888_963_4;
/// ln 2 in two parts; the upper is short enough that its product with any exponent is exact.
const LN2_HI: Real = 0.693_147_180_369_123_8;
const LN2_LO: Real = 1.908_214_929_270_587_7e-10;

const LN2: Real = std::f64::consts::LN_2;

const ONE: Real = 1.0;
const TWO: Real = 2.0;

/// Of (eʳ − 1 − r)/r², the highest first.
const EXP_COEFFICIENTS: [Real; 11] = [
    2.091_489_872_717_552_4e-09,
    2.510_551_354_184_708_6e-08,
    2.755_727_313_289_604e-07,
    2.755_725_468_572_880_3e-06,
    2.480_158_732_595_111e-05,
    0.000_198_412_698_753_854_8,
    0.001_388_888_888_888_363_3,
    0.008_333_333_333_325_973,
    0.041_666_666_666_666_67,
    0.166_666_666_666_666_7,
    0.5,
];

/// Beyond these the exponential is 0 and inf, and so is the binary one.
const EXP_END: Real = -746.0;
const EXP_TOP: Real = 710.0;
const EXP2_END: Real = -1076.0;
const EXP2_TOP: Real = 1024.0;
/// Below, eˣ − 1 is −1.
const ELU_END: Real = -40.0;
/// From here on tanh is 1.
const TANH_ONE: Real = 20.0;
/// Where erf leaves its first polynomial, 0.921875, and where it is 1: 6.
const ERF_SPLIT: Bits = 0x3fed_8000_0000_0000;
const ERF_ONE: Bits = 0x4018_0000_0000_0000;
/// Magnitudes from which the functions have their limits: 756, 22, 39.
const SILU_END: Bits = 0x4087_a000_0000_0000;
const GELU_END: Bits = 0x4036_0000_0000_0000;
const GELU_ERF_END: Bits = 0x4043_8000_0000_0000;

/// Steps to 1 of the grid about which gelu and gelu_erf are expanded, of its squares, and of what
/// they multiply.
const GRID: Real = 1024.0;
const SQUARE: Real = 1024.0;
const TOP: Real = 4_294_967_296.0;
/// 2√(2/π) in two parts, the upper a multiple of 1/TOP.
const GELU_A: [Real; 2] = [1.595_769_121_544_435_6, 6.129_509_145_186_187e-11];
/// 2√(2/π)·0.044715 in two parts, the upper of 23 bits.
const GELU_B: [Real; 2] = [0.071_354_806_423_187_26, 9.849_412_992_916_964e-09];
/// The first coefficient of the normal tail.
const TAIL_LAST: Real = 0.756_459_005_504_267_7;

const TWO_OVER_PI: Real = std::f64::consts::FRAC_2_PI;
/// π/2 in four parts, the first three of 26 bits: their products with a near quadrant are exact.
const HALF_PI: [Real; 4] = [
    1.570_796_310_901_641_8,
    1.589_325_471_229_585_7e-08,
    6.123_233_932_053_594e-17,
    6.368_317_163_510_95e-25,
];
/// The largest angle that Cody and Waite's reduction takes: 823 549 rad.
const NEAR: Bits = 0x4129_21fa_0000_0000;
/// The largest angle that the near functions take: 2⁴⁰ rad.
const NEAR_END: Bits = 0x4270_0000_0000_0000;
/// 2/π in binary: 64 zeros, then 1216 bits after the point.
pub const TWO_OVER_PI_WORDS: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// The rounding error of log₂ e.
const LOG2_E_LOW: Real = 2.035_527_374_093_103_3e-17;
/// π/2 and ⅓ in two parts.
const RIGHT_ANGLE: [Real; 2] = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17];
const THIRD: [Real; 2] = [0.333_333_333_333_333_3, 1.850_371_707_708_594e-17];
/// About tan(π/8) and its inverse: between them the arctangent is reduced by π/4.
const ATAN_NEAR: Real = 0.414_213_56;
const ATAN_FAR: Real = 2.414_213_5;
/// From here on the arctangent is π/2.
const ATAN_END: Real = 1_152_921_504_606_846_976.0;
/// The largest argument with a finite hyperbolic sine, as bits.
const SINH_MAX: Bits = 0x4086_33ce_8fb9_f87d;
/// From here on three terms of a series give the inverse hyperbolic sine.
const ASINH_FAR: Real = 512.0;
/// No power of a number other than 1 to a greater magnitude is finite and not 0, as bits.
const POW_END: Bits = 0x44f0_0000_0000_0000;
/// No power of 2 with an exponent of this magnitude is a number of the type.
const POW_OUTSIDE: Real = 1100.0;

/// (asin(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ARCSINE_COEFFICIENTS: [Real; 13] = [
    0.028_757_851_367_421_566,
    -0.014_851_887_071_247_204,
    0.017_400_879_442_694_02,
    0.005_457_506_718_640_358,
    0.010_322_814_350_185_78,
    0.011_479_177_415_184_906,
    0.013_971_212_973_552_933,
    0.017_352_392_720_869_973,
    0.022_372_172_942_149_89,
    0.030_381_944_138_531_247,
    0.044_642_857_146_355_43,
    0.074_999_999_999_984_33,
    0.166_666_666_666_666_69,
];
/// (atan(x)/x − 1)/z of z = x², |x| ≤ tan(π/8), the highest coefficient first.
const ARCTANGENT_COEFFICIENTS: [Real; 11] = [
    -0.019_176_800_714_409_82,
    0.039_231_587_742_248_21,
    -0.050_854_472_957_630_806,
    0.058_581_484_461_121_95,
    -0.066_645_113_936_591_63,
    0.076_921_831_870_121_69,
    -0.090_909_045_779_597_31,
    0.111_111_110_152_523_22,
    -0.142_857_142_846_664_93,
    0.199_999_999_999_955_2,
    -0.333_333_333_333_333_3,
];
/// (sinh(x)/x − 1)/z of z = x² ≤ 1, the highest coefficient first.
const SINH_COEFFICIENTS: [Real; 7] = [
    7.746_178_593_018_827e-13,
    1.605_767_962_380_163_8e-10,
    2.505_211_769_590_782_3e-08,
    2.755_731_919_138_181_6e-06,
    0.000_198_412_698_413_241_98,
    0.008_333_333_333_333_299,
    0.166_666_666_666_666_66,
];
/// (asinh(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ASINH_COEFFICIENTS: [Real; 12] = [
    0.001_885_411_765_503_900_3,
    -0.004_992_717_198_142_511,
    0.007_622_309_427_481_728,
    -0.009_591_452_221_673_173,
    0.011_526_210_169_675_569,
    -0.013_962_235_682_232_349,
    0.017_352_587_715_192_57,
    -0.022_372_151_449_922_602,
    0.030_381_944_248_546_365,
    -0.044_642_857_140_252_436,
    0.074_999_999_999_986_4,
    -0.166_666_666_666_666_66,
];
/// (atanh(x)/x − 1)/z of z = x² ≤ ¼, the highest coefficient first.
const ATANH_COEFFICIENTS: [Real; 14] = [
    0.210_980_978_859_757_97,
    -0.144_504_911_834_144_68,
    0.135_579_039_136_922_99,
    0.012_292_448_728_540_531,
    0.054_419_154_182_345_87,
    0.051_607_698_811_471_62,
    0.058_930_996_925_900_42,
    0.066_658_863_527_018_84,
    0.076_923_459_402_706_38,
    0.090_909_078_815_091_89,
    0.111_111_111_339_389_68,
    0.142_857_142_854_901_06,
    0.200_000_000_000_008_64,
    0.333_333_333_333_333_3,
];
/// (artanh(s)/s − 1 − z/3)/z² of z = s², |s| ≤ 3 − 2√2, the highest coefficient first.
const POWER_COEFFICIENTS: [Real; 8] = [
    0.058_615_471_864_575_136,
    0.058_531_221_980_910_89,
    0.066_674_021_964_959_04,
    0.076_922_974_840_250_14,
    0.090_909_091_676_705_16,
    0.111_111_111_108_280_56,
    0.142_857_142_857_146_82,
    0.2,
];

/// (ln(1 + f) − f + f²/2)/f³ for √½ ≤ 1 + f < √2.
#[inline(always)]
fn log_polynomial(f: f64) -> f64 {
    let p = -0.025_061_228_095_282_464_f64;
    let p = p.mul_add(f, 0.056_664_232_420_521_8);
    let p = p.mul_add(f, -0.061_295_619_807_279_06);
    let p = p.mul_add(f, 0.053_718_778_906_647_8);
    let p = p.mul_add(f, -0.053_682_803_880_505_48);
    let p = p.mul_add(f, 0.058_370_183_514_649_99);
    let p = p.mul_add(f, -0.062_650_318_695_180_63);
    let p = p.mul_add(f, 0.066_719_855_552_712_91);
    let p = p.mul_add(f, -0.071_422_320_491_584_7);
    let p = p.mul_add(f, 0.076_919_881_201_337_5);
    let p = p.mul_add(f, -0.083_333_450_564_132_04);
    let p = p.mul_add(f, 0.090_909_198_759_982_02);
    let p = p.mul_add(f, -0.099_999_999_963_172_7);
    let p = p.mul_add(f, 0.111_111_109_098_410_72);
    let p = p.mul_add(f, -0.124_999_999_971_092_67);
    let p = p.mul_add(f, 0.142_857_142_875_917_4);
    let p = p.mul_add(f, -0.166_666_666_666_973_05);
    let p = p.mul_add(f, 0.199_999_999_999_932_23);
    let p = p.mul_add(f, -0.249_999_999_999_999_3);
    p.mul_add(f, 0.333_333_333_333_333_37)
}

/// erf(x)/x − 1 of z = x² below the split.
#[inline(always)]
fn erf_polynomial(z: f64) -> f64 {
    let p = 6.378_155_232_986_422e-11_f64;
    let p = p.mul_add(z, -1.159_667_328_450_035e-09);
    let p = p.mul_add(z, 1.471_185_790_686_518e-08);
    let p = p.mul_add(z, -1.635_727_599_793_855_8e-07);
    let p = p.mul_add(z, 1.646_159_084_505_310_7e-06);
    let p = p.mul_add(z, -1.492_562_831_622_888_2e-05);
    let p = p.mul_add(z, 0.000_120_553_323_451_278_49);
    let p = p.mul_add(z, -0.000_854_832_701_111_023_7);
    let p = p.mul_add(z, 0.005_223_977_625_288_488);
    let p = p.mul_add(z, -0.026_866_170_645_119_85);
    let p = p.mul_add(z, 0.112_837_916_709_550_82);
    let p = p.mul_add(z, -0.376_126_389_031_837_54);
    p.mul_add(z, 0.128_379_167_095_512_6)
}

/// (P(w) − `TAIL_LAST`)/w, for P see `normal_tail`.
#[inline(always)]
fn tail_polynomial(w: f64) -> f64 {
    let p = -5.545_952_131_187_219e-08_f64;
    let p = p.mul_add(w, 4.996_540_415_441_061e-08);
    let p = p.mul_add(w, 3.431_271_500_968_253e-07);
    let p = p.mul_add(w, -9.829_074_030_479_4e-08);
    let p = p.mul_add(w, -9.398_493_042_482_029e-07);
    let p = p.mul_add(w, -4.450_558_088_819_844e-07);
    let p = p.mul_add(w, 8.975_863_572_377_228e-07);
    let p = p.mul_add(w, 1.732_135_527_189_803e-06);
    let p = p.mul_add(w, 2.124_684_736_367_181e-06);
    let p = p.mul_add(w, 4.228_456_524_214_964e-07);
    let p = p.mul_add(w, -6.223_188_223_559_568e-06);
    let p = p.mul_add(w, -1.444_112_336_686_364e-05);
    let p = p.mul_add(w, -9.269_980_966_999_51e-06);
    let p = p.mul_add(w, 2.792_272_710_942_339e-05);
    let p = p.mul_add(w, 8.410_799_990_342_835e-05);
    let p = p.mul_add(w, 6.268_111_450_539_767e-05);
    let p = p.mul_add(w, -0.000_183_340_875_324_362_35);
    let p = p.mul_add(w, -0.000_549_039_824_034_758_5);
    let p = p.mul_add(w, -0.000_191_377_979_549_158_37);
    let p = p.mul_add(w, 0.001_957_281_565_506_603);
    let p = p.mul_add(w, 0.003_509_079_611_631_978);
    let p = p.mul_add(w, -0.005_250_384_483_753_651);
    let p = p.mul_add(w, -0.022_948_593_847_542_79);
    let p = p.mul_add(w, 0.022_301_364_183_905_67);
    let p = p.mul_add(w, 0.157_680_600_396_061_05);
    p.mul_add(w, -0.513_991_123_086_334_4)
}

/// (sin r − r)/r³ of z = r², |r| ≤ π/4.
#[inline(always)]
fn sine_polynomial(z: f64) -> f64 {
    let p = -7.586_687_352_764_324e-13_f64;
    let p = p.mul_add(z, 1.605_853_145_331_946_6e-10);
    let p = p.mul_add(z, -2.505_210_623_140_23e-08);
    let p = p.mul_add(z, 2.755_731_921_933_615_6e-06);
    let p = p.mul_add(z, -0.000_198_412_698_412_650_6);
    let p = p.mul_add(z, 0.008_333_333_333_333_331);
    p.mul_add(z, -0.166_666_666_666_666_66)
}

/// (cos r − 1 + r²/2)/r⁴ of z = r², |r| ≤ π/4.
#[inline(always)]
fn cosine_polynomial(z: f64) -> f64 {
    let p = -1.138_261_819_509_108_2e-11_f64;
    let p = p.mul_add(z, 2.087_614_607_087_010_7e-09);
    let p = p.mul_add(z, -2.755_731_727_078_194e-07);
    let p = p.mul_add(z, 2.480_158_729_876_386e-05);
    let p = p.mul_add(z, -0.001_388_888_888_888_739_5);
    p.mul_add(z, 0.041_666_666_666_666_664)
}

/// The rounding errors of the last two coefficients of the normal tail.
#[inline(always)]
fn tail_low(w: f64) -> f64 {
    3.465_498_769_173_791_4e-17 + -2.608_451_143_490_848_6e-17 * w
}

/// erfc(a) = 2 Φ(−√2·a), accurate enough where it is subtracted from 1.
#[inline(always)]
fn erf_complement(a: f64) -> f64 {
    let u = a * std::f64::consts::SQRT_2;
    let w = (u - 2.0) / (u + 2.5);
    let p = TAIL_LAST + w * tail_polynomial(w);
    2.0 * (exp_normal(-(a * a)) * (p / (u + 2.5)))
}

/// The bits of a subnormal number as an integer: placed below 2⁵², which is then subtracted.
#[inline(always)]
fn fraction_as_float(bits: u64) -> f64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    f64::from_bits((bits & FRACTION_MASK) | WHOLE.to_bits()) - WHOLE
}

/// For a positive finite x above [`NEAR`].
fn reduce_far(x: f64) -> Reduced {
    // x = m·2^e. In x·2/π, bits of 2/π worth 4 and more, times the integer m, are full revolutions:
    // the 192 bits after them matter.
    let m = u128::from((x.to_bits() & FRACTION_MASK) | (1 << FRACTION));
    let offset = ((x.to_bits() >> FRACTION) - 1013) as usize;
    let bits = |index: usize| {
        let two =
            u128::from(TWO_OVER_PI_WORDS[index]) << 64 | u128::from(TWO_OVER_PI_WORDS[index + 1]);
        (two << (offset % 64)) >> 64
    };
    let first = offset / 64;
    let turn = ((m * bits(first)) << 64)
        .wrapping_add(m * bits(first + 1))
        .wrapping_add((m * bits(first + 2)) >> 64);

    // The nearest quarter, and the signed remainder as a fraction of one, in units of 2^-126.
    let quadrant = (turn.wrapping_add(1 << 125) >> 126) as u32;
    let rest = turn.wrapping_sub(u128::from(quadrant) << 126) as i128;
    let zeros = rest.unsigned_abs().leading_zeros();
    let leading = (rest.unsigned_abs() << zeros) >> 64;
    let product = ((leading * 0xc90f_daa2_2168_c235) >> 64) as u64;

    // 53 and 11 bits of rest·π/2, both exact.
    let unit = f64::from_bits(u64::from(962 - zeros) << FRACTION | if rest < 0 { SIGN } else { 0 });
    Reduced {
        r: (product & !0x7ff) as f64 * unit,
        low: (product & 0x7ff) as f64 * unit,
        quadrant,
    }
}

/// x − n·½ ln 2, the first step exact.
#[inline(always)]
fn less_half_ln2(x: Real, n: Real) -> Real {
    fused(n, -(LN2_LO / TWO), fused(n, -(LN2_HI / TWO), x))
}

/// 1/x.
#[inline(always)]
fn about_reciprocal(x: Real) -> Real {
    ONE / x
}

include!("functions.rs");
include!("exponentials.rs");
include!("remainders.rs");
include!("trigonometric.rs");
include!("hyperbolic.rs");
include!("powers.rs");
