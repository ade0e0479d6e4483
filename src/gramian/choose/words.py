"""Methods by the words and objects that people give: `method="vfe"`, a name with a size on the command line,
a solver; and back, in words."""

from __future__ import annotations

from typing import Any

from gramian.errors import ParameterError
from gramian.inference.base import Inference
from gramian.inference.exact import Exact
from gramian.inference.iterative import Iterative, krylov
from gramian.inference.methods import Fourier, Nystrom, Sparse
from gramian.inference.svgp.inducing import SVGP
from gramian.solvers.base import Solver
from gramian.solvers.cg import CG
from gramian.solvers.minres import MINRES

ACCURACY = {
    "exact": "exact",
    "cg": "exact to the solver's tolerance",
    "minres": "exact to the solver's tolerance",
    "vfe": "lower bound of the evidence",
    "svgp": "lower bound of the evidence",
    "fitc": "approximation",
    "dtc": "approximation",
    "nystrom": "approximation",
    "fourier": "approximation, random",
}
_INDUCING = {"size": "n_inducing", "sampling": "inducing"}
# the methods with settings of their own, and what these are called there
FIELDS: dict[str, dict[str, str]] = {
    "nystrom": {"size": "rank", "sampling": "sampling"},
    "fourier": {"size": "n_features", "kind": "kind"},
    "vfe": _INDUCING,
    "svgp": _INDUCING,
    "fitc": _INDUCING,
    "dtc": _INDUCING,
    "cg": {"size": "rank"},
    "minres": {"size": "rank"},
}


def method_named(name: str, memory_limit: int | float | str | None = None) -> Inference:
    """The method of that name with its default settings."""
    if name in ("cg", "minres"):
        return krylov(CG() if name == "cg" else MINRES(), memory_limit)
    made = {
        "exact": Exact(),
        "nystrom": Nystrom(),
        "fourier": Fourier(),
        "svgp": SVGP(),
        **{kind: Sparse(objective=kind) for kind in ("vfe", "fitc", "dtc")},
    }
    if name not in made:
        names = ", ".join(f'"{known}"' for known in ("auto", *ACCURACY))
        raise ParameterError(
            f"method={name!r} is not known. Use {names}, or an object such as Nystrom(rank=800)."
        )
    return made[name]


def method_with(
    name: str, size: int | None = None, sampling: str | None = None, kind: str | None = None
) -> str | Inference | Solver:
    """A method from its name and, where they are given, its size and how it chooses: what
    `GPRegressor(method=...)` takes."""
    given = {"size": size, "sampling": sampling, "kind": kind}
    allowed = FIELDS.get(name, {})
    for setting, value in given.items():
        if value is not None and setting not in allowed:
            takers = ", ".join(other for other, fields in FIELDS.items() if setting in fields)
            why = (
                "chooses its settings itself"
                if name == "auto"
                else f"has no {setting}"
                if name in ACCURACY
                else "is not known"
            )
            raise ParameterError(
                f"{setting}={value!r} was given, but the method {name!r} {why}. Methods with a {setting}:"
                f" {takers}."
            )
    chosen: dict[str, Any] = {
        FIELDS[name][setting]: value for setting, value in given.items() if value is not None
    }
    if not chosen:
        return name
    if name in ("cg", "minres"):
        return CG(**chosen) if name == "cg" else MINRES(**chosen)
    if name in ("nystrom", "fourier"):
        return Nystrom(**chosen) if name == "nystrom" else Fourier(**chosen)
    return SVGP(**chosen) if name == "svgp" else Sparse(**{"objective": name, **chosen})


def as_method(given: object, memory_limit: int | float | str | None = None) -> Inference:
    """A method from a name, a solver or a method."""
    if isinstance(given, Inference):
        return given
    if isinstance(given, (CG, MINRES)):
        return krylov(given, memory_limit)
    if isinstance(given, Solver) or not isinstance(given, str):
        raise ParameterError(
            f"method={given!r} is not a method. Give a name, an object such as Nystrom(rank=800), or a"
            " solver: CG(...), MINRES(...)."
        )
    return method_named(given, memory_limit)


def label(method: Inference) -> str:
    """The method with its size, and how it chooses where that is not the usual way."""
    if isinstance(method, Nystrom):
        return f"nystrom, rank {method.rank}" + (
            "" if method.sampling == Nystrom.sampling else f" by {method.sampling}"
        )
    if isinstance(method, Fourier):
        return f"fourier, {method.n_features} features" + (
            "" if method.kind == Fourier.kind else f" ({method.kind})"
        )
    if isinstance(method, (Sparse, SVGP)):
        how = "given ones" if method.rule is None else str(method.rule)
        return f"{method.name}, {method.n_inducing} points" + (
            "" if how == type(method).inducing else f" by {how}"
        )
    return f"{method.name}, rank {method.solver.rank}" if isinstance(method, Iterative) else method.name
