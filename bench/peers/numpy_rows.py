"""NumPy beside the core suite and the suite of programs. Elementwise calls and reductions use one thread; products use BLAS with all."""

import numpy as np

from protocol import row, serve

RANDOM = np.random.Generator(np.random.Philox(1))


def uniform(shape, *sizes):
    """Numbers in (0, 1], as on the other side."""
    return 1 - RANDOM.random(sizes or shape.sizes, dtype=shape.dtype)


def bits(n):
    return RANDOM.integers(0, 2, n, dtype=np.uint32)


@row("fill", 1, "y.fill(7)", types=["float32"])
def fill(shape):
    y = bits(shape.sizes)
    return lambda: y.fill(7)


@row("copy", 1, "numpy.copyto(y, x)", types=["float32"])
def copy(shape):
    x, y = bits(shape.sizes), bits(shape.sizes)
    return lambda: np.copyto(y, x)


def unary(op, function):
    @row(op, 1, f"numpy.{function.__name__}(x, out=y)")
    def make(shape):
        x, y = uniform(shape), uniform(shape)
        return lambda: function(x, out=y)


def binary(op, function):
    @row(op, 1, f"numpy.{function.__name__}(a, b, out=y)")
    def make(shape):
        a, b, y = uniform(shape), uniform(shape), uniform(shape)
        return lambda: function(a, b, out=y)


for op, function in [("abs", np.absolute), ("neg", np.negative), ("sqrt", np.sqrt), ("exp", np.exp), ("exp2", np.exp2), ("log", np.log),
                     ("log2", np.log2), ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)]:
    unary(op, function)
for op, function in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("min", np.minimum), ("max", np.maximum)]:
    binary(op, function)


binary("vector_add", np.add)


@row("chain6", 1, "six calls, each with out=t", types=["float32"])
def chain6(shape):
    a, b, t = uniform(shape), uniform(shape), uniform(shape)

    def call():
        np.multiply(a, b, out=t)
        np.add(t, a, out=t)
        np.subtract(t, b, out=t)
        np.absolute(t, out=t)
        np.multiply(t, a, out=t)
        np.sqrt(t, out=t)

    return call


@row("sigmoid_tanh", 1, "six calls for tanh(x)/(1 + exp(-(1.5*x + 0.25))), each with out=", tail="one_thread", types=["float32"])
def sigmoid_tanh(shape):
    x, t, y = uniform(shape), uniform(shape), uniform(shape)
    scale, shift, one = (x.dtype.type(number) for number in (-1.5, -0.25, 1))

    def call():
        np.multiply(x, scale, out=t)
        np.add(t, shift, out=t)
        np.exp(t, out=t)
        np.add(t, one, out=t)
        np.tanh(x, out=y)
        np.divide(y, t, out=y)

    return call


@row("relu", 1, "numpy.maximum(x, 0, out=y)")
def relu(shape):
    x, y = uniform(shape), uniform(shape)
    zero = x.dtype.type(0)
    return lambda: np.maximum(x, zero, out=y)


def reduction(op, function, axis):
    @row(op, 2, f"numpy.{function.__name__}(x, axis={axis}, out=y)")
    def make(shape):
        x = uniform(shape)
        y = function(x, axis=axis)
        return lambda: function(x, axis=axis, out=y)


for op, function, axis in [("sum", np.sum, 1), ("mean", np.mean, 1), ("variance", np.var, 1), ("min", np.min, 1), ("max", np.max, 1),
                           ("argmax", np.argmax, 1), ("sum_columns", np.sum, 0)]:
    reduction(op, function, axis)


@row("exclusive_scan", 1, "numpy.cumsum(x, out=y)", types=["float32"])
def scan(shape):
    x, y = bits(shape.sizes), bits(shape.sizes)
    return lambda: np.cumsum(x, out=y)


@row("compact", 1, "numpy.flatnonzero(x)", types=["float32"])
def compact(shape):
    x = bits(shape.sizes)
    return lambda: np.flatnonzero(x)


@row("top_k", 2, "numpy.argpartition(x, -64)[:, -64:], sorted", tail="k64", types=["float32"])
def top_k(shape):
    x = uniform(shape)

    def call():
        found = np.argpartition(x, -64, axis=1)[:, -64:]
        best = np.take_along_axis(x, found, axis=1)
        order = np.argsort(-best, axis=1)
        return np.take_along_axis(best, order, axis=1), np.take_along_axis(found, order, axis=1)

    return call


@row("gemm", 3, "numpy.matmul(a, b, out=y)")
def gemm(shape):
    m, k, n = shape.sizes
    a, b, y = uniform(shape, m, k), uniform(shape, k, n), uniform(shape, m, n)
    return lambda: np.matmul(a, b, out=y)


