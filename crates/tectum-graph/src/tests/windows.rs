//! Gradients of convolutions and pooling.

use tectum::{Device, ErrorKind, Result, Window};

use super::derivatives::check;
use super::networks::outputs_on;
use super::random_graph::random_feeds;
use crate::{Graph, GraphBuilder, Node, PoolKind, Shape, Tensor};

/// Sums of up to a few thousand products in f32, by the magnitude of the sum.
const TOLERANCE: f64 = 2e-5;

/// A convolution: sizes of x and of the filters, groups, window, and what a transposed one adds at
/// the end of each axis.
type Convolution = (
    &'static str,
    &'static [usize],
    &'static [usize],
    usize,
    Window,
    Option<[usize; 3]>,
);

fn window<const N: usize>(
    kernel: [usize; N],
    stride: [usize; N],
    dilation: [usize; N],
    before: [usize; N],
    after: [usize; N],
) -> Window {
    let last = |sizes: [usize; N], unused: usize| {
        let mut all = [unused; 3];
        all[3 - N..].copy_from_slice(&sizes);
        all
    };
    Window {
        kernel: last(kernel, 1),
        stride: last(stride, 1),
        dilation: last(dilation, 1),
        pad_before: last(before, 0),
        pad_after: last(after, 0),
    }
}

fn convolutions() -> Vec<Convolution> {
    let plain = |kernel: [usize; 2]| window(kernel, [1, 1], [1, 1], [0, 0], [0, 0]);
    vec![
        (
            "padding",
            &[2, 3, 5, 4],
            &[4, 3, 3, 3],
            1,
            window([3, 3], [1, 1], [1, 1], [1, 1], [1, 1]),
            None,
        ),
        (
            "one element",
            &[3, 4, 2, 3],
            &[2, 4, 1, 1],
            1,
            plain([1, 1]),
            None,
        ),
        (
            "one element in groups",
            &[2, 4, 3],
            &[6, 2, 1],
            2,
            window([1], [1], [1], [0], [0]),
            None,
        ),
        (
            "one element, padded",
            &[2, 2, 3],
            &[2, 2, 1],
            1,
            window([1], [1], [1], [0], [2]),
            None,
        ),
        (
            "one element, stride 2, last row and column unread",
            &[2, 2, 6, 4],
            &[3, 2, 1, 1],
            1,
            window([1, 1], [2, 2], [1, 1], [0, 0], [0, 0]),
            None,
        ),
        (
            "stride that does not divide, uneven padding",
            &[2, 4, 9],
            &[6, 2, 3],
            2,
            window([3], [2], [1], [1], [0]),
            None,
        ),
        (
            "stride 4, unread padding and elements",
            &[1, 2, 7, 6],
            &[2, 2, 2, 3],
            1,
            window([2, 3], [4, 4], [1, 1], [0, 1], [1, 3]),
            None,
        ),
        (
            "dilation 2 and stride 3",
            &[2, 2, 11],
            &[2, 2, 3],
            1,
            window([3], [3], [2], [2], [1]),
            None,
        ),
        (
            "dilation 2 in groups",
            &[2, 4, 6, 5],
            &[6, 2, 2, 3],
            2,
            window([2, 3], [1, 1], [2, 2], [1, 2], [0, 1]),
            None,
        ),
        (
            "depthwise, stride 2",
            &[3, 5, 6, 5],
            &[5, 1, 3, 3],
            5,
            window([3, 3], [2, 2], [1, 1], [1, 0], [1, 1]),
            None,
        ),
        (
            "depthwise, two filters of each",
            &[2, 3, 4, 5],
            &[6, 1, 2, 2],
            3,
            plain([2, 2]),
            None,
        ),
        (
            "depthwise, stride 2 and dilation 2",
            &[2, 3, 8],
            &[3, 1, 3],
            3,
            window([3], [2], [2], [1], [3]),
            None,
        ),
        (
            "three axes in groups",
            &[2, 4, 3, 4, 3],
            &[2, 2, 2, 3, 2],
            2,
            window([2, 3, 2], [1, 2, 1], [1, 1, 2], [1, 0, 1], [0, 1, 1]),
            None,
        ),
        (
            "a window that reads only padding",
            &[1, 1, 1],
            &[2, 1, 1],
            1,
            window([1], [2], [1], [3], [0]),
            None,
        ),
        (
            "images in parts",
            &[2, 1, 50, 50],
            &[2, 1, 2, 2],
            1,
            plain([2, 2]),
            None,
        ),
        (
            "transposed",
            &[2, 3, 3, 2],
            &[3, 4, 2, 3],
            1,
            plain([2, 3]),
            Some([0; 3]),
        ),
        (
            "transposed, one element in groups",
            &[2, 4, 3],
            &[4, 2, 1],
            2,
            window([1], [1], [1], [0], [0]),
            Some([0; 3]),
        ),
        (
            "transposed, one element, added",
            &[2, 2, 3],
            &[2, 2, 1],
            1,
            window([1], [1], [1], [0], [0]),
            Some([0, 0, 2]),
        ),
        (
            "transposed, stride 2 in groups",
            &[2, 4, 5],
            &[4, 3, 3],
            2,
            window([3], [2], [1], [1], [1]),
            Some([0, 0, 1]),
        ),
        (
            "transposed, dilation 2, uneven padding",
            &[1, 2, 3, 3],
            &[2, 2, 2, 2],
            1,
            window([2, 2], [3, 2], [2, 2], [1, 0], [2, 1]),
            Some([0, 2, 1]),
        ),
        (
            "transposed, more is added than the stride",
            &[2, 2, 3],
            &[2, 1, 2],
            1,
            window([2], [2], [1], [0], [1]),
            Some([0, 0, 5]),
        ),
        (
            "transposed depthwise",
            &[2, 3, 3, 3],
            &[3, 1, 3, 3],
            3,
            window([3, 3], [2, 2], [1, 1], [1, 1], [1, 1]),
            Some([0, 1, 1]),
        ),
        (
            "transposed, three axes",
            &[1, 2, 2, 2, 3],
            &[2, 2, 2, 1, 2],
            1,
            window([2, 1, 2], [2, 1, 2], [1, 1, 1], [0, 0, 1], [1, 0, 0]),
            Some([0; 3]),
        ),
    ]
}

