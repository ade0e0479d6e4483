"""Kernels, means, likelihoods, priors and their like as a JSON document, and back, with no code on the way.

    1, 0.5, "text", true, null              themselves (floats by repr, which keeps the last bit)
    {"float": "inf"}                        the three floats that JSON does not have: inf, -inf, nan
    [...]                                   a tuple
    {"parameter": {...}}                    a Parameter; bounds have null where there is none on that side
    {"array": "method.basis.Z"}             an array beside the document, named by the place where it belongs
    {"class": "RBF", "fields": {...}}       an object of the library; "likelihoods.Gamma" is no prior
    {"custom": "Wave", "fields": {...}}     an object of a class that a user defined

A class is looked up by its name among those that already exist in the process; nothing in a document can
import, call or name anything else. Objects are built by their own constructors, so whatever those refuse (a
negative lengthscale, an empty sum) is refused here.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from gramian.certify.certificate import Certificate, Quantity
from gramian.corrections import Calibration
from gramian.data.readings import Reading
from gramian.engines.base import Engine
from gramian.errors import ModelFileError
from gramian.features.base import Basis
from gramian.fitting import FitOutcome
from gramian.inference import Evidence, Inference, Scheme
from gramian.kernels import Kernel, Network
from gramian.likelihoods import Likelihood
from gramian.linalg.state import Arrays, entries, shown, typed, typed_list
from gramian.means import Mean
from gramian.modelfile.fields import check_fields
from gramian.params import Parameter, Prior, Support, Tree
from gramian.series.model import Structure
from gramian.series.spectrum import Season
from gramian.series.table import Layout
from gramian.series.times import Axis, Step
from gramian.solvers import Solver
from gramian.warps import Warp
from gramian.widths import Widths

# levels of kernels within kernels: far beyond any model, far below where Python's own stack ends
MAX_DEPTH: Final = 64
# Each takes some ten milliseconds before a first prediction, and seconds to compile: a sum of more is nothing
# that anybody has fitted.
MAX_KERNELS: Final = 1000
_OPEN = (Kernel, Network, Mean, Likelihood, Warp, Prior, Support)  # what users may subclass
# what a document names of the library alone; every class of these families that an estimator knows is there,
# because the estimators have imported it
_CLOSED = (
    *(Engine, Inference, Scheme, Solver, Basis, Evidence, FitOutcome, Certificate, Quantity, Calibration),
    *(Reading, Widths, Layout, Axis, Step, Season, Structure),
)
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_FREE = (-math.inf, math.inf)
_PARAMETER = ("shape", "values", "support", "prior", "bounds", "trainable")


def canonical(document: Any) -> str:
    """The one text of a document: keys sorted, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def parse(text: str) -> Any:
    """The document of a text; what JSON leaves open (NaN, keys twice, numbers without end) is refused."""
    hooks: dict[str, Any] = {"parse_float": _finite, "parse_int": _whole, "parse_constant": _no_constant}
    try:
        return json.loads(text, object_pairs_hook=_unique, **hooks)
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


def _check_depth(where: str, cure: str = "") -> None:
    if where.count(".") + where.count("[") > MAX_DEPTH:
        raise ModelFileError(f"{where.split('.')[0]} is nested more than {MAX_DEPTH} levels deep{cure}.")


# Writing. ---------------------------------------------------------------------------------------------------


