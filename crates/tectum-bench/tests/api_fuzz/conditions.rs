//! Comparisons, predicates and the choice by a condition.

use std::cmp::Ordering;
use std::rc::Rc;

use tectum::DType;

use super::memory::{Seen, Word};
use super::operation::{Operation, reads, unless, writes};
use super::world::World;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    match world.random.below(5) {
        0..2 => compare(world, plan),
        2 => predicate(world, plan),
        _ => select(world, plan),
    }
}

/// A length that divides another, or it.
fn repeated(world: &mut World, len: usize) -> usize {
    let divisors: Vec<usize> = (1..=len)
        .filter(|divisor| len.is_multiple_of(*divisor))
        .collect();
    if divisors.is_empty() || world.chance(2) {
        len
    } else {
        divisors[world.below(divisors.len())]
    }
}

fn repeats(row: Seen, len: usize) -> bool {
    row.len > 0 && len.is_multiple_of(row.len)
}

fn truth(value: Option<bool>) -> Word {
    value.map_or(Word::Unknown, |value| Word::Exact(u32::from(value)))
}

/// Known words of a type with the order of its numbers.
fn order(dtype: DType, a: &[Word], b: &[Word]) -> Option<Option<Ordering>> {
    let bits = |words: &[Word]| {
        let word = |word: &Word| {
            if let Word::Exact(bits) = word {
                Some(u64::from(*bits))
            } else {
                None
            }
        };
        words
            .iter()
            .rev()
            .try_fold(0u64, |bits, next| Some(bits << 32 | word(next)?))
    };
    let (a, b) = (bits(a)?, bits(b)?);
    Some(match dtype {
        DType::U32 => Some(a.cmp(&b)),
        DType::I32 => Some((a as u32 as i32).cmp(&(b as u32 as i32))),
        DType::F32 => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        DType::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
    })
}

fn compare(world: &mut World, plan: usize) -> Operation {
    let name = world.random.pick(&[
        "equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "not_equal",
        "less",
        "than",
    ]);
    let (dtype, len) = (world.dtype(), world.size());
    let part = repeated(world, len);
    let (a, b, y) = (
        world.source(plan, dtype, len),
        world.source(plan, dtype, part),
        world.target(plan, DType::I32, len),
    );
    let needs = a.dtype;
    Operation {
        text: format!("compare {name} {a} {b} {y}"),
        refused: unless(name != "than" && a.len == y.len && (y.len == 0 || repeats(b, a.len))),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![
                reads(a, needs),
                reads(b, needs),
                writes(y, DType::I32),
            ]]
        },
        given: vec![a, b, y],
        record: Box::new(move |plan| plan.compare(name, a.view, b.view, y.view)),
        step: Rc::new(move |space| {
            let (left, right, width) = (space.words(&a), space.words(&b), needs.bytes() / 4);
            let holds = |place: usize| {
                let order = order(
                    needs,
                    &left[place * width..][..width],
                    &right[place % b.len * width..][..width],
                )?;
                Some(match name {
                    "equal" => order == Some(Ordering::Equal),
                    "less" => order == Some(Ordering::Less),
                    "less_equal" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
                    "greater" => order == Some(Ordering::Greater),
                    "greater_equal" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
                    _ => order != Some(Ordering::Equal),
                })
            };
            space.put(
                &y,
                &(0..y.len)
                    .map(|place| truth(holds(place)))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

fn predicate(world: &mut World, plan: usize) -> Operation {
    let name = world
        .random
        .pick(&["is_nan", "is_inf", "is_nan", "is_inf", "is_zero"]);
    let (dtype, len) = (world.float(), world.size());
    let (x, y) = (
        world.source(plan, dtype, len),
        world.target(plan, DType::I32, len),
    );
    let needs = if x.dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    };
    Operation {
        text: format!("predicate {name} {x} {y}"),
        refused: unless(name != "is_zero" && x.len == y.len),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(x, needs), writes(y, DType::I32)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.predicate(name, x.view, y.view)),
        step: Rc::new(move |space| {
            let (words, width) = (space.words(&x), needs.bytes() / 4);
            let holds = |place: usize| {
                let word = &words[place * width..][..width];
                let is_nan = order(needs, word, word)?.is_none();
                let is_infinite = match (needs, word) {
                    (DType::F32, [Word::Exact(bits)]) => f32::from_bits(*bits).is_infinite(),
                    (_, [Word::Exact(low), Word::Exact(high)]) => {
                        f64::from_bits(u64::from(*high) << 32 | u64::from(*low)).is_infinite()
                    }
                    _ => return None,
                };
                Some(if name == "is_nan" {
                    is_nan
                } else {
                    is_infinite
                })
            };
            space.put(
                &y,
                &(0..y.len)
                    .map(|place| truth(holds(place)))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

fn select(world: &mut World, plan: usize) -> Operation {
    let (dtype, len) = (world.dtype(), world.size());
    let [a_len, b_len] = [(); 2].map(|()| repeated(world, len));
    let condition = world.source(plan, DType::I32, len);
    let (a, b, y) = (
        world.source(plan, dtype, a_len),
        world.source(plan, dtype, b_len),
        world.target(plan, dtype, len),
    );
    let types_fit = a.dtype == y.dtype && b.dtype == y.dtype && y.dtype != DType::F64;
    let words = [
        reads(a.as_words(), DType::U32),
        reads(b.as_words(), DType::U32),
        writes(y.as_words(), DType::U32),
    ];
    Operation {
        text: format!("select {condition} {a} {b} {y}"),
        refused: unless(
            condition.len == y.len
                && types_fit
                && (y.len == 0 || (repeats(a, y.len) && repeats(b, y.len))),
        ),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![
                [reads(condition, DType::I32)]
                    .into_iter()
                    .chain(words)
                    .collect(),
            ]
        },
        given: vec![condition, a, b, y],
        record: Box::new(move |plan| plan.select(condition.view, a.view, b.view, y.view)),
        step: Rc::new(move |space| {
            let (conditions, left, right) =
                (space.integers(&condition), space.words(&a), space.words(&b));
            let chosen = |(place, condition): (usize, &Option<u32>)| match condition {
                None => Word::Unknown,
                Some(0) => right[place % b.len],
                Some(_) => left[place % a.len],
            };
            space.put(
                &y,
                &conditions
                    .iter()
                    .enumerate()
                    .map(chosen)
                    .collect::<Vec<_>>(),
            );
        }),
    }
}
