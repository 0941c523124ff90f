//! Built-in functions on f16. The bounds are those of WGSL's accuracy table.

use half::f16;

use crate::case::{Case, Element, Features, to_f16};
use crate::lanes::{Bound, Bounds, Float, Lanes, Scalar, float1, pairs};
use crate::pool::{self, span};

/// The distance of 1 and the next f16.
const EPSILON: f64 = 1.0 / 1024.0;
/// From -π to π.
const SINE: Bounds = Bounds::same(Bound::Absolute(1.0 / 128.0));
const EXPONENTIAL: Bounds = Bounds::same(Bound::UlpBy(|x| 1.0 + 2.0 * x.abs()));
const LOGARITHM: Bounds = Bounds::same(Bound::By(|x, value| logarithm(x[0], value)));
const ARCTANGENT: Bounds = Bounds::same(Bound::Ulp(5.0));
const ARCSINE: Bounds = Bounds::same(Bound::By(|_, value| {
    (5.0 * EPSILON * value.abs()).max(3.91e-3)
}));
const INVERSE_ROOT: Bounds = Bounds::same(Bound::Ulp(2.0));
const ROOT: Bounds = Bounds::rounded_in_ptx(Bound::Ulp(5.0));
/// Quotients, sums and logarithms of the above.
const DERIVED: Bounds = Bounds::same(Bound::Mixed {
    absolute: 1.0 / 64.0,
    relative: 1.0 / 32.0,
});
const SCALED: Bounds = Bounds::same(Bound::Ulp(3.0));

fn logarithm(x: f64, value: f64) -> f64 {
    if (0.5..=2.0).contains(&x) {
        1.0 / 128.0
    } else {
        3.0 * Element::F16.ulp(value)
    }
}

/// A function by its name in WGSL.
type Function = (&'static str, fn(f64) -> f64);

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    exact(&mut cases);
    let mut near = |what: &str, xs: &[f64], bounds: Bounds, f: fn(f64) -> f64| {
        let (expression, rows) = (format!("{what}(x)"), pool::rows::<f16>(xs));
        cases.push(Lanes::new(format!("math/{what}/f16"), 1, &expression).near(
            &rows,
            bounds,
            |x| f(x[0]),
        ));
    };
    near("exp", &span(-8.0, 10.0, 37), EXPONENTIAL, f64::exp);
    near("exp2", &span(-12.0, 15.0, 55), EXPONENTIAL, f64::exp2);
    let positive = [span(0.01, 4.0, 41), span(5.0, 60000.0, 21)].concat();
    near("log", &positive, LOGARITHM, f64::ln);
    near("log2", &positive, LOGARITHM, f64::log2);
    near("sqrt", &positive, ROOT, f64::sqrt);
    near("inverseSqrt", &positive, INVERSE_ROOT, |x| 1.0 / x.sqrt());
    near("sin", &span(-3.125, 3.125, 41), SINE, f64::sin);
    near("cos", &span(-3.125, 3.125, 41), SINE, f64::cos);
    near("tan", &span(-1.0, 1.0, 21), DERIVED, f64::tan);
    near("asin", &span(-1.0, 1.0, 21), ARCSINE, f64::asin);
    near("acos", &span(-1.0, 1.0, 21), ARCSINE, f64::acos);
    near("atan", &span(-4.0, 4.0, 33), ARCTANGENT, f64::atan);
    near("sinh", &span(-5.0, 5.0, 21), DERIVED, f64::sinh);
    near("cosh", &span(-5.0, 5.0, 21), DERIVED, f64::cosh);
    near("tanh", &span(-4.0, 4.0, 33), DERIVED, f64::tanh);
    near("asinh", &span(-1.0, 20.0, 22), DERIVED, f64::asinh);
    near("acosh", &span(1.25, 20.0, 20), DERIVED, f64::acosh);
    near("atanh", &span(-0.75, 0.75, 21), DERIVED, f64::atanh);
    near("radians", &span(-360.0, 360.0, 21), SCALED, |x| {
        x * std::f64::consts::PI / 180.0
    });
    near("degrees", &span(-7.0, 7.0, 21), SCALED, |x| {
        x * 180.0 / std::f64::consts::PI
    });
    several_operands(&mut cases);
    cases
}

