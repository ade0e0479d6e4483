"""Kernels, means, likelihoods, priors and their like as a JSON document, and back, with no code on the way.

    1, 0.5, "text", true, null              themselves (a float is written by repr, so it comes back to the
                                            last bit)
    {"float": "inf"}                        the three floats that JSON does not have: inf, -inf, nan
    [...]                                   a tuple
    {"parameter": {...}}                    a Parameter: shape, values, support, prior, bounds (null: none on
                                            that side), trainable
    {"array": "method.basis.Z"}             an array, which stands beside the document under this name: the
                                            place where it belongs
    {"class": "RBF", "fields": {...}}       an object of the library; likelihoods are "likelihoods.Gamma",
                                            since there is a prior of that name, too
    {"custom": "Wave", "fields": {...}}     an object of a class that a user defined

A class is looked up by its name among those that already exist in the process; nothing in a document can
import, call or name anything else. Objects are built by their own constructors, so whatever those refuse (a
negative lengthscale, an empty sum) is refused here.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from gramian.certify.certificate import Certificate, Quantity
from gramian.engines.base import Engine
from gramian.errors import ModelFileError
from gramian.features.base import Basis
from gramian.fitting import FitOutcome
from gramian.inference import Evidence, Inference, Scheme
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg.state import Arrays, entries, shown, typed, typed_list
from gramian.means import Mean
from gramian.modelfile.fields import check_fields
from gramian.params import Affine, Parameter, Prior, Real, Support, Tree
from gramian.solvers import Solver

# levels of kernels within kernels: far beyond any model, far below where Python's own stack ends
MAX_DEPTH: Final = 64
_OPEN = (Kernel, Mean, Likelihood, Prior, Support)  # what users may subclass
# what a document names of the library alone; every class of these families that an estimator knows is there,
# because the estimators have imported it
_CLOSED = (Engine, Inference, Scheme, Solver, Basis, Evidence, FitOutcome, Certificate, Quantity)
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def canonical(document: Any) -> str:
    """The one text of a document: keys sorted, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def parse(text: str) -> Any:
    """The document of a text; what JSON leaves open (NaN, keys twice, endless numbers, endless depth) is
    refused."""
    try:
        return json.loads(
            text,
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise ModelFileError("its document is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(f"its document is not JSON ({error}).") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ModelFileError(f"its document has the number {text[:40]}, which is beyond float64.")
    return value


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise ModelFileError(f"its document has the whole number {text[:40]}, which is beyond 64 bits.")
    return int(text)


def _no_constant(text: str) -> float:
    raise ModelFileError(f"its document has {text}, which is not JSON.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelFileError("its document has an entry twice.")
    return found


def plain(value: Any) -> Any:
    """The plain values of a state as JSON, which has neither inf nor nan."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {"float": repr(value)} if type(value) is float and not math.isfinite(value) else value


def parsed(value: Any, where: str) -> Any:
    """The plain values again."""
    if isinstance(value, dict):
        if "float" in value:
            return _special(value, where)
        return {name: parsed(item, f"{where}.{name[:40]}") for name, item in value.items()}
    return [parsed(item, where) for item in value] if isinstance(value, list) else value


# Writing. ---------------------------------------------------------------------------------------------------


def encode(value: Any, where: str, arrays: Arrays | None = None, depth: int = 0) -> Any:
    """The value as JSON; `where` names it in errors. Arrays inside go into `arrays`, where there may be
    any."""
    if depth > MAX_DEPTH:
        raise ModelFileError(
            f"{where.split('.')[0]} is nested more than {MAX_DEPTH} levels deep, too deep for a model file."
            " Write it flatter."
        )
    if isinstance(value, np.generic):
        value = value.item()
    # exactly: an enumeration's member or a named tuple is more than the number or the tuple that would come
    # back
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        if not -(2**63) <= value < 2**64:
            raise ModelFileError(
                f"{where} is a whole number beyond 64 bits, which a model file does not hold."
            )
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple:
        return [encode(item, f"{where}[{k}]", arrays, depth + 1) for k, item in enumerate(value)]
    if arrays is not None and isinstance(value, np.ndarray) and value.dtype in (np.float64, np.int64):
        arrays[where] = value
        return {"array": where}
    if isinstance(value, Parameter):
        return {"parameter": _encode_parameter(value, where, depth)}
    if isinstance(value, _CLOSED) and not _is_ours(kind):
        raise ModelFileError(
            f"{where} is a {kind.__name__}, a class of your own, but a model file holds engines, rules and"
            " solvers of gramian alone. Fit with one of those, or use pickle."
        )
    if isinstance(value, (*_OPEN, *_CLOSED)):
        return _encode_object(value, where, arrays, depth)
    if callable(value):
        name = getattr(value, "__name__", type(value).__name__)
        cure = (
            "Write the kernel as a class of your own (a subclass of gramian.Kernel with `pair`), which is"
            " stored by its name; or use pickle."
        )
        raise ModelFileError(f"{where} is the Python function {name}, and a model file holds no code. {cure}")
    raise ModelFileError(
        f"{where} is {shown(value)}, of type {kind.__name__}, which a model file cannot hold. Numbers, text"
        " and tuples it can."
    )


def _encode_parameter(parameter: Parameter, where: str, depth: int) -> dict[str, Any]:
    bounds = (
        None if parameter.bounds is None else [None if math.isinf(end) else end for end in parameter.bounds]
    )
    return {
        "shape": list(parameter.value.shape),
        "values": parameter.value.ravel().tolist(),
        "support": encode(parameter.support, f"{where}.support", None, depth + 1),
        "prior": encode(parameter.prior, f"{where}.prior", None, depth + 1),
        "bounds": bounds,
        "trainable": bool(parameter.trainable),
    }


def _encode_object(value: Any, where: str, arrays: Arrays | None, depth: int) -> dict[str, Any]:
    cls = type(value)
    key = "class" if _is_ours(cls) else "custom"
    if find_class(key, _label(cls)) is not cls:
        raise ModelFileError(
            f"{where}: the class {cls.__name__} was defined again since this model was made. Fit the model"
            " again, then save it."
        )
    if not dataclasses.is_dataclass(cls):
        raise ModelFileError(
            f"{where}: the class {cls.__name__} has no declared fields. Make it a dataclass:"
            " @dataclasses.dataclass(frozen=True)."
        )
    fields = {
        f.name: encode(getattr(value, f.name), f"{where}.{f.name}", arrays, depth + 1)
        for f in _stored_fields(cls)
    }
    return {key: _label(cls), "fields": fields}


def _stored_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The fields that a constructor takes; any other it computes itself."""
    for field in dataclasses.fields(cls):
        if not field.init and "support" in field.metadata:
            raise ModelFileError(
                f"{cls.__name__}.{field.name} is a parameter that its constructor does not take, so it cannot"
                " be restored."
            )
    return [field for field in dataclasses.fields(cls) if field.init]


# Classes. ---------------------------------------------------------------------------------------------------


def find_class(key: str, name: str, origins: Mapping[str, str] | None = None) -> type:
    """The class of this name: one of the library's (key "class"), or one that a user's code has defined in
    this process (key "custom")."""
    ours = key == "class"
    found = [cls for cls in _classes() if _label(cls) == name and _is_ours(cls) == ours]
    if not found and ours:
        raise ModelFileError(
            f"it uses {name[:80]!r}, which this version of gramian does not have. Upgrade: pip install"
            " --upgrade gramian."
        )
    if not found:
        module = (origins or {}).get(name, "")
        source = (
            f"the module that defines it ({module[:80]})"
            if module not in ("", "__main__")
            else "the module that defines it, or define it,"
        )
        raise ModelFileError(
            f"it uses the class {name[:80]!r}, which is not known here. Import {source} first, then load"
            " again."
        )
    # A class that was defined again under its own name, as when a notebook's cell runs twice, replaces the
    # one before. One made in a function does not: each call may make another.
    distinct = {
        (cls.__module__, cls.__qualname__, id(cls) if "<locals>" in cls.__qualname__ else 0) for cls in found
    }
    if len(distinct) > 1:
        places = " and ".join(sorted(f"{module}.{qualname}" for module, qualname, _ in distinct))
        raise ModelFileError(
            f"there are several classes named {name}: {places}. Rename one of them: a model file knows a"
            " class by its name only."
        )
    return found[-1]


def origins_of(document: Any) -> dict[str, str]:
    """Where the users' classes of a document were defined: a hint for those who load it, never used to
    import."""
    if isinstance(document, list):
        return {name: module for item in document for name, module in origins_of(item).items()}
    if not isinstance(document, dict):
        return {}
    found = {name: module for item in document.values() for name, module in origins_of(item).items()}
    return (
        {**found, document["custom"]: find_class("custom", document["custom"]).__module__}
        if "custom" in document
        else found
    )


def _classes() -> Iterator[type]:
    """Every concrete class that a document may name, in the order of definition within each family."""
    seen: set[type] = set()
    waiting: list[type] = [*_OPEN, *_CLOSED]
    while waiting:
        cls = waiting.pop(0)
        if cls not in seen:
            seen.add(cls)
            waiting += type.__subclasses__(cls)
            if not inspect.isabstract(cls) and (issubclass(cls, _OPEN) or _is_ours(cls)):
                yield cls


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "gramian"


def _label(cls: type) -> str:
    """What a document calls a class."""
    return f"likelihoods.{cls.__name__}" if issubclass(cls, Likelihood) and _is_ours(cls) else cls.__name__


# Reading. ---------------------------------------------------------------------------------------------------


def decode(
    value: Any,
    where: str,
    origins: Mapping[str, str] | None = None,
    arrays: Arrays | None = None,
    depth: int = 0,
) -> Any:
    """The value of a piece of a document, after every check that does not need the data. `arrays` are those
    that may be inside."""
    if depth > MAX_DEPTH:
        raise ModelFileError(f"{where.split('.')[0]} is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, list):
        return tuple(
            decode(item, f"{where}[{k}]", origins, arrays, depth + 1) for k, item in enumerate(value)
        )
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return _special(value, where)
    if "array" in value:
        (name,) = entries(value, where, "array")
        if arrays is None or name != where or where not in arrays:
            raise ModelFileError(f"{where} is the array {shown(name)}, but there is no array {where!r}.")
        return arrays[where]
    if "parameter" in value:
        (described,) = entries(value, where, "parameter")
        return _decode_parameter(described, where, origins, depth)
    for key in ("class", "custom"):
        if key in value:
            name, fields = entries(value, where, key, "fields")
            return _decode_object(
                find_class(key, typed(name, str, f"{where}.{key}"), origins),
                fields,
                where,
                origins,
                arrays,
                depth,
            )
    raise ModelFileError(f"{where} is {shown(value)}, which is neither a parameter nor an object.")


def _special(value: dict[str, Any], where: str) -> float:
    (name,) = entries(value, where, "float")
    if not isinstance(name, str) or name not in _SPECIAL:
        raise ModelFileError(
            f"{where} is the float {shown(name)}, but only inf, -inf and nan are written so."
        )
    return _SPECIAL[name]


def decoded(
    value: Any, kind: type, where: str, origins: Mapping[str, str], arrays: Arrays | None = None
) -> Any:
    """The same, when it is of this kind."""
    found = decode(value, where, origins, arrays)
    if not isinstance(found, kind):
        raise ModelFileError(f"{where} is a {type(found).__name__}, but must be a {kind.__name__}.")
    return found


def _decode_parameter(described: Any, where: str, origins: Mapping[str, str] | None, depth: int) -> Parameter:
    names = ("shape", "values", "support", "prior", "bounds", "trainable")
    shape, values, support, prior, bounds, trainable = entries(described, where, *names)
    shape, values = typed_list(shape, int, f"{where}.shape"), typed_list(values, float, f"{where}.values")
    if any(length < 0 for length in shape) or math.prod(shape) != len(values) or len(shape) > 8:
        raise ModelFileError(f"{where} has {len(values)} values, but the shape {shown(shape)}.")
    if bounds is not None:
        ends = typed(bounds, list, f"{where}.bounds")
        if len(ends) != 2:
            raise ModelFileError(f"{where}.bounds has {len(ends)} entries, but must have two.")
        bounds = tuple(
            free if end is None else typed(end, float, f"{where}.bounds")
            for end, free in zip(ends, (-math.inf, math.inf), strict=True)
        )
    found = [
        decode(part, f"{where}.{name}", origins, None, depth + 1)
        for part, name in ((support, "support"), (prior, "prior"))
    ]
    for part, kind in zip(found, (Support, Prior), strict=True):
        if part is not None and not isinstance(part, kind):
            raise ModelFileError(f"{where} has the {kind.__name__.lower()} {shown(part)}, which is none.")
    array = np.array(values, dtype=np.float64).reshape(shape)
    parameter = Parameter(array, found[0], found[1], bounds, typed(trainable, bool, f"{where}.trainable"))
    problem = None if parameter.support is None else _problem(parameter.support, parameter)
    if problem:
        raise ModelFileError(f"{where} {problem}.")
    return parameter


def _problem(support: Support, parameter: Parameter) -> str | None:
    if isinstance(support, Affine):
        loc, scale = (np.asarray(part, dtype=np.float64) for part in (support.loc, support.scale))
        if not (np.all(np.isfinite(loc)) and np.all(np.isfinite(scale)) and np.all(scale > 0)):
            return "is measured in units that are not finite and positive"
        if any(part.shape not in ((), parameter.value.shape) for part in (loc, scale)):
            return f"has the shape {parameter.value.shape}, but its units have {loc.shape} and {scale.shape}"
    return support.problem(parameter.value)


def _decode_object(
    cls: Any, fields: Any, where: str, origins: Mapping[str, str] | None, arrays: Arrays | None, depth: int
) -> Any:
    declared = _stored_fields(cls)
    given = dict(
        zip((f.name for f in declared), entries(fields, where, *(f.name for f in declared)), strict=True)
    )
    values = {
        name: decode(part, f"{where}.{name}", origins, arrays, depth + 1) for name, part in given.items()
    }
    if _is_ours(cls):
        check_fields(cls, values, where)
    parameters = {
        f.name: values[f.name] for f in declared if issubclass(cls, Tree) and "support" in f.metadata
    }
    for name, parameter in parameters.items():
        # As held fixed while the constructor looks at it: a fitted value may lie on the edge of its range,
        # where a constructor lets none start.
        values[name] = dataclasses.replace(
            typed(parameter, Parameter, f"{where}.{name}"), support=None, trainable=False
        )
    new = cls(**values)
    for name, parameter in parameters.items():
        support = typed(getattr(new, name), Parameter, f"{where}.{name}").support
        # A mean measures its parameters in the units of the data; those are real numbers all the same.
        if parameter.support != support and not (
            isinstance(support, Real) and isinstance(parameter.support, Affine)
        ):
            change = f"has the support {parameter.support}, but the class {cls.__name__} gives it {support}"
            raise ModelFileError(f"{where}.{name} {change}. Has the class changed since?")
        object.__setattr__(new, name, parameter)
    return new


__all__ = [
    "MAX_DEPTH",
    "canonical",
    "decode",
    "decoded",
    "encode",
    "find_class",
    "origins_of",
    "parse",
    "parsed",
    "plain",
]
