"""Writes twin_gradients.json beside it: loss and gradients of a small twin by PyTorch in float64.

Run by hand, with a Python that has torch.
"""

import json
import math
import pathlib

import torch

FEATURES, HIDDEN, CHANNELS, BATCH = 5, 8, 3, 6
TARGET = pathlib.Path(__file__).with_suffix(".json")


def wave(count, step, size):
    """Numbers that another language makes alike: size·sin(step·(i + 1)), rounded to f32."""
    return torch.tensor([size * math.sin(step * (i + 1)) for i in range(count)], dtype=torch.float32).double()


def main():
    sizes = [(FEATURES, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, CHANNELS)]
    weights = []
    for layer, (rows, columns) in enumerate(sizes):
        weights.append(wave(rows * columns, 0.7 + 0.1 * layer, 0.5).reshape(rows, columns).requires_grad_())
        weights.append(wave(columns, 0.4 + 0.1 * layer, 0.2).requires_grad_())
    x = wave(BATCH * FEATURES, 1.3, 1.0).reshape(BATCH, FEATURES)
    target = wave(BATCH * CHANNELS, 0.9, 1.0).reshape(BATCH, CHANNELS)
    slopes = wave(BATCH * CHANNELS, 1.7, 1.0).reshape(BATCH, CHANNELS)
    values = wave(BATCH, 0.6, 1.0)
    cases = []
    for bound, physics in ((None, 0.0), (0.3, 0.0), (0.3, 0.7)):
        value = x
        for layer in range(3):
            value = value @ weights[2 * layer] + weights[2 * layer + 1]
            value = torch.tanh(value) if layer < 2 else value
        if bound is None:
            loss = torch.nn.functional.mse_loss(value, target)
        else:
            loss = torch.nn.functional.huber_loss(value, target, delta=bound)
        loss = loss + physics * ((value * slopes).sum(1) - values).square().mean()
        gradients = torch.autograd.grad(loss, weights)
        numbers = [number for gradient in gradients for number in gradient.flatten().tolist()]
        cases.append({"huber": bound, "physics": physics, "loss": loss.item(), "gradients": numbers})
    TARGET.write_text(json.dumps({"torch": torch.__version__, "cases": cases}) + "\n")


if __name__ == "__main__":
    main()
