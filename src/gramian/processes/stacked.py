"""Independent processes side by side: functions with kernels of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.processes.base import Process

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stacked(Process):
    """Each part is for the outputs that `columns` says."""

    parts: tuple[Process, ...]
    columns: tuple[tuple[int, ...], ...]

    def mean(self, X: Array) -> Array:
        return self._together([part.mean(X) for part in self.parts])

    def moments(self, X: Array) -> tuple[Array, Array]:
        pairs = [part.moments(X) for part in self.parts]
        return self._together([mean for mean, _ in pairs]), self._together([var for _, var in pairs])

    def cov(self, X: Array) -> Array:
        return self._together([part.cov(X) for part in self.parts])

    def gradient(self, X: Array) -> tuple[Array, Array]:
        pairs = [part.gradient(X) for part in self.parts]
        return self._together([mean for mean, _ in pairs]), self._together([var for _, var in pairs])

    def _together(self, arrays: list[Array]) -> Array:
        """Joined in the last axis, in the order of the outputs."""
        order = np.argsort([k for columns in self.columns for k in columns])
        return np.concatenate(arrays, axis=-1)[..., order]


def side_by_side(parts: list[tuple[Process, list[int]]]) -> Process:
    """One process from several, each with the outputs it is for."""
    if len(parts) == 1:
        return parts[0][0]
    return Stacked(tuple(process for process, _ in parts), tuple(tuple(columns) for _, columns in parts))
