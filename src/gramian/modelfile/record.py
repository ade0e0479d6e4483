"""A fitted estimator as a document and arrays, and back: what the model file stores, and the checks of what
it reads.

A classifier that is made of binary models has theirs inside its own: their documents in a list, their arrays
under the names "model0...", and so on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.base import is_classifier

from gramian.arrays import Array
from gramian.certify.certificate import Certificate
from gramian.corrections import Calibration
from gramian.data.inputs import Columns, spread
from gramian.data.readings import Reading
from gramian.deep.scheme import DeepVariational
from gramian.errors import ModelFileError
from gramian.estimators import multiclass
from gramian.estimators.base import Estimator
from gramian.estimators.edits import Edits
from gramian.estimators.fitted import Fitted
from gramian.estimators.forecaster import GPForecaster
from gramian.estimators.gplatent import GPLatent
from gramian.estimators.learned import Learned
from gramian.inference import Data, Model, Scheme
from gramian.inference.model import Deeper, Link
from gramian.kernels import Coregion, Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg.state import Arrays, entries, joined, of_parts, taken, typed, typed_list
from gramian.means import Mean
from gramian.modelfile import forecast, latent, observations, settings
from gramian.modelfile.document import Reader, canonical, encode, known_classes, origins_of, parsed, plain
from gramian.params import ParameterSpace, Tree
from gramian.report import notes as health
from gramian.report.facts import Facts
from gramian.warps import Warp

CHANGES = "Does a class of your own change its fields in __post_init__?"
MAX_STRUCTURES = 1000  # some ten milliseconds each
_MODEL = ("kernel", "others", "mean", "likelihood", "warp", "single", "noise", "classes")
_WHOLE = (*_MODEL, "method", "data", "posterior", "evidence", "outcome", "certificate", "calibration")
_SOME = "deeper", "outputs", "links"  # what some models have beside these
_SPLIT = ("classes", "models", "evidence", "outcome")
_COLUMNS = ("names", "named", "readings", "gaps", "targets", "notes", "sklearn")
_PARTS = ("estimator", "settings", "columns", "fitted")


def describe(gp: settings.Saved) -> tuple[dict[str, Any], Arrays]:
    """All of a fitted estimator: a document for JSON, and the arrays."""
    document, arrays = _described(gp)
    return {**document, "origins": origins_of(document)}, arrays


def _described(gp: settings.Saved) -> tuple[dict[str, Any], Arrays]:
    columns = gp.fitted_.columns
    described = {
        "names": list(columns.names),
        "named": columns.named,
        "readings": [
            [j, encode(reading, f"columns.readings[{j}]")] for j, reading in columns.readings.items()
        ],
        "gaps": list(columns.gaps),
        "targets": list(columns.targets),
        "notes": list(columns.notes),
        # its own record of names, which it keeps only where all of them are text
        "sklearn": hasattr(gp, "feature_names_in_"),
    }
    fitted, arrays = _kind(type(gp).__name__).describe(gp.fitted_)
    parts = type(gp).__name__, settings.describe(gp), described, fitted
    return dict(zip(_PARTS, parts, strict=True)), arrays


def _learned(fitted: Learned) -> tuple[dict[str, Any], Arrays]:
    return _several(fitted) if fitted.models else _one(fitted.first)


def _one(fitted: Fitted) -> tuple[dict[str, Any], Arrays]:
    data, arrays = observations.describe(fitted)
    method = encode(fitted.inference.stored(), "method", arrays)
    context = fitted.inference.context(fitted.model, fitted.rows, len(fitted.columns.names))
    posterior = fitted.process.state(context)
    arrays |= {**posterior.arrays, "theta": fitted.theta}
    if fitted.draws is not None:
        arrays["draws"] = fitted.draws
    if fitted.edits is not None:
        arrays["edits"] = np.array(fitted.edits, dtype=np.float64)
    if not fitted.inference.holds_rows and (fitted.has_rows or fitted.donors is not None):
        arrays["donors"] = fitted.some_rows()
    more = {}  # only of models that have it, so that files of others are as they were
    if fitted.model.deeper:
        kernels = tuple(layer.kernel for layer in fitted.model.deeper)
        more["deeper"] = encode(kernels, "deeper")
    if fitted.model.outputs:
        more["outputs"] = encode(fitted.model.outputs, "outputs")
    if fitted.model.links:
        links = tuple((link.number, link.kernel) for link in fitted.model.links)
        more["links"] = encode(links, "links")
    return more | {
        "kernel": encode(fitted.kernel, "kernel_"),
        "others": encode(fitted.model.others, "others"),
        "mean": encode(fitted.model.mean, "mean_"),
        "likelihood": encode(fitted.likelihood, "likelihood"),
        "warp": encode(fitted.model.warp, "warp_"),
        "single": fitted.single if fitted.classes is None else None,
        "noise": fitted.closed_form,
        "classes": None if fitted.classes is None else observations.describe_labels(fitted.classes),
        "method": method,
        "data": data,
        "posterior": plain(posterior.described),
        "evidence": encode(fitted.evidence, "evidence_"),
        "outcome": encode(fitted.outcome, "outcome_"),
        "certificate": encode(fitted.certificate, "certificate_"),
        "calibration": encode(fitted.calibration, "calibration_"),
    }, arrays


def _several(fitted: Learned) -> tuple[dict[str, Any], Arrays]:
    assert fitted.classes is not None
    parts = [_described(model) for model in fitted.models]
    return {
        "classes": observations.describe_labels(fitted.classes),
        "models": [document for document, _ in parts],
        "evidence": encode(fitted.evidence, "evidence_"),
        "outcome": encode(fitted.outcome, "outcome_"),
    }, joined([arrays for _, arrays in parts], "model")


# Reading. ---------------------------------------------------------------------------------------------------


# made-up numbers may overflow in a check; the check then fails, and that is what a person should read
@np.errstate(all="ignore")
def restore(document: Any, arrays: Arrays) -> settings.Saved:
    """The estimator of a document and its arrays. Whatever does not fit together is refused."""
    *parts, origins = entries(document, "its document", *_PARTS, "origins")
    for name, module in typed(origins, dict, "origins").items():
        typed(module, str, f"origins.{name[:40]}")
    gp = _restored(parts, arrays, Reader(origins, known_classes(), {}))
    _check_again(gp, document, arrays)
    return gp


def _restored(parts: list[Any], arrays: Arrays, reader: Reader) -> settings.Saved:
    estimator, given, described, fitted = parts
    if not (isinstance(estimator, str) and estimator in settings.ESTIMATORS):
        known = " and ".join(settings.ESTIMATORS)
        raise ModelFileError(f"it is of a {str(estimator)[:40]!r}, but this version knows {known}.")
    gp = settings.restore(settings.ESTIMATORS[estimator], given, reader)
    columns, known_to_sklearn = _columns(described, reader)
    kind = _kind(estimator)
    if kind.counts_columns:
        gp.n_features_in_ = len(columns.given)
        if known_to_sklearn:
            gp.feature_names_in_ = np.array(columns.given, dtype=object)
    gp.fitted_ = kind.restore(gp, columns, fitted, arrays, reader)
    return gp


def _restore_learned(gp: Any, columns: Columns, fitted: Any, arrays: Arrays, reader: Reader) -> Learned:
    several = is_classifier(gp) and "models" in typed(fitted, dict, "fitted")
    return (_restore_several if several else _restore_one)(gp, columns, fitted, arrays, reader)


def _described_series(fitted: Any) -> tuple[dict[str, Any], Arrays]:
    return forecast.describe(fitted, _described)


def _restore_series(gp: Any, columns: Columns, fitted: Any, arrays: Arrays, reader: Reader) -> Any:
    def of_document(document: Any, own: Arrays) -> Any:
        return _restored(entries(document, "model", *_PARTS), own, reader)

    return forecast.restore(columns, fitted, arrays, reader, of_document)


class _Kind(NamedTuple):
    """How what a fit has left is described and restored."""

    describe: Callable[[Any], tuple[dict[str, Any], Arrays]]
    restore: Callable[[Any, Columns, Any, Arrays, Reader], Any]
    counts_columns: bool = True  # whether it has scikit-learn's attributes of them


_KINDS = {
    GPLatent.__name__: _Kind(latent.describe, latent.restore),
    GPForecaster.__name__: _Kind(
        lambda fitted: forecast.describe(fitted, _described), _restore_series, False
    ),
}


def _kind(estimator: str) -> _Kind:
    return _KINDS.get(estimator, _Kind(_learned, _restore_learned))


def _restore_one(gp: Estimator, columns: Columns, fitted: Any, arrays: Arrays, reader: Reader) -> Fitted:
    names = (*_WHOLE, *(name for name in _SOME if name in typed(fitted, dict, "fitted")))
    part = dict(zip(names, entries(fitted, "fitted", *names), strict=True))
    d, noise = len(columns.names), typed(part["noise"], bool, "noise")
    if part["classes"] is not None and not is_classifier(gp):
        raise ModelFileError("it is of a regressor, and yet has classes.")
    classes = observations.restore_labels(part["classes"]) if is_classifier(gp) else None
    counted = None if classes is None else len(classes)
    method = reader.beside(arrays).one(part["method"], Scheme, "method")
    if method.needs_noise is not None and method.needs_noise != noise:
        needed = "Gaussian noise in closed form"
        needed = needed if noise else f"any other likelihood than {needed}"
        raise ModelFileError(f"its method ({method.described[:80]}) is not one for {needed}.")
    likelihood = reader.one(part["likelihood"], Likelihood, "likelihood")
    columns_of_y = None if noise else likelihood
    rows, facts = observations.restore(part["data"], arrays, method, d, columns_of_y, counted)
    kernel = reader.one(part["kernel"], Kernel, "kernel_")
    written = enumerate(typed(part["others"], list, "others"))
    others = tuple(reader.one(other, Kernel, f"others[{k}]") for k, other in written)
    mean = reader.one(part["mean"], Mean, "mean_")
    if facts is None:  # the rows are in the file
        _check_categories(columns, rows)
    warp = part["warp"]
    if warp is not None:
        warp = reader.one(warp, Warp, "warp_")
    written = enumerate(typed(part.get("deeper", []), list, "deeper"))
    deeper = tuple(Deeper(reader.one(own, Kernel, f"deeper[{k}]"), 2 + k) for k, own in written)
    of_outputs = _between(part, reader)
    model = Model(_resolved(kernel, columns), mean, likelihood, others, warp, deeper, *of_outputs)
    _check_outputs(model, method, len(rows.scale))
    _check_model(model, d, len(rows.scale), noise, reader)
    if "deeper" in part or method.search == "layers":
        _check_layers(model, method, d, len(rows.scale), reader)
    single = _target(model, rows.scale, part["single"], noise, counted)
    outputs = len(rows.scale) if noise else 1
    if len(columns.targets) not in (0, outputs):
        raise ModelFileError(f"it has {len(columns.targets)} names of targets, but predicts {outputs}.")
    if not noise and facts is None:
        likelihood.checked(likelihood.y_of(rows.Y))
    size = sum(p.value.size for p in ParameterSpace(model.parameters()).trainable.values())
    theta = taken(arrays, "theta", (size,))
    process = method.context(model, rows, d).process(parsed(part["posterior"], "posterior"), arrays)
    evidence, outcome = latent.outcome(part["evidence"], part["outcome"], reader)
    if facts is None:
        sd = spread(rows.X)
        facts = Facts.of(rows, health.parameter_notes(model, rows, columns, outcome.stopped, sd), sd)
    certificate = part["certificate"]
    if certificate is not None:
        certificate = reader.one(certificate, Certificate, "certificate_")
    calibration = part["calibration"]
    if calibration is not None:
        calibration = _calibration(reader.one(calibration, Calibration, "calibration_"), noise)
    donors = taken(arrays, "donors", (None, d)) if "donors" in arrays else None
    found = kernel, model, method, rows, process, evidence, outcome, columns, facts, theta, noise
    draws = _draws(arrays, model, method, noise) if "draws" in arrays else None
    edits = _edits(arrays) if "edits" in arrays else None
    given = bool(getattr(gp, "normalize_y", False)), classes, certificate, calibration, donors, draws, edits
    return Fitted(*found, single, *given)


def _edits(arrays: Arrays) -> Edits:
    added, forgotten, *rest = taken(arrays, "edits", (len(Edits()),)).tolist()
    if not all(math.isfinite(count) and count >= 0 for count in (added, forgotten)):
        raise ModelFileError("it has a number of rows that came or went that is none.")
    return Edits(int(added), int(forgotten), *rest)


def _draws(arrays: Arrays, model: Model, method: Scheme, noise: bool) -> Array:
    """Of theta, that predictions are averaged over."""
    space = ParameterSpace(model.parameters())
    draws = taken(arrays, "draws", (None, space.size))
    low, high = np.array(space.limits, dtype=np.float64).reshape(-1, 2).T
    if not (noise and method.holds_rows and draws.size):
        raise ModelFileError("it has draws of parameters, but no rows under Gaussian noise to go with them.")
    if not np.all(np.isfinite(draws) & (low <= draws) & (draws <= high)):
        raise ModelFileError("its draws of parameters are not all numbers within the parameters' limits.")
    return draws


def _calibration(found: Calibration, noise: bool) -> Calibration:
    sorted_, shares = [1.0, *found.wider], found.shares
    widths = len(shares) == len(found.wider) and sorted_ == sorted(sorted_) and sorted_[-1] < np.inf
    if not (noise and 0 < found.scale < np.inf and widths and min((0, *shares)) >= 0 and sum(shares) < 1):
        raise ModelFileError(f"{found} is no calibration of Gaussian noise.")
    return found


def _target(model: Model, scale: Array, single: Any, noise: bool, classes: int | None) -> bool:
    """Whether y is a single column, after the check that it is of the model's kind."""
    if classes is not None:
        expected = 1 if classes == 2 else classes
        if single is not None or noise or model.likelihood.latents != expected:
            own = f"its likelihood has {model.likelihood.latents} functions, or noise"
            raise ModelFileError(f"it has {classes} classes, but {own}.")
        return True
    if typed(single, bool, "single") and noise and len(scale) != 1:
        raise ModelFileError(f"it is of a single output, but has {len(scale)}.")
    return bool(single)


