//! References for f64: elementary functions with some 100 bits, as the sum of two floats times a
//! power of two.
//!
//! Slow and plain: series with all their terms, no tables but that of 2/π. Additions and products
//! of two floats carry their rounding error (Dekker 1971, Knuth 1969).

use std::fmt;

use tectum::kernel::math::double::TWO_OVER_PI_WORDS;

/// hi + lo, |lo| at most half a unit in the last place of hi.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoubleDouble {
    hi: f64,
    lo: f64,
}

/// (hi + lo)·2ᵉ; special values are in `hi`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScaledDoubleDouble {
    wide: DoubleDouble,
    exponent: i32,
}

const ONE: DoubleDouble = DoubleDouble { hi: 1.0, lo: 0.0 };
const LN_2: DoubleDouble = DoubleDouble {
    hi: std::f64::consts::LN_2,
    lo: 2.319_046_813_846_299_6e-17,
};
const LOG2_E: DoubleDouble = DoubleDouble {
    hi: std::f64::consts::LOG2_E,
    lo: 2.035_527_374_093_103_3e-17,
};
const HALF_PI: DoubleDouble = DoubleDouble {
    hi: std::f64::consts::FRAC_PI_2,
    lo: 6.123_233_995_736_766e-17,
};
const SQRT_HALF: DoubleDouble = DoubleDouble {
    hi: std::f64::consts::FRAC_1_SQRT_2,
    lo: -4.833_646_656_726_457e-17,
};
const TWO_OVER_SQRT_PI: DoubleDouble = DoubleDouble {
    hi: std::f64::consts::FRAC_2_SQRT_PI,
    lo: 1.533_545_961_316_588e-17,
};
/// 2√(2/π).
const GELU_A: DoubleDouble = DoubleDouble {
    hi: 1.595_769_121_605_730_8,
    lo: -9.969_308_809_110_92e-17,
};
const GELU_B: DoubleDouble = DoubleDouble {
    hi: 0.044_715,
    lo: 2.196_021_142_708_559_5e-18,
};

impl DoubleDouble {
    fn of(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }

    fn sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        let part = hi - a;
        Self {
            hi,
            lo: (a - (hi - part)) + (b - part),
        }
    }

    pub(super) fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        Self {
            hi,
            lo: a.mul_add(b, -hi),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let high = Self::sum(self.hi, other.hi);
        let low = Self::sum(self.lo, other.lo);
        let first = Self::sum(high.hi, high.lo + low.hi);
        Self::sum(first.hi, first.lo + low.lo)
    }

    fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    fn negated(self) -> Self {
        Self {
            hi: -self.hi,
            lo: -self.lo,
        }
    }

    fn times(self, other: Self) -> Self {
        let high = Self::product(self.hi, other.hi);
        Self::sum(high.hi, high.lo + (self.hi * other.lo + self.lo * other.hi))
    }

    fn over(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self.minus(other.times(Self::of(first)));
        let second = rest.hi / other.hi;
        let rest = rest.minus(other.times(Self::of(second)));
        Self::sum(first, second).plus(Self::of(rest.hi / other.hi))
    }

    fn sqrt(self) -> Self {
        let first = self.hi.sqrt();
        let rest = self.minus(Self::product(first, first));
        Self::sum(first, rest.hi / (2.0 * first))
    }

    /// Times a power of two that neither overflows nor underflows.
    fn scaled(self, power: f64) -> Self {
        Self {
            hi: self.hi * power,
            lo: self.lo * power,
        }
    }

    pub(super) fn value(self) -> f64 {
        self.hi + self.lo
    }
}

impl ScaledDoubleDouble {
    fn of(wide: DoubleDouble, exponent: i32) -> Self {
        Self { wide, exponent }
    }

    /// The nearest float.
    pub(super) fn value(self) -> f64 {
        scale(self.wide.value(), self.exponent)
    }

