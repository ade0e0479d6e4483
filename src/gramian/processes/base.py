"""The contract of a process: what can be asked of f, before or after data.

Arrays have one column an output. Work is done in blocks of rows, so that memory does not grow with the number
of points (but for `cov`). What a process cannot do is refused here, once: one that can overrides a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import lapack

from gramian.arrays import Array, Indices
from gramian.errors import ParameterError, StateError
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg import memory
from gramian.linalg.state import ObjectState

if TYPE_CHECKING:
    from gramian.processes.prior import GaussianProcess
    from gramian.processes.state import Context


class Edit(NamedTuple):
    """Rows that come and go under Gaussian noise."""

    kept: Indices  # the rows of before that stay, in their order
    rows: Array  # (n, d): all rows from now on; those that come are the last
    D: Array  # (k, q): the noise of those
    residual: Array  # (n, q): (y - m) / s of all rows from now on

    @property
    def X(self) -> Array:
        """The rows that come, (k, d)."""
        return self.rows[len(self.kept) :]


class InGaps(NamedTuple):
    """Rows that are foretold without those around them."""

    rows: Indices  # (k,)
    mean: Array  # (k, q): of f
    var: Array  # (k, q)


class Process(ABC):
    """A Gaussian process, before or after data: mean, variance, covariance and draws of f at any points."""

    kinds: ClassVar[dict[str, type[Process]]] = {}  # of this package, by the name of the kind
    kind: ClassVar[str]  # of those that can be built again from their state
    dependent: bool = False  # whether the outputs at a row depend on each other
    many_kernels: ClassVar[bool] = False  # whether functions may have kernels of their own

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in vars(cls) and cls.__module__.startswith("gramian."):
            Process.kinds[cls.kind] = cls

    @abstractmethod
    def mean(self, X: Array) -> Array:
        """E f(x): (n, q)."""

    @abstractmethod
    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x): (n, q) each; a variance is never negative."""

    @abstractmethod
    def cov(self, X: Array) -> Array:
        """Covariance of f at all pairs of rows, (n, n, q); its diagonal is `var(X)` to the last bit."""

    def var(self, X: Array) -> Array:
        """The variance of f(x): (n, q)."""
        return self.moments(X)[1]

    def joint(self, X: Array) -> Array:
        """Covariance of the outputs with each other at each row, (n, q, q); diagonal unless `dependent`."""
        var = self.var(X)
        return var[:, :, None] * np.eye(var.shape[1])

    @property
    def landmarks(self) -> Array | None:
        """The points (m, d) whose kernel functions span the mean, where there are fewer of them than rows."""
        return None

    @property
    def dual(self) -> Array | None:
        """alpha (n, q) with mean = m(x) + s k(x, X) alpha for the rows X, where that is its form."""
        return None

    @property
    def squared_norms(self) -> Array | None:
        """|mean - m|^2 / s^2 in the function space of the kernel, (q,), where its form has it."""
        return None

    def precision(self) -> Array | None:
        """The diagonal of (K + D)^-1 for each output, (n, q), beside `dual`, where its form has it."""
        return None

    def refined(self) -> Process | None:
        """The same with less of its approximation, by which the error of it is estimated, where that is quick
        for a few points."""
        return None

    def in_gaps(self, size: int, most: int, rng: np.random.Generator) -> InGaps | None:
        """Up to `most` rows as they are foretold where `size` rows that are near each other are missing, they
        among them; where that is quick."""
        return None

    def rescaled(self, c: float, prior: GaussianProcess) -> Process:
        """The posterior from another prior with which K + D is c times as large; overwrites this one."""
        raise self._cannot("the level of kernel and noise")

    def edited(self, edit: Edit) -> Process | None:
        """The posterior of other rows, from this one; None where it is to be made anew."""
        return None

    def logdet(self, output: int) -> float:
        """log det(K + D) of an output, of what `edited` gives."""
        raise self._cannot("log det(K + D)")

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Joint draws at the rows of X, (n, q, n_samples); `noise` (n, q) are variances of noise to add."""
        mean, cov = self.mean(X), self.cov(X)
        draws = np.empty((*mean.shape, n_samples))
        for k in range(mean.shape[1]):
            spread = semidefinite_root(cov[:, :, k]) @ rng.standard_normal((len(X), n_samples))
            draws[:, k, :] = mean[:, [k]] + spread
        return with_noise(draws, noise, rng)

    def drawn_under(
        self, likelihood: Likelihood, rng: np.random.Generator, X: Array, n_samples: int
    ) -> Iterator[tuple[Likelihood, Array]]:
        """Joint draws of f at the rows of X, (n, q, some) each, with the likelihood of those who see them: of
        a mixture that of each draw of the parameters."""
        yield likelihood, self.sample(rng, X, n_samples)

    def under(self, likelihood: Likelihood, X: Array) -> Iterator[tuple[Likelihood, Array, Array]]:
        """What a likelihood sees at the rows of X: itself, with mean and variance of f. Of a mixture one a
        draw, each with the likelihood of that draw."""
        yield likelihood, *self.moments(X)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f at the rows of X: (n, d, q) each."""
        raise self._cannot("the gradient of f")

    def slopes(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """Mean and variance of f(x), (n, q) each, and the gradients of both by x, (n, d, q) each."""
        raise self._cannot("the slope of its variance")

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        """Mean and variance, (n, q) each, of the part of f that each summand of the kernel stands for."""
        raise self._cannot("the summands of f")

    def state(self, context: Context) -> ObjectState:
        """Its kind and what it consists of beyond the context, for `from_state`."""
        raise StateError(f"its posterior is a {type(self).__name__}, which does not say what it consists of.")

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> Process:
        """The process again; a StateError where something does not fit."""
        raise StateError(f"a {cls.__name__} cannot be built from a state.")

    def _cannot(self, what: str) -> ParameterError:
        return ParameterError(
            f"This posterior ({type(self).__name__}) does not tell {what} apart. Use Gaussian noise with an"
            ' exact fit, or method="vfe", "fourier" or "cg".'
        )


def with_noise(draws: Array, noise: Array | None, rng: np.random.Generator) -> Array:
    """Draws (n, q, n_samples) with independent noise of the variances (n, q), where there is any."""
    if noise is not None:
        draws += np.sqrt(noise)[:, :, None] * rng.standard_normal(draws.shape)
    return draws


def users(of: Sequence[int], which: int) -> list[int]:
    """The outputs that use a root, a system, a kernel: `of` says for each which one it does."""
    return [k for k, mine in enumerate(of) if mine == which]


def blocks_of(n: int, row_bytes: int, size: int | None = None) -> list[slice]:
    """Consecutive rows that fit into the memory of a block."""
    rows = memory.block_rows(row_bytes, tiles.LARGEST_TILE, memory.BLOCK_BYTES if size is None else size)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def semidefinite_root(A: Array) -> Array:
    """R with R R' = A, by Cholesky with pivoting (dpstrf): exact where A is singular, with nothing added."""
    L, pivots, rank, _ = lapack.dpstrf(np.asfortranarray(A), lower=1)
    root: Array = np.zeros_like(L)
    root[pivots - 1, :rank] = np.tril(L)[:, :rank]
    return root
