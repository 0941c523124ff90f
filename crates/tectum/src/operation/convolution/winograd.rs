//! Convolutions of 3 × 3 windows with stride 1 by Winograd's minimal filtering F(m × m, 3 × 3), m =
//! 2 or 4.
//!
//! A tile of m × m outputs is `Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A` of the (m + 2) × (m + 2) inputs d that it
//! reads: (m + 2)² products instead of 9 m². The filters are transformed once. The inputs of
//! neighbouring tiles of a row are the lanes of a vector: a padded image whose rows are split by
//! the remainders of m has them side by side. The products are (m + 2)² products of filters with
//! panels of 16 tiles. The last panel is the reason for two sizes: 7 × 7 outputs are 16 tiles of 2
//! × 2, 14 × 14 outputs 16 tiles of 4 × 4.
//!
//! Source: A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015, <https://arxiv.org/abs/1509.09308>.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{
    ColumnBlock, by_vectors, for_each_chunk, for_each_columns, simd, with_simd,
};
use crate::operation::convolution::chunks::{Finish, LANES, load};
use crate::operation::convolution::padded::Padded;
use crate::operation::convolution::patches::{PanelColumns, Patches, Run};
use crate::operation::convolution::window::Geometry;
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{
    CacheLine, Left, MAX_PANELS_PER_PASS, panels_per_pass_of, tile_of,
};
use crate::operation::product::tiles::{tile_rows, tiles};

/// Maximum floats of the transformed inputs of a block: 640 KiB, which stay in a usual L2 with what
/// is read once.
const MAX_BLOCK: usize = 160 << 10;
/// Channels that all tiles of a block process before the next.
const K_SLICE: usize = 192;
/// Maximum magnitude of an input whose transform is computed: sums of 36 of them, times 100, are
/// finite.
const MAX_INPUT: f32 = 1e34;

