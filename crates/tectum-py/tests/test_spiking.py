import json

import numpy as np
import pytest

import tectum as tt


@pytest.fixture
def genome(tmp_path):
    return tt.Genome(tt.sample("sample-genome", tmp_path))


def chain(count=3, **settings):
    neurons = tt.Neurons()
    neurons.add(count, threshold=10.0)
    return tt.SpikingNetwork(neurons, source=np.arange(count - 1), target=np.arange(1, count), weight=10, **settings)


def test_a_spike_travels_along_a_chain():
    network = chain()
    spikes, potentials = network.monitor(), network.potential_monitor([1, 2], every=2)
    network.inject(0, 10.0)
    counts = network.run(4)
    assert (counts.bursts, counts.spikes, counts.events) == (4, 3, 2)
    assert spikes.t.tolist() == [1, 2, 3] and spikes.i.tolist() == [0, 1, 2]
    assert potentials.t.tolist() == [2, 4] and potentials.v.shape == (2, 2)
    assert network.fired.tolist() == [] and network.potentials.tolist() == [0.0, 0.0, 0.0]
    assert network.receipt.device == "cpu" and network.receipt.runs > 0


def test_monitors_of_some_neurons_record_only_these(genome):
    network = genome.network(stimulus=0.1)
    everything, some = network.monitor(), network.monitor("mid")
    network.run(100)
    numbers = genome.area("mid").neurons
    chosen = (everything.i >= numbers.start) & (everything.i < numbers.stop)
    np.testing.assert_array_equal(some.i, everything.i[chosen])
    np.testing.assert_array_equal(some.t, everything.t[chosen])
    assert len(everything) == network.counts.spikes
    everything.clear()
    assert len(everything) == 0


def test_the_spikes_of_a_genome_are_those_of_the_command_line(genome):
    # The hashes that docs/spiking.md shows.
    network = genome.network(stimulus=0.1)
    assert network.run(100).spike_hash == "8ed36e4833ddd0f5"
    assert network.run(100).spike_hash == "45e51a3e0c4d4310"


def test_observation_and_threads_do_not_change_spikes(genome):
    network = genome.network(stimulus=0.1, device=tt.Device("cpu", threads=1))
    network.monitor()
    assert network.run(200).spike_hash == "45e51a3e0c4d4310"


def test_a_saved_state_continues(genome, tmp_path):
    network = genome.network(stimulus=0.1)
    network.run(100)
    network.save(tmp_path / "state.safetensors")
    resumed = genome.network(stimulus=0.1)
    resumed.restore(tmp_path / "state.safetensors")
    assert resumed.run(100).spike_hash == "45e51a3e0c4d4310"
    with pytest.raises(tt.DataError):
        chain().restore(tmp_path / "state.safetensors")


def test_plastic_synapses_learn():
    neurons = tt.Neurons()
    neurons.add(2)
    network = tt.SpikingNetwork(neurons, [0], [1], [100], rule=[0], rules=[(1, 10, 3)])
    for _ in range(3):
        network.inject([0, 1], 5.0)
        network.run(1)
    assert network.plastic_synapses()["weight"].tolist() == [130]


def test_weights_that_all_died_are_a_note(tmp_path):
    neurons = tt.Neurons()
    neurons.add(2)
    weights = {}
    for weight_loss in ("any_firing", "steady_source"):
        network = tt.SpikingNetwork(neurons, [0], [1], [2], rule=[0], rules=[(2, 10, 3)], weight_loss=weight_loss)
        assert network.notes == []
        network.inject(0, 1.0)
        network.run(1)
        weights[weight_loss] = network.plastic_synapses()["weight"].tolist(), network.notes
    dead = "rule 0: the weight of its 1 plastic synapse is 0, so that nothing is sent"
    assert weights == {"any_firing": ([0], [dead]), "steady_source": ([2], [])}
    area = {"block_boundaries": [2, 1, 1], "mp_charge_accumulation": True}
    mappings = {"area01": [["projector", 1, 9, True, 1, 1, 1]]}
    blueprint = {"area00": area | {"cortical_mapping_dst": mappings}, "area01": area}
    (tmp_path / "g.json").write_text(json.dumps({"version": "2.1", "blueprint": blueprint}))
    genome = tt.Genome(tmp_path / "g.json", weight_loss="steady_source")
    assert "weight loss steady_source: as requested" in genome.network().notes[-1]
    assert genome.network(learns=False).notes == []


