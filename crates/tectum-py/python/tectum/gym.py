"""Gymnasium both ways: built-in bodies as environments, and environments as bodies.

Importing this module registers ``tectum/NAME-v0`` for every built-in body, alone and as a vector environment on a device::

    import gymnasium, tectum.gym
    env = gymnasium.make("tectum/CartPole-v0")
    envs = gymnasium.make_vec("tectum/CartPole-v0", num_envs=4096, device="cpu")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from . import ActionChannel, BodyBatch, BodySpec, Device, NativeBody, ObservationChannel, body

__all__ = ["BodyEnv", "BodyVectorEnv", "GymBody"]

# The maximum steps of an episode are those of Gymnasium's environments of the same bodies; of the others, a minute and 100 seconds.
_BODIES = {"acrobot": ("Acrobot", 500), "cart_pole": ("CartPole", 500), "pendulum": ("Pendulum", 200), "rig": ("Rig", 1500), "seeker": ("Seeker", 1000)}

Start = Literal["hanging", "random"]
# Width and height of a picture.
_SIZE = (600, 400)


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


def _check_render_mode(render_mode: str | None, modes: list[str]) -> None:
    if render_mode is not None and render_mode not in modes:
        raise ValueError(f"render_mode is {render_mode!r}, needs None or one of {', '.join(modes)}")


class _Window:
    """A window that shows pictures at a rate."""

    def __init__(self, title: str, rate: int) -> None:
        try:
            import pygame  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            raise DependencyNotInstalled("render_mode 'human' needs pygame: pip install pygame") from error
        self._pygame, self._rate = pygame, rate
        pygame.display.init()
        self._surface = pygame.display.set_mode(_SIZE)
        pygame.display.set_caption(title)
        self._clock = pygame.time.Clock()

    def show(self, picture: np.ndarray) -> None:
        self._surface.blit(self._pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        self._pygame.event.pump()
        self._clock.tick(self._rate)
        self._pygame.display.flip()

    def close(self) -> None:
        self._pygame.display.quit()


class BodyEnv(gymnasium.Env[np.ndarray, Any]):
    """A built-in body as an environment.

    Observations are float32 of shape (channels,), without bounds: those of a body's channels are what is expected, not what is possible. A body with one
    action channel of two values has the space ``Discrete(2)``, others a ``Box`` in the units of the body. ``reset(seed=s)`` starts as ``body.reset(s)`` does.

    ``render_mode="rgb_array"`` gives pictures of the body's schematic, uint8 of shape (400, 600, 3); ``"human"`` shows them in a window, which needs pygame.
    Environments can be copied and pickled; a copy has no window until it shows something.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"]}

    def __init__(self, name: str, start: Start | None = None, render_mode: str | None = None) -> None:
        _check_render_mode(render_mode, type(self).metadata["render_modes"])
        self.render_mode = render_mode
        self._window: _Window | None = None
        self.body: NativeBody = body(name, start=start)
        self._spaces = _Spaces(self.body.spec)
        self.observation_space = self._spaces.observation
        self.action_space = self._spaces.action
        self.metadata = {**type(self).metadata, "render_fps": round(1.0 / self.body.spec.dt)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        start = int(self.np_random.integers(2**31)) if seed is None else seed
        observation = self.body.reset(start)
        if self.render_mode == "human":
            self.render()
        return observation, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated = self.body.step(self._spaces.applied(action))
        if self.render_mode == "human":
            self.render()
        return observation, reward, terminated, truncated, {}

    def render(self) -> np.ndarray | None:
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode: make the environment with render_mode=\"rgb_array\" or \"human\"")
            return None
        picture = self.body.render(*_SIZE)
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            self._window = _Window(self.body.spec.name, self.metadata["render_fps"])
        self._window.show(picture)
        return None

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_window": None}


