//! Files that are refused, by the kind of the error and what it names.

use rten_onnx::onnx::{AttributeProto, DataType, GraphProto, ModelProto, NodeProto, TensorProto};
use tectum::ErrorKind;
use tectum_onnx::Model;

use super::small_models::{
    float_list, graph, int, int64s, ints, model, node, numbers, outputs, port, text, texts, words,
};

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

/// A tree of a root and two branches that lead to each other.
fn looping_tree() -> Vec<AttributeProto> {
    let modes = ["BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LEQ", "LEAF"];
    vec![
        ints("nodes_treeids", &[0; 4]),
        ints("nodes_nodeids", &[0, 1, 2, 3]),
        ints("nodes_featureids", &[0; 4]),
        float_list("nodes_values", &[0.0; 4]),
        texts("nodes_modes", &modes),
        ints("nodes_truenodeids", &[1, 2, 1, 0]),
        ints("nodes_falsenodeids", &[3, 3, 3, 0]),
        ints("target_treeids", &[0]),
        ints("target_nodeids", &[3]),
        ints("target_ids", &[0]),
        float_list("target_weights", &[1.0]),
    ]
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
        (
            file(
                vec![
                    node(
                        "ArgMax",
                        "x",
                        "best",
                        vec![int("axis", 1), int("keepdims", 0)],
                    ),
                    node("Slice", "best zero one", "k", vec![]),
                    node("TopK", "x k", "y at", vec![]),
                ],
                vec![int64s("zero", &[1], &[0]), int64s("one", &[1], &[1])],
            ),
            Unsupported,
            "node 2 (TopK, opset 20): input 1, k, is computed while the network runs",
        ),
        (
            file(
                vec![node(
                    "Multinomial",
                    "x",
                    "y",
                    vec![int("sample_size", 2), int("dtype", 1)],
                )],
                vec![],
            ),
            Data,
            "classes as float32",
        ),
        (
            file(vec![node("RandomUniform", "", "y", vec![])], vec![]),
            Data,
            "attribute shape is missing",
        ),
        (
            file(
                vec![NodeProto {
                    domain: Some("com.microsoft".to_owned()),
                    ..node("SkipLayerNormalization", "x x2 g", "y", vec![])
                }],
                vec![
                    numbers("x2", &[2, 2], &[1.0; 4]),
                    numbers("g", &[3], &[1.0; 3]),
                ],
            ),
            Data,
            "[2, 3] and [2, 2]; [batch, sequence, width] is needed",
        ),
        (
            file(
                vec![NodeProto {
                    domain: Some("ai.onnx.ml".to_owned()),
                    ..node(
                        "LinearRegressor",
                        "x",
                        "y",
                        vec![text("post_transform", "PROBIT")],
                    )
                }],
                vec![],
            ),
            Unsupported,
            "post_transform PROBIT",
        ),
        (
            file(
                vec![NodeProto {
                    domain: Some("ai.onnx.ml".to_owned()),
                    ..node("TreeEnsembleRegressor", "x", "y", looping_tree())
                }],
                vec![],
            ),
            Data,
            "leads back to a node of its own",
        ),
        (
            file(
                vec![NodeProto {
                    domain: Some("com.microsoft".to_owned()),
                    ..node("QGemm", "x s z x s z", "y", vec![])
                }],
                vec![
                    numbers("s", &[], &[1.0]),
                    words("z", DataType::UINT8, &[], [0]),
                ],
            ),
            Data,
            "a product of float32: int8 or uint8 is needed",
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
