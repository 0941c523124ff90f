"""Gymnasium both ways: built-in bodies as environments, and environments as bodies.

Importing this module registers ``tectum/NAME-v0`` for every built-in body, alone and as a vector environment on a device::

    import gymnasium, tectum.gym
    env = gymnasium.make("tectum/CartPole-v0")
    envs = gymnasium.make_vec("tectum/CartPole-v0", num_envs=4096, device="cpu")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from . import ActionChannel, BodyBatch, BodySpec, Device, NativeBody, ObservationChannel, body

__all__ = ["BodyEnv", "BodyVectorEnv", "GymBody"]

# The maximum steps of an episode are those of Gymnasium's environments of the same bodies.
_BODIES = {"acrobot": ("Acrobot", 500), "cart_pole": ("CartPole", 500), "pendulum": ("Pendulum", 200), "rig": ("Rig", None), "seeker": ("Seeker", None)}


class _Spaces:
    """The spaces of a body, and what its action channels receive."""

    def __init__(self, spec: BodySpec) -> None:
        self.observation = spaces.Box(-np.inf, np.inf, (len(spec.observation),), np.float32)
        low, high = (np.array([getattr(channel, bound) for channel in spec.action], np.float32) for bound in ("low", "high"))
        self.choices = np.array([low, high]) if len(spec.action) == 1 and spec.action[0].discrete else None
        self.action: spaces.Space[Any] = spaces.Box(low, high) if self.choices is None else spaces.Discrete(2)

    def applied(self, action: Any) -> Any:
        """What the body receives: a choice by its number, or the numbers of its channels, as brains give them."""
        if self.choices is None or np.asarray(action).dtype.kind == "f":
            return action
        return self.choices[action]


def _check_render_mode(render_mode: str | None) -> None:
    if render_mode is not None:
        raise ValueError(f"render_mode is {render_mode!r}: bodies are not drawn, only None is possible")


class BodyEnv(gymnasium.Env[np.ndarray, Any]):
    """A built-in body as an environment.

    Observations are float32 of shape (channels,), without bounds: those of a body's channels are what is expected, not what is possible. A body with one
    action channel of two values has the space ``Discrete(2)``, others a ``Box`` in the units of the body. ``reset(seed=s)`` starts as ``body.reset(s)`` does.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, name: str, start: str | None = None, render_mode: str | None = None) -> None:
        _check_render_mode(render_mode)
        self.render_mode = render_mode
        self.body: NativeBody = body(name, start=start)
        self._spaces = _Spaces(self.body.spec)
        self.observation_space = self._spaces.observation
        self.action_space = self._spaces.action
        self.metadata = {"render_modes": [], "render_fps": round(1.0 / self.body.spec.dt)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        start = int(self.np_random.integers(2**31)) if seed is None else seed
        return self.body.reset(start), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated = self.body.step(self._spaces.applied(action))
        return observation, reward, terminated, truncated, {}


class BodyVectorEnv(VectorEnv[np.ndarray, Any, np.ndarray]):
    """Many instances of a body as one vector environment, stepped at once on a device in float32.

    Resets, autoreset modes and seeds are those of ``SyncVectorEnv`` over ``BodyEnv``: instance k starts as ``body.reset(seed + k)`` does, and draws the
    starts of later episodes from its own generator. ``autoreset_mode`` is an ``AutoresetMode`` or its name.
    """

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        *,
        start: str | None = None,
        device: str | Device = "cpu",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        _check_render_mode(render_mode)
        self.num_envs = num_envs
        self.bodies = BodyBatch(name, num_envs, start=start, device=device)
        self._spaces = _Spaces(self.bodies.spec)
        self.single_observation_space, self.single_action_space = self._spaces.observation, self._spaces.action
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "render_fps": round(1.0 / self.bodies.spec.dt), "autoreset_mode": self.autoreset_mode}
        self._max_steps = max_episode_steps
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._observations = np.zeros((num_envs, len(self.bodies.spec.observation)), np.float32)
        self._steps = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, np.bool_)

    def _restart(self, instances: np.ndarray, seeds: Sequence[int | None]) -> None:
        """Resets instances, each by its seed or, without one, by the next number of its generator."""
        starts = []
        for instance, seed in zip(instances, seeds):
            generator = self._generators[instance]
            if generator is None or seed is not None:
                generator, _ = gymnasium.utils.seeding.np_random(seed)
                self._generators[instance] = generator
            starts.append(int(generator.integers(2**31)) if seed is None else seed)
        self._observations[instances] = self.bodies.restart(instances.tolist(), starts)
        self._steps[instances] = 0
        self._ended[instances] = False

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Resets all instances, or those of the boolean array ``options["reset_mask"]``."""
        mask = (options or {}).get("reset_mask")
        if mask is not None and (not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any()):
            raise ValueError(f"reset_mask: a boolean array of shape ({self.num_envs},) with at least one True is needed")
        if seed is None or isinstance(seed, (int, np.integer)):
            seeds: Sequence[int | None] = [None if seed is None else int(seed) + k for k in range(self.num_envs)]
        elif len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
        else:
            seeds = seed
        instances = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        self._restart(instances, [seeds[int(instance)] for instance in instances])
        return self._observations.copy(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        before = self._ended.copy()
        if self.autoreset_mode == AutoresetMode.DISABLED and before.any():
            raise ResetNeeded(f"environments {np.flatnonzero(before).tolist()} have ended: reset them by options={{'reset_mask': mask}}")
        applied = np.asarray(self._spaces.applied(np.asarray(actions)), np.float32).reshape(self.num_envs, -1)
        self._observations, rewards, terminated = self.bodies.step(applied)
        self._steps += 1
        truncated = self._steps >= self._max_steps if self._max_steps else np.zeros(self.num_envs, np.bool_)
        if self.autoreset_mode == AutoresetMode.NEXT_STEP and before.any():
            again = np.flatnonzero(before)
            self._restart(again, [None] * len(again))
            rewards[again], terminated[again], truncated[again] = 0.0, False, False
        self._ended = terminated | truncated
        infos: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._ended.any():
            done, ended = np.flatnonzero(self._ended), self._ended
            for instance in done:
                infos = self._add_info(infos, {"final_obs": self._observations[instance].copy(), "final_info": {}}, int(instance))
            self._restart(done, [None] * len(done))
            self._ended = ended
        return self._observations.copy(), rewards, terminated, truncated, infos


class GymBody:
    """Any Gymnasium environment with vectors as observations as a body.

    ``dt`` is the time of a step in seconds; without it, it is taken from the environment (``dt``, or ``render_fps`` of its metadata). An action space
    ``Discrete(n)`` is one channel from 0 to n − 1, rounded to a whole number.

    A brain that was made for other numbers than the environment shows needs ``observe``, a function from the environment's observation to the numbers of
    ``channels``::

        angle_of = lambda seen: [np.arctan2(seen[1], seen[0]), seen[2]]
        body = GymBody(gymnasium.make("Pendulum-v1"), observe=angle_of, channels=tectum.body("pendulum").spec.observation)
        tectum.run_loop(body, tectum.brain("mppi", "pendulum"), seconds=10, clock="sim")
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        dt: float | None = None,
        *,
        observe: Callable[[np.ndarray], Any] | None = None,
        channels: Sequence[ObservationChannel] | None = None,
    ) -> None:
        self.env = env
        if (observe is None) != (channels is None):
            raise ValueError("observe and channels: give both or none")
        self._observe = observe or (lambda seen: seen)
        if channels is None:
            if not isinstance(env.observation_space, spaces.Box) or len(env.observation_space.shape) != 1:
                raise ValueError(f"observation space {env.observation_space}: only a Box of one dimension is supported; others need observe and channels")
            names = [f"observation_{index}" for index in range(env.observation_space.shape[0])]
            low, high = env.observation_space.low, env.observation_space.high
            # Without bounds, the range of a channel is what is expected: -1 to 1 by default.
            known = np.isfinite(low) & np.isfinite(high) & (np.abs(low) < 1e30) & (np.abs(high) < 1e30)
            limits = zip(names, np.where(known, low, -1.0), np.where(known, high, 1.0))
            channels = [ObservationChannel(name, "", float(low), float(high)) for name, low, high in limits]
        observation = list(channels)
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
        return np.asarray(self._observe(observation), np.float32)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        given: Any = action if self._first is None else self._first + int(round(float(action[0])))
        observation, reward, terminated, truncated, _ = self.env.step(given)
        return np.asarray(self._observe(observation), np.float32), float(reward), bool(terminated), bool(truncated)


def _period(env: gymnasium.Env[Any, Any]) -> float:
    period = getattr(env.unwrapped, "dt", None)
    if isinstance(period, (int, float)) and period > 0:
        return float(period)
    rate = env.metadata.get("render_fps")
    if not rate:
        raise ValueError("the environment has neither `dt` nor `render_fps`: give dt, the time of a step in seconds")
    return 1.0 / float(rate)


for _name, (_title, _steps) in _BODIES.items():
    gymnasium.register(
        f"tectum/{_title}-v0",
        entry_point="tectum.gym:BodyEnv",
        vector_entry_point="tectum.gym:BodyVectorEnv",
        max_episode_steps=_steps,
        kwargs={"name": _name},
    )
