"""Contracts of real deployments: what a network receives and a body gets, computed again in NumPy.

Each case states one deployment's contract, and its observations and actions written from the
deployment's description. Both run over 300 ticks with two ends of episodes.
"""

from collections import deque

import numpy as np
import pytest

import tectum as tt

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

JOINTS = ["hip", "thigh", "calf", "wheel"]
N = len(JOINTS)
Q0 = np.array([0.1, 0.8, -1.5, 0.0])
DT = 0.02
TICKS, ENDS = 300, (100, 221)

CHANNELS = (
    [(f"joint_pos.{joint}", "rad") for joint in JOINTS]
    + [(f"joint_vel.{joint}", "rad/s") for joint in JOINTS]
    + [(f"base_quat.{axis}", "") for axis in "wxyz"]
    + [(f"base_ang_vel.{axis}", "rad/s") for axis in "xyz"]
    + [(f"base_lin_vel.{axis}", "m/s") for axis in "xyz"]
    + [(f"base_pos.{axis}", "m") for axis in "xyz"]
)


def spec(unit="rad", low=-1000.0, high=1000.0):
    observation = [tt.ObservationChannel(name, unit_, -10, 10) for name, unit_ in CHANNELS]
    action = [tt.ActionChannel(joint, unit, low, high) for joint in JOINTS]
    return tt.BodySpec("robot", DT, observation, action)


class Seen:
    """One random observation, by its parts in float32."""

    def __init__(self, rng):
        quat = rng.normal(size=4)
        self.values = np.concatenate(
            [Q0 + rng.normal(size=N), 3 * rng.normal(size=N), quat / np.linalg.norm(quat), rng.normal(size=9)]
        ).astype(np.float32)
        values = self.values.astype(np.float64)
        self.q, self.dq, self.quat = values[:N], values[N : 2 * N], values[2 * N : 2 * N + 4]
        self.omega, self.v, self.pos = np.split(values[2 * N + 4 :], 3)


def matrix(quat):
    """The rotation from the body's frame to the world's, of (w, x, y, z)."""
    w, u = quat[0] / np.linalg.norm(quat), quat[1:] / np.linalg.norm(quat)
    cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return (w * w - u @ u) * np.eye(3) + 2 * np.outer(u, u) + 2 * w * cross


def gravity(quat):
    return matrix(quat).T @ [0, 0, -1]


def six(rotation):
    return rotation[:, :2].ravel()


def network(path, inputs, outputs, nodes, weights=()):
    """Writes a network; inputs and outputs are names with shapes."""
    info = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in ports.items()]
        for ports in (inputs, outputs)
    ]
    tensors = [numpy_helper.from_array(np.asarray(array, np.float32), name) for name, array in dict(weights).items()]
    graph = helper.make_graph(nodes, "policy", *info, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def actor(path, width, gain=2.0, seed=5):
    """A network of one layer, `actions` = gain tanh(obs weight), and a call of it alone."""
    weight = np.random.default_rng(seed).normal(size=(width, N)) / np.sqrt(width)
    weight = weight.astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["obs", "weight"], ["product"]),
        helper.make_node("Tanh", ["product"], ["bounded"]),
        helper.make_node("Mul", ["bounded", "gain"], ["actions"]),
    ]
    weights = {"weight": weight, "gain": np.float32(gain)}
    network(path, {"obs": [1, width]}, {"actions": [1, N]}, nodes, weights)
    alone = tt.Network(path)
    return lambda obs: alone.run({"obs": np.asarray(obs, np.float32).reshape(1, width)})["actions"][0].astype(np.float64)


class Deployment:
    """What a deployment's own code does: `start`, then `observe` and `act` each tick."""

    previous = np.zeros(N)

    def start(self):
        self.previous, self.tick = np.zeros(N), 0

    def act(self, action, seen):
        self.previous = action
        return Q0 + 0.25 * action


def check(tmp_path, contract, width, deployment, body=None, gain=2.0, inputs="obs"):
    file = tmp_path / "policy.onnx"
    infer = actor(file, width, gain)
    (tmp_path / "policy.toml").write_text(contract)
    policy = tt.Policy(file, body or spec())
    rng = np.random.default_rng(1)
    deployment.start()
    for tick in range(TICKS):
        if tick in ENDS:
            policy.reset()
            deployment.start()
        seen = Seen(rng)
        target = policy.tick(seen.values)
        expected = deployment.observe(seen)
        found = policy.network_inputs[inputs]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=f"tick {tick}")
        action = deployment.act(infer(found), seen)
        np.testing.assert_allclose(target, action, rtol=2e-6, atol=2e-6, err_msg=f"tick {tick}")
        deployment.tick += 1


