"""
A spiking engine in NumPy, written from docs/spiking.md and docs/genomes.md alone.

The tests compare the package with it: what they agree on, the two pages define. It is slow and simple: every burst updates every neuron.
"""

import numpy as np

from numpy_genome import ASSOCIATIVE, POWER, REMEMBERS, read_genome
from numpy_morphologies import voxel_pairs

u32, u64 = np.uint32, np.uint64

CLAMP = 2**30 - 1
MAX_BOUND = 2**29  # units of potential, for thresholds and limits that count
MAX_INJECTED = 1024  # units of potential, into a neuron in a burst
NEVER = 2**31  # a threshold or limit that no potential reaches
FIXED = -1  # in place of a learning rule


# Hashes: the text of docs/spiking.md.


def scramble(x):  # the finaliser of MurmurHash3
    x = (x ^ (x >> u32(16))) * u32(0x85EBCA6B)
    x = (x ^ (x >> u32(13))) * u32(0xC2B2AE35)
    return x ^ (x >> u32(16))


def draw(seed, neuron, burst):
    m = (neuron + seed) * u32(2654435761) + burst * u32(1597334677)
    s = m * u32(747796405) + u32(2891336453)
    w = ((s >> ((s >> u32(28)) + u32(4))) ^ s) * u32(277803737)
    return (w >> u32(22)) ^ w


def spike_words(neuron, burst):
    first = scramble(neuron ^ scramble(burst ^ u32(0x9E3779B9)))
    return first, scramble(first ^ (neuron * u32(0x85EBCA6B)) ^ u32(0x27D4EB2F))


def mix64(z):  # the finaliser of SplitMix64
    z = (z ^ (z >> u64(30))) * u64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> u64(27))) * u64(0x94D049BB133111EB)
    return z ^ (z >> u64(31))


def draw64(seed, stream, counter):
    golden = u64(0x9E3779B97F4A7C15)
    return mix64(mix64(mix64(seed + golden) ^ (stream * golden)) ^ counter)


class Refused(ValueError):
    """The pages refuse this network."""


class Memory:
    """The patterns of a memory area, each with a neuron."""

    def __init__(self, area, neurons):
        self.neurons, self.upstream = neurons, []
        self.depth = int(area.depth)
        self.initial, self.growth, self.longterm = int(area.lifespan), int(area.growth), int(area.longterm)
        if self.initial < 1:
            raise Refused("a first lifespan of 0")
        self.alive = np.zeros(neurons.size, bool)
        self.permanent = np.zeros(neurons.size, bool)
        self.lifespan = np.zeros(neurons.size, np.int64)
        self.patterns = {}
        self.lost = 0

    def burst(self, pattern):
        """Ages the neurons; the place of the neuron that fires for the pattern or None, and whether it takes it."""
        aging = self.alive & ~self.permanent
        ripe = aging & (self.lifespan >= self.longterm)
        self.permanent |= ripe
        self.lifespan[aging & ~ripe] -= 1
        freed = aging & ~ripe & (self.lifespan <= 0)
        self.alive &= ~freed
        self.patterns = {key: place for key, place in self.patterns.items() if not freed[place]}
        if pattern is None:
            return None, False
        place = self.patterns.get(pattern)
        if place is not None:
            if not self.permanent[place]:
                self.lifespan[place] += self.growth
            return place, False
        free = np.flatnonzero(~self.alive)
        if not free.size:
            self.lost += 1
            return None, False
        place = free[0]
        self.alive[place], self.permanent[place], self.lifespan[place] = True, False, self.initial
        self.patterns[pattern] = place
        return place, True


