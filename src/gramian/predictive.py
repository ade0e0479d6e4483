r"""What is foretold of y at some rows: a distribution for each.

    Normals        N(mean, std^2), in closed form
    NoisyNormals   sum_k w_k N(mean, var + v_k): noise whose variance is not known, such as Student's t
    Blend          sum_k w_k p_k of any such distributions: sampled parameters, or several models

What a likelihood makes of f, without a closed form, is `estimators.predictions.UnderLikelihood`; what becomes
of Gaussians by a warp of y and by calibration is in `corrections`. A kind of your own needs `found`, `below`,
`log_density`, `sample` and `at`; quantiles and intervals follow from these.

A quantile is where the cumulative probability reaches its level. Between two ends that enclose it, it is
found by Chandrupatla's method (1997, as SciPy has it), some ten evaluations of the probability for all rows
together; of whole numbers, by halving. The ends: a quantile of a mixture lies between those of its parts, and
the p-quantile of any distribution between mean - std sqrt((1 - p) / p) and mean + std sqrt(p / (1 - p))
(Cantelli's inequality).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import elementwise
from scipy.special import logsumexp, ndtr, ndtri

from gramian.arrays import Array, is_number, real_numbers
from gramian.errors import InputError, ParameterError

Entries = NDArray[np.intp]

TINIEST = float(np.finfo(np.float64).tiny)
BLOCK = 1024  # rows whose quantiles are sought together
_WIDENINGS = 200  # of an interval that does not hold its quantile: 1e60 times its width
_NODES, _SUMMED = 48, 1000  # of integrals for scores; whole numbers that are summed over instead
_EXACT = 1e-13  # of the width of that interval
_HALVINGS = 100  # of what encloses a quantile, at most
_ROOT_2PI = float(np.sqrt(2 * np.pi))


class Predictive(ABC):
    """The distribution of y at n rows. mean and std are (n,), or (n, q) where a row has q outputs."""

    discrete: bool = False  # whether y is a whole number from 0 on
    costly: bool = False  # whether a probability takes much work
    gaussian: bool = False  # whether it is N(mean, std^2)

    @abstractmethod
    def found(self) -> tuple[Array, Array]:
        """mean and std, which are asked for once."""

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """mean and std."""
        return self.found()

    @property
    def mean(self) -> Array:
        """E y."""
        return self.moments[0]

    @property
    def std(self) -> Array:
        """The standard deviation of y; infinite where y has none."""
        return self.moments[1]

    @abstractmethod
    def below(self, y: Array, entries: Entries) -> Array:
        """P(Y <= y), (m,), for values y (m,) at these entries of `mean`, counted row by row."""

    @abstractmethod
    def log_density(self, y: ArrayLike) -> Array:
        """log p(y), (n,), for y of the shape of `mean`; the outputs of a row are added up."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws, (n, count) or (n, q, count), each row for itself; the estimator's `sample` is joint."""

    @abstractmethod
    def at(self, rows: slice | Entries) -> Predictive:
        """The same at some of the rows."""

    def __len__(self) -> int:
        return len(self.mean)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.mean.shape))
        return f"{type(self).__name__}({shape}): mean, std, quantile, interval, cdf, log_density, sample"

    def cdf(self, y: ArrayLike) -> Array:
        """P(Y <= y) in the shape of `mean`; y has that shape, or is one number for all."""
        values = self.checked(y)
        return self.below(values.ravel(), np.arange(values.size)).reshape(values.shape)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The ends between which y lies with this probability, and beyond either with half of the rest."""
        lower, upper = np.moveaxis(self.quantile(_ends(level)), 1, 0)
        return lower, upper

    def quantile(self, levels: ArrayLike) -> Array:
        """The smallest y with P(Y <= y) >= level, for each level: (n, levels), or (n, levels, q)."""
        p, shape = checked_levels(levels), self.mean.shape
        found = np.empty((shape[0], len(p), *shape[1:]))
        for start in range(0, shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            some = self.at(rows)
            size, each = some.mean.size, some.mean.shape
            solved = some.solved(np.repeat(p, size), np.tile(np.arange(size), len(p)))
            found[rows] = np.moveaxis(solved.reshape(len(p), *each), 0, 1)
        return found

    def output(self, k: int) -> Predictive:
        """The same of one output, (n,)."""
        return self

    def crps(self, y: ArrayLike) -> Array:
        """The continuous ranked probability score, int (F(z) - [y <= z])^2 dz, in the shape of `mean` and the
        units of y: F is integrated between its quantiles of 1e-5, by a Gauss rule on either side of y; of
        few whole numbers it is a sum."""
        values = self.checked(y).ravel()
        scores = np.empty(len(values))
        for start in range(0, len(values), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(values)))
            scores[rows] = self._ranked(values[rows], rows)
        return scores.reshape(self.mean.shape)

    def _ranked(self, y: Array, entries: Entries) -> Array:
        low, high = (self.solved(np.full(len(y), p), entries) for p in (1e-5, 1 - 1e-5))
        steps = int(np.max(np.maximum(high, y))) + 1 if self.discrete else 0
        if 0 < steps <= _SUMMED:
            z = np.arange(float(steps))
            F = self.below(np.tile(z, len(y)), np.repeat(entries, steps)).reshape(-1, steps)
            return np.sum((F - (y[:, None] <= z)) ** 2, axis=1)
        middle = np.clip(y, low, high)
        outside = np.abs(y - middle)  # where F is 0 or 1 to 1e-5, and the score grows with the distance
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        total = outside
        for left, right, above in ((low, middle, False), (middle, high, True)):
            z = left[:, None] + (right - left)[:, None] * (nodes + 1) / 2
            F = self.below(z.ravel(), np.repeat(entries, len(nodes))).reshape(z.shape)
            total = total + (right - left) / 2 * ((1 - F if above else F) ** 2 @ weights)
        return total

    def scipy(self) -> Any:
        """SciPy's frozen distribution, where it has this one."""
        raise ParameterError(f"SciPy has no distribution like this {type(self).__name__}; it answers itself.")

    def mapped(self, change: Callable[[Normals], Predictive]) -> Predictive:
        """With each Gaussian that it consists of changed."""
        raise ParameterError(f"Warps and calibrations are of Gaussians, not of a {type(self).__name__}.")

    def solved(self, level: Array, entries: Entries) -> Array:
        """The quantiles of these levels, (m,), at these entries."""
        low, high = self.ends(level, entries)
        search = self._whole if self.discrete else self._root
        return search(level, entries, low, high)

    def ends(self, level: Array, entries: Entries) -> tuple[Array, Array]:
        """Numbers that enclose the quantiles of these levels, (m,) each, but for rounding."""
        mean, std = (values.ravel()[entries] for values in self.moments)
        level = np.clip(level, 1e-300, None)  # whose inverse is a number
        known = np.isfinite(mean) & np.isfinite(std)
        mean, std = np.where(known, mean, 0.0), np.where(known, std, 1.0)
        return mean - std * np.sqrt((1 - level) / level), mean + std * np.sqrt(level / (1 - level))

    def _root(self, level: Array, entries: Entries, low: Array, high: Array) -> Array:
        tiny = np.finfo(np.float64).eps * (np.abs(low) + np.abs(high)) + 1e-300
        low, high = low - tiny, high + tiny
        low = self._widened(level, entries, low, low - high, above=False)
        high = self._widened(level, entries, high, high - low, above=True)
        width = high - low

        def excess(t: Array, k: Entries) -> Array:
            return self.below(low[k] + t * width[k], entries[k]) - level[k]

        here = np.arange(len(entries))
        tolerances = {"xatol": _EXACT, "xrtol": 4 * np.finfo(np.float64).eps, "fatol": 1e-12, "frtol": 0.0}
        t = elementwise.find_root(
            excess, (np.zeros(len(here)), np.ones(len(here))), args=(here,), tolerances=tolerances
        ).x
        return low + t * width

    def _widened(self, level: Array, entries: Entries, end: Array, step: Array, above: bool) -> Array:
        """`end`, moved by ever longer steps until it is beyond the quantile."""
        end, step = end.copy(), step.copy()
        wrong = np.arange(len(end))
        for _ in range(_WIDENINGS):
            short = self.below(end[wrong], entries[wrong]) < level[wrong]
            wrong = wrong[short if above else ~short]
            if not len(wrong):
                break
            end[wrong] += step[wrong]
            step[wrong] *= 2
        return end

    def _whole(self, level: Array, entries: Entries, low: Array, high: Array) -> Array:
        """The smallest whole number from 0 on that reaches the level: by halving, after an end above it."""
        high = np.maximum(np.ceil(high), 0.0)
        high = np.ceil(self._widened(level, entries, high, np.maximum(high - low, 1.0), above=True))
        low = np.full(len(level), -1.0)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            reached = (self.below(middle, entries) >= level) & (middle > low)
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def checked(self, y: ArrayLike) -> Array:
        """y in the shape of `mean`."""
        values, shape = real_numbers(y), self.mean.shape
        if values is None:
            raise InputError(f"y has {y!r}, but predictions are compared with numbers: one each.")
        if values.shape not in ((), shape):
            raise InputError(f"y has shape {values.shape}, but predictions have {shape}: one number each.")
        return np.broadcast_to(values, shape)


