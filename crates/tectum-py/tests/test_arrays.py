"""Arrays in and out: what is copied, and what other libraries can read."""

import errno

import numpy as np
import pytest

import tectum as tt

ELEMENTS = 1_000_000


def test_arrays_are_read_in_place():
    values = np.arange(ELEMENTS, dtype=np.float32)
    assert tt.array_address(values) == values.ctypes.data
    assert tt.array_address(values.reshape(1000, 1000)) == values.ctypes.data
    # Others need a copy.
    assert tt.array_address(values.astype(np.float64)) != values.ctypes.data
    assert tt.array_address(values[::2]) != values.ctypes.data


def test_results_take_over_their_memory():
    plan = tt.Plan()
    x, total = plan.input("x", ELEMENTS), plan.state("total", ELEMENTS)
    plan.copy(x, total)
    run = plan.compile()
    run.run(x=np.ones(ELEMENTS, np.float32))
    found = run.read_state("total")
    assert found.flags.writeable and tt.array_address(found) == found.ctypes.data
    # The array lives as long as anyone holds it.
    del run, plan
    assert found.sum() == ELEMENTS
    view = found[10:20]
    del found
    assert view.tolist() == [1.0] * 10


def test_torch_tensors_are_read_and_made_in_place():
    torch = pytest.importorskip("torch")
    tensor = torch.arange(ELEMENTS, dtype=torch.float32)
    assert tt.array_address(tensor) == tensor.data_ptr()
    found = tt.body("cart_pole").reset(1)
    assert torch.from_dlpack(found).data_ptr() == found.ctypes.data
    graph = tt.Graph()
    graph.output("y", graph.input("x", 4).relu())
    assert torch.from_dlpack(graph.compile()(x=torch.tensor([-1.0, 0.0, 1.0, 2.0]))["y"]).tolist() == [0.0, 0.0, 1.0, 2.0]


def test_jax_arrays_are_read_in_place():
    jax = pytest.importorskip("jax")
    array = jax.numpy.arange(ELEMENTS, dtype=jax.numpy.float32)
    assert tt.array_address(array) == array.unsafe_buffer_pointer()


