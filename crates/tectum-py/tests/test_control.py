import json
import os
import signal
import threading
import time

import numpy as np
import pytest

import tectum as tt


class Cart:
    """A mass on a track."""

    spec = tt.BodySpec("cart", 0.02, [tt.ObservationChannel("x", "m"), tt.ObservationChannel("v", "m/s")], [tt.ActionChannel("force", "N", -1.0, 1.0)])

    def reset(self, seed):
        self.x, self.v = 1.0, 0.0
        return [self.x, self.v]

    def step(self, action):
        self.v += 0.02 * float(action[0])
        self.x += 0.02 * self.v
        return [self.x, self.v], -abs(self.x), abs(self.x) > 2.0, False


class Spring:
    def tick(self, observation):
        return -observation[:1] - 1.5 * observation[1:]


def test_a_loop_of_python_objects_records_every_period():
    run = tt.run_loop(Cart(), Spring(), seconds=20, clock="sim")
    assert run.observations.shape == (1000, 2) and run.actions.shape == (1000, 1)
    assert run.end == "completed" and run.deadline_misses == 0
    assert abs(run.observations[-1, 0]) < 1e-3
    # The action that was applied, clipped to its channel.
    first = np.float32(-1.0)
    assert run.actions[0, 0] == first
    np.testing.assert_allclose(run.t[:3], [0.0, 0.02, 0.04])


def test_the_same_seed_has_the_same_trace():
    runs = [tt.run("pendulum", clock="sim", brain="lqr", seconds=2, seed=seed) for seed in (3, 3, 4)]
    traces = [run.receipt.trace for run in runs]
    assert traces[0] == traces[1] != traces[2]


@pytest.mark.skipif("TECTUM_TRACES" not in os.environ, reason="only the test in Rust gives the traces to compare with")
def test_scenarios_have_the_traces_of_rust():
    traces = json.loads(os.environ["TECTUM_TRACES"])
    assert len(traces) >= 6
    found = {name: tt.run(name, clock="sim", seconds=1.0, device="cpu").receipt.trace for name in traces}
    assert found == traces


def test_an_equation_file_is_a_body_with_brains():
    body = tt.body("cart_servo.plant")
    assert [channel.name for channel in body.spec.observation] == ["position", "angle"]
    run = tt.run_loop(body, tt.brain("lqr", body), seconds=4, clock="sim")
    assert np.abs(run.observations[-10:, 1]).max() < 0.02
    with pytest.raises(FileNotFoundError, match="nowhere.plant"):
        tt.body("nowhere.plant")


def test_a_wrong_setting_names_the_brain_and_the_key():
    with pytest.raises(tt.DataError, match=r'^tectum.brain\("mppi"\): unknown key "sampels"'):
        tt.brain("mppi", "pendulum", sampels=64)


def test_exceptions_of_callbacks_end_the_loop():
    class Broken(Spring):
        def tick(self, observation):
            raise ZeroDivisionError("in tick")

    with pytest.raises(ZeroDivisionError, match="in tick"):
        tt.run_loop(Cart(), Broken(), seconds=20, clock="sim")

    class Wrong(Cart):
        def step(self, action):
            return [0.0], 0.0, False, False

    with pytest.raises(ValueError, match="observation has 1 numbers, needs 2"):
        tt.run_loop(Wrong(), Spring(), seconds=20, clock="sim")

    class Short(Cart):
        def step(self, action):
            return [0.0, 0.0], 0.0

    with pytest.raises(TypeError, match="step returned 2 values"):
        tt.run_loop(Short(), Spring(), seconds=20, clock="sim")


def test_objects_without_the_methods_are_refused():
    with pytest.raises(TypeError, match="no `spec` that is a BodySpec"):
        tt.run_loop(object(), Spring())
    with pytest.raises(TypeError, match="no method `tick`"):
        tt.run_loop(Cart(), object())


