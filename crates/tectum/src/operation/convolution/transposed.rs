//! Transposed convolutions: the sizes of input and output of a convolution exchanged.
//!
//! Each output element sums the inputs that reach it. With a stride, outputs at the same remainder
//! along each axis are reached from the same elements of the window: on the CPU they are a
//! convolution with stride 1 by these elements. Where the input has few positions the filters are
//! read in place: their product with the input has what each position adds to the outputs that it
//! reaches.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk, with_simd};
use crate::kernel::{Kernel, Prelude, TypedKernel, groups_for, loops_over};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::convolution::chunks::Finish;
use crate::operation::convolution::padded::{Padded, SLACK};
use crate::operation::convolution::patches::{Patches, Product, pack_filters};
use crate::operation::convolution::window::{Geometry, Window};
use crate::operation::product::gemm::{Activation, Epilogue};
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{
    CacheLine, ColumnMajor, MAX_PANELS_PER_PASS, StridedPanel, Strip, panels_per_pass,
};
use crate::plan::PlanBuilder;
use crate::view::View;

kernel_arguments! {
    /// `y[n, m, o] = activation(Σ w[c, m, q]·x[n, c, i] + bias[m])` over all i and q with
    /// `i·stride + q·dilation − pad = o`.
    pub(crate) struct ConvolveTransposed {
        read x: f32, read w: f32, write y: f32, optional bias: f32, optional residual: f32;
        batch: usize, channels_in: usize, channels_out: usize, groups: usize, size_in: [usize; 3], size_out: [usize; 3],
        kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3], activation: u32
    }
}

/// The sizes of a transposed convolution, and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct TransposedConvolution {
    /// Images.
    pub batch: usize,
    /// Channels of the input, a multiple of `groups`.
    pub channels_in: usize,
    /// Channels of the output, a multiple of `groups`.
    pub channels_out: usize,
    /// Groups: the output channels of each read only its input channels.
    pub groups: usize,
    /// Depth, height and width of the input.
    pub size_in: [usize; 3],
    /// The window of the convolution that is transposed: its padding is cut from the output.
    pub window: Window,
    /// Elements added at the end of each axis of the output.
    pub output_padding: [usize; 3],
    /// Applied to each element last.
    pub activation: Activation,
}

impl TransposedConvolution {
    /// Of one image in one group, with nothing after it.
    pub fn new(
        channels_in: usize,
        channels_out: usize,
        size_in: [usize; 3],
        window: Window,
    ) -> Self {
        Self {
            batch: 1,
            channels_in,
            channels_out,
            groups: 1,
            size_in,
            window,
            output_padding: [0; 3],
            activation: Activation::None,
        }
    }
}

