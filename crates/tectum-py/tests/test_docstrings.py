import doctest

import pytest

import tectum as tt


@pytest.mark.parametrize("name", tt.__all__)
def test_examples_of_docstrings_hold(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    finder = doctest.DocTestParser()
    text = getattr(tt, name).__doc__ or ""
    assert text.strip(), f"{name} has no docstring"
    test = finder.get_doctest(text, {}, name, None, 0)
    assert doctest.DocTestRunner().run(test).failed == 0