    /// The error of a float, in units in the last place of this value.
    pub(super) fn error_ulp(self, got: f64) -> f64 {
        let DoubleDouble { hi, lo } = self.wide;
        let exponent = if hi == 0.0 {
            -1022
        } else {
            (exponent_of(hi) + self.exponent).max(-1022)
        };
        // An infinity represents the number after the greatest.
        let scaled = if got.is_infinite() {
            scale(got.signum(), 1024 - self.exponent)
        } else {
            scale(got, -self.exponent)
        };
        ((scaled - hi) - lo).abs() / scale(1.0, exponent - 52 - self.exponent)
    }

    pub(super) fn is_nan(self) -> bool {
        self.wide.hi.is_nan()
    }
}

impl fmt::LowerExp for ScaledDoubleDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerExp::fmt(&self.value(), f)
    }
}

/// x·2ᵉ in steps that round at most once.
fn scale(x: f64, exponent: i32) -> f64 {
    let (mut x, mut left) = (x, exponent);
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        // The last steps down go to the subnormal range in one step.
        let step = if step < -900 && step > left {
            -900
        } else {
            step
        };
        x *= f64::from_bits(((1023 + i64::from(step)) as u64) << 52);
        left -= step;
    }
    x
}

fn exponent_of(x: f64) -> i32 {
    let bits = x.abs().to_bits();
    if bits >> 52 == 0 {
        bits.checked_ilog2().map_or(-1074, |bit| bit as i32 - 1074)
    } else {
        (bits >> 52) as i32 - 1023
    }
}

/// m and e with x = m·2ᵉ and ½ ≤ |m|·√½ < 1 or so: m near 1.
fn split(x: f64) -> (f64, i32) {
    let exponent = exponent_of(x);
    let m = scale(x, -exponent);
    if m.abs() > std::f64::consts::SQRT_2 {
        (m / 2.0, exponent + 1)
    } else {
        (m, exponent)
    }
}

/// The exact value of a function of the op table, if it is one of the elementary functions.
pub(super) fn exact(name: &str, x: f64) -> Option<ScaledDoubleDouble> {
    let function: fn(f64) -> ScaledDoubleDouble = match name {
        "sqrt" => sqrt,
        "rsqrt" => |x| {
            if x > 0.0 && x.is_finite() {
                reciprocal_of(sqrt(x))
            } else {
                special(1.0 / x.sqrt())
            }
        },
        "reciprocal" => |x| {
            if x == 0.0 || !x.is_finite() {
                special(1.0 / x)
            } else {
                reciprocal_of(ScaledDoubleDouble::of(
                    DoubleDouble::of(split(x).0),
                    split(x).1,
                ))
            }
        },
        "exp" => |x| {
            if (-800.0..800.0).contains(&x) {
                exp(DoubleDouble::of(x))
            } else {
                special(x.exp())
            }
        },
        "exp2" => exp2,
        "log" => |x| logarithm(x, LN_2, ONE),
        "log2" => |x| logarithm(x, ONE, LOG2_E),
        "tanh" => tanh,
        "elu" => elu,
        "erf" => erf,
        "sin" => |x| sine(x, 0),
        "cos" => |x| sine(x, 1),
        "sigmoid" => |x| {
            if x.abs() < 800.0 {
                logistic(DoubleDouble::of(x))
            } else {
                special(1.0 / (1.0 + (-x).exp()))
            }
        },
        "silu" => |x| gate(x, DoubleDouble::of),
        "gelu" => |x| {
            gate(x, |x| {
                let x = DoubleDouble::of(x);
                GELU_A.times(x.plus(GELU_B.times(x.times(x).times(x))))
            })
        },
        "gelu_erf" => gelu_erf,
        _ => return None,
    };
    Some(if x.is_nan() { special(x) } else { function(x) })
}

fn special(x: f64) -> ScaledDoubleDouble {
    ScaledDoubleDouble::of(DoubleDouble::of(x), 0)
}

