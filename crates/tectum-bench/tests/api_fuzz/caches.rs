//! Attention over caches of every format: the cached words, and the values that queries see.

use std::rc::Rc;

use tectum::kernel::pack::{f16_bits, to_f16};
use tectum::{AttentionSizes, CacheFormat, CacheFormats, DType, ErrorKind};

use super::memory::{Seen, Space, Word};
use super::operation::{Bound, Operation, changes, product, reads, unless, writes};
use super::plans::Kind;
use super::products::{dot, mixed};
use super::world::World;

/// Values of a block.
const BLOCK: usize = 32;
/// Tokens that are quantized together.
const WINDOW: usize = 64;
/// The first tokens of an item, which are never quantized.
const FIRST: usize = 4;

/// Arguments of an operation.
#[derive(Clone)]
struct Call {
    sizes: AttentionSizes,
    /// For q, k and v: the view, the columns of a row, the first column.
    operands: [(Seen, usize, usize); 3],
    caches: [(Seen, CacheFormat); 2],
    /// For each call; the caches are those after the previous call.
    spans: Vec<Seen>,
    y: Seen,
}

pub fn draw(world: &mut World, plan: usize) -> Operation {
    let call = drawn(world, plan);
    let Call {
        sizes,
        operands,
        caches,
        y,
        ..
    } = call.clone();
    let launches = if y.len == 0 {
        vec![]
    } else {
        call.spans
            .iter()
            .flat_map(|spans| launches(&call, *spans))
            .collect()
    };
    let given = operands
        .iter()
        .map(|operand| operand.0)
        .chain(caches.map(|cache| cache.0))
        .chain(call.spans.iter().copied())
        .chain([y])
        .collect();
    let spans = call.spans.clone();
    let shown: Vec<String> = spans.iter().map(Seen::to_string).collect();
    Operation {
        text: format!(
            "attention_cached {} caches {} spans {shown:?} {y} {sizes:?}",
            operands
                .map(|(seen, row, start)| format!("{seen} row {row} from {start}"))
                .join(" "),
            caches
                .map(|(cache, format)| format!("{cache} {format}"))
                .join(" ")
        ),
        refused: refused(&call),
        launches,
        given,
        record: Box::new(move |plan| {
            let columns = operands.map(|(seen, row, start)| (seen.view, row, start));
            let caches = caches.map(|(cache, format)| (cache.view, format));
            spans.iter().try_for_each(|spans| {
                plan.attention_cached(columns, caches, spans.view, y.view, sizes, 0.5)
            })
        }),
        step: Rc::new(move |space| {
            if y.len > 0 {
                call.spans.iter().for_each(|spans| run(space, &call, spans));
            }
        }),
    }
}

fn drawn(world: &mut World, plan: usize) -> Call {
    let (kv_heads, group, width) = (
        1 + world.below(2),
        1 + world.below(2),
        [1, 3, 8, 33][world.below(4)],
    );
    let keys = if world.chance(3) {
        60 + world.below(80)
    } else {
        1 + world.below(12)
    };
    let queries = match world.random.below(8) {
        0..3 => 1,
        3 => 60 + world.below(12),
        _ => 1 + world.below(9),
    };
    let (batch, heads) = (1 + world.below(2), kv_heads * group);
    let formats = match world.chance(30) {
        true => [(); 2].map(|()| world.random.pick(&CacheFormat::ALL)),
        false => world.random.pick(&CacheFormats::ALL).each(),
    };
    let spare = world.below(4);
    let operands = [heads, kv_heads, kv_heads].map(|heads| {
        let row = heads * width + spare;
        (
            world.source(plan, DType::F32, batch * queries * row),
            row,
            spare,
        )
    });
    let caches = formats.map(|format| {
        let len = batch * words(format, keys, kv_heads * width) as usize;
        let dtype = if format == CacheFormat::F32 {
            DType::F32
        } else {
            world
                .random
                .pick(&[DType::F32, DType::U32, DType::U32, DType::U32, DType::I32])
        };
        (cache(world, plan, dtype, len), format)
    });
    let spans = spans(world, plan, [batch, queries, keys]);
    let y = world.target(plan, DType::F32, batch * queries * heads * width);
    let mut sizes = [batch, queries, keys, heads, kv_heads, width];
    world.distort(&mut sizes);
    // An empty batch may have any sizes.
    if world.chance(40) {
        let place = 1 + world.below(5);
        (sizes[0], sizes[place]) = (0, world.extreme());
    }
    let [batch, queries, keys, heads, kv_heads, width] = sizes;
    Call {
        sizes: AttentionSizes {
            batch,
            queries,
            keys,
            heads,
            kv_heads,
            width,
        },
        operands,
        caches,
        spans,
        y,
    }
}

