r"""Spectral measures: a stationary kernel as an average of waves (Bochner's theorem).

    k(x, z) = sum_waves  weight  E cos(2 pi f'(x - z)),
        f = f_1 + f_2 + ... with independent parts, in cycles a unit of x

A sum of kernels is a list of waves. A product adds frequencies, because cos a cos b = (cos(a + b) + cos(a -
b)) / 2: where one factor's frequencies come with both signs anyway, f_1 + f_2 is enough; where neither do
(two Cosine kernels), two waves of half the weight take the two signs.

    part            frequencies                                                       of
    GaussianCloud  centre + spread z,  z normal                                    RBF, SpectralMixture
    Student        spread z sqrt(nu / chi2_nu): multivariate t                     Matern (nu = 1, 3, 5)
    GammaMixture   spread z sqrt(s),  s ~ Gamma(alpha, rate alpha)                 RationalQuadratic
    Series         k / period,  k whole with P(k) = exp(-a) I_k(a),  a = 1 / l^2   Periodic, one part a column
    Line           one frequency                                                   Cosine

Random numbers are drawn once, in a standard form; parameters then move the frequencies smoothly. Where that
takes a quantile (GammaMixture) or moves a probability (Series: drawn frequencies stay, their weights change),
SciPy gives value and slope on the host and JAX continues with both.

Sources: Rahimi and Recht 2007; Rasmussen and Williams 2006, sections 4.2.1 (Matern, rational quadratic);
Solin and Sarkka 2014, equation 26 (the periodic kernel's series); Wilson and Adams 2013 (spectral mixture).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import jax
import numpy as np
from scipy.special import gammaincinv, ive

from gramian.arrays import Array

Draw = tuple[Array, ...]

_SMALLEST = 1e-15  # of a uniform number: the quantiles of 0 and 1 are infinite
_LARGE = 1e8  # beyond it Bessel functions are normal densities to all digits (and SciPy's end)


class StandardDraws(Protocol):
    """Where the standard draws of one wave come from: plain, orthogonal, quasi-Monte Carlo."""

    def normals(self, d: int) -> Array:
        """(n, d), each row standard normal."""

    def uniforms(self) -> Array:
        """(n,), each uniform on (0, 1)."""

    def strata(self) -> Array:
        """(n,), each uniform on (0, 1), as evenly spread as the source can."""


@dataclass(frozen=True)
class FrequencyPart(ABC):
    """One independent summand of a frequency, on some columns."""

    columns: tuple[int, ...]

    single: ClassVar[bool] = False  # whether it has one frequency, and nothing is drawn
    # whether frequencies are the terms of a series, of which the first ones stand for it as well as random
    # ones do: `terms`
    series: ClassVar[bool] = False
    # whether frequencies move with the parameters inside JAX, with nothing of SciPy's between
    traceable: ClassVar[bool] = True

    @property
    def directed(self) -> bool:
        """Whether f and -f differ in law."""
        return False

    @property
    def stretch(self) -> Any | None:
        """A number, or one a column, where frequencies are normal directions times it, each of its own
        length."""
        return None

    @property
    def dimension(self) -> int:
        """How many uniform numbers a draw takes."""
        return 0

    @abstractmethod
    def draw(self, source: StandardDraws) -> Draw:
        """Standard draws, to be kept while parameters move."""

    def terms(self, n: int, both_signs: bool) -> Draw:
        """The first n terms of a series instead of random ones; nothing for a part with one frequency."""
        return ()

    def host(self, draw: Draw) -> Draw:
        """What only SciPy can compute, at the present values."""
        return ()

    @abstractmethod
    def frequencies(self, draw: Draw, host: Draw) -> Any:
        """(n, columns) in cycles a unit, or (1, columns) if all are the same: in NumPy, or in JAX where a
        gradient is traced."""

    def amplitudes(self, draw: Draw, host: Draw) -> Any:
        """Factors of the features (n,), where draws do not count alike."""
        return 1.0

    def mirrored(self) -> FrequencyPart:
        """The part of -f."""
        return self


@dataclass(frozen=True)
class Cloud(FrequencyPart):
    """Normal directions times a spread."""

    spread: Any  # a number, or one a column

    lengths: ClassVar[int] = 1  # how many uniform numbers the length of a direction takes

    @property
    def stretch(self) -> Any | None:
        return None if self.directed else self.spread

    @property
    def dimension(self) -> int:
        return len(self.columns) + self.lengths

    def frequencies(self, draw: Draw, host: Draw) -> Any:
        return draw[0] * self.spread


@dataclass(frozen=True)
class GaussianCloud(Cloud):
    """centre + spread z."""

    centre: Any = None

    lengths = 0

    @property
    def directed(self) -> bool:
        return self.centre is not None

    def draw(self, source: StandardDraws) -> Draw:
        return (source.normals(len(self.columns)),)

    def frequencies(self, draw: Draw, host: Draw) -> Any:
        cloud = super().frequencies(draw, host)
        return cloud if self.centre is None else cloud + self.centre

    def mirrored(self) -> FrequencyPart:
        return self if self.centre is None else dataclasses.replace(self, centre=-self.centre)


@dataclass(frozen=True)
class Student(Cloud):
    """spread z sqrt(nu / chi2_nu)."""

    nu: int

    def draw(self, source: StandardDraws) -> Draw:
        normals = source.normals(len(self.columns))
        chi2 = 2 * gammaincinv(self.nu / 2, inside(source.uniforms()))
        return (normals * np.sqrt(self.nu / chi2)[:, None],)


@dataclass(frozen=True)
class GammaMixture(Cloud):
    """spread z sqrt(s), s ~ Gamma(alpha, rate alpha), by the quantile of a uniform number that stays."""

    alpha: Any

    traceable = False

    def draw(self, source: StandardDraws) -> Draw:
        return source.normals(len(self.columns)), inside(source.uniforms())

    def host(self, draw: Draw) -> Draw:
        """The quantile x of Gamma(alpha), and dx/dalpha: log x is a smooth function of log alpha, so
        differences of fourth order give 10 digits."""
        alpha, h = float(self.alpha), 2e-3
        quantiles = {k: gammaincinv(alpha * np.exp(k * h), draw[1]) for k in (-2, -1, 0, 1, 2)}
        log_x = {
            k: np.log(np.maximum(x, 1e-280)) for k, x in quantiles.items()
        }  # no 0: its root has no slope
        x = np.exp(log_x[0])
        return x, x / alpha * (8 * (log_x[1] - log_x[-1]) - (log_x[2] - log_x[-2])) / (12 * h)

    def frequencies(self, draw: Draw, host: Draw) -> Any:
        s = _moved(host, self.alpha) / self.alpha
        return draw[0] * (s**0.5)[:, None] * self.spread


@dataclass(frozen=True)
class Series(FrequencyPart):
    """k / period with whole k: the Fourier series of a periodic kernel of one column. A draw is (k, the
    probability it was drawn with)."""

    lengthscale: Any  # one number
    period: Any

    series = True
    traceable = False
    dimension = 1

    def draw(self, source: StandardDraws) -> Draw:
        """Frequencies from the law at the present lengthscale. At another one they stay, and count by the
        ratio of the two laws."""
        a = float(self.lengthscale) ** -2
        most = int(min(20 + 10 * np.sqrt(a), 1e6))  # beyond 10 standard deviations
        k = np.arange(-most, most + 1.0)
        law = _law(k, a)
        law /= law.sum()
        drawn = np.minimum(np.searchsorted(np.cumsum(law), inside(source.strata())), 2 * most)
        return k[drawn], law[drawn]

    def terms(self, n: int, both_signs: bool) -> Draw:
        """The first n terms of the series instead of random ones: 0, 1, 2, ... each standing for -k too, or
        0, 1, -1, 2, -2, ... one by one."""
        count = np.arange(n)
        k = np.where(count % 2 == 1, (count + 1) // 2, -(count // 2)) if both_signs else count
        stands_for = np.where((k == 0) | both_signs, 1.0, 2.0)
        return k.astype(np.float64), 1 / (n * stands_for)

    def host(self, draw: Draw) -> Draw:
        """sqrt(P(k) / p) and its derivative with respect to a."""
        a, (k, p) = float(self.lengthscale) ** -2, draw
        q, slope = _law(k, a), (_law(k - 1, a) + _law(k + 1, a)) / 2 - _law(k, a)
        root = np.sqrt(q / p)
        return root, np.divide(slope, 2 * root * p, out=np.zeros_like(root), where=q > 1e-290)

    def frequencies(self, draw: Draw, host: Draw) -> Any:
        return (draw[0] / self.period)[:, None]

    def amplitudes(self, draw: Draw, host: Draw) -> Any:
        return _moved(host, self.lengthscale**-2)


@dataclass(frozen=True)
class Line(FrequencyPart):
    """One frequency, a number a column."""

    frequency: Any

    directed = True
    single = True

    def draw(self, source: StandardDraws) -> Draw:
        return ()

    def frequencies(self, draw: Draw, host: Draw) -> Any:
        return self.frequency * np.ones((1, len(self.columns)))

    def mirrored(self) -> FrequencyPart:
        return dataclasses.replace(self, frequency=-self.frequency)


@dataclass(frozen=True)
class Wave:
    """weight E cos(2 pi (f_1 + f_2 + ...)'(x - z))."""

    weight: Any
    parts: tuple[FrequencyPart, ...] = ()

    @property
    def directed(self) -> bool:
        return any(part.directed for part in self.parts)

    @property
    def single(self) -> bool:
        """Whether it has one frequency."""
        return all(part.single for part in self.parts)

    @property
    def series(self) -> bool:
        """Whether its frequencies are one series, moved by single ones."""
        rest = [part for part in self.parts if not part.single]
        return len(rest) == 1 and rest[0].series

    def scaled(self, factor: Any) -> Wave:
        return Wave(self.weight * factor, self.parts)

    def times(self, other: Wave) -> list[Wave]:
        """The product of two: one wave, or two of half the weight where neither has both signs already."""
        weight = self.weight * other.weight
        both = Wave(weight, self.parts + other.parts)
        if not (self.directed and other.directed):
            return [both]
        mirrored = tuple(part.mirrored() for part in other.parts)
        return [both.scaled(0.5), Wave(weight * 0.5, self.parts + mirrored)]


def multiplied(factors: Sequence[list[Wave]]) -> list[Wave]:
    """The waves of a product of kernels: each with each."""
    product = factors[0]
    for factor in factors[1:]:
        product = [wave for a in product for b in factor for wave in a.times(b)]
    return product


def inside(u: Array) -> Array:
    """Uniform numbers without the ends of the interval."""
    return np.clip(u, _SMALLEST, 1 - _SMALLEST)


def _law(k: Array, a: float) -> Array:
    """exp(-a) I_k(a)."""
    if a > _LARGE:
        return np.exp(-(k**2) / (2 * a)) / np.sqrt(2 * np.pi * a)
    return ive(np.abs(k), a)


def _moved(host: Draw, parameter: Any) -> Any:
    """The value that the host computed, with the slope beside it as its derivative with respect to the
    parameter."""
    value, slope = host
    if not isinstance(parameter, jax.Array):
        return value
    return value + slope * (parameter - jax.lax.stop_gradient(parameter))
