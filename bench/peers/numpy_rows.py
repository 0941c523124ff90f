"""NumPy beside the core suite and the suite of programs. Products use BLAS with all threads, random numbers a generator for each thread;
all else uses one thread, and its call says so."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_info

from protocol import Shape, row, serve

RANDOM = np.random.Generator(np.random.Philox(1))
# Elements of a block where several calls follow each other: what they write stays in the second cache.
BLOCK = 65_536


def uniform(shape, *sizes):
    """Numbers in (0, 1], as on the other side."""
    return 1 - RANDOM.random(sizes or shape.sizes, dtype=shape.dtype)


def alone(op, dimensions, call, **options):
    """A row that NumPy computes on one thread."""
    return row(op, dimensions, f"{call}, one thread", **options)


def bits(n):
    return RANDOM.integers(0, 2, n, dtype=np.uint32)


@alone("fill", 1, "y.fill(7)", types=["float32"])
def fill(shape):
    y = bits(shape.sizes)
    return lambda: y.fill(7)


@alone("copy", 1, "numpy.copyto(y, x)", types=["float32"])
def copy(shape):
    x, y = bits(shape.sizes), bits(shape.sizes)
    return lambda: np.copyto(y, x)


def unary(op, function):
    @alone(op, 1, f"numpy.{function.__name__}(x, out=y)")
    def make(shape):
        x, y = uniform(shape), uniform(shape)
        return lambda: function(x, out=y)


def binary(op, function):
    @alone(op, 1, f"numpy.{function.__name__}(a, b, out=y)")
    def make(shape):
        a, b, y = uniform(shape), uniform(shape), uniform(shape)
        return lambda: function(a, b, out=y)


for op, function in [("abs", np.absolute), ("neg", np.negative), ("sqrt", np.sqrt), ("exp", np.exp), ("exp2", np.exp2), ("log", np.log),
                     ("log2", np.log2), ("sin", np.sin), ("cos", np.cos), ("tanh", np.tanh)]:
    unary(op, function)
for op, function in [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide), ("min", np.minimum), ("max", np.maximum)]:
    binary(op, function)


binary("vector_add", np.add)


@alone("chain6", 1, "six calls, each with out=t, over blocks that the cache holds", types=["float32"])
def chain6(shape):
    a, b, t = uniform(shape), uniform(shape), uniform(shape)
    blocks = [(a[first : first + BLOCK], b[first : first + BLOCK], t[first : first + BLOCK]) for first in range(0, a.size, BLOCK)]

    def call():
        for a, b, t in blocks:
            np.multiply(a, b, out=t)
            np.add(t, a, out=t)
            np.subtract(t, b, out=t)
            np.absolute(t, out=t)
            np.multiply(t, a, out=t)
            np.sqrt(t, out=t)

    return call


@alone("sigmoid_tanh", 1, "six calls for tanh(x)/(1 + exp(-(1.5*x + 0.25))), each with out=", tail="one_thread", types=["float32"])
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


@alone("relu", 1, "numpy.maximum(x, 0, out=y)")
def relu(shape):
    x, y = uniform(shape), uniform(shape)
    zero = x.dtype.type(0)
    return lambda: np.maximum(x, zero, out=y)


def reduction(op, function, axis):
    @alone(op, 2, f"numpy.{function.__name__}(x, axis={axis}, out=y)")
    def make(shape):
        x = uniform(shape)
        y = function(x, axis=axis)
        return lambda: function(x, axis=axis, out=y)


for op, function, axis in [("sum", np.sum, 1), ("mean", np.mean, 1), ("min", np.min, 1), ("max", np.max, 1),
                           ("argmax", np.argmax, 1), ("sum_columns", np.sum, 0)]:
    reduction(op, function, axis)


@alone("variance", 2, "mean, numpy.subtract(x, mean, out=t), numpy.vecdot(t, t) over blocks that the cache holds", types=["float32", "float64"])
def variance(shape):
    rows, columns = shape.sizes
    x = uniform(shape)
    # Long rows in parts, whose means and squares are then put together: one pass over x, and no digits are lost.
    width = min(columns, 1024)
    parts = x.reshape(-1, width)
    block = max(1, BLOCK // width)
    t, means, squares = np.empty([block, width], shape.dtype), np.empty(len(parts), shape.dtype), np.empty(len(parts), shape.dtype)

    def call():
        for first in range(0, len(parts), block):
            part, mean = parts[first : first + block], means[first : first + block]
            np.mean(part, axis=1, out=mean)
            difference = np.subtract(part, mean[:, None], out=t[: len(part)])
            np.vecdot(difference, difference, out=squares[first : first + block])
        each = means.reshape(rows, -1)
        mean = each.mean(1)
        return mean, (squares.reshape(rows, -1).sum(1) + width * np.square(each - mean[:, None]).sum(1)) / columns

    return call


@alone("exclusive_scan", 1, "numpy.cumsum(x, out=y)", types=["float32"])
def scan(shape):
    x, y = bits(shape.sizes), bits(shape.sizes)
    return lambda: np.cumsum(x, out=y)


@alone("compact", 1, "numpy.flatnonzero(x != 0)", types=["float32"])
def compact(shape):
    x = bits(shape.sizes)
    # NumPy has a faster path for booleans.
    return lambda: np.flatnonzero(x != 0)


@alone("top_k", 2, "numpy.argpartition of the greatest of each 1,024, then of the 64 parts that they are in, sorted", tail="k64", types=["float32"])
def top_k(shape):
    # One row, as the suite has it. The 64 greatest lie in the 64 parts with the greatest maxima.
    assert shape.sizes[0] == 1
    parts = uniform(shape).reshape(-1, 1024)

    def call():
        best_parts = np.argpartition(parts.max(1), -64)[-64:]
        kept = parts[best_parts].ravel()
        found = np.argpartition(kept, -64)[-64:]
        found = found[np.argsort(-kept[found])]
        return kept[found], best_parts[found // 1024] * 1024 + found % 1024

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


@alone("transpose", 2, "y[:, i:i+64] = x[i:i+64].T", types=["float32"])
def transpose(shape):
    x = uniform(shape)
    y = uniform(shape, *reversed(shape.sizes))

    def call():
        for first in range(0, len(x), 64):
            y[:, first : first + 64] = x[first : first + 64].T

    return call


def shared(fill, parts):
    """A call that fills each part on a thread of its own, as NumPy's page on multithreaded generation does."""
    pool = ThreadPoolExecutor(len(parts))
    generators = [np.random.Philox(1).jumped(thread) for thread in range(len(parts))]
    return lambda: list(pool.map(fill, generators, parts))


