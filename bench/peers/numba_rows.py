"""Numba beside the suites: loops compiled for this processor, parallel over all threads."""

import numba
import numpy as np

from protocol import fastest, row, serve

WEIGHTS = (0.4, 0.06, 0.02, 0.005)


def uniform(shape, *sizes):
    return 1 - np.random.default_rng(1).random(sizes or shape.sizes, dtype=shape.dtype)


@numba.njit(parallel=True, fastmath=True)
def step_7(x, y, center, face):
    planes, rows, columns, channels = x.shape
    for i in numba.prange(planes):
        up, down = (i - 1) % planes, (i + 1) % planes
        for j in range(rows):
            north, south = (j - 1) % rows, (j + 1) % rows
            for k in range(columns):
                west, east = (k - 1) % columns, (k + 1) % columns
                for c in range(channels):
                    faces = x[up, j, k, c] + x[down, j, k, c] + x[i, north, k, c] + x[i, south, k, c] + x[i, j, west, c] + x[i, j, east, c]
                    y[i, j, k, c] = center * x[i, j, k, c] + face * faces


@numba.njit(parallel=True, fastmath=True)
def step_27(x, y, weights):
    planes, rows, columns, channels = x.shape
    center, face, edge, corner = weights
    for i in numba.prange(planes):
        up, down = (i - 1) % planes, (i + 1) % planes
        # Of a row, the sums of the four rows beside it and of the four beyond its edges: each is read three times.
        faces, edges = np.empty((columns, channels), x.dtype), np.empty((columns, channels), x.dtype)
        for j in range(rows):
            north, south = (j - 1) % rows, (j + 1) % rows
            for k in range(columns):
                for c in range(channels):
                    faces[k, c] = x[up, j, k, c] + x[down, j, k, c] + x[i, north, k, c] + x[i, south, k, c]
                    edges[k, c] = x[up, north, k, c] + x[up, south, k, c] + x[down, north, k, c] + x[down, south, k, c]
            for k in range(columns):
                west, east = (k - 1) % columns, (k + 1) % columns
                for c in range(channels):
                    total = center * x[i, j, k, c] + face * (faces[k, c] + x[i, j, west, c] + x[i, j, east, c])
                    total += edge * (edges[k, c] + faces[west, c] + faces[east, c]) + corner * (edges[west, c] + edges[east, c])
                    y[i, j, k, c] = total


@numba.njit(parallel=True, fastmath=True)
def chain(a, b, y):
    for i in numba.prange(a.size):
        y[i] = np.sqrt(np.abs((a[i] * b[i] + a[i]) - b[i]) * a[i])


@numba.njit(parallel=True, fastmath=True)
def exponential(x, y):
    for i in numba.prange(x.size):
        y[i] = np.exp(x[i])


@numba.njit
def scan_from(x, y, total):
    for i in range(x.size):
        y[i] = total
        total += x[i]


