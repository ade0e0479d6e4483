"""The posterior of a Markov process: new points are rows without a site, put in where they belong in time.

    mean, var   the rows and the points together, smoothed: O(n + m)
    cov         S e for the unit vectors e of the points, some at a time: O((n + m) m)
    draws       a draw g of the prior at rows and points, and e of the noise at the rows; g with the mean for
                z - g - e is then one of the posterior (Matheron): O((n + m) draws)
    components  the entries of the state that belong to a summand

See gram/markov.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.gram.markov import SitedChain, Smoothed, drawn, sorted_chain
from gramian.kernels.base import Kernel
from gramian.linalg.state import ObjectState, entries, numbered, taken, typed, typed_list
from gramian.processes.base import Process, users, with_noise
from gramian.processes.prior import GaussianProcess
from gramian.processes.state import Context

MOST_TERMS = 100  # a state of 200 numbers is no longer small
AT_ONCE = 64  # right-hand sides of one pass over the rows


@dataclass(frozen=True, eq=False)
class MarkovPosterior(Process):
    """A conditioned Gaussian process. Outputs that share their noise share sites."""

    kind: ClassVar[str] = "markov"

    prior: GaussianProcess
    X: Array  # (n, d)
    z: Array  # (n, q): what the sites say; see gram/markov
    sites: tuple[tuple[Array, Array], ...]  # a and b, (n,) each
    site_of: tuple[int, ...]  # for each output, which sites
    terms: int  # of series that must be cut

    def mean(self, X: Array) -> Array:
        return self.moments(X)[0]

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self._of_state(X, None)
        return self.prior.mean(X) + mean, var

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        columns = tuple(range(X.shape[1]))
        sizes = [
            form.size for term in terms if (form := term.bare().state_space(columns, self.terms)) is not None
        ]
        ends = np.cumsum(sizes)
        entry = np.arange(ends[-1])
        reads = [((entry >= end - size) & (entry < end)) * 1.0 for size, end in zip(sizes, ends, strict=True)]
        return [self._of_state(X, read) for read in reads]

    def _of_state(self, X: Array, read: Array | None) -> tuple[Array, Array]:
        """Mean and variance of s H'x at points, or of some of its entries: (m, q) each."""
        mean, var = np.empty((len(X), len(self.prior.scale))), np.empty((len(X), len(self.prior.scale)))
        for which in range(len(self.sites)):
            own, joint = users(self.site_of, which), self._joint(X)
            found = joint.smoothed(joint.sited(which, self.z[:, own]), read)
            mean[:, own], var[:, own] = found.mean, np.maximum(found.var, 0.0)[:, None]
        return mean * self.prior.scale, var * self.prior.scale**2

    def cov(self, X: Array) -> Array:
        m, q = len(X), len(self.prior.scale)
        out, joint = np.empty((m, m, q)), self._joint(X)
        for which in range(len(self.sites)):
            shared = np.empty((m, m))
            for start in range(0, m, AT_ONCE):
                at = np.arange(start, min(start + AT_ONCE, m))
                units = np.zeros((len(self.X) + m, len(at)))
                units[len(self.X) + at, at - start] = 1.0
                shared[:, at] = joint.smoothed(joint.sited(which, units)).mean
            shared = 0.5 * (shared + shared.T)
            for k in users(self.site_of, which):
                out[:, :, k] = shared * self.prior.scale[k] ** 2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        if any(np.any(a < 0) for a, _ in self.sites):  # no observation says such a thing
            return super().sample(rng, X, n_samples, noise)
        n, joint = len(self.X), self._joint(X)
        draws = np.repeat(self.prior.mean(X)[:, :, None], n_samples, axis=2)
        for k, which in enumerate(self.site_of):
            a, b = self.sites[which]
            for start in range(0, n_samples, AT_ONCE):
                at = slice(start, min(start + AT_ONCE, n_samples))
                g = joint.drawn(rng, at.stop - start)
                # a site a / b is one observation z / a with noise b / a: what it would have been of this draw
                e = np.sqrt(a * b)[:, None] * rng.standard_normal((n, at.stop - start))
                rest = self.z[:, [k]] - a[:, None] * g[:n] - e
                moved = g[n:] + joint.smoothed(joint.sited(which, rest)).mean
                draws[:, k, at] += self.prior.scale[k] * moved
        return with_noise(draws, noise, rng)

    def rescaled(self, c: float, prior: GaussianProcess) -> MarkovPosterior:
        return replace(self, prior=prior, sites=tuple((a, c * b) for a, b in self.sites))

    @property
    def dual(self) -> Array:
        return self._at_rows[0]

    def precision(self) -> Array:
        return self._at_rows[1]

    @cached_property
    def _at_rows(self) -> tuple[Array, Array]:
        """alpha and the diagonal of A^-1, (n, q) each."""
        alpha, precision = np.empty(self.z.shape), np.empty(self.z.shape)
        joint = self._joint(self.X[:0])
        for which in range(len(self.sites)):
            own = users(self.site_of, which)
            found = joint.at_rows(joint.sited(which, self.z[:, own]))
            alpha[:, own], precision[:, own] = found.alpha, found.precision[:, None]
        return alpha, precision

    def _joint(self, X: Array) -> _Joint:
        return _Joint(self, np.asarray(X, dtype=np.float64))

    def state(self, context: Context) -> ObjectState:
        a, b = zip(*self.sites, strict=True)
        arrays = {"z": self.z, **numbered(a, "a."), **numbered(b, "b."), **context.own_rows(self.X)}
        return ObjectState({"kind": self.kind, "site_of": list(self.site_of), "terms": self.terms}, arrays)

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> MarkovPosterior:
        _, site_of, terms = entries(state.described, "posterior", "kind", "site_of", "terms")
        if not 1 <= typed(terms, int, "terms") <= MOST_TERMS:
            raise StateError(f"terms is {terms}, but must be from 1 to {MOST_TERMS}.")
        X, q, arrays = context.rows(state.arrays), context.q, state.arrays
        of = typed_list(site_of, int, "site_of")
        if len(of) != q or set(of) != set(range(len(set(of)))):
            raise StateError(f"site_of is {of[:8]}, but must name sites for {q} outputs, each of them used.")
        if context.prior.kernel.bare().state_space(tuple(range(context.d))) is None:
            raise StateError(
                f"its kernel {context.prior.kernel} has no state-space form on {context.d} columns."
            )
        n, sites = len(X), []
        for k in range(len(set(of))):
            a, b = (taken(arrays, f"{name}.{k}", (n,)) for name in "ab")
            if not (np.all(np.isfinite(a)) and np.all(np.isfinite(b)) and np.all(b >= 0)):
                raise StateError(f"its sites a.{k} and b.{k} must be finite, b not negative.")
            sites.append((a, b))
        return cls(context.prior, X, taken(arrays, "z", (n, q)), tuple(sites), tuple(of), terms)