class Network:
    """The neurons, synapses and memories of a genome, as integers and 32-bit floats."""

    def __init__(self, genome, seed=0, learns=True, memory_neurons=1024, weight_loss="detect"):
        self.areas, self.mappings = read_genome(genome)
        self.definitions = genome.get("neuron_morphologies", {})
        self.seed, self.seed64, self.learns = seed, np.array([seed], u64), learns
        self.weight_loss = weight_loss_of(genome) if weight_loss == "detect" else weight_loss
        self.area_neurons = sum(area.count for area in self.areas)
        self.place_memories(memory_neurons)
        self.place_neurons()
        parts = [self.synapses_of(mapping) for mapping in self.mappings] + self.grown_synapses()
        rules = sorted({rule for *_, rule in parts if rule is not None})
        if len(rules) > 16 or any(window > 256 for window, _, _ in rules):
            raise Refused("learning rules")
        self.rules = rules
        columns = [
            (source, target, *(np.full(source.size, value) for value in (weight, sign, number(rules, rule))))
            for source, target, weight, sign, rule in parts
        ]
        empty = [np.empty(0, np.int64)] * 5
        self.source, self.target, self.weight, self.sign, self.rule = (
            np.concatenate(column).astype(np.int64) for column in zip(empty, *columns)
        )
        shares = (self.rule == FIXED) | (self.weight != 0)
        self.shares = np.bincount(self.source[shares], minlength=self.count)

    def place_memories(self, memory_neurons):
        """The memory of each memory area that receives patterns, and the neurons that it stores."""
        self.memories, self.count = {}, self.area_neurons
        receiving = [mapping for mapping in self.mappings if mapping.morphology in REMEMBERS and self.is_function(mapping)]
        for area in self.areas:
            if area.is_memory and any(mapping.target is area for mapping in receiving):
                self.memories[area] = Memory(area, self.count + np.arange(memory_neurons))
                self.count += memory_neurons
        for mapping in receiving:
            if mapping.target in self.memories:
                self.memories[mapping.target].upstream.append(self.remembered(mapping.source))
        for memory in self.memories.values():
            memory.upstream = np.unique(np.concatenate(memory.upstream))

    def is_function(self, mapping):
        return self.definitions.get(mapping.morphology, {"type": "functions"})["type"] == "functions"

    def remembered(self, area):
        """The neurons of the area's memory if it has one, else its own."""
        return self.memories[area].neurons if area in self.memories else area.neurons

    def place_neurons(self):
        """One number for each neuron and property."""
        blocks = [(area, area.count, area.thresholds()) for area in self.areas]
        blocks += [(area, memory.neurons.size, area.thresholds()[:1]) for area, memory in self.memories.items()]

        def column(kind, value):
            return np.concatenate([np.broadcast_to(np.asarray(value(area), kind), count) for area, count, _ in blocks])

        self.threshold = np.concatenate([np.broadcast_to(block[2], block[1]) for block in blocks])
        self.limit = column(np.float32, lambda area: area.limit)
        self.limit[self.limit == 0] = np.inf
        self.leak = column(np.float32, lambda area: area.leak)
        self.excitability = column(np.float32, lambda area: area.excitability)
        self.refractory = column(np.int64, lambda area: area.refractory)
        self.consecutive = column(np.int64, lambda area: area.consecutive)
        self.consecutive[self.consecutive == 65535] = 0
        self.snooze = column(np.int64, lambda area: area.snooze)
        self.accumulates = column(bool, lambda area: area.accumulates)
        self.psp = column(np.int64, lambda area: area.current)
        self.uniform = column(bool, lambda area: area.uniform)
        self.driven = column(bool, lambda area: area.driven)
        self.inputs = column(bool, lambda area: area.is_input)
        self.inputs[self.area_neurons :] = False
        self.power = column(bool, lambda area: area.core == POWER)

    def synapses_of(self, mapping):
        """Source, target, weight, sign and rule of a mapping with target voxels."""
        rule = mapping.rule if mapping.plastic and self.learns and any(mapping.rule[1:]) else None
        source, target = self.pairs(mapping)
        if mapping.source in self.memories:
            of_first = target[source == mapping.source.first]
            neurons = self.memories[mapping.source].neurons
            source = np.concatenate([source, np.repeat(neurons, of_first.size)])
            target = np.concatenate([target, np.tile(of_first, neurons.size)])
        return source, target, mapping.weight, -1 if mapping.inhibitory else 1, rule

    def pairs(self, mapping):
        """Source and target neurons of a mapping, those that exist by chance included."""
        if self.is_function(mapping) and mapping.morphology in (*REMEMBERS, *ASSOCIATIVE, "memory_replay"):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        a, b = mapping.source, mapping.target
        if self.is_function(mapping) and mapping.morphology == "randomizer":
            source, voxels = a.neurons, self.random_voxels(mapping)
        else:
            voxel, voxels = voxel_pairs(mapping.morphology, self.definitions, (a.size, b.size), mapping.scalar)
            source = (a.first + voxel[:, None] * a.per_voxel + np.arange(a.per_voxel)).ravel()
            voxels = np.repeat(voxels, a.per_voxel)
        target = (b.first + voxels[:, None] * b.per_voxel + np.arange(b.per_voxel)).ravel()
        source = np.repeat(source, b.per_voxel)
        bound = int(np.floor(np.float64(np.float32(mapping.attractivity)) / 100 * 2**32 + 0.5))
        if mapping.attractivity < 100:
            counter = source.astype(u64) * u64(2**32) + target.astype(u64)
            kept = (draw64(self.seed64, u64([2 * mapping.number]), counter) >> u64(32)) < bound
            source, target = source[kept], target[kept]
        return source, target

    def random_voxels(self, mapping):
        """The voxel that `randomizer` gives each neuron of the source."""
        start = draw64(self.seed64, u64([2 * mapping.number + 1]), mapping.source.neurons.astype(u64))
        size = mapping.target.size
        x, y, z = (((mix64(start + u64(k)) >> u64(32)) * u64(size[k]) >> u64(32)).astype(np.int64) for k in range(3))
        return (x * size[1] + y) * size[2] + z

    def grown_synapses(self):
        """Synapses of weight 0 of associative mappings: to the destination, and back unless another one leads back."""
        parts, first = [], {}
        for mapping in self.mappings:
            if self.learns and mapping.morphology in ASSOCIATIVE and self.is_function(mapping):
                first.setdefault((mapping.source, mapping.target), mapping)
        for (one, other), mapping in first.items():
            if mapping.rule[1] == 0:
                continue
            a, b = self.remembered(one), self.remembered(other)
            source, target = np.repeat(a, b.size), np.tile(b, a.size)
            if one is other:
                source, target = source[source != target], target[source != target]
            elif (other, one) not in first:
                source, target = np.concatenate([source, target]), np.concatenate([target, source])
            parts.append((source, target, 0, -1 if mapping.inhibitory else 1, mapping.rule))
        return parts


