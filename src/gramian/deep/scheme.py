"""Deep Gaussian processes as a method: what is asked for, and what a search has found.

Deep              layers and how they are searched for (fitting/layers.py), before any data
DeepVariational   with inducing points and q of all layers; its posterior is a mixture over draws of the
                  inner layers (process.py)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian import clock
from gramian.arrays import Array, plain_numbers
from gramian.deep.bound import (
    JITTER,
    LastWeights,
    LayerWeights,
    Maps,
    Wiring,
    batch_of,
    floor_of,
    programs,
    row_terms,
)
from gramian.deep.layers import Layer, deepened, pushed, shape_of
from gramian.deep.process import DeepProcess
from gramian.engines.base import Share, Workspace
from gramian.engines.recipes import check_size
from gramian.errors import ParameterError, StateError
from gramian.inference.base import Cavities, Graded, Scheme
from gramian.inference.model import Data, Evidence, Inferred, Model
from gramian.inference.svgp.bound import VariationalWeights
from gramian.inference.svgp.inducing import SVGP, check_rate
from gramian.linalg.cost import Cost
from gramian.processes.base import Process
from gramian.processes.state import Context
from gramian.solvers.base import SolveOutcome

ROOT = 1e-2  # where the roots of q of inner layers begin: next to no noise in what the next layer sees
MOST = 3  # layers that "auto" tries
BLOCK = 4096  # rows times draws of a program that has no gradient
EVALUATED, MOST_EVALUATED = 20, 200_000  # draws of the bound on all rows, and rows times draws
PREDICTED = 64  # draws that predictions are averaged over
# inducing points of the last layer and of an inner one, where nobody says: f is what needs them, and what an
# inner layer adds to the identity is smooth
POINTS, INNER_POINTS = 300, 64
# The same of f where rows are few: with one layer of the chosen kernel, 500 points instead of 200 raise the
# density of test rows of energy (691 rows) by 0.65 a row, of concrete (927) by 0.35.
MANY_POINTS, FEW_ROWS = 500, 2000
EPOCHS, FEWEST_STEPS, MOST_STEPS = 100, 1000, 5000
# Of batches: Adam's rate, and how much faster the roots of q of inner layers go. They begin a hundred times
# narrower than the prior, which costs some four nats an output and point until those that the data ask
# nothing of are back. On kin8nm 500 steps end 340 nats above as many with 0.01, for means of q 0.02 and for
# roots 0.05.
RATE, FASTER = 0.03, 2.0
# The same where all rows are in each step, and how many steps: fast ones run into poor optima there. On a
# step of 50 rows the bounds of y with two seeds are 100 and 93, with FASTER 88 and 68, with 0.03 50 and 98.
WHOLE_RATE, WHOLE_STEPS = 0.01, 1500
# rows times draws of a step, and draws of a row: other rows tell more than other draws of the same ones,
# where there are other rows
DRAWN, FEWEST_DRAWS, MOST_DRAWS = 1024, 2, 5


class _DeepScheme(Scheme):
    name = "deep"
    accuracy = "lower bound of the evidence"
    holds_rows = False
    smooth = False
    leaves_out_cheaply = False

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        raise ParameterError(
            "Leave-one-out predictions are not available for deep models: the variational posterior has no"
            " cavities. Use cross-validation."
        )

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        raise ParameterError(
            "The bound of a deep model is estimated from draws, and has no gradient to the last digit."
            " log_evidence() without return_grad gives it."
        )

    def learns_from(self, n: int) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class DeepVariational(_DeepScheme):
    """Layers with their inducing points and q."""

    Z: tuple[Array, ...]  # (m, columns) a layer
    mu: tuple[Array, ...]  # (m, W) an inner layer, and the roots of q as `bound.LayerWeights` has them
    T: tuple[Array, ...]
    A: tuple[Array, ...]  # means of inner layers, and their units
    c: tuple[Array, ...]
    t: tuple[Array, ...]
    moved: tuple[int, ...]  # what layers see: see `bound.Wiring`
    passed: tuple[tuple[int, ...], ...]
    order: tuple[tuple[int, ...], ...]
    last_mu: Array  # (m, L)
    last_root: Array  # (L, m, m)
    divergence: float = 0.0  # KL of the last layer
    samples: int = PREDICTED

    @property
    def described(self) -> str:
        points = ", ".join(str(len(Z)) for Z in self.Z)
        one = len(self.Z) == 1
        return f"{points} inducing points in {'one layer' if one else f'{len(self.Z)} layers'}"

    @property
    def wiring(self) -> tuple[Wiring, ...]:
        pairs = zip(self.passed, self.order, strict=True)
        return tuple(Wiring(self.moved, passed, order) for passed, order in pairs)

    @property
    def weights(self) -> LayerWeights:
        return LayerWeights(self.Z, self.mu, self.T)

    @property
    def last(self) -> LastWeights:
        return LastWeights(self.last_mu, self.last_root)

    def maps(self, scale: Array) -> Maps:
        """The means of inner layers; `scale`: of the data."""
        return Maps(self.A, self.c, self.t, np.broadcast_to(scale, (self.last_mu.shape[1],)))

    @property
    def widths(self) -> tuple[int, ...]:
        """Of the inner layers."""
        return tuple(mu.shape[1] for mu in self.mu)

    def noise(self, samples: int) -> tuple[Array, ...]:
        """Standard normal numbers for the inner layers, (S, 1, W) each: evenly spread, always the same."""
        if not self.mu:
            return ()
        power = int(np.ceil(np.log2(samples)))
        total = sum(self.widths)
        if total <= qmc.Sobol.MAXDIM:
            points = qmc.Sobol(total, scramble=True, rng=np.random.default_rng(0)).random_base2(power)
        else:
            points = np.random.default_rng(0).random((2**power, total))
        values = ndtri(np.clip(points[:samples], 1e-9, 1 - 1e-9))
        return tuple(np.split(values[:, None, :], np.cumsum(self.widths)[:-1], axis=2))

    def context(self, model: Model, data: Data, d: int) -> Context:
        self.check_layers(model, d, self.last_mu.shape[-1])
        prior = data.prior(model)
        return Context("DeepVariational", ("deep",), prior, (), None, d, model=model, scheme=self)

    def check_layers(self, model: Model, d: int, q: int) -> None:
        """That all arrays fit together: they may come from a file that somebody made up."""
        L = len(self.Z)
        inner = (self.mu, self.T, self.A, self.c, self.t)
        if not L or len(self.passed) != L or len(self.order) != L or any(len(own) != L - 1 for own in inner):
            raise StateError("its layers do not have a set of points, of weights and of columns each.")
        if len(model.deeper) != L - 1:
            raise StateError(f"its method has {L} layers, but its model {1 + len(model.deeper)}.")
        below = len(self.moved)
        if any(not 0 <= j < d for own in (self.moved, *self.passed) for j in own):
            raise StateError(f"its layers see columns that are none of {d}.")
        for k, Z in enumerate(self.Z):
            columns = d if k == 0 else self.mu[k - 1].shape[1] + len(self.passed[k])
            if Z.ndim != 2 or Z.shape[1] != columns or not len(Z):
                raise StateError(f"layer {k + 1} has points of shape {Z.shape}, but sees {columns} columns.")
            if k and sorted(self.order[k]) != list(range(columns)):
                raise StateError(f"layer {k + 1} sees {columns} columns, in no order of theirs.")
            if k < L - 1:
                m, W = len(Z), self.mu[k].shape[-1]
                shapes = [own[k].shape for own in inner]
                if shapes != [(m, W), (W, m, m), (below, W), (W,), (W,)] or not W:
                    raise StateError(f"layer {k + 1} has weights of shapes that do not fit: {shapes}.")
                below = W
        m = len(self.Z[-1])
        if self.last_mu.shape != (m, q) or self.last_root.shape != (q, m, m) or self.samples < 1:
            raise StateError(f"its last layer must have {m} weights for {q} functions.")

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        evidence = self.bound(model, data, report)
        process = DeepProcess.of(self, model, data.scale)
        return Inferred(process, evidence, SolveOutcome(iterations=1))

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        return self.bound(model, data)

    def bound(self, model: Model, data: Data, report: Share | None = None) -> Evidence:
        """On all rows, with its standard error over the draws."""
        draws = int(np.clip(MOST_EVALUATED // len(data.X), 2, EVALUATED))
        totals = self.densities(model, data.under(model), draws, report).sum(axis=1)
        value = float(np.mean(totals)) - self.divergence - self.inner_divergence() + data.log_slopes(model)
        error = float(np.std(totals) / np.sqrt(max(len(totals) - 1, 1)))
        return Evidence(value, "lower bound", error)

    def inner_divergence(self) -> float:
        """KL of the inner layers."""
        total = 0.0
        for mu, T in zip(self.mu, self.T, strict=True):
            logs = np.einsum("wii->wi", T)
            below = np.tril(T, -1)
            total += 0.5 * float(np.sum(below**2) + np.sum(np.exp(2 * logs)) + np.sum(mu**2) - mu.size)
            total -= float(np.sum(logs))
        return total

    def densities(self, model: Model, data: Data, draws: int, report: Share | None = None) -> Array:
        """E log p(y | f) of each row for each draw, (draws, n), all independent; y as the model sees it."""
        n, draws = len(data.X), draws if self.mu else 1
        size, found = max(1, BLOCK // draws), []
        rng, bare, maps = np.random.default_rng(0), model.bare(), self.maps(data.scale)
        size = min(size, -(-n // 64) * 64)
        with programs():
            for start in range(0, n, size):
                clock.check()
                rows = data.take(slice(start, start + size))
                noise = tuple(rng.standard_normal((draws, size, W)) for W in self.widths)
                batch = batch_of(rows, size)
                terms = row_terms(
                    self.wiring, bare, self.weights, maps, self.last, batch, noise, JITTER, floor_of(model, n)
                )
                found.append(np.asarray(terms)[:, : len(rows.X)])
                if report is not None:
                    report(min(1.0, (start + size) / n))
        return np.concatenate(found, axis=1)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return work_of(n, [len(Z) for Z in self.Z], [*self.widths, q], EVALUATED, gradient)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return bytes_of([len(Z) for Z in self.Z], [*self.widths, q], BLOCK, d)


@dataclass(frozen=True)
class Deep(_DeepScheme):
    """Layers of Gaussian processes, one on top of the other, by doubly stochastic variational inference.

    `layers` of them, the last one f itself; with `auto` as many of them as the bound wants. Inner layers go
    by Adam with `learning_rate`, the last one by natural gradients of size `natural_step`, in `steps` batches
    of `batch_size` rows (None: 100 times through the data, from 1,000 to 5,000; 1,500 where a batch has
    all rows), with `samples` draws of the inner layers (None: 2, up to 5 where batches are small).
    """

    search = "layers"

    layers: tuple[Layer, ...] = (Layer(), Layer())
    auto: bool = False  # whether fewer layers are taken where the bound does not ask for more
    n_inducing: int | None = None  # of each layer; None: see `points`
    batch_size: int = 512
    samples: int | None = None
    steps: int | None = None
    natural_step: float = 0.1
    learning_rate: float | None = None  # None: RATE, or WHOLE_RATE where a batch has all rows
    categories: tuple[int, ...] = ()  # columns whose numbers are codes
    plain_inner: bool = False  # whether inner layers have kernels of their own, whatever that of f is

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_size(self.batch_size, "Deep: batch_size")
        for name in ("n_inducing", "steps", "samples"):
            if getattr(self, name) is not None:
                check_size(getattr(self, name), f"Deep: {name}")
        check_rate(self.natural_step, "Deep: natural_step")
        if self.learning_rate is not None:
            check_rate(self.learning_rate, "Deep: learning_rate")

    @property
    def described(self) -> str:
        return f"{len(self.layers)} layers"

    @property
    def label(self) -> str:
        return f"deep, {len(self.layers)} layers"

    def points(self, k: int, n: int) -> int:
        """Inducing points of the k-th layer for n rows."""
        last = MANY_POINTS if n <= FEW_ROWS else POINTS
        usual = last if k == len(self.layers) - 1 else INNER_POINTS
        return min(self.layers[k].n_inducing or self.n_inducing or usual, n)

    def width(self, k: int, d: int, q: int) -> int:
        """Outputs of the k-th layer for d columns and q functions."""
        return q if k == len(self.layers) - 1 else self.layers[k].width or min(d, 30)

    def steps_for(self, n: int) -> int:
        """How many batches a fit to n rows takes."""
        usual = np.clip(EPOCHS * n // self.batch_size, FEWEST_STEPS, MOST_STEPS)
        return self.steps or (WHOLE_STEPS if n <= self.batch_size else int(usual))

    def rates_for(self, n: int) -> tuple[float, float]:
        """Adam's rate for n rows, and how many times as fast the roots of q of inner layers go."""
        rate, faster = (WHOLE_RATE, 1.0) if n <= self.batch_size else (RATE, FASTER)
        return self.learning_rate or rate, faster

    def draws_for(self, n: int) -> int:
        """How many draws of the inner layers a step takes, of n rows."""
        return self.samples or int(np.clip(DRAWN // min(self.batch_size, n), FEWEST_DRAWS, MOST_DRAWS))

    def to(self, depth: int) -> Deep:
        """The same with so many layers: the last one and those before it."""
        return dataclasses.replace(self, layers=self.layers[len(self.layers) - depth :])

    def check_fits(self, model: Model, d: int) -> None:
        if model.others:
            raise ParameterError(
                "A deep model has one kernel for all functions of its last layer, but several were given."
            )

    def prepared(
        self, model: Model, data: Data, rng: np.random.Generator, Z: Array | None = None
    ) -> DeepVariational:
        """Before a search: points, Z or chosen among the rows, pushed through the means, q as the prior's."""
        own = self.to(1 + len(model.deeper))
        n, L = len(data.X), len(data.scale) if model.likelihood.conjugate else model.likelihood.latents
        shape = shape_of(data.X, np.ones(1), own.layers, self.categories)
        sizes = [own.points(k, n) for k in range(len(own.layers))]
        known = {} if Z is None else {len(Z): Z}
        for size in sizes:
            if size not in known:
                known[size] = SVGP(size).points(model.kernel, data.X, rng)
        Zs = tuple(pushed(shape, known[size])[k] for k, size in enumerate(sizes))
        widths = [own.width(k, len(shape.wiring[0].moved) or 1, L) for k in range(len(own.layers) - 1)]
        mu = tuple(np.zeros((len(Z), W)) for Z, W in zip(Zs, widths, strict=False))
        T = tuple(
            np.broadcast_to(np.log(ROOT) * np.eye(len(Z)), (W, len(Z), len(Z))).copy()
            for Z, W in zip(Zs, widths, strict=False)
        )
        q = [VariationalWeights.prior(len(Zs[-1]))] * L
        maps, wiring = shape.maps, shape.wiring
        return DeepVariational(
            *(Zs, mu, T, maps.A, maps.c, maps.t),
            wiring[0].moved,
            tuple(w.passed for w in wiring),
            tuple(w.order for w in wiring),
            *last_of(q),
        )

    def deeper(self, start: Model, shallow: Model, data: Data) -> Model:
        """The model with all layers, from the shallow one before and after its fit."""
        shape = shape_of(data.X, np.ones(1), self.layers, self.categories)
        return deepened(start, shallow, shape, self.layers, self.categories, self.plain_inner)

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        return self.prepared(model, data, np.random.default_rng(0)).infer(model, data, report)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        return self.prepared(model, data, np.random.default_rng(0)).evidence(model, data, workspace)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Of one step, or of the bound on all rows."""
        sizes = [self.points(k, n) for k in range(len(self.layers))]
        widths = [self.width(k, d, q) for k in range(len(self.layers))]
        if gradient:
            return work_of(min(self.batch_size, n), sizes, widths, self.draws_for(n), True)
        return work_of(n, sizes, widths, EVALUATED, False)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        sizes = [self.points(k, n) for k in range(len(self.layers))]
        widths = [self.width(k, d, q) for k in range(len(self.layers))]
        rows = max(min(self.batch_size, n) * self.draws_for(n), BLOCK)
        return bytes_of(sizes, widths, rows, d)


def last_of(q: Sequence[VariationalWeights]) -> tuple[Array, Array, float]:
    """q of the last layer as `DeepVariational` has it, and its divergence."""
    mu = np.stack([w.mu for w in q], axis=1)
    root = np.stack([np.ascontiguousarray(w.root) for w in q])
    return mu, root, float(sum(w.divergence for w in q))


def work_of(n: int, sizes: Sequence[int], widths: Sequence[int], draws: int, gradient: bool) -> Cost:
    """Features, variances and sums of each layer; with gradient about twice that once more."""
    flops, values = 0.0, 0.0
    for k, (m, W) in enumerate(zip(sizes, widths, strict=True)):
        rows = float(n) * (draws if k else 1)
        flops += rows * m * m * (1 + 2 * W) + float(m) ** 3 * (1 + W)
        values += rows * m
    return Cost(flops * (3 if gradient else 1), values, values if gradient else 0.0)


def bytes_of(sizes: Sequence[int], widths: Sequence[int], rows: int, d: int) -> int:
    """Beyond the data: what a program keeps of `rows` rows for its way back, and the weights with their
    moments (Adam's two, the gradient, a copy)."""
    total = 0
    for m, W in zip(sizes, widths, strict=True):
        total += rows * m * (6 + 2 * W) + 6 * W * m * m + 10 * m * m
    return 8 * (total + rows * (d + 4 * max(widths)))
