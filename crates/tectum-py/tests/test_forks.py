"""In a fork, every call that could use a lock, a thread or a driver is refused; none waits for ever."""

import ast
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import tectum as tt

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

STUB = ast.parse((pathlib.Path(tt.__file__).parent / "_tectum.pyi").read_text())
# What has neither locks nor threads: plain data.
DATA = {
    "ActionChannel", "Area", "BodySpec", "FieldReport", "Generation", "KernelCase", "KernelCheck", "KernelCheckRow", "ObservationChannel", "Repetition",
    "SpikeCounts", "StopSignal", "View",
}  # fmt: skip
DATA_MEMBERS = {
    ("BodyBatch", "spec"), ("BodyBatch", "__len__"), ("BodyBatch", "__repr__"),
    ("CompiledGraph", "__repr__"),
    ("Buffer", "dtype"), ("Buffer", "device"), ("Buffer", "__len__"), ("Buffer", "__repr__"),
    ("Decoder", "context"), ("Decoder", "parameters"), ("Decoder", "__repr__"),
    ("Device", "id"), ("Device", "name"), ("Device", "software"), ("Device", "__repr__"), ("Device", "__eq__"), ("Device", "__hash__"),
    ("Encoder", "width"), ("Encoder", "max_tokens"), ("Encoder", "__repr__"),
    ("Executable", "__repr__"),
    ("Genome", "title"), ("Genome", "areas"), ("Genome", "area"), ("Genome", "neurons"), ("Genome", "warnings"), ("Genome", "__repr__"),
    ("Graph", "__new__"),
    ("Kernel", "name"), ("Kernel", "wgsl"), ("Kernel", "__repr__"),
    ("NativeBody", "spec"), ("NativeBody", "__repr__"),
    ("NativeBrain", "name"), ("NativeBrain", "commands"), ("NativeBrain", "__repr__"),
    ("Network", "inputs"), ("Network", "outputs"), ("Network", "assumptions"), ("Network", "__repr__"), ("Network", "_repr_html_"),
    ("Neurons", "__new__"),
    ("Node", "T"),
    ("Plan", "__new__"),
    ("Program", "name"), ("Program", "buffers"), ("Program", "__repr__"), ("Program", "__str__"),
    ("Receipt", "device"), ("Receipt", "software"), ("Receipt", "runs"), ("Receipt", "trace"), ("Receipt", "__repr__"), ("Receipt", "_repr_html_"),
    ("RemoteBody", "address"), ("RemoteBody", "peer"), ("RemoteBody", "__enter__"),
    ("Server", "address"), ("Server", "__enter__"), ("Server", "__repr__"),
    ("SpikingNetwork", "neurons"), ("SpikingNetwork", "synapses"), ("SpikingNetwork", "notes"),
    ("TextStream", "__iter__"),
}  # fmt: skip
RUN_DATA = {"Recording", "Run"}


def objects(folder, models):
    """An object of each class that is not plain data, and arguments for its methods."""
    graph = tt.Graph()
    x = graph.input("x", (4, 2))
    y = graph.dense("layer", x, 1)
    graph.output("y", y)
    plan = tt.Plan()
    plan.copy(plan.input("x", 4), plan.output("y", 4))
    other, copying = tt.Plan(), tt.Plan()
    copying.copy(copying.input("x", 4), copying.output("y", 4))
    neurons = tt.Neurons()
    neurons.add(2)
    spiking = tt.SpikingNetwork(neurons, [0], [1], [1])
    kernel_text = "@compute @workgroup_size(256)\nfn main() { y[0] = f32(params.count); }"
    decoder = tt.Decoder(tt.sample("sample-decoder", folder), context=64)
    stream = tt.Stream()
    return {
        "BodyBatch": tt.BodyBatch("cart_pole", 2),
        "Buffer": tt.Buffer(4),
        "CompiledGraph": graph.compile(),
        "Decoder": decoder,
        "Device": tt.Device(),
        "Encoder": tt.Encoder(tt.sample("sample-encoder", folder)),
        "Event": stream.event(),
        "Executable": plan.compile(),
        "Field": tt.Field(2, 1, shape=(4, 4, 4, 32)),
        "Genome": tt.Genome(tt.sample("sample-genome", folder)),
        "Graph": graph,
        "Kernel": tt.Kernel("k", kernel_text, [("y", "write", "float32")], [("count", "uint32")], lambda y, count: None),
        "NativeBody": tt.body("pendulum"),
        "NativeBrain": tt.brain("lqr", "pendulum"),
        "Network": tt.Network(models / "cart_pole.onnx"),
        "Neurons": neurons,
        "Node": y,
        "Plan": other,
        "PotentialMonitor": spiking.potential_monitor([0]),
        "Program": tt.program("buffer x: i32 read_write\nldg.i32 r0, [x]\nstg.i32 [x], r0"),
        "Receipt": graph.compile().receipt,
        "SpikeMonitor": spiking.monitor(),
        "SpikingNetwork": spiking,
        "Stream": stream,
        "Submission": stream.submit(copying.compile()),
        "TextStream": decoder.stream("the", max_new_tokens=1),
        "Trainer": graph.trainer(y.mean()),
    }


