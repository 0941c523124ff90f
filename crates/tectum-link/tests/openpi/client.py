"""An unchanged openpi-client against a served brain: python client.py HOST PORT TOKEN SLOW_S"""

import functools
import sys
import time

import numpy as np
import websockets.sync.client
from openpi_client import image_tools, websocket_client_policy

HOST, PORT, TOKEN, SLOW_S = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])


def policy():
    return websocket_client_policy.WebsocketClientPolicy(HOST, PORT, api_key=TOKEN)


def refused(policy, observation):
    try:
        policy.infer(observation)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it was not refused")


client = policy()
metadata = client.get_server_metadata()
assert metadata["server"] == "tectum" and metadata["name"] == "arm", metadata
assert [channel["name"] for channel in metadata["observation"]] == ["x", "y", "image"], metadata
assert np.array_equal(metadata["safe_action"], np.float32([0.0, 0.25])), metadata

# Ten thousand answers, each to its own observation, in all forms that the protocol has.
image = image_tools.resize_with_pad(np.full((12, 16, 3), 7, np.uint8), 8, 8)
rng = np.random.default_rng(1)
for tick in range(10_000):
    x, y = rng.uniform(-0.5, 0.5, 2)
    image[0, 0, 0] = tick % 256
    observation = {"observation/image": image, "prompt": "pick up the block"}
    form = tick % 3
    if form == 0:
        observation["observation/state"] = np.float32([x, y])
    elif form == 1:
        observation |= {"observation/x": np.float64(x), "y": float(y)}
    else:
        observation["observation/state"] = np.array([x, y])
    answer = client.infer(observation)
    expected = np.float32([[np.float32(x) + np.float32(y), image[0, 0, 0] / np.float32(256)]])
    assert answer["actions"].dtype == np.float32 and np.array_equal(answer["actions"], expected), (tick, answer, expected)
    assert answer["server_timing"]["infer_ms"] >= 0.0 and ("prev_total_ms" in answer["server_timing"]) == (tick > 0)

# An error is a text, and names the key; the server continues with the next client.
for observation, reason in [
    ({"observation/state": np.zeros(3, np.float32), "observation/image": image}, "has the shape [3], needs [2]"),
    ({"observation/state": np.zeros(2, np.float32), "observation/image": image[:4]}, 'key "observation/image" has the shape [4, 8, 3] of uint8'),
    ({"observation/state": np.zeros(2, np.float32), "observation/image": image / 255}, "of float64, needs [8, 8, 3] of uint8"),
    ({"observation/state": np.zeros(2, np.float32), "observation/image": image, "wrist": image}, 'key "wrist" is unknown'),
    ({"observation/state": np.zeros(2, np.float32)}, "channel image is missing"),
    ({"observation/state": np.float32([0, np.nan]), "observation/image": image}, "channel y is not finite"),
]:
    text = refused(policy(), observation)
    assert reason in text, text

# A long answer, while the client's pings are answered: it would end the connection after a missing one.
connect = websockets.sync.client.connect
if SLOW_S < 20:
    websockets.sync.client.connect = functools.partial(connect, ping_interval=SLOW_S / 20, ping_timeout=SLOW_S / 4)
slow = policy()
begin = time.monotonic()
answer = slow.infer({"observation/state": np.float32([1000, SLOW_S]), "observation/image": image})
assert time.monotonic() - begin >= SLOW_S and answer["actions"].shape == (1, 2)
slow.infer({"observation/state": np.zeros(2, np.float32), "observation/image": image})
print("done")
