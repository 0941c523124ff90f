//! Cases of sums, products, max, argmax, running sums and softmax.

use tectum::DType;

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;
/// The longest chain of additions that an element passes through in any of our trees.
const CHAIN: f64 = 160.0;

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("sum", |seed: &mut Seed| {
            let random = shapes(seed)
                .into_iter()
                .map(|shape| (seed.floats(shape.0 * shape.1, -10.0, 10.0), shape))
                .collect::<Vec<_>>();
            random
                .into_iter()
                .chain(one_in_each_row(0.0, 1.0))
                .map(sum)
                .collect()
        }),
        Suite::new("sum_columns", |seed: &mut Seed| {
            let random = shapes(seed)
                .into_iter()
                .map(|shape| (seed.floats(shape.0 * shape.1, -10.0, 10.0), shape))
                .collect::<Vec<_>>();
            random
                .into_iter()
                .chain(one_in_each_row(0.0, 1.0).into_iter().map(transposed))
                .map(sum_columns)
                .collect()
        }),
        Suite::new("max", |seed: &mut Seed| {
            with_specials(seed).into_iter().map(max).collect()
        }),
        Suite::new("prod", |seed: &mut Seed| {
            products(seed).into_iter().map(prod).collect()
        }),
        Suite::new("integer_reductions", integer_cases),
        Suite::new("cumsum", |seed: &mut Seed| cumsum_cases(seed, false)),
        Suite::new("cumsum_i32", |seed: &mut Seed| cumsum_cases(seed, true)),
        Suite::new("argmax", |seed: &mut Seed| {
            with_specials(seed)
                .into_iter()
                .filter(|(_, (_, cols))| *cols > 0)
                .map(argmax)
                .collect()
        }),
        Suite::new("softmax", |seed: &mut Seed| {
            let inputs = with_specials(seed)
                .into_iter()
                .chain(one_in_each_row(-50.0, 50.0));
            inputs
                .flat_map(|input| {
                    [1.0, -0.125, 3.0, -3.0].map(|scale| softmax(input.clone(), scale))
                })
                .collect()
        }),
    ]
}

type Shape = (usize, usize);

/// Rows and columns: zero, one, odd, one long row, many short ones, and two random.
fn shapes(seed: &mut Seed) -> Vec<Shape> {
    vec![
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
        (seed.size(1, 50), seed.size(1, 3000)),
        (seed.size(1, 3), seed.size(5000, 50_000)),
    ]
}

fn with_specials(seed: &mut Seed) -> Vec<(Vec<f32>, Shape)> {
    let mut inputs: Vec<(Vec<f32>, Shape)> = shapes(seed)
        .into_iter()
        .map(|shape| (seed.floats(shape.0 * shape.1, -50.0, 50.0), shape))
        .collect();
    // Rows with a NaN, an infinity of either sign, both, −∞ alone, equal elements, and both zeros.
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        [1.0, nan, 3.0, 2.0],
        [1.0, inf, 3.0, inf],
        [-inf, -3.0, -inf, -2.0],
        [inf, nan, -inf, nan],
        [-inf; 4],
        [2.0; 4],
        [-0.0, 0.0, -0.0, 0.0],
        [-1.0, -2.0, -1.0, -2.0],
    ];
    inputs.push((rows.concat(), (rows.len(), 4)));
    // The greatest in the last segment of a long row, twice.
    let mut long = seed.floats(20_000, -1.0, 1.0);
    (long[18_000], long[19_999]) = (7.0, 7.0);
    inputs.push((long, (1, 20_000)));
    inputs.extend(one_in_each_row(-1.0, 1.0));
    inputs
}

/// Rows of one number except for another at one place: the first, the last, and both sides of the
/// borders at which twins and kernels split a row. A result that misses that element is beyond any
/// bound.
pub(super) fn one_in_each_row(others: f32, one: f32) -> Vec<(Vec<f32>, Shape)> {
    let of_length = |cols: usize| {
        let borders = [16, 32, 64, 256, 1024, 4096, 8192, 12_288, 16_384];
        let mut places: Vec<usize> = borders
            .into_iter()
            .flat_map(|border| [border - 1, border])
            .chain([0, cols - 1])
            .filter(|place| *place < cols)
            .collect();
        places.sort_unstable();
        places.dedup();
        let mut rows = vec![others; places.len() * cols];
        places
            .iter()
            .enumerate()
            .for_each(|(row, place)| rows[row * cols + place] = one);
        (rows, (places.len(), cols))
    };
    [
        63, 64, 65, 255, 257, 1025, 4095, 4096, 4097, 8193, 16_385, 20_000,
    ]
    .map(of_length)
    .to_vec()
}

