//! Products of filters with patches of the input, without the matrix of all patches.
//!
//! `y[m, p] = Σ_k filter[m, k] · x[offset[k] + place(p)]`: the outputs of an image and group are
//! columns of a product. Some rows of k of 64 columns at a time are copied to panels of 16 columns,
//! which stay in L1, and multiplied by all filters, which are in panels of 16
//! ([`PanelFormat::F32`](crate::operation::product::panel_format::PanelFormat)). A tile in
//! registers is 4 filters by 64 columns with vectors of 16; its bias, residual and ReLU are applied
//! before it is written, and what the same filters access for the next 64 columns is prefetched.
//! Both operands have the same layout: columns beyond the last whole panel are multiplied as rows,
//! with the filters as columns.
//!
//! A result of many columns and few k is limited by how it is written: 16 to 64 channels over 112 ×
//! 112 takes 0.32 ms; with 32 columns at a time, sums in L2 and a second pass over them it took
//! 0.50 ms, and 0.80 ms instead of 0.34 where the result is not in a cache.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{
    ColumnBlock, PrefetchHint, by_vectors, for_each_chunk, for_each_columns, prefetch_unchecked,
    simd, with_simd,
};
use crate::operation::convolution::chunks::{Finish, LANES};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::window::Geometry;
use crate::operation::product::gemm::Activation;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{
    CacheLine, ColumnMajor, Left, MAX_PANELS_PER_PASS, TileElements, panels_per_pass,
    panels_per_pass_of, tile_of, vectors,
};
use crate::operation::product::tiles::{pack_tiles_of, tile_rows, tiles};

/// Rows of k that all tiles of a block process before the next: with 64 columns of patches 24 KiB.
const K_SLICE: usize = 96;
/// Elements of filters that stay in L2: more are read from memory for each block of columns, which
/// then is larger.
const L2_ELEMENTS: usize = 128 << 10;
/// Minimum and maximum panels of a block, whose columns of the result are written row by row.
const MIN_BLOCK_PANELS: usize = 4;
const MAX_BLOCK_PANELS: usize = 16;
/// Maximum panels of columns of a tile, where a vector is a panel's row: a row of the result then
/// is written by four lines at a time.
const MAX_GROUP: usize = 4;
/// Lines of the sums and patches of a block that stay in L2 with the filters.
const MAX_BLOCK_LINES: usize = 6144;

thread_local! {
    /// A slice of patches and the sums of a block, kept from launch to launch.
    static BLOCK_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
    /// Where the elements of a block are copied from and to.
    static MOVES: RefCell<Vec<[usize; 2]>> = const { RefCell::new(Vec::new()) };
}

/// Where the elements of patches are in a padded image.
pub(crate) struct Patches {
    geometry: Geometry,
    padded: Padded,
    /// By element of a filter: channel, then element of the window.
    offsets: Vec<usize>,
}

/// A run of columns of a panel whose elements are side by side.
#[derive(Clone, Copy, Default)]
pub(crate) struct Run {
    /// Its first column.
    pub lane: usize,
    /// The place of its first element, without the offset of an element of the filter.
    pub place: usize,
}

impl Patches {
    /// Of filters over this many channels, at some elements of the window.
    pub fn new(geometry: Geometry, padded: Padded, channels: usize, taps: &[[usize; 3]]) -> Self {
        let channel_len = padded.channel_len();
        let taps: Vec<usize> = taps.iter().map(|tap| padded.offset(*tap)).collect();
        let offsets = (0..channels)
            .flat_map(|channel| taps.iter().map(move |tap| channel * channel_len + tap))
            .collect();
        Self {
            geometry,
            padded,
            offsets,
        }
    }

    /// Elements of a filter.
    pub fn depth(&self) -> usize {
        self.offsets.len()
    }

    /// Elements of an input channel.
    pub fn volume(&self) -> usize {
        self.geometry.volume()
    }

    /// The layout of a channel.
    pub fn padded(&self) -> &Padded {
        &self.padded
    }

    /// Elements of a padded channel; none if the input is read in place.
    pub fn padded_len(&self) -> Option<usize> {
        (!self.padded.is_in_place()).then(|| self.padded.channel_len())
    }

    /// The places of the elements of a filter.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The runs of a panel of columns.
    fn runs(&self, panel: usize) -> ([Run; PANEL], usize) {
        self.runs_from(panel * PANEL, self.geometry.pixels())
    }

