"""Kernels of one column as Markov processes: the exact answer in time proportional to the rows.

What a Gaussian process on a line knows of its past it knows by a state of a few numbers, where its kernel has
a state-space form (`Kernel.state_space`): the Matern family, Cosine, Constant, Linear, Polynomial, Brownian
motion and its integral, their sums and products; Periodic by its cosine series. Conditioning is then the
Kalman filter and its adjoint (see gram/markov), for sites of any sign and rows at equal times, in any
order.

Cost: n s^3 flops for a state of s numbers, n (s + q) numbers of memory. Rows are sorted once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays import AnyArray, Array, is_whole, plain_numbers
from gramian.engines.base import (
    Columns,
    Conditioned,
    Engine,
    Gradients,
    RowPrior,
    Share,
    Sides,
    Term,
    Use,
    Workspace,
    added,
    by_output,
)
from gramian.errors import NumericalError, ParameterError
from gramian.gram import tiles
from gramian.gram.markov import EPS, Chain, SitedChain, Smoothed, sorted_chain, variances
from gramian.kernels.base import TERMS, Kernel
from gramian.linalg.cost import Cost
from gramian.linalg.factor import LADDER
from gramian.processes.markov import MOST_TERMS, MarkovPosterior
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import SolveOutcome

# of a row with a state of s numbers: kernel values that take as long, s^2 times the second besides
ROW_VALUES, ENTRY_VALUES = 15.0, 2.5
SLOPES = 3.0  # an evaluation with gradient against one without
QUAD_DIGITS = 1e-9  # of r'A^-1 r: found from alpha where rounding of the links would leave fewer


@dataclass(frozen=True)
class StateSpace(Engine):
    """The Kalman filter, for a kernel of one column with a state-space form: exact, at n."""

    name = "statespace"
    linear = True
    fit_rule = "neighbours"
    programs = 4
    kinds = ("markov",)

    terms: int = TERMS  # of a periodic kernel's cosine series
    # Of the kernel, once there is one: the numbers of its state, and how far k(x, z) may be off at most at
    # the rows where it is a series that was cut; None: not known yet.
    size: int = 3
    error: float | None = None

    def __post_init__(self) -> None:
        plain_numbers(self)
        for name, most in (("terms", MOST_TERMS), ("size", 10**6)):
            value = getattr(self, name)
            if not is_whole(value) or value > most:
                raise ParameterError(
                    f"StateSpace: {name}={value!r} must be a whole number from 1 to {most:,}."
                )

    @property
    def exact(self) -> bool:  # type: ignore[override]  # known with the kernel
        return not self.error

    @property
    def described(self) -> str:
        if self.error is None:
            return "Kalman filter"
        cut = f", series of {self.terms} terms, {self.accuracy}" if self.error else ""
        return f"Kalman filter with a state of {self.size}{cut}"

    @property
    def accuracy(self) -> str:
        return f"k(x, z) within {1.01 * self.error:.2g}" if self.error else "exact"

    def check_fits(self, kernel: Kernel, d: int) -> None:
        bare, columns = kernel.bare(), tuple(range(d))
        part = bare.without_state_space(columns)
        if part is None:
            return
        if part.parts:  # each of which has a form
            why = "has parts on different columns"
        else:
            several = d > 1 and part.state_space((0,)) is not None
            why = f"sees several of the {d} columns" if several else "has no state-space form"
        raise ParameterError(
            f"{part_text(kernel, part)} {why}, so that method='statespace' cannot be used. It takes kernels"
            " of one column: Matern12, Matern32, Matern52, Cosine, Constant, Linear, Polynomial, Brownian,"
            " IntegratedBrownian, Periodic, their sums and products; with more columns, all of it on one:"
            ' kernel.on("time"). Else use method="auto".'
        )

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> StateSpace:
        self.check_fits(kernel, X.shape[1])
        bare, columns = kernel.bare(), tuple(range(X.shape[1]))
        form = bare.state_space(columns, self.terms)
        assert form is not None
        error = 0.0
        if not form.exact:  # what is left out is a kernel: it is largest on the diagonal
            rest = tiles.diagonal(kernel, X) - variances(bare, X, self.terms)
            error = float(max(np.max(rest), EPS * np.max(tiles.diagonal(kernel, X))))
        return replace(self, size=form.size, error=error)

    def ready(self, kernel: Kernel, X: Array) -> StateSpace:
        """As it is where it is exact; a series is off by another number at other parameters."""
        self.check_fits(kernel, X.shape[1])
        form = kernel.bare().state_space(tuple(range(X.shape[1])), self.terms)
        assert form is not None
        return self if form.exact else self.prepared(kernel, X, np.random.default_rng(0))

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        self.check_fits(kernel, X.shape[1])
        return MarkovPrior(kernel, np.asarray(X, dtype=np.float64), self.terms)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        row = ROW_VALUES + ENTRY_VALUES * self.size**2
        return Cost(float(n) * self.size**2, (SLOPES if gradient else 1.0) * n * row)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        # rows, sites and answers, each padded by up to a piece; what a piece at work holds
        # (a million rows of Matern-3/2, unsorted, with gradient and variances, took 180 MB)
        numbers = n * (2 * d + 8 * q + 16) + 65_536 * (4 * self.size + 4 * q + 8)
        return 8 * (numbers + 64 * 64 * self.size**2)

    def bytes_of_noise(self, n: int, d: int) -> int:
        return 8 * 10 * n


def part_text(kernel: Kernel, bare: Kernel) -> str:
    """A part of a bare kernel as a person wrote it."""
    pairs = zip(kernel.walk(), kernel.bare().walk(), strict=True)
    return str(next((whole for whole, own in pairs if own is bare), kernel))


class MarkovPrior(RowPrior):
    """N(0, K) at the rows."""

    def __init__(self, kernel: Kernel, X: Array, terms: int) -> None:
        self.kernel, self.X, self.terms = kernel, X, terms

    @cached_property
    def sorted(self) -> tuple[Chain, Any]:
        """The rows in the order of time, and that order: a slice where they are sorted."""
        return sorted_chain(self.kernel, self.X, self.terms)

    def times(self, b: Array) -> Array:
        """K b is the mean of sites h = b, lam = 0."""
        wide = b.reshape(len(b), -1)
        return self.sited(np.zeros(len(b)), np.ones(len(b)), wide).smoothed.mean.reshape(b.shape)

    def sited(self, a: Array, b: Array, z: Array) -> Sited:
        return Sited(*self.sorted, a, b, z)

    def condition(self, lam: Array, h: Array, report: Share | None = None) -> MarkovConditioned:
        return MarkovConditioned(self, lam, np.ones(len(lam)), h, sites=True)

    def observe(self, D: Array, r: Array, report: Share | None = None) -> MarkovConditioned:
        seen = np.isfinite(D)
        a, z = seen.astype(np.float64), np.where(seen[:, None], r, 0.0)
        b = np.where(seen, D, 1.0)
        # Without noise, rows at one time say too much: as for a factor, a little is added.
        level = float(np.mean(tiles.diagonal(self.kernel, self.X))) if not np.all(b > 0) else 0.0
        for rung in LADDER if level else LADDER[:1]:
            if rung == 0.0 and level and self._repeats(seen & (D <= 0)):
                continue
            try:
                return MarkovConditioned(self, a, b + rung * level * a, z, sites=False, jitter=rung * level)
            except NumericalError:
                if rung == LADDER[-1] or not level:
                    raise
        raise AssertionError  # the last rung has raised

    def _repeats(self, at: AnyArray) -> bool:
        """Whether two of these rows are at one time."""
        chain, order = self.sorted
        t = chain.times[at[order]]
        return bool(np.any(t[1:] == t[:-1]))

    def pullback(self, terms: Sequence[Term]) -> Gradients:
        by_kernel: list[Array] = []
        by_level = []
        for term in terms:
            one: MarkovConditioned = term.sited
            q = one.z.shape[1] if term.alpha is None else term.alpha.shape[1]
            logdet = float(q) if term.logdet else 0.0
            if term.alpha is None and term.u is None:
                by_kernel = added(by_kernel, one.pulled(0.5 * np.eye(q), logdet))
                a = one.alpha
            else:
                a = one.alpha if term.alpha is None else term.alpha
                V, B = a, 0.5 * np.eye(q)
                if term.u is not None:  # 1/2 a a' + 1/2 (u a' + a u')
                    none = np.zeros((q, q))
                    V, B = np.hstack([a, term.u]), np.block([[B, B], [B, none]])
                n = len(self.X)
                own = self.sited(np.zeros(n), np.ones(n), V)
                by_kernel = added(by_kernel, own.pulled(B, 0.0)[0])
                if term.logdet:
                    by_kernel = added(by_kernel, one.pulled(np.zeros((one.z.shape[1],) * 2), logdet))
            known = 0.5 * float(np.sum(one.precision())) if term.logdet else 0.0
            by_level.append(0.5 * np.sum(a * a, axis=0) - known)
        return Gradients(by_kernel, None, np.concatenate(by_level))

    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> MarkovPosterior:
        z, site_of = by_output([one.z for one in conditioned], columns, sides, len(prior.scale))
        sites = tuple((one.a, one.b) for one in conditioned)
        return MarkovPosterior(prior, self.X, z, sites, site_of, self.terms)


class Sited:
    """Sites on a chain, in the order of the rows."""

    def __init__(self, chain: Chain, order: Any, a: Array, b: Array, z: Array) -> None:
        self.order = order
        self.chain: SitedChain = chain.sited(a[order], b[order], z[order])

    @cached_property
    def smoothed(self) -> Smoothed:
        return Smoothed(*map(self.back, self.chain.smoothed()))

    def pulled(self, B: Array, logdet: float) -> tuple[list[Array], Array, Array]:
        gradient, alpha, precision = self.chain.pulled(B, logdet)
        return gradient, self.back(alpha), self.back(precision)

    def back(self, values: Array) -> Array:
        if isinstance(self.order, slice):
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


class MarkovConditioned(Conditioned):
    """With sites. `sites`: whether these are lam and h, and not observations with their noise."""

    prior: MarkovPrior

    def __init__(
        self, prior: MarkovPrior, a: Array, b: Array, z: Array, sites: bool, jitter: float = 0.0
    ) -> None:
        self.prior, self.a, self.b, self.z = prior, a, b, z
        self.outcome = SolveOutcome(jitter=jitter) if jitter else SolveOutcome()
        self._sited = prior.sited(a, b, z)
        self._sites = sites
        chain = self._sited.chain
        # log det(I + K Lam) has as many negative factors as there are where it is positive definite, an even
        # number; with noise none is
        if not np.isfinite(chain.logdet) or chain.negative % 2 or (chain.negative and not sites):
            raise NumericalError(
                "The Kalman filter met a variance that is not positive: rows at one time, or nearly so, have"
                " no noise, or sites curve the wrong way more than the prior allows. Let noise be learned"
                " (noise=0.01), or bound the kernel's scale and lengthscales."
            )
        self._found: tuple[Array, Array] | None = None  # alpha and precision, from a gradient

    @cached_property
    def lam(self) -> Array:  # type: ignore[override]  # made when it is asked for
        with np.errstate(divide="ignore"):
            return self.a / self.b

    @property
    def logdet(self) -> float:
        return self._sited.chain.logdet - (0.0 if self._sites else float(np.sum(np.log(self.b))))

    @property
    def logdet_noisy(self) -> float:
        seen = np.abs(self.a[self.a != 0]) if self._sites else np.ones(0)
        return self._sited.chain.logdet - float(np.sum(np.log(seen)))

    @property
    def mean(self) -> Array:
        return self._sited.smoothed.mean

    @property
    def alpha(self) -> Array:
        return self._sited.smoothed.alpha if self._found is None else self._found[0]

    @property
    def quad(self) -> Array:
        chain = self._sited.chain
        if np.all(chain.rounding <= QUAD_DIGITS * (1 + np.abs(chain.quad))):
            return chain.quad
        seen = self.a != 0
        r = np.divide(self.z, self.a[:, None], out=np.zeros_like(self.z), where=seen[:, None])
        return np.sum(r * self.alpha, axis=0)

    def var(self) -> Array:
        var = self._sited.smoothed.var
        if self._sites and np.any(self.a < 0) and np.any(var < 0):
            raise NumericalError("Sites curve the wrong way more than the prior allows: a variance < 0.")
        return np.maximum(var, 1e-14 * tiles.diagonal(self.prior.kernel, self.prior.X))

    def precision(self) -> Array:
        return self._sited.smoothed.precision if self._found is None else self._found[1]

    def spread(self, b: Array) -> Array:
        """The mean with the sites h = b; with a site of noise, h = a z / b."""
        wide = b.reshape(len(b), -1)
        return self.prior.sited(self.a, self.b, wide * self.b[:, None]).smoothed.mean.reshape(b.shape)

    def pulled(self, B: Array, logdet: float) -> list[Array]:
        gradient, *found = self._sited.pulled(B, logdet)
        self._found = found[0], found[1]
        return gradient
