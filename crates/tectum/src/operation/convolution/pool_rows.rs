//! Maxima and sums over windows by whole rows: along each row of the input first, then over the
//! rows that an output reads. A row serves every output row that reads it, and elements count in
//! the order of the window.

use std::cell::RefCell;
use std::marker::PhantomData;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{NativeCall, by_vectors, for_each_chunk, simd, with_simd};
use crate::operation::convolution::chunks::{LANES, even, load, store_chunk};
use crate::operation::convolution::depthwise::channels_per_task;
use crate::operation::convolution::window::Geometry;

/// What is made of the elements of a window.
pub(crate) trait Pool: Sync {
    /// Of none, and what is outside the input counts as.
    const NOTHING: f32;
    /// Whether `OfNumbers` is another.
    const TESTS_NAN: bool;
    /// The same for channels without a NaN.
    type OfNumbers: Pool;
    /// Of one more.
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s;
}

pub(crate) struct Maximum;

impl Pool for Maximum {
    const NOTHING: f32 = f32::NEG_INFINITY;
    const TESTS_NAN: bool = true;
    type OfNumbers = MaximumOfNumbers;

    #[inline(always)]
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s {
        simd.select_f32s(exceeds(simd, x, made), x, made)
    }
}

/// Where an element replaces the maximum before it. A NaN replaces what is there, and nothing but
/// another NaN replaces it.
#[inline(always)]
pub(crate) fn exceeds<S: Simd>(simd: S, x: S::f32s, best: S::f32s) -> S::m32s {
    simd.or_m32s(
        simd.greater_than_f32s(x, best),
        simd.not_m32s(simd.equal_f32s(x, x)),
    )
}

pub(crate) struct MaximumOfNumbers;

impl Pool for MaximumOfNumbers {
    const NOTHING: f32 = f32::NEG_INFINITY;
    const TESTS_NAN: bool = false;
    type OfNumbers = Self;

    #[inline(always)]
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s {
        simd.select_f32s(simd.greater_than_f32s(x, made), x, made)
    }
}

pub(crate) struct Sum;

impl Pool for Sum {
    const NOTHING: f32 = 0.0;
    const TESTS_NAN: bool = false;
    type OfNumbers = Self;

    #[inline(always)]
    fn with<S: Simd>(simd: S, made: S::f32s, x: S::f32s) -> S::f32s {
        simd.add_f32s(made, x)
    }
}

/// Elements that a vector of results reads of a row, with strides and windows that are compiled for
/// themselves.
const SPAN: usize = 3 * LANES;

