//! Integer arithmetic.

use super::Undefined;
use crate::scalar::{Scalar, mask, sign_extend};

/// The integer operations with the type's signedness as their only variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntegerOperation {
    Add,
    Subtract,
    AddSaturating,
    SubtractSaturating,
    MultiplyLow,
    MultiplyHigh,
    MultiplyWide,
    MultiplyAddLow,
    MultiplyAddHigh,
    MultiplyAddHighSaturating,
    MultiplyAddWide,
    Multiply24Low,
    Multiply24High,
    MultiplyAdd24Low,
    MultiplyAdd24High,
    AbsoluteDifference,
    Divide,
    Remainder,
    Absolute,
    Negate,
    Minimum,
    Maximum,
    /// `dp4a` with the signedness of either operand.
    Dot4(bool, bool),
    /// `dp2a` with the signedness of either operand and whether the upper bytes of `b` count.
    Dot2(bool, bool, bool),
}

impl IntegerOperation {
    pub fn evaluate(self, scalar: Scalar, sources: [u64; 4]) -> Result<u64, Undefined> {
        use IntegerOperation as Op;
        let bits = scalar.bits;
        let [a, b] = [sources[0], sources[1]].map(|source| value(source, scalar));
        let c = sources[2];
        let low = |exact: i128| exact as u64 & mask(bits);
        Ok(match self {
            Op::Add => low(a + b),
            Op::Subtract => low(a - b),
            Op::AddSaturating => low(saturate(a + b, scalar)),
            Op::SubtractSaturating => low(saturate(a - b, scalar)),
            Op::MultiplyLow => low(a.wrapping_mul(b)),
            Op::MultiplyHigh => high(a, b, scalar),
            Op::MultiplyWide => a.wrapping_mul(b) as u64 & mask(2 * bits),
            Op::MultiplyAddLow => low(a.wrapping_mul(b).wrapping_add(i128::from(c))),
            Op::MultiplyAddHigh => high(a, b, scalar).wrapping_add(c) & mask(bits),
            Op::MultiplyAddHighSaturating => {
                let product = value(high(a, b, scalar), scalar);
                low(saturate(product + value(c, scalar), scalar))
            }
            Op::MultiplyAddWide => (a.wrapping_mul(b) as u64).wrapping_add(c) & mask(2 * bits),
            Op::Multiply24Low => multiply24(sources, scalar, 0),
            Op::Multiply24High => multiply24(sources, scalar, 16),
            Op::MultiplyAdd24Low => multiply24(sources, scalar, 0).wrapping_add(c) & mask(bits),
            Op::MultiplyAdd24High => multiply24(sources, scalar, 16).wrapping_add(c) & mask(bits),
            Op::AbsoluteDifference => low((a - b).abs() + i128::from(c)),
            Op::Divide | Op::Remainder if b == 0 => return Err("integer division by zero"),
            Op::Divide => low(a / b),
            Op::Remainder => low(a % b),
            Op::Absolute => low(a.abs()),
            Op::Negate => low(-a),
            Op::Minimum => low(a.min(b)),
            Op::Maximum => low(a.max(b)),
            Op::Dot4(a_signed, b_signed) => {
                let products = (0..4).map(|lane| {
                    part(sources[0], 8, lane, a_signed) * part(sources[1], 8, lane, b_signed)
                });
                accumulate(products, c)
            }
            Op::Dot2(a_signed, b_signed, upper) => {
                let first = if upper { 2 } else { 0 };
                let products = (0..2).map(|lane| {
                    part(sources[0], 16, lane, a_signed)
                        * part(sources[1], 8, first + lane, b_signed)
                });
                accumulate(products, c)
            }
        })
    }
}

/// The source as the mathematical integer of its type.
pub(super) fn value(source: u64, scalar: Scalar) -> i128 {
    if scalar.is_signed() {
        i128::from(sign_extend(source, scalar.bits))
    } else {
        i128::from(source & scalar.mask())
    }
}

/// The nearest value that the type can represent.
pub(super) fn saturate(exact: i128, scalar: Scalar) -> i128 {
    let (least, greatest) = range(scalar);
    exact.clamp(least, greatest)
}

fn range(scalar: Scalar) -> (i128, i128) {
    if scalar.is_signed() {
        let half = 1i128 << (scalar.bits - 1);
        (-half, half - 1)
    } else {
        (0, (1i128 << scalar.bits) - 1)
    }
}

/// The upper half of the product, exact for 64-bit operands of either sign.
fn high(a: i128, b: i128, scalar: Scalar) -> u64 {
    let product = if scalar.is_signed() {
        (a * b) as u128
    } else {
        a as u128 * b as u128
    };
    (product >> scalar.bits) as u64 & scalar.mask()
}

fn multiply24(sources: [u64; 4], scalar: Scalar, shift: u32) -> u64 {
    let narrow = Scalar::new(scalar.class, 24);
    let product = value(sources[0], narrow) * value(sources[1], narrow);
    (product >> shift) as u64 & mask(32)
}

fn part(source: u64, bits: u32, index: u32, signed: bool) -> i64 {
    let raw = (source >> (bits * index)) & mask(bits);
    if signed {
        sign_extend(raw, bits)
    } else {
        raw as i64
    }
}

fn accumulate(products: impl Iterator<Item = i64>, start: u64) -> u64 {
    products.fold(start, |sum, product| sum.wrapping_add(product as u64)) & mask(32)
}
