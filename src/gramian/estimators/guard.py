"""The guard of kernels with networks: a fit takes one only where it foretells held-out rows better than its
rivals do (`Kernel.rivals`: the kernel without its network, the network with a linear head).

A quarter of the rows is held out. All are fitted to the others (up to ROWS of them) by maximum evidence, the
simplest first; another takes its place where it raises the log density of the held-out y by more than its
standard error. What is taken is then fitted on all rows, from where it was. Why not the evidence itself: with
thousands of weights it rises with what they memorise (Ober, Rasmussen and van der Wilk 2021). Why not leaving
out one row at a time: the weights have seen it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gramian.arrays import Array
from gramian.data.inputs import Columns
from gramian.engines.dense import Exact
from gramian.estimators.build import Built
from gramian.estimators.defaults import HELD, ROWS, Candidate, Choice, Step, Walk
from gramian.estimators.predictions import Latents, row_densities
from gramian.fitting.lbfgs import Search
from gramian.fitting.progress import Report
from gramian.fitting.rows import in_random_order
from gramian.inference import Data, Model
from gramian.inference.base import on_engine
from gramian.inference.conjugate import closed
from gramian.inference.softmax.laplace import laplace_for
from gramian.kernels import Kernel
from gramian.predictive import log_normal

HELD_SHARE = 0.25
FEWEST_HELD = 5  # rows below which they say nothing, and the simplest rival is taken
DEEP = "the deep kernel"


def guarded(built: Built, columns: Columns, rng: np.random.Generator, report: Report) -> Choice | None:
    """The choice between a kernel with a network and its rivals; None where there is no network to train."""
    X = np.asarray(built.rows.X, dtype=np.float64)
    if not built.kernel.rivals(X, columns.names):
        return None
    walk = Guard.of(built, columns, X, rng, report)
    count = len(walk.held.X) if walk.held is not None else 0
    if count < FEWEST_HELD:
        name, simplest = walk.rivals[0]
        why = f"{len(X)} rows are too few to hold some out"
        made = built._replace(kernel=simplest[0], model=dataclasses.replace(built.model, kernel=simplest[1]))
        nowhere = Search(np.zeros(0), np.nan, "not searched", 0, 0, 0, 0)
        return Choice(made, (nowhere,), (f"model: {name}, since {why}",))
    return walk.choice(built)


Pair = tuple[Kernel, Kernel]  # as people wrote it, and as the model has it


class Guard(Walk):
    """A path from the simplest rival to the deep kernel."""

    rivals: list[tuple[str, Pair]]

    @classmethod
    def of(cls, built: Built, columns: Columns, X: Array, rng: np.random.Generator, report: Report) -> Guard:
        order = in_random_order(built.rows, rng)
        held = min(int(HELD_SHARE * len(order)), HELD)
        likelihood = built.model.likelihood
        functions = 1 if likelihood.conjugate else likelihood.latents
        rows = np.sort(order[held : held + ROWS // functions])
        method = closed(Exact()) if likelihood.conjugate else on_engine(Exact(), laplace_for(likelihood))
        judging = built.rows.take(np.sort(order[:held])) if held else None
        guard = cls(columns, built.rows.take(rows), judging, method, report)
        guard.rivals = _compared(built, X, columns.names)
        return guard

    @property
    def steps(self) -> Sequence[Step]:
        return [self._step(number) for number in range(1, len(self.rivals))]

    def densities(self, step: Candidate, held: Data) -> Array:
        model, posterior = step.model, self.method.infer(step.model, self.data).posterior
        mean, var = posterior.moments(held.X)
        if not model.likelihood.conjugate:
            return row_densities(Latents(model.likelihood, mean, var), held.Y)
        return normal_densities(model, mean, var, held)

    def _walked(self, plain: Candidate) -> Candidate:
        return super()._walked(self._candidate(0, plain.model))

    def _step(self, number: int) -> Step:
        return lambda plain, best: self._candidate(number, plain.model)

    def _candidate(self, number: int, model: Model) -> Candidate:
        name, (kernel, resolved) = self.rivals[number]
        return Candidate(name, kernel, dataclasses.replace(model, kernel=resolved))


def normal_densities(model: Model, mean: Array, var: Array, held: Data) -> Array:
    """log p(y) of each held-out row under Gaussian noise, from the moments of f."""
    known = 0.0 if held.noise_var is None else held.noise_var[:, None]
    each = log_normal(held.under(model).Y, mean, var + model.gaussian.variances() + known)
    slopes = 0.0 if model.warp is None else np.nansum(model.warp.log_slope(held.Y), axis=1)
    return np.asarray(np.nansum(each, axis=1) + slopes)


def _compared(built: Built, X: Array, names: Sequence[str]) -> list[tuple[str, Pair]]:
    """All that is compared, the simplest first, the deep kernel last."""
    kernels = [kernel.suited(X, names) for kernel in (built.kernel, built.model.kernel)]
    rivals = zip(*(kernel.rivals(X, names) for kernel in kernels), strict=True)
    pairs = [(name, (written, resolved)) for (name, written), (_, resolved) in rivals]
    return [*pairs, (DEEP, (kernels[0], kernels[1]))]
