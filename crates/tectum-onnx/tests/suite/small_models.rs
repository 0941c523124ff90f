//! Small models of many operators, made without another program.

use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

/// A tensor of 64-bit integers.
pub fn int64s(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(DataType::INT64),
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// A tensor of a narrow type.
pub fn words(
    name: &str,
    kind: DataType,
    dims: &[i64],
    values: impl IntoIterator<Item = i32>,
) -> TensorProto {
    let int32_data = values.into_iter().collect();
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(kind),
        int32_data,
        ..TensorProto::default()
    }
}

/// A tensor of f32, each element another.
pub fn floats(name: &str, dims: &[i64]) -> TensorProto {
    let len = dims.iter().product::<i64>();
    let float_data = (0..len)
        .map(|place| 0.25 * (place % 7) as f32 - 0.5)
        .collect();
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(DataType::FLOAT),
        float_data,
        ..TensorProto::default()
    }
}

/// A tensor of f32 with these elements.
pub fn numbers(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        float_data: values.to_vec(),
        ..floats(name, dims)
    }
}

pub fn port(name: &str, kind: DataType, dims: &[i64]) -> ValueInfoProto {
    let dim = dims
        .iter()
        .map(|size| Dimension {
            dim_value: Some(*size),
            ..Dimension::default()
        })
        .collect();
    let tensor = TypeProtoTensor {
        elem_type: Some(kind),
        shape: Some(TensorShapeProto { dim }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            tensor_type: Some(tensor),
            ..TypeProto::default()
        }),
    }
}

pub fn node(
    operator: &str,
    inputs: &str,
    outputs: &str,
    attributes: Vec<AttributeProto>,
) -> NodeProto {
    let names = |text: &str| {
        text.split_whitespace()
            .map(|name| {
                if name == "_" {
                    String::new()
                } else {
                    name.to_owned()
                }
            })
            .collect()
    };
    NodeProto {
        op_type: Some(operator.to_owned()),
        input: names(inputs),
        output: names(outputs),
        attribute: attributes,
        ..NodeProto::default()
    }
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(kind),
        ..AttributeProto::default()
    }
}

pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        i: Some(value),
        ..attribute(name, AttributeType::INT)
    }
}

pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto {
        f: Some(value),
        ..attribute(name, AttributeType::FLOAT)
    }
}

pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        ints: values.to_vec(),
        ..attribute(name, AttributeType::INTS)
    }
}

pub fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        s: Some(value.to_owned()),
        ..attribute(name, AttributeType::STRING)
    }
}

pub fn texts(name: &str, values: &[&str]) -> AttributeProto {
    AttributeProto {
        strings: values.iter().map(|value| (*value).to_owned()).collect(),
        ..attribute(name, AttributeType::STRINGS)
    }
}

pub fn float_list(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto {
        floats: values.to_vec(),
        ..attribute(name, AttributeType::FLOATS)
    }
}

pub fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        g: Some(graph),
        ..attribute(name, AttributeType::GRAPH)
    }
}

pub fn model(graph: GraphProto) -> ModelProto {
    let opset = OperatorSetIdProto {
        domain: None,
        version: Some(20),
    };
    ModelProto {
        ir_version: Some(9),
        graph: Some(graph),
        opset_import: vec![opset],
        ..ModelProto::default()
    }
}

pub fn outputs(names: &str) -> Vec<ValueInfoProto> {
    names
        .split_whitespace()
        .map(|name| port(name, DataType::FLOAT, &[]))
        .collect()
}

/// Elements moved and made by numbers in the file.
fn movement() -> ModelProto {
    let node = vec![
        node("Reshape", "x shape", "a", vec![]),
        node("Expand", "a wide", "b", vec![]),
        node("Tile", "b repeats", "c", vec![]),
        node("Pad", "c pads", "d", vec![text("mode", "reflect")]),
        node("Pad", "c pads", "e", vec![]),
        node("Slice", "e starts ends axes steps", "f", vec![]),
        node(
            "Split",
            "f",
            "g h",
            vec![int("axis", 2), int("num_outputs", 2)],
        ),
        node("Concat", "g h", "i", vec![int("axis", -1)]),
        node("Transpose", "i", "j", vec![ints("perm", &[2, 0, 1])]),
        node("ConstantOfShape", "wide", "k", vec![]),
        node("Range", "zero ten one", "l", vec![]),
        node("OneHot", "l ten pair", "m", vec![int("axis", 0)]),
        node("Trilu", "m one", "n", vec![int("upper", 0)]),
        node("EyeLike", "n", "o", vec![int("k", 1), int("dtype", 1)]),
        node("Gather", "x rows", "p", vec![int("axis", 1)]),
        node("Unsqueeze", "p axes", "q", vec![]),
        node("ReduceSum", "q axes", "r", vec![int("keepdims", 0)]),
        node("Shape", "r", "s", vec![int("start", -2), int("end", 9)]),
        node("Cast", "s", "t", vec![int("to", 1)]),
        node("Flatten", "x", "u", vec![int("axis", 1)]),
        node("ArgMax", "u", "v", vec![int("axis", 1)]),
        node("DepthToSpace", "image", "w", vec![int("blocksize", 2)]),
        node("GatherElements", "u v", "y", vec![int("axis", 1)]),
    ];
    let initializer = vec![
        int64s("shape", &[3], &[3, 2, -1]),
        int64s("wide", &[3], &[3, 2, 4]),
        int64s("repeats", &[3], &[2, 1, 2]),
        int64s("pads", &[6], &[1, 0, 1, 0, 1, 2]),
        int64s("starts", &[2], &[0, -1]),
        int64s("ends", &[2], &[9, -9]),
        int64s("axes", &[2], &[0, 1]),
        int64s("steps", &[2], &[2, -1]),
        int64s("zero", &[], &[0]),
        int64s("one", &[], &[1]),
        int64s("ten", &[], &[10]),
        int64s("rows", &[2], &[1, -1]),
        floats("pair", &[2]),
        floats("image", &[1, 8, 2, 3]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[2, 3, 4])];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("d j k n o r t w y"),
        ..GraphProto::default()
    })
}

