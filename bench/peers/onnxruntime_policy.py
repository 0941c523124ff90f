"""ONNX Runtime's times of the rows of `tectum bench policy`: with I/O binding, with threads that spin between runs and without, whichever is faster.
Rows with weights of fewer bits are compared with the same file in f32, those in int8 also with its own dynamic quantisation."""

import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from policy_files import NETWORKS, numbers, path
from protocol import fastest, row

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8}


def call(model, threads, spins):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    if not spins:
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for given in session.get_inputs():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(numbers(given.shape, TYPES[given.type]))
        binding.bind_ortvalue_input(given.name, value)
    # Outputs of known shapes are written in place.
    for made in session.get_outputs():
        known = all(isinstance(size, int) for size in made.shape) and made.type in TYPES
        if known:
            binding.bind_ortvalue_output(made.name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(made.shape, TYPES[made.type]))
        else:
            binding.bind_output(made.name)
    return lambda: session.run_with_iobinding(binding)


def ways(shape, coded):
    file = path(shape.op)
    models = {"": file}
    if coded:
        folder = pathlib.Path(tempfile.mkdtemp())
        models[" by quantize_dynamic"] = folder / "coded.onnx"
        quantize_dynamic(onnx.load(file), folder / "coded.onnx", per_channel=True, weight_type=QuantType.QInt8)
    spinning = {"spinning": True, "not spinning": False} if shape.threads > 1 else {"one thread": False}
    return {kind + said: (lambda m=model, s=spins: call(m, shape.threads, s)) for said, model in models.items() for kind, spins in spinning.items()}


for name in NETWORKS:
    for tail in ("", "f16", "int8"):
        row(name, 0, "InferenceSession.run_with_iobinding, f32, ORT_ENABLE_ALL", tail=tail, types=("float32",))(
            lambda shape: fastest(shape, ways(shape, shape.tail == "int8"))
        )
