"""A fitted regressor as a document and arrays, and back: what the model file stores, and the checks of what it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from sklearn.utils import check_random_state

from gramian.errors import ModelFileError
from gramian.estimators import building, defaults, health
from gramian.estimators.certificate import Certificate
from gramian.estimators.facts import Facts, NoData
from gramian.estimators.inputs import Columns
from gramian.estimators.regressor import GPRegressor
from gramian.fitting import FitOutcome
from gramian.inference import Data, Evidence, Inference, Model
from gramian.kernels import Kernel
from gramian.kernels.convert import Converted
from gramian.likelihoods import Gaussian
from gramian.means import Mean
from gramian.modelfile import posteriors
from gramian.modelfile.document import Arrays, canonical, decode, encode, entries, origins_of, typed, typed_list
from gramian.params import Parameter, ParameterSpace
from gramian.plan import as_method
from gramian.solvers import CG, MINRES


def describe(gp: GPRegressor) -> tuple[dict[str, Any], Arrays]:
    """All of a fitted regressor: a document for JSON, and the arrays."""
    columns = gp._columns
    posterior, arrays = posteriors.describe(gp)
    arrays["theta"] = gp.theta_
    fitted = {
        "kernel": encode(gp.kernel_, "kernel_"),
        "mean": encode(gp._model_.mean, "mean_"),
        "likelihood": encode(gp._model_.likelihood, "likelihood"),
        "single": gp._single,
        "method": encode(gp._method_, "method", arrays),
        "posterior": posterior,
        "evidence": encode(gp.evidence_, "evidence_"),
        "outcome": encode(gp.outcome_, "outcome_"),
        "certificate": encode(gp._certificate, "certificate_"),
    }
    described = {
        "names": list(columns.names),
        "named": columns.named,
        "categories": [[j, list(categories)] for j, categories in columns.categories.items()],
        "sklearn": hasattr(gp, "feature_names_in_"),  # its own record of names, which it keeps only where all of them are text
    }
    document = {"settings": _settings(gp), "columns": described, "fitted": fitted}
    return {**document, "origins": origins_of(document)}, arrays


@np.errstate(all="ignore")  # made-up numbers may overflow in a check; the check then fails, and that is what a person should read
def restore(document: Any, arrays: Arrays) -> GPRegressor:
    """The regressor of a document and its arrays. Whatever does not fit together is refused."""
    settings, described, fitted, given_origins = entries(document, "its document", "settings", "columns", "fitted", "origins")
    origins = {name: typed(module, str, f"origins.{name[:40]}") for name, module in typed(given_origins, dict, "origins").items()}
    names = ("kernel", "mean", "likelihood", "single", "method", "posterior", "evidence", "outcome", "certificate")
    kernel, mean, likelihood, single, method, posterior, evidence, outcome, certificate = entries(fitted, "fitted", *names)
    gp = _with_settings(settings, origins)
    columns, known_to_sklearn = _columns(described)
    data, facts = posteriors.data_of(posterior, arrays, len(columns.names))
    _check_categories(columns, data)
    gp.kernel_ = _decoded(kernel, Kernel, "kernel_", origins)
    model = Model(_resolved(gp.kernel_, columns), _decoded(mean, Mean, "mean_", origins), _decoded(likelihood, Gaussian, "likelihood", origins))
    _check_model(model, len(columns.names), len(data.scale))
    gp._columns, gp._single, gp._data, gp._model_ = columns, typed(single, bool, "single"), data, model
    if gp._single and len(data.scale) != 1:
        raise ModelFileError(f"it is of a single output, but has {len(data.scale)}.")
    gp._facts = Facts.of(data, health.parameter_notes(model, data, columns)) if facts is None else facts
    gp.mean_ = model.mean
    noise = model.gaussian.variances()
    gp.noise_ = float(noise[0]) if noise.size == 1 else noise
    gp.theta_ = posteriors.taken(arrays, "theta", (sum(p.value.size for p in ParameterSpace(model.parameters()).trainable.values()),))
    gp.n_features_in_ = len(columns.names)
    if known_to_sklearn:
        gp.feature_names_in_ = np.array(columns.names, dtype=object)
    gp._method_ = _decoded(method, Inference, "method", origins, arrays)
    gp.posterior_ = posteriors.restore(posterior, arrays, gp._method_, model, data, len(columns.names))
    gp.evidence_, gp.outcome_ = _decoded(evidence, Evidence, "evidence_", origins), _decoded(outcome, FitOutcome, "outcome_", origins)
    gp._certificate = None if certificate is None else _decoded(certificate, Certificate, "certificate_", origins)
    outcome = gp.outcome_
    counts = (outcome.iterations, outcome.evaluations, outcome.starts, outcome.jitter, outcome.seconds, gp.evidence_.standard_error)
    if not all(0 <= count < np.inf for count in counts):
        raise ModelFileError("its outcome has counts, times or errors that are negative or without end.")
    _check_again(gp, document, arrays)
    return gp


def _check_again(gp: GPRegressor, document: Any, arrays: Arrays) -> None:
    """The last word: what was built must say of itself what was read, so nothing was ignored, rounded or read as something else."""
    again, used = describe(gp)
    for name in arrays:
        if name not in used:
            raise ModelFileError(f"it has an array {name[:80]!r} of shape {arrays[name].shape}, which does not belong there.")
    for part in ("settings", "columns", "fitted"):
        if canonical(again[part]) != canonical(document[part]):
            raise ModelFileError(f"the {part} do not come back as they were stored. Does a class of your own change its fields in __post_init__?")


def _decoded(value: Any, kind: type, where: str, origins: Mapping[str, str], arrays: Arrays | None = None) -> Any:
    found = decode(value, where, origins, arrays)
    if not isinstance(found, kind):
        raise ModelFileError(f"{where} is a {type(found).__name__}, but must be a {kind.__name__}.")
    return found


# Settings. ------------------------------------------------------------------------------------------------------------------------------------------


def _settings(gp: GPRegressor) -> dict[str, Any]:
    found = dict(gp.get_params(deep=False))
    special = {"kernel": _kernel_setting(found.pop("kernel")), "random_state": _random_state_setting(found.pop("random_state"))}
    return {**special, **{name: encode(value, name) for name, value in found.items()}}


def _kernel_setting(kernel: Any) -> Any:
    if not isinstance(kernel, Converted):
        return encode(kernel, "kernel")
    return {"converted": [encode(kernel.kernel, "kernel"), encode(kernel.noise, "kernel.noise")]}


def _random_state_setting(given: Any) -> Any:
    """A seed as it is; a RandomState with its state, so that it goes on where it was."""
    if given is np.random or given is np.random.mtrand._rand:  # NumPy's shared one, which scikit-learn takes for None too
        return None
    if not isinstance(given, np.random.RandomState):
        return encode(given, "random_state")
    state = given.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ModelFileError(f"random_state is a RandomState on {state['bit_generator']}, which is not stored. Use a whole number as seed.")
    return {"mt19937": [state["state"]["key"].tolist(), int(state["state"]["pos"]), int(state["has_gauss"]), float(state["gauss"])]}


def _with_settings(given: Any, origins: Mapping[str, str]) -> GPRegressor:
    names = list(GPRegressor().get_params(deep=False))
    values = dict(zip(names, entries(given, "settings", *names), strict=True))
    kernel, seed = values.pop("kernel"), values.pop("random_state")
    decoded = {name: decode(value, name, origins) for name, value in values.items()}
    objects: dict[str, Any] = {"mean": Mean, "noise": Parameter, "method": (Inference, CG, MINRES)}
    for name, value in decoded.items():
        if not (value is None or isinstance(value, (bool, int, float, str, objects.get(name, ())))):
            raise ModelFileError(f"{name} is a {type(value).__name__}, which is no such setting.")
    for name in ("optimize", "normalize_y", "verbose"):
        if not isinstance(decoded[name], int) and not (name == "verbose" and decoded[name] is None):
            raise ModelFileError(f"{name} is {decoded[name]!r}, but must be True or False.")
    gp = GPRegressor(_kernel(kernel, origins), random_state=_random_state(seed), **decoded)
    building.check_settings(gp)
    if gp.method != "auto":
        as_method(gp.method, gp.memory_limit)
    defaults.mean_function(gp.mean, np.zeros(()), Columns(("x0",)))
    defaults.noise_parameter(building.given(gp)[1], 1.0, False, defaults.NOISE_FLOOR)
    return gp


def _kernel(value: Any, origins: Mapping[str, str]) -> Any:
    if not (isinstance(value, dict) and "converted" in value):
        return None if value is None else _decoded(value, Kernel, "kernel", origins)
    pair = typed(entries(value, "kernel", "converted")[0], list, "kernel.converted")
    if len(pair) != 2:
        raise ModelFileError("kernel.converted must have a kernel and a noise.")
    return Converted(_decoded(pair[0], Kernel, "kernel", origins), None if pair[1] is None else _decoded(pair[1], Parameter, "kernel.noise", origins))


def _random_state(value: Any) -> Any:
    if not isinstance(value, dict):
        check_random_state(value)  # refuses what is no seed
        return value
    parts = typed(entries(value, "random_state", "mt19937")[0], list, "random_state")
    if len(parts) != 4:
        raise ModelFileError(f"random_state has {len(parts)} parts, but must have four.")
    key, position, has_gauss = typed_list(parts[0], int, "random_state.key"), *(typed(part, int, "random_state") for part in parts[1:3])
    # NumPy trusts these: a position beyond the key would read past its end.
    if len(key) != 624 or not all(0 <= word < 2**32 for word in key) or not 0 <= position <= 624 or has_gauss not in (0, 1):
        raise ModelFileError("random_state is no state of the Mersenne twister.")
    state = np.random.RandomState()
    state.set_state(("MT19937", np.array(key, dtype=np.uint32), position, has_gauss, typed(parts[3], float, "random_state.gauss")))
    return state


# The fitted model. ----------------------------------------------------------------------------------------------------------------------------------


def _columns(described: Any) -> tuple[Columns, bool]:
    names, named, categories, known_to_sklearn = entries(described, "columns", "names", "named", "categories", "sklearn")
    names = tuple(typed_list(names, str, "columns.names"))
    named, known_to_sklearn = typed(named, bool, "columns.named"), typed(known_to_sklearn, bool, "columns.sklearn")
    d = len(names)
    if not d or len(set(names)) != d:
        raise ModelFileError(f"it has {d} columns, but {len(set(names))} different names.")
    if not named and (names != tuple(f"x{j}" for j in range(d)) or categories or known_to_sklearn):
        raise ModelFileError("its columns have no names, and yet names or categories.")
    found: dict[int, tuple[str, ...]] = {}
    for pair in typed_list(categories, list, "columns.categories"):
        if len(pair) != 2 or type(pair[0]) is not int or not 0 <= pair[0] < d or pair[0] in found:
            raise ModelFileError("columns.categories must have pairs of a column, each once, and its categories.")
        j, values = pair[0], typed_list(pair[1], str, f"columns.categories[{pair[0]}]")
        if len(set(values)) < len(values):
            raise ModelFileError(f"column {names[j]!r} has a category twice.")
        found[j] = tuple(values)
    return Columns(names, named, found), known_to_sklearn


def _check_categories(columns: Columns, data: Data) -> None:
    """That every code in the data stands for a category; where the file has no data there is nothing to check."""
    for j, categories in columns.categories.items():
        if not isinstance(data, NoData) and not np.all(np.isin(data.X[:, j], np.arange(len(categories)))):
            raise ModelFileError(f"column {columns.names[j]!r} has codes that stand for no category.")


def _resolved(kernel: Kernel, columns: Columns) -> Kernel:
    """The kernel with column names replaced by indices, as fitting did it. All parameters are held fixed on the way, since constructors let none
    that fitting may move start on the edge of its range, where a fit may well have ended."""
    kernel.check_columns(columns.described())
    parameters = list(kernel.parameters().values())
    still = kernel.with_parameters([dataclasses.replace(p, trainable=False) for p in parameters])
    return still.resolve(columns.names).with_parameters(parameters)


def _check_model(model: Model, d: int, q: int) -> None:
    """That the kernel, the mean and the noise work on data of this shape. Shapes are traced, nothing is computed."""
    likelihood = model.gaussian
    if likelihood.noise.value.ndim or len(likelihood.unit) not in (1, q) or not all(unit > 0 for unit in likelihood.unit):
        raise ModelFileError(f"its noise must be one variance, in 1 or {q} positive units.")
    with jax.enable_x64(True):
        rows = jax.ShapeDtypeStruct((2, d), np.float64)  # type: ignore[no-untyped-call]
        gram = jax.eval_shape(lambda X: model.kernel.bare().cross(X, X), rows).shape
        mean = jax.eval_shape(lambda X: model.mean.bare().block(X), rows).shape
    if gram != (2, 2):
        raise ModelFileError(f"its kernel gives an array of shape {gram} for two rows, but must give (2, 2).")
    if mean not in ((2,), (2, 1), (2, q)):
        raise ModelFileError(f"its mean gives an array of shape {mean} for two rows, but must give (2,) or (2, {q}).")


__all__ = ["describe", "restore"]
