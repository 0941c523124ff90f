"""Makes two policies in the formats of their frameworks' exports: random weights, untrained.

    pip install numpy onnx
    python deployments.py

`locomotion/`   `policy.onnx` as rsl_rl's exporter writes it (opset 11, `obs` [1, 33] -> `actions` [1, 8]), `deploy.yaml` as unitree_rl_lab
                writes it, and `scene.xml`, a quadruped of eight torque motors. The policy's joints are in breadth-first order, the motors limb by
                limb. Its actions are small: the robot stands in its default pose.
`act/`          `policy.onnx`, a chunk of ten actions from `observation.state` [1, 2] by attention, `config.json` and the statistics of the
                processors as LeRobot writes them.
"""

import json
import struct
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).parent
LEGS = ["front_left", "front_right", "rear_left", "rear_right"]
MOTORS = [f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "knee")]
DEFAULT = {"hip": 0.5, "knee": -1.0}
CHUNK, WIDTH = 10, 16


def save(path: Path, nodes: list, inputs: dict, outputs: dict, weights: dict, opset: int, producer: str) -> None:
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in group.items()] for group in (inputs, outputs)]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "policy", *ports, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name=producer)
    helper.set_model_props(model, {"note": "untrained: random weights"})
    onnx.checker.check_model(model)
    onnx.save(model, path)


def locomotion() -> None:
    folder, random = FOLDER / "locomotion", np.random.default_rng(7)
    folder.mkdir(exist_ok=True)
    sizes, nodes, weights, last = [33, 32, 16, 8], [], {}, "obs"
    for layer, (width, height) in enumerate(zip(sizes, sizes[1:])):
        scale = (0.2 if layer == 2 else 1.0) / np.sqrt(width)
        weights[f"actor.{2 * layer}.weight"] = random.uniform(-scale, scale, (height, width)).astype(np.float32)
        weights[f"actor.{2 * layer}.bias"] = np.zeros(height, np.float32)
        output = "actions" if layer == 2 else f"linear_{layer}"
        nodes.append(helper.make_node("Gemm", [last, f"actor.{2 * layer}.weight", f"actor.{2 * layer}.bias"], [output], transB=1))
        if layer < 2:
            nodes.append(helper.make_node("Elu", [output], [f"elu_{layer}"]))
            last = f"elu_{layer}"
    save(folder / "policy.onnx", nodes, {"obs": [1, 33]}, {"actions": [1, 8]}, weights, 11, "rsl_rl")
    # Breadth first: the hips, then the knees.
    order = [MOTORS.index(f"{leg}_{joint}") for joint in ("hip", "knee") for leg in LEGS]
    default = [DEFAULT[MOTORS[motor].rsplit("_", 1)[1]] for motor in order]
    terms = "".join(
        f"  {name}:\n    params: {params}\n    clip: {clip}\n    scale: [{', '.join([scale] * size)}]\n    history_length: 1\n"
        for name, params, clip, scale, size in [
            ("base_ang_vel", "{}", "[-100.0, 100.0]", "0.2", 3),
            ("projected_gravity", "{}", "[-100.0, 100.0]", "1.0", 3),
            ("velocity_commands", "{command_name: base_velocity}", "[-100.0, 100.0]", "1.0", 3),
            ("joint_pos_rel", "{asset_cfg: {joint_ids: !!python/object/apply:builtins.slice [null, null, null]}}", "[-100.0, 100.0]", "1.0", 8),
            ("joint_vel_rel", "{}", "[-100.0, 100.0]", "0.05", 8),
            ("last_action", "{}", "[-100.0, 100.0]", "1.0", 8),
        ]
    )
    stiffness, damping = [40.0] * 8, [1.0] * 8
    (folder / "deploy.yaml").write_text(
        f"joint_ids_map: {order}\nstep_dt: 0.02\nstiffness: {stiffness}\ndamping: {damping}\ndefault_joint_pos: {default}\n"
        "commands:\n  base_velocity:\n    ranges:\n      lin_vel_x: [-0.5, 1.0]\n      lin_vel_y: [-0.3, 0.3]\n      ang_vel_z: [-0.5, 0.5]\n      heading: null\n"
        f"actions:\n  JointPositionAction:\n    clip: null\n    joint_names:\n    - .*\n    scale: {[0.25] * 8}\n    offset: {default}\n    joint_ids: null\n"
        f"observations:\n{terms}"
    )
    limbs = "".join(
        f"""
      <body name="{leg}" pos="{x} {y} 0">
        <joint name="{leg}_hip" axis="0 1 0" range="-1.5 1.5"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.03" mass="0.5"/>
        <body name="{leg}_shank" pos="0 0 -0.2">
          <joint name="{leg}_knee" axis="0 1 0" range="-2.2 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.025" mass="0.2"/>
        </body>
      </body>"""
        for leg, x, y in zip(LEGS, (0.2, 0.2, -0.2, -0.2), (0.15, -0.15, 0.15, -0.15))
    )
    motors = "".join(f'\n    <motor name="{motor}" joint="{motor}" ctrlrange="-30 30"/>' for motor in MOTORS)
    pose = " ".join(f"{DEFAULT[motor.rsplit('_', 1)[1]]:g}" for motor in MOTORS)
    (folder / "scene.xml").write_text(f"""<!-- A quadruped of eight torque motors on a plane. -->
<mujoco model="quadruped">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" integrator="implicitfast"/>
  <default>
    <joint damping="0.2" armature="0.01"/>
    <geom friction="1 0.01 0.001"/>
  </default>
  <worldbody>
    <light pos="0 0 4"/>
    <camera name="side" pos="0 -2 0.6" xyaxes="1 0 0 0 0.2 1"/>
    <geom name="ground" type="plane" size="20 20 0.1" rgba="0.6 0.7 0.6 1"/>
    <body name="trunk" pos="0 0 0.4">
      <freejoint name="root"/>
      <geom name="trunk" type="box" size="0.25 0.1 0.05" mass="6"/>{limbs}
    </body>
  </worldbody>
  <actuator>{motors}
  </actuator>
  <keyframe>
    <key name="stand" qpos="0 0 0.38 1 0 0 0 {pose}"/>
  </keyframe>
</mujoco>
""")


