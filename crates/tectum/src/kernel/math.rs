//! Elementary functions on `f32`: the native twin of `kernels/lib/math.wgsl`, the same algorithm line for line.
//!
//! Every function is free of branches and of table look-ups, so a plain loop over a slice vectorises wherever it is
//! compiled with SIMD enabled (inside `pulp::Arch::dispatch`, for instance). Only IEEE 754 additions, multiplications
//! and divisions are used, none of them fused, so the result has the same bits on every CPU.
//!
//! # Numerics
//!
//! The errors stated are the largest found against float64 over every `f32` value (see the tests for the sampled
//! check). Common to all: NaN in gives NaN out, a result smaller than the smallest normal number
//! (2⁻¹²⁶) may be 0, and special values are recognised on bits, never by comparing floats.
//!
//! # Source
//!
//! Range reduction after Cody and Waite, *Software Manual for the Elementary Functions* (1980); the polynomials of
//! `exp`, `log`, `tanh`, `sin` and `cos` are those of the single-precision Cephes library (S. L. Moshier). We depart from
//! Cephes in scaling by integer addition on the exponent, in flushing subnormal results, and in having no branches.

/// `+inf` as bits; a larger magnitude is NaN.
const INF: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;
const SIGN: u32 = 0x8000_0000;

/// Adding 1.5·2²³ rounds to the nearest integer (ties to even) and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// ln 2 in two parts; the upper has 9 bits, so its product with any exponent is exact.
const LN2_HI: f32 = 355.0 / 512.0;
const LN2_LO: f32 = -2.121_944_4e-4;

/// The largest argument whose exponential is finite, 88.72283.
const EXP_MAX: u32 = 0x42b1_7217;
/// The magnitude of the lowest argument whose exponential is a normal number, 87.33654.
const EXP_MIN: u32 = 0x42ae_ac4f;

/// π/2 in four parts, the first three of 11 bits: their products with a quadrant below 2¹³ are exact.
const HALF_PI: [f32; 4] = [1.570_312_5, 4.837_513e-4, 7.549_533_6e-8, 2.563_344e-12];
/// Largest angle that `sin` and `cos` accept: 2²² rad.
const ANGLE_MAX: u32 = 0x4a80_0000;

/// 2√(2/π) in two parts, the upper a multiple of 2⁻¹⁰.
const GELU_A: [f32; 2] = [1.595_703_1, 6.599_66e-5];
/// 2√(2/π)·0.044715 in two parts, the upper of 14 bits.
const GELU_B: [f32; 2] = [0.071_350_1, 4.718_616_4e-6];
/// Beyond 10 either way, `gelu` has reached x or 0.
const GELU_MAX: u32 = 0x4120_0000;

/// Says whether `x` is NaN, by its bits.
#[inline(always)]
pub fn is_nan(x: f32) -> bool {
    magnitude(x) > INF
}

/// Computes eˣ.
///
/// # Numerics
///
/// At most 0.9 ulp. `exp(-inf) = 0`, `exp(+inf) = inf`, overflow above 88.72283 gives inf, and below −87.33654, where
/// the result would be subnormal, 0.
///
/// # Source
///
/// Cephes `expf`: x = n·ln 2 + r, |r| ≤ ½ ln 2, eʳ = 1 + r + r²·P₅(r).
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let over = (x.to_bits() as i32) > EXP_MAX as i32;
    let under = x.to_bits() > (SIGN | EXP_MIN);
    let inside = select(over | under, 0, x.to_bits());
    let y = exp_finite(f32::from_bits(inside)).to_bits();
    let y = select(under, 0, select(over, INF, y));
    f32::from_bits(select(is_nan(x), NAN, y))
}

