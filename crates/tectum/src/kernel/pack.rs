//! Half-width floats as bits, by integer arithmetic alone: the native twin of
//! `kernel/wgsl/pack.wgsl`.
//!
//! No branches, so plain loops vectorise. To f32 is exact; from f32 rounds to nearest, ties to
//! even; NaN stays NaN with its sign and upper bits.

/// Which half-width format a word's two halves hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
    F16,
    /// bfloat16: 8 bits of exponent, 7 of mantissa.
    Bf16,
}

impl Half {
    /// The name used in kernels.
    pub fn name(self) -> &'static str {
        match self {
            Half::F16 => "f16",
            Half::Bf16 => "bf16",
        }
    }

    /// Words that hold `n` elements, two in each, the first in the low half.
    pub fn words(self, n: usize) -> usize {
        n.div_ceil(2)
    }
}

#[inline(always)]
fn select(condition: bool, yes: u32, no: u32) -> u32 {
    let mask = u32::from(condition).wrapping_neg();
    (yes & mask) | (no & !mask)
}

/// The bits of an f32 from those of an f16.
#[inline(always)]
pub fn f16_bits(half: u32) -> u32 {
    let sign = (half & 0x8000) << 16;
    let (exponent, mantissa) = ((half >> 10) & 31, half & 0x3ff);
    let small = (mantissa as i32 as f32 * (1.0 / 16_777_216.0)).to_bits();
    let normal = ((exponent + 112) << 23) | (mantissa << 13);
    let large = select(exponent == 31, 0x7f80_0000 | (mantissa << 13), normal);
    sign | select(exponent == 0, small, large)
}

/// The bits of an f32 from those of a bf16.
#[inline(always)]
pub fn bf16_bits(half: u32) -> u32 {
    half << 16
}

/// The bits of the f16 nearest to an f32 given by its bits.
#[inline(always)]
pub fn to_f16(bits: u32) -> u32 {
    let (sign, magnitude) = ((bits >> 16) & 0x8000, bits & 0x7fff_ffff);
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    let rounded = magnitude
        .wrapping_sub(0x3800_0000)
        .wrapping_add(0xfff + ((magnitude >> 13) & 1))
        >> 13;
    let normal = rounded.min(0x7c00);
    // A subnormal result is the magnitude in units of 2⁻²⁴: adding ½ = 2²³·2⁻²⁴ rounds it there,
    // ties to even, by the float adder itself, since a sum in [½, 1) has units of 2⁻²⁴.
    let subnormal = (f32::from_bits(magnitude.min(0x3880_0000)) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    sign | select(
        magnitude > 0x7f80_0000,
        nan,
        select(magnitude >= 0x3880_0000, normal, subnormal),
    )
}

/// The bits of the bf16 nearest to an f32 given by its bits.
#[inline(always)]
pub fn to_bf16(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    select(
        bits & 0x7fff_ffff > 0x7f80_0000,
        (bits >> 16) | 0x40,
        rounded,
    )
}

/// Unpacks elements `first..first + to.len()` of a packed slice.
pub fn unpack(kind: Half, words: &[u32], first: usize, to: &mut [f32]) {
    let convert: fn(&[u32], &mut [f32]) = match kind {
        Half::F16 => |words, to| unpack_pairs(words, to, f16_bits),
        Half::Bf16 => |words, to| unpack_pairs(words, to, bf16_bits),
    };
    let bits = if kind == Half::F16 {
        f16_bits
    } else {
        bf16_bits
    };
    let (head, to) = to.split_at_mut((first % 2).min(to.len()));
    head.iter_mut()
        .for_each(|to| *to = f32::from_bits(bits(words[first / 2] >> 16)));
    convert(&words[first.div_ceil(2)..], to);
}

fn unpack_pairs(words: &[u32], to: &mut [f32], bits: impl Fn(u32) -> u32) {
    super::native::simd(
        #[inline(always)]
        || {
            let (pairs, rest) = to.as_chunks_mut::<2>();
            for (pair, &word) in pairs.iter_mut().zip(words) {
                *pair = [
                    f32::from_bits(bits(word & 0xffff)),
                    f32::from_bits(bits(word >> 16)),
                ];
            }
            if let ([last], Some(&word)) = (rest, words.get(pairs.len())) {
                *last = f32::from_bits(bits(word & 0xffff));
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for half in 0..0x1_0000u32 {
            let nan16 = half & 0x7fff > 0x7c00;
            let expected = if nan16 { half | 0x200 } else { half };
            assert_eq!(to_f16(f16_bits(half)), expected, "f16 {half:04x}");
            let nan = half & 0x7fff > 0x7f80;
            assert_eq!(
                to_bf16(bf16_bits(half)),
                if nan { half | 0x40 } else { half },
                "bf16 {half:04x}"
            );
        }
    }

    #[test]
    fn ties_go_to_even_and_overflow_to_infinity() {
        let ulp = 1.0 / 1024.0f32;
        let cases = [
            (1.0 + 0.5 * ulp, 0x3c00),
            (1.0 + 1.5 * ulp, 0x3c02),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (f32::INFINITY, 0x7c00),
            (2f32.powi(-25), 0),
            (1.5 * 2f32.powi(-24), 2),
            (2f32.powi(-25) * 1.001, 1),
            (-0.0, 0x8000),
            (1e-45, 0),
        ];
        for (value, half) in cases {
            assert_eq!(to_f16(value.to_bits()), half, "{value}");
        }
    }
}
