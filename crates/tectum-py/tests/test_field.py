import numpy as np
import pytest

import tectum as tt


def small(**settings):
    return tt.Field(2, 1, shape=(8, 8, 8, 32), **settings)


def test_the_same_seed_gives_the_same_field():
    fields = [small(seed=3), small(seed=3)]
    actions = [[field.tick([0.5, -0.5]).action for _ in range(4)] for field in fields]
    np.testing.assert_array_equal(*actions)
    np.testing.assert_array_equal(fields[0].elements, fields[1].elements)
    assert fields[0].receipt.runs == 4


def test_a_saved_state_continues(tmp_path):
    field = small()
    field.tick([0.1, 0.2])
    field.save(tmp_path / "field.safetensors")
    resumed = small()
    resumed.restore(tmp_path / "field.safetensors")
    np.testing.assert_array_equal(field.tick([0.3, 0.4]).action, resumed.tick([0.3, 0.4]).action)


def test_coefficients_are_set_by_name():
    field = small()
    field.set_coefficients(noise=0.0, diffusion=[0.01, 0.02, 0.03], diffusion_depth=[0.0, 0.0, 0.0])
    assert field.coefficients["noise"] == 0.0
    assert field.coefficients["diffusion"] == pytest.approx([0.01, 0.02, 0.03])
    with pytest.raises(ValueError, match="no coefficient 'colour'|no coefficient \"colour\""):
        field.set_coefficients(colour=1.0)
    with pytest.raises(ValueError):
        field.set_coefficients(noise=7.0)
    assert field.coefficients["noise"] == 0.0


def test_refusals_name_what_is_wrong():
    for settings, message in [({"boundary": "open"}, "boundary"), ({"storage": "f8"}, "storage")]:
        with pytest.raises(ValueError, match=message):
            small(**settings)
    with pytest.raises(ValueError, match="axis of 7"):
        tt.Field(1, 1, shape=(7, 8, 8, 32))
    with pytest.raises(ValueError, match="sensors has 3 numbers, needs 2"):
        small().tick([1.0, 2.0, 3.0])
