//! Formats of potentials: how many binary places each neuron has. `docs/spiking.md` defines them.

use std::ops::{Range, RangeInclusive};

use serde::Serialize;
use tectum::{Error, ErrorKind, Result};

use super::rule::{self, FRACTION_BITS};

/// In place of a shift: each target has its own, in the words after the units of senders.
pub const OWN_SHIFTS: u32 = 32;

/// Why a neuron's potential has no more binary places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScaleLimit {
    /// There are as many as are useful.
    MaxBits,
    /// The maximum that it may receive in one burst.
    Sum {
        /// In units of psp · weight, without injections.
        max_sum: f64,
    },
    /// Its threshold, limit or resting potential.
    Threshold,
}

/// The neurons with some number of binary places.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FormatGroup {
    /// Binary places of their potentials.
    pub fraction_bits: u32,
    /// How many neurons there are.
    pub neurons: u32,
    /// The first of them.
    pub neuron: u32,
    /// Why that one has no more.
    pub limit: ScaleLimit,
}

/// The binary places of each neuron's potential.
#[derive(Debug, Clone)]
pub enum Formats {
    /// Of all neurons.
    Common(u32),
    /// Of each neuron.
    Own(Vec<u8>),
}

impl Formats {
    /// Those of some neurons, from a function of a neuron's number; also returns the groups, in
    /// descending order of binary places.
    ///
    /// # Errors
    /// Errors of `places`; `OutOfMemory` if they do not fit in memory.
    pub fn new(
        neurons: u32,
        places: impl Fn(u32) -> Result<(u32, ScaleLimit)>,
    ) -> Result<(Self, Vec<FormatGroup>)> {
        let mut groups: Vec<FormatGroup> = Vec::new();
        for neuron in 0..neurons {
            let (fraction_bits, limit) = places(neuron)?;
            match groups
                .iter_mut()
                .find(|group| group.fraction_bits == fraction_bits)
            {
                Some(group) => group.neurons += 1,
                None => groups.push(FormatGroup {
                    fraction_bits,
                    neurons: 1,
                    neuron,
                    limit,
                }),
            }
        }
        groups.sort_unstable_by_key(|group| std::cmp::Reverse(group.fraction_bits));
        let formats = match &groups[..] {
            [alone] => Formats::Common(alone.fraction_bits),
            _ => {
                let mut own = Vec::new();
                own.try_reserve_exact(neurons as usize).map_err(|_| {
                    let what =
                        format!("no memory for the formats of {neurons} neurons, a byte each");
                    Error::new(ErrorKind::OutOfMemory, what)
                })?;
                for neuron in 0..neurons {
                    own.push(places(neuron)?.0 as u8);
                }
                Formats::Own(own)
            }
        };
        Ok((formats, groups))
    }

    /// The binary places of a neuron.
    pub fn of(&self, neuron: u32) -> u32 {
        match self {
            Formats::Common(places) => *places,
            Formats::Own(own) => own[neuron as usize].into(),
        }
    }

    /// The fewest and the most.
    pub fn range(&self) -> RangeInclusive<u32> {
        match self {
            Formats::Common(places) => *places..=*places,
            Formats::Own(own) => {
                let ends = [own.iter().min(), own.iter().max()];
                let [first, last] = ends.map(|end| end.map_or(FRACTION_BITS, |end| (*end).into()));
                first..=last
            }
        }
    }

    /// The places that all targets have less than the full format, or [`OWN_SHIFTS`].
    pub fn shift(&self) -> u32 {
        match self {
            Formats::Common(places) => FRACTION_BITS - places,
            Formats::Own(_) => OWN_SHIFTS,
        }
    }

    /// The length of [`Formats::shift_words`].
    pub fn shift_word_count(&self) -> usize {
        match self {
            Formats::Common(_) => 0,
            Formats::Own(own) => own.len().div_ceil(4),
        }
    }

    /// For [`OWN_SHIFTS`] the shift of each neuron, a byte each, the first in the lowest bits of a
    /// word.
    pub fn shift_words(&self) -> Vec<u32> {
        let Formats::Own(own) = self else {
            return Vec::new();
        };
        let word = |places: &[u8]| {
            let shifts = places.iter().zip([0, 8, 16, 24]);
            shifts.fold(0, |word, (places, at)| {
                word | (FRACTION_BITS - u32::from(*places)) << at
            })
        };
        own.chunks(4).map(word).collect()
    }
}

/// How native code rounds what arrives at the targets of a part.
#[derive(Clone, Copy)]
pub struct TargetShifts<'a> {
    common: u32,
    words: &'a [u32],
    first: usize,
}

impl<'a> TargetShifts<'a> {
    /// For targets from `first` on, with the words that follow the units of senders.
    pub fn new(common: u32, words: &'a [u32], first: usize) -> Self {
        Self {
            common,
            words,
            first,
        }
    }

    /// Whether every target has the full format, so that nothing is rounded.
    pub fn is_none(&self) -> bool {
        self.common == 0
    }

    /// An amount in the full format, in the format of a target of the part.
    #[inline(always)]
    pub fn rounded(&self, amount: u32, target: usize) -> i32 {
        let shift = if self.common == OWN_SHIFTS {
            let neuron = self.first + target;
            self.words[neuron / 4] >> (8 * (neuron % 4)) & 0xff
        } else {
            self.common
        };
        rule::rounded(amount, shift) as i32
    }
}

/// A range of neurons, split where their format changes.
pub fn same_format(
    range: Range<u32>,
    formats: &Formats,
) -> impl Iterator<Item = (Range<u32>, u32)> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        (start < range.end).then(|| {
            let bits = formats.of(start);
            let end = match formats {
                Formats::Common(_) => range.end,
                Formats::Own(_) => (start + 1..range.end)
                    .find(|neuron| formats.of(*neuron) != bits)
                    .unwrap_or(range.end),
            };
            (std::mem::replace(&mut start, end)..end, bits)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_where_native_code_reads_them() {
        let places = [16, 3, 0, 16, 9, 15, 16];
        let (formats, groups) = Formats::new(7, |neuron| {
            Ok((places[neuron as usize], ScaleLimit::MaxBits))
        })
        .expect("it works");
        assert_eq!((formats.range(), formats.shift()), (0..=16, OWN_SHIFTS));
        assert_eq!(
            groups
                .iter()
                .map(|group| (group.fraction_bits, group.neurons, group.neuron))
                .collect::<Vec<_>>(),
            [(16, 3, 0), (15, 1, 5), (9, 1, 4), (3, 1, 1), (0, 1, 2)]
        );
        let words = formats.shift_words();
        assert_eq!(words.len(), formats.shift_word_count());
        for first in [0, 2] {
            let shifts = TargetShifts::new(formats.shift(), &words, first);
            for (target, places) in places[first..].iter().enumerate() {
                let (amount, step) = (0xfe01_0000u32, 1u64 << (16 - places));
                let expected = (u64::from(amount) + step / 2) / step;
                assert_eq!(
                    shifts.rounded(amount, target) as u32,
                    expected as u32,
                    "{places} places"
                );
            }
        }
        let (common, _) = Formats::new(3, |_| Ok((16, ScaleLimit::MaxBits))).expect("it works");
        assert!(common.shift() == 0 && common.shift_words().is_empty() && common.of(2) == 16);
    }
}
