//! Convolutions with bias, residual and activation fused at the end.
//!
//! `y = activation(conv(x, w) + bias + residual)`. The residual is added before the activation, as
//! residual networks do; products add theirs after it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use crate::error::{Error, Result};
use crate::kernel::arguments::Slices;
use crate::kernel::native::{NativeCall, for_each_chunk};
use crate::kernel::{Kernel, Prelude, TypedKernel, groups_for, loops_over};
use crate::kernel_arguments;
use crate::operation::built_in;
use crate::operation::convolution::chunks::Finish;
use crate::operation::convolution::depthwise::{Depthwise, depthwise};
use crate::operation::convolution::padded::{Padded, SLACK};
use crate::operation::convolution::patches::{Patches, Product, pack_filters};
use crate::operation::convolution::window::{Geometry, Window};
use crate::operation::convolution::winograd::{Tiled, filters_of, is_bounded, transform_filters};
use crate::operation::product::gemm::{Activation, Epilogue};
use crate::operation::product::panel_format::{PANEL, PanelFormat};
use crate::operation::product::strip::CacheLine;
use crate::plan::PlanBuilder;
use crate::view::{View, elements};

kernel_arguments! {
    /// `y[n, m, o] = activation(Σ w[m, c, q]·x[n, c, o·stride − pad + q·dilation] + bias[m] +
    /// residual[n, m, o])`.
    pub(crate) struct Convolve {
        read x: f32, read w: f32, write y: f32, optional bias: f32, optional residual: f32;
        batch: usize, channels_in: usize, channels_out: usize, groups: usize, size_in: [usize; 3], size_out: [usize; 3],
        kernel: [usize; 3], stride: [usize; 3], dilation: [usize; 3], pad: [usize; 3], activation: u32
    }
}

/// How filters are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilterLayout {
    /// [channels_out, channels_in / groups, D, H, W], row-major.
    #[default]
    Rows,
    /// In panels of 16 filters, packed once by [`Convolution::pack`].
    Panels,
    /// 16 transforms of a filter of 3 × 3, each like a filter of 1 × 1 in panels: tiles of 2 × 2
    /// outputs take 16 products for each channel instead of 36.
    Winograd2,
    /// 36 transforms of a filter of 3 × 3: tiles of 4 × 4 outputs take 36 products instead of 144,
    /// with a larger rounding error.
    Winograd4,
}

impl FilterLayout {
    /// All of them.
    pub const ALL: [FilterLayout; 4] = [
        FilterLayout::Rows,
        FilterLayout::Panels,
        FilterLayout::Winograd2,
        FilterLayout::Winograd4,
    ];

    /// Outputs along an edge of a tile of Winograd's algorithm.
    pub fn tile(self) -> Option<usize> {
        match self {
            FilterLayout::Rows | FilterLayout::Panels => None,
            FilterLayout::Winograd2 => Some(2),
            FilterLayout::Winograd4 => Some(4),
        }
    }

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            FilterLayout::Rows => "rows",
            FilterLayout::Panels => "panels",
            FilterLayout::Winograd2 => "winograd2",
            FilterLayout::Winograd4 => "winograd4",
        }
    }

    /// What is packed in panels: the filters, or their transforms one after another.
    ///
    /// # Panics
    /// If filters to be transformed are not of 9 elements for each channel.
    pub fn transform(self, filters: &[f32]) -> Cow<'_, [f32]> {
        match self.tile() {
            None => Cow::Borrowed(filters),
            Some(outputs) => Cow::Owned(transform_filters(filters, outputs)),
        }
    }
}

/// The sizes of a convolution, and what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Convolution {
    /// Images.
    pub batch: usize,
    /// Channels of the input, a multiple of `groups`.
    pub channels_in: usize,
    /// Filters, a multiple of `groups`.
    pub channels_out: usize,
    /// Groups: the filters of each read only its channels. As many as channels make a depthwise
    /// convolution.
    pub groups: usize,
    /// Depth, height and width of the input.
    pub size_in: [usize; 3],
    /// The window of a filter.
    pub window: Window,
    /// How the filters are stored.
    pub layout: FilterLayout,
    /// Applied to each element last.
    pub activation: Activation,
    /// Added before the activation, of the shape of the output.
    pub residual: Option<View>,
}

