"""What an installed package says of itself."""

import importlib.metadata
import re

import pytest

import tectum as tt


@pytest.fixture
def distribution():
    try:
        return importlib.metadata.distribution("tectum")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is used from a folder")


def test_the_version_is_that_of_the_installed_package(distribution):
    assert tt.__version__ == distribution.version


def test_licences_and_readme_are_in_the_package(distribution):
    metadata = distribution.metadata
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert set(metadata.get_all("License-File")) == {"LICENSE-APACHE", "LICENSE-MIT"}
    texts = {path.name: path.read_text() for path in distribution.files if path.name.startswith("LICENSE-")}
    assert "Apache License" in texts["LICENSE-APACHE"] and "Permission is hereby granted" in texts["LICENSE-MIT"]
    assert "markdown" in metadata["Description-Content-Type"]


def test_the_example_of_the_readme_runs(distribution, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", distribution.metadata["Description"] or distribution.metadata.get_payload(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("500.0 cpu ")
