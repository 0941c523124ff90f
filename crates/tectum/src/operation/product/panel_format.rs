//! The layout of a product's weights in panels of 16 columns, and their storage formats.
//!
//! A panel is a run of 32-bit words, of a length that keeps panels in place when weights are
//! joined. Floats are widened exactly when they are read, so a product has the same bits as with
//! the widened weights. Codes of 8 bits are for [products of
//! integers](crate::operation::product::gemm_panels), whose rows
//! [`quantize_rows`](crate::operation::product::quantize_rows) quantises as well.

use std::fmt;
use std::str::FromStr;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::native::{for_each_chunk, simd};
use crate::kernel::pack::{Half, bf16_bits, f16_bits, to_bf16, to_f16};
use crate::operation::product::quantize_rows::{
    BLOCK, MAX_CODE, max_abs_bits, padded, rotate, rounded,
};

/// Columns of a panel.
pub const PANEL: usize = 16;

/// Words of a panel of codes before its codes: scales of 16 columns, sums of their codes, the rest
/// unused.
pub(crate) const HEAD: usize = 64;
/// Rows of k to a multiple of which a panel of halves is padded.
const HALF_ROWS: usize = 8;

/// The storage format of a panel's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PanelFormat {
    /// f32 [k, 16].
    #[default]
    F32,
    /// IEEE 754 binary16 [k, 16], two in a word, k padded to a multiple of 8.
    F16,
    /// bfloat16, in the same order.
    Bf16,
    /// 8-bit codes with a scale for each column: 16 scales, 16 sums of codes, 32 words unused, then
    /// [k / 4, 16, 4] codes of the column after a
    /// [rotation](crate::operation::product::quantize_rows), k padded to a multiple of 128.
    /// Products are sums of integers.
    Int8,
}

impl PanelFormat {
    /// All of them.
    pub const ALL: [PanelFormat; 4] = [
        PanelFormat::F32,
        PanelFormat::F16,
        PanelFormat::Bf16,
        PanelFormat::Int8,
    ];

    /// The name in text forms and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PanelFormat::F32 => "f32",
            PanelFormat::F16 => "f16",
            PanelFormat::Bf16 => "bf16",
            PanelFormat::Int8 => "int8",
        }
    }

    /// The element type of a kernel's binding of panels.
    pub fn dtype(self) -> DType {
        if self == PanelFormat::F32 {
            DType::F32
        } else {
            DType::U32
        }
    }

    /// Words of a panel of `k` rows.
    pub fn panel_words(self, k: usize) -> usize {
        match self {
            PanelFormat::F32 => k * PANEL,
            PanelFormat::F16 | PanelFormat::Bf16 => k.next_multiple_of(HALF_ROWS) * PANEL / 2,
            PanelFormat::Int8 => HEAD + padded(k) / 4 * PANEL,
        }
    }

    /// Words of `[k, n]` in panels: whole ones, the last padded.
    pub fn words(self, k: usize, n: usize) -> usize {
        n.div_ceil(PANEL) * self.panel_words(k)
    }

    /// Its half-width float format, if it has one.
    pub(crate) fn half(self) -> Option<Half> {
        match self {
            PanelFormat::F16 => Some(Half::F16),
            PanelFormat::Bf16 => Some(Half::Bf16),
            PanelFormat::F32 | PanelFormat::Int8 => None,
        }
    }

    /// Packs `b` [k, n], by its strides (row, column), in panels of words; the padding of the last
    /// is 0. A word of [`PanelFormat::F32`] has the bits of a float.
    ///
    /// # Panics
    /// If `panels` is not [`PanelFormat::words`] long, or `b` too short.
    pub fn pack(self, b: &[f32], [k, n]: [usize; 2], [row, col]: [usize; 2], panels: &mut [u32]) {
        assert_eq!(panels.len(), self.words(k, n), "panels of [{k}, {n}]");
        for_each_chunk(panels, self.panel_words(k), usize::MAX, |panel, to| {
            let mut columns = vec![0.0; k * PANEL];
            let count = PANEL.min(n - panel * PANEL);
            for (at, columns) in columns.chunks_exact_mut(PANEL).enumerate() {
                let (columns, rest) = columns.split_at_mut(count);
                columns
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, to)| *to = b[at * row + (panel * PANEL + i) * col]);
                rest.fill(0.0);
            }
            simd(
                #[inline(always)]
                || match self.half() {
                    Some(half) => pack_halves(half, &columns, to),
                    None if self == PanelFormat::Int8 => pack_codes(&columns, to),
                    None => to.copy_from_slice(bytemuck::cast_slice(&columns)),
                },
            );
        });
    }

    /// The weights [k, n] that panels represent, row-major: the input of [`PanelFormat::pack`],
    /// rounded.
    ///
    /// # Panics
    /// If `panels` is not [`PanelFormat::words`] long.
    pub fn unpack(self, panels: &[u32], [k, n]: [usize; 2]) -> Vec<f32> {
        assert_eq!(panels.len(), self.words(k, n), "panels of [{k}, {n}]");
        let mut weights = vec![0.0; k * n];
        for (panel, from) in panels.chunks_exact(self.panel_words(k)).enumerate() {
            for column in 0..PANEL.min(n - panel * PANEL) {
                let value: Box<dyn Fn(usize) -> f32> = match self {
                    PanelFormat::F32 => Box::new(|at| f32::from_bits(from[at * PANEL + column])),
                    PanelFormat::F16 => {
                        Box::new(|at| f32::from_bits(f16_bits(half_at(from, at, column))))
                    }
                    PanelFormat::Bf16 => {
                        Box::new(|at| f32::from_bits(bf16_bits(half_at(from, at, column))))
                    }
                    PanelFormat::Int8 => {
                        let values = coded_column(from, padded(k), column);
                        Box::new(move |at| values[at])
                    }
                };
                (0..k).for_each(|at| weights[at * n + panel * PANEL + column] = value(at));
            }
        }
        weights
    }
}