impl Convolution {
    /// Of one image in one group, with filters in rows and nothing after it.
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
            layout: FilterLayout::Rows,
            activation: Activation::None,
            residual: None,
        }
    }

    /// Whether each filter reads one channel: such filters are not packed.
    pub fn is_depthwise(&self) -> bool {
        self.channels_in == self.groups
    }

    /// Elements of a filter.
    fn depth(&self) -> usize {
        self.channels_in / self.groups.max(1) * self.window.taps()
    }

    /// Whether filters can have this layout.
    pub fn takes(&self, layout: FilterLayout) -> bool {
        let Window {
            kernel,
            stride,
            dilation,
            pad_before,
            pad_after,
        } = self.window;
        let is_plane = self.size_in[0] == 1 && [pad_before[0], pad_after[0]] == [0; 2];
        let is_square = is_plane && (kernel, stride, dilation) == ([1, 3, 3], [1; 3], [1; 3]);
        match layout {
            FilterLayout::Rows => true,
            FilterLayout::Panels => !self.is_depthwise(),
            FilterLayout::Winograd2 | FilterLayout::Winograd4 => is_square && self.groups == 1,
        }
    }

    /// The layout of filters that are packed once, by the CPU's time with each. Output sizes that
    /// do not exist take [`FilterLayout::Rows`].
    pub fn fastest_layout(&self) -> FilterLayout {
        let Ok([_, rows, columns]) = self.window.size_out(self.size_in) else {
            return FilterLayout::Rows;
        };
        let (channels, filters) = (self.channels_in as f64, self.channels_out as f64);
        // Cycles for a panel of 16 outputs or tiles: products by vectors of 16, and the transforms
        // of an element.
        let cycles = |layout: &FilterLayout| match layout.tile() {
            None => {
                (rows * columns) as f64 / PANEL as f64
                    * self.window.taps() as f64
                    * (channels * filters + 3.0 * channels)
            }
            Some(outputs) => {
                let panels = (rows.div_ceil(outputs) * columns.div_ceil(outputs)).div_ceil(PANEL);
                (panels * (outputs + 2) * (outputs + 2)) as f64
                    * (channels * filters + 4.0 * channels + 6.0 * filters)
            }
        };
        let packed = [
            FilterLayout::Panels,
            FilterLayout::Winograd2,
            FilterLayout::Winograd4,
        ]
        .into_iter()
        .filter(|layout| self.takes(*layout));
        packed
            .min_by(|a, b| cycles(a).total_cmp(&cycles(b)))
            .unwrap_or_default()
    }

    /// Matrices in panels, and the sizes of one: elements of a filter, and filters.
    fn panels(&self) -> (usize, [usize; 2]) {
        match self.layout.tile() {
            None => (
                self.groups,
                [self.depth(), self.channels_out / self.groups.max(1)],
            ),
            Some(outputs) => (
                (outputs + 2) * (outputs + 2),
                [self.channels_in, self.channels_out],
            ),
        }
    }

    /// Floats of the filters in panels: ⌈filters / 16⌉ panels of depth × 16 for each group, where
    /// depth is channels_in / groups times the elements of the window, or for each element of
    /// transformed filters, where depth is channels_in.
    pub fn panel_floats(&self) -> usize {
        let (count, [depth, filters]) = self.panels();
        count * PanelFormat::F32.words(depth, filters)
    }

    /// Packs filters [channels_out, channels_in / groups, D, H, W] in panels of the layout.
    ///
    /// # Panics
    /// If `filters` is not channels_out × depth long, or `panels` not
    /// [`Convolution::panel_floats`].
    pub fn pack(&self, filters: &[f32], panels: &mut [f32]) {
        assert_eq!(
            (filters.len(), panels.len()),
            (self.channels_out * self.depth(), self.panel_floats()),
            "filters and panels"
        );
        let filters = self.layout.transform(filters);
        let (count, [depth, _]) = self.panels();
        let (from, to) = (
            (filters.len() / count.max(1)).max(1),
            (panels.len() / count.max(1)).max(1),
        );
        filters
            .chunks_exact(from)
            .zip(panels.chunks_exact_mut(to))
            .for_each(|(filters, panels)| pack_filters(filters, depth, panels));
    }
}

