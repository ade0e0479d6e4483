"""Outputs in a chain, after data: f_k is a function of x and of what the outputs before it are there.

Where these were observed (rows of the fit), they are what was observed. Elsewhere they are drawn, noise
included, from what the chain says of them, so that f_k is an even mixture of Gaussians, one a draw. The same
draws serve all rows (evenly spread normal numbers), so that a row has the same answer in whatever table it
stands. Joint draws at several rows go through the chain one by one.

Cost: that of each output's process at the rows, times DRAWS where an output before it is not known.
Source: Requeima, Tebbutt, Bruinsma and Turner 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.likelihoods import Likelihood
from gramian.linalg.state import ObjectState, entries, joined, of_parts, typed
from gramian.means import Mean
from gramian.processes.base import Process
from gramian.processes.prior import mean_block
from gramian.processes.state import Context

DRAWS = 64  # of the outputs before one, where they are not known
JOINT = 64  # of them, that a covariance of several rows is averaged over


class ChainDraws(NamedTuple):
    """What the chain says at some rows, once for each draw: (S, n, q) each."""

    mean: Array
    var: Array


@dataclass(frozen=True, eq=False)
class OutputChain(Process):
    """The processes of the outputs, in the order of the chain."""

    kind: ClassVar[str] = "chain"
    dependent = True

    parts: tuple[Process, ...]  # of (t - m) / s, by place
    order: tuple[int, ...]  # the output at each place
    linked: tuple[bool, ...]  # whether it sees those before it, by place
    mean_function: Mean
    scale: Array  # (q,)
    noise: Array  # (q,)
    centre: Array  # (q,)
    X: Array  # (n, d): rows at which outputs are known
    Z: Array  # (n, q): what they are, in units of z; NaN where they are not known

    def mean(self, X: Array) -> Array:
        return np.mean(self.paths(X).mean, axis=0)

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.paths(X)
        return np.mean(mean, axis=0), np.mean(var, axis=0) + np.var(mean, axis=0)

    def under(self, likelihood: Likelihood, X: Array) -> Iterator[tuple[Likelihood, Array, Array]]:
        for mean, var in zip(*self.paths(X), strict=True):
            yield likelihood, mean, var

    def paths(self, X: Array, draws: int = DRAWS) -> ChainDraws:
        """Mean and variance of each output, given draws of those before it."""
        n, q = len(X), len(self.scale)
        known, m = self._known(X), mean_block(self.mean_function, X, q)
        asked = [k for place, k in enumerate(self.order) if any(self.linked[place + 1 :])]
        S = draws if np.isnan(known[:, asked]).any() else 1
        normal = _normal(draws, q)
        mean, var, Z = np.empty((S, n, q)), np.empty((S, n, q)), np.empty((S, n, q))
        for place, k in enumerate(self.order):
            part, before = self.parts[place], list(self.order[:place])
            if not self.linked[place]:
                found = [np.broadcast_to(one[:, 0], (S, n)) for one in part.moments(X)]
            else:
                sure = ~np.isnan(known[:, before]).any(axis=1)
                found = [np.empty((S, n)), np.empty((S, n))]
                for which, count in ((sure, 1), (~sure, S)):
                    if which.any():
                        table = np.concatenate(
                            [np.hstack([X[which], Z[s][which][:, before]]) for s in range(count)]
                        )
                        for into, one in zip(found, part.moments(table), strict=True):
                            into[:, which] = one[:, 0].reshape(count, -1)
            mean[:, :, k] = m[:, k] + self.scale[k] * found[0]
            var[:, :, k] = self.scale[k] ** 2 * found[1]
            y = mean[:, :, k] + np.sqrt(var[:, :, k] + self.noise[k]) * normal[:S, k][:, None]
            drawn = (y - self.centre[k]) / self.scale[k]
            Z[:, :, k] = np.where(np.isnan(known[:, k]), drawn, known[:, k])
        return ChainDraws(mean, var)

    def cov(self, X: Array) -> Array:
        n, q = len(X), len(self.scale)
        sure = not np.isnan(self._known(X)).any()
        rng, count = np.random.default_rng(0), 1 if sure or not any(self.linked) else JOINT
        total, means = np.zeros((n, n, q)), np.empty((count, n, q))
        for s in range(count):
            for place, k, table, _ in self._walk(rng, X, None):
                means[s, :, k] = self.parts[place].mean(table)[:, 0] * self.scale[k]
                total[:, :, k] += self.parts[place].cov(table)[:, :, 0] * self.scale[k] ** 2 / count
        off = means - np.mean(means, axis=0)
        total += np.einsum("sik,sjk->ijk", off, off) / count
        np.einsum("iik->ik", total)[...] = self.moments(X)[1]
        return total

    def joint(self, X: Array) -> Array:
        draws = self.sample(np.random.default_rng(0), X, 4 * JOINT)
        off = draws - np.mean(draws, axis=2, keepdims=True)
        out = np.einsum("iks,ils->ikl", off, off) / draws.shape[2]
        # drawn correlations, between standard deviations that are known
        std = np.sqrt(np.maximum(np.einsum("ikk->ik", out), 1e-300))
        var = self.moments(X)[1]
        ratio = np.sqrt(var) / std
        out = out * ratio[:, :, None] * ratio[:, None, :]
        np.einsum("ikk->ik", out)[...] = var
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        m = mean_block(self.mean_function, X, len(self.scale))
        draws = np.empty((*m.shape, n_samples))
        for s in range(n_samples):
            for _, k, _, (f, e) in self._walk(rng, X, m):
                draws[:, k, s] = f if noise is None else f + np.sqrt(noise[:, k]) * e
        return draws

    def _walk(
        self, rng: np.random.Generator, X: Array, m: Array | None
    ) -> Iterator[tuple[int, int, Array, tuple[Array, Array]]]:
        """One joint draw of all outputs at the rows of X: place, output, table, and f with the standard
        normal numbers of its noise."""
        m = mean_block(self.mean_function, X, len(self.scale)) if m is None else m
        known, Z = self._known(X), np.empty((len(X), len(self.scale)))
        for place, k in enumerate(self.order):
            linked = self.linked[place]
            table = np.hstack([X, Z[:, list(self.order[:place])]]) if linked else X
            f = m[:, k] + self.scale[k] * self.parts[place].sample(rng, table, 1)[:, 0, 0]
            e = rng.standard_normal(len(X))
            drawn = (f + np.sqrt(self.noise[k]) * e - self.centre[k]) / self.scale[k]
            Z[:, k] = np.where(np.isnan(known[:, k]), drawn, known[:, k])
            yield place, k, table, (f, e)

    @cached_property
    def _places(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for i, x in enumerate(np.ascontiguousarray(self.X)):
            found.setdefault(x.tobytes(), []).append(i)
        return found

    def _known(self, X: Array) -> Array:
        """z at the rows of X that are rows of the fit, (n, q), of several equal ones their average; NaN
        where it is not known."""
        out = np.full((len(X), len(self.scale)), np.nan)
        for i, x in enumerate(np.ascontiguousarray(X, dtype=np.float64)):
            at = self._places.get(x.tobytes())
            if at is not None:
                Z = self.Z[at]
                seen = np.isfinite(Z)
                count = seen.sum(axis=0)
                out[i] = np.where(
                    count > 0, np.where(seen, Z, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan
                )
        return out

    def state(self, context: Context) -> ObjectState:
        states = [part.state(own) for part, own in zip(self.parts, context.links, strict=True)]
        told = {"kind": self.kind, "parts": [state.described for state in states]}
        return ObjectState(told, joined([state.arrays for state in states], "part"))

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> OutputChain:
        _, parts = entries(state.described, "posterior", "kind", "parts")
        parts, links = typed(parts, list, "parts"), context.links
        if not links or len(parts) != len(links):
            raise StateError(f"its posterior has {len(parts)} parts, but its chain {len(links)} outputs.")
        inside = zip(parts, of_parts(state.arrays, "part", len(parts)), links, strict=True)
        found = tuple(own.process(part, arrays) for part, arrays, own in inside)
        chain: OutputChain = replace(context.scheme, parts=found)
        return chain


def _normal(draws: int, q: int) -> Array:
    """Standard normal numbers, (draws, q): evenly spread, always the same."""
    if q <= qmc.Sobol.MAXDIM:
        points = qmc.Sobol(q, scramble=True, rng=np.random.default_rng(0)).random(draws)
    else:
        points = np.random.default_rng(0).random((draws, q))
    return ndtri(np.clip(points, 1e-9, 1 - 1e-9))
