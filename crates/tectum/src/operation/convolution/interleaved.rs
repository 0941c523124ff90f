//! Convolutions in which each filter reads one channel, with sixteen filters as the lanes of a
//! vector.
//!
//! Some rows of sixteen channels are transposed to [positions, 16] with their padding, and their
//! sums back: no lane is empty where rows are short, and a stride costs nothing. 960 × 7 × 7 with a
//! kernel of 5 × 5 takes a quarter of the time that vectors along the rows take.

use std::cell::RefCell;

use pulp::{Simd, WithSimd};

use crate::kernel::native::{by_vectors, with_simd};
use crate::operation::convolution::chunks::LANES;
use crate::operation::convolution::window::Geometry;
use crate::operation::product::strip::{CacheLine, MAX_PANELS_PER_PASS, panels_per_pass};
use crate::operation::product::transpose_16x16::transpose_16x16;

/// Positions of padded rows that stay in L2 with their results: 256 KiB of sixteen channels.
const MAX_POSITIONS: usize = 4096;
/// Minimum channels: with fewer most lanes would be empty.
const MIN_CHANNELS: usize = 8;
/// Neighbouring outputs of a row whose sums are in registers: rows of images are mostly multiples
/// of it.
const SEGMENT: usize = 7;

/// Maximum elements of a row that a segment reads: with stride 2 and five elements of the window.
const MAX_WINDOW: usize = 2 * (SEGMENT - 1) + 5;

/// An element of sixteen channels.
type Lanes = [f32; LANES];

