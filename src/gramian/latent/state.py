"""What a fit of latent places leaves, in the units of the table: one frozen value that answers questions.

Columns are centred and scaled on the way in and back on the way out; one that never varies is no part of the
model, and comes back as the number that it is.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import AnyArray, Array, Indices
from gramian.errors import InputError, StateError
from gramian.forks import compiled
from gramian.kernels.base import Kernel
from gramian.latent.bound import FunctionWeights, ObservedTable, Places, weights
from gramian.latent.rows import Hills, RowModel
from gramian.latent.search import Position
from gramian.likelihoods import Gaussian
from gramian.linalg.state import taken
from gramian.params import Parameter

USED = 0.02  # share of the largest relevance from which on a dimension counts as used


@compiled()
def squared_slopes(kernel: Kernel, X: Any, Z: Any, A: Any) -> Any:
    """sum_d (df_d / dx_q)^2 at each row, (n, Q), where sum_d a_d a_d' = A."""

    def at(x: Any) -> Any:
        G = jax.vmap(lambda z: jax.grad(kernel.pair)(x, z))(Z)  # (m, Q)
        return jnp.sum(G * (A @ G), axis=0)

    return jax.lax.map(at, X)


@dataclass(frozen=True)
class Scaling:
    """Of the columns of a table."""

    centre: Array  # (D,)
    scale: Array  # (D,); 0 for one that never varies
    kept: Indices  # those that vary

    def inward(self, Y: Array) -> Array:
        """The cells of a table as the model sees them, (n, kept)."""
        return np.ascontiguousarray((Y[:, self.kept] - self.centre[self.kept]) / self.scale[self.kept])

    def outward(self, values: Array) -> Array:
        """And back."""
        Y = np.repeat(self.centre[None, :], len(values), axis=0)
        Y[:, self.kept] += values * self.scale[self.kept]
        return Y

    def spread(self, var: Array) -> Array:
        """Standard deviations in the units of the table."""
        std = np.zeros((len(var), len(self.centre)))
        std[:, self.kept] = np.sqrt(var) * self.scale[self.kept]
        return std