@numba.njit(parallel=True)
def scan_parts(x, y, starts):
    """Sums of the threads' parts, then each part from the sum of those before it."""
    count, size = starts.size, -(-x.size // starts.size)
    for part in numba.prange(count - 1):
        starts[part + 1] = x[part * size : (part + 1) * size].sum()
    for part in range(1, count):
        starts[part] += starts[part - 1]
    for part in numba.prange(count):
        scan_from(x[part * size : (part + 1) * size], y[part * size : (part + 1) * size], starts[part])


for name in ["stencil_7", "stencil7"]:

    @row(name, 4, "njit(parallel=True) 7-point loop, periodic", types=["float32"])
    def stencil_7(shape):
        x, y = uniform(shape), uniform(shape)
        center, face = np.float32(WEIGHTS[0]), np.float32(WEIGHTS[1])
        return lambda: step_7(x, y, center, face)


for name in ["stencil_27", "stencil27"]:

    @row(name, 4, "njit(parallel=True) 27-point loop, periodic", types=["float32"])
    def stencil_27(shape):
        x, y = uniform(shape), uniform(shape)
        weights = np.array(WEIGHTS, np.float32)
        return lambda: step_27(x, y, weights)


@row("chain6", 1, "njit(parallel=True) loop of sqrt(abs((a * b + a) - b) * a)")
def chain6(shape):
    a, b, y = uniform(shape), uniform(shape), uniform(shape)
    return lambda: chain(a, b, y)


@row("exp", 1, "njit(parallel=True) loop of exp")
def exp(shape):
    x, y = uniform(shape), uniform(shape)
    return lambda: exponential(x, y)


@row("exclusive_scan", 1, "njit", types=["float32"])
def scan(shape):
    x = np.random.default_rng(1).integers(0, 2, shape.sizes, dtype=np.uint32)
    y, starts = np.zeros_like(x), np.zeros(numba.get_num_threads(), np.uint32)
    return fastest(shape, {"a loop on one thread": lambda: lambda: scan_from(x, y, np.uint32(0)), "two passes on all threads": lambda: lambda: scan_parts(x, y, starts)})


NETWORKS = {"n10k_s50": (10_000, 50), "n100k_s100": (100_000, 100), "n500k_s100": (500_000, 100), "n1m_s100": (1_000_000, 100)}


@numba.njit
def deliver(fired, starts, targets, weights, sums):
    for neuron in fired:
        for synapse in range(starts[neuron], starts[neuron + 1]):
            sums[targets[synapse]] += weights[synapse]


@numba.njit(parallel=True)
def deliver_parts(fired, starts, targets, weights, sums):
    """Each thread adds what a part of the fired neurons sends to sums of its own: numba has no atomic additions on the CPU."""
    count = sums.shape[0]
    for thread in numba.prange(count):
        deliver(fired[fired.size * thread // count : fired.size * (thread + 1) // count], starts, targets, weights, sums[thread])


@numba.njit(parallel=True)
def merge(sums):
    for neuron in numba.prange(sums.shape[1]):
        for thread in range(1, sums.shape[0]):
            sums[0, neuron] += sums[thread, neuron]
            sums[thread, neuron] = 0


def integrate(potentials, sums, has_fired, threshold):
    for neuron in numba.prange(potentials.size):
        potential = potentials[neuron]
        for thread in range(sums.shape[0]):
            potential += sums[thread, neuron]
            sums[thread, neuron] = 0
        has_fired[neuron] = potential >= threshold
        potentials[neuron] = np.float32(0) if potential >= threshold else potential


# On one thread prange is range.
integrate_one, integrate_all = numba.njit(integrate), numba.njit(parallel=True)(integrate)


def network(neurons, degree):
    """Rows of random targets, and sixteen patterns of one neuron in a hundred that is made to fire."""
    random = np.random.default_rng(1)
    targets = random.integers(0, neurons, neurons * degree, dtype=np.uint32)
    weights = random.choice(np.array([1, 2, 3, 4, -1], np.float32), neurons * degree)
    starts = np.arange(0, neurons * degree + 1, degree, dtype=np.int64)
    groups = np.arange(0, neurons, 100)
    patterns = [groups + random.integers(0, 100, groups.size) for _ in range(16)]
    return starts, targets, weights, patterns


def burst(operands, size, senders, integrators):
    starts, targets, weights, patterns = operands
    sums, potentials = np.zeros((senders, size), np.float32), np.zeros(size, np.float32)
    has_fired = np.zeros(size, np.bool_)
    integrate = integrate_all if integrators > 1 else integrate_one
    state = {"fired": patterns[0], "burst": 0}

    def step():
        state["burst"] += 1
        if senders > 1:
            deliver_parts(state["fired"], starts, targets, weights, sums)
        else:
            deliver(state["fired"], starts, targets, weights, sums[0])
        sums[0][patterns[state["burst"] % 16]] += 1500
        integrate(potentials, sums, has_fired, np.float32(1000))
        state["fired"] = np.flatnonzero(has_fired)

    return step


def csr_scatter(operands, size, senders):
    starts, targets, weights, patterns = operands
    sums = np.zeros((senders, size), np.float32)
    state = {"burst": 0}

    def step():
        state["burst"] += 1
        fired = patterns[state["burst"] % 16]
        if senders > 1:
            deliver_parts(fired, starts, targets, weights, sums)
            merge(sums)
        else:
            deliver(fired, starts, targets, weights, sums[0])

    return step


for name, size in NETWORKS.items():
    # Threads with sums of their own only pay where much is sent.

    @row("burst", 0, "njit: CSR rows of what fired, injection, threshold and reset; numpy.flatnonzero", tail=name, types=["float32"])
    def make_burst(shape, size=size):
        operands, count = network(*size), numba.get_num_threads()
        ways = {(1, 1), (1, count), (count, count)}
        return fastest(shape, {f"threads: {senders} to send, {integrators} to integrate": lambda s=senders, i=integrators: burst(operands, size[0], s, i) for senders, integrators in sorted(ways)})

    @row("csr_scatter", 0, "njit: CSR rows of what fired", tail=name, types=["float32"])
    def make_csr_scatter(shape, size=size):
        operands, counts = network(*size), sorted({1, numba.get_num_threads()})
        return fastest(shape, {f"threads: {count}": lambda count=count: csr_scatter(operands, size[0], count) for count in counts})


def threads(count):
    numba.set_num_threads(count)
    return numba.get_num_threads()


serve(lambda _device: {"numba": numba.__version__, "numpy": np.__version__}, threads)
