"""Robot policies as their training projects build them, in little code and with random weights.

Each is written as the exporter of the named project traces it, so that the files have the operators that such files have.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Normaliser(nn.Module):
    """rsl_rl's empirical normaliser: (x - mean) / (std + 0.01)."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.randn(1, size))
        self.register_buffer("std", torch.rand(1, size) + 0.5)

    def forward(self, x):
        return (x - self.mean) / (self.std + 0.01)


def dense(sizes, activation):
    layers = []
    for inner, outer in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inner, outer), activation()]
    return nn.Sequential(*layers[:-1])


class DenseActor(nn.Module):
    """rsl_rl's feed-forward actor."""

    def __init__(self, sizes=(48, 512, 256, 128, 12)):
        super().__init__()
        self.normaliser, self.layers = Normaliser(sizes[0]), dense(sizes, nn.ELU)

    def forward(self, obs):
        return self.layers(self.normaliser(obs))


class RecurrentActor(nn.Module):
    """rsl_rl's recurrent actor: one step, with its state as inputs and outputs [layers, B, H]."""

    def __init__(self, cell, sizes=(256, 256, 128, 12), observations=48):
        super().__init__()
        self.normaliser, self.layers = Normaliser(observations), dense(sizes, nn.ELU)
        self.cell = cell(observations, sizes[0])

    def forward(self, obs, h_in, c_in=None):
        state = h_in if c_in is None else (h_in, c_in)
        out, state = self.cell(self.normaliser(obs).unsqueeze(0), state)
        return self.layers(out.squeeze(0)), *(state if isinstance(state, tuple) else (state,))


class Sb3Policy(nn.Module):
    """Stable-Baselines3's documented export: its policy with `deterministic=True`, after VecNormalize where there is one."""

    def __init__(self, policy, mean=None, variance=None):
        super().__init__()
        self.policy, self.normalised = policy, mean is not None
        if self.normalised:
            self.register_buffer("mean", mean)
            self.register_buffer("variance", variance)

    def forward(self, observation):
        if self.normalised:
            observation = ((observation - self.mean) / torch.sqrt(self.variance + 1e-8)).clamp(-10.0, 10.0)
        return self.policy(observation, deterministic=True)


class ActLayer(nn.Module):
    """A post-norm transformer layer of ACT: positions are added to queries and keys, never to values."""

    def __init__(self, D, H, feed_forward, crossed):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, H)
        self.crossed = nn.MultiheadAttention(D, H) if crossed else None
        self.widen, self.narrow = nn.Linear(D, feed_forward), nn.Linear(feed_forward, D)
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3 if crossed else 2))

    def forward(self, x, positions, memory=None, memory_positions=None):
        queries = x + positions
        x = self.norms[0](x + self.attention(queries, queries, x)[0])
        if self.crossed is not None:
            x = self.norms[1](x + self.crossed(x + positions, memory + memory_positions, memory)[0])
        return self.norms[-1](x + self.narrow(functional.relu(self.widen(x))))


