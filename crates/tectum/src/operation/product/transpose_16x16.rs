//! Squares of 16 by 16 words transposed in registers: used to pack rows and to read and write
//! heads.
//!
//! With AVX-512 a square takes 64 shuffles, a quarter per word; word by word it took 1.4 cycles per
//! word.

use pulp::{Simd, WithSimd};

use crate::operation::product::panel_format::PANEL;
use crate::operation::reduce::each_lane;

/// Passes on the columns of sixteen rows one at a time, from the first on. As a whole they would go
/// through the stack.
#[inline(always)]
pub(crate) fn transpose_16x16<S: Simd>(
    _: S,
    rows: [&[u32; PANEL]; PANEL],
    mut column: impl FnMut(usize, [u32; PANEL]),
) {
    #[cfg(target_arch = "x86_64")]
    if S::F32_LANES == PANEL {
        // SAFETY: an `S` comes from `with_simd`, and on x86-64 only that of AVX-512 F has vectors
        // of 16 floats.
        return unsafe { x86::transpose_16x16(rows, column) };
    }
    for place in 0..PANEL {
        column(place, rows.map(|row| row[place]));
    }
}

/// The first floats as a row of a square.
#[inline(always)]
fn words(floats: &[f32]) -> &[u32; PANEL] {
    bytemuck::cast_ref(
        floats
            .first_chunk::<PANEL>()
            .expect("invariant: a row holds its squares"),
    )
}

/// Queries, at this stride in elements, as panels [width, 16], scaled; lanes without a query are 0.
pub(crate) struct TransposeIn<'a> {
    pub q: &'a [f32],
    pub stride: usize,
    pub count: usize,
    pub panels: &'a mut [f32],
    pub width: usize,
    pub scale: f32,
}

impl WithSimd for TransposeIn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            q,
            stride,
            count,
            panels,
            width,
            scale,
        } = self;
        let whole = width / PANEL * PANEL;
        for (panel, to) in panels.chunks_exact_mut(width * PANEL).enumerate() {
            let lanes = count.saturating_sub(panel * PANEL).min(PANEL);
            let row = |lane: usize| &q[(panel * PANEL + lane) * stride..][..width];
            let (to, _) = to.as_chunks_mut::<PANEL>();
            for from in (0..whole).step_by(PANEL) {
                let square = |lane: usize| match lane < lanes {
                    true => words(&row(lane)[from..]),
                    false => &[0; PANEL],
                };
                transpose_16x16(
                    simd,
                    std::array::from_fn(square),
                    #[inline(always)]
                    |column, queries| {
                        to[from + column] =
                            each_lane(bytemuck::cast(queries), |_, q: f32| q * scale)
                    },
                );
            }
            for (at, to) in to.iter_mut().enumerate().skip(whole) {
                *to = std::array::from_fn(|lane| {
                    if lane < lanes {
                        row(lane)[at] * scale
                    } else {
                        0.0
                    }
                });
            }
        }
    }
}

/// Sums [width, lanes] as rows of the result, at this stride in elements, each times its own
/// factor.
pub(crate) struct TransposeOut<'a> {
    pub sums: &'a [f32],
    pub inverses: &'a [[f32; PANEL]],
    pub y: &'a mut [f32],
    pub row: usize,
    pub count: usize,
}

impl WithSimd for TransposeOut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            sums,
            inverses,
            y,
            row,
            count,
        } = self;
        let lanes = inverses.len() * PANEL;
        let (width, whole) = (sums.len() / lanes, sums.len() / lanes / PANEL * PANEL);
        for (panel, inverses) in inverses.iter().enumerate() {
            let first = panel * PANEL;
            for from in (0..whole).step_by(PANEL) {
                let square = |k: usize| words(&sums[(from + k) * lanes + first..]);
                transpose_16x16(
                    simd,
                    std::array::from_fn(square),
                    #[inline(always)]
                    |lane, sums| {
                        if first + lane < count {
                            let y: &mut [f32; PANEL] = y[(first + lane) * row + from..]
                                .first_chunk_mut()
                                .expect("invariant: a row holds its heads");
                            *y =
                                each_lane(bytemuck::cast(sums), |_, sum: f32| sum * inverses[lane]);
                        }
                    },
                );
            }
            for (lane, at) in (0..PANEL.min(count.saturating_sub(first)))
                .flat_map(|lane| (whole..width).map(move |at| (lane, at)))
            {
                y[(first + lane) * row + at] = sums[at * lanes + first + lane] * inverses[lane];
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::PANEL;

    /// # Safety
    /// The machine has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn transpose_16x16(
        rows: [&[u32; PANEL]; PANEL],
        mut column: impl FnMut(usize, [u32; PANEL]),
    ) {
        let mut pairs = [_mm512_setzero_si512(); PANEL];
        for pair in 0..PANEL / 2 {
            let [a, b]: [__m512i; 2] =
                [pulp::cast(*rows[2 * pair]), pulp::cast(*rows[2 * pair + 1])];
            pairs[2 * pair] = _mm512_unpacklo_epi32(a, b);
            pairs[2 * pair + 1] = _mm512_unpackhi_epi32(a, b);
        }
        // Of four rows the columns c, 4 + c, 8 + c and 12 + c side by side.
        let mut fours = pairs;
        for four in 0..PANEL / 4 {
            for side in 0..2 {
                let [a, b] = [pairs[4 * four + side], pairs[4 * four + 2 + side]];
                fours[4 * four + 2 * side] = _mm512_unpacklo_epi64(a, b);
                fours[4 * four + 2 * side + 1] = _mm512_unpackhi_epi64(a, b);
            }
        }
        let mut columns = fours;
        for c in 0..4 {
            let [a, b, d, e] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
            let even = [
                _mm512_shuffle_i32x4::<0x88>(a, b),
                _mm512_shuffle_i32x4::<0x88>(d, e),
            ];
            let odd = [
                _mm512_shuffle_i32x4::<0xdd>(a, b),
                _mm512_shuffle_i32x4::<0xdd>(d, e),
            ];
            columns[c] = _mm512_shuffle_i32x4::<0x88>(even[0], even[1]);
            columns[4 + c] = _mm512_shuffle_i32x4::<0x88>(odd[0], odd[1]);
            columns[8 + c] = _mm512_shuffle_i32x4::<0xdd>(even[0], even[1]);
            columns[12 + c] = _mm512_shuffle_i32x4::<0xdd>(odd[0], odd[1]);
        }
        for (place, words) in columns.iter().enumerate() {
            column(place, pulp::cast(*words));
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, Scalar};

    use super::*;

    type Square = [[u32; PANEL]; PANEL];

    struct Turn<'a>(&'a Square);

    impl WithSimd for Turn<'_> {
        type Output = Square;
        fn with_simd<S: Simd>(self, simd: S) -> Square {
            let mut columns = Vec::new();
            transpose_16x16(simd, self.0.each_ref(), |place, words| {
                assert_eq!(place, columns.len(), "columns come in order");
                columns.push(words);
            });
            columns.try_into().expect("sixteen columns")
        }
    }

    #[test]
    fn rows_become_columns_with_every_instruction_set() {
        let rows: Square =
            std::array::from_fn(|row| std::array::from_fn(|column| (row * 100 + column) as u32));
        let wanted: Square =
            std::array::from_fn(|row| std::array::from_fn(|column| (column * 100 + row) as u32));
        assert_eq!(Arch::new().dispatch(Turn(&rows)), wanted);
        assert_eq!(Turn(&rows).with_simd(Scalar), wanted);
    }
}