/// A new state, or occasionally one shared with other operations; an element type of 8 bytes does
/// not fit.
fn cache(world: &mut World, plan: usize, dtype: DType, len: usize) -> Seen {
    match world.random.below(40) {
        0..8 => world.changed(plan, dtype, len),
        8 => world.fresh(plan, Kind::State, DType::F64, len),
        _ => world.fresh(plan, Kind::State, dtype, len),
    }
}

/// Tokens kept and new, of up to three consecutive runs; occasionally arbitrary numbers.
fn spans(world: &mut World, plan: usize, [batch, queries, keys]: [usize; 3]) -> Vec<Seen> {
    if world.chance(8) {
        return vec![world.source(plan, DType::U32, 2 * batch)];
    }
    let mut kept: Vec<usize> = (0..batch)
        .map(|_| {
            if world.chance(2) {
                0
            } else {
                world.below(keys + 1)
            }
        })
        .collect();
    let mut spans = Vec::new();
    for _ in 0..1 + world.below(3) {
        let mut words = Vec::new();
        for kept in &mut kept {
            let new = if world.chance(3) {
                world.below(queries + 1)
            } else {
                queries
            };
            let wild = if world.chance(30) {
                world
                    .random
                    .pick(&[queries + 1, keys, u32::MAX as usize, u32::MAX as usize - 3])
            } else {
                new
            };
            words.extend([*kept as u32, wild as u32]);
            *kept = if world.chance(30) {
                world
                    .random
                    .pick(&[keys + 1, u32::MAX as usize, u32::MAX as usize - 3])
            } else {
                (*kept + new).min(keys)
            };
        }
        spans.push(world.constant(plan, DType::U32, words));
    }
    spans
}

fn refused(call: &Call) -> Option<ErrorKind> {
    let AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    } = call.sizes;
    let formats = call.caches.map(|(_, format)| format);
    if width > 128 || !CacheFormats::ALL.iter().any(|pair| pair.each() == formats) {
        return Some(ErrorKind::Unsupported);
    }
    let operand = |((seen, row, start), heads): ((Seen, usize, usize), usize)| {
        seen.len as u128 == product(&[batch, queries, row])
            && product(&[heads, width]).saturating_add(start as u128) <= row as u128
    };
    let columns = product(&[kv_heads, width]);
    // An empty batch has no memory to check.
    let cache = |(cache, format): (Seen, CacheFormat)| {
        let words = if batch == 0 {
            Some(0)
        } else {
            usize::try_from(columns)
                .ok()
                .map(|columns| words(format, keys, columns).saturating_mul(batch as u128))
        };
        words == Some(cache.len as u128) && cache.dtype.bytes() == 4
    };
    let operands = call
        .operands
        .into_iter()
        .zip([heads, kv_heads, kv_heads])
        .all(operand);
    let spans = call
        .spans
        .iter()
        .all(|spans| spans.len as u128 == product(&[2, batch]) && spans.dtype == DType::U32);
    let y = call.y.len as u128 == product(&[batch, queries, heads, width]);
    unless(
        operands
            && call.caches.into_iter().all(cache)
            && spans
            && y
            && keys > 0
            && kv_heads > 0
            && heads.is_multiple_of(kv_heads),
    )
}