def number(rules, rule):
    return FIXED if rule is None else rules.index(rule)


def steps(numbers, places):
    """Floats in steps of 2 to the power of -places: nearest integers, halves away from 0."""
    scaled = np.asarray(numbers, np.float64) * 2.0**places
    return np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)


def threshold_steps(numbers, places):
    """Thresholds or limits in steps; those beyond 2**29 are out of reach of every potential."""
    far = np.abs(numbers) > MAX_BOUND
    return np.where(far, np.sign(numbers) * NEVER, steps(np.where(far, 0, numbers), places)).astype(np.int64)


def binary_places(network):
    """The binary places of each neuron's potential."""
    weight = np.where(network.rule == FIXED, network.weight, 255).astype(np.float64)
    psp = np.where(network.driven, 255, network.psp)
    divisor = np.where(network.uniform, 1, np.maximum(network.shares, 1))
    by_source = np.argsort(network.source, kind="stable")
    source, target = network.source[by_source], network.target[by_source]
    contribution = (psp / divisor)[source] * weight[by_source]
    sums = np.bincount(target, contribution, minlength=network.count) + 2.0 * MAX_INJECTED
    weights = np.bincount(network.target, weight, minlength=network.count)
    bounds = np.abs(np.stack([network.threshold, network.limit]).astype(np.float64))
    bound = np.where(bounds <= MAX_BOUND, bounds, 0).max(axis=0)
    places = np.full(network.count, -1)
    for f in range(17):
        fits = sums * 2**f + weights / (2 if f == 16 else 1) <= CLAMP
        places[fits & (bound * 2**f <= CLAMP)] = f
    if (places < 0).any():
        raise Refused("sums")
    return places