fn exact(cases: &mut Vec<Case>) {
    let pool = pool::f16();
    let of = |f: fn(f64) -> f64| move |x: f16| to_f16(f(x.to_f64()));
    let functions: [Function; 5] = [
        ("abs", f64::abs),
        ("ceil", f64::ceil),
        ("floor", f64::floor),
        ("round", f64::round_ties_even),
        ("trunc", f64::trunc),
    ];
    for (what, f) in functions {
        cases.extend(float1(
            &Lanes::new(format!("math/{what}/f16"), 1, &format!("{what}(x)")),
            &pool,
            of(f),
        ));
        let [determined, _] = float1(
            &Lanes::new(format!("math/{what}/vec3<f16>"), 3, &format!("{what}(x)")),
            &pool,
            of(f),
        );
        cases.push(determined);
    }
    let numbers = pool
        .iter()
        .copied()
        .filter(|x| x.ordinary() && x.to_bits() != 1 << 15)
        .collect::<Vec<_>>();
    let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    cases.push(Lanes::new("math/sign/f16", 1, "sign(x)").exact1(&numbers, of(sign)));
    cases.push(
        Lanes::new("math/saturate/f16", 1, "saturate(x)")
            .exact1(&numbers, of(|x| x.clamp(0.0, 1.0))),
    );
    let rows = pairs(&numbers, &numbers);
    cases.push(Lanes::new("math/min/f16", 1, "min(x, y)").exact2(&rows, |x: f16, y| x.min(y)));
    cases
        .push(Lanes::new("math/max/vec2<f16>", 2, "max(x, y)").exact2(&rows, |x: f16, y| x.max(y)));
    cases.push(
        Lanes::new("math/step/f16", 1, "step(x, y)")
            .exact2(&rows, |x: f16, y| f16::of(if x <= y { 1.0 } else { 0.0 })),
    );
    let bounded = numbers
        .iter()
        .map(|&x| (x, f16::of(-1.5), f16::of(2.25)))
        .collect::<Vec<_>>();
    cases.push(
        Lanes::new("math/clamp/f16", 1, "clamp(x, y, z)")
            .exact3(&bounded, |x: f16, y, z| x.clamp(y, z)),
    );
    let broken = [0.5, -0.5, 1.25, -3.75, 100.5, 0.0, 7.0].map(f16::of);
    cases.push(Lanes::new("math/fract/f16", 1, "fract(x)").exact1(&broken, of(|x| x - x.floor())));
    cases.push(
        Lanes::new("math/modf whole/f16", 1, "modf(x).whole").exact1(&broken, of(f64::trunc)),
    );
    let exponents = pairs(&[1.0, -1.5, 0.375].map(f16::of), &[-10, -1, 0, 3, 14]);
    cases.push(
        Lanes::new("math/ldexp/f16", 1, "ldexp(x, y)")
            .exact2(&exponents, |x: f16, e| f16::of(x.to_f64() * 2f64.powi(e))),
    );
    let frexp = [1.0, -1.5, 0.375, 1000.0, -0.0625, 65504.0].map(f16::of);
    // naga makes the exponent an i16, where WGSL says i32.
    let fraction = Lanes::new("math/frexp fract/f16", 1, "frexp(x).fract")
        .exact1(&frexp, of(|x| x / 2f64.powi(exponent(x))));
    cases.push(fraction.features(Features::INT16));
    let power = Lanes::new("math/frexp exp/f16", 1, "i32(frexp(x).exp)")
        .exact1(&frexp, |x: f16| exponent(x.to_f64()));
    cases.push(power.features(Features::INT16));
}

/// So that the fraction is from 1/2 to below 1.
fn exponent(x: f64) -> i32 {
    x.abs().log2().floor() as i32 + 1
}

fn several_operands(cases: &mut Vec<Case>) {
    let rows = pool::rows2::<f16>(&[0.25, 0.75, 1.5, 3.0], &[-2.0, -0.5, 0.5, 1.0, 2.5]);
    cases
        .push(Lanes::new("math/pow/f16", 1, "pow(x, y)").near(&rows, DERIVED, |x| x[0].powf(x[1])));
    cases.push(
        Lanes::new("math/atan2/f16", 1, "atan2(x, y)")
            .near(&rows, ARCTANGENT, |x| x[0].atan2(x[1])),
    );
    // Sums and products of small multiples of 1/8 are exact.
    let eighths = rows
        .iter()
        .map(|row| vec![row[0], row[1], f16::of(0.375)])
        .collect::<Vec<_>>();
    let nearest = Bounds::same(Bound::Nearest);
    cases.push(
        Lanes::new("math/fma/f16", 1, "fma(x, y, z)")
            .near(&eighths, nearest, |x| x[0] * x[1] + x[2]),
    );
    cases.push(
        Lanes::new("math/mix/f16", 1, "mix(x, y, z)")
            .near(&eighths, nearest, |x| x[0] * (1.0 - x[2]) + x[1] * x[2]),
    );
    let smooth = Bounds::same(Bound::Absolute(8.0 * EPSILON));
    let edges = span(-1.0, 3.0, 17)
        .iter()
        .map(|&x| [0.0, 2.0, x].map(f16::of).to_vec())
        .collect::<Vec<_>>();
    cases.push(
        Lanes::new("math/smoothstep/f16", 1, "smoothstep(x, y, z)").near(&edges, smooth, |x| {
            let t = (x[2] / 2.0).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }),
    );
    let dot = Lanes::new("math/dot/vec3<f16>", 3, "dot(x, y)").reducing();
    cases.push(dot.near_groups(&eighths, nearest, |group| {
        vec![group.iter().map(|row| row[0] * row[1]).sum()]
    }));
    let length = Lanes::new("math/length/vec2<f16>", 2, "length(x)").reducing();
    cases.push(length.near_groups(&rows, SCALED, |group| {
        vec![group.iter().map(|row| row[0] * row[0]).sum::<f64>().sqrt()]
    }));
}