ACTION = f"""
[action]
channels = ["hip", "thigh", "calf", "wheel"]
scale = 0.25
offset = {Q0.tolist()}
"""
PERIOD = "period = 0.02\n"


def test_unitree_rl_gym(tmp_path):
    contract = PERIOD + """
[commands.vx]
schedule = [[0.0, 0.0], [1.0, 0.6], [3.0, 0.9]]
range = [-0.8, 0.8]
[commands.vy]
value = 0.2
[commands.yaw]
schedule = [[0.0, 0.0], [2.0, 1.0]]
interpolation = "linear"
[clocks.gait]
period = 0.8
start = 0.025
[[observation]]
channels = ["base_ang_vel.*"]
scale = 0.25
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
[[observation]]
channels = ["command.*"]
scale = [2.0, 2.0, 0.25]
[[observation]]
channels = ["joint_pos.*"]
offset = [0.1, 0.8, -1.5, 0.0]
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
[[observation]]
source = "previous action"
[[observation]]
channels = ["clock.gait"]
function = "sin"
[[observation]]
channels = ["clock.gait"]
function = "cos"
""" + ACTION

    class Gym(Deployment):
        def observe(self, seen):
            time = self.tick * DT
            vx = min(0.8, 0.0 if time < 1 - 1e-9 else 0.6 if time < 3 - 1e-9 else 0.9)
            command = np.array([vx, 0.2, min(time / 2, 1.0)]) * [2.0, 2.0, 0.25]
            # The counter is incremented before it is used.
            phase = 2 * np.pi * (((self.tick + 1) * DT) % 0.8) / 0.8
            parts = [seen.omega * 0.25, gravity(seen.quat), command, seen.q - Q0, seen.dq * 0.05, self.previous]
            return np.concatenate([*parts, [np.sin(phase), np.cos(phase)]])

    check(tmp_path, contract, 23, Gym())


class Histories:
    """Values of each term, the newest last, with what precedes the first."""

    def __init__(self, depth, zeros):
        self.depth, self.zeros, self.kept = depth, zeros, None

    def add(self, terms):
        if self.kept is None:
            first = [np.zeros_like(term) if self.zeros else term for term in terms]
            self.kept = [deque([value] * self.depth, self.depth) for value in first]
        for kept, term in zip(self.kept, terms):
            kept.append(term)

    def term_major(self):
        return np.concatenate([value for kept in self.kept for value in kept])

    def frame_major(self, ages):
        return np.concatenate([kept[self.depth - 1 - age] for age in ages for kept in self.kept])


def test_unitree_rl_lab(tmp_path):
    history = 'history = 5\norder = "oldest first"\nfill = "first"\n'
    contract = PERIOD + f"""
[commands.vx]
value = 3.0
range = [-0.5, 1.0]
[clocks.gait]
period = 0.6
start = {2 * DT / 0.6}
[[observation]]
channels = ["base_ang_vel.*"]
clip = [-0.7, 0.9]
scale = [0.2, 0.3, 0.4]
apply = ["clip", "scale"]
{history}
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
{history}
[[observation]]
channels = ["command.vx"]
{history}
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
{history}
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
{history}
[[observation]]
source = "previous action"
as = "raw"
{history}
[[observation]]
channels = ["clock.gait"]
function = "sin_cos"
{history}
""" + ACTION + "clip_target = [[-0.3, 0.3], [0.5, 0.9], [-1.6, -1.4], [-1, 1]]\n"

    class Lab(Deployment):
        def start(self):
            super().start()
            self.history = Histories(5, zeros=False)
            self.phase = DT / 0.6  # The evaluation that reset makes.

        def observe(self, seen):
            self.phase = (self.phase + DT / 0.6) % 1
            omega = np.clip(seen.omega, -0.7, 0.9) * [0.2, 0.3, 0.4]
            angle = 2 * np.pi * self.phase
            terms = [omega, gravity(seen.quat), np.array([1.0]), seen.q - Q0, seen.dq * 0.05, self.previous]
            self.history.add([*terms, np.array([np.sin(angle), np.cos(angle)])])
            return self.history.term_major()

        def act(self, action, seen):
            return np.clip(super().act(action, seen), [-0.3, 0.5, -1.6, -1], [0.3, 0.9, -1.4, 1])

    check(tmp_path, contract, 5 * 21, Lab())


