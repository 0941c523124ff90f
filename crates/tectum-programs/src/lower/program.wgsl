// What the instructions of lowered programs compute. A lowered kernel holds those of these functions that it uses.
//
// Values of 8, 16 and 32 bits are a u32: signed integers with their sign in the upper bits, floats as their bits. Values of
// 64 bits are two words, the lower first: what needs 64 bits is done in 32, so every device can.
//
// f32 results pass through `hold`, across which no compiler regroups or contracts; `params.zero` is 0, which it cannot know.
// Comparisons, minima and conversions go by bits: NaN, zeros and subnormals are as `docs/programs.md` says everywhere.

fn hold(x: f32) -> u32 {
    return bitcast<u32>(x) ^ params.zero;
}

// Integers of up to 32 bits.

fn sign8(a: u32) -> u32 {
    return bitcast<u32>(bitcast<i32>(a << 24u) >> 24u);
}

fn sign16(a: u32) -> u32 {
    return bitcast<u32>(bitcast<i32>(a << 16u) >> 16u);
}

fn div_i32(a: u32, b: u32) -> u32 {
    return bitcast<u32>(bitcast<i32>(a) / bitcast<i32>(b));
}

fn shr_i32(a: u32, n: u32) -> u32 {
    return bitcast<u32>(bitcast<i32>(a) >> n);
}

fn lt_i32(a: u32, b: u32) -> bool {
    return bitcast<i32>(a) < bitcast<i32>(b);
}

fn min_i32(a: u32, b: u32) -> u32 {
    return select(b, a, lt_i32(a, b));
}

fn max_i32(a: u32, b: u32) -> u32 {
    return select(a, b, lt_i32(a, b));
}

fn abs_i32(a: u32) -> u32 {
    return select(a, 0u - a, a >= 0x80000000u);
}

// Integers of 64 bits.

fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn sub_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x * b.x, tectum_multiply_high(a.x, b.x) + a.x * b.y + a.y * b.x);
}

fn neg_64(a: vec2<u32>) -> vec2<u32> {
    return sub_64(vec2<u32>(0u, 0u), a);
}

fn abs_i64(a: vec2<u32>) -> vec2<u32> {
    return select(a, neg_64(a), a.y >= 0x80000000u);
}

fn eq_64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x == b.x && a.y == b.y;
}

fn lt_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn lt_i64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return lt_u64(vec2<u32>(a.x, a.y ^ 0x80000000u), vec2<u32>(b.x, b.y ^ 0x80000000u));
}

fn min_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, lt_u64(a, b));
}

fn max_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, lt_u64(a, b));
}

fn min_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(b, a, lt_i64(a, b));
}

fn max_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return select(a, b, lt_i64(a, b));
}

// Shifts by n < 64.
fn shl_64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if n >= 32u {
        return vec2<u32>(0u, a.x << (n - 32u));
    }
    return vec2<u32>(a.x << n, (a.y << n) | ((a.x >> 1u) >> (31u - n)));
}

fn shr_u64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if n >= 32u {
        return vec2<u32>(a.y >> (n - 32u), 0u);
    }
    return vec2<u32>((a.x >> n) | ((a.y << 1u) << (31u - n)), a.y >> n);
}

fn shr_i64(a: vec2<u32>, n: u32) -> vec2<u32> {
    if n >= 32u {
        return vec2<u32>(shr_i32(a.y, n - 32u), shr_i32(a.y, 31u));
    }
    return vec2<u32>((a.x >> n) | ((a.y << 1u) << (31u - n)), shr_i32(a.y, n));
}

// Long division, bit by bit; the dividend where the divisor is 0.
fn div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    if b.x == 0u && b.y == 0u {
        return a;
    }
    if a.y == 0u && b.y == 0u {
        return vec2<u32>(a.x / b.x, 0u);
    }
    var quotient = a;
    var rest = vec2<u32>(0u, 0u);
    for (var bit = 0u; bit < 64u; bit++) {
        let carries = rest.y >= 0x80000000u;
        rest = vec2<u32>((rest.x << 1u) | (quotient.y >> 31u), (rest.y << 1u) | (rest.x >> 31u));
        let fits = carries || !lt_u64(rest, b);
        rest = select(rest, sub_64(rest, b), fits);
        quotient = vec2<u32>((quotient.x << 1u) | select(0u, 1u, fits), (quotient.y << 1u) | (quotient.x >> 31u));
    }
    return quotient;
}

fn div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let quotient = div_u64(abs_i64(a), abs_i64(b));
    return select(quotient, neg_64(quotient), ((a.y ^ b.y) & 0x80000000u) != 0u);
}

fn sign_64(a: u32) -> vec2<u32> {
    return vec2<u32>(a, shr_i32(a, 31u));
}

