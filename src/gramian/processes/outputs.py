"""Several outputs that inform each other, as one function g of x and of an output's number k:

    f_k(x) = m_k(x) + s_k g(x, k)

A row of x is q rows of g, (x, 0) ... (x, q - 1), so that whatever g has been conditioned on (any output, at
any place) tells about all outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.kernels.base import Kernel
from gramian.kernels.inputs import On
from gramian.linalg.state import ObjectState, entries
from gramian.means import Mean
from gramian.processes.base import Process, with_noise
from gramian.processes.prior import GaussianProcess, mean_block
from gramian.processes.state import Context

JOINT = 256  # rows of g whose covariances with each other are held at once


def numbered(X: Array, outputs: NDArray[Any]) -> Array:
    """The rows of X, each with the number of an output as a last column."""
    return np.column_stack([np.asarray(X, dtype=np.float64), outputs.astype(np.float64)])


def of_outputs(kernel: Kernel, by: Kernel, d: int) -> Kernel:
    """A kernel of d columns of x, times one of the column of outputs behind them."""
    return On(kernel, tuple(range(d))) * On(by, (d,))


@dataclass(frozen=True, eq=False)
class Outputs(Process):
    """f from g."""

    kind: ClassVar[str] = "outputs"
    dependent = True

    inner: Process  # g
    mean_function: Mean
    scale: Array  # (q,)
    between: tuple[Kernel, ...]  # the kernels of an output's number: one for all of g, or one a summand

    @property
    def q(self) -> int:
        return len(self.scale)

    def mean(self, X: Array) -> Array:
        return self._units(X, self.inner.mean(self._all(X)))

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.inner.moments(self._all(X))
        return self._units(X, mean), var.reshape(-1, self.q) * self.scale**2

    def cov(self, X: Array) -> Array:
        covs = [self.inner.cov(numbered(X, np.full(len(X), k)))[:, :, 0] for k in range(self.q)]
        out = np.stack(covs, axis=2) * self.scale**2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def joint(self, X: Array) -> Array:
        q, step = self.q, max(1, JOINT // self.q)
        out = np.empty((len(X), q, q))
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            cov = self.inner.cov(self._all(rows))[:, :, 0].reshape(len(rows), q, len(rows), q)
            out[start : start + step] = np.einsum("ikil->ikl", cov)
        out *= self.scale[:, None] * self.scale[None, :]
        np.einsum("ikk->ik", out)[...] = self.moments(X)[1]
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        g = self.inner.sample(rng, self._all(X), n_samples).reshape(len(X), self.q, n_samples)
        m = mean_block(self.mean_function, X, self.q)
        return with_noise(m[:, :, None] + self.scale[None, :, None] * g, noise, rng)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        d = X.shape[1]
        mean, var = (part[:, :d, 0].reshape(-1, self.q, d) for part in self.inner.gradient(self._all(X)))
        slopes = GaussianProcess(self.between[0], self.mean_function, self.scale).mean_slopes(X)
        return slopes + np.swapaxes(mean, 1, 2) * self.scale, np.swapaxes(var, 1, 2) * self.scale**2

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        between = self.between if len(self.between) > 1 else self.between * len(terms)
        own = [of_outputs(term, by, X.shape[1]) for term, by in zip(terms, between, strict=True)]
        found = self.inner.components(self._all(X), own)
        return [
            (mean.reshape(-1, self.q) * self.scale, var.reshape(-1, self.q) * self.scale**2)
            for mean, var in found
        ]

    def state(self, context: Context) -> ObjectState:
        assert context.inner is not None
        inner = self.inner.state(context.inner)
        return ObjectState({"kind": self.kind, "inner": inner.described}, inner.arrays)

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> Outputs:
        _, described = entries(state.described, "posterior", "kind", "inner")
        if context.inner is None:
            raise StateError("its posterior is of outputs that inform each other, but its method is not.")
        inner = context.inner.process(described, state.arrays)
        return cls(inner, context.prior.mean_function, context.prior.scale, context.model.outputs)

    def _all(self, X: Array) -> Array:
        """Every row with every output's number, (n q, d + 1)."""
        return numbered(np.repeat(X, self.q, axis=0), np.tile(np.arange(self.q), len(X)))

    def _units(self, X: Array, mean: Array) -> Array:
        return mean_block(self.mean_function, X, self.q) + self.scale * mean.reshape(-1, self.q)