fn pools() -> Vec<(&'static str, &'static [usize], PoolKind, Window)> {
    let halves = window([2, 2], [2, 2], [1, 1], [0, 0], [0, 0]);
    let overlapping = window([3, 3], [2, 2], [1, 1], [1, 1], [1, 1]);
    let spread = window([2], [1], [3], [1], [2]);
    let deep = window([2, 1, 3], [1, 2, 2], [1, 1, 1], [1, 0, 1], [0, 0, 1]);
    vec![
        (
            "max of halves, last row unread",
            &[2, 3, 5, 4],
            PoolKind::Max,
            halves,
        ),
        (
            "max, overlapping",
            &[2, 2, 6, 5],
            PoolKind::Max,
            overlapping,
        ),
        ("max, dilation 3", &[2, 3, 7], PoolKind::Max, spread),
        ("max, three axes", &[1, 2, 3, 4, 5], PoolKind::Max, deep),
        (
            "max of all",
            &[2, 3, 4, 3],
            PoolKind::Max,
            window([4, 3], [1, 1], [1, 1], [0, 0], [0, 0]),
        ),
        (
            "mean of halves, last row unread",
            &[2, 3, 5, 4],
            PoolKind::MeanInside,
            halves,
        ),
        (
            "mean, overlapping",
            &[2, 2, 6, 5],
            PoolKind::MeanInside,
            overlapping,
        ),
        ("mean, dilation 3", &[2, 3, 7], PoolKind::MeanInside, spread),
        (
            "mean of nothing",
            &[2, 1, 5],
            PoolKind::MeanInside,
            window([1], [2], [1], [2], [1]),
        ),
        (
            "mean of all",
            &[2, 3, 4, 3],
            PoolKind::MeanInside,
            window([4, 3], [1, 1], [1, 1], [0, 0], [0, 0]),
        ),
        (
            "mean of all and more",
            &[2, 3, 4, 3],
            PoolKind::MeanInside,
            window([4, 3], [1, 1], [1, 1], [0, 0], [1, 1]),
        ),
        (
            "mean with padding",
            &[2, 2, 6, 5],
            PoolKind::MeanPadded { after: [0, 1, 0] },
            overlapping,
        ),
        (
            "mean with padding, three axes",
            &[1, 2, 3, 4, 5],
            PoolKind::MeanPadded { after: [0, 0, 1] },
            deep,
        ),
    ]
}

