"""ONNX Runtime's times of the encoder's rows of `tectum bench infer`, in f32 and by its own dynamic quantisation, at its highest level."""

import pathlib
import tempfile

import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from minilm_folder import demand
from minilm_onnx import encoder, ids_of
from protocol import row, serve


def bound(model, shape):
    """One run of a model, which is bytes or a file's name."""
    batch, time = shape.sizes
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = shape.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("ids", ids_of(batch, time))
    binding.bind_output("embedding")
    return lambda: session.run_with_iobinding(binding)


@row("minilm", 2, "InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", types=("float32",))
def minilm(shape):
    return bound(encoder(*shape.sizes).SerializeToString(), shape)


@row("minilm", 2, "the same after quantize_dynamic, weights QInt8 per channel, MatMul alone", tail="int8", types=("float32",))
def minilm_int8(shape):
    with tempfile.TemporaryDirectory() as folder:
        exact, coded = pathlib.Path(folder) / "exact.onnx", pathlib.Path(folder) / "coded.onnx"
        onnx.save(encoder(*shape.sizes), exact)
        quantize_dynamic(exact, coded, per_channel=True, op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8)
        return bound(coded.read_bytes(), shape)


if __name__ == "__main__":
    demand()
    serve(lambda device: {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}, lambda count: count)