fn sqrt(x: f64) -> ScaledDoubleDouble {
    if x <= 0.0 || x.is_infinite() {
        return special(x.sqrt());
    }
    let (m, e) = split(x);
    let odd = e.rem_euclid(2);
    ScaledDoubleDouble::of(
        DoubleDouble::of(m * f64::from(1 + odd)).sqrt(),
        (e - odd) / 2,
    )
}

fn reciprocal_of(x: ScaledDoubleDouble) -> ScaledDoubleDouble {
    ScaledDoubleDouble::of(ONE.over(x.wide), -x.exponent)
}

/// eʳ by its power series, for |r| < 1.
fn exp_series(r: DoubleDouble) -> DoubleDouble {
    let (mut term, mut sum) = (ONE, ONE);
    for n in 1..=28 {
        term = term.times(r).over(DoubleDouble::of(f64::from(n)));
        sum = sum.plus(term);
    }
    sum
}

fn exp(x: DoubleDouble) -> ScaledDoubleDouble {
    let n = (x.hi * LOG2_E.hi).round();
    ScaledDoubleDouble::of(
        exp_series(x.minus(LN_2.times(DoubleDouble::of(n)))),
        n as i32,
    )
}

/// eˣ − 1 below 0, else x.
fn elu(x: f64) -> ScaledDoubleDouble {
    if x >= 0.0 {
        return special(x);
    }
    if is_tiny(x) {
        return tiny(x, ONE);
    }
    if x < -100.0 {
        return special(-1.0);
    }
    let r = DoubleDouble::of(x);
    if x > -0.5 {
        let (mut term, mut sum) = (r, r);
        for n in 2..=28 {
            term = term.times(r).over(DoubleDouble::of(f64::from(n)));
            sum = sum.plus(term);
        }
        return ScaledDoubleDouble::of(sum, 0);
    }
    let e = exp(r);
    ScaledDoubleDouble::of(e.wide.scaled(scale(1.0, e.exponent)).minus(ONE), 0)
}

fn exp2(x: f64) -> ScaledDoubleDouble {
    if x.abs() > 1200.0 {
        return special(x.exp2());
    }
    ScaledDoubleDouble::of(
        exp_series(LN_2.times(DoubleDouble::of(x - x.round()))),
        x.round() as i32,
    )
}

/// `log2(x)·unit`, the unit times log₂ e given too: 2·artanh((m − 1)/(m + 1)) for the fraction.
fn logarithm(x: f64, unit: DoubleDouble, unit_log2_e: DoubleDouble) -> ScaledDoubleDouble {
    if x <= 0.0 || x.is_infinite() {
        return special(x.ln());
    }
    let (m, e) = split(x);
    let s = DoubleDouble::of(m - 1.0).over(DoubleDouble::sum(m, 1.0));
    let square = s.times(s);
    let series = (0..24).rev().fold(DoubleDouble::of(0.0), |sum, k| {
        sum.times(square)
            .plus(ONE.over(DoubleDouble::of(f64::from(2 * k + 1))))
    });
    let fraction = series.times(s).scaled(2.0).times(unit_log2_e);
    ScaledDoubleDouble::of(unit.times(DoubleDouble::of(f64::from(e))).plus(fraction), 0)
}

/// Arguments so small that functions equal their first term.
fn is_tiny(x: f64) -> bool {
    x.abs() < 1e-60
}

fn tiny(x: f64, slope: DoubleDouble) -> ScaledDoubleDouble {
    if x == 0.0 {
        return special(x * slope.hi);
    }
    let (m, e) = split(x);
    ScaledDoubleDouble::of(slope.times(DoubleDouble::of(m)), e)
}

