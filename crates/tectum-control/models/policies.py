"""Trains, exports and checks the two cart-pole policies next to this file.

    pip install torch onnx onnxruntime stable-baselines3 sb3-contrib "gymnasium[classic-control]"
    python policies.py            # train, export, check (some six minutes on one core)
    python policies.py --check    # check the files that are here

`cart_pole.onnx`            PPO, two tanh layers of 64: `observation` [1, 4] -> `action_logits` [1, 2].
                            Observation: x (m), dx/dt (m/s), theta (rad), dtheta/dt (rad/s).
`cart_pole_recurrent.onnx`  Recurrent PPO, LSTM of 64: `obs` [1, 2], `h_in` and `c_in` [1, 1, 64]
                            -> `action_logits` [1, 2], `h_out`, `c_out`. Observation: x (m), theta (rad). The velocities
                            are hidden, so a policy without memory cannot balance the pole. State is zero at an episode's start.

The action is the index of the larger logit: 0 pushes to the left with 10 N, 1 to the right, held for 0.02 s.
Training stops when the deterministic policy balances the pole for 2000 steps, four times CartPole-v1's limit, in each of 50
episodes whose seeds the final check does not use: a policy that only just reaches 500 may not do so with other rounding.
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import onnxruntime
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize

FOLDER = Path(__file__).parent
MAX_RETURN = 500
TRIAL_STEPS = 2000
TRIAL_SEEDS = range(1000, 1050)
CHECK_SEEDS = range(100)
HIDDEN = 64


class HideVelocities(gymnasium.ObservationWrapper):
    """Leaves cart position and pole angle of CartPole-v1's observation."""

    def __init__(self, env):
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(space.low[::2], space.high[::2], dtype=np.float32)

    def observation(self, observation):
        return observation[::2]


class Scaled(BaseFeaturesExtractor):
    """Brings position (m) and angle (rad) to the order of one: an episode ends at 2.4 m or 0.21 rad."""

    def __init__(self, space):
        super().__init__(space, 2)
        self.register_buffer("gain", torch.tensor([1.0, 10.0]))

    def forward(self, observation):
        return observation * self.gain


def environment(recurrent, steps=MAX_RETURN):
    env = gymnasium.make("CartPole-v1", max_episode_steps=steps)
    return HideVelocities(env) if recurrent else env


def returns(act, recurrent, seeds, steps=MAX_RETURN):
    """Return of one episode for each seed. `act(observation, state)` gives an action and the next state."""
    env = environment(recurrent, steps)
    found = []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        state, total, ended = None, 0.0, False
        while not ended:
            action, state = act(observation, state)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += reward
            ended = terminated or truncated
        found.append(total)
    return np.array(found)


def torch_policy(model, recurrent):
    def act(observation, state):
        if recurrent:
            action, state = model.predict(observation, state, np.array([state is None]), deterministic=True)
        else:
            action, _ = model.predict(observation, deterministic=True)
        return int(action), state

    return act


class StopWhenSolved(BaseCallback):
    """Every `every` steps, tries the policy on all trial seeds; a failure ends the trial at once."""

    def __init__(self, recurrent, every):
        super().__init__()
        self.recurrent, self.every, self.next = recurrent, every, every

    def _on_rollout_start(self):
        if self.num_timesteps >= self.next:
            self.next = self.num_timesteps + self.every
            self.solved = self.try_all()

    def try_all(self):
        act = torch_policy(self.model, self.recurrent)
        self.model.policy.set_training_mode(False)
        for count, seed in enumerate(TRIAL_SEEDS):
            if returns(act, self.recurrent, [seed], TRIAL_STEPS)[0] < TRIAL_STEPS:
                recent = np.mean([episode["r"] for episode in self.model.ep_info_buffer])
                print(f"{self.num_timesteps} steps: return {recent:.0f} in training; first failure in episode {count}", flush=True)
                return False
        print(f"{self.num_timesteps} steps: solved", flush=True)
        return True

    def _on_step(self):
        return not getattr(self, "solved", False)


def falling(start):
    return lambda remaining: start * remaining


