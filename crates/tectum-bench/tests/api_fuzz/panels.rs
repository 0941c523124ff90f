//! Rows as codes with one scale each, and products with weights in panels of every format.

use std::rc::Rc;

use tectum::DType;
use tectum::kernel::pack::{Half, bf16_bits, f16_bits, to_bf16, to_f16};
use tectum::operation::product::panel_format::PanelFormat;

use super::memory::{Seen, Space, Word};
use super::operation::{Bound, Operation, all, product, reads, sum, unless, writes};
use super::plans::Kind;
use super::products::{dot, ended, known, tail};
use super::world::World;

/// Elements that are rotated together.
const BLOCK: usize = 128;
/// Columns of a panel.
const PANEL: usize = 16;
/// Words of a panel of codes before its codes.
const HEAD: usize = 64;
/// Maximum length of rows whose products of codes are exact.
const MAX_CODED: usize = 1 << 17;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    if world.chance(3) {
        quantize(world, plan)
    } else {
        panels(world, plan)
    }
}

/// A row as codes.
struct Coded {
    /// Value of one step.
    scale: f64,
    bound: f64,
    /// Each code; if `true`, the next greater one is also allowed.
    codes: Vec<(i32, bool)>,
}

/// The sums of a block with the signs of the Hadamard matrix of 128 rows, and the error of f32.
fn rotated(block: &[f64]) -> (Vec<f64>, f64) {
    let signed = |row: usize| {
        block.iter().enumerate().map(move |(col, x)| {
            if (row & col).count_ones().is_multiple_of(2) {
                *x
            } else {
                -*x
            }
        })
    };
    (
        (0..BLOCK).map(|row| signed(row).sum()).collect(),
        sum(block).1,
    )
}

/// None if the row is at the limit of what counts as zeros, or its errors exceed a code.
fn coded(terms: &[f64]) -> Option<Coded> {
    let blocks: Vec<(Vec<f64>, f64)> = terms.chunks(BLOCK).map(rotated).collect();
    let values: Vec<f64> = blocks
        .iter()
        .flat_map(|(block, _)| block.iter().copied())
        .collect();
    let slack = blocks.iter().map(|(_, slack)| *slack).fold(0.0, f64::max);
    let greatest = values.iter().map(|value| value.abs()).fold(0.0, f64::max);
    let least = 2f64.powi(-100);
    if greatest + slack < least {
        return Some(Coded {
            scale: 0.0,
            bound: 0.0,
            codes: vec![(0, false); values.len()],
        });
    }
    let tolerance = 127.0 * (2.0 * slack / greatest + 8.0 * f64::from(f32::EPSILON));
    if greatest - slack < least || tolerance > 0.25 {
        return None;
    }
    let code = |value: &f64| {
        let code = value / greatest * 127.0;
        let is_open = (code - code.floor() - 0.5).abs() <= tolerance;
        (
            if is_open { code.floor() } else { code.round() } as i32,
            is_open,
        )
    };
    let scale = greatest / 127.0;
    Some(Coded {
        scale,
        bound: slack / 127.0 + 4.0 * f64::from(f32::EPSILON) * scale,
        codes: values.iter().map(code).collect(),
    })
}

/// The word of four codes; none if one is ambiguous.
fn word_of(codes: &[(i32, bool)]) -> Word {
    if codes.iter().any(|(_, is_open)| *is_open) {
        return Word::Unknown;
    }
    Word::Exact(
        codes
            .iter()
            .rev()
            .fold(0, |word, (code, _)| word << 8 | code.cast_unsigned() & 0xff),
    )
}

