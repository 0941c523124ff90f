"""Files of tensors with random values, the same bytes every time: what the scripts that make sample models share."""

import json
import random
import struct


def safetensors(tensors, seed=1):
    """The bytes of a safetensors file in F16, of (name, shape, deviation); a deviation of None gives ones."""
    generator, header, data = random.Random(seed), {"__metadata__": {"format": "pt"}}, b""
    for name, shape, deviation in tensors:
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0 if deviation is None else generator.gauss(0.0, deviation) for _ in range(count)]
        packed = struct.pack(f"<{count}e", *values)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data
