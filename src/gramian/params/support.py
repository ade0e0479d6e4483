"""Supports: where a parameter may lie, and its smooth map from the whole real line.

An optimiser or a sampler works on an unconstrained vector u; a parameter's value is v = forward(u). For a
prior density on v the density of u gains the factor |dv/du|, whose logarithm is `log_jacobian`. Each map is
written once, for arrays of NumPy (a search) and of JAX (chains): `xp = namespace(u)`.

A support of one's own has `forward` and `inverse`, and `problem` where not every number lies in it; slopes
not written by hand come from JAX.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.params.namespace import namespace, sigmoid, slopes

# one number, or one for each entry of a vector or a matrix
Units = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


class Support(ABC):
    """A set of values with a map from the reals, entry by entry unless a subclass says otherwise."""

    def problem(self, value: Array) -> str | None:
        """What is wrong with `value`, as the end of a sentence ("... must be positive"), or None."""
        return None

    @abstractmethod
    def forward(self, u: Any) -> Any:
        """The value v at the unconstrained u."""

    @abstractmethod
    def inverse(self, v: Any) -> Any:
        """The unconstrained u at which forward(u) = v."""

    def pullback(self, u: Any, grad: Any) -> Any:
        """The gradient with respect to u, given that with respect to v."""
        return slopes(lambda u: (self.forward(u) * grad).sum(), u)[1]

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        """log |dv/du| summed over entries, and its gradient with respect to u."""
        import jax

        def total(u: Any) -> Any:
            xp = namespace(u)
            return xp.sum(xp.log(xp.abs(jax.jvp(self.forward, (u,), (xp.ones_like(u),))[1])))

        return slopes(total, u)

    def units_problem(self, value: Array) -> str | None:
        """What is wrong with the units that `value` is measured in, as the end of a sentence, or None."""
        return None

    def stands_for(self, other: Support) -> bool:
        """Whether values of the other are values of this one, told in the same or in other units."""
        return self == other

    # What others ask of it. ---------------------------------------------------------------------------------

    def ends(self) -> tuple[float, float]:
        """Between which values v lies."""
        return -np.inf, np.inf

    @property
    def entrywise(self) -> bool:
        """Whether all entries go through the same function, each by itself: those of several parameters are
        then mapped in one call."""
        return True

    @property
    def transform(self) -> Support:
        """The support that stands for this one's map, where several share it."""
        return self

    @property
    def one_to_one(self) -> bool:
        """Whether each value has one u: only then has a density of v one of u, and a bound of v one of u."""
        return True

    @property
    def loose(self) -> bool:
        """Whether u is in units that nobody has chosen, so that only its own size says what is far."""
        return self.ends() == (-np.inf, np.inf)


@dataclass(frozen=True)
class Real(Support):
    """All real numbers."""

    def forward(self, u: Any) -> Any:
        return u

    def inverse(self, v: Any) -> Any:
        return v

    def pullback(self, u: Any, grad: Any) -> Any:
        return grad

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        return 0.0, namespace(u).zeros_like(u)


@dataclass(frozen=True)
class Affine(Support):
    """All real numbers, measured in units of `scale` from `loc`: an optimiser then sees numbers of order one
    whatever the units of the data."""

    loc: Units
    scale: Units

    loose = False

    def units_problem(self, value: Array) -> str | None:
        loc, scale = (np.asarray(part, dtype=np.float64) for part in (self.loc, self.scale))
        if not (np.all(np.isfinite(loc)) and np.all(np.isfinite(scale)) and np.all(scale > 0)):
            return "is measured in units that are not finite and positive"
        if any(part.shape not in ((), value.shape) for part in (loc, scale)):
            return f"has the shape {value.shape}, but its units have {loc.shape} and {scale.shape}"
        return None

    def stands_for(self, other: Support) -> bool:
        return other in (self, Real())

    def forward(self, u: Any) -> Any:
        return np.asarray(self.loc) + np.asarray(self.scale) * u

    def inverse(self, v: Any) -> Any:
        return (v - np.asarray(self.loc)) / np.asarray(self.scale)

    def pullback(self, u: Any, grad: Any) -> Any:
        return grad * np.asarray(self.scale)

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        total = float(np.sum(np.log(np.abs(np.broadcast_to(np.asarray(self.scale), u.shape)))))
        return total, namespace(u).zeros_like(u)

    @property
    def entrywise(self) -> bool:
        return np.ndim(self.loc) == 0 and np.ndim(self.scale) == 0


