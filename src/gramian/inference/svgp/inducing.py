"""Sparse variational inference for any likelihood and any number of rows (SVGP).

q(f) is the prior, conditioned on a Gaussian q(u) of f at m inducing points; the bound is a sum over rows
(bound.py), so that it can be climbed with a few rows at a time: natural gradients for q, Adam for the rest
(fitting/stochastic.py). Here is what is asked at given parameters: q is then found by natural-gradient steps
on all rows, streamed in blocks. A full step is tried first and halved until the bound rises; near the optimum
it is Newton's method without the part of the curvature that latents and variances share. Each pass takes n
m^2 (2 + 2 L) flops for L latents.

The gradient of the bound at its optimum in q is that with q held still, because the rest vanishes there.

Source: Hensman, Fusi and Lawrence 2013; Hensman, Matthews and Ghahramani 2015; Salimbeni, Eleftheriadis and
Hensman 2018.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramian.engines.base import Share, Workspace
from gramian.engines.recipes import bytes_of_rule, check_size, chosen, inducing_label, units_of
from gramian.errors import NumericalError, ParameterError
from gramian.inference.base import Cavities, Scheme
from gramian.inference.model import Data, Evidence, Inferred, Model
from gramian.inference.svgp.bound import CHUNK, IN_FLIGHT, Bound, BoundSums, VariationalWeights, all_rows
from gramian.kernels.base import Kernel
from gramian.landmarks.base import LandmarkRule
from gramian.landmarks.rules import as_rule, named
from gramian.linalg.cost import Cost
from gramian.linalg.threads import count, each, one_blas_thread
from gramian.means import OneOutput
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import side_by_side
from gramian.processes.weights import FeaturePosterior
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]

TOLERANCE = 1e-8  # of the natural parameters: how far a full step would still go where q is called converged
MAX_PASSES = 200
POLISH, POLISH_TOLERANCE = 5, 1e-3  # passes after a stochastic search, whose own noise is larger
SMALLEST_STEP = 1e-4
WINDOW = 6  # steps that are mixed
IDLE = 5  # passes in a row after which a bound that no longer rises is left alone
SETTLED = 1e-4  # of the natural parameters: where they are called so without being at the tolerance
ACCURACY = "lower bound of the evidence"
EPOCHS, FEWEST_STEPS, MOST_STEPS = 20, 500, 5000


@dataclass(frozen=True, eq=False)
class SparseVariational(Scheme):
    """Sparse variational inference with inducing points that have been chosen; after a stochastic search with
    its q, too."""

    Z: tuple[Array, ...]  # (m, d) a kernel
    learned: bool = False
    # of the points as a search moves them: Z = centre + spread * free
    centre: Array = field(default_factory=lambda: np.zeros(0))
    spread: Array = field(default_factory=lambda: np.ones(0))
    described_as: str = ""
    q: tuple[VariationalWeights, ...] = ()  # one a latent; without any, q starts as the prior
    passes: int = MAX_PASSES  # over all rows, at most
    tolerance: float = TOLERANCE

    @property
    def name(self) -> str:
        return "svgp"

    @property
    def described(self) -> str:
        return self.described_as

    @property
    def accuracy(self) -> str:
        return ACCURACY

    @property
    def holds_rows(self) -> bool:
        return False

    def stored(self) -> SparseVariational:
        return dataclasses.replace(self, q=())

    @property
    def free(self) -> Array:
        return (
            np.concatenate([((Z - self.centre) / self.spread).ravel() for Z in self.Z])
            if self.learned
            else np.zeros(0)
        )

    def with_free(self, values: Array) -> SparseVariational:
        table = self.centre + self.spread * values.reshape(-1, len(self.spread))
        cuts = np.cumsum([len(Z) for Z in self.Z])[:-1]
        return dataclasses.replace(self, Z=tuple(np.split(table, cuts)))

    # Inference. ---------------------------------------------------------------------------------------------

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        with self.bound(model, data) as bound:
            q, value, outcome = self._optimum(bound, report)
            return Inferred(self._posterior(bound, q), Evidence(value, "lower bound"), outcome)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with self.bound(model, data) as bound:
            return Evidence(self._optimum(bound)[1], "lower bound")

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        with self.bound(model, data) as bound:
            q, value, _ = self._optimum(bound)
            gradients = bound.gradient(bound.sums(q, all_rows(data), gradient=True, signed=True))
        return Evidence(value, "lower bound"), self.in_units(gradients)

    def in_units(self, gradients: list[Array]) -> list[Array]:
        """Gradients of `Bound`, with that of the points in the units of `free`."""
        return [*gradients[:-1], (gradients[-1] * self.spread).ravel()] if self.learned else gradients

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
        """q and the bound where natural gradients on all rows end. Monotone: a step that does not raise the
        bound is halved."""
        q = self.start(bound)
        sums, value = self._pass(bound, q)
        rho, done, rest, mixed = 1.0, 1, _distance(q, sums), _Mixed()
        idle = 0
        while rest > self.tolerance and done < self.passes and rho >= SMALLEST_STEP and idle < IDLE:
            done += 1
            if report is not None:
                report(done / self.passes)
            try:
                h = mixed.step(np.concatenate([w.h for w in q]), np.concatenate(sums.b), rho)
                parts = np.split(h, np.cumsum([len(w.h) for w in q])[:-1])
                moves = [partial(w.moved, S, b, rho) for w, S, b in zip(q, sums.S, parts, strict=True)]
                step = tuple(each(lambda move: move(), moves))
                new_sums, new_value = self._pass(bound, step)
                if not new_value >= value - 1e-12 * abs(value):
                    raise NumericalError("The step was too long.")
            except NumericalError:  # that, or curvature of the wrong sign
                rho = 0.5 * rho if mixed.plain else rho
                mixed = _Mixed()
                continue
            idle = idle + 1 if new_value - value <= 1e-10 * abs(value) else 0
            q, sums, value, rho = step, new_sums, new_value, min(1.0, 1.5 * rho)
            rest = _distance(q, sums)
        if report is not None:
            report(1.0)
        converged = rest <= max(self.tolerance, SETTLED) or bool(self.q)
        note = (
            ""
            if converged
            else (
                f"The variational posterior had not settled after {done} passes over the rows (relative"
                f" change {rest:.1g})."
            )
        )
        return q, value, SolveOutcome(iterations=done, residual=rest, converged=converged, note=note)

    @staticmethod
    def _pass(bound: Bound, q: Sequence[VariationalWeights]) -> tuple[BoundSums, float]:
        sums = bound.sums(q, all_rows(bound.data), gradient=False, signed=True)
        return sums, sums.value - sum(w.divergence for w in q)

    @staticmethod
    def _posterior(bound: Bound, q: Sequence[VariationalWeights]) -> Process:
        parts: list[tuple[Process, list[int]]] = []
        model = bound.model
        for features, latents in bound.groups:
            mean = model.mean if len(bound.groups) == 1 else OneOutput(model.mean, latents[0])
            prior = GaussianProcess(features.kernel, mean, bound.scale[latents])
            weights = np.stack([q[k].mu for k in latents], axis=1)
            roots, root_of = tuple(q[k].root for k in latents), tuple(range(len(latents)))
            parts.append((FeaturePosterior(prior, features, weights, roots, root_of), latents))
        return side_by_side(parts)

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        raise ParameterError(
            'Leave-one-out predictions are not available for "svgp": the variational posterior has no'
            " cavities. Use cross-validation."
        )

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return work_of(n, max(map(len, self.Z)), q, gradient)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return bytes_of(n, d, q, max(map(len, self.Z)), CHUNK * IN_FLIGHT)


@dataclass(frozen=True)
class SVGP(Scheme):
    """Sparse variational inference, fitted with few rows at a time: any likelihood, any number of rows.

    `inducing` is a landmark rule, or the points themselves; `optimize_inducing` moves them with the
    parameters. A fit takes `steps` batches of `batch_size` rows (None: 20 times through the data, from 500 to
    5000), with natural-gradient steps of size `natural_step` for the variational posterior and Adam with
    `learning_rate` for the rest.
    """

    n_inducing: int = 500
    inducing: str | LandmarkRule | tuple[tuple[float, ...], ...] = "kmeans"
    optimize_inducing: bool = True
    batch_size: int = 1024
    steps: int | None = None
    natural_step: float = 0.1
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.inducing, (str, LandmarkRule)):
            Z = np.asarray(self.inducing, dtype=np.float64)
            if Z.ndim != 2 or not len(Z) or not np.all(np.isfinite(Z)):
                raise ParameterError(
                    "SVGP: inducing must be a landmark rule, or a table of finite points, one a row; its"
                    f" shape is {Z.shape}."
                )
            # hashable, and nobody else's array
            object.__setattr__(self, "inducing", tuple(map(tuple, Z.tolist())))
            object.__setattr__(self, "n_inducing", len(Z))
        else:
            object.__setattr__(self, "inducing", named(as_rule(self.inducing, "SVGP: inducing")))
        check_size(self.n_inducing, "SVGP: n_inducing")
        check_size(self.batch_size, "SVGP: batch_size")
        if self.steps is not None:
            check_size(self.steps, "SVGP: steps")
        _check_rate(self.natural_step, "SVGP: natural_step")
        _check_rate(self.learning_rate, "SVGP: learning_rate")

    @property
    def name(self) -> str:
        return "svgp"

    @property
    def rule(self) -> LandmarkRule | None:
        """What chooses the points, unless they are given."""
        return None if isinstance(self.inducing, tuple) else as_rule(self.inducing)

    @property
    def described(self) -> str:
        return self._described(self.n_inducing)

    @property
    def label(self) -> str:
        return f"svgp, {inducing_label(self.n_inducing, self.rule, SVGP.inducing)}"

    @property
    def accuracy(self) -> str:
        return ACCURACY

    @property
    def search(self) -> Literal["steps", "batches", "none"]:
        return "batches"

    @property
    def smooth(self) -> bool:
        return False  # a fit is stochastic; its last digits are noise

    def _described(self, m: int) -> str:
        how = "learned" if self.optimize_inducing else "as given" if self.rule is None else f"by {self.rule}"
        return f"{m} inducing points, {how}"

    def size(self, n: int) -> int:
        """How many inducing points n rows get."""
        return self.n_inducing if self.rule is None else min(self.n_inducing, n)

    def steps_for(self, n: int) -> int:
        """How many batches a fit to n rows takes."""
        return self.steps or int(np.clip(EPOCHS * n // self.batch_size, FEWEST_STEPS, MOST_STEPS))

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> SparseVariational:
        Z = tuple(self._points(kernel, data.X, rng) for kernel, _ in model.kernels)
        described = self._described(max(map(len, Z)))
        return SparseVariational(Z, self.optimize_inducing, *units_of(data.X), described)

    def _points(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Array:
        if self.rule is not None:
            return chosen(kernel, X, self.n_inducing, self.rule, rng)
        Z = np.array(self.inducing)
        if Z.shape[1] != X.shape[1]:
            raise ParameterError(
                f"SVGP: the inducing points have {Z.shape[1]} columns, but the data have {X.shape[1]}."
            )
        return Z

    # Used as it is, it chooses its points with a fixed seed, and is not fitted in batches.

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        return self._ready(model, data).infer(model, data, report)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        return self._ready(model, data).evidence(model, data, workspace)

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        evidence, gradients = self._ready(model, data).evidence_and_gradient(model, data, workspace)
        return evidence, gradients[: len(model.parameters())]

    def _ready(self, model: Model, data: Data) -> SparseVariational:
        return self.prepared(model, data, np.random.default_rng(0))

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Of one step of a fit, or of the final inference."""
        return (
            work_of(min(self.batch_size, n), self.size(n), q, True, 1)
            if gradient
            else work_of(n, self.size(n), q, False, POLISH)
        )

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return max(
            bytes_of(n, d, q, self.size(n), max(self.batch_size, CHUNK * IN_FLIGHT)),
            bytes_of_rule(self.rule, n, self.size(n)),
        )


