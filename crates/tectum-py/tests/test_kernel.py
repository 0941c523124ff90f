import numpy as np
import pytest

import tectum as tt

DEVICES = [device["id"] for device in tt.devices() if device["id"] not in ("cpu", "null")]
BINDINGS = [("x", "read", "float32"), ("y", "write", "float32")]


def body(size, index="id.x", argument="@builtin(global_invocation_id) id: vec3<u32>"):
    return f"""@compute @workgroup_size({size})
fn main({argument}) {{ let i = {index}; if i < params.n {{ y[i] = x[i] / (1.0 + abs(x[i])); }} }}"""


def right(x, y, n):
    y[:n] = x[:n] / (1 + np.abs(x[:n]))


def wrong(x, y, n):
    y[:n] = x[:n] / (1 + x[:n] ** 2)


def softsign(twin, size=64, **options):
    return tt.Kernel("softsign", body(size), BINDINGS, [("n", "uint32")], twin, **options)


def linear(twin, size):
    wgsl = body(size, "tectum_linear_index(invocation)", "invocation: TectumInvocation")
    return tt.Kernel("softsign", wgsl, BINDINGS, [("n", "uint32")], twin, preludes=["linear_index"])


def result(kernel, n, device):
    plan = tt.Plan()
    x, y = plan.input("x", n), plan.output("y", n)
    plan.launch(kernel, [x, y], n=n)
    return plan.compile(device=device).run(x=np.ones(n, np.float32))["y"]


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("size", [1, 32, 64, 100, 256])
def test_every_item_is_computed_for_any_size_of_the_workgroup(size, device):
    assert (result(softsign(right, size), 1000, device) == 0.5).all()


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
def test_items_beyond_65535_workgroups_need_the_linear_index(device):
    assert (result(linear(right, 1), 70_000, device) == 0.5).all()
    with pytest.raises(ValueError, match="70000 items are 70000 workgroups of 1.*tectum_linear_index"):
        result(softsign(right, 1), 70_000, device)


def test_a_count_beyond_a_view_is_refused_when_it_is_recorded():
    plan = tt.Plan()
    x, y = plan.input("x", 100), plan.output("y", 64)
    kernel = softsign(right, counts={"n": ["x", "y"]})
    with pytest.raises(ValueError, match="parameter n is 65, and binding y has 64 elements"):
        plan.launch(kernel, [x, y], n=65)
    plan.launch(kernel, [x, y], n=64)
    with pytest.raises(ValueError, match="counts of m"):
        softsign(right, counts={"m": ["x"]})
    with pytest.raises(ValueError, match="n counts z"):
        softsign(right, counts={"n": ["z"]})


def test_a_twin_that_returns_a_value_is_refused():
    for twin in (lambda x, y, n: x / (1 + np.abs(x)), lambda x, y, n: len(y)):
        with pytest.raises(TypeError, match="kernel softsign: its twin returned a value of .*in place"):
            result(softsign(twin), 4, "cpu")
    assert (result(softsign(lambda x, y, n: np.divide(x, 1 + np.abs(x), out=y)), 4, "cpu") == 0.5).all()


CASES = [{"x": np.linspace(0, 1, 7), "y": 7, "n": 7}, tt.KernelCase({"x": np.linspace(-1, 2, 1000), "y": 1000, "n": 1000}, name="wide")]


@pytest.mark.skipif(not DEVICES, reason="no device that runs device code")
def test_a_right_twin_passes_on_every_device():
    check = tt.check_kernel(softsign(right), CASES, tolerance=1e-6)
    assert check.passed and check.kernel == "softsign"
    ran = {(row.device, row.case) for row in check.rows}
    assert {("cpu", "case 0"), ("cpu", "wide"), (DEVICES[0], "case 0"), (DEVICES[0], "wide")} <= ran
    assert all(row.passed and row.element is None and row.differing == 0 for row in check.rows)


@pytest.mark.skipif(not DEVICES, reason="no device that runs device code")
def test_a_wrong_twin_is_named_with_its_first_difference():
    with pytest.raises(tt.MismatchError, match="kernel softsign: .*, wide: y\\[1\\] is ") as raised:
        tt.check_kernel(softsign(wrong), [CASES[1]], tolerance=1e-6)
    rows = raised.value.check.rows
    assert [row.passed for row in rows if row.device == "cpu"] == [True]
    row = next(row for row in rows if row.device == DEVICES[0])
    assert (row.binding, row.element, row.passed) == ("y", 1, False)
    assert row.found != row.expected and 990 < row.differing < 1000


def test_what_is_expected_is_the_reference_of_the_twin_too():
    x = np.linspace(-1, 2, 100, dtype=np.float32)
    case = tt.KernelCase({"x": x, "y": 100, "n": 100}, expected={"y": x / (1 + np.abs(x))}, tolerance=(1e-7, 1e-6))
    assert tt.check_kernel(softsign(right), [case]).passed
    with pytest.raises(tt.MismatchError) as raised:
        tt.check_kernel(softsign(wrong), [case], devices=[])
    (row,) = raised.value.check.rows
    assert (row.device, row.binding, row.passed) == ("cpu", "y", False)
    element = row.element
    assert row.found == pytest.approx(x[element] / (1 + x[element] ** 2)) and row.expected == pytest.approx(x[element] / (1 + abs(x[element])))
    assert 90 < row.differing < 100
    with pytest.raises(tt.UnsupportedError, match="nothing was compared"):
        tt.check_kernel(softsign(right), [CASES[0]], devices=["cpu"])


def test_cases_that_are_not_those_of_the_kernel_are_refused():
    kernel = softsign(right)
    for arguments, error, message in [
        ({"x": [1.0], "y": 1}, KeyError, "parameter n is missing"),
        ({"x": [1.0], "n": 1}, KeyError, "array y is missing"),
        ({"x": [1.0], "y": 1, "n": 1, "z": 1}, KeyError, "z is no argument"),
    ]:
        with pytest.raises(error, match=message):
            tt.check_kernel(kernel, [arguments])
    with pytest.raises(KeyError, match="x is no argument, or no result"):
        tt.check_kernel(kernel, [tt.KernelCase({"x": [1.0], "y": 1, "n": 1}, expected={"x": [1.0]})])
    with pytest.raises(ValueError, match="no cases"):
        tt.check_kernel(kernel, [])
    with pytest.raises(ZeroDivisionError):
        tt.check_kernel(softsign(lambda x, y, n: 1 // 0), [CASES[0]])


def test_sequences_that_state_a_huge_length_are_refused():
    kernel = softsign(right)
    with pytest.raises(MemoryError):
        tt.check_kernel(kernel, range(2**62))
    with pytest.raises(MemoryError):
        tt.check_kernel(kernel, [{"n": 4}], devices=range(2**62))
