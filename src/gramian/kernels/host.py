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

from gramian.arrays import Array
from gramian.kernels.algebra import Exp, Power, Product, Scaled, Sum
from gramian.kernels.base import FORMS, Kernel
from gramian.kernels.categorical import Categorical
from gramian.kernels.coregion import Coregion
from gramian.kernels.distance import DIFFERENCES_UP_TO, TYPICAL
from gramian.kernels.dot_product import Brownian, Constant, IntegratedBrownian, Linear, Polynomial
from gramian.kernels.inputs import Named, On
from gramian.kernels.profiles import MATERN12, MATERN32, MATERN52, SQUARED_EXPONENTIAL, Profile
from gramian.kernels.stationary import RBF, Cosine, Matern12, Matern32, Matern52, Periodic, RationalQuadratic

Pull = Callable[[Array, float], list[Array]]
Back = Callable[[Array, float], Array]  # c sum_ij V_ij dr_ij^2/dlengthscale, from weights V and c

FARTHEST = 1e150  # r^2, as in kernels/stationary.py: beyond, inf times exp(-inf) would be no number
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

    def distances(self, lengthscale: Array) -> tuple[Array, Back]:
        """r^2, for the caller to change, and the way back from its weights: see kernels/distance.py."""

        def by_column(sums: Array, c: float) -> Array:
            return _like((-2 * c) * sums / lengthscale, lengthscale)

        if self.kept:  # two products with a matrix of d rows
            squares, unit = self.squares
            weights = (unit / lengthscale) ** 2
            r2 = (weights @ squares).reshape(len(self.X), -1)
            np.minimum(r2, FARTHEST, out=r2)
            return r2, lambda V, c: by_column(weights * (squares @ V.reshape(-1)), c)
        X, Z = scaled(self.X, self.Z, lengthscale)

        def back(V: Array, c: float) -> Array:
            rows, columns, crossed = V.sum(axis=1), V.sum(axis=0), (X * (V @ Z)).sum(axis=0)
            return by_column(rows @ (X * X) + columns @ (Z * Z) - 2 * crossed, c)

        r2 = squared_distances(X, Z)
        return np.minimum(r2, FARTHEST, out=r2), back

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


class Stack(Pairs):
    """Many small tables side by side, (d, G, B): B tables of G points each. K is (pairs, B), of the pairs
    (i, i + lag) of each table, for lags from `first` on and before `last`, one lag after the other: both
    points of all pairs of a lag lie in one piece of memory. For kernels `by_distance`."""

    def __init__(self, tables: Array, first: int = 0, last: int | None = None) -> None:
        super().__init__(tables[:, 0].T, tables[:, :, 0].T)
        self.tables, self.lags = tables, range(first, tables.shape[1] if last is None else last)

    def distances(self, lengthscale: Array) -> tuple[Array, Back]:
        T = self.tables / np.broadcast_to(lengthscale, len(self.tables))[:, None, None]
        d, G, B = T.shape
        squares, done = np.empty((d, sum(G - lag for lag in self.lags), B)), 0
        for lag in self.lags:
            np.subtract(T[:, lag:], T[:, : G - lag], out=squares[:, done : done + G - lag])
            done += G - lag
        np.multiply(squares, squares, out=squares)
        r2 = np.add.reduce(squares[:2], axis=0)
        for column in squares[2:]:
            r2 += column
        most = float(np.max(np.abs(T), initial=0.0))
        if not 4 * d * most * most < FARTHEST:
            np.minimum(r2, FARTHEST, out=r2)

        def back(V: Array, c: float) -> Array:
            sums = np.array([np.vdot(V, column) for column in squares])
            return _like((-2 * c) * sums / lengthscale, lengthscale)

        return r2, back

    def on(self, columns: tuple[int, ...]) -> Stack:
        return Stack(self.tables[list(columns)], self.lags.start, self.lags.stop)


class Host(ABC):
    """A kernel at given parameters, on arrays of the host."""

    # whether it asks for distances alone, which are known of stacks of tables, too, and in JAX of tables side
    # by side (kernels/distance.py)
    by_distance: bool = False

    @abstractmethod
    def cross(self, points: Pairs) -> KernelValues:
        """K(X, Z)."""

    @abstractmethod
    def diagonal(self, X: Array) -> KernelValues:
        """k(x, x) of each row, (n,)."""

    def values(self, points: Pairs) -> Array:
        """K(X, Z) alone."""
        return self.cross(points).K


