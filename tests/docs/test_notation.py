"""The table of symbols: each is there once, and its names are in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).resolve().parents[2]
SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}


def rows() -> list[tuple[str, str]]:
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8").replace("\\|", "/")
    cells = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| ")]
    return [(a.strip(), b.strip()) for a, b in cells if a.strip() != "symbol"]


def symbols(cell: str) -> list[str]:
    """Without shapes, arguments and definitions: "L", "k"."""
    return [re.split(r"[ (=]", part)[0] for part in re.split(r", (?![^(]*\))", cell)]


def test_each_symbol_is_there_once():
    found = [symbol for cell, _ in rows() for symbol in symbols(cell)]
    assert len(found) > 40
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize(
    "name", sorted({name for _, cell in rows() for name in re.findall(r"`(\w+\.\w+)", cell)})
)
def test_each_name_is_in_the_code(name):
    owner, member = name.split(".")
    homes = [
        text
        for path, text in SOURCES.items()
        if re.search(rf"^class {owner}\b", text, re.MULTILINE) or path.stem == owner
    ]
    if owner in ("X", "Y"):  # arrays
        return
    assert homes, f"there is no class or module {owner}"
    assert any(re.search(rf"\b{member}\b", text) for text in homes), f"{owner} has no {member}"