def _restore_several(
    gp: Estimator, columns: Columns, fitted: Any, arrays: Arrays, reader: Reader
) -> multiclass.BinaryModels:
    described, documents, evidence, outcome = entries(fitted, "fitted", *_SPLIT)
    given, classes = gp.get_params(), observations.restore_labels(described)
    scheme, models = given["multiclass"], []
    documents = typed_list(documents, dict, "models")
    inside = of_parts(arrays, "model", len(documents))
    for k, (document, own) in enumerate(zip(documents, inside, strict=True)):
        models.append(_restored(entries(document, f"models[{k}]", *_PARTS), own, reader))
    several = scheme in ("ovr", "ovo") and len(classes) >= 3
    if not several or len(models) != len(multiclass.names(scheme, classes)):
        wanted = f"{len(classes)} classes by multiclass={scheme!r}"
        raise ModelFileError(f"{len(models)} binary models do not make {wanted}.")
    d = gp.n_features_in_
    for k, model in enumerate(models):
        fit: Any = model.fitted_
        if (
            not is_classifier(model)
            or fit.classes is None
            or fit.models
            or len(fit.classes) != 2
            or model.n_features_in_ != d
        ):
            raise ModelFileError(f"models[{k}] is no classifier of two classes and {d} columns.")
    told, went = latent.outcome(evidence, outcome, reader)
    shared = bool(given["shared"])
    return multiclass.BinaryModels(scheme, shared, tuple(models), told, went, columns, classes)


