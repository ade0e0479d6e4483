"""Chains on the host: rows cut into pieces of chunks, a program and a thread each, and linked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.gram.markov.programs import (
    LENGTH,
    Ends,
    Rows,
    Smoothed,
    elements,
    link,
    link_back,
    pulled,
    smooth,
    transitions,
    variance_rows,
)
from gramian.kernels.base import TERMS, Kernel
from gramian.linalg.threads import each
from gramian.params.tree import leaves

# Up to so many numbers of a state: chunks side by side, at most as many as have matrices that stay in a
# core's cache. Of few sizes, since each is a program to compile, and that of a large state takes longer to
# compile than it would work on chunks that are empty
WIDTHS = ((4, (1, 8, 16, 64, 128, 160, 208, 256)), (10, (16, 64)), (float("inf"), (16,)))
COLUMNS = (1, 4, 16, 64)  # right-hand sides, padded to one of these
EPS = float(np.finfo(np.float64).eps)


def _finished(values: Any) -> Any:
    return jax.block_until_ready(values)  # type: ignore[no-untyped-call]


class Chain:
    """Sorted times (n,) under a kernel of d columns; `terms`: of series that must be cut."""

    def __init__(self, kernel: Kernel, d: int, t: Array, terms: int = TERMS) -> None:
        self.kernel, self.d, self.n, self.times, self.terms = kernel.bare(), d, len(t), t, terms
        form = self.kernel.state_space(tuple(range(d)), terms)
        assert form is not None
        self.size = form.size
        chunks, widths = -(-self.n // LENGTH), next(widths for size, widths in WIDTHS if self.size <= size)
        self.pieces = -(-chunks // widths[-1])
        self.width = next(w for w in widths if w >= -(-chunks // self.pieces))
        self.t = self.cut(t, t[-1])
        before = np.concatenate([t[:1], self.t.reshape(-1)[LENGTH - 1 : -1 : LENGTH]])
        self.before = before.reshape(self.pieces, self.width)
        self.first = np.zeros((self.pieces, self.width))
        self.first[0, 0] = 1.0

    def cut(self, values: Array, padding: float = 0.0) -> Array:
        """Values of the rows (n, ...) as (pieces, width, LENGTH, ...)."""
        shape = self.pieces, self.width, LENGTH, *values.shape[1:]
        out = np.full((int(np.prod(shape[:3])), *values.shape[1:]), padding)
        out[: self.n] = values
        return out.reshape(shape)

    def joined(self, parts: Sequence[Any]) -> Array:
        """The rows again."""
        arrays = [np.asarray(part) for part in parts]
        whole = np.concatenate([array.reshape(-1, *array.shape[2:]) for array in arrays])
        return whole[: self.n]

    def sited(self, a: Array, b: Array, z: Array) -> SitedChain:
        """With sites a, b (n,) and right-hand sides z (n, q)."""
        return SitedChain(self, a, b, z)

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """For each piece, on some threads."""

        def one(k: int) -> Any:
            with jax.enable_x64(True):
                return _finished(work(k))

        return list(each(one, range(self.pieces)))


class SitedChain:
    """A chain with sites: what follows at the rows."""

    def __init__(self, chain: Chain, a: Array, b: Array, z: Array) -> None:
        self.chain, self.q = chain, z.shape[1]
        columns = next((q for q in COLUMNS if q >= self.q), -(-self.q // COLUMNS[-1]) * COLUMNS[-1])
        wide = np.zeros((len(z), columns))
        wide[:, : self.q] = z
        self._a, self._b, self._z = chain.cut(a), chain.cut(b, 1.0), chain.cut(wide)
        self._elements = chain.each(lambda k: elements(chain.d, chain.terms, chain.kernel, self._rows(k)))
        s = chain.size
        m, P = np.zeros((s, columns)), np.zeros((s, s))
        self._before: list[Any] = []
        logdet, self.quad = 0.0, np.zeros(columns)
        self.rounding = 0.0  # of quad, which is what is left of larger numbers where there is little noise
        negative = 0.0
        with jax.enable_x64(True):
            for element in self._elements:
                clock.check()
                (m, P), found = link(m, P, element)
                self._before.append(found)
                more = np.asarray(found[6])
                own = np.asarray(element.quad)
                logdet += float(np.sum(element.logdet)) + float(np.sum(found[5]))
                self.quad += own.sum(axis=1) + more.sum(axis=0)
                self.rounding += EPS * float(np.sum(np.abs(own)) + np.sum(np.abs(more)))
                negative += float(np.sum(element.negative))
        self.logdet, self.quad, self.negative = logdet, self.quad[: self.q], negative

    @cached_property
    def ends(self) -> list[Ends]:
        """Of each piece."""
        s, columns = self.chain.size, self._z.shape[3]
        ell, N = np.zeros((s, columns)), np.zeros((s, s))
        out = []
        with jax.enable_x64(True):
            for m, P, own_l, own_N, PsiT, _, _ in reversed(self._before):
                clock.check()
                (ell, N), (ls, Ns) = link_back(ell, N, (own_l, own_N, PsiT))
                out.append(Ends(*(np.moveaxis(np.asarray(x), 0, -1) for x in (m, P, ls, Ns))))
        return out[::-1]

    def smoothed(self, read: Array | None = None) -> Smoothed:
        chain, ends = self.chain, self.ends
        read = np.ones(chain.size) if read is None else read
        parts = chain.each(lambda k: smooth(chain.d, chain.terms, chain.kernel, self._rows(k), ends[k], read))
        mean, var, alpha, precision = (chain.joined(column) for column in zip(*parts, strict=True))
        return Smoothed(mean[:, : self.q], var, alpha[:, : self.q], precision)

    def pulled(self, B: Array, logdet: float) -> tuple[list[Array], Array, Array]:
        """The gradient by the kernel's parameters of tr(V B V'K) - logdet/2 log det; alpha, precision."""
        chain, ends = self.chain, self.ends
        wide = np.zeros((self._z.shape[3],) * 2)
        wide[: self.q, : self.q] = B
        parts = chain.each(
            lambda k: pulled(
                chain.d, chain.terms, chain.kernel, self._rows(k), ends[k], wide, np.float64(logdet)
            )
        )
        gradients = [leaves(part[0]) for part in parts]
        total = [np.sum([np.asarray(x) for x in column], axis=0) for column in zip(*gradients, strict=True)]
        alpha, precision = (chain.joined([part[k] for part in parts]) for k in (1, 2))
        return total, alpha[:, : self.q], precision

    def _rows(self, k: int) -> Rows:
        chain = self.chain
        return Rows(chain.first[k], chain.before[k], chain.t[k], self._a[k], self._b[k], self._z[k])


def sorted_chain(kernel: Kernel, X: Array, terms: int) -> tuple[Chain, Any]:
    """The rows of X (n, d) in the order of time, and that order: a slice where they are sorted already."""
    d = X.shape[1]
    form = kernel.bare().state_space(tuple(range(d)))
    assert form is not None
    t = np.ascontiguousarray(X[:, form.column or 0])
    order: Any = slice(None)
    if np.any(t[1:] < t[:-1]):
        order = np.argsort(t, kind="stable")
        t = t[order]
    return Chain(kernel, d, t, terms), order


def drawn(chain: Chain, rng: np.random.Generator, count: int) -> Array:
    """Draws of g at the rows, (n, count): the state goes from row to row with what is new at each."""
    out, x = np.empty((chain.pieces * chain.width * LENGTH, count)), np.zeros((chain.size, count))
    at = 0
    for k in range(chain.pieces):
        t = chain.t[k].reshape(-1)
        s = np.concatenate([chain.before[k][:1], t[:-1]])
        with jax.enable_x64(True):
            A, Q, P, H = (np.asarray(part) for part in transitions(chain.d, chain.terms, chain.kernel, s, t))
        if k == 0:
            x = _root(P[:1])[0] @ rng.standard_normal(x.shape)
        R = _root(Q)
        for i in range(min(len(t), chain.n - at)):
            if not i % LENGTH:
                clock.check()
            x = A[i] @ x + R[i] @ rng.standard_normal(x.shape)
            out[at + i] = H[i] @ x
        at += len(t)
    return out[: chain.n]


def _root(Q: Array) -> Array:
    """R with R R' = Q, also where that is singular, for Q (n, s, s)."""
    values, vectors = np.linalg.eigh(Q)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return root


def variances(kernel: Kernel, X: Array, terms: int) -> Array:
    """k(x, x) of a bare kernel's Markov processes at the rows of X, (n,)."""
    chain, order = sorted_chain(kernel, X, terms)

    def one(k: int) -> Any:
        t = chain.t[k].reshape(-1)
        return variance_rows(chain.d, chain.terms, chain.kernel, t)

    found = np.concatenate([np.asarray(part) for part in chain.each(one)])[: chain.n]
    out = np.empty(chain.n)
    out[order] = found
    return out
