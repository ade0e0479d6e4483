"""Kernels on changed inputs: some columns only, or a function of them; and kernels with a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.algebra import Combined, Power, Product, Scaled, Sum, _kernel, _name, enclosed
from gramian.kernels.base import TERMS, Column, Kernel, Pointwise
from gramian.kernels.expectations import ExpectedTerm
from gramian.kernels.profiles import Radial
from gramian.kernels.spectrum import Wave
from gramian.kernels.statespace import StateForm
from gramian.params import Parameter


class On(Pointwise):
    """A kernel on some columns, given by index or by name. Names become indices when data with named columns
    arrive."""

    kernel: Kernel
    columns: tuple[str | int, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ParameterError(f"{self.kernel}.on() needs at least one column.")
        for column in self.columns:
            if isinstance(column, bool) or not isinstance(column, (str, int, np.integer)):
                raise ParameterError(f"on({column!r}): a column is a name or a whole number.")
        # plain ones, also from NumPy's arrays
        clean = [str(column) if isinstance(column, str) else int(column) for column in self.columns]
        if len(set(clean)) < len(clean):
            raise ParameterError(f"on({', '.join(map(repr, clean))}) names a column twice.")
        object.__setattr__(self, "columns", tuple(clean))

    def label(self, field: str) -> str:
        return "" if field == "kernel" else (self.kernel.label("") or type(self.kernel).__name__.lower())

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        chosen = self._indices()
        return self.kernel.pair(x[chosen], z[chosen])

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        chosen = self._indices()
        return self.kernel.cross(X[:, chosen], Z[:, chosen])

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self.kernel.diagonal(X[:, self._indices()])

    def lengthscales(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return self.kernel.lengthscales([columns[i] for i in self._numbers()])

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        return self.kernel.change_lengths([columns[i] for i in self._numbers()])

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return self.kernel.by_column([columns[i] for i in self._numbers()])

    def columns_asked(self) -> tuple[str | int, ...]:
        return self.columns

    def levels(self) -> list[Parameter] | None:
        return self.kernel.levels()

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return self.kernel.waves(tuple(columns[i] for i in self._numbers()))

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return self.kernel.state_space(self.columns_of_part(columns), terms)

    def columns_of_part(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(columns[i] for i in self._numbers())

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        chosen = self._numbers()
        terms = self.kernel.gaussian_terms(len(chosen))
        return None if terms is None else [term.on(chosen, d) for term in terms]

    def check_columns(self, columns: Sequence[Column]) -> None:
        chosen = self.resolve([c.name for c in columns])
        self.kernel.check_columns([columns[i] for i in chosen._numbers()])

    def resolve(self, names: Sequence[str]) -> On:
        chosen = self._resolved(names)
        return On(self.kernel.resolve([names[i] for i in chosen]), tuple(chosen))

    def on_first_columns(self) -> On:
        return On(self.kernel.on_first_columns(), tuple(range(len(self.columns))))

    def suited(self, X: Array, names: Sequence[str]) -> On:
        chosen = self._resolved(names)
        return On(self.kernel.suited(X[:, chosen], [names[i] for i in chosen]), self.columns)

    def rivals(self, X: Array, names: Sequence[str]) -> tuple[tuple[str, Kernel], ...]:
        chosen = self._resolved(names)
        found = self.kernel.rivals(X[:, chosen], [names[i] for i in chosen])
        return tuple((name, On(kernel, self.columns)) for name, kernel in found)

    def in_units(self, columns: Sequence[Column]) -> On:
        chosen = [columns[i] for i in self._resolved([c.name for c in columns])]
        kernel = self.kernel.in_units(chosen)
        return self if kernel is self.kernel else On(kernel, self.columns)

    def formula(self, digits: int | None = None) -> str:
        columns = ", ".join(map(repr, self.columns))
        return f"{enclosed(self.kernel, digits, Sum, Product, Scaled, Power)}.on({columns})"

    def _resolved(self, names: Sequence[str]) -> list[int]:
        n = len(names)
        # few are looked for one by one, since a dictionary of all names takes longer
        places = {name: i for i, name in enumerate(names)} if len(self.columns) > 8 else names
        for column in self.columns:
            if isinstance(column, str) and column not in places:
                known = ", ".join(map(str, names))
                raise ParameterError(f"{self}: the data have no column {column!r}; they have {known}.")
            if isinstance(column, int) and not -n <= column < n:
                raise ParameterError(
                    f"{self}: there is no column {column}; the data have {n}, numbered from 0."
                )
        index = places.__getitem__ if isinstance(places, dict) else places.index
        return [index(c) if isinstance(c, str) else c % n for c in self.columns]

    def _indices(self) -> jax.Array:
        return jnp.array(self._numbers())

    def _numbers(self) -> list[int]:
        names = [c for c in self.columns if isinstance(c, str)]
        if names:
            raise ParameterError(
                f"{self.kernel} is on the column {names[0]!r}, but the data have no column names. Give a"
                " DataFrame, or an index."
            )
        return [c for c in self.columns if isinstance(c, int)]


class Named(Combined):
    """A kernel with a name that a person has given it: what its part of f is called. The model of a fit knows
    nothing of names: `resolve`, which leaves those of columns behind, leaves this one, too."""

    kernel: Kernel
    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError(f"{self.kernel}.named({self.name!r}): a name is text.")
        if len(self.kernel.summands) > 1:
            cure = "Name its summands, each for itself"
            raise ParameterError(f"{self.kernel} is a sum, whose parts are told apart. {cure}.")

    def of(self, *values: jax.Array) -> jax.Array:
        return values[0]

    def point_columns(self) -> tuple[int, int] | None:
        return self.kernel.point_columns()

    def points_among(self, X: Array, count: int, rng: np.random.Generator) -> Array:
        return self.kernel.points_among(X, count, rng)

    @property
    def title(self) -> str:
        return self.name

    def label(self, field: str) -> str:
        return "" if field == "kernel" else (self.kernel.label("") or type(self.kernel).__name__.lower())

    def levels(self) -> list[Parameter] | None:
        return self.kernel.levels()

    def radial(self) -> Radial | None:
        return self.kernel.radial()

    def waves(self, columns: tuple[int, ...]) -> list[Wave]:
        return self.kernel.waves(columns)

    def state_space(self, columns: tuple[int, ...], terms: int = TERMS) -> StateForm | None:
        return self.kernel.state_space(columns, terms)

    def gaussian_terms(self, d: int) -> list[ExpectedTerm] | None:
        return self.kernel.gaussian_terms(d)

    def resolve(self, names: Sequence[str]) -> Kernel:
        return self.kernel.resolve(names)

    def formula(self, digits: int | None = None) -> str:
        return f"{enclosed(self.kernel, digits, Sum, Product, Scaled, Power)}.named({self.name!r})"


class MapInputs(Kernel):
    """k(g(x), g(z)) with a function g in JAX, for one point (d,) -> (p,)."""

    kernel: Kernel
    function: Callable[[Any], Any]

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return self.kernel.pair(jnp.atleast_1d(self.function(x)), jnp.atleast_1d(self.function(z)))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        return self.kernel.cross(self._mapped(X), self._mapped(Z))

    def diagonal(self, X: jax.Array) -> jax.Array:
        return self.kernel.diagonal(self._mapped(X))

    def lengthscales(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return []  # what its columns are is known to g alone

    def change_lengths(self, columns: Sequence[int]) -> list[tuple[int, float]]:
        return []

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        return []

    def columns_asked(self) -> tuple[str | int, ...]:
        return ()

    def levels(self) -> list[Parameter] | None:
        return self.kernel.levels()

    def check_columns(self, columns: Sequence[Column]) -> None:
        self._check_numeric(columns)  # how many columns come out of g is known only when it runs

    def formula(self, digits: int | None = None) -> str:
        return f"map_inputs({self.kernel.formula(digits)}, {_name(self.function)})"

    def _mapped(self, X: jax.Array) -> jax.Array:
        return jax.vmap(lambda x: jnp.atleast_1d(self.function(x)))(X)


def map_inputs(kernel: Kernel, function: Callable[[Any], Any]) -> MapInputs:
    """The kernel k(g(x), g(z)); g is written in JAX and takes one point (d,)."""
    if not callable(function):
        raise ParameterError(f"map_inputs needs a function of one point, not {function!r}.")
    return MapInputs(_kernel(kernel, "map_inputs"), function)
