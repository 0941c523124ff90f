"""PyTorch beside the core suite: on the CPU, or on the first CUDA device beside `cuda:0`. Eager calls; where torch.compile may gain (functions, moves,
products with a vector, what takes several calls), whichever is faster."""

import itertools
import math
from importlib.metadata import version

import torch
import torch._dynamo.config
import torch.nn.functional as F

import torch_convolution  # noqa: F401, registers its rows
import torch_control  # noqa: F401, registers its rows
import torch_infer  # noqa: F401, registers its rows
from protocol import fastest, row, serve

torch.set_grad_enabled(False)
torch.manual_seed(1)
# Products in float32 as on the other side, not in TF32.
torch.set_float32_matmul_precision("highest")
# Rows share functions: without a higher limit, torch.compile silently runs the ninth of them eagerly.
torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 10_000
torch._dynamo.config.fail_on_recompile_limit_hit = True

DEVICE = torch.device("cpu")


def uniform(shape, *sizes):
    return 1 - torch.rand(sizes or shape.sizes, dtype=getattr(torch, shape.dtype), device=DEVICE)


def bits(*sizes):
    return torch.randint(0, 2, sizes, dtype=torch.int32, device=DEVICE)


def eager(function, *operands):
    return lambda: lambda: function(*operands)


def compiled(function, *operands):
    def make():
        call = torch.compile(function, dynamic=False)
        return lambda: call(*operands)

    return make


def composed(shape, function, *operands):
    """A function of several calls, as it is or compiled."""
    return fastest(shape, {"eager calls": eager(function, *operands), "torch.compile": compiled(function, *operands)})


@row("fill", 1, "y.fill_(7)", types=["float32"])
def fill(shape):
    y = bits(*shape.sizes)
    return lambda: y.fill_(7)


@row("copy", 1, "y.copy_(x)", types=["float32"])
def copy(shape):
    x, y = bits(*shape.sizes), bits(*shape.sizes)
    return lambda: y.copy_(x)


def unary(op, function, text, **options):
    @row(op, 1, text)
    def make(shape):
        x, y = uniform(shape), uniform(shape)
        return fastest(shape, {"eager call": lambda: lambda: function(x, out=y, **options), "torch.compile": compiled(lambda x: function(x, **options), x)})


for op in ["abs", "neg", "sqrt", "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sigmoid", "erf"]:
    unary(op, getattr(torch, op), f"torch.{op}(x, out=y)")
unary("gelu", torch._C._nn.gelu, 'gelu(x, approximate="tanh", out=y)', approximate="tanh")
unary("gelu_erf", torch._C._nn.gelu, "gelu(x, out=y)")
unary("silu", torch._C._nn.silu, "silu(x, out=y)")
unary("relu", torch.clamp_min, "torch.clamp_min(x, 0, out=y)", min=0)


def binary(op, function, text):
    @row(op, 1, text)
    def make(shape):
        a, b, y = uniform(shape), uniform(shape), uniform(shape)
        return lambda: function(a, b, y)


