"""Radial profiles: a kernel as a smooth function of u = c r^2, in NumPy and in place.

    k(x, z) = factor_1 factor_2 ... profile(c r^2),     r = |x - z| in units of the lengthscale

`gram/radial.py` takes only those whose slope in r^2 is bounded: r^2 by a matrix product is known to rounding
of |x|^2 + |z|^2, and Matern-1/2 would make 1e-8 of 1e-16. `kernels/host.py`, with r^2 by differences, takes
all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gramian.arrays import Array


class Profile(NamedTuple):
    """k as a function of u = c r^2; equal to 1 at 0."""

    c: float
    value: Callable[[Array], Array]  # k, in the place of u
    both: Callable[[Array], tuple[Array, Array]]  # k, and dk/dr^2 / slope
    slope: float


class Radial(NamedTuple):
    """What a kernel says of itself where it is such a function: its parameters are these, in this order."""

    profile: Profile
    factors: tuple[Any, ...]  # from the outermost on
    lengthscale: Any

    def times(self, factor: Any) -> Radial:
        return self._replace(factors=(factor, *self.factors))

    def multiplies(self, other: Radial) -> bool:
        """Whether its product with a function of other columns is such a function of all columns."""
        return self.profile is other.profile is SQUARED_EXPONENTIAL


class PatchSum(NamedTuple):
    """What a kernel of images says of itself where it is c / P^2 sum_pq w_p w_q base(x[p], z[q]) for a radial
    base, or that times place(p, q): its parameters are the outer factors, the weights, those of the base, and
    those of the place, in this order."""

    outer: tuple[Any, ...]  # factors, from the outermost on
    weights: Any  # one number, or one a patch
    base: Radial
    patch: tuple[int, int]
    image: tuple[int, int]
    columns: int  # of an image
    place: Radial | None = None  # of the row and column of a patch, where base times it is radial, too

    @property
    def radials(self) -> tuple[Radial, ...]:
        return (self.base,) if self.place is None else (self.base, self.place)

    def times(self, factor: Any) -> PatchSum:
        return self._replace(outer=(factor, *self.outer))


def _rbf(u: Array) -> Array:
    # where rounding made u positive, k exceeds 1 by no more than is forgiven; a clamp would take as long as
    # the exponentials
    return np.exp(u, out=u)


def _rbf_both(u: Array) -> tuple[Array, Array]:
    k = _rbf(u)
    return k, k


def _decay(u: Array) -> tuple[Array, Array]:
    """s = sqrt(u), in the place of u, and exp(-s)."""
    np.abs(u, out=u)  # what rounding made negative, in a third of the time of a clamp
    s = np.sqrt(u, out=u)
    e = np.negative(s)
    return s, np.exp(e, out=e)


def _matern12(u: Array) -> Array:
    return _decay(u)[1]


def _matern12_both(u: Array) -> tuple[Array, Array]:
    s, e = _decay(u)
    # infinite at distance 0, but only ever multiplied by a distance of 0
    return e, np.divide(e, s, out=np.zeros_like(e), where=s > 0)


def _matern32_both(u: Array) -> tuple[Array, Array]:
    s, e = _decay(u)
    s += 1.0
    s *= e
    return s, e


def _matern52(u: Array) -> Array:
    s, e = _decay(u)
    value = s * (1 / 3)
    value += 1.0
    value *= s
    value += 1.0
    value *= e
    return value


def _matern52_both(u: Array) -> tuple[Array, Array]:
    s, e = _decay(u)
    square = s * s
    square *= 1 / 3
    s += 1.0
    square += s
    s *= e
    square *= e
    return square, s


SQUARED_EXPONENTIAL = Profile(-0.5, _rbf, _rbf_both, -0.5)
MATERN12 = Profile(1.0, _matern12, _matern12_both, -0.5)
MATERN32 = Profile(3.0, lambda u: _matern32_both(u)[0], _matern32_both, -1.5)
MATERN52 = Profile(5.0, _matern52, _matern52_both, -5 / 6)
