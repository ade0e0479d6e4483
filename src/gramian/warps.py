r"""Warped targets: a monotone map of y, after which Gaussian noise around a Gaussian process is a good model.

    t = w(y),    t = f(x) + e,    log p(y) = log N(w(y); m, K + D) + sum_i log w'(y_i)

The parameters of w are found with all others, by the evidence of y itself: the slopes w' count. Quantiles and
draws of y are those of t, sent back; its mean is an integral over one Gaussian. w is measured in units of the
data, so that at its default values it is the identity, whatever the units of y.

    Log           w(y) = loc + unit (log y - centre) / width           for y above 0, which stays above 0
    SinhArcsinh   w(y) = loc + unit sinh(tail asinh(u) - skew),   u = ((y - loc) / unit - shift) / width

`skew` bends to one side; a `tail` below 1 pulls far values in (towards a logarithm, with a small `width`),
above 1 it pushes them out. Sources: Snelson, Rasmussen and Ghahramani 2004 (the model); Jones and Pewsey 2009
(the map); Rios and Tobar 2019 (both together, with the inverse in closed form).
"""

from __future__ import annotations

import dataclasses
import sys
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from gramian.arrays import Array
from gramian.errors import InputError
from gramian.params import LogNormal, Normal, Tree, Value, param, positive, real

FAR = 1e100  # whose square is a number still
REACH = 3.0  # times as far from the average as any y, up to which y counts in means


class Warp(Tree):
    """Parent of warps: increasing, smooth, with an inverse. Y is (n, outputs); NaN stays NaN."""

    multiplies: ClassVar[bool] = False  # whether summands of w(y) are factors of y

    @abstractmethod
    def forward(self, Y: Array) -> Array:
        """t = w(y)."""

    @abstractmethod
    def inverse(self, T: Array) -> Array:
        """y of t, for T of any shape (..., outputs)."""

    @abstractmethod
    def log_slope(self, Y: Array) -> Array:
        """log w'(y)."""

    @abstractmethod
    def pull(self, Y: Array, W: Array) -> list[Array]:
        """The gradient of sum W w(Y) + sum log w'(Y), one array a parameter. What is NaN counts nothing."""

    @abstractmethod
    def output(self, k: int) -> Warp:
        """That of one output alone."""

    def adapted(self, Y: Array) -> Self:
        """The same for these targets, (n, outputs)."""
        return self

    def counted(self) -> tuple[Array, Array]:
        """The ends between which y counts in means and standard deviations, (outputs,) or (1,) each: what a
        Gaussian t reaches far out is sent to anywhere."""
        return np.array([-np.inf]), np.array([np.inf])

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={p.text(4)}" for name, p in self.parameters().items())
        return f"{type(self).__name__}({values})"


