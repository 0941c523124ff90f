//! Convolutions in which each filter reads one channel, with windows of 3 × 3 or 5 × 5 and stride 1
//! over wide rows: sixteen columns at a time from the first row to the last.
//!
//! An element of the input is loaded once for each column of the window: the sums of the output
//! rows that read it are in registers. 16 × 112 × 112 takes two thirds of the time that sixteen
//! interleaved channels take.

use pulp::{Simd, WithSimd};

use crate::kernel::native::{PrefetchHint, by_vectors, prefetch_unchecked};
use crate::operation::convolution::chunks::{LANES, load};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::window::Geometry;

/// Minimum columns of the output: with fewer most lanes would be empty.
const MIN_COLUMNS: usize = 2 * LANES;
/// Columns side by side: their sums do not wait for each other.
const CHUNKS: usize = 2;

/// Whether the sums of a convolution can be computed so.
pub(crate) fn takes(geometry: &Geometry) -> bool {
    let Geometry {
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        ..
    } = *geometry;
    let is_plane = size_in[0] == 1 && size_out[0] == 1;
    is_plane
        && matches!(kernel, [1, 3, 3] | [1, 5, 5])
        && [stride, dilation] == [[1; 3]; 2]
        && size_out[2] >= MIN_COLUMNS
}

/// The output of a channel.
pub(crate) struct DepthwiseRows<'a> {
    pub geometry: &'a Geometry,
    pub padded: &'a Padded,
    /// Elements of the window, row by row.
    pub filter: &'a [f32],
    pub bias: f32,
    /// The padded channel.
    pub source: &'a [f32],
    pub is_relu: bool,
    pub y: &'a mut [f32],
}

impl WithSimd for DepthwiseRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(S, self.make(simd))
    }
}

impl DepthwiseRows<'_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(self, simd: S) {
        match self.geometry.kernel[2] {
            3 => self.all_columns::<S, VECTORS, 3>(simd),
            _ => self.all_columns::<S, VECTORS, 5>(simd),
        }
    }

    #[inline(always)]
    fn all_columns<S: Simd, const VECTORS: usize, const TAPS: usize>(mut self, simd: S) {
        let columns = self.geometry.size_out[2];
        let count = columns.div_ceil(LANES);
        // The last chunk ends with the row.
        let start = |chunk: usize| (chunk * LANES).min(columns - LANES);
        for chunk in (0..count / CHUNKS * CHUNKS).step_by(CHUNKS) {
            self.down::<S, VECTORS, TAPS, CHUNKS>(simd, [start(chunk), start(chunk + 1)]);
        }
        if count % CHUNKS == 1 {
            self.down::<S, VECTORS, TAPS, 1>(simd, [start(count - 1)]);
        }
    }

    /// Row by row of the input, each of which `TAPS` rows of the output read.
    #[inline(always)]
    fn down<S: Simd, const VECTORS: usize, const TAPS: usize, const COUNT: usize>(
        &mut self,
        simd: S,
        starts: [usize; COUNT],
    ) {
        // By column of the window, for the rows that have begun.
        let weights: [[f32; TAPS]; TAPS] = std::array::from_fn(|tap| {
            std::array::from_fn(|begun| self.filter[(TAPS - 1 - begun) * TAPS + tap])
        });
        let (row_len, rows) = (self.padded.row_len(), self.geometry.size_out[1]);
        let bias = simd.splat_f32s(self.bias);
        // The sums of the output rows that have begun, the first of them first.
        let mut sums = [[[bias; VECTORS]; COUNT]; TAPS];
        for row in 0..rows + TAPS - 1 {
            let source = &self.source[row * row_len..];
            for (tap, weights) in weights.iter().enumerate() {
                for chunk in 0..COUNT {
                    let x = load::<S, VECTORS>(source, starts[chunk] + tap);
                    for begun in 0..TAPS {
                        let weight = simd.splat_f32s(weights[begun]);
                        for vector in 0..VECTORS {
                            sums[begun][chunk][vector] =
                                simd.mul_add_f32s(weight, x[vector], sums[begun][chunk][vector]);
                        }
                    }
                }
            }
            let made = sums[0];
            for begun in 1..TAPS {
                sums[begun - 1] = sums[begun];
            }
            sums[TAPS - 1] = [[bias; VECTORS]; COUNT];
            if let Some(row) = row.checked_sub(TAPS - 1) {
                self.store::<S, VECTORS, COUNT>(simd, row, starts, made);
            }
        }
    }

    /// Writes sums of an output row.
    #[inline(always)]
    fn store<S: Simd, const VECTORS: usize, const COUNT: usize>(
        &mut self,
        simd: S,
        row: usize,
        starts: [usize; COUNT],
        mut sums: [[S::f32s; VECTORS]; COUNT],
    ) {
        if self.is_relu {
            let zero = simd.splat_f32s(0.0);
            for sum in sums.as_flattened_mut() {
                *sum = simd.select_f32s(simd.less_than_or_equal_f32s(*sum, zero), zero, *sum);
            }
        }
        let y = &mut self.y[row * self.geometry.size_out[2]..];
        for chunk in 0..COUNT {
            // What the next columns write of this row: rows are not read or written in the order of
            // memory.
            prefetch_unchecked(y, starts[chunk] + COUNT * LANES, PrefetchHint::ToWrite);
            let y: &mut [f32; LANES] = y[starts[chunk]..]
                .first_chunk_mut()
                .expect("invariant: a row holds its chunks");
            y.copy_from_slice(bytemuck::cast_slice(&sums[chunk]));
        }
    }
}
