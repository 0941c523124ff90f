//! The rows of the suite of convolutions: layers of networks for images and for control, and one
//! row for each kernel in the core suite.
//!
//! A key has the sizes channels in, size of the input, channels out, kernel, stride, padding,
//! groups, and the threads: `convolution.conv2d.64x56x56x64x3x1x1x1.t1`.

use tectum::{
    Activation, Convolution, DType, Device, FilterLayout, PlanBuilder, PoolDivisor, Pooling,
    TransposedConvolution, View, Window,
};

use super::{Case, Record, Roofline, Work, fill_all, plan_of};

const F: DType = DType::F32;

/// A square window.
fn square(kernel: usize, stride: usize, pad: usize) -> Window {
    Window {
        stride: [1, stride, stride],
        pad_before: [0, pad, pad],
        pad_after: [0, pad, pad],
        ..Window::new([1, kernel, kernel])
    }
}

/// Channels in, side, channels out, kernel, stride, padding, groups.
const LAYERS: [[usize; 7]; 20] = [
    // ResNet-18.
    [3, 224, 64, 7, 2, 3, 1],
    [64, 56, 64, 3, 1, 1, 1],
    [64, 56, 128, 3, 2, 1, 1],
    [64, 56, 128, 1, 2, 0, 1],
    [128, 28, 128, 3, 1, 1, 1],
    [256, 14, 256, 3, 1, 1, 1],
    [512, 7, 512, 3, 1, 1, 1],
    // MobileNet, EfficientNet.
    [32, 112, 32, 3, 1, 1, 32],
    [72, 56, 72, 3, 2, 1, 72],
    [240, 14, 240, 5, 1, 2, 240],
    [960, 7, 960, 5, 1, 2, 960],
    [32, 112, 64, 1, 1, 0, 1],
    [40, 14, 240, 1, 1, 0, 1],
    [240, 14, 40, 1, 1, 0, 1],
    [960, 7, 160, 1, 1, 0, 1],
    // Nature CNN.
    [4, 84, 32, 8, 4, 0, 1],
    [32, 20, 64, 4, 2, 0, 1],
    [64, 9, 64, 3, 1, 0, 1],
    // Several groups; few channels.
    [128, 28, 128, 3, 1, 1, 4],
    [16, 32, 16, 3, 1, 1, 1],
];

/// The suite: every row on one thread and on two.
pub(super) fn cases(device: &Device) -> Vec<Case> {
    let is_cpu = device.info().id == "cpu";
    let all = |threads: Option<usize>| {
        works()
            .into_iter()
            .map(move |work| on_threads(work, threads))
    };
    if is_cpu {
        all(Some(1)).chain(all(Some(2))).collect()
    } else {
        all(None).collect()
    }
}

fn works() -> Vec<Work> {
    LAYERS
        .into_iter()
        .map(layer)
        .chain([along_width(), transposed(), max_pool(), average_pool()])
        .collect()
}

/// A row on so many threads, or on those of the device.
fn on_threads(work: Work, threads: Option<usize>) -> Case {
    let Some(threads) = threads else {
        return Case::of("convolution", work);
    };
    Case {
        key: format!("convolution.{}.{}.t{threads}", work.name, work.shape),
        roofline: work.roofline,
        threads: Some(threads),
        amount: work.amount,
        prepare: Box::new(move |_| {
            let ((plan, views), below) = (plan_of(&work)?, work.below);
            // Called from this thread: no other thread is woken for a small convolution.
            let mut run = plan.compile(&Device::cpu().threads(threads).open()?)?;
            fill_all(&mut run, &views, below)?;
            Ok(Box::new(run))
        }),
        alternatives: Vec::new(),
    }
}

fn work(
    name: &'static str,
    sizes: &[usize],
    amount: usize,
    operands: Vec<(DType, usize)>,
    record: Box<Record>,
) -> Work {
    let shape = sizes
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join("x");
    Work {
        name,
        shape,
        roofline: Roofline::Gemm,
        amount: amount as f64,
        operands,
        below: 2,
        record,
    }
}

/// A convolution with a bias and a ReLU, its filters packed where they can be.
fn convolution(name: &'static str, sizes: &[usize], mut given: Convolution) -> Work {
    given.activation = Activation::Relu;
    given.layout = if given.is_depthwise() {
        FilterLayout::Rows
    } else {
        FilterLayout::Panels
    };
    let (x, w, y, amount) = lengths(&given);
    let operands = vec![(F, x), (F, w), (F, given.channels_out), (F, y)];
    work(
        name,
        sizes,
        amount,
        operands,
        Box::new(move |plan, v| plan.convolution(v[0], v[1], Some(v[2]), v[3], &given)),
    )
}

/// Elements of input, filters and output, and the operations.
fn lengths(given: &Convolution) -> (usize, usize, usize, usize) {
    let pixels = given
        .window
        .size_out(given.size_in)
        .map_or(0, |size| size.iter().product::<usize>());
    let depth = given.channels_in / given.groups * given.window.taps();
    let filters = if given.layout == FilterLayout::Panels {
        given.panel_floats()
    } else {
        given.channels_out * depth
    };
    let y = given.channels_out * pixels;
    (
        given.channels_in * given.size_in.iter().product::<usize>(),
        filters,
        y,
        2 * y * depth,
    )
}

