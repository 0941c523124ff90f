"""A robot with ROS 2 in tests: what its nodes exchange over zenoh, with the client of zenoh and the
CDR and type hashes of rosbags, which share no code with ours.

It is the router too, prints one JSON object a line, and obeys those that it reads. Its counter n is in
each message: hip has n / 64, knee -n / 32, the acceleration n / 16.
"""

import argparse
import json
import random
import socket
import struct
import sys
import threading
import time

import numpy as np
import zenoh
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_JAZZY)
NO_HASH = "TypeHashNotSupported"
JOINTS = "sensor_msgs/msg/JointState"
ACTIONS = {
    "/effort/commands": "std_msgs/msg/Float64MultiArray",
    "/cmd_vel": "geometry_msgs/msg/TwistStamped",
    "/joint_commands": JOINTS,
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def report(**values):
    print(json.dumps(values), flush=True)


class Robot:
    def __init__(self, arguments):
        self.arguments = arguments
        self.port = free_port()
        config = zenoh.Config()
        config.insert_json5("mode", '"router"')
        config.insert_json5("listen/endpoints", json.dumps([f"tcp/127.0.0.1:{self.port}"]))
        config.insert_json5("scouting/multicast/enabled", "false")
        if arguments.users:
            config.insert_json5(
                "transport/auth/usrpwd/dictionary_file", json.dumps(arguments.users)
            )
        self.session = zenoh.open(config)
        self.received, self.lock = [], threading.Lock()
        self.subscribers = [
            self.session.declare_subscriber(
                self.key(topic, kind), lambda sample, topic=topic: self.take(topic, sample)
            )
            for topic, kind in ACTIONS.items()
        ]
        self.n, self.until = 0, 0.0
        self.hash, self.garbage, self.tokens = None, 0, {}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.publish)

    def key(self, topic, kind, type_hash=None):
        package, _, name = kind.partition("/msg/")
        type_hash = type_hash or self.arguments.hash or TYPES.hash_rihs01(kind)
        return f"{self.arguments.domain}{topic}/{package}::msg::dds_::{name}_/{type_hash}"

    def take(self, topic, sample):
        kind = ACTIONS[topic]
        content = TYPES.deserialize_cdr(bytes(sample.payload), kind)
        if kind == JOINTS:
            numbers = [*content.position]
        elif topic == "/cmd_vel":
            numbers = [content.twist.linear.x, content.twist.angular.z]
        else:
            numbers = [*content.data]
        number, time_ns, length = struct.unpack_from("<qqB", bytes(sample.attachment))
        header = getattr(content, "header", None)
        received = {
            "topic": topic,
            "numbers": [float(number) for number in numbers],
            "names": list(getattr(content, "name", [])),
            "stamp": header and header.stamp.sec + header.stamp.nanosec / 1e9,
            "number": number,
            "late": abs(time.time() - time_ns / 1e9),
            "gid": bytes(sample.attachment)[17:].hex() if length == 16 else None,
        }
        with self.lock:
            self.received.append(received)

    def put(self, topic, kind, content, type_hash=None):
        bytes_ = bytes(TYPES.serialize_cdr(content, kind))
        attachment = struct.pack("<qqB16s", self.n, time.time_ns(), 16, b"robot")
        self.session.put(self.key(topic, kind, type_hash), bytes_, attachment=attachment)

    def header(self):
        types = TYPES.types
        seconds, nanoseconds = divmod(self.n * self.arguments.tick_ns, 10**9)
        stamp = types["builtin_interfaces/msg/Time"](sec=seconds, nanosec=nanoseconds)
        return types["std_msgs/msg/Header"](stamp=stamp, frame_id="base")

    def joints(self):
        own = {"hip": self.n / 64, "knee": -self.n / 32, "spare": float("nan")}
        names = random.sample(sorted(own), len(own))
        position = np.array([own[name] for name in names])
        none = np.array([])
        return TYPES.types[JOINTS](
            header=self.header(), name=names, position=position, velocity=none, effort=none
        )

    def imu(self):
        types = TYPES.types
        vector, none = types["geometry_msgs/msg/Vector3"], np.zeros(9)
        return types["sensor_msgs/msg/Imu"](
            header=self.header(),
            orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
            orientation_covariance=none,
            angular_velocity=vector(x=0.0, y=0.0, z=0.0),
            angular_velocity_covariance=none,
            linear_acceleration=vector(x=0.0, y=0.0, z=self.n / 16),
            linear_acceleration_covariance=none,
        )

    def image(self):
        return TYPES.types["sensor_msgs/msg/Image"](
            header=self.header(),
            height=2,
            width=3,
            encoding="rgb8",
            is_bigendian=0,
            step=9,
            data=np.full(18, self.n % 256, np.uint8),
        )

    def publish(self):
        """Sends each period, the joints last."""
        due = time.monotonic()
        while not self.stopped.is_set():
            due = max(due + self.arguments.period, time.monotonic())
            self.stopped.wait(due - time.monotonic())
            if time.monotonic() < self.until:
                continue
            self.n += 1
            if self.arguments.clock:
                stamp = self.header().stamp
                self.put("/clock", "rosgraph_msgs/msg/Clock", TYPES.types["rosgraph_msgs/msg/Clock"](clock=stamp))
            if self.n % 2:
                self.put("/imu", "sensor_msgs/msg/Imu", self.imu())
                self.put("/camera", "sensor_msgs/msg/Image", self.image())
            if self.garbage:
                self.garbage -= 1
                payload = bytes(TYPES.serialize_cdr(self.joints(), JOINTS))
                broken = payload[: random.randrange(len(payload))]
                self.session.put(self.key("/joint_states", JOINTS), broken)
            else:
                self.put("/joint_states", JOINTS, self.joints(), self.hash)

    def obey(self, order):
        match order["do"]:
            case "sleep":
                self.until = time.monotonic() + order["seconds"]
            case "arm":
                arm = TYPES.types["std_msgs/msg/Bool"](data=order["data"])
                self.put(order["topic"], "std_msgs/msg/Bool", arm)
            case "hash":
                self.hash = order["hash"]
            case "garbage":
                self.garbage = order["count"]
            case "announce":
                token = f"@ros2_lv/{self.arguments.domain}/{order['token']}"
                self.tokens[token] = self.session.liveliness().declare_token(token)
            case "withdraw":
                [token.undeclare() for token in self.tokens.values()]
                self.tokens = {}
            case "tokens":
                replies = self.session.liveliness().get("@ros2_lv/**")
                report(tokens=sorted(str(reply.ok.key_expr) for reply in replies))
            case "hashes":
                report(hashes={kind: TYPES.hash_rihs01(kind) for kind in order["types"]})
            case "end":
                return False
        return True

    def run(self):
        report(port=self.port)
        self.thread.start()
        for line in sys.stdin:
            if not self.obey(json.loads(line)):
                break
        self.stopped.set()
        self.thread.join()
        with self.lock:
            report(received=self.received, n=self.n)
        self.session.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--period", type=float, default=0.02)
    parser.add_argument("--clock", action="store_true", help="publishes simulated time")
    parser.add_argument("--tick-ns", type=int, default=10_000_000, help="simulated time of a period")
    parser.add_argument("--hash", help="in place of all type hashes")
    parser.add_argument("--users", help="file with USER:PASSWORD lines")
    Robot(parser.parse_args()).run()