def encode(value: Any, where: str, arrays: Arrays | None = None) -> Any:
    """The value as JSON; `where` is its place. Arrays inside go into `arrays`, where there may be any."""
    _check_depth(where, ", too deep for a model file. Write it flatter")
    if isinstance(value, np.generic):
        value = value.item()
    # exactly: an enumeration's member or a named tuple is more than what would come back
    kind = type(value)
    if kind is int and not -(2**63) <= value < 2**64:
        raise ModelFileError(f"{where} is a whole number beyond 64 bits, which a model file does not hold.")
    if value is None or kind in (bool, int, float, str):
        return plain(value)
    if kind is tuple:
        return [encode(item, f"{where}[{k}]", arrays) for k, item in enumerate(value)]
    if arrays is not None and isinstance(value, np.ndarray) and value.dtype in (np.float64, np.int64):
        arrays[where] = value
        return {"array": where}
    if isinstance(value, Parameter):
        return {"parameter": _encode_parameter(value, where)}
    if isinstance(value, _CLOSED) and not _is_ours(kind):
        rule = "a model file holds engines, rules and solvers of gramian alone"
        own = f"{where} is a {kind.__name__}, a class of your own"
        raise ModelFileError(f"{own}, but {rule}. Fit with one of those, or use pickle.")
    if isinstance(value, (*_OPEN, *_CLOSED)):
        return _encode_object(value, where, arrays)
    if callable(value):
        name, cure = getattr(value, "__name__", kind.__name__), "Write the kernel as a class of your own"
        cure += " (a subclass of gramian.Kernel with `pair`), which is stored by its name; or use pickle."
        raise ModelFileError(f"{where} is the Python function {name}, and a model file holds no code. {cure}")
    rule = "which a model file cannot hold. Numbers, text and tuples it can"
    raise ModelFileError(f"{where} is {shown(value)}, of type {kind.__name__}, {rule}.")


def _encode_parameter(parameter: Parameter, where: str) -> dict[str, Any]:
    return {
        "shape": list(parameter.value.shape),
        "values": parameter.value.ravel().tolist(),
        "support": encode(parameter.support, f"{where}.support"),
        "prior": encode(parameter.prior, f"{where}.prior"),
        "bounds": None if parameter.bounds is None else [_encode_end(end) for end in parameter.bounds],
        "trainable": bool(parameter.trainable),
    }


def _encode_end(end: float | tuple[float, ...]) -> Any:
    """A bound, or one an entry; None where it is infinite."""
    if isinstance(end, tuple):
        return [_encode_end(each) for each in end]
    return None if math.isinf(end) else end


def _encode_object(value: Any, where: str, arrays: Arrays | None) -> dict[str, Any]:
    cls = type(value)
    key = "class" if _is_ours(cls) else "custom"
    if key == "custom" and find_class(key, _label(cls)) is not cls:
        cause = f"the class {cls.__name__} was defined again since this model was made"
        raise ModelFileError(f"{where}: {cause}. Fit the model again, then save it.")
    if not dataclasses.is_dataclass(cls):
        cure = "Make it a dataclass: @dataclasses.dataclass(frozen=True)"
        raise ModelFileError(f"{where}: the class {cls.__name__} has no declared fields. {cure}.")
    names = [field.name for field in _stored_fields(cls)]
    fields = {name: encode(getattr(value, name), f"{where}.{name}", arrays) for name in names}
    return {key: _label(cls), "fields": fields}


def _stored_fields(cls: Any) -> list[dataclasses.Field[Any]]:
    """The fields that a constructor takes and a file holds; any other it computes itself, or does without."""
    for field in dataclasses.fields(cls):
        if not field.init and "support" in field.metadata:
            cause = "is a parameter that its constructor does not take, so it cannot be restored"
            raise ModelFileError(f"{cls.__name__}.{field.name} {cause}.")
    return [f for f in dataclasses.fields(cls) if f.init and f.metadata.get("saved", True)]


# Classes. ---------------------------------------------------------------------------------------------------


Known = Mapping[tuple[str, str], list[type]]  # "class" or "custom", and the name


def known_classes() -> Known:
    """The classes that a document may name, as they are now."""
    found: dict[tuple[str, str], list[type]] = {}
    for cls in _classes():
        found.setdefault(("class" if _is_ours(cls) else "custom", _label(cls)), []).append(cls)
    return found


