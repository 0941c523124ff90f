"""Numba beside the suites: loops compiled for this processor, parallel over all threads."""

import numba
import numpy as np

from protocol import row, serve

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
        for j in range(rows):
            north, south = (j - 1) % rows, (j + 1) % rows
            for k in range(columns):
                west, east = (k - 1) % columns, (k + 1) % columns
                for c in range(channels):
                    faces = x[up, j, k, c] + x[down, j, k, c] + x[i, north, k, c] + x[i, south, k, c] + x[i, j, west, c] + x[i, j, east, c]
                    edges = x[up, north, k, c] + x[up, south, k, c] + x[up, j, west, c] + x[up, j, east, c]
                    edges += x[down, north, k, c] + x[down, south, k, c] + x[down, j, west, c] + x[down, j, east, c]
                    edges += x[i, north, west, c] + x[i, north, east, c] + x[i, south, west, c] + x[i, south, east, c]
                    corners = x[up, north, west, c] + x[up, north, east, c] + x[up, south, west, c] + x[up, south, east, c]
                    corners += x[down, north, west, c] + x[down, north, east, c] + x[down, south, west, c] + x[down, south, east, c]
                    y[i, j, k, c] = center * x[i, j, k, c] + face * faces + edge * edges + corner * corners


@numba.njit(parallel=True, fastmath=True)
def chain(a, b, y):
    for i in numba.prange(a.size):
        y[i] = np.sqrt(np.abs((a[i] * b[i] + a[i]) - b[i]) * a[i])


@numba.njit(parallel=True, fastmath=True)
def exponential(x, y):
    for i in numba.prange(x.size):
        y[i] = np.exp(x[i])


@numba.njit
def exclusive_scan(x, y):
    total = np.uint32(0)
    for i in range(x.size):
        y[i] = total
        total += x[i]


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


@row("exclusive_scan", 1, "njit loop, one thread", types=["float32"])
def scan(shape):
    x = np.random.default_rng(1).integers(0, 2, shape.sizes, dtype=np.uint32)
    y = np.zeros_like(x)
    return lambda: exclusive_scan(x, y)


NETWORKS = {"n10k_s50": (10_000, 50), "n100k_s100": (100_000, 100), "n500k_s100": (500_000, 100), "n1m_s100": (1_000_000, 100)}


@numba.njit(parallel=True)
def deliver(fired, starts, targets, weights, sums):
    """Each thread adds what a part of the fired neurons sends to sums of its own: numba has no atomic additions on the CPU."""
    for thread in numba.prange(sums.shape[0]):
        own = sums[thread]
        for place in range(thread, fired.size, sums.shape[0]):
            neuron = fired[place]
            for synapse in range(starts[neuron], starts[neuron + 1]):
                own[targets[synapse]] += weights[synapse]


@numba.njit(parallel=True)
def merge(sums):
    for neuron in numba.prange(sums.shape[1]):
        for thread in range(1, sums.shape[0]):
            sums[0, neuron] += sums[thread, neuron]
            sums[thread, neuron] = 0


@numba.njit(parallel=True)
def integrate(potentials, sums, has_fired, threshold):
    for neuron in numba.prange(potentials.size):
        potential = potentials[neuron]
        for thread in range(sums.shape[0]):
            potential += sums[thread, neuron]
            sums[thread, neuron] = 0
        has_fired[neuron] = potential >= threshold
        potentials[neuron] = np.float32(0) if potential >= threshold else potential


def network(neurons, degree):
    """Rows of random targets, and sixteen patterns of one neuron in a hundred that is made to fire."""
    random = np.random.default_rng(1)
    targets = random.integers(0, neurons, neurons * degree, dtype=np.uint32)
    weights = random.choice(np.array([1, 2, 3, 4, -1], np.float32), neurons * degree)
    starts = np.arange(0, neurons * degree + 1, degree, dtype=np.int64)
    groups = np.arange(0, neurons, 100)
    patterns = [groups + random.integers(0, 100, groups.size) for _ in range(16)]
    return starts, targets, weights, patterns


for name, size in NETWORKS.items():

    @row("burst", 0, "njit(parallel=True): CSR rows of what fired with sums for each thread, injection, threshold and reset; numpy.flatnonzero", tail=name, types=["float32"])
    def burst(_shape, size=size):
        starts, targets, weights, patterns = network(*size)
        sums, potentials = np.zeros((numba.get_num_threads(), size[0]), np.float32), np.zeros(size[0], np.float32)
        has_fired = np.zeros(size[0], np.bool_)
        state = {"fired": patterns[0], "burst": 0}

        def step():
            state["burst"] += 1
            deliver(state["fired"], starts, targets, weights, sums)
            sums[0][patterns[state["burst"] % 16]] += 1500
            integrate(potentials, sums, has_fired, np.float32(1000))
            state["fired"] = np.flatnonzero(has_fired)

        return step

    @row("csr_scatter", 0, "njit(parallel=True): CSR rows of what fired, sums for each thread, merged", tail=name, types=["float32"])
    def csr_scatter(_shape, size=size):
        starts, targets, weights, patterns = network(*size)
        sums = np.zeros((numba.get_num_threads(), size[0]), np.float32)
        state = {"burst": 0}

        def step():
            state["burst"] += 1
            deliver(patterns[state["burst"] % 16], starts, targets, weights, sums)
            merge(sums)

        return step


def threads(count):
    numba.set_num_threads(count)
    return numba.get_num_threads()


serve(lambda _device: {"numba": numba.__version__, "numpy": np.__version__}, threads)