fn quantize(world: &mut World, plan: usize) -> Operation {
    let rows = world.below(5);
    let cols = if world.chance(4) {
        1 + world.below(300)
    } else {
        1 + world.below(20)
    };
    let (x, codes, scales) = match world.random.below(40) {
        // A row longer than the limit.
        0 => {
            let len = world.extreme();
            (
                world.fresh(plan, Kind::State, DType::F32, len),
                world.target(plan, DType::U32, 32),
                world.target(plan, DType::F32, 1),
            )
        }
        _ => {
            let words = rows * cols.div_ceil(BLOCK) * 32;
            (
                world.source(plan, DType::F32, rows * cols),
                world.target(plan, DType::U32, words),
                world.target(plan, DType::F32, rows),
            )
        }
    };
    let mut given = [if x.len == rows * cols { cols } else { x.len }];
    world.distort(&mut given);
    let ([cols], rows) = (given, scales.len);
    let words = cols.div_ceil(BLOCK) as u128 * 32;
    let fits = cols > 0
        && x.len as u128 == product(&[rows, cols])
        && codes.len as u128 == rows as u128 * words;
    Operation {
        text: format!("quantize_rows {x} {codes} {scales} {cols}"),
        refused: unless(fits),
        launches: if rows == 0 {
            vec![]
        } else {
            vec![vec![
                reads(x, DType::F32),
                writes(codes, DType::U32),
                writes(scales, DType::F32),
            ]]
        },
        given: vec![x, codes, scales],
        record: Box::new(move |plan| plan.quantize_rows(x.view, codes.view, scales.view, cols)),
        step: Rc::new(move |space| {
            let numbers = space.numbers(&x);
            let found: Vec<Option<Coded>> = numbers
                .chunks(cols)
                .map(|row| all(row).and_then(|row| coded(&row)))
                .collect();
            let words = |row: &Option<Coded>| match row {
                Some(row) => row.codes.chunks(4).map(word_of).collect(),
                None => vec![Word::Unknown; codes.len / rows],
            };
            space.put(&codes, &found.iter().flat_map(words).collect::<Vec<_>>());
            space.put_numbers(
                &scales,
                found
                    .iter()
                    .map(|row| row.as_ref().map(|row| (row.scale, row.bound)))
                    .collect::<Vec<_>>(),
            );
        }),
    }
}

/// Which half-width float a format stores.
fn half_of(format: PanelFormat) -> Option<Half> {
    match format {
        PanelFormat::F16 => Some(Half::F16),
        PanelFormat::Bf16 => Some(Half::Bf16),
        PanelFormat::F32 | PanelFormat::Int8 => None,
    }
}

/// Words of a panel of `k` rows, for any `k`.
fn panel_words(format: PanelFormat, k: usize) -> u128 {
    let k = k as u128;
    match format {
        PanelFormat::F32 => k * 16,
        PanelFormat::F16 | PanelFormat::Bf16 => k.next_multiple_of(8) * 8,
        PanelFormat::Int8 => 64 + k.next_multiple_of(128) * 4,
    }
}

fn words(format: PanelFormat, k: usize, n: usize) -> u128 {
    n.div_ceil(PANEL) as u128 * panel_words(format, k)
}

/// Weights [k, n] as the words of panels, as the formats are documented; for codes as the library
/// packs them, which is compared with the columns' own codes.
fn packed(format: PanelFormat, weights: &[f32], [k, n]: [usize; 2]) -> Vec<u32> {
    let mut found = vec![u32::MAX; words(format, k, n) as usize];
    format.pack(weights, [k, n], [n, 1], &mut found);
    if format == PanelFormat::Int8 {
        (0..n).for_each(|col| {
            check_column(
                &found,
                &weights
                    .iter()
                    .skip(col)
                    .step_by(n)
                    .map(|x| f64::from(*x))
                    .collect::<Vec<_>>(),
                col,
            )
        });
        return found;
    }
    let mut panels = vec![0u32; found.len()];
    for (row, col) in (0..k).flat_map(|row| (0..n).map(move |col| (row, col))) {
        let (bits, lane) = (weights[row * n + col].to_bits(), col % PANEL);
        let first = col / PANEL * panel_words(format, k) as usize;
        match half_of(format) {
            None => panels[first + row * PANEL + lane] = bits,
            Some(half) => {
                panels[first + (row * PANEL + lane) / 2] |= if half == Half::F16 {
                    to_f16(bits)
                } else {
                    to_bf16(bits)
                } << (16 * (lane % 2))
            }
        }
    }
    assert_eq!(found, panels, "{format} panels of [{k}, {n}]");
    panels
}

/// Compares the codes of a column in panels with its own.
fn check_column(words: &[u32], column: &[f64], col: usize) {
    let Some(coded) = coded(column) else { return };
    let panel = CodedPanel::of(words, column.len(), col);
    let scale = f64::from(f32::from_bits(panel.words[col % PANEL])) * BLOCK as f64;
    assert!(
        (scale - coded.scale).abs() <= coded.bound,
        "scale {scale} of column {col}, {} expected",
        coded.scale
    );
    let right = |(at, (low, is_open)): (usize, &(i32, bool))| {
        let code = panel.code(at, col);
        code == *low || (*is_open && code == low + 1)
    };
    assert!(
        coded.codes.iter().enumerate().all(right),
        "the codes of column {col}"
    );
    assert!(panel.is_summed(col), "the sum of column {col}");
}

