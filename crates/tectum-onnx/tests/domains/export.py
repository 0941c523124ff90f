"""Writes small models of the domains ai.onnx.ml and com.microsoft, each with inputs and the outputs of ONNX Runtime.

    pip install onnx onnxruntime scikit-learn skl2onnx
    python export.py FOLDER

FOLDER/NAME/model.onnx, and next to it input_I.pb and output_I.pb: TensorProto, in the order of the graph's inputs and outputs.
Models of scikit-learn are fitted to random data of a fixed seed, without ZipMap. FOLDER/sklearn_zipmap keeps it; its outputs are
the label alone.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

SEED = 7
OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("com.microsoft", 1)]


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def outputs_of(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def write(target, name, model, feeds, results):
    folder = target / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for side, arrays in (("input", feeds.values()), ("output", results)):
        for i, array in enumerate(arrays):
            (folder / f"{side}_{i}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())


def one_node(operator, domain, feeds, constants, outputs, opsets=OPSETS, **attributes):
    """A model of one node: inputs that are fed, then constants; an input without a value is left out."""
    names = list(feeds) + [name if value is not None else "" for name, value in constants.items()]
    while names and not names[-1]:
        names.pop()
    node = helper.make_node(operator, names, outputs, domain=domain, **attributes)
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if value is not None]
    ports = [value_info(name, array) for name, array in feeds.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([node], operator, ports, results, weights)
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 9
    found = outputs_of(model, feeds)
    for port, array in zip(graph.output, found, strict=True):
        port.CopyFrom(value_info(port.name, array))
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 9
    return model, feeds, found


def microsoft(random):
    domain = "com.microsoft"

    def floats(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def words(dtype, *shape):
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max + 1, shape).astype(dtype)

    x = {"x": floats(2, 5)}
    yield "quick_gelu", one_node("QuickGelu", domain, x, {}, ["y"])
    yield "quick_gelu_alpha", one_node("QuickGelu", domain, x, {}, ["y"], alpha=0.5)

    yield "fused_matmul", one_node("FusedMatMul", domain, {"a": floats(3, 4)}, {"b": floats(4, 2)}, ["y"], alpha=0.25)
    pair = {"a": floats(2, 4, 3), "b": floats(2, 5, 4)}
    yield "fused_matmul_turned", one_node("FusedMatMul", domain, pair, {}, ["y"], transA=1, transB=1, alpha=-2.0)
    pair = {"a": floats(3, 2, 4), "b": floats(4, 2, 5)}
    yield "fused_matmul_batch", one_node("FusedMatMul", domain, pair, {}, ["y"], transBatchA=1, transBatchB=1)
    pair = {"a": floats(4, 2, 6, 3), "b": floats(2, 6, 4, 5)}
    yield (
        "fused_matmul_batch_turned",
        one_node("FusedMatMul", domain, pair, {}, ["y"], transBatchA=1, transA=1),
    )

    one = np.float32
    bytes_in = {"a": words(np.uint8, 3, 6)}
    constants = {
        "a_scale": one(0.02), "a_zero": np.uint8(120), "b": words(np.int8, 6, 4), "b_scale": one(0.01), "b_zero": np.int8(-3),
    }
    yield "qgemm_float", one_node("QGemm", domain, bytes_in, constants, ["y"], alpha=1.5)
    constants = {
        "a_scale": one(0.02), "a_zero": np.uint8(120), "b": words(np.int8, 4, 6),
        "b_scale": np.array([0.01, 0.02, 0.015, 0.005], np.float32), "b_zero": np.zeros(4, np.int8),
        "c": words(np.int16, 4).astype(np.int32), "y_scale": one(0.7), "y_zero": np.uint8(100),
    }
    yield "qgemm_bytes", one_node("QGemm", domain, bytes_in, constants, ["y"], transB=1)

    x = {"x": floats(2, 3, 8), "skip": floats(2, 3, 8)}
    constants = {"gamma": floats(8), "beta": floats(8), "bias": floats(8)}
    yield "skip_layer_norm", one_node("SkipLayerNormalization", domain, x, constants, ["y", "", "", "sum"], epsilon=1e-5)
    constants = {"gamma": floats(8), "beta": None, "bias": None}
    x = {"x": floats(2, 3, 8), "skip": floats(3, 8)}
    yield "skip_layer_norm_repeated", one_node("SkipLayerNormalization", domain, x, constants, ["y"], epsilon=1e-5)
    x = {"x": floats(2, 3, 8), "skip": floats(2, 3, 8)}
    constants = {"gamma": floats(8), "bias": floats(8)}
    yield "skip_rms_norm", one_node("SkipSimplifiedLayerNormalization", domain, x, constants, ["y", "", "", "sum"], epsilon=1e-5)

    for name, directions, per_column in [("forward", 1, False), ("bidirectional", 2, True)]:
        scales = (directions, 4 * 4) if per_column else (directions,)
        constants = {
            "w": words(np.int8, directions, 3, 16), "r": words(np.int8, directions, 4, 16), "b": floats(directions, 32),
            "lengths": None, "h": floats(directions, 1, 4) / 4, "c": floats(directions, 1, 4), "p": None,
            "w_scale": (0.004 + random.random(scales) / 400).astype(np.float32), "w_zero": np.zeros(scales, np.int8),
            "r_scale": (0.004 + random.random(scales) / 400).astype(np.float32), "r_zero": np.zeros(scales, np.int8),
        }
        attributes = {"hidden_size": 4, "direction": name}
        yield f"dynamic_lstm_{name}", one_node(
            "DynamicQuantizeLSTM", domain, {"x": floats(5, 1, 3)}, constants, ["y", "y_h", "y_c"], **attributes
        )


# One tree of depth two and one of depth one, over three features; leaves are nodes 2, 3, 4 and 1, 2.
TREES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 2, 0, 0, 0, 1, 0, 0],
    "nodes_values": [0.0, 0.5, 0.0, 0.0, 0.0, -0.25, 0.0, 0.0],
    "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
}
LEAVES = [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]


def trees(modes=("BRANCH_LEQ",) * 3):
    return TREES | {"nodes_modes": [modes[0], modes[1], "LEAF", "LEAF", "LEAF", modes[2], "LEAF", "LEAF"]}


def weights(prefix, ids, values):
    entries = {"treeids": [tree for tree, _ in LEAVES], "nodeids": [node for _, node in LEAVES], "ids": ids, "weights": values}
    return {f"{prefix}_{key}": value for key, value in entries.items()}


def ensembles(random):
    domain = "ai.onnx.ml"
    rows = random.standard_normal((12, 3)).astype(np.float32)
    rows[0] = [0.0, -0.25, 0.5]
    rows[1, 0] = np.nan
    x = {"x": rows}
    values = [0.5, 1.0, 0.25, -2.0, 3.0]
    for aggregate in ["SUM", "AVERAGE", "MIN", "MAX"]:
        # A target that no leaf of a row has gets no base value in ONNX Runtime.
        settings = weights("target", [0] * 5, values) | {"n_targets": 1, "aggregate_function": aggregate, "base_values": [0.125]}
        yield f"trees_{aggregate.lower()}", one_node("TreeEnsembleRegressor", domain, x, {}, ["y"], **trees(), **settings)
    modes = [("BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"), ("BRANCH_GT", "BRANCH_NEQ", "BRANCH_EQ")]
    for index, mode in enumerate(modes):
        settings = weights("target", [0] * 5, values) | {"n_targets": 1}
        yield f"trees_modes_{index}", one_node("TreeEnsembleRegressor", domain, x, {}, ["y"], **trees(mode), **settings)
    for transform in ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]:
        settings = weights("class", [0, 1, 2, 2, 0], values)
        settings |= {"classlabels_int64s": [5, -3, 9], "post_transform": transform}
        yield f"trees_classes_{transform.lower()}", one_node(
            "TreeEnsembleClassifier", domain, x, {}, ["label", "scores"], **trees(), **settings
        )
    positive = [0.1, 0.3, 0.2, 0.4, 0.25]
    # With weights of both classes, ONNX Runtime's label is 1 or 0 whatever the labels are.
    binary = {
        "second_probability": ([1] * 5, positive, "NONE", None),
        "second_border": ([1] * 5, values, "LOGISTIC", None),
        "first_probability": ([0] * 5, positive, "LOGISTIC", None),
        "first_border": ([0] * 5, values, "NONE", [0.25]),
        "first_logistic": ([0] * 5, values, "LOGISTIC", [0.25]),
    }
    for name, (ids, numbers, transform, base) in binary.items():
        settings = weights("class", ids, numbers) | {"classlabels_int64s": [4, 7], "post_transform": transform}
        settings |= {"base_values": base} if base else {}
        yield f"trees_binary_{name}", one_node(
            "TreeEnsembleClassifier", domain, x, {}, ["label", "scores"], **trees(), **settings
        )


def simple(random):
    domain = "ai.onnx.ml"
    rows = random.standard_normal((4, 3)).astype(np.float32)
    rows[2] = 0
    x = {"x": rows}
    for norm in ["MAX", "L1", "L2"]:
        # Of rows whose maximum is negative, ONNX Runtime's MAX differs from the definition.
        given = {"x": np.abs(rows)} if norm == "MAX" else x
        yield f"normalizer_{norm.lower()}", one_node("Normalizer", domain, given, {}, ["y"], norm=norm)
    yield "scaler", one_node("Scaler", domain, x, {}, ["y"], offset=[0.5, -1.0, 2.0], scale=[2.0, 0.5, 3.0])
    yield "binarizer", one_node("Binarizer", domain, x, {}, ["y"], threshold=0.25)
    yield "array_feature_extractor", one_node(
        "ArrayFeatureExtractor", domain, x, {"places": np.array([2, 0], np.int64)}, ["y"]
    )
    places = {"table": rows, "places": np.array([1, 2, 1], np.int64)}
    yield "array_feature_extractor_computed", one_node("ArrayFeatureExtractor", domain, places, {}, ["y"])
    linear = {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.25]}
    yield "linear_regressor", one_node("LinearRegressor", domain, x, {}, ["y"], **linear)
    for transform in ["NONE", "LOGISTIC"]:
        yield f"linear_binary_{transform.lower()}", one_node(
            "LinearClassifier", domain, x, {}, ["label", "scores"], classlabels_ints=[3, 8], post_transform=transform, **linear
        )


def sklearn_models(random):
    rows = random.standard_normal((200, 4)).astype(np.float32)
    target = rows @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * random.standard_normal(200)
    two, three = (target > 0).astype(int), np.digitize(target, [-1.0, 1.0])
    fitted = {
        "forest_regressor": RandomForestRegressor(5, max_depth=4, random_state=SEED).fit(rows, target),
        "forest_classifier": RandomForestClassifier(5, max_depth=4, random_state=SEED).fit(rows, three),
        "forest_binary": RandomForestClassifier(5, max_depth=4, random_state=SEED).fit(rows, two),
        "boosting_regressor": GradientBoostingRegressor(n_estimators=5, random_state=SEED).fit(rows, target),
        "boosting_classifier": GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=SEED).fit(rows, three),
        "boosting_binary": GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=SEED).fit(rows, two),
        "tree_two_targets": DecisionTreeRegressor(max_depth=3, random_state=SEED).fit(rows, np.stack([target, -target], 1)),
        "linear_two_targets": LinearRegression().fit(rows, np.stack([target, target**2], 1)),
        "logistic_binary": make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, two),
        "logistic_classifier": make_pipeline(Normalizer("l2"), LogisticRegression()).fit(rows, three),
    }
    feeds = {"X": random.standard_normal((6, 4)).astype(np.float32)}
    for name, model in fitted.items():
        options = {"zipmap": False} if hasattr(model, "classes_") else None
        exported = to_onnx(model, rows[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
        yield f"sklearn_{name}", (exported, feeds, outputs_of(exported, feeds))
    exported = to_onnx(fitted["forest_binary"], rows[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    yield "sklearn_zipmap", (exported, feeds, outputs_of(exported, feeds)[:1])


def main(target):
    count = 0
    for cases in [microsoft, ensembles, simple, sklearn_models]:
        for name, case in cases(np.random.default_rng(SEED)):
            write(target, name, *case)
            count += 1
    print(f"{count} models in {target}, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: export.py FOLDER")
    main(Path(sys.argv[1]))