def safetensors(path: Path, arrays: dict) -> None:
    """A file of float32 arrays in the format of safetensors."""
    header, data = {}, b""
    for name, numbers in arrays.items():
        array = np.array(numbers, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [len(data), len(data) + len(array)]}
        data += array
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def act() -> None:
    folder, random = FOLDER / "act", np.random.default_rng(8)
    folder.mkdir(exist_ok=True)
    matrix = lambda rows, columns: (random.normal(size=(rows, columns)) / np.sqrt(rows)).astype(np.float32)
    weights = {
        "state_proj": matrix(2, WIDTH), "decoder_pos": matrix(CHUNK, WIDTH), "q": matrix(WIDTH, WIDTH), "k": matrix(WIDTH, WIDTH),
        "v": matrix(WIDTH, WIDTH), "head": matrix(WIDTH, 1), "scale": np.float32(1 / np.sqrt(WIDTH)), "axis": np.array([0], np.int64),
    }
    nodes = [
        helper.make_node("MatMul", ["observation.state", "state_proj"], ["state"]),
        helper.make_node("Add", ["decoder_pos", "state"], ["tokens"]),
        *[helper.make_node("MatMul", ["tokens", name], [f"tokens_{name}"]) for name in "qkv"],
        helper.make_node("Transpose", ["tokens_k"], ["keys"], perm=[1, 0]),
        helper.make_node("MatMul", ["tokens_q", "keys"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "tokens_v"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "head"], ["rows"]),
        helper.make_node("Tanh", ["rows"], ["bounded"]),
        helper.make_node("Unsqueeze", ["bounded", "axis"], ["action"]),
    ]
    save(folder / "policy.onnx", nodes, {"observation.state": [1, 2]}, {"action": [1, CHUNK, 1]}, weights, 17, "lerobot")
    config = {
        "type": "act", "n_obs_steps": 1, "input_features": {"observation.state": {"type": "STATE", "shape": [2]}},
        "output_features": {"action": {"type": "ACTION", "shape": [1]}},
        "normalization_mapping": {"STATE": "MEAN_STD", "ACTION": "MIN_MAX"},
        "chunk_size": CHUNK, "n_action_steps": CHUNK, "temporal_ensemble_coeff": None,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    arrays = {
        "observation.state.mean": [0.1, -0.2], "observation.state.std": [1.5, 3.0], "action.min": [-2.0], "action.max": [2.0],
    }
    for kind, step in (("preprocessor", "normalizer"), ("postprocessor", "unnormalizer")):
        state = f"policy_{kind}_step_0_{step}_processor.safetensors"
        steps = [{"registry_name": f"{step}_processor", "config": {}, "state_file": state}]
        (folder / f"policy_{kind}.json").write_text(json.dumps({"name": f"policy_{kind}", "steps": steps}, indent=1) + "\n")
        safetensors(folder / state, arrays)


if __name__ == "__main__":
    locomotion()
    act()
