"""candle's times of the encoder's rows of `tectum bench infer`: a Rust program, which speaks the protocol itself."""

import os
import pathlib
import sys

from minilm_folder import MODEL, demand

PROGRAM = pathlib.Path(__file__).resolve().parent / ".venv-candle" / "target" / "release" / "candle-rows"

if __name__ == "__main__":
    demand()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM}: not built; `cargo xtask peers candle` builds it")
    os.execv(PROGRAM, [PROGRAM, MODEL])
