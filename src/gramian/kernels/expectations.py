r"""What a kernel is on average when a point is known up to a Gaussian: x ~ N(mean, diag(var)).

    psi0_n = E k(x_n, x_n),    psi1_nj = E k(x_n, z_j),    psi2_nij = E k(z_i, x_n) k(x_n, z_j)

Kernels that are sums of Gaussians in x times products of linear forms have them in closed form:

    k(x, z) = sum_t c_t exp(-1/2 sum_q a_tq (x_q - z_q)^2) prod_f (sum_q v_tfq z_q x_q + o_tf)

RBF is one Gaussian, Linear one form, Polynomial a power of one, Constant neither; sums, products, powers and
multiples of such kernels, and kernels on some columns, are such kernels again (`Kernel.gaussian_terms`).
A Gaussian times that of x is a Gaussian once more, around which E of a product of forms is a sum over pairs
(Isserlis 1918). For the RBF these are the statistics of Titsias and Lawrence 2010.

For any other kernel they are sums over nodes: up to three columns by the trapezoidal rule, beyond by 512
points of Sobol's. The error is told by fewer nodes: every other one, or half of the points.

Cost: n m^2 / 2 exponentials a pair of terms, with gradients by matrix products; by nodes, nodes times n m
kernel values. Pairs i >= j of psi2 stand in the order of `np.tril_indices(m)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian.arrays import Array
from gramian.kernels.distance import typical

if TYPE_CHECKING:
    from gramian.kernels.base import Kernel

MOST_TERMS = 6  # psi2 has an integral for each pair of them
MOST_FORMS = 3  # in a term: E of six forms is a sum over 76 partial pairings
# Of the trapezoidal rule, a column: with 2, 1 or 3 columns nodes lie within REACH standard deviations.
NODES = {1: 129, 2: 33, 3: 17}
REACH = 6.0
POINTS = 512  # of Sobol's, beyond three columns


class Form(NamedTuple):
    """sum_q slopes_q z_q x_q + offset."""

    slopes: jax.Array  # (d,)
    offset: jax.Array | float


class ExpectedTerm(NamedTuple):
    """scale exp(-1/2 sum_q precision_q (x_q - z_q)^2) times its forms."""

    scale: jax.Array | float
    precision: jax.Array | None  # (d,); None: no Gaussian
    forms: tuple[Form, ...] = ()

    def times(self, other: ExpectedTerm) -> ExpectedTerm:
        """The product of the two."""
        a, b = self.precision, other.precision
        precision = b if a is None else a if b is None else a + b
        return ExpectedTerm(self.scale * other.scale, precision, self.forms + other.forms)

    def on(self, columns: Sequence[int], d: int) -> ExpectedTerm:
        """The same on these of d columns."""

        def spread(values: jax.Array) -> jax.Array:
            return jnp.zeros(d, values.dtype).at[jnp.array(columns)].set(values)

        forms = tuple(Form(spread(form.slopes), form.offset) for form in self.forms)
        return ExpectedTerm(self.scale, None if self.precision is None else spread(self.precision), forms)


class Expectations(NamedTuple):
    """E k(x, x) (n,), E k(x, Z) (n, m), and E k(Z, x) k(x, Z) for each row, as pairs i >= j; the largest
    error of any of them, 0 where they are closed."""

    psi0: jax.Array
    psi1: jax.Array
    psi2: jax.Array
    error: jax.Array


class Expected(NamedTuple):
    """The same in NumPy, for people: `squares` is whole, (n, m, m)."""

    diagonal: Array
    cross: Array
    squares: Array
    error: float


def multiplied(kinds: Sequence[Sequence[ExpectedTerm] | None]) -> list[ExpectedTerm] | None:
    """The terms of a product of kernels with these terms; None where one has none, or they are too many."""
    if any(terms is None for terms in kinds):
        return None
    terms = [ExpectedTerm(1.0, None)]
    for further in kinds:
        terms = [one.times(other) for one, other in itertools.product(terms, further or ())]
    fits = len(terms) <= MOST_TERMS and all(len(term.forms) <= MOST_FORMS for term in terms)
    return terms if fits else None


def added(kinds: Sequence[Sequence[ExpectedTerm] | None]) -> list[ExpectedTerm] | None:
    """The terms of a sum."""
    terms: list[ExpectedTerm] = []
    for further in kinds:
        if further is None:
            return None
        terms += further
    return terms if len(terms) <= MOST_TERMS else None


def whole(pairs: jax.Array, m: int) -> jax.Array:
    """(..., m (m + 1) / 2) -> symmetric (..., m, m)."""
    rows, columns = np.tril_indices(m)
    at = np.empty((m, m), np.int32)
    at[rows, columns] = at[columns, rows] = np.arange(len(rows))
    return pairs[..., at]


# In closed form. --------------------------------------------------------------------------------------------


def closed(terms: Sequence[ExpectedTerm], mean: jax.Array, var: jax.Array, Z: jax.Array) -> Expectations:
    """Of a sum of terms."""
    rows, columns = np.tril_indices(Z.shape[0])
    left, right = Z[rows], Z[columns]
    psi0 = sum((_diagonal(term, mean, var) for term in terms), jnp.zeros(len(mean), mean.dtype))
    psi1 = sum((_of_one(term, mean, var, Z) for term in terms), jnp.zeros((len(mean), len(Z)), mean.dtype))
    psi2 = jnp.zeros((len(mean), len(rows)), mean.dtype)
    for k, term in enumerate(terms):
        psi2 += _of_two(term, term, mean, var, left, right)
        for other in terms[:k]:
            psi2 += _of_two(term, other, mean, var, left, right)
            psi2 += _of_two(other, term, mean, var, left, right)
    return Expectations(psi0, psi1, psi2, jnp.zeros((), mean.dtype))


def _diagonal(term: ExpectedTerm, mean: jax.Array, var: jax.Array) -> jax.Array:
    """E prod_f (sum_q v_fq x_q^2 + o_f): the derivative by every t_f at 0 of E exp(sum_f t_f form_f), which
    is closed."""

    def generating(*t: jax.Array) -> jax.Array:
        a = sum((t_f * form.slopes for t_f, form in zip(t, term.forms, strict=True)), jnp.zeros_like(mean))
        shrunk = 1 - 2 * var * a
        exponent = jnp.sum(mean**2 * a / shrunk - 0.5 * jnp.log(shrunk), axis=1)
        return jnp.exp(exponent + sum(t_f * form.offset for t_f, form in zip(t, term.forms, strict=True)))

    function = generating
    for number in range(len(term.forms)):
        function = _slope(function, number)
    zeros = [jnp.zeros((), mean.dtype)] * len(term.forms)
    values = function(*zeros) if term.forms else jnp.ones(len(mean), mean.dtype)
    return term.scale * values


def _slope(function: Callable[..., jax.Array], number: int) -> Callable[..., jax.Array]:
    """The derivative by one argument."""

    def slope(*t: jax.Array) -> jax.Array:
        def along(value: jax.Array) -> jax.Array:
            return function(*t[:number], value, *t[number + 1 :])

        return jax.jvp(along, (t[number],), (jnp.ones_like(t[number]),))[1]

    return slope


def _of_one(term: ExpectedTerm, mean: jax.Array, var: jax.Array, Z: jax.Array) -> jax.Array:
    forms = [(form.slopes * Z, form.offset) for form in term.forms]
    return term.scale * _integral(mean, var, term.precision, Z, None, forms)


def _of_two(
    first: ExpectedTerm,
    second: ExpectedTerm,
    mean: jax.Array,
    var: jax.Array,
    left: jax.Array,
    right: jax.Array,
) -> jax.Array:
    """E of `first` at each point on the left times `second` at that on the right."""
    forms = [(form.slopes * left, form.offset) for form in first.forms]
    forms += [(form.slopes * right, form.offset) for form in second.forms]
    scale = first.scale * second.scale
    a, b = first.precision, second.precision
    if a is None or b is None:
        return scale * _integral(mean, var, b if a is None else a, right if a is None else left, None, forms)
    total = a + b
    some = jnp.where(total > 0, total, 1.0)
    centre = (a * left + b * right) / some
    apart = jnp.sum(a * b / some * (left - right) ** 2, axis=1)
    return scale * _integral(mean, var, total, centre, apart, forms)


def _integral(
    mean: jax.Array,
    var: jax.Array,
    precision: jax.Array | None,
    centre: jax.Array,
    apart: jax.Array | None,
    forms: list[tuple[jax.Array, jax.Array | float]],
) -> jax.Array:
    """E exp(-1/2 sum_q precision_q (x_q - centre_pq)^2 - apart_p / 2) prod_f (U_fp x + o_f), (n, p)."""
    if precision is None:
        shrink, values = jnp.ones_like(var), jnp.ones((len(mean), len(centre)), mean.dtype)
    else:
        shrink = 1 / (1 + precision * var)
        exponent = weighted_distances(mean, centre, precision * shrink)
        if apart is not None:
            exponent = exponent + apart[None, :]
        values = jnp.exp(-0.5 * (exponent + jnp.sum(jnp.log1p(precision * var), axis=1)[:, None]))
    if not forms:
        return values
    # What is left of x is a Gaussian around (mean + var precision centre) shrink, of variance var shrink.
    means = []
    for U, offset in forms:
        one = (mean * shrink) @ U.T + offset
        if precision is not None:
            one = one + (var * shrink * precision) @ (U * centre).T
        means.append(one)
    spread = var * shrink

    def covariance(i: int, j: int) -> jax.Array:
        return spread @ (forms[i][0] * forms[j][0]).T

    return values * _moment(tuple(range(len(forms))), means, covariance)


def _moment(
    which: tuple[int, ...], means: list[jax.Array], covariance: Callable[[int, int], jax.Array]
) -> jax.Array | float:
    """E of a product of Gaussian variables: the first is its mean, or goes with one of the others."""
    if not which:
        return 1.0
    first, rest = which[0], which[1:]
    total: jax.Array = means[first] * _moment(rest, means, covariance)
    for k, other in enumerate(rest):
        total = total + covariance(first, other) * _moment(rest[:k] + rest[k + 1 :], means, covariance)
    return total


@jax.custom_vjp
def weighted_distances(X: jax.Array, C: jax.Array, W: jax.Array) -> jax.Array:
    """sum_q W_nq (X_nq - C_pq)^2 for all pairs of rows, (n, p): by differences, which lose no digits, and
    with matrix products for the gradient."""
    # a branch, so that XLA does not fuse the sum into the exponential, as in `distance.squared_distances`
    return jax.lax.cond(X[0, 0] == X[0, 0], _by_differences, _nowhere, X, C, W)


def _by_differences(X: jax.Array, C: jax.Array, W: jax.Array) -> jax.Array:
    total = W[:, 0][:, None] * (X[:, 0][:, None] - C[:, 0][None, :]) ** 2
    for q in range(1, X.shape[1]):
        total += W[:, q][:, None] * (X[:, q][:, None] - C[:, q][None, :]) ** 2
    return total


def _nowhere(X: jax.Array, C: jax.Array, W: jax.Array) -> jax.Array:
    return jnp.full((X.shape[0], C.shape[0]), jnp.nan, X.dtype)


def _forward(X: jax.Array, C: jax.Array, W: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    return weighted_distances(X, C, W), (X, C, W)


def _backward(saved: tuple[jax.Array, ...], V: jax.Array) -> tuple[jax.Array, ...]:
    X, C, W = saved
    centre = typical(C)
    X, C = X - centre, C - centre
    d = X.shape[1]
    product = V @ jnp.concatenate([C, C**2, jnp.ones((len(C), 1), C.dtype)], axis=1)
    VC, VC2, V1 = product[:, :d], product[:, d : 2 * d], product[:, 2 * d :]
    back = V.T @ jnp.concatenate([W, W * X], axis=1)
    by_X = 2 * W * (X * V1 - VC)
    by_C = 2 * (C * back[:, :d] - back[:, d:])
    return by_X, by_C, X**2 * V1 - 2 * X * VC + VC2


weighted_distances.defvjp(_forward, _backward)


# By nodes. --------------------------------------------------------------------------------------------------


@cache
def nodes(d: int) -> tuple[Array, Array, Array]:
    """Standard normal nodes (J, d), their weights, and those of a coarser rule on some of them."""
    if d not in NODES:
        points = ndtri(qmc.Sobol(d, scramble=True, rng=np.random.default_rng(0)).random(POINTS))
        first = np.arange(POINTS) < POINTS // 2
        return points, np.full(POINTS, 1 / POINTS), first / np.sum(first)
    line = np.linspace(-REACH, REACH, NODES[d])
    density = np.exp(-0.5 * line**2)
    coarse = np.where(np.arange(NODES[d]) % 2 == 0, density, 0.0)
    grid = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    rules = [
        np.prod(np.meshgrid(*[w / np.sum(w)] * d, indexing="ij"), axis=0).ravel() for w in (density, coarse)
    ]
    kept = (rules[0] > 1e-12) | (rules[1] > 1e-12)  # corners of a grid count for nothing
    first, second = (rule[kept] / np.sum(rule[kept]) for rule in rules)
    return grid[kept], first, second


def by_nodes(kernel: Kernel, mean: jax.Array, var: jax.Array, Z: jax.Array) -> Expectations:
    """Of any kernel, with the largest difference to the coarser rule as the error."""
    (n, d), m = mean.shape, Z.shape[0]
    at, fine, coarse = (jnp.asarray(values, mean.dtype) for values in nodes(d))
    # sqrt has no slope at 0, where the nodes all lie on the mean
    sd = jnp.where(var > 0, jnp.sqrt(jnp.where(var > 0, var, 1.0)), 0.0)
    X = (mean[:, None, :] + sd[:, None, :] * at[None, :, :]).reshape(n * len(at), d)
    diagonal, K = kernel.diagonal(X).reshape(n, len(at)), kernel.cross(X, Z).reshape(n, len(at), m)
    pairs = np.tril_indices(m)

    def rule(weights: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        squares = jnp.einsum("nji,njk->nik", K * weights[None, :, None], K)
        return diagonal @ weights, jnp.einsum("njk,j->nk", K, weights), squares[:, pairs[0], pairs[1]]

    values, fewer = rule(fine), rule(coarse)
    apart = [jnp.max(jnp.abs(a - b)) for a, b in zip(values, fewer, strict=True)]
    return Expectations(*values, jax.lax.stop_gradient(jnp.max(jnp.stack(apart))))
