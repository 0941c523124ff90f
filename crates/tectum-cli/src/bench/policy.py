"""Times inferences of ONNX Runtime: a line with the model and its inputs, then a number of runs a line."""

import json
import sys
import time


def say(answer):
    print(json.dumps(answer), flush=True)


def inference(request):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    feeds = {}
    for port in request["inputs"]:
        places = np.arange(int(np.prod(port["shape"])), dtype=np.int64) * 7919
        is_float = "float" in port["type"]
        numbers = (places % 1000 + 1) / np.float32(1000) if is_float else places % 2
        feeds[port["name"]] = numbers.astype(port["type"]).reshape(port["shape"])

    def run():
        session.run(request["outputs"], feeds)

    return run, onnxruntime.__version__


def timed(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main():
    try:
        run, version = inference(json.loads(sys.stdin.readline()))
        timed(run)
        say({"version": version, "seconds": timed(run)})
    except Exception as error:
        say({"error": str(error).splitlines()[0] if str(error) else type(error).__name__})
        return
    for line in sys.stdin:
        say([timed(run) * 1e6 for _ in range(int(line))])


main()
