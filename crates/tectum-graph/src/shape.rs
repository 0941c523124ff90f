//! Shapes: up to eight dimensions, each a size or a letter that is bound to a size later.

use std::fmt;

use tectum::internal::elements;
use tectum::{Error, Result};

/// Maximum dimensions of a value.
pub const MAX_RANK: usize = 8;

/// One dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number of elements.
    Size(usize),
    /// A size that [`Graph::bind`](super::Graph::bind) gives: an upper-case letter, for example `B`
    /// for the batch or `T` for time.
    Symbol(char),
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim::Size(size)
    }
}

impl From<char> for Dim {
    fn from(letter: char) -> Self {
        Dim::Symbol(letter)
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Size(size) => write!(f, "{size}"),
            Dim::Symbol(letter) => write!(f, "{letter}"),
        }
    }
}

/// The shape of a value, row-major: up to [`MAX_RANK`] dimensions; no dimensions is a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [Dim; MAX_RANK],
    rank: usize,
}

impl From<[usize; 0]> for Shape {
    fn from(_: [usize; 0]) -> Self {
        Shape::of(&[])
    }
}

macro_rules! shape_from {
    ($($rank:literal),*) => {$(
        impl From<[usize; $rank]> for Shape {
            fn from(sizes: [usize; $rank]) -> Self {
                Shape::of(&sizes.map(Dim::Size))
            }
        }
        impl From<[Dim; $rank]> for Shape {
            fn from(dims: [Dim; $rank]) -> Self {
                Shape::of(&dims)
            }
        }
    )*};
}
shape_from!(1, 2, 3, 4, 5, 6, 7, 8);

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, sizes: &[usize; N]) -> bool {
        self.dims().len() == N
            && self
                .dims()
                .iter()
                .zip(sizes)
                .all(|(dim, size)| *dim == Dim::Size(*size))
    }
}

