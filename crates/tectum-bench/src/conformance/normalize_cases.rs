//! Cases of min, mean, variance, layer norm and root-mean-square norm.

use super::reduce_cases::one_in_each_row;
use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;
/// The longest chain of roundings that an element passes through in any of our trees.
const CHAIN: f64 = 160.0;
/// As in PyTorch's layer norm.
const EPSILON: f32 = 1e-5;

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("min", |seed: &mut Seed| {
            inputs(seed).into_iter().map(min).collect()
        }),
        Suite::new("mean", |seed: &mut Seed| {
            inputs(seed).into_iter().map(mean).collect()
        }),
        Suite::new("variance", |seed: &mut Seed| {
            inputs(seed)
                .into_iter()
                .flat_map(|(x, shape)| [0, 1].map(|ddof| variance((x.clone(), shape), ddof)))
                .collect()
        }),
        Suite::new("layer_norm", |seed: &mut Seed| norm_cases(seed, layer_norm)),
        Suite::new("rms_norm", |seed: &mut Seed| norm_cases(seed, rms_norm)),
    ]
}

type Shape = (usize, usize);
type Rows = (Vec<f32>, Shape);

/// Rows and columns: zero, one, odd, one long row, many short ones, and two random; a mean far from
/// 0; special values.
fn inputs(seed: &mut Seed) -> Vec<Rows> {
    let mut shapes = vec![
        (0, 0),
        (0, 7),
        (3, 0),
        (1, 1),
        (1, 3),
        (3, 1),
        (7, 255),
        (2, 4096),
        (3, 4097),
        (1, 300_001),
        (70_000, 3),
        (65, 1023),
    ];
    shapes.extend([
        (seed.size(1, 50), seed.size(1, 3000)),
        (seed.size(1, 3), seed.size(5000, 50_000)),
    ]);
    let mut inputs: Vec<Rows> = shapes
        .into_iter()
        .map(|shape| (seed.floats(shape.0 * shape.1, -50.0, 50.0), shape))
        .collect();
    inputs.push((seed.floats(2 * 9000, 1000.0, 1001.0), (2, 9000)));
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    inputs.push((
        [
            [1.0, nan, 3.0, 2.0],
            [1.0, -inf, 3.0, 2.0],
            [2.0; 4],
            [-0.0, 0.0, -0.0, 0.0],
        ]
        .concat(),
        (4, 4),
    ));
    // Elements so small that epsilon dominates.
    inputs.push((seed.floats(5 * 300, -1e-3, 1e-3), (5, 300)));
    inputs.extend(one_in_each_row(0.0, -1.0));
    inputs
}

fn rows_of((x, (rows, cols)): &Rows) -> impl Iterator<Item = &[f32]> {
    (0..*rows).map(move |row| &x[row * cols..(row + 1) * cols])
}

