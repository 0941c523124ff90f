//! Cases of the integer operations, comparisons, predicates and selections: exact.

use tectum::DType;
use tectum::operation::elementwise::Arity;
use tectum::operation::elementwise::compare::{COMPARISONS, PREDICATES};
use tectum::operation::elementwise::integer::{INTEGER_OPS, IntegerOp};

use super::case::SPECIAL;
use super::{Case, Data, Output, Seed, Suite};

const LARGE: usize = 300_001;

/// Words at which integers of 32 bits wrap, change sign or are special divisors, shifts and powers.
const EDGES: [u32; 20] = [
    0,
    1,
    2,
    3,
    7,
    10,
    31,
    32,
    33,
    63,
    64,
    255,
    0x7fff_ffff,
    0x7fff_fffe,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_fffe,
    0xffff_fff9,
    0xffff_ffe0,
];

const INTEGERS: [DType; 2] = [DType::I32, DType::U32];

pub(super) fn suites() -> Vec<Suite> {
    let mut suites: Vec<Suite> = INTEGER_OPS
        .iter()
        .flat_map(|op| {
            INTEGERS.map(|dtype| {
                Suite::new(
                    format!("{}_{}", op.name, dtype.wgsl()),
                    move |seed: &mut Seed| integer_cases(op, dtype, seed),
                )
            })
        })
        .collect();
    for &name in COMPARISONS {
        for dtype in INTEGERS {
            suites.push(Suite::new(
                format!("{name}_{}", dtype.wgsl()),
                move |seed: &mut Seed| compare_integers(name, dtype, seed),
            ));
        }
        suites.push(Suite::new(name, move |seed: &mut Seed| {
            compare_floats(name, seed)
        }));
        suites.push(Suite::double(
            format!("{name}_f64"),
            move |seed: &mut Seed| compare_doubles(name, seed),
        ));
    }
    for &name in PREDICATES {
        suites.push(Suite::new(name, move |seed: &mut Seed| {
            test_floats(name, seed)
        }));
        suites.push(Suite::double(
            format!("{name}_f64"),
            move |seed: &mut Seed| test_doubles(name, seed),
        ));
    }
    suites.push(Suite::new("select", select_cases));
    suites.push(Suite::new("convert", convert_cases));
    suites
}

/// A word as the number that it is in a type.
fn number(dtype: DType, word: u32) -> i64 {
    if dtype == DType::I32 {
        i64::from(word as i32)
    } else {
        i64::from(word)
    }
}

/// Words of all magnitudes and both signs.
fn words(seed: &mut Seed, n: usize) -> Vec<u32> {
    (0..n)
        .map(|_| {
            let word = seed.word() >> (seed.word() % 32);
            if seed.word().is_multiple_of(2) {
                word
            } else {
                word.wrapping_neg()
            }
        })
        .collect()
}

/// Operands of equal length, a scalar and rows that repeat, and every pair of the edges.
fn pairs(seed: &mut Seed) -> Vec<(Vec<u32>, Vec<u32>)> {
    let mut lengths: Vec<(usize, usize)> = seed.sizes(LARGE).into_iter().map(|n| (n, n)).collect();
    lengths.extend([(1000, 1), (77 * 13, 13), (3 * 40_000, 40_000)]);
    let mut pairs: Vec<_> = lengths
        .into_iter()
        .map(|(n, m)| (words(seed, n), words(seed, m)))
        .collect();
    pairs.push(every_pair(&EDGES));
    pairs
}

fn every_pair<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values
        .iter()
        .flat_map(|&a| values.iter().map(move |&b| (a, b)))
        .unzip()
}

fn integer_cases(op: &'static IntegerOp, dtype: DType, seed: &mut Seed) -> Vec<Case> {
    let case = |(a, b): (Vec<u32>, Vec<u32>)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, &x)| (op.reference)(number(dtype, x), number(dtype, b[i % period])) as u32)
            .collect();
        let outputs = vec![Output::Exact(Data::U32(expected))];
        Case::new(
            format!("{} with {}", a.len(), b.len()),
            vec![Data::U32(a), Data::U32(b)],
            outputs,
            move |plan, x, y| {
                let [a, b, y] = [x[0], x[1], y[0]].map(|view| view.reinterpret(dtype));
                plan.binary(op.name, a, b, y)
            },
        )
    };
    let unary = |a: Vec<u32>| {
        let expected = a
            .iter()
            .map(|&x| (op.reference)(number(dtype, x), 0) as u32)
            .collect();
        Case::new(
            format!("{}", a.len()),
            vec![Data::U32(a)],
            vec![Output::Exact(Data::U32(expected))],
            move |plan, x, y| plan.unary(op.name, x[0].reinterpret(dtype), y[0].reinterpret(dtype)),
        )
    };
    match op.arity {
        Arity::Binary => pairs(seed).into_iter().map(case).collect(),
        Arity::Unary => {
            let sizes = seed.sizes(LARGE);
            let mut inputs: Vec<Vec<u32>> = sizes.into_iter().map(|n| words(seed, n)).collect();
            inputs.push(EDGES.to_vec());
            inputs.into_iter().map(unary).collect()
        }
    }
}

