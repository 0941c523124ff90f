"""OpenVINO's times of the encoder's rows of `tectum bench infer`, on the graph that ONNX Runtime gets: in f32, and with products in int8 by
NNCF's quantisation after training."""

from functools import cache
from importlib.metadata import version

import nncf
import numpy as np
import openvino

import openvino_policy  # noqa: F401, registers its rows
from minilm_folder import demand
from minilm_onnx import encoder, ids_of
from protocol import row, serve

# Random texts by which NNCF finds the ranges of activations.
CALIBRATION_TEXTS = 32
# An embedding in int8 that lies further from the exact one than this is no answer.
LEAST_COSINE = 0.98


def exact(batch, time):
    demand()
    return openvino.Core().read_model(model=encoder(batch, time).SerializeToString())


@cache
def quantised(batch, time):
    """The graph with weights and activations of 8 bits; made once for all threads and passes, since it takes seconds."""
    random = np.random.default_rng(1)
    texts = [random.integers(1000, 21000, (batch, time)) for _ in range(CALIBRATION_TEXTS)]
    return nncf.quantize(exact(batch, time), nncf.Dataset(texts), model_type=nncf.ModelType.TRANSFORMER, subset_size=CALIBRATION_TEXTS)


def request(model, shape):
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": shape.threads, "NUM_STREAMS": 1}
    made = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
    made.set_input_tensor(openvino.Tensor(ids_of(*shape.sizes)))
    return made


def embedding(made):
    made.infer()
    return made.get_output_tensor().data.copy()


@row("minilm", 2, "InferRequest.infer, INFERENCE_PRECISION_HINT f32, one stream", types=("float32",))
def minilm(shape):
    made = request(exact(*shape.sizes), shape)
    return lambda: made.infer()


@row("minilm", 2, "the same after nncf.quantize for transformers", tail="int8", types=("float32",))
def minilm_int8(shape):
    made = request(quantised(*shape.sizes), shape)
    # Both are of length 1.
    cosine = (embedding(made) * embedding(request(exact(*shape.sizes), shape))).sum(-1).min()
    if cosine < LEAST_COSINE:
        raise RuntimeError(f"cosine {cosine:.4f} with the exact embedding, needs {LEAST_COSINE}")
    shape.note = f"cosine {cosine:.4f} with f32"
    return lambda: made.infer()


if __name__ == "__main__":
    serve(lambda device: {"openvino": openvino.__version__, "nncf": version("nncf")}, lambda count: count)