def test_values_that_no_loop_can_run_with_are_refused():
    x, force = tt.ObservationChannel("x"), tt.ActionChannel("force", "N", -1.0, 1.0)
    for dt in (0.0, 1e-12, float("nan"), 1e9):
        with pytest.raises(ValueError, match="dt is"):
            tt.BodySpec("cart", dt, [x], [force])
    with pytest.raises(ValueError, match="safe_action has 2 numbers for 1 action channels"):
        tt.BodySpec("cart", 0.02, [x], [force], [0.0, 0.0])
    with pytest.raises(ValueError, match="needs finite numbers"):
        tt.BodySpec("cart", 0.02, [x], [force], [float("nan")])
    for low, high in ((1.0, -1.0), (float("nan"), 1.0), (0.0, float("inf"))):
        with pytest.raises(ValueError, match="channel force: the range is"):
            tt.ActionChannel("force", "N", low, high)
    for seconds in (0.0, float("nan"), 1e12):
        with pytest.raises(ValueError, match="seconds is"):
            tt.run_loop(Cart(), Spring(), seconds=seconds)


def test_a_channel_is_marked_as_an_angle():
    yaw = tt.ObservationChannel("yaw", "deg", -180.0, 180.0, wraps=True)
    assert (yaw.wraps, repr(yaw)) == (True, "ObservationChannel('yaw', 'deg', -180.0, 180.0, wraps=True)")
    assert tt.ObservationChannel("yaw", "rad", -3.2, 3.2, wraps=True).wraps
    assert tt.ObservationChannel("yaw", wraps=True).wraps
    assert not tt.ObservationChannel("yaw", "deg").wraps
    spec = tt.BodySpec("cart", 0.02, [yaw], [tt.ActionChannel("force", "N", -1.0, 1.0)])
    assert spec.observation[0].wraps
    for unit in ("m", "rad/s", "turns"):
        with pytest.raises(ValueError, match=f"channel yaw: wraps is for angles, and its unit is \"{unit}\""):
            tt.ObservationChannel("yaw", unit, wraps=True)


def test_a_brain_of_another_body_is_refused_and_nothing_is_lost():
    body, brain = tt.body("pendulum"), tt.brain("lqr", "cart_pole")
    with pytest.raises(ValueError, match="made for body cart_pole with 4 observation elements and 1 action channels; body pendulum has 2 and 1"):
        tt.run_loop(body, brain, seconds=1, clock="sim")
    body.reset(1)
    brain.tick([0.0] * 4)


def test_a_body_gets_its_safe_action_for_one_that_is_not_finite():
    seen = []

    class Watched(Cart):
        def step(self, action):
            seen.append(float(action[0]))
            return super().step(action)

    class Undefined:
        def tick(self, observation):
            return [float("nan")]

    tt.run_loop(Watched(), Undefined(), seconds=0.1, clock="sim")
    assert seen == [0.0] * 5


def test_ctrl_c_interrupts_a_loop():
    # A shell starts background jobs with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tt.run_loop(tt.body("pendulum"), tt.brain("lqr", "pendulum"), seconds=60)
    assert time.monotonic() - begin < 5.0
    signal.signal(signal.SIGINT, before)


def test_a_loop_owns_its_body_and_brain_until_it_ends(models):
    body, policy = tt.body("cart_pole"), tt.Policy(models / "cart_pole.onnx", "cart_pole")
    runs = [tt.run_loop(body, policy, seconds=1, clock="sim", seed=3) for _ in range(2)]
    assert runs[0].receipt.trace == runs[1].receipt.trace
    assert body.step([1.0])[0].shape == (4,) and policy.tick([0.0] * 4).shape == (1,)
    refused = []

    class Watching(Spring):
        def tick(self, observation):
            for use in (lambda: body.reset(1), lambda: tt.run_loop(body, Spring(), seconds=1, clock="sim")):
                with pytest.raises(ValueError, match="a loop owns it|another loop owns it") as caught:
                    use()
                refused.append(caught.value)
            return [0.0]

    tt.run_loop(body, Watching(), seconds=0.1, clock="sim")
    assert len(refused) == 10
    # Refused before it began: both are free.
    with pytest.raises(ValueError, match="made for body"):
        tt.run_loop(tt.body("pendulum"), policy, seconds=1, clock="sim")
    assert len(tt.run_loop(body, policy, seconds=1, clock="sim")) == 50


