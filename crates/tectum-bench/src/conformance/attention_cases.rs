//! Cases of attention, rotary positions, strided copies and concatenations.

use tectum::{AttentionSizes, CacheFormat, Strided};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("attention", |seed: &mut Seed| attention_cases(seed, false)),
        Suite::new("attention_mask", |seed: &mut Seed| {
            attention_cases(seed, true)
        }),
        Suite::new("attention_cached", cached_cases),
        Suite::new("rotary", rotary_cases),
        Suite::new("copy_strided", strided_cases),
        Suite::new("concat", concat_cases),
    ]
}

/// Batch, queries, keys, heads, heads of keys and values, width: empty, one, a tile and one more,
/// grouped heads, long rows.
fn attention_cases(seed: &mut Seed, has_mask: bool) -> Vec<Case> {
    let mut shapes = vec![
        [0, 3, 4, 2, 2, 8],
        [1, 1, 1, 1, 1, 1],
        [1, 16, 16, 1, 1, 16],
        [2, 17, 17, 3, 3, 5],
        [1, 1, 700, 4, 2, 64],
        [3, 9, 33, 4, 1, 32],
        [1, 70, 70, 2, 2, 128],
        [2, 40, 1100, 2, 1, 24],
        [1, 130, 130, 12, 12, 32],
    ];
    shapes.extend((0..4).map(|_| {
        let kv = seed.size(1, 3);
        [
            seed.size(1, 3),
            seed.size(1, 60),
            seed.size(60, 90),
            kv * seed.size(1, 3),
            kv,
            seed.size(1, 128),
        ]
    }));
    let mut cases = Vec::new();
    for (index, shape) in shapes.into_iter().enumerate() {
        cases.push(attention(
            seed,
            shape,
            has_mask,
            index % 2 == 1,
            index % 3 == 0,
        ));
    }
    cases
}

#[derive(Clone)]
pub(super) struct Operand {
    pub data: Vec<f32>,
    pub row: usize,
    pub start: usize,
}

pub(super) fn operand(seed: &mut Seed, rows: usize, columns: usize, is_part: bool) -> Operand {
    let (start, more) = if is_part {
        (seed.size(0, 9), seed.size(0, 9))
    } else {
        (0, 0)
    };
    let row = start + columns + more;
    Operand {
        data: seed.floats(rows * row, -1.0, 1.0),
        row,
        start,
    }
}

fn attention(
    seed: &mut Seed,
    [batch, queries, keys, heads, kv_heads, width]: [usize; 6],
    has_mask: bool,
    causal: bool,
    is_part: bool,
) -> Case {
    let sizes = AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    };
    // Products of a wide range too, so that the sums are rescaled.
    let scale = seed.float(0.1, 6.0) / (width as f32).sqrt();
    let operands = [(queries, heads), (keys, kv_heads), (keys, kv_heads)]
        .map(|(rows, heads)| operand(seed, batch * rows, heads * width, is_part));
    let hides = |word: u32| word.is_multiple_of(3);
    let mut added = |key: usize| {
        if !key.is_multiple_of(keys) && hides(seed.word()) {
            f32::NEG_INFINITY
        } else {
            seed.float(-1.0, 1.0)
        }
    };
    let mask: Vec<f32> = (0..batch * keys).map(&mut added).collect();
    let mut expected = Vec::new();
    for (item, query) in (0..batch).flat_map(|item| (0..queries).map(move |query| (item, query))) {
        for head in 0..heads {
            let seen = if causal {
                (keys + query + 1).saturating_sub(queries).min(keys)
            } else {
                keys
            };
            let mask = has_mask.then(|| &mask[item * keys..][..keys]);
            expected.extend(expected_head(
                &operands,
                sizes,
                [item, query, head],
                scale,
                mask,
                seen,
            ));
        }
    }
    let shape = format!("{sizes:?} mask {has_mask} causal {causal} parts {is_part}");
    let places = [0, 1, 2].map(|index| (operands[index].row, operands[index].start));
    let mut inputs: Vec<Data> = operands
        .into_iter()
        .map(|operand| Data::F32(operand.data))
        .collect();
    inputs.push(Data::F32(mask));
    Case::new(
        shape,
        inputs,
        vec![Output::Near(expected)],
        move |plan, x, y| {
            let columns = [0, 1, 2].map(|index| (x[index], places[index].0, places[index].1));
            plan.attention(
                columns,
                has_mask.then_some(x[3]),
                y[0],
                sizes,
                scale,
                causal,
            )
        },
    )
}

