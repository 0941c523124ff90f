//! Channels of an input with their padding, laid out so that what neighbouring outputs read for one
//! element of the window is side by side.

use crate::kernel::native::simd;
use crate::operation::convolution::window::Geometry;

/// Elements after the last one that may be read and not used.
pub(crate) const SLACK: usize = 16;

/// The layout of a padded channel. With a stride along the width a row is split by the remainders
/// of positions: the elements at remainder 0 first, then those at 1, and so on, as far as the
/// window reads them.
#[derive(Debug, Clone)]
pub(crate) struct Padded {
    geometry: Geometry,
    /// Planes and rows that the window reads.
    sizes: [usize; 2],
    /// The remainders along the width that the window reads.
    phases: Vec<Phase>,
    /// Elements of a row at one remainder.
    width: usize,
    /// Whether it is the layout of the input itself.
    in_place: bool,
    /// Whether a window reads each plane, and each row.
    read: [Vec<bool>; 2],
}

/// A remainder along the width: the places in the row that are elements of the input.
#[derive(Debug, Clone, Copy)]
struct Phase {
    remainder: usize,
    /// The first place.
    first: usize,
    /// The element of the input there.
    start: usize,
    count: usize,
}

impl Phase {
    fn new(geometry: &Geometry, remainder: usize, width: usize) -> Self {
        let (stride, pad) = (geometry.stride[2], geometry.pad[2]);
        // Position remainder + stride · i of the padded row is position remainder + stride · i −
        // pad of the input.
        let first = pad.saturating_sub(remainder).div_ceil(stride).min(width);
        let start = (remainder + stride * first).saturating_sub(pad);
        let count = geometry.size_in[2]
            .saturating_sub(start)
            .div_ceil(stride)
            .min(width - first);
        Self {
            remainder,
            first,
            start,
            count,
        }
    }
}

impl Padded {
    pub fn new(geometry: Geometry) -> Self {
        let Geometry {
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
        } = geometry;
        let reach = |axis: usize| {
            (size_out[axis] - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        };
        let sizes = [reach(0), reach(1)];
        let mut phases: Vec<usize> = (0..kernel[2])
            .map(|tap| tap * dilation[2] % stride[2])
            .collect();
        phases.sort_unstable();
        phases.dedup();
        let width = size_out[2] + (kernel[2] - 1) * dilation[2] / stride[2];
        let phases: Vec<Phase> = phases
            .into_iter()
            .map(|remainder| Phase::new(&geometry, remainder, width))
            .collect();
        let in_place =
            pad == [0; 3] && stride[2] == 1 && (0..3).all(|axis| reach(axis) <= size_in[axis]);
        if in_place {
            let sizes = [size_in[0], size_in[1]];
            return Self {
                geometry,
                sizes,
                phases,
                width: size_in[2],
                in_place,
                read: sizes.map(|size| vec![true; size]),
            };
        }
        let read = [0, 1].map(|axis| {
            (0..sizes[axis])
                .map(|at| is_read(&geometry, axis, at))
                .collect()
        });
        Self {
            geometry,
            sizes,
            phases,
            width,
            in_place,
            read,
        }
    }

    /// Whether the layout is that of the input, which then need not be copied.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Elements of a row.
    pub fn row_len(&self) -> usize {
        self.phases.len() * self.width
    }

    /// Elements of a channel.
    pub fn channel_len(&self) -> usize {
        self.sizes[0] * self.sizes[1] * self.row_len()
    }

    /// Elements from an output's own place to what it reads for an element of the window.
    pub fn offset(&self, [plane, row, column]: [usize; 3]) -> usize {
        let Geometry {
            stride, dilation, ..
        } = self.geometry;
        let at = column * dilation[2];
        let phase = self
            .phases
            .iter()
            .position(|phase| phase.remainder == at % stride[2])
            .expect("invariant: every remainder that is read is there");
        (plane * dilation[0] * self.sizes[1] + row * dilation[1]) * self.row_len()
            + phase * self.width
            + at / stride[2]
    }

    /// The place of the first output of a row.
    pub fn base(&self, plane: usize, row: usize) -> usize {
        let stride = self.geometry.stride;
        (plane * stride[0] * self.sizes[1] + row * stride[1]) * self.row_len()
    }

    /// Copies a channel with `outside` as its padding. Rows that no window reads keep what they
    /// were.
    pub fn fill(&self, channel: &[f32], outside: f32, to: &mut [f32]) {
        self.copy(channel, Some(outside), to);
    }

    /// Copies a channel where another was: its padding stays.
    pub fn refill(&self, channel: &[f32], to: &mut [f32]) {
        self.copy(channel, None, to);
    }

    fn copy(&self, channel: &[f32], outside: Option<f32>, to: &mut [f32]) {
        let Geometry { size_in, pad, .. } = self.geometry;
        simd(
            #[inline(always)]
            || {
                for (row, to) in to[..self.channel_len()]
                    .chunks_exact_mut(self.row_len())
                    .enumerate()
                {
                    let (plane, row) = (row / self.sizes[1], row % self.sizes[1]);
                    if !self.read[0][plane] || !self.read[1][row] {
                        continue;
                    }
                    let (plane, row) = (plane.wrapping_sub(pad[0]), row.wrapping_sub(pad[1]));
                    if plane < size_in[0] && row < size_in[1] {
                        self.copy_row(
                            &channel[(plane * size_in[1] + row) * size_in[2]..][..size_in[2]],
                            outside,
                            to,
                        );
                    } else if let Some(outside) = outside {
                        to.fill(outside);
                    }
                }
            },
        );
    }

    #[inline(always)]
    fn copy_row(&self, from: &[f32], outside: Option<f32>, to: &mut [f32]) {
        let stride = self.geometry.stride[2];
        for (
            &Phase {
                first,
                start,
                count,
                ..
            },
            to,
        ) in self.phases.iter().zip(to.chunks_exact_mut(self.width))
        {
            if let Some(outside) = outside {
                to[..first].fill(outside);
                to[first + count..].fill(outside);
            }
            let (from, to) = (
                from.get(start..).unwrap_or_default(),
                &mut to[first..first + count],
            );
            match stride {
                1 => to.copy_from_slice(&from[..count]),
                2 => every::<2>(from, to),
                4 => every::<4>(from, to),
                _ => to
                    .iter_mut()
                    .zip(from.iter().step_by(stride))
                    .for_each(|(to, from)| *to = *from),
            }
        }
    }
}

/// Whether a window reads a padded position along an axis.
fn is_read(geometry: &Geometry, axis: usize, at: usize) -> bool {
    let Geometry {
        kernel,
        stride,
        dilation,
        size_out,
        ..
    } = geometry;
    if dilation[axis] == 1 && kernel[axis] >= stride[axis] {
        return true;
    }
    let reads = |tap: usize| {
        at.checked_sub(tap * dilation[axis])
            .is_some_and(|from| from % stride[axis] == 0 && from / stride[axis] < size_out[axis])
    };
    (0..kernel[axis]).any(reads)
}

/// Copies every `STRIDE`-th element.
#[inline(always)]
fn every<const STRIDE: usize>(from: &[f32], to: &mut [f32]) {
    let (groups, rest) = from.as_chunks::<STRIDE>();
    for (to, group) in to.iter_mut().zip(groups) {
        *to = group[0];
    }
    if let (Some(to), Some(from)) = (to.get_mut(groups.len()), rest.first()) {
        *to = *from;
    }
}
