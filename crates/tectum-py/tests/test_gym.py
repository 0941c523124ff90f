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
