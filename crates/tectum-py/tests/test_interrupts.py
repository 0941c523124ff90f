"""Signals reach Python soon, whatever runs; no call waits for itself; each object has one lock."""

import signal
import threading
import time

import numpy as np
import pytest
from attempts import first_good

import tectum as tt

WGSL = """
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.count { y[id.x] = 1.0; } }"""


class Timeout(Exception):
    pass


class Alarm:
    """A handler of SIGALRM that raises; `delay` is the time from the signal to the end of the block."""

    def __init__(self, seconds, action=None):
        self.seconds, self.action = seconds, action

    def handle(self, number, frame):
        if self.action:
            self.action()
        raise Timeout

    def __enter__(self):
        self.before = signal.signal(signal.SIGALRM, self.handle)
        self.due = time.monotonic() + self.seconds
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, kind, error, trace):
        self.delay = time.monotonic() - self.due
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


def interrupted(work):
    """Seconds from a signal to the exception of its handler."""
    with pytest.raises(Timeout), Alarm(0.05) as alarm:
        work()
        raise AssertionError("the work ended before the signal, or the exception is lost")
    return alarm.delay


def launching(twin):
    """A plan with one launch, which calls a function on the CPU."""
    kernel = tt.Kernel("ones", WGSL, [("y", "write", "float32")], [("count", "uint32")], twin)
    plan = tt.Plan("ones")
    plan.launch(kernel, [plan.output("y", 4)], count=4)
    return plan.compile()


def sleeping(seconds):
    """A plan whose launch takes some seconds."""

    def twin(y, count):
        time.sleep(seconds)
        y[:] = 1.0

    return launching(twin)


def layers(size, count):
    graph = tt.Graph()
    node = graph.input("x", (size, size))
    for layer in range(count):
        node = graph.dense(f"layer{layer}", node, size, "tanh")
    graph.output("y", node)
    return graph, (node * node).mean()


def test_a_signal_ends_a_launch_and_the_object_is_free_after_it():
    run = sleeping(1.5)
    assert interrupted(run.run) < 1.3
    # The launch ends without its caller, who gets nothing of it; the next call waits for it.
    start = time.monotonic()
    assert run.run()["y"].tolist() == [1.0] * 4
    assert time.monotonic() - start > 1.4
    assert run.receipt.runs == 1


def test_a_signal_ends_the_function_of_a_launch():
    began, ended = [], []

    def twin(y, count):
        began.append(True)
        try:
            while True:
                pass
        finally:
            ended.append(True)

    run = launching(twin)
    for _ in range(2):
        assert interrupted(run.run) < 1.0
    # It does not begin after the signal, and what began ends.
    time.sleep(0.2)
    limit = time.monotonic() + 10
    while len(ended) < len(began) and time.monotonic() < limit:
        time.sleep(0.01)
    assert len(ended) == len(began) and run.receipt.runs == 0


def test_a_signal_ends_the_wait_for_another_thread():
    run = sleeping(1.5)
    thread = threading.Thread(target=run.run)
    thread.start()
    time.sleep(0.02)
    assert interrupted(run.run) < 1.3
    thread.join()
    assert run.receipt.runs == 1, "the call that waited did not run"


def test_signals_reach_calls_of_every_kind(tmp_path):
    """Handlers of signals raise in calls that cannot be broken off, and in the log records of calls."""
    encoder = tt.Encoder(tt.sample("sample-encoder", tmp_path))
    decoder = tt.Decoder(tt.sample("sample-decoder", tmp_path), context=512)
    graph, loss = layers(1024, 6)
    deep, deep_loss = layers(8, 1200)
    model, trainer = graph.compile(), graph.trainer(loss)
    trainer.initialize(1)
    model.set_parameters(trainer.parameters)
    x, text, deep_text = np.zeros((1024, 1024), np.float32), "the small cat " * 200_000, str(deep)
    works = {
        "field": lambda: tt.Field(2, 1, shape=(64, 64, 64, 128)),
        "embed": lambda: encoder.embed(["the cat is small"] * 100_000),
        "prefill": lambda: decoder.generate([1] * 500, max_new_tokens=1),
        "encode": lambda: decoder.encode(text),
        "initialize": lambda: trainer.initialize(2),
        "step": lambda: trainer.step(x=x),
        "call": lambda: model(x=x),
        "trainer": lambda: deep.trainer(deep_loss),
        "parse": lambda: tt.Graph.parse(deep_text),
    }

    def repeated(work):
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            work()

    def seconds(work):
        start = time.monotonic()
        work()
        return time.monotonic() - start

    # A loop of Python and products of NumPy show how busy the machine is.
    python = interrupted(lambda: repeated(lambda: None))
    durations = [seconds(lambda: x @ x) for _ in range(20)]
    limit = max(0.1 * max(durations) / min(durations), 5 * python) + 0.1
    for name, work in works.items():
        delay = first_good(lambda: interrupted(lambda: repeated(work)), lambda delay: delay < limit)
        assert delay < limit, (name, delay, limit)


