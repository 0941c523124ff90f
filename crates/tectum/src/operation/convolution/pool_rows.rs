//! Maxima and sums over windows by whole rows: along each row of the input first, then over the rows that an output reads. A row serves every output row that
//! reads it, and elements count in the order of the window.

use std::cell::RefCell;
use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{NativeCall, for_each_chunk, with_simd};
use crate::operation::convolution::chunks::{LANES, even, load, store_chunk};
use crate::operation::convolution::depthwise::channels_per_task;
use crate::operation::convolution::window::Geometry;

/// What is made of the elements of a window.
pub(crate) trait Pool: Sync {
    /// Of none, and what is outside the input counts as.
    const NOTHING: f32;
    /// Of one more.
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s;
}

pub(crate) struct Maximum;

impl Pool for Maximum {
    const NOTHING: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s {
        simd.select_f32s(exceeds(simd, x, made), x, made)
    }
}

/// Where an element replaces the maximum before it. A NaN replaces what is there, and nothing but another NaN replaces it.
#[inline(always)]
pub(crate) fn exceeds<S: Simd>(simd: S, x: S::f32s, best: S::f32s) -> S::m32s {
    simd.or_m32s(simd.greater_than_f32s(x, best), simd.not_m32s(simd.equal_f32s(x, x)))
}

pub(crate) struct Sum;

impl Pool for Sum {
    const NOTHING: f32 = 0.0;

    #[inline(always)]
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s {
        simd.add_f32s(made, x)
    }
}

thread_local! {
    /// A padded row, and what is made of each row of a channel, kept from launch to launch.
    static ROW_BUFFER: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The rows that outputs read.
pub(crate) struct PoolRows {
    geometry: Geometry,
    /// Rows of the input that are read, in order.
    rows: Vec<usize>,
    /// For each row of the output the places in `rows` of those it reads, from one index on and to the next.
    reads: Vec<usize>,
    firsts: Vec<usize>,
    /// Elements of a padded row, and of what is made of it: whole vectors.
    row_len: usize,
    width: usize,
}

impl PoolRows {
    pub fn new(geometry: Geometry) -> Self {
        let Geometry { size_in, size_out, kernel, stride, dilation, pad } = geometry;
        let inside = |axis: usize, out: usize| {
            let taps = (0..kernel[axis]).map(move |tap| (out * stride[axis] + tap * dilation[axis]).wrapping_sub(pad[axis]));
            taps.filter(move |at| *at < size_in[axis])
        };
        let (mut reads, mut firsts) = (Vec::new(), vec![0]);
        for (plane, row) in (0..size_out[0]).flat_map(|plane| (0..size_out[1]).map(move |row| (plane, row))) {
            reads.extend(inside(0, plane).flat_map(|plane| inside(1, row).map(move |row| plane * size_in[1] + row)));
            firsts.push(reads.len());
        }
        let mut rows = reads.clone();
        rows.sort_unstable();
        rows.dedup();
        let mut places = vec![0; size_in[0] * size_in[1]];
        rows.iter().enumerate().for_each(|(place, row)| places[*row] = place);
        reads.iter_mut().for_each(|read| *read = places[*read]);
        let width = size_out[2].next_multiple_of(LANES);
        let row_len = (width * stride[2] + (kernel[2] - 1) * dilation[2] + LANES).max(pad[2] + size_in[2]);
        Self { geometry, rows, reads, firsts, row_len, width }
    }

    /// Computes `y` [channels, outputs] of `x`, each result divided by its count if there are any: of one channel and 16 more, which may have any value.
    pub fn run<P: Pool>(&self, call: &NativeCall<'_>, x: &[f32], counts: Option<&[f32]>, y: &mut [f32]) {
        let (volume, pixels) = (self.geometry.volume(), self.geometry.pixels());
        let threads = call.threads_for(y.len().saturating_mul(self.geometry.taps()) / 4);
        let each = channels_per_task(y.len() / pixels, threads);
        for_each_chunk(y, each * pixels, threads, |task, y| {
            let mut kept = ROW_BUFFER.take();
            let len = self.row_len + self.rows.len() * self.width;
            kept.resize(kept.len().max(len), 0.0);
            let (row, made) = kept[..len].split_at_mut(self.row_len);
            row.fill(P::NOTHING);
            for (channel, y) in x[task * each * volume..].chunks_exact(volume).zip(y.chunks_exact_mut(pixels)) {
                with_simd(Channel::<P> { layout: self, channel, counts, row: &mut *row, made: &mut *made, y, pool: PhantomData });
            }
            ROW_BUFFER.set(kept);
        });
    }
}

/// The windows of a channel.
struct Channel<'a, P> {
    layout: &'a PoolRows,
    channel: &'a [f32],
    counts: Option<&'a [f32]>,
    row: &'a mut [f32],
    made: &'a mut [f32],
    y: &'a mut [f32],
    pool: PhantomData<P>,
}

