//! Special values, ranges and underflow. The stated bounds are asserted over all exponents by
//! `conformance::functions`.

use super::*;

type Unary = fn(f32) -> f32;

const FUNCTIONS: [(&str, Unary); 13] = [
    ("exp", exp),
    ("exp2", exp2),
    ("log", log),
    ("log2", log2),
    ("tanh", tanh),
    ("erf", erf),
    ("sigmoid", sigmoid),
    ("silu", silu),
    ("elu", elu),
    ("gelu", gelu),
    ("gelu_erf", gelu_erf),
    ("sin", sin),
    ("cos", cos),
];

/// 2¹⁷ values over every exponent, of both signs, without NaN.
fn samples() -> impl Iterator<Item = f32> {
    let bits = (0..1u32 << 17).map(|i| (i << 15) | (i.wrapping_mul(0x9e37_79b9) >> 17));
    bits.map(f32::from_bits).filter(|x| !x.is_nan())
}

#[test]
fn special_values_are_as_documented() {
    let inf = f32::INFINITY;
    let table: [(&str, Unary, f32, f32); 42] = [
        ("exp", exp, -inf, 0.0),
        ("exp", exp, inf, inf),
        ("exp", exp, 88.722_84, inf),
        ("exp", exp, -103.973, 0.0),
        ("exp", exp, 0.0, 1.0),
        ("exp2", exp2, -inf, 0.0),
        ("exp2", exp2, inf, inf),
        ("exp2", exp2, 128.0, inf),
        ("exp2", exp2, 10.0, 1024.0),
        ("exp2", exp2, -149.0, 1e-45),
        ("exp2", exp2, -150.0, 0.0),
        ("log", log, 0.0, -inf),
        ("log", log, -0.0, -inf),
        ("log", log, inf, inf),
        ("log", log, 1.0, 0.0),
        ("log2", log2, -0.0, -inf),
        ("log2", log2, 1e-45, -149.0),
        ("log2", log2, 8.0, 3.0),
        ("tanh", tanh, inf, 1.0),
        ("tanh", tanh, -inf, -1.0),
        ("tanh", tanh, -0.0, -0.0),
        ("erf", erf, inf, 1.0),
        ("erf", erf, -inf, -1.0),
        ("erf", erf, -0.0, -0.0),
        ("sigmoid", sigmoid, -inf, 0.0),
        ("sigmoid", sigmoid, inf, 1.0),
        ("sigmoid", sigmoid, 0.0, 0.5),
        ("silu", silu, -inf, -0.0),
        ("silu", silu, inf, inf),
        ("elu", elu, -inf, -1.0),
        ("elu", elu, inf, inf),
        ("elu", elu, -0.0, 0.0),
        ("hard_sigmoid", hard_sigmoid, -inf, 0.0),
        ("hard_sigmoid", hard_sigmoid, inf, 1.0),
        ("hard_swish", hard_swish, inf, inf),
        ("gelu", gelu, -inf, -0.0),
        ("gelu", gelu, inf, inf),
        ("gelu_erf", gelu_erf, -inf, -0.0),
        ("gelu_erf", gelu_erf, inf, inf),
        ("sin", sin, -0.0, -0.0),
        ("cos", cos, 0.0, 1.0),
        ("relu", relu, -0.0, 0.0),
    ];
    for (name, function, x, expected) in table {
        assert_eq!(
            function(x).to_bits(),
            expected.to_bits(),
            "{name}({x:?}) = {:?}",
            function(x)
        );
    }
    let impossible: [(&str, Unary, f32); 5] = [
        ("log", log, -1e-45),
        ("log2", log2, -inf),
        ("sin", sin, inf),
        ("cos", cos, -inf),
        ("sin_near", sin_near, 4_194_305.0),
    ];
    for (name, function, x) in impossible {
        assert!(function(x).is_nan(), "{name}({x:?})");
    }
}

#[test]
fn not_a_number_stays_not_a_number() {
    for nan in [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff].map(f32::from_bits) {
        for (name, function) in FUNCTIONS {
            assert!(function(nan).is_nan(), "{name}");
        }
        assert!(relu(nan).is_nan() && is_nan(nan));
        assert!(min(nan, 1.0).is_nan() && min(1.0, nan).is_nan());
        assert!(max(nan, 1.0).is_nan() && max(1.0, nan).is_nan());
    }
    assert!(!is_nan(f32::INFINITY) && !is_nan(f32::NEG_INFINITY) && !is_nan(0.0));
}

#[test]
fn results_stay_inside_their_ranges() {
    for x in samples() {
        let unit = [tanh(x), erf(x), sin(x), cos(x)];
        assert!(
            unit.iter().all(|y| y.abs() <= 1.0) || x.is_infinite(),
            "{x:?}: {unit:?}"
        );
        assert!(
            (0.0..=1.0).contains(&sigmoid(x)) && exp(x) >= 0.0 && exp2(x) >= 0.0,
            "{x:?}"
        );
        assert!(
            tanh(-x).to_bits() == (-tanh(x)).to_bits() && erf(-x).to_bits() == (-erf(x)).to_bits(),
            "{x:?}: odd"
        );
    }
}

