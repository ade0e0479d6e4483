"""What a search has seen, an evaluation after another: for a picture, and for questions after a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramian.arrays import Array
from gramian.params import ParameterSpace

MOST_KEPT = 100_000  # numbers of all places together: of more parameters than that allows none are kept


@dataclass(frozen=True, eq=False)
class SearchPath:
    """One search: its heights, and where each of them was."""

    what: str  # of what it was, on how many rows
    at: Array  # (E,), the evaluations or steps, from 1 on, that these are
    heights: Array  # (E,), what is maximised there: log evidence and log prior; -inf where it failed
    thetas: Array  # (E, p), without its columns where they would be too many
    space: ParameterSpace | None = None  # what theta stands for

    @property
    def names(self) -> list[str]:
        """One an entry of theta, as in `parameters_`; none where places were not kept."""
        return [] if self.space is None or not self.thetas.size else self.space.names

    @property
    def values(self) -> Array:
        """The parameters themselves at each evaluation, (E, p)."""
        if not self.names or self.space is None:
            return np.empty((len(self.heights), 0))
        rows = [np.concatenate([v.ravel() for v in self.space.values(u).values()]) for u in self.thetas]
        return np.array(rows)


def path_of(what: str, seen: Sequence[tuple[int, float, Array]], space: object) -> SearchPath:
    """The path of a search from its evaluations: their numbers, heights and vectors, which begin with theta.
    `space`: theta's, where the search has one."""
    own = space if isinstance(space, ParameterSpace) else None
    p = 0 if own is None else own.size
    kept = p if p * len(seen) <= MOST_KEPT else 0
    thetas = np.array([vector[:kept] for _, _, vector in seen]).reshape(len(seen), kept)
    at, heights = (np.array([one[k] for one in seen], dtype=np.float64) for k in (0, 1))
    return SearchPath(what, at, heights, thetas, own)
