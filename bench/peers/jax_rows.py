"""JAX beside the control suite: MPPI on Pendulum-v1, one jitted function from observation to action; bodies side by side, one jitted step."""

import math
import os

# XLA makes vectors of 256 bits if nothing else is asked, on processors with more too; where they have no more, this changes nothing.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_prefer_vector_width=512"

import jax
import jax.numpy as jnp

from protocol import fastest, row, serve

WIDTH, HOLD, SIGMA, TEMPERATURE = 32, 5, 8.0, 0.005


def wrap(angle):
    return angle - 2 * math.pi * jnp.floor(angle / (2 * math.pi) + 0.5)


def charge(angle, speed, torque):
    return wrap(angle) ** 2 + 0.1 * speed**2 + 0.001 * torque**2


def plant(_, angle, speed, torque):
    speed = jnp.clip(speed + (15 * jnp.sin(angle) + 3 * torque) * 0.05, -8, 8)
    return angle + speed * 0.05, speed


def twin(weights, angle, speed, torque):
    """Samples lie along the last axis, so that vectors run over them in the products too."""
    x = jnp.stack([jnp.sin(angle), jnp.cos(angle), speed / 8, torque / 2])
    for weight, bias in weights[:-1]:
        x = jnp.tanh(weight.T @ x + bias[:, None])
    change = weights[-1][0].T @ x + weights[-1][1][:, None]
    return angle + 0.1 * change[0], speed + 0.5 * change[1]


def command(step, samples, horizon, unroll):
    """MPPI as on the other side: held noise of graded deviation, softmax relative to the costs' spread, warm start."""
    deviation = SIGMA * (0.1 / SIGMA) ** jnp.linspace(0, 1, samples)

    @jax.jit
    def run(weights, key, mean, state):
        key, draw = jax.random.split(key)
        knots = jax.random.normal(draw, (-(-horizon // HOLD), samples)) * deviation
        u = jnp.clip(mean[:, None] + jnp.repeat(knots, HOLD, axis=0)[:horizon], -2, 2)

        def advance(carry, torque):
            angle, speed, cost = carry
            cost = cost + charge(angle, speed, torque)
            angle, speed = step(weights, angle, speed, torque)
            return (angle, speed, cost), None

        start = (jnp.full(samples, state[0]), jnp.full(samples, state[1]), jnp.zeros(samples))
        (angle, speed, cost), _ = jax.lax.scan(advance, start, u, unroll=unroll)
        cost = cost + charge(angle, speed, 0.0) + 100 * (speed**2 / 30 + jnp.cos(angle) - 1) ** 2
        least = cost.min()
        weight = jax.nn.softmax((least - cost) / (TEMPERATURE * (cost.mean() - least + 1e-6)))
        mean = u @ weight
        return key, jnp.append(mean[1:], mean[-1]), mean[0]

    return run


def make(step):
    def prepare(samples, horizon, unroll):
        keys = jax.random.split(jax.random.key(1), 4)
        sizes = [(4, WIDTH), (WIDTH, WIDTH), (WIDTH, 2)]
        weights = [(jax.random.normal(key, size) / math.sqrt(size[0]), jnp.zeros(size[1])) for key, size in zip(keys, sizes)]
        run, state = command(step, samples, horizon, unroll), jnp.array([3.0, 0.5])
        held = [keys[3], jnp.zeros(horizon)]

        def call():
            held[0], held[1], action = run(weights, held[0], held[1], state)
            return float(action)

        return call

    def rolled_or_not(shape):
        samples, horizon = shape.sizes
        return fastest(shape, {"lax.scan": lambda: prepare(samples, horizon, 1), "lax.scan, unrolled": lambda: prepare(samples, horizon, horizon)})

    return rolled_or_not


row("twin", 2, "jax.jit of a whole command", types=["float32"])(make(twin))
row("plant", 2, "jax.jit of a whole command", types=["float32"])(make(plant))


def cart_pole(state, force):
    x, v, angle, speed = state
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (force + 0.05 * speed**2 * sine) / 1.1
    turning = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    after = x + 0.02 * v, v + 0.02 * (push - 0.05 * turning * cosine / 1.1), angle + 0.02 * speed, speed + 0.02 * turning
    ended = (jnp.abs(after[0]) > 2.4) | (jnp.abs(after[2]) > 12 * math.pi / 180)
    return after, jnp.ones_like(x), ended


def acrobot(state, torque):
    def rates(first, second, first_speed, second_speed):
        sine, cosine = jnp.sin(second), jnp.cos(second)
        d1, d2 = 3.5 + cosine, 1.25 + 0.5 * cosine
        phi2 = 4.9 * jnp.sin(first + second)
        phi1 = 14.7 * jnp.sin(first) + phi2 - (0.5 * second_speed + first_speed) * second_speed * sine
        rate = (torque + d2 / d1 * phi1 - 0.5 * first_speed**2 * sine - phi2) / (1.25 - d2**2 / d1)
        return first_speed, second_speed, -(d2 * rate + phi1) / d1, rate

    def along(k, h):
        return [s + h * k for s, k in zip(state, k)]

    k1 = rates(*state)
    k2 = rates(*along(k1, 0.1))
    k3 = rates(*along(k2, 0.1))
    k4 = rates(*along(k3, 0.2))
    first, second, c, d = (s + 0.2 / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4))
    after = wrap(first), wrap(second), jnp.clip(c, -4 * math.pi, 4 * math.pi), jnp.clip(d, -9 * math.pi, 9 * math.pi)
    ended = -jnp.cos(after[0]) - jnp.cos(after[0] + after[1]) > 1
    return after, jnp.where(ended, 0.0, -1.0), ended


def make_bodies(step):
    """Those whose episode ended begin anew in the step after, as on the other side; the state stays in place."""

    @jax.jit
    def advance(state, had_ended, starts, action):
        after, reward, ended = step(state, action)
        after = tuple(jnp.where(had_ended, start, number) for start, number in zip(starts, after))
        return after, ~had_ended & ended, jnp.where(had_ended, 0.0, reward)

    def prepare(shape):
        (count,) = shape.sizes
        keys = jax.random.split(jax.random.key(1), 5)
        starts = tuple(0.1 * jax.random.uniform(key, (count,), minval=-1.0) for key in keys[:4])
        action = jax.random.uniform(keys[4], (count,), minval=-1.0)
        held = [starts, jnp.zeros(count, bool)]

        def call():
            held[0], held[1], reward = advance(*held, starts, action)
            reward.block_until_ready()

        return call

    return prepare


for body in cart_pole, acrobot:
    row(body.__name__, 1, "jax.jit of a step of all, with new episodes", types=["float32"])(make_bodies(body))


def threads(count):
    # XLA's pool is as large as the process's set of cores when the first array is made.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    return len(os.sched_getaffinity(0))


serve(lambda _: {"jax": jax.__version__}, threads)
