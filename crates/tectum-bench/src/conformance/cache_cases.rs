//! Cases of attention over caches of fewer bits: the stored words, exactly, and the results
//! computed from them.

use tectum::operation::attention::cache_reference::ReferenceCache;
use tectum::{AttentionSizes, CacheFormat, CacheFormats};

use super::attention_cases::{Operand, expected_head, operand, spans};
use super::{Case, Data, Output, Seed, Suite};

pub(super) fn suites() -> Vec<Suite> {
    let formats = CacheFormats::ALL
        .into_iter()
        .filter(|formats| *formats != CacheFormats::F32);
    formats
        .map(|formats| {
            Suite::new(
                format!("attention_cached_{formats}"),
                move |seed: &mut Seed| cases(seed, formats),
            )
        })
        .collect()
}

/// Values of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// Between −1 and 1.
    Plain,
    /// Between −1 and 1 at a tenth of the places, else one constant: the columns of a token, or the
    /// tokens of a column.
    Constant,
    /// From below the smallest half to beyond the greatest.
    Wide,
    /// With a NaN and an infinity.
    Broken,
}

/// Batch, capacity of the cache, heads, heads of keys and values, width, queries; then how many
/// keys are kept: none, a part of the first window, all of it, some windows; one query and many,
/// which complete one window, several or none, or do not fit.
fn cases(seed: &mut Seed, formats: CacheFormats) -> Vec<Case> {
    let shapes = [
        ([1, 64, 1, 1, 1, 1], 0),
        ([1, 70, 2, 1, 8, 1], 63),
        ([1, 70, 2, 1, 8, 1], 64),
        ([2, 128, 4, 2, 5, 1], 127),
        ([1, 130, 2, 1, 32, 1], 128),
        ([1, 64, 2, 2, 8, 7], 0),
        ([2, 100, 4, 2, 8, 17], 55),
        ([1, 96, 1, 1, 33, 20], 70),
        ([1, 140, 4, 1, 6, 134], 5),
        ([1, 64, 2, 1, 40, 9], 60),
        ([1, 128, 2, 1, 16, 64], 64),
        ([1, 70, 2, 2, 32, 1], 69),
        ([3, 68, 2, 1, 4, 1], 65),
        ([3, 12, 2, 1, 4, 5], 1),
    ];
    let mut made: Vec<Case> = shapes
        .into_iter()
        .map(|(shape, kept)| case(seed, formats, shape, kept, Kind::Plain))
        .collect();
    for kind in [Kind::Constant, Kind::Wide, Kind::Broken] {
        made.push(case(seed, formats, [1, 80, 2, 1, 33, 12], 60, kind));
        made.push(case(seed, formats, [1, 80, 1, 1, 8, 1], 67, kind));
    }
    made
}

/// Makes an operand's values of a kind.
fn shape_values(seed: &mut Seed, kind: Kind, operand: &mut Operand) {
    let row = operand.row;
    for (index, x) in operand.data.iter_mut().enumerate() {
        *x = match kind {
            Kind::Plain => *x,
            Kind::Constant if seed.size(0, 9) > 0 => {
                if (index / row).is_multiple_of(2) {
                    0.37
                } else {
                    0.0
                }
            }
            Kind::Constant => *x,
            Kind::Wide => *x * 2.0f32.powi(seed.size(0, 36) as i32 - 18),
            Kind::Broken => match seed.size(0, 200) {
                0 => f32::NAN,
                1 => f32::INFINITY,
                _ => *x,
            },
        };
    }
    if kind == Kind::Wide {
        operand.data[0] = 1e30;
    }
}

/// A cache of an item before a run, with words that are not read in the rest of it, and after.
struct Sides {
    before: Vec<u32>,
    after: Vec<u32>,
    /// What attention reads of each present token, all items one after another.
    seen: Vec<f32>,
}

