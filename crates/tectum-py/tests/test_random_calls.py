"""Random calls of everything that the stubs declare neither crash, hang nor leak."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as Linux does")
PROGRAM = pathlib.Path(__file__).with_name("random_calls")


def ended(*arguments):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True)


def test_a_crash_is_found(tmp_path):
    script = tmp_path / "calls.txt"
    script.write_text("v0 := tt.Graph()\nos.kill(os.getpid(), 11)")
    result = ended("--script", script)
    assert result.returncode == 1 and "signal: SIGSEGV" in result.stdout, result.stdout + result.stderr
    script.write_text("v0 := tt.Graph()\nv0.input(5, 5)")
    assert ended("--script", script).returncode == 0


def test_random_calls_end_as_they_should():
    result = ended()
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