impl fmt::Display for PanelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PanelFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = PanelFormat::ALL.map(PanelFormat::name).join(", ");
        let found = PanelFormat::ALL
            .into_iter()
            .find(|format| format.name() == text);
        found.ok_or_else(|| Error::invalid(format!("weights {text:?}; known: {known}")))
    }
}

fn half_at(words: &[u32], at: usize, column: usize) -> u32 {
    words[(at * PANEL + column) / 2] >> (16 * (column % 2)) & 0xffff
}

#[inline(always)]
fn pack_halves(half: Half, columns: &[f32], words: &mut [u32]) {
    let (to, rest) = words.split_at_mut(columns.len() / 2);
    for (to, [low, high]) in to.iter_mut().zip(columns.as_chunks().0) {
        *to = match half {
            Half::F16 => to_f16(low.to_bits()) | (to_f16(high.to_bits()) << 16),
            Half::Bf16 => to_bf16(low.to_bits()) | (to_bf16(high.to_bits()) << 16),
        };
    }
    rest.fill(0);
}

/// Columns after their rotation as codes, each with its scale.
#[inline(always)]
fn pack_codes(columns: &[f32], words: &mut [u32]) {
    let k = columns.len() / PANEL;
    let (head, codes) = words.split_at_mut(HEAD);
    head.fill(0);
    codes.fill(0);
    let codes: &mut [i8] = bytemuck::cast_slice_mut(codes);
    let mut rotated = vec![[0.0f32; BLOCK]; padded(k) / BLOCK];
    for column in 0..PANEL {
        let values = rotated.as_flattened_mut();
        values.fill(0.0);
        values
            .iter_mut()
            .zip(columns[column..].iter().step_by(PANEL))
            .for_each(|(to, value)| *to = *value);
        for block in &mut rotated {
            rotate(block);
        }
        let greatest = f32::from_bits(max_abs_bits(rotated.as_flattened()));
        let step = greatest / MAX_CODE;
        let mut sum = 0;
        let inverse = if step > 0.0 { 1.0 / step } else { 0.0 };
        for (values, codes) in rotated
            .as_flattened()
            .as_chunks::<4>()
            .0
            .iter()
            .zip(codes.chunks_exact_mut(4 * PANEL))
        {
            for (value, code) in values.iter().zip(&mut codes[4 * column..][..4]) {
                *code = rounded(value * inverse) as i8;
                sum += i32::from(*code);
            }
        }
        // A rotation and its inverse multiply every value by 128.
        head[column] = (step / BLOCK as f32).to_bits();
        head[PANEL + column] = sum as u32;
    }
}

fn coded_column(words: &[u32], padded: usize, column: usize) -> Vec<f32> {
    let (scale, codes): (f32, &[i8]) = (
        f32::from_bits(words[column]),
        bytemuck::cast_slice(&words[HEAD..]),
    );
    let mut values: Vec<f32> = (0..padded)
        .map(|at| f32::from(codes[(at / 4 * PANEL + column) * 4 + at % 4]) * scale)
        .collect();
    values.as_chunks_mut().0.iter_mut().for_each(rotate);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(k: usize, n: usize) -> Vec<f32> {
        let mix = |x: u32| (x ^ (x >> 15)).wrapping_mul(0x2c1b_3c6d);
        (0..k * n)
            .map(|at| mix(mix(at as u32 + 1)) as f32 / (1u64 << 31) as f32 - 1.0)
            .collect()
    }

    #[test]
    fn what_is_packed_comes_back_rounded() {
        for [k, n] in [[1, 1], [5, 17], [128, 16], [130, 40]] {
            let b = weights(k, n);
            for format in PanelFormat::ALL {
                for transposed in [false, true] {
                    let mut panels = vec![u32::MAX; format.words(k, n)];
                    format.pack(
                        &b,
                        [k, n],
                        if transposed { [1, k] } else { [n, 1] },
                        &mut panels,
                    );
                    let got = format.unpack(&panels, [k, n]);
                    for (at, got) in got.iter().enumerate() {
                        let wanted = b[if transposed { at % n * k + at / n } else { at }];
                        // A code's error is at most half a step of its column; rotated back, the
                        // mean of 128 such errors is no greater.
                        let column = at % n;
                        let step = 128.0
                            * f32::from_bits(
                                panels[column / PANEL * format.panel_words(k) + column % PANEL],
                            );
                        let bound = match format {
                            PanelFormat::F32 => 0.0,
                            PanelFormat::F16 => wanted.abs() / 2048.0,
                            PanelFormat::Bf16 => wanted.abs() / 256.0,
                            PanelFormat::Int8 => 0.501 * step,
                        };
                        assert!(
                            (got - wanted).abs() <= bound,
                            "{format} [{k}, {n}] {at}: {got} for {wanted}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn names_are_read_and_others_refused() {
        for format in PanelFormat::ALL {
            assert_eq!(format.to_string().parse::<PanelFormat>().ok(), Some(format));
        }
        let error = "q9"
            .parse::<PanelFormat>()
            .err()
            .map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("weights \"q9\"; known: f32, f16, bf16, int8")
        );
    }

    #[test]
    fn panels_of_words_begin_where_views_may() {
        for format in PanelFormat::ALL.into_iter().skip(1) {
            assert!(
                (1..300).all(|k| format
                    .panel_words(k)
                    .is_multiple_of(crate::plan::ALIGNED_ELEMENTS)),
                "{format}"
            );
        }
    }
}