def test_the_interpreter_runs_while_a_call_computes(tmp_path):
    """No call holds the interpreter's lock for long."""
    decoder = tt.Decoder(tt.sample("sample-decoder", tmp_path), context=64)
    deep, _ = layers(8, 600)
    graph, loss = layers(1024, 4)
    trainer = graph.trainer(loss)
    text, deep_text = "the small cat " * 200_000, str(deep)

    def longest_gap(work):
        """The longest gap between steps of another thread while a call runs, and the call's duration."""
        gap, stop = 0.0, threading.Event()

        def watch():
            nonlocal gap
            last = time.monotonic()
            while not stop.is_set():
                time.sleep(0.001)
                now = time.monotonic()
                gap, last = max(gap, now - last), now

        thread = threading.Thread(target=watch)
        thread.start()
        start = time.monotonic()
        work()
        duration = time.monotonic() - start
        stop.set()
        thread.join()
        return gap, duration

    def is_short(measured):
        gap, duration = measured
        return gap < max(0.25, 0.5 * duration)

    for work in (lambda: decoder.encode(text), lambda: tt.Graph.parse(deep_text), lambda: trainer.initialize(1)):
        measured = first_good(lambda: longest_gap(work), is_short)
        assert is_short(measured), measured


class Lazy:
    """An array, or a number, whose conversion calls back."""

    def __init__(self, values, look):
        self.values, self.look = values, look

    def __array__(self, dtype=None, copy=None):
        self.look()
        return self.values

    def __float__(self):
        self.look()
        return float(self.values.ravel()[0])


def test_conversions_of_arguments_may_use_the_object(models):
    graph = tt.Graph()
    x, label = graph.input("x", (4, 2)), graph.indices("label", 4)
    y = graph.dense("layer", x, 3)
    graph.output("y", y)
    model, trainer = graph.compile(), graph.trainer(graph.cross_entropy(y, label))
    model.set_parameters({"layer.weight": np.zeros((2, 3)), "layer.bias": np.zeros((1, 3))})
    field, network, batch = tt.Field(2, 1, shape=(4, 4, 4, 32)), tt.Network(models / "cart_pole.onnx"), tt.BodyBatch("cart_pole", 2)
    body, brain = tt.body("pendulum"), tt.brain("lqr", "pendulum")
    plan = tt.Plan()
    plan.copy(plan.input("x", 2), plan.output("y", 2))
    state = plan.state("state", 2)
    plan.copy(state, plan.output("z", 2))
    run = plan.compile()
    neurons = tt.Neurons()
    neurons.add(2)
    spiking = tt.SpikingNetwork(neurons, [0], [1], [1])
    program = tt.program("buffer x: i32 read_write\nldg.i32 r0, [x]\nstg.i32 [x], r0")
    (name, shape), *_ = network.inputs
    floats, ones = np.zeros((4, 2), np.float32), np.ones(2, np.float32)
    looked = []

    def lazy(values, look):
        return Lazy(values, lambda: looked.append(look()))

    works = [
        lambda: trainer.step(x=lazy(floats, lambda: trainer.steps), label=lazy(np.zeros(4, int), lambda: repr(trainer))),
        lambda: trainer.set_parameters({"layer.bias": lazy(np.zeros((1, 3)), lambda: trainer.parameters)}),
        lambda: model(x=lazy(floats, lambda: model.parameters)),
        lambda: model.set_parameters({"layer.bias": lazy(np.zeros((1, 3)), lambda: model.parameters)}),
        lambda: field.set_coefficients(noise=lazy(np.full(1, 0.1), lambda: field.cycle)),
        lambda: field.tick(lazy(ones, lambda: repr(field))),
        lambda: network.run({name: lazy(np.zeros(shape), lambda: network.run({name: np.zeros(shape)}))}),
        lambda: batch.step(lazy(np.zeros((2, 1)), lambda: batch.states)),
        lambda: body.step(lazy(np.zeros(1), body.observe)),
        lambda: brain.tick(lazy(np.zeros(2), brain.reset)),
        lambda: run.run(x=lazy(ones, lambda: run.read_state("state"))),
        lambda: run.write_state("state", lazy(ones, lambda: run.read_state("state"))),
        lambda: spiking.inject([0, 1], lazy(ones, lambda: spiking.counts)),
        lambda: program.run(x=lazy(np.zeros(2, np.int32), lambda: program.receipt)),
        lambda: graph.constant(lazy(ones, lambda: repr(graph))),
    ]
    for work in works:
        work()
    assert len(looked) == len(works) + 1


def test_arrays_that_change_during_a_call_are_not_read():
    """A conversion of the second argument changes the type of the first in place."""
    plan = tt.Plan()
    plan.copy(plan.input("a", 1000), plan.output("c", 1000))
    plan.copy(plan.input("b", 1000), plan.output("d", 1000))
    run, first = plan.compile(), np.zeros(1000, np.float32)

    def change():
        first.dtype = np.uint8

    with pytest.raises(ValueError, match="a: the array was changed during the call"):
        run.run(a=first, b=Lazy(np.zeros(1000, np.float32), change))


def test_handlers_of_signals_may_look_at_a_busy_object():
    """They are refused or wait, but never for ever: also while arguments are converted."""
    graph = tt.Graph()
    x = graph.input("x", (64, 32))
    y = graph.dense("layer", x, 1)
    trainer = graph.trainer((y * y).mean())
    trainer.initialize(1)
    seen, refused = [], []

    def handler(number, frame):
        try:
            seen.append(trainer.steps)
        except RuntimeError as error:
            refused.append(str(error))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            trainer.step(x=Lazy(np.zeros((64, 32), np.float32), lambda: None))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and all("busy" in text for text in refused)


def test_a_handler_that_uses_the_object_of_its_own_launch_is_refused():
    run = sleeping(0.3)
    with pytest.raises(RuntimeError, match="busy with a call"), Alarm(0.05, run.run):
        run.run()
