//! Rows packed for products: tiles of some rows, with the elements of each k side by side.

use pulp::{Simd, WithSimd};

use crate::kernel::native::with_simd;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::transpose_16x16::transpose_16x16;

/// Maximum rows of a tile.
pub(crate) const MAX_TILE: usize = 12;

/// Rows of a tile: as many as fit the registers, in addition to the panels' row and one element.
pub(crate) const fn tile_rows<S: Simd>() -> usize {
    match (S::F32_LANES, S::REGISTER_COUNT) {
        (PANEL, _) => MAX_TILE,
        (8, _) => 6,
        (4, 32..) => 6,
        _ => 2,
    }
}

/// Tiles of equal heights, as far as possible: first row and height of each.
pub(crate) fn tiles(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(most);
    (0..count).map(move |tile| {
        (
            tile * rows / count,
            (tile + 1) * rows / count - tile * rows / count,
        )
    })
}

/// Packs rows of `k` elements in the layout of [`Tiles`](crate::operation::product::strip::Tiles).
pub(crate) fn pack_tiles(a: &[f32], k: usize, packed: &mut [f32]) {
    struct Most;
    impl WithSimd for Most {
        type Output = usize;
        fn with_simd<S: Simd>(self, _: S) -> usize {
            tile_rows::<S>()
        }
    }
    pack_tiles_of(
        bytemuck::cast_slice(a),
        k,
        with_simd(Most),
        bytemuck::cast_slice_mut(packed),
    );
}

/// Packs rows of `k` words in tiles of at most this many rows, no more than 16: in each tile the
/// words of one k are side by side.
pub(crate) fn pack_tiles_of(a: &[u32], k: usize, most: usize, packed: &mut [u32]) {
    with_simd(Pack {
        a,
        k,
        most,
        packed: &mut packed[..a.len()],
    });
}

struct Pack<'a> {
    a: &'a [u32],
    k: usize,
    most: usize,
    packed: &'a mut [u32],
}

/// Minimum height of a tile that is packed by squares of 16.
const SQUARE_ROWS: usize = 6;

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { a, k, most, packed } = self;
        for (first, height) in tiles(a.len() / k, most) {
            let (a, to) = (&a[first * k..][..height * k], &mut packed[first * k..]);
            let squares = if S::F32_LANES == PANEL && height >= SQUARE_ROWS {
                k / PANEL
            } else {
                0
            };
            for (square, from) in (0..squares).map(|square| (square, square * PANEL)) {
                let row = |row: usize| {
                    a[if row < height { row * k } else { 0 } + from..]
                        .first_chunk()
                        .expect("invariant: a row holds its squares")
                };
                // Whole columns, in their order: what is beyond the tile's height is overwritten by
                // the next column or the next tile.
                let to = &mut to[square * PANEL * height..];
                if let Some(to) = to.get_mut(..(PANEL - 1) * height + PANEL) {
                    transpose_16x16(
                        simd,
                        std::array::from_fn(row),
                        #[inline(always)]
                        |column, words| {
                            *to[column * height..]
                                .first_chunk_mut()
                                .expect("invariant: there is room for the last column") = words
                        },
                    );
                } else {
                    transpose_16x16(
                        simd,
                        std::array::from_fn(row),
                        #[inline(always)]
                        |column, words| {
                            to[column * height..][..height].copy_from_slice(&words[..height])
                        },
                    );
                }
            }
            let from = squares * PANEL;
            let to = &mut to[from * height..k * height];
            for row in (0..height / 4 * 4).step_by(4) {
                pack_rows::<4>(
                    std::array::from_fn(|index| &a[(row + index) * k + from..][..k - from]),
                    to,
                    (row, height),
                );
            }
            for row in height / 4 * 4..height {
                pack_rows::<1>([&a[row * k + from..][..k - from]], to, (row, height));
            }
        }
    }
}

/// Some rows of a tile, from one on: squares of them, which the compiler transposes in registers.
#[inline(always)]
fn pack_rows<const ROWS: usize>(
    rows: [&[u32]; ROWS],
    to: &mut [u32],
    (first, height): (usize, usize),
) {
    const STEP: usize = 4;
    let k = rows[0].len();
    let squares = rows.map(|row| row.as_chunks::<STEP>().0);
    for (index, to) in to.chunks_mut(STEP * height).enumerate().take(k / STEP) {
        let square: [[u32; STEP]; ROWS] = std::array::from_fn(|row| squares[row][index]);
        for k in 0..STEP {
            let to: &mut [u32; ROWS] = to[k * height + first..]
                .first_chunk_mut()
                .expect("invariant: a tile holds its rows");
            *to = std::array::from_fn(|row| square[row][k]);
        }
    }
    for k in k / STEP * STEP..k {
        to[k * height + first..]
            .iter_mut()
            .zip(rows)
            .for_each(|(to, row)| *to = row[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_TILE;
    use super::*;

    #[test]
    fn tiles_hold_the_words_of_one_k_side_by_side() {
        for (rows, k) in [
            (1, 40),
            (5, 16),
            (6, 32),
            (13, 16),
            (16, 33),
            (27, 48),
            (64, 50),
        ] {
            for most in [2, 6, MAX_TILE] {
                let a: Vec<u32> = (0..rows * k).map(|at| at as u32).collect();
                let mut packed = vec![u32::MAX; rows * k];
                pack_tiles_of(&a, k, most, &mut packed);
                let wanted: Vec<u32> = tiles(rows, most)
                    .flat_map(|(first, height)| {
                        (0..k).flat_map(move |k_at| {
                            (first..first + height).map(move |row| (row * k + k_at) as u32)
                        })
                    })
                    .collect();
                assert_eq!(packed, wanted, "{rows} rows of {k}, at most {most}");
            }
        }
    }
}
