import numpy as np
import pytest

import tectum as tt


def test_the_shipped_policy_balances(models):
    for seed in range(5):
        policy = tt.Policy(models / "cart_pole.onnx", "cart_pole")
        run = tt.run_loop(tt.body("cart_pole"), policy, seconds=10, clock="sim", seed=seed)
        assert run.total_reward == 500 and run.end == "completed"


def test_policies_are_checked_against_the_body(models):
    with pytest.raises(ValueError):
        tt.Policy(models / "cart_pole.onnx", "pendulum")
    with pytest.raises(FileNotFoundError):
        tt.Policy(models / "missing.onnx", "cart_pole")


def test_predict_has_the_form_of_stable_baselines(models):
    policy = tt.Policy(models / "cart_pole.onnx", "cart_pole")
    observation = tt.body("cart_pole").reset(1)
    action, state = policy.predict(observation)
    assert action.shape == (1,) and action.dtype == np.float32 and state is None


def test_predict_takes_batches_and_starts_of_episodes(models):
    lqr = tt.brain("lqr", "pendulum")
    seen = np.random.default_rng(1).uniform(-1, 1, (3, 2)).astype(np.float32)
    single = [lqr.predict(row)[0] for row in seen]
    for start in (None, True, False, np.ones(3, bool), np.zeros(3, bool)):
        actions, state = lqr.predict(seen, "state", start)
        np.testing.assert_array_equal(actions, single)
        assert state == "state"
    assert lqr.predict(seen[:1], None, np.array([True]))[0].shape == (1, 1)
    with pytest.raises(ValueError, match="observation has the shape"):
        lqr.predict(np.zeros((3, 3), np.float32))
    with pytest.raises(ValueError, match="observation has the shape"):
        lqr.predict(np.zeros((1, 1, 2), np.float32))


def test_a_network_has_named_inputs_and_outputs(models):
    network = tt.Network(models / "cart_pole.onnx")
    (name, shape), *_ = network.inputs
    outputs = network.run({name: np.zeros(shape, np.float32)})
    assert {key: list(value.shape) for key, value in outputs.items()} == dict(network.outputs)
    with pytest.raises(ValueError, match="has the shape"):
        network.run({name: np.zeros((3, 3), np.float32)})
    with pytest.raises(KeyError, match="no input"):
        network.run({"other": np.zeros(1, np.float32)})
    with pytest.raises(KeyError, match="is missing"):
        network.run({})