/// Computes the natural logarithm ln x.
///
/// # Numerics
///
/// At most 0.9 ulp, subnormal arguments included. `log(±0) = -inf`, `log(+inf) = inf`, and a negative argument gives NaN.
///
/// # Source
///
/// Cephes `logf`: x = m·2ᵉ, √½ ≤ m < √2, f = m − 1, ln m = f − f²/2 + f³·P₈(f).
#[inline(always)]
pub fn log(x: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    let bits = x.to_bits();

    // A subnormal is its mantissa as an integer times 2^-149, and that integer is exact as a float.
    let subnormal = bits < 0x0080_0000;
    let normal = select(subnormal, (bits as i32 as f32).to_bits(), bits);
    let shifted = normal.wrapping_sub(SQRT_HALF);
    let e = ((shifted as i32 >> 23) - if subnormal { 149 } else { 0 }) as f32;
    let f = f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF) - 1.0;

    let p = 7.037_683_6e-2;
    let p = p * f - 1.151_461e-1;
    let p = p * f + 1.167_699_87e-1;
    let p = p * f - 1.242_014_1e-1;
    let p = p * f + 1.424_932_3e-1;
    let p = p * f - 1.666_805_7e-1;
    let p = p * f + 2.000_071_4e-1;
    let p = p * f - 2.499_999_4e-1;
    let p = p * f + 3.333_333e-1;
    let f2 = f * f;
    let tail = (f * f2 * p + e * LN2_LO) - 0.5 * f2;
    let y = ((f + tail) + e * LN2_HI).to_bits();

    let y = select(bits == INF, INF, y);
    let y = select(bits > INF, NAN, y);
    f32::from_bits(select(magnitude(x) == 0, SIGN | INF, y))
}

/// Computes the hyperbolic tangent.
///
/// # Numerics
///
/// At most 1.4 ulp, relative accuracy kept down to 0; odd, and never beyond ±1. `tanh(±inf) = ±1`.
///
/// # Source
///
/// Cephes `tanhf`: x + x³·P₄(x²) below 0.625, else 1 − 2/(e²ˣ + 1).
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    const SPLIT: u32 = 0x3f20_0000;
    const ONE_FROM: u32 = 0x4120_0000;
    let size = magnitude(x);
    let a = f32::from_bits(select(size > ONE_FROM, ONE_FROM, size));

    let z = a * a;
    let p = -5.704_988_7e-3;
    let p = p * z + 2.063_908_8e-2;
    let p = p * z - 5.373_971_6e-2;
    let p = p * z + 1.333_144_2e-1;
    let p = p * z - 3.333_328e-1;
    let near = a + a * (z * p);
    let far = 1.0 - 2.0 / (exp_finite(a + a) + 1.0);

    let y = select(size < SPLIT, near.to_bits(), far.to_bits()) | (x.to_bits() & SIGN);
    f32::from_bits(select(is_nan(x), NAN, y))
}

/// Computes the logistic function 1/(1 + e⁻ˣ).
///
/// # Numerics
///
/// At most 2.5 ulp, relative accuracy kept in the lower tail down to −87.33654, below which the result is 0; always in
/// [0, 1]. `sigmoid(-inf) = 0`, `sigmoid(+inf) = 1`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let saturated = magnitude(x) > EXP_MIN;
    let inside = f32::from_bits(select(saturated, 0, x.to_bits()));
    let e = exp_finite(-f32::from_bits(magnitude(inside)));
    let numerator = f32::from_bits(select(x.to_bits() < SIGN, 1.0f32.to_bits(), e.to_bits()));
    let y = (numerator / (1.0 + e)).to_bits();
    let end = select(x.to_bits() < SIGN, 1.0f32.to_bits(), 0);
    f32::from_bits(select(is_nan(x), NAN, select(saturated, end, y)))
}

/// Computes the Gaussian error linear unit in its tanh form, ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
///
/// # Numerics
///
/// At most 2.3 ulp, relative accuracy kept in the negative tail down to −10, below which (results under 1.3e-37 in
/// magnitude) it is +0. `gelu(-inf) = 0`, `gelu(+inf) = inf`.
///
/// # Source
///
/// Hendrycks and Gimpel, arXiv:1606.08415. Computed as x/(1 + e⁻ᵗ), t = 2√(2/π)(x + 0.044715x³); t reaches 87, so it is
/// carried as an exact part and a remainder, expanded about the multiple of 1/64 nearest to x.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    let saturated = magnitude(x) > GELU_MAX;
    let inside = f32::from_bits(select(saturated, 0, x.to_bits()));
    let y = (inside / (1.0 + gelu_exponential(inside))).to_bits();
    let end = select(x.to_bits() < SIGN, x.to_bits(), 0);
    f32::from_bits(select(is_nan(x), NAN, select(saturated, end, y)))
}

/// Computes the sine of an angle in radians.
///
/// # Numerics
///
/// At most 1.1 ulp for |x| ≤ 12 867 rad, close to multiples of π included; beyond that an absolute error up to |x|·2⁻²³;
/// above 2²² rad, where neighbouring floats are half a radian apart, NaN. Odd, and always in [-1, 1]. `sin(±inf) = NaN`.
///
/// # Source
///
/// Cephes `sinf` and `cosf` on |r| ≤ π/4, with π/2 in four parts rather than three.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let y = sine_quarters(f32::from_bits(magnitude(x)), 0);
    f32::from_bits(y.to_bits() ^ (x.to_bits() & SIGN))
}

