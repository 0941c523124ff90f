"""Channels that are arrays: pictures from a body, through a contract, to a network, and in recordings."""

import ctypes.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import tectum as tt

gymnasium = pytest.importorskip("gymnasium")
onnx = pytest.importorskip("onnx")
import tectum.gym  # noqa: E402
from gymnasium import spaces  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

ROWS, COLUMNS = 6, 5
QUADRUPED = pathlib.Path(__file__).parents[3] / "crates/tectum-control/tests/data/mujoco/quadruped.xml"


def camera():
    observation = [
        tt.ObservationChannel("gap", "m", 0.0, 2.0),
        tt.ObservationChannel("camera", "", 0, 255, shape=(ROWS, COLUMNS, 3), dtype=np.uint8),
        tt.ObservationChannel("speed", "m/s", -1.0, 1.0),
    ]
    return tt.BodySpec("rover", 0.1, observation, [tt.ActionChannel("turn", "", -1, 1)])


class Rover:
    """Random pictures and numbers of a seed."""

    spec = camera()

    def reset(self, seed):
        self.random = np.random.default_rng(seed)
        self.shown = []
        return self.observe()

    def step(self, action):
        return self.observe(), 0.0, False, False

    def observe(self):
        picture = self.random.integers(0, 256, (ROWS, COLUMNS, 3), dtype=np.uint8)
        self.shown.append({"gap": self.random.random(), "camera": picture, "speed": self.random.random()})
        return self.shown[-1]


def network(path, inputs):
    """A network whose action is the mean of all its inputs."""
    nodes, means = [], []
    for name, kind, shape in inputs:
        nodes += [
            helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT),
            helper.make_node("ReduceMean", [f"{name}_float"], [f"{name}_mean"], keepdims=0),
            helper.make_node("Reshape", [f"{name}_mean", "row"], [f"{name}_row"]),
        ]
        means.append(f"{name}_row")
    nodes.append(helper.make_node("Sum", means, ["action"]))
    row = helper.make_tensor("row", TensorProto.INT64, [2], [1, 1])
    given = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    output = [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 1])]
    graph = helper.make_graph(nodes, "mean", given, output, [row])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


CONTRACT = """
period = 0.1
input = "state"
[[observation]]
input = "image"
channels = ["camera"]
axes = [2, 0, 1]
scale = 0.00392156862745098
apply = ["scale", "offset"]
offset = [0.485, 0.456, 0.406]
[[observation]]
input = "raw"
channels = ["camera"]
[[observation]]
input = "state"
channels = ["speed", "gap"]
history = 2
order = "oldest first"
fill = "first"
[action]
channels = ["turn"]
"""


def test_a_policy_receives_pictures_as_its_contract_states(tmp_path):
    kinds = [("image", TensorProto.FLOAT, [1, 3, ROWS, COLUMNS]), ("raw", TensorProto.UINT8, [1, ROWS, COLUMNS, 3]), ("state", TensorProto.FLOAT, [1, 4])]
    network(tmp_path / "policy.onnx", kinds)
    (tmp_path / "policy.toml").write_text(CONTRACT)
    policy, rover = tt.Policy(tmp_path / "policy.onnx", camera()), Rover()
    rover.reset(1)
    for _ in range(5):
        seen = rover.observe()
        [action] = policy.tick(seen)
        inputs = policy.network_inputs
        image = (seen["camera"] / 255 - [0.485, 0.456, 0.406]).transpose(2, 0, 1)
        np.testing.assert_allclose(inputs["image"].reshape(image.shape), image, atol=1e-6)
        np.testing.assert_array_equal(inputs["raw"], seen["camera"].reshape(-1))
        np.testing.assert_allclose(inputs["state"][2:], [seen["speed"], seen["gap"]], atol=1e-7)
        expected = image.mean() + seen["camera"].mean() + inputs["state"].mean()
        assert action == pytest.approx(np.clip(expected, -1, 1), abs=1e-4)


