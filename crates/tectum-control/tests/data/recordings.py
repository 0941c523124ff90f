"""Writes recordings of a robot of ROS 2, and what a body of them observes, to a folder.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install rosbags==0.11.9 mcap==1.6.0
    /tmp/venv/bin/python recordings.py recordings

plain.mcap, zstd.mcap and lz4.mcap have the same messages, written by mcap; bag/bag.mcap is written
by rosbags, without the topics of JSON. The names of joints change their order, and every fifth
message has the hip alone; rates are irregular, and joint states have a gap of 0.3 s. expected.json
has the values of each period of 20 ms: the latest message at or before its beginning, of the
command before its end.
"""

import base64
import json
import random
import shutil
import sys
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType, Writer
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

FOLDER = Path(sys.argv[1])
STORE = get_typestore(Stores.ROS2_JAZZY)
RANDOM = random.Random(4)
BEGIN = 1_790_000_000_000_000_000
PERIOD = 20_000_000
# Header stamps precede the times of the records.
DELAY = 1_000_000


def make(kind, **fields):
    return STORE.types[kind](**fields)


def header(time):
    own = time - DELAY
    stamp = make(
        "builtin_interfaces/msg/Time", sec=own // 10**9, nanosec=own % 10**9
    )
    return make("std_msgs/msg/Header", stamp=stamp, frame_id="base")


def times(interval, jitter, first=0, seconds=1.2):
    time = BEGIN + first
    while time < BEGIN + int(seconds * 1e9):
        yield time
        time += interval + RANDOM.randint(-jitter, jitter)


messages = []  # topic, type, time, message or JSON


def joint_states():
    for number, time in enumerate(times(10_000_000, 2_000_000)):
        if 600_000_000 < time - BEGIN < 900_000_000:
            continue
        own = {name: (RANDOM.gauss(0, 1), RANDOM.gauss(0, 5)) for name in ("hip", "knee", "wheel")}
        names = ["hip"] if number % 5 == 4 else RANDOM.sample(sorted(own), 3)
        if number == 0:
            names = ["knee", "hip", "wheel"]
        message = make(
            "sensor_msgs/msg/JointState",
            header=header(time),
            name=names,
            position=np.array([own[name][0] for name in names]),
            velocity=np.array([own[name][1] for name in names]),
            effort=np.array([]),
        )
        values = {name: own[name] for name in names}
        yield "/joint_states", "sensor_msgs/msg/JointState", time, message, values


