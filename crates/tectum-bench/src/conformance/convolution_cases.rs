//! Cases of convolutions, transposed convolutions and pooling.

use tectum::{
    Activation, Convolution, DType, FilterLayout, PoolDivisor, Pooling, TransposedConvolution,
    Window,
};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("convolution", |seed: &mut Seed| {
            convolution_cases(seed, FilterLayout::Rows)
        }),
        Suite::new("convolution_panels", |seed: &mut Seed| {
            convolution_cases(seed, FilterLayout::Panels)
        }),
        Suite::new("convolution_winograd2", |seed: &mut Seed| {
            convolution_cases(seed, FilterLayout::Winograd2)
        }),
        Suite::new("convolution_winograd4", |seed: &mut Seed| {
            convolution_cases(seed, FilterLayout::Winograd4)
        }),
        Suite::new("convolution_transposed", transposed_cases),
        Suite::new("max_pool", max_pool_cases),
        Suite::new("average_pool", average_pool_cases),
    ]
}

/// What a convolution ends with.
#[derive(Debug, Clone, Copy)]
struct Tail {
    bias: bool,
    residual: bool,
    activation: Activation,
}

impl Tail {
    /// Cycles through every epilogue and activation over the cases.
    fn of(index: usize) -> Self {
        Self {
            bias: index & 1 != 0,
            residual: index & 2 != 0,
            activation: Activation::ALL[index % 7],
        }
    }

    /// A random walk of the roundings of so many terms, five sigma wide, then activation (slope at
    /// most 1.13, 8 ulp).
    fn expected(
        self,
        terms: usize,
        (sum, magnitude): (f64, f64),
        bias: f32,
        residual: f32,
    ) -> Expected {
        let mut added = 0.0;
        added += if self.bias { f64::from(bias) } else { 0.0 };
        added += if self.residual {
            f64::from(residual)
        } else {
            0.0
        };
        let value = self.activation.reference(sum + added);
        let magnitude = magnitude
            + if self.bias {
                f64::from(bias).abs()
            } else {
                0.0
            }
            + if self.residual {
                f64::from(residual).abs()
            } else {
                0.0
            };
        let error = ROUNDING * (5.0 * (terms as f64).sqrt() + 6.0) * magnitude;
        Expected {
            value,
            bound: 1.2 * error + ROUNDING * 16.0 * value.abs(),
        }
    }
}

/// Batch, input channels, output channels and groups, input sizes, and the window.
type Shape = ([usize; 4], [usize; 3], Window);

fn window(
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    pad_before: [usize; 3],
    pad_after: [usize; 3],
) -> Window {
    Window {
        kernel,
        stride,
        dilation,
        pad_before,
        pad_after,
    }
}

/// In one dimension: kernel, stride, dilation, padding before and after.
fn along_width([kernel, stride, dilation, before, after]: [usize; 5]) -> Window {
    window(
        [1, 1, kernel],
        [1, 1, stride],
        [1, 1, dilation],
        [0, 0, before],
        [0, 0, after],
    )
}

/// In two dimensions, the same along both.
fn square([kernel, stride, dilation, pad]: [usize; 4]) -> Window {
    window(
        [1, kernel, kernel],
        [1, stride, stride],
        [1, dilation, dilation],
        [0, pad, pad],
        [0, pad, pad],
    )
}