@pytest.mark.parametrize("priority", ["time", "term"])
def test_rl_sar(tmp_path, priority):
    ages = [5, 4, 3, 2, 1, 0] if priority == "time" else [0, 1, 2, 3, 4, 5]
    own = "" if priority == "time" else f"history = {ages}\n"
    whole = f"frames = {ages}\n" if priority == "time" else ""
    contract = PERIOD + f"""
[inputs.obs]
fill = "zeros"
clip = [-1.5, 1.5]
{whole}
[[observation]]
channels = ["base_ang_vel.*"]
scale = 0.25
{own}
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
{own}
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
scale = [1.0, 1.0, 1.0, 0.0]
{own}
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
{own}
[[observation]]
source = "previous action"
as = "clipped"
{own}
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip = [[-1, 1], [-0.5, 0.5], [-1, 1], [-2, 2]]
scale = [0.125, 0.25, 0.25, 5.0]
offset = {Q0.tolist()}
"""

    class Sar(Deployment):
        def start(self):
            super().start()
            self.history = Histories(6, zeros=True)

        def observe(self, seen):
            q = (seen.q - Q0) * [1, 1, 1, 0]
            terms = [seen.omega * 0.25, gravity(seen.quat), q, seen.dq * 0.05, self.previous]
            self.history.add([np.clip(term, -1.5, 1.5) for term in terms])
            if priority == "time":
                return self.history.frame_major(ages)
            return np.concatenate([kept[5 - age] for kept in self.history.kept for age in ages])

        def act(self, action, seen):
            self.previous = np.clip(action, [-1, -0.5, -1, -2], [1, 0.5, 1, 2])
            return self.previous * [0.125, 0.25, 0.25, 5.0] + Q0

    check(tmp_path, contract, 6 * 18, Sar())


def test_isaac_lab_with_quaternions_of_version_3(tmp_path):
    contract = PERIOD + f"""
[[observation]]
channels = ["base_quat.x", "base_quat.y", "base_quat.z", "base_quat.w"]
function = "gravity"
quaternion = "xyzw"
history = 3
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
clip = [-1.0, 1.0]
scale = 2.0
history = 3
[[observation]]
source = "previous action"
as = "clipped"
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip = [-1.0, 1.0]
scale = 0.5
add = ["joint_pos.*"]
"""

    class Isaac(Deployment):
        def start(self):
            super().start()
            self.history = Histories(3, zeros=False)

        def observe(self, seen):
            self.history.add([gravity(seen.quat), np.clip(seen.q - Q0, -1, 1) * 2])
            return np.concatenate([self.history.term_major(), self.previous])

        def act(self, action, seen):
            # A relative position: the target is the present one and the action.
            self.previous = np.clip(action, -1, 1)
            return seen.q + 0.5 * self.previous

    check(tmp_path, contract, 3 * 7 + 4, Isaac())


