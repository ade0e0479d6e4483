"""The search of deep models: the shallow model first, then layers below it.

1. One layer: by L-BFGS on the bound with inducing points (by batches where rows are many and noise is not
   Gaussian). Its parameters, points and q are where the last layer of the deep model begins. Where it has a
   warp of y, that stays: all layers see y through it.
2. All layers: inner functions begin next to zero and next to certain (deep/layers.py), so that the deep model
   begins as the shallow one. Batches then give the gradients of everything at once: natural-gradient steps
   for q of the last layer, Adam for inner layers, inducing points and parameters, with those of the
   likelihood held at first: a noise that is free from the start explains what inner layers have not learned
   yet, and they never do.
3. The bounds are compared on all rows, with draws of their own; so are the densities of a tenth of the rows,
   where there are enough of them, which the last steps alone have seen. Where depth has not raised the
   bound, or has lowered the density by more than chance, the shallow model is the answer, fitted once more
   to all rows: never below it.
4. A ladder: each further layer is put below those that there are, again next to zero and next to certain, and
   begins from what the best model of fewer layers had found before it saw the rows that compare depths.

What those rows were foretold before they were seen goes on with the answer: they can calibrate it.

Source: Salimbeni and Deisenroth 2017; Salimbeni, Eleftheriadis and Hensman 2018 (natural gradients beside
Adam); Kingma and Ba 2015.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gramian import clock, journal
from gramian.arrays import Array, Indices
from gramian.clock import OutOfTime
from gramian.corrections import as_residuals
from gramian.deep.bound import (
    JITTER,
    DeepStep,
    LastWeights,
    LayerWeights,
    batch_of,
    floor_of,
    kernels_of,
    programs,
    step,
)
from gramian.deep.process import DeepProcess
from gramian.deep.scheme import Deep, DeepVariational, last_of
from gramian.engines.recipes import Sparse
from gramian.errors import NumericalError
from gramian.fitting.budget import Budget, at_random
from gramian.fitting.folds import Foretold
from gramian.fitting.objective import SEARCH_RANGE
from gramian.fitting.progress import Report
from gramian.fitting.stages import Hold, Searched, Stage
from gramian.fitting.stages import fit as fit_shallow
from gramian.fitting.stochastic import Adam, RowBatches, remaining, restore, settled, state_of
from gramian.fitting.trace import path_of
from gramian.inference.asked import ask
from gramian.inference.base import Scheme, on_engine
from gramian.inference.conjugate import closed
from gramian.inference.model import Data, Deeper, Evidence, Model
from gramian.inference.svgp.bound import VariationalWeights
from gramian.inference.svgp.inducing import SVGP, SparseVariational
from gramian.inference.variational import VI
from gramian.params import ParameterSpace
from gramian.params.tree import leaves
from gramian.predictive import Normals, mixed

DENSE_ROWS = 5000  # up to here one layer of any likelihood is searched by L-BFGS
ENOUGH = 1e-4  # nats a row that are worth a few evaluations more, of many rows with layers to come
RAMP = 20  # steps in which both sizes of step grow to their own
HELD = 0.2  # the share of the steps in which the likelihood is held
LAST_STEP = 0.1  # of the natural steps, at the end
FAILURES = 10  # steps in a row that may fail before the search ends
LINES = 100  # of progress
JUDGED, MOST_JUDGED, FEWEST_ROWS = 0.1, 1000, 200  # rows that compare depths: a share, at most, of how many
MOST_COPIED = 50_000  # rows that are taken apart for that
JUDGED_AFTER = 0.8  # of the steps; the others are on all rows
SHALLOW_SHARE = 0.3  # of a limited time, for one layer
LEAST_SECONDS = 5.0  # that make layers worth beginning, beside what is to be compiled
WORSE = 2.0  # standard errors by which left-out rows overrule the bound
WORTH = 1.0  # nats that make one more layer worth it


class Rung(NamedTuple):
    """Where a search stands that has not seen the rows that compare depths: the next one begins there."""

    model: Model
    found: DeepVariational
    q: tuple[VariationalWeights, ...]


class Judged(NamedTuple):
    """What rows were foretold that had not been seen."""

    log_density: Array  # (n,), of y / s
    foretold: Foretold | None  # of one output under Gaussian noise


class DepthCandidate(NamedTuple):
    """A model of some depth, as far as it is known."""

    model: Model
    found: DeepVariational
    evidence: Evidence  # on all rows
    rung: Rung
    judged: Judged | None = None  # by the rows that compare depths

    @property
    def depth(self) -> int:
        return len(self.found.Z)


def fit(
    model: Model,
    data: Data,
    method: Deep,
    restarts: int,
    rng: np.random.Generator,
    report: Report,
    budget: Budget | None = None,
    memory: Callable[[], float] = lambda: np.inf,
    holds: Sequence[Hold] = (),
) -> Searched:
    """The model of the depth that was asked for, or of fewer layers where that is better."""
    n = len(data.X)
    rows, held = _parted(data, rng) if len(method.layers) > 1 else (np.arange(n), None)
    # many rows stay where they are, and one layer then knows those that judge it: to its advantage
    part = data if held is None or n > MOST_COPIED else data.take(rows)
    found, one = _shallow(model, data, part, held, method, restarts, rng, report, budget, memory)
    stages, search, notes = list(found.stages), found.search, list(found.notes)
    best, told = one, []
    depths = range(2, len(method.layers) + 1)
    for number, depth in enumerate(depths):
        if search.stopped == "interrupted":
            break
        left = np.inf if budget is None else budget.left(method) / (len(depths) - number)
        if journal.chosen("no time", bool, partial(bool, left < LEAST_SECONDS)):
            notes.append(f"There was no time for {depth} layers: {_this_is(best)}. Raise time_limit.")
            search = dataclasses.replace(search, stopped="time limit")
            break
        own, since = method.to(depth), clock.now()
        run = Run.begun(own, model, data, rows, one.rung, best.rung, rng)
        end = None if left == np.inf else since + left
        stopped, deep = _grown(run, held, holds, report, end)
        stages.append(Stage(own.label, n, n, "", run.done, stopped, clock.now() - since))
        search = dataclasses.replace(
            search,
            stopped=stopped,
            iterations=search.iterations + run.done,
            evaluations=search.evaluations + run.done + run.failures,
            paths=(*search.paths, path_of(f"{own.label} on {n:,} rows", run.path, run.space)),
        )
        if deep is None:
            why = (
                "has failed, because its numbers left their range" if stopped == "failed" else "was not begun"
            )
            notes.append(f"The search of {depth} layers {why}: {_this_is(best)}.")
            break
        gain = _gain(best, deep)
        if _better(best, deep, WORTH if best is not one else 0.0):
            best = deep
            told.append(gain)
        elif depth == depths[-1] or method.auto:
            notes.append(f"{gain}: {_this_is(best)}.")
            break
    foretold = None if best.judged is None else best.judged.foretold
    tried = len(stages) > len(found.stages)
    if best is one and tried and held is not None and search.stopped != "interrupted":
        # it knows the rows that compare depths through q alone: its parameters have not seen them
        more, again = _shallow(one.model, data, data, None, method, 0, rng, report, budget, memory)
        stages += more.stages
        best = again if again.evidence.value > one.evidence.value else one
    theta = ParameterSpace(best.model.parameters()).theta
    search = dataclasses.replace(search, theta=theta, value=best.evidence.value)
    left_out = None if held is None or foretold is None else (held.X, foretold)
    return Searched(
        *(best.model, best.found, search, tuple(stages), data, data),
        level="; ".join(told),
        notes=tuple(notes),
        left_out=left_out,
    )


def _this_is(best: DepthCandidate) -> str:
    return f"this is the model of {'one layer' if best.depth == 1 else f'{best.depth} layers'}"


def _parted(data: Data, rng: np.random.Generator) -> tuple[Indices, Data | None]:
    """Rows to learn from first, and those that compare depths; all, where they are few."""
    n = len(data.X)
    if n < FEWEST_ROWS:
        return np.arange(n), None
    held = at_random(n, min(int(JUDGED * n), MOST_JUDGED), rng)
    return np.delete(np.arange(n), held), data.take(held)


def _shallow(
    model: Model,
    data: Data,
    part: Data,
    held: Data | None,
    method: Deep,
    restarts: int,
    rng: np.random.Generator,
    report: Report,
    budget: Budget | None,
    memory: Callable[[], float],
) -> tuple[Searched, DepthCandidate]:
    """The fitted model of one layer, as a deep one."""
    m = method.points(len(method.layers) - 1, len(data.X))
    scheme, own = shallow_method(method, model, len(part.X)), budget
    if budget is not None:
        end = clock.now() + SHALLOW_SHARE * budget.left(method)
        own = Budget(end, budget.seconds, (len(part.X), *budget.size[1:]))
    enough = 0.0 if held is None else ENOUGH
    found = fit_shallow(model, part, scheme, restarts, rng, report, own, memory, enough=enough)
    found = dataclasses.replace(found, model=_settled(found.model))
    with clock.until(None, anew=True):  # without points there is no model
        Z = SVGP(m).points(found.model.kernel, data.X, rng)
    sparse = SparseVariational((Z,))
    seen = [rows.under(found.model) for rows in (part, data)]
    q, _ = sparse.optimum(found.model, seen[0], JITTER)
    judged = None
    one = method.to(1).prepared(found.model, data, rng, Z)

    def with_q(q: Sequence[VariationalWeights]) -> DeepVariational:
        mu, root, apart = last_of(q)
        return dataclasses.replace(one, last_mu=mu, last_root=root, divergence=apart)

    if held is not None:
        judged = judged_by(found.model, with_q(q), held)
        known, value = dataclasses.replace(sparse, q=q).optimum(found.model, seen[1], JITTER)
    else:
        known, value = q, sparse.optimum(found.model, seen[1], JITTER)[1]
    evidence = Evidence(value + data.log_slopes(found.model), "lower bound")
    rung = Rung(found.model, with_q(q), q)
    return found, DepthCandidate(found.model, with_q(known), evidence, rung, judged)


def _settled(model: Model) -> Model:
    """The same with a warp that stays: what the layers see is y through it."""
    if model.warp is None:
        return model
    held = [
        dataclasses.replace(own, trainable=False, prior=None, bounds=None)
        for own in model.warp.parameters().values()
    ]
    return dataclasses.replace(model, warp=model.warp.with_parameters(held))


def _grown(
    run: Run, held: Data | None, holds: Sequence[Hold], report: Report, end: float | None
) -> tuple[str, DepthCandidate | None]:
    """Why the search has ended, and what it has found."""
    n, judged, rung = len(run.data.X), None, None
    steps = run.method.steps_for(n)
    report.stage(f"{run.method.label} on {n:,} rows", steps)
    tied = run.tied(holds, steps)
    with programs():
        if held is None:
            stopped = run.climb(0, steps, steps, report, tied, end)
        else:
            until = None if end is None else clock.now() + JUDGED_AFTER * (end - clock.now())
            first = int(JUDGED_AFTER * steps)
            stopped = run.climb(0, first, steps, report, tied, until)
            if run.done:
                rung = Rung(*run.result(), run.q)
                judged = judged_by(rung.model, rung.found, held)
            run.rows = np.arange(n)
            if stopped not in ("interrupted", "failed"):
                stopped = run.climb(first, steps, steps, report, tied, end)
    if not run.done:
        return stopped, None
    model, found = run.result()
    with clock.until(None, anew=True):
        evidence = found.bound(model, run.data)
    if not np.isfinite(evidence.value):
        return "failed", None
    return stopped, DepthCandidate(model, found, evidence, rung or Rung(model, found, run.q), judged)


def _better(fewer: DepthCandidate, deep: DepthCandidate, by: float = 0.0) -> bool:
    """Whether the bound is higher, unless left-out rows are foretold worse by more than chance."""
    if fewer.judged is not None and deep.judged is not None:
        gain = deep.judged.log_density - fewer.judged.log_density
        if np.mean(gain) < -WORSE * np.std(gain) / np.sqrt(len(gain)):
            return False
    return deep.evidence.value > fewer.evidence.value + by


def _gain(fewer: DepthCandidate, deep: DepthCandidate) -> str:
    """By how much depth has raised the bound and the density of left-out rows."""
    change = deep.evidence.value - fewer.evidence.value
    text = f"{deep.depth} layers {_raised(change)} the bound by {abs(change):.4g} nats"
    text += f" (from {fewer.evidence.value:.4g} to {deep.evidence.value:.4g})"
    if fewer.judged is not None and deep.judged is not None:
        gain = deep.judged.log_density - fewer.judged.log_density
        error = float(np.std(gain) / np.sqrt(len(gain)))
        mean = float(np.mean(gain))
        text += f", and {_raised(mean)} the log density of {len(gain):,} left-out rows by {abs(mean):.3g}"
        text += f" +- {error:.2g} a row"
    return text


def _raised(change: float) -> str:
    return "raise" if change >= 0 else "lower"


def judged_by(model: Model, found: DeepVariational, rows: Data) -> Judged:
    """What rows are foretold, averaged over draws of the inner layers; densities of outputs are added up."""
    process = DeepProcess.of(found, model, rows.scale)
    likelihood = model.likelihood
    slopes = 0.0 if model.warp is None else np.nansum(model.warp.log_slope(rows.Y), axis=1)
    rows = rows.under(model)
    logs, parts = [], []
    known, added = (np.zeros(1) if v is None else v for v in (rows.noise_var, rows.added_noise))
    with clock.until(None, anew=True):
        for _, mean, var in process.under(likelihood, rows.X):
            if likelihood.conjugate:
                plain = var + likelihood.variances()
                total = plain + added[:, None]
                terms = -0.5 * ((rows.Y - mean) ** 2 / total + np.log(2 * np.pi * total / process.scale**2))
                logs.append(np.nansum(terms, axis=1))
                parts.append(Normals(mean[:, 0], np.sqrt(plain[:, 0] + known)))
            else:
                logs.append(ask(likelihood, "scored", rows.Y, mean, var)[:, 0])
    foretold = None
    if likelihood.conjugate and rows.Y.shape[1] == 1 and np.all(np.isfinite(rows.Y)):
        together, y = mixed(parts), rows.Y[:, 0]
        foretold = Foretold(together.mean, as_residuals(together.cdf(y), (y - together.mean) / together.std))
    return Judged(np.asarray(logsumexp(np.stack(logs), axis=0) - np.log(len(logs)) + slopes), foretold)


def shallow_method(method: Deep, model: Model, n: int) -> Scheme:
    """How the model of one layer is searched for."""
    m = method.points(len(method.layers) - 1, n)
    if model.likelihood.conjugate:
        return closed(Sparse(m))
    return on_engine(Sparse(m), VI()) if n <= DENSE_ROWS else SVGP(m, batch_size=method.batch_size)


@dataclass
class Run:
    """Where a search of all layers is."""

    method: Deep
    model: Model
    data: Data
    rows: Indices  # of the data, that batches are made of
    found: DeepVariational
    q: tuple[VariationalWeights, ...]
    rng: np.random.Generator

    @classmethod
    def begun(
        cls,
        method: Deep,
        start: Model,
        data: Data,
        rows: Indices,
        one: Rung,
        fewer: Rung,
        rng: np.random.Generator,
    ) -> Run:
        """Below the layers of `fewer`, which stay as they are, where they see a table of the same form as
        before; else at `one`, the shallow model, with its points pushed through the means. `start`: the
        shallow model before its fit."""
        model = method.deeper(start, one.model, data)
        found = method.prepared(model, data, rng, one.found.Z[0])
        for upper in (fewer, one):
            new = len(found.Z) - len(upper.found.Z)
            if [Z.shape for Z in found.Z[new:]] == [Z.shape for Z in upper.found.Z]:
                if upper is not one:
                    kernels = [*kernels_of(model)[:new], *kernels_of(upper.model)]
                    deeper = tuple(Deeper(kernel, 2 + k) for k, kernel in enumerate(kernels[1:]))
                    model = dataclasses.replace(upper.model, kernel=kernels[0], deeper=deeper)
                Z, mu, T = (
                    (*own[:new], *theirs)
                    for own, theirs in zip(found.weights, upper.found.weights, strict=True)
                )
                found = dataclasses.replace(found, Z=Z, mu=mu, T=T)
                return cls(method, model, data, rows, found, upper.q, rng)
        free = tuple(VariationalWeights.prior(len(found.Z[-1])) for _ in one.q)
        return cls(method, model, data, rows, found, free, rng)

    def __post_init__(self) -> None:
        self.space, self.seen = ParameterSpace(self.model.parameters()), self.data.under(self.model)
        self.units = [np.where((sd := np.std(Z, axis=0)) > 0, sd, 1.0) for Z in self.found.Z]
        parts = [self.space.theta]
        parts += [(Z / unit).ravel() for Z, unit in zip(self.found.Z, self.units, strict=True)]
        parts += [v.ravel() for v in (*self.found.mu, *self.found.T)]
        self.cuts = np.cumsum([part.size for part in parts])[:-1]
        rate, faster = self.method.rates_for(len(self.rows))
        paces = [1.0] * (len(parts) - len(self.found.T)) + [faster] * len(self.found.T)
        self.paces = np.repeat(paces, [part.size for part in parts])
        self.vector = self.good = np.concatenate(parts)
        self.adam, self.rate = Adam(len(self.vector)), rate
        self.values: list[float] = []
        self.path: list[tuple[int, float, Array]] = []  # some steps, with height and vector
        self.taken = self.done = self.failures = self.in_a_row = 0
        low, high = np.array(self.space.limits, dtype=np.float64).reshape(-1, 2).T
        theta = self.space.theta
        self.low, self.high = np.maximum(low, theta - SEARCH_RANGE), np.minimum(high, theta + SEARCH_RANGE)

    @property
    def height(self) -> float:
        """The bound, averaged over the last steps."""
        last = max(1, min(50, len(self.values) // 2))
        return float(np.mean(self.values[-last:])) if self.values else -np.inf

    def at(self, vector: Array) -> tuple[Array, LayerWeights]:
        """theta, and the weights, of a search's vector."""
        theta, *parts = np.split(vector, self.cuts)
        L, found = len(self.found.Z), self.found
        Z = tuple(p.reshape(-1, len(u)) * u for p, u in zip(parts[:L], self.units, strict=True))
        mu = tuple(p.reshape(v.shape) for p, v in zip(parts[L : 2 * L - 1], found.mu, strict=True))
        T = tuple(p.reshape(v.shape) for p, v in zip(parts[2 * L - 1 :], found.T, strict=True))
        return theta, LayerWeights(Z, mu, T)

    def tied(self, holds: Sequence[Hold], steps: int) -> list[tuple[int, NDArray[np.bool_]]]:
        """Until which step which entries of theta stay: as asked for, or the likelihood's."""
        names = [(hold.names, hold.steps) for hold in holds]
        if not names and self.found.mu:
            names = [(tuple(self.model.likelihood.paths), int(HELD * steps))]
        found, until = [], 0
        for patterns, count in names:
            until += count
            own = [
                np.full(piece.parameter.value.size, any(fnmatchcase(piece.path, name) for name in patterns))
                for piece in self.space.pieces
            ]
            found.append((until, np.concatenate([np.zeros(0, bool), *own])))
        return found

    def step(self, at: Indices, rho: float, rate: float, tied: NDArray[np.bool_]) -> None:
        """One batch. `tied`: entries of theta that stay."""
        n, rows = len(self.rows), self.seen.take(at)
        theta, weights = self.at(self.vector)
        model = self.model.bare_at(self.space.arrays(theta))
        draws = self.method.draws_for(n) if self.found.mu else 1
        noise = tuple(self.rng.standard_normal((draws, len(at), W)) for W in self.found.widths)
        mu, root, apart = last_of(self.q)
        maps, floor = self.found.maps(self.data.scale), floor_of(self.model, n)
        made: DeepStep = step(
            *(self.found.wiring, model, weights, maps, LastWeights(mu, root), batch_of(rows), noise),
            *(n / len(at), JITTER, floor),
        )
        prior, by_prior = self.space.log_prior(theta)
        value = float(made.value) - float(made.divergence) - apart + prior
        by_model = dict(zip(self.model.parameters(), map(np.asarray, leaves(made.by_model)), strict=True))
        by_theta = np.where(tied, 0.0, self.space.pullback(theta, by_model) + by_prior)
        by_Z = [np.asarray(g) * u for g, u in zip(made.by_weights.Z, self.units, strict=True)]
        rest = [np.asarray(g) for g in (*made.by_weights.mu, *made.by_weights.T)]
        gradient = np.concatenate([by_theta, *(g.ravel() for g in (*by_Z, *rest))])
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            raise NumericalError(f"The bound or its gradient is not finite (value {value}).")
        sums = zip(self.q, np.asarray(made.S), np.asarray(made.b), strict=True)
        q = tuple(w.moved(np.asfortranarray(np.tril(S)), b, rho) for w, S, b in sums)
        vector = self.vector + self.paces * self.adam.step(gradient, rate)
        p = self.space.size
        vector[:p] = np.where(tied, theta, np.clip(vector[:p], self.low, self.high))
        self.good, self.vector, self.q = self.vector, vector, q
        self.done += 1
        self.values.append(value)

    def climb(
        self,
        first: int,
        last: int,
        steps: int,
        report: Report,
        tied: Sequence[tuple[int, NDArray[np.bool_]]],
        end: float | None,
    ) -> str:
        """Steps from the first to the last of so many, or as many as there is time for; returns why it has
        ended."""
        n = len(self.rows)
        order = RowBatches(n, min(self.method.batch_size, n), self.rng)
        self.taken, self.in_a_row, place = first, 0, journal.Place("layers")
        if place.found:
            restore(self, place, order)
        if place.ended:
            return place.ended
        try:
            why = self._climbed(first, last, steps, report, tied, end, order, place)
        except OutOfTime:
            why = "time limit"
        except KeyboardInterrupt:
            journal.stop()
            return "interrupted"
        place.end(why, lambda: state_of(self, order))
        return why

    def _climbed(
        self,
        first: int,
        last: int,
        steps: int,
        report: Report,
        tied: Sequence[tuple[int, NDArray[np.bool_]]],
        end: float | None,
        order: RowBatches,
        place: journal.Place,
    ) -> str:
        start, begun, free = clock.now(), self.taken, np.zeros(self.space.size, bool)
        while self.taken < last:
            k, now = self.taken, clock.now()
            if end is not None and now >= end and self.done:
                return "time limit"
            share = k / steps
            if end is not None:  # sizes of steps fall with the time
                gone = (now - start) / max(end - start, 1e-9)
                share = max(share, (begun + (last - begun) * gone) / steps)
            held = next((own for until, own in tied if share * steps < until), free)
            ramp, late = min(1.0, (self.done + 1) / RAMP), remaining(share)
            rho = ramp * max(late, LAST_STEP) * self.method.natural_step
            try:
                self.step(self.rows[next(order)], rho, ramp * late * self.rate, held)
                self.in_a_row = 0
            except NumericalError:  # Adam went too far: on from the last good place, with smaller steps
                self.vector, self.rate = self.good, self.rate / 2
                self.failures, self.in_a_row = self.failures + 1, self.in_a_row + 1
                if self.in_a_row == FAILURES:
                    return "failed"
            self.taken += 1
            place.keep(lambda: state_of(self, order))
            if k % max(1, steps // LINES) == 0:
                report(1, 1, k + 1, self.height)
                self.path.append((k + 1, self.height, self.good))
        return "converged" if settled(self.values) else "iteration limit"

    def result(self) -> tuple[Model, DeepVariational]:
        """Where it is now."""
        theta, weights = self.at(self.good if self.failures else self.vector)
        mu, root, apart = last_of(self.q)
        found = dataclasses.replace(
            self.found, Z=weights.Z, mu=weights.mu, T=weights.T, last_mu=mu, last_root=root, divergence=apart
        )
        return self.model.moved(self.space.arrays(theta)), found
