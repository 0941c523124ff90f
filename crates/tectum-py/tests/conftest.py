import pathlib

import pytest


@pytest.fixture
def models() -> pathlib.Path:
    """The policies that ship with the crates."""
    return pathlib.Path(__file__).resolve().parents[2] / "tectum-control" / "models"