def _check_again(gp: settings.Saved, document: Any, arrays: Arrays) -> None:
    """The last word: what was built must say of itself what was read: nothing was ignored or rounded."""
    again, used = describe(gp)
    for name in arrays:
        if name not in used:
            what = f"an array {name[:80]!r} of shape {arrays[name].shape}"
            raise ModelFileError(f"it has {what}, which does not belong there.")
    for part in _PARTS:
        if canonical(again[part]) != canonical(document[part]):
            raise ModelFileError(f"its {part} do not come back as they were stored. {CHANGES}")


# The fitted model. ------------------------------------------------------------------------------------------


def _columns(described: Any, reader: Reader) -> tuple[Columns, bool]:
    names, named, readings, gaps, targets, notes, known_to_sklearn = entries(described, "columns", *_COLUMNS)
    names = tuple(typed_list(names, str, "columns.names"))
    typed(named, bool, "columns.named")
    typed(known_to_sklearn, bool, "columns.sklearn")
    d = len(names)
    if not d or len(set(names)) != d:
        raise ModelFileError(f"it has {d} columns, but {len(set(names))} different names.")
    pairs = typed_list(readings, list, "columns.readings")
    if any(len(p) != 2 or type(p[0]) is not int for p in pairs) or len({p[0] for p in pairs}) < len(pairs):
        raise ModelFileError("columns.readings must have pairs of a column, each once, and its reading.")
    found = {j: reader.one(reading, Reading, f"columns.readings[{j}]") for j, reading in pairs}
    holes = tuple(typed_list(gaps, int, "columns.gaps"))
    first = d - len(holes)
    if any(not 0 <= j < first for j in (*found, *holes)) or len(set(holes)) < len(holes):
        raise ModelFileError("its readings and gaps must be of its columns, each once.")
    if not named and (names[:first] != tuple(f"x{j}" for j in range(first)) or known_to_sklearn):
        raise ModelFileError("its columns have no names, and yet names.")
    texts = (
        tuple(typed_list(part, str, f"columns.{k}")) for k, part in (("targets", targets), ("notes", notes))
    )
    return Columns(names, named, found, holes, *texts), known_to_sklearn


