"""Mean functions: what f is expected to be before any data, in the units of y.

    m(x) = 0,   m(x) = value,   m(x) = value + slope'(x - centre)

A user's own mean is a subclass of Mean with its parameters and `at(x)`, in JAX. With several outputs a
parameter has one entry an output.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.params import Affine, Parameter, Tree, Value, real


class HostBlock(NamedTuple):
    """m for each row, (n,) or (n, outputs), and sum_i w_i dm(x_i)/dtheta, one array a parameter."""

    values: Array
    pull: Callable[[Array], list[Array]]


class Mean(Tree):
    """Parent of mean functions."""

    @abstractmethod
    def at(self, x: jax.Array) -> jax.Array:
        """m(x) for one point (d,): a scalar, or one number an output."""

    def block(self, X: jax.Array) -> jax.Array:
        """m for each row: (n, d) -> (n,) or (n, outputs)."""
        return jax.vmap(self.at)(X)

    def slopes(self, X: jax.Array) -> jax.Array:
        """dm/dx for each row: (n, d) -> (n, d) or (n, outputs, d)."""
        return jax.vmap(jax.jacfwd(self.at))(X)

    def on_host(self, X: Array) -> HostBlock | None:
        """Of a bare mean: m for each row in NumPy, and its pullback; None where there is no such form."""
        return None

    def adapted(self, X: Array, loc: Array, scale: Array) -> Self:
        """The same mean, for an optimiser in the units of the data: outputs around `loc` with spread `scale`
        (scalars, or one an output)."""
        return self

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        """The parameters that have an entry for each of these columns, or of some of them, with those."""
        return []

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={p.text(4)}" for name, p in self.parameters().items())
        return f"{type(self).__name__}({values})"


class ZeroMean(Mean):
    """m(x) = 0; when y is normalised, the average of y."""

    def at(self, x: jax.Array) -> jax.Array:
        return jnp.zeros((), x.dtype)

    def on_host(self, X: Array) -> HostBlock | None:
        return HostBlock(np.zeros(len(X)), lambda w: []) if type(self) is ZeroMean else None


class ConstantMean(Mean):
    """m(x) = value."""

    value: Value = real(0.0)

    def at(self, x: jax.Array) -> jax.Array:
        return self.value + 0.0 * x[0]

    def on_host(self, X: Array) -> HostBlock | None:
        if type(self) is not ConstantMean:
            return None  # a subclass has another formula
        value = np.asarray(self.value)
        return HostBlock(np.full((len(X), *value.shape), value), lambda w: [w.sum(axis=0)])

    def adapted(self, X: Array, loc: Array, scale: Array) -> Self:
        return dataclasses.replace(self)._with(value=_spread(self.value, "value", loc, scale))

    def _with(self, **parameters: Parameter) -> Self:
        # on a fresh copy: a support other than the declared one is set past the declaration's check
        for name, parameter in parameters.items():
            object.__setattr__(self, name, parameter)
        return self


class LinearMean(ConstantMean):
    """m(x) = value + slope'(x - centre). Fitting sets `centre` to the average of X, so that value and slope
    do not compensate each other."""

    slope: Value = real(0.0)  # (), (d,) or (d, outputs)
    centre: tuple[float, ...] = ()  # one number a column that has a slope
    columns: tuple[int, ...] = ()  # the columns that have a slope; none named: all

    def at(self, x: jax.Array) -> jax.Array:
        x = x[jnp.array(self.columns)] if self.columns else x
        shift = x - jnp.asarray(self.centre, x.dtype) if self.centre else x
        return self.value + (jnp.sum(shift) * self.slope if jnp.ndim(self.slope) == 0 else shift @ self.slope)

    @np.errstate(all="ignore")  # as in compiled programs: what overflows is refused where it arrives
    def on_host(self, X: Array) -> HostBlock | None:
        if type(self) is not LinearMean:
            return None
        value, slope = np.asarray(self.value), np.asarray(self.slope)
        X = X[:, list(self.columns)] if self.columns else X
        shift = X - np.asarray(self.centre) if self.centre else X
        # one slope for all columns is a slope of their sum
        if slope.ndim == 0:
            line = shift.sum(axis=1, keepdims=True) * slope
        else:
            line = shift @ slope.reshape(len(slope), -1)
        outputs = max(value.size, line.shape[1])
        single = value.ndim == 0 and slope.ndim < 2

        def pull(w: Array) -> list[Array]:
            w = w.reshape(len(X), outputs)
            by_slope = shift.T @ w  # (d, outputs)
            return [_summed(w.sum(axis=0), value.shape), _summed(by_slope, slope.shape)]

        values = value + line
        return HostBlock(values[:, 0] if single else values, pull)

    def by_column(self, columns: Sequence[int]) -> list[tuple[Parameter, tuple[int, ...]]]:
        own = tuple(columns[j] for j in self.columns) if self.columns else tuple(columns)
        return [(self.slope, own)] if self.slope.value.shape[:1] == (len(own),) else []

    def adapted(self, X: Array, loc: Array, scale: Array) -> Self:
        X = X[:, list(self.columns)] if self.columns else X
        size = np.max(np.abs(X), axis=0)
        # scaled first: squares of 1e200 would overflow
        spread = np.std(X / np.where(size > 0, size, 1.0), axis=0) * size
        width = np.where(spread > 0, spread, 1.0).reshape((-1,) + (1,) * np.ndim(scale))
        per_column = np.asarray(scale)[None, ...] / width
        new = dataclasses.replace(self, centre=self.centre or tuple(map(float, np.mean(X, axis=0))))
        return new._with(
            value=_spread(self.value, "value", loc, scale),
            slope=_spread(self.slope, "slope", np.zeros_like(per_column), per_column),
        )


class OneOutput(Mean):
    """One output of a mean of several."""

    mean: Mean
    output: int = 0

    def at(self, x: jax.Array) -> jax.Array:
        values = self.mean.at(x)
        return values if jnp.ndim(values) == 0 else values[self.output]


def _summed(gradient: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of what was spread over outputs, and over columns."""
    if gradient.shape == shape:
        return gradient
    return gradient.sum(axis=-1) if len(shape) == 1 and gradient.ndim == 2 else gradient.sum().reshape(shape)


def _spread(parameter: Parameter, name: str, loc: Array, scale: Array) -> Parameter:
    """One number for each of `loc`, around it and in units of `scale`."""
    shape = np.shape(loc)
    try:
        value = np.broadcast_to(parameter.value, shape).copy()
    except ValueError:
        several = f"one number, or an array of shape {shape}: one a column, or one an output"
        raise ParameterError(
            f"mean.{name} has shape {parameter.value.shape}, but these data take"
            f" {several if shape else 'one number'}."
        ) from None
    return dataclasses.replace(parameter, value=value, support=Affine(_nested(loc), _nested(scale)))


def _nested(value: Array) -> Any:
    """As a hashable value: a float or nested tuples."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else tuple(_nested(v) for v in array)