impl<P: Pool> WithSimd for Channel<'_, P> {
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

impl<P: Pool> Channel<'_, P> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        match self.layout.geometry.stride[2] {
            1 => self.along_rows::<S, VECTORS, 1>(simd),
            2 => self.along_rows::<S, VECTORS, 2>(simd),
            _ => self.along_rows::<S, VECTORS, 0>(simd),
        }
        let PoolRows { geometry: Geometry { size_out: [_, _, columns], .. }, reads, firsts, width, .. } = self.layout;
        for (row, (first, end)) in firsts.iter().zip(&firsts[1..]).enumerate() {
            for column in (0..*columns).step_by(LANES) {
                let mut sums = [simd.splat_f32s(P::NOTHING); VECTORS];
                for read in &reads[*first..*end] {
                    let x = load::<S, VECTORS>(self.made, read * width + column);
                    for vector in 0..VECTORS {
                        sums[vector] = P::with(simd, sums[vector], x[vector]);
                    }
                }
                let at = row * columns + column;
                if let Some(counts) = self.counts {
                    let counts = load::<S, VECTORS>(counts, at);
                    for vector in 0..VECTORS {
                        sums[vector] = simd.div_f32s(sums[vector], counts[vector]);
                    }
                }
                store_chunk::<f32>(bytemuck::cast_slice(&sums), at, LANES.min(columns - column), self.y);
            }
        }
    }

    /// Over the elements of each row of the input; `STRIDE` 0 is any.
    #[inline(always)]
    fn along_rows<S: Simd, const VECTORS: usize, const STRIDE: usize>(&mut self, simd: S) {
        let PoolRows { geometry: Geometry { size_in, kernel, dilation, pad, stride, .. }, rows, width, .. } = self.layout;
        let padded = &mut *self.row;
        for (row, made) in rows.iter().zip(self.made.chunks_exact_mut(*width)) {
            padded[pad[2]..][..size_in[2]].copy_from_slice(&self.channel[row * size_in[2]..][..size_in[2]]);
            for (made, first) in made.as_chunks_mut::<LANES>().0.iter_mut().zip((0..).step_by(LANES * stride[2])) {
                let mut sums = [simd.splat_f32s(P::NOTHING); VECTORS];
                for tap in 0..kernel[2] {
                    let at = first + tap * dilation[2];
                    let x: [S::f32s; VECTORS] = match STRIDE {
                        1 => load::<S, VECTORS>(padded, at),
                        2 => bytemuck::cast(even(simd, padded[at..].first_chunk().expect("invariant: a row ends with whole vectors"))),
                        _ => {
                            let x = &padded[at..];
                            let x: [f32; LANES] = std::array::from_fn(
                                #[inline(always)]
                                |lane| x[lane * stride[2]],
                            );
                            bytemuck::cast(x)
                        }
                    };
                    for vector in 0..VECTORS {
                        sums[vector] = P::with(simd, sums[vector], x[vector]);
                    }
                }
                *made = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&sums));
            }
        }
    }
}
