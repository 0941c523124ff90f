"""Vector environments of Gymnasium for Stable-Baselines3::

    import gymnasium, stable_baselines3, tectum.gym, tectum.sb3
    envs = gymnasium.make_vec("tectum/CartPole-v0", num_envs=16, autoreset_mode="SameStep")
    stable_baselines3.PPO("MlpPolicy", tectum.sb3.VectorEnvAdapter(envs)).learn(100_000)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.vec_env import VecEnv  # type: ignore[import-not-found, unused-ignore]

__all__ = ["VectorEnvAdapter"]


class VectorEnvAdapter(VecEnv):  # type: ignore[misc, unused-ignore]
    """A vector environment of Gymnasium as a ``VecEnv``.

    Raises ValueError unless its autoreset mode is ``SAME_STEP``, which is that of Stable-Baselines3.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        mode = envs.metadata.get("autoreset_mode")
        if mode != AutoresetMode.SAME_STEP:
            raise ValueError(f"autoreset mode {mode}: make the environments with autoreset_mode=\"SameStep\"")
        self.envs, self.render_mode = envs, None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)
        self._actions: Any = None
        self._seeds_given: int | None = None

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        self._seeds_given = seed
        return [None if seed is None else seed + k for k in range(self.num_envs)]

    def reset(self) -> np.ndarray:
        observations: np.ndarray = self.envs.reset(seed=self._seeds_given)[0]
        self._seeds_given = None
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, found = self.envs.step(self._actions)
        ended = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for instance in np.flatnonzero(ended):
            infos[instance]["terminal_observation"] = found["final_obs"][instance]
            infos[instance]["TimeLimit.truncated"] = bool(truncated[instance] and not terminated[instance])
        return observations, rewards.astype(np.float32), ended, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: None | int | Iterable[int] = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: None | int | Iterable[int] = None) -> None:
        raise NotImplementedError("the instances of a batch have no attributes of their own")

    def env_method(self, method_name: str, *method_args: Any, indices: None | int | Iterable[int] = None, **method_kwargs: Any) -> list[Any]:
        raise NotImplementedError("the instances of a batch have no methods of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: None | int | Iterable[int] = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