def find_class(
    key: str, name: str, origins: Mapping[str, str] | None = None, known: Known | None = None
) -> type:
    """The class of this name: the library's (key "class"), or one of a user in this process ("custom")."""
    found = (known_classes() if known is None else known).get((key, name), [])
    if not found and key == "class":
        cure = "Upgrade: pip install --upgrade gramian"
        raise ModelFileError(f"it uses {name[:80]!r}, which this version of gramian does not have. {cure}.")
    if not found:
        module = (origins or {}).get(name) or "__main__"
        place = ", or define it," if module == "__main__" else f" ({module[:80]})"
        cure = f"Import the module that defines it{place} first, then load again"
        raise ModelFileError(f"it uses the class {name[:80]!r}, which is not known here. {cure}.")
    # A class that was defined again under its own name, as when a notebook's cell runs twice, replaces the
    # one before. One made in a function does not: each call may make another.
    distinct = {
        (cls.__module__, cls.__qualname__, id(cls) if "<locals>" in cls.__qualname__ else 0) for cls in found
    }
    if len(distinct) > 1:
        places = " and ".join(sorted(f"{module}.{qualname}" for module, qualname, _ in distinct))
        cure = "Rename one of them: a model file knows a class by its name only"
        raise ModelFileError(f"there are several classes named {name}: {places}. {cure}.")
    return found[-1]


def origins_of(document: Any) -> dict[str, str]:
    """Where the users' classes of a document were defined: a hint for people, never used to import."""
    known = known_classes()
    return {name: find_class("custom", name, known=known).__module__ for name in _customs(document)}


def _customs(document: Any) -> Iterator[str]:
    """The names of users' classes in a document."""
    if isinstance(document, dict) and "custom" in document:
        yield document["custom"]
    items = document.values() if isinstance(document, dict) else document
    for item in items if isinstance(document, (dict, list)) else ():
        yield from _customs(item)


def _classes() -> Iterator[type]:
    """Every concrete class that a document may name, in the order of definition within each family."""
    found: dict[type, None] = {}
    level: list[type] = [*_OPEN, *_CLOSED]
    while level:
        found |= dict.fromkeys(level)
        level = list(itertools.chain.from_iterable(type.__subclasses__(cls) for cls in level))
    for cls in found:
        if not inspect.isabstract(cls) and (issubclass(cls, _OPEN) or _is_ours(cls)):
            yield cls