@dataclass(frozen=True)
class Positive(Support):
    """v > 0 through v = exp(u), so that a change of units is a shift of u and an optimiser's path does not
    depend on units."""

    def problem(self, value: Array) -> str | None:
        return None if (value > 0).all() else "must be positive"

    def forward(self, u: Any) -> Any:
        with np.errstate(over="ignore"):  # infinity is refused where it arrives
            return namespace(u).exp(u)

    def inverse(self, v: Any) -> Any:
        return namespace(v).log(v)

    def pullback(self, u: Any, grad: Any) -> Any:
        return grad * namespace(u).exp(u)

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        xp = namespace(u)
        return xp.sum(u), xp.ones_like(u)

    def ends(self) -> tuple[float, float]:
        return 0.0, np.inf


@dataclass(frozen=True)
class NonNegative(Positive):
    """v >= 0. Zero is a value to hold fixed (noise-free data, no bias); a trainable one moves on the positive
    side, through exp."""

    def problem(self, value: Array) -> str | None:
        return None if (value >= 0).all() else "must not be negative"

    @property
    def transform(self) -> Support:
        return Positive() if type(self) is NonNegative else self


@dataclass(frozen=True)
class Interval(Support):
    """low < v < high through a scaled logistic function."""

    low: float
    high: float

    def problem(self, value: Array) -> str | None:
        inside = np.all((value >= self.low) & (value <= self.high))
        return None if inside else f"must lie between {self.low:g} and {self.high:g}"

    def forward(self, u: Any) -> Any:
        # with all digits close to `low`, as where similarities tend to 0
        return self.low + (self.high - self.low) * sigmoid(u)

    def inverse(self, v: Any) -> Any:
        xp = namespace(v)
        p = (v - self.low) / (self.high - self.low)
        return xp.log(p) - xp.log1p(-p)

    def pullback(self, u: Any, grad: Any) -> Any:
        return grad * (self.high - self.low) * sigmoid(u) * sigmoid(-u)

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        xp = namespace(u)
        value = np.log(self.high - self.low) - xp.logaddexp(0.0, -u) - xp.logaddexp(0.0, u)
        return xp.sum(value), 1 - 2 * sigmoid(u)

    def ends(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True)
class PositiveSemidefinite(Support):
    """Symmetric matrices A = C C' with C unconstrained. C is not unique, so there is no density to carry
    over: priors are refused."""

    entrywise = False
    one_to_one = False

    def problem(self, value: Array) -> str | None:
        if value.ndim != 2 or value.shape[0] != value.shape[1]:
            return f"must be a square matrix, but has shape {value.shape}"
        if not np.allclose(value, value.T, rtol=1e-10, atol=1e-12 * max(1.0, float(np.max(np.abs(value))))):
            return "must be a symmetric matrix"
        lowest = float(np.linalg.eigvalsh(value)[0])
        floor = -1e-10 * max(float(np.trace(np.abs(value))), 1e-300)
        fault = f"must be positive semi-definite, but has the eigenvalue {lowest:.4g}"
        return None if lowest >= floor else fault

    def forward(self, u: Any) -> Any:
        return u @ u.T

    def inverse(self, v: Any) -> Any:
        xp = namespace(v)
        eigenvalues, vectors = xp.linalg.eigh(v)
        return vectors * xp.sqrt(xp.maximum(eigenvalues, 0.0))

    def pullback(self, u: Any, grad: Any) -> Any:
        return (grad + grad.T) @ u

    def log_jacobian(self, u: Any) -> tuple[Any, Any]:
        # param() refuses it before this point
        raise NotImplementedError("a positive semi-definite matrix takes no prior")