/// The sum of the squares of a value.
fn squares(g: &mut GraphBuilder, y: Node, name: &str) -> Result<()> {
    let square = g.mul(y, y)?;
    let loss = g.sum(square)?;
    g.output(name, loss)
}

fn shape(sizes: &[usize]) -> Shape {
    Shape::of(&sizes.iter().map(|size| (*size).into()).collect::<Vec<_>>())
}

/// Parameters are x, if it is small, filters and bias.
fn convolved(&(_, x, w, groups, window, transposed): &Convolution) -> Result<Graph> {
    let mut g = GraphBuilder::new();
    let x = if x.iter().product::<usize>() < 1000 {
        g.parameter("x", shape(x))?
    } else {
        g.input("x", shape(x))?
    };
    let filters = if transposed.is_some() {
        w[1] * groups
    } else {
        w[0]
    };
    let (w, bias) = (g.parameter("w", shape(w))?, g.parameter("bias", [filters])?);
    let y = match transposed {
        None => g.convolution(x, w, Some(bias), groups, window)?,
        Some(adds) => g.convolution_transposed(x, w, Some(bias), groups, window, adds)?,
    };
    squares(&mut g, y, "loss")?;
    g.finish()
}

fn pooled(sizes: &[usize], kind: PoolKind, window: Window) -> Result<Graph> {
    let mut g = GraphBuilder::new();
    let x = g.parameter("x", shape(sizes))?;
    let y = g.pool(x, kind, window)?;
    squares(&mut g, y, "loss")?;
    g.finish()
}

fn graphs() -> Vec<(&'static str, Graph)> {
    let convolutions = convolutions()
        .into_iter()
        .map(|case| (case.0, convolved(&case)));
    let pools = pools()
        .into_iter()
        .map(|(name, sizes, kind, window)| (name, pooled(sizes, kind, window)));
    convolutions
        .chain(pools)
        .map(|(name, graph)| {
            (
                name,
                graph.unwrap_or_else(|error| panic!("{name}: {error}")),
            )
        })
        .collect()
}

fn elements(graph: &Graph) -> usize {
    graph.parameters().map(|(.., shape)| shape.len()).sum()
}

#[test]
fn gradients_of_windows_match_central_differences() {
    for (name, graph) in graphs() {
        assert_eq!(
            check(&graph, "loss", "grad.", 3),
            (elements(&graph), 0),
            "{name}"
        );
    }
}

/// Of the first parameter's gradient, with respect to all parameters.
#[test]
fn second_gradients_of_windows_match_central_differences() {
    for (name, graph) in graphs()
        .into_iter()
        .filter(|(_, graph)| elements(graph) < 100)
    {
        let first = graph
            .gradients(graph.output("loss").expect("there"))
            .expect("differentiates");
        let (parameter, ..) = graph.parameters().next().expect("there");
        let node = first.output(&format!("grad.{parameter}")).expect("there");
        let mut g = GraphBuilder::from(first);
        squares(&mut g, node, "roughness").expect("right");
        let graph = g.finish().expect("right");
        assert_eq!(
            check(&graph, "roughness", "grad.grad.", 4),
            (elements(&graph), 0),
            "{name}"
        );
    }
}