/// Whether a comparison holds, by the order of the operands if they have one.
fn holds(name: &str, order: Option<std::cmp::Ordering>) -> bool {
    match name {
        "equal" => order.is_some_and(|order| order.is_eq()),
        "less" => order.is_some_and(|order| order.is_lt()),
        "less_equal" => order.is_some_and(|order| order.is_le()),
        "greater" => order.is_some_and(|order| order.is_gt()),
        "greater_equal" => order.is_some_and(|order| order.is_ge()),
        _ => order.is_none_or(|order| order.is_ne()),
    }
}

fn compare(
    name: &'static str,
    dtype: DType,
    [a, b]: [Data; 2],
    sizes: [usize; 2],
    expected: Vec<u32>,
) -> Case {
    Case::new(
        format!("{} with {}", sizes[0], sizes[1]),
        vec![a, b],
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| {
            plan.compare(
                name,
                x[0].reinterpret(dtype),
                x[1].reinterpret(dtype),
                y[0].reinterpret(DType::I32),
            )
        },
    )
}

fn compare_integers(name: &'static str, dtype: DType, seed: &mut Seed) -> Vec<Case> {
    let mut pairs = pairs(seed);
    // Many equal elements.
    pairs.push((
        words(seed, 5000).into_iter().map(|x| x % 3).collect(),
        words(seed, 5000).into_iter().map(|x| x % 3).collect(),
    ));
    let case = |(a, b): (Vec<u32>, Vec<u32>)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                u32::from(holds(
                    name,
                    Some(number(dtype, x).cmp(&number(dtype, b[i % period]))),
                ))
            })
            .collect();
        let sizes = [a.len(), b.len()];
        compare(name, dtype, [a, b].map(Data::U32), sizes, expected)
    };
    pairs.into_iter().map(case).collect()
}

fn compare_floats(name: &'static str, seed: &mut Seed) -> Vec<Case> {
    let mut pairs: Vec<(Vec<f32>, Vec<f32>)> = Vec::new();
    for n in seed.sizes(LARGE) {
        pairs.push((seed.floats(n, -2.0, 2.0), seed.floats(n, -2.0, 2.0)));
    }
    pairs.push((seed.floats(1000, -1.0, 1.0), vec![0.0]));
    pairs.push((seed.floats(77 * 13, -1.0, 1.0), seed.floats(13, -1.0, 1.0)));
    pairs.push((
        [0.0, -0.0, 1.0, 2.0].repeat(100),
        [-0.0, 1.0, 0.0, 1.0, 2.0].repeat(80),
    ));
    // Subnormal numbers differ from 0 on devices that flush them, too.
    let values: Vec<f32> = SPECIAL
        .into_iter()
        .chain([-f32::NAN, 1e-45, -1e-45, 1e-40, -1e-40])
        .collect();
    pairs.push(every_pair(&values));
    let case = |(a, b): (Vec<f32>, Vec<f32>)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, x)| {
                u32::from(holds(
                    name,
                    f64::from(*x).partial_cmp(&f64::from(b[i % period])),
                ))
            })
            .collect();
        let sizes = [a.len(), b.len()];
        compare(name, DType::F32, [a, b].map(Data::F32), sizes, expected)
    };
    pairs.into_iter().map(case).collect()
}

fn compare_doubles(name: &'static str, seed: &mut Seed) -> Vec<Case> {
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for n in [0, 1, 3, 4097, 100_001] {
        pairs.push((seed.doubles(n, -2.0, 2.0), seed.doubles(n, -2.0, 2.0)));
    }
    pairs.push((
        seed.doubles(77 * 13, -1.0, 1.0),
        seed.doubles(13, -1.0, 1.0),
    ));
    let one = 1.0f64;
    pairs.push(every_pair(&[
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        0.0,
        -0.0,
        one,
        one.next_up(),
        -one,
        f64::MAX,
        5e-324,
        -5e-324,
    ]));
    let case = |(a, b): (Vec<f64>, Vec<f64>)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, x)| u32::from(holds(name, x.partial_cmp(&b[i % period]))))
            .collect();
        let sizes = [a.len(), b.len()];
        compare(name, DType::F64, [a, b].map(Data::F64), sizes, expected)
    };
    pairs.into_iter().map(case).collect()
}

/// Whether a predicate holds for a float: its bits without the sign compared with those of
/// infinity.
fn is(name: &str, magnitude: u64, infinity: u64) -> u32 {
    u32::from(if name == "is_nan" {
        magnitude > infinity
    } else {
        magnitude == infinity
    })
}