def test_statistics_of_each_colour_normalise_a_picture(tmp_path):
    network(tmp_path / "policy.onnx", [("image", TensorProto.FLOAT, [1, 3, ROWS, COLUMNS])])
    mean, std = np.array([100.0, 120.0, 140.0]), np.array([50.0, 60.0, 70.0])
    (tmp_path / "policy.toml").write_text(f"""
period = 0.1
[inputs.image.normalize]
mean = {mean.tolist()}
std = {std.tolist()}
[[observation]]
channels = ["camera"]
axes = [2, 0, 1]
[action]
channels = ["turn"]
""")
    policy, rover = tt.Policy(tmp_path / "policy.onnx", camera()), Rover()
    seen = rover.reset(2)
    policy.tick(seen)
    expected = ((seen["camera"] - mean) / std).transpose(2, 0, 1).reshape(-1)
    np.testing.assert_allclose(policy.network_inputs["image"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ('channels = ["camera"]\naxes = [0, 1]', r"axes are \[0, 1\]; the array has the shape \[6, 5, 3\] and needs each of \[0, 1, 2\] once"),
        ('channels = ["camera"]\naxes = [0, 1, 1]', "needs each of"),
        ('channels = ["gap"]\naxes = [0]', "axes are for one channel that is an array"),
        ('channels = ["camera", "gap"]\naxes = [2, 0, 1]', "axes are for one channel that is an array"),
        ('channels = ["camera"]\noffset = [1.0, 2.0]', "offset has 2 values for 90 numbers"),
        ('channels = ["camera"]\nscale = 0.5', "input raw is uint8: only `value`"),
    ],
)
def test_terms_of_arrays_are_refused_with_the_reason(tmp_path, term, message):
    network(tmp_path / "policy.onnx", [("raw", TensorProto.UINT8, [1, ROWS, COLUMNS, 3])])
    (tmp_path / "policy.toml").write_text(f"period = 0.1\n[[observation]]\n{term}\n[action]\nchannels = [\"turn\"]\n")
    with pytest.raises(ValueError, match=message):
        tt.Policy(tmp_path / "policy.onnx", camera())


class Mean:
    def tick(self, observation):
        return [observation.mean() / 255]


def test_pictures_reach_brains_and_runs_as_they_were():
    rover = Rover()
    run = tt.run_loop(rover, Mean(), seconds=2, clock="sim", seed=3)
    shown = rover.shown[:20]
    assert run.observations.shape == (20, 2 + ROWS * COLUMNS * 3)
    for observation, action, seen in zip(run.observations, run.actions, shown):
        read = rover.spec.unflatten(observation)
        assert read["camera"].dtype == np.uint8 and read["gap"].shape == ()
        np.testing.assert_array_equal(read["camera"], seen["camera"])
        assert action[0] == pytest.approx(observation.mean() / 255, abs=1e-6)
    assert tt.run_loop(Rover(), Mean(), seconds=2, clock="sim", seed=3).receipt.trace == run.receipt.trace


def test_observations_by_channel_are_refused_with_the_reason():
    spec, seen = camera(), Rover().reset(0)
    np.testing.assert_array_equal(spec.flatten(seen)[[0, -1]], np.float32([seen["gap"], seen["speed"]]))
    for change, message in [
        ({"camera": seen["camera"][:-1]}, r"channel camera: the shape is \[5, 5, 3\], needs \[6, 5, 3\]"),
        ({"camera": seen["camera"] + 0.5}, "channel camera: .* is no value of uint8"),
        ({"camera": seen["camera"] * 2.0 + 300}, "is no value of uint8"),
        ({"gap": [1.0]}, r"channel gap: the shape is \[1\], needs \[\]"),
        ({"depth": 1.0}, 'the body rover has no channel "depth"'),
    ]:
        with pytest.raises(ValueError, match=message):
            spec.flatten(seen | change)
    with pytest.raises(ValueError, match='no channel "gap"'):
        spec.flatten({"camera": seen["camera"]})
    with pytest.raises(ValueError, match="needs 92"):
        spec.unflatten(np.zeros(3))
    for wrong in ["float64", "int64", np.complex64]:
        with pytest.raises(ValueError, match="needs float32, uint8, int8 or bool"):
            tt.ObservationChannel("camera", shape=(2,), dtype=wrong)
    with pytest.raises(ValueError, match=r"channel camera: the shape is \[0\]"):
        tt.BodySpec("rover", 0.1, [tt.ObservationChannel("camera", shape=(0,))], [])


