"""A policy at 200 Hz next to busy processes, without and with real-time priority: ours, ONNX Runtime from Python and from Rust.

    cargo build --release -p tectum-control --example policy_loop
    ONNXRUNTIME_ENV/bin/python bench/policy_loop/policy_loop.py --seconds 30 --rounds 2 --record FILE.json

A side is a process of its own that waits for absolute deadlines, runs the same MLP of 48-512-256-128-12 numbers (ELU, f32) on other observations at
every tick, and measures from the beginning of the period to the action. A period that begins while an answer is still computed is a miss. Sides take turns; each
round runs all of them, and a loop that computes nothing: what the system alone takes. The peers' best setting counts: the defaults, threads that do not spin, one thread. The environment has onnx and onnxruntime
(`cargo xtask peers onnxruntime`); the Rust side loads its library.
"""

import argparse
import glob
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [48, 512, 256, 128, 12]
MODES = ["default", "no_spin", "one_thread"]
NOTHING = "nothing"
WARM_UP = 100


def write_model(path):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(1)
    nodes, weights, name = [], [], "obs"
    for layer, (inputs, outputs) in enumerate(zip(SIZES, SIZES[1:])):
        scale = 1 / np.sqrt(inputs)
        weights.append(numpy_helper.from_array(random.uniform(-scale, scale, (outputs, inputs)).astype(np.float32), f"w{layer}"))
        weights.append(numpy_helper.from_array(random.uniform(-scale, scale, outputs).astype(np.float32), f"b{layer}"))
        is_last = layer == len(SIZES) - 2
        result = "actions" if is_last else f"h{layer}"
        nodes.append(helper.make_node("Gemm", [name, f"w{layer}", f"b{layer}"], [result], transB=1))
        if not is_last:
            nodes.append(helper.make_node("Elu", [result], [f"a{layer}"]))
            name = f"a{layer}"
    given = helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, SIZES[0]])
    made = helper.make_tensor_value_info("actions", TensorProto.FLOAT, [1, SIZES[-1]])
    graph = helper.make_graph(nodes, "policy", [given], [made], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def onnxruntime_policy(model, mode):
    """From the number of a tick to an action."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if mode != "default":
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if mode == "one_thread":
        options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given, made = np.zeros((1, SIZES[0]), np.float32), np.zeros((1, SIZES[-1]), np.float32)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in (given, made)]
    binding = session.io_binding()
    binding.bind_ortvalue_input("obs", values[0])
    binding.bind_ortvalue_output("actions", values[1])
    index = np.arange(SIZES[0]) * 13

    def policy(tick):
        given[0] = (tick * 7 + index) % 101 / 50 - 1
        values[0].update_inplace(given)
        session.run_with_iobinding(binding)
        return float(values[1].numpy()[0, 0])

    return policy


def python_loop(model, seconds, rate, mode):
    """A side in Python."""
    policy = (lambda tick: 0.0) if mode == NOTHING else onnxruntime_policy(model, mode)
    ticks, period_ns = int(seconds * rate), int(1e9 / rate)
    taken, misses, tick, total, cpu = [], 0, 0, 0.0, None
    begin = time.monotonic_ns()
    while tick < WARM_UP + ticks:
        if cpu is None and tick >= WARM_UP:
            misses, cpu = 0, time.process_time_ns()
        wait = begin - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        total += policy(tick)
        late = time.monotonic_ns() - begin
        if tick >= WARM_UP:
            taken.append(late)
        passed = late // period_ns
        misses += passed
        tick += max(1, passed)
        begin += period_ns * max(1, passed)
    cpu = time.process_time_ns() - cpu
    taken.sort()
    at = lambda part: taken[min(int(len(taken) * part), len(taken) - 1)] / 1e3
    result = {"ticks": ticks, "misses": misses, "p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999), "max_us": at(1), "cpu_us": cpu / 1e3 / ticks}
    print(json.dumps(result | {"sum": total}))


def sides(args, model):
    import onnxruntime

    ours = [args.ours, model, SIZES[0], SIZES[-1], args.seconds, args.rate]
    found = {"tectum": ours, f"tectum, SCHED_FIFO {args.priority}": [*ours, args.priority]}
    for mode in [*MODES, NOTHING]:
        name = "Python, nothing" if mode == NOTHING else f"onnxruntime, Python, {mode}"
        found[name] = [sys.executable, __file__, "--side", mode, "--model", model, "--seconds", args.seconds, "--rate", args.rate]
    library = glob.glob(str(pathlib.Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime.so*"))
    if args.ort_loop and library:
        for mode in MODES:
            found[f"onnxruntime, Rust, {mode}"] = [args.ort_loop, library[0], model, args.seconds, args.rate, mode]
    commands = {name: [str(word) for word in command] for name, command in found.items()}
    # Ours asks for the priority itself, for the threads of its loop only; a peer's whole process gets it.
    fifo = lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(args.priority))
    raised = {f"{name}, SCHED_FIFO {args.priority}": (command, fifo) for name, command in commands.items() if not name.startswith("tectum")}
    return {name: (command, None) for name, command in commands.items()} | raised


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = HERE.parents[1]
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=200, help="Hz")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--burners", type=int, default=2, help="busy processes")
    parser.add_argument("--priority", type=int, default=50)
    parser.add_argument("--ours", default=root / "target/release/examples/policy_loop")
    parser.add_argument("--ort-loop", default=HERE / "ort_loop/target/release/ort-loop")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--side", choices=[*MODES, NOTHING], help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        return python_loop(args.model, args.seconds, args.rate, args.side)
    if not pathlib.Path(args.ort_loop).exists():
        print(f"{args.ort_loop} is missing: cargo build --release --locked in {HERE / 'ort_loop'} makes it", file=sys.stderr)
        args.ort_loop = None
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(args.burners)]
    results = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "policy.onnx")
            write_model(model)
            for _ in range(args.rounds):
                for name, (command, before) in sides(args, model).items():
                    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before)
                    if done.returncode:
                        print(f"{name}: {(done.stderr or done.stdout).strip().splitlines()[-1]}", file=sys.stderr)
                        continue
                    results.setdefault(name, []).append(json.loads(done.stdout))
    finally:
        for burner in burners:
            burner.kill()
    print(f"{'side':48} {'misses':>10} {'p50 µs':>9} {'p99 µs':>9} {'p99.9 µs':>9} {'max µs':>9} {'CPU µs/tick':>12}")
    for name, rounds in results.items():
        median = lambda key: statistics.median(entry[key] for entry in rounds)
        misses, ticks = (sum(entry[key] for entry in rounds) for key in ("misses", "ticks"))
        numbers = " ".join(f"{median(key):9.0f}" for key in ("p50_us", "p99_us", "p999_us", "max_us"))
        print(f"{name:48} {misses:>4}/{ticks:<5} {numbers} {median('cpu_us'):12.0f}")
    if args.record:
        about = {"burners": args.burners, "cores": os.cpu_count(), "load_at_end": os.getloadavg(), "rate_hz": args.rate, "seconds": args.seconds}
        args.record.write_text(json.dumps(about | {"sides": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