    /// The runs of 16 columns from a first one on, before an end.
    pub fn runs_from(&self, first: usize, end: usize) -> ([Run; PANEL], usize) {
        let [_, rows, columns] = self.geometry.size_out;
        let (mut runs, mut count) = ([Run::default(); PANEL], 0);
        let (mut pixel, end) = (first, end.min(first + PANEL));
        while pixel < end {
            let (row, column) = (pixel / columns, pixel % columns);
            runs[count] = Run {
                lane: pixel - first,
                place: self.padded.base(row / rows, row % rows) + column,
            };
            pixel += columns - column;
            count += 1;
        }
        (runs, count)
    }

    /// Copies some rows of k of panels from a first one on: `to` [panels, depth + 1, 16], where the
    /// last row of each may change. Columns beyond the last have any value.
    fn copy_panels(
        &self,
        source: &[f32],
        first: usize,
        panels: usize,
        [from, depth]: [usize; 2],
        to: &mut [f32],
    ) {
        let offsets = &self.offsets[from..][..depth];
        // The place of a run and where it goes, in order: what one writes beyond its end, the next
        // overwrites.
        let mut moves = MOVES.take();
        moves.clear();
        for panel in 0..panels {
            let (runs, count) = self.runs(first + panel);
            moves.extend(
                runs[..count]
                    .iter()
                    .map(|run| [run.place, panel * (depth + 1) * PANEL + run.lane]),
            );
        }
        // Whole vectors as far as none ends beyond the source, where the last channel's end.
        let last = moves
            .iter()
            .map(|[place, _]| place + PANEL)
            .max()
            .unwrap_or_default();
        let whole = offsets
            .iter()
            .position(|offset| last + offset > source.len())
            .unwrap_or(depth);
        simd(
            #[inline(always)]
            || {
                for (k, offset) in offsets.iter().enumerate() {
                    for &[place, lane] in &moves {
                        // Each row of k is elsewhere in memory: that of the next panels.
                        prefetch_unchecked(
                            source,
                            offset + place + panels * PANEL,
                            PrefetchHint::Near,
                        );
                        let to = &mut to[lane + k * PANEL..];
                        if k < whole {
                            *to.first_chunk_mut().expect("invariant: a row follows") =
                                at(source, place + offset);
                        } else {
                            let from = source.get(place + offset..).unwrap_or_default();
                            let count = from.len().min(PANEL);
                            to[..count].copy_from_slice(&from[..count]);
                        }
                    }
                }
            },
        );
        MOVES.set(moves);
    }
}

#[inline(always)]
fn at(source: &[f32], place: usize) -> [f32; PANEL] {
    *source[place..]
        .first_chunk()
        .expect("invariant: the source has slack after its last element")
}

/// Packs rows of filters [rows, depth] in panels of 16 rows: `to` [⌈rows / 16⌉, depth, 16], zeros
/// beyond the last row.
pub(crate) fn pack_filters(filters: &[f32], depth: usize, to: &mut [f32]) {
    let rows = filters.len() / depth;
    for (panel, to) in to
        .chunks_exact_mut(depth * PANEL)
        .enumerate()
        .take(rows.div_ceil(PANEL))
    {
        let filters = &filters[panel * PANEL * depth..rows.min((panel + 1) * PANEL) * depth];
        if filters.len() == to.len() {
            pack_tiles_of(
                bytemuck::cast_slice(filters),
                depth,
                PANEL,
                bytemuck::cast_slice_mut(to),
            );
        } else {
            let mut whole = vec![0.0f32; to.len()];
            whole[..filters.len()].copy_from_slice(filters);
            pack_tiles_of(
                bytemuck::cast_slice(&whole),
                depth,
                PANEL,
                bytemuck::cast_slice_mut(to),
            );
        }
    }
}

/// The output of an image and group.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub patches: &'a Patches,
    /// The padded channels of the group.
    pub source: &'a [f32],
    /// The group's filters in panels.
    pub filters: &'a [f32],
    pub finish: Finish<'a>,
    pub threads: usize,
}