/// Words of an item's cache, as the formats are documented.
fn words(format: CacheFormat, rows: usize, columns: usize) -> u128 {
    let (rows, columns) = (rows as u128, columns as u128);
    let aligned = |words: u128| words.next_multiple_of(64);
    match format {
        CacheFormat::F32 => rows * columns,
        CacheFormat::F16 => aligned(rows * columns.div_ceil(2)),
        _ => aligned(
            rows.next_multiple_of(BLOCK as u128) * row_words(format, columns)
                + (WINDOW + FIRST) as u128 * columns.div_ceil(2),
        ),
    }
}

/// Words of the codes and scales of a token.
fn row_words(format: CacheFormat, columns: u128) -> u128 {
    let blocks = columns.div_ceil(BLOCK as u128);
    if format == CacheFormat::Q8 {
        blocks * 8 + blocks.div_ceil(2)
    } else {
        blocks * 5
    }
}

/// The launches of one call.
fn launches(call: &Call, spans: Seen) -> Vec<Vec<Bound>> {
    let [q, k, v] = call.operands.map(|operand| reads(operand.0, DType::F32));
    let spans = reads(spans, DType::U32);
    let is_float = call.caches[0].1 == CacheFormat::F32;
    let (dtype, caches) = match is_float {
        true => (DType::F32, call.caches.map(|(cache, _)| cache)),
        false => (DType::U32, call.caches.map(|(cache, _)| cache.as_words())),
    };
    let y = writes(call.y, DType::F32);
    let store = [
        vec![k, v, spans],
        caches.map(|cache| changes(cache, dtype)).to_vec(),
    ]
    .concat();
    let seen = [
        vec![q, y, spans],
        caches.map(|cache| reads(cache, dtype)).to_vec(),
    ]
    .concat();
    if is_float || call.caches[0].1 == CacheFormat::F16 {
        return vec![store, seen];
    }
    let quantize_kernel = |x: Bound, cache: Seen| vec![x, spans, changes(cache, dtype)];
    vec![
        [seen, vec![k, v]].concat(),
        quantize_kernel(k, caches[0]),
        quantize_kernel(v, caches[1]),
        store,
    ]
}

/// Halves as the formats round to them: the nearest, the maximum for a number beyond it. The bits
/// of NaN depend on the device.
fn half_of(value: f64) -> Option<u32> {
    let half = to_f16((value as f32).to_bits());
    match value {
        _ if value.is_nan() => None,
        _ if value.is_finite() && half & 0x7fff == 0x7c00 => Some(half - 1),
        _ => Some(half),
    }
}

fn value_of(half: u32) -> f64 {
    f64::from(f32::from_bits(f16_bits(half & 0xffff)))
}

/// The cache of one item.
struct Cache<'a> {
    words: &'a mut [Option<u32>],
    format: CacheFormat,
    is_keys: bool,
    rows: usize,
    columns: usize,
}

type Value = Option<f64>;

