"""Gaussian noise: the rule that ends after one step.

The sites of y = f + e, e ~ N(0, D), are lam = 1 / D and h = lam r with r = (y - m) / s, and that is the
posterior:

    log p = -1/2 r'A^-1 r - 1/2 log det A - n/2 log 2 pi,      A = K + D
    d log p / dK = 1/2 alpha alpha' - 1/2 A^-1,   d log p / dD = diag(that),   d log p / dm = alpha / s

Engines whose features leave e_i of k(x_i, x_i) out as a bound add -1/2 sum_i e_i / D_i (Titsias 2009). What
was not observed, NaN in Y, has no site. Outputs with the same noise, observed at the same rows, share all of
it; the evidence is the sum over outputs.

Source: Rasmussen and Williams 2006, algorithm 2.1, equations 5.9 and 5.10 to 5.12.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.engines.base import Conditioned, Engine, Gradients, RowPrior, Share, Use, Workspace, added
from gramian.errors import NumericalError, ParameterError
from gramian.inference import far
from gramian.inference.base import Cavities, Inference, Scheme, on_engine
from gramian.inference.model import (
    Data,
    Evidence,
    EvidenceKind,
    Inferred,
    Model,
    noise_gradient,
    noise_groups,
)
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.processes.base import Edit, Process
from gramian.processes.prior import mean_rows
from gramian.solvers.base import SolveOutcome

LOG_2PI = math.log(2 * math.pi)


class Observed(NamedTuple):
    """Outputs with one noise that were observed at the same rows."""

    outputs: list[int]
    rows: int  # how many those are
    D: Array  # (n,), infinite where nothing was observed
    r: Array  # (n, outputs): residuals (y - m) / s
    at: Any  # an index of the outputs: a slice where it is all of them


@dataclass(frozen=True)
class Conjugate(Inference):
    """Inference in closed form."""

    name = "conjugate"
    kind: ClassVar[EvidenceKind] = "exact"
    closed = True

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        if not likelihood.conjugate:
            raise ParameterError(
                f'{type(likelihood).__name__} has no posterior in closed form. Use inference="laplace", "ep",'
                ' "vi" or "mcmc".'
            )

    def infer(self, model: Model, data: Data, engine: Engine, report: Share | None = None) -> Inferred:
        if data.pieces:
            return far.infer(model, data, engine, report)
        prior = engine.at(model.kernel, data.X, Use(whole=True))
        total, sited, columns = Total(engine, data.log_slopes(model)), [], []
        data = data.under(model)
        for group in observed(model, data):
            conditioned = self._conditioned(prior, group, data, engine, report)
            total.add(conditioned, group, prior)
            sited.append(conditioned)
            columns.append(group.outputs)
        process = prior.process(data.prior(model), sited, columns)
        return Inferred(process, total.evidence(), _worst([one.outcome for one in sited]))

    def evidence(self, model: Model, data: Data, engine: Engine, workspace: Workspace) -> Evidence:
        if data.pieces:
            return far.infer(model, data, engine).evidence
        prior = engine.at(model.kernel, data.X, Use(whole=True), workspace)
        total, data = Total(engine, data.log_slopes(model)), data.under(model)
        for group in observed(model, data):
            total.add(_converged(self._conditioned(prior, group, data, engine)), group, prior)
        return total.evidence()

    def evidence_and_gradient(
        self, model: Model, data: Data, engine: Engine, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        if data.pieces:
            return far.evidence_and_gradient(model, data, engine)
        prior = engine.at(model.kernel, data.X, Use(back=True, whole=True), workspace)
        total, Y, data = Total(engine, data.log_slopes(model)), data.Y, data.under(model)
        mean = mean_rows(model.mean, data.X, Y.shape[1])
        by_level, by_mean = np.empty(Y.shape[1]), np.empty(Y.shape)
        by_kernel: list[Array] = []
        by_points: Array | None = None
        for group in observed(model, data, mean.values):
            conditioned = _converged(self._conditioned(prior, group, data, engine))
            total.add(conditioned, group, prior)
            if engine.bound:
                lam = conditioned.lam
                found = conditioned.pullback(by_outside=-0.5 * len(group.outputs) * lam)
                by_level[group.at] = found.by_level + 0.5 * float(np.sum(prior.outside * lam**2))
            else:
                found = conditioned.pullback()
                by_level[group.at] = found.by_level
            by_mean[:, group.at] = conditioned.alpha / data.scale[group.at]
            by_kernel = added(by_kernel, found.by_kernel)
            if found.by_points is not None:
                by_points = found.by_points if by_points is None else by_points + found.by_points
        free = [] if by_points is None else [engine.free_gradient(by_points)]
        by_warp = [] if model.warp is None else model.warp.pull(Y, -by_mean)
        by_noise = noise_gradient(model, data, by_level)
        return total.evidence(), [*by_kernel, *mean.pull(by_mean), np.asarray(by_noise), *by_warp, *free]

    def cavities(self, model: Model, data: Data, engine: Engine, posterior: Process) -> Cavities:
        data = data.under(model)
        mean, var = np.empty(data.Y.shape), np.empty(data.Y.shape)
        # of a posterior in dual form, unless it has only the rows that were observed
        whole = posterior.dual is not None and len(posterior.dual) == len(data.X)
        known = posterior.precision() if whole else None
        prior = None if known is not None else engine.at(model.kernel, data.X, Use(whole=True))
        for group in observed(model, data):
            at, s = group.outputs, data.scale[group.outputs]
            seen = np.isfinite(group.D)
            if known is not None and posterior.dual is not None:
                alpha, precision, conditioned = posterior.dual[:, at], known[:, at], None
            else:
                assert prior is not None
                conditioned = self._conditioned(prior, group, data, engine)
                alpha, precision = conditioned.alpha, conditioned.precision()[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                mean[:, at] = data.Y[:, at] - s * alpha / precision
                var[:, at] = s**2 * (1 / precision - group.D[:, None])
            if conditioned is not None and not seen.all():  # nothing to leave out
                plain = posterior.moments(np.asarray(data.X[~seen]))
                for k in at:
                    mean[~seen, k], var[~seen, k] = plain[0][:, k], plain[1][:, k]
        return Cavities(mean, np.maximum(var, 0.0))

    def edited(self, model: Model, data: Data, kept: Indices, posterior: Process) -> Inferred | None:
        value, data = data.log_slopes(model), data.under(model)
        if data.missing is not None:
            return None
        groups, q = list(observed(model, data)), data.Y.shape[1]
        D, residual = np.empty((len(data.X) - len(kept), q)), np.empty(data.Y.shape)
        for group in groups:
            D[:, group.at], residual[:, group.at] = group.D[len(kept) :, None], group.r
        process = posterior.edited(Edit(kept, np.asarray(data.X), D, residual))
        if process is None or process.dual is None:
            return None
        value -= 0.5 * float(np.sum(residual * process.dual))
        value -= 0.5 * sum(process.logdet(k) + len(data.X) * LOG_2PI for k in range(q))
        return Inferred(process, Evidence(value), SolveOutcome())

    def _conditioned(
        self, prior: RowPrior, group: Observed, data: Data, engine: Engine, report: Share | None = None
    ) -> Conditioned:
        try:
            return prior.observe(group.D, group.r, report)
        except NumericalError as error:
            raise NumericalError(f"{error}{_cause(data) if engine.dense else ''}") from None


def closed(method: Engine | Scheme) -> Scheme:
    """A method under Gaussian noise."""
    return on_engine(method, Conjugate())


class Total:
    """The evidence, summed over groups of outputs."""

    def __init__(self, engine: Engine, value: float) -> None:
        self.engine, self.value, self.variance = engine, value, 0.0

    def add(self, one: Conditioned, group: Observed, prior: RowPrior) -> None:
        q = len(group.outputs)
        self.value -= 0.5 * sum(one.quad.tolist())
        self.value -= 0.5 * q * (one.logdet_noisy + group.rows * LOG_2PI)
        if self.engine.bound:
            self.value -= 0.5 * q * float(np.sum(prior.outside * one.lam))
        self.variance += (0.5 * q * one.logdet_error) ** 2

    def evidence(self) -> Evidence:
        error = math.sqrt(self.variance)
        if self.engine.bound:
            return Evidence(self.value, "lower bound")
        if not self.engine.exact:
            return Evidence(self.value, "approximation")
        return Evidence(self.value, "estimate", error) if error else Evidence(self.value)


class Noisy(NamedTuple):
    """An evidence of one function, with what its gradient is made of."""

    evidence: Evidence
    alpha: Array  # (n,)
    by_D: Array | None  # (n,): by the noise of each row, where that was asked for
    by_level: float  # by a number added to all of them
    gradients: Gradients


def noisy_gradient(
    engine: Engine, kernel: Kernel, X: Array, D: Array, r: Array, workspace: Workspace, rowwise: bool = False
) -> Noisy:
    """log N(r; 0, K + D) of r (n, 1), with its gradient; `rowwise`: by each D_i, too, for which the diagonal
    of A^-1 is asked for: d log p / dD = (alpha^2 - diag A^-1) / 2."""
    prior = engine.at(kernel, X, Use(back=True, whole=True), workspace)
    conditioned = _converged(prior.observe(D, r))
    total = Total(engine, 0.0)
    total.add(conditioned, Observed([0], len(D), D, r, slice(None)), prior)
    alpha, lam = conditioned.alpha[:, 0].copy(), conditioned.lam
    by_D = 0.5 * (alpha**2 - conditioned.precision()) if rowwise else None
    if not engine.bound:
        found = conditioned.pullback()
        return Noisy(total.evidence(), alpha, by_D, float(found.by_level[0]), found)
    slack = 0.5 * prior.outside * lam**2
    found = conditioned.pullback(by_outside=-0.5 * lam)
    by_D = None if by_D is None else by_D + slack
    return Noisy(total.evidence(), alpha, by_D, float(found.by_level[0] + np.sum(slack)), found)


def observed(model: Model, data: Data, m: Array | None = None) -> Iterator[Observed]:
    """The outputs, gathered by their noise and by the rows at which they were observed. `m`: the mean at the
    rows, where it is known."""
    residual, n = data.residual(model) if m is None else (data.Y - m) / data.scale, len(data.X)
    missing = data.missing
    for group in noise_groups(model, data):
        D = group.noise(n)
        if missing is None or not missing[:, group.outputs].any():
            at = slice(None) if len(group.outputs) == residual.shape[1] else group.outputs
            yield Observed(group.outputs, n, D, np.ascontiguousarray(residual[:, at]), at)
            continue
        patterns: dict[bytes, list[int]] = {}
        for k in group.outputs:
            patterns.setdefault(missing[:, k].tobytes(), []).append(k)
        for outputs in patterns.values():
            away = missing[:, outputs[0]]
            r = np.where(away[:, None], 0.0, residual[:, outputs])
            yield Observed(outputs, n - int(away.sum()), np.where(away, np.inf, D), r, outputs)


def _converged(one: Conditioned) -> Conditioned:
    """A solve that missed its tolerance says nothing about parameters."""
    if not one.outcome.converged:
        raise NumericalError(f"The solver missed its tolerance: {one.outcome.note}")
    return one


def _worst(outcomes: list[SolveOutcome]) -> SolveOutcome:
    worst = max(outcomes, key=lambda one: (not one.converged, one.residual or 0.0, bool(one.note)))
    return replace(worst, jitter=max(one.jitter for one in outcomes))


def _cause(data: Data) -> str:
    """The likely reason why K + D is singular, with names: equal rows, or none found."""
    _, first, inverse = np.unique(data.X, axis=0, return_index=True, return_inverse=True)
    repeats = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(data.X)))
    if not len(repeats):
        return ""
    j = int(repeats[0])
    i = int(first[inverse.reshape(-1)[j]])
    gap = np.nanmax(np.abs(data.Y[i] - data.Y[j]), initial=0.0)
    return (
        f" Rows {i} and {j} of X are equal (their y differ by {gap:.3g}); {len(repeats)} rows repeat another."
    )