fn transposed((x, (rows, cols)): (Vec<f32>, Shape)) -> (Vec<f32>, Shape) {
    (
        (0..cols * rows)
            .map(|index| x[index % rows * cols + index / rows])
            .collect(),
        (cols, rows),
    )
}

fn row(x: &[f32], (_, cols): Shape, index: usize) -> &[f32] {
    &x[index * cols..(index + 1) * cols]
}

fn sum_of(values: impl Iterator<Item = f32> + Clone) -> Expected {
    let magnitude: f64 = values.clone().map(|x| f64::from(x).abs()).sum();
    Expected {
        value: values.map(f64::from).sum(),
        bound: CHAIN * ROUNDING * magnitude,
    }
}

fn case(
    name: &str,
    x: Vec<f32>,
    (rows, cols): Shape,
    output: Output,
    record: fn(
        &mut tectum::PlanBuilder,
        tectum::View,
        tectum::View,
        usize,
        usize,
    ) -> tectum::Result<()>,
) -> Case {
    Case::new(
        format!("{name} {rows}×{cols}"),
        vec![Data::F32(x)],
        vec![output],
        move |plan, x, y| record(plan, x[0], y[0], rows, cols),
    )
}

fn sum((x, shape): (Vec<f32>, Shape)) -> Case {
    let expected = (0..shape.0)
        .map(|index| sum_of(row(&x, shape, index).iter().copied()))
        .collect();
    case(
        "sum",
        x,
        shape,
        Output::Near(expected),
        |plan, x, y, rows, cols| plan.sum(x, y, rows, cols),
    )
}

fn sum_columns((x, shape): (Vec<f32>, Shape)) -> Case {
    let column = |col: usize| (0..shape.0).map(move |row| row * shape.1 + col);
    let expected = (0..shape.1)
        .map(|col| sum_of(column(col).map(|index| x[index])))
        .collect();
    case(
        "sum_columns",
        x,
        shape,
        Output::Near(expected),
        |plan, x, y, rows, cols| plan.sum_columns(x, y, rows, cols),
    )
}

fn greatest(x: &[f32]) -> f64 {
    let nan = x.iter().any(|x| x.is_nan());
    let greatest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if nan { f64::NAN } else { f64::from(greatest) }
}

fn max((x, shape): (Vec<f32>, Shape)) -> Case {
    let expected = (0..shape.0)
        .map(|index| Expected::exactly(greatest(row(&x, shape, index))))
        .collect();
    case(
        "max",
        x,
        shape,
        Output::Near(expected),
        |plan, x, y, rows, cols| plan.max(x, y, rows, cols),
    )
}

/// Elements near 1, whose products are representable, and rows with special values.
fn products(seed: &mut Seed) -> Vec<(Vec<f32>, Shape)> {
    let mut inputs: Vec<(Vec<f32>, Shape)> = Vec::new();
    for shape in shapes(seed) {
        // The logarithm of the product walks at random: some 30 at most for any length.
        let spread = (1.0 + 4.0 / (shape.1 as f32).sqrt().max(1.0)).ln();
        inputs.push((
            seed.floats(shape.0 * shape.1, -spread, spread)
                .into_iter()
                .map(f32::exp)
                .collect(),
            shape,
        ));
    }
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows = [
        [1.0, nan, 3.0],
        [2.0, inf, -3.0],
        [0.0, 5.0, -1.0],
        [inf, 0.0, 1.0],
        [-2.0, -3.0, -4.0],
        [1e30, 1e30, 1.0],
    ];
    inputs.push((rows.concat(), (rows.len(), 3)));
    inputs.extend(one_in_each_row(1.0, 3.0));
    inputs
}

fn product_of(x: &[f32]) -> Expected {
    let value: f64 = x.iter().copied().map(f64::from).product();
    Expected {
        value,
        bound: x.len() as f64 * ROUNDING * value.abs(),
    }
}

fn prod((x, shape): (Vec<f32>, Shape)) -> Case {
    let expected = (0..shape.0)
        .map(|index| product_of(row(&x, shape, index)))
        .collect();
    case(
        "prod",
        x,
        shape,
        Output::Near(expected),
        |plan, x, y, rows, cols| plan.prod(x, y, rows, cols),
    )
}