impl Cache<'_> {
    fn half(&self, at: usize, index: usize) -> Value {
        self.words[at + index / 2]
            .map(|word| value_of(word >> (16 * (index % 2))))
            .filter(|value| value.is_finite())
    }

    fn put_halves(&mut self, at: usize, row: &[Value]) {
        for (word, pair) in self.words[at..].iter_mut().zip(row.chunks(2)) {
            let halves: Option<Vec<u32>> =
                pair.iter().map(|value| value.and_then(half_of)).collect();
            *word =
                halves.map(|halves| halves.iter().rev().fold(0, |word, half| word << 16 | half));
        }
    }

    fn half_words(&self) -> usize {
        self.columns.div_ceil(2)
    }

    fn row_words(&self) -> usize {
        row_words(self.format, self.columns as u128) as usize
    }

    /// Offset of an unquantized row of the window, followed by the first tokens.
    fn full_at(&self, row: usize) -> usize {
        self.rows.next_multiple_of(BLOCK) * self.row_words() + row * self.half_words()
    }

    fn full(&self, row: usize) -> Vec<Value> {
        (0..self.columns)
            .map(|column| self.half(self.full_at(row), column))
            .collect()
    }

    /// The values that attention reads of a row cached before the run.
    fn row(&self, kept: usize, row: usize) -> Vec<Value> {
        let whole = kept / WINDOW * WINDOW;
        match self.format {
            CacheFormat::F32 => self.words[row * self.columns..][..self.columns]
                .iter()
                .map(|word| word.map(|bits| f64::from(f32::from_bits(bits))))
                .collect(),
            CacheFormat::F16 => (0..self.columns)
                .map(|column| self.half(row * self.half_words(), column))
                .collect(),
            _ if row < FIRST => self.full(WINDOW + row),
            _ if row >= whole => self.full(row % WINDOW),
            _ => (0..self.columns)
                .map(|column| self.coded(row, column))
                .collect(),
        }
    }

    fn coded(&self, row: usize, column: usize) -> Value {
        let (blocks, place) = (self.columns.div_ceil(BLOCK), column % BLOCK);
        let at = row * self.row_words();
        if self.format == CacheFormat::Q8 {
            let code = self.words[at + column / 4]?.to_le_bytes()[column % 4].cast_signed();
            return Some(f64::from(code) * self.half(at + 8 * blocks, column / BLOCK)?);
        }
        // Keys: 32 rows' codes, then a scale and a minimum for each column; values: a row's codes,
        // then those of its blocks.
        let group = row / BLOCK * 160 * blocks;
        let (codes, range) = match self.is_keys {
            true => (
                group + row % BLOCK * 4 * blocks,
                group + 128 * blocks + column,
            ),
            false => (at, at + 4 * blocks + column / BLOCK),
        };
        let code = self.words[codes + column / BLOCK * 4 + place % 16 / 4]?
            >> (place % 4 * 8 + place / 16 * 4)
            & 15;
        Some(f64::from(code) * self.half(range, 0)? + self.half(range, 1)?)
    }

    /// Appends new rows to the cached ones.
    fn add(&mut self, kept: usize, new: &[Vec<Value>]) {
        match self.format {
            CacheFormat::F32 => {
                let bits = new.iter().flatten().map(|value| {
                    value
                        .filter(|value| !value.is_nan())
                        .map(|value| (value as f32).to_bits())
                });
                self.words[kept * self.columns..]
                    .iter_mut()
                    .zip(bits)
                    .for_each(|(word, bits)| *word = bits);
            }
            CacheFormat::F16 => new
                .iter()
                .enumerate()
                .for_each(|(t, row)| self.put_halves((kept + t) * self.half_words(), row)),
            _ => self.add_coded(kept, new),
        }
    }

    fn add_coded(&mut self, kept: usize, new: &[Vec<Value>]) {
        let (from, there) = (kept / WINDOW * WINDOW, kept + new.len());
        let half = |value: &Value| {
            value
                .and_then(half_of)
                .map(value_of)
                .filter(|value| value.is_finite())
        };
        let mut rows: Vec<Vec<Value>> = (from..kept).map(|row| self.full(row % WINDOW)).collect();
        rows.extend(
            new.iter()
                .map(|row| row.iter().map(half).collect::<Vec<_>>()),
        );
        let whole = there / WINDOW * WINDOW;
        for first in (from..whole).step_by(BLOCK) {
            let rows = &rows[first - from..][..BLOCK];
            if self.is_keys && self.format == CacheFormat::Q4 {
                self.code_columns(first, rows)
            } else {
                self.code_rows(first, rows)
            }
        }
        for (row, values) in (kept..there).zip(&rows[kept - from..]) {
            if row < FIRST {
                self.put_halves(self.full_at(WINDOW + row), values);
            }
            if row >= whole {
                self.put_halves(self.full_at(row % WINDOW), values);
            }
        }
    }

    fn code_rows(&mut self, first: usize, rows: &[Vec<Value>]) {
        let blocks = self.columns.div_ceil(BLOCK);
        for (row, values) in (first..).zip(rows) {
            let at = row * self.row_words();
            let mut scales = Vec::new();
            for (block, values) in values.chunks(BLOCK).enumerate() {
                // The padding of the last block equals its first.
                let values: Vec<Value> = (0..BLOCK)
                    .map(|place| *values.get(place).unwrap_or(&values[0]))
                    .collect();
                let is_eight = self.format == CacheFormat::Q8;
                let (codes, scale) = if is_eight {
                    codes8(&values)
                } else {
                    codes4(&values, 0)
                };
                let to = at + block * if is_eight { 8 } else { 4 };
                self.put_codes(to, &codes);
                scales.push(scale);
            }
            match self.format {
                CacheFormat::Q8 => {
                    for (place, pair) in scales.chunks(2).enumerate() {
                        let both: Option<Vec<u32>> = pair.iter().copied().collect();
                        self.words[at + 8 * blocks + place] = both
                            .map(|both| both.iter().rev().fold(0, |word, half| word << 16 | half));
                    }
                }
                _ => self.words[at + 4 * blocks..][..blocks].copy_from_slice(&scales),
            }
        }
    }

    /// Codes of 4 bits of the tokens of each column; the first tokens of an item do not count.
    fn code_columns(&mut self, first: usize, rows: &[Vec<Value>]) {
        let blocks = self.columns.div_ceil(BLOCK);
        let group = first / BLOCK * 160 * blocks;
        let from = if first == 0 { FIRST } else { 0 };
        let mut codes = vec![vec![Some(0); blocks * BLOCK]; BLOCK];
        for column in 0..self.columns {
            let values: Vec<Value> = rows.iter().map(|row| row[column]).collect();
            let (made, range) = codes4(&values, from);
            made.into_iter()
                .enumerate()
                .for_each(|(row, code)| codes[row][column] = code);
            self.words[group + 128 * blocks + column] = range;
        }
        for (row, codes) in codes.iter().enumerate() {
            codes.chunks(BLOCK).enumerate().for_each(|(block, codes)| {
                self.put_codes(group + (row * blocks + block) * 4, codes)
            });
        }
    }

    /// A block of codes: of 8 bits one after another; of 4 bits two in a byte, those of the columns
    /// 16 apart.
    fn put_codes(&mut self, at: usize, codes: &[Option<u32>]) {
        let (bits, count) = if self.format == CacheFormat::Q8 {
            (8, 8)
        } else {
            (4, 4)
        };
        for word in 0..count {
            let mut packed = Some(0);
            for byte in 0..4 {
                let low = codes[word * 4 + byte];
                let high = if bits == 4 {
                    codes[word * 4 + byte + 16]
                } else {
                    Some(0)
                };
                packed = packed
                    .zip(low)
                    .zip(high)
                    .map(|((packed, low), high)| packed | (low | high << 4) << (8 * byte));
            }
            self.words[at + word] = packed;
        }
    }
}

