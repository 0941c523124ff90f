//! The types of a GGUF file's tensors, and the decoding of their blocks.
//!
//! A block holds codes of few bits and the scales that widen them. The layouts and the order of the
//! arithmetic are those of
//! <https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c> and of the Python package `gguf`, with which the numbers agree in
//! every bit: each product and each sum is rounded once, to f32.

use tectum::kernel::pack::{bf16_bits, f16_bits};
use tectum::{Error, Result};

/// Writes the elements of whole blocks.
pub(super) type Dequantizer = fn(&[u8], &mut [f32]);

/// A type of a tensor's elements.
#[derive(Debug)]
pub struct TensorType {
    /// Its name in the format.
    pub name: &'static str,
    /// Elements of a block; a row is a whole number of blocks.
    pub block: usize,
    /// Bytes of a block.
    pub bytes: usize,
    number: u32,
    /// None for a known type that cannot be read.
    dequantize: Option<Dequantizer>,
}

/// The types that can be read.
const READ: &str = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K";

/// All types, except removed ones.
static TYPES: [TensorType; 34] = [
    read(0, "F32", 1, 4, f32s),
    read(1, "F16", 1, 2, f16s),
    read(2, "Q4_0", 32, 18, q4_0),
    read(3, "Q4_1", 32, 20, q4_1),
    read(6, "Q5_0", 32, 22, q5_0),
    read(7, "Q5_1", 32, 24, q5_1),
    read(8, "Q8_0", 32, 34, q8_0),
    known(9, "Q8_1", 32, 36),
    read(10, "Q2_K", 256, 84, q2_k),
    read(11, "Q3_K", 256, 110, q3_k),
    read(12, "Q4_K", 256, 144, q4_k),
    read(13, "Q5_K", 256, 176, q5_k),
    read(14, "Q6_K", 256, 210, q6_k),
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
    TensorType {
        name,
        block,
        bytes,
        number,
        dequantize: None,
    }
}

const fn read(
    number: u32,
    name: &'static str,
    block: usize,
    bytes: usize,
    widen: Dequantizer,
) -> TensorType {
    TensorType {
        name,
        block,
        bytes,
        number,
        dequantize: Some(widen),
    }
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

    /// The function that writes the elements of whole blocks.
    ///
    /// # Errors
    /// `Unsupported` for a type that cannot be read.
    pub(super) fn dequantizer(&self) -> Result<Dequantizer> {
        self.dequantize
            .ok_or_else(|| Error::unsupported(format!("holds {}; {READ} are read", self.name)))
    }
}

fn f32s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut()
        .zip(blocks.as_chunks().0)
        .for_each(|(to, bytes)| *to = f32::from_le_bytes(*bytes));
}

fn f16s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut()
        .zip(blocks.as_chunks().0)
        .for_each(|(to, bytes)| *to = f16(*bytes));
}

fn bf16s(blocks: &[u8], to: &mut [f32]) {
    to.iter_mut()
        .zip(blocks.as_chunks().0)
        .for_each(|(to, bytes)| *to = f32::from_bits(bf16_bits(u16::from_le_bytes(*bytes).into())));
}

/// A scale d in f16 and 32 codes q in −128 … 127: d · q.
fn q8_0(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<34>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<32>().0)
    {
        let scale = f16([block[0], block[1]]);
        to.iter_mut()
            .zip(&block[2..])
            .for_each(|(to, code)| *to = scale * f32::from(code.cast_signed()));
    }
}

/// A scale d in f16 and 32 codes q in 0 … 15, the first 16 in the low halves of 16 bytes, the
/// others in the high ones: d · (q − 8).
fn q4_0(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<18>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<32>().0)
    {
        let scale = f16([block[0], block[1]]);
        let (low, high) = to.split_at_mut(16);
        for ((low, high), codes) in low.iter_mut().zip(high).zip(&block[2..]) {
            *low = scale * f32::from((codes & 15).cast_signed() - 8);
            *high = scale * f32::from((codes >> 4).cast_signed() - 8);
        }
    }
}

