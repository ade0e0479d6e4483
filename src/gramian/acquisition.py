"""Where to look next: what an evaluation at x promises, by a model of what was seen. Smaller y are better.

    LogEI             log E max(best - f(x), 0): how far below the best, on average
    LowerBound        -(mean - width std): what f(x) may be at its best
    MinValueEntropy   what an evaluation tells about the least value of f, in nats
    Thompson          where a draw of f is least

A criterion that is a function of mean and standard deviation gives its derivatives by both, and with the
process's own slopes (`Process.slopes`) its gradient by x. Draws have none: they are looked at on a set of
points.

Sources: Jones, Schonlau and Welch 1998 (expected improvement); Ament, Daulton, Eriksson, Balandat and Bakshy
2023 (its logarithm); Srinivas, Krause, Kakade and Seeger 2010 (bounds); Wang and Jegelka 2017 (max-value
entropy search); Thompson 1933.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from gramian.arrays import Array
from gramian.errors import ParameterError

LOG_2PI = float(np.log(2 * np.pi))
LEAST_STD = 1e-9  # of the standard deviation of y: below it nothing is left to find out
FAR = -1e6  # standard deviations, beyond which a series has the digits


class Foreseen(NamedTuple):
    """What is known of f at some points: (n,) each."""

    mean: Array
    std: Array


class Known(NamedTuple):
    """What is known of the least value, before a point is chosen."""

    best: float  # of what was seen
    least: Array  # draws of the least value of f


class CriterionSlopes(NamedTuple):
    """A criterion, and its derivatives by mean and standard deviation: (n,) each."""

    value: Array
    by_mean: Array
    by_std: Array


class Acquisition(ABC):
    """A criterion; larger is more promising."""

    draws: bool = False  # whether it looks at draws of f instead of mean and standard deviation

    @abstractmethod
    def at(self, seen: Foreseen, known: Known) -> CriterionSlopes:
        """Its value and derivatives."""


@dataclass(frozen=True)
class LogEI(Acquisition):
    """The logarithm of the expected improvement, which has a slope where the improvement itself is too small
    for a number."""

    def at(self, seen: Foreseen, known: Known) -> CriterionSlopes:
        z = (known.best - seen.mean) / seen.std
        log_h, slope = log_improvement(z)
        # d log(std h(z)) = dstd / std + h'/h dz
        return CriterionSlopes(np.log(seen.std) + log_h, -slope / seen.std, (1 - slope * z) / seen.std)


@dataclass(frozen=True)
class LowerBound(Acquisition):
    """How low f may be: mean - width std, with its sign changed."""

    width: float = 2.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.width) and self.width >= 0):
            raise ParameterError(f"LowerBound: width={self.width!r} must be a number from 0 on.")

    def at(self, seen: Foreseen, known: Known) -> CriterionSlopes:
        ones = np.ones_like(seen.mean)
        return CriterionSlopes(self.width * seen.std - seen.mean, -ones, self.width * ones)


@dataclass(frozen=True)
class MinValueEntropy(Acquisition):
    """The average, over draws of the least value m, of the entropy that f(x) > m takes from f(x)."""

    def at(self, seen: Foreseen, known: Known) -> CriterionSlopes:
        g = (seen.mean - known.least[:, None]) / seen.std  # (draws, n)
        log_cdf = log_ndtr(g)
        ratio = np.exp(-0.5 * g**2 - 0.5 * LOG_2PI - log_cdf)  # phi / Phi
        value = np.mean(0.5 * g * ratio - log_cdf, axis=0)
        # d/dg (g r / 2 - log Phi), with r' = -r (g + r)
        slope = 0.5 * ratio - 0.5 * g * ratio * (g + ratio) - ratio
        by_mean = np.mean(slope, axis=0) / seen.std
        return CriterionSlopes(value, by_mean, -np.mean(slope * g, axis=0) / seen.std)


@dataclass(frozen=True)
class Thompson(Acquisition):
    """A draw of f, with its sign changed: where it is least is as probable as the least value is there."""

    draws = True

    def at(self, seen: Foreseen, known: Known) -> CriterionSlopes:
        raise ParameterError("Thompson looks at draws of f: it has no value at a mean.")


ACQUISITIONS: dict[str, type[Acquisition]] = {
    "log_ei": LogEI,
    "lower_bound": LowerBound,
    "entropy": MinValueEntropy,
    "thompson": Thompson,
}


def read_acquisition(given: Any) -> Acquisition:
    """As given, or by its name."""
    if isinstance(given, Acquisition):
        return given
    if isinstance(given, str) and given in ACQUISITIONS:
        return ACQUISITIONS[given]()
    names = ", ".join(map(repr, ACQUISITIONS))
    raise ParameterError(f"acquisition={given!r} is not known. Use {names}, or an Acquisition.")


def log_improvement(z: Array) -> tuple[Array, Array]:
    """log h(z), h(z) = phi(z) + z Phi(z), and its derivative Phi(z) / h(z), for any z.

    Below -1, h = phi(z) (1 - |z| sqrt(pi / 2) erfcx(|z| / sqrt 2)), whose bracket goes as 1 / z^2.
    """
    z = np.asarray(z, dtype=np.float64)
    near = np.maximum(z, -1.0)
    phi = np.exp(-0.5 * near**2 - 0.5 * LOG_2PI)
    cdf = np.exp(log_ndtr(near))
    log_h, slope = np.log(phi + near * cdf), cdf / (phi + near * cdf)
    below = np.flatnonzero(z < -1)
    if len(below):
        w = -np.maximum(z.ravel()[below], FAR)
        mills = np.sqrt(np.pi / 2) * erfcx(w / np.sqrt(2))  # Phi(-w) / phi(w)
        # beyond 30 the difference of 1 and w mills has lost digits to its series 1/w^2 - 3/w^4 + 15/w^6
        rest = np.where(w < 30, 1 - w * mills, (1 - (3 - 15 / w**2) / w**2) / w**2)
        log_h.ravel()[below] = -0.5 * z.ravel()[below] ** 2 - 0.5 * LOG_2PI + np.log(rest)
        slope.ravel()[below] = mills / rest
    return log_h, slope
