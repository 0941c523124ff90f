"""
Morphologies as docs/genomes.md defines them: which voxels of a target box each voxel of a source box connects to.

Most are a product of one rule for each axis. A rule of an axis is a function of s, a column of all coordinates of the source, and t, a row of all coordinates of
the target; it returns a matrix that is true where the two are connected.
"""

import math
import re

import numpy as np

NO_VOXELS = np.empty(0, int), np.empty(0, int)
SAME_AXES = 0, 1, 2


def voxel_pairs(name, definitions, sizes, scalar):
    """Source and target voxels, by number within their box, of a morphology that connects voxels."""
    n, m = sizes
    definition = definitions.get(name) or {"type": "functions"}
    parameters = definition.get("parameters")
    if definition["type"] == "vectors":
        products = [(vector_rules(vector, scalar), SAME_AXES) for vector in parameters["vectors"]]
    elif definition["type"] == "patterns":
        products = [(pattern_rules(pattern), SAME_AXES) for pattern in parameters["patterns"]]
    elif definition["type"] == "composite":
        products = [(composite_rules(parameters, n, m), SAME_AXES)]
    elif name not in FUNCTIONS or name in definitions and name in ONLY_UNDEFINED:
        products = []  # a function without a known definition: a warning and no synapses
    elif name in WHOLE:
        return distinct([WHOLE[name](n, m)])
    else:
        products = [function_rules(name, n, m, scalar)]
    return distinct([joined(rules, order, n, m) for rules, order in products])


def distinct(parts):
    """Each pair once."""
    pairs = np.concatenate([np.stack(part, axis=1) for part in [NO_VOXELS, *parts]])
    return np.unique(pairs.astype(np.int64), axis=0).T


def voxel(coordinates, size):
    """The number of a voxel in its box: x slowest, z fastest."""
    x, y, z = coordinates
    return (x * size[1] + y) * size[2] + z


def joined(rules, order, n, m):
    """The product of the rules of three axes; axis k of the target belongs to axis order[k] of the source."""
    sources, targets = [None] * 3, [None] * 3
    for axis, rule in enumerate(rules):
        s, t = np.arange(n[order[axis]])[:, None], np.arange(m[axis])[None, :]
        matrix = np.broadcast_to(rule(s, t), (s.size, t.size))
        shape = [1, 1, 1]
        shape[axis] = -1
        sources[order[axis]], targets[axis] = (side.reshape(shape) for side in np.nonzero(matrix))
    pairs = np.broadcast_arrays(voxel(sources, n), voxel(targets, m))
    return tuple(side.ravel() for side in pairs)


def vector_rules(vector, scalar):
    steps = np.trunc(np.asarray(vector, float) * scalar).astype(int)
    return [lambda s, t, step=step: t == s + step for step in steps]


def pattern_rules(pattern):
    return [lambda s, t, a=a, b=b: matches_source(a, s) & matches_target(b, s, t) for a, b in zip(*pattern)]


def matches_source(element, s):
    if isinstance(element, str) and ".." in element:
        low, high = map(int, element.split(".."))
        return (low <= s) & (s <= high)
    return s == element if isinstance(element, (int, float)) else s >= 0


def matches_target(element, s, t):
    if not isinstance(element, str):
        return t == element
    simple = {"*": t >= 0, "?": t == s, "!": t != s, "?+": t > s, "?-": t < s, "?+=": t >= s, "?-=": t <= s}
    if element in simple:
        return simple[element]
    if parts := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", element):
        return (int(parts[1]) <= t) & (t <= int(parts[2]))
    if parts := re.fullmatch(r"\?-(\d+):\?\+(\d+)", element):
        return (s - int(parts[1]) <= t) & (t <= s + int(parts[2]))
    return t == s + int(element[1:])


def projector(n, m):
    return lambda s, t: t == s * m // n if n >= m else t * n // m == s


def composite_rules(parameters, n, m):
    rules = []
    for axis, (seed, (selected, skipped)) in enumerate(zip(parameters["src_seed"], parameters["src_pattern"])):
        project, whole = projector(seed, m[axis]), n[axis] // seed

        def rule(s, t, seed=seed, period=(selected, selected + skipped), project=project, whole=whole):
            block = s // seed
            return (block < whole) & (block % period[1] < period[0]) & project(s % seed, t)

        rules.append(rule)
    return rules


def digit(value, width, place):
    """Whether the binary form of `width` digits has a 1 at the place, counted from the left."""
    return (place < width) & ((value >> np.clip(width - 1 - place, 0, 40)) & 1 == 1)


def digits(value):
    """Digits of the binary form; 0 has one."""
    return np.vectorize(lambda number: max(int(number).bit_length(), 1))(value)


def same(s, t):
    return s == t


def zero(s, t):
    return (t == 0) & (s >= 0)


def function_rules(name, n, m, scalar):
    """The rules of a function on the three axes, and the order of the source's axes."""
    if name == "block_to_block":
        return vector_rules([0, 0, 0], scalar), SAME_AXES
    if parts := re.fullmatch(r"lateral_([+-])([xyz])", name):
        return vector_rules([int(parts[1] + "1") * (axis == parts[2]) for axis in "xyz"], scalar), SAME_AXES
    if name in PATTERNS:
        return pattern_rules(PATTERNS[name]), SAME_AXES
    if name.startswith(("projector_", "transpose_")):
        order = {"xy": (1, 0, 2), "yz": (0, 2, 1), "xz": (2, 1, 0)}[name[-2:]]
        return [projector(n[order[axis]], m[axis]) for axis in range(3)], order
    rule, axis = ("block_connection", "x") if name == "block_connection" else (name[:-2], name[-1])
    if rule in ON_ONE_AXIS:
        special, others = ON_ONE_AXIS[rule]
        own = "xyz".index(axis)
        return [(special if axis == own else others)(n[axis], m[axis]) for axis in range(3)], SAME_AXES
    tile = tile_down if np.prod(n) > np.prod(m) else tile_up
    rule = tile if name == "tile" else ON_EACH_AXIS[name]
    return [rule(n[axis], m[axis]) for axis in range(3)], SAME_AXES