/// A scale d and an offset m in f16, and 32 codes q in 0 … 15 as those of [`q4_0`]: d · q + m.
fn q4_1(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<20>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<32>().0)
    {
        let (scale, offset) = (f16([block[0], block[1]]), f16([block[2], block[3]]));
        let (low, high) = to.split_at_mut(16);
        for ((low, high), codes) in low.iter_mut().zip(high).zip(&block[4..]) {
            *low = scale * f32::from(codes & 15) + offset;
            *high = scale * f32::from(codes >> 4) + offset;
        }
    }
}

/// A scale d in f16 and 32 codes q in 0 … 31 as [`five_bits`] has them: d · (q − 16).
fn q5_0(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<22>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<32>().0)
    {
        let scale = f16([block[0], block[1]]);
        to.iter_mut()
            .zip(five_bits(&block[2..]))
            .for_each(|(to, code)| *to = scale * f32::from(code.cast_signed() - 16));
    }
}

/// A scale d and an offset m in f16, and 32 codes q in 0 … 31 as [`five_bits`] has them: d · q + m.
fn q5_1(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<24>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<32>().0)
    {
        let (scale, offset) = (f16([block[0], block[1]]), f16([block[2], block[3]]));
        to.iter_mut()
            .zip(five_bits(&block[4..]))
            .for_each(|(to, code)| *to = scale * f32::from(code) + offset);
    }
}

/// 32 codes: their fifth bits in four bytes, the lowest first, then the others as those of
/// [`q4_0`].
fn five_bits(packed: &[u8]) -> [u8; 32] {
    let (fifth, codes) = packed.split_at(4);
    std::array::from_fn(|at| {
        let both = codes[at % 16];
        (if at < 16 { both & 15 } else { both >> 4 }) | (((fifth[at / 8] >> (at % 8)) & 1) << 4)
    })
}

/// For each sixteenth of the block a scale s and an offset o of 4 bits, the scale in the lower half
/// of its byte; 256 codes q in 0 … 3, each 32 bytes with two sixteenths in their lowest two bits,
/// the next two above them, and so on; scales d and e in f16: (d · s) · q − (e · o).
fn q2_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<84>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<256>().0)
    {
        let (packed, codes) = block[..80].split_at(16);
        let (scale, offset) = (f16([block[80], block[81]]), f16([block[82], block[83]]));
        for (sixteenth, to) in to.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let (scale, offset) = (
                scale * f32::from(packed[sixteenth] & 15),
                offset * f32::from(packed[sixteenth] >> 4),
            );
            let (codes, shift) = two_bits(codes, sixteenth);
            to.iter_mut()
                .zip(codes)
                .for_each(|(to, codes)| *to = scale * f32::from((codes >> shift) & 3) - offset);
        }
    }
}

/// 256 codes q in −4 … 3: whether a code is not less than 0 in the bits of 32 bytes, one bit for
/// each eighth of the block, and the others as those of [`q2_k`]; then 16 scales s in −32 … 31,
/// their lower four bits in the halves of eight bytes, the lower halves first, and their upper two
/// bits in four bytes, the lowest of each byte first; then a scale d in f16: (d · s) · q.
fn q3_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<110>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<256>().0)
    {
        let ((signs, rest), scale) = (block.split_at(32), f16([block[108], block[109]]));
        let (codes, packed) = rest.split_at(64);
        for (sixteenth, to) in to.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let low = (packed[sixteenth % 8] >> (4 * (sixteenth / 8))) & 15;
            let high = (packed[8 + sixteenth % 4] >> (2 * (sixteenth / 4))) & 3;
            let scale = scale * f32::from((low | (high << 4)).cast_signed() - 32);
            let (codes, shift) = two_bits(codes, sixteenth);
            let signs = &signs[16 * (sixteenth % 2)..][..16];
            for ((to, codes), signs) in to.iter_mut().zip(codes).zip(signs) {
                let negative = 1 - ((signs >> (sixteenth / 2)) & 1);
                *to = scale
                    * f32::from(((codes >> shift) & 3).cast_signed() - 4 * negative.cast_signed());
            }
        }
    }
}

