r"""The bound of doubly stochastic variational inference on some of the rows, and its gradients, in JAX.

    h_0 = x,   h_l = h_(l-1) A_l + c_l + t_l g_l(r_l),   f_k = m_k(x) + s_k g_k(r_L)
    g_l(r) = phi_l(r)'v + e_l(r),   phi_l = L_l^-1 k_l(Z_l, r),   v ~ N(0, I) a priori

r_l is what layer l sees: h_(l-1), beside columns of x that are handed on. The inner layers have q(v) =
N(mu, R R'), the last one N(mu, B^-1). Given a row's r, each layer is Gaussian row by row,

    mean phi'mu,      variance [k(r, r) - |phi|^2]_+ + |R'phi|^2

so that h is drawn row by row, h = mean + sqrt(variance) * noise, and the bound is

    n / (b S) sum_(batch, S draws) E log p(y | f) - sum_l KL(q(v_l) || N(0, I))

whose average over draws and batches is that of all rows. The draws are functions of all parameters
(reparametrised), so that gradients are JAX's. With one layer there is nothing to draw, and it is the bound of
`inference/svgp`. The last q goes by natural gradients, from S = Phi' diag(lam) Phi and b = Phi'(g + lam (Phi
mu)) as there: slopes g and curvatures lam of each row are the gradients by its mean and variance.

Cost: S b m kernel values with gradient a layer (b m of the first), some S b m^2 (3 + W) flops a layer of
width W, and m^3 (1 + W). The outputs of an inner layer share their kernel and points, so that they share Phi.

Source: Salimbeni and Deisenroth 2017, equations 14 to 19; Salimbeni, Eleftheriadis and Hensman 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from gramian.arrays import Array
from gramian.engines.lowrank import NOISE_FLOOR
from gramian.forks import compiled
from gramian.inference.model import Data, Model
from gramian.likelihoods import Likelihood
from gramian.linalg.threads import one_blas_thread

JITTER = 1e-8  # of the mean diagonal, added to K_zz
LEAST_VAR = 1e-12  # of g: its root has a slope then


class Wiring(NamedTuple):
    """What a layer sees, from h of the layer below and x: [h, x[passed]] in the order `order`; the columns
    of x that the first layer's mean is of are `moved`."""

    moved: tuple[int, ...]
    passed: tuple[int, ...]
    order: tuple[int, ...]


class LayerWeights(NamedTuple):
    """What a search moves beside the parameters. All arrays of JAX or NumPy, a layer each."""

    Z: tuple[Any, ...]  # (m, columns of r): of all layers
    mu: tuple[Any, ...]  # (m, W): of the inner ones
    T: tuple[Any, ...]  # (W, m, m): R below the diagonal, its logarithm on it; above nothing is read


class Maps(NamedTuple):
    """The means of the inner layers, h A + c, and the units t of what is added to them; s, the units of f."""

    A: tuple[Any, ...]  # (W below, W)
    c: tuple[Any, ...]  # (W,)
    t: tuple[Any, ...]  # (W,)
    scale: Any  # (L,)


class LastWeights(NamedTuple):
    """q(v) of the last layer: mu (m, L) and L_B^-1 (L, m, m)."""

    mu: Any
    root: Any


class Batch(NamedTuple):
    """Rows as the program takes them."""

    X: Any  # (b, d)
    Y: Any  # (b, q), or (b, columns)
    added: Any  # (b,): variances beside those of Gaussian noise
    counted: Any  # (b,): what each row counts; zero where it fills a block


class DeepStep(NamedTuple):
    """What one batch gives: the expected log density, what the inner layers diverge from their prior, and
    the gradient of the first minus the second."""

    value: Any
    divergence: Any
    by_model: Any  # a bare model
    by_weights: LayerWeights
    S: Any  # (L, m, m)
    b: Any  # (L, m)


def roots(T: jax.Array) -> jax.Array:
    """R (W, m, m), lower triangular with a positive diagonal."""
    diagonal = jnp.diagonal(T, axis1=1, axis2=2)
    return jnp.tril(T, -1) + jnp.exp(diagonal)[:, :, None] * jnp.eye(T.shape[1], dtype=T.dtype)


def divergence(mu: jax.Array, T: jax.Array) -> jax.Array:
    """KL(N(mu, R R') || N(0, I)), summed over the outputs of a layer."""
    R = roots(T)
    logs = jnp.sum(jnp.diagonal(T, axis1=1, axis2=2))
    return 0.5 * (jnp.sum(R**2) + jnp.sum(mu**2) - mu.size) - logs