thread_local! {
    /// What is made of each row of a channel, kept from launch to launch.
    static ROW_BUFFER: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// The rows that outputs read.
pub(crate) struct PoolRows {
    geometry: Geometry,
    /// Rows of the input that are read, in order.
    rows: Vec<usize>,
    /// For each row of the output the places in `rows` of those it reads, from one index on and to
    /// the next.
    reads: Vec<usize>,
    firsts: Vec<usize>,
    /// Elements of what is made of a row: whole vectors.
    width: usize,
}

impl PoolRows {
    pub fn new(geometry: Geometry) -> Self {
        let Geometry {
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
        } = geometry;
        let inside = |axis: usize, out: usize| {
            let taps = (0..kernel[axis]).map(move |tap| {
                (out * stride[axis] + tap * dilation[axis]).wrapping_sub(pad[axis])
            });
            taps.filter(move |at| *at < size_in[axis])
        };
        let (mut reads, mut firsts) = (Vec::new(), vec![0]);
        for (plane, row) in
            (0..size_out[0]).flat_map(|plane| (0..size_out[1]).map(move |row| (plane, row)))
        {
            reads.extend(
                inside(0, plane)
                    .flat_map(|plane| inside(1, row).map(move |row| plane * size_in[1] + row)),
            );
            firsts.push(reads.len());
        }
        let mut rows = reads.clone();
        rows.sort_unstable();
        rows.dedup();
        let mut places = vec![0; size_in[0] * size_in[1]];
        rows.iter()
            .enumerate()
            .for_each(|(place, row)| places[*row] = place);
        reads.iter_mut().for_each(|read| *read = places[*read]);
        let width = size_out[2].next_multiple_of(LANES);
        Self {
            geometry,
            rows,
            reads,
            firsts,
            width,
        }
    }

    /// Computes `y` [channels, outputs] of `x`, each result divided by its count if there are any:
    /// of one channel and 16 more, which may have any value.
    pub fn run<P: Pool>(
        &self,
        call: &NativeCall<'_>,
        x: &[f32],
        counts: Option<&[f32]>,
        y: &mut [f32],
    ) {
        let (volume, pixels) = (self.geometry.volume(), self.geometry.pixels());
        let threads = call.threads_for(y.len().saturating_mul(self.geometry.taps()) / 4);
        let each = channels_per_task(y.len() / pixels, threads);
        for_each_chunk(y, each * pixels, threads, |task, y| {
            let mut kept = ROW_BUFFER.take();
            let len = self.rows.len() * self.width + LANES;
            kept.resize(kept.len().max(len), 0.0);
            let made = &mut kept[..len];
            for (channel, y) in x[task * each * volume..]
                .chunks_exact(volume)
                .zip(y.chunks_exact_mut(pixels))
            {
                let made = &mut *made;
                let has_nan = P::TESTS_NAN
                    && simd(
                        #[inline(always)]
                        || {
                            channel
                                .iter()
                                .fold(false, |has_nan, x| has_nan | x.is_nan())
                        },
                    );
                if has_nan {
                    with_simd(Channel::<P> {
                        layout: self,
                        channel,
                        counts,
                        made,
                        y,
                        pool: PhantomData,
                    });
                } else {
                    with_simd(Channel::<P::OfNumbers> {
                        layout: self,
                        channel,
                        counts,
                        made,
                        y,
                        pool: PhantomData,
                    });
                }
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
    made: &'a mut [f32],
    y: &'a mut [f32],
    pool: PhantomData<P>,
}

impl<P: Pool> WithSimd for Channel<'_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        by_vectors!(S, self.make(simd))
    }
}

impl<P: Pool> Channel<'_, P> {
    #[inline(always)]
    fn make<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        let Geometry {
            size_out: [.., columns],
            kernel,
            stride,
            dilation,
            ..
        } = self.layout.geometry;
        match (stride[2], kernel[2], dilation[2]) {
            (1, 2, 1) => self.along_rows::<S, VECTORS, 1, 2>(simd),
            (1, 3, 1) => self.along_rows::<S, VECTORS, 1, 3>(simd),
            (2, 2, 1) => self.along_rows::<S, VECTORS, 2, 2>(simd),
            (2, 3, 1) => self.along_rows::<S, VECTORS, 2, 3>(simd),
            (1, ..) => self.along_rows::<S, VECTORS, 1, 0>(simd),
            (2, ..) => self.along_rows::<S, VECTORS, 2, 0>(simd),
            _ => self.along_rows::<S, VECTORS, 0, 0>(simd),
        }
        let (firsts, layout) = (&self.layout.firsts, self.layout);
        for (row, (first, end)) in firsts.iter().zip(&firsts[1..]).enumerate() {
            let reads = &layout.reads[*first..*end];
            match reads.len() {
                2 => self.over_rows::<S, VECTORS, 2>(simd, reads, row * columns),
                3 => self.over_rows::<S, VECTORS, 3>(simd, reads, row * columns),
                _ => self.over_rows::<S, VECTORS, 0>(simd, reads, row * columns),
            }
        }
    }

    /// A row of the output from one place on, of as many rows as it reads; `READS` 0 is any.
    #[inline(always)]
    fn over_rows<S: Simd, const VECTORS: usize, const READS: usize>(
        &mut self,
        simd: S,
        reads: &[usize],
        at: usize,
    ) {
        let (columns, width) = (self.layout.geometry.size_out[2], self.layout.width);
        let row = |read: usize| &self.made[read * width..][..width];
        let rows: [&[f32]; READS] = std::array::from_fn(
            #[inline(always)]
            |index| row(reads[index]),
        );
        for column in (0..columns).step_by(LANES) {
            let mut sums = [simd.splat_f32s(P::NOTHING); VECTORS];
            for row in rows {
                sums = with_each::<S, P, VECTORS>(simd, sums, load::<S, VECTORS>(row, column));
            }
            if READS == 0 {
                for read in reads {
                    sums = with_each::<S, P, VECTORS>(
                        simd,
                        sums,
                        load::<S, VECTORS>(row(*read), column),
                    );
                }
            }
            if let Some(counts) = self.counts {
                let counts = load::<S, VECTORS>(counts, at + column);
                for vector in 0..VECTORS {
                    sums[vector] = simd.div_f32s(sums[vector], counts[vector]);
                }
            }
            store_chunk::<f32>(
                bytemuck::cast_slice(&sums),
                at + column,
                LANES.min(columns - column),
                self.y,
            );
        }
    }

    /// Over the elements of each row of the input; `STRIDE` 0 is any, and `TAPS`.
    #[inline(always)]
    fn along_rows<S: Simd, const VECTORS: usize, const STRIDE: usize, const TAPS: usize>(
        &mut self,
        simd: S,
    ) {
        let PoolRows {
            geometry:
                Geometry {
                    size_in,
                    size_out,
                    kernel,
                    dilation,
                    pad,
                    stride,
                    ..
                },
            rows,
            width,
            ..
        } = self.layout;
        let (columns, size, pad, stride, dilation) =
            (size_out[2], size_in[2], pad[2], stride[2], dilation[2]);
        let (taps, reach) = if TAPS > 0 {
            (TAPS, TAPS)
        } else {
            (kernel[2], (kernel[2] - 1) * dilation + 1)
        };
        // The columns whose windows are inside. Sixteen of them read this far from the first, what
        // lies after the row in lanes that do not count.
        let first = pad.div_ceil(stride).min(columns);
        let end = ((size + pad + stride).saturating_sub(reach) / stride).clamp(first, columns);
        let span = if TAPS > 0 {
            SPAN
        } else {
            LANES * stride + reach
        };
        for (place, row) in rows.iter().enumerate() {
            let made = &mut self.made[place * width..][..width + LANES];
            let mut column = first;
            while column < end {
                let from = row * size + column * stride - pad;
                let Some(x) = self.channel.get(from..from + span) else {
                    break;
                };
                let mut sums = [simd.splat_f32s(P::NOTHING); VECTORS];
                if TAPS > 0 {
                    // Of known length: without a test for each element of the window.
                    let x: &[f32; SPAN] = x
                        .first_chunk()
                        .expect("invariant: so many elements were taken");
                    for tap in 0..TAPS {
                        sums = with_each::<S, P, VECTORS>(
                            simd,
                            sums,
                            strided::<S, VECTORS, STRIDE>(simd, x, tap, stride),
                        );
                    }
                } else {
                    for tap in 0..taps {
                        sums = with_each::<S, P, VECTORS>(
                            simd,
                            sums,
                            strided::<S, VECTORS, STRIDE>(simd, x, tap * dilation, stride),
                        );
                    }
                }
                let to: &mut [f32; LANES] = made[column..]
                    .first_chunk_mut()
                    .expect("invariant: a row of results has slack");
                *to = bytemuck::pod_read_unaligned(bytemuck::bytes_of(&sums));
                column += LANES;
            }
            let channel = &self.channel[row * size..][..size];
            for column in (0..first).chain(column.min(end)..columns) {
                let mut sum = simd.splat_f32s(P::NOTHING);
                for at in (0..taps).map(|tap| (column * stride + tap * dilation).wrapping_sub(pad))
                {
                    if let Some(x) = channel.get(at) {
                        sum = P::with(simd, sum, simd.splat_f32s(*x));
                    }
                }
                made[column] = bytemuck::cast_slice::<S::f32s, f32>(&[sum])[0];
            }
        }
    }
}

#[inline(always)]
fn with_each<S: Simd, P: Pool, const VECTORS: usize>(
    simd: S,
    mut made: [S::f32s; VECTORS],
    x: [S::f32s; VECTORS],
) -> [S::f32s; VECTORS] {
    for vector in 0..VECTORS {
        made[vector] = P::with(simd, made[vector], x[vector]);
    }
    made
}

/// Sixteen elements from one place on with a stride, `STRIDE` where that is not 0.
#[inline(always)]
fn strided<S: Simd, const VECTORS: usize, const STRIDE: usize>(
    simd: S,
    x: &[f32],
    at: usize,
    stride: usize,
) -> [S::f32s; VECTORS] {
    match STRIDE {
        1 => load::<S, VECTORS>(x, at),
        2 => bytemuck::cast(even(
            simd,
            x[at..]
                .first_chunk()
                .expect("invariant: a row ends with slack"),
        )),
        _ => {
            let x: [f32; LANES] = std::array::from_fn(
                #[inline(always)]
                |lane| x[at + lane * stride],
            );
            bytemuck::cast(x)
        }
    }
}
