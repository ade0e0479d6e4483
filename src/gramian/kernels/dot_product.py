r"""Kernels of dot products, and the two that are neither stationary nor dot products: Constant, and
Brownian motion with its integral.

Sources: Rasmussen and Williams 2006, section 4.2.2 (Linear, Polynomial), 4.2.3 (NeuralNetwork, after Williams
1998); Cho and Saul 2009 (ArcCosine).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import comb
from typing import Any

import jax
import jax.numpy as jnp

from gramian.errors import ParameterError
from gramian.kernels.base import TERMS, Column, Kernel
from gramian.kernels.distance import root, squared_distances
from gramian.kernels.expectations import ExpectedTerm, Form, multiplied
from gramian.kernels.spectrum import Wave
from gramian.kernels.statespace import IntegratedWalk, Monomial, StateForm, WalkBlock, only
from gramian.params import Parameter, Positive, PositiveSemidefinite, Real, Value, nonnegative, positive
from gramian.params.parameter import as_parameter
from gramian.params.tree import whole_number


class Linear(Kernel):
    """k = sum_j variance_j x_j z_j: straight lines through the origin. `Linear(A)` with a matrix gives x'Az,
    A positive semi-definite."""

    variance: Value = positive(1.0)

    low_precision = True
    takes_numbers = True

    def __post_init__(self) -> None:
        given = as_parameter(self.variance, Real(), "Linear: variance")
        support = PositiveSemidefinite() if given.value.ndim == 2 else Positive()
        object.__setattr__(self, "variance", given.within(support, "Linear: variance"))

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.sum((x @ self.variance if jnp.ndim(self.variance) == 2 else x * self.variance) * z)

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return (X @ self.variance if jnp.ndim(self.variance) == 2 else X * self.variance) @ Z.T

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        if jnp.ndim(self.variance) == 2:
            return None
        return [ExpectedTerm(1.0, None, (Form(jnp.broadcast_to(self.variance, (d,)), 0.0),))]

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return only(columns, Monomial(jnp.reshape(self.variance, -1)[0], 1))

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return [(self.variance, tuple(columns))] if self.variance.value.shape == (len(columns),) else []

    def columns_asked(self) -> tuple[str | int, ...]:
        shape: tuple[int, ...] = self.variance.value.shape
        return tuple(range(shape[0])) if shape and shape[0] > 1 else ()

    def check_columns(self, columns: Sequence[Column]) -> None:
        super().check_columns(columns)
        value = self.variance.value
        if value.ndim != 2:
            self._check_vector("variance", columns)
        elif value.shape[0] != len(columns):
            raise ParameterError(
                f"Linear: the matrix is {value.shape[0]} x {value.shape[0]}, but the data have {len(columns)}"
                " columns."
            )


class Polynomial(Kernel):
    """k = (sum_j variance_j x_j z_j + offset)^degree: polynomials up to that degree (exactly that degree with
    offset fixed(0))."""

    degree: int = 2
    variance: Value = positive(1.0)
    offset: Value = nonnegative(1.0)

    low_precision = True
    takes_numbers = True
    one_number = ("offset",)
    one_a_column = ("variance",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", whole_number(self.degree, "Polynomial: degree", 1))
        super().__post_init__()

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return (jnp.sum(x * self.variance * z) + self.offset) ** self.degree

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return ((X * self.variance) @ Z.T + self.offset) ** self.degree

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        form = Form(jnp.broadcast_to(self.variance, (d,)), self.offset)
        return multiplied([[ExpectedTerm(1.0, None, (form,))]] * self.degree)

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        v, c, p = jnp.reshape(self.variance, -1)[0], self.offset, self.degree
        return only(columns, *(Monomial(comb(p, j) * v**j * c ** (p - j), j) for j in range(p + 1)))


class OneLayer(Kernel):
    """An infinite one-layer network with weights of `variance` and `bias`. It sees x only through its lifted
    point (sqrt(bias), sqrt(variance) x): its length, and its direction. Two directions enter as t =
    sin^2(angle / 2) = |u - v|^2 / 4, which is exactly 0 for equal rows, where the arc cosine of their product
    is only good to 1e-8."""

    low_precision = True
    takes_numbers = True
    one_number = ("bias",)
    one_a_column = ("variance",)

    @abstractmethod
    def of(self, norm_x: jax.Array, norm_z: jax.Array, t: jax.Array) -> jax.Array:
        """k from the lengths and t."""

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        (U, norm_x), (V, norm_z) = self._directions(x[None, :]), self._directions(z[None, :])
        return self.of(norm_x[0], norm_z[0], jnp.sum((U[0] - V[0]) ** 2) / 4)

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        (U, norm_x), (V, norm_z) = self._directions(X), self._directions(Z)
        t = squared_distances(U, V, jnp.ones((), U.dtype)) / 4
        return self.of(norm_x[:, None], norm_z[None, :], t)

    def diagonal(self, X: jax.Array) -> jax.Array:
        _, norm = self._directions(X)
        return self.of(norm, norm, jnp.zeros_like(norm))

    def _directions(self: Any, X: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Unit vectors (n, d + 1) and lengths (n,) of the lifted rows."""
        ones = jnp.ones((X.shape[0], 1), X.dtype)
        lifted = jnp.concatenate([ones * root(self.bias), X * jnp.sqrt(self.variance)], axis=1)
        square = jnp.sum(lifted**2, axis=1)
        norm = root(square)
        return lifted / jnp.where(square > 0, norm, 1.0)[:, None], norm