fn leading_zeros_64(a: vec2<u32>) -> u32 {
    return select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
}

// f32.

fn add_f32(a: u32, b: u32) -> u32 {
    return hold(bitcast<f32>(a) + bitcast<f32>(b));
}

fn sub_f32(a: u32, b: u32) -> u32 {
    return hold(bitcast<f32>(a) - bitcast<f32>(b));
}

fn mul_f32(a: u32, b: u32) -> u32 {
    return hold(bitcast<f32>(a) * bitcast<f32>(b));
}

fn div_f32(a: u32, b: u32) -> u32 {
    return hold(bitcast<f32>(a) / bitcast<f32>(b));
}

fn mad_f32(a: u32, b: u32, c: u32) -> u32 {
    return add_f32(mul_f32(a, b), c);
}

fn fma_f32(a: u32, b: u32, c: u32) -> u32 {
    return hold(fma(bitcast<f32>(a), bitcast<f32>(b), bitcast<f32>(c)));
}

fn min_f32(a: u32, b: u32) -> u32 {
    return bitcast<u32>(tectum_min(bitcast<f32>(a), bitcast<f32>(b)));
}

fn max_f32(a: u32, b: u32) -> u32 {
    return bitcast<u32>(tectum_max(bitcast<f32>(a), bitcast<f32>(b)));
}

fn relu_f32(a: u32) -> u32 {
    return select(a, 0u, a >= 0x80000000u && a <= 0xff800000u);
}

fn nan_f32(a: u32) -> bool {
    return (a & 0x7fffffffu) > 0x7f800000u;
}

// An integer that orders as the number does, both zeros 0.
fn key_f32(a: u32) -> i32 {
    let magnitude = bitcast<i32>(a & 0x7fffffffu);
    return select(magnitude, -magnitude, a >= 0x80000000u);
}

fn eq_f32(a: u32, b: u32) -> bool {
    return !nan_f32(a) && !nan_f32(b) && key_f32(a) == key_f32(b);
}

fn lt_f32(a: u32, b: u32) -> bool {
    return !nan_f32(a) && !nan_f32(b) && key_f32(a) < key_f32(b);
}

fn le_f32(a: u32, b: u32) -> bool {
    return !nan_f32(a) && !nan_f32(b) && key_f32(a) <= key_f32(b);
}

fn sqrt_f32(a: u32) -> u32 {
    if nan_f32(a) || (a > 0x80000000u) {
        return 0x7fc00000u;
    }
    return select(hold(sqrt(bitcast<f32>(a))), a, a == 0u || a >= 0x7f800000u);
}

fn rsqrt_f32(a: u32) -> u32 {
    if nan_f32(a) || (a > 0x80000000u) {
        return 0x7fc00000u;
    }
    if (a & 0x7fffffffu) == 0u {
        return a | 0x7f800000u;
    }
    return select(hold(1.0 / sqrt(bitcast<f32>(a))), 0u, a == 0x7f800000u);
}

fn exp_f32(a: u32) -> u32 {
    return hold(tectum_exp(bitcast<f32>(a)));
}

fn log_f32(a: u32) -> u32 {
    return hold(tectum_log(bitcast<f32>(a)));
}

fn log2_f32(a: u32) -> u32 {
    return hold(tectum_log2(bitcast<f32>(a)));
}

fn log10_f32(a: u32) -> u32 {
    let natural = log_f32(a);
    return select(hold(bitcast<f32>(natural) * 0.4342944819), natural, (natural & 0x7fffffffu) >= 0x7f800000u);
}

fn sin_f32(a: u32) -> u32 {
    return hold(tectum_sin(bitcast<f32>(a)));
}

fn cos_f32(a: u32) -> u32 {
    return hold(tectum_cos(bitcast<f32>(a)));
}

fn tan_f32(a: u32) -> u32 {
    return div_f32(sin_f32(a), cos_f32(a));
}

fn tanh_f32(a: u32) -> u32 {
    return hold(tectum_tanh(bitcast<f32>(a)));
}

fn sigmoid_f32(a: u32) -> u32 {
    return hold(tectum_sigmoid(bitcast<f32>(a)));
}

fn gelu_f32(a: u32) -> u32 {
    return hold(tectum_gelu(bitcast<f32>(a)));
}

fn gelu_erf_f32(a: u32) -> u32 {
    return hold(tectum_gelu_erf(bitcast<f32>(a)));
}

fn silu_f32(a: u32) -> u32 {
    return hold(tectum_silu(bitcast<f32>(a)));
}

fn erf_f32(a: u32) -> u32 {
    return hold(tectum_erf(bitcast<f32>(a)));
}

