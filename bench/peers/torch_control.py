"""pytorch_mppi beside the control suite: rows of `torch_rows.py`, one command of MPPI on Pendulum-v1 on the CPU, eager or after its own `compile`,
whichever is faster."""

import math

import torch
from pytorch_mppi import MPPI

from protocol import fastest, row

WIDTH = 32
NETWORK = torch.nn.Sequential(torch.nn.Linear(4, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 2))
SCALE = torch.tensor([0.1, 0.5])


def twin(state, action):
    angle, speed = state[:, :1], state[:, 1:]
    x = torch.cat([torch.sin(angle), torch.cos(angle), speed / 8, action / 2], 1)
    return state + SCALE * NETWORK(x)


def plant(state, action):
    angle, speed = state[:, :1], state[:, 1:]
    speed = torch.clamp(speed + (15 * torch.sin(angle) + 3 * action) * 0.05, -8, 8)
    return torch.cat([angle + speed * 0.05, speed], 1)


def charge(state, action):
    angle = state[:, 0]
    angle = angle - 2 * math.pi * torch.floor(angle / (2 * math.pi) + 0.5)
    return angle**2 + 0.1 * state[:, 1] ** 2 + 0.001 * action[:, 0] ** 2


def command(dynamics, shape, is_compiled):
    samples, horizon = shape.sizes
    limit = torch.tensor([2.0])
    sampler = MPPI(dynamics, charge, 2, torch.eye(1), num_samples=samples, horizon=horizon, lambda_=1.0, u_min=-limit, u_max=limit, device="cpu")
    if is_compiled:
        sampler.compile()
    state = torch.tensor([3.0, 0.5])
    return lambda: float(sampler.command(state)[0])


def make(dynamics):
    return lambda shape: fastest(shape, {"eager calls": lambda: command(dynamics, shape, False), "MPPI.compile": lambda: command(dynamics, shape, True)})


row("twin", 2, "MPPI.command", types=["float32"])(make(twin))
row("plant", 2, "MPPI.command", types=["float32"])(make(plant))
