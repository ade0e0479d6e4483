r"""Kernels of one column as Markov processes in time: what linear-time inference is made of.

A kernel has a state-space form where g(t) = H(t) x(t), and the state x is a Gaussian process that knows its
past by its present alone:

    x(t) = A(s, t) x(s) + q,  q ~ N(0, Q(s, t)),  x(t) ~ N(0, P(t)),   so that  Q = P(t) - A P(s) A'

for s <= t. `Block` is one such process, in JAX, for arrays of times at once: a matrix is a NumPy array of
objects, entry by entry a number or a JAX array (c,), so that programs can leave out what is 0. A kernel is a
tuple of blocks that do not depend on each other, whose g are added:

    sum         the blocks of all terms
    product     for each choice of a block a factor, A = A1 x A2 and so on (Kronecker)

Q is never made by its difference, in which a small step loses all digits: the Matern kernels' is a sum of
incomplete gamma functions, in which nothing cancels, and that of a product Q1 x P2 + (P1 - Q1) x Q2.

Sources: Hartikainen and Sarkka 2010 (Matern, RBF); Solin and Sarkka 2014 (periodic).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass
from numpy.typing import NDArray

Matrix = NDArray[Any]  # of objects: numbers and JAX arrays (c,)

FARTHEST = 700.0  # lengthscales of a step: exp(-700) is nothing, and its product with any power of 700 finite
NODES = 256  # of Bessel functions: right to 1e-15 for x up to 500, a lengthscale of 0.045
GAMMA_TERMS = 14  # of a series for x <= 1: the next is 1e-16 of the first


class Block(ABC):
    """A Markov process with one output. Its emission must not depend on parameters.

    Blocks are trees of JAX with their parameters as leaves: those of one form, as the waves of a periodic
    kernel are, are made for all of them at once, with parameters (n, 1) and times (1, c)."""

    size: int  # of the state

    @abstractmethod
    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        """A and Q from times s to times t >= s, (c,) each: (size, size)."""

    @abstractmethod
    def cov(self, t: jax.Array) -> Matrix:
        """P at the times t (c,): (size, size)."""

    def emission(self, t: jax.Array) -> Matrix:
        """H at the times t (c,): (size,); the first entry of the state unless it says otherwise."""
        return vector([1.0] + [0.0] * (self.size - 1))


class StateForm(NamedTuple):
    """A kernel as Markov processes of one column."""

    blocks: tuple[Block, ...]
    column: int | None = None  # which column the times are; None: it makes no difference, as for constants
    exact: bool = True  # whether it is the kernel itself, and not a series cut short

    @property
    def size(self) -> int:
        return sum(block.size for block in self.blocks)

    def changed(self, change: Callable[[Block], Block]) -> StateForm:
        return self._replace(blocks=tuple(map(change, self.blocks)))


# Of kernels. ------------------------------------------------------------------------------------------------


def only(columns: tuple[int, ...], *blocks: Block, exact: bool = True) -> StateForm | None:
    """The form of a kernel that sees time alone; None where it has several columns."""
    return StateForm(blocks, columns[0], exact) if len(columns) == 1 else None


def added(forms: Sequence[StateForm | None]) -> StateForm | None:
    """Of a sum; None where a term has none, or they are on different columns."""
    return _joined(forms, lambda found: [block for form in found for block in form.blocks])


def multiplied(forms: Sequence[StateForm | None]) -> StateForm | None:
    """Of a product."""
    return _joined(forms, lambda found: map(_crossed, product(*(form.blocks for form in found))))


def scaled(form: StateForm | None, scale: Any) -> StateForm | None:
    return None if form is None else form.changed(lambda block: ScaledBlock(block, scale))


def _joined(
    forms: Sequence[StateForm | None], join: Callable[[list[StateForm]], Iterable[Block]]
) -> StateForm | None:
    found = [form for form in forms if form is not None]
    columns = {form.column for form in found} - {None}
    if len(found) < len(forms) or len(columns) > 1:
        return None
    return StateForm(tuple(join(found)), next(iter(columns), None), all(form.exact for form in found))


def _crossed(blocks: Sequence[Block]) -> Block:
    first, *rest = blocks
    return CrossedBlock(first, _crossed(rest)) if rest else first


# Blocks of blocks. ------------------------------------------------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class ScaledBlock(Block):
    """c times the variances."""

    inner: Block
    scale: Any

    @property
    def size(self) -> int:  # type: ignore[override]  # derived from its parts
        return self.inner.size

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        A, Q = self.inner.step(s, t)
        return A, kron(matrix([[self.scale]]), Q)

    def cov(self, t: jax.Array) -> Matrix:
        return kron(matrix([[self.scale]]), self.inner.cov(t))

    def emission(self, t: jax.Array) -> Matrix:
        return self.inner.emission(t)


@register_dataclass
@dataclass(frozen=True)
class CrossedBlock(Block):
    """The product of two independent processes has the product of their covariances."""

    left: Block
    right: Block

    @property
    def size(self) -> int:  # type: ignore[override]  # derived from its parts
        return self.left.size * self.right.size

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        (A1, Q1), (A2, Q2) = self.left.step(s, t), self.right.step(s, t)
        P1, P2 = self.left.cov(t), self.right.cov(t)
        return kron(A1, A2), sum_of(kron(Q1, P2), kron(P1 - Q1, Q2))

    def cov(self, t: jax.Array) -> Matrix:
        return kron(self.left.cov(t), self.right.cov(t))

    def emission(self, t: jax.Array) -> Matrix:
        return kron(self.left.emission(t)[None], self.right.emission(t)[None])[0]


@register_dataclass
@dataclass(frozen=True)
class WarpedBlock(Block):
    """A process multiplied with a function of time, in JAX: one point (1,) to a number."""

    inner: Block
    function: Callable[[Any], Any] = field(metadata={"static": True})

    @property
    def size(self) -> int:  # type: ignore[override]  # derived from its parts
        return self.inner.size

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        return self.inner.step(s, t)

    def cov(self, t: jax.Array) -> Matrix:
        return self.inner.cov(t)

    def emission(self, t: jax.Array) -> Matrix:
        factor = jax.vmap(self.function)(t.reshape(-1, 1)).reshape(t.shape)
        return kron(matrix([[factor]]), self.inner.emission(t)[None])[0]


def matrix(rows: Sequence[Sequence[Any]]) -> Matrix:
    """Of numbers and arrays (c,)."""
    out = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            out[i, j] = entry
    return out


def vector(entries: Sequence[Any]) -> Matrix:
    return matrix([entries])[0]


def times(x: Any, y: Any) -> Any:
    """x y, of numbers and arrays; what is a 0 or a 1 is not multiplied."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, float) and one in (0.0, 1.0):
            return 0.0 if one == 0.0 else other
    return x * y


