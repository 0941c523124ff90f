//! Operations on numbers element by element or row by row: the op table, reductions,
//! normalisations, top-k, random numbers, AdamW.

use std::rc::Rc;

use tectum::DType;
use tectum::kernel::random;
use tectum::operation::elementwise::integer::{INTEGER_OPS, IntegerOp};
use tectum::operation::elementwise::{Arity, OPS, Op};

use super::memory::{Seen, Space, Word};
use super::operation::{
    Bound, Operation, all, changes, overlaps, product, reads, sum, unless, writes,
};
use super::world::World;

/// Elements of one segment of a reduction.
const SEGMENT: usize = 4096;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    match world.random.below(14) {
        0..3 => unary(world, plan),
        3..6 => binary(world, plan),
        6..8 => reduction(world, plan),
        8 => variance(world, plan),
        9 => argmax(world, plan),
        10 => softmax(world, plan),
        11 => norm(world, plan),
        12 => {
            if world.random.one_in(2) {
                top_k(world, plan)
            } else {
                adamw(world, plan)
            }
        }
        _ => noise(world, plan),
    }
}

/// Relative error of one operation: the rounding of f32 or f64.
fn epsilon(dtype: DType) -> f64 {
    if dtype == DType::F64 {
        f64::EPSILON * 4.0
    } else {
        f64::from(f32::EPSILON)
    }
}

/// The type that the kernels of a family use for a view: f64 for f64, else f32.
fn real(seen: Seen) -> DType {
    if seen.dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    }
}

/// A name for an operation of the tables, mostly one of that of the type, or a wrong one.
fn pick_name(world: &mut World, arity: Arity, dtype: DType) -> &'static str {
    if world.chance(30) {
        return world.random.pick(&[
            "",
            "nothing",
            "ADD",
            if arity == Arity::Unary { "add" } else { "tanh" },
        ]);
    }
    let names: Vec<&'static str> = if is_integer(dtype) {
        INTEGER_OPS
            .iter()
            .filter(|op| op.arity == arity)
            .map(|op| op.name)
            .collect()
    } else {
        OPS.iter()
            .filter(|op| op.arity == arity)
            .map(|op| op.name)
            .collect()
    };
    names[world.below(names.len())]
}

