"""What a kernel promises."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from gramian._conformance.helpers import require
from gramian.gram import few, programs, tiles
from gramian.kernels import (
    Categorical,
    Constant,
    Cosine,
    Exp,
    Kernel,
    On,
    Periodic,
    Poly,
    Power,
    Product,
    Scaled,
    SpectralMixture,
    Stationary,
    Sum,
)
from gramian.params import ParameterSpace
from gramian.params.tree import leaves

Array = NDArray[np.float64]

# Two ways to the same kernel value may differ by this much, relative to sqrt(k(x, x) k(z, z)). The inputs
# below reach 1,000, which a kernel of period or lengthscale 0.1 turns into angles of 1e5, each rounded to
# about eps: 1e5 * 2e-16 * a few operations.
ROUNDING = 1e-10


def check_kernel(
    kernel: Kernel, X: Any = None, *, n_columns: int = 3, stationary: bool | None = None
) -> None:
    """Raises AssertionError unless `kernel` keeps the contract of a kernel.

    `X` (n, n_columns): inputs to check it on, where random numbers do not suit it; a DataFrame for a kernel
    on named columns. By default random rows, with duplicates, whole numbers, the origin, and rows far from
    all others. `stationary`: whether k depends on x - z alone; found from the kernel's parts unless given.
    """
    near, X, kernel = _inputs(kernel, X, n_columns)
    K = tiles.cross(kernel, X, X)
    name = repr(kernel)
    require(K.dtype == np.float64, f"{name}: K(X, X) is of type {K.dtype}, not float64.")
    require(bool(np.all(np.isfinite(K))), f"{name}: k(x, z) is not finite for all rows of X.")
    require(bool(np.all(np.diag(K) >= 0)), f"{name}: k(x, x) is negative: {np.diag(K).min():g}.")
    root = np.sqrt(np.diag(K))
    scale = np.outer(root, root)

    _same(K, K.T, scale, f"{name} is not symmetric: k(x, z) and k(z, x)")
    _check_positive(K, root, name)
    with jax.enable_x64(True):
        lifted = np.asarray(_lifted(kernel.bare(), X))
    _same(K, lifted, scale, f"{name}: cross(X, Z) is not pair(x, z) on all pairs of rows: values")
    _same(
        np.diag(tiles.diagonal(kernel, X)),
        np.diag(np.diag(K)),
        scale,
        f"{name}: diagonal(X) is not k(x, x): values",
    )
    half = len(X) // 2
    block = tiles.cross(kernel, X[:half], X[half:])
    _same(
        block,
        K[:half, half:],
        scale[:half, half:],
        f"{name}: k(X, Z) is not the block of k on X and Z together: values",
    )
    _check_host(kernel, near, X, scale)
    _check_equal_rows(kernel, X, K, scale, _is_stationary(kernel) if stationary is None else stationary)
    _check_gradient(kernel, near)
    _check_gradient_finite(kernel, X)
    _check_copies(kernel)


def _inputs(kernel: Kernel, X: Any, n_columns: int) -> tuple[Array, Array, Kernel]:
    """Ordinary rows, all rows, and the kernel with names of columns resolved."""
    if X is not None:
        kernel = kernel.resolve([str(column) for column in X.columns]) if hasattr(X, "columns") else kernel
        near = np.asarray(X, dtype=np.float64)
        require(near.ndim == 2, f"X must be a table (n, d), but has shape {near.shape}.")
        return near, np.concatenate([near, near[: len(near) // 3]]), kernel
    rng = np.random.default_rng(20240229)
    rows = rng.standard_normal((12, n_columns))
    whole = rng.integers(-1, 3, (6, n_columns)).astype(np.float64)  # equal in some columns, as categories are
    near = np.concatenate([rows, whole, np.zeros((1, n_columns)), rows[:2]])
    far = 1e3 * rng.standard_normal((1, n_columns))
    return near, np.concatenate([near, rows[:3], whole[:1], far, far, far + 0.1, -far]), kernel


def _check_positive(K: Array, root: Array, name: str) -> None:
    """Positive semi-definite up to rounding. Rows are brought to one scale first, so that a large one cannot
    hide the others."""
    inverse = np.where(root > 0, 1 / np.where(root > 0, root, 1.0), 0.0)
    lowest = float(np.linalg.eigvalsh(inverse[:, None] * (K + K.T) / 2 * inverse[None, :])[0])
    allowed = len(K) * ROUNDING  # an error of at most e in each entry moves an eigenvalue by at most n e
    require(
        lowest >= -allowed,
        f"{name} is not positive semi-definite: scaled to a unit diagonal, K has the eigenvalue"
        f" {lowest:.3g}.",
    )


def _check_host(kernel: Kernel, near: Array, X: Array, scale: Array) -> None:
    """Few rows of a kernel with a NumPy form never meet its `cross` in JAX: both must be the same, and so
    must their gradients."""
    block = few.block(kernel, X, X)
    if block is None:
        return
    W = np.random.default_rng(5).standard_normal((len(near), len(near)))
    with jax.enable_x64(True):
        compiled = np.asarray(programs.tile(kernel.bare(), X, X))
        none = np.zeros((len(near), 0))
        by_jax = leaves(programs.cross_pullback(False, kernel.bare(), near, near, W, none, none)[0])
    _same(block.K, compiled, scale, f"{kernel!r}: cross(X, Z) and the form of on_host() differ: values")
    size = 1 + sum(float(np.max(np.abs(slope))) for slope in by_jax)
    by_host = tiles.cross_pullback(kernel, near, near, W)
    for path, mine, slope in zip(kernel.paths, by_host, by_jax, strict=True):
        require(
            bool(np.all(np.abs(mine - np.asarray(slope)) <= 1e-10 * size)),
            f"{kernel!r}: the gradients of {path} by on_host() and by JAX differ: {mine} and {slope}.",
        )


def _check_equal_rows(kernel: Kernel, X: Array, K: Array, scale: Array, stationary: bool) -> None:
    equal = np.all(X[:, None, :] == X[None, :, :], axis=2)
    at_diagonal = np.broadcast_to(np.diag(K)[:, None], K.shape)
    _same(
        np.where(equal, K, 0.0),
        np.where(equal, at_diagonal, 0.0),
        scale,
        f"{kernel!r}: equal rows have not the value k(x, x): values",
    )
    if stationary:
        exact = bool(np.all(K[equal] == at_diagonal[equal]))
        require(
            exact,
            f"{kernel!r} is stationary, but equal rows differ from k(x, x) by a rounding error: it must be"
            " exact.",
        )
        shifted = X + 2.0**20
        together = tiles.cross(kernel, shifted, shifted)
        apart = tiles.cross(kernel, shifted - 2.0**20, shifted - 2.0**20)  # this subtraction is exact
        _same(
            together,
            apart,
            scale,
            f"{kernel!r} loses digits when all inputs lie 1e6 from the origin: values there and here",
        )


def _check_gradient(kernel: Kernel, X: Array) -> None:
    """The pullback of random weights against central differences, in the unconstrained coordinates of an
    optimiser.

    With h = 1e-4 and four points a derivative, the error is h^4 / 30 times the fifth derivative, plus eps / h
    = 2e-12 times the size of the sum. The 1e-8 of that size allowed here leaves room for fifth derivatives up
    to 1e9, such as those of a period that the data span many times.
    """
    # a step may cross one
    kernel = kernel.with_parameters(
        [dataclasses.replace(p, bounds=None) for p in kernel.parameters().values()]
    )
    space = ParameterSpace(kernel.parameters())
    theta, h = space.theta, 1e-4
    rng = np.random.default_rng(7)
    W = rng.standard_normal((len(X), len(X)))
    W = W + W.T
    root = np.sqrt(np.abs(tiles.diagonal(kernel, X)))

    def total(at: Array) -> float:
        return float(np.sum(W * tiles.cross(kernel.with_values(space.values(at)), X, X)))

    gradients = dict(zip(space.parameters, tiles.pullback(kernel, X, W), strict=True))
    ours = space.pullback(theta, gradients)
    allowed = 1e-8 * max(
        float(np.sum(np.abs(W) * np.outer(root, root))), float(np.max(np.abs(ours), initial=0.0))
    )
    for k, name in enumerate(space.names):
        step = h * max(1.0, abs(theta[k])) * np.eye(len(theta))[k]
        slope = (
            8 * (total(theta + step) - total(theta - step))
            - (total(theta + 2 * step) - total(theta - 2 * step))
        ) / (12 * step[k])
        require(
            abs(ours[k] - slope) <= allowed,
            f"{kernel!r}: the gradient of sum(W * K) with respect to {name} is {ours[k]:.10g}, but"
            f" differences give {slope:.10g} (+- {allowed:.1g}).",
        )


def _check_gradient_finite(kernel: Kernel, X: Array) -> None:
    """Finite also where rows are equal, and where they are far apart."""
    W = np.ones((len(X), len(X)))
    for (name, parameter), gradient in zip(
        kernel.parameters().items(), tiles.pullback(kernel, X, W), strict=True
    ):
        finite = bool(np.all(np.isfinite(gradient)))
        require(
            finite or not parameter.trainable,
            f"{kernel!r}: the gradient of {name} is not finite on data with equal rows.",
        )
    if kernel.differentiable:
        variances = tiles.gradient_variances(kernel, X)
        require(
            bool(np.all(np.isfinite(variances))),
            f"{kernel!r} says it is differentiable, but d^2 k(x, z) / dx dz at z = x is not finite.",
        )
        lowest = float(np.min(variances))
        require(
            lowest >= -ROUNDING * float(np.max(variances)),
            f"{kernel!r}: d^2 k(x, z) / dx dz at z = x, a variance, is {lowest:g}.",
        )


def _check_copies(kernel: Kernel) -> None:
    """Values out and in, pickle, deepcopy: all give the same kernel, and it prints."""
    require(
        bool(repr(kernel)) and bool(str(kernel)), "A kernel prints its formula, but this one prints nothing."
    )
    values = {path: parameter.value for path, parameter in kernel.parameters().items()}
    copies = {"with_values": kernel.with_values(values), "deepcopy": copy.deepcopy(kernel)}
    try:
        copies["pickle"] = pickle.loads(pickle.dumps(kernel))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            f"{kernel!r} cannot be pickled: {error}. Define its class and functions at the top of a module."
        ) from error
    for way, other in copies.items():
        require(
            other == kernel and hash(other) == hash(kernel),
            f"{kernel!r} and its copy by {way} are not equal.",
        )


def _is_stationary(kernel: Kernel) -> bool:
    """Whether the kernel is known to be a function of x - z, from the kernels it is made of."""
    if isinstance(kernel, (Sum, Product, Scaled, Power, Exp, Poly, On)):
        return all(_is_stationary(child) for _, child in kernel.branches() if isinstance(child, Kernel))
    return isinstance(kernel, (Stationary, Periodic, Cosine, SpectralMixture, Constant, Categorical))


@jax.jit
def _lifted(kernel: Kernel, X: jax.Array) -> jax.Array:
    return Kernel.cross(kernel, X, X)


def _same(A: Array, B: Array, scale: Array, what: str) -> None:
    """A and B agree entry by entry up to rounding of numbers of size `scale`."""
    excess = np.abs(A - B) - ROUNDING * scale
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    require(
        bool(excess[i, j] <= 0), f"{what} differ in row {i}, column {j}: {A[i, j]:.17g} and {B[i, j]:.17g}."
    )