fn tanh(x: f64) -> ScaledDoubleDouble {
    if is_tiny(x) {
        return tiny(x, ONE);
    }
    if x.abs() > 40.0 {
        return special(x.signum());
    }
    if x.abs() < 0.5 {
        let (sinh, cosh) = (
            odd_series(DoubleDouble::of(x), 1.0),
            even_series(DoubleDouble::of(x), 1.0),
        );
        return ScaledDoubleDouble::of(sinh.over(cosh), 0);
    }
    let e = exp(DoubleDouble::of(2.0 * x.abs()));
    let above =
        ONE.minus(DoubleDouble::of(2.0).over(e.wide.scaled(scale(1.0, e.exponent)).plus(ONE)));
    ScaledDoubleDouble::of(above.scaled(x.signum()), 0)
}

/// r + sign·r³/3! + r⁵/5! …
fn odd_series(r: DoubleDouble, sign: f64) -> DoubleDouble {
    even_terms(r, sign, 1).times(r)
}

/// 1 + sign·r²/2! + r⁴/4! …
fn even_series(r: DoubleDouble, sign: f64) -> DoubleDouble {
    even_terms(r, sign, 0)
}

fn even_terms(r: DoubleDouble, sign: f64, first: u32) -> DoubleDouble {
    let square = r.times(r).scaled(sign);
    (1..=16).rev().fold(ONE, |sum, k| {
        let below = f64::from((2 * k + first) * (2 * k + first - 1));
        ONE.plus(sum.times(square).over(DoubleDouble::of(below)))
    })
}

fn erf(x: f64) -> ScaledDoubleDouble {
    if is_tiny(x) {
        return tiny(x, TWO_OVER_SQRT_PI);
    }
    let size = x.abs();
    if size > 30.0 {
        return special(x.signum());
    }
    let y = if size < 3.0 {
        erf_series(DoubleDouble::of(size))
    } else {
        ONE.minus(unscaled(erfc_fraction(DoubleDouble::of(size))))
    };
    ScaledDoubleDouble::of(y.scaled(x.signum()), 0)
}

fn unscaled(x: ScaledDoubleDouble) -> DoubleDouble {
    DoubleDouble {
        hi: scale(x.wide.hi, x.exponent),
        lo: scale(x.wide.lo, x.exponent),
    }
}

/// e^(−x²)·2/√π·Σ 2ᵏx²ᵏ⁺¹/(2k + 1)!!, for 0 ≤ x < 3.
fn erf_series(x: DoubleDouble) -> DoubleDouble {
    let square = x.times(x);
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.hi > 1e-34 * sum.hi {
        odd += 2.0;
        term = term.times(square).scaled(2.0).over(DoubleDouble::of(odd));
        sum = sum.plus(term);
    }
    sum.times(unscaled(exp(square.negated())))
        .times(TWO_OVER_SQRT_PI)
}

/// e^(−x²)/√π · 1/(x + ½/(x + 1/(x + 3/2/(x + …)))), for x ≥ 3.
fn erfc_fraction(x: DoubleDouble) -> ScaledDoubleDouble {
    let below = (1..=120).rev().fold(DoubleDouble::of(0.0), |below, k| {
        DoubleDouble::of(0.5 * f64::from(k)).over(x.plus(below))
    });
    let power = exp(x.times(x).negated());
    ScaledDoubleDouble::of(
        power
            .wide
            .times(TWO_OVER_SQRT_PI)
            .scaled(0.5)
            .over(x.plus(below)),
        power.exponent,
    )
}

/// 1/(1 + e⁻ᵗ).
fn logistic(t: DoubleDouble) -> ScaledDoubleDouble {
    let power = exp(if t.hi < 0.0 { t } else { t.negated() });
    let below = ONE.plus(unscaled(power));
    if t.hi < 0.0 {
        ScaledDoubleDouble::of(power.wide.over(below), power.exponent)
    } else {
        ScaledDoubleDouble::of(ONE.over(below), 0)
    }
}

