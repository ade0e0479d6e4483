r"""The joint density of latent variables and parameters as one JAX function, for MCMC.

With t for the trainable parameters, theta(t) their values, and v (m, L) for the latent functions, a priori
N(0, I),

    f_k = m_k(X) + s_k R v_k,    R R' = K(X, X) + jitter, or R = Phi of a feature basis
    log p(t, v) = sum_i log p(y_i | f_i) + log N(v; 0, I) + log p(theta(t)) + log |d theta / d t|

Where the data say much, v must move with the parameters, and a sampler in these coordinates is slow. So a
position is (t, z) instead. With Gaussian sites exp(b_i f_i - W_i f_i^2 / 2), chosen in the warm-up and then
held, in place of the likelihood, v given t would be N(A^-1 c, A^-1), and

    v = U^-T (U^-1 c + z),    A = I + s^2 R' W R = U U',    c = s R' (b - W m)

is its standard form: as far as the sites are right, z is N(0, I) whatever t, and t moves as if f were
integrated out. This change of coordinates, with the factor 1 / det U, is exact for any sites (Murray and
Adams 2010, with sites that stay in place of random ones). Under Gaussian noise f is integrated out, and a
position is t alone:

    log p(t) = sum_k log N(r_k; 0, K + D_k) + log p(theta(t)) + log |d theta / d t|,    r = (y - m) / s.

Cost of a gradient: about 15 n^3 flops, with m features 4 n m^2 and 15 m^3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.features.base import Basis
from gramian.features.fourier import _features, _spectrum
from gramian.inference.mcmc.unconstrained import Slot, log_normal, number, slot_of
from gramian.inference.model import Data, Model, noise_groups
from gramian.kernels.base import Kernel
from gramian.params.tree import leaves

# of the mean diagonal, added to K: its factor exists at all parameters a chain may try, and draws of f change
# by 1e-4 of their spread
JITTER = 1e-8
# the standard deviation of a parameter without a prior, in units of u: a factor of 7 for a positive one
SPREAD = 2.0


class CurveSites(NamedTuple):
    """Gaussians exp(b f - W f^2 / 2) in place of the likelihood's terms: (n, L) each."""

    W: Any
    b: Any