/// A reduction of i32: its name, its neutral element and one step, and what records it.
type IntegerReduction = (
    &'static str,
    i64,
    fn(i64, i64) -> i64,
    fn(&mut tectum::PlanBuilder, tectum::View, tectum::View, usize, usize) -> tectum::Result<()>,
);

const INTEGER_REDUCTIONS: [IntegerReduction; 4] = [
    (
        "sum",
        0,
        |a, b| a + b,
        |plan, x, y, rows, cols| plan.sum(x, y, rows, cols),
    ),
    (
        "prod",
        1,
        |a, b| i64::from(a.wrapping_mul(b) as i32),
        |plan, x, y, rows, cols| plan.prod(x, y, rows, cols),
    ),
    (
        "max",
        i32::MIN as i64,
        i64::max,
        |plan, x, y, rows, cols| plan.max(x, y, rows, cols),
    ),
    (
        "min",
        i32::MAX as i64,
        i64::min,
        |plan, x, y, rows, cols| plan.min(x, y, rows, cols),
    ),
];

fn integer_cases(seed: &mut Seed) -> Vec<Case> {
    let mut inputs: Vec<(Vec<u32>, Shape)> = Vec::new();
    for shape in shapes(seed) {
        // Products of odd numbers do not become 0.
        inputs.push((
            (0..shape.0 * shape.1).map(|_| seed.word() | 1).collect(),
            shape,
        ));
    }
    inputs.push((vec![0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 5], (2, 3)));
    for (x, shape) in one_in_each_row(1.0, 3.0)
        .into_iter()
        .chain(one_in_each_row(1.0, -3.0))
    {
        inputs.push((x.into_iter().map(|x| x as i32 as u32).collect(), shape));
    }
    let mut cases = Vec::new();
    for (name, neutral, step, record) in INTEGER_REDUCTIONS {
        for (x, shape) in &inputs {
            let reduce = |row: &[u32]| {
                row.iter()
                    .fold(neutral, |all, x| step(all, i64::from(*x as i32))) as u32
            };
            let expected = (0..shape.0)
                .map(|index| reduce(&x[index * shape.1..][..shape.1]))
                .collect();
            let (rows, cols) = *shape;
            let outputs = vec![Output::Exact(Data::U32(expected))];
            cases.push(Case::new(
                format!("{name} {rows}×{cols}"),
                vec![Data::U32(x.clone())],
                outputs,
                move |plan, x, y| {
                    record(
                        plan,
                        x[0].reinterpret(DType::I32),
                        y[0].reinterpret(DType::I32),
                        rows,
                        cols,
                    )
                },
            ));
        }
    }
    cases
}

fn cumsum_cases(seed: &mut Seed, on_integers: bool) -> Vec<Case> {
    let mut shapes = shapes(seed);
    // Two segments in a case that is small enough for an interpreter, and three levels.
    shapes.extend([(2, 1023), (3, 1024), (1, 1500), (2, 2049), (1, 1_100_000)]);
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    let mut cases = Vec::new();
    for (shape, way) in shapes
        .into_iter()
        .flat_map(|shape| ways.map(|way| (shape, way)))
    {
        let n = shape.0 * shape.1;
        cases.push(if on_integers {
            integer_cumsum((0..n).map(|_| seed.word()).collect(), shape, way)
        } else {
            cumsum(seed.floats(n, -1.0, 1.0), shape, way)
        });
    }
    cases
}

/// The running results of each row in the order of its elements.
fn running<T: Copy, Y>(
    (x, (rows, cols)): (&[T], Shape),
    reverse: bool,
    mut row: impl FnMut(&[T]) -> Vec<Y>,
) -> Vec<Y> {
    let mut all = Vec::with_capacity(x.len());
    for index in 0..rows {
        let mut elements = x[index * cols..][..cols].to_vec();
        if reverse {
            elements.reverse();
        }
        let mut results = row(&elements);
        if reverse {
            results.reverse();
        }
        all.extend(results);
    }
    all
}