fn sides(
    seed: &mut Seed,
    (format, is_keys): (CacheFormat, bool),
    [batch, keys, columns]: [usize; 3],
    spans: &[u32],
    kind: Kind,
    new: &Operand,
) -> Sides {
    let queries = new.data.len() / new.row / batch;
    let (mut before, mut after, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for item in 0..batch {
        let [kept, count] = [0, 1].map(|index| spans[2 * item + index] as usize);
        let mut old = Operand {
            data: seed.floats(kept * columns, -1.0, 1.0),
            row: columns,
            start: 0,
        };
        if kept > 0 {
            shape_values(seed, kind, &mut old);
        }
        let garbage = (0..format.words(keys, columns))
            .map(|_| seed.word())
            .collect();
        let mut cache = ReferenceCache::new(format, is_keys, [keys, columns], garbage);
        cache.add(
            0,
            &old.data.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
        );
        before.extend(&cache.words);
        let there = (kept + count).min(keys);
        let row = |t: usize| &new.data[(item * queries + t) * new.row + new.start..][..columns];
        let rows: Vec<f64> = (0..count)
            .flat_map(|t| row(t).iter().map(|&x| f64::from(x)))
            .collect();
        let mut whole = cache.clone();
        whole.add(kept, &rows);
        for (place, column) in
            (0..keys).flat_map(|place| (0..columns).map(move |column| (place, column)))
        {
            // Halves hold the new rows before they are read.
            let read = if format.is_quantized() {
                &cache
            } else {
                &whole
            };
            let value = match place {
                _ if place >= there => 0.0,
                _ if place >= kept && format.is_quantized() => {
                    rows[(place - kept) * columns + column]
                }
                _ => read.value(kept, place, column),
            };
            seen.push(value as f32);
        }
        after.extend(whole.words);
    }
    Sides {
        before,
        after,
        seen,
    }
}

fn case(
    seed: &mut Seed,
    formats: CacheFormats,
    shape: [usize; 6],
    kept: usize,
    kind: Kind,
) -> Case {
    let [batch, keys, heads, kv_heads, width, queries] = shape;
    let sizes = AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    };
    let scale =
        seed.float(0.1, 3.0) / (width as f32).sqrt() * if kind == Kind::Wide { 1e-6 } else { 1.0 };
    let (columns, is_part) = (kv_heads * width, seed.size(0, 1) == 1);
    let mut operands = [heads, kv_heads, kv_heads]
        .map(|heads| operand(seed, batch * queries, heads * width, is_part));
    operands[1..]
        .iter_mut()
        .for_each(|operand| shape_values(seed, kind, operand));
    let spans = spans(batch, kept, queries, is_part);
    let made = [0, 1].map(|side| {
        let format = formats.each()[side];
        sides(
            seed,
            (format, side == 0),
            [batch, keys, columns],
            &spans,
            kind,
            &operands[1 + side],
        )
    });
    let [k, v] = [0, 1].map(|side: usize| Operand {
        data: made[side].seen.clone(),
        row: columns,
        start: 0,
    });
    let whole = [operands[0].clone(), k, v];
    let mut expected = Vec::new();
    for (item, query) in (0..batch).flat_map(|item| (0..queries).map(move |query| (item, query))) {
        let [kept, new] = [0, 1].map(|index| spans[2 * item + index] as usize);
        let there = (kept + new).min(keys);
        let seen = (kept + query + 1).min(there);
        expected.extend(
            (0..heads).flat_map(|head| {
                expected_head(&whole, sizes, [item, query, head], scale, None, seen)
            }),
        );
    }
    let name = format!("{sizes:?} kept {kept} parts {is_part} {kind:?}");
    let places = [0, 1, 2].map(|index| (operands[index].row, operands[index].start));
    let mut inputs: Vec<Data> = operands
        .into_iter()
        .map(|operand| Data::F32(operand.data))
        .collect();
    inputs.push(Data::U32(spans));
    let kept = made
        .into_iter()
        .map(|side| Output::ExactInPlace(side.before, side.after));
    let outputs = std::iter::once(Output::Near(expected))
        .chain(kept)
        .collect();
    Case::new(name, inputs, outputs, move |plan, x, y| {
        let columns = [0, 1, 2].map(|index| (x[index], places[index].0, places[index].1));
        let [k_format, v_format] = formats.each();
        plan.attention_cached(
            columns,
            [(y[1], k_format), (y[2], v_format)],
            x[3],
            y[0],
            sizes,
            scale,
        )
    })
}
