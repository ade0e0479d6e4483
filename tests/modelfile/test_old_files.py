"""Files of format version 4, one for each kind of posterior, predict as the models did that were saved."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gramian as gm
from gramian.modelfile.migrations import MIGRATIONS
from tests.modelfile.old.make import EXPECTED, FOLDER, answers, points_of

KNOWN: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text())


def test_every_file_is_compared() -> None:
    assert {path.stem for path in FOLDER.glob("*.gm")} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_an_old_file_predicts_as_it_did(name: str) -> None:
    gp = gm.load(FOLDER / f"{name}.gm")
    found = answers(gp, points_of(name))
    assert found.keys() == KNOWN[name].keys()
    for quantity, value in KNOWN[name].items():
        # To the last bit where it was written; another machine may round otherwise.
        np.testing.assert_allclose(found[quantity], value, rtol=1e-12, atol=1e-14, err_msg=quantity)


@pytest.mark.parametrize("name", KNOWN)
def test_an_old_file_is_saved_anew_without_loss(name: str, tmp_path: Any) -> None:
    gp = gm.load(FOLDER / f"{name}.gm")
    gp.save(tmp_path / "m.gm")
    assert answers(gm.load(tmp_path / "m.gm"), points_of(name)) == answers(gp, points_of(name))


@pytest.mark.parametrize("offset", [None, np.log([1.0, 2.0, 4.0])])
def test_exposures_become_a_column(offset: Any) -> None:
    """Version 4 had their logarithms in an array beside y; the file of Poisson counts above has none."""
    arrays = {"Y": np.array([[3.0], [0.0], [7.0]])} | ({} if offset is None else {"offset": offset})
    counts = {"class": "likelihoods.Poisson", "fields": {}}
    method = {"class": "MCMC", "fields": {}}
    fitted = {"likelihood": counts, "method": method, "posterior": {"kind": "mixture"}}
    _, found = MIGRATIONS[4]({"settings": {}, "fitted": fitted}, arrays)
    assert set(found) == {"Y"}
    exposure = np.ones(3) if offset is None else [1.0, 2.0, 4.0]
    np.testing.assert_allclose(found["Y"], np.column_stack([[3.0, 0.0, 7.0], exposure]), rtol=1e-15)
