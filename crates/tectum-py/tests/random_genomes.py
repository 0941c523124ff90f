"""
Small random genomes with every feature that docs/genomes.md defines, valid by construction.
"""

import base64
import math

from numpy_genome import ASSOCIATIVE, PROPERTIES, REMEMBERS
from numpy_morphologies import FUNCTIONS

CUSTOM = ["vectors", "patterns", "composite"]
MORPHOLOGIES = [*FUNCTIONS, *CUSTOM]
MAX_NEURONS = 100  # of an area
ENDINGS = "iftbd"


def random_genome(random, case):
    """A genome; case k has the k-th morphology, so that all occur in as many cases as there are."""
    areas = random_areas(random)
    definitions = {f"{kind}{index}": random_definition(random, kind) for kind in CUSTOM for index in range(2)}
    definitions["without a definition"] = {"type": "functions", "parameters": {}}
    for name in random.sample(FUNCTIONS, 2):  # the file's definition has precedence
        definitions[name] = random_definition(random, random.choice([*CUSTOM, "functions"]))
    add_mappings(random, areas, definitions, MORPHOLOGIES[case % len(MORPHOLOGIES)])
    physiology = {random.choice(["simulation_timestep", "burst_delay"]): 0.01}
    if random.random() < 0.5:
        physiology["plasticity_queue_depth"] = random.choice([0, 1, 2, 4])
    flat = random.random() < 0.5
    blueprint = flat_blueprint(random, areas) if flat else {name: keyed(random, area) for name, area in areas.items()}
    return {
        "version": "2.0" if flat else "2.1",
        "genome_title": f"random {case}",
        "physiology": physiology,
        "neuron_morphologies": definitions,
        "blueprint": blueprint,
    }


def random_areas(random):
    """Areas by id, each with its properties by their names in PROPERTIES; memory areas get patterns later."""
    names = ["i__eye", *random.sample(["c__one", "c__two", "c__thr", "o__arm", "i__ear", "c__four__"[:8]], random.randint(1, 3))]
    if random.random() < 0.5:
        names.append(random.choice(["___pwr", "_power"]))
    if random.random() < 0.2:
        names.append(random.choice(["_pain", "_fatig", "_death"]))
    names += ["m__one", "m__two"][: random.choice([0, 0, 1, 1, 2])]
    random.shuffle(names)
    legacy = {name: random.random() < 0.15 for name in ("leak", "excitability", "current")}
    areas = {name: random_area(random, name, legacy) for name in names}
    if random.random() < 0.3:
        encoded = base64.b64encode(b"c__long_").decode()
        areas[encoded] = random_area(random, "c__long_", legacy)
    return areas


def random_area(random, name, legacy):
    per_voxel = random.choice([1, 1, 1, 2, 3])
    size = [random.choice([1, 1, 2, 3, 4, 5, 8, 11]) for _ in range(3)]
    while math.prod(size) * per_voxel > MAX_NEURONS:
        size[size.index(max(size))] //= 2
    area = {"size": size, "accumulates": random.random() < 0.8, "per_voxel": per_voxel}
    area["group"] = {"i": "IPU", "o": "OPU", "_": "CORE"}.get(name[0], random.choice(["CUSTOM", "custom"]))
    if name[0] == "m":
        area |= random.choice([{"memory": True}, {"group": "MEMORY"}, {"subgroup": "memory"}])
    area["threshold"] = random.choice([0, 0.3, 0.3, 1, 1, 1.0, 2.5, 2.5, 5, 13.7])
    if random.random() < 0.06:
        area["threshold"] = random.choice([70000, 3e6, 1e9])
    choices = {
        "increment": [random.choice([0, -3e8]) if random.random() < 0.03 else round(random.uniform(-1, 2), 2) for _ in range(3)],
        "limit": random.choice([0, 3.25, 20, 300, 300]),
        "leak": random.choice([0.05, 0.1, 0.5, 1]),
        "leak_variability": random.choice([0, 0.5]),
        "refractory": random.choice([0, 1, 2, 3]),
        "excitability": random.choice([0, 0.2, 0.7, 0.7, 0.9985, 0.9985, 0.999, 1]),
        "consecutive": random.choice([0, 1, 2, 3, 65535]),
        "snooze": random.choice([0, 1, 3]),
        "uniform": random.random() < 0.5,
        "driven": random.random() < 0.4,
        "current": random.choice([0, 1, 3, 3, 10, 255, 255]),
        "attractivity": random.choice([0, 12.5, 50, 50, 99.9, 99.9]),
        "depth": random.choice([1, 2, 4]),
        "lifespan": random.choice([1, 3, 3, 9]),
        "growth": random.choice([0, 1, 2.7, 10]),
        "longterm": random.choice([0, 3, 3, 9, 9, 12]),
    }
    area |= {key: value for key, value in choices.items() if random.random() < 0.45}
    amounts = {"leak": [0.4, 3, 10], "excitability": [30, 90, 100], "current": [2.6, 7, 500]}
    area |= {key: random.choice(amounts[key]) for key in legacy if legacy[key] and random.random() < 0.8}
    if name == "i__eye":  # something fires in most genomes
        area |= {"threshold": random.choice([0.3, 1]), "accumulates": True, "excitability": 90 if legacy["excitability"] else 0.9}
    return area


