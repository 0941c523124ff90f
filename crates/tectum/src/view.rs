//! Views: ranges of the slots of a plan.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dtype::DType;
use crate::error::{Error, Result};

/// The plan of a view, the graph of a node, the chain of a value: unique per builder and stored in
/// what it creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u64);

impl Identity {
    #[doc(hidden)]
    pub fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Maximum bytes of a slot: the maximum pointer offset.
pub(crate) const MAX_SLOT_BYTES: usize = isize::MAX as usize;

/// A range of a slot of one plan: what launches bind. It always lies within its slot. Launches of
/// other plans reject it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    pub(crate) plan: Identity,
    pub(crate) slot: u32,
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(crate) dtype: DType,
}

impl View {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// A part of this view, in elements. Binding it needs a start at a multiple of 64 elements of
    /// the slot.
    ///
    /// # Panics
    /// If the range is not within the view.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> View {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "part {range:?} of a view of {}",
            self.len
        );
        View {
            offset: self.offset.saturating_add(range.start),
            len: range.len(),
            ..*self
        }
    }

    /// This view joined with one that begins where it ends; none if the other begins elsewhere.
    #[must_use]
    pub fn joined(&self, next: View) -> Option<View> {
        let follows = self.shares_slot(&next)
            && self.dtype == next.dtype
            && self.offset.checked_add(self.len) == Some(next.offset);
        follows.then(|| View {
            len: self.len + next.len,
            ..*self
        })
    }

    /// The same words viewed as another type: one f64 is two words.
    ///
    /// # Panics
    /// If half of an element would be left over.
    #[must_use]
    pub fn reinterpret(&self, dtype: DType) -> View {
        let scaled = |count: usize| {
            let bytes = count as u128 * self.dtype.bytes() as u128;
            assert!(
                bytes.is_multiple_of(dtype.bytes() as u128),
                "{} elements of {} seen as {}",
                count,
                self.dtype.wgsl(),
                dtype.wgsl()
            );
            // A count that overflows belongs to a slot that no memory can hold: every use of it is
            // rejected.
            usize::try_from(bytes / dtype.bytes() as u128).unwrap_or(usize::MAX)
        };
        View {
            offset: scaled(self.offset),
            len: scaled(self.len),
            dtype,
            ..*self
        }
    }

    /// The bytes of the slot that it covers.
    pub(crate) fn bytes(&self) -> Range<usize> {
        let end = self.offset.saturating_add(self.len);
        self.offset.saturating_mul(self.dtype.bytes())..end.saturating_mul(self.dtype.bytes())
    }

    /// Whether its length is the product of these sizes. False if the product exceeds the address
    /// range.
    pub(crate) fn fills(&self, sizes: &[usize]) -> bool {
        elements(sizes) == Some(self.len)
    }

    /// Whether both belong to one slot.
    #[doc(hidden)]
    pub fn shares_slot(&self, other: &View) -> bool {
        (self.plan, self.slot) == (other.plan, other.slot)
    }

    /// Whether the two share bytes.
    #[doc(hidden)]
    pub fn overlaps(&self, other: &View) -> bool {
        let (bytes, others) = (self.bytes(), other.bytes());
        self.shares_slot(other) && bytes.start < others.end && others.start < bytes.end
    }

    /// Rejects two results of one operation that overlap.
    pub(crate) fn check_no_overlap(&self, other: View, op: &str) -> Result<()> {
        if self.overlaps(&other) {
            Err(Error::invalid(format!("{op}: two results overlap")))
        } else {
            Ok(())
        }
    }

    /// Rejects a view of another plan.
    pub(crate) fn of(&self, plan: Identity) -> Result<()> {
        if self.plan == plan {
            Ok(())
        } else {
            Err(Error::invalid("a view of another plan".to_owned()))
        }
    }
}

/// The product of sizes, if a slot can have as many elements.
pub fn elements(sizes: &[usize]) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes
        .iter()
        .try_fold(1usize, |product, &size| product.checked_mul(size))
        .filter(|product| *product <= MAX_SLOT_BYTES)
}
