//! Convolutions in which each filter reads one channel: directly, along the rows of the output.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{NativeCall, for_each_chunk, simd, with_simd};
use crate::operation::convolution::chunks::{Chunk, Finish, LANES, chunks};
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

/// Runs `work` with a channel of the input and its padding.
pub(crate) fn with_padded<R>(padded: &Padded, channel: &[f32], outside: f32, work: impl FnOnce(&[f32]) -> R) -> R {
    let mut kept = CHANNEL_BUFFER.take();
    kept.resize(kept.len().max(padded.channel_len() + SLACK), 0.0);
    let to = &mut kept[..padded.channel_len() + SLACK];
    padded.fill(channel, outside, to);
    let result = work(to);
    CHANNEL_BUFFER.set(kept);
    result
}

pub(crate) fn depthwise(call: &NativeCall<'_>, geometry: Geometry, given: &Depthwise<'_>, y: &mut [f32]) {
    let taps = geometry.taps();
    let padded = Padded::new(geometry);
    let (chunks, offsets) = (chunks(geometry, &padded), geometry.each_tap().map(|tap| padded.offset(tap)).collect::<Vec<_>>());
    let threads = call.threads_for(y.len() * taps / 4);
    let (pixels, volume) = (geometry.pixels(), geometry.volume());
    for_each_chunk(y, pixels, threads, |index, y| {
        let channel = index % given.channels_out;
        let bias = given.bias.map_or(-0.0, |bias| bias[channel]);
        with_padded(&padded, &given.x[index / given.multiplier * volume..][..volume], 0.0, |source| {
            with_simd(Sums { chunks: &chunks, filter: &given.filters[channel * taps..][..taps], offsets: &offsets, bias, source, y: &mut *y });
        });
        simd(
            #[inline(always)]
            || Finish { bias: None, residual: given.residual, pixels, activation: given.activation }.in_place(index, y),
        );
    });
}

/// The sums of a channel.
struct Sums<'a> {
    chunks: &'a [Chunk],
    filter: &'a [f32],
    offsets: &'a [usize],
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
        for chunk in rest {
            self.sums::<S, VECTORS, 1>(simd, &[*chunk]);
        }
    }

    /// The sums of some chunks.
    #[inline(always)]
    fn sums<S: Simd, const VECTORS: usize, const CHUNKS: usize>(&mut self, simd: S, chunks: &[Chunk; CHUNKS]) {
        let mut sums = [[simd.splat_f32s(self.bias); VECTORS]; CHUNKS];
        for (weight, offset) in self.filter.iter().zip(self.offsets) {
            let weight = simd.splat_f32s(*weight);
            for chunk in 0..CHUNKS {
                let x: &[f32; LANES] = self.source[chunks[chunk].place + offset..].first_chunk().expect("invariant: the source has slack after its end");
                let x: [S::f32s; VECTORS] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(x));
                for vector in 0..VECTORS {
                    sums[chunk][vector] = simd.mul_add_f32s(weight, x[vector], sums[chunk][vector]);
                }
            }
        }
        for chunk in 0..CHUNKS {
            let made: &[f32] = bytemuck::cast_slice(&sums[chunk]);
            let y = &mut self.y[chunks[chunk].at..][..chunks[chunk].count];
            match y.first_chunk_mut::<LANES>() {
                Some(y) => y.copy_from_slice(made),
                None => y.copy_from_slice(&made[..y.len()]),
            }
        }
    }
}
