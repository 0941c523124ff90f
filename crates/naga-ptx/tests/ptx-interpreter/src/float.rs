//! Binary floating point of any width with the four roundings, computed exactly and rounded once.
//!
//! A finite number is an integer of up to 128 bits times a power of two. Addition, multiplication
//! and their fusion are exact up to a jammed (sticky) last bit, which represents everything below
//! it, so one rounding at the end gives the result that the manual requires.

use crate::scalar::{Class, Scalar, mask};

/// Rounding of a number between two representable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    Zero,
    Down,
    Up,
}

/// A number, exact or with a jammed last bit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Finite),
}

/// `mantissa` times two to the `exponent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finite {
    pub negative: bool,
    pub mantissa: u128,
    pub exponent: i32,
}

/// The top bit to which operands are normalised before they are aligned.
const TOP: u32 = 125;

struct Format {
    /// Bits of the significand with the implied one.
    precision: u32,
    exponent_bits: u32,
}

impl Format {
    fn of(scalar: Scalar) -> Format {
        let (precision, exponent_bits) = match (scalar.class, scalar.bits) {
            (Class::Brain, _) => (8, 8),
            (_, 16) => (11, 5),
            (_, 32) => (24, 8),
            _ => (53, 11),
        };
        Format {
            precision,
            exponent_bits,
        }
    }

