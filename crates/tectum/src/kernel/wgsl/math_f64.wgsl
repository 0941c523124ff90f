// Constants and polynomials of math.wgsl for f64. Native twin: `src/kernel/math/double.rs`.
//
// Largest error against a reference of twice the precision over all exponents, in units in the last place:
//
//     exp, exp2 1.1   log 0.9   log2 1.6   tanh 1.6   erf 1.5   sin, cos 1.1
//     sigmoid 1.1   silu, gelu 1.6   gelu_erf 1.8   min, max, relu, round exact
//
// Source. Polynomials our own, interpolated at Chebyshev nodes.
alias real = f64;
alias TectumBits = u64;
alias TectumInt = i64;

const TECTUM_WIDTH: u32 = 64u;
const TECTUM_FRACTION: u32 = 52u;
const TECTUM_BIAS: i32 = 1023;
const TECTUM_FRACTION_MASK: u64 = 0x000ffffffffffffflu;
const TECTUM_INF: u64 = 0x7ff0000000000000lu;
const TECTUM_NAN: u64 = 0x7ff8000000000000lu;
const TECTUM_SIGN: u64 = 0x8000000000000000lu;
const TECTUM_ONE: u64 = 0x3ff0000000000000lu;
// The upper half of the significand.
const TECTUM_UPPER: u64 = 0xfffffffff8000000lu;
// No number that is held is greater.
const TECTUM_HELD: f64 = 1048576.0lf;
const TECTUM_SQRT_HALF: u64 = 0x3fe6a09e667f3bcdlu;
const TECTUM_LOG2_E: f64 = 1.4426950408889634lf;
const TECTUM_LOG2_E_LESS_ONE: f64 = 0.4426950408889634lf;
// ln 2 in two parts; the upper has 32 bits, so its product with any exponent is exact.
const TECTUM_LN2_HI: f64 = 0.6931471803691238lf;
const TECTUM_LN2_LO: f64 = 1.9082149292705877e-10lf;
// Largest argument with a finite exponential, 709.782712893384; -746, below which the exponential rounds to 0.
const TECTUM_EXP_MAX: u64 = 0x40862e42fefa39eflu;
const TECTUM_EXP_END: u64 = 0xc087500000000000lu;
// The same of the binary exponential: the number below 1024, -1076.
const TECTUM_EXP2_MAX: u64 = 0x408ffffffffffffflu;
const TECTUM_EXP2_END: u64 = 0xc090d00000000000lu;
// Where tanh and erf leave their first polynomial, 0.625 and 0.921875, and where they are 1: 20, 6.
const TECTUM_TANH_SPLIT: u64 = 0x3fe4000000000000lu;
const TECTUM_TANH_ONE: u64 = 0x4034000000000000lu;
const TECTUM_ERF_SPLIT: u64 = 0x3fed800000000000lu;
const TECTUM_ERF_ONE: u64 = 0x4018000000000000lu;
// From here down e^x - 1 is -1: 40.
const TECTUM_ELU_END: u64 = 0x4044000000000000lu;
// From these magnitudes on sigmoid, silu, gelu and gelu_erf have reached their ends: 746, 756, 22, 39.
const TECTUM_SIGMOID_END: u64 = 0x4087500000000000lu;
const TECTUM_SILU_END: u64 = 0x4087a00000000000lu;
const TECTUM_GELU_END: u64 = 0x4036000000000000lu;
const TECTUM_GELU_ERF_END: u64 = 0x4043800000000000lu;
// Steps of the grid about which gelu and gelu_erf are expanded.
const TECTUM_GRID: f64 = 1024.0lf;
const TECTUM_GRID_STEP: f64 = 0.0009765625lf;
const TECTUM_SQUARE: f64 = 1024.0lf;
const TECTUM_SQUARE_STEP: f64 = 0.0009765625lf;
const TECTUM_TOP: f64 = 4294967296.0lf;
const TECTUM_TOP_STEP: f64 = 2.3283064365386963e-10lf;
// A = 2 sqrt(2/pi), the upper part a multiple of the top step; B = 0.044715 A, the upper part of 23 bits.
const TECTUM_GELU_A_HI: f64 = 1.5957691215444356lf;
const TECTUM_GELU_A_LO: f64 = 6.129509145186187e-11lf;
const TECTUM_GELU_B_HI: f64 = 0.07135480642318726lf;
const TECTUM_GELU_B_LO: f64 = 9.849412992916964e-09lf;
// The first coefficient of the normal tail.
const TECTUM_TAIL_LAST: f64 = 0.7564590055042677lf;
// The largest angle that Cody and Waite's reduction takes, 823549 rad, and pi/2 in four parts, three of 26 bits.
const TECTUM_ANGLE_NEAR: u64 = 0x412921fa00000000lu;
const TECTUM_TWO_OVER_PI: f64 = 0.6366197723675814lf;
const TECTUM_HALF_PI_0: f64 = 1.5707963109016418lf;
const TECTUM_HALF_PI_1: f64 = 1.5893254712295857e-08lf;
const TECTUM_HALF_PI_2: f64 = 6.123233932053594e-17lf;
const TECTUM_HALF_PI_3: f64 = 6.36831716351095e-25lf;

