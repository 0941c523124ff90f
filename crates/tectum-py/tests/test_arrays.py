"""Arrays in and out: what is copied, and what other libraries can read."""

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