impl Product<'_> {
    /// Computes `y` [filters, pixels].
    pub fn run(&self, y: &mut [f32]) {
        let (pixels, depth) = (self.patches.geometry.pixels(), self.patches.depth());
        let rows = y.len() / pixels;
        if self.threads > 1 && pixels < 2 * self.threads * PANEL {
            // Few columns: threads take filters.
            let part = rows.div_ceil(self.threads).next_multiple_of(PANEL);
            return for_each_chunk(y, part * pixels, self.threads, |index, y| {
                let filters = &self.filters[index * part * depth..];
                Product {
                    filters,
                    finish: self.finish.skip_rows(index * part),
                    threads: 1,
                    ..*self
                }
                .columns(y);
            });
        }
        self.columns(y);
    }

    fn columns(&self, y: &mut [f32]) {
        let (pixels, depth) = (self.patches.geometry.pixels(), self.patches.depth());
        let rows = y.len() / pixels;
        let whole = (pixels / PANEL).max(1);
        let lines = rows + depth.min(K_SLICE) + 1;
        let width = if rows * depth > L2_ELEMENTS {
            MAX_BLOCK_PANELS
        } else {
            (MAX_BLOCK_LINES / lines).clamp(MIN_BLOCK_PANELS, MAX_BLOCK_PANELS)
        };
        let blocks = whole.div_ceil(width).next_multiple_of(self.threads);
        let group = if panels_per_pass() == MAX_PANELS_PER_PASS {
            MAX_GROUP
        } else {
            1
        };
        let panels_of = |blocks: usize| whole.div_ceil(blocks).next_multiple_of(group);
        // Fewer and larger blocks where whole passes leave a number of them that threads cannot
        // share equally.
        let is_uneven = !whole
            .div_ceil(panels_of(blocks))
            .is_multiple_of(self.threads)
            && blocks > self.threads;
        let panels = panels_of(if is_uneven {
            blocks - self.threads
        } else {
            blocks
        });
        // Each block gets a part of both; only the columns of the result are needed.
        let mut marks = vec![0u32; pixels];
        for_each_columns(
            y,
            (&mut marks, 1),
            panels * PANEL,
            self.threads,
            |block, columns, marks| {
                self.block(rows, block * panels, marks.len(), columns);
            },
        );
    }

    /// Some columns from a first panel on.
    fn block(&self, rows: usize, first: usize, count: usize, columns: ColumnBlock<'_, f32>) {
        // The last columns, if they are not a whole panel, as rows of a product with the filters as
        // columns, where that is less work.
        let rest = count % PANEL;
        let rest = if rest * rows.div_ceil(PANEL) < rows {
            rest
        } else {
            0
        };
        let panels = (count - rest).div_ceil(PANEL);
        let mut kept = BLOCK_BUFFER.take();
        let depth = self.patches.depth();
        let patch_lines = MAX_GROUP * (depth.min(K_SLICE) + 1) + 1;
        let sum_lines = if depth > K_SLICE { rows * panels } else { 0 };
        kept.resize(
            kept.len()
                .max(patch_lines + sum_lines + rest * rows.div_ceil(PANEL)),
            CacheLine::ZERO,
        );
        let (patches, sums) = kept.split_at_mut(patch_lines);
        let (sums, rest_sums) = sums.split_at_mut(sum_lines);
        let [patches, sums, rest_sums]: [&mut [f32]; 3] =
            [patches, sums, rest_sums].map(bytemuck::cast_slice_mut);
        with_simd(Block {
            product: self,
            rows,
            first,
            panels,
            rest,
            count,
            patches,
            sums,
            rest_sums,
            columns,
        });
        BLOCK_BUFFER.set(kept);
    }
}

/// The columns of a panel as rows: the left operand of a tile.
#[derive(Clone, Copy)]
pub(crate) struct PanelColumns<'a>(pub &'a [[f32; PANEL]]);

impl<'a> Left for PanelColumns<'a> {
    type Tile = ColumnMajor<'a>;

    #[inline(always)]
    fn tile(self, [row, first]: [usize; 2], height: usize) -> ColumnMajor<'a> {
        assert!(row + height <= PANEL, "invariant: a tile lies in a panel");
        ColumnMajor {
            data: &self.0[first..].as_flattened()[row..],
            stride: PANEL,
        }
    }
}

/// All filters over a block of columns: slices of k one after another, so that those of the filters
/// stay in L2 and those of the patches in L1. A tile is finished from registers after its last
/// slice.
struct Block<'a, 'p> {
    product: &'a Product<'p>,
    rows: usize,
    /// The first panel of columns, and how many.
    first: usize,
    panels: usize,
    /// Columns after them.
    rest: usize,
    /// All columns.
    count: usize,
    /// A slice of some panels.
    patches: &'a mut [f32],
    /// By group of panels, then by row; empty where there is one slice.
    sums: &'a mut [f32],
    /// By one or two panels of filters, then by column.
    rest_sums: &'a mut [f32],
    columns: ColumnBlock<'a, f32>,
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(S, self.make(simd))
    }
}

