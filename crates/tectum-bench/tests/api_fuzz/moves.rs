//! Operations that move or convert words: fill, copy, casts, transposes, slices, concatenation,
//! gather, scatter, scan, compaction, one-hot rows, sums of segments.

use std::rc::Rc;

use tectum::kernel::pack::{Half, bf16_bits, f16_bits, to_bf16, to_f16};
use tectum::{DType, ScatterUpdate, Strided};

use super::memory::{Seen, Space, Word};
use super::operation::{
    Bound, Operation, all, changes, overlaps, product, reads, sum, unless, writes,
};
use super::world::World;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    match world.random.below(17) {
        0 | 1 => fill(world, plan),
        2 | 3 => copy(world, plan),
        4 => cast(world, plan),
        5 => half(world, plan),
        6 => transpose(world, plan),
        7 => strided(world, plan),
        8 => concat(world, plan),
        9 => gather(world, plan),
        10 => scatter(world, plan),
        11 => scan(world, plan),
        12 => one_hot(world, plan),
        13 => segment_sum(world, plan),
        14 => store_strided(world, plan),
        15 => scatter_rows(world, plan),
        _ => compact(world, plan),
    }
}

fn reads_words(seen: Seen) -> Bound {
    reads(seen.as_words(), DType::U32)
}

fn writes_words(seen: Seen) -> Bound {
    writes(seen.as_words(), DType::U32)
}

fn fill(world: &mut World, plan: usize) -> Operation {
    let (dtype, len, bits) = (world.dtype(), world.size(), world.random.bits() as u32);
    let y = world.target(plan, dtype, len);
    filled(y, bits)
}

/// The operation that fills a view with zeros.
pub fn fill_all(y: Seen) -> Operation {
    filled(y, 0)
}

fn filled(y: Seen, bits: u32) -> Operation {
    Operation {
        text: format!("fill {y} {bits:#x}"),
        refused: None,
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![writes_words(y)]]
        },
        given: vec![y],
        record: Box::new(move |plan| plan.fill(y.view, bits)),
        step: Rc::new(move |space| space.put(&y, &vec![Word::Exact(bits); y.words().len()])),
    }
}

fn copy(world: &mut World, plan: usize) -> Operation {
    let (dtype, len) = (world.dtype(), world.size());
    let (x, y) = (
        world.source(plan, dtype, len),
        world.target(plan, dtype, len),
    );
    copied(
        format!("copy {x} {y}"),
        x,
        y,
        Box::new(move |plan| plan.copy(x.view, y.view)),
    )
}

fn copied(text: String, x: Seen, y: Seen, record: super::operation::Record) -> Operation {
    Operation {
        text,
        refused: unless(x.dtype.bytes() == y.dtype.bytes() && x.len == y.len),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads_words(x), writes_words(y)]]
        },
        given: vec![x, y],
        record,
        step: Rc::new(move |space| space.put(&y, &space.words(&x))),
    }
}

fn cast(world: &mut World, plan: usize) -> Operation {
    let (from, to, len) = (world.dtype(), world.dtype(), world.size());
    let (x, y) = (world.source(plan, from, len), world.target(plan, to, len));
    let (text, record) = (
        format!("cast {x} {y}"),
        Box::new(move |plan: &mut tectum::PlanBuilder| plan.cast(x.view, y.view)),
    );
    if x.dtype == y.dtype {
        return copied(text, x, y, record);
    }
    let is_known = matches!(
        (x.dtype, y.dtype),
        (DType::F32, DType::U32 | DType::I32) | (DType::U32 | DType::I32, DType::F32)
    );
    let step = move |space: &Space<'_>| {
        let words = space
            .words(&x)
            .into_iter()
            .map(|word| converted(word, x.dtype, y.dtype))
            .collect::<Vec<_>>();
        space.put(&y, &words);
    };
    Operation {
        text,
        refused: unless(x.len == y.len && is_known),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(x, x.dtype), writes(y, y.dtype)]]
        },
        given: vec![x, y],
        record,
        step: Rc::new(step),
    }
}

