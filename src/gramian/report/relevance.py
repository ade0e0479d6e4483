r"""Which columns matter: shares of the variance of f's posterior mean that go with each column.

With the columns drawn independently of each other, each as the training rows have it, f's mean m(x) has a
variance V, and a column j two shares of it (Sobol 2001):

    first    var E[m | x_j] / V          what is known of m by x_j alone
    total    E var[m | all but x_j] / V  what is lost without x_j, its interactions with others included

From two sets A and B of rows, and A_j, A with column j of B:

    first = mean m(B) (m(A_j) - m(A)) / V,    total = mean (m(A) - m(A_j))^2 / (2 V)

Sources: Saltelli and others 2010, table 2 (b) and (f) (Jansen 1999). Cost: (columns + 2) predictions of the
mean for each of ROWS rows; standard errors are about 1 / sqrt(ROWS). Columns that go together in the data are
taken apart here, so that some of the points lie where there are no data, and m is what the prior says.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.gram.few import ROWS as FEW
from gramian.params.space import aligned, html_table

ROWS, FEWEST = 1024, 128
BUDGET, CELLS = 5e7, 5e7  # kernel values that a summary spends, and numbers of the points that they are at


class ColumnShare(NamedTuple):
    """A column, and its shares of the variance of the mean."""

    name: str
    first: float
    total: float


@dataclass(frozen=True)
class Relevance:
    """Columns by how much they matter, the first most; `relevance["temp"]` is the total share of one."""

    rows: tuple[ColumnShare, ...]

    def __getitem__(self, name: str) -> float:
        for row in self.rows:
            if row.name == name:
                return row.total
        raise KeyError(f"no column named {name!r}; there are {', '.join(row.name for row in self.rows)}")

    def __iter__(self) -> Iterator[ColumnShare]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, float]:
        """Column to total share."""
        return {row.name: row.total for row in self.rows}

    def cells(self) -> list[tuple[str, str, str]]:
        """A line of titles, then one a column."""
        shown = [(row.name, f"{100 * row.total:.0f} %", f"{100 * row.first:.0f} %") for row in self.rows]
        return [("column", "total", "by itself"), *shown]

    def __str__(self) -> str:
        return "\n".join(aligned(self.cells(), ("column",)))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.cells())


def relevance(mean: Callable[[Array], Array], X: Array, names: Sequence[str], rows: int = ROWS) -> Relevance:
    """Of a mean (n, d) -> (n, q) over the rows of X; shares of several functions are averaged."""
    rng, d = np.random.default_rng(0), X.shape[1]
    # of few rows each as often as any other; read in their order, and shuffled column by column
    chosen = [np.sort(np.resize(rng.permutation(len(X)), rows)) for _ in range(2)]
    A, B = (rng.permuted(np.asarray(X[own]), axis=0) for own in chosen)
    mixed = (np.where(np.arange(d) == j, B, A) for j in range(d))  # one at a time: each is as large as A
    # one after the other: few kernel values at a time need no compiled program
    values = np.stack([mean(points) for points in itertools.chain((A, B), mixed)])
    values = values - np.mean(values[:2], axis=(0, 1))
    at_A, at_B, at_mixed = values[0], values[1], values[2:]
    V = np.mean(values[:2] ** 2, axis=(0, 1))
    scale = np.where(V > 0, V, 1.0)  # of a constant mean all shares are 0
    first = np.mean(np.mean(at_B * (at_mixed - at_A), axis=1) / scale, axis=1)
    total = np.mean(np.mean((at_A - at_mixed) ** 2, axis=1) / (2 * scale), axis=1)
    first, total = np.clip(first, 0.0, 1.0), np.clip(total, 0.0, 1.0)
    shares = [ColumnShare(name, float(first[j]), float(total[j])) for j, name in enumerate(names)]
    return Relevance(tuple(sorted(shares, key=lambda share: -share.total)))


def affordable(n: int, d: int) -> int:
    """Rows for a summary of a model of n rows and d columns; 0 where that would take too long."""
    rows = min(ROWS, int(BUDGET / (max(n, 1) * (d + 2))), int(CELLS / (d * (d + 2))))
    if n <= FEW:
        rows = min(rows, FEW**2 // n)  # kernel values in NumPy
    return rows if rows >= FEWEST else 0
