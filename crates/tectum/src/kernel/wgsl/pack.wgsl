// Half-width floats as 16 bits of a word, converted by integer arithmetic alone: the same bits on every device. Native twin:
// `src/kernel/pack.rs`. To f32: exact. From f32: round to nearest, ties to even; NaN stays NaN with its sign and upper bits.

// The bits of an f32 from those of an f16.
fn tectum_f16_bits(half: u32) -> u32 {
    let sign = (half & 0x8000u) << 16u;
    let exponent = (half >> 10u) & 31u;
    let mantissa = half & 0x3ffu;
    // A subnormal is its mantissa as an integer times 2^-24: exact and a normal f32.
    let small = bitcast<u32>(f32(mantissa) * 5.9604644775390625e-8);
    let normal = ((exponent + 112u) << 23u) | (mantissa << 13u);
    let large = select(normal, 0x7f800000u | (mantissa << 13u), exponent == 31u);
    return sign | select(large, small, exponent == 0u);
}

// The bits of an f32 from those of a bf16.
fn tectum_bf16_bits(half: u32) -> u32 {
    return half << 16u;
}

// The bits of the f16 nearest to an f32 given by its bits.
fn tectum_to_f16(bits: u32) -> u32 {
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return sign | 0x7e00u | ((magnitude >> 13u) & 0x3ffu);
    }
    if magnitude >= 0x38800000u {
        // Rounding carries into the exponent, and from the greatest exponent to infinity.
        let rounded = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u;
        return sign | min(rounded, 0x7c00u);
    }
    // A subnormal result: the mantissa in units of 2^-24.
    let shift = min(126u - (magnitude >> 23u), 31u);
    let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    let kept = mantissa >> shift;
    let rest = mantissa & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
}

// The bits of the bf16 nearest to an f32 given by its bits.
fn tectum_to_bf16(bits: u32) -> u32 {
    if (bits & 0x7fffffffu) > 0x7f800000u {
        return (bits >> 16u) | 0x40u;
    }
    return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
