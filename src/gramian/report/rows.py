"""What the rows of a fit tell by themselves: columns that say nothing or are names of rows, rows that repeat
others, and targets that are no sums of f and Gaussian noise.

Each look begins with the cheapest test that most data fail: a fit of 20 rows takes 6 ms, and these looks 1 %
of that. What needs a sort of whole rows is left out where there is much of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np

from gramian.arrays import Array
from gramian.data.columns import INDICATOR
from gramian.data.inputs import Columns, some_of

FEW = 10  # rows of which nothing is said but what is so by their number alone
MANY = 1_000_000  # numbers in X beyond which rows are not compared with each other
# a column of such a name that counts the rows is a time, and no number of a row
TIMES = frozenset(("time", "date", "day", "week", "month", "year", "hour", "minute", "timestamp", "t", "ds"))
PLACEHOLDERS = frozenset({99.0, 999.0, 9999.0, 99999.0, 999999.0, 999.9, 9999.9})  # of either sign
FAR = 3.0  # times the range of all others, for one of these to be none of them
BY_CHANCE = 0.1  # of the rows whose target differs: rounded numbers that are equal now and then are no copies
FEW_COPIES = 0.005  # of all rows, that change neither noise nor scores
SMALL = 5.0, 1000.0  # counts begin this low, and have such a mean at most: dollars and metres do not
MANY_DIGITS = 12  # categories of digits and signs from which on they are more likely numbers than ranges
OWN_CATEGORY = 0.9  # of the rows with a category that no other has: names, not categories
SKEWED = 1.0  # skewness from which on a positive target asks for its logarithm; 1.75 if log y ~ N(., 0.5^2)


def row_notes(X: Array, Y: Array, columns: Columns, gaussian: bool, warped: bool = False) -> Iterator[str]:
    """Sentences about rows and their targets; `gaussian`: whether y is f plus Gaussian noise, in closed
    form; `warped`: whether that is said of a warped y."""
    n, d = X.shape
    if n < 2:
        return
    width = np.ptp(X, axis=0)
    if not width.all():
        constant = [columns.names[j] for j in np.flatnonzero(width == 0)]
        yield f"Constant columns tell nothing: {some_of(constant)}. They can be left out."
    if np.array_equal(np.fmax.reduce(Y), np.fmin.reduce(Y)):
        yield "y is constant, so its variance cannot be learned; uncertainties are nominal."
        return
    if n <= FEW:
        return
    yield from _placeholders(X, Y, columns, width)
    if d > 1 or columns.categories:
        yield from _names_of_rows(X, columns, width)
        yield from _words(columns)
        yield from _twins(X, columns, width)
    if X.size <= MANY:
        yield from _repeats(X, Y, gaussian)
    if gaussian and Y.shape[1] == 1 and not warped:
        yield from _target(Y[:, 0])


def _placeholders(X: Array, Y: Array, columns: Columns, width: Array) -> Iterator[str]:
    """Numbers such as -999, far from all others, that instruments write where nothing was measured."""
    measured = [j for j in range(X.shape[1]) if j not in columns.categories and width[j] >= min(PLACEHOLDERS)]
    named = [(f"Column {columns.names[j]!r}", X[:, j]) for j in measured]
    targets = columns.targets if len(columns.targets) == Y.shape[1] else ("y",) * Y.shape[1]
    for what, x in (*named, *zip(targets, Y.T, strict=True)):
        low, high = float(np.fmin.reduce(x)), float(np.fmax.reduce(x))
        for value, inner in ((low, np.fmin), (high, np.fmax)):
            if abs(value) not in PLACEHOLDERS:
                continue
            others = x[(x != value) & np.isfinite(x)]
            if len(others) < FEW // 2:
                continue
            least, most = float(others.min()), float(others.max())
            if abs(value - float(inner.reduce(others))) > FAR * max(most - least, 1e-300):
                count = int(np.sum(x == value))
                yield (
                    f"{what} is {value:g} in {count:,} row{'s' * (count > 1)}, far from all others"
                    f" ({least:.4g} to {most:.4g}). If that stands for a missing value, leave these cells"
                    " empty."
                )


def _names_of_rows(X: Array, columns: Columns, width: Array) -> Iterator[str]:
    """Columns that number or name the rows, beside others that could tell something."""
    n = len(X)
    timed = {j for j, reading in columns.readings.items() if reading.days is not None}
    timed |= {j for j, name in enumerate(columns.names) if name.lower() in TIMES}
    for j in np.flatnonzero(
        width == n - 1
    ).tolist():  # whole numbers without a gap, each once, are so far apart
        x = X[:, j]
        if (
            j not in columns.categories
            and j not in timed
            and np.array_equal(np.sort(x), np.arange(n) + x.min())
        ):
            yield (
                f"Column {columns.names[j]!r} counts the rows ({x.min():g} to {x.max():g}). If it is an id"
                " and no time, leave it out: new rows have numbers that nothing was learned about."
            )
    for j, categories in columns.categories.items():
        if len(categories) > OWN_CATEGORY * n:
            yield (
                f"Column {columns.names[j]!r} has {len(categories):,} categories in {n:,} rows. If they are"
                " names or codes of rows, leave it out: new rows have others."
            )


def _words(columns: Columns) -> Iterator[str]:
    """Categories that may be numbers, and those that may be one."""
    for j, categories in columns.categories.items():
        digits = sum(1 for word in categories if re.match(r"\W{0,3}\d", word))
        if len(categories) > MANY_DIGITS and digits > OWN_CATEGORY * len(categories):
            yield (
                f"Column {columns.names[j]!r} has words that begin with digits ({categories[0]!r}), and they"
                f" are {len(categories):,} categories. If they are numbers or dates, write them as 1234.5 or"
                " 2024-12-31."
            )
        alike = Counter(" ".join(word.casefold().split()) for word in categories)
        form, count = max(alike.items(), key=lambda item: item[1], default=("", 1))
        if count > 1:
            forms = [word for word in categories if " ".join(word.casefold().split()) == form]
            yield (
                f"Column {columns.names[j]!r} has categories that differ in capitals or blanks alone"
                f" ({', '.join(map(repr, forms[:3]))}), and each counts as another. If they are one, write"
                " them alike."
            )


def _twins(X: Array, columns: Columns, width: Array) -> Iterator[str]:
    """Columns that are equal, told by a few rows before they are compared."""
    n = len(X)
    seen: dict[tuple[float, ...], list[int]] = {}
    for j in np.flatnonzero(width > 0).tolist():
        among = seen.setdefault((float(width[j]), *X[[0, n // 3, n // 2, n - 1], j].tolist()), [])
        twin = next((k for k in among if np.array_equal(X[:, k], X[:, j])), None)
        if twin is None:
            among.append(j)
            continue
        if INDICATOR.format("") not in columns.names[j]:  # cells that are missing in the same rows
            a, b = columns.names[twin], columns.names[j]
            yield f"Columns {a!r} and {b!r} are equal in all rows: one of them can be left out."


def _repeats(X: Array, Y: Array, gaussian: bool) -> Iterator[str]:
    """Rows of X that are equal to one before."""
    for j in range(min(X.shape[1], 8)):
        x = np.sort(X[:, j])
        if not (x[1:] == x[:-1]).any():
            return  # rows that differ in one column differ
    rows = np.ascontiguousarray(X + 0.0).view(np.dtype((np.void, 8 * X.shape[1]))).ravel()  # -0 is 0
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    twin = first[inverse.reshape(-1)]
    again = np.flatnonzero(twin != np.arange(len(X)))
    if not again.size:
        return
    same = np.all((Y[again] == Y[twin[again]]) | np.isnan(Y[again]), axis=1)
    copies, others = int(np.sum(same)), int(np.sum(~same))
    if copies > max(BY_CHANCE * others, FEW_COPIES * len(X)):
        yield (
            f"{_rows(copies)} another's inputs with the same target. If they were copied, keep one of each:"
            " they count as observations of their own, and make noise look smaller than it is."
        )
    if others and not gaussian:
        yield f"{_rows(others)} another's inputs with another target: no model tells these apart."
    elif others:
        counts = np.bincount(inverse.reshape(-1))
        groups = [Y[inverse.reshape(-1) == g, 0] for g in np.flatnonzero(counts > 1)[:1000]]
        within = sum(np.nansum((y - np.nanmean(y)) ** 2) for y in groups if np.isfinite(y).any())
        freedom = sum(max(int(np.isfinite(y).sum()) - 1, 0) for y in groups)
        level = f": these alone show a noise variance of {within / freedom:.3g}" if freedom else ""
        yield f"{_rows(others)} another's inputs with another target{level}."


def _rows(count: int) -> str:
    return f"{count:,} rows repeat" if count > 1 else "One row repeats"


def _target(y: Array) -> Iterator[str]:
    """Counts, and positive numbers of which few are large: a Gaussian band reaches below zero there."""
    low = float(np.fmin.reduce(y))
    if low < 0:
        return
    y = y[np.isfinite(y)] if np.isnan(y).any() else y
    mean, sd = float(y.mean()), float(y.std())
    if mean > 4 * sd:
        return  # far from zero; Poisson counts of mean 16 and more are near to Gaussian
    lowest, largest_mean = SMALL
    near = low <= lowest and mean <= largest_mean
    if near and float(y[0]).is_integer() and bool((y == np.floor(y)).all()):
        if float(y.max()) > 1:
            labels = " If they are labels, classify them." if float(y.max()) < FEW else ""
            yield (
                f'y is whole numbers from {low:g} on. If they are counts, give likelihood="poisson", or'
                ' likelihood="negative-binomial" where they scatter more: then no band reaches below 0.'
                f"{labels}"
            )
        return
    if low > 0 and mean < 2 * sd:
        skewness = float(np.mean(((y - mean) / sd) ** 3))
        logs = np.log(y)
        left = float(np.mean((logs - logs.mean()) ** 3)) / max(float(logs.std()) ** 3, 1e-300)
        if skewness > SKEWED and abs(left) < 0.5 * skewness:
            yield (
                f"y is positive with few large values (skewness {skewness:.1f}). Its logarithm is closer to a"
                ' Gaussian: fit log y, or give likelihood="gamma".'
            )
