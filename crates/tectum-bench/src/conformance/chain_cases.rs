//! Cases of chains: their operations in float64, their error bounds by the magnitudes.

use tectum::Result;
use tectum_programs::{Chain, Value};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    vec![Suite::new("chain", |seed: &mut Seed| {
        let mut sizes = seed.sizes(100_001);
        sizes.extend([2047, 2048, 2049]);
        sizes
            .into_iter()
            .enumerate()
            .map(|(index, n)| chain(seed, n, index))
            .collect()
    })]
}

/// A value of the reference: its value, and its value if every operand and operation had one sign.
#[derive(Clone, Copy)]
struct Near {
    value: f64,
    size: f64,
}

/// An operation with its operands: 0 to 2 are the inputs, 3 a constant, from 4 on the steps.
type Written = (&'static str, [usize; 3]);

const CONSTANT: f32 = -0.75;

/// Values reused late and immediately, the constant in every place, the table's names and
/// `mul_add`, up to twelve steps.
const CHAINS: &[&[Written]] = &[
    &[("add", [0, 1, 0])],
    &[
        ("mul", [0, 1, 0]),
        ("add", [4, 0, 0]),
        ("mul", [5, 1, 0]),
        ("add", [0, 1, 0]),
        ("mul", [0, 7, 0]),
        ("sub", [6, 8, 0]),
    ],
    &[
        ("mul_add", [0, 3, 1]),
        ("mul_add", [3, 4, 2]),
        ("mul_add", [4, 5, 3]),
        ("neg", [6, 0, 0]),
    ],
    &[
        ("sub", [3, 0, 0]),
        ("mul", [4, 3, 0]),
        ("max", [5, 1, 0]),
        ("min", [6, 2, 0]),
        ("abs", [7, 0, 0]),
        ("mul", [8, 8, 0]),
        ("add", [9, 4, 0]),
    ],
    &[
        ("add", [0, 1, 0]),
        ("add", [4, 2, 0]),
        ("mul", [5, 4, 0]),
        ("relu", [6, 0, 0]),
        ("mul", [7, 3, 0]),
        ("sub", [8, 5, 0]),
        ("add", [9, 6, 0]),
        ("mul", [10, 0, 0]),
        ("add", [11, 1, 0]),
        ("mul_add", [12, 2, 10]),
        ("add", [13, 3, 0]),
        ("sub", [14, 4, 0]),
    ],
];

fn apply(name: &str, [a, b, c]: [Near; 3]) -> Near {
    let (value, size) = match name {
        "add" => (a.value + b.value, a.size + b.size),
        "sub" => (a.value - b.value, a.size + b.size),
        "mul" => (a.value * b.value, a.size * b.size),
        "mul_add" => (a.value * b.value + c.value, a.size * b.size + c.size),
        "max" => (a.value.max(b.value), a.size.max(b.size)),
        "min" => (a.value.min(b.value), a.size.max(b.size)),
        "abs" => (a.value.abs(), a.size),
        "neg" => (-a.value, a.size),
        _ => (a.value.max(0.0), a.size),
    };
    Near { value, size }
}

fn build(written: &[Written]) -> Result<Chain> {
    let mut chain = Chain::new(3)?;
    let mut values: Vec<Value> = vec![
        chain.input(0)?,
        chain.input(1)?,
        chain.input(2)?,
        chain.constant(CONSTANT)?,
    ];
    for (name, [a, b, c]) in written {
        let (a, b, c) = (values[*a], values[*b], values[*c]);
        values.push(match *name {
            "mul_add" => chain.mul_add(a, b, c)?,
            "abs" | "neg" | "relu" => chain.op(name, &[a])?,
            _ => chain.op(name, &[a, b])?,
        });
    }
    Ok(chain)
}

fn chain(seed: &mut Seed, n: usize, index: usize) -> Case {
    let written = CHAINS[index % CHAINS.len()];
    let inputs = [0, 1, 2].map(|_| seed.floats(n, -2.0, 2.0));
    let expect = |i: usize| {
        let exact = |x: f32| Near {
            value: f64::from(x),
            size: f64::from(x).abs(),
        };
        let mut values = vec![
            exact(inputs[0][i]),
            exact(inputs[1][i]),
            exact(inputs[2][i]),
            exact(CONSTANT),
        ];
        for (name, operands) in written {
            values.push(apply(name, operands.map(|operand| values[operand])));
        }
        let Near { value, size } = values[values.len() - 1];
        // Every value is a polynomial of the inputs whose terms pass through at most three
        // roundings a step.
        Expected {
            value,
            bound: 3.0 * written.len() as f64 * ROUNDING * size,
        }
    };
    let expected = (0..n).map(expect).collect();
    let data = inputs.iter().cloned().map(Data::F32).collect();
    Case::new(
        format!("{n}, {} steps", written.len()),
        data,
        vec![Output::Near(expected)],
        move |plan, x, y| build(written)?.record(plan, x, y[0]),
    )
}