class Normals(Predictive):
    """N(mean, std^2)."""

    gaussian = True

    def __init__(self, mean: Array, std: Array) -> None:
        self._known = mean, std

    def found(self) -> tuple[Array, Array]:
        return self._known

    def below(self, y: Array, entries: Entries) -> Array:
        return ndtr(standardised(y, self.mean.ravel()[entries], self.std.ravel()[entries]))

    def quantile(self, levels: ArrayLike) -> Array:
        z = ndtri(checked_levels(levels)).reshape(-1, *[1] * (self.mean.ndim - 1))
        return self.mean[:, None] + self.std[:, None] * z

    def scipy(self) -> Any:
        from scipy.stats import norm  # which takes long to import

        return norm(self.mean, self.std)

    def log_density(self, y: ArrayLike) -> Array:
        scores = log_normal(self.checked(y), self.mean, self.std**2)
        return scores if scores.ndim == 1 else np.sum(scores, axis=1)

    def output(self, k: int) -> Normals:
        return self if self.mean.ndim == 1 else Normals(self.mean[:, k], self.std[:, k])

    def crps(self, y: ArrayLike) -> Array:
        # Gneiting and Raftery 2007, equation 21
        z = standardised(self.checked(y), self.mean, self.std)
        with np.errstate(over="ignore"):  # far away it is 0
            density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        shape = 2 * density - 1 / np.sqrt(np.pi)
        return (self.checked(y) - self.mean) * (2 * ndtr(z) - 1) + self.std * shape

    def mapped(self, change: Callable[[Normals], Predictive]) -> Predictive:
        return change(self)

    def solved(self, level: Array, entries: Entries) -> Array:
        return self.mean.ravel()[entries] + self.std.ravel()[entries] * ndtri(level)

    def ends(self, level: Array, entries: Entries) -> tuple[Array, Array]:
        return (self.solved(level, entries),) * 2

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        z = rng.standard_normal((*self.mean.shape, count))
        return self.mean[..., None] + self.std[..., None] * z

    def at(self, rows: slice | Entries) -> Normals:
        return Normals(self.mean[rows], self.std[rows])


