//! The epilogue of a product's tiles: bias and activation, and the result written with the
//! residual.

use std::ops::Range;

use crate::kernel::math::Real;
use crate::operation::product::gemm::{Activation, by_activation};
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{EpilogueLines, StripEpilogue};

/// The epilogue of a product without the residual, for a strip of some columns from a first one on.
#[derive(Clone, Copy)]
pub(crate) struct BiasActivation<'a> {
    pub bias: Option<&'a [f32]>,
    pub activation: Activation,
    pub first: usize,
}

impl BiasActivation<'_> {
    /// Applies the epilogue to a tile's rows in one pass, and returns each with the place of its
    /// sums.
    #[inline(always)]
    fn rows<const PANELS: usize>(
        &self,
        tile: &mut [[[f32; PANEL]; PANELS]],
        mut ended: impl FnMut(usize, [[f32; PANEL]; PANELS], &mut [[f32; PANEL]; PANELS]),
    ) {
        // Without a bias, and beyond the last column, −0, whose addition changes nothing.
        let mut bias = [[-0.0; PANEL]; PANELS];
        if let Some(given) = self.bias {
            match given[self.first..].as_chunks().0.first_chunk() {
                Some(given) => bias = *given,
                None => bias
                    .as_flattened_mut()
                    .iter_mut()
                    .zip(&given[self.first..])
                    .for_each(|(bias, given)| *bias = *given),
            }
        }
        macro_rules! each {
            ($($function:ident)?) => {
                for (row, sums) in tile.iter_mut().enumerate() {
                    let mut made = *sums;
                    for panel in 0..PANELS {
                        for lane in 0..PANEL {
                            let sum = sums[panel][lane] + bias[panel][lane];
                            made[panel][lane] = sum$(.$function())?;
                        }
                    }
                    ended(row, made, sums);
                }
            };
        }
        by_activation!(self.activation, each)
    }
}

impl StripEpilogue for BiasActivation<'_> {
    #[inline(always)]
    fn lines(&self) -> Option<EpilogueLines<'_>> {
        None
    }

    #[inline(always)]
    fn end<const PANELS: usize>(&mut self, _: usize, tile: &mut [[[f32; PANEL]; PANELS]]) {
        self.rows(
            tile,
            #[inline(always)]
            |_, made, sums| *sums = made,
        );
    }
}

/// The same, written to the result with the residual.
pub(crate) struct StoreEpilogue<'a, 'y> {
    pub finish: BiasActivation<'a>,
    pub y: &'y mut [f32],
    pub n: usize,
    pub residual: Option<&'a [f32]>,
    /// What to prefetch, and how much of it with each row.
    pub next: &'a [f32],
    pub next_of_row: usize,
}

impl StripEpilogue for StoreEpilogue<'_, '_> {
    #[inline(always)]
    fn lines(&self) -> Option<EpilogueLines<'_>> {
        Some(EpilogueLines {
            y: self.y,
            residual: self.residual,
            n: self.n,
            first: self.finish.first,
            next: self.next,
            next_of_row: self.next_of_row,
        })
    }

    #[inline(always)]
    fn end<const PANELS: usize>(&mut self, first: usize, tile: &mut [[[f32; PANEL]; PANELS]]) {
        let Self {
            finish,
            y,
            n,
            residual,
            ..
        } = self;
        let columns = finish.first..*n;
        finish.rows(
            tile,
            #[inline(always)]
            |row, made, _| {
                store(
                    &made,
                    columns.clone(),
                    &mut y[(first + row) * *n..],
                    residual.map(|residual| &residual[(first + row) * *n..]),
                )
            },
        );
    }
}

/// Writes a row of a strip to its existing columns of a row of the result, and adds the residual.
#[inline(always)]
pub(crate) fn store<const PANELS: usize>(
    made: &[[f32; PANEL]; PANELS],
    columns: Range<usize>,
    y: &mut [f32],
    residual: Option<&[f32]>,
) {
    if columns.len() >= PANELS * PANEL {
        let whole = columns.start..columns.start + PANELS * PANEL;
        let y = y[whole.clone()].as_chunks_mut().0;
        match residual {
            Some(residual) => {
                for ((y, made), residual) in y
                    .iter_mut()
                    .zip(made)
                    .zip(residual[whole].as_chunks::<PANEL>().0)
                {
                    *y = std::array::from_fn(|lane| made[lane] + residual[lane]);
                }
            }
            None => y.copy_from_slice(made),
        }
        return;
    }
    let y = &mut y[columns.clone()];
    y.copy_from_slice(&made.as_flattened()[..y.len()]);
    if let Some(residual) = residual {
        y.iter_mut()
            .zip(&residual[columns])
            .for_each(|(y, residual)| *y += residual);
    }
}

/// Writes a strip of some panels, from a first column on.
#[inline(always)]
pub(crate) fn store_strip<const PANELS: usize>(
    strip: &[f32],
    first: usize,
    y: &mut [f32],
    n: usize,
    residual: Option<&[f32]>,
) {
    for (row, made) in strip
        .as_chunks::<PANEL>()
        .0
        .as_chunks::<PANELS>()
        .0
        .iter()
        .enumerate()
    {
        store(
            made,
            first..n,
            &mut y[row * n..],
            residual.map(|residual| &residual[row * n..]),
        );
    }
}