@dataclass(frozen=True)
class LatentState:
    """Kernel, noise, inducing points and places; what is known of the functions; scales of the columns."""

    position: Position
    weights: FunctionWeights
    group: Indices  # of each kept column
    scaling: Scaling

    @classmethod
    def of(cls, position: Position, table: ObservedTable, scaling: Scaling) -> LatentState:
        """With the best q(u) at a position."""
        variances = position.of_groups(table)
        found = weights(position.kernel.bare(), variances, position.Z, position.places, table)
        return cls(position, found, table.group, scaling)

    @property
    def places(self) -> Places:
        return self.position.places

    @cached_property
    def rows(self) -> RowModel:
        own = self.position
        return RowModel(own.kernel.bare(), own.variances(), own.Z, self.weights, self.group, own.places)

    @property
    def likelihood(self) -> Gaussian:
        """The noise in the units of the table, one variance for all kept columns or one each."""
        unit = self.position.units * self.scaling.scale[self.scaling.kept] ** 2
        return Gaussian(self.position.noise, tuple(unit.tolist()))

    # Answers. -----------------------------------------------------------------------------------------------

    def place(self, Y: Array) -> Hills:
        scaled = self.scaling.inward(Y)
        far = np.any(np.abs(scaled) > 1e100, axis=1)
        if np.any(far):
            row = int(np.argmax(far))
            largest = float(np.nanmax(np.abs(Y[row])))
            raise InputError(
                f"Places of row {row} of X leave the range of numbers: it has a value of size {largest:.3g}."
                " Check its units."
            )
        return self.rows.place(scaled)

    def moments(self, places: Places, noise: bool) -> tuple[Array, Array]:
        """Mean and standard deviation of each column (n, D) at these places; `noise`: of observations."""
        mean, var = self.rows.moments(places)
        return self._outward(mean, var, noise)

    def averaged(self, hills: Hills, noise: bool) -> tuple[Array, Array]:
        """The same over all hills of each row."""
        mean, var = self.rows.averaged(hills)
        return self._outward(mean, var, noise)

    def _outward(self, mean: Array, var: Array, noise: bool) -> tuple[Array, Array]:
        var = var + self.position.variances() if noise else var
        return self.scaling.outward(mean), self.scaling.spread(var)

    def scores(self, Y: Array, hills: Hills) -> Array:
        """A bound on the log density of each row's cells, in the units of the table."""
        seen = ~np.isnan(Y[:, self.scaling.kept])
        return hills.score - seen @ np.log(self.scaling.scale[self.scaling.kept])

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Rows of the model, and their places: x ~ N(0, I), f(x) as far as it is known, and noise; each row
        by itself."""
        X = rng.standard_normal((count, self.places.mean.shape[1]))
        mean, var = self.rows.moments(Places(X, None if self.rows.points else np.zeros_like(X)))
        total = var + self.position.variances()
        return X, self.scaling.outward(mean + np.sqrt(total) * rng.standard_normal(mean.shape))

    @cached_property
    def relevance(self) -> Array:
        """How much the columns vary along each dimension, as shares: mean squared slopes of the functions
        times the variance of the places."""
        own, mean = self.position, self.places.mean
        some = mean[:: max(1, len(mean) // 500)]
        a = self.weights.mean
        with jax.enable_x64(True):
            slopes = np.asarray(squared_slopes(own.kernel.bare(), some, own.Z, a @ a.T))
        varies = np.mean(slopes, axis=0) * np.var(mean, axis=0)
        total = float(np.sum(varies))
        return varies / total if total > 0 else np.full(len(varies), 1 / len(varies))

    @property
    def used(self) -> int:
        """How many dimensions are."""
        return int(np.sum(self.relevance >= USED * np.max(self.relevance)))

    # Changes. -----------------------------------------------------------------------------------------------

    def ordered(self) -> LatentState:
        """The same with the most relevant dimension first, where the kernel has nothing that tells them apart
        but parameters with an entry each."""
        Q = self.places.mean.shape[1]
        order = np.argsort(-self.relevance, kind="stable")
        kernel = reordered(self.position.kernel, order)
        if kernel is None or np.array_equal(order, np.arange(Q)):
            return self
        var = None if self.places.var is None else self.places.var[:, order]
        places = Places(self.places.mean[:, order], var)
        Z = self.position.Z[:, order]
        position = dataclasses.replace(self.position, kernel=kernel, Z=Z, places=places)
        return dataclasses.replace(self, position=position)

    def polished(self, Y: Array, table: ObservedTable) -> LatentState:
        """Places anew with the functions held, and the functions anew, each of which raises the bound; then
        places once more, so that a row of the fit lies where the same row would be put later."""
        found = self
        for functions in (True, False):
            places = found.rows.polished(self.scaling.inward(Y), found.places)
            moved = dataclasses.replace(found.position, places=places)
            known = LatentState.of(moved, table, self.scaling).weights if functions else found.weights
            found = dataclasses.replace(found, position=moved, weights=known)
        return found

    # As arrays. ---------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """All but kernel and noise."""
        own, scaling = self.position, self.scaling
        found: dict[str, AnyArray] = {
            "units": own.units,
            "Z": own.Z,
            "places": own.places.mean,
            "weights.root": self.weights.root,
            "weights.mean": self.weights.mean,
            "weights.less": self.weights.less,
            "group": self.group.astype(np.int64),
            "centre": scaling.centre,
            "scale": scaling.scale,
            "kept": scaling.kept.astype(np.int64),
        }
        return found if own.places.var is None else {**found, "variances": own.places.var}

    @classmethod
    def from_arrays(cls, kernel: Kernel, noise: Parameter, arrays: dict[str, Any]) -> LatentState:
        """From what `arrays` gave, after a check that it fits together."""
        required = {"units", "Z", "places", "weights.root", "weights.mean", "weights.less"}
        required |= {"group", "centre", "scale", "kept"}
        if not required <= set(arrays) <= required | {"variances"}:
            raise StateError(f"a latent model has the arrays {', '.join(sorted(required))}.")
        units, Z, scale = taken(arrays, "units"), taken(arrays, "Z", (None, None)), taken(arrays, "scale")
        D, (m, Q) = len(units), Z.shape
        mean = taken(arrays, "places", (None, Q))
        var = taken(arrays, "variances", mean.shape) if "variances" in arrays else None
        known = FunctionWeights(
            taken(arrays, "weights.root", (m, m)),
            taken(arrays, "weights.mean", (m, D)),
            taken(arrays, "weights.less", (None, m, m)),
        )
        centre, G = taken(arrays, "centre", scale.shape), len(known.less)
        group, kept = (taken(arrays, name, (D,), np.int64) for name in ("group", "kept"))
        inside = np.all((group >= 0) & (group < G)) and np.all((kept >= 0) & (kept < len(scale)))
        if not inside or noise.value.shape not in ((), (D,)):
            raise StateError("its columns, groups and noises do not fit together.")
        positive = np.all(scale[kept] > 0) and np.all(units > 0) and np.all(noise.value > 0)
        if not positive or (var is not None and np.any(var <= 0)):
            raise StateError("its scales and variances are not all positive.")
        position = Position(kernel, noise, units, Z, Places(mean, var))
        return cls(position, known, group, Scaling(centre, scale, kept))


def reordered(kernel: Kernel, order: Indices) -> Kernel | None:
    """The kernel with its columns in another order; None where it speaks of some of them."""
    Q = len(order)
    if any(column not in range(Q) for column in kernel.columns_asked()):
        return None
    by_column = [parameter for parameter, columns in kernel.by_column(range(Q)) if columns == tuple(range(Q))]
    of_some = any(len(columns) != Q for _, columns in kernel.lengthscales(range(Q)))
    own = list(kernel.parameters().values())
    strange = [p for p in own if p.value.size > 1 and not any(p is known for known in by_column)]
    if of_some or strange:
        return None
    moved = [_entries(p, order) if any(p is known for known in by_column) else p for p in own]
    return kernel.with_parameters(moved)


def _entries(parameter: Parameter, order: Indices) -> Parameter:
    bounds: Any = parameter.bounds
    if bounds is not None:
        ends = (end if np.ndim(end) == 0 else tuple(np.asarray(end)[order].tolist()) for end in bounds)
        bounds = tuple(ends)
    return dataclasses.replace(parameter, value=parameter.value[order], bounds=bounds)
