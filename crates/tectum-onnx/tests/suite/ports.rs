//! Inputs and outputs as files declare them: numbers without axes, axes without a size, outputs
//! that are listed twice or not needed, and conditions that are an input.

use rten_onnx::onnx::{DataType, Dimension, GraphProto, ValueInfoProto};
use tectum::{Device, ErrorKind};
use tectum_onnx::{Array, ElementType, Model, Network};

use super::small_models::{floats, graph, int, int64s, model, node, outputs, port};

fn file(graph: GraphProto) -> Model {
    Model::from_bytes(&model(graph).write_buf().expect("bytes")).expect("a model")
}

fn array(element: ElementType, dims: &[usize], values: &[f64]) -> Array {
    Array::new(element, dims, values.to_vec()).expect("it fills the shape")
}

/// An output of a network for its inputs.
fn computed(network: &Network, inputs: &[(&str, Array)], output: &str) -> Array {
    let mut compiled = network
        .compile(&Device::open("cpu").expect("always here"))
        .expect("it compiles");
    for (name, array) in inputs {
        compiled.set(name, array).expect(name);
    }
    compiled.run().expect("a run");
    compiled.output(output).expect("there")
}

/// An input whose axes are stated by texts; digits are sizes.
fn named(name: &str, dims: &[&str]) -> ValueInfoProto {
    let mut info = port(name, DataType::FLOAT, &vec![1; dims.len()]);
    let tensor = info
        .r#type
        .as_mut()
        .and_then(|kind| kind.tensor_type.as_mut());
    let shape = tensor.and_then(|tensor| tensor.shape.as_mut());
    shape.expect("a shape").dim = dims
        .iter()
        .map(|text| match text.parse() {
            Ok(size) => Dimension {
                dim_value: Some(size),
                ..Dimension::default()
            },
            Err(_) => Dimension {
                dim_param: Some((*text).to_owned()),
                ..Dimension::default()
            },
        })
        .collect();
    info
}

fn names(network: &Network) -> Vec<&str> {
    network.outputs().map(|port| port.name.as_str()).collect()
}

#[test]
fn an_input_without_axes_is_one_number() {
    let network = file(GraphProto {
        node: vec![node("Add", "x s", "y", vec![])],
        input: vec![
            port("x", DataType::INT64, &[3]),
            port("s", DataType::INT64, &[]),
        ],
        output: vec![port("y", DataType::INT64, &[3])],
        ..GraphProto::default()
    })
    .load(&[])
    .expect("supported");
    assert!(network.inputs()[1].dims.is_empty());
    let integers = |dims: &[usize], values: &[f64]| array(ElementType::I64, dims, values);
    let inputs = [
        ("x", integers(&[3], &[1.0, 2.0, 3.0])),
        ("s", integers(&[], &[5.0])),
    ];
    assert_eq!(computed(&network, &inputs, "y").to_f64(), [6.0, 7.0, 8.0]);
}

#[test]
fn an_output_that_is_listed_twice_is_one_output() {
    let network = file(GraphProto {
        node: vec![node("MatMul", "obs w", "loc", vec![])],
        initializer: vec![floats("w", &[3, 2])],
        input: vec![port("obs", DataType::FLOAT, &[1, 3])],
        output: outputs("loc loc"),
        ..GraphProto::default()
    })
    .load(&[])
    .expect("supported");
    assert_eq!(names(&network), ["loc"]);
    // The weights are -0.5, -0.25, 0, 0.25, 0.5, 0.75.
    let obs = array(ElementType::F32, &[1, 3], &[1.0, 2.0, 4.0]);
    assert_eq!(
        computed(&network, &[("obs", obs)], "loc").to_f64(),
        [1.5, 3.25]
    );
}

