"""Trains, exports and checks the policy for Gymnasium's Hopper-v5 next to this file.

    pip install torch onnx onnxruntime stable-baselines3 "gymnasium[mujoco]"
    python hopper.py            # train, export, check (some ten minutes on one core)
    python hopper.py --check    # check the file that is here

`hopper.onnx`   PPO, two tanh layers of 64: `observation` [1, 11] -> `action` [1, 3], the mean of the action, which the body clips to -1 to 1.
                Observation: Hopper-v5's: the positions of the joints but the first, then all velocities. The network clips the velocities to -10 to 10, as
                the environment does, and normalises all numbers by the statistics of the training.

The training is seeded and has 300,000 steps.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize

FOLDER = Path(__file__).parent
STEPS = 300_000
EPISODES = 20
HIDDEN = 64


class Actor(torch.nn.Module):
    """The policy with the normalisation of its observations."""

    def __init__(self, model, normalizer):
        super().__init__()
        statistics = normalizer.obs_rms
        self.register_buffer("mean", torch.tensor(statistics.mean, dtype=torch.float32))
        self.register_buffer("gain", torch.tensor(1.0 / np.sqrt(statistics.var + normalizer.epsilon), dtype=torch.float32))
        bounds = torch.tensor([np.inf] * 5 + [10.0] * 6, dtype=torch.float32)
        self.register_buffer("bounds", torch.minimum(bounds, torch.tensor(1e30)))
        self.limit = float(normalizer.clip_obs)
        self.layers, self.action = model.policy.mlp_extractor.policy_net, model.policy.action_net

    def forward(self, observation):
        seen = torch.minimum(torch.maximum(observation, -self.bounds), self.bounds)
        seen = torch.clamp((seen - self.mean) * self.gain, -self.limit, self.limit)
        return self.action(self.layers(seen))


def train():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    environments = VecNormalize(make_vec_env("Hopper-v5", n_envs=1, seed=0), gamma=0.99)
    networks = {"net_arch": {"pi": [HIDDEN, HIDDEN], "vf": [HIDDEN, HIDDEN]}, "log_std_init": -0.5, "ortho_init": True}
    model = PPO("MlpPolicy", environments, n_steps=2048, batch_size=64, learning_rate=lambda left: 3e-4 * max(left, 0.1), seed=0, policy_kwargs=networks, device="cpu")
    model.learn(STEPS)
    actor = Actor(model, environments).eval()
    names = {"input_names": ["observation"], "output_names": ["action"]}
    torch.onnx.export(actor, torch.zeros(1, 11), FOLDER / "hopper.onnx", opset_version=17, dynamo=False, **names)
    # The evaluation of the training framework.
    trial = VecNormalize(make_vec_env("Hopper-v5", n_envs=1, seed=1000), training=False, norm_reward=False)
    trial.obs_rms = environments.obs_rms
    mean, spread = evaluate_policy(model, trial, n_eval_episodes=EPISODES, deterministic=True)
    print(f"evaluate_policy of Stable-Baselines3: return {mean:.1f} ± {spread:.1f} over {EPISODES} episodes")


def check():
    """The returns of the exported file in Gymnasium's environment, for the seeds from 0."""
    import onnxruntime

    session = onnxruntime.InferenceSession(FOLDER / "hopper.onnx")
    environment, returns = gymnasium.make("Hopper-v5"), []
    for seed in range(EPISODES):
        observation, _ = environment.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            (action,) = session.run(None, {"observation": observation[None].astype(np.float32)})
            observation, reward, terminated, truncated, _ = environment.step(np.clip(action[0], -1.0, 1.0))
            total, ended = total + reward, terminated or truncated
        returns.append(total)
    print(f"hopper.onnx in Gymnasium: return {np.mean(returns):.1f} ± {np.std(returns):.1f}, {min(returns):.1f} to {max(returns):.1f}")


if __name__ == "__main__":
    if "--check" not in sys.argv:
        train()
    check()
