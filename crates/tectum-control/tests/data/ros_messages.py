"""Writes ros_messages.json: messages of ROS 2 as bytes of CDR, and type hashes, by rosbags.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install rosbags==0.11.9
    /tmp/venv/bin/python ros_messages.py > ros_messages.json

A message is its type, the byte order, the value of each field by its path and the bytes as
hexadecimal digits; floating point is written with all digits.
"""

import json
import random

import numpy as np
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

EVERY = """\
# Every type of a field.
uint8 LIMIT=3
string NAME="a # b"
bool flag
byte octet
int8 small
uint8 count
int16 short_number
uint16 word
int32 number
uint32 size
int64 long_number
uint64 id
float32 single
float64 double_number
string text
string<=12 short_text
bool[3] flags
uint8[] data
int16[] shorts
int64[<=4] ids
float32[2] pair
float64[] doubles
string[] texts
string<=5[<=3] short_texts
example_msgs/Part part
Part[2] parts
Part[] more
example_msgs/Nothing nothing
uint8 last
================================================================================
MSG: example_msgs/Part
float64 value
uint8 kind
string label
int16[2] place
================================================================================
MSG: example_msgs/Nothing
"""

STORE = get_typestore(Stores.ROS2_JAZZY)
SECTIONS = EVERY.split("=" * 80 + "\n")
TYPES = get_types_from_msg(SECTIONS[0], "example_msgs/msg/Every")
for section in SECTIONS[1:]:
    head, _, body = section.partition("\n")
    TYPES.update(get_types_from_msg(body, head.removeprefix("MSG: ").replace("/", "/msg/")))
STORE.register(TYPES)

RANDOM = random.Random(20)
RANGES = {
    # rosbags writes a byte as a signed number.
    "bool": (0, 1), "octet": (0, 127), "byte": (0, 127), "int8": (-128, 127), "uint8": (0, 255),
    "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1),
}


def scalar(kind, bound):
    if kind == "string":
        letters = [RANDOM.choice("abcé_/ ") for _ in range(RANDOM.randrange(7))]
        text = "".join(letters)
        while bound and len(text.encode()) > bound:
            text = text[:-1]
        return text
    if kind == "float32":
        return float(np.float32(RANDOM.gauss(0, 10)))
    if kind == "float64":
        return RANDOM.gauss(0, 10)
    return bool(RANDOM.randrange(2)) if kind == "bool" else RANDOM.randint(*RANGES[kind])


def message(name, values, before=""):
    """A random message; adds its values by path."""
    fields = {}
    for field, (node, detail) in STORE.fielddefs[name][1]:
        path = before + field
        node = int(node)
        if node in (1, 2):
            fields[field] = element((node, detail), values, path)
            continue
        inner, limit = detail
        fixed = node == 3
        count = limit if fixed else RANDOM.randrange((min(limit, 4) if limit else 4) + 1)
        if int(inner[0]) == 2:
            fields[field] = [
                message(inner[1], values, f"{path}[{index}].") for index in range(count)
            ]
            continue
        kind, bound = inner[1]
        items = [scalar(kind, bound) for _ in range(count)]
        values[path] = items
        kinds = {"octet": "uint8", "byte": "uint8"}
        fields[field] = items if kind == "string" else np.array(items, dtype=kinds.get(kind, kind))
    if not STORE.fielddefs[name][1]:
        values[before + "structure_needs_at_least_one_member"] = 0
    return STORE.types[name](**fields)


def element(node, values, path):
    if int(node[0]) == 2:
        return message(node[1], values, path + ".")
    value = scalar(*node[1])
    values[path] = value
    return value


NAMES = """
builtin_interfaces/msg/Duration builtin_interfaces/msg/Time
geometry_msgs/msg/Point geometry_msgs/msg/Pose geometry_msgs/msg/PoseWithCovariance
geometry_msgs/msg/Quaternion geometry_msgs/msg/Twist geometry_msgs/msg/TwistStamped
geometry_msgs/msg/TwistWithCovariance geometry_msgs/msg/Vector3
nav_msgs/msg/Odometry rcl_interfaces/msg/Log rosgraph_msgs/msg/Clock
sensor_msgs/msg/Image sensor_msgs/msg/Imu sensor_msgs/msg/JointState sensor_msgs/msg/LaserScan
std_msgs/msg/Float32MultiArray std_msgs/msg/Float64MultiArray std_msgs/msg/Header
std_msgs/msg/MultiArrayDimension std_msgs/msg/MultiArrayLayout
trajectory_msgs/msg/JointTrajectory trajectory_msgs/msg/JointTrajectoryPoint
std_msgs/msg/Bool
""".split()

MESSAGES = []
for name in [*NAMES, *["example_msgs/msg/Every"] * 6]:
    for order in ("little", "big"):
        values = {}
        own = message(name, values)
        data = bytes(STORE.serialize_cdr(own, name, little_endian=order == "little"))
        MESSAGES.append({"type": name, "order": order, "values": values, "bytes": data.hex()})

print('{"definition":', json.dumps(EVERY) + ",")
HASHES = {name: STORE.hash_rihs01(name) for name in [*NAMES, "example_msgs/msg/Every"]}
print('"hashes":', json.dumps(HASHES, indent=1) + ",")
print('"messages": [')
print(",\n".join(json.dumps(own, ensure_ascii=False) for own in MESSAGES))
print("]}")