PATTERNS = {
    "all_to_0-0-0": (["*"] * 3, [0] * 3),
    "0-0-0_to_all": ([0] * 3, ["*"] * 3),
    "all_to_all": (["*"] * 3, ["*"] * 3),
}


def tile_down(n, m):
    return lambda s, t: t == s % m


def tile_up(n, m):
    return lambda s, t: t % n == s


ON_EACH_AXIS = {
    "projector": projector,
    "expander": lambda n, m: lambda s, t: t == np.minimum(s * m // n, m - 1),
}

# Rules of the axis in the name, and of the other two.
ON_ONE_AXIS = {
    "project_from_end": (lambda n, m: lambda s, t: (s == n - 1) & (t == 0), projector),
    "expander": (lambda n, m: lambda s, t: digit(t, m.bit_length(), s), lambda n, m: zero),
    "reducer": (lambda n, m: lambda s, t: digit(s, np.maximum(m, digits(s)), t), lambda n, m: zero),
    "bitmask_encoder": (lambda n, m: lambda s, t: digit(t, n, s), lambda n, m: lambda s, t: t == np.minimum(s, m - 1)),
    "bitmask_decoder": (lambda n, m: lambda s, t: digit(s, m, t), lambda n, m: lambda s, t: t == np.minimum(s, m - 1)),
    "lateral_pairs": (
        lambda n, m: lambda s, t: np.where(s % 2 == 0, (t == s + 1) & (s < n - 1), t == s - 1),
        lambda n, m: same,
    ),
    "block_connection": (lambda n, m: lambda s, t: t == s // 10, lambda n, m: same),
}


def one_pair(source, target):
    return np.array([source]), np.array([target])


def sweeper(n, m):
    s = np.stack(np.unravel_index(np.arange(np.prod(n)), n))
    x, y, z = np.minimum(s, np.array(m)[:, None] - 1)
    following = (z * m[1] + y) * m[0] + x + 1
    kept = following < np.prod(m)
    after = following[kept]
    target = after % m[0], after // m[0] % m[1], after // (m[0] * m[1])
    return np.flatnonzero(kept), voxel(target, m)


def half_away(numbers):
    """The nearest integers, halves away from 0; adding 0.5 first would round the float below 0.5 up."""
    whole = np.trunc(numbers)
    return whole + np.copysign(np.abs(numbers - whole) >= 0.5, numbers)


def sine_and_cosine(angle):
    """The first 24 terms of the two series, summed from the last to the first."""
    terms = [1.0]
    for k in range(1, 24):
        terms.append(terms[-1] * angle / k)
    signed = [term if k % 4 < 2 else -term for k, term in enumerate(terms)]
    return sum(signed[23::-2]), sum(signed[22::-2])


def rotator_z(n, m):
    """Each layer of the target shows x and y of the source, rotated about the centre."""
    extent = [max(size - 1, 1) for size in (*n[:2], *m[:2])]
    x, y, z = np.unravel_index(np.arange(np.prod(n)), n)
    cx, cy = extent[2] / 2, extent[3] / 2
    dx, dy = x / extent[0] * extent[2] - cx, y / extent[1] * extent[3] - cy
    parts = []
    for layer in range(m[2]):
        degrees = -90 + 180 * (layer / (m[2] - 1)) if m[2] > 1 else 0.0
        sine, cosine = sine_and_cosine(degrees * math.pi / 180)
        tx, ty = (half_away(t) for t in (cx + cosine * dx + sine * dy, cy - sine * dx + cosine * dy))
        inside = (tx >= 0) & (tx < m[0]) & (ty >= 0) & (ty < m[1])
        target = voxel((tx[inside].astype(int), ty[inside].astype(int), layer), m)
        parts.append((np.flatnonzero(inside), target))
    return tuple(np.concatenate(side) for side in zip(*parts))


WHOLE = {
    "last_to_first": lambda n, m: one_pair(np.prod(n) - 1, 0),
    "first_to_last": lambda n, m: one_pair(0, np.prod(m) - 1),
    "sweeper": sweeper,
    "rotator_z": rotator_z,
}
# Functions that a file which defines their name replaces, whatever the type.
ONLY_UNDEFINED = [*(f"lateral_{sign}{axis}" for sign in "+-" for axis in "xyz"), *PATTERNS]
FUNCTIONS = [
    "block_to_block",
    *ONLY_UNDEFINED,
    "projector",
    *(f"{kind}_{axes}" for kind in ("projector", "transpose") for axes in ("xy", "yz", "xz")),
    *(f"project_from_end_{axis}" for axis in "xyz"),
    "expander",
    "expander_x",
    "reducer_x",
    *(f"bitmask_{kind}_{axis}" for kind in ("encoder", "decoder") for axis in "xyz"),
    "lateral_pairs_x",
    "block_connection",
    "tile",
    *WHOLE,
    "randomizer",
]