#[test]
fn devices_compute_the_gradients_of_windows() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: gradients of windows");
            continue;
        };
        for (name, graph) in graphs() {
            let gradients = graph
                .gradients(graph.output("loss").expect("there"))
                .expect("differentiates");
            let feeds = random_feeds(&gradients, 5);
            let wanted = gradients.evaluate(&feeds).expect("fed");
            for fused in [false, true] {
                let made = outputs_on(&gradients, &feeds, &device, fused);
                for ((output, ..), (wanted, made)) in
                    gradients.outputs().zip(wanted.iter().zip(&made))
                {
                    let size = wanted
                        .data()
                        .iter()
                        .fold(1.0f64, |size, value| size.max(value.abs()));
                    let is_near = wanted.data().iter().zip(made).all(|(wanted, made)| {
                        (wanted - f64::from(*made)).abs() <= TOLERANCE * size
                    });
                    assert!(
                        made.len() == wanted.data().len() && is_near,
                        "{id}, {name}, {output}: {made:?}, not {:?}",
                        wanted.data()
                    );
                }
            }
        }
    }
}

/// The first of equal elements has the gradient of a maximum, also of −∞.
#[test]
fn the_first_maximum_has_the_gradient() {
    let mut g = GraphBuilder::new();
    let x = g.parameter("x", [1, 2, 4]).expect("right");
    let y = g
        .pool(x, PoolKind::Max, window([2], [1], [1], [0], [1]))
        .expect("right");
    let loss = g.sum(y).expect("right");
    g.output("loss", loss).expect("right");
    let gradients = g
        .finish()
        .expect("right")
        .gradients(loss)
        .expect("differentiates");
    let rows = [
        1.0,
        1.0,
        1.0,
        1.0,
        f32::NEG_INFINITY,
        f32::NEG_INFINITY,
        2.0,
        2.0,
    ];
    let feeds = [(
        x,
        Tensor::new([1, 2, 4], rows.map(f64::from).to_vec()).expect("filled"),
    )];
    let wanted = [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 2.0, 1.0];
    assert_eq!(gradients.evaluate(&feeds).expect("fed")[1].data(), wanted);
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            continue;
        };
        assert_eq!(
            outputs_on(&gradients, &feeds, &device, true)[1],
            wanted.map(|value| value as f32),
            "{id}"
        );
    }
}

/// What passes make is differentiated before them.
#[test]
fn a_convolution_with_a_tail_or_panels_is_not_differentiated() {
    let text = "%0 = input x [1, 2, 4]\n%1 = parameter w [3, 2, 2]\n%2 = convolution(%0, %1, groups 1, kernel 1 1 2, stride 1 1 1, \
                dilation 1 1 1, before 0 0 0, after 0 0 0) [1, 3, 3]\n%3 = relu(%2) [1, 3, 3]\n%4 = sum(%3) [1, 1]\noutput loss %4\n";
    let graph = Graph::parse(text).expect("read");
    let (packed, _) = graph.pack_filters();
    for made in [graph.fuse(), packed] {
        let error = made
            .gradients(made.output("loss").expect("there"))
            .expect_err("refused");
        assert_eq!(
            (
                error.kind(),
                error
                    .to_string()
                    .contains("differentiate before optimizing")
            ),
            (ErrorKind::Invalid, true),
            "{error}"
        );
    }
}

/// Axes that a value does not have are not padded.
#[test]
fn padding_along_missing_axes_is_refused() {
    let mut g = GraphBuilder::new();
    let (x, w) = (
        g.input("x", [1, 2, 4]).expect("right"),
        g.parameter("w", [2, 2, 2]).expect("right"),
    );
    let plain = window([2], [1], [1], [0], [0]);
    for padded in [
        Window {
            pad_before: [0, 1, 0],
            ..plain
        },
        Window {
            pad_after: [1, 0, 0],
            ..plain
        },
    ] {
        assert!(
            g.convolution(x, w, None, 1, padded).is_err()
                && g.convolution_transposed(x, w, None, 1, padded, [0; 3])
                    .is_err()
        );
        assert!(g.pool(x, PoolKind::Max, padded).is_err());
    }
    assert!(
        g.convolution_transposed(x, w, None, 1, plain, [0, 1, 0])
            .is_err()
    );
}
