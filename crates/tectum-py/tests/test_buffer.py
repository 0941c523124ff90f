"""Arrays in a device's memory, streams of runs, and work that is split into shards."""

import gc

import numpy as np
import pytest

import tectum as tt


def software_vulkan():
    try:
        return tt.Device("vulkan:0")
    except tt.UnsupportedError:
        return None


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32"])
def test_buffers_have_the_elements_of_arrays(dtype):
    values = np.arange(7).astype(dtype)
    buffer = tt.Buffer(values)
    assert (len(buffer), buffer.dtype, buffer.device) == (7, dtype, "cpu")
    np.testing.assert_array_equal(buffer.read(), values)
    assert buffer.read().dtype == dtype
    buffer.write(values[::-1])
    np.testing.assert_array_equal(np.asarray(buffer), values[::-1])
    assert np.asarray(buffer, np.float64).dtype == np.float64
    other = tt.Buffer(7, dtype=dtype)
    np.testing.assert_array_equal(other.read(), np.zeros(7))
    assert buffer.copy_to(other) == "host"
    np.testing.assert_array_equal(other.read(), values[::-1])


def test_wrong_buffers_are_refused():
    buffer = tt.Buffer(3)
    for call, error, message in [
        (lambda: buffer.write([1.0, 2.0]), ValueError, "3 elements written with 2"),
        (lambda: buffer.copy_to(tt.Buffer(4)), ValueError, "3 elements copied to one of 4"),
        (lambda: buffer.copy_to(tt.Buffer(3, dtype="int32")), ValueError, "no buffer of f32"),
        (lambda: tt.Buffer(np.ones(3, np.int8)), TypeError, "values are int8: give dtype"),
        (lambda: tt.Buffer(np.ones(3), dtype="int32"), TypeError, "it needs whole numbers"),
        (lambda: tt.Buffer(3, dtype="complex"), ValueError, "dtype is"),
        (lambda: tt.Buffer(3, device="auto"), ValueError, "auto"),
        (lambda: tt.Buffer(-1), (ValueError, OverflowError, TypeError), ""),
        (lambda: tt.Buffer(2**61), MemoryError, ""),
        (lambda: np.array(buffer, copy=False), ValueError, "always a copy"),
    ]:
        with pytest.raises(error, match=message):
            call()
    np.testing.assert_array_equal(buffer.read(), np.zeros(3))


def counter(device="cpu", **settings):
    """Adds its input to a state, and returns the sum."""
    plan = tt.Plan("counter")
    x, total, y = plan.input("x", 4), plan.state("total", 4), plan.output("y", 4)
    plan.binary("add", x, total, y)
    plan.copy(y, total)
    return plan.compile(device=device, **settings)


def test_plans_share_a_buffer_as_their_state():
    buffer = tt.Buffer(np.float32([1, 2, 3, 4]))
    first, second = counter(states={"total": buffer}), counter(states={"total": buffer})
    first.run(x=[1, 1, 1, 1])
    assert second.run(x=[10, 10, 10, 10])["y"].tolist() == [12, 13, 14, 15]
    assert buffer.read().tolist() == [12, 13, 14, 15] == first.state("total").read().tolist()
    buffer.write([0, 0, 0, 0])
    assert first.run(x=[1, 1, 1, 1])["y"].tolist() == [1, 1, 1, 1]
    for states, error in (({"total": tt.Buffer(5)}, ValueError), ({"sum": buffer}, KeyError), ({"total": tt.Buffer(4, dtype="int32")}, ValueError)):
        with pytest.raises(error):
            counter(states=states)


def test_buffers_move_between_devices():
    if (device := software_vulkan()) is None:
        pytest.skip("no Vulkan driver")
    here, there = tt.Buffer(np.float32([1, 2, 3, 4])), tt.Buffer(4, device=device)
    assert here.copy_to(there) == "host" and there.device == device.id
    run = counter(device, states={"total": there})
    assert run.run(x=[1, 1, 1, 1])["y"].tolist() == [2, 3, 4, 5]
    assert there.read().tolist() == [2, 3, 4, 5]


