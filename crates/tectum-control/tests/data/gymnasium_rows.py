"""Writes gymnasium_rows.csv: one-step transitions of Gymnasium's Pendulum-v1, CartPole-v1 and Acrobot-v1, 1,000 of each.

The equations are typed here from Gymnasium's published sources (classic_control/pendulum.py, cartpole.py and acrobot.py, release 1.x),
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


def acrobot(state, action):
    def rates(s):
        theta1, theta2, dtheta1, dtheta2 = s
        m1 = m2 = l1 = i1 = i2 = 1.0
        lc1 = lc2 = 0.5
        g, pi = 9.8, math.pi
        d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * math.cos(theta2)) + i1 + i2
        d2 = m2 * (lc2**2 + l1 * lc2 * math.cos(theta2)) + i2
        phi2 = m2 * lc2 * g * math.cos(theta1 + theta2 - pi / 2.0)
        phi1 = -m2 * l1 * lc2 * dtheta2**2 * math.sin(theta2) - 2 * m2 * l1 * lc2 * dtheta2 * dtheta1 * math.sin(theta2)
        phi1 += (m1 * lc1 + m2 * l1) * g * math.cos(theta1 - pi / 2) + phi2
        ddtheta2 = (action + d2 / d1 * phi1 - m2 * l1 * lc2 * dtheta1**2 * math.sin(theta2) - phi2) / (m2 * lc2**2 + i2 - d2**2 / d1)
        return [dtheta1, dtheta2, -(d2 * ddtheta2 + phi1) / d1, ddtheta2]

    dt = 0.2
    move = lambda k, h: [s + h * r for s, r in zip(state, k)]
    k1 = rates(state)
    k2 = rates(move(k1, dt / 2))
    k3 = rates(move(k2, dt / 2))
    k4 = rates(move(k3, dt))
    s = [s + dt / 6.0 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4)]
    for i in (0, 1):
        while s[i] > math.pi:
            s[i] -= 2 * math.pi
        while s[i] < -math.pi:
            s[i] += 2 * math.pi
    for i, limit in ((2, 4 * math.pi), (3, 9 * math.pi)):
        s[i] = min(max(s[i], -limit), limit)
    terminated = -math.cos(s[0]) - math.cos(s[1] + s[0]) > 1.0
    return s, 0.0 if terminated else -1.0, terminated


ENVIRONMENTS = {}


def gymnasium_step(name, state, action):
    """The same transition by gymnasium itself, or None where it is not installed."""
    try:
        import gymnasium
        import numpy as np
    except ImportError:
        return None
    ids = {"pendulum": "Pendulum-v1", "cart_pole": "CartPole-v1", "acrobot": "Acrobot-v1"}
    env = ENVIRONMENTS.setdefault(name, gymnasium.make(ids[name]).unwrapped)
    env.reset(seed=0)
    env.state = np.array(state)
    given = {"pendulum": np.array([action], dtype=np.float64), "cart_pole": int(action >= 0), "acrobot": int(action) + 1}[name]
    _, reward, terminated, *_ = env.step(given)
    return [float(value) for value in env.state], float(reward), bool(terminated)


def main():
    draw = random.Random(20)
    rows = []
    for _ in range(1000):
        state = [draw.uniform(-7, 7), draw.uniform(-8, 8)]
        rows.append(("pendulum", state, draw.choice([-2.0, -0.5, 0.0, 0.25, 1.5, 2.0, 3.0])))
    for _ in range(1000):
        state = [draw.uniform(-2.41, 2.41), draw.uniform(-3, 3), draw.uniform(-0.22, 0.22), draw.uniform(-3, 3)]
        rows.append(("cart_pole", state, draw.choice([-10.0, 10.0])))
    for _ in range(1000):
        state = [draw.uniform(-math.pi, math.pi), draw.uniform(-math.pi, math.pi), draw.uniform(-12, 12), draw.uniform(-28, 28)]
        rows.append(("acrobot", state, draw.choice([-1.0, 0.0, 1.0])))
    compared = 0
    print("body,action,reward,terminated,s0,s1,s2,s3,n0,n1,n2,n3")
    for name, state, action in rows:
        after, reward, terminated = {"pendulum": pendulum, "cart_pole": cart_pole, "acrobot": acrobot}[name](state, action)
        peer = gymnasium_step(name, state, action)
        if peer is not None:
            compared += 1
            assert all(abs(a - b) < 1e-11 for a, b in zip(after, peer[0])), (name, state, after, peer)
            assert abs(reward - peer[1]) < 1e-11 and terminated == peer[2], (name, state, reward, peer)
        padded = [repr(value) for value in state] + [""] * (4 - len(state))
        padded += [repr(value) for value in after] + [""] * (4 - len(after))
        print(",".join([name, repr(action), repr(reward), str(int(terminated)), *padded]))
    print(f"{compared} of {len(rows)} rows compared with gymnasium", file=sys.stderr)


main()