thread_local! {
    /// The transformed inputs of a block, the products, and the outputs of a filter, kept from
    /// launch to launch.
    static BLOCK_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

/// Whether the inputs are finite and small enough that sums of them are.
pub(crate) fn is_bounded(x: &[f32]) -> bool {
    simd(
        #[inline(always)]
        || {
            x.chunks(4096).all(|x| {
                x.iter()
                    .fold(true, |is_bounded, x| is_bounded & (x.abs() <= MAX_INPUT))
            })
        },
    )
}

/// The transforms of filters [filters, channels, 3, 3] for tiles of `outputs` × `outputs`:
/// [(outputs + 2)², filters, channels].
pub(crate) fn transform_filters(filters: &[f32], outputs: usize) -> Vec<f32> {
    let edge = outputs + 2;
    let count = filters.len() / 9;
    let mut transforms = vec![0.0; edge * edge * count];
    for (at, filter) in filters.as_chunks::<9>().0.iter().enumerate() {
        let rows: [Vec<f64>; 3] = std::array::from_fn(|row| {
            transform_row(
                std::array::from_fn(|column| f64::from(filter[3 * row + column])),
                outputs,
            )
        });
        for column in 0..edge {
            let made = transform_row(rows.each_ref().map(|row| row[column]), outputs);
            made.into_iter().enumerate().for_each(|(row, value)| {
                transforms[(row * edge + column) * count + at] = value as f32
            });
        }
    }
    transforms
}

/// G g.
fn transform_row([a, b, c]: [f64; 3], outputs: usize) -> Vec<f64> {
    match outputs {
        2 => vec![a, (a + b + c) / 2.0, (a - b + c) / 2.0, c],
        _ => vec![
            a / 4.0,
            -(a + b + c) / 6.0,
            (b - a - c) / 6.0,
            (a + 2.0 * b + 4.0 * c) / 24.0,
            (a - 2.0 * b + 4.0 * c) / 24.0,
            c,
        ],
    }
}

/// The rows of filters [filters, channels, 3, 3] whose transforms these are, in panels.
pub(crate) fn filters_of(
    transforms: &[f32],
    [channels, filters]: [usize; 2],
    outputs: usize,
) -> Vec<f32> {
    let edge = outputs + 2;
    // A weight as a sum of two elements of G g, by their places and factors.
    let parts: [[(usize, f32); 2]; 3] = match outputs {
        2 => [
            [(0, 1.0), (0, 0.0)],
            [(1, 1.0), (2, -1.0)],
            [(3, 1.0), (3, 0.0)],
        ],
        _ => [
            [(0, 4.0), (0, 0.0)],
            [(2, 3.0), (1, -3.0)],
            [(5, 1.0), (5, 0.0)],
        ],
    };
    let plane = filters.div_ceil(PANEL) * channels * PANEL;
    let weight = |filter: usize, channel: usize, row: usize, column: usize| {
        let element = |row: usize, column: usize| {
            transforms[(row * edge + column) * plane
                + (filter / PANEL * channels + channel) * PANEL
                + filter % PANEL]
        };
        let mut sum = 0.0;
        for (row, by_row) in parts[row] {
            for (column, by_column) in parts[column] {
                sum += by_row * by_column * element(row, column);
            }
        }
        sum
    };
    let places =
        (0..filters).flat_map(|filter| (0..channels).map(move |channel| (filter, channel)));
    places
        .flat_map(|(filter, channel)| (0..9).map(move |tap| (filter, channel, tap)))
        .map(|(filter, channel, tap)| weight(filter, channel, tap / 3, tap % 3))
        .collect()
}

/// The layout of the tiles of an image.
pub(crate) struct Tiled {
    geometry: Geometry,
    /// Outputs along an edge of a tile: 2 or 4.
    outputs: usize,
    /// Tiles in a row, and rows of them.
    tiles: [usize; 2],
    /// Where the inputs of tiles are: those of a tile are an element of the window of its patches.
    patches: Patches,
    channels: usize,
    /// Rows of tiles of a block.
    rows: usize,
    /// Threads that take blocks, and that take filters.
    threads: [usize; 2],
}

impl Tiled {
    /// Of a convolution of a 3 × 3 window with stride 1 over this many channels.
    pub fn new(geometry: Geometry, outputs: usize, channels: usize, threads: usize) -> Self {
        let [_, rows, columns] = geometry.size_out;
        let tiles = [columns.div_ceil(outputs), rows.div_ceil(outputs)];
        let edge = outputs + 2;
        let of_tiles = Geometry {
            size_out: [1, tiles[1], tiles[0]],
            kernel: [1, edge, edge],
            stride: [1, outputs, outputs],
            ..geometry
        };
        let taps: Vec<_> = of_tiles.each_tap().collect();
        let patches = Patches::new(of_tiles, Padded::new(of_tiles), 1, &taps);
        // Rows of a block: as few panels in total as possible, which threads share.
        let panels = |rows: usize| (rows * tiles[0]).div_ceil(PANEL);
        let fits = |rows: &usize| {
            *rows == 1 || panels(*rows) * PANEL * channels * edge * edge <= MAX_BLOCK
        };
        let work = |rows: usize| {
            let blocks = tiles[1].div_ceil(rows);
            let last = panels(tiles[1] - (blocks - 1) * rows);
            // Shared by block, or by filter, where each thread transforms all inputs.
            let by_block = blocks.div_ceil(threads) * panels(rows) * 8 * threads;
            let by_filter = ((blocks - 1) * panels(rows) + last) * if threads > 1 { 9 } else { 8 };
            if by_filter < by_block {
                (by_filter, blocks, [1, threads])
            } else {
                (by_block, blocks, [threads, 1])
            }
        };
        let rows = (1..=tiles[1])
            .filter(fits)
            .min_by_key(|rows| work(*rows))
            .unwrap_or(1);
        Self {
            geometry,
            outputs,
            tiles,
            patches,
            channels,
            rows,
            threads: work(rows).2,
        }
    }

    /// Floats of the padded channels.
    pub fn padded_len(&self) -> usize {
        self.channels * self.patches.padded().channel_len()
    }

    /// Fills the padded channels `to` from `x` [channels, volume].
    pub fn pad(&self, x: &[f32], threads: usize, to: &mut [f32]) {
        let volume = self.geometry.volume();
        for_each_chunk(
            &mut to[..self.padded_len()],
            self.patches.padded().channel_len(),
            threads,
            |channel, to| {
                self.patches
                    .padded()
                    .fill(&x[channel * volume..][..volume], 0.0, to);
            },
        );
    }

    /// Computes `y` [filters, pixels] from the padded channels and the transformed filters in
    /// panels.
    pub fn run(&self, source: &[f32], filters: &[f32], finish: Finish<'_>, y: &mut [f32]) {
        let pixels = self.geometry.pixels();
        let (count, [outer, inner]) = (y.len() / pixels, self.threads);
        if inner > 1 {
            let part = count.div_ceil(inner).next_multiple_of(PANEL);
            return for_each_chunk(y, part * pixels, inner, |index, y| {
                self.filters(
                    source,
                    filters,
                    index * part..(index * part + y.len() / pixels),
                    count,
                    (finish.skip_rows(index * part), 1),
                    y,
                );
            });
        }
        self.filters(source, filters, 0..count, count, (finish, outer), y);
    }

    /// Computes the rows `y` of some filters of all.
    fn filters(
        &self,
        source: &[f32],
        filters: &[f32],
        these: std::ops::Range<usize>,
        all: usize,
        (finish, threads): (Finish<'_>, usize),
        y: &mut [f32],
    ) {
        let columns = self.geometry.size_out[2];
        let mut marks = vec![0u32; self.geometry.pixels()];
        for_each_columns(
            y,
            (&mut marks, 1),
            self.rows * self.outputs * columns,
            threads,
            |block, y, marks| {
                let rows = block * self.rows..self.tiles[1].min((block + 1) * self.rows);
                with_simd(Block {
                    tiled: self,
                    source,
                    filters,
                    these: these.clone(),
                    all,
                    finish,
                    rows,
                    pixels: marks.len(),
                    y,
                });
            },
        );
    }

    /// The runs of a panel of a block from a row of tiles on: neighbouring tiles of a row.
    fn runs(&self, rows: &std::ops::Range<usize>, panel: usize) -> ([Run; PANEL], usize) {
        self.patches.runs_from(
            rows.start * self.tiles[0] + panel * PANEL,
            rows.end * self.tiles[0],
        )
    }
}

/// Some rows of tiles of some filters.
struct Block<'a, 'y> {
    tiled: &'a Tiled,
    source: &'a [f32],
    /// The transforms of all filters, in panels.
    filters: &'a [f32],
    these: std::ops::Range<usize>,
    all: usize,
    finish: Finish<'a>,
    rows: std::ops::Range<usize>,
    /// Outputs of a filter.
    pixels: usize,
    y: ColumnBlock<'y, f32>,
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.tiled.outputs {
            2 => by_vectors!(S, self.make(simd), 2, 4, 16),
            _ => by_vectors!(S, self.make(simd), 4, 6, 36),
        }
    }
}

impl Block<'_, '_> {
    #[inline(always)]
    fn make<
        S: Simd,
        const VECTORS: usize,
        const OUTPUTS: usize,
        const EDGE: usize,
        const SQUARE: usize,
    >(
        mut self,
        simd: S,
    ) {
        let (tiled, depth) = (self.tiled, self.tiled.channels);
        let panels = (self.rows.len() * tiled.tiles[0]).div_ceil(PANEL);
        let runs_of: Vec<([Run; PANEL], usize)> = (0..panels)
            .map(|panel| tiled.runs(&self.rows, panel))
            .collect();
        // One line more for each element: elements whose distance is a power of two would share few
        // lines of L1.
        let (input_lines, product_lines) = (panels * depth + 1, panels * PANEL + 1);
        let pitch = tiled.tiles[0] * OUTPUTS + 2 * OUTPUTS * LANES;
        let image_lines = (self.rows.len() * OUTPUTS * pitch).div_ceil(LANES);
        let line_lines = self.pixels.div_ceil(LANES) + 1;
        let mut kept = BLOCK_BUFFER.take();
        kept.resize(
            kept.len()
                .max(SQUARE * (input_lines + product_lines) + image_lines + line_lines),
            CacheLine::ZERO,
        );
        let (inputs, rest) = kept.split_at_mut(SQUARE * input_lines);
        let (products, rest) = rest.split_at_mut(SQUARE * product_lines);
        let (image, line) = rest.split_at_mut(image_lines);
        let [inputs, products, image, line]: [&mut [f32]; 4] =
            [inputs, products, image, line].map(bytemuck::cast_slice_mut);
        let offsets: &[usize; SQUARE] = tiled
            .patches
            .offsets()
            .first_chunk()
            .expect("invariant: a tile's inputs");
        for (panel, (runs, count)) in runs_of.iter().enumerate() {
            for channel in 0..depth {
                let source = &self.source[channel * tiled.patches.padded().channel_len()..];
                for run in &runs[..*count] {
                    let to = &mut inputs[(panel * depth + channel) * LANES + run.lane..];
                    transform_inputs::<S, VECTORS, EDGE, SQUARE>(
                        simd,
                        &source[run.place..],
                        offsets,
                        to,
                        input_lines * LANES,
                    );
                }
            }
        }
        let mut made: [OutputRow; OUTPUTS] = [[0.0; 8 * LANES]; OUTPUTS];
        let first = self.these.start / PANEL;
        for filter_panel in first..self.these.end.div_ceil(PANEL) {
            let rows = PANEL.min(self.these.end - filter_panel * PANEL);
            for element in 0..SQUARE {
                let inputs = &inputs[element * input_lines * LANES..][..panels * depth * LANES];
                let products =
                    &mut products[element * product_lines * LANES..][..panels * PANEL * LANES];
                self.products::<S, VECTORS>(simd, [element, filter_panel, rows], inputs, products);
            }
            for row in 0..rows {
                for (panel, (runs, count)) in runs_of.iter().enumerate() {
                    let group = panel / panels_per_pass_of::<S>() * panels_per_pass_of::<S>();
                    let width = panels_per_pass_of::<S>().min(panels - group);
                    let from = &products[(group * PANEL + row * width + panel - group) * LANES..];
                    transform_products::<S, VECTORS, OUTPUTS, EDGE>(
                        simd,
                        from,
                        product_lines * LANES,
                        &mut made,
                    );
                    let mut tile = panel * PANEL;
                    for (index, run) in runs[..*count].iter().enumerate() {
                        let (tile_row, column) = (tile / tiled.tiles[0], tile % tiled.tiles[0]);
                        for (at, made) in made.iter().enumerate() {
                            let to =
                                &mut image[(tile_row * OUTPUTS + at) * pitch + column * OUTPUTS..];
                            copy_lanes::<OUTPUTS>(&made[run.lane * OUTPUTS..], to);
                        }
                        tile += runs[..*count]
                            .get(index + 1)
                            .map_or(PANEL, |next| next.lane)
                            - run.lane;
                    }
                }
                let columns = tiled.geometry.size_out[2];
                for (at, from) in image
                    .chunks_exact(pitch)
                    .take(self.pixels / columns)
                    .enumerate()
                {
                    for column in (0..columns).step_by(LANES) {
                        let from: &[f32; LANES] = from[column..]
                            .first_chunk()
                            .expect("invariant: a row has slack");
                        let to = &mut line[at * columns + column..];
                        match to.first_chunk_mut::<LANES>() {
                            Some(to) => *to = *from,
                            None => to.copy_from_slice(&from[..to.len()]),
                        }
                    }
                }
                let filter = filter_panel * PANEL + row - self.these.start;
                let column = self.rows.start * OUTPUTS * columns;
                self.finish
                    .row(filter, column, &mut line[..self.pixels], self.y.row(filter));
            }
        }
        BLOCK_BUFFER.set(kept);
    }

    /// The products of an element of the transforms: sixteen filters with all panels, `products` by
    /// one or two panels, then by filter.
    #[inline(always)]
    fn products<S: Simd, const VECTORS: usize>(
        &self,
        simd: S,
        [element, filter_panel, rows]: [usize; 3],
        inputs: &[f32],
        products: &mut [f32],
    ) {
        let (depth, panels) = (
            self.tiled.channels,
            inputs.len() / (self.tiled.channels * PANEL),
        );
        let plane = self.all.div_ceil(PANEL) * depth;
        let filters =
            &self.filters.as_chunks::<PANEL>().0[element * plane + filter_panel * depth..];
        // The filters of the next element are read while these are multiplied.
        let ahead = filters.get(plane..).unwrap_or_default();
        let ahead = &ahead[..depth.min(ahead.len())];
        let (filters, inputs) = (&filters[..depth], inputs.as_chunks::<PANEL>().0);
        let mut panel = 0;
        while panel < panels {
            let width = panels_per_pass_of::<S>().min(panels - panel);
            let products = &mut products[panel * PANEL * LANES..][..rows * width * LANES];
            let (inputs, ahead) = (
                &inputs[panel * depth..][..width * depth],
                if panel == 0 { ahead } else { &[] },
            );
            if width == 1 {
                tiles_of::<S, 1, VECTORS>(simd, filters, inputs, ahead, products);
            } else if const { S::F32_LANES == LANES } {
                tiles_of::<S, MAX_PANELS_PER_PASS, VECTORS>(simd, filters, inputs, ahead, products);
            }
            panel += width;
        }
    }
}

/// The products `y` of sixteen filters [depth, 16] with one panel or two, by filter.
#[inline(always)]
fn tiles_of<S: Simd, const PANELS: usize, const VECTORS: usize>(
    simd: S,
    filters: &[[f32; PANEL]],
    inputs: &[[f32; PANEL]],
    ahead: &[[f32; PANEL]],
    y: &mut [f32],
) {
    let depth = filters.len();
    for from in (0..depth).step_by(K_SLICE) {
        let slice = K_SLICE.min(depth - from);
        let right: [&[[f32; PANEL]]; PANELS] =
            std::array::from_fn(|index| &inputs[index * depth + from..][..slice]);
        let count = y.len() / (PANELS * PANEL);
        for (first, height) in tiles(count, tile_rows::<S>()) {
            let ahead: &[f32] = if first == 0 {
                ahead.get(from..).unwrap_or_default().as_flattened()
            } else {
                &[]
            };
            let mut next = [&[][..]; PANELS];
            next[0] = ahead;
            let y = &mut y[first * PANELS * PANEL..][..height * PANELS * PANEL];
            tile_of::<S, _, _, PANELS, VECTORS>(
                simd,
                (
                    height,
                    first,
                    PanelColumns(filters).tile([first, from], height),
                ),
                (right, next),
                y,
                (from > 0, None),
            );
        }
    }
}

/// Bᵀ d B of 16 neighbouring tiles: the element of place k is written to `to[k · distance..]`.
#[inline(always)]
fn transform_inputs<S: Simd, const VECTORS: usize, const EDGE: usize, const SQUARE: usize>(
    simd: S,
    source: &[f32],
    offsets: &[usize; SQUARE],
    to: &mut [f32],
    distance: usize,
) {
    for vector in 0..VECTORS {
        let mut columns = [[simd.splat_f32s(0.0); EDGE]; EDGE];
        for column in 0..EDGE {
            let mut elements = [simd.splat_f32s(0.0); EDGE];
            for row in 0..EDGE {
                elements[row] = load::<S, VECTORS>(source, offsets[row * EDGE + column])[vector];
            }
            columns[column] = transform_input(simd, elements);
        }
        for row in 0..EDGE {
            let mut elements = columns[0];
            for column in 0..EDGE {
                elements[column] = columns[column][row];
            }
            let elements = transform_input(simd, elements);
            for (column, element) in elements.into_iter().enumerate() {
                let to: &mut [f32; LANES] = to[(row * EDGE + column) * distance..]
                    .first_chunk_mut()
                    .expect("invariant: a line of slack follows");
                let lanes = LANES / VECTORS;
                to[vector * lanes..][..lanes].copy_from_slice(bytemuck::cast_slice(&[element]));
            }
        }
    }
}

/// Bᵀ d.
#[inline(always)]
fn transform_input<S: Simd, const EDGE: usize>(simd: S, d: [S::f32s; EDGE]) -> [S::f32s; EDGE] {
    let mut made = d;
    if EDGE == 4 {
        made[0] = simd.sub_f32s(d[0], d[2]);
        made[1] = simd.add_f32s(d[1], d[2]);
        made[2] = simd.sub_f32s(d[2], d[1]);
        made[3] = simd.sub_f32s(d[1], d[3]);
        return made;
    }
    let [two, four, minus_four, minus_five] = [2.0, 4.0, -4.0, -5.0].map(
        #[inline(always)]
        |factor| simd.splat_f32s(factor),
    );
    made[0] = simd.mul_add_f32s(four, d[0], simd.mul_add_f32s(minus_five, d[2], d[4]));
    made[5] = simd.mul_add_f32s(four, d[1], simd.mul_add_f32s(minus_five, d[3], d[5]));
    let (even, odd) = (
        simd.mul_add_f32s(minus_four, d[2], d[4]),
        simd.mul_add_f32s(minus_four, d[1], d[3]),
    );
    made[1] = simd.add_f32s(even, odd);
    made[2] = simd.sub_f32s(even, odd);
    let (even, odd) = (
        simd.sub_f32s(d[4], d[2]),
        simd.mul_f32s(two, simd.sub_f32s(d[3], d[1])),
    );
    made[3] = simd.add_f32s(even, odd);
    made[4] = simd.sub_f32s(even, odd);
    made
}

/// Aᵀ m.
#[inline(always)]
fn transform_product<S: Simd, const OUTPUTS: usize, const EDGE: usize>(
    simd: S,
    m: [S::f32s; EDGE],
) -> [S::f32s; OUTPUTS] {
    let mut made = [m[0]; OUTPUTS];
    let (sum, difference) = (simd.add_f32s(m[1], m[2]), simd.sub_f32s(m[1], m[2]));
    if OUTPUTS == 2 {
        made[0] = simd.add_f32s(m[0], sum);
        made[1] = simd.sub_f32s(difference, m[3]);
        return made;
    }
    let [two, four, eight] = [2.0, 4.0, 8.0].map(
        #[inline(always)]
        |factor| simd.splat_f32s(factor),
    );
    let (outer_sum, outer_difference) = (simd.add_f32s(m[3], m[4]), simd.sub_f32s(m[3], m[4]));
    made[0] = simd.add_f32s(simd.add_f32s(m[0], sum), outer_sum);
    made[1] = simd.mul_add_f32s(two, outer_difference, difference);
    made[2] = simd.mul_add_f32s(four, outer_sum, sum);
    made[3] = simd.add_f32s(simd.mul_add_f32s(eight, outer_difference, difference), m[5]);
    made
}

/// A row of outputs of 16 neighbouring tiles, and as much slack.
type OutputRow = [f32; 8 * LANES];

/// Aᵀ m A of 16 neighbouring tiles, as rows of outputs; the product of place k is at
/// `from[k · distance..]`.
#[inline(always)]
fn transform_products<S: Simd, const VECTORS: usize, const OUTPUTS: usize, const EDGE: usize>(
    simd: S,
    from: &[f32],
    distance: usize,
    to: &mut [OutputRow; OUTPUTS],
) {
    let mut phases = [[[0.0f32; LANES]; OUTPUTS]; OUTPUTS];
    for vector in 0..VECTORS {
        let mut columns = [[simd.splat_f32s(0.0); OUTPUTS]; EDGE];
        for (column, made) in columns.iter_mut().enumerate() {
            let mut elements = [simd.splat_f32s(0.0); EDGE];
            for (row, element) in elements.iter_mut().enumerate() {
                *element = load::<S, VECTORS>(from, (row * EDGE + column) * distance)[vector];
            }
            *made = transform_product(simd, elements);
        }
        for row in 0..OUTPUTS {
            let mut elements = [simd.splat_f32s(0.0); EDGE];
            for column in 0..EDGE {
                elements[column] = columns[column][row];
            }
            let made: [S::f32s; OUTPUTS] = transform_product(simd, elements);
            for (phase, made) in phases[row].iter_mut().zip(made) {
                bytemuck::cast_slice_mut::<f32, S::f32s>(phase)[vector] = made;
            }
        }
    }
    for (to, phases) in to.iter_mut().zip(&phases) {
        interleave(simd, phases, to);
    }
}

/// Sixteen elements of each phase, place by place.
#[inline(always)]
fn interleave<S: Simd, const OUTPUTS: usize>(
    simd: S,
    phases: &[[f32; LANES]; OUTPUTS],
    to: &mut [f32],
) {
    if OUTPUTS == 2 {
        to[..2 * LANES].copy_from_slice(&pairs(simd, &phases[0], &phases[1]));
        return;
    }
    let (even, odd) = (
        pairs(simd, &phases[0], &phases[2]),
        pairs(simd, &phases[1], &phases[3]),
    );
    for half in 0..2 {
        let [even, odd]: [&[f32; LANES]; 2] = [&even, &odd].map(
            #[inline(always)]
            |all| {
                all[half * LANES..]
                    .first_chunk()
                    .expect("invariant: two halves")
            },
        );
        to[half * 2 * LANES..][..2 * LANES].copy_from_slice(&pairs(simd, even, odd));
    }
}

/// Copies the outputs of 16 tiles.
#[inline(always)]
fn copy_lanes<const OUTPUTS: usize>(from: &[f32], to: &mut [f32]) {
    for at in 0..OUTPUTS {
        let from: &[f32; LANES] = from[at * LANES..]
            .first_chunk()
            .expect("invariant: slack follows the outputs");
        *to[at * LANES..]
            .first_chunk_mut::<LANES>()
            .expect("invariant: a row has slack") = *from;
    }
}

/// Elements of two vectors in turn.
#[inline(always)]
fn pairs<S: Simd>(_: S, first: &[f32; LANES], second: &[f32; LANES]) -> [f32; 2 * LANES] {
    #[cfg(target_arch = "x86_64")]
    if S::F32_LANES == LANES {
        // SAFETY: an `S` comes from `with_simd`, and on x86-64 only that of AVX-512 F has vectors
        // of 16 floats.
        return unsafe { x86::pairs(first, second) };
    }
    std::array::from_fn(
        #[inline(always)]
        |at| {
            if at % 2 == 0 {
                first[at / 2]
            } else {
                second[at / 2]
            }
        },
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
    pub unsafe fn pairs(first: &[f32; LANES], second: &[f32; LANES]) -> [f32; 2 * LANES] {
        let (first, second): (__m512, __m512) = (pulp::cast(*first), pulp::cast(*second));
        let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        pulp::cast([
            _mm512_permutex2var_ps(first, low, second),
            _mm512_permutex2var_ps(first, high, second),
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Convolution, DType, Device, FilterLayout, PlanBuilder, Window};

    /// The output of filters in a layout.
    fn convolved(layout: FilterLayout, x: &[f32], filters: &[f32]) -> Vec<f32> {
        let window = Window {
            pad_before: [0, 1, 1],
            pad_after: [0, 1, 1],
            ..Window::new([1, 3, 3])
        };
        let given = Convolution {
            layout,
            ..Convolution::new(3, 5, [1, 6, 7], window)
        };
        let mut packed = vec![
            0.0;
            if layout == FilterLayout::Rows {
                filters.len()
            } else {
                given.panel_floats()
            }
        ];
        if layout == FilterLayout::Rows {
            packed.copy_from_slice(filters);
        } else {
            given.pack(filters, &mut packed);
        }
        let mut plan = PlanBuilder::new("convolution");
        let [x_view, w, y] = [
            plan.input("x", DType::F32, x.len()),
            plan.input("w", DType::F32, packed.len()),
            plan.output("y", DType::F32, 5 * 42),
        ];
        plan.convolution(x_view, w, None, y, &given)
            .expect("recorded");
        let mut run = plan
            .finish()
            .expect("finished")
            .compile(&Device::open("cpu").expect("cpu"))
            .expect("compiled");
        run.input::<f32>(x_view).copy_from_slice(x);
        run.input::<f32>(w).copy_from_slice(&packed);
        run.run().expect("run");
        run.output::<f32>(y).to_vec()
    }

    #[test]
    fn filters_of_no_channels_are_packed_as_nothing() {
        for layout in FilterLayout::ALL {
            let given = Convolution {
                layout,
                ..Convolution::new(3, 0, [1, 6, 7], Window::new([1, 3, 3]))
            };
            given.pack(&[], &mut []);
        }
    }

    #[test]
    fn infinite_inputs_reach_only_the_outputs_that_read_them() {
        let filters: Vec<f32> = (0..5 * 27)
            .map(|at| (at * 7 % 11) as f32 * 0.25 - 1.0)
            .collect();
        for (value, at) in [
            (f32::INFINITY, 50),
            (f32::NEG_INFINITY, 0),
            (f32::NAN, 125),
            (3e38, 60),
        ] {
            let mut x: Vec<f32> = (0..126)
                .map(|at| (at * 5 % 13) as f32 * 0.5 - 3.0)
                .collect();
            x[at] = value;
            let wanted = convolved(FilterLayout::Rows, &x, &filters);
            for layout in [FilterLayout::Winograd2, FilterLayout::Winograd4] {
                for (place, (wanted, got)) in wanted
                    .iter()
                    .zip(convolved(layout, &x, &filters))
                    .enumerate()
                {
                    // The filters come back from their transforms with a rounding error.
                    let is_same = wanted.is_finite() == got.is_finite()
                        && (!wanted.is_finite()
                            || (wanted - got).abs() <= 1e-5 * wanted.abs().max(10.0));
                    assert!(
                        is_same,
                        "{layout:?}, {value} at {at}: output {place} is {got} instead of {wanted}"
                    );
                }
            }
        }
    }
}
