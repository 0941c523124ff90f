"""NumExpr beside the core suite and the suite of programs: elementwise expressions in one pass over blocks, on one thread or on all, whichever is
faster."""

import numexpr
import numpy as np

from protocol import Shape, fastest, row, serve

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

        def on(count):
            def call():
                if numexpr.get_num_threads() != count:
                    numexpr.set_num_threads(count)
                numexpr.evaluate(source, operands, out=y)

            return call

        return fastest(shape, {f"threads: {count}": lambda count=count: on(count) for count in sorted({1, Shape.all_threads})})


for op, text in EXPRESSIONS.items():
    expression(op, text)


def threads(count):
    numexpr.set_num_threads(count)
    return count


# PyPI's wheel goes without Intel's library of vector functions: exp, tanh and the like are the C library's.
serve(lambda _device: {"numexpr": f"{numexpr.__version__} {'with' if numexpr.use_vml else 'without'} VML", "numpy": np.__version__}, threads)
