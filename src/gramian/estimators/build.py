"""From an estimator's settings and data to a model: kernel, mean and noise, as given or made from the data.

What people do not give has starting values from the data, and weak priors that keep it in a sensible range.
With sd_j the standard deviation of column j of d numeric ones, and v the variance of y (1 when normalised):

    kernel   v * Matern52(lengthscale_j), times Categorical() on categorical columns; further parts of a sum
             ("matern52 + matern12") begin with 0.05 v
    lengthscale_j ~ LogNormal(log(sd_j sqrt(d)), 1.5)      distances grow as sqrt(d), so lengthscales must too
                                                           (Hvarfner et al. 2024)
    scale         ~ LogNormal(log v, 1.5)
    noise         ~ LogNormal(log(0.1 var y), 2)           each output its own, up to OWN_NOISES of them;
                                                           it starts at 0.01 var y; see `noise_median`
    mean          constant, no prior

A standard deviation of 1.5 in the logarithm is a factor of 20 either way within two standard deviations: a
few dozen rows overrule it. Priors are of the user's parameters only when the user's kernel has them; a kernel
that is given is fitted by maximum evidence.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramian import kernels as library
from gramian.arrays import Array, as_float, is_number, is_whole
from gramian.choose.plan import Prospect, check_time_limit
from gramian.data import gaps
from gramian.data.inputs import LARGEST_TARGET, Columns, sizes, spread
from gramian.errors import InputError, ParameterError
from gramian.fitting.rows import repeats
from gramian.inference import Data, Model
from gramian.inference.base import noises_of
from gramian.kernels import Categorical, Kernel, Matern12, Matern52, Scaled, Stationary
from gramian.kernels.convert import Converted
from gramian.kernels.text import parse_kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.means import ConstantMean, LinearMean, Mean, ZeroMean
from gramian.params import LogNormal, Parameter, fixed, param
from gramian.report import notes as health
from gramian.warps import Warp
from gramian.words import KERNELS, quoted

if TYPE_CHECKING:
    from gramian.estimators.base import Estimator
    from gramian.estimators.regressor import GPRegressor


ONE_KERNEL = (
    "with Gaussian noise there is one function an output, and one kernel for all of them. Add them up"
    " (k1 + k2), or give a likelihood with several functions, such as Heteroscedastic()."
)
_SOME_ROWS = 100_000  # starting values are made from this many rows at least
# of the variance, and of the usual lengthscales: where the further parts of a sum of default kernels begin;
# a rough one follows all that changes fast from where it is
FURTHER, SHORTER = 0.05, 0.3
NOISE_SHARE = 0.01  # of var y: where learned noise starts
NOISE_MEDIAN = 0.1  # of var y: of its prior
FEW_FOR_NOISE = 8.7  # rows below which the median is higher, by the cube of what is lacking
NOISE_FLOOR = 1e-8  # of var y: below it K + noise has more condition than float64 has digits for


class Built(NamedTuple):
    """What a fit begins with."""

    kernel: Kernel  # as people wrote it, with column names
    model: Model  # with column indices
    rows: Data


class Written(NamedTuple):
    """The setting `kernel`, read: what a person wrote, whatever the form."""

    kernels: tuple[Kernel, ...]  # none: the default kernel; several: one a latent function
    noise: Parameter | None = None  # that a converted scikit-learn kernel has brought along
    families: tuple[type[Stationary], ...] = ()  # of the default kernel's parts, where words were given

    @property
    def kernel(self) -> Kernel | None:
        """The first; None: the default kernel."""
        return self.kernels[0] if self.kernels else None

    def one(self, cure: str) -> Kernel | None:
        """The kernel, where several have no meaning."""
        if len(self.kernels) > 1:
            raise ParameterError(f"{len(self.kernels)} kernels were given, but {cure}")
        return self.kernel

    def suited(
        self, X: Array, columns: Columns, variance: float, usual: tuple[type[Stationary], ...] = (Matern52,)
    ) -> tuple[Kernel, ...]:
        """The kernels, or the default one of that variance and of the `usual` families where none were
        named, after a check that they suit the columns."""
        described = columns.described()
        kernels = self.kernels or (default_sum(X, columns, variance, self.families or usual),)
        for kernel in kernels:
            kernel.check_columns(described)
        return tuple(kernel.in_units(described) for kernel in kernels)


def is_kernel(value: object) -> bool:
    """Whether it is a kernel, of this library or converted from scikit-learn's."""
    return isinstance(value, (Kernel, Converted))


