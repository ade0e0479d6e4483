"""What becomes of foretold Gaussians on their way to y.

Calibration   wider or narrower, after the rows that were foretold wrongly
Unwarped      w^-1(t), where t = w(y) is foretold
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import factorial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import expit, log_expit, ndtri

from gramian import clock
from gramian.arrays import Array
from gramian.predictive import Blend, Entries, Normals, Predictive, log_normal
from gramian.warps import Warp
from gramian.widths import Widths

WORTH = 2.0  # nats by which a calibration must raise the log density of left-out rows
MOST_PARAMETERS = 1 / 3  # of the rows, that count: with more, priors hold them
MOST_PARTS = 5
TURNS, STILL, MOST_RESIDUALS = 500, 1e-6, 5000  # of EM: nats a row that are no gain; rows that are looked at
NARROWEST = 0.02  # how narrow a part may be, of what holds 95 % of the residuals
FARTHEST = 100.0  # logarithms of scale and width: beyond, their squares are no numbers
# how wide the part for rows of a kind not seen is, beside the root of the mean square of the residuals. With
# 69 rows 5 makes a standard deviation 16 % larger, 10 would make it 55 %. A residual of 20 costs 14 nats, not
# 200.
UNSEEN = 5.0
FAR_OUT = 5.0  # standard deviations: one of two million rows
LEAST_PROBABLE = 1e-12  # of a residual: seven standard deviations
WIDER = 1.01  # what new rows need beyond the fitted ones, to be worth a calibration of its own


def _gauss_hermite(count: int) -> tuple[Array, Array]:
    """Points and weights of averages over N(0, 1)."""
    z, weights = np.polynomial.hermite_e.hermegauss(count)
    return z, weights / np.sum(weights)


NODES = 64
_TERMS = 40  # of Mehler's sum: what is left out is below r^40
_HERMITE = _gauss_hermite(NODES)
# Times as far from the median as the ends of the usual 95 % interval, up to which y counts in moments: below
# 21 a mean lies within its interval, 0.475 + 0.025 OUT < 1; of a lognormal of sigma 1 nothing is left out.
OUT = 10.0
_ROOT_2PI = np.sqrt(2 * np.pi)
_USUAL = ndtri(np.array([0.025, 0.5, 0.975]))


class Unwarped(Predictive):
    """y = w^-1(t) of a Normals t. Quantiles, probabilities and draws are those of t, sent through the map.

    Moments are integrals over t, by NODES points of the Gauss-Hermite rule: exact where w^-1 is a polynomial
    of degree 2 NODES - 1 within the reach of t. The covariance of two rows with correlation r is
    sum_k c_k c'_k r^k / k!, c_k = E w^-1(t) He_k(z) (Mehler's formula). In moments y counts no further out
    than `Warp.counted` says, nor than OUT times the 95 % interval of what is `usual`: one y among hundreds
    that is a million times the others would else make the mean of all, through a tail that it alone has
    told of. `usual` None: t itself; where t is a part of a mixture, the middle one.
    """

    def __init__(self, inner: Normals, warp: Warp, usual: Normals | None = None) -> None:
        self.inner, self.warp, self.usual = inner, warp, inner if usual is None else usual

    def found(self) -> tuple[Array, Array]:
        z, weights = _HERMITE
        values = self._counted(z)
        mean = values @ weights
        return mean, np.sqrt(np.maximum((values - mean[..., None]) ** 2 @ weights, 0.0))

    def below(self, y: Array, entries: Entries) -> Array:
        outputs = self.inner.mean.shape[1] if self.inner.mean.ndim > 1 else 1
        t = self.warp.forward(np.repeat(y[:, None], outputs, axis=1))
        return self.inner.below(t[np.arange(len(y)), entries % outputs], entries)

    def solved(self, level: Array, entries: Entries) -> Array:
        outputs = self.inner.mean.shape[1] if self.inner.mean.ndim > 1 else 1
        t = np.repeat(self.inner.solved(level, entries)[:, None], outputs, axis=1)
        return self.warp.inverse(t)[np.arange(len(t)), entries % outputs]

    def ends(self, level: Array, entries: Entries) -> tuple[Array, Array]:
        return (self.solved(level, entries),) * 2

    def quantile(self, levels: ArrayLike) -> Array:
        return np.moveaxis(self._back(np.moveaxis(self.inner.quantile(levels), 1, -1)), -1, 1)

    def log_density(self, y: ArrayLike) -> Array:
        values = self.checked(y)
        Y = values.reshape(len(values), -1)
        t = self.warp.forward(Y).reshape(values.shape)
        return self.inner.log_density(t) + np.sum(self.warp.log_slope(Y), axis=1)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        return self._back(self.inner.sample(rng, count))

    def at(self, rows: slice | Entries) -> Unwarped:
        return Unwarped(self.inner.at(rows), self.warp, self.usual.at(rows))

    def output(self, k: int) -> Unwarped:
        if self.inner.mean.ndim == 1:
            return self
        return Unwarped(self.inner.output(k), self.warp.output(k), self.usual.output(k))

    def covariance(self, cov: Array) -> Array:
        """The covariance of y, (n, n) or (n, n, q), from that of t."""
        z, weights = _HERMITE
        values = self._counted(z)
        std = self.inner.std
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.nan_to_num(cov / (std[:, None] * std[None, :]))
        polynomial, before, power = np.ones_like(z), np.zeros_like(z), np.ones_like(r)
        total = np.zeros_like(r)
        for k in range(1, _TERMS + 1):
            polynomial, before = z * polynomial - (k - 1) * before, polynomial  # He_k
            power *= r
            c = (values @ (weights * polynomial)) / np.sqrt(float(factorial(k)))
            total += power * c[:, None] * c[None, :]
        at = np.arange(len(std))
        total[at, at] = self.std**2
        return total

    def gradient(self, mean: Array, var: Array, cov: Array) -> tuple[Array, Array]:
        """Mean and variance of the gradient of y, (n, d, q) each, from those of the gradient of t and its
        covariances with t. dy = dt / w'(y), and given t the gradient of t is a Gaussian around
        mean + cov (t - E t) / var t; what counts no further has no slope."""
        z, weights = _HERMITE
        Y = np.moveaxis(self._counted(z).reshape(len(mean), -1, len(z)), -1, 0)  # (nodes, n, q)
        low, high = (end.reshape(len(mean), -1) for end in self._ends_counted())
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where((low < Y) & (high > Y), np.exp(-self.warp.log_slope(Y)), 0.0)
            b = np.nan_to_num(cov / self.inner.std.reshape(len(mean), 1, -1))

        def average(power: int, times: int) -> Array:
            """E slope^power z^times, (n, 1, q)."""
            return np.tensordot(weights * z**times, slope**power, axes=1)[:, None, :]

        found = mean * average(1, 0) + b * average(1, 1)
        rest = np.maximum(var - b**2, 0.0)
        second = (mean**2 + rest) * average(2, 0) + 2 * mean * b * average(2, 1) + b**2 * average(2, 2)
        return found, np.maximum(second - found**2, 0.0)

    def _counted(self, z: Array) -> Array:
        """y at standard residuals z of t: (n, len(z)), or (n, q, len(z))."""
        low, high = self._ends_counted()
        Y = self._back(self.inner.mean[..., None] + self.inner.std[..., None] * z)
        return np.clip(Y, low, high)

    def _ends_counted(self) -> tuple[Array, Array]:
        """The ends between which y counts in moments: (n, 1) each, or (n, q, 1)."""
        usual = self._back(self.usual.mean[..., None] + self.usual.std[..., None] * _USUAL)
        lower, median, upper = np.split(usual, 3, axis=-1)
        low, high = (end[:, None] if usual.ndim > 2 else end[0] for end in self.warp.counted())
        return np.maximum(low, median - OUT * (median - lower)), np.minimum(
            high, median + OUT * (upper - median)
        )

    def _back(self, T: Array) -> Array:
        """y of t, (n, m) or (n, q, m)."""
        several = T if self.inner.mean.ndim > 1 else T[:, None]
        return np.swapaxes(self.warp.inverse(np.swapaxes(several, -1, -2)), -1, -2).reshape(T.shape)


def as_residuals(below: Array, best: Array) -> Array:
    """Residuals of Gaussians that are as probable as y is under other distributions, from P(Y <= y); how far
    out an outlier is, `best` says, the residual of a Gaussian next to that distribution."""
    alike = ndtri(np.clip(below, LEAST_PROBABLE, 1 - LEAST_PROBABLE))
    return np.where((np.abs(alike) > FAR_OUT) & (np.abs(best) > np.abs(alike)), best, alike)


@dataclass(frozen=True, eq=False)
class Correction:
    """A calibration at some rows: Gaussians of one mean, the standard deviation of the narrowest times
    `scale`, those of the others `wider` times as large, with their `shares`."""

    scale: Array  # a number, or one for each foretold mean
    shares: tuple[float, ...]
    wider: tuple[float, ...]

    @property
    def factor(self) -> Array:
        """Of the standard deviation."""
        squares = sum(share * (width**2 - 1) for share, width in self._others)
        return np.asarray(self.scale * np.sqrt(1 + squares))

    def factors(self, observed: bool) -> tuple[Array, Array]:
        """Of covariances between rows (the average factor of a deviation), and of standard deviations; of f,
        where it is not `observed`: at most 1, so that it is never less sure than an observation."""
        if not observed:
            return (np.minimum(1.0, self.factor),) * 2
        return self.scale * (1 + sum(share * (width - 1) for share, width in self._others)), self.factor

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...], observed: bool) -> Array:
        """Factors of deviations, each for itself, from draws of this shape: (n, q, count)."""
        if not observed:
            return np.minimum(1.0, self.factor)[..., None]
        part = np.searchsorted(np.cumsum(self.shares), rng.random(shape), side="right")
        return self.scale[..., None] * np.array([*self.wider, 1.0])[part]

    def of_function(self, seen: Normals) -> Normals:
        """f itself."""
        return Normals(seen.mean, np.minimum(1.0, self.factor) * seen.std)

    def usual(self, seen: Normals) -> Normals:
        """The part that the middle one of all rows is of, were they sorted by the width of their parts."""
        return self._part(seen, _middle(self.shares, self.wider))

    def observed(self, seen: Normals) -> Predictive:
        """An observation: all parts."""
        narrow = self._part(seen, 1.0)
        if not self.shares:
            return narrow
        others = [self._part(seen, width) for width in self.wider]
        return Blend([narrow, *others], [1 - sum(self.shares), *self.shares])

    @property
    def _others(self) -> Iterator[tuple[float, float]]:
        return zip(self.shares, self.wider, strict=True)

    def _part(self, seen: Normals, width: float) -> Normals:
        return Normals(seen.mean, width * self.scale * seen.std)


def _middle(shares: tuple[float, ...], wider: tuple[float, ...]) -> float:
    """The width at which the shares of the narrower parts and its own come to a half. Half of the rows are at
    least as wide, so that 95 % intervals of all parts have 0.84 of its own, or more."""
    ends = np.cumsum([1 - sum(shares), *shares])
    return (1.0, *wider)[int(np.argmax(ends >= 0.5))]


@dataclass(frozen=True)
class Calibration:
    """How foretold Gaussians are corrected after the rows they were wrong about:

        (1 - sum_k share_k) N(mean, (scale std)^2) + sum_k share_k N(mean, (wider_k scale std)^2)

    found from the residuals of left-out rows, in units of their standard deviations: `scale` for all of them,
    times `widths` where they differ from place to place, and wider parts for those that no Gaussian
    foretells: one as a rule, more where many rows ask for them. On uci_pol, whose y has 11 values, two parts
    of 13,500 residuals hold 97.3 % in 95 % intervals, four hold 94.9, and new rows gain 0.07 nats by them.
    Sources: Tukey 1960 (the contaminated normal distribution); Dempster, Laird and Rubin 1977 (EM)."""

    scale: float
    shares: tuple[float, ...] = ()
    wider: tuple[float, ...] = ()  # from the narrowest on
    widths: Widths | None = None

    @property
    def _others(self) -> Iterator[tuple[float, float]]:
        return zip(self.shares, self.wider, strict=True)

    def at(self, X: Array, mean: Array) -> Correction:
        """At rows X, whose foretold means are (n,) or (n, q); with widths, of one output."""
        scale = np.asarray(self.scale)
        if self.widths is not None:
            scale = scale * self.widths.at(X, np.ravel(mean)).reshape(np.shape(mean))
        return Correction(scale, self.shares, self.wider)

    def log_density(self, z: Array) -> Array:
        """Of residuals in units of the standard deviation."""
        std = self.scale * np.array([1.0, *self.wider])[:, None]
        shares = np.array([1 - sum(self.shares), *self.shares])[:, None]
        with np.errstate(divide="ignore"):  # a share of zero
            each = np.log(shares / (std * _ROOT_2PI)) - 0.5 * (np.ravel(z) / std) ** 2
        return np.asarray(np.logaddexp.reduce(each, axis=0).reshape(np.shape(z)))

    def open_to_others(self, rows: int) -> Calibration:
        """With a wide part for what so many left-out rows cannot exclude: of n + 1 exchangeable rows the last
        one is farther out than all others with probability 1 / (n + 1), whatever they look like. A tail that
        ends where theirs does is sure of what nobody has seen: on uci20_energy, split 1, one row of 77 cost
        189 nats under a deep model. The price is 1 / (n + 1) nats a row, and as much beside the variance as
        UNSEEN^2 says: of 277 rows (uci20_yacht) 0.002 nats and intervals 1.5 % wider."""
        share = 1 / (rows + 1)
        parts = [(1 - sum(self.shares), 1.0), *self._others]
        spread = float(np.sqrt(sum(own * width**2 for own, width in parts)))  # in units of `scale`
        others = [((1 - share) * own, width) for own, width in self._others]
        others = sorted([*others, (share, max(UNSEEN * spread, 1.0))], key=lambda part: part[1])
        shares, wider = zip(*others, strict=True)
        return replace(self, shares=shares, wider=wider)

    @staticmethod
    def fitted_to(calibration: Calibration | None, rows: int, parameters: int) -> Calibration | None:
        """A calibration, or none, of a model whose p parameters were fitted to the same n rows: they foretell
        each other better than they foretell new ones, whose errors are sqrt((n + p) / (n - p)) times as
        large. Source: Akaike 1970 (the final prediction error)."""
        p = min(parameters, MOST_PARAMETERS * rows)
        return Calibration.widened(calibration, float(np.sqrt((rows + p) / (rows - p))))

    @staticmethod
    def widened(calibration: Calibration | None, factor: float) -> Calibration | None:
        """A calibration, or none, with standard deviations times a factor."""
        if calibration is None:
            return Calibration(factor) if factor > WIDER else None
        return replace(calibration, scale=factor * calibration.scale)

    @classmethod
    def of(cls, residuals: Array) -> Calibration | None:
        """The most probable correction, given residuals; None where it is not worth having. Weak priors of
        two parts keep apart what few rows cannot tell: share ~ Beta(1.5, 11), log width ~ N(log 4, 1 / 4).
        Further parts are for many rows: each must raise the log density by more than its two numbers would by
        chance (Schwarz 1978)."""

        # rows that are foretold to the last digit would be a part of no width
        least = NARROWEST * float(np.quantile(np.abs(residuals), 0.95))

        def read(u: Array) -> Calibration:
            u = np.clip(u, -FARTHEST, FARTHEST)
            return cls(max(float(np.exp(u[0])), least), (float(expit(u[1])),), (1 + float(np.exp(u[2])),))

        def height(u: Array) -> float:
            clock.check()
            own = read(u)
            shares = 0.5 * log_expit(u[1]) + 10 * log_expit(-u[1])
            prior = shares - 2 * np.log(own.wider[0] / 4) ** 2
            return -float(np.sum(own.log_density(residuals)) + prior)

        found = read(minimize(height, [0.0, -4.0, 1.1], method="Nelder-Mead", options={"maxiter": 400}).x)
        value = float(np.sum(found.log_density(residuals)))
        if not value - np.sum(log_normal(residuals, np.zeros(1), np.ones(1))) > WORTH:
            return None
        for parts in range(3, MOST_PARTS + 1):
            more = cls._of_parts(residuals, parts, least)
            gain = float(np.sum(more.log_density(residuals))) - value
            if not gain > np.log(len(residuals)) + WORTH:
                break
            found, value = more, value + gain
        return found

    @classmethod
    def _of_parts(cls, residuals: Array, count: int, least: float) -> Calibration:
        """So many parts, none narrower than `least`, by EM from quantiles of the residuals."""
        every = -(-len(residuals) // MOST_RESIDUALS)
        squares = residuals[::every] ** 2
        v = np.maximum(np.quantile(squares, np.linspace(0.3, 0.97, count)), least**2)
        shares, before = np.full(count, 1 / count), -np.inf
        for _ in range(TURNS):
            clock.check()
            each = np.log(shares / np.sqrt(v)) - 0.5 * squares[:, None] / v
            all_ = np.logaddexp.reduce(each, axis=1)
            belongs = np.exp(each - all_[:, None])
            weight = np.sum(belongs, axis=0)
            shares = (weight + 1) / (len(squares) + count)  # none is empty
            v = np.maximum(squares @ belongs / np.maximum(weight, 1e-300), least**2)
            value = float(np.sum(all_))
            if value - before < STILL * len(squares):
                break
            before = value
        order = np.argsort(v)
        std, shares = np.sqrt(v[order]), shares[order]
        wider = tuple(map(float, std[1:] / std[0]))
        return cls(float(std[0]), tuple(map(float, shares[1:])), wider)
