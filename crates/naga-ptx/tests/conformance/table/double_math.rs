//! Built-in functions on f64. WGSL has no f64: exact functions are exact, the others are near the
//! exact result in PTX alone, since Vulkan's extended instructions take at most 32 bits.

use crate::case::{Case, Scope};
use crate::lanes::{Bound, Bounds, Lanes, Scalar, float1, pairs};
use crate::pool::{self, span};

/// Some thousand units in the last place: enough for a series in plain arithmetic.
const NEAR: Bounds = Bounds::same(Bound::Mixed {
    absolute: 1e-14,
    relative: 1e-12,
});
const NEAREST: Bounds = Bounds::same(Bound::Nearest);
/// Vulkan does not specify the accuracy of a 64-bit square root.
const ROOT: Bounds = Bounds::rounded_in_ptx(Bound::Mixed {
    absolute: 0.0,
    relative: 1e-12,
});

/// A function by its name in WGSL.
type Function = (&'static str, fn(f64) -> f64);

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    exact(&mut cases);
    let mut near = |what: &str, xs: &[f64], f: fn(f64) -> f64| {
        let (expression, rows) = (format!("{what}(x)"), pool::rows::<f64>(xs));
        cases.push(
            Lanes::new(format!("math/{what}/f64"), 1, &expression)
                .near(&rows, NEAR, |x| f(x[0]))
                .scope(Scope::Ptx),
        );
    };
    near(
        "exp",
        &[span(-700.0, 709.0, 60), span(-1.0, 1.0, 21)].concat(),
        f64::exp,
    );
    near(
        "exp2",
        &[span(-1020.0, 1023.0, 60), span(-1.0, 1.0, 21)].concat(),
        f64::exp2,
    );
    let positive = [
        span(-300.0, 300.0, 40)
            .iter()
            .map(|e| 10f64.powf(*e))
            .collect(),
        span(0.4, 2.5, 43),
    ]
    .concat();
    near("log", &positive, f64::ln);
    near("log2", &positive, f64::log2);
    near(
        "sin",
        &[span(-4.0, 4.0, 65), span(-100.0, 100.0, 41)].concat(),
        f64::sin,
    );
    near(
        "cos",
        &[span(-4.0, 4.0, 65), span(-100.0, 100.0, 41)].concat(),
        f64::cos,
    );
    near("tan", &span(-1.4, 1.4, 57), f64::tan);
    near("asin", &span(-1.0, 1.0, 41), f64::asin);
    near("acos", &span(-1.0, 1.0, 41), f64::acos);
    near(
        "atan",
        &[span(-5.0, 5.0, 41), vec![1e10, -1e10, 1e-3]].concat(),
        f64::atan,
    );
    near(
        "sinh",
        &[span(-20.0, 20.0, 41), span(-0.5, 0.5, 11)].concat(),
        f64::sinh,
    );
    near("cosh", &span(-20.0, 20.0, 41), f64::cosh);
    near(
        "tanh",
        &[span(-12.0, 12.0, 49), vec![-80.0, 80.0, 1e-3, -1e-5, 800.0]].concat(),
        f64::tanh,
    );
    near("asinh", &span(-2.0, 100.0, 52), f64::asinh);
    near("acosh", &span(1.1, 100.0, 52), f64::acosh);
    near("atanh", &span(-0.95, 0.95, 39), f64::atanh);
    near("inverseSqrt", &positive, |x| 1.0 / x.sqrt());
    near("radians", &span(-720.0, 720.0, 33), f64::to_radians);
    near("degrees", &span(-7.0, 7.0, 33), f64::to_degrees);
    let rows = pool::rows2::<f64>(
        &[0.01, 0.3, 0.9, 1.0, 1.1, 2.0, 7.5, 100.0],
        &[-7.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 3.7, 10.0],
    );
    cases.push(
        Lanes::new("math/pow/f64", 1, "pow(x, y)")
            .near(&rows, NEAR, |x| x[0].powf(x[1]))
            .scope(Scope::Ptx),
    );
    let rows = pool::rows2::<f64>(
        &[-100.0, -1.0, -0.3, 0.2, 1.0, 1000.0],
        &[-50.0, -1.0, -0.01, 0.1, 2.0, 300.0],
    );
    cases.push(
        Lanes::new("math/atan2/f64", 1, "atan2(x, y)")
            .near(&rows, NEAR, |x| x[0].atan2(x[1]))
            .scope(Scope::Ptx),
    );
    cases
}