def _check_categories(columns: Columns, rows: Data) -> None:
    """That every code in the rows stands for a category."""
    for j, categories in columns.categories.items():
        if not np.all(np.isin(rows.X[:, j], np.arange(len(categories)))):
            raise ModelFileError(f"column {columns.names[j]!r} has codes that stand for no category.")


def _resolved(kernel: Kernel, columns: Columns) -> Kernel:
    """The kernel with indices for names of columns, as fitting did it. Parameters are held fixed on the way:
    constructors let none that may move start on the edge of its range, where a fit may well have ended."""
    kernel.check_columns(columns.described())
    parameters = list(kernel.parameters().values())
    still = kernel.with_parameters([dataclasses.replace(p, trainable=False) for p in parameters])
    return still.resolve(columns.names).with_parameters(parameters)


def _shape(reader: Reader, tree: Tree, method: str, *arguments: Any) -> tuple[int, ...]:
    """The shape of what a method of a kernel, mean or likelihood gives. Those that differ in numbers alone
    are traced once a file, since to trace one takes a hundred times as long as to read it."""
    leaves, structure = jax.tree_util.tree_flatten((tree.bare(), arguments))
    key = structure, method, tuple(map(np.shape, leaves))
    if key not in reader.shapes:
        if len(reader.shapes) >= MAX_STRUCTURES:
            raise ModelFileError(f"its models have more than {MAX_STRUCTURES:,} parts of different kinds.")
        reader.shapes[key] = jax.eval_shape(getattr(tree.bare(), method), *arguments).shape
    return reader.shapes[key]


