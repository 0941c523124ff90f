//! Built-in functions on f32, each as a scalar and as a vector. The bounds are those of WGSL's
//! accuracy table.

use crate::case::{Case, Element, Scope, to_f16};
use crate::lanes::{Bound, Bounds, Lanes, float1, float2};
use crate::pool::{self, span};

/// WGSL gives sine and cosine an absolute bound, from -π to π.
const SINE: Bounds = Bounds::same(Bound::Absolute(1.0 / 2048.0));
const EXPONENTIAL: Bounds = Bounds::same(Bound::UlpBy(|x| 3.0 + 2.0 * x.abs()));
/// Absolute about 1, in units in the last place elsewhere.
const LOGARITHM: Bounds = Bounds::same(Bound::By(|x, value| logarithm(x[0], value)));
const ARCTANGENT: Bounds = Bounds::same(Bound::Ulp(4096.0));
/// The larger of an absolute bound and the error of the arctangent.
const ARCSINE: Bounds = Bounds::same(Bound::By(|_, value| {
    (4096.0 * EPSILON * value.abs()).max(6.77e-5)
}));
/// Sums and differences of two exponentials.
const HYPERBOLIC: Bounds = Bounds::same(Bound::By(|x, _| {
    (3.0 + 2.0 * x[0].abs()) * EPSILON * x[0].cosh()
}));
const TANH: Bounds = Bounds::same(Bound::Absolute(1e-5));
/// The logarithm of a sum that is off by some units in the last place.
const AREA: Bounds = Bounds::same(Bound::Mixed {
    absolute: 1e-5,
    relative: 8.0 * EPSILON,
});
/// `sin(x) / cos(x)`, each within its absolute bound.
const TANGENT: Bounds = Bounds::same(Bound::By(|x, value| {
    (1.0 + value.abs()) / 2000.0 / x[0].cos().abs()
}));
const INVERSE_ROOT: Bounds = Bounds::same(Bound::Ulp(2.0));
/// `1 / inverseSqrt(x)`; PTX rounds correctly.
const ROOT: Bounds = Bounds::rounded_in_ptx(Bound::Ulp(5.0));
/// A product with a rounded constant.
const SCALED: Bounds = Bounds::same(Bound::Ulp(2.0));
/// `exp2(y * log2(x))`: the product's error counts by ln 2 times the result.
const POWER: Bounds = Bounds::same(Bound::By(power));
/// Products and sums, each rounded: relative to the greatest term.
const MIXED: Bounds = Bounds::same(Bound::By(|x, _| {
    4.0 * EPSILON * (x[0].abs() * (1.0 + x[2].abs()) + (x[1] * x[2]).abs())
}));
/// WGSL lets `fma` round twice; PTX does not.
const FUSED: Bounds = Bounds::rounded_in_ptx(Bound::By(|x, value| {
    EPSILON * ((x[0] * x[1]).abs() + value.abs())
}));
const SMOOTH: Bounds = Bounds::same(Bound::Absolute(2e-6));
/// `x - floor(x)` rounds once; some devices clamp the result below 1.
const FRACTION: Bounds = Bounds::rounded_in_ptx(Bound::Absolute(EPSILON));
/// The value as a half, between whose neighbours WGSL leaves the choice.
const QUANTIZED: Bounds = Bounds::rounded_in_ptx(Bound::Mixed {
    absolute: 0.0,
    relative: 1.0 / 1024.0,
});

/// The distance of 1 and the next f32.
const EPSILON: f64 = 1.0 / 8388608.0;

fn logarithm(x: f64, value: f64) -> f64 {
    if (0.5..=2.0).contains(&x) {
        1.0 / 2097152.0
    } else {
        3.0 * Element::F32.ulp(value)
    }
}

fn power(operands: &[f64], value: f64) -> f64 {
    let [x, y] = [operands[0], operands[1]];
    let exponent = y * x.log2();
    let of_exponent = y.abs() * logarithm(x, x.log2()) + EPSILON * exponent.abs();
    value * (of_exponent + (3.0 + 2.0 * exponent.abs()) * EPSILON)
}

/// A function by its name in WGSL.
type Function = (&'static str, fn(f32) -> f32);

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    exact(&mut cases);
    exponentials(&mut cases);
    trigonometry(&mut cases);
    several_operands(&mut cases);
    parts(&mut cases);
    cases
}

fn both(cases: &mut Vec<Case>, what: &str, xs: &[f64], bounds: Bounds, f: fn(f64) -> f64) {
    let (expression, rows) = (format!("{what}(x)"), pool::rows::<f32>(xs));
    for (width, shape) in [(1, "f32"), (2 + what.len() % 3, "vector")] {
        cases.push(
            Lanes::new(format!("math/{what}/{shape}"), width, &expression).near(
                &rows,
                bounds,
                |x| f(x[0]),
            ),
        );
    }
}