impl Block<'_, '_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let all = self.product.patches.depth();
        for from in (0..all).step_by(K_SLICE) {
            let slice = [from, K_SLICE.min(all - from)];
            let mut panel = 0;
            while panel < self.panels {
                let width = match self.panels - panel {
                    _ if const { S::F32_LANES != LANES } => 1,
                    left => left.min(MAX_GROUP),
                };
                self.product.patches.copy_panels(
                    self.product.source,
                    self.first + panel,
                    width,
                    slice,
                    self.patches,
                );
                match width {
                    1 => self.tiles::<S, 1, VECTORS>(simd, panel, slice),
                    _ if const { S::F32_LANES != LANES } => {
                        unreachable!("invariant: groups are of one panel")
                    }
                    2 => self.tiles::<S, 2, VECTORS>(simd, panel, slice),
                    3 => self.tiles::<S, 3, VECTORS>(simd, panel, slice),
                    _ => self.tiles::<S, MAX_GROUP, VECTORS>(simd, panel, slice),
                }
                panel += width;
            }
            if self.rest > 0 {
                self.rest_of_slice::<S, VECTORS>(simd, slice);
            }
        }
        if self.rest > 0 {
            self.finish_rest::<S>();
        }
    }

    /// The tiles of all filters with some panels of columns.
    #[inline(always)]
    fn tiles<S: Simd, const PANELS: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        panel: usize,
        slice: [usize; 2],
    ) {
        // Of more rows the compiler does not inline the instructions.
        let most = const {
            if S::F32_LANES == LANES {
                4
            } else {
                tile_rows::<S>()
            }
        };
        let patches = self.patches.as_chunks().0;
        let strip = Strip::<PANELS> {
            product: self.product,
            slice,
            right: std::array::from_fn(|index| &patches[index * (slice[1] + 1)..][..slice[1]]),
            first: self.first * PANEL,
            column: panel * PANEL,
            count: (PANELS * PANEL).min(self.count - panel * PANEL),
        };
        for filter in (0..self.rows).step_by(PANEL) {
            let end = self.rows.min(filter + PANEL);
            for row in (filter..end).step_by(most) {
                let sums = self
                    .sums
                    .get_mut((panel * self.rows + row * PANELS) * PANEL..)
                    .unwrap_or_default();
                let place = (&mut self.columns, sums, row);
                match most.min(end - row) {
                    1 => strip.tile::<S, VECTORS, 1>(simd, place),
                    2 => strip.tile::<S, VECTORS, 2>(simd, place),
                    _ if const { tile_rows::<S>() <= 2 } => {
                        unreachable!("invariant: tiles are of two rows")
                    }
                    3 => strip.tile::<S, VECTORS, 3>(simd, place),
                    4 => strip.tile::<S, VECTORS, 4>(simd, place),
                    _ if const { S::F32_LANES == LANES } => {
                        unreachable!("invariant: tiles are of four rows")
                    }
                    5 => strip.tile::<S, VECTORS, 5>(simd, place),
                    _ => strip.tile::<S, VECTORS, 6>(simd, place),
                }
            }
        }
    }

    /// A slice of the columns that are no whole panel with all filters.
    #[inline(always)]
    fn rest_of_slice<S: Simd, const VECTORS: usize>(&mut self, simd: S, slice: [usize; 2]) {
        let Product {
            patches, source, ..
        } = *self.product;
        patches.copy_panels(source, self.first + self.panels, 1, slice, self.patches);
        let (mut filter, filters) = (0, self.rows.div_ceil(PANEL));
        while filter < filters {
            let width = panels_per_pass_of::<S>().min(filters - filter);
            if width == 1 {
                self.rest_tiles::<S, 1, VECTORS>(simd, filter, slice);
            } else if const { S::F32_LANES == LANES } {
                self.rest_tiles::<S, MAX_PANELS_PER_PASS, VECTORS>(simd, filter, slice);
            }
            filter += width;
        }
    }

    /// The tiles of the columns that are no whole panel with one panel of filters, or two.
    #[inline(always)]
    fn rest_tiles<S: Simd, const PANELS: usize, const VECTORS: usize>(
        &mut self,
        simd: S,
        filter: usize,
        [from, depth]: [usize; 2],
    ) {
        let (filters, all) = (
            self.product.filters.as_chunks().0,
            self.product.patches.depth(),
        );
        let right: [&[[f32; PANEL]]; PANELS] =
            std::array::from_fn(|index| &filters[(filter + index) * all + from..][..depth]);
        let left = PanelColumns(&self.patches.as_chunks().0[..depth]);
        let sums = &mut self.rest_sums[filter * self.rest * PANEL..];
        for (first, tile) in tiles(self.rest, tile_rows::<S>()) {
            let y = &mut sums[first * PANELS * PANEL..][..tile * PANELS * PANEL];
            tile_of::<S, _, _, PANELS, VECTORS>(
                simd,
                (tile, first, left.tile([first, 0], tile)),
                (right, [&[]; PANELS]),
                y,
                (from > 0, None),
            );
        }
    }

    /// Writes the columns that are no whole panel.
    #[inline(always)]
    fn finish_rest<S: Simd>(&mut self) {
        let group = panels_per_pass_of::<S>();
        let column = self.panels * PANEL;
        for row in 0..self.rows {
            let first_row = row / (group * PANEL) * group * PANEL;
            let width = group.min((self.rows - first_row).div_ceil(PANEL)) * PANEL;
            let sums = &self.rest_sums[first_row * self.rest + row - first_row..];
            let mut line = [0.0; PANEL];
            line.iter_mut()
                .zip(sums.iter().step_by(width))
                .take(self.rest)
                .for_each(|(to, sum)| *to = *sum);
            let y = &mut self.columns.row(row)[column..];
            self.product
                .finish
                .row(row, self.first * PANEL + column, &mut line[..self.rest], y);
        }
    }
}

