//! Codes of caches on the CPU: encoded from halves, and read as rows of f32 by the twins of
//! attention.

use std::ops::Range;

use crate::kernel::native::prefetch_line_l2;
use crate::kernel::pack::{f16_bits, to_f16};
use crate::operation::attention::cache_format::{
    BLOCK, CacheFormat, FIRST, WINDOW, quantized_tokens,
};
use crate::operation::product::panel_halves::widen_f16;

/// The widest head.
pub const MAX_WIDTH: usize = 128;

/// The scale of a block without a number.
const NAN: u32 = 0x7e00;

/// The half nearest to a number; the greatest one for a number beyond it.
#[inline(always)]
pub(crate) fn half(x: f32) -> u32 {
    let half = to_f16(x.to_bits());
    half - u32::from(half & 0x7fff == 0x7c00 && x.is_finite())
}

#[inline(always)]
pub(crate) fn value(half: u32) -> f32 {
    f32::from_bits(f16_bits(half & 0xffff))
}

/// The whole number nearest to x / scale, ties to even; the residual is exact, so the last bits of
/// the quotient do not matter. For a scale of 0 or NaN it is 0.
#[inline(always)]
fn nearest(x: f32, scale: f32, inverse: f32) -> f32 {
    let code = (x * inverse).round_ties_even();
    let (rest, half) = (x - code * scale, 0.5 * scale);
    let is_odd = code as i32 & 1 == 1;
    let up = rest > half || (rest == half && is_odd);
    let down = rest < -half || (rest == -half && is_odd);
    let code = code + f32::from(u8::from(up)) - f32::from(u8::from(down));
    if scale > 0.0 { code } else { 0.0 }
}

/// 8-bit codes of a block of halves, and their scale as a half.
#[inline(always)]
pub(crate) fn code8(x: &[f32; BLOCK]) -> ([u8; BLOCK], u32) {
    let greatest = x
        .iter()
        .fold(0, |greatest, x| greatest.max(x.to_bits() & 0x7fff_ffff));
    if greatest >= 0x7f80_0000 {
        return ([0; BLOCK], NAN);
    }
    let bits = half(f32::from_bits(greatest) * (1.0 / 127.0));
    let scale = value(bits);
    let inverse = 1.0 / scale;
    (
        x.map(|x| nearest(x, scale, inverse).clamp(-127.0, 127.0) as i32 as u8),
        bits,
    )
}

/// The word of scale and minimum for numbers between a minimum and a maximum; `is_finite` if none
/// is infinite or NaN.
#[inline(always)]
pub(crate) fn range(least: f32, most: f32, is_finite: bool) -> u32 {
    // Always the same zero, whatever sign the minimum has.
    let low = half(least);
    let low = if low == 0x8000 { 0 } else { low };
    if is_finite {
        half((most - least) * (1.0 / 15.0)) | (low << 16)
    } else {
        NAN | (NAN << 16)
    }
}

/// The 4-bit code of a number under a range.
#[inline(always)]
pub(crate) fn code4(x: f32, scale: f32, least: f32) -> u32 {
    nearest(x - least, scale, 1.0 / scale).clamp(0.0, 15.0) as u32
}

/// 4-bit codes of a block of halves as bytes, and the word of its range.
#[inline(always)]
pub(crate) fn block4(x: &[f32; BLOCK]) -> ([u8; 16], u32) {
    let is_finite = x.iter().all(|x| x.is_finite());
    let (least, most) = x
        .iter()
        .fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), &x| {
            (least.min(x), most.max(x))
        });
    let word = range(least, most, is_finite);
    let (scale, least) = (value(word), value(word >> 16));
    let code = |index: usize| code4(x[index], scale, least) as u8;
    (
        std::array::from_fn(|index| code(index) | (code(index + 16) << 4)),
        word,
    )
}

/// What attention sees of one item's keys or values.
#[derive(Clone, Copy)]
pub(crate) struct CachedRows<'a> {
    pub format: CacheFormat,
    pub is_keys: bool,
    /// The item's words.
    pub words: &'a [u32],
    /// Capacity in tokens.
    pub rows: usize,
    pub columns: usize,
    /// Tokens that were kept before the run.
    pub kept: usize,
    /// The run's own rows from the first one's columns on, and their stride in elements; not read
    /// for formats that hold them already.
    pub new: (&'a [f32], usize),
}

