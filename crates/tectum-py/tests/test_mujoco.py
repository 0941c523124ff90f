import ctypes.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")
gymnasium = pytest.importorskip("gymnasium")

import tectum as tt  # noqa: E402

SCENES = pathlib.Path(__file__).resolve().parents[2] / "tectum-control" / "tests" / "data" / "mujoco"
ASSETS = pathlib.Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
HOPPER = {
    "period": 0.008,
    "channels": [f"joint_pos.{name}" for name in ("rootz", "rooty", "thigh_joint", "leg_joint", "foot_joint")] + ["joint_vel.*"],
    "noise": {"position": 5e-3, "velocity": 5e-3},
    "terminate": {
        "joint_pos.rootz": [0.7, np.inf],
        "joint_pos.rooty": [-0.2, 0.2],
        "joint_pos.*_joint": [-100, 100],
        "joint_vel.*": [-100, 100],
    },
    "time_limit": 1000,
    "reward": {"alive": 1.0, "progress": "joint_pos.rootx", "control": 1e-3},
}
QUADRUPED = {"keyframe": "stand", "period": 0.02, "noise": {"position": 0.02, "velocity": 0.1}, "terminate": {"height": [0.15, 1.0], "tilt": 1.0}}


@pytest.fixture(autouse=True)
def this_python(monkeypatch, tmp_path):
    monkeypatch.setenv("TECTUM_PYTHON", sys.executable)
    # MuJoCo writes its warnings into a file of the working directory.
    monkeypatch.chdir(tmp_path)


def test_starts_steps_rewards_and_ends_are_those_of_hopper_v5():
    body, environment = tt.MujocoBody(ASSETS / "hopper.xml", **HOPPER), gymnasium.make("Hopper-v5")
    actions, ended = np.random.default_rng(1), 0
    for seed in range(5):
        expected, _ = environment.reset(seed=seed)
        observed = body.reset(seed)
        for _ in range(200):
            inside = environment.unwrapped.data
            assert np.array_equal(body.data.qpos, inside.qpos) and np.array_equal(body.data.qvel, inside.qvel)
            clipped = np.concatenate((observed[:5], np.clip(observed[5:], -10, 10)))
            assert np.array_equal(clipped, expected.astype(np.float32))
            action = actions.uniform(-1, 1, 3).astype(np.float32)
            expected, reward, terminated, truncated, _ = environment.step(action)
            observed, *result = body.step(action)
            assert result == [reward, terminated, truncated]
            if terminated:
                ended += 1
                break
    assert ended >= 3


def test_starts_with_normal_velocities_are_those_of_ant_v5():
    noise = {"position": 0.1, "velocity": 0.1, "velocity_distribution": "normal"}
    body, environment = tt.MujocoBody(ASSETS / "ant.xml", period=0.05, noise=noise), gymnasium.make("Ant-v5")
    for seed in (0, 7):
        environment.reset(seed=seed)
        body.reset(seed)
        assert np.array_equal(body.data.qpos, environment.unwrapped.data.qpos)
        assert np.array_equal(body.data.qvel, environment.unwrapped.data.qvel)


@pytest.mark.parametrize("scene", ["ant.xml", "humanoid.xml", "hopper.xml", "half_cheetah.xml"])
def test_gymnasium_s_models_are_bodies(scene):
    body = tt.MujocoBody(ASSETS / scene)
    body.reset(0)
    for _ in range(20):
        observation, *_ = body.step(body.spec.safe_action)
    assert np.isfinite(observation).all() and len(body.spec.observation) == len(observation)