/// A product's error is a random walk of its roundings; a weight's is that and its exponential's
/// error, relative to itself; a sum's is a random walk of its own roundings.
pub(super) fn expected_head(
    operands: &[Operand; 3],
    sizes: AttentionSizes,
    [item, query, head]: [usize; 3],
    scale: f32,
    mask: Option<&[f32]>,
    seen: usize,
) -> Vec<Expected> {
    let AttentionSizes {
        queries,
        keys,
        heads,
        kv_heads,
        width,
        ..
    } = sizes;
    let kv_head = head / (heads / kv_heads);
    let row = |operand: &Operand, row: usize, head: usize| -> Vec<f64> {
        operand.data[row * operand.row + operand.start + head * width..][..width]
            .iter()
            .map(|&x| f64::from(x))
            .collect()
    };
    let q = row(&operands[0], item * queries + query, head);
    let (mut scores, mut error) = (Vec::new(), 0.0f64);
    for key in 0..seen {
        let k = row(&operands[1], item * keys + key, kv_head);
        let (product, magnitude) = q.iter().zip(&k).fold((0.0, 0.0), |(sum, size), (q, k)| {
            (sum + q * k, size + (q * k).abs())
        });
        let added = mask.map_or(0.0, |mask| f64::from(mask[key]));
        let score = f64::from(scale) * product + added;
        let walk = 5.0 * (width as f64).sqrt() + 4.0;
        if score.is_finite() {
            error = error
                .max(ROUNDING * (walk * f64::from(scale) * magnitude + 4.0 * score.abs() + 4.0));
        }
        scores.push(score);
    }
    let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores
        .iter()
        .map(|score| (score - greatest).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let relative =
        2.0 * error + ROUNDING * (5.0 * (keys as f64).sqrt() + 12.0 + keys as f64 / 16.0);
    let mut expected = Vec::new();
    for column in 0..width {
        let (mut value, mut magnitude) = (0.0, 0.0);
        for (key, weight) in weights.iter().enumerate() {
            let v = row(&operands[2], item * keys + key, kv_head)[column];
            value += weight / total * v;
            magnitude += weight / total * v.abs();
        }
        let value = if seen == 0 { f64::NAN } else { value };
        expected.push(Expected {
            value,
            bound: relative * magnitude,
        });
    }
    expected
}

/// Batch, capacity of the cache, heads, heads of keys and values, width, queries; then how many
/// keys are kept: none, some, up to the end and beyond it, more than a block; one query and many,
/// with and without padding.
fn cached_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [
        ([1, 4, 1, 1, 1, 1], 0),
        ([1, 64, 2, 1, 8, 1], 5),
        ([2, 20, 4, 2, 5, 1], 19),
        ([1, 700, 4, 2, 64, 1], 690),
        ([1, 1100, 3, 3, 128, 1], 1000),
        ([1, 40, 2, 2, 8, 7], 0),
        ([2, 40, 4, 2, 8, 17], 10),
        ([1, 32, 6, 2, 16, 20], 12),
        ([1, 700, 4, 1, 32, 33], 600),
        ([1, 24, 2, 1, 4, 16], 16),
        ([3, 12, 2, 1, 4, 1], 2),
        ([3, 12, 2, 1, 4, 5], 2),
    ];
    let case = |(shape, kept): ([usize; 6], usize)| {
        let is_part = seed.size(0, 1) == 1;
        cached(seed, shape, kept, is_part)
    };
    shapes.into_iter().map(case).collect()
}

/// Tokens kept and new ones of each item: the second has fewer kept than the first; in every other
/// case the last rows are padding, and in the last of several items all rows are.
pub(super) fn spans(batch: usize, kept: usize, queries: usize, is_part: bool) -> Vec<u32> {
    let new = |item: usize| match is_part {
        true => queries,
        false if item > 0 && item + 1 == batch => 0,
        false => queries.div_ceil(2),
    };
    (0..batch)
        .flat_map(|item| [(kept - kept.min(item)) as u32, new(item) as u32])
        .collect()
}

