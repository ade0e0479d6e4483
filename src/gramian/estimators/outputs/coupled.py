"""The path of coupled outputs: which B, and which kernels of x."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gramian.data.inputs import Columns
from gramian.estimators.build import Built, default_kernel
from gramian.estimators.defaults import Choice
from gramian.estimators.outputs.beginnings import OWN, believed, between
from gramian.estimators.outputs.paths import BEYOND, Path, PathStep, some_rows
from gramian.estimators.outputs.settings import read_outputs
from gramian.fitting.progress import Report
from gramian.inference import Scheme
from gramian.kernels import Kernel, Matern12, Matern52, Stationary
from gramian.kernels.coregion import Coregion, correlations

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor

ENTRIES = 700  # of Y that a path of coupled outputs is walked on


def coupled_choice(
    gp: GPRegressor, built: Built, columns: Columns, scheme: Scheme, rng: np.random.Generator, report: Report
) -> Choice | None:
    """Which B, and which kernel of x beside it."""
    _, given = read_outputs(gp.outputs)
    data, free = built.rows, gp.kernel is None
    q = data.Y.shape[1]
    prior = gp.hyper != "ml"
    some = some_rows(data, max(ENTRIES // q, 20), rng)
    few = scheme.on_few_rows()
    path = Path(columns, report)
    tried: list[PathStep] = []

    def step(name: str, start: Built) -> PathStep:
        model, height = path.best(start.model, some, few)
        tried.append(PathStep(name, start._replace(model=model), height))
        return tried[-1]

    def kernel_of(family: type[Stationary]) -> Kernel:
        # B has the variance
        made = default_kernel(np.asarray(some.X), columns, 1.0, family)
        scale, *others = made.parameters().values()
        return made.with_parameters([dataclasses.replace(scale, prior=None, trainable=False), *others])

    def with_kernel(start: Built, kernel: Kernel, outputs: tuple[Coregion, ...]) -> Built:
        model = dataclasses.replace(start.model, kernel=kernel.resolve(columns.names), outputs=outputs)
        return start._replace(kernel=kernel, model=model)

    begun = between(built, given, 1, prior)
    if free:
        begun = with_kernel(begun, kernel_of(Matern52), begun.model.outputs)
    names = "Matern-5/2" if free else "the kernel"
    best = step(f"{names}, rank {begun.model.outputs[0].rank}", begun)
    for rank in range(2, q + 1 if not given else 2):
        if path.over:
            break
        wider = _wider(best.built, prior)
        one = step(f"{names}, rank {rank}", wider)
        if not one.height > best.height:
            break
        best = one
    if free and len(best.built.model.outputs) == 1 and not path.over:
        outputs = best.built.model.outputs
        rough = step("Matern-1/2", with_kernel(best.built, kernel_of(Matern12), outputs))
        if not path.over and not given:
            small = tuple(_shrunk(one) for one in outputs)
            both = kernel_of(Matern52) + kernel_of(Matern12)
            first = best.built.model.kernel.parameters().values()
            resolved = both.resolve(columns.names)
            known = [*first, *list(resolved.parameters().values())[len(first) :]]
            model = dataclasses.replace(
                best.built.model, kernel=resolved.with_parameters(known), outputs=(*outputs, *small)
            )
            step("Matern-5/2 and Matern-1/2, each with its B", best.built._replace(kernel=both, model=model))
        best = max((best, rough, tried[-1]), key=lambda one: one.height)
    if not path.searches:
        return None
    rows = "all" if some is data else f"{len(some.X):,} of {len(data.X):,}"
    return Choice(best.built, tuple(path.searches), _told(best, tried, rows))


def _wider(built: Built, prior: bool) -> Built:
    """The model with one more shared function, along what the others explain least of."""
    (old,) = built.model.outputs
    T = built.rows.under(built.model).Y
    W = old.weights.value
    left = correlations(T) - W @ W.T / max(1.0, float(np.max(np.sum(W * W, axis=1))))
    vectors = np.linalg.eigh(left)[1]
    size = float(np.sqrt(np.mean(old.own.value) + 1e-3))
    more = vectors[:, [-1]] * np.sqrt(len(W)) * min(0.5, size)
    new = believed(old.outputs, old.rank + 1, prior)
    weights, own = new.weights.with_value(np.hstack([W, more])), new.own.with_value(old.own.value)
    outputs = (dataclasses.replace(new, weights=weights, own=own),)
    return built._replace(model=dataclasses.replace(built.model, outputs=outputs))


def _shrunk(between: Coregion) -> Coregion:
    """A B of a little variance, where that of a second kernel begins."""
    W, own = between.weights, between.own
    small = W.with_value(np.sqrt(BEYOND) * W.value), own.with_value(BEYOND * np.maximum(own.value, OWN))
    return dataclasses.replace(between, weights=small[0], own=small[1])


def _told(best: PathStep, tried: Sequence[PathStep], rows: str) -> tuple[str, ...]:
    first = f"model by the height of its parameters' posterior, on {rows} rows: {best.name}"
    others = [(one.height - best.height, one.name) for one in tried if one is not best]
    listed = "; ".join(f"{name} {gain:+.2g}" for gain, name in sorted(others, reverse=True))
    return (first, f"others, in nats: {listed}") if others else (first,)
