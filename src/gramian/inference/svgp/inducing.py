"""Sparse variational inference for any likelihood and any number of rows (SVGP).

q(f) is the prior, conditioned on a Gaussian q(u) of f at m inducing points; the bound is a sum over rows
(bound.py), so that it can be climbed with a few rows at a time: natural gradients for q, Adam for the rest
(fitting/stochastic.py). Here is what is asked at given parameters: q is then found by natural-gradient steps
on all rows, each n m^2 (2 + 2 L) flops for L latents. A full step is tried first and halved until the bound
rises; near the optimum it is Newton's method without the part of the curvature that latents and variances
share. The gradient of the bound at its optimum in q is that with q held still: the rest vanishes there.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from gramian import clock
from gramian.arrays import Array, plain_numbers
from gramian.clock import OutOfTime
from gramian.engines.base import Share, Workspace
from gramian.engines.lowrank import check_units
from gramian.engines.recipes import Inducing, bytes_of_rule, check_size, units_of
from gramian.errors import NumericalError, ParameterError, StateError
from gramian.features.nystrom import NystromBasis
from gramian.inference.anderson import Anderson
from gramian.inference.base import Cavities, Graded, Scheme
from gramian.inference.model import Data, Evidence, Inferred, Model
from gramian.inference.svgp.bound import CHUNK, IN_FLIGHT, Bound, BoundSums, Latents, VariationalWeights
from gramian.landmarks.base import LandmarkRule
from gramian.linalg.cost import Cost
from gramian.linalg.threads import count, each, one_blas_thread
from gramian.processes.base import Process
from gramian.processes.stacked import side_by_side
from gramian.processes.state import Context
from gramian.processes.weights import FeaturePosterior
from gramian.solvers.base import SolveOutcome

TOLERANCE = 1e-8  # of the natural parameters: how far a full step would still go where q is called converged
MAX_PASSES = 200
POLISH, POLISH_TOLERANCE = 5, 1e-3  # passes after a stochastic search, whose own noise is larger
SMALLEST_STEP = 1e-4
WINDOW = 6  # steps that are mixed
IDLE = 5  # passes in a row after which a bound that no longer rises is left alone
SETTLED = 1e-4  # of the natural parameters: where they are called so without being at the tolerance
NO_PASS = "no time was left for a pass over all rows after the search; the evidence is estimated from some"
EPOCHS, FEWEST_STEPS, MOST_STEPS = 20, 500, 5000


class _SparseScheme(Scheme):
    name = "svgp"
    accuracy = "lower bound of the evidence"
    at_points = True

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        raise ParameterError(
            'Leave-one-out predictions are not available for "svgp": the variational posterior has no'
            " cavities. Use cross-validation."
        )


@dataclass(frozen=True, eq=False)
class SparseVariational(_SparseScheme):
    """With inducing points that have been chosen; after a stochastic search with its q, too."""

    Z: tuple[Array, ...]  # (m, d) a kernel
    learned: bool = False
    # of the points as a search moves them: Z = centre + spread * free
    centre: Array = field(default_factory=lambda: np.zeros(0))
    spread: Array = field(default_factory=lambda: np.ones(0))
    described_as: str = ""
    q: tuple[VariationalWeights, ...] = ()  # one a latent; without any, q starts as the prior
    passes: int = MAX_PASSES  # over all rows, at most
    tolerance: float = TOLERANCE

    holds_rows = False

    @property
    def described(self) -> str:
        return self.described_as

    def stored(self) -> SparseVariational:
        return dataclasses.replace(self, q=())

    def context(self, model: Model, data: Data, d: int) -> Context:
        if len(self.Z) != len(model.kernels):
            raise StateError(
                f"its method has {len(self.Z)} sets of inducing points, but {len(model.kernels)} kernels."
            )
        # points may be of another kind than rows, which is asked with the kernel
        check_units(self.centre, self.spread, d if self.spread.shape == (d,) else self.Z[0].shape[-1])
        bases = [NystromBasis(Z, self.learned) for Z in self.Z]
        kinds, prior = ("features", "stacked"), data.prior(model)
        return Context("SparseVariational", kinds, prior, model.others, None, d, lambda k: bases[k])

    @property
    def free(self) -> Array:
        moved = self.Z if self.learned else ()
        return np.concatenate([np.zeros(0), *(((Z - self.centre) / self.spread).ravel() for Z in moved)])

    def with_free(self, values: Array) -> SparseVariational:
        table = self.centre + self.spread * values.reshape(-1, len(self.spread))
        cuts = np.cumsum([len(Z) for Z in self.Z])[:-1]
        return dataclasses.replace(self, Z=tuple(np.split(table, cuts)))

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        with self.bound(model, data) as bound:
            try:
                q, value, outcome = self._optimum(bound, report)
            except OutOfTime:
                if not self.q:
                    raise
                # batches of all rows have made it, which a posterior of fewer rows would forget
                q, outcome = self.q, SolveOutcome(note=NO_PASS, stopped="time limit")
                value = self._estimate(bound)
            return Inferred(self._posterior(bound, q), Evidence(value, "lower bound"), outcome)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with self.bound(model, data) as bound:
            return Evidence(self._optimum(bound)[1], "lower bound")

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        with self.bound(model, data) as bound:
            q, value, _ = self._optimum(bound)
            gradients = bound.gradient(bound.over_all(q, gradient=True))
        return Evidence(value, "lower bound"), self.in_units(gradients)

    def in_units(self, gradients: list[Array]) -> list[Array]:
        """Gradients of `Bound`, with that of the points in the units of `free`."""
        return [*gradients[:-1], (gradients[-1] * self.spread).ravel()] if self.learned else gradients

    def optimum(self, model: Model, data: Data, least: float) -> tuple[tuple[VariationalWeights, ...], float]:
        """q where natural gradients on all rows end, and the bound there; `least`: of the mean diagonal,
        added to K_zz. q is of weights, whose coordinates change with it."""
        with one_blas_thread():
            q, value, _ = self._optimum(Bound(model, data, self.Z, self.learned, least=least))
        return q, value

    @contextmanager
    def bound(self, model: Model, data: Data) -> Iterator[Bound]:
        """The bound for a model; within it BLAS has one thread, and rows are shared out between several."""
        with one_blas_thread():
            yield Bound(model, data, self.Z, self.learned)

    def start(self, bound: Bound) -> tuple[VariationalWeights, ...]:
        """The q that a search begins with."""
        return self.q or tuple(VariationalWeights.prior(m) for m in bound.sizes())

    def _optimum(
        self, bound: Bound, report: Share | None = None
    ) -> tuple[tuple[VariationalWeights, ...], float, SolveOutcome]:
        """q and the bound where natural gradients on all rows end; steps are halved until they raise it."""
        # Where softmax couples the latents, plain steps in h = B mu leave what they have in common almost
        # where it is. With B settled the iteration is nearly linear, and mixing is then GMRES on it (Walker
        # and Ni 2011, equation 2.2).
        q, mixed = self.start(bound), Anderson(WINDOW, 1e-10)
        sums, value = self._pass(bound, q)
        rho, done, rest, idle = 1.0, 1, _distance(q, sums), 0
        while rest > self.tolerance and done < self.passes and rho >= SMALLEST_STEP and idle < IDLE:
            if clock.over():
                break
            done += 1
            if report is not None:
                report(done / self.passes)
            try:
                target = np.concatenate(sums.b)
                h = mixed.propose(np.concatenate([w.h for w in q]), target, rho=rho)
                parts = np.split(target if h is None else h, np.cumsum([len(w.h) for w in q])[:-1])
                moves = [partial(w.moved, S, b, rho) for w, S, b in zip(q, sums.S, parts, strict=True)]
                step = tuple(each(lambda move: move(), moves))
                new_sums, new_value = self._pass(bound, step)
                if not new_value >= value - 1e-12 * abs(value):
                    raise NumericalError("The step was too long.")
            except OutOfTime:
                if not self.q:
                    raise
                break
            except NumericalError:  # that, or curvature of the wrong sign
                rho = 0.5 * rho if mixed.plain else rho
                mixed.reset()
                continue
            idle = idle + 1 if new_value - value <= 1e-10 * abs(value) else 0
            q, sums, value, rho = step, new_sums, new_value, min(1.0, 1.5 * rho)
            rest = _distance(q, sums)
        if report is not None:
            report(1.0)
        converged = rest <= max(self.tolerance, SETTLED) or bool(self.q)
        unsettled = f"The variational posterior had not settled after {done} passes over the rows"
        note = "" if converged else f"{unsettled} (relative change {rest:.1g})."
        return q, value, SolveOutcome(iterations=done, residual=rest, converged=converged, note=note)

    def _estimate(self, bound: Bound) -> float:
        """The bound with the q that there is, from some of the rows, whatever the time is."""
        n = len(bound.data.X)
        some = bound.data.take(np.arange(0, n, -(-n // CHUNK)))
        with clock.until(None, anew=True):
            sums = bound.sums(self.q, [some], gradient=False, signed=True)
        return n / len(some.X) * sums.value - sum(w.divergence for w in self.q)

    @staticmethod
    def _pass(bound: Bound, q: Latents) -> tuple[BoundSums, float]:
        sums = bound.over_all(q, gradient=False)
        return sums, sums.value - sum(w.divergence for w in q)

    @staticmethod
    def _posterior(bound: Bound, q: Latents) -> Process:
        parts: list[tuple[Process, list[int]]] = []
        priors = bound.model.priors(bound.scale)
        for (prior, latents), (features, _) in zip(priors, bound.groups, strict=True):
            weights, roots = np.stack([q[k].mu for k in latents], axis=1), tuple(q[k].root for k in latents)
            own = FeaturePosterior(prior, features, weights, roots, tuple(range(len(latents))))
            parts.append((own, latents))
        return side_by_side(parts)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return work_of(n, max(map(len, self.Z)), q, gradient)

    def shortest(self, n: int, d: int, q: int) -> Cost:
        return work_of(n, max(map(len, self.Z)), q, False, 2)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return bytes_of(n, d, q, max(map(len, self.Z)), CHUNK * IN_FLIGHT)


@dataclass(frozen=True)
class SVGP(Inducing, _SparseScheme):
    """Sparse variational inference, fitted with few rows at a time: any likelihood, any number of rows.

    `inducing` is a landmark rule, or the points themselves; `optimize_inducing` moves them with the
    parameters. A fit takes `steps` batches of `batch_size` rows (None: 20 times through the data, from 500 to
    5000), with natural-gradient steps of size `natural_step` for the variational posterior and Adam with
    `learning_rate` for the rest.
    """

    search = "batches"
    smooth = False  # a fit is stochastic; its last digits are noise

    n_inducing: int = 500
    inducing: str | LandmarkRule | tuple[tuple[float, ...], ...] = "kmeans"
    optimize_inducing: bool = True
    batch_size: int = 1024
    steps: int | None = None
    natural_step: float = 0.1
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        plain_numbers(self)
        self.check_inducing()
        check_size(self.batch_size, "SVGP: batch_size")
        if self.steps is not None:
            check_size(self.steps, "SVGP: steps")
        check_rate(self.natural_step, "SVGP: natural_step")
        check_rate(self.learning_rate, "SVGP: learning_rate")

    @property
    def label(self) -> str:
        return f"svgp, {self.points_label(SVGP.inducing)}"

    def steps_for(self, n: int) -> int:
        """How many batches a fit to n rows takes."""
        return self.steps or int(np.clip(EPOCHS * n // self.batch_size, FEWEST_STEPS, MOST_STEPS))

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> SparseVariational:
        Z = tuple(self.points(kernel, data.X, rng) for kernel, _ in model.kernels)
        described = self.points_described(max(map(len, Z)))
        if len({points.shape[1] for points in Z}) > 1:
            cure = "Give all classes kernels of one kind."
            raise ParameterError(f"SVGP: some kernels have patches as inducing points, and some rows. {cure}")
        units = units_of(data.X if Z[0].shape[1] == data.X.shape[1] else Z[0])
        return SparseVariational(Z, self.optimize_inducing, *units, described)

    # Used as it is, it chooses its points with a fixed seed, and is not fitted in batches.

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        return self._ready(model, data).infer(model, data, report)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        return self._ready(model, data).evidence(model, data, workspace)

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        evidence, gradients = self._ready(model, data).evidence_and_gradient(model, data, workspace)
        return evidence, gradients[: len(model.parameters())]

    def _ready(self, model: Model, data: Data) -> SparseVariational:
        return self.prepared(model, data, np.random.default_rng(0))

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Of one step of a fit, or of the final inference."""
        if gradient:
            return work_of(min(self.batch_size, n), self.size(n), q, True, 1)
        return work_of(n, self.size(n), q, False, POLISH)

    def shortest(self, n: int, d: int, q: int) -> Cost:
        return work_of(n, self.size(n), q, False, 2)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        m = self.size(n)
        fit = bytes_of(n, d, q, m, self.batch_size)
        return max(fit, bytes_of_rule(self.rule, n, m))