fn cumsum(x: Vec<f32>, shape: Shape, (exclusive, reverse): (bool, bool)) -> Case {
    // An element passes through the additions of its segment, of the segments' sums, and of theirs.
    let chain = 3.0f64 * 1024.0;
    let expected = running((&x, shape), reverse, |row| {
        let (mut sum, mut size) = (0.0f64, 0.0f64);
        let mut next = |x: &f32| {
            let before = sum;
            (sum, size) = (sum + f64::from(*x), size + f64::from(*x).abs());
            let terms = chain.min(shape.1 as f64 + 1.0);
            Expected {
                value: if exclusive { before } else { sum },
                bound: terms * ROUNDING * size,
            }
        };
        row.iter().map(&mut next).collect()
    });
    let (rows, cols) = shape;
    let name = format!("{rows}×{cols} exclusive {exclusive} reverse {reverse}");
    Case::new(
        name,
        vec![Data::F32(x)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.cumsum(x[0], y[0], rows, cols, exclusive, reverse),
    )
}

fn integer_cumsum(x: Vec<u32>, shape: Shape, (exclusive, reverse): (bool, bool)) -> Case {
    let expected = running((&x, shape), reverse, |row| {
        let mut sum = 0i64;
        let mut next = |x: &u32| {
            let before = sum;
            sum += i64::from(*x as i32);
            (if exclusive { before } else { sum }) as u32
        };
        row.iter().map(&mut next).collect()
    });
    let (rows, cols) = shape;
    let name = format!("{rows}×{cols} exclusive {exclusive} reverse {reverse}");
    Case::new(
        name,
        vec![Data::U32(x)],
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| {
            plan.cumsum(
                x[0].reinterpret(DType::I32),
                y[0].reinterpret(DType::I32),
                rows,
                cols,
                exclusive,
                reverse,
            )
        },
    )
}

fn argmax((x, shape): (Vec<f32>, Shape)) -> Case {
    let first = |x: &[f32]| {
        let nan = x.iter().position(|x| x.is_nan());
        let greatest = greatest(x) as f32;
        nan.or_else(|| x.iter().position(|&x| x == greatest))
            .unwrap_or(0) as u32
    };
    let expected = (0..shape.0)
        .map(|index| first(row(&x, shape, index)))
        .collect();
    case(
        "argmax",
        x,
        shape,
        Output::Exact(Data::U32(expected)),
        |plan, x, y, rows, cols| plan.argmax(x, y, rows, cols),
    )
}

fn softmax((x, shape): (Vec<f32>, Shape), scale: f32) -> Case {
    let expected = (0..shape.0)
        .flat_map(|index| softmax_row(row(&x, shape, index), f64::from(scale)))
        .collect();
    let (rows, cols) = shape;
    Case::new(
        format!("softmax {rows}×{cols} scale {scale}"),
        vec![Data::F32(x)],
        vec![Output::Near(expected)],
        move |plan, x, y| plan.softmax(x[0], y[0], rows, cols, scale),
    )
}

fn softmax_row(x: &[f32], scale: f64) -> Vec<Expected> {
    let scaled: Vec<f64> = x.iter().map(|&x| scale * f64::from(x)).collect();
    let greatest = if scaled.iter().any(|x| x.is_nan()) {
        f64::NAN
    } else {
        scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    };
    let total: f64 = scaled.iter().map(|x| (x - greatest).exp()).sum();
    // The rounding of the scaled element and of the difference moves the exponent by this much.
    let finite = scaled
        .iter()
        .copied()
        .filter(|x| x.is_finite())
        .map(f64::abs)
        .fold(0.0, f64::max);
    let relative = ROUNDING * (4.0 * finite + CHAIN);
    scaled
        .iter()
        .map(|x| (x - greatest).exp() / total)
        .map(|value| Expected {
            value,
            bound: value * relative,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with one element that counts, and what is expected of each with and without it.
    fn expected(
        others: f32,
        one: f32,
        of: impl Fn(&[f32]) -> Expected,
    ) -> Vec<(Expected, Expected)> {
        let pair = |x: &[f32]| {
            let without: Vec<f32> = x.iter().copied().filter(|x| *x != one).collect();
            (of(x), of(&without))
        };
        one_in_each_row(others, one)
            .iter()
            .flat_map(|(x, (_, cols))| x.chunks(*cols).map(pair).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn a_result_that_lost_an_element_is_beyond_its_bound() {
        let sums = expected(0.0, 1.0, |x| sum_of(x.iter().copied()));
        let greatests = expected(-1.0, 1.0, |x| Expected::exactly(greatest(x)));
        let softmaxes = expected(-50.0, 50.0, |x| softmax_row(x, 1.0)[0]);
        assert!(sums.len() > 100);
        for (with, without) in sums.into_iter().chain(greatests).chain(softmaxes) {
            assert!(
                (with.value - without.value).abs() > 2.0 * with.bound,
                "{with:?} {without:?}"
            );
        }
    }
}
