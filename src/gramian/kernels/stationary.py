r"""Stationary kernels: functions of x - z.

In all formulas r = |x - z| with each column divided by its lengthscale (one number, or one a column: ARD).

Sources: Rasmussen and Williams 2006, chapter 4 (RBF, Matern, rational quadratic, periodic); Wilson and Adams
2013 (spectral mixture).
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.base import TERMS, Column, Kernel
from gramian.kernels.distance import root, squared_distances, typical
from gramian.kernels.expectations import ExpectedTerm
from gramian.kernels.profiles import MATERN32, MATERN52, SQUARED_EXPONENTIAL, Profile, Radial
from gramian.kernels.spectrum import GammaMixture, GaussianCloud, Line, Series, Student, Wave
from gramian.kernels.statespace import (
    Decay,
    Monomial,
    SmoothDecay,
    SmootherDecay,
    StateForm,
    WaveBlock,
    cosine_series,
    only,
)
from gramian.kernels.times import days_of
from gramian.params import Parameter, Positive, Value, fixed, positive, real
from gramian.params.parameter import as_parameter


class Stationary(Kernel):
    """A kernel that is a function `profile` of the squared scaled distance, equal to 1 at distance 0."""

    lengthscale: Value = positive(1.0)  # one number, or one a column (ARD)

    stationary = True
    takes_numbers = True
    one_a_column = ("lengthscale",)
    radial_form: ClassVar[Profile | None] = None  # the profile in NumPy, where its slope is bounded

    @abstractmethod
    def profile(self, r2: jax.Array) -> jax.Array:
        """k as a function of r^2, entry by entry."""

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.profile(_bounded(jnp.sum(((x - z) / self.lengthscale) ** 2)))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self.profile(_bounded(squared_distances(X, Z, self.lengthscale)))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.profile(jnp.zeros((), X.dtype)), X.shape[:1])

    def lengthscales(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return [(self.lengthscale, tuple(columns))]

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        return _along(columns, self.lengthscale.value)

    def radial(self) -> Radial | None:
        return None if self.radial_form is None else Radial(self.radial_form, (), self.lengthscale)


class RBF(Stationary):
    """k = exp(-r^2 / 2): infinitely smooth. Also called squared exponential or Gaussian kernel."""

    low_precision = True
    radial_form = SQUARED_EXPONENTIAL

    def profile(self, r2: jax.Array) -> jax.Array:
        return jnp.exp(-0.5 * r2)

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [Wave(1.0, (GaussianCloud(columns, _per_turn(self.lengthscale)),))]

    def gaussian_terms(self, d: int) -> list[ExpectedTerm]:
        return [ExpectedTerm(1.0, jnp.broadcast_to(1 / self.lengthscale**2, (d,)))]

    @classmethod
    def from_bandwidth(cls, sigma: ArrayLike | Parameter) -> RBF:
        """k = exp(-|x - z|^2 / sigma^2), the form without the one half: lengthscale = sigma / sqrt(2)."""
        given = as_parameter(sigma, Positive(), "RBF.from_bandwidth: sigma")
        if given.bounds is not None or given.prior is not None:
            raise ParameterError(
                "from_bandwidth takes a number or fixed(number): bounds and priors are of the lengthscale,"
                " RBF(param(...))."
            )
        return cls(Parameter(given.value / np.sqrt(2), trainable=given.trainable))


class Matern(Stationary):
    """The Matern family, whose frequencies have a law of Student's."""

    low_precision = True
    nu: ClassVar[int]  # degrees of freedom of the frequencies
    block: ClassVar[type[Decay | SmoothDecay | SmootherDecay]]  # as a Markov process

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [Wave(1.0, (Student(columns, _per_turn(self.lengthscale), self.nu),))]

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return only(columns, self.block(np.sqrt(self.nu) / _entry(self.lengthscale, 0)))


class Matern12(Matern):
    """k = exp(-r): continuous, nowhere differentiable. In one dimension, the Ornstein-Uhlenbeck process."""

    nu = 1
    block = Decay
    differentiable = False

    def profile(self, r2: jax.Array) -> jax.Array:
        return _decay(r2)


class Matern32(Matern):
    """k = (1 + sqrt(3) r) exp(-sqrt(3) r): once differentiable."""

    nu = 3
    block = SmoothDecay
    radial_form = MATERN32

    def profile(self, r2: jax.Array) -> jax.Array:
        return _decay1(3 * r2)


class Matern52(Matern):
    """k = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r): twice differentiable; a good first choice."""

    nu = 5
    block = SmootherDecay
    radial_form = MATERN52

    def profile(self, r2: jax.Array) -> jax.Array:
        return _decay2(5 * r2)


class RationalQuadratic(Stationary):
    """k = (1 + r^2 / (2 alpha))^-alpha: a mixture of RBF kernels over lengthscales; alpha to infinity gives
    RBF."""

    alpha: Value = positive(1.0)

    low_precision = True
    one_number = ("alpha",)

    def profile(self, r2: jax.Array) -> jax.Array:
        # log1p keeps its digits when alpha is large and the base is close to 1.
        return jnp.exp(-self.alpha * jnp.log1p(r2 / (2 * self.alpha)))

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [Wave(1.0, (GammaMixture(columns, _per_turn(self.lengthscale), self.alpha),))]