fn layer([channels_in, side, channels_out, kernel, stride, pad, groups]: [usize; 7]) -> Work {
    let given = Convolution {
        groups,
        ..Convolution::new(
            channels_in,
            channels_out,
            [1, side, side],
            square(kernel, stride, pad),
        )
    };
    convolution(
        "conv2d",
        &[
            channels_in,
            side,
            side,
            channels_out,
            kernel,
            stride,
            pad,
            groups,
        ],
        given,
    )
}

/// A layer of a diffusion policy's network.
fn along_width() -> Work {
    let window = Window {
        pad_before: [0, 0, 2],
        pad_after: [0, 0, 2],
        ..Window::new([1, 1, 5])
    };
    convolution(
        "conv1d",
        &[256, 16, 256, 5, 1, 2, 1],
        Convolution::new(256, 256, [1, 1, 16], window),
    )
}

/// The step up of the same network.
fn transposed() -> Work {
    let window = Window {
        stride: [1, 1, 2],
        pad_before: [0, 0, 1],
        pad_after: [0, 0, 1],
        ..Window::new([1, 1, 4])
    };
    let given = TransposedConvolution {
        activation: Activation::Relu,
        ..TransposedConvolution::new(256, 256, [1, 1, 8], window)
    };
    let operands = vec![(F, 256 * 8), (F, 256 * 256 * 4), (F, 256), (F, 256 * 16)];
    let record = move |plan: &mut PlanBuilder, v: &[View]| {
        plan.convolution_transposed(v[0], v[1], Some(v[2]), v[3], &given)
    };
    work(
        "conv_transpose1d",
        &[256, 8, 256, 4, 2, 1],
        2 * 256 * 256 * 4 * 8,
        operands,
        Box::new(record),
    )
}

/// The pooling after the first layer of ResNet-18.
const POOLING: Pooling = Pooling {
    channels: 64,
    size_in: [1, 112, 112],
    window: Window {
        kernel: [1, 3, 3],
        stride: [1, 2, 2],
        dilation: [1; 3],
        pad_before: [0, 1, 1],
        pad_after: [0, 1, 1],
    },
};

fn pooled(name: &'static str, record: Box<Record>) -> Work {
    let (x, y) = (64 * 112 * 112, 64 * 56 * 56);
    Work {
        roofline: Roofline::Copy,
        ..work(
            name,
            &[64, 112, 112, 3, 2, 1],
            4 * (x + y),
            vec![(F, x), (F, y), (DType::U32, y)],
            record,
        )
    }
}

fn max_pool() -> Work {
    pooled(
        "max_pool2d",
        Box::new(|plan, v| plan.max_pool(v[0], v[1], None, &POOLING)),
    )
}

fn average_pool() -> Work {
    pooled(
        "average_pool2d",
        Box::new(|plan, v| plan.average_pool(v[0], v[1], &POOLING, PoolDivisor::Inside)),
    )
}

/// One row for each kernel.
pub(super) fn core_rows() -> Vec<Work> {
    let indices: Box<Record> = Box::new(|plan, v| plan.max_pool(v[0], v[1], Some(v[2]), &POOLING));
    let mut rows = vec![
        max_pool(),
        pooled("max_pool2d_indices", indices),
        average_pool(),
        transposed(),
    ];
    let given = TransposedConvolution::new(64, 64, [1, 28, 28], square(4, 2, 1));
    let operands = vec![(F, 64 * 28 * 28), (F, 64 * 64 * 16), (F, 64 * 56 * 56)];
    let record = move |plan: &mut PlanBuilder, v: &[View]| {
        plan.convolution_transposed(v[0], v[1], None, v[2], &given)
    };
    rows.push(work(
        "conv_transpose2d",
        &[64, 28, 28, 64, 4, 2, 1],
        2 * 64 * 64 * 16 * 28 * 28,
        operands,
        Box::new(record),
    ));
    for layout in [FilterLayout::Rows, FilterLayout::Panels] {
        rows.extend(
            [[false, false], [true, false], [false, true], [true, true]]
                .map(|tail| core_convolution(layout, tail)),
        );
    }
    rows
}

fn core_convolution(layout: FilterLayout, [has_bias, has_residual]: [bool; 2]) -> Work {
    let given = Convolution {
        layout,
        ..Convolution::new(64, 64, [1, 56, 56], square(3, 1, 1))
    };
    let (x, w, y, amount) = lengths(&given);
    let operands = vec![(F, x), (F, w), (F, 64), (F, y), (F, y)];
    let record = move |plan: &mut PlanBuilder, v: &[View]| {
        let residual = has_residual.then_some(v[4]);
        plan.convolution(
            v[0],
            v[1],
            has_bias.then_some(v[2]),
            v[3],
            &Convolution { residual, ..given },
        )
    };
    let mut work = work(
        "conv2d",
        &[64, 56, 56, 64, 3, 1, 1, 1],
        amount,
        operands,
        Box::new(record),
    );
    work.shape.push_str(if layout == FilterLayout::Panels {
        ".panels"
    } else {
        ".rows"
    });
    work.shape.push_str(match (has_bias, has_residual) {
        (false, false) => "",
        (true, false) => ".bias",
        (false, true) => ".residual",
        (true, true) => ".bias_residual",
    });
    work
}