def test_beyond_mimic(tmp_path):
    """References of a step are a part of the observation of the next one."""
    width, frames = 8 + 6 + 3 + 3 + 4, 40
    rng = np.random.default_rng(3)
    motion = rng.normal(size=(frames, 8)).astype(np.float32)
    position = rng.normal(size=(frames, 3)).astype(np.float32)
    quat = rng.normal(size=(frames, 8)).astype(np.float32)
    quat = (quat.reshape(frames, 2, 4) / np.linalg.norm(quat.reshape(frames, 2, 4), axis=2, keepdims=True)).reshape(frames, 8)
    weight = (rng.normal(size=(width, N)) / 5).astype(np.float32)
    last = numpy_helper.from_array(np.array(frames - 1, np.int64), "last")
    nodes = [
        helper.make_node("MatMul", ["obs", "weight"], ["actions"]),
        helper.make_node("Cast", ["time_step"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Squeeze", ["whole", "axis"], ["index"]),
        helper.make_node("Min", ["index", "last"], ["frame"]),
    ]
    nodes += [helper.make_node("Gather", [f"{name}_table", "frame"], [name], axis=0) for name in ("motion", "body_pos_w", "body_quat_w")]
    file = tmp_path / "policy.onnx"
    graph = helper.make_graph(
        nodes,
        "tracker",
        [helper.make_tensor_value_info("obs", 1, [1, width]), helper.make_tensor_value_info("time_step", 1, [1, 1])],
        [
            helper.make_tensor_value_info("actions", 1, [1, N]),
            helper.make_tensor_value_info("motion", 1, [1, 8]),
            helper.make_tensor_value_info("body_pos_w", 1, [1, 3]),
            helper.make_tensor_value_info("body_quat_w", 1, [1, 8]),
        ],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.array([1], np.int64), "axis"),
            last,
            numpy_helper.from_array(motion, "motion_table"),
            numpy_helper.from_array(position, "body_pos_w_table"),
            numpy_helper.from_array(quat.astype(np.float32), "body_quat_w_table"),
        ],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), file)
    (tmp_path / "policy.toml").write_text(PERIOD + f"""
input = "obs"
output = "actions"
prime = true
[[observation]]
channels = ["output.motion"]
[[observation]]
channels = ["base_quat.*", "output.body_quat_w.4-7"]
function = "relative_rotation_6d"
quaternion = "wxyz"
[[observation]]
channels = ["base_quat.*", "base_pos.*", "output.body_pos_w"]
function = "relative_position"
quaternion = "wxyz"
[[observation]]
channels = ["base_quat.*", "base_lin_vel.*"]
function = "rotate_inverse"
quaternion = "wxyz"
[[observation]]
source = "previous action"
[[observation]]
input = "time_step"
source = "step"
offset = -1
[action]
channels = ["hip", "thigh", "calf", "wheel"]
scale = [0.1, 0.2, 0.3, 0.4]
add = ["output.motion.0-3"]
""")
    policy, seeds = tt.Policy(file, spec()), np.random.default_rng(1)
    step, frame, previous = 0, 0, np.zeros(N)
    for tick in range(TICKS):
        if tick in ENDS:
            policy.reset()
            step, previous, frame = 0, np.zeros(N), 0
        if step == 0:
            # An episode begins with an inference on zeros at the start step, whose number is 1 by the offset.
            frame = 1
        seen = Seen(seeds)
        target = policy.tick(seen.values)
        rotation = matrix(seen.quat)
        expected = np.concatenate([
            motion[frame], six(rotation.T @ matrix(quat[frame, 4:].astype(np.float64))),
            rotation.T @ (position[frame] - seen.pos), rotation.T @ seen.v, previous,
        ])
        found = policy.network_inputs["obs"]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=f"tick {tick}")
        assert policy.network_inputs["time_step"] == [step + 1]
        frame = min(step + 1, frames - 1)
        previous = found.astype(np.float64) @ weight
        action = motion[frame][:4] + previous * [0.1, 0.2, 0.3, 0.4]
        np.testing.assert_allclose(target, action, rtol=1e-5, atol=2e-6, err_msg=f"tick {tick}")
        step += 1


def test_holosoma(tmp_path):
    """Terms in alphabetical order, and phases of two feet that stand while commands are small."""
    history = 'history = 4\norder = "oldest first"\nfill = "zeros"\n'
    contract = PERIOD + f"""
[commands.vx]
schedule = [[0.0, 0.0], [0.5, 0.4], [2.5, 0.0], [3.0, 0.3]]
[commands.yaw]
value = 0.005
[clocks.gait]
period = 0.7
offsets = [0.0, 0.5]
range = "signed"
[clocks.gait.standing]
commands = ["vx", "yaw"]
below = 0.01
phase = -0.5
[[observation]]
source = "previous action"
as = "clipped"
{history}
[[observation]]
channels = ["base_ang_vel.*"]
scale = 0.25
{history}
[[observation]]
channels = ["clock.gait"]
function = "cos"
{history}
[[observation]]
channels = ["command.vx", "command.yaw"]
{history}
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
{history}
[[observation]]
channels = ["clock.gait"]
function = "sin"
{history}
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip = [-1.2, 1.2]
scale = 0.25
offset = {Q0.tolist()}
"""

    class Holosoma(Deployment):
        def start(self):
            super().start()
            self.history = Histories(4, zeros=True)
            self.phase, self.stood = np.array([0.0, np.pi]), False

        def observe(self, seen):
            time = self.tick * DT + 1e-9
            vx = 0.0 if time < 0.5 else 0.4 if time < 2.5 else 0.0 if time < 3 else 0.3
            stands = np.hypot(vx, 0.005) < 0.01
            if stands:
                self.phase = np.array([np.pi, np.pi])
            elif self.stood:
                self.phase = np.array([0.0, np.pi])
            elif self.tick > 0:
                self.phase = self.phase + 2 * np.pi * DT / 0.7
            self.stood = stands
            terms = [self.previous, seen.omega * 0.25, np.cos(self.phase), np.array([vx, 0.005])]
            self.history.add([*terms, seen.dq * 0.05, np.sin(self.phase)])
            return self.history.term_major()

        def act(self, action, seen):
            return super().act(np.clip(action, -1.2, 1.2), seen)

    check(tmp_path, contract, 4 * 17, Holosoma())


