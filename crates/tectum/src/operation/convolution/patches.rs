//! Products of filters with patches of the input, without the matrix of all patches.
//!
//! `y[m, p] = Σ_k filter[m, k] · x[offset[k] + place(p)]`: the outputs of an image and group are columns of a product. Some rows of k of 32 columns at a time
//! are copied to panels of 16 columns, which stay in L1, and multiplied by all filters, which are in panels of 16
//! ([`PanelFormat::F32`](crate::operation::product::panel_format::PanelFormat)). A tile in registers is 8 filters by 32 columns with vectors of 16. Both
//! operands have the same layout: columns beyond the last whole panel are multiplied as rows, with the filters as columns.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{ColumnBlock, PrefetchHint, for_each_chunk, for_each_columns, prefetch_unchecked, simd, with_simd};
use crate::operation::convolution::chunks::{Finish, LANES};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::window::Geometry;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{CacheLine, Left, MAX_PANELS_PER_PASS, panels_per_pass, tile_of};
use crate::operation::product::tiles::{pack_tiles_of, tile_rows, tiles};

/// Rows of k that all tiles of a block process before the next: with 32 columns of patches 24 KiB.
const K_SLICE: usize = 192;
/// Elements of filters that stay in L2: more are read from memory for each block of columns, which then is larger.
const L2_ELEMENTS: usize = 128 << 10;
/// Panels of a block where all filters stay in L2, and elsewhere.
const BLOCK_PANELS: [usize; 2] = [4, 16];