def _check_layers(model: Model, method: Scheme, d: int, q: int, reader: Reader) -> None:
    """That the kernels of deeper layers work on what these see."""
    if not isinstance(method, DeepVariational):
        raise ModelFileError("it has layers, but its method has none.")
    method.check_layers(model, d, q)
    with jax.enable_x64(True):
        for layer, Z in zip(model.deeper, method.Z[1:], strict=True):
            shape = _shape(
                reader, layer.kernel, "cross", np.zeros((2, Z.shape[1])), np.zeros((2, Z.shape[1]))
            )
            if shape != (2, 2):
                raise ModelFileError(f"the kernel of layer {layer.number} gives {shape} for two rows.")


def _between(part: dict[str, Any], reader: Reader) -> tuple[tuple[Coregion, ...], tuple[Link, ...]]:
    """What is between outputs: matrices of those that inform each other, links of a chain."""
    written = enumerate(typed(part.get("outputs", []), list, "outputs"))
    between = tuple(reader.one(own, Coregion, f"outputs[{k}]") for k, own in written)
    links = []
    for k, pair in enumerate(typed_list(part.get("links", []), list, "links")):
        if len(pair) != 2:
            raise ModelFileError(f"links[{k}] must have a place and a kernel.")
        number = typed(pair[0], int, f"links[{k}]")
        links.append(Link(reader.one(pair[1], Kernel, f"links[{k}]"), number))
    return between, tuple(links)


