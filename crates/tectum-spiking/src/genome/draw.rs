//! Counter-based random numbers: a draw depends on its purpose, never on earlier draws.

/// 64 mixed bits (the finaliser of SplitMix64).
fn hash_mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

/// The draw of two counters under a seed.
fn drawn(seed: u64, stream: u64, counter: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    hash_mix(hash_mix(hash_mix(seed.wrapping_add(GOLDEN)) ^ stream.wrapping_mul(GOLDEN)) ^ counter)
}

/// The draw for one source neuron of a mapping.
pub(super) fn of_source(seed: u64, mapping: u32, source: u32) -> u64 {
    drawn(seed, u64::from(mapping) << 1 | 1, u64::from(source))
}

/// A voxel of a box: the draw's bits scaled to each side.
pub(super) fn voxel(draw: u64, size: [u32; 3]) -> [u32; 3] {
    let coordinate = |axis: u64| {
        ((hash_mix(draw.wrapping_add(axis)) >> 32) * u64::from(size[axis as usize])) >> 32
    };
    [coordinate(0), coordinate(1), coordinate(2)].map(|coordinate| coordinate as u32)
}

/// The probability of a synapse, in units of 2⁻³².
pub(super) fn chance(percent: f32) -> u64 {
    (f64::from(percent) / 100.0 * 2f64.powi(32)).round() as u64
}

/// Whether a possible synapse exists.
pub(super) fn exists(chance: u64, seed: u64, mapping: u32, source: u32, target: u32) -> bool {
    chance >= 1 << 32
        || drawn(
            seed,
            u64::from(mapping) << 1,
            u64::from(source) << 32 | u64::from(target),
        ) >> 32
            < chance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_values_of_the_page() {
        assert_eq!(drawn(0, 0, 0), 0x33fe_8bd4_f9c5_7863);
        assert_eq!(drawn(1, 3, 2 << 32 | 5), 0x8834_257f_afda_7074);
        // Stream 3 is that of the sources of mapping 1, stream 6 that of the pairs of mapping 3.
        assert_eq!(of_source(9, 1, 4), drawn(9, 3, 4));
        let high = drawn(9, 6, 4 << 32 | 5) >> 32;
        assert!(!exists(high, 9, 3, 4, 5) && exists(high + 1, 9, 3, 4, 5));
        assert_eq!(chance(20.0), 858_993_459);
    }
}
