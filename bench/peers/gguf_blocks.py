"""Writes blocks of codes and what the Python package gguf makes of them, in one small GGUF file, by that package's own writer.

    bench/peers/.venv-torch/bin/python bench/peers/gguf_blocks.py                        # crates/tectum-transformer/tests/data/gguf_rows.gguf
    bench/peers/.venv-torch/bin/python bench/peers/gguf_blocks.py --blocks 500000 FILE   # as many blocks of each type as asked for

Tensor TYPE.codes holds the blocks, TYPE.numbers the numbers as f32; halves come with every bit pattern if many blocks are asked for.
The metadata has a key of each type. `crates/tectum-transformer/tests/gguf.rs` compares bits; TECTUM_GGUF_ROWS names another file to it.
"""

import argparse
import pathlib

import gguf
import numpy
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind

TARGET = pathlib.Path(__file__).resolve().parent.parent.parent / "crates/tectum-transformer/tests/data/gguf_rows.gguf"
# Scales in f16 that random bits seldom give: zeros, the least and greatest denormal, infinities, NaNs with and without the quiet bit.
SCALES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x7BFF, 0x3C00]


def blocks(kind, count, draw):
    """Random blocks, each scale of the list in some of them; the list alone first."""
    made = draw.integers(0, 256, (count, gguf.GGML_QUANT_SIZES[kind][1]), dtype=numpy.uint8)
    scales = numpy.array(SCALES, dtype="<u2").view(numpy.uint8).reshape(-1, 2)[:count]
    made[: len(scales), :2] = scales
    if kind in (Type.Q4_1, Type.Q5_1, Type.Q4_K, Type.Q5_K):
        made[: len(scales), 2:4] = scales
    if kind in (Type.Q2_K, Type.Q3_K, Type.Q6_K):
        made[: len(scales), :2] = draw.integers(0, 256, (len(scales), 2), dtype=numpy.uint8)
        made[: len(scales), -2:] = scales
    return made


def halves(kind, count, draw):
    bits = numpy.arange(2**16, dtype="<u2")[None] if count > 2**12 else numpy.array([SCALES + [0x1234, 0xBEEF]], dtype="<u2")
    wanted = bits.view("<f2").astype("<f4") if kind == Type.F16 else (bits.astype("<u4") << 16).view("<f4")
    return bits.view(numpy.uint8), wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=TARGET)
    options = parser.parse_args()
    draw = numpy.random.default_rng(options.seed)
    writer = gguf.GGUFWriter(options.file, "rows")
    whole = [("uint8", 2**8 - 1), ("int8", -(2**7)), ("uint16", 2**16 - 1), ("int16", -(2**15)), ("uint32", 2**32 - 1), ("int32", -(2**31)),
             ("uint64", 2**64 - 1), ("int64", -(2**63)), ("float32", 1e-5), ("float64", 1e-300), ("bool", True), ("string", "three words é")]
    for name, value in whole:
        getattr(writer, f"add_{name}")(f"value.{name}", value)
    for name, values in [("texts", ["a", "", "the third"]), ("numbers", [3, 1, 4, 1, 5]), ("floats", [0.5, -2.0]), ("nested", [[1, 2], [3]])]:
        writer.add_key_value(f"array.{name}", values, Kind.ARRAY)
    writer.add_custom_alignment(64)
    with numpy.errstate(all="ignore"):
        for kind, count in [(Type.F16, 0), (Type.BF16, 0), (Type.Q8_0, 16), (Type.Q4_0, 16), (Type.Q4_1, 16), (Type.Q5_0, 16), (Type.Q5_1, 16),
                            (Type.Q2_K, 13), (Type.Q3_K, 13), (Type.Q4_K, 13), (Type.Q5_K, 13), (Type.Q6_K, 13)]:
            if count == 0:
                codes, numbers = halves(kind, options.blocks, draw)
            else:
                codes = blocks(kind, options.blocks or count, draw)
                numbers = gguf.quants.dequantize(codes, kind)
            writer.add_tensor(f"{kind.name}.codes", codes, raw_dtype=kind)
            writer.add_tensor(f"{kind.name}.numbers", numbers)
    writer.add_tensor("IQ4_NL.codes", blocks(Type.IQ4_NL, 1, draw), raw_dtype=Type.IQ4_NL)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{options.file}: {options.file.stat().st_size} bytes")


main()
