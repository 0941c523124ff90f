import copy
import pathlib
import pickle
import sys

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
    check_env(gymnasium.make(f"tectum/{name}-v0", render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_every_episode_ends_by_truncation_at_the_latest(name):
    env = gymnasium.make(f"tectum/{name}-v0")
    steps = {"Acrobot": 500, "CartPole": 500, "Pendulum": 200, "Rig": 1500, "Seeker": 1000}[name]
    assert env.spec.max_episode_steps == steps
    env.reset(seed=1)
    still = np.zeros(env.action_space.shape, np.float32) if env.action_space.shape else 0
    ends = [env.step(still)[2:4] for _ in range(steps)]
    assert ends[-1][1] and not any(truncated for _, truncated in ends[:-1])


def middle(picture, color):
    """The mean row and column of the pixels of a colour."""
    rows, columns = np.nonzero((picture == color).all(axis=2))
    return rows.mean(), columns.mean()


CART, POLE = (36, 61, 92), (201, 142, 83)


def test_pictures_show_the_state():
    body = tt.body("cart_pole")
    pictures = {}
    for place in (-1.0, 1.0):
        body.state = [place, 0.0, 0.1, 0.0, 0.0]
        pictures[place] = body.render()
        assert pictures[place].shape == (400, 600, 3) and pictures[place].dtype == np.uint8
    (row, left), (_, right) = (middle(pictures[place], CART) for place in (-1.0, 1.0))
    # The region is 6.8 m wide: 600 pixels.
    assert right - left == pytest.approx(2 * 600 / 6.8, abs=2) and row > 200
    pole = middle(pictures[1.0], POLE)
    assert pole[0] < row and pole[1] > right, "the pole stands on the cart and leans to the right"
    drawing = body.schematic
    assert {shape["shape"] for shape in drawing["shapes"]} == {"line", "disc", "rectangle"} and drawing["max"][0] == pytest.approx(3.4)
    for size in ((0, 5), (5, 5000)):
        with pytest.raises(ValueError, match="each needs 1 to 4096"):
            body.render(*size)


def test_a_body_of_equations_has_a_gauge_for_each_channel():
    body = tt.body(str(pathlib.Path(__file__).with_name("inverted_pendulum.plant")))
    discs = [shape for shape in body.schematic["shapes"] if shape["shape"] == "disc"]
    assert len(discs) == len(body.spec.observation) and body.render(60, 40).shape == (40, 60, 3)


def test_environments_render_in_their_modes(monkeypatch):
    env = gymnasium.make("tectum/Pendulum-v0", render_mode="rgb_array")
    env.reset(seed=1)
    np.testing.assert_array_equal(env.render(), env.unwrapped.body.render())
    env = tectum.gym.BodyEnv("pendulum")
    env.reset(seed=1)
    assert env.render() is None and env.metadata["render_fps"] == 20
    with pytest.raises(ValueError, match="needs None or one of human, rgb_array"):
        tectum.gym.BodyEnv("cart_pole", render_mode="ansi")
    envs = gymnasium.make_vec("tectum/Pendulum-v0", num_envs=2, render_mode="rgb_array")
    envs.reset(seed=1)
    first, second = envs.render()
    assert (first != second).any()
    body = tt.body("pendulum")
    body.state = envs.unwrapped.bodies.states[1]
    np.testing.assert_array_equal(second, body.render())


def test_a_window_shows_the_body(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("tectum/CartPole-v0", render_mode="human")
    env.reset(seed=1)
    env.step(0)
    shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
    np.testing.assert_array_equal(shown, env.unwrapped.body.render())
    copied = copy.deepcopy(env.unwrapped)
    np.testing.assert_array_equal(copied.body.observe(), env.unwrapped.body.observe())
    env.close()


def test_a_missing_window_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match="pip install pygame"):
        tectum.gym.BodyEnv("cart_pole", render_mode="human").reset(seed=1)


def test_videos_are_recorded(tmp_path):
    pytest.importorskip("moviepy")
    env = gymnasium.wrappers.RecordVideo(gymnasium.make("tectum/CartPole-v0", render_mode="rgb_array"), str(tmp_path), episode_trigger=lambda _: True)
    env.reset(seed=1)
    for _ in range(20):
        env.step(0)
    env.close()
    (video,) = tmp_path.glob("*.mp4")
    assert video.stat().st_size > 1000


@pytest.mark.parametrize("name", NAMES)
def test_copies_of_environments_go_on_alike(name):
    env = gymnasium.make(f"tectum/{name}-v0")
    env.reset(seed=5)
    env.action_space.seed(1)
    for _ in range(3):
        env.step(env.action_space.sample())
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env.unwrapped))]
    for _ in range(5):
        action = env.action_space.sample()
        expected, *rest = env.step(action)
        for copied in copies:
            found, *others = copied.step(action)
            np.testing.assert_array_equal(found, expected)
            assert others[0] == rest[0]
    # The generators are copied too: a reset without a seed starts alike.
    np.testing.assert_array_equal(copies[0].reset()[0], env.reset()[0])


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
    with pytest.raises(ValueError, match="only a Box and a Dict of Boxes"):
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
