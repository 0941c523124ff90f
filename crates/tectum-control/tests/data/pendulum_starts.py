"""Writes pendulum_starts.csv: where Gymnasium's Pendulum-v1 starts for seeds 0 to 99.

Run by hand, with a Python that has gymnasium: python pendulum_starts.py > pendulum_starts.csv
"""

import gymnasium

environment = gymnasium.make("Pendulum-v1").unwrapped
print("seed,angle,speed")
for seed in range(100):
    environment.reset(seed=seed)
    angle, speed = environment.state
    print(f"{seed},{angle!r},{speed!r}".replace("np.float64(", "").replace(")", ""))
