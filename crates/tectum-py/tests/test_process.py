"""Signals, forks, threads, logs and memory."""

import gc
import logging
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from attempts import first_good

import tectum as tt


def busy_network(count=20_000):
    """Neurons that all fire in every burst."""
    neurons = tt.Neurons()
    neurons.add(count)
    random = np.random.default_rng(1)
    source, target = random.integers(0, count, (2, 20 * count))
    return tt.SpikingNetwork(neurons, source, target, 255, constant_inputs=[(neuron, 5.0) for neuron in range(count)])


def interrupted(work):
    """Seconds from Ctrl-C to the exception."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sent = []

    def press():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        return time.monotonic() - sent[0]
    finally:
        thread.join()


def test_ctrl_c_ends_work_soon(tmp_path):
    decoder = tt.Decoder(tt.sample("sample-decoder", tmp_path), context=100_000)
    network = busy_network()
    graph = tt.Graph()
    x = graph.input("x", (256, 64))
    hidden = graph.dense("hidden", x, 256, "tanh")
    trainer = graph.trainer((hidden * hidden).mean())
    trainer.initialize(1)

    def generate():
        while True:
            decoder.generate("the small cat", max_new_tokens=200, ignore_end=True)

    works = {
        "bursts": lambda: network.run(10_000_000),
        "tokens": generate,
        "steps": lambda: trainer.fit(epochs=100_000, x=np.zeros((1024, 64), np.float32)),
        "periods": lambda: tt.run("cart_pole", clock="sim", seconds=1e6),
        "training": lambda: tt.brain("mppi", "cart_pole"),
    }
    def spin():
        while True:
            pass

    # Next to a loop of Python: other processes may take the processor.
    limit = max(0.1, 5 * np.median([interrupted(spin) for _ in range(3)]))
    for name, work in works.items():
        delay = first_good(lambda: interrupted(work), lambda delay: delay < limit)
        assert delay < limit, (name, delay, limit)
    assert network.counts.bursts > 0


def test_a_signal_handler_that_uses_the_busy_object_is_refused():
    network = busy_network(1000)

    def handler(number, frame):
        network.counts

    signal.signal(signal.SIGINT, handler)
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(RuntimeError, match="busy with a call"):
            network.run(10_000_000)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert network.counts.bursts > 0


def in_fork(device, answers):
    try:
        tt.program("buffer x: i32 read_write\nldg.i32 r0, [x]\nstg.i32 [x], r0").run(x=np.zeros(4, np.int32), device=device)
        answers.put("ran")
    except RuntimeError as error:
        answers.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_refused_clearly():
    device = tt.Device("cpu")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=in_fork, args=(device, answers))
    child.start()
    child.join(60)
    assert child.exitcode == 0 and "spawn" in answers.get()


def test_logs_go_to_logging(caplog, tmp_path):
    with caplog.at_level(logging.DEBUG, "tectum"):
        tt.Device("cpu", threads=1)
        plan = tt.Plan("logged")
        x, y = plan.input("x", 2), plan.output("y", 2)
        plan.unary("relu", x, y)
        plan.compile()
    records = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert any(name.startswith("tectum.") and level == "INFO" and "device opened" in text and "cpu" in text for name, level, text in records), records
    assert any(level == "DEBUG" and "plan compiled" in text and "logged" in text for _, level, text in records), records


def resident_kb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() // 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not report the memory of a process")
def test_calls_leave_memory_flat(tmp_path):
    lqr = tt.brain("lqr", "pendulum")
    body = tt.body("cart_pole")
    neurons = tt.Neurons()
    neurons.add(2)
    network = tt.SpikingNetwork(neurons, [0], [1], [1])
    program = tt.program("buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nstg.i32 [y], r0")
    plan = tt.Plan()
    x, y = plan.input("x", 1000), plan.output("y", 1000)
    plan.unary("relu", x, y)
    run = plan.compile()
    values, numbers = np.zeros(1000, np.float32), np.zeros(100, np.int32)

    def call():
        lqr.tick([0.1, 0.2])
        body.step([1.0])
        body.reset(1)
        network.inject(0, 1.0)
        network.run(1)
        run.run(x=values)
        program.run(x=numbers)
        with pytest.raises(ValueError):
            lqr.tick([0.1])

    def growth_kb(count):
        gc.collect()
        before = resident_kb()
        for _ in range(count):
            call()
        gc.collect()
        return resident_kb() - before

    growth_kb(1000)
    # What threads of earlier tests free or take is not in every measurement, a leak is.
    assert first_good(lambda: growth_kb(10_000), lambda growth: growth < 1024) < 1024


def test_ctrl_c_ends_a_run_whose_loop_has_threads_of_its_own():
    for clock, seconds in (("real", 30), ("sim", 1e6)):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            tt.run("cart_pole", brain="lqr", clock=clock, seconds=seconds)
        assert time.perf_counter() - start < 5, clock


def test_a_handler_of_log_records_may_use_devices_and_programs():
    text = "buffer x: i32 read_write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [x], r0"
    code = f"""