def test_streams_execute_in_order_while_python_continues():
    buffer, stream = tt.Buffer(4), tt.Stream()
    runs = [counter(states={"total": buffer}) for _ in range(3)]
    submissions = [stream.submit(run, x=np.full(4, 10.0**k)) for k, run in enumerate(runs)]
    found = [submission.wait()["y"][0] for submission in submissions]
    assert found == [1.0, 11.0, 111.0]
    assert all(submission.is_done for submission in submissions) and runs[0].receipt.runs == 1
    with pytest.raises(RuntimeError, match="waited for already"):
        submissions[0].wait()


def test_outputs_are_those_of_the_submitted_run():
    """Later runs of the same executable do not change them."""
    run, stream = counter(), tt.Stream()
    first = stream.submit(run, x=[1, 1, 1, 1])
    second = stream.submit(run, x=[2, 2, 2, 2])
    assert run.run(x=[4, 4, 4, 4])["y"][0] == 7.0
    assert second.wait()["y"][0] == 3.0 and first.wait()["y"][0] == 1.0


def test_events_order_streams():
    buffer = tt.Buffer(4)
    first, second = counter(states={"total": buffer}), counter(states={"total": buffer})
    one, two = tt.Stream(), tt.Stream()
    one.submit(first, x=[1, 1, 1, 1])
    event = one.event()
    two.wait_for(event)
    assert two.submit(second, x=[2, 2, 2, 2]).wait()["y"].tolist() == [3, 3, 3, 3]
    assert event.is_signaled
    one.wait()
    event.wait()


def test_runs_end_without_their_submission_and_their_stream():
    run, stream = counter(), tt.Stream()
    for _ in range(3):
        stream.submit(run, x=[1, 1, 1, 1])
    del stream
    gc.collect()
    assert run.run(x=[0, 0, 0, 0])["y"].tolist() == [3, 3, 3, 3]


def test_wrong_submissions_are_refused():
    run, stream = counter(), tt.Stream()
    with pytest.raises(KeyError, match="no input"):
        stream.submit(run, z=[1])
    with pytest.raises(ValueError, match="x has 2 elements"):
        stream.submit(run, x=[1, 2])
    plan = tt.Plan()
    kernel = tt.Kernel(
        "one",
        "@compute @workgroup_size(256)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.count { y[id.x] = 1.0; } }",
        [("y", "write", "float32")],
        [("count", "uint32")],
        lambda y, count: y.fill(1.0),
    )
    plan.launch(kernel, [plan.output("y", 4)], count=4)
    with pytest.raises(ValueError, match="function of Python, which a stream does not call"):
        stream.submit(plan.compile())
    # Nothing keeps the executable.
    assert run.run(x=[1, 1, 1, 1])["y"][0] == 1.0


def test_shards_change_no_spike(tmp_path):
    genome = tt.Genome(tt.sample("sample-genome", tmp_path))
    hashes = {shards: genome.network(stimulus=0.1, shards=shards).run(100).spike_hash for shards in (1, 2, 3)}
    assert len(set(hashes.values())) == 1, hashes
    neurons = tt.Neurons()
    neurons.add(100, threshold=10.0)
    random = np.random.default_rng(1)
    source, target = random.integers(0, 100, (2, 2000))

    def counts(shards):
        network = tt.SpikingNetwork(neurons, source, target, 5, shards=shards, constant_inputs=[(k, 4.0) for k in range(20)])
        return network.run(50)

    assert counts(1) == counts(4) and counts(1).spikes > 0
    for shards in (0, 65):
        with pytest.raises(ValueError, match="shards is"):
            genome.network(shards=shards)


def test_shards_change_no_element_of_a_field():
    fields = [tt.Field(2, 1, shape=(8, 4, 4, 32), shards=shards) for shards in (1, 2)]
    for _ in range(3):
        actions = [field.tick([0.5, -0.5], 0.1).action for field in fields]
    np.testing.assert_array_equal(*actions)
    np.testing.assert_array_equal(*(field.elements for field in fields))


def test_results_that_nobody_reads_are_dropped():
    """Every run ends all the same."""
    run, stream = counter(), tt.Stream()
    for _ in range(200):
        stream.submit(run, x=[1, 1, 1, 1])
    stream.wait()
    assert run.read_state("total").tolist() == [200] * 4