/// Some panels of columns over a slice of k.
struct Strip<'a, const PANELS: usize> {
    product: &'a Product<'a>,
    slice: [usize; 2],
    right: [&'a [[f32; PANEL]]; PANELS],
    /// The block's first column of the output, that of the panels in the block, and their columns.
    first: usize,
    column: usize,
    count: usize,
}

impl<const PANELS: usize> Strip<'_, PANELS> {
    /// Computes the tile of some filters, from a row on; `sums` are those of the slices before.
    ///
    /// A function of its own: inlined, with many others, the compiler keeps sums in memory.
    #[inline(never)]
    fn tile<S: Simd, const VECTORS: usize, const HEIGHT: usize>(
        &self,
        simd: S,
        (columns, kept, row): (&mut ColumnBlock<'_, f32>, &mut [f32], usize),
    ) {
        simd.vectorize(
            #[inline(always)]
            || {
                let ([from, depth], finish) = (self.slice, &self.product.finish);
                let is_last = from + depth == self.product.patches.depth();
                if is_last {
                    // What the tile of the same filters with the next panels accesses.
                    for index in 0..HEIGHT {
                        let y = columns.row(row + index);
                        (0..PANELS).for_each(|panel| {
                            prefetch_unchecked(
                                y,
                                self.column + (PANELS + panel) * PANEL,
                                PrefetchHint::ToWrite,
                            )
                        });
                        if let Some(residual) = finish.residual {
                            let at = (row + index) * finish.pixels
                                + self.first
                                + self.column
                                + PANELS * PANEL;
                            (0..PANELS).for_each(|panel| {
                                prefetch_unchecked(residual, at + panel * PANEL, PrefetchHint::Near)
                            });
                        }
                    }
                }
                let sums = self.sums::<S, VECTORS, HEIGHT>(simd, kept, row);
                if is_last {
                    return self.finish::<S, VECTORS, HEIGHT>(simd, sums, columns, row);
                }
                let kept =
                    bytemuck::cast_slice_mut::<_, S::f32s>(&mut kept[..HEIGHT * PANELS * PANEL])
                        .as_chunks_mut::<VECTORS>()
                        .0;
                *kept
                    .as_chunks_mut::<PANELS>()
                    .0
                    .first_chunk_mut()
                    .expect("invariant: a tile is of its height") = sums;
            },
        );
    }

    #[inline(always)]
    fn sums<S: Simd, const VECTORS: usize, const HEIGHT: usize>(
        &self,
        simd: S,
        kept: &[f32],
        row: usize,
    ) -> [[[S::f32s; VECTORS]; PANELS]; HEIGHT] {
        let [from, depth] = self.slice;
        let mut sums = [[[simd.splat_f32s(0.0); VECTORS]; PANELS]; HEIGHT];
        if from > 0 {
            let kept = bytemuck::cast_slice::<_, S::f32s>(&kept[..HEIGHT * PANELS * PANEL])
                .as_chunks::<VECTORS>()
                .0
                .as_chunks::<PANELS>()
                .0;
            sums = *kept
                .first_chunk()
                .expect("invariant: a tile is of its height");
        }
        let filters =
            &self.product.filters.as_chunks().0[row / PANEL * self.product.patches.depth()..];
        let filters = PanelColumns(filters).tile([row % PANEL, from], HEIGHT);
        filters.each::<HEIGHT>(
            0,
            depth,
            #[inline(always)]
            |k, a| {
                let b: [[S::f32s; VECTORS]; PANELS] = std::array::from_fn(
                    #[inline(always)]
                    |panel| vectors::<S, VECTORS>(&self.right[panel][k]),
                );
                for row in 0..HEIGHT {
                    let a = simd.splat_f32s(*a[row]);
                    for panel in 0..PANELS {
                        for vector in 0..VECTORS {
                            sums[row][panel][vector] =
                                simd.mul_add_f32s(a, b[panel][vector], sums[row][panel][vector]);
                        }
                    }
                }
            },
        );
        sums
    }

    /// Writes complete sums. Loops are small and without a test: else the compiler keeps the sums
    /// in memory.
    #[inline(always)]
    fn finish<S: Simd, const VECTORS: usize, const HEIGHT: usize>(
        &self,
        simd: S,
        mut sums: [[[S::f32s; VECTORS]; PANELS]; HEIGHT],
        columns: &mut ColumnBlock<'_, f32>,
        row: usize,
    ) {
        let (finish, column) = (&self.product.finish, self.first + self.column);
        if self.count < PANELS * PANEL {
            let mut made = [[[0.0f32; PANEL]; PANELS]; HEIGHT];
            bytemuck::cast_slice_mut::<_, f32>(&mut made)
                .copy_from_slice(bytemuck::cast_slice(&sums));
            for (row, made) in (row..).zip(&mut made) {
                finish.row(
                    row,
                    column,
                    &mut made.as_flattened_mut()[..self.count],
                    &mut columns.row(row)[self.column..][..self.count],
                );
            }
            return;
        }
        if let Some(residual) = finish.residual {
            let residual: [&[[f32; PANEL]; PANELS]; HEIGHT] = std::array::from_fn(
                #[inline(always)]
                |index| {
                    residual[(row + index) * finish.pixels + column..]
                        .as_chunks()
                        .0
                        .first_chunk()
                        .expect("invariant: the panels are whole")
                },
            );
            for (sums, residual) in sums.iter_mut().zip(residual) {
                for (sums, residual) in sums.iter_mut().zip(residual) {
                    for (sum, residual) in sums.iter_mut().zip(vectors::<S, VECTORS>(residual)) {
                        *sum = simd.add_f32s(*sum, residual);
                    }
                }
            }
        }
        if let Some(bias) = finish.bias {
            let bias: &[f32; HEIGHT] = bias[row..]
                .first_chunk()
                .expect("invariant: each row has a bias");
            for (sums, bias) in sums.iter_mut().zip(bias) {
                let bias = simd.splat_f32s(*bias);
                for sum in sums.as_flattened_mut() {
                    *sum = simd.add_f32s(*sum, bias);
                }
            }
        }
        if finish.activation == Activation::Relu {
            let zero = simd.splat_f32s(0.0);
            for sum in sums.as_flattened_mut().as_flattened_mut() {
                *sum = simd.select_f32s(simd.less_than_or_equal_f32s(*sum, zero), zero, *sum);
            }
        }
        let tile = columns.tile::<PANEL, PANELS, HEIGHT>(row, self.column);
        for index in 0..HEIGHT {
            for panel in 0..PANELS {
                tile[index][panel].copy_from_slice(bytemuck::cast_slice(&sums[index][panel]));
            }
        }
        if !matches!(finish.activation, Activation::Relu | Activation::None) {
            tile.into_iter()
                .for_each(|y| finish.activate(y.as_flattened_mut()));
        }
    }
}