class UnitHost(Host):
    """A kernel that is 1 at distance 0, whatever its parameters."""

    def __init__(self, *parameters: Array) -> None:
        self.parameters = parameters

    def diagonal(self, X: Array) -> KernelValues:
        return KernelValues(np.ones(len(X)), lambda w, c: [np.zeros(np.shape(p)) for p in self.parameters])


# Functions of the squared scaled distance. ------------------------------------------------------------------


class RadialHost(UnitHost):
    """k = profile(r^2)."""

    by_distance = True

    def __init__(self, lengthscale: Array, profile: Profile) -> None:
        super().__init__(lengthscale)
        self.lengthscale, self.profile = lengthscale, profile

    def cross(self, points: Pairs) -> KernelValues:
        r2, back = points.distances(self.lengthscale)
        r2 *= self.profile.c
        K, slope = self.profile.both(r2)
        return KernelValues(K, lambda W, c: [back(W * slope, c * self.profile.slope)])

    def values(self, points: Pairs) -> Array:
        r2, _ = points.distances(self.lengthscale)
        r2 *= self.profile.c
        return self.profile.value(r2)


class Quadratic(UnitHost):
    """The rational quadratic kernel."""

    by_distance = True

    def cross(self, points: Pairs) -> KernelValues:
        lengthscale, alpha = self.parameters
        r2, back = points.distances(lengthscale)
        s = r2 / (2 * alpha)
        log = np.log1p(s)
        K = np.exp(-alpha * log)

        def pull(W: Array, c: float) -> list[Array]:
            V = W * K
            by_alpha = c * (np.vdot(V, s / (1 + s)) - np.vdot(V, log))
            return [back(-0.5 * V / (1 + s), c), np.asarray(by_alpha)]

        return KernelValues(K, pull)


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
    return np.array([int(share * n) for share in TYPICAL])


# Waves. -----------------------------------------------------------------------------------------------------


class PeriodicForm(UnitHost):
    def cross(self, points: Pairs) -> KernelValues:
        X, Z, d = points.X, points.Z, points.X.shape[1]
        lengthscale, period = (np.broadcast_to(p, d) for p in self.parameters)
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
            return [*map(_like, (by_lengthscale, by_period), self.parameters)]

        return KernelValues(K, pull)


class CosineForm(UnitHost):
    def cross(self, points: Pairs) -> KernelValues:
        (period,) = self.parameters
        X, Z = scaled(points.X, points.Z, period)
        angle = 2 * np.pi * np.subtract.outer(X.sum(axis=1), Z.sum(axis=1))

        def pull(W: Array, c: float) -> list[Array]:
            V = W * np.sin(angle)
            by_period = (2 * np.pi * c) * (V.sum(axis=1) @ X - V.sum(axis=0) @ Z) / period
            return [_like(by_period, period)]

        return KernelValues(np.cos(angle), pull)


# Products of points, constants, categories. -----------------------------------------------------------------


class LinearForm(Host):
    def __init__(self, variance: Array) -> None:
        self.variance = variance  # (), (1,), (d,) or (d, d)

    def cross(self, points: Pairs) -> KernelValues:
        X, Z = points.X, points.Z
        return KernelValues(self.lifted(X) @ Z.T, lambda W, c: [c * self.by_variance(X, W @ Z)])

    def diagonal(self, X: Array) -> KernelValues:
        values = (self.lifted(X) * X).sum(axis=1)
        return KernelValues(values, lambda w, c: [c * self.by_variance(X, w[:, None] * X)])

    def lifted(self, X: Array) -> Array:
        return X @ self.variance if self.variance.ndim == 2 else X * self.variance

    def by_variance(self, X: Array, WZ: Array) -> Array:
        return X.T @ WZ if self.variance.ndim == 2 else _like((X * WZ).sum(axis=0), self.variance)


class ConstantForm(Host):
    def __init__(self, variance: Array) -> None:
        self.variance = variance

    def cross(self, points: Pairs) -> KernelValues:
        return self._everywhere((len(points.X), len(points.Z)))

    def diagonal(self, X: Array) -> KernelValues:
        return self._everywhere((len(X),))

    def _everywhere(self, shape: tuple[int, ...]) -> KernelValues:
        return KernelValues(np.full(shape, float(self.variance)), lambda W, c: [np.asarray(c * W.sum())])