// The nearest whole number, ties to even. llvmpipe's built-in gives numbers beyond 32 bits back as they are; so numbers below
// 2^51 are put where one unit is the last place, and the clamp, which never bites, keeps the sum from being regrouped.
fn tectum_round(x: f64) -> f64 {
    let sum = clamp(x + 6755399441055744.0lf, 4503599627370496.0lf, 9007199254740992.0lf);
    let whole = bitcast<u64>(sum - 6755399441055744.0lf) | (bitcast<u64>(x) & TECTUM_SIGN);
    return bitcast<f64>(select(bitcast<u64>(x), whole, tectum_magnitude(x) < 0x4320000000000000lu));
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2.
fn tectum_exp_polynomial(r: f64) -> f64 {
    var p: f64 = 2.0914898727175524e-09lf;
    p = p * r + 2.5105513541847086e-08lf;
    p = p * r + 2.755727313289604e-07lf;
    p = p * r + 2.7557254685728803e-06lf;
    p = p * r + 2.480158732595111e-05lf;
    p = p * r + 0.0001984126987538548lf;
    p = p * r + 0.0013888888888883633lf;
    p = p * r + 0.008333333333325973lf;
    p = p * r + 0.04166666666666667lf;
    p = p * r + 0.1666666666666667lf;
    p = p * r + 0.5lf;
    return p;
}

// (ln(1 + f) - f + f^2/2) / f^3 for sqrt(1/2) <= 1 + f < sqrt(2).
fn tectum_log_polynomial(f: f64) -> f64 {
    var p: f64 = -0.025061228095282464lf;
    p = p * f + 0.0566642324205218lf;
    p = p * f - 0.06129561980727906lf;
    p = p * f + 0.0537187789066478lf;
    p = p * f - 0.05368280388050548lf;
    p = p * f + 0.05837018351464999lf;
    p = p * f - 0.06265031869518063lf;
    p = p * f + 0.06671985555271291lf;
    p = p * f - 0.0714223204915847lf;
    p = p * f + 0.0769198812013375lf;
    p = p * f - 0.08333345056413204lf;
    p = p * f + 0.09090919875998202lf;
    p = p * f - 0.0999999999631727lf;
    p = p * f + 0.11111110909841072lf;
    p = p * f - 0.12499999997109267lf;
    p = p * f + 0.1428571428759174lf;
    p = p * f - 0.16666666666697305lf;
    p = p * f + 0.19999999999993223lf;
    p = p * f - 0.2499999999999993lf;
    p = p * f + 0.33333333333333337lf;
    return p;
}

// (tanh(x) - x) / x^3 of z = x^2 below the split.
fn tectum_tanh_polynomial(z: f64) -> f64 {
    var p: f64 = 6.485163482793113e-06lf;
    p = p * z - 3.12011014257974e-05lf;
    p = p * z + 9.257116129556769e-05lf;
    p = p * z - 0.0002375906496055562lf;
    p = p * z + 0.0005896606577757043lf;
    p = p * z - 0.0014557754120478055lf;
    p = p * z + 0.0035921217511549622lf;
    p = p * z - 0.008863235103240878lf;
    p = p * z + 0.021869488519008305lf;
    p = p * z - 0.05396825396789699lf;
    p = p * z + 0.13333333333333042lf;
    p = p * z - 0.3333333333333333lf;
    return p;
}

// erf(x)/x - 1 of z = x^2 below the split.
fn tectum_erf_polynomial(z: f64) -> f64 {
    var p: f64 = 6.378155232986422e-11lf;
    p = p * z - 1.159667328450035e-09lf;
    p = p * z + 1.471185790686518e-08lf;
    p = p * z - 1.6357275997938558e-07lf;
    p = p * z + 1.6461590845053107e-06lf;
    p = p * z - 1.4925628316228882e-05lf;
    p = p * z + 0.00012055332345127849lf;
    p = p * z - 0.0008548327011110237lf;
    p = p * z + 0.005223977625288488lf;
    p = p * z - 0.02686617064511985lf;
    p = p * z + 0.11283791670955082lf;
    p = p * z - 0.37612638903183754lf;
    p = p * z + 0.1283791670955126lf;
    return p;
}

// (P(w) - TECTUM_TAIL_LAST) / w, for P see tectum_normal_tail.
fn tectum_tail_polynomial(w: f64) -> f64 {
    var p: f64 = -5.545952131187219e-08lf;
    p = p * w + 4.996540415441061e-08lf;
    p = p * w + 3.431271500968253e-07lf;
    p = p * w - 9.8290740304794e-08lf;
    p = p * w - 9.398493042482029e-07lf;
    p = p * w - 4.450558088819844e-07lf;
    p = p * w + 8.975863572377228e-07lf;
    p = p * w + 1.732135527189803e-06lf;
    p = p * w + 2.124684736367181e-06lf;
    p = p * w + 4.228456524214964e-07lf;
    p = p * w - 6.223188223559568e-06lf;
    p = p * w - 1.444112336686364e-05lf;
    p = p * w - 9.26998096699951e-06lf;
    p = p * w + 2.792272710942339e-05lf;
    p = p * w + 8.410799990342835e-05lf;
    p = p * w + 6.268111450539767e-05lf;
    p = p * w - 0.00018334087532436235lf;
    p = p * w - 0.0005490398240347585lf;
    p = p * w - 0.00019137797954915837lf;
    p = p * w + 0.001957281565506603lf;
    p = p * w + 0.003509079611631978lf;
    p = p * w - 0.005250384483753651lf;
    p = p * w - 0.02294859384754279lf;
    p = p * w + 0.02230136418390567lf;
    p = p * w + 0.15768060039606105lf;
    p = p * w - 0.5139911230863344lf;
    return p;
}

// (sin(r) - r) / r^3 of z = r^2, |r| <= pi/4.
fn tectum_sine_polynomial(z: f64) -> f64 {
    var p: f64 = -7.586687352764324e-13lf;
    p = p * z + 1.6058531453319466e-10lf;
    p = p * z - 2.50521062314023e-08lf;
    p = p * z + 2.7557319219336156e-06lf;
    p = p * z - 0.0001984126984126506lf;
    p = p * z + 0.008333333333333331lf;
    p = p * z - 0.16666666666666666lf;
    return p;
}

// (cos(r) - 1 + r^2/2) / r^4 of z = r^2, |r| <= pi/4.
fn tectum_cosine_polynomial(z: f64) -> f64 {
    var p: f64 = -1.1382618195091082e-11lf;
    p = p * z + 2.0876146070870107e-09lf;
    p = p * z - 2.755731727078194e-07lf;
    p = p * z + 2.480158729876386e-05lf;
    p = p * z - 0.0013888888888887395lf;
    p = p * z + 0.041666666666666664lf;
    return p;
}

// What the last two coefficients of the normal tail lost.
fn tectum_tail_low(w: f64) -> f64 {
    return 3.4654987691737914e-17lf + -2.6084511434908486e-17lf * w;
}

// erfc(a) = 2 Phi(-sqrt(2) a), near enough where it is taken from 1.
fn tectum_erf_complement(a: f64) -> f64 {
    let u = a * 1.4142135623730951lf;
    let w = (u - 2.0lf) / (u + 2.5lf);
    let p = TECTUM_TAIL_LAST + w * tectum_tail_polynomial(w);
    return 2.0lf * (tectum_exp_normal(-(a * a)) * (p / (u + 2.5lf)));
}

// The upper 64 bits of a b.
fn tectum_multiply_high(a: u64, b: u64) -> u64 {
    let a_lo = a & 0xfffffffflu;
    let a_hi = a >> 32u;
    let b_lo = b & 0xfffffffflu;
    let b_hi = b >> 32u;
    let middle = a_hi * b_lo + ((a_lo * b_lo) >> 32u);
    let other = a_lo * b_hi + (middle & 0xfffffffflu);
    return a_hi * b_hi + (middle >> 32u) + (other >> 32u);
}

fn tectum_leading_zeros(x: u64) -> u32 {
    let high = u32(x >> 32u);
    return select(countLeadingZeros(high), 32u + countLeadingZeros(u32(x & 0xfffffffflu)), high == 0u);
}

// For a positive finite x above TECTUM_ANGLE_NEAR, in integers. x = m 2^e; in x 2/pi, bits of 2/pi worth 4 and more, times
// the integer m, are whole turns: 192 bits from there on matter.
fn tectum_reduce_far(x: f64) -> TectumReduced {
    // 2/pi in binary: 64 zeros, then 1216 bits after the point.
    var two_over_pi = array<u64, 20>(
        0x0000000000000000lu,
        0xa2f9836e4e441529lu,
        0xfc2757d1f534ddc0lu,
        0xdb6295993c439041lu,
        0xfe5163abdebbc561lu,
        0xb7246e3a424dd2e0lu,
        0x06492eea09d1921clu,
        0xfe1deb1cb129a73elu,
        0xe88235f52ebb4484lu,
        0xe99c7026b45f7e41lu,
        0x3991d639835339f4lu,
        0x9c845f8bbdf9283blu,
        0x1ff897ffde05980flu,
        0xef2f118b5a0a6d1flu,
        0x6d367ecf27cb09b7lu,
        0x4f463f669e5fea2dlu,
        0x7527bac7ebe5f17blu,
        0x3d0739f78a5292ealu,
        0x6bfb5fb11f8d5d08lu,
        0x56033046fc7b6bablu,
    );
    let m = (bitcast<u64>(x) & TECTUM_FRACTION_MASK) | 0x0010000000000000lu;
    let offset = u32(bitcast<u64>(x) >> 52u) - 1013u;
    let first = min(offset >> 6u, 16u);
    let left = offset & 63u;
    let right = 63u - left;
    let w0 = (two_over_pi[first] << left) | ((two_over_pi[first + 1u] >> 1u) >> right);
    let w1 = (two_over_pi[first + 1u] << left) | ((two_over_pi[first + 2u] >> 1u) >> right);
    let w2 = (two_over_pi[first + 2u] << left) | ((two_over_pi[first + 3u] >> 1u) >> right);

    // The fraction of a turn in 128 bits.
    let carried = tectum_multiply_high(m, w2);
    let turn_lo = m * w1 + carried;
    let turn_hi = m * w0 + tectum_multiply_high(m, w1) + select(0lu, 1lu, turn_lo < carried);

    // The nearest quarter, and the rest as a fraction of one, in units of 2^-126, its sign apart.
    let quadrant = (turn_hi + 0x2000000000000000lu) >> 62u;
    let signed_hi = turn_hi - (quadrant << 62u);
    let negative = signed_hi >= TECTUM_SIGN;
    let hi = select(signed_hi, ~signed_hi + select(0lu, 1lu, turn_lo == 0lu), negative);
    let lo = select(turn_lo, 0lu - turn_lo, negative);
    let zeros = select(tectum_leading_zeros(hi), 64u + min(tectum_leading_zeros(lo), 63u), hi == 0lu);
    let shift = zeros & 63u;
    let upper = select(hi, lo, hi == 0lu);
    let lower = select(lo, 0lu, hi == 0lu);
    let leading = (upper << shift) | ((lower >> 1u) >> (63u - shift));

    // 53 and 11 bits of rest pi/2, both exact.
    let product = tectum_multiply_high(leading, 0xc90fdaa22168c235lu);
    let unit = bitcast<f64>((u64(962u - zeros) << 52u) | select(0lu, TECTUM_SIGN, negative));
    return TectumReduced(f64(product & 0xfffffffffffff800lu) * unit, f64(product & 0x7fflu) * unit, u32(quadrant));
}

