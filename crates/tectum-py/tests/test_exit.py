"""The interpreter ends while daemon threads are inside the package."""

import subprocess
import sys

import pytest

ROUNDS = 3
CODES = {
    "compile": """
def work():
    plan = tt.Plan()
    x, y = plan.input("x", 4), plan.output("y", 4)
    plan.unary("relu", x, y)
    plan.compile().run(x=[0] * 4)
""",
    "fit": """
import numpy as np
graph = tt.Graph()
y = graph.dense("layer", graph.input("x", (4, 2)), 1)
trainer = graph.trainer((y * y).mean())
trainer.initialize(1)
samples = np.zeros((400, 2))
def work():
    trainer.fit(epochs=100, x=samples)
""",
    "loop": """
class Cart:
    spec = tt.BodySpec("cart", 0.02, [tt.ObservationChannel("x")], [tt.ActionChannel("f", "N", -1, 1)])
    def reset(self, seed):
        return [0.0]
    def step(self, action):
        sum(range(20000))
        return [0.0], 0.0, False, False
class Brain:
    def tick(self, observation):
        sum(index for index in range(20000))
        return [0.0]
def work():
    tt.run_loop(Cart(), Brain(), seconds=100, clock="sim")
""",
    "twin": """
import numpy as np
def twin(y, count):
    y[:] = sum(index for index in range(20000))
text = "@compute @workgroup_size(256)\\nfn main() { y[0] = f32(params.count); }"
kernel = tt.Kernel("k", text, [("y", "write", "float32")], [("count", "uint32")], twin)
plan = tt.Plan()
plan.launch(kernel, [plan.output("y", 4)], count=4)
run = plan.compile()
def work():
    run.run()
""",
    "a twin that does not return": """
def twin(y, count):
    while True:
        pass
text = "@compute @workgroup_size(256)\\nfn main() { y[0] = f32(params.count); }"
kernel = tt.Kernel("k", text, [("y", "write", "float32")], [("count", "uint32")], twin)
plan = tt.Plan()
plan.launch(kernel, [plan.output("y", 4)], count=4)
run = plan.compile()
def work():
    run.run()
""",
    "wait": """
neurons = tt.Neurons()
neurons.add(1000)
network = tt.SpikingNetwork(neurons, [0], [1], [1])
threading.Thread(target=network.run, args=(4_000_000_000,), daemon=True).start()
def work():
    network.counts
""",
}


@pytest.mark.parametrize("name", CODES)
def test_the_process_ends_with_0(name):
    code = f"""
import threading, time, tectum as tt
{CODES[name]}
def forever():
    while True:
        work()
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.2)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(ROUNDS)]
    ended = [(process.communicate(timeout=60)[1], process.returncode) for process in processes]
    assert [code for _, code in ended] == [0] * ROUNDS, ended