class MotionForm(Host):
    """A product over columns of what a motion from 0 has: a function of how far from 0 both points are on one
    side of it, and of how far they are apart. No parameters."""

    def __init__(self, of: Callable[[Array, Array], Array]) -> None:
        self.of = of

    def cross(self, points: Pairs) -> KernelValues:
        return KernelValues(self._values(points.X[:, None], points.Z[None]), lambda W, c: [])

    def diagonal(self, X: Array) -> KernelValues:
        return KernelValues(self._values(X, X), lambda w, c: [])

    def _values(self, x: Array, z: Array) -> Array:
        shared = np.where(x * z > 0, np.minimum(np.abs(x), np.abs(z)), 0.0)
        values: Array = np.prod(self.of(shared, np.abs(x - z)), axis=-1)
        return values


class CategoricalForm(UnitHost):
    def cross(self, points: Pairs) -> KernelValues:
        X, Z, d = points.X, points.Z, points.X.shape[1]
        similarity = np.broadcast_to(self.parameters[0], d)
        differ = [np.not_equal.outer(X[:, j], Z[:, j]) for j in range(d)]
        values = [np.where(differ[j], similarity[j], 1.0) for j in range(d)]

        def pull(W: Array, c: float) -> list[Array]:
            others = [_product(values[:j] + values[j + 1 :]) for j in range(d)]
            sums = [float(np.sum(W * others[j], where=differ[j])) for j in range(d)]
            return [_like(c * np.array(sums), self.parameters[0])]

        return KernelValues(_product(values), pull)


class CoregionForm(Host):
    """B at pairs of codes; those of outputs that nobody knows have weights 0 and a variance of 1."""

    def __init__(self, weights: Array, own: Array) -> None:
        self.weights, self.own = np.asarray(weights), np.asarray(own)

    def cross(self, points: Pairs) -> KernelValues:
        (x, V, own), (z, W, _) = self._of(points.X), self._of(points.Z)
        alike = points.X[:, :1] == points.Z[:, 0][None]
        return KernelValues(V @ W.T + np.where(alike, own[:, None], 0.0), self._pull(x, V, z, W, alike))

    def _pull(self, x: Array, V: Array, z: Array, W: Array, alike: Array) -> Pull:
        def pull(weight: Array, c: float) -> list[Array]:
            by = x.T @ (weight @ W) + z.T @ (weight.T @ V)  # codes of unknown outputs are rows of zeros
            return [c * by, c * (x.T @ np.sum(weight * alike, axis=1))]

        return pull

    def diagonal(self, X: Array) -> KernelValues:
        x, V, own = self._of(X)

        def pull(w: Array, c: float) -> list[Array]:
            return [2 * c * (x.T @ (w[:, None] * V)), c * (x.T @ w)]

        return KernelValues(np.sum(V * V, axis=1) + own, pull)

    def _of(self, X: Array) -> tuple[Array, Array, Array]:
        """Codes as indicators, (n, outputs), the rows of W, and own."""
        x = (X[:, :1] == np.arange(len(self.own))).astype(np.float64)
        return x, x @ self.weights, x @ self.own + (1.0 - x.sum(axis=1))


# Kernels of kernels. ----------------------------------------------------------------------------------------

Join = Callable[[list[KernelValues]], KernelValues]


class Joined(Host):
    """A function of other kernels' values, entry by entry."""

    def __init__(self, parts: Sequence[Host], join: Join) -> None:
        self.parts, self.join = parts, join
        self.by_distance = all(part.by_distance for part in parts)

    def cross(self, points: Pairs) -> KernelValues:
        return self.join([part.cross(points) for part in self.parts])

    def values(self, points: Pairs) -> Array:
        return self.join([KernelValues(part.values(points), _no_way_back) for part in self.parts]).K

    def diagonal(self, X: Array) -> KernelValues:
        return self.join([part.diagonal(X) for part in self.parts])


class OnForm(Host):
    def __init__(self, columns: tuple[int, ...], inner: Host) -> None:
        self.columns, self.inner = columns, inner
        self.by_distance = inner.by_distance

    def cross(self, points: Pairs) -> KernelValues:
        return self.inner.cross(points.on(self.columns))

    def values(self, points: Pairs) -> Array:
        return self.inner.values(points.on(self.columns))

    def diagonal(self, X: Array) -> KernelValues:
        return self.inner.diagonal(X[:, self.columns])


