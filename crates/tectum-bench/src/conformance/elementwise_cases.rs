//! Cases of fill, copy and the op table.

use tectum::operation::elementwise::{Arity, OPS, Op};

use super::case::SPECIAL;
use super::{Case, Data, Expected, Output, Seed, Suite};

/// One unit in the last place of a float near 1.
const ULP: f64 = 1.0 / 8_388_608.0;
const LARGE: usize = 300_001;

pub(super) fn suites() -> Vec<Suite> {
    let mut suites = vec![
        Suite::new("fill", fill_cases),
        Suite::new("copy", copy_cases),
    ];
    suites.extend(OPS.iter().map(|op| match op.arity {
        Arity::Unary => Suite::new(op.name, |seed: &mut Seed| unary_cases(op, seed)),
        Arity::Binary => Suite::new(op.name, |seed: &mut Seed| binary_cases(op, seed)),
    }));
    suites
}

fn fill_cases(seed: &mut Seed) -> Vec<Case> {
    let sizes = seed.sizes(LARGE);
    let case = |n| {
        let expected = Output::Exact(Data::F32(vec![-2.5; n]));
        Case::new(format!("{n}"), vec![], vec![expected], |plan, _, y| {
            plan.fill(y[0], (-2.5f32).to_bits())
        })
    };
    sizes.into_iter().map(case).collect()
}

fn copy_cases(seed: &mut Seed) -> Vec<Case> {
    let sizes = seed.sizes(LARGE);
    let mut case = |n| {
        let words: Vec<u32> = (0..n).map(|_| seed.word()).collect();
        let expected = Output::Exact(Data::U32(words.clone()));
        Case::new(
            format!("{n}"),
            vec![Data::U32(words)],
            vec![expected],
            |plan, x, y| plan.copy(x[0], y[0]),
        )
    };
    sizes.into_iter().map(&mut case).collect()
}

fn expect(op: &Op, a: f32, b: f32) -> Expected {
    let value = (op.reference)(f64::from(a), f64::from(b));
    Expected {
        value,
        bound: op.ulp * ULP * value.abs(),
    }
}

fn unary_cases(op: &'static Op, seed: &mut Seed) -> Vec<Case> {
    let (low, high) = op.domain;
    let mut inputs: Vec<Vec<f32>> = seed
        .sizes(LARGE)
        .into_iter()
        .map(|n| seed.floats(n, low, high))
        .collect();
    inputs.push(SPECIAL.to_vec());
    // Small magnitudes of every exponent, both signs, where the domain has them.
    inputs.push(
        (0..=126)
            .flat_map(|e| {
                [
                    f32::from_bits((e + 1) << 23),
                    -f32::from_bits((e + 1) << 23),
                ]
            })
            .filter(|x| *x >= low)
            .collect(),
    );
    let case = |x: Vec<f32>| {
        let expected = x.iter().map(|&a| expect(op, a, 0.0)).collect();
        Case::new(
            format!("{}", x.len()),
            vec![Data::F32(x)],
            vec![Output::Near(expected)],
            |plan, x, y| plan.unary(op.name, x[0], y[0]),
        )
    };
    inputs.into_iter().map(case).collect()
}

/// Elements of both operands, and for how many an element of the second counts: shorter and longer
/// than a block, with and without repetition.
pub(super) const RUNS: [[usize; 3]; 3] = [[24, 4, 3], [2 * 13 * 77, 13, 77], [3 * 1200, 3, 1200]];

fn binary_cases(op: &'static Op, seed: &mut Seed) -> Vec<Case> {
    let (low, high) = op.domain;
    let mut pairs: Vec<(Vec<f32>, Vec<f32>)> = Vec::new();
    for n in seed.sizes(LARGE) {
        pairs.push((seed.floats(n, low, high), seed.floats(n, low, high)));
    }
    // A scalar and a row that repeats.
    pairs.push((seed.floats(1000, low, high), seed.floats(1, low, high)));
    pairs.push((seed.floats(77 * 13, low, high), seed.floats(13, low, high)));
    pairs.push((
        seed.floats(5 * 40_000, low, high),
        seed.floats(40_000, low, high),
    ));
    if !op.name.ends_with("_grad") {
        let all = SPECIAL
            .iter()
            .flat_map(|&a| SPECIAL.iter().map(move |&b| (a, b)));
        pairs.push(all.unzip());
    }
    if op.name == "pow" {
        pairs.extend(powers(seed));
    }
    if op.name.ends_with("mod") {
        pairs.push(quotients(seed));
    }
    let case = |((a, b), run): ((Vec<f32>, Vec<f32>), usize)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, &x)| expect(op, x, b[i / run % period]))
            .collect();
        let shape = format!("{} with {} for runs of {run}", a.len(), b.len());
        let (inputs, outputs) = (
            vec![Data::F32(a), Data::F32(b)],
            vec![Output::Near(expected)],
        );
        Case::new(shape, inputs, outputs, move |plan, x, y| {
            plan.binary_by_run(op.name, x[0], x[1], run, y[0])
        })
    };
    let by_run =
        RUNS.map(|[n, m, run]| ((seed.floats(n, low, high), seed.floats(m, low, high)), run));
    pairs
        .into_iter()
        .map(|pair| (pair, 1))
        .chain(by_run)
        .map(case)
        .collect()
}

/// Bases of both signs with whole exponents, bases near 1 with great exponents, and all magnitudes
/// of both.
fn powers(seed: &mut Seed) -> Vec<(Vec<f32>, Vec<f32>)> {
    let whole = seed
        .floats(5000, -30.0, 30.0)
        .into_iter()
        .map(f32::round)
        .collect();
    let near_one: Vec<f32> = seed
        .floats(5000, -1e-3, 1e-3)
        .into_iter()
        .map(|x| 1.0 + x)
        .collect();
    let every = |seed: &mut Seed| -> Vec<f32> {
        (0..20_000)
            .map(|_| f32::from_bits((seed.word() & 0xff7f_ffff) | 0x0080_0000))
            .collect()
    };
    let edges = [
        -3.0,
        -2.5,
        -1.0,
        -0.5,
        -0.0,
        0.0,
        0.5,
        1.0,
        2.0,
        16_777_215.0,
        16_777_216.0,
        -16_777_217.0,
        8_388_607.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    let pairs = edges
        .iter()
        .flat_map(|&a| edges.iter().map(move |&b| (a, b)))
        .unzip();
    vec![
        (seed.floats(5000, -30.0, 30.0), whole),
        (near_one, seed.floats(5000, -80_000.0, 80_000.0)),
        (
            seed.floats(5000, 0.0, 2.0),
            seed.floats(5000, -100.0, 100.0),
        ),
        (every(seed), every(seed)),
        pairs,
    ]
}

/// Dividends and divisors of all magnitudes, whose quotients have up to 250 bits before the point.
fn quotients(seed: &mut Seed) -> (Vec<f32>, Vec<f32>) {
    let every = |seed: &mut Seed| -> Vec<f32> {
        (0..20_000)
            .map(|_| f32::from_bits((seed.word() & 0xff7f_ffff) | 0x0080_0000))
            .collect()
    };
    (every(seed), every(seed))
}
