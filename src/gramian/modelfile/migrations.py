"""Documents of older versions, brought up to date a version at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gramian.errors import ModelFileError
from gramian.inference import Exact
from gramian.modelfile.document import encode


def _from_1(document: Any) -> Any:
    """Version 1 knew exact inference only, and neither stages nor certificates."""
    settings, fitted = dict(document["settings"]), dict(document["fitted"])
    exact = encode(Exact(), "method")
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


# from the document of a version to that of the next one
MIGRATIONS: Mapping[int, Callable[[Any], Any]] = {1: _from_1, 2: _from_2, 3: _from_3}

__all__ = ["MIGRATIONS"]
