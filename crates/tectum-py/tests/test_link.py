"""Brains for other programs, and bodies in other processes."""

import contextlib
import pathlib
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest

import tectum as tt

msgpack = pytest.importorskip("msgpack")
client = pytest.importorskip("websockets.sync.client")

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "gymnasium_body.py"


def array(numbers):
    numbers = np.asarray(numbers, "<f4")
    return {b"__ndarray__": True, b"data": numbers.tobytes(), b"dtype": "<f4", b"shape": list(numbers.shape)}


def test_a_served_brain_answers_as_the_same_brain_in_this_process():
    with tt.serve("gym_pendulum", address="ws://127.0.0.1:0", brain="lqr", device="cpu") as server:
        with client.connect(server.address) as socket:
            metadata = msgpack.unpackb(socket.recv(), strict_map_key=False)
            assert (metadata["name"], metadata["brain"]) == ("pendulum", "lqr")
            lqr = tt.brain("lqr", "pendulum", device="cpu")
            for angle in (0.1, 0.2, -0.3):
                socket.send(msgpack.packb({"observation/state": array([angle, 0.0])}))
                answer = msgpack.unpackb(socket.recv(), strict_map_key=False)["actions"]
                found = np.frombuffer(answer[b"data"], answer[b"dtype"]).reshape(answer[b"shape"])
                assert np.array_equal(found, lqr.tick([angle, 0.0])[None])
        with urllib.request.urlopen(server.address.replace("ws", "http", 1) + "/healthz") as answer:
            assert answer.read() == b"OK\n"
        assert (server.counts["answers"], server.receipt.runs) == (3, 3)
    server.close()
    with pytest.raises(ValueError, match="the server is closed"):
        server.counts
    with pytest.raises(ValueError, match="needs a token"):
        tt.serve("pendulum", address="ws://0.0.0.0:0", brain="zero")