fn converted(word: Word, from: DType, to: DType) -> Word {
    let value = match word {
        Word::Exact(bits) => match from {
            DType::U32 => return Word::Exact((bits as f32).to_bits()),
            DType::I32 => return Word::Exact((bits.cast_signed() as f32).to_bits()),
            _ => f32::from_bits(bits),
        },
        Word::Near(value, 0.0) => value as f32,
        _ => return Word::Unknown,
    };
    match to {
        DType::I32 => {
            Word::Exact((value.clamp(-2_147_483_648.0, 2_147_483_520.0) as i32).cast_unsigned())
        }
        _ => Word::Exact(value.clamp(0.0, 4_294_967_040.0) as u32),
    }
}

fn half(world: &mut World, plan: usize) -> Operation {
    let half = world.random.pick(&[Half::F16, Half::Bf16]);
    let len = world.size();
    let is_to = world.random.one_in(2);
    let (floats, words) = if is_to {
        (
            world.source(plan, DType::F32, len),
            world.target(plan, DType::U32, len.div_ceil(2)),
        )
    } else {
        let words = world.source(plan, DType::U32, len.div_ceil(2));
        (world.target(plan, DType::F32, len), words)
    };
    let refused = unless(
        words.len == floats.len.div_ceil(2)
            && floats.dtype == DType::F32
            && words.dtype == DType::U32,
    );
    let narrow = move |word: Word| match word {
        Word::Exact(bits) if !f32::from_bits(bits).is_nan() => Some(if half == Half::F16 {
            to_f16(bits)
        } else {
            to_bf16(bits)
        }),
        _ => None,
    };
    let widen = move |bits: u32| {
        if half == Half::F16 {
            f16_bits(bits & 0xffff)
        } else {
            bf16_bits(bits & 0xffff)
        }
    };
    let step: super::operation::Step = if is_to {
        Rc::new(move |space| {
            let halves: Vec<Option<u32>> = space.words(&floats).into_iter().map(narrow).collect();
            let pair = |pair: &[Option<u32>]| match *pair {
                [Some(low), Some(high)] => Word::Exact(high << 16 | low),
                [Some(low)] => Word::Exact(low),
                _ => Word::Unknown,
            };
            space.put(&words, &halves.chunks(2).map(pair).collect::<Vec<_>>());
        })
    } else {
        Rc::new(move |space| {
            let pairs = space.integers(&words);
            let value = |place: usize| {
                let bits = widen(pairs[place / 2]? >> (16 * (place % 2)));
                let value = f32::from_bits(bits);
                // The bits of a NaN depend on the device, and halves below the smallest normal one
                // are numbers.
                (!value.is_nan() && !value.is_subnormal()).then_some(Word::Exact(bits))
            };
            space.put(
                &floats,
                &(0..floats.len)
                    .map(|place| value(place).unwrap_or(Word::Unknown))
                    .collect::<Vec<_>>(),
            );
        })
    };
    let launch = if is_to {
        vec![reads_words(floats), writes(words, DType::U32)]
    } else {
        vec![reads(words, DType::U32), writes_words(floats)]
    };
    Operation {
        text: format!(
            "cast {} {half:?} {floats} {words}",
            if is_to { "to" } else { "from" }
        ),
        refused,
        launches: if floats.len == 0 {
            vec![]
        } else {
            vec![launch]
        },
        given: vec![floats, words],
        record: Box::new(move |plan| match is_to {
            true => plan.cast_to_half(half, floats.view, words.view),
            false => plan.cast_from_half(half, words.view, floats.view),
        }),
        step,
    }
}

/// Writes elements of `width` words to positions of `y`.
fn put_elements(
    space: &Space<'_>,
    x: &[Word],
    y: &Seen,
    width: usize,
    places: impl Iterator<Item = usize>,
) {
    let words: Vec<Word> = places
        .flat_map(|place| x[place * width..][..width].to_vec())
        .collect();
    space.put(y, &words);
}

