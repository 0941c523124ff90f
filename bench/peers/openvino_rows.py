"""OpenVINO's times of the encoder's rows of `tectum bench infer`, in f32, on the graph that ONNX Runtime gets."""

import openvino

from minilm_folder import demand
from minilm_onnx import encoder, ids_of
from protocol import row, serve


@row("minilm", 2, "InferRequest.infer, INFERENCE_PRECISION_HINT f32, one stream", types=("float32",))
def minilm(shape):
    batch, time = shape.sizes
    core = openvino.Core()
    model = core.read_model(model=encoder(batch, time).SerializeToString())
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": shape.threads, "NUM_STREAMS": 1}
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    request.set_input_tensor(openvino.Tensor(ids_of(batch, time)))
    return lambda: request.infer()


if __name__ == "__main__":
    demand()
    serve(lambda device: {"openvino": openvino.__version__}, lambda count: count)