    fn bias(&self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn exponent_mask(&self) -> u64 {
        mask(self.exponent_bits)
    }

    fn fraction_bits(&self) -> u32 {
        self.precision - 1
    }
}

/// The NaN that instructions of this type produce.
pub(crate) fn canonical_nan(scalar: Scalar) -> u64 {
    match (scalar.class, scalar.bits) {
        (_, 16) => 0x7fff,
        (_, 32) => 0x7fff_ffff,
        _ => 0x7ff8_0000_0000_0000,
    }
}

fn sign_bit(scalar: Scalar) -> u64 {
    1 << (scalar.bits - 1)
}

pub(crate) fn is_negative(bits: u64, scalar: Scalar) -> bool {
    bits & sign_bit(scalar) != 0
}

fn infinity(scalar: Scalar) -> u64 {
    let format = Format::of(scalar);
    format.exponent_mask() << format.fraction_bits()
}

pub(crate) fn magnitude(bits: u64, scalar: Scalar) -> u64 {
    bits & mask(scalar.bits - 1)
}

pub(crate) fn is_nan(bits: u64, scalar: Scalar) -> bool {
    magnitude(bits, scalar) > infinity(scalar)
}

pub(crate) fn is_infinite(bits: u64, scalar: Scalar) -> bool {
    magnitude(bits, scalar) == infinity(scalar)
}

pub(crate) fn is_subnormal(bits: u64, scalar: Scalar) -> bool {
    let magnitude = magnitude(bits, scalar);
    magnitude != 0 && magnitude >> Format::of(scalar).fraction_bits() == 0
}

/// Replaces a subnormal by the zero of its sign.
pub(crate) fn flush(bits: u64, scalar: Scalar) -> u64 {
    if is_subnormal(bits, scalar) {
        bits & sign_bit(scalar)
    } else {
        bits
    }
}

/// Reads the encoding `bits` of type `scalar`.
pub(crate) fn decode(bits: u64, scalar: Scalar) -> Number {
    let format = Format::of(scalar);
    let negative = is_negative(bits, scalar);
    let fraction = bits & mask(format.fraction_bits());
    let field = (bits >> format.fraction_bits()) & format.exponent_mask();
    if field == format.exponent_mask() {
        return if fraction == 0 {
            Number::Infinite { negative }
        } else {
            Number::Nan
        };
    }
    let implied = u64::from(field != 0) << format.fraction_bits();
    Number::Finite(Finite {
        negative,
        mantissa: u128::from(fraction | implied),
        exponent: field.max(1) as i32 - format.bias() - format.fraction_bits() as i32,
    })
}

/// Rounds `number` to the type `scalar`.
pub(crate) fn encode(number: Number, scalar: Scalar, rounding: Rounding) -> u64 {
    match number {
        Number::Nan => canonical_nan(scalar),
        Number::Infinite { negative } => with_sign(infinity(scalar), negative, scalar),
        Number::Finite(finite) => with_sign(
            encode_magnitude(finite, scalar, rounding),
            finite.negative,
            scalar,
        ),
    }
}

fn with_sign(magnitude: u64, negative: bool, scalar: Scalar) -> u64 {
    magnitude | if negative { sign_bit(scalar) } else { 0 }
}

fn encode_magnitude(finite: Finite, scalar: Scalar, rounding: Rounding) -> u64 {
    if finite.mantissa == 0 {
        return 0;
    }
    let format = Format::of(scalar);
    let fraction_bits = format.fraction_bits() as i32;
    let top = 127 - finite.mantissa.leading_zeros() as i32;
    let lowest = 1 - format.bias() - fraction_bits;
    let last = (finite.exponent + top - fraction_bits).max(lowest);
    let rounded = round_at(finite, last, rounding) as u64;
    if rounded >> fraction_bits == 0 {
        return rounded;
    }
    let field = (last + fraction_bits + format.bias()) as u64;
    let encoding = (field << fraction_bits) + (rounded - (1 << fraction_bits));
    if encoding >= infinity(scalar) {
        overflow(finite.negative, scalar, rounding)
    } else {
        encoding
    }
}

fn overflow(negative: bool, scalar: Scalar, rounding: Rounding) -> u64 {
    let reaches_infinity = match rounding {
        Rounding::NearestEven => true,
        Rounding::Zero => false,
        Rounding::Down => negative,
        Rounding::Up => !negative,
    };
    infinity(scalar) - u64::from(!reaches_infinity)
}

/// The magnitude as a multiple of two to the `last`.
fn round_at(finite: Finite, last: i32, rounding: Rounding) -> u128 {
    let shift = last - finite.exponent;
    if shift <= 0 {
        return finite.mantissa << shift.unsigned_abs().min(127);
    }
    let (quotient, half, sticky) = split(finite.mantissa, shift as u32);
    let up = match rounding {
        Rounding::NearestEven => half && (sticky || quotient & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => finite.negative && (half || sticky),
        Rounding::Up => !finite.negative && (half || sticky),
    };
    quotient + u128::from(up)
}

/// The bits above `shift`, the bit just below, and whether any lower bit is set.
fn split(mantissa: u128, shift: u32) -> (u128, bool, bool) {
    if shift > 128 {
        return (0, false, mantissa != 0);
    }
    let quotient = mantissa.checked_shr(shift).unwrap_or(0);
    let half = (mantissa >> (shift - 1)) & 1 == 1;
    let below = mantissa & ((1 << (shift - 1)) - 1);
    (quotient, half, below != 0)
}

/// Rounds to an integer, with saturation far outside the range of any integer type.
pub(crate) fn to_integer(finite: Finite, rounding: Rounding) -> i128 {
    let top = 128 - finite.mantissa.leading_zeros() as i32 + finite.exponent;
    let magnitude = if finite.mantissa != 0 && top > 100 {
        1 << 100
    } else {
        round_at(finite, 0, rounding) as i128
    };
    if finite.negative {
        -magnitude
    } else {
        magnitude
    }
}

/// Rounds a float to an integral value of its own type, keeping the sign of zero.
pub(crate) fn to_integral(number: Number, rounding: Rounding) -> Number {
    let Number::Finite(finite) = number else {
        return number;
    };
    if finite.exponent >= 0 {
        return number;
    }
    Number::Finite(Finite {
        negative: finite.negative,
        mantissa: round_at(finite, 0, rounding),
        exponent: 0,
    })
}

pub(crate) fn from_integer(value: i128) -> Number {
    Number::Finite(Finite {
        negative: value < 0,
        mantissa: value.unsigned_abs(),
        exponent: 0,
    })
}

fn negate(number: Number) -> Number {
    match number {
        Number::Nan => Number::Nan,
        Number::Infinite { negative } => Number::Infinite {
            negative: !negative,
        },
        Number::Finite(finite) => Number::Finite(Finite {
            negative: !finite.negative,
            ..finite
        }),
    }
}

/// The sum, whose exact zero takes its sign from `rounding`.
pub(crate) fn add(a: Number, b: Number, rounding: Rounding) -> Number {
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { negative: x }, Number::Infinite { negative: y }) if x != y => {
            Number::Nan
        }
        (Number::Infinite { .. }, _) => a,
        (_, Number::Infinite { .. }) => b,
        (Number::Finite(x), Number::Finite(y)) => Number::Finite(add_finite(x, y, rounding)),
    }
}

pub(crate) fn subtract(a: Number, b: Number, rounding: Rounding) -> Number {
    add(a, negate(b), rounding)
}