fn is_integer(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

/// An operation on the type of its first operand.
#[derive(Clone, Copy)]
enum Named {
    Float(&'static Op),
    Integer(&'static IntegerOp),
}

impl Named {
    fn find(name: &str, arity: Arity, dtype: DType) -> Option<Self> {
        if is_integer(dtype) {
            return INTEGER_OPS
                .iter()
                .find(|op| op.name == name && op.arity == arity)
                .map(Named::Integer);
        }
        OPS.iter()
            .find(|op| op.name == name && op.arity == arity)
            .map(Named::Float)
    }

    /// Stores the results for each element of `a`, with `b` repeated.
    fn step(self, space: &Space, needs: DType, [a, b, y]: [Seen; 3]) {
        match self {
            Named::Float(op) => {
                let (left, right) = (space.numbers(&a), space.numbers(&b));
                let result =
                    |place: usize| element(op, needs, left[place]?, right[place % right.len()]?);
                space.put_numbers(&y, (0..left.len()).map(result).collect::<Vec<_>>());
            }
            Named::Integer(op) => {
                let (left, right) = (space.integers(&a), space.integers(&b));
                let number = |bits: u32| {
                    if needs == DType::I32 {
                        i64::from(bits as i32)
                    } else {
                        i64::from(bits)
                    }
                };
                let result = |place: usize| {
                    Some(
                        (op.reference)(number(left[place]?), number(right[place % right.len()]?))
                            as u32,
                    )
                };
                space.put(
                    &y,
                    &(0..left.len())
                        .map(|place| result(place).map_or(Word::Unknown, Word::Exact))
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
}

/// The result of an operation of the table with its bound.
pub fn element(op: &Op, dtype: DType, a: f64, b: f64) -> Option<(f64, f64)> {
    let value = (op.reference)(a, b);
    // The sign of a zero decides an infinity, and the model does not know it.
    if !value.is_finite() && (a == 0.0 || b == 0.0) {
        return None;
    }
    // Far outside the tested range the references themselves lose digits.
    if [a, b].iter().any(|x| x.is_finite() && x.abs() > 100.0)
        && !matches!(
            op.name,
            "add" | "sub" | "mul" | "min" | "max" | "abs" | "neg" | "relu"
        )
    {
        return None;
    }
    let is_exact = matches!(op.name, "add" | "sub" | "mul" | "square")
        && dtype == DType::F32
        && f64::from(value as f32) == value;
    let slack = if dtype == DType::F64 { 8.0 } else { 2.0 };
    let magnitude = match op.name {
        "tanh_grad" | "sigmoid_grad" => value.abs().max((b * (1.0 + a * a)).abs()),
        "floor" | "ceil" | "round" | "min" | "max" | "abs" | "neg" | "relu" | "relu_grad" => 0.0,
        "sin" | "cos" | "log" | "log2" => value.abs().max(1.0),
        // The references cancel if the result is small compared with the argument.
        "gelu" | "gelu_erf" | "silu" | "erf" => value.abs().max(a.abs()),
        _ => value.abs(),
    };
    Some((
        value,
        if is_exact {
            0.0
        } else {
            slack * op.ulp.max(1.0) * epsilon(dtype) * magnitude
        },
    ))
}

fn unary(world: &mut World, plan: usize) -> Operation {
    let (dtype, len) = (
        if world.chance(4) {
            world.dtype()
        } else {
            world.float()
        },
        world.size(),
    );
    let name = pick_name(world, Arity::Unary, dtype);
    let (x, y) = (
        world.source(plan, dtype, len),
        world.target(plan, dtype, len),
    );
    let op = Named::find(name, Arity::Unary, x.dtype);
    Operation {
        text: format!("unary {name} {x} {y}"),
        refused: unless(op.is_some() && x.len == y.len),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(x, x.dtype), writes(y, x.dtype)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.unary(name, x.view, y.view)),
        step: Rc::new(move |space| {
            if let Some(op) = op {
                op.step(space, x.dtype, [x, x, y]);
            }
        }),
    }
}

fn binary(world: &mut World, plan: usize) -> Operation {
    let (dtype, len) = (
        if world.chance(4) {
            world.dtype()
        } else {
            world.float()
        },
        world.size(),
    );
    let name = pick_name(world, Arity::Binary, dtype);
    let divisors: Vec<usize> = (1..=len).filter(|divisor| len % divisor == 0).collect();
    let repeated = if divisors.is_empty() || world.chance(2) {
        len
    } else {
        divisors[world.below(divisors.len())]
    };
    let (a, b, y) = (
        world.source(plan, dtype, len),
        world.source(plan, dtype, repeated),
        world.target(plan, dtype, len),
    );
    let (op, needs) = (Named::find(name, Arity::Binary, a.dtype), a.dtype);
    let fits = a.len == y.len && (y.len == 0 || (b.len > 0 && a.len.is_multiple_of(b.len)));
    Operation {
        text: format!("binary {name} {a} {b} {y}"),
        refused: unless(op.is_some() && fits),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(a, needs), reads(b, needs), writes(y, needs)]]
        },
        given: vec![a, b, y],
        record: Box::new(move |plan| plan.binary(name, a.view, b.view, y.view)),
        step: Rc::new(move |space| {
            if let Some(op) = op {
                op.step(space, needs, [a, b, y]);
            }
        }),
    }
}

/// Sizes of rows and columns, occasionally of several segments, and how they are changed for the
/// call.
fn rows_and_cols(world: &mut World) -> ([usize; 2], [usize; 2]) {
    let rows = world.below(7);
    let cols = if world.chance(25) {
        SEGMENT - 3 + world.below(5000)
    } else {
        world.below(40)
    };
    let mut given = [rows, cols];
    world.distort(&mut given);
    ([rows, cols], given)
}

/// The launches of a reduction: beyond one segment separate launches read the operand and write the
/// result.
fn reduced(x: Seen, y: Seen, needs: [DType; 2], is_split: bool) -> Vec<Vec<Bound>> {
    match is_split {
        true => vec![vec![reads(x, needs[0])], vec![writes(y, needs[1])]],
        false => vec![vec![reads(x, needs[0]), writes(y, needs[1])]],
    }
}

fn reduction(world: &mut World, plan: usize) -> Operation {
    let how = world
        .random
        .pick(&["sum", "max", "min", "mean", "sum_columns"]);
    let dtype = if world.chance(6) {
        DType::I32
    } else {
        world.float()
    };
    let ([rows, cols], given) = rows_and_cols(world);
    let is_columns = how == "sum_columns";
    let (x, y) = (
        world.source(plan, dtype, rows * cols),
        world.target(plan, dtype, if is_columns { cols } else { rows }),
    );
    let [rows, cols] = given;
    let (kept, taken) = if is_columns {
        (cols, rows)
    } else {
        (rows, cols)
    };
    // The sum, max and min of integers exist, too.
    let on_integers = |seen: Seen| seen.dtype == DType::I32 && matches!(how, "sum" | "max" | "min");
    let needs = if on_integers(x) { DType::I32 } else { real(x) };
    let empty = match how {
        "max" => f64::NEG_INFINITY,
        "min" => f64::INFINITY,
        "mean" => f64::NAN,
        _ => 0.0,
    };
    let launches = match (kept, taken) {
        (0, _) => vec![],
        // Numbers as bits, or as an f64 constant.
        (_, 0) => vec![vec![writes(y.as_words(), DType::U32)]],
        _ => reduced(
            x,
            y,
            [needs; 2],
            taken > if is_columns { 256 } else { SEGMENT },
        ),
    };
    Operation {
        text: format!("{how} {x} {y} [{rows}, {cols}]"),
        refused: unless(
            x.len as u128 == product(&[kept, taken])
                && y.len == kept
                && (taken > 0 || matches!(y.dtype, DType::F32 | DType::F64) || on_integers(y)),
        ),
        launches,
        given: vec![x, y],
        record: Box::new(move |plan| match how {
            "sum" => plan.sum(x.view, y.view, rows, cols),
            "max" => plan.max(x.view, y.view, rows, cols),
            "min" => plan.min(x.view, y.view, rows, cols),
            "mean" => plan.mean(x.view, y.view, rows, cols),
            _ => plan.sum_columns(x.view, y.view, rows, cols),
        }),
        step: Rc::new(move |space| {
            if taken == 0 && y.dtype == DType::I32 {
                let neutral = if empty == 0.0 {
                    0
                } else if empty > 0.0 {
                    i32::MAX
                } else {
                    i32::MIN
                };
                return space.put(&y, &vec![Word::Exact(neutral as u32); y.len]);
            }
            if needs == DType::I32 {
                let words = space.integers(&x);
                let result = |row: usize| {
                    words[row * cols..][..cols].iter().try_fold(
                        empty.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32,
                        |folded, word| {
                            let word = (*word)? as i32;
                            Some(match how {
                                "max" => folded.max(word),
                                "min" => folded.min(word),
                                _ => folded.wrapping_add(word),
                            })
                        },
                    )
                };
                let results = (0..kept)
                    .map(|row| result(row).map_or(Word::Unknown, |sum| Word::Exact(sum as u32)));
                return space.put(&y, &results.collect::<Vec<_>>());
            }
            if taken == 0 && y.dtype != DType::F64 {
                return space.put(
                    &y,
                    &vec![
                        if empty.is_nan() {
                            Word::Near(empty, 0.0)
                        } else {
                            Word::Exact((empty as f32).to_bits())
                        };
                        y.len
                    ],
                );
            }
            let numbers = space.numbers(&x);
            let result = |row: usize| {
                let terms: Option<Vec<f64>> = all(&(0..taken)
                    .map(|i| {
                        numbers[if is_columns {
                            i * cols + row
                        } else {
                            row * cols + i
                        }]
                    })
                    .collect::<Vec<_>>());
                let terms = terms?;
                let (total, bound) = sum(&terms);
                Some(match how {
                    _ if taken == 0 => (empty, 0.0),
                    "max" => (terms.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0),
                    "min" => (terms.iter().copied().fold(f64::INFINITY, f64::min), 0.0),
                    "mean" => (
                        total / taken as f64,
                        bound / taken as f64 + 4.0 * epsilon(needs) * (total / taken as f64).abs(),
                    ),
                    _ => (total, bound),
                })
            };
            space.put_numbers(&y, (0..kept).map(result).collect::<Vec<_>>());
        }),
    }
}

fn variance(world: &mut World, plan: usize) -> Operation {
    let ([rows, cols], given) = rows_and_cols(world);
    let (x, mean, spread) = (
        world.source(plan, DType::F32, rows * cols),
        world.target(plan, DType::F32, rows),
        world.target(plan, DType::F32, rows),
    );
    let [rows, cols] = given;
    let ddof = if world.chance(20) {
        world.extreme()
    } else {
        world.below(3)
    };
    let results = [writes(mean, DType::F32), writes(spread, DType::F32)];
    let launches = match (rows, cols) {
        (_, 0) => [mean, spread]
            .into_iter()
            .filter(|seen| seen.len > 0)
            .map(|seen| vec![writes(seen.as_words(), DType::U32)])
            .collect(),
        (0, _) => vec![],
        (_, SEGMENT..) if cols > SEGMENT => vec![vec![reads(x, DType::F32)], results.to_vec()],
        _ => vec![[reads(x, DType::F32)].into_iter().chain(results).collect()],
    };
    Operation {
        text: format!("variance {x} {mean} {spread} [{rows}, {cols}] ddof {ddof}"),
        refused: unless(
            x.len as u128 == product(&[rows, cols])
                && [mean, spread].iter().all(|seen| seen.len == rows)
                && [x, mean, spread]
                    .iter()
                    .all(|seen| seen.dtype == DType::F32)
                && (cols > 0 || !overlaps(mean, spread)),
        ),
        launches,
        given: vec![x, mean, spread],
        record: Box::new(move |plan| {
            plan.variance(x.view, mean.view, spread.view, rows, cols, ddof)
        }),
        step: Rc::new(move |space| {
            if cols == 0 {
                return [mean, spread].iter().for_each(|seen| {
                    space.put(seen, &vec![Word::Near(f64::NAN, 0.0); seen.words().len()])
                });
            }
            let numbers = space.numbers(&x);
            let moments = |row: usize| {
                let terms = all(&numbers[row * cols..][..cols])?;
                let magnitude = terms.iter().map(|term| term.abs()).fold(0.0, f64::max);
                let middle = terms.iter().sum::<f64>() / cols as f64;
                let squares: f64 = terms
                    .iter()
                    .map(|term| (term - middle) * (term - middle))
                    .sum();
                let share = if cols > ddof {
                    squares / (cols - ddof) as f64
                } else {
                    f64::NAN
                };
                let slack = 64.0 * epsilon(DType::F32);
                // The rounding of the mean itself.
                let shift = magnitude * slack;
                let spread_bound = slack * share.abs()
                    + (shift * shift + 2.0 * shift * magnitude * epsilon(DType::F32)) * cols as f64;
                Some(((middle, shift), (share, spread_bound)))
            };
            let found: Vec<_> = (0..rows).map(moments).collect();
            space.put_numbers(
                &mean,
                found
                    .iter()
                    .map(|pair| pair.map(|pair| pair.0))
                    .collect::<Vec<_>>(),
            );
            space.put_numbers(
                &spread,
                found
                    .iter()
                    .map(|pair| pair.map(|pair| pair.1))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

/// The index of the first maximum element.
fn greatest(terms: &[f64]) -> usize {
    (0..terms.len()).fold(0, |best, place| {
        if terms[place] > terms[best] {
            place
        } else {
            best
        }
    })
}

fn argmax(world: &mut World, plan: usize) -> Operation {
    let ([rows, cols], given) = rows_and_cols(world);
    let (x, y) = (
        world.source(plan, DType::F32, rows * cols),
        world.target(plan, DType::U32, rows),
    );
    let [rows, cols] = given;
    Operation {
        text: format!("argmax {x} {y} [{rows}, {cols}]"),
        refused: unless(
            x.len as u128 == product(&[rows, cols]) && y.len == rows && (rows == 0 || cols > 0),
        ),
        launches: if rows == 0 {
            vec![]
        } else {
            reduced(x, y, [DType::F32, DType::U32], false)
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.argmax(x.view, y.view, rows, cols)),
        step: Rc::new(move |space| {
            let numbers = space.numbers(&x);
            let place = |row: usize| {
                all(&numbers[row * cols..][..cols])
                    .map_or(Word::Unknown, |terms| Word::Exact(greatest(&terms) as u32))
            };
            space.put(&y, &(0..rows).map(place).collect::<Vec<_>>());
        }),
    }
}

fn softmax(world: &mut World, plan: usize) -> Operation {
    let ([rows, cols], given) = rows_and_cols(world);
    let (x, y) = (
        world.source(plan, DType::F32, rows * cols),
        world.target(plan, DType::F32, rows * cols),
    );
    let [rows, cols] = given;
    let scale = world.random.pick(&[1.0f32, 0.5, -0.25, 0.0, 2.0]);
    let total = product(&[rows, cols]);
    Operation {
        text: format!("softmax {x} {y} [{rows}, {cols}] {scale}"),
        refused: unless(x.len as u128 == total && y.len as u128 == total),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(x, DType::F32), writes(y, DType::F32)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.softmax(x.view, y.view, rows, cols, scale)),
        step: Rc::new(move |space| {
            let numbers = space.numbers(&x);
            let row = |row: usize| {
                let Some(terms) = all(&numbers[row * cols..][..cols])
                    .filter(|terms| terms.iter().all(|term| term.abs() <= 200.0))
                else {
                    return vec![None; cols];
                };
                let scaled: Vec<f64> = terms.iter().map(|term| term * f64::from(scale)).collect();
                let most = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = scaled.iter().map(|term| (term - most).exp()).sum();
                let slack = |term: f64| {
                    (64.0 + (term - most).abs()) * epsilon(DType::F32)
                        + cols as f64 * epsilon(DType::F32)
                };
                scaled
                    .iter()
                    .map(|&term| {
                        Some((
                            (term - most).exp() / total,
                            (term - most).exp() / total * slack(term) + 1e-30,
                        ))
                    })
                    .collect()
            };
            space.put_numbers(&y, (0..rows).flat_map(row).collect::<Vec<_>>());
        }),
    }
}

fn norm(world: &mut World, plan: usize) -> Operation {
    let is_layer = world.chance(2);
    let [rows, cols] = [world.below(7), 1 + world.below(30)];
    let [x, gain, bias] = [rows * cols, cols, cols].map(|len| world.source(plan, DType::F32, len));
    let y = world.target(plan, DType::F32, rows * cols);
    let epsilon_given = world.random.pick(&[
        1e-5f32,
        1e-5,
        1e-5,
        1e-5,
        0.5,
        0.5,
        0.5,
        0.0,
        -1.0,
        f32::NAN,
    ]);
    let cols = gain.len;
    let fits = epsilon_given > 0.0
        && x.len == y.len
        && (cols > 0 && x.len.is_multiple_of(cols) || x.len == 0)
        && (!is_layer || bias.len == cols);
    let bound: Vec<Seen> = if is_layer {
        vec![x, gain, bias]
    } else {
        vec![x, gain]
    };
    let launch = bound
        .iter()
        .map(|seen| reads(*seen, DType::F32))
        .chain([writes(y, DType::F32)])
        .collect();
    Operation {
        text: format!(
            "{} {x} {gain} {bias} {y} {epsilon_given}",
            if is_layer { "layer_norm" } else { "rms_norm" }
        ),
        refused: unless(fits),
        launches: if x.len == 0 { vec![] } else { vec![launch] },
        given: bound.into_iter().chain([y]).collect(),
        record: Box::new(move |plan| match is_layer {
            true => plan.layer_norm(x.view, [gain.view, bias.view], y.view, epsilon_given),
            false => plan.rms_norm(x.view, gain.view, y.view, epsilon_given),
        }),
        step: Rc::new(move |space| {
            let (numbers, gains, biases) = (
                space.numbers(&x),
                all(&space.numbers(&gain)),
                is_layer.then(|| all(&space.numbers(&bias))),
            );
            let row = |row: &[Option<f64>]| {
                let (Some(terms), Some(gains), Some(biases)) = (
                    all(row),
                    gains.clone(),
                    biases.clone().unwrap_or(Some(vec![0.0; cols])),
                ) else {
                    return vec![None; cols];
                };
                let middle = if is_layer {
                    terms.iter().sum::<f64>() / cols as f64
                } else {
                    0.0
                };
                let spread = terms
                    .iter()
                    .map(|term| (term - middle).powi(2))
                    .sum::<f64>()
                    / cols as f64;
                let factor = 1.0 / (spread + f64::from(epsilon_given)).sqrt();
                let magnitude = terms.iter().map(|term| term.abs()).fold(0.0, f64::max);
                let one = |place: usize| {
                    let value = (terms[place] - middle) * factor * gains[place] + biases[place];
                    let bound = 256.0
                        * epsilon(DType::F32)
                        * (magnitude
                            * (factor + magnitude * magnitude * factor.powi(3))
                            * gains[place].abs()
                            + biases[place].abs());
                    Some((value, bound))
                };
                (0..cols).map(one).collect()
            };
            space.put_numbers(&y, numbers.chunks(cols).flat_map(row).collect::<Vec<_>>());
        }),
    }
}

fn top_k(world: &mut World, plan: usize) -> Operation {
    let rows = world.below(5);
    let cols = if world.chance(12) {
        1 + world.below(5000)
    } else {
        1 + world.below(40)
    };
    let k = 1 + world.below(cols.min(6));
    let x = world.source(plan, DType::F32, rows * cols);
    let (values, columns) = (
        world.target(plan, DType::F32, rows * k),
        world.target(plan, DType::U32, rows * k),
    );
    let mut given = [rows, k];
    world.distort(&mut given);
    let [rows, k] = given;
    let cols = x.len / rows.max(1);
    let is_nothing = rows == 0 && x.len == 0;
    let fits = product(&[rows, cols]) == x.len as u128
        && [values, columns]
            .iter()
            .all(|seen| seen.len as u128 == product(&[rows, k]));
    Operation {
        text: format!("top_k {x} {values} {columns} {rows} k {k}"),
        refused: unless(is_nothing || (fits && k > 0 && k <= 512 && k <= cols)),
        launches: if is_nothing {
            vec![]
        } else {
            vec![vec![
                reads(x, DType::F32),
                writes(values, DType::F32),
                writes(columns, DType::U32),
            ]]
        },
        given: vec![x, values, columns],
        record: Box::new(move |plan| plan.top_k(x.view, values.view, columns.view, rows, k)),
        step: Rc::new(move |space| {
            let (numbers, words) = (space.numbers(&x), space.words(&x));
            let row = |row: usize| {
                let Some(terms) = all(&numbers[row * cols..][..cols]) else {
                    return vec![(Word::Unknown, Word::Unknown); k];
                };
                let mut order: Vec<usize> = (0..cols).collect();
                order.sort_by(|&a, &b| terms[b].total_cmp(&terms[a]));
                // Zeros have no order here, whether their signs differ or are unknown.
                let has_zeros = terms.contains(&0.0);
                order[..k]
                    .iter()
                    .map(|&place| {
                        if has_zeros {
                            (Word::Unknown, Word::Unknown)
                        } else {
                            (words[row * cols + place], Word::Exact(place as u32))
                        }
                    })
                    .collect()
            };
            let found: Vec<(Word, Word)> = (0..rows).flat_map(row).collect();
            space.put(
                &values,
                &found.iter().map(|pair| pair.0).collect::<Vec<_>>(),
            );
            space.put(
                &columns,
                &found.iter().map(|pair| pair.1).collect::<Vec<_>>(),
            );
        }),
    }
}

fn adamw(world: &mut World, plan: usize) -> Operation {
    let len = world.size();
    let schedule = world.source(plan, DType::F32, 4);
    let g = world.source(plan, DType::F32, len);
    let state = [(); 3].map(|()| world.changed(plan, DType::F32, len));
    let launch = [schedule, g]
        .map(|seen| reads(seen, DType::F32))
        .into_iter()
        .chain(state.map(|seen| changes(seen, DType::F32)))
        .collect();
    Operation {
        text: format!(
            "adamw {schedule} {g} {} {} {}",
            state[0], state[1], state[2]
        ),
        refused: unless(state.iter().all(|seen| seen.len == g.len) && schedule.len == 4),
        launches: if g.len == 0 { vec![] } else { vec![launch] },
        given: [schedule, g].into_iter().chain(state).collect(),
        record: Box::new(move |plan| {
            plan.adamw(
                schedule.view,
                g.view,
                state.map(|seen| seen.view),
                0.5,
                0.75,
            )
        }),
        step: Rc::new(move |space| {
            let (schedule, gradient) = (space.numbers(&schedule), space.numbers(&g));
            let [w, m, v] = state.map(|seen| space.numbers(&seen));
            let unit = epsilon(DType::F32);
            let moment = |place: usize, square: bool| {
                let (g, before) = all(&[gradient[place], if square { v[place] } else { m[place] }])
                    .map(|pair| (pair[0], pair[1]))?;
                let (kept, added) = if square {
                    (0.75 * before, 0.25 * g * g)
                } else {
                    (0.5 * before, 0.5 * g)
                };
                Some((kept + added, 16.0 * unit * (kept.abs() + added.abs())))
            };
            let weight = |place: usize| {
                let given = all(&[schedule[0], schedule[1], schedule[2], schedule[3], w[place]])?;
                let [rate, unbias1, unbias2, decay, w] = given[..] else {
                    return None;
                };
                let ((m, m_error), (v, v_error)) = (moment(place, false)?, moment(place, true)?);
                let (square, square_error) = (v * unbias2, v_error * unbias2.abs());
                // Near zero the root is as uncertain as its argument.
                let is_certain = square > 1e-3 && square_error < 1e-3 * square;
                if !is_certain
                    || [m, square, rate, unbias1, decay, w]
                        .iter()
                        .any(|value| value.is_nan() || value.abs() >= 1e12)
                {
                    return None;
                }
                let divisor = square.sqrt() + 1e-8;
                let (step, step_error) = (m * unbias1 / divisor, m_error * unbias1.abs() / divisor);
                let relative = 16.0 * unit + square_error / square;
                let bound = rate.abs()
                    * (step_error + relative * step.abs() + 16.0 * unit * (decay * w).abs())
                    + 16.0 * unit * w.abs();
                Some((w - rate * (step + decay * w), bound))
            };
            space.put_numbers(&state[0], (0..g.len).map(weight).collect::<Vec<_>>());
            space.put_numbers(
                &state[1],
                (0..g.len)
                    .map(|place| moment(place, false))
                    .collect::<Vec<_>>(),
            );
            space.put_numbers(
                &state[2],
                (0..g.len)
                    .map(|place| moment(place, true))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

fn noise(world: &mut World, plan: usize) -> Operation {
    let how = world.below(3);
    let dtype = if how == 0 { DType::U32 } else { DType::F32 };
    let len = world.size();
    let (key, y) = (
        world.source(plan, DType::U32, 4),
        world.target(plan, dtype, len),
    );
    Operation {
        text: format!("{} {key} {y}", ["random_bits", "uniform", "normal"][how]),
        refused: unless(key.len == 4),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(key, DType::U32), writes(y, dtype)]]
        },
        given: vec![key, y],
        record: Box::new(move |plan| match how {
            0 => plan.random_bits(key.view, y.view),
            1 => plan.uniform(key.view, y.view),
            _ => plan.normal(key.view, y.view),
        }),
        step: Rc::new(move |space| {
            let key: Option<Vec<u32>> = space.integers(&key).into_iter().collect();
            let Some(key) = key else {
                return space.put(&y, &vec![Word::Unknown; y.words().len()]);
            };
            let word = |place: usize| {
                let bits =
                    random::philox([(place / 4) as u32, key[2], key[3], 0], [key[0], key[1]])
                        [place % 4];
                Word::Exact(match how {
                    0 => bits,
                    1 => random::uniform(bits).to_bits(),
                    _ => random::normal(bits, random::normal_table()).to_bits(),
                })
            };
            space.put(&y, &(0..y.len).map(word).collect::<Vec<_>>());
        }),
    }
}