fn transpose(world: &mut World, plan: usize) -> Operation {
    let dtype = world.dtype();
    let batch = 1 + world.below(3);
    let (mut sizes, len) = world.sizes([batch, 0, 0]);
    let (x, y) = (
        world.source(plan, dtype, len),
        world.target(plan, dtype, len),
    );
    world.distort(&mut sizes);
    let total = product(&sizes);
    let fits = x.len as u128 == total && y.len as u128 == total;
    let width = x.dtype.bytes() / 4;
    Operation {
        text: format!("transpose {x} {y} {sizes:?}"),
        refused: unless(fits && (total == 0 || x.dtype.bytes() == y.dtype.bytes())),
        launches: if total == 0 {
            vec![]
        } else {
            vec![vec![reads_words(x), writes_words(y)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.transpose(x.view, y.view, sizes)),
        step: Rc::new(move |space| {
            let [_, rows, cols] = sizes;
            let place = |at: usize| {
                at / (rows * cols) * rows * cols + at % rows * cols + at % (rows * cols) / rows
            };
            put_elements(space, &space.words(&x), &y, width, (0..y.len).map(place));
        }),
    }
}

fn strided(world: &mut World, plan: usize) -> Operation {
    let dtype = world.dtype();
    let count = world.random.below(7) as usize;
    let mut axes: Vec<Strided> = (0..count)
        .map(|_| Strided {
            size: 1 + world.random.below(if count > 4 { 3 } else { 5 }) as usize,
            stride: world.random.below(7) as usize,
        })
        .collect();
    let mut first = world.random.below(4) as usize;
    let len = axes.iter().map(|axis| axis.size).product();
    let needed = first
        + axes
            .iter()
            .map(|axis| (axis.size - 1) * axis.stride)
            .sum::<usize>()
        + 1;
    let (x, y) = (
        world.source(plan, dtype, needed),
        world.target(plan, dtype, len),
    );
    if world.random.one_in(12) {
        let extreme = world.extreme();
        match axes.last_mut() {
            Some(axis) if world.random.one_in(2) => axis.stride = extreme,
            Some(axis) if world.random.one_in(2) => axis.size = extreme,
            _ => first = extreme,
        }
    }
    let total = product(&axes.iter().map(|axis| axis.size).collect::<Vec<_>>());
    let reach =
        |axis: &Strided| (axis.size.saturating_sub(1) as u128).saturating_mul(axis.stride as u128);
    let last = axes
        .iter()
        .fold(first as u128, |last, axis| last.saturating_add(reach(axis)));
    let width = x.dtype.bytes() / 4;
    let fits = y.len as u128 == total
        && (total == 0 || last < x.len as u128)
        && x.dtype.bytes() == y.dtype.bytes();
    let given = axes.clone();
    Operation {
        text: format!("copy_strided {x} {first} {axes:?} {y}"),
        refused: unless(fits),
        launches: if total == 0 {
            vec![]
        } else {
            vec![vec![reads_words(x), writes_words(y)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.copy_strided(x.view, first, &given, y.view)),
        step: Rc::new(move |space| {
            let place = |at: usize| {
                axes.iter()
                    .rev()
                    .fold((at, first), |(rest, place), axis| {
                        (rest / axis.size, place + rest % axis.size * axis.stride)
                    })
                    .1
            };
            put_elements(space, &space.words(&x), &y, width, (0..y.len).map(place));
        }),
    }
}

/// Axes with gaps, in any order, or with strides at random.
fn store_strided(world: &mut World, plan: usize) -> Operation {
    let dtype = world.dtype();
    let count = world.random.below(6) as usize;
    let mut axes: Vec<Strided> = Vec::new();
    let mut reach = 1;
    for _ in 0..count {
        let axis = Strided {
            size: 1 + world.random.below(3) as usize,
            stride: reach + world.random.below(3) as usize,
        };
        reach = axis.size * axis.stride;
        axes.insert(world.below(axes.len() + 1), axis);
    }
    if world.chance(6) {
        axes.iter_mut()
            .for_each(|axis| axis.stride = world.below(5));
    }
    let mut first = world.random.below(4) as usize;
    let len = axes.iter().map(|axis| axis.size).product();
    let needed = first
        + axes
            .iter()
            .map(|axis| (axis.size - 1) * axis.stride)
            .sum::<usize>()
        + 1;
    let (x, y) = (
        world.source(plan, dtype, len),
        world.changed(plan, dtype, needed),
    );
    if world.chance(12) {
        let extreme = world.extreme();
        match axes.last_mut() {
            Some(axis) if world.chance(2) => axis.stride = extreme,
            Some(axis) if world.chance(2) => axis.size = extreme,
            _ => first = extreme,
        }
    }
    let total = product(&axes.iter().map(|axis| axis.size).collect::<Vec<_>>());
    let reach =
        |axis: &Strided| (axis.size.saturating_sub(1) as u128).saturating_mul(axis.stride as u128);
    let last = axes
        .iter()
        .fold(first as u128, |last, axis| last.saturating_add(reach(axis)));
    // By stride, each axis steps over those before it.
    let mut sorted: Vec<Strided> = axes.iter().copied().filter(|axis| axis.size > 1).collect();
    sorted.sort_by_key(|axis| axis.stride);
    let is_distinct = (0..sorted.len()).all(|count| {
        sorted[count].stride as u128 > sorted[..count].iter().map(reach).sum::<u128>()
    });
    let width = x.dtype.bytes() / 4;
    let fits = x.len as u128 == total
        && (total == 0 || (last < y.len as u128 && is_distinct))
        && x.dtype.bytes() == y.dtype.bytes();
    let given = axes.clone();
    Operation {
        text: format!("store_strided {x} {first} {axes:?} {y}"),
        refused: unless(fits),
        launches: if total == 0 {
            vec![]
        } else {
            vec![vec![reads_words(x), changes(y.as_words(), DType::U32)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.store_strided(x.view, first, &given, y.view)),
        step: Rc::new(move |space| {
            let (stored, mut words) = (space.words(&x), space.words(&y));
            for at in 0..x.len {
                let place = axes
                    .iter()
                    .rev()
                    .fold((at, first), |(rest, place), axis| {
                        (rest / axis.size, place + rest % axis.size * axis.stride)
                    })
                    .1;
                words[place * width..][..width].copy_from_slice(&stored[at * width..][..width]);
            }
            space.put(&y, &words);
        }),
    }
}

/// Scatters of integers; those of floats have their conformance cases.
fn scatter_rows(world: &mut World, plan: usize) -> Operation {
    let dtype = world
        .random
        .pick(&[DType::I32, DType::I32, DType::I32, DType::U32, DType::F64]);
    let how = world.random.pick(&[
        ScatterUpdate::Assign,
        ScatterUpdate::Add,
        ScatterUpdate::Mul,
        ScatterUpdate::Max,
        ScatterUpdate::Min,
    ]);
    let (rows, cols, count) = (
        world.random.below(7) as usize,
        1 + world.random.below(9) as usize,
        world.random.below(12) as usize,
    );
    let (indices, x) = (
        world.indices(plan, count, rows as u32),
        world.source(plan, dtype, count * cols),
    );
    let y = world.changed(plan, dtype, rows * cols);
    let cols = x.len.checked_div(indices.len).unwrap_or(0);
    let has_kernel = matches!(
        (y.dtype, how),
        (DType::F32 | DType::I32, _) | (DType::U32, ScatterUpdate::Assign)
    );
    let types_fit =
        matches!(indices.dtype, DType::I32 | DType::U32) && has_kernel && x.dtype == y.dtype;
    let fits = product(&[indices.len, cols]) == x.len as u128
        && (x.len == 0 || y.len.is_multiple_of(cols.max(1)));
    let needs = if how == ScatterUpdate::Assign {
        DType::U32
    } else {
        y.dtype
    };
    let bound = |seen: Seen| {
        if how == ScatterUpdate::Assign {
            seen.as_words()
        } else {
            seen
        }
    };
    let launch = vec![
        reads(bound(x), needs),
        reads(indices.as_words(), DType::U32),
        changes(bound(y), needs),
    ];
    Operation {
        text: format!("scatter {how:?} {indices} {x} {y}"),
        refused: unless(types_fit && fits),
        launches: if x.len == 0 || y.len == 0 {
            vec![]
        } else {
            vec![launch]
        },
        given: vec![indices, x, y],
        record: Box::new(move |plan| plan.scatter(indices.view, x.view, y.view, how)),
        step: Rc::new(move |space| {
            let (chosen, updates, mut words) = (
                space.integers(&indices),
                space.integers(&x),
                space.integers(&y),
            );
            if chosen.contains(&None) || y.dtype == DType::F32 {
                words.fill(None);
            }
            for (place, &update) in updates.iter().enumerate() {
                let row = chosen[place / cols].map_or(usize::MAX, |row| row as usize);
                if row.saturating_mul(cols) >= words.len() || y.dtype == DType::F32 {
                    continue;
                }
                let word = &mut words[row * cols + place % cols];
                let combined = word.zip(update).map(|(word, update)| {
                    let [a, b] = [word, update].map(|word| word as i32);
                    match how {
                        ScatterUpdate::Assign => b,
                        ScatterUpdate::Add => a.wrapping_add(b),
                        ScatterUpdate::Mul => a.wrapping_mul(b),
                        ScatterUpdate::Max => a.max(b),
                        ScatterUpdate::Min => a.min(b),
                    }
                });
                *word = if how == ScatterUpdate::Assign && !chosen.contains(&None) {
                    update
                } else {
                    combined.map(|word| word as u32)
                };
            }
            space.put(
                &y,
                &words
                    .into_iter()
                    .map(|word| word.map_or(Word::Unknown, Word::Exact))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

fn concat(world: &mut World, plan: usize) -> Operation {
    let dtype = world.dtype();
    let rows = 1 + world.random.below(6) as usize;
    let [m, n] = [(); 2].map(|()| world.random.below(9) as usize);
    let [a, b] = [m, n].map(|cols| world.source(plan, dtype, rows * cols));
    let y = world.target(plan, dtype, rows * (m + n));
    let mut given = [rows];
    world.distort(&mut given);
    let [rows] = given;
    let whole = |seen: Seen| rows > 0 && seen.len.is_multiple_of(rows);
    // If one of two operands is empty, the other is copied.
    let joined = match (a.len, b.len) {
        (0, _) => vec![b],
        (_, 0) => vec![a],
        _ => vec![a, b],
    };
    let same = joined
        .iter()
        .all(|seen| seen.dtype.bytes() == y.dtype.bytes());
    let fits = y.len as u128 == a.len as u128 + b.len as u128 && whole(a) && whole(b);
    let launch: Vec<Bound> = [a, b]
        .into_iter()
        .filter(|seen| seen.len > 0)
        .map(reads_words)
        .chain([writes_words(y)])
        .collect();
    Operation {
        text: format!("concat {a} {b} {y} {rows}"),
        refused: unless(fits && same),
        launches: if y.len == 0 { vec![] } else { vec![launch] },
        given: vec![a, b, y],
        record: Box::new(move |plan| plan.concat(a.view, b.view, y.view, rows)),
        step: Rc::new(move |space| {
            let parts = [a, b].map(|seen| (space.words(&seen), seen.words().len() / rows));
            let words: Vec<Word> = (0..rows)
                .flat_map(|row| {
                    parts
                        .iter()
                        .flat_map(move |(words, cols)| words[row * cols..][..*cols].to_vec())
                })
                .collect();
            space.put(&y, &words);
        }),
    }
}

/// Sizes and views of a gather or scatter: the table, indices, rows and faults.
fn table(world: &mut World, plan: usize, dtype: DType, is_scatter: bool) -> ([Seen; 4], usize) {
    let (rows, cols, count) = (
        world.random.below(7) as usize,
        1 + world.random.below(9) as usize,
        world.random.below(12) as usize,
    );
    let indices = world.indices(plan, count, rows as u32);
    let faults = world.target(plan, DType::U32, 1);
    let (table, picked) = match is_scatter {
        false => (
            world.source(plan, dtype, rows * cols),
            world.target(plan, dtype, count * cols),
        ),
        true => (
            world.changed(plan, dtype, rows * cols),
            world.source(plan, dtype, count * cols),
        ),
    };
    let mut sizes = [cols];
    world.distort(&mut sizes);
    ([table, indices, picked, faults], sizes[0])
}

/// Whether the lengths of a gather or scatter fit, and the rows of its table.
fn rows_fit([table, indices, picked, faults]: [Seen; 4], cols: usize) -> (bool, usize) {
    let rows = table.len.checked_div(cols).unwrap_or(0);
    let fits = product(&[rows, cols]) == table.len as u128
        && product(&[indices.len, cols]) == picked.len as u128
        && faults.len == 1;
    (fits, rows)
}

fn gather(world: &mut World, plan: usize) -> Operation {
    let dtype = world.dtype();
    let (views, cols) = table(world, plan, dtype, false);
    let [table, indices, y, faults] = views;
    let (fits, rows) = rows_fit(views, cols);
    let mut launches = vec![vec![writes_words(faults)]];
    match (y.len, rows) {
        (0, _) => {}
        (_, 0) => launches.push(vec![writes_words(y)]),
        _ => launches.push(vec![
            reads_words(table),
            reads(indices, DType::U32),
            writes_words(y),
            changes(faults, DType::U32),
        ]),
    }
    let width = table.dtype.bytes() / 4;
    Operation {
        text: format!("gather {table} {indices} {y} {faults} {cols}"),
        refused: unless(fits && table.dtype.bytes() == y.dtype.bytes() && !overlaps(faults, y)),
        launches,
        given: views.to_vec(),
        record: Box::new(move |plan| {
            plan.gather(table.view, indices.view, y.view, faults.view, cols)
        }),
        step: Rc::new(move |space| {
            let (rows_of, words) = (chosen_rows(space, &indices, rows), space.words(&table));
            let row = |index: &Option<u32>| match index {
                None => vec![Word::Unknown; cols * width],
                Some(index) if (*index as usize) < rows => {
                    words[*index as usize * cols * width..][..cols * width].to_vec()
                }
                Some(_) => vec![Word::Exact(0); cols * width],
            };
            put_faults(space, &faults, if y.len > 0 { &rows_of } else { &[] }, rows);
            let picked: Vec<Word> = rows_of.iter().flat_map(row).collect();
            space.put(&y, &picked);
        }),
    }
}

/// The rows that the indices choose. For a table without rows the indices are not read: each is a
/// fault, for any value, even if the view is foreign.
fn chosen_rows(space: &Space<'_>, indices: &Seen, rows: usize) -> Vec<Option<u32>> {
    if rows == 0 {
        vec![Some(0); indices.len]
    } else {
        space.integers(indices)
    }
}

fn put_faults(space: &Space<'_>, faults: &Seen, indices: &[Option<u32>], rows: usize) {
    let count = indices.iter().try_fold(0u32, |count, index| {
        index.map(|index| count + u32::from(index as usize >= rows))
    });
    let word = count.map_or(Word::Unknown, Word::Exact);
    space.put(faults, &vec![word; faults.words().len()]);
}

fn scatter(world: &mut World, plan: usize) -> Operation {
    let dtype = world
        .random
        .pick(&[DType::U32, DType::I32, DType::U32, DType::I32, DType::F64]);
    let (views, cols) = table(world, plan, dtype, true);
    let [y, indices, x, faults] = views;
    let (fits, rows) = rows_fit(views, cols);
    let mut launches = vec![vec![writes_words(faults)]];
    match (x.len, rows) {
        (0, _) => {}
        (_, 0) => launches.push(vec![writes_words(faults)]),
        _ => launches.push(vec![
            reads_words(x),
            reads(indices, DType::U32),
            changes(y.as_words(), DType::U32),
            changes(faults, DType::U32),
        ]),
    }
    Operation {
        text: format!("scatter_add {x} {indices} {y} {faults} {cols}"),
        refused: unless(fits && x.dtype == y.dtype && matches!(x.dtype, DType::U32 | DType::I32)),
        launches,
        given: views.to_vec(),
        record: Box::new(move |plan| {
            plan.scatter_add(x.view, indices.view, y.view, faults.view, cols)
        }),
        step: Rc::new(move |space| {
            let (rows_of, added) = (chosen_rows(space, &indices, rows), space.integers(&x));
            put_faults(space, &faults, if x.len > 0 { &rows_of } else { &[] }, rows);
            let mut sums = space.integers(&y);
            if rows_of.contains(&None) {
                sums.fill(None);
            }
            for (place, &term) in added.iter().enumerate() {
                if let Some(row) = rows_of[place / cols]
                    .map(|row| row as usize)
                    .filter(|row| *row < rows)
                {
                    let sum = &mut sums[row * cols + place % cols];
                    *sum = sum.zip(term).map(|(sum, term)| sum.wrapping_add(term));
                }
            }
            space.put(
                &y,
                &sums
                    .into_iter()
                    .map(|sum| sum.map_or(Word::Unknown, Word::Exact))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

fn one_hot(world: &mut World, plan: usize) -> Operation {
    let (count, cols) = (
        world.random.below(12) as usize,
        1 + world.random.below(9) as usize,
    );
    let (indices, y) = (
        world.indices(plan, count, cols as u32),
        world.target(plan, DType::F32, count * cols),
    );
    let mut sizes = [cols];
    world.distort(&mut sizes);
    let [cols] = sizes;
    Operation {
        text: format!("one_hot {indices} {y} {cols}"),
        refused: unless(product(&[indices.len, cols]) == y.len as u128),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![reads(indices, DType::U32), writes(y, DType::F32)]]
        },
        given: vec![indices, y],
        record: Box::new(move |plan| plan.one_hot(indices.view, y.view, cols)),
        step: Rc::new(move |space| {
            let number = |index: Option<u32>, col: usize| {
                index.map_or(Word::Unknown, |index| {
                    Word::Exact(f32::from(u8::from(index as usize == col)).to_bits())
                })
            };
            let words: Vec<Word> = space
                .integers(&indices)
                .into_iter()
                .flat_map(|index| (0..cols).map(move |col| number(index, col)))
                .collect();
            space.put(&y, &words);
        }),
    }
}

fn segment_sum(world: &mut World, plan: usize) -> Operation {
    let (rows, cols, count) = (
        world.random.below(7) as usize,
        1 + world.random.below(9) as usize,
        world.random.below(12) as usize,
    );
    let (x, segments) = (
        world.source(plan, DType::F32, count * cols),
        world.indices(plan, count, rows as u32),
    );
    let y = world.target(plan, DType::F32, rows * cols);
    let mut sizes = [cols];
    world.distort(&mut sizes);
    let [cols] = sizes;
    let rows = y.len.checked_div(cols).unwrap_or(0);
    let mut launches = if y.len == 0 {
        vec![]
    } else {
        vec![vec![writes_words(y)]]
    };
    if x.len > 0 && y.len > 0 {
        launches.push(vec![
            reads(x, DType::F32),
            reads(segments, DType::U32),
            changes(y, DType::F32),
        ]);
    }
    Operation {
        text: format!("segment_sum {x} {segments} {y} {cols}"),
        refused: unless(
            product(&[rows, cols]) == y.len as u128
                && product(&[segments.len, cols]) == x.len as u128,
        ),
        launches,
        given: vec![x, segments, y],
        record: Box::new(move |plan| plan.segment_sum(x.view, segments.view, y.view, cols)),
        step: Rc::new(move |space| {
            let (numbers, chosen) = (space.numbers(&x), space.integers(&segments));
            let sum_of = |place: usize| {
                let chosen = all_of(&chosen)?;
                let terms = chosen
                    .iter()
                    .enumerate()
                    .filter(|(_, row)| **row as usize == place / cols)
                    .map(|(index, _)| numbers[index * cols + place % cols]);
                all(&terms.collect::<Vec<_>>()).map(|terms| sum(&terms))
            };
            space.put_numbers(&y, (0..y.len).map(sum_of));
        }),
    }
}

/// The values of words, if all are known.
fn all_of(words: &[Option<u32>]) -> Option<Vec<u32>> {
    words.iter().copied().collect()
}

/// Exclusive sums, and the total.
fn prefix(terms: &[Option<u32>]) -> (Vec<Word>, Word) {
    let mut sum = Some(0u32);
    let mut before = |term: &Option<u32>| {
        let word = sum.map_or(Word::Unknown, Word::Exact);
        sum = sum.zip(*term).map(|(sum, term)| sum.wrapping_add(term));
        word
    };
    let words = terms.iter().map(&mut before).collect();
    (words, sum.map_or(Word::Unknown, Word::Exact))
}

/// The launches of a scan into `y`; beyond 2048 elements blocks are scanned separately, and their
/// sums added.
fn scan_launches(x: Seen, y: Option<Seen>, total: Seen) -> Vec<Vec<Bound>> {
    if x.len == 0 {
        return vec![vec![writes_words(total)]];
    }
    let mut launch = vec![reads(x, DType::U32)];
    launch.extend(y.map(|y| writes(y, DType::U32)));
    launch.push(writes(total, DType::U32));
    vec![launch]
}

fn scan(world: &mut World, plan: usize) -> Operation {
    let len = world.long_size();
    let (x, y, total) = (
        world.source(plan, DType::U32, len),
        world.target(plan, DType::U32, len),
        world.target(plan, DType::U32, 1),
    );
    Operation {
        text: format!("exclusive_scan {x} {y} {total}"),
        refused: unless(x.len == y.len && total.len == 1),
        launches: scan_launches(x, Some(y), total),
        given: vec![x, y, total],
        record: Box::new(move |plan| plan.exclusive_scan(x.view, y.view, total.view)),
        step: Rc::new(move |space| {
            let (words, sum) = prefix(&space.integers(&x));
            space.put(&y, &words);
            space.put(&total, &vec![sum; total.words().len()]);
        }),
    }
}

fn compact(world: &mut World, plan: usize) -> Operation {
    let len = world.long_size();
    let (flags, indices, count) = (
        world.source(plan, DType::U32, len),
        world.changed(plan, DType::U32, len),
        world.target(plan, DType::U32, 1),
    );
    let mut launches = scan_launches(flags, None, count);
    if flags.len > 0 {
        launches.push(vec![reads(flags, DType::U32), changes(indices, DType::U32)]);
    }
    Operation {
        text: format!("compact {flags} {indices} {count}"),
        refused: unless(flags.len == indices.len && count.len == 1 && !overlaps(count, indices)),
        launches,
        given: vec![flags, indices, count],
        record: Box::new(move |plan| plan.compact(flags.view, indices.view, count.view)),
        step: Rc::new(move |space| {
            let given = space.integers(&flags);
            let mut words = space.words(&indices);
            if given.contains(&None) {
                words.fill(Word::Unknown);
                space.put(&indices, &words);
                return space.put(&count, &vec![Word::Unknown; count.words().len()]);
            }
            let set: Vec<usize> = (0..given.len())
                .filter(|&place| given[place] != Some(0))
                .collect();
            words
                .iter_mut()
                .zip(&set)
                .for_each(|(word, &place)| *word = Word::Exact(place as u32));
            space.put(&indices, &words);
            space.put(
                &count,
                &vec![Word::Exact(set.len() as u32); count.words().len()],
            );
        }),
    }
}
