"""The library's answers to what the page asks, as plain values for JSON.

    evidence     log p(y), with its kind                       the page compares its own with it
    posterior    mean and variance of f at the grid, draws, covariances
    optimise     the parameters of the highest evidence
    deep         two layers fitted to the points: mean, interval and draws of f
    model        an opened model along one or two of its columns, the others as is typical

Each answer has a time limit, which the library keeps itself (clock.py); what is cut off is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.errors import InputError
from gramian.estimators.deep import DeepGPRegressor
from gramian.explore.wire import Message, Posed, engine_of, likelihood_values, tree_of
from gramian.gp import ConditionedGP, Functions

SECONDS, GRACE = 20.0, 5.0  # for an answer
DEEP_SECONDS = 60.0  # a deep fit takes ten on an idle machine, half of them to compile
INTERVAL = 0.95


@dataclass(frozen=True)
class Along:
    """An opened model that can be asked along some of its columns."""

    intervals: Callable[[Array], tuple[Array, Array, Array]]  # rows (n, d) -> mean, lower, upper
    typical: Array  # (d,)

    def at(self, columns: tuple[int, ...], places: Array) -> tuple[Array, Array, Array]:
        d = len(self.typical)
        if len(columns) != places.shape[1] or any(column >= d for column in columns):
            raise InputError(f"The model has {d} columns; it was asked along {columns}.")
        rows = np.tile(self.typical, (len(places), 1))
        rows[:, list(columns)] = places
        return self.intervals(rows)


def answer(message: Message, opened: Along | None = None) -> dict[str, Any]:
    """What the page gets; GramianError where there is none."""
    began = clock.now()
    with clock.until(began + (DEEP_SECONDS if message.ask == "deep" else SECONDS), GRACE):
        if message.ask == "model":
            if opened is None:
                raise InputError(
                    "No model was opened. Start the explorer with one: gramian explore model.gm."
                )
            found = _band(*opened.at(message.columns, message.grid))
        else:
            found = ANSWERS[message.ask](message)
        return found | {"seconds": clock.now() - began}


def _conditioned(message: Message) -> ConditionedGP:
    problem = _with_points(message)
    return problem.prior.condition(problem.X, problem.y, engine_of(message), message.inference)


def _evidence(message: Message) -> dict[str, Any]:
    return _told(_conditioned(message))


def _posterior(message: Message) -> dict[str, Any]:
    problem = message.problem
    assert problem is not None
    source: Functions = problem.prior
    found: dict[str, Any] = {"evidence": None, "kind": ""}
    if len(problem.X):
        source = conditioned = _conditioned(message)
        found = _told(conditioned)
    if len(message.grid):
        mean, var = source.moments(message.grid)
        found |= {"mean": mean.tolist(), "variance": var.tolist()}
        if message.draws:
            found["draws"] = source.sample(message.grid, message.draws, seed=0).T.tolist()
    if len(message.covariance):
        found["covariance"] = source.cov(message.covariance).ravel().tolist()
    return found


def _optimised(message: Message) -> dict[str, Any]:
    problem = _with_points(message)
    engine = engine_of(message)
    best = problem.prior.fit(problem.X, problem.y, engine, message.inference)
    model, search = best.model, best.search
    found = _told(best.condition(problem.X, problem.y, engine, message.inference))
    level = next(iter(model.mean.parameters().values()), None)
    return found | {
        "kernel": tree_of(model.kernel),
        "likelihood": likelihood_values(model.likelihood, problem.likelihood),
        "mean": 0.0 if level is None else float(f"{float(level.value):.6g}"),
        "stopped": "" if search is None else search.stopped,
    }


def _deep(message: Message) -> dict[str, Any]:
    problem = _with_points(message)
    if problem.likelihood != "gaussian":
        raise InputError("Here a deep process is for numbers with Gaussian noise.")
    if len(problem.X) < 5:
        raise InputError(f"A deep process needs five points or more; there are {len(problem.X)}.")
    deep = DeepGPRegressor(2, random_state=0, time_limit=DEEP_SECONDS - GRACE).fit(problem.X, problem.y)
    function = deep.fitted_.first.function(message.grid)
    low, high = function.interval(INTERVAL)
    draws = deep.sample(message.grid, max(message.draws, 1), random_state=0)
    evidence, layers = deep.evidence_, deep.n_layers_
    wanted = "" if layers == 2 else " Two were no better, or there was no time for them."
    return _band(function.mean, low, high) | {
        "draws": draws.T.tolist(),
        "evidence": evidence.value,
        "kind": evidence.kind,
        "note": f"{layers} layer{'s' * (layers > 1)}.{wanted}",
    }


ANSWERS: dict[str, Callable[[Message], dict[str, Any]]] = {
    "evidence": _evidence,
    "posterior": _posterior,
    "optimise": _optimised,
    "deep": _deep,
}


def _with_points(message: Message) -> Posed:
    problem = message.problem
    assert problem is not None
    if not len(problem.X):
        raise InputError("There are no points yet. Click into the picture to add some.")
    return problem


def _told(post: ConditionedGP) -> dict[str, Any]:
    return {"evidence": post.evidence.value, "kind": post.evidence.kind, "note": post.outcome.note}


def _band(mean: Array, low: Array, high: Array) -> dict[str, Any]:
    return {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