fn exact(cases: &mut Vec<Case>) {
    let functions: [Function; 5] = [
        ("abs", f32::abs),
        ("ceil", f32::ceil),
        ("floor", f32::floor),
        ("round", f32::round_ties_even),
        ("trunc", f32::trunc),
    ];
    for (what, f) in functions {
        let expression = format!("{what}(x)");
        cases.extend(float1(
            &Lanes::new(format!("math/{what}/f32"), 1, &expression),
            pool::F32,
            f,
        ));
        let [determined, _] = float1(
            &Lanes::new(format!("math/{what}/vec3<f32>"), 3, &expression),
            pool::F32,
            f,
        );
        cases.push(determined);
    }
    // NaN and the sign of 0 are left open from here on.
    let numbers = pool::F32
        .iter()
        .copied()
        .filter(|x| !x.is_nan() && x.to_bits() != 1 << 31)
        .collect::<Vec<_>>();
    let sign = |x: f32| if x == 0.0 { 0.0 } else { x.signum() };
    cases.extend(float1(
        &Lanes::new("math/sign/f32", 1, "sign(x)"),
        &numbers,
        sign,
    ));
    cases.extend(float1(
        &Lanes::new("math/sign/vec4<f32>", 4, "sign(x)"),
        &numbers,
        sign,
    ));
    cases.extend(float1(
        &Lanes::new("math/saturate/f32", 1, "saturate(x)"),
        &numbers,
        |x| x.clamp(0.0, 1.0),
    ));
    cases.extend(float1(
        &Lanes::new("math/saturate/vec2<f32>", 2, "saturate(x)"),
        &numbers,
        |x| x.clamp(0.0, 1.0),
    ));
    cases.extend(float2(
        &Lanes::new("math/min/f32", 1, "min(x, y)"),
        &numbers,
        f32::min,
    ));
    cases.extend(float2(
        &Lanes::new("math/min/vec3<f32>", 3, "min(x, y)"),
        &numbers,
        f32::min,
    ));
    cases.extend(float2(
        &Lanes::new("math/max/f32", 1, "max(x, y)"),
        &numbers,
        f32::max,
    ));
    cases.extend(float2(
        &Lanes::new("math/max/vec4<f32>", 4, "max(x, y)"),
        &numbers,
        f32::max,
    ));
    let step = |edge: f32, x: f32| if edge <= x { 1.0f32 } else { 0.0 };
    cases.extend(float2(
        &Lanes::new("math/step/f32", 1, "step(x, y)"),
        &numbers,
        step,
    ));
    cases.extend(float2(
        &Lanes::new("math/step/vec2<f32>", 2, "step(x, y)"),
        &numbers,
        step,
    ));
    let ordered = numbers
        .iter()
        .filter(|x| x.is_normal())
        .flat_map(|&x| [(-1.5, 2.5), (0.5, 0.5), (-1e30, 1e9)].map(|(y, z)| (x, y, z)));
    let ordered = ordered.collect::<Vec<(f32, f32, f32)>>();
    cases.push(
        Lanes::new("math/clamp/f32", 1, "clamp(x, y, z)")
            .exact3(&ordered, |x: f32, y, z| x.clamp(y, z)),
    );
    cases.push(
        Lanes::new("math/clamp/vec3<f32>", 3, "clamp(x, y, z)")
            .exact3(&ordered, |x: f32, y, z| x.clamp(y, z)),
    );
}

