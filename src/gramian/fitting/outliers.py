"""Rows that are taken for outliers: beside their noise they have a variance c^2 of their own.

    y_i = f(x_i) + e_i,   e_i ~ N(0, noise + o_i c^2),   o_i = 0 or 1,   sum o ~ BetaBinomial(n, A, B)

o is found in turns with the parameters, where p(y, o | theta) is highest: one term of the sum over all o, and
so a lower bound of the evidence that can be compared with that of a model without outliers. Given all else,
row i is one if

    log N(r_i; 0, v_i + c^2) - log N(r_i; 0, v_i) > log((n - k + B) / (k + A)),      k = sum o

with its residual r_i and variance v_i as all other rows foretell it, in closed form. Source: Box and Tiao
1968 (a second, wider variance for a few observations).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from gramian.arrays import Array
from gramian.predictive import log_normal

A, B = 1.0, 40.0  # of the share of outliers: 2 % are expected, more than 10 % surprise
MOST = 0.2  # of the rows: with more of them, they are the data
FIRST = 10.0  # standard deviations that outliers are away, before any is known
LEAST = 3.0  # the same when some are: less is a tail
WORTH = 6.0  # nats by which they must raise log p(y, o) at the first look: odds of 400 to one


class Outliers(NamedTuple):
    """Which rows, and what they say of the others."""

    excess: Array  # (n,): c^2 of those, 0 of all others
    gain: float  # nats: what they add to log p(y, o) beside no outliers, row by row


def outliers(residual: Array, var: Array, known: Array | None = None) -> Outliers | None:
    """The rows that are outliers, by residuals and variances as all others foretell them, without the excess
    that some may have already (`known`); None where there are none, or too many."""
    seen, typical = np.isfinite(residual), float(np.nanmedian(var))
    n, k, square = int(np.sum(seen)), 0, FIRST**2 * typical
    if known is not None:
        before = known > 0
        k, square = int(np.sum(before)), float(np.mean((residual**2 - var)[before]))
    gain = _gain(residual, var, max(square, LEAST**2 * typical), k, n)
    found = gain > 0
    if not 0 < np.sum(found) <= MOST * n:
        return None
    return Outliers(np.where(found, max(square, LEAST**2 * typical), 0.0), float(np.sum(gain[found])))


def alike(residual: Array, var: Array, excess: Array) -> Array:
    """The excess of further rows, (m,), by how they are foretold, where that of some is known: (n,)."""
    square = float(np.max(excess))
    gain = _gain(residual, var, square, int(np.count_nonzero(excess)), len(excess))
    return np.where(gain > 0, square, 0.0)


def _gain(residual: Array, var: Array, square: float, k: int, n: int) -> Array:
    """Nats that a row is worth as an outlier, beside k of n; nothing where it was not observed."""
    zero, odds = np.zeros(1), np.log((n - k + B) / (k + A))
    gain = log_normal(residual, zero, var + square) - log_normal(residual, zero, var) - odds
    return np.where(np.isfinite(residual), gain, 0.0)


def log_prior(excess: Array | None) -> float:
    """log p(o) against that of no outliers at all, for models that are compared with one that has none."""
    if excess is None:
        return 0.0
    n, k = len(excess), int(np.count_nonzero(excess))
    return float(betaln(k + A, n - k + B) - betaln(A, B + n))