import logging
import numpy as np, tectum as tt
text = {text!r}
busy = False
class Handler(logging.Handler):
    def emit(self, record):
        global busy
        if not busy:
            busy = True
            tt.Device("cpu", threads=1)
            tt.program(text).run(x=np.ones(3, np.int32))
            busy = False
logging.getLogger("tectum").addHandler(Handler())
logging.getLogger("tectum").setLevel(logging.DEBUG)
tt.Device("cpu", threads=2)
print(tt.program(text.replace("add", "mul")).run(x=np.full(3, 5, np.int32), device="auto")["x"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[25 25 25]", done.stderr


def test_progress_is_shown_by_tqdm(tmp_path, capfd):
    pytest.importorskip("tqdm")
    tt.brain("mppi", "rig", progress=True)
    assert "training: 100%" in capfd.readouterr().err
    run = tt.run("cart_pole", clock="sim", seconds=2, folder=tmp_path, progress=True)
    assert "running: 100%" in capfd.readouterr().err
    tt.repeat(run.folder, progress=True)
    assert "repeating: 100%" in capfd.readouterr().err
    tt.run_loop(tt.body("cart_pole"), tt.brain("lqr", "cart_pole"), seconds=1, clock="sim", progress=True)
    assert "running: 100%" in capfd.readouterr().err
    tt.Decoder(tt.sample("sample-decoder", tmp_path), context=64, progress=True)
    assert "loading weights: 100%" in capfd.readouterr().err
    network = busy_network(100)
    network.run(50, progress=True)
    assert "bursts: 100%" in capfd.readouterr().err
    tt.Genome(tt.sample("sample-genome", tmp_path)).network(progress=True)
    assert "connecting mappings: 100%" in capfd.readouterr().err
    network.run(50)
    assert not capfd.readouterr().err, "only if asked"


def test_without_tqdm_nothing_is_lost(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    body, brain = tt.body("cart_pole"), tt.brain("lqr", "cart_pole")
    with pytest.raises(ModuleNotFoundError):
        tt.run_loop(body, brain, seconds=1, clock="sim", progress=True)
    assert len(tt.run_loop(body, brain, seconds=1, clock="sim")) == 50


def square_twin(x, y, count):
    y[:count] = x[:count] ** 2


SQUARE = """
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < params.count; i += groups.x * 256u) { y[i] = x[i] * x[i]; }
}"""


def test_threads_share_objects_of_every_kind(models, tmp_path):
    """Each answer is that of the caller's inputs, whatever the other threads do with the same object; also without the interpreter's lock (3.14t)."""
    network, lqr = busy_network(100), tt.brain("lqr", "pendulum")
    spikes = network.monitor()
    double = tt.program("buffer x: i32 read_write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [x], r0")
    square = tt.Kernel("square", SQUARE, [("x", "read", "float32"), ("y", "write", "float32")], [("count", "uint32")], square_twin)
    plan = tt.Plan("squares")
    plan.launch(square, [plan.input("x", 300), plan.output("y", 300)], count=300)
    squares = plan.compile()
    graph = tt.Graph()
    graph.output("y", graph.dense("layer", graph.input("x", (4, 3)), 2, "tanh"))
    model = graph.compile()
    model.set_parameters({"layer.weight": np.ones((3, 2)), "layer.bias": np.zeros((1, 2))})
    policy = tt.Network(models / "cart_pole.onnx")
    batch, field = tt.BodyBatch("cart_pole", 16), tt.Field(4, 2, shape=(8, 8, 8, 32))
    decoder = tt.Decoder(tt.sample("sample-decoder", tmp_path), context=64)
    name, shape = policy.inputs[0]
    expected = {number: policy.run({name: np.full(shape, number, np.float32)}) for number in range(4)}
    texts = decoder.generate("the small cat", max_new_tokens=4).text
    failures = []

    def work(number):
        try:
            for turn in range(20):
                network.run(2)
                assert len(spikes.t) >= len(network.fired)
                network.counts, network.potentials
                lqr.tick([0.1, 0.2])
                lqr.reset()
                value = 20 * number + turn
                assert (double.run(x=np.full(100, value, np.int32))["x"] == 2 * value).all()
                assert (squares.run(x=np.full(300, value))["y"] == value * value).all()
                np.testing.assert_allclose(model(x=np.full((4, 3), value * 0.01))["y"], np.tanh(value * 0.03), rtol=1e-5)
                for output, values in policy.run({name: np.full(shape, number, np.float32)}).items():
                    np.testing.assert_array_equal(values, expected[number][output])
                assert batch.step(np.zeros((16, 1)))[0].shape == (16, 4)
                field.tick(np.full(4, 0.1), 0.0)
                assert decoder.generate("the small cat", max_new_tokens=4).text == texts
                assert squares.receipt.runs > turn
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failures and not any(thread.is_alive() for thread in threads)
    assert network.counts.bursts == 160 and squares.receipt.runs == model.receipt.runs == batch.receipt.runs == 80


def test_a_run_gets_the_exceptions_of_its_own_twins():
    """Two plans of one kernel in two threads."""

    def twin(x, y, count):
        if x[0] < 0:
            raise ValueError("mine")
        time.sleep(0.0002)
        square_twin(x, y, count)

    square = tt.Kernel("square", SQUARE, [("x", "read", "float32"), ("y", "write", "float32")], [("count", "uint32")], twin)

    def executable():
        plan = tt.Plan("squares")
        plan.launch(square, [plan.input("x", 4), plan.output("y", 4)], count=4)
        return plan.compile()

    good, bad, failures = executable(), executable(), []

    def fail():
        for _ in range(100):
            try:
                bad.run(x=[-1.0] * 4)
                failures.append("a failing run returned")
            except ValueError:
                pass

    thread = threading.Thread(target=fail)
    thread.start()
    for _ in range(100):
        assert good.run(x=[2.0] * 4)["y"].tolist() == [4.0] * 4
    thread.join(60)
    assert not failures and not thread.is_alive()
    assert (good.receipt.runs, bad.receipt.runs) == (100, 0), "a run that raised has no result"


HUGE_SEQUENCES = """
import tectum as tt

class Liar(list):
    def __len__(self):
        return 2**62

class Endless:
    def __getitem__(self, index):
        return 0
    def __len__(self):
        return 2**70

graph = tt.Graph()
x = graph.input("x", (4, 4))
batch = tt.BodyBatch("cart_pole", 4)
decoder = tt.Decoder(tt.sample("sample-decoder", exist_ok=True), context=16)
body = tt.body("cart_pole")
neurons = tt.Neurons()
neurons.add(2)
calls = {
    "reset": lambda huge: batch.reset(seeds=huge),
    "restart": lambda huge: batch.restart(huge, [1]),
    "decode": lambda huge: decoder.decode(huge),
    "generate": lambda huge: decoder.generate(huge),
    "stream": lambda huge: decoder.stream(huge),
    "input": lambda huge: graph.input("y", huge),
    "permute": lambda huge: x.permute(huge),
    "state": lambda huge: setattr(body, "state", huge),
    "synapses": lambda huge: tt.SpikingNetwork(neurons, huge, [1], [1]),
    "constant_inputs": lambda huge: tt.SpikingNetwork(neurons, [0], [1], [1], constant_inputs=huge),
}
for name, call in calls.items():
    for huge in (range(2**42), range(2**70), Liar([1, 2]), Endless()):
        if name in ("synapses", "state", "decode", "generate", "stream") and not isinstance(huge, range):
            continue  # NumPy makes an array of these.
        try:
            call(huge)
            print(name, huge.__class__.__name__, "returned")
        except (MemoryError, ValueError):
            pass
        except TypeError as error:
            # NumPy has no integers beyond 64 bits: an array of objects.
            if huge != range(2**70):
                print(name, huge, repr(error))
        except Exception as error:
            print(name, huge.__class__.__name__, repr(error))
print("end")
"""


def test_a_sequence_that_states_a_huge_length_is_refused(tmp_path):
    # An allocation of that length would end the process.
    done = subprocess.run([sys.executable, "-c", HUGE_SEQUENCES], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stdout + done.stderr[-1000:]
