"""Halide beside the suite of programs: expressions compiled for this processor, vectorised, on all threads or on one."""

from importlib.metadata import version

import halide as hl
import numpy as np

from protocol import row, serve

TARGET = hl.get_jit_target_from_environment()
LANES = TARGET.natural_vector_size(hl.Float(32))
# Elements of a task, where there is more than one thread.
TASK = 32_768


def sigmoid_tanh(v):
    # Halide's own tanh calls the C library for each element; this form is vectorised.
    tanh = 1 - 2 / (hl.exp(2 * v[0]) + 1)
    return tanh / (1 + hl.exp(-(1.5 * v[0] + 0.25)))


def chain6(v):
    return hl.sqrt(hl.abs((v[0] * v[1] + v[0]) - v[1]) * v[0])


def expression(op, function, inputs, text, one_thread=False):
    schedule = f"vectorize(x, {LANES})" if one_thread else f"vectorize(x, {LANES}).parallel(x, {TASK})"

    @row(op, 1, f"Func({text}).{schedule}.realize(y)", tail="one_thread" if one_thread else "", types=["float32"])
    def make(shape):
        (n,) = shape.sizes
        random = np.random.default_rng(1)
        arrays = [1 - random.random(n, dtype=np.float32) for _ in range(inputs + 1)]
        params = [hl.ImageParam(hl.Float(32), 1) for _ in range(inputs)]
        x, task, place = hl.Var("x"), hl.Var("task"), hl.Var("place")
        func = hl.Func(op)
        func[x] = function([param[x] for param in params])
        if one_thread:
            func.vectorize(x, LANES)
        else:
            func.split(x, task, place, TASK).vectorize(place, LANES).parallel(task)
        *buffers, y = [hl.Buffer(array) for array in arrays]
        for param, buffer in zip(params, buffers):
            param.set(buffer)
        func.compile_jit(TARGET)
        # Halide keeps none of these alive.
        held = (arrays, buffers, params)
        return lambda held=held: func.realize(y)


expression("sigmoid_tanh", sigmoid_tanh, 1, "(1 - 2/(exp(2x) + 1))/(1 + exp(-(1.5x + 0.25)))", one_thread=True)
expression("chain6", chain6, 2, "sqrt(abs((a*b + a) - b)*a)")
expression("vector_add", lambda v: v[0] + v[1], 2, "a + b")


serve(lambda _device: {"halide": version("halide"), "numpy": np.__version__}, lambda threads: threads)