Conditioned = list[tuple[jax.Array, jax.Array]]  # U (m, m) and U^-1 c (m,) of each latent


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["model", "X", "Y", "scale", "noise_var", "centre", "spread", "basis"],
    meta_fields=["slots", "kind", "counts", "groups", "marginal"],
)
@dataclass(frozen=True, eq=False)
class TracedProblem:
    """A model and data, as JAX sees them: arrays, and beside them what a compiled program depends on."""

    model: Any  # bare
    X: Any  # (n, d)
    Y: Any  # (n, q), or (n, columns)
    scale: Any  # (L,)
    noise_var: Any  # (n,)
    centre: Any  # (p,): of the default priors, in u
    spread: Any  # (p,)
    basis: Any  # (Z,), or what Fourier features are made of
    slots: tuple[Slot, ...]
    kind: str  # dense, landmarks, fourier
    counts: tuple[int, ...]  # frequencies of each wave
    groups: tuple[tuple[int, ...], ...]  # outputs with the same noise, where f is integrated out
    marginal: bool

    @property
    def size(self) -> int:
        """Entries of t."""
        return sum(slot.size for slot in self.slots)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """(m, L) of v; nothing where f is integrated out."""
        if self.marginal:
            return 0, len(self.scale)
        if self.kind == "fourier":
            return self.basis[3].size, len(self.scale)
        return len(self.X) if self.kind == "dense" else len(self.basis[0]), len(self.scale)

    @property
    def dimension(self) -> int:
        rows, columns = self.latent_shape
        return self.size + rows * columns

    def split(self, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """t and z (or v)."""
        return position[: self.size], position[self.size :].reshape(self.latent_shape)

    def values(self, t: jax.Array) -> list[jax.Array]:
        """The trainable parameters' values."""
        return [slot.support.forward(slot.unwalled(piece)) for slot, piece in self._pieces(t)]

    def flat_values(self, t: jax.Array) -> jax.Array:
        return jnp.concatenate([jnp.ravel(value) for value in self.values(t)]) if self.size else t

    def at(self, t: jax.Array) -> TracedProblem:
        """The same with the parameters of t in the model."""
        arrays = list(leaves(self.model))
        for slot, value in zip(self.slots, self.values(t), strict=True):
            arrays[slot.place] = value
        return replace(self, model=self.model.with_parameters(arrays))

    def log_prior(self, t: jax.Array) -> jax.Array:
        """The log density of t: priors, or the defaults, and the Jacobians of the transforms."""
        total = jnp.zeros(())
        pieces = zip(*map(self._pieces, (t, self.centre, self.spread)), strict=True)
        for (slot, piece), (_, centre), (_, spread) in pieces:
            u = slot.unwalled(piece)
            total += slot.wall_jacobian(piece)
            if slot.prior is None:
                total += jnp.sum(log_normal((u - centre) / spread) - jnp.log(spread))
            else:
                total += slot.log_prior(u)
        return total

    def _pieces(self, t: jax.Array) -> list[tuple[Slot, jax.Array]]:
        ends = np.cumsum([slot.size for slot in self.slots], dtype=int)
        return [
            (slot, t[end - slot.size : end].reshape(slot.shape))
            for slot, end in zip(self.slots, ends, strict=True)
        ]

    def log_density(self, position: jax.Array, sites: CurveSites) -> jax.Array:
        """The log density of (t, z) and the data, up to a constant; minus infinity where it is no number."""
        t, z = self.split(position)
        here = self.at(t)
        if self.marginal:
            return number(here._log_marginal() + self.log_prior(t))
        roots = here.roots()
        v, logdet = to_latent(here.conditioned(roots, sites), z)
        fit = jnp.sum(here.log_likelihoods(here.latent(roots, v)))
        return number(fit + jnp.sum(log_normal(v)) - logdet + self.log_prior(t))

    def log_likelihoods(self, F: jax.Array) -> jax.Array:
        """log p(y_i | f_i), (n,), for f (n, L)."""
        if self.model.likelihood.conjugate:
            var = self._noise()
            return jnp.sum(log_normal((self.Y - F) / jnp.sqrt(var)) - 0.5 * jnp.log(var), axis=1)
        y = self.model.likelihood.y_of(self.Y)
        return self.model.likelihood.log_prob(y, F if self.model.likelihood.latents > 1 else F[:, 0])

    def _noise(self) -> jax.Array:
        """The variances of Gaussian noise, for each row and output."""
        return self.model.likelihood.noise * jnp.asarray(self.model.likelihood.unit) + self.noise_var[:, None]

    def roots(self) -> list[jax.Array]:
        """s_k R of each latent k, (n, m); latents with one kernel share R."""
        found: dict[int, jax.Array] = {}
        for kernel, latents in self.kernels():
            R = self.root(kernel)
            found |= {k: self.scale[k] * R for k in latents}
        return [found[k] for k in range(self.scale.shape[0])]

    def latent(self, roots: list[jax.Array], v: jax.Array) -> jax.Array:
        """f at the rows, (n, L)."""
        return self.mean() + jnp.stack([R @ v[:, k] for k, R in enumerate(roots)], axis=1)

    def sites(self, F: jax.Array) -> CurveSites:
        """Slope and curvature of log p(y_i | f) at f (n, L); a curvature of the wrong sign counts as none."""
        if self.model.likelihood.conjugate:
            var = jnp.broadcast_to(self._noise(), F.shape)
            return CurveSites(1 / var, self.Y / var)
        likelihood = self.model.likelihood
        f = F if likelihood.latents > 1 else F[:, 0]
        slope, bend = (part.reshape(F.shape) for part in likelihood.derivatives(likelihood.y_of(self.Y), f))
        W = jnp.maximum(-bend, 0.0)
        return CurveSites(W, slope + W * F)

    def conditioned(self, roots: list[jax.Array], sites: CurveSites) -> Conditioned:
        """U and U^-1 c of each latent: given the sites v ~ N(A^-1 c, A^-1), A = U U'."""
        prior = self.mean()
        parts = []
        for k, R in enumerate(roots):
            M = jnp.sqrt(sites.W[:, k])[:, None] * R
            U = _cholesky(jnp.eye(R.shape[1]) + M.T @ M)
            c = R.T @ (sites.b[:, k] - sites.W[:, k] * prior[:, k])
            parts.append((U, solve_triangular(U, c, lower=True)))
        return parts

    def root(self, kernel: Kernel) -> jax.Array:
        """R (n, m)."""
        if self.kind == "dense":
            return _cholesky(jittered(kernel, self.X))
        if self.kind == "fourier":
            return self._fourier(kernel)
        Z = self.basis[0]
        return solve_triangular(_cholesky(jittered(kernel, Z)), kernel.cross(Z, self.X), lower=True).T

    def _log_marginal(self) -> jax.Array:
        R = (self.Y - self.mean()) / self.scale
        D = jnp.broadcast_to(self._noise() / self.scale**2, R.shape)
        total, dense = jnp.zeros(()), self.kind == "dense"
        M = self.model.kernel.cross(self.X, self.X) if dense else self.root(self.model.kernel)
        for outputs in self.groups:
            r, noise = R[:, jnp.array(outputs)], D[:, outputs[0]]
            total += log_gaussian(M + jnp.diag(noise), r) if dense else _log_low_rank(M, noise, r)
        return total

    def mean(self) -> jax.Array:
        n, latents = self.X.shape[0], self.scale.shape[0]
        return jnp.broadcast_to(self.model.mean.block(self.X).reshape(n, -1), (n, latents))

    def kernels(self) -> list[tuple[Kernel, list[int]]]:
        return self.model.kernels_for(self.scale.shape[0])

    def _fourier(self, kernel: Kernel) -> jax.Array:
        draws, take, gain, shift, centre = self.basis
        host = tuple(tuple(() for _ in wave) for wave in draws)
        W, A = _spectrum(kernel, (draws, host, take, gain), self.counts, self.X.shape[1], jnp)
        return _features(self.X, centre, W, A, shift)


def to_latent(parts: Conditioned, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """v from z, and log det U, the logarithm of |dz / dv|."""
    columns, logdet = [], jnp.zeros(())
    for k, (U, half) in enumerate(parts):
        columns.append(solve_triangular(U, half + z[:, k], lower=True, trans=1))
        logdet += jnp.sum(jnp.log(jnp.diagonal(U)))
    return jnp.stack(columns, axis=1), logdet


def from_latent(parts: Conditioned, v: jax.Array) -> jax.Array:
    """z from v."""
    return jnp.stack([U.T @ v[:, k] - half for k, (U, half) in enumerate(parts)], axis=1)


def problem(
    model: Model, data: Data, basis: Basis | None = None, *, marginal: bool = False
) -> tuple[TracedProblem, Array]:
    """The problem, and the t of the model's own parameters."""
    n, q = data.Y.shape
    latents = q if model.likelihood.conjugate else model.likelihood.latents
    if len(data.scale) != latents:
        raise ParameterError(
            f"The data have {len(data.scale)} scales, but {type(model.likelihood).__name__} has {latents}"
            " latent functions here."
        )
    if data.noise_var is not None and not model.likelihood.conjugate:
        raise ParameterError(
            f"Known noise variances are for Gaussian noise; {type(model.likelihood).__name__} has its own."
        )
    slots, centres, spreads, starts = [], [], [], []
    for index, (path, p) in enumerate(model.parameters().items()):
        if p.trainable:
            slot = slot_of(index, path, p)
            u = np.asarray(slot.support.inverse(p.value))
            slots.append(slot)
            centres.append(u.ravel())
            starts.append(slot.walled(u).ravel())
            spreads.append(SPREAD * (1 + np.abs(u.ravel()) * slot.support.loose))
    centre, spread, start = (np.concatenate([np.zeros(0), *parts]) for parts in (centres, spreads, starts))
    X = np.ascontiguousarray(data.X, dtype=np.float64)
    Y, scale = np.asarray(data.Y, dtype=np.float64), np.asarray(data.scale, dtype=np.float64)
    noise_var = np.zeros(n) if data.noise_var is None else data.noise_var
    kind, arrays, counts = _basis(model, basis)
    groups = _groups(model, data) if marginal else ()
    arguments = (X, Y, scale, noise_var, centre, spread, arrays, tuple(slots), kind, counts, groups, marginal)
    return TracedProblem(model.bare(), *arguments), start


def _groups(model: Model, data: Data) -> tuple[tuple[int, ...], ...]:
    """The outputs whose noise stays the same wherever a chain goes."""
    noise = model.gaussian.noise
    if noise.trainable and noise.value.ndim:
        return tuple((k,) for k in range(len(data.scale)))
    return tuple(tuple(group.outputs) for group in noise_groups(model, data))


def _basis(model: Model, basis: Basis | None) -> tuple[str, Any, tuple[int, ...]]:
    if basis is None:
        return "dense", (), ()
    return basis.traced(model.kernel, bool(model.others))


@jax.custom_vjp
def log_gaussian(A: jax.Array, r: jax.Array) -> jax.Array:
    """sum_q log N(r_q; 0, A); its gradients are (alpha alpha' - q A^-1) / 2 and -alpha, alpha = A^-1 r."""
    return _log_gaussian_forward(A, r)[0]


def _log_gaussian_forward(A: jax.Array, r: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    L = _cholesky(A)
    half = solve_triangular(L, r, lower=True)
    logdet = jnp.sum(jnp.log(jnp.diagonal(L))) + 0.5 * r.shape[0] * math.log(2 * math.pi)
    return -0.5 * jnp.sum(half**2) - r.shape[1] * logdet, (L, half)


def _log_gaussian_backward(
    saved: tuple[jax.Array, jax.Array], weight: jax.Array
) -> tuple[jax.Array, jax.Array]:
    L, half = saved
    inverse = solve_triangular(L, jnp.eye(L.shape[0]), lower=True)
    alpha = inverse.T @ half
    return 0.5 * weight * (alpha @ alpha.T - half.shape[1] * inverse.T @ inverse), -weight * alpha


log_gaussian.defvjp(_log_gaussian_forward, _log_gaussian_backward)


def _log_low_rank(Phi: jax.Array, D: jax.Array, r: jax.Array) -> jax.Array:
    """sum_q log N(r_q; 0, Phi Phi' + D), with B = I + Phi' D^-1 Phi, as in `engines/lowrank.py`."""
    root = jnp.sqrt(D)[:, None]
    scaled, z = Phi / root, r / root
    L = jnp.linalg.cholesky(jnp.eye(Phi.shape[1]) + scaled.T @ scaled)
    half = solve_triangular(L, scaled.T @ z, lower=True)
    logdet = jnp.sum(jnp.log(jnp.diagonal(L))) + 0.5 * jnp.sum(jnp.log(D))
    constant = 0.5 * r.shape[0] * math.log(2 * math.pi)
    return -0.5 * (jnp.sum(z**2) - jnp.sum(half**2)) - r.shape[1] * (logdet + constant)


def jittered(kernel: Kernel, X: jax.Array) -> jax.Array:
    K = kernel.cross(X, X)
    return K + JITTER * jnp.mean(jnp.diagonal(K)) * jnp.eye(K.shape[0])


def _cholesky(A: jax.Array) -> jax.Array:
    return jax.lax.linalg.cholesky(A, symmetrize_input=False)
