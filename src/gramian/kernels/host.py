"""Kernels in NumPy, for few rows: the values K(X, Z), and the pullback of weights to the parameters.

    KernelValues.K             K(X, Z), (n, m)
    KernelValues.pull(W, c)    c sum_ij W_ij dk(x_i, z_j)/dtheta, one array a parameter as `paths` go

A call of a compiled program takes longer than what it computes for few rows (n = 50: 150 us a tile, where
distances and exponentials take 10), and each new size of a tile is another compilation of 0.2 s. So the
common kernels have a form in NumPy, too: the same formulas with the same care. Distances are sums of squared
differences around a common centre, equal rows get exactly k(x, x), slopes are finite at distance 0.

A kernel says by `Kernel.on_host()` whether it has such a form; one's own kernel may override it and return a
Host of its own. What has none goes through JAX.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from gramian.kernels.algebra import Exp, Power, Product, Scaled, Sum
from gramian.kernels.base import FORMS, Kernel
from gramian.kernels.categorical import Categorical
from gramian.kernels.distance import DIFFERENCES_UP_TO
from gramian.kernels.dot_product import Constant, Linear, Polynomial
from gramian.kernels.inputs import On
from gramian.kernels.stationary import RBF, Cosine, Matern12, Matern32, Matern52, Periodic, RationalQuadratic

Array = NDArray[np.float64]
Pull = Callable[[Array, float], list[Array]]
Pull1 = Callable[[Array, float], Array]

KEPT = 2**17  # numbers that stay in a core's own cache: 200 rows of 3 columns, 100 of 13


class KernelValues(NamedTuple):
    """Kernel values between two sets of points, and the way back from their weights. K is not to be changed:
    `pull` may need it."""

    K: Array
    pull: Pull


class Pairs:
    """The rows of X beside those of Z. With `kept`, as where a search asks for the same rows at many
    parameters, what depends on the points alone is found once."""

    def __init__(self, X: Array, Z: Array, kept: bool = False) -> None:
        self.X, self.Z, self.kept = X, Z, kept and X.size * len(Z) <= KEPT

    @cached_property
    def squares(self) -> tuple[Array, Array]:
        """Squared differences by column, (d, n m), in units of the farthest two, and these units, (d,)."""
        apart = (self.X.T[:, :, None] - self.Z.T[:, None, :]).reshape(self.X.shape[1], -1)
        unit = np.abs(apart).max(axis=1)
        unit[unit == 0] = 1.0
        apart /= unit[:, None]
        return np.square(apart, out=apart), unit

    def on(self, columns: tuple[int, ...]) -> Pairs:
        """The same points with these columns alone."""
        known = self._parts.get(columns)
        if known is None:
            X = self.X[:, columns]
            known = Pairs(X, X if self.X is self.Z else self.Z[:, columns], self.kept)
            self._parts[columns] = known
        return known

    @cached_property
    def _parts(self) -> dict[tuple[int, ...], Pairs]:
        return {}


class Host(ABC):
    """A kernel at given parameters, on arrays of the host."""

    @abstractmethod
    def cross(self, points: Pairs) -> KernelValues:
        """K(X, Z)."""

    @abstractmethod
    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        """k(x, x) of each row, and its pullback for weights (n,)."""


# Functions of the squared scaled distance. ------------------------------------------------------------------

# values, and dk/dr^2 when it is asked for, from r^2, which is used up
Profile = Callable[[Array], tuple[Array, Callable[[], Array]]]

FARTHEST = 1e150  # r^2, as in kernels/stationary.py: beyond, inf times exp(-inf) would be no number


def _rbf(r2: Array) -> tuple[Array, Callable[[], Array]]:
    r2 *= -0.5
    K = np.exp(r2, out=r2)
    return K, lambda: -0.5 * K


def _matern12(r2: Array) -> tuple[Array, Callable[[], Array]]:
    a = np.sqrt(np.minimum(r2, FARTHEST, out=r2), out=r2)
    K = np.exp(-a)
    # infinite at distance 0, but only ever multiplied by a distance of 0
    return K, lambda: np.divide(-0.5 * K, a, out=np.zeros_like(a), where=a > 0)


def _matern32(r2: Array) -> tuple[Array, Callable[[], Array]]:
    a = np.sqrt(3 * np.minimum(r2, FARTHEST, out=r2))
    e = np.exp(-a)
    return (1 + a) * e, lambda: -1.5 * e


def _matern52(r2: Array) -> tuple[Array, Callable[[], Array]]:
    s = 5 * np.minimum(r2, FARTHEST, out=r2)
    a = np.sqrt(s)
    e = np.exp(-a)
    return (1 + a + s / 3) * e, lambda: (-5 / 6) * (1 + a) * e


class RadialHost(Host):
    """k = profile(r^2)."""

    def __init__(self, lengthscale: Array, profile: Profile) -> None:
        self.lengthscale, self.profile = lengthscale, profile

    def cross(self, points: Pairs) -> KernelValues:
        r2, back = self.distances(points)
        K, slope = self.profile(r2)
        return KernelValues(K, lambda W, c: [back(W * slope(), c)])

    def distances(self, points: Pairs) -> tuple[Array, Pull1]:
        """r^2, and c sum_ij V_ij dr_ij^2/dlengthscale from its weights V: see kernels/distance.py."""
        if points.kept:  # two products with a matrix of d rows
            squares, unit = points.squares
            weights = (unit / self.lengthscale) ** 2
            r2 = (weights @ squares).reshape(len(points.X), -1)
            return r2, lambda V, c: self._by_column(weights * (squares @ V.reshape(-1)), c)
        X, Z = scaled(points.X, points.Z, self.lengthscale)

        def back(V: Array, c: float) -> Array:
            rows, columns, crossed = V.sum(axis=1), V.sum(axis=0), (X * (V @ Z)).sum(axis=0)
            return self._by_column(rows @ (X * X) + columns @ (Z * Z) - 2 * crossed, c)

        return squared_distances(X, Z), back

    def _by_column(self, sums: Array, c: float) -> Array:
        return _like((-2 * c) * sums / self.lengthscale, self.lengthscale)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.ones(len(X)), lambda w: [np.zeros(self.lengthscale.shape)]


class Quadratic(RadialHost):
    """The rational quadratic kernel."""

    def __init__(self, lengthscale: Array, alpha: float) -> None:
        self.lengthscale, self.alpha = lengthscale, alpha

    def cross(self, points: Pairs) -> KernelValues:
        r2, back = self.distances(points)
        s = np.minimum(r2, FARTHEST) / (2 * self.alpha)
        log = np.log1p(s)
        K = np.exp(-self.alpha * log)

        def pull(W: Array, c: float) -> list[Array]:
            V = W * K
            by_alpha = c * (np.vdot(V, s / (1 + s)) - np.vdot(V, log))
            return [back(-0.5 * V / (1 + s), c), np.asarray(by_alpha)]

        return KernelValues(K, pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.ones(len(X)), lambda w: [np.zeros(self.lengthscale.shape), np.zeros(())]


def squared_distances(X: Array, Z: Array) -> Array:
    """r^2 of scaled points, exactly 0 for equal rows: as in kernels/distance.py."""
    if X.shape[1] <= DIFFERENCES_UP_TO:
        return cdist(X, Z, "sqeuclidean")  # by differences
    xx, zz = np.einsum("ij,ij->i", X, X)[:, None], np.einsum("ij,ij->i", Z, Z)[None, :]
    total = xx + zz
    r2 = total - 2 * X @ Z.T
    return np.where(r2 <= 4 * X.shape[1] ** 0.5 * np.finfo(float).eps * total, 0.0, r2)


def scaled(X: Array, Z: Array, lengthscale: Array) -> tuple[Array, Array]:
    """Both divided by the lengthscale, around a common centre; the same array twice stays one."""
    centre = typical(Z)
    moved = (Z - centre) / lengthscale
    return moved if X is Z else (X - centre) / lengthscale, moved


def typical(Z: Array) -> Array:
    """A point in the midst of the rows of Z: that of kernels/distance.py."""
    rows = Z[_places(len(Z))].reshape(3, 3, -1)
    rows.sort(axis=1)
    medians = rows[:, 1]
    medians.sort(axis=0)
    return medians[1]


@lru_cache(maxsize=1024)
def _places(n: int) -> NDArray[np.intp]:
    return np.array([int(share * n) for share in (0.0, 0.02, 0.3, 0.05, 0.53, 0.74, 0.1, 0.2, 0.93)])


# Waves. -----------------------------------------------------------------------------------------------------


class PeriodicForm(Host):
    def __init__(self, lengthscale: Array, period: Array) -> None:
        self.lengthscale, self.period = lengthscale, period

    def cross(self, points: Pairs) -> KernelValues:
        X, Z, d = points.X, points.Z, points.X.shape[1]
        lengthscale, period = np.broadcast_to(self.lengthscale, d), np.broadcast_to(self.period, d)
        angles = [np.pi * np.subtract.outer(X[:, j], Z[:, j]) / period[j] for j in range(d)]
        waves = [np.sin(angle) / own for angle, own in zip(angles, lengthscale, strict=True)]
        total = waves[0] ** 2
        for wave in waves[1:]:
            total += wave**2
        K = np.exp(-2 * total)

        def pull(W: Array, c: float) -> list[Array]:
            V = (4 * c) * W * K
            by_lengthscale, by_period = np.empty(d), np.empty(d)
            for j in range(d):
                by_lengthscale[j] = np.vdot(V, waves[j] ** 2) / lengthscale[j]
                turn = np.cos(angles[j]) * angles[j]
                by_period[j] = np.vdot(V * waves[j], turn) / (lengthscale[j] * period[j])
            return [_like(by_lengthscale, self.lengthscale), _like(by_period, self.period)]

        return KernelValues(K, pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.ones(len(X)), lambda w: [np.zeros(self.lengthscale.shape), np.zeros(self.period.shape)]


class CosineForm(Host):
    def __init__(self, period: Array) -> None:
        self.period = period

    def cross(self, points: Pairs) -> KernelValues:
        X, Z = scaled(points.X, points.Z, self.period)
        angle = 2 * np.pi * np.subtract.outer(X.sum(axis=1), Z.sum(axis=1))

        def pull(W: Array, c: float) -> list[Array]:
            V = W * np.sin(angle)
            by_period = (2 * np.pi * c) * (V.sum(axis=1) @ X - V.sum(axis=0) @ Z) / self.period
            return [_like(by_period, self.period)]

        return KernelValues(np.cos(angle), pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.ones(len(X)), lambda w: [np.zeros(self.period.shape)]


# Products of points, constants, categories. -----------------------------------------------------------------


class LinearForm(Host):
    def __init__(self, variance: Array) -> None:
        self.variance = variance  # (), (1,), (d,) or (d, d)

    def cross(self, points: Pairs) -> KernelValues:
        X, Z = points.X, points.Z
        return KernelValues(self.lifted(X) @ Z.T, lambda W, c: [c * self.by_variance(X, W @ Z)])

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return (self.lifted(X) * X).sum(axis=1), lambda w: [self.by_variance(X, w[:, None] * X)]

    def lifted(self, X: Array) -> Array:
        return X @ self.variance if self.variance.ndim == 2 else X * self.variance

    def by_variance(self, X: Array, WZ: Array) -> Array:
        return X.T @ WZ if self.variance.ndim == 2 else _like((X * WZ).sum(axis=0), self.variance)


class PolynomialForm(Host):
    def __init__(self, degree: int, variance: Array, offset: Array) -> None:
        self.degree, self.inner, self.offset = degree, LinearForm(variance), offset

    def cross(self, points: Pairs) -> KernelValues:
        inner = self.inner.cross(points)
        B = inner.K + self.offset

        def pull(W: Array, c: float) -> list[Array]:
            V = W * B ** (self.degree - 1)
            return [*inner.pull(V, c * self.degree), np.asarray(c * self.degree * V.sum())]

        return KernelValues(B**self.degree, pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        values, back = self.inner.diagonal(X)
        B = values + self.offset

        def pull(w: Array) -> list[Array]:
            v = self.degree * w * B ** (self.degree - 1)
            return [*back(v), np.asarray(v.sum())]

        return B**self.degree, pull


class ConstantForm(Host):
    def __init__(self, variance: Array) -> None:
        self.variance = variance

    def cross(self, points: Pairs) -> KernelValues:
        return KernelValues(
            np.full((len(points.X), len(points.Z)), float(self.variance)),
            lambda W, c: [np.asarray(c * W.sum())],
        )

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.full(len(X), float(self.variance)), lambda w: [np.asarray(w.sum())]


class CategoricalForm(Host):
    def __init__(self, similarity: Array) -> None:
        self.similarity = similarity

    def cross(self, points: Pairs) -> KernelValues:
        X, Z, d = points.X, points.Z, points.X.shape[1]
        similarity = np.broadcast_to(self.similarity, d)
        differ = [np.not_equal.outer(X[:, j], Z[:, j]) for j in range(d)]
        values = [np.where(differ[j], similarity[j], 1.0) for j in range(d)]

        def pull(W: Array, c: float) -> list[Array]:
            others = [_product(values[:j] + values[j + 1 :]) for j in range(d)]
            sums = [float(np.sum(W * others[j], where=differ[j])) for j in range(d)]
            return [_like(c * np.array(sums), self.similarity)]

        return KernelValues(_product(values), pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return np.ones(len(X)), lambda w: [np.zeros(self.similarity.shape)]


# Kernels of kernels. ----------------------------------------------------------------------------------------


class ScaledForm(Host):
    def __init__(self, scale: float, inner: Host) -> None:
        self.scale, self.inner = scale, inner

    def cross(self, points: Pairs) -> KernelValues:
        inner = self.inner.cross(points)

        def pull(W: Array, c: float) -> list[Array]:
            return [np.asarray(c * np.vdot(W, inner.K)), *inner.pull(W, c * self.scale)]

        return KernelValues(self.scale * inner.K, pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        values, back = self.inner.diagonal(X)
        return self.scale * values, lambda w: [np.asarray(w @ values), *back(self.scale * w)]


class SumForm(Host):
    def __init__(self, terms: Sequence[Host]) -> None:
        self.terms = terms

    def cross(self, points: Pairs) -> KernelValues:
        blocks = [term.cross(points) for term in self.terms]
        return KernelValues(
            sum((block.K for block in blocks[1:]), blocks[0].K),
            lambda W, c: [part for block in blocks for part in block.pull(W, c)],
        )

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        found = [term.diagonal(X) for term in self.terms]
        return sum((values for values, _ in found[1:]), found[0][0]), lambda w: [
            part for _, back in found for part in back(w)
        ]


class ProductForm(Host):
    def __init__(self, factors: Sequence[Host]) -> None:
        self.factors = factors

    def cross(self, points: Pairs) -> KernelValues:
        blocks = [factor.cross(points) for factor in self.factors]
        values = [block.K for block in blocks]

        def pull(W: Array, c: float) -> list[Array]:
            return [
                part
                for k, block in enumerate(blocks)
                for part in block.pull(W * _product(values[:k] + values[k + 1 :]), c)
            ]

        return KernelValues(_product(values), pull)

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        found = [factor.diagonal(X) for factor in self.factors]
        values = [value for value, _ in found]
        return _product(values), lambda w: [
            part
            for k, (_, back) in enumerate(found)
            for part in back(w * _product(values[:k] + values[k + 1 :]))
        ]


class ComposedForm(Host):
    """g(k), entry by entry, with the slope of g from k and g(k)."""

    def __init__(
        self, inner: Host, g: Callable[[Array], Array], slope: Callable[[Array, Array], Array]
    ) -> None:
        self.inner, self.g, self.slope = inner, g, slope

    def cross(self, points: Pairs) -> KernelValues:
        inner = self.inner.cross(points)
        K = self.g(inner.K)
        return KernelValues(K, lambda W, c: inner.pull(W * self.slope(inner.K, K), c))

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        values, back = self.inner.diagonal(X)
        outer = self.g(values)
        return outer, lambda w: back(w * self.slope(values, outer))


class OnForm(Host):
    def __init__(self, columns: tuple[int, ...], inner: Host) -> None:
        self.columns, self.inner = columns, inner

    def cross(self, points: Pairs) -> KernelValues:
        return self.inner.cross(points.on(self.columns))

    def diagonal(self, X: Array) -> tuple[Array, Callable[[Array], list[Array]]]:
        return self.inner.diagonal(X[:, self.columns])


def _composed(kernel: Kernel, make: Callable[..., Host]) -> Host | None:
    inner = kernel.on_host()
    return None if inner is None else make(inner)


def _all(kernels: Sequence[Kernel], make: Callable[[Sequence[Host]], Host]) -> Host | None:
    parts = [part for part in (kernel.on_host() for kernel in kernels) if part is not None]
    return make(parts) if len(parts) == len(kernels) else None


def _power(inner: Host, p: int) -> Host:
    return ComposedForm(inner, lambda k: k**p, lambda k, _: p * k ** (p - 1))


def _like(by_column: Array, parameter: Array) -> Array:
    """A gradient by column as that of a parameter of one number, or of one a column."""
    return by_column if parameter.shape == by_column.shape else by_column.sum().reshape(parameter.shape)


def _product(values: Sequence[Array]) -> Any:
    total: Any = values[0] if values else 1.0
    for value in values[1:]:
        total = total * value
    return total


FORMS |= {
    RBF: lambda k: RadialHost(k.lengthscale, _rbf),
    Matern12: lambda k: RadialHost(k.lengthscale, _matern12),
    Matern32: lambda k: RadialHost(k.lengthscale, _matern32),
    Matern52: lambda k: RadialHost(k.lengthscale, _matern52),
    RationalQuadratic: lambda k: Quadratic(k.lengthscale, float(k.alpha)),
    Periodic: lambda k: PeriodicForm(k.lengthscale, k.period),
    Cosine: lambda k: CosineForm(k.period),
    Linear: lambda k: LinearForm(k.variance),
    Polynomial: lambda k: PolynomialForm(k.degree, k.variance, k.offset),
    Constant: lambda k: ConstantForm(k.variance),
    Categorical: lambda k: CategoricalForm(k.similarity),
    Scaled: lambda k: _composed(k.kernel, lambda inner: ScaledForm(float(k.scale), inner)),
    Sum: lambda k: _all(k.terms, SumForm),
    Product: lambda k: _all(k.factors, ProductForm),
    Power: lambda k: _composed(k.base, lambda inner: _power(inner, k.exponent)),
    Exp: lambda k: _composed(k.kernel, lambda inner: ComposedForm(inner, np.exp, lambda _, g: g)),
    On: lambda k: _composed(k.kernel, lambda inner: OnForm(tuple(k._numbers()), inner)),
}
