//! Convolutions in which each filter reads one channel: directly, along the rows of the output.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{NativeCall, for_each_chunk, simd, with_simd};
use crate::operation::convolution::chunks::{Chunk, Finish, LANES, chunks, store_chunk};
use crate::operation::convolution::padded::{Padded, SLACK};
use crate::operation::convolution::window::Geometry;
use crate::operation::product::gemm::Activation;

/// Chunks whose sums are made side by side: their additions do not wait for each other.
const CHUNKS_PER_PASS: usize = 4;
/// Rows of the output whose sums are made side by side from the same rows of the input, where these follow each other.
const ROWS_PER_PASS: usize = 4;

thread_local! {
    /// A padded channel, kept from launch to launch.
    static CHANNEL_BUFFER: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The arguments of a convolution with one channel for each filter.
pub(crate) struct Depthwise<'a> {
    pub x: &'a [f32],
    /// [channels_out, taps]
    pub filters: &'a [f32],
    pub bias: Option<&'a [f32]>,
    pub residual: Option<&'a [f32]>,
    pub activation: Activation,
    pub channels_out: usize,
    /// Filters of each channel.
    pub multiplier: usize,
}

/// Channels of a task of so many threads.
pub(crate) fn channels_per_task(channels: usize, threads: usize) -> usize {
    if threads == 1 { channels.max(1) } else { channels.div_ceil(4 * threads).max(1) }
}

/// Runs `work` with each of some channels of the input and its padding; `work` gets the channel's place among them.
pub(crate) fn for_each_padded<'a>(padded: &Padded, outside: f32, channels: impl Iterator<Item = &'a [f32]>, mut work: impl FnMut(usize, &[f32])) {
    let mut kept = CHANNEL_BUFFER.take();
    kept.resize(kept.len().max(padded.channel_len() + SLACK), 0.0);
    let to = &mut kept[..padded.channel_len() + SLACK];
    for (index, channel) in channels.enumerate() {
        // The padding is the same for all.
        if index == 0 {
            padded.fill(channel, outside, to)
        } else {
            padded.refill(channel, to)
        }
        work(index, to);
    }
    CHANNEL_BUFFER.set(kept);
}

pub(crate) fn depthwise(call: &NativeCall<'_>, geometry: Geometry, given: &Depthwise<'_>, y: &mut [f32]) {
    let taps = geometry.taps();
    let padded = Padded::new(geometry);
    let chunks = chunks(geometry, &padded);
    let (order, runs) = runs(geometry.each_tap().map(|tap| padded.offset(tap)));
    let blocks = RowBlocks::new(geometry, &padded);
    let threads = call.threads_for(y.len() * taps / 4);
    let (pixels, volume) = (geometry.pixels(), geometry.volume());
    let each = channels_per_task(y.len() / pixels, threads);
    for_each_chunk(y, each * pixels, threads, |task, y| {
        let indices = task * each..task * each + y.len() / pixels;
        let channels = indices.clone().map(|index| &given.x[index / given.multiplier * volume..][..volume]);
        let mut weights = vec![0.0; taps];
        for_each_padded(&padded, 0.0, channels, |at, source| {
            let (index, y) = (indices.start + at, &mut y[at * pixels..][..pixels]);
            let channel = index % given.channels_out;
            let bias = given.bias.map_or(-0.0, |bias| bias[channel]);
            let filter = &given.filters[channel * taps..][..taps];
            weights.iter_mut().zip(&order).for_each(|(weight, tap)| *weight = filter[*tap]);
            match &blocks {
                Some(blocks) => with_simd(BlockSums { blocks, weights: filter, bias, source, y: &mut *y }),
                None => with_simd(Sums { chunks: &chunks, weights: &weights, runs: &runs, bias, source, y: &mut *y }),
            }
            simd(
                #[inline(always)]
                || Finish { bias: None, residual: given.residual, pixels, activation: given.activation }.in_place(index, y),
            );
        });
    });
}

/// Elements of the window whose places follow each other: that of the first, and how many.
struct Run {
    offset: usize,
    len: usize,
}

/// The elements of the window in the order of their places, and the runs of them.
fn runs(offsets: impl Iterator<Item = usize>) -> (Vec<usize>, Vec<Run>) {
    let mut places: Vec<(usize, usize)> = offsets.enumerate().map(|(tap, offset)| (offset, tap)).collect();
    places.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (offset, _) in &places {
        match runs.last_mut().filter(|run| run.offset + run.len == *offset) {
            Some(run) => run.len += 1,
            None => runs.push(Run { offset: *offset, len: 1 }),
        }
    }
    (places.into_iter().map(|(_, tap)| tap).collect(), runs)
}

/// The sums of a channel.
struct Sums<'a> {
    chunks: &'a [Chunk],
    /// Of the elements of the window in the order of the runs.
    weights: &'a [f32],
    runs: &'a [Run],
    bias: f32,
    source: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Sums<'_> {
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

