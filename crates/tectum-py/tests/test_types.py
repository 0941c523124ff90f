"""Stubs: the same names and parameters as the module, and no errors of mypy in the package and in the examples of docs/python.md."""

import ast
import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

import tectum as tt
from tectum import _tectum

PACKAGE = pathlib.Path(tt.__file__).parent
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "python.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


def parameters_of_stub(function):
    arguments = function.args
    named = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if argument.arg not in ("self", "cls")]
    return named + [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument]


def parameters_of(function):
    named = [name for name, parameter in inspect.signature(function).parameters.items() if name not in ("self", "cls", "this")]
    return sorted(named)


def test_stubs_have_the_names_and_parameters_of_the_module():
    stub = ast.parse((PACKAGE / "_tectum.pyi").read_text())
    found = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")}
    public = {name for name in dir(_tectum) if not name.startswith("_")}
    assert set(found) == public
    for name, node in found.items():
        real = getattr(_tectum, name)
        if isinstance(node, ast.FunctionDef):
            assert sorted(parameters_of_stub(node)) == parameters_of(real), name
            continue
        if issubclass(real, Exception):
            assert [base.id for base in node.bases] == [base.__name__ for base in real.__bases__], name
            continue
        methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
        members = {member for member in vars(real) if not member.startswith("_")}
        assert {member for member in methods if not member.startswith("_")} == members, name
        for method, item in methods.items():
            is_property = any(isinstance(decorator, ast.Name) and decorator.id == "property" for decorator in item.decorator_list)
            if method in members and not is_property and callable(getattr(real, method)):
                assert sorted(parameters_of_stub(item)) == parameters_of(getattr(real, method)), f"{name}.{method}"
        if "__new__" in methods:
            assert sorted(parameters_of_stub(methods["__new__"])) == parameters_of(real), name


def test_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    # What writes files runs a second time in the same folder, as when a reader repeats an example.
    writing = [block for block in blocks() if "tt.sample(" in block or ".save(" in block]
    for block in [*blocks(), *writing]:
        exec(compile(block, str(PAGE), "exec"), names)


def test_mypy_finds_nothing(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "examples.py").write_text("\n".join(blocks()))
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "-p", "tectum", "-m", "examples"]
    # An installed package is found without its folder.
    paths = [tmp_path] if "site-packages" in PACKAGE.parts else [tmp_path, PACKAGE.parent]
    environment = os.environ | {"MYPYPATH": os.pathsep.join(map(str, paths))}
    result = subprocess.run(check, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
