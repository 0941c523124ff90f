//! Convolutions in which each filter reads one channel: down the columns of wide rows, by sixteen
//! channels side by side, or along the rows of the output where channels are few.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{NativeCall, by_vectors, for_each_chunk, simd, with_simd};
use crate::operation::convolution::chunks::{Chunk, Finish, LANES, chunks, store_chunk};
use crate::operation::convolution::depthwise_rows::{self, DepthwiseRows};
use crate::operation::convolution::interleaved::Interleaved;
use crate::operation::convolution::padded::{Padded, SLACK};
use crate::operation::convolution::window::Geometry;
use crate::operation::product::gemm::Activation;

/// Chunks whose sums are made side by side: their additions do not wait for each other.
const CHUNKS_PER_PASS: usize = 4;

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
    if threads == 1 {
        channels.max(1)
    } else {
        channels.div_ceil(4 * threads).max(1)
    }
}

/// Runs `work` with each of some channels of the input and its padding; `work` gets the channel's
/// place among them.
pub(crate) fn for_each_padded<'a>(
    padded: &Padded,
    outside: f32,
    channels: impl Iterator<Item = &'a [f32]>,
    mut work: impl FnMut(usize, &[f32]),
) {
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

pub(crate) fn depthwise(
    call: &NativeCall<'_>,
    geometry: Geometry,
    given: &Depthwise<'_>,
    y: &mut [f32],
) {
    let taps = geometry.taps();
    let by_rows = depthwise_rows::takes(&geometry);
    if let Some(layout) = Interleaved::new(geometry, given.channels_out).filter(|_| !by_rows) {
        return interleaved(call, &layout, geometry, given, y);
    }
    let padded = Padded::new(geometry);
    let chunks = if by_rows {
        Vec::new()
    } else {
        chunks(geometry, &padded)
    };
    let (order, runs) = runs(geometry.each_tap().map(|tap| padded.offset(tap)));
    let threads = call.threads_for(y.len() * taps / 4);
    let (pixels, volume) = (geometry.pixels(), geometry.volume());
    let each = channels_per_task(y.len() / pixels, threads);
    for_each_chunk(y, each * pixels, threads, |task, y| {
        let indices = task * each..task * each + y.len() / pixels;
        let channels = indices
            .clone()
            .map(|index| &given.x[index / given.multiplier * volume..][..volume]);
        let mut weights = vec![0.0; taps];
        for_each_padded(&padded, 0.0, channels, |at, source| {
            let (index, y) = (indices.start + at, &mut y[at * pixels..][..pixels]);
            let channel = index % given.channels_out;
            let bias = given.bias.map_or(-0.0, |bias| bias[channel]);
            let filter = &given.filters[channel * taps..][..taps];
            let finish = Finish {
                bias: None,
                residual: given.residual,
                pixels,
                activation: given.activation,
            };
            let is_relu =
                by_rows && given.activation == Activation::Relu && given.residual.is_none();
            if by_rows {
                with_simd(DepthwiseRows {
                    geometry: &geometry,
                    padded: &padded,
                    filter,
                    bias,
                    source,
                    is_relu,
                    y: &mut *y,
                });
            } else {
                weights
                    .iter_mut()
                    .zip(&order)
                    .for_each(|(weight, tap)| *weight = filter[*tap]);
                with_simd(Sums {
                    chunks: &chunks,
                    weights: &weights,
                    runs: &runs,
                    bias,
                    source,
                    y: &mut *y,
                });
            }
            if !is_relu {
                simd(
                    #[inline(always)]
                    || finish.in_place(index, y),
                );
            }
        });
    });
}

/// Sixteen channels of an image at a time.
fn interleaved(
    call: &NativeCall<'_>,
    layout: &Interleaved,
    geometry: Geometry,
    given: &Depthwise<'_>,
    y: &mut [f32],
) {
    let (taps, pixels, volume, channels) = (
        geometry.taps(),
        geometry.pixels(),
        geometry.volume(),
        given.channels_out,
    );
    let threads = call.threads_for(y.len() * taps / 8);
    let (outer, inner) = if y.len() / (channels * pixels) >= threads {
        (threads, 1)
    } else {
        (1, threads)
    };
    let each = channels_per_task(channels, inner).next_multiple_of(LANES);
    for_each_chunk(y, channels * pixels, outer, |image, y| {
        for_each_chunk(y, each * pixels, inner, |task, y| {
            let first = task * each;
            let source = |index: usize| {
                let index = image * channels + first + index;
                // A division takes as long as many products.
                let channel = if given.multiplier == 1 {
                    index
                } else {
                    index / given.multiplier
                };
                &given.x[channel * volume..][..volume]
            };
            layout.sums(
                source,
                &given.filters[first * taps..],
                given.bias.map(|bias| &bias[first..]),
                y,
            );
            simd(
                #[inline(always)]
                || {
                    Finish {
                        bias: None,
                        residual: given.residual,
                        pixels,
                        activation: given.activation,
                    }
                    .in_place(image * channels + first, y)
                },
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
    let mut places: Vec<(usize, usize)> = offsets
        .enumerate()
        .map(|(tap, offset)| (offset, tap))
        .collect();
    places.sort_unstable();
    let mut runs: Vec<Run> = Vec::new();
    for (offset, _) in &places {
        match runs
            .last_mut()
            .filter(|run| run.offset + run.len == *offset)
        {
            Some(run) => run.len += 1,
            None => runs.push(Run {
                offset: *offset,
                len: 1,
            }),
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
        by_vectors!(S, self.make(simd))
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
            Some(chunks) if !rest.is_empty() => {
                self.sums::<S, VECTORS, CHUNKS_PER_PASS>(simd, chunks)
            }
            _ => {
                for chunk in rest {
                    self.sums::<S, VECTORS, 1>(simd, &[*chunk]);
                }
            }
        }
    }

    /// The sums of some chunks.
    #[inline(always)]
    fn sums<S: Simd, const VECTORS: usize, const CHUNKS: usize>(
        &mut self,
        simd: S,
        chunks: &[Chunk; CHUNKS],
    ) {
        let mut sums = [[simd.splat_f32s(self.bias); VECTORS]; CHUNKS];
        let mut weights = self.weights;
        for run in self.runs {
            let (run_weights, rest) = weights.split_at(run.len);
            weights = rest;
            // Windows of known bounds: without a test for each vector.
            let mut x: [_; CHUNKS] = std::array::from_fn(
                #[inline(always)]
                |chunk| {
                    self.source[chunks[chunk].place + run.offset..][..run.len + LANES - 1]
                        .windows(LANES)
                },
            );
            for weight in run_weights {
                let weight = simd.splat_f32s(*weight);
                for chunk in 0..CHUNKS {
                    let Some(x) = x[chunk].next().and_then(|x| x.first_chunk::<LANES>()) else {
                        return;
                    };
                    let x: [S::f32s; VECTORS] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(x));
                    for vector in 0..VECTORS {
                        sums[chunk][vector] =
                            simd.mul_add_f32s(weight, x[vector], sums[chunk][vector]);
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