/// Layers with weights.
fn layers() -> ModelProto {
    let node = vec![
        node(
            "LSTM",
            "x w r bias _ h c p",
            "a b c1",
            vec![int("hidden_size", 3), text("direction", "forward")],
        ),
        node(
            "GRU",
            "x gw gr",
            "g",
            vec![int("hidden_size", 3), int("linear_before_reset", 1)],
        ),
        node("Add", "a g", "d", vec![]),
        node("Squeeze", "d axes", "e", vec![]),
        node("Reshape", "e flat", "f", vec![]),
        node("Gemm", "f m row", "i", vec![int("transB", 1)]),
        node(
            "LayerNormalization",
            "i gain row",
            "j",
            vec![int("axis", -1)],
        ),
        node("BatchNormalization", "j gain row row gain", "k", vec![]),
        node("Softmax", "k", "l", vec![int("axis", 1)]),
        node("MatMul", "l m", "n", vec![]),
        node("Einsum", "l m", "o", vec![text("equation", "bi,ij->jb")]),
        node("ReduceMean", "n axes", "q", vec![]),
    ];
    let initializer = vec![
        floats("w", &[1, 12, 4]),
        floats("r", &[1, 12, 3]),
        floats("bias", &[1, 24]),
        floats("h", &[1, 2, 3]),
        floats("c", &[1, 2, 3]),
        floats("p", &[1, 9]),
        floats("gw", &[1, 9, 4]),
        floats("gr", &[1, 9, 3]),
        floats("m", &[5, 3]),
        floats("row", &[5]),
        floats("gain", &[5]),
        int64s("axes", &[1], &[1]),
        int64s("flat", &[2], &[-1, 3]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[4, 2, 4])];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("b c1 o q"),
        ..GraphProto::default()
    })
}

/// Branches and loops within each other.
fn control() -> ModelProto {
    let step = GraphProto {
        node: vec![
            node("Add", "s e", "s1", vec![]),
            node("Mul", "s1 outer", "z", vec![]),
        ],
        input: vec![
            port("s", DataType::FLOAT, &[3]),
            port("e", DataType::FLOAT, &[3]),
        ],
        output: outputs("s1 z"),
        ..GraphProto::default()
    };
    let branch = |operator: &str| GraphProto {
        node: vec![node(operator, "v1", "w", vec![])],
        output: outputs("w"),
        ..GraphProto::default()
    };
    let body = GraphProto {
        node: vec![
            node(
                "Scan",
                "v x",
                "v1 zs",
                vec![
                    graph("body", step),
                    int("num_scan_inputs", 1),
                    ints("scan_input_directions", &[1]),
                ],
            ),
            node("Less", "i limit", "next", vec![]),
            node(
                "If",
                "next",
                "v2",
                vec![
                    graph("then_branch", branch("Relu")),
                    graph("else_branch", branch("Neg")),
                ],
            ),
        ],
        input: vec![
            port("i", DataType::INT64, &[]),
            port("on", DataType::BOOL, &[]),
            port("v", DataType::FLOAT, &[3]),
        ],
        output: outputs("next v2 zs"),
        ..GraphProto::default()
    };
    let node = vec![node(
        "Loop",
        "trips _ start",
        "y ys",
        vec![graph("body", body)],
    )];
    let initializer = vec![
        int64s("trips", &[], &[5]),
        int64s("limit", &[], &[2]),
        floats("start", &[3]),
        floats("outer", &[3]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[2, 3])];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("y ys"),
        ..GraphProto::default()
    })
}

