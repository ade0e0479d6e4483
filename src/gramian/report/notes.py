"""What a fit should tell a person: contradictions in the data, parameters at their limits and what that
means, summands of a kernel that have vanished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.inputs import Columns, some_of
from gramian.errors import InputError
from gramian.fitting.lbfgs import Search
from gramian.gram import tiles
from gramian.inference import Data, Model
from gramian.params import ParameterSpace
from gramian.params.space import entry_names
from gramian.report.rows import FEW, row_notes
from gramian.solvers import SolveOutcome

NOT_OPTIMISED = "not optimised"  # how a search ended that was not wanted
# lengthscales beyond this many standard deviations of a column: along it f is flat, or a straight line, to
# one part in a thousand
_FAR = 30.0
# lengthscales below this share of a column's spread are compared with the steps between its values, which
# takes a sort
_NEAR = 0.01
_NOTHING = 1e-4  # of the variance of y: 1 % of its standard deviation
_SOME = 64  # rows that tell how large a summand is
MOST_NAMES = 5  # of parameters with the same to tell


def refuse_contradictions(data: Data, model: Model) -> None:
    """Equal rows with different y cannot be interpolated: refused when there is no noise to explain the
    difference."""
    silent = np.broadcast_to(model.gaussian.variances() == 0, data.scale.shape)
    if model.gaussian.noise.trainable or not silent.any():
        return
    exact = np.ones(len(data.X), bool) if data.noise_var is None else data.noise_var == 0
    _, first, inverse = np.unique(data.X, axis=0, return_index=True, return_inverse=True)
    twin = first[inverse.reshape(-1)]
    both = np.isfinite(data.Y) & np.isfinite(data.Y[twin])
    differs = np.any((data.Y[twin] != data.Y) & both & silent, axis=1) & exact & exact[twin]
    if np.any(differs):
        j = int(np.flatnonzero(differs)[0])
        gap = float(np.nanmax(np.abs(data.Y[j] - data.Y[twin[j]])[silent]))
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
        f" after it {inferring:.1f} s. Another method or fewer rows take less: a plan tells how much."
    ]


def notes(
    model: Model,
    data: Data,
    columns: Columns,
    search: Search,
    outcome: SolveOutcome,
    of_parameters: Mapping[str, str],
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
    closed = model.likelihood.conjugate and model.likelihood.latents == 1
    sentences += row_notes(data.X, data.Y, columns, closed, model.warp is not None)
    if data.excess is not None:
        sentences += _outliers(np.flatnonzero(data.excess))
    # variances of outputs that inform each other are between them
    if search.stopped != NOT_OPTIMISED and not model.deeper and not model.outputs:
        sentences += vanished(model, data, closed)
    return sentences + told(of_parameters)


def _outliers(rows: NDArray[np.intp]) -> list[str]:
    if not len(rows):
        return []
    some = some_of([f"{row:,}" for row in rows], MOST_NAMES)
    which = f"Row {some} is taken for an outlier and hardly counts: its y is"
    if len(rows) > 1:
        which = f"{len(rows):,} rows are taken for outliers and hardly count ({some}, from 0): their y are"
    cure = 'Look at them; kernel="matern52" counts every row alike'
    return [f"{which} far from what all others foretell. {cure}."]


def told(of_parameters: Mapping[str, str]) -> list[str]:
    """The notes of parameters as sentences; one for all that have the same to tell."""
    alike: dict[str, list[str]] = {}
    for name, note in of_parameters.items():
        alike.setdefault(note, []).append(name)
    return [f"{_together(names)}: {note}." for note, names in alike.items()]


def _together(names: Sequence[str]) -> str:
    """kernel.lengthscale[age, bmi, bp and 7 more], where they are of one parameter."""
    stems = {name.partition("[")[0] for name in names}
    if len(names) == 1 or len(stems) > 1:
        return some_of(names, MOST_NAMES)
    inner = [name.partition("[")[2].removesuffix("]") for name in names]
    more = f" and {len(inner) - MOST_NAMES} more" if len(inner) > MOST_NAMES else ""
    return f"{stems.pop()}[{', '.join(inner[:MOST_NAMES])}{more}]"


def vanished(model: Model, data: Data, closed: bool) -> list[str]:
    """A word on summands of a kernel whose functions are nothing beside y; `closed`: y is f plus noise, else
    f has no units."""
    found = []
    for kernel, _ in model.kernels:
        terms = kernel.summands
        if len(terms) < 2:
            continue
        rows = np.asarray(data.X[:: max(1, len(data.X) // _SOME)], dtype=np.float64)
        whole = float(np.mean(np.nanvar(data.Y, axis=0) / data.scale**2)) if closed else 1.0
        shares = [float(np.mean(tiles.diagonal(term, rows))) / whole if whole else 1.0 for term in terms]
        found += [
            f"The summand {term} of the kernel has vanished: its share of the variance is {share:.0e}. Leave"
            " it out, or let it start elsewhere."
            for term, share in zip(terms, shares, strict=True)
            if share < _NOTHING and any(p.trainable for p in term.levels() or ())
        ]
    return found


def labels(model: Model, columns: Columns) -> dict[str, list[str]]:
    """For parameters with an entry a column, or an output, by path: what these are called, where they have
    names."""
    names, own = columns.names, {}
    if columns.named:
        own = {path: [names[j] for j in at] for path, at in model.by_column(len(names)).items()}
    noise = model.likelihood.parameters().get("noise") if model.likelihood.conjugate else None
    if noise is not None and noise.value.shape == (len(columns.targets),):
        own["noise"] = list(columns.targets)
    return own


def parameter_notes(model: Model, data: Data, columns: Columns, stopped: str, sd: Array) -> dict[str, str]:
    """For each entry of a parameter that has something to tell: what its value means. `stopped`: how the
    search for them ended; `sd`: the spread of each column."""
    # a bound where nobody searched says nothing of the data
    named = labels(model, columns)
    meanings = {} if stopped == NOT_OPTIMISED else at_bounds(model, named)
    paths = {id(p): path for path, p in model.kernel.parameters().items()}
    n = len(data.X)
    near = max(_NEAR, 2 / n)
    alone = len(model.kernel.summands) == 1  # else the rest of a sum may well tell
    # the first kernel of a deep model is not that of f
    along = [] if model.deeper else model.kernel.lengthscales(range(data.X.shape[1]))
    for lengthscale, at in along:
        if lengthscale.value.ndim == 0 and len(at) != 1:
            continue  # one lengthscale for many columns says nothing of a single one
        path = f"kernel.{paths[id(lengthscale)]}"
        names = entry_names(path, lengthscale, named.get(path, ()))
        for name, j, value in zip(names, at, lengthscale.value.ravel().tolist(), strict=True):
            if value > _FAR * sd[j]:
                meanings.setdefault(name, "far beyond the data: f is flat or straight along its column")
            elif value < near * sd[j] and n > FEW and (gap := _gap(data.X[:, j])) > 2 * value:
                what = f"far below {gap:.3g}, the usual step from one value of the column to the next:"
                says = "neighbours hardly inform each other" if alone else "this summand is nearly noise"
                meanings.setdefault(name, f"{what} {says}")
    for name, what in model.likelihood.meanings().items():
        meanings.setdefault(name, what)
    return meanings


def _gap(x: Array) -> float:
    """The median distance between neighbouring values of a column."""
    steps = np.diff(np.sort(x))
    steps = steps[steps > 0]
    return float(np.median(steps)) if steps.size else 0.0


def at_bounds(model: Model, named: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each entry of a parameter that a search has left at a bound: what that means."""
    meanings: dict[str, str] = {}
    for path, p in ParameterSpace(model.parameters()).trainable.items():
        if p.bounds is None:
            continue
        names = entry_names(path, p, named.get(path, ()))
        entries = (values.ravel().tolist() for values in (p.value, *p.box))
        for name, value, low, high in zip(names, *entries, strict=True):
            if path == "noise" and value <= low * (1 + 1e-6):
                meanings[name] = "at its floor: the data look free of noise"
            elif value <= low * (1 + 1e-6):
                meanings[name] = f"at its lower bound {low:g}; widen the bounds if that is unexpected"
            elif value >= high * (1 - 1e-6):
                meanings[name] = f"at its upper bound {high:g}; widen the bounds if that is unexpected"
    return meanings