/// x/(1 + e^(−t(x))).
fn gate(x: f64, t: impl Fn(f64) -> DoubleDouble) -> ScaledDoubleDouble {
    if is_tiny(x) {
        return tiny(x, DoubleDouble::of(0.5));
    }
    if x > 800.0 {
        return special(x);
    }
    let t = if x < -800.0 {
        DoubleDouble::of(x)
    } else {
        t(x)
    };
    if t.hi < -100_000.0 {
        return special(-0.0);
    }
    let share = logistic(t);
    ScaledDoubleDouble::of(share.wide.times(DoubleDouble::of(x)), share.exponent)
}

fn gelu_erf(x: f64) -> ScaledDoubleDouble {
    if is_tiny(x) {
        return tiny(x, DoubleDouble::of(0.5));
    }
    if x.abs() > 60.0 {
        return special(if x > 0.0 { x } else { -0.0 });
    }
    let z = SQRT_HALF.times(DoubleDouble::of(x.abs()));
    let tail = if z.hi < 3.0 {
        ScaledDoubleDouble::of(ONE.minus(erf_series(z)), 0)
    } else {
        erfc_fraction(z)
    };
    let twice = if x < 0.0 {
        tail
    } else {
        ScaledDoubleDouble::of(DoubleDouble::of(2.0).minus(unscaled(tail)), 0)
    };
    ScaledDoubleDouble::of(twice.wide.times(DoubleDouble::of(0.5 * x)), twice.exponent)
}

/// sin(x + quarters·π/2).
fn sine(x: f64, quarters: u32) -> ScaledDoubleDouble {
    if x.is_infinite() {
        return special(f64::NAN);
    }
    if is_tiny(x) {
        return if quarters == 0 {
            tiny(x, ONE)
        } else {
            special(1.0)
        };
    }
    let (r, quadrant) = if x.abs() < 0.5 {
        (DoubleDouble::of(x.abs()), 0)
    } else {
        reduce(x.abs())
    };
    let sign = if quarters == 0 { x.signum() } else { 1.0 };
    let quadrant = quadrant + quarters;
    let y = if quadrant.is_multiple_of(2) {
        odd_series(r, -1.0)
    } else {
        even_series(r, -1.0)
    };
    ScaledDoubleDouble::of(y.scaled(if quadrant & 2 == 0 { sign } else { -sign }), 0)
}

/// x less the nearest multiple of π/2, and that multiple modulo 4: x times all known bits of 2/π,
/// in integers.
fn reduce(x: f64) -> (DoubleDouble, u32) {
    let exponent = exponent_of(x) - 52;
    let m = u128::from(scale(x, -exponent) as u64);

    // m·(2/π) as a long integer, least word first, of which 1216 bits are after the point.
    let mut product = Vec::new();
    let mut carry = 0u128;
    for &word in TWO_OVER_PI_WORDS.iter().rev() {
        let sum = m * u128::from(word) + carry;
        product.push(sum as u64);
        carry = sum >> 64;
    }
    product.push(carry as u64);
    let bit = |index: i32| -> u64 {
        let word = usize::try_from(index / 64)
            .ok()
            .filter(|_| index >= 0)
            .and_then(|word| product.get(word));
        word.map_or(0, |word| (word >> (index % 64)) & 1)
    };

    // The point moves by the exponent; the quarter is before it, the fraction is the 192 bits after
    // it.
    let point = 64 * (TWO_OVER_PI_WORDS.len() as i32 - 1) - exponent;
    let quadrant = bit(point) + 2 * bit(point + 1);
    let above_half = bit(point - 1) == 1;
    let mut fraction = DoubleDouble::of(0.0);
    let mut weight = 1.0;
    // The fraction, or what it lacks to 1: the same bits, each inverted.
    for place in 1..=230 {
        weight *= 0.5;
        if (bit(point - place) == 1) != above_half {
            fraction = fraction.plus(DoubleDouble::of(weight));
        }
    }
    let r = fraction.times(HALF_PI);
    if above_half {
        (r.negated(), quadrant as u32 + 1)
    } else {
        (r, quadrant as u32)
    }
}