class Pixels(gymnasium.Env):
    """A square at a place, as a picture."""

    metadata = {"render_fps": 10}
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, is_dict):
        picture = spaces.Box(0, 255, (4, 4, 3), np.uint8)
        self.observation_space = spaces.Dict({"picture": picture, "place": spaces.Box(0.0, 4.0, (1,), np.float64)}) if is_dict else picture

    def shown(self):
        picture = np.zeros((4, 4, 3), np.uint8)
        picture[int(self.place)] = 200
        return {"picture": picture, "place": np.array([self.place])} if isinstance(self.observation_space, spaces.Dict) else picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0.25
        return self.shown(), {}

    def step(self, action):
        self.place = float(np.clip(self.place + action[0], 0.0, 3.9))
        return self.shown(), 0.0, False, False, {}


@pytest.mark.parametrize("is_dict", [False, True])
def test_environments_with_pictures_are_bodies(is_dict):
    body = tectum.gym.GymBody(Pixels(is_dict))
    channels = {channel.name: (channel.shape, channel.dtype) for channel in body.spec.observation}
    picture = ((4, 4, 3), np.dtype(np.uint8))
    expected = {"picture": picture, "place": ((1,), np.dtype(np.float32))} if is_dict else {"observation": picture}
    assert channels == expected

    class Forward:
        def tick(self, observation):
            return [0.5]

    run = tt.run_loop(body, Forward(), seconds=0.5, clock="sim")
    last = body.spec.unflatten(run.observations[-1])
    place = 0.25 + 0.5 * 4
    assert last["picture" if is_dict else "observation"][int(place), 0, 0] == 200
    if is_dict:
        assert last["place"][0] == place


SCENARIO = """
[body]
name = "mujoco:{scene}"
period = 0.02
channels = ["joint_pos.*"]
[body.cameras]
side = [24, 32]
[brain]
name = "{brain}"
[loop]
seconds = 0.08
seed = 5
clock = "sim"
"""
# A process of its own: MuJoCo chooses the library when it is imported.
CAMERAS = """
import pathlib, sys
import numpy as np, tectum as tt
scene, folder, scenario = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
body = tt.MujocoBody(scene, period=0.02, channels=["joint_pos.*"], cameras={"side": (24, 32)})
picture = body.spec.observation[-1]
assert (picture.name, picture.shape, picture.dtype) == ("camera.side", (24, 32, 3), np.uint8)
rest = np.zeros(len(body.spec.action))
ours = [body.reset(5)] + [body.step(rest)[0] for _ in range(3)]
pictures = [body.spec.unflatten(observation)["camera.side"] for observation in ours]
assert pictures[0].std() > 1 and not np.array_equal(pictures[0], pictures[3])
(folder / "zero.toml").write_text(scenario.format(scene=scene, brain="zero"))
run = tt.run(folder / "zero.toml", folder=folder / "run")
np.testing.assert_array_equal(run.observations, ours)
recording = tt.Recording(run.folder)
np.testing.assert_array_equal(recording.arrays["camera.side"], pictures)
assert recording.observations.shape == (4, len(body.spec.observation) - 1) and not recording.arrays["camera.side"].flags.writeable
(folder / "field.toml").write_text(scenario.format(scene=scene, brain="field"))
for call, kind, message in [
    (lambda: tt.run(folder / "field.toml"), tt.UnsupportedError, "brain field: channel camera.side of the body mujoco:"),
    (lambda: tt.MujocoBody(scene, cameras={"front": (8, 8)}), ValueError, "camera 'front' is unknown"),
    (lambda: tt.MujocoBody(scene, cameras={"side": (0, 8)}), ValueError, "needs rows and columns from 1 to 2048"),
]:
    try:
        call()
    except kind as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
print("passed")
"""


@pytest.mark.parametrize("library", ["egl", "osmesa"])
def test_cameras_of_a_model_are_channels(library, tmp_path):
    pytest.importorskip("mujoco")
    if not ctypes.util.find_library({"egl": "EGL", "osmesa": "OSMesa"}[library]):
        pytest.skip(f"no library of OpenGL for {library}")
    script = [sys.executable, "-c", CAMERAS, str(QUADRUPED), str(tmp_path), SCENARIO]
    ended = subprocess.run(script, capture_output=True, text=True, env={**os.environ, "MUJOCO_GL": library, "TECTUM_PYTHON": sys.executable})
    if "cannot be used" in ended.stderr:
        pytest.skip(f"{library} has no device")
    assert ended.stdout == "passed\n", ended.stderr