def rotation(quaternion):
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)]]
    return np.array([*rows, [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def test_channels_are_what_numpy_computes_of_mujoco_s_data():
    body = tt.MujocoBody(SCENES / "quadruped.xml", channels=["*"], **QUADRUPED)
    places = {channel.name: place for place, channel in enumerate(body.spec.observation)}
    generator = np.random.default_rng(3)
    body.reset(3)
    for _ in range(40):
        observation, *_ = body.step(np.array(body.spec.safe_action) + generator.uniform(-0.3, 0.3, 8))
        model, data = body.model, body.data
        read = lambda group, axes: observation[[places[f"{group}.{axis}"] for axis in axes]]  # noqa: E731
        turn = rotation(data.qpos[3:7])
        expected = {"base_pos": data.qpos[:3], "base_lin_vel_world": data.qvel[:3], "base_lin_vel": turn.T @ data.qvel[:3], "base_ang_vel": data.qvel[3:6]}
        expected |= {"projected_gravity": turn.T @ [0, 0, -1], "body_pos.tail": data.body("tail").xpos, "site_pos.rear_left_foot": data.site("rear_left_foot").xpos}
        expected |= {"sensor.gyro": data.sensor("gyro").data, "joint_ang_vel.swivel": data.joint("swivel").qvel}
        for group, numbers in expected.items():
            assert read(group, "xyz") == pytest.approx(numbers, abs=2e-6, rel=2e-6), group
        assert read("base_quat", "wxyz") == pytest.approx(data.qpos[3:7], abs=1e-6)
        assert read("sensor.attitude", "wxyz") == pytest.approx(data.sensor("attitude").data, abs=1e-6)
        for joint in ("front_left_hip", "rear_right_knee"):
            assert observation[places[f"joint_pos.{joint}"]] == np.float32(data.joint(joint).qpos[0])
            assert observation[places[f"joint_vel.{joint}"]] == np.float32(data.joint(joint).qvel[0])
            assert observation[places[f"actuator_force.{joint}"]] == pytest.approx(data.actuator(joint).force[0], rel=1e-6)
        forces = dict.fromkeys(range(model.nbody), 0.0)
        for number, contact in enumerate(data.contact):
            force = np.zeros(6)
            mujoco.mj_contactForce(model, data, number, force)
            for geom in contact.geom:
                forces[model.geom_bodyid[geom]] += force[0]
        for name, place in places.items():
            if name.startswith("contact."):
                assert observation[place] == pytest.approx(forces[model.body(name[8:]).id], rel=1e-5, abs=1e-6)
        # Positions are those after the step, not those before its last timestep.
        fresh = mujoco.MjData(model)
        fresh.qpos[:] = data.qpos
        mujoco.mj_kinematics(model, fresh)
        assert np.allclose(data.xpos, fresh.xpos, atol=1e-12)


def test_a_base_without_a_free_joint_has_the_same_channels():
    body = tt.MujocoBody(SCENES / "hopper.xml", period=0.01)
    places = {channel.name: place for place, channel in enumerate(body.spec.observation)}
    body.reset(0)
    for _ in range(30):
        observation, *_ = body.step([30.0, 1.0])
    lean = body.data.joint("lean").qpos[0]
    assert abs(lean) > 0.01
    forward, up = body.data.joint("forward").qvel[0], body.data.joint("up").qvel[0]
    assert observation[places["base_lin_vel.x"]] == pytest.approx(np.cos(lean) * forward - np.sin(lean) * up, rel=1e-5)
    assert observation[places["base_ang_vel.y"]] == pytest.approx(body.data.joint("lean").qvel[0], rel=1e-5)
    assert observation[places["projected_gravity.x"]] == pytest.approx(np.sin(lean), rel=1e-5)
    assert observation[places["base_pos.z"]] == pytest.approx(0.85 + body.data.joint("up").qpos[0], rel=1e-6)


class Sway:
    """A brain that answers the first observations."""

    def tick(self, observation):
        return np.tanh(3 * observation[:8] - 0.5)


def test_a_process_and_this_one_give_the_same_bits():
    scene = SCENES / "quadruped.xml"
    inside, outside = tt.MujocoBody(scene), tt.body(f"mujoco:{scene}")
    assert inside.spec == outside.spec
    actions = np.random.default_rng(0).uniform(-1.5, 1.5, (100, 8)).astype(np.float32)
    inside.reset(5), outside.reset(5)
    for action in actions[:50]:
        assert np.array_equal(inside.step(action)[0], outside.step(action)[0])
    assert np.array_equal(inside.state, outside.state)
    # A state goes from one to the other, and both continue with the same bits.
    continued = tt.MujocoBody(scene)
    continued.state = outside.state
    for action in actions[50:]:
        first, *_ = outside.step(action)
        assert np.array_equal(first, continued.step(action)[0]) and np.array_equal(first, inside.step(action)[0])
    traces = {tt.run_loop(body, Sway(), seconds=0.4, clock="sim", seed=2).receipt.trace for body in (inside, outside)}
    assert len(traces) == 1


def test_a_push_lasts_as_long_as_it_says_and_is_part_of_the_state():
    push = {"body": "trunk", "force": [0.0, 60.0, 0.0], "seconds": 0.05}
    body = tt.MujocoBody(SCENES / "quadruped.xml", keyframe="stand", channels=["base_lin_vel_world"], push=push, period=0.02)
    still, pushed = [], []
    body.reset(0)
    start = body.state
    for speeds in (still, pushed):
        body.state = start
        if speeds is pushed:
            body.push()
        for _ in range(5):
            speeds.append(body.step(body.spec.safe_action)[0][1])
            # The rest of the push is restored with the state.
            body.state = body.state
    gained = np.diff(np.array(pushed) - np.array(still), prepend=0.0)
    assert gained[0] > 0.05 and gained[1] > 0.05 and gained[3] < gained[0] / 2 and not body.data.xfrc_applied.any()
    with pytest.raises(ValueError, match=r"it has no push: \[body.push\] states one"):
        tt.MujocoBody(SCENES / "hopper.xml").push()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"channels": ["joint_pos.hipp"]}, "channel 'joint_pos.hipp' is unknown, perhaps 'joint_pos.hip'; known: joint_pos.forward"),
        ({"period": 0.003}, "period is 0.003 s, needs a whole multiple of the model's timestep, 0.002 s"),
        ({"keyframe": "stand"}, "keyframe 'stand' is unknown; known: none"),
        ({"base": "trunk"}, "body 'trunk' is unknown; known: world, torso, leg, foot"),
        ({"terminate": {"height": [1.0, 0.5]}}, r"terminate: base_pos.z is \[1.0, 0.5\], needs the lowest and the highest value"),
        ({"reward": {"progress": "base_pos"}}, "reward: progress is 'base_pos', needs one channel"),
        ({"reward": {"alife": 1.0}}, "key of reward 'alife' is unknown, perhaps 'alive'"),
        ({"push": {"body": "torso", "force": [1.0, 2.0, 3.0]}}, "push needs the key 'seconds'"),
    ],
)
def test_settings_are_refused_with_the_reason(settings, message):
    with pytest.raises(ValueError, match=message):
        tt.MujocoBody(SCENES / "hopper.xml", **settings)


