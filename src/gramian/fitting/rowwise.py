"""Many small searches side by side: one for each row, none of which sees the others.

BFGS with backtracking in p unknowns a row, all rows in step: one call of the objective serves all rows that
are still at work. What a row does depends on nothing but itself, so that it ends where it would have ended
alone. Source: Nocedal and Wright 2006, algorithm 6.1, with H_0 scaled as in their equation 6.20.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian import clock
from gramian.arrays import Array, Indices

SUFFICIENT = 1e-4  # of the gain that the slope promises
HALVINGS = 25  # of a step before a row counts as finished
FIRST = 0.5  # length of the first step, at most


def maximise_rows(
    objective: Callable[[Array, Indices], tuple[Array, Array]],
    start: Array,
    iterations: int = 300,
    slope: float = 1e-7,
) -> tuple[Array, Array]:
    """Where each row of `start` (r, p) ends, and the value there. `objective(x, rows)` gives values (k,) and
    slopes (k, p) at the places x (k, p) of these rows. A row is finished when no slope of it is above `slope`
    times its value, or no step gains. At the end of the time all are."""
    r, p = start.shape
    x, every = start.copy(), np.arange(r)
    value, gradient = objective(x, every)
    H = np.broadcast_to(np.eye(p), (r, p, p)).copy()
    fresh, active = np.ones(r, bool), np.isfinite(value)
    for _ in range(iterations):
        small = np.max(np.abs(gradient), axis=1) <= slope * np.maximum(1.0, np.abs(value))
        active &= ~small
        rows = np.flatnonzero(active)
        if not len(rows) or clock.over():
            break
        g = gradient[rows]
        step = np.einsum("rij,rj->ri", H[rows], g)
        rise = np.einsum("ri,ri->r", step, g)
        lost = ~(rise > 0)  # rounding: along the slope instead
        step[lost], rise[lost] = g[lost], np.einsum("ri,ri->r", g[lost], g[lost])
        H[rows[lost]], fresh[rows[lost]] = np.eye(p), True
        long = np.linalg.norm(step, axis=1)
        t = np.where(fresh[rows], np.minimum(1.0, FIRST / np.maximum(long, 1e-300)), 1.0)
        waiting = np.arange(len(rows))
        moved = np.zeros(len(rows), bool)
        new_value, new_gradient, new_x = value[rows].copy(), g.copy(), x[rows].copy()
        for _ in range(HALVINGS):
            trial = x[rows[waiting]] + t[waiting, None] * step[waiting]
            f, df = objective(trial, rows[waiting])
            good = f >= value[rows[waiting]] + SUFFICIENT * t[waiting] * rise[waiting]
            good &= np.isfinite(f) & np.all(np.isfinite(df), axis=1)
            at = waiting[good]
            new_value[at], new_gradient[at], new_x[at], moved[at] = f[good], df[good], trial[good], True
            waiting = waiting[~good]
            t[waiting] /= 2
            if not len(waiting):
                break
        # a row that cannot gain from a fresh start is finished; another tries one
        stuck = rows[~moved]
        active[stuck[fresh[stuck]]] = False
        H[stuck], fresh[stuck] = np.eye(p), True
        s, u = new_x - x[rows], g - new_gradient  # of the negative: a function to be made small
        x[rows], value[rows], gradient[rows] = new_x, new_value, new_gradient
        su, uu = np.einsum("ri,ri->r", s, u), np.einsum("ri,ri->r", u, u)
        curved = moved & (su > 1e-12 * np.sqrt(uu * np.einsum("ri,ri->r", s, s)))
        _update(H, rows[curved], s[curved], u[curved], su[curved], uu[curved], fresh)
    return x, value


def _update(H: Array, rows: Indices, s: Array, u: Array, su: Array, uu: Array, fresh: Array) -> None:
    """H <- (I - s u' / su) H (I - u s' / su) + s s' / su."""
    new = fresh[rows]
    H[rows[new]] *= (su[new] / uu[new])[:, None, None]
    fresh[rows] = False
    Hu = np.einsum("rij,rj->ri", H[rows], u)
    factor = (1 + np.einsum("ri,ri->r", u, Hu) / su) / su
    cross = s[:, :, None] * Hu[:, None, :] / su[:, None, None]
    H[rows] += factor[:, None, None] * s[:, :, None] * s[:, None, :] - cross - np.swapaxes(cross, 1, 2)
