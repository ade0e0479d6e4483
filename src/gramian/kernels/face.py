"""The NumPy face of kernels: arrays, lists and DataFrames in, float64 arrays out. It alone looks from kernels
to the Gram tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.arrays import Array, is_whole
from gramian.errors import InputError, ParameterError
from gramian.gram import tiles
from gramian.kernels.base import Column, Kernel
from gramian.kernels.expectations import Expected


def evaluate(kernel: Kernel, X: ArrayLike, Z: ArrayLike | None) -> Any:
    """K(X, X) or K(X, Z); a float for two single points."""
    raw = [_table(value, name) for value, name in ((X, "X"), (Z, "Z")) if value is not None]
    single = all(table.ndim == 1 for table, _ in raw)
    arrays, kernel = _numbers(kernel, raw)
    if len(arrays) == 1:
        K = tiles.fill(kernel, arrays[0], np.empty((len(arrays[0]),) * 2, order="F"))
        return np.tril(K) + np.tril(K, -1).T
    K = tiles.cross(kernel, *arrays)
    return float(K[0, 0]) if single else K


def draws(kernel: Kernel, X: ArrayLike, count: int, seed: Any) -> Array:
    """Joint draws of N(0, K) at the rows of X, (n, count), by K = V diag(w) V': smooth kernels have matrices
    that are singular to rounding, of which a Cholesky factor would need jitter."""
    if not is_whole(count):
        raise ParameterError(f"n_samples={count!r} must be a whole number from 1 on.")
    K = np.atleast_2d(
        evaluate(kernel, np.atleast_2d(np.asarray(X)) if not hasattr(X, "columns") else X, None)
    )
    w, V = np.linalg.eigh(K)
    z = np.random.default_rng(seed).standard_normal((len(K), int(count)))
    return V @ (np.sqrt(np.maximum(w, 0.0))[:, None] * z)


def evaluate_diagonal(kernel: Kernel, X: ArrayLike) -> Array:
    """k(x, x) for each row of X."""
    arrays, kernel = _numbers(kernel, [_table(X, "X")])
    return tiles.diagonal(kernel, arrays[0])


def evaluate_expected(kernel: Kernel, mean: ArrayLike, var: ArrayLike, Z: ArrayLike) -> Expected:
    """What a kernel is on average at the rows N(mean, diag(var)), against the points Z."""
    (X, points), kernel = _numbers(kernel, [_table(mean, "mean"), _table(Z, "Z")])
    try:
        spread = np.broadcast_to(np.asarray(var, dtype=np.float64), X.shape)
    except (TypeError, ValueError):
        given = f"has shape {np.shape(var)}" if np.ndim(var) else f"is {var!r}"
        cure = f"one number, one a column ({X.shape[1]}), or one a cell {X.shape}"
        raise InputError(f"var {given}, but must be {cure}.") from None
    if not np.all(spread >= 0) or not np.all(np.isfinite(spread)):
        raise InputError("var holds a number that is negative or not finite; variances are not.")
    return Expected(*tiles.expectations(kernel, X, spread, points))


def _table(value: Any, name: str) -> tuple[NDArray[Any], list[str] | None]:
    names = [str(c) for c in value.columns] if hasattr(value, "columns") else None
    array = np.asarray(value)
    if array.ndim not in (1, 2):
        raise InputError(f"{name} has {array.ndim} dimensions; give one point (d,) or a table (n, d).")
    return array, names


def _refuse_containers(table: NDArray[Any]) -> None:
    for i, j in np.ndindex(table.shape) if table.dtype == object else ():
        if isinstance(table[i, j], (list, tuple, dict, set, np.ndarray)):
            what = f"a {type(table[i, j]).__name__} in row {i}, column {j}"
            raise InputError(f"The table has {what}. Give a number, or text for a category.")


def _numbers(kernel: Kernel, raw: list[tuple[NDArray[Any], list[str] | None]]) -> tuple[list[Array], Kernel]:
    """Float64 tables of shape (n, d), text coded as integers that all tables share, and the kernel with its
    column names resolved."""
    tables = [np.atleast_2d(array) for array, _ in raw]
    d = tables[0].shape[1]
    if tables[-1].shape[1] != d:
        raise InputError(f"X has {d} columns, but Z has {tables[-1].shape[1]}.")
    names, others = raw[0][1], raw[-1][1]
    if names and others and names != others:
        raise InputError(
            f"X has the columns {', '.join(names)}, but Z has {', '.join(others)}. Give both in the same"
            " order: Z[X.columns]."
        )
    text = [False] * d
    for table in tables:
        _refuse_containers(table)
    try:
        arrays = [np.ascontiguousarray(table, dtype=np.float64) for table in tables]
    except OverflowError:
        cure = "Give it in other units, or its logarithm."
        raise InputError(f"A number in the table is beyond the largest, 1.8e308. {cure}") from None
    except (TypeError, ValueError):
        arrays = [np.empty(table.shape) for table in tables]
        for j in range(d):
            try:
                for array, table in zip(arrays, tables, strict=True):
                    array[:, j] = table[:, j].astype(np.float64)
            except (TypeError, ValueError):
                text[j] = True
                stacked = np.concatenate([table[:, j].astype(str) for table in tables])
                codes = np.unique(stacked, return_inverse=True)[1]
                pieces = np.split(codes, np.cumsum([len(t) for t in tables])[:-1])
                for array, piece in zip(arrays, pieces, strict=True):
                    array[:, j] = piece
    for array in arrays:
        for i, j in np.argwhere(~np.isfinite(array))[:1]:
            raise InputError(
                f"The value in row {i}, column {j} is {array[i, j]}; a kernel needs finite numbers."
            )
    names = names or others
    kernel.check_columns([*map(Column, names or [f"x{j}" for j in range(d)], text)])
    return arrays, kernel.resolve(names) if names else kernel
