"""Many small Gaussians side by side, in one compiled program: each row given its neighbours, as gram/nearby.

The last axis goes over the rows, so that whatever is done to a number of a matrix is done to that of as many
rows as a vector register has room for. Columns are made in panels of PANEL, left to right: the kernel values
of a panel, minus the products of the panels before it (of one triangle alone: m^3 / 3 flops), then Cholesky's
columns within. Residuals are rows below the matrix, of which the factor makes L^-1 r.

XLA would fuse a panel into all that use it, and make it again in each of their loops; a branch is what it
does not fuse across (see kernels/distance.py). The loops of a panel sum up products of numbers in a core's
cache, as many terms as there are columns before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from gramian.forks import compiled
from gramian.kernels.base import Kernel

PANEL = 5  # columns
Panels = list[jax.Array]  # of L': (rows from the panel on, then residuals; its columns; B)


@compiled(static=(0,))
def given(solved: bool, kernel: Kernel, X: jax.Array, D: jax.Array, R: jax.Array) -> Any:
    """For points X (d, G, B), noise D (G, B) and residuals R (q, G, B) of B rows, themselves last: F without
    the row's own noise, (B,), NaN where a pivot is not positive; e (q, B); b, and with `solved` the columns
    of c below it, (1 + q, m, B)."""
    X, q, m = jnp.swapaxes(X, 0, 1), len(R), len(D) - 1
    panels: Panels = []
    for p in range(0, m, PANEL):
        panels.append(_apart(_panel, kernel, X[p:], D[p:], R[:, p : min(p + PANEL, m)], panels))
    last = jnp.concatenate([P[-1 - q :] for P in panels], axis=1)  # (1 + q, m, B): of k_N, and of r_N
    F = kernel.diagonal(X[-1].T) - jnp.sum(last[0] ** 2, axis=0)
    e = R[:, -1] - jnp.sum(last[0] * last[1:], axis=1)
    return jnp.where(F + D[-1] > 0, F, jnp.nan), e, _back(panels, last if solved else last[:1])


def _apart(program: Callable[..., Any], kernel: Any, *arrays: Any) -> Any:
    """program(kernel, *arrays), made once and kept."""
    like = jax.eval_shape(program, kernel, *arrays)
    number = arrays[0].reshape(-1)[0]

    def nowhere(*_: Any) -> jax.Array:
        return jnp.full(like.shape, jnp.nan, like.dtype)

    return jax.lax.cond(number == number, program, nowhere, kernel, *arrays)


def _panel(kernel: Kernel, X: jax.Array, D: jax.Array, R: jax.Array, before: Panels) -> jax.Array:
    w = R.shape[1]
    S = _apart(_values, kernel, X, D[:w], R)
    S = _apart(_less, None, S, before) if before else S
    columns: list[jax.Array] = []
    for k in range(w):
        column = S[:, k]
        for own in columns:
            column = column - own * own[k]
        columns.append(column / jnp.sqrt(column[k]))
    return jnp.stack(columns, axis=1)


def _values(kernel: Kernel, X: jax.Array, D: jax.Array, R: jax.Array) -> jax.Array:
    """Of a panel of K + D, and the residuals below."""
    w = R.shape[1]
    noisy = kernel.cross(X, X[:w]) + jnp.eye(len(X), w)[:, :, None] * D[None]
    return jnp.concatenate([noisy, R])


def _less(_: None, S: jax.Array, before: Panels) -> jax.Array:
    """Minus the products of the panels before."""
    w = S.shape[1]
    for P in before:
        own = P[len(P) - len(S) :]
        for j in range(P.shape[1]):
            S = S - own[:, j, None] * own[None, :w, j]
    return S


def _back(panels: Panels, right: jax.Array) -> jax.Array:
    """L_NN'^-1 of right-hand sides (k, m, B), a panel at a time from the last."""
    found: list[jax.Array] = []
    for P in reversed(panels):
        w = P.shape[1]
        end = right.shape[1] - sum(part.shape[1] for part in found)
        found.insert(0, _apart(_back_panel, None, right[:, end - w : end], P, found))
    return jnp.concatenate(found, axis=1)


def _back_panel(_: None, y: jax.Array, P: jax.Array, after: Panels) -> jax.Array:
    w, row = P.shape[1], P.shape[1]
    for x in after:
        for j in range(x.shape[1]):
            y = y - x[:, j, None] * P[None, row]
            row += 1
    columns: list[jax.Array] = []
    for k in reversed(range(w)):
        own = y[:, k]
        for j, x in zip(range(k + 1, w), columns, strict=True):
            own = own - x * P[j, k]
        columns.insert(0, own / P[k, k])
    return jnp.stack(columns, axis=1)
