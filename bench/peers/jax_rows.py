"""JAX beside the control suite: MPPI on Pendulum-v1, one jitted function from observation to action."""

import math
import os

import jax
import jax.numpy as jnp

from protocol import row, serve

WIDTH, HOLD, SIGMA, TEMPERATURE = 32, 5, 8.0, 0.005


def wrap(angle):
    return angle - 2 * math.pi * jnp.floor(angle / (2 * math.pi) + 0.5)


def charge(angle, speed, torque):
    return wrap(angle) ** 2 + 0.1 * speed**2 + 0.001 * torque**2


def plant(_, angle, speed, torque):
    speed = jnp.clip(speed + (15 * jnp.sin(angle) + 3 * torque) * 0.05, -8, 8)
    return angle + speed * 0.05, speed


def twin(weights, angle, speed, torque):
    x = jnp.stack([jnp.sin(angle), jnp.cos(angle), speed / 8, torque / 2], axis=-1)
    for weight, bias in weights[:-1]:
        x = jnp.tanh(x @ weight + bias)
    change = x @ weights[-1][0] + weights[-1][1]
    return angle + 0.1 * change[..., 0], speed + 0.5 * change[..., 1]


def command(step, samples, horizon):
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
        (angle, speed, cost), _ = jax.lax.scan(advance, start, u)
        cost = cost + charge(angle, speed, 0.0) + 100 * (speed**2 / 30 + jnp.cos(angle) - 1) ** 2
        least = cost.min()
        weight = jax.nn.softmax((least - cost) / (TEMPERATURE * (cost.mean() - least + 1e-6)))
        mean = u @ weight
        return key, jnp.append(mean[1:], mean[-1]), mean[0]

    return run


def make(step):
    def prepare(shape):
        samples, horizon = shape.sizes
        keys = jax.random.split(jax.random.key(1), 4)
        sizes = [(4, WIDTH), (WIDTH, WIDTH), (WIDTH, 2)]
        weights = [(jax.random.normal(key, size) / math.sqrt(size[0]), jnp.zeros(size[1])) for key, size in zip(keys, sizes)]
        run, state = command(step, samples, horizon), jnp.array([3.0, 0.5])
        held = [keys[3], jnp.zeros(horizon)]

        def call():
            held[0], held[1], action = run(weights, held[0], held[1], state)
            return float(action)

        return call

    return prepare


row("twin", 2, "jax.jit of a whole command, lax.scan over the steps", types=["float32"])(make(twin))
row("plant", 2, "jax.jit of a whole command, lax.scan over the steps", types=["float32"])(make(plant))


def threads(count):
    # XLA's pool is as large as the process's set of cores when the first array is made.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    return len(os.sched_getaffinity(0))


serve(lambda _: {"jax": jax.__version__}, threads)
