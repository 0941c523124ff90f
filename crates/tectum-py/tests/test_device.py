import pytest

import tectum as tt


def test_the_cpu_is_a_device():
    assert any(device["id"] == "cpu" and not device["software"] for device in tt.devices())
    cpu = tt.Device("cpu", threads=1)
    assert (cpu.id, cpu.software, repr(cpu)) == ("cpu", False, "Device('cpu')")


def test_each_kind_of_error_has_an_exception():
    with pytest.raises(ValueError, match="expected auto"):
        tt.Device("gpu")
    with pytest.raises(tt.UnsupportedError):
        tt.Device("cuda:99")
    with pytest.raises(ValueError, match="threads: null has none"):
        tt.Device("null", threads=2)
    assert issubclass(tt.DataError, ValueError) and issubclass(tt.UnsupportedError, NotImplementedError)