impl Shape {
    /// The shape of these dimensions.
    ///
    /// # Panics
    /// If there are more than [`MAX_RANK`].
    pub fn of(dims: &[Dim]) -> Self {
        assert!(
            dims.len() <= MAX_RANK,
            "a shape of {} dimensions; at most {MAX_RANK} are possible",
            dims.len()
        );
        let mut shape = Self {
            dims: [Dim::Size(1); MAX_RANK],
            rank: dims.len(),
        };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    /// The dimensions.
    pub fn dims(&self) -> &[Dim] {
        &self.dims[..self.rank]
    }

    /// How many dimensions there are.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The last dimension; 1 for a scalar.
    pub fn last(&self) -> Dim {
        self.dims().last().copied().unwrap_or(Dim::Size(1))
    }

    /// The sizes, if no dimension is a letter.
    pub fn sizes(&self) -> Option<Vec<usize>> {
        let size = |dim: &Dim| match dim {
            Dim::Size(size) => Some(*size),
            Dim::Symbol(_) => None,
        };
        self.dims().iter().map(size).collect()
    }

    /// The number of elements, if no dimension is a letter and it can be counted.
    pub fn elements(&self) -> Option<usize> {
        self.sizes()?
            .into_iter()
            .try_fold(1usize, usize::checked_mul)
    }

    /// As rows of the last dimension: all dimensions before it multiplied (saturated on overflow),
    /// and the last one.
    ///
    /// # Panics
    /// If a dimension is a letter.
    pub fn matrix(&self) -> [usize; 2] {
        let sizes = self.fixed();
        match sizes.split_last() {
            Some((cols, rows)) => [elements(rows).unwrap_or(usize::MAX), *cols],
            None => [1, 1],
        }
    }

    /// The sizes of a shape without letters.
    pub(super) fn fixed(&self) -> Vec<usize> {
        self.sizes()
            .expect("invariant: letters are bound before a value is computed")
    }

    /// Elements of a shape without letters.
    pub(super) fn len(&self) -> usize {
        elements(&self.fixed()).unwrap_or(usize::MAX)
    }

    /// The dimensions without leading ones.
    pub(super) fn trimmed(&self) -> &[Dim] {
        let ones = self
            .dims()
            .iter()
            .take_while(|dim| **dim == Dim::Size(1))
            .count();
        &self.dims()[ones..]
    }

    /// Whether this shape broadcasts to `whole`: its dimensions without leading ones are the last
    /// dimensions of `whole`.
    pub(super) fn broadcasts_to(&self, whole: Shape) -> bool {
        *self == whole
            || (whole.rank >= self.trimmed().len() && whole.dims().ends_with(self.trimmed()))
    }

    /// The run of elements of `whole` for which each element counts, where this shape is some of
    /// its dimensions followed by ones: aligned at the last axis and without leading ones.
    pub(super) fn run_in(&self, whole: Shape) -> Option<usize> {
        let (kept, sizes) = (self.trimmed(), whole.sizes()?);
        let ones = kept
            .iter()
            .rev()
            .take_while(|dim| **dim == Dim::Size(1))
            .count();
        let (same, run) = (
            kept.len() - ones,
            sizes.get(sizes.len().checked_sub(ones)?..)?,
        );
        let before = &whole.dims()[..whole.dims().len() - ones];
        (same > 0 && before.ends_with(&kept[..same])).then(|| run.iter().product())
    }

    /// Whether this shape repeats to `whole`: aligned at the last axis and without leading ones,
    /// each of its dimensions is that of `whole` or 1.
    pub(super) fn repeats_to(&self, whole: Shape) -> bool {
        Shape::of(self.trimmed()).joint(whole) == Some(whole)
    }

    /// The shape that both repeat to, aligned at the last axis.
    pub(super) fn joint(&self, other: Shape) -> Option<Shape> {
        let mut joint = if self.rank >= other.rank {
            *self
        } else {
            other
        };
        let shorter = if self.rank >= other.rank {
            other
        } else {
            *self
        };
        let first = joint.rank - shorter.rank;
        for (dim, other) in joint.dims[first..joint.rank].iter_mut().zip(shorter.dims()) {
            match (*dim, *other) {
                (Dim::Size(1), other) => *dim = other,
                (mine, other) if mine != other && other != Dim::Size(1) => return None,
                _ => (),
            }
        }
        Some(joint)
    }

    /// The stride of each axis of `whole` in a value of this shape: 0 where it repeats.
    pub(super) fn strides_in(&self, whole: Shape) -> Vec<usize> {
        let kept = Shape::of(self.trimmed());
        let strides = kept
            .fixed()
            .into_iter()
            .zip(kept.strides())
            .map(|(size, stride)| if size == 1 { 0 } else { stride });
        std::iter::repeat_n(0, whole.rank - kept.rank)
            .chain(strides)
            .collect()
    }

    /// Whether it is a vector of the last dimension of `whole`, which is added to each of its rows.
    pub(super) fn is_row_of(&self, whole: Shape) -> bool {
        self.broadcasts_to(whole)
            && (self.trimmed() == [whole.last()]
                || (whole.last() == Dim::Size(1) && self.trimmed().is_empty()))
    }

    /// With the dimension at `axis` replaced.
    pub(super) fn with(mut self, axis: usize, dim: impl Into<Dim>) -> Self {
        self.dims[axis] = dim.into();
        self
    }

    /// Elements before, at and after an axis.
    pub(super) fn around(&self, axis: usize) -> [usize; 3] {
        let sizes = self.fixed();
        [
            sizes[..axis].iter().product(),
            sizes[axis],
            sizes[axis + 1..].iter().product(),
        ]
    }

    /// Stride of each axis, in elements.
    pub(super) fn strides(&self) -> Vec<usize> {
        let sizes = self.fixed();
        (0..sizes.len())
            .map(|axis| sizes[axis + 1..].iter().product())
            .collect()
    }

    /// The letters replaced by sizes.
    pub(super) fn bind(mut self, letters: &[(char, usize)]) -> Self {
        for dim in &mut self.dims[..self.rank] {
            if let Dim::Symbol(letter) = *dim
                && let Some((_, size)) = letters.iter().find(|(other, _)| *other == letter)
            {
                *dim = Dim::Size(*size);
            }
        }
        self
    }

    /// The letters and the product of the sizes: two shapes that agree in both have the same number
    /// of elements.
    pub(super) fn content(&self) -> (Vec<char>, usize) {
        let (mut letters, mut product) = (Vec::new(), 1usize);
        for dim in self.dims() {
            match dim {
                Dim::Size(size) => product = product.saturating_mul(*size),
                Dim::Symbol(letter) => letters.push(*letter),
            }
        }
        letters.sort_unstable();
        (letters, product)
    }

    /// Refuses an invalid shape.
    pub(super) fn check(&self) -> Result<()> {
        for dim in self.dims() {
            if let Dim::Symbol(letter) = dim
                && !letter.is_ascii_uppercase()
            {
                return Err(Error::invalid(format!(
                    "{self:?}: {letter:?} is no letter for a dimension; A to Z are"
                )));
            }
        }
        let product = self
            .dims()
            .iter()
            .try_fold(1usize, |product, dim| match dim {
                Dim::Size(size) => product.checked_mul(*size),
                Dim::Symbol(_) => Some(product),
            });
        match product {
            Some(0) => Err(Error::invalid(format!("{self:?} holds no elements"))),
            Some(1..=0xffff_ffff) => Ok(()),
            _ => Err(Error::invalid(format!(
                "{self:?} holds more than {} elements",
                u32::MAX
            ))),
        }
    }
}