def random_definition(random, kind):
    if kind == "functions":
        return {"type": kind, "parameters": {}}
    if kind == "vectors":
        vectors = [[random.randint(-2, 2) for _ in range(3)] for _ in range(random.randint(1, 3))]
        return {"type": kind, "parameters": {"vectors": vectors}}
    if kind == "patterns":
        pairs = [[[random_element(random, side) for _ in range(3)] for side in range(2)] for _ in range(random.randint(1, 3))]
        return {"type": kind, "parameters": {"patterns": pairs}}
    seed = [random.randint(1, 3) for _ in range(3)]
    pattern = [[random.randint(1, 2), random.randint(0, 2)] for _ in range(3)]
    parameters = {"src_seed": seed, "src_pattern": pattern, "mapper_morphology": "projector"}
    return {"type": kind, "parameters": parameters}


def random_element(random, side):
    low = random.randint(0, 2)
    elements = ["*", "?", "!", low, f"{low}..{low + random.randint(0, 3)}", "?+", "?-", "?+=", "?-=", f"?+{low}", f"?-{low}"]
    return random.choice([*elements, f"?-{low}:?+{random.randint(0, 2)}"] if side else ["*", "*", *elements])


def add_mappings(random, areas, definitions, first):
    """Mappings of all areas: the first input area has the morphology `first`, each memory area gets patterns mostly."""
    choices = [*FUNCTIONS, *definitions, *definitions, "memory_replay"]
    named = first if first in FUNCTIONS else random.choice([name for name in definitions if name.startswith(first)])
    mappings = [("i__eye", random.choice(list(areas)), named)]
    mappings += [(source, random.choice(list(areas)), random.choice(choices)) for source in areas for _ in range(random.randint(0, 3))]
    for name in areas:
        if name.startswith("m__") and random.random() < 0.85:
            mappings += [(random.choice(list(areas)), name, random.choice(REMEMBERS)) for _ in range(random.randint(1, 2))]
    if random.random() < 0.7:
        partners = ["i__eye", "i__eye", *(name for name in areas if name.startswith("m__")), random.choice(list(areas))]
        mappings += [(*random.choices(partners, k=2), random.choice(ASSOCIATIVE)) for _ in range(random.randint(1, 2))]
    random.shuffle(mappings)
    for source, destination, morphology in mappings:
        rules = areas[source].setdefault("mappings", {}).setdefault(destination, [])
        rules.append(random_rule(random, morphology))


def random_rule(random, morphology):
    associative = morphology in ASSOCIATIVE
    plastic = random.random() < 0.4
    multiplier = random.choice([-255, -20, -1, 0, 1, 1.0, 2, 5, 5, 40, 255])
    scalar = random.choice([1, 2, -1, 0.5, [1, 1, 1], [2], [1, 2, 0.4]])
    parts = [morphology, scalar, multiplier, plastic]
    if plastic or associative:
        parts += [random.choice([1, 1, 2.5, 0.4, 0.9, 2.1, 1000, -1]), random.choice([0, 1, 5, 15, 30, 30]), random.choice([0, 1, 1, 7])]
        if random.random() < 0.7:
            parts.append(random.choice([0, 1, 1, 2, 3]))
    if random.random() < 0.5:
        return parts
    keys = "morphology_id morphology_scalar postSynapticCurrent_multiplier plasticity_flag"
    keys += " plasticity_constant ltp_multiplier ltd_multiplier plasticity_window"
    rule = dict(zip(keys.split(), parts))
    if random.random() < 0.5:
        rule["synapse_attractivity"] = random.choice([0, 20, 33.3, 99.99, 100])
    return rule


def flat_blueprint(random, areas):
    """A key for each property and axis."""
    blueprint = {}
    for name, area in areas.items():
        for key, value in area.items():
            code = PROPERTIES[key][0]
            by_axis = zip("xyz", value) if code.endswith("?") else [("", value)]
            for axis, number in by_axis:
                block, ending = random.choice("cn"), random.choice(ENDINGS)
                blueprint[f"_____10c-{name}-{block}x-{code.rstrip('?')}{axis}-{ending}"] = number
    return blueprint


def keyed(random, area):
    """The properties of an area in an object, each under one of its keys."""
    entries = {}
    for key, value in area.items():
        name = random.choice(PROPERTIES[key][1].split())
        if isinstance(value, list) and random.random() < 0.3:
            value = dict(zip(random.choice([["x", "y", "z"], ["width", "height", "depth"]]), value))
        entries[name] = value
    return entries
