// Sign and remainders on `Real`; exact, so device code that computes them in another way has the
// same bits.

/// Returns −1 or 1, or x itself if it is zero or NaN. Exact.
#[inline(always)]
pub fn sign(x: Real) -> Real {
    let one = Real::to_bits(ONE) | (x.to_bits() & SIGN);
    Real::from_bits(select((magnitude(x) == 0) | is_nan(x), x.to_bits(), one))
}

/// Computes the remainder of a / b truncated: exact, with the sign of a. NaN for an infinite a or b = 0.
#[inline(always)]
pub fn fmod(a: Real, b: Real) -> Real {
    a % b
}

/// Computes the remainder of a / b floored, with the sign of b: that of [`fmod`], b added where the
/// signs differ and it is not zero.
#[inline(always)]
pub fn modulo(a: Real, b: Real) -> Real {
    let rest = a % b;
    if magnitude(rest) == 0 {
        return Real::from_bits(b.to_bits() & SIGN);
    }
    let differ = (rest.to_bits() ^ b.to_bits()) & SIGN != 0;
    if differ { rest + b } else { rest }
}
