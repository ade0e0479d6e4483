"""A process at rows with missing cells: a mixture over the cells that donors have in their place.

With x_1, ..., x_K the row completed by its K donors, f is an even mixture of f(x_k), and by the law of total
variance

    mean = E_k m(x_k),   var = E_k v(x_k) + var_k m(x_k)

Rows without gaps are asked for once. Cost: K times that of a row, for rows with gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process, with_noise

Complete = Callable[[Array], Array]  # (r, d) with NaN to (r, K, d) without


class Gapped(Process):
    """A process that is asked at rows with NaN; `complete` gives each of them K times without."""

    def __init__(self, process: Process, complete: Complete) -> None:
        self._process, self._complete = process, complete
        self.dependent = process.dependent

    def mean(self, X: Array) -> Array:
        return _average(self._each(X, lambda rows: (self._process.mean(rows),)))[0]

    def moments(self, X: Array) -> tuple[Array, Array]:
        return _mixed(*self._each(X, self._process.moments))

    def joint(self, X: Array) -> Array:
        means, joints = self._each(X, lambda rows: (self._process.mean(rows), self._process.joint(rows)))
        apart = means - np.mean(means, axis=0)
        return np.mean(joints, axis=0) + np.mean(apart[:, :, :, None] * apart[:, :, None, :], axis=0)

    def cov(self, X: Array) -> Array:
        """With the k-th donor of all rows at once."""
        tables = self._tables(X)
        means = np.stack([self._process.mean(table) for table in tables])
        apart = means - np.mean(means, axis=0)
        cov = sum(self._process.cov(table) for table in tables) / len(tables)
        cov = cov + np.einsum("kiq,kjq->ijq", apart, apart) / len(tables)
        np.einsum("iiq->iq", cov)[...] = self.var(X)
        return np.asarray(cov)

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Each draw with one donor of all rows."""
        tables = self._tables(X)
        turns = [len(range(k, n_samples, len(tables))) for k in range(len(tables))]
        drawn = [
            self._process.sample(rng, table, count)
            for table, count in zip(tables, turns, strict=True)
            if count
        ]
        return with_noise(np.concatenate(drawn, axis=2), noise, rng)

    def drawn_under(
        self, likelihood: Likelihood, rng: np.random.Generator, X: Array, n_samples: int
    ) -> Iterator[tuple[Likelihood, Array]]:
        tables = self._tables(X)
        for k, table in enumerate(tables):
            if count := len(range(k, n_samples, len(tables))):
                yield from self._process.drawn_under(likelihood, rng, table, count)

    def under(self, likelihood: Likelihood, X: Array) -> Iterator[tuple[Likelihood, Array, Array]]:
        some, rest, which = self._parted(X)
        others = self._process.under(likelihood, rest) if len(rest) else repeat((likelihood, None, None))
        for (seen, mean, var), (_, whole, spread) in zip(
            self._process.under(likelihood, some), others, strict=False
        ):
            for k in range(self._count):
                at = slice(k, None, self._count)
                yield seen, _joined(whole, mean[at], which), _joined(spread, var[at], which)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return _mixed(*self._each(X, self._process.gradient))

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        def flat(rows: Array) -> tuple[Array, ...]:
            return tuple(part for pair in self._process.components(rows, terms) for part in pair)

        found = self._each(X, flat)
        return [_mixed(*found[k : k + 2]) for k in range(0, len(found), 2)]

    # Helpers. -----------------------------------------------------------------------------------------------

    def _parted(self, X: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """The rows with gaps, completed (r K, d); the others; and which have gaps."""
        X = np.asarray(X)
        which = np.asarray(np.isnan(X).any(axis=1))
        full = self._complete(X[which])
        self._count = full.shape[1]
        return full.reshape(-1, X.shape[1]), X[~which], which

    def _tables(self, X: Array) -> list[Array]:
        some, rest, which = self._parted(X)
        return [_joined(rest, some[k :: self._count], which) for k in range(self._count)]

    def _each(self, X: Array, ask: Callable[[Array], tuple[Array, ...]]) -> list[Array]:
        """What is asked, at all rows, for each donor: (K, n, ...) an answer."""
        some, rest, which = self._parted(X)
        of_some = ask(some)
        of_rest = ask(rest) if len(rest) else (None,) * len(of_some)
        return [
            np.stack([_joined(whole, part[k :: self._count], which) for k in range(self._count)])
            for whole, part in zip(of_rest, of_some, strict=True)
        ]


def _joined(rest: Array | None, some: Array, which: NDArray[np.bool_]) -> Array:
    """Rows without and with gaps in their order."""
    if rest is None or not len(rest):
        return some
    found = np.empty((len(which), *some.shape[1:]))
    found[which], found[~which] = some, rest
    return found


def _average(answers: list[Array]) -> list[Array]:
    return [np.mean(answer, axis=0) for answer in answers]


def _mixed(means: Array, variances: Array) -> tuple[Array, Array]:
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)
