//! Products of filters with patches of the input, without the matrix of all patches.
//!
//! `y[m, p] = Σ_k filter[m, k] · x[offset[k] + place(p)]`: the outputs of an image and group are columns of a product. A block of 32 or 64 columns at a time
//! is copied to panels of 16 columns, which stay in L2, and multiplied by all filters, which are in panels of 16 rows
//! ([`PanelFormat::F32`](crate::operation::product::panel_format::PanelFormat)). A tile in registers is 8 filters by 32 columns with vectors of 16.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{ColumnBlock, for_each_columns, simd, with_simd};
use crate::operation::convolution::chunks::{Finish, LANES};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::window::Geometry;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{CacheLine, Left, MAX_PANELS_PER_PASS, panels_per_pass, tile_of};
use crate::operation::product::tiles::{pack_tiles_of, tile_rows, tiles};

/// Rows of k that all tiles of a block process before the next: with 32 columns of patches 24 KiB.
const K_SLICE: usize = 192;
/// Elements of a block's patches that should stay in L2 with the filters' slices.
const BLOCK_ELEMENTS: usize = 96 << 10;
/// Maximum panels of a block.
const MAX_BLOCK_PANELS: usize = 4;

thread_local! {
    /// Patches and sums of a block, kept from launch to launch.
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

    /// Copies a panel: `to` [depth, 16] and 16 more, which may change. Columns beyond the last have any value.
    fn copy_panel(&self, source: &[f32], panel: usize, to: &mut [f32]) {
        let (runs, count) = self.runs(panel);
        let (runs, last_offset) = (&runs[..count], self.offsets.iter().max().copied().unwrap_or_default());
        // Runs in order: what one writes beyond its end, the next overwrites.
        let has_slack = runs.iter().all(|run| run.place + last_offset + PANEL <= source.len());
        simd(
            #[inline(always)]
            || match runs {
                [run] if has_slack => {
                    for (offset, to) in self.offsets.iter().zip(to.as_chunks_mut::<PANEL>().0) {
                        *to = at(source, run.place + offset);
                    }
                }
                [first, second] if has_slack => {
                    for (k, offset) in self.offsets.iter().enumerate() {
                        let to = &mut to[k * PANEL..][..2 * PANEL];
                        to[..PANEL].copy_from_slice(&at(source, first.place + offset));
                        to[second.lane..][..PANEL].copy_from_slice(&at(source, second.place + offset));
                    }
                }
                _ => {
                    for (k, offset) in self.offsets.iter().enumerate() {
                        for run in runs {
                            let from = source.get(run.place + offset..).unwrap_or_default();
                            let to = &mut to[k * PANEL + run.lane..][..PANEL];
                            match from.first_chunk::<PANEL>() {
                                Some(from) => to.copy_from_slice(from),
                                None => to[..from.len()].copy_from_slice(from),
                            }
                        }
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
        let pixels = self.patches.geometry.pixels();
        let (rows, depth) = (y.len() / pixels, self.patches.depth());
        let group = panels_per_pass();
        let panels = (BLOCK_ELEMENTS / (depth * PANEL)).clamp(group, MAX_BLOCK_PANELS).next_multiple_of(group);
        // Each block gets a part of both; only the columns of the result are needed.
        let mut marks = vec![0u32; pixels];
        for_each_columns(y, (&mut marks, 1), panels * PANEL, self.threads, |block, columns, marks| {
            self.block(rows, [block * panels, marks.len().div_ceil(PANEL)], marks.len(), columns);
        });
    }

    /// Some panels of columns from a first one on.
    fn block(&self, rows: usize, [first, panels]: [usize; 2], count: usize, mut columns: ColumnBlock<'_, f32>) {
        let depth = self.patches.depth();
        let mut kept = BLOCK_BUFFER.take();
        let patch_lines = panels * depth + 1;
        kept.resize(kept.len().max(patch_lines + rows * panels), CacheLine::ZERO);
        let (patches, sums) = kept.split_at_mut(patch_lines);
        let (patches, sums): (&mut [f32], &mut [f32]) = (bytemuck::cast_slice_mut(patches), bytemuck::cast_slice_mut(&mut sums[..rows * panels]));
        for panel in 0..panels {
            self.patches.copy_panel(self.source, first + panel, &mut patches[panel * depth * PANEL..][..(depth + 1) * PANEL]);
        }
        let [patches, filters] = [&patches[..panels * depth * PANEL], self.filters].map(|rows| rows.as_chunks().0);
        with_simd(Block { filters, patches, depth, rows, panels, sums: &mut *sums });
        let at = |row: usize, panel: usize| place_of(rows, panels, [row, panel]);
        simd(
            #[inline(always)]
            || {
                for row in 0..rows {
                    let (y, finish) = (columns.row(row), self.finish.row(row, first * PANEL));
                    for panel in 0..panels {
                        let lanes = panel * PANEL..count.min((panel + 1) * PANEL);
                        let sums = sums[at(row, panel)..].first_chunk().expect("invariant: sums of every panel");
                        finish.store(sums, lanes.start, &mut y[lanes]);
                    }
                }
            },
        );
        BLOCK_BUFFER.set(kept);
    }
}

/// Where the 16 sums of a row and a panel are: by panel of filters, then by one or two panels of columns, then by row.
#[inline(always)]
fn place_of(rows: usize, panels: usize, [row, panel]: [usize; 2]) -> usize {
    let group = panels_per_pass();
    let first_row = row / PANEL * PANEL;
    let height = PANEL.min(rows - first_row);
    let first_panel = panel / group * group;
    let width = group.min(panels - first_panel);
    (first_row * panels + height * first_panel + (row - first_row) * width + panel - first_panel) * PANEL
}

/// Rows of a panel of filters: the left operand of a tile.
#[derive(Clone, Copy)]
struct FilterRows<'a>(&'a [[f32; PANEL]]);

impl Left for FilterRows<'_> {
    #[inline(always)]
    fn each<const HEIGHT: usize>(&self, [row, first]: [usize; 2], depth: usize, mut f: impl FnMut(usize, [&f32; HEIGHT])) {
        assert!(row + HEIGHT <= PANEL, "invariant: a tile lies in a panel");
        for (k, filters) in self.0[first..][..depth].iter().enumerate() {
            let filters: &[f32; HEIGHT] = filters[row..].first_chunk().expect("invariant: a tile lies in a panel");
            f(k, filters.each_ref());
        }
    }
}

/// All filters over a block of patches.
struct Block<'a> {
    filters: &'a [[f32; PANEL]],
    patches: &'a [[f32; PANEL]],
    depth: usize,
    rows: usize,
    panels: usize,
    sums: &'a mut [f32],
}

impl WithSimd for Block<'_> {
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

impl Block<'_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let group = if S::F32_LANES == LANES { MAX_PANELS_PER_PASS } else { 1 };
        for from in (0..self.depth).step_by(K_SLICE) {
            let depth = K_SLICE.min(self.depth - from);
            for filter in 0..self.rows.div_ceil(PANEL) {
                let height = PANEL.min(self.rows - filter * PANEL);
                let mut panel = 0;
                while panel < self.panels {
                    let width = group.min(self.panels - panel);
                    if width == 1 {
                        self.tiles::<S, 1, VECTORS>(simd, [filter, panel, height], [from, depth]);
                    } else if const { S::F32_LANES == LANES } {
                        self.tiles::<S, MAX_PANELS_PER_PASS, VECTORS>(simd, [filter, panel, height], [from, depth]);
                    }
                    panel += width;
                }
            }
        }
    }

    /// The tiles of a panel of filters with one panel of columns, or two.
    #[inline(always)]
    fn tiles<S: Simd, const PANELS: usize, const VECTORS: usize>(&mut self, simd: S, [filter, panel, height]: [usize; 3], [from, depth]: [usize; 2]) {
        let left = FilterRows(&self.filters[filter * self.depth..][..self.depth]);
        let right: [&[[f32; PANEL]]; PANELS] = std::array::from_fn(|index| &self.patches[(panel + index) * self.depth + from..][..depth]);
        let sums = &mut self.sums[(filter * PANEL * self.panels + height * panel) * PANEL..][..height * PANELS * PANEL];
        for (first, tile) in tiles(height, tile_rows::<S>()) {
            let y = &mut sums[first * PANELS * PANEL..][..tile * PANELS * PANEL];
            tile_of::<S, _, (), _, PANELS, VECTORS>(simd, (tile, (left, first, from)), (right, [&[]; PANELS]), y, (from > 0, None));
        }
    }
}