thread_local! {
    /// Positions, sums and weights of sixteen channels, kept from launch to launch.
    static LANE_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

/// The layout of sixteen interleaved channels.
pub(crate) struct Interleaved {
    geometry: Geometry,
    bands: Vec<Band>,
    /// Elements of the window, from the first position that an output reads.
    offsets: Vec<usize>,
    /// Positions of the largest band, and its outputs.
    positions: usize,
    outputs: usize,
}

/// Some rows of the output.
struct Band {
    /// Elements of a channel of the input before those that it reads, and of the output before its
    /// own.
    first: [usize; 2],
    /// The position of each element that it reads; one beyond the others for those of no window.
    places: Vec<usize>,
    /// The rows before those of the input, and these.
    padding: [usize; 2],
    /// The first position that each row of outputs reads.
    starts: Vec<usize>,
}

impl Interleaved {
    /// None where the channels are too few, or a row or several planes too large.
    pub fn new(geometry: Geometry, channels: usize) -> Option<Self> {
        let Geometry {
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
        } = geometry;
        let reach = |axis: usize, outputs: usize| {
            (outputs - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        };
        let (planes, columns) = (reach(0, size_out[0]), reach(2, size_out[2]));
        let room = MAX_POSITIONS / planes.checked_mul(columns)?;
        let rows = if room < reach(1, 1) {
            0
        } else {
            size_out[1].min((room - reach(1, 1)) / stride[1] + 1)
        };
        // Without vectors of sixteen lanes the transposition takes longer than what it saves,
        // except where rows are shorter than that.
        let is_worthwhile = channels >= MIN_CHANNELS
            && (panels_per_pass() == MAX_PANELS_PER_PASS || size_out[2] < LANES);
        // Rows of several planes do not follow each other.
        if !is_worthwhile || rows == 0 || (size_out[0] > 1 || size_in[0] > 1) && rows < size_out[1]
        {
            return None;
        }
        let sizes = [planes, reach(1, rows), columns];
        let positions = sizes.iter().product();
        let place = move |at: [usize; 3]| (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
        let band = |row: usize| {
            let count = rows.min(size_out[1] - row);
            // The input's rows that it reads, and the padding before them.
            let from = (row * stride[1]).saturating_sub(pad[1]).min(size_in[1]);
            let to = (row * stride[1] + reach(1, count))
                .saturating_sub(pad[1])
                .clamp(from, size_in[1]);
            let pad = [
                pad[0],
                (pad[1] + from).saturating_sub(row * stride[1]),
                pad[2],
            ];
            let mut places = Vec::with_capacity(size_in[0] * (to - from) * size_in[2]);
            for (plane, row) in (0..size_in[0])
                .flat_map(|plane| (0..to - from).map(move |row| (plane + pad[0], row + pad[1])))
            {
                let is_read = plane < sizes[0] && row < sizes[1];
                let inside = if is_read {
                    size_in[2].min(sizes[2].saturating_sub(pad[2]))
                } else {
                    0
                };
                let first = place([plane, row, pad[2]]);
                places.extend(first..first + inside);
                places.resize(places.len() + size_in[2] - inside, positions);
            }
            let starts = (0..size_out[0]).flat_map(|plane| {
                (0..count).map(move |row| place([plane * stride[0], row * stride[1], 0]))
            });
            Band {
                first: [from * size_in[2], row * size_out[2]],
                padding: [pad[1], to - from],
                places,
                starts: starts.collect(),
            }
        };
        let bands = (0..size_out[1]).step_by(rows).map(band).collect();
        let offsets = geometry
            .each_tap()
            .map(|tap| place(std::array::from_fn(|axis| tap[axis] * dilation[axis])))
            .collect();
        Some(Self {
            geometry,
            bands,
            offsets,
            positions,
            outputs: size_out[0] * rows * size_out[2],
        })
    }

    /// The sums of channels `y` [channels, pixels], sixteen at a time: `channel` is that of the
    /// input that each reads, `filters` [channels, taps].
    pub fn sums<'a>(
        &self,
        channel: impl Fn(usize) -> &'a [f32],
        filters: &[f32],
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) {
        let (taps, pixels) = (self.offsets.len(), self.geometry.pixels());
        let mut kept = LANE_BUFFER.take();
        let lines = self.positions + 1 + self.outputs + taps;
        kept.resize(kept.len().max(lines), CacheLine::ZERO);
        let buffer: &mut [Lanes] = bytemuck::cast_slice_mut(&mut kept[..lines]);
        let (plane, buffer) = buffer.split_at_mut(self.positions + 1);
        let (sums, weights) = buffer.split_at_mut(self.outputs);
        let mut padding = None;
        for (group, y) in y.chunks_mut(LANES * pixels).enumerate() {
            let count = y.len() / pixels;
            // Without a bias −0, whose addition changes nothing.
            let mut lanes = [-0.0; LANES];
            if let Some(bias) = bias {
                lanes[..count].copy_from_slice(&bias[group * LANES..][..count]);
            }
            let (mut channels, mut rows) = ([&[][..]; LANES], [&[][..]; LANES]);
            for lane in 0..LANES {
                // Lanes without a channel repeat the last.
                let index = group * LANES + lane.min(count - 1);
                channels[lane] = channel(index);
                rows[lane] = &filters[index * taps..][..taps];
            }
            with_simd(Sums {
                layout: self,
                channels,
                filters: rows,
                bias: lanes,
                plane: &mut *plane,
                padding: &mut padding,
                sums: &mut *sums,
                weights: &mut *weights,
                y,
            });
        }
        LANE_BUFFER.set(kept);
    }
}

/// Passes on the elements of sixteen rows of one length, place by place; those at the end may come
/// twice.
#[inline(always)]
fn interleave<S: Simd>(simd: S, rows: [&[f32]; LANES], mut to: impl FnMut(usize, Lanes)) {
    let len = rows[0].len();
    for first in (0..len).step_by(LANES) {
        let first = first.min(len.saturating_sub(LANES));
        let mut short = [[0.0f32; LANES]; LANES];
        let squares: [&[u32; LANES]; LANES] = if len < LANES {
            short
                .iter_mut()
                .zip(rows)
                .for_each(|(short, row)| short[..len].copy_from_slice(row));
            short.each_ref().map(bytemuck::cast_ref)
        } else {
            rows.map(
                #[inline(always)]
                |row| {
                    bytemuck::cast_ref(
                        row[first..]
                            .first_chunk::<LANES>()
                            .expect("invariant: a row has so many elements"),
                    )
                },
            )
        };
        transpose_16x16(
            simd,
            squares,
            #[inline(always)]
            |at, lanes| {
                if first + at < len {
                    to(first + at, bytemuck::cast(lanes));
                }
            },
        );
    }
}

/// One of the vectors of sixteen lanes.
#[inline(always)]
fn lanes<S: Simd>(lanes: &Lanes, vector: usize) -> S::f32s {
    bytemuck::cast_slice::<f32, S::f32s>(lanes)[vector]
}

/// The sums of at most sixteen channels.
struct Sums<'a> {
    layout: &'a Interleaved,
    channels: [&'a [f32]; LANES],
    filters: [&'a [f32]; LANES],
    bias: Lanes,
    plane: &'a mut [Lanes],
    /// Of the band that the plane holds.
    padding: &'a mut Option<[usize; 2]>,
    sums: &'a mut [Lanes],
    weights: &'a mut [Lanes],
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
        let Geometry {
            size_out: [.., columns],
            kernel,
            stride,
            dilation,
            ..
        } = self.layout.geometry;
        interleave(
            simd,
            self.filters,
            #[inline(always)]
            |tap, lanes| self.weights[tap] = lanes,
        );
        for band in &self.layout.bands {
            // The channels of a band overwrite those of one with the same padding.
            if *self.padding != Some(band.padding) {
                self.plane.fill([0.0; LANES]);
                *self.padding = Some(band.padding);
            }
            let channels = self.channels.map(
                #[inline(always)]
                |channel| &channel[band.first[0]..][..band.places.len()],
            );
            interleave(
                simd,
                channels,
                #[inline(always)]
                |at, lanes| self.plane[band.places[at]] = lanes,
            );
            match (kernel[2], stride[2], dilation[2]) {
                (3, 1, 1) if columns >= SEGMENT => {
                    self.segments::<S, VECTORS, SEGMENT, 3, 1>(simd, band)
                }
                (3, 2, 1) if columns >= SEGMENT => {
                    self.segments::<S, VECTORS, SEGMENT, 3, 2>(simd, band)
                }
                (5, 1, 1) if columns >= SEGMENT => {
                    self.segments::<S, VECTORS, SEGMENT, 5, 1>(simd, band)
                }
                (5, 2, 1) if columns >= SEGMENT => {
                    self.segments::<S, VECTORS, SEGMENT, 5, 2>(simd, band)
                }
                // Element by element of the window.
                _ => self.segments::<S, VECTORS, 1, 1, 1>(simd, band),
            }
            self.store(simd, band);
        }
    }

    /// The sums of neighbouring outputs of a row, by `TAPS` elements of the window along the row at
    /// a time.
    #[inline(always)]
    fn segments<
        S: Simd,
        const VECTORS: usize,
        const OUTPUTS: usize,
        const TAPS: usize,
        const STRIDE: usize,
    >(
        &mut self,
        simd: S,
        band: &Band,
    ) {
        let Geometry {
            size_out: [.., columns],
            stride: [.., stride],
            ..
        } = self.layout.geometry;
        for (row, start) in band.starts.iter().enumerate() {
            for column in (0..columns).step_by(OUTPUTS) {
                let column = column.min(columns - OUTPUTS);
                // One vector after another: the registers of all sixteen lanes may not hold a
                // segment.
                for vector in 0..VECTORS {
                    let mut sums = [lanes::<S>(&self.bias, vector); OUTPUTS];
                    for (offset, weights) in self
                        .layout
                        .offsets
                        .iter()
                        .step_by(TAPS)
                        .zip(self.weights.as_chunks::<TAPS>().0)
                    {
                        let weights = weights.each_ref().map(
                            #[inline(always)]
                            |weights| lanes::<S>(weights, vector),
                        );
                        let x = &self.plane[start + column * stride + offset..]
                            [..(OUTPUTS - 1) * STRIDE + TAPS];
                        // In registers: several outputs read an element.
                        let mut window = [simd.splat_f32s(0.0); MAX_WINDOW];
                        for (window, x) in window.iter_mut().zip(x) {
                            *window = lanes::<S>(x, vector);
                        }
                        for tap in 0..TAPS {
                            for output in 0..OUTPUTS {
                                sums[output] = simd.mul_add_f32s(
                                    weights[tap],
                                    window[output * STRIDE + tap],
                                    sums[output],
                                );
                            }
                        }
                    }
                    for (to, sum) in self.sums[row * columns + column..][..OUTPUTS]
                        .iter_mut()
                        .zip(sums)
                    {
                        bytemuck::cast_slice_mut::<f32, S::f32s>(to)[vector] = sum;
                    }
                }
            }
        }
    }

    /// Writes the sums of a band to their channels.
    #[inline(always)]
    fn store<S: Simd>(&mut self, simd: S, band: &Band) {
        let Geometry {
            size_out: [.., columns],
            ..
        } = self.layout.geometry;
        let (pixels, outputs) = (self.layout.geometry.pixels(), band.starts.len() * columns);
        let count = self.y.len() / pixels;
        for first in (0..outputs).step_by(LANES) {
            let first = first.min(outputs.saturating_sub(LANES));
            let squares = std::array::from_fn(
                #[inline(always)]
                |at| bytemuck::cast_ref(&self.sums[(first + at).min(outputs - 1)]),
            );
            transpose_16x16(
                simd,
                squares,
                #[inline(always)]
                |lane, made| {
                    if lane < count {
                        let to = &mut self.y[lane * pixels + band.first[1] + first..];
                        let made: Lanes = bytemuck::cast(made);
                        match to.first_chunk_mut::<LANES>() {
                            Some(to) if outputs >= LANES => *to = made,
                            _ => to[..outputs].copy_from_slice(&made[..outputs]),
                        }
                    }
                },
            );
        }
    }
}