/// Kernels without and with a bias.
static KERNELS: LazyLock<[TypedKernel<ConvolveTransposed>; 2]> = LazyLock::new(|| {
    [false, true].map(|bias| {
        define(Epilogue {
            bias,
            residual: false,
        })
    })
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS.iter().map(|kernel| &**kernel).cloned().collect()
}

fn define(epilogue: Epilogue) -> TypedKernel<ConvolveTransposed> {
    let builder =
        ConvolveTransposed::define(format!("convolution_transposed_f32{}", epilogue.suffix()))
            .prelude(Prelude::Activation);
    let builder = epilogue
        .apply(
            builder,
            include_str!("convolution_transposed_f32.wgsl"),
            "channel",
            "i",
        )
        .flops(
            |ConvolveTransposed {
                 batch,
                 channels_in,
                 channels_out,
                 groups,
                 size_in,
                 kernel,
                 ..
             }| {
                let sizes = [batch, channels_out, channels_in / groups]
                    .into_iter()
                    .chain(size_in)
                    .chain(kernel);
                2.0 * sizes.map(|size| size as f64).product::<f64>()
            },
        )
        .loops(
            |ConvolveTransposed {
                 batch,
                 channels_in,
                 channels_out,
                 groups,
                 size_out,
                 kernel,
                 ..
             },
             workgroups| {
                let items = [batch, channels_out]
                    .into_iter()
                    .chain(size_out)
                    .fold(1u64, |items, size| items.saturating_mul(size as u64));
                let turns = kernel
                    .into_iter()
                    .fold((channels_in / groups) as u64 + 1, |turns, size| {
                        turns.saturating_mul(size as u64 + 1)
                    });
                loops_over(items, workgroups.saturating_mul(256), turns)
            },
        );
    built_in(builder, convolve_transposed)
}

thread_local! {
    /// Filters, padded channels and results of a remainder, kept from launch to launch.
    static REMAINDER_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

/// Maximum positions of an input whose filters are read in place: with more the additions one by
/// one take longer than packing the filters.
const MAX_POSITIONS: usize = 32;

/// The outputs at one remainder along each axis.
struct Remainder {
    /// The first of them.
    first: [usize; 3],
    /// How many.
    size: [usize; 3],
    /// The elements of the window that reach them: the index of each in a filter.
    taps: Vec<usize>,
    patches: Patches,
}

/// One axis of a remainder: its elements of the window, and how far ahead of output j·stride each
/// reads the input.
struct Axis {
    first: usize,
    size: usize,
    taps: Vec<(usize, isize)>,
}

fn axes(geometry: &Geometry, axis: usize) -> Vec<Axis> {
    let Geometry {
        size_out,
        kernel,
        stride,
        dilation,
        pad,
        ..
    } = *geometry;
    let stride = stride[axis];
    let axis_of = |first: usize| {
        let reached = (0..kernel[axis]).map(|tap| {
            (
                tap,
                (first + pad[axis]) as isize - (tap * dilation[axis]) as isize,
            )
        });
        let taps = reached
            .filter(|(_, at)| at.rem_euclid(stride as isize) == 0)
            .map(|(tap, at)| (tap, at.div_euclid(stride as isize)));
        Axis {
            first,
            size: (size_out[axis] - first).div_ceil(stride),
            taps: taps.collect(),
        }
    };
    (0..stride.min(size_out[axis])).map(axis_of).collect()
}

fn remainders(geometry: &Geometry, channels: usize) -> Vec<Remainder> {
    let [planes, rows, columns] = [0, 1, 2].map(|axis| axes(geometry, axis));
    let mut remainders = Vec::new();
    for plane in &planes {
        for row in &rows {
            remainders.extend(
                columns
                    .iter()
                    .map(|column| remainder(geometry, channels, [plane, row, column])),
            );
        }
    }
    remainders
}

fn remainder(geometry: &Geometry, channels: usize, axes: [&Axis; 3]) -> Remainder {
    // Padding for the elements that are read before the first.
    let pad = axes.map(|axis| {
        axis.taps
            .iter()
            .map(|(_, ahead)| ahead.min(&0).unsigned_abs())
            .max()
            .unwrap_or_default()
    });
    let ahead = |axis: usize, (_, ahead): (usize, isize)| (ahead + pad[axis] as isize) as usize;
    let kernel = std::array::from_fn(|axis| {
        axes[axis]
            .taps
            .iter()
            .map(|tap| ahead(axis, *tap) + 1)
            .max()
            .unwrap_or(1)
    });
    let size = axes.map(|axis| axis.size);
    let (mut taps, mut places) = (Vec::new(), Vec::new());
    for plane in &axes[0].taps {
        for row in &axes[1].taps {
            for column in &axes[2].taps {
                taps.push((plane.0 * geometry.kernel[1] + row.0) * geometry.kernel[2] + column.0);
                places.push([ahead(0, *plane), ahead(1, *row), ahead(2, *column)]);
            }
        }
    }
    let geometry = Geometry {
        size_in: geometry.size_in,
        size_out: size,
        kernel,
        stride: [1; 3],
        dilation: [1; 3],
        pad,
    };
    Remainder {
        first: axes.map(|axis| axis.first),
        size,
        taps,
        patches: Patches::new(geometry, Padded::new(geometry), channels, &places),
    }
}

fn convolve_transposed(call: &NativeCall<'_>, arguments: ConvolveTransposed<Slices<'_>>) {
    let ConvolveTransposed {
        x,
        w,
        y,
        bias,
        batch,
        channels_in,
        channels_out,
        groups,
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
        activation,
        ..
    } = arguments;
    let geometry = Geometry {
        size_in,
        size_out,
        kernel,
        stride,
        dilation,
        pad,
    };
    let (channels, filters, activation) = (
        channels_in / groups,
        channels_out / groups,
        Activation::from_code(activation),
    );
    let (pixels, volume, all) = (geometry.pixels(), geometry.volume(), geometry.taps());
    let y = &mut y[..batch * channels_out * pixels];
    let threads =
        call.threads_for((batch * channels_out * volume).saturating_mul(channels * all) / 16);
    let (outer, inner) = if batch * groups >= threads {
        (threads, 1)
    } else {
        (1, threads)
    };
    if volume <= MAX_POSITIONS && (filters * all).is_multiple_of(PANEL) {
        let reached = reached(&geometry);
        return for_each_chunk(y, filters * pixels, outer, |image, y| {
            let group = image % groups;
            let (x, w) = (
                &x[image * channels * volume..][..channels * volume],
                &w[group * channels * filters * all..][..channels * filters * all],
            );
            // Whole panels for each thread.
            let part = filters.div_ceil(inner).next_multiple_of(PANEL);
            for_each_chunk(y, part * pixels, inner, |index, y| {
                y.fill(0.0);
                Scatter {
                    x,
                    w,
                    first: index * part,
                    filters,
                    taps: all,
                    reached: &reached,
                }
                .run(pixels, y);
                let bias = bias.map(|bias| &bias[group * filters + index * part..]);
                for (filter, y) in y.chunks_exact_mut(pixels).enumerate() {
                    let bias = bias.map_or(-0.0, |bias| bias[filter]);
                    y.iter_mut().for_each(|y| *y += bias);
                    Finish {
                        bias: None,
                        residual: None,
                        pixels,
                        activation,
                    }
                    .in_place(filter, y);
                }
            });
        });
    }
    let remainders = remainders(&geometry, channels);
    for_each_chunk(y, filters * pixels, outer, |image, y| {
        let group = image % groups;
        let (x, w) = (
            &x[image * channels * volume..],
            &w[group * channels * filters * all..][..channels * filters * all],
        );
        let bias = bias.map(|bias| &bias[group * filters..][..filters]);
        for remainder in &remainders {
            let made = remainder.size.iter().product();
            let finish = Finish {
                bias,
                residual: None,
                pixels: made,
                activation,
            };
            remainder.convolve(
                [x, w],
                [channels, filters, all],
                finish,
                inner,
                |row, made| remainder.spread(&geometry, made, &mut y[row * pixels..][..pixels]),
            );
        }
    });
}

/// The outputs that each element of the window reaches: of each position of the input that reaches
/// one, the position and the output.
fn reached(geometry: &Geometry) -> Vec<Vec<[usize; 2]>> {
    let Geometry {
        size_in: [planes, rows, columns],
        size_out,
        stride,
        dilation,
        pad,
        ..
    } = *geometry;
    let of_tap = |tap: [usize; 3]| {
        let output = |index: usize| {
            let at = [
                index / columns / rows,
                index / columns % rows,
                index % columns,
            ];
            let out: [usize; 3] = std::array::from_fn(|axis| {
                (at[axis] * stride[axis] + tap[axis] * dilation[axis]).wrapping_sub(pad[axis])
            });
            (0..3).all(|axis| out[axis] < size_out[axis]).then(|| {
                [
                    index,
                    (out[0] * size_out[1] + out[1]) * size_out[2] + out[2],
                ]
            })
        };
        (0..planes * rows * columns).filter_map(output).collect()
    };
    geometry.each_tap().map(of_tap).collect()
}

/// Filters [channels, filters, taps] from a first one on, multiplied with the channels [channels,
/// positions] of an image and group.
#[derive(Clone, Copy)]
struct Scatter<'a> {
    x: &'a [f32],
    w: &'a [f32],
    first: usize,
    filters: usize,
    taps: usize,
    reached: &'a [Vec<[usize; 2]>],
}

impl Scatter<'_> {
    /// Adds the outputs of as many filters as `y` has.
    fn run(self, pixels: usize, y: &mut [f32]) {
        let columns = y.len() / pixels * self.taps;
        let pairs = if panels_per_pass() == MAX_PANELS_PER_PASS {
            columns / (MAX_PANELS_PER_PASS * PANEL)
        } else {
            0
        };
        let rest = pairs * MAX_PANELS_PER_PASS * PANEL;
        (0..rest)
            .step_by(MAX_PANELS_PER_PASS * PANEL)
            .for_each(|column| self.panels::<MAX_PANELS_PER_PASS>(column, pixels, y));
        (rest..columns)
            .step_by(PANEL)
            .for_each(|column| self.panels::<1>(column, pixels, y));
    }

    /// The products of some columns, which are elements of filters, and their additions.
    fn panels<const PANELS: usize>(self, column: usize, pixels: usize, y: &mut [f32]) {
        let stride = self.filters * self.taps;
        let channels = self.w.len() / stride;
        let positions = self.x.len() / channels;
        let mut sums = [CacheLine::ZERO; MAX_POSITIONS * MAX_PANELS_PER_PASS];
        let sums: &mut [f32] = bytemuck::cast_slice_mut(&mut sums[..positions * PANELS]);
        let panels = std::array::from_fn::<_, PANELS, _>(|panel| {
            let data = &self.w[self.first * self.taps + column + panel * PANEL..];
            StridedPanel {
                data,
                stride,
                count: channels,
            }
        });
        with_simd(Strip::alone(
            ColumnMajor {
                data: self.x,
                stride: positions,
            },
            panels,
            sums,
            false,
        ));
        for lane in 0..PANELS * PANEL {
            let y = &mut y[(column + lane) / self.taps * pixels..][..pixels];
            self.reached[(column + lane) % self.taps]
                .iter()
                .for_each(|[position, output]| {
                    y[*output] += sums[position * PANELS * PANEL + lane]
                });
        }
    }
}