/// The small ones come first, with every epilogue: they are what an interpreter has time for.
fn shapes(seed: &mut Seed) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = vec![
        // One element; nothing.
        ([1, 1, 1, 1], [1, 1, 1], Window::new([1; 3])),
        ([0, 2, 3, 1], [1, 4, 4], square([3, 1, 1, 1])),
        // One dimension: dilated, padded on one side, with a stride beyond the kernel.
        ([1, 3, 5, 1], [1, 1, 9], along_width([3, 1, 1, 1, 1])),
        ([2, 4, 2, 2], [1, 1, 12], along_width([3, 2, 2, 0, 3])),
        ([1, 2, 17, 1], [1, 1, 20], along_width([2, 5, 1, 1, 0])),
        // One element, padded after the input.
        ([1, 2, 3, 1], [1, 1, 6], along_width([1, 1, 1, 0, 2])),
        (
            [2, 4, 6, 2],
            [1, 3, 2],
            window([1; 3], [1; 3], [1; 3], [0; 3], [0, 1, 1]),
        ),
        // Two dimensions.
        ([1, 2, 3, 1], [1, 5, 7], square([3, 1, 1, 1])),
        ([1, 3, 4, 1], [1, 6, 6], square([3, 2, 1, 1])),
        (
            [1, 2, 2, 1],
            [1, 3, 4],
            window([1, 2, 3], [1, 1, 2], [1, 1, 1], [0, 1, 2], [0, 0, 1]),
        ),
        ([1, 4, 6, 2], [1, 4, 4], square([1, 1, 1, 0])),
        ([1, 4, 3, 1], [1, 5, 4], square([1, 2, 1, 0])),
        // A kernel larger than the input; an output of one element.
        ([1, 2, 3, 1], [1, 2, 2], square([5, 1, 1, 2])),
        ([1, 3, 2, 1], [1, 4, 4], square([4, 1, 1, 0])),
        // Depthwise, with one filter for each channel and with several.
        ([1, 3, 3, 3], [1, 5, 6], square([3, 1, 1, 1])),
        ([2, 2, 6, 2], [1, 4, 5], square([3, 2, 1, 1])),
        ([1, 2, 2, 2], [1, 1, 11], along_width([3, 1, 3, 4, 2])),
        (
            [1, 2, 4, 2],
            [3, 4, 4],
            window([2, 3, 1], [1, 2, 1], [1, 1, 1], [1, 0, 0], [0, 1, 0]),
        ),
        // Sixteen channels side by side: a last group of fewer, rows of one segment and a part,
        // several images, several filters of a channel, dilation, bands of rows with and without
        // padding, an input that ends before the last window.
        ([1, 19, 19, 19], [1, 7, 7], square([5, 1, 1, 2])),
        ([2, 9, 18, 9], [1, 9, 16], square([3, 2, 1, 1])),
        ([1, 16, 16, 16], [1, 15, 11], square([5, 2, 1, 2])),
        ([1, 17, 17, 17], [1, 12, 13], square([3, 1, 2, 2])),
        (
            [1, 8, 8, 8],
            [1, 3, 4],
            window([1, 3, 2], [1, 2, 3], [1, 1, 1], [0, 1, 0], [0, 0, 1]),
        ),
        ([1, 18, 18, 18], [1, 1, 30], along_width([7, 1, 1, 3, 3])),
        (
            [1, 16, 16, 16],
            [3, 5, 9],
            window([2, 3, 3], [1, 1, 1], [1, 1, 1], [1, 1, 1], [0, 1, 1]),
        ),
        ([1, 9, 9, 9], [1, 90, 101], square([3, 1, 1, 1])),
        (
            [1, 9, 9, 9],
            [1, 11, 900],
            window([1, 3, 3], [1, 1, 1], [1, 1, 1], [0, 4, 1], [0, 5, 1]),
        ),
        // Three dimensions.
        (
            [1, 2, 3, 1],
            [3, 4, 5],
            window([2, 3, 3], [1, 1, 2], [1, 1, 1], [0, 1, 1], [1, 1, 0]),
        ),
        (
            [2, 2, 2, 1],
            [4, 3, 3],
            window([3, 1, 2], [2, 1, 1], [1, 1, 2], [1, 0, 1], [1, 0, 1]),
        ),
        (
            [1, 4, 4, 2],
            [1, 7, 7],
            window([1, 3, 2], [1, 3, 3], [1, 2, 1], [0, 2, 0], [0, 1, 1]),
        ),
        // Larger: many panels and filters, depth beyond a slice, several images.
        ([1, 3, 24, 1], [1, 37, 41], square([7, 2, 1, 3])),
        ([1, 40, 33, 1], [1, 14, 14], square([3, 1, 1, 1])),
        ([3, 16, 20, 1], [1, 9, 9], square([3, 1, 1, 0])),
        ([1, 64, 50, 1], [1, 13, 17], square([1, 1, 1, 0])),
        ([1, 30, 40, 5], [1, 20, 33], square([3, 2, 2, 2])),
        ([2, 40, 40, 40], [1, 21, 35], square([5, 1, 1, 2])),
        ([1, 20, 40, 20], [1, 33, 18], square([3, 2, 1, 1])),
        ([1, 4, 32, 1], [1, 84, 84], square([8, 4, 1, 0])),
        ([1, 96, 100, 1], [1, 1, 16], along_width([5, 1, 1, 2, 2])),
        ([1, 300, 16, 1], [1, 6, 6], square([3, 1, 1, 1])),
        (
            [1, 6, 7, 1],
            [9, 12, 20],
            window([3, 3, 3], [1, 2, 1], [2, 1, 1], [2, 1, 1], [2, 1, 1]),
        ),
        (
            [1, 5, 19, 1],
            [1, 40, 40],
            window([1, 3, 3], [1, 1, 3], [1, 1, 2], [0, 1, 2], [0, 1, 2]),
        ),
        ([7, 8, 9, 1], [1, 3, 3], square([3, 1, 1, 1])),
    ];
    shapes.extend((0..12).map(|_| {
        let groups = seed.size(1, 3);
        let sizes = [seed.size(1, 3), seed.size(3, 12), seed.size(3, 40)];
        let mut axis =
            |low: usize, high: usize| [seed.size(1, 2), seed.size(low, high), seed.size(low, high)];
        let [kernel, stride, dilation] = [axis(1, 4), axis(1, 3), axis(1, 2)];
        let [pad_before, pad_after] = [axis(0, 3), axis(0, 3)];
        // Enough padding for any kernel.
        let pad_after: [usize; 3] = std::array::from_fn(|at| {
            pad_after[at] + (kernel[at] * dilation[at]).saturating_sub(sizes[at] + pad_before[at])
        });
        (
            [
                seed.size(1, 3),
                groups * seed.size(1, 9),
                groups * seed.size(1, 20),
                groups,
            ],
            sizes,
            Window {
                kernel,
                stride,
                dilation,
                pad_before,
                pad_after,
            },
        )
    }));
    shapes
}

