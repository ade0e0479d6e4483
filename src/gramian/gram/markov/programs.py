"""The programs: one for a kernel's structure, a number of chunks and of right-hand sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.forks import compiled
from gramian.gram.markov.matrices import (
    Mat,
    added,
    columns_added,
    dot,
    in_columns,
    kept_mv,
    kept_on,
    mt,
    mv,
    outer,
    read_off,
    scaled,
    scaled_all,
    squared,
    sym,
    unrolled,
    weighed,
)
from gramian.gram.markov.steps import Shapes, Smooth, Steps
from gramian.kernels.base import Kernel
from gramian.kernels.statespace import vector

LENGTH = 256  # rows of a chunk
SEGMENT = 16  # rows whose covariances a gradient holds at a time; its square is LENGTH


class Rows(NamedTuple):
    """Of the chunks of a piece, one row of the arrays each; times, sites and right-hand sides."""

    first: Any  # (c,): 1 for the chunk with the first of all rows, else 0
    before: Any  # (c,): the time of the row before
    t: Any  # (c, LENGTH)
    a: Any
    b: Any
    z: Any  # (c, LENGTH, q)

    def along(self) -> tuple[jax.Array, ...]:
        """For a scan: the time before each row, and its own; a, b, z (LENGTH, q, c)."""
        t = self.t.T
        s = jnp.concatenate([self.before[None], t[:-1]])
        return s, t, self.a.T, self.b.T, jnp.transpose(self.z, (1, 2, 0))

    def segments(self) -> tuple[jax.Array, ...]:
        """The same in segments of rows."""
        return jax.tree_util.tree_map(lambda x: x.reshape(-1, SEGMENT, *x.shape[1:]), self.along())


class Element(NamedTuple):
    """What a chunk does to the state before it."""

    Psi: Any  # (s, s, c)
    c: Any  # (s, q, c)
    C: Any  # (s, s, c)
    J: Any  # (s, s, c)
    eta: Any  # (s, q, c)
    logdet: Any  # (c,)
    negative: Any  # (c,): how many F are negative
    quad: Any  # (q, c): of the sites with theta = 0


class Ends(NamedTuple):
    """What is known at both ends of each chunk."""

    m: Any  # (s, q, c): of the state before it, by the rows before
    P: Any
    ell: Any  # (s, q, c): of the state at its end, by the rows after
    N: Any


def _shapes(d: int, terms: int, kernel: Kernel, rows: Rows) -> Shapes:
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    return Shapes(form, rows.t.shape[0], rows.z.shape[2])


def _first(shapes: Shapes, rows: Rows) -> jax.Array:
    """P before the first of all rows, where theta is no unknown but x ~ N(0, P), and 0 before the others."""
    return shapes.dense(shapes.covariance(rows.before)) * rows.first


class _Filtered(NamedTuple):
    m: Mat  # m-
    P: Mat  # P-
    H: Mat
    u: Mat
    F: jax.Array
    w: jax.Array  # (q, c)


def _forward(step: Any, m: Mat, P: Mat, site: tuple[jax.Array, ...]) -> _Filtered:
    """Before the site of a row is counted."""
    a, b, z = site
    m, P, H = step.on(m), step.around(P), step.H
    u = mv(P, H)
    return _Filtered(m, P, H, u, b + a * dot(H, u), z - a * read_off(H, m))


def _seen(at: _Filtered, a: jax.Array) -> tuple[Mat, Mat]:
    """m and P after it."""
    weight = 1 / at.F
    m = columns_added(at.m, in_columns(at.u, at.w * weight))
    return m, added(at.P, squared(at.u, -a * weight))


def _backward(H: Mat, u: Mat, F: jax.Array, w: jax.Array, a: jax.Array, ell: Mat, N: Mat) -> Any:
    """Of a row, from ell and N after it: ell- and N-, alpha and the diagonal of A^-1."""
    weight = 1 / F
    share, Nu = a * weight, kept_mv(N, u)
    alpha = w * weight + share * read_off(u, ell)
    mixed, known = outer(H, scaled(Nu, -share)), share + share**2 * dot(u, Nu)
    N = sym(added(added(N, added(mixed, mt(mixed))), outer(H, scaled(H, known))))
    return columns_added(ell, in_columns(H, -alpha)), N, alpha, known


@compiled(static=(0, 1))
def elements(d: int, terms: int, kernel: Kernel, rows: Rows) -> Element:
    shapes = _shapes(d, terms, kernel, rows)
    s, q, c = shapes.form.size, shapes.q, shapes.c

    def over_segment(carry: Any, segment: Any) -> Any:
        before, t, a, b, z = segment
        steps = shapes.steps(before, t)

        def one(carry: Any, row: Any) -> Any:
            M, m, P = shapes.matrix(carry[0]), shapes.columns(carry[1]), shapes.half(carry[2])
            step = steps.at(row[0])
            at, M = _forward(step, m, P, row[1]), step.times(M)
            HM = mv(mt(M), at.H)
            M = added(M, outer(at.u, scaled(HM, -row[1][0] / at.F)))
            m, P = _seen(at, row[1][0])
            return (shapes.packed(M), list_of(m), shapes.packed_half(P)), (shapes.packed(HM), at.F, at.w)

        state, (HM, F, w) = jax.lax.scan(one, carry[:3], (steps.arrays, (a, b, z)))
        weight = 1 / F
        J, eta, logdet, negative, quad = carry[3:]
        by_site = jnp.where(a == 0, 0.0, weight / jnp.where(a == 0, 1.0, a))
        J = J + shapes.summed_squares(HM, a * weight)
        eta = eta + shapes.summed_columns(HM, w * weight[:, None])
        logdet = logdet + jnp.sum(jnp.log(jnp.abs(F)), axis=0)
        negative = negative + jnp.sum(F < 0, axis=0)
        quad = quad + jnp.sum(w**2 * by_site[:, None], axis=0)
        return (*state, J, eta, logdet, negative, quad), None

    eye = shapes.square(jnp.broadcast_to(jnp.eye(s)[:, :, None], (s, s, c)))
    start = shapes.square(_first(shapes, rows))
    empty = jnp.zeros((s, q, c))
    begin = shapes.packed(eye), list_of(shapes.columns(empty)), shapes.packed_half(start)
    zero = jnp.zeros((s, s, c)), empty, jnp.zeros(c), jnp.zeros(c), jnp.zeros((q, c))
    M, m, P, J, *sums = jax.lax.scan(over_segment, (*begin, *zero), rows.segments())[0]
    return Element(shapes.dense(shapes.matrix(M)), jnp.asarray(m), shapes.dense(shapes.half(P)), J, *sums)


def list_of(m: Mat) -> Any:
    """For a carry."""
    return list(m) if unrolled(m) else m


@compiled()
def link(m: jax.Array, P: jax.Array, element: Element) -> Any:
    """Through the chunks of a piece, from N(m, P) before them, (s, q) and (s, s). Gives what is after them;
    m, P before each; what its own rows say for ell and N, with Psi T; log det and quad in addition."""

    def one(carry: Any, chunk: Any) -> Any:
        m, P = carry
        Psi, c, C, J, eta = chunk
        T, logdet = _inverse(jnp.eye(len(P)) + P @ J)
        V = T @ P
        V = 0.5 * (V + V.T)
        gap = eta - J @ m
        quad = jnp.sum(-2 * m * eta + m * (J @ m) - gap * (V @ gap), axis=0)
        PsiT = Psi @ T
        after = PsiT @ (m + P @ eta) + c, Psi @ V @ Psi.T + C
        N = T.T @ J
        return after, (m, P, -T.T @ gap, 0.5 * (N + N.T), PsiT, logdet, quad)

    first = (jnp.moveaxis(part, -1, 0) for part in element[:5])
    return jax.lax.scan(one, (m, P), tuple(first))


def _inverse(A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """And the log determinant. Of two columns by Cramer's rule, since a call of LAPACK takes longer than all
    the rest of a link."""
    if len(A) > 2:
        lu, pivots = jax.scipy.linalg.lu_factor(A)
        inverse = jax.scipy.linalg.lu_solve((lu, pivots), jnp.eye(len(A)))
        return inverse, jnp.sum(jnp.log(jnp.abs(jnp.diagonal(lu))))
    if len(A) == 1:
        return 1 / A, jnp.log(jnp.abs(A[0, 0]))
    det = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    turned = jnp.stack([jnp.stack([A[1, 1], -A[0, 1]]), jnp.stack([-A[1, 0], A[0, 0]])])
    return turned / det, jnp.log(jnp.abs(det))


@compiled()
def link_back(ell: jax.Array, N: jax.Array, own: Any) -> Any:
    """The same from the last to the first, from ell and N after them; ell and N at the end of each."""

    def one(carry: Any, chunk: Any) -> Any:
        ell, N = carry
        own_l, own_N, PsiT = chunk
        new = own_N + PsiT.T @ N @ PsiT
        return (own_l + PsiT.T @ ell, 0.5 * (new + new.T)), carry

    return jax.lax.scan(one, (ell, N), own, reverse=True)


class Smoothed(NamedTuple):
    """At the rows of each chunk: (c, LENGTH, q) or (c, LENGTH)."""

    mean: Any
    var: Any
    alpha: Any
    precision: Any


@compiled(static=(0, 1))
def smooth(d: int, terms: int, kernel: Kernel, rows: Rows, ends: Ends, read: jax.Array) -> Smoothed:
    """`read` (s,): which entries of the state make up the g that is asked for: all, or those of a summand."""
    shapes = _shapes(d, terms, kernel, rows)

    read = read[np.array(shapes.order)]

    def asked(H: Mat) -> Mat:
        return vector([H[k] * read[k] for k in range(len(H))]) if unrolled(H) else H * read[:, None]

    before, t, a, b, z = rows.along()
    steps = shapes.steps(before, t)

    def ahead(carry: Any, row: Any) -> Any:
        m, P = shapes.columns(carry[0]), shapes.half(carry[1])
        at = _forward(steps.at(row[0]), m, P, row[1])
        R = asked(at.H)
        v = mv(at.P, R)
        kept = shapes.packed(at.u), shapes.packed(v), at.F, at.w, read_off(R, at.m), dot(R, v)
        m, P = _seen(at, row[1][0])
        return (list_of(m), shapes.packed_half(P)), kept

    def back(carry: Any, row: Any) -> Any:
        ell, N = shapes.columns(carry[0]), shapes.half(carry[1])
        arrays, a, (u, v, F, w, mean, var) = row
        step = steps.at(arrays)
        u, v = shapes.columns(u), shapes.columns(v)
        ell, N, alpha, precision = _backward(step.H, u, F, w, a, ell, N)
        out = mean - read_off(v, ell), var - dot(v, mv(N, v)), alpha, precision
        return (list_of(step.back_on(ell)), shapes.packed_half(step.around_back(N))), out

    begin, end = _ends(shapes, rows, ends)
    _, kept = jax.lax.scan(ahead, begin, (steps.arrays, (a, b, z)))
    _, (mean, var, alpha, precision) = jax.lax.scan(back, end, (steps.arrays, a, kept), reverse=True)
    mean, alpha = (jnp.transpose(x, (2, 0, 1)) for x in (mean, alpha))
    return Smoothed(mean, var.T, alpha, precision.T)


def _ends(shapes: Shapes, rows: Rows, ends: Ends) -> tuple[Any, Any]:
    """What scans from both sides begin with."""
    P, N = (shapes.packed_half(shapes.square(x)) for x in (ends.P + _first(shapes, rows), ends.N))
    m, ell = (list_of(shapes.columns(x)) for x in (ends.m, ends.ell))
    return (m, P), (ell, N)


@compiled(static=(0, 1))
def pulled(d: int, terms: int, kernel: Kernel, rows: Rows, ends: Ends, B: jax.Array, q: jax.Array) -> Any:
    """The gradient by the kernel of tr(V B V'K) - q/2 log det, V = alpha of these sites; with alpha and
    precision at the rows. Covariances are held at each SEGMENTth row and found again in between."""
    shapes = _shapes(d, terms, kernel, rows)

    def ahead(steps: Steps, carry: Any, row: Any) -> Any:
        m, P = shapes.columns(carry[0]), shapes.half(carry[1])
        at = _forward(steps.at(row[0]), m, P, row[1])
        m, P = _seen(at, row[1][0])
        return (list_of(m), shapes.packed_half(P)), (carry, shapes.packed(at.u), at.F, at.w)

    def over_segment(carry: Any, segment: Any) -> Any:
        before, t, *site = segment
        steps = shapes.steps(before, t)
        return jax.lax.scan(lambda c, r: (ahead(steps, c, r)[0], None), carry, (steps.arrays, site))[0], carry

    def back(steps: Steps, carry: Any, row: Any) -> Any:
        ell, N = shapes.columns(carry[0]), shapes.half(carry[1])
        arrays, a, ((m, P), u, F, w) = row
        step = steps.at(arrays)
        m, P, u = shapes.columns(m), shapes.half(P), shapes.columns(u)
        ell, N, alpha, precision = _backward(step.H, u, F, w, a, ell, N)
        before_l, before_N = step.back_on(ell), step.around_back(N)
        x = columns_added(m, scaled_all(kept_on(P, before_l), -1.0))  # smoothed, before the step
        out = alpha, precision, steps.weights(step, Smooth(ell, N, x, P), B, q)
        return (list_of(before_l), shapes.packed_half(before_N)), out

    def back_over_segment(carry: Any, both: Any) -> Any:
        (before, t, *site), start = both
        steps = shapes.steps(before, t)

        def entries(leaves: Any) -> list[jax.Array]:
            return shapes.with_leaves(leaves).steps(before, t).arrays[: steps.differ]

        _, kept = jax.lax.scan(lambda c, r: ahead(steps, c, r), start, (steps.arrays, site))
        state, (alpha, precision, weights) = jax.lax.scan(
            lambda c, r: back(steps, c, r), carry[:2], (steps.arrays, site[0], kept), reverse=True
        )
        total = jax.tree_util.tree_map(
            jnp.add, carry[2], jax.vjp(entries, shapes.leaves)[1](steps.by_entry(weights))[0]
        )
        return (*state, total), (alpha, precision)

    begin, end = _ends(shapes, rows, ends)
    segments = rows.segments()
    _, starts = jax.lax.scan(over_segment, begin, segments)
    none = jax.tree_util.tree_map(jnp.zeros_like, shapes.leaves)
    (ell, N, total), (alpha, precision) = jax.lax.scan(
        back_over_segment, (*end, none), (segments, starts), reverse=True
    )
    ell, N = shapes.columns(ell), shapes.half(N)
    by_P = shapes.dense(added(weighed(ell, B, ell), scaled_all(N, -0.5 * q)))

    def parts(kernel: Kernel) -> Any:
        own = _shapes(d, terms, kernel, rows)
        return own.leaves, _first(own, rows)

    (total,) = jax.vjp(parts, kernel)[1]((total, by_P))
    alpha, precision = (x.reshape(LENGTH, *x.shape[2:]) for x in (alpha, precision))
    return total, jnp.transpose(alpha, (2, 0, 1)), precision.T


@compiled(static=(0, 1))
def transitions(d: int, terms: int, kernel: Kernel, s: jax.Array, t: jax.Array) -> tuple[jax.Array, ...]:
    """A and Q from each of the times s to that of t (c,), P at s: (c, size, size); H at t (c, size)."""
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    shapes = Shapes(form, t.shape[0], 1)
    parts = *shapes.transition(s, t), shapes.covariance(s)
    A, Q, P = (jnp.moveaxis(shapes.dense(part), -1, 0) for part in parts)
    H = shapes.emission(t)
    return A, Q, P, jnp.stack([shapes.full(x) for x in H], axis=1)


@compiled(static=(0, 1))
def variance_rows(d: int, terms: int, kernel: Kernel, t: jax.Array) -> jax.Array:
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    shapes = Shapes(form, t.shape[0], 1)
    H = shapes.emission(t)
    return jnp.broadcast_to(dot(H, mv(shapes.covariance(t), H)), t.shape)
