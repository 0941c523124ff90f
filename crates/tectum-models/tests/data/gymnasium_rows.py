"""Writes gymnasium_rows.csv: one-step transitions of Gymnasium's Pendulum-v1 and CartPole-v1.

The equations are typed here from Gymnasium's published sources (classic_control/pendulum.py and cartpole.py, release 1.x),
independently of the Rust bodies, in IEEE double. Where gymnasium itself is installed its environments are stepped instead and must
agree. Run: python gymnasium_rows.py > gymnasium_rows.csv
"""

import math
import random
import sys


def pendulum(state, action):
    th, thdot = state
    g, m, l, dt = 10.0, 1.0, 1.0, 0.05
    u = min(max(action, -2.0), 2.0)
    costs = (((th + math.pi) % (2 * math.pi)) - math.pi) ** 2 + 0.1 * thdot**2 + 0.001 * (u**2)
    newthdot = thdot + (3 * g / (2 * l) * math.sin(th) + 3.0 / (m * l**2) * u) * dt
    newthdot = min(max(newthdot, -8.0), 8.0)
    newth = th + newthdot * dt
    return [newth, newthdot], -costs, False


def cart_pole(state, action):
    x, x_dot, theta, theta_dot = state
    gravity, masscart, masspole, length, tau = 9.8, 1.0, 0.1, 0.5, 0.02
    total_mass, polemass_length = masspole + masscart, masspole * length
    force = 10.0 if action >= 0 else -10.0
    costheta, sintheta = math.cos(theta), math.sin(theta)
    temp = (force + polemass_length * theta_dot**2 * sintheta) / total_mass
    thetaacc = (gravity * sintheta - costheta * temp) / (length * (4.0 / 3.0 - masspole * costheta**2 / total_mass))
    xacc = temp - polemass_length * thetaacc * costheta / total_mass
    x, x_dot = x + tau * x_dot, x_dot + tau * xacc
    theta, theta_dot = theta + tau * theta_dot, theta_dot + tau * thetaacc
    limit = 12 * 2 * math.pi / 360
    return [x, x_dot, theta, theta_dot], 1.0, x < -2.4 or x > 2.4 or theta < -limit or theta > limit


def gymnasium_step(name, state, action):
    """The same transition by gymnasium itself, or None where it is not installed."""
    try:
        import gymnasium
        import numpy as np
    except ImportError:
        return None
    env = gymnasium.make({"pendulum": "Pendulum-v1", "cart_pole": "CartPole-v1"}[name]).unwrapped
    env.reset(seed=0)
    env.state = np.array(state)
    given = int(action >= 0) if name == "cart_pole" else np.array([action], dtype=np.float64)
    _, reward, terminated, *_ = env.step(given)
    return [float(value) for value in env.state], float(reward), bool(terminated)


def main():
    draw = random.Random(20)
    rows = []
    for _ in range(24):
        state = [draw.uniform(-7, 7), draw.uniform(-8, 8)]
        rows.append(("pendulum", state, draw.choice([-2.0, -0.5, 0.0, 0.25, 1.5, 2.0, 3.0])))
    for _ in range(24):
        state = [draw.uniform(-2.41, 2.41), draw.uniform(-3, 3), draw.uniform(-0.22, 0.22), draw.uniform(-3, 3)]
        rows.append(("cart_pole", state, draw.choice([-10.0, 10.0])))
    compared = 0
    print("body,action,reward,terminated,s0,s1,s2,s3,n0,n1,n2,n3")
    for name, state, action in rows:
        after, reward, terminated = {"pendulum": pendulum, "cart_pole": cart_pole}[name](state, action)
        peer = gymnasium_step(name, state, action)
        if peer is not None:
            compared += 1
            assert all(abs(a - b) < 1e-12 for a, b in zip(after, peer[0])), (name, state, after, peer)
            assert abs(reward - peer[1]) < 1e-12 and terminated == peer[2], (name, state, reward, peer)
        padded = [repr(value) for value in state] + [""] * (4 - len(state))
        padded += [repr(value) for value in after] + [""] * (4 - len(after))
        print(",".join([name, repr(action), repr(reward), str(int(terminated)), *padded]))
    print(f"{compared} of {len(rows)} rows compared with gymnasium", file=sys.stderr)


main()