/// Shapes of 3 × 3 windows with stride 1: tiles that end beyond the output, rows of tiles that fill
/// no panel, several panels, blocks and depths.
fn tiled_shapes() -> Vec<Shape> {
    vec![
        ([1, 3, 5, 1], [1, 3, 3], square([3, 1, 1, 0])),
        ([2, 2, 17, 1], [1, 1, 9], square([3, 1, 1, 2])),
        (
            [1, 5, 3, 1],
            [1, 6, 4],
            window([1, 3, 3], [1; 3], [1; 3], [0, 0, 1], [0, 2, 0]),
        ),
        ([1, 20, 33, 1], [1, 7, 7], square([3, 1, 1, 1])),
        ([2, 64, 40, 1], [1, 14, 14], square([3, 1, 1, 1])),
        ([1, 32, 16, 1], [1, 56, 56], square([3, 1, 1, 1])),
        ([1, 17, 20, 1], [1, 30, 75], square([3, 1, 1, 1])),
        ([1, 400, 24, 1], [1, 10, 9], square([3, 1, 1, 1])),
    ]
}

fn convolution_cases(seed: &mut Seed, layout: FilterLayout) -> Vec<Case> {
    let mut cases = Vec::new();
    let all = if layout.tile().is_some() {
        [shapes(seed), tiled_shapes()].concat()
    } else {
        shapes(seed)
    };
    for (index, shape) in all.into_iter().enumerate() {
        let ([_, channels_in, channels_out, groups], size_in, window) = shape;
        if (Convolution {
            groups,
            ..Convolution::new(channels_in, channels_out, size_in, window)
        })
        .takes(layout)
        {
            cases.push(convolution(seed, shape, layout, Tail::of(index)));
        }
    }
    // Every activation with bias and residual; also where tiles are whole, and rows of one channel
    // wide.
    for activation in Activation::ALL {
        let tail = Tail {
            bias: true,
            residual: true,
            activation,
        };
        cases.push(convolution(
            seed,
            ([1, 4, 5, 1], [1, 4, 5], square([3, 1, 1, 1])),
            layout,
            tail,
        ));
        cases.push(convolution(
            seed,
            ([1, 4, 5, 1], [1, 9, 16], square([3, 1, 1, 1])),
            layout,
            tail,
        ));
        if layout == FilterLayout::Rows {
            cases.push(convolution(
                seed,
                ([1, 2, 2, 2], [1, 4, 40], square([3, 1, 1, 1])),
                layout,
                tail,
            ));
        }
    }
    // Every epilogue in a case that an interpreter has time for.
    let small = match layout {
        FilterLayout::Rows => Some(([1, 2, 2, 2], [1, 4, 20])),
        FilterLayout::Panels => None,
        FilterLayout::Winograd2 | FilterLayout::Winograd4 => Some(([1, 2, 3, 1], [1, 3, 4])),
    };
    for (index, (channels, size_in)) in (0..4).zip(small.into_iter().cycle()) {
        cases.push(convolution(
            seed,
            (channels, size_in, square([3, 1, 1, 1])),
            layout,
            Tail {
                activation: Activation::Silu,
                ..Tail::of(index)
            },
        ));
    }
    cases
}

