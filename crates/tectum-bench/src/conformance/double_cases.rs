//! Cases of f64: the op table, reductions and products. References have twice the precision where
//! f64 itself is not exact.

use tectum::operation::elementwise::{Arity, OPS, Op};
use tectum::{Activation, GemmEpilogue, Matrix};

use super::double_double::{DoubleDouble, exact, sum as sum_exactly, wide};
use super::elementwise_cases::RUNS;
use super::reduce_cases::one_in_each_row;
use super::{Case, Data, Expected, Output, Seed, Suite};

/// One unit in the last place of a float near 1, and half of it: the relative error of one
/// rounding.
const ULP: f64 = f64::EPSILON;
const ROUNDING: f64 = 0.5 * ULP;
/// The longest chain of additions that an element passes through in any of our trees.
const CHAIN: f64 = 160.0;
const LARGE: usize = 100_001;

const SPECIAL: [f64; 20] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    709.0,
    -709.0,
    710.0,
    -710.0,
    746.0,
    -746.0,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    1e22,
    -1e300,
];

pub(super) fn suites() -> Vec<Suite> {
    let mut suites: Vec<Suite> = OPS
        .iter()
        .map(|op| {
            let name = format!("{}_f64", op.name);
            match op.arity {
                Arity::Unary => Suite::double(name, |seed: &mut Seed| unary_cases(op, seed)),
                Arity::Binary => Suite::double(name, |seed: &mut Seed| binary_cases(op, seed)),
            }
        })
        .collect();
    let reductions: [(&'static str, Reduce); 6] = [
        ("sum_f64", sum),
        ("prod_f64", prod),
        ("sum_columns_f64", sum_columns),
        ("max_f64", max),
        ("min_f64", min),
        ("mean_f64", mean),
    ];
    suites.extend(reductions.map(|(name, reduce)| {
        Suite::double(name, move |seed: &mut Seed| {
            inputs(seed)
                .into_iter()
                .map(|(x, rows, cols)| reduce(x, rows, cols))
                .collect()
        })
    }));
    suites.push(Suite::double("gemm_f64", gemm_cases));
    suites.push(Suite::double("matvec_f64", matvec_cases));
    suites
}

fn expect(op: &Op, a: f64, b: f64) -> Expected {
    let value = exact(op.name, a).map_or_else(|| (op.reference)(a, b), |exact| exact.value());
    // The reference is itself rounded: once, or three times for gradients.
    let slack = if op.ulp == 0.0 { 0.0 } else { 1.5 };
    Expected {
        value,
        bound: (op.ulp + slack) * ULP * value.abs(),
    }
}

fn domain(op: &Op) -> (f64, f64) {
    let (low, high) = (f64::from(op.domain.0), f64::from(op.domain.1));
    // Rounding has to hold beyond integers of 32 bits; the range of the exponentials is eight times
    // as wide.
    if ["floor", "ceil", "round"].contains(&op.name) {
        return (-1e12, 1e12);
    }
    if ["exp", "exp2", "silu", "sigmoid"].contains(&op.name) {
        (8.0 * low, 8.0 * high)
    } else {
        (low, high)
    }
}

fn unary_cases(op: &'static Op, seed: &mut Seed) -> Vec<Case> {
    let (low, high) = domain(op);
    let mut inputs: Vec<Vec<f64>> = [0, 1, 3, 255, 1024, 4097, LARGE]
        .map(|n| seed.doubles(n, low, high))
        .into();
    inputs.push(SPECIAL.to_vec());
    // Magnitudes of every exponent up to 1, both signs, where the domain has them.
    let powers = (1..=1023u64)
        .step_by(7)
        .map(|exponent| f64::from_bits(exponent << 52));
    inputs.push(powers.flat_map(|x| [x, -x]).filter(|x| *x >= low).collect());
    let case = |x: Vec<f64>| {
        let expected = x.iter().map(|&a| expect(op, a, 0.0)).collect();
        Case::new(
            format!("{}", x.len()),
            vec![Data::F64(x)],
            vec![Output::NearDouble(expected)],
            |plan, x, y| plan.unary(op.name, x[0], y[0]),
        )
    };
    inputs.into_iter().map(case).collect()
}

fn binary_cases(op: &'static Op, seed: &mut Seed) -> Vec<Case> {
    let (low, high) = domain(op);
    // Equal lengths, then a scalar and rows that repeat.
    let lengths = [
        (0, 0),
        (1, 1),
        (3, 3),
        (4097, 4097),
        (LARGE, LARGE),
        (1000, 1),
        (77 * 13, 13),
        (3 * 5000, 5000),
    ];
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = lengths
        .map(|(n, m)| (seed.doubles(n, low, high), seed.doubles(m, low, high)))
        .into();
    if !op.name.ends_with("_grad") {
        pairs.push(
            SPECIAL
                .iter()
                .flat_map(|&a| SPECIAL.iter().map(move |&b| (a, b)))
                .unzip(),
        );
    }
    let case = |((a, b), run): ((Vec<f64>, Vec<f64>), usize)| {
        let period = b.len().max(1);
        let expected = a
            .iter()
            .enumerate()
            .map(|(i, &x)| expect(op, x, b[i / run % period]))
            .collect();
        let shape = format!("{} with {} for runs of {run}", a.len(), b.len());
        let (inputs, outputs) = (
            vec![Data::F64(a), Data::F64(b)],
            vec![Output::NearDouble(expected)],
        );
        Case::new(shape, inputs, outputs, move |plan, x, y| {
            plan.binary_by_run(op.name, x[0], x[1], run, y[0])
        })
    };
    let by_run = RUNS.map(|[n, m, run]| {
        (
            (seed.doubles(n, low, high), seed.doubles(m, low, high)),
            run,
        )
    });
    pairs
        .into_iter()
        .map(|pair| (pair, 1))
        .chain(by_run)
        .map(case)
        .collect()
}

/// A reduction's case for rows × cols elements.
type Reduce = fn(Vec<f64>, usize, usize) -> Case;

fn inputs(seed: &mut Seed) -> Vec<(Vec<f64>, usize, usize)> {
    let shapes = [
        (0, 0),
        (0, 7),
        (3, 0),
        (1, 1),
        (1, 3),
        (3, 1),
        (7, 255),
        (3, 4097),
        (1, LARGE),
        (20_000, 3),
        (65, 1023),
    ];
    let mut inputs: Vec<_> = shapes
        .map(|(rows, cols)| (seed.doubles(rows * cols, -50.0, 50.0), rows, cols))
        .into();
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let rows = [
        [1.0, nan, 3.0, 2.0],
        [1.0, inf, 3.0, inf],
        [-inf, -3.0, -inf, -2.0],
        [-inf; 4],
        [2.0; 4],
        [-0.0, 0.0, -0.0, 0.0],
    ];
    inputs.push((rows.concat(), rows.len(), 4));
    for one in [1.0, -1.0] {
        inputs.extend(
            one_in_each_row(0.0, one)
                .into_iter()
                .map(|(x, (rows, cols))| (x.into_iter().map(f64::from).collect(), rows, cols)),
        );
    }
    inputs
}

fn case(
    x: Vec<f64>,
    [rows, cols]: [usize; 2],
    expected: Vec<Expected>,
    record: fn(
        &mut tectum::PlanBuilder,
        tectum::View,
        tectum::View,
        usize,
        usize,
    ) -> tectum::Result<()>,
) -> Case {
    Case::new(
        format!("{rows}×{cols}"),
        vec![Data::F64(x)],
        vec![Output::NearDouble(expected)],
        move |plan, x, y| record(plan, x[0], y[0], rows, cols),
    )
}

/// A sum with the bound from its magnitudes; special values by plain addition.
fn sum_of(values: impl Iterator<Item = f64> + Clone) -> Expected {
    let magnitude: f64 = values.clone().map(f64::abs).sum();
    let value = if magnitude.is_finite() {
        sum_exactly(values.map(wide))
    } else {
        values.sum()
    };
    Expected {
        value,
        bound: CHAIN * ROUNDING * magnitude,
    }
}

fn rows_of(x: &[f64], rows: usize, cols: usize) -> impl Iterator<Item = &[f64]> {
    (0..rows).map(move |row| &x[row * cols..(row + 1) * cols])
}

fn sum(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let expected = rows_of(&x, rows, cols)
        .map(|row| sum_of(row.iter().copied()))
        .collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.sum(x, y, rows, cols)
    })
}