/// Computes the cosine of an angle in radians.
///
/// # Numerics
///
/// As for [`sin`], at most 1.1 ulp for |x| ≤ 12 867 rad.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    sine_quarters(x, 1)
}

/// Picks the lesser of two numbers: exact; NaN if either is NaN; −0 is less than +0 (IEEE 754-2019 `minimum`).
#[inline(always)]
pub fn min(a: f32, b: f32) -> f32 {
    let least = select(order_bits(a) < order_bits(b), a.to_bits(), b.to_bits());
    f32::from_bits(select(is_nan(a) | is_nan(b), NAN, least))
}

/// Picks the greater of two numbers: exact; NaN if either is NaN; +0 is greater than −0 (IEEE 754-2019 `maximum`).
#[inline(always)]
pub fn max(a: f32, b: f32) -> f32 {
    let greatest = select(order_bits(a) < order_bits(b), b.to_bits(), a.to_bits());
    f32::from_bits(select(is_nan(a) | is_nan(b), NAN, greatest))
}

/// Computes max(x, 0): exact; NaN stays NaN, −0 becomes +0.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    let below = (x.to_bits() >= SIGN) & (x.to_bits() <= (SIGN | INF));
    f32::from_bits(select(below, 0, x.to_bits()))
}

/// eˣ for −[`EXP_MIN`] ≤ x ≤ [`EXP_MAX`].
#[inline(always)]
fn exp_finite(x: f32) -> f32 {
    let shifted = x * LOG2_E + ROUND;
    let n = shifted - ROUND;
    exp_scaled(x - n * LN2_HI, n * -LN2_LO, shifted)
}