/// The index of a position of an array of channels.
fn place(channel: usize, sizes: [usize; 3], [plane, row, column]: [usize; 3]) -> usize {
    ((channel * sizes[0] + plane) * sizes[1] + row) * sizes[2] + column
}

/// The positions of an array, row-major.
fn positions(sizes: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [_, rows, columns] = sizes;
    (0..sizes.iter().product())
        .map(move |at| [at / (rows * columns), at / columns % rows, at % columns])
}

/// The input position that an output position reads for an element of the window, if it is inside.
fn read_by(
    window: &Window,
    size_in: [usize; 3],
    out: [usize; 3],
    tap: [usize; 3],
) -> Option<[usize; 3]> {
    let at = |axis: usize| {
        (out[axis] * window.stride[axis] + tap[axis] * window.dilation[axis])
            .checked_sub(window.pad_before[axis])
    };
    let at = [at(0)?, at(1)?, at(2)?];
    (0..3).all(|axis| at[axis] < size_in[axis]).then_some(at)
}

fn convolution(
    seed: &mut Seed,
    (channels, size_in, window): Shape,
    layout: FilterLayout,
    tail: Tail,
) -> Case {
    let [batch, channels_in, channels_out, groups] = channels;
    let size_out = window.size_out(size_in).expect("a window that fits");
    let (volume, pixels, taps) = (
        size_in.iter().product::<usize>(),
        size_out.iter().product::<usize>(),
        window.taps(),
    );
    let (depth, filters) = (channels_in / groups, channels_out / groups);
    let lens = [
        batch * channels_in * volume,
        channels_out * depth * taps,
        channels_out,
        batch * channels_out * pixels,
    ];
    let [x, w, bias, residual] = lens.map(|len| seed.floats(len, -1.0, 1.0));
    let mut expected = Vec::with_capacity(residual.len());
    for (image, channel) in
        (0..batch).flat_map(|image| (0..channels_out).map(move |channel| (image, channel)))
    {
        for out in positions(size_out) {
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for (tap, position) in positions(window.kernel).enumerate() {
                let Some(at) = read_by(&window, size_in, out, position) else {
                    continue;
                };
                for c in 0..depth {
                    let from = x[place(
                        image * channels_in + channel / filters * depth + c,
                        size_in,
                        at,
                    )];
                    let term = f64::from(from) * f64::from(w[(channel * depth + c) * taps + tap]);
                    sum += term;
                    magnitude += term.abs();
                }
            }
            // The errors of transformed filters are those of the largest inputs of a tile.
            let magnitude = match layout {
                FilterLayout::Rows | FilterLayout::Panels => magnitude,
                FilterLayout::Winograd2 => 0.25 * (depth * taps) as f64,
                FilterLayout::Winograd4 => 2.0 * (depth * taps) as f64,
            };
            expected.push(tail.expected(
                depth * taps,
                (sum, magnitude),
                bias[channel],
                residual[expected.len()],
            ));
        }
    }
    let Window {
        kernel,
        stride,
        dilation,
        pad_before,
        pad_after,
    } = window;
    let shape = format!(
        "{channels:?} {size_in:?} kernel {kernel:?} stride {stride:?} dilation {dilation:?} padding {pad_before:?} {pad_after:?} {tail:?}"
    );
    let given = Convolution {
        batch,
        groups,
        layout,
        activation: tail.activation,
        ..Convolution::new(channels_in, channels_out, size_in, window)
    };
    let filters = if layout == FilterLayout::Rows {
        w
    } else {
        let mut panels = vec![f32::NAN; given.panel_floats()];
        given.pack(&w, &mut panels);
        panels
    };
    let inputs = [x, filters, bias, residual].map(Data::F32).into();
    Case::new(
        shape,
        inputs,
        vec![Output::Near(expected)],
        move |plan, x, y| {
            let given = Convolution {
                residual: tail.residual.then_some(x[3]),
                ..given
            };
            plan.convolution(x[0], x[1], tail.bias.then_some(x[2]), y[0], &given)
        },
    )
}

