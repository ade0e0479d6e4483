"""Documents of older versions, brought up to date a version at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.errors import ModelFileError
from gramian.linalg.state import Arrays, joined, numbered, of_part

Migration = Callable[[Any, Arrays], tuple[Any, Arrays]]


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


def _from_4(document: Any, arrays: Arrays) -> tuple[Any, Arrays]:
    """Version 4 had inference and engine in one object under Gaussian noise, and other names for both."""
    settings = {name: _house(part) for name, part in document["settings"].items()}
    fitted = dict(document["fitted"])
    if "models" in fitted:
        parts = [of_part(arrays, f"model{k}") for k in range(len(fitted["models"]))]
        inside = joined(parts, "model")
        rest = {name: array for name, array in arrays.items() if name not in inside}
        pairs = [_from_4(model, part) for model, part in zip(fitted["models"], parts, strict=True)]
        fitted["models"] = [model for model, _ in pairs]
        arrays = rest | joined([part for _, part in pairs], "model")
    else:
        closed = fitted["method"].get("class") in ("Exact", "LowRank", "Iterative")
        fitted["posterior"], noises = _posterior_from_4(fitted, arrays, closed)
        engine = "method.engine." if closed else "method."
        names = {name: name.replace("method.", engine, 1) for name in arrays if name.startswith("method.")}
        pivots = {"method.engine.pivots": "method.engine.solver.pivots"}
        names = {old: pivots.get(new, new) for old, new in names.items()}
        arrays = {names.get(name, name): array for name, array in arrays.items()} | noises
        arrays = _with_exposures(fitted, arrays)
        if closed:
            engine = _house(_renamed(fitted["method"], "method", "method.engine"))
            fields = {"inference": {"class": "Conjugate", "fields": {}}, "engine": engine}
            fitted["method"] = {"class": "RuleOnEngine", "fields": fields}
        else:
            fitted["method"] = _house(fitted["method"])
    return {**document, "settings": settings, "fitted": fitted}, arrays


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


def _alone(change: Callable[[Any], Any]) -> Migration:
    """One that leaves the arrays as they are."""
    return lambda document, arrays: (change(document), arrays)


def _with_exposures(fitted: Any, arrays: Arrays) -> Arrays:
    """Counts with their exposures in a second column of Y; version 4 had the logarithms in an array beside
    it, and none where all were 1."""
    offset, arrays = arrays.get("offset"), {name: array for name, array in arrays.items() if name != "offset"}
    counts = fitted["likelihood"].get("class") in ("likelihoods.Poisson", "likelihoods.NegativeBinomial")
    if "Y" in arrays and (counts or offset is not None):
        if offset is not None and offset.shape != arrays["Y"].shape[:1]:
            raise ModelFileError(f"'offset' has the shape {offset.shape}, but Y {arrays['Y'].shape}.")
        exposure = np.ones(len(arrays["Y"])) if offset is None else np.exp(offset)
        arrays["Y"] = np.column_stack([arrays["Y"], exposure])
    return arrays


# from a version to the next one
MIGRATIONS: dict[int, Migration] = {1: _alone(_from_1), 2: _alone(_from_2), 3: _alone(_from_3), 4: _from_4}

__all__ = ["MIGRATIONS"]