def test_mujoco_playground(tmp_path):
    contract = PERIOD + f"""
[commands.x]
value = 0.7
[commands.yaw]
value = -0.2
[clocks.gait]
frequency = 1.5
offsets = [0.0, 0.5]
range = "signed"
[[observation]]
channels = ["base_lin_vel.*"]
[[observation]]
channels = ["base_ang_vel.*"]
[[observation]]
channels = ["base_quat.*"]
function = "gravity"
quaternion = "wxyz"
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
[[observation]]
channels = ["joint_vel.*"]
[[observation]]
source = "previous action"
[[observation]]
channels = ["clock.gait"]
function = "cos"
[[observation]]
channels = ["clock.gait"]
function = "sin"
[[observation]]
channels = ["command.x", "command.yaw"]
""" + ACTION.replace("0.25", "0.5")

    class Playground(Deployment):
        def observe(self, seen):
            phase = 2 * np.pi * 1.5 * DT * self.tick + np.array([0, np.pi])
            return np.concatenate([
                seen.v, seen.omega, gravity(seen.quat), seen.q - Q0, seen.dq, self.previous,
                np.cos(phase), np.sin(phase), [0.7, -0.2],
            ])

        def act(self, action, seen):
            self.previous = action
            return Q0 + 0.5 * action

    check(tmp_path, contract, 27, Playground(), gain=1.0)


def test_limx_encoder_and_torque_bounds(tmp_path):
    """Two networks; the fed-back action is the one that the torque allows."""
    frame, latent = 3 + 3 + 4 + 4 + 4 + 2, 3
    encode = (np.random.default_rng(9).normal(size=(10 * frame, latent)) / 10).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["history", "weight"], ["latent"])]
    network(tmp_path / "encoder.onnx", {"history": [1, 10 * frame]}, {"latent": [1, latent]}, nodes, {"weight": encode})

    def terms(table, extra=""):
        parts = [
            f'channels = ["base_ang_vel.*"]\nscale = 0.25\n{extra}',
            f'channels = ["base_quat.*"]\nfunction = "gravity"\nquaternion = "wxyz"\n{extra}',
            f'channels = ["joint_pos.*"]\noffset = {Q0.tolist()}\n{extra}',
            f'channels = ["joint_vel.*"]\nscale = 0.05\n{extra}',
            f'source = "previous action"\nas = "clipped"\n{extra}',
            f'channels = ["clock.gait"]\nfunction = "sin"\n{extra}',
            f'channels = ["clock.gait"]\nfunction = "cos"\n{extra}',
        ]
        return "".join(f"[[{table}]]\n{part}\n" for part in parts)

    contract = PERIOD + """
[clocks.gait]
frequency = 2.0
at_end = "reset"
[commands.x]
value = 0.4
[[network]]
name = "encoder"
model = "encoder.onnx"
[network.inputs.history]
frames = 10
order = "oldest first"
fill = "first"
""" + terms("network.observation") + '[[observation]]\nnetwork = "encoder"\n' + terms("observation").replace(
        'channels = ["base_ang_vel.*"]\nscale = 0.25\n', 'channels = ["base_ang_vel.*"]\nscale = 0.25\nclip = [-0.3, 0.3]\napply = ["scale", "clip"]\n'
    ) + f"""[[observation]]
channels = ["command.x"]
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip_torque = true
scale = 0.25
offset = {Q0.tolist()}
[motors]
stiffness = 42.0
damping = [3.5, 3.5, 3.5, 0.8]
torque_limit = 30.0
"""

    class Limx(Deployment):
        def start(self):
            super().start()
            self.history, self.gait = Histories(10, zeros=False), 0.0

        def observe(self, seen):
            if self.tick > 0:
                self.gait += DT * 2.0
                if self.gait > 1:
                    self.gait = 0.0
            angle = 2 * np.pi * self.gait
            terms = [
                seen.omega * 0.25, gravity(seen.quat), seen.q - Q0, seen.dq * 0.05, self.previous,
                np.array([np.sin(angle)]), np.array([np.cos(angle)]),
            ]
            self.history.add(terms)
            self.expected = self.history.frame_major(range(9, -1, -1))
            own = [np.clip(terms[0], -0.3, 0.3), *terms[1:]]
            return np.concatenate([np.zeros(latent), *own, [0.4]])

        def act(self, action, seen):
            damping = np.array([3.5, 3.5, 3.5, 0.8])
            low, high = ((seen.q - Q0 + (damping * seen.dq + side * 30) / 42) / 0.25 for side in (-1, 1))
            self.previous = np.clip(action, low, high)
            return Q0 + 0.25 * self.previous

    width = latent + frame + 1
    file = tmp_path / "policy.onnx"
    infer = actor(file, width)
    (tmp_path / "policy.toml").write_text(contract)
    torques = spec("N m")
    policy, deployment, rng = tt.Policy(file, torques), Limx(), np.random.default_rng(1)
    deployment.start()
    clipped = 0
    for tick in range(TICKS):
        if tick in ENDS:
            policy.reset()
            deployment.start()
        seen = Seen(rng)
        target = policy.tick(seen.values)
        expected = deployment.observe(seen)
        found = policy.network_inputs
        np.testing.assert_allclose(found["history"], deployment.expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found["obs"], expected, rtol=1e-6, atol=1e-6)
        code = deployment.expected @ encode.astype(np.float64)
        raw = infer(np.concatenate([code, expected[latent:]]))
        action = deployment.act(raw, seen)
        clipped += np.sum(raw != deployment.previous)
        np.testing.assert_allclose(target, action, rtol=1e-5, atol=1e-5, err_msg=f"tick {tick}")
        deployment.tick += 1
    assert clipped > 50


