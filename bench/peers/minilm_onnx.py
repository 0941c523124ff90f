"""all-MiniLM-L6-v2 as a graph of ONNX's standard operations, made from the model's own weights: what ONNX Runtime and OpenVINO run.

The graph is BERT as it is written in those operations; each runtime fuses it as it will. Sizes are fixed in the graph, which only helps.
"""

import json
import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from minilm_folder import MODEL


class Builder:
    """Nodes and weights of a graph, each value under a name of its own."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.constants = {}

    def constant(self, name, value):
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, name, x):
        weight = self.constant(f"{name}.w", self.weights[f"{name}.weight"].T)
        return self.op("Add", self.op("MatMul", x, weight), self.constant(f"{name}.b", self.weights[f"{name}.bias"]))

    def norm(self, name, x, epsilon):
        gain = self.constant(f"{name}.g", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.b", self.weights[f"{name}.bias"])
        return self.op("LayerNormalization", x, gain, bias, epsilon=epsilon, axis=-1)


def encoder(batch, time):
    """The encoder with mean pooling and normalisation, without padding."""
    config = json.loads((MODEL / "config.json").read_text())
    width, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    g = Builder(load_file(MODEL / "model.safetensors"))
    table = g.constant("words", g.weights["embeddings.word_embeddings.weight"])
    places = g.weights["embeddings.position_embeddings.weight"][:time] + g.weights["embeddings.token_type_embeddings.weight"][0]
    x = g.op("Add", g.op("Gather", table, "ids"), g.constant("places", places))
    x = g.norm("embeddings.LayerNorm", x, epsilon)
    split = g.constant("split", np.array([batch, time, heads, width // heads], np.int64))
    joined = g.constant("joined", np.array([batch, time, width], np.int64))
    scale = g.constant("scale", np.float32(math.sqrt(width // heads)))
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        part = {p: g.op("Reshape", g.dense(f"{name}.attention.self.{p}", x), split) for p in ("query", "key", "value")}
        q = g.op("Transpose", part["query"], perm=[0, 2, 1, 3])
        k = g.op("Transpose", part["key"], perm=[0, 2, 3, 1])
        v = g.op("Transpose", part["value"], perm=[0, 2, 1, 3])
        weights = g.op("Softmax", g.op("Div", g.op("MatMul", q, k), scale), axis=-1)
        attended = g.op("Reshape", g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3]), joined)
        x = g.norm(f"{name}.attention.output.LayerNorm", g.op("Add", g.dense(f"{name}.attention.output.dense", attended), x), epsilon)
        middle = g.op("Gelu", g.dense(f"{name}.intermediate.dense", x))
        x = g.norm(f"{name}.output.LayerNorm", g.op("Add", g.dense(f"{name}.output.dense", middle), x), epsilon)
    pooled = g.op("ReduceMean", x, g.constant("axis", np.array([1], np.int64)), keepdims=0)
    g.nodes.append(helper.make_node("LpNormalization", [pooled], ["embedding"], axis=-1, p=2))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [batch, time])
    embedding = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [batch, width])
    graph = helper.make_graph(g.nodes, "encoder", [ids], [embedding], list(g.constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


def ids_of(batch, time):
    """The tokens that `tectum bench infer` uses."""
    return (1000 + (np.arange(batch * time, dtype=np.int64) * 7919) % 20000).reshape(batch, time)