@dataclass(frozen=True, eq=False, repr=False)
class NoisyNormals(Predictive):
    """sum_k w_k N(mean, var + v_k) at each row: noise of one of K variances."""

    location: Array  # (n,)
    var: Array  # (n,)
    noise: Array  # v: (K,), or (n, K)
    weights: Array  # w: (K,), adding up to 1
    spread: Array | None = None  # the standard deviation of y, (n,), where it is known in closed form

    def found(self) -> tuple[Array, Array]:
        if self.spread is not None:
            return self.location, self.spread
        return self.location, np.sqrt(self.var + self.noise @ self.weights)

    def below(self, y: Array, entries: Entries) -> Array:
        return (
            ndtr(standardised(y[:, None], self.location[entries, None], self._stds(entries))) @ self.weights
        )

    def ends(self, level: Array, entries: Entries) -> tuple[Array, Array]:
        # Half of what lies beyond the quantile is left to the widest parts, and half to the tails of all
        # others: P(Y - mean > y) < tail + P(Z > y / the widest of the others).
        tail = np.minimum(level, 1 - level) / 2
        order = np.argsort(self.noise if self.noise.ndim == 1 else self.noise[0])
        last = np.searchsorted(np.cumsum(self.weights[order]), 1 - tail)
        widest = order[np.minimum(last, len(order) - 1)]
        noise = self.noise[widest] if self.noise.ndim == 1 else self.noise[entries, widest]
        reach = -ndtri(tail) * np.sqrt(self.var[entries] + noise)
        return self.location[entries] - reach, self.location[entries] + reach

    def log_density(self, y: ArrayLike) -> Array:
        var = self.var[:, None] + self.noise
        scores = log_normal(self.checked(y)[:, None], self.location[:, None], var)
        return logsumexp(scores, b=self.weights, axis=1)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        n = len(self.location)
        noise = np.broadcast_to(self.noise, (n, len(self.weights)))
        drawn = np.take_along_axis(noise, rng.choice(len(self.weights), (n, count), p=self.weights), axis=1)
        return self.location[:, None] + np.sqrt(self.var[:, None] + drawn) * rng.standard_normal((n, count))

    def at(self, rows: slice | Entries) -> NoisyNormals:
        noise = self.noise if self.noise.ndim == 1 else self.noise[rows]
        spread = None if self.spread is None else self.spread[rows]
        return NoisyNormals(self.location[rows], self.var[rows], noise, self.weights, spread)

    def _stds(self, entries: Entries) -> Array:
        noise = self.noise if self.noise.ndim == 1 else self.noise[entries]
        return np.sqrt(self.var[entries, None] + noise)


