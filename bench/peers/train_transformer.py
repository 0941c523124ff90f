"""Trains the transformer of crates/tectum-graph/examples/train_transformer in PyTorch on the CPU and prints the loss of each step.

    python3 -m venv /tmp/venv-torch && /tmp/venv-torch/bin/pip install torch
    /tmp/venv-torch/bin/python bench/peers/train_transformer.py > crates/tectum-graph/tests/train_transformer.txt

Weights, batches and hyperparameters are those of the example: any number is a hash of its position, so both start from the same bits.
"""

import torch
import torch.nn.functional as F

TEXT = (
    "a neuron adds up what it receives, and fires when the sum is large enough. a network of neurons learns by changing how "
    "strongly each one listens to the others. what it has learned is in the strengths, not in the neurons."
)
BATCH, TIME, WIDTH, HEADS, LAYERS, STEPS = 4, 16, 32, 4, 2, 50


def fill(tensor, shape, scale):
    """Numbers in [-scale, scale) by a hash of the tensor's number and the element's."""
    mask, values = 0xFFFFFFFF, []
    for element in range(torch.Size(shape).numel()):
        h = (tensor * 0x9E3779B1 + element * 0x85EBCA77 + 0x165667B1) & mask
        h = ((h ^ (h >> 15)) * 0x2C1B3C6D) & mask
        h = ((h ^ (h >> 12)) * 0x297A2D39) & mask
        h ^= h >> 15
        values.append(((h >> 8) / (1 << 23) - 1.0) * scale)
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


def parameters(classes):
    """Name and values of each parameter, in the order of the graph."""
    entries = [("tokens", [classes, WIDTH], 0.5), ("places", [TIME, WIDTH], 0.5)]
    for layer in range(LAYERS):
        entries.append((f"{layer}.norm1.gain", [WIDTH], None))
        entries.append((f"{layer}.norm1.bias", [WIDTH], 0.0))
        entries += [(f"{layer}.{name}.weight", [WIDTH, WIDTH], 0.25) for name in ("q", "k", "v", "out")]
        entries.append((f"{layer}.norm2.gain", [WIDTH], None))
        entries.append((f"{layer}.norm2.bias", [WIDTH], 0.0))
        entries += [(f"{layer}.up.weight", [WIDTH, 4 * WIDTH], 0.25), (f"{layer}.up.bias", [1, 4 * WIDTH], 0.0)]
        entries += [(f"{layer}.down.weight", [4 * WIDTH, WIDTH], 0.125), (f"{layer}.down.bias", [1, WIDTH], 0.0)]
    entries += [("norm.gain", [WIDTH], None), ("norm.bias", [WIDTH], 0.0), ("head", [WIDTH, classes], 0.25)]
    made = {}
    for number, (name, shape, scale) in enumerate(entries):
        values = torch.ones(shape) if scale is None else fill(number, shape, scale)
        made[name] = torch.nn.Parameter(values)
    return made


def logits(p, ids):
    x = p["tokens"][ids] + p["places"]
    for layer in range(LAYERS):
        at = lambda name: p[f"{layer}.{name}"]
        y = F.layer_norm(x, [WIDTH], at("norm1.gain"), at("norm1.bias"), 1e-5)
        split = lambda name: (y @ at(name)).reshape(BATCH, TIME, HEADS, WIDTH // HEADS).transpose(1, 2)
        y = F.scaled_dot_product_attention(split("q.weight"), split("k.weight"), split("v.weight"), is_causal=True)
        x = x + y.transpose(1, 2).reshape(BATCH, TIME, WIDTH) @ at("out.weight")
        y = F.layer_norm(x, [WIDTH], at("norm2.gain"), at("norm2.bias"), 1e-5)
        y = F.gelu(y @ at("up.weight") + at("up.bias"), approximate="tanh")
        x = x + y @ at("down.weight") + at("down.bias")
    x = F.layer_norm(x, [WIDTH], p["norm.gain"], p["norm.bias"], 1e-5)
    return x @ p["head"]


def main():
    torch.set_num_threads(1)
    symbols = sorted(set(TEXT))
    text = torch.tensor([symbols.index(symbol) for symbol in TEXT])
    p = parameters(len(symbols))
    optimizer = torch.optim.AdamW(p.values(), lr=3e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    print(f"# Losses of bench/peers/train_transformer.py: torch {torch.__version__}, CPU, float32")
    for step in range(STEPS):
        starts = [(step * BATCH + item) * 7 % (len(TEXT) - TIME) for item in range(BATCH)]
        ids = torch.stack([text[start : start + TIME] for start in starts])
        targets = torch.stack([text[start + 1 : start + TIME + 1] for start in starts])
        loss = F.cross_entropy(logits(p, ids).reshape(BATCH * TIME, -1), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")


main()
