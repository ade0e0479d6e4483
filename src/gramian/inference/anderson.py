"""Anderson acceleration of a fixed-point iteration x <- G(x).

With residuals r = G(x) - x of the last few points, their combination of least residual is gone on from: gamma
minimises |r - dR gamma| over the differences dR of residuals, and

    x_new = x + r - (dX + dR) gamma

which is a quasi-Newton method for r = 0 (a secant approximation of the inverse Jacobian from the last
differences). Cost: a few vectors, and a least squares problem of as many columns. Whoever uses it decides
whether a point is taken. Source: Walker and Ni 2011.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MEMORY = 8
CONDITION = 1e-8  # of the least squares problem: directions that are shorter tell nothing


class Anderson:
    """The last points of an iteration."""

    def __init__(self) -> None:
        self.points: list[Array] = []
        self.residuals: list[Array] = []

    def propose(self, x: Array, mapped: Array, weight: Array) -> Array | None:
        """Where to go from x, for which G(x) = mapped; None while there is no history. `weight` makes entries
        comparable."""
        self.points, self.residuals = [*self.points[-MEMORY:], x], [*self.residuals[-MEMORY:], mapped - x]
        if len(self.points) < 2:
            return None
        dX = np.diff(np.stack(self.points, axis=-1), axis=-1)
        dR = np.diff(np.stack(self.residuals, axis=-1), axis=-1)
        last = self.residuals[-1]
        gamma, *_ = np.linalg.lstsq(
            (dR * weight[..., None]).reshape(-1, dR.shape[-1]), (last * weight).ravel(), rcond=CONDITION
        )
        return x + last - (dX + dR) @ gamma

    def reset(self) -> None:
        """Forgets all."""
        self.points, self.residuals = [], []