thread_local! {
    /// A slice of patches and the sums of a block, kept from launch to launch.
    static BLOCK_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
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
struct Run {
    /// Its first column.
    lane: usize,
    /// The place of its first element, without the offset of an element of the filter.
    place: usize,
}

impl Patches {
    /// Of filters over this many channels, at some elements of the window.
    pub fn new(geometry: Geometry, padded: Padded, channels: usize, taps: &[[usize; 3]]) -> Self {
        let channel_len = padded.channel_len();
        let taps: Vec<usize> = taps.iter().map(|tap| padded.offset(*tap)).collect();
        let offsets = (0..channels).flat_map(|channel| taps.iter().map(move |tap| channel * channel_len + tap)).collect();
        Self { geometry, padded, offsets }
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

    /// The runs of a panel of columns.
    fn runs(&self, panel: usize) -> ([Run; PANEL], usize) {
        let [_, rows, columns] = self.geometry.size_out;
        let (mut runs, mut count) = ([Run::default(); PANEL], 0);
        let (mut pixel, end) = (panel * PANEL, self.geometry.pixels().min((panel + 1) * PANEL));
        while pixel < end {
            let (row, column) = (pixel / columns, pixel % columns);
            runs[count] = Run { lane: pixel - panel * PANEL, place: self.padded.base(row / rows, row % rows) + column };
            pixel += columns - column;
            count += 1;
        }
        (runs, count)
    }

    /// Copies some rows of k of a panel: `to` [depth, 16] and 16 more, which may change. Columns beyond the last have any value.
    fn copy_panel(&self, source: &[f32], panel: usize, [from, depth]: [usize; 2], to: &mut [f32]) {
        let (runs, count) = self.runs(panel);
        let (runs, offsets) = (&runs[..count], &self.offsets[from..][..depth]);
        // Whole vectors as far as none ends beyond the source, where the last channel's end.
        let last = runs.iter().map(|run| run.place + PANEL).max().unwrap_or_default();
        let whole = offsets.iter().position(|offset| last + offset > source.len()).unwrap_or(depth);
        let (offsets, ends) = offsets.split_at(whole);
        // Runs in order: what one writes beyond its end, the next overwrites.
        simd(
            #[inline(always)]
            || {
                match runs {
                    [run] => {
                        for (offset, to) in offsets.iter().zip(to.as_chunks_mut::<PANEL>().0) {
                            // For the panels after these.
                            prefetch_unchecked(source, run.place + offset + MAX_PANELS_PER_PASS * PANEL, PrefetchHint::Near);
                            *to = at(source, run.place + offset);
                        }
                    }
                    [first, second] => {
                        for (k, offset) in offsets.iter().enumerate() {
                            let to = &mut to[k * PANEL..][..2 * PANEL];
                            to[..PANEL].copy_from_slice(&at(source, first.place + offset));
                            to[second.lane..][..PANEL].copy_from_slice(&at(source, second.place + offset));
                        }
                    }
                    _ => {
                        for (k, offset) in offsets.iter().enumerate() {
                            for run in runs {
                                to[k * PANEL + run.lane..][..PANEL].copy_from_slice(&at(source, run.place + offset));
                            }
                        }
                    }
                }
                for (k, offset) in ends.iter().enumerate() {
                    for run in runs {
                        let from = source.get(run.place + offset..).unwrap_or_default();
                        let count = from.len().min(PANEL);
                        to[(whole + k) * PANEL + run.lane..][..count].copy_from_slice(&from[..count]);
                    }
                }
            },
        );
    }
}

#[inline(always)]
fn at(source: &[f32], place: usize) -> [f32; PANEL] {
    *source[place..].first_chunk().expect("invariant: the source has slack after its last element")
}

/// Packs rows of filters [rows, depth] in panels of 16 rows: `to` [⌈rows / 16⌉, depth, 16], zeros beyond the last row.
pub(crate) fn pack_filters(filters: &[f32], depth: usize, to: &mut [f32]) {
    let rows = filters.len() / depth;
    for (panel, to) in to.chunks_exact_mut(depth * PANEL).enumerate().take(rows.div_ceil(PANEL)) {
        let filters = &filters[panel * PANEL * depth..rows.min((panel + 1) * PANEL) * depth];
        if filters.len() == to.len() {
            pack_tiles_of(bytemuck::cast_slice(filters), depth, PANEL, bytemuck::cast_slice_mut(to));
        } else {
            let mut whole = vec![0.0f32; to.len()];
            whole[..filters.len()].copy_from_slice(filters);
            pack_tiles_of(bytemuck::cast_slice(&whole), depth, PANEL, bytemuck::cast_slice_mut(to));
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
                Product { filters, finish: self.finish.skip_rows(index * part), threads: 1, ..*self }.columns(y);
            });
        }
        self.columns(y);
    }

    fn columns(&self, y: &mut [f32]) {
        let (pixels, depth) = (self.patches.geometry.pixels(), self.patches.depth());
        let rows = y.len() / pixels;
        let whole = (pixels / PANEL).max(1);
        let blocks = whole.div_ceil(BLOCK_PANELS[usize::from(rows * depth > L2_ELEMENTS)]).next_multiple_of(self.threads);
        let panels_of = |blocks: usize| whole.div_ceil(blocks).next_multiple_of(panels_per_pass());
        // Fewer and larger blocks where whole passes leave a number of them that threads cannot share equally.
        let is_uneven = !whole.div_ceil(panels_of(blocks)).is_multiple_of(self.threads) && blocks > self.threads;
        let panels = panels_of(if is_uneven { blocks - self.threads } else { blocks });
        // Each block gets a part of both; only the columns of the result are needed.
        let mut marks = vec![0u32; pixels];
        for_each_columns(y, (&mut marks, 1), panels * PANEL, self.threads, |block, columns, marks| {
            self.block(rows, block * panels, marks.len(), columns);
        });
    }

    /// Some columns from a first panel on.
    fn block(&self, rows: usize, first: usize, count: usize, mut columns: ColumnBlock<'_, f32>) {
        let group = panels_per_pass();
        // The last columns, if they are not a whole panel, as rows of a product with the filters as columns, where that is less work.
        let rest = count % PANEL;
        let rest = if rest * rows.div_ceil(PANEL) < rows { rest } else { 0 };
        let panels = (count - rest).div_ceil(PANEL);
        let mut kept = BLOCK_BUFFER.take();
        let (patch_lines, rest_lines) = (MAX_PANELS_PER_PASS * K_SLICE + 1, rest * rows.div_ceil(PANEL));
        let rest_row_lines = if rest > 0 { rows } else { 0 };
        kept.resize(kept.len().max(patch_lines + rows * panels + rest_lines + rest_row_lines), CacheLine::ZERO);
        let (patches, sums) = kept.split_at_mut(patch_lines);
        let (sums, rest_sums) = sums.split_at_mut(rows * panels);
        let (rest_sums, rest_rows) = rest_sums.split_at_mut(rest_lines);
        let [patches, sums, rest_sums, rest_rows]: [&mut [f32]; 4] = [patches, sums, rest_sums, &mut rest_rows[..rest_row_lines]].map(bytemuck::cast_slice_mut);
        for row in 0..rows {
            let y = columns.row(row);
            (0..count).step_by(PANEL).for_each(|at| prefetch_unchecked(y, at, PrefetchHint::ToWrite));
        }
        with_simd(Block { product: self, rows, first, panels, rest, patches, sums: &mut *sums, rest_sums: &mut *rest_sums });
        simd(
            #[inline(always)]
            || {
                for panel in (0..panels).step_by(group) {
                    let width = group.min(panels - panel);
                    let sums = &mut sums[panel * rows * PANEL..][..width * rows * PANEL];
                    let (column, to) = ((first + panel) * PANEL, panel * PANEL..count.min((panel + width) * PANEL));
                    match width {
                        1 => self.finish.store::<1>(sums, column, to, &mut columns),
                        _ => self.finish.store::<MAX_PANELS_PER_PASS>(sums, column, to, &mut columns),
                    }
                }
                if rest > 0 {
                    for (row, to) in rest_rows.chunks_exact_mut(PANEL).enumerate() {
                        let first_row = row / (group * PANEL) * group * PANEL;
                        let width = group.min((rows - first_row).div_ceil(PANEL)) * PANEL;
                        let sums = &rest_sums[first_row * rest + row - first_row..];
                        to.iter_mut().zip(sums.iter().step_by(width)).take(rest).for_each(|(to, sum)| *to = *sum);
                    }
                    self.finish.store::<1>(rest_rows, (first + panels) * PANEL, count - rest..count, &mut columns);
                }
            },
        );
        BLOCK_BUFFER.set(kept);
    }
}

