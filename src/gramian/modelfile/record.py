"""A fitted regressor as a document and arrays, and back: what the model file stores, and the checks of what it reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gramian.errors import ModelFileError
from gramian.estimators import defaults
from gramian.estimators.inputs import Columns
from gramian.estimators.regressor import GPRegressor
from gramian.fitting import FitOutcome
from gramian.inference import Data, Evidence, Exact, GaussianProcess, Inference, Model, Posterior
from gramian.kernels import Kernel
from gramian.kernels.convert import Converted
from gramian.likelihoods import Gaussian
from gramian.means import Mean
from gramian.modelfile.document import canonical, decode, encode, entries, origins_of, typed, typed_list
from gramian.params import Parameter, ParameterSpace

Array = NDArray[np.float64]


class Arrays(NamedTuple):
    """The numbers of a fitted model."""

    X: Array  # (n, d)
    Y: Array  # (n, q)
    scale: Array  # (q,)
    noise_var: Array | None  # (n,)
    alpha: Array  # (n, q)
    theta: Array  # (p,)
    roots: tuple[Array, ...]  # each (n, n), lower triangular


def describe(gp: GPRegressor) -> tuple[dict[str, Any], Arrays]:
    """All of a fitted regressor: a document for JSON, and the arrays."""
    posterior, data, columns = gp.posterior_, gp._data, gp._columns
    if not isinstance(posterior, Posterior):
        raise ModelFileError(f"method={gp.method!r} gives a {type(posterior).__name__}, which this version does not store.")
    fitted = {
        "kernel": encode(gp.kernel_, "kernel_"),
        "mean": encode(gp._model_.mean, "mean_"),
        "likelihood": encode(gp._model_.likelihood, "likelihood"),
        "single": gp._single,
        "root_of": list(posterior.root_of),
        "evidence": encode(gp.evidence_, "evidence_"),
        "outcome": encode(gp.outcome_, "outcome_"),
    }
    described = {
        "names": list(columns.names),
        "named": columns.named,
        "categories": [[j, list(categories)] for j, categories in columns.categories.items()],
        "sklearn": hasattr(gp, "feature_names_in_"),  # its own record of names, which it keeps only where all of them are text
    }
    document = {"settings": _settings(gp), "columns": described, "fitted": fitted}
    arrays = Arrays(data.X, data.Y, data.scale, data.noise_var, posterior.alpha, gp.theta_, posterior.roots)
    return {**document, "origins": origins_of(document)}, arrays


@np.errstate(all="ignore")  # made-up numbers may overflow in a check; the check then fails, and that is what a person should read
def restore(document: Any, arrays: Arrays) -> GPRegressor:
    """The regressor of a document and its arrays, whose shapes belong together. Whatever does not fit is refused."""
    settings, described, fitted, given_origins = entries(document, "its document", "settings", "columns", "fitted", "origins")
    origins = {name: typed(module, str, f"origins.{name[:40]}") for name, module in typed(given_origins, dict, "origins").items()}
    gp = _with_settings(settings, origins)
    columns, known_to_sklearn = _columns(described, arrays.X)
    kernel, mean, likelihood, single, root_of, evidence, outcome = entries(
        fitted, "fitted", "kernel", "mean", "likelihood", "single", "root_of", "evidence", "outcome"
    )
    gp.kernel_ = _decoded(kernel, Kernel, "kernel_", origins)
    model = Model(_resolved(gp.kernel_, columns), _decoded(mean, Mean, "mean_", origins), _decoded(likelihood, Gaussian, "likelihood", origins))
    data = Data(arrays.X, arrays.Y, arrays.scale, arrays.noise_var)
    _check_model(model, data, arrays)
    gp._columns, gp._single, gp._data, gp._model_ = columns, typed(single, bool, "single"), data, model
    if gp._single and data.Y.shape[1] != 1:
        raise ModelFileError(f"it is of a single output, but has {data.Y.shape[1]}.")
    gp.mean_ = model.mean
    noise = model.likelihood.variances()
    gp.noise_ = float(noise[0]) if noise.size == 1 else noise
    gp.theta_ = arrays.theta
    gp.n_features_in_ = data.X.shape[1]
    if known_to_sklearn:
        gp.feature_names_in_ = np.array(columns.names, dtype=object)
    prior = GaussianProcess(model.kernel, model.mean, data.scale)
    gp.posterior_ = Posterior(prior, data.X, arrays.alpha, arrays.roots, _root_of(root_of, arrays))
    gp.evidence_, gp.outcome_ = _decoded(evidence, Evidence, "evidence_", origins), _decoded(outcome, FitOutcome, "outcome_", origins)
    outcome = gp.outcome_
    counts = (outcome.iterations, outcome.evaluations, outcome.starts, outcome.jitter, outcome.seconds, gp.evidence_.standard_error)
    if not all(0 <= count < np.inf for count in counts):
        raise ModelFileError("its outcome has counts, times or errors that are negative or without end.")
    # The last word: what was built must say of itself what the document says, so nothing was ignored, rounded or read as something else.
    again = describe(gp)[0]
    for part in ("settings", "columns", "fitted"):
        if canonical(again[part]) != canonical(document[part]):
            raise ModelFileError(f"the {part} do not come back as they were stored. Does a class of your own change its fields in __post_init__?")
    return gp


def _decoded(value: Any, kind: type, where: str, origins: Mapping[str, str]) -> Any:
    found = decode(value, where, origins)
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
    objects: dict[str, Any] = {"mean": Mean, "noise": Parameter, "method": Inference}
    for name, value in decoded.items():
        if not (value is None or isinstance(value, (bool, int, float, str, objects.get(name, ())))):
            raise ModelFileError(f"{name} is a {type(value).__name__}, which is no such setting.")
    for name in ("optimize", "normalize_y", "verbose"):
        if not isinstance(decoded[name], int) and not (name == "verbose" and decoded[name] is None):
            raise ModelFileError(f"{name} is {decoded[name]!r}, but must be True or False.")
    gp = GPRegressor(_kernel(kernel, origins), random_state=_random_state(seed), **decoded)
    inference, _ = gp._inference()
    if not isinstance(inference, Exact):
        raise ModelFileError(f"method is a {type(inference).__name__}, which this version does not store.")
    gp._check_settings()
    defaults.mean_function(gp.mean, np.zeros(()), Columns(("x0",)))
    defaults.noise_parameter(gp._given()[1], 1.0, False, defaults.NOISE_FLOOR)
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


def _columns(described: Any, X: Array) -> tuple[Columns, bool]:
    names, named, categories, known_to_sklearn = entries(described, "columns", "names", "named", "categories", "sklearn")
    names = tuple(typed_list(names, str, "columns.names"))
    named, known_to_sklearn = typed(named, bool, "columns.named"), typed(known_to_sklearn, bool, "columns.sklearn")
    d = X.shape[1]
    if len(names) != d or len(set(names)) != d:
        raise ModelFileError(f"it has {d} columns of data, but {len(names)} names, {len(set(names))} of them different.")
    if not named and (names != tuple(f"x{j}" for j in range(d)) or categories or known_to_sklearn):
        raise ModelFileError("its columns have no names, and yet names or categories.")
    found: dict[int, tuple[str, ...]] = {}
    for pair in typed_list(categories, list, "columns.categories"):
        if len(pair) != 2 or type(pair[0]) is not int or not 0 <= pair[0] < d or pair[0] in found:
            raise ModelFileError("columns.categories must have pairs of a column, each once, and its categories.")
        j, values = pair[0], typed_list(pair[1], str, f"columns.categories[{pair[0]}]")
        if len(set(values)) < len(values) or not np.all(np.isin(X[:, j], np.arange(len(values)))):
            raise ModelFileError(f"column {names[j]!r} has codes that stand for no category, or a category twice.")
        found[j] = tuple(values)
    return Columns(names, named, found), known_to_sklearn


def _resolved(kernel: Kernel, columns: Columns) -> Kernel:
    """The kernel with column names replaced by indices, as fitting did it. All parameters are held fixed on the way, since constructors let none
    that fitting may move start on the edge of its range, where a fit may well have ended."""
    kernel.check_columns(columns.described())
    parameters = list(kernel.parameters().values())
    still = kernel.with_parameters([dataclasses.replace(p, trainable=False) for p in parameters])
    return still.resolve(columns.names).with_parameters(parameters)


def _check_model(model: Model, data: Data, arrays: Arrays) -> None:
    """That the kernel, the mean and the noise work on data of this shape. Shapes are traced, nothing is computed."""
    q = data.Y.shape[1]
    if not np.all(data.scale > 0) or (data.noise_var is not None and not np.all(data.noise_var >= 0)):
        raise ModelFileError("its scales must be positive and its noise variances not negative.")
    likelihood = model.likelihood
    if likelihood.noise.value.ndim or len(likelihood.unit) not in (1, q) or not all(unit > 0 for unit in likelihood.unit):
        raise ModelFileError(f"its noise must be one variance, in 1 or {q} positive units.")
    with jax.enable_x64(True):
        rows = jax.ShapeDtypeStruct((2, data.X.shape[1]), np.float64)  # type: ignore[no-untyped-call]
        gram = jax.eval_shape(lambda X: model.kernel.bare().cross(X, X), rows).shape
        mean = jax.eval_shape(lambda X: model.mean.bare().block(X), rows).shape
    if gram != (2, 2):
        raise ModelFileError(f"its kernel gives an array of shape {gram} for two rows, but must give (2, 2).")
    if mean not in ((2,), (2, 1), (2, q)):
        raise ModelFileError(f"its mean gives an array of shape {mean} for two rows, but must give (2,) or (2, {q}).")
    count = sum(p.value.size for p in ParameterSpace(model.parameters()).trainable.values())
    if arrays.theta.shape != (count,):
        raise ModelFileError(f"its theta has the shape {arrays.theta.shape}, but the model has {count} trainable numbers.")
    if any(not np.all(np.diagonal(root) > 0) for root in arrays.roots):
        raise ModelFileError("a root has a diagonal that is not positive.")


def _root_of(value: Any, arrays: Arrays) -> tuple[int, ...]:
    found = tuple(typed_list(value, int, "root_of"))
    if len(found) != arrays.Y.shape[1] or set(found) != set(range(len(arrays.roots))):
        raise ModelFileError(f"root_of is {list(found)[:8]}, but must name each of the {len(arrays.roots)} roots for {arrays.Y.shape[1]} outputs.")
    return found


__all__ = ["Arrays", "describe", "restore"]
