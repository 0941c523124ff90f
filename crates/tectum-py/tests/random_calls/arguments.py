"""What the arguments of calls are made of: the texts of calls use the names of this module."""

import copy
import operator
import os
import pathlib
import pickle
import random
import shutil
import weakref

import numpy as np

import tectum as tt

__all__ = ["copy", "pickle", "weakref"]


class HostileError(Exception):
    """What hostile arguments raise."""


class Interrupted(BaseException):
    """Raised by the signal that ends a long call."""


def _raise(*_, **__):
    raise HostileError("hostile")


CONVERSIONS = ["__array__", "__float__", "__index__", "__int__", "__bool__", "__len__", "__iter__", "__next__", "__getitem__"]
CONVERSIONS += ["__fspath__", "__str__", "__repr__", "__hash__", "__eq__", "__dlpack__", "__dlpack_device__", "__call__", "__contains__"]
CONVERSIONS += ["__radd__", "__rmul__", "__array_priority__", "keys", "items", "tick", "step", "reset", "spec"]

Raises = type("Raises", (), {name: _raise for name in CONVERSIONS})
RaisesOnRead = type("RaisesOnRead", (), {"__getattr__": _raise, "__len__": lambda self: 3})


class Lies:
    """Conversions that return what they must not."""

    def __init__(self, lie):
        self.lie = lie

    def __getattr__(self, name):
        return self.lie

    def _answer(self, *_, **__):
        return self.lie

    __array__ = __float__ = __index__ = __int__ = __len__ = __iter__ = __getitem__ = __fspath__ = _answer
    __bool__ = __str__ = __dlpack__ = __dlpack_device__ = __call__ = _answer


class Calls:
    """A value whose conversions first use a member of an object, which may be the one that converts it."""

    def __init__(self, value, target, member):
        self.value, self.target, self.member = value, target, member

    def _use(self):
        try:
            member = getattr(self.target, self.member)
            if callable(member):
                member()
        except Exception:
            pass
        return self.value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._use(), dtype)

    def __float__(self):
        return float(self._use())

    def __index__(self):
        return operator.index(self._use())

    def __len__(self):
        return len(self._use())

    def __iter__(self):
        return iter(self._use())

    def __getitem__(self, place):
        return self._use()[place]

    def __fspath__(self):
        return os.fspath(self._use())

    def __call__(self, *_, **__):
        return self._use()

    def keys(self):
        return self._use().keys()


class Shrinks(list):
    """A list that is shorter each time it is read."""

    def __getitem__(self, place):
        if len(self) > 1:
            self.pop()
        return super().__getitem__(place)

    def __iter__(self):
        while self:
            yield self.pop()


class Body:
    """A body in Python; `fault` selects how it fails."""

    def __init__(self, fault="none", target=None, member="spec"):
        self.fault, self.target, self.member = fault, target, member
        self.spec = tt.body("cart_pole").spec if fault != "spec" else 5

    def _numbers(self):
        if self.fault == "raises":
            raise HostileError("hostile")
        if self.fault == "calls":
            return Calls([0.0, 0.0, 0.0, 0.0], self.target, self.member)
        return {"shape": [0.0], "type": "no", "nan": [np.nan] * 4, "huge": [1e308] * 4, "none": np.zeros(4, np.float32)}.get(self.fault, [0.0] * 4)

    def reset(self, seed):
        return self._numbers()

    def step(self, action):
        if self.fault == "tuple":
            return 5
        return self._numbers(), Raises() if self.fault == "reward" else 1.0, False, False


class Brain:
    """A brain in Python; `fault` selects how it fails."""

    def __init__(self, fault="none", target=None, member="spec"):
        self.fault, self.target, self.member = fault, target, member

    def tick(self, observation):
        if self.fault == "raises":
            raise HostileError("hostile")
        if self.fault == "calls":
            return Calls([0.0], self.target, self.member)
        return {"shape": np.zeros((3, 2)), "type": "no", "nan": [np.nan], "huge": [1e308], "keeps": observation}.get(self.fault, [0.0])


def twin(fault="none"):
    """The form of a kernel on the CPU; `fault` selects how it fails."""

    def run(x, y, count=0, factor=1.0):
        if fault == "raises":
            raise HostileError("hostile")
        if fault == "resizes":
            y.resize(1, refcheck=False)
        if fault == "keeps":
            KEPT.append(y)
        y[:count] = factor * x[:count]

    return run


KEPT = []


def unaligned(array):
    """The same values at an address that no element type needs."""
    array = np.asarray(array)
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    memory[...] = array
    return memory


def readonly(array):
    array.flags.writeable = False
    return array


def changed_file(path, seed):
    """The path of a copy of a file with some bytes changed, or cut."""
    files = [path] if os.path.isfile(path) else sorted(str(file) for file in pathlib.Path(path).rglob("*") if file.is_file())
    draw = random.Random(seed)
    copied = f"changed-{seed}"
    if os.path.isfile(path):
        copied += os.path.splitext(path)[1]
        shutil.copyfile(path, copied)
        chosen = copied
    else:
        shutil.copytree(path, copied, dirs_exist_ok=True)
        chosen = os.path.join(copied, os.path.relpath(draw.choice(files), path))
    data = bytearray(pathlib.Path(chosen).read_bytes())
    if draw.random() < 0.3:
        del data[draw.randrange(len(data) + 1) :]
    for _ in range(draw.randrange(6)):
        if data:
            data[draw.randrange(len(data))] = draw.choice([0, 0x22, 0x7B, 0xFF, draw.randrange(256)])
    pathlib.Path(chosen).write_bytes(data)
    return copied


SAXPY = """buffer x: f32 read
buffer y: f32 read_write
mov_imm.f32 r0, 2.0
ldg.f32 r1, [x]
ldg.f32 r2, [y]
fma.f32 r2, r0, r1, r2
stg.f32 [y], r2
"""
SCALE = """@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < params.count; i += groups.x * 256u) { y[i] = params.factor * x[i]; }
}"""
BINDINGS = [("x", "read", "float32"), ("y", "write", "float32")]
PARAMETERS = [("count", "uint32"), ("factor", "float32")]


def some_graph():
    graph = tt.Graph()
    x, w = graph.input("x", ("B", 3)), graph.parameter("w", (3, 2))
    graph.output("y", (x @ w).tanh())
    return graph


def some_model():
    model = some_graph().compile(B=2)
    model.set_parameters({"w": np.ones((3, 2))})
    return model


def some_trainer():
    graph = tt.Graph()
    x, t = graph.input("x", (4, 3)), graph.input("t", (4, 2))
    return graph.trainer(graph.mse(graph.dense("w", x, 2), t))


def some_plan():
    plan = tt.Plan("some")
    x, s, y = plan.input("x", 4), plan.state("s", 4), plan.output("y", 4)
    plan.binary("add", x, s, y)
    plan.copy(y, s)
    return plan


def some_network():
    neurons = tt.Neurons()
    neurons.add(10, threshold=2.0, leak=0.1)
    return tt.SpikingNetwork(neurons, [0, 1, 2], [3, 4, 5], [10, 20, 30])


def some_spec():
    return tt.BodySpec("b", 0.1, [tt.ObservationChannel("o")], [tt.ActionChannel("a", "", -1.0, 1.0)])