@row("random_bits", 1, "Philox.random_raw of 64 bits each, a generator for each thread", types=["float32"])
def random_bits(shape):
    counts = [len(part) for part in np.array_split(range(shape.sizes[0] // 2), Shape.all_threads)]
    return shared(lambda generator, count: generator.random_raw(count), counts)


def filled(op, name):
    @row(op, 1, f"Generator(Philox).{name}(dtype=float32, out=part), a generator for each thread", types=["float32"])
    def make(shape):
        def fill(generator, part):
            getattr(np.random.Generator(generator), name)(dtype=np.float32, out=part)

        return shared(fill, np.array_split(uniform(shape), Shape.all_threads))


filled("uniform", "random")
filled("normal", "standard_normal")


@alone("cycle", 4, "the step of docs/field.md by planes that the cache holds, without imprint, sensors and placement", types=["float32"])
def cycle(shape):
    planes, rows, columns, channels = shape.sizes
    content, evolving = 3 * channels // 4 - 16, channels - 16
    field = np.float32(0.2) * RANDOM.standard_normal(shape.sizes, dtype=np.float32)
    field[..., -16:-12] += 2
    result = np.empty_like(field)
    wave = np.float32(0.001) * RANDOM.standard_normal(shape.sizes[:3], dtype=np.float32)[..., None]
    generator = np.random.SFC64(1)
    # The content and temporal channels with one cell more on every side, which repeats the edge.
    padded = np.empty([planes + 2, rows + 2, columns + 2, evolving], np.float32)
    some = max(1, min(planes, 4 * BLOCK // (rows * columns * evolving)))
    ones = np.full(content, 1 / content, np.float32)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    def noise(shape):
        """The sum of four random bytes, less its mean, over its deviation."""
        words = generator.random_raw(math.prod(shape) // 2).view(np.uint32)
        pairs = words & np.uint32(0x00FF00FF)
        words >>= np.uint32(8)
        words &= np.uint32(0x00FF00FF)
        pairs += words
        sums = pairs & np.uint32(0xFFFF)
        pairs >>= np.uint32(16)
        sums += pairs
        made = sums.astype(np.float32)
        made -= np.float32(510)
        made *= np.float32(1 / math.sqrt(21845))
        return made.reshape(shape)

    def pad(x):
        padded[1:-1, 1:-1, 1:-1] = x[..., :evolving]
        for axis in range(3):
            side = np.moveaxis(padded, axis, 0)
            side[0], side[-1] = side[1], side[-2]

    def step(x, p, wave, result):
        """Planes of x into planes of result; p has one plane more on either side. The sums of the content."""
        d, here = x[..., evolving:], p[1:-1, 1:-1, 1:-1]
        decay = np.float32(0.999) * sigmoid(d[..., :4])
        diffusion = np.float32(0.05) + np.float32(0.05) * np.tanh(d[..., 4:7])
        coupling = np.float32(0.1 / 26) * sigmoid(d[..., 12:13]) * sigmoid(d[..., 13:14]) * np.tanh(d[..., 8:12].mean(-1, keepdims=True))
        old, twice = here[..., :content], 2 * here
        new = here.copy()
        for axis, (before, after) in enumerate([(p[:-2, 1:-1, 1:-1], p[2:, 1:-1, 1:-1]), (p[1:-1, :-2, 1:-1], p[1:-1, 2:, 1:-1]), (p[1:-1, 1:-1, :-2], p[1:-1, 1:-1, 2:])]):
            spread = before + after
            spread -= twice
            spread *= diffusion[..., axis : axis + 1]
            new += spread
        box = p[..., :content]
        box = box[:-2] + box[1:-1] + box[2:]
        box = box[:, :-2] + box[:, 1:-1] + box[:, 2:]
        box = box[:, :, :-2] + box[:, :, 1:-1] + box[:, :, 2:]
        box -= old
        box *= coupling
        kept, shifted = new[..., :content], new[..., content:]
        kept += box
        kept *= np.tile(decay, content // 4)
        shifted *= np.float32(0.85)
        shifted += np.float32(0.15) * here[..., content - 1 : -1]
        shifted *= decay.mean(-1, keepdims=True)
        drive = noise(new.shape)
        drive *= np.float32(0.001)
        drive += wave
        drive *= np.float32(0.5)
        new += drive
        new *= np.float32(0.5)
        np.tanh(new, out=new)
        new *= 2
        result[..., :evolving] = new
        mean = np.vecdot(old, ones)
        targets = np.empty(d.shape, np.float32)
        targets[..., :4] = 1.99
        targets[..., 4:8] = (np.float32(0.01) * (np.vecdot(old, old) / np.float32(content) - mean * mean))[..., None]
        targets[..., 8:12] = (np.float32(0.005) * (np.abs(old) < 0.1).mean(-1, dtype=np.float32))[..., None]
        targets[..., 12:] = -0.0025
        targets -= d
        targets *= np.float32(0.05)
        targets += d
        np.clip(targets, -5, 5, out=result[..., evolving:])
        return np.array([kept.sum(), np.abs(kept).sum(), np.vdot(kept, kept)])

    def call():
        nonlocal field, result
        pad(field)
        sums = sum(step(field[at : at + some], padded[at : at + some + 2], wave[at : at + some], result[at : at + some]) for at in range(0, planes, some))
        sides = [np.moveaxis(result[..., :content], axis, 0) for axis in range(3)]
        field, result = result, field
        return sums, [side[-1].sum() - side[0].sum() for side in sides]

    return call


def versions(_device):
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"numpy": np.__version__, blas["name"]: blas["version"]}


def threads(_count):
    """Those that BLAS has."""
    return max(library["num_threads"] for library in threadpool_info())


serve(versions, threads)