def features(kernel: Any, Z: jax.Array, r: jax.Array, jitter: Any) -> tuple[jax.Array, jax.Array]:
    """Phi' (m, n), and what it leaves out of k(r, r), (n,)."""
    K = kernel.cross(Z, Z)
    K = K + jitter * jnp.mean(jnp.diagonal(K)) * jnp.eye(K.shape[0], dtype=K.dtype)
    L = jnp.linalg.cholesky(0.5 * (K + K.T))
    P = solve_triangular(L, kernel.cross(r, Z).T, lower=True)  # Z second: k(r, z) is then r's and Z's alone
    return P, jnp.maximum(kernel.diagonal(r) - jnp.sum(P * P, axis=0), 0.0)


def inner(
    kernel: Any, Z: jax.Array, mu: jax.Array, T: jax.Array, r: jax.Array, jitter: Any
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of an inner layer's g at rows, (n, W) each."""
    P, outside = features(kernel, Z, r, jitter)
    V = jnp.einsum("wij,in->wjn", roots(T), P)
    return P.T @ mu, (outside[:, None] + jnp.sum(V * V, axis=1).T)


def seen(wiring: Wiring, h: jax.Array, X: jax.Array) -> jax.Array:
    """What a layer sees: rows of h, for S draws of the rows of X one after the other."""
    if wiring.passed:
        draws = h.shape[0] // X.shape[0]
        h = jnp.concatenate([h, jnp.tile(X[:, jnp.array(wiring.passed)], (draws, 1))], axis=1)
    return h if wiring.order == tuple(range(len(wiring.order))) else h[:, jnp.array(wiring.order)]


def kernels_of(model: Any) -> list[Any]:
    """One a layer, the first first."""
    return [model.kernel, *(layer.kernel for layer in model.deeper)]


def hidden(
    wiring: tuple[Wiring, ...],
    model: Any,
    weights: LayerWeights,
    maps: Maps,
    X: jax.Array,
    noise: Any,
    jitter: Any,
) -> list[jax.Array]:
    """What each layer sees, the first X; (S b, columns) of the others, one draw after the other. `noise`:
    (S, b, W) an inner layer, or (S, 1, W) for the same in all rows."""
    kernels, found = kernels_of(model), [X]
    h = X[:, jnp.array(wiring[0].moved, dtype=int)] if noise else X
    for k, z in enumerate(noise):
        mean, var = inner(kernels[k], weights.Z[k], weights.mu[k], weights.T[k], found[-1], jitter)
        spread = jnp.sqrt(var + LEAST_VAR)
        shape = (-1, X.shape[0], mean.shape[1])
        moved = mean.reshape(shape) + spread.reshape(shape) * z  # (S, b, W)
        linear = (h @ maps.A[k] + maps.c[k]).reshape(shape)
        h = (linear + maps.t[k] * moved).reshape(-1, mean.shape[1])
        found.append(seen(wiring[k + 1], h, X))
    return found


def last(
    model: Any, Z: jax.Array, q: LastWeights, r: jax.Array, jitter: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean and variance of the last layer's g, (n, L) each, and Phi' (m, n)."""
    P, outside = features(kernels_of(model)[-1], Z, r, jitter)
    V = jnp.einsum("kij,jn->kin", q.root, P)
    return P.T @ q.mu, outside[:, None] + jnp.sum(V * V, axis=1).T, P


def log_densities(
    model: Any, maps: Maps, batch: Batch, location: jax.Array, var: jax.Array, floor: Any
) -> jax.Array:
    """E log p(y | f) of each row and draw, (S, b), of y / s; g is N(location, var), (S b, L) each."""
    likelihood: Likelihood = model.likelihood
    s, b = maps.scale, batch.X.shape[0]
    m = jnp.broadcast_to(model.mean.block(batch.X).reshape(b, -1), (b, s.shape[0]))
    location, var = (v.reshape(-1, b, s.shape[0]) for v in (location, var))
    if likelihood.conjugate:
        observed = jnp.isfinite(batch.Y)
        gap = (jnp.where(observed, batch.Y, m) - m) / s - location
        unit: Any = jnp.asarray(model.likelihood.unit)
        D = jnp.maximum(model.likelihood.noise * unit / s**2 + batch.added[:, None] / s**2, floor)
        terms = -0.5 * ((gap**2 + var) / D + jnp.log(2 * jnp.pi * D))
        return jnp.sum(jnp.where(observed, terms, 0.0), axis=2)
    y = likelihood.y_of(batch.Y)
    mean, spread = m + s * location, s**2 * jnp.maximum(var, LEAST_VAR)
    if likelihood.latents == 1:
        mean, spread = mean[..., 0], spread[..., 0]
    terms = jax.vmap(lambda mean, spread: likelihood.expected_log_prob(y, mean, spread))(mean, spread)
    return terms + jnp.log(s[0]) * float(likelihood.location)


@compiled(static=(0,))
def step(
    wiring: tuple[Wiring, ...],
    model: Model,
    weights: LayerWeights,
    maps: Maps,
    q: LastWeights,
    batch: Batch,
    noise: Any,
    share: Any,
    jitter: Any,
    floor: Any,
) -> DeepStep:
    """The bound on a batch, whose terms count `share` times, with its gradients; `floor`: the least noise."""

    def total(model: Any, weights: LayerWeights, at: jax.Array, more: jax.Array) -> tuple[jax.Array, Any]:
        r = hidden(wiring, model, weights, maps, batch.X, noise, jitter)[-1]
        location, var, P = last(model, weights.Z[-1], q, r, jitter)
        terms = log_densities(model, maps, batch, location + at, var + more, floor)
        value = share * jnp.sum(terms * batch.counted) / terms.shape[0]
        apart = sum((divergence(mu, T) for mu, T in zip(weights.mu, weights.T, strict=True)), jnp.zeros(()))
        return value - apart, (value, apart, location, P)

    rows = batch.X.shape[0] * (noise[0].shape[0] if noise else 1)
    nothing = jnp.zeros((rows, maps.scale.shape[0]))
    graded = jax.value_and_grad(total, argnums=(0, 1, 2, 3), has_aux=True)
    (_, (value, apart, location, P)), (by_model, by_weights, slope, by_var) = graded(
        model, weights, nothing, nothing
    )
    # curvatures of the wrong sign count as none, so that any step leaves q a Gaussian
    curve = jnp.maximum(-2 * by_var, 0.0)
    S = jnp.einsum("kin,jn->kij", P[None] * curve.T[:, None, :], P)
    return DeepStep(value, apart, by_model, by_weights, S, (P @ (slope + curve * location)).T)


@compiled(static=(0,))
def row_terms(
    wiring: tuple[Wiring, ...],
    model: Model,
    weights: LayerWeights,
    maps: Maps,
    q: LastWeights,
    batch: Batch,
    noise: Any,
    jitter: Any,
    floor: Any,
) -> jax.Array:
    """E log p(y | f) of each row and draw, (S, b)."""
    r = hidden(wiring, model, weights, maps, batch.X, noise, jitter)[-1]
    location, var, _ = last(model, weights.Z[-1], q, r, jitter)
    return log_densities(model, maps, batch, location, var, floor)


@compiled(static=(0,))
def answers(
    wiring: tuple[Wiring, ...],
    model: Model,
    weights: LayerWeights,
    maps: Maps,
    q: LastWeights,
    X: jax.Array,
    noise: Any,
    jitter: Any,
) -> tuple[jax.Array, jax.Array, tuple[jax.Array, ...]]:
    """Mean and variance of f for each draw of the layers below, (S, b, L) each, and what layers after the
    first see, (S, b, columns)."""
    seen_by = hidden(wiring, model, weights, maps, X, noise, jitter)
    location, var, _ = last(model, weights.Z[-1], q, seen_by[-1], jitter)
    s, b = maps.scale, X.shape[0]
    m = jnp.broadcast_to(model.mean.block(X).reshape(b, -1), (b, s.shape[0]))
    location, var = (v.reshape(-1, b, s.shape[0]) for v in (location, var))
    return m + s * location, s**2 * var, tuple(r.reshape(-1, b, r.shape[1]) for r in seen_by[1:])


def batch_of(rows: Data, room: int | None = None) -> Batch:
    """Rows as a program takes them; `room`: so many of them, the last ones copies that do not count."""
    b = len(rows.X)
    order = np.arange(b if room is None else room) % b
    added = np.zeros(b) if rows.added_noise is None else rows.added_noise
    counted: Array = (np.arange(len(order)) < b).astype(np.float64)
    X, Y = (np.asarray(v, dtype=np.float64)[order] for v in (rows.X, rows.Y))
    return Batch(X, Y, np.asarray(added, dtype=np.float64)[order], counted)


def floor_of(model: Model, n: int) -> float:
    """The least noise, in units of the scale squared: what sums over n rows can tell from nothing."""
    return NOISE_FLOOR * n if model.likelihood.conjugate else 0.0


@contextmanager
def programs() -> Iterator[None]:
    """Where programs of deep models run: in 64 bits."""
    with one_blas_thread(), jax.enable_x64(True):
        yield
