"""OpenVINO's times of the rows of `tectum bench policy`, in f32."""

import openvino

from policy_files import NETWORKS, numbers, path
from protocol import row


def request(shape):
    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": shape.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    made = core.compile_model(core.read_model(path(shape.op)), "CPU", settings).create_infer_request()
    for index, given in enumerate(made.model_inputs):
        made.set_input_tensor(index, openvino.Tensor(numbers(list(given.shape), given.element_type.to_dtype())))
    return made


def run(shape):
    made = request(shape)
    return lambda: made.infer()


for name in NETWORKS:
    for tail in ("", "f16", "int8"):
        row(name, 0, "InferRequest.infer, INFERENCE_PRECISION_HINT f32, one stream", tail=tail, types=("float32",))(run)