def test_models_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(ValueError, match="none.xml: there is no such file"):
        tt.MujocoBody(tmp_path / "none.xml")
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody><geom/></mujoco>")
    with pytest.raises(ValueError, match="broken.xml: MuJoCo cannot read it: "):
        tt.MujocoBody(tmp_path / "broken.xml")
    with pytest.raises(ValueError, match="broken.xml: MuJoCo cannot read it: "):
        tt.body(f"mujoco:{tmp_path / 'broken.xml'}")


def test_urdf_is_read():
    body = tt.MujocoBody(SCENES / "pendulum.urdf", period=0.01, channels=["joint_pos.pivot"])
    assert body.spec.observation[0].wraps and body.spec.observation[0].unit == "rad"
    body.data.qpos[0] = 0.5
    speeds = [float(body.step([])[0][0]) for _ in range(60)]
    assert min(speeds) < -0.3, "it swings to the other side"


def test_a_body_that_became_unstable_says_so():
    body = tt.MujocoBody(SCENES / "hopper.xml")
    body.reset(0)
    body.data.qvel[:] = 1e12
    with pytest.raises(ArithmeticError, match="the simulation became unstable"):
        for _ in range(10):
            body.step([0.0, 0.0])


@pytest.mark.parametrize("library", ["egl", "osmesa"])
def test_pictures_are_rendered_without_a_display(library):
    if not ctypes.util.find_library({"egl": "EGL", "osmesa": "OSMesa"}[library]):
        pytest.skip(f"no library of OpenGL for {library}")
    code = f"import tectum as tt; print(tt.MujocoBody({str(SCENES / 'quadruped.xml')!r}, camera='side').render(64, 48).std() > 1)"
    drawn = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "MUJOCO_GL": library})
    if "cannot be used" in drawn.stderr:
        pytest.skip(f"{library} has no device")
    assert drawn.stdout == "True\n", drawn.stderr
