//! Factors and offsets of channels that follow a convolution become part of its filters and bias;
//! one over the whole input is a dense layer.

use rten_onnx::onnx::{DataType, GraphProto, NodeProto};
use tectum::Device;
use tectum_onnx::{Array, Model, Network};

use super::small_models::{floats, ints, model, node, outputs, port};

/// A network over x [2, 2, 4, 5] with filters `w` [3, 2, 3, 3] and known numbers by channel.
fn network(nodes: &[NodeProto], ends: &str) -> Network {
    let initializer = vec![
        floats("w", &[3, 2, 3, 3]),
        floats("b", &[3]),
        floats("s", &[1, 3, 1, 1]),
        floats("o", &[3, 1, 1]),
        floats("one", &[1]),
        floats("row", &[1, 1, 1, 3]),
        floats("mean", &[3]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[2, 2, 4, 5])];
    let graph = GraphProto {
        node: nodes.to_vec(),
        initializer,
        input,
        output: outputs(ends),
        ..GraphProto::default()
    };
    Model::from_bytes(&model(graph).write_buf().expect("bytes"))
        .expect("a model")
        .load(&[])
        .expect("a network")
}

/// The operations of its graph after optimization, and its output y on the CPU.
fn run(network: &Network) -> (Vec<String>, Vec<f32>) {
    let text = network.graph().expect("a graph").optimize().describe();
    let operations = text.lines().filter_map(|line| {
        line.split_once(" = ")?
            .1
            .split('(')
            .next()
            .map(str::to_owned)
    });
    let operations = operations
        .filter(|name| !name.starts_with("parameter") && !name.starts_with("input"))
        .collect();
    let mut compiled = network
        .compile(&Device::open("cpu").expect("a device"))
        .expect("compiled");
    let x = (0..80)
        .map(|at| (at * 7 % 11) as f32 * 0.25 - 1.0)
        .collect();
    compiled
        .set(
            "x",
            &Array::floats(&[2, 2, 4, 5], x).expect("it fills the shape"),
        )
        .expect("fed");
    compiled.run().expect("run");
    (
        operations,
        compiled.output("y").expect("an output").to_f32(),
    )
}

#[test]
fn factors_and_offsets_of_channels_join_the_filters() {
    let convolution = |inputs: &str| node("Conv", inputs, "c", vec![]);
    let cases: [(&str, Vec<NodeProto>, bool); 8] = [
        (
            "factor and offset",
            vec![
                convolution("x w"),
                node("Mul", "c s", "m", vec![]),
                node("Add", "o m", "y", vec![]),
            ],
            true,
        ),
        (
            "with a bias",
            vec![
                convolution("x w b"),
                node("Mul", "s c", "m", vec![]),
                node("Sub", "m o", "y", vec![]),
            ],
            true,
        ),
        (
            "a quotient by a number",
            vec![convolution("x w b"), node("Div", "c one", "y", vec![])],
            true,
        ),
        (
            "normalization",
            vec![
                convolution("x w"),
                node("BatchNormalization", "c b b mean one3", "y", vec![]),
            ],
            true,
        ),
        (
            "the difference to it",
            vec![convolution("x w"), node("Sub", "o c", "y", vec![])],
            false,
        ),
        (
            "a number of each column",
            vec![convolution("x w"), node("Mul", "c row", "y", vec![])],
            false,
        ),
        (
            "two readers",
            vec![
                convolution("x w"),
                node("Mul", "c s", "m", vec![]),
                node("Add", "m c", "y", vec![]),
            ],
            false,
        ),
        (
            "itself",
            vec![convolution("x w"), node("Mul", "c c", "y", vec![])],
            false,
        ),
    ];
    for (name, mut nodes, joins) in cases {
        // A variance above 0.
        nodes.insert(0, node("Exp", "b", "one3", vec![]));
        let (operations, joined) = run(&network(&nodes, "y"));
        assert_eq!(
            operations == ["convolution"],
            joins,
            "{name}: {operations:?}"
        );
        // As an output the convolution has another reader, and stays as it is.
        let (operations, apart) = run(&network(&nodes, "y c"));
        assert_eq!(
            operations
                .iter()
                .filter(|operation| *operation == "convolution")
                .count(),
            1,
            "{name}: {operations:?}"
        );
        let is_near =
            |(joined, apart): (&f32, &f32)| (joined - apart).abs() <= 1e-5 * apart.abs().max(1.0);
        assert!(
            joined.len() == apart.len() && joined.iter().zip(&apart).all(is_near),
            "{name}: {joined:?} instead of {apart:?}"
        );
    }
}

