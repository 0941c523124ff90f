"""ONNX Runtime's times of the encoder's rows of `tectum bench infer`, in f32 and by its own dynamic quantisation, at its highest level: the graph
as it is, or after its optimizer of transformers, whichever is faster."""

import pathlib
import tempfile

import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

import onnxruntime_convolution  # noqa: F401, registers its rows
import onnxruntime_policy  # noqa: F401, registers its rows
from minilm_folder import demand
from minilm_onnx import encoder, ids_of
from protocol import fastest, row, serve

HEADS, WIDTH = 12, 384
# An embedding in int8 that lies further from the exact one than this is no answer.
LEAST_COSINE = 0.98


def plain(shape):
    demand()
    return encoder(*shape.sizes)


def fused(shape):
    """Attention, normalisations with what is added before them, and GELU with its bias as one operation each."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "encoder.onnx"
        onnx.save(plain(shape), path)
        model = optimizer.optimize_model(str(path), model_type="bert", num_heads=HEADS, hidden_size=WIDTH, opt_level=0).model
    # Its own operations, which it leaves undeclared.
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


def quantised(model):
    """The model with weights of 8 bits by channels and products of codes."""
    with tempfile.TemporaryDirectory() as folder:
        exact, coded = pathlib.Path(folder) / "exact.onnx", pathlib.Path(folder) / "coded.onnx"
        onnx.save(model, exact)
        # Types are not inferred through its own operations.
        options = {"DefaultTensorType": onnx.TensorProto.FLOAT}
        quantize_dynamic(exact, coded, per_channel=True, op_types_to_quantize=["MatMul", "Attention"], weight_type=QuantType.QInt8, extra_options=options)
        return onnx.load(coded)


def bound(model, shape):
    """A session and its bound operands."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = shape.threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("ids", ids_of(*shape.sizes))
    binding.bind_output("embedding")
    return session, binding


def call(model, shape):
    session, binding = bound(model, shape)
    return lambda: session.run_with_iobinding(binding)


def checked(model, shape, exact):
    """The call of a quantised model whose embedding lies near the exact one; both are of length 1."""
    session, binding = bound(model, shape)
    session.run_with_iobinding(binding)
    cosine = (binding.copy_outputs_to_cpu()[0] * exact).sum(-1).min()
    if cosine < LEAST_COSINE:
        raise RuntimeError(f"cosine {cosine:.4f} with the exact embedding, needs {LEAST_COSINE}")
    return lambda: session.run_with_iobinding(binding)


@row("minilm", 2, "InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", types=("float32",))
def minilm(shape):
    return fastest(shape, {"the graph as it is": lambda: call(plain(shape), shape), "transformers.optimizer": lambda: call(fused(shape), shape)})


@row("minilm", 2, "quantize_dynamic of products, weights QInt8 per channel, then InferenceSession.run_with_iobinding, ORT_ENABLE_ALL", tail="int8", types=("float32",))
def minilm_int8(shape):
    session, binding = bound(plain(shape), shape)
    session.run_with_iobinding(binding)
    exact = binding.copy_outputs_to_cpu()[0]
    del session, binding
    return fastest(shape, {
        "the graph as it is": lambda: checked(quantised(plain(shape)), shape, exact),
        "transformers.optimizer": lambda: checked(quantised(fused(shape)), shape, exact),
    })


if __name__ == "__main__":
    serve(lambda device: {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}, lambda count: count)
