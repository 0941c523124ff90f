//! Numbers along z: the reference's percentages.

use super::spec::Coding;

impl Coding {
    /// Visits, in ascending order, the voxels of a column of `depth` that represent a number from 0
    /// to 1.
    ///
    /// Linear: z = ⌊(1 − v)·depth⌋, at most the last voxel. Fractional: all z for which the binary
    /// digit of v with value 2⁻ᶻ is 1; digits below the last voxel's are dropped.
    ///
    /// # Source
    /// FEAGI's sensorimotor crate; its fractional encoder forgets to subtract the digits that it
    /// has written, and ours does not.
    pub(super) fn encode(self, value: f64, depth: u32, visit: &mut dyn FnMut(u32)) {
        match self {
            Self::Linear => visit((((1.0 - value) * f64::from(depth)) as u32).min(depth - 1)),
            // Doubling is exact, so each digit is.
            Self::Fractional => {
                let mut shifted = value;
                for z in 0..depth {
                    if shifted >= 1.0 {
                        visit(z);
                        shifted -= 1.0;
                    }
                    shifted *= 2.0;
                }
            }
        }
    }

    /// The number that firing voxels of a column of `depth` represent, 0 to 1; none if none fires.
    ///
    /// Linear: 1 − z̄ / depth for their mean z̄. Fractional: the sum of 2⁻ᶻ, at most 1.
    pub(super) fn decode(self, depth: u32, fires: impl Fn(u32) -> bool) -> Option<f64> {
        let (mut firing, mut sum) = (0u32, 0.0);
        for z in (0..depth).filter(|z| fires(*z)) {
            firing += 1;
            sum += match self {
                Self::Linear => f64::from(z),
                Self::Fractional => 0.5f64.powi(z as i32),
            };
        }
        match (firing, self) {
            (0, _) => None,
            (_, Self::Linear) => Some(1.0 - sum / f64::from(firing) / f64::from(depth)),
            (_, Self::Fractional) => Some(sum.min(1.0)),
        }
    }
}
