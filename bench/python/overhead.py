"""The package next to the same work directly in Rust, in turns: time of a tick, of bursts and of tokens, and two networks in two threads.

    pip install ./crates/tectum-py
    cargo build --release -p tectum-py --example direct
    python bench/python/overhead.py --record FILE.json

Both sides use one thread of the CPU. A tick is the median of many calls; of rounds the fastest counts, since the processors of a shared machine differ.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import tectum as tt

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT = "the small cat"


def ticks(brain, count):
    observation, taken = np.array([0.1, 0.2], np.float32), []
    for _ in range(count):
        start = time.perf_counter_ns()
        brain.tick(observation)
        taken.append(time.perf_counter_ns() - start)
    return statistics.median(taken) * 1e-9


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def dense_network(seed, count=2000):
    """Neurons that all fire in every burst: work of some milliseconds a burst."""
    neurons = tt.Neurons()
    neurons.add(count)
    source, target = np.random.default_rng(seed).integers(0, count, (2, 100 * count))
    constant = [(neuron, 5.0) for neuron in range(count)]
    return tt.SpikingNetwork(neurons, source, target, 255, constant_inputs=constant, device=tt.Device("cpu", threads=1))


def both(works):
    """Time of all works in threads of their own."""
    threads = [threading.Thread(target=work) for work in works]
    return timed(lambda: ([thread.start() for thread in threads], [thread.join() for thread in threads]))


def burn(seconds=0.5):
    """Loops of a process of its own, alone and next to another: what two processors of this machine give to two processes."""
    code = "import time\nn = 0\nend = time.perf_counter() + %s\nwhile time.perf_counter() < end:\n    n += 1\nprint(n)" % seconds
    run = lambda count: [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(count)]  # noqa: E731
    loops = lambda processes: min(int(process.communicate()[0]) for process in processes)  # noqa: E731
    return loops(run(1)) / loops(run(2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--direct", type=pathlib.Path, default=ROOT / "target/release/examples/direct")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--record", type=pathlib.Path)
    args = parser.parse_args()
    device = tt.Device("cpu", threads=1)
    with tempfile.TemporaryDirectory() as folder:
        genome = tt.Genome(tt.sample("sample-genome", folder))
        model = tt.sample("sample-decoder", folder)
        direct = subprocess.Popen([args.direct], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while direct.stdout.readline() not in ("ready\n", ""):
            pass
        network, decoder = genome.network(stimulus=0.1, device=device), tt.Decoder(model, context=256, device=device)
        brains = {name: tt.brain(name, "pendulum", device=device) for name in ("lqr", "mppi")}
        works = {
            "lqr": (20_000, lambda count: ticks(brains["lqr"], count)),
            "mppi": (500, lambda count: ticks(brains["mppi"], count)),
            "network": (20_000, lambda count: timed(lambda: network.run(count))),
            "generate": (200, lambda count: timed(lambda: decoder.generate(PROMPT, max_new_tokens=count))),
        }

        def ask(name, count):
            direct.stdin.write(f"{name} {count}\n")
            direct.stdin.flush()
            return float(direct.stdout.readline())

        found = {name: {"count": count, "python_s": [], "rust_s": []} for name, (count, _) in works.items()}
        for name, (count, work) in works.items():
            work(count), ask(name, count)
        for _ in range(args.rounds):
            for name, (count, work) in works.items():
                found[name]["rust_s"].append(ask(name, count))
                found[name]["python_s"].append(work(count))
        direct.stdin.close()
        direct.wait()
    networks = [dense_network(seed) for seed in (1, 2)]
    for network in networks:
        network.run(50)
    runs = [lambda network=network: network.run(200) for network in networks]
    threads = []
    for _ in range(args.rounds):
        alone = max(timed(run) for run in runs)
        threads.append({"slower_alone_s": alone, "together_s": both(runs), "processes_ratio": burn()})
    for name, entry in found.items():
        python, rust = min(entry["python_s"]), min(entry["rust_s"])
        entry["ratio"], entry["more_s"] = python / rust, python - rust
        each = "a tick" if name in brains else f"{entry['count']} in a run"
        print(f"{name:10} {rust * 1e6:12.2f} us in Rust {python * 1e6:12.2f} us in Python, ratio {python / rust:.3f}, {(python - rust) * 1e6:+.2f} us, {each}")
    ratio = statistics.median(entry["together_s"] / entry["slower_alone_s"] for entry in threads)
    floor = statistics.median(entry["processes_ratio"] for entry in threads)
    print(f"two networks in two threads: {ratio:.3f} of the slower alone; two processes that only count: {floor:.3f}")
    if args.record:
        about = {"cores": os.cpu_count(), "device": tt.Device("cpu").info, "load_at_end": os.getloadavg(), "python": sys.version}
        args.record.write_text(json.dumps(about | {"work": found, "threads": threads, "threads_ratio": ratio, "processes_ratio": floor}, indent=1) + "\n")


if __name__ == "__main__":
    main()