impl Sums<'_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let (passes, rest) = self.chunks.as_chunks::<CHUNKS_PER_PASS>();
        for chunks in passes {
            self.sums::<S, VECTORS, CHUNKS_PER_PASS>(simd, chunks);
        }
        // The last ones once more with some before them, where there are as many.
        match self.chunks.last_chunk::<CHUNKS_PER_PASS>() {
            Some(chunks) if !rest.is_empty() => self.sums::<S, VECTORS, CHUNKS_PER_PASS>(simd, chunks),
            _ => {
                for chunk in rest {
                    self.sums::<S, VECTORS, 1>(simd, &[*chunk]);
                }
            }
        }
    }

    /// The sums of some chunks.
    #[inline(always)]
    fn sums<S: Simd, const VECTORS: usize, const CHUNKS: usize>(&mut self, simd: S, chunks: &[Chunk; CHUNKS]) {
        let mut sums = [[simd.splat_f32s(self.bias); VECTORS]; CHUNKS];
        let mut weights = self.weights;
        for run in self.runs {
            let (run_weights, rest) = weights.split_at(run.len);
            weights = rest;
            // Windows of known bounds: without a test for each vector.
            let mut x: [_; CHUNKS] = std::array::from_fn(
                #[inline(always)]
                |chunk| self.source[chunks[chunk].place + run.offset..][..run.len + LANES - 1].windows(LANES),
            );
            for weight in run_weights {
                let weight = simd.splat_f32s(*weight);
                for chunk in 0..CHUNKS {
                    let Some(x) = x[chunk].next().and_then(|x| x.first_chunk::<LANES>()) else { return };
                    let x: [S::f32s; VECTORS] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(x));
                    for vector in 0..VECTORS {
                        sums[chunk][vector] = simd.mul_add_f32s(weight, x[vector], sums[chunk][vector]);
                    }
                }
            }
        }
        for chunk in 0..CHUNKS {
            let made: &[f32] = bytemuck::cast_slice(&sums[chunk]);
            store_chunk(made, chunks[chunk].at, chunks[chunk].count, self.y);
        }
    }
}

/// Several rows of the output at a time: an element of the input that is loaded serves each of them. For windows with stride and dilation 1 along the rows
/// and the columns.
struct RowBlocks {
    geometry: Geometry,
    /// Elements from a row of the padded channel to the next, and from a plane of the window.
    row: usize,
    planes: Vec<usize>,
    /// The place of each first row of a block, and of its result.
    blocks: Vec<(usize, usize)>,
}

impl RowBlocks {
    /// None where rows are too few, or what they read does not overlap.
    fn new(geometry: Geometry, padded: &Padded) -> Option<Self> {
        let Geometry { size_out: [planes, rows, columns], kernel, stride, dilation, .. } = geometry;
        if rows < ROWS_PER_PASS || kernel[1] < 2 || stride[1..] != [1, 1] || dilation[1..] != [1, 1] {
            return None;
        }
        let first_rows = || (0..rows).step_by(ROWS_PER_PASS).map(|row| row.min(rows - ROWS_PER_PASS));
        let blocks = (0..planes).flat_map(|plane| first_rows().map(move |row| (padded.base(plane, row), (plane * rows + row) * columns)));
        let planes = (0..kernel[0]).map(|plane| padded.offset([plane, 0, 0])).collect();
        Some(Self { geometry, row: padded.base(0, 1), planes, blocks: blocks.collect() })
    }
}

/// The sums of a channel by blocks of rows.
struct BlockSums<'a> {
    blocks: &'a RowBlocks,
    weights: &'a [f32],
    bias: f32,
    source: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for BlockSums<'_> {
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

impl BlockSums<'_> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let columns = self.blocks.geometry.size_out[2];
        for &(place, at) in &self.blocks.blocks {
            for column in (0..columns).step_by(LANES) {
                let column = column.min(columns.saturating_sub(LANES));
                self.block::<S, VECTORS>(simd, place + column, at + column);
            }
        }
    }

    /// Sixteen columns of a block of rows.
    #[inline(always)]
    fn block<S: Simd, const VECTORS: usize>(&mut self, simd: S, place: usize, at: usize) {
        let RowBlocks { geometry: Geometry { kernel: [_, height, width], size_out: [_, _, columns], .. }, row: row_len, planes, .. } = self.blocks;
        // Four names, not an array: the sums must stay in registers.
        let [mut first, mut second, mut third, mut fourth] = [[simd.splat_f32s(self.bias); VECTORS]; ROWS_PER_PASS];
        for (plane, weights) in planes.iter().zip(self.weights.chunks_exact(height * width)) {
            for row in 0..height + ROWS_PER_PASS - 1 {
                // The weights of this row of the input in the sums of each row of the output: none where the window does not reach it.
                let weights: [&[f32]; ROWS_PER_PASS] = std::array::from_fn(
                    #[inline(always)]
                    |out| if row >= out && row - out < *height { &weights[(row - out) * width..][..*width] } else { &[] },
                );
                let x = &self.source[place + plane + row * row_len..][..width + LANES - 1];
                for (column, x) in x.windows(LANES).enumerate() {
                    let Some(x) = x.first_chunk::<LANES>() else { return };
                    let x: [S::f32s; VECTORS] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(x));
                    macro_rules! add {
                        ($sums:ident, $out:literal) => {
                            if let Some(weight) = weights[$out].get(column) {
                                let weight = simd.splat_f32s(*weight);
                                for vector in 0..VECTORS {
                                    $sums[vector] = simd.mul_add_f32s(weight, x[vector], $sums[vector]);
                                }
                            }
                        };
                    }
                    add!(first, 0);
                    add!(second, 1);
                    add!(third, 2);
                    add!(fourth, 3);
                }
            }
        }
        for (out, sums) in [first, second, third, fourth].into_iter().enumerate() {
            store_chunk(bytemuck::cast_slice(&sums), at + out * columns, LANES.min(*columns), self.y);
        }
    }
}