impl Remainder {
    /// Computes the outputs of all filters, and passes those of each to `ended`.
    fn convolve(
        &self,
        [x, w]: [&[f32]; 2],
        [channels, filters, all]: [usize; 3],
        finish: Finish<'_>,
        threads: usize,
        mut ended: impl FnMut(usize, &[f32]),
    ) {
        let (depth, pixels) = (self.patches.depth(), finish.pixels);
        let volume = self.patches.volume();
        let mut kept = REMAINDER_BUFFER.take();
        let lines = |floats: usize| floats.div_ceil(PANEL);
        let padded_len = self.patches.padded_len();
        let sizes = [
            filters.div_ceil(PANEL) * depth,
            lines(filters * depth),
            lines(padded_len.map_or(0, |len| channels * len + SLACK)),
            lines(filters * pixels),
        ];
        kept.resize(kept.len().max(sizes.iter().sum()), CacheLine::ZERO);
        let (panels, rest) = kept.split_at_mut(sizes[0]);
        let (rows, rest) = rest.split_at_mut(sizes[1]);
        let (padded, made) = rest.split_at_mut(sizes[2]);
        let [panels, rows, padded, made]: [&mut [f32]; 4] =
            [panels, rows, padded, made].map(bytemuck::cast_slice_mut);
        let made = &mut made[..filters * pixels];
        if depth == 0 {
            // Nothing reaches them.
            made.fill(0.0);
            made.chunks_exact_mut(pixels)
                .enumerate()
                .for_each(|(row, made)| {
                    made.fill(finish.bias.map_or(0.0, |bias| bias[row]));
                    finish.in_place(row, made);
                });
        } else {
            // The filters' elements [channels, filters, all] as rows [filters, channels, taps].
            for (filter, row) in rows.chunks_exact_mut(depth).enumerate().take(filters) {
                for (channel, row) in row.chunks_exact_mut(self.taps.len()).enumerate() {
                    let w = &w[(channel * filters + filter) * all..][..all];
                    row.iter_mut()
                        .zip(&self.taps)
                        .for_each(|(to, tap)| *to = w[*tap]);
                }
            }
            pack_filters(&rows[..filters * depth], depth, panels);
            let source: &[f32] = match padded_len {
                None => x,
                Some(len) => {
                    let fill = |channel: usize, to: &mut [f32]| {
                        self.patches
                            .padded()
                            .fill(&x[channel * volume..][..volume], 0.0, to)
                    };
                    for_each_chunk(&mut padded[..channels * len], len, threads, fill);
                    padded
                }
            };
            Product {
                patches: &self.patches,
                source,
                filters: panels,
                finish,
                threads,
            }
            .run(made);
        }
        made.chunks_exact(pixels)
            .enumerate()
            .for_each(|(row, made)| ended(row, made));
        REMAINDER_BUFFER.set(kept);
    }

