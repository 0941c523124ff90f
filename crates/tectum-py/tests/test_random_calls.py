"""Random calls of everything that the stubs declare neither crash, hang nor leak."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="the system has no limits of memory")


def test_random_calls_end_as_they_should():
    program = pathlib.Path(__file__).with_name("random_calls")
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
