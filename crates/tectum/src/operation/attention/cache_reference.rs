//! The rules of cached values in float64, written for readability: the reference of the kernels and
//! their twins.

use crate::kernel::pack::{f16_bits, to_f16};
use crate::operation::attention::cache_format::{
    BLOCK, CacheFormat, FIRST, WINDOW, quantized_tokens,
};

/// The half nearest to a number, as its bits; the greatest one for a number beyond it.
pub fn half_bits(x: f64) -> u32 {
    let x = x as f32;
    let half = to_f16(x.to_bits());
    if x.is_finite() && half & 0x7fff == 0x7c00 {
        half - 1
    } else {
        half
    }
}

/// The number of a half.
pub fn half_value(bits: u32) -> f64 {
    f64::from(f32::from_bits(f16_bits(bits)))
}

/// Codes of a block of 8 bits, and the bits of its scale.
fn codes8(block: &[f64]) -> (Vec<u32>, u32) {
    let greatest = block.iter().fold(0.0f64, |greatest, x| {
        if x.is_finite() {
            greatest.max(x.abs())
        } else {
            f64::INFINITY
        }
    });
    if greatest.is_infinite() || block.iter().any(|x| x.is_nan()) {
        return (vec![0; block.len()], NAN);
    }
    let bits = half_bits(f64::from(greatest as f32 * (1.0 / 127.0)));
    let scale = half_value(bits);
    let code = |x: &f64| {
        if scale == 0.0 {
            0.0
        } else {
            (x / scale).round_ties_even().clamp(-127.0, 127.0)
        }
    };
    (
        block.iter().map(|x| code(x) as i32 as u32 & 0xff).collect(),
        bits,
    )
}

/// Codes of a block of 4 bits, and the bits of its scale and its minimum. For those before `from`
/// the code is 0, and they do not count.
fn codes4(block: &[f64], from: usize) -> (Vec<u32>, u32, u32) {
    let counts = &block[from..];
    if counts.iter().any(|x| !x.is_finite()) {
        return (vec![0; block.len()], NAN, NAN);
    }
    let (least, most) = counts
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &x| {
            (least.min(x), most.max(x))
        });
    let bits = half_bits(f64::from((most as f32 - least as f32) * (1.0 / 15.0)));
    let scale = half_value(bits);
    let code = |(index, x): (usize, &f64)| {
        let above = f64::from(*x as f32 - least as f32);
        if index < from || scale == 0.0 {
            0.0
        } else {
            (above / scale).round_ties_even().clamp(0.0, 15.0)
        }
    };
    // A minimum of −0 is 0.
    (
        block.iter().enumerate().map(|x| code(x) as u32).collect(),
        bits,
        half_bits(least + 0.0),
    )
}

/// The scale of a block without a number, as a half.
const NAN: u32 = 0x7e00;

/// A cache of one item, in words as a device holds it.
#[derive(Debug, Clone)]
pub struct ReferenceCache {
    /// The words.
    pub words: Vec<u32>,
    format: CacheFormat,
    is_keys: bool,
    rows: usize,
    columns: usize,
}

impl ReferenceCache {
    /// A cache that holds some words, of keys or of values [rows, columns].
    pub fn new(
        format: CacheFormat,
        is_keys: bool,
        [rows, columns]: [usize; 2],
        words: Vec<u32>,
    ) -> Self {
        assert_eq!(
            words.len(),
            format.words(rows, columns),
            "the words of a cache"
        );
        Self {
            words,
            format,
            is_keys,
            rows,
            columns,
        }
    }

    /// Appends new rows to those kept, up to the capacity.
    pub fn add(&mut self, kept: usize, new: &[f64]) {
        let columns = self.columns;
        let count = (new.len() / columns).min(self.rows.saturating_sub(kept));
        if !self.format.is_quantized() {
            for (at, &x) in new[..count * columns].iter().enumerate() {
                let (row, column) = (kept + at / columns, at % columns);
                if self.format == CacheFormat::F32 {
                    self.words[row * columns + column] = (x as f32).to_bits();
                } else {
                    self.put_half(row * columns.div_ceil(2), column, half_bits(x));
                }
            }
            return;
        }
        // Halves of the tokens since the last window.
        let (from, there) = (quantized_tokens(kept), kept + count);
        let mut halves: Vec<f64> = Vec::new();
        for row in from..there {
            for column in 0..columns {
                let new = |row: usize| half_value(half_bits(new[(row - kept) * columns + column]));
                halves.push(if row < kept {
                    self.full(row % WINDOW, column)
                } else {
                    new(row)
                });
            }
        }
        for window in (from..quantized_tokens(there)).step_by(WINDOW) {
            let rows = &halves[(window - from) * columns..][..WINDOW * columns];
            if self.is_keys && self.format == CacheFormat::Q4 {
                self.code_columns(window, rows)
            } else {
                self.code_rows(window, rows)
            }
        }
        for row in kept..there {
            for column in 0..columns {
                let half = half_bits(halves[(row - from) * columns + column]);
                let full = self.format.full_at(self.rows, columns);
                let mut put =
                    |at: usize| self.put_half(full + at * columns.div_ceil(2), column, half);
                if row < FIRST {
                    put(WINDOW + row);
                }
                if row >= quantized_tokens(there) {
                    put(row % WINDOW);
                }
            }
        }
    }

