"""What the fields of the library's own classes may hold, by their annotation; constructors check values, not
all of them types."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from gramian.errors import ModelFileError
from gramian.linalg.state import shown


def check_fields(cls: Any, values: Mapping[str, Any], where: str) -> None:
    """Raises where a field has a value of another type than its class declares."""
    for field in dataclasses.fields(cls):
        if "support" in field.metadata or field.name not in values:
            continue
        value, hint = values[field.name], _hints(cls)[field.name]
        # a float by itself may be inf or nan (an evidence that is not computed); one among others is finite
        if not (hint is float is type(value)) and not fits(value, hint):
            needed = f"no {field.type} as {cls.__name__} needs it"
            raise ModelFileError(f"{where}.{field.name} is {shown(value)}, which is {needed}.")


_hints = cache(get_type_hints)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a hint says; a hint of a kind that no field has is an error of this library."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in args)
    if origin is Literal:
        return any(type(value) is type(part) and value == part for part in args)
    if origin is tuple and len(args) == 2 and args[1] is ...:
        return isinstance(value, tuple) and all(fits(item, args[0]) for item in value)
    if origin is tuple:
        same = isinstance(value, tuple) and len(value) == len(args)
        return same and all(fits(item, part) for item, part in zip(value, args, strict=True))
    if origin is np.ndarray:
        (number,) = get_args(args[1])
        return isinstance(value, np.ndarray) and value.dtype == number
    if origin is Callable:
        return False  # nothing in a document is code
    if hint is float:
        return type(value) in (float, int) and math.isfinite(value)
    if hint in (bool, int, str, type(None)):
        return type(value) is hint
    if isinstance(hint, type) and hint.__module__.startswith("gramian."):
        return isinstance(value, hint)
    raise TypeError(f"no check for {hint}")
