"""
Areas and mappings of a genome as docs/genomes.md defines them, for the engine in numpy_spiking.py.

Reads valid genomes in every form of the page. What the page refuses as malformed is not checked here.
"""

import base64
import re

import numpy as np

# Property: code in flat blueprints, keys in hierarchical ones, value if it is missing.
PROPERTIES = {
    "group": ("_group", "group_id cortical_group cortical_type", "CUSTOM"),
    "subgroup": ("subgrp", "sub_group_id cortical_sub_group", ""),
    "size": ("___bb?", "block_boundaries cortical_dimensions dimensions", None),
    "per_voxel": ("_n_cnt", "per_voxel_neuron_cnt cortical_neuron_per_vox_count neurons_per_voxel", 1),
    "threshold": ("fire_t", "firing_threshold neuron_fire_threshold", 1),
    "increment": ("ftinc?", "firing_threshold_increment neuron_fire_threshold_increment", 0),
    "limit": ("fthlim", "firing_threshold_limit neuron_firing_threshold_limit", 0),
    "leak": ("leak_c", "leak_coefficient neuron_leak_coefficient", 0),
    "leak_variability": ("leak_v", "leak_variability neuron_leak_variability", 0),
    "refractory": ("refrac", "refractory_period neuron_refractory_period", 0),
    "excitability": ("excite", "neuron_excitability", None),
    "consecutive": (
        "c_fr_c",
        "consecutive_fire_cnt_max consecutive_fire_count consecutive_fire_limit neuron_consecutive_fire_count",
        0,
    ),
    "snooze": ("snooze", "snooze_length snooze_period neuron_snooze_period", 0),
    "accumulates": ("mp_acc", "mp_charge_accumulation neuron_mp_charge_accumulation", False),
    "uniform": ("pspuni", "psp_uniform_distribution neuron_psp_uniform_distribution", None),
    "driven": ("mp_psp", "mp_driven_psp neuron_mp_driven_psp", False),
    "current": ("pstcr_", "postsynaptic_current neuron_post_synaptic_potential", 1),
    "attractivity": ("synatt", "synapse_attractivity cortical_synaptic_attractivity", 100),
    "memory": ("memory", "is_mem_type", False),
    "depth": ("tmpdpt", "temporal_depth", 3),
    "lifespan": ("mem_ls", "init_lifespan neuron_init_lifespan", 20),
    "growth": ("mem_gr", "lifespan_growth_rate neuron_lifespan_growth_rate", 3),
    "longterm": ("mem__t", "longterm_mem_threshold neuron_longterm_mem_threshold", 100),
    "mappings": ("dstmap", "cortical_mapping_dst cortical_destinations", {}),
}

CORE = {
    spelling: number
    for number, spellings in enumerate(
        [
            "_death ___death",
            "_power ___power ___pwr ___pwr__",
            "_fatig _fatigue ___fatig",
            "_pain ___pain_",
            "_pleasure ___pleas",
            "_fear ___fear_",
            "_hope ___hope_",
        ]
    )
    for spelling in spellings.split()
}
POWER = CORE["_power"]

ASSOCIATIVE = ("associative_memory", "bidirectional_stdp")
REMEMBERS = ("memory", "episodic_memory")


class Area:
    """An area with its properties as attributes, and the number of its first neuron."""

    def __init__(self, identity, properties):
        self.core = CORE.get(identity)
        self.first = 0
        self.__dict__.update(properties)
        texts = str(self.group).upper(), str(self.subgroup).upper()
        self.is_memory = bool(self.memory) or "MEMORY" in texts
        if self.uniform is None:
            self.uniform = self.core == POWER or self.is_memory
        self.is_input = self.core is None and not self.is_memory and texts[0] == "IPU"
        self.size = [int(voxels) for voxels in self.size]
        self.per_voxel = int(self.per_voxel)
        self.count = int(np.prod(self.size)) * self.per_voxel

    @property
    def neurons(self):
        return np.arange(self.first, self.first + self.count)

    def thresholds(self):
        """The threshold of each neuron: the sum in 64-bit floats, rounded once to 32 bits."""
        x, y, z = np.meshgrid(*(np.arange(voxels) for voxels in self.size), indexing="ij")
        ix, iy, iz = (np.float64(np.float32(step)) for step in self.increment)
        voxels = np.float64(np.float32(self.threshold)) + x * ix + y * iy + z * iz
        return np.repeat(voxels.ravel().astype(np.float32), self.per_voxel)


