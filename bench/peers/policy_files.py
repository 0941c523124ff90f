"""The files of `tectum bench policy` and their inputs, which are those that ours gets."""

import pathlib

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "models" / "policy"
NETWORKS = [
    "rsl_mlp", "rsl_lstm", "rsl_gru", "sb3_cnn", "diffusion_unet", "resnet18", "mobilenet_v3_large", "efficientnet_b0", "vit_b_16", "act",
]


def path(name):
    file = FOLDER / f"{name}_script.onnx"
    if not file.exists():
        raise RuntimeError(f"{file} is missing; crates/tectum-onnx/tests/models/export.py makes it")
    return file


def numbers(dims, dtype):
    index = np.arange(int(np.prod(dims)), dtype=np.int64) * 7919
    values = (index % 1000 + 1).astype(np.float32) / np.float32(1000) if np.issubdtype(dtype, np.floating) else index % 256
    return values.astype(dtype).reshape(dims)