def read_kernel(value: object) -> Written:
    """The setting `kernel`: None, words of families, a kernel, its text, one converted from scikit-learn's,
    or a list of kernels."""
    if value is None:
        return Written(())
    if isinstance(value, str):
        families = read_families(value)
        return Written((), families=families) if families else Written((parse_kernel(value),))
    if isinstance(value, Converted):
        return Written((value.kernel,), value.noise)
    several = isinstance(value, (list, tuple)) and len(value) > 0
    kernels = tuple(value) if isinstance(value, (list, tuple)) and several else (value,)
    if not all(isinstance(kernel, Kernel) for kernel in kernels):
        cure = f"Give a word ({quoted(KERNELS)}), or for a scikit-learn kernel: gramian.from_sklearn(kernel)."
        if isinstance(value, type) and issubclass(value, Kernel):
            cure = f"This is the class; a kernel is made by calling it: {value.__name__}()."
        raise ParameterError(f"kernel must be a gramian kernel or None, not {value!r}. {cure}")
    return Written(kernels)


def read_families(text: str) -> tuple[type[Stationary], ...]:
    """The families that text names, "rbf + matern52"; none where it is a formula."""
    parts = [part.strip() for part in text.split("+")]
    known = [part.lower() in KERNELS for part in parts]
    if all(known):
        return tuple(getattr(library, KERNELS[part.lower()]) for part in parts)
    if any(known) or all(part.isidentifier() for part in parts):
        wrong = parts[known.index(False)]
        near = difflib.get_close_matches(wrong.lower(), KERNELS, 1, 0.5)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ParameterError(
            f"kernel={text!r}: {wrong!r} is no word for a kernel.{hint} There are {quoted(KERNELS)}, and sums"
            ' of them such as "rbf + matern52". In a formula all names have parentheses: "1.0 * RBF(0.5) +'
            ' Linear()".'
        )
    return ()


# lengthscales, whose square is a number still; and the least of one, below which nobody looks
FARTHEST, LEAST_LENGTH = 1e150, 1e-100
MOST_RESTARTS = 100_000


def check_settings(gp: Estimator) -> None:
    """Refuses impossible settings, before any work."""
    read_kernel(gp.kernel)
    mean_function(gp.mean, np.zeros(()), Columns(("x0",)))
    check_time_limit(gp.time_limit)
    if gp.n_restarts is not None and not is_whole(gp.n_restarts, 0, MOST_RESTARTS):
        takes = f"must be a whole number from 0 to {MOST_RESTARTS:,}"
        raise ParameterError(f"n_restarts={gp.n_restarts!r} {takes}.")
    if gp.memory_limit is not None:
        memory.parse_bytes(gp.memory_limit)
    for name in ("optimize", "normalize_y"):
        if not isinstance(getattr(gp, name, True), (bool, np.bool_)):
            raise ParameterError(f"{name}={getattr(gp, name)!r} must be True or False.")
    if gp.missing not in gaps.RULES:
        cure = 'Use "fill" (rows with gaps are used), "drop" (they are left out) or "error".'
        raise ParameterError(f"missing={gp.missing!r} is not known. {cure}")
    if gp.hyper not in gp.hypers:
        *first, last = (f'"{word}" ({meaning})' for word, meaning in gp.hypers.items())
        cure = f"Use {', '.join(first)} or {last}."
        raise ParameterError(f"hyper={gp.hyper!r} is not known. {cure}")


def prospect(gp: Estimator, shape: tuple[int, ...], outputs: int) -> Prospect:
    """The fit to data of this shape, as plans see it."""
    kernel = read_kernel(gp.kernel).kernel
    return Prospect(
        int(shape[0]), int(shape[1]), outputs, kernel, gp.memory_limit, gp.time_limit, bool(gp.optimize)
    )


def noise_of(gp: Estimator) -> Any:
    """The setting `noise`; without one, what a converted kernel has brought along."""
    noise = getattr(gp, "noise", None)
    return read_kernel(gp.kernel).noise if noise is None else noise