class Blend(Predictive):
    """sum_k w_k p_k of distributions at the same rows. weights: one a part, or (parts, n) where rows differ;
    None: all the same."""

    def __init__(self, parts: Sequence[Predictive], weights: ArrayLike | None = None) -> None:
        self.parts = tuple(parts)
        given = real_numbers(np.ones(len(self.parts)) if weights is None else weights)
        shapes = [(len(self.parts),), (len(self.parts), len(self.parts[0]))] if self.parts else []
        if (
            given is None
            or given.shape not in shapes
            or np.any(given < 0)
            or not np.all(np.sum(given, axis=0) > 0)
        ):
            rule = "one number from 0 on for each part, or for each part and row, not all of them 0"
            raise ParameterError(f"weights of {len(self.parts)} distributions are {rule}, not {weights!r}.")
        self.weights = given / np.sum(given, axis=0)
        self.discrete = self.parts[0].discrete
        self.costly = any(part.costly for part in self.parts)

    def found(self) -> tuple[Array, Array]:
        means, stds = (
            np.stack(values) for values in zip(*(part.moments for part in self.parts), strict=True)
        )
        mean = self._averaged(means)
        return mean, np.sqrt(self._averaged(stds**2 + (means - mean) ** 2))

    def below(self, y: Array, entries: Entries) -> Array:
        found = np.stack([part.below(y, entries) for part in self.parts])
        return np.sum(self._weights_at(entries) * found, axis=0)

    def solved(self, level: Array, entries: Entries) -> Array:
        """Of Gaussians by Newton's method, halving where it leaves what encloses the quantile: an interval of
        one row, of 16 parts, takes 0.3 ms."""
        if not all(part.gaussian for part in self.parts):
            return super().solved(level, entries)
        means, stds = (
            np.stack([values.ravel()[entries] for values in each])
            for each in zip(*(part.moments for part in self.parts), strict=True)
        )
        stds = np.maximum(stds, np.finfo(np.float64).tiny)  # a part may be sure
        weights, (low, high) = self._weights_at(entries), self.ends(level, entries)
        close, y = _EXACT * (high - low), (low + high) / 2
        with np.errstate(all="ignore"):  # far from a narrow part its density is 0, and halving goes on
            for _ in range(_HALVINGS):
                z = (y - means) / stds
                excess = np.sum(weights * ndtr(z), axis=0) - level
                density = np.sum(weights / stds * np.exp(-0.5 * z**2), axis=0) / _ROOT_2PI
                low, high = np.where(excess < 0, y, low), np.where(excess < 0, high, y)
                step = y - excess / density
                step = np.where((low <= step) & (step <= high), step, (low + high) / 2)
                moved, y = np.abs(step - y), step
                if np.all(moved <= close):
                    break
        return y

    def ends(self, level: Array, entries: Entries) -> tuple[Array, Array]:
        lows, highs = zip(*(part.ends(level, entries) for part in self.parts), strict=True)
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def log_density(self, y: ArrayLike) -> Array:
        scores = np.stack([part.log_density(y) for part in self.parts])
        return logsumexp(scores, b=self.weights.reshape(len(self.parts), -1), axis=0)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        # all outputs of a row are from one part, as they are together
        cumulated = np.cumsum(self.weights.reshape(len(self.parts), -1).T, axis=1)[:, None]  # (n or 1, 1, K)
        chosen = np.sum(rng.random((len(self), count))[..., None] >= cumulated[..., :-1], axis=2)
        draws: Array = np.empty((*self.mean.shape, count))
        for k in np.unique(chosen):
            mine = np.broadcast_to(
                (chosen == k).reshape(len(self), *[1] * (draws.ndim - 2), count), draws.shape
            )
            draws[mine] = self.parts[k].sample(rng, count)[mine]
        return draws

    def mapped(self, change: Callable[[Normals], Predictive]) -> Blend:
        return Blend([part.mapped(change) for part in self.parts], self.weights)

    def output(self, k: int) -> Blend:
        return Blend([part.output(k) for part in self.parts], self.weights)

    def at(self, rows: slice | Entries) -> Blend:
        weights = self.weights if self.weights.ndim == 1 else self.weights[:, rows]
        return Blend([part.at(rows) for part in self.parts], weights)

    def _weights_at(self, entries: Entries) -> Array:
        """(parts, 1), or (parts, m) for m entries."""
        if self.weights.ndim == 1:
            return self.weights[:, None]
        return self.weights[:, entries // self.mean[0].size]

    def _averaged(self, values: Array) -> Array:
        """Of values (parts, n) or (parts, n, q)."""
        if self.weights.ndim == 1:
            return np.tensordot(self.weights, values, axes=1)
        weights = self.weights.reshape(*self.weights.shape, *[1] * (values.ndim - 2))
        return np.sum(weights * values, axis=0)


def mixed(parts: Sequence[Predictive]) -> Predictive:
    """The even mixture of some distributions; itself where there is one."""
    return parts[0] if len(parts) == 1 else Blend(parts)


def standardised(y: Array, mean: Array, std: Array) -> Array:
    """How many standard deviations y is from the mean; of one that is 0, as of the least number."""
    with np.errstate(over="ignore"):  # infinity is the nearest number
        return (y - mean) / np.maximum(std, TINIEST)


def log_normal(y: Array, mean: Array, var: Array) -> Array:
    """log N(y; mean, var), entry by entry."""
    var = np.maximum(var, TINIEST)
    with np.errstate(over="ignore"):  # minus infinity is the nearest number
        return -0.5 * ((y - mean) ** 2 / var + np.log(2 * np.pi * var))


def checked_levels(levels: ArrayLike) -> Array:
    """Levels of quantiles, (k,), when they lie between 0 and 1."""
    given = real_numbers(levels)
    p = np.zeros(0) if given is None else np.atleast_1d(given)
    if p.ndim != 1 or not p.size or not np.all((p > 0) & (p < 1)):
        cure = "Give numbers between 0 and 1, both excluded: quantiles=[0.1, 0.5, 0.9]."
        raise ParameterError(f"{levels!r} are no levels of quantiles. {cure}")
    return p


def check_level(level: Any) -> None:
    """Refuses what is no probability of an interval."""
    if not (is_number(level) and 0 < level < 1):
        cure = "Give one number between 0 and 1, both excluded, such as 0.95."
        raise ParameterError(f"{level!r} is no probability of an interval. {cure}")


def _ends(level: Any) -> tuple[float, float]:
    """The levels of the ends of a central interval."""
    check_level(level)
    return (1 - float(level)) / 2, (1 + float(level)) / 2
