//! Sixteen neighbouring elements of an output row at a time, and how they are finished.

use pulp::Simd;

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

/// The chunks of an output channel. The last of a row begins 16 elements before its end, where the
/// row has as many.
pub(crate) fn chunks(geometry: Geometry, padded: &Padded) -> Vec<Chunk> {
    let [planes, rows, columns] = geometry.size_out;
    let mut chunks = Vec::with_capacity(planes * rows * columns.div_ceil(LANES));
    for row in 0..planes * rows {
        let base = padded.base(row / rows, row % rows);
        for column in (0..columns).step_by(LANES) {
            let column = column.min(columns.saturating_sub(LANES));
            chunks.push(Chunk {
                place: base + column,
                at: row * columns + column,
                count: LANES.min(columns - column),
            });
        }
    }
    chunks
}

/// Sixteen elements as vectors.
#[inline(always)]
pub(crate) fn load<S: Simd, const VECTORS: usize>(x: &[f32], at: usize) -> [S::f32s; VECTORS] {
    let x: &[f32; LANES] = x[at..]
        .first_chunk()
        .expect("invariant: there is slack after the last element");
    bytemuck::pod_read_unaligned(bytemuck::bytes_of(x))
}

/// The elements at even places.
#[inline(always)]
pub(crate) fn even<S: Simd>(_: S, x: &[f32; 2 * LANES]) -> [f32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if S::F32_LANES == LANES {
        // SAFETY: an `S` comes from `with_simd`, and on x86-64 only that of AVX-512 F has vectors
        // of 16 floats.
        return unsafe { x86::even(x) };
    }
    std::array::from_fn(
        #[inline(always)]
        |lane| x[2 * lane],
    )
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::LANES;

    /// # Safety
    /// The machine has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn even(x: &[f32; 2 * LANES]) -> [f32; LANES] {
        let [first, second]: [__m512; 2] = pulp::cast(*x);
        let places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        pulp::cast(_mm512_permutex2var_ps(first, places, second))
    }
}

/// Writes sixteen elements from a place on, of which `count` count: the rest is for those who write
/// in order, and overwrite it. Only as many where there is no room for more.
#[inline(always)]
pub(crate) fn store_chunk<T: Copy>(made: &[T], at: usize, count: usize, y: &mut [T]) {
    let y = &mut y[at..];
    // With a length that is known when it is compiled: else each is a call.
    match (y.first_chunk_mut::<LANES>(), made.first_chunk::<LANES>()) {
        (Some(y), Some(made)) => *y = *made,
        _ => y[..count].copy_from_slice(&made[..count]),
    }
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

impl<'a> Finish<'a> {
    /// That of the rows from one on.
    pub fn skip_rows(&self, row: usize) -> Self {
        Self {
            bias: self.bias.map(|bias| &bias[row..]),
            residual: self.residual.map(|residual| &residual[row * self.pixels..]),
            ..*self
        }
    }

    /// Finishes the sums of a part of a row, from a column on.
    #[inline(always)]
    pub fn row(&self, row: usize, column: usize, sums: &mut [f32], y: &mut [f32]) {
        if let Some(residual) = self.residual {
            let residual = &residual[row * self.pixels + column..];
            sums.iter_mut()
                .zip(residual)
                .for_each(|(sum, residual)| *sum += residual);
        }
        // Without a bias −0, whose addition changes nothing.
        let bias = self.bias.map_or(-0.0, |bias| bias[row]);
        macro_rules! each {
            ($($function:ident)?) => {
                for (y, sum) in y.iter_mut().zip(&*sums) {
                    *y = (sum + bias)$(.$function())?;
                }
            };
        }
        by_activation!(self.activation, each);
    }

    /// Finishes the sums of a row in place.
    #[inline(always)]
    pub fn in_place(&self, row: usize, y: &mut [f32]) {
        if let Some(residual) = self.residual {
            y.iter_mut()
                .zip(&residual[row * self.pixels..])
                .for_each(|(y, residual)| *y += residual);
        }
        self.activate(y);
    }

    /// Applies the activation.
    #[inline(always)]
    pub fn activate(&self, y: &mut [f32]) {
        macro_rules! each {
            () => {};
            ($function:ident) => {
                for y in y {
                    *y = y.$function();
                }
            };
        }
        by_activation!(self.activation, each);
    }
}
