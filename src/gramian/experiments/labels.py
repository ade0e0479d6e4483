"""Classes in a comparison: how good predicted probabilities are, and Newton's systems by a Krylov solver that
is taken as it is.

    error    share of rows whose label is not the most probable one
    NLPD     mean of -log p(label), the log loss
    Brier    mean of sum_c (p_c - [label = c])^2, from 0 to 2
    ECE      sum over bins b of the largest probability of (rows in b / rows) |share of right labels in b -
             mean of the largest probability in b|

Source: Brier 1950; the calibration error with bins of equal width as in Guo, Pleiss, Sun and Weinberger 2017,
equation 3, with their 15 bins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.engines.krylov import Krylov
from gramian.estimators.predictions import probabilities
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process

Array = NDArray[np.float64]

BINS = 15
TINY = 1e-300  # a label that was called impossible costs 690 nats, not infinitely many


class AsItIs(Krylov):
    """A solver without a second attempt at greater cost: this is what is compared. A system that misses its
    tolerance ends the run with a note."""

    def stronger(self, n: int) -> None:
        return None


def label_scores(
    likelihood: Likelihood, posterior: Process, X: Array, y: Array, at: NDArray[np.intp]
) -> dict[str, float]:
    """The scores at the rows of X with the codes y; those that need variances at the rows `at` only."""
    P = probabilities(likelihood, posterior, X[at])
    P, codes = P / np.sum(P, axis=1, keepdims=True), y[at].astype(int)
    # some rows: by a Krylov solver, which two classes alone can have. Links are symmetric, so the sign of the
    # mean tells the more probable one
    found = posterior.mean(X)[:, 0] > 0 if len(at) < len(X) else np.argmax(P, axis=1)
    return {
        "error": float(np.mean(found != y)),
        "nlpd": float(-np.mean(np.log(np.maximum(P[np.arange(len(at)), codes], TINY)))),
        "brier": float(np.mean(np.sum((P - np.eye(P.shape[1])[codes]) ** 2, axis=1))),
        "ece": calibration_error(P, codes),
    }


def calibration_error(P: Array, codes: NDArray[np.intp]) -> float:
    """The expected calibration error of the most probable class."""
    sure, right = np.max(P, axis=1), np.argmax(P, axis=1) == codes
    bins = np.minimum((BINS * sure).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - sure, BINS)  # in each bin: rows times (accuracy - confidence)
    return float(np.sum(np.abs(gaps)) / len(P))
