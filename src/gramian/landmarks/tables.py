"""Rows of a table a block at a time: an array in memory, or a memory-mapped file that is never read as a
whole.

A block is a plain float64 array, whatever the table's type, because a compiled program belongs to one type of
number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gramian.arrays import AnyArray, Array, Indices
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.gram import tiles
from gramian.kernels.base import Column, Kernel

BLOCK_ROWS = 16_384  # long enough for products at full speed, and small beside what a factor of n rows takes


def as_table(X: Any) -> AnyArray:
    """X as an array (n, d): a memory map stays one, all else becomes float64."""
    if isinstance(X, np.memmap):
        table: AnyArray = X
    else:
        try:
            table = np.ascontiguousarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "X holds something that is not a number. Give a table of numbers, categories as codes."
            ) from None
    if table.ndim != 2 or not table.size:
        raise InputError(
            f"X has the shape {table.shape}; give a table (n, d) with a row a point, at least one of each."
        )
    for at, block in blocks(table):
        if not np.all(np.isfinite(block)):
            i, j = np.argwhere(~np.isfinite(block))[0]
            raise InputError(
                f"The value in row {at.start + i}, column {j} of X is {block[i, j]}; a kernel needs finite"
                " numbers. Fill or drop such rows."
            )
    return table


def as_kernel(kernel: Any, X: Any, d: int) -> Kernel:
    """The kernel with the column names of X resolved, after a check that it fits d columns."""
    if not isinstance(kernel, Kernel):
        raise ParameterError(
            f"kernel={kernel!r} is not a kernel. Give one such as RBF(0.5) or 2.0 * Matern52([0.3, 1.0])."
        )
    given: Sequence[Any] | None = getattr(X, "columns", None)  # of a DataFrame
    names = [f"x{j}" for j in range(d)] if given is None else [str(name) for name in given]
    kernel.check_columns([Column(name) for name in names])
    return kernel if given is None else kernel.resolve(names)


def blocks(X: AnyArray, size: int = BLOCK_ROWS, at: Indices | None = None) -> Iterator[tuple[slice, Array]]:
    """Where each block lies, and its rows; those of X[at] where some are named."""
    n = len(X) if at is None else len(at)
    for part in (slice(start, min(start + size, n)) for start in range(0, n, size)):
        yield part, _plain(X[part] if at is None else X[at[part]])


def take(X: AnyArray, indices: Indices) -> Array:
    """The rows X[indices]."""
    return _plain(X[indices])


def diagonal(kernel: Kernel, X: AnyArray) -> Array:
    """k(x, x) for each row, none of them negative."""
    found = np.concatenate([tiles.diagonal(kernel, block) for _, block in blocks(X)])
    bad = ~(np.isfinite(found) & (found >= 0))
    if np.any(bad):
        row = int(np.argmax(bad))
        raise NumericalError(
            f"k(x, x) is {found[row]} at row {row}: no variance. Rescale the columns, bound the kernel's"
            " parameters, or mend the kernel."
        )
    return found


def _plain(rows: AnyArray) -> Array:
    return np.ascontiguousarray(np.asarray(rows), dtype=np.float64)