/// Quantized layers.
fn quantized() -> ModelProto {
    let node = vec![
        node("DynamicQuantizeLinear", "x", "q s z", vec![]),
        node("MatMulInteger", "q w z", "a", vec![]),
        node("QuantizeLinear", "x scale zero", "b", vec![int("axis", 1)]),
        node(
            "DequantizeLinear",
            "b scale zero",
            "c",
            vec![int("axis", 1)],
        ),
        node(
            "QLinearMatMul",
            "b one byte w one signed one byte",
            "d",
            vec![],
        ),
        node("Reshape", "b shape", "e", vec![]),
        node(
            "ConvInteger",
            "e kernel byte",
            "f",
            vec![
                ints("pads", &[1, 1, 1, 1]),
                ints("strides", &[1, 2]),
                int("group", 2),
            ],
        ),
        node("Transpose", "f", "ft", vec![ints("perm", &[0, 1, 3, 2])]),
        node("MatMul", "f ft", "g", vec![]),
    ];
    let initializer = vec![
        words("w", DataType::INT8, &[4, 3], -6..6),
        floats("scale", &[4]),
        words("zero", DataType::UINT8, &[4], 0..4),
        floats("one", &[]),
        words("byte", DataType::UINT8, &[], [3]),
        words("signed", DataType::INT8, &[], [-3]),
        words("kernel", DataType::INT8, &[2, 1, 2, 2], -4..4),
        int64s("shape", &[4], &[1, 2, 2, 2]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[2, 4])];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("a c d g"),
        ..GraphProto::default()
    })
}

fn of_domain(domain: &str, node: NodeProto) -> NodeProto {
    NodeProto {
        domain: Some(domain.to_owned()),
        ..node
    }
}

/// Draws, and operators of other domains.
fn others() -> ModelProto {
    let tree = vec![
        ints("nodes_treeids", &[0, 0, 0]),
        ints("nodes_nodeids", &[0, 1, 2]),
        ints("nodes_featureids", &[1, 0, 0]),
        float_list("nodes_values", &[0.5, 0.0, 0.0]),
        texts("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 0]),
        ints("class_treeids", &[0, 0]),
        ints("class_nodeids", &[1, 2]),
        ints("class_ids", &[0, 1]),
        float_list("class_weights", &[0.25, 0.75]),
        ints("classlabels_int64s", &[5, 6]),
    ];
    let linear = vec![
        float_list("coefficients", &[1.0, 2.0, 3.0, 4.0]),
        float_list("intercepts", &[0.5]),
        int("targets", 1),
    ];
    let node = vec![
        node(
            "RandomNormal",
            "",
            "a",
            vec![ints("shape", &[2, 4]), float("seed", 3.0)],
        ),
        node("RandomUniformLike", "x", "b", vec![float("high", 2.0)]),
        node("Multinomial", "x", "c", vec![int("sample_size", 3)]),
        node("Sigmoid", "x", "p", vec![]),
        node("Bernoulli", "p", "d", vec![int("dtype", 6)]),
        of_domain(
            "ai.onnx.ml",
            node("TreeEnsembleClassifier", "x", "label scores", tree),
        ),
        of_domain("ai.onnx.ml", node("LinearRegressor", "x", "l", linear)),
        of_domain(
            "ai.onnx.ml",
            node("Normalizer", "x", "n", vec![text("norm", "L2")]),
        ),
        of_domain(
            "ai.onnx.ml",
            node("ArrayFeatureExtractor", "x label", "f", vec![]),
        ),
        of_domain(
            "com.microsoft",
            node("FusedMatMul", "x x", "m", vec![int("transB", 1)]),
        ),
        of_domain(
            "com.microsoft",
            node("QuickGelu", "x", "g", vec![float("alpha", 2.0)]),
        ),
        of_domain(
            "com.microsoft",
            node("SkipLayerNormalization", "x x gain gain", "s", vec![]),
        ),
        node("DynamicQuantizeLinear", "x", "q scale zero", vec![]),
        of_domain(
            "com.microsoft",
            node(
                "QGemm",
                "q scale zero w one byte",
                "y",
                vec![int("transB", 1)],
            ),
        ),
    ];
    let initializer = vec![
        floats("gain", &[4]),
        floats("one", &[]),
        words("w", DataType::INT8, &[3, 4], -6..6),
        words("byte", DataType::INT8, &[], [2]),
    ];
    let input = vec![port("x", DataType::FLOAT, &[2, 4])];
    model(GraphProto {
        node,
        initializer,
        input,
        output: outputs("a b c d label scores l n m g s y"),
        ..GraphProto::default()
    })
}

/// Each with a name.
pub fn all() -> [(&'static str, ModelProto); 5] {
    [
        ("movement", movement()),
        ("layers", layers()),
        ("control", control()),
        ("quantized", quantized()),
        ("others", others()),
    ]
}
