"""Models for people who give none: starting values from the data, and weak priors that keep them in a
sensible range.

With sd_j the standard deviation of column j, d the number of numeric columns and v the variance of y (1 when
y is normalised):

    kernel   v * Matern52(lengthscale_j), times Categorical() on categorical columns
    lengthscale_j ~ LogNormal(log(sd_j sqrt(d)), 1.5)      distances grow as sqrt(d), so lengthscales must too
                                                           (Hvarfner et al. 2024)
    scale         ~ LogNormal(log v, 1.5)
    noise         ~ LogNormal(log(0.01 var y), 2)
    mean          constant, no prior

A standard deviation of 1.5 in the logarithm is a factor of 20 either way within two standard deviations: a
few dozen rows overrule it. Priors are of the user's parameters only when the user's kernel has them; a kernel
that is given is fitted by maximum evidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.inputs import Columns, spread
from gramian.errors import InputError, ParameterError
from gramian.kernels import Categorical, Kernel, Matern52, Scaled
from gramian.means import ConstantMean, LinearMean, Mean, ZeroMean
from gramian.params import LogNormal, Parameter, fixed, param

Array = NDArray[np.float64]

NOISE_SHARE = 0.01  # of var y: where learned noise starts
NOISE_FLOOR = 1e-8  # of var y: below it K + noise has more condition than float64 has digits for


def times_categories(X: Array, columns: Columns, made: Callable[[Array], Kernel]) -> Kernel:
    """A kernel that is `made` from a lengthscale for each numeric column, times a Categorical for the
    others."""
    numeric = [j for j in range(X.shape[1]) if j not in columns.categories]
    lengthscales = spread(X[:, numeric]) * np.sqrt(len(numeric))
    if not columns.categories:
        return made(lengthscales)
    text = [columns.names[j] for j in columns.categories]
    words = Categorical(np.full(len(text), 0.5)).on(*text)
    return made(lengthscales).on(*(columns.names[j] for j in numeric)) * words if numeric else words


def default_kernel(X: Array, columns: Columns, variance: float) -> Kernel:
    """A scaled Matern-5/2 with a lengthscale a numeric column, times a Categorical for the others."""

    def matern(lengthscales: Array) -> Kernel:
        prior = LogNormal(tuple(map(float, np.log(lengthscales))), 1.5)
        return Matern52(param(lengthscales, prior=prior))

    kernel = times_categories(X, columns, matern)
    return Scaled(kernel, param(variance, prior=LogNormal(float(np.log(variance)), 1.5)))


def noise_parameter(given: object, variance: float, with_prior: bool, absolute_floor: float) -> Parameter:
    """The noise variance: as given, or a start from the data. `variance` is that of y in the units the noise
    is in."""
    if given is None:
        start = NOISE_SHARE * variance
        prior = LogNormal(float(np.log(start)), 2.0) if with_prior else None
        return param(start, prior=prior, bounds=(NOISE_FLOOR * variance, 1e4 * variance))
    parameter = given if isinstance(given, Parameter) else _noise_number(given)
    if parameter.value.ndim:
        raise ParameterError(
            f"noise must be one variance, but has shape {parameter.value.shape}. For one a row, use fit(X, y,"
            " noise_var=...)."
        )
    if parameter.trainable and parameter.bounds is None and float(parameter.value) > 0:
        value = float(parameter.value)
        bounds = (min(absolute_floor, value), 1e4 * max(variance, value))
        return dataclasses.replace(parameter, bounds=bounds)
    return parameter


def _noise_number(given: Any) -> Parameter:
    numeric = isinstance(given, (int, float, np.integer, np.floating)) and not isinstance(given, bool)
    if not numeric or not np.isfinite(given) or given < 0:
        raise ParameterError(
            "noise must be a variance (a number from 0 on) or a parameter such as gramian.fixed(0.01), not"
            f" {given!r}."
        )
    # A start of exactly 0 could never move: it means noise-free.
    return fixed(0.0) if given == 0 else param(float(given))


def mean_function(given: object, loc: Array, columns: Columns) -> Mean:
    """The mean by name, starting at `loc` (the average of y when it is normalised, else 0), or the object
    that was given."""
    if isinstance(given, Mean):
        return given
    if given == "zero":
        return ConstantMean(fixed(loc)) if np.any(loc != 0) else ZeroMean()
    if given == "constant":
        return ConstantMean(loc)
    if given == "linear":
        # codes of categories have no slope
        numeric = tuple(j for j in range(len(columns.names)) if j not in columns.categories)
        if not numeric:
            return ConstantMean(loc)
        return LinearMean(loc, columns=numeric if columns.categories else ())
    raise ParameterError(f'mean={given!r} is not known. Use "zero", "constant", "linear", or a gramian.Mean.')


def output_spread(Y: Array, single: bool) -> Array:
    """The standard deviation of each output; where it is constant to rounding, its own size (1 for zeros):
    what else it may be, no data tell."""
    size = np.nanmax(np.abs(Y), axis=0)  # NaN: not observed
    sd = np.nanstd(Y / np.where(size > 0, size, 1.0), axis=0) * size
    spread = np.where(sd > 1e-15 * size, sd, np.where(size > 0, size, 1.0))
    extreme = np.flatnonzero(~((spread > 1e-130) & (spread < 1e130) & (size < 1e150)))
    if len(extreme):
        k = int(extreme[0])
        which = "y has values" if single else f"Output {k} of y has values"
        raise InputError(
            f"{which} of size {size[k]:.3g} and spread {spread[k]:.3g}, whose squares leave the range of"
            f" numbers. Give y in other units: y / {size[k]:.0e}."
        )
    return spread