type Codes = (Vec<Option<u32>>, Option<u32>);

fn codes8(values: &[Value]) -> Codes {
    let unknown = (vec![None; values.len()], None);
    let Some(values) = values.iter().copied().collect::<Option<Vec<f64>>>() else {
        return unknown;
    };
    let greatest = values
        .iter()
        .fold(0.0f64, |greatest, value| greatest.max(value.abs()));
    let Some(bits) = half_of(f64::from(greatest as f32 * (1.0 / 127.0))) else {
        return unknown;
    };
    let scale = value_of(bits);
    let code = |value: &f64| {
        if scale == 0.0 {
            0
        } else {
            (value / scale).round_ties_even().clamp(-127.0, 127.0) as i32
        }
    };
    (
        values
            .iter()
            .map(|value| Some(code(value).cast_unsigned() & 0xff))
            .collect(),
        Some(bits),
    )
}

/// Codes of the values from `from` on, with the word of their scale and their minimum; the code of
/// the others is 0.
fn codes4(values: &[Value], from: usize) -> Codes {
    let unknown = (vec![None; values.len()], None);
    let Some(counted) = values[from..].iter().copied().collect::<Option<Vec<f64>>>() else {
        return unknown;
    };
    let (least, most) = counted.iter().fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), &value| (least.min(value), most.max(value)),
    );
    let (Some(bits), Some(low)) = (
        half_of(f64::from((most - least) as f32 * (1.0 / 15.0))),
        half_of(least + 0.0),
    ) else {
        return unknown;
    };
    let scale = value_of(bits);
    let code = |value: &f64| {
        if scale == 0.0 {
            0
        } else {
            (f64::from((value - least) as f32) / scale)
                .round_ties_even()
                .clamp(0.0, 15.0) as u32
        }
    };
    (
        std::iter::repeat_n(Some(0), from)
            .chain(counted.iter().map(|value| Some(code(value))))
            .collect(),
        Some(bits | low << 16),
    )
}