def plus(x: Any, y: Any) -> Any:
    """x + y; a 0 is not added."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, float) and one == 0.0:
            return other
    return x + y


def kron(A: Matrix, B: Matrix) -> Matrix:
    """The Kronecker product."""
    rows = [[times(a, b) for a in left for b in right] for left in A for right in B]
    return matrix(rows)


def sum_of(A: Matrix, B: Matrix) -> Matrix:
    return matrix([[plus(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(A, B, strict=True)])


# The Matern family: (d/dt + 1)^p f = white noise, in units of 1 / kappa, kappa = sqrt(2 nu) / lengthscale;
# the state is f and its derivatives in these units. ---------------------------------------------------------


def gammas(x: jax.Array, m: int, decay: jax.Array) -> list[jax.Array]:
    """[P(1, x), ..., P(m, x)], the shares of a gamma law below x: P(m) = 1 - e^-x sum_{k < m} x^k / k!. The
    last from its series where x is small, the others from it by sums of positive terms. `decay`: e^-x."""
    near = jnp.minimum(x, 1.0)
    series = jnp.ones_like(x)
    for k in range(GAMMA_TERMS, 0, -1):
        series = 1 + series * (near * (1 / (m + k)))  # a division takes some ten times as long
    powers = [jnp.ones_like(x)]  # x^k / k!
    for k in range(1, m + 1):
        powers.append(powers[-1] * (x * (1 / k)))
    out = [jnp.where(x < 1, decay * powers[m] * series, 1 - decay * sum(powers[:m]))]
    for k in range(m - 1, 0, -1):
        out.append(out[-1] + decay * powers[k])
    return out[::-1]


@register_dataclass
@dataclass(frozen=True)
class Decay(Block):
    """k = exp(-r), r = rate (t - s): Matern-1/2."""

    rate: Any
    size = 1

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        r = _steps(self.rate, s, t)
        return matrix([[jnp.exp(-r)]]), matrix([[-jnp.expm1(-2 * r)]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[1.0]])


@register_dataclass
@dataclass(frozen=True)
class SmoothDecay(Block):
    """k = (1 + r) exp(-r): Matern-3/2."""

    rate: Any
    size = 2

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        r = _steps(self.rate, s, t)
        e = jnp.exp(-r)
        P3 = gammas(2 * r, 3, e * e)[-1]
        A = matrix([[e * (1 + r), e * r], [-e * r, e * (1 - r)]])
        q12 = 2 * (e * r) ** 2  # P(2) - P(3); P(1) - P(2) is 2 r e^-2r
        return A, matrix([[P3, q12], [q12, 4 * r * (e * e) + P3]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[1.0, 0.0], [0.0, 1.0]])


@register_dataclass
@dataclass(frozen=True)
class SmootherDecay(Block):
    """k = (1 + r + r^2 / 3) exp(-r): Matern-5/2."""

    rate: Any
    size = 3

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        r = _steps(self.rate, s, t)
        e, h = jnp.exp(-r), r**2 / 2
        P1, P2, P3, P4, P5 = gammas(2 * r, 5, e * e)
        A = [  # e^-r (I + r N + r^2/2 N^2), N = F + I, N^3 = 0
            [e * (1 + r + h), e * (r + 2 * h), e * h],
            [-e * h, e * (1 + r - 2 * h), e * (r - h)],
            [e * (h - r), e * (2 * h - 3 * r), e * (1 - 2 * r + h)],
        ]
        # 16/3 int_0^r e^-2u p p' du with p = (u^2/2, u - u^2/2, 1 - 2u + u^2/2): u^k gives k! / 2^(k+1) P_k+1
        q12, q13 = P4 - P5, 2 / 3 * P3 - 2 * P4 + P5
        q22 = 4 / 3 * P3 - 2 * P4 + P5
        q23 = 4 / 3 * P2 - 10 / 3 * P3 + 3 * P4 - P5
        q33 = 8 / 3 * P1 - 16 / 3 * P2 + 20 / 3 * P3 - 4 * P4 + P5
        return matrix(A), matrix([[P5, q12, q13], [q12, q22, q23], [q13, q23, q33]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[1.0, 0.0, -1 / 3], [0.0, 1 / 3, 0.0], [-1 / 3, 0.0, 1.0]])


def _steps(rate: Any, s: jax.Array, t: jax.Array) -> jax.Array:
    return jnp.minimum(rate * (t - s), FARTHEST)


# Waves, constants, polynomials. -----------------------------------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class WaveBlock(Block):
    """k = variance cos(2 pi (t - s) / period)."""

    period: Any
    variance: Any = 1.0
    size = 2

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        angle = 2 * jnp.pi * (t - s) / self.period
        c, w = jnp.cos(angle), jnp.sin(angle)
        return matrix([[c, -w], [w, c]]), matrix([[0.0, 0.0], [0.0, 0.0]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[self.variance, 0.0], [0.0, self.variance]])


def cosine_series(x: Any, terms: int) -> jax.Array:
    """The first weights of exp(x (cos u - 1)) = sum_j w_j cos(j u), which are positive and add up to 1. They
    are Bessel functions, 2 I_j(x) e^-x, by the trapezoidal rule, whose error is the weight of order NODES."""
    u = 2 * np.pi * np.arange(NODES) / NODES
    table = np.cos(np.outer(np.arange(terms + 1), u)) * np.where(np.arange(terms + 1) > 0, 2.0, 1.0)[:, None]
    return jnp.asarray(table / NODES) @ jnp.exp(x * (np.cos(u) - 1))


@register_dataclass
@dataclass(frozen=True)
class Monomial(Block):
    """k = variance (s t)^power: a random number times t^power."""

    variance: Any
    power: int = field(default=0, metadata={"static": True})
    size = 1

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        return matrix([[1.0]]), matrix([[0.0]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[self.variance]])

    def emission(self, t: jax.Array) -> Matrix:
        return vector([t**self.power if self.power else 1.0])


# Brownian motion from 0 in both directions. Before 0 it is a bridge to it: a walk back in u = |t|, for which
# the law of the nearer point given the farther one is known. ------------------------------------------------


@register_dataclass
@dataclass(frozen=True)
class WalkBlock(Block):
    """k = min(|s|, |t|) on one side of 0, and 0 across it."""

    size = 1

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        before, over, far, u = s < 0, (s < 0) & (t >= 0), jnp.where(s < 0, -s, 1.0), jnp.maximum(-t, 0.0)
        A = jnp.where(over, 0.0, jnp.where(before, u / far, 1.0))
        Q = jnp.where(over, t, jnp.where(before, u * ((t - s) / far), t - s))
        return matrix([[A]]), matrix([[Q]])

    def cov(self, t: jax.Array) -> Matrix:
        return matrix([[jnp.abs(t)]])


@register_dataclass
@dataclass(frozen=True)
class IntegratedWalk(Block):
    """The integral from 0 of Brownian motion, and that motion."""

    size = 2

    def step(self, s: jax.Array, t: jax.Array) -> tuple[Matrix, Matrix]:
        d, before, over = t - s, (s < 0) & (t < 0), (s < 0) & (t >= 0)
        # before 0, with u nearer to it than S = u + d: given both ends the precisions add, and their sum has
        # the determinant 12 S^4 / (u d)^4
        S = jnp.where(before, -s, 1.0)
        a, b = jnp.where(before, -t, 0.5) / S, jnp.where(before, d, 0.5) / S
        back_A = [[a * a * (3 - 2 * a), -a * a * b * S], [6 * a * b / S, a * (3 * a - 2)]]
        q12 = (b - a) * (a * b) ** 2 / 2 * S**2
        back_Q = [[(a * b) ** 3 / 3 * S**3, q12], [q12, a * b * (a * a - a * b + b * b) * S]]
        across = self.cov(t)
        pairs = [(i, j) for i in range(2) for j in range(2)]
        A, Q = matrix([[1.0, d], [0.0, 1.0]]), _walked(d)
        for i, j in pairs:
            A[i, j] = jnp.where(over, 0.0, jnp.where(before, back_A[i][j], A[i, j]))
            Q[i, j] = jnp.where(over, across[i, j], jnp.where(before, back_Q[i][j], Q[i, j]))
        return A, Q

    def cov(self, t: jax.Array) -> Matrix:
        return _walked(jnp.abs(t))


def _walked(u: jax.Array) -> Matrix:
    """The covariance of the integral and of the motion after a time u."""
    return matrix([[u**3 / 3, u**2 / 2], [u**2 / 2, u]])