impl CachedRows<'_> {
    /// `width` columns from `column` on of `count` tokens from `first` on, row by row; prefetches
    /// as many tokens after them.
    #[inline(always)]
    pub fn read(&self, first: usize, count: usize, columns: [usize; 2], out: &mut [f32]) {
        let (mut row, end, mut out) = (first, first + count, &mut out[..count * columns[1]]);
        while row < end {
            let to = self.alike(row).min(end);
            let (now, rest) = std::mem::take(&mut out).split_at_mut((to - row) * columns[1]);
            self.read_alike([row, to], columns, count, now);
            (row, out) = (to, rest);
        }
    }

    /// Prefetches the data of some tokens: the place of a row's codes, in any format; first tokens
    /// and the window, which are elsewhere, are few.
    pub fn ask(&self, tokens: Range<usize>, columns: [usize; 2]) {
        let held = self.held(columns);
        tokens.for_each(|row| self.ask_row(row, held));
    }

    /// The approximate words of a row that hold these columns.
    #[inline(always)]
    fn held(&self, [column, width]: [usize; 2]) -> [usize; 2] {
        let words = self.format.row_words(self.columns);
        [
            column * words / self.columns,
            (column + width) * words / self.columns,
        ]
    }

    #[inline(always)]
    fn ask_row(&self, row: usize, [from, to]: [usize; 2]) {
        let first = row * self.format.row_words(self.columns);
        let mut at = from;
        while at < to {
            prefetch_line_l2(self.words, first + at);
            at += 16;
        }
    }

    /// The end of the tokens that are stored in the same way as this one.
    #[inline(always)]
    fn alike(&self, row: usize) -> usize {
        let ends = if self.format == CacheFormat::F16 {
            [usize::MAX; 3]
        } else {
            [
                FIRST.min(self.kept),
                quantized_tokens(self.kept).min(self.kept),
                self.kept,
            ]
        };
        ends.into_iter()
            .find(|end| row < *end)
            .unwrap_or(usize::MAX)
    }

    /// Tokens that are stored in the same way.
    #[inline(always)]
    fn read_alike(
        &self,
        [first, end]: [usize; 2],
        [column, width]: [usize; 2],
        ahead: usize,
        out: &mut [f32],
    ) {
        let (row_words, blocks) = (
            self.format.row_words(self.columns),
            self.columns.div_ceil(BLOCK),
        );
        let (full, half_words) = (
            self.format.full_at(self.rows, self.columns),
            CacheFormat::F16.row_words(self.columns),
        );
        let is_full = first < FIRST || first >= quantized_tokens(self.kept);
        if self.format == CacheFormat::Q8 && first < self.kept && !is_full {
            return self.read8([first, end], [column, width], ahead, out);
        }
        let (mut ranges, held) = (Ranges::default(), self.held([column, width]));
        for (row, out) in (first..end).zip(out.chunks_exact_mut(width)) {
            self.ask_row(row + ahead, held);
            if self.format == CacheFormat::F16 {
                read_halves(&self.words[row * row_words..][..row_words], column, out);
            } else if row >= self.kept {
                match self
                    .new
                    .0
                    .get((row - self.kept) * self.new.1 + column..)
                    .and_then(|new| new.get(..width))
                {
                    Some(new) => out.copy_from_slice(new),
                    // More than the run has.
                    None => out.fill(f32::NAN),
                }
            } else if is_full {
                let place = if row < FIRST {
                    WINDOW + row
                } else {
                    row % WINDOW
                };
                read_halves(
                    &self.words[full + place * half_words..][..half_words],
                    column,
                    out,
                );
            } else if self.is_keys {
                let group = row / BLOCK * BLOCK * row_words;
                ranges.hold(group, &self.words[group + 128 * blocks + column..][..width]);
                let codes = &self.words[group + row % BLOCK * blocks * 4..][..blocks * 4];
                read4(codes, column, out);
                let (scales, least) = (&ranges.scales[..width], &ranges.least[..width]);
                for place in 0..width {
                    out[place] = least[place] + out[place] * scales[place];
                }
            } else {
                let (codes, words) =
                    self.words[row * row_words..][..row_words].split_at(blocks * 4);
                read4(codes, column, out);
                scale4(words, column, out);
            }
        }
    }

    /// Rows of codes of 8 bits.
    #[inline(always)]
    fn read8(
        &self,
        [first, end]: [usize; 2],
        [column, width]: [usize; 2],
        ahead: usize,
        out: &mut [f32],
    ) {
        let (row_words, blocks, held) = (
            self.format.row_words(self.columns),
            self.columns.div_ceil(BLOCK),
            self.held([column, width]),
        );
        let (first_block, counted) = (
            column / BLOCK,
            (column + width).div_ceil(BLOCK) - column / BLOCK,
        );
        let (mut halves, mut scales) = ([0u16; ROWS * HEAD_BLOCKS], [0.0f32; ROWS * HEAD_BLOCKS]);
        for (from, out) in (first..end).step_by(ROWS).zip(out.chunks_mut(ROWS * width)) {
            let rows = &self.words[from * row_words..end.min(from + ROWS) * row_words];
            for (row, halves) in rows
                .chunks_exact(row_words)
                .zip(halves.chunks_exact_mut(counted))
            {
                let row: &[u16] = bytemuck::cast_slice(&row[blocks * 8..]);
                for (half, &given) in halves.iter_mut().zip(&row[first_block..][..counted]) {
                    *half = given;
                }
            }
            // Whole vectors: those of the rows, and the padding of the last.
            let whole = (rows.len() / row_words * counted).next_multiple_of(LANES);
            widen_f16(&halves[..whole], &mut scales[..whole]);
            let each = rows
                .chunks_exact(row_words)
                .zip(scales.chunks_exact(counted))
                .zip(out.chunks_exact_mut(width));
            for (index, ((row, scales), out)) in each.enumerate() {
                self.ask_row(from + index + ahead, held);
                let codes: &[i8] = bytemuck::cast_slice(&row[..blocks * 8]);
                scale8(&codes[column..][..width], scales, column % BLOCK, out);
            }
        }
    }
}

