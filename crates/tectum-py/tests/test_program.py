import numpy as np
import pytest

import tectum as tt

SAXPY = """
buffer x: f32 read
buffer y: f32 read_write
mov_imm.f32 r0, 2.0
ldg.f32 r1, [x]
ldg.f32 r2, [y]
fma.f32 r2, r0, r1, r2
stg.f32 [y], r2
"""
DOUBLE = "buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [y], r0"


def test_lanes_compute_each_element():
    saxpy = tt.program(SAXPY)
    x, y = np.random.default_rng(1).normal(size=(2, 7, 150)).astype(np.float32)
    for scale in (1.0, 3.0):
        found = saxpy.run(x=x * np.float32(scale), y=y)["y"]
        assert found.shape == (7, 150)
        np.testing.assert_allclose(found, 2 * scale * x + y, rtol=1e-6)


def test_outputs_have_the_shape_of_inputs_or_one_that_is_given():
    double = tt.program(DOUBLE)
    assert double.buffers == [("x", "i32", "read"), ("y", "i32", "write")]
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(double.run(x=x)["y"], 2 * x)
    np.testing.assert_array_equal(double.run(x=x, y=(3, 2))["y"], 2 * x.reshape(3, 2))
    np.testing.assert_array_equal(double.run(x=np.arange(3, dtype=">i4"))["y"], [0, 2, 4])
    # Columns of another array are not in one piece of memory.
    np.testing.assert_array_equal(double.run(x=np.arange(12, dtype=np.int32).reshape(6, 2)[:, 0])["y"], 4 * np.arange(6))


def test_programs_are_read_from_files(tmp_path):
    (tmp_path / "double.atlas").write_text(DOUBLE)
    assert tt.program(str(tmp_path / "double.atlas")).run(x=np.array([4], np.int32))["y"].tolist() == [8]


@pytest.mark.parametrize(
    ("arrays", "kind", "message"),
    [
        ({}, KeyError, "buffer x is read and has no contents"),
        ({"x": np.zeros(3, np.float64)}, ValueError, "float64.*int32"),
        ({"x": np.zeros(3, np.int32), "z": 1}, KeyError, "no buffer"),
        ({"x": np.zeros(3, np.int32), "y": np.zeros(3, np.int32)}, ValueError, "only written"),
        ({"x": np.zeros(3, np.int32), "y": 4}, ValueError, "3 elements and buffer y 4"),
    ],
)
def test_refusals_name_the_buffer(arrays, kind, message):
    with pytest.raises(kind, match=message):
        tt.program(DOUBLE).run(**arrays)


def test_malformed_programs_and_faults_name_the_line():
    with pytest.raises(ValueError, match="line 2, column"):
        tt.program("buffer y: f32 write\nadd.f32 r0, r1, r1\nstg.f32 [y], r0")
    divide = tt.program("buffer x: u32 read\nbuffer y: u32 write\nldg.u32 r0, [x]\nmov_imm.u32 r1, 6\ndiv.u32 r0, r1, r0\nstg.u32 [y], r0")
    with pytest.raises(ValueError, match="lane 1, line 5.*division by zero"):
        divide.run(x=np.array([1, 0, 2], np.uint32))
