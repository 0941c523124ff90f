//! Mini-batches: samples in a random order, a few at a time.

use tectum::kernel::random::philox;
use tectum::{Error, Result};

/// Batches of equally many samples, each sample at most once in an epoch; the samples left over in
/// an epoch are left out.
///
/// # Example
/// ```
/// use tectum_graph::{Batches, rows};
/// let features = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5]; // [3, 2]
/// let batches = Batches::new(3, 2, 7)?;
/// for samples in batches.epoch(0) {
///     assert_eq!(rows(&features, 2, &samples).len(), 4);
/// }
/// assert_eq!(batches.epoch(0).count(), 1);
/// assert!(batches.epoch(0).eq(batches.epoch(0)));
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    samples: usize,
    size: usize,
    seed: u64,
}

impl Batches {
    /// Batches of `size` of `samples` samples.
    ///
    /// # Errors
    /// `Invalid` if `size` is 0 or above `samples`, or there are more than 2³² samples.
    pub fn new(samples: usize, size: usize, seed: u64) -> Result<Self> {
        if size == 0 || size > samples || u32::try_from(samples).is_err() {
            return Err(Error::invalid(format!(
                "batches: {size} of {samples} samples: 1 to all of at most {} are possible",
                u32::MAX
            )));
        }
        Ok(Self {
            samples,
            size,
            seed,
        })
    }

    /// The sample numbers of each batch of an epoch; the order depends only on the seed and the
    /// epoch.
    ///
    /// # Source
    /// Durstenfeld, *Algorithm 235: Random permutation*, CACM 7 (1964).
    pub fn epoch(&self, epoch: u32) -> impl Iterator<Item = Vec<usize>> + use<> {
        let Self {
            samples,
            size,
            seed,
        } = *self;
        let mut order: Vec<usize> = (0..samples).collect();
        for last in (1..samples).rev() {
            let [word, ..] = philox(
                [last as u32, epoch, 0, 3],
                [seed as u32, (seed >> 32) as u32],
            );
            order.swap(last, ((u64::from(word) * (last as u64 + 1)) >> 32) as usize);
        }
        (0..samples / size).map(move |batch| order[batch * size..][..size].to_vec())
    }
}

/// The rows of `data` [n, width] of the given numbers, one after another.
///
/// # Panics
/// If a number is not below n.
pub fn rows<T: Copy>(data: &[T], width: usize, numbers: &[usize]) -> Vec<T> {
    numbers
        .iter()
        .flat_map(|number| &data[number * width..][..width])
        .copied()
        .collect()
}