def build(
    gp: GPRegressor, X: Array, columns: Columns, Y: Array, single: bool, noise_var: Array | None
) -> Built:
    """With Gaussian noise in closed form."""
    written, given_noise = read_kernel(gp.kernel), noise_of(gp)
    written.one(ONE_KERNEL)
    sd = output_spread(Y, single)
    scale = sd if gp.normalize_y else np.ones_like(sd)
    average = np.nanmean(Y, axis=0)
    zero = average if gp.normalize_y else np.zeros_like(sd)
    # A constant that is to be fitted starts at the average; one that is taken as it is, is zero unless y is
    # centred.
    loc = average if gp.optimize and gp.mean != "zero" else zero
    # spreads of columns need no more, and a memory map stays on its disk
    some = np.asarray(X[:: max(1, len(X) // _SOME_ROWS)])
    kernel = written.suited(some, columns, float(np.mean((sd / scale) ** 2)), gp.usual)[0]
    # Noise is in the units of y, and each output has its own. Each is another factorisation, so that very
    # many outputs share one relative noise, unless noise is given.
    q = Y.shape[1]
    relative = given_noise is None and noise_var is None and noises_of(q) < q
    unit = scale**2 if relative else np.ones(1)
    if given_noise is None and noise_var is not None:
        # known variances are all the noise there is, unless some is asked for beside them
        given_noise = fixed(0.0)
    median = noise_median(len(Y)) if written.kernel is None else None
    noise = noise_parameter(given_noise, sd**2 / unit, median, shared=relative or q == 1)
    if getattr(gp, "noise", None) is None and noise.trainable and (again := repeats(X, Y)) is not None:
        noise = _at_least(noise, again.least_noise(Y) / unit)
    mean = _mean(gp, some, columns, loc, sd, single)
    warp = gp.warp.adapted(Y) if isinstance(gp.warp, Warp) else None
    if warp is not None and noise_var is not None:
        raise ParameterError("noise_var is of y as it is: give it without a warp, or a warp without it.")
    gaussian = Gaussian(noise, tuple(unit.tolist()))
    gaussian.check_outputs(q)
    resolved = kernel.resolve(columns.names)
    check_reach(resolved, X, columns)
    model = Model(resolved, mean, gaussian, warp=warp)
    data = Data(X, Y, scale, noise_var)
    health.refuse_contradictions(data, model)
    return Built(kernel, with_priors(gp, model), data)


def build_latent(
    gp: Estimator, likelihood: Likelihood, X: Array, columns: Columns, Y: Array, variance: float
) -> Built:
    """The same for a likelihood of any kind, Y (n, columns) as it reads them. f scales with y where it is in
    the units of y; `variance` is the default kernel's."""
    sd = float(output_spread(Y[:, :1], True)[0]) if likelihood.location else 1.0
    likelihood, loc = likelihood.started(likelihood.y_of(Y))
    L = likelihood.latents
    normalised = getattr(gp, "normalize_y", True)
    scale = likelihood.scales(sd if normalised else 1.0)
    some = np.asarray(X[:: max(1, len(X) // _SOME_ROWS)])
    written = read_kernel(gp.kernel)
    kernels = written.kernels
    if len(kernels) not in (0, 1, L):
        raise ParameterError(
            f"{len(kernels)} kernels were given, but {type(likelihood).__name__} has {L} latent"
            f" function{'s' * (L > 1)}: one for all, or one each."
        )
    kernels = written.suited(some, columns, variance, gp.usual)
    if gp.mean == "zero" or not gp.optimize:
        # As in `build`: what is in the units of y is measured from its average where y is normalised.
        loc = np.where(normalised & (likelihood.scales(np.inf) == np.inf), loc, 0.0)
    first, *others = (kernel.resolve(columns.names) for kernel in kernels)
    for kernel in (first, *others):
        check_reach(kernel, X, columns)
    model = Model(first, _mean(gp, some, columns, loc, scale, L == 1), likelihood, tuple(others))
    return Built(kernels[0], with_priors(gp, model), Data(X, Y, scale))


def check_reach(kernel: Kernel, X: Array, columns: Columns) -> None:
    """Refuses columns whose values a kernel could not square. Default kernels have lengthscales of the
    columns' own size; those that are given may be in other units."""
    size, d = sizes(X)[0], X.shape[1]
    if not np.any(size > FARTHEST * LEAST_LENGTH):
        return
    length = np.full(d, np.inf)
    for parameter, of in kernel.lengthscales(range(d)):
        if parameter.value.size in (1, len(of)):  # others are told when it meets the data
            length[list(of)] = np.minimum(length[list(of)], parameter.value)
    length = np.where(length < np.inf, length, 1.0)  # columns that it takes as they are
    with np.errstate(over="ignore"):
        beyond = np.flatnonzero(size / length > FARTHEST).tolist()
    far = [j for j in beyond if _sees(kernel, d, j, length[j])]
    if far:
        j = far[0]
        row = int(np.nanargmax(np.abs(X[:, j])))
        name, unit = columns.names[j], 10.0 ** np.floor(np.log10(size[j]))
        raise InputError(
            f"Column {name!r} has {X[row, j]:.3g} in row {row}, {size[j] / length[j]:.3g} lengthscales of"
            f" {kernel}: squares of that leave the range of numbers. Give the column in other units ({name} /"
            f" {unit:.0e}), or the kernel another lengthscale."
        )


def _sees(kernel: Kernel, d: int, j: int, length: float) -> bool:
    """Whether a kernel of d columns takes notice of one of them."""
    two = np.zeros((2, d))
    two[1, j] = 0.37 * length
    K = np.asarray(kernel(two))
    return bool(np.ptp(K) > 0)


def with_priors(gp: Estimator, model: Model) -> Model:
    """The model as it is, or without its priors, where parameters are fitted by maximum likelihood."""
    if gp.hyper != "ml":
        return model
    return model.with_parameters([dataclasses.replace(p, prior=None) for p in model.parameters().values()])


def _mean(gp: Estimator, X: Array, columns: Columns, loc: Array, scale: Array, single: bool) -> Mean:
    """The mean around `loc`, for a search in the units of the data; both have one number a function."""
    start, unit = (loc[0], scale[0]) if single else (loc, scale)
    return mean_function(gp.mean, start, columns).adapted(X, start, unit)


# Where nobody gives them. -----------------------------------------------------------------------------------


def times_categories(X: Array, columns: Columns, made: Callable[[Array], Kernel]) -> Kernel:
    """A kernel `made` from lengthscales of the numeric columns, times a Categorical for the others."""
    numeric = [j for j in range(X.shape[1]) if j not in columns.categories]
    lengthscales = spread(X[:, numeric]) * np.sqrt(len(numeric))
    if not columns.categories:
        return made(lengthscales)
    text = [columns.names[j] for j in columns.categories]
    words = Categorical(np.full(len(text), 0.5)).on(*text)
    return made(lengthscales).on(*(columns.names[j] for j in numeric)) * words if numeric else words


def default_kernel(
    X: Array, columns: Columns, variance: float, family: type[Stationary] = Matern52, shorter: float = 1.0
) -> Kernel:
    """A scaled kernel of a family with a lengthscale a numeric column, times a Categorical for the others.
    `shorter`: times what is usual, that lengthscales begin with."""

    def smooth(lengthscales: Array) -> Kernel:
        prior = LogNormal(tuple(map(float, np.log(lengthscales))), 1.5)
        return family(param(shorter * lengthscales, prior=prior))

    kernel = times_categories(X, columns, smooth)
    return Scaled(kernel, param(variance, prior=LogNormal(float(np.log(variance)), 1.5)))


def further_kernel(X: Array, columns: Columns, variance: float, family: type[Stationary]) -> Kernel:
    """What is added to a default kernel, of a little of the variance."""
    return default_kernel(X, columns, FURTHER * variance, family, 1.0 if family is Matern12 else SHORTER)


def default_sum(X: Array, columns: Columns, variance: float, families: Sequence[type[Stationary]]) -> Kernel:
    """Default kernels added up; the first begins with the variance, the others with a little of it."""
    first, *others = families
    total = default_kernel(X, columns, variance, first)
    for family in others:
        total = total + further_kernel(X, columns, variance, family)
    return total


def noise_median(rows: int) -> float:
    """Of the noise's prior, in units of var y. Fewer than nine rows cannot tell noise from a rough function,
    which is surer of itself beside a row: of tables of 6 rows with as much noise as signal, 95 % intervals
    held 90.5 % of new rows with the median of many rows, 93 with this one."""
    return NOISE_MEDIAN * min(max(1.0, (FEW_FOR_NOISE / max(rows, 1)) ** 3), 10.0)


def noise_parameter(given: object, variance: Array, median: float | None, shared: bool) -> Parameter:
    """The noise variance: as given, or starts from `variance`, (q,), that of y in the noise's units, with a
    prior of this median where there is one; one number where it is `shared`."""
    if given is None:
        typical = np.mean(variance) if shared else variance
        start, middle = NOISE_SHARE * typical, np.log((median or 1.0) * typical)
        prior = LogNormal(tuple(middle) if start.ndim else float(middle), 2.0) if median else None
        return param(start, prior=prior, bounds=(NOISE_FLOOR * typical, 1e4 * typical))
    parameter = given if isinstance(given, Parameter) else _noise_given(given)
    value = parameter.value
    if value.ndim > 1:
        cure = "For one a row, use fit(X, y, noise_var=...)."
        shape = f"has shape {value.shape}"
        raise ParameterError(f"noise must be one variance, or one an output, but {shape}. {cure}")
    if parameter.trainable and parameter.bounds is None and np.all(value > 0):
        each = value.shape == variance.shape
        low, high = (variance, variance) if each else (np.min(variance), np.mean(variance))
        return parameter.within_bounds(np.minimum(NOISE_FLOOR * low, value), 1e4 * np.maximum(high, value))
    return parameter


def _at_least(noise: Parameter, low: Array) -> Parameter:
    """The noise with a higher floor, where `low`, (q,), is above it."""
    if noise.bounds is None:
        return noise
    least, (floor, high) = low if noise.value.ndim else low.min(), noise.box
    higher = least > floor
    high = np.where(higher, np.maximum(high, 2 * least), high)
    value = np.where(higher, np.clip(noise.value, 1.1 * least, high), noise.value)
    bounds = (np.maximum(floor, least), high)
    return param(value, prior=noise.prior, bounds=bounds) if higher.any() else noise


LARGEST = 1e300  # a variance, of which multiples are numbers still


def _noise_given(given: Any) -> Parameter:
    several = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim == 1)
    numbers = list(given) if several else [given]
    numeric = all(map(is_number, numbers))
    if not numbers or not numeric or not all(0 <= as_float(one) <= LARGEST for one in numbers):
        python = "In Python a list of one an output will do, too, or a parameter: gramian.fixed(0.01)."
        raise ParameterError(f"noise={given!r} must be a variance: a number from 0 to {LARGEST:g}. {python}")
    value = np.array(numbers, dtype=np.float64).reshape(-1 if several else ())
    # A start of exactly 0 could never move: it means noise-free.
    return param(value) if value.any() else fixed(value)


def mean_function(given: object, loc: Array, columns: Columns) -> Mean:
    """The mean by name, starting at `loc` (the average of y, or 0), or the object that was given."""
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
    words = '"zero", "constant" or "linear"'
    raise ParameterError(f"mean={given!r} is not known. Use {words}. In Python a gramian.Mean will do, too.")


def output_spread(Y: Array, single: bool) -> Array:
    """The standard deviation of each output; where it is constant to rounding, its own size (1 for zeros):
    what else it may be, no data tell."""
    gaps = np.isnan(Y).any()  # NaN: not observed
    size = (np.nanmax if gaps else np.max)(np.abs(Y), axis=0)
    sd = (np.nanstd if gaps else np.std)(Y / np.where(size > 0, size, 1.0), axis=0) * size
    sd = np.where(sd > 1e-15 * size, sd, np.where(size > 0, size, 1.0))
    extreme = np.flatnonzero(~((sd > 1e-130) & (sd < 1e130) & (size < LARGEST_TARGET)))
    if len(extreme):
        k = int(extreme[0])
        which = "y has values" if single else f"Output {k} of y has values"
        raise InputError(
            f"{which} of size {size[k]:.3g} and spread {sd[k]:.3g}, whose squares leave the range of"
            f" numbers. Give y in other units: y / {10.0 ** np.floor(np.log10(size[k])):.0e}."
        )
    return sd
