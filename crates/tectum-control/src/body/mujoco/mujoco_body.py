"""A MuJoCo model as a body: named channels, starts, termination, reward, pushes, exact state and pictures.

It needs ``mujoco`` and NumPy alone. The command runs this text in a process of its own and exchanges messages with it (`serve`); the Python package executes
the same text in its own process. Both give the same bits.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
import struct
import sys
import weakref

NEEDED = "mujoco and NumPy"
# The range of an action channel whose actuator has no ctrlrange.
UNLIMITED = 1e6
# Ranges of observation channels without limits of their own: expected, never used to clip.
EXPECTED = {"m": 10.0, "rad": 3.2, "m/s": 10.0, "rad/s": 20.0, "N": 1000.0, "N m": 100.0, "m/s^2": 100.0, "rad/s^2": 1000.0, "s": 1000.0, "": 1.0}
SHOWN_NAMES = 40
# The largest side of a picture in an observation, in pixels.
MAX_SIDE = 2048


class Invalid(ValueError):
    """The scene or a setting is wrong."""


def _modules():
    """NumPy and MuJoCo; the error of a missing one names the command that installs it."""
    for module, package in (("numpy", "numpy"), ("mujoco", "mujoco")):
        try:
            __import__(module)
        except ImportError as error:
            raise ImportError(f"a MuJoCo body needs {NEEDED}, and {sys.executable} has no {package} ({error}): {sys.executable} -m pip install mujoco numpy")
    return sys.modules["numpy"], sys.modules["mujoco"]


def _unknown(kind, name, known):
    near = difflib.get_close_matches(name, known, 1, 0.6)
    shown = ", ".join(known[:SHOWN_NAMES]) + (f" and {len(known) - SHOWN_NAMES} more" if len(known) > SHOWN_NAMES else "")
    return Invalid(f"{kind} {name!r} is unknown" + (f", perhaps {near[0]!r}" if near else "") + f"; known: {shown or 'none'}")


class _Channel:
    """One number: its place in an array that `_Readings` computes."""

    def __init__(self, name, unit, source, index, low=None, high=None, wraps=False):
        bound = EXPECTED[unit] if unit in EXPECTED else 1.0
        self.name, self.unit, self.source, self.index, self.wraps = name, unit, source, index, wraps
        self.low, self.high = (-bound if low is None else float(low)), (bound if high is None else float(high))


class _Picks:
    """Some channels, read together."""

    def __init__(self, readings, channels):
        np = readings.np
        self.size, self._readings, self._np = len(channels), readings, np
        places = {}
        for place, channel in enumerate(channels):
            places.setdefault(channel.source, []).append((place, channel.index))
        self._of = [(source, np.array([place for place, _ in pairs]), np.array([index for _, index in pairs])) for source, pairs in places.items()]
        self.needs_forward = any(source in readings.derived for source in places)

    def __call__(self):
        numbers = self._np.empty(self.size)
        for source, places, indices in self._of:
            numbers[places] = getattr(self._readings, source)()[indices]
        return numbers


class _Readings:
    """All channels of a model, and the arrays that they are numbers of."""

    def __init__(self, np, mujoco, model, data, base):
        self.np, self._mujoco, self._model, self._data = np, mujoco, model, data
        self._names = {}
        # Types as whole numbers: an array's number is never equal to a member of MuJoCo's enumerations.
        joints = mujoco.mjtJoint
        self.free, self.ball, self.slide, self.hinge = (int(joint) for joint in (joints.mjJNT_FREE, joints.mjJNT_BALL, joints.mjJNT_SLIDE, joints.mjJNT_HINGE))
        self.base, self.is_free = self._find_base(base)
        # Read from positions and velocities alone; the other sources need the quantities that mj_forward computes of them.
        self.derived = {"actuator_force", "sensors", "body_pos", "body_quat", "site_pos", "contacts"} | (set() if self.is_free else {"base_state"})
        self._velocity, self._force = np.zeros(6), np.zeros(6)
        self.channels = [*self._joints(), *self._base(), *self._actuators(), *self._sensors(), *self._contacts(), *self._bodies()]

    def name(self, kind, number):
        """The name of an object, or KIND_NUMBER."""
        if kind not in self._names:
            types, counts = self._mujoco.mjtObj, self._model
            kinds = {"joint": (types.mjOBJ_JOINT, counts.njnt), "actuator": (types.mjOBJ_ACTUATOR, counts.nu), "sensor": (types.mjOBJ_SENSOR, counts.nsensor)}
            kinds |= {"body": (types.mjOBJ_BODY, counts.nbody), "site": (types.mjOBJ_SITE, counts.nsite), "camera": (types.mjOBJ_CAMERA, counts.ncam)}
            kinds |= {"keyframe": (types.mjOBJ_KEY, counts.nkey)}
            objects, count = kinds[kind]
            given = [self._mujoco.mj_id2name(self._model, objects, k) for k in range(count)]
            for k in range(count):
                if not given[k]:
                    given[k] = f"{kind}_{k}"
                    while given.count(given[k]) > 1:
                        given[k] += "_"
            self._names[kind] = given
        return self._names[kind][number]

    def names(self, kind):
        self.name(kind, slice(None))
        return self._names[kind]

    def place(self, kind, name):
        names = self.names(kind)
        if name not in names:
            raise _unknown(kind, name, names)
        return names.index(name)

    def _find_base(self, named):
        """The body that the base's channels describe, and whether a free joint of its own moves it."""
        model = self._model
        free = [int(model.jnt_bodyid[k]) for k in range(model.njnt) if model.jnt_type[k] == self.free]
        if named is not None:
            base = self.place("body", named)
        elif free:
            base = free[0]
        else:
            # The first body below the world, if it moves.
            base = next((k for k in range(1, model.nbody) if model.body_parentid[k] == 0 and model.body_weldid[k] != 0), None)
        return base, base in free

    def _joints(self):
        np, model = self.np, self._model
        positions, velocities = [], []
        for k in range(model.njnt):
            name, kind, at, speed = self.name("joint", k), model.jnt_type[k], int(model.jnt_qposadr[k]), int(model.jnt_dofadr[k])
            if kind in (self.hinge, self.slide):
                unit = "rad" if kind == self.hinge else "m"
                limited = bool(model.jnt_limited[k])
                low, high = model.jnt_range[k] if limited else (None, None)
                wraps = unit == "rad" and not limited
                if wraps:
                    low, high = -np.pi, np.pi
                positions.append(_Channel(f"joint_pos.{name}", unit, "positions", at, low, high, wraps))
                velocities.append(_Channel(f"joint_vel.{name}", unit + "/s", "velocities", speed))
            elif kind == self.ball:
                positions += [_Channel(f"joint_quat.{name}.{axis}", "", "positions", at + k) for k, axis in enumerate("wxyz")]
                velocities += [_Channel(f"joint_ang_vel.{name}.{axis}", "rad/s", "velocities", speed + k) for k, axis in enumerate("xyz")]
        return positions + velocities

    def _base(self):
        if self.base is None:
            return []
        groups = [("base_pos", "xyz", "m"), ("base_quat", "wxyz", ""), ("base_lin_vel", "xyz", "m/s"), ("base_ang_vel", "xyz", "rad/s")]
        groups += [("base_lin_vel_world", "xyz", "m/s"), ("projected_gravity", "xyz", "")]
        names = [(f"{group}.{axis}", unit) for group, axes, unit in groups for axis in axes]
        return [_Channel(name, unit, "base_state", k) for k, (name, unit) in enumerate(names)]

    def _actuators(self):
        model = self._model
        return [_Channel(f"actuator_force.{self.name('actuator', k)}", "", "actuator_force", k) for k in range(model.nu)]

    def _sensors(self):
        model, types = self._model, self._mujoco.mjtSensor
        units = {"TOUCH": "N", "ACCELEROMETER": "m/s^2", "VELOCIMETER": "m/s", "GYRO": "rad/s", "FORCE": "N", "TORQUE": "N m", "RANGEFINDER": "m"}
        units |= {"BALLANGVEL": "rad/s", "FRAMEPOS": "m", "FRAMELINVEL": "m/s", "FRAMEANGVEL": "rad/s", "FRAMELINACC": "m/s^2", "FRAMEANGACC": "rad/s^2"}
        units |= {"SUBTREECOM": "m", "SUBTREELINVEL": "m/s", "CLOCK": "s"}
        of_type = {int(getattr(types, f"mjSENS_{name}")): unit for name, unit in units.items() if hasattr(types, f"mjSENS_{name}")}
        of_joint = {int(types.mjSENS_JOINTPOS): "", int(types.mjSENS_JOINTVEL): "/s"}
        channels = []
        for k in range(model.nsensor):
            name, size, at, kind = self.name("sensor", k), int(model.sensor_dim[k]), int(model.sensor_adr[k]), int(model.sensor_type[k])
            unit = of_type.get(kind, "")
            if kind in of_joint:
                is_hinge = model.jnt_type[model.sensor_objid[k]] == self.hinge
                unit = ("rad" if is_hinge else "m") + of_joint[kind]
            parts = {1: [""], 3: [".x", ".y", ".z"], 4: [".w", ".x", ".y", ".z"]}.get(size, [f".{number}" for number in range(size)])
            channels += [_Channel(f"sensor.{name}{part}", unit, "sensors", at + number) for number, part in enumerate(parts)]
        return channels

    def _contacts(self):
        """The bodies with a geom that can touch others."""
        model = self._model
        touching = {int(model.geom_bodyid[k]) for k in range(model.ngeom) if model.geom_contype[k] or model.geom_conaffinity[k]} - {0}
        return [_Channel(f"contact.{self.name('body', k)}", "N", "contacts", k, 0.0) for k in sorted(touching)]

    def _bodies(self):
        model = self._model
        names = [(k, self.name("body", k)) for k in range(1, model.nbody)]
        channels = [_Channel(f"body_pos.{name}.{axis}", "m", "body_pos", 3 * k + n) for k, name in names for n, axis in enumerate("xyz")]
        channels += [_Channel(f"body_quat.{name}.{axis}", "", "body_quat", 4 * k + n) for k, name in names for n, axis in enumerate("wxyz")]
        sites = [(k, self.name("site", k)) for k in range(model.nsite)]
        return channels + [_Channel(f"site_pos.{name}.{axis}", "m", "site_pos", 3 * k + n) for k, name in sites for n, axis in enumerate("xyz")]

    # The arrays, by their names in `_Channel.source`.

    def positions(self):
        return self._data.qpos

    def velocities(self):
        return self._data.qvel

    def actuator_force(self):
        return self._data.actuator_force

    def sensors(self):
        return self._data.sensordata

    def body_pos(self):
        return self._data.xpos.reshape(-1)

    def body_quat(self):
        return self._data.xquat.reshape(-1)

    def site_pos(self):
        return self._data.site_xpos.reshape(-1)

    def base_state(self):
        """Position, orientation, velocities in the base's frame, linear velocity in the world's, direction of gravity in the base's frame."""
        np, model, data = self.np, self._model, self._data
        if self.is_free:
            joint = model.body_jntadr[self.base]
            at, speed = model.jnt_qposadr[joint], model.jnt_dofadr[joint]
            position, quaternion = data.qpos[at : at + 3], data.qpos[at + 3 : at + 7]
            length = np.sqrt(quaternion @ quaternion)
            rotation = self._rotation(quaternion / length if length > 0.0 else np.array([1.0, 0.0, 0.0, 0.0]))
            # The angular velocity of a free joint is in the body's frame, the linear one in the world's.
            linear, angular = data.qvel[speed : speed + 3], data.qvel[speed + 3 : speed + 6]
        else:
            position, quaternion, rotation = data.xpos[self.base], data.xquat[self.base], data.xmat[self.base].reshape(3, 3)
            self._mujoco.mj_objectVelocity(model, data, self._mujoco.mjtObj.mjOBJ_XBODY, self.base, self._velocity, 0)
            linear, angular = self._velocity[3:], rotation.T @ self._velocity[:3]
        return np.concatenate((position, quaternion, rotation.T @ linear, angular, linear, -rotation[2]))

    def _rotation(self, quaternion):
        rotation = self.np.empty(9)
        self._mujoco.mju_quat2Mat(rotation, quaternion)
        return rotation.reshape(3, 3)

    def contacts(self):
        """The sum of the normal forces of the contacts of each body."""
        data, bodies = self._data, self._model.geom_bodyid
        forces = self.np.zeros(self._model.nbody)
        if data.ncon:
            geoms = data.contact.geom
            for number in range(data.ncon):
                self._mujoco.mj_contactForce(self._model, data, number, self._force)
                for geom in geoms[number]:
                    if geom >= 0:
                        forces[bodies[geom]] += self._force[0]
        return forces