def commands():
    layout = make("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
    for time in times(20_000_000, 1_000_000, first=4_000_000):
        values = [RANDOM.uniform(-1, 1) for _ in range(2)]
        message = make("std_msgs/msg/Float64MultiArray", layout=layout, data=np.array(values))
        yield "/commands", "std_msgs/msg/Float64MultiArray", time, message, values


def pictures():
    for time in times(60_000_000, 5_000_000, first=15_000_000):
        padded = np.array([RANDOM.randrange(256) for _ in range(2 * 12)], dtype=np.uint8)
        bgr = padded.reshape(2, 12)[:, :9].reshape(2, 3, 3)
        message = make(
            "sensor_msgs/msg/Image",
            header=header(time),
            height=2,
            width=3,
            encoding="bgr8",
            is_bigendian=0,
            step=12,
            data=padded,
        )
        values = [int(byte) for byte in bgr[:, :, ::-1].reshape(-1)]
        yield "/camera", "sensor_msgs/msg/Image", time, message, values


def scans():
    for time in times(50_000_000, 3_000_000):
        ranges = np.array([RANDOM.uniform(0, 4) for _ in range(5)], dtype=np.float32)
        message = make(
            "sensor_msgs/msg/LaserScan",
            header=header(time),
            angle_min=0.0,
            angle_max=1.0,
            angle_increment=0.25,
            time_increment=0.0,
            scan_time=0.0,
            range_min=0.0,
            range_max=4.0,
            ranges=ranges,
            intensities=np.array([], dtype=np.float32),
        )
        yield "/scan", "sensor_msgs/msg/LaserScan", time, message, [float(own) for own in ranges]


def states():
    """JSON as Foxglove has it, and of any other tool."""
    for time in times(20_000_000, 0):
        own = [RANDOM.gauss(0, 1) for _ in range(2)]
        message = {
            "timestamp": {"sec": (time - DELAY) // 10**9, "nsec": (time - DELAY) % 10**9},
            "joints": [
                {"name": "ankle", "position": own[0]},
                {"name": "toe", "position": None},
            ],
            "battery": {"cells": [3.7, own[1]], "is.low": True},
        }
        yield "/state", "robot.State", time, message, own


def raw_pictures():
    for time in times(100_000_000, 0):
        pixels = np.array([RANDOM.randrange(65536) for _ in range(4)], dtype="<u2")
        message = {
            "timestamp": {"sec": time // 10**9, "nsec": time % 10**9},
            "frame_id": "depth",
            "width": 2,
            "height": 2,
            "encoding": "16UC1",
            "step": 4,
            "data": base64.b64encode(pixels.tobytes()).decode(),
        }
        yield "/depth", "foxglove.RawImage", time, message, [int(own) for own in pixels]


ROS = [*joint_states(), *commands(), *pictures(), *scans()]
JSON = [*states(), *raw_pictures()]


def write(path, compression):
    with open(path, "wb") as file:
        writer = Writer(file, chunk_size=4000, compression=compression)
        writer.start(profile="ros2", library="test")
        channels = {}
        for topic, kind, time, message, _ in sorted(ROS + JSON, key=lambda own: own[2]):
            if topic not in channels:
                if isinstance(message, dict):
                    schema = writer.register_schema(kind, "jsonschema", b'{"type":"object"}')
                    channels[topic] = writer.register_channel(topic, "json", schema)
                else:
                    text, _ = STORE.generate_msgdef(kind, ros_version=2)
                    schema = writer.register_schema(kind, "ros2msg", text.encode())
                    channels[topic] = writer.register_channel(topic, "cdr", schema)
            if isinstance(message, dict):
                data = json.dumps(message).encode()
            else:
                data = bytes(STORE.serialize_cdr(message, kind))
            writer.add_message(channels[topic], time, data, time - DELAY // 2)
        writer.finish()


def write_bag(folder):
    shutil.rmtree(folder, ignore_errors=True)
    with BagWriter(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {}
        for topic, kind, time, message, _ in sorted(ROS, key=lambda own: own[2]):
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], time, STORE.serialize_cdr(message, kind))


def rows():
    """The values of each period, from the messages of each topic."""

    def series(topic, value):
        own = [(time, value(values)) for name, _, time, _, values in ROS + JSON if name == topic]
        return [(time, value) for time, value in own if value is not None]

    def joint(name, place):
        return lambda values: values[name][place] if name in values else None

    channels = {
        "hip": series("/joint_states", joint("hip", 0)),
        "knee": series("/joint_states", joint("knee", 0)),
        "hip_speed": series("/joint_states", joint("hip", 1)),
        "camera": series("/camera", lambda values: values),
        "scan": series("/scan", lambda values: values),
        "scan_2": series("/scan", lambda values: values[2]),
        "ankle": series("/state", lambda values: values[0]),
        "cell": series("/state", lambda values: values[1]),
        "depth": series("/depth", lambda values: values),
    }
    actions = {
        "first": series("/commands", lambda values: values[0]),
        "second": series("/commands", lambda values: values[1]),
    }
    first = max(own[0][0] for own in channels.values())
    first = max([first, *(own[0][0] - PERIOD + 1 for own in actions.values())])
    last = min(own[-1][0] for own in [*channels.values(), *actions.values()])
    result = []
    for begin in range(first, last + 1, PERIOD):
        row = {}
        for name, own in channels.items():
            row[name] = [value for time, value in own if time <= begin][-1]
        for name, own in actions.items():
            row[name] = [value for time, value in own if time < begin + PERIOD][-1]
        result.append(row)
    return result


FOLDER.mkdir(exist_ok=True)
write(FOLDER / "plain.mcap", CompressionType.NONE)
write(FOLDER / "zstd.mcap", CompressionType.ZSTD)
write(FOLDER / "lz4.mcap", CompressionType.LZ4)
write_bag(FOLDER / "bag")
lines = ",\n".join(json.dumps(row) for row in rows())
(FOLDER / "expected.json").write_text(f"[\n{lines}\n]\n")
