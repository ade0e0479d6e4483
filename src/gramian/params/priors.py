"""Prior densities of single parameters: log density and its derivative. Entries of a vector parameter are
independent.

A density is written once, for arrays of NumPy (a search) and of JAX (chains): `xp = namespace(v)`. A prior of
one's own has `log_density`; a slope that is not written by hand comes from JAX:

    @dataclass(frozen=True)
    class Exponential(gm.Prior):
        rate: float = 1.0

        def log_density(self, v):
            xp = namespace(v)
            return xp.log(self.rate) - self.rate * v
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaln

from gramian.errors import ParameterError
from gramian.params.namespace import namespace, slopes

NOT_TRACED = (
    "its log_density cannot be differentiated by JAX. Write it with xp = gramian.params.namespace(v) in place"
    " of np: xp.log(v), xp.where(...)."
)


class Prior(ABC):
    """The density of a parameter's value (not of its unconstrained form)."""

    @abstractmethod
    def log_density(self, v: Any) -> Any:
        """log p(v), entry by entry."""

    def slope(self, v: Any) -> Any:
        """d log p(v) / dv, entry by entry."""
        try:
            return slopes(lambda v: self.log_density(v).sum(), v)[1]
        except TypeError as error:  # NumPy's functions do not take JAX's arrays
            raise ParameterError(f"{self}: {NOT_TRACED}") from error

    def ends(self) -> tuple[float, float]:
        """Between which values the density is not zero, as far as a search or a chain must be kept there."""
        return -np.inf, np.inf

    @classmethod
    def stacked(cls, priors: Sequence[Self], shapes: Sequence[tuple[int, ...]]) -> Self | None:
        """The priors of several parameters as one of all their entries, or None where that is not known to
        be the same."""
        return None

    def entries(self, count: int) -> list[str]:
        """The prior of each entry of a parameter with so many, as text for people."""
        fields = [np.ravel(value).tolist() for value in vars(self).values()]
        rows = ([f"{float(values[k % len(values)]):.4g}" for values in fields] for k in range(count))
        return [f"{type(self).__name__}({', '.join(row)})" for row in rows]

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            signed = name in ("mu", "low", "high")
            try:
                numbers = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            inside = np.isfinite(numbers) & (signed | (numbers > 0))
            if not np.all(inside) or numbers.ndim > (name == "mu"):
                expected = f"a finite{'' if signed else ' positive'} number"
                raise ParameterError(f"{type(self).__name__}: {name} is {value!r}, but must be {expected}.")
            # Plain floats: hashable, and printed as the kernel language reads them.
            object.__setattr__(self, name, tuple(numbers.tolist()) if numbers.ndim else float(numbers))


class Closed(Prior):
    """A density whose formula takes arrays in place of its numbers: those of several parameters are then one
    call."""

    @classmethod
    def stacked(cls, priors: Sequence[Self], shapes: Sequence[tuple[int, ...]]) -> Self | None:
        if cls.__module__ != __name__:
            return None  # a subclass may have changed the formula
        new = object.__new__(cls)  # past the check: numbers become arrays
        for name in vars(priors[0]):
            own = zip((getattr(p, name) for p in priors), shapes, strict=True)
            object.__setattr__(new, name, np.concatenate([np.broadcast_to(*each).ravel() for each in own]))
        return new


@dataclass(frozen=True)
class LogNormal(Closed):
    """log v ~ Normal(mu, sigma^2); exp(mu) is the median. `mu` may be one number an entry."""

    mu: float | tuple[float, ...] = 0.0
    sigma: float = 1.0

    def log_density(self, v: Any) -> Any:
        xp, w = namespace(v), _inside(v)
        z = (xp.log(w) - np.asarray(self.mu)) / self.sigma
        return xp.where(v > 0, _log_normal(z) - xp.log(w * self.sigma), -np.inf)

    def slope(self, v: Any) -> Any:
        xp, w = namespace(v), _inside(v)
        return xp.where(v > 0, -((xp.log(w) - np.asarray(self.mu)) / self.sigma**2 + 1) / w, 0.0)


@dataclass(frozen=True)
class Normal(Closed):
    """v ~ Normal(mu, sigma^2)."""

    mu: float | tuple[float, ...] = 0.0
    sigma: float = 1.0

    def log_density(self, v: Any) -> Any:
        return _log_normal((v - np.asarray(self.mu)) / self.sigma) - np.log(self.sigma)

    def slope(self, v: Any) -> Any:
        return -(v - np.asarray(self.mu)) / self.sigma**2


@dataclass(frozen=True)
class HalfNormal(Closed):
    """|z| with z ~ Normal(0, sigma^2)."""

    sigma: float = 1.0

    def log_density(self, v: Any) -> Any:
        return namespace(v).where(v < 0, -np.inf, _log_normal(v / self.sigma) + np.log(2 / self.sigma))

    def slope(self, v: Any) -> Any:
        return -v / self.sigma**2


@dataclass(frozen=True)
class Gamma(Closed):
    """p(v) proportional to v^(shape - 1) exp(-rate v)."""

    shape: float = 2.0
    rate: float = 1.0

    def log_density(self, v: Any) -> Any:
        xp, constant = namespace(v), self.shape * np.log(self.rate) - gammaln(self.shape)
        return xp.where(v > 0, constant + (self.shape - 1) * xp.log(_inside(v)) - self.rate * v, -np.inf)

    def slope(self, v: Any) -> Any:
        return namespace(v).where(v > 0, (self.shape - 1) / _inside(v) - self.rate, 0.0)


@dataclass(frozen=True)
class InverseGamma(Closed):
    """1/v is Gamma: p(v) proportional to v^(-shape - 1) exp(-scale / v). Keeps a lengthscale away from
    zero."""

    shape: float = 2.0
    scale: float = 1.0

    def log_density(self, v: Any) -> Any:
        xp, w = namespace(v), _inside(v)
        constant = self.shape * np.log(self.scale) - gammaln(self.shape)
        return xp.where(v > 0, constant - (self.shape + 1) * xp.log(w) - self.scale / w, -np.inf)

    def slope(self, v: Any) -> Any:
        w = _inside(v)
        return namespace(v).where(v > 0, -(self.shape + 1) / w + self.scale / w**2, 0.0)


@dataclass(frozen=True)
class Uniform(Closed):
    """Equal density between low and high, none outside."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            given = f"low is {self.low} and high is {self.high}"
            raise ParameterError(f"Uniform: {given}, but low must be below high.")

    def log_density(self, v: Any) -> Any:
        inside = (v >= self.low) & (v <= self.high)
        return namespace(v).where(inside, -np.log(self.high - self.low), -np.inf)

    def slope(self, v: Any) -> Any:
        return namespace(v).zeros_like(v)

    def ends(self) -> tuple[float, float]:
        return self.low, self.high


def _log_normal(z: Any) -> Any:
    return -0.5 * z**2 - 0.5 * np.log(2 * np.pi)


def _inside(v: Any) -> Any:
    """v with 1 in place of what is not positive, where a density on the positive numbers is 0 and its formula
    undefined."""
    return namespace(v).where(v > 0, v, 1.0)