    /// The value that attention reads for a token, `kept` tokens being kept before the run; others
    /// are read unchanged.
    pub fn value(&self, kept: usize, row: usize, column: usize) -> f64 {
        match self.format {
            CacheFormat::F32 => f64::from(f32::from_bits(self.words[row * self.columns + column])),
            CacheFormat::F16 => self.half(row * self.columns.div_ceil(2), column),
            _ if row < FIRST => self.full(WINDOW + row, column),
            _ if row >= quantized_tokens(kept) => self.full(row % WINDOW, column),
            CacheFormat::Q8 => {
                let at = row * self.format.row_words(self.columns);
                let code = (self.words[at + column / 4] >> (column % 4 * 8)) as u8 as i8;
                f64::from(code) * self.half(at + self.columns.div_ceil(BLOCK) * 8, column / BLOCK)
            }
            CacheFormat::Q4 => {
                let (blocks, place) = (self.columns.div_ceil(BLOCK), column % BLOCK);
                let (at, scales) = match self.is_keys {
                    true => self.place_of_keys(row, column),
                    false => (
                        row * blocks * 5,
                        row * blocks * 5 + blocks * 4 + column / BLOCK,
                    ),
                };
                let code = (self.words[at + column / BLOCK * 4 + place % 16 / 4]
                    >> (place % 4 * 8 + place / 16 * 4))
                    & 15;
                let [scale, least] = [0, 1].map(|index| self.half(scales, index));
                f64::from((f64::from(code) * scale + least) as f32)
            }
        }
    }

    /// Of 4-bit keys: where a token's codes begin, and where the scale of a column of its block is.
    fn place_of_keys(&self, row: usize, column: usize) -> (usize, usize) {
        let blocks = self.columns.div_ceil(BLOCK);
        let group = row / BLOCK * 160 * blocks;
        (
            group + row % BLOCK * blocks * 4,
            group + 128 * blocks + column,
        )
    }

    fn full(&self, row: usize, column: usize) -> f64 {
        self.half(
            self.format.full_at(self.rows, self.columns) + row * self.columns.div_ceil(2),
            column,
        )
    }

    fn half(&self, at: usize, index: usize) -> f64 {
        half_value(self.words[at + index / 2] >> (index % 2 * 16) & 0xffff)
    }

    fn put_half(&mut self, at: usize, index: usize, half: u32) {
        let word = &mut self.words[at + index / 2];
        let shift = index % 2 * 16;
        *word = *word & !(0xffff << shift) | half << shift;
        // The padding of a row's last word is 0.
        if shift == 0 && index + 1 == self.columns {
            *word &= 0xffff;
        }
    }

    /// Blocks of columns of each row of a window; the last block is padded with its first column.
    fn code_rows(&mut self, window: usize, rows: &[f64]) {
        let blocks = self.columns.div_ceil(BLOCK);
        for (row, values) in rows.chunks(self.columns).enumerate() {
            let at = (window + row) * self.format.row_words(self.columns);
            for (block, values) in values.chunks(BLOCK).enumerate() {
                let mut values = values.to_vec();
                values.resize(BLOCK, values[0]);
                if self.format == CacheFormat::Q8 {
                    let (codes, scale) = codes8(&values);
                    self.put_codes(at + block * 8, &codes, 8);
                    let word = &mut self.words[at + blocks * 8 + block / 2];
                    *word = if block % 2 == 0 {
                        scale
                    } else {
                        *word | scale << 16
                    };
                } else {
                    let (codes, scale, least) = codes4(&values, 0);
                    self.put_codes(at + block * 4, &codes, 4);
                    self.words[at + blocks * 4 + block] = scale | least << 16;
                }
            }
        }
    }

    /// Blocks of tokens of each column of a window; the first tokens do not count.
    fn code_columns(&mut self, window: usize, rows: &[f64]) {
        let (columns, blocks) = (self.columns, self.columns.div_ceil(BLOCK));
        for (group, rows) in rows.chunks(BLOCK * columns).enumerate() {
            let first = window + group * BLOCK;
            let mut codes = vec![0; BLOCK * blocks * BLOCK];
            for column in 0..columns {
                let values: Vec<f64> = (0..BLOCK).map(|row| rows[row * columns + column]).collect();
                let (made, scale, least) = codes4(&values, if first == 0 { FIRST } else { 0 });
                made.into_iter()
                    .enumerate()
                    .for_each(|(row, code)| codes[row * blocks * BLOCK + column] = code);
                let (_, at) = self.place_of_keys(first, column);
                self.words[at] = scale | least << 16;
            }
            for (at, codes) in codes.chunks(BLOCK).enumerate() {
                let (row, _) = self.place_of_keys(first + at / blocks, 0);
                self.put_codes(row + at % blocks * 4, codes, 4);
            }
        }
    }

