"""ONNX Runtime's rows of the suite of convolutions; `onnxruntime_rows.py` serves them. A model of one layer with its ReLU, its operands bound."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from protocol import row

RANDOM = np.random.default_rng(1)


def uniform(*sizes):
    return 1 - RANDOM.random(sizes, dtype=np.float32)


def bound(shape, nodes, x, weights):
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = shape.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    y = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(session.run(None, {"x": x})[0]))
    binding.bind_ortvalue_output("y", y)
    return lambda: session.run_with_iobinding(binding)


def convolution(dimensions):
    def make(shape):
        channels_in, *size, channels_out, kernel, stride, padding, groups = shape.sizes
        settings = {"kernel_shape": [kernel] * dimensions, "strides": [stride] * dimensions, "pads": [padding] * 2 * dimensions, "group": groups}
        nodes = [helper.make_node("Conv", ["x", "w", "bias"], ["sum"], **settings), helper.make_node("Relu", ["sum"], ["y"])]
        weights = {"w": uniform(channels_out, channels_in // groups, *[kernel] * dimensions), "bias": uniform(channels_out)}
        return bound(shape, nodes, uniform(1, channels_in, *size), weights)

    return make


row("conv2d", 8, "Conv and Relu, InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", types=("float32",))(convolution(2))
row("conv1d", 7, "Conv and Relu, InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", types=("float32",))(convolution(1))


@row("conv_transpose1d", 6, "ConvTranspose and Relu, InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", types=("float32",))
def conv_transpose1d(shape):
    channels_in, size, channels_out, kernel, stride, padding = shape.sizes
    settings = {"kernel_shape": [kernel], "strides": [stride], "pads": [padding] * 2}
    nodes = [helper.make_node("ConvTranspose", ["x", "w", "bias"], ["sum"], **settings), helper.make_node("Relu", ["sum"], ["y"])]
    return bound(shape, nodes, uniform(1, channels_in, size), {"w": uniform(channels_in, channels_out, kernel), "bias": uniform(channels_out)})


def pooling(operation):
    def make(shape):
        channels, height, width, kernel, stride, padding = shape.sizes
        node = helper.make_node(operation, ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[padding] * 4)
        return bound(shape, [node], uniform(1, channels, height, width), {})

    return make


row("max_pool2d", 6, "MaxPool, InferenceSession.run_with_iobinding", types=("float32",))(pooling("MaxPool"))
row("average_pool2d", 6, "AveragePool, InferenceSession.run_with_iobinding", types=("float32",))(pooling("AveragePool"))
