"""Steps an environment with the actions of the input, a line each, and prints each period's observation, reward and end: reference.py NAME SEED"""

import sys

import gymnasium
import numpy as np

name, seed = sys.argv[1], int(sys.argv[2])
env = gymnasium.make(name)
is_discrete = isinstance(env.action_space, gymnasium.spaces.Discrete)
observation, _ = env.reset(seed=seed)
for line in sys.stdin:
    numbers = np.array(line.split(), np.float32)
    seen = np.asarray(observation, np.float32).tobytes().hex()
    observation, reward, terminated, truncated, _ = env.step(int(numbers[0] >= 0) if is_discrete else numbers)
    print(seen, np.float64(reward).tobytes().hex(), int(terminated or truncated))
    if terminated or truncated:
        seed += 1
        observation, _ = env.reset(seed=seed)