/// The bytes with the two-bit codes of a sixteenth of a block, and the position in each byte.
fn two_bits(codes: &[u8], sixteenth: usize) -> (&[u8], usize) {
    let first = 32 * (sixteenth / 8) + 16 * (sixteenth % 2);
    (&codes[first..first + 16], 2 * (sixteenth % 8 / 2))
}

/// Scales d and e in f16; for each eighth of the block a scale s and an offset o of 6 bits; 256
/// codes q in 0 … 15, each 32 bytes with an eighth in their low halves and the next in their high
/// ones: (d · s) · q − (e · o).
fn q4_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<144>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<256>().0)
    {
        let (head, codes) = block.split_at(16);
        eighths(head, codes, to, |_, _| 0);
    }
}

/// As [`q4_k`], with codes in 0 … 31: between scales and codes are 32 bytes with a fifth bit for
/// each eighth, the first's lowest.
fn q5_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<176>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<256>().0)
    {
        let ((head, fifth), codes) = (block[..48].split_at(16), &block[48..]);
        eighths(head, codes, to, |eighth, at| {
            ((fifth[at] >> eighth) & 1) << 4
        });
    }
}

/// The numbers of a block of [`q4_k`] or [`q5_k`]: `fifth` of an eighth and a place in it is the
/// part of its code above four bits.
fn eighths(head: &[u8], codes: &[u8], to: &mut [f32; 256], fifth: impl Fn(usize, usize) -> u8) {
    let (scale, offset) = (f16([head[0], head[1]]), f16([head[2], head[3]]));
    for (eighth, to) in to.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let (s, o) = six_bits(&head[4..], eighth);
        let (scale, offset) = (scale * f32::from(s), offset * f32::from(o));
        let codes = &codes[32 * (eighth / 2)..];
        for (at, (to, codes)) in to.iter_mut().zip(codes).enumerate() {
            *to = scale * f32::from(((codes >> (4 * (eighth % 2))) & 15) | fifth(eighth, at))
                - offset;
        }
    }
}

/// For each half of the block 128 codes q in 0 … 63, of which the lower four bits of the first 64
/// are in the low halves of 64 bytes and those of the others in the high halves; then, for each
/// half, the upper two bits in 32 bytes, a quarter's in the lowest two of each, the next quarter's
/// above them; then a scale s in −128 … 127 for each sixteenth, and a scale d in f16: (d · s) · (q
/// − 32).
fn q6_k(blocks: &[u8], to: &mut [f32]) {
    for (block, to) in blocks
        .as_chunks::<210>()
        .0
        .iter()
        .zip(to.as_chunks_mut::<256>().0)
    {
        let ((low, rest), scale) = (block.split_at(128), f16([block[208], block[209]]));
        let (high, scales) = rest.split_at(64);
        for (sixteenth, to) in to.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = scale * f32::from(scales[sixteenth].cast_signed());
            let (half, quarter, first) = (sixteenth / 8, sixteenth % 8 / 2, 16 * (sixteenth % 2));
            let low = &low[64 * half + 32 * (quarter % 2) + first..];
            let high = &high[32 * half + first..];
            for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
                let code =
                    ((low >> (4 * (quarter / 2))) & 15) | (((high >> (2 * quarter)) & 3) << 4);
                *to = scale * f32::from(code.cast_signed() - 32);
            }
        }
    }
}

/// Scale and offset of an eighth of a block. Bytes 0 to 3 hold the first four scales and, above
/// them, the upper two bits of the last four; bytes 4 to 7 the same of the offsets; bytes 8 to 11
/// the lower four bits of the last four scales, and of the offsets above them.
fn six_bits(packed: &[u8], eighth: usize) -> (u8, u8) {
    match eighth {
        0..4 => (packed[eighth] & 63, packed[eighth + 4] & 63),
        _ => {
            let both = packed[eighth + 4];
            (
                (both & 15) | ((packed[eighth - 4] >> 6) << 4),
                (both >> 4) | ((packed[eighth] >> 6) << 4),
            )
        }
    }
}

fn f16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(f16_bits(u16::from_le_bytes(bytes).into()))
}
