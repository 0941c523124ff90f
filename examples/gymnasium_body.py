"""An environment of Gymnasium as a body in another process: python3 gymnasium_body.py Pendulum-v1 --port 9000

    tectum run pendulum --body ws://127.0.0.1:9000 --brain zero --clock sim --seconds 10

It needs `gymnasium`, `msgpack` and `websockets` (docs/robots.md has the protocol). Under clock "sim" each step of the loop is a step of the
environment; in real time the environment is stepped by this process, once in each period, with the last action that arrived, and with the safe one
where none has arrived for the hold limit.
"""

import argparse
import threading
import time

import gymnasium
import msgpack
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

# Names and units of the observed numbers, and of the action; a machine states its own.
KNOWN = {
    "Pendulum-v1": ([("cos", ""), ("sin", ""), ("speed", "rad/s")], [("torque", "N m")], 0.05),
    "CartPole-v1": ([("position", "m"), ("velocity", "m/s"), ("angle", "rad"), ("angle_velocity", "rad/s")], [("force", "N")], 0.02),
}
# Ranges are for plots and checks; Gymnasium's may be infinite.
LIMIT = 1e6


def array(numbers, dtype="<f4"):
    """An array as openpi's msgpack_numpy writes it."""
    numbers = np.asarray(numbers, dtype)
    return {b"__ndarray__": True, b"data": numbers.tobytes(), b"dtype": numbers.dtype.str, b"shape": list(numbers.shape)}


def numbers(value):
    """The numbers of such an array."""
    return np.frombuffer(value[b"data"], value[b"dtype"]).reshape(value[b"shape"])


class Environment:
    """An environment with the channels that it states."""

    def __init__(self, name):
        self.env = gymnasium.make(name)
        self.observed, self.acted, self.period = KNOWN[name]
        self.name, self.is_discrete = name, isinstance(self.env.action_space, gymnasium.spaces.Discrete)
        self.observation, _ = self.env.reset(seed=0)
        self.ended = (0.0, False, False)

    def spec(self):
        space = self.env.observation_space
        low, high = np.clip(space.low, -LIMIT, LIMIT), np.clip(space.high, -LIMIT, LIMIT)
        channel = lambda name, unit, low, high: {"name": name, "unit": unit, "low": float(low), "high": float(high), "shape": [], "dtype": "<f4"}
        bounds = [(-10.0, 10.0)] if self.is_discrete else list(zip(self.env.action_space.low, self.env.action_space.high))
        return {
            "name": self.name,
            "protocol": 1,
            "period": self.period,
            "observation": [channel(*own, low[k], high[k]) | {"wraps": False} for k, own in enumerate(self.observed)],
            "action": [channel(*own, *bounds[k]) for k, own in enumerate(self.acted)],
            "safe_action": array([0.0] * len(self.acted)),
        }

    def reset(self, seed):
        self.observation, _ = self.env.reset(seed=seed)
        self.ended = (0.0, False, False)

    def step(self, action):
        action = int(action[0] >= 0.0) if self.is_discrete else action
        self.observation, reward, terminated, truncated, _ = self.env.step(action)
        self.ended = (float(reward), bool(terminated), bool(truncated))

    def message(self, sequence, **more):
        reward, terminated, truncated = self.ended
        more |= {"reward": reward, "terminated": terminated, "truncated": truncated}
        return msgpack.packb({"type": "observation", "sequence": sequence, "observation": array(self.observation), **more})


def real_time(socket, body, start):
    """Sends observations without being asked, and applies the last action until the next."""
    period, hold = start["period"], start["hold"]
    safe = np.zeros(len(body.acted), np.float32)
    action, applied, arrived = safe, start["sequence"], time.monotonic()
    sequence, last, is_over, due = 0, start["sequence"], False, time.monotonic()
    while True:
        while (left := due - time.monotonic()) > 0:
            try:
                message = msgpack.unpackb(socket.recv(timeout=left), strict_map_key=False)
            except TimeoutError:
                break
            # What is late or repeated is not applied.
            if message["sequence"] <= last:
                continue
            last = message["sequence"]
            if message["type"] == "action":
                action, applied, arrived = numbers(message["action"]), last, time.monotonic()
                # An observation that arrives just before the loop looks is the freshest one.
                due += 0.1 * (message.get("age", period / 10) - period / 10)
            elif message["type"] == "reset":
                body.reset(message["seed"])
                action, applied, is_over = safe, last, False
            elif message["type"] == "close":
                return
        due = max(due + period, time.monotonic())
        if not is_over:
            # The body's own watchdog: without it a loop that is gone leaves the last action in force.
            body.step(action if time.monotonic() - arrived <= hold else safe)
            is_over = body.ended[1] or body.ended[2]
        sequence += 1
        socket.send(body.message(sequence, answers=applied))


def talk(socket, body):
    """One connection: a request has one answer, until the loop starts in real time."""
    while True:
        request = msgpack.unpackb(socket.recv(), strict_map_key=False)
        kind, sequence = request["type"], request["sequence"]
        if kind == "hello":
            socket.send(msgpack.packb({"type": "spec", "sequence": sequence, **body.spec()}))
        elif kind == "reset":
            body.reset(request["seed"])
            socket.send(body.message(sequence))
        elif kind == "step":
            body.step(numbers(request["action"]))
            socket.send(body.message(sequence))
        elif kind == "start":
            return real_time(socket, body, request)
        elif kind == "close":
            return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("environment", choices=KNOWN)
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    body = Environment(options.environment)

    writer = threading.Lock()

    def handler(socket):
        if not writer.acquire(blocking=False):
            socket.close(1013, "another loop is connected")
            return
        try:
            talk(socket, body)
        except ConnectionClosed:
            pass
        finally:
            writer.release()

    with serve(handler, "127.0.0.1", options.port, max_size=1 << 24) as server:
        print(f"{options.environment} at ws://127.0.0.1:{server.socket.getsockname()[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
