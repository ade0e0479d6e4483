"""Outputs one after the other: each is a function of x and of the outputs before it, at the same place.

    t_k = m_k(x) + s_k g_k(x, z) + noise,    z = (t of the outputs before it - centre) / scale
    p(Y | X) = prod_k p(y_k | X, outputs before it)

so that outputs may depend on each other in any way, not by covariances alone, and q Gaussian processes of one
output do it. Each has a kernel of x, and, where it has a link, one of z beside it. Outputs come in an `order`
in which those that were seen most often stand first. What was not observed of an output before another is
filled with what the chain expects of it, once, before a search of parameters, and once more where that has
moved it: with gaps of that kind the evidence is an approximation, else that of the model.

Cost: q times that of the engine. Source: Requeima, Tebbutt, Bruinsma and Turner 2019 (GPAR).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.engines.base import Engine, Share, Workspace
from gramian.engines.dense import Exact
from gramian.errors import ParameterError, StateError
from gramian.inference.base import Cavities, Graded, RuleOnEngine, Scheme
from gramian.inference.conjugate import Conjugate, noisy_gradient
from gramian.inference.model import Data, Evidence, Inferred, Model, noise_gradient
from gramian.kernels.base import Kernel
from gramian.kernels.inputs import On
from gramian.likelihoods import Gaussian
from gramian.linalg.cost import Cost
from gramian.linalg.threads import one_blas_thread
from gramian.means import ZeroMean
from gramian.params import fixed
from gramian.processes.base import Process
from gramian.processes.chain import OutputChain
from gramian.processes.prior import mean_rows
from gramian.processes.state import Context
from gramian.solvers.base import SolveOutcome

FILLED = 0.02  # of an output's scale: by how much what gaps are filled with may move before they are again


class ChainLink(NamedTuple):
    """One output of a chain, as a problem of its own."""

    output: int
    rows: Indices  # that it was observed at
    scheme: RuleOnEngine
    model: Model
    data: Data  # r = (t - m) / s, with D as known noise
    of_x: int  # parameters of the kernel of x


@dataclass(frozen=True, eq=False)
class Chained(Scheme):
    """Inference in closed form, output by output."""

    engine: Engine = field(default_factory=Exact)
    order: tuple[int, ...] = ()
    centre: Array | None = None  # (q,): what z is measured from
    # (n, q): z of all rows, with gaps filled; and the engine of each output, with its choices made
    filled: Array | None = None
    engines: tuple[Engine, ...] = ()

    closed = True
    between = "chained"
    needs_noise = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.engine.name

    @property
    def accuracy(self) -> str:  # type: ignore[override]
        return self.engine.accuracy

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.engine.exact

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.engine.smooth

    @property
    def leaves_out_cheaply(self) -> bool:  # type: ignore[override]
        return self.engine.variances

    @property
    def fit_rows(self) -> int | None:  # type: ignore[override]
        return self.engine.fit_rows

    @property
    def label(self) -> str:
        return self.engine.label

    @property
    def described(self) -> str:
        return f"{self.engine.described}; outputs in a chain"

    def on_few_rows(self) -> Chained:
        own = self.engine.dense or self.engine.linear
        return self if own else dataclasses.replace(self, engine=Exact(), engines=(), filled=None)

    # Its work. ----------------------------------------------------------------------------------------------

    def check_fits(self, model: Model, d: int) -> None:
        if sorted(self.order) != list(range(1 + len(model.others))):
            raise ParameterError(f"A chain in the order {self.order} is of other outputs than its kernels.")
        Conjugate().check(model.likelihood, self.engine)
        for place in range(len(self.order)):
            linked = link_of(model, place) is not None
            kernel = chain_kernel(model, self.order, place, d)
            self.engine.check_fits(kernel, d + place if linked else d)

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> Chained:
        T = data.under(model).Y
        centre = np.nanmean(T, axis=0) if self.centre is None else self.centre
        begun = dataclasses.replace(self, centre=centre, filled=None, engines=())
        Z = begun.completed(model, data)
        pieces = begun.pieces(model, data, Z)
        engines = [one.scheme.engine.prepared(one.model.kernel, one.data.X, rng) for one in pieces]
        return dataclasses.replace(begun, filled=Z, engines=tuple(engines))

    def stale(self, model: Model, data: Data) -> bool:
        if self.filled is None or not self.has_gaps(data):
            return False
        return bool(np.max(np.abs(self.completed(model, data) - self.filled)) > FILLED)

    def stored(self) -> Chained:
        return dataclasses.replace(self, engines=tuple(engine.stored() for engine in self.engines))

    def has_gaps(self, data: Data) -> bool:
        """Whether an output is missing somewhere where one after it was seen."""
        seen = np.isfinite(data.Y[:, list(self.order)])
        later = np.maximum.accumulate(seen[:, ::-1], axis=1)[:, ::-1]
        return bool(np.any(~seen[:, :-1] & later[:, 1:]))

    def completed(self, model: Model, data: Data) -> Array:
        """z of all rows, (n, q): what was observed, and what the chain expects of the rest."""
        assert self.centre is not None
        Z = (data.under(model).Y - self.centre) / data.scale
        m = self.level(model, data)
        for place, k in enumerate(self.order[:-1]):
            missing = np.flatnonzero(np.isnan(Z[:, k]))
            if len(missing):
                one = self.piece(model, data, Z, place)
                process = one.scheme.infer(one.model, one.data).posterior
                table = self.table(data.X, Z, place, model)[missing]
                Z[missing, k] = m[missing, k] + process.mean(table)[:, 0]
        last = self.order[-1]  # which nobody asks for
        Z[:, last] = np.where(np.isnan(Z[:, last]), 0.0, Z[:, last])
        return np.asarray(Z)

    def level(self, model: Model, data: Data) -> Array:
        """The means of the outputs at the rows, in units of z."""
        assert self.centre is not None
        return np.asarray((mean_rows(model.mean, data.X, data.Y.shape[1]).values - self.centre) / data.scale)

    def pieces(self, model: Model, data: Data, Z: Array) -> Iterator[ChainLink]:
        """Each output in its turn; `Z` as `completed` gives it."""
        return (self.piece(model, data, Z, place) for place in range(len(self.order)))

    def piece(self, model: Model, data: Data, Z: Array, place: int) -> ChainLink:
        """The problem of one output."""
        k, q, d = self.order[place], data.Y.shape[1], data.X.shape[1]
        t = data.under(model).Y[:, k]
        rows = np.flatnonzero(np.isfinite(t))
        m = mean_rows(model.mean, data.X, q).values
        r = ((t - m[:, k]) / data.scale[k])[rows]
        noise = np.full(len(rows), float(np.broadcast_to(model.gaussian.variances(), (q,))[k]))
        if data.added_noise is not None:
            noise += data.added_noise[rows]
        kernel = chain_kernel(model, self.order, place, d)
        engine = self.engines[place] if self.engines else self.engine
        own = Data(
            np.ascontiguousarray(self.table(data.X, Z, place, model)[rows]),
            r[:, None],
            np.ones(1),
            noise / data.scale[k] ** 2,
        )
        own_model = Model(kernel, ZeroMean(), Gaussian(fixed(0.0)))
        count = len((model.kernel, *model.others)[k].paths)
        return ChainLink(k, rows, RuleOnEngine(Conjugate(), engine), own_model, own, count)

    def table(self, X: Array, Z: Array, place: int, model: Model) -> Array:
        """What an output sees: x, and the outputs before it where it has a link."""
        if link_of(model, place) is None:
            return np.asarray(X)
        return np.hstack([X, Z[:, list(self.order[:place])]])

    def _z(self, model: Model, data: Data) -> Array:
        known = self.filled
        return known if known is not None and len(known) == len(data.X) else self.completed(model, data)

    def _ready(self, model: Model, data: Data) -> Chained:
        """The same with what must be chosen for these rows."""
        if self.centre is not None and self.filled is not None and len(self.filled) == len(data.X):
            return self
        return self.prepared(model, data, np.random.default_rng(0))

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        self = self._ready(model, data)
        Z, q = self._z(model, data), len(self.order)
        value, found = data.log_slopes(model), []
        for place, one in enumerate(self.pieces(model, data, Z)):
            found.append(one.scheme.infer(one.model, one.data))
            value += found[-1].evidence.value
            if report is not None:
                report((place + 1) / q)
        process = self.process(model, data, tuple(one.posterior for one in found))
        worst = max((one.outcome for one in found), key=lambda one: (not one.converged, one.jitter))
        return Inferred(process, self._told(value, found[0].evidence, data), worst or SolveOutcome())

    def process(self, model: Model, data: Data, parts: tuple[Process, ...]) -> OutputChain:
        """f from what each output's own process is."""
        assert self.centre is not None
        linked = tuple(link_of(model, place) is not None for place in range(len(self.order)))
        noise = np.broadcast_to(model.gaussian.variances(), data.scale.shape)
        T = data.under(model).Y
        known = np.asarray(data.X), (T - self.centre) / data.scale
        return OutputChain(parts, self.order, linked, model.mean, data.scale, noise, self.centre, *known)

    def _told(self, value: float, first: Evidence, data: Data) -> Evidence:
        exact = first.kind == "exact" and not self.has_gaps(data)
        return Evidence(value, "exact" if exact else "approximation")

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        self = self._ready(model, data)
        value, first = data.log_slopes(model), None
        for one in self.pieces(model, data, self._z(model, data)):
            found = one.scheme.evidence(one.model, one.data, Workspace())
            value, first = value + found.value, first or found
        assert first is not None
        return self._told(value, first, data)

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        self = self._ready(model, data)
        q = data.Y.shape[1]
        value, by_level, by_mean = data.log_slopes(model), np.zeros(q), np.zeros(data.Y.shape)
        by_x: dict[int, list[Array]] = {}
        by_links: list[Array] = []
        first: Evidence | None = None
        for one in self.pieces(model, data, self._z(model, data)):
            kernel, X, D, r = one.model.kernel, one.data.X, one.data.noise_var, one.data.Y
            assert D is not None
            engine = one.scheme.engine.ready(kernel, X)
            with one_blas_thread():
                found = noisy_gradient(engine, kernel, X, D, r, workspace)
            value, first = value + found.evidence.value, first or found.evidence
            by_mean[one.rows, one.output] = found.alpha / data.scale[one.output]
            by_level[one.output] = found.by_level
            by_x[one.output] = found.gradients.by_kernel[: one.of_x]
            by_links += found.gradients.by_kernel[one.of_x :]
        assert first is not None
        mean = mean_rows(model.mean, data.X, q).pull(by_mean)
        others = [part for k in range(1, q) for part in by_x[k]]
        by_warp = [] if model.warp is None else model.warp.pull(data.Y, -by_mean)
        noise = np.asarray(noise_gradient(model, data, by_level))
        return self._told(value, first, data), [*by_x[0], *mean, noise, *others, *by_warp, *by_links]

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        assert isinstance(posterior, OutputChain)
        self = self._ready(model, data)
        mean, var = posterior.moments(data.X)
        m = mean_rows(model.mean, data.X, data.Y.shape[1]).values
        pieces = self.pieces(model, data, self._z(model, data))
        for one, part in zip(pieces, posterior.parts, strict=True):
            seen, s, k = one.scheme.cavities(one.model, one.data, part), data.scale[one.output], one.output
            mean[one.rows, k] = m[one.rows, k] + s * seen.mean[:, 0]
            var[one.rows, k] = s**2 * seen.var[:, 0]
        return Cavities(mean, var)

    def edited(
        self, model: Model, data: Data, kept: Indices, inferred: Inferred, rng: np.random.Generator
    ) -> tuple[Scheme, Inferred]:
        scheme = dataclasses.replace(self, filled=None, engines=()).prepared(model, data, rng)
        return scheme, scheme.infer(model, data)

    def context(self, model: Model, data: Data, d: int) -> Context:
        n, q = data.Y.shape
        fits = self.filled is not None and self.filled.shape == (n, q) and len(self.engines) == q
        if not fits or self.centre is None or self.centre.shape != (q,):
            raise StateError("its chain of outputs was made for other rows.")
        self.check_fits(model, d)
        assert self.filled is not None
        links = [
            one.scheme.context(one.model, one.data, one.data.X.shape[1])
            for one in self.pieces(model, data, self.filled)
        ]
        names = f"a chain of outputs on {type(self.engine).__name__}"
        made = self.process(model, data, ())
        return Context(
            names, ("chain",), data.prior(model), (), None, d, model=model, scheme=made, links=tuple(links)
        )

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return Cost(*(q * part for part in self.engine.work(n, d + q, 1, gradient)))

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return self.engine.bytes_needed(n, d + q, 1) + (q - 1) * self.engine.bytes_of_noise(n, d + q)


def chain_kernel(model: Model, order: tuple[int, ...], place: int, d: int) -> Kernel:
    """The kernel of the output at a place of the chain, on x and, where it has a link, on z behind it."""
    own, link = (model.kernel, *model.others)[order[place]], link_of(model, place)
    if link is None:
        return own
    return On(own, tuple(range(d))) + On(link, tuple(range(d, d + place)))


def link_of(model: Model, place: int) -> Kernel | None:
    """The kernel of the outputs before the one at a place, where it has one."""
    return next((link.kernel for link in model.links if link.number == place + 1), None)


def chained(scheme: Scheme, order: tuple[int, ...]) -> Chained:
    """A method in closed form for outputs one after the other."""
    rule = scheme.conjugated()
    if rule is None:
        raise ParameterError(
            f'The method {scheme.name!r} knows no chain of outputs. Use method="exact", "vfe" or "nystrom".'
        )
    return Chained(rule.engine, order)
