//! Convolutions in which each filter reads one channel: directly, along the rows of the output.

use std::cell::RefCell;

use crate::kernel::native::{NativeCall, for_each_chunk, simd};
use crate::operation::convolution::chunks::{Chunk, Finish, FinishRow, LANES, chunks};
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

/// Runs `work(index of the channel, padded channel, result)` for each output channel of all images, `multiplier` of which read the same input channel.
pub(crate) fn for_each_padded(
    (x, geometry, outside): (&[f32], Geometry, f32),
    (y, multiplier, threads): (&mut [f32], usize, usize),
    padded: &Padded,
    work: impl Fn(usize, &[f32], &mut [f32]) + Sync,
) {
    let volume = geometry.volume();
    for_each_chunk(y, geometry.pixels(), threads, |channel, y| {
        let mut kept = CHANNEL_BUFFER.take();
        kept.resize(kept.len().max(padded.channel_len() + SLACK), 0.0);
        let to = &mut kept[..padded.channel_len() + SLACK];
        padded.fill(&x[channel / multiplier * volume..][..volume], outside, to);
        work(channel, to, y);
        CHANNEL_BUFFER.set(kept);
    });
}

pub(crate) fn depthwise(call: &NativeCall<'_>, geometry: Geometry, given: &Depthwise<'_>, y: &mut [f32]) {
    let taps = geometry.taps();
    let padded = Padded::new(geometry);
    let (chunks, offsets) = (chunks(geometry, &padded), geometry.each_tap().map(|tap| padded.offset(tap)).collect::<Vec<_>>());
    let threads = call.threads_for(y.len() * taps / 4);
    let pixels = geometry.pixels();
    for_each_padded((given.x, geometry, 0.0), (y, given.multiplier, threads), &padded, |index, source, y| {
        let channel = index % given.channels_out;
        let residual = given.residual.map(|residual| &residual[index * pixels..][..pixels]);
        let finish = Finish { bias: given.bias.map(|bias| &bias[channel..]), residual, pixels, activation: given.activation }.row(0, 0);
        let filter = &given.filters[channel * taps..][..taps];
        simd(
            #[inline(always)]
            || {
                let (passes, rest) = chunks.as_chunks::<CHUNKS_PER_PASS>();
                passes.iter().for_each(
                    #[inline(always)]
                    |chunks| sums(chunks, filter, &offsets, source, finish, y),
                );
                rest.iter().for_each(
                    #[inline(always)]
                    |chunk| sums(&[*chunk], filter, &offsets, source, finish, y),
                );
            },
        );
    });
}

/// The sums of some chunks.
#[inline(always)]
fn sums<const CHUNKS: usize>(chunks: &[Chunk; CHUNKS], filter: &[f32], offsets: &[usize], source: &[f32], finish: FinishRow<'_>, y: &mut [f32]) {
    let mut sums = [[0.0; LANES]; CHUNKS];
    for (weight, offset) in filter.iter().zip(offsets) {
        for (sums, chunk) in sums.iter_mut().zip(chunks) {
            let x: &[f32; LANES] = source[chunk.place + offset..].first_chunk().expect("invariant: the source has slack after its last element");
            for lane in 0..LANES {
                sums[lane] = weight.mul_add(x[lane], sums[lane]);
            }
        }
    }
    for (sums, chunk) in sums.iter().zip(chunks) {
        finish.store(sums, chunk.at, &mut y[chunk.at..][..chunk.count]);
    }
}
