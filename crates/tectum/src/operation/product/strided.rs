//! Products of matrices with any strides, in builds without the crate `gemm`.
//!
//! On f32 both operands are packed for the tiles of the products with weights in panels. Few rows,
//! and f64, are computed row by row.

use crate::dtype::DType;
use crate::kernel::math::Real;
use crate::kernel::native::{for_each_chunk, simd, with_simd};
use crate::operation::product::panel_format::{PANEL, PanelFormat};
use crate::operation::product::strip::{
    CacheLine, MAX_PANELS_PER_PASS, Strip, Tiles, panels_per_pass,
};
use crate::operation::product::tiles::pack_tiles;

/// Rows from which packing the right operand takes less time than it saves.
const MIN_PACKED_ROWS: usize = 4;
/// Maximum rows of a task: a strip of them stays in L1 with its panels.
const MAX_ROWS: usize = 128;

/// `y = a·b` for [m, k] and [k, n] by strides (row, column); `y` row-major.
///
/// # Panics
/// If an operand is too short.
pub(crate) fn product<T: Real>(
    [m, n, k]: [usize; 3],
    a: &[T],
    a_strides: [usize; 2],
    b: &[T],
    b_strides: [usize; 2],
    y: &mut [T],
    threads: usize,
) {
    if y.is_empty() {
        return;
    }
    if T::DTYPE == DType::F32 && m >= MIN_PACKED_ROWS && k > 0 {
        let (a, b, y) = (
            bytemuck::cast_slice(a),
            bytemuck::cast_slice(b),
            bytemuck::cast_slice_mut(y),
        );
        by_panels([m, n, k], (a, a_strides), (b, b_strides), y, threads);
    } else {
        by_rows([n, k], (a, a_strides), (b, b_strides), y, threads);
    }
}

fn by_rows<T: Real>(
    [n, k]: [usize; 2],
    (a, [a_row, a_col]): (&[T], [usize; 2]),
    (b, [b_row, b_col]): (&[T], [usize; 2]),
    y: &mut [T],
    threads: usize,
) {
    for_each_chunk(y, n, threads, |row, y| {
        y.fill(T::ZERO);
        simd(
            #[inline(always)]
            || {
                for at in 0..k {
                    let (factor, b) = (a[row * a_row + at * a_col], &b[at * b_row..]);
                    if b_col == 1 {
                        for (y, b) in y.iter_mut().zip(b) {
                            *y = factor.mul_add(*b, *y);
                        }
                    } else {
                        for (column, y) in y.iter_mut().enumerate() {
                            *y = factor.mul_add(b[column * b_col], *y);
                        }
                    }
                }
            },
        );
    });
}

fn by_panels(
    [m, n, k]: [usize; 3],
    (a, [a_row, a_col]): (&[f32], [usize; 2]),
    (b, b_strides): (&[f32], [usize; 2]),
    y: &mut [f32],
    threads: usize,
) {
    let (group, panel) = (panels_per_pass(), k * PANEL);
    let mut panels = vec![CacheLine::ZERO; n.div_ceil(PANEL) * k];
    PanelFormat::F32.pack(b, [k, n], b_strides, bytemuck::cast_slice_mut(&mut panels));
    let panels: &[f32] = bytemuck::cast_slice(&panels);
    let height = m.div_ceil(threads).min(MAX_ROWS);
    for_each_chunk(y, height * n, threads, |task, y| {
        let rows = y.len() / n;
        let row = |row: usize| (0..k).map(move |at| a[(task * height + row) * a_row + at * a_col]);
        let unpacked: Vec<f32> = (0..rows).flat_map(row).collect();
        let mut packed = vec![CacheLine::ZERO; (rows * k).div_ceil(PANEL)];
        let packed: &mut [f32] = &mut bytemuck::cast_slice_mut(&mut packed)[..rows * k];
        pack_tiles(&unpacked, k, packed);
        let mut strip = vec![CacheLine::ZERO; rows * MAX_PANELS_PER_PASS];
        for (pass, b) in panels.chunks(group * panel).enumerate() {
            let (tiles, width) = (Tiles { data: packed, k }, b.len() / k);
            let strip: &mut [f32] = &mut bytemuck::cast_slice_mut(&mut strip)[..rows * width];
            match b.split_at(panel) {
                (b, []) => with_simd(Strip::alone(tiles, [b], strip, false)),
                (b, second) => with_simd(Strip::alone(tiles, [b, second], strip, false)),
            }
            let first = pass * group * PANEL;
            for (y, strip) in y.chunks_exact_mut(n).zip(strip.chunks_exact(width)) {
                let y = &mut y[first..n.min(first + width)];
                y.copy_from_slice(&strip[..y.len()]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers: every order of sums gives the same result.
    fn numbers<T: Real>(len: usize, seed: usize) -> Vec<T> {
        (0..len)
            .map(|at| T::from_count((at * 7 + seed) % 5))
            .collect()
    }

    fn agrees<T: Real>([m, n, k]: [usize; 3], a_strides: [usize; 2], b_strides: [usize; 2]) {
        let (a, b): (Vec<T>, Vec<T>) = (numbers(m * k + 1, 1), numbers(k * n + 1, 2));
        let sum = |row: usize, column: usize| {
            let at = |at: usize| {
                a[row * a_strides[0] + at * a_strides[1]]
                    * b[at * b_strides[0] + column * b_strides[1]]
            };
            (0..k).fold(T::ZERO, |sum, index| sum + at(index))
        };
        let expected: Vec<T> = (0..m * n).map(|place| sum(place / n, place % n)).collect();
        for threads in [1, 2] {
            let mut y = vec![T::from_count(9); m * n];
            product([m, n, k], &a, a_strides, &b, b_strides, &mut y, threads);
            assert_eq!(
                y, expected,
                "{m} {n} {k} {a_strides:?} {b_strides:?} {threads}"
            );
        }
    }

    #[test]
    fn products_with_any_strides_are_those_of_the_sums() {
        for [m, n, k] in [
            [1, 1, 1],
            [1, 40, 7],
            [3, 5, 0],
            [4, 16, 1],
            [5, 33, 9],
            [13, 17, 400],
            [29, 64, 31],
            [300, 20, 3],
            [2, 0, 3],
        ] {
            for (a_strides, b_strides) in [
                ([k, 1], [n, 1]),
                ([1, m], [n, 1]),
                ([k, 1], [1, k]),
                ([1, m], [1, k]),
            ] {
                agrees::<f32>([m, n, k], a_strides, b_strides);
                agrees::<f64>([m, n, k], a_strides, b_strides);
            }
        }
    }
}