/// One call: the caches after it, and the values that the queries see.
fn run(space: &Space<'_>, call: &Call, spans: &Seen) {
    let AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    } = call.sizes;
    let operands = call.operands.map(|(seen, ..)| space.numbers(&seen));
    let columns = kv_heads * width;
    let spans = space.integers(spans);
    let mut held = call
        .caches
        .map(|(cache, _)| space.integers(&cache.as_words()));
    let mut results = Vec::new();
    for item in 0..batch {
        let (Some(kept), Some(new)) = (spans[2 * item], spans[2 * item + 1]) else {
            results.extend(vec![None; queries * heads * width]);
            held.iter_mut()
                .for_each(|words| item_of(words, item, batch).fill(None));
            continue;
        };
        let (kept, new) = ((kept as usize).min(keys), (new as usize).min(queries));
        let added = new.min(keys - kept);
        let sides = [0, 1].map(|side| {
            let (_, row, start) = call.operands[1 + side];
            let new: Vec<Vec<Value>> = (0..added)
                .map(|t| {
                    operands[1 + side][(item * queries + t) * row + start..][..columns].to_vec()
                })
                .collect();
            let format = call.caches[side].1;
            let mut cache = Cache {
                words: item_of(&mut held[side], item, batch),
                format,
                is_keys: side == 0,
                rows: keys,
                columns,
            };
            // Codes are made after attention has read the new rows unquantized.
            let mut rows: Vec<Vec<Value>> = (0..kept).map(|row| cache.row(kept, row)).collect();
            cache.add(kept, &new);
            match format {
                CacheFormat::F16 => {
                    rows.extend((kept..kept + added).map(|row| cache.row(kept, row)))
                }
                _ => rows.extend(new),
            }
            rows
        });
        for (query, head) in
            (0..queries).flat_map(|query| (0..heads).map(move |head| (query, head)))
        {
            let (_, row, start) = call.operands[0];
            let q = &operands[0][(item * queries + query) * row + start + head * width..][..width];
            let seen = (kept + query + 1).min(kept + added);
            results.extend(attended(q, &sides, head / (heads / kv_heads) * width, seen));
        }
    }
    for ((cache, _), words) in call.caches.iter().zip(held) {
        space.put(
            &cache.as_words(),
            &words
                .into_iter()
                .map(|word| word.map_or(Word::Unknown, Word::Exact))
                .collect::<Vec<_>>(),
        );
    }
    space.put_numbers(&call.y, results);
}

fn item_of(words: &mut [Option<u32>], item: usize, batch: usize) -> &mut [Option<u32>] {
    let count = words.len() / batch;
    &mut words[item * count..][..count]
}

/// The columns of one head of one query, over the first rows of the keys and values.
fn attended(
    q: &[Value],
    [keys, values]: &[Vec<Vec<Value>>; 2],
    first: usize,
    seen: usize,
) -> Vec<Option<(f64, f64)>> {
    let width = q.len();
    // Non-finite values propagate through a weight of zero, even if the query does not see the key.
    let is_finite = |row: &Vec<Value>| {
        row[first..][..width]
            .iter()
            .all(|value| value.is_some_and(f64::is_finite))
    };
    if !keys.iter().chain(values).all(is_finite) {
        return vec![None; width];
    }
    let scores: Option<Vec<f64>> = keys[..seen]
        .iter()
        .map(|key| {
            dot((0..width).map(|i| Some((q[i], key[first + i])))).map(|(score, _)| 0.5 * score)
        })
        .collect();
    let one = |column: usize| {
        let pairs: Option<Vec<(f64, f64)>> = scores
            .as_ref()?
            .iter()
            .zip(values)
            .map(|(score, row)| Some((*score, row[first + column]?)))
            .collect();
        mixed(&pairs?, width)
    };
    (0..width).map(one).collect()
}