fn exp2_f32(a: u32) -> u32 {
    return hold(tectum_exp2(bitcast<f32>(a)));
}

fn floor_f32(a: u32) -> u32 {
    return hold(floor(bitcast<f32>(a)));
}

fn ceil_f32(a: u32) -> u32 {
    return hold(ceil(bitcast<f32>(a)));
}

fn round_f32(a: u32) -> u32 {
    return hold(tectum_round(bitcast<f32>(a)));
}

// f64, its bits.

fn nan_f64(a: vec2<u32>) -> bool {
    return lt_u64(vec2<u32>(0u, 0x7ff00000u), vec2<u32>(a.x, a.y & 0x7fffffffu));
}

fn key_f64(a: vec2<u32>) -> vec2<u32> {
    let magnitude = vec2<u32>(a.x, a.y & 0x7fffffffu);
    return select(magnitude, neg_64(magnitude), a.y >= 0x80000000u);
}

// As `key_f64`, -0 below +0.
fn order_f64(a: vec2<u32>) -> vec2<u32> {
    return select(a, vec2<u32>(~a.x, a.y ^ 0x7fffffffu), a.y >= 0x80000000u);
}

fn eq_f64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return !nan_f64(a) && !nan_f64(b) && eq_64(key_f64(a), key_f64(b));
}

fn lt_f64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return !nan_f64(a) && !nan_f64(b) && lt_i64(key_f64(a), key_f64(b));
}

fn le_f64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return !nan_f64(a) && !nan_f64(b) && !lt_i64(key_f64(b), key_f64(a));
}

fn min_f64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let least = select(b, a, lt_i64(order_f64(a), order_f64(b)));
    return select(least, vec2<u32>(0u, 0x7ff80000u), nan_f64(a) || nan_f64(b));
}

fn max_f64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let greatest = select(a, b, lt_i64(order_f64(a), order_f64(b)));
    return select(greatest, vec2<u32>(0u, 0x7ff80000u), nan_f64(a) || nan_f64(b));
}

fn relu_f64(a: vec2<u32>) -> vec2<u32> {
    return select(a, vec2<u32>(0u, 0u), a.y >= 0x80000000u && !nan_f64(a));
}

// Conversions.

fn f32_from_i32(a: u32) -> u32 {
    return bitcast<u32>(f32(bitcast<i32>(a)));
}

fn f32_from_u32(a: u32) -> u32 {
    return bitcast<u32>(f32(a));
}

fn f32_from_u64(a: vec2<u32>) -> u32 {
    if a.x == 0u && a.y == 0u {
        return 0u;
    }
    let zeros = leading_zeros_64(a);
    let m = shl_64(a, zeros);
    let kept = m.y >> 8u;
    let rest = m.y & 0xffu;
    let up = rest > 0x80u || (rest == 0x80u && (m.x != 0u || (kept & 1u) == 1u));
    return ((189u - zeros) << 23u) + kept + select(0u, 1u, up);
}

fn f32_from_i64(a: vec2<u32>) -> u32 {
    return f32_from_u64(abs_i64(a)) | (a.y & 0x80000000u);
}

fn f64_from_u64(a: vec2<u32>) -> vec2<u32> {
    if a.x == 0u && a.y == 0u {
        return a;
    }
    let zeros = leading_zeros_64(a);
    let m = shl_64(a, zeros);
    let kept = shr_u64(m, 11u);
    let rest = m.x & 0x7ffu;
    let up = rest > 0x400u || (rest == 0x400u && (kept.x & 1u) == 1u);
    return add_64(add_64(vec2<u32>(0u, (1085u - zeros) << 20u), kept), vec2<u32>(select(0u, 1u, up), 0u));
}

fn f64_from_i64(a: vec2<u32>) -> vec2<u32> {
    return f64_from_u64(abs_i64(a)) | vec2<u32>(0u, a.y & 0x80000000u);
}

fn f64_from_f32(a: u32) -> vec2<u32> {
    let sign = a & 0x80000000u;
    let exponent = (a >> 23u) & 0xffu;
    var m = a & 0x7fffffu;
    if exponent == 255u {
        return vec2<u32>(m << 29u, sign | 0x7ff00000u | (m >> 3u));
    }
    var biased = exponent + 896u;
    if exponent == 0u {
        if m == 0u {
            return vec2<u32>(0u, sign);
        }
        let up = countLeadingZeros(m) - 8u;
        m = (m << up) & 0x7fffffu;
        biased = 897u - up;
    }
    return vec2<u32>(m << 29u, sign | (biased << 20u) | (m >> 3u));
}

