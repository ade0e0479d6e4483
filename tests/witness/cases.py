"""The cases: small models of every kind that the library fits, by name.

Data come from seeded generators, and parameters are as given (`optimize=False`), but for the cases under
"search". All cases share few kernels and one number of rows, since most of their time is compiling.

Tolerances, relative to the largest number of a quantity and at least to 1. Each is what the method itself
promises, so that a number may be reached another way, but not be another number. With the rows in
another order, where that is of no consequence, numbers moved by less than a hundredth of their tolerance.

ROUNDING    closed forms. Condition numbers of K + D are below 2e4 (n k(x, x) over the least noise), so
            rounding is below 1e-11.
KRYLOV      solves with residuals below 1e-12, times a condition number below 2e4. With the solver's own
            1e-6 the preconditioner, whose rank is then that of K, does the work, and the rest is below
            1e-6 (SOLVED).
NEWTON      Laplace with tol=1e-13: the last full step gained less than e^2 / 2 = 4e-12, e = 3e-6, and
            Newton squares that. By its word (map and softmax have no other way in) tol is 1e-8, so e =
            1e-3 and its square is 1e-6 (NEWTON_BY_WORD). Where log p is not concave, steps leave out
            curvatures of the wrong sign and close in linearly: the mode is known to a share of e
            (CLIMBED; with tol=1e-8 the student case is 1.5e-5 away from that with 1e-13, so with 1e-13 it
            is to 5e-8, as e goes with the root of tol; by its word it is known to twice that 1.5e-5,
            CLIMBED_BY_WORD).
SWEPT       EP with tol=1e-11: the last sweep moved moments by less than that in standard deviations, and
            sweeps at least halve what is left. With EP's own tolerance, 1e-7, it is SWEPT_BY_WORD.
BOUND       variational inference with tol=1e-13: steps gain less than 4e-12 of the bound, which is flat
            at the top, so moments are known to its root, 2e-6, times a share (between tol=1e-9 and 1e-13
            the logit case moves by 3e-7). The value itself is known to VALUE. Where log p is not concave,
            the rule stops at gains of 1e-6 (1 + |bound|), whatever tol is: 4e-5, whose root is 6e-3
            (LOOSE, LOOSE_VALUE).
STOCHASTIC  svgp stops where a full step would change natural parameters by 1e-8 of themselves; by its
            mixing what is left is as small. Where log p is not concave it may stop at 1e-4 (SETTLED).
CHAINS      the same seed gives the same chain: rounding that differs would make another. With exposures a
            last bit of them moves its numbers by up to 1.2e-7 (CHAINS_EXPOSED).
SEARCHED    a search ends where the evidence rises no more than 1e-9 or so of itself, at a flat top:
            parameters are known to its root.

One thing was changed on purpose: a bound of the evidence of features is no bound of the model's, so that
variational inference on them now calls its number an approximation.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

import gramian as gm
from tests.witness.recording import Record, classification, regression, reloaded

Array = np.ndarray

ROUNDING = 1e-10
KRYLOV, SOLVED = 1e-8, 1e-6
NEWTON, NEWTON_BY_WORD, CLIMBED, CLIMBED_BY_WORD = 1e-9, 1e-6, 1e-6, 3e-5
SWEPT, SWEPT_BY_WORD = 1e-8, 1e-5
BOUND, VALUE = 1e-6, 1e-9
LOOSE, LOOSE_VALUE = 1e-2, 1e-3
STOCHASTIC, SETTLED = 1e-6, 1e-3
CHAINS, CHAINS_EXPOSED = 1e-8, 1e-6
SEARCHED = 1e-4

FLAT = (
    "evidence",
    "evidence again",
    "evidence with gradient",
)  # quantities that are known to the square of what the others are


@dataclass(frozen=True)
class Case:
    """A model with its numbers: `run` makes them, and `tolerance` says how well the method knows them."""

    name: str
    run: Callable[[], Record]
    tolerance: float
    value_tolerance: float | None = None  # of the evidence, where it is known better than the rest

    def of(self, quantity: str) -> float:
        """The tolerance of one quantity."""
        return (
            self.value_tolerance if self.value_tolerance is not None and quantity in FLAT else self.tolerance
        )


CASES: dict[str, Case] = {}


def add(name: str, run: Callable[[], Record], tolerance: float, value_tolerance: float | None = None) -> None:
    """Enters a case."""
    assert name not in CASES, name
    CASES[name] = Case(name, run, tolerance, value_tolerance)


# Data. ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """Rows of two columns with targets of every kind, and points to predict at."""

    X: Array
    P: Array
    targets: dict[str, Array] = field(default_factory=dict)
    exposure: Array = field(default_factory=lambda: np.zeros(0))
    noise_var: Array = field(default_factory=lambda: np.zeros(0))


ROWS = 30


@functools.cache
def table() -> Table:
    """The data of almost all cases."""
    rng = np.random.default_rng(7)
    X, P = rng.uniform(-2, 2, (ROWS, 2)), rng.uniform(-2, 2, (5, 2))
    f = np.sin(1.3 * X[:, 0]) + 0.5 * X[:, 1]
    noise, u = rng.standard_normal((ROWS, 3)), rng.uniform(size=ROWS)
    y = 3 + 2 * f + 0.4 * noise[:, 0]
    heavy = y + np.where(u > 0.9, 4 * noise[:, 1], 0.0)
    exposure = rng.uniform(0.5, 2.0, ROWS)
    targets = {
        "one": y,
        "column": y[:, None],
        "two": np.column_stack([y, 10 * np.cos(X[:, 1]) + noise[:, 1]]),
        "three": np.column_stack([y, 10 * np.cos(X[:, 1]) + noise[:, 1], -0.2 * f + 0.03 * noise[:, 2]]),
        "heavy": heavy,
        "binary": (f + 0.5 * noise[:, 1] > 0).astype(int),
        "classes": np.digitize(f + 0.4 * noise[:, 2], [-0.5, 0.4]),
        "ordinal": np.digitize(f + 0.4 * noise[:, 2], [-0.8, 0.0, 0.7]).astype(float),
        "counts": rng.poisson(np.exp(1 + f)).astype(float),
        "exposed": rng.poisson(exposure * np.exp(1 + f)).astype(float),
        "positive": np.exp(f + 0.3 * noise[:, 1]),
        "share": 1 / (1 + np.exp(-f - 0.3 * noise[:, 2])),
        "varying": 3 + 2 * f + np.exp(0.5 * X[:, 0] - 1) * noise[:, 1],
    }
    return Table(X, P, targets, exposure, np.linspace(0.05, 0.4, ROWS))


def points(m: int = 8) -> tuple[tuple[float, ...], ...]:
    """Inducing points that no rule has to choose."""
    return tuple(map(tuple, np.random.default_rng(11).uniform(-1.8, 1.8, (m, 2)).tolist()))


KERNEL = 1.3 * gm.Matern52([0.9, 1.4])
OTHER = 0.7 * gm.Matern52([1.6, 1.1])
THIRD = 2.1 * gm.Matern52([1.2, 2.0])

ENGINES: dict[str, Any] = {
    "exact": "exact",
    "nystrom": gm.Nystrom(10, "pivoted"),
    "fourier": gm.Fourier(20),
    "vfe": gm.Sparse(inducing=points()),
    "fitc": gm.Sparse(objective="fitc", inducing=points()),
    "dtc": gm.Sparse(objective="dtc", inducing=points()),
    "svgp": gm.SVGP(inducing=points()),
    "cg": gm.CG(tol=1e-12, rank=5, probes=4),
    "minres": gm.MINRES(tol=1e-12, rank=5, probes=4),
}
GIVEN: dict[str, Any] = {"optimize": False, "random_state": 0}


def of_engine(engine: str) -> float:
    """The tolerance of a closed form on an engine."""
    return {"cg": KRYLOV, "minres": KRYLOV, "svgp": STOCHASTIC}.get(engine, ROUNDING)


# Gaussian noise in closed form. -----------------------------------------------------------------------------


def gaussian(
    method: Any,
    target: str = "one",
    kernel: Any = KERNEL,
    noise_var: bool = False,
    keep: bool = False,
    **settings: Any,
) -> Record:
    """A regression; `keep`: saved and loaded, too."""
    own = {"noise": None if noise_var else 0.3, **GIVEN, **settings}
    gp = gm.GPRegressor(kernel, method=method, **own)
    gp.fit(table().X, table().targets[target], noise_var=table().noise_var if noise_var else None)
    record = regression(gp, table().P)
    if keep:
        record.add(lambda: reloaded(gp, table().P), "reloaded")
    return record


for _name, _method in ENGINES.items():
    _variants: dict[str, dict[str, Any]] = {
        "one output": {"keep": True},
        "two outputs, one relative noise": {"target": "two", "noise": None, "keep": True},
        "two outputs, one noise": {"target": "two"},
        "three outputs, noise by row": {"target": "three", "noise_var": True},
        "y as it is": {"normalize_y": False, "kernel": 4.0 * gm.Matern52([0.9, 1.4])},
        "mean linear": {"mean": gm.LinearMean(2.5, [0.4, -0.3])},
    }
    if _name in ("exact", "vfe"):
        _variants["noise by row"] = {"noise_var": True}
        _variants["noise by row and more"] = {"noise_var": True, "noise": 0.1}
        _variants["mean zero"] = {"mean": "zero"}
    if _name == "exact":
        _priors = gm.param(1.3, prior=gm.Gamma(2, 1)) * gm.Matern52(
            gm.param([0.9, 1.4], prior=gm.LogNormal(0.0, 1.0))
        )
        _variants["one column"] = {"target": "column"}
        _variants["mean linear, two outputs"] = {"target": "two", "mean": "linear"}
        _variants["noise fixed"] = {"noise": gm.fixed(0.2)}
        _variants["priors"] = {"kernel": _priors}
        _variants["maximum likelihood"] = {"kernel": _priors, "hyper": "ml"}
    for _what, _settings in _variants.items():
        add(
            f"gaussian, {_name}, {_what}", functools.partial(gaussian, _method, **_settings), of_engine(_name)
        )

for _rule in (
    "uniform",
    "diagonal",
    "column-norm",
    "leverage",
    "rls",
    "recursive-rls",
    "kmeans",
    "rpcholesky",
):
    add(f"gaussian, nystrom by {_rule}", functools.partial(gaussian, gm.Nystrom(9, _rule)), ROUNDING)
for _kind, _count in (("rff", 20), ("rff-phase", 21), ("sorf", 20), ("qmc", 20)):
    add(f"gaussian, fourier by {_kind}", functools.partial(gaussian, gm.Fourier(_count, _kind)), ROUNDING)
for _preconditioner in ("none", "jacobi", "pivoted"):
    _solver = gm.CG(tol=1e-12, rank=5, probes=4, preconditioner=_preconditioner)
    add(f"gaussian, cg, preconditioner {_preconditioner}", functools.partial(gaussian, _solver), KRYLOV)
add("gaussian, cg by its word", functools.partial(gaussian, "cg"), SOLVED)
add("gaussian, minres by its word", functools.partial(gaussian, "minres"), SOLVED)
add("gaussian, vfe by rpcholesky", functools.partial(gaussian, gm.Sparse(8)), ROUNDING)
add(
    "gaussian, vfe with points to learn",
    functools.partial(gaussian, gm.Sparse(inducing=points(), optimize_inducing=True)),
    ROUNDING,
)
add("gaussian, auto", functools.partial(gaussian, "auto"), ROUNDING)


# Kernels. ---------------------------------------------------------------------------------------------------

KERNELS: dict[str, gm.Kernel] = {
    "rbf": 1.3 * gm.RBF([0.9, 1.4]),
    "matern12": 1.3 * gm.Matern12([0.9, 1.4]),
    "matern32": 1.3 * gm.Matern32([0.9, 1.4]),
    "rational quadratic": gm.RationalQuadratic([0.9, 1.4], 1.2),
    "periodic and rbf": 0.8 * (gm.Periodic(0.9, 2.3).on(0) * gm.RBF(2.0).on(0)) + 0.5 * gm.RBF(1.4).on(1),
    "linear and rbf": 0.3 * gm.Linear([0.7, 0.4]) + gm.RBF(1.1),
}
_ROUGH = ("matern12", "matern32", "rational quadratic")
_WAVES = ("rbf", "matern32", "rational quadratic", "periodic and rbf")
for _label, _kernel in KERNELS.items():
    for _name in (
        "exact",
        *(("vfe",) if _label not in _ROUGH else ()),
        *(("fourier",) if _label in _WAVES else ()),
    ):
        _method = gm.Fourier(40) if _name == "fourier" else ENGINES[_name]
        add(f"kernel {_label}, {_name}", functools.partial(gaussian, _method, kernel=_kernel), ROUNDING)


def categories(method: Any) -> Record:
    """Columns with names, one of them of categories."""
    X, P = (
        pd.DataFrame(
            {
                "temp": part[:, 0],
                "load": part[:, 1],
                "site": list("abc" * (len(part) // 3) + "abc"[: len(part) % 3]),
            }
        )
        for part in (table().X, table().P)
    )
    kernel = 1.2 * gm.RBF([0.9, 1.4]).on("temp", "load") * gm.Categorical(0.4).on("site") + (
        0.2 * gm.Linear()
    ).on("load")
    gp = gm.GPRegressor(kernel, noise=0.3, method=method, **GIVEN).fit(X, table().targets["one"])
    record = regression(gp, P)
    record.add(lambda: reloaded(gp, P), "reloaded")
    return record


add("categories, exact", functools.partial(categories, "exact"), ROUNDING)
add("categories, nystrom", functools.partial(categories, gm.Nystrom(12, "pivoted")), ROUNDING)


def three_columns() -> Record:
    """The default kernel, mean and noise, on three columns."""
    X, P = (np.column_stack([part, part[:, 0] * part[:, 1]]) for part in (table().X, table().P))
    return regression(gm.GPRegressor(**GIVEN).fit(X, table().targets["one"]), P)


add("all by default, three columns", three_columns, ROUNDING)
add("all by default, two columns", functools.partial(gaussian, "auto", kernel=None, noise=None), ROUNDING)


# Likelihoods of one latent function, by every rule on every engine. -----------------------------------------

LIKELIHOODS: dict[str, tuple[Any, str]] = {
    "gaussian noise": (gm.Gaussian(0.3), "one"),
    "student": (gm.StudentT(0.5, 4.0), "heavy"),
    "poisson": (gm.Poisson(), "counts"),
    "poisson, exposure": (gm.Poisson(), "exposed"),
    "negative binomial": (gm.NegativeBinomial(0.4), "counts"),
    "gamma": (gm.likelihoods.Gamma(3.0), "positive"),
    "beta": (gm.Beta(12.0), "share"),
    "ordinal": (gm.Ordinal(4, -0.8, [0.8, 0.7]), "ordinal"),
    "logit": ("logit", "binary"),
    "probit": ("probit", "binary"),
}
NOT_CONCAVE = ("student", "beta")
RULES: dict[str, Any] = {
    "laplace": gm.Laplace(tol=1e-13),
    "ep": gm.EP(tol=1e-11),
    "sequential ep": gm.EP(schedule="sequential", tol=1e-11),
    "power ep": gm.EP(power=0.5, tol=1e-11),
    "vi": gm.VI(tol=1e-13),
    "map": "map",
}


def latent(
    likelihood: str,
    method: Any,
    inference: Any,
    keep: bool = False,
    target: str | None = None,
    **settings: Any,
) -> Record:
    """A model of one latent function: a regression with its likelihood, or a classifier with its link."""
    given, usual = LIKELIHOODS[likelihood]
    target = target or usual
    y, own = table().targets[target], {"method": method, "inference": inference, **GIVEN, **settings}
    own = {"kernel": KERNEL, **own}
    gp: Any
    if isinstance(given, str):
        gp = gm.GPClassifier(link=given, **own).fit(table().X, y)
        record = classification(gp, table().P)
    else:
        exposed = target == "exposed"
        gp = gm.GPRegressor(likelihood=given, **own).fit(
            table().X, y, **({"exposure": table().exposure} if exposed else {})
        )
        record = regression(gp, table().P, np.linspace(0.5, 1.5, 5) if exposed else None)
    if keep:
        record.add(lambda: reloaded(gp, table().P), "reloaded")
    return record


def of_rule(rule: str, concave: bool, krylov: bool) -> tuple[float, float | None]:
    """The tolerance of a rule, and that of its evidence where it is another."""
    if rule == "vi":
        return (BOUND, VALUE) if concave else (LOOSE, LOOSE_VALUE)
    if "ep" in rule:
        return SWEPT, None
    if not concave:
        return CLIMBED_BY_WORD if rule == "map" else CLIMBED, None
    return max(NEWTON_BY_WORD if rule == "map" else NEWTON, KRYLOV if krylov else 0.0), None


# All rules on all engines for four likelihoods; the others meet each rule and each engine once, since they
# answer the same questions to all of them. EP takes seconds to compile for some, and is left out there.
_ON: dict[str, tuple[str, ...]] = {
    "exact": ("laplace", "ep", "vi", "map"),
    "nystrom": ("laplace", "ep", "vi"),
    "fourier": ("laplace", "ep", "vi"),
    "vfe": ("laplace", "ep", "vi"),
    "cg": ("laplace",),
}
_ONCE = {"nystrom": "laplace", "fourier": "ep", "vfe": "vi"}
_EVERYWHERE = ("logit", "student", "poisson, exposure", "gaussian noise")
for _label, (_name, _rules) in itertools.product(LIKELIHOODS, _ON.items()):
    if _label in NOT_CONCAVE and _name == "cg":
        continue
    for _rule in _rules:
        if _rule == "ep" and _label in ("ordinal", "negative binomial", "beta"):
            continue
        if _label not in _EVERYWHERE and _ONCE.get(_name, _rule) != _rule:
            continue
        _keep = _label in ("logit", "student", "poisson, exposure")
        _run = functools.partial(latent, _label, ENGINES[_name], RULES[_rule], keep=_keep)
        add(f"{_label}, {_name}, {_rule}", _run, *of_rule(_rule, _label not in NOT_CONCAVE, _name == "cg"))
for _label, _rule in (("logit", "sequential ep"), ("student", "sequential ep"), ("logit", "power ep")):
    add(f"{_label}, exact, {_rule}", functools.partial(latent, _label, "exact", RULES[_rule]), SWEPT)
add(
    "logit, fourier, power ep",
    functools.partial(latent, "logit", ENGINES["fourier"], RULES["power ep"]),
    SWEPT,
)
_run = functools.partial(latent, "negative binomial", "exact", RULES["laplace"], target="exposed")
add("negative binomial, exposure, exact, laplace", _run, NEWTON)
for _label in _EVERYWHERE:
    _loose = STOCHASTIC if _label not in NOT_CONCAVE else SETTLED
    add(
        f"{_label}, svgp",
        functools.partial(latent, _label, ENGINES["svgp"], "vi", keep=_label == "logit"),
        _loose,
    )
for _label in ("logit", "poisson, exposure"):
    add(
        f"{_label}, minres, laplace",
        functools.partial(latent, _label, ENGINES["minres"], RULES["laplace"]),
        KRYLOV,
    )
    for _rule in ("laplace", "ep", "vi", "map"):
        _run = functools.partial(latent, _label, ENGINES["dtc"], RULES[_rule])
        add(f"{_label}, dtc, {_rule}", _run, *of_rule(_rule, True, False))
    add(
        f"{_label}, nystrom, map",
        functools.partial(latent, _label, ENGINES["nystrom"], "map"),
        NEWTON_BY_WORD,
    )
for _label, _rule in itertools.product(("logit", "student"), ("laplace", "ep", "vi")):
    _found = (
        {"laplace": NEWTON_BY_WORD, "ep": SWEPT_BY_WORD, "vi": 1e-3}[_rule] if _label == "logit" else LOOSE
    )
    add(f"{_label}, {_rule} by its word", functools.partial(latent, _label, "exact", _rule), _found)
add("logit, all by default", functools.partial(latent, "logit", "auto", "auto"), NEWTON_BY_WORD)
add("poisson, all by default", functools.partial(latent, "poisson", "auto", None), NEWTON_BY_WORD)
add("student, all by default", functools.partial(latent, "student", "auto", None), LOOSE, LOOSE_VALUE)
add(
    "logit, scaled average",
    functools.partial(latent, "logit", "exact", RULES["laplace"], averaging="scaled"),
    NEWTON,
)
add(
    "logit, mean constant",
    functools.partial(latent, "logit", "exact", RULES["laplace"], mean=gm.ConstantMean(0.3)),
    NEWTON,
)
add(
    "logit, mean linear",
    functools.partial(latent, "logit", "exact", RULES["ep"], mean=gm.LinearMean(0.3, [0.2, -0.1])),
    SWEPT,
)
add(
    "poisson, mean linear",
    functools.partial(latent, "poisson", "exact", RULES["laplace"], mean=gm.LinearMean(0.8, [0.2, -0.1])),
    NEWTON,
)
add("poisson, mean zero", functools.partial(latent, "poisson", "vfe", RULES["vi"], mean="zero"), BOUND, VALUE)
add(
    "student, y as it is",
    functools.partial(latent, "student", "exact", RULES["laplace"], normalize_y=False),
    CLIMBED,
)
add(
    "gaussian noise, y as it is",
    functools.partial(latent, "gaussian noise", "exact", RULES["ep"], normalize_y=False),
    SWEPT,
)
add(
    "poisson, periodic and rbf",
    functools.partial(latent, "poisson", "exact", RULES["laplace"], kernel=KERNELS["periodic and rbf"]),
    NEWTON,
)


# Likelihoods of several latent functions. -------------------------------------------------------------------


def classes(keep: bool = True, **settings: Any) -> Record:
    """A classifier of three classes."""
    gp = gm.GPClassifier(**{"kernel": KERNEL, **GIVEN, **settings}).fit(
        table().X, np.array(["a", "b", "c"])[table().targets["classes"]]
    )
    record = classification(gp, table().P)
    if keep:
        record.add(lambda: reloaded(gp, table().P), "reloaded")
    return record


def varying(**settings: Any) -> Record:
    """A regression whose noise is a function, too."""
    gp = gm.GPRegressor(**{"kernel": KERNEL, "likelihood": gm.Heteroscedastic(), **GIVEN, **settings})
    gp.fit(table().X, table().targets["varying"])
    record = regression(gp, table().P)
    record.add(lambda: reloaded(gp, table().P), "reloaded")
    return record


EACH = [KERNEL, OTHER, THIRD]
for _name in ("exact", "nystrom", "fourier", "vfe", "dtc"):
    for _list in (False, True):
        _own: dict[str, Any] = {"method": ENGINES[_name], "kernel": EACH if _list else KERNEL}
        _suffix = ", a kernel each" if _list else ""
        add(
            f"softmax, {_name}, laplace{_suffix}",
            functools.partial(classes, inference="laplace", **_own),
            NEWTON_BY_WORD,
        )
        add(
            f"softmax, {_name}, vi{_suffix}",
            functools.partial(classes, inference=RULES["vi"], **_own),
            BOUND,
            VALUE,
        )
        if _name != "dtc":
            _two = {**_own, "kernel": [KERNEL, OTHER] if _list else KERNEL}
            add(
                f"heteroscedastic, {_name}, vi{_suffix}",
                functools.partial(varying, inference="vi", **_two),
                LOOSE,
                LOOSE_VALUE,
            )
for _list in (False, True):
    _suffix = ", a kernel each" if _list else ""
    _own = {"method": ENGINES["svgp"], "kernel": EACH if _list else KERNEL}
    add(f"softmax, svgp{_suffix}", functools.partial(classes, **_own), STOCHASTIC)
    _own = {"method": ENGINES["svgp"], "kernel": [KERNEL, OTHER] if _list else KERNEL}
    add(f"heteroscedastic, svgp{_suffix}", functools.partial(varying, **_own), SETTLED)
add(
    "robustmax, share of wrong labels to learn",
    functools.partial(classes, multiclass=gm.RobustMax(3, gm.param(0.02)), kernel=EACH),
    LOOSE,
    LOOSE_VALUE,
)
add("softmax, all by default", functools.partial(classes), 1e-3)
add("softmax, mean linear", functools.partial(classes, inference="laplace", mean="linear"), NEWTON_BY_WORD)
add(
    "softmax, mean constant", functools.partial(classes, inference=RULES["vi"], mean="constant"), BOUND, VALUE
)
add(
    "heteroscedastic, y as it is",
    functools.partial(varying, normalize_y=False, kernel=[KERNEL, OTHER]),
    LOOSE,
    LOOSE_VALUE,
)
add("heteroscedastic, mean zero", functools.partial(varying, mean="zero"), LOOSE, LOOSE_VALUE)

for _how, _shared in itertools.product(("ovr", "ovo"), (False, True)):
    _suffix = ", shared" if _shared else ""
    _own = {"multiclass": _how, "shared": _shared}
    add(f"{_how}, laplace{_suffix}", functools.partial(classes, inference=RULES["laplace"], **_own), NEWTON)
    add(
        f"{_how}, ep, probit{_suffix}",
        functools.partial(classes, inference=RULES["ep"], link="probit", **_own),
        SWEPT,
    )
    add(
        f"{_how}, nystrom, vi{_suffix}",
        functools.partial(classes, inference=RULES["vi"], method=ENGINES["nystrom"], **_own),
        BOUND,
        VALUE,
    )
add(
    "ovr, cg",
    functools.partial(classes, inference=RULES["laplace"], method=ENGINES["cg"], multiclass="ovr"),
    KRYLOV,
)
add("ovr, svgp", functools.partial(classes, method=ENGINES["svgp"], multiclass="ovr"), STOCHASTIC)


# Searches. --------------------------------------------------------------------------------------------------

SEARCH: dict[str, Any] = {"optimize": True, "n_restarts": 0}
LEARNED = gm.Sparse(inducing=points(5), optimize_inducing=True)
add("search, exact", functools.partial(gaussian, "exact", **SEARCH), SEARCHED, VALUE)
add(
    "search, exact, one restart",
    functools.partial(gaussian, "exact", optimize=True, n_restarts=1),
    SEARCHED,
    VALUE,
)
add(
    "search, exact, two outputs",
    functools.partial(gaussian, "exact", target="two", noise=None, **SEARCH),
    SEARCHED,
    VALUE,
)
add(
    "search, exact, all by default",
    functools.partial(gaussian, "auto", kernel=None, noise=None, **SEARCH),
    SEARCHED,
    VALUE,
)
add("search, vfe", functools.partial(gaussian, ENGINES["vfe"], **SEARCH), SEARCHED, VALUE)
add("search, vfe, learned points", functools.partial(gaussian, LEARNED, **SEARCH), 1e-3, 1e-6)
add("search, fitc", functools.partial(gaussian, ENGINES["fitc"], **SEARCH), SEARCHED, VALUE)
add("search, nystrom", functools.partial(gaussian, ENGINES["nystrom"], **SEARCH), SEARCHED, VALUE)
add(
    "search, logit, laplace",
    functools.partial(latent, "logit", "exact", RULES["laplace"], **SEARCH),
    SEARCHED,
    VALUE,
)
add("search, logit, map", functools.partial(latent, "logit", "exact", "map", **SEARCH), SEARCHED, VALUE)
add(
    "search, poisson, ep",
    functools.partial(latent, "poisson", "exact", RULES["ep"], **SEARCH),
    SEARCHED,
    VALUE,
)
add("search, poisson, vfe", functools.partial(latent, "poisson", LEARNED, RULES["vi"], **SEARCH), 1e-3, 1e-6)
add("search, softmax, laplace", functools.partial(classes, inference="laplace", **SEARCH), 1e-3, 1e-6)
add(
    "search, ovr, shared",
    functools.partial(classes, inference=RULES["laplace"], multiclass="ovr", shared=True, **SEARCH),
    SEARCHED,
    VALUE,
)
add(
    "search, svgp, a few steps",
    functools.partial(latent, "logit", gm.SVGP(inducing=points(5), steps=20, batch_size=10), "vi", **SEARCH),
    CHAINS,
)


# Chains. ----------------------------------------------------------------------------------------------------

TINY = gm.MCMC(chains=4, warmup=10, draws=6, rounds=1)


add(
    "chains, gaussian noise",
    functools.partial(latent, "gaussian noise", "exact", TINY, hyper="mcmc", keep=True),
    CHAINS,
)
add(
    "chains, poisson, exposure",
    functools.partial(latent, "poisson, exposure", "exact", TINY, keep=True),
    CHAINS_EXPOSED,
)
_slices = gm.MCMC(chains=4, warmup=10, draws=6, rounds=1, sampler="ess")
add(
    "chains, logit by ess, nystrom",
    functools.partial(latent, "logit", ENGINES["nystrom"], _slices, keep=True),
    CHAINS,
)


# Before a fit: plans, and the prior. ------------------------------------------------------------------------


def planned() -> Record:
    """The methods to choose from, and the choice, for three sizes. Times and bytes are the machine's."""
    record = Record()
    for n in (1000, 40_000, 200_000):
        plan = gm.plan((n, 3), memory_limit="8GB")
        record.found[f"options, {n} rows"] = "; ".join(option.label for option in plan.options)
        record.found[f"choice, {n} rows"] = plan.choice.label
    return record


def prior() -> Record:
    """Predictions and draws before a fit."""
    record, gp = Record(), gm.GPRegressor(KERNEL, noise=0.3, mean="linear")
    record.add(lambda: gp.predict(table().P, return_std=True), "mean y", "std y")
    record.add(lambda: gp.predict(table().P, return_cov=True, target="f"), "mean f", "cov f")
    record.add(lambda: gp.sample(table().P, 2, random_state=1), "sample f")
    return record


add("plan", planned, ROUNDING)
add("prior", prior, ROUNDING)