/// Elements near 1, whose products are representable; those that are not finite stay.
fn prod(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let x: Vec<f64> = x
        .into_iter()
        .map(|x| if x.is_finite() { (x * 1e-3).exp() } else { x })
        .collect();
    let product = |row: &[f64]| {
        let value = row.iter().product::<f64>();
        // Both products round once for each element.
        Expected {
            value,
            bound: 2.0 * ROUNDING * cols as f64 * value.abs(),
        }
    };
    let expected = rows_of(&x, rows, cols).map(product).collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.prod(x, y, rows, cols)
    })
}

fn mean(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let mean_of = |row: &[f64]| {
        let sum = sum_of(row.iter().copied());
        let value = sum.value / cols as f64;
        Expected {
            value,
            bound: sum.bound / cols as f64 + ULP * value.abs(),
        }
    };
    let expected = rows_of(&x, rows, cols).map(mean_of).collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.mean(x, y, rows, cols)
    })
}

fn sum_columns(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let expected = (0..cols)
        .map(|col| sum_of((0..rows).map(|row| x[row * cols + col])))
        .collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.sum_columns(x, y, rows, cols)
    })
}

fn picked(x: &[f64], none: f64, pick: fn(f64, f64) -> f64) -> Expected {
    let nan = x.iter().any(|x| x.is_nan());
    Expected::exactly(if nan {
        f64::NAN
    } else {
        x.iter().copied().fold(none, pick)
    })
}