class MujocoSimulation:
    """A model and its state, stepped in periods. `settings` are the keys of `[body]` of a scenario, with ``scene``, the path of the model."""

    KEYS = ("scene", "name", "period", "keyframe", "channels", "base", "camera", "cameras", "noise", "terminate", "time_limit", "reward", "push")

    def __init__(self, settings):
        self._np, self._mujoco = np, mujoco = _modules()
        unknown = [key for key in settings if key not in self.KEYS]
        if unknown:
            raise _unknown("key", unknown[0], list(self.KEYS))
        self.settings = settings = {key: value for key, value in settings.items() if value is not None}
        self.scene = os.fspath(settings["scene"])
        self.name = settings.get("name") or f"mujoco:{self.scene}"
        self.model, self.files = self._load()
        self.data = mujoco.MjData(self.model)
        if not self.model.nu and not self.model.nv:
            raise Invalid(f"{self.scene}: nothing moves: it has neither joints nor actuators")
        self._readings = _Readings(np, mujoco, self.model, self.data, settings.get("base"))
        self._steps_per_period = self._period_steps(settings.get("period"))
        # Computed as Gymnasium computes `dt`.
        self.period = float(self.model.opt.timestep) * self._steps_per_period
        self._keyframe = self._find_keyframe(settings.get("keyframe"))
        self._camera = -1 if settings.get("camera") is None else self._readings.place("camera", settings["camera"])
        all_channels = self._readings.channels
        self._by_name = {channel.name: channel for channel in all_channels}
        self.channels = self._selected(settings.get("channels"))
        self._observed = _Picks(self._readings, self.channels)
        self._read_limits(dict(settings.get("terminate") or {}))
        self._read_task(dict(settings.get("reward") or {}), settings.get("time_limit"))
        self._read_noise(dict(settings.get("noise") or {}))
        self._read_push(settings.get("push"))
        self._read_cameras(dict(settings.get("cameras") or {}))
        self._needs_forward = bool(self._cameras) or self._observed.needs_forward or self._limited.needs_forward or self._progress.needs_forward
        self._state_kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self._state_size = mujoco.mj_stateSize(self.model, self._state_kind)
        self._warm_start = np.empty(self.model.nv)
        warnings = mujoco.mjtWarning
        self._discarded = [int(warnings.mjWARN_BADQPOS), int(warnings.mjWARN_BADQVEL), int(warnings.mjWARN_BADQACC)]
        self._steps = self._push_left = 0
        self._renderers = {}
        self._restart(0)
        # A library of OpenGL that is missing is reported now.
        self._pictures()
        self.actions, self.safe_action = self._actions()

    # Settings.

    def _load(self):
        mujoco, path = self._mujoco, self.scene
        if not os.path.isfile(path):
            raise Invalid(f"{path}: there is no such file")
        try:
            is_binary = path.endswith(".mjb")
            model = mujoco.MjModel.from_binary_path(path) if is_binary else mujoco.MjModel.from_xml_path(path)
        except (ValueError, mujoco.FatalError) as error:
            raise Invalid(f"{path}: MuJoCo cannot read it: {' '.join(str(error).split())}") from None
        return model, [path] if is_binary else self._dependencies()

    def _dependencies(self):
        """The scene, and the files that it includes or refers to."""
        mujoco, path = self._mujoco, self.scene
        files, folder = [path], os.path.dirname(path)
        try:
            files += mujoco.mju_getXMLDependencies(path)
        except (AttributeError, ValueError, TypeError, mujoco.FatalError):
            # A URDF file, or a MuJoCo that does not list them.
            spec = mujoco.MjSpec.from_file(path)
            named = [(spec.meshdir, mesh.file) for mesh in spec.meshes] + [(spec.texturedir, texture.file) for texture in spec.textures]
            named += [(spec.meshdir, field.file) for field in spec.hfields]
            files += [os.path.join(folder, below or "", file) for below, file in named if file]
        found = {}
        for file in files:
            found.setdefault(os.path.realpath(file), file)
        return [file for file in found.values() if os.path.isfile(file)]

    def _period_steps(self, period):
        timestep = float(self.model.opt.timestep)
        if period is None:
            return 1
        steps = round(period / timestep)
        if steps < 1 or abs(steps * timestep - period) > 1e-9 * period:
            raise Invalid(f"period is {period} s, needs a whole multiple of the model's timestep, {timestep} s")
        return steps

    def _find_keyframe(self, keyframe):
        if keyframe is None:
            return None
        count = self.model.nkey
        if isinstance(keyframe, int):
            if not 0 <= keyframe < count:
                raise Invalid(f"keyframe is {keyframe}, and {self.scene} has {count} keyframes")
            return keyframe
        return self._readings.place("keyframe", keyframe)

    def _matching(self, pattern):
        """The channels of a name or of a pattern with `*`."""
        if "*" in pattern or "?" in pattern:
            chosen = [channel for name, channel in self._by_name.items() if fnmatch.fnmatchcase(name, pattern)]
        else:
            # A group is all its parts: base_pos is base_pos.x, .y and .z.
            chosen = [self._by_name[pattern]] if pattern in self._by_name else [c for name, c in self._by_name.items() if name.startswith(pattern + ".")]
        if not chosen:
            raise _unknown("channel", pattern, list(self._by_name))
        return chosen

    def _selected(self, patterns):
        if patterns is None:
            return [channel for channel in self._by_name.values() if not channel.name.startswith(("body_", "site_"))]
        chosen = {}
        for pattern in patterns:
            chosen.update({channel.name: channel for channel in self._matching(pattern)})
        if not chosen:
            raise Invalid("channels is empty, needs at least one name or pattern")
        return list(chosen.values())

    def _read_limits(self, limits):
        """Which numbers end an episode when they leave their range."""
        np, gravity = self._np, None
        channels, low, high = [], [], []
        height, tilt = limits.pop("height", None), limits.pop("tilt", None)
        if (height is not None or tilt is not None) and self._readings.base is None:
            raise Invalid("terminate: height and tilt are of the base, and no body of the model is one; base = \"BODY\" names it")
        if height is not None:
            limits = {"base_pos.z": height, **limits}
        if tilt is not None:
            gravity = self._by_name["projected_gravity.z"]
            channels, low, high = [gravity], [-np.inf], [-np.cos(tilt)]
        for pattern, bounds in limits.items():
            if len(bounds) != 2 or not bounds[0] < bounds[1]:
                raise Invalid(f"terminate: {pattern} is {bounds}, needs the lowest and the highest value")
            for channel in self._matching(pattern):
                channels.append(channel)
                low.append(float(bounds[0]))
                high.append(float(bounds[1]))
        self._limited = _Picks(self._readings, channels)
        self._low, self._high = np.array(low), np.array(high)

    def _read_task(self, reward, time_limit):
        self._alive, self._control = float(reward.pop("alive", 0.0)), float(reward.pop("control", 0.0))
        progress, self._progress_weight = reward.pop("progress", None), float(reward.pop("progress_weight", 1.0))
        if reward:
            raise _unknown("key of reward", next(iter(reward)), ["alive", "progress", "progress_weight", "control"])
        chosen = [] if progress is None else self._matching(progress)
        if len(chosen) > 1:
            raise Invalid(f"reward: progress is {progress!r}, needs one channel")
        self._progress = _Picks(self._readings, chosen)
        self._time_limit = time_limit

    def _read_noise(self, noise):
        self._position_noise, self._velocity_noise = float(noise.pop("position", 0.0)), float(noise.pop("velocity", 0.0))
        distribution = noise.pop("velocity_distribution", "uniform")
        if distribution not in ("uniform", "normal"):
            raise _unknown("noise: velocity_distribution", distribution, ["uniform", "normal"])
        if noise:
            raise _unknown("key of noise", next(iter(noise)), ["position", "velocity", "velocity_distribution"])
        self._is_normal = distribution == "normal"

    def _read_push(self, push):
        self.can_push = push is not None
        if push is None:
            return
        missing = [key for key in ("body", "force", "seconds") if key not in push]
        if missing:
            raise Invalid(f"push needs the key {missing[0]!r}")
        self._push_body = self._readings.place("body", push["body"])
        self._push_force = self._np.array(push["force"], dtype=float)
        if self._push_force.shape != (3,):
            raise Invalid("push: force needs three numbers, x, y and z in N")
        self._push_steps = max(1, round(float(push["seconds"]) / float(self.model.opt.timestep)))

    def _read_cameras(self, cameras):
        """The pictures of an observation: name, camera, rows and columns of each."""
        self._cameras = []
        for name, size in cameras.items():
            sizes = list(size)
            if len(sizes) != 2 or not all(isinstance(side, int) and 1 <= side <= MAX_SIDE for side in sizes):
                raise Invalid(f"cameras: {name} is {sizes}, needs rows and columns from 1 to {MAX_SIDE}")
            self._cameras.append((f"camera.{name}", self._readings.place("camera", name), *sizes))

    def _actions(self):
        """The action channels, and the action that is safe: the keyframe's, else zeros, or the start's positions where the actuator is a position servo."""
        np, model, actions = self._np, self.model, []
        safe = np.zeros(model.nu)
        for k in range(model.nu):
            low, high = model.actuator_ctrlrange[k] if model.actuator_ctrllimited[k] else (-UNLIMITED, UNLIMITED)
            unit, joint = self._actuator_unit(k)
            actions.append({"name": self._readings.name("actuator", k), "unit": unit, "low": float(low), "high": float(high)})
            if self._keyframe is not None:
                safe[k] = model.key_ctrl[self._keyframe][k]
            elif joint is not None:
                safe[k] = self.data.qpos[model.jnt_qposadr[joint]]
            safe[k] = min(max(safe[k], low), high)
        self._action_low = np.array([action["low"] for action in actions], np.float32)
        self._action_high = np.array([action["high"] for action in actions], np.float32)
        return actions, safe.astype(np.float32)

    def _actuator_unit(self, k):
        """The unit of an actuator's command, and the joint whose position it is a target of, if it is."""
        model, mujoco, readings = self.model, self._mujoco, self._readings
        joint, through = int(model.actuator_trnid[k][0]), int(model.actuator_trntype[k])
        units = {readings.hinge: ("N m", "rad"), readings.slide: ("N", "m")}
        is_joint = through in (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
        if not is_joint or int(model.jnt_type[joint]) not in units or model.actuator_gear[k][0] != 1.0:
            return "", None
        (force, length), gain, bias = units[int(model.jnt_type[joint])], model.actuator_gainprm[k], model.actuator_biasprm[k]
        if int(model.actuator_gaintype[k]) != int(mujoco.mjtGain.mjGAIN_FIXED):
            return "", None
        if int(model.actuator_biastype[k]) == int(mujoco.mjtBias.mjBIAS_AFFINE) and gain[0] > 0.0:
            if bias[1] == -gain[0]:
                return length, joint
            if bias[1] == 0.0 and bias[2] == -gain[0]:
                return length + "/s", None
        is_motor = int(model.actuator_biastype[k]) == int(mujoco.mjtBias.mjBIAS_NONE) and gain[0] == 1.0
        return (force if is_motor else ""), None

    # The body.

    def spec(self):
        """The constants of the body, as in the message ``spec``."""
        np, mujoco = self._np, self._mujoco
        scalar = {"shape": [], "dtype": "<f4"}
        folder = os.path.dirname(mujoco.__file__)
        libraries = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if re.match(r"(lib)?mujoco[.\d]*\.(so|dylib|dll)", name)]
        return {
            "name": self.name,
            "period": self.period,
            "timestep": float(self.model.opt.timestep),
            "observation": [
                {"name": c.name, "unit": c.unit, "low": c.low, "high": c.high, "wraps": c.wraps, **scalar} for c in self.channels
            ]
            + [
                {"name": name, "unit": "", "low": 0.0, "high": 255.0, "wraps": False, "shape": [rows, columns, 3], "dtype": "|u1"}
                for name, _, rows, columns in self._cameras
            ],
            "action": [{**action, **scalar} for action in self.actions],
            "safe_action": self.safe_action,
            "has_exact_state": True,
            "state_size": self._state_size + 2,
            "can_push": self.can_push,
            "files": [os.path.abspath(file) for file in self.files],
            "libraries": libraries,
            "versions": {"mujoco": mujoco.__version__, "numpy": np.__version__, "python": sys.version.split()[0]},
        }

    def reset(self, seed):
        """The start of a seed; returns the observation."""
        self._restart(seed)
        return self.observe()

    def _restart(self, seed):
        np, mujoco, data = self._np, self._mujoco, self.data
        if self._keyframe is None:
            mujoco.mj_resetData(self.model, data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, data, self._keyframe)
        if self._position_noise or self._velocity_noise:
            # In the order and by the generator of Gymnasium's environments.
            generator = np.random.default_rng(seed)
            at, speed = self._position_noise, self._velocity_noise
            data.qpos += generator.uniform(low=-at, high=at, size=self.model.nq)
            data.qvel += speed * generator.standard_normal(self.model.nv) if self._is_normal else generator.uniform(low=-speed, high=speed, size=self.model.nv)
        mujoco.mj_forward(self.model, data)
        self._steps = self._push_left = 0

    def observe(self):
        """The observation, float32: the channels of one number, then the pictures of cameras."""
        numbers, pictures = self._observed().astype(self._np.float32), self._pictures().values()
        return self._np.concatenate([numbers, *(picture.reshape(-1) for picture in pictures)], dtype=self._np.float32) if self._cameras else numbers

    def _pictures(self):
        return {name: self._draw(camera, columns, rows) for name, camera, rows, columns in self._cameras}

    def fields(self):
        """The observation as the fields of a message."""
        numbers = {"observation": self._observed().astype(self._np.float32)}
        return numbers | ({"arrays": self._pictures()} if self._cameras else {})

    def step(self, action):
        """Applies an action for a period. Returns (observation, reward, terminated, truncated)."""
        outcome = self._apply(action)
        return self.observe(), *outcome

    def _apply(self, action):
        np, data = self._np, self.data
        applied = np.asarray(action, np.float32)
        if applied.shape != self.safe_action.shape:
            raise Invalid(f"action has the shape {applied.shape}, needs {self.safe_action.shape}")
        # A plant cannot wait until a brain recovers.
        applied = np.clip(applied, self._action_low, self._action_high) if np.isfinite(applied).all() else self.safe_action
        before, time_s = self._progress(), data.time
        data.ctrl[:] = applied
        self._advance(self._steps_per_period)
        # MuJoCo puts a state that is not finite, or huge, back to the start at time 0, and counts it; reading the count takes as long as some models' step.
        if data.time <= time_s or (time_s < self.period and any(data.warning.number[self._discarded].tolist())):
            raise ArithmeticError(f"{self.scene}: the simulation became unstable in the period after {time_s:.6g} s, and MuJoCo discarded its state")
        if self._needs_forward:
            self._forward()
        self._steps += 1
        limited = self._limited()
        terminated = not bool(np.all((self._low < limited) & (limited < self._high)))
        reward = 0.0 if terminated else self._alive
        if before.size:
            reward = self._progress_weight * ((self._progress()[0] - before[0]) / self.period) + reward
        if self._control:
            # In float32, as Gymnasium's environments compute it of a policy's actions.
            reward = reward - self._control * np.sum(np.square(applied))
        truncated = self._time_limit is not None and self._steps >= self._time_limit
        return float(reward), terminated, truncated

    def _advance(self, steps):
        mujoco = self._mujoco
        while self._push_left and steps:
            count = min(steps, self._push_left)
            self.data.xfrc_applied[self._push_body, :3] = self._push_force
            mujoco.mj_step(self.model, self.data, count)
            steps, self._push_left = steps - count, self._push_left - count
            if not self._push_left:
                self.data.xfrc_applied[self._push_body, :3] = 0.0
        if steps:
            mujoco.mj_step(self.model, self.data, steps)

    def _forward(self):
        """Computes what depends on positions and velocities, of the present ones; what the next step depends on is unchanged."""
        self._warm_start[:] = self.data.qacc_warmstart
        self._mujoco.mj_forward(self.model, self.data)
        self.data.qacc_warmstart[:] = self._warm_start

    def push(self):
        """Begins the push of the settings."""
        if not self.can_push:
            raise Invalid(f"{self.name}: it has no push: [body.push] states one")
        self._push_left = self._push_steps

    @property
    def state(self):
        """MuJoCo's integration state, the periods of the episode, and the timesteps that are left of a push."""
        state = self._np.empty(self._state_size + 2)
        self._mujoco.mj_getState(self.model, self.data, state[:-2], self._state_kind)
        state[-2:] = self._steps, self._push_left
        return state

    @state.setter
    def state(self, state):
        state = self._np.array(state, dtype=float)
        if state.shape != (self._state_size + 2,):
            raise Invalid(f"{self.name}: a state has {self._state_size + 2} numbers, given {state.size}")
        if not self._np.isfinite(state).all():
            raise Invalid(f"{self.name}: number {int(self._np.argmin(self._np.isfinite(state)))} of the state is not finite")
        self._mujoco.mj_setState(self.model, self.data, state[:-2], self._state_kind)
        self._steps, self._push_left = (int(number) for number in state[-2:])
        self._forward()

    def render(self, width=640, height=480):
        """A picture, uint8 of shape (height, width, 3)."""
        # Rendering reads positions of bodies as they are after the step.
        if not self._needs_forward:
            self._forward()
        return self._draw(self._camera, width, height)

    def _draw(self, camera, width, height):
        if (width, height) not in self._renderers:
            # The scene states the largest picture; this is no part of the physics.
            screen = self.model.vis.global_
            screen.offwidth, screen.offheight = max(screen.offwidth, width), max(screen.offheight, height)
            try:
                renderer = self._mujoco.Renderer(self.model, height, width)
            except Exception as error:
                advice = "on Linux without a display, MUJOCO_GL=egl or MUJOCO_GL=osmesa chooses the library (apt-get install libegl1 or libosmesa6)"
                raise RuntimeError(f"{self.scene}: no picture, because OpenGL cannot be used ({type(error).__name__}: {error}); {advice}") from None
            # Closed before the interpreter takes OpenGL apart.
            self._renderers[width, height] = (renderer, weakref.finalize(self, renderer.close))
        renderer = self._renderers[width, height][0]
        renderer.update_scene(self.data, camera=camera)
        return renderer.render().copy()

    def close(self):
        while self._renderers:
            self._renderers.popitem()[1][1]()