fn exponentials(cases: &mut Vec<Case>) {
    let moderate = [span(-80.0, 88.0, 60), span(-1.0, 1.0, 21)].concat();
    both(cases, "exp", &moderate, EXPONENTIAL, f64::exp);
    both(
        cases,
        "exp2",
        &[span(-125.0, 127.0, 64), span(-1.0, 1.0, 21)].concat(),
        EXPONENTIAL,
        f64::exp2,
    );
    let positive = [
        span(-37.0, 38.0, 40)
            .iter()
            .map(|e| 10f64.powf(*e))
            .collect(),
        span(0.4, 2.5, 43),
    ]
    .concat();
    both(cases, "log", &positive, LOGARITHM, f64::ln);
    both(cases, "log2", &positive, LOGARITHM, f64::log2);
    both(
        cases,
        "sqrt",
        &[positive.as_slice(), &[0.0, 4.0, 2.0, 1e-37]].concat(),
        ROOT,
        f64::sqrt,
    );
    both(cases, "inverseSqrt", &positive, INVERSE_ROOT, |x| {
        1.0 / x.sqrt()
    });
    let ieee = Lanes::new("math/sqrt/f32/ieee", 1, "sqrt(x)");
    cases.push(ieee.exact1(pool::F32, f32::sqrt).scope(Scope::Ptx));
    both(cases, "sinh", &span(-20.0, 20.0, 41), HYPERBOLIC, f64::sinh);
    both(cases, "cosh", &span(-20.0, 20.0, 41), HYPERBOLIC, f64::cosh);
    both(
        cases,
        "tanh",
        &[span(-12.0, 12.0, 49), vec![-80.0, 80.0, 1e-3, -1e-5]].concat(),
        TANH,
        f64::tanh,
    );
    both(cases, "asinh", &span(-2.0, 100.0, 52), AREA, f64::asinh);
    both(cases, "acosh", &span(1.1, 100.0, 52), AREA, f64::acosh);
    both(cases, "atanh", &span(-0.95, 0.95, 39), AREA, f64::atanh);
    let rows = pool::rows2::<f32>(
        &[0.01, 0.3, 0.9, 1.0, 1.1, 2.0, 7.5, 100.0],
        &[-7.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 3.7, 10.0],
    );
    cases.push(Lanes::new("math/pow/f32", 1, "pow(x, y)").near(&rows, POWER, |x| x[0].powf(x[1])));
    cases.push(
        Lanes::new("math/pow/vec3<f32>", 3, "pow(x, y)").near(&rows, POWER, |x| x[0].powf(x[1])),
    );
}

fn trigonometry(cases: &mut Vec<Case>) {
    let circle = span(-std::f64::consts::PI, std::f64::consts::PI, 65);
    both(cases, "sin", &circle, SINE, f64::sin);
    both(cases, "cos", &circle, SINE, f64::cos);
    both(cases, "tan", &span(-1.4, 1.4, 57), TANGENT, f64::tan);
    both(cases, "asin", &span(-1.0, 1.0, 41), ARCSINE, f64::asin);
    both(cases, "acos", &span(-1.0, 1.0, 41), ARCSINE, f64::acos);
    both(
        cases,
        "atan",
        &[span(-5.0, 5.0, 41), vec![1e10, -1e10, 1e-3]].concat(),
        ARCTANGENT,
        f64::atan,
    );
    let rows = pool::rows2::<f32>(
        &[-100.0, -1.0, -0.3, 0.2, 1.0, 1000.0],
        &[-50.0, -1.0, -0.01, 0.1, 2.0, 300.0],
    );
    cases.push(
        Lanes::new("math/atan2/f32", 1, "atan2(x, y)")
            .near(&rows, ARCTANGENT, |x| x[0].atan2(x[1])),
    );
    cases.push(
        Lanes::new("math/atan2/vec2<f32>", 2, "atan2(x, y)")
            .near(&rows, ARCTANGENT, |x| x[0].atan2(x[1])),
    );
    both(cases, "radians", &span(-720.0, 720.0, 33), SCALED, |x| {
        x * std::f64::consts::PI / 180.0
    });
    both(cases, "degrees", &span(-7.0, 7.0, 33), SCALED, |x| {
        x * 180.0 / std::f64::consts::PI
    });
}

