//! Sixteen neighbouring elements of an output row at a time, and how they are finished.

use crate::kernel::math::Real;
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::window::Geometry;
use crate::operation::product::gemm::{Activation, by_activation};

/// Elements of a chunk.
pub(crate) const LANES: usize = 16;

/// A part of an output row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// The place of its first element in a padded channel.
    pub place: usize,
    /// Its first element in the output channel.
    pub at: usize,
    /// Elements, at most 16.
    pub count: usize,
}

/// The chunks of an output channel. The last of a row begins 16 elements before its end, where the row has as many.
pub(crate) fn chunks(geometry: Geometry, padded: &Padded) -> Vec<Chunk> {
    let [planes, rows, columns] = geometry.size_out;
    let mut chunks = Vec::with_capacity(planes * rows * columns.div_ceil(LANES));
    for row in 0..planes * rows {
        let base = padded.base(row / rows, row % rows);
        for column in (0..columns).step_by(LANES) {
            let column = column.min(columns.saturating_sub(LANES));
            chunks.push(Chunk { place: base + column, at: row * columns + column, count: LANES.min(columns - column) });
        }
    }
    chunks
}

/// What follows the sums of an image and group: `activation(sum + bias + residual)`.
#[derive(Clone, Copy)]
pub(crate) struct Finish<'a> {
    /// One for each row.
    pub bias: Option<&'a [f32]>,
    /// Rows of `pixels` elements.
    pub residual: Option<&'a [f32]>,
    pub pixels: usize,
    pub activation: Activation,
}

/// The same of a row.
#[derive(Clone, Copy)]
pub(crate) struct FinishRow<'a> {
    bias: f32,
    residual: Option<&'a [f32]>,
    activation: Activation,
}

impl<'a> Finish<'a> {
    /// A row from a column on.
    #[inline(always)]
    pub fn row(&self, row: usize, column: usize) -> FinishRow<'a> {
        // Without a bias −0, whose addition changes nothing.
        let bias = self.bias.map_or(-0.0, |bias| bias[row]);
        FinishRow { bias, residual: self.residual.map(|residual| &residual[row * self.pixels + column..]), activation: self.activation }
    }
}

impl FinishRow<'_> {
    /// Finishes sums of elements of the row from one on, and writes as many as `y` has.
    #[inline(always)]
    pub fn store(&self, sums: &[f32; LANES], at: usize, y: &mut [f32]) {
        let bias = self.bias;
        let mut sums: [f32; LANES] = std::array::from_fn(|lane| sums[lane] + bias);
        if let Some(residual) = self.residual {
            match residual[at..].first_chunk::<LANES>() {
                Some(residual) => sums = std::array::from_fn(|lane| sums[lane] + residual[lane]),
                None => sums.iter_mut().zip(&residual[at..]).for_each(|(sum, residual)| *sum += residual),
            }
        }
        macro_rules! each {
            () => {};
            ($function:ident) => {
                for sum in &mut sums {
                    *sum = sum.$function();
                }
            };
        }
        by_activation!(self.activation, each);
        match y.first_chunk_mut::<LANES>() {
            Some(y) => *y = sums,
            None => y.copy_from_slice(&sums[..y.len()]),
        }
    }
}