class ArcCosine(OneLayer):
    """(1/pi) |x|^n |z|^n J_n(angle) of the points (sqrt(bias), sqrt(variance) x), n the order: the infinite
    one-layer network with units max(0, a)^n, steps (0), ramps (1) or squared ramps (2)."""

    order: int = 1
    variance: Value = positive(1.0)  # of the weights; one number, or one a column
    bias: Value = nonnegative(1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", whole_number(self.order, "ArcCosine: order", 0, 2))
        super().__post_init__()

    def of(self, norm_x: jax.Array, norm_z: jax.Array, t: jax.Array) -> jax.Array:
        return _ARC[self.order](t) * (norm_x * norm_z) ** self.order / jnp.pi

    def diagonal(self, X: jax.Array) -> jax.Array:
        _, norm = self._directions(X)
        at_zero = (1.0, 1.0, 3.0)[self.order]  # J_n(0) / pi
        return at_zero * norm ** (2 * self.order)

    @property
    def differentiable(self) -> bool:
        return self.order > 0


class NeuralNetwork(OneLayer):
    """(2/pi) arcsin(2 x'z / sqrt((1 + 2 x'x) (1 + 2 z'z))) of the points (sqrt(bias), sqrt(variance) x): the
    infinite one-layer network with error-function units; tends to constants far away, and can turn quickly
    near the origin."""

    variance: Value = positive(1.0)  # of the weights; one number, or one a column
    bias: Value = nonnegative(1.0)

    def of(self, norm_x: jax.Array, norm_z: jax.Array, t: jax.Array) -> jax.Array:
        """With a = 2 x'z, b = 1 + 2 x'x, c = 1 + 2 z'z, as the arc tangent of a / sqrt(b c - a^2).

        b c - a^2 = 1 + 2 x'x + 2 z'z + 4 x'x z'z sin^2(angle) is a sum of positive terms, so no digits are
        lost far from the origin, where the arc sine itself has an infinite slope.
        """
        a = 2 * norm_x * norm_z * (1 - 2 * t)
        rest = 1 + 2 * norm_x**2 + 2 * norm_z**2 + 16 * (norm_x * norm_z) ** 2 * t * jnp.maximum(1 - t, 0.0)
        return (2 / jnp.pi) * jnp.arctan2(a, jnp.sqrt(rest))


class Constant(Kernel):
    """k = variance: a random constant, the same everywhere."""

    variance: Value = positive(1.0)

    stationary = True
    low_precision = True
    one_number = ("variance",)

    def levels(self) -> list[Parameter]:
        return [self.variance]

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.variance + 0.0 * (x[0] + z[0])

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.variance, (X.shape[0], Z.shape[0]))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.variance, X.shape[:1])

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return [Wave(self.variance)]  # the wave of frequency 0

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return StateForm((Monomial(self.variance),))

    def gaussian_terms(self, d: int) -> list[ExpectedTerm]:
        return [ExpectedTerm(self.variance, None)]


class Brownian(Kernel):
    """prod_j min(|x_j|, |z_j|) where x_j and z_j have the same sign, else 0: Brownian motion from 0 in both
    directions; in several columns, the Brownian sheet."""

    differentiable = False
    low_precision = True
    takes_numbers = True

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.prod(_shared(x, z))

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return only(columns, WalkBlock())


class IntegratedBrownian(Kernel):
    """prod_j m_j^3 / 3 + |x_j - z_j| m_j^2 / 2, m_j = min(|x_j|, |z_j|) where x_j and z_j have the same sign,
    else 0: the integral of Brownian motion from 0, in both directions; functions with one derivative, whose
    mean between the rows is a cubic spline."""

    low_precision = True
    takes_numbers = True

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        m = _shared(x, z)
        return jnp.prod(m**2 * (m / 3 + jnp.abs(x - z) / 2))

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return only(columns, IntegratedWalk())


def _shared(x: jax.Array, z: jax.Array) -> jax.Array:
    """How far from 0 both are, in each column; 0 where they lie on different sides of it."""
    return jnp.where(x * z > 0, jnp.minimum(jnp.abs(x), jnp.abs(z)), 0.0)


# J_n of Cho and Saul as functions of t. With c = cos(angle) = 1 - 2t: dJ_2/dc = 4 J_1, dJ_1/dc = J_0, dJ_0/dc
# = 1 / sin(angle).


def _angle(t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """angle, its cosine and its sine."""
    t = jnp.clip(t, 0.0, 1.0)
    return 2 * jnp.arctan2(root(t), root(1 - t)), 1 - 2 * t, 2 * root(t) * root(1 - t)


@jax.custom_jvp
def _arc0(t: jax.Array) -> jax.Array:
    return jnp.pi - _angle(t)[0]


def _slope0(t: jax.Array) -> jax.Array:
    sine = _angle(t)[2]
    # at angle 0 the kernel has a kink
    return jnp.where(sine > 0, -2 / jnp.where(sine > 0, sine, 1.0), 0.0)


@jax.custom_jvp
def _arc1(t: jax.Array) -> jax.Array:
    angle, cosine, sine = _angle(t)
    return sine + (jnp.pi - angle) * cosine


@jax.custom_jvp
def _arc2(t: jax.Array) -> jax.Array:
    angle, cosine, sine = _angle(t)
    return 3 * sine * cosine + (jnp.pi - angle) * (1 + 2 * cosine**2)


_arc0.defjvps(lambda dt, _, t: _slope0(t) * dt)
_arc1.defjvps(lambda dt, _, t: -2 * _arc0(t) * dt)
_arc2.defjvps(lambda dt, _, t: -8 * _arc1(t) * dt)
_ARC = (_arc0, _arc1, _arc2)
