"""K through its products alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference.algebra.base import Prior, Sited, Term
from gramian.inference.base import GaussianProcess
from gramian.inference.iterative import Iterative, KrylovPosterior, System
from gramian.kernels.base import Kernel

Array = NDArray[np.float64]

LEAST = 1e-6  # of 1 / k(x, x): lam decides on the condition of K + D


class Krylov(Prior):
    """K through its products alone."""

    def __init__(self, kernel: Kernel, X: Array, engine: Iterative) -> None:
        self.kernel, self.X, self.engine = kernel, np.asarray(X, dtype=np.float64), engine
        self.diagonal = tiles.diagonal(kernel, self.X)

    def condition(self, lam: Array, h: Array) -> KrylovSited:
        lam = np.maximum(lam, LEAST / np.maximum(self.diagonal, 1e-300))
        operator = GramOperator(self.kernel, self.X, 1 / lam)
        system = self.engine.system(operator)
        solution = system.factor.solve(h / lam)
        if not solution.outcome.converged:
            system = self.engine.system(operator, stronger=True)
            solution = system.factor.solve(h / lam)
        if not solution.outcome.converged:
            raise NumericalError(
                f"{self.engine.name.upper()} on K with the sites missed its tolerance:"
                f" {solution.outcome.note}"
            )
        return KrylovSited(
            self, lam, self.times(solution.value), solution.value, system, solution.outcome.iterations
        )

    def times(self, b: Array) -> Array:
        return tiles.matmul(self.kernel, self.X, self.X, b[:, None])[:, 0]

    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        left, right = [], []
        for term in terms:
            assert isinstance(term.sited, KrylovSited)
            a = term.sited.alpha[:, None]
            left.append(0.5 * a)
            right.append(a)
            if term.u is not None:
                left += [0.5 * term.u[:, None], 0.5 * a]
                right += [a, term.u[:, None]]
            if term.logdet:
                U, V = term.sited.system.factor.probe_pair()
                left += [-0.25 / U.shape[1] * U, -0.25 / U.shape[1] * V]
                right += [V, U]
        return tiles.low_rank_pullback(self.kernel, self.X, np.hstack(left), np.hstack(right))

    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> KrylovPosterior:
        systems = []
        for one in sited:
            assert isinstance(one, KrylovSited)
            systems.append(one.system)
        alpha = np.stack([one.alpha for one in sited], axis=1)
        return KrylovPosterior(prior, self.X, alpha, tuple(systems), tuple(range(len(sited))))


@dataclass(eq=False)
class KrylovSited(Sited):
    """A solved system."""

    prior: Krylov
    lam: Array
    mean: Array
    alpha: Array
    system: System
    solves: int

    @cached_property
    def _estimate(self) -> tuple[float, float]:
        value, error = self.system.factor.logdet_estimate()
        return value + float(np.sum(np.log(self.lam))), error

    @property
    def logdet(self) -> float:  # type: ignore[override]  # costly, so only when asked for; nobody sets it
        return self._estimate[0]

    @property
    def logdet_error(self) -> float:  # type: ignore[override]  # the same
        return self._estimate[1]

    @cached_property
    def var(self) -> Array:
        """By n solves, in blocks."""
        out = np.empty(len(self.mean))
        for start in range(0, len(out), 256):
            at = slice(start, min(start + 256, len(out)))
            K = tiles.cross(self.prior.kernel, self.prior.X, self.prior.X[at])
            out[at] = self.prior.diagonal[at] - np.einsum("ij,ij->j", K, self.system.factor.solve(K).value)
        return np.maximum(out, 0.0)

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        return Kb - self.prior.times(self.system.factor.solve(Kb).value)