def _is_ours(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "gramian"


def _label(cls: type) -> str:
    """What a document calls a class."""
    return f"likelihoods.{cls.__name__}" if issubclass(cls, Likelihood) and _is_ours(cls) else cls.__name__


# Reading. ---------------------------------------------------------------------------------------------------


class Reader(NamedTuple):
    """Values from pieces of a document, after every check that does not need the data."""

    origins: Mapping[str, str]  # of the users' classes
    known: Known
    shapes: dict[Any, tuple[int, ...]]  # what parts of models have been found to give
    arrays: Arrays | None = None  # those that may be inside

    def beside(self, arrays: Arrays | None) -> Reader:
        """The same reader with other arrays."""
        return self._replace(arrays=arrays)

    def one(self, value: Any, kind: Any, where: str) -> Any:
        """A value of this kind."""
        found = self.decode(value, where)
        if not isinstance(found, kind):
            raise ModelFileError(f"{where} is a {type(found).__name__}, but must be a {kind.__name__}.")
        if isinstance(found, Kernel):
            count = sum(1 for _ in found.walk())
            if count > MAX_KERNELS:
                rule = f"but a model file holds kernels of {MAX_KERNELS:,} at most"
                raise ModelFileError(f"{where} is made of {count:,} kernels, {rule}.")
        return found

    def decode(self, value: Any, where: str) -> Any:
        _check_depth(where)
        if isinstance(value, list):
            return tuple(self.decode(item, f"{where}[{k}]") for k, item in enumerate(value))
        if not isinstance(value, dict):
            return value
        if "float" in value:
            return _special(value, where)
        if "array" in value:
            (name,) = entries(value, where, "array")
            if name != where or self.arrays is None or where not in self.arrays:
                raise ModelFileError(f"{where} is the array {shown(name)}, but there is no array {where!r}.")
            return self.arrays[where]
        if "parameter" in value:
            return self._parameter(entries(value, where, "parameter")[0], where)
        for key in ("class", "custom"):
            if key in value:
                name, fields = entries(value, where, key, "fields")
                cls = find_class(key, typed(name, str, f"{where}.{key}"), self.origins, self.known)
                return self._object(cls, fields, where)
        raise ModelFileError(f"{where} is {shown(value)}, which is neither a parameter nor an object.")

    def _parameter(self, described: Any, where: str) -> Parameter:
        shape, values, support, prior, bounds, trainable = entries(described, where, *_PARAMETER)
        shape, values = typed_list(shape, int, f"{where}.shape"), typed_list(values, float, f"{where}.values")
        if any(length < 0 for length in shape) or math.prod(shape) != len(values) or len(shape) > 8:
            raise ModelFileError(f"{where} has {len(values)} values, but the shape {shown(shape)}.")
        if bounds is not None:
            ends = typed(bounds, list, f"{where}.bounds")
            if len(ends) != 2:
                raise ModelFileError(f"{where}.bounds has {len(ends)} entries, but must have two.")
            bounds = tuple(_end(*pair, f"{where}.bounds") for pair in zip(ends, _FREE, strict=True))
        bare = self.beside(None)
        support, prior = bare.decode(support, f"{where}.support"), bare.decode(prior, f"{where}.prior")
        for part, kind in ((support, Support), (prior, Prior)):
            if part is not None and not isinstance(part, kind):
                raise ModelFileError(f"{where} has the {kind.__name__.lower()} {shown(part)}, which is none.")
        array = np.array(values, dtype=np.float64).reshape(shape)
        parameter = Parameter(array, support, prior, bounds, typed(trainable, bool, f"{where}.trainable"))
        problem = None if support is None else support.units_problem(array) or support.problem(array)
        if problem:
            raise ModelFileError(f"{where} {problem}.")
        return parameter

    def _object(self, cls: Any, fields: Any, where: str) -> Any:
        declared = _stored_fields(cls)
        names = [field.name for field in declared]
        given = zip(names, entries(fields, where, *names), strict=True)
        values = {name: self.decode(part, f"{where}.{name}") for name, part in given}
        if _is_ours(cls):
            check_fields(cls, values, where)
        own = [f.name for f in declared if issubclass(cls, Tree) and "support" in f.metadata]
        parameters = {name: typed(values[name], Parameter, f"{where}.{name}") for name in own}
        # As held fixed while the constructor looks at it: a fitted value may lie on the edge of its range,
        # where a constructor lets none start.
        still = {k: dataclasses.replace(p, support=None, trainable=False) for k, p in parameters.items()}
        new = cls(**values | still)
        for name, parameter in parameters.items():
            support = typed(getattr(new, name), Parameter, f"{where}.{name}").support
            # A mean measures its parameters in the units of the data; those are real numbers all the same.
            held = parameter.support
            if held != support and not (held and support and held.stands_for(support)):
                now = f"the class {cls.__name__} gives it {support}. Has the class changed since?"
                raise ModelFileError(f"{where}.{name} has the support {parameter.support}, but {now}")
            object.__setattr__(new, name, parameter)
        return new


def _end(described: Any, free: float, where: str) -> float | tuple[float, ...]:
    """A bound, or one an entry; None: `free`."""
    if isinstance(described, list):
        ends = (each if each is None else typed(each, float, where) for each in described)
        return tuple(free if each is None else each for each in ends)
    return free if described is None else typed(described, float, where)


def _special(value: dict[str, Any], where: str) -> float:
    (name,) = entries(value, where, "float")
    if not isinstance(name, str) or name not in _SPECIAL:
        rule = "only inf, -inf and nan are written so"
        raise ModelFileError(f"{where} is the float {shown(name)}, but {rule}.")
    return _SPECIAL[name]