def test_humanoid_gym(tmp_path):
    contract = PERIOD + """
[clocks.cycle]
period = 0.64
[inputs.obs]
frames = 15
order = "oldest first"
fill = "zeros"
clip = [-1.8, 1.8]
[[observation]]
channels = ["clock.cycle"]
function = "sin"
[[observation]]
channels = ["clock.cycle"]
function = "cos"
[[observation]]
value = [0.5, 0.1, 0.2]
scale = [2.0, 2.0, 1.0]
[[observation]]
channels = ["joint_pos.*"]
[[observation]]
channels = ["joint_vel.*"]
scale = 0.05
[[observation]]
source = "previous action"
as = "clipped"
[[observation]]
channels = ["base_ang_vel.*"]
[[observation]]
channels = ["base_quat.*"]
function = "euler"
quaternion = "wxyz"
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip = [-1.1, 1.1]
scale = 0.25
"""

    class Humanoid(Deployment):
        def start(self):
            super().start()
            self.history = Histories(15, zeros=True)

        def observe(self, seen):
            angle = 2 * np.pi * self.tick * DT / 0.64
            w, x, y, z = seen.quat / np.linalg.norm(seen.quat)
            euler = [
                np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)),
                np.arcsin(np.clip(2 * (w * y - z * x), -1, 1)),
                np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)),
            ]
            parts = [[np.sin(angle), np.cos(angle)], [1.0, 0.2, 0.2], seen.q, seen.dq * 0.05, self.previous, seen.omega, euler]
            self.history.add([np.clip(np.concatenate(parts), -1.8, 1.8)])
            return self.history.frame_major(range(14, -1, -1))

        def act(self, action, seen):
            self.previous = np.clip(action, -1.1, 1.1)
            return 0.25 * self.previous

    check(tmp_path, contract, 15 * 23, Humanoid())


