"""Outputs that inform each other: Gaussian noise on one function of x and of an output's number.

What was observed of q outputs is one long table: a row for each entry of Y that is there, (x_i, k), with

    r = (y_ik - m_k(x_i)) / s_k,    D = noise_k / s_k^2,    K = sum_t k_t(x, x') B_t[k, k']

and the posterior is that of `conjugate` on any engine. An entry that is missing has no row, so that gaps,
places where one output alone was seen, and outputs with different inputs need no care. The noise of an output
has the gradient sum_i d log p / dD_i over its rows, d log p / dD = (alpha^2 - diag A^-1) / 2.

Cost: that of the engine on as many rows as entries, (n q)^3 for Cholesky.
Sources: Goovaerts 1997, chapter 6 (cokriging); Alvarez, Rosasco and Lawrence 2012, sections 4 and 5.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.engines.base import Share, Workspace
from gramian.errors import ParameterError
from gramian.inference.base import Cavities, Graded, RuleOnEngine, Scheme
from gramian.inference.conjugate import noisy_gradient
from gramian.inference.model import Data, Evidence, Inferred, Model, noise_gradient
from gramian.kernels.base import Kernel
from gramian.likelihoods import Gaussian
from gramian.linalg.cost import Cost
from gramian.linalg.threads import one_blas_thread
from gramian.means import HostBlock, ZeroMean
from gramian.params import fixed
from gramian.processes.base import Process
from gramian.processes.outputs import Outputs, numbered, of_outputs
from gramian.processes.prior import mean_rows
from gramian.processes.state import Context

FIT_ENTRIES = 2000  # of Y that parameters are searched on: beyond, an evaluation takes seconds


class Entries(NamedTuple):
    """Where Y was observed, and the long table's rows of it."""

    data: Data
    row: Indices  # (N,)
    output: Indices  # (N,)
    X: Array  # (N, d + 1)


class Long(NamedTuple):
    """A model of outputs as one of a long table."""

    entries: Entries
    model: Model
    data: Data  # r, with D as known noise
    mean: HostBlock


@dataclass(frozen=True, eq=False)
class CoregionalOnEngine(RuleOnEngine):
    """Inference in closed form on the long table."""

    part: int | None = None  # rows of x to search parameters on, where all entries would be too many

    values_alone = False
    local = False
    between = "coupled"

    @property
    def fit_rows(self) -> int | None:  # type: ignore[override]
        return self.part if self.engine.fit_rows is None else self.engine.fit_rows

    @property
    def described(self) -> str:
        return f"{self.engine.described}; coupled outputs"

    @property
    def fit_rule(self) -> str:  # type: ignore[override]
        return "uniform"

    def on_few_rows(self) -> CoregionalOnEngine:
        few = super().on_few_rows()
        return self if few is self else dataclasses.replace(self, engine=few.engine)

    def learns_from(self, n: int) -> bool:
        return True

    def check_fits(self, model: Model, d: int) -> None:
        self.inference.check(model.likelihood, self.engine)
        if not self.engine.variances:
            raise ParameterError(
                f'method="{self.name}" does not tell how well each row is known from the others, by which the'
                ' noise of each output is found. Use method="exact", "vfe" or "nystrom".'
            )
        self.engine.check_fits(long_kernel(model, d), d + 1)

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> CoregionalOnEngine:
        kernel, X = long_kernel(model, data.X.shape[1]), entries(data).X
        return dataclasses.replace(self, engine=self.engine.prepared(kernel, X, rng))

    def stale(self, model: Model, data: Data) -> bool:
        return self.engine.stale(long_kernel(model, data.X.shape[1]), entries(data).X)

    def context(self, model: Model, data: Data, d: int) -> Context:
        if self.holds_rows:
            long = unfolded(model, data)
            inner = super().context(long.model, long.data, d + 1)
        else:  # the file has none
            nothing = Data(np.zeros((0, d + 1)), np.zeros((0, 1)), np.ones(1))
            inner = super().context(_long_model(model, d), nothing, d + 1)
        names = f"coupled outputs on {type(self.engine).__name__}"
        return Context(names, ("outputs",), data.prior(model), (), None, d, model=model, inner=inner)

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        long = unfolded(model, data)
        found = super().infer(long.model, long.data, report)
        process = Outputs(found.posterior, model.mean, data.scale, model.outputs)
        return found._replace(posterior=process, evidence=_moved(found.evidence, data.log_slopes(model)))

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        long = unfolded(model, data, workspace)
        return _moved(super().evidence(long.model, long.data, workspace), data.log_slopes(model))

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        long = unfolded(model, data, workspace)
        kernel, X, D, r = long.model.kernel, long.data.X, long.data.noise_var, long.data.Y
        assert D is not None
        engine = self.engine.ready(kernel, X)
        with one_blas_thread():
            found = noisy_gradient(engine, kernel, X, D, r, workspace, rowwise=True)
        assert found.by_D is not None
        q, (row, output) = data.Y.shape[1], long.entries[1:3]
        by_mean = np.zeros(data.Y.shape)
        by_mean[row, output] = found.alpha / data.scale[output]
        by_noise = noise_gradient(model, data, np.bincount(output, found.by_D, q).astype(np.float64))
        by_warp = [] if model.warp is None else model.warp.pull(data.Y, -by_mean)
        by_kernel, by_outputs = _parted(model, found.gradients.by_kernel)
        points = found.gradients.by_points
        # points that were chosen just now are nobody's to move
        free = [] if points is None or engine is not self.engine else [engine.free_gradient(points)]
        parts = [*by_kernel, *long.mean.pull(by_mean), np.asarray(by_noise), *by_warp, *by_outputs, *free]
        return _moved(found.evidence, data.log_slopes(model)), parts

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        assert isinstance(posterior, Outputs)
        long = unfolded(model, data)
        seen = super().cavities(long.model, long.data, posterior.inner)
        mean, var = posterior.moments(data.X)
        _, row, output, _ = long.entries
        s = data.scale[output]
        mean[row, output] = long.mean.values[row, output] + s * seen.mean[:, 0]
        var[row, output] = s**2 * seen.var[:, 0]
        return Cavities(mean, var)

    def edited(
        self, model: Model, data: Data, kept: Indices, inferred: Inferred, rng: np.random.Generator
    ) -> tuple[Scheme, Inferred]:
        kernel, X = long_kernel(model, data.X.shape[1]), entries(data).X
        scheme = dataclasses.replace(self, engine=self.engine.on_other_rows(kernel, X, rng))
        return scheme, scheme.infer(model, data)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return self.engine.work(n * q, d + 1, 1, gradient)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return self.engine.bytes_needed(n * q, d + 1, 1)


