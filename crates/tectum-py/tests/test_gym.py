import pathlib

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import tectum as tt  # noqa: E402
import tectum.gym  # noqa: E402

NAMES = ["Acrobot", "CartPole", "Pendulum", "Rig", "Seeker"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_environments_pass_the_checker(name):
    check_env(gymnasium.make(f"tectum/{name}-v0").unwrapped, skip_render_check=True)


def test_environments_start_as_bodies_do():
    observation, _ = gymnasium.make("tectum/CartPole-v0").reset(seed=5)
    np.testing.assert_array_equal(observation, tt.body("cart_pole").reset(5))


def test_a_policy_acts_in_the_environment_of_its_body(models):
    policy = tt.Policy(models / "cart_pole.onnx", "cart_pole")
    env = gymnasium.make("tectum/CartPole-v0", render_mode=None)
    observation, _ = env.unwrapped.reset(seed=1)
    for _ in range(50):
        observation, _, terminated, _, _ = env.unwrapped.step(policy.predict(observation)[0])
        assert not terminated
    # A choice by its number is the action with the number's force.
    first, second = tt.body("cart_pole"), tectum.gym.BodyEnv("cart_pole")
    first.reset(2), second.reset(seed=2)
    np.testing.assert_array_equal(first.step([10.0])[0], second.step(1)[0])
    with pytest.raises(ValueError, match="render_mode"):
        tectum.gym.BodyEnv("cart_pole", render_mode="human")
    assert gymnasium.make_vec("tectum/CartPole-v0", num_envs=2, render_mode=None).num_envs == 2


def test_an_environment_is_a_body():
    class Still:
        def tick(self, observation):
            return [0.0]

    body = tectum.gym.GymBody(gymnasium.make("Pendulum-v1"))
    assert body.spec.dt == pytest.approx(0.05) and body.spec.action[0].high == 2.0
    run = tt.run_loop(body, Still(), seconds=1, clock="sim", seed=3)
    expected, _ = gymnasium.make("Pendulum-v1").reset(seed=3)
    np.testing.assert_array_equal(run.observations[0], expected)
    with pytest.raises(ValueError, match="only a Box of one dimension"):
        tectum.gym.GymBody(gymnasium.make("Blackjack-v1"))


def angle_and_speed(seen):
    return [np.arctan2(seen[1], seen[0]), seen[2]]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mppi_balances_the_pendulum_of_gymnasium(seed):
    env = gymnasium.make("Pendulum-v1", max_episode_steps=1000)
    body = tectum.gym.GymBody(env, observe=angle_and_speed, channels=tt.body("pendulum").spec.observation)
    run = tt.run_loop(body, tt.brain("mppi", "pendulum"), seconds=12, clock="sim", seed=seed)
    assert (np.abs(run.observations[-60:, 0]) < 0.2).all()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mppi_balances_the_inverted_pendulum_of_mujoco(seed):
    pytest.importorskip("mujoco")
    pytest.importorskip("imageio")
    model = str(pathlib.Path(__file__).with_name("inverted_pendulum.plant"))
    body = tectum.gym.GymBody(gymnasium.make("InvertedPendulum-v5"))
    run = tt.run_loop(body, tt.brain("mppi", model), seconds=40, clock="sim", seed=seed)
    # An episode of the environment has 1,000 steps.
    assert run.total_reward == 1000.0 and np.abs(run.observations[:, 1]).max() < 0.02


def test_ppo_of_stable_baselines3_learns_on_the_batch():
    ppo = pytest.importorskip("stable_baselines3").PPO
    import tectum.sb3

    envs = tectum.sb3.VectorEnvAdapter(gymnasium.make_vec("tectum/CartPole-v0", num_envs=16, autoreset_mode="SameStep"))
    envs.seed(1)
    settings = {"n_steps": 128, "batch_size": 256, "n_epochs": 10, "learning_rate": 1e-3, "gamma": 0.98, "gae_lambda": 0.8}
    model = ppo("MlpPolicy", envs, seed=1, device="cpu", **settings)
    model.learn(40_000)
    single, returns = gymnasium.make("tectum/CartPole-v0"), []
    for seed in range(10):
        observation, _ = single.reset(seed=1000 + seed)
        ended, total = False, 0.0
        while not ended:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = single.step(action)
            total, ended = total + reward, terminated or truncated
        returns.append(total)
    assert np.mean(returns) >= 475
    with pytest.raises(ValueError, match="SameStep"):
        tectum.sb3.VectorEnvAdapter(gymnasium.make_vec("tectum/CartPole-v0", num_envs=2))
