"""Decodes every channel of a paused run over Foxglove's protocol, and stops the run.

    foxglove.py HOST:PORT

Prints JSON: for each topic the number of its messages and the sums of its fields.
"""

import json
import struct
import sys
import time

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

STEPS = 60
# The head of CDR: plain, little-endian. Numbers are aligned from the byte after it.
HEAD = bytes([0, 1, 0, 0])


def aligned(at, size):
    return -(-at // size) * size


def text(body, at):
    """A text and the place after it."""
    at = aligned(at, 4)
    (length,) = struct.unpack_from("<I", body, at)
    return body[at + 4 : at + 3 + length].decode(), at + 4 + length


def numbers(schema, body):
    """The fields of a message with a header and float64 numbers, by name."""
    lines = schema.split("=" * 80)[0].splitlines()
    names = [line.split()[1] for line in lines if line.startswith("float64 ")]
    seconds, nanoseconds = struct.unpack_from("<iI", body)
    _, at = text(body, 8)
    values = struct.unpack_from(f"<{len(names)}d", body, aligned(at, 8))
    assert len(body) == aligned(at, 8) + 8 * len(names), schema
    return seconds + 1e-9 * nanoseconds, dict(zip(names, values))


def event(body):
    """The text of a log message."""
    _, at = text(body, 9)
    return text(body, at)[0]


def main(host):
    with connect(f"ws://{host}/", subprotocols=["foxglove.sdk.v1"]) as socket:
        information = json.loads(socket.recv())
        assert information["op"] == "serverInfo", information
        channels = {}
        while not any(channel["topic"] == "/action" for channel in channels.values()):
            message = json.loads(socket.recv())
            if message["op"] == "advertise":
                channels = {channel["id"]: channel for channel in message["channels"]}
        subscriptions = [{"id": 7 + number, "channelId": number} for number in channels]
        socket.send(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))
        # The server has read it before a later message of another connection.
        time.sleep(0.5)
        result = {channel["topic"]: {"count": 0, "sums": {}} for channel in channels.values()}
        with connect(f"ws://{host}/live") as orders:
            orders.send('{"type": "speed", "speed": 2.0}')
            orders.send('{"type": "continue"}')
            is_stopped = False
            try:
                while True:
                    frame = socket.recv(timeout=20)
                    if isinstance(frame, str) or frame[0] != 1:
                        continue
                    subscription, time_ns = struct.unpack_from("<IQ", frame, 1)
                    assert frame[13:17] == HEAD
                    channel, body = channels[subscription - 7], frame[17:]
                    own = result[channel["topic"]]
                    own["count"] += 1
                    if channel["topic"] == "/events":
                        own["sums"][event(body)] = 1
                        continue
                    stamp, fields = numbers(channel["schema"], body)
                    assert abs(stamp - 1e-9 * time_ns) < 1e-6
                    for name, value in fields.items():
                        own["sums"][name] = own["sums"].get(name, 0.0) + value
                    if own["count"] >= STEPS and not is_stopped:
                        orders.send('{"type": "stop"}')
                        is_stopped = True
            except ConnectionClosed:
                print(json.dumps(result))


main(sys.argv[1])
