"""What the page may say: a tree of known names and numbers.

    {"id": 7, "ask": "posterior", "problem": {...}, "way": {...}, "grid": [[-5.0], ...]}
    problem    {"dims": 1, "kernel": {"terms": [{"scale": 1.0, "held": false, "factors": [{"name": "RBF",
               "values": {"lengthscale": 1.0}, "held": []}]}]}, "mean": {"value": 0.0, "held": true},
               "likelihood": {"gaussian": {"noise": 0.05, "held": []}}, "X": [[0.5], ...], "y": [1.2, ...]}
    way        {"method": "exact", "inference": "laplace", "likelihood": "gaussian", "size": 8}

Names are looked up in tables of this module, numbers must be finite and within limits, lists have a longest
length: no text from the page is evaluated, imported, or used as a path. The kernel of an opened model that is
not made of these parts stays here; the page can only ask for it, {"opened": true}.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from gramian import kernels, likelihoods
from gramian.arrays import Array
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.errors import InputError
from gramian.gp import GP
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.means import ConstantMean, ZeroMean
from gramian.params import Parameter, fixed

MOST_BYTES = 512 * 1024  # of a message: 2,000 points of two columns take 100 kB
MOST_POINTS, MOST_PLACES, MOST_DRAWS = 2000, 2500, 12
MOST_TERMS, MOST_FACTORS, MOST_SIZE = 8, 4, 200
SMALLEST, LARGEST = 1e-12, 1e12

# What a kernel of the page may be made of: its numbers, and what the page holds as it is.
FACTORS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {
    "RBF": (("lengthscale",), {}),
    "Matern12": (("lengthscale",), {}),
    "Matern32": (("lengthscale",), {}),
    "Matern52": (("lengthscale",), {}),
    "RationalQuadratic": (("lengthscale", "alpha"), {}),
    "Periodic": (("lengthscale", "period"), {}),
    "Cosine": (("period",), {}),
    "Linear": (("variance",), {}),
    "Polynomial": (("variance", "offset"), {"degree": 2}),
    "Constant": (("variance",), {}),
    "NeuralNetwork": (("variance", "bias"), {}),
    "ArcCosine": (("variance", "bias"), {"order": 1}),
    "Brownian": ((), {}),
}
# Likelihoods by the page's names: their class, their numbers, and what is held.
LIKELIHOODS: Mapping[str, tuple[str, tuple[str, ...], Mapping[str, Any]]] = {
    "gaussian": ("Gaussian", ("noise",), {}),
    "student-t": ("StudentT", ("scale", "df"), {}),
    "bernoulli-logit": ("Bernoulli", (), {"link": "logit"}),
    "bernoulli-probit": ("Bernoulli", (), {"link": "probit"}),
    "poisson": ("Poisson", (), {}),
    "negative-binomial": ("NegativeBinomial", ("dispersion",), {}),
}
METHODS = ("exact", "vfe", "fitc", "dtc", "nystrom", "fourier", "cg", "deep", "model")
RULES = ("laplace", "ep", "vi")
ASKS = ("evidence", "posterior", "optimise", "deep", "model", "stop")


@dataclass(frozen=True)
class Posed:
    """A prior and points, read."""

    prior: GP
    X: Array  # (n, dims)
    y: Array  # (n,)
    dims: int
    likelihood: str  # the page's name of it


@dataclass(frozen=True)
class Message:
    """What the page has asked, read."""

    id: int
    ask: str
    problem: Posed | None
    method: str
    inference: str | None  # None: in closed form
    size: int
    grid: Array  # (g, dims)
    covariance: Array  # the places of the picture of covariances, (c, dims)
    draws: int
    columns: tuple[int, ...]  # of an opened model, along which it is asked


def read(text: str | bytes, opened: Kernel | None = None) -> Message:
    """A message of the page; InputError for whatever is none."""
    if len(text) > MOST_BYTES:
        _refuse(f"a message of {len(text):,} bytes; at most {MOST_BYTES:,} are read")
    try:
        said = json.loads(text, parse_constant=lambda name: _refuse(f"the number {name}"))
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError("The page has sent what is no message. Load it again.") from None
    said = _object(said, "the message")
    ask = _name(said.get("ask"), ASKS, "ask")
    number = _whole(said.get("id"), "id", 0, 2**53)
    if ask == "stop":
        return _nothing(number)
    way = _object(said.get("way", {}), "way")
    likelihood = _name(way.get("likelihood", "gaussian"), LIKELIHOODS, "likelihood")
    method = _name(way.get("method", "exact"), METHODS, "method")
    rule = _name(way.get("inference") or "laplace", RULES, "inference")
    size = _whole(way.get("size", 8), "size", 1, MOST_SIZE)
    problem = _problem(_object(said.get("problem"), "problem"), likelihood, opened)
    grid, places = (_table(said.get(key, []), key, problem.dims, MOST_PLACES) for key in ("grid", "places"))
    draws = _whole(said.get("draws", 0), "draws", 0, MOST_DRAWS)
    columns = _list(said.get("columns", []), "columns", 2)
    return Message(
        number,
        ask,
        problem,
        method,
        None if likelihood == "gaussian" else rule,
        size,
        grid,
        places,
        draws,
        tuple(_whole(column, "columns", 0, 10_000) for column in columns),
    )


def engine_of(message: Message) -> Any:
    """The method of a message, as `GP.condition` takes it."""
    problem, size = message.problem, message.size
    assert problem is not None
    if message.method in ("vfe", "fitc", "dtc"):
        Z = tuple(map(tuple, inducing(problem.X, size).tolist()))
        return Sparse(inducing=Z, objective=message.method)  # type: ignore[arg-type]
    if message.method == "nystrom":
        return Nystrom(size)
    return Fourier(2 * size) if message.method == "fourier" else message.method


def inducing(X: Array, m: int) -> Array:
    """Points evenly over the range of the rows, as the page places them: on a lattice in two columns."""
    low, high = X.min(axis=0), X.max(axis=0)
    side = m if X.shape[1] == 1 else max(1, math.floor(math.sqrt(m) + 0.5))
    share = np.linspace(0.0, 1.0, side) if side > 1 else np.array([0.5])
    axes = [a + (b - a) * share for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, X.shape[1])


def tree_of(kernel: Kernel) -> dict[str, Any]:
    """A kernel as the page has it; {"text": ..., "opened": true} where it has other parts."""
    try:
        return {"terms": [_term_of(term) for term in _parts(kernel, "Sum", "terms")]}
    except LookupError:
        return {"text": kernel.formula(4), "opened": True}


def likelihood_values(likelihood: Likelihood, name: str) -> dict[str, Any]:
    """The numbers of a likelihood, as the page has them."""
    return {key: _plain(getattr(likelihood, key)) for key in LIKELIHOODS[name][1]}


# From the page. ---------------------------------------------------------------------------------------------


def _problem(said: Mapping[str, Any], likelihood: str, opened: Kernel | None) -> Posed:
    dims = _whole(said.get("dims"), "dims", 1, 2)
    X = _table(said.get("X"), "X", dims, MOST_POINTS)
    y = np.array([_number(v, "y") for v in _list(said.get("y"), "y", MOST_POINTS)], dtype=np.float64)
    if len(X) != len(y):
        _refuse(f"{len(X)} points with {len(y)} values")
    kernel = _kernel(_object(said.get("kernel"), "kernel"), dims, opened)
    mean = _object(said.get("mean", {}), "mean")
    level = _number(mean.get("value", 0.0), "mean")
    zero = level == 0 and mean.get("held") is True
    observed = _likelihood(_object(said.get("likelihood", {}), "likelihood"), likelihood)
    own = ZeroMean() if zero else ConstantMean(fixed(level) if mean.get("held") is True else level)
    return Posed(GP(kernel, own, likelihood=observed), X, y, dims, likelihood)


def _kernel(said: Mapping[str, Any], dims: int, opened: Kernel | None) -> Kernel:
    if said.get("opened") is True:
        if opened is None:
            _refuse("the kernel of an opened model, but none was opened")
        held = [dataclasses.replace(p, trainable=False) for p in opened.parameters().values()]
        return opened.with_parameters(held)
    terms = [_object(term, "term") for term in _list(said.get("terms"), "terms", MOST_TERMS)]
    built = [_term(term, dims) for term in terms if term.get("on") is not False]
    if not built:
        _refuse("a kernel without a term that is switched on")
    total = built[0]
    for term in built[1:]:
        total = total + term
    return total


def _term(said: Mapping[str, Any], dims: int) -> Kernel:
    factors = [
        _factor(_object(f, "factor"), dims) for f in _list(said.get("factors"), "factors", MOST_FACTORS)
    ]
    if not factors:
        _refuse("a term without factors")
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    if said.get("scale") is None:
        return product
    scale = _positive(said["scale"], "scale")
    return (fixed(scale) if said.get("held") is True else scale) * product


def _factor(said: Mapping[str, Any], dims: int) -> Kernel:
    name = _name(said.get("name"), FACTORS, "kernel")
    fields, settings = FACTORS[name]
    return getattr(kernels, name)(**settings, **_values(said, fields, dims))


def _likelihood(said: Mapping[str, Any], name: str) -> Likelihood:
    kind, fields, settings = LIKELIHOODS[name]
    own = _object(said.get(name, {}), name)
    values = _values({"values": own, "held": own.get("held", [])}, fields, 1)
    return getattr(likelihoods, kind)(**settings, **values)


def _values(said: Mapping[str, Any], fields: tuple[str, ...], dims: int) -> dict[str, Any]:
    """The numbers of these fields, held where the page holds them. Nothing else may be given."""
    values, held = _object(said.get("values", {}), "values"), _list(said.get("held", []), "held", 20)
    unknown = sorted(str(key) for key in values if key not in (*fields, "held"))
    if unknown:
        _refuse(f"a number called {unknown[0][:40]!r}; there are {', '.join(fields) or 'none'}")
    found: dict[str, Any] = {}
    for key in fields:
        if key not in values:
            _refuse(f"no {key}")
        one = values[key]
        several = _list(one, key, dims) if isinstance(one, list) else None
        if several is not None and len(several) != dims:
            _refuse(f"{len(several)} numbers for {key}, where there are {dims} columns")
        value: Any = _positive(one, key) if several is None else [_positive(v, key) for v in several]
        found[key] = fixed(value) if key in held else value
    return found


def _nothing(number: int) -> Message:
    empty = np.zeros((0, 1))
    return Message(number, "stop", None, "exact", None, 1, empty, empty, 0, ())


def _refuse(what: str) -> NoReturn:
    raise InputError(f"The page has sent {what}. Load it again; the library's documentation has the limits.")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"no object for {what}")
    return value


def _list(value: Any, what: str, most: int) -> list[Any]:
    if not isinstance(value, list):
        _refuse(f"no list for {what}")
    if len(value) > most:
        _refuse(f"{len(value):,} entries of {what}, where at most {most:,} are read")
    return value


def _name(value: Any, known: Any, what: str) -> str:
    if not isinstance(value, str) or value not in known:
        _refuse(f"{str(value)[:40]!r} for {what}; there are {', '.join(known)}")
    return value


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        _refuse(f"no number for {what}")
    if not abs(value) <= LARGEST:
        _refuse(f"a number beyond {LARGEST:g} for {what}")
    return float(value)


def _positive(value: Any, what: str) -> float:
    found = _number(value, what)
    if not found >= SMALLEST:
        _refuse(f"{found:g} for {what}, which must be positive")
    return found


def _whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        _refuse(f"{str(value)[:40]!r} for {what}, a whole number from {low} to {high}")
    return value


def _table(value: Any, what: str, dims: int, most: int) -> Array:
    rows = _list(value, what, most)
    for row in rows:
        if len(_list(row, what, dims)) != dims:
            _refuse(f"a row of {what} that has not {dims} numbers")
    return np.array([[_number(v, what) for v in row] for row in rows], dtype=np.float64).reshape(-1, dims)


# To the page. -----------------------------------------------------------------------------------------------


def _parts(kernel: Kernel, kind: str, field: str) -> tuple[Kernel, ...]:
    return getattr(kernel, field) if type(kernel).__name__ == kind else (kernel,)


def _term_of(kernel: Kernel) -> dict[str, Any]:
    named: Any = kernel.kernel if type(kernel).__name__ == "Named" else kernel  # type: ignore[attr-defined]
    scaled = type(named).__name__ == "Scaled"
    factors = _parts(named.kernel if scaled else named, "Product", "factors")
    if not scaled and len(factors) > 1 and type(factors[0]).__name__ == "Scaled":  # (2 * a) * b
        first: Any = factors[0]
        scaled, named, factors = True, first, (first.kernel, *factors[1:])
    scale = named.scale if scaled else None
    return {
        "on": True,
        "scale": None if scale is None else _plain(scale),
        "held": scale is not None and not scale.trainable,
        "factors": [_factor_of(factor) for factor in factors],
    }


def _factor_of(kernel: Kernel) -> dict[str, Any]:
    name = type(kernel).__name__
    fields, settings = FACTORS[name]
    if any(getattr(kernel, key) != value for key, value in settings.items()):
        raise LookupError(name)
    own = {key: getattr(kernel, key) for key in fields}
    if any(p.value.ndim > 1 for p in own.values()):
        raise LookupError(name)
    values = {key: _plain(p) for key, p in own.items()}
    return {"name": name, "values": values, "held": [key for key, p in own.items() if not p.trainable]}


def _plain(parameter: Parameter) -> Any:
    """Six digits: what the page shows, and what moves the evidence by less than 1e-9 at its top."""
    digits = [float(f"{v:.6g}") for v in np.atleast_1d(parameter.value)]
    return digits if len(digits) > 1 else digits[0]
