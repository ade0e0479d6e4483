"""Documents of older versions, brought up to date a version at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gramian.errors import ModelFileError
from gramian.modelfile.arrays import Arrays


def _from_1(document: Any) -> Any:
    """Version 1 knew exact inference only, and neither stages nor certificates."""
    settings, fitted = dict(document["settings"]), dict(document["fitted"])
    solver = {"class": "Cholesky", "fields": {"ladder": [0.0, 1e-12, 1e-10, 1e-08, 1e-06]}}
    exact = {"class": "Exact", "fields": {"solver": solver, "fit_rows": None, "fit_rule": "neighbours"}}
    if isinstance(settings["method"], dict):  # an Exact, of a solver only
        exact = settings["method"] = {
            **settings["method"],
            "fields": exact["fields"] | settings["method"]["fields"],
        }
    posterior = {"kind": "exact", "root_of": fitted.pop("root_of"), "inverted": True}
    fitted |= {"method": exact, "posterior": posterior, "certificate": None}
    fitted["outcome"] = {**fitted["outcome"], "fields": {**fitted["outcome"]["fields"], "stages": []}}
    return {**document, "settings": settings, "fitted": fitted}


def _from_2(document: Any) -> Any:
    """Version 2 knew regressors with Gaussian noise only."""
    settings = _extended(
        document["settings"], {"likelihood": None, "inference": None, "hyper": "map", "stages": None}
    )
    fitted = _extended(document["fitted"], {"others": [], "noise": True, "classes": None, "data": None})
    if fitted["likelihood"].get("class") == "Gaussian":
        fitted["likelihood"] = {**fitted["likelihood"], "class": "likelihoods.Gaussian"}
    posterior = dict(fitted["posterior"])
    if posterior.get("kind") == "features":
        fitted["data"] = {
            **{name: posterior.pop(name) for name in ("rows", "known_noise", "notes")},
            "counts": None,
        }
    return {
        **_extended(document, {"estimator": "GPRegressor"}),
        "settings": settings,
        "fitted": {**fitted, "posterior": posterior},
    }


def _from_3(document: Any) -> Any:
    """Version 3 multiplied with structured frequencies as with any others."""
    if isinstance(document, list):
        return [_from_3(part) for part in document]
    if not isinstance(document, dict):
        return document
    migrated = {name: _from_3(part) for name, part in document.items()}
    return (
        {**migrated, "fields": _extended(migrated["fields"], {"signs": None})}
        if migrated.get("class") == "FourierBasis"
        else migrated
    )


def _extended(entries: Any, new: dict[str, Any]) -> dict[str, Any]:
    """With entries that the older version did not have."""
    for name in new:
        if name in entries:
            raise ModelFileError(f"it has the entry {name!r}, which is not known in its version.")
    return {**entries, **new}


_OUTSIDE = {"dtc": "nothing", "vfe": "bound", "fitc": "noise"}
_SOLVERS = ("CG", "MINRES")


def _from_4(document: Any) -> Any:
    """Version 4 had inference and engine in one object under Gaussian noise, and other names for both."""
    settings = {name: _house(part) for name, part in document["settings"].items()}
    fitted = dict(document["fitted"])
    if "models" in fitted:
        fitted["models"] = [_from_4(model) for model in fitted["models"]]
    elif fitted["method"].get("class") in ("Exact", "LowRank", "Iterative"):
        conjugate = {"class": "Conjugate", "fields": {}}
        fields = {
            "inference": conjugate,
            "engine": _house(_renamed(fitted["method"], "method", "method.engine")),
        }
        fitted["method"] = {"class": "RuleOnEngine", "fields": fields}
    else:
        fitted["method"] = _house(fitted["method"])
    return {**document, "settings": settings, "fitted": fitted}


def _house(part: Any) -> Any:
    """Engines and rules under their names of version 5."""
    if isinstance(part, list):
        return [_house(item) for item in part]
    if not isinstance(part, dict) or "fields" not in part:
        return part
    name, fields = part.get("class"), {key: _house(value) for key, value in part["fields"].items()}
    if name in _SOLVERS:
        return {**part, "fields": _extended(fields, {"pivots": None})}
    if name == "LowRank":
        objective, label, described = (fields.pop(key) for key in ("objective", "label", "described"))
        own = {"outside": _OUTSIDE[objective], "method": label, "described_as": described}
        return {**part, "fields": {**fields, **own}}
    if name == "SparseVariational":
        described = fields.pop("described")
        return {**part, "fields": {**fields, "described_as": described}}
    if name == "Iterative":
        pivots = _renamed(fields.pop("pivots"), ".pivots", ".solver.pivots")
        solver = fields["solver"]
        fields["solver"] = {**solver, "fields": {**solver["fields"], "pivots": pivots}}
        return {"class": "Krylov", "fields": fields}
    if name == "Sites":
        return {"class": "RuleOnEngine", "fields": {"inference": fields["rule"], "engine": fields["engine"]}}
    return {**part, "fields": fields}


def _renamed(part: Any, old: str, new: str) -> Any:
    """A piece of a document with the names of its arrays changed."""
    if isinstance(part, list):
        return [_renamed(item, old, new) for item in part]
    if not isinstance(part, dict):
        return part
    if set(part) == {"array"}:
        return {"array": part["array"].replace(old, new, 1)}
    return {key: _renamed(value, old, new) for key, value in part.items()}


def _arrays_from_4(document: Any, arrays: Arrays, prefix: str = "") -> Arrays:
    """The arrays under the names that go with that; `document` is still of version 4."""
    fitted = document["fitted"]
    if "models" in fitted:
        for k, model in enumerate(fitted["models"]):
            arrays = _arrays_from_4(model, arrays, f"{prefix}model{k}.")
        return arrays
    alone = fitted["method"].get("class") in ("LowRank", "Iterative")
    start = f"{prefix}method."

    def renamed(name: str) -> str:
        if not name.startswith(start):
            return name
        inside = name[len(start) :]
        inside = f"engine.{inside}" if alone else inside
        return start + ("engine.solver.pivots" if inside == "engine.pivots" else inside)

    return _with_exposures(fitted, {renamed(name): array for name, array in arrays.items()}, prefix)


def _with_exposures(fitted: Any, arrays: Arrays, prefix: str) -> Arrays:
    """Counts with their exposures in a second column of Y; version 4 had the logarithms in an array beside
    it, and none where all were 1."""
    y, offset = f"{prefix}Y", arrays.pop(f"{prefix}offset", None)
    counts = fitted["likelihood"].get("class") in ("likelihoods.Poisson", "likelihoods.NegativeBinomial")
    if y in arrays and (counts or offset is not None):
        if offset is not None and offset.shape != arrays[y].shape[:1]:
            raise ModelFileError(f"'offset' has the shape {offset.shape}, but Y {arrays[y].shape}.")
        exposure = np.ones(len(arrays[y])) if offset is None else np.exp(offset)
        arrays[y] = np.column_stack([arrays[y], exposure])
    return arrays


# from the document of a version to that of the next one
MIGRATIONS: Mapping[int, Callable[[Any], Any]] = {1: _from_1, 2: _from_2, 3: _from_3, 4: _from_4}
RENAMES: Mapping[int, Callable[[Any, Arrays], Arrays]] = {4: _arrays_from_4}  # of arrays, on the way


def migrated(version: int, document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """The document and the arrays of the next version."""
    renamed = RENAMES[version](document, arrays) if version in RENAMES else arrays
    return MIGRATIONS[version](document), renamed


__all__ = ["MIGRATIONS", "migrated"]
