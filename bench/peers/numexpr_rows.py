"""NumExpr beside the core suite and the suite of programs: elementwise expressions in one pass over blocks, on all threads."""

import numexpr
import numpy as np

from protocol import row, serve

EXPRESSIONS = {
    "add": "a + b",
    "vector_add": "a + b",
    "sub": "a - b",
    "mul": "a * b",
    "div": "a / b",
    "abs": "abs(a)",
    "neg": "-a",
    "sqrt": "sqrt(a)",
    "exp": "exp(a)",
    "log": "log(a)",
    "sin": "sin(a)",
    "cos": "cos(a)",
    "tanh": "tanh(a)",
    "sigmoid": "1 / (1 + exp(-a))",
    "silu": "a / (1 + exp(-a))",
    "relu": "where(a > 0, a, 0)",
    "tanh_grad": "b * (1 - a * a)",
    "sigmoid_grad": "b * (a * (1 - a))",
    "relu_grad": "where(a > 0, b, 0)",
    "chain6": "sqrt(abs((a * b + a) - b) * a)",
}


def expression(op, text):
    # Constants of the operands' own type: NumExpr would compute in float64 otherwise.
    names = {"1": "one", "0": "zero"}
    source = "".join(names.get(letter, letter) for letter in text)

    @row(op, 1, f'numexpr.evaluate("{text}", out=y)')
    def make(shape):
        random = np.random.default_rng(1)
        a, b, y = (1 - random.random(shape.sizes, dtype=shape.dtype) for _ in range(3))
        operands = {"a": a, "b": b, "one": np.array(1, shape.dtype), "zero": np.array(0, shape.dtype)}
        return lambda: numexpr.evaluate(source, operands, out=y)


for op, text in EXPRESSIONS.items():
    expression(op, text)


def threads(count):
    numexpr.set_num_threads(count)
    return count


serve(lambda _device: {"numexpr": numexpr.__version__, "numpy": np.__version__}, threads)