fn min(input: Rows) -> Case {
    let least = |x: &[f32]| {
        if x.iter().any(|x| x.is_nan()) {
            f32::NAN
        } else {
            x.iter().copied().fold(f32::INFINITY, f32::min)
        }
    };
    let expected = rows_of(&input)
        .map(|x| Expected::exactly(f64::from(least(x))))
        .collect();
    let (x, (rows, cols)) = input;
    Case::new(
        format!("{rows}×{cols}"),
        vec![Data::F32(x)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.min(x[0], y[0], rows, cols),
    )
}

/// Mean, mean magnitude, and Σ (x − mean)², in float64.
fn moments(x: &[f32]) -> (f64, f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let magnitude = x.iter().map(|&x| f64::from(x).abs()).sum::<f64>() / n;
    (
        mean,
        magnitude,
        x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum(),
    )
}

fn expected_mean(x: &[f32]) -> Expected {
    let (value, magnitude, _) = moments(x);
    Expected {
        value,
        bound: (CHAIN + 2.0) * ROUNDING * magnitude,
    }
}

fn mean(input: Rows) -> Case {
    let expected = rows_of(&input).map(expected_mean).collect();
    let (x, (rows, cols)) = input;
    Case::new(
        format!("{rows}×{cols}"),
        vec![Data::F32(x)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.mean(x[0], y[0], rows, cols),
    )
}

/// Error bound of a variance: its own roundings, and the effect of an error δ of the mean on each
/// deviation d, which adds 2·|d|·δ + δ² to a square.
fn spread_error(squares: f64, n: f64, magnitude: f64) -> f64 {
    let shift = (CHAIN + 2.0) * ROUNDING * magnitude;
    (CHAIN + 4.0) * ROUNDING * squares
        + 2.0 * (n * squares).sqrt() * (4.0 * ROUNDING * magnitude)
        + n * shift * shift
}

fn variance(input: Rows, ddof: usize) -> Case {
    let means = rows_of(&input).map(expected_mean).collect();
    let (cols, mut variances) = (input.1.1, Vec::new());
    for x in rows_of(&input) {
        let (_, magnitude, squares) = moments(x);
        let divisor = if cols > ddof {
            (cols - ddof) as f64
        } else {
            f64::NAN
        };
        let bound = spread_error(squares, cols as f64, magnitude) / divisor;
        variances.push(Expected {
            value: squares / divisor,
            bound,
        });
    }
    let (x, (rows, _)) = input;
    let outputs = vec![Output::Near(means), Output::Near(variances)];
    Case::new(
        format!("{rows}×{cols} ddof {ddof}"),
        vec![Data::F32(x)],
        outputs,
        move |plan, x, y| plan.variance(x[0], y[0], y[1], rows, cols, ddof),
    )
}

fn norm_cases(seed: &mut Seed, case: fn(Rows, Vec<f32>, Vec<f32>) -> Case) -> Vec<Case> {
    let whole = |input: &Rows| input.1.1 > 0 && input.0.iter().all(|x| x.is_finite());
    let inputs: Vec<Rows> = inputs(seed).into_iter().filter(whole).collect();
    let mut with_vectors = |input: Rows| {
        let [gain, bias] = [0, 1].map(|_| seed.floats(input.1.1, -2.0, 2.0));
        case(input, gain, bias)
    };
    inputs.into_iter().map(&mut with_vectors).collect()
}

fn layer_norm(input: Rows, gain: Vec<f32>, bias: Vec<f32>) -> Case {
    let mut expected = Vec::new();
    for x in rows_of(&input) {
        let (mean, magnitude, squares) = moments(x);
        let n = x.len() as f64;
        let variance = squares / n;
        let inverse = 1.0 / (variance + f64::from(EPSILON)).sqrt();
        // Errors of the deviation (through the mean), of the inverse (half that of the variance),
        // and of the last steps.
        let shift = (CHAIN + 2.0) * ROUNDING * magnitude;
        let relative =
            0.5 * spread_error(squares, n, magnitude) / n * inverse * inverse + 12.0 * ROUNDING;
        for ((&x, &gain), &bias) in x.iter().zip(&gain).zip(&bias) {
            let (gain, bias) = (f64::from(gain), f64::from(bias));
            let scaled = (f64::from(x) - mean) * inverse * gain;
            let bound = shift * inverse * gain.abs()
                + relative * scaled.abs()
                + 2.0 * ROUNDING * (bias.abs() + f64::from(x).abs() * inverse);
            expected.push(Expected {
                value: scaled + bias,
                bound,
            });
        }
    }
    let (x, (rows, cols)) = input;
    let inputs = vec![Data::F32(x), Data::F32(gain), Data::F32(bias)];
    Case::new(
        format!("{rows}×{cols}"),
        inputs,
        vec![Output::Near(expected)],
        |plan, x, y| plan.layer_norm(x[0], [x[1], x[2]], y[0], EPSILON),
    )
}

fn rms_norm(input: Rows, gain: Vec<f32>, _: Vec<f32>) -> Case {
    let mut expected = Vec::new();
    for x in rows_of(&input) {
        let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        let inverse = 1.0 / (squares / x.len() as f64 + f64::from(EPSILON)).sqrt();
        for (&x, &gain) in x.iter().zip(&gain) {
            let value = f64::from(x) * inverse * f64::from(gain);
            expected.push(Expected {
                value,
                bound: (0.5 * CHAIN + 12.0) * ROUNDING * value.abs(),
            });
        }
    }
    let (x, (rows, cols)) = input;
    Case::new(
        format!("{rows}×{cols}"),
        vec![Data::F32(x), Data::F32(gain)],
        vec![Output::Near(expected)],
        |plan, x, y| plan.rms_norm(x[0], x[1], y[0], EPSILON),
    )
}
