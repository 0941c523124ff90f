import numpy as np
import pytest

import tectum as tt

WGSL = """
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < params.count; i += groups.x * 256u) { y[i] = params.factor * x[i] + y[i]; }
}
"""
BINDINGS = [("x", "read", "float32"), ("y", "read_write", "float32")]
PARAMS = [("count", "uint32"), ("factor", "float32")]


def axpy(twin):
    return tt.Kernel("axpy", WGSL, BINDINGS, PARAMS, twin)


def twin(x, y, count, factor):
    y[:count] += factor * x[:count]


def test_a_kernel_accumulates_in_a_state():
    plan = tt.Plan("sums")
    x, total, y = plan.input("x", 1000), plan.state("total", 1000), plan.output("y", 1000)
    plan.launch(axpy(twin), [x, total], count=1000, factor=0.5)
    plan.unary("abs", total, y)
    run = plan.compile()
    values = np.linspace(-1, 1, 1000, dtype=np.float32)
    run.run(x=values)
    np.testing.assert_allclose(run.run()["y"], np.abs(values), rtol=1e-6)
    np.testing.assert_allclose(run.read_state("total"), values, rtol=1e-6)
    run.write_state("total", np.zeros(1000))
    np.testing.assert_allclose(run.run()["y"], np.abs(0.5 * values), rtol=1e-6)
    assert run.receipt.runs == 3
    kernels = [entry["kernel"] for entry in run.receipt.to_dict()["code"]]
    assert "axpy" in kernels


def test_what_a_twin_raises_is_raised():
    def broken(x, y, count, factor):
        raise ArithmeticError("no")

    plan = tt.Plan()
    x, total = plan.input("x", 4), plan.state("total", 4)
    plan.launch(axpy(broken), [x, total], count=4, factor=1.0)
    run = plan.compile()
    with pytest.raises(ArithmeticError, match="no"):
        run.run(x=np.zeros(4))


def test_a_twin_that_resizes_an_array_is_refused():
    plan = tt.Plan()
    x, total = plan.input("x", 4), plan.state("total", 4)
    plan.launch(axpy(lambda x, y, **numbers: y.resize(2, refcheck=False)), [x, total], count=4, factor=1.0)
    with pytest.raises(ValueError, match="2 elements in place of 4"):
        plan.compile().run(x=np.zeros(4))


def test_a_twin_that_runs_its_own_plan_is_refused():
    runs = []
    plan = tt.Plan()
    x, total = plan.input("x", 4), plan.state("total", 4)
    plan.launch(axpy(lambda **arguments: runs[0].run()), [x, total], count=4, factor=1.0)
    runs.append(plan.compile())
    with pytest.raises(RuntimeError, match="busy with a call"):
        runs[0].run(x=np.zeros(4))


def test_refusals_name_what_is_wrong():
    with pytest.raises(ValueError, match="access"):
        tt.Kernel("k", WGSL, [("x", "reads", "float32")], PARAMS, twin)
    with pytest.raises(ValueError, match="dtype"):
        tt.Kernel("k", WGSL, [("x", "read", "float16")], PARAMS, twin)
    with pytest.raises(ValueError):
        tt.Kernel("k", "fn main() {", BINDINGS, PARAMS, twin)
    plan = tt.Plan()
    x, total = plan.input("x", 4), plan.state("total", 4)
    with pytest.raises(KeyError, match="factor is missing"):
        plan.launch(axpy(twin), [x, total], count=4)
    with pytest.raises(KeyError, match="no parameter"):
        plan.launch(axpy(twin), [x, total], count=4, factor=1.0, shift=2)
    with pytest.raises(ValueError):
        plan.launch(axpy(twin), [x], count=4, factor=1.0)
    with pytest.raises(ValueError):
        plan.launch(axpy(twin), [total, x], count=4, factor=1.0)
    plan.launch(axpy(twin), [x, total], count=4, factor=1.0)
    run = plan.compile()
    with pytest.raises(ValueError, match="compiled already"):
        plan.compile()
    with pytest.raises(ValueError, match="x has 3 elements, needs 4"):
        run.run(x=np.zeros(3))
    with pytest.raises(KeyError, match="no input"):
        run.run(z=np.zeros(4))