@contextlib.contextmanager
def gymnasium_body(environment, *arguments):
    pytest.importorskip("gymnasium")
    process = subprocess.Popen([sys.executable, EXAMPLE, environment, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.wait()


def test_a_body_in_another_process_is_a_body():
    with gymnasium_body("Pendulum-v1", "--port", "0") as address:
        body = tt.body(address)
        assert [channel.name for channel in body.spec.observation] == ["cos", "sin", "speed"]
        run = tt.run_loop(body, tt.brain("zero", body), seconds=5, clock="sim")
        assert len(run) == 100 and np.allclose((run.observations[:, :2] ** 2).sum(axis=1), 1.0, atol=1e-6)
        del body, run


def test_a_remote_body_is_stepped_by_hand_and_by_loops():
    gymnasium = pytest.importorskip("gymnasium")
    with gymnasium_body("Pendulum-v1", "--port", "0") as address:
        with tt.RemoteBody(address) as body:
            assert (body.address, isinstance(body, tt.NativeBody)) == (address, True)
            spec = body.spec
            own = gymnasium.make("Pendulum-v1").unwrapped
            np.testing.assert_array_equal(body.reset(3), own.reset(seed=3)[0].astype(np.float32))
            for torque in (0.5, -1.0, 2.0):
                found, reward, terminated, truncated = body.step([torque])
                expected, expected_reward, *ends, _ = own.step(np.array([torque], np.float32))
                np.testing.assert_array_equal(found, expected.astype(np.float32))
                assert (reward, [terminated, truncated]) == (pytest.approx(expected_reward, abs=1e-12), ends)
            body.arm()
            zero = tt.brain("zero", body)
            run = tt.run_loop(body, zero, seconds=1, clock="sim")
            assert len(run) == 20
        body.close()
        with pytest.raises(ValueError, match="it is closed"):
            body.reset()
        with pytest.raises(ValueError, match="it is closed"):
            tt.run_loop(body, zero, seconds=1)
        with tt.RemoteBody(address, spec=spec) as body:
            assert body.spec == spec
        other = tt.BodySpec("other", 0.1, spec.observation, spec.action, [1.0])
        with pytest.raises(ValueError, match=r"its period is 0.05 s, the scenario states 0.1 s; its safe action is \[0.0\]"):
            tt.RemoteBody(address, spec=other)


def test_what_a_remote_body_cannot_be_is_refused():
    with pytest.raises(ValueError, match="spec is needed"):
        tt.RemoteBody("serial:/dev/ttyUSB0")
    with pytest.raises(ValueError, match="wait is 0, needs seconds above 0"):
        tt.RemoteBody("ws://127.0.0.1:1", wait=0.0)
    with pytest.raises(ValueError, match="token"):
        tt.RemoteBody("listen:ws://0.0.0.0:0")
    with pytest.raises(tt.DataError, match="127.0.0.1:1"):
        tt.RemoteBody("ws://127.0.0.1:1", wait=0.1)


class Constant:
    """A brain of Python: the number of the answers since its episode began."""

    def __init__(self):
        self.answers = self.episodes = 0

    def tick(self, observation):
        if observation[0] > 100:
            raise ArithmeticError("too far")
        self.answers += 1
        return [self.answers / 16]

    def episode_ended(self):
        self.answers = 0
        self.episodes += 1


class Client:
    def __init__(self, server):
        self.connection = client.connect(server.address)
        self.socket = self.connection.__enter__()
        self.socket.recv()

    def ask(self, numbers):
        self.socket.send(msgpack.packb({"observation/state": array(numbers)}))
        answer = self.socket.recv()
        if isinstance(answer, str):
            return answer
        return float(np.frombuffer(msgpack.unpackb(answer, strict_map_key=False)["actions"][b"data"], "<f4")[0])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.connection.__exit__(*exception)


def test_a_brain_of_python_is_served():
    brain = Constant()
    with tt.serve(brain, body="pendulum", address="ws://127.0.0.1:0") as server:
        with Client(server) as first:
            assert [first.ask([0.0, 0.0]) for _ in range(3)] == [1 / 16, 2 / 16, 3 / 16]
            with pytest.raises(Exception, match="503"):
                Client(server)
            assert "ArithmeticError: too far" in first.ask([1000.0, 0.0])
        for _ in range(200):
            try:
                second = Client(server)
                break
            except Exception:  # noqa: BLE001 the first client is not gone yet
                time.sleep(0.01)
        with second:
            assert second.ask([0.0, 0.0]) == 1 / 16
    assert brain.episodes >= 2
    with pytest.raises(ValueError, match="body is needed"):
        tt.serve(brain, address="ws://127.0.0.1:0")
    with pytest.raises(ValueError, match="one client at a time"):
        tt.serve(brain, body="pendulum", clients=2, address="ws://127.0.0.1:0")
    lqr = tt.brain("lqr", "pendulum")
    with pytest.raises(ValueError, match="made for body pendulum with 2 observation elements"):
        tt.serve(lqr, body="cart_pole", address="ws://127.0.0.1:0")
    with pytest.raises(tt.DataError, match="made for body pendulum with 2 observation elements"):
        tt.serve(lambda: lqr, body="cart_pole", address="ws://127.0.0.1:0")
    assert lqr.tick([0.0, 0.0]).shape == (1,)
    with pytest.raises(TypeError, match="no scenario, no brain"):
        tt.serve(3, address="ws://127.0.0.1:0")


def test_a_function_makes_a_brain_for_each_client():
    made = []

    def make():
        made.append(Constant() if len(made) != 1 else tt.brain("lqr", "pendulum"))
        return made[-1]

    with tt.serve(make, body="pendulum", address="ws://127.0.0.1:0") as server:
        with Client(server) as first, Client(server) as second:
            assert first.ask([0.0, 0.0]) == 1 / 16
            lqr = tt.brain("lqr", "pendulum").tick([0.1, 0.0])
            assert second.ask([0.1, 0.0]) == lqr[0]
            assert first.ask([0.0, 0.0]) == 2 / 16
            with pytest.raises(ValueError, match="owns it"):
                made[1].tick([0.0, 0.0])
    assert len(made) == 2


def test_a_remote_policy_is_the_brain_that_is_served():
    lqr = tt.brain("lqr", "pendulum", device="cpu")
    with tt.serve(lqr, address="ws://127.0.0.1:0") as server:
        remote = tt.RemotePolicy(server.address, "pendulum", clock="sim")
        found = tt.run_loop(tt.body("pendulum"), remote, seconds=5, clock="sim")
        assert server.receipt.runs == 100
        del remote
    expected = tt.run_loop(tt.body("pendulum"), lqr, seconds=5, clock="sim")
    np.testing.assert_array_equal(found.actions, expected.actions)
    np.testing.assert_array_equal(found.observations, expected.observations)
    with pytest.raises(ValueError, match="no channel of body pendulum that is an array"):
        tt.RemotePolicy("ws://127.0.0.1:1", "pendulum", keys={"angle": "a"})
    with pytest.raises(tt.DataError, match="127.0.0.1:1"):
        tt.RemotePolicy("ws://127.0.0.1:1", "pendulum", wait=0.1)


def test_the_brain_of_the_page_is_served():
    page = (EXAMPLE.parents[1] / "docs/robots.md").read_text()
    [program] = [block.split("```")[0] for block in page.split("```python\n") if "class Damper" in block.split("```")[0]]
    scope = {}
    exec(program, scope)  # noqa: S102
    run = scope["run"]
    speeds = run.observations[:, 1]
    assert len(run) == 40 and np.array_equal(run.actions[:, 0], np.clip(-0.5 * speeds, -2, 2).astype(np.float32))