class Act(nn.Module):
    """Action chunking transformer with LeRobot's defaults, without the encoder of actions that only training has."""

    def __init__(self, backbone, state=14, actions=14, chunk=100, D=512, H=8, feed_forward=3200):
        super().__init__()
        self.backbone, self.D, self.chunk = backbone, D, chunk
        self.from_image, self.from_state = nn.Conv2d(512, D, 1), nn.Linear(state, D)
        self.from_latent = nn.Linear(32, D)
        self.token_positions, self.chunk_positions = nn.Embedding(2, D), nn.Embedding(chunk, D)
        self.encoder = nn.ModuleList(ActLayer(D, H, feed_forward, crossed=False) for _ in range(4))
        self.decoder = ActLayer(D, H, feed_forward, crossed=True)
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, actions)

    def image_positions(self, features):
        """Sines and cosines of row and column, [1, D, Y, X]. Computed in the graph from a running sum of ones, as LeRobot does."""
        ones = torch.ones_like(features[0, :1])
        halves = []
        for axis in (1, 2):
            place = ones.cumsum(axis, dtype=torch.float32)
            last = place[:, -1:, :] if axis == 1 else place[:, :, -1:]
            place = place / (last + 1e-6) * (2 * math.pi)
            index = torch.arange(self.D // 2, dtype=torch.float32)
            angle = place.unsqueeze(-1) / 10000 ** (2 * torch.div(index, 2, rounding_mode="floor") / (self.D // 2))
            halves.append(torch.stack((angle[..., 0::2].sin(), angle[..., 1::2].cos()), dim=-1).flatten(3))
        return torch.cat(halves, dim=3).permute(0, 3, 1, 2)

    def forward(self, state, *images):
        B = state.shape[0]
        tokens = [self.from_latent(torch.zeros(B, 32)), self.from_state(state)]
        positions = list(self.token_positions.weight.unsqueeze(1))
        for image in images:
            features = self.backbone(image)
            # LeRobot makes one list of all tokens, which the exporters unroll.
            positions.extend(list(self.image_positions(features).flatten(2).permute(2, 0, 1)))
            tokens.extend(list(self.from_image(features).flatten(2).permute(2, 0, 1)))
        x, positions = torch.stack(tokens), torch.stack(positions)
        for layer in self.encoder:
            x = layer(x, positions)
        queries = torch.zeros(self.chunk, B, self.D)
        out = self.decoder(queries, self.chunk_positions.weight.unsqueeze(1), x, positions)
        return self.head(self.norm(out).transpose(0, 1))


class StepEmbedding(nn.Module):
    """Sines, then cosines, of the denoising step at D / 2 frequencies."""

    def __init__(self, D):
        super().__init__()
        self.D = D

    def forward(self, step):
        half = self.D // 2
        frequency = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        angle = step.unsqueeze(-1) * frequency.unsqueeze(0)
        return torch.cat((angle.sin(), angle.cos()), dim=-1)


def conv_block(inner, outer):
    return nn.Sequential(nn.Conv1d(inner, outer, 5, padding=2), nn.GroupNorm(8, outer), nn.Mish())


class ConditionedBlock(nn.Module):
    """Two convolutions with a residual; between them the condition scales and shifts each channel (FiLM)."""

    def __init__(self, inner, outer, condition):
        super().__init__()
        self.first, self.second = conv_block(inner, outer), conv_block(outer, outer)
        self.modulation = nn.Sequential(nn.Mish(), nn.Linear(condition, 2 * outer))
        self.residual = nn.Conv1d(inner, outer, 1) if inner != outer else nn.Identity()
        self.channels = outer

    def forward(self, x, condition):
        modulation = self.modulation(condition).unsqueeze(-1)
        scale, shift = modulation[:, : self.channels], modulation[:, self.channels :]
        return self.second(scale * self.first(x) + shift) + self.residual(x)


class DiffusionUnet(nn.Module):
    """The noise that diffusion policy predicts in one denoising step. LeRobot's default widths are 512, 1024, 2048."""

    def __init__(self, actions=7, condition=2 * (14 + 64), widths=(128, 256, 512), embedding=128):
        super().__init__()
        self.step = nn.Sequential(
            StepEmbedding(embedding), nn.Linear(embedding, 4 * embedding), nn.Mish(), nn.Linear(4 * embedding, embedding)
        )
        condition += embedding

        def pair(inner, outer):
            return [ConditionedBlock(inner, outer, condition), ConditionedBlock(outer, outer, condition)]

        down, up = [], []
        for i, (inner, outer) in enumerate(zip((actions, *widths), widths)):
            shrink = nn.Conv1d(outer, outer, 3, 2, 1) if i + 1 < len(widths) else nn.Identity()
            down.append(nn.ModuleList([*pair(inner, outer), shrink]))
        for outer, inner in zip(widths[-2::-1], widths[:0:-1]):
            up.append(nn.ModuleList([*pair(2 * inner, outer), nn.ConvTranspose1d(outer, outer, 4, 2, 1)]))
        self.down, self.up = nn.ModuleList(down), nn.ModuleList(up)
        self.middle = nn.ModuleList(pair(widths[-1], widths[-1]))
        self.last = nn.Sequential(conv_block(widths[0], widths[0]), nn.Conv1d(widths[0], actions, 1))

    def forward(self, sample, timestep, global_cond):
        condition = torch.cat((self.step(timestep), global_cond), dim=-1)
        x, kept = sample.permute(0, 2, 1), []
        for first, second, shrink in self.down:
            x = second(first(x, condition), condition)
            kept.append(x)
            x = shrink(x)
        for block in self.middle:
            x = block(x, condition)
        for first, second, grow in self.up:
            x = grow(second(first(torch.cat((x, kept.pop()), dim=1), condition), condition))
        return self.last(x).permute(0, 2, 1)