fn max(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let expected = rows_of(&x, rows, cols)
        .map(|row| picked(row, f64::NEG_INFINITY, f64::max))
        .collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.max(x, y, rows, cols)
    })
}

fn min(x: Vec<f64>, rows: usize, cols: usize) -> Case {
    let expected = rows_of(&x, rows, cols)
        .map(|row| picked(row, f64::INFINITY, f64::min))
        .collect();
    case(x, [rows, cols], expected, |plan, x, y, rows, cols| {
        plan.min(x, y, rows, cols)
    })
}

/// Σ a·b with the magnitude that bounds its error.
fn dot(terms: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    let magnitude = terms.clone().map(|(a, b)| (a * b).abs()).sum();
    (
        sum_exactly(terms.map(|(a, b)| DoubleDouble::product(a, b))),
        magnitude,
    )
}

/// A random walk of k roundings, five sigma wide, then bias, activation (slope at most 1.13, 8 ulp)
/// and residual.
fn expected(
    k: usize,
    (sum, magnitude): (f64, f64),
    bias: f64,
    activation: Activation,
    residual: f64,
) -> Expected {
    let before = sum + bias;
    let after = match activation {
        Activation::None
        | Activation::Relu
        | Activation::Elu
        | Activation::HardSigmoid
        | Activation::HardSwish
        | Activation::Relu6 => activation.reference(before),
        Activation::Tanh => value_of("tanh", before),
        Activation::Sigmoid => value_of("sigmoid", before),
        Activation::Gelu => value_of("gelu", before),
        Activation::GeluErf => value_of("gelu_erf", before),
        Activation::Silu => value_of("silu", before),
    };
    let value = after + residual;
    let product_error = ROUNDING * (5.0 * (k as f64).sqrt() + 4.0) * (magnitude + bias.abs());
    Expected {
        value,
        bound: 1.2 * product_error + ROUNDING * (16.0 * after.abs() + 2.0 * value.abs()),
    }
}

