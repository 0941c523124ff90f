"""Where `minilm.py` puts all-MiniLM-L6-v2."""

import pathlib

MODEL = pathlib.Path(__file__).resolve().parent.parent / "models" / "minilm"


def demand():
    if not (MODEL / "model.safetensors").exists():
        raise RuntimeError("the model is absent: python3 bench/peers/minilm.py")
