"""Regulators of random linear systems by SciPy: `riccati.py COUNT FILE` writes them as JSON.

The tests of `tectum-control` read `crates/tectum-control/tests/riccati.json` (40 systems), or the
file that `TECTUM_RICCATI` names. Requirements: numpy, scipy 1.17.
"""

import json
import sys

import numpy as np
from scipy.linalg import solve_discrete_are


def system(random):
    """One system of 1 to 6 states with spectral radius 0.5 to 1.5, weights from 1e-6 to 1e6."""
    n = random.integers(1, 7)
    m = random.integers(1, min(n, 3) + 1)
    a = random.normal(size=(n, n))
    a *= random.uniform(0.5, 1.5) / max(abs(np.linalg.eigvals(a)))
    b = random.normal(size=(n, m))
    q, r = (10.0 ** random.uniform(-6, 6, count) for count in (n, m))
    p = solve_discrete_are(a, b, np.diag(q), np.diag(r))
    gain = np.linalg.solve(np.diag(r) + b.T @ p @ b, b.T @ p @ a)
    parts = {"a": a, "b": b, "state_weights": q, "action_weights": r, "gain": gain}
    return {name: part.ravel().tolist() for name, part in parts.items()}


if __name__ == "__main__":
    random = np.random.default_rng(1)
    systems = [system(random) for _ in range(int(sys.argv[1]))]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("[" + ",\n".join(json.dumps(each) for each in systems) + "]\n")