/// A panel of codes.
struct CodedPanel<'a> {
    words: &'a [u32],
}

impl<'a> CodedPanel<'a> {
    fn of(words: &'a [u32], k: usize, col: usize) -> Self {
        let count = panel_words(PanelFormat::Int8, k) as usize;
        Self {
            words: &words[col / PANEL * count..][..count],
        }
    }

    fn code(&self, at: usize, col: usize) -> i32 {
        i32::from(
            self.words[HEAD + at / 4 * PANEL + col % PANEL].to_le_bytes()[at % 4].cast_signed(),
        )
    }

    fn codes(&self, col: usize) -> impl Iterator<Item = i32> {
        (0..(self.words.len() - HEAD) / PANEL * 4).map(move |at| self.code(at, col))
    }

    /// Whether its head contains the sum of a column's codes.
    fn is_summed(&self, col: usize) -> bool {
        self.words[PANEL + col % PANEL].cast_signed() == self.codes(col).sum::<i32>()
    }
}

/// A constant of weights in panels, or occasionally any view with the same number of words.
fn weights(world: &mut World, plan: usize, format: PanelFormat, [k, n]: [usize; 2]) -> Seen {
    if world.chance(6) {
        return world.source(plan, format.dtype(), words(format, k, n) as usize);
    }
    let is_wide = world.chance(3);
    let mut one = |_| match is_wide {
        true => (world.random.bits() >> 40) as f32 / 83_886.0 - 100.0,
        false => world.random.below(65) as f32 / 4.0 - 8.0,
    };
    let weights: Vec<f32> = (0..k * n).map(&mut one).collect();
    world.note(format!("PanelFormat::pack {format} [{k}, {n}]"));
    let data = packed(format, &weights, [k, n]);
    world.constant(plan, format.dtype(), data)
}

/// The operands of a product with panels, and its sizes; occasionally extreme sizes that only the
/// smallest operands allow.
fn operands(world: &mut World, plan: usize, format: PanelFormat) -> ([Seen; 3], [usize; 3]) {
    match world.random.below(60) {
        // As many rows as a slot can have.
        0 => {
            let (m, state) = (1 << 60, Kind::State);
            let b = weights(world, plan, format, [1, 1]);
            (
                [
                    world.fresh(plan, state, DType::F32, m),
                    b,
                    world.fresh(plan, state, DType::F32, m),
                ],
                [m, 1, 1],
            )
        }
        // Codes over rows too long for exact sums, and as long as they may be.
        1 if format == PanelFormat::Int8 => {
            let k = MAX_CODED + world.below(2);
            let b = world.fresh(
                plan,
                Kind::State,
                format.dtype(),
                words(format, k, 1) as usize,
            );
            (
                [
                    world.source(plan, DType::F32, 0),
                    b,
                    world.target(plan, DType::F32, 0),
                ],
                [0, k, 1],
            )
        }
        _ => {
            let k = if world.chance(4) {
                1 + world.below(300)
            } else {
                1 + world.below(20)
            };
            let [m, n] = [
                world.below(16),
                1 + world.below(if k > 20 { 20 } else { 40 }),
            ];
            let a = world.source(plan, DType::F32, m * k);
            let b = weights(world, plan, format, [k, n]);
            ([a, b, world.target(plan, DType::F32, m * n)], [m, k, n])
        }
    }
}

