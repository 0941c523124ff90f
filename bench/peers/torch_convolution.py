"""PyTorch's rows of the suite of convolutions; `torch_rows.py` serves them. As they are, and with weights in the layout that oneDNN prefers."""

import torch
import torch.nn.functional as F
from torch.utils import mkldnn

from protocol import fastest, row


def uniform(*sizes):
    return 1 - torch.rand(sizes)


def convolution(function, module, dimensions):
    def make(shape):
        channels_in, *size, channels_out, kernel, stride, padding, groups = shape.sizes
        x, bias = uniform(1, channels_in, *size), uniform(channels_out)
        w = uniform(channels_out, channels_in // groups, *[kernel] * dimensions)
        layer = module(channels_in, channels_out, kernel, stride, padding, groups=groups).eval()
        layer.weight.copy_(w), layer.bias.copy_(bias)

        def packed():
            ready, operand = mkldnn.to_mkldnn(torch.nn.Sequential(layer, torch.nn.ReLU())), x.to_mkldnn()
            return lambda: ready(operand)

        return fastest(shape, {
            "convolution, relu_": lambda: lambda: torch.relu_(function(x, w, bias, stride, padding, 1, groups)),
            "to_mkldnn of both": packed,
        })

    return make


row("conv2d", 8, "conv2d(x, w, bias), then ReLU", types=["float32"])(convolution(F.conv2d, torch.nn.Conv2d, 2))
row("conv1d", 7, "conv1d(x, w, bias), then ReLU", types=["float32"])(convolution(F.conv1d, torch.nn.Conv1d, 1))


@row("conv_transpose1d", 6, "conv_transpose1d(x, w, bias), then ReLU", types=["float32"])
def conv_transpose1d(shape):
    channels_in, size, channels_out, kernel, stride, padding = shape.sizes
    x, w, bias = uniform(1, channels_in, size), uniform(channels_in, channels_out, kernel), uniform(channels_out)
    return lambda: torch.relu_(F.conv_transpose1d(x, w, bias, stride, padding))


@row("max_pool2d", 6, "max_pool2d(x)", types=["float32"])
def max_pool2d(shape):
    channels, height, width, kernel, stride, padding = shape.sizes
    x = uniform(1, channels, height, width)
    return lambda: F.max_pool2d(x, kernel, stride, padding)


@row("average_pool2d", 6, "avg_pool2d(x, count_include_pad=False)", types=["float32"])
def average_pool2d(shape):
    channels, height, width, kernel, stride, padding = shape.sizes
    x = uniform(1, channels, height, width)
    return lambda: F.avg_pool2d(x, kernel, stride, padding, count_include_pad=False)
