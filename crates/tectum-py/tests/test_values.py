"""Values are equal if what they are made of is, and can be copied and pickled."""

import copy
import pickle

import pytest

import tectum as tt

CHANNELS = [tt.ObservationChannel("yaw", "deg", -180, 180, scale=90, wraps=True), tt.ObservationChannel("x", "m")]
ACTIONS = [tt.ActionChannel("force", "N", -10, 10, discrete=True)]
# Pairs of a function that makes a value and one that makes another.
VALUES = {
    "observation channel": (lambda: tt.ObservationChannel("yaw", "deg", -180, 180, scale=90, wraps=True), lambda: CHANNELS[1]),
    "action channel": (lambda: tt.ActionChannel("force", "N", -10, 10, discrete=True), lambda: tt.ActionChannel("force", "N", -10, 10)),
    "spec": (lambda: tt.BodySpec("cart", 0.02, CHANNELS, ACTIONS, [1.0]), lambda: tt.BodySpec("cart", 0.02, CHANNELS, ACTIONS, [2.0])),
    "spec of a body": (lambda: tt.body("rig").spec, lambda: tt.body("acrobot").spec),
    "device": (lambda: tt.Device("cpu", threads=1), lambda: tt.Device("cpu")),
    "counts": (lambda: tt.SpikeCounts(3, 2, 1, "0" * 16), lambda: tt.SpikeCounts(3, 2, 2, "0" * 16)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_compared_copied_and_pickled(name):
    make, make_other = VALUES[name]
    value, other = make(), make_other()
    assert value == make() and value != other and value != "text"
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert copied == value and repr(copied) == repr(value)


def test_hashes_of_equal_values_are_equal():
    assert len({tt.Device("cpu"), tt.Device("cpu"), tt.Device("cpu", threads=1)}) == 2
    assert hash(tt.SpikeCounts(3, 2, 1, "a")) == hash(tt.SpikeCounts(3, 2, 1, "a"))


def test_a_scale_and_an_angle_survive():
    channel = pickle.loads(pickle.dumps(CHANNELS[0]))
    assert (channel.scale, channel.wraps, channel.unit) == (90.0, True, "deg")