fn panels(world: &mut World, plan: usize) -> Operation {
    let format = world.random.pick(&PanelFormat::ALL);
    let ([a, b, y], mut sizes) = operands(world, plan, format);
    let is_small = product(&[sizes[0], sizes[2]]) < 1 << 20;
    let (tail, views) = if is_small {
        tail(world, plan, DType::F32, [sizes[2], sizes[0] * sizes[2]])
    } else {
        Default::default()
    };
    world.distort(&mut sizes);
    let [m, k, n] = sizes;
    let lengths = a.len as u128 == product(&[m, k])
        && b.len as u128 == words(format, k, n)
        && y.len as u128 == product(&[m, n]);
    let rest = views[0].is_none_or(|bias| bias.len == n)
        && views[1].is_none_or(|residual| residual.len as u128 == product(&[m, n]));
    // Panel counts include padding.
    let is_counted = (k as u128 + 1024) * (n as u128 + 1024) <= isize::MAX as u128;
    let is_exact = format != PanelFormat::Int8 || k <= MAX_CODED;
    let rest_of = |mut launch: Vec<Bound>| {
        launch.extend(views.iter().flatten().map(|seen| reads(*seen, DType::F32)));
        launch
    };
    let is_quantized = format == PanelFormat::Int8;
    let product_launch = rest_of(vec![reads(b, format.dtype()), writes(y, DType::F32)]);
    let launches = match is_quantized {
        _ if y.len == 0 => vec![],
        // Codes of `a` are in temporaries.
        true => vec![vec![reads(a, DType::F32)], product_launch],
        false => vec![
            [reads(a, DType::F32)]
                .into_iter()
                .chain(product_launch)
                .collect(),
        ],
    };
    Operation {
        text: format!(
            "gemm_panels {format} {a} {b} {y} {sizes:?} {:?} {:?}",
            tail.activation,
            views.map(|seen| seen.map(|seen| seen.to_string()))
        ),
        refused: unless(lengths && rest && is_counted && is_exact && k > 0),
        launches,
        given: [a, b, y]
            .into_iter()
            .chain(views.into_iter().flatten())
            .collect(),
        record: Box::new(move |plan| {
            plan.gemm_panels(a.view, (b.view, format), y.view, sizes, tail)
        }),
        step: Rc::new(move |space| {
            let products = if is_quantized {
                coded_products(space, [a, b], [k, n])
            } else {
                float_products(space, format, [a, b], [k, n])
            };
            let [bias, residual] = views.map(|seen| seen.map(|seen| space.numbers(&seen)));
            let one = |place: usize| {
                Some(ended(
                    products[place]?,
                    tail.activation,
                    known(&bias, place % n)?,
                    known(&residual, place)?,
                ))
            };
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// The elements of a product with floats in panels, row by row.
fn float_products(
    space: &Space<'_>,
    format: PanelFormat,
    [a, b]: [Seen; 2],
    [k, n]: [usize; 2],
) -> Vec<Option<(f64, f64)>> {
    let left = space.numbers(&a);
    let (floats, halves) = (
        space.numbers(&Seen {
            dtype: DType::F32,
            ..b
        }),
        space.integers(&b),
    );
    let right = |row: usize, col: usize| {
        let (first, lane) = (col / PANEL * panel_words(format, k) as usize, col % PANEL);
        let Some(half) = half_of(format) else {
            return floats[first + row * PANEL + lane];
        };
        let bits = halves[first + (row * PANEL + lane) / 2]? >> (16 * (lane % 2)) & 0xffff;
        let value = f32::from_bits(if half == Half::F16 {
            f16_bits(bits)
        } else {
            bf16_bits(bits)
        });
        (!value.is_subnormal()).then_some(f64::from(value))
    };
    let one =
        |place: usize| dot((0..k).map(|i| Some((left[place / n * k + i], right(i, place % n)))));
    (0..a.len / k * n).map(one).collect()
}

/// The elements of a product of codes, row by row: exact sums, times the scales of row and column.
fn coded_products(
    space: &Space<'_>,
    [a, b]: [Seen; 2],
    [k, n]: [usize; 2],
) -> Vec<Option<(f64, f64)>> {
    let rows: Vec<Option<Coded>> = space
        .numbers(&a)
        .chunks(k)
        .map(|row| all(row).and_then(|row| coded(&row)))
        .collect();
    let words: Option<Vec<u32>> = space.integers(&b).into_iter().collect();
    let column = |col: usize| {
        let panel = CodedPanel::of(words.as_ref()?, k, col);
        let scale = f32::from_bits(panel.words[col % PANEL]);
        let is_known =
            panel.is_summed(col) && (scale == 0.0 || scale.is_normal()) && scale.abs() < 1e6;
        is_known.then(|| (f64::from(scale), panel.codes(col).collect::<Vec<i32>>()))
    };
    let columns: Vec<_> = (0..n).map(column).collect();
    let one = |place: usize| {
        let (row, (step, codes)) = (rows[place / n].as_ref()?, columns[place % n].as_ref()?);
        let sum: i64 = row
            .codes
            .iter()
            .zip(codes)
            .map(|((code, _), other)| i64::from(*code) * i64::from(*other))
            .sum();
        let open: f64 = row
            .codes
            .iter()
            .zip(codes)
            .map(|((_, is_open), other)| {
                if *is_open {
                    f64::from(other.abs())
                } else {
                    0.0
                }
            })
            .sum();
        let bound = (sum as f64 * step).abs()
            * (row.bound + 4.0 * f64::from(f32::EPSILON) * row.scale)
            + open * row.scale * step.abs();
        Some((sum as f64 * row.scale * step, bound))
    };
    (0..rows.len() * n).map(one).collect()
}
