//! The types of a GGUF file's tensors, and what their blocks stand for.
//!
//! A block holds codes of few bits and the scales that widen them. The layouts, and the order of the arithmetic, are those of
//! <https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c> and of the Python package `gguf`, with which the numbers agree in
//! every bit: each product and each sum is rounded once, to f32.

use tectum::kernel::pack::{bf16_bits, f16_bits};
use tectum::{Error, Result};

/// Writes the elements of whole blocks.
pub(super) type Widening = fn(&[u8], &mut [f32]);

/// A type of a tensor's elements.
#[derive(Debug)]
pub struct TensorType {
    /// Its name, as the format has it.
    pub name: &'static str,
    /// Elements of a block; a row is a whole number of blocks.
    pub block: usize,
    /// Bytes of a block.
    pub bytes: usize,
    number: u32,
    /// None for a type that is known and not read.
    widen: Option<Widening>,
}

/// The types that are read.
const READ: &str = "F32, F16, BF16, Q8_0, Q4_0 and Q4_K";

/// All types that there are, but for those that were given up.
static TYPES: [TensorType; 34] = [
    read(0, "F32", 1, 4, f32s),
    read(1, "F16", 1, 2, f16s),
    read(2, "Q4_0", 32, 18, q4_0),
    known(3, "Q4_1", 32, 20),
    known(6, "Q5_0", 32, 22),
    known(7, "Q5_1", 32, 24),
    read(8, "Q8_0", 32, 34, q8_0),
    known(9, "Q8_1", 32, 36),
    known(10, "Q2_K", 256, 84),
    known(11, "Q3_K", 256, 110),
    read(12, "Q4_K", 256, 144, q4_k),
    known(13, "Q5_K", 256, 176),
    known(14, "Q6_K", 256, 210),
    known(15, "Q8_K", 256, 292),
    known(16, "IQ2_XXS", 256, 66),
    known(17, "IQ2_XS", 256, 74),
    known(18, "IQ3_XXS", 256, 98),
    known(19, "IQ1_S", 256, 50),
    known(20, "IQ4_NL", 32, 18),
    known(21, "IQ3_S", 256, 110),
    known(22, "IQ2_S", 256, 82),
    known(23, "IQ4_XS", 256, 136),
    known(24, "I8", 1, 1),
    known(25, "I16", 1, 2),
    known(26, "I32", 1, 4),
    known(27, "I64", 1, 8),
    known(28, "F64", 1, 8),
    known(29, "IQ1_M", 256, 56),
    read(30, "BF16", 1, 2, bf16s),
    known(34, "TQ1_0", 256, 54),
    known(35, "TQ2_0", 256, 66),
    known(39, "MXFP4", 32, 17),
    known(40, "NVFP4", 64, 36),
    known(41, "Q1_0", 128, 18),
];

const fn known(number: u32, name: &'static str, block: usize, bytes: usize) -> TensorType {
    TensorType { name, block, bytes, number, widen: None }
}

const fn read(number: u32, name: &'static str, block: usize, bytes: usize, widen: Widening) -> TensorType {
    TensorType { name, block, bytes, number, widen: Some(widen) }
}

impl TensorType {
    /// The type of a number.
    pub(super) fn of(number: u32) -> Option<&'static TensorType> {
        TYPES.iter().find(|kind| kind.number == number)
    }

    /// Whether its elements are codes in blocks.
    pub fn is_quantized(&self) -> bool {
        self.block > 1
    }

    /// What writes the elements of whole blocks.
    ///
    /// # Errors
    /// `Unsupported` for a type that is not read.
    pub(super) fn widening(&self) -> Result<Widening> {
        self.widen.ok_or_else(|| Error::unsupported(format!("holds {}; {READ} are read", self.name)))
    }
}

fn f32s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut().zip(blocks.as_chunks().0).for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes));
}

fn f16s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut().zip(blocks.as_chunks().0).for_each(|(to, bytes)| *to = f16(*bytes));
}

fn bf16s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut().zip(blocks.as_chunks().0).for_each(|(to, bytes)| *to = f32::from_bits(bf16_bits(u16::from_le_bytes(*bytes).into())));
}

/// A scale d in f16 and 32 codes q in −128 … 127: d · q.
fn q8_0(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks.as_chunks::<34>().0.iter().zip(to.as_chunks_mut::<32>().0) {
        let scale = f16([block[0], block[1]]);
        to.iter_mut().zip(&block[2..]).for_each(|(to, code)| *to = scale * f32::from(code.cast_signed()));
    }
}

/// A scale d in f16 and 32 codes q in 0 … 15, the first 16 in the low halves of 16 bytes, the others in the high ones: d · (q − 8).
fn q4_0(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks.as_chunks::<18>().0.iter().zip(to.as_chunks_mut::<32>().0) {
        let scale = f16([block[0], block[1]]);
        let (low, high) = to.split_at_mut(16);
        for ((low, high), codes) in low.iter_mut().zip(high).zip(&block[2..]) {
            *low = scale * f32::from((codes & 15).cast_signed() - 8);
            *high = scale * f32::from((codes >> 4).cast_signed() - 8);
        }
    }
}

/// Scales d and e in f16; for each eighth of the block a scale s and an offset o of 6 bits; 256 codes q in 0 … 15, each 32 bytes
/// with an eighth in their low halves and the next in their high ones: (d · s) · q − (e · o).
fn q4_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks.as_chunks::<144>().0.iter().zip(to.as_chunks_mut::<256>().0) {
        let (scale, offset) = (f16([block[0], block[1]]), f16([block[2], block[3]]));
        let (packed, codes) = block[4..].split_at(12);
        for (pair, (to, codes)) in to.as_chunks_mut::<64>().0.iter_mut().zip(codes.as_chunks::<32>().0).enumerate() {
            let (low, high) = to.split_at_mut(32);
            for (eighth, to, shift) in [(2 * pair, low, 0), (2 * pair + 1, high, 4)] {
                let (s, o) = six_bits(packed, eighth);
                let (scale, offset) = (scale * f32::from(s), offset * f32::from(o));
                to.iter_mut().zip(codes).for_each(|(to, codes)| *to = scale * f32::from((codes >> shift) & 15) - offset);
            }
        }
    }
}

/// Scale and offset of an eighth of a block. Bytes 0 to 3 hold the first four scales and, above them, the upper two bits of the last
/// four; bytes 4 to 7 the same of the offsets; bytes 8 to 11 the lower four bits of the last four scales, and of the offsets above them.
fn six_bits(packed: &[u8], eighth: usize) -> (u8, u8) {
    match eighth {
        0..4 => (packed[eighth] & 63, packed[eighth + 4] & 63),
        _ => {
            let both = packed[eighth + 4];
            ((both & 15) | ((packed[eighth - 4] >> 6) << 4), (both >> 4) | ((packed[eighth] >> 6) << 4))
        }
    }
}

fn f16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(f16_bits(u16::from_le_bytes(bytes).into()))
}