fn f32_from_f64(a: vec2<u32>) -> u32 {
    let sign = a.y & 0x80000000u;
    let size = a.y & 0x7fffffffu;
    let exponent = size >> 20u;
    if nan_f64(a) {
        return sign | 0x7fc00000u;
    }
    if exponent >= 1151u {
        return sign | 0x7f800000u;
    }
    if exponent < 873u {
        return sign;
    }
    // The bits beyond the result's are rounded to nearest even; a carry continues into the exponent.
    let normal = exponent >= 897u;
    let shift = 29u + select(897u - exponent, 0u, normal);
    let m = vec2<u32>(a.x, (size & 0xfffffu) | 0x100000u);
    let kept = shr_u64(m, shift);
    let rest = sub_64(m, shl_64(kept, shift));
    let half = shl_64(vec2<u32>(1u, 0u), shift - 1u);
    let up = lt_u64(half, rest) || (eq_64(half, rest) && (kept.x & 1u) == 1u);
    return sign | (select(0u, (exponent - 897u) << 23u, normal) + kept.x + select(0u, 1u, up));
}

// The magnitude towards zero, at most 2^64 - 1; 0 for NaN.
fn whole_f32(a: u32) -> vec2<u32> {
    let exponent = (a >> 23u) & 0xffu;
    if exponent < 127u || nan_f32(a) {
        return vec2<u32>(0u, 0u);
    }
    if exponent >= 191u {
        return vec2<u32>(0xffffffffu, 0xffffffffu);
    }
    let m = (a & 0x7fffffu) | 0x800000u;
    if exponent >= 150u {
        return shl_64(vec2<u32>(m, 0u), exponent - 150u);
    }
    return vec2<u32>(m >> (150u - exponent), 0u);
}

fn whole_f64(a: vec2<u32>) -> vec2<u32> {
    let exponent = (a.y >> 20u) & 0x7ffu;
    if exponent < 1023u || nan_f64(a) {
        return vec2<u32>(0u, 0u);
    }
    if exponent >= 1087u {
        return vec2<u32>(0xffffffffu, 0xffffffffu);
    }
    let m = vec2<u32>(a.x, (a.y & 0xfffffu) | 0x100000u);
    if exponent >= 1075u {
        return shl_64(m, exponent - 1075u);
    }
    return shr_u64(m, 1075u - exponent);
}

// A magnitude with a float's sign, within -most - 1 and most.
fn saturate_signed(whole: vec2<u32>, sign: u32, most: u32) -> u32 {
    let size = select(whole.x, 0xffffffffu, whole.y != 0u);
    return select(min(size, most), 0u - min(size, most + 1u), sign >= 0x80000000u);
}

fn saturate_unsigned(whole: vec2<u32>, sign: u32, most: u32) -> u32 {
    let size = select(whole.x, 0xffffffffu, whole.y != 0u);
    return select(min(size, most), 0u, sign >= 0x80000000u);
}

fn saturate_i64(whole: vec2<u32>, sign: u32) -> vec2<u32> {
    let beyond = whole.y >= 0x80000000u;
    let positive = select(whole, vec2<u32>(0xffffffffu, 0x7fffffffu), beyond);
    let negative = select(neg_64(whole), vec2<u32>(0u, 0x80000000u), beyond);
    return select(positive, negative, sign >= 0x80000000u);
}

fn saturate_u64(whole: vec2<u32>, sign: u32) -> vec2<u32> {
    return select(whole, vec2<u32>(0u, 0u), sign >= 0x80000000u);
}

// Classes.

fn mirror(class_number: u32) -> u32 {
    let c = class_number % 96u;
    return select(c - 3u, c + 3u, (c / 3u) % 2u == 0u);
}

fn neighbor_count(class_number: u32) -> u32 {
    return select(5u, 6u, class_number % 96u % 3u == 1u);
}

// The neighbours in ascending order: flips that lower the class, from the widest, a step down, a step up, flips that raise it.
fn neighbor(class_number: u32, index: u32) -> u32 {
    let c = class_number % 96u;
    var left = index;
    for (var stride = 48u; stride >= 6u; stride /= 2u) {
        if (c / stride) % 2u == 1u {
            if left == 0u {
                return c - stride;
            }
            left -= 1u;
        }
    }
    if c % 3u > 0u {
        if left == 0u {
            return c - 1u;
        }
        left -= 1u;
    }
    if c % 3u < 2u {
        if left == 0u {
            return c + 1u;
        }
        left -= 1u;
    }
    for (var stride = 6u; stride <= 48u; stride *= 2u) {
        if (c / stride) % 2u == 0u {
            if left == 0u {
                return c + stride;
            }
            left -= 1u;
        }
    }
    return 0u;
}

fn boundary(class_number: u32, page: u32, byte: u32) -> vec2<u32> {
    return vec2<u32>(class_number % 96u * 12288u + page % 48u * 256u + byte % 256u, 0u);
}
