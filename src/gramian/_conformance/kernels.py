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
from gramian.gram import few, programs, radial, tiles
from gramian.kernels import Kernel
from gramian.params import ParameterSpace
from gramian.params.tree import leaves

Array = NDArray[np.float64]

# Two ways to the same kernel value may differ by this much, relative to sqrt(k(x, x) k(z, z)). The inputs
# below reach 1,000, which a kernel of period or lengthscale 0.1 turns into angles of 1e5, each rounded to
# about eps: 1e5 * 2e-16 * a few operations.
ROUNDING = 1e-10
# float32 has 7 digits, of which a period or lengthscale of 0.1 takes 2 (angles of 60), and a sum or a power
# one or two more
LOW = 1e-3


def check_kernel(
    kernel: Kernel, X: Any = None, *, n_columns: int = 3, stationary: bool | None = None
) -> None:
    """Raises AssertionError unless `kernel` keeps the contract of a kernel.

    `X` (n, n_columns): inputs to check it on, where random numbers do not suit it; a DataFrame for a kernel
    on named columns. By default random rows, with duplicates, whole numbers, the origin, and rows far from
    all others. `stationary`: whether k depends on x - z alone; as the kernel says unless given.

    What a kernel says of itself (stationary, differentiable, low_precision, lengthscales, levels, summands,
    radial) is checked where it says it.
    """
    near, X, kernel = _inputs(kernel, X, n_columns)
    if kernel.low_precision:
        _check_low(kernel, near)  # first, since it is the programs made afterwards that may fail
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
    _check_equal_rows(kernel, X, K, scale, kernel.stationary if stationary is None else stationary)
    _check_gradient(kernel, near)
    _check_gradient_finite(kernel, X)
    _check_sayings(kernel, near)
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
        by_jax = leaves(programs.cross_pullback(False, False, kernel.bare(), near, near, W, none, none)[0])
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


def _check_low(kernel: Kernel, X: Array) -> None:
    """float32 gives some digits, and float64 all of them after it."""
    low = tiles.cross(kernel, X, X, low=True)
    try:
        K = tiles.cross(kernel, X, X)
    except ValueError as error:
        raise AssertionError(
            f"{kernel!r} says low_precision, but its program in float64 fails after one in float32, as one"
            " does that holds a NumPy array."
        ) from error
    root = np.sqrt(np.abs(np.diag(K)))
    require(
        not np.any(np.abs(low - K) > LOW * np.outer(root, root)),
        f"{kernel!r} says low_precision, but float32 has less than 3 of its 7 digits right.",
    )


def _check_sayings(kernel: Kernel, X: Array) -> None:
    """What the kernel says of itself, at ordinary rows X."""
    name, own, d = repr(kernel), list(kernel.parameters().values()), X.shape[1]
    K = tiles.cross(kernel, X, X)
    root = np.sqrt(np.diag(K))
    scale = np.outer(root, root)
    for lengthscale, columns in kernel.lengthscales(range(d)):
        require(
            any(lengthscale is p for p in own), f"{name}: a lengthscale it names is none of its parameters."
        )
        require(
            set(columns) <= set(range(d)) and lengthscale.value.size in (1, len(columns)),
            f"{name}: {lengthscale.value.size} lengthscales are said to be for the columns {columns}.",
        )
    levels = kernel.levels()
    if levels is not None:
        c = 1.75  # exact in binary: rounding is that of the kernel alone
        at = [
            dataclasses.replace(p, bounds=None).with_value(
                c * p.value if any(p is level for level in levels) else p.value
            )
            for p in own
        ]
        moved = tiles.cross(kernel.with_parameters(at), X, X)
        _same(moved, c * K, c * scale, f"{name}: with its levels times {c}, k and {c} k")
    terms = kernel.summands
    if len(terms) > 1:
        total = sum((tiles.cross(term, X, X) for term in terms), np.zeros_like(K))
        _same(total, K, scale, f"{name} is not the sum of its summands: values")
    _check_radial(kernel, X, K, scale)


def _check_radial(kernel: Kernel, X: Array, K: Array, scale: Array) -> None:
    """Values and gradient by the profile in NumPy are those of the compiled programs."""
    form, name, own = kernel.radial(), repr(kernel), list(kernel.parameters().values())
    if form is None:
        return
    said = [*form.factors, form.lengthscale]
    require(
        len(said) == len(own) and all(a is b for a, b in zip(said, own, strict=True)),
        f"{name}: radial() must name all its {len(own)} parameters in their order, factors first.",
    )
    fast = radial.taken(kernel, X, X, 1.0)
    assert fast is not None
    _same(fast.cross(np.empty_like(K)), K, scale, f"{name}: values by radial() and by pair")
    W = np.random.default_rng(8).standard_normal(K.shape)
    W = W + W.T
    allowed = 1e-8 * float(np.sum(np.abs(W) * scale))
    for path, mine, theirs in zip(
        kernel.parameters(), fast.pullback(W.copy(), points=False), tiles.pullback(kernel, X, W), strict=True
    ):
        require(
            bool(np.max(np.abs(mine - theirs)) <= allowed),
            f"{name}: the gradient of {path} by radial() is {mine}, that of pair {theirs}.",
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
