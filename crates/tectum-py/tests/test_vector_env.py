import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402

import tectum.gym  # noqa: E402

NAMES = ["Acrobot", "CartPole", "Pendulum", "Rig", "Seeker"]
COUNT, STEPS = 6, 60


def pair(name, mode, limit):
    """The batch, and as many environments one by one, with the same limit of steps."""
    spec = f"tectum/{name}-v0"
    single = lambda: gymnasium.make(spec, max_episode_steps=limit)  # noqa: E731
    return gymnasium.make_vec(spec, COUNT, autoreset_mode=mode, max_episode_steps=limit), SyncVectorEnv([single] * COUNT, autoreset_mode=mode)


def same(found, expected, what):
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=what)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("name", NAMES)
def test_steps_agree_with_environments_one_by_one(name, mode):
    batch, single = pair(name, mode, 25)
    same(batch.reset(seed=7)[0], single.reset(seed=7)[0], "first observations")
    batch.action_space.seed(3)
    ended = 0
    for step in range(STEPS):
        actions = batch.action_space.sample()
        # Float32 drifts from float64; each step is compared from the same state.
        batch.bodies.states = np.array([env.unwrapped.body.state for env in single.envs])
        found, expected = batch.step(actions), single.step(actions)
        for what, *arrays in zip(("observations", "rewards", "terminated", "truncated"), found, expected):
            same(*arrays, f"{what} of step {step}")
        assert found[4].keys() == expected[4].keys(), step
        if "final_obs" in expected[4]:
            np.testing.assert_array_equal(found[4]["_final_obs"], expected[4]["_final_obs"])
            for mine, other in zip(found[4]["final_obs"], expected[4]["final_obs"]):
                assert (mine is None) == (other is None)
                if mine is not None:
                    same(mine, other, f"final observation of step {step}")
        done = found[2] | found[3]
        ended += done.sum()
        if mode == AutoresetMode.DISABLED and done.any():
            with pytest.raises(gymnasium.error.ResetNeeded):
                batch.step(actions)
            same(batch.reset(options={"reset_mask": done.copy()})[0], single.reset(options={"reset_mask": done.copy()})[0], "a reset of some")
    assert ended >= COUNT


def test_a_vector_environment_is_that_of_make_vec():
    envs = gymnasium.make_vec("tectum/CartPole-v0", num_envs=32)
    assert isinstance(envs, tectum.gym.BodyVectorEnv) and envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observations, infos = envs.reset(seed=[*range(32)])
    assert observations.shape == (32, 4) and observations.dtype == np.float32 and infos == {}
    again, _ = envs.reset(seed=0)
    np.testing.assert_array_equal(observations, again)


def test_refusals():
    envs = gymnasium.make_vec("tectum/CartPole-v0", num_envs=2)
    with pytest.raises(ValueError, match="1 seeds for 2"):
        envs.reset(seed=[1])
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": np.zeros(2, bool)})
    with pytest.raises(ValueError, match="cannot reshape|actions"):
        envs.reset()
        envs.step(np.zeros(3, int))
    with pytest.raises(ValueError):
        gymnasium.make_vec("tectum/CartPole-v0", num_envs=0)
