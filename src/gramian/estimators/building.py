"""From an estimator's settings and data to a model: the kernel, the mean, the noise, each as given or made from the data."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.estimators import defaults, health
from gramian.estimators.inputs import Columns
from gramian.gram import budget
from gramian.inference import Data, Model
from gramian.kernels import Kernel
from gramian.kernels.convert import Converted
from gramian.likelihoods import Gaussian
from gramian.params import Parameter, fixed

if TYPE_CHECKING:
    from gramian.estimators.regressor import GPRegressor

Array = NDArray[np.float64]

_SOME_ROWS = 100_000  # starting values are made from this many rows at least


def check_settings(gp: GPRegressor) -> None:
    """Refuses impossible settings, before any work."""
    if gp.kernel is not None and not isinstance(gp.kernel, (Kernel, Converted)):
        raise ParameterError(f"kernel must be a gramian kernel or None, not {gp.kernel!r}. For a scikit-learn kernel: gramian.from_sklearn(kernel).")
    if gp.time_limit is not None and not (isinstance(gp.time_limit, numbers.Real) and gp.time_limit > 0):
        raise ParameterError(f"time_limit={gp.time_limit!r} must be a positive number of seconds.")
    if gp.n_restarts is not None and (not isinstance(gp.n_restarts, (int, np.integer)) or gp.n_restarts < 0):
        raise ParameterError(f"n_restarts={gp.n_restarts!r} must be a whole number from 0 on.")
    if gp.memory_limit is not None:
        budget.parse_bytes(gp.memory_limit)
    for name in ("optimize", "normalize_y"):
        if not isinstance(getattr(gp, name), (bool, np.bool_)):
            raise ParameterError(f"{name}={getattr(gp, name)!r} must be True or False.")


def given(gp: GPRegressor) -> tuple[Kernel | None, float | Parameter | None]:
    """The kernel and the noise as given; a converted scikit-learn kernel brings its noise along."""
    if isinstance(gp.kernel, Converted):
        return gp.kernel.kernel, gp.kernel.noise if gp.noise is None else gp.noise
    return gp.kernel, gp.noise


def build(gp: GPRegressor, X: Array, columns: Columns, Y: Array, single: bool, noise_var: Array | None) -> tuple[Kernel, Model, Data]:
    """The kernel as people wrote it, the model with column indices, and the data."""
    given_kernel, given_noise = given(gp)
    spread = defaults.output_spread(Y, single)
    scale = spread if gp.normalize_y else np.ones_like(spread)
    average = np.mean(Y, axis=0)
    zero = average if gp.normalize_y else np.zeros_like(spread)
    # A constant that is to be fitted starts at the average; one that is taken as it is, is zero unless y is centred.
    loc = average if gp.optimize and gp.mean != "zero" else zero
    some = np.asarray(X[:: max(1, len(X) // _SOME_ROWS)])  # spreads of columns need no more, and a memory map stays on its disk
    kernel = given_kernel if given_kernel is not None else defaults.default_kernel(some, columns, float(np.mean((spread / scale) ** 2)))
    kernel.check_columns(columns.described())
    # Noise is in the units of y. Several outputs of different spread share one relative noise, and so one factorisation, unless noise is given.
    relative = given_noise is None and noise_var is None and Y.shape[1] > 1
    unit = tuple(map(float, scale**2)) if relative else (1.0,)
    variance = float(np.mean(spread**2 / (scale**2 if relative else 1.0)))
    floor = defaults.NOISE_FLOOR * float(np.min(spread**2))
    if given_noise is None and noise_var is not None:
        given_noise = fixed(0.0)  # known variances are all the noise there is, unless some is asked for beside them
    noise = defaults.noise_parameter(given_noise, variance, given_kernel is None, floor)
    start = loc[0] if single else loc
    mean = defaults.mean_function(gp.mean, start, columns).adapted(some, start, spread[0] if single else spread)
    model = Model(kernel.resolve(columns.names), mean, Gaussian(noise, unit))
    data = Data(X, Y, scale, noise_var)
    health.refuse_contradictions(data, model)
    return kernel, model, data
