"""Tensors with random values, the same every time, and files of them: what the scripts that make sample models share."""

import json
import random
import struct


def values(tensors, seed=1):
    """The numbers of each tensor, of (name, shape, deviation); a deviation of None gives ones. Each is rounded to a half."""
    generator = random.Random(seed)
    for _, shape, deviation in tensors:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        numbers = [1.0 if deviation is None else generator.gauss(0.0, deviation) for _ in range(count)]
        yield struct.unpack(f"<{count}e", struct.pack(f"<{count}e", *numbers))


def safetensors(tensors, seed=1):
    """The bytes of a safetensors file in F16, of tensors as `values` takes them."""
    tensors = list(tensors)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for (name, shape, _), numbers in zip(tensors, values(tensors, seed)):
        packed = struct.pack(f"<{len(numbers)}e", *numbers)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
