r"""How wide residuals are from place to place: noise that varies with x.

    z_i ~ N(0, exp(2 g_i)),   g_i = b + sum_j h_j(u_ij),   h_j ~ GP(0, a/k exp(-(u - u')^2 / (2 l^2)))

z are residuals of left-out rows in units of their standard deviations; u_j are k - 1 columns and the foretold
mean itself, each in units of its spread. A function of one column is a sum of M sines on [-L, L],

    h(u) = sum_m w_m sin(pi m (u + L) / (2 L)) / sqrt(L),      w_m ~ N(0, a/k S(pi m / (2 L)))

with S the spectral density of the kernel: so g is linear in weights, the likelihood is log-concave in them,
and Newton's method finds the best. a and l, of a few each, are those of the highest evidence (Laplace's) with
their priors. A z beyond 3 counts as 3: tails are for the calibration. One below a tenth of what is usual
counts as a tenth: of a Gaussian such z make up 3e-4 of the variance, but where all rows have a twin they are
zero, and new rows without one would be certain, too. Cost: n (k M)^2 for each a and l.

Short l were tried and left out: residuals of rows near each other are alike, as each is missed by the other,
and with l = 0.6 the model follows that (on three of 24 tables new rows lost 0.03 to 0.07 nats by it).

Sources: Goldberg, Williams and Bishop 1998 (noise as a process); Solin and Sarkka 2020 (the sines).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramian import clock
from gramian.arrays import Array

SINES, REACH, BOX = 10, 3.0, 4.5  # M; how far out u counts; L
SIZES = (0.03, 0.1, 0.3, 1.0, 3.0)  # a, with log a ~ N(log 0.1, 1)
LENGTHS = (1.5, 3.0)  # l, with log l ~ N(log 1.5, 1)
MOST_COLUMNS, MOST_ROWS = 40, 5000
FARTHEST, NEAREST = 3.0, 0.1  # z; of the root of the mean square
WORTH = 3.0  # nats that it must raise the evidence by, beside one width for all
STEPS, STILL = 50, 1e-6  # of Newton's method; a change of g that is none


@dataclass(frozen=True)
class Widths:
    """exp(g), up to a factor that a calibration makes up for."""

    columns: tuple[int, ...]
    centre: tuple[float, ...]  # of these columns, and of the foretold mean
    unit: tuple[float, ...]
    weights: tuple[float, ...]  # b, then SINES for each of them

    def at(self, X: Array, mean: Array) -> Array:
        """Of rows X, (n, d), whose foretold means are (n,); what is missing counts as average."""
        return np.exp(_basis(self._scaled(X, mean)) @ np.array(self.weights))

    def _scaled(self, X: Array, mean: Array) -> Array:
        told = np.column_stack([X[:, list(self.columns)], mean])
        return np.nan_to_num((told - np.array(self.centre)) / np.array(self.unit))

    @classmethod
    def of(cls, X: Array, mean: Array, z: Array, columns: Sequence[int]) -> Widths | None:
        """From residuals of left-out rows; None where one width is as good. Of very many columns only the
        mean is asked."""
        at = slice(None, None, -(-len(z) // MOST_ROWS))
        columns = tuple(columns) if len(columns) <= MOST_COLUMNS else ()
        told = np.column_stack([np.asarray(X[at])[:, list(columns)], mean[at]])
        centre, unit = np.nanmean(told, axis=0), np.nanstd(told, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        places = tuple(map(float, centre)), tuple(map(float, unit))
        start = cls(columns, *places, ())
        basis = _basis(start._scaled(np.asarray(X[at]), mean[at]))
        squares = np.minimum(z[at] ** 2, FARTHEST**2)
        squares = np.maximum(squares, NEAREST**2 * np.mean(squares))
        one = _best(basis[:, :1], squares, np.ones(1))
        found = []
        for a, length in itertools.product(SIZES, LENGTHS):
            weights, evidence = _best(basis, squares, _variances(len(unit), a, length))
            prior = -0.5 * np.log(a / SIZES[1]) ** 2 - 0.5 * np.log(length / LENGTHS[0]) ** 2
            found.append((weights, evidence + prior))
        weights, height = max(found, key=lambda pair: pair[1])
        if not height > one[1] + WORTH:
            return None
        return cls(columns, *places, tuple(map(float, weights)))


def _basis(U: Array) -> Array:
    """1, and the sines of each column: (n, 1 + k SINES)."""
    m = np.pi * np.arange(1, SINES + 1) / (2 * BOX)
    sines = np.sin(m * (np.clip(U, -REACH, REACH)[:, :, None] + BOX)) / np.sqrt(BOX)
    return np.column_stack([np.ones(len(U)), sines.reshape(len(U), -1)])


def _variances(k: int, a: float, length: float) -> Array:
    """Of the weights; b ~ N(0, 1)."""
    w = np.pi * np.arange(1, SINES + 1) / (2 * BOX)
    S = np.sqrt(2 * np.pi) * length * np.exp(-0.5 * (length * w) ** 2)
    return np.concatenate([[1.0], np.tile(a / k * S, k)])


def _best(basis: Array, squares: Array, variances: Array) -> tuple[Array, float]:
    """The most probable weights, and Laplace's evidence, less (n/2) log 2 pi."""
    white = basis * np.sqrt(variances)  # so that weights have a prior of N(0, 1)
    w = np.zeros(len(variances))
    w[0] = 0.5 * np.log(np.mean(squares) + 1e-300)
    for _ in range(STEPS):
        clock.check()  # a second and more for some thousand rows, on a busy machine
        e = squares * np.exp(-2 * (white @ w))
        H = (white.T * (2 * e)) @ white
        H[np.diag_indices(len(w))] += 1.0
        L = np.linalg.cholesky(H)
        step = np.linalg.solve(L.T, np.linalg.solve(L, white.T @ (e - 1) - w))
        moved = float(np.max(np.abs(white @ step)))
        w = w + step * min(1.0, 1.0 / moved if moved > 0 else 1.0)  # g by one at most
        if moved < STILL:
            break
    g = white @ w
    log_det = 2 * float(np.sum(np.log(np.diag(L))))
    value = -np.sum(g) - 0.5 * np.sum(squares * np.exp(-2 * g)) - 0.5 * w @ w - 0.5 * log_det
    return w * np.sqrt(variances), float(value)