def work_of(n: int, m: int, q: int, gradient: bool, passes: int = 15) -> Cost:
    """Features, variances and sums of each latent in every pass; with gradient once more the way back."""
    nm, squares, cubes = float(n) * m, float(n) * m * m, float(m) ** 3
    one = (1 + 2 * q) * squares + q * cubes
    back = ((2 + q) * squares + 3 * cubes) if gradient else 0.0
    return Cost(passes * one + back, passes * nm, nm if gradient else 0.0)


def bytes_of(n: int, d: int, q: int, m: int, batch: int) -> int:
    """Beyond the data: q before and after a step, sums of the chunks in flight, features of those at work.
    Batches have a gradient, and so one sum more a chunk than the last passes over all rows."""
    chunks, of_batch = (min(-(-rows // CHUNK), IN_FLIGHT) for rows in (n, min(n, batch)))
    sums = max(chunks * q, of_batch * (q + 1))
    moving = 9 * q - 3  # latents after the first move at the same time: measured with three and four
    nodes = 2000 * q if q > 1 else 200  # of the likelihood's expectations
    working = min(count(), chunks) * min(n, CHUNK) * ((q + 5) * m + nodes)
    return 8 * (m * m * (6 + moving + sums) + working + min(n, max(batch, CHUNK * IN_FLIGHT)) * (d + 2 * q))


def _distance(q: Latents, sums: BoundSums) -> float:
    return max(w.distance(S, b) for w, S, b in zip(q, sums.S, sums.b, strict=True))


def check_rate(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) <= 1:
        raise ParameterError(f"{what}={value!r} must be a number above 0, and at most 1.")
