//! Transposes of matrices, one or a batch, of words of any type.

use std::sync::{Arc, LazyLock};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk};
use crate::kernel::{Kernel, TypedKernel};
use crate::kernel_arguments;
use crate::operation::movement::strided::Strided;
use crate::operation::{built_in, groups, words_each};
use crate::plan::PlanBuilder;
use crate::view::View;

/// Rows and columns of the tile that one workgroup moves.
pub const TILE: usize = 32;
/// Output rows that one task of the native twin fills: as many words as a cache line of the input
/// holds.
const LINE: usize = 16;

kernel_arguments! {
    /// `y[b, col, row] = x[b, row, col]`.
    pub(crate) struct Transpose { read x: u32, write y: u32; batch: usize, rows: usize, cols: usize }
}

pub(crate) static TRANSPOSE: LazyLock<TypedKernel<Transpose>> = LazyLock::new(|| {
    built_in(
        Transpose::define("transpose_u32").body(include_str!("transpose_u32.wgsl")),
        transpose,
    )
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    vec![TRANSPOSE.clone()]
}

fn transpose(
    call: &NativeCall<'_>,
    Transpose {
        x,
        y,
        batch,
        rows,
        cols,
    }: Transpose<Slices<'_>>,
) {
    let area = rows * cols;
    let threads = call.threads_for(batch * area);
    for (x, y) in x[..batch * area]
        .chunks_exact(area)
        .zip(y[..batch * area].chunks_exact_mut(area))
    {
        for_each_chunk(y, LINE * rows, threads, |index, y| {
            strip(x, cols, index * LINE, y, rows)
        });
    }
}

/// Fills the output rows from `first` on: up to 16 columns of the input, block by block of 16 of
/// its rows.
fn strip(x: &[u32], cols: usize, first: usize, y: &mut [u32], rows: usize) {
    let count = y.len() / rows;
    for start in (0..rows).step_by(LINE) {
        let height = LINE.min(rows - start);
        if count == LINE && height == LINE {
            let mut block = [[0u32; LINE]; LINE];
            for (row, block) in block.iter_mut().enumerate() {
                block.copy_from_slice(&x[(start + row) * cols + first..][..LINE]);
            }
            for col in 0..LINE {
                let y: &mut [u32] = &mut y[col * rows + start..][..LINE];
                y.iter_mut()
                    .zip(&block)
                    .for_each(|(y, block)| *y = block[col]);
            }
        } else {
            for row in start..start + height {
                for col in 0..count {
                    y[col * rows + row] = x[row * cols + first + col];
                }
            }
        }
    }
}

impl PlanBuilder {
    /// Records `y[b, col, row] = x[b, row, col]` for types of one width.
    ///
    /// # Shapes
    /// `x` [batch, rows, cols], `y` [batch, cols, rows].
    /// # Errors
    /// `Invalid` if the lengths do not fit; as [`PlanBuilder::launch`].
    pub fn transpose(&mut self, x: View, y: View, [batch, rows, cols]: [usize; 3]) -> Result<()> {
        if ![x, y].iter().all(|view| view.fills(&[batch, rows, cols])) {
            return Err(Error::invalid(format!(
                "transpose: x has {} and y {} elements, [{batch}, {rows}, {cols}] needed",
                x.len(),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        if words_each("transpose", &[x, y])? == 2 {
            let axes = [(batch, rows * cols), (cols, 1), (rows, cols)]
                .map(|(size, stride)| Strided { size, stride });
            return self.copy_strided(x, 0, &axes, y);
        }
        let tiles = batch * rows.div_ceil(TILE) * cols.div_ceil(TILE);
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        self.launch(
            &TRANSPOSE,
            Transpose {
                x,
                y,
                batch,
                rows,
                cols,
            },
            groups(tiles),
        )
    }
}
