// Counter-based random numbers. Native twin: `src/kernel/random.rs`. Integer arithmetic ending in one exact conversion, so
// the same bits give the same f32 bits on every device.
//
// Source. Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11. The normal is the inverse of the
// distribution function by quadratics over octaves of the tail, in fixed point, as Cheung et al. do in hardware (IEEE
// Transactions on VLSI Systems 15, 2007).

// The 64-bit product of two words: low word, high word.
fn tectum_multiply_wide(a: u32, b: u32) -> vec2<u32> {
    let a_lo = a & 0xffffu;
    let a_hi = a >> 16u;
    let b_lo = b & 0xffffu;
    let b_hi = b >> 16u;
    let middle = a_hi * b_lo + ((a_lo * b_lo) >> 16u);
    let other = a_lo * b_hi + (middle & 0xffffu);
    return vec2<u32>(a * b, a_hi * b_hi + (middle >> 16u) + (other >> 16u));
}

// Philox4x32-10: four independent words from a counter and a key.
fn tectum_philox(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
    var c = counter;
    var k = key;
    for (var i = 0u; i < 10u; i++) {
        let even = tectum_multiply_wide(0xd2511f53u, c.x);
        let odd = tectum_multiply_wide(0xcd9e8d57u, c.z);
        c = vec4<u32>(odd.y ^ c.y ^ k.x, odd.x, even.y ^ c.w ^ k.y, even.x);
        k += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}

// Uniform in [0, 1): the upper 24 bits times 2^-24, exact.
fn tectum_uniform(bits: u32) -> f32 {
    return f32(bits >> 8u) * 5.9604644775390625e-8;
}

// Where the three coefficients for `bits` begin in the table of normals, 0 to 3069. The table is a storage buffer
// (`array<i32>`, 3072 long, from `normal_table()`), read by the kernel:
//
//     let row = tectum_normal_row(bits);
//     let z = tectum_normal(bits, normal_table[row], normal_table[row + 1u], normal_table[row + 2u]);
//
// With v the lower 31 bits, one row of three for each octave of v (by leading zeros) and 1/32 of an octave.
fn tectum_normal_row(bits: u32) -> u32 {
    let v = bits & 0x7fffffffu;
    let zeros = min(countLeadingZeros(v), 31u);
    return 3u * (((31u - zeros) << 5u) + ((v << zeros) >> 26u));
}

// Standard normal, a multiple of 2^-20 up to 6.34 in magnitude: negative where the top bit is set, its magnitude exceeded
// with probability (v + 1/2) / 2^31, v being the lower 31 bits. c0 - t (c1 - t c2) in units of 2^-28, t the place of v in its row.
fn tectum_normal(bits: u32, c0: i32, c1: i32, c2: i32) -> f32 {
    let v = bits & 0x7fffffffu;
    let t = (v << min(countLeadingZeros(v), 31u)) << 6u;
    let slope = u32(c1) - tectum_multiply_wide(t, u32(c2)).y;
    let size = (u32(c0) - tectum_multiply_wide(t, slope).y + 128u) >> 8u;
    let steps = select(i32(size), -i32(size), bits > 0x7fffffffu);
    return f32(steps) * 9.5367431640625e-7;
}
