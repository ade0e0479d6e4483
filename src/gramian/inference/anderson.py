"""Anderson acceleration of a fixed-point iteration x <- G(x).

With residuals r = G(x) - x of the last few points, their combination of least residual is gone on from: gamma
minimises |r - dR gamma| over the differences dR of residuals, and

    x_new = x + r - (dX + dR) gamma

which is a quasi-Newton method for r = 0. Cost: a few vectors, and a least squares problem of as many columns.
Whoever uses it decides whether a point is taken. Source: Walker and Ni 2011.
"""

from __future__ import annotations

import numpy as np

from gramian.arrays import Array


class Anderson:
    """The last `memory` points of an iteration; directions shorter than `condition` tell nothing."""

    def __init__(self, memory: int = 8, condition: float = 1e-8) -> None:
        self.memory, self.condition = memory, condition
        self.points: list[Array] = []
        self.residuals: list[Array] = []

    @property
    def plain(self) -> bool:
        """Whether there is no history yet."""
        return len(self.points) < 2

    def propose(self, x: Array, mapped: Array, weight: Array | None = None, rho: float = 1.0) -> Array | None:
        """Where to go from x, for which G(x) = mapped; None while there is no history. `weight` makes entries
        comparable; `rho` is the share of the way that will be gone."""
        self.points = [*self.points[-self.memory :], x]
        self.residuals = [*self.residuals[-self.memory :], mapped - x]
        if self.plain:
            return None
        dX = np.diff(np.stack(self.points, axis=-1), axis=-1)
        dR = np.diff(np.stack(self.residuals, axis=-1), axis=-1)
        last = self.residuals[-1]
        w = np.ones_like(last) if weight is None else weight
        columns = (dR * w[..., None]).reshape(-1, dR.shape[-1])
        gamma, *_ = np.linalg.lstsq(columns, (last * w).ravel(), rcond=self.condition)
        return x + last - (dX / rho + dR) @ gamma

    def reset(self) -> None:
        """Forgets all."""
        self.points, self.residuals = [], []