def test_tienkung(tmp_path):
    contract = PERIOD + f"""
[clocks.gait]
period = 0.85
offsets = [0.38, 0.88]
first = [0.0, 0.0]
[inputs.obs]
frames = 10
order = "oldest first"
fill = "zeros"
clip = [-1.4, 1.4]
[[observation]]
channels = ["base_ang_vel.*"]
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
[[observation]]
source = "previous action"
as = "clipped"
[[observation]]
channels = ["clock.gait"]
function = "sin"
[[observation]]
channels = ["clock.gait"]
function = "cos"
[[observation]]
value = [0.38, 0.38]
""" + ACTION + "clip = [-1.3, 1.3]\n"

    class TienKung(Deployment):
        def start(self):
            super().start()
            self.history = Histories(10, zeros=True)

        def observe(self, seen):
            phase = (self.tick * DT / 0.85 + np.array([0.38, 0.88])) % 1 if self.tick else np.zeros(2)
            angle = 2 * np.pi * phase
            self.history.add([np.concatenate([seen.omega, seen.q - Q0, self.previous, np.sin(angle), np.cos(angle), [0.38, 0.38]])])
            return np.clip(self.history.frame_major(range(9, -1, -1)), -1.4, 1.4)

        def act(self, action, seen):
            return super().act(np.clip(action, -1.3, 1.3), seen)

    check(tmp_path, contract, 10 * 17, TienKung())


def test_pupper(tmp_path):
    """Newest first, zeros except for gravity, an action that is faded in and fed back so."""
    contract = PERIOD + f"""
[inputs.obs]
frames = 4
order = "newest first"
fill = "zeros"
[[observation]]
channels = ["base_ang_vel.*"]
[[observation]]
channels = ["base_quat.x", "base_quat.y", "base_quat.z", "base_quat.w"]
function = "gravity"
quaternion = "xyzw"
fill_value = [0.0, 0.0, -1.0]
[[observation]]
channels = ["joint_pos.*"]
offset = {Q0.tolist()}
[[observation]]
source = "previous action"
as = "clipped"
[action]
channels = ["hip", "thigh", "calf", "wheel"]
fade_in = 25
scale = 0.5
offset = {Q0.tolist()}
clip_target = [[-0.2, 0.3], [0.4, 1.2], [-2.0, -1.0], [-0.5, 0.5]]
"""

    class Pupper(Deployment):
        def start(self):
            super().start()
            self.frames = deque([np.concatenate([np.zeros(3), [0, 0, -1], np.zeros(8)])] * 4, 4)

        def observe(self, seen):
            self.frames.appendleft(np.concatenate([seen.omega, gravity(seen.quat), seen.q - Q0, self.previous]))
            return np.concatenate(self.frames)

        def act(self, action, seen):
            self.previous = action * min(1.0, (self.tick + 1) / 25)
            return np.clip(Q0 + 0.5 * self.previous, [-0.2, 0.4, -2.0, -0.5], [0.3, 1.2, -1.0, 0.5])

    check(tmp_path, contract, 4 * 14, Pupper())


def test_booster(tmp_path):
    contract = PERIOD + """
[clocks.gait]
period = 0.531
[inputs.obs]
frames = 3
order = "oldest first"
fill = "zeros"
clip = [-1.0, 1.0]
[[observation]]
channels = ["base_quat.*"]
function = "roll_pitch"
quaternion = "wxyz"
[[observation]]
channels = ["clock.gait"]
[[observation]]
source = "previous action"
as = "sent"
""" + ACTION + "clip = [-1.0, 1.0]\n"

    class Booster(Deployment):
        def start(self):
            super().start()
            self.history = Histories(3, zeros=True)

        def observe(self, seen):
            w, x, y, z = seen.quat / np.linalg.norm(seen.quat)
            roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
            pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
            angle = 2 * np.pi * ((self.tick * DT / 0.531) % 1)
            self.history.add([np.concatenate([[roll, pitch, angle], self.previous])])
            return np.clip(self.history.frame_major([2, 1, 0]), -1, 1)

        def act(self, action, seen):
            self.previous = Q0 + 0.25 * np.clip(action, -1, 1)
            return self.previous

    check(tmp_path, contract, 21, Booster())


