"""What the fields of the library's own classes may hold, by their annotation; constructors check values, not
all of them types."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_type_hints

import numpy as np

from gramian.certify.certificate import Quantity
from gramian.engines.base import Engine
from gramian.engines.lowrank import Outside
from gramian.engines.recipes import Objective
from gramian.errors import ModelFileError
from gramian.features.base import Basis
from gramian.inference import Inference
from gramian.inference.model import EvidenceKind
from gramian.kernels import Kernel
from gramian.means import Mean
from gramian.solvers import CG, MINRES, Cholesky
from gramian.solvers.preconditioners import Name


def shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_numbers(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (
        isinstance(value, tuple) and all(_is_numbers(item) for item in value)
    )


def _all(kind: Any) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, tuple)
        and all(isinstance(item, kind) and not isinstance(item, bool) for item in value)
    )


def _is(*kinds: Any) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _array(kind: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, np.ndarray) and value.dtype == kind


def _tuple_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(check, value))


_NOTHING = type(None)
FIELD_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "bool": _is(bool),
    "bool | None": _is(bool, _NOTHING),
    "int": _is(int),
    "int | None": _is(int, _NOTHING),
    "float": _is(float, int),
    "float | None": _is(float, int, _NOTHING),
    "str": _is(str),
    "str | LandmarkRule": _is(str),  # a rule of one's own is not written
    "Kernel": lambda value: isinstance(value, Kernel),
    "Mean": lambda value: isinstance(value, Mean),
    "Inference": lambda value: isinstance(value, Inference),
    "Engine": lambda value: isinstance(value, Engine),
    "Engine | None": lambda value: value is None or isinstance(value, Engine),
    "Cholesky": _is(Cholesky),
    "Solver": _is(Cholesky, CG, MINRES),
    "Name": lambda value: value in get_args(Name),
    "EvidenceKind": lambda value: value in get_args(EvidenceKind),
    "Objective": lambda value: value in get_args(Objective),
    "Outside": lambda value: value in get_args(Outside),
    "Basis": lambda value: isinstance(value, Basis),
    "Quantity": _is(Quantity),
    "Array": _array(np.float64),
    "Array | None": lambda value: value is None or _array(np.float64)(value),
    "tuple[Array, ...]": _tuple_of(_array(np.float64)),
    "tuple[VariationalWeights, ...]": lambda value: (
        value == ()
    ),  # where a search would begin, which a file leaves out
    "NDArray[np.intp]": _array(np.int64),
    "Pivots | None": lambda value: value is None or _array(np.int64)(value),
    "tuple[tuple[Draw, ...], ...]": _tuple_of(_tuple_of(_tuple_of(_array(np.float64)))),
    "tuple[Kernel, ...]": _all(Kernel),
    "tuple[float, ...]": lambda value: (
        isinstance(value, tuple) and all(type(item) is float and math.isfinite(item) for item in value)
    ),
    "tuple[int, ...]": lambda value: _all(int)(value) and all(item >= 0 for item in value),
    "tuple[str, ...]": _all(str),
    "tuple[str | int, ...]": _all((str, int)),
    "float | tuple[float, ...]": _is_numbers,
    "str | LandmarkRule | tuple[tuple[float, ...], ...]": lambda value: (
        type(value) is str or (isinstance(value, tuple) and _is_numbers(value))
    ),
    "Callable[[Any], Any]": callable,  # which nothing in a document is
}


def check_fields(cls: Any, values: Mapping[str, Any], where: str) -> None:
    """Raises where a field has a value of another type than its class declares."""
    for field in dataclasses.fields(cls):
        if "support" in field.metadata or not field.init:
            continue
        if str(field.type).startswith("Literal["):
            good = values[field.name] in get_args(get_type_hints(cls)[field.name])
        else:
            good = FIELD_CHECKS[str(field.type)](values[field.name])
        if not good:
            raise ModelFileError(
                f"{where}.{field.name} is {shown(values[field.name])}, which is no {field.type} as"
                f" {cls.__name__} needs it."
            )


__all__ = ["FIELD_CHECKS", "check_fields", "shown"]