class BodyVectorEnv(VectorEnv[np.ndarray, Any, np.ndarray]):
    """Many instances of a body as one vector environment, stepped at once on a device in float32.

    Resets, autoreset modes and seeds are those of ``SyncVectorEnv`` over ``BodyEnv``: instance k starts as ``body.reset(seed + k)`` does, and draws the
    starts of later episodes from its own generator. ``autoreset_mode`` is an ``AutoresetMode`` or its name. ``render()`` with ``render_mode="rgb_array"`` gives
    a picture of each instance.
    """

    def __init__(
        self,
        name: str,
        num_envs: int = 1,
        *,
        start: Start | None = None,
        device: str | Device = "cpu",
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        _check_render_mode(render_mode, ["rgb_array"])
        self.num_envs, self.render_mode = num_envs, render_mode
        self.bodies = BodyBatch(name, num_envs, start=start, device=device)
        self._spaces = _Spaces(self.bodies.spec)
        self.single_observation_space, self.single_action_space = self._spaces.observation, self._spaces.action
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": round(1.0 / self.bodies.spec.dt), "autoreset_mode": self.autoreset_mode}
        self._drawn = body(name, start=start)
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

    def render(self) -> tuple[np.ndarray, ...] | None:
        if self.render_mode is None:
            return None
        pictures = []
        for state in self.bodies.states:
            self._drawn.state = state
            pictures.append(self._drawn.render(*_SIZE))
        return tuple(pictures)


class GymBody:
    """Any Gymnasium environment as a body, whose observations are a Box or a Dict of them.

    A vector becomes one channel for each number; a Box of more dimensions, such as a picture, and each entry of a Dict become one channel, an array. ``dt`` is the time of a step in seconds; without it, it is taken from the environment (``dt``, or ``render_fps`` of its metadata). An action space
    ``Discrete(n)`` is one channel from 0 to n − 1, rounded to a whole number.

    A brain that was made for other numbers than the environment shows needs ``observe``, a function from the environment's observation to those of
    ``channels``, as a vector or as a dict by channel::

        angle_of = lambda seen: [np.arctan2(seen[1], seen[0]), seen[2]]
        body = GymBody(gymnasium.make("Pendulum-v1"), observe=angle_of, channels=tectum.body("pendulum").spec.observation)
        tectum.run_loop(body, tectum.brain("mppi", "pendulum"), seconds=10, clock="sim")
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        dt: float | None = None,
        *,
        observe: Callable[[Any], Any] | None = None,
        channels: Sequence[ObservationChannel] | None = None,
    ) -> None:
        self.env = env
        if (observe is None) != (channels is None):
            raise ValueError("observe and channels: give both or none")
        self._observe = observe or _as_channels(env.observation_space)
        observation = _channels(env.observation_space) if channels is None else list(channels)
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

    def reset(self, seed: int) -> Any:
        observation, _ = self.env.reset(seed=seed % 2**31)
        return self._observe(observation)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool]:
        given: Any = action if self._first is None else self._first + int(round(float(action[0])))
        observation, reward, terminated, truncated, _ = self.env.step(given)
        return self._observe(observation), float(reward), bool(terminated), bool(truncated)


def _channels(space: spaces.Space[Any]) -> list[ObservationChannel]:
    """The channels of a Box or of a Dict of Boxes."""
    if isinstance(space, spaces.Dict):
        return [_array_channel(name, box) for name, box in space.items()]
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        return [_array_channel("observation", space)]
    low, high = _expected(space)
    return [ObservationChannel(f"observation_{index}", "", float(low[index]), float(high[index])) for index in range(space.shape[0])]


def _array_channel(name: str, space: spaces.Space[Any]) -> ObservationChannel:
    if not isinstance(space, spaces.Box):
        raise ValueError(f"observation space {space}: only a Box and a Dict of Boxes are supported; others need observe and channels")
    low, high = _expected(space)
    dtype = space.dtype if space.dtype in (np.uint8, np.int8) else np.float32
    return ObservationChannel(name, "", float(low.min()), float(high.max()), shape=space.shape, dtype=dtype)


def _expected(space: spaces.Box) -> tuple[np.ndarray, np.ndarray]:
    """The range of each element; without bounds it is what is expected, -1 to 1."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    known = np.isfinite(low) & np.isfinite(high) & (np.abs(low) < 1e30) & (np.abs(high) < 1e30)
    return np.where(known, low, -1.0), np.where(known, high, 1.0)


def _as_channels(space: spaces.Space[Any]) -> Callable[[Any], Any]:
    """From an observation of a space to that of its channels."""
    if isinstance(space, spaces.Dict):
        return lambda seen: {name: _narrow(value) for name, value in seen.items()}
    return lambda seen: _narrow(seen).reshape(-1)


def _narrow(value: Any) -> np.ndarray:
    """The array in a type that channels have: environments in float64 lose digits."""
    array = np.asarray(value)
    return array if array.dtype in (np.uint8, np.int8) else array.astype(np.float32)


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