def coregional(scheme: Scheme, n: int, q: int) -> CoregionalOnEngine:
    """A method in closed form for n rows of q outputs that inform each other."""
    rule = scheme.conjugated()
    if rule is None:
        raise ParameterError(
            f'The method {scheme.name!r} knows no outputs that inform each other. Use method="exact",'
            ' "vfe" or "nystrom".'
        )
    part = FIT_ENTRIES // q if n * q > FIT_ENTRIES else None
    return CoregionalOnEngine(rule.inference, rule.engine, part)


def entries(data: Data) -> Entries:
    """The entries of Y that were observed, row by row."""
    row, output = np.nonzero(np.isfinite(data.Y))
    return Entries(data, row, output, numbered(np.asarray(data.X)[row], output))


def unfolded(model: Model, data: Data, workspace: Workspace | None = None) -> Long:
    """The long table, and the model of it."""
    known = None if workspace is None else workspace.kept
    if not isinstance(known, Entries) or known.data is not data:
        known = entries(data)
        if workspace is not None:
            workspace.kept = known
    _, row, output, X = known
    q = data.Y.shape[1]
    mean = mean_rows(model.mean, data.X, q)
    r = (data.under(model).Y - mean.values) / data.scale
    noise = np.broadcast_to(model.gaussian.variances(), (q,))[output]
    if data.added_noise is not None:
        noise = noise + data.added_noise[row]
    long = Data(X, r[row, output][:, None], np.ones(1), noise / data.scale[output] ** 2)
    return Long(known, _long_model(model, data.X.shape[1]), long, mean)


def long_kernel(model: Model, d: int) -> Kernel:
    """K of the long table."""
    if len(model.outputs) == 1:
        return of_outputs(model.kernel, model.outputs[0], d)
    terms = [of_outputs(term, by, d) for term, by in _terms(model)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _terms(model: Model) -> list[tuple[Kernel, Kernel]]:
    terms = model.kernel.summands
    if len(terms) != len(model.outputs):
        raise ParameterError(
            f"{len(model.outputs)} matrices between outputs were given for the {len(terms)} summands of"
            f" {model.kernel}. Give one, which is for all of them, or as many."
        )
    return list(zip(terms, model.outputs, strict=True))


def _parted(model: Model, gradients: list[Array]) -> tuple[list[Array], list[Array]]:
    """Those by the kernel's parameters and by those between outputs, which stand in turn in the long
    kernel's."""
    if len(model.outputs) == 1:
        count = len(model.kernel.paths)
        return gradients[:count], gradients[count:]
    own: list[Array] = []
    between: list[Array] = []
    rest = iter(gradients)
    for term, by in _terms(model):
        own += [next(rest) for _ in term.paths]
        between += [next(rest) for _ in by.paths]
    return own, between


def _long_model(model: Model, d: int) -> Model:
    return Model(long_kernel(model, d), ZeroMean(), Gaussian(fixed(0.0)))


def _moved(evidence: Evidence, by: float) -> Evidence:
    return dataclasses.replace(evidence, value=evidence.value + by) if by else evidence