/// Σ with the rounding error of every addition.
pub(super) fn sum(values: impl Iterator<Item = DoubleDouble>) -> f64 {
    values
        .fold(DoubleDouble::of(0.0), DoubleDouble::plus)
        .value()
}

/// A float as one of two.
pub(super) fn wide(x: f64) -> DoubleDouble {
    DoubleDouble::of(x)
}

#[cfg(test)]
mod tests {
    use super::exact;

    /// Digits computed with mpmath at 60 digits.
    #[test]
    fn known_values_are_met() {
        for (name, x, hi, lo) in KNOWN {
            let found = exact(name, *x).expect("a function");
            let off = found.error_ulp(*hi);
            let lost = found.wide.hi - hi * super::scale(1.0, -found.exponent) + found.wide.lo
                - lo * super::scale(1.0, -found.exponent);
            assert!(
                off <= 0.5 && lost.abs() <= 1e-29 * found.wide.hi.abs(),
                "{name}({x:e}): {off} ulp, {lost:e} next to {:e}",
                found.wide.hi
            );
        }
    }

    const KNOWN: &[(&str, f64, f64, f64)] = &[
        ("exp", -0.3, 0.740_818_220_681_717_9, -1.805_530_505_953e-18),
        ("exp", 1.0, std::f64::consts::E, 1.445_646_891_729_250_2e-16),
        (
            "exp",
            50.5,
            8.548_134_287_298_057e21,
            222_305.916_908_921_67,
        ),
        (
            "exp",
            -600.25,
            2.064_130_910_929_509_5e-261,
            -2.140_399_574_932_200_6e-280,
        ),
        (
            "elu",
            -0.3,
            -0.259_181_779_318_282_1,
            -1.805_530_505_953e-18,
        ),
        (
            "elu",
            -2.5,
            -0.917_915_001_376_101_2,
            -4.643_809_808_954_93e-17,
        ),
        (
            "elu",
            -1e-5,
            -9.999_950_000_166_666e-6,
            -7.687_946_724_313_578e-22,
        ),
        (
            "exp2",
            0.3,
            1.231_144_413_344_916_3,
            -3.572_339_831_433_251e-17,
        ),
        (
            "exp2",
            -700.7,
            1.170_259_130_550_674_4e-211,
            2.380_374_801_332_172e-228,
        ),
        (
            "log",
            1.000_000_1,
            9.999_999_505_838_704e-08,
            1.524_970_952_844_148_9e-24,
        ),
        (
            "log",
            0.7,
            -0.356_674_943_938_732_45,
            4.825_563_799_376_62e-18,
        ),
        (
            "log",
            1e300,
            690.775_527_898_213_7,
            2.374_766_002_880_024_3e-14,
        ),
        (
            "log",
            3e-05,
            -10.414_313_176_302_12,
            7.979_547_251_798_227e-16,
        ),
        (
            "log2",
            3.0,
            1.584_962_500_721_156,
            1.057_978_124_011_255_4e-16,
        ),
        (
            "log2",
            1.5e-200,
            -663.800_656_476_751_3,
            1.480_925_827_406_599e-14,
        ),
        ("tanh", 1e-08, 1e-08, -3.333_333_333_333_333_5e-25),
        (
            "tanh",
            0.4,
            0.379_948_962_255_224_9,
            6.300_857_314_372_318_5e-18,
        ),
        (
            "tanh",
            0.7,
            0.604_367_777_117_163_5,
            -2.791_618_001_542_534_6e-17,
        ),
        (
            "tanh",
            5.0,
            0.999_909_204_262_595_1,
            2.298_523_750_966_507e-17,
        ),
        (
            "erf",
            0.01,
            0.011_283_415_555_849_618,
            -6.832_062_095_663_143e-19,
        ),
        (
            "erf",
            0.9,
            0.796_908_212_422_832_2,
            -2.319_317_803_562_879_4e-17,
        ),
        (
            "erf",
            2.5,
            0.999_593_047_982_555,
            4.692_515_109_704_223_4e-17,
        ),
        (
            "erf",
            3.5,
            0.999_999_256_901_627_6,
            4.964_727_918_721_220_4e-17,
        ),
        (
            "sin",
            0.3,
            0.295_520_206_661_339_55,
            1.831_535_727_679_253_6e-17,
        ),
        (
            "sin",
            1.0,
            0.841_470_984_807_896_5,
            1.776_845_092_935_536e-18,
        ),
        (
            "sin",
            std::f64::consts::PI,
            1.224_646_799_147_353_2e-16,
            -2.994_769_809_718_34e-33,
        ),
        (
            "sin",
            1e22,
            -0.852_200_849_767_188_8,
            -6.780_682_589_677_328_4e-18,
        ),
        (
            "sin",
            1.7e308,
            -0.595_256_084_863_207_7,
            2.516_028_056_655_457_5e-17,
        ),
        (
            "sin",
            -2.5,
            -0.598_472_144_103_956_5,
            5.521_403_334_082_375e-17,
        ),
        (
            "cos",
            0.3,
            0.955_336_489_125_606,
            4.193_560_029_790_746_7e-17,
        ),
        (
            "cos",
            1_000_000.0,
            0.936_752_127_533_144_7,
            4.637_088_260_214_747e-17,
        ),
        (
            "cos",
            5e200,
            -0.956_481_027_226_325,
            -4.257_902_620_530_295e-18,
        ),
        (
            "sigmoid",
            1.0,
            0.731_058_578_630_004_9,
            -1.679_727_399_649_845e-17,
        ),
        (
            "sigmoid",
            -30.0,
            9.357_622_968_839_299e-14,
            8.837_142_511_495_094e-31,
        ),
        (
            "sigmoid",
            -500.0,
            7.124_576_406_741_286e-218,
            1.496_061_029_616_068_5e-235,
        ),
        (
            "silu",
            -2.0,
            -0.238_405_844_044_235_12,
            9.334_638_866_536_008e-18,
        ),
        (
            "silu",
            3.0,
            2.857_722_380_467_299_8,
            -1.035_454_169_410_581_7e-16,
        ),
        (
            "silu",
            -600.0,
            -1.590_237_931_802_586_6e-258,
            9.532_032_690_904_902e-275,
        ),
        (
            "gelu",
            -1.0,
            -0.158_808_009_391_723_3,
            -2.548_763_559_355_477e-18,
        ),
        (
            "gelu",
            2.0,
            1.954_597_694_087_775,
            6.819_233_184_234_236e-17,
        ),
        (
            "gelu",
            -15.0,
            -1.558_476_993_727_405_5e-114,
            1.243_581_254_956_421_2e-132,
        ),
        (
            "gelu_erf",
            -1.0,
            -0.158_655_253_931_457_05,
            -4.946_855_290_178_633_5e-18,
        ),
        (
            "gelu_erf",
            2.0,
            1.954_499_736_103_641_6,
            2.769_952_621_677_939_3e-18,
        ),
        (
            "gelu_erf",
            -10.0,
            -7.619_853_024_160_526e-23,
            2.661_870_973_238_931_6e-39,
        ),
        (
            "gelu_erf",
            -30.0,
            -1.472_014_178_144_456e-196,
            -9.833_448_653_755_05e-213,
        ),
        (
            "sqrt",
            2.0,
            std::f64::consts::SQRT_2,
            -9.667_293_313_452_913e-17,
        ),
        (
            "rsqrt",
            3.0,
            0.577_350_269_189_625_7,
            3.345_028_073_935_634_5e-17,
        ),
        (
            "reciprocal",
            3.0,
            0.333_333_333_333_333_3,
            1.850_371_707_708_594e-17,
        ),
    ];
}
