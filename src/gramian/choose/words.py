"""Methods by the words and objects that people give: `method="vfe"`, a name with a size on the command line,
a solver; rules of inference by theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gramian.engines.base import Engine
from gramian.engines.dense import Exact
from gramian.engines.krylov import Krylov, rows_within
from gramian.engines.neighbours import Neighbours
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.engines.statespace import StateSpace
from gramian.errors import ParameterError
from gramian.inference.base import Inference, Scheme
from gramian.inference.ep import EP
from gramian.inference.laplace import Mode
from gramian.inference.softmax.laplace import laplace_for
from gramian.inference.svgp.inducing import SVGP
from gramian.inference.variational import VI
from gramian.likelihoods import Likelihood
from gramian.solvers.base import Solver
from gramian.solvers.cg import CG
from gramian.solvers.minres import MINRES

Method = Engine | Scheme  # an engine, or a method that is engine and inference

# The methods by name. A new engine: its class, and a line here.
NAMED: dict[str, Callable[[], Method | Solver]] = {
    "exact": Exact,
    "statespace": StateSpace,
    "nystrom": Nystrom,
    "fourier": Fourier,
    "vfe": Sparse,
    "fitc": partial(Sparse, objective="fitc"),
    "dtc": partial(Sparse, objective="dtc"),
    "neighbours": Neighbours,
    "svgp": SVGP,
    "cg": CG,
    "minres": MINRES,
}
# The rules of inference by name; Laplace's form is the likelihood's.
RULES: dict[str, Callable[[Likelihood], Inference]] = {
    "laplace": laplace_for,
    "ep": lambda likelihood: EP(),
    "vi": lambda likelihood: VI(),
    "map": lambda likelihood: Mode(),
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
    "neighbours": {"size": "m"},
    "cg": {"size": "rank"},
    "minres": {"size": "rank"},
}


def method_with(
    name: str, size: int | None = None, sampling: str | None = None, kind: str | None = None
) -> str | Method | Solver:
    """A method from its name and, where they are given, its size and how it chooses: what
    `GPRegressor(method=...)` takes."""
    given = {"size": size, "sampling": sampling, "kind": kind}
    allowed = FIELDS.get(name, {})
    for setting, value in given.items():
        if value is not None and setting not in allowed:
            takers = ", ".join(other for other, fields in FIELDS.items() if setting in fields)
            own = f"has no {setting}" if name in NAMED else "is not known"
            why = "chooses its settings itself" if name == "auto" else own
            cure = f"Methods with a {setting}: {takers}."
            raise ParameterError(f"{setting}={value!r} was given, but the method {name!r} {why}. {cure}")
    chosen: dict[str, Any] = {
        FIELDS[name][setting]: value for setting, value in given.items() if value is not None
    }
    return NAMED[name](**chosen) if chosen else name


def as_method(given: object, memory_limit: int | float | str | None = None) -> Method:
    """A method from a name, a solver or a method."""
    if isinstance(given, (Engine, Scheme)):
        return given
    if isinstance(given, Solver):
        return Krylov(given, rows_within(memory_limit))
    if not isinstance(given, str):
        cure = "Give a name, an object such as Nystrom(rank=800), or a solver: CG(...), MINRES(...)."
        raise ParameterError(f"method={given!r} is not a method. {cure}")
    if given not in NAMED:
        names = ", ".join(f'"{known}"' for known in ("auto", *NAMED))
        cure = f"Use {names}. In Python an object such as Nystrom(rank=800) will do, too."
        raise ParameterError(f"method={given!r} is not known. {cure}")
    return as_method(NAMED[given](), memory_limit)


def rule_for(likelihood: Likelihood, engine: Engine) -> str:
    """The rule where nobody names one: Laplace where it is good, for one latent and concave terms; else the
    variational bound. For several classes Laplace's evidence grows with the kernel's scale far beyond what
    the data support, and its variances with it: probabilities are then all alike."""
    if not engine.variances:
        return "laplace"
    good = likelihood.latents == 1 and likelihood.smooth and likelihood.log_concave
    return "laplace" if good and not engine.bound else "vi"
