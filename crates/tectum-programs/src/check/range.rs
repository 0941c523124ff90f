//! Ranges of integers: an interval, and a number that divides the value.

use crate::{BinaryOp, Type};

/// All values v with low ≤ v ≤ high that `multiple` divides. A multiple of 0 divides 0 alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub low: u64,
    pub high: u64,
    pub multiple: u64,
}

impl Range {
    pub fn constant(value: u64) -> Self {
        Self {
            low: value,
            high: value,
            multiple: value,
        }
    }

    /// Any value of an interval.
    pub fn between(low: u64, high: u64) -> Self {
        if low == high {
            Self::constant(low)
        } else {
            Self {
                low,
                high,
                multiple: 1,
            }
        }
    }

    pub fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            multiple: gcd(self.multiple, other.multiple),
        }
    }

    /// Whether every value is a multiple of a type's size.
    pub fn is_aligned(self, ty: Type) -> bool {
        self.multiple.is_multiple_of(ty.bytes())
    }

    /// The range itself, if it does not exceed the type's maximum.
    pub fn within(self, ty: Type) -> Option<Self> {
        (self.high <= greatest(ty)).then_some(self)
    }
}

/// The greatest value of an integer type.
pub fn greatest(ty: Type) -> u64 {
    if ty.is_signed() {
        ty.mask() >> 1
    } else {
        ty.mask()
    }
}

/// The result of an operation on integers that are not negative, or `None` if it may wrap or is
/// unknown.
pub fn binary(op: BinaryOp, ty: Type, a: Range, b: Range) -> Option<Range> {
    let result = match op {
        BinaryOp::Add => Range {
            low: a.low.checked_add(b.low)?,
            high: a.high.checked_add(b.high)?,
            multiple: gcd(a.multiple, b.multiple),
        },
        BinaryOp::Sub => Range {
            low: a.low.checked_sub(b.high)?,
            high: a.high - b.low,
            multiple: gcd(a.multiple, b.multiple),
        },
        BinaryOp::Mul => product(a, b)?,
        BinaryOp::Shl if b.low == b.high && b.low < u64::from(ty.bits()) => {
            product(a, Range::constant(1 << b.low))?
        }
        BinaryOp::Shr if b.high < u64::from(ty.bits()) => {
            Range::between(a.low >> b.high, a.high >> b.low)
        }
        BinaryOp::Div => Range::between(a.low.checked_div(b.high)?, a.high.checked_div(b.low)?),
        BinaryOp::Min => Range {
            low: a.low.min(b.low),
            high: a.high.min(b.high),
            multiple: gcd(a.multiple, b.multiple),
        },
        BinaryOp::Max => Range {
            low: a.low.max(b.low),
            high: a.high.max(b.high),
            multiple: gcd(a.multiple, b.multiple),
        },
        BinaryOp::And => Range {
            low: 0,
            high: a.high.min(b.high),
            multiple: lowest_bit(a).max(lowest_bit(b)),
        },
        BinaryOp::Or => Range {
            low: a.low.max(b.low),
            high: below_power(a.high | b.high),
            multiple: lowest_bit(a).min(lowest_bit(b)),
        },
        BinaryOp::Xor => Range {
            low: 0,
            high: below_power(a.high | b.high),
            multiple: lowest_bit(a).min(lowest_bit(b)),
        },
        BinaryOp::Shl | BinaryOp::Shr => return None,
    };
    result.within(ty)
}

fn product(a: Range, b: Range) -> Option<Range> {
    let high = a.high.checked_mul(b.high)?;
    Some(Range {
        low: a.low * b.low,
        high,
        multiple: a.multiple.checked_mul(b.multiple).unwrap_or(1),
    })
}

/// The greatest power of two proven to divide all values; for 0 alone the maximum.
fn lowest_bit(range: Range) -> u64 {
    if range.multiple == 0 {
        1 << 63
    } else {
        range.multiple & range.multiple.wrapping_neg()
    }
}

/// The greatest number with no more bits.
fn below_power(value: u64) -> u64 {
    u64::MAX.checked_shr(value.leading_zeros()).unwrap_or(0)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation on every pair of small ranges covers the results of the numbers.
    #[test]
    fn ranges_cover_what_operations_give() {
        let ranges: Vec<Range> = (0..7)
            .flat_map(|low| {
                (low..9).flat_map(move |high| {
                    (1..4).map(move |multiple| Range {
                        low,
                        high,
                        multiple,
                    })
                })
            })
            .collect();
        let values = |range: Range| {
            (range.low..=range.high).filter(move |value| value % range.multiple == 0)
        };
        for op in BinaryOp::ALL {
            for (&a, &b) in ranges
                .iter()
                .flat_map(|a| ranges.iter().map(move |b| (a, b)))
            {
                let Some(result) = binary(*op, Type::U8, a, b) else {
                    continue;
                };
                for (x, y) in values(a).flat_map(|x| values(b).map(move |y| (x, y))) {
                    let Some(value) = crate::scalar::binary(*op, Type::U8, x, y) else {
                        continue;
                    };
                    let divided = if result.multiple == 0 {
                        value == 0
                    } else {
                        value % result.multiple == 0
                    };
                    assert!(
                        result.low <= value && value <= result.high && divided,
                        "{op} {x} {y}: {value} in {result:?}"
                    );
                }
            }
        }
    }
}