fn cached(
    seed: &mut Seed,
    [batch, keys, heads, kv_heads, width, queries]: [usize; 6],
    kept: usize,
    is_part: bool,
) -> Case {
    let sizes = AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    };
    let scale = seed.float(0.1, 6.0) / (width as f32).sqrt();
    let columns = kv_heads * width;
    let operands = [heads, kv_heads, kv_heads]
        .map(|heads| operand(seed, batch * queries, heads * width, is_part));
    let caches = [0, 1].map(|_| seed.floats(batch * keys * columns, -1.0, 1.0));
    let mut after = caches.clone();
    let spans = spans(batch, kept, queries, is_part);
    for item in 0..batch {
        let [kept, new] = [0, 1].map(|index| spans[2 * item + index] as usize);
        for t in 0..new.min(keys - kept) {
            for (cache, operand) in after.iter_mut().zip(&operands[1..]) {
                let row =
                    &operand.data[(item * queries + t) * operand.row + operand.start..][..columns];
                cache[(item * keys + kept + t) * columns..][..columns].copy_from_slice(row);
            }
        }
    }
    let [k, v] = after.clone().map(|data| Operand {
        data,
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
    let shape = format!("{sizes:?} kept {kept} parts {is_part}");
    let places = [0, 1, 2].map(|index| (operands[index].row, operands[index].start));
    let mut inputs: Vec<Data> = operands
        .into_iter()
        .map(|operand| Data::F32(operand.data))
        .collect();
    inputs.push(Data::U32(spans));
    let kept = caches.into_iter().zip(after).map(|(before, after)| {
        let exactly = after
            .into_iter()
            .map(|value| Expected::exactly(f64::from(value)))
            .collect();
        Output::NearInPlace(before, exactly)
    });
    let outputs = std::iter::once(Output::Near(expected))
        .chain(kept)
        .collect();
    Case::new(shape, inputs, outputs, move |plan, x, y| {
        let columns = [0, 1, 2].map(|index| (x[index], places[index].0, places[index].1));
        plan.attention_cached(
            columns,
            [1, 2].map(|index| (y[index], CacheFormat::F32)),
            x[3],
            y[0],
            sizes,
            scale,
        )
    })
}

fn rotary_cases(seed: &mut Seed) -> Vec<Case> {
    // Rows, heads, width, positions.
    let shapes = [
        [0, 2, 4, 1],
        [1, 1, 2, 1],
        [7, 3, 6, 7],
        [60, 4, 32, 20],
        [3, 2, 512, 3],
        [33, 9, 64, 33],
    ];
    let mut cases = Vec::new();
    for [rows, heads, width, count] in shapes {
        let x = seed.floats(rows * heads * width, -2.0, 2.0);
        let positions: Vec<u32> = (0..count).map(|_| seed.word() % 4096).collect();
        let base = [10_000.0f32, 500_000.0][rows % 2];
        let half = width / 2;
        let mut expected = Vec::new();
        for index in 0..x.len() {
            let (row, column) = (index / (heads * width), index % width);
            let is_second = column >= half;
            // By the operation's definition the frequency is rounded and the angle is one f32
            // product.
            let frequency = f64::from(base).powf(-((column % half) as f64) / half as f64) as f32;
            let angle = positions[row % count] as f32 * frequency;
            let (sine, cosine) = f64::from(angle).sin_cos();
            let (here, other) = (
                f64::from(x[index]),
                f64::from(
                    x[if is_second {
                        index - half
                    } else {
                        index + half
                    }],
                ),
            );
            let value = if is_second {
                here * cosine + other * sine
            } else {
                here * cosine - other * sine
            };
            expected.push(Expected {
                value,
                bound: 8.0 * ROUNDING * (here.abs() + other.abs()),
            });
        }
        let inputs = vec![Data::F32(x), Data::U32(positions)];
        cases.push(Case::new(
            format!("{rows} × {heads} × {width}, base {base}"),
            inputs,
            vec![Output::Near(expected)],
            move |plan, x, y| plan.rotary(x[0], x[1], y[0], width, heads, base),
        ));
    }
    cases
}

fn strided_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [
        [0, 2, 3, 4],
        [1, 1, 1, 1],
        [2, 3, 4, 5],
        [5, 1, 7, 64],
        [1, 300, 1, 33],
        [9, 8, 7, 6],
    ];
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [1, 3, 0, 2]];
    let mut cases = Vec::new();
    for (shape, order) in shapes
        .into_iter()
        .flat_map(|shape| orders.map(|order| (shape, order)))
    {
        let margin = seed.size(0, 70);
        let x: Vec<u32> = (0..shape.iter().product::<usize>() + margin)
            .map(|_| seed.word())
            .collect();
        let strides: Vec<usize> = (0..4)
            .map(|axis| shape[axis + 1..].iter().product())
            .collect();
        let axes: Vec<Strided> = order
            .iter()
            .map(|&axis| Strided {
                size: shape[axis],
                stride: strides[axis],
            })
            .collect();
        let mut expected = Vec::new();
        for index in 0..shape.iter().product::<usize>() {
            let (mut rest, mut at) = (index, margin);
            for axis in axes.iter().rev() {
                at += rest % axis.size * axis.stride;
                rest /= axis.size;
            }
            expected.push(x[at]);
        }
        let output = vec![Output::Exact(Data::U32(expected))];
        cases.push(Case::new(
            format!("{shape:?} as {order:?} from {margin}"),
            vec![Data::U32(x)],
            output,
            move |plan, x, y| plan.copy_strided(x[0], margin, &axes, y[0]),
        ));
    }
    cases
}

fn concat_cases(seed: &mut Seed) -> Vec<Case> {
    let shapes = [
        [1, 1, 1],
        [3, 0, 5],
        [4, 6, 0],
        [1, 1000, 7],
        [300, 3, 2],
        [17, 64, 65],
    ];
    let case = |[rows, m, n]: [usize; 3]| {
        let [a, b] = [m, n].map(|len| (0..rows * len).map(|_| seed.word()).collect::<Vec<u32>>());
        let expected = (0..rows)
            .flat_map(|row| [&a[row * m..][..m], &b[row * n..][..n]].concat())
            .collect();
        Case::new(
            format!("{rows} × {m} and {n}"),
            vec![Data::U32(a), Data::U32(b)],
            vec![Output::Exact(Data::U32(expected))],
            move |plan, x, y| plan.concat(x[0], x[1], y[0], rows),
        )
    };
    shapes.into_iter().map(case).collect()
}
