"""What a fit should tell a person: contradictions in the data, parameters at their limits and what that
means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gramian.data.inputs import Columns, spread
from gramian.errors import InputError
from gramian.fitting.lbfgs import Search
from gramian.inference import Data, Model
from gramian.params import ParameterSpace
from gramian.params.space import entry_names
from gramian.solvers import SolveOutcome

NOT_OPTIMISED = "not optimised"  # how a search ended that was not wanted
# lengthscales beyond this many standard deviations of a column: along it f is flat, or a straight line, to
# one part in a thousand
_FAR = 30.0
_NEAR = 0.01  # lengthscales below this share of a column's spread: neighbours tell nothing of each other


def refuse_contradictions(data: Data, model: Model) -> None:
    """Equal rows with different y cannot be interpolated: refused when there is no noise to explain the
    difference."""
    noise = model.gaussian.noise
    if noise.trainable or float(noise.value) > 0:
        return
    exact = np.ones(len(data.X), bool) if data.noise_var is None else data.noise_var == 0
    _, first, inverse = np.unique(data.X, axis=0, return_index=True, return_inverse=True)
    twin = first[inverse.reshape(-1)]
    both = np.isfinite(data.Y) & np.isfinite(data.Y[twin])
    differs = np.any((data.Y[twin] != data.Y) & both, axis=1) & exact & exact[twin]
    if np.any(differs):
        j = int(np.flatnonzero(differs)[0])
        gap = float(np.nanmax(np.abs(data.Y[j] - data.Y[twin[j]])))
        raise InputError(
            f"Rows {twin[j]} and {j} of X are equal but y differs by {gap:.3g} while noise is fixed at 0. Let"
            " noise be learned (noise=0.01), or remove one of the rows."
        )


def search_notes(search: Search) -> list[str]:
    """What a person should know of how parameters were found."""
    sentences = []
    if search.stopped == "time limit" and search.evaluations < 2:
        sentences.append(
            "The parameters are not fitted: the time limit left no time for that, and they are at their"
            " starting values. Raise time_limit, or use a method that takes less (see plan())."
        )
    elif search.stopped in ("time limit", "interrupted", "iteration limit"):
        sentences.append(
            f"Fitting stopped early ({search.stopped}): these are the best parameters of {search.evaluations}"
            " evaluations."
        )
    if search.failures:
        sentences.append(
            f"{search.failures} of {search.evaluations} factorisations on the way failed; the search stepped"
            " back from them."
        )
    return sentences


def late(limit: float | None, searching: float, inferring: float) -> list[str]:
    """A word where a time limit was passed all the same."""
    if limit is None or searching + inferring <= 1.2 * float(limit) + 0.5:
        return []
    return [
        f"The time limit of {float(limit):g} s was passed: the search took {searching:.1f} s, the inference"
        f" after it {inferring:.1f} s. Another method or fewer rows take less: see plan()."
    ]


def notes(
    data: Data, columns: Columns, search: Search, outcome: SolveOutcome, of_parameters: Mapping[str, str]
) -> list[str]:
    """Sentences about a fit that a person should read; none when all is well."""
    sentences = search_notes(search)
    if not outcome.converged:
        sentences.append(
            "The solver missed its tolerance, so this answer is less accurate than was asked for:"
            f" {outcome.note}"
        )
    elif outcome.note:
        sentences.append(f"{outcome.note[0].upper()}{outcome.note[1:]}")
    if outcome.jitter:
        repeats = len(data.X) - len(np.unique(data.X, axis=0))
        cause = f" {repeats} rows of X repeat another." if repeats else ""
        sentences.append(
            f"K + noise was singular to rounding, so {outcome.jitter:g} of its mean diagonal was added."
            f"{cause} A larger noise (noise=1e-6 or so, times the variance of y) makes this unnecessary."
        )
    constant = [columns.names[j] for j in np.flatnonzero(np.ptp(data.X, axis=0) == 0)]
    if constant and len(data.X) > 1:
        sentences.append(f"Constant columns tell nothing: {', '.join(constant)}. They can be left out.")
    if len(data.X) > 1 and np.array_equal(np.fmax.reduce(data.Y), np.fmin.reduce(data.Y)):
        sentences.append("y is constant, so its variance cannot be learned; uncertainties are nominal.")
    return sentences + [f"{name}: {note}." for name, note in of_parameters.items()]


def parameter_notes(model: Model, data: Data, columns: Columns, stopped: str) -> dict[str, str]:
    """For each entry of a parameter that has something to tell: what its value means. `stopped`: how the
    search for them ended."""
    # a bound where nobody searched says nothing of the data
    meanings = {} if stopped == NOT_OPTIMISED else at_bounds(model)
    sd = spread(data.X)
    paths = {id(p): path for path, p in model.kernel.parameters().items()}
    for lengthscale, at in model.kernel.lengthscales(range(data.X.shape[1])):
        if lengthscale.value.ndim == 0 and len(at) != 1:
            continue  # one lengthscale for many columns says nothing of a single one
        names = entry_names(f"kernel.{paths[id(lengthscale)]}", lengthscale)
        for name, j, value in zip(names, at, lengthscale.value.ravel(), strict=True):
            column = f"column {columns.names[j]!r}"
            if value > _FAR * sd[j]:
                meanings.setdefault(name, f"far beyond the data: f is flat or straight along {column}")
            elif value < _NEAR * sd[j] and len(data.X) > 10:
                what = f"far below the spread of {column}: neighbours hardly inform each other"
                meanings.setdefault(name, what)
    return meanings


def at_bounds(model: Model) -> dict[str, str]:
    """For each entry of a parameter that a search has left at a bound: what that means."""
    meanings: dict[str, str] = {}
    for path, p in ParameterSpace(model.parameters()).trainable.items():
        if p.bounds is None:
            continue
        low, high = p.bounds
        for name, value in zip(entry_names(path, p), p.value.ravel(), strict=True):
            if path == "noise" and value <= low * (1 + 1e-6):
                meanings[name] = "at its floor: the data look free of noise"
            elif value <= low * (1 + 1e-6):
                meanings[name] = f"at its lower bound {low:g}; widen the bounds if that is unexpected"
            elif value >= high * (1 - 1e-6):
                meanings[name] = f"at its upper bound {high:g}; widen the bounds if that is unexpected"
    return meanings