# Arguments of the types that signatures have, by the names of parameters; others are 1.
ARGUMENTS = {
    "name": "cart_pole", "names": ["x"], "path": "nowhere", "text": "the", "texts": ["the"], "prompt": "the", "tokens": [1], "folder": "nowhere",
    "model": "nowhere", "scenario": "pendulum", "address": "ws://127.0.0.1:1", "wgsl": "", "bindings": [], "params": [], "twin": print, "id": "cpu", "shape": (4, 2), "order": [0, 1],
    "values": {}, "inputs": {}, "instances": [0], "kind": "max", "views": [], "units": "detect", "cases": [{"y": 4, "count": 4}],
}  # fmt: skip


def argument(name, found):
    replaced = {
        "event": found["Event"], "executable": found["Executable"],
        "body": found["NativeBody"], "brain": found["NativeBrain"], "kernel": found["Kernel"], "neurons": found["Neurons"],
        "source": [0], "target": found["Node"], "weight": [1], "nodes": [found["Node"]], "seeds": [0],
    }  # fmt: skip
    nodes = {"x", "w", "q", "k", "v", "a", "b", "gain", "bias", "table", "indices", "logits", "loss", "prediction", "node", "other"}
    if name in nodes:
        return found["Node"]
    return replaced.get(name, ARGUMENTS.get(name, 1))


def calls(found):
    """Every public function, constructor, method and property of the stubs, as (name, call)."""
    view = tt.Plan().input("view", 4)
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            if node.name not in ("end", "samples"):
                yield node.name, bound(getattr(tt._tectum, node.name), node, found, view)
            continue
        if not isinstance(node, ast.ClassDef) or node.name in DATA | RUN_DATA or node.name.startswith("_") or issubclass(getattr(tt._tectum, node.name), Exception):
            continue
        for item in node.body:
            name = getattr(item, "name", None)
            if not isinstance(item, ast.FunctionDef) or (node.name, name) in DATA_MEMBERS or name == "plot":
                continue
            label, target = f"{node.name}.{name}", found.get(node.name)
            decorators = {ast.unparse(decorator) for decorator in item.decorator_list}
            if name == "__new__":
                yield label, bound(getattr(tt, node.name), item, found, view)
            elif target is None:
                continue
            elif "property" in decorators:
                yield label, lambda target=target, name=name: getattr(target, name)
            elif any("setter" in decorator for decorator in decorators):
                yield label, lambda target=target, name=name: setattr(target, name, [0.0])
            else:
                yield label, bound(getattr(target, name), item, found, view)


def bound(function, item, found, view):
    plain = [*item.args.posonlyargs, *item.args.args]
    plain = [parameter.arg for parameter in plain if parameter.arg not in ("self", "cls")]
    needed = plain[: len(plain) - len(item.args.defaults)]
    keywords = [parameter.arg for parameter, default in zip(item.args.kwonlyargs, item.args.kw_defaults) if default is None]
    owner = type(getattr(function, "__self__", None))
    values = [argument(name, found) for name in needed]
    if owner is tt.Buffer:
        values = [found["Buffer"] if name == "other" else value for name, value in zip(needed, values)]
    if owner is tt.Plan:
        values = [view if name in ("x", "y", "a", "b") else value for name, value in zip(needed, values)]
    if owner is tt.Graph:
        values = [2 if name == "kernel" else value for name, value in zip(needed, values)]
    return lambda: function(*values, **{name: argument(name, found) for name in keywords})


def refusals(listed, answers):
    outcomes = {}
    for name, call in listed:
        try:
            outcomes[name] = f"returned {type(call()).__name__}"
        except RuntimeError as error:
            outcomes[name] = str(error)
        except BaseException as error:  # noqa: BLE001
            outcomes[name] = f"{type(error).__name__}: {error}"
    answers.send(outcomes)


def test_every_call_is_refused_in_a_fork(tmp_path, models):
    found = objects(tmp_path, models)
    listed = list(calls(found))
    network = found["SpikingNetwork"]
    # Another thread has the lock of an object when the process is forked.
    thread = threading.Thread(target=network.run, args=(400_000,))
    thread.start()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=refusals, args=(listed, sender), daemon=True)
    child.start()
    assert receiver.poll(60), "the fork waits for ever"
    outcomes = receiver.recv()
    child.join(60)
    thread.join()
    assert child.exitcode == 0 and len(outcomes) > 120
    others = {name: outcome for name, outcome in outcomes.items() if "spawn" not in outcome}
    assert not others


def test_a_fork_ends_with_its_objects(tmp_path):
    """Objects with threads are not waited for when a fork ends as a program does."""
    code = f"""
import os, sys, threading, tectum as tt
brain = tt.Policy({str(tt.sample("cart-pole-policy", tmp_path) / "cart_pole.onnx")!r}, "cart_pole")
network = tt.Device(), brain
child = os.fork()
if child == 0:
    del network, brain
    sys.exit(3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60).returncode == 3
