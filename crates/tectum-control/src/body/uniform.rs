//! Uniform numbers for starts: SplitMix64, so that a seed gives the same start on every machine.

/// A SplitMix64 generator.
///
/// # Source
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. Gymnasium
/// draws its starts from numpy's PCG64; only the distribution is the same here, not the numbers.
pub struct Uniform {
    state: u64,
}

impl Uniform {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Draws from [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 11) as f64 * (0.5f64).powi(53);
        low + (high - low) * unit
    }

    /// Draws from [−bound, bound).
    pub fn within(&mut self, bound: f64) -> f64 {
        self.between(-bound, bound)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Uniform;

    #[test]
    fn first_numbers_of_seed_zero_are_the_published_ones() {
        let mut uniform = Uniform::new(0);
        assert_eq!(uniform.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(uniform.next(), 0x6E78_9E6A_A1B9_65F4);
    }
}
