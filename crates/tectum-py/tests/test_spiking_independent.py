"""
Compares networks of genomes with an engine that was written from docs/spiking.md and docs/genomes.md alone: firings of every burst, potentials, weights and hash.

TECTUM_SEED repeats the random genomes of a run, TECTUM_GENOMES sets their number.
"""

import collections
import json
import os
import pathlib
import random
import time

import numpy as np
import pytest
from numpy_spiking import Engine, Network, Refused
from random_genomes import random_genome

import tectum as tt

SEED = int(os.environ.get("TECTUM_SEED", time.time_ns() // 1_000_000))
CASES = int(os.environ.get("TECTUM_GENOMES", 100))
BURSTS = 40
PUBLISHED_BURSTS = 12
PLAIN = {
    "seed": 0,
    "learns": True,
    "memory_neurons": 20,
    "weight_loss": "detect",
    "stimulus": 0.0,
    "stimulus_amount": 1.0,
    "silence": "catch_up",
}

# What must happen in some random genome: a name and whether it happened in a finished run.
WHAT_HAPPENS = {
    "events": lambda engine: engine.events,
    "a potential below the rest": lambda engine: (engine.v < 0).any(),
    "a weight that increased": lambda engine: (engine.weight > engine.network.weight).any(),
    "a weight that decreased": lambda engine: (engine.weight < engine.network.weight).any(),
    "a grown synapse": lambda engine: (engine.weight[engine.network.weight == 0] > 0).any(),
    "a stored pattern": lambda engine: any(memory.patterns for memory in engine.network.memories.values()),
    "a permanent pattern": lambda engine: any(memory.permanent.any() for memory in engine.network.memories.values()),
    "a lost pattern": lambda engine: any(memory.lost for memory in engine.network.memories.values()),
    "16 binary places": lambda engine: (engine.places == 16).any(),
    "fewer than 12 binary places": lambda engine: (engine.places < 12).any(),
    "binary places of one neuron alone": lambda engine: len(set(engine.places.tolist())) > 1,
    "a steady source": lambda engine: engine.network.weight_loss == "steady_source" and engine.plastic.size,
    "a potential that is sent": lambda engine: (engine.network.driven & (engine.sent > 1)).any(),
}
seen = collections.Counter()


def print_now(request, text):
    """Prints past pytest's capture."""
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\n{text}", flush=True)


@pytest.fixture(scope="module", autouse=True)
def seed(request):
    print_now(request, f"== random genomes from TECTUM_SEED={SEED}")


def random_options(choices):
    """Options of a run, for both engines."""
    return {
        "seed": choices.choice([0, 7, choices.randrange(2**32), choices.randrange(2**63)]),
        "learns": choices.random() < 0.85,
        "memory_neurons": choices.choice([1, 5, 20]),
        "weight_loss": choices.choice(["detect", "detect", "any_firing", "steady_source"]),
        "stimulus": choices.choice([0.0, 0.1, 0.1, 0.3, 0.3, 0.9, 0.9, 1.0]),
        "stimulus_amount": choices.choice([0.0, 0.4, 1.0, 1.0, 2.5, 2.5, 30.7, 30.7, -3.0, 1024.0]),
        "silence": choices.choice(["catch_up", "catch_up", "freeze"]),
    }


def engine_of(genome, options):
    network = Network(genome, *(options[name] for name in ("seed", "learns", "memory_neurons", "weight_loss")))
    return Engine(network, options["stimulus"], options["stimulus_amount"], options["silence"] == "catch_up")


def network_of(path, options):
    settings = {name: value for name, value in options.items() if name != "weight_loss"}
    return tt.Genome(path, weight_loss=options["weight_loss"]).network(device="cpu", **settings)


def assert_same(path, options, bursts):
    """Runs a genome in both engines and compares every burst; returns the engine of the pages."""
    engine = engine_of(json.loads(path.read_text()), options)
    network = network_of(path, options)
    assert (network.neurons, network.synapses) == (engine.network.count, engine.network.source.size)
    spikes, potentials = network.monitor(), network.potential_monitor(range(network.neurons))
    for burst in range(1, bursts + 1):
        counts = network.run(1)
        engine.step()
        np.testing.assert_array_equal(network.fired, np.flatnonzero(engine.fired), f"firings of burst {burst}")
        np.testing.assert_array_equal(potentials.v[-1], engine.potentials(), f"potentials of burst {burst}")
        synapses = network.plastic_synapses()
        columns = (synapses[name] for name in ("source", "target", "inhibitory", "weight"))
        np.testing.assert_array_equal(learned(*columns), learned(*engine.learning_synapses()), f"weights of burst {burst}")
    assert (counts.spikes, counts.events, counts.spike_hash) == (engine.spikes, engine.events, engine.spike_hash())
    assert len(spikes) == engine.spikes
    assert_same_integers(network, engine, path.with_suffix(".safetensors"))
    return engine


def assert_same_integers(network, engine, path):
    """Compares the potentials of a snapshot, which are integers; the leak of neurons that were not touched in the last burst is not applied in it."""
    network.save(path)
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])

    def array(name, kind):
        first, end = header[name]["data_offsets"]
        return np.frombuffer(content[start + first : start + end], kind)

    v = array("potential", np.int32)
    current = array("last", np.uint32) == engine.burst if "last" in header else np.ones(v.size, bool)
    np.testing.assert_array_equal(v[current], engine.v[current], "integers of the snapshot")