def test_a_hub_costs_only_its_own_precision():
    neurons = tt.Neurons()
    leaky = neurons.add(1, threshold=8.0, leak=0.1)[0]
    senders = neurons.add(10_000, psp=255, uniform_psp=True)
    hub = neurons.add(1, threshold=8.0, leak=0.1)[0]
    network = tt.SpikingNetwork(neurons, senders, [hub] * len(senders), [255])
    assert network.notes == [
        f"neuron {hub}: a leak of 0.1 changes no potential within 9.000 of rest, more than 1 % of the threshold 8 (0 binary places)"
    ]
    network.inject(leaky, 5.0)
    network.run(200)
    assert network.potentials[leaky] == 9 / 65_536


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: chain(rule=[0, 0]), "rule"),
        (lambda: chain().inject(7, 1.0), "neuron 7"),
        (lambda: chain().monitor(range(10**12)), "neuron 999999999999: the network has 3"),
        (lambda: chain().inject(range(-1, 2), 1.0), "neuron -1"),
        (lambda: chain().inject("eye", 1.0), "has no areas"),
        (lambda: chain().inject([0, 0], 1.0), "twice"),
        (lambda: chain().inject([0, 1], [1.0]), "amount has 1 numbers, needs 2"),
        (lambda: chain(silence="loud"), "silence"),
        (lambda: chain(weight_loss="old"), "weight_loss"),
        (lambda: tt.Neurons().add(1, leak=2.0), "leak 2"),
        (lambda: tt.SpikingNetwork(tt.Neurons(), [0], [1], [300]), "weight 300"),
        (lambda: tt.SpikingNetwork(tt.Neurons(), [0, 1], [1], [3, 4, 5]), "weight has 3 numbers for 2"),
    ],
)
def test_refusals_name_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        change()
    with pytest.raises(TypeError, match="whole numbers"):
        chain().monitor([0.5])


def test_a_stimulus_adds_to_injections_and_its_amount_has_a_maximum(tmp_path):
    area = {"group_id": "IPU", "block_boundaries": [1, 1, 1], "mp_charge_accumulation": True, "firing_threshold": 10}
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"version": "2.1", "blueprint": {"i__eye": area}}))
    network = tt.Genome(path).network(stimulus=1.0, stimulus_amount=2.0)
    network.inject(0, 1.5)
    network.run(1)
    assert network.potentials.tolist() == [3.5]
    with pytest.raises(ValueError, match="stimulus_amount: an injection of 2000 into each stimulated neuron"):
        tt.Genome(path).network(stimulus=0.1, stimulus_amount=2000.0)


def test_an_unknown_weight_loss_of_a_genome_is_refused(tmp_path):
    with pytest.raises(ValueError, match='weight loss "old"'):
        tt.Genome(tt.sample("sample-genome", tmp_path), weight_loss="old")


def test_a_network_is_rebuilt_from_its_edges():
    neurons = tt.Neurons()
    neurons.add(50, threshold=3.0, psp=2)
    random = np.random.default_rng(5)
    source, target = random.integers(0, 50, (2, 400))
    weight, inhibitory = random.integers(0, 256, 400), random.integers(0, 2, 400).astype(bool)
    rule = random.integers(-1, 2, 400)
    rules = [(1, 10, 3), (4, 2, 1)]
    inputs = [(neuron, 3.0) for neuron in range(10)]
    network = tt.SpikingNetwork(neurons, source, target, weight, inhibitory=inhibitory, rule=rule, rules=rules, constant_inputs=inputs)
    edges = network.edges()
    assert {name: str(column.dtype) for name, column in edges.items()} == {
        "source": "uint32", "target": "uint32", "weight": "uint8", "inhibitory": "bool", "rule": "int8"
    }
    order = np.argsort(source, kind="stable")
    for name, column in [("source", source), ("target", target), ("weight", weight), ("inhibitory", inhibitory), ("rule", rule)]:
        np.testing.assert_array_equal(edges[name], column[order])
    rebuilt = tt.SpikingNetwork(neurons, **edges, rules=rules, constant_inputs=inputs)
    assert network.run(50).spike_hash == rebuilt.run(50).spike_hash
    # Those of the start, whatever was learnt since.
    np.testing.assert_array_equal(network.edges()["weight"], edges["weight"])


@pytest.mark.parametrize("convert", [np.uint32, np.int64, np.int16, np.uint8, list, lambda column: np.repeat(column, 2)[::2]])
def test_columns_of_every_type_make_the_same_network(convert):
    neurons = tt.Neurons()
    neurons.add(100)
    source, target = np.random.default_rng(2).integers(0, 100, (2, 300))
    weight = np.arange(300) % 100
    expected = tt.SpikingNetwork(neurons, source, target, weight).edges()
    columns = [convert(column) for column in (source, target, weight)]
    found = tt.SpikingNetwork(neurons, *columns).edges()
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column)


def test_the_edges_of_a_genome_have_mappings(genome):
    network = genome.network()
    edges = network.edges()
    assert all(len(column) == network.synapses for column in edges.values())
    assert edges["mapping"].dtype == np.uint32 and edges["psp"].dtype == np.uint8
    middle = genome.area("mid").neurons
    assert np.isin(edges["target"], middle).all()
    assert (np.diff(edges["mapping"].astype(int)) >= 0).all()
