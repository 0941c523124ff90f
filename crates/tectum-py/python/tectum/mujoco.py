"""MuJoCo models as bodies in this process, stepped by the same program that the command runs in a process of its own."""

from __future__ import annotations

import sys
import types
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._tectum import ActionChannel, BodySpec, ObservationChannel, mujoco_program

__all__ = ["MujocoBody"]

_PROGRAM = "tectum._mujoco_program"


def _program() -> types.ModuleType:
    """The program, executed once as a module."""
    if _PROGRAM not in sys.modules:
        module = types.ModuleType(_PROGRAM)
        exec(compile(mujoco_program(), "mujoco_body.py", "exec"), module.__dict__)
        sys.modules[_PROGRAM] = module
    return sys.modules[_PROGRAM]


class MujocoBody:
    """A MuJoCo model (MJCF, URDF or MJB) as a body; it needs the package ``mujoco``.

    The keywords are the keys of ``[body]`` in a scenario, ``docs/policies.md`` explains them: ``period`` in seconds, ``keyframe``, ``channels``, ``base``,
    ``camera``, ``time_limit`` in periods, and the tables ``cameras``, ``noise``, ``terminate``, ``reward`` and ``push`` as dicts. ``run_loop`` accepts it
    as a body.

    Raises ImportError if ``mujoco`` or NumPy is missing, ValueError for a model or a setting that is refused.

    >>> import pathlib, tempfile, tectum as tt
    >>> scene = pathlib.Path(tempfile.mkdtemp()) / "ball.xml"
    >>> _ = scene.write_text('<mujoco><worldbody><body><joint name="z" type="slide"/><geom size="0.1"/></body></worldbody></mujoco>')
    >>> body = tt.MujocoBody(scene, period=0.01, channels=["joint_vel.z"])
    >>> _ = body.reset(seed=0)
    >>> observation, reward, terminated, truncated = body.step([])
    >>> round(float(observation[0]), 4)
    -0.0981
    """

    def __init__(
        self,
        scene: str | PathLike[str],
        *,
        period: float | None = None,
        keyframe: str | int | None = None,
        channels: list[str] | None = None,
        base: str | None = None,
        camera: str | None = None,
        cameras: dict[str, tuple[int, int]] | None = None,
        noise: dict[str, Any] | None = None,
        terminate: dict[str, Any] | None = None,
        time_limit: int | None = None,
        reward: dict[str, Any] | None = None,
        push: dict[str, Any] | None = None,
    ) -> None:
        settings = {"period": period, "keyframe": keyframe, "channels": channels, "base": base, "camera": camera, "cameras": cameras}
        settings |= {"noise": noise, "terminate": terminate, "time_limit": time_limit, "reward": reward, "push": push, "scene": fspath(scene)}
        self._simulation = _program().MujocoSimulation(settings)
        stated = self._simulation.spec()
        observation = [
            ObservationChannel(c["name"], c["unit"], c["low"], c["high"], wraps=c["wraps"], shape=c["shape"], dtype=c["dtype"]) for c in stated["observation"]
        ]
        action = [ActionChannel(c["name"], c["unit"], c["low"], c["high"]) for c in stated["action"]]
        #: The constants of the body.
        self.spec = BodySpec(stated["name"], stated["period"], observation, action, stated["safe_action"].tolist())
        #: The files that the model was read from.
        self.files: list[str] = stated["files"]
        #: Versions of MuJoCo, NumPy and Python.
        self.versions: dict[str, str] = stated["versions"]

    def reset(self, seed: int = 0) -> NDArray[np.float32]:
        """Puts the body at the start of a seed and returns the observation."""
        observation: NDArray[np.float32] = self._simulation.reset(seed)
        return observation

    def observe(self) -> NDArray[np.float32]:
        """The observation, float32 of shape (elements,); ``spec.unflatten`` makes arrays of it."""
        observation: NDArray[np.float32] = self._simulation.observe()
        return observation

    def step(self, action: ArrayLike) -> tuple[NDArray[np.float32], float, bool, bool]:
        """Applies an action for one period. Returns ``(observation, reward, terminated, truncated)``."""
        stepped: tuple[NDArray[np.float32], float, bool, bool] = self._simulation.step(action)
        return stepped

    def push(self) -> None:
        """Begins the push that the settings state. Raises ValueError if they state none."""
        self._simulation.push()

    @property
    def state(self) -> NDArray[np.float64]:
        """The exact state: MuJoCo's integration state, the periods of the episode, and the timesteps that are left of a push."""
        state: NDArray[np.float64] = self._simulation.state
        return state

    @state.setter
    def state(self, state: ArrayLike) -> None:
        self._simulation.state = state

    def render(self, width: int = 640, height: int = 480) -> NDArray[np.uint8]:
        """A picture, uint8 of shape (height, width, 3). Without a display, the variable MUJOCO_GL must be ``egl`` or ``osmesa`` before mujoco is imported."""
        picture: NDArray[np.uint8] = self._simulation.render(width, height)
        return picture

    @property
    def model(self) -> Any:
        """MuJoCo's ``MjModel``."""
        return self._simulation.model

    @property
    def data(self) -> Any:
        """MuJoCo's ``MjData``; what is written to it changes the body."""
        return self._simulation.data

    def __repr__(self) -> str:
        return f"MujocoBody({self._simulation.scene!r})"