class Exporter:
    """What only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_anything_that_exports_dlpack_is_an_array():
    values = np.arange(ELEMENTS, dtype=np.float32)
    assert tt.array_address(Exporter(values)) == values.ctypes.data
    with pytest.raises(TypeError, match="no array of numbers"):
        tt.array_address(object())


def integers_of(dtype):
    plan = tt.Plan()
    plan.copy(plan.input("x", 2, dtype), plan.output("y", 2, dtype))
    run = plan.compile()
    return lambda values: run.run(x=values)["y"]


@pytest.mark.parametrize(
    ("dtype", "values", "error", "message"),
    [
        ("int32", np.array([2**32, 0]), ValueError, "x has 4294967296 at place 0, which is out of range of int32"),
        ("int32", [0, 2**31], ValueError, "x has 2147483648 at place 1"),
        ("uint32", [-1, 0], ValueError, "x has -1 at place 0, which is out of range of uint32"),
        ("uint32", np.array([2**64 - 1, 0], np.uint64), ValueError, "x has 18446744073709551615"),
        ("int32", np.array([1.9, np.nan]), TypeError, "x has the type float64: it needs whole numbers"),
        ("int32", [2**70, 0], TypeError, "x has the type object: it needs whole numbers"),
        ("float32", [1e300, 0.0], ValueError, "x has 1.*at place 0, which is out of range of float32"),
        ("float32", [None, "2.5"], TypeError, "x has the type object: it is no array of numbers"),
        ("float32", ["1", "2.5"], TypeError, "x has the type <U3"),
        ("float32", [1j, 0], TypeError, "x has the type complex128"),
        ("float64", b"12", TypeError, "no array of numbers"),
        ("float32", [[1.0], [1.0, 2.0]], TypeError, "x: .*is no array of numbers"),
    ],
)
def test_no_number_is_changed_silently(dtype, values, error, message):
    with pytest.raises(error, match=message):
        integers_of(dtype)(values)


def test_numbers_of_all_types_are_converted_exactly():
    inputs = [np.array([1, 200], dtype) for dtype in ("uint8", "int16", ">i4", "int64", "uint64")]
    for values in [*inputs, [1, 200], (np.int8(1), 200)]:
        for dtype in ("int32", "uint32", "float32", "float64"):
            assert integers_of(dtype)(values).tolist() == [1, 200]
    for values in ([True, False], np.array([1.0, 0.0], np.float16), np.array([1.0, 0.0], ">f8"), np.array([1, 9, 0], np.float32)[::2]):
        assert integers_of("float32")(values).tolist() == [1.0, 0.0]
    assert np.isnan(integers_of("float32")([np.nan, np.inf])[0])
    large = np.arange(2 * 5_000_000).reshape(2, -1)
    plan = tt.Plan()
    plan.copy(plan.input("x", large.size), plan.output("y", large.size))
    run = plan.compile()
    for values in (large, large.astype(np.float64), large.T.copy().T):
        np.testing.assert_array_equal(run.run(x=values)["y"], large.ravel().astype(np.float32))


def test_arrays_that_are_not_aligned_are_copied():
    numbers = np.array([0.1, 0.2], np.float32)
    packet = np.frombuffer(b"\x07" + numbers.tobytes(), np.float32, offset=1)
    assert not packet.flags.aligned
    expected = tt.brain("lqr", "pendulum").tick(numbers)
    np.testing.assert_array_equal(tt.brain("lqr", "pendulum").tick(packet), expected)
    np.testing.assert_array_equal(integers_of("float32")(packet), numbers)


def test_labels_that_the_logits_do_not_have_are_refused():
    graph = tt.Graph()
    x, label, row = graph.input("x", (4, 2)), graph.indices("label", 4), graph.indices("row", 2)
    logits = graph.dense("layer", x, 3)
    graph.output("rows", graph.gather(graph.parameter("table", (5, 2)), row))
    trainer, model = graph.trainer(graph.cross_entropy(logits, label)), graph.compile()
    trainer.initialize(1)
    model.set_parameters({"table": np.ones((5, 2))})
    with pytest.raises(ValueError, match='input "label": row 2 has the number 3, needs 0 to 2'):
        trainer.step(x=np.ones((4, 2)), label=[1, 2, 3, 0])
    with pytest.raises(ValueError, match='input "row": row 0 has the number 5, needs 0 to 4'):
        model(x=np.ones((4, 2)), row=[5, 0])
    assert np.isfinite(trainer.step(x=np.ones((4, 2)), label=[1, 2, 0, 0]))
    assert model(row=[4, 0])["rows"].shape == (2, 2)


def test_a_node_with_an_array_is_a_constant():
    graph = tt.Graph()
    x = graph.input("x", (2, 3))
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = {"sum": x + array, "reverse": array - x, "product": array * x, "maximum": x.maximum(array), "number": np.float32(2.0) * x}
    for name, node in nodes.items():
        assert isinstance(node, tt.Node), name
        graph.output(name, node)
    found, ones = graph.compile()(x=np.ones((2, 3))), np.ones((2, 3), np.float32)
    expected = {"sum": ones + array, "reverse": array - ones, "product": array, "maximum": np.maximum(ones, array), "number": 2 * ones}
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    with pytest.raises(TypeError):
        x + np.array(["a"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tt.Neurons().add(-1), "count is -1"),
        (lambda: tt.Neurons().add(1, psp=256), "psp is 256"),
        (lambda: tt.Plan().input("x", -1), "length is -1"),
        (lambda: tt.BodyBatch("cart_pole", 2**64), "count is 18446744073709551616"),
        (lambda: tt.Device("cpu", threads=-1), "threads is -1"),
        (lambda: tt.body("pendulum").reset(-1), "seed is -1"),
        (lambda: tt.Field(-1, 1), "sensors is -1"),
        (lambda: tt.BodyBatch("cart_pole", 2).restart([-1], [0]), "instances is .-1., which is out of range"),
        (lambda: tt.Neurons().add(10**5000), "count is a very large number"),
    ],
)
def test_integers_out_of_range_name_their_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    with pytest.raises(TypeError, match="count: "):
        tt.Neurons().add(1.5)


def test_a_missing_file_is_named(tmp_path):
    missing = tmp_path / "missing"
    works = [
        lambda: tt.Genome(missing),
        lambda: tt.Network(missing),
        lambda: tt.Decoder(missing),
        lambda: tt.Recording(missing),
        lambda: tt.body(tmp_path / "missing.plant"),
        lambda: tt.run(tmp_path / "missing.toml"),
        lambda: tt.program(tmp_path / "missing.atlas"),
        lambda: tt.repeat(missing),
        lambda: tt.Field(2, 1, shape=(4, 4, 4, 32)).restore(missing),
    ]
    for work in works:
        with pytest.raises(FileNotFoundError) as caught:
            work()
        assert caught.value.errno == errno.ENOENT and "missing" in str(caught.value.filename), caught.value


def test_bytes_are_no_prompt(tmp_path):
    decoder = tt.Decoder(tt.sample("sample-decoder", tmp_path), context=16)
    for prompt in (b"abc", bytearray(b"abc"), [b"abc"]):
        with pytest.raises(TypeError, match="prompt"):
            decoder.generate(prompt)
    with pytest.raises(TypeError):
        decoder.stream(b"abc")
    with pytest.raises(TypeError, match="bytes are no token numbers"):
        decoder.decode(b"abc")
    assert decoder.decode(np.array(decoder.encode("the cat"))).strip() == "the cat"


def test_arrays_of_a_run_cannot_break_it(tmp_path):
    run = tt.run("cart_pole", brain="lqr", clock="sim", seconds=1, folder=tmp_path)
    recording = tt.Recording(run.folder)
    total = run.rewards.sum()
    for found in (run, recording):
        for name in ("observations", "actions", "rewards", "held", "fallback", "ended", "latency"):
            array = getattr(found, name)
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        found.rewards.dtype = np.uint8
        found.observations.shape = (-1,)
        assert len(found) == 50 and "50 periods" in repr(found)
    assert run.total_reward == total and run.t.shape == (50,)
    assert "50 of" in run._repr_html_()
