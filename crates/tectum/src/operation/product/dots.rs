//! Products of one vector with many rows: a query with its keys.
//!
//! Sixteen rows are processed at a time, each with a vector of partial sums. Where vectors hold 16
//! floats the sixteen are added up side by side: 45 instructions instead of some 130. The order of
//! additions is that of [`dot_by_lanes`], so the bits are the same on every machine.

use pulp::{Simd, WithSimd};

use crate::kernel::native::with_simd;
use crate::operation::product::gemm::dot_by_lanes;
use crate::operation::product::panel_format::PANEL;

/// Writes Σ x·row of as many rows as `out` is long; each has the length of `x`, and they begin at
/// this stride in elements.
#[inline(always)]
pub(crate) fn dots(x: &[f32], rows: &[f32], stride: usize, out: &mut [f32]) {
    with_simd(Dots {
        x,
        rows,
        stride,
        out,
    });
}

struct Dots<'a> {
    x: &'a [f32],
    rows: &'a [f32],
    stride: usize,
    out: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            x,
            rows,
            stride,
            out,
        } = self;
        let (xs, rest) = x.as_chunks::<PANEL>();
        if cfg!(target_arch = "x86_64") && S::F32_LANES == PANEL && rest.is_empty() {
            for (block, out) in out.chunks_mut(PANEL).enumerate() {
                let mut parts = [[0.0; PANEL]; PANEL];
                for (row, part) in parts.iter_mut().enumerate().take(out.len()) {
                    let row = &rows[(block * PANEL + row) * stride..][..x.len()];
                    *part = partial(simd, xs, row.as_chunks().0);
                }
                out.copy_from_slice(&totals(&parts)[..out.len()]);
            }
            return;
        }
        for (row, out) in out.iter_mut().enumerate() {
            *out = dot_by_lanes(x, &rows[row * stride..][..x.len()]);
        }
    }
}

/// The sums of 64 lanes, added up to 16.
#[inline(always)]
fn partial<S: Simd>(simd: S, x: &[[f32; PANEL]], row: &[[f32; PANEL]]) -> [f32; PANEL] {
    let (xs, rows): (&[S::f32s], &[S::f32s]) = (bytemuck::cast_slice(x), bytemuck::cast_slice(row));
    let mut sums = [simd.splat_f32s(0.0); 4];
    let ((xs, xs_rest), (rows, rows_rest)) = (xs.as_chunks::<4>(), rows.as_chunks::<4>());
    for (x, row) in xs.iter().zip(rows) {
        for part in 0..4 {
            sums[part] = simd.mul_add_f32s(x[part], row[part], sums[part]);
        }
    }
    for ((sum, &x), &row) in sums.iter_mut().zip(xs_rest).zip(rows_rest) {
        *sum = simd.mul_add_f32s(x, row, *sum);
    }
    let [a, b, c, d] = sums;
    let mut total = [0.0; PANEL];
    bytemuck::cast_slice_mut::<f32, S::f32s>(&mut total)[0] =
        simd.add_f32s(simd.add_f32s(a, c), simd.add_f32s(b, d));
    total
}

/// The sum of each of sixteen vectors, by halves. Only where vectors hold 16 floats.
#[inline(always)]
fn totals(parts: &[[f32; PANEL]; PANEL]) -> [f32; PANEL] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: on x86-64 vectors of 16 floats are those of AVX-512 F.
    return unsafe { x86::totals(parts) };
    #[cfg(not(target_arch = "x86_64"))]
    parts.map(|part| crate::operation::reduce::fold_tree(part, |a, b| a + b))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512, _mm512_add_ps, _mm512_setzero_ps, _mm512_shuffle_f32x4, _mm512_shuffle_ps,
    };

    use super::PANEL;

    /// # Safety
    /// The machine has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn totals(parts: &[[f32; PANEL]; PANEL]) -> [f32; PANEL] {
        let zero = _mm512_setzero_ps();
        let (mut run_8_lanes, mut fours, mut twos) = ([zero; 8], [zero; 4], [zero; 2]);
        // Halves of two vectors side by side, then quarters of four, and so on; the loads are
        // permuted so that every sum ends in its place.
        for (pair, to) in run_8_lanes.iter_mut().enumerate() {
            let [a, b] = [2 * pair, 2 * pair + 1]
                .map(|place| pulp::cast::<[f32; PANEL], __m512>(parts[place % 4 * 4 + place / 4]));
            *to = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0x44>(a, b),
                _mm512_shuffle_f32x4::<0xee>(a, b),
            );
        }
        for (to, [a, b]) in fours.iter_mut().zip(run_8_lanes.as_chunks().0) {
            *to = _mm512_add_ps(
                _mm512_shuffle_f32x4::<0x88>(*a, *b),
                _mm512_shuffle_f32x4::<0xdd>(*a, *b),
            );
        }
        for (to, [a, b]) in twos.iter_mut().zip(fours.as_chunks().0) {
            *to = _mm512_add_ps(
                _mm512_shuffle_ps::<0x44>(*a, *b),
                _mm512_shuffle_ps::<0xee>(*a, *b),
            );
        }
        let [a, b] = twos;
        pulp::cast(_mm512_add_ps(
            _mm512_shuffle_ps::<0x88>(a, b),
            _mm512_shuffle_ps::<0xdd>(a, b),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::random::{philox, uniform};

    #[test]
    fn rows_have_the_bits_that_each_has_alone() {
        for (width, stride) in [
            (16, 16),
            (48, 50),
            (64, 64),
            (80, 128),
            (128, 128),
            (20, 24),
        ] {
            for count in [1, 5, 16, 33] {
                let number =
                    |at: usize| uniform(philox([at as u32, 0, 0, 0], [7, width as u32])[0]) - 0.5;
                let (x, rows): (Vec<f32>, Vec<f32>) = (
                    (0..width).map(number).collect(),
                    (width..width + count * stride).map(number).collect(),
                );
                let mut out = vec![f32::NAN; count];
                dots(&x, &rows, stride, &mut out);
                for (row, out) in out.iter().enumerate() {
                    let wanted = dot_by_lanes(&x, &rows[row * stride..][..width]);
                    assert_eq!(
                        out.to_bits(),
                        wanted.to_bits(),
                        "{width} stride {stride}, row {row} of {count}: {out} and {wanted}"
                    );
                }
            }
        }
    }
}