/// The small ones come first. The window's padding is cut from the output; the last sizes are added
/// to it.
fn transposed_cases(seed: &mut Seed) -> Vec<Case> {
    let mut shapes: Vec<(Shape, [usize; 3])> = vec![
        (([1, 1, 1, 1], [1, 1, 1], Window::new([1; 3])), [0; 3]),
        (([0, 2, 3, 1], [1, 4, 4], square([3, 1, 1, 1])), [0; 3]),
        (
            ([1, 3, 2, 1], [1, 1, 5], along_width([4, 2, 1, 1, 1])),
            [0; 3],
        ),
        (
            ([2, 4, 6, 2], [1, 1, 4], along_width([3, 2, 2, 0, 1])),
            [0, 0, 1],
        ),
        (([1, 2, 3, 1], [1, 3, 4], square([3, 2, 1, 1])), [0, 1, 1]),
        (([1, 2, 2, 1], [1, 3, 3], square([2, 3, 1, 0])), [0; 3]),
        (([1, 3, 3, 3], [1, 4, 3], square([3, 1, 1, 1])), [0; 3]),
        (
            (
                [1, 2, 3, 1],
                [2, 3, 3],
                window([2, 3, 1], [2, 1, 3], [1, 2, 1], [0, 1, 0], [1, 1, 0]),
            ),
            [1, 0, 2],
        ),
        // The output is one element; most of it is cut.
        (([1, 2, 2, 1], [1, 2, 2], square([3, 2, 1, 2])), [0; 3]),
        // Larger.
        (
            ([1, 40, 30, 1], [1, 1, 8], along_width([4, 2, 1, 1, 1])),
            [0; 3],
        ),
        (([2, 20, 36, 2], [1, 7, 9], square([4, 2, 1, 1])), [0; 3]),
        (([1, 17, 18, 1], [1, 10, 12], square([3, 1, 2, 1])), [0; 3]),
        (
            (
                [1, 8, 9, 1],
                [5, 6, 7],
                window([3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], [1, 1, 1]),
            ),
            [1, 1, 1],
        ),
        (([1, 24, 24, 24], [1, 20, 20], square([4, 2, 1, 1])), [0; 3]),
        // Few positions, with elements of filters in whole panels.
        (
            ([1, 64, 40, 1], [1, 1, 8], along_width([4, 2, 1, 1, 1])),
            [0, 0, 1],
        ),
        (([2, 12, 32, 2], [1, 4, 5], square([3, 2, 2, 1])), [0; 3]),
    ];
    shapes.extend((0..8).map(|_| {
        let groups = seed.size(1, 3);
        let mut axis =
            |low: usize, high: usize| [seed.size(1, 2), seed.size(low, high), seed.size(low, high)];
        let [kernel, stride, dilation, sizes, pads, output_padding] = [
            axis(2, 4),
            axis(1, 3),
            axis(1, 2),
            axis(4, 12),
            axis(1, 2),
            axis(0, 2),
        ];
        let pad_before = pads.map(|pad| pad - 1);
        // Enough for what is cut of the depth, which may be of one element.
        let kernel = [kernel[0] + 2, kernel[1], kernel[2]];
        let window = Window {
            kernel,
            stride,
            dilation,
            pad_before,
            pad_after: pad_before,
        };
        (
            (
                [
                    seed.size(1, 3),
                    groups * seed.size(1, 9),
                    groups * seed.size(1, 20),
                    groups,
                ],
                sizes,
                window,
            ),
            output_padding,
        )
    }));
    let shapes = shapes.into_iter().enumerate();
    let mut cases: Vec<Case> = shapes
        .map(|(index, (shape, output_padding))| {
            transposed(seed, shape, output_padding, Tail::of(index))
        })
        .collect();
    for (index, activation) in Activation::ALL.into_iter().enumerate() {
        let shape = ([1, 2, 3, 1], [1, 3, 4], square([3, 2, 1, 1]));
        cases.push(transposed(
            seed,
            shape,
            [0; 3],
            Tail {
                bias: index % 2 == 0,
                residual: false,
                activation,
            },
        ));
    }
    cases
}

