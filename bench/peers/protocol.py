"""What the peer scripts share: the protocol of `crates/tectum-bench/src/bench/peer.rs`, keys, operands and timing.

A script registers rows with `@row` and ends with `serve`. A row is a function of `Shape` that fills the operands and
returns the call to time, which writes into memory that it was given wherever the library allows that. A row that a library can
compute in several ways takes the `fastest`. The answer to `prepare` is then `{"call": call}`, with what was chosen.
"""

import json
import re
import statistics
import sys
import time

# A run longer than this is timed once a round, as on the other side.
SLOW_SECONDS = 0.1

# Turns in which several ways of a row are timed, the time and runs of each way in a turn, and a pause before it: the idle threads of the way
# before spin for a while.
TURNS, TURN_SECONDS, TURN_RUNS, TURN_PAUSE_SECONDS = 5, 0.03, 3, 0.05

ROWS = {}
# The way that a row takes and what is said of all, by key.
CHOICES = {}


class Shape:
    """A key's sizes, its tail (`bias_tanh`, `k64`, …), its element type and its threads, which are the device's if the key has none:
    `core.gemm.8x8x8.bias_tanh.f64`, `infer.minilm.1x8.int8.t1`."""

    all_threads = 1
    # Wraps a call so that it waits for the device.
    settle = staticmethod(lambda call: call)
    # What a row adds to its call when it is prepared: the setting that it chose, what it found.
    note = None

    def __init__(self, key):
        self.key = key
        _, self.op, *parts = key.split(".")
        sizes = next((part for part in parts if re.fullmatch(r"n?\d+(x\d+)*", part)), "")
        self.sizes = [int(size) for size in sizes.removeprefix("n").split("x") if size]
        self.dtype = "float64" if "f64" in parts else "float32"
        threads = next((part for part in parts if re.fullmatch(r"t\d+", part)), None)
        self.threads = int(threads[1:]) if threads else Shape.all_threads
        self.tail = ".".join(part for part in parts if part not in (sizes, "f64", threads))
        self.name = (self.op, len(self.sizes), self.tail)


def row(op, dimensions, call, tail="", types=("float32", "float64")):
    """Registers a row: the operation, how many sizes its keys have, and the call as people write it."""

    def register(make):
        ROWS[(op, dimensions, tail)] = (call, make, types)
        return make

    return register


def find(key):
    shape = Shape(key)
    call, make, types = ROWS.get(shape.name, (None, None, ()))
    return (call, make, shape) if shape.dtype in types else (None, None, shape)


def times(call, seconds, least):
    """One untimed call, then enough calls and time, but one call of what is slow."""
    call()
    taken = []
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        taken.append(now - start)
        if now - begin >= SLOW_SECONDS or (now - begin >= seconds and len(taken) >= least):
            return taken


def fastest(shape, ways):
    """The call of the fastest of several ways, which make it, by name. They are timed in turns when the row is first prepared, before its
    rounds; later passes take the same. A way that fails is left out."""
    if shape.key not in CHOICES:
        CHOICES[shape.key] = choose(ways)
    chosen, shape.note = CHOICES[shape.key]
    return ways[chosen]()


def choose(ways):
    calls, failed = {}, {}
    for name, make in ways.items():
        try:
            calls[name] = Shape.settle(make())
            calls[name]()
        except Exception as error:
            calls.pop(name, None)
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    taken = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            time.sleep(TURN_PAUSE_SECONDS)
            taken[name] += times(call, TURN_SECONDS, TURN_RUNS)
    medians = {name: statistics.median(all_times) for name, all_times in taken.items()}
    said = ", ".join(f"{name} {medians[name] * 1e6:.1f} µs" if name in medians else f"{name} fails, {failed[name]}" for name in ways)
    if not medians:
        raise RuntimeError(f"no way works: {said}")
    chosen = min(medians, key=medians.get)
    return chosen, f"by {chosen} (tried: {said})"


def serve(versions, threads, devices=("cpu",), settle=lambda call: call):
    """Answers requests until input ends. `versions` is a function of the device; `threads` sets the library's number of threads and
    returns what it is; `settle` wraps a call so that it waits for the device."""
    answers = sys.stdout
    Shape.settle = staticmethod(settle)
    # Whatever a library prints must not look like an answer.
    sys.stdout = sys.stderr
    call = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "hello":
                device = request["device"]
                if device not in devices:
                    raise RuntimeError(f"runs on {' and '.join(devices)}, not on {device}")
                Shape.all_threads = request["threads"]
                rows = {key: find(key)[0] for key in request["keys"] if find(key)[0]}
                answer = {"versions": versions(device), "threads": threads(request["threads"]), "rows": rows}
            elif request["do"] == "prepare":
                call = None  # The last row's operands go before the next ones come.
                text, make, shape = find(request["key"])
                threads(shape.threads)
                call = settle(make(shape))
                call()
                answer = {"call": f"{text}, {shape.note}"} if shape.note else {}
            else:
                answer = {"times_s": times(call, request["seconds"], request["least"])}
        except Exception as error:  # A row that fails is skipped with its reason; the others go on.
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)