for op, name in [("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "div"), ("min", "minimum"), ("max", "maximum")]:
    binary(op, lambda a, b, y, function=getattr(torch, name): function(a, b, out=y), f"torch.{name}(a, b, out=y)")
ATEN = torch.ops.aten
binary("tanh_grad", lambda a, b, y: ATEN.tanh_backward.grad_input(b, a, grad_input=y), "tanh_backward(dy, y, grad_input=dx)")
binary("sigmoid_grad", lambda a, b, y: ATEN.sigmoid_backward.grad_input(b, a, grad_input=y), "sigmoid_backward(dy, y, grad_input=dx)")
binary("relu_grad", lambda a, b, y: ATEN.threshold_backward.grad_input(b, a, 0, grad_input=y), "threshold_backward(dy, y, 0, grad_input=dx)")


def chain6_in_place(a, b, y):
    torch.mul(a, b, out=y)
    y.add_(a).sub_(b).abs_().mul_(a).sqrt_()


@row("chain6", 1, "sqrt(abs((a * b + a) - b) * a), six calls in place")
def chain6(shape):
    return composed(shape, chain6_in_place, uniform(shape), uniform(shape), uniform(shape))


def reduction(op, function, text):
    @row(op, 2, text)
    def make(shape):
        x = uniform(shape)
        return lambda: function(x)


reduction("sum", lambda x: torch.sum(x, 1), "torch.sum(x, 1)")
reduction("mean", lambda x: torch.mean(x, 1), "torch.mean(x, 1)")
reduction("sum_columns", lambda x: torch.sum(x, 0), "torch.sum(x, 0)")
reduction("min", lambda x: torch.amin(x, 1), "torch.amin(x, 1)")
reduction("max", lambda x: torch.amax(x, 1), "torch.amax(x, 1)")


def argmax_of_parts(x):
    parts = x.view(-1, 4096)
    part = parts.amax(1).argmax()
    return part * 4096 + parts[part].argmax()


@row("argmax", 2, "torch.argmax")
def argmax(shape):
    # One row, as the suite has it, on one thread; its parts are shared out.
    assert shape.sizes[0] == 1
    x = uniform(shape)
    return fastest(shape, {"argmax(x, 1)": eager(torch.argmax, x, 1), "argmax of the maxima of each 4,096, then of that part": eager(argmax_of_parts, x)})


def var_mean(x):
    return torch.var_mean(x, 1, correction=0)


def mean_of_squares(x):
    mean = x.mean(1, keepdim=True)
    return (x - mean).square().mean(1), mean


@row("variance", 2, "mean and biased variance")
def variance(shape):
    x = uniform(shape)
    return fastest(shape, {
        "var_mean": eager(var_mean, x),
        "torch.compile of var_mean": compiled(var_mean, x),
        "torch.compile of the mean of (x - mean)²": compiled(mean_of_squares, x),
    })


@row("softmax", 2, "torch.softmax(x, 1, out=y)")
def softmax(shape):
    x, y = uniform(shape), uniform(shape)
    return lambda: torch.softmax(x, 1, out=y)


@row("layer_norm", 2, "layer_norm(x, [cols], weight, bias)")
def layer_norm(shape):
    cols = shape.sizes[1]
    x, weight, bias = uniform(shape), uniform(shape, cols), uniform(shape, cols)
    return lambda: F.layer_norm(x, [cols], weight, bias)


@row("rms_norm", 2, "rms_norm(x, [cols], weight)")
def rms_norm(shape):
    cols = shape.sizes[1]
    return composed(shape, lambda x, weight: F.rms_norm(x, [cols], weight, eps=1e-5), uniform(shape), uniform(shape, cols))


@row("exclusive_scan", 1, "torch.cumsum(x, 0, out=y)", types=["float32"])
def scan(shape):
    x, y = bits(*shape.sizes), bits(*shape.sizes)
    return lambda: torch.cumsum(x, 0, dtype=torch.int32, out=y)


@row("compact", 1, "torch.nonzero(x)", types=["float32"])
def compact(shape):
    x = bits(*shape.sizes)
    return lambda: torch.nonzero(x)


@row("top_k", 2, "torch.topk", tail="k64", types=["float32"])
def top_k(shape):
    # One row, as the suite has it. The 64 greatest lie in the 64 parts with the greatest maxima.
    assert shape.sizes[0] == 1
    x = uniform(shape)
    parts = x.view(-1, 1024)

    def by_parts(parts):
        best_parts = torch.topk(parts.amax(1), 64).indices
        best, found = torch.topk(parts[best_parts].view(-1), 64)
        return best, best_parts[found // 1024] * 1024 + found % 1024

    return fastest(shape, {"topk(x, 64, 1)": eager(torch.topk, x, 64, 1), "topk of the maxima of each 1,024, then of their parts": eager(by_parts, parts)})


def ended(multiply, multiply_add, tail, a, b, bias, residual, **options):
    """A product with one of its ends: a bias under tanh, a residual, both."""
    if not tail:
        return multiply(a, b, **options)
    if tail == "residual":
        return multiply_add(residual, a, b, **options)
    if tail == "bias_tanh":
        return multiply_add(bias, a, b, **options).tanh_()
    return multiply_add(bias, a, b, **options).tanh_().add_(residual)


def product(op, dimensions, call, tail, operands, multiply, multiply_add):
    @row(op, dimensions, call, tail)
    def make(shape):
        y, *given = operands(shape)
        return fastest(shape, {
            "eager calls": lambda: lambda: ended(multiply, multiply_add, tail, *given, out=y),
            "torch.compile": compiled(lambda *given: ended(multiply, multiply_add, tail, *given), *given),
        })


def gemm_operands(shape):
    m, k, n = shape.sizes
    return uniform(shape, m, n), uniform(shape, m, k), uniform(shape, k, n), uniform(shape, n), uniform(shape, m, n)


def matvec_operands(shape):
    m, n = shape.sizes
    return uniform(shape, m), uniform(shape, m, n), uniform(shape, n), uniform(shape, m), uniform(shape, m)


for tail, start, rest in [("", "", ""), ("residual", "add", ""), ("bias_tanh", "add", ".tanh_()"), ("bias_tanh_residual", "add", ".tanh_().add_(residual)")]:
    first = {"": "", "residual": "residual, "}.get(tail, "bias, ")
    product("gemm", 3, f"torch.{start}mm({first}a, b, out=y){rest}", tail, gemm_operands, torch.mm, torch.addmm)
    product("matvec", 2, f"torch.{start}mv({first}a, x, out=y){rest}", tail, matvec_operands, torch.mv, torch.addmv)


@row("gemm_batched", 4, "torch.bmm(a, b, out=y)")
def gemm_batched(shape):
    batch, m, k, n = shape.sizes
    a, b, y = uniform(shape, batch, m, k), uniform(shape, batch, k, n), uniform(shape, batch, m, n)
    return lambda: torch.bmm(a, b, out=y)


@row("transpose", 2, "y.copy_(x.T)", types=["float32"])
def transpose(shape):
    x, y = uniform(shape), uniform(shape, *reversed(shape.sizes))
    return fastest(shape, {"eager call": lambda: lambda: y.copy_(x.T), "torch.compile": compiled(lambda x: x.T.contiguous(), x)})


def shifted_sum(x):
    """The 27-point stencil on a field padded by one: neighbours by their distance in steps along the axes, with a weight for each distance."""
    inner = [slice(1, size - 1) for size in x.shape[:3]]
    total = 0
    for distance, weight in enumerate((0.4, 0.06, 0.02, 0.005)):
        steps = [step for step in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, step)) == distance]
        total = total + weight * sum(x[tuple(slice(at.start + by, at.stop + by) for at, by in zip(inner, step))] for step in steps)
    return total


@row("stencil27", 4, "on a field padded by one", types=["float32"])
def stencil_27(shape):
    planes, rows, columns, channels = shape.sizes
    x = uniform(shape, planes + 2, rows + 2, columns + 2, channels)
    # Last in memory and recognised as such: the batch's stride is the whole field.
    batch = x.permute(3, 0, 1, 2)[None].contiguous(memory_format=torch.channels_last_3d)
    weight = uniform(shape, channels, 1, 3, 3, 3)
    return fastest(shape, {
        "conv3d by channel, channels last": lambda: lambda: F.conv3d(batch, weight, groups=channels),
        "torch.compile of sums of slices": compiled(shifted_sum, x),
    })


@row("uniform", 1, "y.uniform_()", types=["float32"])
def random_uniform(shape):
    y = uniform(shape)
    return lambda: y.uniform_()


@row("normal", 1, "y.normal_()", types=["float32"])
def normal(shape):
    y = uniform(shape)
    return lambda: y.normal_()


@row("adamw", 1, "optim.AdamW(fused=True).step()", types=["float32"])
def adamw(shape):
    parameter = torch.nn.Parameter(uniform(shape))
    parameter.grad = uniform(shape)
    optimizer = torch.optim.AdamW([parameter], fused=True)
    return optimizer.step


def pad_by_cat(x):
    for axis in range(3):
        x = torch.cat([x.narrow(axis, 0, 1), x, x.narrow(axis, x.shape[axis] - 1, 1)], axis)
    return x


def pad_by_pad(x):
    """The same: slower in eager calls, but torch.compile makes it a part of what reads it."""
    return F.pad(x.permute(3, 0, 1, 2)[None], (1,) * 6, mode="replicate")[0].permute(1, 2, 3, 0)


def field_step(x, noise, wave, pad):
    """A step of docs/field.md: content, temporal and dynamics channels, and the sums that the motors need. No imprint or error."""
    channels = x.shape[3]
    content, evolving = 3 * channels // 4 - 16, channels - 16
    d = x[..., evolving:]
    decay = 0.999 * torch.sigmoid(d[..., :4])
    diffusion = 0.05 + 0.05 * torch.tanh(d[..., 4:7])
    coupling = 0.1 * torch.sigmoid(d[..., 12:13]) * torch.sigmoid(d[..., 13:14]) * torch.tanh(d[..., 8:12].mean(-1, keepdim=True)) / 26
    here = x[..., :evolving]
    p = pad(here)
    spread = diffusion[..., 0:1] * (p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] - 2 * here)
    spread = spread + diffusion[..., 1:2] * (p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1] - 2 * here)
    spread = spread + diffusion[..., 2:3] * (p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] - 2 * here)
    box = p[..., :content]
    for axis in range(3):
        size = box.shape[axis] - 2
        box = box.narrow(axis, 0, size) + box.narrow(axis, 1, size) + box.narrow(axis, 2, size)
    old = here[..., :content]
    kept = decay.repeat(1, 1, 1, content // 4) * (old + spread[..., :content] + coupling * (box - old))
    shifted = 0.85 * (here[..., content:] + spread[..., content:]) + 0.15 * here[..., content - 1 : -1]
    next_here = torch.cat([kept, decay.mean(-1, keepdim=True) * shifted], -1)
    next_here = 2 * torch.tanh((next_here + 0.5 * (0.001 * noise + wave[..., None])) / 2)
    quiet = (old.abs() < 0.1).to(x.dtype).mean(-1, keepdim=True)
    variance = old.var(-1, correction=0, keepdim=True)
    zero = torch.zeros_like(quiet)
    targets = torch.cat([zero + 1.99, 0.01 * variance, 0.005 * quiet, zero - 0.0025], -1).repeat_interleave(4, -1)
    next_d = torch.clamp(d + 0.05 * (targets - d), -5, 5)
    new = next_here[..., :content]
    sums = torch.stack([new.sum(), new.abs().sum(), (new * new).sum(), new[-1].sum() - new[0].sum(), new[:, -1].sum() - new[:, 0].sum(), new[:, :, -1].sum() - new[:, :, 0].sum()])
    return torch.cat([next_here, next_d], -1), sums


def shifted(h, bits):
    return (h >> bits) & ((1 << (32 - bits)) - 1)


def byte_noise(shape, key):
    """The noise of docs/field.md: the sum of the four bytes of an element's hash, less its mean, over its deviation."""
    h = torch.arange(math.prod(shape), dtype=torch.int32, device=DEVICE) * (2654435761 - 2**32) + key[0]
    h = (h ^ shifted(h, 16)) * (2246822507 - 2**32) ^ key[1]
    h = (h ^ shifted(h, 13)) * (3266489909 - 2**32)
    h = h ^ shifted(h, 16)
    pairs = (h & 0x00FF00FF) + (shifted(h, 8) & 0x00FF00FF)
    return ((pairs & 0xFFFF) + (pairs >> 16) - 510).float().reshape(shape) / math.sqrt(21845)


def field(shape):
    """A field, and a wave over its cells."""
    x = 0.2 * torch.randn(shape.sizes, device=DEVICE)
    x[..., -16:-12] += 2
    return x, 0.001 * torch.randn(shape.sizes[:3], device=DEVICE), [*shape.sizes[:3], shape.sizes[3] - 16]


@row("cycle", 4, "the step of docs/field.md on whole arrays with normal noise, without imprint, sensors and placement", types=["float32"])
def cycle(shape):
    x, wave, evolving = field(shape)
    noise = torch.empty(evolving, device=DEVICE)

    def call():
        nonlocal x
        x, _ = field_step(x, noise.normal_(), wave, pad_by_cat)

    return call


@row("cycle", 4, "the same by torch.compile with the noise of docs/field.md", tail="compiled", types=["float32"])
def cycle_compiled(shape):
    x, wave, evolving = field(shape)
    key = torch.tensor([1, 2], dtype=torch.int32, device=DEVICE)
    step = torch.compile(lambda x, key: field_step(x, byte_noise(evolving, key), wave, pad_by_pad), dynamic=False)

    def call():
        nonlocal x
        key.add_(1)
        x, _ = step(x, key)

    return call


def versions(device):
    global DEVICE
    if device == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("sees no CUDA device")
        DEVICE = torch.device("cuda:0")
        return {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(0)}
    blas = "mkl" if torch.backends.mkl.is_available() else "other"
    return {"torch": torch.__version__, "blas": blas, "pytorch_mppi": version("pytorch-mppi")}


def threads(count):
    torch.set_num_threads(count)
    return torch.get_num_threads()


def settle(call):
    if DEVICE.type == "cpu":
        return call

    def settled():
        call()
        torch.cuda.synchronize()

    return settled


serve(versions, threads, devices=("cpu", "cuda"), settle=settle)