fn transposed(
    seed: &mut Seed,
    (channels, size_in, window): Shape,
    output_padding: [usize; 3],
    tail: Tail,
) -> Case {
    let [batch, channels_in, channels_out, groups] = channels;
    let tail = Tail {
        residual: false,
        ..tail
    };
    let size_out = window
        .transposed_size_out(size_in, output_padding)
        .expect("an output is left");
    let (volume, pixels, taps) = (
        size_in.iter().product::<usize>(),
        size_out.iter().product::<usize>(),
        window.taps(),
    );
    let (depth, filters) = (channels_in / groups, channels_out / groups);
    let [x, w, bias] = [
        batch * channels_in * volume,
        channels_in * filters * taps,
        channels_out,
    ]
    .map(|len| seed.floats(len, -1.0, 1.0));
    // Each input element is sent to the outputs that it reaches.
    let mut sums = vec![(0.0, 0.0); batch * channels_out * pixels];
    for (image, channel) in
        (0..batch).flat_map(|image| (0..channels_in).map(move |channel| (image, channel)))
    {
        for at in positions(size_in) {
            let from = f64::from(x[place(image * channels_in + channel, size_in, at)]);
            for (tap, position) in positions(window.kernel).enumerate() {
                let out = |axis: usize| {
                    (at[axis] * window.stride[axis] + position[axis] * window.dilation[axis])
                        .checked_sub(window.pad_before[axis])
                };
                let Some(out) = out(0)
                    .zip(out(1))
                    .zip(out(2))
                    .map(|((plane, row), column)| [plane, row, column])
                else {
                    continue;
                };
                if (0..3).any(|axis| out[axis] >= size_out[axis]) {
                    continue;
                }
                for filter in 0..filters {
                    let term = from * f64::from(w[(channel * filters + filter) * taps + tap]);
                    let sum: &mut (f64, f64) = &mut sums[place(
                        image * channels_out + channel / depth * filters + filter,
                        size_out,
                        out,
                    )];
                    *sum = (sum.0 + term, sum.1 + term.abs());
                }
            }
        }
    }
    let expected = sums
        .iter()
        .enumerate()
        .map(|(at, sum)| tail.expected(depth * taps, *sum, bias[at / pixels % channels_out], 0.0))
        .collect();
    let Window {
        kernel,
        stride,
        dilation,
        pad_before,
        pad_after,
    } = window;
    let shape = format!(
        "{channels:?} {size_in:?} kernel {kernel:?} stride {stride:?} dilation {dilation:?} padding {pad_before:?} {pad_after:?} {output_padding:?} {tail:?}"
    );
    let given = TransposedConvolution {
        batch,
        groups,
        output_padding,
        activation: tail.activation,
        ..TransposedConvolution::new(channels_in, channels_out, size_in, window)
    };
    Case::new(
        shape,
        [x, w, bias].map(Data::F32).into(),
        vec![Output::Near(expected)],
        move |plan, x, y| {
            plan.convolution_transposed(x[0], x[1], tail.bias.then_some(x[2]), y[0], &given)
        },
    )
}

