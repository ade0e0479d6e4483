"""Model files changed at random: each is refused, or loads to something that predicts, in bounded time and
memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gramian.errors import ModelFileError
from gramian.modelfile import load
from tests.modelfile import mutants
from tests.modelfile.test_modelfile_hostile import Arrays, forged, parts


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return mutants.models(tmp_path_factory.mktemp("models"))


def test_the_models_themselves_load(files: list[Path]) -> None:
    assert {mutants.outcome(path) for path in files} == {"loaded"}


@pytest.mark.parametrize("seed", range(4))
def test_mutants_are_refused_or_predict(seed: int, files: list[Path], tmp_path: Path) -> None:
    found = mutants.check(files, tmp_path, 100, seed)
    assert found["refused"] > 50  # changes are seen
    assert found["loaded"] > 0  # and some are of numbers that may as well be others


def tiny(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {name: np.full_like(arrays[name], 1e-308)}


# What changes at random have found.
FOUND: dict[str, tuple[str, Callable[[Arrays], Arrays], str]] = {
    "columns by numbers that are not whole": (
        "latent",
        lambda arrays: {"group": arrays["group"].astype(float)},
        "'group' is of type float64",
    ),
    "places in a line": ("latent", lambda arrays: {"Z": arrays["Z"].ravel()}, r"'Z' has the shape \(3,\)"),
    "rows beyond all numbers": ("neighbours", tiny("lengths"), "in units of its lengths"),
    "a scale whose square is zero": ("chains", tiny("scale"), "scales must be positive"),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_is_refused(case: str, files: list[Path], tmp_path: Path) -> None:
    model, change, words = FOUND[case]
    metadata, document, arrays = parts(next(file for file in files if file.stem == model))
    forged(tmp_path / "bad.gm", metadata, json.dumps(document), {**arrays, **change(arrays)})
    with pytest.raises(ModelFileError, match=words):
        load(tmp_path / "bad.gm")