class Mapping:
    """A rule between two areas; `number` counts all rules of a genome."""

    def __init__(self, number, source, target, rule, physiology):
        self.number, self.source, self.target = number, source, target
        if isinstance(rule, dict):
            order = "morphology_id morphology_scalar postSynapticCurrent_multiplier plasticity_flag"
            order += " plasticity_constant ltp_multiplier ltd_multiplier plasticity_window"
            parts = [rule.get(key) for key in order.split()]
        else:
            parts = (list(rule) + [None] * 8)[:8]
        self.morphology, scalar, multiplier, self.plastic = parts[:4]
        scalar = np.atleast_1d(1 if scalar is None else scalar).astype(float)
        self.scalar = np.broadcast_to(scalar, 3)
        self.weight, self.inhibitory = abs(int(multiplier)), multiplier < 0
        chance = rule.get("synapse_attractivity") if isinstance(rule, dict) else None
        self.attractivity = target.attractivity if chance is None else chance
        constant, gain, loss = (np.float32(part or 0) for part in parts[4:7])
        window = int(parts[7] or 0) or int(physiology.get("plasticity_queue_depth", 3))
        self.rule = max(window, 1), product(constant, gain), product(constant, loss)


def product(constant, multiplier):
    """A gain or a loss: the product in 32 bits, rounded to the nearest integer from 0 to 255, halves up."""
    return int(np.clip(np.floor(np.float64(constant * multiplier) + 0.5), 0, 255))


def read_genome(genome):
    """Areas in the order of their neurons, with units converted, and mappings in their order."""
    entries = {}
    for identity, properties in blueprint_entries(genome["blueprint"]):
        entries.setdefault(canonical(identity), {}).update(properties)
    areas = {}
    for identity in sorted(entries, key=lambda identity: CORE.get(identity, len(CORE))):
        areas[identity] = Area(identity, complete(entries[identity]))
    first = 0
    for area in areas.values():
        area.first, first = first, first + area.count
    convert_units(list(areas.values()))
    physiology = genome.get("physiology", {})
    rules = [
        (area, areas[canonical(destination)], rule)
        for area in areas.values()
        for destination, rules in area.mappings.items()
        for rule in rules
    ]
    return list(areas.values()), [Mapping(number, *rule, physiology) for number, rule in enumerate(rules)]


def canonical(identity):
    """One text for all spellings of an area's id: eight characters, or the first spelling of a core area."""
    if len(identity) == 12:
        identity = base64.b64decode(identity).decode("latin1")
    number = CORE.get(identity)
    if number is not None:
        return next(spelling for spelling, core in CORE.items() if core == number)
    return identity + "__" if len(identity) == 6 else identity


def blueprint_entries(blueprint):
    """Ids with properties by code or key, in the order of the file."""
    for key, value in blueprint.items():
        if isinstance(value, dict) and not key.startswith("_____10c-"):
            yield key, value
        elif parts := re.fullmatch(r"_____10c-(.+)-[cn]x-(.{6})-.", key):
            yield parts[1], {parts[2]: value}


def complete(entries):
    """Every property of an area from its codes or keys."""
    properties = {}
    for name, (code, keys, missing) in PROPERTIES.items():
        if code.endswith("?"):
            properties[name] = triple(entries, code, keys.split(), missing)
        else:
            values = [entries[key] for key in [code, *keys.split()] if key in entries]
            properties[name] = values[0] if values else missing
    return properties


def triple(entries, code, keys, missing):
    """Three numbers: an array, an object, or a property for each axis."""
    for key in keys:
        value = entries.get(key)
        if isinstance(value, dict):
            return [value[axis] for axis in ("xyz" if "x" in value else ("width", "height", "depth"))]
        if value is not None:
            return value
    by_axis = [[code[:-1] + axis, *(f"{key}_{axis}" for key in keys)] for axis in "xyz"]
    return [next((entries[key] for key in axis if key in entries), missing) for axis in by_axis]


def convert_units(areas):
    """Leak, excitability and current of all areas, from legacy units if any area has them."""
    leaks = any(area.leak > 1 or area.leak_variability > 1 for area in areas)
    percents = any(area.excitability is not None and area.excitability > 1 for area in areas)
    currents = any(area.current > 255 or area.current != int(area.current) for area in areas)
    for area in areas:
        if leaks:
            area.leak = legacy_leak(area.leak, area.threshold)
        if area.excitability is None:
            area.excitability = 1.0
        elif percents:
            area.excitability = area.excitability / 100
        area.current = min(255, int(area.current)) if currents else int(area.current)


def legacy_leak(amount, threshold):
    """The fraction for an amount that is lost in each burst."""
    if threshold > 0:
        return min(1.0, amount / threshold)
    return 1.0 if amount > 0 else 0.0