@pytest.mark.parametrize("kind", ["json", "npz"])
def test_normalizers_of_stable_baselines3_and_lerobot(tmp_path, kind):
    rng = np.random.default_rng(4)
    mean, spread = rng.normal(size=8), rng.uniform(0.1, 2.0, size=8)
    low, high = -np.abs(rng.normal(size=4)) - 0.1, np.abs(rng.normal(size=4)) + 0.1
    if kind == "json":
        (tmp_path / "stats.json").write_text(
            '{"obs_rms": {"mean": %s, "var": %s}}' % (mean.tolist(), spread.tolist())
        )
    else:
        np.savez_compressed(tmp_path / "stats.npz", **{"obs_rms.mean": mean, "obs_rms.var": spread})
    contract = PERIOD + f"""
[inputs.obs.normalize]
formula = "var"
file = "stats.{kind}"
mean = "obs_rms.mean"
var = "obs_rms.var"
epsilon = 1e-8
clip = 2.0
[[observation]]
channels = ["joint_pos.*", "joint_vel.*"]
[action]
channels = ["hip", "thigh", "calf", "wheel"]
clip = [-1.0, 1.0]
[action.unnormalize]
formula = "range"
min = {low.tolist()}
max = {high.tolist()}
"""

    class Normalized(Deployment):
        def observe(self, seen):
            values = np.concatenate([seen.q, seen.dq])
            return np.clip((values - mean) / np.sqrt(spread + 1e-8), -2, 2)

        def act(self, action, seen):
            return (np.clip(action, -1, 1) + 1) / 2 * (high - low) + low

    check(tmp_path, contract, 8, Normalized())


def test_commands_are_set_while_a_policy_runs(tmp_path):
    file = tmp_path / "policy.onnx"
    actor(file, 1)
    (tmp_path / "policy.toml").write_text(PERIOD + """
[commands.vx]
value = 0.25
range = [-1.0, 1.0]
[[observation]]
channels = ["command.vx"]
""" + ACTION)
    policy = tt.Policy(file, spec())
    observation = Seen(np.random.default_rng(1)).values
    assert policy.commands == ["vx"]
    for value, expected in [(None, 0.25), (0.5, 0.5), (7.0, 1.0), (None, 0.25)]:
        policy.set_command("vx", value)
        policy.tick(observation)
        assert policy.network_inputs["obs"] == [expected]
    with pytest.raises(ValueError, match='no command "vy", perhaps "vx"'):
        policy.set_command("vy", 1.0)
    with pytest.raises(ValueError, match="finite"):
        policy.set_command("vx", float("nan"))
    with pytest.raises(ValueError, match="no commands"):
        tt.brain("zero", "pendulum").set_command("vx", 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('channels = ["joint_pos.hip", "joint_pos.hip"]', "named twice"),
        ('channels = ["joint_position.*"]', 'no channel "joint_position.*"'),
        ('channels = ["base_quat.*"]\nfunction = "gravity"', "needs the key quaternion"),
        ('channels = ["base_quat.*"]\nquaternion = "wxyz"', "no effect without a function"),
        ('channels = ["base_ang_vel.*"]\nfunction = "gravity"\nquaternion = "wxyz"', "takes 4 numbers"),
        ('source = "phase"', 'source "phase" is unknown'),
        ('channels = ["clock.gait"]', 'no channel "clock.gait"'),
        ('value = [1.0]\nhistory = 0', "needs 1 to 1000"),
        ('value = [1.0]\nhistory = [1, 0]\norder = "oldest first"', "lists ages"),
        ('value = [1.0]\norder = "newest first"', "no effect without history"),
        ('value = [1.0]\nfill = "zeros"\nfill_value = [1.0]', "exclude each other"),
        ('value = [1.0]\nscale = 2.0\napply = ["clip"]', "apply does not name scale"),
        ('value = [1.0]\nas = "sent"', "as is for the source"),
        ('value = [1.0]\nclip = [1.0, -1.0]', "a lower and an upper bound"),
        ('network = "encoder"', 'no network "encoder"'),
    ],
)
def test_errors_name_the_place_in_a_contract(tmp_path, change, message):
    file = tmp_path / "policy.onnx"
    actor(file, 1)
    action = ACTION if "named twice" not in message else ACTION.replace('"thigh"', '"hip"')
    (tmp_path / "policy.toml").write_text(f"{PERIOD}[[observation]]\n{change}\n{action}")
    with pytest.raises((ValueError, tt.DataError)) as error:
        tt.Policy(file, spec())
    assert message in str(error.value) and "policy.toml" in str(error.value)


def test_a_quaternion_that_is_none_is_an_error_of_the_tick(tmp_path):
    file = tmp_path / "policy.onnx"
    actor(file, 3)
    (tmp_path / "policy.toml").write_text(
        PERIOD + '[[observation]]\nchannels = ["base_quat.*"]\nfunction = "gravity"\nquaternion = "wxyz"\n' + ACTION
    )
    policy = tt.Policy(file, spec())
    with pytest.raises(tt.DataError, match="observation 1: the quaternion .* has the norm 0"):
        policy.tick(np.zeros(len(CHANNELS), np.float32))