fn pool_shapes(seed: &mut Seed) -> Vec<(usize, [usize; 3], Window)> {
    let mut shapes = vec![
        (1, [1, 1, 1], Window::new([1; 3])),
        (0, [1, 4, 4], square([2, 2, 1, 0])),
        (3, [1, 1, 9], along_width([3, 2, 1, 1, 1])),
        (2, [1, 5, 7], square([2, 2, 1, 0])),
        (3, [1, 6, 6], square([3, 2, 1, 1])),
        (2, [1, 7, 6], square([3, 1, 2, 2])),
        (2, [1, 4, 4], square([1, 3, 1, 0])),
        (
            2,
            [1, 5, 5],
            window([1, 2, 2], [1, 2, 2], [1, 1, 1], [0, 0, 0], [0, 1, 1]),
        ),
        (
            1,
            [3, 4, 5],
            window([2, 3, 2], [1, 2, 1], [1, 1, 2], [1, 1, 0], [0, 1, 2]),
        ),
        // A window larger than the input, and windows without an element of it.
        (2, [1, 2, 2], square([5, 1, 1, 2])),
        (
            1,
            [1, 2, 3],
            window([1, 1, 2], [1, 1, 2], [1, 1, 1], [0, 2, 3], [0, 1, 4]),
        ),
        // Larger.
        (5, [1, 33, 40], square([3, 2, 1, 1])),
        (7, [1, 20, 21], square([5, 1, 1, 2])),
        (4, [1, 48, 64], square([2, 2, 1, 0])),
        // Rows that end within a vector, and a window of a whole channel.
        (3, [1, 9, 71], square([3, 2, 1, 1])),
        (3, [1, 8, 50], square([2, 2, 1, 1])),
        (4, [1, 7, 7], square([7, 1, 1, 0])),
        (
            3,
            [6, 18, 19],
            window([3, 3, 3], [2, 1, 3], [1, 2, 1], [1, 2, 1], [1, 2, 1]),
        ),
    ];
    shapes.extend((0..6).map(|_| {
        let mut axis =
            |low: usize, high: usize| [seed.size(1, 2), seed.size(low, high), seed.size(low, high)];
        let [kernel, stride, dilation, sizes, pad_before, pad_after] = [
            axis(1, 4),
            axis(1, 3),
            axis(1, 2),
            axis(9, 40),
            axis(0, 2),
            axis(0, 2),
        ];
        let kernel = [1, kernel[1], kernel[2]];
        (
            seed.size(1, 9),
            sizes,
            Window {
                kernel,
                stride,
                dilation,
                pad_before,
                pad_after,
            },
        )
    }));
    shapes
}

fn describe(channels: usize, size_in: [usize; 3], window: Window) -> String {
    let Window {
        kernel,
        stride,
        dilation,
        pad_before,
        pad_after,
    } = window;
    format!(
        "{channels} × {size_in:?} kernel {kernel:?} stride {stride:?} dilation {dilation:?} padding {pad_before:?} {pad_after:?}"
    )
}

