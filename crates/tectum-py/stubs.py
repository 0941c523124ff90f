"""Writes python/tectum/_tectum.pyi from the signatures and docstrings of the extension module::

    python stubs.py        # in an environment with maturin; compiles the crate in release

The tests compare the file with the module.
"""

import pathlib
import re
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPLACED = [
    # Types that signatures state.
    (r': "([^"\n]*)"(?=[,)]| = )', r": \1"),
    # What callers pass and get, in the words of NumPy's and Python's types.
    (r"SupportsFloat \| SupportsIndex", "float"),
    (r"\bSupportsIndex\b", "int"),
    (r"SupportsGetItem\[int, ", "Sequence["),
    (r"\bIncomplete\b", "NDArray[Any]"),
    (r"-> dict:", "-> dict[str, Any]:"),
    (r": dict(?= [|=]|[,)])", ": dict[Any, Any]"),
    (r"-> tuple:", "-> tuple[int | str, ...]:"),
    (r"tuple\[str, tuple\]", "tuple[str, tuple[int | str, ...]]"),
    (r"(\*\*\w+)(?=[,)])", r"\1: Any"),
    (r"^def __getattr__.*\n", ""),
    (r"^from _typeshed import .*\n", "from collections.abc import Sequence\n"),
    (r"^from typing import .*\n", "from typing import Any, final\n\nfrom numpy.typing import NDArray\n"),
]
# Exceptions that the macro of PyO3 makes have no type information.
EXCEPTIONS = {
    "Cancelled": "RuntimeError",
    "DataError": "ValueError",
    "DeviceLost": "RuntimeError",
    "MismatchError": "RuntimeError",
    "UnsupportedError": "NotImplementedError",
}


def refined(text: str) -> str:
    for pattern, replacement in REPLACED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    exceptions = "".join(f"\nclass {name}({base}): ...\n" for name, base in EXCEPTIONS.items())
    return "# Written by stubs.py.\n\n" + text.rstrip() + "\n" + exceptions


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["maturin", "generate-stubs", "--profile", "release", "-F", "stubs", "-o", folder], cwd=HERE, check=True)
        text = (pathlib.Path(folder) / "tectum/_tectum.pyi").read_text()
    (HERE / "python/tectum/_tectum.pyi").write_text(refined(text))


if __name__ == "__main__":
    main()
