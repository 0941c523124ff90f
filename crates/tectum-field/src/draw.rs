//! Noise of the field: integers from a counter hash, the same bits on every device.

/// 1/√21845: scales the variance of a draw to 1.
pub const NOISE_UNIT: f32 = 0.006_765_875;

/// The key of a cycle.
pub fn key(seed: u64, cycle: u64) -> [u32; 2] {
    let mut z = seed.wrapping_add(cycle.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    [z as u32, (z >> 32) as u32]
}

/// The increment of the hash from one element to the next, before it is mixed.
pub const STRIDE: u32 = 0x9e37_79b1;

/// The initial value of an element's hash.
#[inline(always)]
pub fn start(index: u32, key: [u32; 2]) -> u32 {
    index.wrapping_mul(STRIDE).wrapping_add(key[0])
}

/// The hash of an element in the cycle of a key.
#[inline(always)]
pub fn hash(index: u32, key: [u32; 2]) -> u32 {
    hash_mix(start(index, key), key)
}

/// The hash from this initial value. In h ^ key after the first product, and in its shift, the
/// key's part is the same for all elements.
#[inline(always)]
pub fn hash_mix(start: u32, key: [u32; 2]) -> u32 {
    let h = (start ^ (start >> 16)).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ (h >> 13) ^ (key[1] ^ (key[1] >> 13))).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// The mean of the sum of a hash's four bytes.
pub const MEAN: i32 = 510;

/// The draw of an element: the sum of its hash's four bytes less the mean, −510 to 510.
#[inline(always)]
pub fn draw(index: u32, key: [u32; 2]) -> i32 {
    let h = hash(index, key);
    let pairs = (h & 0x00ff_00ff) + ((h >> 8) & 0x00ff_00ff);
    ((pairs & 0xffff) + (pairs >> 16)) as i32 - MEAN
}
