"""Supports: where a parameter may lie, and its smooth map from the whole real line.

An optimiser works on an unconstrained vector u; a parameter's value is v = forward(u). For a prior density on
v the density of u gains the factor |dv/du|, whose logarithm is `log_jacobian`. Everything is NumPy float64:
this map is crossed once an evaluation, not inside a kernel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]


class Support(ABC):
    """A set of values with a bijection from the reals, entry by entry unless a subclass says otherwise."""

    @abstractmethod
    def problem(self, value: Array) -> str | None:
        """What is wrong with `value`, as the end of a sentence ("... must be positive"), or None."""

    @abstractmethod
    def forward(self, u: Array) -> Array:
        """The value v at the unconstrained u."""

    @abstractmethod
    def inverse(self, v: Array) -> Array:
        """The unconstrained u at which forward(u) = v."""

    @abstractmethod
    def pullback(self, u: Array, grad: Array) -> Array:
        """The gradient with respect to u, given that with respect to v."""

    @abstractmethod
    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        """log |dv/du| summed over entries, and its gradient with respect to u."""


@dataclass(frozen=True)
class Real(Support):
    """All real numbers."""

    def problem(self, value: Array) -> str | None:
        return None

    def forward(self, u: Array) -> Array:
        return u

    def inverse(self, v: Array) -> Array:
        return v

    def pullback(self, u: Array, grad: Array) -> Array:
        return grad

    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        return 0.0, np.zeros_like(u)


@dataclass(frozen=True)
class Affine(Support):
    """All real numbers, measured in units of `scale` from `loc`: an optimiser then sees numbers of order one
    whatever the units of the data."""

    loc: float | tuple[float, ...]
    scale: float | tuple[float, ...]

    def problem(self, value: Array) -> str | None:
        return None

    def forward(self, u: Array) -> Array:
        return np.asarray(self.loc) + np.asarray(self.scale) * u

    def inverse(self, v: Array) -> Array:
        return (v - np.asarray(self.loc)) / np.asarray(self.scale)

    def pullback(self, u: Array, grad: Array) -> Array:
        return grad * np.asarray(self.scale)

    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        return float(np.sum(np.log(np.abs(np.broadcast_to(np.asarray(self.scale), u.shape))))), np.zeros_like(
            u
        )


@dataclass(frozen=True)
class Positive(Support):
    """v > 0 through v = exp(u), so that a change of units is a shift of u and an optimiser's path does not
    depend on units."""

    def problem(self, value: Array) -> str | None:
        return None if np.all(value > 0) else "must be positive"

    def forward(self, u: Array) -> Array:
        with np.errstate(over="ignore"):  # infinity is refused where it arrives
            return np.exp(u)

    def inverse(self, v: Array) -> Array:
        return np.log(v)

    def pullback(self, u: Array, grad: Array) -> Array:
        return grad * np.exp(u)

    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        return float(np.sum(u)), np.ones_like(u)


@dataclass(frozen=True)
class NonNegative(Positive):
    """v >= 0. Zero is a value to hold fixed (noise-free data, no bias); a trainable one moves on the positive
    side, through exp."""

    def problem(self, value: Array) -> str | None:
        return None if np.all(value >= 0) else "must not be negative"


@dataclass(frozen=True)
class Interval(Support):
    """low < v < high through a scaled logistic function."""

    low: float
    high: float

    def problem(self, value: Array) -> str | None:
        inside = np.all((value >= self.low) & (value <= self.high))
        return None if inside else f"must lie between {self.low:g} and {self.high:g}"

    def forward(self, u: Array) -> Array:
        # with all digits close to `low`, as where similarities tend to 0
        return self.low + (self.high - self.low) * expit(u)

    def inverse(self, v: Array) -> Array:
        p = (v - self.low) / (self.high - self.low)
        return np.log(p) - np.log1p(-p)

    def pullback(self, u: Array, grad: Array) -> Array:
        return grad * (self.high - self.low) * expit(u) * expit(-u)

    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        value = np.log(self.high - self.low) - np.logaddexp(0, -u) - np.logaddexp(0, u)
        return float(np.sum(value)), 1 - 2 * expit(u)


@dataclass(frozen=True)
class PositiveSemidefinite(Support):
    """Symmetric matrices A = C C' with C unconstrained. C is not unique, so there is no density to carry
    over: priors are refused."""

    def problem(self, value: Array) -> str | None:
        if value.ndim != 2 or value.shape[0] != value.shape[1]:
            return f"must be a square matrix, but has shape {value.shape}"
        if not np.allclose(value, value.T, rtol=1e-10, atol=1e-12 * max(1.0, float(np.max(np.abs(value))))):
            return "must be a symmetric matrix"
        lowest = float(np.linalg.eigvalsh(value)[0])
        floor = -1e-10 * max(float(np.trace(np.abs(value))), 1e-300)
        return (
            None
            if lowest >= floor
            else f"must be positive semi-definite, but has the eigenvalue {lowest:.4g}"
        )

    def forward(self, u: Array) -> Array:
        return u @ u.T

    def inverse(self, v: Array) -> Array:
        eigenvalues, vectors = np.linalg.eigh(v)
        return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))

    def pullback(self, u: Array, grad: Array) -> Array:
        return (grad + grad.T) @ u

    def log_jacobian(self, u: Array) -> tuple[float, Array]:
        # param() refuses it before this point
        raise NotImplementedError("a positive semi-definite matrix takes no prior")