class SinhArcsinh(Warp):
    """w(y) = loc + unit sinh(tail asinh(u) - skew), u = ((y - loc) / unit - shift) / width. Fitting sets
    `loc` and `unit` to the average and the standard deviation of y, `reach` to REACH times the farthest y.
    Where the data do not tell the four numbers (a logarithm is the limit of many), weak priors around the
    identity do."""

    skew: Value = real(param(0.0, prior=Normal(0.0, 1.0)))
    tail: Value = positive(param(1.0, prior=LogNormal(0.0, 0.5)))
    shift: Value = real(param(0.0, prior=Normal(0.0, 2.0)))
    width: Value = positive(param(1.0, prior=LogNormal(0.0, 1.0)))
    loc: tuple[float, ...] = (0.0,)
    unit: tuple[float, ...] = (1.0,)
    reach: tuple[float, ...] = (1e9,)  # in units: how far from loc y counts in means

    def forward(self, Y: Array) -> Array:
        loc, unit = np.array(self.loc), np.array(self.unit)
        with np.errstate(over="ignore"):  # what overflows is refused where it arrives
            return np.asarray(loc + unit * np.sinh(self._inner(Y)[1]))

    def inverse(self, T: Array) -> Array:
        loc, unit = np.array(self.loc), np.array(self.unit)
        skew, tail, shift, width = self._numbers()
        with np.errstate(over="ignore"):
            u = np.sinh((np.arcsinh((T - loc) / unit) + skew) / tail)
            return np.asarray(loc + unit * (shift + width * u))

    def log_slope(self, Y: Array) -> Array:
        u, inner = self._inner(Y)
        _, tail, _, width = self._numbers()
        # log cosh, without the overflow of cosh
        steep = np.abs(inner) + np.log1p(np.exp(-2 * np.abs(inner))) - np.log(2)
        with np.errstate(over="ignore", invalid="ignore"):
            root = np.where(np.abs(u) < FAR, 0.5 * np.log1p(u * u), np.log(np.maximum(np.abs(u), FAR)))
            found = steep - root + np.log(tail / width)
        # at the end of all numbers the density of w(y), which is 0, decides
        return np.where(np.isinf(u), 0.0, found)

    def pull(self, Y: Array, W: Array) -> list[Array]:
        values = self._numbers()
        _, tail, _, width = values
        (u, inner), unit = self._inner(Y), np.array(self.unit)
        root, bend = np.sqrt(1 + u * u), np.tanh(inner)
        with np.errstate(over="ignore", invalid="ignore"):
            by_inner = W * unit * np.cosh(inner) + bend
        by_u = by_inner * tail / root - u / root**2
        gradients = (-by_inner, by_inner * np.arcsinh(u) + 1 / tail, -by_u / width, -(by_u * u + 1) / width)
        there = np.isfinite(Y)
        sums = [np.where(there, part, 0.0).sum(axis=0) for part in gradients]
        return [
            total if value.ndim else total.sum().reshape(())
            for total, value in zip(sums, values, strict=True)
        ]

    def output(self, k: int) -> SinhArcsinh:
        skew, tail, shift, width = (value[k] if value.ndim else value for value in self._numbers())
        units = {name: getattr(self, name) for name in ("loc", "unit", "reach")}
        own = {name: (values[k],) if len(values) > 1 else values for name, values in units.items()}
        return SinhArcsinh(skew=skew, tail=tail, shift=shift, width=width, **own)

    def adapted(self, Y: Array) -> Self:
        loc, unit = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        reach = REACH * np.nanmax(np.abs(Y - loc) / unit, axis=0)
        numbers = {"loc": loc, "unit": unit, "reach": reach}
        return dataclasses.replace(self, **{name: tuple(map(float, v)) for name, v in numbers.items()})

    def counted(self) -> tuple[Array, Array]:
        loc, half = np.array(self.loc), np.array(self.unit) * np.array(self.reach)
        return loc - half, loc + half

    def _numbers(self) -> list[Array]:
        bare = self.bare()
        return [np.asarray(value) for value in (bare.skew, bare.tail, bare.shift, bare.width)]

    def _inner(self, Y: Array) -> tuple[Array, Array]:
        """u, and tail asinh(u) - skew."""
        skew, tail, shift, width = self._numbers()
        with np.errstate(over="ignore", invalid="ignore"):  # as above
            u = ((Y - np.array(self.loc)) / np.array(self.unit) - shift) / width
            return u, tail * np.arcsinh(u) - skew


class Log(Warp):
    """w(y) = loc + unit (log y - centre) / width: what changes by shares, and stays above 0. It has no
    parameters. Fitting sets `loc` and `unit` to the average and the standard deviation of y, `centre` and
    `width` to those of log y, so that w(y) has the units of y, and `reach` to REACH times the largest y."""

    multiplies = True

    loc: tuple[float, ...] = (0.0,)
    unit: tuple[float, ...] = (1.0,)
    centre: tuple[float, ...] = (0.0,)
    width: tuple[float, ...] = (1.0,)
    reach: tuple[float, ...] = (sys.float_info.max,)  # how large y counts in means; a file holds no infinity

    def forward(self, Y: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # below 0 there is nothing
            return self._array("loc") + self._array("unit") * (
                (np.log(np.where(Y <= 0, 0.0, Y)) - self._array("centre")) / self._array("width")
            )

    def inverse(self, T: Array) -> Array:
        with np.errstate(over="ignore"):
            u = (T - self._array("loc")) / self._array("unit")
            return np.exp(self._array("centre") + self._array("width") * u)

    def log_slope(self, Y: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self._array("unit") / self._array("width")) - np.log(Y)

    def pull(self, Y: Array, W: Array) -> list[Array]:
        return []

    def output(self, k: int) -> Log:
        numbers = {name: getattr(self, name) for name in ("loc", "unit", "centre", "width", "reach")}
        return Log(**{name: (values[k],) if len(values) > 1 else values for name, values in numbers.items()})

    def adapted(self, Y: Array) -> Self:
        if np.any(Y <= 0):
            least = float(np.nanmin(Y))
            raise InputError(f"Log is a warp of targets above 0, but y has {least:g}. Use SinhArcsinh().")
        loc, centre = np.nanmean(Y, axis=0), np.nanmean(np.log(Y), axis=0)
        unit, width = np.nanstd(Y, axis=0), np.nanstd(np.log(Y), axis=0)
        spread = (unit > 0) & (width > 0)
        unit, width = np.where(spread, unit, 1.0), np.where(spread, width, 1.0)
        numbers = {"loc": loc, "unit": unit, "centre": centre, "width": width}
        numbers["reach"] = REACH * np.nanmax(Y, axis=0)
        return dataclasses.replace(self, **{name: tuple(map(float, v)) for name, v in numbers.items()})

    def counted(self) -> tuple[Array, Array]:
        return np.zeros(1), self._array("reach")

    def _array(self, name: str) -> Array:
        return np.array(getattr(self, name))