class Timed(Kernel):
    """Parent of kernels with a `period`, which on columns of times may be text ("1 year", "7 days"). It is
    not fitted then: a calendar has no error. Their `unit` is "days" until that of the column is known."""

    def __post_init__(self) -> None:
        own: Any = self  # whose fields subclasses declare, each in its order
        if isinstance(own.period, str):
            object.__setattr__(self, "unit", "days")
            object.__setattr__(self, "period", fixed(days_of(own.period)))
        if own.unit not in ("", "days"):
            raise ParameterError(f"The unit of a period is 'days', or none, not {own.unit!r}.")
        super().__post_init__()

    def in_units(self, columns: Sequence[Column]) -> Kernel:
        own: Any = self
        if not own.unit:
            return self
        without = next((column.name for column in columns if column.days is None), None)
        if without is not None:
            raise ParameterError(
                f"{self} has its period in days, but column {without!r} holds no dates or times. Give a"
                " number in the units of that column, or select a column of dates: .on('date')."
            )
        days = np.array([column.days for column in columns])
        value = own.period.value / (days[0] if np.ptp(days) == 0 else days)
        return dataclasses.replace(own, period=dataclasses.replace(own.period, value=value), unit="")


class Periodic(Timed):
    """k = exp(-2 sum_j sin^2(pi (x_j - z_j) / period_j) / lengthscale_j^2): functions that repeat exactly.

    On a column of dates, `Periodic(period="1 year")`.
    """

    lengthscale: Value = positive(1.0)
    period: Value = positive(1.0)
    unit: str = ""

    stationary = True
    low_precision = True
    takes_numbers = True
    one_a_column = "lengthscale", "period"

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.exp(-2 * jnp.sum((jnp.sin(jnp.pi * (x - z) / self.period) / self.lengthscale) ** 2))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        period, lengthscale = (
            jnp.broadcast_to(v, X.shape[1:])[None, :, None] for v in (self.period, self.lengthscale)
        )
        waves = jnp.sin(jnp.pi * (X[:, :, None] - Z.T[None, :, :]) / period) / lengthscale
        return jnp.exp(-2 * jnp.sum(waves**2, axis=1))

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        # near 0 an RBF of lengthscale period l / 2 pi; for large l a single wave
        return _along(columns, self.period.value / (2 * np.pi) * np.minimum(self.lengthscale.value, 1.0))

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        pairs = [(_entry(self.lengthscale, j), _entry(self.period, j)) for j in range(len(columns))]
        return [Wave(1.0, tuple(Series((c,), *pair) for c, pair in zip(columns, pairs, strict=True)))]

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        """Its cosine series, cut: what is left out is a kernel, too, and nowhere larger than at x = z."""
        weights = cosine_series(1 / _entry(self.lengthscale, 0) ** 2, terms)
        period = _entry(self.period, 0)
        waves = (WaveBlock(period / j, weights[j]) for j in range(1, terms + 1))
        return only(columns, Monomial(weights[0]), *waves, exact=False)

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.ones(X.shape[:1], X.dtype)


class Cosine(Timed):
    """k = cos(2 pi sum_j (x_j - z_j) / period_j): a single undamped plane wave, positive semi-definite in any
    number of columns. On a column of dates, `Cosine(period="1 year")`."""

    period: Value = positive(1.0)
    unit: str = ""

    stationary = True
    low_precision = True
    takes_numbers = True
    one_a_column = ("period",)

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.cos(2 * jnp.pi * jnp.sum((x - z) / self.period))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        centre = typical(Z)  # small phases keep their digits
        phase_x, phase_z = (jnp.sum((A - centre) / self.period, axis=1) for A in (X, Z))
        return jnp.cos(2 * jnp.pi * (phase_x[:, None] - phase_z[None, :]))

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        return _along(columns, self.period.value / (2 * np.pi))

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [Wave(1.0, (Line(columns, 1 / self.period),))]

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return only(columns, WaveBlock(_entry(self.period, 0)))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.ones(X.shape[:1], X.dtype)