fn several_operands(cases: &mut Vec<Case>) {
    let triples = |xs: &[f64], ys: &[f64], zs: &[f64]| -> Vec<Vec<f32>> {
        pool::rows2::<f32>(xs, ys)
            .iter()
            .flat_map(|row| zs.iter().map(|&z| vec![row[0], row[1], z as f32]))
            .collect()
    };
    let values = [-3.5, -1.0, 0.1, 0.3, 1.0, 123.456];
    let rows = triples(&values, &values, &[-0.25, 0.0, 0.3, 0.5, 1.0, 1.5]);
    for (width, shape) in [(1, "f32"), (3, "vec3<f32>")] {
        let name = |what: &str| format!("math/{what}/{shape}");
        cases.push(
            Lanes::new(name("mix"), width, "mix(x, y, z)")
                .near(&rows, MIXED, |x| x[0] * (1.0 - x[2]) + x[1] * x[2]),
        );
        let fused = |x: &[f64]| f64::from((x[0] as f32).mul_add(x[1] as f32, x[2] as f32));
        cases.push(Lanes::new(name("fma"), width, "fma(x, y, z)").near(&rows, FUSED, fused));
        let edges = triples(
            &[-1.0, 0.0, 2.0],
            &[3.0, 5.5],
            &[-2.0, -1.0, 0.5, 1.0, 2.5, 3.0, 4.0, 6.0],
        );
        let smooth = |x: &[f64]| {
            let t = ((x[2] - x[0]) / (x[1] - x[0])).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        };
        cases.push(
            Lanes::new(name("smoothstep"), width, "smoothstep(x, y, z)")
                .near(&edges, SMOOTH, smooth),
        );
    }
    let lanes = Lanes::new("math/mix/vec4<f32> by f32", 4, "mix(x, y, z0)");
    let mixed = Bounds::same(Bound::Absolute(4.0 * EPSILON * 400.0));
    cases.push(lanes.near_groups(&rows, mixed, |group| {
        group
            .iter()
            .map(|row| row[0] * (1.0 - group[0][2]) + row[1] * group[0][2])
            .collect()
    }));
    // The product needs 48 bits, and the sum cancels all but the last.
    let exact = [
        (1.0f32 + f32::EPSILON, 1.0 - f32::EPSILON, -1.0f32),
        (16777215.0, 16777213.0, -281474926379000.0),
    ];
    let lanes = Lanes::new("math/fma/f32/single rounding", 1, "fma(x, y, z)");
    cases.push(
        lanes
            .exact3(&exact, |x: f32, y, z| x.mul_add(y, z))
            .scope(Scope::Ptx),
    );
}

fn parts(cases: &mut Vec<Case>) {
    let broken = [
        0.5, -0.5, 1.5, -1.5, 2.25, -123.456, 8388607.5, 1e-10, 0.99999994, 3.75, -1000.125, 0.1,
    ];
    let whole = [0.0, 1.0, -1.0, 2.0, 16777216.0, -8388609.0, 1e10];
    let all = [&broken[..], &whole].concat();
    both(cases, "fract", &all, FRACTION, |x| {
        f64::from(x as f32 - (x as f32).floor())
    });
    for (width, shape) in [(1, "f32"), (3, "vec3<f32>")] {
        let broken = broken.map(|x| x as f32);
        let all = all.iter().map(|&x| x as f32).collect::<Vec<_>>();
        cases.push(
            Lanes::new(format!("math/modf fract/{shape}"), width, "modf(x).fract")
                .exact1(&broken, |x: f32| x - x.trunc()),
        );
        cases.push(
            Lanes::new(format!("math/modf whole/{shape}"), width, "modf(x).whole")
                .exact1(&all, |x: f32| x.trunc()),
        );
        let normal = [&all[..], &[f32::MAX, f32::MIN_POSITIVE, -0.75, 3e-38]].concat();
        cases.push(
            Lanes::new(format!("math/frexp fract/{shape}"), width, "frexp(x).fract")
                .exact1(&normal, |x| frexp(x).0),
        );
        cases.push(
            Lanes::new(format!("math/frexp exp/{shape}"), width, "frexp(x).exp")
                .exact1(&normal, |x| frexp(x).1),
        );
        let exponents = [1.0f32, -1.5, 0.1, 3.75]
            .iter()
            .flat_map(|&x| [-100, -20, -1, 0, 1, 7, 63, 120].map(|e| (x, e)))
            .collect::<Vec<_>>();
        let ldexp = |x: f32, e: i32| (f64::from(x) * 2f64.powi(e)) as f32;
        cases.push(
            Lanes::new(format!("math/ldexp/{shape}"), width, "ldexp(x, y)")
                .exact2(&exponents, ldexp),
        );
    }
    let subnormal = [1e-40f32, -1e-45, 5e-39, 1.1754942e-38];
    cases.push(
        Lanes::new("math/frexp fract/f32/ieee", 1, "frexp(x).fract")
            .exact1(&subnormal, |x| frexp(x).0)
            .scope(Scope::Ptx),
    );
    cases.push(
        Lanes::new("math/frexp exp/f32/ieee", 1, "frexp(x).exp")
            .exact1(&subnormal, |x| frexp(x).1)
            .scope(Scope::Ptx),
    );
    let halves = [
        0.0,
        1.0,
        -1.0,
        0.1,
        1.0 / 3.0,
        2049.0,
        65504.0,
        -123.456,
        1e-4,
        1.00048828125,
        0.333,
    ];
    let half = |x: f64| to_f16(x).to_f64();
    both(cases, "quantizeToF16", &halves, QUANTIZED, half);
}

/// The fraction, from 1/2 to below 1, and the exponent.
fn frexp(x: f32) -> (f32, i32) {
    if x == 0.0 {
        return (x, 0);
    }
    let bits = f64::from(x).to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (
        f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52) as f32,
        exponent,
    )
}