fn test(name: &'static str, n: usize, x: Data, expected: Vec<u32>) -> Case {
    Case::new(
        format!("{n}"),
        vec![x],
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| plan.predicate(name, x[0], y[0].reinterpret(DType::I32)),
    )
}

fn test_floats(name: &'static str, seed: &mut Seed) -> Vec<Case> {
    let mut inputs: Vec<Vec<f32>> = Vec::new();
    for n in seed.sizes(LARGE) {
        // Every exponent, so that some in 256 are not finite.
        inputs.push((0..n).map(|_| f32::from_bits(seed.word())).collect());
    }
    inputs.push(
        SPECIAL
            .into_iter()
            .chain([0x7f80_0001, 0xff80_0001, 0xffff_ffff, 0x7fc0_0000].map(f32::from_bits))
            .collect(),
    );
    let case = |x: Vec<f32>| {
        let expected = x
            .iter()
            .map(|x| is(name, u64::from(x.to_bits() << 1), 0xff00_0000))
            .collect();
        test(name, x.len(), Data::F32(x), expected)
    };
    inputs.into_iter().map(case).collect()
}

fn test_doubles(name: &'static str, seed: &mut Seed) -> Vec<Case> {
    let mut inputs: Vec<Vec<f64>> = [0, 1, 3, 4097, 100_001]
        .map(|n| seed.doubles(n, -1.0, 1.0))
        .into();
    inputs
        .iter_mut()
        .flat_map(|x| x.iter_mut().step_by(7))
        .for_each(|x| *x /= 0.0);
    inputs.push(vec![
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        0.0,
        f64::from_bits(0x7ff0_0000_0000_0001),
    ]);
    let case = |x: Vec<f64>| {
        let expected = x
            .iter()
            .map(|x| is(name, x.to_bits() << 1, 0x7ff << 53))
            .collect();
        test(name, x.len(), Data::F64(x), expected)
    };
    inputs.into_iter().map(case).collect()
}

fn select_cases(seed: &mut Seed) -> Vec<Case> {
    // Elements, and the lengths of both values.
    let mut shapes: Vec<[usize; 3]> = seed.sizes(LARGE).into_iter().map(|n| [n, n, n]).collect();
    shapes.extend([
        [1000, 1, 1],
        [1000, 1000, 1],
        [1000, 1, 1000],
        [77 * 13, 13, 77],
        [120_000, 40_000, 1],
        [120_000, 30_000, 40_000],
        [35_000, 35_000, 7],
    ]);
    let case = |[n, m, k]: [usize; 3]| {
        let condition: Vec<u32> = (0..n)
            .map(|_| seed.word() >> 31 << (seed.word() % 32))
            .collect();
        let [a, b] = [m, k].map(|len| (0..len).map(|_| seed.word()).collect::<Vec<u32>>());
        let expected = condition
            .iter()
            .enumerate()
            .map(|(i, &condition)| if condition != 0 { a[i % m] } else { b[i % k] })
            .collect();
        let inputs = [condition, a, b].map(Data::U32).into();
        Case::new(
            format!("{n} of {m} and {k}"),
            inputs,
            vec![Output::Exact(Data::U32(expected))],
            |plan, x, y| plan.select(x[0].reinterpret(DType::I32), x[1], x[2], y[0]),
        )
    };
    shapes.into_iter().map(case).collect()
}

/// The same words between integers; one case for each cast, whose cases are those of `cast`.
fn convert_cases(seed: &mut Seed) -> Vec<Case> {
    let mut cases = Vec::new();
    for n in seed.sizes(20_001) {
        let x = words(seed, n);
        for [from, to] in [
            [DType::I32, DType::U32],
            [DType::U32, DType::I32],
            [DType::I32, DType::I32],
        ] {
            let shape = format!("{} to {} {n}", from.wgsl(), to.wgsl());
            cases.push(Case::new(
                shape,
                vec![Data::U32(x.clone())],
                vec![Output::Exact(Data::U32(x.clone()))],
                move |plan, x, y| plan.convert(x[0].reinterpret(from), y[0].reinterpret(to)),
            ));
        }
        let small: Vec<u32> = x.iter().map(|x| x % 1_000_000).collect();
        let floats: Vec<f32> = small.iter().map(|x| *x as f32).collect();
        for dtype in INTEGERS {
            cases.push(Case::new(
                format!("{} to f32 {n}", dtype.wgsl()),
                vec![Data::U32(small.clone())],
                vec![Output::Exact(Data::F32(floats.clone()))],
                move |plan, x, y| plan.convert(x[0].reinterpret(dtype), y[0]),
            ));
            cases.push(Case::new(
                format!("f32 to {} {n}", dtype.wgsl()),
                vec![Data::F32(floats.clone())],
                vec![Output::Exact(Data::U32(small.clone()))],
                move |plan, x, y| plan.convert(x[0], y[0].reinterpret(dtype)),
            ));
        }
    }
    cases
}