/// eʳ·2ⁿ for r = high + low, high exact and |r| ≤ ½ ln 2, n being in the low bits of `shifted`.
#[inline(always)]
fn exp_scaled(high: f32, low: f32, shifted: f32) -> f32 {
    let r = high + low;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let y = 1.0 + (high + (p * (r * r) + low));
    f32::from_bits(y.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// e⁻ᵗ for t = 2√(2/π)(x + 0.044715x³) and |x| ≤ 10.
#[inline(always)]
fn gelu_exponential(x: f32) -> f32 {
    // c is x to a multiple of 1/64, d the rest; c and c² are exact.
    let c = ((x * 64.0 + ROUND) - ROUND) * 0.015_625;
    let d = x - c;
    let c2 = c * c;

    // A + B·c² = top + low, top a multiple of 2^-10; all but the last two products are exact.
    let c2_hi = ((c2 * 8.0 + ROUND) - ROUND) * 0.125;
    let near = ((c2 * (1024.0 * GELU_B[0]) + ROUND) - ROUND) * (1.0 / 1024.0);
    let rest = (c2_hi * GELU_B[0] - near) + (c2 - c2_hi) * GELU_B[0];
    let low = rest + (c2 * GELU_B[1] + GELU_A[1]);
    let top = GELU_A[0] + near;

    // t = c(A + B·c²) + d(A + B(3c² + 3cd + d²)).
    let slope = top + (low + (GELU_B[0] + GELU_B[1]) * (2.0 * c2 + d * (3.0 * c + d)));
    let t_hi = c * top;
    let t_lo = c * low + d * slope;

    let shifted = (t_hi + t_lo) * -LOG2_E + ROUND;
    let n = shifted - ROUND;
    exp_scaled(-t_hi - n * LN2_HI, n * -LN2_LO - t_lo, shifted)
}

/// sin(x + quarters·π/2).
#[inline(always)]
fn sine_quarters(x: f32, quarters: u32) -> f32 {
    let outside = magnitude(x) > ANGLE_MAX;
    let inside = f32::from_bits(select(outside, 0, x.to_bits()));
    let shifted = inside * std::f32::consts::FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let r = inside - n * HALF_PI[0];
    let high = r - n * HALF_PI[1];

    // What follows is rounded: r carries the sum, low what the rounding lost.
    let r = high - n * HALF_PI[2];
    let low = ((high - r) - n * HALF_PI[2]) - n * HALF_PI[3];
    let z = r * r;

    let s = (-1.951_529_6e-4 * z + 8.332_161e-3) * z - 1.666_665_5e-1;
    let s = r + (r * (z * s) + low);
    let c = (2.443_315_7e-5 * z - 1.388_731_6e-3) * z + 4.166_664_6e-2;
    let c = 1.0 - (0.5 * z - (z * z * c - r * low));

    let quadrant = shifted.to_bits().wrapping_add(quarters);
    let y = select(quadrant & 1 == 0, s.to_bits(), c.to_bits());
    let y = select(
        y & !SIGN > 1.0f32.to_bits(),
        1.0f32.to_bits() | (y & SIGN),
        y,
    );
    f32::from_bits(select(outside, NAN, y ^ ((quadrant & 2) << 30)))
}

/// Bits without the sign.
#[inline(always)]
fn magnitude(x: f32) -> u32 {
    x.to_bits() & !SIGN
}

/// An integer that orders as the float does, −0 below +0.
#[inline(always)]
fn order_bits(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    bits ^ ((bits >> 31) & i32::MAX)
}

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    if condition { yes } else { no }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The bounds stated in the functions' documentation.
    const EXP_ULP: f64 = 0.9;
    const LOG_ULP: f64 = 0.9;
    const TANH_ULP: f64 = 1.4;
    const SIGMOID_ULP: f64 = 2.5;
    const GELU_ULP: f64 = 2.3;
    const SIN_ULP: f64 = 1.1;
    const COS_ULP: f64 = 1.1;

    /// Largest angle for which `sin` and `cos` keep their relative accuracy.
    const ANGLE: f32 = 12_867.0;
    const ALL: f32 = f32::INFINITY;

    type Unary = fn(f32) -> f32;

    struct Case {
        name: &'static str,
        native: Unary,
        exact: fn(f64) -> f64,
        ulp: f64,
        /// The largest magnitude for which it is stated.
        limit: f32,
    }

    const fn case(
        name: &'static str,
        native: Unary,
        exact: fn(f64) -> f64,
        ulp: f64,
        limit: f32,
    ) -> Case {
        Case {
            name,
            native,
            exact,
            ulp,
            limit,
        }
    }

    const CASES: [Case; 7] = [
        case("exp", exp, f64::exp, EXP_ULP, ALL),
        case("log", log, f64::ln, LOG_ULP, ALL),
        case("tanh", tanh, f64::tanh, TANH_ULP, ALL),
        case(
            "sigmoid",
            sigmoid,
            |x| 1.0 / (1.0 + (-x).exp()),
            SIGMOID_ULP,
            ALL,
        ),
        case("gelu", gelu, exact_gelu, GELU_ULP, ALL),
        case("sin", sin, f64::sin, SIN_ULP, ANGLE),
        case("cos", cos, f64::cos, COS_ULP, ANGLE),
    ];

    /// Zero below −10, as documented.
    fn exact_gelu(x: f64) -> f64 {
        let t = (8.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        if x < -10.0 {
            0.0
        } else {
            x / (1.0 + (-t).exp())
        }
    }

    /// 2¹⁷ values over every exponent, and the neighbours of every threshold, of both signs.
    fn samples() -> impl Iterator<Item = f32> {
        let spread = (0..1u32 << 17).map(|i| (i << 15) | (i.wrapping_mul(0x9e37_79b9) >> 17));
        let thresholds = [
            0,
            0x0080_0000,
            0x3f35_04f3,
            0x3f20_0000,
            0x3f80_0000,
            GELU_MAX,
            EXP_MAX,
            EXP_MIN,
            INF,
            NAN,
        ];
        let near = thresholds.into_iter().flat_map(|t| {
            (0..7u32).flat_map(move |d| [0, SIGN].map(|s| t.wrapping_add(d).wrapping_sub(3) ^ s))
        });
        spread.chain(near).map(f32::from_bits)
    }

    /// Distance in units in the last place of the exact value; infinite where one is special and the other is not.
    fn ulp_error(got: f32, exact: f64) -> f64 {
        let tiny = f64::from(f32::MIN_POSITIVE);
        if got.is_nan() || exact.is_nan() {
            return if got.is_nan() && exact.is_nan() {
                0.0
            } else {
                f64::INFINITY
            };
        }
        if got == exact as f32 || (exact.abs() < tiny && f64::from(got).abs() <= tiny) {
            return 0.0;
        }
        let unit = (exact.abs().max(tiny).log2().floor() - 23.0).exp2();
        (f64::from(got) - exact).abs() / unit
    }

    #[test]
    fn errors_stay_within_the_stated_bounds() {
        for case in &CASES {
            for x in samples().filter(|x| x.is_nan() || x.abs() <= case.limit) {
                let (got, exact) = ((case.native)(x), (case.exact)(f64::from(x)));
                let error = ulp_error(got, exact);
                assert!(
                    error <= case.ulp,
                    "{}({x:?}) = {got:?}, not {exact:?}: {error} ulp",
                    case.name
                );
            }
        }
    }

    #[test]
    fn special_values_are_as_documented() {
        let inf = f32::INFINITY;
        let table: [(&str, Unary, f32, f32); 24] = [
            ("exp", exp, -inf, 0.0),
            ("exp", exp, inf, inf),
            ("exp", exp, 88.722_84, inf),
            ("exp", exp, -87.336_55, 0.0),
            ("exp", exp, 0.0, 1.0),
            ("log", log, 0.0, -inf),
            ("log", log, -0.0, -inf),
            ("log", log, inf, inf),
            ("log", log, 1.0, 0.0),
            ("tanh", tanh, inf, 1.0),
            ("tanh", tanh, -inf, -1.0),
            ("tanh", tanh, -0.0, -0.0),
            ("sigmoid", sigmoid, -inf, 0.0),
            ("sigmoid", sigmoid, inf, 1.0),
            ("sigmoid", sigmoid, -87.336_55, 0.0),
            ("sigmoid", sigmoid, 0.0, 0.5),
            ("gelu", gelu, -inf, 0.0),
            ("gelu", gelu, inf, inf),
            ("gelu", gelu, -10.000_001, 0.0),
            ("gelu", gelu, 10.000_001, 10.000_001),
            ("sin", sin, -0.0, -0.0),
            ("cos", cos, 0.0, 1.0),
            ("relu", relu, -inf, 0.0),
            ("relu", relu, -0.0, 0.0),
        ];
        for (name, function, x, expected) in table {
            assert_eq!(function(x).to_bits(), expected.to_bits(), "{name}({x:?})");
        }
        let impossible: [(&str, Unary, f32); 5] = [
            ("log", log, -1e-45),
            ("log", log, -inf),
            ("sin", sin, inf),
            ("cos", cos, -inf),
            ("sin", sin, 4_194_305.0),
        ];
        for (name, function, x) in impossible {
            assert!(function(x).is_nan(), "{name}({x:?})");
        }
    }

    #[test]
    fn not_a_number_stays_not_a_number() {
        for nan in [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff].map(f32::from_bits) {
            for case in &CASES {
                assert!((case.native)(nan).is_nan(), "{}", case.name);
            }
            assert!(relu(nan).is_nan() && is_nan(nan));
            assert!(min(nan, 1.0).is_nan() && min(1.0, nan).is_nan());
            assert!(max(nan, 1.0).is_nan() && max(1.0, nan).is_nan());
        }
        assert!(!is_nan(f32::INFINITY) && !is_nan(f32::NEG_INFINITY) && !is_nan(0.0));
    }

    #[test]
    fn saturated_values_stay_inside_the_range() {
        for x in samples().filter(|x| !x.is_nan()) {
            assert!(
                tanh(x).abs() <= 1.0 && (0.0..=1.0).contains(&sigmoid(x)) && exp(x) >= 0.0,
                "{x:?}"
            );
            if x.abs() <= 4_194_304.0 {
                assert!(sin(x).abs() <= 1.0 && cos(x).abs() <= 1.0, "{x:?}");
            }
        }
    }

    #[test]
    fn large_angles_degrade_as_documented() {
        for i in 0..1u32 << 14 {
            let x = ANGLE + i as f32 * 255.0;
            let exact = f64::from(x);
            let bound = exact * f64::from(2f32.powi(-23));
            assert!(
                (f64::from(sin(x)) - exact.sin()).abs() <= bound,
                "sin({x:?})"
            );
            assert!(
                (f64::from(cos(x)) - exact.cos()).abs() <= bound,
                "cos({x:?})"
            );
        }
    }

    #[test]
    fn least_and_greatest_order_zeros_and_infinities() {
        let ascending = [
            f32::NEG_INFINITY,
            -1.0,
            -1e-45,
            -0.0,
            0.0,
            1e-45,
            1.0,
            f32::INFINITY,
        ];
        for (i, &a) in ascending.iter().enumerate() {
            for (j, &b) in ascending.iter().enumerate() {
                assert_eq!(
                    min(a, b).to_bits(),
                    ascending[i.min(j)].to_bits(),
                    "min({a:?}, {b:?})"
                );
                assert_eq!(
                    max(a, b).to_bits(),
                    ascending[i.max(j)].to_bits(),
                    "max({a:?}, {b:?})"
                );
            }
        }
    }
}
