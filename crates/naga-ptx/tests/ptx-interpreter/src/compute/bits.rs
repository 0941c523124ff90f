//! Logic, shifts and the instructions that move bits.

use crate::scalar::{Scalar, mask, sign_extend};

/// The operations on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitsOperation {
    And,
    Or,
    Xor,
    Not,
    LogicalNot,
    /// The truth table of `lop3`.
    Lop3(u8),
    ShiftLeft,
    ShiftRight,
    /// `shf.l`, clamping the amount instead of wrapping it.
    FunnelLeft {
        clamp: bool,
    },
    FunnelRight {
        clamp: bool,
    },
    Permute(PermuteMode),
    Extract,
    Insert,
    /// `bfind`, or its distance from the top.
    FindLeading {
        shift_amount: bool,
    },
    Reverse,
    LeadingZeros,
    Population,
}

/// How `prmt` chooses its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermuteMode {
    Index,
    Forward4Extract,
    Backward4Extract,
    Replicate8,
    EdgeClampLeft,
    EdgeClampRight,
    Replicate16,
}

impl BitsOperation {
    pub fn evaluate(self, scalar: Scalar, sources: [u64; 4]) -> u64 {
        use BitsOperation as Op;
        let [a, b, c, d] = sources;
        let bits = scalar.bits;
        let result = match self {
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            Op::Not => !a,
            Op::LogicalNot => u64::from(a == 0),
            Op::Lop3(table) => lop3(a, b, c, table),
            Op::ShiftLeft => a.checked_shl(b as u32).unwrap_or(0),
            Op::ShiftRight => shift_right(a, b, scalar),
            Op::FunnelLeft { clamp } => ((b << 32 | a) << funnel_amount(c, clamp)) >> 32,
            Op::FunnelRight { clamp } => (b << 32 | a) >> funnel_amount(c, clamp),
            Op::Permute(mode) => mode.permute(b << 32 | a, c),
            Op::Extract => extract(a, b, c, scalar),
            Op::Insert => insert([a, b, c, d], bits),
            Op::FindLeading { shift_amount } => find_leading(a, shift_amount, scalar),
            Op::Reverse => a.reverse_bits() >> (64 - bits),
            Op::LeadingZeros => u64::from(a.leading_zeros() - (64 - bits)),
            Op::Population => u64::from(a.count_ones()),
        };
        match self {
            Op::FindLeading { .. } => result,
            _ => result & mask(bits),
        }
    }
}

fn lop3(a: u64, b: u64, c: u64, table: u8) -> u64 {
    let term = |index: u8| {
        let choose = |source: u64, bit: u8| {
            if index >> bit & 1 == 1 {
                source
            } else {
                !source
            }
        };
        choose(a, 2) & choose(b, 1) & choose(c, 0)
    };
    (0..8)
        .filter(|index| table >> index & 1 == 1)
        .fold(0, |result, index| result | term(index))
}

/// Amounts at or above the width give zero, or the sign for signed types.
fn shift_right(a: u64, amount: u64, scalar: Scalar) -> u64 {
    let amount = (amount as u32).min(scalar.bits);
    if scalar.is_signed() {
        (sign_extend(a, scalar.bits) >> amount.min(63)) as u64
    } else {
        a.checked_shr(amount).unwrap_or(0)
    }
}

fn funnel_amount(amount: u64, clamp: bool) -> u64 {
    let amount = amount & mask(32);
    if clamp { amount.min(32) } else { amount & 31 }
}

impl PermuteMode {
    fn permute(self, bytes: u64, control: u64) -> u64 {
        (0..4).fold(0, |result, lane| {
            result | self.byte(bytes, control, lane) << (8 * lane)
        })
    }

    /// The byte of lane `lane`; only the index mode knows sign replication.
    fn byte(self, bytes: u64, control: u64, lane: u64) -> u64 {
        let start = control & 3;
        let pick = |index: u64| bytes >> (8 * (index & 7)) & 0xff;
        match self {
            PermuteMode::Index => {
                let selection = control >> (4 * lane);
                let byte = pick(selection);
                if selection & 8 == 0 {
                    byte
                } else {
                    (byte >> 7) * 0xff
                }
            }
            PermuteMode::Forward4Extract => pick(start + lane),
            PermuteMode::Backward4Extract => pick(start.wrapping_sub(lane)),
            PermuteMode::Replicate8 => pick(start),
            PermuteMode::EdgeClampLeft => pick(start.max(lane)),
            PermuteMode::EdgeClampRight => pick(start.min(lane)),
            PermuteMode::Replicate16 => pick(2 * (control & 1) + (lane & 1)),
        }
    }
}

fn extract(a: u64, position: u64, length: u64, scalar: Scalar) -> u64 {
    let top = scalar.bits - 1;
    let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
    let fill = if scalar.is_signed() && length != 0 {
        a >> (position + length - 1).min(top) & 1
    } else {
        0
    };
    (0..=top).fold(0, |result, bit| {
        let inside = bit < length && position + bit <= top;
        let value = if inside {
            a >> (position + bit) & 1
        } else {
            fill
        };
        result | value << bit
    })
}

fn insert([a, b, position, length]: [u64; 4], bits: u32) -> u64 {
    let (position, length) = (position as u32 & 0xff, length as u32 & 0xff);
    if position >= bits {
        return b;
    }
    let field = mask(length) << position;
    b & !field | a << position & field
}

fn find_leading(a: u64, shift_amount: bool, scalar: Scalar) -> u64 {
    let a = if scalar.is_signed() && sign_extend(a, scalar.bits) < 0 {
        !a & scalar.mask()
    } else {
        a
    };
    if a == 0 {
        return mask(32);
    }
    let index = 63 - a.leading_zeros();
    u64::from(if shift_amount {
        scalar.bits - 1 - index
    } else {
        index
    })
}
