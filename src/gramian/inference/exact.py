"""Exact inference under Gaussian noise.

With r = (y - m) / s, A = K + D, D = noise / s^2, A = L L', alpha = A^-1 r:

    log p = -1/2 r' alpha - sum_i log L_ii - n/2 log 2 pi
    d log p / dtheta = 1/2 sum_ij (alpha alpha' - A^-1)_ij dA_ij / dtheta

Cost: n^3 flops with gradient (n^3 / 3 without), one array of n^2 doubles. Source: Rasmussen and Williams
2006, algorithm 2.1 and equation 5.9.

Outputs with the same D share a factor; the evidence is the sum over outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError, ParameterError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference.base import (
    Data,
    Evidence,
    GaussianProcess,
    Inference,
    Inferred,
    LeftOut,
    Model,
    Process,
    Share,
    Work,
    Workspace,
    mean_block,
    mean_gradient,
    noise_gradient,
    noise_groups,
)
from gramian.inference.posterior import Posterior
from gramian.landmarks.rules import RULES
from gramian.linalg.threads import THREADS, threads_for
from gramian.solvers.base import SolveOutcome
from gramian.solvers.cholesky import (
    ROOT_UP_TO,
    Cholesky,
    CholeskyFactor,
    inverse_in_place,
    inverse_root_in_place,
)

Array = NDArray[np.float64]

FIT_RULES = ("neighbours", *(name for name, rule in RULES.items() if rule.takes_rows))


class Group(NamedTuple):
    """Outputs that share K + D."""

    outputs: list[int]
    operator: GramOperator
    R: Array  # (n, outputs): residuals y - m in units of the scale


@dataclass(frozen=True)
class Exact(Inference):
    """Cholesky on the whole Gram matrix: the answer itself, at n^3."""

    solver: Cholesky = field(default_factory=Cholesky)
    fit_rows: int | None = None  # rows to search parameters on; None: all of few rows, a part of many
    # how that part is chosen: half at random, half near each other; "uniform", or another landmark rule that
    # takes rows
    fit_rule: str = "neighbours"

    def __post_init__(self) -> None:
        if self.fit_rows is not None and (
            isinstance(self.fit_rows, bool)
            or not isinstance(self.fit_rows, (int, np.integer))
            or self.fit_rows < 1
        ):
            raise ParameterError(
                f"Exact: fit_rows={self.fit_rows!r} must be a whole number from 1 on, or None."
            )
        if self.fit_rule not in FIT_RULES:
            raise ParameterError(
                f"Exact: fit_rule={self.fit_rule!r} is no rule that takes rows: {', '.join(FIT_RULES)}."
            )

    @property
    def name(self) -> str:
        return "exact"

    @property
    def solver_name(self) -> str:
        return "Cholesky"

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        n, q = data.Y.shape
        alpha, value, jitter = np.empty((n, q)), 0.0, 0.0
        roots: list[Array] = []
        root_of = [0] * q
        invert = n <= ROOT_UP_TO
        for group in groups(model, data):
            with threads_for(n):
                factor = self._factor(group, data, None, report)
                alpha[:, group.outputs] = factor.solve(group.R).value
                value += _log_density(factor, group.R, alpha[:, group.outputs])
                jitter = max(jitter, factor.jitter)
                for k in group.outputs:
                    root_of[k] = len(roots)
                roots.append(inverse_root_in_place(factor) if invert else factor.L)
        prior = GaussianProcess(model.kernel, model.mean, data.scale)
        posterior = Posterior(prior, data.X, alpha, tuple(roots), tuple(root_of), inverted=invert)
        return Inferred(posterior, Evidence(value), SolveOutcome(jitter=jitter))

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        value, by_mean = 0.0, np.zeros_like(data.Y)
        by_kernel, by_noise = [np.zeros(p.value.shape) for p in model.kernel.parameters().values()], 0.0
        for group in groups(model, data):
            with threads_for(len(data.X)):
                factor = self._factor(group, data, workspace)
                alpha = factor.solve(group.R).value
                value += _log_density(factor, group.R, alpha)
                inverse = inverse_in_place(factor).T  # row-major, upper triangle
            # of log p with respect to D, one number an output
            by_level = 0.5 * (np.sum(alpha**2, axis=0) - np.sum(np.diagonal(inverse)))
            by_noise += noise_gradient(model, data, group.outputs, by_level)
            by_mean[:, group.outputs] = alpha / data.scale[group.outputs]
            # 1/2 (alpha alpha' - q A^-1)
            weights = {"factor": -0.5 * alpha.shape[1], "low_rank": (0.5 * alpha, alpha)}
            for total, part in zip(
                by_kernel, tiles.pullback(model.kernel, data.X, inverse, **weights), strict=True
            ):
                total += part
        return Evidence(value), [*by_kernel, *mean_gradient(model, data.X, by_mean), np.asarray(by_noise)]

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        """The evidence alone: a third of the work."""
        value = 0.0
        for group in groups(model, data):
            with threads_for(len(data.X)):
                factor = self._factor(group, data, workspace)
                value += _log_density(factor, group.R, factor.solve(group.R).value)
        return Evidence(value)

    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        assert isinstance(posterior, Posterior)
        return LeftOut(posterior.alpha, posterior.precision_diagonal())

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        # A factorisation runs at about three quarters of the speed of a product.
        cubes = 1.0 if gradient else (2 / 3 if n <= ROOT_UP_TO else 1 / 3)
        return Work(cubes * float(n) ** 3 / 0.75, n * n / 2, n * n / 2 if gradient else 0.0)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        tile = tiles.tile_size(n)
        return 8 * (n * n + 4 * n * (d + q) + 8 * THREADS * tile * tile)

    def _factor(
        self, group: Group, data: Data, workspace: Workspace | None, report: Share | None = None
    ) -> CholeskyFactor:
        try:
            return self.solver.factor(
                group.operator, workspace.square(len(data.X)) if workspace else None, report
            )
        except NumericalError as error:
            raise NumericalError(f"{error}{_cause(group.operator, data)}") from None


def groups(model: Model, data: Data) -> Iterator[Group]:
    """The outputs, gathered by their noise."""
    n = len(data.X)
    residual = (data.Y - mean_block(model.mean, data.X, data.Y.shape[1])) / data.scale
    for group in noise_groups(model, data):
        operator = GramOperator(model.kernel, data.X, group.noise(slice(None), n))
        yield Group(group.outputs, operator, np.ascontiguousarray(residual[:, group.outputs]))


def _log_density(factor: CholeskyFactor, R: Array, alpha: Array) -> float:
    n, q = R.shape
    return -0.5 * float(np.sum(R * alpha)) - 0.5 * q * (factor.logdet() + n * float(np.log(2 * np.pi)))


def _cause(operator: GramOperator, data: Data) -> str:
    """The likely reason why K + D is singular, with names: equal rows, or none found."""
    _, first, inverse = np.unique(data.X, axis=0, return_index=True, return_inverse=True)
    repeats = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(operator.n))
    if not len(repeats):
        return ""
    j = int(repeats[0])
    i = int(first[inverse.reshape(-1)[j]])
    return (
        f" Rows {i} and {j} of X are equal (their y differ by {np.max(np.abs(data.Y[i] - data.Y[j])):.3g});"
        f" {len(repeats)} rows repeat another."
    )