def arrivals(weight, psp, shares, places):
    """What synapses add to their targets: rounded from steps of 2 to the power of -16 to those of the target, halves up."""
    amount = weight * (((psp << 16) + shares // 2) // shares)
    return (amount + (1 << (16 - places) >> 1)) >> (16 - places)


def learn(weight, always, ever, rule, weight_loss):
    """Weights after the rule of coincidence, by whether source and target fired in all bursts of the window, and in any."""
    _, gain, loss = rule
    both, loses = always[0] & always[1], always[0] if weight_loss == "steady_source" else ever[0] | ever[1]
    return np.where(both, np.minimum(weight + gain, 255), np.where(loses, np.maximum(weight - loss, 0), weight))


def weight_loss_of(genome):
    """The condition of a loss of the engine that a genome was written for."""
    newer = "genome_schema_version" in genome or "simulation_timestep" in genome.get("physiology", {})
    return "steady_source" if str(genome.get("version")) in ("2", "2.0") and not newer else "any_firing"


class Engine:
    """Runs a network; `burst` is the number of the last burst."""

    def __init__(self, network, stimulus=0.0, amount=1.0, catch_up=True):
        self.network, self.catch_up, self.burst = network, catch_up, 0
        self.places = binary_places(network)
        self.threshold = threshold_steps(network.threshold, self.places)
        self.threshold[network.area_neurons :] = NEVER  # neurons of memories fire by their own rule alone
        self.limit = threshold_steps(network.limit, self.places)
        self.leak = np.floor(network.leak.astype(np.float64) * 65536 + 0.5).astype(np.int64)
        self.stimulus = int(np.floor(stimulus * (2**32 - 1)))
        self.amount = steps(np.float32(amount), self.places).astype(np.int64)
        # Arrays of one number wrap without a warning.
        self.seed = np.array([network.seed & 0xFFFFFFFF], u32) ^ scramble(np.array([network.seed >> 32], u32))
        self.input_neurons = np.flatnonzero(network.inputs)
        self.weight = network.weight.copy()
        self.plastic = np.flatnonzero(network.rule != FIXED)
        count = network.count
        self.v = np.zeros(count, np.int64)
        self.series = np.zeros(count, np.int64)
        self.remaining = np.zeros(count, np.int64)
        self.ends_series = np.zeros(count, bool)
        self.fired = np.zeros(count, bool)
        self.sent = np.zeros(count, np.int64)
        self.ages = np.zeros(count, np.int64)  # bursts since a memory's neuron took its pattern; learning ignores older firings
        self.recent = []  # the firings of the last bursts, the last first
        depths = [memory.depth for memory in network.memories.values()]
        self.horizon = max([1, *depths, *(rule[0] for rule in network.rules)])
        self.words = [u64(0), u64(0)]
        self.spikes = self.events = 0

    def spike_hash(self):
        return f"{int(self.words[1]) & 0xFFFFFFFF:08x}{int(self.words[0]) & 0xFFFFFFFF:08x}"

    def burst_number(self):
        return np.array([self.burst], u32)

    def step(self):
        """One burst."""
        self.burst += 1
        sums, touched = self.propagate()
        self.inject(sums, touched)
        fired = self.dynamics(sums, touched)
        taken = self.remember(fired)
        self.fired = fired
        self.recent = [fired, *self.recent][: self.horizon]
        self.coincide(taken)
        numbers = np.flatnonzero(fired).astype(u32)
        for place, words in enumerate(spike_words(numbers, self.burst_number())):
            self.words[place] += words.sum(dtype=u64)
        self.spikes += numbers.size

    def propagate(self):
        """Sums of what the firings of the last burst send, and which neurons get anything."""
        network = self.network
        sending = self.fired[network.source] & ((network.rule == FIXED) | (self.weight > 0))
        source, target = network.source[sending], network.target[sending]
        shares = np.where(network.uniform, 1, np.maximum(network.shares, 1))[source]
        amounts = network.sign[sending] * arrivals(self.weight[sending], self.sent[source], shares, self.places[target])
        self.events += source.size
        sums = np.bincount(target, amounts, minlength=network.count).astype(np.int64)
        touched = np.zeros(network.count, bool)
        touched[target] = True
        return sums, touched

    def inject(self, sums, touched):
        """Constant input and stimulus."""
        sums[self.network.power] += 1 << self.places[self.network.power]
        touched |= self.network.power
        numbers = self.input_neurons
        stimulated = numbers[draw(self.seed ^ u32(0xFFFFFFFF), numbers.astype(u32), self.burst_number()) < self.stimulus]
        sums[stimulated] += self.amount[stimulated]
        touched[stimulated] = True

    def dynamics(self, sums, touched):
        """Potentials, periods and series; returns which neurons fire."""
        network = self.network
        counted = touched | self.catch_up
        resting = (self.remaining > 0) & counted
        self.remaining[resting] -= 1
        self.series[resting & (self.remaining == 0) & self.ends_series] = 0
        active = counted & ~resting
        arrived = active & touched
        self.v = np.where(arrived, np.clip(self.v + sums, -CLAMP, CLAMP), self.v)
        window = arrived & (self.threshold <= self.v) & (self.v <= self.limit)
        stopped = window & (network.consecutive > 0) & (self.series >= network.consecutive)
        fired = window & ~stopped & self.drawn()
        silent = active & ~stopped & ~fired
        self.series[stopped | silent] = 0
        lost = np.abs(self.v) * self.leak >> 16
        self.v = np.where(silent, self.v - np.sign(self.v) * lost, self.v)
        self.start_periods(fired)
        self.v[~network.accumulates] = 0
        return fired

    def drawn(self):
        """Which neurons' draws permit a firing."""
        network = self.network
        numbers = np.arange(network.count, dtype=u32)
        bound = np.floor(network.excitability.astype(np.float64) * 2**32)
        return (network.excitability >= np.float32(0.999)) | (draw(self.seed, numbers, self.burst_number()) < bound)

    def start_periods(self, fired):
        """What a firing sends, and the periods that it begins."""
        network = self.network
        rounded = (self.v + (1 << self.places >> 1)) >> self.places
        self.sent = np.where(network.driven, np.clip(rounded, 0, 255), network.psp)
        self.sent[network.area_neurons :] = network.psp[network.area_neurons :]
        self.v[fired] = 0
        self.series[fired] = np.minimum(self.series[fired] + 1, 65535)
        last = fired & (network.consecutive > 0) & (self.series >= network.consecutive)
        period = network.refractory + np.where(last, network.snooze, 0)
        self.remaining[fired] = period[fired]
        self.ends_series[fired] = last[fired]

    def remember(self, fired):
        """Firings of memories, added to `fired`; returns the neurons that took a pattern."""
        taken = []
        for memory in self.network.memories.values():
            place, takes = memory.burst(self.pattern(memory))
            if place is not None:
                fired[memory.neurons[place]] = True
            if takes:
                taken.append(memory.neurons[place])
        return taken

    def pattern(self, memory):
        """The two sums over the upstream firings of the last bursts, or None without any."""
        sums, empty = [u64(0), u64(0)], True
        for age, fired in enumerate(self.recent[: memory.depth]):
            numbers = memory.upstream[fired[memory.upstream]].astype(u32)
            empty &= not numbers.size
            for place, words in enumerate(spike_words(numbers, np.array([age], u32))):
                sums[place] += words.sum(dtype=u64)
        return None if empty else tuple(int(total) & 0xFFFFFFFF for total in sums)

    def coincide(self, taken):
        """Learning after a burst; neurons that took a pattern are reset before."""
        network = self.network
        self.ages += 1
        for neuron in taken:
            outgoing, incoming = network.source == neuron, network.target == neuron
            learning = network.rule != FIXED
            self.weight[outgoing & learning] = network.weight[outgoing & learning]
            self.weight[incoming & learning] = 0
            self.ages[neuron] = 1
        for place, rule in enumerate(network.rules):
            window = rule[0]
            synapses = self.plastic[network.rule[self.plastic] == place]
            history = np.array([fired & (self.ages > age) for age, fired in enumerate(self.recent[:window])])
            always = history.all(axis=0) & (len(history) == window)
            ends = np.stack([network.source[synapses], network.target[synapses]])
            ever = history.any(axis=0)
            self.weight[synapses] = learn(self.weight[synapses], always[ends], ever[ends], rule, network.weight_loss)

    def potentials(self):
        return self.v * 2.0 ** -self.places

    def learning_synapses(self):
        """Source, target, whether inhibitory, and weight of the synapses that learn."""
        network = self.network
        return (column[self.plastic] for column in (network.source, network.target, network.sign < 0, self.weight))
