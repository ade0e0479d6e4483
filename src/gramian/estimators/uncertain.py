"""Inputs that are known up to a variance: x ~ N(row of X, diag(X_var)).

Predictions are averages over x: a mixture of the predictions at nodes that are equally probable, so that
whatever is asked of a prediction (intervals, densities, draws) is asked of the mixture. Nodes have mean 0 and
variance 1 exactly, and the mean of a parabola is then exact, too.

A fit adds to the noise of each row the variance of f's mean over its x, from the fit before, and fits again
(McHutchon and Rasmussen 2011, with that variance in the place of a squared slope).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn.base import clone

from gramian import journal
from gramian.arrays import Array, real_numbers
from gramian.data.inputs import read_noise_var, read_targets
from gramian.errors import InputError
from gramian.estimators import build, reading
from gramian.estimators.resuming import identify

LINE, SEVERAL = 100, 256  # nodes for one uncertain column, and for more
ROUNDS = 2  # of a fit after the first
UNCERTAIN = "Inputs are uncertain (X_var): the variance of f over what each row may be counts as noise of it."


def fit(gp: Any, X: Any, y: Any, noise_var: Any, X_var: Any) -> Any:
    """A regressor fitted to rows of X, and from what it says of f around each row, again."""
    if journal.here() is not None:
        table, _, targets, _, known = reading.training(gp, X, y, {}, noise_var)
        Y, _ = read_targets(targets, len(table))
        given = {"X": table, "y": Y, "X_var": np.atleast_1d(np.asarray(X_var, dtype=np.float64))}
        identify(gp, {**given, "noise_var": read_noise_var(known, len(table))})
    found = clone(gp).fit(X, y, noise_var)
    table = found.read(X)
    if len(table) != len(found.fitted_.rows.X) or not found.fitted_.single:
        raise InputError("X_var needs one target, and rows without gaps: leave rows without a target out.")
    var = found.read_variances(X_var, table)
    for _ in range(ROUNDS if var is not None else 0):
        assert var is not None
        means = np.stack([found.fitted_.function(moved).mean for moved in spread(table, var)])
        known = np.var(means, axis=0) + (0.0 if noise_var is None else np.asarray(noise_var, np.float64))
        noise = build.noise_of(gp)
        if noise is None and noise_var is None:
            # beside known variances there is none unless it is asked for
            noise = max(float(found.likelihood_.variances()[0]), 1e-12 * float(np.mean(known)))
        found = clone(gp).set_params(noise=noise).fit(X, y, known)
    gp.fitted_ = found.fitted_ if var is None else found.fitted_.told(UNCERTAIN)
    gp.n_features_in_ = found.n_features_in_
    if hasattr(found, "feature_names_in_"):
        gp.feature_names_in_ = found.feature_names_in_
    return gp


def read_variances(X_var: Any, table: Array, categories: dict[int, Any]) -> Array | None:
    """Variances of cells (n, d), from one number, one a column or one a cell; None where there are none."""
    if X_var is None:
        return None
    n, d = table.shape
    try:
        given = real_numbers(X_var)
        var = np.broadcast_to(np.zeros(0) if given is None else given, (n, d))
    except ValueError:
        shown = f"has shape {np.shape(X_var)}" if np.ndim(X_var) else f"is {X_var!r}"
        rule = f"one number, one a column ({d}), or one a cell ({n}, {d})"
        raise InputError(f"X_var {shown}, but must be {rule}.") from None
    if not np.all(np.isfinite(var)) or np.any(var < 0):
        raise InputError("X_var holds a number that is negative or not finite; it has variances, 0 for none.")
    words = [j for j in categories if np.any(var[:, j] > 0)]
    if words:
        raise InputError(f"X_var is above 0 in column {words[0]}, which holds categories. Give 0 there.")
    return np.array(var) if np.any(var > 0) else None


@cache
def nodes(columns: int) -> Array:
    """Equally probable points of a standard normal, (J, columns), of mean 0 and variance 1."""
    if columns == 1:
        points = ndtri((np.arange(LINE) + 0.5) / LINE)[:, None]
    else:
        points = ndtri(qmc.Sobol(columns, scramble=True, rng=np.random.default_rng(0)).random(SEVERAL))
        points -= np.mean(points, axis=0)
    return points / np.sqrt(np.mean(points**2, axis=0))


def spread(table: Array, var: Array) -> list[Array]:
    """Tables like this one, equally probable."""
    uncertain = np.flatnonzero(np.any(var > 0, axis=0))
    tables, sd = [], np.sqrt(var[:, uncertain])
    for node in nodes(len(uncertain)):
        moved = table.copy()
        moved[:, uncertain] += sd * node
        tables.append(moved)
    return tables