/// The columns of a panel as rows: the left operand of a tile.
#[derive(Clone, Copy)]
struct PanelColumns<'a>(&'a [[f32; PANEL]]);

impl Left for PanelColumns<'_> {
    #[inline(always)]
    fn each<const HEIGHT: usize>(&self, [row, first]: [usize; 2], depth: usize, mut f: impl FnMut(usize, [&f32; HEIGHT])) {
        assert!(row + HEIGHT <= PANEL, "invariant: a tile lies in a panel");
        for (k, row_of_k) in self.0[first..][..depth].iter().enumerate() {
            let elements: &[f32; HEIGHT] = row_of_k[row..].first_chunk().expect("invariant: a tile lies in a panel");
            f(k, elements.each_ref());
        }
    }
}

/// All filters over a block of columns: slices of k one after another, so that those of the filters stay in L2 and those of the patches in L1.
struct Block<'a, 'p> {
    product: &'a Product<'p>,
    rows: usize,
    /// The first panel of columns, and how many.
    first: usize,
    panels: usize,
    /// Columns after them.
    rest: usize,
    /// A slice of one panel or two.
    patches: &'a mut [f32],
    /// By one or two panels, then by row.
    sums: &'a mut [f32],
    /// By one or two panels of filters, then by column.
    rest_sums: &'a mut [f32],
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.make::<S, 1>(simd),
            8 => self.make::<S, 2>(simd),
            4 => self.make::<S, 4>(simd),
            _ => self.make::<S, 16>(simd),
        }
    }
}

impl Block<'_, '_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let Product { patches, source, .. } = *self.product;
        let group = if S::F32_LANES == LANES { MAX_PANELS_PER_PASS } else { 1 };
        for from in (0..patches.depth()).step_by(K_SLICE) {
            let slice = [from, K_SLICE.min(patches.depth() - from)];
            let mut panel = 0;
            while panel < self.panels {
                let width = group.min(self.panels - panel);
                for index in 0..width {
                    patches.copy_panel(source, self.first + panel + index, slice, &mut self.patches[index * slice[1] * PANEL..]);
                }
                if width == 1 {
                    self.tiles::<S, 1, VECTORS>(simd, panel, slice);
                } else if const { S::F32_LANES == LANES } {
                    self.tiles::<S, MAX_PANELS_PER_PASS, VECTORS>(simd, panel, slice);
                }
                panel += width;
            }
            if self.rest > 0 {
                patches.copy_panel(source, self.first + self.panels, slice, self.patches);
                let (mut filter, filters) = (0, self.rows.div_ceil(PANEL));
                while filter < filters {
                    let width = group.min(filters - filter);
                    if width == 1 {
                        self.rest_tiles::<S, 1, VECTORS>(simd, filter, slice);
                    } else if const { S::F32_LANES == LANES } {
                        self.rest_tiles::<S, MAX_PANELS_PER_PASS, VECTORS>(simd, filter, slice);
                    }
                    filter += width;
                }
            }
        }
    }

    /// The tiles of all filters with one panel of columns, or two.
    #[inline(always)]
    fn tiles<S: Simd, const PANELS: usize, const VECTORS: usize>(&mut self, simd: S, panel: usize, [from, depth]: [usize; 2]) {
        let patches = self.patches.as_chunks().0;
        let right: [&[[f32; PANEL]]; PANELS] = std::array::from_fn(|index| &patches[index * depth..][..depth]);
        let sums = &mut self.sums[panel * self.rows * PANEL..];
        let filters = self.product.filters.as_chunks().0.chunks_exact(self.product.patches.depth());
        for (filter, filters) in filters.enumerate().take(self.rows.div_ceil(PANEL)) {
            for (first, tile) in tiles(PANEL.min(self.rows - filter * PANEL), tile_rows::<S>()) {
                let y = &mut sums[(filter * PANEL + first) * PANELS * PANEL..][..tile * PANELS * PANEL];
                tile_of::<S, _, (), _, PANELS, VECTORS>(simd, (tile, (PanelColumns(filters), first, from)), (right, [&[]; PANELS]), y, (from > 0, None));
            }
        }
    }

    /// The tiles of the columns that are no whole panel with one panel of filters, or two.
    #[inline(always)]
    fn rest_tiles<S: Simd, const PANELS: usize, const VECTORS: usize>(&mut self, simd: S, filter: usize, [from, depth]: [usize; 2]) {
        let (filters, all) = (self.product.filters.as_chunks().0, self.product.patches.depth());
        let right: [&[[f32; PANEL]]; PANELS] = std::array::from_fn(|index| &filters[(filter + index) * all + from..][..depth]);
        let left = PanelColumns(&self.patches.as_chunks().0[..depth]);
        let sums = &mut self.rest_sums[filter * self.rest * PANEL..];
        for (first, tile) in tiles(self.rest, tile_rows::<S>()) {
            let y = &mut sums[first * PANELS * PANEL..][..tile * PANELS * PANEL];
            tile_of::<S, _, (), _, PANELS, VECTORS>(simd, (tile, (left, first, 0)), (right, [&[]; PANELS]), y, (from > 0, None));
        }
    }
}