/// Paddle2ONNX writes `?` for every size that it does not know: they are different sizes.
#[test]
fn axes_without_a_name_have_sizes_of_their_own() {
    let mean = |dims: &[&str]| {
        file(GraphProto {
            node: vec![node("ReduceMean", "x axes", "y", vec![])],
            initializer: vec![int64s("axes", &[2], &[2, 3])],
            input: vec![named("x", dims)],
            output: outputs("y"),
            ..GraphProto::default()
        })
    };
    let values: Vec<f64> = (0..24).map(f64::from).collect();
    let x = array(ElementType::F32, &[1, 1, 4, 6], &values);
    for dims in [
        ["N", "1", "?", "?"],
        ["1", "1", "None", "-1"],
        ["1", "1", "S", "S"],
    ] {
        let network = mean(&dims)
            .load(&[("x.2", 4), ("x.3", 6)])
            .expect("sizes of axes");
        assert_eq!(network.inputs()[0].dims, [1, 1, 4, 6]);
        let y = computed(&network, &[("x", x.clone())], "y");
        assert_eq!(y.to_f64(), [11.5], "{dims:?}");
    }
    // A name is still one size for all its axes, and its own axes come before it.
    let model = mean(&["1", "1", "S", "S"]);
    assert_eq!(
        model.load(&[("S", 3)]).expect("named").inputs()[0].dims,
        [1, 1, 3, 3]
    );
    let mixed = model.load(&[("S", 3), ("x.3", 2)]).expect("named");
    assert_eq!(mixed.inputs()[0].dims, [1, 1, 3, 2]);
    let open = mean(&["N", "1", "?", "?"]).load(&[]).expect("sizes of 1");
    assert_eq!(
        open.assumptions()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [
            "dimension \"N\" is 1",
            "axis 2 of input \"x\", which has no name and size, is 1",
            "axis 3 of input \"x\", which has no name and size, is 1"
        ]
    );
    let error = mean(&["N", "1", "?", "?"])
        .load(&[("?", 4)])
        .expect_err("no name");
    assert_eq!(
        error.to_string(),
        "no dimension of an input is named \"?\"; there are N, x.2, x.3"
    );
}

/// A head that draws random numbers is not supported; the deterministic one next to it is.
#[test]
fn an_output_is_loaded_without_the_nodes_of_others() {
    let stochastic = file(GraphProto {
        node: vec![
            node("MatMul", "obs w", "deterministic_actions", vec![]),
            node("ImageDecoder", "deterministic_actions", "e", vec![]),
            node("Mul", "e deviation", "noise", vec![]),
            node("Add", "deterministic_actions noise", "actions", vec![]),
        ],
        initializer: vec![floats("w", &[3, 2])],
        input: vec![
            port("obs", DataType::FLOAT, &[1, 3]),
            port("deviation", DataType::FLOAT, &[]),
        ],
        output: outputs("deterministic_actions actions"),
        ..GraphProto::default()
    });
    let error = stochastic.load(&[]).expect_err("no such operator");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let network = stochastic
        .load_outputs(&[], &["deterministic_actions"])
        .expect("supported");
    assert_eq!(names(&network), ["deterministic_actions"]);
    assert_eq!(network.inputs().len(), 1, "the deviation is not needed");
    let obs = array(ElementType::F32, &[1, 3], &[1.0, 2.0, 4.0]);
    let actions = computed(&network, &[("obs", obs)], "deterministic_actions");
    assert_eq!(actions.to_f64(), [1.5, 3.25]);
    let error = stochastic.load_outputs(&[], &["loc"]).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "no output \"loc\"; there are deterministic_actions, actions"
    );
}

/// The value that a branch alone needs is part of the output's part.
#[test]
fn a_condition_that_is_an_input_selects_one_of_both_branches() {
    let branch = |operator: &str, inputs: &str| GraphProto {
        node: vec![node(operator, inputs, "z", vec![])],
        output: outputs("z"),
        ..GraphProto::default()
    };
    let choice = |off: GraphProto| GraphProto {
        node: vec![
            node("Neg", "obs", "negative", vec![]),
            node("Equal", "mode one", "is_on", vec![]),
            node(
                "If",
                "is_on",
                "actions",
                vec![
                    graph("then_branch", branch("Log", "negative")),
                    graph("else_branch", off),
                ],
            ),
        ],
        initializer: vec![int64s("one", &[], &[1])],
        input: vec![
            port("obs", DataType::FLOAT, &[1, 2]),
            port("mode", DataType::INT64, &[]),
        ],
        output: outputs("actions"),
        ..GraphProto::default()
    };
    let model = file(choice(branch("Identity", "obs")));
    for network in [model.load(&[]), model.load_outputs(&[], &["actions"])] {
        let network = network.expect("supported");
        let actions = |mode: f64| {
            let inputs = [
                ("obs", array(ElementType::F32, &[1, 2], &[-1.0, 2.0])),
                ("mode", array(ElementType::I64, &[], &[mode])),
            ];
            computed(&network, &inputs, "actions").to_f64()
        };
        let on = actions(1.0);
        assert!(on[0] == 0.0 && on[1].is_nan(), "{on:?}");
        // What is no number in the other branch does not reach the output.
        assert_eq!(actions(0.0), [-1.0, 2.0]);
    }
    let error = file(choice(branch("ReduceSum", "obs")))
        .load(&[])
        .expect_err("of two shapes");
    assert!(
        error.kind() == ErrorKind::Unsupported
            && error.to_string().contains("both need one shape and type"),
        "{error}"
    );
}

