"""Writes robot policies and vision networks as ONNX files, each with a case: inputs and the outputs of ONNX Runtime.

    pip install torch torchvision onnx onnxscript onnxruntime stable-baselines3
    python export.py FOLDER [NAME ...]

Weights and inputs are random with a fixed seed. Each network is exported twice: NAME_script.onnx by torch's older exporter
(TorchScript, opset 17), NAME_dynamo.onnx by its newer one (at its own opset, weights in NAME_dynamo.onnx.data).
resnet18_int8.onnx is a quantised ResNet-18 (QDQ, per channel). NAME_*.npz has the case's arrays under the names of the
graph's inputs and outputs. The table printed at the end has each file's largest difference from PyTorch, or why there is none.
"""

import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import onnxruntime
import torch
import torchvision
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy
from torch import nn

import networks

SEED = 7

# Stable-Baselines3's policies make a distribution. Its check of arguments has no ONNX equivalent (aten._is_all_true), at which
# the newer exporter stops; the older one leaves the check out.
torch.distributions.Distribution.set_default_validate_args(False)


def settled(network, shape):
    """Sets the running statistics of batch normalisation from random images, so that activations keep their size."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        network.train()(torch.randn(4, *shape[1:]))
    return network


def vision(build):
    network = build(weights=None)
    if isinstance(network, torchvision.models.VisionTransformer):
        nn.init.normal_(network.heads.head.weight, std=0.02)  # All zero when new.
    return settled(network, (1, 3, 224, 224)), {"image": torch.randn(1, 3, 224, 224)}, ["logits"]


def sb3_mlp():
    space = gymnasium.spaces.Box(-np.inf, np.inf, (17,))
    policy = ActorCriticPolicy(space, gymnasium.spaces.Box(-1, 1, (6,)), lambda _: 3e-4)
    network = networks.Sb3Policy(policy, torch.randn(17), torch.rand(17) + 0.1)
    return network, {"observation": torch.randn(1, 17)}, ["action", "value", "log_probability"]


def sb3_cnn():
    space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    policy = ActorCriticCnnPolicy(space, gymnasium.spaces.Discrete(6), lambda _: 3e-4)
    frames = torch.randint(0, 256, (1, 4, 84, 84), dtype=torch.uint8)
    return networks.Sb3Policy(policy), {"observation": frames}, ["action", "value", "log_probability"]


def rsl_lstm():
    inputs = {"obs": torch.randn(1, 48), "h_in": torch.randn(1, 1, 256), "c_in": torch.randn(1, 1, 256)}
    return networks.RecurrentActor(nn.LSTM), inputs, ["actions", "h_out", "c_out"]


def rsl_gru():
    inputs = {"obs": torch.randn(1, 48), "h_in": torch.randn(1, 1, 256)}
    return networks.RecurrentActor(nn.GRU), inputs, ["actions", "h_out"]


def act():
    statistics = settled(torchvision.models.resnet18(weights=None), (1, 3, 224, 224)).state_dict()
    backbone = torchvision.models.resnet18(weights=None, norm_layer=torchvision.ops.misc.FrozenBatchNorm2d)
    backbone.load_state_dict(statistics)
    backbone = nn.Sequential(*list(backbone.children())[:-2])
    inputs = {"observation.state": torch.randn(1, 14)}
    inputs |= {f"observation.images.{side}": torch.randn(1, 3, 224, 224) for side in ("left", "right")}
    return networks.Act(backbone), inputs, ["action"]


def diffusion_unet():
    inputs = {"sample": torch.randn(1, 16, 7), "timestep": torch.tensor([50]), "global_cond": torch.randn(1, 156)}
    return networks.DiffusionUnet(), inputs, ["noise"]


NETWORKS = {
    "sb3_mlp": sb3_mlp,
    "sb3_cnn": sb3_cnn,
    "rsl_mlp": lambda: (networks.DenseActor(), {"obs": torch.randn(1, 48)}, ["actions"]),
    "rsl_lstm": rsl_lstm,
    "rsl_gru": rsl_gru,
    "act": act,
    "diffusion_unet": diffusion_unet,
    "resnet18": lambda: vision(torchvision.models.resnet18),
    "mobilenet_v3_large": lambda: vision(torchvision.models.mobilenet_v3_large),
    "efficientnet_b0": lambda: vision(torchvision.models.efficientnet_b0),
    "vit_b_16": lambda: vision(torchvision.models.vit_b_16),
}


def run(path, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))


def export(network, inputs, outputs, path, dynamo):
    opset = {} if dynamo else {"opset_version": 17}
    names = {"input_names": list(inputs), "output_names": outputs}
    path.with_name(path.name + ".data").unlink(missing_ok=True)
    torch.onnx.export(network, tuple(inputs.values()), path, dynamo=dynamo, **names, **opset)
    onnx.checker.check_model(path)


def largest_difference(expected, found):
    """Largest difference relative to the largest expected value, over all outputs."""
    return max(float(np.abs(e - f).max() / max(np.abs(e).max(), 1e-9)) for e, f in zip(expected, found, strict=True))


def export_both(folder, name):
    torch.manual_seed(SEED)
    network, inputs, outputs = NETWORKS[name]()
    network.eval()
    with torch.no_grad():
        expected = network(*inputs.values())
    expected = [e.numpy() for e in (expected if isinstance(expected, tuple) else (expected,))]
    arrays = {key: value.numpy() for key, value in inputs.items()}
    for kind in ("script", "dynamo"):
        path = folder / f"{name}_{kind}.onnx"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                export(network, inputs, outputs, path, dynamo=kind == "dynamo")
            found = run(path, arrays)
        except Exception as error:  # An exporter's failure is a result here: it goes into the table.
            yield path.stem, f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        np.savez(path.with_suffix(".npz"), **arrays, **found)
        yield path.stem, f"{largest_difference(expected, found.values()):.1e}"


class RandomImages(CalibrationDataReader):
    def __init__(self, count):
        generator = np.random.default_rng(SEED)
        self.images = iter([generator.standard_normal((1, 3, 224, 224), np.float32) for _ in range(count)])

    def get_next(self):
        image = next(self.images, None)
        return None if image is None else {"image": image}


def export_int8(folder):
    """Quantises resnet18_script.onnx. Its case holds the outputs of ONNX Runtime as users run it, by products of integers."""
    source, prepared, path = (folder / f"resnet18_{part}.onnx" for part in ("script", "prepared", "int8"))
    quant_pre_process(source, prepared)
    quantize_static(
        prepared, path, RandomImages(16), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
    )
    prepared.unlink()
    inputs = {"image": np.load(source.with_suffix(".npz"))["image"]}
    found = run(path, inputs)
    np.savez(path.with_suffix(".npz"), **inputs, **found)
    float_outputs = [np.load(source.with_suffix(".npz"))["logits"]]
    return path.stem, f"{largest_difference(float_outputs, found.values()):.1e} (from float32)"


def main(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in names or NETWORKS:
        rows += export_both(folder, name)
        if name == "resnet18":
            rows.append(export_int8(folder))
    for name, result in rows:
        print(f"{name}\t{result}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: export.py FOLDER [NAME ...]")
    main(Path(sys.argv[1]), sys.argv[2:])
