"""Documents of older versions, brought up to date a version at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.errors import ModelFileError
from gramian.linalg.state import Arrays, joined, numbered, of_parts

Migration = Callable[[Any, Arrays], tuple[Any, Arrays]]


def _from_1(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 1 knew exact inference only, and neither stages nor certificates."""
    settings, fitted = dict(document["settings"]), dict(document["fitted"])
    solver = {"class": "Cholesky", "fields": {"ladder": [0.0, 1e-12, 1e-10, 1e-08, 1e-06]}}
    exact = {"class": "Exact", "fields": {"solver": solver, "fit_rows": None, "fit_rule": "neighbours"}}
    given = settings["method"]
    if isinstance(given, dict):  # an Exact, of a solver only
        exact = settings["method"] = {**given, "fields": exact["fields"] | given["fields"]}
    posterior = {"kind": "exact", "root_of": fitted.pop("root_of"), "inverted": True}
    fitted |= {"method": exact, "posterior": posterior, "certificate": None}
    fitted["outcome"] = {**fitted["outcome"], "fields": {**fitted["outcome"]["fields"], "stages": []}}
    return {**document, "settings": settings, "fitted": fitted}, arrays


def _from_2(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 2 knew regressors with Gaussian noise only."""
    document = _extended(document, estimator="GPRegressor")
    settings = _extended(document["settings"], likelihood=None, inference=None, hyper="map", stages=None)
    fitted = _extended(document["fitted"], others=[], noise=True, classes=None, data=None)
    if fitted["likelihood"].get("class") == "Gaussian":
        fitted["likelihood"] = {**fitted["likelihood"], "class": "likelihoods.Gaussian"}
    posterior = fitted["posterior"] = dict(fitted["posterior"])
    if posterior.get("kind") == "features":
        told = {name: posterior.pop(name) for name in ("rows", "known_noise", "notes")}
        fitted["data"] = {**told, "counts": None}
    return {**document, "settings": settings, "fitted": fitted}, arrays


def _from_3(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 3 multiplied with structured frequencies as with any others."""

    def with_signs(part: Any) -> Any:
        fourier = part.get("class") == "FourierBasis"
        return {**part, "fields": _extended(part["fields"], signs=None)} if fourier else part

    return _mapped(document, with_signs), arrays


def _mapped(part: Any, change: Callable[[Any], Any]) -> Any:
    """A piece of a document with every dict in it changed, from the inside out."""
    if isinstance(part, list):
        return [_mapped(item, change) for item in part]
    if not isinstance(part, dict):
        return part
    return change({name: _mapped(item, change) for name, item in part.items()})


def _extended(entries: Any, **new: Any) -> dict[str, Any]:
    """With entries that the older version did not have."""
    for name in new:
        if name in entries:
            raise ModelFileError(f"it has the entry {name!r}, which is not known in its version.")
    return {**entries, **new}


_OUTSIDE = {"dtc": "nothing", "vfe": "bound", "fitc": "noise"}


def _from_4(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 4 had inference and engine in one object under Gaussian noise, and other names for both."""
    settings = {name: _house(part) for name, part in document["settings"].items()}
    fitted = dict(document["fitted"])
    if "models" in fitted:
        parts = of_parts(arrays, "model", len(fitted["models"]))
        inside = joined(parts, "model")
        rest = {name: array for name, array in arrays.items() if name not in inside}
        pairs = [_from_4(model, part) for model, part in zip(fitted["models"], parts, strict=True)]
        fitted["models"] = [model for model, _ in pairs]
        arrays = rest | joined([part for _, part in pairs], "model")
    else:
        closed = fitted["method"].get("class") in ("Exact", "LowRank", "Iterative")
        fitted["posterior"], noises = _posterior_from_4(fitted, arrays, closed)
        arrays = {_place(name, closed): array for name, array in arrays.items()}
        arrays = _with_exposures(fitted, arrays | noises)
        if closed:
            engine = _house(_renamed(fitted["method"], "method", "method.engine"))
            fields = {"inference": {"class": "Conjugate", "fields": {}}, "engine": engine}
            fitted["method"] = {"class": "RuleOnEngine", "fields": fields}
        else:
            fitted["method"] = _house(fitted["method"])
    return {**document, "settings": settings, "fitted": fitted}, arrays


def _place(name: str, closed: bool) -> str:
    """The name of an array in version 5."""
    inside = closed and name.startswith("method.")
    name = name.replace("method.", "method.engine.", 1) if inside else name
    return "method.engine.solver.pivots" if name == "method.engine.pivots" else name


def _posterior_from_4(fitted: Any, arrays: Arrays, closed: bool) -> tuple[Any, Arrays]:
    """Version 4 stacked functions in their order, and left Gaussian noise to be found from the likelihood."""
    posterior = fitted["posterior"]
    if posterior.get("kind") == "stacked":
        parts = [_posterior_from_4({"posterior": part}, {}, False)[0] for part in posterior["parts"]]
        return {**posterior, "outputs": list(range(len(parts))), "parts": parts}, {}
    if posterior.get("kind") != "krylov":
        return posterior, {}
    if not closed:
        return {**posterior, "system_of": list(range(len(posterior["stronger"])))}, {}
    fields, scale, known = fitted["likelihood"]["fields"], arrays["scale"], arrays.get("noise_var")
    variances = fields["noise"]["parameter"]["values"][0] * np.asarray(fields["unit"])
    level = np.broadcast_to(variances, scale.shape) / scale**2
    outputs = list(zip(level.tolist(), (1 / scale**2).tolist(), strict=True))
    if known is None:
        outputs = [(own, 0.0) for own, _ in outputs]
    different = list(dict.fromkeys(outputs))  # outputs of one noise share a system
    known = np.zeros(len(arrays["X"])) if known is None else known
    noises = numbered([own + share * known for own, share in different], "noise.")
    return {**posterior, "system_of": [different.index(noise) for noise in outputs]}, noises


def _house(part: Any) -> Any:
    """Engines and rules under their names of version 5."""
    return _mapped(part, lambda one: _rehoused(one, one["fields"]) if "fields" in one else one)


def _rehoused(part: Any, fields: Any) -> Any:
    name = part.get("class")
    if name in ("CG", "MINRES"):
        return {**part, "fields": _extended(fields, pivots=None)}
    if name == "LowRank":
        objective, label, described = (fields.pop(key) for key in ("objective", "label", "described"))
        own = {"outside": _OUTSIDE[objective], "method": label, "described_as": described}
        return {**part, "fields": {**fields, **own}}
    if name == "SparseVariational":
        described = fields.pop("described")
        return {**part, "fields": {**fields, "described_as": described}}
    if name == "Iterative":
        pivots, solver = _renamed(fields.pop("pivots"), ".pivots", ".solver.pivots"), fields["solver"]
        solver = {**solver, "fields": {**solver["fields"], "pivots": pivots}}
        return {"class": "Krylov", "fields": {**fields, "solver": solver}}
    if name == "Sites":
        return {"class": "RuleOnEngine", "fields": {"inference": fields["rule"], "engine": fields["engine"]}}
    return part


def _renamed(part: Any, old: str, new: str) -> Any:
    """A piece of a document with the names of its arrays changed."""

    def change(one: Any) -> Any:
        return {"array": one["array"].replace(old, new, 1)} if set(one) == {"array"} else one

    return _mapped(part, change)


def _with_exposures(fitted: Any, arrays: Arrays) -> Arrays:
    """Exposures in a second column of Y; version 4 had their logarithms beside it, none where all were 1."""
    offset, arrays = arrays.get("offset"), {name: array for name, array in arrays.items() if name != "offset"}
    counts = fitted["likelihood"].get("class") in ("likelihoods.Poisson", "likelihoods.NegativeBinomial")
    if "Y" in arrays and (counts or offset is not None):
        if offset is not None and offset.shape != arrays["Y"].shape[:1]:
            raise ModelFileError(f"'offset' has the shape {offset.shape}, but Y {arrays['Y'].shape}.")
        exposure = np.ones(len(arrays["Y"])) if offset is None else np.exp(offset)
        arrays["Y"] = np.column_stack([arrays["Y"], exposure])
    return arrays


def _from_5(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 5 knew categories as the one thing that is no number, no gaps, no warps, and neither how
    targets are called nor how far columns spread whose rows are not there."""
    fitted, columns = dict(document["fitted"]), dict(document["columns"])
    if "models" in fitted:
        fitted["models"] = [_from_5(model, {})[0] for model in fitted["models"]]
    else:
        fitted = _extended(fitted, warp=None, calibration=None)
        if fitted["data"] is not None:
            fitted["data"] = _extended(fitted["data"], spread=None)
    coded = [
        [j, {"class": "Categories", "fields": {"levels": words}}] for j, words in columns.pop("categories")
    ]
    columns = _extended(columns, readings=coded, gaps=[], targets=[], notes=[])
    settings = _extended(document["settings"], missing="fill")
    outcome = fitted["outcome"]
    fitted["outcome"] = {**outcome, "fields": _extended(outcome["fields"], choice=[])}
    if document["estimator"] == "GPRegressor":
        settings = _extended(settings, warp=None)
    document = {**document, "settings": settings, "columns": columns, "fitted": fitted}
    return _mapped(document, _with_unit), arrays


def _with_unit(part: Any) -> Any:
    """Version 5 had periods in the units of the column alone."""
    timed = part.get("class") in ("Periodic", "Cosine") and "unit" not in part["fields"]
    return {**part, "fields": {**part["fields"], "unit": ""}} if timed else part


def _from_6(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 6 had one width for all residuals."""
    fitted = document["fitted"]
    if "models" in fitted or fitted["calibration"] is None:
        return document, arrays
    known = fitted["calibration"]
    known = {**known, "fields": _extended(known["fields"], widths=None)}
    return {**document, "fitted": {**fitted, "calibration": known}}, arrays


def _from_7(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 7 had one wider part of residuals, perhaps with no share, and outputs by themselves alone."""
    if document["estimator"] == "GPRegressor":
        document = {**document, "settings": _extended(document["settings"], outputs="independent")}
    fitted = document["fitted"]
    if "calibration" not in fitted or fitted["calibration"] is None:
        return document, arrays
    known = fitted["calibration"]
    fields = dict(known["fields"])
    share, width = fields.pop("share"), fields.pop("width")
    fields = _extended(fields, shares=[share] if share else [], wider=[width] if share else [])
    return {**document, "fitted": {**fitted, "calibration": {**known, "fields": fields}}}, arrays


# from a version to the next one
STEPS: tuple[Migration, ...] = (_from_1, _from_2, _from_3, _from_4, _from_5, _from_6, _from_7)
MIGRATIONS: dict[int, Migration] = dict(enumerate(STEPS, start=1))
