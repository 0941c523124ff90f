"""Gymnasium both ways: built-in bodies as environments, and environments as bodies.

Importing this module registers ``tectum/NAME-v0`` for every built-in body::

    import gymnasium, tectum.gym
    env = gymnasium.make("tectum/CartPole-v0")
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from . import ActionChannel, BodySpec, NativeBody, ObservationChannel, body

__all__ = ["BodyEnv", "GymBody"]

_NAMES = {"acrobot": "Acrobot", "cart_pole": "CartPole", "pendulum": "Pendulum", "rig": "Rig", "seeker": "Seeker"}


class BodyEnv(gymnasium.Env[np.ndarray, Any]):
    """A built-in body as an environment.

    Observations are float32 of shape (channels,), without bounds: those of a body's channels are what is expected, not what is possible. A body with one
    action channel of two values has the space ``Discrete(2)``, others a ``Box`` in the units of the body. ``reset(seed=s)`` starts as ``body.reset(s)`` does.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, name: str, start: str | None = None) -> None:
        self.body: NativeBody = body(name, start=start)
        spec = self.body.spec
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(spec.observation),), np.float32)
        low, high = (np.array([getattr(channel, bound) for channel in spec.action], np.float32) for bound in ("low", "high"))
        self._choices = np.array([low, high]) if len(spec.action) == 1 and spec.action[0].discrete else None
        self.action_space = spaces.Box(low, high) if self._choices is None else spaces.Discrete(2)
        self.metadata = {"render_modes": [], "render_fps": round(1.0 / spec.dt)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        start = int(self.np_random.integers(2**31)) if seed is None else seed
        return self.body.reset(start), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        applied = action if self._choices is None else self._choices[int(action)]
        observation, reward, terminated, truncated = self.body.step(applied)
        return observation, reward, terminated, truncated, {}


class GymBody:
    """Any Gymnasium environment with vectors as observations as a body.

    ``dt`` is the time of a step in seconds; without it, it is taken from the environment (``dt``, or ``render_fps`` of its metadata). An action space
    ``Discrete(n)`` is one channel from 0 to n − 1, rounded to a whole number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], dt: float | None = None) -> None:
        self.env = env
        if not isinstance(env.observation_space, spaces.Box) or len(env.observation_space.shape) != 1:
            raise ValueError(f"observation space {env.observation_space}: only a Box of one dimension is supported")
        names = [f"observation_{index}" for index in range(env.observation_space.shape[0])]
        limits = zip(names, np.nan_to_num(env.observation_space.low), np.nan_to_num(env.observation_space.high))
        observation = [ObservationChannel(name, "", float(low), float(high)) for name, low, high in limits]
        self._first: int | None = None
        if isinstance(env.action_space, spaces.Discrete):
            self._first = int(env.action_space.start)
            action = [ActionChannel("action_0", "", 0.0, float(env.action_space.n - 1))]
        elif isinstance(env.action_space, spaces.Box) and len(env.action_space.shape) == 1:
            bounds = enumerate(zip(env.action_space.low, env.action_space.high))
            action = [ActionChannel(f"action_{index}", "", float(low), float(high)) for index, (low, high) in bounds]
        else:
            raise ValueError(f"action space {env.action_space}: only Discrete and a Box of one dimension are supported")
        name = env.spec.id.replace("/", "_").replace("-", "_") if env.spec else type(env.unwrapped).__name__
        self.spec = BodySpec(name, dt or _period(env), observation, action)

    def reset(self, seed: int) -> np.ndarray:
        observation, _ = self.env.reset(seed=seed % 2**31)
        return np.asarray(observation, np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        given: Any = action if self._first is None else self._first + int(round(float(action[0])))
        observation, reward, terminated, truncated, _ = self.env.step(given)
        return np.asarray(observation, np.float32), float(reward), bool(terminated), bool(truncated)


def _period(env: gymnasium.Env[Any, Any]) -> float:
    period = getattr(env.unwrapped, "dt", None)
    if isinstance(period, (int, float)) and period > 0:
        return float(period)
    rate = env.metadata.get("render_fps")
    if not rate:
        raise ValueError("the environment has neither `dt` nor `render_fps`: give dt, the time of a step in seconds")
    return 1.0 / float(rate)


for _name, _title in _NAMES.items():
    gymnasium.register(f"tectum/{_title}-v0", entry_point="tectum.gym:BodyEnv", kwargs={"name": _name})