def _check_outputs(model: Model, method: Scheme, q: int) -> None:
    """That a method for outputs that have to do with each other has a model of such, and no other has."""
    chain, coupled = (method.between == word for word in ("chained", "coupled"))
    if coupled != bool(model.outputs) or (model.links and not chain):
        raise ModelFileError("its method is not one for what is between its outputs.")
    if any(between.outputs != q for between in model.outputs):
        raise ModelFileError(f"it has a matrix between other outputs than its {q}.")
    if len(model.outputs) > 1 and len(model.outputs) != len(model.kernel.summands):
        raise ModelFileError("it has not one matrix between outputs a summand of its kernel.")
    if chain and len(model.others) != q - 1:
        raise ModelFileError(f"its chain is of {1 + len(model.others)} outputs, but there are {q}.")
    if not chain and model.likelihood.conjugate and method.closed and model.others:
        raise ModelFileError(f"it has {1 + len(model.others)} kernels for {q} functions.")
    places = [link.number for link in model.links]
    if places != sorted(set(places)) or not all(2 <= place <= q for place in places):
        raise ModelFileError("its links are not each at a place of its chain.")


def _check_model(model: Model, d: int, q: int, noise: bool, reader: Reader) -> None:
    """That kernels, mean and likelihood work on data of this shape, which is traced: nothing is computed."""
    likelihood = model.likelihood
    if isinstance(likelihood, Gaussian):
        units = len(likelihood.unit) in (1, q) and all(unit > 0 for unit in likelihood.unit)
        if likelihood.noise.value.shape not in ((), (q,) if noise else ()) or not units:
            raise ModelFileError(f"its noise must be one variance or {q}, in 1 or {q} positive units.")
    elif noise:
        raise ModelFileError(f"its noise is that of a {type(likelihood).__name__}, but must be Gaussian.")
    if not noise and likelihood.latents != q:
        raise ModelFileError(f"its likelihood has {likelihood.latents} functions, but there are {q} scales.")
    if model.warp is not None and (not noise or model.warp.forward(np.zeros((2, q))).shape != (2, q)):
        raise ModelFileError(f"its warp is not one of {q} outputs with Gaussian noise.")
    if len(model.others) not in (0, q - 1):
        raise ModelFileError(f"it has {1 + len(model.others)} kernels for {q} functions.")
    rows, f = np.zeros((2, d)), np.zeros(2) if q == 1 or noise else np.zeros((2, q))
    with jax.enable_x64(True):
        kernels = (model.kernel, *model.others)
        parts = [part for kernel in kernels for part in kernel.summands]
        # that there are such columns was seen before; which of them it is changes no shape
        grams = [_shape(reader, part.on_first_columns(), "cross", rows, rows) for part in parts]
        mean = _shape(reader, model.mean, "block", rows)
        y = likelihood.y_of(np.zeros((2, len(likelihood.columns))))
        log_prob = (2,) if noise else _shape(reader, likelihood, "log_prob", y, f)
    for what, shape, of, wanted in (
        *(("kernel", gram, "rows", ((2, 2),)) for gram in grams),
        ("mean", mean, "rows", ((2,), (2, q), (2, 1))),
        ("likelihood", log_prob, "observations", ((2,),)),
    ):
        if shape not in wanted:
            must = f"must give {' or '.join(map(str, wanted[:2]))}"
            raise ModelFileError(f"its {what} gives an array of shape {shape} for two {of}, but {must}.")
