//! Equation files against code written by hand, against central differences, and against mistakes.

mod bounded;
mod code;
mod mistakes;
mod random_systems;
mod steps;

/// A small generator of numbers for tests, with the constants of Knuth's MMIX.
pub struct Random(pub u64);

impl Random {
    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number between two.
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number below another.
    pub fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }
}
