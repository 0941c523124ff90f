"""Brains for other programs, and bodies in other processes."""

import pathlib
import subprocess
import sys
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


def test_a_body_in_another_process_is_a_body():
    pytest.importorskip("gymnasium")
    process = subprocess.Popen([sys.executable, EXAMPLE, "Pendulum-v1", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[-1]
        body = tt.body(address)
        assert [channel.name for channel in body.spec.observation] == ["cos", "sin", "speed"]
        run = tt.run_loop(body, tt.brain("zero", body), seconds=5, clock="sim")
        assert len(run) == 100 and np.allclose((run.observations[:, :2] ** 2).sum(axis=1), 1.0, atol=1e-6)
        del body, run
    finally:
        process.kill()
        process.wait()
