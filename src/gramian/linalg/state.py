"""What an object consists of, as plain values and arrays, and the checks with which it is built again.

`state()` gives an `ObjectState`, `from_state` builds the object from one and refuses what does not fit
together: a state may come from a file that somebody made up. An array whose name begins with "root." is a
lower triangle; "alpha" and "root.0" of a part p are "p.alpha" and "root.p.0".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gramian.arrays import AnyArray, Array
from gramian.errors import StateError

Arrays = dict[str, AnyArray]
T = TypeVar("T")

TRIANGLE = "root."  # how the names of triangular arrays begin


class ObjectState(NamedTuple):
    """What an object consists of."""

    described: dict[str, Any]  # plain values: None, bool, int, float, str, and lists and dicts of them
    arrays: Arrays  # of float64 or int64


# Plain values. ----------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def entries(value: Any, where: str, *names: str) -> list[Any]:
    """The values of a dict that must have exactly these keys, in this order."""
    if not isinstance(value, dict):
        raise StateError(f"{where} is {shown(value)}, but must have entries {', '.join(names)}.")
    for name in names:
        if name not in value:
            raise StateError(f"{where} has no entry {name!r}.")
    for name in value:
        if name not in names:
            raise StateError(f"{where} has the entry {name[:80]!r}, which is not known.")
    return [value[name] for name in names]


def typed(value: Any, kind: type[T], where: str) -> T:
    """The value, when it is of exactly this type (true is no whole number, 1 no float)."""
    if type(value) is not kind:
        raise StateError(f"{where} is {shown(value)}, but must be of type {kind.__name__}.")
    return value


def typed_list(value: Any, kind: type[T], where: str) -> list[T]:
    """A list whose entries are all of exactly this type."""
    return [typed(item, kind, f"{where}[{k}]") for k, item in enumerate(typed(value, list, where))]


# Arrays. ----------------------------------------------------------------------------------------------------


def taken(
    arrays: Arrays, name: str, shape: tuple[int | None, ...] = (None,), kind: type = np.float64
) -> AnyArray:
    """An array that must be there, in this shape (None: any length)."""
    if name not in arrays:
        raise StateError(f"it has no array {name!r}.")
    array = arrays[name]
    if array.dtype != kind:
        raise StateError(f"its array {name!r} is of type {array.dtype}, but must be {np.dtype(kind)}.")
    if array.ndim != len(shape) or any(
        length not in (None, mine) for length, mine in zip(shape, array.shape, strict=True)
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise StateError(f"its array {name!r} has the shape {array.shape}, but must have ({wanted}).")
    return array


def root(arrays: Arrays, name: str, size: int) -> Array:
    """A triangle with a positive diagonal; its name without "root."."""
    found = taken(arrays, TRIANGLE + name, (size, size))
    if not np.all(np.diagonal(found) > 0):
        raise StateError(f"its {TRIANGLE + name!r} has a diagonal that is not positive.")
    return found


def roots(arrays: Arrays, size: int, root_of: Any, q: int) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """All of "root.0", "root.1", ..., and which of q outputs uses which; all must be used."""
    of = tuple(typed_list(root_of, int, "root_of"))
    numbered = sum(name.removeprefix(TRIANGLE).isdecimal() for name in arrays if name.startswith(TRIANGLE))
    found = tuple(root(arrays, str(r), size) for r in range(max(1, numbered)))
    if len(of) != q or set(of) != set(range(len(found))):
        raise StateError(
            f"root_of is {list(of)[:8]}, but must name each of the {len(found)} roots for {q} outputs."
        )
    return found, of


def numbered(arrays: Sequence[AnyArray], stem: str = TRIANGLE) -> Arrays:
    """Arrays named by their place."""
    return {f"{stem}{k}": array for k, array in enumerate(arrays)}


def within(arrays: Arrays, part: str) -> Arrays:
    """The arrays under the names that they have as those of a part."""
    return {
        f"{TRIANGLE}{part}.{name[len(TRIANGLE) :]}" if name.startswith(TRIANGLE) else f"{part}.{name}": a
        for name, a in arrays.items()
    }


def of_parts(arrays: Arrays, stem: str, count: int) -> list[Arrays]:
    """Those of the parts stem0, stem1, ..., under their own names: the inverse of `joined`. One pass over the
    names, however many parts there are."""
    found: list[Arrays] = [{} for _ in range(count)]
    of_one = re.compile(rf"({re.escape(TRIANGLE)})?{re.escape(stem)}(0|[1-9][0-9]{{0,8}})\.(.*)", re.DOTALL)
    for name, a in arrays.items():
        match = of_one.fullmatch(name)
        if match and int(match[2]) < count:
            found[int(match[2])][(match[1] or "") + match[3]] = a
    return found


def joined(parts: Sequence[Arrays], stem: str) -> Arrays:
    """The arrays of several parts, which are called stem0, stem1, ..."""
    return {name: a for k, part in enumerate(parts) for name, a in within(part, f"{stem}{k}").items()}
