"""Writes cart.mcap: a run of a policy on CartPole-v1 as a robot of ROS 2 would record it.

    tectum sample write cart-pole-policy cart
    tectum run cart/cart_pole.onnx --body cart_pole --seconds 4 --seed 7 --clock sim --no-plots
    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install rosbags==0.11.9 mcap==1.6.0
    /tmp/venv/bin/python ros_recording.py runs/1/trace.mcap cart.mcap

The positions and speeds of cart and pole are joints of /joint_states, in an order that changes, and
the forces are on /commands, a few milliseconds after the state that they answer. A picture of
4 x 8 pixels, ten times a second, shows the cart.
"""

import json
import sys

import numpy as np
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
BEGIN = 1_795_000_000_000_000_000
TYPES = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/commands": "std_msgs/msg/Float64MultiArray",
    "/camera": "sensor_msgs/msg/Image",
}


def make(kind, **fields):
    return STORE.types[kind](**fields)


def header(time, frame):
    stamp = make("builtin_interfaces/msg/Time", sec=time // 10**9, nanosec=time % 10**9)
    return make("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def joint_state(time, number, own):
    joints = {"cart": ("position", "velocity"), "pole": ("angle", "speed")}
    names = ["cart", "pole"] if number % 2 == 0 else ["pole", "cart"]
    place, speed = (
        np.array([float(own[joints[name][part]]) for name in names]) for part in (0, 1)
    )
    return make(
        "sensor_msgs/msg/JointState",
        header=header(time, "base"),
        name=names,
        position=place,
        velocity=speed,
        effort=np.array([]),
    )


def command(own):
    layout = make("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
    data = np.array([float(own["force"])])
    return make("std_msgs/msg/Float64MultiArray", layout=layout, data=data)


def picture(time, own):
    pixels = np.zeros((4, 8), dtype=np.uint8)
    column = int(np.clip((own["position"] + 2.4) / 4.8 * 8, 0, 7))
    pixels[3, column] = 255
    return make(
        "sensor_msgs/msg/Image",
        header=header(time, "camera"),
        height=4,
        width=8,
        encoding="mono8",
        is_bigendian=0,
        step=8,
        data=pixels.reshape(-1),
    )


with open(sys.argv[1], "rb") as file, open(sys.argv[2], "wb") as result:
    writer = Writer(result, compression=CompressionType.ZSTD)
    writer.start(profile="ros2", library="tectum sample")
    channels = {}

    def write(topic, time, message):
        kind = TYPES[topic]
        if topic not in channels:
            text, _ = STORE.generate_msgdef(kind, ros_version=2)
            schema = writer.register_schema(kind, "ros2msg", text.encode())
            channels[topic] = writer.register_channel(topic, "cdr", schema)
        writer.add_message(channels[topic], time, bytes(STORE.serialize_cdr(message, kind)), time)

    numbers = {"/observation": 0, "/action": 0}
    for _, channel, message in make_reader(file).iter_messages(topics=list(numbers)):
        number, time = numbers[channel.topic], BEGIN + message.log_time
        numbers[channel.topic] += 1
        own = json.loads(message.data)
        if channel.topic == "/observation":
            write("/joint_states", time, joint_state(time, number, own))
            if number % 5 == 0:
                write("/camera", time + 1_000_000, picture(time, own))
        else:
            write("/commands", time + 3_000_000 + number % 7 * 500_000, command(own))
    writer.finish()
