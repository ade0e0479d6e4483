"""Certificates on real data sets: what they say, and what they cost.

    GRAMIAN_DATA=folder python benchmarks/certificates.py [abalone uci_pol ...]

The variational bound with 1,000 inducing points and a scaled Matern-3/2 with a lengthscale a column, fitted;
all columns and y standardised, so that errors are in standard deviations of y. While a factor of all rows
fits into memory a certificate has the error itself; beyond, bounds from CG.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import gramian as gm
from datasets import SETS, rows_of
from published import SETS as PUBLISHED
from scale import dataset

INDUCING = 1000


def loaded(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    if name in PUBLISHED:
        found = dataset(name)
        return None if found is None else found[:2]
    path = Path(os.environ.get("GRAMIAN_DATA", ""), f"{name}.npz")
    if not path.is_file():
        print(f"  {path.name} is not in GRAMIAN_DATA: left out")
        return None
    X, y = rows_of(path, 10**6)
    return X, (y - y.mean()) / y.std()


def run(name: str) -> None:
    data = loaded(name)
    if data is None:
        return
    X, y = data
    kernel = 1.0 * gm.Matern32(np.full(X.shape[1], np.sqrt(X.shape[1])))
    began = time.perf_counter()
    gp = gm.GPRegressor(kernel, method=gm.Sparse(INDUCING), random_state=0).fit(X, y)
    fitted = time.perf_counter()
    c = gp.certificate()
    done = time.perf_counter()
    evidence = f"{c.evidence_lower.value:,.1f} .. {c.evidence_upper.value:,.1f}"
    errors = (
        f"{c.mean_error.value:.2g} | {c.mean_error_rms.value:.2g} +- {c.mean_error_rms.standard_error:.1g} |"
        f" {c.std_error.value:.2g}"
    )
    times = f"{fitted - began:.0f} s | {done - fitted:.0f} s"
    print(
        f"| {name} | {len(X):,} x {X.shape[1]} | {gp.noise_**0.5:.3g} | {evidence} | {errors} |"
        f" {c.typical_std:.2g} | {times} |",
        flush=True,
    )


if __name__ == "__main__":
    errors = "error of a mean, largest | its rms | error of a std, largest"
    print(
        f"| set | rows x columns | std of the noise | evidence | {errors} | typical std | fit | certificate |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or (*SETS, *PUBLISHED):
        run(name)
