"""PyTorch and CuPy on the same GPU: the rows of `tectum bench core` that they have, median of timed repeats by GPU events.

Prints one line of JSON. A library that is not installed, or that sees no GPU, is skipped with its reason.
"""

import json
import statistics

N = 16 << 20
SIDE = 1024
REPEATS = 30


def torch_rows():
    import torch

    if not torch.cuda.is_available():
        return {"skipped": "torch sees no CUDA device"}
    torch.backends.cuda.matmul.allow_tf32 = False
    device = torch.device("cuda:0")
    a, b = torch.rand(N, device=device) + 0.5, torch.rand(N, device=device) + 0.5
    out = torch.empty(N, device=device)
    table = torch.rand(N // 1024, 1024, device=device)
    left, right = torch.rand(SIDE, SIDE, device=device), torch.rand(SIDE, SIDE, device=device)
    matrix, vector = torch.rand(4 * SIDE, 4 * SIDE, device=device), torch.rand(4 * SIDE, device=device)
    counts = torch.randint(0, 9, (N,), device=device, dtype=torch.int32)

    def timed(work):
        for _ in range(5):
            work()
        times = []
        for _ in range(REPEATS):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e-3)
        return statistics.median(times)

    rows = {
        "copy": lambda: out.copy_(a),
        "fill": lambda: out.fill_(7.0),
        "add": lambda: torch.add(a, b, out=out),
        "mul": lambda: torch.mul(a, b, out=out),
        "div": lambda: torch.div(a, b, out=out),
        "exp": lambda: torch.exp(a, out=out),
        "log": lambda: torch.log(a, out=out),
        "tanh": lambda: torch.tanh(a, out=out),
        "gelu": lambda: torch.nn.functional.gelu(a),
        "sum": lambda: torch.sum(a),
        "max": lambda: torch.max(a),
        "argmax": lambda: torch.argmax(a),
        "sum_columns": lambda: torch.sum(table, dim=0),
        "softmax": lambda: torch.softmax(table, dim=1),
        "exclusive_scan": lambda: torch.cumsum(counts, dim=0, dtype=torch.int32),
        "compact": lambda: torch.nonzero(counts),
        "top_k": lambda: torch.topk(a, 64),
        "gemm": lambda: torch.matmul(left, right),
        "matvec": lambda: torch.mv(matrix, vector),
        "uniform": lambda: out.uniform_(),
        "normal": lambda: out.normal_(),
    }
    return {"version": torch.__version__, "device": torch.cuda.get_device_name(0), "median_s": {name: timed(work) for name, work in rows.items()}}


def cupy_rows():
    import cupy
    from cupyx.profiler import benchmark

    if cupy.cuda.runtime.getDeviceCount() == 0:
        return {"skipped": "cupy sees no CUDA device"}
    a, b = cupy.random.rand(N, dtype=cupy.float32) + 0.5, cupy.random.rand(N, dtype=cupy.float32) + 0.5
    out = cupy.empty_like(a)
    left, right = cupy.random.rand(SIDE, SIDE, dtype=cupy.float32), cupy.random.rand(SIDE, SIDE, dtype=cupy.float32)
    rows = {
        "copy": lambda: cupy.copyto(out, a),
        "add": lambda: cupy.add(a, b, out=out),
        "exp": lambda: cupy.exp(a, out=out),
        "sum": lambda: cupy.sum(a),
        "argmax": lambda: cupy.argmax(a),
        "exclusive_scan": lambda: cupy.cumsum(a),
        "gemm": lambda: cupy.matmul(left, right),
    }

    def timed(work):
        return float(statistics.median(benchmark(work, n_repeat=REPEATS, n_warmup=5).gpu_times[0].tolist()))

    return {"version": cupy.__version__, "median_s": {name: timed(work) for name, work in rows.items()}}


def guarded(rows):
    try:
        return rows()
    except ImportError as error:
        return {"skipped": f"not installed: {error}"}
    except Exception as error:  # a peer that fails is reported, and does not cost the record
        return {"failed": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps({"elements": N, "gemm_side": SIDE, "torch": guarded(torch_rows), "cupy": guarded(cupy_rows)}))