fn exact(cases: &mut Vec<Case>) {
    let functions: [Function; 5] = [
        ("abs", f64::abs),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("round", f64::round_ties_even),
        ("trunc", f64::trunc),
    ];
    for (what, f) in functions {
        cases.extend(float1(
            &Lanes::new(format!("math/{what}/f64"), 1, &format!("{what}(x)")),
            pool::F64,
            f,
        ));
    }
    let numbers = pool::F64
        .iter()
        .copied()
        .filter(|x| x.ordinary() && x.to_bits() != 1 << 63)
        .collect::<Vec<_>>();
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    cases.push(Lanes::new("math/sign/f64", 1, "sign(x)").exact1(&numbers, sign));
    let rows = pairs(&numbers, &numbers);
    cases.push(Lanes::new("math/min/f64", 1, "min(x, y)").exact2(&rows, |x: f64, y| x.min(y)));
    cases
        .push(Lanes::new("math/max/vec3<f64>", 3, "max(x, y)").exact2(&rows, |x: f64, y| x.max(y)));
    let bounded = numbers.iter().map(|&x| (x, -1.5, 2.25)).collect::<Vec<_>>();
    cases.push(
        Lanes::new("math/clamp/f64", 1, "clamp(x, y, z)")
            .exact3(&bounded, |x: f64, y, z| x.clamp(y, z)),
    );
    let triples = pool::rows2::<f64>(&[0.25, -1.5, 3.0], &[2.0, -0.5, 0.75])
        .into_iter()
        .map(|row| vec![row[0], row[1], 0.375]);
    let triples = triples.collect::<Vec<_>>();
    cases.push(
        Lanes::new("math/mix/f64", 1, "mix(x, y, z)")
            .near(&triples, NEAREST, |x| x[0] * (1.0 - x[2]) + x[1] * x[2]),
    );
    cases.push(
        Lanes::new("math/fma/f64", 1, "fma(x, y, z)")
            .near(&triples, NEAREST, |x| x[0].mul_add(x[1], x[2])),
    );
    let single = [
        (1.0 + f64::EPSILON, 1.0 - f64::EPSILON, -1.0),
        (0.1, 10.0, -1.0),
    ];
    let lanes = Lanes::new("math/fma/f64/single rounding", 1, "fma(x, y, z)");
    cases.push(
        lanes
            .exact3(&single, |x: f64, y, z| x.mul_add(y, z))
            .scope(Scope::Ptx),
    );
    cases.push(Lanes::new("math/sqrt/f64", 1, "sqrt(x)").near(
        &pool::rows::<f64>(&[0.0, 2.0, 3.0, 4.0, 1e100, 1e-100, 0.1]),
        ROOT,
        |x| x[0].sqrt(),
    ));
    cases.push(
        Lanes::new("math/sqrt/f64/ieee", 1, "sqrt(x)")
            .exact1(pool::F64, f64::sqrt)
            .scope(Scope::Ptx),
    );
    let broken = [0.5, -0.5, 1.25, -3.75, 100.5, 0.0, 7.0];
    cases.push(Lanes::new("math/fract/f64", 1, "fract(x)").exact1(&broken, |x: f64| x - x.floor()));
    let dot = Lanes::new("math/dot/vec3<f64>", 3, "dot(x, y)").reducing();
    cases.push(dot.near_groups(&triples, NEAREST, |group| {
        vec![group.iter().map(|row| row[0] * row[1]).sum()]
    }));
}
