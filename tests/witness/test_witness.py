"""Numbers of today's code against those of the commit in witness.json, case by case.

WITNESS_TOLERANCE=1e-9 in the environment takes one tolerance for all: for a change that only moves code.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

from tests.witness.cases import CASES
from tests.witness.make import FILE

WITNESS: dict[str, Any] = json.loads(FILE.read_text())


def test_every_case_has_its_numbers() -> None:
    assert list(WITNESS["cases"]) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_the_witness(name: str) -> None:
    expected, found = WITNESS["cases"][name], CASES[name].run()
    wrong = []
    for quantity, value in expected["numbers"].items():
        flat = quantity.startswith("evidence") and expected["value_tolerance"] is not None
        tolerance = float(
            os.environ.get("WITNESS_TOLERANCE") or expected["value_tolerance" if flat else "tolerance"]
        )
        wrong += difference(
            value, found.found.get(quantity, found.refused.get(quantity, "nothing")), tolerance, quantity
        )
    assert not wrong, f"{name}, against commit {WITNESS['commit'][:7]}:\n" + "\n".join(wrong)


def difference(expected: Any, found: Any, tolerance: float, quantity: str) -> list[str]:
    """What to say of two values; nothing where |a - b| <= tolerance max(1, largest |a|)."""
    if isinstance(expected, str) or isinstance(found, str):
        return [] if expected == found else [f"  {quantity} was {_short(expected)}, and is {_short(found)}"]
    a, b = np.asarray(expected, dtype=np.float64), np.asarray(found, dtype=np.float64)
    if a.shape != b.shape:
        return [f"  {quantity} had the shape {a.shape}, and has {b.shape}"]
    known = np.isfinite(a)
    scale = max(1.0, float(np.max(np.abs(a[known]), initial=0.0)))
    same = np.where(known, np.abs(a - b) <= tolerance * scale, (a == b) | (np.isnan(a) & np.isnan(b)))
    if np.all(same):
        return []
    at = np.unravel_index(np.argmax(np.where(same, -1.0, np.nan_to_num(np.abs(a - b), nan=np.inf))), a.shape)
    where = f"[{', '.join(map(str, at))}]" if at else ""
    off = f"off by {abs(a[at] - b[at]) / scale:.2g} of its scale, more than {tolerance:g}"
    return [f"  {quantity}{where} was {float(a[at])!r}, and is {float(b[at])!r}: {off}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 200 else text[:200] + " ..."
