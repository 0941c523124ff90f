//! Numbers carried as the unevaluated sum of two floats, for what would lose a unit in the last place otherwise.

/// a + b for |a| ≥ |b| or a = 0, as the rounded sum and what its rounding lost; exact.
#[inline(always)]
pub(super) fn ordered_sum(a: f32, b: f32) -> (f32, f32) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// a·b as the rounded product and what its rounding lost, by parts of 12 bits; exact where no part underflows.
#[inline(always)]
pub(super) fn product(a: f32, b: f32) -> (f32, f32) {
    let upper = |x: f32| f32::from_bits(x.to_bits() & 0xffff_f000);
    let (a_hi, b_hi) = (upper(a), upper(b));
    let (a_lo, b_lo) = (a - a_hi, b - b_hi);
    let product = a * b;
    (product, ((a_hi * b_hi - product) + (a_hi * b_lo + a_lo * b_hi)) + a_lo * b_lo)
}

/// (a + a_lo) / (b + b_lo), to 2⁻⁴⁵ even where the division is off by some units in the last place.
#[inline(always)]
pub(super) fn quotient((a, a_lo): (f32, f32), (b, b_lo): (f32, f32)) -> (f32, f32) {
    let reciprocal = 1.0 / b;
    let q = a * reciprocal;
    let (p, p_lo) = product(q, b);
    (q, (((a - p) - p_lo) + (a_lo - q * b_lo)) * reciprocal)
}
