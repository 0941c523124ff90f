"""The notebooks of examples/: every cell runs, and their pictures are in the files."""

import json
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_is_one_for_each_workload():
    assert [path.stem for path in NOTEBOOKS] == ["control", "field", "policy", "program", "spiking", "transformer"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, cell in enumerate(cells(path)):
        # As in a notebook: a cell may end with a semicolon, which hides its value.
        exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_are_in_the_file(path):
    outputs = [output for cell in cells(path) for output in cell["outputs"]]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert not any(output["output_type"] == "error" for output in outputs)