/// Filters as large as x, and what is done with them: whether a dense layer remains, and the
/// elements of the output, each a sum over the whole input.
#[test]
fn a_convolution_over_the_whole_input_is_a_dense_layer() {
    let pads = || vec![ints("pads", &[1, 1, 1, 1])];
    let dilated = || vec![ints("dilations", &[1, 2])];
    let cases: [(&str, NodeProto, [i64; 4], bool); 6] = [
        (
            "the whole input",
            node("Conv", "x w b", "c", vec![]),
            [3, 2, 4, 5],
            true,
        ),
        (
            "computed filters",
            node("Conv", "x v b", "c", vec![]),
            [3, 2, 4, 5],
            true,
        ),
        (
            "no bias",
            node("Conv", "x w", "c", vec![]),
            [3, 2, 4, 5],
            true,
        ),
        (
            "a part of the input",
            node("Conv", "x w b", "c", vec![]),
            [3, 2, 3, 5],
            false,
        ),
        (
            "padding",
            node("Conv", "x w b", "c", pads()),
            [3, 2, 4, 5],
            false,
        ),
        (
            "dilation",
            node("Conv", "x w b", "c", dilated()),
            [3, 2, 4, 3],
            false,
        ),
    ];
    for (name, convolution, filters, is_dense) in cases {
        let (has_bias, is_computed) = (convolution.input.len() > 2, name.starts_with("computed"));
        let nodes = vec![
            node("Neg", "u", "v", vec![]),
            convolution,
            node("Mul", "c s", "y", vec![]),
        ];
        let mut input = vec![port("x", DataType::FLOAT, &[2, 2, 4, 5])];
        input.extend(is_computed.then(|| port("u", DataType::FLOAT, &filters)));
        let graph = GraphProto {
            node: if is_computed {
                nodes
            } else {
                nodes[1..].to_vec()
            },
            initializer: vec![
                floats("w", &filters),
                floats("b", &[3]),
                floats("s", &[1, 3, 1, 1]),
            ],
            input,
            output: outputs("y"),
            ..GraphProto::default()
        };
        let model = Model::from_bytes(&model(graph).write_buf().expect("bytes")).expect("a model");
        let network = model.load(&[]).expect("a network");
        let text = network.graph().expect("a graph").describe();
        assert_eq!(!text.contains("convolution"), is_dense, "{name}: {text}");
        if !is_dense {
            continue;
        }
        // As `floats` makes them, in another order of the sum.
        let number = |at: usize| 0.25 * (at % 7) as f64 - 0.5;
        let x = |at: usize| (at * 7 % 11) as f64 * 0.25 - 1.0;
        let mut compiled = network
            .compile(&Device::open("cpu").expect("a device"))
            .expect("compiled");
        let floats = |count: usize, number: &dyn Fn(usize) -> f64| -> Vec<f32> {
            (0..count).map(|at| number(at) as f32).collect()
        };
        compiled.set_floats("x", &floats(80, &x)).expect("fed");
        if is_computed {
            let negative = |at: usize| -number(at);
            compiled
                .set_floats("u", &floats(120, &negative))
                .expect("fed");
        }
        compiled.run().expect("a run");
        let found = compiled.output("y").expect("an output");
        assert_eq!(found.dims(), [2, 3, 1, 1], "{name}");
        for (at, found) in found.to_f64().into_iter().enumerate() {
            let (image, filter) = (at / 3, at % 3);
            let sum: f64 = (0..40)
                .map(|term| x(image * 40 + term) * number(filter * 40 + term))
                .sum();
            let bias = if has_bias { number(filter) } else { 0.0 };
            let expected = (sum + bias) * number(filter);
            assert!(
                (found - expected).abs() < 1e-5,
                "{name}: {found}, {expected} expected"
            );
        }
    }
}