fn value_of(name: &str, x: f64) -> f64 {
    exact(name, x).map_or(f64::NAN, |exact| exact.value())
}

/// Epilogue and layout by case number: bias, residual, activation, and which operands are
/// transposed.
type Variant = (bool, bool, Activation, bool, bool);

fn variant(index: usize) -> Variant {
    (
        index & 1 != 0,
        index & 2 != 0,
        Activation::ALL[index % 7],
        index % 3 == 1,
        index % 5 > 2,
    )
}

fn gemm_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [
        (0, 5, 3),
        (5, 0, 3),
        (1, 1, 1),
        (3, 5, 7),
        (64, 64, 64),
        (65, 63, 17),
        (1, 300, 64),
        (300, 1, 5),
        (128, 96, 256),
        (63, 100, 1000),
        (130, 70, 33),
        (2, 2, 300),
        (33, 20, 9),
        (17, 31, 5),
    ];
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| gemm(seed, shape, variant(index)))
        .collect()
}

fn gemm(seed: &mut Seed, (m, n, k): (usize, usize, usize), variant: Variant) -> Case {
    let (has_bias, has_residual, activation, a_transposed, b_transposed) = variant;
    let [a, b, bias, residual] = [m * k, k * n, n, m * n].map(|len| seed.doubles(len, -1.0, 1.0));
    let at = |row, col, rows: usize, cols: usize, transposed| {
        if transposed {
            col * rows + row
        } else {
            row * cols + col
        }
    };
    let mut values = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let product = dot((0..k).map(|i| {
                (
                    a[at(row, i, m, k, a_transposed)],
                    b[at(i, col, k, n, b_transposed)],
                )
            }));
            let [bias, residual] = [
                (has_bias, bias[col]),
                (has_residual, residual[row * n + col]),
            ]
            .map(|(has, x)| if has { x } else { 0.0 });
            values.push(expected(k, product, bias, activation, residual));
        }
    }
    let inputs = [a, b, bias, residual].map(Data::F64).into();
    Case::new(
        format!("{m}×{k}×{n} {variant:?}"),
        inputs,
        vec![Output::NearDouble(values)],
        move |plan, x, y| {
            let matrix = |view, rows, cols, transposed| {
                if transposed {
                    Matrix::new(view, cols, rows).transpose()
                } else {
                    Matrix::new(view, rows, cols)
                }
            };
            let tail = GemmEpilogue {
                bias: has_bias.then_some(x[2]),
                activation,
                residual: has_residual.then_some(x[3]),
            };
            plan.gemm(
                matrix(x[0], m, k, a_transposed),
                matrix(x[1], k, n, b_transposed),
                y[0],
                tail,
            )
        },
    )
}

fn matvec_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [(0, 5), (1, 1), (1, 1000), (1000, 1), (16, 256), (33, 4097)];
    shapes
        .into_iter()
        .enumerate()
        .map(|(index, shape)| matvec(seed, shape, variant(index)))
        .collect()
}

fn matvec(seed: &mut Seed, (m, k): (usize, usize), variant: Variant) -> Case {
    let (has_bias, has_residual, activation, ..) = variant;
    let [a, x, bias, residual] = [m * k, k, m, m].map(|len| seed.doubles(len, -1.0, 1.0));
    let value = |row: usize| {
        let product = dot((0..k).map(|i| (a[row * k + i], x[i])));
        let [bias, residual] = [(has_bias, bias[row]), (has_residual, residual[row])]
            .map(|(has, x)| if has { x } else { 0.0 });
        expected(k, product, bias, activation, residual)
    };
    let values = (0..m).map(value).collect();
    let inputs = [a, x, bias, residual].map(Data::F64).into();
    Case::new(
        format!("{m}×{k} {variant:?}"),
        inputs,
        vec![Output::NearDouble(values)],
        move |plan, x, y| {
            let tail = GemmEpilogue {
                bias: has_bias.then_some(x[2]),
                activation,
                residual: has_residual.then_some(x[3]),
            };
            plan.matvec(x[0], x[1], y[0], tail)
        },
    )
}
