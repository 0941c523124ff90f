//! The storage formats of a field's elements.

use serde::Serialize;
use tectum::{DType, Executable, Result, View};

use super::draw::hash;

/// The storage format of a field's elements. All arithmetic is f32.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// As f32.
    #[default]
    F32,
    /// As bf16, two in a word: half the memory and half the bytes of a cycle. Values are rounded up
    /// or down at random, in proportion to the nearness, so that changes far below a unit in the
    /// last place survive on average.
    Bf16,
}

impl Storage {
    /// Element type of a field in memory: f32, or words of two bf16.
    pub fn dtype(self) -> DType {
        match self {
            Storage::F32 => DType::F32,
            Storage::Bf16 => DType::U32,
        }
    }

    /// Words for an even number of elements.
    pub fn words(self, elements: usize) -> usize {
        match self {
            Storage::F32 => elements,
            Storage::Bf16 => elements / 2,
        }
    }

    /// The stored value for an element's new value in the cycle of a key.
    #[inline(always)]
    pub fn round_to_storage(self, value: f32, element: u32, key: [u32; 2]) -> f32 {
        match self {
            Storage::F32 => value,
            Storage::Bf16 => f32::from_bits(stochastic_round_bf16(value, element, key)),
        }
    }

    /// Packs elements into words; bf16 elements are rounded to the nearest.
    pub fn pack(self, elements: &[f32]) -> Vec<u32> {
        let nearest = |value: &f32| tectum::kernel::pack::to_bf16(value.to_bits());
        match self {
            Storage::F32 => elements.iter().map(|element| element.to_bits()).collect(),
            Storage::Bf16 => elements
                .chunks_exact(2)
                .map(|pair| nearest(&pair[0]) | nearest(&pair[1]) << 16)
                .collect(),
        }
    }

    /// Unpacks elements from words.
    pub fn unpack(self, words: &[u32]) -> Vec<f32> {
        match self {
            Storage::F32 => words.iter().map(|word| f32::from_bits(*word)).collect(),
            Storage::Bf16 => {
                let mut elements = vec![0.0; 2 * words.len()];
                unpack(words, &mut elements);
                elements
            }
        }
    }

    /// Copies the elements of a field's planes to the host.
    pub fn read(self, run: &Executable, planes: View) -> Result<Vec<f32>> {
        match self {
            Storage::F32 => run.read_state(planes),
            Storage::Bf16 => Ok(self.unpack(&run.read_state(planes)?)),
        }
    }

    /// Replaces the elements of a field's planes; bf16 elements are rounded to the nearest.
    pub fn write(self, run: &mut Executable, planes: View, elements: &[f32]) -> Result<()> {
        match self {
            Storage::F32 => run.write_state(planes, elements),
            Storage::Bf16 => run.write_state(planes, &self.pack(elements)),
        }
    }
}

/// The bits of a value stochastically rounded to bf16; the lower half is 0. A sum that carries into
/// the exponent rounds to the next power of two.
#[inline(always)]
pub fn stochastic_round_bf16(value: f32, element: u32, key: [u32; 2]) -> u32 {
    let chance = hash(element, key).wrapping_mul(0x9e37_79b1) >> 16;
    value.to_bits().wrapping_add(chance) & 0xffff_0000
}

/// The elements of words that hold two bf16 each.
pub fn unpack(words: &[u32], elements: &mut [f32]) {
    tectum::kernel::pack::unpack(tectum::kernel::pack::Half::Bf16, words, 0, elements);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_right_on_average_and_one_of_the_two_next_to_it() {
        // 1 + 1/512 is a quarter of the way from 1 to the next bf16, 1 + 1/128.
        let value = 1.0 + 1.0 / 512.0;
        let kept: Vec<f32> = (0..40_000)
            .map(|element| Storage::Bf16.round_to_storage(value, element, [3, 4]))
            .collect();
        assert!(
            kept.iter()
                .all(|kept| *kept == 1.0 || *kept == 1.0 + 1.0 / 128.0)
        );
        let up = kept.iter().filter(|kept| **kept > 1.0).count() as f64 / 40_000.0;
        // Four standard errors of a quarter.
        assert!(
            (up - 0.25).abs() < 4.0 * (0.25f64 * 0.75 / 40_000.0).sqrt(),
            "{up} of them up"
        );
        assert_eq!(Storage::Bf16.round_to_storage(-0.5, 7, [1, 2]), -0.5);
        let below_two = f32::from_bits(0x3fff_ffff);
        assert!((0..100).all(|element| {
            [1.992_187_5, 2.0].contains(&Storage::Bf16.round_to_storage(below_two, element, [9, 9]))
        }));
    }

    #[test]
    fn elements_come_back_as_they_were_packed() {
        let elements = [1.0, -2.5, 0.0, 0.007_812_5];
        assert_eq!(
            Storage::Bf16.unpack(&Storage::Bf16.pack(&elements)),
            elements
        );
        assert_eq!(
            Storage::F32.unpack(&Storage::F32.pack(&[1.000_000_1])),
            [1.000_000_1]
        );
        assert_eq!(
            Storage::Bf16.unpack(&Storage::Bf16.pack(&[1.003, 1.005])),
            [1.0, 1.007_812_5]
        );
    }
}