class _Joint:
    """The rows and some points, in the order of time."""

    def __init__(self, posterior: MarkovPosterior, X: Array) -> None:
        self.posterior, self.n = posterior, len(posterior.X)
        every = np.concatenate([posterior.X, X]) if len(X) else posterior.X
        self.m, self.total = len(X), len(every)
        self.chain, self.order = sorted_chain(posterior.prior.kernel, every, posterior.terms)

    def sited(self, which: int, z: Array) -> SitedChain:
        """With sites at the rows; z at the rows, or at rows and points."""
        a, b = self.posterior.sites[which]
        whole = np.zeros((self.total, z.shape[1]))
        whole[: len(z)] = z
        rest = np.zeros(self.m), np.ones(self.m)
        a, b = np.concatenate([a, rest[0]]), np.concatenate([b, rest[1]])
        return self.chain.sited(a[self.order], b[self.order], whole[self.order])

    def smoothed(self, sited: SitedChain, read: Array | None = None) -> Smoothed:
        """At the points."""
        return Smoothed(*(self.back(values)[self.n :] for values in sited.smoothed(read)))

    def at_rows(self, sited: SitedChain) -> Smoothed:
        return Smoothed(*(self.back(values)[: self.n] for values in sited.smoothed()))

    def drawn(self, rng: np.random.Generator, count: int) -> Array:
        """Draws of the prior at rows and points, (n + m, count)."""
        return self.back(drawn(self.chain, rng, count))

    def back(self, values: Array) -> Array:
        if isinstance(self.order, slice):
            return values
        out: Any = np.empty_like(values)
        out[self.order] = values
        return out
