"""
Compares networks of genomes with an engine that was written from docs/spiking.md and docs/genomes.md alone: firings of every burst, potentials, weights and hash.

TECTUM_SEED repeats the random genomes of a run, TECTUM_GENOMES sets their number.
"""

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
        "stimulus": choices.choice([0.0, 0.1, 0.3, 0.9, 1.0]),
        "stimulus_amount": choices.choice([0.0, 0.4, 1.0, 2.5, 30.7, -3.0, 1024.0]),
        "silence": choices.choice(["catch_up", "catch_up", "freeze"]),
    }


def engine_of(genome, options):
    network = Network(genome, options["seed"], options["learns"], options["memory_neurons"])
    return Engine(network, options["stimulus"], options["stimulus_amount"], options["silence"] == "catch_up")


def assert_same(path, options, bursts):
    """Runs a genome in both engines and compares all that they have."""
    try:
        engine = engine_of(json.loads(path.read_text()), options)
    except Refused as refusal:
        with pytest.raises((ValueError, tt.UnsupportedError)):
            tt.Genome(path).network(device="cpu", **options)
        return refusal
    network = tt.Genome(path).network(device="cpu", **options)
    assert (network.neurons, network.synapses) == (engine.network.count, engine.network.source.size)
    spikes, potentials = network.monitor(), network.potential_monitor(range(network.neurons))
    for burst in range(1, bursts + 1):
        counts = network.run(1)
        engine.step()
        assert network.fired.tolist() == np.flatnonzero(engine.fired).tolist(), f"firings of burst {burst}"
        np.testing.assert_array_equal(potentials.v[-1], engine.potentials(), f"potentials of burst {burst}")
        synapses = network.plastic_synapses()
        columns = (synapses[name] for name in ("source", "target", "inhibitory", "weight"))
        np.testing.assert_array_equal(learned(*columns), learned(*engine.learning_synapses()), f"weights of burst {burst}")
    assert (counts.spikes, counts.events, counts.spike_hash) == (engine.spikes, engine.events, engine.spike_hash())
    assert len(spikes) == engine.spikes
    return engine


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
    assert_same(path, options, BURSTS)
