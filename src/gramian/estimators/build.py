"""From an estimator's settings and data to a model: the kernel, the mean, the noise, each as given or made
from the data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.choose.plan import Prospect, check_time_limit
from gramian.data.inputs import Columns
from gramian.errors import ParameterError
from gramian.estimators import defaults
from gramian.inference import Data, Model
from gramian.kernels import Kernel
from gramian.kernels.convert import Converted
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.params import Parameter, fixed
from gramian.report import notes as health

if TYPE_CHECKING:
    from gramian.estimators.base import Estimator
    from gramian.estimators.regressor import GPRegressor

Array = NDArray[np.float64]

ONE_KERNEL = (
    "with Gaussian noise there is one function an output, and one kernel for all of them. Add them up"
    " (k1 + k2), or give a likelihood with several functions, such as Heteroscedastic()."
)
_SOME_ROWS = 100_000  # starting values are made from this many rows at least


class Built(NamedTuple):
    """What a fit begins with."""

    kernel: Kernel  # as people wrote it, with column names
    model: Model  # with column indices
    rows: Data


class Written(NamedTuple):
    """The setting `kernel`, read: what a person wrote, whatever the form."""

    kernels: tuple[Kernel, ...]  # none: the default kernel; several: one a latent function
    noise: Parameter | None = None  # that a converted scikit-learn kernel has brought along

    @property
    def kernel(self) -> Kernel | None:
        """The first; None: the default kernel."""
        return self.kernels[0] if self.kernels else None

    def one(self, cure: str) -> Kernel | None:
        """The kernel, where several have no meaning."""
        if len(self.kernels) > 1:
            raise ParameterError(f"{len(self.kernels)} kernels were given, but {cure}")
        return self.kernel


def is_kernel(value: object) -> bool:
    """Whether it is a kernel, of this library or converted from scikit-learn's."""
    return isinstance(value, (Kernel, Converted))


def read_kernel(value: object) -> Written:
    """The setting `kernel`: None, a kernel, one converted from scikit-learn's, or a list of kernels."""
    if value is None:
        return Written(())
    if isinstance(value, Converted):
        return Written((value.kernel,), value.noise)
    several = isinstance(value, (list, tuple)) and len(value) > 0
    kernels = tuple(value) if isinstance(value, (list, tuple)) and several else (value,)
    if not all(isinstance(kernel, Kernel) for kernel in kernels):
        raise ParameterError(
            f"kernel must be a gramian kernel or None, not {value!r}. For a scikit-learn kernel:"
            " gramian.from_sklearn(kernel)."
        )
    return Written(kernels)


def check_settings(gp: Estimator) -> None:
    """Refuses impossible settings, before any work."""
    read_kernel(gp.kernel)
    defaults.mean_function(gp.mean, np.zeros(()), Columns(("x0",)))
    check_time_limit(gp.time_limit)
    if gp.n_restarts is not None and (not isinstance(gp.n_restarts, (int, np.integer)) or gp.n_restarts < 0):
        raise ParameterError(f"n_restarts={gp.n_restarts!r} must be a whole number from 0 on.")
    if gp.memory_limit is not None:
        memory.parse_bytes(gp.memory_limit)
    for name in ("optimize", "normalize_y"):
        if not isinstance(getattr(gp, name, True), (bool, np.bool_)):
            raise ParameterError(f"{name}={getattr(gp, name)!r} must be True or False.")
    if gp.hyper not in ("map", "ml", "mcmc"):
        raise ParameterError(
            f'hyper={gp.hyper!r} is not known. Use "map" (priors count), "ml" (they do not) or "mcmc" (full'
            " Bayes)."
        )


def prospect(gp: Estimator, shape: tuple[int, ...], outputs: int) -> Prospect:
    """The fit to data of this shape, as plans see it."""
    kernel = read_kernel(gp.kernel).kernel
    return Prospect(
        int(shape[0]), int(shape[1]), outputs, kernel, gp.memory_limit, gp.time_limit, bool(gp.optimize)
    )


def noise_of(gp: Estimator) -> float | Parameter | None:
    """The setting `noise`; without one, what a converted kernel has brought along."""
    noise = getattr(gp, "noise", None)
    return read_kernel(gp.kernel).noise if noise is None else noise


