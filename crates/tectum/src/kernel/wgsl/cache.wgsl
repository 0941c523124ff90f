// Values of caches as halves and codes (`docs/decisions/0021-caches-of-fewer-bits.md`). Native twin: `src/kernel/cache_codes.rs`.
// Every function gives the same bits on every device.

// The half nearest to a number; the greatest one for a number beyond it.
fn tectum_cache_half(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let half = tectum_to_f16(bits);
    return half - select(0u, 1u, (half & 0x7fffu) == 0x7c00u && (bits & 0x7fffffffu) < 0x7f800000u);
}

// The number of a half.
fn tectum_cache_value(half: u32) -> f32 {
    return bitcast<f32>(tectum_f16_bits(half & 0xffffu));
}

// Whether a half is a number.
fn tectum_cache_is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;
}

// Of two halves in a word the one of a column.
fn tectum_cache_pick(word: u32, column: u32) -> f32 {
    return tectum_cache_value(select(word, word >> 16u, (column & 1u) == 1u));
}

// The whole number nearest to x / scale between low and high, ties to even; the residual is exact, so that the last bits of the
// quotient do not matter. Of a scale of 0 or NaN it is 0.
fn tectum_cache_code(x: f32, scale: f32, low: f32, high: f32) -> i32 {
    if !(scale > 0.0) {
        return 0;
    }
    var code = round(x * (1.0 / scale));
    let rest = x - code * scale;
    let half = 0.5 * scale;
    let is_odd = (i32(clamp(code, -1048576.0, 1048576.0)) & 1) == 1;
    if rest > half || (rest == half && is_odd) {
        code += 1.0;
    } else if rest < -half || (rest == -half && is_odd) {
        code -= 1.0;
    }
    return i32(clamp(code, low, high));
}

// The word of scale and minimum of numbers from a least to a greatest one.
fn tectum_cache_range(least: f32, most: f32, is_finite: bool) -> u32 {
    if !is_finite {
        return 0x7e007e00u;
    }
    // One zero, whichever comes out of a minimum.
    let low = tectum_cache_half(least);
    return tectum_cache_half((most - least) * (1.0 / 15.0)) | (select(low, 0u, low == 0x8000u) << 16u);
}
