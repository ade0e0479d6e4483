"""The conformance suite finds each way to break the contract of a kernel: one broken kernel a promise, and
the message that tells it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from gramian.kernels import RBF, Categorical, Kernel, Linear, warp
from gramian.params import Value, fixed, param, positive
from gramian.testing import check_kernel


class Quadratic(Kernel):
    """A user's own kernel, as the documentation writes it."""

    offset: Value = positive(1.0)

    def pair(self, x, z):
        return (x @ z + self.offset) ** 2


class Lopsided(Kernel):
    def pair(self, x, z):
        return jnp.exp(-jnp.sum((x - z) ** 2) / 2) * (1 + 0.1 * jnp.tanh(x[0] - z[0]))


class Indefinite(Kernel):
    """The sigmoid kernel, which is not positive semi-definite."""

    def pair(self, x, z):
        return jnp.tanh(x @ z - 1) + 1


class Negative(Kernel):
    def pair(self, x, z):
        return -jnp.exp(-jnp.sum((x - z) ** 2))


class Infinite(Kernel):
    def pair(self, x, z):
        return jnp.exp(x @ z)


class WrongBlocks(RBF):
    def cross(self, X, Z):
        return 0.999 * super().cross(X, Z)


class WrongDiagonal(RBF):
    def diagonal(self, X):
        return 1.001 * jnp.ones(X.shape[0])


class DependsOnTheBlock(RBF):
    """Right on the pairs of one table, wrong between two."""

    def cross(self, X, Z):
        return jnp.where(jnp.all(X == Z), 1.0, 0.999) * super().cross(X, Z)


class Inexact(RBF):
    """A rounding error between equal rows, as distances by products have it."""

    def cross(self, X, Z):
        elsewhere = jnp.arange(X.shape[0])[:, None] != jnp.arange(Z.shape[0])[None, :]
        return super().cross(X, Z) * jnp.where(elsewhere, 1 - 1e-15, 1.0)


class LosesDigits(RBF):
    """Right near the origin, and exact for equal rows, but not shift invariant in floating point."""

    def cross(self, X, Z):
        exact = super().cross(X, Z)
        return jnp.where(jnp.max(jnp.abs(X)) > 1e5, jnp.where(exact == 1.0, 1.0, exact * (1 - 1e-8)), exact)


class WrongGradient(RBF):
    def cross(self, X, Z):
        return jax.lax.stop_gradient(super().cross(X, Z))


class InfiniteGradient(Kernel):
    """exp(-r) by an ordinary square root: 0/0 in the gradient at distance 0."""

    lengthscale: Value = positive(1.0)

    def pair(self, x, z):
        return jnp.exp(-jnp.sqrt(jnp.sum(((x - z) / self.lengthscale) ** 2)))


class NotDifferentiable(Kernel):
    """Says by default that its draws have a gradient."""

    def pair(self, x, z):
        return jnp.exp(-jnp.sqrt(jnp.sum((x - z) ** 2)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Lopsided(), "is not symmetric: k(x, z) and k(z, x) differ in row"),
        (Indefinite(), "is not positive semi-definite: scaled to a unit diagonal, K has the eigenvalue -"),
        (Negative(), "k(x, x) is negative: -1."),
        (Infinite(), "k(x, z) is not finite for all rows of X."),
        (WrongBlocks(), "cross(X, Z) is not pair(x, z) on all pairs of rows: values differ in row"),
        (WrongDiagonal(), "diagonal(X) is not k(x, x): values differ"),
        (DependsOnTheBlock(), "k(X, Z) is not the block of k on X and Z together: values differ"),
        (
            Inexact(),
            "is stationary, but equal rows differ from k(x, x) by a rounding error: it must be exact.",
        ),
        (LosesDigits(), "loses digits when all inputs lie 1e6 from the origin"),
        (
            WrongGradient(),
            "the gradient of sum(W * K) with respect to lengthscale is 0, but differences give",
        ),
        (InfiniteGradient(), "with respect to lengthscale is nan, but differences give"),
        (NotDifferentiable(), "says it is differentiable, but d^2 k(x, z) / dx dz at z = x is not finite."),
        (warp(RBF(), lambda x: x[0]), "cannot be pickled"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Kernel) else "",
)
def test_broken_kernels_are_found(kernel, message):
    with pytest.raises(AssertionError) as caught:
        check_kernel(kernel)
    assert message in str(caught.value)


def test_a_kernel_of_ones_own_passes():
    check_kernel(Quadratic(0.5))
    check_kernel(2.0 * Quadratic(fixed(0.5)) + RBF(param(0.7, bounds=(0.7, 2.0))), n_columns=2)


def test_ones_own_inputs():
    X = np.random.default_rng(0).integers(0, 3, (12, 2)).astype(float)
    check_kernel(Categorical([0.2, 0.4]), X)
    check_kernel(RBF(0.7).on("temp") * Linear().on("flow"), pd.DataFrame(X, columns=["flow", "temp"]))
    with pytest.raises(AssertionError, match=r"X must be a table \(n, d\), but has shape \(12,\)."):
        check_kernel(RBF(), X[:, 0])


def test_a_kernel_known_to_be_stationary_is_held_to_it():
    check_kernel(Linear())
    with pytest.raises(AssertionError, match="loses digits"):
        check_kernel(Linear(), stationary=True)
    check_kernel(Inexact(), stationary=False)
