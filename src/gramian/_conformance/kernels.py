"""What a kernel promises."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import jax
import numpy as np

from gramian._conformance.helpers import Subject, by_theta
from gramian.arrays import Array
from gramian.gram import few, programs, radial, tiles
from gramian.kernels import Kernel
from gramian.params.tree import leaves

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
    it = Subject(repr(kernel))
    if kernel.low_precision:
        _check_low(it, kernel, near)  # first, since it is the programs made afterwards that may fail
    K = tiles.cross(kernel, X, X)
    it.must(K.dtype == np.float64, f"K(X, X) is of type {K.dtype}, not float64.")
    it.must(np.isfinite(K), "k(x, z) is not finite for all rows of X.")
    it.must(np.diag(K) >= 0, f"k(x, x) is negative: {np.diag(K).min():g}.")
    scale = _scale(np.diag(K))
    _same(it, K, K.T, scale, "it is not symmetric: k(x, z) and k(z, x)")
    _check_positive(it, K)
    with jax.enable_x64(True):
        lifted = np.asarray(_lifted(kernel.bare(), X))
    _same(it, K, lifted, scale, "cross(X, Z) is not pair(x, z) on all pairs of rows: values")
    diagonal, own = np.diag(tiles.diagonal(kernel, X)), np.diag(np.diag(K))
    _same(it, diagonal, own, scale, "diagonal(X) is not k(x, x): values")
    half = len(X) // 2
    block, there = tiles.cross(kernel, X[:half], X[half:]), np.s_[:half, half:]
    _same(it, block, K[there], scale[there], "k(X, Z) is not the block of k on X and Z together: values")
    _check_host(it, kernel, near, X, scale)
    _check_equal_rows(it, kernel, X, K, scale, kernel.stationary if stationary is None else stationary)
    _check_gradient(it, kernel, near)
    _check_gradient_finite(it, kernel, X)
    _check_sayings(it, kernel, near)
    _check_copies(it, kernel)


def _scale(diagonal: Array) -> Array:
    """How large k(x, z) may be, by k(x, x) and k(z, z)."""
    root = np.sqrt(np.abs(diagonal))
    return np.outer(root, root)


def _inputs(kernel: Kernel, X: Any, n_columns: int) -> tuple[Array, Array, Kernel]:
    """Ordinary rows, all rows, and the kernel with names of columns resolved."""
    if X is not None:
        kernel = kernel.resolve([str(column) for column in X.columns]) if hasattr(X, "columns") else kernel
        near = np.asarray(X, dtype=np.float64)
        Subject(repr(kernel)).must(near.ndim == 2, f"X must be a table (n, d), but has shape {near.shape}.")
        return near, np.concatenate([near, near[: len(near) // 3]]), kernel
    rng = np.random.default_rng(20240229)
    rows = rng.standard_normal((12, n_columns))
    whole = rng.integers(-1, 3, (6, n_columns)).astype(np.float64)  # equal in some columns, as categories are
    near = np.concatenate([rows, whole, np.zeros((1, n_columns)), rows[:2]])
    far = 1e3 * rng.standard_normal((1, n_columns))
    return near, np.concatenate([near, rows[:3], whole[:1], far, far, far + 0.1, -far]), kernel


def _check_positive(it: Subject, K: Array) -> None:
    """Up to rounding. Rows are brought to one scale first, so that a large one cannot hide the others."""
    scale = _scale(np.diag(K))
    unit = np.divide(K + K.T, 2 * scale, out=np.zeros_like(K), where=scale > 0)
    what = "it is not positive semi-definite: scaled to a unit diagonal, K"
    # an error of at most e in each entry moves an eigenvalue by at most n e
    it.semidefinite(unit, len(K) * ROUNDING, what)


def _check_host(it: Subject, kernel: Kernel, near: Array, X: Array, scale: Array) -> None:
    """Few rows of a kernel with a NumPy form never meet its `cross` in JAX: both must be the same."""
    block = few.block(kernel, X, X)
    if block is None:
        return
    W = np.random.default_rng(5).standard_normal((len(near), len(near)))
    with jax.enable_x64(True):
        compiled = np.asarray(programs.tile(kernel.bare(), X, X))
        none = np.zeros((len(near), 0))
        by_jax = leaves(programs.cross_pullback(False, False, kernel.bare(), near, near, W, none, none)[0])
    _same(it, block.K, compiled, scale, "cross(X, Z) and the form of on_host() differ: values")
    allowed = 1e-10 * (1 + sum(float(np.max(np.abs(slope))) for slope in by_jax))
    by_host = tiles.cross_pullback(kernel, near, near, W)
    for path, ours, theirs in zip(kernel.paths, by_host, by_jax, strict=True):
        it.within(ours, np.asarray(theirs), allowed, f"the gradient of {path} by on_host()", "JAX has")


def _check_equal_rows(
    it: Subject, kernel: Kernel, X: Array, K: Array, scale: Array, stationary: bool
) -> None:
    equal = np.all(X[:, None, :] == X[None, :, :], axis=2)
    diagonal = np.where(equal, np.diag(K)[:, None], K)
    _same(it, K, diagonal, scale, "equal rows have not the value k(x, x): values")
    if stationary:
        what = "it is stationary, but equal rows differ from k(x, x) by a rounding error: it must be exact."
        it.must(K[equal] == diagonal[equal], what)
        far = X + 2.0**20
        here = far - 2.0**20  # this subtraction is exact
        there, back = (tiles.cross(kernel, at, at) for at in (far, here))
        what = "it loses digits when all inputs lie 1e6 from the origin: values there and here"
        _same(it, there, back, scale, what)


def _check_gradient(it: Subject, kernel: Kernel, X: Array) -> None:
    """The pullback of random weights against differences. With h = 1e-4 and four points a derivative, the
    error is h^4 / 30 times the fifth derivative, plus eps / h = 2e-12 times the size of the sum. The 1e-8 of
    that size allowed here leaves room for fifth derivatives up to 1e9, such as those of a period that the
    data span many times."""
    W = np.random.default_rng(7).standard_normal((len(X), len(X)))
    W = W + W.T
    size = np.sum(np.abs(W) * _scale(tiles.diagonal(kernel, X)))

    def total(at: Kernel) -> float:
        return float(np.sum(W * tiles.cross(at, X, X)))

    found = list(by_theta(total, kernel, tiles.pullback(kernel, X, W), 1e-4))
    allowed = 1e-8 * max(size, *(abs(ours) for _, ours, _ in found), 0.0)
    for name, ours, theirs in found:
        it.within(ours, theirs, allowed, f"the gradient of sum(W * K) with respect to {name}")


def _check_gradient_finite(it: Subject, kernel: Kernel, X: Array) -> None:
    """Finite also where rows are equal, and where they are far apart."""
    gradients = tiles.pullback(kernel, X, np.ones((len(X), len(X))))
    for (name, parameter), gradient in zip(kernel.parameters().items(), gradients, strict=True):
        finite = np.isfinite(gradient) | (not parameter.trainable)
        it.must(finite, f"the gradient of {name} is not finite on data with equal rows.")
    if kernel.differentiable:
        variances = tiles.gradient_variances(kernel, X)
        what = "d^2 k(x, z) / dx dz at z = x"
        it.must(np.isfinite(variances), f"it says it is differentiable, but {what} is not finite.")
        lowest = np.min(variances)
        it.must(lowest >= -ROUNDING * np.max(variances), f"{what}, a variance, is {lowest:g}.")


def _check_low(it: Subject, kernel: Kernel, X: Array) -> None:
    """float32 gives some digits, and float64 all of them after it."""
    low = tiles.cross(kernel, X, X, low=True)
    try:
        K = tiles.cross(kernel, X, X)
    except ValueError as error:
        raise AssertionError(
            f"{it.name} says low_precision, but its program in float64 fails after one in float32, as one"
            " does that holds a NumPy array."
        ) from error
    off = np.abs(low - K) > LOW * _scale(np.diag(K))
    it.must(~off, "it says low_precision, but float32 has less than 3 of its 7 digits right.")


def _check_sayings(it: Subject, kernel: Kernel, X: Array) -> None:
    """What the kernel says of itself, at ordinary rows X."""
    own, d = list(kernel.parameters().values()), X.shape[1]
    K = tiles.cross(kernel, X, X)
    scale = _scale(np.diag(K))
    for lengthscale, columns in kernel.lengthscales(range(d)):
        known = any(lengthscale is p for p in own)
        it.must(known, "a lengthscale it names is none of its parameters.")
        size = lengthscale.value.size
        possible = set(columns) <= set(range(d)) and size in (1, len(columns))
        it.must(possible, f"{size} lengthscales are said to be for the columns {columns}.")
    levels = kernel.levels()
    if levels is not None:
        c = 1.75  # exact in binary: rounding is that of the kernel alone
        factors = [c if any(p is level for level in levels) else 1.0 for p in own]
        free = [dataclasses.replace(p, bounds=None) for p in own]
        at = [p.with_value(factor * p.value) for p, factor in zip(free, factors, strict=True)]
        moved = tiles.cross(kernel.with_parameters(at), X, X)
        _same(it, moved, c * K, c * scale, f"with its levels times {c}, k and {c} k")
    terms = kernel.summands
    if len(terms) > 1:
        total = sum((tiles.cross(term, X, X) for term in terms), np.zeros_like(K))
        _same(it, total, K, scale, "it is not the sum of its summands: values")
    _check_points(it, kernel, X, K)
    _check_radial(it, kernel, X, K, scale)


def _check_points(it: Subject, kernel: Kernel, X: Array, K: Array) -> None:
    """Points of another kind belong to the same process as rows: all have one covariance."""
    columns = kernel.point_columns()
    if columns is None:
        return
    Z = kernel.points_among(X, 6, np.random.default_rng(9))
    it.must(columns[0] == X.shape[1], f"it says that rows have {columns[0]} columns, not {X.shape[1]}.")
    it.must(Z.shape == (6, columns[1]), f"points have the shape {Z.shape}, not {(6, columns[1])}.")
    K_xz = tiles.cross(kernel, X, Z)
    joint = np.block([[K, K_xz], [K_xz.T, tiles.cross(kernel, Z, Z)]])
    own, diagonal = np.diag(np.diag(joint)[len(X) :]), np.diag(tiles.diagonal(kernel, Z))
    _same(it, diagonal, own, _scale(np.diag(own)), "diagonal(Z) of points is not k(z, z): values")
    _check_positive(it, joint)


def _check_radial(it: Subject, kernel: Kernel, X: Array, K: Array, scale: Array) -> None:
    """Values and gradient by the profile in NumPy are those of the compiled programs."""
    form, own = kernel.radial(), list(kernel.parameters().values())
    if form is None:
        return
    said = [*form.factors, form.lengthscale]
    what = f"radial() must name all its {len(own)} parameters in their order, factors first."
    it.must([id(p) for p in said] == [id(p) for p in own], what)
    fast = radial.taken(kernel, X, X, 1.0)
    assert fast is not None
    _same(it, fast.cross(np.empty_like(K)), K, scale, "values by radial() and by pair")
    W = np.random.default_rng(8).standard_normal(K.shape)
    W = W + W.T
    allowed = 1e-8 * np.sum(np.abs(W) * scale)
    gradients = fast.pullback(W.copy(), points=False), tiles.pullback(kernel, X, W)
    for path, ours, theirs in zip(kernel.parameters(), *gradients, strict=True):
        it.within(ours, theirs, allowed, f"the gradient of {path} by radial()", "that of pair is")


def _check_copies(it: Subject, kernel: Kernel) -> None:
    """Values out and in, pickle, deepcopy: all give the same kernel, and it prints."""
    it.must(repr(kernel) != "" and str(kernel) != "", "a kernel prints its formula, but this one nothing.")
    values = {path: parameter.value for path, parameter in kernel.parameters().items()}
    copies = {"with_values": kernel.with_values(values), "deepcopy": copy.deepcopy(kernel)}
    try:
        copies["pickle"] = pickle.loads(pickle.dumps(kernel))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(
            f"{kernel!r} cannot be pickled: {error}. Define its class and functions at the top of a module."
        ) from error
    for way, other in copies.items():
        same = other == kernel and hash(other) == hash(kernel)
        it.must(same, f"it and its copy by {way} are not equal.")


@jax.jit
def _lifted(kernel: Kernel, X: jax.Array) -> jax.Array:
    return Kernel.cross(kernel, X, X)


def _same(it: Subject, A: Array, B: Array, scale: Array, what: str) -> None:
    """A and B agree entry by entry up to rounding of numbers of size `scale`."""
    excess = np.abs(A - B) - ROUNDING * scale
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    it.must(excess[i, j] <= 0, f"{what} differ in row {i}, column {j}: {A[i, j]:.17g} and {B[i, j]:.17g}.")