def test_a_loop_that_an_exception_ends_has_its_periods_so_far():
    class Tiring(Spring):
        ticks = 0

        def tick(self, observation):
            self.ticks += 1
            if self.ticks > 7:
                raise ZeroDivisionError("tired")
            return [0.0]

    body = tt.body("pendulum")
    with pytest.raises(ZeroDivisionError, match="tired") as caught:
        tt.run_loop(body, Tiring(), seconds=20, clock="sim")
    run = caught.value.run
    assert isinstance(run, tt.Run) and 7 <= len(run) <= 8 and run.end == "interrupted"
    assert run.observations.shape == (len(run), 2)
    assert len(tt.run_loop(body, tt.brain("lqr", "pendulum"), seconds=1, clock="sim")) == 20


@pytest.mark.parametrize("kind", ["built-in", "python"])
def test_a_loop_that_ctrl_c_ends_can_be_repeated(kind):
    def start(body, brain):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                tt.run_loop(body, brain, seconds=1e6, clock="sim")
        finally:
            signal.signal(signal.SIGINT, before)
        return caught.value.run

    body, brain = tt.body("pendulum"), tt.brain("lqr", "pendulum")
    run = start(body, brain) if kind == "built-in" else start(Cart(), Spring())
    assert 1 <= len(run) < 1e7 and run.end == "interrupted" and run.receipt.trace
    assert len(tt.run_loop(body, brain, seconds=1, clock="sim")) == 20


@pytest.mark.parametrize("clock", ["real", "sim"])
def test_a_loop_is_stopped_from_another_thread(clock):
    loops = {
        "built-in": lambda stop: tt.run_loop(tt.body("pendulum"), tt.brain("lqr", "pendulum"), seconds=1e5, clock=clock, stop=stop),
        "python": lambda stop: tt.run_loop(Cart(), Spring(), seconds=1e5, clock=clock, stop=stop),
        "scenario": lambda stop: tt.run("cart_pole", brain="lqr", seconds=1e5, clock=clock, stop=stop),
    }
    for name, loop in loops.items():
        stop = tt.StopSignal()
        threading.Timer(0.1, stop.stop).start()
        run = loop(stop)
        assert run.end == "stopped" and len(run) > 0 and stop.is_stopped, name


def test_a_long_period_is_interrupted_within_it():
    class Slow(Cart):
        spec = tt.BodySpec("slow", 100.0, Cart.spec.observation, Cart.spec.action)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            tt.run_loop(Slow(), Spring(), seconds=1000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 2.0


def test_bodies_step_and_restore_their_state():
    body = tt.body("pendulum")
    first = body.reset(7)
    state = body.state
    after = body.step([1.0])[0]
    assert not np.array_equal(first, after)
    body.state = state
    np.testing.assert_array_equal(body.step([1.0])[0], after)
    with pytest.raises(ValueError, match="action has 2 numbers, needs 1"):
        body.step([1.0, 2.0])
    with pytest.raises(ValueError, match="unknown"):
        tt.body("pendulm")


def test_brains_take_the_settings_of_scenarios():
    brain = tt.brain("mppi", "pendulum", model="plant", samples=64)
    assert (brain.name, brain.device) == ("mppi", "cpu")
    with pytest.raises(tt.DataError, match="unknown key \"horizn\", perhaps \"horizon\""):
        tt.brain("mppi", "pendulum", horizn=20)
    with pytest.raises(ValueError, match="clock is \"wall\""):
        tt.brain("lqr", "pendulum", clock="wall")


def test_a_run_writes_its_folder(tmp_path):
    run = tt.run("cart_pole", clock="sim", seconds=1, folder=tmp_path)
    assert {file.name for file in run.folder.iterdir()} >= {"receipt.json", "summary.json", "trace.mcap", "scenario.toml"}
    assert run.receipt.to_dict()["device"]["id"] == run.receipt.device == "cpu"
    with pytest.raises(ValueError, match="unknown"):
        tt.run("cart_pol")
    with pytest.raises(FileNotFoundError):
        tt.run(str(tmp_path / "missing.toml"))