/// Kernels on filters in each layout, with every epilogue.
static KERNELS: LazyLock<[[TypedKernel<Convolve>; 4]; 4]> = LazyLock::new(|| {
    FilterLayout::ALL.map(|layout| Epilogue::ALL.map(|epilogue| define(layout, epilogue)))
});

/// The kernels of this file.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS
        .iter()
        .flatten()
        .map(|kernel| &**kernel)
        .cloned()
        .collect()
}

fn define(layout: FilterLayout, epilogue: Epilogue) -> TypedKernel<Convolve> {
    let (name, filter) = match layout {
        FilterLayout::Rows => ("convolution_f32", "w[channel * depth + at]"),
        FilterLayout::Panels => (
            "convolution_panels_f32",
            "w[((group * ((filters + 15u) / 16u) + member / 16u) * depth + at) * 16u + member % 16u]",
        ),
        FilterLayout::Winograd2 => (
            "convolution_winograd2_f32",
            "filter_value(c, q1, q2, channel)",
        ),
        FilterLayout::Winograd4 => (
            "convolution_winograd4_f32",
            "filter_value(c, q1, q2, channel)",
        ),
    };
    // The second place is that of the middle weight.
    let weights = |edge: &str, places: &str, factors: &str, second: &str| {
        let text = include_str!("winograd_filter.wgsl")
            .replace("EDGE", edge)
            .replace("SECOND", second);
        text.replace("PLACES", &format!("vec3<u32>({places})"))
            .replace("FACTORS", &format!("vec3<f32>({factors})"))
    };
    let before = match layout {
        FilterLayout::Rows | FilterLayout::Panels => String::new(),
        FilterLayout::Winograd2 => weights("4u", "0u, 1u, 3u", "1.0, 1.0, 1.0", "2u"),
        FilterLayout::Winograd4 => weights("6u", "0u, 2u, 5u", "4.0, 3.0, 1.0", "1u"),
    };
    let builder =
        Convolve::define(format!("{name}{}", epilogue.suffix())).prelude(Prelude::Activation);
    let builder = epilogue
        .apply(
            builder,
            &(before + &include_str!("convolution_f32.wgsl").replace("FILTER_VALUE", filter)),
            "channel",
            "i",
        )
        .flops(
            |Convolve {
                 batch,
                 channels_in,
                 channels_out,
                 groups,
                 size_out,
                 kernel,
                 ..
             }| {
                let sizes = [batch, channels_out, channels_in / groups]
                    .into_iter()
                    .chain(size_out)
                    .chain(kernel);
                2.0 * sizes.map(|size| size as f64).product::<f64>()
            },
        )
        .loops(
            |Convolve {
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
    // A native twin captures nothing.
    macro_rules! twin {
        ($layout:ident) => {
            built_in(
                builder,
                |call: &NativeCall<'_>, arguments: Convolve<Slices<'_>>| {
                    convolve(call, FilterLayout::$layout, arguments)
                },
            )
        };
    }
    match layout {
        FilterLayout::Rows => twin!(Rows),
        FilterLayout::Panels => twin!(Panels),
        FilterLayout::Winograd2 => twin!(Winograd2),
        FilterLayout::Winograd4 => twin!(Winograd4),
    }
}

thread_local! {
    /// Padded channels and packed filters, kept from launch to launch.
    static OPERAND_BUFFER: RefCell<Vec<CacheLine>> = const { RefCell::new(Vec::new()) };
}

fn convolve(call: &NativeCall<'_>, layout: FilterLayout, arguments: Convolve<Slices<'_>>) {
    let Convolve {
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
    } = arguments;
    let mut geometry = Geometry {
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
    let y = &mut y[..batch * channels_out * geometry.pixels()];
    if let Some(outputs) = layout.tile() {
        if is_bounded(&x[..batch * channels_in * geometry.volume()]) {
            let shared = call.threads_for(y.len().saturating_mul(channels * geometry.taps()) / 16);
            let given = Transformed {
                x,
                filters: w,
                bias,
                residual,
                activation,
                channels,
                outputs,
            };
            return transformed(geometry, &given, [batch, shared], y);
        }
        // A sum with an infinite input reaches all outputs of a tile.
        let rows = filters_of(w, [channels, filters], outputs);
        return convolve(
            call,
            FilterLayout::Rows,
            Convolve {
                w: &rows,
                y,
                ..arguments
            },
        );
    }
    if channels == 1 && layout == FilterLayout::Rows {
        let given = Depthwise {
            x,
            filters: w,
            bias,
            residual,
            activation,
            channels_out,
            multiplier: filters,
        };
        return depthwise(call, geometry, &given, y);
    }
    if (kernel, stride, size_out, pad) == ([1; 3], [1; 3], size_in, [0; 3]) {
        // A product: one row of all elements.
        let row = [1, 1, geometry.pixels()];
        geometry = Geometry {
            size_in: row,
            size_out: row,
            ..geometry
        };
    }
    let (pixels, volume, depth) = (
        geometry.pixels(),
        geometry.volume(),
        channels * geometry.taps(),
    );
    let taps: Vec<_> = geometry.each_tap().collect();
    let patches = Patches::new(geometry, Padded::new(geometry), channels, &taps);
    let panels = filters.div_ceil(PANEL) * depth * PANEL;
    let threads = call.threads_for(y.len().saturating_mul(depth) / 16);
    let images = batch * groups;
    // Images and groups one after another where they are fewer than threads.
    let (outer, inner) = if images >= threads {
        (threads, 1)
    } else {
        (1, threads)
    };
    for_each_chunk(y, filters * pixels, outer, |image, y| {
        let group = image % groups;
        let x = &x[image * channels * volume..];
        let mut kept = OPERAND_BUFFER.take();
        let packed_lines = if layout == FilterLayout::Rows {
            panels.div_ceil(PANEL)
        } else {
            0
        };
        let padded_lines = patches
            .padded_len()
            .map_or(0, |len| (channels * len + SLACK).div_ceil(PANEL));
        kept.resize(kept.len().max(packed_lines + padded_lines), CacheLine::ZERO);
        let (packed, padded) = kept.split_at_mut(packed_lines);
        let (packed, padded): (&mut [f32], &mut [f32]) = (
            bytemuck::cast_slice_mut(packed),
            bytemuck::cast_slice_mut(padded),
        );
        let panels: &[f32] = if layout == FilterLayout::Rows {
            pack_filters(
                &w[group * filters * depth..][..filters * depth],
                depth,
                packed,
            );
            packed
        } else {
            &w[group * panels..][..panels]
        };
        let source: &[f32] = match patches.padded_len() {
            None => x,
            Some(len) => {
                let to = &mut padded[..channels * len];
                for_each_chunk(to, len, inner, |channel, to| {
                    patches
                        .padded()
                        .fill(&x[channel * volume..][..volume], 0.0, to)
                });
                padded
            }
        };
        let bias = bias.map(|bias| &bias[group * filters..][..filters]);
        let residual =
            residual.map(|residual| &residual[image * filters * pixels..][..filters * pixels]);
        let finish = Finish {
            bias,
            residual,
            pixels,
            activation,
        };
        Product {
            patches: &patches,
            source,
            filters: panels,
            finish,
            threads: inner,
        }
        .run(y);
        OPERAND_BUFFER.set(kept);
    });
}

/// A convolution with transformed filters.
struct Transformed<'a> {
    x: &'a [f32],
    filters: &'a [f32],
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    activation: Activation,
    channels: usize,
    /// Outputs along an edge of a tile.
    outputs: usize,
}

fn transformed(
    geometry: Geometry,
    given: &Transformed<'_>,
    [batch, threads]: [usize; 2],
    y: &mut [f32],
) {
    let (pixels, inputs) = (geometry.pixels(), given.channels * geometry.volume());
    let (outer, inner) = if batch >= threads {
        (threads, 1)
    } else {
        (1, threads)
    };
    let tiled = Tiled::new(geometry, given.outputs, given.channels, inner);
    for_each_chunk(y, y.len() / batch, outer, |image, y| {
        let mut kept = OPERAND_BUFFER.take();
        kept.resize(
            kept.len().max((tiled.padded_len() + SLACK).div_ceil(PANEL)),
            CacheLine::ZERO,
        );
        let padded: &mut [f32] = bytemuck::cast_slice_mut(&mut kept);
        tiled.pad(&given.x[image * inputs..][..inputs], inner, padded);
        let residual = given
            .residual
            .map(|residual| &residual[image * y.len()..][..y.len()]);
        tiled.run(
            padded,
            given.filters,
            Finish {
                bias: given.bias,
                residual,
                pixels,
                activation: given.activation,
            },
            y,
        );
        OPERAND_BUFFER.set(kept);
    });
}

impl PlanBuilder {
    /// Records a convolution: `y[n, m, o] = activation(Σ_{c, q} w[m, c, q]·x[n, c, o·stride −
    /// pad_before + q·dilation] + bias[m] + residual[n, m, o])`. What is outside the input counts
    /// as 0.
    ///
    /// # Shapes
    /// `x` [batch, channels_in, D, H, W], `w` [channels_out, channels_in / groups, kD, kH, kW] or
    /// packed ([`Convolution::pack`]), `bias` \[channels_out\], `y` and residual [batch,
    /// channels_out, oD, oH, oW] with the sizes of [`Window::size_out`].
    /// # Numerics
    /// f32, accumulation included. Same device, same bits. With transformed filters the rounding
    /// errors of neighbouring outputs are those of the largest input that a tile of them reads;
    /// where an input is infinite, not a number or larger than 10³⁴, the CPU multiplies by the
    /// filters instead.
    /// # Errors
    /// `Invalid` if the sizes do not fit, channels are no multiple of `groups`, or the filters
    /// cannot have their layout ([`Convolution::takes`]); as [`Window::size_out`] and
    /// [`PlanBuilder::launch`].
    /// # Cost
    /// One launch. The CPU packs filters that are in rows in every run, which takes longer than the
    /// products where the output is small.
    pub fn convolution(
        &mut self,
        x: View,
        w: View,
        bias: Option<View>,
        y: View,
        convolution: &Convolution,
    ) -> Result<()> {
        let &Convolution {
            batch,
            channels_in,
            channels_out,
            groups,
            size_in,
            window,
            layout,
            activation,
            residual,
        } = convolution;
        let size_out = window
            .size_out(size_in)
            .map_err(|error| error.at("convolution"))?;
        let sizes = || {
            format!(
                "convolution: {batch} × {channels_in} channels of {size_in:?} to {channels_out} of {size_out:?} in {groups} groups"
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
        if !convolution.takes(layout) {
            let why = if layout == FilterLayout::Panels {
                "filters of one channel are not packed"
            } else {
                "only windows of 3 × 3 with stride 1 in one group"
            };
            return Err(Error::invalid(format!(
                "{}: filters in {}: {why}",
                sizes(),
                layout.name()
            )));
        }
        let volume =
            |channels: usize, size: [usize; 3]| [batch, channels, size[0], size[1], size[2]];
        let filters = elements(&[
            channels_out,
            channels_in / groups,
            window.kernel[0],
            window.kernel[1],
            window.kernel[2],
        ]);
        // Counted with the padding of panels.
        let is_counted = filters.is_some() && {
            let [planes, rows, columns] = window.kernel;
            // Transforms have four times as many elements.
            elements(&[
                channels_out.saturating_add(groups.saturating_mul(PANEL)),
                channels_in / groups,
                planes,
                rows,
                columns,
                4,
            ])
            .is_some()
        };
        let w_fits = is_counted
            && w.len()
                == if layout == FilterLayout::Rows {
                    filters.unwrap_or_default()
                } else {
                    convolution.panel_floats()
                };
        let result = volume(channels_out, size_out);
        let fits = x.fills(&volume(channels_in, size_in)) && w_fits && y.fills(&result);
        if !fits
            || bias.is_some_and(|bias| bias.len() != channels_out)
            || residual.is_some_and(|residual| !residual.fills(&result))
        {
            return Err(Error::invalid(format!(
                "{}, window {:?} {layout:?}: x has {}, w {}, bias {:?}, residual {:?}, y {} elements",
                sizes(),
                window.kernel,
                x.len(),
                w.len(),
                bias.map(|view| view.len()),
                residual.map(|view| view.len()),
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
        let epilogue = Epilogue {
            bias: bias.is_some(),
            residual: residual.is_some(),
        };
        let activation = activation as u32;
        let arguments = Convolve {
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
            &KERNELS[layout as usize][epilogue.index()],
            arguments,
            groups_for(y.len()),
        )
    }
}
