//! How keys and values are stored between runs: the formats, and the layout of a cache's words.

use std::fmt;
use std::str::FromStr;

use crate::dtype::DType;
use crate::error::{Error, Result};

/// Values of a block: adjacent columns of a row, or adjacent tokens of a column.
pub const BLOCK: usize = 32;
/// The first tokens of a context, which are never codes.
pub const FIRST: usize = 4;
/// Tokens that are encoded together.
pub const WINDOW: usize = 64;
/// Alignment of caches, so that they can be bound.
const ALIGNED_WORDS: usize = 64;

/// The format of values in one cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CacheFormat {
    /// f32, unchanged.
    #[default]
    F32,
    /// The nearest half.
    F16,
    /// 8-bit codes in blocks of 32 columns with one scale.
    Q8,
    /// 4-bit codes in blocks of 32 with a scale and a minimum: tokens of one column of keys,
    /// columns of one row of values.
    Q4,
}

impl CacheFormat {
    /// Every format.
    pub const ALL: [CacheFormat; 4] = [
        CacheFormat::F32,
        CacheFormat::F16,
        CacheFormat::Q8,
        CacheFormat::Q4,
    ];

    /// The name in texts of graphs and in kernels.
    pub fn name(self) -> &'static str {
        match self {
            CacheFormat::F32 => "f32",
            CacheFormat::F16 => "f16",
            CacheFormat::Q8 => "q8",
            CacheFormat::Q4 => "q4",
        }
    }

    /// Whether whole windows are codes, and the rest halves.
    pub fn is_quantized(self) -> bool {
        matches!(self, CacheFormat::Q8 | CacheFormat::Q4)
    }

    /// The element type of a cache's words.
    pub fn dtype(self) -> DType {
        if self == CacheFormat::F32 {
            DType::F32
        } else {
            DType::U32
        }
    }

    /// Words of 32 bits of an item with a capacity of `rows` tokens of this many columns.
    pub fn words(self, rows: usize, columns: usize) -> usize {
        match self {
            CacheFormat::F32 => rows * columns,
            CacheFormat::F16 => (rows * self.row_words(columns)).next_multiple_of(ALIGNED_WORDS),
            CacheFormat::Q8 | CacheFormat::Q4 => {
                let full = (WINDOW + FIRST) * CacheFormat::F16.row_words(columns);
                (self.full_at(rows, columns) + full).next_multiple_of(ALIGNED_WORDS)
            }
        }
    }

    /// Words from one token's row to the next; for 4-bit keys the mean.
    pub fn row_words(self, columns: usize) -> usize {
        let blocks = columns.div_ceil(BLOCK);
        match self {
            CacheFormat::F32 => columns,
            CacheFormat::F16 => columns.div_ceil(2),
            CacheFormat::Q8 => blocks * 8 + blocks.div_ceil(2),
            CacheFormat::Q4 => blocks * 5,
        }
    }

    /// The word where the full rows begin: those of the window, then the first tokens'.
    pub fn full_at(self, rows: usize, columns: usize) -> usize {
        rows.next_multiple_of(BLOCK) * self.row_words(columns)
    }

    /// Bytes per value of its blocks, including scales and padding.
    pub fn bytes_per_value(self, columns: usize) -> f64 {
        4.0 * self.row_words(columns) as f64 / columns as f64
    }
}

impl FromStr for CacheFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<CacheFormat> {
        let found = CacheFormat::ALL
            .into_iter()
            .find(|format| format.name() == name);
        found.ok_or_else(|| {
            Error::invalid(format!(
                "no cache format {name:?}; there are f32, f16, q8 and q4"
            ))
        })
    }
}

impl fmt::Display for CacheFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The formats of keys and values together: the pairs that attention can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum CacheFormats {
    /// Both f32.
    #[default]
    F32,
    /// Both f16.
    F16,
    /// Both q8.
    Q8,
    /// Keys q8, values q4.
    K8V4,
    /// Both q4.
    Q4,
}

impl CacheFormats {
    /// Every pair.
    pub const ALL: [CacheFormats; 5] = [
        CacheFormats::F32,
        CacheFormats::F16,
        CacheFormats::Q8,
        CacheFormats::K8V4,
        CacheFormats::Q4,
    ];

    /// The pair of two formats; none where attention cannot read it.
    pub fn of(formats: [CacheFormat; 2]) -> Option<CacheFormats> {
        CacheFormats::ALL
            .into_iter()
            .find(|pair| pair.each() == formats)
    }

    /// The formats of keys and of values.
    pub fn each(self) -> [CacheFormat; 2] {
        match self {
            CacheFormats::F32 => [CacheFormat::F32; 2],
            CacheFormats::F16 => [CacheFormat::F16; 2],
            CacheFormats::Q8 => [CacheFormat::Q8; 2],
            CacheFormats::K8V4 => [CacheFormat::Q8, CacheFormat::Q4],
            CacheFormats::Q4 => [CacheFormat::Q4; 2],
        }
    }

    /// The name on the command line and in kernels.
    pub fn name(self) -> &'static str {
        match self {
            CacheFormats::F32 => "f32",
            CacheFormats::F16 => "f16",
            CacheFormats::Q8 => "q8",
            CacheFormats::K8V4 => "k8v4",
            CacheFormats::Q4 => "q4",
        }
    }

    /// Mean bytes per value of the blocks of both.
    pub fn bytes_per_value(self, columns: usize) -> f64 {
        self.each()
            .map(|format| format.bytes_per_value(columns))
            .iter()
            .sum::<f64>()
            / 2.0
    }
}

impl FromStr for CacheFormats {
    type Err = Error;

    fn from_str(name: &str) -> Result<CacheFormats> {
        let found = CacheFormats::ALL
            .into_iter()
            .find(|pair| pair.name() == name);
        found
            .ok_or_else(|| Error::invalid(format!("cache {name:?}; known: f32, f16, q8, k8v4, q4")))
    }
}

impl fmt::Display for CacheFormats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Tokens that are codes when this many are kept.
pub fn quantized_tokens(kept: usize) -> usize {
    kept / WINDOW * WINDOW
}