class SpectralMixture(Kernel):
    """k = sum_q weight_q exp(-2 pi^2 sum_j (x_j - z_j)^2 scale_qj^2) cos(2 pi sum_j (x_j - z_j) mean_qj): Q
    damped waves, the transform of a mixture of Q Gaussians in frequency. k(x, x) is the sum of the weights.

    `weights` (Q,); `means` (Q,) or (Q, d), in cycles a unit of x; `scales` (Q,) or (Q, d), the spread of
    frequencies.
    """

    weights: Value = positive((1.0,))
    means: Value = real((1.0,))
    scales: Value = positive((1.0,))

    stationary = True
    low_precision = True
    takes_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        Q, shape = self.weights.value.size, self.weights.value.shape
        if len(shape) != 1:
            expected = "a list with one number a component"
            raise ParameterError(f"SpectralMixture: weights must be {expected}, but has shape {shape}.")
        for name in ("means", "scales"):
            shape = getattr(self, name).value.shape
            if len(shape) not in (1, 2) or shape[0] != Q:
                expected = f"with {Q} weights must be ({Q},) or ({Q}, number of columns)"
                raise ParameterError(f"SpectralMixture: {name} has shape {shape}, but {expected}.")

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        means, scales = (_rows(v, x.shape[0]) for v in (self.means, self.scales))
        damping = jnp.exp(-2 * jnp.pi**2 * jnp.sum(((x - z) * scales) ** 2, axis=1))
        return jnp.sum(self.weights * damping * jnp.cos(2 * jnp.pi * means @ (x - z)))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        means, scales = (_rows(v, X.shape[1]) for v in (self.means, self.scales))
        centre = typical(Z)
        X, Z = X - centre, Z - centre
        total = jnp.zeros((X.shape[0], Z.shape[0]), X.dtype)
        for q in range(means.shape[0]):
            wave = jnp.cos(2 * jnp.pi * ((X @ means[q])[:, None] - (Z @ means[q])[None, :]))
            total += self.weights[q] * jnp.exp(-2 * jnp.pi**2 * squared_distances(X, Z, 1 / scales[q])) * wave
        return total

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.broadcast_to(jnp.sum(self.weights), X.shape[:1])

    def levels(self) -> list[Parameter]:
        return [self.weights]

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        means, scales = (_host_rows(own.value, len(columns)) for own in (self.means, self.scales))
        shortest = 1 / (2 * np.pi * (np.abs(means) + scales))
        return [pair for row in shortest for pair in _along(columns, row)]

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [
            Wave(self.weights[q], (GaussianCloud(columns, self.scales[q], self.means[q]),))
            for q in range(self.weights.shape[0])
        ]

    def check_columns(self, columns: Sequence[Column]) -> None:
        super().check_columns(columns)
        for name in ("means", "scales"):
            value = getattr(self, name).value
            if value.ndim == 2 and value.shape[1] != len(columns):
                raise ParameterError(
                    f"SpectralMixture: {name} has {value.shape[1]} columns, but the data have {len(columns)}."
                )


def _per_turn(lengthscale: jax.Array) -> jax.Array:
    """The spread of frequencies of a kernel with this lengthscale, in cycles."""
    return 1 / (2 * np.pi * lengthscale)


def _entry(values: jax.Array, j: int) -> jax.Array:
    """The number of column j of a parameter that is one number or one a column."""
    return values.reshape(-1)[j if values.size > 1 else 0]


def _along(columns: Sequence[int], lengths: Array) -> list[tuple[int, float]]:
    """Each column with its length: one for all, or one each."""
    return list(zip(columns, np.broadcast_to(lengths, (len(columns),)).tolist(), strict=True))


def _host_rows(values: Array, d: int) -> Array:
    """`_rows` in NumPy."""
    return np.broadcast_to(values[:, None] if values.ndim == 1 else values, (len(values), d))


def _rows(values: jax.Array, d: int) -> jax.Array:
    """(Q,) or (Q, d) -> (Q, d)."""
    return jnp.broadcast_to(values[:, None] if values.ndim == 1 else values, (values.shape[0], d))


# The Matern family in s = c r^2, a = sqrt(s). Each derivative with respect to s is the member before it, so
# derivatives of any order stay finite where they exist: autodiff through the square root would give 0/0 at
# distance 0.
#     d/ds (1 + a + a^2/3) e^-a = -(1 + a) e^-a / 6,     d/ds (1 + a) e^-a = -e^-a / 2,
#     d/ds e^-a = -e^-a / (2 a)


def _bounded(r2: jax.Array) -> jax.Array:
    """r^2, but no more than 1e150, where each profile has long ended: beyond, squares are infinite, and inf
    times exp(-inf) is no number."""
    return jnp.minimum(r2, 1e150 if r2.dtype == np.float64 else 1e18)


@jax.custom_jvp
def _decay(s: jax.Array) -> jax.Array:
    return jnp.exp(-root(s))


@_decay.defjvp
def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (s,), (ds,) = primals, tangents
    a = root(s)
    value = jnp.exp(-a)
    # At distance 0 the slope is infinite, but it is only ever multiplied by a distance of 0: the contribution
    # to a lengthscale is 0.
    return value, jnp.where(a > 0, -value / (2 * jnp.where(a > 0, a, 1.0)), 0.0) * ds


@jax.custom_jvp
def _decay1(s: jax.Array) -> jax.Array:
    a = root(s)
    return (1 + a) * jnp.exp(-a)


@jax.custom_jvp
def _decay2(s: jax.Array) -> jax.Array:
    a = root(s)
    return (1 + a + s / 3) * jnp.exp(-a)


_decay1.defjvps(lambda ds, _, s: -0.5 * _decay(s) * ds)
_decay2.defjvps(lambda ds, _, s: -_decay1(s) / 6 * ds)
