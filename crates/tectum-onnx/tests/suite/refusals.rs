//! Files that are refused, by the kind of the error and what it names.

use rten_onnx::onnx::{DataType, GraphProto, ModelProto, NodeProto, TensorProto};
use tectum::ErrorKind;
use tectum_onnx::Model;

use super::small_models::{graph, int64s, model, node, outputs, port};

fn file(node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> ModelProto {
    let input = vec![
        port("x", DataType::FLOAT, &[2, 3]),
        port("on", DataType::BOOL, &[]),
    ];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("y"),
        ..GraphProto::default()
    })
}

/// A body of a loop: the condition, and one value.
fn body(condition: &str) -> GraphProto {
    let node = vec![
        node("Relu", "v", "v1", vec![]),
        node("Identity", condition, "next", vec![]),
    ];
    let input = vec![
        port("i", DataType::INT64, &[]),
        port("c", DataType::BOOL, &[]),
        port("v", DataType::FLOAT, &[2, 3]),
    ];
    GraphProto {
        node,
        input,
        output: outputs("next v1"),
        ..GraphProto::default()
    }
}

#[test]
fn refusals_name_kind_and_reason() {
    use ErrorKind::{Data, Unsupported};
    let branch = |operator: &str| GraphProto {
        node: vec![node(operator, "x", "z", vec![])],
        output: outputs("z"),
        ..GraphProto::default()
    };
    let choice = vec![
        graph("then_branch", branch("Relu")),
        graph("else_branch", branch("ReduceMean")),
    ];
    let cases = [
        (
            file(
                vec![node("Reshape", "x s", "y", vec![])],
                vec![int64s("s", &[2], &[4, 2])],
            ),
            Data,
            "reshaped to [4, 2]",
        ),
        (
            file(vec![node("Identity", "nothing", "y", vec![])], vec![]),
            Data,
            "computed by no earlier node",
        ),
        (
            file(vec![node("If", "on", "y", choice)], vec![]),
            Unsupported,
            "the condition, is computed while the network runs: both need one shape and type",
        ),
        (
            file(
                vec![node("Loop", "n _ x", "y", vec![graph("body", body("on"))])],
                vec![int64s("n", &[], &[3])],
            ),
            Unsupported,
            "its condition is computed while",
        ),
        (
            file(
                vec![node("Loop", "_ _ x", "y", vec![graph("body", body("c"))])],
                vec![],
            ),
            Unsupported,
            "unrolled, it has more than",
        ),
        (
            file(
                vec![node("ConstantOfShape", "s", "y", vec![])],
                vec![int64s("s", &[2], &[65_536, 65_535])],
            ),
            Unsupported,
            "too many elements",
        ),
    ];
    for (file, kind, reason) in cases {
        let model = Model::from_bytes(&file.write_buf().expect("bytes")).expect("a model");
        let error = model.load(&[]).expect_err(reason);
        assert!(
            error.kind() == kind && error.to_string().contains(reason),
            "{kind:?}, {reason}: {:?}, {error}",
            error.kind()
        );
    }
}