/// Few different values, so that maxima repeat; some are not numbers, or infinite.
fn max_pool_cases(seed: &mut Seed) -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (channels, size_in, window)) in pool_shapes(seed).into_iter().enumerate() {
        let mut x: Vec<f32> = (0..channels * size_in.iter().product::<usize>())
            .map(|_| seed.size(0, 20) as f32 - 30.0)
            .collect();
        if index % 3 == 1 {
            x.iter_mut().step_by(7).for_each(|x| *x = f32::NEG_INFINITY);
            x.iter_mut().skip(3).step_by(23).for_each(|x| *x = f32::NAN);
        }
        let size_out = window.size_out(size_in).expect("a window that fits");
        let (mut values, mut places) = (Vec::new(), Vec::new());
        for (channel, out) in
            (0..channels).flat_map(|channel| positions(size_out).map(move |out| (channel, out)))
        {
            let (mut best, mut found) = (f32::NEG_INFINITY, u32::MAX);
            for at in positions(window.kernel).filter_map(|tap| read_by(&window, size_in, out, tap))
            {
                let value = x[place(channel, size_in, at)];
                if value.is_nan() || found == u32::MAX || value > best {
                    (best, found) = (value, place(0, size_in, at) as u32);
                }
            }
            values.push(Expected::exactly(f64::from(best)));
            places.push(found);
        }
        let (pooling, shape) = (
            Pooling {
                channels,
                size_in,
                window,
            },
            describe(channels, size_in, window),
        );
        let inputs = vec![Data::F32(x)];
        cases.push(Case::new(
            shape.clone(),
            inputs.clone(),
            vec![Output::Near(values.clone())],
            move |plan, x, y| plan.max_pool(x[0], y[0], None, &pooling),
        ));
        let dtype = if index % 2 == 0 {
            DType::I32
        } else {
            DType::U32
        };
        let outputs = vec![Output::Near(values), Output::Exact(Data::U32(places))];
        cases.push(Case::new(
            format!("{shape} indices"),
            inputs,
            outputs,
            move |plan, x, y| plan.max_pool(x[0], y[0], Some(y[1].reinterpret(dtype)), &pooling),
        ));
    }
    cases
}

fn average_pool_cases(seed: &mut Seed) -> Vec<Case> {
    let mut cases = Vec::new();
    for (channels, size_in, window) in pool_shapes(seed) {
        let x = seed.floats(channels * size_in.iter().product::<usize>(), -1.0, 1.0);
        let size_out = window.size_out(size_in).expect("a window that fits");
        // All padding counts, or that after the input less one: the rest is there for a last window
        // only.
        let fewer = window.pad_after.map(|pad| pad.saturating_sub(1));
        for divisor in [
            PoolDivisor::Inside,
            PoolDivisor::Padded {
                pad_after: window.pad_after,
            },
            PoolDivisor::Padded { pad_after: fewer },
        ] {
            let mut expected = Vec::new();
            for (channel, out) in
                (0..channels).flat_map(|channel| positions(size_out).map(move |out| (channel, out)))
            {
                let (mut sum, mut magnitude, mut count) = (0.0, 0.0, 0);
                for tap in positions(window.kernel) {
                    let at = read_by(&window, size_in, out, tap);
                    if let Some(at) = at {
                        let value = f64::from(x[place(channel, size_in, at)]);
                        sum += value;
                        magnitude += value.abs();
                    }
                    let counts = |axis: usize| match divisor {
                        PoolDivisor::Inside => false,
                        // Positions counted from the first of the padding.
                        PoolDivisor::Padded { pad_after } => {
                            out[axis] * window.stride[axis] + tap[axis] * window.dilation[axis]
                                < window.pad_before[axis] + size_in[axis] + pad_after[axis]
                        }
                    };
                    count += usize::from(at.is_some() || (0..3).all(counts));
                }
                let value = sum / (count as f64).max(1.0);
                expected.push(Expected {
                    value,
                    bound: ROUNDING * (window.taps() as f64 + 2.0) * magnitude
                        / (count as f64).max(1.0),
                });
            }
            let pooling = Pooling {
                channels,
                size_in,
                window,
            };
            let shape = format!("{} {divisor:?}", describe(channels, size_in, window));
            cases.push(Case::new(
                shape,
                vec![Data::F32(x.clone())],
                vec![Output::Near(expected)],
                move |plan, x, y| plan.average_pool(x[0], y[0], &pooling, divisor),
            ));
        }
    }
    cases
}