# Messages: a frame is the length of its body, u32 in little-endian order, and one MessagePack map.

DTYPES = ("<f4", "<f8", "|u1", "|i1", "<i4", "<i8", "|b1")
MAX_FRAME = 1 << 28


def encode(value):
    """The MessagePack form of None, bool, int, float, str, bytes, lists, dicts and arrays."""
    parts = []
    _encode(value, parts.append)
    return b"".join(parts)


def _encode(value, put):
    if value is None:
        put(b"\xc0")
    elif isinstance(value, bool):
        put(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        put(struct.pack(">Bq", 0xD3, value) if value < 0 else struct.pack(">BQ", 0xCF, value))
    elif isinstance(value, float):
        put(struct.pack(">Bd", 0xCB, value))
    elif isinstance(value, str):
        text = value.encode()
        put(struct.pack(">BI", 0xDB, len(text)) + text)
    elif isinstance(value, (bytes, memoryview)):
        put(struct.pack(">BI", 0xC6, len(value)) + value)
    elif isinstance(value, (list, tuple)):
        put(struct.pack(">BI", 0xDD, len(value)))
        for item in value:
            _encode(item, put)
    elif isinstance(value, dict):
        put(struct.pack(">BI", 0xDF, len(value)))
        for key, item in value.items():
            _encode(key, put)
            _encode(item, put)
    elif hasattr(value, "dtype") and hasattr(value, "tobytes"):
        if value.dtype.str not in DTYPES:
            raise TypeError(f"an array of {value.dtype} cannot be sent")
        _encode({b"__ndarray__": True, b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": list(value.shape)}, put)
    else:
        raise TypeError(f"{type(value)} cannot be sent")


def decode(data):
    """The value of MessagePack bytes; a map with the key b"__ndarray__" is an array."""
    value, end = _decode(data, 0, 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes after the message")
    return value


_FIXED = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_LENGTHS = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"), 0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I")}
_LENGTHS |= {0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def _decode(data, at, depth):
    if depth > 32:
        raise ValueError("a message is nested deeper than 32 levels")
    first, at = data[at], at + 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 0x100, at
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _FIXED:
        form = _FIXED[first]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if first < 0xC0:
        kind, length = ("map", first & 0xF) if first < 0x90 else ("list", first & 0xF) if first < 0xA0 else ("str", first & 0x1F)
    elif first in _LENGTHS:
        kind, form = _LENGTHS[first]
        length, at = struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    else:
        raise ValueError(f"byte {first:#x} begins no value of a message")
    if length > len(data) - at:
        raise ValueError("a message is cut off")
    if kind == "bin":
        return bytes(data[at : at + length]), at + length
    if kind == "str":
        return str(data[at : at + length], "utf-8"), at + length
    items = []
    for _ in range(length * (2 if kind == "map" else 1)):
        item, at = _decode(data, at, depth + 1)
        items.append(item)
    if kind == "list":
        return items, at
    made = dict(zip(items[::2], items[1::2]))
    return (_array(made) if b"__ndarray__" in made else made), at


def _array(made):
    np, _ = _modules()
    if made[b"dtype"] not in DTYPES:
        raise ValueError(f"an array of {made[b'dtype']!r} is refused")
    return np.frombuffer(made[b"data"], made[b"dtype"]).reshape(made[b"shape"])


def _read_exactly(source, size):
    data = source.read(size)
    if data is not None and len(data) == size:
        return data
    # The command is gone.
    raise EOFError


def serve(source, sink):
    """Answers requests, one message for each, until the other side closes."""

    def answer(sequence, kind, /, **fields):
        body = encode({"type": kind, "sequence": sequence, **fields})
        sink.write(struct.pack("<I", len(body)) + body)
        sink.flush()

    simulation, sequence = None, 0
    try:
        while True:
            (size,) = struct.unpack("<I", _read_exactly(source, 4))
            if size > MAX_FRAME:
                raise ValueError(f"a message of {size} bytes is refused")
            request = decode(_read_exactly(source, size))
            sequence = request["sequence"]
            if request["type"] == "close":
                return
            try:
                if request["type"] == "hello":
                    simulation = MujocoSimulation(request["settings"])
                    answer(sequence, "spec", **simulation.spec())
                else:
                    _serve(simulation, request, answer)
            except Exception as error:
                known = {ImportError: "missing", Invalid: "invalid", ArithmeticError: "unstable", RuntimeError: "unsupported"}
                kind = next((kind for of, kind in known.items() if isinstance(error, of)), "failed")
                if kind == "failed":
                    import traceback

                    traceback.print_exc()
                text = str(error) if kind != "failed" else f"{type(error).__name__}: {error}"
                answer(sequence, "error", kind=kind, message=text)
    except EOFError:
        pass
    finally:
        if simulation is not None:
            simulation.close()


def _serve(simulation, request, answer):
    kind, sequence = request["type"], request["sequence"]
    if kind == "step":
        reward, terminated, truncated = simulation._apply(request["action"])
        answer(sequence, "observation", **simulation.fields(), reward=reward, terminated=terminated, truncated=truncated)
    elif kind == "reset":
        simulation._restart(request["seed"])
        answer(sequence, "observation", **simulation.fields())
    elif kind == "state":
        answer(sequence, "state", state=simulation.state)
    elif kind == "set_state":
        simulation.state = request["state"]
        answer(sequence, "observation", **simulation.fields())
    elif kind == "push":
        simulation.push()
        answer(sequence, "push")
    elif kind == "frame":
        answer(sequence, "frame", picture=simulation.render(request["width"], request["height"]))
    else:
        raise ValueError(f"a message of type {kind!r} is unknown")


def _choose_rendering():
    """Without a display, pictures need EGL or OSMesa; MuJoCo reads the choice when it is imported."""
    if not sys.platform.startswith("linux") or os.environ.get("MUJOCO_GL") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return
    import ctypes

    for choice, library in (("egl", "libEGL.so.1"), ("osmesa", "libOSMesa.so.8"), ("osmesa", "libOSMesa.so.6")):
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        os.environ["MUJOCO_GL"] = choice
        return
    os.environ["MUJOCO_GL"] = "disable"


def main():
    import signal

    # The command ends the loop when the user interrupts it, and then this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a plug-in prints must not reach the messages.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _choose_rendering()
    try:
        _modules()[1].set_mju_user_warning(lambda text: print(f"MuJoCo: {text}", file=sys.stderr, flush=True))
    except ImportError:
        # The first answer reports it.
        pass
    serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
