"""Quantiles of a new observation under a likelihood that is not Gaussian, row by row, by draws.

f at a row is N(mean, var) (or a mixture of such, one a draw of a chain, with the likelihood of that draw);
DRAWS values of f, and a y for each, give the empirical quantiles. Every row uses the same random numbers, so
that a row has the same interval in whatever table it stands. The share of a distribution below an empirical
2.5 % quantile of 2,000 draws is 2.5 % with a standard error of 0.35 %.

Cost: DRAWS numbers a row and latent function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.likelihoods import Likelihood
from gramian.processes.base import Process

Array = NDArray[np.float64]

DRAWS = 2000
SEED = 0


def quantiles(
    likelihood: Likelihood,
    process: Process,
    table: Array,
    levels: Sequence[float],
    exposure: Array | None = None,
) -> Array:
    """The quantiles of y at the rows of a table: (n, levels)."""
    seen = list(process.under(likelihood, table))
    likelihoods = [own.bare() for own, _, _ in seen]
    parts = [np.stack([mean, var]) for _, mean, var in seen]
    moments = np.stack(parts)  # (components, 2, n, L)
    if exposure is not None:
        moments[:, 0] += np.log(exposure)[:, None]
    each = -(-DRAWS // len(likelihoods))
    out = np.empty((len(table), len(levels)))
    for row in range(len(table)):
        rng = np.random.default_rng(SEED)
        drawn = []
        for own, (mean, var) in zip(likelihoods, moments[:, :, row], strict=True):
            f = mean + np.sqrt(np.maximum(var, 0.0)) * rng.standard_normal((each, len(mean)))
            drawn.append(own.draw(rng, f[:, 0] if len(mean) == 1 else f))
        out[row] = np.quantile(np.concatenate(drawn), levels)
    return out
