"""Sequential design: ask where to look next, tell what was seen there.

    design = gm.Design({"temperature": (20, 90), "rate": (1e-4, 1e-1, "log"), "stages": (1, 8, "int")})
    for _ in range(30):
        point = design.ask()
        design.tell(point, experiment(**point))
    print(design.best)

The first points are a Sobol sequence; then a Gaussian process of all that was told (a Matern-5/2 with a
lengthscale a column, in the unit cube) is searched for the point whose acquisition is largest: from many
points, and from the best of them by L-BFGS with its gradient. Several points at once, and such as are still
out, count as seen at the value that the model expects (the kriging believer), by an update of the model that
costs n^2.

Sources: Jones, Schonlau and Welch 1998; Ginsbourger, Le Riche and Carraro 2010 (several points at once).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from gramian.acquisition import LEAST_STD, Acquisition, Foreseen, Known, read_acquisition
from gramian.arrays import Array, is_whole
from gramian.errors import InputError, ParameterError
from gramian.estimators.regressor import GPRegressor
from gramian.estimators.resuming import generator

CANDIDATES, NEAR_BEST = 512, 64  # points that are looked at: everywhere, and around the best
STARTS = 4  # of them, from which a search by gradients goes on
DRAWS = 16  # of the least value
SPREAD = 0.05  # of the cube's side: how far points around the best lie from it
TOO_NEAR = 1e-6  # of the side: nothing new is seen there
KINDS = {"log": "on a logarithmic scale", "int": "whole numbers"}

Point = dict[str, Any]


class Scale(NamedTuple):
    """A variable as a number between 0 and 1, or as one number a choice."""

    name: str
    low: float = 0.0
    high: float = 1.0
    kind: str = ""
    choices: tuple[Any, ...] = ()

    @property
    def width(self) -> int:
        return len(self.choices) or 1

    @classmethod
    def read(cls, name: str, given: Any) -> Scale:
        """(low, high), (low, high, "log"), (low, high, "int"), or a list of choices."""
        if isinstance(given, list):
            if len(given) < 2:
                raise ParameterError(f"The variable {name!r} has {len(given)} choices. Give two or more.")
            return cls(name, choices=tuple(given))
        try:
            low, high, kind = (*given, "")[:3]
            low, high = float(low), float(high)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(
                f'The variable {name!r} is {given!r}. Give (low, high), (low, high, "log") or (low, high,'
                ' "int"), or a list of choices.'
            ) from None
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ParameterError(f"The variable {name!r} goes from {low:g} to {high:g}. Give low below high.")
        if kind not in ("", *KINDS):
            raise ParameterError(
                f"The variable {name!r} is of the kind {kind!r}. Use 'log' or 'int', or none."
            )
        if kind == "log" and low <= 0:
            raise ParameterError(
                f"The variable {name!r} begins at {low:g}: a logarithm needs numbers above 0."
            )
        return cls(name, low, high, kind)

    def inward(self, value: Any) -> Array:
        """A value as numbers of the cube."""
        if self.choices:
            if value not in self.choices:
                raise InputError(f"{self.name}={value!r} is none of {', '.join(map(repr, self.choices))}.")
            return np.array([float(value == choice) for choice in self.choices])
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{self.name}={value!r} is no number.") from None
        ends = np.array([self.low, number, self.high])
        if not (np.isfinite(number) and (self.kind != "log" or number > 0)):
            raise InputError(f"{self.name}={value!r} is outside of {self.low:g} to {self.high:g}.")
        low, u, high = np.log(ends) if self.kind == "log" else ends
        return np.array([(u - low) / (high - low)])

    def outward(self, u: Array) -> Any:
        """A value that can be tried, from numbers of the cube."""
        if self.choices:
            return self.choices[int(np.argmax(u))]
        if self.kind == "log":
            value = float(np.exp(np.log(self.low) + u[0] * (np.log(self.high) - np.log(self.low))))
        else:
            value = self.low + float(u[0]) * (self.high - self.low)
        value = min(max(value, self.low), self.high)
        return (
            int(min(max(round(value), np.ceil(self.low)), np.floor(self.high)))
            if self.kind == "int"
            else value
        )


@dataclass(eq=False, repr=False)
class Design:
    """Where to look next for the least (or, with `maximise`, the largest) value of a costly function.

    Parameters
    ----------
    space : dict of name -> (low, high), (low, high, "log"), (low, high, "int"), or a list of choices
    acquisition : "log_ei", "lower_bound", "entropy", "thompson", or an `Acquisition`
    maximise : bool
        Whether large values are good.
    initial : int, optional
        Points before the first model; by default 2 (d + 1), at most 20.
    model : GPRegressor, optional
        The model of what was told, in the unit cube; by default a Matern-5/2 with a lengthscale a column.
    random_state : as everywhere
    """

    space: Mapping[str, Any]
    acquisition: str | Acquisition = "log_ei"
    maximise: bool = False
    initial: int | None = None
    model: GPRegressor | None = None
    random_state: Any = None

    points: list[Point] = field(init=False, default_factory=list)  # as told
    values: list[float] = field(init=False, default_factory=list)  # nan: failed
    out: list[Point] = field(init=False, default_factory=list)  # asked, and not yet told

    def __post_init__(self) -> None:
        if not self.space:
            raise ParameterError("The space has no variable. Give a dict of names and limits.")
        self._scales = [Scale.read(name, given) for name, given in self.space.items()]
        self._acquisition = read_acquisition(self.acquisition)
        d = sum(scale.width for scale in self._scales)
        if self.initial is not None and not is_whole(self.initial):
            raise ParameterError(f"initial={self.initial!r} must be a whole number from 1 on, or None.")
        self._first = min(2 * (d + 1), 20) if self.initial is None else int(self.initial)
        self._rng = generator(self.random_state)
        self._sobol = qmc.Sobol(d, seed=self._rng)
        self._d = d

    def __repr__(self) -> str:
        return f"Design({len(self.points)} seen, {len(self.out)} out, best {self.best})"

    # Asking and telling. ------------------------------------------------------------------------------------

    def ask(self, count: int | None = None) -> Any:
        """The next point, a dict; with `count`, a list of so many, to be tried at the same time."""
        if count is not None and not is_whole(count):
            raise ParameterError(f"count={count!r} must be a whole number from 1 on, or None.")
        asked = [self._next() for _ in range(1 if count is None else int(count))]
        return asked if count is not None else asked[0]

    def tell(self, point: Any, value: Any) -> Design:
        """What was seen at a point, or at several; None or NaN where the trial failed. Points need not have
        been asked for."""
        if isinstance(point, Mapping):
            point, value = [point], [value]
        point, value = list(point), list(np.ravel(np.asarray(value, dtype=object)))
        if len(point) != len(value):
            raise InputError(f"{len(point)} points were told, but {len(value)} values. Give one each.")
        seen = []
        for one, y in zip(point, value, strict=True):
            self._inward(one)  # or it is refused
            try:
                seen.append((dict(one), float("nan") if y is None else float(y)))
            except (TypeError, ValueError, OverflowError):
                raise InputError(f"The value {y!r} is no number. Tell None of a trial that failed.") from None
            if np.isinf(seen[-1][1]):
                raise InputError("The value is infinite. Tell None of a trial that failed.")
        for one, y in seen:
            if one in self.out:
                self.out.remove(one)
            self.points.append(one)
            self.values.append(y)
        return self

    def run(self, function: Callable[..., float], count: int) -> Design:
        """Asks, tries and tells so many times: `function(**point)`."""
        for _ in range(count):
            point = self.ask()
            self.tell(point, function(**point))
        return self

    @property
    def best(self) -> tuple[Point, float] | None:
        """The best point with its value; None where nothing was seen."""
        values = np.array(self.values, dtype=float)
        if not np.any(np.isfinite(values)):
            return None
        at = int(np.nanargmax(values) if self.maximise else np.nanargmin(values))
        return self.points[at], self.values[at]

    # The model, and its search. -----------------------------------------------------------------------------

    def fitted(self) -> GPRegressor:
        """The model of what was told: in the unit cube, of values of which small ones are good. A trial that
        failed counts as the worst value."""
        y = np.array(self.values, dtype=float) * (-1.0 if self.maximise else 1.0)
        if not np.any(np.isfinite(y)):
            raise InputError("Nothing was told yet, or all trials failed.")
        y = np.where(np.isfinite(y), y, np.nanmax(y))
        model = self.model
        if model is None:
            model = GPRegressor("matern52", warp=None, hyper="map", random_state=0, verbose=False)
        return copy.copy(model).fit(self._cube(self.points), y)

    def _next(self) -> Point:
        seen = len(self.points) + len(self.out)
        if seen < self._first or not np.any(np.isfinite(self.values)):
            point = self._outward(self._sobol.random(1)[0])
        else:
            point = self._outward(self._promising(self._believing(), self._acquisition))
        self.out.append(point)
        return point

    def _believing(self) -> GPRegressor:
        """The model, of points that are out as well: at what it expects of them."""
        gp = self.fitted()
        if self.out:
            X = self._cube(self.out)
            gp.update(X, gp.predict(X))
        return gp

    def _promising(self, gp: GPRegressor, acquisition: Acquisition) -> Array:
        """The point of the cube at which the acquisition is largest."""
        rng, X = self._rng, np.asarray(gp.fitted_.rows.X)
        y = gp.fitted_.rows.Y[:, 0]
        spots = np.vstack([self._sobol.random(CANDIDATES), self._around(X[np.argmin(y)])])
        spots = self._tried(spots)
        far = np.min(np.max(np.abs(spots[:, None] - X), axis=2), axis=1) > TOO_NEAR
        spots = spots[far] if np.any(far) else spots
        if acquisition.draws:
            draw = gp.sample(spots, 1, target="f", random_state=int(rng.integers(2**31)))
            return np.asarray(spots[int(np.argmin(draw.reshape(len(spots))))])
        # what was seen has noise: the best is what the model says of it
        known = Known(float(np.min(gp.predict(X))), self._least(gp, spots))
        least = LEAST_STD * float(np.std(y) or 1.0)

        def height(X: Array) -> tuple[Array, Array]:
            mean, var, by_mean, by_var = (part[..., 0] for part in gp.posterior_.slopes(X))
            std = np.sqrt(np.maximum(var, least**2))
            value, of_mean, of_std = acquisition.at(Foreseen(mean, std), known)
            return value, of_mean[:, None] * by_mean + (of_std / (2 * std))[:, None] * by_var

        mean, std = gp.predict(spots, return_std=True, target="f")
        values = acquisition.at(Foreseen(mean, np.maximum(std, least)), known).value
        best = np.argsort(-values, kind="stable")[:STARTS]
        found, top = spots[best[0]], float(values[best[0]])
        for start in spots[best]:
            climb = minimize(
                lambda x: tuple(-part[0] for part in height(x[None])),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * self._d,
                options={"maxiter": 50},
            )
            end = self._tried(climb.x[None])
            value = float(height(end)[0][0])
            if value > top and np.min(np.max(np.abs(end - X), axis=1)) > TOO_NEAR:
                found, top = end[0], value
        return np.asarray(found)

    def _least(self, gp: GPRegressor, spots: Array) -> Array:
        """Draws of the least value of f: of joint draws at points."""
        some = spots[:: max(1, len(spots) // 256)]
        draws = gp.sample(some, DRAWS, target="f", random_state=int(self._rng.integers(2**31)))
        return np.min(np.asarray(draws).reshape(len(some), DRAWS), axis=0)

    def _around(self, x: Array) -> Array:
        return np.clip(x + SPREAD * self._rng.standard_normal((NEAR_BEST, self._d)), 0.0, 1.0)

    # The cube. ----------------------------------------------------------------------------------------------

    def _inward(self, point: Mapping[str, Any]) -> Array:
        names = [scale.name for scale in self._scales]
        if not isinstance(point, Mapping) or set(point) != set(names):
            raise InputError(f"A point has the variables {', '.join(names)}, not {point!r}.")
        return np.concatenate([scale.inward(point[scale.name]) for scale in self._scales])

    def _cube(self, points: Sequence[Mapping[str, Any]]) -> Array:
        return np.stack([self._inward(point) for point in points])

    def _outward(self, u: Array) -> Point:
        point, at = {}, 0
        for scale in self._scales:
            point[scale.name] = scale.outward(u[at : at + scale.width])
            at += scale.width
        return point

    def _tried(self, U: Array) -> Array:
        """Points of the cube that can be tried: whole numbers and choices are what they become."""
        if all(not scale.choices and scale.kind != "int" for scale in self._scales):
            return U
        return np.stack([self._inward(self._outward(u)) for u in U])