def build(
    gp: GPRegressor, X: Array, columns: Columns, Y: Array, single: bool, noise_var: Array | None
) -> Built:
    """With Gaussian noise in closed form."""
    given_kernel, given_noise = read_kernel(gp.kernel).one(ONE_KERNEL), noise_of(gp)
    spread = defaults.output_spread(Y, single)
    scale = spread if gp.normalize_y else np.ones_like(spread)
    average = np.nanmean(Y, axis=0)
    zero = average if gp.normalize_y else np.zeros_like(spread)
    # A constant that is to be fitted starts at the average; one that is taken as it is, is zero unless y is
    # centred.
    loc = average if gp.optimize and gp.mean != "zero" else zero
    # spreads of columns need no more, and a memory map stays on its disk
    some = np.asarray(X[:: max(1, len(X) // _SOME_ROWS)])
    kernel = (
        given_kernel
        if given_kernel is not None
        else defaults.default_kernel(some, columns, float(np.mean((spread / scale) ** 2)))
    )
    kernel.check_columns(columns.described())
    # Noise is in the units of y. Several outputs of different spread share one relative noise, and so one
    # factorisation, unless noise is given.
    relative = given_noise is None and noise_var is None and Y.shape[1] > 1
    unit = tuple(map(float, scale**2)) if relative else (1.0,)
    variance = float(np.mean(spread**2 / (scale**2 if relative else 1.0)))
    floor = defaults.NOISE_FLOOR * float(np.min(spread**2))
    if given_noise is None and noise_var is not None:
        # known variances are all the noise there is, unless some is asked for beside them
        given_noise = fixed(0.0)
    noise = defaults.noise_parameter(given_noise, variance, given_kernel is None, floor)
    start = loc[0] if single else loc
    mean = defaults.mean_function(gp.mean, start, columns).adapted(
        some, start, spread[0] if single else spread
    )
    model = Model(kernel.resolve(columns.names), mean, Gaussian(noise, unit))
    data = Data(X, Y, scale, noise_var)
    health.refuse_contradictions(data, model)
    return Built(kernel, _with_priors(gp, model), data)


def build_latent(
    gp: Estimator, likelihood: Likelihood, X: Array, columns: Columns, Y: Array, variance: float
) -> Built:
    """The same for a likelihood of any kind, Y (n, columns) as it reads them. f scales with y where it is in
    the units of y; `variance` is the default kernel's."""
    likelihood, loc = likelihood.started(likelihood.y_of(Y))
    L = likelihood.latents
    spread = float(defaults.output_spread(Y[:, :1], True)[0]) if likelihood.location else 1.0
    normalised = getattr(gp, "normalize_y", True)
    scale = likelihood.scales(spread if normalised else 1.0)
    some = np.asarray(X[:: max(1, len(X) // _SOME_ROWS)])
    kernels = read_kernel(gp.kernel).kernels
    if len(kernels) not in (0, 1, L):
        raise ParameterError(
            f"{len(kernels)} kernels were given, but {type(likelihood).__name__} has {L} latent"
            f" function{'s' * (L > 1)}: one for all, or one each."
        )
    kernels = kernels or (defaults.default_kernel(some, columns, variance),)
    for kernel in kernels:
        kernel.check_columns(columns.described())
    if gp.mean == "zero" or not gp.optimize:
        # As in `build`: what is in the units of y is measured from its average where y is normalised.
        loc = np.where(normalised & (likelihood.scales(np.inf) == np.inf), loc, 0.0)
    start = loc[0] if L == 1 else loc
    mean = defaults.mean_function(gp.mean, start, columns).adapted(some, start, scale[0] if L == 1 else scale)
    resolved = [kernel.resolve(columns.names) for kernel in kernels]
    model = Model(resolved[0], mean, likelihood, tuple(resolved[1:]))
    return Built(kernels[0], _with_priors(gp, model), Data(X, Y, scale))


def _with_priors(gp: Estimator, model: Model) -> Model:
    """The model as it is, or without its priors, where parameters are fitted by maximum likelihood."""
    if gp.hyper != "ml":
        return model
    return model.with_parameters([dataclasses.replace(p, prior=None) for p in model.parameters().values()])