def train(recurrent):
    envs = make_vec_env(lambda: environment(recurrent), n_envs=8, seed=0)
    common = dict(n_epochs=20, learning_rate=falling(1e-3), clip_range=falling(0.2), seed=0, device="cpu")
    if recurrent:
        policy = dict(
            lstm_hidden_size=HIDDEN, net_arch=[64], activation_fn=torch.nn.Tanh, ortho_init=False,
            features_extractor_class=Scaled,
        )
        # Values of about one keep the critic's gradient from using up the limit on the gradient's norm.
        envs = VecNormalize(envs, norm_obs=False, gamma=0.995)
        # A slow drift to the end of the track costs its price after 300 steps: a longer horizon than the other policy needs.
        horizon = dict(n_steps=64, batch_size=512, gamma=0.995, gae_lambda=0.95)
        model = RecurrentPPO("MlpLstmPolicy", envs, policy_kwargs=policy, **horizon, **common)
        model.learn(300_000, StopWhenSolved(recurrent, 10_000))
    else:
        policy = dict(net_arch=[64, 64], activation_fn=torch.nn.Tanh)
        horizon = dict(n_steps=32, batch_size=256, gamma=0.98, gae_lambda=0.8)
        model = PPO("MlpPolicy", envs, policy_kwargs=policy, **horizon, **common)
        model.learn(300_000, StopWhenSolved(recurrent, 10_000))
    return model


class Logits(torch.nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.layers = torch.nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)

    def forward(self, observation):
        return self.layers(observation)


class RecurrentLogits(torch.nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.features, self.lstm = policy.pi_features_extractor, policy.lstm_actor
        self.layers = torch.nn.Sequential(policy.mlp_extractor.policy_net, policy.action_net)

    def forward(self, obs, h_in, c_in):
        out, (h_out, c_out) = self.lstm(self.features(obs).unsqueeze(0), (h_in, c_in))
        return self.layers(out.squeeze(0)), h_out, c_out


def export(model, recurrent, path):
    if recurrent:
        module = RecurrentLogits(model.policy)
        arguments = (torch.zeros(1, 2), torch.zeros(1, 1, HIDDEN), torch.zeros(1, 1, HIDDEN))
        names = ["obs", "h_in", "c_in"], ["action_logits", "h_out", "c_out"]
        observations = "cart_position,pole_angle"
    else:
        module, arguments = Logits(model.policy), (torch.zeros(1, 4),)
        names = ["observation"], ["action_logits"]
        observations = "cart_position,cart_velocity,pole_angle,pole_angular_velocity"
    torch.onnx.export(
        module.eval(), arguments, path, input_names=names[0], output_names=names[1], opset_version=17, dynamo=False
    )
    file = onnx.load(path)
    metadata = {"environment": "CartPole-v1", "observation_names": observations, "action_names": "push_left,push_right"}
    onnx.helper.set_model_props(file, metadata)
    for node in file.graph.node:
        node.ClearField("doc_string")
    onnx.checker.check_model(file)
    onnx.save(file, path)


def onnx_policy(path, recurrent):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def act(observation, state):
        if not recurrent:
            (logits,) = session.run(None, {"observation": observation[None]})
            return int(logits.argmax()), logits
        h, c = state[1:] if state else (np.zeros((1, 1, HIDDEN), np.float32),) * 2
        state = session.run(None, {"obs": observation[None], "h_in": h, "c_in": c})
        return int(state[0].argmax()), state

    return act


def largest_difference(model, path, recurrent):
    """Largest difference between logits of PyTorch and of ONNX Runtime over 200 steps of random observations."""
    generator = np.random.default_rng(0)
    act = onnx_policy(path, recurrent)
    module = (RecurrentLogits if recurrent else Logits)(model.policy).eval()
    state, largest = None, 0.0
    hidden = (torch.zeros(1, 1, HIDDEN), torch.zeros(1, 1, HIDDEN))
    for _ in range(200):
        observation = generator.normal(0, 0.3, 2 if recurrent else 4).astype(np.float32)
        _, state = act(observation, state)
        with torch.no_grad():
            if recurrent:
                logits, *hidden = module(torch.from_numpy(observation[None]), *hidden)
            else:
                logits = module(torch.from_numpy(observation[None]))
        largest = max(largest, float(np.abs(logits.numpy() - (state[0] if recurrent else state)).max()))
    return largest


def check(path, recurrent):
    """Whether ONNX Runtime balances the pole for all check seeds."""
    found = returns(onnx_policy(path, recurrent), recurrent, CHECK_SEEDS)
    print(f"{path.name}: {path.stat().st_size} bytes, return {found.mean():.1f}, {(found == MAX_RETURN).sum()} of {len(found)}")
    return bool((found == MAX_RETURN).all())


def main():
    torch.set_num_threads(1)
    passed = True
    for name, recurrent in (("cart_pole", False), ("cart_pole_recurrent", True)):
        path = FOLDER / f"{name}.onnx"
        if "--check" not in sys.argv:
            model = train(recurrent)
            export(model, recurrent, path)
            print(f"{name}: largest difference of logits from PyTorch {largest_difference(model, path, recurrent):.1e}")
        passed &= check(path, recurrent)
    sys.exit(not passed)


if __name__ == "__main__":
    main()