class _Mixed:
    """Anderson's mixing of the linear parameters h = B mu of all latents: where softmax couples them, plain
    steps leave what they have in common almost where it is. With B settled the iteration is nearly linear,
    and mixing is then GMRES on it (Walker and Ni 2011, equation 2.2)."""

    def __init__(self) -> None:
        self.at: list[Array] = []
        self.gaps: list[Array] = []

    @property
    def plain(self) -> bool:
        """Whether the last step was a plain one."""
        return len(self.at) <= 1

    def step(self, h: Array, target: Array, rho: float) -> Array:
        """The h to go the share rho of the way to, where a plain step would go that share of the way to
        `target`."""
        self.at, self.gaps = [*self.at[-WINDOW:], h], [*self.gaps[-WINDOW:], target - h]
        if self.plain:
            return target
        moves, changes = np.diff(self.at, axis=0).T, np.diff(self.gaps, axis=0).T
        share = np.linalg.lstsq(changes, self.gaps[-1], rcond=1e-10)[0]
        return target - (moves / rho + changes) @ share


def work_of(n: int, m: int, q: int, gradient: bool, passes: int = 15) -> Cost:
    """Features, variances and sums of each latent in every pass, with what is known of q; with gradient once
    more the way back."""
    nm, squares, cubes = float(n) * m, float(n) * m * m, float(m) ** 3
    one = (1 + 2 * q) * squares + q * cubes
    back = ((2 + q) * squares + 3 * cubes) if gradient else 0.0
    return Cost(passes * one + back, passes * nm, nm if gradient else 0.0)


def bytes_of(n: int, d: int, q: int, m: int, batch: int) -> int:
    """Peak memory beyond the data: q before and after a step, the sums of the chunks in flight, and features
    of those at work."""
    chunks = min(-(-n // CHUNK), IN_FLIGHT)
    # 2000: the nodes of the likelihood's expectations
    working = min(count(), chunks) * min(n, CHUNK) * ((q + 5) * m + 2000 * q)
    return 8 * (m * m * (6 + 6 * q + chunks * (q + 1)) + working + min(n, batch) * (d + 2 * q))


def _distance(q: Sequence[VariationalWeights], sums: BoundSums) -> float:
    return max(w.distance(S, b) for w, S, b in zip(q, sums.S, sums.b, strict=True))


def _check_rate(value: object, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) <= 1:
        raise ParameterError(f"{what}={value!r} must be a number above 0, and at most 1.")