fn add_finite(x: Finite, y: Finite, rounding: Rounding) -> Finite {
    if x.mantissa == 0 && y.mantissa == 0 {
        return Finite {
            negative: zero_sign(x.negative, y.negative, rounding),
            ..x
        };
    }
    if x.mantissa == 0 {
        return y;
    }
    if y.mantissa == 0 {
        return x;
    }
    let (x, y) = (normalise(x, TOP), normalise(y, TOP));
    let (large, small) = if (x.exponent, x.mantissa) >= (y.exponent, y.mantissa) {
        (x, y)
    } else {
        (y, x)
    };
    let aligned = shift_jam(small.mantissa, (large.exponent - small.exponent) as u32);
    let mantissa = if large.negative == small.negative {
        large.mantissa + aligned
    } else {
        large.mantissa - aligned
    };
    let negative = if mantissa == 0 {
        rounding == Rounding::Down
    } else {
        large.negative
    };
    Finite {
        negative,
        mantissa,
        exponent: large.exponent,
    }
}

fn zero_sign(x: bool, y: bool, rounding: Rounding) -> bool {
    if x == y {
        x
    } else {
        rounding == Rounding::Down
    }
}

/// Shifts the top set bit of a nonzero mantissa to `top`, at or above its position.
fn normalise(finite: Finite, top: u32) -> Finite {
    let shift = finite.mantissa.leading_zeros() as i32 - (127 - top as i32);
    Finite {
        mantissa: finite.mantissa << shift,
        exponent: finite.exponent - shift,
        ..finite
    }
}

fn shift_jam(mantissa: u128, shift: u32) -> u128 {
    if shift > 127 {
        return u128::from(mantissa != 0);
    }
    let lost = mantissa & ((1 << shift) - 1);
    (mantissa >> shift) | u128::from(lost != 0)
}

pub(crate) fn multiply(a: Number, b: Number) -> Number {
    let is_zero = |number| matches!(number, Number::Finite(finite) if finite.mantissa == 0);
    let negative = signed_negative(a) != signed_negative(b);
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Finite(x), Number::Finite(y)) => Number::Finite(Finite {
            negative,
            mantissa: x.mantissa * y.mantissa,
            exponent: x.exponent + y.exponent,
        }),
        _ if is_zero(a) || is_zero(b) => Number::Nan,
        _ => Number::Infinite { negative },
    }
}

fn signed_negative(number: Number) -> bool {
    match number {
        Number::Nan => false,
        Number::Infinite { negative } => negative,
        Number::Finite(finite) => finite.negative,
    }
}

pub(crate) fn divide(a: Number, b: Number) -> Number {
    let negative = signed_negative(a) != signed_negative(b);
    let zero = Number::Finite(Finite {
        negative,
        mantissa: 0,
        exponent: 0,
    });
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Infinite { .. }, Number::Infinite { .. }) => Number::Nan,
        (Number::Infinite { .. }, _) => Number::Infinite { negative },
        (_, Number::Infinite { .. }) => zero,
        (Number::Finite(x), Number::Finite(y)) => match (x.mantissa, y.mantissa) {
            (0, 0) => Number::Nan,
            (_, 0) => Number::Infinite { negative },
            (0, _) => zero,
            _ => Number::Finite(divide_finite(x, y, negative)),
        },
    }
}

fn divide_finite(x: Finite, y: Finite, negative: bool) -> Finite {
    let x = normalise(x, 127);
    let remainder = x.mantissa % y.mantissa;
    Finite {
        negative,
        mantissa: (x.mantissa / y.mantissa) | u128::from(remainder != 0),
        exponent: x.exponent - y.exponent,
    }
}

pub(crate) fn square_root(a: Number) -> Number {
    match a {
        Number::Finite(finite) if finite.mantissa == 0 => a,
        Number::Infinite { negative: false } => a,
        Number::Finite(finite) if !finite.negative => Number::Finite(root_finite(finite)),
        _ => Number::Nan,
    }
}

fn root_finite(finite: Finite) -> Finite {
    let wide = normalise(finite, 127);
    let even = if wide.exponent % 2 == 0 {
        wide
    } else {
        normalise(finite, 126)
    };
    let root = even.mantissa.isqrt();
    Finite {
        negative: false,
        mantissa: root << 1 | u128::from(root * root != even.mantissa),
        exponent: even.exponent / 2 - 1,
    }
}

