import numpy as np
import pytest

import tectum as tt


def test_the_cpu_is_a_device():
    assert any(device["id"] == "cpu" and not device["software"] for device in tt.devices())
    cpu = tt.Device("cpu", threads=1)
    assert (cpu.id, cpu.software, repr(cpu)) == ("cpu", False, "Device('cpu')")


def test_each_kind_of_error_has_an_exception():
    with pytest.raises(ValueError, match="expected auto"):
        tt.Device("gpu")
    with pytest.raises(tt.UnsupportedError):
        tt.Device("cuda:99")
    with pytest.raises(ValueError, match="threads: null has none"):
        tt.Device("null", threads=2)
    with pytest.raises(ValueError, match="is chosen for the work"):
        tt.Device("auto")
    assert issubclass(tt.DataError, ValueError) and issubclass(tt.UnsupportedError, NotImplementedError)


def test_auto_chooses_a_device_for_every_kind_of_work(models, tmp_path):
    """Software adapters are never chosen: on a machine without a GPU, the CPU."""
    graph = tt.Graph()
    weight = graph.parameter("weight", (1, 1))
    y = graph.input("x", (4, 1)) @ weight
    graph.output("y", y)
    model, trainer = graph.compile(device="auto"), graph.trainer(graph.mse(y, graph.input("target", (4, 1))), device="auto")
    column = np.ones((4, 1), np.float32)
    model.set_parameters({"weight": np.ones((1, 1))})
    model(x=column)
    trainer.step(x=column, target=column)

    plan = tt.Plan("example")
    plan.unary("relu", plan.input("x", 3), plan.output("y", 3))
    executable = plan.compile(device="auto")
    executable.run(x=[-1.0, 0.5, 2.0])

    double = tt.program("buffer x: i32 read_write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [x], r0")
    assert double.receipt is None
    assert double.run(x=np.array([1, 2], np.int32), device="auto")["x"].tolist() == [2, 4]

    neurons = tt.Neurons()
    neurons.add(2, threshold=10.0)
    network = tt.SpikingNetwork(neurons, [0], [1], [10], device="auto")
    network.inject(0, 10.0)
    assert network.run(2).spikes == 2, "a trial leaves nothing behind"
    genome = tt.Genome(tt.sample("sample-genome", tmp_path)).network(stimulus=0.1, device="auto")
    genome.run(3)

    field = tt.Field(4, 2, shape=(8, 8, 8, 32), device="auto")
    field.tick(np.zeros(4), 0.0)
    batch = tt.BodyBatch("cart_pole", 8, device="auto")
    batch.step(np.zeros((8, 1)))
    policy = tt.Network(models / "cart_pole.onnx", device="auto")
    policy.run({name: np.zeros(shape, np.float32) for name, shape in policy.inputs})
    brain = tt.Policy(models / "cart_pole.onnx", "cart_pole", device="auto")
    brain.tick(np.zeros(4))

    for worked in (model, trainer, executable, double, network, genome, field, batch, policy, brain):
        receipt = worked.receipt
        assert not receipt.software and receipt.runs > 0, worked
        assert receipt.to_dict()["code"], worked


def test_a_program_that_only_the_cpu_supports_goes_there_with_the_reason():
    root = tt.program("buffer x: f64 read_write\nldg.f64 r0, [x]\nsqrt.f64 r0, r0\nstg.f64 [x], r0")
    assert root.run(x=np.array([4.0, 9.0]), device="auto")["x"].tolist() == [2.0, 3.0]
    fallbacks = root.receipt.to_dict()["fallbacks"]
    assert [fallback["what"] for fallback in fallbacks] == ["auto"] and "64-bit" in fallbacks[0]["reason"], fallbacks


def test_memory_for_others_is_that_of_cuda_devices():
    plan = tt.Plan("counter")
    x, count, y = plan.input("x", 4), plan.state("count", 4), plan.output("y", 4)
    plan.binary("add", x, count, y)
    plan.copy(y, count)
    executable = plan.compile()
    state = executable.state("count")
    assert not hasattr(state, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="the buffer is on cpu"):
        state.__cuda_array_interface__
    with pytest.raises(KeyError, match="no state \"counts\"; there are count"):
        executable.state("counts")
