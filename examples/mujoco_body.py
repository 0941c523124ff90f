"""A MuJoCo scene as a body in another process: python3 examples/mujoco_body.py SCENE.xml --keyframe NAME --port 9000

It needs `mujoco`, `numpy` and `websockets`, and a checkout: it steps the scene with the program that the command uses itself, so that a run over a socket has
the same bits as one on `mujoco:SCENE.xml`. docs/robots.md has the protocol; this body takes turns with the loop, under clock "sim".
"""

import argparse
import pathlib
import sys
import threading

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crates/tectum-control/src/body/mujoco"))
from mujoco_body import MujocoSimulation, decode, encode  # noqa: E402


def answer(body, request):
    """The answer to a request of the loop."""
    kind, made = request["type"], {"type": "observation", "sequence": request["sequence"]}
    if kind == "hello":
        return made | body.spec() | {"type": "spec", "protocol": 1}
    if kind == "reset":
        body.reset(request["seed"])
        return made | body.fields()
    if kind == "step":
        _, reward, terminated, truncated = body.step(request["action"])
        return made | body.fields() | {"reward": reward, "terminated": terminated, "truncated": truncated}
    return made | {"type": "error", "message": f"{kind}: this body takes turns with the loop: clock = \"sim\" is needed"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("scene")
    parser.add_argument("--keyframe")
    parser.add_argument("--port", type=int, default=9000)
    options = parser.parse_args()
    body = MujocoSimulation({"scene": options.scene, "keyframe": options.keyframe})
    writer = threading.Lock()

    def handler(socket):
        if not writer.acquire(blocking=False):
            socket.close(1013, "another loop is connected")
            return
        try:
            while (request := decode(socket.recv()))["type"] != "close":
                socket.send(encode(answer(body, request)))
        except ConnectionClosed:
            pass
        finally:
            writer.release()

    with serve(handler, "127.0.0.1", options.port, max_size=1 << 24) as server:
        print(f"{options.scene} at ws://127.0.0.1:{server.socket.getsockname()[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
