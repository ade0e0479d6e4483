"""f after data, or before: a mixture over draws of the layers below.

At a row each layer is Gaussian given what it sees, so that with S draws of the inner layers f there is an
even mixture of S Gaussians. The same draws serve all rows (evenly spread normal numbers), so that a row has
the same answer in whatever table it stands, and curves are smooth. What joins several rows, covariances and
draws of whole functions, is drawn jointly through the layers: one n x n factor a layer and draw, n^3 / 3
flops each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from gramian.arrays import Array
from gramian.deep import bound
from gramian.deep.bound import JITTER
from gramian.gram import tiles
from gramian.inference.model import Model
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg.state import ObjectState, entries
from gramian.processes.base import Process, semidefinite_root, with_noise
from gramian.processes.prior import mean_block
from gramian.processes.state import Context

if TYPE_CHECKING:
    from gramian.deep.scheme import DeepVariational

ROWS = 64  # of a program
JOINT = 200  # draws that a covariance of several rows is averaged over


@dataclass(frozen=True, eq=False)
class DeepProcess(Process):
    """Layers with their q."""

    kind: ClassVar[str] = "deep"

    found: DeepVariational
    model: Model
    scale: Array  # (L,)

    @property
    def kernel(self) -> Kernel:
        """That of the first layer, which sees the data."""
        return self.model.kernel

    @property
    def landmarks(self) -> Array:
        return self.found.Z[0]

    def draws(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f at the rows of X for each draw of the inner layers: (S, n, L) each."""
        mean, var, _ = self._answers(X)
        return mean, var

    def layers(self, X: Array) -> tuple[Array, ...]:
        """What each layer after the first sees at the rows of X, in each draw: (S, n, columns) each."""
        return self._answers(X)[2]

    def mean(self, X: Array) -> Array:
        return np.mean(self.draws(X)[0], axis=0)

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.draws(X)
        return np.mean(mean, axis=0), np.mean(var, axis=0) + np.var(mean, axis=0)

    def under(self, likelihood: Likelihood, X: Array) -> Iterator[tuple[Likelihood, Array, Array]]:
        for mean, var in zip(*self.draws(X), strict=True):
            yield likelihood, mean, var

    def cov(self, X: Array) -> Array:
        rng, n = np.random.default_rng(0), len(X)
        means = np.empty((JOINT if self.found.mu else 1, n, len(self.scale)))
        total = np.zeros((n, n, len(self.scale)))
        for mean in means:
            P, rest = self._last_layer(self._seen_jointly(rng, X))
            mean[...] = P.T @ self.found.last_mu
            for k, root in enumerate(self.found.last_root):
                V = root @ P
                total[:, :, k] += rest + V.T @ V
        off = means - np.mean(means, axis=0)
        total = (total + np.einsum("sik,sjk->ijk", off, off)) / len(means) * self.scale**2
        np.einsum("iik->ik", total)[...] = self.moments(X)[1]
        return total

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        n, L = len(X), len(self.scale)
        draws = np.empty((n, L, n_samples))
        m = mean_block(self.model.mean, X, L)
        for s in range(n_samples):
            P, rest = self._last_layer(self._seen_jointly(rng, X))
            z = np.einsum("kij,ik->jk", self.found.last_root, rng.standard_normal(self.found.last_mu.shape))
            free = semidefinite_root(rest) @ rng.standard_normal((n, L))
            draws[:, :, s] = m + self.scale * (P.T @ (self.found.last_mu + z) + free)
        return with_noise(draws, noise, rng)

    def joint_layers(self, rng: np.random.Generator, X: Array) -> list[Array]:
        """One draw of all layers at the rows of X: what each of them sees, then f."""
        seen = self._all_seen(rng, X)
        P, rest = self._last_layer(seen[-1])
        z = np.einsum("kij,ik->jk", self.found.last_root, rng.standard_normal(self.found.last_mu.shape))
        g = P.T @ (self.found.last_mu + z)
        g = g + semidefinite_root(rest) @ rng.standard_normal(g.shape)
        return [*seen, mean_block(self.model.mean, X, len(self.scale)) + self.scale * g]

    def state(self, context: Context) -> ObjectState:
        """Nothing but its kind: all of it is the method's."""
        return ObjectState({"kind": self.kind}, {})

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> DeepProcess:
        entries(state.described, "posterior", "kind")
        return cls(context.scheme, context.model, np.asarray(context.prior.scale))

    # Helpers. -----------------------------------------------------------------------------------------------

    def _answers(self, X: Array) -> tuple[Array, Array, tuple[Array, ...]]:
        found, bare = self.found, self.model.bare()
        noise, maps, parts = found.noise(found.samples), found.maps(self.scale), []
        with bound.programs():
            for start in range(0, len(X), ROWS):
                block = np.asarray(X[start : start + ROWS], dtype=np.float64)
                table = block[np.arange(ROWS) % len(block)]
                answer = bound.answers(
                    found.wiring, bare, found.weights, maps, found.last, table, noise, JITTER
                )
                mean, var, seen = answer
                own = len(block)
                parts.append([np.asarray(v)[:, :own] for v in (mean, var, *seen)])
        mean, var, *seen = (np.concatenate(pieces, axis=1) for pieces in zip(*parts, strict=True))
        return mean, var, tuple(seen)

    @cached_property
    def _roots(self) -> list[Array]:
        """L of each layer."""
        found: list[Array] = []
        for kernel, Z in zip(bound.kernels_of(self.model), self.found.Z, strict=True):
            K = tiles.cross(kernel, Z, Z)
            K = 0.5 * (K + K.T) + JITTER * np.mean(np.diagonal(K)) * np.eye(len(K))
            found.append(np.asarray(np.linalg.cholesky(K), dtype=np.float64))
        return found

    def _layer(self, k: int, r: Array) -> tuple[Array, Array]:
        """Phi' (m, n) of the k-th layer, and the covariance of what it leaves out, (n, n)."""
        kernel = bound.kernels_of(self.model)[k]
        K = tiles.cross(kernel, r, self.found.Z[k]).T
        P: Array = solve_triangular(self._roots[k], K, lower=True, check_finite=False)
        K = tiles.cross(kernel, r, r)
        rest = 0.5 * (K + K.T) - P.T @ P
        np.fill_diagonal(rest, np.maximum(np.diagonal(rest), 0.0))
        return P, rest

    def _last_layer(self, r: Array) -> tuple[Array, Array]:
        return self._layer(len(self.found.Z) - 1, r)

    @cached_property
    def _inner_roots(self) -> list[Array]:
        """R of each inner layer, (W, m, m)."""
        logs = [np.einsum("wii->wi", T)[:, :, None] for T in self.found.T]
        pairs = zip(self.found.T, logs, strict=True)
        return [np.tril(T, -1) + np.exp(own) * np.eye(T.shape[1]) for T, own in pairs]

    def _seen_jointly(self, rng: np.random.Generator, X: Array) -> Array:
        return self._all_seen(rng, X)[-1]

    def _all_seen(self, rng: np.random.Generator, X: Array) -> list[Array]:
        """A joint draw of what each layer sees at all rows of X."""
        found, seen = self.found, [X]
        h = X[:, list(found.moved)]
        for k, mu in enumerate(found.mu):
            P, rest = self._layer(k, seen[-1])
            v = mu + np.einsum("wij,jw->iw", self._inner_roots[k], rng.standard_normal(mu.shape))
            g = P.T @ v + semidefinite_root(rest) @ rng.standard_normal((len(X), mu.shape[1]))
            h = h @ found.A[k] + found.c[k] + found.t[k] * g
            wiring = found.wiring[k + 1]
            seen.append(np.concatenate([h, X[:, list(wiring.passed)]], axis=1)[:, list(wiring.order)])
        return seen

    @classmethod
    def of(cls, found: DeepVariational, model: Model, scale: Array) -> DeepProcess:
        return cls(found, model, np.broadcast_to(scale, (found.last_mu.shape[1],)).copy())
