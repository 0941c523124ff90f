//! Which lanes of a chunk take part.

use std::ops::Range;

/// A set of a chunk's lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// 1 for a lane that takes part, else 0.
    lanes: Vec<u8>,
    active: usize,
    range: Range<usize>,
}

impl Mask {
    /// All of this many lanes.
    pub fn all(lanes: usize) -> Self {
        Self {
            lanes: vec![1; lanes],
            active: lanes,
            range: 0..lanes,
        }
    }

    /// Becomes all of this many lanes, from all of another number; allocates only for more than it
    /// ever had.
    pub fn set_all(&mut self, lanes: usize) {
        self.lanes.resize(lanes, 1);
        (self.active, self.range) = (lanes, 0..lanes);
    }

    /// The lanes for which `is_in` is 1 rather than 0.
    pub fn of(lanes: Vec<u8>) -> Self {
        let active = lanes.iter().map(|&lane| usize::from(lane)).sum();
        let first = lanes.iter().position(|&lane| lane != 0).unwrap_or(0);
        let end = lanes
            .iter()
            .rposition(|&lane| lane != 0)
            .map_or(first, |last| last + 1);
        Self {
            lanes,
            active,
            range: first..end,
        }
    }

    /// These lanes where `keep` is `wanted`.
    pub fn only(&self, keep: &[u8], wanted: bool) -> Self {
        let flip = u8::from(!wanted);
        Self::of(
            self.lanes
                .iter()
                .zip(keep)
                .map(|(&lane, &keep)| lane & (keep ^ flip))
                .collect(),
        )
    }

    /// These lanes except those of another mask.
    pub fn without(&self, other: &Self) -> Self {
        self.only(&other.lanes, false)
    }

    /// The lanes of either.
    pub fn and_those_of(&self, other: &Self) -> Self {
        Self::of(
            self.lanes
                .iter()
                .zip(&other.lanes)
                .map(|(&a, &b)| a | b)
                .collect(),
        )
    }

    /// Whether every lane of the chunk is in.
    pub fn is_all(&self) -> bool {
        self.active == self.lanes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// Lanes that are in.
    pub fn active(&self) -> usize {
        self.active
    }

    /// From the first lane that is in to the last.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes of [`Mask::range`].
    pub fn bytes(&self) -> &[u8] {
        &self.lanes[self.range()]
    }

    /// The lanes that are in, ascending.
    pub fn lanes(&self) -> impl Iterator<Item = usize> {
        self.range().filter(|&lane| self.lanes[lane] != 0)
    }

    /// The first lane that is in.
    pub fn first(&self) -> usize {
        self.range.start
    }
}