    /// Writes the outputs of a channel to their places.
    fn spread(&self, geometry: &Geometry, made: &[f32], y: &mut [f32]) {
        let ([_, rows, columns], stride) = (geometry.size_out, geometry.stride);
        for (index, made) in made.chunks_exact(self.size[2]).enumerate() {
            let plane = self.first[0] + index / self.size[1] * stride[0];
            let row = self.first[1] + index % self.size[1] * stride[1];
            let y = &mut y[(plane * rows + row) * columns..][..columns];
            y[self.first[2]..]
                .iter_mut()
                .step_by(stride[2])
                .zip(made)
                .for_each(|(y, made)| *y = *made);
        }
    }
}

impl PlanBuilder {
    /// Records a transposed convolution:
    /// `y[n, m, o] = activation(Σ w[c, m, q]·x[n, c, i] + bias[m])` over all `c`, and all `i` and
    /// `q` with `i·stride + q·dilation − pad_before = o`.
    ///
    /// # Shapes
    /// `x` [batch, channels_in, D, H, W], `w` [channels_in, channels_out / groups, kD, kH, kW],
    /// `bias` \[channels_out\], `y` [batch, channels_out, oD, oH, oW] with the sizes of
    /// [`Window::transposed_size_out`].
    /// # Numerics
    /// f32, accumulation included. Same device, same bits.
    /// # Errors
    /// `Invalid` if the sizes do not fit or channels are no multiple of `groups`; as
    /// [`Window::transposed_size_out`] and [`PlanBuilder::launch`].
    /// # Cost
    /// One launch. The CPU packs the filters in every run.
    pub fn convolution_transposed(
        &mut self,
        x: View,
        w: View,
        bias: Option<View>,
        y: View,
        convolution: &TransposedConvolution,
    ) -> Result<()> {
        let &TransposedConvolution {
            batch,
            channels_in,
            channels_out,
            groups,
            size_in,
            window,
            output_padding,
            activation,
        } = convolution;
        let size_out = window
            .transposed_size_out(size_in, output_padding)
            .map_err(|error| error.at("convolution_transposed"))?;
        let sizes = || {
            format!(
                "convolution_transposed: {batch} × {channels_in} channels of {size_in:?} to {channels_out} of {size_out:?} in {groups} groups"
            )
        };
        if groups == 0
            || !channels_in.is_multiple_of(groups)
            || !channels_out.is_multiple_of(groups)
            || channels_in == 0
        {
            return Err(Error::invalid(format!(
                "{}: channels are no multiple of the groups",
                sizes()
            )));
        }
        let volume =
            |channels: usize, size: [usize; 3]| [batch, channels, size[0], size[1], size[2]];
        let [planes, rows, columns] = window.kernel;
        let w_fits = w.fills(&[channels_in, channels_out / groups, planes, rows, columns]);
        let fits = x.fills(&volume(channels_in, size_in))
            && w_fits
            && y.fills(&volume(channels_out, size_out));
        if !fits || bias.is_some_and(|bias| bias.len() != channels_out) {
            return Err(Error::invalid(format!(
                "{}, window {:?}: x has {}, w {}, bias {:?}, y {} elements",
                sizes(),
                window.kernel,
                x.len(),
                w.len(),
                bias.map(|view| view.len()),
                y.len()
            )));
        }
        if y.is_empty() {
            return Ok(());
        }
        let Window {
            kernel,
            stride,
            dilation,
            pad_before: pad,
            ..
        } = window;
        let (residual, activation) = (None, activation as u32);
        let arguments = ConvolveTransposed {
            x,
            w,
            y,
            bias,
            residual,
            batch,
            channels_in,
            channels_out,
            groups,
            size_in,
            size_out,
            kernel,
            stride,
            dilation,
            pad,
            activation,
        };
        self.launch(
            &KERNELS[usize::from(bias.is_some())],
            arguments,
            groups_for(y.len()),
        )
    }
}
