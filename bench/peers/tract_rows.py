"""tract's times of the rows of `tectum bench policy` on one thread: a Rust program, which speaks the protocol itself."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
FOLDER = HERE.parent / "models" / "policy"
PROGRAM = HERE / ".venv-tract" / "target" / "release" / "tract-rows"

if __name__ == "__main__":
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM}: not built; `cargo xtask peers tract` builds it")
    os.execv(PROGRAM, [PROGRAM, FOLDER])