def learned(source, target, inhibitory, weight):
    """Sorted synapses, each as one number: two engines may list them in different orders."""
    numbers = [np.asarray(column, np.int64) for column in (source, target, inhibitory, weight)]
    return np.sort(((numbers[0] << 20 | numbers[1]) << 1 | numbers[2]) << 8 | numbers[3])


@pytest.mark.parametrize("case", range(CASES))
def test_random_genomes_run_as_the_pages_define(case, tmp_path):
    choices = random.Random(f"{SEED} {case}")
    path = tmp_path / "random.json"
    path.write_text(json.dumps(random_genome(choices, case)))
    options = random_options(choices)
    print(f"TECTUM_SEED={SEED}, case {case}, {options}\n{path.read_text()}")
    engine = assert_same(path, options, BURSTS)
    seen["genomes"] += 1
    seen.update(name for name, happened in WHAT_HAPPENS.items() if happened(engine))


def test_random_genomes_use_every_rule():
    """The genomes above would prove little if nothing fired, learned or was remembered in them."""
    if sum(seen.values()) == 0 or seen["genomes"] < 100:
        pytest.skip("skipped: fewer than 100 random genomes ran")
    rare = [name for name in WHAT_HAPPENS if not seen[name]]
    assert not rare, f"TECTUM_SEED={SEED}: nothing of {rare}"


def two_areas(size, rules, **target):
    """A genome of an input area of a size and one more voxel, and the rules from one to the other."""
    area = {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": True, "psp_uniform_distribution": True}
    source = area | {"group_id": "IPU", "block_boundaries": list(size), "cortical_mapping_dst": {"c__two": rules}}
    return {"version": "2.1", "physiology": {}, "blueprint": {"i__eye": source, "c__two": area | target}}


def rare_genomes():
    """Genomes with what random ones rarely have."""
    # The one neuron of the memory takes another pattern in most bursts, and learns with a window of two.
    forgetful = two_areas((8, 1, 1), [["memory", 1, 1, False]], is_mem_type=True, temporal_depth=1, init_lifespan=1)
    output = {"block_boundaries": [1, 1, 1], "mp_charge_accumulation": True, "firing_threshold": 0}
    forgetful["blueprint"]["c__two"]["cortical_mapping_dst"] = {"c__thr": [["block_to_block", 1, 20, True, 1, 5, 3, 2]]}
    forgetful["blueprint"]["c__thr"] = output
    # Sums at the limit of a number of binary places: rounding decides.
    limits = [two_areas((count, 1, 1), [["all_to_all", 1, 255, False]], firing_threshold=1e9) for count in range(4099, 4105)]
    tile = two_areas((2, 3, 1), [["tile", 1, 1, True, 1, 1, 1, 1]], block_boundaries=[3, 2, 1])
    return [forgetful, *limits, tile]


@pytest.mark.parametrize("genome", rare_genomes())
def test_rare_genomes_run_as_the_pages_define(genome, tmp_path):
    path = tmp_path / "rare.json"
    path.write_text(json.dumps(genome))
    many = genome["blueprint"]["i__eye"]["block_boundaries"][0] > 1000
    options = PLAIN | {"stimulus": 0.4, "memory_neurons": 1}
    engine = assert_same(path, options, 3 if many else BURSTS)
    assert engine.spikes > 0


def refused_genomes():
    """Genomes that the pages refuse, each with a part of the error."""
    crowded = two_areas((130, 130, 1), [["all_to_all", 1, 255, False]])
    crowded["blueprint"]["i__eye"]["postsynaptic_current"] = 255
    return [
        (crowded, "neuron 16900"),
        (two_areas((1, 1, 1), [["all_to_all", 1, 1, True, 1, 1, 1, 257]]), "257"),
        (two_areas((1, 1, 1), [["all_to_all", 1, 1, True, 1, gain, 1, 1] for gain in range(1, 18)]), "16"),
        (two_areas((1, 1, 1), [["memory", 1, 1, False]], is_mem_type=True, init_lifespan=0), "lifespan"),
    ]


@pytest.mark.parametrize(("genome", "message"), refused_genomes())
def test_both_engines_refuse_what_the_pages_refuse(genome, message, tmp_path):
    path = tmp_path / "refused.json"
    path.write_text(json.dumps(genome))
    with pytest.raises(Refused):
        engine_of(genome, PLAIN)
    with pytest.raises((ValueError, NotImplementedError), match=message):
        network_of(path, PLAIN)


GENOMES = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "genomes"
FILES = sorted(GENOMES.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_published_genomes_run_as_the_pages_define(path, tmp_path):
    copy = tmp_path / path.name
    copy.write_text(path.read_text())
    engine = assert_same(copy, PLAIN | {"stimulus": 0.1, "stimulus_amount": 200.0, "memory_neurons": 1024}, PUBLISHED_BURSTS)
    assert engine.spikes > 0


def test_published_genomes_are_there(request):
    if not FILES:
        print_now(request, f"skipped: genomes in {GENOMES}: published genomes against the engine of the pages")
        pytest.skip(f"skipped: no genomes in {GENOMES}")
