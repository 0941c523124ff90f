"""Makes sample-arrays: a.npy has the numbers 0 to 7, b.npy eight halves, both as f32, for programs of two inputs.

    python3 crates/tectum-programs/samples/make_sample_arrays.py
"""

import pathlib
import struct


def npy(numbers):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + f"{head:<117}\n".encode() + struct.pack(f"<{len(numbers)}f", *numbers)


folder = pathlib.Path(__file__).resolve().parent / "sample-arrays"
folder.mkdir(exist_ok=True)
(folder / "a.npy").write_bytes(npy(range(8)))
(folder / "b.npy").write_bytes(npy([0.5] * 8))