def _no_way_back(W: Array, c: float) -> list[Array]:
    raise AssertionError("nobody asks values alone for it")


def _added(blocks: list[KernelValues]) -> KernelValues:
    K = sum((block.K for block in blocks[1:]), blocks[0].K)
    return KernelValues(K, lambda W, c: [part for block in blocks for part in block.pull(W, c)])


def _multiplied(blocks: list[KernelValues]) -> KernelValues:
    values = [block.K for block in blocks]

    def pull(W: Array, c: float) -> list[Array]:
        others = (_product(values[:k] + values[k + 1 :]) for k in range(len(values)))
        return [part for block, V in zip(blocks, others, strict=True) for part in block.pull(W * V, c)]

    return KernelValues(_product(values), pull)


def _scaled(scale: float) -> Join:
    def join(blocks: list[KernelValues]) -> KernelValues:
        ((K, inner),) = blocks
        return KernelValues(scale * K, lambda W, c: [np.asarray(c * np.vdot(W, K)), *inner(W, c * scale)])

    return join


def _raised(p: int) -> Join:
    def join(blocks: list[KernelValues]) -> KernelValues:
        ((K, inner),) = blocks
        return KernelValues(K**p, lambda W, c: inner(W * K ** (p - 1), c * p))

    return join


def _exponential(blocks: list[KernelValues]) -> KernelValues:
    ((K, inner),) = blocks
    outer = np.exp(K)
    return KernelValues(outer, lambda W, c: inner(W * outer, c))


def _polynomial(degree: int, offset: Array) -> Join:
    def join(blocks: list[KernelValues]) -> KernelValues:
        ((K, inner),) = blocks
        B = K + offset

        def pull(W: Array, c: float) -> list[Array]:
            V = W * B ** (degree - 1)
            return [*inner(V, c * degree), np.asarray(c * degree * V.sum())]

        return KernelValues(B**degree, pull)

    return join


def _joined(kernels: Sequence[Kernel], join: Join) -> Host | None:
    parts = [part for part in (kernel.on_host() for kernel in kernels) if part is not None]
    return Joined(parts, join) if len(parts) == len(kernels) else None


def _on(kernel: On) -> Host | None:
    inner = kernel.kernel.on_host()
    return None if inner is None else OnForm(tuple(kernel._numbers()), inner)


def _like(by_column: Array, parameter: Array) -> Array:
    """A gradient by column as that of a parameter of one number, or of one a column."""
    return by_column if parameter.shape == by_column.shape else by_column.sum().reshape(parameter.shape)


def _product(values: Sequence[Array]) -> Any:
    total: Any = values[0] if values else 1.0
    for value in values[1:]:
        total = total * value
    return total


FORMS |= {
    RBF: lambda k: RadialHost(k.lengthscale, SQUARED_EXPONENTIAL),
    Matern12: lambda k: RadialHost(k.lengthscale, MATERN12),
    Matern32: lambda k: RadialHost(k.lengthscale, MATERN32),
    Matern52: lambda k: RadialHost(k.lengthscale, MATERN52),
    RationalQuadratic: lambda k: Quadratic(k.lengthscale, k.alpha),
    Periodic: lambda k: PeriodicForm(k.lengthscale, k.period),
    Cosine: lambda k: CosineForm(k.period),
    Linear: lambda k: LinearForm(k.variance),
    Polynomial: lambda k: Joined([LinearForm(k.variance)], _polynomial(k.degree, k.offset)),
    Constant: lambda k: ConstantForm(k.variance),
    Brownian: lambda k: MotionForm(lambda shared, apart: shared),
    IntegratedBrownian: lambda k: MotionForm(lambda m, apart: m**2 * (m / 3 + apart / 2)),
    Categorical: lambda k: CategoricalForm(k.similarity),
    Coregion: lambda k: CoregionForm(k.weights, k.own) if k.outputs else None,
    Scaled: lambda k: _joined([k.kernel], _scaled(float(k.scale))),
    Sum: lambda k: _joined(k.terms, _added),
    Product: lambda k: _joined(k.factors, _multiplied),
    Power: lambda k: _joined([k.base], _raised(k.exponent)),
    Exp: lambda k: _joined([k.kernel], _exponential),
    Named: lambda kernel: kernel.kernel.on_host(),
    On: _on,
}
