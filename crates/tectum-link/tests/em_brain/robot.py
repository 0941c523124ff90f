"""A robot of em-brain from the table of bytes, with the standard library alone: HOST PORT."""

import socket
import struct
import sys

SENSORS, ACTION, HANDSHAKE = 0, 1, 2


def frame(kind, numbers):
    count = len(numbers)
    return b"ROBO" + struct.pack(">IBI", 5 + 4 * count, kind, count) + struct.pack(f"<{count}f", *numbers)


def exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError("the server ended the connection")
        data += part
    return data


def receive(connection):
    magic, length, kind, count = struct.unpack(">IIBI", exactly(connection, 13))
    assert magic == 0x524F424F and length == 5 + 4 * count, (magic, length, count)
    return kind, struct.unpack(f"<{count}f", exactly(connection, 4 * count))


with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(frame(HANDSHAKE, [1, 3, 2, 0, 0, 640, 480]))
    assert receive(connection) == (HANDSHAKE, (1, 3, 2, 0, 15))
    for cycle in range(1000):
        connection.sendall(frame(SENSORS, [cycle % 20, 0.5, -cycle % 7]))
        assert receive(connection) == (ACTION, (cycle % 20 + 0.5, -cycle % 7)), cycle
print("1000 answers")