/// torch's newer exporter writes `torch.chunk` as a sequence.
#[test]
fn sequences_of_known_length_leave_their_tensors() {
    let cases: [(&[&str], &[f64]); 6] = [
        (
            &["SplitToSequence x two s axis", "SequenceAt s one y"],
            &[3.0, 4.0],
        ),
        (
            &["SplitToSequence x two s axis", "SequenceAt s last y"],
            &[5.0],
        ),
        (
            &["SplitToSequence x parts s axis", "SequenceAt s one y"],
            &[2.0, 3.0, 4.0, 5.0],
        ),
        (
            &[
                "Neg x _ n",
                "SequenceConstruct x n s",
                "ConcatFromSequence s _ y axis",
            ],
            &[1.0, 2.0, 3.0, 4.0, 5.0, -1.0, -2.0, -3.0, -4.0, -5.0],
        ),
        (
            &[
                "SplitToSequence x _ s axis",
                "SequenceErase s one t",
                "ConcatFromSequence t _ y axis",
            ],
            &[1.0, 3.0, 4.0, 5.0],
        ),
        (
            &[
                "SplitToSequence x two s axis",
                "SequenceLength s _ n",
                "CastLike n x m",
                "Mul x m y",
            ],
            &[3.0, 6.0, 9.0, 12.0, 15.0],
        ),
    ];
    for (nodes, expected) in cases {
        let made = nodes.iter().map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            let inputs = words[1..3].join(" ").replace(" _", "");
            let attributes = words.get(4).map(|name| int(name, 1)).into_iter().collect();
            node(words[0], &inputs, words[3], attributes)
        });
        let network = file(GraphProto {
            node: made.collect(),
            initializer: vec![
                int64s("two", &[], &[2]),
                int64s("one", &[], &[1]),
                int64s("last", &[], &[-1]),
                int64s("parts", &[2], &[1, 4]),
            ],
            input: vec![port("x", DataType::FLOAT, &[1, 5])],
            output: outputs("y"),
            ..GraphProto::default()
        })
        .load(&[])
        .unwrap_or_else(|error| panic!("{nodes:?}: {error}"));
        let x = array(ElementType::F32, &[1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            computed(&network, &[("x", x)], "y").to_f64(),
            expected,
            "{nodes:?}"
        );
    }
    let whole = file(GraphProto {
        node: vec![node("SplitToSequence", "x", "y", vec![])],
        input: vec![port("x", DataType::FLOAT, &[1, 5])],
        output: outputs("y"),
        ..GraphProto::default()
    });
    let error = whole.load(&[]).expect_err("no tensor");
    assert_eq!(error.to_string(), "output \"y\" is a sequence");
}

/// A length is known when the file is loaded: the input is accepted, and no output depends on it.
#[test]
fn a_network_of_known_outputs_accepts_its_inputs() {
    let network = file(GraphProto {
        node: vec![node("Size", "x", "y", vec![])],
        input: vec![port("x", DataType::FLOAT, &[1, 5])],
        output: vec![port("y", DataType::INT64, &[])],
        ..GraphProto::default()
    })
    .load(&[])
    .expect("supported");
    let x = array(ElementType::F32, &[1, 5], &[0.0; 5]);
    assert_eq!(computed(&network, &[("x", x)], "y").to_f64(), [5.0]);
    let mut compiled = network
        .compile(&Device::open("cpu").expect("always here"))
        .expect("it compiles");
    for (name, len, reason) in [
        ("x", 4, "has 5 numbers; 4 were given"),
        ("z", 5, "no input"),
    ] {
        let error = compiled
            .set_floats(name, &vec![0.0; len])
            .expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_number_of_the_best_that_sizes_give_is_known() {
    // The minimum of an axis and 5, as torch's exporter writes it.
    let network = file(GraphProto {
        node: vec![
            node("Shape", "x", "sizes", vec![]),
            node("Gather", "sizes one", "size", vec![int("axis", 0)]),
            node("Min", "size five", "count", vec![]),
            node("Unsqueeze", "count zero", "k", vec![]),
            node("TopK", "x k", "y places", vec![]),
        ],
        initializer: vec![
            int64s("one", &[], &[1]),
            int64s("five", &[], &[5]),
            int64s("zero", &[1], &[0]),
        ],
        input: vec![port("x", DataType::FLOAT, &[1, 3])],
        output: outputs("y places"),
        ..GraphProto::default()
    })
    .load(&[])
    .expect("a network");
    let x = array(ElementType::F32, &[1, 3], &[2.0, 9.0, 4.0]);
    let found = computed(&network, &[("x", x.clone())], "y");
    assert_eq!(found.to_f64(), [9.0, 4.0, 2.0]);
    assert_eq!(
        computed(&network, &[("x", x)], "places").to_f64(),
        [1.0, 2.0, 0.0]
    );
}
