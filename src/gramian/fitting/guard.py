"""What a later stage of a search has lost, and a second way to where it should be.

More rows than the stage before can have an optimum at which nothing is noise, or at which neighbours tell
nothing of each other: from a start that suits other rows a search may end there, though a better one is near.
So where noise or a lengthscale has fallen so far below what the stage before has found, the search is done
once more from there, with the noise, of a few levels, that the evidence likes best; and whichever of the two
has the higher evidence on the same rows is kept. After a first part of that search it is seen whether there
is any hope: data that have no noise lose it rightly.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.clock import OutOfTime
from gramian.fitting.lbfgs import Search
from gramian.fitting.objective import Objective
from gramian.fitting.onward import best_start
from gramian.inference.model import Model
from gramian.params import ParameterSpace

FALLEN = 1e-3  # of the noise of the stage before: below it, it is lost
COLLAPSED = 0.03  # of a lengthscale of the stage before
MATTERS = 0.01  # nats: less is how a search ends
TRIAL, HOPELESS = 20, 0.1  # iterations, after which a search so many nats a row below another is given up
SUMS = ("iterations", "evaluations", "failures")


class Guarded(NamedTuple):
    """The better of two searches, and what was to be decided."""

    search: Search
    note: str = ""


def lost(before: Model, after: Model, d: int) -> str:
    """What has been lost between two stages, for people; nothing where nothing was."""
    found = []
    noises = [model.parameters().get("noise") for model in (before, after)]
    if after.likelihood.conjugate and noises[0] is not None and noises[1] is not None and noises[1].trainable:
        floor, now, then = noises[1].box[0] * (1 + 1e-6), noises[1].value, noises[0].value
        if np.any((now < FALLEN * then) | ((now <= floor) & (floor < 0.1 * then))):
            found.append("the noise")
    pairs = zip(_lengthscales(before, d), _lengthscales(after, d), strict=True)
    if any(np.any(now < COLLAPSED * then) for then, now in pairs):
        found.append("lengthscales")
    return " and ".join(found)


def guarded(
    objective: Objective, search: Search, before: Model, again: Callable[[Array, int | None], Search]
) -> Guarded:
    """The search, or a better one where it has lost something. `again(theta, iterations)` searches from
    there, so long (None: as long as the first)."""
    theta, _ = objective.split(search.theta)
    what = lost(before, objective.at(theta), objective.data.X.shape[1])
    if not what:
        return Guarded(search)
    try:
        start = best_start([before], objective.data, objective.inference)
    except OutOfTime:
        return Guarded(search)
    theta = np.concatenate([ParameterSpace(start.parameters()).theta, objective.inference.free])
    second = again(theta, TRIAL)
    searches = [search, second]
    far = second.value < search.value - HOPELESS * len(objective.data.X)
    if second.stopped == "iteration limit" and not far:
        second = again(second.theta, None)
        searches.append(second)
    counts = {name: sum(getattr(one, name) for one in searches) for name in SUMS}
    rows, gain = f"on {len(objective.data.X):,} rows", second.value - search.value
    if gain > MATTERS:
        kept = f"one from the stage before ended {gain:.3g} nats higher, and was kept"
        return Guarded(dataclasses.replace(second, **counts), f"A search {rows} lost {what}; {kept}.")
    stays = "one from the stage before found no higher evidence on these rows"
    return Guarded(dataclasses.replace(search, **counts), f"A search {rows} ended without {what}; {stays}.")


def _lengthscales(model: Model, d: int) -> list[Array]:
    return [own.value for kernel, _ in model.kernels for own, _ in kernel.lengthscales(range(d))]