@row("gemm_batched", 4, "numpy.matmul(a, b, out=y)")
def gemm_batched(shape):
    batch, m, k, n = shape.sizes
    a, b, y = uniform(shape, batch, m, k), uniform(shape, batch, k, n), uniform(shape, batch, m, n)
    return lambda: np.matmul(a, b, out=y)


@row("matvec", 2, "numpy.dot(a, x, out=y)")
def matvec(shape):
    m, n = shape.sizes
    a, x, y = uniform(shape, m, n), uniform(shape, n), uniform(shape, m)
    return lambda: np.dot(a, x, out=y)


@row("transpose", 2, "numpy.copyto(y, x.T)", types=["float32"])
def transpose(shape):
    x = uniform(shape)
    y = uniform(shape, *reversed(shape.sizes))
    return lambda: np.copyto(y, x.T)


@row("random_bits", 1, "Philox.random_raw(n / 2), 64 bits each", types=["float32"])
def random_bits(shape):
    generator = np.random.Philox(1)
    count = shape.sizes[0] // 2
    return lambda: generator.random_raw(count)


@row("uniform", 1, "Generator(Philox).random(dtype=float32, out=y)", types=["float32"])
def random_uniform(shape):
    y = uniform(shape)
    return lambda: RANDOM.random(dtype=np.float32, out=y)


@row("normal", 1, "Generator(Philox).standard_normal(dtype=float32, out=y)", types=["float32"])
def normal(shape):
    y = uniform(shape)
    return lambda: RANDOM.standard_normal(dtype=np.float32, out=y)


@row("cycle", 4, "the step of docs/field.md on whole arrays, without imprint, sensors and placement", types=["float32"])
def cycle(shape):
    channels = shape.sizes[3]
    content, evolving = 3 * channels // 4 - 16, channels - 16
    x = np.float32(0.2) * RANDOM.standard_normal(shape.sizes, dtype=np.float32)
    x[..., -16:-12] += 2
    wave = np.float32(0.001) * RANDOM.standard_normal(shape.sizes[:3], dtype=np.float32)[..., None]
    noise = np.empty([*shape.sizes[:3], evolving], dtype=np.float32)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def call():
        nonlocal x
        d, here = x[..., evolving:], x[..., :evolving]
        decay = np.float32(0.999) * sigmoid(d[..., :4])
        diffusion = np.float32(0.05) + np.float32(0.05) * np.tanh(d[..., 4:7])
        coupling = np.float32(0.1 / 26) * sigmoid(d[..., 12:13]) * sigmoid(d[..., 13:14]) * np.tanh(d[..., 8:12].mean(-1, keepdims=True))
        p = np.pad(here, [(1, 1)] * 3 + [(0, 0)], mode="edge")
        spread = diffusion[..., 0:1] * (p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] - 2 * here)
        spread += diffusion[..., 1:2] * (p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1] - 2 * here)
        spread += diffusion[..., 2:3] * (p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] - 2 * here)
        box = p[..., :content]
        box = box[:-2] + box[1:-1] + box[2:]
        box = box[:, :-2] + box[:, 1:-1] + box[:, 2:]
        box = box[:, :, :-2] + box[:, :, 1:-1] + box[:, :, 2:]
        old = here[..., :content]
        result = np.empty_like(x)
        new = result[..., :evolving]
        new[..., :content] = np.tile(decay, content // 4) * (old + spread[..., :content] + coupling * (box - old))
        new[..., content:] = decay.mean(-1, keepdims=True) * (
            np.float32(0.85) * (here[..., content:] + spread[..., content:]) + np.float32(0.15) * here[..., content - 1 : -1]
        )
        RANDOM.standard_normal(dtype=np.float32, out=noise)
        new += np.float32(0.5) * (np.float32(0.001) * noise + wave)
        new *= np.float32(0.5)
        np.tanh(new, out=new)
        new *= 2
        quiet = (np.abs(old) < 0.1).mean(-1, dtype=np.float32)
        targets = np.stack([np.full_like(quiet, 1.99), np.float32(0.01) * old.var(-1), np.float32(0.005) * quiet, np.full_like(quiet, -0.0025)], -1)
        result[..., evolving:] = np.clip(d + np.float32(0.05) * (np.repeat(targets, 4, -1) - d), -5, 5)
        after = result[..., :content]
        sums = [after.sum(), np.abs(after).sum(), np.vdot(after, after), after[-1].sum() - after[0].sum()]
        sums += [after[:, -1].sum() - after[:, 0].sum(), after[:, :, -1].sum() - after[:, :, 0].sum()]
        x = result
        return sums

    return call



def versions(_device):
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"numpy": np.__version__, blas["name"]: blas["version"]}


serve(versions, lambda threads: threads)