/// The value as an `f64`, exact for every type of the subset.
pub(crate) fn to_f64(bits: u64, scalar: Scalar) -> f64 {
    match (scalar.class, scalar.bits) {
        (Class::Float, 64) => f64::from_bits(bits),
        (Class::Float, 32) => f64::from(f32::from_bits(bits as u32)),
        _ => {
            let number = decode(bits, scalar);
            f64::from_bits(encode(number, Scalar::F64, Rounding::NearestEven))
        }
    }
}

/// Rounds an `f64` to nearest in the type `scalar`.
pub(crate) fn from_f64(value: f64, scalar: Scalar) -> u64 {
    if value.is_nan() {
        return canonical_nan(scalar);
    }
    match (scalar.class, scalar.bits) {
        (Class::Float, 64) => value.to_bits(),
        (Class::Float, 32) => u64::from((value as f32).to_bits()),
        _ => encode(
            decode(value.to_bits(), Scalar::F64),
            scalar,
            Rounding::NearestEven,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::mix;

    const NEAREST: Rounding = Rounding::NearestEven;

    /// Bit patterns with every exponent, most of them close enough to one another to cancel.
    fn pattern(index: u64) -> u64 {
        let word = mix(index);
        let sign_and_fraction = word & 0x800f_ffff_ffff_ffff;
        let exponent = 0x3ff0_0000_0000_0000 + ((word >> 3) & 0x07f0_0000_0000_0000);
        match index % 4 {
            0 => word,
            1 => sign_and_fraction | exponent,
            2 => (word & 0x8000_0000_0000_00ff) | 0x3ff0_0000_0000_0000,
            _ => sign_and_fraction,
        }
    }

    fn same(found: u64, expected: f64) {
        // By its bits: compiled with optimisation, `is_nan` has taken the host's default NaN for a
        // number here.
        let bits = expected.to_bits();
        let is_nan = bits & !(1 << 63) > f64::INFINITY.to_bits();
        let expected = if is_nan {
            canonical_nan(Scalar::F64)
        } else {
            bits
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn nearest_agrees_with_the_host_in_f64() {
        for index in 0..20_000 {
            let bits = [0, 1, 2].map(|operand| pattern(3 * index + operand));
            let [x, y, z] = bits.map(f64::from_bits);
            let [a, b, c] = bits.map(|bits| decode(bits, Scalar::F64));
            let round = |number| encode(number, Scalar::F64, NEAREST);
            same(round(add(a, b, NEAREST)), x + y);
            same(round(subtract(a, b, NEAREST)), x - y);
            same(round(multiply(a, b)), x * y);
            same(round(divide(a, b)), x / y);
            same(round(square_root(a)), x.sqrt());
            same(round(add(multiply(a, b), c, NEAREST)), x.mul_add(y, z));
        }
    }

    #[test]
    fn narrowing_agrees_with_the_host() {
        for index in 0..20_000 {
            let bits = pattern(index);
            let value = f64::from_bits(bits) as f32;
            let found = encode(decode(bits, Scalar::F64), Scalar::F32, NEAREST);
            if !value.is_nan() {
                assert_eq!(found, u64::from(value.to_bits()));
            }
        }
    }

    #[test]
    fn directed_roundings_enclose_the_exact_result() {
        for index in 0..20_000 {
            let [a, b] =
                [0, 1].map(|operand| decode(pattern(2 * index + operand) >> 32, Scalar::F32));
            let results = [Rounding::Down, NEAREST, Rounding::Up]
                .map(|rounding| f32::from_bits(encode(divide(a, b), Scalar::F32, rounding) as u32));
            let [down, nearest, up] = results;
            if nearest.is_nan() {
                continue;
            }
            assert!(down <= nearest && nearest <= up);
            assert!(down == up || down.next_up() == up, "{down:e} {up:e}");
            let zero = f32::from_bits(encode(divide(a, b), Scalar::F32, Rounding::Zero) as u32);
            assert_eq!(zero, if nearest < 0.0 { up } else { down });
        }
    }

    #[test]
    fn half_precision_survives_the_round_trip() {
        for bits in 0..=u64::from(u16::MAX) {
            for scalar in [Scalar::F16, Scalar::BF16] {
                if !is_nan(bits, scalar) {
                    assert_eq!(from_f64(to_f64(bits, scalar), scalar), bits);
                }
            }
        }
    }
}
