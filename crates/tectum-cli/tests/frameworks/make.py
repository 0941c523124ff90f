"""Makes the files of Stable-Baselines3 and LeRobot next to this one: untrained, and as small as possible.

    pip install torch stable-baselines3 gymnasium safetensors
    python make.py

`ppo.zip`, `sac.zip`      PPO and SAC on Pendulum-v1, as `save` writes them, without the weights.
`vecnormalize.pkl`        the statistics of VecNormalize after 50 steps, as `save` writes them.
`stats.json`              their numbers by NumPy, which the reader's must equal.
`lerobot/`                config.json of an ACT policy with the statistics of its processors, by LeRobot's schema.
"""

import json
import zipfile
from pathlib import Path

import gymnasium
import numpy as np
from safetensors.numpy import save_file
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

FOLDER = Path(__file__).parent


def without_weights(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".pth")}
    data = json.loads(members["data"])
    # What is serialized is never decoded: only the fields next to it count.
    for value in data.values():
        if isinstance(value, dict):
            value.pop(":serialized:", None)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", json.dumps(data))
        archive.writestr("policy.pth", b"")
        archive.writestr("_stable_baselines3_version", members["_stable_baselines3_version"])


def main() -> None:
    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("Pendulum-v1")]), clip_obs=5.0)
    for name, kind in (("ppo", PPO), ("sac", SAC)):
        model = kind("MlpPolicy", env, policy_kwargs={"net_arch": [4]}, seed=1)
        model.save(FOLDER / f"{name}.zip")
        without_weights(FOLDER / f"{name}.zip")
    env.seed(1)
    env.reset()
    random = np.random.default_rng(1)
    for _ in range(50):
        env.step(random.uniform(-2, 2, (1, 1)))
    env.save(str(FOLDER / "vecnormalize.pkl"))
    stats = {"mean": env.obs_rms.mean.tolist(), "var": env.obs_rms.var.tolist(), "epsilon": env.epsilon, "clip": env.clip_obs}
    (FOLDER / "stats.json").write_text(json.dumps(stats, indent=1) + "\n")

    lerobot = FOLDER / "lerobot"
    lerobot.mkdir(exist_ok=True)
    features = {
        "observation.state": {"type": "STATE", "shape": [3]},
        "observation.images.top": {"type": "VISUAL", "shape": [3, 8, 8]},
    }
    config = {
        "type": "act", "n_obs_steps": 1, "input_features": features, "output_features": {"action": {"type": "ACTION", "shape": [1]}},
        "normalization_mapping": {"VISUAL": "MEAN_STD", "STATE": "MEAN_STD", "ACTION": "MIN_MAX"},
        "chunk_size": 10, "n_action_steps": 4, "temporal_ensemble_coeff": None,
    }
    (lerobot / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for kind, step in (("preprocessor", "normalizer"), ("postprocessor", "unnormalizer")):
        state = f"policy_{kind}_step_2_{step}_processor.safetensors"
        steps = [{"registry_name": "device_processor", "config": {}}, {"registry_name": f"{step}_processor", "config": {}, "state_file": state}]
        (lerobot / f"policy_{kind}.json").write_text(json.dumps({"name": f"policy_{kind}", "steps": steps}, indent=1) + "\n")
        arrays = {
            "observation.state.mean": [0.1, -0.2, 0.3], "observation.state.std": [1.0, 0.5, 2.0],
            "action.min": [-2.0], "action.max": [2.0],
        }
        save_file({name: np.array(numbers, np.float32) for name, numbers in arrays.items()}, lerobot / state)


if __name__ == "__main__":
    main()
