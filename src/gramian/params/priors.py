"""Prior densities of single parameters: log density and its derivative. Entries of a vector parameter are
independent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gramian.errors import ParameterError

Array = NDArray[np.float64]


class Prior(ABC):
    """The density of a parameter's value (not of its unconstrained form)."""

    @abstractmethod
    def log_density(self, v: Array) -> Array:
        """log p(v), entry by entry."""

    @abstractmethod
    def slope(self, v: Array) -> Array:
        """d log p(v) / dv, entry by entry."""

    def entry(self, k: int) -> str:
        """The prior of the k-th entry of a vector parameter, as text for people."""
        fields = {name: np.ravel(value) for name, value in vars(self).items()}
        shown = ", ".join(f"{float(values[k % len(values)]):.4g}" for values in fields.values())
        return f"{type(self).__name__}({shown})"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            signed = name in ("mu", "low", "high")
            try:
                numbers = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                numbers = np.array(np.nan)
            good = (
                np.all(np.isfinite(numbers))
                and (signed or np.all(numbers > 0))
                and numbers.ndim <= (name == "mu")
            )
            if not good:
                raise ParameterError(
                    f"{type(self).__name__}: {name} is {value!r}, but must be a"
                    f" finite{'' if signed else ' positive'} number."
                )
            # Plain floats: hashable, and printed as the kernel language reads them.
            object.__setattr__(self, name, tuple(numbers.tolist()) if numbers.ndim else float(numbers))


@dataclass(frozen=True)
class LogNormal(Prior):
    """log v ~ Normal(mu, sigma^2); exp(mu) is the median. `mu` may be one number an entry."""

    mu: float | tuple[float, ...] = 0.0
    sigma: float = 1.0

    def log_density(self, v: Array) -> Array:
        w = _inside(v)
        z = (np.log(w) - np.asarray(self.mu)) / self.sigma
        return np.where(v > 0, -0.5 * z**2 - np.log(w * self.sigma) - 0.5 * np.log(2 * np.pi), -np.inf)

    def slope(self, v: Array) -> Array:
        w = _inside(v)
        return np.where(v > 0, -((np.log(w) - np.asarray(self.mu)) / self.sigma**2 + 1) / w, 0.0)


@dataclass(frozen=True)
class Normal(Prior):
    """v ~ Normal(mu, sigma^2)."""

    mu: float | tuple[float, ...] = 0.0
    sigma: float = 1.0

    def log_density(self, v: Array) -> Array:
        return (
            -0.5 * ((v - np.asarray(self.mu)) / self.sigma) ** 2
            - np.log(self.sigma)
            - 0.5 * np.log(2 * np.pi)
        )

    def slope(self, v: Array) -> Array:
        return -(v - np.asarray(self.mu)) / self.sigma**2


@dataclass(frozen=True)
class HalfNormal(Prior):
    """|z| with z ~ Normal(0, sigma^2)."""

    sigma: float = 1.0

    def log_density(self, v: Array) -> Array:
        return np.where(
            v < 0, -np.inf, -0.5 * (v / self.sigma) ** 2 + 0.5 * np.log(2 / np.pi) - np.log(self.sigma)
        )

    def slope(self, v: Array) -> Array:
        return -v / self.sigma**2


@dataclass(frozen=True)
class Gamma(Prior):
    """p(v) proportional to v^(shape - 1) exp(-rate v)."""

    shape: float = 2.0
    rate: float = 1.0

    def log_density(self, v: Array) -> Array:
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return np.where(v > 0, constant + (self.shape - 1) * np.log(_inside(v)) - self.rate * v, -np.inf)

    def slope(self, v: Array) -> Array:
        return np.where(v > 0, (self.shape - 1) / _inside(v) - self.rate, 0.0)


@dataclass(frozen=True)
class InverseGamma(Prior):
    """1/v is Gamma: p(v) proportional to v^(-shape - 1) exp(-scale / v). Keeps a lengthscale away from
    zero."""

    shape: float = 2.0
    scale: float = 1.0

    def log_density(self, v: Array) -> Array:
        w = _inside(v)
        return np.where(
            v > 0,
            self.shape * np.log(self.scale)
            - gammaln(self.shape)
            - (self.shape + 1) * np.log(w)
            - self.scale / w,
            -np.inf,
        )

    def slope(self, v: Array) -> Array:
        w = _inside(v)
        return np.where(v > 0, -(self.shape + 1) / w + self.scale / w**2, 0.0)


@dataclass(frozen=True)
class Uniform(Prior):
    """Equal density between low and high, none outside."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise ParameterError(
                f"Uniform: low is {self.low} and high is {self.high}, but low must be below high."
            )

    def log_density(self, v: Array) -> Array:
        return np.where((v >= self.low) & (v <= self.high), -np.log(self.high - self.low), -np.inf)

    def slope(self, v: Array) -> Array:
        return np.zeros_like(v)


def _inside(v: Array) -> Array:
    """v with 1 in place of what is not positive, where a density on the positive numbers is 0 and its formula
    undefined."""
    return np.where(v > 0, v, 1.0)
