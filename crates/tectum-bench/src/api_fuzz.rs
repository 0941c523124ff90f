//! Sequences of random calls, for the tests of simulations and fields.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// An object under test for random calls, with a model of the expected results.
pub trait FuzzTarget {
    /// Calls of one sequence.
    const CALLS: u64;
    /// `TECTUM_API_CALLS` multiplies the number of calls.
    const SHARE: u64;

    /// The world of a seed.
    fn new(seed: u64) -> Self;
    /// Makes one call and checks it.
    fn call(&mut self);
    /// The calls made so far.
    fn journal(&self) -> &[String];
}

/// Runs the sequences that the variables select: `TECTUM_SEED` is the first seed, `TECTUM_API_SEED`
/// selects one sequence.
pub fn run_sequences<W: FuzzTarget>() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let sequences = number("TECTUM_API_CALLS").unwrap_or(20_000) / W::SHARE / W::CALLS;
    let first = number("TECTUM_SEED").unwrap_or(0);
    let seeds = number("TECTUM_API_SEED").map_or(first..first + sequences, |seed| seed..seed + 1);
    let start = std::time::Instant::now();
    for seed in seeds {
        let mut world = W::new(seed);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            (0..W::CALLS).for_each(|_| world.call())
        }));
        assert!(
            ended.is_ok(),
            "TECTUM_API_SEED={seed}\n{}",
            world.journal().join("\n")
        );
    }
    println!(
        "{} calls in {:.1} s",
        sequences * W::CALLS,
        start.elapsed().as_secs_f64()
    );
}

/// A small generator: `SplitMix64` (S. Vigna).
pub struct Random(pub u64);

impl Random {
    /// The next word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    /// One of some values.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