    fn put_codes(&mut self, at: usize, codes: &[u32], bits: usize) {
        self.words[at..at + codes.len() * bits / 32].fill(0);
        for (index, &code) in codes.iter().enumerate() {
            let (word, shift) = if bits == 8 {
                (index / 4, index % 4 * 8)
            } else {
                (index % 16 / 4, index % 4 * 8 + index / 16 * 4)
            };
            self.words[at + word] |= (code & ((1 << bits) - 1)) << shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::random::{philox, uniform};

    fn rows(count: usize, columns: usize) -> Vec<f64> {
        (0..(count * columns) as u32)
            .map(|index| f64::from(2.0 * uniform(philox([index, 0, 0, 0], [7, 0])[0]) - 1.0))
            .collect()
    }

    fn cache(format: CacheFormat, is_keys: bool, columns: usize) -> ReferenceCache {
        ReferenceCache::new(
            format,
            is_keys,
            [200, columns],
            vec![0; format.words(200, columns)],
        )
    }

    #[test]
    fn a_text_has_the_same_codes_in_whatever_parts_it_comes() {
        for (format, is_keys) in CacheFormat::ALL
            .into_iter()
            .flat_map(|format| [(format, true), (format, false)])
        {
            let columns = 40;
            let rows = rows(180, columns);
            let mut whole = cache(format, is_keys, columns);
            whole.add(0, &rows);
            let mut parts = cache(format, is_keys, columns);
            let mut kept = 0;
            for part in [1, 63, 1, 30, 64, 21] {
                parts.add(kept, &rows[kept * columns..][..part * columns]);
                kept += part;
            }
            assert_eq!(kept, 180);
            for (row, column) in
                (0..180).flat_map(|row| (0..columns).map(move |column| (row, column)))
            {
                assert_eq!(
                    whole.value(180, row, column),
                    parts.value(180, row, column),
                    "{format} {is_keys} {row} {column}"
                );
            }
        }
    }

    /// Half a step at most, by the range of each block; blocks of one number, of zeros and of large
    /// numbers have no significant error.
    #[test]
    fn a_code_is_within_half_a_step_and_one_number_is_itself() {
        let columns = 64;
        let mut values = rows(64, columns);
        values[8 * columns..10 * columns].fill(0.0);
        values[10 * columns..12 * columns].fill(-0.7);
        values[12 * columns..13 * columns]
            .iter_mut()
            .for_each(|x| *x *= 60_000.0);
        for (format, is_keys, steps) in [
            (CacheFormat::Q8, true, 254.0),
            (CacheFormat::Q4, false, 15.0),
        ] {
            let mut cache = cache(format, is_keys, columns);
            cache.add(0, &values);
            for row in FIRST..64 {
                for (block, wanted) in values[row * columns..][..columns].chunks(BLOCK).enumerate()
                {
                    let greatest = wanted
                        .iter()
                        .fold(0.0f64, |greatest, x| greatest.max(x.abs()));
                    let least = wanted.iter().fold(f64::INFINITY, |least, &x| least.min(x));
                    let most = wanted
                        .iter()
                        .fold(f64::NEG_INFINITY, |most, &x| most.max(x));
                    let range = if format == CacheFormat::Q8 {
                        2.0 * greatest
                    } else {
                        most - least
                    };
                    // Half a step, and the roundings of halves: of the value, the scale and the
                    // minimum.
                    let bound = 0.5 * range / steps + 3.0 * greatest / 2048.0;
                    for (place, wanted) in wanted.iter().enumerate() {
                        let got = cache.value(64, row, block * BLOCK + place);
                        assert!(
                            (got - wanted).abs() <= bound,
                            "{format}: row {row}: {got}, not {wanted} ± {bound}"
                        );
                        if (8..10).contains(&row) {
                            assert_eq!(got, 0.0);
                        }
                        if (10..12).contains(&row) && format == CacheFormat::Q4 {
                            assert_eq!(got, half_value(half_bits(-0.7)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_great_is_seen() {
        assert_eq!(
            (half_value(half_bits(1e9)), half_value(half_bits(-70_000.0))),
            (65_504.0, -65_504.0)
        );
        assert!(half_value(half_bits(f64::NAN)).is_nan());
        let mut values = rows(64, 32);
        values[20 * 32 + 5] = f64::INFINITY;
        for (is_keys, format) in [
            (true, CacheFormat::Q8),
            (false, CacheFormat::Q4),
            (true, CacheFormat::Q4),
        ] {
            let mut cache = cache(format, is_keys, 32);
            cache.add(0, &values);
            assert!(cache.value(64, 20, 5).is_nan(), "{format}");
            // The rest of its block too, and no other.
            let other = if is_keys && format == CacheFormat::Q4 {
                (21, 5)
            } else {
                (20, 6)
            };
            assert!(
                cache.value(64, other.0, other.1).is_nan() && !cache.value(64, 40, 7).is_nan(),
                "{format}"
            );
        }
    }
}