/// Scales and minima of the columns of a block of tokens.
struct Ranges {
    group: usize,
    scales: [f32; MAX_WIDTH],
    least: [f32; MAX_WIDTH],
}

impl Default for Ranges {
    fn default() -> Self {
        Self {
            group: usize::MAX,
            scales: [0.0; MAX_WIDTH],
            least: [0.0; MAX_WIDTH],
        }
    }
}

impl Ranges {
    #[inline(always)]
    fn hold(&mut self, group: usize, words: &[u32]) {
        if self.group != group {
            self.group = group;
            for ((scale, least), &word) in self.scales.iter_mut().zip(&mut self.least).zip(words) {
                (*scale, *least) = (value(word), value(word >> 16));
            }
        }
    }
}

/// Halves of a row from a column on.
#[inline(always)]
fn read_halves(words: &[u32], column: usize, out: &mut [f32]) {
    widen_f16(&bytemuck::cast_slice(words)[column..][..out.len()], out);
}

/// The part of the columns from `place` on that lies in its block: the block, the first place in
/// it, and its length.
#[inline(always)]
fn in_block(place: usize, end: usize) -> (usize, usize, usize) {
    let block = place / BLOCK;
    (block, place % BLOCK, end.min((block + 1) * BLOCK) - place)
}

/// Columns decoded at a time.
const LANES: usize = 16;

// Plain loops: closures that are not inlined would be compiled for the baseline.

/// Rows whose scales are decoded together, and the maximum blocks of a row that a head's columns
/// span.
const ROWS: usize = 32;
const HEAD_BLOCKS: usize = MAX_WIDTH.div_ceil(BLOCK) + 1;

/// Codes of a row times the scales of their blocks; the first code has this place in its block.
#[inline(always)]
fn scale8(codes: &[i8], scales: &[f32], place: usize, out: &mut [f32]) {
    if place == 0 && codes.len().is_multiple_of(BLOCK) {
        for ((out, codes), &scale) in out
            .as_chunks_mut::<BLOCK>()
            .0
            .iter_mut()
            .zip(codes.as_chunks::<BLOCK>().0)
            .zip(scales)
        {
            // Separate arrays without aliases: else the compiler does not vectorise.
            let (codes, mut values) = (codes.as_chunks::<LANES>().0, [[0.0; LANES]; BLOCK / LANES]);
            for part in 0..BLOCK / LANES {
                for lane in 0..LANES {
                    values[part][lane] = f32::from(codes[part][lane]) * scale;
                }
            }
            for (out, values) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(values) {
                *out = values;
            }
        }
        return;
    }
    for (index, (out, &code)) in out.iter_mut().zip(codes).enumerate() {
        *out = f32::from(code) * scales[(place + index) / BLOCK];
    }
}

/// Codes of a row as numbers.
#[inline(always)]
fn read4(words: &[u32], column: usize, out: &mut [f32]) {
    let bytes: &[[u8; 16]] = bytemuck::cast_slice(words);
    let (mut done, end) = (0, column + out.len());
    while done < out.len() {
        let (block, first, count) = in_block(column + done, end);
        let (out, bytes) = (&mut out[done..][..count], &bytes[block]);
        done += count;
        if let Ok(out) = <&mut [f32; BLOCK]>::try_from(&mut *out) {
            let (bytes, mut values) = (*bytes, [[0.0; LANES]; 2]);
            for lane in 0..LANES {
                values[0][lane] = f32::from(bytes[lane] & 15);
            }
            for lane in 0..LANES {
                values[1][lane] = f32::from(bytes[lane] >> 4);
            }
            out.copy_from_slice(values.as_flattened());
        } else {
            for (place, out) in (first..).zip(out) {
                *out = f32::from((bytes[place % 16] >> (place / 16 * 4)) & 15);
            }
        }
    }
}

/// Codes decoded to values by the ranges of a row's blocks.
#[inline(always)]
fn scale4(words: &[u32], column: usize, out: &mut [f32]) {
    let (mut done, end) = (0, column + out.len());
    while done < out.len() {
        let (block, _, count) = in_block(column + done, end);
        let (scale, least) = (value(words[block]), value(words[block] >> 16));
        for out in &mut out[done..][..count] {
            *out = least + *out * scale;
        }
        done += count;
    }
}
