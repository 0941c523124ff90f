//! Float64 references of functions that the standard library lacks.

use std::f64::consts::{PI, SQRT_2};

/// The error function, to some 10⁻¹⁵ of its value: its power series below 2, the continued fraction
/// of `erfc` above.
pub fn erf(x: f64) -> f64 {
    let size = x.abs();
    let y = if size < 2.0 {
        erf_series(size)
    } else {
        1.0 - erfc_fraction(size)
    };
    if x.is_nan() { x } else { y.copysign(x) }
}

/// The normal distribution function Φ(x), with relative accuracy in the lower tail.
pub fn normal_cdf(x: f64) -> f64 {
    let z = x / SQRT_2;
    if z < -2.0 {
        0.5 * erfc_fraction(-z)
    } else {
        0.5 + 0.5 * erf(z)
    }
}

/// The tanh form of GELU, written through the logistic function so that its tail keeps relative
/// accuracy.
pub fn gelu(x: f64) -> f64 {
    let inner = 2.0 * (2.0 / PI).sqrt() * (x + 0.044715 * x * x * x);
    if x == f64::NEG_INFINITY {
        -0.0
    } else {
        x / (1.0 + (-inner).exp())
    }
}

/// x·Φ(x).
pub fn gelu_erf(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        -0.0
    } else {
        x * normal_cdf(x)
    }
}

/// x/(1 + e⁻ˣ).
pub fn silu(x: f64) -> f64 {
    if x == f64::NEG_INFINITY {
        -0.0
    } else {
        x / (1.0 + (-x).exp())
    }
}

/// eˣ − 1 below 0, else x.
pub fn elu(x: f64) -> f64 {
    if x < 0.0 { x.exp_m1() } else { x }
}

/// min(max(x, 0), 6); NaN stays.
pub fn relu6(x: f64) -> f64 {
    if x.is_nan() { x } else { x.clamp(0.0, 6.0) }
}

/// min(max(x + 3, 0), 6)/6
pub fn hard_sigmoid(x: f64) -> f64 {
    relu6(x + 3.0) / 6.0
}

/// x·min(max(x + 3, 0), 6)/6
pub fn hard_swish(x: f64) -> f64 {
    x * hard_sigmoid(x)
}

/// The remainder of a / b with the sign of b, as Python's `%`.
pub fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest.abs().copysign(if rest == 0.0 { b } else { rest })
    }
}

/// asinh x = ln(x + √(x² + 1)), with relative accuracy near 0.
pub fn asinh(x: f64) -> f64 {
    let a = x.abs();
    // Beyond, a² overflows and 1 is lost next to it.
    let y = if a > 1e9 {
        a.ln() + std::f64::consts::LN_2
    } else {
        (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p()
    };
    y.copysign(x)
}

/// acosh x = ln(x + √(x² − 1)), with relative accuracy near 1.
pub fn acosh(x: f64) -> f64 {
    let t = x - 1.0;
    if x < 1.0 {
        return f64::NAN;
    }
    if x > 1e9 {
        x.ln() + std::f64::consts::LN_2
    } else {
        (t + (t * (x + 1.0)).sqrt()).ln_1p()
    }
}

/// atanh x = ½ ln((1 + x)/(1 − x)), with relative accuracy near 0.
pub fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

/// e^(−x²)·2/√π·Σ 2ᵏx²ᵏ⁺¹/(2k + 1)!!, all terms of one sign, for 0 ≤ x < 2.
fn erf_series(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > 1e-18 * sum {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    sum * (-x * x).exp() * 2.0 / PI.sqrt()
}

/// e^(−x²)/√π · 1/(x + ½/(x + 1/(x + 3/2/(x + …)))), for x ≥ 2.
fn erfc_fraction(x: f64) -> f64 {
    let steps = if x < 3.0 { 120 } else { 60 };
    let below = (1..=steps)
        .rev()
        .fold(0.0, |below, k| 0.5 * f64::from(k) / (x + below));
    (-x * x).exp() / (PI.sqrt() * (x + below))
}

#[cfg(test)]
mod tests {
    use super::{erf, normal_cdf};

    #[test]
    fn values_of_tables_are_met() {
        // Abramowitz and Stegun, table 7.1 and 26.2.
        for (x, y) in [
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ] {
            assert!(
                (erf(x) - y).abs() < 1e-15 && (erf(-x) + y).abs() < 1e-15,
                "erf({x}) = {}",
                erf(x)
            );
        }
        for (x, y) in [
            (-1.0, 0.158_655_253_931_457_05),
            (-3.0, 1.349_898_031_630_094_6e-3),
            (-10.0, 7.619_853_024_160_527e-24),
        ] {
            assert!(
                (normal_cdf(x) / y - 1.0).abs() < 1e-13,
                "Φ({x}) = {}",
                normal_cdf(x)
            );
        }
    }
}
