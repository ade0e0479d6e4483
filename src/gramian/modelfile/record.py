"""A fitted estimator as a document and arrays, and back: what the model file stores, and the checks of what
it reads.

A classifier that is made of binary models has theirs inside its own: their documents in a list, their arrays
under the names "model0...", and so on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from gramian.certify.certificate import Certificate
from gramian.data.inputs import Columns
from gramian.errors import ModelFileError
from gramian.estimators import GPClassifier, GPRegressor, multiclass
from gramian.fitting import FitOutcome
from gramian.inference import Data, Evidence, Model, Scheme
from gramian.kernels import Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.means import Mean
from gramian.modelfile import labels, posteriors, settings
from gramian.modelfile.arrays import Arrays, of_part, taken, within
from gramian.modelfile.document import canonical, decoded, encode, entries, origins_of, typed, typed_list
from gramian.params import ParameterSpace
from gramian.report import notes as health
from gramian.report.facts import Facts, NoData

Fitted = GPRegressor | GPClassifier

_WHOLE = (
    "kernel",
    "others",
    "mean",
    "likelihood",
    "single",
    "noise",
    "classes",
    "method",
    "data",
    "posterior",
    "evidence",
    "outcome",
    "certificate",
)
_SPLIT = ("classes", "models", "evidence", "outcome")


def describe(gp: Fitted) -> tuple[dict[str, Any], Arrays]:
    """All of a fitted estimator: a document for JSON, and the arrays."""
    document, arrays = _described(gp)
    return {**document, "origins": origins_of(document)}, arrays


def _described(gp: Fitted) -> tuple[dict[str, Any], Arrays]:
    columns = gp._columns
    described = {
        "names": list(columns.names),
        "named": columns.named,
        "categories": [[j, list(categories)] for j, categories in columns.categories.items()],
        # its own record of names, which it keeps only where all of them are text
        "sklearn": hasattr(gp, "feature_names_in_"),
    }
    fitted, arrays = _split(gp) if isinstance(gp, GPClassifier) and gp._is_split() else _whole(gp)
    return {
        "estimator": type(gp).__name__,
        "settings": settings.describe(gp),
        "columns": described,
        "fitted": fitted,
    }, arrays


def _whole(gp: Fitted) -> tuple[dict[str, Any], Arrays]:
    classes = gp.classes_ if isinstance(gp, GPClassifier) else None
    data, arrays = posteriors.describe_data(gp, None if classes is None else len(classes))
    posterior, own = posteriors.describe(gp.posterior_, gp._method_)
    arrays |= {**own, "theta": gp.theta_}
    fitted = {
        "kernel": encode(gp.kernel_, "kernel_"),
        "others": encode(gp._model_.others, "others"),
        "mean": encode(gp._model_.mean, "mean_"),
        "likelihood": encode(gp._model_.likelihood, "likelihood"),
        "single": gp._single if isinstance(gp, GPRegressor) else None,
        "noise": hasattr(gp, "noise_"),
        "classes": None if classes is None else labels.describe(classes),
        "method": encode(gp._method_.stored(), "method", arrays),
        "data": data,
        "posterior": posterior,
        "evidence": encode(gp.evidence_, "evidence_"),
        "outcome": encode(gp.outcome_, "outcome_"),
        "certificate": encode(gp._certificate, "certificate_"),
    }
    return fitted, arrays


def _split(gp: GPClassifier) -> tuple[dict[str, Any], Arrays]:
    found = [_described(model) for model in gp.estimators_]
    arrays = {
        name: array for k, (_, own) in enumerate(found) for name, array in within(own, f"model{k}").items()
    }
    fitted = {
        "classes": labels.describe(gp.classes_),
        "models": [document for document, _ in found],
        "evidence": encode(gp.evidence_, "evidence_"),
        "outcome": encode(gp.outcome_, "outcome_"),
    }
    return fitted, arrays


# Reading. ---------------------------------------------------------------------------------------------------


# made-up numbers may overflow in a check; the check then fails, and that is what a person should read
@np.errstate(all="ignore")
def restore(document: Any, arrays: Arrays) -> Fitted:
    """The estimator of a document and its arrays. Whatever does not fit together is refused."""
    found = entries(document, "its document", "estimator", "settings", "columns", "fitted", "origins")
    origins = {
        name: typed(module, str, f"origins.{name[:40]}")
        for name, module in typed(found.pop(), dict, "origins").items()
    }
    gp = _restored(found, arrays, origins)
    _check_again(gp, document, arrays)
    return gp


def _restored(parts: list[Any], arrays: Arrays, origins: Mapping[str, str]) -> Fitted:
    estimator, given, described, fitted = parts
    if not (isinstance(estimator, str) and estimator in settings.ESTIMATORS):
        raise ModelFileError(
            f"it is of a {str(estimator)[:40]!r}, but this version knows {' and '.join(settings.ESTIMATORS)}."
        )
    gp = settings.restore(settings.ESTIMATORS[estimator], given, origins)
    gp._columns, known_to_sklearn = _columns(described)
    gp.n_features_in_ = len(gp._columns.names)
    if known_to_sklearn:
        gp.feature_names_in_ = np.array(gp._columns.names, dtype=object)
    if isinstance(gp, GPClassifier) and "models" in typed(fitted, dict, "fitted"):
        _restore_split(gp, fitted, arrays, origins)
    else:
        _restore_whole(gp, fitted, arrays, origins)
    return gp


def _restore_whole(gp: Fitted, fitted: Any, arrays: Arrays, origins: Mapping[str, str]) -> None:
    part = dict(zip(_WHOLE, entries(fitted, "fitted", *_WHOLE), strict=True))
    columns, d = gp._columns, len(gp._columns.names)
    noise = typed(part["noise"], bool, "noise")
    classes = None
    if isinstance(gp, GPClassifier):
        gp.classes_ = labels.restore(part["classes"])
        classes = len(gp.classes_)
    elif part["classes"] is not None:
        raise ModelFileError("it is of a regressor, and yet has classes.")
    gp._method_ = decoded(part["method"], Scheme, "method", origins, arrays)
    if gp._method_.needs_noise is not None and gp._method_.needs_noise != noise:
        needed = (
            "Gaussian noise in closed form"
            if noise
            else "any other likelihood than Gaussian noise in closed form"
        )
        raise ModelFileError(f"its method {type(gp._method_).__name__} is not one for {needed}.")
    gp._data, facts = posteriors.data_of(part["data"], arrays, gp._method_, d, noise, classes)
    data = gp._data
    _check_categories(columns, data)
    gp.kernel_ = decoded(part["kernel"], Kernel, "kernel_", origins)
    others = tuple(
        decoded(kernel, Kernel, f"others[{k}]", origins)
        for k, kernel in enumerate(typed(part["others"], list, "others"))
    )
    gp.mean_, gp.likelihood_ = (
        decoded(part["mean"], Mean, "mean_", origins),
        decoded(part["likelihood"], Likelihood, "likelihood", origins),
    )
    model = gp._model_ = Model(_resolved(gp.kernel_, columns), gp.mean_, gp.likelihood_, others)
    _check_model(model, d, len(data.scale), noise)
    _restore_target(gp, part["single"], noise, classes)
    gp.theta_ = taken(
        arrays, "theta", (sum(p.value.size for p in ParameterSpace(model.parameters()).trainable.values()),)
    )
    gp.posterior_ = posteriors.restore(part["posterior"], arrays, gp._method_, model, data, d)
    _restore_outcome(gp, part["evidence"], part["outcome"], origins)
    gp._facts = (
        Facts.of(data, health.parameter_notes(model, data, columns, gp.outcome_.stopped))
        if facts is None
        else facts
    )
    gp._certificate = (
        None
        if part["certificate"] is None
        else decoded(part["certificate"], Certificate, "certificate_", origins)
    )


def _restore_target(gp: Fitted, single: Any, noise: bool, classes: int | None) -> None:
    """What y is, and that its values are possible."""
    model, data = gp._model_, gp._data
    if isinstance(gp, GPClassifier):
        expected = 1 if classes == 2 else classes
        if single is not None or noise or model.likelihood.latents != expected:
            raise ModelFileError(
                f"it has {classes} classes, but its likelihood has {model.likelihood.latents} functions, or"
                " noise."
            )
    else:
        gp._single = typed(single, bool, "single")
        if gp._single and noise and len(data.scale) != 1:
            raise ModelFileError(f"it is of a single output, but has {len(data.scale)}.")
        if noise:
            variances = model.gaussian.variances()
            gp.noise_ = float(variances[0]) if variances.size == 1 else variances
    if not noise and not isinstance(data, NoData):
        model.likelihood.checked(data.Y[:, 0])


def _restore_outcome(gp: Fitted, evidence: Any, outcome: Any, origins: Mapping[str, str]) -> None:
    gp.evidence_, gp.outcome_ = (
        decoded(evidence, Evidence, "evidence_", origins),
        decoded(outcome, FitOutcome, "outcome_", origins),
    )
    found = gp.outcome_
    counts = (
        found.iterations,
        found.evaluations,
        found.starts,
        found.jitter,
        found.seconds,
        gp.evidence_.standard_error,
    )
    if not all(0 <= count < np.inf for count in counts):
        raise ModelFileError("its outcome has counts, times or errors that are negative or without end.")


def _restore_split(gp: GPClassifier, fitted: Any, arrays: Arrays, origins: Mapping[str, str]) -> None:
    classes, models, evidence, outcome = entries(fitted, "fitted", *_SPLIT)
    gp.classes_ = labels.restore(classes)
    found: list[Fitted] = []
    for k, document in enumerate(typed_list(models, dict, "models")):
        parts = entries(document, f"models[{k}]", "estimator", "settings", "columns", "fitted")
        found.append(_restored(parts, of_part(arrays, f"model{k}"), origins))
    if gp.multiclass not in ("ovr", "ovo") or len(gp.classes_) < 3 or len(found) != len(multiclass.names(gp)):
        raise ModelFileError(
            f"{len(found)} binary models do not make {len(gp.classes_)} classes by"
            f" multiclass={gp.multiclass!r}."
        )
    for k, model in enumerate(found):
        if (
            not isinstance(model, GPClassifier)
            or model._is_split()
            or len(model.classes_) != 2
            or model.n_features_in_ != gp.n_features_in_
        ):
            raise ModelFileError(
                f"models[{k}] is no classifier of two classes and {gp.n_features_in_} columns."
            )
    gp.estimators_ = found
    first = found[0]
    gp.kernel_, gp.mean_, gp.likelihood_, gp.theta_ = (
        first.kernel_,
        first.mean_,
        first.likelihood_,
        first.theta_,
    )
    _restore_outcome(gp, evidence, outcome, origins)


def _check_again(gp: Fitted, document: Any, arrays: Arrays) -> None:
    """The last word: what was built must say of itself what was read, so nothing was ignored, rounded or read
    as something else."""
    again, used = describe(gp)
    for name in arrays:
        if name not in used:
            raise ModelFileError(
                f"it has an array {name[:80]!r} of shape {arrays[name].shape}, which does not belong there."
            )
    for part in ("estimator", "settings", "columns", "fitted"):
        if canonical(again[part]) != canonical(document[part]):
            raise ModelFileError(
                f"its {part} do not come back as they were stored. Does a class of your own change its fields"
                " in __post_init__?"
            )


# The fitted model. ------------------------------------------------------------------------------------------


def _columns(described: Any) -> tuple[Columns, bool]:
    names, named, categories, known_to_sklearn = entries(
        described, "columns", "names", "named", "categories", "sklearn"
    )
    names = tuple(typed_list(names, str, "columns.names"))
    named, known_to_sklearn = (
        typed(named, bool, "columns.named"),
        typed(known_to_sklearn, bool, "columns.sklearn"),
    )
    d = len(names)
    if not d or len(set(names)) != d:
        raise ModelFileError(f"it has {d} columns, but {len(set(names))} different names.")
    if not named and (names != tuple(f"x{j}" for j in range(d)) or categories or known_to_sklearn):
        raise ModelFileError("its columns have no names, and yet names or categories.")
    found: dict[int, tuple[str, ...]] = {}
    for pair in typed_list(categories, list, "columns.categories"):
        if len(pair) != 2 or type(pair[0]) is not int or not 0 <= pair[0] < d or pair[0] in found:
            raise ModelFileError(
                "columns.categories must have pairs of a column, each once, and its categories."
            )
        j, values = pair[0], typed_list(pair[1], str, f"columns.categories[{pair[0]}]")
        if len(set(values)) < len(values):
            raise ModelFileError(f"column {names[j]!r} has a category twice.")
        found[j] = tuple(values)
    return Columns(names, named, found), known_to_sklearn


def _check_categories(columns: Columns, data: Data) -> None:
    """That every code in the data stands for a category; where the file has no data there is nothing to
    check."""
    for j, categories in columns.categories.items():
        if not isinstance(data, NoData) and not np.all(np.isin(data.X[:, j], np.arange(len(categories)))):
            raise ModelFileError(f"column {columns.names[j]!r} has codes that stand for no category.")


def _resolved(kernel: Kernel, columns: Columns) -> Kernel:
    """The kernel with column names replaced by indices, as fitting did it. All parameters are held fixed on
    the way, since constructors let none that fitting may move start on the edge of its range, where a fit may
    well have ended."""
    kernel.check_columns(columns.described())
    parameters = list(kernel.parameters().values())
    still = kernel.with_parameters([dataclasses.replace(p, trainable=False) for p in parameters])
    return still.resolve(columns.names).with_parameters(parameters)


def _check_model(model: Model, d: int, q: int, noise: bool) -> None:
    """That the kernels, the mean and the likelihood work on data of this shape. Shapes are traced, nothing is
    computed."""
    likelihood = model.likelihood
    if isinstance(likelihood, Gaussian):
        units = len(likelihood.unit) in (1, q) and all(unit > 0 for unit in likelihood.unit)
        if likelihood.noise.value.ndim or not units:
            raise ModelFileError(f"its noise must be one variance, in 1 or {q} positive units.")
    elif noise:
        raise ModelFileError(f"its noise is that of a {type(likelihood).__name__}, but must be Gaussian.")
    if not noise and likelihood.latents != q:
        raise ModelFileError(f"its likelihood has {likelihood.latents} functions, but there are {q} scales.")
    if len(model.others) not in (0, q - 1) or (noise and model.others):
        raise ModelFileError(f"it has {1 + len(model.others)} kernels for {q} functions.")
    with jax.enable_x64(True):
        rows, y = np.zeros((2, d)), np.zeros(2)
        grams = [
            jax.eval_shape(lambda X, kernel=kernel: kernel.bare().cross(X, X), rows).shape
            for kernel in (model.kernel, *model.others)
        ]
        mean = jax.eval_shape(lambda X: model.mean.bare().block(X), rows).shape
        f = y if q == 1 or noise else np.zeros((2, q))
        log_prob = (
            (2,) if noise else jax.eval_shape(lambda y, f: likelihood.bare().log_prob(y, f), y, f).shape
        )
    for gram in grams:
        if gram != (2, 2):
            raise ModelFileError(
                f"its kernel gives an array of shape {gram} for two rows, but must give (2, 2)."
            )
    if mean not in ((2,), (2, 1), (2, q)):
        raise ModelFileError(
            f"its mean gives an array of shape {mean} for two rows, but must give (2,) or (2, {q})."
        )
    if log_prob != (2,):
        raise ModelFileError(
            f"its likelihood gives an array of shape {log_prob} for two observations, but must give (2,)."
        )


__all__ = ["Fitted", "describe", "restore"]