#[test]
fn slices_have_the_bits_of_single_arguments() {
    let all: Vec<f32> = samples().chain([f32::NAN, -f32::NAN]).collect();
    type Slices = fn(&[f32], &mut [f32]);
    let table: [(&str, Slices, Unary); 4] = [
        ("exp", slices::exp, exp),
        ("exp2", slices::exp2, exp2),
        ("tanh", slices::tanh, tanh),
        ("sigmoid", slices::sigmoid, sigmoid),
    ];
    for (name, over, function) in table {
        for n in [0, 1, 3, 4, 7, 37, all.len()] {
            let mut y = vec![0.0; n];
            over(&all[all.len() - n..], &mut y);
            for (&x, &y) in all[all.len() - n..].iter().zip(&y) {
                assert!(
                    y.to_bits() == function(x).to_bits() || (y.is_nan() && function(x).is_nan()),
                    "{name}({x:?}) = {y:?} of {n}"
                );
            }
        }
    }
}

#[test]
fn underflow_is_gradual() {
    for i in 0..600 {
        let x = -87.0 - i as f32 / 32.0;
        let exact = f64::from(x).exp();
        let step = f64::from(f32::from_bits(1));
        for y in [exp(x), sigmoid(x)] {
            assert!(
                (f64::from(y) - exact).abs() <= step,
                "{x:?}: {y:?}, not {exact:?}"
            );
        }
    }
    assert!(
        silu(-100.0) < 0.0 && gelu(-10.5) < 0.0 && gelu_erf(-14.0) < 0.0,
        "subnormal, not 0"
    );
}

#[test]
fn near_and_far_reductions_meet() {
    for i in 0..1u32 << 12 {
        let x = f32::from_bits(12_867.0f32.to_bits() - i);
        assert!(is_near(x));
        let (near, exact) = (f64::from(sin(x)), f64::from(x).sin());
        assert!(
            (near - exact).abs() <= exact.abs() * 2.5e-7,
            "{x:?}: {near:?}, not {exact:?}"
        );
        let beyond = f32::from_bits(12_867.0f32.to_bits() + 1 + i);
        assert!(
            !is_near(beyond) && (f64::from(sin(beyond)) - f64::from(beyond).sin()).abs() <= 2.5e-7
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

#[test]
fn special_values_of_doubles_are_as_documented() {
    use super::double;
    let inf = f64::INFINITY;
    type Case = (&'static str, fn(f64) -> f64, f64, f64);
    let table: [Case; 35] = [
        ("exp", double::exp, -inf, 0.0),
        ("exp", double::exp, inf, inf),
        ("exp", double::exp, 709.782_712_893_385, inf),
        ("exp", double::exp, -745.2, 0.0),
        ("exp", double::exp, 0.0, 1.0),
        ("exp2", double::exp2, 1024.0, inf),
        ("exp2", double::exp2, 10.0, 1024.0),
        ("exp2", double::exp2, -1074.0, f64::from_bits(1)),
        ("exp2", double::exp2, -1075.0, 0.0),
        ("log", double::log, 0.0, -inf),
        ("log", double::log, -0.0, -inf),
        ("log", double::log, inf, inf),
        ("log", double::log, 1.0, 0.0),
        ("log2", double::log2, f64::from_bits(1), -1074.0),
        ("log2", double::log2, 8.0, 3.0),
        ("tanh", double::tanh, inf, 1.0),
        ("tanh", double::tanh, -inf, -1.0),
        ("tanh", double::tanh, -0.0, -0.0),
        ("erf", double::erf, inf, 1.0),
        ("erf", double::erf, -0.0, -0.0),
        ("sigmoid", double::sigmoid, -inf, 0.0),
        ("sigmoid", double::sigmoid, inf, 1.0),
        ("sigmoid", double::sigmoid, 0.0, 0.5),
        ("silu", double::silu, -inf, -0.0),
        ("silu", double::silu, inf, inf),
        ("elu", double::elu, -inf, -1.0),
        ("elu", double::elu, inf, inf),
        ("hard_sigmoid", double::hard_sigmoid, -inf, 0.0),
        ("gelu", double::gelu, -inf, -0.0),
        ("gelu", double::gelu, inf, inf),
        ("gelu_erf", double::gelu_erf, -inf, -0.0),
        ("gelu_erf", double::gelu_erf, inf, inf),
        ("sin", double::sin, -0.0, -0.0),
        ("cos", double::cos, 0.0, 1.0),
        ("relu", double::relu, -0.0, 0.0),
    ];
    for (name, function, x, expected) in table {
        assert_eq!(
            function(x).to_bits(),
            expected.to_bits(),
            "{name}({x:?}) = {:?}",
            function(x)
        );
        assert!(function(f64::NAN).is_nan(), "{name}(NaN)");
    }
    type Impossible = (&'static str, fn(f64) -> f64, f64);
    let impossible: [Impossible; 4] = [
        ("log", double::log, -1e-300),
        ("log2", double::log2, -inf),
        ("sin", double::sin, inf),
        ("cos", double::cos, -inf),
    ];
    for (name, function, x) in impossible {
        assert!(function(x).is_nan(), "{name}({x:?})");
    }
    assert!(double::is_near(823_549.0) && !double::is_near(823_550.0));
}
